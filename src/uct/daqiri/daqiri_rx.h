/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive line, as far as each progress call needs it: a look at what has
 * arrived. Inline, so that of a call that finds nothing this is all.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_RX_H
#define UCT_DAQIRI_RX_H

#include "daqiri.h"

/* A batch at most of what has arrived into @a wc, which has room for BATCH_MAX.
 * What a wait for events has taken comes before what is still in the CQ. */
static UCS_F_ALWAYS_INLINE unsigned
uct_daqiri_rx_poll(uct_daqiri_iface_t *iface, struct ibv_wc *wc)
{
    int count = uct_daqiri_event_unstash(&iface->event.rx, wc);

    if (ucs_likely(count == 0)) {
        count = ibv_poll_cq(iface->rx.cq, iface->config.batch, wc);
    }
    return ucs_likely(count >= 0) ? count : 0;
}

/* Refill, then handle these @a count, 1 at least, in their order. */
void uct_daqiri_rx_take(uct_daqiri_iface_t *iface, const struct ibv_wc *wc,
                        unsigned count);

#endif
