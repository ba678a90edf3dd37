/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The address of an interface, which is also that of its endpoints.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_ADDR_H
#define UCT_DAQIRI_ADDR_H

#include "daqiri.h"

/* Writes the address of the interface, a dq_iface_info_t. */
void uct_daqiri_addr_get(const uct_daqiri_iface_t *iface, void *addr);
/* Whether this address, of an interface or an endpoint, has the same size of segments and
 * the same version of the wire. Logs once why not. */
int uct_daqiri_addr_is_alike(uct_daqiri_iface_t *iface, const void *addr);

#endif
