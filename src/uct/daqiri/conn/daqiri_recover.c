/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A conn outlives its QP. Recovery starts when the QP dies or the peer reports that its
 * own has died, if another QP may help:
 *
 *   1. the gate closes; the ledger keeps all requests     uct_daqiri_recover
 *   2. the old QP is moved to ERR                         FAILED
 *   3. it is drained, as in the death of a conn           DRAINING
 *   4. the async thread destroys it                       DESTROYING
 *   5. its last completions have come: the CQs are
 *      drained again, and the count of delivered
 *      messages is final                                  FINAL
 *   6. the handshake runs again                           NONE
 *   7. the conn has another QP                            CONNECTING
 *   8. the peer is ready: the requests that it does not
 *      have are posted again; the gate opens              uct_daqiri_recover_up
 *
 * The states are those of the queue pair. dq_qp.h says why it is drained twice. (rxe
 * waits for its responder when it destroys a QP, but not when it moves a QP to ERR.)
 *
 * UCP never learns of it. UCX_DAQIRI_RECOVERY=n turns it off. dq_recovery.h bounds it.
 *
 * Threads: progress.
 */
#include "conn/daqiri_recover.h"

#include "base/daqiri_hooks.h"
#include "base/daqiri_log.h"
#include "base/daqiri_mail.h"
#include "base/daqiri_rc.h"
#include "conn/daqiri_budget.h"
#include "conn/daqiri_conn.h"
#include "conn/daqiri_preconnect.h"
#include "conn/daqiri_replay.h"
#include "conn/daqiri_retry.h"
#include "conn/daqiri_rx.h"
#include "conn/daqiri_tx.h"
#include "iface/daqiri_iface.h"

/* Milliseconds. */
enum {
    UCT_DAQIRI_RECOVER_FIRST = 2,    /* wait before the second attempt in a row */
    UCT_DAQIRI_RECOVER_LAST  = 512,  /* it doubles each time, up to this     */
    UCT_DAQIRI_RECOVER_REST  = 1000  /* a QP idle for so long has not died at once */
};


/* Grows with each message or request that gets through. The peer reports its own WRITEs
 * and READs with its next QP. */
static uint32_t uct_daqiri_recover_mark(const uct_daqiri_conn_t *conn)
{
    return conn->sq.retired + conn->rx_seq + conn->lost.peer_done;
}


/* Limits of the recovery. On a path that carries nothing a QP fails within its max retry
 * time, which therefore bounds a trial. */
static dq_recovery_limits_t
uct_daqiri_recover_limits(const uct_daqiri_iface_t *iface)
{
    ucs_time_t bound = iface->config.recovery_timeout;

    return (dq_recovery_limits_t){
        .least = ucs_time_from_msec(UCT_DAQIRI_RECOVER_FIRST),
        .most  = ucs_time_from_msec(UCT_DAQIRI_RECOVER_LAST),
        .bound = bound,
        .trial = ucs_max(uct_daqiri_rc_max_retry_time(iface), bound),
        .rest  = ucs_min(ucs_time_from_msec(UCT_DAQIRI_RECOVER_REST), bound),
    };
}


static int uct_daqiri_recover_is_possible(const uct_daqiri_conn_t *conn,
                                          dq_cause_t cause)
{
    const dq_recovery_limits_t limits = uct_daqiri_recover_limits(conn->iface);

    return (conn->replay.slots != NULL) && !conn->is_replay_barred &&
           dq_triage_new_qp_helps(cause) &&
           dq_recovery_may_try(&conn->lost.row, &limits);
}


static void uct_daqiri_recover_count_untold(uct_daqiri_conn_t *conn)
{
    conn->iface->count->qp_failures += conn->lost.untold;
    conn->iface->count->tx_errors   += conn->lost.untold_errors;
    conn->watchdog.losses           += conn->lost.untold;
    conn->lost.untold                = 0;
    conn->lost.untold_errors         = 0;
}


static void uct_daqiri_recover_log_failure(uct_daqiri_conn_t *conn,
                                           const dq_facts_t *facts)
{
    char line[DQ_TRIAGE_MESSAGE_MAX];
    char more[UCT_DAQIRI_MORE_MAX];

    if (uct_daqiri_may_log_of(!ucs_list_is_empty(&conn->eps),
                          &conn->iface->log_limit.lost, more)) {
        ucs_warn("%s%s", dq_triage_recovering(facts, line, sizeof(line)), more);
    }
}


static void uct_daqiri_recover_log_recovered(uct_daqiri_conn_t *conn,
                                             const dq_recovered_t *back)
{
    char line[DQ_TRIAGE_MESSAGE_MAX];
    char more[UCT_DAQIRI_MORE_MAX];

    if (conn->lost.untold > 0) {
        uct_daqiri_recover_log_failure(conn, &conn->lost.facts);
    }
    if (uct_daqiri_may_log_of(!ucs_list_is_empty(&conn->eps),
                          &conn->iface->log_limit.back, more)) {
        ucs_warn("%s%s", dq_triage_recovered(back, line, sizeof(line)), more);
    }
}


static void uct_daqiri_recover_count(uct_daqiri_conn_t *conn, dq_cause_t cause)
{
    const dq_recovery_limits_t limits = uct_daqiri_recover_limits(conn->iface);
    const dq_recovery_seen_t seen     = {
        .now       = ucs_get_time(),
        .mark      = uct_daqiri_recover_mark(conn),
        .is_wanted = (conn->sq.posted != conn->sq.retired) ||
                     !ucs_queue_is_empty(&conn->pending.queue),
        .is_peers  = cause == DQ_CAUSE_PEER_LOST,
        .is_unmade = cause == DQ_CAUSE_NO_QP,
    };

    dq_recovery_add_failure(&conn->lost.row, &limits, &seen);
}


static double uct_daqiri_recover_tried_ms(const uct_daqiri_conn_t *conn)
{
    return ucs_time_to_msec(ucs_get_time() - conn->lost.row.first);
}


static void uct_daqiri_recover_fail(uct_daqiri_conn_t *conn,
                                    const dq_facts_t *facts)
{
    dq_facts_t death = *facts;

    /* tried_ms is for causes that another QP could cure. */
    if ((conn->lost.row.in_a_row > 0) && dq_triage_new_qp_helps(facts->cause)) {
        death.tried_ms = uct_daqiri_recover_tried_ms(conn);
    }
    uct_daqiri_conn_fail(conn, &death);
}


/* Where no endpoint uses the conn, the peer may have left: its word of that may come
 * later than the failure of a grant. So the loss is told, and counted, when the peer is
 * back. */
static void uct_daqiri_recover_note_loss(uct_daqiri_conn_t *conn,
                                         const dq_facts_t *facts)
{
    conn->lost.untold++;
    if (!ucs_list_is_empty(&conn->eps)) {
        uct_daqiri_recover_count_untold(conn);
        uct_daqiri_recover_log_failure(conn, facts);
    }
}


/* Once both ends have agreed to close the QP, its end is no loss. */
void uct_daqiri_recover(uct_daqiri_conn_t *conn, const dq_facts_t *facts)
{
    int is_agreed;

    uct_daqiri_assert_progress(conn->iface);
    uct_daqiri_conn_fail_if_broken(conn->iface);
    if (!dq_qp_is_alive(conn->qp.state)) {
        return; /* only the first cause counts */
    }
    is_agreed = uct_daqiri_budget_forget(conn, facts->cause);
    if (!is_agreed) {
        uct_daqiri_recover_count(conn, facts->cause);
    }
    if (!uct_daqiri_recover_is_possible(conn, facts->cause)) {
        uct_daqiri_recover_fail(conn, facts);
        return;
    }

    conn->lost.facts = *facts;
    uct_daqiri_conn_step(conn, DQ_LIFE_EV_LOSE);
    uct_daqiri_retry_stop(conn);
    uct_daqiri_rx_forget(conn);
    uct_daqiri_preconnect_drop(conn);
    if (!is_agreed) {
        uct_daqiri_recover_note_loss(conn, facts);
    }
    uct_daqiri_conn_start_drain(conn);
    uct_daqiri_mail_post_command(&conn->peer, UCT_DAQIRI_CMD_LOSE);
}


/* The next QP could not be made. Tries once more, a little later. */
static void uct_daqiri_recover_once_more(uct_daqiri_conn_t *conn,
                                         const dq_facts_t *facts)
{
    uct_daqiri_recover_count(conn, facts->cause);
    if (!uct_daqiri_recover_is_possible(conn, facts->cause)) {
        uct_daqiri_recover_fail(conn, facts);
        return;
    }
    (void)uct_daqiri_qp_step(&conn->qp, DQ_QP_EV_NO_QP);
    uct_daqiri_conn_start_drain(conn);
}


void uct_daqiri_recover_on_peer_lost(uct_daqiri_conn_t *conn)
{
    dq_facts_t facts;

    if (dq_qp_is_alive(conn->qp.state)) {
        uct_daqiri_tx_facts(conn, DQ_CAUSE_PEER_LOST, &facts);
        uct_daqiri_recover(conn, &facts);
    }
}


/* The event may come too late, about the QP before. It may come too early: then the
 * handshake has the QP, and uct_daqiri_recover_on_qp_event() is called again when the
 * conn is up. */
static int uct_daqiri_recover_is_event_ours(const uct_daqiri_conn_t *conn)
{
    return (conn->qp.state == DQ_QP_READY) &&
           (uct_daqiri_qp_num(&conn->qp) == conn->peer.mail.qp_event.qpn);
}


void uct_daqiri_recover_on_qp_event(uct_daqiri_conn_t *conn)
{
    uct_daqiri_assert_progress(conn->iface);
    if (uct_daqiri_recover_is_event_ours(conn)) {
        uct_daqiri_conn_start_drain(conn);
    }
}


int uct_daqiri_recover_by_qp_event(uct_daqiri_conn_t *conn)
{
    const uct_daqiri_qp_event_t *qp_event = &conn->peer.mail.qp_event;
    dq_facts_t facts;

    if (!uct_daqiri_recover_is_event_ours(conn)) {
        return 1;
    }
    uct_daqiri_tx_facts(conn, qp_event->cause, &facts);
    facts.detail = qp_event->name;
    uct_daqiri_recover(conn, &facts);
    return 0;
}


/* A conn that has lost a QP tries again by itself. One that has none yet, or rests, waits
 * in line. */
void uct_daqiri_recover_on_no_qp(uct_daqiri_conn_t *conn)
{
    dq_facts_t facts;

    uct_daqiri_budget_on_no_qp(conn);
    uct_daqiri_tx_facts(conn, DQ_CAUSE_NO_QP, &facts);
    if (dq_qp_is_alive(conn->qp.state)) {
        uct_daqiri_recover(conn, &facts);
    } else if ((conn->qp.state == DQ_QP_NONE) &&
               (conn->state == DQ_LIFE_RECOVERING)) {
        uct_daqiri_recover_once_more(conn, &facts);
    }
}


/* Promises again those credits of the window that can be promised now. The others are
 * granted later, as usual. */
static uint32_t uct_daqiri_recover_promise(uct_daqiri_conn_t *conn)
{
    dq_rx_t *ledger = &conn->iface->rx.ledger;

    uct_daqiri_recv_refill(conn->iface);
    dq_rx_grant(ledger, &conn->window, dq_rx_grantable(ledger, &conn->window));
    return conn->window.size - conn->window.owed;
}


/* The old queue pair is gone. A flush with nothing left to wait for ends here: another
 * queue pair needs the peer, which may be in the barrier that our user comes to next. */
static void uct_daqiri_recover_report(uct_daqiri_conn_t *conn)
{
    if (conn->state == DQ_LIFE_IDLE_CLOSED) {
        uct_daqiri_tx_retire_to(conn, conn->sq.posted); /* grants and probes, if any */
    }
    if (uct_daqiri_conn_is_flushed(conn)) {
        conn->iface->hooks->pending_finish(conn);
    }
    conn->peer.resume.delivered = conn->rx_seq;
    conn->peer.resume.acked     = dq_replay_acked(&conn->replay, conn->sq.retired,
                                             conn->sq.posted, conn->tx_seq);
    conn->peer.resume.done      = conn->sq.retired;
    conn->peer.resume.promised  = uct_daqiri_recover_promise(conn);
    conn->sq.credits       = 0;
    if (conn->state == DQ_LIFE_IDLE_CLOSED) {
        uct_daqiri_budget_on_final(conn);
    } else {
        uct_daqiri_mail_post_command(&conn->peer, UCT_DAQIRI_CMD_DRAINED);
    }
}


int uct_daqiri_recover_on_taken(uct_daqiri_conn_t *conn)
{
    uint32_t actions;

    if ((conn->qp.state == DQ_QP_FINAL) && (conn->state == DQ_LIFE_RECOVERING) &&
        (ucs_get_time() < conn->lost.row.not_until)) {
        return 0;
    }
    actions = uct_daqiri_qp_step(&conn->qp, DQ_QP_EV_TAKEN);
    if (actions & DQ_QP_ACT_DESTROY) {
        uct_daqiri_conn_destroy_qp(conn);
    }
    if (actions & DQ_QP_ACT_REPORT) {
        uct_daqiri_recover_report(conn);
    }
    return 1;
}


void uct_daqiri_recover_on_closed(uct_daqiri_conn_t *conn)
{
    (void)uct_daqiri_qp_step(&conn->qp, DQ_QP_EV_DESTROYED);
    if (dq_life_is_over(conn->state)) {
        uct_daqiri_budget_remove(conn);
    } else {
        uct_daqiri_conn_start_drain(conn);
    }
}


void uct_daqiri_recover_on_qp(uct_daqiri_conn_t *conn)
{
    /* The watchdog may not have looked since: the time of the old QP must not count for
     * the new one. */
    dq_watchdog_init(&conn->watchdog.state);
    uct_daqiri_conn_begin_qp(conn, 0);
    uct_daqiri_tx_set_direct(conn);
}


void uct_daqiri_recover_up(uct_daqiri_conn_t *conn)
{
    const dq_frame_t *peer = &conn->peer.mail.news.peer;
    dq_recovered_t back    = {
        .peer_host = peer->host,
        .peer_pid  = peer->pid,
        .down_ms   = ucs_time_to_msec(ucs_get_time() - conn->lost.row.since),
    };
    dq_cause_t cause = DQ_CAUSE_MISMATCH;
    dq_facts_t facts;

    /* A message that the peer counts as acknowledged was handed up, or it is lost. */
    if ((int32_t)(peer->acked - conn->peer.resume.delivered) <= 0) {
        cause = uct_daqiri_replay_all(conn, peer, &back);
    }
    if (cause != DQ_CAUSE_NONE) {
        uct_daqiri_tx_facts(conn, cause, &facts);
        uct_daqiri_recover(conn, &facts);
        return;
    }
    uct_daqiri_conn_step(conn, DQ_LIFE_EV_UP);
    conn->lost.peer_done = peer->done;
    if (conn->idle.is_reopening) {
        uct_daqiri_budget_on_reopened(conn);
        return;
    }
    dq_recovery_add_success(&conn->lost.row, ucs_get_time());
    conn->iface->count->recoveries++;
    conn->iface->count->replayed += back.resent;
    conn->iface->count->replay_delivered += back.delivered;
    uct_daqiri_recover_log_recovered(conn, &back);
    uct_daqiri_recover_count_untold(conn);
}


void uct_daqiri_recover_expired(uct_daqiri_conn_t *conn, dq_facts_t *death)
{
    if (conn->idle.is_reopening) {
        death->waited_ms = ucs_time_to_msec(conn->iface->config.recovery_timeout);
        return;
    }
    *death          = conn->lost.facts;
    death->tried_ms = uct_daqiri_recover_tried_ms(conn);
}
