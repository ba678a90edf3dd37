/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints that are connected later, by the peer's endpoint's address.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_P2P_H
#define UCT_DAQIRI_P2P_H

#include "daqiri.h"

/* Gives the new endpoint a stub for its conn. */
ucs_status_t uct_daqiri_p2p_init(uct_daqiri_ep_t *ep,
                                 uct_daqiri_iface_t *iface);
/* That has no endpoint any more. */
void uct_daqiri_p2p_free(uct_daqiri_conn_t *stub);
ucs_status_t uct_daqiri_ep_get_address(uct_ep_h tl_ep, uct_ep_addr_t *addr);
ucs_status_t uct_daqiri_ep_connect_to_ep(uct_ep_h tl_ep,
                                         const uct_device_addr_t *dev_addr,
                                         const uct_ep_addr_t *ep_addr);

#endif
