/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues: what a CQ has, and its ring of completions.
 */
#ifndef SV_CQ_H
#define SV_CQ_H

#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_wire.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sv_node;
struct sv_qp;

enum sv_cqe_kind {
    SV_CQE_SEND,
    SV_CQE_RECV
};

struct sv_cqe {
    struct ibv_wc wc;
    struct sv_qp *qp;   /* whose queue slot is freed by polling */
    uint16_t      kind; /* enum sv_cqe_kind */
    uint16_t      notify; /* enum sv_notify, if the CQ is armed later */
    uint32_t      slot; /* SEND: send queue position after this WR */
};

/* What a new completion does to an armed CQ. */
enum sv_notify {
    SV_NOTIFY_NONE,     /* the program is polling, or its sender told it */
    SV_NOTIFY_NEXT,     /* wakes waiters for any completion */
    SV_NOTIFY_SOLICITED /* also wakes waiters for solicited ones */
};

#define SV_BATCH 32

/* One QP that receives into a CQ: where its next record will appear. */
struct sv_scan {
    const _Atomic uint64_t *tag;
    uint64_t                expect;
    struct sv_qp           *qp;
    bool                    used; /* since the last sweep */
};

/* The bells that a CQ with many QPs answers. */
struct sv_bells {
    uint64_t      members[SV_BELL_WORDS];
    struct sv_qp *qps[SV_QP_MAX]; /* by index of QP entry */
};

/* Whether a poll that found nothing offers the CPU to others
 * (engine/sv_yield.c). */
struct sv_yield {
    _Atomic uint64_t not_before; /* no offers until then */
    atomic_bool      watched;    /* the last offer took long */
};

struct sv_cq {
    struct ibv_cq     base;
    struct sv_node   *node;
    struct sv_spin    rx_lock;
    struct sv_scan   *scan;       /* see sv_scan.c */
    unsigned          num_scan;
    unsigned          num_active; /* the first of them are looked at */
    unsigned          scan_room;
    unsigned          scan_start;
    unsigned          scan_cost;  /* looks since the last sweep */
    unsigned          scan_again; /* the idle QP that is checked next */
    struct sv_bells  *bells;      /* NULL: never had many QPs */
    struct ibv_wc    *direct;     /* under rx_lock: where in the array of who
                                   * polls the next completion may be made */
    unsigned          direct_room; /* how many; 0 when rx_lock is free */
    unsigned          num_batch;  /* under rx_lock, empty when it is free */
    enum sv_notify    batch_notify;
    struct sv_cqe     batch[SV_BATCH];

    struct sv_spin    lock;
    struct sv_cqe    *ring;
    uint32_t          mask;
    _Atomic uint32_t  head;       /* next to be polled */
    _Atomic uint32_t  tail;
    _Atomic uint32_t  size;       /* cqe as asked for */
    _Atomic uint32_t  max_outstanding; /* of all queues that complete here */
    _Atomic uint32_t  room;       /* size; 0 once it was overrun */
    atomic_uint       empty_polls; /* in a row */
    struct sv_yield   yield;

    uint32_t          index;      /* CQ entry, 0 without channel */
    uint32_t          cookie;     /* what the entry's should be; never 0 */
    struct sv_shm_cq *shm;
    uint32_t          announced;   /* under lock: the program has had an event
                                    * for each completion up to here */
    uint32_t          armings;     /* by the program; under sv_node.lock */
    uint32_t          events_sent; /* under sv_node.lock */
    bool              is_awaited;  /* armed, and no event has been read since;
                                    * under sv_node.lock */
    uint32_t          async_sent;  /* under sv_async.lock, as in QP and SRQ */
    _Atomic uint32_t  users;
    struct sv_cq     *next;
};

static inline struct sv_cq *sv_cq(struct ibv_cq *cq)
{
    return (struct sv_cq*)cq;
}

/* Completions in the ring. */
static inline uint32_t sv_cq_count(const struct sv_cq *cq)
{
    return atomic_load_explicit(&cq->tail, memory_order_relaxed) -
           atomic_load_explicit(&cq->head, memory_order_relaxed);
}

/* Whether the CQ was overrun. The program can poll what is in it; nothing is
 * added. */
static inline bool sv_cq_has_failed(const struct sv_cq *cq)
{
    return atomic_load_explicit(&cq->room, memory_order_relaxed) == 0;
}

/* Adds a completion of the send side. False: the CQ is overrun and the
 * completion is lost; the caller then fails the QP, when it holds no locks. */
bool sv_cq_push(struct sv_cq *cq, const struct sv_cqe *cqe,
                enum sv_notify notify);
/* Moves the batch into the ring, and notifies. Needs rx_lock. */
void sv_cq_flush(struct sv_cq *cq);

/* Returns a slot of the batch for a completion of the receive side. Needs
 * rx_lock. */
static inline struct sv_cqe *sv_cq_next(struct sv_cq *cq, enum sv_notify notify)
{
    sv_assert_held(&cq->rx_lock);
    if (sv_unlikely(cq->num_batch == SV_BATCH)) {
        sv_cq_flush(cq);
    }
    if (notify > cq->batch_notify) {
        cq->batch_notify = notify;
    }
    return &cq->batch[cq->num_batch++];
}

void sv_cq_remove_qp(struct sv_cq *cq, struct sv_qp *qp);
/* Overruns the CQ on purpose. */
void sv_cq_overrun(struct sv_cq *cq);

static inline bool sv_cq_is_armed(const struct sv_cq *cq)
{
    return (cq->index != 0) &&
           sv_is_armed(atomic_load_explicit(&cq->shm->state,
                                            memory_order_relaxed));
}

/* Hands out the ring, then as much of the batch as the caller has room for.
 * Needs lock, and for the batch rx_lock. */
int sv_cq_hand_out(struct sv_cq *cq, int num, struct ibv_wc *wc,
                   bool with_batch);

/* Notifies whoever waits on the CQ's channel. */
void sv_cq_post_event(struct sv_cq *cq, enum sv_notify notify);

#endif
