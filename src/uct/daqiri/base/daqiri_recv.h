/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive buffers of an interface, which all its conns share: made, posted, kept by
 * UCP, and given back.
 *
 * Threads: progress, unless a function says any thread.
 */
#ifndef UCT_DAQIRI_RECV_H
#define UCT_DAQIRI_RECV_H

#include "iface/daqiri_iface.h"

/* What is in front of the headroom of a buffer that UCP keeps. UCX finds `release`
 * there. */
typedef struct {
    uint64_t         index; /* in the pool */
    uct_recv_desc_t *release;
} uct_daqiri_recv_desc_t;

/* Pieces of a RECV on this device. Any thread. */
uint32_t uct_daqiri_recv_pieces(uct_daqiri_iface_t *iface);
/* Opens the pool of receive buffers. Errors as uct_daqiri_pool_init(). Any thread. */
ucs_status_t uct_daqiri_recv_open_pool(uct_daqiri_iface_t *iface, size_t align,
                                       size_t offset);
/* Makes one piece of the two of a received message, and returns its data. */
void *uct_daqiri_recv_join(uct_daqiri_iface_t *iface, uint32_t index);

/* Makes @a count buffers that UCP may keep. Errors as uct_daqiri_pool_grow(). Any
 * thread. */
ucs_status_t uct_daqiri_recv_make(uct_daqiri_iface_t *iface, uint32_t count,
                                  uint32_t *first_p);
/* The same, and enters them in the ledger as free. Progress. */
ucs_status_t uct_daqiri_recv_add(uct_daqiri_iface_t *iface, uint32_t count);
/* Posts these buffers of the receive pool; UCT_DAQIRI_POLL_MAX at most. Returns how many,
 * from the first on, the device has taken. Any thread. */
uint32_t uct_daqiri_recv_post(uct_daqiri_iface_t *iface, const uint32_t *index,
                              uint32_t count);
/* The device has refused some. Counts that, logs the first time, and has progress post
 * them again. */
void uct_daqiri_recv_refused(uct_daqiri_iface_t *iface);
/* Posts the free buffers that are due, and makes more where handlers keep too many. */
void uct_daqiri_recv_refill(uct_daqiri_iface_t *iface);
/* The same while nothing arrives, but makes no buffers. */
void uct_daqiri_recv_catch_up(uct_daqiri_iface_t *iface);
/* Posts @a count of the free buffers; there must be so many. Refused buffers stay free,
 * and progress posts them again. */
void uct_daqiri_recv_post_free(uct_daqiri_iface_t *iface, uint32_t count);
/* Takes @a count of the buffers that closed conns have left. Zero, and none taken, if
 * there are fewer. Any thread. */
int uct_daqiri_recv_take_spare(uct_daqiri_iface_t *iface, uint32_t count);
/* Buffers that only new peers get. Any thread, as are the next two. */
uint32_t uct_daqiri_recv_reserve(const uct_daqiri_iface_t *iface);
/* Buffers that no window has, and that may still be made. */
uint32_t uct_daqiri_recv_left(uct_daqiri_iface_t *iface);
/* Whether fewer are left than are for new peers. */
int uct_daqiri_recv_are_few(uct_daqiri_iface_t *iface);
/* UCP gives back a buffer that it has kept. */
void uct_daqiri_recv_release_desc(uct_recv_desc_t *self, void *desc);

/* Returns the buffer to the pool and the ledger. */
static inline void uct_daqiri_recv_release(uct_daqiri_iface_t *iface,
                                           uint32_t index)
{
    dq_rx_release(&iface->rx.ledger);
    uct_daqiri_pool_put(&iface->rx.pool, index);
}

/* The data of a received message of @a length bytes, its header included. The header is
 * in front of them. */
static inline void *uct_daqiri_recv_data(uct_daqiri_iface_t *iface, uint32_t index,
                                         uint32_t length)
{
    if (ucs_unlikely(length > iface->config.rx_head)) {
        return uct_daqiri_recv_join(iface, index);
    }
    return iface->rx.pool.bufs[index].head;
}

/* Writes in front of @a data which buffer it is, and how UCP gives it back. The headroom
 * may have any length, hence memcpy. */
static inline void uct_daqiri_recv_mark(uct_daqiri_iface_t *iface, uint32_t index,
                                        void *data)
{
    const uct_daqiri_recv_desc_t before = {index, &iface->rx.release};
    ptrdiff_t distance                  = iface->config.headroom + sizeof(before);

    memcpy(UCS_PTR_BYTE_OFFSET(data, -distance), &before, sizeof(before));
}

#endif
