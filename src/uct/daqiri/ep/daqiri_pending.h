/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that wait until an operation may be posted.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_PENDING_H
#define UCT_DAQIRI_PENDING_H

#include "daqiri.h"

/* Queues @a req, which stays UCP's. UCS_ERR_BUSY if it need not wait: UCP then sends. */
ucs_status_t uct_daqiri_ep_pending_add(uct_ep_h tl_ep, uct_pending_req_t *req,
                                       unsigned flags);
/* Takes all requests of the endpoint out of the queue, and gives each to @a cb, if there
 * is one. */
void uct_daqiri_ep_pending_purge(uct_ep_h tl_ep,
                                 uct_pending_purge_callback_t cb, void *arg);
/* Moves the requests that wait for a stub to the queue of @a conn. */
void uct_daqiri_pending_move(uct_daqiri_conn_t *stub, uct_daqiri_conn_t *conn);
/* Tries the requests of a conn without a QP once more. Those that need nothing of the
 * peer succeed; the others stay. */
void uct_daqiri_pending_finish(uct_daqiri_conn_t *conn);
/* Tries the requests of conns that wait. Returns how many were sent, in full or in
 * part. */
unsigned uct_daqiri_dispatch(uct_daqiri_iface_t *iface);

#endif
