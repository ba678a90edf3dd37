/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive line: refill, parse, deliver, grant. The ibv_post_srq_recv
 * is here.
 *
 * A buffer as the device and UCP see it; `point` is what the pool hands out:
 *
 *              UCP's headroom (rx_headroom)         point
 *         |<-------------------------------------->|
 *   [index][release]. . . . . . . . . . . [ header ][ data ... ]
 *                  ^desc                  ^the RECV starts here
 *
 * UCP may keep the buffer; then it writes into the headroom, and only there.
 * The headroom is as asked for, and may be none: then [release] lies where the
 * header was, and is written again before each upcall.
 */
#include "daqiri_rx.h"
#include "daqiri_tx.h"


static void *uct_daqiri_rx_desc(uct_daqiri_iface_t *iface, void *point)
{
    return UCS_PTR_BYTE_OFFSET(point, -(ptrdiff_t)iface->config.headroom);
}


/* The headroom need not be a multiple of anything, hence memcpy. */
static void uct_daqiri_rx_set_release(uct_daqiri_iface_t *iface, void *desc)
{
    uct_recv_desc_t *release = &iface->rx.release;

    memcpy(UCS_PTR_BYTE_OFFSET(desc, -(ptrdiff_t)sizeof(release)), &release,
           sizeof(release));
}


static void *uct_daqiri_rx_desc_index(void *desc)
{
    return UCS_PTR_BYTE_OFFSET(desc, -(ptrdiff_t)UCT_DAQIRI_RX_DESC_LEN);
}


static void uct_daqiri_rx_make_recv(uct_daqiri_iface_t *iface, uint32_t index)
{
    const uct_daqiri_buf_t *buf = &iface->rx.pool.bufs[index];
    uct_daqiri_recv_t *recv     = &iface->rx.recvs[index];

    recv->sge = (struct ibv_sge){
        .addr   = (uintptr_t)buf->buf - sizeof(dq_msg_hdr_t),
        .length = iface->config.seg_size,
        .lkey   = buf->lkey,
    };
    recv->wr  = (struct ibv_recv_wr){
        .wr_id   = index,
        .sg_list = &recv->sge,
        .num_sge = 1,
    };
}


ucs_status_t uct_daqiri_rx_make(uct_daqiri_iface_t *iface, uint32_t count,
                                uint32_t *first_p)
{
    ucs_status_t status;
    uint64_t index;
    void *desc;

    status = uct_daqiri_pool_grow(&iface->rx.pool, count, first_p);
    if (status != UCS_OK) {
        return status;
    }

    for (index = *first_p; index < *first_p + count; index++) {
        desc = uct_daqiri_rx_desc(iface, iface->rx.pool.bufs[index].buf);
        memcpy(uct_daqiri_rx_desc_index(desc), &index, sizeof(index));
        uct_daqiri_rx_set_release(iface, desc);
        uct_daqiri_rx_make_recv(iface, index);
    }
    return UCS_OK;
}


/* Those before the one that the device names it has taken. */
static uint32_t uct_daqiri_rx_count_taken(const uct_daqiri_iface_t *iface,
                                          const uint32_t *index,
                                          uint32_t count,
                                          const struct ibv_recv_wr *bad_wr)
{
    uint32_t i;

    for (i = 0; i < count; i++) {
        if (&iface->rx.recvs[index[i]].wr == bad_wr) {
            return i;
        }
    }
    return 0;
}


uint32_t uct_daqiri_rx_post(uct_daqiri_iface_t *iface, const uint32_t *index,
                            uint32_t count)
{
    struct ibv_recv_wr *first, *bad_wr = NULL;
    struct ibv_recv_wr **link = &first;
    uint32_t i;
    int ret;

    for (i = 0; i < count; i++) {
        *link = &iface->rx.recvs[index[i]].wr;
        link  = &(*link)->next;
    }
    *link = NULL;

    ret = ibv_post_srq_recv(iface->rx.srq, first, &bad_wr);
    if (ucs_likely(ret == 0)) {
        return count;
    }
    uct_daqiri_log_verb(UCS_LOG_LEVEL_DEBUG, UCT_DAQIRI_NAME,
                        "ibv_post_srq_recv", ret);
    return uct_daqiri_rx_count_taken(iface, index, count, bad_wr);
}


void uct_daqiri_rx_refused(uct_daqiri_iface_t *iface)
{
    iface->count->recvs_refused++;
    iface->rx.is_refused = 1;
    iface->chores        = 1;
    if (!iface->rx.is_refusal_said) {
        iface->rx.is_refusal_said = 1;
        ucs_warn("daqiri: %s refuses RECVs that fit its shared receive queue: "
                 "they are offered again, and senders may have to wait",
                 iface->config.port_name);
    }
}


/* Handlers keep buffers: make others, as far as the limit allows. */
static void uct_daqiri_rx_grow(uct_daqiri_iface_t *iface)
{
    uint32_t count = ucs_max(dq_rx_short(&iface->rx.ledger),
                             (uint32_t)UCT_DAQIRI_BATCH_MAX);
    uint32_t first, i;

    count = ucs_min(count, dq_rx_room(&iface->rx.ledger));
    if ((count == 0) ||
        (uct_daqiri_rx_make(iface, count, &first) != UCS_OK)) {
        return;
    }
    dq_rx_grow(&iface->rx.ledger, count);
    for (i = 0; i < count; i++) {
        uct_daqiri_pool_put(&iface->rx.pool, first + i);
    }
}


void uct_daqiri_rx_post_free(uct_daqiri_iface_t *iface, uint32_t count)
{
    uct_daqiri_pool_t *pool = &iface->rx.pool;
    uint32_t *top;
    uint32_t n, taken;

    while (count > 0) {
        n     = ucs_min(count, UCT_DAQIRI_BATCH_MAX);
        top   = &pool->free_stack[pool->free_count - n];
        taken = uct_daqiri_rx_post(iface, top, n);
        pool->free_count -= taken;
        dq_rx_posted(&iface->rx.ledger, taken);
        if (ucs_unlikely(taken < n)) {
            memmove(top, top + taken, (n - taken) * sizeof(*top));
            uct_daqiri_rx_refused(iface);
            return;
        }
        count -= n;
    }
}


void uct_daqiri_rx_refill(uct_daqiri_iface_t *iface)
{
    if (ucs_unlikely(dq_rx_short(&iface->rx.ledger) > 0)) {
        uct_daqiri_rx_grow(iface);
    }
    uct_daqiri_rx_post_free(iface, dq_rx_due(&iface->rx.ledger));
}


static void uct_daqiri_rx_release(uct_daqiri_iface_t *iface, uint32_t index)
{
    dq_rx_release(&iface->rx.ledger);
    uct_daqiri_pool_put(&iface->rx.pool, index);
}


void uct_daqiri_rx_release_desc(uct_recv_desc_t *self, void *desc)
{
    uct_daqiri_iface_t *iface = ucs_container_of(self, uct_daqiri_iface_t,
                                                 rx.release);
    uint64_t index;

    memcpy(&index, uct_daqiri_rx_desc_index(desc), sizeof(index));
    dq_rx_release_held(&iface->rx.ledger);
    uct_daqiri_pool_put(&iface->rx.pool, index);
    uct_daqiri_rx_refill(iface);
}


/* ---- Credits ---- */

/* A peer grants what we have used: before the conn is up that is nothing, and
 * more than its whole window it cannot have meant. */
static void uct_daqiri_rx_credit(uct_daqiri_conn_t *conn,
                                 const struct ibv_wc *wc)
{
    if (!(wc->wc_flags & IBV_WC_WITH_IMM)) {
        return;
    }
    if (ucs_unlikely(dq_sq_credit(&conn->sq, ntohl(wc->imm_data)) != 0)) {
        conn->iface->count->rx_dropped[DQ_WIRE_BAD_FIELD]++;
        return;
    }
    conn->iface->tx.wake = 1;
}


static void uct_daqiri_rx_use_window(uct_daqiri_conn_t *conn)
{
    dq_rx_use(&conn->iface->rx.ledger, &conn->window);
    if (ucs_unlikely(dq_rx_grant_is_due(&conn->window) && !conn->is_owing)) {
        conn->is_owing      = UCT_DAQIRI_OWING_NEW;
        conn->iface->chores = 1;
        ucs_list_add_tail(&conn->iface->rx.owing, &conn->owing_link);
    }
}


/* Inline, unless the device has none of that, or the user wants none. */
static ucs_status_t uct_daqiri_rx_send_grant(uct_daqiri_conn_t *conn,
                                             uint32_t count)
{
    uct_daqiri_pool_t *pool = &conn->iface->tx.pool;
    uct_daqiri_tx_t tx      = {
        .wr_class = DQ_WR_GRANT,
        .opcode   = IBV_WR_SEND_WITH_IMM,
        .flags    = IBV_SEND_INLINE,
        .imm      = count,
        .op       = {.desc = UCT_DAQIRI_NO_DESC},
    };
    dq_msg_hdr_t inlined;
    dq_msg_hdr_t *hdr  = &inlined;
    struct ibv_sge sge = {.length = sizeof(*hdr)};
    ucs_status_t status;

    if (conn->iface->config.max_inline < sizeof(*hdr)) {
        tx.op.desc = uct_daqiri_tx_desc(conn->iface, &tx.signal);
        if (tx.op.desc == UCT_DAQIRI_NO_DESC) {
            return UCS_ERR_NO_RESOURCE;
        }
        tx.flags = 0;
        hdr      = (dq_msg_hdr_t*)pool->bufs[tx.op.desc].buf - 1;
        sge.lkey = pool->bufs[tx.op.desc].lkey;
    }

    dq_msg_pack(hdr, DQ_MSG_GRANT, 0, 0);
    sge.addr = (uintptr_t)hdr;
    status   = uct_daqiri_tx_post(conn, &tx, &sge, 1);
    if (status == UCS_OK) {
        conn->iface->count->credit_frames_tx++;
        uct_daqiri_tx_note_own(conn);
    }
    return status;
}


/* A program that has just been handed messages may be about to answer them,
 * and an answer carries credits for nothing: a grant waits one progress call. */
static int uct_daqiri_rx_grant_is_early(uct_daqiri_conn_t *conn)
{
    if ((conn->is_owing != UCT_DAQIRI_OWING_NEW) ||
        dq_rx_grant_is_urgent(&conn->window)) {
        return 0;
    }
    conn->is_owing = UCT_DAQIRI_OWING_NEXT;
    return 1;
}


unsigned uct_daqiri_rx_grant(uct_daqiri_iface_t *iface)
{
    uct_daqiri_conn_t *conn, *next;
    unsigned sent = 0;
    uint32_t count;

    ucs_list_for_each_safe(conn, next, &iface->rx.owing, owing_link) {
        if ((conn->sq.gate == DQ_GATE_DEAD) ||
            !dq_rx_grant_is_due(&conn->window)) {
            conn->is_owing = 0;
            ucs_list_del(&conn->owing_link);
            continue;
        }
        if (uct_daqiri_rx_grant_is_early(conn)) {
            continue;
        }
        count = dq_min(dq_rx_grantable(&iface->rx.ledger, &conn->window),
                       DQ_WIRE_MAX_CREDIT);
        if ((count == 0) ||
            (dq_sq_admit(&conn->sq, &iface->tx.ledger, DQ_WR_GRANT) !=
             DQ_ADMIT_OK)) {
            conn->is_owing = UCT_DAQIRI_OWING_STUCK;
            continue;
        }
        if (uct_daqiri_rx_send_grant(conn, count) != UCS_OK) {
            conn->is_owing = UCT_DAQIRI_OWING_STUCK;
            continue;
        }
        dq_rx_grant(&iface->rx.ledger, &conn->window, count);
        sent++;
    }
    return sent;
}


/* ---- Messages ---- */

static void uct_daqiri_rx_on_error(uct_daqiri_iface_t *iface,
                                   const struct ibv_wc *wc)
{
    uct_daqiri_conn_t *conn = uct_daqiri_iface_conn(iface, wc->qp_num);
    const dq_facts_t facts  = {
        .cause      = (dq_cause_t)wc->status,
        .subject    = UCT_DAQIRI_NAME ", receiving",
        .qpn        = wc->qp_num,
        .vendor_err = wc->vendor_err,
    };

    uct_daqiri_rx_release(iface, wc->wr_id);
    if (wc->status == IBV_WC_WR_FLUSH_ERR) {
        iface->count->rx_flushed++;
        return;
    }
    if (conn != NULL) {
        uct_daqiri_recover(conn, &facts);
    }
}


/* The upcall. A handler may keep the buffer while promises can be renewed
 * without it; past that UCP copies. */
static void uct_daqiri_rx_deliver(uct_daqiri_iface_t *iface, uint32_t index,
                                  uint8_t am_id, void *data, size_t length)
{
    unsigned flags = dq_rx_may_hold(&iface->rx.ledger)
                             ? UCT_CB_PARAM_FLAG_DESC : 0;
    ucs_status_t status;

    if (ucs_unlikely(iface->config.headroom < sizeof(dq_msg_hdr_t))) {
        uct_daqiri_rx_set_release(iface, uct_daqiri_rx_desc(iface, data));
    }
    iface->count->am_rx++;
    iface->count->am_rx_bytes += length;
    uct_iface_trace_am(&iface->super, UCT_AM_TRACE_TYPE_RECV, am_id, data,
                       length, "RX: AM");
    status = uct_iface_invoke_am(&iface->super, am_id, data, length, flags);
    if (ucs_likely(status == UCS_OK)) {
        uct_daqiri_rx_release(iface, index);
    } else {
        dq_rx_hold(&iface->rx.ledger);
    }
}


static void uct_daqiri_rx_drop(uct_daqiri_iface_t *iface, uint32_t index,
                               uint64_t *counter)
{
    (*counter)++;
    uct_daqiri_rx_release(iface, index);
}


/* A grant, or nothing that we know. */
static void uct_daqiri_rx_on_other(uct_daqiri_conn_t *conn,
                                   const dq_msg_hdr_t *hdr,
                                   const struct ibv_wc *wc)
{
    uct_daqiri_iface_t *iface = conn->iface;
    dq_wire_status_t parsed   = dq_msg_parse(hdr, wc->byte_len);

    if (parsed != DQ_WIRE_OK) {
        uct_daqiri_rx_drop(iface, wc->wr_id, &iface->count->rx_dropped[parsed]);
        return;
    }
    uct_daqiri_rx_credit(conn, wc);
    uct_daqiri_rx_drop(iface, wc->wr_id, &iface->count->credit_frames_rx);
}


static void uct_daqiri_rx_on_message(uct_daqiri_iface_t *iface,
                                     uct_daqiri_conn_t *conn,
                                     const struct ibv_wc *wc)
{
    void *data              = iface->rx.pool.bufs[wc->wr_id].buf;
    const dq_msg_hdr_t *hdr = (const dq_msg_hdr_t*)data - 1;

    if (ucs_unlikely(!dq_msg_is_am(hdr, wc->byte_len))) {
        uct_daqiri_rx_on_other(conn, hdr, wc);
        return;
    }
    uct_daqiri_rx_credit(conn, wc);
    if (ucs_unlikely(hdr->seq != conn->rx_seq)) {
        uct_daqiri_rx_drop(iface, wc->wr_id, &iface->count->rx_out_of_order);
        return;
    }
    conn->rx_seq++;
    uct_daqiri_rx_deliver(iface, wc->wr_id, hdr->am_id, data,
                          wc->byte_len - sizeof(*hdr));
}


/* Messages come in runs from one peer. Only what was found is remembered: a
 * QPN that is unknown now may be entered by the async thread the next moment. */
static inline uct_daqiri_conn_t *
uct_daqiri_rx_conn(uct_daqiri_iface_t *iface, uint32_t qpn)
{
    uct_daqiri_conn_t *conn;

    if (ucs_likely(qpn == iface->rx.last_qpn)) {
        return iface->rx.last_conn;
    }

    conn = uct_daqiri_iface_conn(iface, qpn);
    if (conn != NULL) {
        iface->rx.last_conn = conn;
        iface->rx.last_qpn  = qpn;
    }
    return conn;
}


static void uct_daqiri_rx_on_wc(uct_daqiri_iface_t *iface,
                                const struct ibv_wc *wc)
{
    uct_daqiri_conn_t *conn;

    if (ucs_unlikely(wc->status != IBV_WC_SUCCESS)) {
        uct_daqiri_rx_on_error(iface, wc);
        return;
    }
    conn = uct_daqiri_rx_conn(iface, wc->qp_num);
    if (ucs_unlikely(conn == NULL)) {
        uct_daqiri_rx_drop(iface, wc->wr_id, &iface->count->stray_completions);
        return;
    }
    if (ucs_unlikely((conn->sq.gate == DQ_GATE_NOT_UP) ||
                     (conn->sq.gate == DQ_GATE_LOST))) {
        uct_daqiri_cm_command(conn, UCT_DAQIRI_CMD_READY);
    }
    uct_daqiri_rx_use_window(conn);
    uct_daqiri_rx_on_message(iface, conn, wc);
}


void uct_daqiri_rx_take(uct_daqiri_iface_t *iface, const struct ibv_wc *wc,
                        unsigned count)
{
    unsigned i;

    /* A message of a conn that we have not heard of yet came on RECVs that
     * the ledger does not know: what the async thread told goes first. */
    if (ucs_unlikely(uct_daqiri_cm_has_events(iface))) {
        uct_daqiri_conn_absorb(iface);
    }

    dq_rx_taken(&iface->rx.ledger, count);
    if (dq_rx_is_low(&iface->rx.ledger)) {
        uct_daqiri_rx_refill(iface);
    }
    for (i = 0; i < count; i++) {
        uct_daqiri_rx_on_wc(iface, &wc[i]);
    }
    DQ_ASSERT(dq_rx_check(&iface->rx.ledger));
}
