/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What UCT asks of an interface: its limits, its addresses, whom it reaches.
 *
 * Threads: UCT's.
 */
#ifndef UCT_DAQIRI_QUERY_H
#define UCT_DAQIRI_QUERY_H

#include "daqiri.h"

ucs_status_t uct_daqiri_iface_query(uct_iface_h tl_iface,
                                    uct_iface_attr_t *attr);
ucs_status_t uct_daqiri_iface_get_device_address(uct_iface_h tl_iface,
                                                 uct_device_addr_t *addr);
ucs_status_t uct_daqiri_iface_get_address(uct_iface_h tl_iface,
                                          uct_iface_addr_t *addr);
int uct_daqiri_iface_is_reachable(const uct_iface_h tl_iface,
                                  const uct_device_addr_t *dev_addr,
                                  const uct_iface_addr_t *iface_addr);
/* The same, with the reason; NULL if it is reachable. */
const char *uct_daqiri_iface_unreachable(const uct_iface_h tl_iface,
                                         const uct_device_addr_t *dev_addr,
                                         const uct_iface_addr_t *iface_addr);
/* Can it talk to an interface with this address, or endpoint's address? Says why
 * not, once. */
int uct_daqiri_iface_is_alike(uct_daqiri_iface_t *iface, const void *addr);
/* Seconds that RDMA takes of the processor that begins it, beside the post. */
double uct_daqiri_iface_rdma_overhead(const uct_iface_h tl_iface);
/* Is the peer at the port that the interface has? */
int uct_daqiri_iface_is_same_device(const uct_iface_h tl_iface,
                                    const uct_device_addr_t *dev_addr);
/* Does the endpoint lead there? Either address may be NULL. */
int uct_daqiri_ep_is_connected(const uct_ep_h tl_ep, const void *dev_addr,
                               const void *iface_addr);

#endif
