/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection that has lost its queue pair gets another one.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_RECOVER_H
#define UCT_DAQIRI_RECOVER_H

#include "daqiri.h"
#include "dq/dq_triage.h"

/* The QP is lost: has another one made, if that may help, else fails the conn.
 * Only the first call counts. */
void uct_daqiri_recover(uct_daqiri_conn_t *conn, const dq_facts_t *facts);
/* The peer says that it has lost its QP. */
void uct_daqiri_recover_on_peer_lost(uct_daqiri_conn_t *conn);
/* The QP that was to replace the last one could not be made or connected. */
void uct_daqiri_recover_on_no_qp(uct_daqiri_conn_t *conn);
/* The lost QP has nothing more to say, as far as can be seen: it is destroyed. */
void uct_daqiri_recover_close(uct_daqiri_conn_t *conn);
void uct_daqiri_recover_on_closed(uct_daqiri_conn_t *conn);
/* And it will not say any more. Zero: wait a little, all the same. */
int uct_daqiri_recover_drained(uct_daqiri_conn_t *conn);
void uct_daqiri_recover_on_qp(uct_daqiri_conn_t *conn);
void uct_daqiri_recover_up(uct_daqiri_conn_t *conn);
/* The peer did not answer in time: the death is that of the QP. */
void uct_daqiri_recover_expired(uct_daqiri_conn_t *conn, dq_facts_t *death);

#endif
