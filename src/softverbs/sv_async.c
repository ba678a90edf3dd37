/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events arise in this process only: a list, and an eventfd that
 * counts it, which is the file descriptor that programs wait for.
 */
#include "sv.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct sv_event {
    struct sv_event       *next;
    struct ibv_async_event event;
};

int sv_async_init(struct sv_async *async)
{
    async->first = NULL;
    async->last  = &async->first;
    async->fd    = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    return (async->fd < 0) ? -1 : 0;
}

void sv_async_cleanup(struct sv_async *async)
{
    struct sv_event *event;

    while ((event = async->first) != NULL) {
        async->first = event->next;
        free(event);
    }
    close(async->fd);
}

void sv_event_post(struct sv_context *ctx, enum ibv_event_type type,
                   void *element)
{
    struct sv_async *async = &ctx->async;
    struct sv_event *event = calloc(1, sizeof(*event));
    uint64_t one           = 1;

    if (event == NULL) {
        sv_log("out of memory, an asynchronous event (%d) is lost", type);
        return;
    }

    event->event.event_type = type;
    if (element != NULL) {
        event->event.element.qp = element;
    } else {
        event->event.element.port_num = 1;
    }
    sv_spin_lock(&async->lock);
    *async->last = event;
    async->last  = &event->next;
    sv_spin_unlock(&async->lock);
    (void)!write(async->fd, &one, sizeof(one));
}

/* Where an object keeps the counts on its asynchronous events. */
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

bool sv_event_is_of_port(enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
        return true;
    default:
        return false;
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
            /* Counted under this lock, so that a destroy which no longer
             * finds the event in the list knows that it was handed out. */
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

/* Takes the events of an element out of the list; returns how many. */
static unsigned sv_async_unlist(struct sv_async *async, void *element)
{
    struct sv_event **pp = &async->first;
    struct sv_event *event;
    unsigned count = 0;

    while ((event = *pp) != NULL) {
        if (event->event.element.qp == element) {
            *pp = event->next;
            free(event);
            ++count;
        } else {
            pp = &event->next;
        }
    }
    async->last = pp;
    return count;
}

void sv_async_remove(struct sv_context *ctx, void *element,
                     pthread_mutex_t *mutex, pthread_cond_t *cond,
                     const uint32_t *acked, const uint32_t *sent)
{
    struct sv_async *async = &ctx->async;
    struct pollfd pfd      = {.fd = async->fd, .events = POLLIN};
    unsigned count;
    uint32_t given;
    uint64_t one;

    sv_spin_lock(&async->lock);
    count = sv_async_unlist(async, element);
    given = *sent;
    sv_spin_unlock(&async->lock);

    for (; (count > 0) && (poll(&pfd, 1, 0) == 1); --count) {
        (void)!read(async->fd, &one, sizeof(one));
    }

    pthread_mutex_lock(mutex);
    while (*acked != given) {
        pthread_cond_wait(cond, mutex);
    }
    pthread_mutex_unlock(mutex);
}
