/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of connections, and the sources of events that the async thread handles.
 *
 * Threads: any; the lock of the mail guards the table.
 */
#ifndef UCT_DAQIRI_CM_H
#define UCT_DAQIRI_CM_H

#include "base/daqiri_mail.h"
#include "iface/daqiri_iface.h"

/* Opens the mail and the carrier, and starts the async side. After a failure nothing
 * is left open. */
ucs_status_t uct_daqiri_cm_init(uct_daqiri_iface_t *iface);
/* Stops the async side: its thread does not touch the interface after this returns. */
void uct_daqiri_cm_stop(uct_daqiri_iface_t *iface);
/* Frees what uct_daqiri_cm_init() made, once it is stopped. */
void uct_daqiri_cm_cleanup(uct_daqiri_iface_t *iface);

/* Finds the conn to this peer, or creates it. UCS_ERR_NO_MEMORY if there is no memory.
 * Any thread. */
ucs_status_t uct_daqiri_cm_get(uct_daqiri_iface_t *iface,
                               const dq_port_addr_t *port,
                               const dq_iface_addr_t *addr,
                               uct_daqiri_conn_t **conn_p);
/* The same for a peer whose address comes from UCP. A REQ from another address may have
 * created a conn in the peer's name. That conn loses its place in the table, and the
 * caller must end it: *forged_p. Otherwise *forged_p is NULL. Progress. */
ucs_status_t uct_daqiri_cm_get_addressed(uct_daqiri_iface_t *iface,
                                         const dq_port_addr_t *port,
                                         const dq_iface_addr_t *addr,
                                         uct_daqiri_conn_t **conn_p,
                                         uct_daqiri_conn_t **forged_p);
/* Finds the conn of this peer. NULL if there is none. Any thread. */
uct_daqiri_conn_t *uct_daqiri_cm_find(uct_daqiri_iface_t *iface,
                                      uint64_t uuid);
/* Takes the conn out of the table: the next uct_daqiri_cm_get() creates another. */
void uct_daqiri_cm_remove(uct_daqiri_conn_t *conn);

#endif
