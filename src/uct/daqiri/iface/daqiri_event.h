/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeping until something completes.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_EVENT_H
#define UCT_DAQIRI_EVENT_H

#include "daqiri.h"

/* Completions that arming has taken from a CQ, for the next progress call. */
typedef struct {
    int           count;
    struct ibv_wc *wc;  /* [UCT_DAQIRI_PREFETCH_MAX] */
} uct_daqiri_prefetched_t;

/* Makes the channel of the CQs. After a failure cleanup frees what was made. */
ucs_status_t uct_daqiri_event_init(uct_daqiri_iface_t *iface);
void uct_daqiri_event_cleanup(uct_daqiri_iface_t *iface);
ucs_status_t uct_daqiri_iface_event_fd_get(uct_iface_h tl_iface, int *fd_p);
ucs_status_t uct_daqiri_iface_event_arm(uct_iface_h tl_iface, unsigned events);
/* Takes @a max completions at most into @a wc. No other function takes completions of RC
 * queue pairs from a CQ. A CQ that has failed returns none; its event reports it. */
static UCS_F_ALWAYS_INLINE int
uct_daqiri_event_poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
    int count = ibv_poll_cq(cq, max, wc);

    return ucs_likely(count >= 0) ? count : 0;
}

/* The same, but completions that arming has found come first. @a wc has room for
 * UCT_DAQIRI_PREFETCH_MAX of them. */
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
