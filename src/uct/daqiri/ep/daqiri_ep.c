/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations of an endpoint. Each one checks its arguments, asks the ledger for
 * admission, takes and fills a buffer, and hands the request to the send line. It owns
 * nothing before the ledger has admitted it.
 */
#include "ep/daqiri_ep.h"

#include "base/daqiri_mail.h"
#include "base/daqiri_pool.h"
#include "conn/daqiri_budget.h"
#include "conn/daqiri_conn.h"
#include "conn/daqiri_op.h"
#include "conn/daqiri_preconnect.h"
#include "conn/daqiri_replay.h"
#include "conn/daqiri_rx.h"
#include "conn/daqiri_tx.h"
#include "ep/daqiri_p2p.h"
#include "ep/daqiri_pending.h"
#include "iface/daqiri_iface.h"


/* ---- Refusals ---- */

ucs_status_t uct_daqiri_ep_refused(uct_daqiri_ep_t *ep, dq_admit_t admit)
{
    uct_daqiri_conn_t *conn = ep->conn;

    conn->iface->count->refused[admit]++;
    conn->watchdog.refusal = admit;
    if (admit == DQ_ADMIT_NO_CREDIT) {
        uct_daqiri_tx_probe_peer(conn);
    }
    if (admit != DQ_ADMIT_DEAD) {
        uct_daqiri_budget_want(conn);
        return UCS_ERR_NO_RESOURCE;
    }
    if (!ep->is_reported) {
        /* UCX aborts on an operation that fails before it has heard why. So the failure
         * of the conn is reported first. */
        uct_daqiri_conn_use_after_failure(conn);
        return UCS_ERR_NO_RESOURCE;
    }
    return uct_daqiri_conn_status(conn);
}


ucs_status_t uct_daqiri_ep_admit_preconnect(uct_daqiri_ep_t *ep,
                                            dq_wr_class_t wr_class,
                                            dq_admit_t admit)
{
    if (admit == DQ_ADMIT_NOT_UP) {
        admit = uct_daqiri_preconnect_admit(ep->conn, wr_class);
    }
    return (admit == DQ_ADMIT_OK) ? UCS_OK : uct_daqiri_ep_refused(ep, admit);
}


ucs_status_t uct_daqiri_ep_bad_length(const char *op, size_t length,
                                      size_t max)
{
    ucs_error("daqiri: %s with a length of %zu bytes, where at most %zu fit",
              op, length, max);
    return UCS_ERR_INVALID_PARAM;
}


ucs_status_t uct_daqiri_ep_bad_iov(size_t iovcnt, unsigned max)
{
    ucs_error("daqiri: an iov of %zu entries, where at most %u fit", iovcnt,
              max);
    return UCS_ERR_INVALID_PARAM;
}


static ucs_status_t uct_daqiri_ep_bad_id(uint8_t id)
{
    ucs_error("daqiri: active message id %u, where the ids end at %d", id,
              (int)UCT_AM_ID_MAX - 1);
    return UCS_ERR_INVALID_PARAM;
}


/* ---- Active messages ---- */

/* Fills in the header and the credits of one active message, and posts it. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_daqiri_ep_post_am(uct_daqiri_conn_t *conn, dq_msg_hdr_t *hdr, uint8_t id,
                      uct_daqiri_tx_t *tx, struct ibv_sge *sge, int num_sge)
{
    ucs_status_t status;

    tx->wr_class = DQ_WR_MSG;
    tx->imm      = uct_daqiri_rx_piggyback(conn);
    tx->opcode   = (tx->imm > 0) ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
    dq_msg_pack(hdr, DQ_MSG_AM, id, conn->tx_seq);

    status = uct_daqiri_tx_post(conn, tx, sge, num_sge);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    conn->tx_seq++;
    if (tx->imm > 0) {
        dq_rx_grant(&conn->iface->rx.ledger, &conn->window, tx->imm);
        if (ucs_unlikely(dq_rx_is_narrow(&conn->window))) {
            uct_daqiri_rx_widen(conn);
        }
    }
    return UCS_OK;
}


static inline void uct_daqiri_ep_count(uct_daqiri_counters_t *count,
                                       uint64_t *counter, size_t length)
{
    (*counter)++;
    count->am_tx_bytes += length;
}


/* The first bytes of a short message on the wire. */
typedef struct {
    dq_msg_hdr_t msg;
    uint64_t     am;
} __attribute__((packed)) uct_daqiri_short_hdr_t;


/* Many short messages are one word long: copying that needs no call. */
static inline void uct_daqiri_ep_copy(void *to, const void *from,
                                      size_t length)
{
    if (length == sizeof(uint64_t)) {
        memcpy(to, from, sizeof(uint64_t));
    } else if (length > 0) { /* from may be NULL otherwise */
        memcpy(to, from, length);
    }
}


/* Takes a send buffer for header and data of one admitted message, and enters it in *tx
 * and *sge. The caller sets sge->length. Returns where the header goes, or NULL if there
 * is no buffer. */
static UCS_F_ALWAYS_INLINE dq_msg_hdr_t *
uct_daqiri_ep_take_buffer(uct_daqiri_iface_t *iface, uct_daqiri_tx_t *tx,
                          struct ibv_sge *sge)
{
    const uct_daqiri_buf_t *buf;

    if (ucs_unlikely(!uct_daqiri_tx_take_desc(iface, &tx->op.desc,
                                              &tx->signal))) {
        return NULL;
    }
    buf       = &iface->tx.pool.bufs[tx->op.desc];
    sge->addr = (uintptr_t)buf->buf - sizeof(dq_msg_hdr_t);
    sge->lkey = buf->lkey;
    return (dq_msg_hdr_t*)buf->buf - 1;
}


/* Sends a short message through a buffer, because it is too long to be inline. UCP still
 * takes its own short path for it. */
static UCS_F_NOINLINE ucs_status_t
uct_daqiri_ep_am_copied(uct_daqiri_ep_t *ep, uint8_t id, uint64_t header,
                        const void *payload, unsigned length)
{
    uct_daqiri_conn_t *conn = ep->conn;
    uct_daqiri_tx_t tx      = {.flags = 0};
    uct_daqiri_short_hdr_t *hdr;
    struct ibv_sge sge;
    ucs_status_t status;

    if (ucs_unlikely(length + sizeof(header) > conn->iface->config.max_short)) {
        return uct_daqiri_ep_bad_length("am_short", length + sizeof(header),
                                        conn->iface->config.max_short);
    }
    status = uct_daqiri_ep_admit(ep, DQ_WR_MSG);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    hdr = (void*)uct_daqiri_ep_take_buffer(conn->iface, &tx, &sge);
    if (ucs_unlikely(hdr == NULL)) {
        return UCS_ERR_NO_RESOURCE;
    }
    hdr->am = header;
    uct_daqiri_ep_copy(hdr + 1, payload, length);
    sge.length = sizeof(*hdr) + length;
    status     = uct_daqiri_ep_post_am(conn, &hdr->msg, id, &tx, &sge, 1);
    if (ucs_likely(status == UCS_OK)) {
        uct_daqiri_ep_count(conn->iface->count, &conn->iface->count->am_short,
                            length + sizeof(header));
    }
    return status;
}


/* Sends a short message without a token: too long to be inline, with credits or a signal,
 * held back, or refused. */
static UCS_F_NOINLINE ucs_status_t
uct_daqiri_ep_am_general(uct_daqiri_ep_t *ep, uint8_t id, uint64_t header,
                           const void *payload, unsigned length)
{
    uct_daqiri_conn_t *conn   = ep->conn;
    uct_daqiri_iface_t *iface = conn->iface;
    uct_daqiri_tx_t tx        = {
        .flags = IBV_SEND_INLINE,
        .op    = {.desc = UCT_DAQIRI_NO_DESC},
    };
    uct_daqiri_short_hdr_t unremembered;
    uct_daqiri_short_hdr_t *hdr = &unremembered;
    struct ibv_sge two[2];
    struct ibv_sge *sge = two;
    int num_sge         = 1;
    ucs_status_t status;

    if (ucs_unlikely(id >= UCT_AM_ID_MAX)) {
        return uct_daqiri_ep_bad_id(id);
    }
    if (sizeof(*hdr) + length > iface->config.max_inline_am) {
        return uct_daqiri_ep_am_copied(ep, id, header, payload, length);
    }
    status = uct_daqiri_ep_admit(ep, DQ_WR_MSG);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }

    if (ucs_likely(conn->replay.slots != NULL)) {
        hdr = uct_daqiri_replay_inline(conn, sizeof(*hdr) + length, &tx, &sge);
        uct_daqiri_ep_copy(hdr + 1, payload, length);
    } else {
        two[0].addr   = (uintptr_t)hdr;
        two[0].length = sizeof(*hdr);
        two[1].addr   = (uintptr_t)payload;
        two[1].length = length;
        num_sge       = 1 + (length > 0);
    }
    hdr->am = header;
    status  = uct_daqiri_ep_post_am(conn, &hdr->msg, id, &tx, sge, num_sge);
    if (ucs_likely(status == UCS_OK)) {
        uct_daqiri_ep_count(iface->count, &iface->count->am_short,
                            length + sizeof(header));
    }
    return status;
}


/* The tokens are used up, or the message is not short. With new tokens it starts
 * again. */
static UCS_F_NOINLINE ucs_status_t
uct_daqiri_ep_am_short_again(uct_daqiri_ep_t *ep, uint8_t id, uint64_t header,
                             const void *payload, unsigned length)
{
    uct_daqiri_conn_t *conn = ep->conn;

    if ((id < UCT_AM_ID_MAX) && (length <= conn->iface->max_token_payload) &&
        (uct_daqiri_tx_take_tokens(conn) > 0)) {
        return uct_daqiri_ep_am_short(&ep->super.super, id, header, payload,
                                      length);
    }
    return uct_daqiri_ep_am_general(ep, id, header, payload, length);
}


/* A short message with a token needs no other question. */
UCT_DAQIRI_POLLED_FIRST ucs_status_t
uct_daqiri_ep_am_short(uct_ep_h tl_ep, uint8_t id, uint64_t header,
                       const void *payload, unsigned length)
{
    uct_daqiri_ep_t *ep       = ucs_derived_of(tl_ep, uct_daqiri_ep_t);
    uct_daqiri_conn_t *conn   = ep->conn;
    uct_daqiri_iface_t *iface = conn->iface;
    uct_daqiri_replay_t *replay;
    uct_daqiri_short_hdr_t *hdr;
    ucs_status_t status;

    if (ucs_unlikely((id >= UCT_AM_ID_MAX) ||
                     (length > iface->max_token_payload) ||
                     (dq_sq_tokens(&conn->sq) == 0))) {
        return uct_daqiri_ep_am_short_again(ep, id, header, payload, length);
    }

    replay  = uct_daqiri_replay_slot(conn, conn->sq.posted);
    hdr     = (uct_daqiri_short_hdr_t*)&replay->sge[1];
    hdr->am = header;
    dq_msg_pack(&hdr->msg, DQ_MSG_AM, id, conn->tx_seq);
    uct_daqiri_ep_copy(hdr + 1, payload, length);
    uct_daqiri_replay_note_short(conn, replay, sizeof(*hdr) + length);

    status = uct_daqiri_tx_post_short(conn, replay);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    conn->tx_seq++;
    uct_daqiri_ep_count(iface->count, &iface->count->am_short,
                        length + sizeof(header));
    return UCS_OK;
}


/* Joins the pieces in a buffer. The device joins those of an inline message itself. */
static void uct_daqiri_ep_copy_pieces(void *to, const struct ibv_sge *sge,
                                      int num_sge)
{
    int i;

    for (i = 0; i < num_sge; i++) {
        memcpy(to, (const void*)(uintptr_t)sge[i].addr, sge[i].length);
        to = UCS_PTR_BYTE_OFFSET(to, sge[i].length);
    }
}


ucs_status_t uct_daqiri_ep_am_short_iov(uct_ep_h tl_ep, uint8_t id,
                                        const uct_iov_t *iov, size_t iovcnt)
{
    uct_daqiri_ep_t *ep       = ucs_derived_of(tl_ep, uct_daqiri_ep_t);
    uct_daqiri_conn_t *conn   = ep->conn;
    uct_daqiri_iface_t *iface = conn->iface;
    struct ibv_sge sge[UCT_DAQIRI_SGE_MAX];
    uct_daqiri_tx_t tx = {
        .flags = IBV_SEND_INLINE,
        .op    = {.desc = UCT_DAQIRI_NO_DESC},
    };
    dq_msg_hdr_t inlined;
    dq_msg_hdr_t *hdr = &inlined;
    ucs_status_t status;
    size_t length;
    int num_sge;

    if (ucs_unlikely(iovcnt >= iface->config.max_sge)) {
        return uct_daqiri_ep_bad_iov(iovcnt, iface->config.max_sge - 1);
    }
    num_sge = 1 + uct_daqiri_ep_fill_sge(&sge[1], iov, iovcnt, &length);
    if (ucs_unlikely(length > iface->config.max_short)) {
        return uct_daqiri_ep_bad_length("am_short_iov", length,
                                        iface->config.max_short);
    }
    if (ucs_unlikely(id >= UCT_AM_ID_MAX)) {
        return uct_daqiri_ep_bad_id(id);
    }
    status = uct_daqiri_ep_admit(ep, DQ_WR_MSG);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }

    sge[0].addr   = (uintptr_t)hdr;
    sge[0].length = sizeof(*hdr);
    if (sizeof(*hdr) + length > iface->config.max_inline) {
        hdr = uct_daqiri_ep_take_buffer(iface, &tx, &sge[0]);
        if (ucs_unlikely(hdr == NULL)) {
            return UCS_ERR_NO_RESOURCE;
        }
        uct_daqiri_ep_copy_pieces(hdr + 1, &sge[1], num_sge - 1);
        sge[0].length = sizeof(*hdr) + length;
        tx.flags      = 0;
        num_sge       = 1;
    }
    status = uct_daqiri_ep_post_am(conn, hdr, id, &tx, sge, num_sge);
    if (ucs_likely(status == UCS_OK)) {
        uct_daqiri_ep_count(iface->count, &iface->count->am_short, length);
    }
    return status;
}


/* Makes a short packed message an inline one: its buffer is free at once, and the next
 * message is packed into lines that the processor still has. Returns its header, in the
 * log. */
static inline dq_msg_hdr_t *
uct_daqiri_ep_inline_packed(uct_daqiri_iface_t *iface, const dq_msg_hdr_t *hdr,
                            size_t length, uct_daqiri_tx_t *tx)
{
    void *data = &tx->replay->sge[1];

    memcpy(data, hdr, length);
    tx->replay->sge[0].addr = (uintptr_t)data;
    uct_daqiri_pool_put(&iface->tx.pool, tx->op.desc);
    tx->op.desc = UCT_DAQIRI_NO_DESC;
    tx->flags   = IBV_SEND_INLINE;
    tx->signal  = 0;
    return data;
}


ssize_t uct_daqiri_ep_am_bcopy(uct_ep_h tl_ep, uint8_t id,
                               uct_pack_callback_t pack_cb, void *arg,
                               unsigned flags)
{
    uct_daqiri_ep_t *ep       = ucs_derived_of(tl_ep, uct_daqiri_ep_t);
    uct_daqiri_conn_t *conn   = ep->conn;
    uct_daqiri_iface_t *iface = conn->iface;
    uct_daqiri_tx_t tx        = {.flags = 0};
    struct ibv_sge unremembered;
    struct ibv_sge *sge;
    ucs_status_t status;
    dq_msg_hdr_t *hdr;
    size_t length;

    (void)flags;
    if (ucs_unlikely(id >= UCT_AM_ID_MAX)) {
        return uct_daqiri_ep_bad_id(id);
    }
    status = uct_daqiri_ep_admit(ep, DQ_WR_MSG);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    sge = uct_daqiri_replay_sge(conn, &tx, &unremembered);
    hdr = uct_daqiri_ep_take_buffer(iface, &tx, sge);
    if (ucs_unlikely(hdr == NULL)) {
        return UCS_ERR_NO_RESOURCE;
    }

    length      = pack_cb(hdr + 1, arg);
    sge->length = sizeof(*hdr) + length;
    if ((sge->length <= iface->config.max_inline_am) &&
        ucs_likely(conn->replay.slots != NULL)) {
        hdr = uct_daqiri_ep_inline_packed(iface, hdr, sge->length, &tx);
    }
    status      = uct_daqiri_ep_post_am(conn, hdr, id, &tx, sge, 1);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    uct_daqiri_ep_count(iface->count, &iface->count->am_bcopy, length);
    return length;
}


static ucs_status_t
uct_daqiri_ep_check_zcopy(uct_daqiri_iface_t *iface, uint8_t id,
                          unsigned header_length, size_t iovcnt, size_t total)
{
    size_t max = iface->config.seg_size - sizeof(dq_msg_hdr_t);

    if (ucs_unlikely(iovcnt >= iface->config.max_sge)) {
        return uct_daqiri_ep_bad_iov(iovcnt, iface->config.max_sge - 1);
    }
    if (ucs_unlikely(header_length > iface->config.max_hdr)) {
        return uct_daqiri_ep_bad_length("am_zcopy header", header_length,
                                        iface->config.max_hdr);
    }
    if (ucs_unlikely(header_length + total > max)) {
        return uct_daqiri_ep_bad_length("am_zcopy", header_length + total,
                                        max);
    }
    return ucs_likely(id < UCT_AM_ID_MAX) ? UCS_OK : uct_daqiri_ep_bad_id(id);
}


ucs_status_t uct_daqiri_ep_am_zcopy(uct_ep_h tl_ep, uint8_t id,
                                    const void *header, unsigned header_length,
                                    const uct_iov_t *iov, size_t iovcnt,
                                    unsigned flags, uct_completion_t *comp)
{
    uct_daqiri_ep_t *ep       = ucs_derived_of(tl_ep, uct_daqiri_ep_t);
    uct_daqiri_conn_t *conn   = ep->conn;
    uct_daqiri_iface_t *iface = conn->iface;
    uct_daqiri_tx_t tx        = {.op = {.comp = comp, .ep = ep}};
    struct ibv_sge sge[UCT_DAQIRI_SGE_MAX];
    ucs_status_t status;
    dq_msg_hdr_t *hdr;
    size_t total = 0;
    int num_sge  = 0;

    (void)flags;
    if (ucs_likely(iovcnt < iface->config.max_sge)) {
        num_sge = 1 + uct_daqiri_ep_fill_sge(&sge[1], iov, iovcnt, &total);
    }
    status = uct_daqiri_ep_check_zcopy(iface, id, header_length, iovcnt,
                                       total);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    status = uct_daqiri_ep_admit(ep, DQ_WR_MSG);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    hdr = uct_daqiri_ep_take_buffer(iface, &tx, &sge[0]);
    if (ucs_unlikely(hdr == NULL)) {
        return UCS_ERR_NO_RESOURCE;
    }

    tx.signal    |= comp != NULL; /* the user waits for it */
    sge[0].length = sizeof(*hdr) + header_length;
    if (header_length > 0) { /* header may be NULL otherwise */
        memcpy(hdr + 1, header, header_length);
    }
    status = uct_daqiri_ep_post_am(conn, hdr, id, &tx, sge, num_sge);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    uct_daqiri_ep_count(iface->count, &iface->count->am_zcopy,
                        header_length + total);
    return UCS_INPROGRESS;
}


/* ---- Flush, fence, check ---- */

/*
 * A flush that cancels: the user wants no results any more, but the NIC may still touch
 * the user's memory. On a conn that is up, a probe overtakes the requests that wait, and
 * completes without the peer's software. On any other conn, uct_daqiri_tx_detach() waits
 * for the NIC, within a bound.
 */
static ucs_status_t uct_daqiri_ep_cancel(uct_daqiri_ep_t *ep,
                                         uct_completion_t *comp)
{
    uct_daqiri_conn_t *conn = ep->conn;
    ucs_status_t status;
    dq_admit_t admit;

    if (uct_daqiri_preconnect_is_posted(conn)) {
        /* the conn is up: the next progress call learns that */
        return uct_daqiri_ep_refused(ep, DQ_ADMIT_NOT_UP);
    }
    if ((conn->sq.gate != DQ_GATE_UP) || (dq_sq_in_use(&conn->sq) == 0)) {
        uct_daqiri_tx_detach(ep);
        return UCS_OK;
    }
    admit = dq_sq_admit(&conn->sq, &conn->iface->tx.ledger, DQ_WR_RMA);
    if (admit != DQ_ADMIT_OK) {
        return uct_daqiri_ep_refused(ep, admit);
    }
    status = uct_daqiri_tx_post_probe(conn, ep, comp);
    return (status == UCS_OK) ? UCS_INPROGRESS : status;
}


/* Flushes a conn whose peer has closed. An empty ledger shows whether the peer took all
 * that was sent before. Until then the user repeats the flush, which does no harm. */
static ucs_status_t uct_daqiri_ep_flush_left(uct_daqiri_ep_t *ep,
                                             const uct_completion_t *comp)
{
    if ((dq_sq_in_use(&ep->conn->sq) == 0) &&
        !uct_daqiri_ep_must_queue(ep->conn)) {
        return ep->conn->end.is_awaited ? uct_daqiri_ep_refused(ep, DQ_ADMIT_DEAD)
                                    : UCS_OK;
    }
    return (comp == NULL) ? UCS_INPROGRESS : UCS_ERR_NO_RESOURCE;
}


/* All endpoints of a conn share its QP, so this flushes all of them. The probe completes
 * after everything posted before it. */
ucs_status_t uct_daqiri_ep_flush(uct_ep_h tl_ep, unsigned flags,
                                 uct_completion_t *comp)
{
    uct_daqiri_ep_t *ep     = ucs_derived_of(tl_ep, uct_daqiri_ep_t);
    uct_daqiri_conn_t *conn = ep->conn;
    ucs_status_t status;

    if (flags & UCT_FLUSH_FLAG_CANCEL) {
        return uct_daqiri_ep_cancel(ep, comp);
    }
    if (uct_daqiri_conn_peer_left(conn)) {
        return uct_daqiri_ep_flush_left(ep, comp);
    }
    if (uct_daqiri_conn_is_flushed(conn) && !uct_daqiri_ep_must_queue(conn)) {
        return !dq_life_is_over(conn->state)
                       ? UCS_OK : uct_daqiri_ep_refused(ep, DQ_ADMIT_DEAD);
    }
    status = uct_daqiri_ep_admit(ep, DQ_WR_RMA);
    if (status == UCS_OK) {
        status = uct_daqiri_tx_post_probe(conn, ep, comp);
    }
    return (status == UCS_OK) ? UCS_INPROGRESS : status;
}


ucs_status_t uct_daqiri_ep_fence(uct_ep_h tl_ep, unsigned flags)
{
    uct_daqiri_ep_t *ep = ucs_derived_of(tl_ep, uct_daqiri_ep_t);

    (void)flags;
    /* An RC QP keeps the order by itself, except after a READ. */
    ep->conn->next_flags = IBV_SEND_FENCE;
    dq_sq_return_tokens(&ep->conn->sq, &ep->conn->iface->tx.ledger);
    return UCS_OK;
}


ucs_status_t uct_daqiri_ep_check(uct_ep_h tl_ep, unsigned flags,
                                 uct_completion_t *comp)
{
    uct_daqiri_ep_t *ep     = ucs_derived_of(tl_ep, uct_daqiri_ep_t);
    uct_daqiri_conn_t *conn = ep->conn;
    ucs_status_t status;
    dq_admit_t admit;

    (void)flags;
    (void)comp; /* UCT 1.13: comp must be NULL */
    if (!dq_life_is_over(conn->state) && (conn->state != DQ_LIFE_UP)) {
        conn->end.is_awaited = 1; /* until it is up, which asks again */
        uct_daqiri_budget_want(conn);
        return UCS_OK;
    }
    status = uct_daqiri_tx_ask_peer(conn, ep, &admit);
    return (admit == DQ_ADMIT_OK) ? status : uct_daqiri_ep_refused(ep, admit);
}


ucs_status_t uct_daqiri_ep_invalidate(uct_ep_h tl_ep)
{
    uct_daqiri_conn_t *conn = ucs_derived_of(tl_ep, uct_daqiri_ep_t)->conn;
    dq_facts_t facts;

    if (conn->is_stub) {
        return UCS_OK; /* a stub has no request under way */
    }
    uct_daqiri_tx_facts(conn, DQ_CAUSE_GIVEN_UP, &facts);
    uct_daqiri_conn_fail(conn, &facts);
    return UCS_OK;
}


/* ---- Birth and death ---- */

/* @a params has both addresses of the peer, or neither: then
 * uct_daqiri_ep_connect_to_ep() brings them later. */
static UCS_CLASS_INIT_FUNC(uct_daqiri_ep_t, const uct_ep_params_t *params)
{
    uct_daqiri_iface_t *iface = ucs_derived_of(params->iface,
                                               uct_daqiri_iface_t);
    const uint64_t both       = UCT_EP_PARAM_FIELD_DEV_ADDR |
                                UCT_EP_PARAM_FIELD_IFACE_ADDR;
    ucs_status_t status;

    UCS_CLASS_CALL_SUPER_INIT(uct_base_ep_t, &iface->super);
    self->is_reported = 0;
    if ((params->field_mask & both) == 0) {
        return uct_daqiri_p2p_init(self, iface);
    }
    if (!ucs_test_all_flags(params->field_mask, both)) {
        ucs_error("daqiri: an endpoint needs the peer's device and interface "
                  "addresses");
        return UCS_ERR_UNSUPPORTED;
    }

    status = uct_daqiri_conn_get(iface, (const void*)params->dev_addr,
                                 (const void*)params->iface_addr, &self->conn);
    if (status != UCS_OK) {
        return status;
    }
    ucs_list_add_tail(&self->conn->eps, &self->conn_link);
    self->conn->qp.has_told_data = 0; /* the handshake heeds CMD_READY from now on */
    uct_daqiri_budget_open(self->conn);
    return UCS_OK;
}


/* Copied messages in flight go on, because their buffers belong to the conn, which stays.
 * uct_daqiri_tx_detach() waits for requests on the user's memory. */
static UCS_CLASS_CLEANUP_FUNC(uct_daqiri_ep_t)
{
    uct_daqiri_ep_pending_purge(&self->super.super, NULL, NULL);
    uct_daqiri_tx_detach(self);
    ucs_list_del(&self->conn_link);
    if (self->conn->is_stub) {
        uct_daqiri_p2p_free(self->conn);
    } else {
        uct_daqiri_conn_put(self->conn);
    }
}


UCS_CLASS_DEFINE(uct_daqiri_ep_t, uct_base_ep_t);
UCS_CLASS_DEFINE_NEW_FUNC(uct_daqiri_ep_t, uct_ep_t, const uct_ep_params_t*);
UCS_CLASS_DEFINE_DELETE_FUNC(uct_daqiri_ep_t, uct_ep_t);
