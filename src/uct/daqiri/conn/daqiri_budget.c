/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/daqiri_budget.h"

#include "base/daqiri_mail.h"
#include "iface/daqiri_iface.h"

enum {
    /* A peer whose program computes answers no CLOSE. After so long others do not wait
     * for its queue pair. */
    UCT_DAQIRI_BUDGET_PATIENCE_MS = 20,
    /* between questions to a device that had no more */
    UCT_DAQIRI_BUDGET_ASK_MS      = 50,
    /* a peer that got none asks again within one and a half seconds (daqiri_hs.c) */
    UCT_DAQIRI_BUDGET_OWED_MS     = 2000
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


static void uct_daqiri_budget_leave_place(uct_daqiri_conn_t *conn)
{
    conn->iface->idle.used -= conn->idle.has_place;
    conn->idle.has_place    = 0;
}


static int uct_daqiri_budget_has_room(const uct_daqiri_iface_t *iface)
{
    return iface->idle.used - iface->idle.stuck < iface->idle.max;
}


/* A conn that closes comes back by recovery. */
uint32_t uct_daqiri_budget_excess(const uct_daqiri_iface_t *iface)
{
    uint64_t wanted = (uint64_t)iface->idle.used + iface->idle.waiters +
                      iface->idle.owed;
    uint64_t given  = (uint64_t)iface->idle.max + iface->idle.leaving;

    return (iface->config.recovery && (wanted > given)) ? (uint32_t)(wanted - given) : 0;
}


void uct_daqiri_budget_note_excess(uct_daqiri_iface_t *iface)
{
    if (uct_daqiri_budget_excess(iface) > 0) {
        iface->idle.is_short = 1;
        uct_daqiri_iface_add_work(iface, UCT_DAQIRI_WORK_LISTS);
    }
}


/* The link of the list is where the conn goes: before it. */
static void uct_daqiri_budget_wait(uct_daqiri_conn_t *conn, ucs_list_link_t *before)
{
    uct_daqiri_iface_t *iface = conn->iface;

    conn->idle.is_waiting = 1;
    ucs_list_insert_before(before, &conn->idle.link);
    iface->idle.waiters++;
    iface->count->qp_waits++;
    uct_daqiri_budget_note_excess(iface);
}


/* Asks for a queue pair, or has the conn wait for its turn. */
static void uct_daqiri_budget_ask(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;

    if (conn->idle.is_waiting) {
        return;
    }
    if (conn->idle.asked_at == 0) {
        conn->idle.asked_at = ucs_get_time();
    }
    if (!conn->idle.has_place && !uct_daqiri_budget_has_room(iface)) {
        uct_daqiri_budget_wait(conn, &iface->idle.waiting); /* at the end */
        return;
    }
    uct_daqiri_budget_take_place(conn);
    uct_daqiri_mail_post_command(&conn->peer, UCT_DAQIRI_CMD_OPEN);
}


/* A peer waits for one of ours: a conn should close. */
static void uct_daqiri_budget_owe(uct_daqiri_iface_t *iface)
{
    if (iface->idle.used > 0) {
        iface->idle.owed       = 1;
        iface->idle.owed_until = ucs_get_time() +
                                 ucs_time_from_msec(UCT_DAQIRI_BUDGET_OWED_MS);
        uct_daqiri_budget_note_excess(iface);
    }
}


void uct_daqiri_budget_pay_late(uct_daqiri_iface_t *iface, ucs_time_t now)
{
    if (now > iface->idle.owed_until) {
        iface->idle.owed = 0;
    }
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
        } else {
            conn->idle.asked_at = 0;
        }
    }
}


static void uct_daqiri_budget_give_place(uct_daqiri_conn_t *conn)
{
    if (conn->idle.has_place) {
        uct_daqiri_budget_leave_place(conn);
        conn->iface->idle.owed = 0; /* whoever asks first gets what is free */
    }
    uct_daqiri_budget_admit(conn->iface);
}


void uct_daqiri_budget_open(uct_daqiri_conn_t *conn)
{
    uct_daqiri_assert_progress(conn->iface);
    if ((conn->state == DQ_LIFE_UNCONNECTED) && !conn->idle.has_place) {
        uct_daqiri_budget_ask(conn);
    } else if (conn->state != DQ_LIFE_IDLE_CLOSED) { /* that one needs none yet */
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
    iface->idle.none_since = 0;
    conn->idle.asked_at  = 0;
    conn->idle.is_wanted = 0;
    if (conn->state == DQ_LIFE_IDLE_CLOSED) {
        conn->idle.is_reopening = 1;
    }
    uct_daqiri_budget_note_excess(iface);
}


void uct_daqiri_budget_on_up(uct_daqiri_conn_t *conn)
{
    conn->idle.seen    = uct_daqiri_budget_use(conn);
    conn->idle.since   = ucs_get_time();
    conn->idle.used_at = conn->idle.since;
}


void uct_daqiri_budget_on_reopened(uct_daqiri_conn_t *conn)
{
    conn->idle.is_reopening = 0;
    conn->iface->count->idle_reopens++;
    uct_daqiri_budget_note_excess(conn->iface);
}


/* ---- The device has no more ---- */

/* One line for each interface: from then on counters tell. */
static void uct_daqiri_budget_tell(uct_daqiri_iface_t *iface, uint32_t given)
{
    if (!iface->idle.is_told) {
        iface->idle.is_told = 1;
        ucs_warn("daqiri: %s makes no more queue pairs now: %u connections of this "
                 "interface have one, and the others wait for their turn; rdma resource "
                 "shows who has them", iface->config.port_name, given);
    }
}


/* No more than so many, until the device is asked again. */
static void uct_daqiri_budget_limit(uct_daqiri_iface_t *iface, uint32_t most,
                                    ucs_time_t now)
{
    iface->idle.max    = ucs_min(iface->idle.max, most);
    iface->idle.ask_at = now + ucs_time_from_msec(UCT_DAQIRI_BUDGET_ASK_MS);
}


/* The device is the budget: it has given so many. */
static void uct_daqiri_budget_shrink(uct_daqiri_iface_t *iface, uint32_t given)
{
    ucs_time_t now = ucs_get_time();

    uct_daqiri_budget_limit(iface, given, now);
    if ((given > 0) && iface->config.recovery) {
        iface->idle.none_since = 0;
    } else if (iface->idle.none_since == 0) {
        iface->idle.none_since = now;
    }
    uct_daqiri_budget_tell(iface, given);
}


/* The conn goes back in line. One that nobody here uses does not wait: its peer asks
 * again. The async side may still take it for lost (DQ_EV_REST). */
static void uct_daqiri_budget_put_back(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;

    uct_daqiri_budget_leave_place(conn);
    uct_daqiri_budget_shrink(iface, iface->idle.used);
    if (conn->state == DQ_LIFE_IDLE_CLOSED) {
        uct_daqiri_mail_post_command(&conn->peer, UCT_DAQIRI_CMD_REST);
    }
    if (!uct_daqiri_budget_is_needed(conn)) {
        uct_daqiri_budget_owe(iface);
    } else if (!conn->idle.is_waiting) {
        uct_daqiri_budget_wait(conn, iface->idle.waiting.next); /* in front */
    }
}


void uct_daqiri_budget_on_no_qp(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;

    if (dq_life_is_over(conn->state)) {
        return;
    }
    if ((conn->qp.state == DQ_QP_NONE) && (conn->state != DQ_LIFE_RECOVERING)) {
        uct_daqiri_budget_put_back(conn);
        return;
    }
    if (iface->idle.used > 1) { /* it keeps its place, and tries again */
        uct_daqiri_budget_limit(iface, iface->idle.used - 1, ucs_get_time());
        uct_daqiri_budget_note_excess(iface);
    }
}


void uct_daqiri_budget_on_peer_refused(uct_daqiri_iface_t *iface)
{
    uct_daqiri_budget_shrink(iface, iface->idle.used);
    uct_daqiri_budget_owe(iface);
}


int uct_daqiri_budget_is_hopeless(const uct_daqiri_conn_t *conn, ucs_time_t now)
{
    const uct_daqiri_iface_t *iface = conn->iface;
    ucs_time_t since                = ucs_max(iface->idle.none_since,
                                              conn->idle.asked_at);

    if ((iface->idle.none_since == 0) ||
        ((iface->idle.used > 0) && iface->config.recovery)) {
        return 0; /* somebody here can give one */
    }
    return now - since > iface->config.conn_timeout;
}


void uct_daqiri_budget_ask_device(uct_daqiri_iface_t *iface, ucs_time_t now)
{
    if (now < iface->idle.ask_at) {
        return;
    }
    iface->idle.ask_at = now + ucs_time_from_msec(UCT_DAQIRI_BUDGET_ASK_MS);
    iface->idle.max++;
    uct_daqiri_budget_admit(iface);
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


