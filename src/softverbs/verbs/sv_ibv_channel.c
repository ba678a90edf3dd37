/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels: made, armed, read, destroyed. See objects/sv_channel.c.
 */
#include "softverbs/base/sv_barrier.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/engine/sv_poll.h"
#include "softverbs/fabric/sv_doorbell.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fabric/sv_wake.h"
#include "softverbs/objects/sv_channel.h"
#include "softverbs/objects/sv_context.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_hooks.h"
#include "softverbs/verbs/sv_ibv.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

SV_EXPORT struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
    struct sv_node *node = sv_context(context)->node;
    struct sv_channel *channel;
    int fds[2];

    if (sv_hook_verb(SV_VERB_CREATE_COMP_CHANNEL) != 0) {
        return NULL;
    }
    if (sv_is_orphaned(context)) {
        errno = EIO;
        return NULL;
    }

    channel = calloc(1, sizeof(*channel));
    if (channel == NULL) {
        return NULL;
    }

    if (sv_wake_pair(node, fds, &channel->name) != 0) {
        free(channel);
        return NULL;
    }

    channel->base.context = context;
    channel->base.fd      = fds[0];
    channel->write_fd     = fds[1];
    pthread_mutex_lock(&node->lock);
    channel->next  = node->channels;
    node->channels = channel;
    pthread_mutex_unlock(&node->lock);
    return &channel->base;
}

SV_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *ibchannel)
{
    struct sv_channel *channel = (struct sv_channel*)ibchannel;
    struct sv_context *ctx     = sv_context(ibchannel->context);
    struct sv_channel **pp;
    int refs;

    if (sv_is_orphaned(ibchannel->context)) {
        return 0;
    }
    pthread_mutex_lock(&ctx->lock);
    refs = ibchannel->refcnt;
    pthread_mutex_unlock(&ctx->lock);
    if (refs > 0) {
        return EBUSY;
    }

    pthread_mutex_lock(&ctx->node->lock);
    for (pp = &ctx->node->channels; *pp != channel; pp = &(*pp)->next) {
    }
    *pp = channel->next;
    sv_wake_unlink(ctx->node, channel->name);
    pthread_mutex_unlock(&ctx->node->lock);
    close(channel->base.fd);
    close(channel->write_fd);
    free(channel);
    return 0;
}

int sv_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
    struct sv_node *node = sv_context(ibcq->context)->node;
    struct sv_cq *cq     = sv_cq(ibcq);

    if (cq->index == 0) {
        return 0;
    }

    sv_cq_arm(cq, solicited_only ? SV_ARMED_SOLICITED : SV_ARMED_ANY);

    /* From here on either a sender sees that the CQ is armed, or we see what it
     * sent.
     *
     * Completions that came earlier also raise an event. The specification lets
     * programs look for them themselves, but real devices do raise one, and
     * some programs rely on that. A completion never raises a second event:
     * programs arm before they poll, and one that polls once per event would
     * take the second for the next completion. */
    sv_heavy_barrier();
    sv_cq_fire_pending(cq);
    if (atomic_load(&node->num_stuck) > 0) {
        sv_service_wake(node, true);
    }
    return 0;
}

/* Returns the CQ of the next event among the hints that have arrived. NULL:
 * there is none. Hints for destroyed CQs are dropped. */
static struct sv_cq *sv_channel_read(struct sv_node *node, int fd)
{
    struct sv_cq *cq = NULL;
    uint32_t index;
    ssize_t n;

    do {
        n = read(fd, &index, sizeof(index));
        if (n < 0) {
            return NULL;
        }
        if (atomic_load(&node->head->deferred) != 0) {
            sv_doorbell_ring(node->head); /* there is room for more now */
        }

        pthread_mutex_lock(&node->lock);
        cq = ((n == (ssize_t)sizeof(index)) && (index < SV_CQ_MAX)) ?
                     node->cqs[index] : NULL;
        if ((cq != NULL) && !sv_cq_take_event(cq)) {
            cq = NULL;
        }
        pthread_mutex_unlock(&node->lock);
    } while (cq == NULL);
    return cq;
}

SV_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel,
                               struct ibv_cq **cq_p, void **cq_context_p)
{
    struct sv_cq *cq;

    if (sv_is_orphaned(channel->context)) {
        errno = EIO; /* the events in the socket are the parent's */
        return -1;
    }

    cq = sv_channel_read(sv_context(channel->context)->node, channel->fd);
    if (cq == NULL) {
        return -1;
    }
    sv_cq_event_read(cq);
    *cq_p         = &cq->base;
    *cq_context_p = cq->base.cq_context;
    return 0;
}

SV_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
    pthread_mutex_lock(&cq->mutex);
    cq->comp_events_completed += nevents;
    pthread_cond_signal(&cq->cond);
    pthread_mutex_unlock(&cq->mutex);
}
