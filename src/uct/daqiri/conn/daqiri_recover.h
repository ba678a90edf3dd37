/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recovery: a connection that has lost its queue pair gets another one. See
 * daqiri_recover.c for the steps.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_RECOVER_H
#define UCT_DAQIRI_RECOVER_H

#include "daqiri.h"
#include "dq/dq_triage.h"

/* The QP is lost. Starts recovery if another QP may help; else fails the conn. Later
 * calls for the same QP do nothing: the first cause counts. Copies @a facts. */
void uct_daqiri_recover(uct_daqiri_conn_t *conn, const dq_facts_t *facts);
/* The peer reports that it has lost its QP. */
void uct_daqiri_recover_on_peer_lost(uct_daqiri_conn_t *conn);
/* The device has reported by an event that the QP failed. Does nothing unless the QP is
 * up and the event is about it. Otherwise puts the conn on iface->draining: the QP's
 * completions, which may tell why, come first. Polls nothing: a completion may be in
 * hand. */
void uct_daqiri_recover_on_qp_event(uct_daqiri_conn_t *conn);
/* The completions have come, and the QP still counts as up. Returns non-zero when the
 * conn need not drain. */
int uct_daqiri_recover_by_qp_event(uct_daqiri_conn_t *conn);
/* The async thread could not make or connect the next QP. */
void uct_daqiri_recover_on_no_qp(uct_daqiri_conn_t *conn);
/* A drain of the QP is over. After the first one, asks the async thread to destroy it;
 * after the second one, asks for the next handshake. Returns zero if the wait between
 * two attempts is not over; then call again. */
int uct_daqiri_recover_on_taken(uct_daqiri_conn_t *conn);
/* The async thread has destroyed the old QP. The conn drains again. */
void uct_daqiri_recover_on_closed(uct_daqiri_conn_t *conn);
/* The async thread has made the next QP. */
void uct_daqiri_recover_on_qp(uct_daqiri_conn_t *conn);
/* The peer is ready. Replays what it does not have, and opens the gate. */
void uct_daqiri_recover_up(uct_daqiri_conn_t *conn);
/* The peer did not answer in time. Sets *death to the reason why the QP was lost. */
void uct_daqiri_recover_expired(uct_daqiri_conn_t *conn, dq_facts_t *death);

#endif
