/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults on purpose that a request meets: every kind happens, where the plan
 * says and nowhere else, and leaves behind what the real fault would.
 */
#include "t_fault.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Message `id` arrives in the RECV `wr_id`. */
static void arrives(struct t_end *end, uint64_t wr_id, uint8_t id)
{
    size_t at = T_FAULT_RECVS + T_FAULT_RECV * wr_id;

    if (end->make.type == IBV_QPT_UD) {
        at += 40;
    }
    t_poll_is(end->recv_cq, wr_id, IBV_WC_SUCCESS);
    ck_assert_uint_eq(end->buf[at], id);
    ck_assert_uint_eq(end->buf[at + 63], id);
}

static void flushed(struct ibv_cq *cq, uint64_t wr_id)
{
    t_poll_is(cq, wr_id, IBV_WC_WR_FLUSH_ERR);
}

/* ---- post ---- */

enum { CHAIN = 5 };

static void make_chain(struct t_end *end, struct ibv_send_wr wr[CHAIN],
                       struct ibv_sge sge[CHAIN])
{
    int i;

    memset(wr, 0, CHAIN * sizeof(*wr));
    for (i = 0; i < CHAIN; ++i) {
        memset(end->buf + 64 * i, i, 64);
        sge[i] = (struct ibv_sge){(uintptr_t)end->buf + 64 * i, 64,
                                  end->mr->lkey};
        wr[i].wr_id      = i;
        wr[i].sg_list    = &sge[i];
        wr[i].num_sge    = 1;
        wr[i].opcode     = IBV_WR_SEND;
        wr[i].send_flags = IBV_SEND_SIGNALED;
        wr[i].next       = (i + 1 < CHAIN) ? &wr[i + 1] : NULL;
    }
}

/* In the second chain, position k is refused: what is before it is posted, the
 * rest is not, and can be posted again. */
START_TEST(test_post)
{
    struct ibv_send_wr wr[CHAIN], *bad = NULL;
    struct ibv_sge sge[CHAIN];
    struct t_end ends[2];
    char plan[64];
    int k = _i;
    int i;

    snprintf(plan, sizeof(plan), "post position=%d errno=EAGAIN n=2", k);
    t_fault_pair(ends, plan, 2 * CHAIN);
    make_chain(&ends[0], wr, sge);
    ck_assert_int_eq(ibv_post_send(ends[0].qp, wr, &bad), 0);
    ck_assert_ptr_null(bad);
    for (i = 0; i < CHAIN; ++i) {
        t_poll_is(ends[0].send_cq, i, IBV_WC_SUCCESS);
        arrives(&ends[1], i, i);
    }

    ck_assert_int_eq(ibv_post_send(ends[0].qp, wr, &bad), EAGAIN);
    ck_assert_ptr_eq(bad, &wr[k]);
    for (i = 0; i < k; ++i) {
        t_poll_is(ends[0].send_cq, i, IBV_WC_SUCCESS);
        arrives(&ends[1], CHAIN + i, i);
    }
    t_poll_none(ends[0].send_cq);
    t_poll_none(ends[1].recv_cq);
    ck_assert_int_eq(t_end_state(&ends[0]), IBV_QPS_RTS);

    ck_assert_int_eq(ibv_post_send(ends[0].qp, bad, &bad), 0);
    for (i = k; i < CHAIN; ++i) {
        t_poll_is(ends[0].send_cq, i, IBV_WC_SUCCESS);
        arrives(&ends[1], CHAIN + i, i);
    }
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

/* A chain that has no such position is no opportunity. */
START_TEST(test_post_short)
{
    struct ibv_send_wr wr[CHAIN], *bad = NULL;
    struct ibv_sge sge[CHAIN];
    struct t_end ends[2];
    int i;

    t_fault_pair(ends, "post position=1 n=1", 8);
    for (i = 0; i < 4; ++i) {
        ck_assert_int_eq(t_fault_send(ends, i), 0);
        t_poll_is(ends[0].send_cq, i, IBV_WC_SUCCESS);
    }
    make_chain(&ends[0], wr, sge);
    ck_assert_int_eq(ibv_post_send(ends[0].qp, wr, &bad), ENOMEM);
    ck_assert_ptr_eq(bad, &wr[1]);
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

/* The device's own refusal comes first if its position does. */
START_TEST(test_post_and_full)
{
    struct ibv_send_wr wr[CHAIN], *bad = NULL;
    struct ibv_sge sge[CHAIN];
    struct t_end ends[2];

    t_fault_pair(ends, "post position=3 errno=EIO", 8);
    make_chain(&ends[0], wr, sge);
    wr[1].opcode = IBV_WR_BIND_MW;
    ck_assert_int_eq(ibv_post_send(ends[0].qp, wr, &bad), EINVAL);
    ck_assert_ptr_eq(bad, &wr[1]);
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

/* The same of RECVs: those that were taken are there, and so is, later, the one
 * that was not. Requests to send are no opportunity of this. */
START_TEST(test_post_recv)
{
    struct ibv_recv_wr wr[CHAIN], *bad = NULL;
    struct ibv_sge sge[CHAIN];
    struct t_end ends[2];
    char plan[64];
    int k = _i;
    int i;

    snprintf(plan, sizeof(plan), "post queue=recv position=%d errno=EAGAIN", k);
    t_fault_pair(ends, plan, 0);
    for (i = 0; i < CHAIN; ++i) {
        sge[i] = (struct ibv_sge){(uintptr_t)ends[1].buf + T_FAULT_RECVS +
                                          T_FAULT_RECV * i, T_FAULT_RECV,
                                  ends[1].mr->lkey};
        wr[i]  = (struct ibv_recv_wr){
            .wr_id   = i,
            .sg_list = &sge[i],
            .num_sge = 1,
            .next    = (i + 1 < CHAIN) ? &wr[i + 1] : NULL
        };
    }
    ck_assert_int_eq(ibv_post_recv(ends[1].qp, wr, &bad), EAGAIN);
    ck_assert_ptr_eq(bad, &wr[k]);
    ck_assert_uint_eq(t_fault_decisions(), 1);
    t_fault_set("post queue=recv position=4 n=2");
    ck_assert_int_eq(ibv_post_recv(ends[1].qp, bad, &bad), 0);
    for (i = 0; i < CHAIN; ++i) {
        ck_assert_int_eq(t_fault_send(ends, i), 0);
        t_poll_is(ends[0].send_cq, i, IBV_WC_SUCCESS);
        arrives(&ends[1], i, i);
    }
    t_pair_close(ends);
}
END_TEST

/* ---- verbs ---- */

static struct t_end *the_end;

static int call_query_device(void)
{
    struct ibv_device_attr attr;

    return ibv_query_device(the_end->context, &attr);
}

static int call_query_port(void)
{
    struct ibv_port_attr attr;

    return ibv_query_port(the_end->context, 1, &attr);
}

static int call_query_gid(void)
{
    union ibv_gid gid;

    return (ibv_query_gid(the_end->context, 1, 0, &gid) == 0) ? 0 : errno;
}

static int call_alloc_pd(void)
{
    struct ibv_pd *pd = ibv_alloc_pd(the_end->context);

    return (pd == NULL) ? errno : ibv_dealloc_pd(pd);
}

static int call_reg_mr(void)
{
    struct ibv_mr *mr = ibv_reg_mr(the_end->pd, the_end->buf, 64, 0);

    return (mr == NULL) ? errno : ibv_dereg_mr(mr);
}

static int call_create_ah(void)
{
    struct ibv_ah_attr attr = {.port_num = 1, .dlid = 1};
    struct ibv_ah *ah       = ibv_create_ah(the_end->pd, &attr);

    return (ah == NULL) ? errno : ibv_destroy_ah(ah);
}

static int call_create_comp_channel(void)
{
    struct ibv_comp_channel *channel;

    channel = ibv_create_comp_channel(the_end->context);
    return (channel == NULL) ? errno : ibv_destroy_comp_channel(channel);
}

static int call_create_cq(void)
{
    struct ibv_cq *cq = ibv_create_cq(the_end->context, 4, NULL, NULL, 0);

    return (cq == NULL) ? errno : ibv_destroy_cq(cq);
}

static int call_resize_cq(void)
{
    return ibv_resize_cq(the_end->send_cq, 32);
}

static int call_create_srq(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq           = ibv_create_srq(the_end->pd, &init);

    return (srq == NULL) ? errno : ibv_destroy_srq(srq);
}

static int call_modify_srq(void)
{
    struct ibv_srq_attr attr = {.srq_limit = 1};

    return ibv_modify_srq(the_end->srq, &attr, IBV_SRQ_LIMIT);
}

static int call_create_qp(void)
{
    struct ibv_qp_init_attr init = {
        .send_cq = the_end->send_cq, .recv_cq = the_end->recv_cq,
        .qp_type = IBV_QPT_RC,
        .cap     = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
                    .max_recv_sge = 1}
    };
    struct ibv_qp *qp = ibv_create_qp(the_end->pd, &init);

    return (qp == NULL) ? errno : ibv_destroy_qp(qp);
}

static int call_modify_qp(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

    return ibv_modify_qp(the_end->qp, &attr, IBV_QP_STATE);
}

static int call_query_qp(void)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    return ibv_query_qp(the_end->qp, &attr, IBV_QP_STATE, &init);
}

static int call_open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context;
    int saved;

    context = ibv_open_device(list[0]);
    saved   = errno;
    ibv_free_device_list(list);
    return (context == NULL) ? saved : ibv_close_device(context);
}

struct call {
    const char *name;
    int (*make)(void);
};

static const struct call calls[] = {
    {"open_device", call_open_device},
    {"query_device", call_query_device},
    {"query_port", call_query_port},
    {"query_gid", call_query_gid},
    {"alloc_pd", call_alloc_pd},
    {"reg_mr", call_reg_mr},
    {"create_ah", call_create_ah},
    {"create_comp_channel", call_create_comp_channel},
    {"create_cq", call_create_cq},
    {"resize_cq", call_resize_cq},
    {"create_srq", call_create_srq},
    {"modify_srq", call_modify_srq},
    {"create_qp", call_create_qp},
    {"modify_qp", call_modify_qp},
    {"query_qp", call_query_qp}
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

START_TEST(test_verb)
{
    struct t_make make = {.srq = true};
    struct t_end end;
    char plan[128];
    int i;

    snprintf(plan, sizeof(plan), "verb name=%s n=2; verb name=%s n=4 errno=EIO",
             calls[_i].name, calls[_i].name);
    t_fault_plan_idle();
    t_end_open(&end, &make);
    t_fault_set(plan);
    the_end = &end;
    for (i = 0; i < CALLS; ++i) {
        if (i != _i) {
            ck_assert_int_eq(calls[i].make(), 0);
        }
    }
    ck_assert_int_eq(calls[_i].make(), 0);
    ck_assert_int_eq(calls[_i].make(), ENOMEM);
    ck_assert_int_eq(calls[_i].make(), 0);
    ck_assert_int_eq(calls[_i].make(), EIO);
    ck_assert_int_eq(calls[_i].make(), 0);
    t_end_close(&end);
    ck_assert_uint_eq(t_fault_decisions(), 2);
}
END_TEST

/* The k-th call of whatever verb, for each k of a program that makes 40. */
START_TEST(test_verb_any)
{
    struct t_make make = {.srq = true};
    struct t_end end;
    char plan[64];
    int i, k;

    t_fault_plan_idle();
    t_end_open(&end, &make);
    the_end = &end;
    for (k = 1; k <= 40; ++k) {
        snprintf(plan, sizeof(plan), "verb name=any n=%d", k);
        t_fault_set(plan);
        for (i = 1; i <= 40; ++i) {
            ck_assert_int_eq(calls[i % CALLS].make(), (i == k) ? ENOMEM : 0);
        }
    }
    t_end_close(&end);
    ck_assert_uint_eq(t_fault_decisions(), 40);
}
END_TEST

/* ---- completions ---- */

struct status {
    const char         *name;
    enum ibv_wc_status  value;
};

#define STATUS(_name) {#_name, IBV_WC_##_name}

static const struct status statuses[] = {
    STATUS(LOC_LEN_ERR), STATUS(LOC_QP_OP_ERR), STATUS(LOC_EEC_OP_ERR),
    STATUS(LOC_PROT_ERR), STATUS(WR_FLUSH_ERR), STATUS(MW_BIND_ERR),
    STATUS(BAD_RESP_ERR), STATUS(LOC_ACCESS_ERR), STATUS(REM_INV_REQ_ERR),
    STATUS(REM_ACCESS_ERR), STATUS(REM_OP_ERR), STATUS(RETRY_EXC_ERR),
    STATUS(RNR_RETRY_EXC_ERR), STATUS(LOC_RDD_VIOL_ERR),
    STATUS(REM_INV_RD_REQ_ERR), STATUS(REM_ABORT_ERR), STATUS(INV_EECN_ERR),
    STATUS(INV_EEC_STATE_ERR), STATUS(FATAL_ERR), STATUS(RESP_TIMEOUT_ERR),
    STATUS(GENERAL_ERR)
};

enum { STATUSES = sizeof(statuses) / sizeof(statuses[0]) };

START_TEST(test_complete)
{
    struct t_end ends[2];
    char plan[64];
    int i;

    snprintf(plan, sizeof(plan), "complete qp=rc.0 status=%s n=3",
             statuses[_i].name);
    t_fault_pair(ends, plan, 4);
    ck_assert_int_eq(t_post_recv(&ends[0], 9, 0, 64), 0);
    for (i = 0; i < 4; ++i) {
        ck_assert_int_eq(t_fault_send(ends, i), 0);
    }
    for (i = 0; i < 2; ++i) {
        t_poll_is(ends[0].send_cq, i, IBV_WC_SUCCESS);
        arrives(&ends[1], i, i);
    }
    t_poll_is(ends[0].send_cq, 2, statuses[_i].value);
    flushed(ends[0].send_cq, 3);
    flushed(ends[0].recv_cq, 9);
    ck_assert_int_eq(t_end_state(&ends[0]), IBV_QPS_ERR);
    ck_assert_int_eq(t_end_state(&ends[1]), IBV_QPS_RTS);
    t_poll_none(ends[1].recv_cq);
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

/* Only READs are counted. */
START_TEST(test_complete_op)
{
    struct t_address to;
    struct t_end ends[2];

    t_fault_plan("complete op=read status=REM_OP_ERR n=2");
    t_pair_open(ends, NULL, NULL);
    to = t_end_address(&ends[1]);
    ck_assert_int_eq(t_post_rdma(&ends[0], IBV_WR_RDMA_READ, 1, 0, 8, &to, 0),
                     0);
    ck_assert_int_eq(t_post_rdma(&ends[0], IBV_WR_RDMA_WRITE, 2, 0, 8, &to, 0),
                     0);
    ck_assert_int_eq(t_post_rdma(&ends[0], IBV_WR_RDMA_READ, 3, 0, 8, &to, 0),
                     0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_SUCCESS);
    t_poll_is(ends[0].send_cq, 3, IBV_WC_REM_OP_ERR);
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

/* What the receiver finds wrong: its QP dies, and the sender's of that message,
 * which was not acknowledged before. */
START_TEST(test_complete_recv)
{
    struct t_end ends[2];

    t_fault_pair(ends, "complete qp=rc.1 queue=recv status=LOC_PROT_ERR n=2",
                 4);
    ck_assert_int_eq(t_fault_send(ends, 0), 0);
    ck_assert_int_eq(t_fault_send(ends, 1), 0);
    arrives(&ends[1], 0, 0);
    t_poll_is(ends[1].recv_cq, 1, IBV_WC_LOC_PROT_ERR);
    flushed(ends[1].recv_cq, 2);
    flushed(ends[1].recv_cq, 3);
    ck_assert_int_eq(t_end_state(&ends[1]), IBV_QPS_ERR);
    t_poll_is(ends[0].send_cq, 0, IBV_WC_SUCCESS);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_REM_OP_ERR);
    ck_assert_int_eq(t_fault_send(ends, 2), 0);
    flushed(ends[0].send_cq, 2);
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

/* ---- a lost acknowledgement ---- */

START_TEST(test_lose_ack)
{
    struct t_end ends[2];

    t_fault_pair(ends, "lose-ack qp=rc.0 n=2", 4);
    ck_assert_int_eq(t_fault_send(ends, 0), 0);
    ck_assert_int_eq(t_fault_send(ends, 1), 0);
    ck_assert_int_eq(t_fault_send(ends, 2), 0);
    arrives(&ends[1], 0, 0);
    arrives(&ends[1], 1, 1); /* the peer has it */
    t_poll_is(ends[0].send_cq, 0, IBV_WC_SUCCESS);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    flushed(ends[0].send_cq, 2);
    t_poll_none(ends[1].recv_cq); /* once, and not what came after */
    ck_assert_int_eq(t_end_state(&ends[1]), IBV_QPS_RTS);
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

/* WRITE and atomics are done, too. */
START_TEST(test_lose_ack_rdma)
{
    struct t_address to;
    struct t_end ends[2];
    uint64_t value = 41;

    t_fault_plan(_i ? "lose-ack op=atomic" : "lose-ack op=write");
    t_pair_open(ends, NULL, NULL);
    to = t_end_address(&ends[1]);
    memset(ends[0].buf, 7, 8);
    memcpy(ends[1].buf, &value, 8);
    if (_i) {
        ck_assert_int_eq(t_post_atomic(&ends[0], IBV_WR_ATOMIC_FETCH_AND_ADD, 1,
                                       0, &to, 0, 1, 0), 0);
    } else {
        ck_assert_int_eq(t_post_rdma(&ends[0], IBV_WR_RDMA_WRITE, 1, 0, 8, &to,
                                     0), 0);
    }
    t_poll_is(ends[0].send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    memcpy(&value, ends[1].buf, 8);
    ck_assert_uint_eq(value, _i ? 42 : 0x0707070707070707ull);
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

/* What was carried out is not carried out again when the plan is taken back
 * before its sender has given up; and the QP is as new after a reset. */
START_TEST(test_lose_ack_and_clear)
{
    struct t_link slow = {.timeout = 14, .retry_cnt = 2};
    struct t_address address[2];
    struct t_end ends[2];

    t_fault_plan("lose-ack");
    t_pair_open(ends, NULL, &slow);
    t_fault_expect(&ends[1], 4);
    ck_assert_int_eq(t_fault_send(ends, 0), 0);
    ck_assert_int_eq(t_fault_ask("clear\n"), 0);
    arrives(&ends[1], 0, 0);
    t_poll_is(ends[0].send_cq, 0, IBV_WC_RETRY_EXC_ERR);
    t_poll_none(ends[1].recv_cq);

    address[0] = t_end_address(&ends[0]);
    address[1] = t_end_address(&ends[1]);
    t_end_move(&ends[0], IBV_QPS_RESET);
    t_end_move(&ends[1], IBV_QPS_RESET);
    t_end_up(&ends[0], &address[1], NULL);
    t_end_up(&ends[1], &address[0], NULL);
    t_check_link(&ends[0], &ends[1]);
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

/* ---- delay ---- */

/* The one, and what is behind it; what is before it is not. */
START_TEST(test_delay)
{
    struct t_end ends[2];
    uint64_t start;

    t_fault_pair(ends, "delay qp=rc.0 time=80ms n=2", 4);
    start = t_now_ns();
    ck_assert_int_eq(t_fault_send(ends, 0), 0);
    t_poll_is(ends[0].send_cq, 0, IBV_WC_SUCCESS);
    ck_assert_int_eq(t_fault_send(ends, 1), 0);
    ck_assert_int_eq(t_fault_send(ends, 2), 0);
    arrives(&ends[1], 0, 0);
    arrives(&ends[1], 1, 1);
    ck_assert_uint_ge(t_now_ns() - start, 80000000);
    arrives(&ends[1], 2, 2);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_SUCCESS);
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

/* ---- datagrams ---- */

static struct ibv_ah *ud_ah;
static struct t_address ud_to;

static void open_ud(struct t_end ends[2])
{
    static const struct t_make make = {.type = IBV_QPT_UD};

    t_end_open(&ends[0], &make);
    t_end_open(&ends[1], &make);
    ud_to = t_end_address(&ends[1]);
    t_end_up(&ends[0], NULL, NULL);
    t_end_up(&ends[1], NULL, NULL);
    ud_ah = t_create_ah(&ends[0], &ud_to);
    t_fault_expect(&ends[1], 8);
}

static void close_ud(struct t_end ends[2])
{
    ibv_destroy_ah(ud_ah);
    t_pair_close(ends);
}

/* It completes well, whatever becomes of it. */
static void send_datagram(struct t_end ends[2], uint8_t id)
{
    memset(ends[0].buf, id, 64);
    ck_assert_int_eq(t_post_datagram(&ends[0], ud_ah, ud_to.qpn, T_QKEY, id, 0,
                                     64), 0);
    t_poll_is(ends[0].send_cq, id, IBV_WC_SUCCESS);
}

enum { DATAGRAMS = 4 };

/* Numbers 1 to 4, posted as one chain: whatever is held back is overtaken by
 * those behind it, however long that takes, and not sent because its time is
 * up in between. */
static void send_datagrams(struct t_end *end)
{
    struct ibv_send_wr wr[DATAGRAMS], *bad;
    struct ibv_sge sge[DATAGRAMS];
    int i;

    memset(wr, 0, sizeof(wr));
    for (i = 0; i < DATAGRAMS; ++i) {
        memset(end->buf + 64 * i, i + 1, 64);
        sge[i] = (struct ibv_sge){(uintptr_t)end->buf + 64 * i, 64,
                                  end->mr->lkey};
        wr[i].wr_id             = i + 1;
        wr[i].sg_list           = &sge[i];
        wr[i].num_sge           = 1;
        wr[i].opcode            = IBV_WR_SEND;
        wr[i].send_flags        = IBV_SEND_SIGNALED;
        wr[i].wr.ud.ah          = ud_ah;
        wr[i].wr.ud.remote_qpn  = ud_to.qpn;
        wr[i].wr.ud.remote_qkey = T_QKEY;
        wr[i].next              = (i + 1 < DATAGRAMS) ? &wr[i + 1] : NULL;
    }
    ck_assert_int_eq(ibv_post_send(end->qp, wr, &bad), 0);
    for (i = 0; i < DATAGRAMS; ++i) {
        t_poll_is(end->send_cq, i + 1, IBV_WC_SUCCESS);
    }
}

struct datagrams {
    const char *plan;
    const char *arrive; /* of 1, 2, 3, 4 */
    unsigned    decisions;
};

static const struct datagrams datagrams[] = {
    {"drop n=2", "134", 1},
    {"drop every=2", "24", 2},
    {"duplicate n=2", "12234", 1},
    {"duplicate", "11223344", 4},
    {"reorder n=1", "2134", 1},
    {"reorder n=1 by=2", "2314", 1},
    {"reorder n=1 by=3", "2341", 1},
    {"reorder n=1; reorder n=3", "2143", 2},
    {"drop n=1; duplicate n=4", "2344", 2},
    {"reorder n=4", "1234", 1},
    {"reorder n=1 by=100", "2341", 1}
};

START_TEST(test_datagrams)
{
    const struct datagrams *d = &datagrams[_i];
    struct t_end ends[2];
    unsigned i;

    t_fault_plan(d->plan);
    open_ud(ends);
    send_datagrams(&ends[0]);
    for (i = 0; d->arrive[i] != '\0'; ++i) {
        arrives(&ends[1], i, d->arrive[i] - '0');
    }
    t_poll_none(ends[1].recv_cq);
    close_ud(ends);
    ck_assert_uint_eq(t_fault_decisions(), d->decisions);
}
END_TEST

/* One that is held back when its QP goes is lost, and nothing else is. */
START_TEST(test_held_at_the_end)
{
    struct t_end ends[2];

    t_fault_plan("reorder n=1");
    open_ud(ends);
    send_datagram(ends, 1);
    close_ud(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

START_TEST(test_complete_datagram)
{
    struct t_end ends[2];

    t_fault_plan("complete qp=ud.0 status=LOC_QP_OP_ERR n=2");
    open_ud(ends);
    send_datagram(ends, 1);
    ck_assert_int_eq(t_post_datagram(&ends[0], ud_ah, ud_to.qpn, T_QKEY, 2, 0,
                                     64), 0);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_LOC_QP_OP_ERR);
    ck_assert_int_eq(t_end_state(&ends[0]), IBV_QPS_SQE);
    t_end_move(&ends[0], IBV_QPS_RTS);
    send_datagram(ends, 3);
    arrives(&ends[1], 0, 1);
    arrives(&ends[1], 1, 3);
    close_ud(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

/* ---- where and how often ---- */

/* Each QP counts for itself; times= counts for the process. */
START_TEST(test_each_qp)
{
    struct t_end pairs[3][2];
    int i, k;

    t_fault_plan("complete status=GENERAL_ERR n=2 times=2");
    for (i = 0; i < 3; ++i) {
        t_pair_open(pairs[i], NULL, NULL);
        t_fault_expect(&pairs[i][1], 4);
    }
    for (k = 0; k < 2; ++k) {
        for (i = 0; i < 3; ++i) {
            ck_assert_int_eq(t_fault_send(pairs[i], k), 0);
            t_poll_is(pairs[i][0].send_cq, k, ((k == 1) && (i < 2)) ?
                              IBV_WC_GENERAL_ERR : IBV_WC_SUCCESS);
        }
    }
    for (i = 0; i < 3; ++i) {
        t_pair_close(pairs[i]);
    }
    ck_assert_uint_eq(t_fault_decisions(), 2);
}
END_TEST

START_TEST(test_other_process)
{
    struct t_end ends[2];

    t_fault_plan("complete process=1 status=GENERAL_ERR; "
                 "complete process=4 status=FATAL_ERR n=2");
    setenv("SOFTVERBS_PROCESS", "4", 1);
    setenv("OMPI_COMM_WORLD_RANK", "1", 1); /* what we say comes first */
    t_pair_open(ends, NULL, NULL);
    t_fault_expect(&ends[1], 4);
    ck_assert_int_eq(t_fault_send(ends, 0), 0);
    ck_assert_int_eq(t_fault_send(ends, 1), 0);
    t_poll_is(ends[0].send_cq, 0, IBV_WC_SUCCESS);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_FATAL_ERR);
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

START_TEST(test_rank_of_launcher)
{
    struct t_end ends[2];

    t_fault_plan("complete process=3 status=GENERAL_ERR");
    setenv(_i ? "PMI_RANK" : "OMPI_COMM_WORLD_RANK", "3", 1);
    t_pair_open(ends, NULL, NULL);
    ck_assert_int_eq(t_fault_send(ends, 0), 0);
    t_poll_is(ends[0].send_cq, 0, IBV_WC_GENERAL_ERR);
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

/* A new plan counts from its own beginning; without one, all is as before. */
START_TEST(test_changed_while_running)
{
    struct t_end ends[2];

    t_fault_pair(ends, "complete status=GENERAL_ERR n=100", 8);
    ck_assert_int_eq(t_fault_send(ends, 0), 0);
    t_poll_is(ends[0].send_cq, 0, IBV_WC_SUCCESS);

    ck_assert_int_eq(t_fault_ask("set\nexplode"), -1);
    ck_assert_ptr_nonnull(strstr(t_fault_reply, "there is no fault 'explode'"));
    ck_assert_int_eq(t_fault_ask("show\n"), 0);
    ck_assert_ptr_nonnull(strstr(t_fault_reply, "seed 1, rules 1"));
    ck_assert_ptr_nonnull(strstr(t_fault_reply, "rule 1 fired 0: complete "
                                                "status=GENERAL_ERR n=100"));
    ck_assert_ptr_nonnull(strstr(t_fault_reply, "qp=rc.0 is QP 0x"));
    ck_assert_ptr_nonnull(strstr(t_fault_reply, ", RTS, requests 1\nqp=rc.1 "
                                                "is QP 0x"));

    t_fault_set("seed 5; complete qp=rc.0 status=REM_OP_ERR n=2");
    ck_assert_int_eq(t_fault_send(ends, 1), 0);
    ck_assert_int_eq(t_fault_send(ends, 2), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_REM_OP_ERR);
    ck_assert_int_eq(t_fault_ask("show\n"), 0);
    ck_assert_ptr_nonnull(strstr(t_fault_reply, "seed 5, rules 1, decisions "
                                                "so far 1\n"));

    ck_assert_int_eq(t_fault_ask("clear\n"), 0);
    ck_assert_int_eq(t_fault_ask("show\n"), 0);
    ck_assert_ptr_nonnull(strstr(t_fault_reply, "no plan"));
    ck_assert_int_eq(t_fault_ask("dance\n"), -1);
    t_pair_close(ends);

    t_pair_open(ends, NULL, NULL);
    t_check_link(&ends[0], &ends[1]);
    t_check_link(&ends[0], &ends[1]);
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

static Suite *suite_fault(void)
{
    Suite *suite = suite_create("fault");
    TCase *post  = tcase_create("post");
    TCase *work  = tcase_create("work");
    TCase *where = tcase_create("where");

    t_fault_begin();
    tcase_set_timeout(post, T_TIMEOUT);
    tcase_set_timeout(work, T_TIMEOUT);
    tcase_set_timeout(where, T_TIMEOUT);
    tcase_add_loop_test(post, test_post, 0, CHAIN);
    tcase_add_test(post, test_post_short);
    tcase_add_test(post, test_post_and_full);
    tcase_add_loop_test(post, test_post_recv, 0, CHAIN);
    tcase_add_loop_test(post, test_verb, 0, CALLS);
    tcase_add_test(post, test_verb_any);
    tcase_add_loop_test(work, test_complete, 0, STATUSES);
    tcase_add_test(work, test_complete_op);
    tcase_add_test(work, test_complete_recv);
    tcase_add_test(work, test_lose_ack);
    tcase_add_loop_test(work, test_lose_ack_rdma, 0, 2);
    tcase_add_test(work, test_lose_ack_and_clear);
    tcase_add_test(work, test_delay);
    tcase_add_loop_test(work, test_datagrams, 0,
                        sizeof(datagrams) / sizeof(datagrams[0]));
    tcase_add_test(work, test_held_at_the_end);
    tcase_add_test(work, test_complete_datagram);
    tcase_add_test(where, test_each_qp);
    tcase_add_test(where, test_other_process);
    tcase_add_loop_test(where, test_rank_of_launcher, 0, 2);
    tcase_add_test(where, test_changed_while_running);
    suite_add_tcase(suite, post);
    suite_add_tcase(suite, work);
    suite_add_tcase(suite, where);
    return suite;
}

T_MAIN(suite_fault)
