/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: verbs around objects/sv_rq.c. */
#include "softverbs/base/sv_limits.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/fabric/sv_table.h"
#include "softverbs/objects/sv_check.h"
#include "softverbs/objects/sv_context.h"
#include "softverbs/objects/sv_event.h"
#include "softverbs/objects/sv_hooks.h"
#include "softverbs/objects/sv_pd.h"
#include "softverbs/objects/sv_rq.h"
#include "softverbs/objects/sv_srq.h"
#include "softverbs/verbs/sv_ibv.h"

#include <errno.h>
#include <stdlib.h>

static int sv_srq_bind(struct sv_srq *srq, struct sv_context *ctx)
{
    struct sv_node *node = ctx->node;
    int index;

    pthread_mutex_lock(&node->lock);
    index = sv_table_take(node, &node->srq_table);
    pthread_mutex_unlock(&node->lock);
    if (index < 0) {
        return -1;
    }

    srq->index          = index;
    srq->shm            = sv_peer_srq(node->self, index);
    srq->rq.shm_posted  = &srq->shm->posted;
    srq->rq.shm_min_len = &srq->shm->min_len;
    sv_rq_reset(&srq->rq);
    atomic_store(&srq->shm->claimed, 0);
    return 0;
}

SV_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
                                         struct ibv_srq_init_attr *init)
{
    struct sv_context *ctx = sv_context(pd->context);
    struct sv_srq *srq;

    if (sv_is_orphaned(pd->context)) {
        errno = EIO;
        return NULL;
    }
    if ((init->attr.max_wr < 1) || (init->attr.max_wr > SV_LIMIT_SRQ_WR) ||
        (init->attr.max_sge < 1) || (init->attr.max_sge > SV_LIMIT_SGE)) {
        errno = EINVAL;
        return NULL;
    }

    if (sv_hook_verb(SV_VERB_CREATE_SRQ) != 0) {
        return NULL;
    }

    srq = calloc(1, sizeof(*srq));
    if (srq == NULL) {
        return NULL;
    }

    if ((sv_rq_init(&srq->rq, ctx->node, sv_pd(pd)->pdn, init->attr.max_wr,
                    init->attr.max_sge) != 0) || (sv_srq_bind(srq, ctx) != 0)) {
        sv_rq_cleanup(&srq->rq);
        free(srq);
        errno = ENOMEM;
        return NULL;
    }

    srq->base.context     = pd->context;
    srq->base.pd          = pd;
    srq->base.srq_context = init->srq_context;
    srq->base.handle      = srq->index;
    pthread_mutex_init(&srq->base.mutex, NULL);
    pthread_cond_init(&srq->base.cond, NULL);
    atomic_fetch_add(&sv_pd(pd)->users, 1);
    return &srq->base;
}

SV_EXPORT int ibv_destroy_srq(struct ibv_srq *ibsrq)
{
    struct sv_context *ctx = sv_context(ibsrq->context);
    struct sv_srq *srq     = sv_srq(ibsrq);

    if (sv_is_orphaned(ibsrq->context)) {
        return 0;
    }
    if (atomic_load(&srq->users) > 0) {
        return EBUSY;
    }

    sv_async_remove(ctx, ibsrq, &ibsrq->mutex, &ibsrq->cond,
                    &ibsrq->events_completed, &srq->async_sent);
    pthread_mutex_lock(&ctx->node->lock);
    sv_table_give(&ctx->node->srq_table, srq->index);
    pthread_mutex_unlock(&ctx->node->lock);
    atomic_fetch_sub(&sv_pd(ibsrq->pd)->users, 1);
    pthread_cond_destroy(&ibsrq->cond);
    pthread_mutex_destroy(&ibsrq->mutex);
    sv_rq_cleanup(&srq->rq);
    free(srq);
    return 0;
}

/* Arms the limit. Reaching it disarms it. */
SV_EXPORT int ibv_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr,
                             int mask)
{
    struct sv_srq *srq = sv_srq(ibsrq);
    int ret            = sv_hook_verb(SV_VERB_MODIFY_SRQ);

    if (ret != 0) {
        return ret;
    }
    if ((mask & IBV_SRQ_MAX_WR) != 0) {
        return EOPNOTSUPP; /* IBV_DEVICE_SRQ_RESIZE is not advertised */
    }
    if ((mask & IBV_SRQ_LIMIT) == 0) {
        return 0;
    }
    if (attr->srq_limit > srq->rq.depth) {
        return EINVAL;
    }

    atomic_store(&srq->limit, attr->srq_limit);
    sv_srq_check(srq);
    return 0;
}

SV_EXPORT int ibv_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
    struct sv_srq *srq = sv_srq(ibsrq);

    attr->max_wr    = srq->rq.depth;
    attr->max_sge   = srq->rq.max_sge;
    attr->srq_limit = atomic_load(&srq->limit);
    return 0;
}

int sv_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
                     struct ibv_recv_wr **bad)
{
    return sv_rq_post(&sv_srq(ibsrq)->rq, wr, NULL, bad);
}
