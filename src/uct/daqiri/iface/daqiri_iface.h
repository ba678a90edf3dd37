/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface: the state that all rooms share.
 *
 * Threads: progress, unless a field names another.
 */
#ifndef UCT_DAQIRI_IFACE_H
#define UCT_DAQIRI_IFACE_H

#include "base/daqiri_config.h"
#include "base/daqiri_cq.h"
#include "base/daqiri_hooks.h"
#include "base/daqiri_hw.h"
#include "base/daqiri_log.h"
#include "base/daqiri_mail.h"
#include "base/daqiri_md.h"
#include "base/daqiri_pool.h"
#include "base/daqiri_port.h"
#include "cm/daqiri_ud.h"
#include "cm/daqiri_wait.h"
#include "dq/dq_liveness.h"
#include "dq/dq_rx.h"
#include "dq/dq_sq.h"
#include "dq/dq_watchdog.h"
#include "iface/daqiri_stats.h"

#include <ucs/datastruct/khash.h>

/* uuid of the peer's interface -> peer */
KHASH_MAP_INIT_INT64(uct_daqiri_peers, uct_daqiri_peer_t*)

/* The conn of the last completion. It is likely the conn of the next one. */
typedef struct {
    uct_daqiri_conn_t *conn;
    uint32_t          qpn;
} uct_daqiri_last_t;

/* The RECV of a buffer, made with it. Posting only links it. */
typedef struct {
    struct ibv_recv_wr wr;
    struct ibv_sge     sge[UCT_DAQIRI_RECV_PIECES];
} uct_daqiri_recv_t;

/* The argument of the handler for an active message id that has none. */
typedef struct {
    uct_daqiri_iface_t *iface;
    uint8_t            id;
} uct_daqiri_am_id_t;

/* Work that most progress calls do not have, each kind a bit of iface->work. A bit may be
 * set without need. */
enum {
    UCT_DAQIRI_WORK_EVENTS = 1 << 0, /* the async side has posted: mail.lock is worth
                                        taking */
    UCT_DAQIRI_WORK_LISTS  = 1 << 1  /* RECVs were refused, or grants_due, draining,
                                        retry or pending has conns */
};

struct uct_daqiri_iface {
    uct_base_iface_t super;
    /* From here to rx.pool: what an idle progress call and a short send touch. */
    uint64_t         progress_epoch;   /* count of progress calls, from 1; atomic:
                                          progress writes */
    uint32_t         work;             /* UCT_DAQIRI_WORK_*; atomic          */
    uint32_t         poll_batch;       /* most completions of a poll         */
    uint32_t         max_token_payload; /* bytes of a message with a token   */
    uct_daqiri_counters_t *count;      /* in the file of stats               */

    struct {
        struct ibv_cq     *cq;
        uct_daqiri_batch_t *batch;     /* NULL: a doorbell for each request  */
        uct_daqiri_prefetched_t prefetched;
        uct_daqiri_hand_t hand;        /* completions that are being handled */
        dq_cq_t           ledger;
        uint32_t          cq_most;     /* entries that cq may grow to        */
        uct_daqiri_pool_t pool;
        ucs_list_link_t   pending;     /* conns with pending requests        */
        ucs_list_link_t   retry;       /* conns with refused requests        */
        uct_daqiri_last_t last;
        int               wake;        /* something became free              */
        unsigned          idle_dispatches; /* dispatches that had nothing to try */
        uct_daqiri_conn_t *dispatching; /* conn whose pending requests are being tried */
    } tx;

    struct {
        struct ibv_cq     *cq;
        uct_daqiri_prefetched_t prefetched;
        uct_daqiri_last_t last;
        dq_rx_t           ledger;
        uct_daqiri_pool_t pool;
        struct ibv_srq    *srq;
        uct_daqiri_recv_t *recvs;      /* by index into the pool             */
        uct_recv_desc_t   release;     /* how UCP gives a held buffer back   */
        ucs_list_link_t   grants_due;  /* conns with a grant, or a recall, due */
        int               has_new_peer; /* since room was last looked at    */
        ucs_time_t        recalled_at; /* the last call for room             */
        uint32_t          share;       /* of buffers, as of then: daqiri_rx.c */
        uint32_t          spare;       /* buffers free for a window; atomic  */
        int               is_few_logged; /* the warning about too few buffers is logged */
        int               is_refused;  /* refused RECVs must be posted again */
        int               is_refusal_logged;
    } rx;

    struct {
        struct ibv_comp_channel *channel; /* of both CQs                     */
        int                     epoll_fd; /* -1 until UCP asks for it        */
        int                     wake_fd;  /* written by the async side       */
        uint32_t                is_armed; /* whether it has ever been armed; atomic */
    } event;

    uct_daqiri_gauges_t   *gauge;      /* in the file of stats               */
    uct_daqiri_stats_t    stats;
    uct_daqiri_hw_t       *hw;         /* of the time when it was opened     */
    int                   broken;      /* dq_cause_t of a fatal event; atomic; async
                                          writes */
    uct_daqiri_am_id_t    am_ids[UCT_AM_ID_MAX]; /* arguments of handlers    */
    int                   is_seg_logged; /* the peer with other segments is logged */
    int                   is_version_logged; /* the peer with another wire version is
                                                logged */
    ucs_list_link_t       md_link;
#if DQ_DEBUG
    int                   is_open;     /* both sides run; atomic             */
#endif
    struct {
        dq_watchdog_bounds_t bounds;   /* ucs_time_t, as all times here      */
        dq_liveness_bounds_t liveness;
        ucs_time_t        period, last;
        /* For how long the port has been back. At first: give_up. */
        ucs_time_t        back;
        uint32_t          is_back;     /* the port came back since the last check;
                                          atomic */
        int               timer_fd;
        uint32_t          is_due;      /* mail.lock to set; atomic           */
        uint32_t          is_needed;   /* counts sleepers, too; atomic       */
    } watchdog;
    ucs_list_link_t       conns;       /* conns that have had a QP           */
    ucs_list_link_t       draining;    /* conns that drain, or are about to  */
    struct {
        uint32_t          most;        /* queue pairs: the budget, and       */
        uint32_t          max;         /* what of it the device can give now */
        uint32_t          used;        /* conns that have one, or get one    */
        uint32_t          leaving;     /* of those, conns that close, and    */
        uint32_t          stuck;       /* those of them whose peer does not answer */
        uint32_t          waiters;
        uint32_t          owed;        /* 1: a peer has asked and got none,  */
        ucs_time_t        owed_until;  /* and asks again before this         */
        ucs_list_link_t   waiting;     /* conns that wait for a queue pair   */
        ucs_list_link_t   closing;     /* conns that close                   */
        int               is_short;    /* more conns should close            */
        ucs_time_t        look_at;     /* no look before                     */
        ucs_time_t        ask_at;      /* the device is not asked for more before */
        ucs_time_t        none_since;  /* nobody here has one to give; or 0  */
        int               is_told;     /* the log says that the device has no more */
        ucs_time_t        timeout;     /* 0: never                           */
    } idle;                            /* daqiri_idle.h; progress            */

    struct {
        pthread_mutex_t   lock;
        ucs_list_link_t   commands, events; /* conns that have some          */
        int               event_fd;    /* wakes the async thread             */
        int               is_refused;  /* an unknown peer got no queue pair; lock to
                                          set; atomic */
    } mail;                            /* daqiri_mail.h                      */
    khash_t(uct_daqiri_peers) peers;   /* mail.lock                          */
    const uct_daqiri_hooks_t *hooks;   /* daqiri_hooks.h                     */

    struct {
        int               timer_fd;
        ucs_list_link_t   timed;       /* async                              */
        int               is_ticking;  /* async                              */
        ucs_time_t        ticked_at;   /* time of the last tick; async       */
        uint32_t          epoch;       /* async                              */
        uint32_t          unproven;    /* conns with is_unproven; async      */
        ucs_time_t        unknown_peers_at; /* unknown peers get no turn before; async */
        uint32_t          silent;      /* peers that may not know that we close;
                                          progress, at the end */
        uct_daqiri_wait_t wait;        /* async                              */
        uct_daqiri_ud_t   ud;
        uct_daqiri_hw_t   *hw;         /* the last hw snapshot; async        */
    } cm;

    /* Limits of log lines that unknown peers can cause, one for each cause. */
    struct {
        uct_daqiri_log_limit_t carrier, ah, qp, connect, timers, destroy, tick,
                           version, draw; /* async                           */
        uct_daqiri_log_limit_t gap, lost, back, stall, handler; /* progress  */
    } log_limit;

    struct {
        unsigned        sq_depth, signal_every, max_sge;
        unsigned        rx_window, rx_window_start;
        uint32_t        max_inline;    /* bytes on the wire                  */
        uint32_t        max_inline_am; /* the same for short active messages */
        size_t          seg_size;      /* bytes on the wire                  */
        size_t          rx_head;       /* bytes of a RECV's first piece      */
        size_t          max_short;     /* bytes of UCT: header and payload   */
        size_t          max_hdr;       /* bytes of the header of a zcopy     */
        size_t          fetch_offset;  /* in a send buffer (daqiri_ep.h)     */
        size_t          headroom;      /* of UCP, in front of the data       */
        uint8_t         port_num, ack_timeout, retry_count, rnr_timer;
        uint8_t         traffic_class, service_level;
        uint8_t         gid_index;     /* index of gid now; atomic           */
        uint8_t         rd_atomic;     /* READs in flight of one QP          */
        ucs_time_t      conn_timeout, conn_retry, recovery_timeout;
        double          latency;       /* seconds, one way                   */
        double          rdma_overhead; /* CPU seconds of a READ or WRITE beyond its
                                          post */
        int             recovery;
        struct ibv_port_attr port;
        enum ibv_mtu    mtu;
        dq_gid_row_t    gid;           /* as it was when it was chosen       */
        dq_port_addr_t  port_addr;
        dq_iface_addr_t addr;
        uint64_t        ticket;        /* proof of address: sent in an AGAIN only */
        char            host[DQ_WIRE_HOST_LEN];
        char            port_name[IBV_SYSFS_NAME_MAX + 8];
        char            gid_text[DQ_GID_TEXT_MAX];
        uint32_t        pid;
    } config;

    /* The large arrays, behind all that is used often. */
    struct ibv_wc      prefetched[2][UCT_DAQIRI_PREFETCH_MAX];
    uct_daqiri_conn_t **qpns[UCT_DAQIRI_QPN_ROOT]; /* QPN -> conn, 2 levels  */
};

static inline uct_daqiri_md_t *uct_daqiri_iface_md(uct_daqiri_iface_t *iface)
{
    return ucs_derived_of(iface->super.md, uct_daqiri_md_t);
}

/* Asserts that the results of uct_daqiri_port_init() fit together. */
static inline void uct_daqiri_port_check(const uct_daqiri_iface_t *iface)
{
    uct_daqiri_assert(iface->config.port_num > 0);
    uct_daqiri_assert(iface->config.gid_index < iface->config.port.gid_tbl_len);
    uct_daqiri_assert((iface->config.mtu >= IBV_MTU_256) &&
                      (iface->config.mtu <= IBV_MTU_4096));
    uct_daqiri_assert(memcmp(iface->config.port_addr.gid, iface->config.gid.gid,
                             sizeof(iface->config.gid.gid)) == 0);
}

static inline uint8_t
uct_daqiri_iface_gid_index(const uct_daqiri_iface_t *iface)
{
    return __atomic_load_n(&iface->config.gid_index, __ATOMIC_RELAXED);
}

/* Acquire: what the other thread did before it set the bit is visible. */
static inline uint32_t uct_daqiri_iface_has_work(const uct_daqiri_iface_t *iface)
{
    return __atomic_load_n(&iface->work, __ATOMIC_ACQUIRE);
}

/* SEQ_CST: see uct_daqiri_event_is_busy(). */
static inline void uct_daqiri_iface_add_work(uct_daqiri_iface_t *iface, uint32_t work)
{
    __atomic_or_fetch(&iface->work, work, __ATOMIC_SEQ_CST);
}

static inline void uct_daqiri_iface_clear_work(uct_daqiri_iface_t *iface,
                                               uint32_t work)
{
    __atomic_and_fetch(&iface->work, ~work, __ATOMIC_RELEASE);
}

static inline uct_daqiri_conn_t *
uct_daqiri_iface_conn(uct_daqiri_iface_t *iface, uint32_t qpn)
{
    uct_daqiri_conn_t **leaf;

    /* Acquire: the async thread enters a QP before any completion of it can come. */
    leaf = __atomic_load_n(&iface->qpns[qpn >> UCT_DAQIRI_QPN_LOW],
                           __ATOMIC_ACQUIRE);
    return (leaf == NULL)
                   ? NULL
                   : __atomic_load_n(&leaf[qpn & (UCT_DAQIRI_QPN_LEAF - 1)],
                                     __ATOMIC_ACQUIRE);
}

static inline int uct_daqiri_mail_has_events(const uct_daqiri_iface_t *iface)
{
    return (uct_daqiri_iface_has_work(iface) & UCT_DAQIRI_WORK_EVENTS) != 0;
}

static inline int uct_daqiri_mail_is_due(const uct_daqiri_iface_t *iface)
{
    return __atomic_load_n(&iface->watchdog.is_due, __ATOMIC_RELAXED) != 0;
}

UCS_CLASS_DECLARE_NEW_FUNC(uct_daqiri_iface_t, uct_iface_t, uct_md_h,
                           uct_worker_h, const uct_iface_params_t*,
                           const uct_iface_config_t*);
UCS_CLASS_DECLARE_DELETE_FUNC(uct_daqiri_iface_t, uct_iface_t);

/* UCT's progress: returns how many messages, completions and other steps it has
 * handled. */
unsigned uct_daqiri_iface_progress(uct_iface_h tl_iface);
/* UCT's flush. UCS_OK if no request, grant or pending request is left, else
 * UCS_INPROGRESS. UCS_ERR_UNSUPPORTED with a completion. */
ucs_status_t uct_daqiri_iface_flush(uct_iface_h tl_iface, unsigned flags,
                                    uct_completion_t *comp);

#endif
