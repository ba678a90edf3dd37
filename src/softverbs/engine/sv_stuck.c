/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stuck list: QPs whose send queue waits for room, for a RECV or for an
 * answer, and QPs whose RECVs must be flushed.
 *
 * Every ibv_poll_cq() of the process runs the list. The service thread runs it
 * for programs that sleep.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/engine/sv_qp_error.h"
#include "softverbs/engine/sv_rc.h"
#include "softverbs/engine/sv_rx.h"
#include "softverbs/engine/sv_stuck.h"
#include "softverbs/engine/sv_tx.h"
#include "softverbs/fabric/sv_doorbell.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/objects/sv_check.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_qp.h"

/* Adds a QP whose queue is not finished, or whose RECVs must be flushed. Needs
 * tx.lock. */
void sv_stuck_add(struct sv_qp *qp)
{
    struct sv_node *node = qp->node;
    bool nudge           = false;

    sv_assert_held(&qp->tx.lock);
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

    sv_assert_held(&node->stuck_lock);
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

/* Asks the receiver to act. If our stream has not moved since the service
 * thread's last visit, nobody polls over there, and its service thread must
 * receive. If nobody polls here either, the receiver rings our doorbell when it
 * has made room. */
static void sv_tx_request_poll(struct sv_tx *tx, enum sv_pusher pusher)
{
    if ((tx->wait != SV_WAIT_RING) && (tx->wait != SV_WAIT_VERDICT)) {
        return;
    }

    if (pusher == SV_PUSHER_SERVICE) {
        atomic_store(&tx->rem->waiting, 1);
    }
    if ((pusher == SV_PUSHER_SERVICE) || (tx->poll_requested_at == tx->tail)) {
        /* The receiver may not see what we sent: let it check. */
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

    sv_assert_held(&qp->node->stuck_lock);
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
    sv_qp_check(qp);
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
        /* Threads that poll at the same time may lose a count, which does no
         * harm. */
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
