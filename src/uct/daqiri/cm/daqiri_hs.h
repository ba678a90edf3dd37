/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake.
 *
 * Threads: async.
 */
#ifndef UCT_DAQIRI_HS_H
#define UCT_DAQIRI_HS_H

#include "daqiri.h"

void uct_daqiri_hs_on_command(uct_daqiri_conn_t *conn, uint32_t commands);
void uct_daqiri_hs_on_frame(uct_daqiri_iface_t *iface, const void *payload,
                            size_t length);
void uct_daqiri_hs_on_datagram(uct_daqiri_iface_t *iface);
void uct_daqiri_hs_on_tick(uct_daqiri_iface_t *iface);
/* Whoever waits for an answer asks at once, and then as at the beginning. */
void uct_daqiri_hs_retry_now(uct_daqiri_iface_t *iface);
/* The carrier's CQ has failed: no answer comes any more. Who waits for one, and
 * who will want a QP, fails; conns that are up go on. */
void uct_daqiri_hs_fail_carrier(uct_daqiri_iface_t *iface);
/* While the interface closes: says so to the peer, unless it is known to know.
 * cm.silent counts who was told and has not answered, but did so before. */
void uct_daqiri_hs_send_all_gone(uct_daqiri_conn_t *conn);
/* In place of uct_daqiri_hs_on_frame(): what is answered, or answers us; and who
 * asks for a connection is told that there will be none. */
void uct_daqiri_hs_on_last_frame(uct_daqiri_iface_t *iface,
                                 const void *payload, size_t length);

#endif
