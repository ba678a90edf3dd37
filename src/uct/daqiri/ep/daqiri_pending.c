/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that were refused and wait: one FIFO per conn, for all endpoints that share
 * it. When something has become free, progress tries the requests in order. Each one
 * enters the send line at its start; there is no second path.
 */
#include "ep/daqiri_pending.h"

#include "base/daqiri_pool.h"
#include "conn/daqiri_budget.h"
#include "conn/daqiri_conn.h"
#include "conn/daqiri_tx.h"
#include "ep/daqiri_ep.h"
#include "iface/daqiri_iface.h"

/* The queue's part of a request, which belongs to UCP. */
typedef struct {
    ucs_queue_elem_t queue;
    uct_daqiri_ep_t  *ep;
} uct_daqiri_pending_t;

DQ_STATIC_ASSERT(sizeof(uct_daqiri_pending_t) <= UCT_PENDING_REQ_PRIV_LEN,
                 "fits the private part of a request");


static inline uct_daqiri_pending_t *
uct_daqiri_pending(uct_pending_req_t *req)
{
    return (uct_daqiri_pending_t*)req->priv;
}


static inline uct_pending_req_t *
uct_daqiri_pending_req(uct_daqiri_pending_t *pending)
{
    return ucs_container_of(pending, uct_pending_req_t, priv);
}


static void uct_daqiri_pending_enter(uct_daqiri_conn_t *conn)
{
    uct_daqiri_budget_want(conn);
    if (!conn->pending.is_on) {
        conn->pending.is_on       = 1;
        uct_daqiri_iface_add_work(conn->iface, UCT_DAQIRI_WORK_LISTS);
        ucs_list_add_tail(&conn->iface->tx.pending, &conn->pending.link);
    }
}


ucs_status_t uct_daqiri_ep_pending_add(uct_ep_h tl_ep, uct_pending_req_t *req,
                                       unsigned flags)
{
    uct_daqiri_ep_t *ep       = ucs_derived_of(tl_ep, uct_daqiri_ep_t);
    uct_daqiri_conn_t *conn   = ep->conn;
    uct_daqiri_iface_t *iface = conn->iface;

    (void)flags;
    /* UCS_ERR_BUSY must mean that a send would be admitted, or the caller spins. */
    if (ucs_queue_is_empty(&conn->pending.queue) &&
        (iface->tx.pool.count - iface->tx.pool.free_count <
         iface->tx.pool.limit) &&
        (dq_sq_admit(&conn->sq, &iface->tx.ledger, DQ_WR_MSG) ==
         DQ_ADMIT_OK)) {
        return UCS_ERR_BUSY;
    }

    uct_daqiri_pending(req)->ep = ep;
    ucs_queue_push(&conn->pending.queue, &uct_daqiri_pending(req)->queue);
    uct_daqiri_pending_enter(conn);
    return UCS_OK;
}


static void uct_daqiri_pending_unlink(uct_daqiri_conn_t *conn)
{
    if (conn->pending.is_on && ucs_queue_is_empty(&conn->pending.queue)) {
        conn->pending.is_on = 0;
        ucs_list_del(&conn->pending.link);
    }
}


void uct_daqiri_pending_move(uct_daqiri_conn_t *stub, uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;

    if (ucs_queue_is_empty(&stub->pending.queue)) {
        return;
    }
    dq_sq_return_tokens(&conn->sq, &iface->tx.ledger);
    ucs_queue_splice(&conn->pending.queue, &stub->pending.queue);
    uct_daqiri_pending_unlink(stub);
    uct_daqiri_pending_enter(conn);
    iface->tx.wake = 1; /* conn may be up, and nothing else would wake it */
}


void uct_daqiri_ep_pending_purge(uct_ep_h tl_ep,
                                 uct_pending_purge_callback_t cb, void *arg)
{
    uct_daqiri_ep_t *ep     = ucs_derived_of(tl_ep, uct_daqiri_ep_t);
    uct_daqiri_conn_t *conn = ep->conn;
    ucs_queue_head_t purged;
    uct_daqiri_pending_t *pending;
    ucs_queue_iter_t iter;

    ucs_queue_head_init(&purged);
    ucs_queue_for_each_safe(pending, iter, &conn->pending.queue, queue) {
        if (pending->ep == ep) {
            ucs_queue_del_iter(&conn->pending.queue, iter);
            ucs_queue_push(&purged, &pending->queue);
        }
    }
    uct_daqiri_pending_unlink(conn);

    while (!ucs_queue_is_empty(&purged)) {
        pending = ucs_queue_pull_elem_non_empty(&purged, uct_daqiri_pending_t,
                                                queue);
        if (cb != NULL) {
            cb(uct_daqiri_pending_req(pending), arg);
        }
    }
}


/* Tries the requests of one conn in order, at most poll_batch of them, so that the next
 * conn has its turn. Returns how many were sent, in full or in part. */
static unsigned uct_daqiri_dispatch_conn(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;
    uct_daqiri_pending_t *pending;
    uct_pending_req_t *req;
    ucs_status_t status;
    unsigned count = 0;

    while (!ucs_queue_is_empty(&conn->pending.queue)) {
        if (count == iface->poll_batch) {
            iface->tx.wake = 1;
            break;
        }
        pending = ucs_queue_pull_elem_non_empty(&conn->pending.queue,
                                                uct_daqiri_pending_t, queue);
        req     = uct_daqiri_pending_req(pending);
        status  = req->func(req); /* after UCS_OK req is UCP's */
        if (status == UCS_OK) {
            count++;
            continue;
        }
        ucs_queue_push_head(&conn->pending.queue, &pending->queue);
        dq_sq_return_tokens(&conn->sq, &iface->tx.ledger); /* nothing overtakes it */
        if (status == UCS_INPROGRESS) {
            iface->tx.wake = 1; /* UCP sent a part of it */
            count++;
        }
        break;
    }
    return count;
}


void uct_daqiri_pending_finish(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;
    unsigned count            = 1;

    while ((count > 0) && !ucs_queue_is_empty(&conn->pending.queue)) {
        iface->tx.dispatching = conn;
        count                 = uct_daqiri_dispatch_conn(conn);
        iface->tx.dispatching = NULL;
    }
    uct_daqiri_pending_unlink(conn);
}


/* Nothing has become free for a while. Probes the peers whose credits are missing. */
static void uct_daqiri_dispatch_probe(uct_daqiri_iface_t *iface)
{
    enum { TURNS = 256 }; /* most calls do not read the clock */
    uct_daqiri_conn_t *conn;

    if ((++iface->tx.idle_dispatches % TURNS) != 0) {
        return;
    }
    ucs_list_for_each(conn, &iface->tx.pending, pending.link) {
        if (dq_sq_credits(&conn->sq) <= DQ_CREDIT_SPARE) {
            uct_daqiri_tx_probe_peer(conn);
        }
    }
}


/* Whether a resource that all conns share is used up. */
static int uct_daqiri_dispatch_is_out(const uct_daqiri_iface_t *iface)
{
    const uct_daqiri_pool_t *pool = &iface->tx.pool;

    return (iface->tx.ledger.used + DQ_SQ_RESERVE >= iface->tx.ledger.depth) ||
           ((pool->free_count == 0) && (pool->count == pool->limit));
}


/* Whether the first request may be tried. A flush must not wait for a peer that does not
 * answer our CLOSE: the peer may be in the barrier that our user comes to next. */
static int uct_daqiri_dispatch_may_try(const uct_daqiri_conn_t *conn)
{
    return (conn->sq.gate == DQ_GATE_UP) ||
           ((conn->sq.gate == DQ_GATE_CLOSING) && uct_daqiri_conn_is_flushed(conn));
}


unsigned uct_daqiri_dispatch(uct_daqiri_iface_t *iface)
{
    uct_daqiri_conn_t *conn;
    ucs_list_link_t turn;
    unsigned count = 0;

    uct_daqiri_assert_progress(iface);
    if (!iface->tx.wake) {
        uct_daqiri_dispatch_probe(iface);
        return 0;
    }

    iface->tx.wake = 0;
    ucs_list_head_init(&turn);
    ucs_list_splice_tail(&turn, &iface->tx.pending);
    ucs_list_head_init(&iface->tx.pending);
    while (!ucs_list_is_empty(&turn) && !uct_daqiri_dispatch_is_out(iface)) {
        /* Moved to the tail first: callbacks may purge the requests of any conn. */
        conn = ucs_list_extract_head(&turn, uct_daqiri_conn_t, pending.link);
        ucs_list_add_tail(&iface->tx.pending, &conn->pending.link);
        if (uct_daqiri_dispatch_may_try(conn)) {
            iface->tx.dispatching  = conn;
            count                 += uct_daqiri_dispatch_conn(conn);
            iface->tx.dispatching  = NULL;
        }
        uct_daqiri_pending_unlink(conn);
    }

    /* Conns that had no turn come first next time. Otherwise the first few would always
     * take all that becomes free. */
    ucs_list_splice_tail(&turn, &iface->tx.pending);
    ucs_list_head_init(&iface->tx.pending);
    ucs_list_splice_tail(&iface->tx.pending, &turn);
    return count;
}
