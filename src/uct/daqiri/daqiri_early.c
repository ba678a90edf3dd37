/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Holding the first requests of a conn; see daqiri_early.h.
 */
#include "daqiri_early.h"

/* One held request, with all it points to; inline data follows the SGEs. */
typedef struct {
    struct ibv_send_wr wr;
    uct_daqiri_ep_t    *ep; /* whose user's memory it points to, or NULL     */
    struct ibv_sge     sge[UCT_DAQIRI_SGE_MAX];
    uint8_t            data[];
} uct_daqiri_early_wr_t;

struct uct_daqiri_early {
    size_t   stride;    /* bytes from one held request to the next           */
    unsigned count;     /* held                                              */
    int      error;     /* why the device refused them, or 0                 */
    uint32_t hole;      /* from which id on                                  */
    uint8_t  wrs[] __attribute__((aligned(8)));
};


static uct_daqiri_early_wr_t *uct_daqiri_early_wr(uct_daqiri_early_t *early,
                                                  unsigned index)
{
    return (uct_daqiri_early_wr_t*)(early->wrs + (index * early->stride));
}


static uct_daqiri_early_t *uct_daqiri_early_alloc(uct_daqiri_iface_t *iface)
{
    size_t stride = ucs_align_up_pow2(sizeof(uct_daqiri_early_wr_t) +
                                      iface->config.max_inline,
                                      _Alignof(uct_daqiri_early_wr_t));
    uct_daqiri_early_t *early;

    early = ucs_malloc(sizeof(*early) + (DQ_SQ_EARLY_MAX * stride),
                       "daqiri_early");
    if (early != NULL) {
        *early = (uct_daqiri_early_t){.stride = stride};
    }
    return early;
}


dq_admit_t uct_daqiri_early_admit(uct_daqiri_conn_t *conn,
                                  dq_wr_class_t wr_class)
{
    uct_daqiri_iface_t *iface = conn->iface;
    uct_daqiri_pool_t *pool   = &iface->tx.pool;
    uct_daqiri_early_t *early = conn->early;
    dq_admit_t admit;

    if (conn->is_stub) {
        return DQ_ADMIT_NOT_UP;
    }
    admit = dq_sq_admit_early(&conn->sq, &iface->tx.ledger, wr_class);
    if (admit != DQ_ADMIT_OK) {
        return admit;
    }
    /* half of the buffers is for conns that are up, like half of the CQ */
    if ((pool->count - pool->free_count) * 2 >= pool->limit) {
        return DQ_ADMIT_NOT_UP;
    }
    if (early == NULL) {
        early = uct_daqiri_early_alloc(iface);
        pthread_mutex_lock(&conn->early_lock);
        conn->early = early;
        pthread_mutex_unlock(&conn->early_lock);
    }
    return (early == NULL) ? DQ_ADMIT_NOT_UP : DQ_ADMIT_OK;
}


/* Gathers @a wr's data at @a data, and makes it the one thing to send. */
static void uct_daqiri_early_gather(uct_daqiri_early_wr_t *held,
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


/* A message starts in its send buffer, where there is room for the rest of it;
 * what is fetched will come there. */
static void uct_daqiri_early_copy(uct_daqiri_early_wr_t *held,
                                  const struct ibv_send_wr *wr,
                                  uct_daqiri_ep_t *ep, uint32_t desc)
{
    int i;

    held->wr         = *wr;
    held->wr.next    = NULL;
    held->wr.sg_list = held->sge;
    held->ep         = NULL;
    if (wr->send_flags & IBV_SEND_INLINE) {
        uct_daqiri_early_gather(held, wr, held->data, 0);
    } else if ((desc != UCT_DAQIRI_NO_DESC) && (wr->num_sge > 0)) {
        uct_daqiri_early_gather(held, wr,
                                (uint8_t*)(uintptr_t)wr->sg_list[0].addr,
                                wr->sg_list[0].lkey);
    } else {
        held->ep = ep;
        for (i = 0; i < wr->num_sge; i++) {
            held->sge[i] = wr->sg_list[i];
        }
    }
}


int uct_daqiri_early_hold(uct_daqiri_conn_t *conn,
                          const struct ibv_send_wr *wr, uct_daqiri_ep_t *ep,
                          uint32_t desc)
{
    uct_daqiri_early_t *early = conn->early;
    uct_daqiri_early_wr_t *held;
    struct ibv_send_wr *bad_wr;
    int ret = 0;

    conn->iface->count->early++;
    pthread_mutex_lock(&conn->early_lock);
    held = uct_daqiri_early_wr(early, early->count);
    uct_daqiri_early_copy(held, wr, ep, desc);
    if (conn->is_early_over && (early->error == 0)) {
        ret = ibv_post_send(conn->hs.qp, &held->wr, &bad_wr);
        if ((ret != 0) && (conn->redo.slots != NULL)) {
            early->error = ret; /* for progress to see once it knows */
            early->hole  = wr->wr_id;
            ret          = 0;
        }
    } else if (!conn->is_early_over) {
        early->count++;
    }
    pthread_mutex_unlock(&conn->early_lock);
    return ret;
}


/* ---- The conn is up ---- */

static void uct_daqiri_early_do_post(uct_daqiri_conn_t *conn)
{
    uct_daqiri_early_t *early = conn->early;
    struct ibv_send_wr *bad_wr;
    unsigned i;

    if (conn->is_early_over) {
        return;
    }
    conn->is_early_over = 1;
    if (early == NULL) {
        return;
    }
    for (i = 0; i + 1 < early->count; i++) {
        uct_daqiri_early_wr(early, i)->wr.next =
                &uct_daqiri_early_wr(early, i + 1)->wr;
    }
    if (early->count > 0) {
        early->error = ibv_post_send(conn->hs.qp,
                                     &uct_daqiri_early_wr(early, 0)->wr,
                                     &bad_wr);
        if (early->error != 0) {
            early->hole = bad_wr->wr_id; /* and all that comes after it */
        }
        early->count = 0;
    }
}


void uct_daqiri_early_post(uct_daqiri_conn_t *conn)
{
    pthread_mutex_lock(&conn->early_lock);
    uct_daqiri_early_do_post(conn);
    pthread_mutex_unlock(&conn->early_lock);
}


/* Once: what becomes of later QPs is not said here. Returns why the device has
 * refused what was held, and from which id on, or 0. */
static int uct_daqiri_early_free(uct_daqiri_conn_t *conn, uint32_t *hole_p)
{
    int error = 0;

    if (!conn->is_early_known) {
        conn->is_early_known = 1;
        conn->was_up        |= conn->is_early_over;
    }
    if (conn->early != NULL) {
        error       = conn->early->error;
        *hole_p     = conn->early->hole;
        ucs_free(conn->early);
        conn->early = NULL;
    }
    return error;
}


void uct_daqiri_early_open(uct_daqiri_conn_t *conn)
{
    uint32_t hole;
    int error;

    pthread_mutex_lock(&conn->early_lock);
    uct_daqiri_early_do_post(conn);
    error = uct_daqiri_early_free(conn, &hole);
    pthread_mutex_unlock(&conn->early_lock);

    if (error != 0) {
        uct_daqiri_tx_hole(conn, hole, error);
    }
}


/* ---- It will not be, or not for everybody ---- */

/* What the device has refused of it is known to be a hole from here on. */
void uct_daqiri_early_drop(uct_daqiri_conn_t *conn)
{
    uint32_t hole;

    pthread_mutex_lock(&conn->early_lock);
    if ((uct_daqiri_early_free(conn, &hole) != 0) && !conn->is_holed) {
        uct_daqiri_tx_set_hole(conn, hole);
    }
    pthread_mutex_unlock(&conn->early_lock);
}


/* An empty RDMA WRITE takes the place of what cannot be sent any more. */
int uct_daqiri_early_let_go(uct_daqiri_ep_t *ep)
{
    uct_daqiri_conn_t *conn   = ep->conn;
    uct_daqiri_early_t *early = conn->early;
    uct_daqiri_early_wr_t *held;
    unsigned i;
    int is_held;

    if (early == NULL) {
        return 0;
    }
    pthread_mutex_lock(&conn->early_lock);
    is_held = !conn->is_early_over;
    for (i = 0; i < early->count; i++) {
        held = uct_daqiri_early_wr(early, i);
        if (held->ep == ep) {
            held->ep         = NULL;
            held->wr.opcode  = IBV_WR_RDMA_WRITE;
            held->wr.num_sge = 0;
            uct_daqiri_tx_spoil(conn, held->wr.wr_id);
        }
    }
    pthread_mutex_unlock(&conn->early_lock);
    return is_held;
}


int uct_daqiri_early_is_posted(uct_daqiri_conn_t *conn)
{
    int is_posted;

    if (conn->early == NULL) {
        return 0;
    }
    pthread_mutex_lock(&conn->early_lock);
    is_posted = conn->is_early_over;
    pthread_mutex_unlock(&conn->early_lock);
    return is_posted;
}
