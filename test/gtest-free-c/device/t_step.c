/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Death and arrest at every instruction. What t_kill leaves to chance is done
 * here point by point: a second process posts one request, is led through that
 * by single steps, and at one of them is killed, or held while we leave. The
 * points are spread over all the instructions that the post takes, one at
 * random in each part.
 *
 * T_POINTS says how many there are of each kind (contrib/check --long kills: 100).
 */
#include "t_device.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MIDDLE = 1500,  /* a string instruction would be a step for each byte */
    LONG   = 20000,
    BYTES  = 2 * LONG
};

/* 1 ms, three times */
static const struct t_link mortal = {.timeout = 8, .retry_cnt = 2,
                                     .rnr_retry = 7};

static const struct request {
    enum ibv_wr_opcode opcode;
    size_t             length;
} requests[] = {
    {IBV_WR_SEND, 8},
    {IBV_WR_SEND, MIDDLE},
    {IBV_WR_RDMA_WRITE, LONG},
    {IBV_WR_RDMA_READ, LONG},
    {IBV_WR_ATOMIC_FETCH_AND_ADD, 8}
};

enum { REQUESTS = sizeof(requests) / sizeof(requests[0]) };

static const struct request *request; /* of this round; processes inherit it */

/* ---- the one who is led ---- */

static void post_add(struct t_end *end, const struct t_address *to)
{
    ck_assert_int_eq(t_post_atomic(end, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, to,
                                   0, 1, 0), 0);
}

static void post_request(struct t_end *end, const struct t_address *to)
{
    switch (request->opcode) {
    case IBV_WR_SEND:
        ck_assert_int_eq(t_post_send(end, 1, 0, request->length,
                                     IBV_SEND_SIGNALED), 0);
        break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        post_add(end, to);
        break;
    default:
        ck_assert_int_eq(t_post_rdma(end, request->opcode, 1, 0,
                                     request->length, to, 0), 0);
        break;
    }
}

/* The first request reaches the other end, which takes ever so long; the one
 * between the two signals is like those that follow in a program. To who is
 * not led any more SIGCONT means nothing. */
static void led(int fd)
{
    struct t_end end;
    struct t_address to;
    struct ibv_wc wc;

    t_end_open(&end, &(struct t_make){.size = BYTES});
    memset(end.buf, 7, BYTES);
    to = t_swap(fd, &end);
    t_end_up(&end, &to, &mortal);
    t_meet(fd);
    post_request(&end, &to);
    t_poll_is(end.send_cq, 1, IBV_WC_SUCCESS);

    ck_assert_int_eq(ptrace(PTRACE_TRACEME, 0, NULL, NULL), 0);
    raise(SIGSTOP);
    post_request(&end, &to);
    raise(SIGCONT);
    wc = t_poll(end.send_cq);
    ck_assert((wc.status == IBV_WC_SUCCESS) ||
              (wc.status == IBV_WC_RETRY_EXC_ERR));
    t_end_close(&end);
}

/* ---- the one who leads ---- */

static void wait_for_stop(pid_t pid, int signal)
{
    int status;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFSTOPPED(status) && (WSTOPSIG(status) == signal),
                  "signal %d was awaited, and the status is %#x", signal,
                  status);
}

/* A second process, connected with the end, just before the post. */
static void start_led(struct t_peer *peer, struct t_end *end)
{
    struct t_address to;
    int i;

    t_peer_start(peer, led);
    t_end_open(end, &(struct t_make){.size = BYTES});
    to = t_swap(peer->fd, end);
    t_end_up(end, &to, &mortal);
    for (i = 0; i < 2; ++i) {
        ck_assert_int_eq(t_post_recv(end, i, i * LONG, LONG), 0);
    }
    t_meet(peer->fd);
    wait_for_stop(peer->pid, SIGSTOP);
}

/* One instruction. False: that was the last of the post. */
static bool step(const struct t_peer *peer)
{
    int status;

    ck_assert_int_eq(ptrace(PTRACE_SINGLESTEP, peer->pid, NULL, NULL), 0);
    ck_assert_int_eq(waitpid(peer->pid, &status, 0), peer->pid);
    ck_assert_msg(WIFSTOPPED(status), "the led process ended with status %#x",
                  status);
    return WSTOPSIG(status) != SIGCONT;
}

static void let_go(const struct t_peer *peer)
{
    ck_assert_int_eq(ptrace(PTRACE_DETACH, peer->pid, NULL, NULL), 0);
}

static unsigned count_steps(void)
{
    struct t_peer peer;
    struct t_end end;
    unsigned steps = 0;

    start_led(&peer, &end);
    while (step(&peer)) {
        ++steps;
    }
    let_go(&peer);
    t_peer_join(&peer);
    t_end_close(&end);
    return steps;
}

static void *deregister(void *mr)
{
    return (void*)(intptr_t)ibv_dereg_mr(mr);
}

/* The led process is held while our QP goes, and let go while our memory does:
 * it may be in the middle of something that it does there. For it we have
 * fallen silent. */
static void leave(struct t_peer *peer, struct t_end *end)
{
    pthread_t thread;
    void *ret;

    ck_assert_int_eq(ibv_destroy_qp(end->qp), 0);
    end->qp = NULL;
    ck_assert_int_eq(pthread_create(&thread, NULL, deregister, end->mr), 0);
    usleep(1000);
    let_go(peer);
    ck_assert_int_eq(pthread_join(thread, &ret), 0);
    ck_assert_int_eq((intptr_t)ret, 0);
    end->mr = NULL;
    t_peer_join(peer);
    t_end_close(end);
}

static void heir(int fd)
{
    struct t_end end;

    t_end_open(&end, NULL);
    t_meet(fd);
    t_meet(fd);
    t_end_close(&end);
}

/* A message that came is whole; the lock of the atomics is free; and nothing
 * of ours is still taken to be in use by the dead, although somebody else has
 * the place on the device that was theirs. */
static void bury(struct t_peer *peer, struct t_end *end, struct t_end pair[2])
{
    struct t_address to = t_end_address(&pair[1]);
    struct t_peer next;
    struct ibv_wc wc;
    int i;

    t_peer_kill(peer);
    t_peer_start(&next, heir);
    t_meet(next.fd);
    post_add(&pair[0], &to);
    t_poll_is(pair[0].send_cq, 1, IBV_WC_SUCCESS);
    for (i = 0; ibv_poll_cq(end->recv_cq, 1, &wc) == 1; ++i) {
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(wc.byte_len, request->length);
        ck_assert_int_eq(end->buf[wc.wr_id * LONG], 7);
        ck_assert_int_eq(end->buf[wc.wr_id * LONG + wc.byte_len - 1], 7);
    }
    ck_assert_int_le(i, 2);
    t_end_close(end);
    t_meet(next.fd);
    t_peer_join(&next);
}

/* Led to a point, the process meets its fate. */
static void one_point(unsigned steps, bool killed, struct t_end pair[2])
{
    struct t_peer peer;
    struct t_end end;

    start_led(&peer, &end);
    while ((steps-- > 0) && step(&peer)) {
    }
    if (killed) {
        bury(&peer, &end, pair);
    } else {
        leave(&peer, &end);
    }
}

static unsigned points_wanted(void)
{
    const char *text = getenv("T_POINTS");

    return (text != NULL) ? strtoul(text, NULL, 0) : t_times(15);
}

static void all_points(unsigned which, bool killed)
{
    struct t_end pair[2];
    unsigned total, points, i;
    t_rng_t rng;

#ifdef __SANITIZE_THREAD__
    t_skip("the thread sanitizer ends what starts threads after a fork");
#endif
    request = &requests[which];
    points  = points_wanted();
    t_rng_init(&rng, which);
    total = count_steps();
    ck_assert_uint_gt(total, 100);
    t_pair_open(pair, NULL, NULL);
    for (i = 0; i < points; ++i) {
        one_point((i * total + t_rng_below(&rng, total)) / points, killed,
                  pair);
    }
    t_pair_close(pair);
}

START_TEST(test_killed)
{
    all_points(_i, true);
}
END_TEST

START_TEST(test_held)
{
    all_points(_i, false);
}
END_TEST

/* The copy of a WRITE is one instruction, and where it has just been made the
 * one who makes it is in the middle of its request. Memory that is deregistered
 * then is not free until it goes on, or dies. */
START_TEST(test_memory_in_use)
{
    struct t_peer peer;
    struct t_end end;

#ifdef __SANITIZE_THREAD__
    t_skip("the thread sanitizer ends what starts threads after a fork");
#endif
    t_softverbs_only("there a device copies, which nobody can hold");
    request = &requests[2];
    ck_assert_int_eq(request->opcode, IBV_WR_RDMA_WRITE);
    start_led(&peer, &end);
    memset(end.buf, 0, LONG);
    while (end.buf[LONG - 1] == 0) {
        ck_assert(step(&peer));
    }
    ck_assert_int_eq(ibv_dereg_mr(end.mr), EBUSY);
    if (_i) {
        t_peer_kill(&peer);
    } else {
        let_go(&peer);
        t_peer_join(&peer);
    }
    ck_assert_int_eq(ibv_dereg_mr(end.mr), 0);
    end.mr = NULL;
    t_end_close(&end);
}
END_TEST

static Suite *suite_step(void)
{
    Suite *suite  = suite_create("step");
    TCase *tcase  = tcase_create("step");
    TCase *in_use = tcase_create("in_use");

    /* 15 points take half a second on a quiet machine */
    tcase_set_timeout(tcase, T_TIMEOUT + points_wanted());
    tcase_add_loop_test(tcase, test_killed, 0, REQUESTS);
    tcase_add_loop_test(tcase, test_held, 0, REQUESTS);
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(in_use, T_TIMEOUT);
    tcase_add_loop_test(in_use, test_memory_in_use, 0, 2);
    suite_add_tcase(suite, in_use);
    return suite;
}

T_MAIN(suite_step)
