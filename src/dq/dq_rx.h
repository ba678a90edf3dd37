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
 * has a window: the most that it may be promised now. A part of the window is
 * promised. The rest is owed: used up by the peer, and not yet granted again.
 *
 *   promised = reserved - owed <= posted      (sums over all backed windows)
 *
 * A window starts small, because most peers of a large job send little. It is
 * widened if its peer uses it up before we grant, or keeps using it. The new
 * credits are owed at first, so none is promised before its RECV is posted. It is
 * made smaller when other peers need its buffers (dq_recall.h).
 *
 * While the inequality holds, no SEND can find the queue empty, so RNR cannot
 * happen. A window opened past the memory limit is not backed. Its credits are
 * granted all the same, because the connection would stand still without them, and
 * are counted as over-commitment.
 *
 * Refill runs before the handlers. So there are `slack` buffers beyond the
 * reservations, which replace the buffers that handlers are using.
 *
 * Threads: one. Complexity: O(1) each.
 */
#ifndef DQ_RX_H
#define DQ_RX_H

#include "dq.h"

/* One connection's share of the receive queue. */
typedef struct {
    uint32_t size;   /* credits that the peer started with, and all that the
                        window has been widened by since                     */
    uint32_t most;   /* the largest size                                     */
    uint32_t owed;   /* used by the peer and not granted again               */
    uint32_t mark;   /* the next `owed` that dq_rx_use() reports             */
    uint32_t wear;   /* grants since the last change of size: see
                        dq_rx_is_narrow()                                    */
    int      backed; /* counted in dq_rx_t.reserved                          */
} dq_rx_window_t;

/* A window that is in use, but never used up, is widened after so many grants, so
 * that fewer grants are needed. */
enum { DQ_RX_WEAR_MAX = 192 };

typedef struct {
    uint32_t total, free, posted, taken, held;
    uint32_t limit;      /* most buffers ever: the memory limit              */
    uint32_t slack;      /* RECVs kept beyond the reservations               */
    uint32_t batch;      /* least refill, so that posts are chained          */
    uint32_t reserved;   /* sum of the backed windows                        */
    uint32_t low;        /* reserved + slack - batch: see dq_rx_is_low()     */
    uint32_t keep;       /* limit - reserved - slack: handlers may have them */
    uint32_t owed;       /* sum of `owed` of the backed windows              */
    uint64_t overcommit; /* credits promised without a RECV                  */
    uint64_t overrun;    /* messages that came without a credit              */
} dq_rx_t;

/* @a limit buffers at most; @a batch >= 1 is the usual refill. */
void dq_rx_init(dq_rx_t *rx, uint32_t limit, uint32_t batch);

/* How many more buffers may be made. */
static inline uint32_t dq_rx_room(const dq_rx_t *rx)
{
    return rx->limit - rx->total;
}

/* @a count new buffers, free. No more than dq_rx_room(). */
void dq_rx_grow(dq_rx_t *rx, uint32_t count);

/* @a count new buffers that are posted already. */
void dq_rx_grow_posted(dq_rx_t *rx, uint32_t count);

/* How many RECVs should be posted. */
static inline uint32_t dq_rx_target(const dq_rx_t *rx)
{
    return dq_min(rx->reserved + rx->slack, rx->limit);
}

/* Is it time to call dq_rx_due()? Never false when that would not be 0. */
static inline int dq_rx_is_low(const dq_rx_t *rx)
{
    return rx->posted <= rx->low;
}

/* How many free buffers to post now: 0 until a whole batch is missing, so that the
 * posts are chained. The slack covers the missing ones meanwhile. At the memory limit
 * there may be no slack. Then every missing buffer is due at once, or a peer would
 * wait until others use up the rest of the batch. */
static inline uint32_t dq_rx_due(const dq_rx_t *rx)
{
    uint32_t target = dq_rx_target(rx);

    if (DQ_LIKELY((rx->posted + rx->batch > target) &&
                  (rx->posted >= rx->reserved))) {
        return 0;
    }
    return dq_min(target - rx->posted, rx->free);
}

/* Should a caller with nothing else to do post buffers? From half a batch on: no
 * message waits for that, and a batch is seldom missing when a message comes. */
static inline int dq_rx_is_behind(const dq_rx_t *rx)
{
    return (rx->free * 2 >= rx->batch) &&
           (rx->posted <= rx->low + rx->batch / 2);
}

/* How many to post then: all missing ones. Only if dq_rx_is_behind(). */
static inline uint32_t dq_rx_due_idle(const dq_rx_t *rx)
{
    DQ_ASSERT(rx->posted < dq_rx_target(rx));
    return dq_min(dq_rx_target(rx) - rx->posted, rx->free);
}

/* How many buffers handlers hold that are missing for the target, even if every free
 * one were posted. Grow by this many, as far as there is room. */
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

/* @a count RECVs completed, and their buffers are taken. */
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

/* May a handler keep one more? Not if the promises could then never be renewed,
 * even with all the memory that is left. */
static inline int dq_rx_may_hold(const dq_rx_t *rx)
{
    return rx->held < rx->keep;
}

/*
 * Open a window of @a size, DQ_WINDOW_MIN at least, that may be widened to @a most,
 * @a size at least. Returns non-zero if it is backed: each of its credits has a RECV,
 * and there are enough buffers to renew all backed windows in full at the same time,
 * so that no window waits for another.
 */
int dq_rx_open(dq_rx_t *rx, dq_rx_window_t *window, uint32_t size,
               uint32_t most);

/* The connection is over: nothing more can arrive on it. */
void dq_rx_close(dq_rx_t *rx, dq_rx_window_t *window);

/* The rest of dq_rx_use() at a mark. Out of line. */
int dq_rx_pass_mark(dq_rx_t *rx, dq_rx_window_t *window);

/* A message came on this window. Returns non-zero if it made dq_rx_may_piggyback() or
 * dq_rx_grant_is_due() true. It may do so again while they are true. */
static inline int dq_rx_use(dq_rx_t *rx, dq_rx_window_t *window)
{
    uint32_t owed = window->owed + 1;

    window->owed  = owed;
    rx->owed     += (window->backed != 0);
    return DQ_UNLIKELY(owed >= window->mark) && dq_rx_pass_mark(rx, window);
}

/* Credits that may be granted to the window now; dq_rx_grant() grants them. */
uint32_t dq_rx_grantable(const dq_rx_t *rx, const dq_rx_window_t *window);
void dq_rx_grant(dq_rx_t *rx, dq_rx_window_t *window, uint32_t count);

/* True if the peer has used a quarter of the window. From here on a message should carry
 * credits. */
static inline int dq_rx_may_piggyback(const dq_rx_window_t *window)
{
    return window->owed * 4 >= window->size;
}

/* True if the peer has used half of the window. Then a grant should not wait for a
 * message that can carry it. */
static inline int dq_rx_grant_is_due(const dq_rx_window_t *window)
{
    return window->owed * 2 >= window->size;
}

/* True if the peer has used three quarters of the window. Then a grant should not
 * even wait for the program's own answer. */
static inline int dq_rx_grant_is_urgent(const dq_rx_window_t *window)
{
    return window->owed * 4 >= window->size * 3;
}

/* Should the window be widened? Only a backed one: others would promise buffers that
 * do not exist. */
static inline int dq_rx_is_narrow(const dq_rx_window_t *window)
{
    return ((window->wear >= DQ_RX_WEAR_MAX) ||
            dq_rx_grant_is_urgent(window)) &&
           (window->size < window->most) && window->backed;
}

/* By how much to widen it: to twice its size. */
static inline uint32_t dq_rx_wider_by(const dq_rx_window_t *window)
{
    return dq_min(window->size, window->most - window->size);
}

/* Widens a backed window by @a count, at most to its largest size, if there are enough
 * buffers to renew all windows in full, as for dq_rx_open(). Returns non-zero if it
 * did. If not, dq_rx_is_narrow() is true again later. */
int dq_rx_widen(dq_rx_t *rx, dq_rx_window_t *window, uint32_t count);

/* The window loses credits that it owes: nobody was promised them. It keeps @a least,
 * which is DQ_WINDOW_MIN or more, and no more than it has. Returns how many credits it
 * loses. As many posted buffers are not reserved any more. */
uint32_t dq_rx_cut(dq_rx_t *rx, dq_rx_window_t *window, uint32_t least);

/* The window loses @a count credits that the peer had, and has given back. */
void dq_rx_give_back(dq_rx_t *rx, dq_rx_window_t *window, uint32_t count);

/* The window keeps its size for good. */
static inline void dq_rx_settle(dq_rx_window_t *window)
{
    window->most = window->size;
}

/* True if the invariants hold. The promise is checked only as long as nothing is
 * over-committed and no peer has sent without a credit. */
int dq_rx_check(const dq_rx_t *rx);

#endif
