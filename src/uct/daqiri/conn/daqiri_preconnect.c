/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Holds the first requests of a conn; see daqiri_preconnect.h.
 */
#include "conn/daqiri_preconnect.h"

#include "base/daqiri_pool.h"
#include "conn/daqiri_conn.h"
#include "conn/daqiri_op.h"
#include "conn/daqiri_qp.h"
#include "conn/daqiri_tx.h"
#include "iface/daqiri_iface.h"

/* One held request, with its SGEs. Inline data follows. */
typedef struct {
    struct ibv_send_wr wr;
    uct_daqiri_ep_t    *ep; /* endpoint whose user's memory it uses, or NULL */
    struct ibv_sge     sge[UCT_DAQIRI_SGE_MAX];
    uint8_t            data[];
} uct_daqiri_preconnect_wr_t;

struct uct_daqiri_preconnect {
    size_t   stride;    /* bytes from one held request to the next           */
    unsigned count;     /* requests held                                     */
    int      error;     /* errno of the refusal, or 0                        */
    uint32_t send_end;      /* first id that was refused                         */
    uint8_t  wrs[] __attribute__((aligned(8)));
};


static uct_daqiri_preconnect_wr_t *
uct_daqiri_preconnect_wr(uct_daqiri_preconnect_t *queue, unsigned index)
{
    return (uct_daqiri_preconnect_wr_t*)(queue->wrs + (index * queue->stride));
}


static uct_daqiri_preconnect_t *uct_daqiri_preconnect_alloc(uct_daqiri_iface_t *iface)
{
    size_t stride = ucs_align_up_pow2(sizeof(uct_daqiri_preconnect_wr_t) +
                                      iface->config.max_inline,
                                      _Alignof(uct_daqiri_preconnect_wr_t));
    uct_daqiri_preconnect_t *queue;

    queue = ucs_malloc(sizeof(*queue) + (DQ_SQ_PRECONNECT_MAX * stride),
                       "daqiri_preconnect");
    if (queue != NULL) {
        *queue = (uct_daqiri_preconnect_t){.stride = stride};
    }
    return queue;
}


dq_admit_t uct_daqiri_preconnect_admit(uct_daqiri_conn_t *conn,
                                       dq_wr_class_t wr_class)
{
    uct_daqiri_iface_t *iface      = conn->iface;
    uct_daqiri_pool_t *pool        = &iface->tx.pool;
    uct_daqiri_preconnect_t *queue = conn->preconnect.queue;
    dq_admit_t admit;

    if (conn->is_stub) {
        return DQ_ADMIT_NOT_UP;
    }
    admit = dq_sq_admit_preconnect(&conn->sq, &iface->tx.ledger, wr_class);
    if (admit != DQ_ADMIT_OK) {
        return admit;
    }
    /* Half of the buffers is for conns that are up, as is half of the CQ. */
    if ((pool->count - pool->free_count) * 2 >= pool->limit) {
        return DQ_ADMIT_NOT_UP;
    }
    if (queue == NULL) {
        queue = uct_daqiri_preconnect_alloc(iface);
        pthread_mutex_lock(&conn->preconnect.lock);
        conn->preconnect.queue = queue;
        pthread_mutex_unlock(&conn->preconnect.lock);
    }
    return (queue == NULL) ? DQ_ADMIT_NOT_UP : DQ_ADMIT_OK;
}


/* Gathers the data of @a wr at @a data, and makes it the only SGE. */
static void uct_daqiri_preconnect_gather(uct_daqiri_preconnect_wr_t *held,
                                         const struct ibv_send_wr *wr, uint8_t *data,
                                         uint32_t lkey)
{
    uint8_t *end = data;
    int i;

    for (i = 0; i < wr->num_sge; i++) {
        memmove(end, (const void*)(uintptr_t)wr->sg_list[i].addr,
                wr->sg_list[i].length);
        end += wr->sg_list[i].length;
    }
    held->wr.num_sge = wr->num_sge > 0;
    held->sge[0]     = (struct ibv_sge){
        .addr   = (uintptr_t)data,
        .length = end - data,
        .lkey   = lkey,
    };
}


/* Copies the request. A message starts in its send buffer, which has room for the rest of
 * it. A fetched result will come there, too. */
static void uct_daqiri_preconnect_copy(uct_daqiri_preconnect_wr_t *held,
                                       const struct ibv_send_wr *wr,
                                       uct_daqiri_ep_t *ep, uint32_t desc)
{
    int i;

    held->wr         = *wr;
    held->wr.next    = NULL;
    held->wr.sg_list = held->sge;
    held->ep         = NULL;
    if (wr->send_flags & IBV_SEND_INLINE) {
        uct_daqiri_preconnect_gather(held, wr, held->data, 0);
    } else if ((desc != UCT_DAQIRI_NO_DESC) && (wr->num_sge > 0)) {
        uct_daqiri_preconnect_gather(held, wr,
                                     (uint8_t*)(uintptr_t)wr->sg_list[0].addr,
                                     wr->sg_list[0].lkey);
    } else {
        held->ep = ep;
        for (i = 0; i < wr->num_sge; i++) {
            held->sge[i] = wr->sg_list[i];
        }
    }
}


int uct_daqiri_preconnect_add(uct_daqiri_conn_t *conn,
                              const struct ibv_send_wr *wr, uct_daqiri_ep_t *ep,
                              uint32_t desc)
{
    uct_daqiri_preconnect_t *queue = conn->preconnect.queue;
    uct_daqiri_preconnect_wr_t *held;
    uint32_t send_end;
    int ret = 0;

    conn->iface->count->preconnect++;
    pthread_mutex_lock(&conn->preconnect.lock);
    held = uct_daqiri_preconnect_wr(queue, queue->count);
    uct_daqiri_preconnect_copy(held, wr, ep, desc);
    if (conn->preconnect.is_posted && (queue->error == 0)) {
        ret = uct_daqiri_qp_post(conn->preconnect.qp, &held->wr, &send_end);
        if ((ret != 0) && (conn->replay.slots != NULL)) {
            queue->error    = ret; /* progress handles it when it knows the conn is up */
            queue->send_end = send_end;
            ret             = 0;
        }
    } else if (!conn->preconnect.is_posted) {
        queue->count++;
    }
    pthread_mutex_unlock(&conn->preconnect.lock);
    return ret;
}


/* ---- The conn is up ---- */

static void uct_daqiri_preconnect_do_post(uct_daqiri_conn_t *conn,
                                          struct ibv_qp *qp)
{
    uct_daqiri_preconnect_t *queue = conn->preconnect.queue;
    unsigned i;

    if (conn->preconnect.is_posted) {
        return;
    }
    conn->preconnect.is_posted = 1;
    conn->preconnect.qp        = qp;
    if (queue == NULL) {
        return;
    }
    for (i = 0; i + 1 < queue->count; i++) {
        uct_daqiri_preconnect_wr(queue, i)->wr.next =
                &uct_daqiri_preconnect_wr(queue, i + 1)->wr;
    }
    if (queue->count > 0) {
        queue->error = uct_daqiri_qp_post(qp,
                                          &uct_daqiri_preconnect_wr(queue, 0)->wr,
                                          &queue->send_end);
        queue->count = 0;
    }
}


void uct_daqiri_preconnect_post(uct_daqiri_conn_t *conn, struct ibv_qp *qp)
{
    pthread_mutex_lock(&conn->preconnect.lock);
    uct_daqiri_preconnect_do_post(conn, qp);
    pthread_mutex_unlock(&conn->preconnect.lock);
}


/* Frees the queue, and sets qp.is_used. Does the latter once only, for the first QP.
 * Returns the error of the device if it has refused held requests, with the first id, or
 * 0. */
static int uct_daqiri_preconnect_free(uct_daqiri_conn_t *conn, uint32_t *send_end_p)
{
    int error = 0;

    if (!conn->preconnect.is_known) {
        conn->preconnect.is_known = 1;
        conn->qp.is_used         |= conn->preconnect.is_posted;
    }
    if (conn->preconnect.queue != NULL) {
        error           = conn->preconnect.queue->error;
        *send_end_p     = conn->preconnect.queue->send_end;
        ucs_free(conn->preconnect.queue);
        conn->preconnect.queue = NULL;
    }
    return error;
}


void uct_daqiri_preconnect_open(uct_daqiri_conn_t *conn)
{
    uint32_t send_end;
    int error;

    uct_daqiri_assert_progress(conn->iface);
    pthread_mutex_lock(&conn->preconnect.lock);
    uct_daqiri_preconnect_do_post(conn, conn->qp.verbs);
    error = uct_daqiri_preconnect_free(conn, &send_end);
    pthread_mutex_unlock(&conn->preconnect.lock);

    if (error != 0) {
        uct_daqiri_tx_on_refused(conn, send_end, error);
    }
}


/* ---- The conn will not be up, or an endpoint goes ---- */

/* If the device has refused some of the requests, the conn has a send_end from here
 * on. */
void uct_daqiri_preconnect_drop(uct_daqiri_conn_t *conn)
{
    uint32_t send_end;

    pthread_mutex_lock(&conn->preconnect.lock);
    if ((uct_daqiri_preconnect_free(conn, &send_end) != 0) && !conn->qp.has_send_end) {
        uct_daqiri_tx_set_send_end(conn, send_end);
    }
    pthread_mutex_unlock(&conn->preconnect.lock);
}


/* An empty RDMA WRITE replaces each request that can no longer be sent. */
int uct_daqiri_preconnect_detach(uct_daqiri_ep_t *ep)
{
    uct_daqiri_conn_t *conn        = ep->conn;
    uct_daqiri_preconnect_t *queue = conn->preconnect.queue;
    uct_daqiri_preconnect_wr_t *held;
    unsigned i;
    int is_held;

    if (queue == NULL) {
        return 0;
    }
    pthread_mutex_lock(&conn->preconnect.lock);
    is_held = !conn->preconnect.is_posted;
    for (i = 0; i < queue->count; i++) {
        held = uct_daqiri_preconnect_wr(queue, i);
        if (held->ep == ep) {
            held->ep         = NULL;
            held->wr.opcode  = IBV_WR_RDMA_WRITE;
            held->wr.num_sge = 0;
            uct_daqiri_tx_bar_replay(conn, held->wr.wr_id);
        }
    }
    pthread_mutex_unlock(&conn->preconnect.lock);
    return is_held;
}


int uct_daqiri_preconnect_is_posted(uct_daqiri_conn_t *conn)
{
    int is_posted;

    if (conn->preconnect.queue == NULL) {
        return 0;
    }
    pthread_mutex_lock(&conn->preconnect.lock);
    is_posted = conn->preconnect.is_posted;
    pthread_mutex_unlock(&conn->preconnect.lock);
    return is_posted;
}
