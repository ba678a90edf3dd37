/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs: what a QP has. tx is its send side, rx its receive side.
 */
#ifndef SV_QP_H
#define SV_QP_H

#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/objects/sv_rq.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sv_context;
struct sv_fault_qp;
struct sv_node;
struct sv_peer;

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

/* Send side of a QP. tx.lock guards all but `freed`. */
struct sv_tx {
    struct sv_spin     lock;
    uint32_t           lock_id; /* the node's, for `busy` over there */
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
    uint32_t           ring_room; /* that records may use: less, as long as the
                                   * sender may move to a larger ring */
    uint64_t           ring_from; /* position at which it has moved here */
    uint64_t           tail;
    uint64_t           head;    /* last seen; may still be in an earlier ring */
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

/* sv_rx.remote_qpn of a datagram QP. No QP has this number. */
#define SV_NO_REMOTE_QPN    UINT32_MAX

/* Receive side of a QP. rx_lock of the receive CQ guards all of it. */
struct sv_rx {
    bool            open;
    uint8_t        *ring;
    uint64_t        key;
    uint32_t        remote_qpn; /* QP number of the only sender, see below */
    uint32_t        ring_bytes;
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

static inline struct sv_qp *sv_qp(struct ibv_qp *qp)
{
    return (struct sv_qp*)qp;
}

/* Bytes of the sender's ring that the receiver has not taken yet. */
static inline uint64_t sv_tx_unread(const struct sv_tx *tx)
{
    return tx->tail - ((tx->head > tx->ring_from) ? tx->head : tx->ring_from);
}

static inline struct sv_swqe *sv_tx_wqe(struct sv_tx *tx, uint32_t position)
{
    return (struct sv_swqe*)(tx->wqes +
                             (size_t)(position & tx->mask) * tx->stride);
}

#endif
