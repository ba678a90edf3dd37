/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a conn has for each slot of its send ledger: the ids of signalled requests, what
 * requests owe (daqiri_op.h), and the replay log (daqiri_replay.h).
 *
 * A large job has many peers that exchange a few messages. So a conn starts with 16
 * slots. They become four times as many, up to SQ_DEPTH, when half of them are in use, or
 * when the conn has posted four times as many requests.
 *
 * Threads: progress, but for init.
 */
#ifndef UCT_DAQIRI_SLOTS_H
#define UCT_DAQIRI_SLOTS_H

#include "conn/daqiri_conn.h"

enum { UCT_DAQIRI_SLOTS_START = 16 };

/* Begins the ledger of a new conn. UCS_ERR_NO_MEMORY. Any thread. */
ucs_status_t uct_daqiri_slots_init(uct_daqiri_conn_t *conn);
void uct_daqiri_slots_cleanup(uct_daqiri_conn_t *conn);

/* Makes more slots. *log_p is a larger replay log, which has the conn's requests: the
 * caller lets the conn use it at once, and frees the other one. Returns zero, and changes
 * nothing, if memory is short: a later request asks again. */
int uct_daqiri_slots_grow(uct_daqiri_conn_t *conn, dq_replay_log_t *log_p);
void uct_daqiri_slots_free_log(dq_replay_log_t *log);

/* Whether the conn should have more slots. */
static inline int uct_daqiri_slots_are_few(const uct_daqiri_conn_t *conn)
{
    return (conn->sq.depth < conn->slots.most) &&
           dq_sq_is_tight(&conn->sq, conn->slots.since);
}

#endif
