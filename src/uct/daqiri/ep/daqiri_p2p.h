/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints that UCP connects after their creation, to an endpoint of the peer.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_P2P_H
#define UCT_DAQIRI_P2P_H

#include "daqiri.h"

/* Gives a new endpoint a stub as its conn. UCS_ERR_NO_MEMORY if there is no memory. */
ucs_status_t uct_daqiri_p2p_init(uct_daqiri_ep_t *ep,
                                 uct_daqiri_iface_t *iface);
/* Frees a stub that has no endpoint any more. */
void uct_daqiri_p2p_free(uct_daqiri_conn_t *stub);
/* Writes the address of the endpoint, which is that of its interface. */
ucs_status_t uct_daqiri_ep_get_address(uct_ep_h tl_ep, uct_ep_addr_t *addr);
/* Gives an endpoint that has a stub the conn to this peer, and frees the stub. Requests
 * that wait move along. UCS_OK if it is connected to this peer already,
 * UCS_ERR_ALREADY_EXISTS if to another. UCS_ERR_UNREACHABLE if the peer cannot be
 * reached, or has another SEG_SIZE or version of the wire. */
ucs_status_t uct_daqiri_ep_connect_to_ep(uct_ep_h tl_ep,
                                         const uct_device_addr_t *dev_addr,
                                         const uct_ep_addr_t *ep_addr);

#endif
