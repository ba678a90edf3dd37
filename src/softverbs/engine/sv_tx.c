/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send queue: executes its WRs in order, one at a time, as far as it goes
 * without waiting.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/engine/sv_offer.h"
#include "softverbs/engine/sv_rc.h"
#include "softverbs/engine/sv_request.h"
#include "softverbs/engine/sv_tx.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_event.h"
#include "softverbs/objects/sv_hooks.h"
#include "softverbs/objects/sv_qp.h"

#include <string.h>

static inline __attribute__((always_inline)) int
sv_tx_execute_connected(struct sv_qp *qp, struct sv_swqe *wqe)
{
    switch (wqe->opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
        return sv_tx_send(qp, wqe);
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return sv_tx_write(qp, wqe);
    case IBV_WR_RDMA_READ:
        return sv_tx_read(qp, wqe);
    default:
        return sv_tx_atomic(qp, wqe);
    }
}

static int sv_tx_execute(struct sv_qp *qp, struct sv_swqe *wqe)
{
    if (!qp->tx.special) {
        return sv_tx_execute_connected(qp, wqe);
    }
    if (sv_unlikely(qp->faults != NULL)) {
        return sv_hooks.execute(qp, wqe, sv_tx_execute_connected);
    }
    return sv_tx_datagram(qp, wqe);
}

/* ---- the queue ---- */

static enum ibv_wc_opcode sv_wc_opcode(uint32_t wr_opcode)
{
    switch (wr_opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
        return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return IBV_WC_FETCH_ADD;
    default:
        return IBV_WC_SEND;
    }
}

/* A completion was lost, so the QP fails. */
static void sv_tx_overrun(struct sv_qp *qp)
{
    if (!atomic_exchange(&qp->cq_lost, true)) {
        atomic_store(&qp->state, IBV_QPS_ERR);
        atomic_store(&qp->rx_flush_due, true);
        sv_event_post(qp->ctx, IBV_EVENT_QP_FATAL, qp);
    }
}

void sv_tx_retire(struct sv_qp *qp, const struct sv_swqe *wqe,
                  enum ibv_wc_status status)
{
    struct sv_cqe cqe;

    sv_assert_held(&qp->tx.lock);
    ++qp->tx.done;
    if ((status == IBV_WC_SUCCESS) &&
        ((wqe->flags & IBV_SEND_SIGNALED) == 0) && !qp->sq_sig_all) {
        return;
    }

    memset(&cqe.wc, 0, sizeof(cqe.wc));
    cqe.qp          = qp;
    cqe.kind        = SV_CQE_SEND;
    cqe.slot        = qp->tx.done;
    cqe.wc.wr_id    = wqe->wr_id;
    cqe.wc.status   = status;
    cqe.wc.opcode   = sv_wc_opcode(wqe->opcode);
    cqe.wc.byte_len = wqe->total;
    cqe.wc.qp_num   = qp->base.qp_num;
    cqe.notify      = (status == IBV_WC_SUCCESS) ? SV_NOTIFY_NEXT :
                                                   SV_NOTIFY_SOLICITED;
    if (sv_unlikely(!sv_cq_push(sv_cq(qp->base.send_cq), &cqe, cqe.notify))) {
        sv_tx_overrun(qp);
    }
}

void sv_tx_flush(struct sv_qp *qp)
{
    struct sv_tx *tx = &qp->tx;

    sv_assert_held(&qp->tx.lock);
    sv_tx_withdraw(qp);
    while (tx->done != tx->posted) {
        sv_tx_retire(qp, sv_tx_wqe(tx, tx->done), IBV_WC_WR_FLUSH_ERR);
    }
}

/* A datagram QP stops sending (SQE). A connected QP fails altogether, and so
 * does a QP that a plan of faults kills. */
static void sv_tx_fail(struct sv_qp *qp, const struct sv_swqe *wqe,
                       enum ibv_wc_status status)
{
    bool sqe = (qp->base.qp_type == IBV_QPT_UD) &&
               (status != IBV_WC_WR_FLUSH_ERR);

    atomic_store(&qp->state, sqe ? IBV_QPS_SQE : IBV_QPS_ERR);
    sv_tx_withdraw(qp);
    sv_tx_retire(qp, wqe, status);
    sv_tx_flush(qp);
    if (!sqe) {
        atomic_store(&qp->rx_flush_due, true);
    }
}

static bool sv_swqe_is_begun(const struct sv_swqe *wqe)
{
    return (wqe->stage != SV_STAGE_NEW) || (wqe->sent > 0);
}

/* Whether the QP's state allows work on the oldest WR. SQD finishes what has
 * begun and begins nothing. */
static bool sv_tx_may_run(struct sv_qp *qp)
{
    uint32_t state = atomic_load_explicit(&qp->state, memory_order_relaxed);

    return sv_likely(state == IBV_QPS_RTS) ||
           ((state == IBV_QPS_SQD) &&
            sv_swqe_is_begun(sv_tx_wqe(&qp->tx, qp->tx.done)));
}

void sv_tx_drained(struct sv_qp *qp)
{
    struct sv_tx *tx = &qp->tx;

    sv_assert_held(&qp->tx.lock);
    if ((atomic_load(&qp->state) == IBV_QPS_SQD) && tx->drain_event &&
        ((tx->done == tx->posted) ||
         !sv_swqe_is_begun(sv_tx_wqe(tx, tx->done)))) {
        tx->drain_event = false;
        sv_event_post(qp->ctx, IBV_EVENT_SQ_DRAINED, qp);
    }
}

static bool sv_tx_timer_runs(const struct sv_tx *tx)
{
    return ((tx->wait == SV_WAIT_ACK) || (tx->wait == SV_WAIT_RNR)) &&
           (sv_now_ns() < tx->deadline);
}

void sv_tx_disconnect(struct sv_qp *qp)
{
    struct sv_tx *tx = &qp->tx;
    unsigned i;

    sv_assert_held(&qp->tx.lock);
    sv_tx_withdraw(qp);
    if (tx->peer != NULL) {
        sv_peer_put(qp->node, tx->peer);
        tx->peer = NULL;
    }
    for (i = 0; i < SV_UD_PEERS; ++i) {
        if (tx->ud_peers[i] != NULL) {
            sv_peer_put(qp->node, tx->ud_peers[i]);
            tx->ud_peers[i] = NULL;
        }
    }
    tx->epoch = 0;
    tx->wait  = SV_WAIT_NONE;
    tx->tries = 0;
    if (qp->faults != NULL) {
        sv_hooks.tx_reset(qp);
    }
}

void sv_tx_run(struct sv_qp *qp)
{
    struct sv_tx *tx = &qp->tx;
    struct sv_swqe *wqe;
    int ret;

    sv_assert_held(&qp->tx.lock);
    while (tx->done != tx->posted) {
        if (sv_unlikely(!sv_tx_may_run(qp))) {
            sv_tx_drained(qp);
            return;
        }
        if (sv_unlikely(tx->wait != SV_WAIT_NONE) && sv_tx_timer_runs(tx)) {
            return;
        }

        wqe = sv_tx_wqe(tx, tx->done);
        ret = sv_tx_execute(qp, wqe);
        if (sv_unlikely(ret == SV_AGAIN)) {
            return;
        }

        tx->wait = SV_WAIT_NONE;
        if (sv_unlikely(ret != 0)) {
            sv_tx_fail(qp, wqe, ret);
            return;
        }
        sv_tx_retire(qp, wqe, IBV_WC_SUCCESS);
    }
}
