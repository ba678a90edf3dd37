/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive line, as far as each progress call needs it: a look at what has
 * arrived, and what a message does to buffers and credits. Inline, so that a call
 * that finds nothing is one function, and one that finds a message, too.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_RX_H
#define UCT_DAQIRI_RX_H

#include "conn/daqiri_conn.h"
#include "iface/daqiri_event.h"

void uct_daqiri_rx_refill(uct_daqiri_iface_t *iface);
/* The same while nothing arrives: posts what is free, and makes nothing. */
void uct_daqiri_rx_catch_up(uct_daqiri_iface_t *iface);
/* Posts @a count of the free buffers; there are so many. What is refused stays
 * free, and is offered again by progress. */
void uct_daqiri_rx_post_free(uct_daqiri_iface_t *iface, uint32_t count);
/* Credit grants that no message carried in time. */
unsigned uct_daqiri_rx_grant(uct_daqiri_iface_t *iface);
/* Makes buffers that UCP may keep; as uct_daqiri_pool_grow(). Any thread. */
ucs_status_t uct_daqiri_rx_make(uct_daqiri_iface_t *iface, uint32_t count,
                                uint32_t *first_p);
/* The same, for the ledger: they are free. */
ucs_status_t uct_daqiri_rx_add(uct_daqiri_iface_t *iface, uint32_t count);
/* Takes @a count from the buffers that closed conns have left, if so many. Any
 * thread. */
int uct_daqiri_rx_take_spare(uct_daqiri_iface_t *iface, uint32_t count);
/* The peer uses more than its window, which is narrow: as far as memory goes, it
 * gets a wider one. */
void uct_daqiri_rx_widen(uct_daqiri_conn_t *conn);
/* Posts these buffers of the receive pool, BATCH_MAX at most. Returns how many of
 * them, from the first on, the device has taken. Any thread. */
uint32_t uct_daqiri_rx_post(uct_daqiri_iface_t *iface, const uint32_t *index,
                            uint32_t count);
/* It has not taken all. */
void uct_daqiri_rx_refused(uct_daqiri_iface_t *iface);
void uct_daqiri_rx_release_desc(uct_recv_desc_t *self, void *desc);

/* Should credits ride on a message now? Worth it from a quarter of the window. */
static inline int uct_daqiri_rx_may_piggyback(const uct_daqiri_conn_t *conn)
{
    return conn->window.owed * 4 >= conn->window.size;
}

/* How many. */
static inline uint32_t uct_daqiri_rx_piggyback(const uct_daqiri_conn_t *conn)
{
    uint32_t count;

    if (ucs_likely(!uct_daqiri_rx_may_piggyback(conn))) {
        return 0;
    }
    count = dq_rx_grantable(&conn->iface->rx.ledger, &conn->window);
    return dq_min(count, DQ_WIRE_MAX_CREDIT);
}

/* A batch at most of what has arrived into @a wc, which has room for BATCH_MAX.
 * What a wait for events has taken comes before what is still in the CQ. */
static UCS_F_ALWAYS_INLINE unsigned
uct_daqiri_rx_poll(uct_daqiri_iface_t *iface, struct ibv_wc *wc)
{
    return uct_daqiri_event_poll(&iface->event.rx, iface->rx.cq,
                                 iface->config.poll_batch, wc);
}

/* The buffer is free again. */
static inline void uct_daqiri_rx_release(uct_daqiri_iface_t *iface,
                                         uint32_t index)
{
    dq_rx_release(&iface->rx.ledger);
    uct_daqiri_pool_put(&iface->rx.pool, index);
}

/* A peer grants what we have used: before the conn is up that is nothing, and
 * more than its whole window it cannot have meant. */
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

/* Of what the peer was promised this message has used one. */
static inline void uct_daqiri_rx_use_window(uct_daqiri_iface_t *iface,
                                            uct_daqiri_conn_t *conn)
{
    dq_rx_use(&iface->rx.ledger, &conn->window);
    if (ucs_unlikely(dq_rx_grant_is_due(&conn->window) && !conn->grant_due)) {
        conn->grant_due  = UCT_DAQIRI_GRANT_NEW;
        iface->slow_work = 1;
        ucs_list_add_tail(&iface->rx.grants_due, &conn->grant_link);
    }
}

/* Says in the buffer of @a data how UCP gives it back. The headroom need not be a
 * multiple of anything, hence memcpy. */
static inline void uct_daqiri_rx_mark(uct_daqiri_iface_t *iface, void *data)
{
    uct_recv_desc_t *release = &iface->rx.release;
    ptrdiff_t before         = iface->config.headroom + sizeof(release);

    memcpy(UCS_PTR_BYTE_OFFSET(data, -before), &release, sizeof(release));
}

#endif
