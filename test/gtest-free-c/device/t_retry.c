/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a sender does when nobody answers or nobody is ready: timers and counts
 * are those that were set. Times are checked from below only: a device may be
 * slower than it was told, never quicker.
 */
#include "t_device.h"

#include <string.h>

/* Codes of the RNR timer: 0.64 ms, and 40.96 ms, of which half is seen to be
 * too little on a busy machine, too. */
enum { RNR_640_US = 12, RNR_40960_US = 24 };

static void pair_open(struct t_end ends[2], uint8_t rnr_retry, uint8_t min_rnr)
{
    const struct t_link link = {.timeout = 14, .retry_cnt = 6,
                                .rnr_retry = rnr_retry, .min_rnr = min_rnr};

    t_pair_open(ends, NULL, &link);
}

/* ---- receiver not ready ---- */

START_TEST(test_rnr_at_once)
{
    struct t_end ends[2];

    pair_open(ends, 0, RNR_640_US);
    ck_assert_int_eq(t_post_send(&ends[0], 1, 0, 8, 0), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 2, 0, 8, 0), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_WR_FLUSH_ERR);
    ck_assert_int_eq(t_end_state(&ends[0]), IBV_QPS_ERR);
    /* it is no fault of the receiver's */
    ck_assert_int_eq(t_end_state(&ends[1]), IBV_QPS_RTS);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_rnr_counts)
{
    struct t_end ends[2];
    uint64_t start;

    pair_open(ends, 3, RNR_40960_US);
    start = t_now_ns();
    ck_assert_int_eq(t_post_send(&ends[0], 1, 0, 8, 0), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
    ck_assert_uint_ge(t_now_ns() - start, 3 * 40960000ull);
    t_pair_close(ends);
}
END_TEST

/* How often this end's device has heard that a receiver is not ready. 0 where it
 * does not tell, as softverbs, which hears it while a request is posted. */
static unsigned rnr_heard(const struct t_end *end)
{
    unsigned count = 0;
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/ports/1/hw_counters/rcvd_rnr_err",
             end->context->device->ibdev_path);
    file = fopen(path, "r");
    if (file != NULL) {
        ck_assert_int_eq(fscanf(file, "%u", &count), 1);
        fclose(file);
    }
    return count;
}

/* The wait that has begun is waited to its end. */
START_TEST(test_rnr_then_ready)
{
    struct t_end ends[2];
    unsigned heard;
    uint64_t start;

    pair_open(ends, 1, RNR_40960_US);
    heard = rnr_heard(&ends[0]);
    start = t_now_ns();
    ck_assert_int_eq(t_post_send(&ends[0], 1, 0, 8, IBV_SEND_SIGNALED), 0);
    /* from 6.12 on Soft-RoCE sends when it comes to it, not in the post */
    while (t_is_softroce() && (rnr_heard(&ends[0]) == heard)) {
        sched_yield();
    }
    ck_assert_int_eq(t_post_recv(&ends[1], 2, 0, 8), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    ck_assert_uint_ge(t_now_ns() - start, 40960000);
    t_poll_is(ends[1].recv_cq, 2, IBV_WC_SUCCESS);
    t_check_link(&ends[0], &ends[1]);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_rnr_srq)
{
    const struct t_make make = {.srq = true};
    const struct t_link link = {.rnr_retry = 0};
    struct t_end ends[2];

    t_pair_open(ends, &make, &link);
    t_check_link(&ends[0], &ends[1]);
    ck_assert_int_eq(t_post_send(&ends[0], 1, 0, 8, 0), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
    t_pair_close(ends);
}
END_TEST

/* A WRITE needs no RECV; with immediate data it does. */
START_TEST(test_rnr_of_write)
{
    struct t_address to;
    struct t_end ends[2];

    pair_open(ends, 0, RNR_640_US);
    to = t_end_address(&ends[1]);
    ck_assert_int_eq(t_post_rdma(&ends[0], IBV_WR_RDMA_WRITE, 1, 0, 8, &to, 0),
                     0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    ck_assert_int_eq(t_post_rdma(&ends[0], IBV_WR_RDMA_WRITE_WITH_IMM, 2, 0, 8,
                                 &to, 0), 0);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_RNR_RETRY_EXC_ERR);
    t_pair_close(ends);
}
END_TEST

/* The ACK timer does not run while a receiver says that it is not ready. */
START_TEST(test_rnr_is_an_answer)
{
    const struct t_link link = {.timeout = 10, .retry_cnt = 1, .rnr_retry = 7,
                                .min_rnr = RNR_640_US};
    const uint64_t silence   = 2 * (4096ull << t_timeout(link.timeout));
    struct t_end ends[2];
    uint64_t start;
    int i;

    t_pair_open(ends, NULL, &link);
    ck_assert_int_eq(t_post_send(&ends[0], 1, 0, 8, IBV_SEND_SIGNALED), 0);
    if (t_differs(T_DIFF_RNR_TIMER)) {
        t_poll_is(ends[0].send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    } else {
        /* more tries than any count but "for ever": the last poll of each
         * turn comes after the wait, however late the others are */
        for (i = 0; i < 12; ++i) {
            start = t_now_ns();
            while (t_now_ns() - start < silence / 4) {
                t_poll_none(ends[0].send_cq);
            }
            t_poll_none(ends[0].send_cq);
        }
        ck_assert_int_eq(t_post_recv(&ends[1], 2, 0, 8), 0);
        t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    }
    t_pair_close(ends);
}
END_TEST

/* As many messages as RECVs, and the next is not ready. */
START_TEST(test_rnr_exact)
{
    struct t_end ends[2];
    int i;

    pair_open(ends, 0, RNR_640_US);
    for (i = 0; i < 5; ++i) {
        ck_assert_int_eq(t_post_recv(&ends[1], i, 0, 8), 0);
    }
    for (i = 0; i < 6; ++i) {
        ck_assert_int_eq(t_post_send(&ends[0], i, 0, 8, IBV_SEND_SIGNALED), 0);
    }
    for (i = 0; i < 5; ++i) {
        t_poll_is(ends[0].send_cq, i, IBV_WC_SUCCESS);
        t_poll_is(ends[1].recv_cq, i, IBV_WC_SUCCESS);
    }
    t_poll_is(ends[0].send_cq, 5, IBV_WC_RNR_RETRY_EXC_ERR);
    t_pair_close(ends);
}
END_TEST

/* ---- nobody answers ---- */

/* 4.096 us << code, retry_cnt + 1 times. Timers that count the kernel's ticks,
 * of 4 ms, may each miss a part of one. */
static uint64_t silence_ns(const struct t_link *link)
{
    const uint64_t tick = t_differs(T_DIFF_JIFFIES) ? 4000000 : 0;

    return ((4096ull << t_timeout(link->timeout)) - tick) *
           (link->retry_cnt + 1);
}

/* 100 ms in all: on a busy machine, too, half of that is seen to be too little. */
static const struct t_link impatient = {.timeout = 13, .retry_cnt = 2};

/* Posts on ends[0] and asserts that it gives up in no less than its time. */
static void check_gives_up(struct t_end *end, const struct t_link *link)
{
    uint64_t start = t_now_ns();

    ck_assert_int_eq(t_post_send(end, 1, 0, 8, 0), 0);
    ck_assert_int_eq(t_post_send(end, 2, 0, 8, 0), 0);
    t_poll_is(end->send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    ck_assert_uint_ge(t_now_ns() - start, silence_ns(link));
    t_poll_is(end->send_cq, 2, IBV_WC_WR_FLUSH_ERR);
    ck_assert_int_eq(t_end_state(end), IBV_QPS_ERR);
}

START_TEST(test_peer_in_err)
{
    struct t_end ends[2];

    t_pair_open(ends, NULL, &impatient);
    t_check_link(&ends[0], &ends[1]);
    t_end_move(&ends[1], IBV_QPS_ERR);
    check_gives_up(&ends[0], &impatient);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_peer_destroyed)
{
    struct t_end ends[2];

    t_pair_open(ends, NULL, &impatient);
    t_check_link(&ends[0], &ends[1]);
    ck_assert_int_eq(ibv_destroy_qp(ends[1].qp), 0);
    ends[1].qp = NULL;
    check_gives_up(&ends[0], &impatient);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_peer_closed)
{
    struct t_end ends[2];

    t_pair_open(ends, NULL, &impatient);
    t_end_close(&ends[1]);
    check_gives_up(&ends[0], &impatient);
    t_end_close(&ends[0]);
}
END_TEST

/* Keep-alive: an empty WRITE fails when nobody is there. */
START_TEST(test_empty_write_to_nobody)
{
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    struct t_end ends[2];

    t_pair_open(ends, NULL, &impatient);
    t_check_link(&ends[0], &ends[1]);
    t_end_move(&ends[1], IBV_QPS_ERR);
    ck_assert_int_eq(ibv_post_send(ends[0].qp, &wr, &bad), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    t_pair_close(ends);
}
END_TEST

/* ends[1] does not listen to ends[0] but to somebody else. A packet does not
 * name the QP that it comes from, so that a receiver on the same host may take
 * it; but it answers whom it listens to. */
START_TEST(test_wrong_qpn)
{
    struct t_address address[2], nobody;
    struct t_end ends[2];

    t_end_open(&ends[0], NULL);
    t_end_open(&ends[1], NULL);
    address[0]  = t_end_address(&ends[0]);
    address[1]  = t_end_address(&ends[1]);
    nobody      = address[0];
    nobody.qpn ^= 1;
    t_end_up(&ends[0], &address[1], &impatient);
    t_end_up(&ends[1], &nobody, &impatient);
    ck_assert_int_eq(t_post_recv(&ends[1], 9, 0, 64), 0);
    check_gives_up(&ends[0], &impatient);
    if (t_differs(T_DIFF_SENDER)) {
        t_poll_is(ends[1].recv_cq, 9, IBV_WC_SUCCESS);
    }
    t_poll_none(ends[1].recv_cq);
    t_pair_close(ends);
}
END_TEST

/* Half the PSN space away, so that it cannot pass for an old packet, which
 * would be acknowledged. */
START_TEST(test_wrong_psn)
{
    struct t_link wrong = impatient;
    struct t_address address[2];
    struct t_end ends[2];

    wrong.psn_error = 0x7fffff;
    t_end_open(&ends[0], NULL);
    t_end_open(&ends[1], NULL);
    address[0] = t_end_address(&ends[0]);
    address[1] = t_end_address(&ends[1]);
    t_end_up(&ends[0], &address[1], &impatient);
    t_end_up(&ends[1], &address[0], &wrong);
    ck_assert_int_eq(t_post_recv(&ends[1], 9, 0, 64), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 1, 0, 8, 0), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    t_poll_none(ends[1].recv_cq);
    t_pair_close(ends);
}
END_TEST

/* In another subnet, or at another LID, is somebody else, if anybody, whatever
 * his QP number is. */
static void check_elsewhere(bool is_routed)
{
    struct t_address address[2];
    struct t_end ends[2];

    t_end_open(&ends[0], NULL);
    t_end_open(&ends[1], NULL);
    address[0]           = t_end_address(&ends[0]);
    address[0].is_routed = is_routed;
    address[1] = t_address_elsewhere(&ends[0], t_end_address(&ends[1]),
                                     is_routed);
    t_end_up(&ends[0], &address[1], &impatient);
    t_end_up(&ends[1], &address[0], &impatient);
    ck_assert_int_eq(t_post_recv(&ends[1], 9, 0, 64), 0);
    check_gives_up(&ends[0], &impatient);
    t_poll_none(ends[1].recv_cq);
    t_pair_close(ends);
}

START_TEST(test_other_lid)
{
    check_elsewhere(false);
}
END_TEST

START_TEST(test_other_subnet)
{
    check_elsewhere(true);
}
END_TEST

/* The receiver is late, but not too late: nothing is lost. */
START_TEST(test_peer_becomes_ready)
{
    const struct t_link link = {.timeout = 14, .retry_cnt = 6};
    struct t_address address[2];
    struct t_end ends[2];

    t_end_open(&ends[0], NULL);
    t_end_open(&ends[1], NULL);
    address[0] = t_end_address(&ends[0]);
    address[1] = t_end_address(&ends[1]);
    t_end_init(&ends[1], NULL);
    t_end_up(&ends[0], &address[1], &link);
    memset(ends[0].buf, 0x44, 64);
    ck_assert_int_eq(t_post_recv(&ends[1], 2, 0, 64), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 1, 0, 64, IBV_SEND_SIGNALED), 0);
    t_poll_none(ends[0].send_cq);
    t_poll_none(ends[1].recv_cq);
    t_end_rtr(&ends[1], &address[0], &link);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    t_poll_is(ends[1].recv_cq, 2, IBV_WC_SUCCESS);
    ck_assert_uint_eq(ends[1].buf[63], 0x44);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_peer_never_ready)
{
    struct t_address address[2];
    struct t_end ends[2];

    t_end_open(&ends[0], NULL);
    t_end_open(&ends[1], NULL);
    address[0] = t_end_address(&ends[0]);
    address[1] = t_end_address(&ends[1]);
    t_end_init(&ends[1], NULL);
    t_end_up(&ends[0], &address[1], &impatient);
    check_gives_up(&ends[0], &impatient);
    t_pair_close(ends);
}
END_TEST

static Suite *suite_retry(void)
{
    return t_suite("retry",
                   "rnr", test_rnr_at_once,
                   "rnr", test_rnr_counts,
                   "rnr", test_rnr_then_ready,
                   "rnr", test_rnr_srq,
                   "rnr", test_rnr_of_write,
                   "rnr", test_rnr_is_an_answer,
                   "rnr", test_rnr_exact,
                   "silence", test_peer_in_err,
                   "silence", test_peer_destroyed,
                   "silence", test_peer_closed,
                   "silence", test_empty_write_to_nobody,
                   "silence", test_wrong_qpn,
                   "silence", test_wrong_psn,
                   "silence", test_other_lid,
                   "silence", test_other_subnet,
                   "silence", test_peer_becomes_ready,
                   "silence", test_peer_never_ready,
                   NULL);
}

T_MAIN(suite_retry)
