/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive ledger: where every receive buffer is, and what was promised.
 *
 *   free --posted--> posted --taken--> taken --released--> free
 *                                        \--held--> held --/
 *
 *   free + posted + taken + held == total, always.
 *
 * A promise is a RECV that a peer may consume without asking. Each connection
 * has a window: the most it may be promised now. Of the window, a part stands
 * promised, and the rest is owed: used up, not yet granted again.
 *
 *   promised = reserved - owed <= posted      (sums over all backed windows)
 *
 * A window starts small and is widened while its peer uses it up before we
 * grant, or goes on using it: most peers of a large job say little. What it is
 * widened by is owed at first, so nothing is promised before a RECV is posted.
 *
 * While that holds, no SEND can find the queue empty, so RNR cannot happen. A
 * window opened past the memory limit is not backed: its credits are granted
 * all the same, for without them the connection would stand still, but they
 * are counted as over-commitment.
 *
 * Refill comes before the handlers run, so `slack` buffers beyond the
 * reservations exist to be posted in place of those being handled.
 *
 * Threads: one. Complexity: O(1) each.
 */
#ifndef DQ_RX_H
#define DQ_RX_H

#include "dq.h"

/* One connection's share of the receive queue. */
typedef struct {
    uint32_t size;   /* credits the peer starts with, and what it has been
                        widened by since                                     */
    uint32_t most;   /* it may be widened to                                 */
    uint32_t owed;   /* used by the peer and not granted again               */
    uint32_t wear;   /* grants since then: see dq_rx_is_narrow()             */
    int      backed; /* counted in dq_rx_t.reserved                          */
} dq_rx_window_t;

/* A window that was never used up for so many grants is in use all the same: it
 * is widened, so that its grants become fewer. */
enum { DQ_RX_WEAR_MAX = 192 };

typedef struct {
    uint32_t total, free, posted, taken, held;
    uint32_t limit;      /* most buffers ever: the memory limit              */
    uint32_t slack;      /* RECVs kept beyond the reservations               */
    uint32_t batch;      /* refill no fewer at once, to chain the posts      */
    uint32_t reserved;   /* sum of the backed windows                        */
    uint32_t low;        /* reserved + slack - batch: see dq_rx_is_low()     */
    uint32_t keep;       /* limit - reserved - slack: handlers may have them */
    uint32_t owed;       /* sum of what backed windows are owed              */
    uint64_t overcommit; /* credits promised that no RECV stands behind      */
    uint64_t overrun;    /* messages that came without a credit              */
} dq_rx_t;

/* @a limit buffers at most; @a batch >= 1 is the usual refill. */
void dq_rx_init(dq_rx_t *rx, uint32_t limit, uint32_t batch);

/* How many more buffers may come to exist. */
static inline uint32_t dq_rx_room(const dq_rx_t *rx)
{
    return rx->limit - rx->total;
}

/* @a count new buffers, free. No more than dq_rx_room(). */
void dq_rx_grow(dq_rx_t *rx, uint32_t count);

/* @a count new buffers that their maker has posted already. */
void dq_rx_grow_posted(dq_rx_t *rx, uint32_t count);

/* RECVs that should stand posted. */
static inline uint32_t dq_rx_target(const dq_rx_t *rx)
{
    return dq_min(rx->reserved + rx->slack, rx->limit);
}

/* Is it time to ask dq_rx_due()? Never false when that would not be 0. */
static inline int dq_rx_is_low(const dq_rx_t *rx)
{
    return rx->posted <= rx->low;
}

/* How many free buffers to post now: 0 until a batch is missing, so that the
 * posts are chained; the slack covers what is missing meanwhile. At the memory
 * limit there may be no slack: then whatever a window lacks is due at once, or
 * a peer would wait for others to use up the rest of the batch. */
static inline uint32_t dq_rx_due(const dq_rx_t *rx)
{
    uint32_t target = dq_rx_target(rx);

    if (DQ_LIKELY((rx->posted + rx->batch > target) &&
                  (rx->posted >= rx->reserved))) {
        return 0;
    }
    return dq_min(target - rx->posted, rx->free);
}

/* Is there something to post for who has nothing else to do? Half a batch: it
 * costs no message any time then, and a batch is seldom missing when one comes. */
static inline int dq_rx_is_behind(const dq_rx_t *rx)
{
    return (rx->free * 2 >= rx->batch) &&
           (rx->posted <= rx->low + rx->batch / 2);
}

/* How many to post then: all that are missing. Only if dq_rx_is_behind(). */
static inline uint32_t dq_rx_due_idle(const dq_rx_t *rx)
{
    DQ_ASSERT(rx->posted < dq_rx_target(rx));
    return dq_min(dq_rx_target(rx) - rx->posted, rx->free);
}

/* Buffers missing for the target even if every free one were posted: the
 * handlers hold them. Grow by this many, as far as there is room. */
static inline uint32_t dq_rx_short(const dq_rx_t *rx)
{
    uint32_t target = dq_rx_target(rx);
    uint32_t have   = rx->posted + rx->free + rx->taken;

    return (have < target) ? (target - have) : 0;
}

static inline void dq_rx_posted(dq_rx_t *rx, uint32_t count)
{
    DQ_ASSERT(count <= rx->free);
    rx->free   -= count;
    rx->posted += count;
}

/* @a count RECVs completed: the buffers are in our hands. */
static inline void dq_rx_taken(dq_rx_t *rx, uint32_t count)
{
    DQ_ASSERT(count <= rx->posted);
    rx->posted -= count;
    rx->taken  += count;
}

static inline void dq_rx_release(dq_rx_t *rx)
{
    DQ_ASSERT(rx->taken > 0);
    rx->taken--;
    rx->free++;
}

/* The handler keeps the buffer, until dq_rx_release_held(). */
static inline void dq_rx_hold(dq_rx_t *rx)
{
    DQ_ASSERT(rx->taken > 0);
    rx->taken--;
    rx->held++;
}

static inline void dq_rx_release_held(dq_rx_t *rx)
{
    DQ_ASSERT(rx->held > 0);
    rx->held--;
    rx->free++;
}

/* May a handler keep one more? Not if the promises could then never be
 * renewed, however much memory is left to take. */
static inline int dq_rx_may_hold(const dq_rx_t *rx)
{
    return rx->held < rx->keep;
}

/*
 * Open a window of @a size, DQ_WINDOW_MIN at least, that may be widened to @a most,
 * @a size at least. Returns non-zero if it is backed: a RECV stands behind each of its
 * credits, and there are buffers enough to renew all backed windows in full at the
 * same time, so that none waits for another.
 */
int dq_rx_open(dq_rx_t *rx, dq_rx_window_t *window, uint32_t size,
               uint32_t most);

/* The connection is over: nothing more can arrive on it. */
void dq_rx_close(dq_rx_t *rx, dq_rx_window_t *window);

/* A message came on this window. */
static inline void dq_rx_use(dq_rx_t *rx, dq_rx_window_t *window)
{
    if (DQ_UNLIKELY(window->owed >= window->size)) {
        rx->overrun++;
        return;
    }
    window->owed++;
    rx->owed += (window->backed != 0);
}

/* Credits that may be granted to the window now; dq_rx_grant() grants them. */
uint32_t dq_rx_grantable(const dq_rx_t *rx, const dq_rx_window_t *window);
void dq_rx_grant(dq_rx_t *rx, dq_rx_window_t *window, uint32_t count);

/* True if the peer has used so much that a grant should not wait for the
 * next message to ride on: half of the window. */
static inline int dq_rx_grant_is_due(const dq_rx_window_t *window)
{
    return window->owed * 2 >= window->size;
}

/* True if it should not wait even for the program to answer by itself: three
 * quarters of the window. */
static inline int dq_rx_grant_is_urgent(const dq_rx_window_t *window)
{
    return window->owed * 4 >= window->size * 3;
}

/* Should it be widened? Only if it is backed: the others would take what there is
 * not. */
static inline int dq_rx_is_narrow(const dq_rx_window_t *window)
{
    return ((window->wear >= DQ_RX_WEAR_MAX) ||
            dq_rx_grant_is_urgent(window)) &&
           (window->size < window->most) && window->backed;
}

/* By how much: to twice its size. */
static inline uint32_t dq_rx_wider_by(const dq_rx_window_t *window)
{
    return dq_min(window->size, window->most - window->size);
}

/* Widens a backed window by @a count, no further than to its most, if there are
 * buffers enough to renew all in full, as for dq_rx_open(). Returns non-zero if so.
 * If not, it is asked for again in due time. */
int dq_rx_widen(dq_rx_t *rx, dq_rx_window_t *window, uint32_t count);

/* It stays as it is for good. */
static inline void dq_rx_settle(dq_rx_window_t *window)
{
    window->most = window->size;
}

/* True if the invariants hold; of the promise only as long as nothing is
 * over-committed and no peer has sent without a credit. */
int dq_rx_check(const dq_rx_t *rx);

#endif
