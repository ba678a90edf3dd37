/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects of the device that a connected conn has.
 *
 * Threads: async.
 */
#ifndef UCT_DAQIRI_LINK_H
#define UCT_DAQIRI_LINK_H

#include "daqiri.h"
#include "dq/dq_wire.h"

/* Makes an address handle for the peer's handshake if there is none. May block for a
 * second. UCS_ERR_UNREACHABLE if a retry may succeed. */
ucs_status_t uct_daqiri_link_address(uct_daqiri_peer_t *peer);
/* Makes an address handle for somebody who is no peer, or not yet; the caller owns it.
 * NULL if that is not possible now. *gid_index_p is the index of our GID. */
struct ibv_ah *uct_daqiri_link_address_once(uct_daqiri_iface_t *iface,
                                            const dq_port_addr_t *port,
                                            uint8_t *gid_index_p);
/* Makes a QP in INIT for somebody who is no peer yet; the caller owns it. @a is_another:
 * the conn has had one, and tells by itself what fails. UCS_ERR_NO_RESOURCE if the device
 * has none now. */
ucs_status_t uct_daqiri_link_create_qp(uct_daqiri_iface_t *iface, int is_another,
                                       struct ibv_qp **qp_p);
/* The same for the next attempt of a peer, which has no QP now. It keeps the QP. */
ucs_status_t uct_daqiri_link_reserve(uct_daqiri_peer_t *peer);
/* Gives to the new conn what was made for it. @a qp may be NULL. */
void uct_daqiri_link_give(uct_daqiri_peer_t *peer, struct ibv_ah *ah, uint8_t gid_index,
                          struct ibv_qp *qp);
/* Destroys what was made for a conn that there will not be. @a qp may be NULL. */
void uct_daqiri_link_discard(struct ibv_ah *ah, struct ibv_qp *qp);
/* Makes a QP in INIT, unless one is reserved, with RECVs behind its window, and tells
 * progress. After a failure
 * uct_daqiri_link_close() frees what was made. */
ucs_status_t uct_daqiri_link_open(uct_daqiri_peer_t *peer);
void uct_daqiri_link_close(uct_daqiri_peer_t *peer);
/* Closes the QP alone: another one follows. */
void uct_daqiri_link_close_qp(uct_daqiri_peer_t *peer);
/* Destroys the QP. Its number still leads to the conn, because completions of it may be
 * in the CQs. */
void uct_daqiri_link_destroy_qp(uct_daqiri_peer_t *peer);

#endif
