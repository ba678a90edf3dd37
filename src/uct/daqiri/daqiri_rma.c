/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations on the caller's memory: RDMA WRITE and READ. They take
 * no credit, for no RECV of the peer is used; that the data has arrived tells
 * their own completion.
 */
#include "daqiri_ep.h"


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
    iface->count.rma_bytes += total;
    return UCS_INPROGRESS;
}


ucs_status_t uct_daqiri_ep_put_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                     size_t iovcnt, uint64_t remote_addr,
                                     uct_rkey_t rkey, uct_completion_t *comp)
{
    uct_daqiri_ep_t *ep = ucs_derived_of(tl_ep, uct_daqiri_ep_t);

    return uct_daqiri_rma_zcopy(ep, "put_zcopy", IBV_WR_RDMA_WRITE, iov,
                                iovcnt, remote_addr, rkey, comp,
                                &ep->conn->iface->count.put_zcopy);
}


ucs_status_t uct_daqiri_ep_get_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                     size_t iovcnt, uint64_t remote_addr,
                                     uct_rkey_t rkey, uct_completion_t *comp)
{
    uct_daqiri_ep_t *ep = ucs_derived_of(tl_ep, uct_daqiri_ep_t);

    return uct_daqiri_rma_zcopy(ep, "get_zcopy", IBV_WR_RDMA_READ, iov,
                                iovcnt, remote_addr, rkey, comp,
                                &ep->conn->iface->count.get_zcopy);
}
