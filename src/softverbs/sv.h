/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device inside one process.
 *
 * A `node` is this process on the fabric: its shared segment, its service
 * thread thread, and the segments of the peers it talks to. Contexts, made by
 * ibv_open_device(), share the node; the last one closed takes it down.
 *
 * Who does the work. There is no NIC, so the work is done inside the caller's
 * verbs: ibv_post_send() writes into the receiver's ring, or copies with
 * process_vm_writev(), before it returns; ibv_poll_cq() moves records from the
 * rings of the CQ's queue pairs into RECVs. What could not be done at once
 * (ring full, RNR, no answer) waits on the node's stuck list, which every
 * ibv_poll_cq() pushes on; the service thread does it for programs that sleep.
 *
 * Threads. Every verb may be called from any thread. Locks, outermost first:
 *
 *     sv_context.lock     control verbs of a context: counts of objects
 *     ibv_qp.mutex        modify, query and destroy of one QP
 *     sv_node.objects_lock    list of CQs (service thread)
 *     sv_cq.rx_lock       receiving on all QPs that receive into this CQ
 *     sv_qp.tx.lock       send queue of one QP, and its connection
 *     sv_node.stuck_lock  stuck list; its holder may only *try* the two above
 *     sv_rq.post_lock, sv_rq.take_lock
 *     sv_cq.lock          completion ring
 *     sv_node.lock        own tables, peers, channels
 *     sv_async.lock       asynchronous events
 *
 * Between processes there is one lock, for senders of datagrams and for
 * atomics; it says who holds it, and is taken over from the dead.
 */
#ifndef SV_H
#define SV_H

#include "sv_fabric.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stddef.h>

#define SV_EXPORT __attribute__((visibility("default")))

#define SV_DEVICE_NAME    "softverbs0"
#define SV_GID_PLACES     4 /* that a GID can be moved to */
#define SV_GUID           0x0273667462730001ull

/* Limits of the device, as ibv_query_device() tells them. */
enum {
    SV_LIMIT_WR     = 16384, /* depth of a send, receive or shared queue */
    SV_LIMIT_SGE    = 16,
    SV_LIMIT_INLINE = 256,
    SV_LIMIT_CQE    = 1 << 17,
    SV_LIMIT_PD     = 1024,
    SV_LIMIT_AH     = 65536,
    SV_LIMIT_RD     = 16,
    SV_UD_MTU       = 4096,
    SV_GRH_BYTES    = 40
};
#define SV_LIMIT_MSG      (1u << 30)

/* ---- objects ---- */

/* Asynchronous events of a context that nobody has read yet. */
struct sv_async {
    struct sv_spin    lock;
    struct sv_event  *first;
    struct sv_event **last;
    int               fd; /* eventfd that counts the events in the list */
};

struct sv_context {
    struct sv_node      *node;
    struct sv_context   *next;     /* all of the process */
    pthread_mutex_t      lock;
    struct sv_async      async;
    bool                 orphaned; /* inherited by a fork: dead */
    _Atomic uint32_t     num_pd;
    _Atomic uint32_t     num_ah;
    uint32_t             num_cq;   /* under lock */
    struct verbs_context vctx; /* last: its tail is struct ibv_context */
};

struct sv_pd {
    struct ibv_pd   base;
    uint32_t        pdn;   /* unique in the process */
    _Atomic uint32_t users; /* MRs, QPs, SRQs, AHs */
};

struct sv_mr {
    struct ibv_mr base;
    uint32_t      index;
};

struct sv_ah {
    struct ibv_ah base;
    uint8_t       sl;
    bool          global;
    bool          is_local; /* see sv_address_is_local() */
};

struct sv_channel {
    struct ibv_comp_channel base; /* base.fd: the end that is read */
    int                     write_fd;
    uint64_t                name; /* of base.fd, for peers */
    struct sv_channel      *next; /* under sv_node.lock */
};

/* A queue of RECVs: of one QP, or an SRQ. A slot is occupied from post until
 * its completion is polled. */
struct sv_rwqe {
    uint64_t       wr_id;
    uint32_t       num_sge;
    struct ibv_sge sge[];
};

struct sv_rq {
    struct sv_spin    post_lock;
    struct sv_spin    take_lock;
    uint8_t          *wqes;
    uint32_t          stride;
    uint32_t          mask;
    uint32_t          depth;
    uint32_t          max_sge;
    uint32_t          pdn;
    struct sv_node   *node;
    uint32_t          posted;     /* under post_lock */
    _Atomic uint32_t  ready;      /* == posted, for the taker */
    _Atomic uint32_t  taken;      /* under rx_lock of `taker`; if several CQs
                                   * take from this queue, under take_lock */
    struct sv_cq     *taker;
    bool              contended;
    _Atomic uint32_t  freed;      /* advanced by polling */
    _Atomic uint32_t  freed_at_once; /* others, under rx_lock of `taker` */
    atomic_bool       starved;    /* a message waits for a RECV */
    _Atomic uint32_t *shm_posted; /* what senders see */
    _Atomic uint32_t *shm_min_len;
};

struct sv_srq {
    struct ibv_srq     base;
    struct sv_rq       rq;
    uint32_t           index;
    struct sv_shm_srq *shm;
    _Atomic uint32_t   limit;      /* armed SRQ limit, or 0 */
    uint32_t           async_sent;
    _Atomic uint32_t   users;
};

enum sv_cqe_kind {
    SV_CQE_SEND,
    SV_CQE_RECV
};

struct sv_cqe {
    struct ibv_wc wc;
    struct sv_qp *qp;   /* whose queue slot is freed by polling */
    uint16_t      kind; /* enum sv_cqe_kind */
    uint16_t      notify; /* enum sv_notify, for who arms the CQ later */
    uint32_t      slot; /* SEND: send queue position after this WR */
};

/* What a new completion does to a CQ that is armed. */
enum sv_notify {
    SV_NOTIFY_NONE,     /* the program is polling, or its sender told it */
    SV_NOTIFY_NEXT,     /* wakes who waits for any completion */
    SV_NOTIFY_SOLICITED /* wakes also who waits for solicited ones */
};

#define SV_BATCH 32

/* Lines, or short messages, that either side of a ring is ahead of itself in
 * asking for. 2 to 6 are alike; 8 are worse. */
#define SV_AHEAD 4

/* Records found one after the other from which on the receiver does: two whole
 * polls of most programs. With fewer it takes lines from a sender that is only
 * just ahead, and slows it down by a fifth (docs/bench.md). */
#define SV_BACKLOG 32

/* One QP that receives into a CQ: where its next record will appear. */
struct sv_scan {
    const _Atomic uint64_t *tag;
    uint64_t                expect;
    struct sv_qp           *qp;
    bool                    used; /* since the last sweep */
};

/* Of a CQ with many QPs: those whose bells it answers. */
struct sv_bells {
    uint64_t      members[SV_QP_MAX / 64];
    struct sv_qp *qps[SV_QP_MAX]; /* by index of QP entry */
};

/* Whether a poll that found nothing offers the CPU to others (sv_yield.c). */
struct sv_yield {
    _Atomic uint64_t not_before; /* no offers until then */
    atomic_bool      watched;    /* the last one took long: by whom? */
};

struct sv_cq {
    struct ibv_cq     base;
    struct sv_node   *node;
    struct sv_spin    rx_lock;
    struct sv_scan   *scan;       /* see sv_scan.c */
    unsigned          num_scan;
    unsigned          num_active; /* the first of them are looked at */
    unsigned          scan_room;
    unsigned          scan_start;
    unsigned          scan_cost;  /* looks since the last sweep */
    unsigned          scan_again; /* of the idle: who is looked at next */
    struct sv_bells  *bells;      /* NULL: never had many QPs */
    struct ibv_wc    *direct;     /* under rx_lock: where in the array of who
                                   * polls the next completion may be made */
    unsigned          direct_room; /* how many; 0 when rx_lock is free */
    unsigned          num_batch;  /* under rx_lock, empty when it is free */
    enum sv_notify    batch_notify;
    struct sv_cqe     batch[SV_BATCH];

    struct sv_spin    lock;
    struct sv_cqe    *ring;
    uint32_t          mask;
    _Atomic uint32_t  head;       /* next to be polled */
    _Atomic uint32_t  tail;
    _Atomic uint32_t  size;       /* cqe as asked for */
    _Atomic uint32_t  max_outstanding; /* of all queues that complete here */
    _Atomic uint32_t  room;       /* size; 0 once it was overrun */
    atomic_uint       empty_polls; /* in a row */
    struct sv_yield   yield;

    uint32_t          index;      /* CQ entry, 0 without channel */
    uint32_t          cookie;     /* what the entry's should be; never 0 */
    struct sv_shm_cq *shm;
    uint32_t          announced;   /* under lock: the program has had an event
                                    * for each completion up to here */
    uint32_t          armings;     /* by the program; under sv_node.lock */
    uint32_t          events_sent; /* under sv_node.lock */
    bool              is_awaited;  /* armed, and no event has been read since;
                                    * under sv_node.lock */
    uint32_t          async_sent;  /* under sv_async.lock, as in QP and SRQ */
    _Atomic uint32_t  users;
    struct sv_cq     *next;
};

enum sv_wait {
    SV_WAIT_NONE,
    SV_WAIT_RING,    /* the receiver has to make room */
    SV_WAIT_RNR,     /* the receiver has no RECV, timer runs */
    SV_WAIT_ACK,     /* nobody answers, timer runs */
    SV_WAIT_VERDICT, /* the receiver has to say whether the message fitted */
    SV_WAIT_ROOM,    /* UD: as SV_WAIT_RING, but not for long */
    SV_WAIT_DELAY    /* a fault on purpose holds it up */
};

enum sv_stage {
    SV_STAGE_NEW,
    SV_STAGE_CLAIMED, /* a RECV of the peer is ours */
    SV_STAGE_DECLINED, /* to be pushed after all, into the RECV claimed */
    SV_STAGE_SENT,    /* in the ring, waiting for the verdict */
    SV_STAGE_OFFERED, /* as SENT, but the receiver has to fetch it */
    SV_STAGE_SILENT   /* done, and its acknowledgement lost on purpose */
};

struct sv_swqe {
    uint64_t wr_id;
    uint32_t opcode;  /* enum ibv_wr_opcode */
    uint32_t flags;   /* enum ibv_send_flags */
    uint32_t total;
    uint32_t sent;
    uint32_t imm;
    uint16_t num_sge;
    uint16_t rec_flags; /* enum sv_rec_flags that all its records have */
    uint8_t  stage;   /* enum sv_stage */
    bool     resolved; /* sge are checked and hold real addresses */
    uint64_t end;     /* ring position behind the message */
    union {
        struct {
            uint64_t addr;
            uint64_t compare_add;
            uint64_t swap;
            uint32_t rkey;
        } rdma;
        struct {
            uint32_t qpn;
            uint32_t qkey;
            uint8_t  sl;
            bool     is_local; /* at an address of this fabric */
        } ud;
    };
    struct ibv_sge sge[]; /* max_sge of them, then max_inline bytes */
};

#define SV_UD_PEERS 8

/* Send side of a QP. All under lock but `freed`. */
struct sv_tx {
    struct sv_spin     lock;
    uint32_t           lock_id; /* of the node: who is `busy` over there */
    uint8_t           *wqes;
    uint32_t           stride;
    uint32_t           mask;
    uint32_t           depth;
    uint32_t           max_sge;
    uint32_t           max_inline;
    bool               special; /* UD, or there are faults */
    uint32_t           posted;
    uint32_t           done;    /* completed, well or badly */
    _Atomic uint32_t   freed;   /* slots given back by polling */

    struct sv_peer    *peer;    /* RC: connection, once reached */
    struct sv_shm_qp  *rem;
    struct sv_shm_cq  *rem_cq;
    struct sv_shm_srq *rem_srq;
    uint32_t           epoch;   /* 0: not reached yet */
    uint8_t           *ring;
    uint64_t           key;
    uint32_t           ring_bytes;
    uint64_t           tail;
    uint64_t           head;    /* last seen */
    uint64_t           receiver_woken_at; /* tail at that time */
    uint64_t           poll_requested_at; /* tail at that time */
    uint32_t           claimed; /* RECVs used of the peer's own queue */
    uint32_t           credit;  /* RECVs known to be posted there */
    uint32_t           min_len; /* shortest of those */
    bool               declined; /* the receiver fetches nothing */
    bool               broken;  /* the receiver reported an impossible value */
    _Atomic(uint8_t*)  next;    /* where the next record is likely to go; read
                                 * without the lock by the QP's own receiver */

    bool               drain_event; /* tell when SQD has drained */
    enum sv_wait       wait;
    uint64_t           deadline;
    uint32_t           tries;
    bool               stuck;   /* on the stuck list, under its lock */
    struct sv_qp      *stuck_next;

    struct sv_peer    *ud_peers[SV_UD_PEERS];
};

/* sv_rx.remote_qpn of a datagram QP: no QP has this number. */
#define SV_NO_REMOTE_QPN    UINT32_MAX

/* Receive side of a QP. All under rx_lock of the receive CQ. */
struct sv_rx {
    bool            open;
    uint8_t        *ring;
    uint64_t        key;
    uint32_t        remote_qpn; /* QP number of the only sender, see below */
    uint32_t        ring_bytes; /* 0 until the first record */
    uint64_t        pos;
    uint64_t        published;
    unsigned        scan;       /* index in the CQ's scan array */
    uint32_t        streak;     /* records since the ring was found empty */
    uint8_t        *answer;     /* sv_tx.next when the last record came */
    uint32_t        consumed;   /* SRQ: RECVs taken for this QP */
    bool            busy;       /* a message is being received */
    uint32_t        total;      /* of that message */
    uint32_t        left;       /* bytes of it that have not come yet */
    uint32_t        sge;
    uint32_t        sge_offset;
    struct sv_rwqe *cur;        /* copy of its RECV */
};

struct sv_qp {
    struct ibv_qp          base;
    struct sv_context     *ctx;
    struct sv_node        *node;
    _Atomic uint32_t       state;  /* enum ibv_qp_state */
    bool                   sq_sig_all;
    uint32_t               pdn;
    uint32_t               index;  /* of the QP entry */
    uint32_t               number; /* among the QPs of its type, in order */
    struct sv_fault_qp    *faults; /* NULL: none are planned */
    struct sv_shm_qp      *shm;
    struct sv_tx           tx;
    struct sv_rq           rq;     /* unused with an SRQ */
    struct sv_rq          *recvs;  /* &rq, or the SRQ's */
    struct sv_rx           rx;
    atomic_bool            rx_flush_due; /* ERR came from the send side */
    atomic_bool            cq_lost;  /* a completion was lost to an overrun */
    uint32_t               epoch;
    uint32_t               async_sent;
    bool                   comm_established;
    struct ibv_qp_attr     attr;   /* as set, under base.mutex */
    struct ibv_qp_init_attr init;
};

static inline struct sv_context *sv_context(struct ibv_context *ibctx)
{
    return (struct sv_context*)((char*)ibctx -
                                offsetof(struct sv_context, vctx.context));
}

/* In the child of a fork: the context is the parent's. What would make or
 * change something fails with EIO, what destroys does nothing. */
static inline bool sv_is_orphaned(struct ibv_context *ibctx)
{
    return sv_context(ibctx)->orphaned;
}

static inline struct sv_pd *sv_pd(struct ibv_pd *pd)
{
    return (struct sv_pd*)pd;
}

static inline struct sv_cq *sv_cq(struct ibv_cq *cq)
{
    return (struct sv_cq*)cq;
}

static inline struct sv_srq *sv_srq(struct ibv_srq *srq)
{
    return (struct sv_srq*)srq;
}

static inline struct sv_qp *sv_qp(struct ibv_qp *qp)
{
    return (struct sv_qp*)qp;
}

static inline uint32_t sv_roundup_pow2(uint32_t value)
{
    return (value <= 1) ? 1 : 1u << (32 - __builtin_clz(value - 1));
}

uint64_t sv_now_ns(void);
uint64_t sv_random(void);

/* One sentence on stderr, "softverbs: ..." */
void sv_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether the code at this address is librdmacm's, which can do nothing here:
 * the kernel has no RDMA CM. */
bool sv_is_idle_rdmacm(const void *caller);

/* Runs in the child of a fork: the device stays with the parent. */
void sv_contexts_orphan(void);
/* An event of the port or the device, for every context of the process. */
void sv_contexts_post_event(enum ibv_event_type type);

/* ---- where this process is ---- */

/* Looks it up; the others tell what was found. */
void sv_address_init(void);
void sv_port_gid(union ibv_gid *gid_p);
/* Its place in the table, in which there is no other. */
uint32_t sv_port_gid_index(void);

/* For each message that arrives: no call. */
extern _Atomic uint16_t sv_lid;

static inline uint16_t sv_port_lid(void)
{
    return atomic_load_explicit(&sv_lid, memory_order_relaxed);
}

/* Whether an address is of this fabric. By the GID, if there is one: programs
 * that know Ethernet only leave the LID as it is. What is sent elsewhere is
 * lost. */
bool sv_address_is_local(const struct ibv_ah_attr *to);
/* Says once what is the matter with one that is not. */
void sv_address_check(const struct ibv_ah_attr *to);

/* ---- device ---- */

int sv_query_port(struct ibv_context *context, uint8_t port_num,
                  struct ibv_port_attr *attr, size_t length);

/* ---- events ---- */

int sv_async_init(struct sv_async *async);
void sv_async_cleanup(struct sv_async *async);
/* element NULL: the port. */
void sv_event_post(struct sv_context *ctx, enum ibv_event_type type,
                   void *element);
bool sv_event_is_of_port(enum ibv_event_type type);
/* Before an element goes: forgets its unread events and waits until the read
 * ones are acknowledged. The other arguments are the element's own. */
void sv_async_remove(struct sv_context *ctx, void *element,
                     pthread_mutex_t *mutex, pthread_cond_t *cond,
                     const uint32_t *acked, const uint32_t *sent);

/* Gives a CQ its place in the shared table, where peers find its channel. */
int sv_cq_bind_channel(struct sv_cq *cq, struct sv_channel *channel);
void sv_cq_unbind_channel(struct sv_cq *cq);
/* Sends the hints that others could not. */
void sv_channels_send_deferred(struct sv_node *node);
/* Whether the program waits for an event of this CQ. If none can come, it gets
 * one. */
bool sv_cq_check_wakeup(struct sv_cq *cq);
/* Takes away the names of what the program has not destroyed. */
void sv_channels_unlink(struct sv_node *node);

/* A completion came into a CQ of this process, or into one of a peer. */
void sv_cq_notify(struct sv_node *node, struct sv_peer *peer,
                  struct sv_shm_cq *shm, bool solicited);

/* ---- memory ---- */

/* Sum of the lengths, or -1 if a piece is not covered by its lkey. The pieces'
 * addresses, which count from their MR's iova, are stored in `out` as real
 * ones; out may be sge itself, or NULL. */
int64_t sv_sge_resolve(struct sv_node *node, uint32_t pdn,
                       const struct ibv_sge *sge, uint32_t num_sge, int access,
                       struct ibv_sge *out);

/* Whether pieces of this process that were resolved are still registered. */
bool sv_sge_is_registered(struct sv_node *node, const struct ibv_sge *sge,
                          uint32_t num_sge);

/* The same of pieces that a record names, the owner's, who may be ourselves:
 * then they must lie in the memory of their keys, too. */
bool sv_sge_is_valid(struct sv_node *node, struct sv_peer *owner,
                     const struct ibv_sge *sge, uint32_t num_sge);

/* Address in the peer behind (rkey, addr), or 0: access denied. */
uint64_t sv_mr_remote(struct sv_node *node, struct sv_peer *peer, uint32_t pdn,
                      uint32_t rkey, uint64_t addr, uint64_t length,
                      int access);

/* ---- completion queues ---- */

/* Completions in the ring. */
static inline uint32_t sv_cq_count(const struct sv_cq *cq)
{
    return atomic_load_explicit(&cq->tail, memory_order_relaxed) -
           atomic_load_explicit(&cq->head, memory_order_relaxed);
}

/* False: the CQ is overrun and the completion is lost. The caller lets the QP
 * die of it, when it has no locks. */
bool sv_cq_push(struct sv_cq *cq, const struct sv_cqe *cqe,
                enum sv_notify notify);

/* Puts the batch into the ring, and fires. Needs rx_lock. */
void sv_cq_flush(struct sv_cq *cq);

/* A place in the batch for a completion of the receive side. Needs rx_lock. */
static inline struct sv_cqe *sv_cq_next(struct sv_cq *cq, enum sv_notify notify)
{
    if (sv_unlikely(cq->num_batch == SV_BATCH)) {
        sv_cq_flush(cq);
    }
    if (notify > cq->batch_notify) {
        cq->batch_notify = notify;
    }
    return &cq->batch[cq->num_batch++];
}

/* The only way to let go of rx_lock: no completion stays in the batch. */
void sv_cq_rx_unlock(struct sv_cq *cq);
void sv_cq_remove_qp(struct sv_cq *cq, struct sv_qp *qp);
/* A sender waits: lets the QPs die whose rings are not in order. */
void sv_cq_audit(struct sv_cq *cq);
/* Receives whatever there is, for a program that is asleep. */
void sv_cq_drain(struct sv_cq *cq);
/* The same, also what no bell has told of. */
void sv_cq_drain_all(struct sv_cq *cq);
/* Fires if a completion is there that the CQ is armed for and that no event
 * has announced yet. */
void sv_cq_fire_pending(struct sv_cq *cq);
/* The program has read an event: it announced the oldest completion that none
 * had announced before. */
void sv_cq_event_read(struct sv_cq *cq);
/* A QP receives here from now on. 0 or -1: no memory. */
int sv_scan_add(struct sv_cq *cq, struct sv_qp *qp);
/* The QP takes no packets; its line is not looked at. Needs rx_lock. */
void sv_scan_stop(struct sv_cq *cq, struct sv_qp *qp);
void sv_scan_remove(struct sv_cq *cq, struct sv_qp *qp);
void sv_scan_cleanup(struct sv_cq *cq);
/* With many QPs, before each look at the active ones: takes up those whose
 * bells have rung, and lets go of the idle. Needs rx_lock. */
void sv_scan_update(struct sv_cq *cq);
/* Looks at all the idle, whatever their bells say. Needs rx_lock. */
void sv_scan_check_all_idle(struct sv_cq *cq);
int sv_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc);
/* Offers the CPU, unless another thread of the program takes it in vain. */
void sv_yield(struct sv_cq *cq);
int sv_req_notify_cq(struct ibv_cq *ibcq, int solicited_only);
/* As if a completion had come that has no room. */
void sv_cq_overrun(struct sv_cq *cq);

static inline bool sv_cq_is_armed(const struct sv_cq *cq)
{
    return (cq->index != 0) &&
           sv_is_armed(atomic_load_explicit(&cq->shm->state,
                                            memory_order_relaxed));
}

/* ---- receive queues ---- */

int sv_rq_init(struct sv_rq *rq, struct sv_node *node, uint32_t pdn,
               uint32_t depth, uint32_t max_sge);
void sv_rq_cleanup(struct sv_rq *rq);
/* Empty, as new. Nobody posts or takes meanwhile. */
void sv_rq_reset(struct sv_rq *rq);
/* Posts what is before `stop`. 0, or an errno with the culprit in *bad. */
int sv_rq_post(struct sv_rq *rq, struct ibv_recv_wr *wr,
               const struct ibv_recv_wr *stop, struct ibv_recv_wr **bad);
/* A QP of this receive CQ will take from the queue; one no longer does, and
 * nobody is left. */
void sv_rq_attach(struct sv_rq *rq, struct sv_cq *cq);
void sv_rq_detach(struct sv_rq *rq);
/* Copies the oldest RECV; false: there is none. */
bool sv_rq_take(struct sv_rq *rq, struct sv_rwqe *wqe);
/* The oldest RECV in its place. NULL: none, or others may take it. */
static inline const struct sv_rwqe *sv_rq_oldest(const struct sv_rq *rq)
{
    uint32_t taken = atomic_load_explicit(&rq->taken, memory_order_relaxed);

    return (rq->contended ||
            (atomic_load_explicit(&rq->ready, memory_order_acquire) == taken)) ?
                   NULL :
                   (const struct sv_rwqe*)(rq->wqes +
                                           (size_t)(taken & rq->mask) *
                                                   rq->stride);
}

/* It is taken, and its completion polled. */
static inline void sv_rq_finish(struct sv_rq *rq)
{
    atomic_store_explicit(&rq->taken,
                          atomic_load_explicit(&rq->taken,
                                               memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&rq->freed_at_once,
                          atomic_load_explicit(&rq->freed_at_once,
                                               memory_order_relaxed) + 1,
                          memory_order_release);
}

int sv_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
                 struct ibv_recv_wr **bad);
int sv_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
                     struct ibv_recv_wr **bad);

/* ---- queue pairs ---- */

int sv_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
                 struct ibv_send_wr **bad);

static inline struct sv_swqe *sv_tx_wqe(struct sv_tx *tx, uint32_t position)
{
    return (struct sv_swqe*)(tx->wqes +
                             (size_t)(position & tx->mask) * tx->stride);
}

/* Executes what is in the send queue as far as it goes. Needs tx.lock. */
void sv_tx_run(struct sv_qp *qp);
/* Completes everything in the send queue with FLUSH_ERR. Needs tx.lock. */
void sv_tx_flush(struct sv_qp *qp);
/* In SQD: raises the event that was asked for once nothing is under way. Needs
 * tx.lock. */
void sv_tx_drained(struct sv_qp *qp);
/* No message is offered any more: its memory may be used for something else
 * once this returns. Needs tx.lock. */
void sv_tx_withdraw(struct sv_qp *qp);
/* Lets go of the peers. Needs tx.lock. */
void sv_tx_disconnect(struct sv_qp *qp);
/* Puts a QP with work left on the stuck list. Needs tx.lock. */
void sv_stuck_add(struct sv_qp *qp);

enum sv_pusher {
    SV_PUSHER_POLLER,  /* a thread of the program */
    SV_PUSHER_SERVICE, /* the service thread, as the program's threads do not */
    SV_PUSHER_WATCH    /* the service thread, for those that cannot go on */
};

/* Tries every QP on the stuck list. The service thread also asks receivers for
 * room. */
void sv_stuck_run(struct sv_node *node, enum sv_pusher pusher);
void sv_stuck_remove(struct sv_qp *qp);

/* Receiving; all need rx_lock of the receive CQ. */
enum sv_fetched {
    SV_FETCHED,
    SV_FETCH_DECLINED, /* may not: the sender will push the message */
    SV_FETCH_WITHDRAWN,     /* the sender does not stand behind it any more */
    SV_FETCH_FAULT,    /* some of the memory is not mapped */
    SV_FETCH_CORRUPT   /* nobody makes such an offer */
};

/* Takes the message that a record offers into the RECV. `rec` is a copy of its
 * header, checked; `payload` is in the ring. */
enum sv_fetched sv_rx_fetch(struct sv_qp *qp, const struct sv_rec *rec,
                            const void *payload);
/* Receives up to `limit` messages and returns how many. notify: this is not
 * the program polling, so completions are worth an event. */
unsigned sv_rx_run(struct sv_qp *qp, unsigned limit, bool notify);
/* Whether what its sender says it has sent is there, and what it was told of us
 * still stands; if not, the QP dies. */
void sv_rx_audit(struct sv_qp *qp);
/* Begins to take packets; cannot while a sender is stopped in the middle of an
 * old one. */
bool sv_rx_can_open(struct sv_qp *qp);
void sv_rx_open(struct sv_qp *qp);
/* Takes no more packets. What an RC QP has acknowledged is delivered first, if
 * wanted: not by a QP that is destroyed, whose RECVs may be in memory that is
 * free already. -1: a sender is stopped in the middle of a packet. */
int sv_rx_close(struct sv_qp *qp, bool deliver);
/* Completes all RECVs of the QP with FLUSH_ERR. */
void sv_rx_flush(struct sv_qp *qp);
/* Receives a short message the short way; false: nothing was done. */
bool sv_rx_short(struct sv_qp *qp, const struct sv_rec *rec,
                 const void *payload);
void sv_rx_fill_wc(const struct sv_qp *qp, struct ibv_wc *wc, uint64_t wr_id,
                   enum ibv_wc_status status, const struct sv_rec *rec);
/* A completion of this QP was lost to an overrun. */
void sv_rx_overrun(struct sv_qp *qp);
/* Both of these if the send side said that they are due (rx_flush_due). */
void sv_rx_flush_if_due(struct sv_qp *qp);

/* Needs rx_lock of the receive CQ. */
void sv_qp_to_err(struct sv_qp *qp);
/* The context is closed under QPs that the program did not destroy: they take
 * no part in the fabric any more. */
void sv_qp_close_all(struct sv_context *ctx);
/* A peer asked for something that kills this QP. */
void sv_qp_remote_fault(struct sv_qp *qp);

#endif
