/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Letting others run after empty polls.
 *
 * The peer may need this very CPU to send what the poll looks for. But the
 * caller may poll under a lock of its own, as UCP does, and another thread of
 * the program may wait for that lock. If that thread spins, it uses up the CPU
 * that is offered and gets nowhere. If the CPU is offered only here, with the
 * lock held, that thread never gets the lock.
 *
 * The device cannot see the lock. It sees the effect: an offer takes long, and
 * the rest of the process spends CPU time meanwhile. Then the CQ makes no offer
 * for a while. The kernel preempts the poller anywhere instead, also between
 * two polls.
 *
 *     calm    --- an offer took long --------------------> watched
 *     watched --- the next did not take long ------------> calm
 *     watched --- the rest of the process ran meanwhile -> paused, then calm
 */
#include "softverbs/base/sv_util.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/objects/sv_cq.h"

#include <sched.h>
#include <time.h>

/* An offer among pollers returns within some microseconds. A thread that
 * computes, or spins on a lock, uses up its slice of at least 0.7 ms. */
#define SV_YIELD_LONG_NS     200000

/* Noticing takes two long offers, which are 5 percent of this time. */
#define SV_YIELD_PAUSE_NS    100000000u

static uint64_t sv_clock_ns(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + ts.tv_nsec;
}

/* CPU time of the program's other threads so far. The service thread does not
 * count: it works for pollers that do not get to it. */
static int64_t sv_other_threads_ns(const struct sv_node *node)
{
    uint64_t mine = sv_clock_ns(CLOCK_THREAD_CPUTIME_ID) +
                    sv_clock_ns(node->service_clock);

    return sv_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - mine;
}

/* How long an offer took. */
static uint64_t sv_yield_once(uint64_t now)
{
    sched_yield();
    return sv_now_ns() - now;
}

static void sv_yield_watched(struct sv_cq *cq, uint64_t now)
{
    struct sv_yield *yield = &cq->yield;
    int64_t others         = sv_other_threads_ns(cq->node);
    uint64_t took          = sv_yield_once(now);

    if (took <= SV_YIELD_LONG_NS) {
        atomic_store(&yield->watched, false);
    } else if (sv_other_threads_ns(cq->node) - others > SV_YIELD_LONG_NS) {
        atomic_store(&yield->watched, false);
        atomic_store(&yield->not_before, now + took + SV_YIELD_PAUSE_NS);
    }
}

/* Threads that poll one CQ share this state. A thread that reads it too late
 * makes one offer more or less. */
void sv_yield(struct sv_cq *cq)
{
    struct sv_yield *yield = &cq->yield;
    uint64_t now           = sv_now_ns();

    if (now < atomic_load_explicit(&yield->not_before, memory_order_relaxed)) {
        return;
    }
    if (atomic_load_explicit(&yield->watched, memory_order_relaxed)) {
        sv_yield_watched(cq, now);
    } else if (sv_yield_once(now) > SV_YIELD_LONG_NS) {
        atomic_store(&yield->watched, true);
    }
}
