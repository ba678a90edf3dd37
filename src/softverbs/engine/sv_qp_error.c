/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QPs that go to ERR: by the program, for a peer's fault, or for a lost
 * completion.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/engine/sv_qp_error.h"
#include "softverbs/engine/sv_rx.h"
#include "softverbs/engine/sv_tx.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_event.h"
#include "softverbs/objects/sv_qp.h"

/* Needs rx_lock. */
void sv_qp_to_err(struct sv_qp *qp)
{
    sv_assert_held(&sv_cq(qp->base.recv_cq)->rx_lock);
    atomic_store(&qp->state, IBV_QPS_ERR);
    sv_rx_close(qp, true);
    sv_rx_flush(qp);

    sv_spin_lock(&qp->tx.lock);
    sv_tx_flush(qp);
    sv_spin_unlock(&qp->tx.lock);
}

static enum ibv_event_type sv_fault_event(uint32_t fault)
{
    switch (fault) {
    case SV_KILL_FATAL:
        return IBV_EVENT_QP_FATAL;
    case IBV_WC_REM_ACCESS_ERR:
        return IBV_EVENT_QP_ACCESS_ERR;
    default:
        return IBV_EVENT_QP_REQ_ERR;
    }
}

void sv_qp_remote_fault(struct sv_qp *qp)
{
    struct sv_cq *cq = sv_cq(qp->base.recv_cq);
    uint32_t fault;

    sv_spin_lock(&cq->rx_lock);
    fault = atomic_exchange(&qp->shm->fault, 0);
    if ((fault != 0) && qp->rx.open) {
        sv_qp_to_err(qp);
        if (fault != SV_KILL_QUIETLY) {
            sv_event_post(qp->ctx, sv_fault_event(fault), qp);
        }
    }
    sv_cq_rx_unlock(cq);
}

/* An overrun lost a completion of this QP. */
static void sv_rx_overrun(struct sv_qp *qp)
{
    qp->rx.pos = UINT64_MAX;
    sv_qp_to_err(qp);
    sv_event_post(qp->ctx, IBV_EVENT_QP_FATAL, qp);
}

void sv_cq_fail_qps(struct sv_cq *cq)
{
    struct sv_qp *qp;
    unsigned i;

    sv_assert_held(&cq->rx_lock);
    for (i = 0; i < cq->num_scan; ++i) {
        qp = cq->scan[i].qp;
        if (atomic_load(&qp->cq_lost) &&
            (atomic_load(&qp->state) != IBV_QPS_ERR)) {
            sv_rx_overrun(qp);
        }
    }
}
