/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions on their way to the program.
 *
 * ibv_poll_cq() is where receiving happens: it looks at the rings of the QPs
 * that receive into this CQ (`scan`, one cache line of shared memory each; of
 * many QPs only at those that are in use, see sv_scan.c).
 * What it receives is collected in `batch` and goes from there to the caller;
 * what the caller has no room for goes into the completion ring, and so does
 * everything that completes while nobody polls. A short message that nothing
 * must come before is completed in the caller's array at once (`direct`).
 *
 *     send side ---------------------> ring ---+
 *                                       ^      +--> caller
 *     rings of QPs -+-> batch ----------+------+      ^
 *                   |                 (lock)          |
 *                   +-> direct -----------------------+
 *                      (rx_lock)
 *
 * Polling also frees the slots of the send and receive queues, as the drivers
 * of real devices do: a WR occupies its slot until its completion, or a later
 * one of its send queue, is polled.
 */
#include "sv.h"

#include <limits.h>

/* Empty polls in a row before the CPU is offered to others. The peer may need
 * this very CPU to send what we poll for; with a CPU each, 128 costs
 * nothing. */
#define SV_POLL_YIELD    128

/* ---- putting in ---- */

static inline bool sv_cq_has_failed(const struct sv_cq *cq)
{
    return atomic_load_explicit(&cq->room, memory_order_relaxed) == 0;
}

/* Needs lock. */
static void sv_cq_fail(struct sv_cq *cq)
{
    if (atomic_exchange(&cq->room, 0) != 0) {
        sv_event_post(sv_context(cq->base.context), IBV_EVENT_CQ_ERR, cq);
    }
}

void sv_cq_overrun(struct sv_cq *cq)
{
    sv_spin_lock(&cq->lock);
    sv_cq_fail(cq);
    sv_spin_unlock(&cq->lock);
}

/* Into the ring. Needs lock. False: overrun. The CQ is dead from then on, as
 * that of a real device: what it holds can be polled, nothing comes any
 * more. */
static bool sv_cq_append(struct sv_cq *cq, const struct sv_cqe *cqe)
{
    uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

    if (sv_unlikely(sv_cq_count(cq) >=
                    atomic_load_explicit(&cq->room, memory_order_relaxed))) {
        sv_cq_fail(cq);
        return false;
    }

    cq->ring[tail & cq->mask] = *cqe;
    atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
    return true;
}

static void sv_cq_post_event(struct sv_cq *cq, enum sv_notify notify)
{
    if ((notify != SV_NOTIFY_NONE) && (cq->index != 0)) {
        sv_cq_notify(cq->node, cq->node->self, cq->shm,
                     notify == SV_NOTIFY_SOLICITED);
    }
}

bool sv_cq_push(struct sv_cq *cq, const struct sv_cqe *cqe,
                enum sv_notify notify)
{
    bool fits;

    sv_spin_lock(&cq->lock);
    fits = sv_cq_append(cq, cqe);
    sv_spin_unlock(&cq->lock);
    if (sv_likely(fits)) {
        sv_cq_post_event(cq, notify);
    }
    return fits;
}

/* ---- the batch ---- */

/* Moves the batch from its n-th completion on into the ring. Needs both
 * locks. */
static void sv_cq_spill(struct sv_cq *cq, unsigned n)
{
    for (; n < cq->num_batch; ++n) {
        if (sv_unlikely(!sv_cq_append(cq, &cq->batch[n]))) {
            atomic_store(&cq->batch[n].qp->cq_lost, true);
        }
    }
    cq->num_batch = 0;
}

void sv_cq_flush(struct sv_cq *cq)
{
    enum sv_notify notify = cq->batch_notify;

    if (cq->num_batch > 0) {
        sv_spin_lock(&cq->lock);
        sv_cq_spill(cq, 0);
        sv_spin_unlock(&cq->lock);
    }
    cq->batch_notify = SV_NOTIFY_NONE;
    sv_cq_post_event(cq, notify);
}

/* The QPs whose completions were lost die of it. */
static void sv_cq_fail_qps(struct sv_cq *cq)
{
    struct sv_qp *qp;
    unsigned i;

    for (i = 0; i < cq->num_scan; ++i) {
        qp = cq->scan[i].qp;
        if (atomic_load(&qp->cq_lost) &&
            (atomic_load(&qp->state) != IBV_QPS_ERR)) {
            sv_rx_overrun(qp);
        }
    }
}

void sv_cq_rx_unlock(struct sv_cq *cq)
{
    if ((cq->num_batch > 0) || (cq->batch_notify != SV_NOTIFY_NONE)) {
        sv_cq_flush(cq);
    }
    if (sv_unlikely(sv_cq_has_failed(cq))) {
        sv_cq_fail_qps(cq);
        sv_cq_flush(cq);
    }
    sv_spin_unlock(&cq->rx_lock);
}

/* ---- taking out ---- */

/* RECV slots that were freed, of one queue after the other. */
struct sv_freed {
    struct sv_rq *rq;
    uint32_t      count;
};

static void sv_freed_publish(struct sv_freed *freed)
{
    if (freed->count > 0) {
        atomic_fetch_add_explicit(&freed->rq->freed, freed->count,
                                  memory_order_release);
        freed->count = 0;
    }
}

static inline void sv_cqe_free_slot(const struct sv_cqe *cqe,
                                    struct sv_freed *freed)
{
    if (cqe->kind == SV_CQE_SEND) {
        atomic_store_explicit(&cqe->qp->tx.freed, cqe->slot,
                              memory_order_release);
        return;
    }

    if (sv_unlikely(cqe->qp->recvs != freed->rq)) {
        sv_freed_publish(freed);
        freed->rq = cqe->qp->recvs;
    }
    ++freed->count;
}

/* Hands out the ring, then as much of the batch as the caller has room for.
 * Needs lock, and for the batch rx_lock. */
static int sv_cq_hand_out(struct sv_cq *cq, int num, struct ibv_wc *wc,
                          bool with_batch)
{
    struct sv_freed freed = {NULL, 0};
    uint32_t head         = atomic_load_explicit(&cq->head,
                                                 memory_order_relaxed);
    uint32_t tail         = atomic_load_explicit(&cq->tail,
                                                 memory_order_relaxed);
    const struct sv_cqe *cqe;
    unsigned whole, taken = 0;
    int n = 0;

    for (; (n < num) && (head != tail); ++n) {
        cqe   = &cq->ring[head++ & cq->mask];
        wc[n] = cqe->wc;
        sv_cqe_free_slot(cqe, &freed);
    }
    atomic_store_explicit(&cq->head, head, memory_order_relaxed);

    if (with_batch) {
        /* A CQ that is dead gives out nothing but what is in its ring. */
        whole = sv_unlikely(sv_cq_has_failed(cq)) ? 0 : cq->num_batch;
        for (; (n < num) && (taken < whole); ++n) {
            cqe   = &cq->batch[taken++];
            wc[n] = cqe->wc;
            sv_cqe_free_slot(cqe, &freed);
        }
        sv_cq_spill(cq, taken);
    }
    sv_freed_publish(&freed);
    return n;
}

/* ---- receiving ---- */

/* Receives on all QPs of the CQ, at most `limit` messages. Needs rx_lock. */
static inline void sv_cq_receive(struct sv_cq *cq, unsigned limit, bool notify)
{
    unsigned at = cq->scan_start;
    struct sv_scan *scan;
    unsigned i;

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
            /* Whoever used up the limit is last next time. */
            cq->scan_start = at;
        }
    }
}

/* How many messages one poll receives. If the queues that complete here hold
 * more than the CQ does, the program may overrun it, and does so at the moment
 * when more has arrived than fits: then everything must be received that has
 * arrived. Otherwise what the caller has no room for can wait in the rings. */
static unsigned sv_cq_rx_budget(struct sv_cq *cq, int room)
{
    return (atomic_load_explicit(&cq->max_outstanding, memory_order_relaxed) >
            atomic_load_explicit(&cq->size, memory_order_relaxed)) ?
                   UINT_MAX : (unsigned)room;
}

/* Whoever else is receiving may have passed what this caller, who has just
 * armed the CQ, relies on finding; so this waits for the lock. */
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

/* Threads that poll at the same time may lose a count: no harm. */
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

/* The oldest completion without an event of its own. Needs lock. */
static uint32_t sv_cq_unannounced(const struct sv_cq *cq)
{
    uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);

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

/* Needs rx_lock if the QP receives here. */
void sv_cq_remove_qp(struct sv_cq *cq, struct sv_qp *qp)
{
    struct sv_freed freed = {NULL, 0};
    uint32_t from, to, tail;
    struct sv_cqe *cqe;

    sv_spin_lock(&cq->lock);
    from = to = atomic_load(&cq->head);
    tail      = atomic_load(&cq->tail);
    for (; from != tail; ++from) {
        cqe = &cq->ring[from & cq->mask];
        if (cqe->qp == qp) {
            sv_cqe_free_slot(cqe, &freed);
        } else {
            cq->ring[to++ & cq->mask] = *cqe;
        }
    }
    atomic_store(&cq->tail, to);
    if ((int32_t)(cq->announced - to) > 0) {
        cq->announced = to;
    }
    sv_freed_publish(&freed);
    sv_spin_unlock(&cq->lock);
}
