/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection that UCP sees. It outlives the queue pairs of the device.
 *
 * Threads: progress, unless a field names another.
 */
#ifndef UCT_DAQIRI_CONN_H
#define UCT_DAQIRI_CONN_H

#include "base/daqiri_peer.h"
#include "conn/daqiri_op.h"
#include "conn/daqiri_qp.h"
#include "dq/dq_idle.h"
#include "dq/dq_life.h"
#include "dq/dq_liveness.h"
#include "dq/dq_recall.h"
#include "dq/dq_recovery.h"
#include "dq/dq_replay.h"
#include "dq/dq_retry.h"
#include "dq/dq_rx.h"
#include "dq/dq_triage.h"
#include "dq/dq_watchdog.h"
#include "iface/daqiri_iface.h"

/* The progress of a grant that is due; daqiri_rx.c. */
enum {
    UCT_DAQIRI_GRANT_NEW = 1, /* due since this progress call                */
    UCT_DAQIRI_GRANT_NEXT,    /* the next progress call sends it             */
    UCT_DAQIRI_GRANT_STUCK    /* tried: it waits for room, or for the peer   */
};

struct uct_daqiri_conn {
    /* From here to qp.verbs: what a short send and a message touch. Progress. */
    dq_sq_t            sq;
    uct_daqiri_iface_t *iface;
    dq_replay_log_t    replay;     /* daqiri_replay.h; no slots: no recovery */
    uint32_t           tx_seq;     /* of the next active message             */
    uint32_t           rx_seq;     /* of the next one to hand up             */
    dq_rx_window_t     window;
    uct_daqiri_qp_t    qp;
    struct {
        uct_daqiri_op_t *slot;     /* [sq.mask + 1], by ledger slot          */
        uint32_t       count;      /* slots that are not empty               */
    } ops;                         /* daqiri_op.h                            */
    struct {
        uint32_t       most;       /* largest depth of sq                    */
        uint32_t       since;      /* sq.posted when they were made          */
    } slots;                       /* daqiri_slots.h                         */
    uint32_t           next_flags; /* IBV_SEND_FENCE, or 0                   */
    struct {
        /* A request is posted directly if the last one was posted before this epoch. It
         * points to the batch's direct_epoch, to 0 (never: the conn is not up, or has a
         * send_end), or to UINT64_MAX (always). */
        const uint64_t *direct_epoch;
        /* The epoch of the last post, or the next one while the conn is streaming: see
         * uct_daqiri_batch_note(). */
        uint64_t       last_post_epoch;
        int            is_streaming;
        /* The refusal of its batch, and the next conn with one. The batch's lock. */
        int            error;      /* errno, or 0                            */
        uint32_t       send_end;   /* first id that was refused              */
        struct uct_daqiri_conn *failed;
    } batch;                       /* daqiri_batch.h                         */
    struct {
        uint16_t       tx_number;  /* of the last grant sent                 */
        uint16_t       rx_number;  /* of the last grant taken; from 1        */
        int            due;        /* on iface->rx.grants_due, for a grant or for the
                                      recall: UCT_DAQIRI_GRANT_* */
        ucs_list_link_t link;
    } grant;                       /* daqiri_rx.h                            */
    struct {
        dq_recall_t    window;     /* of our window, credits that the peer has */
        uint32_t       asked;      /* credits that the peer wants back       */
        int            is_asked;
        uint32_t       rx_seq;     /* rx_seq when buffers were last missing  */
    } recall;                      /* daqiri_rx.h                            */
    dq_life_state_t    state;      /* uct_daqiri_conn_step() alone writes it */
    struct {
        ucs_queue_head_t queue;    /* requests of all its endpoints, FIFO    */
        int            is_on;      /* on iface->tx.pending                   */
        ucs_list_link_t link;
    } pending;                     /* daqiri_pending.h                       */
    struct {
        dq_idle_state_t state;
        int            has_place;  /* it counts in iface->idle.used          */
        int            is_waiting; /* for a place: on iface->idle.waiting    */
        int            is_leaving; /* on iface->idle.closing                 */
        int            is_stuck;   /* the same, and nobody waits for it any more */
        int            is_wanted;  /* somebody waits until its queue pair is gone */
        int            is_reopening; /* RECOVERING, and nothing was lost     */
        uint32_t       close_end;  /* id behind our CLOSE                    */
        uint32_t       seen;       /* messages and requests at the last look */
        ucs_time_t     asked_at;   /* it has none, and wants one since then; or 0 */
        ucs_time_t     since;      /* it has its queue pair                  */
        ucs_time_t     used_at;    /* the look that found it used, or since  */
        ucs_time_t     act_at;     /* closing: patience ends, or a probe is due */
        ucs_list_link_t link;      /* on iface->idle.waiting, or .closing    */
    } idle;                        /* daqiri_idle.h                          */
    int                is_stub;    /* leads to no peer; daqiri_p2p.c         */
    ucs_list_link_t    iface_link; /* on iface->conns, from its first QP on  */
    ucs_list_link_t    drain_link; /* on iface->draining, or empty           */
    ucs_time_t         probe_at;   /* time of the next probe; see
                                      uct_daqiri_tx_probe_peer() */
    ucs_list_link_t    eps;
    struct {
        dq_facts_t     death;      /* why it failed, once the gate is DEAD   */
        int            is_awaited; /* a user waits for a request that failed, or asks
                                      whether the peer lives */
        int            is_used_after; /* a user used the conn after that     */
    } end;
    /* The last run of requests of our own: grants, probes, markers. No user waits for
     * them. */
    struct {
        uint32_t       from, to;   /* ids; `to` is behind the last one       */
    } internal;
    /* It has posted a message whose memory is the user's again. It cannot be replayed. */
    int                is_replay_barred;
    struct {
        dq_retry_t      state;
        /* On iface->tx.retry: progress posts the requests from send_end on again. Those
         * before `fresh` were made for a lost QP. The peer has those before `ahead`. */
        int             is_on;
        uint32_t        ahead;     /* ids, as is fresh                       */
        uint32_t        fresh;
        ucs_list_link_t link;
    } retry;                       /* daqiri_retry.h                         */
    struct {
        dq_recovery_t row;
        uint32_t   peer_done;      /* requests that the peer has finished, by its last
                                      REQ or REP */
        dq_facts_t facts;          /* why the QP was lost                    */
        /* With no endpoint: queue pairs lost, which is logged with the recovery, and
         * requests that failed. Both are counted then, unless the peer has left. */
        unsigned   untold, untold_errors;
    } lost;
    int                is_listed;  /* on iface->conns, and known to stats    */
    int                has_hw;     /* it has been up, so peer.hw may be read; progress */
    struct {
        dq_watchdog_t  state;
        dq_liveness_t  liveness;
        dq_admit_t     refusal;    /* the last one since the last check, or OK */
        uint32_t       posted, retired; /* ids at the last check, and        */
        uint64_t       all_posted, all_retired; /* how many there were in total */
        uint32_t       losses;
        uint32_t       probes;     /* own requests that no user waits for    */
        uint64_t       stalls;
        int            place;      /* index + 1 among the peers of stats, or 0 */
    } watchdog;                       /* daqiri_watchdog.c, daqiri_stats.c      */
    struct {
        /* Requests held until the conn is up, or NULL. Progress sets it under the
         * lock. */
        uct_daqiri_preconnect_t *queue;
        pthread_mutex_t lock;      /* guards the queue, and qp and is_posted */
        struct ibv_qp  *qp;        /* the QP that they were posted to        */
        int            is_posted;  /* they are posted, none is held          */
        int            is_known;   /* progress knows of that; progress       */
    } preconnect;                  /* daqiri_preconnect.h                    */

    uct_daqiri_peer_t  peer;       /* what both threads know                 */
};

/* The endpoint (ep/), as far as its conn knows it. */
struct uct_daqiri_ep {
    uct_base_ep_t     super;
    uct_daqiri_conn_t *conn;
    ucs_list_link_t   conn_link;
    int               is_reported; /* UCP has been told that its conn failed */
};

/* uct_daqiri_iface_conn() that remembers the conn in *last, because completions come in
 * runs. Only the current QP of a conn is cached: the device may reuse the number of any
 * other. Nor is one that is not up: the receive line looks at each of its messages. NULL
 * if the QP is unknown. Progress. */
static inline uct_daqiri_conn_t *
uct_daqiri_iface_cache_conn(uct_daqiri_iface_t *iface, uct_daqiri_last_t *last,
                            uint32_t qpn)
{
    uct_daqiri_conn_t *conn = uct_daqiri_iface_conn(iface, qpn);

    if ((conn != NULL) && (uct_daqiri_qp_num(&conn->qp) == qpn) &&
        (conn->qp.state != DQ_QP_CONNECTING)) {
        *last = (uct_daqiri_last_t){.conn = conn, .qpn = qpn};
    }
    return conn;
}

/* The same, in fewer steps if it is the conn of the last completion. */
static inline uct_daqiri_conn_t *
uct_daqiri_iface_likely_conn(uct_daqiri_iface_t *iface,
                             uct_daqiri_last_t *last, uint32_t qpn)
{
    return ucs_likely(qpn == last->qpn)
                   ? last->conn
                   : uct_daqiri_iface_cache_conn(iface, last, qpn);
}

/* Is its queue pair gone after an idle close, and has nobody asked for another? */
static inline int uct_daqiri_conn_rests(const uct_daqiri_conn_t *conn)
{
    return (conn->state == DQ_LIFE_IDLE_CLOSED) && (conn->qp.state == DQ_QP_NONE) &&
           !conn->idle.has_place && !conn->idle.is_waiting;
}

/* Is everything over that users have posted? In an idle close that comes before our
 * CLOSE. Behind the CLOSE are only grants and probes. */
static inline int uct_daqiri_conn_is_flushed(const uct_daqiri_conn_t *conn)
{
    switch (conn->state) {
    case DQ_LIFE_CLOSING:
        return (int32_t)(conn->sq.retired + 1 - conn->idle.close_end) >= 0;
    case DQ_LIFE_IDLE_CLOSED:
        return 1;
    default:
        return dq_sq_in_use(&conn->sq) == 0;
    }
}

/* State, queue pair and lists fit together, and both halves belong to each other. */
static inline void uct_daqiri_conn_check(const uct_daqiri_conn_t *conn)
{
    uct_daqiri_assert((conn->peer.conn == conn) && (conn->peer.iface == conn->iface));
    uct_daqiri_assert(conn->sq.gate == dq_life_gate(conn->state));
    uct_daqiri_assert(conn->ops.count <= conn->sq.mask + 1);
    uct_daqiri_assert((conn->state != DQ_LIFE_UP) || (conn->qp.state == DQ_QP_READY));
    uct_daqiri_assert(!dq_life_is_over(conn->state) || !dq_qp_is_alive(conn->qp.state));
    uct_daqiri_assert((conn->state < DQ_LIFE_CLOSED) || !conn->grant.due);
    uct_daqiri_assert(!conn->retry.is_on || conn->qp.has_send_end);
    uct_daqiri_assert(!uct_daqiri_conn_rests(conn) || (dq_sq_in_use(&conn->sq) == 0));
    uct_daqiri_assert(ucs_queue_is_empty((ucs_queue_head_t*)&conn->pending.queue) ||
                      conn->pending.is_on);
    uct_daqiri_qp_check(&conn->qp);
}

/* Call before the QP is destroyed: no cache leads to it any more. Progress. */
static inline void uct_daqiri_conn_detach_qp(uct_daqiri_conn_t *conn)
{
    uct_daqiri_assert_progress(conn->iface);
    conn->qp.verbs = NULL;
    /* QP 0 is never ours (IBA 3.5.3) */
    conn->iface->rx.last = (uct_daqiri_last_t){.qpn = 0};
    conn->iface->tx.last = (uct_daqiri_last_t){.qpn = 0};
}

/* Has the async thread destroy a QP that is in ERR. UCT_DAQIRI_EVT_CLOSED tells when. */
void uct_daqiri_conn_destroy_qp(uct_daqiri_conn_t *conn);

/* The peer of a new conn without a QP, for the table of peers, which owns it. NULL if
 * memory is short. Any thread. */
uct_daqiri_peer_t *uct_daqiri_conn_create(uct_daqiri_iface_t *iface,
                                          const dq_port_addr_t *port,
                                          const dq_iface_addr_t *addr);
/* Frees the conn. No QP, completion or mail may lead to it. */
void uct_daqiri_conn_free(uct_daqiri_conn_t *conn);
/* The peer of the conn, for those who know a conn only by its pointer. Any thread. */
uct_daqiri_peer_t *uct_daqiri_conn_peer(uct_daqiri_conn_t *conn);
/* Finds or makes the conn for an endpoint to this address, which UCP vouches for. Fails a
 * conn that a REQ from elsewhere has made in the name of that peer. UCS_ERR_UNREACHABLE
 * if the port cannot reach it. */
ucs_status_t uct_daqiri_conn_get(uct_daqiri_iface_t *iface,
                                 const dq_port_addr_t *port,
                                 const dq_iface_addr_t *addr,
                                 uct_daqiri_conn_t **conn_p);
/* Handles all events that the async thread has posted. May free conns. */
void uct_daqiri_conn_absorb(uct_daqiri_iface_t *iface);
/* The only writer of conn->state. Sets the gate, too; only the ledger opens it. */
void uct_daqiri_conn_step(uct_daqiri_conn_t *conn, dq_life_event_t event);
/* Whether the peer closed the conn in order. */
static inline int uct_daqiri_conn_peer_left(const uct_daqiri_conn_t *conn)
{
    return dq_life_is_over(conn->state) &&
           (conn->end.death.cause == DQ_CAUSE_PEER_GONE);
}

/* Closes the gate for ever and starts to drain. Later calls do nothing: the first cause
 * counts. Copies @a death. */
void uct_daqiri_conn_fail(uct_daqiri_conn_t *conn, const dq_facts_t *death);
/* Fails all conns if a device event has said that the interface is broken. */
void uct_daqiri_conn_fail_if_broken(uct_daqiri_iface_t *iface);
/* Puts the conn on iface->draining, unless it is there. */
void uct_daqiri_conn_start_drain(uct_daqiri_conn_t *conn);
/* Takes the QP that the async thread has made. For @a is_used see
 * uct_daqiri_qp_begin(). */
void uct_daqiri_conn_begin_qp(uct_daqiri_conn_t *conn, int is_used);
/* Moves a failed QP to ERR, so that the device flushes its requests. Does nothing in
 * other states of the QP. */
void uct_daqiri_conn_to_err(uct_daqiri_conn_t *conn);
/* Whether the NIC will still report requests of the ledger. */
int uct_daqiri_conn_is_flushing(const uct_daqiri_conn_t *conn);
/* A user wanted to use a failed conn. The conn drains again, and tells its endpoints. */
void uct_daqiri_conn_use_after_failure(uct_daqiri_conn_t *conn);
/* One step for each conn that drains. @a received and @a completed are the completions
 * that this progress call took from the receive CQ and, before this, from the send CQ.
 * Returns how many conns have finished. May release conns. */
unsigned uct_daqiri_conn_drain(uct_daqiri_iface_t *iface, unsigned received,
                               unsigned completed);
/* Releases a closed conn that has no endpoint and no pending requests. Else does
 * nothing. */
void uct_daqiri_conn_put(uct_daqiri_conn_t *conn);
/* UCS_OK, or the status for requests of a conn that has failed. */
ucs_status_t uct_daqiri_conn_status(const uct_daqiri_conn_t *conn);

#endif
