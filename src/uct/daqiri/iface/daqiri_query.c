/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers what UCP asks before it sends: capabilities, costs, addresses.
 */
#include "iface/daqiri_query.h"

#include "base/daqiri_addr.h"
#include "base/daqiri_port.h"
#include "conn/daqiri_conn.h"
#include "ep/daqiri_ep.h"
#include "iface/daqiri_iface.h"


static void uct_daqiri_iface_query_am(uct_daqiri_iface_t *iface,
                                      uct_iface_attr_t *attr)
{
    size_t max = iface->config.seg_size - sizeof(dq_msg_hdr_t);

    attr->cap.flags = UCT_IFACE_FLAG_CONNECT_TO_IFACE |
                      UCT_IFACE_FLAG_CONNECT_TO_EP |
                      UCT_IFACE_FLAG_AM_SHORT | UCT_IFACE_FLAG_AM_BCOPY |
                      UCT_IFACE_FLAG_AM_ZCOPY |
                      UCT_IFACE_FLAG_PENDING | UCT_IFACE_FLAG_CB_SYNC |
                      UCT_IFACE_FLAG_EP_CHECK |
                      UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE |
                      UCT_IFACE_FLAG_ERRHANDLE_ZCOPY_BUF |
                      UCT_IFACE_FLAG_ERRHANDLE_REMOTE_MEM |
                      UCT_DAQIRI_IFACE_INTER_NODE;

    attr->cap.am.max_short       = iface->config.max_short;
    attr->cap.am.max_bcopy       = uct_daqiri_compat_max_bcopy(max);
    attr->cap.am.min_zcopy       = 0;
    attr->cap.am.max_zcopy       = max;
    attr->cap.am.max_hdr         = iface->config.max_hdr;
    attr->cap.am.max_iov         = iface->config.max_sge - 1;
    attr->cap.am.opt_zcopy_align = UCS_SYS_PCI_MAX_PAYLOAD;
    attr->cap.am.align_mtu       = 128u << iface->config.mtu;
}


static void uct_daqiri_iface_query_rma(uct_daqiri_iface_t *iface,
                                       uct_iface_attr_t *attr)
{
    size_t mtu = 128u << iface->config.mtu;

    attr->cap.flags |= UCT_IFACE_FLAG_PUT_BCOPY | UCT_IFACE_FLAG_PUT_ZCOPY |
                       UCT_IFACE_FLAG_GET_BCOPY | UCT_IFACE_FLAG_GET_ZCOPY;
    if (iface->config.max_inline > 0) {
        attr->cap.flags |= UCT_IFACE_FLAG_PUT_SHORT;
    }

    attr->cap.put.max_short       = iface->config.max_inline;
    attr->cap.put.max_bcopy       = iface->config.seg_size;
    attr->cap.get.max_bcopy       = uct_daqiri_fetch_offset(iface);
    attr->cap.put.max_zcopy       = iface->config.port.max_msg_sz;
    attr->cap.put.max_iov         = iface->config.max_sge;
    attr->cap.put.opt_zcopy_align = UCS_SYS_PCI_MAX_PAYLOAD;
    attr->cap.put.align_mtu       = mtu;
    attr->cap.get.max_zcopy       = iface->config.port.max_msg_sz;
    attr->cap.get.max_iov         = iface->config.max_sge;
    attr->cap.get.opt_zcopy_align = UCS_SYS_PCI_MAX_PAYLOAD;
    attr->cap.get.align_mtu       = mtu;
}


/* The atomics of verbs, if the device has them. They are atomic with respect to requests
 * through the same device. GLOB means: with respect to the CPU, too. */
static void uct_daqiri_iface_query_amo(uct_daqiri_iface_t *iface,
                                       uct_iface_attr_t *attr)
{
    enum ibv_atomic_cap cap = uct_daqiri_iface_md(iface)->attr.atomic_cap;

    if (cap == IBV_ATOMIC_NONE) {
        return;
    }
    attr->cap.flags |= UCT_IFACE_FLAG_ATOMIC_DEVICE;
    if (cap == IBV_ATOMIC_GLOB) {
        attr->cap.flags |= UCT_IFACE_FLAG_ATOMIC_CPU;
    }
    attr->cap.atomic64.op_flags  = UCS_BIT(UCT_ATOMIC_OP_ADD);
    attr->cap.atomic64.fop_flags = UCS_BIT(UCT_ATOMIC_OP_ADD) |
                                   UCS_BIT(UCT_ATOMIC_OP_CSWAP);
}


ucs_status_t uct_daqiri_iface_query(uct_iface_h tl_iface,
                                    uct_iface_attr_t *attr)
{
    uct_daqiri_iface_t *iface = ucs_derived_of(tl_iface, uct_daqiri_iface_t);

    uct_base_iface_query(&iface->super, attr);
    uct_daqiri_iface_query_am(iface, attr);
    uct_daqiri_iface_query_rma(iface, attr);
    uct_daqiri_iface_query_amo(iface, attr);
    attr->cap.event_flags     = UCT_IFACE_FLAG_EVENT_SEND_COMP |
                                UCT_IFACE_FLAG_EVENT_RECV |
                                UCT_IFACE_FLAG_EVENT_FD;
    attr->device_addr_len     = sizeof(dq_port_addr_t);
    attr->iface_addr_len      = sizeof(dq_iface_info_t);
    attr->ep_addr_len         = sizeof(dq_iface_info_t);
    attr->bandwidth.dedicated = 0;
    attr->bandwidth.shared    = uct_daqiri_port_bandwidth(iface);
    /* The latency grows with the connections that the device has to keep in its cache.
     * The overhead is the CPU time of one post. */
    attr->latency             = ucs_linear_func_make(iface->config.latency,
                                                     1e-9);
    attr->overhead            = 75e-9;
    attr->priority            = 0;
    return UCS_OK;
}


double uct_daqiri_iface_rdma_overhead(const uct_iface_h tl_iface)
{
    return ucs_derived_of(tl_iface, uct_daqiri_iface_t)->config.rdma_overhead;
}


ucs_status_t uct_daqiri_iface_get_device_address(uct_iface_h tl_iface,
                                                 uct_device_addr_t *addr)
{
    uct_daqiri_iface_t *iface = ucs_derived_of(tl_iface, uct_daqiri_iface_t);

    memcpy(addr, &iface->config.port_addr, sizeof(iface->config.port_addr));
    return UCS_OK;
}


ucs_status_t uct_daqiri_iface_get_address(uct_iface_h tl_iface,
                                          uct_iface_addr_t *addr)
{
    uct_daqiri_addr_get(ucs_derived_of(tl_iface, uct_daqiri_iface_t), addr);
    return UCS_OK;
}


static int uct_daqiri_iface_is_address(const void *dev_addr,
                                       const void *iface_addr)
{
    dq_port_addr_t port;
    dq_iface_info_t info;

    memcpy(&port, dev_addr, sizeof(port));
    if (iface_addr == NULL) {
        return dq_port_addr_is_one(&port);
    }
    memcpy(&info, iface_addr, sizeof(info));
    return dq_port_addr_is_one(&port) && dq_iface_info_is_one(&info);
}


const char *uct_daqiri_iface_unreachable(const uct_iface_h tl_iface,
                                         const uct_device_addr_t *dev_addr,
                                         const uct_iface_addr_t *iface_addr)
{
    uct_daqiri_iface_t *iface = ucs_derived_of(tl_iface, uct_daqiri_iface_t);

    if (!uct_daqiri_iface_is_address(dev_addr, iface_addr)) {
        return "this is no address of daqiri";
    }
    if (!uct_daqiri_port_reaches(iface, (const dq_port_addr_t*)dev_addr)) {
        return "no network of this port leads to the peer's";
    }
    if ((iface_addr != NULL) && !uct_daqiri_addr_is_alike(iface, iface_addr)) {
        return "the peer has another SEG_SIZE, or another version of daqiri";
    }
    return NULL;
}


int uct_daqiri_iface_is_reachable(const uct_iface_h tl_iface,
                                  const uct_device_addr_t *dev_addr,
                                  const uct_iface_addr_t *iface_addr)
{
    return uct_daqiri_iface_unreachable(tl_iface, dev_addr, iface_addr) == NULL;
}


int uct_daqiri_iface_is_same_device(const uct_iface_h tl_iface,
                                    const uct_device_addr_t *dev_addr)
{
    uct_daqiri_iface_t *iface = ucs_derived_of(tl_iface, uct_daqiri_iface_t);

    return memcmp(&iface->config.port_addr, dev_addr,
                  sizeof(iface->config.port_addr)) == 0;
}


int uct_daqiri_ep_is_connected(const uct_ep_h tl_ep, const void *dev_addr,
                               const void *iface_addr)
{
    const uct_daqiri_conn_t *conn = ucs_derived_of(tl_ep,
                                                   uct_daqiri_ep_t)->conn;
    dq_iface_info_t info;

    if (conn->is_stub || ((dev_addr == NULL) && (iface_addr == NULL))) {
        return 0;
    }
    if ((dev_addr != NULL) && (memcmp(&conn->peer.port, dev_addr,
                                      sizeof(conn->peer.port)) != 0)) {
        return 0;
    }
    if (iface_addr == NULL) {
        return 1;
    }
    memcpy(&info, iface_addr, sizeof(info)); /* it may lie at any address */
    return conn->peer.addr.uuid == info.who.uuid;
}
