/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events of a context: a list, and an eventfd that counts it. They
 * come from this process only. Programs poll the eventfd.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/objects/sv_context.h"
#include "softverbs/objects/sv_event.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

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

/* Removes the events of an element from the list; returns their number. */
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
