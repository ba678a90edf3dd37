/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels and asynchronous events: who is told, once, and not when
 * there is nothing to tell.
 */
#include "t_device.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static const struct t_make with_channel = {.channel = true, .depth = 32};

static void set_nonblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    ck_assert_int_ge(flags, 0);
    ck_assert_int_eq(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
}

static bool is_readable(int fd)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};

    return poll(&pfd, 1, 0) == 1;
}

/* The next event of the channel is for this CQ. */
static void event_is_for(struct t_end *end, struct ibv_cq *cq)
{
    struct ibv_cq *got;
    void *context;

    ck_assert_int_eq(ibv_get_cq_event(end->channel, &got, &context), 0);
    ck_assert_ptr_eq(got, cq);
    ck_assert_ptr_eq(context, end);
    ibv_ack_cq_events(got, 1);
}

static void no_event(struct t_end *end)
{
    struct ibv_cq *got;
    void *context;

    set_nonblock(end->channel->fd);
    ck_assert(!is_readable(end->channel->fd));
    ck_assert_int_eq(ibv_get_cq_event(end->channel, &got, &context), -1);
    ck_assert_int_eq(errno, EAGAIN);
}

static void send_one(struct t_end ends[2], unsigned flags)
{
    ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 64), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 2, 0, 64,
                                 IBV_SEND_SIGNALED | flags), 0);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_SUCCESS);
}

START_TEST(test_receive_event)
{
    struct t_end ends[2];
    int i;

    t_pair_open(ends, &with_channel, NULL);
    for (i = 0; i < 100; ++i) {
        ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 0), 0);
        send_one(ends, 0);
        event_is_for(&ends[1], ends[1].recv_cq);
        t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
    }
    no_event(&ends[1]);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_send_event)
{
    struct t_end ends[2];

    t_pair_open(ends, &with_channel, NULL);
    ck_assert_int_eq(ibv_req_notify_cq(ends[0].send_cq, 0), 0);
    send_one(ends, 0);
    event_is_for(&ends[0], ends[0].send_cq);
    no_event(&ends[0]);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_not_armed)
{
    struct t_end ends[2];

    t_pair_open(ends, &with_channel, NULL);
    send_one(ends, 0);
    t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
    no_event(&ends[0]);
    no_event(&ends[1]);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_once)
{
    struct t_end ends[2];
    int i;

    t_pair_open(ends, &with_channel, NULL);
    ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 0), 0);
    for (i = 0; i < 5; ++i) {
        send_one(ends, 0);
    }
    event_is_for(&ends[1], ends[1].recv_cq);
    for (i = 0; i < 5; ++i) {
        t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
    }
    no_event(&ends[1]);
    t_pair_close(ends);
}
END_TEST

/* What is there when the CQ is armed may fire or not, devices differ; what
 * comes afterwards does. */
START_TEST(test_armed_late)
{
    struct t_end ends[2];

    t_pair_open(ends, &with_channel, NULL);
    send_one(ends, 0);
    ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 0), 0);
    t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
    set_nonblock(ends[1].channel->fd);
    if (is_readable(ends[1].channel->fd)) {
        event_is_for(&ends[1], ends[1].recv_cq);
        ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 0), 0);
    }
    send_one(ends, 0);
    while (!is_readable(ends[1].channel->fd)) {
        sched_yield();
    }
    event_is_for(&ends[1], ends[1].recv_cq);
    t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
    no_event(&ends[1]);
    t_pair_close(ends);
}
END_TEST

/* Programs read the event, arm, and then poll: the completion that the event
 * was for is still there when the CQ is armed, and brings no second one. */
START_TEST(test_one_event_each)
{
    struct t_end ends[2];
    int i;

    t_pair_open(ends, &with_channel, NULL);
    ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 0), 0);
    for (i = 0; i < 3; ++i) {
        send_one(ends, 0);
        event_is_for(&ends[1], ends[1].recv_cq);
        ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 0), 0);
        t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
        ck_assert(!is_readable(ends[1].channel->fd));
    }
    t_pair_close(ends);
}
END_TEST

/* Where arming fires for what is there, a program that polls one completion
 * for each event gets them all. */
START_TEST(test_event_for_each)
{
    struct t_end ends[2];
    int i;

    t_pair_open(ends, &with_channel, NULL);
    for (i = 0; i < 3; ++i) {
        send_one(ends, 0);
    }
    ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 0), 0);
    for (i = 0; (i < 3) && is_readable(ends[1].channel->fd); ++i) {
        event_is_for(&ends[1], ends[1].recv_cq);
        ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 0), 0);
        t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
    }
    ck_assert((i == 0) || (i == 3));
    ck_assert(!is_readable(ends[1].channel->fd));
    t_pair_close(ends);
}
END_TEST

START_TEST(test_solicited)
{
    struct t_end ends[2];

    t_pair_open(ends, &with_channel, NULL);
    ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 1), 0);
    send_one(ends, 0);
    t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
    no_event(&ends[1]);
    send_one(ends, IBV_SEND_SOLICITED);
    t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
    event_is_for(&ends[1], ends[1].recv_cq);

    /* asking for all overrides asking for some, not the other way round */
    ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 0), 0);
    ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 1), 0);
    send_one(ends, 0);
    t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
    event_is_for(&ends[1], ends[1].recv_cq);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_solicited_by_error)
{
    struct t_end ends[2];

    t_pair_open(ends, &with_channel, NULL);
    ck_assert_int_eq(ibv_req_notify_cq(ends[0].send_cq, 1), 0);
    send_one(ends, 0);
    no_event(&ends[0]);
    /* no RECV over there, and no patience here */
    ck_assert_int_eq(t_post_send(&ends[0], 3, 0, 64, 0), 0);
    t_poll_is(ends[0].send_cq, 3, IBV_WC_RNR_RETRY_EXC_ERR);
    if (t_differs(T_DIFF_ERROR_SOLICITED)) {
        t_end_move(&ends[1], IBV_QPS_ERR); /* waits for the driver's tasks */
        no_event(&ends[0]);
    } else {
        event_is_for(&ends[0], ends[0].send_cq);
    }
    t_pair_close(ends);
}
END_TEST

/* ---- sleeping ---- */

struct sleeper {
    struct t_end *end;
    int           messages;
};

/* Sleeps in epoll, polls only when told, and gets everything. */
static void *sleep_and_receive(void *arg)
{
    struct sleeper *s        = arg;
    struct epoll_event event = {.events = EPOLLIN};
    int epoll_fd             = epoll_create1(EPOLL_CLOEXEC);
    int got                  = 0;
    struct ibv_wc wc;

    ck_assert_int_ge(epoll_fd, 0);
    ck_assert_int_eq(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, s->end->channel->fd,
                               &event), 0);
    while (got < s->messages) {
        ck_assert_int_eq(epoll_wait(epoll_fd, &event, 1, -1), 1);
        event_is_for(s->end, s->end->recv_cq);
        ck_assert_int_eq(ibv_req_notify_cq(s->end->recv_cq, 0), 0);
        while (ibv_poll_cq(s->end->recv_cq, 1, &wc) == 1) {
            ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
            ck_assert_int_eq(t_post_recv(s->end, 1, 0, s->end->size), 0);
            ++got;
        }
    }
    close(epoll_fd);
    return NULL;
}

static void check_sleeper(const struct t_make *make, size_t length,
                          int messages)
{
    const struct t_link link = {.rnr_retry = 7};
    struct t_end ends[2];
    struct sleeper s = {.end = &ends[1], .messages = messages};
    pthread_t thread;
    int i;

    t_pair_open(ends, make, &link);
    for (i = 0; i < 8; ++i) {
        ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, ends[1].size), 0);
    }
    ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 0), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, sleep_and_receive, &s), 0);
    for (i = 0; i < messages; ++i) {
        ck_assert_int_eq(t_post_send(&ends[0], i, 0, length,
                                     IBV_SEND_SIGNALED), 0);
        t_poll_is(ends[0].send_cq, i, IBV_WC_SUCCESS);
    }
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    t_pair_close(ends);
}

START_TEST(test_sleeper)
{
    check_sleeper(&with_channel, 64, 2000);
}
END_TEST

/* Messages for which no device has the room that a sleeping receiver would
 * have to make. */
START_TEST(test_sleeper_long)
{
    const struct t_make make = {.channel = true, .size = 1 << 20};

    check_sleeper(&make, 1 << 20, 50);
}
END_TEST

/* Both ends sleep; the answer wakes the asker. */
static void *answer(void *arg)
{
    struct sleeper *s = arg;
    struct ibv_wc wc;
    int got           = 0;

    while (got < s->messages) {
        event_is_for(s->end, s->end->recv_cq);
        ck_assert_int_eq(ibv_req_notify_cq(s->end->recv_cq, 0), 0);
        while (ibv_poll_cq(s->end->recv_cq, 1, &wc) == 1) {
            ck_assert_int_eq(t_post_recv(s->end, 1, 0, 64), 0);
            ck_assert_int_eq(t_post_send(s->end, 2, 0, 64, 0), 0);
            ++got;
        }
    }
    return NULL;
}

START_TEST(test_ping_pong_asleep)
{
    enum { ROUNDS = 500 };
    const struct t_make make = {.channel = true, .depth = 1024};
    struct t_end ends[2];
    struct sleeper s = {.end = &ends[1], .messages = ROUNDS};
    pthread_t thread;
    struct ibv_wc wc;
    int i;

    t_pair_open(ends, &make, NULL);
    for (i = 0; i < 2; ++i) {
        ck_assert_int_eq(t_post_recv(&ends[i], 1, 0, 64), 0);
        ck_assert_int_eq(t_post_recv(&ends[i], 1, 0, 64), 0);
        ck_assert_int_eq(ibv_req_notify_cq(ends[i].recv_cq, 0), 0);
    }
    ck_assert_int_eq(pthread_create(&thread, NULL, answer, &s), 0);
    for (i = 0; i < ROUNDS; ++i) {
        ck_assert_int_eq(t_post_send(&ends[0], 2, 0, 64, 0), 0);
        do { /* an event may come for what the last poll has taken */
            event_is_for(&ends[0], ends[0].recv_cq);
            ck_assert_int_eq(ibv_req_notify_cq(ends[0].recv_cq, 0), 0);
        } while (ibv_poll_cq(ends[0].recv_cq, 1, &wc) == 0);
        ck_assert_int_eq(t_post_recv(&ends[0], 1, 0, 64), 0);
    }
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    t_pair_close(ends);
}
END_TEST

/* A send that waits for its peer's RECV completes although its owner sleeps. */
START_TEST(test_sender_sleeps)
{
    const struct t_link link = {.rnr_retry = 7, .min_rnr = 12};
    struct t_end ends[2];

    t_pair_open(ends, &with_channel, &link);
    ck_assert_int_eq(ibv_req_notify_cq(ends[0].send_cq, 0), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 2, 0, 64, IBV_SEND_SIGNALED), 0);
    ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 64), 0);
    event_is_for(&ends[0], ends[0].send_cq);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_SUCCESS);
    t_pair_close(ends);
}
END_TEST

/* A datagram that waits for a RECV makes an event when it gets one. */
START_TEST(test_late_recv)
{
    const struct t_make make = {.type = IBV_QPT_UD, .channel = true};
    struct t_address to;
    struct t_end ends[2];
    struct ibv_ah *ah;
    struct ibv_wc wc;

    t_pair_open(ends, &make, NULL);
    if (strcmp(ibv_get_device_name(ends[0].context->device), "softverbs0")) {
        t_skip("this device drops a datagram for which there is no RECV");
    }

    to = t_end_address(&ends[1]);
    ah = t_create_ah(&ends[0], &to);
    ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 0), 0);
    ck_assert_int_eq(t_post_datagram(&ends[0], ah, to.qpn, T_QKEY, 2, 0, 64),
                     0);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_SUCCESS);
    event_is_for(&ends[1], ends[1].recv_cq);
    ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 0), 0);
    ck_assert_int_eq(ibv_poll_cq(ends[1].recv_cq, 1, &wc), 0);
    ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 1024), 0);
    event_is_for(&ends[1], ends[1].recv_cq);
    t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    t_pair_close(ends);
}
END_TEST

/* ---- destroying ---- */

/* An event of a destroyed CQ is not told, the next one is. */
START_TEST(test_destroy_with_unread_event)
{
    struct t_end ends[2];
    struct ibv_cq *doomed;
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    struct ibv_qp *qp;
    struct t_end other;
    struct t_address address[2];

    t_pair_open(ends, &with_channel, NULL);
    doomed = ibv_create_cq(ends[1].context, 8, &ends[1], ends[1].channel, 0);
    ck_assert_ptr_nonnull(doomed);
    ck_assert_int_eq(ibv_query_qp(ends[1].qp, &attr, IBV_QP_CAP, &init), 0);
    init.recv_cq = doomed;
    qp           = ibv_create_qp(ends[1].pd, &init);
    ck_assert_ptr_nonnull(qp);

    other    = ends[1];
    other.qp = qp;
    t_end_move(&ends[0], IBV_QPS_RESET);
    address[0] = t_end_address(&ends[0]);
    address[1] = t_end_address(&other);
    t_end_up(&ends[0], &address[1], NULL);
    t_end_up(&other, &address[0], NULL);
    ck_assert_int_eq(ibv_req_notify_cq(doomed, 0), 0);
    ck_assert_int_eq(t_post_recv(&other, 1, 0, 64), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 2, 0, 64, IBV_SEND_SIGNALED), 0);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_SUCCESS);
    while (!is_readable(ends[1].channel->fd)) {
        sched_yield();
    }
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_destroy_cq(doomed), 0);
    /* nor is it told of a CQ that took the old one's place */
    doomed = ibv_create_cq(ends[1].context, 8, &ends[1], ends[1].channel, 0);
    ck_assert_ptr_nonnull(doomed);

    t_end_move(&ends[0], IBV_QPS_RESET);
    t_end_move(&ends[1], IBV_QPS_RESET);
    address[1] = t_end_address(&ends[1]);
    t_end_up(&ends[0], &address[1], NULL);
    t_end_up(&ends[1], &address[0], NULL);
    ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 0), 0);
    send_one(ends, 0);
    event_is_for(&ends[1], ends[1].recv_cq);
    ck_assert_int_eq(ibv_destroy_cq(doomed), 0);
    t_pair_close(ends);
}
END_TEST

struct destroyer {
    struct ibv_cq *cq;
    atomic_bool    done;
};

static void *destroy(void *arg)
{
    struct destroyer *d = arg;

    ck_assert_int_eq(ibv_destroy_cq(d->cq), 0);
    atomic_store(&d->done, true);
    return NULL;
}

START_TEST(test_destroy_waits_for_ack)
{
    struct t_end ends[2];
    struct destroyer d = {0};
    struct ibv_cq *got;
    pthread_t thread;
    void *context;
    int i;

    t_pair_open(ends, &with_channel, NULL);
    ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 0), 0);
    send_one(ends, 0);
    ck_assert_int_eq(ibv_get_cq_event(ends[1].channel, &got, &context), 0);
    ck_assert_int_eq(ibv_destroy_qp(ends[1].qp), 0);
    d.cq = got;
    ck_assert_int_eq(pthread_create(&thread, NULL, destroy, &d), 0);
    for (i = 0; i < 10000; ++i) {
        sched_yield();
    }
    ck_assert(!atomic_load(&d.done));
    ibv_ack_cq_events(got, 1);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(atomic_load(&d.done));

    ends[1].qp      = NULL;
    ends[1].recv_cq = ends[1].send_cq;
    t_pair_close(ends);
}
END_TEST

/* ---- asynchronous events ---- */

static void async_is(struct t_end *end, enum ibv_event_type type)
{
    struct ibv_async_event event;

    ck_assert_int_eq(ibv_get_async_event(end->context, &event), 0);
    ck_assert_int_eq(event.event_type, type);
    ibv_ack_async_event(&event);
}

START_TEST(test_async_nonblock)
{
    struct ibv_async_event event;
    struct t_end ends[2];

    t_pair_open(ends, NULL, NULL);
    set_nonblock(ends[0].context->async_fd);
    ck_assert(!is_readable(ends[0].context->async_fd));
    ck_assert_int_eq(ibv_get_async_event(ends[0].context, &event), -1);
    ck_assert_int_eq(errno, EAGAIN);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_async_drained)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD,
                               .en_sqd_async_notify = 1};
    struct t_end ends[2];

    t_pair_open(ends, NULL, NULL);
    ck_assert_int_eq(ibv_modify_qp(ends[0].qp, &attr,
                                   IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
                     0);
    async_is(&ends[0], IBV_EVENT_SQ_DRAINED);
    t_pair_close(ends);
}
END_TEST

/* The event comes, unless the device differs and does not have it. */
static void async_is_unless(struct t_end *end, enum ibv_event_type type,
                            enum t_difference difference)
{
    if (t_differs(difference)) {
        ck_assert(!is_readable(end->context->async_fd));
    } else {
        async_is(end, type);
    }
}

START_TEST(test_async_established)
{
    struct t_address address[2];
    struct t_end ends[2];

    t_end_open(&ends[0], NULL);
    t_end_open(&ends[1], NULL);
    address[0] = t_end_address(&ends[0]);
    address[1] = t_end_address(&ends[1]);
    t_end_init(&ends[1], NULL);
    t_end_rtr(&ends[1], &address[0], NULL);
    t_end_up(&ends[0], &address[1], NULL);
    send_one(ends, 0);
    t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
    async_is_unless(&ends[1], IBV_EVENT_COMM_EST, T_DIFF_ASYNC_EVENTS);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_async_access)
{
    struct t_address to;
    struct t_end ends[2];

    t_pair_open(ends, NULL, NULL);
    to       = t_end_address(&ends[1]);
    to.rkey ^= 1;
    ck_assert_int_eq(t_post_rdma(&ends[0], IBV_WR_RDMA_WRITE, 1, 0, 8, &to, 0),
                     0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_REM_ACCESS_ERR);
    async_is_unless(&ends[1], IBV_EVENT_QP_ACCESS_ERR, T_DIFF_ASYNC_ACCESS);
    t_pair_close(ends);
}
END_TEST

/* A request that makes no sense is another event than one that is denied. */
START_TEST(test_async_request)
{
    struct t_address to;
    struct t_end ends[2];

    t_softverbs_only("its driver does not let such a request out");
    t_pair_open(ends, NULL, NULL);
    to = t_end_address(&ends[1]);
    ck_assert_int_eq(t_post_atomic(&ends[0], IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0,
                                   &to, 4, 1, 0), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_REM_INV_REQ_ERR);
    async_is(&ends[1], IBV_EVENT_QP_REQ_ERR);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_async_last_wqe)
{
    const struct t_make make = {.srq = true};
    struct t_end ends[2];

    t_pair_open(ends, &make, NULL);
    t_end_move(&ends[1], IBV_QPS_ERR);
    async_is_unless(&ends[1], IBV_EVENT_QP_LAST_WQE_REACHED,
                    T_DIFF_ASYNC_LAST_WQE);
    t_pair_close(ends);
}
END_TEST

/* An event that nobody has read does not outlive its QP. */
START_TEST(test_async_forgotten)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD,
                               .en_sqd_async_notify = 1};
    struct ibv_async_event event;
    struct t_end ends[2];

    t_pair_open(ends, NULL, NULL);
    ck_assert_int_eq(ibv_modify_qp(ends[0].qp, &attr,
                                   IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
                     0);
    while (!is_readable(ends[0].context->async_fd)) {
        sched_yield();
    }
    ck_assert_int_eq(ibv_destroy_qp(ends[0].qp), 0);
    ends[0].qp = NULL;
    set_nonblock(ends[0].context->async_fd);
    ck_assert(!is_readable(ends[0].context->async_fd));
    ck_assert_int_eq(ibv_get_async_event(ends[0].context, &event), -1);
    t_pair_close(ends);
}
END_TEST

static Suite *suite_event(void)
{
    return t_suite("event",
                   "told", test_receive_event,
                   "told", test_send_event,
                   "told", test_once,
                   "told", test_one_event_each,
                   "told", test_event_for_each,
                   "told", test_solicited,
                   "told", test_solicited_by_error,
                   "not_told", test_not_armed,
                   "told", test_armed_late,
                   "sleep", test_sleeper,
                   "sleep", test_sleeper_long,
                   "sleep", test_ping_pong_asleep,
                   "sleep", test_sender_sleeps,
                   "sleep", test_late_recv,
                   "destroy", test_destroy_with_unread_event,
                   "destroy", test_destroy_waits_for_ack,
                   "async", test_async_nonblock,
                   "async", test_async_drained,
                   "async", test_async_established,
                   "async", test_async_access,
                   "async", test_async_request,
                   "async", test_async_last_wqe,
                   "async", test_async_forgotten,
                   NULL);
}

T_MAIN(suite_event)
