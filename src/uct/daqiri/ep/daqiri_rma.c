/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations: RDMA WRITE and READ, on the caller's memory or through a send
 * buffer. They take no credit, because they use no RECV of the peer. Their own completion
 * tells that the data has arrived.
 */
#include "ep/daqiri_rma.h"

#include "base/daqiri_pool.h"
#include "conn/daqiri_conn.h"
#include "conn/daqiri_op.h"
#include "conn/daqiri_replay.h"
#include "conn/daqiri_tx.h"
#include "ep/daqiri_ep.h"
#include "iface/daqiri_iface.h"


/* ---- Through a send buffer ---- */

static void uct_daqiri_fetch_done(uct_completion_t *super)
{
    uct_daqiri_fetch_t *fetch = ucs_derived_of(super, uct_daqiri_fetch_t);

    if (super->status == UCS_OK) {
        fetch->unpack(fetch->arg, fetch->data, fetch->length);
    }
    if (fetch->comp != NULL) {
        uct_invoke_completion(fetch->comp, super->status);
    }
}


/* Inline, because a get does little else. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_daqiri_fetch_post(uct_daqiri_ep_t *ep, size_t offset, uct_daqiri_tx_t *tx,
                      const uct_daqiri_fetch_t *fetch)
{
    uct_daqiri_conn_t *conn   = ep->conn;
    uct_daqiri_iface_t *iface = conn->iface;
    const uct_daqiri_buf_t *buf;
    struct ibv_sge unremembered;
    uct_daqiri_fetch_t *slot;
    struct ibv_sge *sge;
    ucs_status_t status;
    int is_scarce;
    uint32_t desc;

    status = uct_daqiri_ep_admit(ep, DQ_WR_RMA);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    if (ucs_unlikely(!uct_daqiri_tx_take_desc(iface, &desc, &is_scarce))) {
        return UCS_ERR_NO_RESOURCE;
    }

    buf         = &iface->tx.pool.bufs[desc];
    slot        = UCS_PTR_BYTE_OFFSET(buf->buf, offset);
    *slot       = *fetch;
    slot->data  = buf->buf;
    slot->super = (uct_completion_t){
        .func   = uct_daqiri_fetch_done,
        .count  = 1,
        .status = UCS_OK,
    };
    tx->wr_class = DQ_WR_RMA;
    tx->signal   = 1;
    tx->op       = (uct_daqiri_op_t){
        .comp = &slot->super,
        .ep   = ep,
        .desc = desc,
    };
    sge         = uct_daqiri_replay_sge(conn, tx, &unremembered);
    sge->addr   = (uintptr_t)buf->buf;
    sge->length = fetch->length;
    sge->lkey   = buf->lkey;
    return uct_daqiri_tx_post(conn, tx, sge, 1);
}


ucs_status_t uct_daqiri_fetch(uct_daqiri_ep_t *ep, uct_daqiri_tx_t *tx,
                              const uct_daqiri_fetch_t *fetch)
{
    return uct_daqiri_fetch_post(ep, uct_daqiri_fetch_offset(ep->conn->iface),
                                 tx, fetch);
}


ucs_status_t uct_daqiri_ep_put_short(uct_ep_h tl_ep, const void *buffer,
                                     unsigned length, uint64_t remote_addr,
                                     uct_rkey_t rkey)
{
    uct_daqiri_ep_t *ep       = ucs_derived_of(tl_ep, uct_daqiri_ep_t);
    uct_daqiri_iface_t *iface = ep->conn->iface;
    const uct_daqiri_tx_t tx  = {
        .wr_class    = DQ_WR_RMA,
        .opcode      = IBV_WR_RDMA_WRITE,
        .flags       = IBV_SEND_INLINE,
        .remote_addr = remote_addr,
        .rkey        = rkey,
        .op          = {.desc = UCT_DAQIRI_NO_DESC},
    };
    struct ibv_sge sge = {
        .addr   = (uintptr_t)buffer,
        .length = length,
    };
    ucs_status_t status;

    if (ucs_unlikely(length > iface->config.max_inline)) {
        return uct_daqiri_ep_bad_length("put_short", length,
                                        iface->config.max_inline);
    }
    if (ucs_unlikely(length == 0)) {
        return UCS_OK;
    }
    status = uct_daqiri_ep_admit(ep, DQ_WR_RMA);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    status = uct_daqiri_tx_post(ep->conn, &tx, &sge, 1);
    if (ucs_likely(status == UCS_OK)) {
        iface->count->put_short++;
        iface->count->rma_bytes += length;
    }
    return status;
}


ssize_t uct_daqiri_ep_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack_cb,
                                void *arg, uint64_t remote_addr,
                                uct_rkey_t rkey)
{
    uct_daqiri_ep_t *ep       = ucs_derived_of(tl_ep, uct_daqiri_ep_t);
    uct_daqiri_iface_t *iface = ep->conn->iface;
    uct_daqiri_tx_t tx        = {
        .wr_class    = DQ_WR_RMA,
        .opcode      = IBV_WR_RDMA_WRITE,
        .remote_addr = remote_addr,
        .rkey        = rkey,
    };
    const uct_daqiri_buf_t *buf;
    struct ibv_sge unremembered;
    struct ibv_sge *sge;
    ucs_status_t status;
    size_t length;

    status = uct_daqiri_ep_admit(ep, DQ_WR_RMA);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    if (ucs_unlikely(!uct_daqiri_tx_take_desc(iface, &tx.op.desc,
                                              &tx.signal))) {
        return UCS_ERR_NO_RESOURCE;
    }

    buf         = &iface->tx.pool.bufs[tx.op.desc];
    length      = pack_cb(buf->buf, arg);
    sge         = uct_daqiri_replay_sge(ep->conn, &tx, &unremembered);
    sge->addr   = (uintptr_t)buf->buf;
    sge->length = length;
    sge->lkey   = buf->lkey;
    status      = uct_daqiri_tx_post(ep->conn, &tx, sge, length > 0);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    iface->count->put_bcopy++;
    iface->count->rma_bytes += length;
    return length;
}


ucs_status_t uct_daqiri_ep_get_bcopy(uct_ep_h tl_ep,
                                     uct_unpack_callback_t unpack_cb,
                                     void *arg, size_t length,
                                     uint64_t remote_addr, uct_rkey_t rkey,
                                     uct_completion_t *comp)
{
    uct_daqiri_ep_t *ep            = ucs_derived_of(tl_ep, uct_daqiri_ep_t);
    uct_daqiri_iface_t *iface      = ep->conn->iface;
    const size_t offset            = uct_daqiri_fetch_offset(iface);
    const uct_daqiri_fetch_t fetch = {
        .comp   = comp,
        .unpack = unpack_cb,
        .arg    = arg,
        .length = length,
    };
    uct_daqiri_tx_t tx = {
        .opcode      = IBV_WR_RDMA_READ,
        .remote_addr = remote_addr,
        .rkey        = rkey,
    };
    ucs_status_t status;

    if (ucs_unlikely(length > offset)) {
        return uct_daqiri_ep_bad_length("get_bcopy", length, offset);
    }
    if (ucs_unlikely(length == 0)) {
        return UCS_OK;
    }
    status = uct_daqiri_fetch_post(ep, offset, &tx, &fetch);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    iface->count->get_bcopy++;
    iface->count->rma_bytes += length;
    return UCS_INPROGRESS;
}


/* ---- The caller's memory ---- */

static ucs_status_t uct_daqiri_rma_zcopy(uct_daqiri_ep_t *ep,
                                         const char *name,
                                         enum ibv_wr_opcode opcode,
                                         const uct_iov_t *iov, size_t iovcnt,
                                         uint64_t remote_addr, uct_rkey_t rkey,
                                         uct_completion_t *comp,
                                         uint64_t *counter)
{
    uct_daqiri_conn_t *conn   = ep->conn;
    uct_daqiri_iface_t *iface = conn->iface;
    const uct_daqiri_tx_t tx  = {
        .wr_class    = DQ_WR_RMA,
        .opcode      = opcode,
        .signal      = comp != NULL,
        .remote_addr = remote_addr,
        .rkey        = rkey,
        .op          = {.comp = comp, .ep = ep, .desc = UCT_DAQIRI_NO_DESC},
    };
    struct ibv_sge sge[UCT_DAQIRI_SGE_MAX];
    ucs_status_t status;
    size_t total;
    int num_sge;

    if (ucs_unlikely(iovcnt > iface->config.max_sge)) {
        return uct_daqiri_ep_bad_iov(iovcnt, iface->config.max_sge);
    }
    num_sge = uct_daqiri_ep_fill_sge(sge, iov, iovcnt, &total);
    if (ucs_unlikely(total > iface->config.port.max_msg_sz)) {
        return uct_daqiri_ep_bad_length(name, total,
                                        iface->config.port.max_msg_sz);
    }
    if (total == 0) {
        return UCS_OK;
    }
    status = uct_daqiri_ep_admit(ep, DQ_WR_RMA);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }

    status = uct_daqiri_tx_post(conn, &tx, sge, num_sge);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    (*counter)++;
    iface->count->rma_bytes += total;
    return UCS_INPROGRESS;
}


ucs_status_t uct_daqiri_ep_put_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                     size_t iovcnt, uint64_t remote_addr,
                                     uct_rkey_t rkey, uct_completion_t *comp)
{
    uct_daqiri_ep_t *ep = ucs_derived_of(tl_ep, uct_daqiri_ep_t);

    return uct_daqiri_rma_zcopy(ep, "put_zcopy", IBV_WR_RDMA_WRITE, iov,
                                iovcnt, remote_addr, rkey, comp,
                                &ep->conn->iface->count->put_zcopy);
}


ucs_status_t uct_daqiri_ep_get_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                     size_t iovcnt, uint64_t remote_addr,
                                     uct_rkey_t rkey, uct_completion_t *comp)
{
    uct_daqiri_ep_t *ep = ucs_derived_of(tl_ep, uct_daqiri_ep_t);

    return uct_daqiri_rma_zcopy(ep, "get_zcopy", IBV_WR_RDMA_READ, iov,
                                iovcnt, remote_addr, rkey, comp,
                                &ep->conn->iface->count->get_zcopy);
}
