/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Life and death of a conn, as progress sees it.
 *
 * A conn dies in steps, and each has a bound:
 *   1. the gate closes: nothing more is posted         uct_daqiri_conn_fail
 *   2. messages that the peer has sent are delivered   the receive CQ was empty,
 *   3. the QP is moved to ERR and flushes its ledger   or time is up
 *   4. the ledger is purged, endpoints are told, and
 *      the async thread destroys the QP                uct_daqiri_conn_close, CMD_CLOSE
 *   5. once unused it is released: the async thread
 *      has nothing of it any more and reports that;
 *      only then is the memory freed                   CMD_RELEASE, EVT_RELEASED
 * Step 5 comes last, so no completion ever finds its conn freed.
 */
#include "conn/daqiri_conn.h"

#include "base/daqiri_hooks.h"
#include "base/daqiri_log.h"
#include "base/daqiri_mail.h"
#include "base/daqiri_peer.h"
#include "base/daqiri_pool.h"
#include "base/daqiri_port.h"
#include "base/daqiri_rc.h"
#include "conn/daqiri_batch.h"
#include "conn/daqiri_budget.h"
#include "conn/daqiri_op.h"
#include "conn/daqiri_preconnect.h"
#include "conn/daqiri_qp.h"
#include "conn/daqiri_recover.h"
#include "conn/daqiri_replay.h"
#include "conn/daqiri_retry.h"
#include "conn/daqiri_rx.h"
#include "conn/daqiri_slots.h"
#include "conn/daqiri_tx.h"
#include "iface/daqiri_iface.h"

enum {
    UCT_DAQIRI_DRAIN_SEC       = 1, /* flushes come within microseconds      */
    UCT_DAQIRI_DRAIN_POLLS_MIN = 16 /* progress calls, at least              */
};


uct_daqiri_peer_t *uct_daqiri_conn_create(uct_daqiri_iface_t *iface,
                                          const dq_port_addr_t *port,
                                          const dq_iface_addr_t *addr)
{
    uct_daqiri_conn_t *conn;

    conn = ucs_calloc(1, sizeof(*conn), "daqiri_conn");
    if (conn == NULL) {
        return NULL;
    }
    conn->iface = iface;
    if (uct_daqiri_slots_init(conn) != UCS_OK) {
        ucs_free(conn);
        return NULL;
    }
    pthread_mutex_init(&conn->preconnect.lock, NULL);
    ucs_queue_head_init(&conn->pending.queue);
    ucs_list_head_init(&conn->eps);
    ucs_list_head_init(&conn->drain_link);
    dq_sq_expect(&conn->sq);
    uct_daqiri_tx_set_direct(conn);
    if (uct_daqiri_peer_init(&conn->peer, iface, conn, port, addr) != UCS_OK) {
        uct_daqiri_conn_free(conn);
        return NULL;
    }
    return &conn->peer;
}


void uct_daqiri_conn_free(uct_daqiri_conn_t *conn)
{
    uct_daqiri_preconnect_drop(conn);
    pthread_mutex_destroy(&conn->preconnect.lock);
    uct_daqiri_peer_cleanup(&conn->peer);
    uct_daqiri_slots_cleanup(conn);
    ucs_free(conn);
}


uct_daqiri_peer_t *uct_daqiri_conn_peer(uct_daqiri_conn_t *conn)
{
    return &conn->peer;
}


/* The forged conn fails, so the async side tells its peer. */
ucs_status_t uct_daqiri_conn_get(uct_daqiri_iface_t *iface,
                                 const dq_port_addr_t *port,
                                 const dq_iface_addr_t *addr,
                                 uct_daqiri_conn_t **conn_p)
{
    uct_daqiri_peer_t *peer, *forged;
    ucs_status_t status;
    dq_facts_t facts;

    uct_daqiri_assert_progress(iface);
    if (!uct_daqiri_port_reaches(iface, port)) {
        return UCS_ERR_UNREACHABLE; /* UCX could have asked is_reachable */
    }
    status = uct_daqiri_peer_get_addressed(iface, port, addr, &peer, &forged);
    if (forged != NULL) {
        iface->count->conns_forged++;
        uct_daqiri_tx_facts(forged->conn, DQ_CAUSE_GIVEN_UP, &facts);
        uct_daqiri_conn_fail(forged->conn, &facts);
    }
    if (status == UCS_OK) {
        *conn_p = peer->conn;
    }
    return status;
}


ucs_status_t uct_daqiri_conn_status(const uct_daqiri_conn_t *conn)
{
    return dq_life_is_over(conn->state)
                   ? uct_daqiri_cause_status(conn->end.death.cause)
                   : UCS_OK;
}


void uct_daqiri_conn_step(uct_daqiri_conn_t *conn, dq_life_event_t event)
{
    dq_life_state_t before = conn->state;

    uct_daqiri_assert_progress(conn->iface);
    dq_life_step(&conn->state, event);
    if (conn->state == DQ_LIFE_CLOSING) {
        dq_sq_shut(&conn->sq, &conn->iface->tx.ledger);
    } else if ((conn->state == DQ_LIFE_RECOVERING) ||
               (conn->state == DQ_LIFE_IDLE_CLOSED)) {
        dq_sq_lose(&conn->sq, &conn->iface->tx.ledger);
    } else if (dq_life_is_over(conn->state)) {
        dq_sq_close(&conn->sq, &conn->iface->tx.ledger);
    }
    if ((event == DQ_LIFE_EV_LOSE) || (event == DQ_LIFE_EV_FAIL) ||
        (event == DQ_LIFE_EV_AGREED)) {
        (void)uct_daqiri_qp_step(&conn->qp, DQ_QP_EV_FAIL);
    }
    uct_daqiri_conn_check(conn);
    if (conn->state != before) {
        ucs_debug("conn %p: %s -> %s (%s)", conn, dq_life_state_name(before),
                  dq_life_state_name(conn->state), dq_life_event_name(event));
    }
}


/* ---- News of the async thread ---- */

/* Enters the RECVs of the window in the ledger. The device may not have taken them
 * all. */
static void uct_daqiri_conn_take_recvs(uct_daqiri_conn_t *conn)
{
    const uct_daqiri_new_recvs_t *recvs = &conn->peer.mail.news.recvs;
    uct_daqiri_iface_t *iface           = conn->iface;
    uint32_t posted                     = recvs->posted;
    uint32_t i;

    dq_rx_grow_posted(&iface->rx.ledger, posted);
    if (posted == recvs->count) {
        return;
    }
    dq_rx_grow(&iface->rx.ledger, recvs->count - posted);
    for (i = posted; i < recvs->count; i++) {
        uct_daqiri_pool_put(&iface->rx.pool, recvs->first + i);
    }
    uct_daqiri_recv_refused(iface);
}


/* A window may come without buffers of its own. Posts free buffers for it, which closed
 * conns have left. */
static void uct_daqiri_conn_back_window(uct_daqiri_conn_t *conn)
{
    dq_rx_t *ledger   = &conn->iface->rx.ledger;
    uint32_t standing = ledger->posted + ledger->owed;
    uint32_t wanted   = ledger->reserved + conn->peer.mail.news.promised;

    if (standing < wanted) {
        uct_daqiri_recv_post_free(conn->iface,
                                  ucs_min(wanted - standing, ledger->free));
    }
}


/* RECVs for peers whose conn has not failed. Messages of other peers take buffers, too,
 * but only until they are read. */
static uint64_t uct_daqiri_conn_live_windows(uct_daqiri_iface_t *iface)
{
    uint64_t sum = iface->rx.ledger.slack;
    uct_daqiri_conn_t *conn;

    ucs_list_for_each(conn, &iface->conns, iface_link) {
        sum += !dq_life_is_over(conn->state) ? conn->window.size : 0;
    }
    return sum;
}


/* Logs once. rx_overcommit counts each time. */
static void uct_daqiri_conn_log_few(uct_daqiri_iface_t *iface)
{
    if (iface->rx.is_few_logged ||
        (uct_daqiri_conn_live_windows(iface) <= iface->rx.pool.limit)) {
        return;
    }
    iface->rx.is_few_logged = 1;
    ucs_warn("daqiri: %u receive buffers are not enough for so many "
             "peers: from here on, senders may have to wait and try "
             "again (UCX_DAQIRI_RX_BUFFERS)", iface->rx.pool.limit);
}


/* The conn was closed before its QP was ready, and may be freed with the next event. If
 * that was its first QP, the buffers of its window go to the spare ones. */
static void uct_daqiri_conn_on_late_qp(uct_daqiri_conn_t *conn)
{
    const uct_daqiri_new_recvs_t *recvs = &conn->peer.mail.news.recvs;

    if (conn->is_listed) {
        return;
    }
    uct_daqiri_conn_take_recvs(conn);
    __atomic_add_fetch(&conn->iface->rx.spare,
                       recvs->count + recvs->reused, __ATOMIC_ACQ_REL);
}


/* If the conn has failed meanwhile, its new QP is drained with it. */
void uct_daqiri_conn_begin_qp(uct_daqiri_conn_t *conn, int is_used)
{
    uct_daqiri_qp_begin(&conn->qp, conn->peer.mail.news.qp, is_used);
    if (dq_life_is_over(conn->state)) {
        (void)uct_daqiri_qp_step(&conn->qp, DQ_QP_EV_FAIL);
    }
}


/* The conn has a QP, and RECVs for its peer. */
static void uct_daqiri_conn_on_qp(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;

    if (conn->state >= DQ_LIFE_CLOSED) {
        uct_daqiri_conn_on_late_qp(conn);
        return;
    }
    uct_daqiri_budget_on_qp(conn);
    if (conn->state == DQ_LIFE_IDLE_CLOSED) {
        uct_daqiri_conn_step(conn, DQ_LIFE_EV_QP);
    }
    if (conn->is_listed) {
        uct_daqiri_recover_on_qp(conn);
        return;
    }
    uct_daqiri_conn_begin_qp(conn, conn->qp.is_used);
    uct_daqiri_conn_step(conn, DQ_LIFE_EV_QP);
    conn->is_listed = 1;
    ucs_list_add_tail(&iface->conns, &conn->iface_link);
    iface->hooks->stats_add_conn(conn);
    uct_daqiri_conn_take_recvs(conn);
    uct_daqiri_conn_back_window(conn);
    if (!dq_rx_open(&iface->rx.ledger, &conn->window, conn->peer.mail.news.promised,
                    conn->peer.mail.news.window)) {
        uct_daqiri_conn_log_few(iface);
    }
    iface->rx.has_new_peer = 1;
    uct_daqiri_iface_add_work(iface, UCT_DAQIRI_WORK_LISTS);
}


/* A user has asked whether the peer lives while the conn was not up. The peer's answer to
 * the handshake may be older than the question, and the peer may have left since. */
static void uct_daqiri_conn_ask_again(uct_daqiri_conn_t *conn)
{
    dq_admit_t admit;

    conn->end.is_awaited = uct_daqiri_tx_ask_peer(conn, NULL, &admit) != UCS_OK;
}


static void uct_daqiri_conn_open(uct_daqiri_conn_t *conn)
{
    const dq_frame_t *peer = &conn->peer.mail.news.peer;
    dq_facts_t facts;

    if (dq_sq_open(&conn->sq, peer->credits, peer->promised) != 0) {
        uct_daqiri_tx_facts(conn, DQ_CAUSE_MISMATCH, &facts);
        uct_daqiri_recover(conn, &facts);
        return;
    }
    uct_daqiri_conn_step(conn, DQ_LIFE_EV_UP);
    conn->iface->count->conns_up++;
    uct_daqiri_preconnect_open(conn); /* before all pending requests */
}


static void uct_daqiri_conn_on_up(uct_daqiri_conn_t *conn)
{
    if (conn->qp.state != DQ_QP_CONNECTING) {
        return; /* it is about the QP that has been lost meanwhile */
    }
    (void)uct_daqiri_qp_step(&conn->qp, DQ_QP_EV_UP);
    conn->qp.is_used     = 1;
    conn->iface->tx.wake = 1;
    conn->has_hw         = 1;
    uct_daqiri_budget_on_up(conn);
    uct_daqiri_tx_set_direct(conn);
    if (conn->state == DQ_LIFE_RECOVERING) {
        uct_daqiri_recover_up(conn);
    } else {
        uct_daqiri_conn_open(conn);
    }
    if (conn->end.is_awaited) {
        uct_daqiri_conn_ask_again(conn);
    }
}


static void uct_daqiri_conn_on_dead(uct_daqiri_conn_t *conn)
{
    const uct_daqiri_news_t *news = &conn->peer.mail.news;
    dq_facts_t death;

    if (dq_life_is_over(conn->state)) {
        return; /* progress knows, and the QP may be destroyed by now */
    }
    uct_daqiri_tx_facts(conn, news->cause, &death);
    if ((news->cause == DQ_CAUSE_NO_ANSWER) &&
        (conn->state == DQ_LIFE_RECOVERING)) {
        uct_daqiri_recover_expired(conn, &death);
    } else if (news->cause == DQ_CAUSE_NO_ANSWER) {
        death.waited_ms = ucs_time_to_msec(conn->iface->config.conn_timeout);
        death.error     = news->ah_error;
    }
    if ((news->cause == DQ_CAUSE_VERB) && (news->refused != 0)) {
        death.verb  = "ibv_post_send";
        death.error = news->refused;
    }
    if ((news->cause == DQ_CAUSE_NO_ANSWER) &&
        (uct_daqiri_port_find_gid(conn->iface) == UCS_ERR_UNREACHABLE)) {
        death.cause = DQ_CAUSE_GID_LOST; /* no peer could have reached us */
    }
    uct_daqiri_conn_fail(conn, &death);
}


void uct_daqiri_conn_absorb(uct_daqiri_iface_t *iface)
{
    uct_daqiri_peer_t *peer;
    uct_daqiri_conn_t *conn;
    uint32_t events;

    uct_daqiri_assert_progress(iface);
    uct_daqiri_conn_fail_if_broken(iface); /* may hold the cause of other events */
    while ((peer = uct_daqiri_mail_next_event(iface, &events)) != NULL) {
        conn = peer->conn;
        uct_daqiri_conn_check(conn);
        if (events & UCT_DAQIRI_EVT_CLOSED) {
            uct_daqiri_recover_on_closed(conn);
        }
        if (events & UCT_DAQIRI_EVT_QP) {
            uct_daqiri_conn_on_qp(conn);
        }
        if (events & UCT_DAQIRI_EVT_UP) {
            uct_daqiri_conn_on_up(conn);
        }
        if (events & UCT_DAQIRI_EVT_LOST) {
            uct_daqiri_recover_on_peer_lost(conn);
        }
        if (events & UCT_DAQIRI_EVT_NO_QP) {
            uct_daqiri_recover_on_no_qp(conn);
        }
        if (events & (UCT_DAQIRI_EVT_ASYNC | UCT_DAQIRI_EVT_UP)) {
            uct_daqiri_recover_on_qp_event(conn);
        }
        if (events & UCT_DAQIRI_EVT_DEAD) {
            uct_daqiri_conn_on_dead(conn);
        }
        if (events & UCT_DAQIRI_EVT_RELEASED) {
            iface->count->conns_closed++;
            uct_daqiri_conn_free(conn);
        }
    }
    if (uct_daqiri_mail_take_refused(iface)) {
        uct_daqiri_budget_on_peer_refused(iface);
    }
    if (uct_daqiri_mail_is_due(iface)) {
        uct_daqiri_iface_add_work(iface, UCT_DAQIRI_WORK_LISTS);
    }
}


/* ---- Death ---- */

static int uct_daqiri_conn_is_draining(uct_daqiri_conn_t *conn)
{
    return !ucs_list_is_empty(&conn->drain_link);
}


void uct_daqiri_conn_start_drain(uct_daqiri_conn_t *conn)
{
    if (uct_daqiri_conn_is_draining(conn)) {
        return;
    }
    uct_daqiri_qp_mark_drain(&conn->qp);
    conn->qp.drain.until   = ucs_get_time() +
                             ucs_time_from_sec(UCT_DAQIRI_DRAIN_SEC);
    uct_daqiri_iface_add_work(conn->iface, UCT_DAQIRI_WORK_LISTS);
    ucs_list_add_tail(&conn->iface->draining, &conn->drain_link);
}


void uct_daqiri_conn_fail(uct_daqiri_conn_t *conn, const dq_facts_t *death)
{
    uct_daqiri_assert_progress(conn->iface);
    if (dq_life_is_over(conn->state)) {
        return; /* only the first cause counts */
    }
    (void)uct_daqiri_budget_forget(conn, death->cause);
    uct_daqiri_conn_step(conn, DQ_LIFE_EV_FAIL);
    conn->end.death      = *death;
    conn->peer.death = death->cause;
    uct_daqiri_retry_stop(conn);
    uct_daqiri_preconnect_drop(conn);
    uct_daqiri_conn_start_drain(conn);
    uct_daqiri_mail_post_command(&conn->peer, UCT_DAQIRI_CMD_FAIL);
}


void uct_daqiri_conn_fail_if_broken(uct_daqiri_iface_t *iface)
{
    dq_cause_t cause = (dq_cause_t)__atomic_load_n(&iface->broken,
                                                   __ATOMIC_ACQUIRE);
    uct_daqiri_conn_t *conn;
    dq_facts_t facts;

    uct_daqiri_assert_progress(iface);
    if (cause == DQ_CAUSE_NONE) {
        return;
    }
    ucs_list_for_each(conn, &iface->conns, iface_link) {
        uct_daqiri_tx_facts(conn, cause, &facts);
        uct_daqiri_conn_fail(conn, &facts);
    }
}


void uct_daqiri_conn_use_after_failure(uct_daqiri_conn_t *conn)
{
    conn->end.is_used_after = 1;
    uct_daqiri_conn_start_drain(conn);
}


/* Whether no user misses the peer, which has closed in order. Called when the ledger is
 * empty: only then is it known which requests the peer had taken. */
static int uct_daqiri_conn_is_harmless(uct_daqiri_conn_t *conn)
{
    if (!uct_daqiri_conn_peer_left(conn) || conn->end.is_awaited) {
        return 0;
    }
    conn->iface->hooks->pending_finish(conn);
    return !conn->end.is_used_after && ucs_queue_is_empty(&conn->pending.queue);
}


static uct_daqiri_ep_t *uct_daqiri_conn_unreported(uct_daqiri_conn_t *conn)
{
    uct_daqiri_ep_t *ep;

    ucs_list_for_each(ep, &conn->eps, conn_link) {
        if (!ep->is_reported) {
            return ep;
        }
    }
    return NULL;
}


static void uct_daqiri_conn_log(uct_daqiri_conn_t *conn, ucs_log_level_t level,
                                uct_daqiri_log_limit_t *limit)
{
    dq_facts_t facts = conn->end.death;
    uct_daqiri_port_words_t words;

    uct_daqiri_port_explain(conn->iface, conn->has_hw ? conn->peer.hw : NULL, &facts,
                            &words);
    if (limit != NULL) {
        uct_daqiri_log_rarely(limit, level, &facts);
    } else {
        uct_daqiri_log(level, &facts);
    }
}


/* The peer logs its own error. Here it is logged only for a user who misses something. */
static ucs_log_level_t uct_daqiri_conn_level(const uct_daqiri_conn_t *conn,
                                             ucs_log_level_t level)
{
    int is_peers = (conn->end.death.cause == DQ_CAUSE_PEER_FAILED) &&
                   !conn->end.is_awaited && !conn->end.is_used_after &&
                   ucs_queue_is_empty(&conn->pending.queue);

    return (is_peers && (level != UCS_LOG_LEVEL_FATAL))
                   ? ucs_max(level, UCS_LOG_LEVEL_DIAG) : level;
}


/* Tells UCP, and logs the message once. UCP's answer sets the level: without error
 * handling it is FATAL, which ends the process. A gap is logged although nobody uses the
 * conn here, because only this end can see it. */
static void uct_daqiri_conn_report(uct_daqiri_conn_t *conn)
{
    uct_base_iface_t *base = &conn->iface->super;
    ucs_status_t status    = uct_daqiri_conn_status(conn);
    ucs_log_level_t level;
    uct_daqiri_ep_t *ep;
    int is_logged = 0;

    /* From the start each time: the handler may destroy any endpoint. */
    while ((ep = uct_daqiri_conn_unreported(conn)) != NULL) {
        ep->is_reported = 1;
        level = uct_base_iface_failure_log_level(
                base,
                uct_iface_handle_ep_err(&base->super, &ep->super.super,
                                        status),
                status);
        if (!is_logged) {
            is_logged = 1;
            uct_daqiri_conn_log(conn, uct_daqiri_conn_level(conn, level),
                                NULL);
        }
    }
    if ((conn->end.death.cause == DQ_CAUSE_GAP) && ucs_list_is_empty(&conn->eps)) {
        /* no endpoint here uses the peer */
        uct_daqiri_conn_log(conn, UCS_LOG_LEVEL_WARN, &conn->iface->log_limit.gap);
    }
}


void uct_daqiri_conn_destroy_qp(uct_daqiri_conn_t *conn)
{
    uct_daqiri_conn_detach_qp(conn);
    uct_daqiri_mail_post_command(&conn->peer, UCT_DAQIRI_CMD_CLOSE);
}


static void uct_daqiri_conn_release(uct_daqiri_conn_t *conn)
{
    if (conn->is_listed) { /* it has had a QP, but may have none now */
        conn->iface->hooks->stats_remove_conn(conn);
        ucs_list_del(&conn->iface_link);
    }
    uct_daqiri_budget_remove(conn);
    uct_daqiri_conn_detach_qp(conn);
    uct_daqiri_peer_remove(&conn->peer);
    uct_daqiri_mail_post_command(&conn->peer, UCT_DAQIRI_CMD_RELEASE);
}


static void uct_daqiri_conn_close(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;

    uct_daqiri_tx_purge(conn);
    if (conn->grant.due) {
        conn->grant.due = 0;
        ucs_list_del(&conn->grant.link);
    }
    if (conn->window.backed) {
        __atomic_add_fetch(&iface->rx.spare, conn->window.size,
                           __ATOMIC_ACQ_REL);
    }
    dq_rx_close(&iface->rx.ledger, &conn->window);
    uct_daqiri_conn_step(conn, DQ_LIFE_EV_DRAINED);
}


void uct_daqiri_conn_to_err(uct_daqiri_conn_t *conn)
{
    int is_done;

    if (conn->qp.state != DQ_QP_FAILED) {
        return;
    }
    if (!conn->qp.is_err) {
        uct_daqiri_batch_flush(conn->iface); /* a held request would never complete */
        uct_daqiri_tx_post_marker(conn);
    }
    is_done         = uct_daqiri_rc_to_err(conn->qp.verbs) == 0;
    conn->qp.is_err = 1;
    /* A QP that still takes messages is not drained. So ask again, until time is up. */
    if (is_done || (ucs_get_time() >= conn->qp.drain.until)) {
        (void)uct_daqiri_qp_step(&conn->qp, DQ_QP_EV_IN_ERR);
    }
}


int uct_daqiri_conn_is_flushing(const uct_daqiri_conn_t *conn)
{
    const uct_daqiri_qp_t *qp = &conn->qp;
    uint32_t end = qp->has_send_end ? qp->send_end : conn->sq.posted;

    return (end != conn->sq.retired) && qp->is_used && (qp->verbs != NULL) &&
           !(qp->has_flushed && (qp->flushed == end));
}


/*
 * Whether all completions have been taken that were in the CQs when the drain was marked.
 * That is so if a later progress call found the CQs empty; the current one may have
 * polled before. It is also so after as many completions as both CQs hold, because other
 * conns may keep the CQs from ever being empty. There must be no time limit: the peer
 * will be told how much was delivered, and messages handed up after that would be lost.
 */
static int uct_daqiri_conn_is_taken(uct_daqiri_conn_t *conn, unsigned taken)
{
    const uct_daqiri_iface_t *iface = conn->iface;

    conn->qp.drain.polls++;
    conn->qp.drain.taken += taken;
    return (conn->qp.drain.polls > 1) &&
           ((taken == 0) ||
            (conn->qp.drain.taken > (uint64_t)iface->rx.cq->cqe +
                                    iface->tx.cq->cqe));
}


/* One step for a conn that is not over. Returns non-zero when the conn need not drain
 * for now. */
static int uct_daqiri_conn_lost_step(uct_daqiri_conn_t *conn, unsigned taken)
{
    if (conn->qp.state == DQ_QP_FAILED) {
        uct_daqiri_conn_to_err(conn);
        return 0;
    }
    if (!uct_daqiri_conn_is_taken(conn, taken)) {
        return 0;
    }
    /* A process that was stopped has not given its device the time, so progress calls
     * count, too. */
    if (uct_daqiri_conn_is_flushing(conn) &&
        ((ucs_get_time() < conn->qp.drain.until) ||
         (conn->qp.drain.polls < UCT_DAQIRI_DRAIN_POLLS_MIN))) {
        return 0;
    }
    return uct_daqiri_recover_on_taken(conn);
}


/* The user may keep a conn that is over for long. Its QP goes now: others may need it. */
static void uct_daqiri_conn_end_qp(uct_daqiri_conn_t *conn)
{
    if (conn->qp.state == DQ_QP_DRAINING) {
        (void)uct_daqiri_qp_step(&conn->qp, DQ_QP_EV_TAKEN);
        uct_daqiri_conn_destroy_qp(conn);
    } else if (conn->qp.state != DQ_QP_DESTROYING) {
        uct_daqiri_budget_remove(conn); /* it has none */
    }
}


/* One step for a conn that has failed. Returns non-zero when it is closed. */
static int uct_daqiri_conn_dead_step(uct_daqiri_conn_t *conn,
                                     unsigned received)
{
    int is_late = ucs_get_time() >= conn->qp.drain.until;

    if ((received > 0) && !is_late) {
        return 0;
    }
    if ((conn->qp.state == DQ_QP_FAILED) && !conn->qp.is_err) {
        uct_daqiri_conn_to_err(conn);
        return 0; /* another round: messages received before come first */
    }
    if (conn->qp.state == DQ_QP_FAILED) {
        /* The device moved the QP to ERR itself, so there is no wait: this progress call
         * tells the endpoints. UCX's uct_p2p_err_test looks after one flush. */
        (void)uct_daqiri_qp_step(&conn->qp, DQ_QP_EV_IN_ERR);
    }
    if (uct_daqiri_conn_is_flushing(conn) && !is_late) {
        return 0;
    }
    uct_daqiri_conn_end_qp(conn);
    uct_daqiri_conn_close(conn);
    return 1;
}


static int uct_daqiri_conn_drain_step(uct_daqiri_conn_t *conn,
                                      unsigned received, unsigned completed)
{
    uct_daqiri_conn_check(conn);
    if (conn->state >= DQ_LIFE_CLOSED) {
        return 1;
    }
    if (conn->qp.state == DQ_QP_READY) {
        return uct_daqiri_recover_by_qp_event(conn);
    }
    if (conn->qp.state == DQ_QP_DRAINING) {
        uct_daqiri_tx_post_marker_at_end(conn);
    }
    return !dq_life_is_over(conn->state)
                   ? uct_daqiri_conn_lost_step(conn, received + completed)
                   : uct_daqiri_conn_dead_step(conn, received);
}


unsigned uct_daqiri_conn_drain(uct_daqiri_iface_t *iface, unsigned received,
                               unsigned completed)
{
    uct_daqiri_conn_t *conn, *next;
    unsigned count = 0;

    uct_daqiri_assert_progress(iface);
    ucs_list_for_each_safe(conn, next, &iface->draining, drain_link) {
        if (!uct_daqiri_conn_drain_step(conn, received, completed)) {
            continue;
        }
        ucs_list_del(&conn->drain_link);
        ucs_list_head_init(&conn->drain_link);
        count++;
        if (conn->state < DQ_LIFE_CLOSED) {
            continue; /* it may get another QP */
        }
        if (!uct_daqiri_conn_is_harmless(conn)) {
            uct_daqiri_conn_report(conn);
        }
        uct_daqiri_conn_put(conn);
    }
    return count;
}


void uct_daqiri_conn_put(uct_daqiri_conn_t *conn)
{
    uct_daqiri_assert_progress(conn->iface);
    if ((conn->state == DQ_LIFE_CLOSED) && !uct_daqiri_conn_is_draining(conn) &&
        !conn->pending.is_on && ucs_list_is_empty(&conn->eps)) {
        uct_daqiri_conn_step(conn, DQ_LIFE_EV_RELEASE);
        uct_daqiri_conn_release(conn);
    }
}
