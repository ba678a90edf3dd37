/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints that UCP creates first and connects later (CONNECT_TO_EP), as its
 * client/server path does. All endpoints between two interfaces share a conn. So the
 * address of an endpoint is that of its interface. Connecting the endpoint gives it the
 * conn that it would otherwise have from its creation.
 *
 * Until then the endpoint has a stub: a conn of its own that leads nowhere. The gate of a
 * stub never opens, no table has it, and the async thread never learns of it. So every
 * operation finds a conn. The stub refuses the operation, and its request waits.
 */
#include "ep/daqiri_p2p.h"

#include "base/daqiri_addr.h"
#include "base/daqiri_mail.h"
#include "conn/daqiri_budget.h"
#include "conn/daqiri_conn.h"
#include "conn/daqiri_tx.h"
#include "ep/daqiri_ep.h"
#include "ep/daqiri_pending.h"
#include "iface/daqiri_iface.h"


ucs_status_t uct_daqiri_p2p_init(uct_daqiri_ep_t *ep, uct_daqiri_iface_t *iface)
{
    uct_daqiri_conn_t *stub = ucs_calloc(1, sizeof(*stub), "daqiri_stub");

    if (stub == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    stub->iface   = iface;
    stub->is_stub = 1;
    pthread_mutex_init(&stub->preconnect.lock, NULL);
    ucs_queue_head_init(&stub->pending.queue);
    ucs_list_head_init(&stub->eps);
    dq_sq_init(&stub->sq, iface->config.sq_depth, iface->config.signal_every,
               0, NULL);
    uct_daqiri_tx_set_direct(stub);
    ep->conn = stub;
    ucs_list_add_tail(&stub->eps, &ep->conn_link);
    return UCS_OK;
}


void uct_daqiri_p2p_free(uct_daqiri_conn_t *stub)
{
    pthread_mutex_destroy(&stub->preconnect.lock);
    ucs_free(stub);
}


ucs_status_t uct_daqiri_ep_get_address(uct_ep_h tl_ep, uct_ep_addr_t *addr)
{
    uct_daqiri_ep_t *ep = ucs_derived_of(tl_ep, uct_daqiri_ep_t);

    uct_daqiri_addr_get(ep->conn->iface, addr);
    return UCS_OK;
}


/* UCP may connect an endpoint again, to the same peer. */
static ucs_status_t uct_daqiri_p2p_retry(const uct_daqiri_conn_t *conn,
                                         const dq_iface_addr_t *peer)
{
    if (conn->peer.addr.uuid == peer->uuid) {
        return UCS_OK;
    }
    ucs_error("daqiri: an endpoint that is connected cannot be connected to "
              "another peer");
    return UCS_ERR_ALREADY_EXISTS;
}


ucs_status_t uct_daqiri_ep_connect_to_ep(uct_ep_h tl_ep,
                                         const uct_device_addr_t *dev_addr,
                                         const uct_ep_addr_t *ep_addr)
{
    uct_daqiri_ep_t *ep     = ucs_derived_of(tl_ep, uct_daqiri_ep_t);
    uct_daqiri_conn_t *stub = ep->conn;
    dq_iface_addr_t peer;
    dq_port_addr_t port;
    ucs_status_t status;

    memcpy(&peer, ep_addr, sizeof(peer)); /* either may be unaligned */
    memcpy(&port, dev_addr, sizeof(port));
    if (!stub->is_stub) {
        return uct_daqiri_p2p_retry(stub, &peer);
    }
    if (!uct_daqiri_addr_is_alike(stub->iface, ep_addr)) {
        return UCS_ERR_UNREACHABLE;
    }
    status = uct_daqiri_conn_get(stub->iface, &port, &peer, &ep->conn);
    if (status != UCS_OK) {
        ep->conn = stub;
        return status;
    }

    ucs_list_del(&ep->conn_link);
    ucs_list_add_tail(&ep->conn->eps, &ep->conn_link);
    uct_daqiri_pending_move(stub, ep->conn);
    ep->conn->next_flags |= stub->next_flags;
    uct_daqiri_p2p_free(stub);
    uct_daqiri_budget_open(ep->conn);
    return UCS_OK;
}
