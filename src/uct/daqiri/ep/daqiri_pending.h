/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that wait until an operation may be posted.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_PENDING_H
#define UCT_DAQIRI_PENDING_H

#include "daqiri.h"

ucs_status_t uct_daqiri_ep_pending_add(uct_ep_h tl_ep, uct_pending_req_t *req,
                                       unsigned flags);
void uct_daqiri_ep_pending_purge(uct_ep_h tl_ep,
                                 uct_pending_purge_callback_t cb, void *arg);
/* What waits for a stub waits for another conn from now on. */
void uct_daqiri_pending_move(uct_daqiri_conn_t *stub, uct_daqiri_conn_t *conn);
/* The requests that wait for a conn which is over, tried once more: those that want
 * nothing of the peer go, the others stay. */
void uct_daqiri_pending_finish(uct_daqiri_conn_t *conn);
/* Offers the conns that wait another try. Returns how many requests went. */
unsigned uct_daqiri_dispatch(uct_daqiri_iface_t *iface);

#endif
