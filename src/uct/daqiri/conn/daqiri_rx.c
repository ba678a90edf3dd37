/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The windows of conns, and the credits that they grant.
 */
#include "conn/daqiri_rx.h"

#include "base/daqiri_log.h"
#include "base/daqiri_pool.h"
#include "conn/daqiri_budget.h"
#include "conn/daqiri_conn.h"
#include "conn/daqiri_op.h"
#include "conn/daqiri_tx.h"
#include "iface/daqiri_iface.h"

enum {
    /* Least times from one call for room to the next. A conn that has received nothing
     * from one call to the next is idle, so the second one is longer than a process
     * that streams waits for a processor. */
    UCT_DAQIRI_RECALL_MS    = 1,  /* for a new peer                          */
    UCT_DAQIRI_LEVEL_MS     = 20, /* for a window that is to become wider    */
    UCT_DAQIRI_CREDITS_KEPT = 3   /* beside those that go back: for the answer, for
                                     one message, and for a grant */
};


/* ---- Windows ---- */

void uct_daqiri_rx_add_due(uct_daqiri_conn_t *conn, int due)
{
    if (!conn->grant.due) {
        conn->grant.due = due;
        uct_daqiri_iface_add_work(conn->iface, UCT_DAQIRI_WORK_LISTS);
        ucs_list_add_tail(&conn->iface->rx.grants_due, &conn->grant.link);
    }
}


/* What each peer that uses more than the least window may have, if they share all
 * buffers that are not reserved. */
static uint32_t uct_daqiri_rx_share(uct_daqiri_iface_t *iface)
{
    const dq_rx_t *ledger = &iface->rx.ledger;
    uint32_t least        = UCT_DAQIRI_WINDOW_LEAST;
    uint32_t wide         = 0;
    uint64_t used         = ledger->slack + uct_daqiri_recv_reserve(iface);
    uct_daqiri_conn_t *conn;

    ucs_list_for_each(conn, &iface->conns, iface_link) {
        wide += conn->window.size > least;
        used += ucs_min(conn->window.size, least);
    }
    return (used < ledger->limit)
                   ? least + (ledger->limit - used) / ucs_max(wide, 1) : least;
}


/* A window that has not been used since buffers were last missing becomes as small as it
 * may be. */
static void uct_daqiri_rx_call_back(uct_daqiri_conn_t *conn, uint32_t share)
{
    uct_daqiri_iface_t *iface = conn->iface;
    int is_idle               = conn->recall.rx_seq == conn->rx_seq;
    uint32_t freed;

    conn->recall.rx_seq = conn->rx_seq;
    if (conn->state != DQ_LIFE_UP) {
        return;
    }
    freed = dq_recall_want(&conn->recall.window, &iface->rx.ledger, &conn->window,
                           is_idle ? UCT_DAQIRI_WINDOW_LEAST : share);
    __atomic_add_fetch(&iface->rx.spare, freed, __ATOMIC_ACQ_REL);
    if (conn->recall.window.state == DQ_RECALL_DUE) {
        uct_daqiri_rx_add_due(conn, UCT_DAQIRI_GRANT_NEXT);
    }
}


/* Whether the last call for room is less than so long ago. */
static int uct_daqiri_rx_has_called(const uct_daqiri_iface_t *iface, unsigned ms)
{
    return ucs_get_time() - iface->rx.recalled_at < ucs_time_from_msec(ms);
}


/* Asks peers for credits that they do not use, or that are more than their share. */
static void uct_daqiri_rx_make_room(uct_daqiri_iface_t *iface, unsigned ms)
{
    uct_daqiri_conn_t *conn;

    if (uct_daqiri_rx_has_called(iface, ms)) {
        return;
    }
    iface->rx.recalled_at = ucs_get_time();
    iface->rx.share       = uct_daqiri_rx_share(iface);
    ucs_list_for_each(conn, &iface->conns, iface_link) {
        uct_daqiri_rx_call_back(conn, iface->rx.share);
    }
}


/* What is left for a window when buffers are missing: up to its share of all. None if
 * that is less than a chunk. */
static uint32_t uct_daqiri_rx_rest(const uct_daqiri_conn_t *conn, uint32_t room)
{
    uint32_t share = conn->iface->rx.share;
    uint32_t rest  = dq_min(room, share - dq_min(share, conn->window.size));

    return (rest >= UCT_DAQIRI_WINDOW_LEAST) ? rest : 0;
}


/* By how much the window may become wider now. The buffers for new peers stay. A window
 * that has its share does not look for more until the next call for room. */
static uint32_t uct_daqiri_rx_wider_by(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;
    uint32_t reserve          = uct_daqiri_recv_reserve(iface);
    uint32_t count            = dq_rx_wider_by(&conn->window);
    uint32_t left, room;

    if ((conn->window.size >= iface->rx.share) &&
        uct_daqiri_rx_has_called(iface, UCT_DAQIRI_LEVEL_MS)) {
        return 0;
    }
    left = uct_daqiri_recv_left(iface);
    room = left - dq_min(left, reserve);
    if (count > room) {
        uct_daqiri_rx_make_room(iface, UCT_DAQIRI_LEVEL_MS);
        count = dq_min(count, uct_daqiri_rx_rest(conn, room));
    }
    /* The call may have been for credits of this window, too. */
    return (conn->recall.window.state == DQ_RECALL_REST) ? count : 0;
}


void uct_daqiri_rx_widen(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;
    uint32_t count            = uct_daqiri_rx_wider_by(conn);
    ucs_status_t status       = UCS_OK;

    if (count == 0) {
        return; /* until others have given credits back, or a conn closes */
    }
    if (!uct_daqiri_recv_take_spare(iface, count)) {
        status = uct_daqiri_recv_add(iface, count);
    }
    if (status == UCS_ERR_NO_RESOURCE) {
        return; /* the async thread has taken them */
    }
    if (status != UCS_OK) {
        dq_rx_settle(&conn->window);
        return;
    }
    if (!dq_rx_widen(&iface->rx.ledger, &conn->window, count)) {
        __atomic_add_fetch(&iface->rx.spare, count, __ATOMIC_ACQ_REL);
        return; /* handlers keep too many buffers */
    }
    iface->count->windows_widened++;
    uct_daqiri_recv_refill(iface);
}


/* ---- Messages of our own ---- */

void uct_daqiri_rx_on_mark(uct_daqiri_conn_t *conn)
{
    dq_sq_return_tokens(&conn->sq, &conn->iface->tx.ledger);
    if (dq_rx_grant_is_due(&conn->window)) {
        uct_daqiri_rx_add_due(conn, UCT_DAQIRI_GRANT_NEW);
    }
}


/* Inline, unless the device has no inline data or the user wants none. */
static ucs_status_t uct_daqiri_rx_send(uct_daqiri_conn_t *conn, dq_msg_kind_t kind,
                                       uint32_t count)
{
    uct_daqiri_pool_t *pool = &conn->iface->tx.pool;
    uct_daqiri_tx_t tx      = {
        .wr_class = (kind == DQ_MSG_GRANT) ? DQ_WR_GRANT : DQ_WR_CONTROL,
        .opcode   = IBV_WR_SEND_WITH_IMM,
        .flags    = IBV_SEND_INLINE,
        .imm      = count,
        .signal   = kind == DQ_MSG_CLOSE, /* somebody waits for its end */
        .op       = {.desc = UCT_DAQIRI_NO_DESC},
    };
    dq_msg_hdr_t inlined;
    dq_msg_hdr_t *hdr  = &inlined;
    struct ibv_sge sge = {.length = sizeof(*hdr)};
    ucs_status_t status;

    if (dq_sq_admit(&conn->sq, &conn->iface->tx.ledger, tx.wr_class) !=
        DQ_ADMIT_OK) {
        return UCS_ERR_NO_RESOURCE;
    }
    if (conn->iface->config.max_inline < sizeof(*hdr)) {
        if (!uct_daqiri_tx_take_desc(conn->iface, &tx.op.desc, &tx.signal)) {
            return UCS_ERR_NO_RESOURCE;
        }
        tx.flags = 0;
        hdr      = (dq_msg_hdr_t*)pool->bufs[tx.op.desc].buf - 1;
        sge.lkey = pool->bufs[tx.op.desc].lkey;
    }

    dq_msg_pack(hdr, kind, 0, conn->grant.tx_number + 1);
    sge.addr = (uintptr_t)hdr;
    status   = uct_daqiri_tx_post(conn, &tx, &sge, 1);
    if (status == UCS_OK) {
        conn->grant.tx_number++;
        conn->iface->count->credit_frames_tx++;
        uct_daqiri_tx_note_internal(conn);
    }
    return status;
}


/* Whether a grant may wait for one progress call. A program that has just received
 * messages may be about to answer them, and an answer carries credits at no cost. */
static int uct_daqiri_rx_may_grant_wait(uct_daqiri_conn_t *conn)
{
    if ((conn->grant.due != UCT_DAQIRI_GRANT_NEW) ||
        dq_rx_grant_is_urgent(&conn->window)) {
        return 0;
    }
    conn->grant.due = UCT_DAQIRI_GRANT_NEXT;
    return 1;
}


/* Credits for the peer, if that is due. Returns how many messages it has sent. */
static unsigned uct_daqiri_rx_send_grant(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;
    uint32_t count;

    if (!dq_rx_grant_is_due(&conn->window) || uct_daqiri_rx_may_grant_wait(conn)) {
        return 0;
    }
    if (dq_rx_is_narrow(&conn->window)) {
        uct_daqiri_rx_widen(conn);
    }
    count = dq_min(dq_rx_grantable(&iface->rx.ledger, &conn->window),
                   DQ_WIRE_MAX_CREDIT);
    if ((count == 0) || (uct_daqiri_rx_send(conn, DQ_MSG_GRANT, count) != UCS_OK)) {
        conn->grant.due = UCT_DAQIRI_GRANT_STUCK;
        return 0;
    }
    dq_rx_grant(&iface->rx.ledger, &conn->window, count);
    return 1;
}


/* The answer to the peer's question. The message takes a credit, too. */
static unsigned uct_daqiri_rx_send_return(uct_daqiri_conn_t *conn)
{
    dq_cq_t *cq    = &conn->iface->tx.ledger;
    uint32_t count = dq_sq_give_back(&conn->sq, cq, conn->recall.asked,
                                     UCT_DAQIRI_CREDITS_KEPT);

    if (uct_daqiri_rx_send(conn, DQ_MSG_RETURN, count) != UCS_OK) {
        (void)dq_sq_credit(&conn->sq, count);
        conn->grant.due = UCT_DAQIRI_GRANT_STUCK;
        return 0;
    }
    conn->recall.is_asked = 0;
    conn->iface->count->credits_returned += count;
    return 1;
}


static unsigned uct_daqiri_rx_send_recall(uct_daqiri_conn_t *conn)
{
    uint32_t count = dq_min(conn->recall.window.count, DQ_WIRE_MAX_CREDIT);

    if (uct_daqiri_rx_send(conn, DQ_MSG_RECALL, count) != UCS_OK) {
        conn->grant.due = UCT_DAQIRI_GRANT_STUCK;
        return 0;
    }
    dq_recall_sent(&conn->recall.window);
    conn->iface->count->windows_recalled++;
    return 1;
}


/* Our last message but grants. The fence: READs and atomics before it are over. */
static unsigned uct_daqiri_rx_send_close(uct_daqiri_conn_t *conn)
{
    uint32_t flags = conn->next_flags;

    conn->next_flags = IBV_SEND_FENCE;
    if (uct_daqiri_rx_send(conn, DQ_MSG_CLOSE, 0) != UCS_OK) {
        conn->next_flags = flags;
        conn->grant.due  = UCT_DAQIRI_GRANT_STUCK;
        return 0;
    }
    uct_daqiri_budget_on_sent(conn);
    uct_daqiri_conn_step(conn, DQ_LIFE_EV_CLOSE);
    return 1;
}


static int uct_daqiri_rx_is_any_due(const uct_daqiri_conn_t *conn)
{
    return !dq_life_is_over(conn->state) && (conn->idle.state != DQ_IDLE_BOTH) &&
           (dq_idle_is_due(conn->idle.state) || conn->recall.is_asked ||
            dq_rx_grant_is_due(&conn->window) ||
            (conn->recall.window.state == DQ_RECALL_DUE));
}


/* All that is due to the peer of one conn. */
static unsigned uct_daqiri_rx_send_due(uct_daqiri_conn_t *conn)
{
    unsigned sent = 0;

    if (conn->recall.is_asked) {
        sent += uct_daqiri_rx_send_return(conn);
    }
    if (conn->recall.window.state == DQ_RECALL_DUE) {
        sent += uct_daqiri_rx_send_recall(conn);
    }
    sent += uct_daqiri_rx_send_grant(conn);
    if (dq_idle_is_due(conn->idle.state)) {
        sent += uct_daqiri_rx_send_close(conn);
    }
    return sent;
}


void uct_daqiri_rx_shrink(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;
    dq_rx_window_t *window    = &conn->window;
    uint32_t over, cut;

    if (!window->backed || (window->size <= UCT_DAQIRI_WINDOW_LEAST)) {
        return;
    }
    cut  = dq_rx_cut(&iface->rx.ledger, window, UCT_DAQIRI_WINDOW_LEAST);
    over = window->size - UCT_DAQIRI_WINDOW_LEAST;
    dq_rx_give_back(&iface->rx.ledger, window, over);
    __atomic_add_fetch(&iface->rx.spare, cut + over, __ATOMIC_ACQ_REL);
}


unsigned uct_daqiri_rx_grant(uct_daqiri_iface_t *iface)
{
    uct_daqiri_conn_t *conn, *next;
    unsigned sent = 0;

    uct_daqiri_assert_progress(iface);
    if (ucs_unlikely(iface->rx.has_new_peer)) {
        iface->rx.has_new_peer = 0;
        if (uct_daqiri_recv_are_few(iface)) {
            uct_daqiri_rx_make_room(iface, UCT_DAQIRI_RECALL_MS);
        }
    }
    ucs_list_for_each_safe(conn, next, &iface->rx.grants_due, grant.link) {
        if (!uct_daqiri_rx_is_any_due(conn)) {
            conn->grant.due = 0;
            ucs_list_del(&conn->grant.link);
            continue;
        }
        sent += uct_daqiri_rx_send_due(conn);
    }
    return sent;
}


/* ---- Messages of the peer's own ---- */

/* The peer wants credits back. A second question before the answer adds nothing. */
static void uct_daqiri_rx_on_recall(uct_daqiri_conn_t *conn, uint32_t count)
{
    conn->recall.asked    = count;
    conn->recall.is_asked = 1;
    uct_daqiri_rx_add_due(conn, UCT_DAQIRI_GRANT_NEXT);
}


static int uct_daqiri_rx_on_return(uct_daqiri_conn_t *conn, uint32_t count)
{
    uct_daqiri_iface_t *iface = conn->iface;

    if (dq_recall_back(&conn->recall.window, &iface->rx.ledger, &conn->window,
                       count) != 0) {
        return -1;
    }
    __atomic_add_fetch(&iface->rx.spare, count, __ATOMIC_ACQ_REL);
    return 0;
}


/* The QP may be lost before its last messages are read. Then all that the peers have
 * asked each other for on it is void. */
int uct_daqiri_rx_on_control(uct_daqiri_conn_t *conn, dq_msg_kind_t kind,
                             uint32_t count)
{
    if (!dq_qp_is_alive(conn->qp.state)) {
        return 0;
    }
    switch (kind) {
    case DQ_MSG_RECALL:
        uct_daqiri_rx_on_recall(conn, count);
        return 0;
    case DQ_MSG_RETURN:
        return uct_daqiri_rx_on_return(conn, count);
    case DQ_MSG_CLOSE:
        uct_daqiri_rx_add_due(conn, UCT_DAQIRI_GRANT_NEXT);
        return uct_daqiri_budget_on_heard(conn);
    default:
        return uct_daqiri_rx_credit(conn, count);
    }
}
