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

/* How many of a chain of `count` sends of `length` bytes are taken; the rest
 * begins at *bad. */
static int send_chain(struct t_end *end, int count, uint32_t length)
{
    struct ibv_sge sge = {(uintptr_t)end->buf, length, end->mr->lkey};
    struct ibv_send_wr wr[CHAIN], *bad = NULL;
    int i, ret;

    for (i = 0; i < count; ++i) {
        wr[i] = (struct ibv_send_wr){
            .wr_id      = i,
            .next       = (i + 1 < count) ? &wr[i + 1] : NULL,
            .sg_list    = &sge,
            .num_sge    = (length > 0) ? 1 : 0,
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
    struct ibv_sge sge = {(uintptr_t)end->buf, 64, end->mr->lkey};
    struct ibv_recv_wr wr[CHAIN], *bad = NULL;
    int i, ret;

    for (i = 0; i < count; ++i) {
        wr[i] = (struct ibv_recv_wr){
            .wr_id   = i, .next = (i + 1 < count) ? &wr[i + 1] : NULL,
            .sg_list = &sge, .num_sge = 1
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
    ck_assert_int_eq(send_chain(&ends[0], depth - 1, 8 * _i), depth - 1);
    ck_assert_int_eq(send_chain(&ends[0], CHAIN, 8 * _i), 1);
    ck_assert_int_eq(send_chain(&ends[0], 1, 8 * _i), 0);
    ck_assert_int_eq(send_chain(&ends[0], CHAIN, 8 * _i), 0);

    /* one gets through, and exactly one slot is free when that is known */
    ck_assert_int_eq(recv_chain(&ends[1], 1), 1);
    t_poll_is(ends[0].send_cq, 0, IBV_WC_SUCCESS);
    ck_assert_int_eq(send_chain(&ends[0], CHAIN, 8 * _i), 1);
    ck_assert_int_eq(recv_chain(&ends[1], DEPTH - 1), DEPTH - 1);
    for (i = 1; i < DEPTH; ++i) {
        ck_assert_int_eq(t_poll(ends[0].send_cq).status, IBV_WC_SUCCESS);
    }
    t_pair_close(ends);
}
END_TEST

/* A send that is over holds its slot until somebody was told. Of empty messages
 * and of short ones: they go different ways. */
START_TEST(test_slot_until_polled)
{
    const struct t_make make = {.depth = DEPTH, .cqe = 4 * CHAIN};
    struct t_end ends[2];
    int depth, i;

    t_pair_open(ends, &make, NULL);
    depth = granted(&ends[0], true);
    ck_assert_int_eq(recv_chain(&ends[1], DEPTH), DEPTH);
    ck_assert_int_eq(send_chain(&ends[0], DEPTH, 8 * _i), DEPTH);
    for (i = 0; i < DEPTH; ++i) {
        t_poll_is(ends[1].recv_cq, i, IBV_WC_SUCCESS);
    }
    if (t_differs(T_DIFF_SEND_SLOT)) {
        for (i = DEPTH; i <= depth; ++i) {
            ck_assert_int_eq(recv_chain(&ends[1], 1), 1);
            while (send_chain(&ends[0], 1, 8 * _i) == 0) {
                sched_yield();
            }
        }
    } else {
        /* it is not for want of RECVs */
        ck_assert_int_eq(recv_chain(&ends[1], DEPTH), DEPTH);
        ck_assert_int_eq(send_chain(&ends[0], CHAIN, 8 * _i), depth - DEPTH);
        t_poll_is(ends[0].send_cq, 0, IBV_WC_SUCCESS);
        ck_assert_int_eq(send_chain(&ends[0], CHAIN, 8 * _i), 1);
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

    ck_assert_int_eq(send_chain(&ends[0], 1, 8), 1);
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

    ck_assert_int_eq(send_chain(&ends[0], 1, 8), 1);
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
    ck_assert_int_eq(t_post_send(&end, 1, 0, 8, 0), EINVAL);
    ck_assert_int_eq(t_post_recv(&end, 1, 0, 8), EINVAL);
    t_end_init(&end, NULL);
    ck_assert_int_eq(t_post_send(&end, 1, 0, 8, 0), EINVAL);
    ck_assert_int_eq(t_post_recv(&end, 1, 0, 8), 0);
    t_end_rtr(&end, &own, NULL);
    ck_assert_int_eq(t_post_send(&end, 1, 0, 8, 0), EINVAL);
    ck_assert_int_eq(t_post_recv(&end, 2, 0, 8), 0);
    t_end_close(&end);
}
END_TEST

/* Who receives through an SRQ has no queue of its own. */
START_TEST(test_recv_beside_srq)
{
    const struct t_make make = {.srq = true};
    struct ibv_recv_wr wr    = {.wr_id = 1};
    struct ibv_recv_wr *bad;
    struct t_end ends[2];

    t_pair_open(ends, &make, NULL);
    ck_assert_int_eq(ibv_post_recv(ends[1].qp, &wr, &bad), EINVAL);
    t_check_link(&ends[0], &ends[1]);
    t_poll_none(ends[1].recv_cq);
    t_pair_close(ends);
}
END_TEST

enum { PIECES = 64 };

enum culprit {
    MANY_SGE,
    MANY_SGE_INLINE,
    LONG_INLINE,
    UNKNOWN_OPCODE,
    NEGATIVE_SGE,   /* from here on: softverbs only */
    INLINE_READ,
    CULPRITS
};

/* One more than the QP may, no matter how much that is. */
static void spoil(struct ibv_send_wr *wr, enum culprit culprit,
                  const struct ibv_qp_cap *cap, struct ibv_sge *sge)
{
    switch (culprit) {
    case MANY_SGE_INLINE:
        wr->send_flags |= IBV_SEND_INLINE;
        /* fallthrough */
    case MANY_SGE:
        wr->num_sge = cap->max_send_sge + 1;
        break;
    case LONG_INLINE:
        wr->send_flags |= IBV_SEND_INLINE;
        wr->sg_list     = sge;
        sge->length     = cap->max_inline_data + 1;
        break;
    case UNKNOWN_OPCODE:
        wr->opcode = 99;
        break;
    case NEGATIVE_SGE:
        wr->num_sge = -1;
        break;
    default:
        wr->send_flags |= IBV_SEND_INLINE;
        wr->opcode      = IBV_WR_RDMA_READ;
        break;
    }
}

/* What was posted before the culprit is done, the culprit and what follows is
 * not. */
static void check_bad_wr(enum culprit culprit, int at)
{
    const struct t_make make = {.max_sge = 2, .max_inline = 64};
    struct ibv_send_wr wr[3], *bad = NULL;
    struct ibv_sge sge[PIECES], culprits;
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    struct t_end ends[2];
    int i;

    t_pair_open(ends, &make, NULL);
    t_check_link(&ends[0], &ends[1]); /* the first goes another way */
    ck_assert_int_eq(ibv_query_qp(ends[0].qp, &attr, IBV_QP_CAP, &init), 0);
    ck_assert_uint_lt(attr.cap.max_send_sge, PIECES);
    for (i = 0; i < PIECES; ++i) {
        sge[i] = (struct ibv_sge){(uintptr_t)ends[0].buf, 1, ends[0].mr->lkey};
    }
    culprits = sge[0];
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
    spoil(&wr[at], culprit, &attr.cap, &culprits);

    ck_assert_int_eq(ibv_post_send(ends[0].qp, wr, &bad), EINVAL);
    ck_assert_ptr_eq(bad, &wr[at]);
    for (i = 0; i < at; ++i) {
        t_poll_is(ends[0].send_cq, i, IBV_WC_SUCCESS);
        t_poll_is(ends[1].recv_cq, i, IBV_WC_SUCCESS);
    }
    t_poll_none(ends[0].send_cq);
    t_poll_none(ends[1].recv_cq);
    ck_assert_int_eq(t_end_state(&ends[0]), IBV_QPS_RTS);
    t_pair_close(ends);
}

START_TEST(test_bad_wr_is_exact)
{
    struct ibv_send_wr wr = {.wr_id = 9, .opcode = 99}, *bad;
    struct t_end ends[2];

    if (_i / 3 >= NEGATIVE_SGE) {
        t_softverbs_only("Soft-RoCE believes such a request");
    }
    if ((_i / 3 == UNKNOWN_OPCODE) && t_differs(T_DIFF_OPCODE)) {
        t_pair_open(ends, NULL, NULL);
        ck_assert_int_eq(ibv_post_send(ends[0].qp, &wr, &bad), 0);
        ck_assert_int_ne(t_poll(ends[0].send_cq).status, IBV_WC_SUCCESS);
        t_pair_close(ends);
    } else {
        check_bad_wr(_i / 3, _i % 3);
    }
}
END_TEST

/* The same of RECVs, of a QP (0) and of an SRQ (1). */
START_TEST(test_bad_recv_is_exact)
{
    const struct t_make make = {.max_sge = 2, .srq = (_i == 1)};
    struct ibv_sge sge[PIECES];
    struct ibv_recv_wr wr[3], *bad = NULL;
    struct ibv_qp_init_attr init;
    struct ibv_srq_attr srq_attr;
    struct ibv_qp_attr attr;
    struct t_end ends[2];
    int i, max;

    t_pair_open(ends, &make, NULL);
    ck_assert_int_eq(ibv_query_qp(ends[1].qp, &attr, IBV_QP_CAP, &init), 0);
    max = attr.cap.max_recv_sge;
    if (make.srq) {
        ck_assert_int_eq(ibv_query_srq(ends[1].srq, &srq_attr), 0);
        max = srq_attr.max_sge;
    }
    ck_assert_int_lt(max, PIECES);
    for (i = 0; i < PIECES; ++i) {
        sge[i] = (struct ibv_sge){(uintptr_t)ends[1].buf, 64,
                                  ends[1].mr->lkey};
    }
    for (i = 0; i < 3; ++i) {
        wr[i] = (struct ibv_recv_wr){.wr_id   = i, .sg_list = sge,
                                     .next    = (i < 2) ? &wr[i + 1] : NULL,
                                     .num_sge = (i == 1) ? max + 1 : 1};
    }
    ck_assert_int_eq(make.srq ? ibv_post_srq_recv(ends[1].srq, wr, &bad) :
                                ibv_post_recv(ends[1].qp, wr, &bad), EINVAL);
    ck_assert_ptr_eq(bad, &wr[1]);

    /* the first is there, and nothing else is */
    ck_assert_int_eq(t_post_send(&ends[0], 7, 0, 8, IBV_SEND_SIGNALED), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 8, 0, 8, IBV_SEND_SIGNALED), 0);
    t_poll_is(ends[1].recv_cq, 0, IBV_WC_SUCCESS);
    t_poll_is(ends[0].send_cq, 7, IBV_WC_SUCCESS);
    t_poll_is(ends[0].send_cq, 8, IBV_WC_RNR_RETRY_EXC_ERR);
    t_pair_close(ends);
}
END_TEST

/* A datagram cannot be a WRITE. */
START_TEST(test_datagram_only_sends)
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
        ck_assert_int_eq(ibv_post_send(ends[0].qp, &wr, &bad), EINVAL);
        ck_assert_ptr_eq(bad, &wr);
    }
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_datagram_without_address)
{
    const struct t_make make = {.type = IBV_QPT_UD};
    struct ibv_send_wr wr    = {.opcode = IBV_WR_SEND};
    struct ibv_send_wr *bad  = NULL;
    struct t_end end;

    t_softverbs_only("its driver reads the address without a look");
    t_end_open(&end, &make);
    t_end_up(&end, NULL, NULL);
    ck_assert_int_eq(ibv_post_send(end.qp, &wr, &bad), EINVAL);
    ck_assert_ptr_eq(bad, &wr);
    t_end_close(&end);
}
END_TEST

/* ---- what does not fit ---- */

/* Both ends die of it. */
START_TEST(test_longer_than_recv)
{
    struct t_end ends[2];

    t_pair_open(ends, NULL, NULL);
    memset(ends[1].buf, 0xee, ends[1].size);
    ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 100), 0);
    ck_assert_int_eq(t_post_recv(&ends[1], 2, 0, 100), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 3, 0, 101, IBV_SEND_SIGNALED), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 4, 0, 10, 0), 0);

    t_poll_fails(ends[1].recv_cq, 1, IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_QP_OP_ERR);
    t_poll_fails(ends[0].send_cq, 3, IBV_WC_REM_INV_REQ_ERR,
                 IBV_WC_REM_OP_ERR);
    t_poll_is(ends[1].recv_cq, 2, IBV_WC_WR_FLUSH_ERR);
    t_poll_is(ends[0].send_cq, 4, IBV_WC_WR_FLUSH_ERR);
    ck_assert_int_eq(t_end_state(&ends[0]), IBV_QPS_ERR);
    ck_assert_int_eq(t_end_state(&ends[1]), IBV_QPS_ERR);
    ck_assert_uint_eq(ends[1].buf[100], 0xee);
    t_pair_close(ends);
}
END_TEST

/* More than a message may have, in memory that is there. */
START_TEST(test_longer_than_port)
{
    struct t_end ends[2], large;
    struct ibv_port_attr port;
    size_t length;

    t_softverbs_only("its driver sends what is longer than max_msg_sz, too");
    t_pair_open(ends, NULL, NULL);
    ck_assert_int_eq(ibv_query_port(ends[0].context, 1, &port), 0);
    length    = (size_t)port.max_msg_sz + 1;
    large     = ends[0];
    large.buf = mmap(NULL, length, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert_ptr_ne(large.buf, MAP_FAILED);
    large.mr = ibv_reg_mr(large.pd, large.buf, length, 0);
    ck_assert_ptr_nonnull(large.mr);
    ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 64), 0);
    ck_assert_int_eq(t_post_send(&large, 2, 0, length, 0), 0);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_LOC_LEN_ERR);
    ck_assert_int_eq(t_end_state(&ends[0]), IBV_QPS_ERR);
    ck_assert_int_eq(t_end_state(&ends[1]), IBV_QPS_RTS);
    t_poll_none(ends[1].recv_cq);
    ck_assert_int_eq(ibv_dereg_mr(large.mr), 0);
    ck_assert_int_eq(munmap(large.buf, length), 0);
    t_pair_close(ends);
}
END_TEST

/* A datagram is one packet, of the port's MTU; one byte more fails, and the QP
 * is in SQE. */
START_TEST(test_datagram_longer_than_mtu)
{
    const struct t_make make = {.type = IBV_QPT_UD};
    struct ibv_port_attr port;
    struct t_address to;
    struct t_end end;
    struct ibv_ah *ah;
    size_t mtu;

    t_softverbs_only("its driver drops such a datagram without a word");
    t_end_open(&end, &make);
    t_end_up(&end, NULL, NULL);
    ck_assert_int_eq(ibv_query_port(end.context, 1, &port), 0);
    mtu = 128u << port.active_mtu;
    to  = t_end_address(&end);
    ah  = t_create_ah(&end, &to);
    ck_assert_int_eq(t_post_recv(&end, 1, 8192, 40 + mtu), 0);
    ck_assert_int_eq(t_post_datagram(&end, ah, to.qpn, T_QKEY, 2, 0, mtu), 0);
    t_poll_is(end.send_cq, 2, IBV_WC_SUCCESS);
    t_poll_is(end.recv_cq, 1, IBV_WC_SUCCESS);
    ck_assert_int_eq(t_post_recv(&end, 3, 8192, 41 + mtu), 0);
    ck_assert_int_eq(t_post_datagram(&end, ah, to.qpn, T_QKEY, 4, 0, mtu + 1),
                     0);
    t_poll_is(end.send_cq, 4, IBV_WC_LOC_LEN_ERR);
    ck_assert_int_eq(t_end_state(&end), IBV_QPS_SQE);
    t_poll_none(end.recv_cq);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    t_end_close(&end);
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

/* Ways in which the key of a piece of memory can be wrong. */
enum bad_key {
    NO_SUCH_KEY,
    OVER_THE_EDGE,
    BEFORE_THE_EDGE,
    OTHER_PD,
    READ_ONLY,      /* wrong only for who writes into it */
    BAD_KEYS
};

/* 8 bytes of `end` with a key that is wrong. `other` lends its PD's; *mr_p is
 * to be deregistered at the end, if there is one. */
static struct ibv_sge bad_sge(struct t_end *end, struct t_end *other,
                              enum bad_key what, struct ibv_mr **mr_p)
{
    struct ibv_sge sge = {(uintptr_t)end->buf + 64, 8, end->mr->lkey};

    *mr_p = NULL;
    switch (what) {
    case NO_SUCH_KEY:
        sge.lkey ^= 1;
        break;
    case OTHER_PD:
        sge.lkey = other->mr->lkey;
        sge.addr = (uintptr_t)other->buf;
        break;
    default:
        *mr_p = ibv_reg_mr(end->pd, end->buf + 64, 1024,
                           (what == READ_ONLY) ? 0 : IBV_ACCESS_LOCAL_WRITE);
        ck_assert_ptr_nonnull(*mr_p);
        sge.lkey  = (*mr_p)->lkey;
        sge.addr += (what == OVER_THE_EDGE) ? 1024 - 7 :
                    (what == BEFORE_THE_EDGE) ? -1 : 0;
        break;
    }
    return sge;
}

static void drop_mr(struct ibv_mr *mr)
{
    if (mr != NULL) {
        ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    }
}

/* What a SEND (even _i) or a WRITE is made of; nothing of it goes over. */
START_TEST(test_bad_lkey)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = {.wr_id  = 1, .sg_list = &sge, .num_sge = 1,
                             .opcode = (_i % 2) ? IBV_WR_RDMA_WRITE :
                                                  IBV_WR_SEND};
    struct ibv_send_wr *bad;
    struct t_end ends[2], other;
    struct t_address to;
    struct ibv_mr *mr;

    t_pair_open(ends, NULL, NULL);
    t_end_open(&other, NULL);
    sge                    = bad_sge(&ends[0], &other, _i / 2, &mr);
    to                     = t_end_address(&ends[1]);
    wr.wr.rdma.remote_addr = to.buf;
    wr.wr.rdma.rkey        = to.rkey;
    memset(ends[0].buf, 7, 4096);
    memset(other.buf, 7, 64);

    ck_assert_int_eq(t_post_recv(&ends[1], 5, 4096, 64), 0);
    ck_assert_int_eq(ibv_post_send(ends[0].qp, &wr, &bad), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 2, 0, 8, 0), 0);
    t_poll_refused(ends[0].send_cq, 1);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_WR_FLUSH_ERR);
    ck_assert_int_eq(t_end_state(&ends[0]), IBV_QPS_ERR);
    ck_assert_int_eq(t_end_state(&ends[1]), IBV_QPS_RTS);
    t_poll_none(ends[1].recv_cq);
    ck_assert_uint_eq(ends[1].buf[0], 0);
    drop_mr(mr);
    t_end_close(&other);
    t_pair_close(ends);
}
END_TEST

/* Where what a READ (even _i) or an atomic fetches is to go. */
START_TEST(test_bad_lkey_of_result)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
    struct ibv_send_wr *bad;
    struct t_end ends[2], other;
    struct t_address to;
    struct ibv_mr *mr;

    t_pair_open(ends, NULL, NULL);
    t_end_open(&other, NULL);
    sge = bad_sge(&ends[0], &other, _i / 2, &mr);
    to  = t_end_address(&ends[1]);
    memset(ends[1].buf, 7, 64);
    if (_i % 2) {
        wr.opcode                = IBV_WR_ATOMIC_FETCH_AND_ADD;
        wr.wr.atomic.remote_addr = to.buf;
        wr.wr.atomic.rkey        = to.rkey;
    } else {
        wr.opcode              = IBV_WR_RDMA_READ;
        wr.wr.rdma.remote_addr = to.buf;
        wr.wr.rdma.rkey        = to.rkey;
    }

    ck_assert_int_eq(ibv_post_send(ends[0].qp, &wr, &bad), 0);
    t_poll_fails(ends[0].send_cq, 1, IBV_WC_LOC_PROT_ERR,
                 IBV_WC_LOC_QP_OP_ERR);
    ck_assert_int_eq(t_end_state(&ends[0]), IBV_QPS_ERR);
    ck_assert_uint_eq(*(uint8_t*)(uintptr_t)sge.addr, 0);
    drop_mr(mr);
    t_end_close(&other);
    t_pair_close(ends);
}
END_TEST

/* Good when it was posted, but the memory went while the SEND had to wait. */
START_TEST(test_lkey_gone_meanwhile)
{
    const struct t_link link = {.rnr_retry = 7};
    struct t_end ends[2], gone;

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
    t_poll_refused(ends[0].send_cq, 1);
    t_pair_close(ends);
}
END_TEST

/* Where a message is to go: the receiver finds it out, and its QP dies. A
 * message of 8 bytes, and one that fills the RECV to the last byte. */
START_TEST(test_bad_lkey_of_recv)
{
    const size_t length = (_i % 2) ? 2000 : 8;
    struct ibv_sge sge;
    struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr *bad;
    struct t_end ends[2], other;
    struct ibv_mr *mr;

    t_pair_open(ends, NULL, NULL);
    t_end_open(&other, NULL);
    sge = bad_sge(&ends[1], &other, _i / 2, &mr);
    if (mr == NULL) {
        sge.length = length;
    } else if (_i / 2 == READ_ONLY) {
        drop_mr(mr);
        mr         = ibv_reg_mr(ends[1].pd, ends[1].buf + 64, 4096, 0);
        sge.lkey   = mr->lkey;
        sge.length = length;
    }
    memset(ends[0].buf, 7, length);
    ck_assert_int_eq(ibv_post_recv(ends[1].qp, &wr, &bad), 0);
    ck_assert_int_eq(t_post_recv(&ends[1], 3, 0, 64), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 2, 0, sge.length,
                                 IBV_SEND_SIGNALED), 0);
    t_poll_fails(ends[1].recv_cq, 1, IBV_WC_LOC_PROT_ERR,
                 IBV_WC_LOC_QP_OP_ERR);
    t_poll_is(ends[1].recv_cq, 3, IBV_WC_WR_FLUSH_ERR);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_REM_OP_ERR);
    ck_assert_int_eq(t_end_state(&ends[0]), IBV_QPS_ERR);
    ck_assert_int_eq(t_end_state(&ends[1]), IBV_QPS_ERR);
    ck_assert_uint_eq(*(uint8_t*)(uintptr_t)sge.addr, 0);
    drop_mr(mr);
    t_end_close(&other);
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

/* A CQ that has overrun takes nothing any more, not even when there is room
 * again, and the QP that has lost a completion dies. */
static void check_overrun(struct t_end *end, struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int count = 0;

    wait_for_event(end, IBV_EVENT_CQ_ERR);
    if (t_differs(T_DIFF_ASYNC_EVENTS)) {
        return;
    }
    wait_for_event(end, IBV_EVENT_QP_FATAL);
    ck_assert_int_eq(t_end_state(end), IBV_QPS_ERR);
    while (ibv_poll_cq(cq, 1, &wc) == 1) {
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        ++count;
    }
    ck_assert_int_le(count, end->make.cqe);
    ck_assert_int_eq(t_post_send(end, 900, 0, 8, 0), 0);
    ck_assert_int_eq(t_post_recv(end, 901, 0, 8), 0);
    t_poll_none(cq);
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
    for (i = 0; (i < 100) && (t_post_send(&ends[0], i, 0, 8, 0) == 0); ++i) {
    }
    check_overrun(&ends[0], ends[0].send_cq);
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
    check_overrun(&ends[1], ends[1].recv_cq);
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
                           "full", test_recv_queue_full,
                           "full", test_shared_queue_full,
                           "posts", test_wrong_state,
                           "posts", test_recv_beside_srq,
                           "posts", test_datagram_only_sends,
                           "posts", test_datagram_without_address,
                           "length", test_longer_than_recv,
                           "length", test_longer_than_port,
                           "length", test_datagram_longer_than_mtu,
                           "length", test_recvs_of_many_lengths,
                           "keys", test_lkey_gone_meanwhile,
                           "end", test_flush,
                           "end", test_flush_after_arrival,
                           "end", test_reset_forgets,
                           "end", test_drained,
                           "overrun", test_send_cq_overrun,
                           "overrun", test_recv_cq_overrun,
                           "overrun", test_cq_just_full,
                           NULL);
    TCase *sends = tcase_create("full");
    TCase *posts = tcase_create("bad_wr");
    TCase *lkeys = tcase_create("lkey");

    tcase_set_timeout(sends, T_TIMEOUT);
    tcase_add_loop_test(sends, test_send_queue_full, 0, 2);
    tcase_add_loop_test(sends, test_slot_until_polled, 0, 2);
    tcase_set_timeout(posts, T_TIMEOUT);
    tcase_add_loop_test(posts, test_bad_wr_is_exact, 0, 3 * CULPRITS);
    tcase_add_loop_test(posts, test_bad_recv_is_exact, 0, 2);
    tcase_set_timeout(lkeys, T_TIMEOUT);
    tcase_add_loop_test(lkeys, test_bad_lkey, 0, 2 * READ_ONLY);
    tcase_add_loop_test(lkeys, test_bad_lkey_of_result, 0, 2 * BAD_KEYS);
    tcase_add_loop_test(lkeys, test_bad_lkey_of_recv, 0, 2 * BAD_KEYS);
    suite_add_tcase(suite, sends);
    suite_add_tcase(suite, posts);
    suite_add_tcase(suite, lkeys);
    return suite;
}

T_MAIN(suite_refuse)
