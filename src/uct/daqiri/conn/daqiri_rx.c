/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The windows of conns, and the credits that they grant.
 */
#include "conn/daqiri_rx.h"

#include "base/daqiri_log.h"
#include "base/daqiri_pool.h"
#include "conn/daqiri_conn.h"
#include "conn/daqiri_op.h"
#include "conn/daqiri_tx.h"
#include "iface/daqiri_iface.h"


/* ---- Windows ---- */

void uct_daqiri_rx_widen(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;
    uint32_t count            = dq_rx_wider_by(&conn->window);
    ucs_status_t status       = UCS_OK;

    if (!uct_daqiri_recv_take_spare(iface, count)) {
        status = uct_daqiri_recv_add(iface, count);
    }
    if (status == UCS_ERR_NO_RESOURCE) {
        return; /* at the memory limit, until a conn closes */
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


/* ---- Credits ---- */

void uct_daqiri_rx_on_mark(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;

    dq_sq_return_tokens(&conn->sq, &iface->tx.ledger);
    if (dq_rx_grant_is_due(&conn->window) && !conn->grant.due) {
        conn->grant.due  = UCT_DAQIRI_GRANT_NEW;
        uct_daqiri_iface_add_work(iface, UCT_DAQIRI_WORK_LISTS);
        ucs_list_add_tail(&iface->rx.grants_due, &conn->grant.link);
    }
}


/* Inline, unless the device has no inline data or the user wants none. */
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
        if (!uct_daqiri_tx_take_desc(conn->iface, &tx.op.desc, &tx.signal)) {
            return UCS_ERR_NO_RESOURCE;
        }
        tx.flags = 0;
        hdr      = (dq_msg_hdr_t*)pool->bufs[tx.op.desc].buf - 1;
        sge.lkey = pool->bufs[tx.op.desc].lkey;
    }

    dq_msg_pack(hdr, DQ_MSG_GRANT, 0, conn->grant.tx_number + 1);
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


unsigned uct_daqiri_rx_grant(uct_daqiri_iface_t *iface)
{
    uct_daqiri_conn_t *conn, *next;
    unsigned sent = 0;
    uint32_t count;

    uct_daqiri_assert_progress(iface);
    ucs_list_for_each_safe(conn, next, &iface->rx.grants_due, grant.link) {
        if (dq_life_is_over(conn->state) ||
            !dq_rx_grant_is_due(&conn->window)) {
            conn->grant.due = 0;
            ucs_list_del(&conn->grant.link);
            continue;
        }
        if (uct_daqiri_rx_may_grant_wait(conn)) {
            continue;
        }
        if (dq_rx_is_narrow(&conn->window)) {
            uct_daqiri_rx_widen(conn);
        }
        count = dq_min(dq_rx_grantable(&iface->rx.ledger, &conn->window),
                       DQ_WIRE_MAX_CREDIT);
        if ((count == 0) ||
            (dq_sq_admit(&conn->sq, &iface->tx.ledger, DQ_WR_GRANT) !=
             DQ_ADMIT_OK)) {
            conn->grant.due = UCT_DAQIRI_GRANT_STUCK;
            continue;
        }
        if (uct_daqiri_rx_send_grant(conn, count) != UCS_OK) {
            conn->grant.due = UCT_DAQIRI_GRANT_STUCK;
            continue;
        }
        dq_rx_grant(&iface->rx.ledger, &conn->window, count);
        sent++;
    }
    return sent;
}
