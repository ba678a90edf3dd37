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
/* What arming has found of a CQ, taken off the prefetched. Returns how many. */
static inline int uct_daqiri_event_take_prefetched(uct_daqiri_prefetched_t *prefetched,
                                                   struct ibv_wc *wc)
{
    int count = prefetched->count;

    if (ucs_unlikely(count != 0)) {
        memcpy(wc, prefetched->wc, count * sizeof(*wc));
        prefetched->count = 0;
    }
    return count;
}

/* There is news for progress. Async. */
void uct_daqiri_event_wake(uct_daqiri_iface_t *iface);

#endif
