/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creation and destruction of queue pairs.
 *
 * A QP number is reused after 16384 others, the index of its entry after 8192.
 * If the sender to an entry is stopped in the middle of a record, the entry is
 * never reused: that sender may wake up years later and finish the record.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_limits.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/engine/sv_qp_error.h"
#include "softverbs/engine/sv_rx.h"
#include "softverbs/engine/sv_scan.h"
#include "softverbs/engine/sv_stuck.h"
#include "softverbs/engine/sv_tx.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/fabric/sv_table.h"
#include "softverbs/objects/sv_context.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_event.h"
#include "softverbs/objects/sv_hooks.h"
#include "softverbs/objects/sv_pd.h"
#include "softverbs/objects/sv_qp.h"
#include "softverbs/objects/sv_rq.h"
#include "softverbs/objects/sv_srq.h"
#include "softverbs/verbs/sv_ibv.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Logged once: programs print that they could not create a QP, but not why.
 * Some only probe. */
static void sv_qp_log_type(enum ibv_qp_type type)
{
    static atomic_bool logged;

    if (!atomic_exchange(&logged, true)) {
        sv_log("a queue pair of type %d%s cannot be created: this device has "
               "RC and UD", type, (type == IBV_QPT_UC) ? " (UC)" : "");
    }
}

/* Returns 0, or the errno of why the QP cannot be created. */
static int sv_qp_check_init(struct ibv_pd *pd,
                            const struct ibv_qp_init_attr *init)
{
    const struct ibv_qp_cap *cap = &init->cap;
    bool recv_ok;

    if (sv_is_orphaned(pd->context)) {
        return EIO;
    }
    if ((init->qp_type != IBV_QPT_RC) && (init->qp_type != IBV_QPT_UD)) {
        sv_qp_log_type(init->qp_type);
        return EOPNOTSUPP;
    }

    /* With an SRQ, the RECV half of the capabilities is ignored. */
    recv_ok = (init->srq != NULL) || ((cap->max_recv_wr <= SV_LIMIT_WR) &&
                                      (cap->max_recv_sge <= SV_LIMIT_SGE));
    if (!recv_ok || (cap->max_send_wr > SV_LIMIT_WR) ||
        (cap->max_send_sge > SV_LIMIT_SGE) ||
        (cap->max_inline_data > SV_LIMIT_INLINE) || (init->send_cq == NULL) ||
        (init->recv_cq == NULL)) {
        return EINVAL;
    }
    return 0;
}

static size_t sv_tx_bytes(const struct sv_tx *tx)
{
    return ((size_t)tx->mask + 1) * tx->stride;
}

/* Inline data use one piece of the list, so there is always room for one. */
static int sv_tx_init(struct sv_tx *tx, const struct sv_node *node,
                      const struct ibv_qp_cap *cap)
{
    uint32_t room = sv_roundup_pow2(cap->max_send_wr);

    tx->lock_id    = node->lock_id;
    tx->mask       = room - 1;
    tx->depth      = cap->max_send_wr;
    tx->max_sge    = (cap->max_send_sge > 0) ? cap->max_send_sge : 1;
    tx->max_inline = cap->max_inline_data;
    tx->stride     = (sizeof(struct sv_swqe) +
                      tx->max_sge * sizeof(struct ibv_sge) +
                      cap->max_inline_data + 7) & ~7u;
    /* Pages of the kernel cost memory when they are first used: most QPs of a large job
     * post little. */
    tx->wqes       = mmap(NULL, sv_tx_bytes(tx), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (tx->wqes == MAP_FAILED) {
        tx->wqes = NULL;
        return -1;
    }
    return 0;
}

static void sv_tx_cleanup(struct sv_tx *tx)
{
    if (tx->wqes != NULL) {
        munmap(tx->wqes, sv_tx_bytes(tx));
    }
}

/* Takes the first ring of a QP. 0 or -1. Needs node->lock. */
static int sv_qp_take_ring(struct sv_node *node, struct sv_qp *qp,
                           uint32_t index)
{
    if (qp->base.qp_type == IBV_QPT_UD) {
        return sv_ring_reserve(node->self, index, SV_RING_BYTES);
    }
    return (sv_table_take_at(node, &node->small_table, index) < 0) ? -1 : 0;
}

/* Returns the QP's number and its first ring. Needs node->lock. */
static void sv_qp_give_number(struct sv_node *node, struct sv_qp *qp)
{
    sv_assert_mutex_held(&node->lock);
    if (qp->base.qp_type != IBV_QPT_UD) {
        sv_table_give(&node->small_table, qp->index);
    }
    sv_table_give(&node->qp_table, qp->index);
}

/* Takes a number, its entry and its first ring. Needs node->lock. */
static int sv_qp_take_number(struct sv_node *node, struct sv_qp *qp)
{
    uint32_t serial, index, tries;

    sv_assert_mutex_held(&node->lock);
    for (tries = 0; tries < SV_QP_MAX; ++tries) {
        serial = ++node->serial & SV_SERIAL_MASK;
        index  = serial & (SV_QP_MAX - 1);
        if (node->qp_table.taken[index]) {
            continue;
        }
        if (sv_table_take_at(node, &node->qp_table, index) < 0) {
            return -1;
        }
        if (sv_qp_take_ring(node, qp, index) != 0) {
            sv_table_give(&node->qp_table, index);
            errno = ENOMEM;
            return -1;
        }

        qp->index       = index;
        qp->base.qp_num = (node->slot << SV_SERIAL_BITS) | serial;
        return 0;
    }

    errno = ENOMEM;
    return -1;
}

static void sv_qp_publish(struct sv_qp *qp)
{
    struct sv_shm_qp *shm = sv_peer_qp(qp->node->self, qp->index);

    qp->shm     = shm;
    shm->type   = qp->base.qp_type;
    shm->pdn    = qp->pdn;
    shm->cq     = sv_cq(qp->base.recv_cq)->index;
    shm->srq    = SV_NO_SRQ;
    if (qp->base.srq != NULL) {
        shm->srq  = sv_srq(qp->base.srq)->index;
        qp->recvs = &sv_srq(qp->base.srq)->rq;
    } else {
        qp->recvs          = &qp->rq;
        qp->rq.shm_posted  = &shm->posted;
        qp->rq.shm_min_len = &shm->min_len;
        sv_rq_reset(&qp->rq);
    }

    /* Epochs continue those of the entry's former owner, so that its senders do
     * not take us for it. */
    qp->epoch = shm->last_epoch;
    atomic_store(&shm->accept, 0);
    atomic_store(&shm->dest_qpn, 0);
    atomic_store(&shm->qpn, qp->base.qp_num);
}

/* Count the QP at the objects that it uses; undo that. */
static void sv_qp_ref_objects(struct sv_qp *qp)
{
    struct sv_cq *send_cq = sv_cq(qp->base.send_cq);
    struct sv_cq *recv_cq = sv_cq(qp->base.recv_cq);

    /* Each QP counts the whole SRQ: more than needed, never less. */
    atomic_fetch_add(&send_cq->max_outstanding, qp->tx.depth);
    atomic_fetch_add(&recv_cq->max_outstanding, qp->recvs->depth);
    atomic_fetch_add(&send_cq->users, 1);
    atomic_fetch_add(&recv_cq->users, 1);
    atomic_fetch_add(&sv_pd(qp->base.pd)->users, 1);

    pthread_mutex_lock(&qp->ctx->lock);
    sv_rq_attach(qp->recvs, recv_cq);
    if (qp->base.srq != NULL) {
        atomic_fetch_add(&sv_srq(qp->base.srq)->users, 1);
    }
    pthread_mutex_unlock(&qp->ctx->lock);
}

static void sv_qp_unref_objects(struct sv_qp *qp)
{
    struct sv_cq *send_cq = sv_cq(qp->base.send_cq);
    struct sv_cq *recv_cq = sv_cq(qp->base.recv_cq);

    pthread_mutex_lock(&qp->ctx->lock);
    if ((qp->base.srq != NULL) &&
        (atomic_fetch_sub(&sv_srq(qp->base.srq)->users, 1) == 1)) {
        sv_rq_detach(qp->recvs);
    }
    pthread_mutex_unlock(&qp->ctx->lock);

    atomic_fetch_sub(&sv_pd(qp->base.pd)->users, 1);
    atomic_fetch_sub(&recv_cq->users, 1);
    atomic_fetch_sub(&send_cq->users, 1);
    atomic_fetch_sub(&recv_cq->max_outstanding, qp->recvs->depth);
    atomic_fetch_sub(&send_cq->max_outstanding, qp->tx.depth);
}

static struct sv_qp *sv_qp_new(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    struct sv_qp *qp = calloc(1, sizeof(*qp));

    if (qp == NULL) {
        return NULL;
    }

    qp->ctx             = sv_context(pd->context);
    qp->node            = qp->ctx->node;
    qp->pdn             = sv_pd(pd)->pdn;
    qp->init            = *init;
    qp->sq_sig_all      = (init->sq_sig_all != 0);
    qp->tx.special      = (init->qp_type == IBV_QPT_UD);
    qp->base.context    = pd->context;
    qp->base.pd         = pd;
    qp->base.qp_context = init->qp_context;
    qp->base.send_cq    = init->send_cq;
    qp->base.recv_cq    = init->recv_cq;
    qp->base.srq        = init->srq;
    qp->base.qp_type    = init->qp_type;
    pthread_mutex_init(&qp->base.mutex, NULL);
    pthread_cond_init(&qp->base.cond, NULL);
    return qp;
}

static void sv_qp_free(struct sv_qp *qp)
{
    pthread_cond_destroy(&qp->base.cond);
    pthread_mutex_destroy(&qp->base.mutex);
    if (qp->faults != NULL) {
        sv_hooks.qp_detach(qp);
    }
    sv_rq_cleanup(&qp->rq);
    sv_tx_cleanup(&qp->tx);
    free(qp->rx.cur);
    free(qp);
}

/* Allocates the queues, and room for a copy of the RECV being filled. */
static int sv_qp_queues(struct sv_qp *qp, struct ibv_qp_init_attr *init)
{
    uint32_t max_sge = (init->srq != NULL) ? sv_srq(init->srq)->rq.max_sge :
                                             init->cap.max_recv_sge;

    qp->rx.cur = calloc(1, sizeof(*qp->rx.cur) +
                                   max_sge * sizeof(struct ibv_sge));
    if ((qp->rx.cur == NULL) ||
        (sv_tx_init(&qp->tx, qp->node, &init->cap) != 0)) {
        return -1;
    }
    if (init->srq != NULL) {
        return 0;
    }
    return sv_rq_init(&qp->rq, qp->node, qp->pdn, init->cap.max_recv_wr,
                      init->cap.max_recv_sge);
}

SV_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd,
                                       struct ibv_qp_init_attr *init)
{
    struct sv_node *node = sv_context(pd->context)->node;
    struct sv_qp *qp;
    int ret;

    ret = sv_qp_check_init(pd, init);
    if (ret != 0) {
        errno = ret;
        return NULL;
    }

    if (sv_hook_verb(SV_VERB_CREATE_QP) != 0) {
        return NULL;
    }

    qp = sv_qp_new(pd, init);
    if (qp == NULL) {
        return NULL;
    }
    if (sv_qp_queues(qp, init) != 0) {
        goto err_nomem;
    }

    pthread_mutex_lock(&node->lock);
    ret = sv_qp_take_number(node, qp);
    pthread_mutex_unlock(&node->lock);
    if (ret != 0) {
        goto err_nomem;
    }

    if (sv_hooks.qp_number != NULL) {
        qp->number = sv_hooks.qp_number(init->qp_type);
    }
    sv_qp_publish(qp);
    sv_qp_ref_objects(qp);
    if (sv_scan_add(sv_cq(init->recv_cq), qp) != 0) {
        goto err_number;
    }

    pthread_mutex_lock(&node->objects_lock);
    node->qps[qp->index] = qp;
    pthread_mutex_unlock(&node->objects_lock);
    if (sv_hooks.qp_attach != NULL) {
        sv_hooks.qp_attach(qp);
    }
    return &qp->base;

err_number:
    sv_qp_unref_objects(qp);
    atomic_store(&qp->shm->qpn, 0);
    pthread_mutex_lock(&node->lock);
    sv_qp_give_number(node, qp);
    pthread_mutex_unlock(&node->lock);
err_nomem:
    sv_qp_free(qp);
    errno = ENOMEM;
    return NULL;
}

/* Takes the QP out of the fabric. False: its entry must not be reused. */
static bool sv_qp_unpublish(struct sv_qp *qp)
{
    struct sv_cq *cq = sv_cq(qp->base.recv_cq);
    bool clean;

    sv_spin_lock(&cq->rx_lock);
    atomic_store(&qp->state, IBV_QPS_ERR);
    clean               = (sv_rx_close(qp, false) == 0);
    qp->shm->last_epoch = qp->epoch;
    atomic_store(&qp->shm->qpn, 0);
    sv_cq_rx_unlock(cq);

    sv_stuck_remove(qp);
    sv_spin_lock(&qp->tx.lock);
    sv_tx_disconnect(qp);
    sv_spin_unlock(&qp->tx.lock);
    return clean;
}

SV_EXPORT int ibv_destroy_qp(struct ibv_qp *ibqp)
{
    struct sv_qp *qp     = sv_qp(ibqp);
    struct sv_node *node = qp->node;
    bool clean;

    if (sv_is_orphaned(ibqp->context)) {
        return 0;
    }

    pthread_mutex_lock(&node->objects_lock);
    node->qps[qp->index] = NULL;
    pthread_mutex_unlock(&node->objects_lock);

    /* Only our caller knows the QP from here on. First no packet and no other
     * thread can reach it, then no completion names it, then its entry is
     * free. */
    clean = sv_qp_unpublish(qp);
    sv_scan_remove(sv_cq(ibqp->recv_cq), qp);
    sv_cq_remove_qp(sv_cq(ibqp->send_cq), qp);
    sv_cq_remove_qp(sv_cq(ibqp->recv_cq), qp);
    sv_async_remove(qp->ctx, ibqp, &ibqp->mutex, &ibqp->cond,
                    &ibqp->events_completed, &qp->async_sent);
    if (clean) {
        sv_ring_release(node, qp->index, SV_RING_MIDDLE);
        sv_ring_release(node, qp->index, SV_RING_BYTES);
        pthread_mutex_lock(&node->lock);
        sv_qp_give_number(node, qp);
        pthread_mutex_unlock(&node->lock);
    }

    sv_qp_unref_objects(qp);
    sv_qp_free(qp);
    return 0;
}

void sv_qp_close_all(struct sv_context *ctx)
{
    struct sv_node *node = ctx->node;
    struct sv_qp *qp;
    uint32_t i;

    pthread_mutex_lock(&node->objects_lock);
    for (i = 0; i < SV_QP_MAX; ++i) {
        qp = node->qps[i];
        if ((qp != NULL) && (qp->ctx == ctx)) {
            node->qps[i] = NULL;
            sv_qp_unpublish(qp);
        }
    }
    pthread_mutex_unlock(&node->objects_lock);
}
