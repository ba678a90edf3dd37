/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts: what ibv_open_device() returns, and the list of all of them.
 */
#ifndef SV_CONTEXT_H
#define SV_CONTEXT_H

#include "softverbs/objects/sv_event.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sv_node;

struct sv_context {
    struct sv_node      *node;
    struct sv_context   *next;     /* all of the process */
    pthread_mutex_t      lock;
    struct sv_async      async;
    bool                 orphaned; /* inherited by a fork: dead */
    _Atomic uint32_t     num_pd;
    _Atomic uint32_t     num_ah;
    uint32_t             num_cq;   /* under lock */
    struct verbs_context vctx; /* last: its tail is struct ibv_context */
};

static inline struct sv_context *sv_context(struct ibv_context *ibctx)
{
    return (struct sv_context*)((char*)ibctx -
                                offsetof(struct sv_context, vctx.context));
}

/* Whether the context was inherited by a fork and is the parent's. Then making
 * or changing an object fails with EIO, and destroying one does nothing. */
static inline bool sv_is_orphaned(struct ibv_context *ibctx)
{
    return sv_context(ibctx)->orphaned;
}

/* Runs in the child of a fork: the device stays with the parent. */
void sv_contexts_orphan(void);
/* Posts an event of the port or the device to every context of the process. */
void sv_contexts_post_event(enum ibv_event_type type);
/* Add to the list of all contexts; remove from it. */
void sv_context_list(struct sv_context *ctx);
void sv_context_unlist(struct sv_context *ctx);

#endif
