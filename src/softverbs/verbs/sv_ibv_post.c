/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_post_send() and ibv_post_recv(): check, copy into the queue, run.
 *
 * The checks here need no memory access: state, room, counts, opcode. Keys and
 * ranges are checked when the WR is executed, and a completion reports what is
 * wrong.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/engine/sv_qp_error.h"
#include "softverbs/engine/sv_request.h"
#include "softverbs/engine/sv_rx.h"
#include "softverbs/engine/sv_short.h"
#include "softverbs/engine/sv_stuck.h"
#include "softverbs/engine/sv_tx.h"
#include "softverbs/engine/sv_wqe.h"
#include "softverbs/objects/sv_check.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_hooks.h"
#include "softverbs/objects/sv_pd.h"
#include "softverbs/objects/sv_qp.h"
#include "softverbs/objects/sv_rq.h"
#include "softverbs/verbs/sv_ibv.h"

#include <errno.h>
#include <string.h>

static bool sv_opcode_is_known(enum ibv_qp_type type, enum ibv_wr_opcode opcode)
{
    switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
        return true;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return type == IBV_QPT_RC;
    default:
        return false;
    }
}

static bool sv_opcode_reads_locally(enum ibv_wr_opcode opcode)
{
    return (opcode != IBV_WR_RDMA_READ) &&
           (opcode != IBV_WR_ATOMIC_CMP_AND_SWP) &&
           (opcode != IBV_WR_ATOMIC_FETCH_AND_ADD);
}

static uint64_t sv_sge_sum(const struct ibv_sge *sge, int num_sge)
{
    uint64_t sum = 0;
    int i;

    for (i = 0; i < num_sge; ++i) {
        sum += sge[i].length;
    }
    return sum;
}

static __attribute__((noinline)) int
sv_send_check_datagram(struct sv_qp *qp, const struct ibv_send_wr *wr)
{
    const struct sv_ah *ah = (const struct sv_ah*)wr->wr.ud.ah;

    if (ah == NULL) {
        return EINVAL;
    }
    return ah->is_local ? sv_tx_ud_check(qp, wr->wr.ud.remote_qpn) : 0;
}

/* Returns 0 or an errno. Needs tx.lock. */
static inline __attribute__((always_inline)) int
sv_send_check(struct sv_qp *qp, const struct ibv_send_wr *wr)
{
    struct sv_tx *tx = &qp->tx;

    if (tx->posted - atomic_load_explicit(&tx->freed, memory_order_acquire) ==
        tx->depth) {
        return ENOMEM;
    }
    if (!sv_opcode_is_known(qp->base.qp_type, wr->opcode) ||
        (wr->num_sge < 0) || ((uint32_t)wr->num_sge > tx->max_sge)) {
        return EINVAL;
    }
    if (((wr->send_flags & IBV_SEND_INLINE) != 0) &&
        (!sv_opcode_reads_locally(wr->opcode) ||
         (sv_sge_sum(wr->sg_list, wr->num_sge) > tx->max_inline))) {
        return EINVAL;
    }
    return (qp->base.qp_type == IBV_QPT_UD) ? sv_send_check_datagram(qp, wr) :
                                              0;
}

/* Runs the queue after a post, or flushes it, depending on the QP's state.
 * Needs tx.lock. */
static void sv_send_run(struct sv_qp *qp)
{
    struct sv_tx *tx = &qp->tx;

    sv_assert_held(&qp->tx.lock);
    sv_tx_run(qp);
    switch (atomic_load_explicit(&qp->state, memory_order_relaxed)) {
    case IBV_QPS_ERR:
    case IBV_QPS_SQE:
        sv_tx_flush(qp);
        break;
    default:
        if (tx->done != tx->posted) {
            sv_stuck_add(qp);
        }
        break;
    }
}

/* Posts the WRs before `stop`. 0, or an errno with the culprit in *bad. Needs
 * tx.lock.
 *
 * Always inline, so that the usual post is one piece. Otherwise the second
 * caller, for plans of faults, would turn these functions into calls. */
static inline __attribute__((always_inline)) int
sv_send_chain(struct sv_qp *qp, struct ibv_send_wr *wr,
              const struct ibv_send_wr *stop, struct ibv_send_wr **bad)
{
    uint32_t state;
    int ret = 0;

    state = atomic_load_explicit(&qp->state, memory_order_relaxed);
    if (sv_unlikely((state == IBV_QPS_RESET) || (state == IBV_QPS_INIT) ||
                    (state == IBV_QPS_RTR))) {
        ret = EINVAL;
    }

    for (; (ret == 0) && (wr != stop); wr = wr->next) {
        ret = sv_send_check(qp, wr);
        if (sv_unlikely(ret != 0)) {
            break;
        }
        sv_send_copy(qp, wr);
    }
    if (sv_unlikely(ret != 0)) {
        *bad = wr;
    }
    return ret;
}

/* The same if a plan of faults refuses a WR of the list. */
static __attribute__((noinline)) int
sv_send_chain_faulty(struct sv_qp *qp, struct ibv_send_wr *wr,
                     struct ibv_send_wr **bad)
{
    struct ibv_send_wr *stop;
    int refusal = 0;
    int ret;

    stop = sv_hooks.refuse_send(qp, wr, &refusal);
    ret  = sv_send_chain(qp, wr, stop, bad);
    if ((ret == 0) && (stop != NULL)) {
        *bad = stop;
        ret  = refusal;
    }
    return ret;
}

int sv_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
                 struct ibv_send_wr **bad)
{
    struct sv_qp *qp = sv_qp(ibqp);
    int ret = 0;

    sv_spin_lock(&qp->tx.lock);
    while ((wr != NULL) && sv_tx_short(qp, wr)) {
        wr = wr->next;
    }
    if (wr != NULL) {
        ret = sv_unlikely(qp->faults != NULL) ?
                      sv_send_chain_faulty(qp, wr, bad) :
                      sv_send_chain(qp, wr, NULL, bad);
    }
    if (qp->tx.done != qp->tx.posted) {
        sv_send_run(qp);
    }
    sv_qp_check(qp);
    sv_spin_unlock(&qp->tx.lock);

    if (sv_unlikely(atomic_load_explicit(&qp->rx_flush_due,
                                         memory_order_relaxed))) {
        sv_spin_lock(&sv_cq(ibqp->recv_cq)->rx_lock);
        sv_rx_flush_if_due(qp);
        sv_cq_rx_unlock(sv_cq(ibqp->recv_cq));
    }
    return ret;
}

/* Posts the WRs before the one that a plan of faults refuses. */
static __attribute__((noinline)) int
sv_recv_chain_faulty(struct sv_qp *qp, struct ibv_recv_wr *wr,
                     struct ibv_recv_wr **bad)
{
    struct ibv_recv_wr *stop = NULL;
    int refusal              = 0;
    int ret;

    sv_spin_lock(&qp->tx.lock);
    if (qp->faults != NULL) {
        stop = sv_hooks.refuse_recv(qp, wr, &refusal);
    }
    sv_spin_unlock(&qp->tx.lock);

    ret = sv_rq_post(&qp->rq, wr, stop, bad);
    if ((ret == 0) && (stop != NULL)) {
        *bad = stop;
        ret  = refusal;
    }
    return ret;
}

int sv_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
                 struct ibv_recv_wr **bad)
{
    struct sv_qp *qp = sv_qp(ibqp);
    struct sv_cq *cq = sv_cq(ibqp->recv_cq);
    int ret;

    if (sv_unlikely((ibqp->srq != NULL) ||
                    (atomic_load(&qp->state) == IBV_QPS_RESET))) {
        *bad = wr;
        return EINVAL;
    }

    ret = sv_unlikely(atomic_load_explicit(&sv_hooks_active,
                                           memory_order_acquire)) ?
                  sv_recv_chain_faulty(qp, wr, bad) :
                  sv_rq_post(&qp->rq, wr, NULL, bad);
    if (sv_unlikely(atomic_load(&qp->state) == IBV_QPS_ERR)) {
        /* The QP may have failed, and been flushed, just before this post. */
        sv_spin_lock(&cq->rx_lock);
        sv_rx_flush_if_due(qp);
        sv_rx_flush(qp);
        sv_cq_rx_unlock(cq);
    }
    return ret;
}
