/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does a connection stand still? The caller looks at it now and then, reports what
 * it sees and how long ago the last look was, and is told what to do:
 *
 *   MARK     the newest requests are not signalled and no new ones come: post a
 *            signalled one behind them, which shows whether they arrived
 *   WARN     nothing has moved for so long that a person should know; once, until
 *            something moves again
 *   GIVE_UP  a request that completes by itself has not completed
 *   PROBE    nothing has come from the peer for long
 *
 * The time between two looks counts only if both have seen the same. So nothing is
 * done before its bound, nor much later than one look after it. If our own process
 * was stopped, it has not looked. The caller then cuts the time to the usual time
 * between two looks, so a long sleep is no silence of the peer.
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

/* What the caller sees of a connection. */
typedef struct {
    uint32_t posted, retired; /* ids of its send ledger                      */
    uint32_t probes;          /* markers and probes among those posted       */
    uint32_t heard;           /* changes when a message comes                */
    int      is_up;           /* requests may be posted                      */
    int      is_put_off;      /* they may not, and the peer lives: another queue
                                 pair needs a call of its program            */
    int      is_due;          /* a request in use completes by itself        */
    int      is_silent;       /* the newest request in use does not          */
    int      is_wanted;       /* a request was refused since the last look   */
} dq_watchdog_seen_t;

typedef struct {
    dq_watchdog_seen_t seen;  /* at the last look                            */
    uint64_t        still;    /* time in which nothing due has completed     */
    uint64_t        waiting;  /* time in which nothing could be posted       */
    uint64_t        quiet;    /* time in which nothing came and nothing went */
    int             is_logged;
} dq_watchdog_t;

/* Nothing has been seen yet. */
void dq_watchdog_init(dq_watchdog_t *watchdog);

/* One look, @a elapsed after the last one. Returns what to do. */
unsigned dq_watchdog_sample(dq_watchdog_t *watchdog, const dq_watchdog_bounds_t *bounds,
                            const dq_watchdog_seen_t *seen, uint64_t elapsed);

/* The time from one look to the next that keeps the bounds well: a quarter of the
 * shortest, within @a least and @a most. */
uint64_t dq_watchdog_period(const dq_watchdog_bounds_t *bounds, uint64_t least,
                            uint64_t most);

#endif
