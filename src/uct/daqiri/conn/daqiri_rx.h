/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive line, as far as each progress call needs it: polling, and the buffers and
 * credits of a message. Inline, so that a call that finds nothing is one function, and a
 * call that finds a message, too.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_RX_H
#define UCT_DAQIRI_RX_H

#include "base/daqiri_cq.h"
#include "base/daqiri_recv.h"
#include "conn/daqiri_conn.h"

/* Sends the credit grants that no message carried in time, and what recalls need. Returns
 * how many messages. */
unsigned uct_daqiri_rx_grant(uct_daqiri_iface_t *iface);
/* A message of the peer's own, with this number in its immediate data: credits, or a
 * question for credits or its answer (dq_recall.h). Returns -1 and changes nothing if the
 * peer is broken. */
int uct_daqiri_rx_on_control(uct_daqiri_conn_t *conn, dq_msg_kind_t kind,
                             uint32_t count);
/* Something is due to the peer: UCT_DAQIRI_GRANT_*. The next progress call looks. */
void uct_daqiri_rx_add_due(uct_daqiri_conn_t *conn, int due);
/* The QP is gone, and all credits with it. Leaves the conn the least window; the other
 * buffers are for anybody. */
void uct_daqiri_rx_shrink(uct_daqiri_conn_t *conn);
/* The peer uses more than its window, which is narrow. Widens it as far as memory
 * allows. */
void uct_daqiri_rx_widen(uct_daqiri_conn_t *conn);
/* The peer has used a quarter, or half, of its window. Messages must carry credits from
 * now on, or a grant is due. */
void uct_daqiri_rx_on_mark(uct_daqiri_conn_t *conn);

/* How many credits the next message carries. */
static inline uint32_t uct_daqiri_rx_piggyback(const uct_daqiri_conn_t *conn)
{
    uint32_t count;

    if (ucs_likely(!dq_rx_may_piggyback(&conn->window))) {
        return 0;
    }
    count = dq_rx_grantable(&conn->iface->rx.ledger, &conn->window);
    return dq_min(count, DQ_WIRE_MAX_CREDIT);
}

/* Takes one batch at most into @a wc, which has room for UCT_DAQIRI_POLL_MAX. Completions
 * that arming has taken come before those in the CQ. */
static UCS_F_ALWAYS_INLINE unsigned
uct_daqiri_rx_poll(uct_daqiri_iface_t *iface, struct ibv_wc *wc)
{
    return uct_daqiri_cq_poll(&iface->rx.prefetched, iface->rx.cq,
                              iface->poll_batch, wc);
}

/* The peer grants what we have used. Returns -1 and changes nothing if the peer is
 * broken: it grants more than the whole window. */
static inline int uct_daqiri_rx_credit(uct_daqiri_conn_t *conn, uint32_t count)
{
    if (ucs_unlikely(dq_sq_credit(&conn->sq, count) != 0)) {
        return -1;
    }
    conn->iface->tx.wake = 1;
    return 0;
}

/* The credits that an active message carries. Before the conn is up there are none. */
static inline void uct_daqiri_rx_take_credit(uct_daqiri_conn_t *conn,
                                             const struct ibv_wc *wc)
{
    if ((wc->wc_flags & IBV_WC_WITH_IMM) &&
        ucs_unlikely(uct_daqiri_rx_credit(conn, ntohl(wc->imm_data)) != 0)) {
        conn->iface->count->rx_dropped[DQ_WIRE_BAD_FIELD]++;
    }
}

/* This message has used one credit of the peer's. */
static inline void uct_daqiri_rx_use_window(uct_daqiri_iface_t *iface,
                                            uct_daqiri_conn_t *conn)
{
    if (dq_rx_use(&iface->rx.ledger, &conn->window)) {
        uct_daqiri_rx_on_mark(conn);
    }
}

/* The QP is lost, and with it all that peers have asked each other for. */
static inline void uct_daqiri_rx_forget(uct_daqiri_conn_t *conn)
{
    dq_recall_lost(&conn->recall.window);
    conn->recall.is_asked = 0;
}

#endif
