/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Back-pressure: senders that are faster than receivers, with queues of every
 * size, the smallest included. "No resource" must be the truth each time, the
 * pending queue must keep its order, and whoever keeps receive buffers must
 * not stop the flow.
 */
#include "t_uct.h"

#include <signal.h>
#include <string.h>

enum { WAITING = 40 };

/* From what a user has, to the smallest that is allowed. */
static const char *const sizes[] = {
    "",
    "SQ_DEPTH=16 RX_WINDOW=8",
    ("SQ_DEPTH=4 CQ_LEN=4 SIGNAL_EVERY=1 RX_WINDOW=4 RX_BUFFERS=64 "
     "TX_BUFFERS=64 POLL_BATCH=1"),
    "SQ_DEPTH=64 CQ_LEN=8 RX_WINDOW=64 MAX_INLINE=0",
    ("SQ_DEPTH=4096 CQ_LEN=65536 SIGNAL_EVERY=4096 RX_WINDOW=4096 "
     "TX_BUFFERS=64"),
};

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* Messages each way: through small queues they go in small steps. */
static const unsigned messages[SIZES] = {100000, 100000, 5000, 10000, 10000};

/* Each end sends to the other. */
typedef struct {
    t_end_t    *end[2];
    t_link_t   *link[2];
    t_stream_t stream[2];
} duplex_t;


static const char *options(unsigned i)
{
    return (strcmp(t_tl(), "daqiri") == 0) ? sizes[i] : "";
}


static void duplex_open(duplex_t *duplex, const char *with)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        duplex->end[i] = t_end_open(with);
        t_stream_open(&duplex->stream[i], duplex->end[i], i);
    }
    for (i = 0; i < 2; i++) {
        duplex->link[i] = t_link_open(duplex->end[i],
                                      &duplex->end[1 - i]->address, 1 - i);
        duplex->link[i]->header = 7;
    }
}


/* One message each way has come: nothing but what a test does is in the way. */
static void duplex_connect(duplex_t *duplex)
{
    t_send(duplex->link[0], T_BCOPY, 10);
    t_send(duplex->link[1], T_BCOPY, 10);
    T_WAIT((duplex->stream[0].got == 1) && (duplex->stream[1].got == 1));
}


static void duplex_wait(duplex_t *duplex)
{
    T_WAIT((duplex->stream[0].got == duplex->link[1]->sent) &&
           (duplex->stream[1].got == duplex->link[0]->sent) &&
           (duplex->link[0]->zcopies == 0) && (duplex->link[1]->zcopies == 0));
    ck_assert_uint_eq(duplex->stream[0].bytes, duplex->link[1]->bytes);
    ck_assert_uint_eq(duplex->stream[1].bytes, duplex->link[0]->bytes);
}


/* ---- Many messages ---- */

static ucs_status_t never(uct_pending_req_t *req)
{
    (void)req;
    return UCS_ERR_NO_RESOURCE;
}


static void take_back(uct_pending_req_t *req, void *arg)
{
    *(uct_pending_req_t**)arg = req;
}


/* What was refused for want of something may wait for it: pending_add must
 * not say that there is no need to. */
static void check_may_wait(t_link_t *link)
{
    uct_pending_req_t req   = {.func = never};
    uct_pending_req_t *back = NULL;

    ck_assert_int_eq(uct_ep_pending_add(link->ep, &req, 0), UCS_OK);
    uct_ep_pending_purge(link->ep, take_back, &back);
    ck_assert_ptr_eq(back, &req);
}


/* A random length that this kind takes, mostly short. */
static size_t random_length(t_link_t *link, t_how_t how, t_rng_t *rng)
{
    size_t length;

    do {
        length = t_rng_once_in(rng, 20) ? t_rng_below(rng, 9000)
                                        : t_rng_below(rng, 120);
    } while (!t_can_send(link, how, length));
    return length;
}


static t_how_t random_how(t_link_t *link, t_rng_t *rng)
{
    t_how_t how = t_rng_below(rng, T_HOW_LAST);

    return (link->end->attr.cap.flags & UCT_IFACE_FLAG_AM_SHORT) ? how
                                                                 : T_BCOPY;
}


/* Both directions, each end working only now and then, and never in step; in
 * the end neither works, so that each is refused once at least. */
START_TEST(test_slow_receivers)
{
    unsigned count = t_some(messages[_i]);
    duplex_t duplex;
    ucs_status_t status;
    t_link_t *link;
    t_how_t how;
    t_rng_t rng;
    unsigned i;

    t_rng_init(&rng, 0xf000 + _i);
    duplex_open(&duplex, options(_i));
    while ((duplex.link[0]->sent < count) || (duplex.link[1]->sent < count)) {
        for (i = 0; i < 2; i++) {
            duplex.end[i]->is_stopped = !t_rng_once_in(&rng, 20);
        }
        t_progress();
        link = duplex.link[t_rng_below(&rng, 2)];
        if (link->sent >= count) {
            continue;
        }
        how    = random_how(link, &rng);
        status = t_try_send(link, how, random_length(link, how, &rng));
        if (status == UCS_ERR_NO_RESOURCE) {
            check_may_wait(link);
        } else {
            ck_assert_int_eq(status, UCS_OK);
        }
    }
    for (i = 0; i < 2; i++) {
        while ((status = t_try_send(duplex.link[i], T_BCOPY, 10)) == UCS_OK) {
        }
        ck_assert_int_eq(status, UCS_ERR_NO_RESOURCE);
        check_may_wait(duplex.link[i]);
    }
    duplex.end[0]->is_stopped = duplex.end[1]->is_stopped = 0;
    duplex_wait(&duplex);
}
END_TEST


/* ---- Requests that wait ---- */

typedef struct {
    uct_pending_req_t super;
    t_link_t          *link;
    unsigned          number, parts;
    unsigned          *next; /* whose turn it is                             */
} request_t;


/* Goes in `parts` calls, one message each. */
static ucs_status_t request_go(uct_pending_req_t *super)
{
    request_t *request = (request_t*)super;
    ucs_status_t status;

    ck_assert_uint_eq(request->number, *request->next);
    status = t_try_send(request->link, T_BCOPY, 40);
    if (status != UCS_OK) {
        return status;
    }
    if (--request->parts > 0) {
        return UCS_INPROGRESS;
    }
    (*request->next)++;
    return UCS_OK;
}


static void request_add(request_t *request, t_link_t *link, unsigned number,
                        unsigned parts, unsigned *next)
{
    *request = (request_t){.super  = {.func = request_go},
                           .link   = link,
                           .number = number,
                           .parts  = parts,
                           .next   = next};
    ck_assert_int_eq(uct_ep_pending_add(link->ep, &request->super, 0), UCS_OK);
}


/* The peer stands still; everything is full. */
static void fill_up(t_link_t *link, t_end_t *peer)
{
    ucs_status_t status;
    unsigned idle = 0;

    peer->is_stopped = 1;
    while (idle < 1000) {
        status = t_try_send(link, T_BCOPY, 100);
        ck_assert((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE));
        idle = (status == UCS_OK) ? 0 : idle + 1;
        t_progress();
    }
    ck_assert_int_eq(t_try_send(link, T_BCOPY, 100), UCS_ERR_NO_RESOURCE);
}


/* First in, first out; and as long as one waits, no send overtakes it. */
START_TEST(test_pending_is_fifo)
{
    request_t request[WAITING];
    ucs_status_t status;
    unsigned next = 0;
    duplex_t duplex;
    t_link_t *link;
    unsigned i;

    duplex_open(&duplex, options(_i));
    duplex_connect(&duplex);
    link = duplex.link[0];
    fill_up(link, duplex.end[1]);
    for (i = 0; i < WAITING; i++) {
        request_add(&request[i], link, i, 1 + (i % 3), &next);
    }
    duplex.end[1]->is_stopped = 0;
    while (next < WAITING) {
        status = t_try_send(link, T_BCOPY, 100);
        ck_assert((status == UCS_ERR_NO_RESOURCE) || (next == WAITING));
        t_progress_or_yield();
    }
    t_send(link, T_BCOPY, 100);
    duplex_wait(&duplex);
}
END_TEST


/* Before the connection is up the first few are held, and everything else
 * waits, in the same order. */
START_TEST(test_pending_before_up)
{
    request_t request[WAITING];
    unsigned next = 0;
    duplex_t duplex;
    unsigned i;

    t_only_daqiri("connects behind the first send");
    duplex_open(&duplex, options(_i));
    while (t_try_send(duplex.link[0], T_BCOPY, 8) != UCS_ERR_NO_RESOURCE);
    ck_assert_uint_le(duplex.link[0]->sent, 2);
    for (i = 0; i < WAITING; i++) {
        request_add(&request[i], duplex.link[0], i, 1, &next);
    }
    T_WAIT(next == WAITING);
    duplex_wait(&duplex);
}
END_TEST


/* ---- Fairness ---- */

enum { PEERS = 64, SLOW = 0 };

typedef struct {
    uct_pending_req_t super;
    t_link_t          *link;
    uint64_t          count;
} sender_t;

static void sender_check(const sender_t *senders)
{
    uint64_t least = UINT64_MAX, most = 0;
    unsigned i;

    for (i = 0; i < PEERS; i++) {
        if (i != SLOW) {
            least = (senders[i].link->sent < least) ? senders[i].link->sent
                                                    : least;
            most  = (senders[i].link->sent > most) ? senders[i].link->sent
                                                   : most;
        }
    }
    ck_assert_msg(most - least <= 32, "one has sent %llu, another %llu",
                  (unsigned long long)most, (unsigned long long)least);
}


/* One message each time, so that all are queued all the time. */
static ucs_status_t sender_go(uct_pending_req_t *req)
{
    sender_t *sender    = (sender_t*)req;
    ucs_status_t status = t_try_send(sender->link, T_BCOPY, 200);

    if (status != UCS_OK) {
        return status;
    }
    return (sender->link->sent == sender->count) ? UCS_OK : UCS_INPROGRESS;
}


/* 64 endpoints share too few slots, and one of the peers does not take what it
 * is sent. None of the others falls behind the rest; and when the slow one wakes
 * up, it gets all of its own. */
START_TEST(test_no_endpoint_starves)
{
    static t_stream_t stream[PEERS];
    static sender_t sender[PEERS];
    const unsigned count = t_some(400);
    t_end_t *peer[PEERS];
    t_end_t *hub;
    unsigned i;

    t_only_daqiri("has these options");
    hub = t_end_open(_i ? "CQ_LEN=16 SQ_DEPTH=8" : "TX_BUFFERS=64");
    for (i = 0; i < PEERS; i++) {
        peer[i] = t_end_open("RX_BUFFERS=128 RX_WINDOW=16");
        t_stream_open(&stream[i], peer[i], 1);
        sender[i] = (sender_t){
            .super = {.func = sender_go},
            .link  = t_link_open(hub, &peer[i]->address, 1),
            .count = count,
        };
    }
    for (i = 0; i < PEERS; i++) {
        t_send(sender[i].link, T_BCOPY, 200);
    }
    for (i = 0; i < PEERS; i++) {
        T_WAIT(stream[i].got == 1);
    }
    t_iface_flush(hub);
    peer[SLOW]->is_stopped = 1;
    for (i = 0; i < PEERS; i++) {
        while (uct_ep_pending_add(sender[i].link->ep, &sender[i].super, 0) !=
               UCS_OK) {
            (void)t_try_send(sender[i].link, T_BCOPY, 200); /* till it waits */
        }
    }

    for (i = 0; i < PEERS; i++) {
        while ((i != SLOW) && (stream[i].got < count)) {
            t_progress_or_yield();
            sender_check(sender);
        }
    }
    ck_assert_uint_lt(sender[SLOW].link->sent, count);
    peer[SLOW]->is_stopped = 0;
    T_WAIT(stream[SLOW].got == count);
}
END_TEST


/* ---- Purge ---- */

typedef struct {
    request_t *first;
    unsigned  count;
} purged_t;

static void on_purge(uct_pending_req_t *req, void *arg)
{
    purged_t *purged = arg;

    /* in their order; every second request was of this endpoint */
    ck_assert_ptr_eq(req, &purged->first[2 * purged->count].super);
    purged->count++;
}


/* Two endpoints to one peer, their requests mixed. A purge takes those of one
 * endpoint, each once and in order; the others then go as if nothing was. */
START_TEST(test_purge)
{
    purged_t purged = {.count = 0};
    request_t request[WAITING];
    t_stream_t stream;
    unsigned next = 1;
    duplex_t duplex;
    t_link_t *other;
    unsigned i;

    duplex_open(&duplex, options(_i));
    duplex_connect(&duplex);
    other = t_link_up(duplex.end[0], duplex.end[1], 9, &stream);
    fill_up(duplex.link[0], duplex.end[1]);
    for (i = 0; i < WAITING; i++) {
        request_add(&request[i], (i % 2) ? duplex.link[0] : other, i, 1,
                    &next);
    }
    purged.first = request;
    uct_ep_pending_purge(other->ep, on_purge, &purged);
    ck_assert_uint_eq(purged.count, WAITING / 2);
    uct_ep_pending_purge(other->ep, on_purge, &purged);
    ck_assert_uint_eq(purged.count, WAITING / 2);

    for (i = 1; i < WAITING; i += 2) {
        request[i].number = 1 + i / 2;
    }
    duplex.end[1]->is_stopped = 0;
    T_WAIT(next == 1 + WAITING / 2);
    duplex_wait(&duplex);
    ck_assert_uint_eq(stream.got, 1);
}
END_TEST


/* A request may add another while it runs, as UCP does. */
static struct {
    uct_pending_req_t again;
    t_link_t          *link;
    unsigned          ran;
} nested;

static ucs_status_t nested_go(uct_pending_req_t *req)
{
    ucs_status_t status = t_try_send(nested.link, T_BCOPY, 40);

    if (status != UCS_OK) {
        return status;
    }
    if (nested.ran++ == 0) {
        nested.again.func = nested_go;
        ck_assert_ptr_ne(req, &nested.again);
        while (uct_ep_pending_add(nested.link->ep, &nested.again, 0) ==
               UCS_ERR_BUSY) {
            ck_assert_int_eq(t_try_send(nested.link, T_BCOPY, 40), UCS_OK);
        }
    }
    return UCS_OK;
}


START_TEST(test_pending_from_pending)
{
    uct_pending_req_t req = {.func = nested_go};
    duplex_t duplex;

    duplex_open(&duplex, options(_i));
    duplex_connect(&duplex);
    nested.link = duplex.link[0];
    fill_up(nested.link, duplex.end[1]);
    ck_assert_int_eq(uct_ep_pending_add(nested.link->ep, &req, 0), UCS_OK);
    duplex.end[1]->is_stopped = 0;
    T_WAIT(nested.ran == 2);
    duplex_wait(&duplex);
}
END_TEST


/* ---- Buffers that handlers keep ---- */

/* Kept, looked at again later, given back in any order. */
/* While nothing arrives, RECVs are posted before a batch of them is missing. */
START_TEST(test_idle_posts_recvs)
{
    t_stream_t stream;
    t_link_t *link;
    double until;
    unsigned i;

    t_only_daqiri("posts RECVs while idle");
    /* it looks at its ledgers as often as a stall is to be told */
    link = t_link_up(t_end_open("POLL_BATCH=1 SQ_STALL_TIMEOUT=10ms"),
                     t_end_open("POLL_BATCH=16 SQ_STALL_TIMEOUT=10ms"), 5,
                     &stream);
    for (i = 1; i <= 15; i++) {
        t_send(link, T_SHORT, 8);
        T_WAIT(stream.got == link->sent);
        if (i % 5 == 0) { /* one of the three is in the second half of a batch */
            until = t_seconds() + 0.4; /* so that both have looked */
            T_WAIT(t_seconds() > until);
            ck_assert_uint_lt(t_live_sum("rx_free"), 8);
        }
    }
}
END_TEST


START_TEST(test_hold_and_release)
{
    unsigned count = t_some(20000);
    unsigned most  = 0;
    duplex_t duplex;
    t_rng_t rng;
    unsigned i;

    t_rng_init(&rng, 0xf100 + _i);
    duplex_open(&duplex, options(_i));
    duplex.stream[1].keep = 1;
    for (i = 0; i < count; i++) {
        t_send(duplex.link[0], T_BCOPY, t_rng_below(&rng, 500));
        t_progress();
        most = (duplex.stream[1].kept > most) ? duplex.stream[1].kept : most;
        if (t_rng_once_in(&rng, 100)) {
            t_stream_release(&duplex.stream[1], &rng, t_rng_once_in(&rng, 2));
        }
    }
    duplex_wait(&duplex);
    t_stream_release(&duplex.stream[1], &rng, 0);
    ck_assert_uint_gt(most, 0);
}
END_TEST


/* Nothing is ever given back: the flow goes on all the same, both ways. The
 * first of the sizes has more than 8000 buffers that may be held. */
START_TEST(test_hold_for_ever)
{
    unsigned count = (_i == 0) ? 20000 : t_some(20000);
    duplex_t duplex;
    t_rng_t rng;
    unsigned i;

    t_rng_init(&rng, 0xf200 + _i);
    duplex_open(&duplex, options(_i));
    duplex.stream[0].keep = duplex.stream[1].keep = 1;
    for (i = 0; i < count; i++) {
        t_send(duplex.link[i % 2], T_BCOPY, t_rng_below(&rng, 200));
    }
    duplex_wait(&duplex);
    ck_assert_uint_gt(duplex.stream[1].kept, 0);
    t_stream_release(&duplex.stream[0], &rng, 0);
    t_stream_release(&duplex.stream[1], &rng, 0);
}
END_TEST


/* ---- A receiver that is stopped ---- */

enum {
    STOPPED      = 4,    /* processes; 0 is stopped by 1                     */
    STOPPED_MS   = 5000,
    STOPPED_MORE = 1000, /* messages that the others send each other         */
    /* what they tell each other */
    IS_STOPPED   = 0,
    IS_OVER      = 1,
    SENT_TO_0    = 10,   /* by rank; later: credits                          */
    SENT_ON      = 20,   /* later: RECVs promised                            */
    REFUSED      = 30,
    IS_SENT      = 40
};

typedef struct {
    t_team_t   *team;
    t_end_t    *end;
    t_link_t   *to_0, *on; /* the others send to each other, in a ring       */
    unsigned   from;
    t_stream_t stream[STOPPED];
} stopped_t;


static void stopped_open(stopped_t *stopped, t_team_t *team)
{
    unsigned i;

    stopped->team = team;
    stopped->end  = t_end_open("SQ_STALL_TIMEOUT=400ms");
    for (i = 0; i < STOPPED; i++) {
        t_stream_open(&stopped->stream[i], stopped->end, i);
    }
    t_team_put_address(team, stopped->end);
    if (team->rank == 0) {
        return;
    }
    stopped->from = (team->rank == 1) ? STOPPED - 1 : team->rank - 1;
    stopped->to_0 = t_link_open(stopped->end, t_team_get_address(team, 0),
                                team->rank);
    stopped->on   = t_link_open(stopped->end,
                                t_team_get_address(team, 1 + team->rank %
                                                              (STOPPED - 1)),
                                team->rank);
    t_send(stopped->to_0, T_BCOPY, 100);
    t_send(stopped->on, T_BCOPY, 100);
}


/* All of them have been refused by the one that is stopped, and have sent each
 * other much meanwhile. */
static int stopped_has_shown(const t_team_t *team)
{
    unsigned i;

    for (i = 1; i < STOPPED; i++) {
        if ((team->shared->number[REFUSED + i] == 0) ||
            (team->shared->number[SENT_ON + i] < STOPPED_MORE)) {
            return 0;
        }
    }
    return 1;
}


/* Until it goes on: no send to it may stand in the way of others. */
static void stopped_send(stopped_t *stopped)
{
    volatile uint64_t *number = stopped->team->shared->number;
    unsigned rank             = stopped->team->rank;
    double until              = t_seconds() + t_some(STOPPED_MS) / 1e3;
    uint64_t before           = 0;

    while (!number[IS_OVER]) {
        if (t_try_send(stopped->to_0, T_BCOPY, 100) == UCS_ERR_NO_RESOURCE) {
            before = (number[REFUSED + rank]++ == 0) ? stopped->on->sent
                                                     : before;
            number[SENT_ON + rank] = stopped->on->sent - before;
        }
        (void)t_try_send(stopped->on, T_BCOPY, 100);
        t_progress();
        if ((rank == 1) && (t_seconds() >= until) &&
            stopped_has_shown(stopped->team)) {
            ck_assert_int_eq(kill(stopped->team->shared->pid[0], SIGCONT), 0);
            number[IS_OVER] = 1;
        }
    }
}


/* What was promised is had by somebody, and no buffer is anywhere else. */
static int stopped_is_at_rest(const stopped_t *stopped)
{
    volatile uint64_t *number = stopped->team->shared->number;
    uint64_t credits = 0, promised = 0;
    unsigned i;

    number[SENT_TO_0 + stopped->team->rank] = t_live_sum("credits");
    number[SENT_ON + stopped->team->rank]   = t_live_sum("rx_promised");
    for (i = 0; i < STOPPED; i++) {
        credits  += number[SENT_TO_0 + i];
        promised += number[SENT_ON + i];
    }
    return (credits == promised) && (t_live_sum("sq_in_use") == 0) &&
           (t_live_sum("tx_buffers_out") == 0) &&
           (t_live_sum("rx_total") ==
            t_live_sum("rx_free") + t_live_sum("rx_posted"));
}


static void stopped_body(t_team_t *team)
{
    volatile uint64_t *number = team->shared->number;
    stopped_t stopped;
    unsigned i;

    stopped_open(&stopped, team);
    if (team->rank == 0) {
        T_WAIT((stopped.stream[1].got > 0) && (stopped.stream[2].got > 0) &&
               (stopped.stream[3].got > 0));
    }
    t_team_barrier(team);
    if (team->rank == 1) {
        ck_assert_int_eq(kill(team->shared->pid[0], SIGSTOP), 0);
        number[IS_STOPPED] = 1;
    }
    if (team->rank != 0) {
        T_WAIT(number[IS_STOPPED]);
        stopped_send(&stopped);
        for (i = 0; i < STOPPED_MORE; i++) {
            t_send(stopped.to_0, T_BCOPY, 100);
        }
        number[SENT_TO_0 + team->rank] = stopped.to_0->sent;
        number[SENT_ON + team->rank]   = stopped.on->sent;
        number[IS_SENT + team->rank]   = 1;
        T_WAIT(number[IS_SENT + stopped.from] &&
               (stopped.stream[stopped.from].got ==
                number[SENT_ON + stopped.from]));
    } else {
        for (i = 1; i < STOPPED; i++) {
            T_WAIT(number[IS_SENT + i] &&
                   (stopped.stream[i].got == number[SENT_TO_0 + i]));
        }
    }
    t_iface_flush(stopped.end);
    t_team_barrier(team);
    T_WAIT(stopped_is_at_rest(&stopped));
    t_team_barrier(team);
    ck_assert_uint_eq(stopped.end->errors, 0);
}


/* Only who sends to it waits, and only with that; then all goes on, and credits
 * and buffers are where they were. */
START_TEST(test_stopped)
{
    t_only_daqiri("counts credits");
    t_expect_log("nothing could be sent for ");
    t_team_run(STOPPED, 0, stopped_body);
    ck_assert_uint_eq(t_stats_sum("qp_failures"), 0);
    ck_assert_uint_eq(t_stats_sum("stuck"), 0);
    ck_assert_uint_eq(t_stats_sum("rx_overcommit"), 0);
}
END_TEST


/* A request that sends a few messages, one at each turn, and has more to send until it
 * may end. */
typedef struct {
    uct_pending_req_t super;
    t_link_t          *link;
    int               may_end;
    unsigned          parts;
} part_t;


static ucs_status_t send_part(uct_pending_req_t *super)
{
    part_t *req = (part_t*)super;

    if ((req->parts < 5) && (t_try_send(req->link, T_SHORT, 20) == UCS_OK)) {
        req->parts++;
    }
    return req->may_end ? UCS_OK : UCS_ERR_NO_RESOURCE;
}


/* What a waiting request has still to send comes before what is sent next, though there
 * is room for both. */
START_TEST(test_part_sent)
{
    part_t req = {.super = {.func = send_part}};
    duplex_t duplex;

    t_only_daqiri("is asked for the order of its own queue");
    duplex_open(&duplex, "TX_BATCH=n");
    duplex_connect(&duplex);
    req.link                = duplex.link[0];
    duplex.end[1]->is_stopped = 1;
    while (t_try_send(req.link, T_SHORT, 20) == UCS_OK) {
        t_progress();
    }
    ck_assert_int_eq(uct_ep_pending_add(req.link->ep, &req.super, 0), UCS_OK);
    duplex.end[1]->is_stopped = 0;
    T_WAIT(req.parts == 5);
    ck_assert_int_eq(t_try_send(req.link, T_SHORT, 20), UCS_ERR_NO_RESOURCE);
    req.may_end = 1;
    t_send(req.link, T_SHORT, 20);
    duplex_wait(&duplex);
    t_end_close_all();
}
END_TEST


static Suite *suite_flow(void)
{
    Suite *suite   = suite_create("flow");
    TCase *many    = t_uct_case("many");
    TCase *pending = t_uct_case("pending");
    TCase *hold    = t_uct_case("hold");
    TCase *stopped = t_uct_case("stopped");

    tcase_set_timeout(many, 3 * T_TIMEOUT);
    tcase_add_loop_test(many, test_slow_receivers, 0, SIZES);
    suite_add_tcase(suite, many);

    tcase_add_loop_test(pending, test_pending_is_fifo, 0, SIZES);
    tcase_add_loop_test(pending, test_pending_before_up, 0, SIZES);
    tcase_add_loop_test(pending, test_no_endpoint_starves, 0, 2);
    tcase_add_loop_test(pending, test_purge, 0, SIZES);
    tcase_add_loop_test(pending, test_pending_from_pending, 0, SIZES);
    tcase_add_test(pending, test_part_sent);
    suite_add_tcase(suite, pending);

    tcase_add_test(hold, test_idle_posts_recvs);
    tcase_add_loop_test(hold, test_hold_and_release, 0, SIZES);
    tcase_add_loop_test(hold, test_hold_for_ever, 0, SIZES);
    suite_add_tcase(suite, hold);

    tcase_set_timeout(stopped, 3 * T_TIMEOUT);
    tcase_add_test(stopped, test_stopped);
    suite_add_tcase(suite, stopped);
    return suite;
}

T_UCT_MAIN(suite_flow)
