/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues: RECVs go to whoever needs one, the limit event comes
 * once, and nobody's death costs the others their RECVs.
 */
#include "t_device.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { QPS = 4, RECVS = 256, SIZE = 64 };

/* One receiver, an SRQ, and QPS connections into it. */
struct star {
    struct t_end   hub;
    struct ibv_qp *spokes[QPS]; /* hub's sides; the first is hub.qp */
    struct t_end   far[QPS];
};

static struct ibv_qp *another_qp(struct t_end *end, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    struct ibv_qp *qp;

    ck_assert_int_eq(ibv_query_qp(end->qp, &attr, IBV_QP_CAP, &init), 0);
    init.cap     = attr.cap;
    init.qp_type = type;
    qp           = ibv_create_qp(end->pd, &init);
    ck_assert_ptr_nonnull(qp);
    return qp;
}

/* The hub as an end whose QP is one of its spokes. */
static struct t_end spoke(struct star *star, int i)
{
    struct t_end end = star->hub;

    end.qp = star->spokes[i];
    return end;
}

static void star_open(struct star *star)
{
    const struct t_make make = {.srq = true, .depth = RECVS};
    const struct t_link link = {.rnr_retry = 7};
    struct t_address near, far;
    struct t_end side;
    int i;

    t_end_open(&star->hub, &make);
    for (i = 0; i < QPS; ++i) {
        star->spokes[i] = (i == 0) ? star->hub.qp :
                          another_qp(&star->hub, IBV_QPT_RC);
        t_end_open(&star->far[i], NULL);
        side = spoke(star, i);
        near = t_end_address(&side);
        far  = t_end_address(&star->far[i]);
        t_end_up(&side, &far, &link);
        t_end_up(&star->far[i], &near, &link);
    }
}

static void star_close(struct star *star)
{
    int i;

    for (i = 0; i < QPS; ++i) {
        if (i > 0) {
            ck_assert_int_eq(ibv_destroy_qp(star->spokes[i]), 0);
        }
        t_end_close(&star->far[i]);
    }
    t_end_close(&star->hub);
}

START_TEST(test_shared)
{
    struct star star;
    struct ibv_wc wc;
    int i, round;

    star_open(&star);
    for (i = 0; i < RECVS; ++i) {
        ck_assert_int_eq(t_post_recv(&star.hub, i, i * SIZE, SIZE), 0);
    }
    for (round = 0; round < RECVS / QPS; ++round) {
        for (i = 0; i < QPS; ++i) {
            star.far[i].buf[0] = i;
            ck_assert_int_eq(t_post_send(&star.far[i], 7, 0, SIZE,
                                         IBV_SEND_SIGNALED), 0);
            t_poll_is(star.far[i].send_cq, 7, IBV_WC_SUCCESS);
        }
        for (i = 0; i < QPS; ++i) {
            wc = t_poll(star.hub.recv_cq);
            ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
            ck_assert_uint_lt(wc.wr_id, RECVS);
            ck_assert_uint_eq(wc.qp_num,
                              star.spokes[star.hub.buf[wc.wr_id * SIZE]]->
                                      qp_num);
        }
    }

    /* none left: the next waits for one more */
    ck_assert_int_eq(t_post_send(&star.far[1], 8, 0, SIZE,
                                 IBV_SEND_SIGNALED), 0);
    t_poll_none(star.far[1].send_cq);
    ck_assert_int_eq(t_post_recv(&star.hub, 0, 0, SIZE), 0);
    t_poll_is(star.far[1].send_cq, 8, IBV_WC_SUCCESS);
    star_close(&star);
}
END_TEST

/* The QP of spoke 0 goes to ERR: what it has not used of so many RECVs is there
 * for another one. Returns how many it has. */
static int check_death_of_one(struct star *star, int recvs)
{
    struct t_end side = spoke(star, 0);
    struct ibv_wc wc;
    int i, used = 0;

    t_end_move(&side, IBV_QPS_ERR);
    while (ibv_poll_cq(star->hub.recv_cq, 1, &wc) == 1) {
        ++used;
    }
    for (i = 0; i < recvs - used; ++i) {
        ck_assert_int_eq(t_post_send(&star->far[1], i, 0, SIZE,
                                     IBV_SEND_SIGNALED), 0);
        t_poll_is(star->far[1].send_cq, i, IBV_WC_SUCCESS);
        ck_assert_int_eq(t_poll(star->hub.recv_cq).status, IBV_WC_SUCCESS);
    }
    return used;
}

/* A QP that goes to ERR, with messages in its ring and under way, gives the
 * RECVs that it did not use to the others. */
START_TEST(test_death_of_one)
{
    struct star star;
    int i;

    star_open(&star);
    for (i = 0; i < 16; ++i) {
        ck_assert_int_eq(t_post_recv(&star.hub, i, 0, SIZE), 0);
    }
    for (i = 0; i < 6; ++i) {
        ck_assert_int_eq(t_post_send(&star.far[0], i, 0, SIZE, 0), 0);
    }
    ck_assert_int_le(check_death_of_one(&star, 16), 6);
    star_close(&star);
}
END_TEST

/* The same for a RECV that a message under way has claimed and not used: more
 * than any ring holds is sent to a QP that nobody polls. */
START_TEST(test_death_of_one_with_claims)
{
    enum { LONG = 15000, COUNT = 16 };
    struct star star;
    int i;

    star_open(&star);
    for (i = 0; i < COUNT; ++i) {
        ck_assert_int_eq(t_post_recv(&star.hub, i, 0, LONG), 0);
    }
    for (i = 0; i < COUNT; ++i) {
        ck_assert_int_eq(t_post_send(&star.far[0], i, 0, LONG, 0), 0);
    }
    (void)check_death_of_one(&star, COUNT);
    star_close(&star);
}
END_TEST

START_TEST(test_limit)
{
    const struct t_make make = {.srq = true, .depth = 32};
    struct ibv_srq_attr attr = {.srq_limit = 4};
    struct ibv_async_event event;
    struct t_end ends[2];
    int i, round;

    t_pair_open(ends, &make, NULL);
    for (round = 0; round < 3; ++round) {
        for (i = 0; i < 8; ++i) {
            ck_assert_int_eq(t_post_recv(&ends[1], i, 0, SIZE), 0);
        }
        ck_assert_int_eq(ibv_modify_srq(ends[1].srq, &attr, IBV_SRQ_LIMIT), 0);
        for (i = 0; i < 8; ++i) {
            ck_assert_int_eq(t_post_send(&ends[0], i, 0, SIZE,
                                         IBV_SEND_SIGNALED), 0);
            t_poll_is(ends[0].send_cq, i, IBV_WC_SUCCESS);
            t_poll_is(ends[1].recv_cq, i, IBV_WC_SUCCESS);
        }
        ck_assert_int_eq(ibv_get_async_event(ends[1].context, &event), 0);
        ck_assert_int_eq(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
        ck_assert_ptr_eq(event.element.srq, ends[1].srq);
        ibv_ack_async_event(&event);
    }

    /* it was told once for each arming */
    ck_assert_int_eq(fcntl(ends[1].context->async_fd, F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(ibv_get_async_event(ends[1].context, &event), -1);
    attr.srq_limit = 1 << 20;
    ck_assert_int_ne(ibv_modify_srq(ends[1].srq, &attr, IBV_SRQ_LIMIT), 0);
    t_pair_close(ends);
}
END_TEST

/* Datagrams and connections out of one queue. */
START_TEST(test_with_datagrams)
{
    const struct t_make ud = {.type = IBV_QPT_UD};
    struct t_address to;
    struct t_end side, from;
    struct star star;
    struct ibv_ah *ah;
    struct ibv_wc wc;
    int i, datagrams = 0;

    star_open(&star);
    side           = star.hub;
    side.make.type = IBV_QPT_UD;
    side.qp        = another_qp(&star.hub, IBV_QPT_UD);
    to             = t_end_address(&side);
    t_end_up(&side, &to, NULL);
    t_end_open(&from, &ud);
    t_end_up(&from, &to, NULL);
    ah = t_create_ah(&from, &to);

    for (i = 0; i < 60; ++i) {
        ck_assert_int_eq(t_post_recv(&star.hub, i, 0, 2 * SIZE), 0);
    }
    for (i = 0; i < 30; ++i) {
        ck_assert_int_eq(t_post_datagram(&from, ah, to.qpn, T_QKEY, i, 0,
                                         SIZE), 0);
        t_poll_is(from.send_cq, i, IBV_WC_SUCCESS);
        ck_assert_int_eq(t_post_send(&star.far[i % QPS], i, 0, SIZE,
                                     IBV_SEND_SIGNALED), 0);
        t_poll_is(star.far[i % QPS].send_cq, i, IBV_WC_SUCCESS);
    }
    for (i = 0; i < 60; ++i) {
        wc = t_poll(star.hub.recv_cq);
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        datagrams += (wc.qp_num == side.qp->qp_num);
        ck_assert_uint_eq(wc.byte_len, (wc.qp_num == side.qp->qp_num) ?
                                               SIZE + 40 : SIZE);
    }
    ck_assert_int_eq(datagrams, 30);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    ck_assert_int_eq(ibv_destroy_qp(side.qp), 0);
    t_end_close(&from);
    star_close(&star);
}
END_TEST

/* ---- two threads post while messages come ---- */

enum { POSTS = 3000 };

static void *post_many(void *arg)
{
    struct t_end *end = arg;
    int i;

    for (i = 0; i < POSTS; ++i) {
        while (t_post_recv(end, i, 0, SIZE) != 0) {
            sched_yield(); /* full: the poller frees slots */
        }
    }
    return NULL;
}

START_TEST(test_two_posters)
{
    const struct t_make make = {.srq = true, .depth = 64};
    const struct t_link link = {.rnr_retry = 7, .min_rnr = 1};
    struct t_end ends[2];
    int seen[POSTS]  = {0};
    int sent         = 0, got = 0, done = 0, i;
    pthread_t thread[2];
    struct ibv_wc wc;

    t_pair_open(ends, &make, &link);
    for (i = 0; i < 2; ++i) {
        ck_assert_int_eq(pthread_create(&thread[i], NULL, post_many, &ends[1]),
                         0);
    }
    while (got < 2 * POSTS) {
        if ((sent < 2 * POSTS) && (sent - done < 32)) {
            ck_assert_int_eq(t_post_send(&ends[0], sent, 0, 8,
                                         IBV_SEND_SIGNALED), 0);
            ++sent;
        }
        while (ibv_poll_cq(ends[0].send_cq, 1, &wc) == 1) {
            ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
            ++done;
        }
        while (ibv_poll_cq(ends[1].recv_cq, 1, &wc) == 1) {
            ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
            ++seen[wc.wr_id];
            ++got;
        }
    }
    for (i = 0; i < 2; ++i) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    }
    for (i = 0; i < POSTS; ++i) {
        ck_assert_int_eq(seen[i], 2);
    }
    t_pair_close(ends);
}
END_TEST

static Suite *suite_srq(void)
{
    return t_suite("srq",
                   "shared", test_shared,
                   "shared", test_death_of_one,
                   "shared", test_death_of_one_with_claims,
                   "shared", test_with_datagrams,
                   "limit", test_limit,
                   "threads", test_two_posters,
                   NULL);
}

T_MAIN(suite_srq)
