/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One progress call: receive, complete, and the work that follows from both. The receive
 * line is in daqiri_rx.h, and the send line in daqiri_tx.c.
 *
 * The fast path of a message or a completion is inlined into the call: a program in a
 * ping-pong waits for all of it (docs/bench.md).
 */
#include "base/daqiri_mail.h"
#include "conn/daqiri_batch.h"
#include "conn/daqiri_conn.h"
#include "conn/daqiri_done.h"
#include "conn/daqiri_idle.h"
#include "conn/daqiri_recover.h"
#include "conn/daqiri_retry.h"
#include "conn/daqiri_rx.h"
#include "conn/daqiri_tx.h"
#include "ep/daqiri_pending.h"
#include "iface/daqiri_iface.h"
#include "iface/daqiri_watchdog.h"


/* ---- Messages ---- */

static UCS_F_NOINLINE void
uct_daqiri_progress_on_error(uct_daqiri_iface_t *iface, const struct ibv_wc *wc)
{
    uct_daqiri_conn_t *conn = uct_daqiri_iface_conn(iface, wc->qp_num);
    const dq_facts_t facts  = {
        .cause      = (dq_cause_t)wc->status,
        .subject    = UCT_DAQIRI_NAME ", receiving",
        .qpn        = wc->qp_num,
        .vendor_err = wc->vendor_err,
    };

    uct_daqiri_recv_release(iface, wc->wr_id);
    if (wc->status == IBV_WC_WR_FLUSH_ERR) {
        iface->count->rx_flushed++;
        return;
    }
    if (conn != NULL) {
        uct_daqiri_recover(conn, &facts);
    }
}


/* Replaces uct_iface_invoke_am(), and saves 20 instructions of each message. UCX's
 * function asserts that the id exists, which the parser of the header has checked. It
 * also keeps across the call the values of a message about wrong answers of the
 * handler. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_daqiri_progress_invoke(uct_daqiri_iface_t *iface, uint8_t am_id, void *data,
                           size_t length, unsigned flags)
{
    const uct_am_handler_t *handler = &iface->super.am[am_id];

    DQ_ASSERT(am_id < UCT_AM_ID_MAX);
    return handler->cb(handler->arg, data, length, flags);
}


/* The upcall. The handler may keep the buffer while the ledger can renew its promises
 * without that buffer. Beyond that, UCP copies. */
static UCS_F_ALWAYS_INLINE void
uct_daqiri_progress_deliver(uct_daqiri_iface_t *iface, uint32_t index,
                            uint8_t am_id, void *data, size_t length)
{
    unsigned flags = dq_rx_may_hold(&iface->rx.ledger)
                             ? UCT_CB_PARAM_FLAG_DESC : 0;
    ucs_status_t status;

    iface->count->am_rx++;
    iface->count->am_rx_bytes += length;
    uct_daqiri_recv_mark(iface, index, data);
    status = uct_daqiri_progress_invoke(iface, am_id, data, length, flags);
    if (ucs_likely(status == UCS_OK)) {
        uct_daqiri_recv_release(iface, index);
    } else {
        DQ_ASSERT((status == UCS_INPROGRESS) && (flags != 0));
        dq_rx_hold(&iface->rx.ledger);
    }
}


static void uct_daqiri_progress_drop(uct_daqiri_iface_t *iface, uint32_t index,
                                     uint64_t *counter)
{
    (*counter)++;
    uct_daqiri_recv_release(iface, index);
}


/* A message of the peer's own, or one of unknown kind. */
static UCS_F_NOINLINE void
uct_daqiri_progress_on_other(uct_daqiri_conn_t *conn, const dq_msg_hdr_t *hdr,
                             const struct ibv_wc *wc)
{
    uct_daqiri_iface_t *iface = conn->iface;
    dq_wire_status_t parsed   = dq_msg_parse(hdr, wc->byte_len);
    int is_bad;

    if ((parsed == DQ_WIRE_OK) && (hdr->seq == conn->grant.rx_number)) {
        uct_daqiri_progress_drop(iface, wc->wr_id,
                                 &iface->count->rx_duplicates);
        return;
    }
    uct_daqiri_rx_use_window(iface, conn);
    if (parsed != DQ_WIRE_OK) {
        uct_daqiri_progress_drop(iface, wc->wr_id,
                                 &iface->count->rx_dropped[parsed]);
        return;
    }
    conn->grant.rx_number = hdr->seq;
    is_bad = !(wc->wc_flags & IBV_WC_WITH_IMM) ||
             (uct_daqiri_rx_on_control(conn, (dq_msg_kind_t)hdr->kind,
                                       ntohl(wc->imm_data)) != 0);
    uct_daqiri_progress_drop(iface, wc->wr_id,
                             is_bad ? &iface->count->rx_dropped[DQ_WIRE_BAD_FIELD]
                                    : &iface->count->credit_frames_rx);
}


/*
 * A lower sequence number is a message that was handed up before: a device may deliver
 * one twice (docs/softroce.md). The peer has sent it once, so it uses no window. A higher
 * sequence number means that an acknowledged message was lost. Its data may be gone, so
 * the QP fails.
 */
static UCS_F_NOINLINE void
uct_daqiri_progress_on_disorder(uct_daqiri_conn_t *conn,
                                const dq_msg_hdr_t *hdr,
                                const struct ibv_wc *wc)
{
    uct_daqiri_iface_t *iface = conn->iface;
    int16_t ahead             = (int16_t)(hdr->seq - conn->rx_seq);
    dq_facts_t facts;

    if (ahead < 0) {
        uct_daqiri_progress_drop(iface, wc->wr_id,
                                 &iface->count->rx_duplicates);
        return;
    }
    uct_daqiri_progress_drop(iface, wc->wr_id, &iface->count->rx_out_of_order);
    uct_daqiri_tx_facts(conn, DQ_CAUSE_GAP, &facts);
    uct_daqiri_recover(conn, &facts);
}


static UCS_F_ALWAYS_INLINE void
uct_daqiri_progress_on_message(uct_daqiri_iface_t *iface,
                               uct_daqiri_conn_t *conn,
                               const struct ibv_wc *wc)
{
    void *data              = uct_daqiri_recv_data(iface, wc->wr_id, wc->byte_len);
    const dq_msg_hdr_t *hdr = (const dq_msg_hdr_t*)data - 1;

    if (ucs_unlikely(!dq_msg_is_am(hdr, wc->byte_len))) {
        uct_daqiri_progress_on_other(conn, hdr, wc);
        return;
    }
    if (ucs_unlikely(hdr->seq != (uint16_t)conn->rx_seq)) {
        uct_daqiri_progress_on_disorder(conn, hdr, wc);
        return;
    }
    uct_daqiri_rx_use_window(iface, conn);
    uct_daqiri_rx_take_credit(conn, wc);
    conn->rx_seq++;
    uct_daqiri_progress_deliver(iface, wc->wr_id, hdr->am_id, data,
                                wc->byte_len - sizeof(*hdr));
}


/* Data has come before the RTU. Tells the async side, once for each QP: the peer sends
 * data only after a REP of this side, so the command cannot come too early. */
static UCS_F_NOINLINE void uct_daqiri_progress_tell_data(uct_daqiri_conn_t *conn)
{
    if (!conn->qp.has_told_data) {
        conn->qp.has_told_data = 1;
        uct_daqiri_mail_post_command(&conn->peer, UCT_DAQIRI_CMD_READY);
    }
}


/* The conn of a message that is not on the QP of the last one. NULL, and counted, if
 * there is none. A QP that is not up is not cached: each of its messages comes here. */
static UCS_F_NOINLINE uct_daqiri_conn_t *
uct_daqiri_progress_find_conn(uct_daqiri_iface_t *iface, const struct ibv_wc *wc)
{
    uct_daqiri_conn_t *conn = uct_daqiri_iface_cache_conn(iface, &iface->rx.last,
                                                          wc->qp_num);

    if (conn == NULL) {
        uct_daqiri_progress_drop(iface, wc->wr_id,
                                 &iface->count->stray_completions);
        return NULL;
    }
    if (conn->qp.state == DQ_QP_CONNECTING) {
        uct_daqiri_progress_tell_data(conn);
    }
    return conn;
}


static UCS_F_ALWAYS_INLINE void
uct_daqiri_progress_on_wc(uct_daqiri_iface_t *iface, const struct ibv_wc *wc)
{
    uct_daqiri_conn_t *conn = iface->rx.last.conn;

    if (ucs_unlikely(wc->status != IBV_WC_SUCCESS)) {
        uct_daqiri_progress_on_error(iface, wc);
        return;
    }
    if (ucs_unlikely(wc->qp_num != iface->rx.last.qpn)) {
        conn = uct_daqiri_progress_find_conn(iface, wc);
        if (conn == NULL) {
            return;
        }
    }
    uct_daqiri_progress_on_message(iface, conn, wc);
}


/* Refills, then handles @a count completions in order; 1 at least. */
static UCS_F_ALWAYS_INLINE void
uct_daqiri_progress_take(uct_daqiri_iface_t *iface, const struct ibv_wc *wc,
                         unsigned count)
{
    unsigned i;

    /* A message may come on RECVs that the ledger does not know yet, because its conn is
     * new. So the events of the async thread come first. */
    if (ucs_unlikely(uct_daqiri_mail_has_events(iface))) {
        uct_daqiri_conn_absorb(iface);
    }

    dq_rx_taken(&iface->rx.ledger, count);
    if (dq_rx_is_low(&iface->rx.ledger)) {
        uct_daqiri_recv_refill(iface);
    }
    for (i = 0; i < count; i++) {
        uct_daqiri_progress_on_wc(iface, &wc[i]);
    }
    DQ_ASSERT(dq_rx_check(&iface->rx.ledger));
}


/* ---- Progress ---- */

/* Work that few calls have, hence out of line: events of the handshake, the watchdog,
 * refused RECVs, grants that no message carried, retries, conns that drain, pending
 * requests. */
static UCS_F_NOINLINE unsigned
uct_daqiri_progress_do_slow_work(uct_daqiri_iface_t *iface, unsigned received)
{
    unsigned count = 0, completed;

    if (uct_daqiri_mail_has_events(iface)) {
        uct_daqiri_conn_absorb(iface);
    }
    if (uct_daqiri_mail_is_due(iface)) {
        uct_daqiri_watchdog_run(iface);
    }
    if (ucs_unlikely(iface->rx.is_refused)) {
        iface->rx.is_refused = 0;
        uct_daqiri_recv_refill(iface);
    }
    if (uct_daqiri_idle_has_work(iface)) {
        uct_daqiri_idle_run(iface);
    }
    count += uct_daqiri_rx_grant(iface);
    if (!ucs_list_is_empty(&iface->tx.retry)) {
        count += uct_daqiri_retry_all(iface);
    }
    if (!ucs_list_is_empty(&iface->draining)) {
        completed  = uct_daqiri_tx_poll(iface); /* flushes are not signalled */
        count     += completed;
        count     += uct_daqiri_conn_drain(iface, received, completed);
    }
    count += uct_daqiri_dispatch(iface);

    if (!iface->rx.is_refused && ucs_list_is_empty(&iface->rx.grants_due) &&
        ucs_list_is_empty(&iface->draining) && ucs_list_is_empty(&iface->tx.retry) &&
        ucs_list_is_empty(&iface->tx.pending) && !uct_daqiri_idle_has_work(iface)) {
        uct_daqiri_iface_clear_work(iface, UCT_DAQIRI_WORK_LISTS);
    }
    return count;
}


/* Whether there is work besides messages that have arrived. */
static inline int uct_daqiri_progress_has_work(uct_daqiri_iface_t *iface)
{
    return uct_daqiri_tx_is_due(iface) ||
           ucs_unlikely(uct_daqiri_iface_has_work(iface)) ||
           dq_rx_is_behind(&iface->rx.ledger);
}


/* Refills and delivers, completes, and does slow work. Each call polls each queue that
 * may have something, for one batch at most, so neither starves the other. A call that
 * finds nothing ends at the first return. */
UCT_DAQIRI_POLLED unsigned uct_daqiri_iface_progress(uct_iface_h tl_iface)
{
    uct_daqiri_iface_t *iface = ucs_derived_of(tl_iface, uct_daqiri_iface_t);
    uct_daqiri_batch_t *batch = iface->tx.batch;
    const uint64_t epoch      = iface->progress_epoch + 1;
    struct ibv_wc wc[UCT_DAQIRI_POLL_MAX];
    unsigned received, count;

    __atomic_store_n(&iface->progress_epoch, epoch, __ATOMIC_RELAXED);
    if (batch != NULL) {
        uct_daqiri_batch_start_epoch(batch, epoch);
    }
    received = uct_daqiri_rx_poll(iface, wc);
    if ((received == 0) && !uct_daqiri_progress_has_work(iface)) {
        return 0;
    }

    count = received;
    if (batch != NULL) {
        uct_daqiri_batch_begin_progress(batch);
    }
    if (received > 0) {
        uct_daqiri_progress_take(iface, wc, received);
    } else if (ucs_unlikely(dq_rx_is_behind(&iface->rx.ledger))) {
        uct_daqiri_recv_catch_up(iface);
    }
    if (uct_daqiri_tx_is_due(iface)) {
        count += uct_daqiri_done_poll(iface, wc);
    }
    if (ucs_unlikely(uct_daqiri_iface_has_work(iface))) {
        count += uct_daqiri_progress_do_slow_work(iface, received);
    }
    if (batch != NULL) {
        uct_daqiri_batch_end_progress(batch, iface->progress_epoch);
    }
    return count;
}
