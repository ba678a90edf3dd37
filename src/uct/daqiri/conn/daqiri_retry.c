/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posts refused requests again; see daqiri_retry.h.
 */
#include "conn/daqiri_retry.h"

#include "conn/daqiri_conn.h"
#include "conn/daqiri_recover.h"
#include "conn/daqiri_replay.h"
#include "conn/daqiri_tx.h"
#include "iface/daqiri_iface.h"

enum {
    UCT_DAQIRI_RETRY_MIN_US = 20,   /* the time of a few completions         */
    UCT_DAQIRI_RETRY_MAX_US = 5000
};


/* The wait that the watchdog would report, or after which it would give up the QP. */
static uint64_t uct_daqiri_retry_bound(const uct_daqiri_iface_t *iface)
{
    uint64_t say     = iface->watchdog.bounds.warn;
    uint64_t give_up = iface->watchdog.bounds.give_up;

    if ((say == 0) || (give_up == 0)) {
        return ucs_max(say, give_up);
    }
    return ucs_min(say, give_up);
}


static dq_retry_limits_t
uct_daqiri_retry_limits(const uct_daqiri_iface_t *iface)
{
    return (dq_retry_limits_t){
        .least = ucs_time_from_usec(UCT_DAQIRI_RETRY_MIN_US),
        .most  = ucs_time_from_usec(UCT_DAQIRI_RETRY_MAX_US),
        .bound = uct_daqiri_retry_bound(iface),
    };
}


int uct_daqiri_retry_keep_replay(uct_daqiri_conn_t *conn, uint32_t id,
                                 uint32_t ahead, uint32_t fresh, int error)
{
    uct_daqiri_iface_t *iface      = conn->iface;
    const dq_retry_limits_t limits = uct_daqiri_retry_limits(iface);

    if (!dq_retry_is_transient(error) || (conn->replay.slots == NULL) ||
        (conn->sq.gate != DQ_GATE_UP) || conn->qp.has_send_end) {
        return 0;
    }
    dq_retry_begin(&conn->retry.state, &limits, ucs_get_time(),
                   conn->sq.retired);
    conn->retry.is_on = 1;
    conn->retry.ahead = ahead;
    conn->retry.fresh = fresh;
    uct_daqiri_tx_set_send_end(conn, id); /* later requests go behind it */
    uct_daqiri_iface_add_work(iface, UCT_DAQIRI_WORK_LISTS);
    iface->count->retries_kept++;
    ucs_list_add_tail(&iface->tx.retry, &conn->retry.link);
    return 1;
}


int uct_daqiri_retry_keep(uct_daqiri_conn_t *conn, uint32_t id, int error)
{
    return uct_daqiri_retry_keep_replay(conn, id, id, id, error);
}


void uct_daqiri_retry_stop(uct_daqiri_conn_t *conn)
{
    if (conn->retry.is_on) {
        conn->retry.is_on = 0;
        ucs_list_del(&conn->retry.link);
    }
}


/* The device has all requests: the conn posts as usual. */
static void uct_daqiri_retry_end(uct_daqiri_conn_t *conn)
{
    uct_daqiri_retry_stop(conn);
    conn->qp.has_send_end = 0;
    uct_daqiri_tx_set_direct(conn);
    conn->iface->count->retries_posted++;
}


static void uct_daqiri_retry_give_up(uct_daqiri_conn_t *conn, int error)
{
    dq_facts_t facts;

    uct_daqiri_tx_facts(conn, DQ_CAUSE_POST, &facts);
    facts.error     = error;
    facts.waited_ms = ucs_time_to_msec(ucs_get_time() -
                                       conn->retry.state.since);
    uct_daqiri_recover(conn, &facts);
}


static int uct_daqiri_retry_post(uct_daqiri_conn_t *conn, uint32_t id)
{
    if ((int32_t)(id - conn->retry.fresh) >= 0) {
        return uct_daqiri_replay_post_as_was(conn, id);
    }
    return uct_daqiri_replay_post(conn, id,
                                  (int32_t)(id - conn->retry.ahead) < 0);
}


static unsigned uct_daqiri_retry_offer(uct_daqiri_conn_t *conn)
{
    const dq_retry_limits_t limits = uct_daqiri_retry_limits(conn->iface);
    unsigned count                 = 0;
    int ret;

    for (; conn->qp.send_end != conn->sq.posted; conn->qp.send_end++) {
        ret = uct_daqiri_retry_post(conn, conn->qp.send_end);
        if (ret != 0) {
            if (!dq_retry_is_transient(ret) ||
                dq_retry_refused(&conn->retry.state, &limits, ucs_get_time(),
                                 conn->sq.retired, count > 0)) {
                uct_daqiri_retry_give_up(conn, ret);
            }
            return count;
        }
        count++;
    }
    uct_daqiri_retry_end(conn);
    return count;
}


unsigned uct_daqiri_retry_all(uct_daqiri_iface_t *iface)
{
    ucs_time_t now = ucs_get_time();
    uct_daqiri_conn_t *conn, *next;
    unsigned count = 0;

    uct_daqiri_assert_progress(iface);
    ucs_list_for_each_safe(conn, next, &iface->tx.retry, retry.link) {
        if (dq_retry_is_due(&conn->retry.state, now, conn->sq.retired)) {
            count += uct_daqiri_retry_offer(conn);
        }
    }
    return count;
}
