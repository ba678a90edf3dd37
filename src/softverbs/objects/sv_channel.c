/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels: notifying whoever waits for a completion.
 *
 * Whoever puts a completion into an armed CQ disarms it and counts the event in
 * the CQ's entry. If no hint is on its way, it sends one to the channel's
 * socket (fabric/sv_wake.c). The reader of a hint takes one event of its CQ. If
 * more are due, it sends the hint again.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_barrier.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/fabric/sv_table.h"
#include "softverbs/fabric/sv_wake.h"
#include "softverbs/objects/sv_channel.h"
#include "softverbs/objects/sv_context.h"
#include "softverbs/objects/sv_cq.h"

#include <poll.h>
#include <sys/socket.h>

static uint32_t sv_next_cookie;

void sv_channels_unlink(struct sv_node *node)
{
    const struct sv_channel *channel;

    for (channel = node->channels; channel != NULL; channel = channel->next) {
        sv_wake_unlink(node, channel->name);
    }
}

/* The cookie of a new CQ; never 0. Needs sv_node.lock. */
static uint32_t sv_cookie_new(void)
{
    if (++sv_next_cookie == 0) {
        ++sv_next_cookie;
    }
    return sv_next_cookie;
}

static uint64_t sv_cq_state(const struct sv_cq *cq, enum sv_armed armed)
{
    return ((uint64_t)cq->cookie << SV_COOKIE_SHIFT) | armed;
}

/* Gives a CQ its entry in the shared table. Needs ctx->lock. */
int sv_cq_bind_channel(struct sv_cq *cq, struct sv_channel *channel)
{
    struct sv_node *node = sv_context(cq->base.context)->node;
    int index;

    pthread_mutex_lock(&node->lock);
    index = sv_table_take(node, &node->cq_table);
    if (index >= 0) {
        cq->index        = index;
        cq->shm          = sv_peer_cq(node->self, index);
        cq->cookie       = sv_cookie_new();
        cq->shm->name    = channel->name;
        node->cqs[index] = cq;
        atomic_store(&cq->shm->state, sv_cq_state(cq, SV_ARMED_NO));
    }
    pthread_mutex_unlock(&node->lock);
    if (index < 0) {
        return -1;
    }

    ++channel->base.refcnt;
    return 0;
}

void sv_cq_unbind_channel(struct sv_cq *cq)
{
    struct sv_node *node = sv_context(cq->base.context)->node;

    if (cq->index == 0) {
        return;
    }

    atomic_store(&cq->shm->state, 0);
    pthread_mutex_lock(&node->lock);
    node->cqs[cq->index] = NULL;
    sv_table_give(&node->cq_table, cq->index);
    pthread_mutex_unlock(&node->lock);
    --cq->base.channel->refcnt;
}

/* ---- firing ---- */

/* Sends the hint to our own channel; false: no room. Needs node->lock. */
static bool sv_cq_hint(const struct sv_cq *cq)
{
    const struct sv_channel *channel = (struct sv_channel*)cq->base.channel;

    sv_assert_mutex_held(&cq->node->lock);
    return send(channel->write_fd, &cq->index, sizeof(cq->index), 0) ==
           sizeof(cq->index);
}

/* Sends a hint for one of our own CQs, whatever its shared entry says. */
static void sv_cq_hint_own(struct sv_node *node, uint32_t index)
{
    const struct sv_cq *cq;

    pthread_mutex_lock(&node->lock);
    cq = node->cqs[index];
    if ((cq != NULL) && !sv_cq_hint(cq)) {
        sv_wake_defer(node->head);
    }
    pthread_mutex_unlock(&node->lock);
}

static void sv_cq_wake(struct sv_node *node, struct sv_peer *peer,
                       const struct sv_shm_cq *shm)
{
    uint32_t index = shm - sv_peer_cq(peer, 0);

    if (peer->self) {
        sv_cq_hint_own(node, index);
    } else {
        sv_wake_peer(node, peer, shm->name, index);
    }
}

/* Whether a completion fires a CQ in this state. */
static bool sv_cq_state_fires(uint64_t state, bool solicited)
{
    enum sv_armed armed = state & SV_ARMED_MASK;

    return (armed == SV_ARMED_ANY) || ((armed != SV_ARMED_NO) && solicited);
}

/* The slow half, for a CQ that is armed. Only the caller that disarms it counts
 * an event. */
static void sv_cq_fire(struct sv_node *node, struct sv_peer *peer,
                       struct sv_shm_cq *shm, bool solicited)
{
    uint64_t state = atomic_load(&shm->state);

    do {
        if (!sv_cq_state_fires(state, solicited)) {
            return;
        }
    } while (!atomic_compare_exchange_weak(
            &shm->state, &state,
            (state & ~(uint64_t)SV_ARMED_MASK) + SV_DUE_ONE));
    if (!sv_is_due(state)) {
        sv_cq_wake(node, peer, shm);
    }
}

void sv_cq_notify(struct sv_node *node, struct sv_peer *peer,
                  struct sv_shm_cq *shm, bool solicited)
{
    sv_light_barrier(peer->fence);
    if (sv_likely(!sv_is_armed(atomic_load_explicit(&shm->state,
                                                    memory_order_relaxed)))) {
        return;
    }
    sv_cq_fire(node, peer, shm, solicited);
}

/* Sends a hint for each CQ with events due, which may be one hint too many. A
 * hint that does not fit now stays deferred: the reader of the channel rings
 * the doorbell again. */
void sv_channels_send_deferred(struct sv_node *node)
{
    struct sv_cq *cq;
    uint32_t i;

    if (atomic_exchange(&node->head->deferred, 0) == 0) {
        return;
    }

    pthread_mutex_lock(&node->lock);
    for (i = 1; i < SV_CQ_MAX; ++i) {
        cq = node->cqs[i];
        if ((cq == NULL) || !sv_is_due(atomic_load(&cq->shm->state)) ||
            sv_cq_hint(cq)) {
            continue;
        }
        /* Marked before the second try. If that fails too, the reader sees the
         * mark after it has read something. */
        atomic_store(&node->head->deferred, 1);
        (void)sv_cq_hint(cq);
    }
    pthread_mutex_unlock(&node->lock);
}

/* ---- arming and reading ---- */

/* A CQ that is armed for more stays armed for more. */
void sv_cq_arm(struct sv_cq *cq, enum sv_armed wanted)
{
    uint64_t state, armed;

    pthread_mutex_lock(&cq->node->lock);
    state = atomic_load(&cq->shm->state);
    ++cq->armings;
    cq->is_awaited = true;
    do {
        if ((state >> SV_COOKIE_SHIFT) != cq->cookie) {
            armed = sv_cq_state(cq, wanted); /* somebody else's scribble */
        } else {
            armed = ((state & SV_ARMED_MASK) < wanted) ?
                            (state & ~(uint64_t)SV_ARMED_MASK) | wanted : state;
        }
    } while (!atomic_compare_exchange_weak(&cq->shm->state, &state, armed));
    pthread_mutex_unlock(&cq->node->lock);
}

/* Whether another process has written over the entry: more events are due than
 * the program has armed, or none although it has armed the CQ. Then too many
 * events are better than none. Needs sv_node.lock. */
static bool sv_cq_is_corrupt(const struct sv_cq *cq, uint64_t state)
{
    uint32_t due = (state & SV_DUE_MASK) / SV_DUE_ONE;

    sv_assert_mutex_held(&cq->node->lock);
    return ((state >> SV_COOKIE_SHIFT) != cq->cookie) ||
           (due > cq->armings - cq->events_sent) ||
           (cq->is_awaited && !sv_is_armed(state) && !sv_is_due(state));
}

/* Takes one event; false: the hint was one too many. Needs sv_node.lock. */
bool sv_cq_take_event(struct sv_cq *cq)
{
    uint64_t state = atomic_load(&cq->shm->state);
    uint64_t rest;

    sv_assert_mutex_held(&cq->node->lock);
    do {
        if (sv_cq_is_corrupt(cq, state)) {
            rest = sv_cq_state(cq, SV_ARMED_NO);
        } else if (sv_is_due(state)) {
            rest = state - SV_DUE_ONE;
        } else {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&cq->shm->state, &state, rest));
    ++cq->events_sent;
    cq->is_awaited = false;
    if (sv_is_due(rest) && !sv_cq_hint(cq)) {
        sv_wake_defer(cq->node->head);
    }
    return true;
}

static bool sv_channel_is_empty(const struct sv_cq *cq)
{
    struct pollfd pfd = {.fd = cq->base.channel->fd, .events = POLLIN};

    return poll(&pfd, 1, 0) == 0;
}

/* Whether the program waits but no event can reach it: the process that should
 * have sent the hint has died, or somebody has written over the entry. Needs
 * sv_node.lock. */
static bool sv_cq_lost_wakeup(const struct sv_cq *cq)
{
    uint64_t state = atomic_load(&cq->shm->state);

    return sv_cq_is_corrupt(cq, state) ||
           (sv_is_due(state) && sv_channel_is_empty(cq));
}

bool sv_cq_check_wakeup(struct sv_cq *cq)
{
    struct sv_node *node = cq->node;
    bool awaited;

    pthread_mutex_lock(&node->lock);
    awaited = (cq->index != 0) && cq->is_awaited;
    if (awaited && sv_cq_lost_wakeup(cq)) {
        (void)sv_cq_hint(cq);
    }
    pthread_mutex_unlock(&node->lock);
    return awaited;
}
