/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two and more processes: traffic of all kinds with its data checked, sleepers,
 * and the sudden death of one side.
 */
#include "t_device.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BIG = 1 << 20 };

/* Opens an end and connects it to that of the process at the other side of fd.
 * Both sides return at about the same time. */
static struct t_address connect_over(int fd, struct t_end *end,
                                     const struct t_make *make,
                                     const struct t_link *link)
{
    struct t_address to;

    t_end_open(end, make);
    to = t_swap(fd, end);
    t_end_up(end, &to, link);
    t_meet(fd);
    return to;
}

static void close_over(int fd, struct t_end *end)
{
    t_meet(fd);
    t_end_close(end);
}

/* ---- a stream both ways, checked ---- */

enum { STREAM = 4000, WINDOW = 32, LONGEST = 20000 };

static const struct t_make stream_make = {
    .depth = WINDOW, .size = 2 * WINDOW * LONGEST
};

static size_t stream_length(uint32_t number)
{
    t_rng_t rng;

    t_rng_init(&rng, number);
    return t_rng_range(&rng, 8, t_rng_once_in(&rng, 4) ? LONGEST : 300);
}

/* What the message with this number looks like. */
static void stream_fill(uint8_t *to, uint32_t number, size_t length)
{
    t_rng_t rng;

    t_rng_init(&rng, number + 1000000);
    t_rng_fill(&rng, to, length);
}

static void stream_run(int fd)
{
    static uint8_t expected[LONGEST];
    uint32_t posted = 0, got = 0, sent = 0, done = 0;
    const struct t_link link = {.rnr_retry = 7, .timeout = 18, .retry_cnt = 6};
    struct t_end end;
    struct ibv_wc wc;
    size_t at;

    connect_over(fd, &end, &stream_make, &link);
    while ((got < STREAM) || (done < STREAM)) {
        while ((posted < STREAM) && (posted - got < WINDOW)) {
            at = (WINDOW + posted % WINDOW) * LONGEST;
            ck_assert_int_eq(t_post_recv(&end, posted++, at, LONGEST), 0);
        }
        if ((sent < STREAM) && (sent - done < WINDOW)) {
            at = (sent % WINDOW) * LONGEST;
            stream_fill(end.buf + at, sent, stream_length(sent));
            ck_assert_int_eq(t_post_send(&end, sent, at, stream_length(sent),
                                         IBV_SEND_SIGNALED), 0);
            ++sent;
        }
        while (ibv_poll_cq(end.send_cq, 1, &wc) == 1) {
            ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
            ck_assert_uint_eq(wc.wr_id, done++);
        }
        while (ibv_poll_cq(end.recv_cq, 1, &wc) == 1) {
            ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
            ck_assert_uint_eq(wc.wr_id, got);
            ck_assert_uint_eq(wc.byte_len, stream_length(got));
            stream_fill(expected, got, wc.byte_len);
            ck_assert_mem_eq(end.buf + (WINDOW + got % WINDOW) * LONGEST,
                             expected, wc.byte_len);
            ++got;
        }
    }
    close_over(fd, &end);
}

START_TEST(test_stream)
{
    struct t_peer peer;

    t_peer_start(&peer, stream_run);
    stream_run(peer.fd);
    t_peer_join(&peer);
}
END_TEST

/* ---- WRITE, READ, atomics ---- */

static const struct t_make big_make = {.size = 2 * BIG};

static void rdma_target(int fd)
{
    struct t_end end;

    connect_over(fd, &end, &big_make, NULL);
    /* does nothing at all: what is done to its memory needs no help */
    close_over(fd, &end);
}

START_TEST(test_rdma)
{
    struct t_peer peer;
    struct t_address to;
    struct t_end end;
    size_t length, at;
    t_rng_t rng;
    int i;

    t_peer_start(&peer, rdma_target);
    to = connect_over(peer.fd, &end, &big_make, NULL);
    t_rng_init(&rng, 11);
    for (i = 0; i < 200; ++i) {
        length = t_rng_below(&rng, t_rng_once_in(&rng, 8) ? BIG : 5000);
        at     = t_rng_below(&rng, BIG);
        t_rng_fill(&rng, end.buf, length);
        memset(end.buf + BIG, 0, length);
        ck_assert_int_eq(t_post_rdma(&end, IBV_WR_RDMA_WRITE, 1, 0, length,
                                     &to, at), 0);
        ck_assert_int_eq(t_post_rdma(&end, IBV_WR_RDMA_READ, 2, BIG, length,
                                     &to, at), 0);
        t_poll_is(end.send_cq, 1, IBV_WC_SUCCESS);
        t_poll_is(end.send_cq, 2, IBV_WC_SUCCESS);
        ck_assert_mem_eq(end.buf, end.buf + BIG, length);
    }
    close_over(peer.fd, &end);
    t_peer_join(&peer);
}
END_TEST

enum { ADDERS = 3, ADDS = 20000 };

static void add_many(int fd)
{
    struct t_address to;
    struct t_end end;
    int i;

    to = connect_over(fd, &end, NULL, NULL);
    t_hear(fd, &to, sizeof(to)); /* all add to the same word */
    for (i = 0; i < (int)t_times(ADDS); ++i) {
        ck_assert_int_eq(t_post_atomic(&end, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0,
                                       &to, 0, 1, 0), 0);
        t_poll_is(end.send_cq, 1, IBV_WC_SUCCESS);
    }
    close_over(fd, &end);
}

START_TEST(test_atomics_of_many)
{
    struct t_peer peer[ADDERS];
    struct t_end end[ADDERS];
    struct t_address own;
    struct ibv_mr *mr;
    struct ibv_pd *pd;
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    struct t_address to;
    int i;

    for (i = 0; i < ADDERS; ++i) {
        t_peer_start(&peer[i], add_many);
    }
    /* one PD for all ends, as the word has one key */
    t_end_open(&end[0], NULL);
    pd = end[0].pd;
    mr = end[0].mr;
    ck_assert_int_eq(ibv_query_qp(end[0].qp, &attr, IBV_QP_CAP, &init), 0);
    for (i = 0; i < ADDERS; ++i) {
        if (i > 0) {
            end[i]    = end[0];
            init.cap  = attr.cap;
            end[i].qp = ibv_create_qp(pd, &init);
            ck_assert_ptr_nonnull(end[i].qp);
        }
        to = t_swap(peer[i].fd, &end[i]);
        t_end_up(&end[i], &to, NULL);
        t_meet(peer[i].fd);
    }
    own = t_end_address(&end[0]);
    for (i = 0; i < ADDERS; ++i) {
        t_tell(peer[i].fd, &own, sizeof(own));
    }
    for (i = 0; i < ADDERS; ++i) {
        t_meet(peer[i].fd);
        t_peer_join(&peer[i]);
    }
    ck_assert_uint_eq(*(uint64_t*)mr->addr, ADDERS * t_times(ADDS));
    for (i = ADDERS - 1; i > 0; --i) {
        ck_assert_int_eq(ibv_destroy_qp(end[i].qp), 0);
    }
    t_end_close(&end[0]);
}
END_TEST

/* ---- sleepers ---- */

static const struct t_make sleeper_make = {
    .channel = true, .size = BIG, .depth = 64
};

/* Sleeps on its channel, answers what comes with the same length. */
static void echo(int fd)
{
    const struct t_link link = {.rnr_retry = 7, .timeout = 18, .retry_cnt = 6};
    struct t_address to;
    struct ibv_cq *cq;
    struct t_end end;
    struct ibv_wc wc;
    void *context;
    int i, rounds, got = 0;

    t_end_open(&end, &sleeper_make);
    t_end_init(&end, &link);
    for (i = 0; i < 4; ++i) {
        ck_assert_int_eq(t_post_recv(&end, 1, 0, BIG), 0);
    }
    ck_assert_int_eq(ibv_req_notify_cq(end.recv_cq, 0), 0);
    to = t_swap(fd, &end);
    t_end_rtr(&end, &to, &link);
    t_end_rts(&end, &link);
    t_meet(fd);
    t_hear(fd, &rounds, sizeof(rounds));
    while (got < rounds) {
        ck_assert_int_eq(ibv_get_cq_event(end.channel, &cq, &context), 0);
        ibv_ack_cq_events(cq, 1);
        ck_assert_int_eq(ibv_req_notify_cq(cq, 0), 0);
        while (ibv_poll_cq(end.recv_cq, 1, &wc) == 1) {
            ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
            ck_assert_int_eq(t_post_recv(&end, 1, 0, BIG), 0);
            ck_assert_int_eq(t_post_send(&end, 2, 0, wc.byte_len,
                                         IBV_SEND_SIGNALED), 0);
            t_poll_is(end.send_cq, 2, IBV_WC_SUCCESS);
            ++got;
        }
    }
    close_over(fd, &end);
}

static void check_echo(size_t length, int rounds)
{
    const struct t_link link = {.rnr_retry = 7, .timeout = 18, .retry_cnt = 6};
    struct t_peer peer;
    struct t_end end;
    int i;

    t_peer_start(&peer, echo);
    connect_over(peer.fd, &end, &sleeper_make, &link);
    t_tell(peer.fd, &rounds, sizeof(rounds));
    for (i = 0; i < rounds; ++i) {
        ck_assert_int_eq(t_post_recv(&end, 1, 0, BIG), 0);
        ck_assert_int_eq(t_post_send(&end, 2, 0, length, IBV_SEND_SIGNALED),
                         0);
        t_poll_is(end.send_cq, 2, IBV_WC_SUCCESS);
        ck_assert_uint_eq(t_poll_is(end.recv_cq, 1, IBV_WC_SUCCESS).byte_len,
                          length);
    }
    close_over(peer.fd, &end);
    t_peer_join(&peer);
}

START_TEST(test_sleeper)
{
    check_echo(64, 1000);
}
END_TEST

START_TEST(test_sleeper_long)
{
    check_echo(BIG, 30);
}
END_TEST

/* A receiver that neither polls nor sleeps on its channel does not keep the
 * sender: the device takes the message in. */
static void no_poller(int fd)
{
    struct t_address to;
    struct t_end end;

    t_end_open(&end, &sleeper_make);
    t_end_init(&end, NULL);
    ck_assert_int_eq(t_post_recv(&end, 1, 0, BIG), 0);
    ck_assert_int_eq(t_post_recv(&end, 2, 0, 100), 0);
    ck_assert_int_eq(t_post_recv(&end, 3, 0, 5000), 0);
    to = t_swap(fd, &end);
    t_end_rtr(&end, &to, NULL);
    t_end_rts(&end, NULL);
    t_meet(fd);
    t_meet(fd); /* all has been sent by now */
    t_poll_is(end.recv_cq, 1, IBV_WC_SUCCESS);
    t_poll_is(end.recv_cq, 2, IBV_WC_SUCCESS);
    t_poll_is(end.recv_cq, 3, IBV_WC_SUCCESS);
    close_over(fd, &end);
}

START_TEST(test_nobody_polls)
{
    static const size_t length[] = {BIG, 100, 5000};
    struct t_peer peer;
    struct t_end end;
    int i;

    t_peer_start(&peer, no_poller);
    connect_over(peer.fd, &end, &sleeper_make, NULL);
    for (i = 0; i < 3; ++i) {
        ck_assert_int_eq(t_post_send(&end, i, 0, length[i],
                                     IBV_SEND_SIGNALED), 0);
        t_poll_is(end.send_cq, i, IBV_WC_SUCCESS);
    }
    t_meet(peer.fd);
    close_over(peer.fd, &end);
    t_peer_join(&peer);
}
END_TEST

/* A process whose threads all sleep, one of them on the channel of a datagram
 * QP: a datagram wakes that one. */
static void *wait_for_datagram(void *arg)
{
    struct t_end *end = arg;
    struct pollfd pfd = {.fd = end->channel->fd, .events = POLLIN};
    struct ibv_cq *cq;
    void *context;

    ck_assert_int_eq(poll(&pfd, 1, -1), 1);
    ck_assert_int_eq(ibv_get_cq_event(end->channel, &cq, &context), 0);
    ibv_ack_cq_events(cq, 1);
    ck_assert_ptr_eq(cq, end->recv_cq);
    t_poll_is(end->recv_cq, 1, IBV_WC_SUCCESS);
    return NULL;
}

static void datagram_target(int fd)
{
    const struct t_make make = {.type = IBV_QPT_UD, .channel = true};
    struct t_address to;
    pthread_t thread;
    struct t_end end;

    t_end_open(&end, &make);
    to = t_swap(fd, &end);
    t_end_up(&end, &to, NULL);
    ck_assert_int_eq(t_post_recv(&end, 1, 0, 4096), 0);
    ck_assert_int_eq(ibv_req_notify_cq(end.recv_cq, 0), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_datagram, &end),
                     0);
    t_meet(fd);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    close_over(fd, &end);
}

START_TEST(test_datagram_wakes)
{
    const struct t_make make = {.type = IBV_QPT_UD};
    struct t_address to;
    struct t_peer peer;
    struct t_end end;
    struct ibv_ah *ah;

    t_peer_start(&peer, datagram_target);
    t_end_open(&end, &make);
    to = t_swap(peer.fd, &end);
    t_end_up(&end, &to, NULL);
    ah = t_create_ah(&end, &to);
    t_meet(peer.fd);
    ck_assert_int_eq(t_post_datagram(&end, ah, to.qpn, T_QKEY, 2, 0, 100), 0);
    t_poll_is(end.send_cq, 2, IBV_WC_SUCCESS);
    t_meet(peer.fd);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    t_end_close(&end);
    t_peer_join(&peer);
}
END_TEST

/* A receiver that nobody lets run, or that computes, loses nothing by it for a
 * while: more datagrams wait for it than there is room for. */
enum { UNHURRIED = 200 };

static void unhurried(int fd)
{
    const struct t_make make = {.type = IBV_QPT_UD, .depth = UNHURRIED};
    struct t_address to;
    struct t_end end;
    uint64_t start;
    int i;

    t_end_open(&end, &make);
    to = t_swap(fd, &end);
    t_end_up(&end, &to, NULL);
    for (i = 0; i < UNHURRIED; ++i) {
        ck_assert_int_eq(t_post_recv(&end, i, 0, 2000), 0);
    }
    t_meet(fd);
    for (start = t_now_ns(); t_now_ns() - start < 200000000;) {
    }
    for (i = 0; i < UNHURRIED; ++i) {
        t_poll_is(end.recv_cq, i, IBV_WC_SUCCESS);
    }
    close_over(fd, &end);
}

START_TEST(test_datagrams_wait)
{
    const struct t_make make = {.type = IBV_QPT_UD};
    struct t_address to;
    struct t_peer peer;
    struct t_end end;
    struct ibv_ah *ah;
    int i;

    t_peer_start(&peer, unhurried);
    t_end_open(&end, &make);
    to = t_swap(peer.fd, &end);
    t_end_up(&end, &to, NULL);
    ah = t_create_ah(&end, &to);
    t_meet(peer.fd);
    for (i = 0; i < UNHURRIED; ++i) {
        ck_assert_int_eq(t_post_datagram(&end, ah, to.qpn, T_QKEY, i, 0, 1024),
                         0);
        t_poll_is(end.send_cq, i, IBV_WC_SUCCESS);
    }
    t_meet(peer.fd);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    t_end_close(&end);
    t_peer_join(&peer);
}
END_TEST

/* ---- death ---- */

static const struct t_link mortal = {.timeout = 12, .retry_cnt = 2,
                                     .rnr_retry = 7};

/* Connects and receives until it is killed. */
static void victim(int fd)
{
    const struct t_make make = {.size = BIG, .depth = 64};
    struct ibv_wc wc;
    struct t_end end;
    int i;

    connect_over(fd, &end, &make, &mortal);
    for (i = 0; i < 64; ++i) {
        ck_assert_int_eq(t_post_recv(&end, 1, 0, 65536), 0);
    }
    t_meet(fd);
    for (;;) {
        if (ibv_poll_cq(end.recv_cq, 1, &wc) == 1) {
            t_post_recv(&end, 1, 0, 65536);
        }
    }
}

/* The victim is dead and gone: what was posted afterwards cannot succeed. */
static void check_after_death(enum ibv_wr_opcode opcode, size_t length)
{
    struct t_address to;
    struct t_peer peer;
    struct t_end end;

    t_peer_start(&peer, victim);
    to = connect_over(peer.fd, &end, &big_make, &mortal);
    t_meet(peer.fd);
    ck_assert_int_eq(t_post_send(&end, 1, 0, 64, IBV_SEND_SIGNALED), 0);
    t_poll_is(end.send_cq, 1, IBV_WC_SUCCESS);
    t_peer_kill(&peer);
    ck_assert_int_eq(t_post_rdma(&end, opcode, 2, 0, length, &to, 0), 0);
    ck_assert_int_eq(t_post_send(&end, 3, 0, 64, 0), 0);
    t_poll_is(end.send_cq, 2, IBV_WC_RETRY_EXC_ERR);
    t_poll_is(end.send_cq, 3, IBV_WC_WR_FLUSH_ERR);
    t_end_close(&end);
}

START_TEST(test_send_after_death)
{
    check_after_death(IBV_WR_SEND, 64);
}
END_TEST

START_TEST(test_write_after_death)
{
    check_after_death(IBV_WR_RDMA_WRITE, 64);
}
END_TEST

START_TEST(test_read_after_death)
{
    check_after_death(IBV_WR_RDMA_READ, 64);
}
END_TEST

/* This is what a keep-alive is. */
START_TEST(test_empty_write_after_death)
{
    check_after_death(IBV_WR_RDMA_WRITE, 0);
}
END_TEST

/* Killed at any instant under load. Everything before the first error has
 * succeeded, everything after it is flushed, and it ends. */
static void check_death_under_load(enum ibv_wr_opcode opcode, size_t length,
                                   t_rng_t *rng)
{
    struct t_address to;
    struct t_peer peer;
    struct t_end end;
    struct ibv_wc wc;
    uint64_t sent = 0, done = 0, kill_at;
    bool failed = false;

    t_peer_start(&peer, victim);
    to = connect_over(peer.fd, &end, &big_make, &mortal);
    t_meet(peer.fd);
    kill_at = t_rng_below(rng, t_times(2000));
    while (!failed || (done < sent)) {
        if (!failed && (sent - done < 16)) {
            ck_assert_int_eq(t_post_rdma(&end, opcode, sent, 0, length, &to,
                                         0), 0);
            if (sent++ == kill_at) {
                ck_assert_int_eq(kill(peer.pid, SIGKILL), 0);
            }
        }
        while (ibv_poll_cq(end.send_cq, 1, &wc) == 1) {
            ck_assert_uint_eq(wc.wr_id, done++);
            if (failed) {
                ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
            } else if (wc.status != IBV_WC_SUCCESS) {
                ck_assert_int_eq(wc.status, IBV_WC_RETRY_EXC_ERR);
                ck_assert_uint_ge(sent, kill_at);
                failed = true;
            }
        }
    }
    ck_assert_int_eq(waitpid(peer.pid, NULL, 0), peer.pid);
    close(peer.fd);
    t_end_close(&end);
}

START_TEST(test_death_under_load)
{
    static const struct {
        enum ibv_wr_opcode opcode;
        size_t             length;
    } load[] = {
        {IBV_WR_SEND, 8}, {IBV_WR_SEND, 60000}, {IBV_WR_RDMA_WRITE, 8},
        {IBV_WR_RDMA_WRITE, BIG}, {IBV_WR_RDMA_READ, 60000},
        {IBV_WR_RDMA_WRITE_WITH_IMM, 300}
    };
    t_rng_t rng;
    int i;

    t_rng_init(&rng, _i);
    for (i = 0; i < (int)t_times(4); ++i) {
        check_death_under_load(load[_i].opcode, load[_i].length, &rng);
    }
}
END_TEST

/* The sender dies in the middle of what it says. The receiver can do without
 * it: its QP can be flushed, its memory deregistered, and a new process can
 * take the place of the old. */
static void talker(int fd)
{
    const struct t_make make = {.size = BIG, .depth = 64};
    struct t_address to;
    struct ibv_wc wc;
    struct t_end end;
    uint64_t i = 0;

    to = connect_over(fd, &end, &make, &mortal);
    t_meet(fd);
    for (;;) {
        if (t_post_send(&end, i, 0, 1 + i % 60000, IBV_SEND_SIGNALED) == 0) {
            ++i;
        }
        t_post_rdma(&end, IBV_WR_RDMA_WRITE, i, 0, i % 5000, &to, 0);
        while (ibv_poll_cq(end.send_cq, 1, &wc) == 1) {
        }
    }
}

START_TEST(test_death_of_sender)
{
    const struct t_make make = {.size = 4 * BIG, .depth = 64, .srq = true};
    struct t_peer peer;
    struct t_end end;
    struct ibv_wc wc;
    t_rng_t rng;
    int round, enough, got, i;

    t_rng_init(&rng, 5);
    for (round = 0; round < (int)t_times(8); ++round) {
        t_peer_start(&peer, talker);
        connect_over(peer.fd, &end, &make, &mortal);
        for (i = 0; i < 64; ++i) {
            ck_assert_int_eq(t_post_recv(&end, 1, BIG, 65536), 0);
        }
        t_meet(peer.fd);
        enough = t_rng_below(&rng, t_times(3000));
        for (got = 0; got < enough;) {
            if (ibv_poll_cq(end.recv_cq, 1, &wc) == 1) {
                ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
                ck_assert_int_eq(t_post_recv(&end, 1, BIG, 65536), 0);
                ++got;
            }
        }
        t_peer_kill(&peer);
        t_end_move(&end, IBV_QPS_ERR);
        while (ibv_poll_cq(end.recv_cq, 1, &wc) == 1) {
            ck_assert((wc.status == IBV_WC_SUCCESS) ||
                      (wc.status == IBV_WC_WR_FLUSH_ERR));
        }
        t_end_close(&end);
    }
}
END_TEST

/* A process that is stopped is slow, not dead. */
START_TEST(test_stopped)
{
    const struct t_link patient = {.timeout = 18, .retry_cnt = 7,
                                   .rnr_retry = 7};
    struct t_peer peer;
    struct t_end end;
    struct ibv_wc wc;
    uint64_t sent = 0, done = 0;
    bool stopped = false;
    int status;

    t_peer_start(&peer, victim);
    connect_over(peer.fd, &end, &big_make, &patient);
    t_meet(peer.fd);
    while (done < 2000) {
        if ((sent < 2000) && (sent - done < 16)) {
            ck_assert_int_eq(t_post_send(&end, sent++, 0, 5000,
                                         IBV_SEND_SIGNALED), 0);
        }
        if ((sent == 1000) && !stopped) {
            ck_assert_int_eq(kill(peer.pid, SIGSTOP), 0);
            ck_assert_int_eq(waitpid(peer.pid, &status, WUNTRACED), peer.pid);
            ck_assert(WIFSTOPPED(status));
            stopped = true;
        }
        /* a few are posted to it while it is stopped */
        if (stopped && ((sent - done == 16) || (sent >= 1016))) {
            ck_assert_int_eq(kill(peer.pid, SIGCONT), 0);
        }
        while (ibv_poll_cq(end.send_cq, 1, &wc) == 1) {
            ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
            ck_assert_uint_eq(wc.wr_id, done++);
        }
    }
    t_peer_kill(&peer);
    t_end_close(&end);
}
END_TEST

static Suite *suite_process(void)
{
    Suite *suite = t_suite("process",
                           "traffic", test_stream,
                           "traffic", test_rdma,
                           "traffic", test_atomics_of_many,
                           "sleepers", test_sleeper,
                           "sleepers", test_sleeper_long,
                           "sleepers", test_nobody_polls,
                           "sleepers", test_datagram_wakes,
                           "sleepers", test_datagrams_wait,
                           "death", test_send_after_death,
                           "death", test_write_after_death,
                           "death", test_read_after_death,
                           "death", test_empty_write_after_death,
                           "death", test_death_of_sender,
                           "stop", test_stopped,
                           NULL);

    t_suite_add_loop(suite, "load", test_death_under_load, 6);
    return suite;
}

T_MAIN(suite_process)
