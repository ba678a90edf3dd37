/* SPDX-License-Identifier: BSD-3-Clause */
/* The invariants of objects: objects/sv_check.h. */
#include "softverbs/objects/sv_check.h"

#include "softverbs/base/sv_assert.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_qp.h"
#include "softverbs/objects/sv_rq.h"
#include "softverbs/objects/sv_srq.h"

#if DQ_DEBUG

/* freed <= done <= posted <= freed + depth, modulo 2^32. */
static void sv_tx_check(const struct sv_tx *tx)
{
    uint32_t freed = atomic_load(&tx->freed);

    sv_assert(tx->posted - freed <= tx->depth);
    sv_assert(tx->done - freed <= tx->posted - freed);
    if (tx->epoch == 0) {
        return;
    }

    sv_assert((tx->peer != NULL) && (tx->rem != NULL));
    sv_assert((tx->ring_bytes == SV_RING_BYTES) ||
              (tx->ring_bytes == SV_RING_MIDDLE) ||
              (tx->ring_bytes == SV_RING_SMALL));
    sv_assert((tx->ring_room == tx->ring_bytes) ||
              (tx->ring_room == tx->ring_bytes - SV_LINE));
    sv_assert(sv_tx_unread(tx) <= tx->ring_room);
    sv_assert(tx->tail % SV_LINE == 0);
}

static void sv_rx_check(const struct sv_qp *qp)
{
    const struct sv_rx *rx = &qp->rx;
    const struct sv_cq *cq = sv_cq(qp->base.recv_cq);

    sv_assert(rx->scan < cq->num_scan);
    sv_assert(cq->scan[rx->scan].qp == qp);
    sv_assert(!rx->busy || (rx->left <= rx->total));
    if (rx->open && (rx->pos != UINT64_MAX)) {
        sv_assert(rx->pos - rx->published <= SV_RING_BYTES);
        sv_assert(rx->pos % SV_LINE == 0);
    }
}

void sv_qp_check(const struct sv_qp *qp)
{
    if (sv_spin_is_mine(&qp->tx.lock)) {
        sv_tx_check(&qp->tx);
    }
    if (sv_spin_is_mine(&sv_cq(qp->base.recv_cq)->rx_lock)) {
        sv_rx_check(qp);
    }
}

void sv_cq_check(const struct sv_cq *cq)
{
    if (sv_spin_is_mine(&cq->lock)) {
        sv_assert(sv_cq_count(cq) <= atomic_load(&cq->size));
        sv_assert(atomic_load(&cq->size) <= cq->mask + 1);
    }
    if (sv_spin_is_mine(&cq->rx_lock)) {
        sv_assert(cq->num_batch <= SV_BATCH);
        sv_assert(cq->num_active <= cq->num_scan);
        sv_assert(cq->num_scan <= cq->scan_room);
    }
}

/* freed <= taken <= posted <= freed + depth. `freed` is read first: it only
 * grows, and never passes `taken`. */
void sv_rq_check(const struct sv_rq *rq)
{
    uint32_t freed = atomic_load(&rq->freed) + atomic_load(&rq->freed_at_once);
    uint32_t taken = atomic_load(&rq->taken);

    sv_assert_held(&rq->post_lock);
    sv_assert(rq->posted - freed <= rq->depth);
    sv_assert(taken - freed <= rq->depth);
    sv_assert(rq->posted - taken <= rq->depth);
}

void sv_srq_check(const struct sv_srq *srq)
{
    sv_assert(srq->rq.shm_posted == &srq->shm->posted);
    sv_assert(atomic_load(&srq->limit) <= srq->rq.depth);
}

#endif
