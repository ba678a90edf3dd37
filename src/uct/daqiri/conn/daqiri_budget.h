/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The budget of queue pairs, and what each conn has of it.
 *
 * An interface may have iface->idle.max queue pairs (UCX_DAQIRI_MAX_QPS). A conn that
 * wants one above that waits on iface->idle.waiting, in turn. Meanwhile the conn that has
 * been idle longest gives up its own (daqiri_idle.h): both ends agree that nothing is
 * under way (dq_idle.h), the queue pair goes, and the conn stays (IDLE_CLOSED). The next
 * send brings it back, by the same way as after the loss of a queue pair. If all are
 * busy, they take turns.
 *
 * A device may have fewer than it says, because other processes have them. Then the
 * budget is what the device has given. It grows again by one from time to time while
 * somebody waits.
 *
 * The budget is for what this end asks for. A peer that asks always gets its queue pair,
 * because it holds one already: if it had to wait, the ends of several connections could
 * wait for each other in a circle. So the interface may be above its budget until the
 * next conn has closed. It may also be if a peer does not answer our CLOSE, because its
 * program computes, or waits for another process.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_BUDGET_H
#define UCT_DAQIRI_BUDGET_H

#include "conn/daqiri_conn.h"

/* Changes with each message and request, and when a request is over. */
static inline uint32_t uct_daqiri_budget_use(const uct_daqiri_conn_t *conn)
{
    return conn->sq.posted + conn->sq.retired + conn->rx_seq;
}

/* An endpoint uses the conn: asks for its first queue pair, within the budget. */
void uct_daqiri_budget_open(uct_daqiri_conn_t *conn);
/* A send, or the user, waits for the conn: an IDLE_CLOSED one gets a queue pair. Does
 * nothing in other states. */
void uct_daqiri_budget_want(uct_daqiri_conn_t *conn);
/* The conn has got a queue pair: by itself, or because its peer has asked. */
void uct_daqiri_budget_on_qp(uct_daqiri_conn_t *conn);
/* The conn is up: from now on it is idle unless it is used. */
void uct_daqiri_budget_on_up(uct_daqiri_conn_t *conn);
/* The conn is up after an idle close. */
void uct_daqiri_budget_on_reopened(uct_daqiri_conn_t *conn);
/* The device has not made a queue pair: it has no more now. */
void uct_daqiri_budget_on_no_qp(uct_daqiri_conn_t *conn);
/* The same for a peer that has no conn yet. It asks again. */
void uct_daqiri_budget_on_peer_refused(uct_daqiri_iface_t *iface);
/* The conn leaves the interface: its place is free for others. */
void uct_daqiri_budget_remove(uct_daqiri_conn_t *conn);

/* How many conns should close, beside those that close already. */
uint32_t uct_daqiri_budget_excess(const uct_daqiri_iface_t *iface);
/* Has uct_daqiri_idle_run() look for conns to close, if some should. */
void uct_daqiri_budget_note_excess(uct_daqiri_iface_t *iface);
/* Does anybody wait because the device had no more? It is asked again from time to time:
 * other processes give queue pairs back. */
static inline int uct_daqiri_budget_is_below(const uct_daqiri_iface_t *iface)
{
    return (iface->idle.waiters > 0) && (iface->idle.max < iface->idle.most);
}

/* Nothing is owed to a peer that asks no more. */
void uct_daqiri_budget_pay_late(uct_daqiri_iface_t *iface, ucs_time_t now);
/* Has the conn waited for UCX_DAQIRI_CONN_TIMEOUT, while no conn here had a queue pair
 * that it could give up? */
int uct_daqiri_budget_is_hopeless(const uct_daqiri_conn_t *conn, ucs_time_t now);
/* Asks the device for one more, if it is time to. */
void uct_daqiri_budget_ask_device(uct_daqiri_iface_t *iface, ucs_time_t now);
/* Those that wait get what is free, the first one first. */
void uct_daqiri_budget_admit(uct_daqiri_iface_t *iface);

/* The conn closes: it is on iface->idle.closing. */
void uct_daqiri_budget_begin_to_close(uct_daqiri_conn_t *conn);
/* It has closed, or will not. */
void uct_daqiri_budget_end_to_close(uct_daqiri_conn_t *conn);
/* Our CLOSE is posted. */
void uct_daqiri_budget_on_sent(uct_daqiri_conn_t *conn);
/* The peer's CLOSE has come. Returns -1 if the peer is broken. */
int uct_daqiri_budget_on_heard(uct_daqiri_conn_t *conn);
/* Does nobody miss the request if it fails? The peer may have closed its end before it
 * took a grant or a probe behind our CLOSE. Once its own CLOSE has come, our CLOSE may
 * only have lost its ACK. What such a queue pair still flushes is no error either. */
static inline int uct_daqiri_budget_is_spare(const uct_daqiri_conn_t *conn, uint32_t id)
{
    int32_t behind = (int32_t)(id - conn->idle.close_end);

    return (conn->state == DQ_LIFE_IDLE_CLOSED) ||
           (conn->idle.is_reopening && !dq_qp_is_alive(conn->qp.state)) ||
           ((conn->idle.state == DQ_IDLE_WAITING) && (behind >= 0)) ||
           ((conn->idle.state == DQ_IDLE_BOTH) && (behind >= -1));
}
/* All that the closed queue pair had in the CQs has been taken, and it is gone. */
void uct_daqiri_budget_on_final(uct_daqiri_conn_t *conn);
/* The queue pair is lost for this cause, or the conn has failed. Returns whether both
 * ends had agreed to close it. Then nothing is lost. */
int uct_daqiri_budget_forget(uct_daqiri_conn_t *conn, dq_cause_t cause);

#endif
