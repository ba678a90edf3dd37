/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device says no: queues that are full, posts that are wrong, data that do
 * not fit, keys that are not, completions that nobody fetches. And the order in
 * which everything ends when a QP dies.
 */
#include "t_device.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { DEPTH = 16, CHAIN = 64 };

/* ---- full ---- */

/* How many of a chain of `count` sends are taken; the rest begins at *bad. */
static int send_chain(struct t_end *end, int count)
{
    struct ibv_send_wr wr[CHAIN], *bad = NULL;
    int i, ret;

    for (i = 0; i < count; ++i) {
        wr[i] = (struct ibv_send_wr){
            .wr_id      = i,
            .next       = (i + 1 < count) ? &wr[i + 1] : NULL,
            .opcode     = IBV_WR_SEND,
            .send_flags = IBV_SEND_SIGNALED
        };
    }

    ret = ibv_post_send(end->qp, wr, &bad);
    if (ret == 0) {
        return count;
    }
    ck_assert_int_eq(ret, ENOMEM);
    ck_assert(bad >= wr && bad < wr + count);
    return bad - wr;
}

static int recv_chain(struct t_end *end, int count)
{
    struct ibv_recv_wr wr[CHAIN], *bad = NULL;
    int i, ret;

    for (i = 0; i < count; ++i) {
        wr[i] = (struct ibv_recv_wr){
            .wr_id = i, .next = (i + 1 < count) ? &wr[i + 1] : NULL
        };
    }

    ret = (end->srq != NULL) ? ibv_post_srq_recv(end->srq, wr, &bad) :
                               ibv_post_recv(end->qp, wr, &bad);
    if (ret == 0) {
        return count;
    }
    ck_assert_int_eq(ret, ENOMEM);
    ck_assert(bad >= wr && bad < wr + count);
    return bad - wr;
}

/* What the device granted, which may be more than was asked for. */
static int granted(struct t_end *end, bool send)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    ck_assert_int_eq(ibv_query_qp(end->qp, &attr, IBV_QP_CAP, &init), 0);
    return send ? attr.cap.max_send_wr : attr.cap.max_recv_wr;
}

/* The peer has no RECV and the sender asks for ever, so nothing completes. */
START_TEST(test_send_queue_full)
{
    const struct t_make make = {.depth = DEPTH, .cqe = 4 * CHAIN};
    const struct t_link link = {.rnr_retry = 7};
    struct t_end ends[2];
    int depth, i;

    t_pair_open(ends, &make, &link);
    depth = granted(&ends[0], true);
    ck_assert_int_lt(depth, CHAIN);
    ck_assert_int_eq(send_chain(&ends[0], depth - 1), depth - 1);
    ck_assert_int_eq(send_chain(&ends[0], CHAIN), 1);
    ck_assert_int_eq(send_chain(&ends[0], 1), 0);
    ck_assert_int_eq(send_chain(&ends[0], CHAIN), 0);

    /* one gets through, and exactly one slot is free when that is known */
    ck_assert_int_eq(recv_chain(&ends[1], 1), 1);
    t_poll_is(ends[0].send_cq, 0, IBV_WC_SUCCESS);
    ck_assert_int_eq(send_chain(&ends[0], CHAIN), 1);
    ck_assert_int_eq(recv_chain(&ends[1], DEPTH - 1), DEPTH - 1);
    for (i = 1; i < DEPTH; ++i) {
        ck_assert_int_eq(t_poll(ends[0].send_cq).status, IBV_WC_SUCCESS);
    }
    t_pair_close(ends);
}
END_TEST

/* A send that is over holds its slot until somebody was told. */
START_TEST(test_slot_until_polled)
{
    const struct t_make make = {.depth = DEPTH, .cqe = 4 * CHAIN};
    struct t_end ends[2];
    int depth, i;

    t_pair_open(ends, &make, NULL);
    depth = granted(&ends[0], true);
    ck_assert_int_eq(recv_chain(&ends[1], DEPTH), DEPTH);
    ck_assert_int_eq(send_chain(&ends[0], DEPTH), DEPTH);
    for (i = 0; i < DEPTH; ++i) {
        t_poll_is(ends[1].recv_cq, i, IBV_WC_SUCCESS);
    }
    if (t_differs(T_DIFF_SEND_SLOT)) {
        for (i = DEPTH; i <= depth; ++i) {
            ck_assert_int_eq(recv_chain(&ends[1], 1), 1);
            while (send_chain(&ends[0], 1) == 0) {
                sched_yield();
            }
        }
    } else {
        ck_assert_int_eq(send_chain(&ends[0], CHAIN), depth - DEPTH);
        t_poll_is(ends[0].send_cq, 0, IBV_WC_SUCCESS);
        ck_assert_int_eq(send_chain(&ends[0], CHAIN), 1);
    }
    t_pair_close(ends);
}
END_TEST

START_TEST(test_recv_queue_full)
{
    const struct t_make make = {.depth = DEPTH};
    struct t_end ends[2];
    int depth;

    t_pair_open(ends, &make, NULL);
    depth = granted(&ends[1], false);
    ck_assert_int_eq(recv_chain(&ends[1], depth - 1), depth - 1);
    ck_assert_int_eq(recv_chain(&ends[1], CHAIN), 1);
    ck_assert_int_eq(recv_chain(&ends[1], 1), 0);

    ck_assert_int_eq(send_chain(&ends[0], 1), 1);
    t_poll_is(ends[1].recv_cq, 0, IBV_WC_SUCCESS);
    ck_assert_int_eq(recv_chain(&ends[1], CHAIN), 1);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_shared_queue_full)
{
    const struct t_make make = {.depth = DEPTH, .srq = true};
    struct ibv_srq_attr attr;
    struct t_end ends[2];

    t_pair_open(ends, &make, NULL);
    ck_assert_int_eq(ibv_query_srq(ends[1].srq, &attr), 0);
    ck_assert_uint_lt(attr.max_wr, CHAIN);
    ck_assert_int_eq(recv_chain(&ends[1], CHAIN), attr.max_wr);
    ck_assert_int_eq(recv_chain(&ends[1], 1), 0);

    ck_assert_int_eq(send_chain(&ends[0], 1), 1);
    t_poll_is(ends[1].recv_cq, 0, IBV_WC_SUCCESS);
    ck_assert_int_eq(recv_chain(&ends[1], CHAIN), 1);
    t_pair_close(ends);
}
END_TEST

/* ---- wrong posts ---- */

START_TEST(test_wrong_state)
{
    struct t_address own;
    struct t_end end;

    t_end_open(&end, NULL);
    own = t_end_address(&end);
    ck_assert_int_ne(t_post_send(&end, 1, 0, 8, 0), 0);
    ck_assert_int_ne(t_post_recv(&end, 1, 0, 8), 0);
    t_end_init(&end, NULL);
    ck_assert_int_ne(t_post_send(&end, 1, 0, 8, 0), 0);
    ck_assert_int_eq(t_post_recv(&end, 1, 0, 8), 0);
    t_end_rtr(&end, &own, NULL);
    ck_assert_int_ne(t_post_send(&end, 1, 0, 8, 0), 0);
    ck_assert_int_eq(t_post_recv(&end, 2, 0, 8), 0);
    t_end_close(&end);
}
END_TEST

/* What was posted before the culprit is done, the culprit and what follows is
 * not. */
START_TEST(test_bad_wr_is_exact)
{
    const struct t_make make = {.max_sge = 2, .max_inline = 32};
    struct ibv_sge sge[3];
    struct ibv_send_wr wr[3], *bad;
    struct t_end ends[2];
    struct ibv_recv_wr recv[2], *bad_recv;
    int kinds = 3, kind, at, i;

    t_pair_open(ends, &make, NULL);
    if (t_differs(T_DIFF_OPCODE)) {
        kinds = 2;
        wr[0] = (struct ibv_send_wr){.wr_id = 9, .opcode = 99};
        ck_assert_int_eq(ibv_post_send(ends[0].qp, wr, &bad), 0);
        ck_assert_int_ne(t_poll(ends[0].send_cq).status, IBV_WC_SUCCESS);
        t_pair_close(ends);
        t_pair_open(ends, &make, NULL);
    }
    for (i = 0; i < 3; ++i) {
        sge[i] = (struct ibv_sge){(uintptr_t)ends[0].buf, 300,
                                  ends[0].mr->lkey};
    }
    for (kind = 0; kind < kinds; ++kind) {
        for (at = 0; at < 3; ++at) {
            for (i = 0; i < 3; ++i) {
                wr[i] = (struct ibv_send_wr){
                    .wr_id      = i,
                    .next       = (i < 2) ? &wr[i + 1] : NULL,
                    .sg_list    = sge,
                    .num_sge    = 1,
                    .opcode     = IBV_WR_SEND,
                    .send_flags = IBV_SEND_SIGNALED
                };
                ck_assert_int_eq(t_post_recv(&ends[1], i, 0, 4096), 0);
            }
            switch (kind) {
            case 0:
                wr[at].num_sge = 17; /* more than any end here may have */
                break;
            case 1:
                wr[at].send_flags |= IBV_SEND_INLINE;
                sge[0].length      = 1 << 15;
                break;
            default:
                wr[at].opcode = 99;
                break;
            }

            bad = NULL;
            ck_assert_int_ne(ibv_post_send(ends[0].qp, wr, &bad), 0);
            ck_assert_ptr_eq(bad, &wr[at]);
            sge[0].length = 300;
            for (i = 0; i < at; ++i) {
                t_poll(ends[0].send_cq);
                t_poll(ends[1].recv_cq);
            }
            t_poll_none(ends[0].send_cq);
            t_end_move(&ends[0], IBV_QPS_RESET);
            t_end_move(&ends[1], IBV_QPS_RESET);
            while (ibv_poll_cq(ends[1].recv_cq, 1, &(struct ibv_wc){0}) > 0) {
            }
            {
                struct t_address a = t_end_address(&ends[0]);
                struct t_address b = t_end_address(&ends[1]);

                t_end_up(&ends[0], &b, NULL);
                t_end_up(&ends[1], &a, NULL);
            }
        }
    }

    for (i = 0; i < 2; ++i) {
        recv[i] = (struct ibv_recv_wr){.wr_id = i, .sg_list = sge,
                                       .next = (i == 0) ? &recv[1] : NULL,
                                       .num_sge = (i == 0) ? 1 : 17};
    }
    bad_recv = NULL;
    ck_assert_int_ne(ibv_post_recv(ends[1].qp, recv, &bad_recv), 0);
    ck_assert_ptr_eq(bad_recv, &recv[1]);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_datagram_wants_address)
{
    const struct t_make make = {.type = IBV_QPT_UD};
    struct ibv_send_wr wr    = {.opcode = IBV_WR_RDMA_WRITE};
    struct ibv_send_wr *bad  = NULL;
    struct t_address to;
    struct t_end ends[2];
    struct ibv_ah *ah;

    t_pair_open(ends, &make, NULL);
    to           = t_end_address(&ends[1]);
    ah           = t_create_ah(&ends[0], &to);
    wr.wr.ud.ah  = ah;
    if (t_differs(T_DIFF_OPCODE)) {
        ck_assert_int_eq(ibv_post_send(ends[0].qp, &wr, &bad), 0);
        ck_assert_int_ne(t_poll(ends[0].send_cq).status, IBV_WC_SUCCESS);
    } else {
        ck_assert_int_ne(ibv_post_send(ends[0].qp, &wr, &bad), 0);
        ck_assert_ptr_eq(bad, &wr);
    }
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    t_pair_close(ends);
}
END_TEST

/* ---- what does not fit ---- */

/* Devices differ in the two statuses; both ends die of it. */
START_TEST(test_longer_than_recv)
{
    struct t_end ends[2];
    struct ibv_wc wc;

    t_pair_open(ends, NULL, NULL);
    memset(ends[1].buf, 0xee, ends[1].size);
    ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 100), 0);
    ck_assert_int_eq(t_post_recv(&ends[1], 2, 0, 100), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 3, 0, 101, IBV_SEND_SIGNALED), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 4, 0, 10, 0), 0);

    wc = t_poll(ends[1].recv_cq);
    ck_assert_uint_eq(wc.wr_id, 1);
    ck_assert((wc.status == IBV_WC_LOC_LEN_ERR) ||
              (wc.status == IBV_WC_LOC_QP_OP_ERR));
    wc = t_poll(ends[0].send_cq);
    ck_assert_uint_eq(wc.wr_id, 3);
    ck_assert((wc.status == IBV_WC_REM_INV_REQ_ERR) ||
              (wc.status == IBV_WC_REM_OP_ERR));
    t_poll_is(ends[1].recv_cq, 2, IBV_WC_WR_FLUSH_ERR);
    t_poll_is(ends[0].send_cq, 4, IBV_WC_WR_FLUSH_ERR);
    ck_assert_int_eq(t_end_state(&ends[0]), IBV_QPS_ERR);
    ck_assert_int_eq(t_end_state(&ends[1]), IBV_QPS_ERR);
    ck_assert_uint_eq(ends[1].buf[100], 0xee);
    t_pair_close(ends);
}
END_TEST

/* RECVs of different lengths: a message is measured against its own. */
START_TEST(test_recvs_of_many_lengths)
{
    struct t_end ends[2];
    unsigned i;

    t_pair_open(ends, NULL, NULL);
    for (i = 0; i < 100; ++i) {
        size_t length = (i * 37) % 1000;

        ck_assert_int_eq(t_post_recv(&ends[1], i, 0, length), 0);
        ck_assert_int_eq(t_post_send(&ends[0], i, 0, length,
                                     IBV_SEND_SIGNALED), 0);
        t_poll_is(ends[1].recv_cq, i, IBV_WC_SUCCESS);
        t_poll_is(ends[0].send_cq, i, IBV_WC_SUCCESS);
    }
    t_pair_close(ends);
}
END_TEST

/* ---- keys ---- */

/* A send whose local key is wrong. what: 0 no such key, 1 over the edge,
 * 2 another PD's */
static void check_bad_lkey(int what)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1,
                             .opcode = IBV_WR_SEND};
    struct ibv_send_wr *bad;
    struct t_end ends[2], other;
    struct ibv_wc wc;

    t_pair_open(ends, NULL, NULL);
    t_end_open(&other, NULL);
    sge = (struct ibv_sge){(uintptr_t)ends[0].buf, 8, ends[0].mr->lkey};
    switch (what) {
    case 0:
        sge.lkey ^= 1;
        break;
    case 1:
        sge.addr += ends[0].size - 7;
        break;
    default:
        sge.lkey = other.mr->lkey;
        sge.addr = (uintptr_t)other.buf;
        break;
    }

    ck_assert_int_eq(t_post_recv(&ends[1], 5, 0, 64), 0);
    ck_assert_int_eq(ibv_post_send(ends[0].qp, &wr, &bad), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 2, 0, 8, 0), 0);
    wc = t_poll(ends[0].send_cq);
    ck_assert_uint_eq(wc.wr_id, 1);
    ck_assert((wc.status == IBV_WC_LOC_PROT_ERR) ||
              (wc.status == IBV_WC_LOC_QP_OP_ERR));
    t_poll_is(ends[0].send_cq, 2, IBV_WC_WR_FLUSH_ERR);
    ck_assert_int_eq(t_end_state(&ends[0]), IBV_QPS_ERR);
    /* nothing of it went over */
    ck_assert_int_eq(t_end_state(&ends[1]), IBV_QPS_RTS);
    t_poll_none(ends[1].recv_cq);
    t_end_close(&other);
    t_pair_close(ends);
}

START_TEST(test_bad_lkey)
{
    check_bad_lkey(_i);
}
END_TEST

/* Good when it was posted, but the memory went while the SEND had to wait. */
START_TEST(test_lkey_gone_meanwhile)
{
    const struct t_link link = {.rnr_retry = 7};
    struct t_end ends[2], gone;
    struct ibv_wc wc;

    t_pair_open(ends, NULL, &link);
    gone     = ends[0];
    gone.buf = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(gone.buf, MAP_FAILED);
    gone.mr = ibv_reg_mr(gone.pd, gone.buf, 4096, 0);
    ck_assert_ptr_nonnull(gone.mr);
    ck_assert_int_eq(t_post_send(&gone, 1, 0, 8, 0), 0);
    ck_assert_int_eq(ibv_dereg_mr(gone.mr), 0);
    ck_assert_int_eq(munmap(gone.buf, 4096), 0);
    ck_assert_int_eq(t_post_recv(&ends[1], 2, 0, 64), 0);
    wc = t_poll(ends[0].send_cq);
    ck_assert_uint_eq(wc.wr_id, 1);
    ck_assert((wc.status == IBV_WC_LOC_PROT_ERR) ||
              (wc.status == IBV_WC_LOC_QP_OP_ERR));
    t_pair_close(ends);
}
END_TEST

START_TEST(test_bad_lkey_of_recv)
{
    struct ibv_sge sge;
    struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr *bad;
    struct t_end ends[2];
    struct ibv_wc wc;

    t_pair_open(ends, NULL, NULL);
    sge = (struct ibv_sge){(uintptr_t)ends[1].buf, 64, ends[1].mr->lkey ^ 1};
    ck_assert_int_eq(ibv_post_recv(ends[1].qp, &wr, &bad), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 2, 0, 8, IBV_SEND_SIGNALED), 0);
    wc = t_poll(ends[1].recv_cq);
    ck_assert_uint_eq(wc.wr_id, 1);
    ck_assert((wc.status == IBV_WC_LOC_PROT_ERR) ||
              (wc.status == IBV_WC_LOC_QP_OP_ERR));
    wc = t_poll(ends[0].send_cq);
    ck_assert_uint_eq(wc.wr_id, 2);
    ck_assert_int_eq(wc.status, IBV_WC_REM_OP_ERR);
    t_pair_close(ends);
}
END_TEST

/* Writing into a region that is for reading. */
START_TEST(test_region_is_read_only)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ};
    struct ibv_send_wr *bad;
    struct t_address to;
    struct t_end ends[2];
    struct ibv_mr *mr;
    struct ibv_wc wc;

    t_pair_open(ends, NULL, NULL);
    to  = t_end_address(&ends[1]);
    mr  = ibv_reg_mr(ends[0].pd, ends[0].buf, 4096, 0);
    sge = (struct ibv_sge){(uintptr_t)ends[0].buf, 8, mr->lkey};
    wr.wr.rdma.remote_addr = to.buf;
    wr.wr.rdma.rkey        = to.rkey;
    ends[1].buf[0]         = 1;
    ck_assert_int_eq(ibv_post_send(ends[0].qp, &wr, &bad), 0);
    wc = t_poll(ends[0].send_cq);
    ck_assert((wc.status == IBV_WC_LOC_PROT_ERR) ||
              (wc.status == IBV_WC_LOC_QP_OP_ERR));
    ck_assert_uint_eq(ends[0].buf[0], 0);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    t_pair_close(ends);
}
END_TEST

/* ---- the end of a QP ---- */

/* Everything that was posted completes, in order, signalled or not, and so
 * does what is posted from then on. */
START_TEST(test_flush)
{
    const struct t_link link = {.rnr_retry = 7};
    struct t_end ends[2];
    int i;

    t_pair_open(ends, NULL, &link);
    for (i = 0; i < 10; ++i) {
        ck_assert_int_eq(t_post_send(&ends[0], i, 0, 8,
                                     (i % 3 == 0) ? IBV_SEND_SIGNALED : 0), 0);
        ck_assert_int_eq(t_post_recv(&ends[0], 100 + i, 0, 8), 0);
    }
    t_end_move(&ends[0], IBV_QPS_ERR);
    for (i = 0; i < 10; ++i) {
        t_poll_is(ends[0].send_cq, i, IBV_WC_WR_FLUSH_ERR);
        t_poll_is(ends[0].recv_cq, 100 + i, IBV_WC_WR_FLUSH_ERR);
    }
    ck_assert_int_eq(t_post_send(&ends[0], 50, 0, 8, 0), 0);
    t_poll_is(ends[0].send_cq, 50, IBV_WC_WR_FLUSH_ERR);
    t_poll_none(ends[0].send_cq);
    t_poll_none(ends[0].recv_cq);
    t_pair_close(ends);
}
END_TEST

/* What had arrived before the QP died is delivered, then comes the flush. */
START_TEST(test_flush_after_arrival)
{
    struct t_end ends[2];
    int i;

    t_pair_open(ends, NULL, NULL);
    for (i = 0; i < 6; ++i) {
        ck_assert_int_eq(t_post_recv(&ends[1], i, i * 64, 64), 0);
    }
    for (i = 0; i < 3; ++i) {
        memset(ends[0].buf, 'a' + i, 64);
        ck_assert_int_eq(t_post_send(&ends[0], i, 0, 64, IBV_SEND_SIGNALED),
                         0);
        t_poll_is(ends[0].send_cq, i, IBV_WC_SUCCESS);
    }
    t_end_move(&ends[1], IBV_QPS_ERR);
    for (i = 0; i < 3; ++i) {
        t_poll_is(ends[1].recv_cq, i, IBV_WC_SUCCESS);
        ck_assert_uint_eq(ends[1].buf[i * 64], 'a' + i);
    }
    for (; i < 6; ++i) {
        t_poll_is(ends[1].recv_cq, i, IBV_WC_WR_FLUSH_ERR);
    }
    t_pair_close(ends);
}
END_TEST

START_TEST(test_reset_forgets)
{
    const struct t_link link = {.rnr_retry = 7};
    struct t_end ends[2];
    int i;

    t_pair_open(ends, NULL, &link);
    for (i = 0; i < 5; ++i) {
        ck_assert_int_eq(t_post_send(&ends[0], i, 0, 8, IBV_SEND_SIGNALED), 0);
        ck_assert_int_eq(t_post_recv(&ends[0], i, 0, 8), 0);
    }
    t_end_move(&ends[0], IBV_QPS_RESET);
    t_poll_none(ends[0].send_cq);
    t_poll_none(ends[0].recv_cq);
    t_pair_close(ends);
}
END_TEST

/* In SQD nothing new begins; in RTS it goes on. */
START_TEST(test_drained)
{
    struct t_end ends[2];

    t_pair_open(ends, NULL, NULL);
    ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 64), 0);
    t_end_move(&ends[0], IBV_QPS_SQD);
    ck_assert_int_eq(t_post_send(&ends[0], 2, 0, 64, IBV_SEND_SIGNALED), 0);
    t_poll_none(ends[0].send_cq);
    t_poll_none(ends[1].recv_cq);
    t_end_move(&ends[0], IBV_QPS_RTS);
    if (t_differs(T_DIFF_SQD_RESUME)) {
        t_check_link(&ends[1], &ends[0]);
        t_poll_none(ends[0].send_cq);
        ck_assert_int_eq(t_post_send(&ends[0], 3, 0, 0, 0), 0);
        ck_assert_int_eq(t_post_recv(&ends[1], 4, 0, 0), 0);
    }
    t_poll_is(ends[0].send_cq, 2, IBV_WC_SUCCESS);
    t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
    t_pair_close(ends);
}
END_TEST

/* ---- completions that nobody fetches ---- */

static void wait_for_event(struct t_end *end, enum ibv_event_type type)
{
    struct ibv_async_event event;

    do {
        ck_assert_int_eq(ibv_get_async_event(end->context, &event), 0);
        ibv_ack_async_event(&event);
    } while (event.event_type != type);
}

/* A CQ for fewer completions than there are sends. */
START_TEST(test_send_cq_overrun)
{
    const struct t_make make = {.depth = 200, .cqe = 4, .sig_all = true};
    struct t_end ends[2];
    int i;

    t_pair_open(ends, &make, NULL);
    for (i = 0; i < 200; ++i) {
        ck_assert_int_eq(t_post_recv(&ends[1], i, 0, 8), 0);
    }
    for (i = 0; (i < 200) && (t_post_send(&ends[0], i, 0, 8, 0) == 0); ++i) {
    }
    wait_for_event(&ends[0], IBV_EVENT_CQ_ERR);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_recv_cq_overrun)
{
    const struct t_make make = {.depth = 200, .cqe = 4};
    struct t_end ends[2];
    struct ibv_wc wc;
    int i, n;

    t_pair_open(ends, &make, NULL);
    for (i = 0; i < 200; ++i) {
        ck_assert_int_eq(t_post_recv(&ends[1], i, 0, 8), 0);
        ck_assert_int_eq(t_post_send(&ends[0], i, 0, 8, 0), 0);
    }
    /* on some devices it happened by now, on others it takes this poll */
    n = ibv_poll_cq(ends[1].recv_cq, 1, &wc);
    ck_assert_int_le(n, 1);
    wait_for_event(&ends[1], IBV_EVENT_CQ_ERR);
    t_pair_close(ends);
}
END_TEST

/* Exactly as many completions as the CQ has room for are no overrun. */
START_TEST(test_cq_just_full)
{
    const struct t_make make = {.depth = 64, .cqe = 64, .sig_all = true};
    struct t_end ends[2];
    int i;

    t_pair_open(ends, &make, NULL);
    for (i = 0; i < 64; ++i) {
        ck_assert_int_eq(t_post_recv(&ends[1], i, 0, 8), 0);
        ck_assert_int_eq(t_post_send(&ends[0], i, 0, 8, 0), 0);
    }
    for (i = 0; i < 64; ++i) {
        t_poll_is(ends[0].send_cq, i, IBV_WC_SUCCESS);
        t_poll_is(ends[1].recv_cq, i, IBV_WC_SUCCESS);
    }
    t_check_link(&ends[0], &ends[1]);
    t_pair_close(ends);
}
END_TEST

static Suite *suite_refuse(void)
{
    Suite *suite = t_suite("refuse",
                           "full", test_send_queue_full,
                           "full", test_slot_until_polled,
                           "full", test_recv_queue_full,
                           "full", test_shared_queue_full,
                           "posts", test_wrong_state,
                           "posts", test_bad_wr_is_exact,
                           "posts", test_datagram_wants_address,
                           "length", test_longer_than_recv,
                           "length", test_recvs_of_many_lengths,
                           "keys", test_lkey_gone_meanwhile,
                           "keys", test_bad_lkey_of_recv,
                           "keys", test_region_is_read_only,
                           "end", test_flush,
                           "end", test_flush_after_arrival,
                           "end", test_reset_forgets,
                           "end", test_drained,
                           "overrun", test_send_cq_overrun,
                           "overrun", test_recv_cq_overrun,
                           "overrun", test_cq_just_full,
                           NULL);
    TCase *tcase = tcase_create("lkey");

    tcase_set_timeout(tcase, T_TIMEOUT);
    tcase_add_loop_test(tcase, test_bad_lkey, 0, 3);
    suite_add_tcase(suite, tcase);
    return suite;
}

T_MAIN(suite_refuse)
