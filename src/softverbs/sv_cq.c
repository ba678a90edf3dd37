/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues.
 *
 * ibv_poll_cq() is where receiving happens: it looks at the rings of all QPs
 * that receive into this CQ (`scan`, one cache line of shared memory each), and
 * then hands out what is in the completion ring. It also frees the slots of the
 * send and receive queues, as the drivers of real devices do: a WR occupies its
 * slot until its completion, or a later one of its send queue, is polled.
 */
#include "sv.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

/* Empty polls in a row before the CPU is offered to others. The peer may need
 * this very CPU to send what we poll for; with a CPU each, 128 costs nothing. */
#define SV_POLL_YIELD    128

static const _Atomic uint64_t sv_no_tag;

static uint32_t sv_cq_count(struct sv_cq *cq)
{
    return atomic_load_explicit(&cq->tail, memory_order_relaxed) -
           atomic_load_explicit(&cq->head, memory_order_relaxed);
}

/* ---- putting in ---- */

/* The CQ is dead from here on, as that of a real device: what it held can be
 * polled, nothing comes any more. */
static void sv_cq_overrun(struct sv_cq *cq)
{
    if (!cq->overrun) {
        cq->overrun = true;
        sv_async_raise(sv_context(cq->base.context), IBV_EVENT_CQ_ERR, cq);
    }
}

bool sv_cq_push(struct sv_cq *cq, const struct sv_cqe *cqe,
                enum sv_notify notify)
{
    struct sv_node *node;
    uint32_t tail;

    sv_spin_lock(&cq->lock);
    if (sv_unlikely(cq->overrun || (sv_cq_count(cq) == cq->size))) {
        sv_cq_overrun(cq);
        sv_spin_unlock(&cq->lock);
        return false;
    }

    tail                      = atomic_load_explicit(&cq->tail,
                                                     memory_order_relaxed);
    cq->ring[tail & cq->mask] = *cqe;
    atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
    sv_spin_unlock(&cq->lock);

    if ((notify != SV_NOTIFY_NONE) && (cq->index != 0)) {
        node = sv_context(cq->base.context)->node;
        sv_cq_notify(node, node->self, cq->shm, notify == SV_NOTIFY_SOLICITED);
    }
    return true;
}

/* ---- taking out ---- */

static void sv_cqe_free_slot(const struct sv_cqe *cqe)
{
    if (cqe->kind == SV_CQE_SEND) {
        atomic_store_explicit(&cqe->qp->tx.freed, cqe->slot,
                              memory_order_release);
    } else {
        atomic_fetch_add_explicit(&cqe->qp->recvs->freed, 1,
                                  memory_order_release);
    }
}

static int sv_cq_pop(struct sv_cq *cq, int num, struct ibv_wc *wc)
{
    const struct sv_cqe *cqe;
    uint32_t head;
    int i;

    sv_spin_lock(&cq->lock);
    head = atomic_load_explicit(&cq->head, memory_order_relaxed);
    for (i = 0; (i < num) && (head != atomic_load_explicit(
                                              &cq->tail,
                                              memory_order_relaxed)); ++i) {
        cqe   = &cq->ring[head++ & cq->mask];
        wc[i] = cqe->wc;
        sv_cqe_free_slot(cqe);
    }
    atomic_store_explicit(&cq->head, head, memory_order_relaxed);
    sv_spin_unlock(&cq->lock);
    return i;
}

/* Receives on all QPs of the CQ, at most `limit` messages. Needs rx_lock. */
static void sv_cq_receive(struct sv_cq *cq, unsigned limit, bool notify)
{
    unsigned start = cq->scan_start;
    struct sv_scan *scan;
    unsigned i, at;

    for (i = 0, at = start; (i < cq->num_scan) && (limit > 0); ++i) {
        at   = (at < cq->num_scan) ? at : 0;
        scan = &cq->scan[at++];
        if (atomic_load_explicit(scan->tag, memory_order_relaxed) ==
            scan->expect) {
            limit -= sv_rx_run(scan->qp, limit, notify);
            /* Whoever used up the limit is last next time. */
            cq->scan_start = at;
        }
    }
}

/* How many messages one poll receives. If the queues that complete here hold
 * more than the CQ does, the program may overrun it, and does so at the moment
 * when more has arrived than fits: then everything must be received that has
 * arrived. Otherwise what the caller has no room for can wait in the rings. */
static unsigned sv_cq_appetite(struct sv_cq *cq, int room)
{
    return (atomic_load_explicit(&cq->owed, memory_order_relaxed) > cq->size) ?
                   UINT_MAX : (unsigned)room;
}

int sv_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
    struct sv_cq *cq     = sv_cq(ibcq);
    struct sv_node *node = sv_context(ibcq->context)->node;
    int count;

    /* Whoever else is receiving may have passed what this caller, who has just
     * armed the CQ, relies on finding; so wait for the lock. */
    count = sv_cq_count(cq);
    if (count < num) {
        sv_spin_lock(&cq->rx_lock);
        sv_cq_receive(cq, sv_cq_appetite(cq, num - count), false);
        sv_spin_unlock(&cq->rx_lock);
    }

    if (sv_unlikely(atomic_load_explicit(&node->num_stuck,
                                         memory_order_relaxed) != 0)) {
        sv_tx_push_stuck(node, false);
    }

    if (sv_cq_count(cq) == 0) {
        if (++cq->empty_polls % SV_POLL_YIELD == 0) {
            sched_yield();
        }
        return 0;
    }

    cq->empty_polls = 0;
    return sv_cq_pop(cq, num, wc);
}

void sv_cq_drain(struct sv_cq *cq)
{
    sv_spin_lock(&cq->rx_lock);
    sv_cq_receive(cq, cq->size, true);
    sv_spin_unlock(&cq->rx_lock);
}

/* ---- which QPs receive here ---- */

int sv_cq_scan_add(struct sv_cq *cq, struct sv_qp *qp)
{
    struct sv_scan *scan;
    unsigned room;

    sv_spin_lock(&cq->rx_lock);
    if (cq->num_scan == cq->scan_room) {
        room = (cq->scan_room == 0) ? 8 : 2 * cq->scan_room;
        scan = realloc(cq->scan, room * sizeof(*scan));
        if (scan == NULL) {
            sv_spin_unlock(&cq->rx_lock);
            return -1;
        }
        cq->scan      = scan;
        cq->scan_room = room;
    }

    qp->rx.scan                = cq->num_scan;
    cq->scan[cq->num_scan].qp  = qp;
    ++cq->num_scan;
    sv_cq_scan_stop(cq, qp);
    sv_spin_unlock(&cq->rx_lock);
    return 0;
}

void sv_cq_scan_stop(struct sv_cq *cq, struct sv_qp *qp)
{
    cq->scan[qp->rx.scan].tag    = &sv_no_tag;
    cq->scan[qp->rx.scan].expect = 1;
}

void sv_cq_scan_remove(struct sv_cq *cq, struct sv_qp *qp)
{
    struct sv_scan *last;

    sv_spin_lock(&cq->rx_lock);
    last                    = &cq->scan[--cq->num_scan];
    cq->scan[qp->rx.scan]   = *last;
    last->qp->rx.scan       = qp->rx.scan;
    sv_spin_unlock(&cq->rx_lock);
}

void sv_cq_forget_qp(struct sv_cq *cq, struct sv_qp *qp)
{
    uint32_t from, to, tail;
    struct sv_cqe *cqe;

    sv_spin_lock(&cq->lock);
    from = to = atomic_load(&cq->head);
    tail      = atomic_load(&cq->tail);
    for (; from != tail; ++from) {
        cqe = &cq->ring[from & cq->mask];
        if (cqe->qp == qp) {
            sv_cqe_free_slot(cqe);
        } else {
            cq->ring[to++ & cq->mask] = *cqe;
        }
    }
    atomic_store(&cq->tail, to);
    sv_spin_unlock(&cq->lock);
}

/* ---- verbs ---- */

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
    cq->base.cqe = cqe;
    pthread_mutex_init(&cq->base.mutex, NULL);
    pthread_cond_init(&cq->base.cond, NULL);
    return cq;
}

static void sv_cq_free(struct sv_cq *cq)
{
    pthread_cond_destroy(&cq->base.cond);
    pthread_mutex_destroy(&cq->base.mutex);
    free(cq->scan);
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

    if ((cqe < 1) || (cqe > SV_LIMIT_CQE) || (comp_vector < 0) ||
        (comp_vector >= context->num_comp_vectors)) {
        errno = EINVAL;
        return NULL;
    }

    cq = sv_cq_new(cqe);
    if (cq == NULL) {
        errno = ENOMEM;
        return NULL;
    }

    cq->base.context    = context;
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

    sv_async_forget(ctx, ibcq, &ibcq->mutex, &ibcq->cond,
                    &ibcq->async_events_completed, &cq->async_sent);
    sv_cq_free(cq);
    return 0;
}

SV_EXPORT int ibv_resize_cq(struct ibv_cq *ibcq, int cqe)
{
    struct sv_cq *cq = sv_cq(ibcq);
    struct sv_cqe *ring;
    uint32_t i, room, count;

    if ((cqe < 1) || (cqe > SV_LIMIT_CQE)) {
        return EINVAL;
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
    cq->ring     = ring;
    cq->mask     = room - 1;
    cq->size     = cqe;
    cq->base.cqe = cqe;
    atomic_store(&cq->head, 0);
    atomic_store(&cq->tail, count);
    sv_spin_unlock(&cq->lock);
    return 0;
}
