/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/daqiri_idle.h"

#include "base/daqiri_mail.h"
#include "conn/daqiri_budget.h"
#include "conn/daqiri_conn.h"
#include "conn/daqiri_rx.h"
#include "conn/daqiri_tx.h"
#include "iface/daqiri_iface.h"

enum {
    /* A conn may close after its first message, or after so long: its peer may use it
     * by READs and WRITEs, which are not seen here. Milliseconds. */
    UCT_DAQIRI_IDLE_STAY_MS  = 10,
    /* from one look for idle conns to the next */
    UCT_DAQIRI_IDLE_LOOK_MS  = 1,
    /* between probes of a peer that does not answer our CLOSE */
    UCT_DAQIRI_IDLE_PROBE_MS = 100
};


/* ---- Who closes ---- */

/* A conn that may close: its place has been of use to this end, or to the peer. */
static int uct_daqiri_idle_may_close(const uct_daqiri_conn_t *conn, ucs_time_t now)
{
    return (conn->state == DQ_LIFE_UP) && (conn->idle.state == DQ_IDLE_OPEN) &&
           !conn->is_stub && !conn->is_replay_barred &&
           ((conn->idle.used_at != conn->idle.since) ||
            (now - conn->idle.since >= ucs_time_from_msec(UCT_DAQIRI_IDLE_STAY_MS)));
}


static int uct_daqiri_idle_is_quiet(uct_daqiri_conn_t *conn)
{
    return (dq_sq_in_use(&conn->sq) == 0) && ucs_queue_is_empty(&conn->pending.queue);
}


/* Notes whether the conn has been used since the last look. */
static void uct_daqiri_idle_look(uct_daqiri_conn_t *conn, ucs_time_t now)
{
    uint32_t use = uct_daqiri_budget_use(conn);

    if (conn->idle.seen != use) {
        conn->idle.seen    = use;
        conn->idle.used_at = now;
    }
}


/* The conn that has been idle longest. If none is idle, the one whose use is oldest. */
static uct_daqiri_conn_t *uct_daqiri_idle_oldest(uct_daqiri_iface_t *iface,
                                                 ucs_time_t now)
{
    uct_daqiri_conn_t *conn, *oldest = NULL;
    uint64_t rank, least = UINT64_MAX;

    ucs_list_for_each(conn, &iface->conns, iface_link) {
        if (!uct_daqiri_idle_may_close(conn, now)) {
            continue;
        }
        rank = conn->idle.used_at + (uct_daqiri_idle_is_quiet(conn) ? 0 : UINT64_MAX / 2);
        if (rank < least) {
            least  = rank;
            oldest = conn;
        }
    }
    return oldest;
}


static void uct_daqiri_idle_close(uct_daqiri_conn_t *conn)
{
    (void)dq_idle_step(&conn->idle.state, DQ_IDLE_EV_WANT);
    uct_daqiri_budget_begin_to_close(conn);
    uct_daqiri_rx_add_due(conn, UCT_DAQIRI_GRANT_NEXT);
}


static void uct_daqiri_idle_make_room(uct_daqiri_iface_t *iface, ucs_time_t now)
{
    uct_daqiri_conn_t *conn;
    uint32_t excess;

    uct_daqiri_budget_pay_late(iface, now);
    excess               = uct_daqiri_budget_excess(iface);
    iface->idle.is_short = excess > 0;
    if ((excess == 0) || (now < iface->idle.look_at)) {
        return;
    }
    iface->idle.look_at = now + ucs_time_from_msec(UCT_DAQIRI_IDLE_LOOK_MS);
    ucs_list_for_each(conn, &iface->conns, iface_link) {
        uct_daqiri_idle_look(conn, now);
    }
    for (; excess > 0; excess--) {
        conn = uct_daqiri_idle_oldest(iface, now);
        if (conn == NULL) {
            return; /* each has just come: look again */
        }
        uct_daqiri_idle_close(conn);
    }
}


void uct_daqiri_idle_check(uct_daqiri_iface_t *iface)
{
    ucs_time_t now = ucs_get_time();
    uct_daqiri_conn_t *conn;

    if (iface->idle.timeout == 0) {
        return;
    }
    ucs_list_for_each(conn, &iface->conns, iface_link) {
        uct_daqiri_idle_look(conn, now);
        if ((now - conn->idle.used_at >= iface->idle.timeout) &&
            uct_daqiri_idle_is_quiet(conn) && uct_daqiri_idle_may_close(conn, now)) {
            uct_daqiri_idle_close(conn);
        }
    }
}


/* ---- The agreement ---- */

/* Both have sent and heard a CLOSE, and our requests are over. The buffers of the window
 * go to others, except the few that the peer is promised when it comes back. */
static void uct_daqiri_idle_shut(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;

    uct_daqiri_budget_end_to_close(conn);
    (void)dq_idle_step(&conn->idle.state, DQ_IDLE_EV_SHUT);
    uct_daqiri_rx_forget(conn);
    uct_daqiri_conn_step(conn, DQ_LIFE_EV_AGREED);
    uct_daqiri_rx_shrink(conn);
    iface->count->idle_closes++;
    uct_daqiri_conn_start_drain(conn);
    uct_daqiri_mail_post_command(&conn->peer, UCT_DAQIRI_CMD_LOSE);
}


/* The peer's program may compute for a long time. The interface is above its budget for
 * as long, because those that wait may be what the peer's program waits for. */
static void uct_daqiri_idle_pass_over(uct_daqiri_conn_t *conn)
{
    conn->idle.is_stuck = 1;
    conn->iface->idle.stuck++;
    conn->iface->count->idle_unanswered++;
    uct_daqiri_budget_admit(conn->iface);
}


/* Are all requests up to our CLOSE over? Later ones are grants and probes. The peer may
 * have closed its end, and never take them. */
static int uct_daqiri_idle_is_over(const uct_daqiri_conn_t *conn)
{
    return (int32_t)(conn->sq.retired - conn->idle.close_end) >= 0;
}


/* First nobody waits for it any more. Then, if nothing is under way that tells when it is
 * over, our device asks the peer's: a peer that has died after it took our CLOSE, and the
 * grants behind that, says nothing. */
static void uct_daqiri_idle_on_silence(uct_daqiri_conn_t *conn, ucs_time_t now)
{
    conn->idle.act_at = now + ucs_time_from_msec(UCT_DAQIRI_IDLE_PROBE_MS);
    if (!conn->idle.is_stuck) {
        uct_daqiri_idle_pass_over(conn);
    } else if ((conn->state == DQ_LIFE_CLOSING) &&
               (dq_sq_in_use(&conn->sq) == dq_sq_unsignalled(&conn->sq))) {
        uct_daqiri_tx_probe_shut(conn);
    }
}


static void uct_daqiri_idle_step_closing(uct_daqiri_conn_t *conn, ucs_time_t now)
{
    if ((conn->idle.state == DQ_IDLE_BOTH) && uct_daqiri_idle_is_over(conn)) {
        uct_daqiri_idle_shut(conn);
    } else if (now >= conn->idle.act_at) {
        uct_daqiri_idle_on_silence(conn, now);
    }
}


/* Those that wait for the device in vain. A conn that fails leaves the line. */
static void uct_daqiri_idle_give_up(uct_daqiri_iface_t *iface, ucs_time_t now)
{
    uct_daqiri_conn_t *conn, *next;
    dq_facts_t death;

    ucs_list_for_each_safe(conn, next, &iface->idle.waiting, idle.link) {
        if (!uct_daqiri_budget_is_hopeless(conn, now)) {
            continue;
        }
        uct_daqiri_tx_facts(conn, DQ_CAUSE_NO_QP, &death);
        death.waited_ms = ucs_time_to_msec(now - conn->idle.asked_at);
        uct_daqiri_conn_fail(conn, &death);
    }
}


void uct_daqiri_idle_run(uct_daqiri_iface_t *iface)
{
    ucs_time_t now = ucs_get_time();
    uct_daqiri_conn_t *conn, *next;

    uct_daqiri_assert_progress(iface);
    ucs_list_for_each_safe(conn, next, &iface->idle.closing, idle.link) {
        uct_daqiri_idle_step_closing(conn, now);
    }
    if (iface->idle.is_short) {
        uct_daqiri_idle_make_room(iface, now);
    }
    if (uct_daqiri_budget_is_below(iface)) {
        uct_daqiri_idle_give_up(iface, now);
        uct_daqiri_budget_ask_device(iface, now);
    }
}
