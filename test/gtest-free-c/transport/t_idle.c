/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs that are closed because they are idle: by a time limit, or because others
 * need them. The next send brings them back. Nothing is lost, nothing is an error, and
 * the log says nothing.
 */
#include "t_uct.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdlib.h>

enum {
    PEERS   = 6,
    TURNS   = 12,
    ATOMICS = 50
};

/* Short enough for a test. */
#define SOON "IDLE_TIMEOUT=20ms CONN_RETRY=5ms"


/* ---- A device with few queue pairs ---- */

static struct {
    pthread_mutex_t lock;
    struct ibv_cq   *last;  /* of the interface that was opened last         */
    struct ibv_cq   *heard; /* its CQ of what it receives                    */
    struct ibv_cq   *cq;    /* of the interface that gets few; NULL: nobody  */
    unsigned        most;   /* queue pairs that it gets                      */
    unsigned        has;    /* that it has                                   */
} few = {.lock = PTHREAD_MUTEX_INITIALIZER};


/* What has come for that interface is not shown to it; atomic. */
static int few_is_deaf;
static int (*few_poll_cq)(struct ibv_cq*, int, struct ibv_wc*);


static int few_poll(struct ibv_cq *cq, int room, struct ibv_wc *wc)
{
    return (__atomic_load_n(&few_is_deaf, __ATOMIC_RELAXED) && (cq == few.heard))
                   ? 0 : few_poll_cq(cq, room, wc);
}


struct ibv_context *ibv_open_device(struct ibv_device *which)
{
    struct ibv_context *(*real)(struct ibv_device*);
    struct ibv_context *context;

    *(void**)&real = dlsym(RTLD_NEXT, "ibv_open_device");
    context        = real(which);
    if (context != NULL) {
        if (few_poll_cq == NULL) { /* threads read it from then on */
            few_poll_cq = context->ops.poll_cq;
        }
        context->ops.poll_cq = few_poll;
    }
    return context;
}


static int few_is_limited(enum ibv_qp_type type, const struct ibv_cq *cq)
{
    return (type == IBV_QPT_RC) && (cq == few.cq);
}


struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp *(*real)(struct ibv_pd*, struct ibv_qp_init_attr*);
    struct ibv_qp *qp = NULL;

    *(void**)&real = dlsym(RTLD_NEXT, "ibv_create_qp");
    pthread_mutex_lock(&few.lock);
    if (few_is_limited(attr->qp_type, attr->send_cq) && (few.has >= few.most)) {
        errno = ENOMEM;
    } else {
        qp        = real(pd, attr);
        if ((attr->qp_type == IBV_QPT_RC) && (few.cq == NULL)) {
            few.last  = attr->send_cq;
            few.heard = attr->recv_cq;
        }
        few.has  += (qp != NULL) && few_is_limited(attr->qp_type, attr->send_cq);
    }
    pthread_mutex_unlock(&few.lock);
    return qp;
}


int ibv_destroy_qp(struct ibv_qp *qp)
{
    int (*real)(struct ibv_qp*);
    int is_limited, ret;

    *(void**)&real = dlsym(RTLD_NEXT, "ibv_destroy_qp");
    pthread_mutex_lock(&few.lock);
    is_limited  = few_is_limited(qp->qp_type, qp->send_cq);
    ret         = real(qp);
    few.has    -= (ret == 0) && is_limited;
    pthread_mutex_unlock(&few.lock);
    return ret;
}


static void few_allow(unsigned most)
{
    pthread_mutex_lock(&few.lock);
    few.most = most;
    pthread_mutex_unlock(&few.lock);
}


/* An interface for which the device makes no more than so many. */
static t_end_t *few_open(unsigned most, const char *options)
{
    t_end_t *end = t_end_open(options);

    pthread_mutex_lock(&few.lock);
    few.cq   = few.last;
    few.most = most;
    few.has  = 0;
    pthread_mutex_unlock(&few.lock);
    return end;
}


/* Its end is over: another may get the same address of a CQ. */
static void few_end(void)
{
    pthread_mutex_lock(&few.lock);
    few.cq = NULL;
    pthread_mutex_unlock(&few.lock);
}


static unsigned few_has(void)
{
    unsigned has;

    pthread_mutex_lock(&few.lock);
    has = few.has;
    pthread_mutex_unlock(&few.lock);
    return has;
}


static void send_one(t_link_t *link, const t_stream_t *to, t_how_t how, size_t length)
{
    t_send(link, how, length);
    T_WAIT(to->got == link->sent);
}


/* Both ends of as many connections have no queue pair. */
static void wait_closed(uint64_t connections)
{
    T_WAIT(t_live_sum("idle_closes") - t_live_sum("idle_reopens") == 2 * connections);
}


/* A link whose connection rests. */
static t_link_t *link_at_rest(t_end_t *a, t_end_t *b, t_stream_t *to)
{
    t_link_t *link = t_link_up(a, b, 1, to);

    send_one(link, to, T_SHORT, 8);
    wait_closed(1);
    return link;
}


/* ---- The time limit ---- */

START_TEST(test_timeout)
{
    t_end_t *a = t_end_open(SOON);
    t_end_t *b = t_end_open("CONN_RETRY=5ms"); /* it agrees */
    t_stream_t to;
    t_link_t *link;
    unsigned i;

    t_only_daqiri("closes idle queue pairs");
    link = t_link_up(a, b, 1, &to);
    for (i = 0; i < 4; i++) {
        send_one(link, &to, T_SHORT, 8);
        wait_closed(1);
        ck_assert_uint_eq(t_live_sum("idle_closes"), 2 * (i + 1));
    }
    ck_assert_int_eq(t_ep_flush(link), UCS_OK); /* wakes nobody */
    t_progress_turns(1000);
    ck_assert_uint_eq(t_live_sum("idle_reopens"), 2 * (i - 1));
    ck_assert_uint_eq(t_live_sum("recoveries"), 0);
}
END_TEST


/* A connection is idle since it was up, not since its queue pair was made. */
START_TEST(test_slow_handshake)
{
    t_end_t *a = t_end_open(SOON);
    t_end_t *b = t_end_open("CONN_RETRY=5ms");
    uint64_t sent, heard;
    t_stream_t to;
    t_link_t *link;

    t_only_daqiri("closes idle queue pairs");
    if (t_is_softroce()) {
        t_skip("only softverbs is slow by a plan");
    }
    link  = link_at_rest(a, b, &to);
    sent  = t_live_sum("frames_tx");
    heard = t_live_sum("frames_rx");
    t_plan_by_command("delay qp=ud op=send p=1 time=50ms");
    ck_assert_int_eq(t_try_send(link, T_SHORT, 8), UCS_ERR_NO_RESOURCE);
    T_WAIT(t_live_sum("frames_tx") > sent); /* it has a queue pair */
    t_progress_turns(10);
    a->is_stopped = 1;
    T_WAIT(t_live_sum("frames_rx") >= heard + 3);
    a->is_stopped = 0;

    send_one(link, &to, T_SHORT, 8);
    wait_closed(1);
    ck_assert_uint_eq(t_live_sum("idle_closes"), 4);
}
END_TEST


/* Both may find the same moment: two CLOSEs that cross are an agreement. */
START_TEST(test_both)
{
    t_end_t *end[2] = {t_end_open(SOON), t_end_open(SOON)};
    t_stream_t to[2];
    t_link_t *link[2];
    unsigned i, s;

    t_only_daqiri("closes idle queue pairs");
    for (s = 0; s < 2; s++) {
        link[s] = t_link_up(end[s], end[1 - s], s, &to[s]);
    }
    for (i = 0; i < 20; i++) {
        for (s = 0; s < 2; s++) {
            t_send(link[s], T_SHORT, 8);
        }
        for (s = 0; s < 2; s++) {
            T_WAIT(to[s].got == link[s]->sent);
        }
        wait_closed(1);
    }
    ck_assert_uint_eq(t_live_sum("recoveries"), 0);
}
END_TEST


/* It comes back by any operation, from either side. */
START_TEST(test_each_way)
{
    static const t_how_t hows[] = {T_SHORT, T_BCOPY, T_ZCOPY};
    t_end_t *end[2]             = {t_end_open(SOON), t_end_open(SOON)};
    t_stream_t to[2];
    t_link_t *link[2];
    unsigned i, s;

    t_only_daqiri("closes idle queue pairs");
    for (s = 0; s < 2; s++) {
        link[s] = t_link_up(end[s], end[1 - s], s, &to[s]);
    }
    for (i = 0; i < 3; i++) {
        for (s = 0; s < 2; s++) {
            wait_closed(1);
            send_one(link[s], &to[s], hows[i], 64);
        }
    }
}
END_TEST


/* The peer agrees and closes. Before this end sees that, it probes the peer, in vain:
 * nothing is lost by it. */
START_TEST(test_deaf)
{
    t_end_t *a = few_open(PEERS, SOON " TIMEOUT=10ms RETRY_COUNT=1");
    t_end_t *b = t_end_open("CONN_RETRY=5ms");
    t_stream_t to;
    t_link_t *link;

    t_only_daqiri("closes idle queue pairs");
    if (t_is_softroce()) {
        t_skip("Soft-RoCE keeps completions of a queue pair that is destroyed, and this "
               "test hides one as long");
    }
    link = t_link_up(a, b, 1, &to);
    __atomic_store_n(&few_is_deaf, 1, __ATOMIC_RELAXED);
    T_WAIT(t_live_sum("idle_closes") == 1);
    T_WAIT(t_live_sum("idle_reopens") > 0); /* the probe has failed */
    __atomic_store_n(&few_is_deaf, 0, __ATOMIC_RELAXED);
    send_one(link, &to, T_SHORT, 8);
    ck_assert_uint_eq(t_live_sum("qp_failures"), 0);
    ck_assert_uint_eq(t_live_sum("tx_errors"), 0);
    few_end();
}
END_TEST


/* The peer takes our CLOSE, answers and closes, and we do not learn that our CLOSE has
 * arrived: it fails later, or the peer wants another queue pair first. */
START_TEST(test_ack_lost)
{
    t_end_t *a, *b;
    t_stream_t to[2];
    t_link_t *link;

    t_only_daqiri("closes idle queue pairs");
    if (t_is_softroce()) {
        t_skip("only softverbs fails by a plan");
    }
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS",
                            "lose-ack qp=rc op=send n=2 times=1", 1), 0);
    a    = t_end_open((_i == 0) ? SOON " TIMEOUT=10ms RETRY_COUNT=1" : SOON);
    b    = t_end_open("CONN_RETRY=5ms");
    link = t_link_up(a, b, 1, &to[0]);
    T_WAIT(t_live_sum("idle_closes") == 1);
    if (_i == 0) {
        T_WAIT(t_live_sum("idle_reopens") > 0);
    }
    (void)t_link_up(b, a, 2, &to[1]);
    send_one(link, &to[0], T_SHORT, 8);
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("qp_failures"), 0);
    ck_assert_uint_eq(t_stats_sum("tx_errors"), 0);
    ck_assert_uint_eq(t_stats_sum("tx_flushed"), 0);
    ck_assert_uint_eq(t_stats_sum("replayed"), 0);
}
END_TEST


/* @a b wants to close, and computes from then on. @a a has not read that yet. */
static void compute_after_close(t_end_t *a, t_end_t *b)
{
    a->is_stopped = 1;
    T_WAIT(t_live_sum("idle_unanswered") == 1);
    a->is_stopped = 0;
    b->is_stopped = 1;
}


/* A flush while the connection closes needs nothing of the peer, which computes, or is in
 * a barrier that we come to next. At once, or when what was sent is over. */
START_TEST(test_flush)
{
    t_end_t *a = t_end_open("CONN_RETRY=5ms");
    t_end_t *b = t_end_open(SOON);
    t_wait_t flush = {.super.func = t_wait_flush};
    t_stream_t to;
    t_link_t *link;

    t_only_daqiri("closes idle queue pairs");
    flush.link = link = t_link_up(a, b, 1, &to);
    t_comp_init(&flush.comp);
    send_one(link, &to, T_SHORT, 8);
    T_WAIT(t_ep_flush(link) == UCS_OK);
    compute_after_close(a, b);
    if (_i == 1) {
        ck_assert_int_eq(t_try_send(link, T_SHORT, 8), UCS_OK);
    }
    (void)t_progress(); /* a answers */
    if (_i == 1) {
        ck_assert_int_eq(t_wait_flush(&flush.super), UCS_ERR_NO_RESOURCE);
        ck_assert_int_eq(uct_ep_pending_add(link->ep, &flush.super, 0), UCS_OK);
        T_WAIT(flush.is_done);
        ck_assert_int_eq(flush.status, UCS_OK);
    } else {
        ck_assert_int_eq(uct_ep_flush(link->ep, 0, &flush.comp.super), UCS_OK);
    }
    T_WAIT(t_live_sum("idle_closes") == 1);
    ck_assert_uint_eq(t_live_sum("idle_reopens"), 0);
    b->is_stopped = 0;
    send_one(link, &to, T_SHORT, 8);
}
END_TEST


/* The peer computes before it has read that both agree. A send waits for another queue
 * pair as long as the peer likes, and the log says why. */
START_TEST(test_peer_computes)
{
    enum { RECOVERY_MS = 100, COMPUTES_MS = 5 * RECOVERY_MS };
    t_end_t *a = t_end_open("CONN_RETRY=5ms RECOVERY_TIMEOUT=100ms "
                            "SQ_STALL_TIMEOUT=200ms");
    t_end_t *b = t_end_open(SOON);
    t_stream_t to;
    t_link_t *link;
    double end;

    t_only_daqiri("closes idle queue pairs");
    t_expect_log("nothing could be sent");
    link = t_link_up(a, b, 1, &to);
    send_one(link, &to, T_SHORT, 8);
    compute_after_close(a, b);
    T_WAIT(t_live_sum("idle_closes") == 1);
    for (end = t_seconds() + COMPUTES_MS / 1e3; t_seconds() < end;) {
        (void)t_try_send(link, T_SHORT, 8);
        t_progress_or_yield();
    }
    b->is_stopped = 0;
    T_WAIT(to.got == link->sent);
    send_one(link, &to, T_SHORT, 8);
    ck_assert_uint_eq(a->errors, 0);
    ck_assert_uint_gt(t_log_count("it has lost its queue pair, and has not noticed"), 0);
}
END_TEST


/* The user asks if the peer lives: that needs a queue pair. */
START_TEST(test_check)
{
    t_end_t *a = t_end_open(SOON);
    t_end_t *b = t_end_open("");
    t_stream_t to;
    t_link_t *link;

    t_only_daqiri("closes idle queue pairs");
    link = link_at_rest(a, b, &to);
    ck_assert_int_eq(uct_ep_check(link->ep, 0, NULL), UCS_OK);
    T_WAIT(t_live_sum("idle_reopens") == 2);
    wait_closed(1);
}
END_TEST


/* Ends that are closed while the connection rests, and connections while it closes. */
START_TEST(test_close)
{
    t_end_t *a = t_end_open(SOON);
    t_end_t *b = t_end_open("");
    t_stream_t to;
    t_link_t *link;
    unsigned turns;

    t_only_daqiri("closes idle queue pairs");
    link = t_link_up(a, b, 1, &to);
    send_one(link, &to, T_SHORT, 8);
    if (_i == 0) {
        wait_closed(1);
    } else {
        T_WAIT(t_live_sum("idle_closes") > 0); /* in the middle */
    }
    for (turns = 0; turns < (unsigned)_i; turns++) {
        (void)t_progress();
    }
    t_link_close(link);
    if (_i % 2 == 0) {
        t_end_close(b);
    } else {
        t_end_close(a);
    }
}
END_TEST


/* The peer has gone while the connection rests. Who asks then is told at once. */
START_TEST(test_gone)
{
    t_end_t *a = t_end_open(SOON);
    t_end_t *b = t_end_open("");
    t_stream_t to;
    t_link_t *link;

    t_only_daqiri("closes idle queue pairs");
    t_expect_loss();
    t_expect_log("the peer has ended the connection");
    link = link_at_rest(a, b, &to);
    t_end_close(b);
    if (_i == 0) {
        t_progress_turns(100);
    }
    if (_i != 2) {
        (void)uct_ep_check(link->ep, 0, NULL);
    }
    while (a->errors == 0) {
        if (_i == 2) {
            (void)t_try_send(link, T_SHORT, 8);
        }
        t_progress_or_yield();
    }
    ck_assert_uint_eq(a->errors, 1);
    t_link_close(link);
}
END_TEST


/* ---- The budget ---- */

/* Peers with these options, each with a link in either direction. */
static void open_peers(t_end_t *a, const char *options, t_link_t *out[PEERS],
                       t_stream_t to[PEERS], t_link_t *in[PEERS], t_stream_t from[PEERS])
{
    t_end_t *peer;
    unsigned i;

    for (i = 0; i < PEERS; i++) {
        peer   = t_end_open(options);
        out[i] = t_link_up(a, peer, i, &to[i]);
        in[i]  = t_link_up(peer, a, PEERS + i, &from[i]);
    }
}


static void round_robin(t_link_t *link[PEERS], t_stream_t to[PEERS], t_rng_t *rng)
{
    unsigned i, turn;

    for (turn = 0; turn < TURNS; turn++) {
        for (i = 0; i < PEERS; i++) {
            t_send(link[i], t_some_how(link[i], rng), 8 + t_rng_below(rng, 100));
        }
    }
    for (i = 0; i < PEERS; i++) {
        T_WAIT(to[i].got == link[i]->sent);
    }
}


/* More peers than queue pairs: they take turns, in either direction. */
START_TEST(test_budget)
{
    static const char *const budgets[] = {"MAX_QPS=1", "MAX_QPS=2", "MAX_QPS=5"};
    const char *mine                   = (_i < 3) ? budgets[_i % 3] : "";
    const char *theirs                 = (_i < 3) ? "" : budgets[_i % 3];
    t_end_t *a                         = t_end_open(mine);
    t_stream_t to[PEERS], from[PEERS];
    t_link_t *out[PEERS], *in[PEERS];
    t_rng_t rng;

    t_only_daqiri("has a budget of queue pairs");
    t_rng_init(&rng, 0xb0d6 + _i);
    open_peers(a, theirs, out, to, in, from);
    round_robin(out, to, &rng);
    round_robin(in, from, &rng);
    round_robin(out, to, &rng);
    ck_assert_int_eq(t_live_sum("idle_closes") > 0, _i < 3);
    ck_assert_int_eq(t_live_sum("qp_waits") > 0, _i < 3);
    ck_assert_uint_eq(t_live_sum("recoveries"), 0);
}
END_TEST


/* A program that computes does not answer. Others do not wait for it: it may wait for
 * them. When it is back, it closes. */
START_TEST(test_busy)
{
    t_end_t *a = t_end_open("MAX_QPS=1");
    t_end_t *b = t_end_open("");
    t_end_t *c = t_end_open("");
    t_stream_t to_b, to_c;
    t_link_t *ab, *ac;

    t_only_daqiri("has a budget of queue pairs");
    ab = t_link_up(a, b, 1, &to_b);
    send_one(ab, &to_b, T_SHORT, 8);
    b->is_stopped = 1;
    ac = t_link_up(a, c, 2, &to_c);
    send_one(ac, &to_c, T_SHORT, 8);
    ck_assert_uint_eq(t_live_sum("idle_unanswered"), 1);
    b->is_stopped = 0;
    T_WAIT(t_live_sum("idle_closes") >= 2);
    send_one(ab, &to_b, T_SHORT, 8);
    send_one(ac, &to_c, T_SHORT, 8);
    ck_assert_uint_eq(t_live_sum("recoveries"), 0);
}
END_TEST


/* Each is executed once, whatever closes in between. */
START_TEST(test_atomics)
{
    t_end_t *a = t_end_open("MAX_QPS=1");
    uint64_t count[2] = {0, 0};
    uint64_t results[2 * ATOMICS];
    t_region_t region[2];
    t_comp_t comp[2 * ATOMICS];
    t_link_t *link[2];
    t_stream_t to[2];
    ucs_status_t status;
    unsigned i, s;

    t_only_daqiri("has a budget of queue pairs");
    for (s = 0; s < 2; s++) {
        t_end_t *peer = t_end_open("");

        link[s] = t_link_up(a, peer, s + 1, &to[s]);
        t_region_open(&region[s], peer, &count[s], sizeof(count[s]));
    }
    for (i = 0; i < 2 * ATOMICS; i++) {
        s = i % 2;
        t_comp_init(&comp[i]);
        while ((status = uct_ep_atomic64_fetch(link[s]->ep, UCT_ATOMIC_OP_ADD, 1,
                                               &results[i], (uintptr_t)&count[s],
                                               region[s].key.rkey,
                                               &comp[i].super)) == UCS_ERR_NO_RESOURCE) {
            (void)t_progress();
        }
        ck_assert(!UCS_STATUS_IS_ERR(status));
    }
    for (i = 0; i < 2 * ATOMICS; i++) {
        T_WAIT(comp[i].calls == 1);
        ck_assert_uint_eq(results[i], i / 2);
    }
    ck_assert_uint_eq(count[0], ATOMICS);
    ck_assert_uint_eq(count[1], ATOMICS);
    ck_assert_uint_gt(t_live_sum("idle_closes"), 0);
    ck_assert_uint_eq(t_live_sum("recoveries"), 0);
    for (s = 0; s < 2; s++) {
        t_region_close(&region[s]);
    }
}
END_TEST


/* To itself, too. */
START_TEST(test_self)
{
    t_end_t *a = t_end_open("MAX_QPS=1");
    t_end_t *b = t_end_open("");
    t_stream_t to[2];
    t_link_t *link[2];
    unsigned i, s;

    t_only_daqiri("has a budget of queue pairs");
    link[0] = t_link_up(a, a, 1, &to[0]);
    link[1] = t_link_up(a, b, 2, &to[1]);
    for (i = 0; i < 10; i++) {
        for (s = 0; s < 2; s++) {
            send_one(link[s], &to[s], T_SHORT, 8);
        }
    }
    ck_assert_uint_gt(t_live_sum("idle_closes"), 0);
}
END_TEST


/* ---- A device that has fewer than it says ---- */

static const char told[] = "makes no more queue pairs now";

/* The device is the budget: they take turns as with MAX_QPS, in either direction. When
 * it has more again, each gets its own. */
START_TEST(test_few)
{
    t_end_t *a = few_open(1 + _i, "CONN_RETRY=5ms");
    t_stream_t to[PEERS], from[PEERS];
    t_link_t *out[PEERS], *in[PEERS];
    t_rng_t rng;

    t_only_daqiri("has a budget of queue pairs");
    t_expect_log(told);
    t_rng_init(&rng, 0xfe3 + _i);
    open_peers(a, "CONN_RETRY=5ms", out, to, in, from);
    round_robin(out, to, &rng);
    round_robin(in, from, &rng);
    ck_assert_uint_gt(t_live_sum("qps_refused"), 0);
    ck_assert_uint_gt(t_live_sum("idle_closes"), 0);
    ck_assert_uint_eq(t_live_sum("recoveries"), 0);
    ck_assert_uint_eq(t_log_count(told), 1);

    few_allow(PEERS);
    while (few_has() < PEERS) {
        round_robin(out, to, &rng);
    }
    few_end();
}
END_TEST


/* Who asks first waits, and so does whoever asks it. */
START_TEST(test_none_yet)
{
    t_end_t *a = few_open(0, "CONN_RETRY=5ms");
    t_end_t *b = t_end_open("CONN_RETRY=5ms");
    t_stream_t stream;
    t_link_t *link;

    t_only_daqiri("has a budget of queue pairs");
    t_expect_log(told);
    t_stream_open(&stream, (_i == 0) ? b : a, 1);
    link = t_link_open((_i == 0) ? a : b, (_i == 0) ? &b->address : &a->address, 1);
    T_WAIT(t_live_sum("qps_refused") > 3); /* it is asked again */
    few_allow(1);
    send_one(link, &stream, T_BCOPY, 8);
    ck_assert_uint_eq(t_live_sum("recoveries"), 0);
    few_end();
}
END_TEST


/* Until CONN_TIMEOUT. A later one waits as long. Without recovery, who has one cannot
 * give it to others. */
START_TEST(test_none)
{
    t_end_t *a = few_open(_i, (_i == 0) ? "CONN_TIMEOUT=200ms"
                                        : "CONN_TIMEOUT=200ms RECOVERY=n");
    t_end_t *b = t_end_open("");
    t_stream_t stream;
    t_link_t *link;
    double begin;
    unsigned i;

    if (_i == 1) {
        (void)t_link_up(a, a, 9, &stream);
    }
    t_only_daqiri("has a budget of queue pairs");
    t_expect_log(told);
    t_expect_log("a queue pair could not be created or connected; 0 work requests ");
    for (i = 1; i <= 2; i++) {
        begin = t_ucx_seconds();
        link  = t_link_open(a, &b->address, i);
        T_WAIT(a->errors == i);
        ck_assert(t_ucx_seconds() - begin >= 0.2);
        t_link_close(link);
        T_WAIT(t_live_sum("conns_closed") == i);
    }
    ck_assert_uint_eq(t_log_count(told), 1);
    few_end();
}
END_TEST


/* The device of b has one, for c. It closes that for a, whom b does not know yet. */
START_TEST(test_stranger)
{
    t_end_t *b = few_open(1, "CONN_RETRY=5ms");
    t_end_t *a = t_end_open("CONN_RETRY=5ms");
    t_end_t *c = t_end_open("CONN_RETRY=5ms");
    t_stream_t to_b, to_c;
    t_link_t *ab, *bc;

    t_only_daqiri("has a budget of queue pairs");
    t_expect_log(told);
    bc = t_link_up(b, c, 1, &to_c);
    ab = t_link_up(a, b, 2, &to_b);
    ck_assert_uint_gt(t_live_sum("qps_refused"), 0);
    ck_assert_uint_gt(t_live_sum("idle_closes"), 0);
    send_one(bc, &to_c, T_SHORT, 8);
    send_one(ab, &to_b, T_SHORT, 8);
    ck_assert_uint_eq(t_live_sum("recoveries"), 0);
    few_end();
}
END_TEST


/* The user gives up what waits. */
START_TEST(test_leave)
{
    t_end_t *a = few_open(0, "");
    t_end_t *b = t_end_open("");
    t_link_t *link;

    t_only_daqiri("has a budget of queue pairs");
    t_expect_log(told);
    link = t_link_open(a, &b->address, 1);
    T_WAIT(t_live_sum("qps_refused") > 0);
    if (_i == 0) {
        t_link_close(link);
        t_progress_turns(100);
    }
    t_end_close(a);
    few_end();
}
END_TEST


static Suite *suite_idle(void)
{
    Suite *suite  = suite_create("idle");
    TCase *limit  = t_uct_case("limit");
    TCase *budget = t_uct_case("budget");
    TCase *device = t_uct_case("device");

    tcase_add_test(limit, test_timeout);
    tcase_add_test(limit, test_slow_handshake);
    tcase_add_test(limit, test_both);
    tcase_add_test(limit, test_each_way);
    tcase_add_test(limit, test_deaf);
    tcase_add_loop_test(limit, test_ack_lost, 0, 2);
    tcase_add_test(limit, test_check);
    tcase_add_loop_test(limit, test_flush, 0, 2);
    tcase_add_test(limit, test_peer_computes);
    tcase_add_loop_test(limit, test_close, 0, 12);
    tcase_add_loop_test(limit, test_gone, 0, 3);
    suite_add_tcase(suite, limit);

    tcase_add_loop_test(budget, test_budget, 0, 6);
    tcase_add_test(budget, test_busy);
    tcase_add_test(budget, test_atomics);
    tcase_add_test(budget, test_self);
    suite_add_tcase(suite, budget);

    tcase_add_loop_test(device, test_few, 0, 3);
    tcase_add_loop_test(device, test_none_yet, 0, 2);
    tcase_add_loop_test(device, test_none, 0, 2);
    tcase_add_test(device, test_stranger);
    tcase_add_loop_test(device, test_leave, 0, 2);
    suite_add_tcase(suite, device);
    return suite;
}

T_UCT_MAIN(suite_idle)
