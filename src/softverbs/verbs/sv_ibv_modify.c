/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_modify_qp() and ibv_query_qp(): which state changes are legal, with which
 * attributes, and what they do.
 *
 * The table has a row for each legal change that needs attributes. Any state
 * may change to RESET or ERR, with no attributes. The only exception is RESET
 * to ERR, which goes through INIT as in Linux.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_limits.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/engine/sv_qp_error.h"
#include "softverbs/engine/sv_rx.h"
#include "softverbs/engine/sv_stuck.h"
#include "softverbs/engine/sv_tx.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/fabric/sv_port.h"
#include "softverbs/objects/sv_context.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_hooks.h"
#include "softverbs/objects/sv_qp.h"
#include "softverbs/objects/sv_rq.h"

#include <errno.h>
#include <string.h>

#define SV_RC    (1u << IBV_QPT_RC)
#define SV_UD    (1u << IBV_QPT_UD)

struct sv_transition {
    unsigned types;
    unsigned from;
    unsigned to;
    int      required;
    int      optional;
};

static const struct sv_transition sv_transitions[] = {
    {SV_RC, IBV_QPS_RESET, IBV_QPS_INIT,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {SV_UD, IBV_QPS_RESET, IBV_QPS_INIT,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},

    {SV_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {SV_UD, IBV_QPS_INIT, IBV_QPS_INIT, 0,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},

    {SV_RC, IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
     IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS},
    {SV_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},

    {SV_RC, IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
     IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {SV_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN,
     IBV_QP_CUR_STATE | IBV_QP_QKEY},

    {SV_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {SV_UD, IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},

    {SV_RC | SV_UD, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},

    {SV_RC, IBV_QPS_SQD, IBV_QPS_RTS, 0,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {SV_UD, IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},

    {SV_RC, IBV_QPS_SQD, IBV_QPS_SQD, 0,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT |
     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {SV_UD, IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},

    {SV_UD, IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY}
};

#define SV_NUM_TRANSITIONS (sizeof(sv_transitions) / sizeof(*sv_transitions))

static bool sv_transition_is_legal(enum ibv_qp_type type, unsigned from,
                                   unsigned to, int mask)
{
    const struct sv_transition *t;

    mask &= ~IBV_QP_STATE;
    if ((to == IBV_QPS_RESET) || (to == IBV_QPS_ERR)) {
        return (mask == 0) &&
               ((from != IBV_QPS_RESET) || (to != IBV_QPS_ERR));
    }

    for (t = sv_transitions; t < sv_transitions + SV_NUM_TRANSITIONS; ++t) {
        if (((t->types & (1u << type)) != 0) && (t->from == from) &&
            (t->to == to)) {
            return ((mask & t->required) == t->required) &&
                   ((mask & ~(t->required | t->optional)) == 0);
        }
    }
    return false;
}

static bool sv_av_is_legal(const struct ibv_ah_attr *av)
{
    return (av->port_num == 1) &&
           (!av->is_global || (av->grh.sgid_index == sv_port_gid_index()));
}

/* Checks values that the device cannot take in any state. */
static bool sv_attr_is_legal(const struct ibv_qp_attr *attr, int mask)
{
    return (!(mask & IBV_QP_PORT) || (attr->port_num == 1)) &&
           (!(mask & IBV_QP_PKEY_INDEX) || (attr->pkey_index == 0)) &&
           (!(mask & IBV_QP_AV) || sv_av_is_legal(&attr->ah_attr)) &&
           (!(mask & IBV_QP_PATH_MTU) || ((attr->path_mtu >= IBV_MTU_256) &&
                                          (attr->path_mtu <= IBV_MTU_4096))) &&
           (!(mask & IBV_QP_DEST_QPN) || (attr->dest_qp_num < (1u << 24))) &&
           (!(mask & IBV_QP_TIMEOUT) || (attr->timeout <= 31)) &&
           (!(mask & IBV_QP_RETRY_CNT) || (attr->retry_cnt <= 7)) &&
           (!(mask & IBV_QP_RNR_RETRY) || (attr->rnr_retry <= 7)) &&
           (!(mask & IBV_QP_MIN_RNR_TIMER) || (attr->min_rnr_timer <= 31)) &&
           (!(mask & IBV_QP_MAX_QP_RD_ATOMIC) ||
            (attr->max_rd_atomic <= SV_LIMIT_RD)) &&
           (!(mask & IBV_QP_MAX_DEST_RD_ATOMIC) ||
            (attr->max_dest_rd_atomic <= SV_LIMIT_RD));
}

/* Copies attributes under tx.lock, because the engine reads some of them while
 * it runs. */
static void sv_attr_store(struct sv_qp *qp, const struct ibv_qp_attr *from,
                          int mask)
{
    struct ibv_qp_attr *to = &qp->attr;

    sv_spin_lock(&qp->tx.lock);
    to->port_num      = (mask & IBV_QP_PORT) ? from->port_num : to->port_num;
    to->pkey_index    = (mask & IBV_QP_PKEY_INDEX) ? from->pkey_index :
                                                     to->pkey_index;
    to->ah_attr       = (mask & IBV_QP_AV) ? from->ah_attr : to->ah_attr;
    to->path_mtu      = (mask & IBV_QP_PATH_MTU) ? from->path_mtu :
                                                   to->path_mtu;
    to->dest_qp_num   = (mask & IBV_QP_DEST_QPN) ? from->dest_qp_num :
                                                   to->dest_qp_num;
    to->rq_psn        = (mask & IBV_QP_RQ_PSN) ? (from->rq_psn & 0xffffff) :
                                                 to->rq_psn;
    to->sq_psn        = (mask & IBV_QP_SQ_PSN) ? (from->sq_psn & 0xffffff) :
                                                 to->sq_psn;
    to->qkey          = (mask & IBV_QP_QKEY) ? from->qkey : to->qkey;
    to->timeout       = (mask & IBV_QP_TIMEOUT) ? from->timeout : to->timeout;
    to->retry_cnt     = (mask & IBV_QP_RETRY_CNT) ? from->retry_cnt :
                                                    to->retry_cnt;
    to->rnr_retry     = (mask & IBV_QP_RNR_RETRY) ? from->rnr_retry :
                                                    to->rnr_retry;
    to->min_rnr_timer = (mask & IBV_QP_MIN_RNR_TIMER) ? from->min_rnr_timer :
                                                        to->min_rnr_timer;
    to->max_rd_atomic = (mask & IBV_QP_MAX_QP_RD_ATOMIC) ?
                                from->max_rd_atomic : to->max_rd_atomic;
    to->max_dest_rd_atomic = (mask & IBV_QP_MAX_DEST_RD_ATOMIC) ?
                                     from->max_dest_rd_atomic :
                                     to->max_dest_rd_atomic;
    to->qp_access_flags    = (mask & IBV_QP_ACCESS_FLAGS) ?
                                     from->qp_access_flags :
                                     to->qp_access_flags;
    sv_spin_unlock(&qp->tx.lock);

    atomic_store(&qp->shm->qkey, to->qkey);
    atomic_store(&qp->shm->access, to->qp_access_flags);
    atomic_store(&qp->shm->min_rnr, to->min_rnr_timer);
}

/* ---- what a change of state does ---- */

/* Also drops completions that are not polled yet. So messages that have arrived
 * are not delivered: the program would never learn of them. Needs rx_lock. */
static void sv_qp_to_reset(struct sv_qp *qp)
{
    struct sv_tx *tx = &qp->tx;

    sv_assert_held(&sv_cq(qp->base.recv_cq)->rx_lock);
    atomic_store(&qp->state, IBV_QPS_RESET);
    sv_rx_close(qp, false);
    sv_stuck_remove(qp);

    sv_spin_lock(&tx->lock);
    sv_tx_disconnect(qp);
    sv_cq_flush(sv_cq(qp->base.recv_cq));
    sv_cq_remove_qp(sv_cq(qp->base.send_cq), qp);
    sv_cq_remove_qp(sv_cq(qp->base.recv_cq), qp);
    tx->posted = tx->done = 0;
    atomic_store(&tx->freed, 0);
    sv_spin_unlock(&tx->lock);

    if (qp->base.srq == NULL) {
        sv_rq_reset(&qp->rq);
    }
    atomic_store(&qp->rx_flush_due, false);
    atomic_store(&qp->cq_lost, false);
    atomic_store(&qp->shm->dest_qpn, 0);
    qp->rx.busy          = false;
    qp->comm_established = false;
}

/* Needs rx_lock. */
static int sv_qp_to_rtr(struct sv_qp *qp)
{
    struct sv_shm_qp *shm = qp->shm;

    sv_assert_held(&sv_cq(qp->base.recv_cq)->rx_lock);
    if (!sv_rx_can_open(qp)) {
        return EBUSY;
    }

    shm->rq_psn = qp->attr.rq_psn;
    atomic_store(&shm->dest_qpn, (qp->base.qp_type == IBV_QPT_RC) ?
                                         qp->attr.dest_qp_num : 0);
    sv_rx_open(qp);
    atomic_store(&qp->state, IBV_QPS_RTR);
    return 0;
}

static void sv_qp_to_rts(struct sv_qp *qp)
{
    sv_spin_lock(&qp->tx.lock);
    atomic_store(&qp->state, IBV_QPS_RTS);
    sv_tx_run(qp);
    if (qp->tx.done != qp->tx.posted) {
        sv_stuck_add(qp);
    }
    sv_spin_unlock(&qp->tx.lock);
}

static void sv_qp_to_sqd(struct sv_qp *qp, bool notify)
{
    sv_spin_lock(&qp->tx.lock);
    atomic_store(&qp->state, IBV_QPS_SQD);
    qp->tx.drain_event = notify;
    sv_tx_drained(qp);
    sv_spin_unlock(&qp->tx.lock);
}

static int sv_qp_enter(struct sv_qp *qp, unsigned state,
                       const struct ibv_qp_attr *attr, int mask)
{
    struct sv_cq *cq = sv_cq(qp->base.recv_cq);
    int ret          = 0;

    sv_spin_lock(&cq->rx_lock);
    switch (state) {
    case IBV_QPS_RESET:
        sv_qp_to_reset(qp);
        break;
    case IBV_QPS_RTR:
        ret = sv_qp_to_rtr(qp);
        break;
    case IBV_QPS_RTS:
        sv_qp_to_rts(qp);
        break;
    case IBV_QPS_SQD:
        sv_qp_to_sqd(qp, (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) &&
                                 attr->en_sqd_async_notify);
        break;
    case IBV_QPS_ERR:
        if (atomic_load(&qp->state) != IBV_QPS_ERR) {
            sv_qp_to_err(qp);
        }
        break;
    default:
        atomic_store(&qp->state, state);
        break;
    }
    sv_rx_flush_if_due(qp);
    sv_cq_rx_unlock(cq);
    return ret;
}

/* Checks now whether the peer can be reached at all, and logs why not. 0 or an
 * errno. */
static int sv_qp_check_peer(const struct sv_qp *qp,
                            const struct ibv_qp_attr *attr, int mask)
{
    if (mask & IBV_QP_AV) {
        sv_address_check(&attr->ah_attr);
    }
    return ((mask & IBV_QP_DEST_QPN) && sv_address_is_local(&attr->ah_attr)) ?
           sv_peer_check(qp->node, sv_qpn_slot(attr->dest_qp_num)) : 0;
}

SV_EXPORT int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
                            int mask)
{
    struct sv_qp *qp = sv_qp(ibqp);
    unsigned from, to;
    int ret;

    if (sv_is_orphaned(ibqp->context)) {
        return EIO;
    }

    ret = sv_hook_verb(SV_VERB_MODIFY_QP);
    if (ret != 0) {
        return ret;
    }

    ret = EINVAL;

    pthread_mutex_lock(&ibqp->mutex);
    from = atomic_load(&qp->state);
    to   = (mask & IBV_QP_STATE) ? attr->qp_state : from;
    if (((mask & IBV_QP_CUR_STATE) && (attr->cur_qp_state != from)) ||
        !sv_transition_is_legal(ibqp->qp_type, from, to, mask) ||
        !sv_attr_is_legal(attr, mask)) {
        goto out;
    }

    ret = sv_qp_check_peer(qp, attr, mask);
    if (ret != 0) {
        goto out;
    }

    sv_attr_store(qp, attr, mask);
    ret = (mask & IBV_QP_STATE) ? sv_qp_enter(qp, to, attr, mask) : 0;
    ibqp->state = atomic_load(&qp->state);

out:
    pthread_mutex_unlock(&ibqp->mutex);
    return ret;
}

SV_EXPORT int ibv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
                           int mask, struct ibv_qp_init_attr *init)
{
    struct sv_qp *qp = sv_qp(ibqp);
    int ret          = sv_hook_verb(SV_VERB_QUERY_QP);

    if (ret != 0) {
        return ret;
    }

    (void)mask; /* says what is wanted at least */
    pthread_mutex_lock(&ibqp->mutex);
    *attr              = qp->attr;
    attr->qp_state     = atomic_load(&qp->state);
    attr->cur_qp_state = attr->qp_state;
    attr->cap          = qp->init.cap;
    attr->sq_draining  = 0;
    *init              = qp->init;
    ibqp->state        = attr->qp_state;
    pthread_mutex_unlock(&ibqp->mutex);
    return 0;
}
