/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection: what UCP believes in. A queue pair is what the NIC has.
 *
 * Threads: progress, but for what the fields say.
 */
#ifndef UCT_DAQIRI_CONN_H
#define UCT_DAQIRI_CONN_H

#include "cm/daqiri_cm.h"
#include "conn/daqiri_op.h"
#include "conn/daqiri_qp.h"
#include "dq/dq_life.h"
#include "dq/dq_liveness.h"
#include "dq/dq_recovery.h"
#include "dq/dq_replay.h"
#include "dq/dq_retry.h"
#include "dq/dq_rx.h"
#include "dq/dq_triage.h"
#include "dq/dq_watchdog.h"
#include "iface/daqiri_iface.h"

/* How far a grant that is due has come; daqiri_rx.c. */
enum {
    UCT_DAQIRI_GRANT_NEW = 1, /* since this progress call                    */
    UCT_DAQIRI_GRANT_NEXT,    /* the next progress call sends it             */
    UCT_DAQIRI_GRANT_STUCK    /* tried: it waits for room, or for the peer   */
};

struct uct_daqiri_conn {
    /* the data path, in the order it touches them; progress */
    dq_sq_t            sq;
    uct_daqiri_op_t    *ops;       /* [sq.mask + 1], by ledger slot          */
    uint32_t           op_count;   /* of them, not empty                     */
    uct_daqiri_iface_t *iface;
    const uint64_t     *direct_epoch; /* a request goes out by itself if the conn
                                    * has posted none since this turn: that of
                                    * the batch, or 0 (never: before it is up,
                                    * behind send_end), or UINT64_MAX        */
    dq_replay_log_t    replay;     /* daqiri_replay.h; no slots: no recovery */
    uint32_t           next_flags; /* IBV_SEND_FENCE, or 0                   */
    uint64_t           last_post_epoch; /* in which it has posted last, or counts
                                    * as if it had: uct_daqiri_batch_note()  */
    int                is_streaming; /* the same                             */
    uint32_t           tx_seq;     /* of the next active message             */
    uint32_t           rx_seq;     /* active messages handed up              */
    uint16_t           tx_grant;   /* number of the last grant sent, ...     */
    uint16_t           rx_grant;   /* ... and taken; grants count from 1     */
    dq_rx_window_t     window;
    uct_daqiri_qp_t    qp;
    dq_life_state_t    state;      /* uct_daqiri_conn_step() alone writes it */
    ucs_queue_head_t   pending;    /* requests of all its endpoints, FIFO    */
    int                is_pending; /* on iface->tx.pending                   */
    int                grant_due;  /* on iface->rx.grants_due: UCT_DAQIRI_GRANT_* */
    int                is_self;
    int                is_stub;    /* leads nowhere; daqiri_p2p.c            */
    ucs_list_link_t    iface_link; /* on iface->conns, from its first QP on  */
    ucs_list_link_t    drain_link; /* on iface->draining, or empty           */
    ucs_list_link_t    pending_link, grant_link;
    ucs_time_t         probe_at;   /* not before; see uct_daqiri_tx_probe_peer() */
    ucs_list_link_t    eps;
    dq_facts_t         death;      /* why it died, once the gate is DEAD     */
    int                is_awaited; /* somebody was waiting for what failed   */
    struct {                       /* the last requests in a row whose loss
                                    * is no news to any user: grants, probes */
        uint32_t       from, to;   /* ids, the second one not included       */
    } internal;
    int                is_used_after_failure;
    int                is_replay_barred; /* what it has posted is not all ours any
                                      more, and cannot be posted again       */
    struct {
        dq_retry_t      state;
        int             is_on;     /* on iface->tx.retry: from send_end on,  */
        uint32_t        ahead;     /* what is refused is offered again       */
        uint32_t        fresh;
        ucs_list_link_t link;
    } retry;                       /* daqiri_retry.h                         */
    struct uct_daqiri_conn *batch_failed; /* the next one whose batch was
                                      refused; the batch's lock              */
    int                batch_error; /* why, or 0; the batch's lock           */
    uint32_t           batch_send_end; /* from which id on; the batch's lock */
    struct {
        dq_recovery_t row;
        uint32_t   peer_done;      /* as it told with the QP that works      */
        dq_facts_t facts;          /* why                                    */
    } lost;
    struct {
        uint32_t       qpn;
        int            type;       /* enum ibv_event_type                    */
    } async;                       /* atomic; async writes, progress reads   */
    int                is_listed;  /* on iface->conns; stats know it         */
    int                has_hw;     /* it has been up; progress               */
    struct {
        dq_watchdog_t  state;
        dq_liveness_t  liveness;
        dq_admit_t     refusal;    /* the last since it was looked at, or OK */
        uint32_t       posted, retired; /* ids at the last look, and         */
        uint64_t       all_posted, all_retired; /* how many there were       */
        uint32_t       losses;
        uint32_t       probes;     /* requests that nobody waits for         */
        uint64_t       stalls;
        int            place;      /* among the peers of stats, + 1; or 0    */
    } watchdog;                       /* daqiri_watchdog.c, daqiri_stats.c      */
    uct_daqiri_preconnect_t *preconnect; /* held until EVT_UP; NULL: nothing is   */
    pthread_mutex_t    preconnect_lock; /* of it, and for progress to set it     */
    struct ibv_qp      *preconnect_qp; /* where it was posted; the lock          */
    int                is_preconnect_posted; /* nothing is held any more; the lock */
    int                is_preconnect_known; /* progress knows; progress      */

    uct_daqiri_news_t  news;       /* of the async side, as taken last       */

    /* who the peer is; set once, before the other thread sees the conn */
    dq_port_addr_t     peer_port;
    char               peer_gid_text[DQ_GID_TEXT_MAX];
    dq_iface_addr_t    peer_iface;
    int                is_addressed; /* it is what UCP's address says; cm lock */

    /* what the next REQ or REP says; progress writes it before CMD_DRAINED */
    uct_daqiri_resume_t resume;

    /* what dq_liveness looks at; atomic: async writes, progress reads */
    struct {
        uint32_t heard;            /* frames of the peer's                   */
        uint32_t probes;           /* that have gone out                    */
    } liveness;

    uct_daqiri_hs_t    *hs;        /* the handshake; async                     */

    uct_daqiri_hw_t    *hw;        /* when it was up: async; has_hw: progress */

    /* the mailboxes and the table; cm lock */
    ucs_list_link_t    cmd_link, evt_link;
    uint32_t           commands, events;
    uct_daqiri_news_t  posted_news; /* with the last event                    */
};

/* uct_daqiri_iface_conn() in fewer steps: completions come in runs. Only the current
 * QP of a conn is cached: the device may reuse the number of any other. Progress. */
static inline uct_daqiri_conn_t *
uct_daqiri_iface_likely_conn(uct_daqiri_iface_t *iface,
                             uct_daqiri_last_t *last, uint32_t qpn)
{
    uct_daqiri_conn_t *conn;

    if (ucs_likely(qpn == last->qpn)) {
        return last->conn;
    }

    conn = uct_daqiri_iface_conn(iface, qpn);
    if ((conn != NULL) && (uct_daqiri_qp_num(&conn->qp) == qpn)) {
        last->conn = conn;
        last->qpn  = qpn;
    }
    return conn;
}

/* Its QP is about to be destroyed. Progress. */
static inline void uct_daqiri_conn_detach_qp(uct_daqiri_conn_t *conn)
{
    conn->qp.verbs = NULL;
    /* QP 0 is never ours (IBA 3.5.3) */
    conn->iface->rx.last = (uct_daqiri_last_t){.qpn = 0};
    conn->iface->tx.last = (uct_daqiri_last_t){.qpn = 0};
}

uct_daqiri_conn_t *uct_daqiri_conn_create(uct_daqiri_iface_t *iface,
                                          const dq_port_addr_t *port,
                                          const dq_iface_addr_t *addr);
void uct_daqiri_conn_free(uct_daqiri_conn_t *conn);
/* Is its peer there, and none that only says so? Any thread. */
int uct_daqiri_conn_is_at(const uct_daqiri_conn_t *conn,
                          const dq_port_addr_t *port,
                          const dq_iface_addr_t *addr);
/* The conn for an endpoint, to the peer at this address of UCP's. What a REQ from
 * elsewhere has asked for in that peer's name ends. */
ucs_status_t uct_daqiri_conn_get(uct_daqiri_iface_t *iface,
                                 const dq_port_addr_t *port,
                                 const dq_iface_addr_t *addr,
                                 uct_daqiri_conn_t **conn_p);
/* Performs what the async thread told. */
void uct_daqiri_conn_absorb(uct_daqiri_iface_t *iface);
/* The only writer of its state, and of the gate but where the ledger opens it. */
void uct_daqiri_conn_step(uct_daqiri_conn_t *conn, dq_life_event_t event);
/* Did its peer close in order? */
static inline int uct_daqiri_conn_peer_left(const uct_daqiri_conn_t *conn)
{
    return dq_life_is_over(conn->state) &&
           (conn->death.cause == DQ_CAUSE_PEER_GONE);
}

/* Closes the gate for ever and starts to drain. Only the first call counts. */
void uct_daqiri_conn_fail(uct_daqiri_conn_t *conn, const dq_facts_t *death);
/* Puts it among those that drain. */
void uct_daqiri_conn_start_drain(uct_daqiri_conn_t *conn);
/* Another QP, as the async thread has told. @a is_used: as uct_daqiri_qp_begin(). */
void uct_daqiri_conn_begin_qp(uct_daqiri_conn_t *conn, int is_used);
/* Moves a QP that has failed to ERR, which flushes the ledger. */
void uct_daqiri_conn_to_err(uct_daqiri_conn_t *conn);
/* Somebody wanted to use a dead conn: its endpoints will be told. */
void uct_daqiri_conn_use_after_failure(uct_daqiri_conn_t *conn);
/* Moves dying and lost conns on. @a received and @a completed: what this progress
 * call has found in the receive CQ and, polling it before this, in the send CQ. */
unsigned uct_daqiri_conn_drain(uct_daqiri_iface_t *iface, unsigned received,
                               unsigned completed);
/* An endpoint has left: a conn that is over and unused is let go. */
void uct_daqiri_conn_put(uct_daqiri_conn_t *conn);
ucs_status_t uct_daqiri_conn_status(const uct_daqiri_conn_t *conn);

#endif
