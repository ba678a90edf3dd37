/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watchdog finds requests that neither complete nor fail, operations that wait for
 * ever, and peers that are silent. dq_watchdog decides what to do.
 *
 * A timer on the async side says when to look, and progress looks, as slow work. So the
 * data path does nothing for it. A program that makes no progress is not taken for a
 * device that hangs.
 *
 * Threads: the timer is async; the rest is progress.
 */
#include "iface/daqiri_watchdog.h"

#include "base/daqiri_config.h"
#include "base/daqiri_log.h"
#include "base/daqiri_port.h"
#include "base/daqiri_rc.h"
#include "conn/daqiri_conn.h"
#include "conn/daqiri_idle.h"
#include "conn/daqiri_recover.h"
#include "conn/daqiri_tx.h"
#include "iface/daqiri_event.h"
#include "iface/daqiri_iface.h"
#include "iface/daqiri_send_cq.h"
#include "iface/daqiri_stats.h"

#include <sys/timerfd.h>

enum {
    UCT_DAQIRI_WATCHDOG_MIN_MS = 2,
    UCT_DAQIRI_WATCHDOG_MAX_MS = 1000,
    /* on a busy machine a process may not run for a while */
    UCT_DAQIRI_WATCHDOG_UNRESPONSIVE_MS = 1000
};


/* ---- The timer; async ---- */

static void uct_daqiri_watchdog_on_timer(int fd, ucs_event_set_types_t events,
                                         void *arg)
{
    uct_daqiri_iface_t *iface = arg;
    uint64_t expirations;

    (void)events;
    uct_daqiri_enter_async();
    if (read(fd, &expirations, sizeof(expirations)) > 0) {
        uct_daqiri_mail_post_due(iface);
        if (__atomic_load_n(&iface->watchdog.is_needed, __ATOMIC_ACQUIRE)) {
            uct_daqiri_mail_wake(iface);
        }
    }
    uct_daqiri_mail_hand_over(iface); /* to the thread that closes the descriptor */
    uct_daqiri_leave_async();
}


ucs_status_t uct_daqiri_watchdog_open(uct_daqiri_iface_t *iface)
{
    ucs_time_t period = iface->watchdog.period;
    struct timespec time;
    ucs_status_t status;

    ucs_sec_to_timespec(ucs_time_to_sec(period), &time);
    iface->watchdog.last     = ucs_get_time();
    iface->watchdog.timer_fd = timerfd_create(CLOCK_MONOTONIC,
                                              TFD_NONBLOCK | TFD_CLOEXEC);
    if (iface->watchdog.timer_fd < 0) {
        uct_daqiri_log_verb(UCS_LOG_LEVEL_ERROR, UCT_DAQIRI_NAME,
                            "timerfd_create", errno);
        return UCS_ERR_IO_ERROR;
    }
    status = ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                         iface->watchdog.timer_fd,
                                         UCS_EVENT_SET_EVREAD,
                                         uct_daqiri_watchdog_on_timer, iface,
                                         NULL);
    if (status != UCS_OK) {
        close(iface->watchdog.timer_fd);
        return status;
    }
    (void)timerfd_settime(iface->watchdog.timer_fd, 0,
                          &(struct itimerspec){.it_value    = time,
                                               .it_interval = time}, NULL);
    return UCS_OK;
}


void uct_daqiri_watchdog_close(uct_daqiri_iface_t *iface)
{
    ucs_async_remove_handler(iface->watchdog.timer_fd, 1);
    uct_daqiri_mail_hand_over(iface);
    close(iface->watchdog.timer_fd);
}


void uct_daqiri_watchdog_configure(uct_daqiri_iface_t *iface,
                                   const uct_daqiri_iface_config_t *config)
{
    enum { IDLE_CHECKS = 4 }; /* within UCX_DAQIRI_IDLE_TIMEOUT */
    dq_watchdog_bounds_t *bounds = &iface->watchdog.bounds;
    ucs_time_t idle;

    bounds->warn               = ucs_time_from_sec(config->stall_timeout);
    bounds->give_up            = ucs_time_from_sec(config->stuck_timeout);
    bounds->probe              = ucs_time_from_sec(config->keepalive);
    iface->watchdog.liveness   = (dq_liveness_bounds_t){
        .probe_after  = bounds->probe,
        .unresponsive = ucs_max(bounds->probe,
                        ucs_time_from_msec(UCT_DAQIRI_WATCHDOG_UNRESPONSIVE_MS)),
    };
    iface->watchdog.back   = bounds->give_up;
    iface->watchdog.period = dq_watchdog_period(
            bounds, ucs_time_from_msec(UCT_DAQIRI_WATCHDOG_MIN_MS),
            ucs_time_from_msec(UCT_DAQIRI_WATCHDOG_MAX_MS));
    if (config->idle_timeout > 0) {
        idle                   = ucs_time_from_sec(config->idle_timeout / IDLE_CHECKS);
        iface->watchdog.period = ucs_min(iface->watchdog.period, ucs_max(idle,
                                 ucs_time_from_msec(UCT_DAQIRI_WATCHDOG_MIN_MS)));
    }
}


/* ---- Looking; progress ---- */

static void uct_daqiri_watchdog_warn(uct_daqiri_conn_t *conn)
{
    const dq_watchdog_t *watch = &conn->watchdog.state;
    int is_still               = watch->still >= watch->waiting;
    dq_stall_t stall           = {
        .is_waiting = !is_still,
        .for_ms     = ucs_time_to_msec(is_still ? watch->still
                                                : watch->waiting),
        .give_up_ms = is_still ? ucs_time_to_msec(
                                         conn->iface->watchdog.bounds.give_up)
                               : 0,
        .reason     = (conn->watchdog.refusal == DQ_ADMIT_OK)
                              ? NULL : dq_admit_name(conn->watchdog.refusal),
        .is_no_credit = conn->watchdog.refusal == DQ_ADMIT_NO_CREDIT,
        .is_put_off = watch->seen.is_put_off,
        .oldest_id  = conn->sq.retired,
        .credits    = dq_sq_credits(&conn->sq),
        .window     = conn->sq.window,
        .qp_state   = uct_daqiri_rc_state_name(conn->qp.verbs),
    };
    char message[DQ_TRIAGE_MESSAGE_MAX];
    char more[UCT_DAQIRI_MORE_MAX];
    uct_daqiri_port_words_t words;
    dq_facts_t facts;

    conn->watchdog.stalls++;
    conn->iface->count->stalls++;
    if (!uct_daqiri_may_log_of(!ucs_list_is_empty(&conn->eps),
                           &conn->iface->log_limit.stall, more)) {
        return;
    }
    if (conn->replay.slots != NULL) {
        stall.oldest_kind = dq_op_kind_name(
                (dq_op_kind_t)dq_replay_slot(&conn->replay, conn->sq.retired)->kind);
    }
    uct_daqiri_tx_facts(conn, DQ_CAUSE_STUCK, &facts);
    uct_daqiri_port_explain(conn->iface, conn->has_hw ? conn->peer.hw : NULL, &facts,
                            &words);
    ucs_warn("%s%s", dq_triage_stall(&facts, &stall, message, sizeof(message)),
             more);
}


static void uct_daqiri_watchdog_give_up(uct_daqiri_conn_t *conn)
{
    dq_facts_t facts;

    conn->iface->count->stuck++;
    uct_daqiri_tx_facts(conn, DQ_CAUSE_STUCK, &facts);
    facts.waited_ms = ucs_time_to_msec(conn->watchdog.state.still);
    uct_daqiri_recover(conn, &facts);
}


/* Posts a request that needs neither a credit nor the peer's program. */
static void uct_daqiri_watchdog_probe(uct_daqiri_conn_t *conn, uint64_t *counter)
{
    if (dq_sq_admit(&conn->sq, &conn->iface->tx.ledger, DQ_WR_RMA) ==
        DQ_ADMIT_OK) {
        (*counter)++;
        (void)uct_daqiri_tx_post_probe(conn, NULL, NULL);
    }
}


/* Asks whether the peer's process runs, and not only its device. */
static void uct_daqiri_watchdog_process(uct_daqiri_conn_t *conn,
                                        ucs_time_t elapsed)
{
    uct_daqiri_iface_t *iface     = conn->iface;
    const dq_sq_t *sq             = &conn->sq;
    dq_liveness_t *call           = &conn->watchdog.liveness;
    const dq_liveness_seen_t seen = {
        /* messages, credits that were granted, frames */
        .heard    = conn->rx_seq + conn->tx_seq + dq_sq_credits(sq) +
                   __atomic_load_n(&conn->peer.liveness.heard, __ATOMIC_RELAXED),
        .probes  = __atomic_load_n(&conn->peer.liveness.probes, __ATOMIC_RELAXED),
        .retired = sq->retired,
        .is_up   = (sq->gate == DQ_GATE_UP) && !conn->peer.is_self,
    };
    unsigned what = dq_liveness_look(call, &iface->watchdog.liveness, &seen, elapsed);
    dq_facts_t facts;

    if (what & DQ_LIVENESS_GIVE_UP) {
        iface->count->unresponsive++;
        uct_daqiri_tx_facts(conn, DQ_CAUSE_PEER_UNRESPONSIVE, &facts);
        facts.waited_ms = ucs_time_to_msec(call->silent);
        uct_daqiri_recover(conn, &facts);
        return;
    }
    if ((what & DQ_LIVENESS_PROBE_DEVICE) && (sq->posted == sq->retired)) {
        uct_daqiri_watchdog_probe(conn, &iface->count->probes);
    }
    if (what & DQ_LIVENESS_PROBE_PROCESS) {
        uct_daqiri_mail_post_command(&conn->peer, UCT_DAQIRI_CMD_PROBE);
    }
}


/* After a port was down, the device may have forgotten requests (rxe does). Requests that
 * have not moved since the port is back count as stuck as soon as the device should
 * have failed them. */
static dq_watchdog_bounds_t uct_daqiri_watchdog_bounds(uct_daqiri_iface_t *iface,
                                                       ucs_time_t elapsed)
{
    dq_watchdog_bounds_t bounds = iface->watchdog.bounds;

    if (__atomic_exchange_n(&iface->watchdog.is_back, 0, __ATOMIC_RELAXED)) {
        iface->watchdog.back = 0;
    } else {
        iface->watchdog.back += elapsed;
    }
    bounds.give_up = ucs_min(bounds.give_up,
                             ucs_max(iface->watchdog.back,
                                     uct_daqiri_rc_max_retry_time(iface)));
    return bounds;
}


static void uct_daqiri_watchdog_conn(uct_daqiri_conn_t *conn,
                                     const dq_watchdog_bounds_t *bounds,
                                     ucs_time_t elapsed)
{
    uct_daqiri_iface_t *iface     = conn->iface;
    const dq_sq_t *sq             = &conn->sq;
    int is_put_off                = (sq->gate != DQ_GATE_UP) &&
                                    __atomic_load_n(&conn->peer.liveness.is_put_off,
                                                    __ATOMIC_RELAXED);
    const dq_watchdog_seen_t seen = {
        .posted     = sq->posted,
        .retired    = sq->retired,
        .probes     = conn->watchdog.probes,
        .heard      = conn->rx_seq,
        .is_up      = sq->gate == DQ_GATE_UP,
        .is_put_off = is_put_off,
        .is_due     = sq->signals != sq->signals_over,
        .is_silent  = dq_sq_tail_is_silent(sq),
        .is_wanted  = (conn->watchdog.refusal != DQ_ADMIT_OK) ||
                      !ucs_queue_is_empty(&conn->pending.queue) ||
                      (is_put_off && (dq_sq_in_use(sq) > 0)),
    };
    unsigned what = dq_watchdog_sample(&conn->watchdog.state, bounds, &seen, elapsed);

    if (what & DQ_WATCHDOG_WARN) {
        uct_daqiri_watchdog_warn(conn);
    }
    conn->watchdog.refusal = DQ_ADMIT_OK;
    if (what & DQ_WATCHDOG_GIVE_UP) {
        uct_daqiri_watchdog_give_up(conn);
    } else if (what & DQ_WATCHDOG_MARK) {
        uct_daqiri_watchdog_probe(conn, &iface->count->markers);
    } else if (what & DQ_WATCHDOG_PROBE) {
        uct_daqiri_watchdog_probe(conn, &iface->count->probes);
    }
}


/* A process that was stopped, or made no progress, has missed what happened. Its next
 * progress calls handle what is in its queues before the watchdog looks again. */
void uct_daqiri_watchdog_run(uct_daqiri_iface_t *iface)
{
    ucs_time_t now     = ucs_get_time();
    ucs_time_t elapsed = ucs_min(now - iface->watchdog.last,
                                 2 * iface->watchdog.period);
    dq_watchdog_bounds_t bounds;
    uct_daqiri_conn_t *conn;

    uct_daqiri_assert_progress(iface);
    __atomic_store_n(&iface->watchdog.is_due, 0, __ATOMIC_RELAXED);
    iface->watchdog.last = now;
    bounds               = uct_daqiri_watchdog_bounds(iface, elapsed);
    ucs_list_for_each(conn, &iface->conns, iface_link) {
        uct_daqiri_watchdog_conn(conn, &bounds, elapsed);
        uct_daqiri_watchdog_process(conn, elapsed);
    }
    uct_daqiri_send_cq_check(iface);
    uct_daqiri_idle_check(iface);
    uct_daqiri_conn_fail_if_broken(iface);
    uct_daqiri_stats_sample(iface);
}
