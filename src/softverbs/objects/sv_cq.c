/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The completion ring of a CQ, and the batch of completions on their way to it.
 * engine/sv_poll.c has the picture.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/objects/sv_channel.h"
#include "softverbs/objects/sv_check.h"
#include "softverbs/objects/sv_context.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_event.h"
#include "softverbs/objects/sv_qp.h"
#include "softverbs/objects/sv_rq.h"

/* ---- putting in ---- */

/* Needs lock. */
static void sv_cq_fail(struct sv_cq *cq)
{
    sv_assert_held(&cq->lock);
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

/* Appends to the ring. False: overrun. The CQ has failed from then on, like
 * that of a real device: the program can poll what is in it, and nothing is
 * added. Needs lock. */
static bool sv_cq_append(struct sv_cq *cq, const struct sv_cqe *cqe)
{
    uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

    sv_assert_held(&cq->lock);
    if (sv_unlikely(sv_cq_count(cq) >=
                    atomic_load_explicit(&cq->room, memory_order_relaxed))) {
        sv_cq_fail(cq);
        return false;
    }

    cq->ring[tail & cq->mask] = *cqe;
    atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
    return true;
}

void sv_cq_post_event(struct sv_cq *cq, enum sv_notify notify)
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
    sv_cq_check(cq);
    sv_spin_unlock(&cq->lock);
    if (sv_likely(fits)) {
        sv_cq_post_event(cq, notify);
    }
    return fits;
}

/* ---- the batch ---- */

/* Moves the batch, from its n-th completion on, into the ring. Needs both
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

    sv_assert_held(&cq->rx_lock);
    if (cq->num_batch > 0) {
        sv_spin_lock(&cq->lock);
        sv_cq_spill(cq, 0);
        sv_spin_unlock(&cq->lock);
    }
    cq->batch_notify = SV_NOTIFY_NONE;
    sv_cq_post_event(cq, notify);
}

/* ---- taking out ---- */

/* RECV slots that were freed, collected for one queue at a time. */
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

int sv_cq_hand_out(struct sv_cq *cq, int num, struct ibv_wc *wc,
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

    sv_assert_held(&cq->lock);
    for (; (n < num) && (head != tail); ++n) {
        cqe   = &cq->ring[head++ & cq->mask];
        wc[n] = cqe->wc;
        sv_cqe_free_slot(cqe, &freed);
    }
    atomic_store_explicit(&cq->head, head, memory_order_relaxed);

    if (with_batch) {
        /* A CQ that has failed hands out only what is in its ring. */
        whole = sv_unlikely(sv_cq_has_failed(cq)) ? 0 : cq->num_batch;
        for (; (n < num) && (taken < whole); ++n) {
            cqe   = &cq->batch[taken++];
            wc[n] = cqe->wc;
            sv_cqe_free_slot(cqe, &freed);
        }
        sv_cq_spill(cq, taken);
    }
    sv_freed_publish(&freed);
    sv_cq_check(cq);
    return n;
}

/* Removes the completions of a QP. Needs rx_lock if the QP receives here. */
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
