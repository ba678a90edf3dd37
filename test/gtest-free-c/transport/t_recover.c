/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs die, at any moment, on either side or on both, and nobody learns:
 * every message arrives, once, in order; every PUT and GET is done; nothing is
 * left over. What a new queue pair cannot cure fails as ever.
 *
 * The program stands between the plugin and the device where QPs are made,
 * modified and destroyed, so that it knows those that there are and their states,
 * and moves them to ERR; and where a CQ is polled, to be a device that is late.
 */
#include "t_uct.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    QPS        = 256,
    MESSAGES   = 20000,
    KILL_EVERY = 97,
    IN_VAIN    = 4, /* queue pairs, one after another: fewer than are too many */
    VAIN_MAX   = 16, /* that are in vain: one more is too many               */
    LATE_MAX   = 4096
};

static struct {
    pthread_mutex_t lock;
    struct ibv_qp   *qp[QPS];
    int             is_up[QPS]; /* in RTS                                    */
    int             is_err[QPS];
    unsigned        stopped;    /* moved to ERR by the plugin                */
    int             is_held;    /* those who connect, for a moment           */
    unsigned        connecting; /* how often one has begun to; atomic        */
} qps = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A device that moves a QP to ERR, but is not done with the messages that it has
 * taken until the QP is destroyed; the lock of qps. */
static struct {
    int (*poll_cq)(struct ibv_cq*, int, struct ibv_wc*);
    int      is_on;
    unsigned count;             /* held now, in their order                  */
    unsigned all;               /* that have been held                       */
    struct {
        struct ibv_cq *cq;
        struct ibv_wc wc;
        int           is_over;  /* its QP is destroyed                       */
    } held[LATE_MAX];
} late;


/* ---- The QPs there are ---- */

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp *(*real)(struct ibv_pd*, struct ibv_qp_init_attr*);
    struct ibv_qp *qp;
    unsigned i;

    *(void**)&real = dlsym(RTLD_NEXT, "ibv_create_qp");
    qp             = real(pd, attr);
    if ((qp == NULL) || (attr->qp_type != IBV_QPT_RC)) {
        return qp;
    }
    pthread_mutex_lock(&qps.lock);
    for (i = 0; (i < QPS) && (qps.qp[i] != NULL); i++) {
    }
    if (i < QPS) {
        qps.qp[i]     = qp;
        qps.is_up[i]  = 0;
        qps.is_err[i] = 0;
    }
    pthread_mutex_unlock(&qps.lock);
    return qp;
}


/* Needs the lock. */
static int modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    int (*real)(struct ibv_qp*, struct ibv_qp_attr*, int);
    unsigned i;
    int ret;

    *(void**)&real = dlsym(RTLD_NEXT, "ibv_modify_qp");
    ret            = real(qp, attr, mask);
    for (i = 0; (ret == 0) && (i < QPS); i++) {
        if (qps.qp[i] == qp) {
            qps.is_up[i]  = attr->qp_state == IBV_QPS_RTS;
            qps.is_err[i] = attr->qp_state == IBV_QPS_ERR;
        }
    }
    return ret;
}


/* Says that a QP is being connected, and holds the thread that does so for a moment.
 * It is counted, for the program may not get a processor before the moment is over.
 * Relaxed: what the two threads see of each other is the plugin's to order, and not the
 * test's. */
static void hold_connecting(void)
{
    enum { HOLD_US = 2000 };

    __atomic_fetch_add(&qps.connecting, 1, __ATOMIC_RELAXED);
    usleep(HOLD_US);
}


int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    int ret;

    if (qps.is_held && (attr->qp_state == IBV_QPS_RTR)) {
        hold_connecting();
    }
    pthread_mutex_lock(&qps.lock);
    qps.stopped += attr->qp_state == IBV_QPS_ERR;
    ret = modify(qp, attr, mask);
    pthread_mutex_unlock(&qps.lock);
    return ret;
}


/* The QP of this number is destroyed. */
static void late_end(uint32_t qpn)
{
    unsigned i;

    pthread_mutex_lock(&qps.lock);
    for (i = 0; i < late.count; i++) {
        late.held[i].is_over |= late.held[i].wc.qp_num == qpn;
    }
    pthread_mutex_unlock(&qps.lock);
}


int ibv_destroy_qp(struct ibv_qp *qp)
{
    int (*real)(struct ibv_qp*);
    uint32_t qpn = qp->qp_num;
    unsigned i;
    int ret;

    *(void**)&real = dlsym(RTLD_NEXT, "ibv_destroy_qp");
    pthread_mutex_lock(&qps.lock);
    for (i = 0; i < QPS; i++) {
        if (qps.qp[i] == qp) {
            qps.qp[i] = NULL;
        }
    }
    pthread_mutex_unlock(&qps.lock);
    ret = real(qp);
    late_end(qpn);
    return ret;
}


/* Takes those off that are of @a cq and may be seen. Needs the lock. */
static int late_release(struct ibv_cq *cq, int room, struct ibv_wc *wc)
{
    unsigned i, kept = 0;
    int count = 0;

    for (i = 0; i < late.count; i++) {
        if ((count < room) && (late.held[i].cq == cq) && late.held[i].is_over) {
            wc[count++] = late.held[i].wc;
        } else {
            late.held[kept++] = late.held[i];
        }
    }
    late.count = kept;
    return count;
}


/* Needs the lock. */
static int late_is_due(const struct ibv_wc *wc)
{
    unsigned i;

    if (!late.is_on || (wc->status != IBV_WC_SUCCESS) ||
        !(wc->opcode & IBV_WC_RECV)) {
        return 0;
    }
    for (i = 0; i < QPS; i++) {
        if ((qps.qp[i] != NULL) && (qps.qp[i]->qp_num == wc->qp_num)) {
            return qps.is_err[i];
        }
    }
    return 0;
}


/* Holds those of @a wc that are late; returns how many are left. Needs the lock. */
static int late_hold(struct ibv_cq *cq, int seen, struct ibv_wc *wc)
{
    int count = 0, i;

    for (i = 0; i < seen; i++) {
        if (!late_is_due(&wc[i])) {
            wc[count++] = wc[i];
            continue;
        }
        ck_assert_uint_lt(late.count, LATE_MAX);
        late.held[late.count].cq      = cq;
        late.held[late.count].wc      = wc[i];
        late.held[late.count].is_over = 0;
        late.count++;
        late.all++;
    }
    return count;
}


/* What is held is not in the CQ yet, so 0 is said only when that is empty. */
static int late_poll_cq(struct ibv_cq *cq, int room, struct ibv_wc *wc)
{
    int count, seen;

    pthread_mutex_lock(&qps.lock);
    count = late_release(cq, room, wc);
    while (count == 0) {
        seen  = late.poll_cq(cq, room, wc);
        count = (seen > 0) ? late_hold(cq, seen, wc) : seen;
        if (seen <= 0) {
            break;
        }
    }
    pthread_mutex_unlock(&qps.lock);
    return count;
}


struct ibv_context *ibv_open_device(struct ibv_device *which)
{
    struct ibv_context *(*real)(struct ibv_device*);
    struct ibv_context *context;

    *(void**)&real = dlsym(RTLD_NEXT, "ibv_open_device");
    context        = real(which);
    if (context != NULL) {
        late.poll_cq         = context->ops.poll_cq;
        context->ops.poll_cq = late_poll_cq;
    }
    return context;
}


/* Moves one of them to ERR, if there is one. Returns how many. */
static unsigned kill_one(t_rng_t *rng)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    unsigned start          = t_rng_below(rng, QPS);
    unsigned i, at, killed = 0;

    pthread_mutex_lock(&qps.lock);
    for (i = 0; (i < QPS) && (killed == 0); i++) {
        at = (start + i) % QPS;
        if ((qps.qp[at] != NULL) && qps.is_up[at]) {
            ck_assert_int_eq(modify(qps.qp[at], &attr, IBV_QP_STATE), 0);
            killed = 1;
        }
    }
    pthread_mutex_unlock(&qps.lock);
    return killed;
}


/* The same, unless a few have died since a message came: DQ_RECOVERY_FUTILE_MAX of
 * them may end the connection, and where a message takes long, a loop that sends
 * would kill that many. */
static void kill_some(t_rng_t *rng)
{
    static uint64_t came, in_vain;
    uint64_t come = t_live_sum("am_rx");

    if (come != came) {
        came    = come;
        in_vain = 0;
    }
    if (in_vain < IN_VAIN) {
        in_vain += kill_one(rng);
    }
}


/* How many of them are in RTS. */
static unsigned count_up(void)
{
    unsigned i, count = 0;

    pthread_mutex_lock(&qps.lock);
    for (i = 0; i < QPS; i++) {
        count += (qps.qp[i] != NULL) && qps.is_up[i];
    }
    pthread_mutex_unlock(&qps.lock);
    return count;
}


/* ---- Messages ---- */

static const char options[] = "TIMEOUT=8ms RETRY_COUNT=3 CONN_RETRY=5ms";


static void check_recovered(void)
{
    ck_assert_uint_gt(t_stats_sum("qp_failures"), 0);
    ck_assert_uint_eq(t_stats_sum("qp_failures"),
                      t_log_count("; lost, connecting again"));
    ck_assert_uint_eq(t_stats_sum("recoveries"),
                      t_log_count(" daqiri: back, with "));
    ck_assert_uint_eq(t_stats_sum("replayed"),
                      t_log_sum(" requests sent again"));
    ck_assert_uint_eq(t_stats_sum("replay_delivered"),
                      t_log_sum(" messages had arrived"));
}


/* Two ends of one process, each sending to the other. */
static void both_ways(int loop, unsigned count)
{
    unsigned i;
    t_stream_t stream[2];
    t_link_t *link[2];
    t_end_t *end[2];
    t_rng_t rng;

    t_only_daqiri("goes on over another queue pair");
    t_expect_losses_of_qps();
    t_rng_init(&rng, 0xd000 + loop);
    for (i = 0; i < 2; i++) {
        end[i] = t_end_open((loop % 2) ? "TIMEOUT=8ms RETRY_COUNT=3 "
                                       "CONN_RETRY=5ms RX_WINDOW=8 SQ_DEPTH=8"
                                     : options);
        t_stream_open(&stream[i], end[i], 1 + i);
    }
    for (i = 0; i < 2; i++) {
        link[i] = t_link_open(end[i], &end[1 - i]->address, 2 - i);
    }
    while ((link[0]->sent < count) || (link[1]->sent < count)) {
        i = t_rng_below(&rng, 2);
        if (link[i]->sent < count) {
            t_try_some(link[i], &rng);
        }
        if (t_rng_once_in(&rng, 5)) {
            t_progress();
        }
        if (t_rng_once_in(&rng, KILL_EVERY * (1 + loop))) {
            kill_some(&rng);
        }
    }
    for (i = 0; i < 2; i++) {
        T_WAIT((stream[i].got == count) && (link[i]->zcopies == 0));
        ck_assert_uint_eq(end[i]->errors, 0);
        ck_assert_int_eq(t_ep_flush(link[i]), UCS_OK);
    }
    t_end_close_all();
    check_recovered();
}


START_TEST(test_both_ways)
{
    both_ways(_i, t_some(MESSAGES));
}
END_TEST


/* What a QP has received is seen only when it is no more, though it was in ERR
 * before: so it is where its device is still at work on a message then. */
START_TEST(test_late)
{
    late.is_on = 1;
    both_ways(_i, t_some(MESSAGES));
    ck_assert_uint_gt(late.all, 0);
    ck_assert_uint_eq(late.count, 0);
}
END_TEST


/* ---- Processes ---- */

/* Everybody sends to everybody, and kills its own QPs. */
static void storm(t_team_t *team)
{
    unsigned count = t_some(MESSAGES / 10) + 1, i, peer;
    t_stream_t stream[T_TEAM_MAX];
    t_link_t *link[T_TEAM_MAX];
    t_end_t *end;
    t_rng_t rng;

    t_rng_init(&rng, 0xd100 + team->rank);
    end = t_end_open(options);
    for (peer = 0; peer < team->size; peer++) {
        t_stream_open(&stream[peer], end, peer);
    }
    t_team_put_address(team, end);
    for (peer = 0; peer < team->size; peer++) {
        link[peer] = t_link_open(end, t_team_get_address(team, peer),
                                 team->rank);
    }
    for (i = 0; i < count * team->size; i++) {
        peer = i % team->size;
        t_send(link[peer], T_BCOPY, t_rng_below(&rng, 8000));
        if (t_rng_once_in(&rng, KILL_EVERY)) {
            kill_some(&rng);
        }
    }
    for (peer = 0; peer < team->size; peer++) {
        T_WAIT((stream[peer].got == count) && (link[peer]->zcopies == 0));
    }
    t_iface_flush(end);
    t_team_barrier(team);
    ck_assert_uint_eq(end->errors, 0);
}


START_TEST(test_storm)
{
    t_only_daqiri("goes on over another queue pair");
    t_expect_losses_of_qps();
    t_team_run(_i, 0, storm);
    check_recovered();
    ck_assert_uint_eq(t_stats_sum("am_rx"),
                      _i * _i * (t_some(MESSAGES / 10) + 1));
}
END_TEST


/* ---- Before it is up ---- */

/* The QPs die while the handshake runs, with requests that wait for it. */
START_TEST(test_handshake)
{
    unsigned i, round;
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];
    t_rng_t rng;

    t_only_daqiri("goes on over another queue pair");
    t_expect_losses_of_qps();
    t_rng_init(&rng, 0xd200);
    for (round = 0; round < t_some(100); round++) {
        for (i = 0; i < 2; i++) {
            end[i] = t_end_open(options);
        }
        t_stream_open(&stream, end[1], 1);
        link = t_link_open(end[0], &end[1]->address, 1);
        for (i = 0; i < 20; i++) {
            kill_some(&rng);
            t_send(link, T_BCOPY, 100);
        }
        T_WAIT(stream.got == 20);
        ck_assert_int_eq(t_ep_flush(link), UCS_OK);
        t_end_close_all();
    }
}
END_TEST


/* ---- To oneself ---- */

START_TEST(test_self)
{
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end;
    t_rng_t rng;

    t_only_daqiri("goes on over another queue pair");
    t_expect_losses_of_qps();
    t_rng_init(&rng, 0xd300);
    end = t_end_open(options);
    t_stream_open(&stream, end, 1);
    link = t_link_open(end, &end->address, 1);
    while (link->sent < t_some(MESSAGES)) {
        t_try_some(link, &rng);
        t_progress();
        if (t_rng_once_in(&rng, KILL_EVERY)) {
            kill_some(&rng);
        }
    }
    T_WAIT((stream.got == link->sent) && (link->zcopies == 0));
    t_end_close_all();
    check_recovered();
}
END_TEST


/* ---- Only one side does something ---- */

static void read_unpack(void *arg, const void *data, size_t length)
{
    memcpy(arg, data, length);
}


/* One READ of a number, through the queue pair that there is or the next one. */
static void region_read(t_region_t *region, t_link_t *link)
{
    uint64_t *there = (void*)region->mem;
    uint64_t here   = 0;
    ucs_status_t status;
    t_comp_t comp;

    (*there)++;
    do {
        t_comp_init(&comp);
        status = uct_ep_get_bcopy(link->ep, read_unpack, &here, sizeof(here),
                                  (uintptr_t)there, region->key.rkey,
                                  &comp.super);
        t_progress_or_yield();
    } while (status == UCS_ERR_NO_RESOURCE);
    ck_assert_int_eq(status, UCS_INPROGRESS);
    T_WAIT(comp.calls > 0);
    ck_assert_int_eq(comp.super.status, UCS_OK);
    ck_assert_uint_eq(here, *there);
}


/*
 * The end that is read from sends nothing and is handed nothing. Its queue pairs
 * die more often than may be without anything done between: but much has been
 * done, by its peer.
 */
START_TEST(test_passive)
{
    unsigned round;
    t_region_t region;
    t_link_t *link;
    t_end_t *end[2];
    t_rng_t rng;

    t_only_daqiri("goes on over another queue pair");
    t_expect_losses_of_qps();
    t_rng_init(&rng, 0xd500);
    end[0] = t_end_open(options);
    end[1] = t_end_open(options);
    link   = t_link_open(end[0], &end[1]->address, 1);
    (void)t_link_open(end[1], &end[0]->address, 1); /* for its errors */
    t_region_open(&region, end[1], NULL, sizeof(uint64_t));
    for (round = 0; round < 50; round++) {
        region_read(&region, link);
        kill_one(&rng);
        region_read(&region, link);
    }
    ck_assert_uint_eq(end[0]->errors + end[1]->errors, 0);
    t_region_close(&region);
    t_end_close_all();
    check_recovered();
    /* one that an end is about to close is no loss to it */
    ck_assert_uint_ge(t_stats_sum("qp_failures"), t_has_idle_closes() ? 1 : 100);
}
END_TEST


/*
 * A second loss comes long after the first, and nothing has come by meanwhile
 * that the end which is read from could have seen. RECOVERY_TIMEOUT, which has
 * passed by then, is for the time without a queue pair that works.
 */
START_TEST(test_seldom)
{
    unsigned round, i;
    t_region_t region;
    t_link_t *link;
    t_end_t *end[2];
    t_rng_t rng;
    double then;

    t_no_idle_closes("it counts the queue pairs that die");
    t_only_daqiri("goes on over another queue pair");
    t_expect_losses_of_qps();
    t_rng_init(&rng, 0xd600);
    for (i = 0; i < 2; i++) {
        end[i] = t_end_open("TIMEOUT=8ms RETRY_COUNT=3 CONN_RETRY=5ms "
                            "RECOVERY_TIMEOUT=2s");
    }
    link = t_link_open(end[0], &end[1]->address, 1);
    (void)t_link_open(end[1], &end[0]->address, 1); /* for its errors */
    t_region_open(&region, end[1], NULL, sizeof(uint64_t));
    T_WAIT(count_up() == 2);
    for (round = 0; round < 2; round++) {
        kill_one(&rng);
        region_read(&region, link);
        then = t_seconds();
        T_WAIT(t_seconds() > then + 2.1);
    }
    ck_assert_uint_eq(end[0]->errors + end[1]->errors, 0);
    t_region_close(&region);
    t_end_close_all();
    check_recovered();
    ck_assert_uint_ge(t_stats_sum("qp_failures"), 4);
}
END_TEST


/* Two ends with a connection that has been used once. */
static t_link_t *idle_open(t_end_t *end[2], t_stream_t *stream,
                           const char *how)
{
    const char *bed = getenv("T_BED");
    t_link_t *link;
    unsigned i;

    t_only_daqiri("goes on over another queue pair");
    if ((bed != NULL) && (strcmp(bed, "softverbs") != 0)) {
        t_skip("only softverbs takes a plan of faults");
    }
    t_expect_losses_of_qps();
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS_LOG", "/dev/null", 1), 0);
    for (i = 0; i < 2; i++) {
        end[i] = t_end_open(how);
    }
    link = t_link_up(end[0], end[1], 1, stream);
    return link;
}


/*
 * A message arrives, and its sender does not learn that before its queue pair dies:
 * it is not sent again, and counted as one that had arrived. The peer does not look
 * for a while, which is part of the time that is said.
 */
START_TEST(test_had)
{
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];
    double then;

    t_no_idle_closes("it counts the requests of a queue pair");
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS",
                            "lose-ack qp=rc op=send n=2 times=1", 1), 0);
    link = idle_open(end, &stream, options);
    end[1]->is_stopped = 1;
    t_send(link, T_BCOPY, 100);
    T_WAIT(t_live_sum("qp_failures") > 0);
    then = t_seconds();
    T_WAIT(t_seconds() > then + 0.03);
    end[1]->is_stopped = 0;
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    ck_assert_uint_eq(stream.got, 2);
    T_WAIT(t_live_sum("recoveries") == 2);
    ck_assert_uint_ge(qps.stopped, 2); /* or they might still take messages */
    t_end_close_all();
    check_recovered();
    ck_assert_uint_eq(t_stats_sum("replay_delivered"), 1);
    ck_assert_uint_ge(t_log_sum(" ms: "), 30);
}
END_TEST


/*
 * Nothing is wanted of the connection while its queue pairs die, one after
 * another, more often than may be in vain. None was: each came up, and there was
 * nothing to do. Then there is.
 */
START_TEST(test_idle)
{
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];
    uint64_t losses;
    unsigned round;

    t_no_idle_closes("it counts the queue pairs that die");
    link = idle_open(end, &stream, "TIMEOUT=8ms RETRY_COUNT=3 CONN_RETRY=5ms "
                                   "RECOVERY_TIMEOUT=600s");
    (void)t_link_open(end[1], &end[0]->address, 1); /* for its errors */
    for (round = 0; round < 20; round++) {
        losses = t_live_sum("qp_failures");
        t_plan_by_command("qp-error qp=rc at=0ms times=1");
        T_WAIT(((t_live_sum("qp_failures") > losses) &&
                (t_live_sum("qp_failures") == t_live_sum("recoveries"))) ||
               (end[0]->errors + end[1]->errors > 0));
        ck_assert_uint_eq(end[0]->errors + end[1]->errors, 0);
    }
    t_send(link, T_BCOPY, 100);
    T_WAIT(stream.got == 2);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    t_end_close_all();
    check_recovered();
    ck_assert_uint_ge(t_stats_sum("qp_failures"), 40);
}
END_TEST


/* UCX exports it, and does not install the header that declares it. */
ucs_status_t uct_ep_invalidate(uct_ep_h ep, unsigned flags);

/* What a user may do with an endpoint whose connection has no queue pair. */
enum { INVALIDATE, FLUSH, CLOSE, ACTS };

static void act_on(t_link_t *link, int act)
{
    uint64_t closed = t_live_sum("conns_closed");

    if (act == INVALIDATE) {
        ck_assert_int_eq(uct_ep_invalidate(link->ep, 0), UCS_OK);
    } else if (act == FLUSH) {
        ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    }
    t_link_close(link);
    if (act == INVALIDATE) {
        T_WAIT(t_live_sum("conns_closed") >= closed + 2); /* each end has its own */
    }
}


/*
 * An endpoint is used, or ends, at any moment of the time in which another queue pair
 * is made, told to the peer and taken up: that is the async thread's work, and the
 * program's goes on. Where it ends nothing, the connection goes on, too.
 */
START_TEST(test_used_meanwhile)
{
    enum { ROUNDS = 30, TURNS = 10 };
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];
    uint64_t failures;
    t_rng_t rng;
    unsigned round, connecting;

    t_no_idle_closes("it waits for queue pairs that die");
    t_rng_init(&rng, 7 + _i);
    t_expect_log("UCX has given up");
    link        = idle_open(end, &stream, options);
    qps.is_held = 1;
    for (round = 0; round < ROUNDS; round++) {
        failures   = t_live_sum("qp_failures");
        connecting = __atomic_load_n(&qps.connecting, __ATOMIC_RELAXED);
        t_plan_by_command("qp-error qp=rc at=0ms times=1");
        T_WAIT(t_live_sum("qp_failures") > failures);
        if (round % 2 == 0) {
            T_WAIT(__atomic_load_n(&qps.connecting, __ATOMIC_RELAXED) != connecting);
        }
        t_progress_turns(t_rng_below(&rng, TURNS));
        act_on(link, _i);
        stream.got = 0;
        link       = t_link_open(end[0], &end[1]->address, 1);
        t_send(link, T_BCOPY, 10);
        T_WAIT(stream.got == 1);
        ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    }
    ck_assert_uint_eq(end[0]->errors + end[1]->errors, 0);
    t_end_close_all();
    ck_assert_uint_ge(t_stats_sum("qp_failures"), ROUNDS);
}
END_TEST


/* An operation that waits for something else. */
static ucs_status_t never_go(uct_pending_req_t *req)
{
    (void)req;
    return UCS_ERR_NO_RESOURCE;
}


/* One queue pair of each end. */
static void kill_both(const t_end_t *one, const t_end_t *other)
{
    uint64_t losses = t_live_sum("qp_failures");

    t_plan_by_command("qp-error qp=rc at=0ms times=1");
    T_WAIT(((t_live_sum("qp_failures") >= losses + 2) &&
            (t_live_sum("qp_failures") == t_live_sum("recoveries"))) ||
           (one->errors + other->errors > 0));
    ck_assert_uint_eq(one->errors + other->errors, 0);
}


/*
 * An end wants something that does not go, and so its queue pairs are in vain, as
 * many as may be: the first loss begins a row, and so does the second, for by
 * then the end knows what its peer has done before. Then a message comes, and the
 * next loss begins a row as well.
 */
START_TEST(test_heard)
{
    uct_pending_req_t wish = {.func = never_go};
    ucs_status_t status = UCS_ERR_BUSY;
    t_stream_t stream;
    t_link_t *link[2];
    t_end_t *end[2];
    unsigned i;

    t_no_idle_closes("it waits for queue pairs that die");
    link[0] = idle_open(end, &stream,
                        "TIMEOUT=8ms RETRY_COUNT=3 CONN_RETRY=5ms "
                        "RECOVERY_TIMEOUT=600s SQ_STALL_TIMEOUT=600s");
    link[1] = t_link_open(end[1], &end[0]->address, 1);
    ck_assert_int_eq(t_ep_flush(link[0]), UCS_OK);
    t_plan_by_command("qp-error qp=rc at=0ms times=1");
    while (status == UCS_ERR_BUSY) { /* until there is no queue pair */
        t_progress_or_yield();
        status = uct_ep_pending_add(link[1]->ep, &wish, 0);
    }
    ck_assert_int_eq(status, UCS_OK);
    T_WAIT((t_live_sum("qp_failures") == 2) && (t_live_sum("recoveries") == 2));
    for (i = 0; i < VAIN_MAX; i++) {
        kill_both(end[0], end[1]);
    }
    t_send(link[0], T_SHORT, 10);
    T_WAIT(stream.got == 2);
    kill_both(end[0], end[1]);
    uct_ep_pending_purge(link[1]->ep, NULL, NULL);
    t_end_close_all();
    check_recovered();
}
END_TEST


/* But they die at once, again and again: that has an end. The other end may learn
 * that it is over, and has wanted nothing. */
START_TEST(test_hopeless)
{
    t_stream_t stream;
    t_link_t *link[2];
    t_end_t *end[2];
    unsigned i;

    t_expect_loss();
    t_expect_log(" work requests outstanding of "); /* whatever the last was */
    link[0] = idle_open(end, &stream, "TIMEOUT=8ms RETRY_COUNT=3 "
                                      "CONN_RETRY=5ms RECOVERY_TIMEOUT=500ms");
    link[1] = t_link_open(end[1], &end[0]->address, 1);
    t_plan_by_command("qp-error qp=rc at=0ms every=1ms");
    /* of who has tried, and not only of its peer, which may learn first */
    T_WAIT(t_log_count("to go on over another queue pair") > 0);
    for (i = 0; i < 2; i++) {
        if (end[i]->errors > 0) {
            t_link_close(link[i]);
        }
    }
    t_end_close_all();
}
END_TEST


/*
 * The next queue pair is made, and its peer never answers. It has nothing of what
 * is in the ledger, whose last request nobody was to hear of: there is nothing to
 * ask of it, and nothing to wait for. A request that the device refuses, since the
 * queue pair takes none yet, is counted, and teardown looks for that.
 */
START_TEST(test_unanswered)
{
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];

    t_expect_loss();
    t_expect_log("the device reports a general error");
    link = idle_open(end, &stream, "CONN_RETRY=5ms RECOVERY_TIMEOUT=100ms");
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    t_plan_by_command("complete qp=rc status=GENERAL_ERR times=1; drop");
    t_send(link, T_SHORT, 10);
    T_WAIT(end[0]->errors > 0);
    ck_assert_uint_eq(t_live_sum("qp_failures"), 1);
    ck_assert_uint_eq(t_live_sum("recoveries"), 0);
    t_link_close(link);
    t_plan_by_command("drop qp=ud.99");
    t_end_close_all();
}
END_TEST


/* This end closes before it reads that its QP is lost, and what that QP has completed:
 * it waits for that, and counts no completion of an unknown request. */
START_TEST(test_close_unread)
{
    enum {
        MESSAGES = 6,    /* every fourth one is signalled                    */
        NEWS     = 20000 /* us: for the thread that reads events             */
    };
    t_end_t *a = t_end_open("CONN_RETRY=5ms");
    t_end_t *b = t_end_open("CONN_RETRY=5ms");
    t_stream_t to[2];
    t_link_t *link, *back;
    unsigned i;

    t_only_daqiri("recovers");
    if (t_is_softroce()) {
        t_skip("only softverbs kills a QP by a plan");
    }
    t_expect_loss();
    t_expect_losses_of_qps();
    t_expect_log("the peer has ended the connection");
    link = t_link_up(a, b, 1, &to[0]);
    back = t_link_up(b, a, 2, &to[1]);
    T_WAIT(t_ep_flush(link) == UCS_OK);
    a->is_stopped = 1;
    for (i = 0; i < MESSAGES; i++) {
        ck_assert_int_eq(t_try_send(link, T_SHORT, 8), UCS_OK);
    }
    t_plan_by_command("qp-error qp=rc op=send n=1 times=1");
    ck_assert_int_eq(t_try_send(back, T_SHORT, 8), UCS_OK);
    T_WAIT(t_live_sum("qp_failures") > 0);
    t_progress_turns(100);
    usleep(NEWS);
    t_end_leave(a);
    T_WAIT(b->errors > 0);
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("stray_completions"), 0);
}
END_TEST


/* The device has no queue pair to give, for longer than 16 attempts take. It has one
 * before RECOVERY_TIMEOUT is over. */
START_TEST(test_device_is_full)
{
    t_end_t *a = t_end_open("CONN_RETRY=5ms");
    t_end_t *b = t_end_open("CONN_RETRY=5ms");
    t_stream_t stream;
    t_link_t *link;

    t_only_daqiri("recovers");
    if (t_is_softroce()) {
        t_skip("only softverbs refuses a QP by a plan");
    }
    t_expect_losses_of_qps();
    link = t_link_up(a, b, 1, &stream);
    T_WAIT(t_ep_flush(link) == UCS_OK);
    t_plan_by_command("qp-error qp=rc op=send n=1 times=1; "
                      "verb name=create_qp times=18");
    t_send(link, T_SHORT, 8);
    T_WAIT(stream.got == link->sent);
    t_end_close_all();
    ck_assert_uint_ge(t_stats_sum("qps_refused"), 18);
}
END_TEST


/* The peer leaves while this end has read only the first error completion of a lost QP.
 * Nothing was carried out, so no request has succeeded. */
START_TEST(test_peer_leaves_unread)
{
    enum {
        PUTS = 6,
        NEWS = 20000 /* us: for the thread that reads events */
    };
    t_end_t *a = t_end_open("CONN_RETRY=5ms POLL_BATCH=1");
    t_end_t *b = t_end_open("CONN_RETRY=5ms");
    t_region_t from, to;
    t_stream_t stream;
    t_comp_t comp[PUTS];
    t_link_t *link;
    uct_iov_t iov;
    unsigned i;

    t_only_daqiri("recovers");
    if (t_is_softroce()) {
        t_skip("only softverbs kills a QP by a plan");
    }
    t_expect_loss();
    t_expect_losses_of_qps();
    t_expect_log("the peer has ended the connection");
    t_region_open(&from, a, NULL, 64);
    t_region_open(&to, b, NULL, 64);
    link = t_link_up(a, b, 1, &stream);
    T_WAIT(t_ep_flush(link) == UCS_OK);
    a->is_stopped = 1;
    t_plan_by_command("qp-error qp=rc op=write n=1 times=1 event=no");
    iov = (uct_iov_t){
        .buffer = from.mem, .length = 64, .memh = from.memh, .count = 1,
    };
    for (i = 0; i < PUTS; i++) {
        t_comp_init(&comp[i]);
        ck_assert_int_eq(uct_ep_put_zcopy(link->ep, &iov, 1, (uintptr_t)to.mem,
                                          to.key.rkey, &comp[i].super),
                         UCS_INPROGRESS);
    }
    t_region_close(&to);
    t_end_leave(b);
    usleep(NEWS);
    a->is_stopped = 0;
    for (i = 0; i < PUTS; i++) {
        T_WAIT(comp[i].calls == 1);
        ck_assert_int_ne(comp[i].super.status, UCS_OK);
    }
    t_region_close(&from);
}
END_TEST


/* The peer leaves, and a request of ours behind its back has no acknowledgement. No
 * endpoint uses the connection any more. So nothing has failed that somebody misses. */
START_TEST(test_peer_has_left)
{
    enum { NEWS = 200000 /* us: for all retries, and the thread that reads events */ };
    const char *options = "CONN_RETRY=5ms TIMEOUT=1ms RETRY_COUNT=1 "
                          "RECOVERY_TIMEOUT=100ms";
    t_end_t *a = t_end_open(options);
    t_end_t *b = t_end_open(options);
    t_stream_t stream;
    t_link_t *link;

    t_only_daqiri("recovers");
    if (t_is_softroce()) {
        t_skip("only softverbs loses datagrams by a plan");
    }
    t_expect_loss();
    link = t_link_up(a, b, 1, &stream);
    T_WAIT(t_ep_flush(link) == UCS_OK);
    a->is_stopped = 1;
    if (_i >= 2) {
        t_plan_by_command("drop qp=ud"); /* its word of that is lost */
    }
    t_end_leave(b);
    ck_assert_int_eq(t_try_send(link, T_SHORT, 8), UCS_OK);
    t_link_close(link);
    usleep(NEWS);
    a->is_stopped = 0;
    if (_i % 2 == 0) {
        t_progress_turns(100);
        usleep(NEWS);
        t_progress_turns(100);
    }
    t_end_close(a);
    ck_assert_uint_eq(t_stats_sum("tx_errors"), 0);
    ck_assert_uint_eq(t_stats_sum("qp_failures"), 0);
}
END_TEST


/* ---- Off ---- */

START_TEST(test_off)
{
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];
    t_rng_t rng;
    int i;

    t_no_idle_closes("it has no recovery");
    t_only_daqiri("goes on over another queue pair");
    t_expect_loss();
    t_rng_init(&rng, 0xd400);
    for (i = 0; i < 2; i++) {
        end[i] = t_end_open("TIMEOUT=8ms RETRY_COUNT=3 RECOVERY=n");
    }
    link = t_link_up(end[0], end[1], 1, &stream);
    kill_one(&rng);
    while (end[0]->errors == 0) {
        (void)t_try_send(link, T_BCOPY, 100);
        t_progress_or_yield();
    }
    t_link_close(link);
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("qp_failures"), 0);
}
END_TEST


/* ---- Suite ---- */

static Suite *suite_recover(void)
{
    Suite *suite    = suite_create("recover");
    TCase *messages = t_uct_case("messages");
    TCase *had      = t_uct_case("had");
    TCase *idle     = t_uct_case("idle");
    TCase *alone    = t_uct_case("unanswered");
    TCase *storms   = t_uct_case("storms");

    tcase_set_timeout(messages, 3 * T_TIMEOUT);
    tcase_add_loop_test(messages, test_both_ways, 0, 4);
    tcase_add_loop_test(messages, test_late, 0, 2);
    tcase_add_test(messages, test_handshake);
    tcase_add_test(messages, test_self);
    tcase_add_test(messages, test_passive);
    tcase_add_test(messages, test_seldom);
    tcase_add_test(messages, test_off);
    tcase_add_test(messages, test_close_unread);
    tcase_add_test(messages, test_device_is_full);
    tcase_add_test(messages, test_peer_leaves_unread);
    tcase_add_loop_test(messages, test_peer_has_left, 0, 4);
    suite_add_tcase(suite, messages);

    tcase_add_test(had, test_had);
    suite_add_tcase(suite, had);

    tcase_set_timeout(idle, 3 * T_TIMEOUT);
    tcase_add_test(idle, test_idle);
    tcase_add_test(idle, test_heard);
    tcase_add_loop_test(idle, test_used_meanwhile, 0, ACTS);
    tcase_add_test(idle, test_hopeless);
    suite_add_tcase(suite, idle);

    tcase_add_test(alone, test_unanswered);
    suite_add_tcase(suite, alone);

    tcase_set_timeout(storms, 3 * T_TIMEOUT);
    tcase_add_loop_test(storms, test_storm, 2, 6);
    suite_add_tcase(suite, storms);
    return suite;
}

T_UCT_MAIN(suite_recover)
