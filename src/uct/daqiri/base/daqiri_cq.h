/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The only ibv_poll_cq of RC queue pairs.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_CQ_H
#define UCT_DAQIRI_CQ_H

#include "daqiri.h"

/* Completions that arming has taken from a CQ, for the next progress call. */
typedef struct {
    int           count;
    struct ibv_wc *wc;  /* [UCT_DAQIRI_PREFETCH_MAX] */
} uct_daqiri_prefetched_t;

/* What is left of a batch of completions that is being handled. */
typedef struct {
    const struct ibv_wc *next;
    unsigned            left;
} uct_daqiri_hand_t;

/* Takes @a max completions at most into @a wc. A CQ that has failed returns none; its
 * event reports it. */
static UCS_F_ALWAYS_INLINE int
uct_daqiri_cq_take(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
    int count = ibv_poll_cq(cq, max, wc);

    return ucs_likely(count >= 0) ? count : 0;
}

/* The same, but completions that arming has found come first. @a wc has room for
 * UCT_DAQIRI_PREFETCH_MAX of them. */
static UCS_F_ALWAYS_INLINE int
uct_daqiri_cq_poll(uct_daqiri_prefetched_t *prefetched, struct ibv_cq *cq,
                   int max, struct ibv_wc *wc)
{
    int count = prefetched->count;

    if (ucs_likely(count == 0)) {
        return uct_daqiri_cq_take(cq, max, wc);
    }
    memcpy(wc, prefetched->wc, count * sizeof(*wc));
    prefetched->count = 0;
    return count;
}

#endif
