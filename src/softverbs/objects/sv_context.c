/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of open contexts: for events of the port, and for the child of a
 * fork.
 */
#include "softverbs/objects/sv_context.h"
#include "softverbs/objects/sv_event.h"

#include <errno.h>

/* Open contexts, for events of the port and for the child of a fork. */
static pthread_mutex_t sv_contexts_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct sv_context *sv_contexts;

void sv_context_list(struct sv_context *ctx)
{
    pthread_mutex_lock(&sv_contexts_mutex);
    ctx->next   = sv_contexts;
    sv_contexts = ctx;
    pthread_mutex_unlock(&sv_contexts_mutex);
}

void sv_context_unlist(struct sv_context *ctx)
{
    struct sv_context **pp;

    pthread_mutex_lock(&sv_contexts_mutex);
    for (pp = &sv_contexts; (*pp != NULL) && (*pp != ctx); pp = &(*pp)->next) {
    }
    if (*pp != NULL) {
        *pp = ctx->next;
    }
    pthread_mutex_unlock(&sv_contexts_mutex);
}

void sv_contexts_post_event(enum ibv_event_type type)
{
    struct sv_context *ctx;

    pthread_mutex_lock(&sv_contexts_mutex);
    for (ctx = sv_contexts; ctx != NULL; ctx = ctx->next) {
        sv_event_post(ctx, type, NULL);
    }
    pthread_mutex_unlock(&sv_contexts_mutex);
}

/* ---- fork ---- */

static int sv_orphan_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc)
{
    (void)cq;
    (void)num;
    (void)wc;
    return 0;
}

static int sv_orphan_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    (void)cq;
    (void)solicited_only;
    return EIO;
}

static int sv_orphan_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
                               struct ibv_send_wr **bad)
{
    (void)qp;
    *bad = wr;
    return EIO;
}

static int sv_orphan_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
                               struct ibv_recv_wr **bad)
{
    (void)qp;
    *bad = wr;
    return EIO;
}

static int sv_orphan_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
                                   struct ibv_recv_wr **bad)
{
    (void)srq;
    *bad = wr;
    return EIO;
}

/* The child has no service thread and no segment. All that it inherited refuses
 * to work. */
void sv_contexts_orphan(void)
{
    struct ibv_context_ops *ops;
    struct sv_context *ctx;

    pthread_mutex_init(&sv_contexts_mutex, NULL);
    for (ctx = sv_contexts; ctx != NULL; ctx = ctx->next) {
        ops                = &ctx->vctx.context.ops;
        ops->poll_cq       = sv_orphan_poll_cq;
        ops->req_notify_cq = sv_orphan_req_notify_cq;
        ops->post_send     = sv_orphan_post_send;
        ops->post_recv     = sv_orphan_post_recv;
        ops->post_srq_recv = sv_orphan_post_srq_recv;
        ctx->orphaned      = true;
    }
    sv_contexts = NULL;
}
