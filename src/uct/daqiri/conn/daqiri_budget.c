/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/daqiri_budget.h"

#include "base/daqiri_mail.h"
#include "iface/daqiri_iface.h"

enum {
    /* A peer whose program computes answers no CLOSE. After so long others do not wait
     * for its queue pair. */
    UCT_DAQIRI_BUDGET_PATIENCE_MS = 20
};


/* ---- Places ---- */

static void uct_daqiri_budget_stop_waiting(uct_daqiri_conn_t *conn)
{
    if (conn->idle.is_waiting) {
        conn->idle.is_waiting = 0;
        ucs_list_del(&conn->idle.link);
        conn->iface->idle.waiters--;
    }
}


static void uct_daqiri_budget_take_place(uct_daqiri_conn_t *conn)
{
    uct_daqiri_budget_stop_waiting(conn);
    if (!conn->idle.has_place) {
        conn->idle.has_place = 1;
        conn->iface->idle.used++;
    }
}


static int uct_daqiri_budget_has_room(const uct_daqiri_iface_t *iface)
{
    return iface->idle.used - iface->idle.stuck < iface->idle.max;
}


/* How many conns should close, beside those that close already. */
uint32_t uct_daqiri_budget_excess(const uct_daqiri_iface_t *iface)
{
    uint64_t wanted = (uint64_t)iface->idle.used + iface->idle.waiters;
    uint64_t given  = (uint64_t)iface->idle.max + iface->idle.leaving;

    return (wanted > given) ? (uint32_t)(wanted - given) : 0;
}


void uct_daqiri_budget_note_excess(uct_daqiri_iface_t *iface)
{
    if (uct_daqiri_budget_excess(iface) > 0) {
        iface->idle.is_short = 1;
        uct_daqiri_iface_add_work(iface, UCT_DAQIRI_WORK_LISTS);
    }
}


/* Asks for a queue pair, or has the conn wait for its turn. */
static void uct_daqiri_budget_ask(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;

    if (conn->idle.is_waiting) {
        return;
    }
    if (!conn->idle.has_place && !uct_daqiri_budget_has_room(iface)) {
        conn->idle.is_waiting = 1;
        ucs_list_add_tail(&iface->idle.waiting, &conn->idle.link);
        iface->idle.waiters++;
        iface->count->qp_waits++;
        uct_daqiri_budget_note_excess(iface);
        return;
    }
    uct_daqiri_budget_take_place(conn);
    uct_daqiri_mail_post_command(&conn->peer, UCT_DAQIRI_CMD_OPEN);
}


/* Does anybody still need the queue pair that the conn waits for? */
static int uct_daqiri_budget_is_needed(uct_daqiri_conn_t *conn)
{
    return !dq_life_is_over(conn->state) && !ucs_list_is_empty(&conn->eps);
}


/* Those that wait get what is free, the first one first. */
void uct_daqiri_budget_admit(uct_daqiri_iface_t *iface)
{
    uct_daqiri_conn_t *conn;

    while (!ucs_list_is_empty(&iface->idle.waiting) &&
           uct_daqiri_budget_has_room(iface)) {
        conn = ucs_list_extract_head(&iface->idle.waiting, uct_daqiri_conn_t, idle.link);
        conn->idle.is_waiting = 0;
        iface->idle.waiters--;
        if (uct_daqiri_budget_is_needed(conn)) {
            uct_daqiri_budget_ask(conn);
        }
    }
}


static void uct_daqiri_budget_give_place(uct_daqiri_conn_t *conn)
{
    conn->iface->idle.used -= conn->idle.has_place;
    conn->idle.has_place    = 0;
    uct_daqiri_budget_admit(conn->iface);
}


void uct_daqiri_budget_open(uct_daqiri_conn_t *conn)
{
    uct_daqiri_assert_progress(conn->iface);
    if ((conn->state == DQ_LIFE_UNCONNECTED) && !conn->idle.has_place) {
        uct_daqiri_budget_ask(conn);
    } else {
        uct_daqiri_mail_post_command(&conn->peer, UCT_DAQIRI_CMD_OPEN);
    }
}


/* Until the old queue pair is gone, only notes it. */
void uct_daqiri_budget_want(uct_daqiri_conn_t *conn)
{
    if (conn->state != DQ_LIFE_IDLE_CLOSED) {
        return;
    }
    if (uct_daqiri_conn_rests(conn)) {
        uct_daqiri_budget_ask(conn);
    } else {
        conn->idle.is_wanted = 1;
    }
}


void uct_daqiri_budget_on_qp(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;

    uct_daqiri_budget_take_place(conn);
    conn->idle.is_wanted = 0;
    conn->idle.seen      = uct_daqiri_budget_use(conn);
    conn->idle.since     = ucs_get_time();
    conn->idle.used_at   = conn->idle.since;
    if (conn->state == DQ_LIFE_IDLE_CLOSED) {
        conn->idle.is_reopening = 1;
    }
    uct_daqiri_budget_note_excess(iface);
}


void uct_daqiri_budget_on_up(uct_daqiri_conn_t *conn)
{
    conn->idle.is_reopening = 0;
    conn->iface->count->idle_reopens++;
    uct_daqiri_budget_note_excess(conn->iface);
}


/* The device is the budget. One that has none at all is not asked for less than one. */
void uct_daqiri_budget_on_no_qp(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;

    if (conn->state == DQ_LIFE_IDLE_CLOSED) {
        conn->idle.is_reopening = 1;
    }
    if ((iface->idle.used > 1) && (iface->idle.max >= iface->idle.used) &&
        iface->config.recovery) {
        iface->idle.max = iface->idle.used - 1;
        uct_daqiri_budget_note_excess(iface);
    }
}


/* ---- The agreement ---- */

void uct_daqiri_budget_begin_to_close(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;

    if (!conn->idle.is_leaving) {
        conn->idle.is_leaving = 1;
        conn->idle.act_at     = ucs_get_time() +
                                ucs_time_from_msec(UCT_DAQIRI_BUDGET_PATIENCE_MS);
        iface->idle.leaving++;
        ucs_list_add_tail(&iface->idle.closing, &conn->idle.link);
    }
    uct_daqiri_iface_add_work(iface, UCT_DAQIRI_WORK_LISTS);
}


void uct_daqiri_budget_on_sent(uct_daqiri_conn_t *conn)
{
    (void)dq_idle_step(&conn->idle.state, DQ_IDLE_EV_SENT);
    conn->idle.close_end = conn->sq.posted;
}


int uct_daqiri_budget_on_heard(uct_daqiri_conn_t *conn)
{
    if (!dq_qp_is_alive(conn->qp.state)) {
        return 0; /* the queue pair is lost meanwhile, and the agreement with it */
    }
    if (dq_idle_step(&conn->idle.state, DQ_IDLE_EV_HEARD) != 0) {
        return -1;
    }
    uct_daqiri_budget_begin_to_close(conn);
    return 0;
}


void uct_daqiri_budget_end_to_close(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;

    iface->idle.stuck    -= conn->idle.is_stuck;
    iface->idle.leaving  -= conn->idle.is_leaving;
    conn->idle.is_stuck   = 0;
    if (conn->idle.is_leaving) {
        conn->idle.is_leaving = 0;
        ucs_list_del(&conn->idle.link);
    }
}


/* The peer may have closed its end, and want another queue pair, before we have read its
 * CLOSE: then we have sent ours. */
int uct_daqiri_budget_forget(uct_daqiri_conn_t *conn, dq_cause_t cause)
{
    int is_agreed = (conn->idle.state == DQ_IDLE_BOTH) ||
                    ((conn->idle.state == DQ_IDLE_WAITING) &&
                     (cause == DQ_CAUSE_PEER_LOST));

    uct_daqiri_budget_stop_waiting(conn);
    uct_daqiri_budget_end_to_close(conn);
    (void)dq_idle_step(&conn->idle.state, DQ_IDLE_EV_LOST);
    conn->idle.is_reopening = is_agreed;
    return is_agreed;
}


/* The queue pair is gone. Its place is free before anybody asks for another. */
void uct_daqiri_budget_on_final(uct_daqiri_conn_t *conn)
{
    int is_wanted = conn->idle.is_wanted || !ucs_queue_is_empty(&conn->pending.queue);

    conn->idle.is_wanted = 0;
    uct_daqiri_mail_post_command(&conn->peer, UCT_DAQIRI_CMD_REST);
    uct_daqiri_budget_give_place(conn);
    if (is_wanted) {
        uct_daqiri_budget_want(conn);
    }
}


void uct_daqiri_budget_remove(uct_daqiri_conn_t *conn)
{
    uct_daqiri_budget_stop_waiting(conn);
    uct_daqiri_budget_give_place(conn);
}


