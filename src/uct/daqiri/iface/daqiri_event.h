/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeping until something completes.
 */
#ifndef UCT_DAQIRI_EVENT_H
#define UCT_DAQIRI_EVENT_H

#include "daqiri.h"

/* Completions that were taken when nobody could handle them. */
typedef struct {
    int           count;
    struct ibv_wc wc[UCT_DAQIRI_PREFETCH_MAX];
} uct_daqiri_prefetched_t;

/* Makes what the CQs need; what a failure leaves, cleanup takes. */
ucs_status_t uct_daqiri_event_init(uct_daqiri_iface_t *iface);
void uct_daqiri_event_cleanup(uct_daqiri_iface_t *iface);
ucs_status_t uct_daqiri_iface_event_fd_get(uct_iface_h tl_iface, int *fd_p);
ucs_status_t uct_daqiri_iface_event_arm(uct_iface_h tl_iface, unsigned events);
/* The only place where completions of RC queue pairs leave a CQ: @a max at most, into
 * @a wc. A CQ that has failed has none: its event says so. Progress. */
static UCS_F_ALWAYS_INLINE int
uct_daqiri_event_poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
    int count = ibv_poll_cq(cq, max, wc);

    return ucs_likely(count >= 0) ? count : 0;
}

/* The same. What arming has found comes first: @a wc has room for PREFETCH_MAX, too. */
static UCS_F_ALWAYS_INLINE int
uct_daqiri_event_poll(uct_daqiri_prefetched_t *prefetched, struct ibv_cq *cq,
                      int max, struct ibv_wc *wc)
{
    int count = prefetched->count;

    if (ucs_likely(count == 0)) {
        return uct_daqiri_event_poll_cq(cq, max, wc);
    }
    memcpy(wc, prefetched->wc, count * sizeof(*wc));
    prefetched->count = 0;
    return count;
}

#endif
