/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues of RECVs, a QP's own or shared (SRQ).
 *
 * The segment publishes `posted` and the shortest length ever posted. A sender
 * that finds no RECV there is in RNR. A sender whose message fits the shortest
 * RECV knows that the receiver will not refuse it.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_barrier.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/fabric/sv_doorbell.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/objects/sv_check.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_mr.h"
#include "softverbs/objects/sv_rq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct sv_rwqe *sv_rq_wqe(struct sv_rq *rq, uint32_t position)
{
    return (struct sv_rwqe*)(rq->wqes +
                             (size_t)(position & rq->mask) * rq->stride);
}

int sv_rq_init(struct sv_rq *rq, struct sv_node *node, uint32_t pdn,
               uint32_t depth, uint32_t max_sge)
{
    uint32_t room = sv_roundup_pow2(depth);

    rq->node    = node;
    rq->pdn     = pdn;
    rq->depth   = depth;
    rq->max_sge = max_sge;
    rq->mask    = room - 1;
    rq->stride  = sizeof(struct sv_rwqe) + max_sge * sizeof(struct ibv_sge);
    rq->wqes    = calloc(room, rq->stride);
    return (rq->wqes == NULL) ? -1 : 0;
}

void sv_rq_cleanup(struct sv_rq *rq)
{
    free(rq->wqes);
}

void sv_rq_reset(struct sv_rq *rq)
{
    rq->posted = 0;
    atomic_store(&rq->taken, 0);
    atomic_store(&rq->ready, 0);
    atomic_store(&rq->freed, 0);
    atomic_store(&rq->freed_at_once, 0);
    atomic_store(&rq->starved, false);
    atomic_store(rq->shm_posted, 0);
    atomic_store(rq->shm_min_len, UINT32_MAX);
}

/* A RECV whose lkeys do not cover it counts as one of length 0. So senders wait
 * for the verdict, and get the error. */
static void sv_rq_publish_length(struct sv_rq *rq, const struct sv_rwqe *wqe)
{
    int64_t length;

    length = sv_sge_resolve(rq->node, rq->pdn, wqe->sge, wqe->num_sge,
                            IBV_ACCESS_LOCAL_WRITE, NULL);
    if (length < 0) {
        length = 0;
    }
    if (length < atomic_load_explicit(rq->shm_min_len, memory_order_relaxed)) {
        atomic_store_explicit(rq->shm_min_len, length, memory_order_relaxed);
    }
}

int sv_rq_post(struct sv_rq *rq, struct ibv_recv_wr *wr,
               const struct ibv_recv_wr *stop, struct ibv_recv_wr **bad)
{
    struct sv_rwqe *wqe;
    uint32_t freed;
    int ret = 0;
    int i;

    sv_spin_lock(&rq->post_lock);
    for (; wr != stop; wr = wr->next) {
        freed = atomic_load_explicit(&rq->freed, memory_order_acquire) +
                atomic_load_explicit(&rq->freed_at_once, memory_order_acquire);
        if (rq->posted - freed == rq->depth) {
            ret = ENOMEM;
            break;
        }
        if ((wr->num_sge < 0) || ((uint32_t)wr->num_sge > rq->max_sge)) {
            ret = EINVAL;
            break;
        }

        wqe          = sv_rq_wqe(rq, rq->posted++);
        wqe->wr_id   = wr->wr_id;
        wqe->num_sge = wr->num_sge;
        for (i = 0; i < wr->num_sge; ++i) {
            wqe->sge[i] = wr->sg_list[i];
        }
        sv_rq_publish_length(rq, wqe);
    }

    if (ret != 0) {
        *bad = wr;
    }
    atomic_store_explicit(&rq->ready, rq->posted, memory_order_release);
    atomic_store_explicit(rq->shm_posted, rq->posted, memory_order_release);
    sv_rq_check(rq);
    sv_spin_unlock(&rq->post_lock);

    sv_light_barrier(rq->node->self->fence);
    if (sv_unlikely(atomic_load_explicit(&rq->starved, memory_order_relaxed))) {
        /* The waiting message was notified when it came, but there was no
         * completion then. The service thread makes the completion now, with
         * another event. */
        atomic_store(&rq->starved, false);
        sv_doorbell_ring(rq->node->head);
    }
    return ret;
}

static inline bool sv_rq_take_oldest(struct sv_rq *rq, struct sv_rwqe *wqe)
{
    uint32_t taken = atomic_load_explicit(&rq->taken, memory_order_relaxed);
    const struct sv_rwqe *oldest;
    uint32_t i;

    if (atomic_load_explicit(&rq->ready, memory_order_acquire) == taken) {
        return false;
    }

    oldest       = sv_rq_wqe(rq, taken);
    atomic_store_explicit(&rq->taken, taken + 1, memory_order_relaxed);
    wqe->wr_id   = oldest->wr_id;
    wqe->num_sge = oldest->num_sge;
    for (i = 0; i < oldest->num_sge; ++i) {
        wqe->sge[i] = oldest->sge[i];
    }
    return true;
}

bool sv_rq_take(struct sv_rq *rq, struct sv_rwqe *wqe)
{
    bool taken;

    if (sv_likely(!rq->contended)) {
        return sv_rq_take_oldest(rq, wqe);
    }

    sv_spin_lock(&rq->take_lock);
    taken = sv_rq_take_oldest(rq, wqe);
    sv_spin_unlock(&rq->take_lock);
    return taken;
}

void sv_rq_attach(struct sv_rq *rq, struct sv_cq *cq)
{
    /* ctx->lock orders the callers. The lock of the only CQ so far keeps takers
     * out while `contended` changes. */
    if (rq->taker == NULL) {
        rq->taker = cq;
    } else if ((rq->taker != cq) && !rq->contended) {
        sv_spin_lock(&rq->taker->rx_lock);
        rq->contended = true;
        sv_spin_unlock(&rq->taker->rx_lock);
    }
}

void sv_rq_detach(struct sv_rq *rq)
{
    rq->taker     = NULL;
    rq->contended = false;
}
