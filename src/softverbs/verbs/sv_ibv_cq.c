/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: created, resized, destroyed. */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_limits.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/engine/sv_scan.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/objects/sv_channel.h"
#include "softverbs/objects/sv_context.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_event.h"
#include "softverbs/objects/sv_hooks.h"

#include <errno.h>
#include <stdlib.h>

static struct sv_cq *sv_cq_new(int cqe)
{
    uint32_t room    = sv_roundup_pow2(cqe);
    struct sv_cq *cq = calloc(1, sizeof(*cq));

    if (cq == NULL) {
        return NULL;
    }

    cq->ring = calloc(room, sizeof(*cq->ring));
    if (cq->ring == NULL) {
        free(cq);
        return NULL;
    }

    cq->mask     = room - 1;
    cq->size     = cqe;
    cq->room     = cqe;
    cq->base.cqe = cqe;
    pthread_mutex_init(&cq->base.mutex, NULL);
    pthread_cond_init(&cq->base.cond, NULL);
    return cq;
}

static void sv_cq_free(struct sv_cq *cq)
{
    pthread_cond_destroy(&cq->base.cond);
    pthread_mutex_destroy(&cq->base.mutex);
    sv_scan_cleanup(cq);
    free(cq->ring);
    free(cq);
}

SV_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
                                       void *cq_context,
                                       struct ibv_comp_channel *channel,
                                       int comp_vector)
{
    struct sv_context *ctx = sv_context(context);
    struct sv_cq *cq;
    int ret = 0;

    if (sv_is_orphaned(context)) {
        errno = EIO;
        return NULL;
    }
    if ((cqe < 1) || (cqe > SV_LIMIT_CQE) || (comp_vector < 0) ||
        (comp_vector >= context->num_comp_vectors)) {
        errno = EINVAL;
        return NULL;
    }

    if (sv_hook_verb(SV_VERB_CREATE_CQ) != 0) {
        return NULL;
    }

    cq = sv_cq_new(cqe);
    if (cq == NULL) {
        errno = ENOMEM;
        return NULL;
    }

    cq->base.context    = context;
    cq->node            = ctx->node;
    cq->base.cq_context = cq_context;
    cq->base.channel    = channel;

    pthread_mutex_lock(&ctx->lock);
    if (ctx->num_cq >= SV_CQ_MAX - 1) {
        errno = ENOMEM;
        ret   = -1;
    } else if (channel != NULL) {
        ret = sv_cq_bind_channel(cq, (struct sv_channel*)channel);
    }
    if (ret == 0) {
        ++ctx->num_cq;
    }
    pthread_mutex_unlock(&ctx->lock);
    if (ret != 0) {
        sv_cq_free(cq);
        return NULL;
    }

    pthread_mutex_lock(&ctx->node->objects_lock);
    cq->next           = ctx->node->all_cqs;
    ctx->node->all_cqs = cq;
    pthread_mutex_unlock(&ctx->node->objects_lock);
    return &cq->base;
}

static void sv_cq_unlist(struct sv_node *node, struct sv_cq *cq)
{
    struct sv_cq **pp;

    pthread_mutex_lock(&node->objects_lock);
    for (pp = &node->all_cqs; *pp != cq; pp = &(*pp)->next) {
    }
    *pp = cq->next;
    pthread_mutex_unlock(&node->objects_lock);
}

SV_EXPORT int ibv_destroy_cq(struct ibv_cq *ibcq)
{
    struct sv_context *ctx = sv_context(ibcq->context);
    struct sv_cq *cq       = sv_cq(ibcq);
    uint32_t events;

    if (sv_is_orphaned(ibcq->context)) {
        return 0;
    }
    if (atomic_load(&cq->users) > 0) {
        return EBUSY;
    }

    sv_cq_unlist(ctx->node, cq);
    pthread_mutex_lock(&ctx->lock);
    sv_cq_unbind_channel(cq);
    --ctx->num_cq;
    pthread_mutex_unlock(&ctx->lock);

    pthread_mutex_lock(&ctx->node->lock);
    events = cq->events_sent;
    pthread_mutex_unlock(&ctx->node->lock);
    pthread_mutex_lock(&ibcq->mutex);
    while (ibcq->comp_events_completed != events) {
        pthread_cond_wait(&ibcq->cond, &ibcq->mutex);
    }
    pthread_mutex_unlock(&ibcq->mutex);

    sv_async_remove(ctx, ibcq, &ibcq->mutex, &ibcq->cond,
                    &ibcq->async_events_completed, &cq->async_sent);
    sv_cq_free(cq);
    return 0;
}

SV_EXPORT int ibv_resize_cq(struct ibv_cq *ibcq, int cqe)
{
    struct sv_cq *cq = sv_cq(ibcq);
    struct sv_cqe *ring;
    uint32_t i, room, count;
    int fault;

    if ((cqe < 1) || (cqe > SV_LIMIT_CQE)) {
        return EINVAL;
    }

    fault = sv_hook_verb(SV_VERB_RESIZE_CQ);
    if (fault != 0) {
        return fault;
    }

    room = sv_roundup_pow2(cqe);
    ring = calloc(room, sizeof(*ring));
    if (ring == NULL) {
        return ENOMEM;
    }

    sv_spin_lock(&cq->lock);
    count = sv_cq_count(cq);
    if (count > (uint32_t)cqe) {
        sv_spin_unlock(&cq->lock);
        free(ring);
        return EINVAL;
    }

    for (i = 0; i < count; ++i) {
        ring[i] = cq->ring[(atomic_load(&cq->head) + i) & cq->mask];
    }
    free(cq->ring);
    cq->announced -= atomic_load(&cq->head);
    cq->ring     = ring;
    cq->mask     = room - 1;
    cq->size     = cqe;
    cq->room     = (cq->room != 0) ? cqe : 0;
    cq->base.cqe = cqe;
    atomic_store(&cq->head, 0);
    atomic_store(&cq->tail, count);
    sv_spin_unlock(&cq->lock);
    return 0;
}
