/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Offering again what was refused; see daqiri_again.h.
 */
#include "daqiri_again.h"
#include "daqiri_redo.h"

enum {
    UCT_DAQIRI_AGAIN_LEAST_US = 20, /* a few completions later               */
    UCT_DAQIRI_AGAIN_MOST_US  = 5000
};


/* Whoever has to wait so long is told, or gives up its QP. */
static uint64_t uct_daqiri_again_bound(const uct_daqiri_iface_t *iface)
{
    uint64_t say     = iface->watch.bounds.say;
    uint64_t give_up = iface->watch.bounds.give_up;

    if ((say == 0) || (give_up == 0)) {
        return ucs_max(say, give_up);
    }
    return ucs_min(say, give_up);
}


static dq_again_limits_t
uct_daqiri_again_limits(const uct_daqiri_iface_t *iface)
{
    return (dq_again_limits_t){
        .least = ucs_time_from_usec(UCT_DAQIRI_AGAIN_LEAST_US),
        .most  = ucs_time_from_usec(UCT_DAQIRI_AGAIN_MOST_US),
        .bound = uct_daqiri_again_bound(iface),
    };
}


int uct_daqiri_again_keep_redo(uct_daqiri_conn_t *conn, uint32_t id,
                               uint32_t ahead, uint32_t fresh, int error)
{
    uct_daqiri_iface_t *iface      = conn->iface;
    const dq_again_limits_t limits = uct_daqiri_again_limits(iface);

    if (!dq_again_is_curable(error) || (conn->redo.slots == NULL) ||
        (conn->sq.gate != DQ_GATE_UP) || (conn->life != UCT_DAQIRI_LIVE) ||
        conn->is_ending || conn->is_holed) {
        return 0;
    }
    dq_again_begin(&conn->again.state, &limits, ucs_get_time(),
                   conn->sq.retired);
    conn->again.is_on = 1;
    conn->again.ahead = ahead;
    conn->again.fresh = fresh;
    uct_daqiri_tx_set_hole(conn, id); /* the next ones go behind it */
    iface->chores     = 1;
    iface->count->tails_kept++;
    ucs_list_add_tail(&iface->tx.again, &conn->again.link);
    return 1;
}


int uct_daqiri_again_keep(uct_daqiri_conn_t *conn, uint32_t id, int error)
{
    return uct_daqiri_again_keep_redo(conn, id, id, id, error);
}


void uct_daqiri_again_stop(uct_daqiri_conn_t *conn)
{
    if (conn->again.is_on) {
        conn->again.is_on = 0;
        ucs_list_del(&conn->again.link);
    }
}


/* The device has them all: the conn posts as ever. */
static void uct_daqiri_again_end(uct_daqiri_conn_t *conn)
{
    uct_daqiri_again_stop(conn);
    conn->is_holed = 0;
    uct_daqiri_tx_set_alone(conn);
    conn->iface->count->tails_posted++;
}


static void uct_daqiri_again_give_up(uct_daqiri_conn_t *conn, int error)
{
    dq_facts_t facts;

    uct_daqiri_tx_facts(conn, DQ_CAUSE_POST, &facts);
    facts.error     = error;
    facts.waited_ms = ucs_time_to_msec(ucs_get_time() -
                                       conn->again.state.since);
    uct_daqiri_recover(conn, &facts);
}


static int uct_daqiri_again_post(uct_daqiri_conn_t *conn, uint32_t id)
{
    if ((int32_t)(id - conn->again.fresh) >= 0) {
        return uct_daqiri_redo_post_as_was(conn, id);
    }
    return uct_daqiri_redo_post(conn, id,
                                (int32_t)(id - conn->again.ahead) < 0);
}


static unsigned uct_daqiri_again_offer(uct_daqiri_conn_t *conn)
{
    const dq_again_limits_t limits = uct_daqiri_again_limits(conn->iface);
    unsigned count                 = 0;
    int ret;

    for (; conn->hole != conn->sq.posted; conn->hole++) {
        ret = uct_daqiri_again_post(conn, conn->hole);
        if (ret != 0) {
            if (!dq_again_is_curable(ret) ||
                dq_again_refused(&conn->again.state, &limits, ucs_get_time(),
                                 conn->sq.retired, count > 0)) {
                uct_daqiri_again_give_up(conn, ret);
            }
            return count;
        }
        count++;
    }
    uct_daqiri_again_end(conn);
    return count;
}


unsigned uct_daqiri_again_try(uct_daqiri_iface_t *iface)
{
    ucs_time_t now = ucs_get_time();
    uct_daqiri_conn_t *conn, *next;
    unsigned count = 0;

    ucs_list_for_each_safe(conn, next, &iface->tx.again, again.link) {
        if (dq_again_is_due(&conn->again.state, now, conn->sq.retired)) {
            count += uct_daqiri_again_offer(conn);
        }
    }
    return count;
}
