/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QPs that go to ERR, and the release of rx_lock, at which some have to.
 */
#ifndef SV_QP_ERROR_H
#define SV_QP_ERROR_H

#include "softverbs/base/sv_assert.h"
#include "softverbs/objects/sv_check.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_qp.h"

/* Moves the QP to ERR and flushes it. Needs rx_lock of the receive CQ. */
void sv_qp_to_err(struct sv_qp *qp);
/* A peer's request must fail this QP. */
void sv_qp_remote_fault(struct sv_qp *qp);
/* Fails the QPs that lost completions to an overrun. Needs rx_lock. */
void sv_cq_fail_qps(struct sv_cq *cq);

/* Releases rx_lock after receiving. Nothing else does, so that no completion
 * stays in the batch. */
static inline void sv_cq_rx_unlock(struct sv_cq *cq)
{
    if ((cq->num_batch > 0) || (cq->batch_notify != SV_NOTIFY_NONE)) {
        sv_cq_flush(cq);
    }
    if (sv_unlikely(sv_cq_has_failed(cq))) {
        sv_cq_fail_qps(cq);
        sv_cq_flush(cq);
    }
    sv_assert(cq->num_batch == 0);
    sv_cq_check(cq);
    sv_spin_unlock(&cq->rx_lock);
}

#endif
