/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send line: refusals, retirement, probes, cancellation. (The post is in daqiri_tx.h,
 * and the fast path of completions in daqiri_done.h.) The ledger tells which requests the
 * NIC owns.
 */
#include "conn/daqiri_tx.h"

#include "base/daqiri_pool.h"
#include "conn/daqiri_batch.h"
#include "conn/daqiri_budget.h"
#include "conn/daqiri_conn.h"
#include "conn/daqiri_done.h"
#include "conn/daqiri_op.h"
#include "conn/daqiri_preconnect.h"
#include "conn/daqiri_qp.h"
#include "conn/daqiri_recover.h"
#include "conn/daqiri_replay.h"
#include "conn/daqiri_retry.h"
#include "dq/dq_time.h"
#include "iface/daqiri_iface.h"

/* How long an endpoint that goes waits for the NIC, before and after its QP is given up.
 * Flow control by credits makes completions independent of the peer's software. */
enum { UCT_DAQIRI_DETACH_MS = 200 };

/* Milliseconds between two probes of a peer that grants no credit. */
enum { UCT_DAQIRI_PROBE_MS = 100 };

void uct_daqiri_tx_facts(const uct_daqiri_conn_t *conn, dq_cause_t cause,
                         dq_facts_t *facts)
{
    const uct_daqiri_iface_t *iface = conn->iface;
    const dq_frame_t *peer          = &conn->peer.mail.news.peer;

    *facts = (dq_facts_t){
        .cause          = cause,
        .subject        = UCT_DAQIRI_NAME,
        .qpn            = uct_daqiri_qp_num(&conn->qp),
        .peer_qpn       = peer->qpn,
        .peer_host      = (peer->host[0] != '\0') ? peer->host : NULL, /* no answer yet */
        .peer_pid       = peer->pid,
        .outstanding    = dq_sq_in_use(&conn->sq),
        .depth          = conn->slots.most,
        .ack_timeout_ms = dq_ack_timeout_seconds(iface->config.ack_timeout) *
                          1e3,
        .rnr_timer_ms   = dq_rnr_timer_seconds(iface->config.rnr_timer) * 1e3,
        .retry_cnt      = iface->config.retry_count,
        .port           = iface->config.port_name,
        .gid            = iface->config.gid_text,
        .peer_gid       = conn->peer.gid_text,
    };
}


void uct_daqiri_tx_set_direct(uct_daqiri_conn_t *conn)
{
    static const uint64_t never = 0, always = UINT64_MAX;

    dq_sq_return_tokens(&conn->sq, &conn->iface->tx.ledger);
    if (!conn->qp.is_used || conn->qp.has_send_end) {
        conn->batch.direct_epoch = &never;
    } else {
        conn->batch.direct_epoch = (conn->iface->tx.batch != NULL)
                              ? &conn->iface->tx.batch->direct_epoch : &always;
    }
}


/* With a batch, the first message of an epoch is posted directly, and no other one. */
uint32_t uct_daqiri_tx_take_tokens(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;
    uint32_t most             = (iface->tx.batch != NULL) ? 1 : UINT32_MAX;
    uint32_t tokens;

    if ((conn->batch.last_post_epoch >= *conn->batch.direct_epoch) ||
        (conn->next_flags != 0) || (conn->replay.slots == NULL) ||
        (iface->config.max_inline_am < UCT_DAQIRI_SHORT_HDR) ||
        dq_rx_may_piggyback(&conn->window) ||
        !ucs_queue_is_empty(&conn->pending.queue)) {
        return 0;
    }
    tokens = dq_sq_take_tokens(&conn->sq, &iface->tx.ledger, most);
    if (tokens > 0) {
        conn->batch.last_post_epoch = iface->progress_epoch;
    }
    return tokens;
}


void uct_daqiri_tx_set_send_end(uct_daqiri_conn_t *conn, uint32_t id)
{
    conn->qp.has_send_end = 1;
    conn->qp.send_end     = id;
    uct_daqiri_tx_set_direct(conn);
}


int uct_daqiri_tx_grow(uct_daqiri_iface_t *iface)
{
    uct_daqiri_pool_t *pool = &iface->tx.pool;
    uint32_t count, first, i;

    count = ucs_min(pool->limit - pool->count,
                    (uint32_t)UCT_DAQIRI_POLL_MAX);
    if ((count == 0) || (uct_daqiri_pool_grow(pool, count, &first) != UCS_OK)) {
        iface->count->refused_no_buffer++;
        return 0;
    }
    for (i = 0; i < count; i++) {
        uct_daqiri_pool_put(pool, first + i);
    }
    return 1;
}


void uct_daqiri_tx_count_refused(uct_daqiri_iface_t *iface, int error)
{
    iface->count->posts_refused++;
    iface->count->posts_enomem += error == ENOMEM;
}


int uct_daqiri_tx_is_kept(uct_daqiri_conn_t *conn,
                          const struct ibv_send_wr *wr, int error)
{
    if ((conn->replay.slots == NULL) || dq_life_is_over(conn->state)) {
        return 0;
    }
    uct_daqiri_replay_note_rest(conn, wr);
    uct_daqiri_tx_on_refused(conn, conn->sq.posted - 1, error);
    return 1;
}


void uct_daqiri_tx_on_refused(uct_daqiri_conn_t *conn, uint32_t id, int error)
{
    dq_facts_t facts;

    uct_daqiri_tx_count_refused(conn->iface, error);
    if (uct_daqiri_retry_keep(conn, id, error)) {
        return;
    }
    if (!conn->qp.has_send_end) {
        uct_daqiri_tx_set_send_end(conn, id);
    }
    uct_daqiri_tx_facts(conn, DQ_CAUSE_POST, &facts);
    facts.error = error;
    uct_daqiri_recover(conn, &facts);
}


/* The state of the QP is not what the ledger says, so the QP is given up. The process
 * goes on: an answer of a device is no reason to abort. */
ucs_status_t uct_daqiri_tx_refused(uct_daqiri_conn_t *conn,
                                   dq_wr_class_t wr_class, uint32_t desc,
                                   int error)
{
    dq_facts_t facts;

    if (desc != UCT_DAQIRI_NO_DESC) {
        uct_daqiri_pool_put(&conn->iface->tx.pool, desc);
    }

    dq_sq_unpost(&conn->sq, &conn->iface->tx.ledger, 1,
                 wr_class != DQ_WR_RMA);
    uct_daqiri_tx_count_refused(conn->iface, error);
    uct_daqiri_tx_facts(conn, DQ_CAUSE_POST, &facts);
    facts.error = error;
    uct_daqiri_conn_fail(conn, &facts);
    return uct_daqiri_conn_status(conn);
}


void uct_daqiri_tx_add_slots(uct_daqiri_conn_t *conn)
{
    dq_replay_log_t log;

    if (uct_daqiri_slots_grow(conn, &log)) {
        uct_daqiri_batch_swap_log(conn, &log);
        uct_daqiri_slots_free_log(&log);
    }
}


int uct_daqiri_tx_post_later(uct_daqiri_conn_t *conn, struct ibv_send_wr *wr,
                             uct_daqiri_ep_t *ep, uint32_t desc)
{
    uint32_t send_end;

    if ((conn->replay.slots != NULL) && (wr->opcode != IBV_WR_SEND)) {
        /* of a plain SEND everything is noted already */
        uct_daqiri_replay_note_rest(conn, wr);
    }
    if (conn->qp.has_send_end) {
        return 0; /* it stays behind the refused one */
    }
    if (conn->preconnect.queue != NULL) {
        return uct_daqiri_preconnect_add(conn, wr, ep, desc);
    }
    return (conn->iface->tx.batch != NULL)
                   ? uct_daqiri_batch_post(conn, wr)
                   : uct_daqiri_qp_post(conn->qp.verbs, wr, &send_end); /* at close */
}


ucs_status_t uct_daqiri_tx_post_probe(uct_daqiri_conn_t *conn,
                                      uct_daqiri_ep_t *ep,
                                      uct_completion_t *comp)
{
    const uct_daqiri_tx_t tx = {
        .wr_class = DQ_WR_RMA,
        .opcode   = IBV_WR_RDMA_WRITE,
        .signal   = 1,
        .op       = {.comp     = comp,
                     .ep       = ep,
                     .desc     = UCT_DAQIRI_NO_DESC,
                     .is_flush = 1},
    };

    ucs_status_t status;

    conn->watchdog.probes += (ep == NULL);
    status             = uct_daqiri_tx_post(conn, &tx, NULL, 0);
    if (status == UCS_OK) {
        uct_daqiri_tx_note_internal(conn);
    }
    return status;
}


void uct_daqiri_tx_note_internal(uct_daqiri_conn_t *conn)
{
    uint32_t id = conn->sq.posted - 1;

    if (conn->internal.to != id) {
        conn->internal.from = id;
    }
    conn->internal.to = id + 1;
}


void uct_daqiri_tx_note_awaited(uct_daqiri_conn_t *conn)
{
    conn->internal.from = conn->internal.to;
}


/* Whether a request that is under way will tell if the peer's device is dead. */
static int uct_daqiri_tx_will_tell(const uct_daqiri_conn_t *conn)
{
    return (dq_sq_in_use(&conn->sq) > 0) && !dq_sq_tail_is_silent(&conn->sq);
}


ucs_status_t uct_daqiri_tx_ask_peer(uct_daqiri_conn_t *conn, uct_daqiri_ep_t *ep,
                                    dq_admit_t *admit_p)
{
    ucs_status_t status;

    *admit_p = DQ_ADMIT_OK;
    if (!uct_daqiri_tx_will_tell(conn)) {
        /* The probe overtakes requests that wait: a dead peer may owe them credits. */
        *admit_p = dq_sq_admit(&conn->sq, &conn->iface->tx.ledger, DQ_WR_RMA);
        status   = (*admit_p == DQ_ADMIT_OK)
                           ? uct_daqiri_tx_post_probe(conn, ep, NULL)
                           : UCS_ERR_NO_RESOURCE;
        if (status != UCS_OK) {
            return status;
        }
    }
    uct_daqiri_tx_note_awaited(conn);
    return UCS_OK;
}


/* The request with this id and all later ones have failed. Returns whether a user misses
 * any of them. */
static int uct_daqiri_tx_is_awaited(const uct_daqiri_conn_t *conn, uint32_t id)
{
    return (conn->internal.to != conn->sq.posted) ||
           (conn->sq.posted - id > conn->internal.to - conn->internal.from);
}


/* An empty RDMA WRITE, signalled, under this id. 0, or errno of the refusal. */
static int uct_daqiri_tx_try_marker(uct_daqiri_conn_t *conn, uint32_t id)
{
    uint32_t send_end;
    struct ibv_send_wr wr = {
        .wr_id      = id,
        .opcode     = IBV_WR_RDMA_WRITE,
        .send_flags = IBV_SEND_SIGNALED,
    };

    return uct_daqiri_qp_post(conn->qp.verbs, &wr, &send_end);
}


/* The NIC has requests up to send_end, and the ledger more. The marker bears the id of
 * the last request that the NIC has, because later ones must not seem complete. It uses
 * the CQ and SQ slots of the first request that the NIC has not. */
void uct_daqiri_tx_post_marker_at_end(uct_daqiri_conn_t *conn)
{
    if (!conn->qp.has_send_end || conn->qp.has_marker ||
        (conn->qp.send_end == conn->sq.retired)) {
        return;
    }
    conn->qp.has_marker = dq_sq_is_signalled(&conn->sq, conn->qp.send_end - 1) ||
                          (uct_daqiri_tx_try_marker(conn, conn->qp.send_end - 1) ==
                           0);
}


/* The marker's entry in the log: a replay posts an empty WRITE, as for requests barred
 * from replay. */
static void uct_daqiri_tx_enter_marker(uct_daqiri_conn_t *conn)
{
    dq_op_t *op;

    if (conn->replay.slots != NULL) {
        op       = dq_replay_slot(&conn->replay, conn->sq.posted);
        op->kind = DQ_OP_BLANK;
        op->seq  = conn->tx_seq;
    }
    dq_sq_mark(&conn->sq, &conn->iface->tx.ledger);
    conn->watchdog.probes++;
    uct_daqiri_tx_note_internal(conn);
}


/*
 * A healthy QP may have executed its unsignalled tail already. Then no flush reports the
 * tail. With a signalled request at the end, one completion or flush covers the tail, and
 * the drain need not wait for its time limit.
 */
void uct_daqiri_tx_post_marker(uct_daqiri_conn_t *conn)
{
    int ret;

    if (conn->qp.is_err || !conn->qp.is_used) {
        return;
    }
    if (conn->qp.has_send_end) {
        uct_daqiri_tx_post_marker_at_end(conn);
        return;
    }
    if (!dq_sq_tail_is_silent(&conn->sq) ||
        !dq_sq_has_room(&conn->sq, &conn->iface->tx.ledger)) {
        return;
    }
    ret = uct_daqiri_tx_try_marker(conn, conn->sq.posted);
    if (ret == 0) {
        uct_daqiri_tx_enter_marker(conn);
    } else {
        uct_daqiri_tx_count_refused(conn->iface, ret);
        uct_daqiri_tx_set_send_end(conn, conn->sq.posted); /* the drain tries again */
    }
}


void uct_daqiri_tx_probe_shut(uct_daqiri_conn_t *conn)
{
    if (conn->qp.has_send_end || !dq_sq_has_room(&conn->sq, &conn->iface->tx.ledger)) {
        return;
    }
    uct_daqiri_batch_flush(conn->iface); /* it must not overtake */
    if (uct_daqiri_tx_try_marker(conn, conn->sq.posted) == 0) {
        uct_daqiri_tx_enter_marker(conn);
    }
}


/* The status for the completion of a request that ended with @a status. If the peer left
 * in order and has received all requests, a flush has succeeded. */
static ucs_status_t uct_daqiri_tx_fate(const uct_daqiri_conn_t *conn,
                                       const uct_daqiri_op_t *op,
                                       ucs_status_t status)
{
    if ((status == UCS_OK) || (op->comp == NULL)) {
        return status;
    }
    if (op->is_flush && uct_daqiri_conn_peer_left(conn) && !conn->end.is_awaited) {
        return UCS_OK;
    }
    return status;
}


/* All requests up to @a id are over, oldest first. */
static UCS_F_NOINLINE void uct_daqiri_tx_retire(uct_daqiri_conn_t *conn,
                                                uint32_t id,
                                                ucs_status_t status)
{
    uct_daqiri_iface_t *iface = conn->iface;
    uint32_t next             = conn->sq.retired;
    uct_daqiri_op_t op;

    if (status != UCS_OK) {
        conn->end.is_awaited |= uct_daqiri_tx_is_awaited(conn, next);
    }
    while ((conn->ops.count > 0) && ((int32_t)(id - next) >= 0)) {
        op = uct_daqiri_done_take(conn, next);
        next++;
        if (op.comp != NULL) {
            (void)dq_sq_retire(&conn->sq, &iface->tx.ledger, next - 1);
        }
        uct_daqiri_done_pay(iface, op, uct_daqiri_tx_fate(conn, &op, status));
        if (op.comp != NULL) {
            next = conn->sq.retired; /* the completion may have polled */
        }
    }
    /* Retires nothing if a completion has retired @a id already. */
    (void)dq_sq_retire(&conn->sq, &iface->tx.ledger, id);
    DQ_ASSERT(dq_sq_check(&conn->sq, &iface->tx.ledger));
}


static int uct_daqiri_tx_is_owned(const uct_daqiri_conn_t *conn, uint32_t id)
{
    return (id - conn->sq.retired) < dq_sq_in_use(&conn->sq);
}


/* Whether this is the completion of a marker whose request had completed by itself. */
static int uct_daqiri_tx_is_marker_again(const uct_daqiri_conn_t *conn,
                                         const struct ibv_wc *wc)
{
    return conn->qp.has_marker && ((uint32_t)wc->wr_id == conn->qp.send_end - 1);
}


void uct_daqiri_tx_retire_to(uct_daqiri_conn_t *conn, uint32_t id)
{
    if (id != conn->sq.retired) {
        uct_daqiri_tx_retire(conn, id - 1, UCS_OK);
    }
}


/* A peer that has left acknowledges nothing. That is no error: who waits for the request
 * is told that the peer has left. Nobody may wait, and the peer's word of that may still
 * be on its way: then the recovery counts the error, if the peer is back. */
static void uct_daqiri_tx_count_error(uct_daqiri_conn_t *conn)
{
    if (ucs_list_is_empty(&conn->eps)) {
        conn->lost.untold_errors++;
    } else if (!uct_daqiri_conn_peer_left(conn)) {
        conn->iface->count->tx_errors++;
    }
}


/*
 * Only wr_id, status, qp_num and vendor_err of an error completion are valid. RC is
 * ordered, so requests before the first error succeeded. That one and later ones fail if
 * the connection failed; otherwise they wait for replay. So the order in which errors are
 * handled matters.
 */
static UCS_F_NOINLINE void
uct_daqiri_tx_on_error(uct_daqiri_conn_t *conn, const struct ibv_wc *wc)
{
    uct_daqiri_iface_t *iface = conn->iface;
    uint32_t id               = wc->wr_id;
    dq_cause_t cause          = (dq_cause_t)wc->status;
    dq_facts_t facts;
    int is_first;

    if (uct_daqiri_budget_is_spare(conn, id)) {
        cause = DQ_CAUSE_PEER_LOST; /* it has closed, or will be found dead */
    } else if (wc->status == IBV_WC_WR_FLUSH_ERR) {
        iface->count->tx_flushed++;
    } else {
        uct_daqiri_tx_count_error(conn);
    }

    if (conn->qp.state == DQ_QP_NONE) {
        /* The async thread has posted the preconnect queue, and it failed before progress
         * knew of its QP. */
        uct_daqiri_conn_absorb(iface);
    }
    uct_daqiri_tx_facts(conn, cause, &facts);
    facts.vendor_err = wc->vendor_err;
    uct_daqiri_recover(conn, &facts);
    conn->qp.is_err = 1; /* a QP that fails a request is in ERR */

    is_first             = !conn->qp.has_flushed;
    conn->qp.has_flushed = 1;
    conn->qp.flushed     = id + 1;
    if (is_first) {
        uct_daqiri_tx_retire_to(conn, id); /* may poll, and find the next error */
    }
    if (dq_life_is_over(conn->state)) {
        uct_daqiri_tx_retire(conn, id, uct_daqiri_conn_status(conn));
    }
}


void uct_daqiri_tx_on_wc(uct_daqiri_iface_t *iface, uct_daqiri_conn_t *conn,
                         const struct ibv_wc *wc)
{
    if (ucs_unlikely((conn == NULL) ||
                     !uct_daqiri_tx_is_owned(conn, wc->wr_id))) {
        iface->count->stray_completions += (conn == NULL) ||
                                           !uct_daqiri_tx_is_marker_again(conn, wc);
        return;
    }
    if (ucs_unlikely(wc->status != IBV_WC_SUCCESS)) {
        uct_daqiri_tx_on_error(conn, wc);
        return;
    }
    uct_daqiri_tx_retire(conn, wc->wr_id, UCS_OK);
}


/*
 * A peer that grants no credit may have died with all our messages received. Nothing is
 * in flight that could fail, so nobody would notice. A request that needs no credit makes
 * our NIC ask the peer's.
 */
void uct_daqiri_tx_probe_peer(uct_daqiri_conn_t *conn)
{
    ucs_time_t now = ucs_get_time();

    if ((now < conn->probe_at) || uct_daqiri_tx_will_tell(conn) ||
        (dq_sq_admit(&conn->sq, &conn->iface->tx.ledger, DQ_WR_RMA) !=
         DQ_ADMIT_OK)) {
        return;
    }
    conn->probe_at = now + ucs_time_from_msec(UCT_DAQIRI_PROBE_MS);
    (void)uct_daqiri_tx_post_probe(conn, NULL, NULL);
}


unsigned uct_daqiri_tx_poll(uct_daqiri_iface_t *iface)
{
    struct ibv_wc wc[UCT_DAQIRI_POLL_MAX];

    return uct_daqiri_done_poll(iface, wc);
}


void uct_daqiri_tx_purge(uct_daqiri_conn_t *conn)
{
    if (dq_sq_in_use(&conn->sq) > 0) {
        uct_daqiri_tx_retire(conn, conn->sq.posted - 1,
                             uct_daqiri_conn_status(conn));
    }
}


/* The first ledger slot, from *id_p on, whose completion came through @a ep; or NULL. */
static uct_daqiri_op_t *uct_daqiri_tx_awaited(uct_daqiri_ep_t *ep,
                                              uint32_t *id_p)
{
    uct_daqiri_conn_t *conn = ep->conn;
    uct_daqiri_op_t *op;

    if (conn->ops.count == 0) {
        return NULL;
    }
    for (; *id_p != conn->sq.posted; (*id_p)++) {
        op = &conn->ops.slot[*id_p & conn->sq.mask];
        if ((op->comp != NULL) && (op->ep == ep)) {
            return op;
        }
    }
    return NULL;
}


/* Polls until no completion of @a ep is left. Returns zero if time was too short. */
static int uct_daqiri_tx_wait(uct_daqiri_ep_t *ep)
{
    ucs_time_t until = ucs_get_time() +
                       ucs_time_from_msec(UCT_DAQIRI_DETACH_MS);
    uint32_t id      = ep->conn->sq.retired;

    uct_daqiri_batch_flush(ep->conn->iface);
    while (uct_daqiri_tx_awaited(ep, &id) != NULL) {
        if (ucs_get_time() >= until) {
            return 0;
        }
        uct_daqiri_tx_poll(ep->conn->iface);
        (void)uct_daqiri_retry_all(ep->conn->iface);
        id = ep->conn->sq.retired;
    }
    return 1;
}


void uct_daqiri_tx_detach(uct_daqiri_ep_t *ep)
{
    uct_daqiri_conn_t *conn = ep->conn;
    dq_facts_t facts;

    if (uct_daqiri_preconnect_detach(ep)) {
        uct_daqiri_tx_cancel(ep); /* the NIC has none of its requests yet */
        return;
    }
    if (uct_daqiri_tx_wait(ep)) {
        return;
    }
    if (!dq_life_is_over(conn->state)) {
        uct_daqiri_tx_facts(conn, DQ_CAUSE_LEFT, &facts);
        uct_daqiri_conn_fail(conn, &facts);
    }
    uct_daqiri_conn_to_err(conn);
    (void)uct_daqiri_tx_wait(ep);
    uct_daqiri_tx_cancel(ep);
}


/* The request's memory belongs to its user again, so it must not be posted again. A
 * message cannot be replaced by an empty WRITE, because the peer counts messages: then
 * the conn cannot be replayed at all. */
void uct_daqiri_tx_bar_replay(uct_daqiri_conn_t *conn, uint32_t id)
{
    dq_op_t *op;

    if (conn->replay.slots == NULL) {
        return;
    }
    op = dq_replay_slot(&conn->replay, id);
    if (op->kind == DQ_OP_MSG) {
        conn->is_replay_barred = 1;
    } else {
        op->kind = DQ_OP_BLANK;
    }
}


void uct_daqiri_tx_cancel(uct_daqiri_ep_t *ep)
{
    uct_daqiri_conn_t *conn = ep->conn;
    uint32_t id             = conn->sq.retired;
    uct_completion_t *comp;
    uct_daqiri_op_t *op;

    while ((op = uct_daqiri_tx_awaited(ep, &id)) != NULL) {
        comp            = op->comp;
        op->comp        = NULL;
        uct_daqiri_tx_bar_replay(conn, id);
        conn->ops.count -= op->desc == UCT_DAQIRI_NO_DESC;
        uct_invoke_completion(comp, UCS_ERR_CANCELED);
    }
}
