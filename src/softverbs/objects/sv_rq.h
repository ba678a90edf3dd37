/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues of RECVs: of one QP, or of an SRQ.
 */
#ifndef SV_RQ_H
#define SV_RQ_H

#include "softverbs/base/sv_atomic.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sv_cq;
struct sv_node;

/* A queue of RECVs: of one QP, or an SRQ. A RECV occupies its slot from its
 * post until its completion is polled. */
struct sv_rwqe {
    uint64_t       wr_id;
    uint32_t       num_sge;
    struct ibv_sge sge[];
};

struct sv_rq {
    struct sv_spin    post_lock;
    struct sv_spin    take_lock;
    uint8_t          *wqes;
    uint32_t          stride;
    uint32_t          mask;
    uint32_t          depth;
    uint32_t          max_sge;
    uint32_t          pdn;
    struct sv_node   *node;
    uint32_t          posted;     /* under post_lock */
    _Atomic uint32_t  ready;      /* == posted, for the taker */
    _Atomic uint32_t  taken;      /* under rx_lock of `taker`; if several CQs
                                   * take from this queue, under take_lock */
    struct sv_cq     *taker;
    bool              contended;
    _Atomic uint32_t  freed;      /* advanced by polling */
    _Atomic uint32_t  freed_at_once; /* others, under rx_lock of `taker` */
    atomic_bool       starved;    /* a message waits for a RECV */
    _Atomic uint32_t *shm_posted; /* what senders see */
    _Atomic uint32_t *shm_min_len;
};

int sv_rq_init(struct sv_rq *rq, struct sv_node *node, uint32_t pdn,
               uint32_t depth, uint32_t max_sge);
void sv_rq_cleanup(struct sv_rq *rq);
/* Empties the queue. Nobody may post or take meanwhile. */
void sv_rq_reset(struct sv_rq *rq);
/* Posts the WRs before `stop`. 0, or an errno with the culprit in *bad. */
int sv_rq_post(struct sv_rq *rq, struct ibv_recv_wr *wr,
               const struct ibv_recv_wr *stop, struct ibv_recv_wr **bad);
/* A QP of this receive CQ will take from the queue; the last one no longer
 * does. */
void sv_rq_attach(struct sv_rq *rq, struct sv_cq *cq);
void sv_rq_detach(struct sv_rq *rq);
/* Takes a copy of the oldest RECV; false: there is none. */
bool sv_rq_take(struct sv_rq *rq, struct sv_rwqe *wqe);

/* The oldest RECV, in its slot. NULL: none, or others may take it. */
static inline const struct sv_rwqe *sv_rq_oldest(const struct sv_rq *rq)
{
    uint32_t taken = atomic_load_explicit(&rq->taken, memory_order_relaxed);

    return (rq->contended ||
            (atomic_load_explicit(&rq->ready, memory_order_acquire) == taken)) ?
                   NULL :
                   (const struct sv_rwqe*)(rq->wqes +
                                           (size_t)(taken & rq->mask) *
                                                   rq->stride);
}

/* Takes the oldest RECV and frees its slot, for a completion that goes straight
 * to the program. */
static inline void sv_rq_finish(struct sv_rq *rq)
{
    atomic_store_explicit(&rq->taken,
                          atomic_load_explicit(&rq->taken,
                                               memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&rq->freed_at_once,
                          atomic_load_explicit(&rq->freed_at_once,
                                               memory_order_relaxed) + 1,
                          memory_order_release);
}

#endif
