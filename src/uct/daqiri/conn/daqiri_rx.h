/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive line, as far as each progress call needs it: polling, and the buffers and
 * credits of a message. Inline, so that a call that finds nothing is one function, and a
 * call that finds a message, too.
 *
 * Threads: progress, unless a function says any thread.
 */
#ifndef UCT_DAQIRI_RX_H
#define UCT_DAQIRI_RX_H

#include "conn/daqiri_conn.h"
#include "iface/daqiri_event.h"

/* Posts the free buffers that are due, and makes more where handlers keep too many. */
void uct_daqiri_rx_refill(uct_daqiri_iface_t *iface);
/* The same while nothing arrives, but makes no buffers. */
void uct_daqiri_rx_catch_up(uct_daqiri_iface_t *iface);
/* Posts @a count of the free buffers; there must be so many. Refused buffers stay free,
 * and progress posts them again. */
void uct_daqiri_rx_post_free(uct_daqiri_iface_t *iface, uint32_t count);
/* Sends the credit grants that no message carried in time. Returns how many. */
unsigned uct_daqiri_rx_grant(uct_daqiri_iface_t *iface);
/* Makes @a count buffers that UCP may keep. Errors as uct_daqiri_pool_grow(). Any
 * thread. */
ucs_status_t uct_daqiri_rx_make(uct_daqiri_iface_t *iface, uint32_t count,
                                uint32_t *first_p);
/* The same, and enters them in the ledger as free. Progress. */
ucs_status_t uct_daqiri_rx_add(uct_daqiri_iface_t *iface, uint32_t count);
/* Takes @a count of the buffers that closed conns have left. Zero, and none taken, if
 * there are fewer. Any thread. */
int uct_daqiri_rx_take_spare(uct_daqiri_iface_t *iface, uint32_t count);
/* The peer uses more than its window, which is narrow. Widens it as far as memory
 * allows. */
void uct_daqiri_rx_widen(uct_daqiri_conn_t *conn);
/* Posts these buffers of the receive pool; UCT_DAQIRI_POLL_MAX at most. Returns how many,
 * from the first on, the device has taken. Any thread. */
uint32_t uct_daqiri_rx_post(uct_daqiri_iface_t *iface, const uint32_t *index,
                            uint32_t count);
/* The peer has used a quarter, or half, of its window. Messages must carry credits from
 * now on, or a grant is due. */
void uct_daqiri_rx_on_mark(uct_daqiri_conn_t *conn);
/* The device has refused some. Counts that, logs the first time, and has progress post
 * them again. */
void uct_daqiri_rx_refused(uct_daqiri_iface_t *iface);
/* UCP gives back a buffer that it has kept. */
void uct_daqiri_rx_release_desc(uct_recv_desc_t *self, void *desc);

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
    return uct_daqiri_event_poll(&iface->rx.prefetched, iface->rx.cq,
                                 iface->poll_batch, wc);
}

/* Returns the buffer to the pool and the ledger. */
static inline void uct_daqiri_rx_release(uct_daqiri_iface_t *iface,
                                         uint32_t index)
{
    dq_rx_release(&iface->rx.ledger);
    uct_daqiri_pool_put(&iface->rx.pool, index);
}

/* The peer grants what we have used. A grant before the conn is up, or of more than the
 * whole window, is an error of the peer, and is dropped. */
static inline void uct_daqiri_rx_credit(uct_daqiri_conn_t *conn,
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

/* This message has used one credit of the peer's. */
static inline void uct_daqiri_rx_use_window(uct_daqiri_iface_t *iface,
                                            uct_daqiri_conn_t *conn)
{
    if (dq_rx_use(&iface->rx.ledger, &conn->window)) {
        uct_daqiri_rx_on_mark(conn);
    }
}

/* Writes in front of @a data how UCP gives the buffer back. The headroom may have any
 * length, hence memcpy. */
static inline void uct_daqiri_rx_mark(uct_daqiri_iface_t *iface, void *data)
{
    uct_recv_desc_t *release = &iface->rx.release;
    ptrdiff_t before         = iface->config.headroom + sizeof(release);

    memcpy(UCS_PTR_BYTE_OFFSET(data, -before), &release, sizeof(release));
}

#endif
