/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send queue: executes its WRs in order, one at a time, as far as it goes
 * without waiting, and keeps the list of those that wait.
 */
#include "sv_fault.h"
#include "sv_tx.h"

#include <string.h>

/* ---- one request ---- */

int sv_tx_resolve(struct sv_qp *qp, struct sv_swqe *wqe, int access)
{
    int64_t total;

    if (wqe->resolved) {
        /* inline, or it had to wait, and its memory may be gone */
        return ((wqe->flags & IBV_SEND_INLINE) ||
                sv_sge_is_registered(qp->node, wqe->sge, wqe->num_sge)) ?
                       0 : IBV_WC_LOC_PROT_ERR;
    }

    total = sv_sge_resolve(qp->node, qp->pdn, wqe->sge, wqe->num_sge, access,
                           wqe->sge);
    if (total < 0) {
        return IBV_WC_LOC_PROT_ERR;
    }
    if (total > SV_LIMIT_MSG) {
        return IBV_WC_LOC_LEN_ERR;
    }

    wqe->total    = total;
    wqe->resolved = true;
    return 0;
}

/* Copies `bytes` of the message from `sent` on. */
static void sv_tx_gather(const struct sv_swqe *wqe, uint8_t *to, uint32_t bytes)
{
    uint32_t skip = wqe->sent;
    unsigned i;
    uint32_t n;

    for (i = 0; bytes > 0; ++i) {
        if (skip >= wqe->sge[i].length) {
            skip -= wqe->sge[i].length;
            continue;
        }
        n = wqe->sge[i].length - skip;
        n = (n < bytes) ? n : bytes;
        sv_copy(to, (char*)(uintptr_t)wqe->sge[i].addr + skip, n);
        to    += n;
        bytes -= n;
        skip   = 0;
    }
}

void sv_tx_fill_record(struct sv_qp *qp, struct sv_rec *rec,
                              const struct sv_swqe *wqe, uint32_t bytes)
{
    unsigned flags = wqe->rec_flags;

    if (wqe->sent == 0) {
        flags |= SV_REC_FIRST;
    }
    if (wqe->sent + bytes == wqe->total) {
        flags |= SV_REC_LAST;
    }

    rec->bytes   = bytes;
    rec->total   = wqe->total;
    rec->src_qpn = qp->base.qp_num;
    rec->imm     = wqe->imm;
    rec->flags   = flags;
    sv_tx_gather(wqe, (uint8_t*)(rec + 1), bytes);
}

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
        return sv_fault_execute(qp, wqe, sv_tx_execute_connected);
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

/* A completion was lost: the QP can no longer be trusted by its owner. */
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

    sv_tx_withdraw(qp);
    while (tx->done != tx->posted) {
        sv_tx_retire(qp, sv_tx_wqe(tx, tx->done), IBV_WC_WR_FLUSH_ERR);
    }
}

/* A datagram QP stops sending (SQE); a connected one stops altogether, and so
 * does one that is flushed because a plan of faults wants it to die. */
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

/* Whether the state lets the oldest WR be worked on: SQD finishes what is
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
    sv_fault_reset(qp);
}

void sv_tx_run(struct sv_qp *qp)
{
    struct sv_tx *tx = &qp->tx;
    struct sv_swqe *wqe;
    int ret;

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

/* ---- the stuck list ---- */

/* A QP could not finish its queue, or owes its RECVs a flush. Needs tx.lock. */
void sv_stuck_add(struct sv_qp *qp)
{
    struct sv_node *node = qp->node;
    bool nudge           = false;

    sv_spin_lock(&node->stuck_lock);
    if (!qp->tx.stuck) {
        qp->tx.stuck      = true;
        qp->tx.stuck_next = node->stuck;
        node->stuck       = qp;
        nudge = (atomic_fetch_add(&node->num_stuck, 1) == 0);
    }
    sv_spin_unlock(&node->stuck_lock);
    if (sv_cq_is_armed(sv_cq(qp->base.send_cq))) {
        sv_service_wake(node, true);
    } else if (nudge) {
        sv_service_wake(node, false);
    }
}

static void sv_stuck_unlink(struct sv_node *node, struct sv_qp **pp)
{
    struct sv_qp *qp = *pp;

    *pp          = qp->tx.stuck_next;
    qp->tx.stuck = false;
    atomic_fetch_sub(&node->num_stuck, 1);
}

void sv_stuck_remove(struct sv_qp *qp)
{
    struct sv_node *node = qp->node;
    struct sv_qp **pp;

    sv_spin_lock(&node->stuck_lock);
    if (qp->tx.stuck) {
        for (pp = &node->stuck; *pp != qp; pp = &(*pp)->tx.stuck_next) {
        }
        sv_stuck_unlink(node, pp);
    }
    sv_spin_unlock(&node->stuck_lock);
}

/* The receiver has to do something first. If nobody polls over there, its
 * service thread has to; that is so if our stream has not moved since the
 * service thread's last visit. If nobody polls here either, let the receiver
 * ring when it is done. */
static void sv_tx_request_poll(struct sv_tx *tx, enum sv_pusher pusher)
{
    if ((tx->wait != SV_WAIT_RING) && (tx->wait != SV_WAIT_VERDICT)) {
        return;
    }

    if (pusher == SV_PUSHER_SERVICE) {
        atomic_store(&tx->rem->waiting, 1);
    }
    if ((pusher == SV_PUSHER_SERVICE) || (tx->poll_requested_at == tx->tail)) {
        /* Perhaps it does not see what we sent. */
        if (sv_tx_enter(tx)) {
            atomic_store(&tx->rem->awaits, tx->tail);
            atomic_store(&tx->peer->head->audit, 1);
            sv_tx_leave(tx);
        }
        sv_doorbell_ring(tx->peer->head);
    }
    tx->poll_requested_at = tx->tail;
}

/* True: nothing is left to do for this QP. Needs stuck_lock. */
static bool sv_stuck_run_qp(struct sv_qp *qp, enum sv_pusher pusher)
{
    struct sv_cq *cq = sv_cq(qp->base.recv_cq);
    bool idle;

    if (!sv_spin_try(&qp->tx.lock)) {
        return false;
    }
    if (pusher != SV_PUSHER_WATCH) {
        sv_tx_run(qp);
    }
    if (atomic_load(&qp->state) == IBV_QPS_ERR) {
        sv_tx_flush(qp);
    }
    idle = (qp->tx.done == qp->tx.posted);
    if (!idle && (pusher != SV_PUSHER_POLLER)) {
        sv_tx_request_poll(&qp->tx, pusher);
    }
    sv_spin_unlock(&qp->tx.lock);

    if (atomic_load(&qp->rx_flush_due)) {
        if (!sv_spin_try(&cq->rx_lock)) {
            return false;
        }
        sv_rx_flush_if_due(qp);
        sv_cq_rx_unlock(cq);
    }
    return idle;
}

void sv_stuck_run(struct sv_node *node, enum sv_pusher pusher)
{
    struct sv_qp **pp;

    if (pusher == SV_PUSHER_POLLER) {
        /* Threads that poll at the same time may lose a count: no harm. */
        atomic_store_explicit(&node->pushes,
                              atomic_load_explicit(&node->pushes,
                                                   memory_order_relaxed) + 1,
                              memory_order_relaxed);
    }
    if (!sv_spin_try(&node->stuck_lock)) {
        return;
    }

    for (pp = &node->stuck; *pp != NULL;) {
        if (sv_stuck_run_qp(*pp, pusher)) {
            sv_stuck_unlink(node, pp);
        } else {
            pp = &(*pp)->tx.stuck_next;
        }
    }
    sv_spin_unlock(&node->stuck_lock);
}
