/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does a connection stand still? Somebody looks at it now and then, says what is
 * to be seen and how long ago the last look was, and is told what to do:
 *
 *   PUSH     requests that nobody asked a completion for have come to rest: a
 *            signalled one behind them shows whether they ever got there
 *   SAY      nothing moves for so long that a person should know; once, until
 *            it moves again
 *   GIVE_UP  a request that will complete by itself does not
 *   ASK      nothing has been heard of the peer for long
 *
 * Time counts from one look to the next, and only if both have seen the same:
 * so nothing is done before its bound, nor much later than a look after it. A
 * process that was stopped has not looked: who calls cuts the time to what a
 * look usually takes, and then a long sleep is no silence of the peer.
 *
 * Times are in any unit, the same for all. Threads: one.
 */
#ifndef DQ_WATCHDOG_H
#define DQ_WATCHDOG_H

#include "dq.h"

enum {
    DQ_WATCHDOG_MARK    = 1 << 0,
    DQ_WATCHDOG_WARN    = 1 << 1,
    DQ_WATCHDOG_GIVE_UP = 1 << 2,
    DQ_WATCHDOG_PROBE   = 1 << 3
};

/* 0: never. */
typedef struct {
    uint64_t warn, give_up, probe;
} dq_watchdog_bounds_t;

/* What is to be seen of a connection. */
typedef struct {
    uint32_t posted, retired; /* ids of its send ledger                      */
    uint32_t probes;          /* of those posted, by who only looks after it */
    uint32_t heard;           /* changes when a message comes                */
    int      is_up;           /* requests may be posted                      */
    int      is_due;          /* one in use will complete by itself          */
    int      is_silent;       /* the newest in use will not                  */
    int      is_wanted;       /* one was refused since the last look         */
} dq_watchdog_seen_t;

typedef struct {
    dq_watchdog_seen_t seen;  /* at the last look                            */
    uint64_t        still;    /* what is due has not come for so long        */
    uint64_t        waiting;  /* nothing could be posted for so long         */
    uint64_t        quiet;    /* nothing came and nothing went for so long   */
    int             is_logged;
} dq_watchdog_t;

/* Nothing has been seen yet. */
void dq_watchdog_init(dq_watchdog_t *watchdog);

/* One look, @a elapsed after the last. Returns what to do. */
unsigned dq_watchdog_sample(dq_watchdog_t *watchdog, const dq_watchdog_bounds_t *bounds,
                            const dq_watchdog_seen_t *seen, uint64_t elapsed);

/* How often to look, for bounds that are to be kept well: a quarter of the
 * shortest, within @a least and @a most. */
uint64_t dq_watchdog_period(const dq_watchdog_bounds_t *bounds, uint64_t least,
                            uint64_t most);

#endif
