/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults on purpose of QPs, CQs, the port and the device, by count and by
 * time; asynchronous events of every kind; replay; plans that are refused.
 */
#include "t_fault.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

static int send_one(struct t_end ends[2], uint64_t wr_id)
{
    return t_post_send(&ends[0], wr_id, 0, 64, IBV_SEND_SIGNALED);
}

/* ---- QP to ERR ---- */

struct killed {
    const char *plan;
    bool        dies[2];  /* the sender, the receiver */
    bool        tells;    /* with QP_FATAL */
};

/* By the second of three requests. */
static const struct killed killed[] = {
    {"qp-error qp=rc.0 n=2", {true, false}, true},
    {"qp-error qp=rc.0 side=local event=no n=2", {true, false}, false},
    {"qp-error qp=rc.0 side=remote n=2", {false, true}, true},
    {"qp-error qp=rc.0 side=remote event=no n=2", {false, true}, false},
    {"qp-error qp=rc.0 side=both n=2", {true, true}, true},
    {"qp-error qp=rc.0 side=both event=no n=2", {true, true}, false}
};

START_TEST(test_qp_error)
{
    const struct killed *k = &killed[_i];
    struct t_end ends[2];
    int i;

    t_fault_plan(k->plan);
    t_pair_open(ends, NULL, NULL);
    for (i = 0; i < 3; ++i) {
        ck_assert_int_eq(t_post_recv(&ends[0], 20 + i, 0, 64), 0);
        ck_assert_int_eq(t_post_recv(&ends[1], 10 + i, 0, 64), 0);
    }
    ck_assert_int_eq(send_one(ends, 1), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    t_poll_is(ends[1].recv_cq, 10, IBV_WC_SUCCESS);
    ck_assert_int_eq(send_one(ends, 2), 0);

    for (i = 0; i < 2; ++i) {
        if (k->dies[i]) {
            t_end_wait(&ends[i], IBV_QPS_ERR);
            if (k->tells) {
                t_event_is(&ends[i], IBV_EVENT_QP_FATAL, ends[i].qp);
            }
        }
    }
    if (k->dies[0]) {
        t_poll_is(ends[0].send_cq, 2, IBV_WC_WR_FLUSH_ERR);
        for (i = 0; i < 3; ++i) {
            t_poll_is(ends[0].recv_cq, 20 + i, IBV_WC_WR_FLUSH_ERR);
        }
    } else {
        /* this one was under way, or met silence; the next does */
        ck_assert_int_eq(send_one(ends, 3), 0);
        while (t_poll(ends[0].send_cq).wr_id != 3) {
        }
        t_end_wait(&ends[0], IBV_QPS_ERR);
    }
    t_event_none(&ends[0]);
    t_event_none(&ends[1]);
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

START_TEST(test_qp_error_datagram)
{
    static const struct t_make make = {.type = IBV_QPT_UD};
    struct t_address to;
    struct t_end end;
    struct ibv_ah *ah;

    t_fault_plan("qp-error qp=ud n=2");
    t_end_open(&end, &make);
    t_end_up(&end, NULL, NULL);
    to = t_end_address(&end);
    ah = t_create_ah(&end, &to);
    ck_assert_int_eq(t_post_recv(&end, 9, 1024, 1024), 0);
    ck_assert_int_eq(t_post_recv(&end, 10, 2048, 1024), 0);
    ck_assert_int_eq(t_post_datagram(&end, ah, to.qpn, T_QKEY, 1, 0, 8), 0);
    t_poll_is(end.send_cq, 1, IBV_WC_SUCCESS);
    t_poll_is(end.recv_cq, 9, IBV_WC_SUCCESS);
    ck_assert_int_eq(t_post_datagram(&end, ah, to.qpn, T_QKEY, 2, 0, 8), 0);
    t_poll_is(end.send_cq, 2, IBV_WC_WR_FLUSH_ERR);
    t_poll_is(end.recv_cq, 10, IBV_WC_WR_FLUSH_ERR);
    ck_assert_int_eq(t_end_state(&end), IBV_QPS_ERR);
    t_event_is(&end, IBV_EVENT_QP_FATAL, end.qp);
    ibv_destroy_ah(ah);
    t_end_close(&end);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

/* By time, on QPs that do nothing: the one that is named, or all, in order. */
START_TEST(test_qp_error_at)
{
    struct t_end ends[2];

    t_fault_plan_idle();
    t_pair_open(ends, NULL, NULL);
    ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 64), 0);
    t_fault_set("qp-error qp=rc.1 at=20ms");
    t_poll_is(ends[1].recv_cq, 1, IBV_WC_WR_FLUSH_ERR);
    t_event_is(&ends[1], IBV_EVENT_QP_FATAL, ends[1].qp);
    ck_assert_int_eq(t_end_state(&ends[1]), IBV_QPS_ERR);
    ck_assert_int_eq(t_end_state(&ends[0]), IBV_QPS_RTS);
    t_pair_close(ends);

    t_pair_open(ends, NULL, NULL);
    t_fault_set("qp-error at=0ms event=no");
    t_end_wait(&ends[0], IBV_QPS_ERR);
    t_end_wait(&ends[1], IBV_QPS_ERR);
    ck_assert_ptr_nonnull(strstr(t_fault_log(), "2 qp=rc.2 n=1 rule 1: "
                                                "qp-error event=no at=0ms\n"
                                                "3 qp=rc.3 n=1 "));
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 3);
}
END_TEST

/* The n-th time of several, as often as it may. */
START_TEST(test_every_at)
{
    struct t_end end;
    int i;

    t_fault_plan_idle();
    t_end_open(&end, NULL);
    t_fault_set("gid-change at=5ms every=10ms times=3");
    for (i = 0; i < 3; ++i) {
        t_event_is(&end, IBV_EVENT_GID_CHANGE, NULL);
    }
    t_end_close(&end);
    ck_assert_ptr_nonnull(strstr(t_fault_log(), "3 n=3 rule 1: gid-change"));
    ck_assert_uint_eq(t_fault_decisions(), 3);
}
END_TEST

/* ---- events ---- */

struct event {
    const char          *name;
    enum ibv_event_type  type;
    char                 about; /* q: QP, c: CQ, s: SRQ, p: port or device */
};

#define EVENT(_name, _about) {#_name, IBV_EVENT_##_name, _about}

static const struct event events[] = {
    EVENT(CQ_ERR, 'c'), {"QP_FATAL", IBV_EVENT_QP_FATAL, 'q'},
    EVENT(QP_REQ_ERR, 'q'), EVENT(QP_ACCESS_ERR, 'q'), EVENT(COMM_EST, 'q'),
    EVENT(SQ_DRAINED, 'q'), EVENT(PATH_MIG, 'q'), EVENT(PATH_MIG_ERR, 'q'),
    EVENT(DEVICE_FATAL, 'p'), EVENT(PORT_ACTIVE, 'p'), EVENT(PORT_ERR, 'p'),
    EVENT(LID_CHANGE, 'p'), EVENT(PKEY_CHANGE, 'p'), EVENT(SM_CHANGE, 'p'),
    EVENT(SRQ_ERR, 's'), EVENT(SRQ_LIMIT_REACHED, 's'),
    EVENT(QP_LAST_WQE_REACHED, 'q'), EVENT(CLIENT_REREGISTER, 'p'),
    EVENT(GID_CHANGE, 'p')
};

enum { EVENTS = sizeof(events) / sizeof(events[0]) };

static void *event_element(const struct event *event, struct t_end *end)
{
    switch (event->about) {
    case 'q':
        return end->qp;
    case 'c':
        return end->send_cq;
    case 's':
        return end->srq;
    default:
        return NULL;
    }
}

/* With the second request, on a file descriptor that does not block: nothing
 * before, then poll() and epoll tell of it, and it is there once. */
START_TEST(test_event)
{
    static const struct t_make make = {.srq = true};
    struct epoll_event asked = {.events = EPOLLIN}, told;
    struct ibv_async_event event;
    struct pollfd pfd = {.events = POLLIN};
    struct t_end ends[2];
    char plan[64];
    int epoll;

    snprintf(plan, sizeof(plan), "event qp=rc.0 type=%s n=2",
             events[_i].name);
    t_fault_plan(plan);
    t_pair_open(ends, &make, NULL);
    pfd.fd = ends[0].context->async_fd;
    fcntl(pfd.fd, F_SETFL, fcntl(pfd.fd, F_GETFL) | O_NONBLOCK);
    epoll = epoll_create1(0);
    ck_assert_int_eq(epoll_ctl(epoll, EPOLL_CTL_ADD, pfd.fd, &asked), 0);
    ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 64), 0);
    ck_assert_int_eq(t_post_recv(&ends[1], 2, 0, 64), 0);

    ck_assert_int_eq(send_one(ends, 1), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    ck_assert_int_eq(poll(&pfd, 1, 0), 0);
    ck_assert_int_eq(epoll_wait(epoll, &told, 1, 0), 0);
    ck_assert_int_eq(ibv_get_async_event(ends[0].context, &event), -1);
    ck_assert_int_eq(errno, EAGAIN);

    ck_assert_int_eq(send_one(ends, 2), 0);
    ck_assert_int_eq(poll(&pfd, 1, 0), 1);
    ck_assert_int_eq(epoll_wait(epoll, &told, 1, 0), 1);
    t_event_is(&ends[0], events[_i].type, event_element(&events[_i], &ends[0]));
    ck_assert_int_eq(ibv_get_async_event(ends[0].context, &event), -1);
    ck_assert_int_eq(epoll_wait(epoll, &told, 1, 0), 0);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_SUCCESS);
    if (events[_i].about == 'p') {
        /* every context of the process has it */
        t_event_is(&ends[1], events[_i].type, NULL);
    }
    close(epoll);
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

/* By time, and not read: nothing of it is left when the objects go. */
START_TEST(test_event_at)
{
    static const struct t_make make = {.srq = true};
    struct pollfd pfd = {.events = POLLIN};
    struct t_end ends[2];
    char plan[64];

    t_fault_plan_idle();
    t_pair_open(ends, &make, NULL);
    snprintf(plan, sizeof(plan), "event type=%s at=1ms every=1ms times=10",
             events[_i].name);
    t_fault_set(plan);
    pfd.fd = ends[0].context->async_fd;
    ck_assert_int_eq(poll(&pfd, 1, -1), 1);
    t_event_is(&ends[0], events[_i].type, event_element(&events[_i], &ends[0]));
    while (strstr(t_fault_log(), "\n10 ") == NULL) {
        sched_yield();
    }
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 10);
}
END_TEST

/* ---- CQ overrun ---- */

START_TEST(test_overrun_send)
{
    struct t_end ends[2];

    t_fault_pair(ends, "overrun qp=rc.0 cq=send n=2", 2);
    ck_assert_int_eq(send_one(ends, 1), 0);
    ck_assert_int_eq(send_one(ends, 2), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    t_poll_none(ends[0].send_cq); /* the second is lost */
    t_event_is(&ends[0], IBV_EVENT_CQ_ERR, ends[0].send_cq);
    t_event_is(&ends[0], IBV_EVENT_QP_FATAL, ends[0].qp);
    ck_assert_int_eq(t_end_state(&ends[0]), IBV_QPS_ERR);
    t_poll_is(ends[1].recv_cq, 0, IBV_WC_SUCCESS);
    t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

START_TEST(test_overrun_recv)
{
    struct t_end ends[2];
    struct ibv_wc wc;

    t_fault_plan_idle();
    t_pair_open(ends, NULL, NULL);
    t_fault_set("overrun qp=rc.1 cq=recv at=0ms");
    t_event_is(&ends[1], IBV_EVENT_CQ_ERR, ends[1].recv_cq);
    ck_assert_int_eq(t_end_state(&ends[1]), IBV_QPS_RTS);
    ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 64), 0);
    ck_assert_int_eq(send_one(ends, 1), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    while (t_end_state(&ends[1]) != IBV_QPS_ERR) {
        ck_assert_int_le(ibv_poll_cq(ends[1].recv_cq, 1, &wc), 1);
    }
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

/* ---- the port ---- */

static enum ibv_port_state port_state(struct t_end *end)
{
    struct ibv_port_attr attr;

    ck_assert_int_eq(ibv_query_port(end->context, 1, &attr), 0);
    return attr.state;
}

/* Longer than retries last: what is sent meanwhile fails. The link comes back
 * by itself, and a new connection works. */
START_TEST(test_link_down_long)
{
    struct t_link quick = {.timeout = 9, .retry_cnt = 1}; /* 4 ms */
    struct t_end ends[2];

    t_fault_plan("link qp=rc.0 down=400ms n=2");
    t_pair_open(ends, NULL, &quick);
    ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 64), 0);
    ck_assert_int_eq(t_post_recv(&ends[1], 2, 0, 64), 0);
    ck_assert_int_eq(send_one(ends, 1), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
    ck_assert_int_eq(port_state(&ends[0]), IBV_PORT_ACTIVE);

    ck_assert_int_eq(send_one(ends, 2), 0);
    t_event_is(&ends[0], IBV_EVENT_PORT_ERR, NULL);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_RETRY_EXC_ERR);
    t_poll_none(ends[1].recv_cq);
    t_event_is(&ends[0], IBV_EVENT_PORT_ACTIVE, NULL);
    ck_assert_int_eq(port_state(&ends[0]), IBV_PORT_ACTIVE);
    t_pair_close(ends);

    t_pair_open(ends, NULL, NULL);
    t_check_link(&ends[0], &ends[1]);
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

/* Shorter: the message waits and arrives, once. */
START_TEST(test_link_down_short)
{
    struct t_link patient = {.timeout = 16, .retry_cnt = 7}; /* 2.1 s */
    struct t_end ends[2];
    uint64_t start;

    t_fault_plan("link qp=rc.0 down=50ms n=1");
    t_pair_open(ends, NULL, &patient);
    ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 64), 0);
    start = t_now_ns();
    ck_assert_int_eq(send_one(ends, 1), 0);
    ck_assert_int_eq(port_state(&ends[0]), IBV_PORT_DOWN);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    ck_assert_uint_ge(t_now_ns() - start, 50000000);
    t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
    t_event_is(&ends[0], IBV_EVENT_PORT_ERR, NULL);
    t_event_is(&ends[0], IBV_EVENT_PORT_ACTIVE, NULL);
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

/* The other side of a link that is down: it has an active port, and silence. */
static void peer_with_link_down(int fd)
{
    struct t_address to;
    struct t_end end;

    t_fault_plan_idle();
    t_end_open(&end, NULL);
    to = t_swap(fd, &end);
    t_end_up(&end, &to, NULL);
    ck_assert_int_eq(t_post_recv(&end, 1, 0, 64), 0);
    ck_assert_int_eq(t_post_recv(&end, 2, 0, 64), 0);
    t_meet(fd);
    t_poll_is(end.recv_cq, 1, IBV_WC_SUCCESS);
    t_fault_set("link down=3600s at=0ms");
    t_event_is(&end, IBV_EVENT_PORT_ERR, NULL);
    t_meet(fd); /* the link is down */
    t_meet(fd); /* nothing has come */
    t_poll_none(end.recv_cq);
    ck_assert_int_eq(t_fault_ask("clear\n"), 0);
    t_event_is(&end, IBV_EVENT_PORT_ACTIVE, NULL);
    t_meet(fd);
    t_end_close(&end);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}

START_TEST(test_link_of_peer)
{
    struct t_peer peer;
    struct t_address to;
    struct t_end end;

    t_peer_start(&peer, peer_with_link_down);
    t_end_open(&end, NULL);
    to = t_swap(peer.fd, &end);
    t_end_up(&end, &to, NULL);
    t_meet(peer.fd);
    ck_assert_int_eq(t_post_send(&end, 1, 0, 64, IBV_SEND_SIGNALED), 0);
    t_poll_is(end.send_cq, 1, IBV_WC_SUCCESS);
    t_meet(peer.fd);
    ck_assert_int_eq(port_state(&end), IBV_PORT_ACTIVE);
    ck_assert_int_eq(t_post_send(&end, 2, 0, 64, IBV_SEND_SIGNALED), 0);
    t_poll_is(end.send_cq, 2, IBV_WC_RETRY_EXC_ERR);
    t_event_none(&end);
    t_meet(peer.fd);
    t_meet(peer.fd);
    t_end_close(&end);
    t_peer_join(&peer);
}
END_TEST

/* Receives what a process sends whose link is down: nothing. */
static void peer_that_listens(int fd)
{
    static const struct t_make make = {.type = IBV_QPT_UD};
    struct t_end rc, ud;
    struct t_address to;

    t_end_open(&rc, NULL);
    t_end_open(&ud, &make);
    to = t_swap(fd, &rc);
    t_end_up(&rc, &to, NULL);
    t_end_up(&ud, NULL, NULL);
    t_swap(fd, &ud);
    ck_assert_int_eq(t_post_recv(&rc, 1, 0, 64), 0);
    ck_assert_int_eq(t_post_recv(&ud, 1, 0, 128), 0);
    t_meet(fd);
    t_meet(fd); /* it was sent */
    t_poll_none(rc.recv_cq);
    t_poll_none(ud.recv_cq);
    t_end_close(&ud);
    t_end_close(&rc);
}

START_TEST(test_link_of_sender)
{
    static const struct t_make make = {.type = IBV_QPT_UD};
    struct t_end rc, ud;
    struct t_address to;
    struct t_peer peer;
    struct ibv_ah *ah;

    t_peer_start(&peer, peer_that_listens);
    t_fault_plan_idle();
    t_end_open(&rc, NULL);
    t_end_open(&ud, &make);
    to = t_swap(peer.fd, &rc);
    t_end_up(&rc, &to, NULL);
    t_end_up(&ud, NULL, NULL);
    to = t_swap(peer.fd, &ud);
    ah = t_create_ah(&ud, &to);
    t_meet(peer.fd);
    t_fault_set("link down=3600s at=0ms");
    t_event_is(&rc, IBV_EVENT_PORT_ERR, NULL);
    ck_assert_int_eq(t_post_datagram(&ud, ah, to.qpn, T_QKEY, 2, 0, 8), 0);
    t_poll_is(ud.send_cq, 2, IBV_WC_SUCCESS);
    ck_assert_int_eq(t_post_send(&rc, 3, 0, 8, 0), 0);
    t_poll_is(rc.send_cq, 3, IBV_WC_RETRY_EXC_ERR);
    t_meet(peer.fd);
    t_peer_join(&peer);
    ibv_destroy_ah(ah);
    t_end_close(&ud);
    t_end_close(&rc);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

START_TEST(test_gid_change)
{
    union ibv_gid before, after, again;
    struct ibv_gid_entry entry;
    struct t_end ends[2];

    t_fault_plan("gid-change qp=rc.0 n=2");
    t_pair_open(ends, NULL, NULL);
    ck_assert_int_eq(ibv_query_gid(ends[0].context, 1, 0, &before), 0);
    t_check_link(&ends[0], &ends[1]);
    ck_assert_int_eq(ibv_query_gid(ends[0].context, 1, 0, &again), 0);
    ck_assert_mem_eq(&before, &again, sizeof(before));
    t_check_link(&ends[0], &ends[1]);
    ck_assert_int_eq(ibv_query_gid(ends[0].context, 1, 0, &after), 0);
    ck_assert_mem_ne(&before, &after, sizeof(before));
    ck_assert_int_eq(ibv_query_gid_ex(ends[0].context, 1, 0, &entry, 0), 0);
    ck_assert_mem_eq(&entry.gid, &after, sizeof(after));
    t_event_is(&ends[0], IBV_EVENT_GID_CHANGE, NULL);
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 1);
}
END_TEST

/* The same, elsewhere; and after the last place the first. */
START_TEST(test_gid_move)
{
    struct ibv_gid_entry before, after, table[8];
    struct ibv_port_attr port;
    struct t_end ends[2];
    uint32_t i;

    t_fault_plan("gid-move qp=rc.0 n=2 every=1 times=4");
    t_pair_open(ends, NULL, NULL);
    ck_assert_int_eq(ibv_query_gid_ex(ends[0].context, 1, 0, &before, 0), 0);
    t_check_link(&ends[0], &ends[1]);
    for (i = 1; i <= 4; ++i) {
        t_check_link(&ends[0], &ends[1]);
        t_event_is(&ends[0], IBV_EVENT_GID_CHANGE, NULL);
        ck_assert_int_eq(ibv_query_gid_table(ends[0].context, table, 8, 0), 1);
        ck_assert_uint_eq(table[0].gid_index, i % 4);
        ck_assert_int_eq(ibv_query_port(ends[0].context, 1, &port), 0);
        ck_assert_int_gt(port.gid_tbl_len, table[0].gid_index);
        ck_assert_int_eq(ibv_query_gid_ex(ends[0].context, 1, i % 4, &after,
                                          0), 0);
        ck_assert_mem_eq(&before.gid, &after.gid, sizeof(after.gid));
        ck_assert_int_eq(ibv_query_gid_ex(ends[0].context, 1, (i + 1) % 4,
                                          &after, 0), ENODATA);
    }
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 4);
}
END_TEST

/* ---- replay ---- */

enum { ROUNDS = 400 };

/* Requests of all kinds, of which the plan spoils some; QPs that died are made
 * anew. What it does next depends on nothing but what it has met. */
static void replay_round(struct t_end ends[2], struct t_end *ud,
                         struct ibv_ah *ah, int i)
{
    struct t_address to = t_end_address(&ends[1]);
    struct ibv_wc wc;

    t_post_recv(&ends[1], 1, 1024, 64);
    if (send_one(ends, 1) == 0) {
        t_poll(ends[0].send_cq);
    }
    if (t_post_rdma(&ends[0], IBV_WR_RDMA_WRITE, 2, 0, 8, &to, 0) == 0) {
        t_poll(ends[0].send_cq);
    }
    while (ibv_poll_cq(ends[1].recv_cq, 1, &wc) == 1) {
    }
    if (t_end_state(&ends[0]) == IBV_QPS_ERR) {
        t_pair_close(ends);
        t_pair_open(ends, NULL, NULL);
    }
    if (i % 8 == 0) {
        ck_assert_int_eq(t_post_recv(ud, 3, 1024, 256), 0);
    }
    if (t_post_datagram(ud, ah, ud->qp->qp_num, T_QKEY, 4, 0, 8) == 0) {
        t_poll_is(ud->send_cq, 4, IBV_WC_SUCCESS);
    }
    while (ibv_poll_cq(ud->recv_cq, 1, &wc) == 1) {
    }
}

static void replay_run(int fd)
{
    static const struct t_make make = {.type = IBV_QPT_UD, .depth = 256};
    struct t_end ends[2], ud;
    struct t_address to;
    struct ibv_ah *ah;
    uint64_t length;
    int i;

    t_pair_open(ends, NULL, NULL);
    t_end_open(&ud, &make);
    t_end_up(&ud, NULL, NULL);
    to = t_end_address(&ud);
    ah = t_create_ah(&ud, &to);
    for (i = 0; i < ROUNDS; ++i) {
        replay_round(ends, &ud, ah, i);
    }
    ibv_destroy_ah(ah);
    t_end_close(&ud);
    t_pair_close(ends);
    length = strlen(t_fault_log());
    t_tell(fd, &length, sizeof(length));
    t_tell(fd, t_fault_log(), length);
    t_fault_decisions();
}

/* Runs it in a process of its own; its log, to be freed. Each rule is asked
 * 500 times or more in two runs: at 5 % it stays silent in one test of 10^11,
 * at 1 % it did in one of some 200. */
static char *replay_log(uint64_t seed)
{
    struct t_peer peer;
    uint64_t length;
    char plan[512];
    char *log;

    snprintf(plan, sizeof(plan), "seed %llu\n"
             "post p=0.05\n"
             "complete qp=rc p=0.05 op=send status=REM_OP_ERR\n"
             "complete p=0.05 op=write status=REM_ACCESS_ERR\n"
             "qp-error p=0.05 qp=rc event=no\n"
             "delay time=100us p=0.05\n"
             "drop p=0.1\n"
             "duplicate p=0.1\n"
             "reorder p=0.1\n"
             "event type=LID_CHANGE p=0.05\n"
             "gid-change p=0.05\n", (unsigned long long)seed);
    t_fault_plan(plan);
    t_peer_start(&peer, replay_run);
    t_hear(peer.fd, &length, sizeof(length));
    log = calloc(1, length + 1);
    ck_assert_ptr_nonnull(log);
    t_hear(peer.fd, log, length);
    t_peer_join(&peer);
    return log;
}

START_TEST(test_replay)
{
    char *first  = replay_log(t_seed());
    char *second = replay_log(t_seed());
    char *other  = replay_log(t_seed() + 1);
    int rule;
    char text[32];

    ck_assert_str_eq(first, second);
    ck_assert_str_ne(first, other);
    for (rule = 1; rule <= 10; ++rule) {
        snprintf(text, sizeof(text), " rule %d: ", rule);
        ck_assert_msg((strstr(first, text) != NULL) ||
                      (strstr(other, text) != NULL),
                      "rule %d has never fired", rule);
    }
    free(first);
    free(second);
    free(other);
}
END_TEST

/* ---- what is refused ---- */

struct refusal {
    const char *name;
    const char *value;
    const char *says;
};

static const struct refusal refusals[] = {
    {"SOFTVERBS_FAULTS", "explode", "softverbs: SOFTVERBS_FAULTS: line 1, "
                                    "'explode': there is no fault 'explode'; "
                                    "there are: post, verb, "},
    {"SOFTVERBS_FAULTS", "drop; drop p=7", "line 1, 'drop p=7': p= wants"},
    {"SOFTVERBS_FAULTS", "# nothing", "softverbs: SOFTVERBS_FAULTS: the plan "
                                      "has no rule\n"},
    {"SOFTVERBS_FAULTS", "@/nowhere/plan", "softverbs: SOFTVERBS_FAULTS: "
                                           "cannot read /nowhere/plan: No "
                                           "such file or directory\n"},
    {"SOFTVERBS_FAULTS", "@/tmp", "/tmp is not a file of text\n"},
    {"SOFTVERBS_FAULTS", "@/dev/zero", "/dev/zero is not a file of text\n"},
    {"SOFTVERBS_FAULTS_LOG", "/nowhere/log", "softverbs: SOFTVERBS_FAULTS_LOG: "
                                             "cannot write /nowhere/log: "},
    {"SOFTVERBS_PROCESS", "first", "softverbs: SOFTVERBS_PROCESS=first is not "
                                   "a whole number from 0 to 1000000\n"},
    {"SOFTVERBS_PROCESS", "-1", "is not a whole number"},
    {"SOFTVERBS_PROCESS", "1000001", "is not a whole number"}
};

START_TEST(test_refused)
{
    const struct refusal *r = &refusals[_i];
    struct ibv_device **list;
    char said[4096];
    int fds[2];
    ssize_t n;

    t_fault_plan("drop");
    setenv(r->name, r->value, 1);
    list = ibv_get_device_list(NULL);
    ck_assert_int_eq(pipe(fds), 0);
    dup2(fds[1], STDERR_FILENO);
    close(fds[1]);
    errno = 0;
    ck_assert_ptr_null(ibv_open_device(list[0]));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(ibv_open_device(list[0])); /* nor later */
    close(STDERR_FILENO);
    n = read(fds[0], said, sizeof(said) - 1);
    ck_assert_int_gt(n, 0);
    said[n] = '\0';
    ck_assert_msg(strstr(said, r->says) != NULL, "it says: %s", said);
    ibv_free_device_list(list);
    t_fault_decisions();
}
END_TEST

/* A file, with a comment; the environment's empty value is none. */
START_TEST(test_file)
{
    char path[] = "/tmp/t_fault.plan.XXXXXX", value[64];
    int fd      = mkstemp(path);
    struct t_end ends[2];

    ck_assert_int_ge(fd, 0);
    dprintf(fd, "# the second request\nseed 3\n\n"
                "complete status=GENERAL_ERR n=2\n");
    close(fd);
    snprintf(value, sizeof(value), "@%s", path);
    t_fault_pair(ends, _i ? value : "", 2);
    unlink(path);
    ck_assert_int_eq(send_one(ends, 1), 0);
    ck_assert_int_eq(send_one(ends, 2), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    t_poll_is(ends[0].send_cq, 2, _i ? IBV_WC_GENERAL_ERR : IBV_WC_SUCCESS);
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), _i);
}
END_TEST

/* Plans come and go while two threads send: nothing is lost, and nothing comes
 * twice, by plans that only delay and tell. */
enum { CHANGES = 60 };

static atomic_bool traffic_ends;

static void *traffic(void *arg)
{
    struct t_end *ends = arg;
    uint64_t i;

    for (i = 0; !atomic_load(&traffic_ends); ++i) {
        memcpy(ends[0].buf, &i, sizeof(i));
        ck_assert_int_eq(t_post_recv(&ends[1], i, 1024, 64), 0);
        ck_assert_int_eq(send_one(ends, i), 0);
        t_poll_is(ends[0].send_cq, i, IBV_WC_SUCCESS);
        t_poll_is(ends[1].recv_cq, i, IBV_WC_SUCCESS);
        ck_assert_mem_eq(ends[1].buf + 1024, &i, sizeof(i));
    }
    t_poll_none(ends[1].recv_cq);
    return NULL;
}

START_TEST(test_changed_under_traffic)
{
    struct t_end pairs[2][2], other;
    pthread_t threads[2];
    int i;

    t_fault_plan("delay time=50us p=0.1");
    for (i = 0; i < 2; ++i) {
        t_pair_open(pairs[i], NULL, NULL);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, traffic, pairs[i]),
                         0);
    }
    for (i = 0; i < CHANGES; ++i) {
        t_fault_set("delay time=100us p=0.2; gid-change at=0ms every=1ms; "
                    "event type=PATH_MIG every=10");
        t_end_open(&other, NULL); /* it gets the plan, too */
        if (i % 2 == 0) {
            ck_assert_int_eq(t_fault_ask("clear\n"), 0);
        }
        t_end_close(&other);
    }
    atomic_store(&traffic_ends, true);
    for (i = 0; i < 2; ++i) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        t_pair_close(pairs[i]);
    }
    ck_assert_uint_gt(t_fault_decisions(), CHANGES);
}
END_TEST

/* The child of a fork opens the device with the plan from its beginning. */
static void forked(int fd)
{
    struct t_end ends[2];

    t_pair_open(ends, NULL, NULL);
    t_fault_expect(&ends[1], 2);
    ck_assert_int_eq(send_one(ends, 1), 0);
    ck_assert_int_eq(send_one(ends, 2), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_GENERAL_ERR);
    t_pair_close(ends);
    t_meet(fd);
}

START_TEST(test_fork)
{
    struct t_peer peer;
    struct t_end ends[2];

#if defined(__SANITIZE_THREAD__)
    t_skip("under the thread sanitizer a forked process can start no thread");
#endif
    t_fault_pair(ends, "complete status=GENERAL_ERR n=2", 2);
    ck_assert_int_eq(send_one(ends, 1), 0);
    t_peer_start(&peer, forked);
    t_meet(peer.fd);
    t_peer_join(&peer);
    ck_assert_int_eq(send_one(ends, 2), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_GENERAL_ERR);
    t_pair_close(ends);
    ck_assert_uint_eq(t_fault_decisions(), 2);
}
END_TEST

static Suite *suite_fault_state(void)
{
    Suite *suite   = suite_create("fault_state");
    TCase *objects = tcase_create("objects");
    TCase *port    = tcase_create("port");
    TCase *plan    = tcase_create("plan");

    t_fault_begin();
    tcase_set_timeout(objects, T_TIMEOUT);
    tcase_set_timeout(port, T_TIMEOUT);
    tcase_set_timeout(plan, T_TIMEOUT);
    tcase_add_loop_test(objects, test_qp_error, 0,
                        sizeof(killed) / sizeof(killed[0]));
    tcase_add_test(objects, test_qp_error_datagram);
    tcase_add_test(objects, test_qp_error_at);
    tcase_add_test(objects, test_every_at);
    tcase_add_loop_test(objects, test_event, 0, EVENTS);
    tcase_add_loop_test(objects, test_event_at, 0, EVENTS);
    tcase_add_test(objects, test_overrun_send);
    tcase_add_test(objects, test_overrun_recv);
    tcase_add_test(port, test_link_down_long);
    tcase_add_test(port, test_link_down_short);
    tcase_add_test(port, test_link_of_peer);
    tcase_add_test(port, test_link_of_sender);
    tcase_add_test(port, test_gid_change);
    tcase_add_test(port, test_gid_move);
    tcase_add_test(plan, test_replay);
    tcase_add_loop_test(plan, test_refused, 0,
                        sizeof(refusals) / sizeof(refusals[0]));
    tcase_add_loop_test(plan, test_file, 0, 2);
    tcase_add_test(plan, test_changed_under_traffic);
    tcase_add_test(plan, test_fork);
    suite_add_tcase(suite, objects);
    suite_add_tcase(suite, port);
    suite_add_tcase(suite, plan);
    return suite;
}

T_MAIN(suite_fault_state)
