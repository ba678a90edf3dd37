/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * WRITE, READ and atomics: they do what they say, and every way in which the
 * far side must deny them.
 */
#include "t_device.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BIG = 2 << 20 };

static void fill(uint8_t *to, size_t length, uint64_t salt)
{
    t_rng_t rng;

    t_rng_init(&rng, salt);
    t_rng_fill(&rng, to, length);
}

START_TEST(test_write_read)
{
    static const size_t sizes[] = {0, 1, 8, 64, 4095, 4096, 65537, BIG / 2};
    const struct t_make make    = {.size = BIG};
    struct t_address to;
    struct t_end ends[2];
    struct ibv_wc wc;
    unsigned i;

    t_pair_open(ends, &make, NULL);
    to = t_end_address(&ends[1]);
    for (i = 0; i < sizeof(sizes) / sizeof(*sizes); ++i) {
        fill(ends[0].buf, sizes[i], i);
        memset(ends[1].buf + 100, 0xee, sizes[i] + 1);
        ck_assert_int_eq(t_post_rdma(&ends[0], IBV_WR_RDMA_WRITE, 1, 0,
                                     sizes[i], &to, 100), 0);
        wc = t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
        ck_assert_int_eq(wc.opcode, IBV_WC_RDMA_WRITE);

        /* a READ behind a WRITE sees it */
        memset(ends[0].buf + BIG / 2, 0, sizes[i]);
        ck_assert_int_eq(t_post_rdma(&ends[0], IBV_WR_RDMA_READ, 2, BIG / 2,
                                     sizes[i], &to, 100), 0);
        wc = t_poll_is(ends[0].send_cq, 2, IBV_WC_SUCCESS);
        ck_assert_int_eq(wc.opcode, IBV_WC_RDMA_READ);
        ck_assert_mem_eq(ends[0].buf, ends[0].buf + BIG / 2, sizes[i]);
        ck_assert_mem_eq(ends[0].buf, ends[1].buf + 100, sizes[i]);
        ck_assert_uint_eq(ends[1].buf[100 + sizes[i]], 0xee);
    }
    /* nobody over there was told */
    t_poll_none(ends[1].recv_cq);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_write_with_imm)
{
    struct t_address to;
    struct t_end ends[2];
    struct ibv_wc wc;

    t_pair_open(ends, NULL, NULL);
    to = t_end_address(&ends[1]);
    fill(ends[0].buf, 5000, 1);
    /* the RECV is used up but not written to: it may be too short */
    ck_assert_int_eq(t_post_recv(&ends[1], 3, 60000, 1), 0);
    ck_assert_int_eq(t_post_rdma(&ends[0], IBV_WR_RDMA_WRITE_WITH_IMM, 4, 0,
                                 5000, &to, 7), 0);
    t_poll_is(ends[0].send_cq, 4, IBV_WC_SUCCESS);
    wc = t_poll_is(ends[1].recv_cq, 3, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    ck_assert_uint_ne(wc.wc_flags & IBV_WC_WITH_IMM, 0);
    ck_assert_uint_eq(wc.imm_data, 0x1234);
    ck_assert_uint_eq(wc.byte_len, 5000);
    ck_assert_mem_eq(ends[1].buf + 7, ends[0].buf, 5000);
    t_pair_close(ends);
}
END_TEST

/* WRITE then SEND: who has the SEND has the WRITE. */
START_TEST(test_send_follows_write)
{
    struct t_address to;
    struct t_end ends[2];
    unsigned i;

    t_pair_open(ends, NULL, NULL);
    to = t_end_address(&ends[1]);
    for (i = 1; i <= 500; ++i) {
        memset(ends[0].buf, i & 0xff, 8192);
        ck_assert_int_eq(t_post_recv(&ends[1], i, 60000, 64), 0);
        ck_assert_int_eq(t_post_rdma(&ends[0], IBV_WR_RDMA_WRITE, i, 0, 8192,
                                     &to, 0), 0);
        ck_assert_int_eq(t_post_send(&ends[0], i, 0, 64, 0), 0);
        t_poll_is(ends[1].recv_cq, i, IBV_WC_SUCCESS);
        ck_assert_uint_eq(ends[1].buf[0], i & 0xff);
        ck_assert_uint_eq(ends[1].buf[8191], i & 0xff);
        t_poll_is(ends[0].send_cq, i, IBV_WC_SUCCESS);
    }
    t_pair_close(ends);
}
END_TEST

/* A WR behind one that waits waits, too. */
START_TEST(test_write_waits_for_send)
{
    const struct t_link link = {.rnr_retry = 7};
    struct t_address to;
    struct t_end ends[2];

    t_pair_open(ends, NULL, &link);
    to = t_end_address(&ends[1]);
    ends[0].buf[0] = 9;
    ck_assert_int_eq(t_post_send(&ends[0], 1, 0, 64, IBV_SEND_SIGNALED), 0);
    ck_assert_int_eq(t_post_rdma(&ends[0], IBV_WR_RDMA_WRITE, 2, 0, 1, &to,
                                 100), 0);
    t_poll_none(ends[0].send_cq);
    ck_assert_uint_eq(ends[1].buf[100], 0);
    ck_assert_int_eq(t_post_recv(&ends[1], 3, 1000, 64), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_SUCCESS);
    ck_assert_uint_eq(ends[1].buf[100], 9);
    t_pair_close(ends);
}
END_TEST

static uint64_t *word(struct t_end *end, size_t offset)
{
    return (uint64_t*)(end->buf + offset);
}

START_TEST(test_atomics)
{
    struct t_address to;
    struct t_end ends[2];

    t_pair_open(ends, NULL, NULL);
    to                   = t_end_address(&ends[1]);
    *word(&ends[1], 160) = 5;

    ck_assert_int_eq(t_post_atomic(&ends[0], IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0,
                                   &to, 160, -7, 0), 0);
    ck_assert_int_eq(t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS).opcode,
                     IBV_WC_FETCH_ADD);
    ck_assert_uint_eq(*word(&ends[0], 0), 5);
    ck_assert_uint_eq(*word(&ends[1], 160), (uint64_t)-2);

    /* no match: nothing changes, and one sees why */
    ck_assert_int_eq(t_post_atomic(&ends[0], IBV_WR_ATOMIC_CMP_AND_SWP, 1, 0,
                                   &to, 160, 5, 99), 0);
    ck_assert_int_eq(t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS).opcode,
                     IBV_WC_COMP_SWAP);
    ck_assert_uint_eq(*word(&ends[0], 0), (uint64_t)-2);
    ck_assert_uint_eq(*word(&ends[1], 160), (uint64_t)-2);

    ck_assert_int_eq(t_post_atomic(&ends[0], IBV_WR_ATOMIC_CMP_AND_SWP, 1, 0,
                                   &to, 160, -2, 99), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    ck_assert_uint_eq(*word(&ends[0], 0), (uint64_t)-2);
    ck_assert_uint_eq(*word(&ends[1], 160), 99);
    t_pair_close(ends);
}
END_TEST

/* ---- denials ---- */

/* The request fails with status; behind it everything is flushed; both ends
 * are in ERR, and what the far end had posted is flushed as well. */
static void check_denied(struct t_end ends[2], enum ibv_wc_status status)
{
    /* posted behind the culprit, signalled or not */
    t_poll_is(ends[0].send_cq, 1, status);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_WR_FLUSH_ERR);
    t_poll_is(ends[0].send_cq, 3, IBV_WC_WR_FLUSH_ERR);
    ck_assert_int_eq(t_end_state(&ends[0]), IBV_QPS_ERR);
    t_poll_is(ends[1].recv_cq, 4, IBV_WC_WR_FLUSH_ERR);
    ck_assert_int_eq(t_end_state(&ends[1]), IBV_QPS_ERR);
}

static void check_write_denied(struct t_end ends[2], const struct t_address *to)
{
    ck_assert_int_eq(t_post_recv(&ends[1], 4, 0, 64), 0);
    ck_assert_int_eq(t_post_rdma(&ends[0], IBV_WR_RDMA_WRITE, 1, 0, 8, to, 0),
                     0);
    ck_assert_int_eq(t_post_send(&ends[0], 2, 0, 64, 0), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 3, 0, 64, 0), 0);
    check_denied(ends, IBV_WC_REM_ACCESS_ERR);
}

struct denial {
    enum ibv_wr_opcode opcode;
    int                mr_access; /* of the target region, 0: all */
    int                qp_access; /* of the target QP, 0: all */
    uint32_t           rkey_flip; /* bits of the rkey that are wrong */
    int64_t            offset;    /* from the start of the region */
    uint32_t           length;    /* of the request */
};

/* The region that is asked for: 4096 bytes in the middle of the buffer. */
static void check_denial(const struct denial *d)
{
    const struct t_link link = {.access = d->qp_access, .timeout = 14,
                                .retry_cnt = 6};
    struct t_address to;
    struct t_end ends[2];
    struct ibv_mr *mr;

    t_pair_open(ends, NULL, &link);
    mr = ibv_reg_mr(ends[1].pd, ends[1].buf + 8192, 4096,
                    d->mr_access ? d->mr_access : T_ACCESS_ALL);
    ck_assert_ptr_nonnull(mr);
    to      = t_end_address(&ends[1]);
    to.rkey = mr->rkey ^ d->rkey_flip;
    memset(ends[1].buf, 0xee, ends[1].size);
    ck_assert_int_eq(t_post_recv(&ends[1], 4, 0, 64), 0);

    if ((d->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) ||
        (d->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)) {
        ck_assert_int_eq(t_post_atomic(&ends[0], d->opcode, 1, 0, &to,
                                       8192 + d->offset, 0, 1), 0);
    } else {
        ck_assert_int_eq(t_post_rdma(&ends[0], d->opcode, 1, 0, d->length, &to,
                                     8192 + d->offset), 0);
    }
    ck_assert_int_eq(t_post_send(&ends[0], 2, 0, 64, 0), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 3, 0, 64, IBV_SEND_SIGNALED), 0);
    check_denied(ends, IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(ends[1].buf[8191], 0xee);
    ck_assert_uint_eq(ends[1].buf[8192], 0xee);
    ck_assert_uint_eq(ends[1].buf[8192 + 4096], 0xee);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    t_pair_close(ends);
}

#define NOT_WRITE    (T_ACCESS_ALL & ~IBV_ACCESS_REMOTE_WRITE)
#define NOT_READ     (T_ACCESS_ALL & ~IBV_ACCESS_REMOTE_READ)
#define NOT_ATOMIC   (T_ACCESS_ALL & ~IBV_ACCESS_REMOTE_ATOMIC)

static const struct denial denials[] = {
    /* no such key, in any part of it */
    {.opcode = IBV_WR_RDMA_WRITE, .rkey_flip = 1, .length = 8},
    {.opcode = IBV_WR_RDMA_WRITE, .rkey_flip = 1u << 31, .length = 8},
    {.opcode = IBV_WR_RDMA_READ, .rkey_flip = 1, .length = 8},
    {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .rkey_flip = 1},
    /* one byte over each edge, and far away */
    {.opcode = IBV_WR_RDMA_WRITE, .offset = -1, .length = 8},
    {.opcode = IBV_WR_RDMA_WRITE, .offset = 4089, .length = 8},
    {.opcode = IBV_WR_RDMA_WRITE, .offset = 1, .length = 4096},
    {.opcode = IBV_WR_RDMA_WRITE, .offset = 1ll << 40, .length = 8},
    {.opcode = IBV_WR_RDMA_READ, .offset = -1, .length = 8},
    {.opcode = IBV_WR_RDMA_READ, .offset = 4089, .length = 8},
    {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .offset = 4096},
    {.opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .offset = -8},
    /* the region does not allow it */
    {.opcode = IBV_WR_RDMA_WRITE, .mr_access = NOT_WRITE, .length = 8},
    {.opcode = IBV_WR_RDMA_READ, .mr_access = NOT_READ, .length = 8},
    {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .mr_access = NOT_ATOMIC},
    {.opcode = IBV_WR_RDMA_WRITE, .mr_access = IBV_ACCESS_LOCAL_WRITE,
     .length = 8}
};

START_TEST(test_denials)
{
    check_denial(&denials[_i]);
}
END_TEST

/* The QP does not allow it. */
static const struct denial qp_denials[] = {
    {.opcode = IBV_WR_RDMA_WRITE, .length = 8,
     .qp_access = IBV_ACCESS_REMOTE_READ},
    {.opcode = IBV_WR_RDMA_READ, .length = 8,
     .qp_access = IBV_ACCESS_REMOTE_WRITE},
    {.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
     .qp_access = IBV_ACCESS_REMOTE_WRITE}
};

START_TEST(test_qp_denials)
{
    const struct denial *d   = &qp_denials[_i];
    const struct t_link link = {.access = d->qp_access, .timeout = 14,
                                .retry_cnt = 6};
    struct t_address to;
    struct t_end ends[2];

    t_pair_open(ends, NULL, &link);
    to = t_end_address(&ends[1]);
    memset(ends[1].buf, 0xee, ends[1].size);
    ck_assert_int_eq(t_post_recv(&ends[1], 4, 64, 64), 0);
    if (d->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        ck_assert_int_eq(t_post_atomic(&ends[0], d->opcode, 1, 0, &to, 0, 0, 1),
                         0);
    } else {
        ck_assert_int_eq(t_post_rdma(&ends[0], d->opcode, 1, 0, d->length, &to,
                                     0), 0);
    }
    t_poll_fails(ends[0].send_cq, 1, IBV_WC_REM_ACCESS_ERR,
                 IBV_WC_REM_INV_REQ_ERR);
    ck_assert_int_eq(t_end_state(&ends[0]), IBV_QPS_ERR);
    t_poll_is(ends[1].recv_cq, 4, IBV_WC_WR_FLUSH_ERR);
    ck_assert_int_eq(t_end_state(&ends[1]), IBV_QPS_ERR);
    ck_assert_uint_eq(ends[1].buf[0], 0xee);
    t_pair_close(ends);
}
END_TEST

/* A key of another protection domain is no key. */
START_TEST(test_other_pd)
{
    struct t_address to;
    struct t_end ends[2];
    struct ibv_mr *mr;
    struct ibv_pd *pd;

    t_pair_open(ends, NULL, NULL);
    pd = ibv_alloc_pd(ends[1].context);
    ck_assert_ptr_nonnull(pd);
    mr = ibv_reg_mr(pd, ends[1].buf, 4096, T_ACCESS_ALL);
    ck_assert_ptr_nonnull(mr);
    to      = t_end_address(&ends[1]);
    to.rkey = mr->rkey;
    check_write_denied(ends, &to);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_deregistered)
{
    struct t_address to;
    struct t_end ends[2];
    struct ibv_mr *mr;

    t_pair_open(ends, NULL, NULL);
    mr      = ibv_reg_mr(ends[1].pd, ends[1].buf, 4096, T_ACCESS_ALL);
    to      = t_end_address(&ends[1]);
    to.rkey = mr->rkey;
    ck_assert_int_eq(t_post_rdma(&ends[0], IBV_WR_RDMA_WRITE, 9, 0, 8, &to, 0),
                     0);
    t_poll_is(ends[0].send_cq, 9, IBV_WC_SUCCESS);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    check_write_denied(ends, &to);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_misaligned_atomic)
{
    struct t_address to;
    struct t_end ends[2];

    t_pair_open(ends, NULL, NULL);
    to = t_end_address(&ends[1]);
    ck_assert_int_eq(t_post_recv(&ends[1], 4, 64, 64), 0);
    if (t_differs(T_DIFF_MISALIGNED)) {
        ck_assert_int_eq(t_post_atomic(&ends[0], IBV_WR_ATOMIC_FETCH_AND_ADD, 1,
                                       0, &to, 4, 1, 0), EINVAL);
    } else {
        ck_assert_int_eq(t_post_atomic(&ends[0], IBV_WR_ATOMIC_FETCH_AND_ADD, 1,
                                       0, &to, 4, 1, 0), 0);
        t_poll_is(ends[0].send_cq, 1, IBV_WC_REM_INV_REQ_ERR);
        ck_assert_int_eq(t_end_state(&ends[0]), IBV_QPS_ERR);
        t_poll_is(ends[1].recv_cq, 4, IBV_WC_WR_FLUSH_ERR);
        ck_assert_int_eq(t_end_state(&ends[1]), IBV_QPS_ERR);
    }
    ck_assert_uint_eq(*word(&ends[1], 0), 0);
    ck_assert_uint_eq(*word(&ends[1], 8), 0);
    t_pair_close(ends);
}
END_TEST

/* What an atomic fetches is 8 bytes. */
START_TEST(test_atomic_of_other_length)
{
    struct ibv_sge sge    = {.length = _i ? 16 : 4};
    struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1,
                             .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
    struct ibv_send_wr *bad;
    struct t_address to;
    struct t_end ends[2];

    t_softverbs_only("its driver refuses to post such, or takes them");
    t_pair_open(ends, NULL, NULL);
    to                       = t_end_address(&ends[1]);
    sge.addr                 = (uintptr_t)ends[0].buf;
    sge.lkey                 = ends[0].mr->lkey;
    wr.wr.atomic.remote_addr = to.buf;
    wr.wr.atomic.rkey        = to.rkey;
    wr.wr.atomic.compare_add = 1;
    ck_assert_int_eq(ibv_post_send(ends[0].qp, &wr, &bad), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_LOC_LEN_ERR);
    ck_assert_int_eq(t_end_state(&ends[0]), IBV_QPS_ERR);
    ck_assert_uint_eq(*word(&ends[1], 0), 0);
    t_pair_close(ends);
}
END_TEST

/* No bytes, no key: this is how programs ask whether a peer is alive. */
START_TEST(test_empty_write_needs_no_key)
{
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    struct t_end ends[2];

    t_pair_open(ends, NULL, NULL);
    ck_assert_int_eq(ibv_post_send(ends[0].qp, &wr, &bad), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    t_pair_close(ends);
}
END_TEST

/* Addresses count from what was said at registration. */
START_TEST(test_iova)
{
    const uint64_t iova = 0x10000;
    struct t_address to;
    struct t_end ends[2];
    struct ibv_sge sge;
    struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    struct ibv_mr *mr[2];
    int i;

    t_pair_open(ends, NULL, NULL);
    for (i = 0; i < 2; ++i) {
        mr[i] = ibv_reg_mr_iova(ends[i].pd, ends[i].buf + 4096, 8192, iova,
                                T_ACCESS_ALL);
        ck_assert_ptr_nonnull(mr[i]);
    }
    to = t_end_address(&ends[1]);
    (void)to;
    fill(ends[0].buf, 16384, 1);
    sge = (struct ibv_sge){iova + 10, 1000, mr[0]->lkey};
    wr.wr.rdma.remote_addr = iova + 20;
    wr.wr.rdma.rkey        = mr[1]->rkey;
    ck_assert_int_eq(ibv_post_send(ends[0].qp, &wr, &bad), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    ck_assert_mem_eq(ends[1].buf + 4096 + 20, ends[0].buf + 4096 + 10, 1000);

    wr.opcode = IBV_WR_SEND;
    ck_assert_int_eq(t_post_recv(&ends[1], 2, 30000, 1000), 0);
    ck_assert_int_eq(ibv_post_send(ends[0].qp, &wr, &bad), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    t_poll_is(ends[1].recv_cq, 2, IBV_WC_SUCCESS);
    ck_assert_mem_eq(ends[1].buf + 30000, ends[0].buf + 4096 + 10, 1000);
    for (i = 0; i < 2; ++i) {
        ck_assert_int_eq(ibv_dereg_mr(mr[i]), 0);
    }
    t_pair_close(ends);
}
END_TEST

static Suite *suite_rdma(void)
{
    Suite *suite = t_suite("rdma",
                           "data", test_write_read,
                           "data", test_write_with_imm,
                           "data", test_atomics,
                           "data", test_iova,
                           "data", test_empty_write_needs_no_key,
                           "order", test_send_follows_write,
                           "order", test_write_waits_for_send,
                           "denied", test_other_pd,
                           "denied", test_deregistered,
                           "denied", test_misaligned_atomic,
                           NULL);
    TCase *tcase = tcase_create("denials");

    tcase_set_timeout(tcase, T_TIMEOUT);
    tcase_add_loop_test(tcase, test_denials, 0,
                        sizeof(denials) / sizeof(*denials));
    tcase_add_loop_test(tcase, test_qp_denials, 0,
                        sizeof(qp_denials) / sizeof(*qp_denials));
    tcase_add_loop_test(tcase, test_atomic_of_other_length, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite;
}

T_MAIN(suite_rdma)
