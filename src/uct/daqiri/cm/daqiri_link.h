/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a connected conn has of the device.
 *
 * Threads: async.
 */
#ifndef UCT_DAQIRI_LINK_H
#define UCT_DAQIRI_LINK_H

#include "daqiri.h"
#include "dq/dq_wire.h"

/* A way to address the peer's handshake, if there is none yet. May block for
 * a second. UCS_ERR_UNREACHABLE: not now, but another try may succeed. */
ucs_status_t uct_daqiri_link_address(uct_daqiri_conn_t *conn);
/* The same to somebody who is no peer, or not yet. NULL: not now. The caller's.
 * *gid_index_p: at which our GID was. */
struct ibv_ah *uct_daqiri_link_address_once(uct_daqiri_iface_t *iface,
                                            const dq_port_addr_t *port,
                                            uint8_t *gid_index_p);
/* It is the conn's from now on. */
void uct_daqiri_link_give_ah(uct_daqiri_conn_t *conn, struct ibv_ah *ah,
                             uint8_t gid_index);
/* A QP in INIT with RECVs behind it; tells progress. What a failure leaves,
 * uct_daqiri_link_close() takes. */
ucs_status_t uct_daqiri_link_open(uct_daqiri_conn_t *conn);
void uct_daqiri_link_close(uct_daqiri_conn_t *conn);
/* Only the QP: another one follows. */
void uct_daqiri_link_close_qp(uct_daqiri_conn_t *conn);
/* But its number still leads to the conn: completions of it may be in the CQs. */
void uct_daqiri_link_destroy_qp(uct_daqiri_conn_t *conn);

#endif
