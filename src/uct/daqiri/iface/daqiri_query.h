/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queries of UCT about an interface: its limits, its addresses, whom it reaches.
 *
 * Threads: progress.
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
/* The reason why the peer is not reachable, or NULL if it is. */
const char *uct_daqiri_iface_unreachable(const uct_iface_h tl_iface,
                                         const uct_device_addr_t *dev_addr,
                                         const uct_iface_addr_t *iface_addr);
/* Seconds of processor time that a READ or a WRITE takes beyond its post. */
double uct_daqiri_iface_rdma_overhead(const uct_iface_h tl_iface);
/* Whether the peer is on the same port as the interface. */
int uct_daqiri_iface_is_same_device(const uct_iface_h tl_iface,
                                    const uct_device_addr_t *dev_addr);
/* Whether the endpoint leads to these addresses. Either may be NULL. */
int uct_daqiri_ep_is_connected(const uct_ep_h tl_ep, const void *dev_addr,
                               const void *iface_addr);

#endif
