/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of the send line, as far as each progress call needs it: poll, retire,
 * complete. Inline, so that a call that finds a completion is one function. A program
 * that waits for its own READ has little else to pay for.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_DONE_H
#define UCT_DAQIRI_DONE_H

#include "base/daqiri_cq.h"
#include "conn/daqiri_conn.h"
#include "conn/daqiri_tx.h"

/* Empties the slot of a request. The caller pays what the request owed. */
static UCS_F_ALWAYS_INLINE uct_daqiri_op_t
uct_daqiri_done_take(uct_daqiri_conn_t *conn, uint32_t id)
{
    uct_daqiri_op_t *slot = &conn->ops.slot[id & conn->sq.mask];
    uct_daqiri_op_t op    = *slot;

    if ((op.desc != UCT_DAQIRI_NO_DESC) || (op.comp != NULL)) {
        slot->desc = UCT_DAQIRI_NO_DESC;
        slot->comp = NULL;
        conn->ops.count--;
    }
    return op;
}

/* Frees the buffer and calls the completion. The ledger has retired the request before,
 * because the completion may post and poll. */
static UCS_F_ALWAYS_INLINE void
uct_daqiri_done_pay(uct_daqiri_iface_t *iface, uct_daqiri_op_t op,
                    ucs_status_t status)
{
    if (op.desc != UCT_DAQIRI_NO_DESC) {
        uct_daqiri_pool_put(&iface->tx.pool, op.desc);
    }
    if (op.comp != NULL) {
        uct_invoke_completion(op.comp, status);
    }
}

/* The oldest request of the conn has succeeded. The conn must have one. */
static UCS_F_ALWAYS_INLINE void
uct_daqiri_done_oldest(uct_daqiri_iface_t *iface, uct_daqiri_conn_t *conn)
{
    uct_daqiri_op_t op = uct_daqiri_op_none;

    if (conn->ops.count > 0) {
        op = uct_daqiri_done_take(conn, conn->sq.retired);
    }
    dq_sq_retire_oldest(&conn->sq, &iface->tx.ledger);
    uct_daqiri_done_pay(iface, op, UCS_OK);
    DQ_ASSERT(dq_sq_check(&conn->sq, &iface->tx.ledger));
}

/* Fast path: a program often waits for the only request in flight. */
static UCS_F_ALWAYS_INLINE void
uct_daqiri_done_on_wc(uct_daqiri_iface_t *iface, const struct ibv_wc *wc)
{
    uct_daqiri_conn_t *conn;

    conn = uct_daqiri_iface_likely_conn(iface, &iface->tx.last, wc->qp_num);
    if (ucs_likely((conn != NULL) && (wc->wr_id == conn->sq.retired) &&
                   (dq_sq_in_use(&conn->sq) > 0) &&
                   (wc->status == IBV_WC_SUCCESS))) {
        uct_daqiri_done_oldest(iface, conn);
    } else {
        uct_daqiri_tx_on_wc(iface, conn, wc);
    }
}

/* Takes one batch of send completions at most. @a wc is scratch space for
 * UCT_DAQIRI_POLL_MAX. Returns how many completions it took. A user's completion may call
 * this: then it goes on with the batch in hand, because completions have an order. */
static UCS_F_ALWAYS_INLINE unsigned
uct_daqiri_done_poll(uct_daqiri_iface_t *iface, struct ibv_wc *wc)
{
    uct_daqiri_hand_t *hand = &iface->tx.hand;
    unsigned count          = hand->left;

    if (ucs_likely(count == 0)) {
        count = uct_daqiri_cq_poll(&iface->tx.prefetched, iface->tx.cq,
                                   iface->poll_batch, wc);
        if (count == 0) {
            return 0;
        }
        iface->tx.wake = 1;
        hand->next     = wc;
        hand->left     = count;
    }
    do {
        hand->left--;
        uct_daqiri_done_on_wc(iface, hand->next++);
    } while (hand->left > 0);
    hand->next = NULL; /* the array is the poller's */
    return count;
}

#endif
