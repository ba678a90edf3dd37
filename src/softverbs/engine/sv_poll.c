/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions on their way to the program.
 *
 * Receiving happens inside ibv_poll_cq(). It looks at the rings of the QPs that
 * receive into this CQ: one cache line of shared memory each (`scan`). If there
 * are many QPs it looks only at those in use (engine/sv_scan.c).
 *
 * Completions of what it receives are collected in `batch` and go from there to
 * the caller. Those that the caller has no room for go into the completion
 * ring. So does everything that completes while nobody polls. The completion of
 * a short message goes straight into the caller's array if no other comes
 * before it (`direct`).
 *
 *     send side ---------------------> ring ---+
 *                                       ^      +--> caller
 *     rings of QPs -+-> batch ----------+------+      ^
 *                   |                 (lock)          |
 *                   +-> direct -----------------------+
 *                      (rx_lock)
 *
 * Polling also frees the slots of the send and receive queues, as drivers of
 * real devices do. A WR occupies its slot until its completion, or a later one
 * of its send queue, is polled.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/engine/sv_poll.h"
#include "softverbs/engine/sv_qp_error.h"
#include "softverbs/engine/sv_rx.h"
#include "softverbs/engine/sv_scan.h"
#include "softverbs/engine/sv_stuck.h"
#include "softverbs/engine/sv_yield.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/objects/sv_cq.h"

#include <limits.h>

/* Empty polls in a row before the poll offers the CPU to others. The peer may
 * need this very CPU to send what we poll for. If each has a CPU, offering
 * after 128 polls costs nothing. */
#define SV_POLL_YIELD    128

/* ---- receiving ---- */

/* Receives on all QPs of the CQ, at most `limit` messages. Needs rx_lock. */
static inline void sv_cq_receive(struct sv_cq *cq, unsigned limit, bool notify)
{
    unsigned at = cq->scan_start;
    struct sv_scan *scan;
    unsigned i;

    sv_assert_held(&cq->rx_lock);
    if (sv_unlikely(cq->bells != NULL)) {
        sv_scan_update(cq);
    }

    for (i = 0; (i < cq->num_active) && (limit > 0); ++i) {
        at   = (at < cq->num_active) ? at : 0;
        scan = &cq->scan[at++];
        if (atomic_load_explicit(scan->tag, memory_order_relaxed) ==
            scan->expect) {
            scan->used = true;
            limit     -= sv_rx_run(scan->qp, limit, notify);
            /* The QP that used up the limit is last next time. */
            cq->scan_start = at;
        }
    }
}

/* How many messages one poll receives.
 *
 * If the queues that complete here hold more than the CQ does, the program can
 * overrun it. The overrun must happen when more messages have arrived than fit,
 * so the poll then receives everything. Otherwise messages that the caller has
 * no room for wait in the rings. */
static unsigned sv_cq_rx_budget(struct sv_cq *cq, int room)
{
    return (atomic_load_explicit(&cq->max_outstanding, memory_order_relaxed) >
            atomic_load_explicit(&cq->size, memory_order_relaxed)) ?
                   UINT_MAX : (unsigned)room;
}

/* Waits for the lock. A caller that has just armed the CQ relies on finding all
 * that came before, and another receiver may be holding some of it. */
static int sv_cq_receive_and_take(struct sv_cq *cq, int num, struct ibv_wc *wc)
{
    unsigned budget;
    int n;

    sv_spin_lock(&cq->rx_lock);
    budget          = sv_cq_rx_budget(cq, num);
    cq->direct      = wc;
    cq->direct_room = ((sv_cq_count(cq) == 0) && (budget != UINT_MAX) &&
                       !sv_cq_has_failed(cq)) ? num : 0;
    sv_cq_receive(cq, budget, false);
    n               = cq->direct - wc;
    cq->direct_room = 0;
    if ((cq->num_batch > 0) || ((n < num) && (sv_cq_count(cq) > 0))) {
        sv_spin_lock(&cq->lock);
        n += sv_cq_hand_out(cq, num - n, wc + n, true);
        sv_spin_unlock(&cq->lock);
    }
    sv_cq_rx_unlock(cq);
    return n;
}

static int sv_cq_take(struct sv_cq *cq, int num, struct ibv_wc *wc)
{
    int n;

    sv_spin_lock(&cq->lock);
    n = sv_cq_hand_out(cq, num, wc, false);
    sv_spin_unlock(&cq->lock);
    return n;
}

/* Threads that poll at the same time may lose a count, which does no harm. */
static void sv_cq_count_empty_poll(struct sv_cq *cq)
{
    unsigned count = atomic_load_explicit(&cq->empty_polls,
                                          memory_order_relaxed) + 1;

    atomic_store_explicit(&cq->empty_polls, count, memory_order_relaxed);
    if (count % SV_POLL_YIELD == 0) {
        sv_yield(cq);
    }
}

int sv_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
    struct sv_cq *cq = sv_cq(ibcq);
    int n;

    if (sv_unlikely(atomic_load_explicit(&cq->node->num_stuck,
                                         memory_order_relaxed) != 0)) {
        sv_stuck_run(cq->node, SV_PUSHER_POLLER);
    }

    if (sv_cq_count(cq) >= (uint32_t)num) {
        return sv_cq_take(cq, num, wc);
    }

    n = sv_cq_receive_and_take(cq, num, wc);
    if (n == 0) {
        sv_cq_count_empty_poll(cq);
    } else {
        atomic_store_explicit(&cq->empty_polls, 0, memory_order_relaxed);
    }
    return n;
}

void sv_cq_audit(struct sv_cq *cq)
{
    unsigned i;

    sv_spin_lock(&cq->rx_lock);
    for (i = 0; i < cq->num_scan; ++i) {
        sv_rx_audit(cq->scan[i].qp);
    }
    sv_cq_rx_unlock(cq);
}

void sv_cq_drain(struct sv_cq *cq)
{
    sv_spin_lock(&cq->rx_lock);
    sv_cq_receive(cq, atomic_load_explicit(&cq->size, memory_order_relaxed),
                  true);
    sv_cq_rx_unlock(cq);
}

void sv_cq_drain_all(struct sv_cq *cq)
{
    sv_spin_lock(&cq->rx_lock);
    sv_scan_check_all_idle(cq);
    sv_cq_rx_unlock(cq);
    sv_cq_drain(cq);
}

/* The oldest completion that no event has announced. Needs lock. */
static uint32_t sv_cq_unannounced(const struct sv_cq *cq)
{
    uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);

    sv_assert_held(&cq->lock);
    return ((int32_t)(cq->announced - head) > 0) ? cq->announced : head;
}

void sv_cq_event_read(struct sv_cq *cq)
{
    uint32_t at;

    sv_cq_drain(cq);
    sv_spin_lock(&cq->lock);
    at            = sv_cq_unannounced(cq);
    cq->announced = (at != cq->tail) ? at + 1 : at;
    sv_spin_unlock(&cq->lock);
}

void sv_cq_fire_pending(struct sv_cq *cq)
{
    enum sv_notify notify = SV_NOTIFY_NONE;
    uint32_t at;

    sv_cq_drain(cq);
    sv_spin_lock(&cq->lock);
    for (at = sv_cq_unannounced(cq); at != cq->tail; ++at) {
        if (cq->ring[at & cq->mask].notify > notify) {
            notify = cq->ring[at & cq->mask].notify;
        }
    }
    sv_spin_unlock(&cq->lock);
    sv_cq_post_event(cq, notify);
}
