/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A request that the device refuses although it fits the queue is no reason to
 * give up a healthy QP:
 *
 *        retired             send_end          posted
 *        | owned by the NIC  | refused, behind it |
 *   -----[###################|....................]-----> ids
 *
 * From the first refused request on, all stay in the ledger, in order, with
 * their buffers and credits, and no later one goes past them. They are offered
 * again from progress (dq_retry.h says when) until the device has them; then the
 * conn posts as ever. An error that does not pass, or one that does not for the
 * shorter of SQ_STALL_TIMEOUT and STUCK_TIMEOUT, loses the QP.
 *
 * It takes what is remembered for recovery (daqiri_replay.h): with RECOVERY=n the
 * QP is given up at once.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_RETRY_H
#define UCT_DAQIRI_RETRY_H

#include "conn/daqiri_conn.h"

/* The device refused this request, and was given none after it. Non-zero: they
 * are kept, and offered again. */
int uct_daqiri_retry_keep(uct_daqiri_conn_t *conn, uint32_t id, int error);
/* The same for requests of a lost QP, posted on the next one by other rules up
 * to before @a fresh; what is before @a ahead the peer has. */
int uct_daqiri_retry_keep_replay(uct_daqiri_conn_t *conn, uint32_t id,
                                 uint32_t ahead, uint32_t fresh, int error);
/* The QP is lost: nothing is offered to it any more. */
void uct_daqiri_retry_stop(uct_daqiri_conn_t *conn);
/* Offers what is due. Returns how many requests went. */
unsigned uct_daqiri_retry_all(uct_daqiri_iface_t *iface);

#endif
