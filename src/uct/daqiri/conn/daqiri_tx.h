/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting on the RC QPs: each request by itself, in a batch, or to be held as
 * long as the conn is not up. Whether a request may be posted was asked before
 * (dq_sq_admit); from here on the ledger has it, and what is needed to post it
 * again is remembered (daqiri_replay.h).
 *
 * Inline, so that each kind of message gets a post without what it does not
 * use: this is most of what a short send costs.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_TX_H
#define UCT_DAQIRI_TX_H

#include "conn/daqiri_batch.h"
#include "conn/daqiri_qp.h"
#include "conn/daqiri_replay.h"

/* The device refused what the ledger let through: full queues are none of its
 * reasons, if the ledger is right. */
void uct_daqiri_tx_count_refused(uct_daqiri_iface_t *iface, int error);
/* The device refused what the ledger let through. Non-zero: it is kept, for
 * a later try or the next QP, and to its user it is posted. */
int uct_daqiri_tx_is_kept(uct_daqiri_conn_t *conn,
                          const struct ibv_send_wr *wr, int error);
/* The device refused this request, and has been given none after it: they
 * stay in the ledger, to be offered again; or the QP is given up. Only the first
 * call counts. */
void uct_daqiri_tx_on_refused(uct_daqiri_conn_t *conn, uint32_t id, int error);
/* The device has none of the conn's requests from this one on. */
void uct_daqiri_tx_set_send_end(uct_daqiri_conn_t *conn, uint32_t id);
/* At first, and after a change of qp.is_used, qp.has_send_end or iface->tx.batch. */
void uct_daqiri_tx_set_direct(uct_daqiri_conn_t *conn);
/* The device refused what the ledger let through. Gives the send buffer back,
 * if there is one, and the QP up. */
ucs_status_t uct_daqiri_tx_refused(uct_daqiri_conn_t *conn,
                                   dq_wr_class_t wr_class, uint32_t desc,
                                   int error);
/* Where a request goes that does not go to the device at once: 0, or errno. */
int uct_daqiri_tx_post_later(uct_daqiri_conn_t *conn, struct ibv_send_wr *wr,
                             uct_daqiri_ep_t *ep, uint32_t desc);
/* An empty RDMA WRITE, signalled: over when all before it is over. */
ucs_status_t uct_daqiri_tx_post_probe(uct_daqiri_conn_t *conn,
                                      uct_daqiri_ep_t *ep,
                                      uct_completion_t *comp);
unsigned uct_daqiri_tx_poll(uct_daqiri_iface_t *iface);
/* What a completion tells of @a conn, or NULL, whatever it is: one or many over, an
 * error, nothing that is known. */
void uct_daqiri_tx_on_wc(uct_daqiri_iface_t *iface, uct_daqiri_conn_t *conn,
                         const struct ibv_wc *wc);

/* Is there a point in looking at the CQ? Whatever is signalled will complete;
 * without it, what is in use can only fail, and that may wait a little. */
static inline int uct_daqiri_tx_is_due(const uct_daqiri_iface_t *iface)
{
    return (iface->tx.ledger.signals > 0) ||
           (iface->progress_epoch % UCT_DAQIRI_TX_POLL_EVERY == 0);
}

/* More send buffers: 0 if there can be none, which is counted. */
int uct_daqiri_tx_grow(uct_daqiri_iface_t *iface);
/* What is known of a conn that fails for this cause. */
void uct_daqiri_tx_facts(const uct_daqiri_conn_t *conn, dq_cause_t cause,
                         dq_facts_t *facts);
/* The request that was just posted is one that no user misses if it fails. */
void uct_daqiri_tx_note_internal(uct_daqiri_conn_t *conn);
/* A user wants to know of all that is posted so far, by whomever, if it fails. */
void uct_daqiri_tx_note_awaited(uct_daqiri_conn_t *conn);
/* Asks, now and then, whether a peer that grants no credit is there at all. */
void uct_daqiri_tx_probe_peer(uct_daqiri_conn_t *conn);
/* Nothing more will be posted: makes the end of the ledger show in the CQ. */
void uct_daqiri_tx_post_marker(uct_daqiri_conn_t *conn);
/* The same once more, if the device would not take what speaks for it. */
void uct_daqiri_tx_post_marker_at_end(uct_daqiri_conn_t *conn);
/* Everything before this id is over, successfully. */
void uct_daqiri_tx_retire_to(uct_daqiri_conn_t *conn, uint32_t id);
/* Whatever is still in the ledger is over, with the conn's status. */
void uct_daqiri_tx_purge(uct_daqiri_conn_t *conn);
/* This request, which is in use, must not be posted again. */
void uct_daqiri_tx_bar_replay(uct_daqiri_conn_t *conn, uint32_t id);
/* Nobody is told any more what was posted through ep; the NIC goes on. */
void uct_daqiri_tx_cancel(uct_daqiri_ep_t *ep);
/* The endpoint goes, and its user may free what it has sent from: waits,
 * within a bound, until the NIC does not need it; else gives up the QP. */
void uct_daqiri_tx_detach(uct_daqiri_ep_t *ep);

/*
 * A send buffer, if there is one. Silent tails hold buffers until something behind
 * them completes. From half of the limit on every request is signalled, so tails
 * never hold more than half, and the pool never waits for ever: the rule of the
 * CQ, once more. *is_scarce_p asks for that signal.
 */
static UCS_F_ALWAYS_INLINE int
uct_daqiri_tx_take_desc(uct_daqiri_iface_t *iface, uint32_t *desc_p,
                        int *is_scarce_p)
{
    uct_daqiri_pool_t *pool = &iface->tx.pool;

    if (ucs_unlikely(pool->free_count == 0) && !uct_daqiri_tx_grow(iface)) {
        return 0;
    }
    *is_scarce_p = (pool->count - pool->free_count) * 2 >= pool->limit;
    *desc_p      = pool->free_stack[--pool->free_count];
    return 1;
}


/* READs are executed in their order, fence or not (IBA 10.8.3.3): what has to wait
 * for those before the fence is the next request of another kind. rxe would even
 * wait for ever: a READ that it asks for once more waits for itself. */
static UCS_F_ALWAYS_INLINE uint32_t
uct_daqiri_tx_take_fence(uct_daqiri_conn_t *conn, enum ibv_wr_opcode opcode)
{
    uint32_t flags = 0;

    if (opcode != IBV_WR_RDMA_READ) {
        flags            = conn->next_flags;
        conn->next_flags = 0;
    }
    return flags;
}


/* Goes out now, by itself: not held back, not behind send_end, not in a batch. */
static UCS_F_ALWAYS_INLINE int uct_daqiri_tx_may_post_direct(uct_daqiri_conn_t *conn)
{
    if (ucs_unlikely(conn->last_post_epoch >= *conn->direct_epoch)) {
        return 0;
    }
    conn->last_post_epoch = conn->iface->progress_epoch;
    return 1;
}


/* From here on the ledger has it, and it is remembered. */
static UCS_F_ALWAYS_INLINE void
uct_daqiri_tx_account(uct_daqiri_conn_t *conn, const uct_daqiri_tx_t *tx,
                      unsigned flags, struct ibv_send_wr *wr,
                      dq_ticket_t ticket)
{
    dq_sq_debit(&conn->sq, &conn->iface->tx.ledger, tx->wr_class, ticket);
    if (!tx->is_placed && ucs_likely(conn->replay.slots != NULL)) {
        uct_daqiri_replay_note(conn, tx, flags, wr);
    }
}


/* Posts one admitted work request. On an error nothing of it is owned by the
 * NIC, its send buffer is free, and the conn is on its way to death. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_daqiri_tx_post(uct_daqiri_conn_t *conn, const uct_daqiri_tx_t *tx,
                   struct ibv_sge *sge, int num_sge)
{
    struct ibv_send_wr wr; /* only what the opcode reads is filled in */
    uint32_t send_end;
    dq_ticket_t ticket;
    unsigned flags;
    int ret;

    ticket = dq_sq_ticket(&conn->sq, &conn->iface->tx.ledger, tx->signal);
    flags  = tx->flags | uct_daqiri_tx_take_fence(conn, tx->opcode);

    wr.wr_id      = ticket.id;
    wr.next       = NULL;
    wr.sg_list    = sge;
    wr.num_sge    = num_sge;
    wr.opcode     = tx->opcode;
    wr.send_flags = flags | (ticket.signal ? IBV_SEND_SIGNALED : 0);
    if ((tx->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) ||
        (tx->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)) {
        wr.wr.atomic.remote_addr = tx->remote_addr;
        wr.wr.atomic.rkey        = tx->rkey;
        wr.wr.atomic.compare_add = tx->operand;
        wr.wr.atomic.swap        = tx->swap;
    } else if (tx->wr_class == DQ_WR_RMA) {
        wr.wr.rdma.remote_addr = tx->remote_addr;
        wr.wr.rdma.rkey        = tx->rkey;
    } else {
        wr.imm_data = htonl(tx->imm);
    }

    if (tx->replay != NULL) {
        uct_daqiri_replay_note_kind(conn, tx->replay, tx, flags, num_sge);
    }
    if (ucs_likely(uct_daqiri_tx_may_post_direct(conn))) {
        ret = uct_daqiri_qp_post(conn->qp.verbs, &wr, &send_end);
        /* after the doorbell, so that the peer need not wait for it */
        uct_daqiri_tx_account(conn, tx, flags, &wr, ticket);
    } else {
        uct_daqiri_tx_account(conn, tx, flags, &wr, ticket);
        ret = uct_daqiri_tx_post_later(conn, &wr, tx->op.ep, tx->op.desc);
    }
    if (ucs_unlikely(ret != 0) && !uct_daqiri_tx_is_kept(conn, &wr, ret)) {
        return uct_daqiri_tx_refused(conn, tx->wr_class, tx->op.desc, ret);
    }
    if ((tx->op.desc != UCT_DAQIRI_NO_DESC) || (tx->op.comp != NULL)) {
        conn->ops[ticket.id & conn->sq.mask] = tx->op;
        conn->op_count++;
    }
    return UCS_OK;
}


/* Does the next message go out now, by itself, inline from where it is remembered,
 * with no signal and no fence? */
static UCS_F_ALWAYS_INLINE int
uct_daqiri_tx_is_plain(const uct_daqiri_conn_t *conn,
                       const uct_daqiri_iface_t *iface)
{
    return (conn->last_post_epoch < *conn->direct_epoch) &&
           dq_sq_is_plain(&conn->sq, &iface->tx.ledger) &&
           (conn->next_flags == 0) && (conn->replay.slots != NULL);
}


/* Then this is all that posting it takes; see uct_daqiri_replay_note_plain(). */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_daqiri_tx_post_plain(uct_daqiri_conn_t *conn, uct_daqiri_iface_t *iface,
                         uct_daqiri_replay_t *replay)
{
    struct ibv_send_wr wr; /* as far as a SEND is read */
    uint32_t send_end;
    int ret;

    wr.wr_id              = conn->sq.posted;
    wr.next               = NULL;
    wr.sg_list            = replay->sge;
    wr.num_sge            = 1;
    wr.opcode             = IBV_WR_SEND;
    wr.send_flags         = IBV_SEND_INLINE;
    conn->last_post_epoch = iface->progress_epoch;
    ret                   = uct_daqiri_qp_post(conn->qp.verbs, &wr, &send_end);

    dq_sq_debit(&conn->sq, &iface->tx.ledger, DQ_WR_MSG,
                (dq_ticket_t){.id = conn->sq.posted});
    if (ucs_unlikely(ret != 0) && !uct_daqiri_tx_is_kept(conn, &wr, ret)) {
        return uct_daqiri_tx_refused(conn, DQ_WR_MSG, UCT_DAQIRI_NO_DESC, ret);
    }
    return UCS_OK;
}

#endif
