/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events of a context.
 */
#ifndef SV_EVENT_H
#define SV_EVENT_H

#include "softverbs/base/sv_atomic.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct sv_context;

struct sv_event {
    struct sv_event       *next;
    struct ibv_async_event event;
};

/* Asynchronous events of a context that the program has not read. */
struct sv_async {
    struct sv_spin    lock;
    struct sv_event  *first;
    struct sv_event **last;
    int               fd; /* eventfd that counts the events in the list */
};

int sv_async_init(struct sv_async *async);
void sv_async_cleanup(struct sv_async *async);
/* Posts an event. element NULL: of the port. */
void sv_event_post(struct sv_context *ctx, enum ibv_event_type type,
                   void *element);
bool sv_event_is_of_port(enum ibv_event_type type);
/* Call before an element is destroyed: removes its unread events and waits
 * until the program has acknowledged the others. The other arguments belong to
 * the element. */
void sv_async_remove(struct sv_context *ctx, void *element,
                     pthread_mutex_t *mutex, pthread_cond_t *cond,
                     const uint32_t *acked, const uint32_t *sent);

#endif
