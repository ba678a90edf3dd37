/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_get_async_event() and ibv_ack_async_event().
 *
 * An object counts the events that were read and those that were acknowledged.
 * Its destruction waits until both counts are equal (sv_async_remove).
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/objects/sv_context.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_event.h"
#include "softverbs/objects/sv_qp.h"
#include "softverbs/objects/sv_srq.h"

#include <stdlib.h>
#include <unistd.h>

/* Where an object counts its asynchronous events. */
struct sv_event_counts {
    pthread_mutex_t *mutex;
    pthread_cond_t  *cond;
    uint32_t        *acked;
    uint32_t        *sent;
};

static bool sv_event_counts_of(const struct ibv_async_event *event,
                               struct sv_event_counts *counts_p)
{
    struct ibv_qp *qp;
    struct ibv_cq *cq;
    struct ibv_srq *srq;

    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        cq       = event->element.cq;
        *counts_p = (struct sv_event_counts){&cq->mutex, &cq->cond,
                                            &cq->async_events_completed,
                                            &sv_cq(cq)->async_sent};
        return true;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        qp       = event->element.qp;
        *counts_p = (struct sv_event_counts){&qp->mutex, &qp->cond,
                                            &qp->events_completed,
                                            &sv_qp(qp)->async_sent};
        return true;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        srq      = event->element.srq;
        *counts_p = (struct sv_event_counts){&srq->mutex, &srq->cond,
                                            &srq->events_completed,
                                            &sv_srq(srq)->async_sent};
        return true;
    default:
        return false; /* of the port or the device: nobody waits */
    }
}

SV_EXPORT int ibv_get_async_event(struct ibv_context *context,
                                  struct ibv_async_event *event_p)
{
    struct sv_async *async = &sv_context(context)->async;
    struct sv_event_counts counts;
    struct sv_event *event;
    uint64_t one;

    do {
        if (read(async->fd, &one, sizeof(one)) != (ssize_t)sizeof(one)) {
            return -1;
        }

        sv_spin_lock(&async->lock);
        event = async->first;
        if (event != NULL) {
            async->first = event->next;
            if (async->first == NULL) {
                async->last = &async->first;
            }
            /* Counted under this lock: a destroy that no longer finds the event
             * in the list knows that it was handed out. */
            if (sv_event_counts_of(&event->event, &counts)) {
                ++*counts.sent;
            }
        }
        sv_spin_unlock(&async->lock);
    } while (event == NULL); /* taken back by sv_async_remove() */

    *event_p = event->event;
    free(event);
    return 0;
}

SV_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
    struct sv_event_counts counts;

    if (!sv_event_counts_of(event, &counts)) {
        return;
    }

    pthread_mutex_lock(counts.mutex);
    ++*counts.acked;
    pthread_cond_signal(counts.cond);
    pthread_mutex_unlock(counts.mutex);
}
