/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting on the RC QPs. A request goes to the device by itself, in a batch, or into the
 * preconnect queue while the conn is not up. The caller has asked before whether it may
 * post (dq_sq_admit). Posting enters the request in the ledger and in the replay log
 * (daqiri_replay.h).
 *
 * Inline, so that each kind of message gets a post without the branches of others. This
 * is most of the cost of a short send.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_TX_H
#define UCT_DAQIRI_TX_H

#include "conn/daqiri_batch.h"
#include "conn/daqiri_qp.h"
#include "conn/daqiri_replay.h"
#include "conn/daqiri_slots.h"

/* Bytes in front of the payload of a short message: the wire's header and UCT's. */
enum { UCT_DAQIRI_SHORT_HDR = sizeof(dq_msg_hdr_t) + sizeof(uint64_t) };

/* Counts a refusal. The ledger has let the request through, so a full queue is no reason,
 * if the ledger is right. */
void uct_daqiri_tx_count_refused(uct_daqiri_iface_t *iface, int error);
/* The device refused a request that the ledger let through. Non-zero: it is kept for a
 * retry or for the next QP, and to its user it is posted. */
int uct_daqiri_tx_is_kept(uct_daqiri_conn_t *conn,
                          const struct ibv_send_wr *wr, int error);
/* The device refused the request @a id, and has none after it. They stay in the ledger,
 * to be posted again, or the QP is given up. Later calls for the same QP do nothing. */
void uct_daqiri_tx_on_refused(uct_daqiri_conn_t *conn, uint32_t id, int error);
/* The device has no request of the conn from @a id on. */
void uct_daqiri_tx_set_send_end(uct_daqiri_conn_t *conn, uint32_t id);
/* Sets conn->batch.direct_epoch, and returns the tokens. Call after a change of
 * qp.is_used, qp.has_send_end or iface->tx.batch. */
void uct_daqiri_tx_set_direct(uct_daqiri_conn_t *conn);
/* Takes tokens for the next short messages (dq_sq.h). A message with a token is posted
 * now and by itself, inline from the replay log, without credits or a fence. Returns how
 * many there are: zero if the next message is not such a one. */
uint32_t uct_daqiri_tx_take_tokens(uct_daqiri_conn_t *conn);
/* The device refused a request that cannot be kept. Frees the send buffer, if there is
 * one, and fails the conn. Returns the conn's status. */
ucs_status_t uct_daqiri_tx_refused(uct_daqiri_conn_t *conn,
                                   dq_wr_class_t wr_class, uint32_t desc,
                                   int error);
/* Takes a request that is not posted directly. Returns 0, or errno if the device refused
 * it. */
int uct_daqiri_tx_post_later(uct_daqiri_conn_t *conn, struct ibv_send_wr *wr,
                             uct_daqiri_ep_t *ep, uint32_t desc);
/* Posts an empty, signalled RDMA WRITE. It completes after all requests before it. @a
 * comp may be NULL. The status is that of uct_daqiri_tx_post(). */
ucs_status_t uct_daqiri_tx_post_probe(uct_daqiri_conn_t *conn,
                                      uct_daqiri_ep_t *ep,
                                      uct_completion_t *comp);
/* Takes one batch of send completions at most. Returns how many. */
unsigned uct_daqiri_tx_poll(uct_daqiri_iface_t *iface);
/* Handles any send completion, error or success, of one request or many. @a conn is NULL
 * if the QP is unknown; the completion is then counted as stray. */
void uct_daqiri_tx_on_wc(uct_daqiri_iface_t *iface, uct_daqiri_conn_t *conn,
                         const struct ibv_wc *wc);

/* Whether the send CQ is worth a poll. A signalled request will complete. Without one,
 * requests can only fail, and a poll now and then finds that. */
static inline int uct_daqiri_tx_is_due(const uct_daqiri_iface_t *iface)
{
    return (iface->tx.ledger.signals > 0) ||
           (iface->progress_epoch % UCT_DAQIRI_TX_POLL_EVERY == 0);
}

/* Gives the conn more slots (daqiri_slots.h). */
void uct_daqiri_tx_add_slots(uct_daqiri_conn_t *conn);
/* Makes more send buffers. Returns 0, and counts that, if none can be made. */
int uct_daqiri_tx_grow(uct_daqiri_iface_t *iface);
/* Fills *facts with what is known of a conn that fails for this cause. */
void uct_daqiri_tx_facts(const uct_daqiri_conn_t *conn, dq_cause_t cause,
                         dq_facts_t *facts);
/* The request posted last is our own: no user misses it if it fails. */
void uct_daqiri_tx_note_internal(uct_daqiri_conn_t *conn);
/* A user waits for all requests posted so far. So their failure must be reported. */
void uct_daqiri_tx_note_awaited(uct_daqiri_conn_t *conn);
/* A user asks whether the peer lives. Posts a probe, unless a request that is under way
 * will tell. @a ep may be NULL. UCS_ERR_NO_RESOURCE if there is no room: *admit_p says
 * whether the gate refuses. */
ucs_status_t uct_daqiri_tx_ask_peer(uct_daqiri_conn_t *conn, uct_daqiri_ep_t *ep,
                                    dq_admit_t *admit_p);
/* Probes a peer that grants no credit, at intervals: it may be dead. */
void uct_daqiri_tx_probe_peer(uct_daqiri_conn_t *conn);
/* The same for a conn that is CLOSING, whose gate admits no probe. */
void uct_daqiri_tx_probe_shut(uct_daqiri_conn_t *conn);
/* Nothing more will be posted. Posts a signalled request, so that the CQ shows the end of
 * the ledger. */
void uct_daqiri_tx_post_marker(uct_daqiri_conn_t *conn);
/* The same behind the last request that the device has, if it refused later ones. */
void uct_daqiri_tx_post_marker_at_end(uct_daqiri_conn_t *conn);
/* All requests before this id have succeeded. */
void uct_daqiri_tx_retire_to(uct_daqiri_conn_t *conn, uint32_t id);
/* All requests still in the ledger are over, with the conn's status. */
void uct_daqiri_tx_purge(uct_daqiri_conn_t *conn);
/* This request, which is in use, must not be posted again. */
void uct_daqiri_tx_bar_replay(uct_daqiri_conn_t *conn, uint32_t id);
/* Completes with UCS_ERR_CANCELED what was posted through @a ep. The NIC goes on. */
void uct_daqiri_tx_cancel(uct_daqiri_ep_t *ep);
/* The endpoint goes, and its user may free the memory that it sends from. Waits until the
 * NIC no longer needs it, up to a bound. After that, gives up the QP. */
void uct_daqiri_tx_detach(uct_daqiri_ep_t *ep);

/*
 * Takes a send buffer, if there is one. Unsignalled requests hold their buffers until a
 * later one completes. If half of the limit is in use, *is_scarce_p asks for a signal on
 * this request. So unsignalled requests never hold more than half, and the pool never
 * waits for ever. The CQ has the same rule.
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


/* Takes the fence for this request. A READ takes none: READs execute in order, with a
 * fence or without (IBA 10.8.3.3). So the fence waits for the next request of another
 * kind. On rxe a fenced READ could wait for ever: one that rxe requests again waits for
 * itself. */
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


/* Whether the request is posted now and by itself, so it waits neither in a queue nor
 * behind send_end. If so, notes the post. */
static UCS_F_ALWAYS_INLINE int uct_daqiri_tx_may_post_direct(uct_daqiri_conn_t *conn)
{
    if (ucs_unlikely(conn->batch.last_post_epoch >= *conn->batch.direct_epoch)) {
        return 0;
    }
    conn->batch.last_post_epoch = conn->iface->progress_epoch;
    return 1;
}


/* Enters the request in the ledger and in the replay log. */
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


/* Posts one admitted request. After an error the NIC owns nothing of it, its send buffer
 * is free, and the conn has failed. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_daqiri_tx_post(uct_daqiri_conn_t *conn, const uct_daqiri_tx_t *tx,
                   struct ibv_sge *sge, int num_sge)
{
    struct ibv_send_wr wr; /* only fields that the opcode uses are set */
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
        conn->ops.slot[ticket.id & conn->sq.mask] = tx->op;
        conn->ops.count++;
    }
    if (ucs_unlikely(ticket.signal) && ucs_unlikely(uct_daqiri_slots_are_few(conn))) {
        uct_daqiri_tx_add_slots(conn);
    }
    return UCS_OK;
}


/* Posts a message with a token. @a replay is its place in the log, filled in. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_daqiri_tx_post_short(uct_daqiri_conn_t *conn, uct_daqiri_replay_t *replay)
{
    struct ibv_send_wr wr; /* only fields that a SEND uses are set */
    uint32_t send_end;
    int ret;

    wr.wr_id      = conn->sq.posted;
    wr.next       = NULL;
    wr.sg_list    = replay->sge;
    wr.num_sge    = 1;
    wr.opcode     = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_INLINE;
    ret           = uct_daqiri_qp_post(conn->qp.verbs, &wr, &send_end);

    (void)dq_sq_use_token(&conn->sq, &conn->iface->tx.ledger);
    if (ucs_unlikely(ret != 0) && !uct_daqiri_tx_is_kept(conn, &wr, ret)) {
        return uct_daqiri_tx_refused(conn, DQ_WR_MSG, UCT_DAQIRI_NO_DESC, ret);
    }
    return UCS_OK;
}

#endif
