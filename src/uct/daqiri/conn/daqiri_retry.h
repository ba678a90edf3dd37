/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device may refuse a request although it fits the queue. That is no reason to give
 * up a healthy QP:
 *
 *        retired             send_end          posted
 *        | owned by the NIC  | refused, behind it |
 *   -----[###################|....................]-----> ids
 *
 * All requests from the first refused one on stay in the ledger, in order, with their
 * buffers and credits. No later request passes them. Progress posts them again
 * (dq_retry.h says when) until the device has them all. Then the conn posts as usual. The
 * QP is lost if the error is permanent, or lasts for the shorter of SQ_STALL_TIMEOUT and
 * STUCK_TIMEOUT.
 *
 * Retry uses the replay log (daqiri_replay.h). With RECOVERY=n there is none, and the QP
 * is given up at once.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_RETRY_H
#define UCT_DAQIRI_RETRY_H

#include "conn/daqiri_conn.h"

/* The device refused this request, and has none after it. Non-zero: they are kept, and
 * posted again later. Zero: @a error is permanent, or there is no log. */
int uct_daqiri_retry_keep(uct_daqiri_conn_t *conn, uint32_t id, int error);
/* The same for requests of a lost QP that are replayed on the next one. Those before @a
 * fresh were made for the lost QP. The peer has those before @a ahead. */
int uct_daqiri_retry_keep_replay(uct_daqiri_conn_t *conn, uint32_t id,
                                 uint32_t ahead, uint32_t fresh, int error);
/* The QP is lost: nothing is posted to it again. */
void uct_daqiri_retry_stop(uct_daqiri_conn_t *conn);
/* Posts again what is due. Returns how many requests the device has taken. */
unsigned uct_daqiri_retry_all(uct_daqiri_iface_t *iface);

#endif
