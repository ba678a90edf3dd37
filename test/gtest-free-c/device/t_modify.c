/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * States of a QP: every pair of states, legal or not; every attribute missing,
 * one too many, out of range; what was set is what is told.
 */
#include "t_device.h"

#include <errno.h>
#include <string.h>

enum { STATES = IBV_QPS_ERR + 1 };

#define RC_INIT (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RC_RTR                                                        \
    (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |  \
     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RC_RTS                                                        \
    (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |           \
     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)

/* Attributes that are right for every change of state. */
static struct ibv_qp_attr good_attr(struct t_end *end)
{
    struct t_address own    = t_end_address(end);
    struct ibv_qp_attr attr = {
        .port_num           = 1,
        .qkey               = T_QKEY,
        .qp_access_flags    = T_ACCESS_REMOTE,
        .path_mtu           = IBV_MTU_1024,
        .dest_qp_num        = own.qpn,
        .rq_psn             = 17,
        .sq_psn             = 18,
        .max_dest_rd_atomic = 3,
        .max_rd_atomic      = 2,
        .min_rnr_timer      = 12,
        .timeout            = 14,
        .retry_cnt          = 5,
        .rnr_retry          = 4,
        .ah_attr            = {.dlid = own.lid, .port_num = 1, .sl = 0}
    };
    struct ibv_port_attr port;

    ck_assert_int_eq(ibv_query_port(end->context, 1, &port), 0);
    if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
        attr.ah_attr.is_global     = 1;
        attr.ah_attr.grh.dgid      = own.gid;
        attr.ah_attr.grh.hop_limit = 1;
    }
    return attr;
}

/* Mask that a change of state needs; -1: no such change. */
static int needed(enum ibv_qp_type type, int from, int to)
{
    bool rc = (type == IBV_QPT_RC);

    if ((to == IBV_QPS_RESET) ||
        ((to == IBV_QPS_ERR) && (from != IBV_QPS_RESET))) {
        return 0;
    }

    switch (from * STATES + to) {
    case IBV_QPS_RESET * STATES + IBV_QPS_INIT:
        return rc ? RC_INIT : IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    case IBV_QPS_INIT * STATES + IBV_QPS_RTR:
        return rc ? RC_RTR : 0;
    case IBV_QPS_RTR * STATES + IBV_QPS_RTS:
        return rc ? RC_RTS : IBV_QP_SQ_PSN;
    case IBV_QPS_INIT * STATES + IBV_QPS_INIT:
    case IBV_QPS_RTS * STATES + IBV_QPS_RTS:
    case IBV_QPS_RTS * STATES + IBV_QPS_SQD:
    case IBV_QPS_SQD * STATES + IBV_QPS_SQD:
    case IBV_QPS_SQD * STATES + IBV_QPS_RTS:
        return 0;
    default:
        return -1;
    }
}

static int change(struct t_end *end, int to, int mask)
{
    struct ibv_qp_attr attr = good_attr(end);
    int ret;

    attr.qp_state = to;
    ret           = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | mask);
    if ((ret == 0) && (to == IBV_QPS_SQD)) {
        t_end_drain(end);
    }
    return ret;
}

/* Brings a QP into a state by the straight way, from wherever it is. */
static void bring(struct t_end *end, int state)
{
    static const int way[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                              IBV_QPS_SQD};
    enum ibv_qp_type type  = end->make.type;
    int from               = IBV_QPS_RESET;
    unsigned i;

    ck_assert_int_eq(change(end, IBV_QPS_RESET, 0), 0);
    if (state == IBV_QPS_RESET) {
        return;
    }
    for (i = 0; from != state; ++i) {
        if ((state == IBV_QPS_ERR) && (from == IBV_QPS_INIT)) {
            ck_assert_int_eq(change(end, IBV_QPS_ERR, 0), 0);
            return;
        }
        ck_assert_int_eq(change(end, way[i], needed(type, from, way[i])), 0);
        from = way[i];
    }
}

static void check_all_pairs(enum ibv_qp_type type)
{
    const struct t_make make = {.type = type};
    struct t_end end;
    int from, to, mask;

    t_end_open(&end, &make);
    for (from = IBV_QPS_RESET; from < STATES; ++from) {
        if (from == IBV_QPS_SQE) {
            continue; /* only a failed send leads there */
        }
        for (to = IBV_QPS_RESET; to < STATES; ++to) {
            bring(&end, from);
            mask = needed(type, from, to);
            if (mask >= 0) {
                ck_assert_msg(change(&end, to, mask) == 0, "%d to %d", from,
                              to);
                ck_assert_int_eq(t_end_state(&end), to);
            } else {
                ck_assert_msg(change(&end, to, 0) != 0, "%d to %d", from, to);
                ck_assert_int_eq(t_end_state(&end), from);
            }
        }
    }
    t_end_close(&end);
}

START_TEST(test_pairs_rc)
{
    check_all_pairs(IBV_QPT_RC);
}
END_TEST

START_TEST(test_pairs_ud)
{
    check_all_pairs(IBV_QPT_UD);
}
END_TEST

static void check_each_is_needed(enum ibv_qp_type type)
{
    static const int way[]   = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
                                IBV_QPS_RTS};
    const struct t_make make = {.type = type};
    struct t_end end;
    int i, bit, mask;

    t_end_open(&end, &make);
    for (i = 0; i < 3; ++i) {
        mask = needed(type, way[i], way[i + 1]);
        for (bit = 1; bit <= mask; bit <<= 1) {
            if ((mask & bit) == 0) {
                continue;
            }
            bring(&end, way[i]);
            ck_assert_msg(change(&end, way[i + 1], mask & ~bit) == EINVAL,
                          "%d to %d without %#x", way[i], way[i + 1], bit);
            ck_assert_int_eq(t_end_state(&end), way[i]);
        }
    }
    t_end_close(&end);
}

START_TEST(test_missing_rc)
{
    check_each_is_needed(IBV_QPT_RC);
}
END_TEST

START_TEST(test_missing_ud)
{
    check_each_is_needed(IBV_QPT_UD);
}
END_TEST

START_TEST(test_too_many)
{
    struct t_end end;

    t_end_open(&end, NULL);
    ck_assert_int_eq(change(&end, IBV_QPS_INIT, RC_INIT | IBV_QP_TIMEOUT),
                     EINVAL);
    ck_assert_int_eq(change(&end, IBV_QPS_INIT, RC_INIT | IBV_QP_QKEY),
                     EINVAL);
    bring(&end, IBV_QPS_INIT);
    ck_assert_int_eq(change(&end, IBV_QPS_RTR, RC_RTR | IBV_QP_SQ_PSN),
                     EINVAL);
    bring(&end, IBV_QPS_RTR);
    ck_assert_int_eq(change(&end, IBV_QPS_RTS, RC_RTS | IBV_QP_DEST_QPN),
                     EINVAL);
    t_end_close(&end);
}
END_TEST

START_TEST(test_current_state)
{
    struct ibv_qp_attr attr;
    struct t_end end;

    t_end_open(&end, NULL);
    bring(&end, IBV_QPS_RTR);
    attr              = good_attr(&end);
    attr.qp_state     = IBV_QPS_RTS;
    attr.cur_qp_state = IBV_QPS_RTS;
    ck_assert_int_eq(ibv_modify_qp(end.qp, &attr,
                                   IBV_QP_STATE | IBV_QP_CUR_STATE | RC_RTS),
                     EINVAL);
    attr.cur_qp_state = IBV_QPS_RTR;
    ck_assert_int_eq(ibv_modify_qp(end.qp, &attr,
                                   IBV_QP_STATE | IBV_QP_CUR_STATE | RC_RTS),
                     0);
    t_end_close(&end);
}
END_TEST

START_TEST(test_ranges)
{
    struct ibv_qp_attr attr;
    struct t_end end;

    t_end_open(&end, NULL);
    attr          = good_attr(&end);
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 200;
    ck_assert_int_eq(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE | RC_INIT),
                     EINVAL);
    attr            = good_attr(&end);
    attr.qp_state   = IBV_QPS_INIT;
    attr.pkey_index = 30000;
    ck_assert_int_eq(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE | RC_INIT),
                     t_differs(T_DIFF_RANGES) ? 0 : EINVAL);

    bring(&end, IBV_QPS_INIT);
    attr                    = good_attr(&end);
    attr.qp_state           = IBV_QPS_RTR;
    attr.max_dest_rd_atomic = 255;
    ck_assert_int_eq(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE | RC_RTR),
                     t_differs(T_DIFF_RANGES) ? 0 : EINVAL);

    bring(&end, IBV_QPS_RTR);
    attr               = good_attr(&end);
    attr.qp_state      = IBV_QPS_RTS;
    attr.max_rd_atomic = 255;
    ck_assert_int_eq(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE | RC_RTS),
                     EINVAL);
    t_end_close(&end);
}
END_TEST

START_TEST(test_told_as_set_rc)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr, got;
    struct t_end end;

    t_end_open(&end, NULL);
    bring(&end, IBV_QPS_RTS);
    attr = good_attr(&end);
    ck_assert_int_eq(ibv_query_qp(end.qp, &got,
                                  IBV_QP_STATE | RC_INIT | RC_RTR | RC_RTS,
                                  &init), 0);
    ck_assert_int_eq(got.qp_state, IBV_QPS_RTS);
    ck_assert_int_eq(got.port_num, 1);
    ck_assert_int_eq(got.pkey_index, 0);
    ck_assert_int_eq(got.qp_access_flags & T_ACCESS_REMOTE, T_ACCESS_REMOTE);
    ck_assert_int_eq(got.path_mtu, attr.path_mtu);
    ck_assert_uint_eq(got.dest_qp_num, attr.dest_qp_num);
    ck_assert_uint_eq(got.rq_psn, attr.rq_psn);
    ck_assert_uint_eq(got.sq_psn, attr.sq_psn);
    ck_assert_uint_ge(got.max_dest_rd_atomic, attr.max_dest_rd_atomic);
    ck_assert_uint_ge(got.max_rd_atomic, attr.max_rd_atomic);
    ck_assert_uint_eq(got.min_rnr_timer, attr.min_rnr_timer);
    ck_assert_uint_eq(got.timeout, attr.timeout);
    ck_assert_uint_eq(got.retry_cnt, attr.retry_cnt);
    ck_assert_uint_eq(got.rnr_retry, attr.rnr_retry);
    ck_assert_int_eq(got.ah_attr.port_num, 1);

    /* what may be changed in RTS is changed, and nothing else */
    attr.min_rnr_timer = 20;
    attr.timeout       = 20;
    ck_assert_int_eq(ibv_modify_qp(end.qp, &attr, IBV_QP_MIN_RNR_TIMER), 0);
    ck_assert_int_eq(ibv_modify_qp(end.qp, &attr, IBV_QP_TIMEOUT), EINVAL);
    ck_assert_int_eq(ibv_query_qp(end.qp, &got, IBV_QP_STATE, &init), 0);
    ck_assert_uint_eq(got.min_rnr_timer, 20);
    ck_assert_uint_eq(got.timeout, 14);
    t_end_close(&end);
}
END_TEST

START_TEST(test_told_as_set_ud)
{
    const struct t_make make = {.type = IBV_QPT_UD};
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr got;
    struct t_end end;

    t_end_open(&end, &make);
    bring(&end, IBV_QPS_RTS);
    ck_assert_int_eq(ibv_query_qp(end.qp, &got,
                                  IBV_QP_STATE | IBV_QP_QKEY | IBV_QP_SQ_PSN,
                                  &init), 0);
    ck_assert_int_eq(got.qp_state, IBV_QPS_RTS);
    ck_assert_uint_eq(got.qkey, T_QKEY);
    ck_assert_uint_eq(got.sq_psn, 18);
    t_end_close(&end);
}
END_TEST

/* A pair that was reset can be connected again, and works. */
START_TEST(test_up_again)
{
    struct t_address address[2];
    struct t_end ends[2];
    int i, round;

    t_pair_open(ends, NULL, NULL);
    for (round = 0; round < 5; ++round) {
        t_check_link(&ends[0], &ends[1]);
        t_check_link(&ends[1], &ends[0]);
        /* left unfinished on purpose: reset forgets it */
        ck_assert_int_eq(t_post_recv(&ends[1], 5, 0, 64), 0);
        for (i = 0; i < 2; ++i) {
            t_end_move(&ends[i], (round % 2) ? IBV_QPS_ERR : IBV_QPS_RESET);
            t_end_move(&ends[i], IBV_QPS_RESET);
            address[i] = t_end_address(&ends[i]);
        }
        while (ibv_poll_cq(ends[1].recv_cq, 1, &(struct ibv_wc){0}) > 0) {
        }
        for (i = 0; i < 2; ++i) {
            t_end_up(&ends[i], &address[1 - i], NULL);
        }
    }
    t_check_link(&ends[0], &ends[1]);
    t_pair_close(ends);
}
END_TEST

static Suite *suite_modify(void)
{
    return t_suite("modify",
                   "pairs", test_pairs_rc,
                   "pairs", test_pairs_ud,
                   "attributes", test_missing_rc,
                   "attributes", test_missing_ud,
                   "attributes", test_too_many,
                   "attributes", test_current_state,
                   "attributes", test_ranges,
                   "query", test_told_as_set_rc,
                   "query", test_told_as_set_ud,
                   "again", test_up_again,
                   NULL);
}

T_MAIN(suite_modify)
