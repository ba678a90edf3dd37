/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plugin's types: memory domain, interface, connection, endpoint.
 *
 * Two threads work on an interface, and every field belongs to one of them:
 *
 *   progress  whoever drives the UCT worker (one thread at a time, by UCT's
 *             rules): ledgers, credits, both completion queues, pending
 *   async     UCX's async thread: the handshake, QP creation and transitions
 *
 * They share the connection table and two mailboxes (daqiri_cm.c), under one
 * lock that neither holds across a verb or a callback, and that the data path
 * never takes.
 *
 * A connection (conn) is what UCP believes in; a QP is what the NIC has. All
 * endpoints to one peer interface, and the peer's endpoints to this one, share
 * one conn.
 */
#ifndef UCT_DAQIRI_H
#define UCT_DAQIRI_H

#include "compat/ucx_compat.h"
#include "dq/dq_retry.h"
#include "dq/dq_liveness.h"
#include "dq/dq_conn.h"
#include "dq/dq_gid.h"
#include "dq/dq_recovery.h"
#include "dq/dq_replay.h"
#include "dq/dq_rx.h"
#include "dq/dq_sq.h"
#include "dq/dq_stats.h"
#include "dq/dq_triage.h"
#include "dq/dq_watchdog.h"
#include "dq/dq_wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/datastruct/khash.h>
#include <unistd.h>

#define UCT_DAQIRI_NAME "daqiri"

/* What an idle program does all the time, and one in a ping-pong. The linker puts
 * these next to each other; the first begins a page, and the others, of which the
 * first leaves 3 KiB, lie within it: to leave a page costs a look-up where the
 * processor is emulated, which made of an idle progress call three (QEMU 7.2;
 * docs/bench.md). */
#define UCT_DAQIRI_POLLED_FIRST __attribute__((hot, aligned(4096)))
#define UCT_DAQIRI_POLLED       __attribute__((hot, aligned(1024)))

enum {
    UCT_DAQIRI_POLL_MAX     = 64,
    UCT_DAQIRI_HW_COUNTERS  = 64,      /* of the port, looked at; daqiri_hw.c */
    UCT_DAQIRI_HW_TEXT_MAX  = 200,
    UCT_DAQIRI_PREFETCH_MAX = 16,
    UCT_DAQIRI_SGE_MAX      = 32,
    UCT_DAQIRI_RX_DESC_LEN  = 16,      /* index and release, see daqiri_rx.c  */
    UCT_DAQIRI_HDR_MAX      = 256,     /* of a zcopy: it is copied            */
    /* 16 KiB, and 64 bytes for the headers of UCP and ours: on a device in user space
     * one message holds what UCP sends without asking first, see dq_cost.h */
    UCT_DAQIRI_SEG_SIZE    = 16384 + 64,
    UCT_DAQIRI_SEG_SIZE_EMULATED = 12288, /* see daqiri_port.c               */
    UCT_DAQIRI_FRAG_ALIGN  = 16,      /* see uct_daqiri_iface_seg_size()     */
    /* progress calls from one look at the send CQ to the next, while nothing
     * in it could be a success */
    UCT_DAQIRI_TX_POLL_EVERY = 64,
    /* UCT's short messages, header and payload, at most: a page, and what UCP
     * puts around it */
    UCT_DAQIRI_SHORT_MAX   = 4096 + 64,
    UCT_DAQIRI_QPN_BITS    = 24,      /* IBA 9.2                             */
    UCT_DAQIRI_QPN_LOW     = 12,
    UCT_DAQIRI_QPN_LEAF    = 1 << UCT_DAQIRI_QPN_LOW,
    UCT_DAQIRI_QPN_ROOT    = 1 << (UCT_DAQIRI_QPN_BITS - UCT_DAQIRI_QPN_LOW)
};

typedef struct uct_daqiri_iface uct_daqiri_iface_t;
typedef struct uct_daqiri_conn  uct_daqiri_conn_t;
typedef struct uct_daqiri_ep    uct_daqiri_ep_t;
typedef struct uct_daqiri_batch uct_daqiri_batch_t; /* daqiri_batch.h */
typedef struct uct_daqiri_replay  uct_daqiri_replay_t; /* daqiri_replay.h */
typedef struct uct_daqiri_preconnect uct_daqiri_preconnect_t; /* daqiri_preconnect.h */

/* ---- Memory domain: one RDMA device ---- */

/* Of the registration cache. */
typedef struct {
    unsigned      event_priority;
    ucs_time_t    overhead; /* or UCS_TIME_AUTO                              */
    unsigned      alignment;
    unsigned long max_regions;
    size_t        max_size, max_unreleased;
    int           purge_on_fork;
} uct_daqiri_rcache_config_t;

typedef struct {
    uct_md_config_t            super;
    int                        reg_cache; /* ucs_on_off_auto_value_t         */
    uct_daqiri_rcache_config_t rcache;
} uct_daqiri_md_config_t;

/* A memory handle. A packed key is the rkey. */
typedef struct {
    struct ibv_mr *mr;
    uint32_t      lkey, rkey;
    int           is_dmabuf; /* of another device: not in the cache          */
} uct_daqiri_mem_t;

/* To register without a cache is a system call that pins pages: what UCX takes
 * for every verbs device, seconds, and seconds for each byte. */
#define UCT_DAQIRI_REG_COST      16.0e-6
#define UCT_DAQIRI_REG_COST_BYTE 0.06e-9
/* With the cache, seconds: what UCX takes for it. */
#define UCT_DAQIRI_REG_COST_CACHED 180e-9
/* With the cache, on a device in user space, seconds. UCP weighs it against a
 * copy at 5.8 GB/s; within one host a copy is faster, and zcopy one as well.
 * This makes it change over where the two take the same time, near 4 KiB
 * (contrib/bench protocols). */
#define UCT_DAQIRI_REG_COST_SOFT 500e-9

/* UCP believes that it copies so fast, bytes/s (UCX_BCOPY_BW=auto). */
#define UCT_DAQIRI_COPY_BW 5.8e9

typedef struct {
    uct_md_t               super;
    struct ibv_context     *context;
    struct ibv_pd          *pd;
    struct ibv_device_attr attr;
    ucs_rcache_t           *rcache; /* or NULL                               */
    ucs_linear_func_t      reg_cost;
    size_t                 reg_align; /* of what the cache registers         */
    int                    has_dmabuf; /* registers memory of other devices  */
    pthread_mutex_t        ifaces_lock;
    ucs_list_link_t        ifaces;  /* that are open; the lock               */
} uct_daqiri_md_t;

/* ---- Options (daqiri_config.c) ---- */

typedef struct {
    uct_iface_config_t super;
    unsigned           sq_depth;
    unsigned           cq_len;
    unsigned           signal_every;
    unsigned           rx_buffers;
    unsigned           rx_window, rx_window_start;
    unsigned           tx_buffers;
    int                tx_batch;     /* ucs_on_off_auto_value_t              */
    double             tx_batch_timeout; /* seconds                          */
    size_t             seg_size;
    unsigned           max_inline;
    unsigned           max_sge;
    unsigned           poll_batch;
    double             rnr_timeout;  /* seconds                              */
    double             ack_timeout;  /* seconds                              */
    unsigned           retry_count;
    double             conn_timeout; /* seconds                              */
    double             conn_retry;   /* seconds                              */
    int                recovery;     /* yes or no                            */
    int                stats;        /* yes or no                            */
    double             recovery_timeout; /* seconds                          */
    double             stall_timeout, stuck_timeout, keepalive; /* seconds   */
    int                gid_index;    /* -1: choose                           */
    unsigned           traffic_class;
    unsigned           service_level;
    ucs_time_t         latency;      /* or UCS_TIME_AUTO                     */
} uct_daqiri_iface_config_t;

extern const uct_daqiri_option_t uct_daqiri_md_options[];
extern const uct_daqiri_option_t uct_daqiri_iface_options[];

/* UCS_OK, or UCS_ERR_INVALID_PARAM after saying which option, and its range. */
ucs_status_t
uct_daqiri_config_check(const uct_daqiri_iface_config_t *config);

/* ---- Counters: written by their owner, read by anybody (daqiri_stats.c) ---- */

/* 64-bit words, each with a name in daqiri_stats.c. */
typedef struct {
    uint64_t am_tx_bytes, am_short, am_bcopy, am_zcopy;
    uint64_t put_short, put_bcopy, put_zcopy, get_bcopy, get_zcopy, rma_bytes;
    uint64_t atomics;
    uint64_t preconnect;
    uint64_t am_rx, am_rx_bytes, am_unhandled;
    uint64_t conns, conns_up, conns_closed;
    uint64_t credit_frames_tx, credit_frames_rx;
    uint64_t windows_widened;
    uint64_t refused[DQ_ADMIT_LAST];
    uint64_t refused_no_buffer;
    uint64_t rx_dropped[DQ_WIRE_LAST];
    uint64_t rx_duplicates, rx_out_of_order;
    uint64_t tx_errors, tx_flushed, rx_flushed;
    uint64_t recvs_refused;    /* calls                                      */
    uint64_t stray_completions, posts_refused, posts_enomem;
    uint64_t retries_kept, retries_posted; /* daqiri_retry.h                     */
    uint64_t batches, batched, batches_late; /* under the chain's lock        */
    uint64_t qp_failures, recoveries, replayed, replay_delivered;
    uint64_t stalls, stuck, markers, probes, liveness_probes, unresponsive, events;
    uint64_t frames_tx, frames_rx, frames_dup, frames_unknown, frames_crowded,
             frames_unheard;
    uint64_t conns_forged;
    uint64_t ud_remade, ud_refused;
    uint64_t frames_dropped[DQ_WIRE_LAST];
} uct_daqiri_counters_t;

/* What is looked at now and then: the same. */
typedef struct {
    uint64_t sampled_at_ns;
    uint64_t posted, retired;  /* work requests of all QPs                   */
    uint64_t sq_in_use, cq_len;
    uint64_t credits, oldest_ns;
    uint64_t rx_total, rx_free, rx_posted, rx_taken, rx_held;
    uint64_t rx_promised, rx_overcommit, rx_overrun;
    uint64_t tx_buffers, tx_buffers_out;
    uint64_t conns_open;
    uint64_t rnr_timer_ns, ack_timeout_ns; /* of the last QP; async          */
} uct_daqiri_gauges_t;

typedef struct {
    uct_daqiri_counters_t count;
    uct_daqiri_gauges_t   gauge;
} uct_daqiri_values_t;

/* The file that these are in, or memory of our own where there can be none. */
typedef struct {
    dq_stats_header_t *map;
    int               fd;      /* locked; -1: no file                        */
    char              path[DQ_STATS_FILE_MAX];
    pid_t             owner;   /* who may remove it; a child may not         */
    uint64_t          posted, retired; /* of conns that are over             */
    uint64_t          taken;   /* places for peers, a bit each               */
    ucs_list_link_t   link;    /* of all interfaces of the process           */
} uct_daqiri_stats_t;

/* ---- Registered buffers of one size, in chunks (daqiri_pool.c) ---- */

typedef struct {
    void     *buf;
    uint32_t lkey;
} uct_daqiri_buf_t;

typedef struct {
    void          *memory;
    size_t        length;
    struct ibv_mr *mr;
} uct_daqiri_chunk_t;

/* How often a line is said that strangers can cause as often as they like. */
enum {
    UCT_DAQIRI_LOG_LIMIT_SEC = 1, /* a reader keeps up with that             */
    UCT_DAQIRI_MORE_MAX      = 40
};

typedef struct {
    ucs_time_t until;
    uint32_t   suppressed; /* lines since the last                           */
} uct_daqiri_log_limit_t;

typedef struct {
    struct ibv_pd      *pd;
    const char         *name;
    size_t             stride;      /* bytes from one buffer to the next     */
    size_t             lead;        /* bytes in front of the point           */
    size_t             align;       /* of the point and offset bytes         */
    size_t             offset;
    uint32_t           limit;       /* most buffers                          */
    uint32_t           count;       /* buffers that exist                    */
    uct_daqiri_buf_t   *bufs;       /* [limit], by index                     */
    uint32_t           *free_stack; /* [limit], indices; progress            */
    uint32_t           free_count;
    uct_daqiri_chunk_t *chunks;
    unsigned           chunk_count;
    pthread_mutex_t    lock;        /* of what follows, count, chunks        */
    uct_daqiri_log_limit_t log_limit;
} uct_daqiri_pool_t;

/* ---- What a posted work request owes, by ledger slot ---- */

/* A slot that owes nothing is empty: no comp, NO_DESC. Inline sends leave
 * theirs so, and cost nothing when they are retired. */
typedef struct {
    uct_completion_t *comp; /* told when it is over, or NULL                 */
    uct_daqiri_ep_t  *ep;   /* whose comp it is                              */
    uint32_t         desc;  /* its buffer in the send pool, or NO_DESC       */
    uint32_t         is_flush; /* comp waits for what was before it alone    */
} uct_daqiri_op_t;

#define UCT_DAQIRI_NO_DESC UINT32_MAX

/* What to send, in terms of the ledger. */
typedef struct {
    dq_wr_class_t      wr_class;
    enum ibv_wr_opcode opcode;
    unsigned           flags;  /* IBV_SEND_INLINE, or 0                      */
    uint32_t           imm;    /* host order                                 */
    int                signal; /* the caller wants to know                   */
    uint64_t           remote_addr; /* one-sided only, as is the key         */
    uint32_t           rkey;
    uint64_t           operand;     /* atomics: to add, or to compare with   */
    uint64_t           swap;
    int                is_placed;   /* what its SGEs say is remembered, or never
                                       will be                               */
    uct_daqiri_replay_t *replay;    /* where, if is_placed; or NULL          */
    uct_daqiri_op_t    op;
} uct_daqiri_tx_t;

static const uct_daqiri_op_t uct_daqiri_op_none = {
    .desc = UCT_DAQIRI_NO_DESC,
};

/* ---- Connection ---- */

/* The port's counters of errors, as they were at some moment. */
typedef struct {
    int        is_known;
    ucs_time_t read_at;
    uint64_t   values[UCT_DAQIRI_HW_COUNTERS]; /* UINT64_MAX: there is none  */
} uct_daqiri_hw_t;

/* What one thread asks of the other; bits, so that asking twice is once. */
enum {
    /* progress -> async */
    UCT_DAQIRI_CMD_OPEN  = UCS_BIT(0),
    UCT_DAQIRI_CMD_FAIL  = UCS_BIT(1), /* the QP died                        */
    UCT_DAQIRI_CMD_READY = UCS_BIT(2), /* data came: as good as an RTU, if
                                          somebody here wants it             */
    UCT_DAQIRI_CMD_RELEASE  = UCS_BIT(3), /* let go of it                     */
    UCT_DAQIRI_CMD_LOSE     = UCS_BIT(4), /* the QP died, a new one may do      */
    UCT_DAQIRI_CMD_DRAINED = UCS_BIT(5), /* and is done with: conn->resume   */
    UCT_DAQIRI_CMD_PROBE = UCS_BIT(6), /* does the peer's process run?       */
    UCT_DAQIRI_CMD_CLOSE = UCS_BIT(7), /* the lost QP has nothing to say     */
    /* async -> progress */
    UCT_DAQIRI_EVT_QP       = UCS_BIT(8),  /* it has a QP, with RECVs          */
    UCT_DAQIRI_EVT_UP       = UCS_BIT(9),
    UCT_DAQIRI_EVT_DEAD     = UCS_BIT(10),
    UCT_DAQIRI_EVT_RELEASED = UCS_BIT(11),
    UCT_DAQIRI_EVT_LOST     = UCS_BIT(12), /* the peer has lost its QP         */
    UCT_DAQIRI_EVT_ASYNC    = UCS_BIT(13), /* its own has died: conn->async    */
    UCT_DAQIRI_EVT_NO_QP    = UCS_BIT(14),  /* another QP could not be had      */
    UCT_DAQIRI_EVT_CLOSED   = UCS_BIT(15) /* the lost QP is no more            */
};

/* What a peer is told of a QP that is lost; see dq_frame_t. */
typedef struct {
    uint32_t delivered, acked, done, promised;
} uct_daqiri_resume_t;

/* How a conn stands with its QP; daqiri_recover.c. */
enum {
    UCT_DAQIRI_LIVE,    /* it has one, or never had                          */
    UCT_DAQIRI_LOSING,  /* the QP is lost, and being drained                 */
    UCT_DAQIRI_CLOSING, /* it is being destroyed, until EVT_CLOSED           */
    UCT_DAQIRI_CLOSED,  /* it is no more: drained once again                 */
    UCT_DAQIRI_WAITING  /* there is none, until EVT_QP                       */
};

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
    struct ibv_qp      *qp;        /* from EVT_QP on                         */
    uct_daqiri_iface_t *iface;
    const uint64_t     *direct_epoch; /* a request goes out by itself if the conn
                                    * has posted none since this turn: that of
                                    * the chain, or 0 (never: it is early, or
                                    * behind a hole), or UINT64_MAX          */
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
    ucs_queue_head_t   pending;    /* requests of all its endpoints, FIFO    */
    int                is_pending; /* on iface->tx.pending                   */
    int                grant_due;  /* on iface->rx.grants_due: UCT_DAQIRI_GRANT_* */
    int                is_self;
    int                is_stub;    /* leads nowhere; daqiri_p2p.c            */
    int                is_draining; /* on iface->draining                    */
    ucs_list_link_t    iface_link, pending_link, grant_link, drain_link;
    ucs_time_t         drain_until;
    unsigned           drain_polls;    /* progress calls since the mark      */
    uint64_t           drain_taken;    /* completions taken in them          */
    ucs_time_t         probe_at;   /* not before; see uct_daqiri_tx_probe_peer() */
    ucs_list_link_t    eps;
    dq_facts_t         death;      /* why it died, once the gate is DEAD     */
    int                was_up;     /* the NIC may own what the ledger has    */
    int                is_err;     /* the QP is in ERR, of itself or by us   */
    int                is_quiet;   /* by us: it takes and sends nothing      */
    int                is_over;    /* and nothing of it is left              */
    int                is_awaited; /* somebody was waiting for what failed   */
    struct {                       /* the last requests in a row whose loss
                                    * is no news to any user: grants, probes */
        uint32_t       from, to;   /* ids, the second one not included       */
    } internal;
    int                is_used_after_failure;
    int                is_replay_barred; /* what it has posted is not all ours any
                                      more, and cannot be posted again       */
    int                is_flushing; /* an error has been seen on this QP     */
    int                has_send_end; /* the device has refused a request: ... */
    uint32_t           send_end;       /* ... it has none from this id on        */
    int                has_marker; /* and something speaks for the last one  */
    int                is_posting_marker; /* the last request of the QP is posted */
    struct {
        dq_retry_t      state;
        int             is_on;     /* on iface->tx.retry: from the hole on,  */
        uint32_t        ahead;     /* what is refused is offered again       */
        uint32_t        fresh;
        ucs_list_link_t link;
    } retry;                       /* daqiri_retry.h                         */
    struct uct_daqiri_conn *batch_failed; /* the next one whose chain was
                                      refused; the chain's lock              */
    int                batch_error; /* why, or 0; the chain's lock           */
    uint32_t           batch_send_end; /* from which id on; the chain's lock */
    uint32_t           flushed;    /* and up to before this id, flushes      */
    int                life;       /* UCT_DAQIRI_LIVE ...                    */
    struct {
        dq_recovery_t row;
        uint32_t   peer_done;      /* as it told with the QP that works      */
        dq_facts_t facts;          /* why                                    */
    } lost;
    struct {
        uint32_t       qpn;
        int            type;       /* enum ibv_event_type                    */
    } async;                       /* atomic; async writes, progress reads   */
    int                is_listed;  /* on iface->conns                        */
    int                has_hw;     /* it has been up; progress               */
    int                is_released; /* let go; forgotten by the table        */
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
    pthread_mutex_t    preconnect_lock; /* of *early, and for progress to set it */
    int                is_preconnect_posted; /* nothing is held any more; the lock */
    int                is_preconnect_known; /* progress knows; progress      */

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

    /* the handshake; async */
    struct {
        dq_conn_t       machine;
        struct ibv_qp   *qp;
        uint32_t        qpn;         /* in the table: the QP's, also of the
                                        one that was destroyed last; or 0    */
        struct ibv_ah   *ah;
        int             ah_error;    /* why there is none                    */
        uint8_t         ah_gid_index; /* at which the GID was                */
        int             is_unproven; /* only a REQ has asked for it          */
        int             has_no_qp;   /* there is no QP that can be connected */
        int             refused;     /* errno: no frame of it may be posted  */
        unsigned        refusals;    /* so many times, one after the other   */
        ucs_time_t      refused_at;  /* ... since then                       */
        int             is_told;     /* that we close; it may have been lost */
        int             is_heard;    /* the peer knows, or is gone itself    */
        uint32_t        psn;
        uint32_t        window;      /* most RECVs ever promised to the peer */
        uint32_t        promised;    /* of them, at first                    */
        uint32_t        rx_first;    /* their buffers: first index and count */
        uint32_t        rx_count;
        uint32_t        rx_posted;   /* of these, the first ones             */
        uint32_t        rx_reused;   /* or as many that closed conns have left */
        uct_daqiri_resume_t resume;  /* as of CMD_DRAINED: a call may go out
                                        while progress writes the next       */
        dq_frame_t      peer;        /* the last REQ or REP taken            */
        int             has_peer;
        ucs_time_t      started, next_try, interval;
        ucs_list_link_t timer_link;
        int             is_timed;
        dq_cause_t      cause;       /* of death                             */
    } hs;

    uct_daqiri_hw_t    hw;         /* when it was up: async; has_hw: progress */

    /* the mailboxes and the table; cm lock */
    ucs_list_link_t    cmd_link, evt_link;
    uint32_t           commands, events;
};

/* uuid of the peer's interface -> conn */
KHASH_MAP_INIT_INT64(uct_daqiri_conns, uct_daqiri_conn_t*)

struct uct_daqiri_ep {
    uct_base_ep_t     super;
    uct_daqiri_conn_t *conn;
    ucs_list_link_t   conn_link;
    int               is_reported; /* UCP has been told of its failure       */
};

/* ---- Interface ---- */

enum {
    UCT_DAQIRI_UD_RECVS = 256,
    UCT_DAQIRI_UD_SENDS = 32   /* bits of send_busy                          */
};

typedef struct {
    struct ibv_comp_channel *channel;
    struct ibv_cq           *cq;
    struct ibv_qp           *qp;
    struct ibv_mr           *mr;
    uint8_t                 *memory;   /* receive slots, send slots, junk    */
    uint32_t                send_busy; /* bitmap of send slots               */
    struct ibv_ah           *once[UCT_DAQIRI_UD_SENDS]; /* to destroy when a
                                          slot is free, or NULL              */
    uint16_t                idle[UCT_DAQIRI_UD_RECVS]; /* receive slots that */
    unsigned                idle_count; /* the device has not taken yet      */
    dq_cause_t              lost;      /* NONE: the QP is well               */
    int                     is_failed; /* its CQ has failed                  */
    dq_retry_t              retry;     /* when it may be remade              */
    uint32_t                passed;    /* datagrams                          */
} uct_daqiri_ud_t;

/* Completions that were taken when nobody could handle them. */
typedef struct {
    int           count;
    struct ibv_wc wc[UCT_DAQIRI_PREFETCH_MAX];
} uct_daqiri_prefetched_t;

/* Whose completion was the last: likely whose the next is, too. */
typedef struct {
    uct_daqiri_conn_t *conn;
    uint32_t          qpn;
} uct_daqiri_last_t;

/* A buffer's RECV, made with it: to post it is to link it. */
typedef struct {
    struct ibv_recv_wr wr;
    struct ibv_sge     sge;
} uct_daqiri_recv_t;

/* An active message id, for who has no handler. */
typedef struct {
    uct_daqiri_iface_t *iface;
    uint8_t            id;
} uct_daqiri_am_id_t;

/* Called for each datagram, GRH skipped. */
typedef void (*uct_daqiri_ud_rx_t)(uct_daqiri_iface_t *iface,
                                   const void *payload, size_t length);

struct uct_daqiri_iface {
    uct_base_iface_t super;
    uint64_t         progress_epoch;   /* count of progress calls, from 1;
                                          atomic: progress writes            */

    struct {
        struct ibv_cq     *cq;
        dq_cq_t           ledger;
        uct_daqiri_batch_t *batch;     /* NULL: a doorbell for each request  */
        uct_daqiri_pool_t pool;
        ucs_list_link_t   pending;     /* conns with pending requests        */
        ucs_list_link_t   retry;       /* whose device has refused some      */
        uct_daqiri_last_t last;
        int               wake;        /* something became free              */
        unsigned          idle_dispatches; /* dispatches that had nothing to try */
        uct_daqiri_conn_t *dispatching; /* its pending requests are tried    */
    } tx;

    struct {
        struct ibv_cq     *cq;
        struct ibv_srq    *srq;
        dq_rx_t           ledger;
        uct_daqiri_pool_t pool;
        uct_daqiri_recv_t *recvs;      /* by index into the pool             */
        uct_recv_desc_t   release;     /* how UCP gives a held buffer back   */
        ucs_list_link_t   grants_due;  /* conns with a grant due             */
        uint32_t          spare;       /* buffers free for a window; atomic  */
        uct_daqiri_last_t last;
        int               is_few_logged; /* that there are too few buffers   */
        int               is_refused;  /* RECVs are to be offered again      */
        int               is_refusal_logged;
    } rx;

    struct {
        struct ibv_comp_channel *channel; /* of both CQs                     */
        int                     epoll_fd; /* -1 until it is asked for        */
        int                     wake_fd;  /* rung by the async thread        */
        uint32_t                is_armed; /* has ever been; atomic           */
        uct_daqiri_prefetched_t rx, tx;
    } event;

    uct_daqiri_conn_t **qpns[UCT_DAQIRI_QPN_ROOT]; /* QPN -> conn, 2 levels  */

    uct_daqiri_counters_t *count;      /* in stats                           */
    uct_daqiri_gauges_t   *gauge;      /* the same                           */
    uct_daqiri_stats_t    stats;
    uct_daqiri_hw_t       hw;          /* when it was opened                 */
    int                   broken;      /* dq_cause_t; atomic; async writes   */
    uct_daqiri_am_id_t    am_ids[UCT_AM_ID_MAX]; /* arguments of handlers    */
    int                   is_seg_logged; /* that a peer has other segments   */
    int                   is_version_logged; /* or another version of the wire */
    ucs_list_link_t       md_link;
    struct {
        dq_watchdog_bounds_t bounds;   /* ucs_time_t, as is all here         */
        dq_liveness_bounds_t liveness;
        ucs_time_t        period, last;
        ucs_time_t        back;        /* the port is, for so long; from the
                                          start: give_up                     */
        uint32_t          is_back;     /* again, since the last look; atomic */
        int               timer_fd;
        uint32_t          is_due;      /* cm lock to set; atomic             */
        uint32_t          is_needed;   /* also of who sleeps; atomic         */
    } watchdog;
    int                   slow_work;   /* owing, draining or tx.pending has  */
                                       /* somebody, since it was last looked */
    ucs_list_link_t       conns;       /* that have a QP                     */
    ucs_list_link_t       draining;    /* conns that die                     */

    struct {
        pthread_mutex_t   lock;
        ucs_list_link_t   commands, events;
        khash_t(uct_daqiri_conns) conns;
        uint32_t          has_events;  /* atomic: worth taking the lock      */
        int               event_fd;    /* wakes the async thread             */
        int               timer_fd;
        ucs_list_link_t   timed;       /* async                              */
        int               is_ticking;  /* async                              */
        uint32_t          epoch;       /* async                              */
        uint32_t          reserved;    /* RECVs promised; async              */
        uint32_t          unproven;    /* conns with is_unproven; async      */
        ucs_time_t        unknown_peers_at; /* no stranger has a turn before; async */
        uint32_t          silent;      /* peers that may not know that we
                                          close; progress, at the end        */
        uct_daqiri_ud_t   ud;
        uct_daqiri_hw_t   hw;          /* the last; async                    */
    } cm;

    /* Of lines that strangers cause, one for each cause. */
    struct {
        uct_daqiri_log_limit_t carrier, ah, qp, connect, timers, destroy, tick,
                           version, draw; /* async                           */
        uct_daqiri_log_limit_t gap, lost, back, stall, handler; /* progress  */
    } log_limit;

    struct {
        unsigned        sq_depth, signal_every, poll_batch, max_sge;
        unsigned        rx_window, rx_window_start;
        uint32_t        max_inline;    /* bytes on the wire                  */
        uint32_t        max_inline_am; /* the same, of what is short         */
        size_t          seg_size;      /* bytes on the wire                  */
        size_t          max_short;     /* of UCT: header and payload         */
        size_t          max_hdr;       /* of a zcopy                         */
        size_t          fetch_offset;  /* in a send buffer (daqiri_ep.h)     */
        size_t          headroom;      /* UCP's, in front of the data        */
        uint8_t         port_num, ack_timeout, retry_count, rnr_timer;
        uint8_t         traffic_class, service_level;
        uint8_t         gid_index;     /* where gid is now; atomic           */
        uint8_t         rd_atomic;     /* READs that a QP has in flight      */
        ucs_time_t      conn_timeout, conn_retry, recovery_timeout;
        double          latency;       /* seconds, one way                   */
        int             recovery;
        struct ibv_port_attr port;
        enum ibv_mtu    mtu;
        dq_gid_row_t    gid;           /* as it was when it was taken        */
        dq_port_addr_t  port_addr;
        dq_iface_addr_t addr;
        uint64_t        ticket;        /* shows that one hears us: only an
                                          AGAIN tells it                     */
        char            host[DQ_WIRE_HOST_LEN];
        char            port_name[IBV_SYSFS_NAME_MAX + 8];
        char            gid_text[DQ_GID_TEXT_MAX];
        uint32_t        pid;
    } config;
};

static inline uct_daqiri_md_t *uct_daqiri_iface_md(uct_daqiri_iface_t *iface)
{
    return ucs_derived_of(iface->super.md, uct_daqiri_md_t);
}

static inline uint8_t
uct_daqiri_iface_gid_index(const uct_daqiri_iface_t *iface)
{
    return __atomic_load_n(&iface->config.gid_index, __ATOMIC_RELAXED);
}

static inline uct_daqiri_conn_t *
uct_daqiri_iface_conn(uct_daqiri_iface_t *iface, uint32_t qpn)
{
    uct_daqiri_conn_t **leaf;

    /* acquire: the async thread enters a QP before anything can come on it */
    leaf = __atomic_load_n(&iface->qpns[qpn >> UCT_DAQIRI_QPN_LOW],
                           __ATOMIC_ACQUIRE);
    return (leaf == NULL)
                   ? NULL
                   : __atomic_load_n(&leaf[qpn & (UCT_DAQIRI_QPN_LEAF - 1)],
                                     __ATOMIC_ACQUIRE);
}

/* The same in fewer steps, for completions come in runs. Remembered is only the QP
 * that a conn has: the number of one that it does not have yet, or no more, may be
 * another's the next moment. Progress. */
static inline uct_daqiri_conn_t *
uct_daqiri_iface_likely_conn(uct_daqiri_iface_t *iface,
                             uct_daqiri_last_t *last, uint32_t qpn)
{
    uct_daqiri_conn_t *conn;

    if (ucs_likely(qpn == last->qpn)) {
        return last->conn;
    }

    conn = uct_daqiri_iface_conn(iface, qpn);
    if ((conn != NULL) && (conn->qp != NULL) && (conn->qp->qp_num == qpn)) {
        last->conn = conn;
        last->qpn  = qpn;
    }
    return conn;
}

/* Its QP is about to be destroyed. Progress. */
static inline void uct_daqiri_conn_detach_qp(uct_daqiri_conn_t *conn)
{
    conn->qp = NULL;
    /* QP 0 is never ours (IBA 3.5.3) */
    conn->iface->rx.last = (uct_daqiri_last_t){.qpn = 0};
    conn->iface->tx.last = (uct_daqiri_last_t){.qpn = 0};
}

/* ---- daqiri_component.c ---- */

/* True if the user named this transport, so that its absence needs a word. */
int uct_daqiri_is_asked_for(void);

/* ---- daqiri_md.c ---- */

ucs_status_t uct_daqiri_query_md_resources(uct_component_t *component,
                                           uct_md_resource_desc_t **md_p,
                                           unsigned *num_md_p);
ucs_status_t uct_daqiri_md_open(uct_component_t *component,
                                const char *md_name,
                                const uct_md_config_t *config, uct_md_h *md_p);
void uct_daqiri_md_close(uct_md_h md);
ucs_status_t uct_daqiri_query_devices(uct_md_h md,
                                      uct_tl_device_resource_t **devices_p,
                                      unsigned *num_devices_p);

/* ---- daqiri_mem.c ---- */

ucs_status_t uct_daqiri_mem_reg(uct_daqiri_md_t *md, void *address,
                                size_t length, unsigned uct_flags,
                                uct_daqiri_mem_t **mem_p);
/* Of memory that another device has, and that the file descriptor @a fd stands for,
 * from @a offset in it on; @a address is what requests call it by. UNSUPPORTED: the
 * device can register none. */
ucs_status_t uct_daqiri_mem_reg_dmabuf(uct_daqiri_md_t *md, void *address,
                                       size_t length, unsigned uct_flags,
                                       int fd, size_t offset,
                                       uct_daqiri_mem_t **mem_p);
/* Can it? Asked of the device once. */
int uct_daqiri_mem_has_dmabuf(const uct_daqiri_md_t *md);
/* @a comp, which may be NULL, is told when the device does not know the keys any
 * more: perhaps before this returns, at the latest when all that registered the
 * same memory are through with it. */
ucs_status_t uct_daqiri_mem_dereg(uct_daqiri_md_t *md, uct_daqiri_mem_t *mem,
                                  uct_completion_t *comp);
/* The verbs, without the cache. */
ucs_status_t uct_daqiri_mem_map(uct_daqiri_md_t *md, void *address,
                                size_t length, unsigned uct_flags,
                                uct_daqiri_mem_t *mem);
ucs_status_t uct_daqiri_mem_unmap(uct_daqiri_mem_t *mem);

/* ---- compat/ucx_rcache.c ---- */

/* Makes md->rcache, if it is wanted and can be had. */
void uct_daqiri_rcache_open(uct_daqiri_md_t *md,
                            const uct_daqiri_md_config_t *config);
void uct_daqiri_rcache_close(uct_daqiri_md_t *md);
ucs_status_t uct_daqiri_rcache_get(uct_daqiri_md_t *md, void *address,
                                   size_t length, unsigned uct_flags,
                                   uct_daqiri_mem_t **mem_p);
/* @a comp: see uct_daqiri_mem_dereg(). */
void uct_daqiri_rcache_put(uct_daqiri_md_t *md, uct_daqiri_mem_t *mem,
                           uct_completion_t *comp);

/* ---- daqiri_hw.c: the port's own counters of errors, in sysfs ---- */

/* Reads what there is, to compare with later. Calls the kernel. */
void uct_daqiri_hw_begin(uct_daqiri_iface_t *iface);
/* The same, for a conn that is up for the first time. Async. */
void uct_daqiri_hw_mark(uct_daqiri_conn_t *conn);
/* What has grown since, in words: NULL if nothing has. Calls the kernel. */
const char *uct_daqiri_hw_changes(const uct_daqiri_iface_t *iface,
                                  const uct_daqiri_hw_t *since, char *buf,
                                  size_t size);

/* ---- daqiri_port.c ---- */

/* Fills config.gid, gid_index and port_addr; says why it cannot. */
ucs_status_t uct_daqiri_port_init(uct_daqiri_iface_t *iface,
                                  const char *dev_name, int gid_index);
int uct_daqiri_port_is_in_user_space(const struct ibv_device *device);
/* Is it one of the kernel's own, where a doorbell is a system call, and a
 * packet costs CPU time? */
int uct_daqiri_port_is_emulated(const struct ibv_device *device);
/* Bytes of a segment that suit it. */
size_t uct_daqiri_port_seg_size(const struct ibv_device *device);
/* Sees to config.gid_index: an address that goes and comes back is at another
 * place. UCS_ERR_UNREACHABLE: the port does not have, now, the address that the
 * interface gave its peers; UCS_ERR_IO_ERROR: the device does not say. Any
 * thread; calls the kernel. */
ucs_status_t uct_daqiri_port_find_gid(uct_daqiri_iface_t *iface);
/* What was addressed by this index cannot be by now. The same. */
int uct_daqiri_port_has_gid_left(uct_daqiri_iface_t *iface, uint8_t index);
/* Words that facts point to. */
typedef struct {
    char port[IBV_SYSFS_NAME_MAX + 8];
    char gid[DQ_GID_TEXT_MAX];
    char hw_changes[UCT_DAQIRI_HW_TEXT_MAX];
} uct_daqiri_port_words_t;

/* Why a conn died, as far as no completion tells: the device was taken away,
 * the port is down, the address is gone. @a words, filled, must live as long as
 * @a facts. Calls the kernel. */
void uct_daqiri_port_explain(const uct_daqiri_conn_t *conn, dq_facts_t *facts,
                             uct_daqiri_port_words_t *words);
/* May another try succeed? A neighbour that does not answer, or a link that is
 * down, may come back. */
int uct_daqiri_port_may_come_back(int error);
int uct_daqiri_port_is_reachable(const dq_port_addr_t *local,
                                 const dq_port_addr_t *remote);
/* The same of an interface's port; says why not. */
int uct_daqiri_port_reaches(uct_daqiri_iface_t *iface,
                            const dq_port_addr_t *remote);
void uct_daqiri_port_ah_attr(const uct_daqiri_iface_t *iface,
                             const dq_port_addr_t *remote,
                             struct ibv_ah_attr *attr);
/* Bytes of messages per second that the port moves at its active width, speed
 * and MTU. */
double uct_daqiri_port_bandwidth(const uct_daqiri_iface_t *iface);
/* Seconds that a short message takes one way. */
double uct_daqiri_port_latency(uct_daqiri_iface_t *iface);

/* ---- daqiri_cost.c ---- */

/* The same for any device in user space. */
double uct_daqiri_cost_latency(void);

/* ---- daqiri_iface.c ---- */

UCS_CLASS_DECLARE_NEW_FUNC(uct_daqiri_iface_t, uct_iface_t, uct_md_h,
                           uct_worker_h, const uct_iface_params_t*,
                           const uct_iface_config_t*);
UCS_CLASS_DECLARE_DELETE_FUNC(uct_daqiri_iface_t, uct_iface_t);

/* Bytes that nobody can guess. Says so if there are none. Async; and the thread
 * that opens the interface, before it starts. */
ucs_status_t uct_daqiri_draw(uct_daqiri_iface_t *iface, void *bytes,
                             size_t length);
unsigned uct_daqiri_iface_progress(uct_iface_h tl_iface);
ucs_status_t uct_daqiri_iface_flush(uct_iface_h tl_iface, unsigned flags,
                                    uct_completion_t *comp);

/* ---- daqiri_query.c ---- */

ucs_status_t uct_daqiri_iface_query(uct_iface_h tl_iface,
                                    uct_iface_attr_t *attr);
ucs_status_t uct_daqiri_iface_get_device_address(uct_iface_h tl_iface,
                                                 uct_device_addr_t *addr);
ucs_status_t uct_daqiri_iface_get_address(uct_iface_h tl_iface,
                                          uct_iface_addr_t *addr);
int uct_daqiri_iface_is_reachable(const uct_iface_h tl_iface,
                                  const uct_device_addr_t *dev_addr,
                                  const uct_iface_addr_t *iface_addr);
/* Can it talk to an interface with this address, or endpoint's address? Says why
 * not, once. */
int uct_daqiri_iface_is_alike(uct_daqiri_iface_t *iface, const void *addr);
/* Is the peer at the port that the interface has? */
int uct_daqiri_iface_is_same_device(const uct_iface_h tl_iface,
                                    const uct_device_addr_t *dev_addr);
/* Does the endpoint lead there? Either address may be NULL. */
int uct_daqiri_ep_is_connected(const uct_ep_h tl_ep, const void *dev_addr,
                               const void *iface_addr);

/* ---- daqiri_ep.c ---- */

UCS_CLASS_DECLARE_NEW_FUNC(uct_daqiri_ep_t, uct_ep_t, const uct_ep_params_t*);
UCS_CLASS_DECLARE_DELETE_FUNC(uct_daqiri_ep_t, uct_ep_t);

ucs_status_t uct_daqiri_ep_am_short(uct_ep_h tl_ep, uint8_t id,
                                    uint64_t header, const void *payload,
                                    unsigned length);
ucs_status_t uct_daqiri_ep_am_short_iov(uct_ep_h tl_ep, uint8_t id,
                                        const uct_iov_t *iov, size_t iovcnt);
ssize_t uct_daqiri_ep_am_bcopy(uct_ep_h tl_ep, uint8_t id,
                               uct_pack_callback_t pack_cb, void *arg,
                               unsigned flags);
ucs_status_t uct_daqiri_ep_am_zcopy(uct_ep_h tl_ep, uint8_t id,
                                    const void *header, unsigned header_length,
                                    const uct_iov_t *iov, size_t iovcnt,
                                    unsigned flags, uct_completion_t *comp);
ucs_status_t uct_daqiri_ep_flush(uct_ep_h tl_ep, unsigned flags,
                                 uct_completion_t *comp);
ucs_status_t uct_daqiri_ep_fence(uct_ep_h tl_ep, unsigned flags);
ucs_status_t uct_daqiri_ep_check(uct_ep_h tl_ep, unsigned flags,
                                 uct_completion_t *comp);
/* Gives up the conn, as if its QP had failed: its endpoints are told. */
ucs_status_t uct_daqiri_ep_invalidate(uct_ep_h tl_ep);

/* ---- daqiri_rma.c ---- */

ucs_status_t uct_daqiri_ep_put_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                     size_t iovcnt, uint64_t remote_addr,
                                     uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t uct_daqiri_ep_get_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                     size_t iovcnt, uint64_t remote_addr,
                                     uct_rkey_t rkey, uct_completion_t *comp);

ucs_status_t uct_daqiri_ep_put_short(uct_ep_h tl_ep, const void *buffer,
                                     unsigned length, uint64_t remote_addr,
                                     uct_rkey_t rkey);
ssize_t uct_daqiri_ep_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack_cb,
                                void *arg, uint64_t remote_addr,
                                uct_rkey_t rkey);
ucs_status_t uct_daqiri_ep_get_bcopy(uct_ep_h tl_ep,
                                     uct_unpack_callback_t unpack_cb,
                                     void *arg, size_t length,
                                     uint64_t remote_addr, uct_rkey_t rkey,
                                     uct_completion_t *comp);

/* ---- daqiri_amo.c ---- */

ucs_status_t uct_daqiri_ep_atomic_cswap64(uct_ep_h tl_ep, uint64_t compare,
                                          uint64_t swap, uint64_t remote_addr,
                                          uct_rkey_t rkey, uint64_t *result,
                                          uct_completion_t *comp);
ucs_status_t uct_daqiri_ep_atomic64_post(uct_ep_h tl_ep, uct_atomic_op_t opcode,
                                         uint64_t value, uint64_t remote_addr,
                                         uct_rkey_t rkey);
ucs_status_t uct_daqiri_ep_atomic64_fetch(uct_ep_h tl_ep,
                                          uct_atomic_op_t opcode,
                                          uint64_t value, uint64_t *result,
                                          uint64_t remote_addr,
                                          uct_rkey_t rkey,
                                          uct_completion_t *comp);

/* ---- daqiri_p2p.c: endpoints that are connected later ---- */

/* Gives the new endpoint a stub for its conn. */
ucs_status_t uct_daqiri_p2p_init(uct_daqiri_ep_t *ep,
                                 uct_daqiri_iface_t *iface);
/* That has no endpoint any more. */
void uct_daqiri_p2p_free(uct_daqiri_conn_t *stub);
ucs_status_t uct_daqiri_ep_get_address(uct_ep_h tl_ep, uct_ep_addr_t *addr);
ucs_status_t uct_daqiri_ep_connect_to_ep(uct_ep_h tl_ep,
                                         const uct_device_addr_t *dev_addr,
                                         const uct_ep_addr_t *ep_addr);

/* ---- daqiri_pending.c ---- */

ucs_status_t uct_daqiri_ep_pending_add(uct_ep_h tl_ep, uct_pending_req_t *req,
                                       unsigned flags);
void uct_daqiri_ep_pending_purge(uct_ep_h tl_ep,
                                 uct_pending_purge_callback_t cb, void *arg);
/* What waits for a stub waits for another conn from now on. */
void uct_daqiri_pending_move(uct_daqiri_conn_t *stub, uct_daqiri_conn_t *conn);
/* The requests that wait for a conn which is over, tried once more: those that want
 * nothing of the peer go, the others stay. */
void uct_daqiri_pending_finish(uct_daqiri_conn_t *conn);
/* Offers the conns that wait another try. Returns how many requests went. */
unsigned uct_daqiri_dispatch(uct_daqiri_iface_t *iface);

/* ---- daqiri_tx.c ---- */

/* The device refused what the ledger let through: full queues are none of its
 * reasons, if the ledger is right. */
void uct_daqiri_tx_count_refused(uct_daqiri_iface_t *iface, int error);
/* The device refused what the ledger let through. Non-zero: it is kept, for
 * a later try or the next QP, and to its user it is posted. */
int uct_daqiri_tx_is_kept(uct_daqiri_conn_t *conn,
                          const struct ibv_send_wr *wr, int error);
/* The device refused this request, and has been given none after it: they
 * stay in the ledger, to be offered again; or the QP is given up. Only the first
 * call counts. */
void uct_daqiri_tx_on_refused(uct_daqiri_conn_t *conn, uint32_t id, int error);
/* The device has none of the conn's requests from this one on. */
void uct_daqiri_tx_set_send_end(uct_daqiri_conn_t *conn, uint32_t id);
/* At first, and after a change of was_up, has_send_end or iface->tx.batch. */
void uct_daqiri_tx_set_direct(uct_daqiri_conn_t *conn);
/* The device refused what the ledger let through. Gives the send buffer back,
 * if there is one, and the QP up. */
ucs_status_t uct_daqiri_tx_refused(uct_daqiri_conn_t *conn,
                                   dq_wr_class_t wr_class, uint32_t desc,
                                   int error);
/* Where a request goes that does not go to the device at once: 0, or errno. */
int uct_daqiri_tx_post_later(uct_daqiri_conn_t *conn, struct ibv_send_wr *wr,
                             uct_daqiri_ep_t *ep, uint32_t desc);
/* An empty RDMA WRITE, signalled: over when all before it is over. */
ucs_status_t uct_daqiri_tx_post_probe(uct_daqiri_conn_t *conn,
                                      uct_daqiri_ep_t *ep,
                                      uct_completion_t *comp);
unsigned uct_daqiri_tx_poll(uct_daqiri_iface_t *iface);
/* What a completion tells of @a conn, or NULL, whatever it is: one or many over, an
 * error, nothing that is known. */
void uct_daqiri_tx_on_wc(uct_daqiri_iface_t *iface, uct_daqiri_conn_t *conn,
                         const struct ibv_wc *wc);

/* Is there a point in looking at the CQ? Whatever is signalled will complete;
 * without it, what is in use can only fail, and that may wait a little. */
static inline int uct_daqiri_tx_is_due(const uct_daqiri_iface_t *iface)
{
    return (iface->tx.ledger.signals > 0) ||
           (iface->progress_epoch % UCT_DAQIRI_TX_POLL_EVERY == 0);
}

/* More send buffers: 0 if there can be none, which is counted. */
int uct_daqiri_tx_grow(uct_daqiri_iface_t *iface);
/* What is known of a conn that fails for this cause. */
void uct_daqiri_tx_facts(const uct_daqiri_conn_t *conn, dq_cause_t cause,
                         dq_facts_t *facts);
/* The request that was just posted is one that no user misses if it fails. */
void uct_daqiri_tx_note_internal(uct_daqiri_conn_t *conn);
/* A user wants to know of all that is posted so far, by whomever, if it fails. */
void uct_daqiri_tx_note_awaited(uct_daqiri_conn_t *conn);
/* Asks, now and then, whether a peer that grants no credit is there at all. */
void uct_daqiri_tx_probe_peer(uct_daqiri_conn_t *conn);
/* Nothing more will be posted: makes the end of the ledger show in the CQ. */
void uct_daqiri_tx_post_marker(uct_daqiri_conn_t *conn);
/* The same once more, if the device would not take what speaks for it. */
void uct_daqiri_tx_post_marker_at_end(uct_daqiri_conn_t *conn);
/* Everything before this id is over, successfully. */
void uct_daqiri_tx_retire_to(uct_daqiri_conn_t *conn, uint32_t id);
/* Whatever is still in the ledger is over, with the conn's status. */
void uct_daqiri_tx_purge(uct_daqiri_conn_t *conn);
/* This request, which is in use, must not be posted again. */
void uct_daqiri_tx_bar_replay(uct_daqiri_conn_t *conn, uint32_t id);
/* Nobody is told any more what was posted through ep; the NIC goes on. */
void uct_daqiri_tx_cancel(uct_daqiri_ep_t *ep);
/* The endpoint goes, and its user may free what it has sent from: waits,
 * within a bound, until the NIC does not need it; else gives up the QP. */
void uct_daqiri_tx_detach(uct_daqiri_ep_t *ep);

/* ---- daqiri_rx.c; see daqiri_rx.h, too ---- */

void uct_daqiri_rx_refill(uct_daqiri_iface_t *iface);
/* The same while nothing arrives: posts what is free, and makes nothing. */
void uct_daqiri_rx_catch_up(uct_daqiri_iface_t *iface);
/* Posts @a count of the free buffers; there are so many. What is refused stays
 * free, and is offered again by progress. */
void uct_daqiri_rx_post_free(uct_daqiri_iface_t *iface, uint32_t count);
/* Credit grants that no message carried in time. */
unsigned uct_daqiri_rx_grant(uct_daqiri_iface_t *iface);
/* Makes buffers that UCP may keep; as uct_daqiri_pool_grow(). Any thread. */
ucs_status_t uct_daqiri_rx_make(uct_daqiri_iface_t *iface, uint32_t count,
                                uint32_t *first_p);
/* The same, for the ledger: they are free. */
ucs_status_t uct_daqiri_rx_add(uct_daqiri_iface_t *iface, uint32_t count);
/* Takes @a count from the buffers that closed conns have left, if so many. Any
 * thread. */
int uct_daqiri_rx_take_spare(uct_daqiri_iface_t *iface, uint32_t count);
/* The peer uses more than its window, which is narrow: as far as memory goes, it
 * gets a wider one. */
void uct_daqiri_rx_widen(uct_daqiri_conn_t *conn);
/* Posts these buffers of the receive pool, BATCH_MAX at most. Returns how many of
 * them, from the first on, the device has taken. Any thread. */
uint32_t uct_daqiri_rx_post(uct_daqiri_iface_t *iface, const uint32_t *index,
                            uint32_t count);
/* It has not taken all. */
void uct_daqiri_rx_refused(uct_daqiri_iface_t *iface);
void uct_daqiri_rx_release_desc(uct_recv_desc_t *self, void *desc);

/* Should credits ride on a message now? Worth it from a quarter of the window. */
static inline int uct_daqiri_rx_may_piggyback(const uct_daqiri_conn_t *conn)
{
    return conn->window.owed * 4 >= conn->window.size;
}

/* How many. */
static inline uint32_t uct_daqiri_rx_piggyback(const uct_daqiri_conn_t *conn)
{
    uint32_t count;

    if (ucs_likely(!uct_daqiri_rx_may_piggyback(conn))) {
        return 0;
    }
    count = dq_rx_grantable(&conn->iface->rx.ledger, &conn->window);
    return dq_min(count, DQ_WIRE_MAX_CREDIT);
}

/* ---- daqiri_pool.c ---- */

/* A buffer's point has @a lead bytes in front of it, @a length from it on, and is
 * aligned to @a align bytes, a cache line at least, @a offset bytes further. */
ucs_status_t uct_daqiri_pool_init(uct_daqiri_pool_t *pool, const char *name,
                                  struct ibv_pd *pd, uint32_t limit,
                                  size_t lead, size_t length, size_t align,
                                  size_t offset);
void uct_daqiri_pool_cleanup(uct_daqiri_pool_t *pool);
/* Makes @a count more buffers; their indices follow from *first_p. They are
 * the caller's: not on the free stack. Any thread. */
ucs_status_t uct_daqiri_pool_grow(uct_daqiri_pool_t *pool, uint32_t count,
                                  uint32_t *first_p);

static inline void uct_daqiri_pool_put(uct_daqiri_pool_t *pool, uint32_t index)
{
    pool->free_stack[pool->free_count++] = index;
}

/* ---- daqiri_cm.c: the table and the mailboxes ---- */

ucs_status_t uct_daqiri_cm_init(uct_daqiri_iface_t *iface);
/* The async thread is done with the interface when this returns. */
void uct_daqiri_cm_stop(uct_daqiri_iface_t *iface);
void uct_daqiri_cm_cleanup(uct_daqiri_iface_t *iface);

/* The conn to this peer, made if there is none. Any thread. */
ucs_status_t uct_daqiri_cm_get(uct_daqiri_iface_t *iface,
                               const dq_port_addr_t *port,
                               const dq_iface_addr_t *addr,
                               uct_daqiri_conn_t **conn_p);
/* The same for a peer whose address UCP has. A conn that only a REQ has asked for,
 * in the peer's name but from elsewhere, loses its place in the table: *forged_p,
 * for the caller to end; else that is NULL. Progress. */
ucs_status_t uct_daqiri_cm_get_addressed(uct_daqiri_iface_t *iface,
                                         const dq_port_addr_t *port,
                                         const dq_iface_addr_t *addr,
                                         uct_daqiri_conn_t **conn_p,
                                         uct_daqiri_conn_t **forged_p);
/* The conn of this peer, or NULL. Any thread. */
uct_daqiri_conn_t *uct_daqiri_cm_find(uct_daqiri_iface_t *iface,
                                      uint64_t uuid);
/* The table forgets the conn: the next uct_daqiri_cm_get() makes another. */
void uct_daqiri_cm_remove(uct_daqiri_conn_t *conn);

void uct_daqiri_cm_post_command(uct_daqiri_conn_t *conn, uint32_t command);
void uct_daqiri_cm_post_event(uct_daqiri_conn_t *conn, uint32_t event);
/* What one thread did before this, another sees after it. */
void uct_daqiri_cm_hand_over(uct_daqiri_iface_t *iface);
/* It is time for progress to look at its conns. */
void uct_daqiri_cm_post_due(uct_daqiri_iface_t *iface);
/* The next conn in the mailbox, with what is asked of it; NULL if empty. */
uct_daqiri_conn_t *uct_daqiri_cm_next_command(uct_daqiri_iface_t *iface,
                                              uint32_t *commands_p);
uct_daqiri_conn_t *uct_daqiri_cm_next_event(uct_daqiri_iface_t *iface,
                                            uint32_t *events_p);

static inline int uct_daqiri_cm_has_events(uct_daqiri_iface_t *iface)
{
    return __atomic_load_n(&iface->cm.has_events, __ATOMIC_ACQUIRE) != 0;
}

/* ---- daqiri_conn.c: life and death of a conn; progress ---- */

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
/* Did its peer close in order? */
static inline int uct_daqiri_conn_peer_left(const uct_daqiri_conn_t *conn)
{
    return (conn->sq.gate == DQ_GATE_DEAD) &&
           (conn->death.cause == DQ_CAUSE_PEER_GONE);
}

/* Closes the gate for ever and starts to drain. Only the first call counts. */
void uct_daqiri_conn_fail(uct_daqiri_conn_t *conn, const dq_facts_t *death);
/* Puts it among those that drain. */
void uct_daqiri_conn_start_drain(uct_daqiri_conn_t *conn);
/* Moves its QP to ERR, which flushes the ledger. */
void uct_daqiri_conn_to_err(uct_daqiri_conn_t *conn);
/* Somebody wanted to use a dead conn: its endpoints will be told. */
void uct_daqiri_conn_use_after_failure(uct_daqiri_conn_t *conn);
/* Moves dying and lost conns on. @a received and @a completed: what this progress
 * call has found in the receive CQ and, polling it before this, in the send CQ. */
unsigned uct_daqiri_conn_drain(uct_daqiri_iface_t *iface, unsigned received,
                               unsigned completed);
/* From here on, see that all that has been received is handed up. */
void uct_daqiri_conn_mark_drain(uct_daqiri_conn_t *conn);
/* An endpoint has left: a conn that is over and unused is let go. */
void uct_daqiri_conn_put(uct_daqiri_conn_t *conn);
ucs_status_t uct_daqiri_conn_status(const uct_daqiri_conn_t *conn);

/* ---- daqiri_recover.c: another QP ---- */

/* The QP is lost: has another one made, if that may help, else fails the conn.
 * Only the first call counts. */
void uct_daqiri_recover(uct_daqiri_conn_t *conn, const dq_facts_t *facts);
/* The peer says that it has lost its QP. */
void uct_daqiri_recover_on_peer_lost(uct_daqiri_conn_t *conn);
/* The QP that was to replace the last one could not be made or connected. */
void uct_daqiri_recover_on_no_qp(uct_daqiri_conn_t *conn);
/* The lost QP has nothing more to say, as far as can be seen: it is destroyed. */
void uct_daqiri_recover_close(uct_daqiri_conn_t *conn);
void uct_daqiri_recover_on_closed(uct_daqiri_conn_t *conn);
/* And it will not say any more. Zero: wait a little, all the same. */
int uct_daqiri_recover_drained(uct_daqiri_conn_t *conn);
void uct_daqiri_recover_on_qp(uct_daqiri_conn_t *conn);
void uct_daqiri_recover_up(uct_daqiri_conn_t *conn);
/* The peer did not answer in time: the death is that of the QP. */
void uct_daqiri_recover_expired(uct_daqiri_conn_t *conn, dq_facts_t *death);

/* ---- daqiri_event.c: sleeping ---- */

/* Makes what the CQs need; what a failure leaves, cleanup takes. */
ucs_status_t uct_daqiri_event_init(uct_daqiri_iface_t *iface);
void uct_daqiri_event_cleanup(uct_daqiri_iface_t *iface);
ucs_status_t uct_daqiri_iface_event_fd_get(uct_iface_h tl_iface, int *fd_p);
ucs_status_t uct_daqiri_iface_event_arm(uct_iface_h tl_iface, unsigned events);
/* What arming has found of a CQ, taken off the prefetched. Returns how many. */
static inline int uct_daqiri_event_take_prefetched(uct_daqiri_prefetched_t *prefetched,
                                                   struct ibv_wc *wc)
{
    int count = prefetched->count;

    if (ucs_unlikely(count != 0)) {
        memcpy(wc, prefetched->wc, count * sizeof(*wc));
        prefetched->count = 0;
    }
    return count;
}

/* There is news for progress. Async. */
void uct_daqiri_event_wake(uct_daqiri_iface_t *iface);

/* ---- daqiri_async.c: events of the device ---- */

/* From here on what the device tells is heeded, until it leaves. */
ucs_status_t uct_daqiri_async_subscribe(uct_daqiri_iface_t *iface);
void uct_daqiri_async_unsubscribe(uct_daqiri_iface_t *iface);
/* Has the device, which is asked, said of nothing of the interface that it is
 * broken? If it has, progress knows, and its conns fail. Async. */
int uct_daqiri_async_is_sound(uct_daqiri_iface_t *iface);
/* Performs what was told of a conn's QP; of the whole interface. Progress. */
void uct_daqiri_async_on_lose(uct_daqiri_conn_t *conn);
void uct_daqiri_async_take_events(uct_daqiri_iface_t *iface);

/* ---- daqiri_vfs.c ---- */

/* The counters as files of UCX's VFS. Any thread. */
void uct_daqiri_iface_vfs_refresh(uct_iface_h tl_iface);

/* ---- daqiri_watchdog.c: what stands still ---- */

void uct_daqiri_watchdog_configure(uct_daqiri_iface_t *iface,
                                   const uct_daqiri_iface_config_t *config);
ucs_status_t uct_daqiri_watchdog_open(uct_daqiri_iface_t *iface);
void uct_daqiri_watchdog_close(uct_daqiri_iface_t *iface);
void uct_daqiri_watchdog_run(uct_daqiri_iface_t *iface);

static inline int uct_daqiri_watchdog_is_due(uct_daqiri_iface_t *iface)
{
    return __atomic_load_n(&iface->watchdog.is_due, __ATOMIC_RELAXED) != 0;
}

/* ---- daqiri_hs.c: the handshake; async ---- */

void uct_daqiri_hs_on_command(uct_daqiri_conn_t *conn, uint32_t commands);
void uct_daqiri_hs_on_frame(uct_daqiri_iface_t *iface, const void *payload,
                            size_t length);
void uct_daqiri_hs_on_datagram(uct_daqiri_iface_t *iface);
void uct_daqiri_hs_on_tick(uct_daqiri_iface_t *iface);
/* Whoever waits for an answer asks at once, and then as at the beginning. */
void uct_daqiri_hs_retry_now(uct_daqiri_iface_t *iface);
/* The carrier's CQ has failed: no answer comes any more. Who waits for one, and
 * who will want a QP, fails; conns that are up go on. */
void uct_daqiri_hs_fail_carrier(uct_daqiri_iface_t *iface);
/* While the interface closes: says so to the peer, unless it is known to know.
 * cm.silent counts who was told and has not answered, but did so before. */
void uct_daqiri_hs_send_all_gone(uct_daqiri_conn_t *conn);
/* In place of uct_daqiri_hs_on_frame(): what is answered, or answers us; and who
 * asks for a connection is told that there will be none. */
void uct_daqiri_hs_on_last_frame(uct_daqiri_iface_t *iface,
                                 const void *payload, size_t length);

/* ---- daqiri_link.c: what a connected conn has of the device; async ---- */

/* A way to address the peer's handshake, if there is none yet. May block for
 * a second. UCS_ERR_UNREACHABLE: not now, but another try may succeed. */
ucs_status_t uct_daqiri_link_address(uct_daqiri_conn_t *conn);
/* The same to somebody who is no peer, or not yet. NULL: not now. The caller's.
 * *gid_index_p: at which our GID was. */
struct ibv_ah *uct_daqiri_link_address_once(uct_daqiri_iface_t *iface,
                                            const dq_port_addr_t *port,
                                            uint8_t *gid_index_p);
/* It is the conn's from now on. */
void uct_daqiri_link_give_ah(uct_daqiri_conn_t *conn, struct ibv_ah *ah,
                             uint8_t gid_index);
/* A QP in INIT with RECVs behind it; tells progress. What a failure leaves,
 * uct_daqiri_link_close() takes. */
ucs_status_t uct_daqiri_link_open(uct_daqiri_conn_t *conn);
void uct_daqiri_link_close(uct_daqiri_conn_t *conn);
/* Only the QP: another one follows. */
void uct_daqiri_link_close_qp(uct_daqiri_conn_t *conn);
/* But its number still leads to the conn: completions of it may be in the CQs. */
void uct_daqiri_link_destroy_qp(uct_daqiri_conn_t *conn);

/* ---- daqiri_qp.c: ibv_create_qp, ibv_modify_qp of RC QPs ---- */

/* Both: NO_RESOURCE if another QP, or another time, may do. @a level: of what is
 * said if there is none. */
ucs_status_t uct_daqiri_qp_create(uct_daqiri_iface_t *iface,
                                  ucs_log_level_t level,
                                  struct ibv_qp **qp_p, uint32_t *inline_p);
ucs_status_t uct_daqiri_qp_connect(uct_daqiri_iface_t *iface,
                                   struct ibv_qp *qp, uint32_t psn,
                                   const dq_frame_t *peer);
/* Within this time a device fails a request that gets no answer, by itself. */
ucs_time_t uct_daqiri_qp_max_retry_time(const uct_daqiri_iface_t *iface);
/* 0, or errno: it goes on as it was. */
int uct_daqiri_qp_to_err(struct ibv_qp *qp);
/* What the device says of its state, for people. Calls the kernel. */
const char *uct_daqiri_qp_state_name(struct ibv_qp *qp);

/* ---- daqiri_ud.c: the handshake's carrier; async ---- */

ucs_status_t uct_daqiri_ud_open(uct_daqiri_iface_t *iface);
void uct_daqiri_ud_close(uct_daqiri_iface_t *iface);
ucs_status_t uct_daqiri_ud_send(uct_daqiri_iface_t *iface, struct ibv_ah *ah,
                                uint32_t qpn, const dq_frame_t *frame);
/* The same, and @a ah is destroyed when nothing needs it any more. */
ucs_status_t uct_daqiri_ud_send_once(uct_daqiri_iface_t *iface,
                                     struct ibv_ah *ah, uint32_t qpn,
                                     const dq_frame_t *frame);
void uct_daqiri_ud_poll(uct_daqiri_iface_t *iface, uct_daqiri_ud_rx_t rx);
/* Posts what the device did not take. If the QP has failed and it is time: makes
 * it ready again, under its number. Non-zero if it was. */
int uct_daqiri_ud_reset(uct_daqiri_iface_t *iface);
/* Is there something to mend, now or later? */
static inline int uct_daqiri_ud_is_hurt(const uct_daqiri_iface_t *iface)
{
    return !iface->cm.ud.is_failed && ((iface->cm.ud.lost != DQ_CAUSE_NONE) ||
                                       (iface->cm.ud.idle_count > 0));
}
/* Is something under way that will be told to be over? */
static inline int uct_daqiri_ud_is_sending(const uct_daqiri_iface_t *iface)
{
    return !iface->cm.ud.is_failed && (iface->cm.ud.send_busy != 0);
}

/* ---- daqiri_log.c ---- */

/* Facts -> message -> UCX's log. */
void uct_daqiri_log(ucs_log_level_t level, const dq_facts_t *facts);
/* A verb failed: names it, errno, and what may be behind it. */
void uct_daqiri_log_verb(ucs_log_level_t level, const char *subject,
                         const char *verb, int error);
/* May a line be said now of what strangers can bring about as often as they like?
 * Once in UCT_DAQIRI_LOG_LIMIT_SEC; else it is counted. @a more: what to put behind
 * the line, with that count. Threads: one at a time for each @a quiet. */
int uct_daqiri_may_log(uct_daqiri_log_limit_t *limit,
                       char more[UCT_DAQIRI_MORE_MAX]);
/* The same of a line about a conn. Without a limit if somebody here wants it: who
 * can end that again and again has heard us, and is its peer. Progress. */
int uct_daqiri_may_log_of(uct_daqiri_conn_t *conn,
                          uct_daqiri_log_limit_t *limit,
                          char more[UCT_DAQIRI_MORE_MAX]);
/* As uct_daqiri_log() and uct_daqiri_log_verb(), if it may be said. */
void uct_daqiri_log_rarely(uct_daqiri_log_limit_t *limit, ucs_log_level_t level,
                           const dq_facts_t *facts);
void uct_daqiri_log_verb_rarely(uct_daqiri_log_limit_t *limit,
                                ucs_log_level_t level, const char *subject,
                                const char *verb, int error);
/* That a peer has another version of the wire; 0: 5 or less. @a more: as of
 * uct_daqiri_may_log(), or "". */
void uct_daqiri_log_version(const uct_daqiri_iface_t *iface, unsigned version,
                            const char *more);
ucs_status_t uct_daqiri_cause_status(dq_cause_t cause);

/* ---- daqiri_stats.c: counters that can be read while they count ---- */

/* iface->count, and the file if there can be one. */
ucs_status_t uct_daqiri_stats_open(uct_daqiri_iface_t *iface, int is_wanted);
void uct_daqiri_stats_close(uct_daqiri_iface_t *iface);
/* The interface is open: its file may be read. */
void uct_daqiri_stats_publish(uct_daqiri_iface_t *iface);
/* A conn has its first QP; is over. Progress. */
void uct_daqiri_stats_add_conn(uct_daqiri_conn_t *conn);
void uct_daqiri_stats_remove_conn(uct_daqiri_conn_t *conn);
/* Brings the gauges up to date. Progress. */
void uct_daqiri_stats_sample(uct_daqiri_iface_t *iface);
/* The counters of a closing interface, as text, into DAQIRI_STATS_DIR. */
void uct_daqiri_stats_write(uct_daqiri_iface_t *iface);

#endif
