/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send engine: executes the send queue of a QP in order, one WR at a time,
 * as far as it goes without waiting.
 *
 * Each WR is executed by a function that answers
 *     0          done
 *     SV_AGAIN   not now; tx.wait says what for
 *     other      an enum ibv_wc_status: failed, the QP goes to ERR
 *
 * A message counts as acknowledged when it is in the receiver's ring, a RECV
 * has been claimed for it, and it fits all RECVs that the receiver ever posted.
 * If it does not fit all of them, it waits for the receiver's verdict.
 *
 * Every touch of the receiver's memory lies between sv_tx_enter() and
 * sv_tx_leave(): see `busy` in sv_wire.h.
 */
#include "sv.h"

#include <errno.h>
#include <string.h>

#define SV_AGAIN    (-1)

/* A datagram waits this long for room in a ring that is not emptied. Dropping
 * at once would be legal, and ruin every protocol above. */
#define SV_ROOM_WAIT_NS    20000000u

/* ---- the connection ---- */

static inline void sv_tx_leave(struct sv_tx *tx)
{
    atomic_store_explicit(&tx->rem->busy, 0, memory_order_release);
}

/* False: nobody there who takes packets from this QP. */
static inline bool sv_tx_enter(struct sv_tx *tx)
{
    atomic_store_explicit(&tx->rem->busy, 1, memory_order_relaxed);
    sv_light_barrier(tx->peer->fence);
    if (sv_likely((atomic_load_explicit(&tx->rem->accept,
                                        memory_order_acquire) == tx->epoch) &&
                  sv_peer_alive(tx->peer))) {
        return true;
    }

    sv_tx_leave(tx);
    return false;
}

/* Whether the entry is the other end of this QP, as far as can be told. */
static bool sv_tx_is_partner(struct sv_qp *qp, struct sv_shm_qp *rem)
{
    return (atomic_load(&rem->qpn) == qp->attr.dest_qp_num) &&
           (atomic_load(&rem->dest_qpn) == qp->base.qp_num);
}

/* Takes the receiver's terms. Between enter and leave. */
static bool sv_tx_accept_terms(struct sv_qp *qp, struct sv_shm_qp *rem)
{
    struct sv_tx *tx = &qp->tx;
    uint32_t index   = sv_qpn_index(qp->attr.dest_qp_num);
    uint32_t bytes;

    /* A ring that was sent into already expects another packet than ours. */
    if (!sv_tx_is_partner(qp, rem) || (rem->type != IBV_QPT_RC) ||
        (rem->rq_psn != qp->attr.sq_psn) ||
        (atomic_load(&rem->ring_bytes) != 0)) {
        return false;
    }

    bytes = (sv_ring_reserve(tx->peer, index, SV_RING_BYTES) == 0) ?
                    SV_RING_BYTES : SV_RING_SMALL;
    tx->ring       = sv_peer_ring(tx->peer, index);
    tx->key        = rem->key;
    tx->ring_bytes = bytes;
    tx->tail       = 0;
    tx->head       = 0;
    tx->prodded_at = UINT64_MAX;
    tx->claimed    = 0;
    tx->credit     = 0;
    tx->rem_cq     = sv_peer_cq(tx->peer, rem->cq);
    tx->rem_srq    = (rem->srq == SV_NO_SRQ) ? NULL :
                     sv_peer_srq(tx->peer, rem->srq);
    atomic_store(&rem->ring_bytes, bytes);
    return true;
}

/* Finds the other end. Once per connection, and again at each timeout while
 * nobody answers. */
static bool sv_tx_reach(struct sv_qp *qp)
{
    struct sv_tx *tx = &qp->tx;
    uint32_t index   = sv_qpn_index(qp->attr.dest_qp_num);
    struct sv_shm_qp *rem;
    bool reached;

    if (tx->peer == NULL) {
        tx->peer = sv_peer_get(qp->node, sv_qpn_slot(qp->attr.dest_qp_num));
        if (tx->peer == NULL) {
            return false;
        }
    }
    if (!sv_peer_alive(tx->peer)) {
        sv_peer_put(qp->node, tx->peer);
        tx->peer = NULL;
        return false;
    }
    if (index >= atomic_load(&tx->peer->head->qp_ready)) {
        return false;
    }

    rem = sv_peer_qp(tx->peer, index);
    if (!sv_tx_is_partner(qp, rem)) {
        return false;
    }

    tx->rem   = rem;
    tx->epoch = atomic_load(&rem->accept);
    if ((tx->epoch == 0) || !sv_tx_enter(tx)) {
        tx->epoch = 0;
        return false;
    }

    reached = sv_tx_accept_terms(qp, rem);
    sv_tx_leave(tx);
    if (!reached) {
        tx->epoch = 0;
    }
    return reached;
}

static inline bool sv_tx_connect(struct sv_qp *qp)
{
    return ((qp->tx.epoch != 0) || sv_tx_reach(qp)) && sv_tx_enter(&qp->tx);
}

void sv_tx_disconnect(struct sv_qp *qp)
{
    struct sv_tx *tx = &qp->tx;
    unsigned i;

    if (tx->peer != NULL) {
        sv_peer_put(qp->node, tx->peer);
        tx->peer = NULL;
    }
    for (i = 0; i < SV_UD_PEERS; ++i) {
        if (tx->ud_peers[i] != NULL) {
            sv_peer_put(qp->node, tx->ud_peers[i]);
            tx->ud_peers[i] = NULL;
        }
    }
    tx->epoch = 0;
    tx->wait  = SV_WAIT_NONE;
    tx->tries = 0;
}

/* ---- waiting ---- */

static int sv_tx_wait(struct sv_tx *tx, enum sv_wait wait)
{
    tx->wait = wait;
    return SV_AGAIN;
}

/* No acknowledgement: send again after the timeout, retry_cnt times. */
static int sv_tx_no_answer(struct sv_qp *qp)
{
    struct sv_tx *tx = &qp->tx;
    uint64_t period  = 4096ull << qp->attr.timeout;

    if (tx->wait != SV_WAIT_ACK) {
        tx->wait  = SV_WAIT_ACK;
        tx->tries = 0;
    } else if (++tx->tries > qp->attr.retry_cnt) {
        return IBV_WC_RETRY_EXC_ERR;
    }

    tx->deadline = (qp->attr.timeout == 0) ? UINT64_MAX : sv_now_ns() + period;
    return SV_AGAIN;
}

/* Timer values of the specification, in units of 10 us. */
static uint64_t sv_rnr_ns(uint32_t code)
{
    static const uint32_t units[32] = {
        65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,
        48,    64,  96,  128, 192,  256,  384,  512,  768,  1024, 1536,
        2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152
    };

    return units[code & 31] * 10000ull;
}

/* The receiver has no RECV. rnr_retry 7 means for ever. */
static int sv_tx_not_ready(struct sv_qp *qp)
{
    struct sv_tx *tx = &qp->tx;

    if (tx->wait != SV_WAIT_RNR) {
        tx->wait  = SV_WAIT_RNR;
        tx->tries = 0;
    }
    if ((qp->attr.rnr_retry != 7) && (tx->tries++ >= qp->attr.rnr_retry)) {
        return IBV_WC_RNR_RETRY_EXC_ERR;
    }

    tx->deadline = sv_now_ns() + sv_rnr_ns(atomic_load(&tx->rem->min_rnr));
    return SV_AGAIN;
}

static bool sv_tx_timer_runs(const struct sv_tx *tx)
{
    return ((tx->wait == SV_WAIT_ACK) || (tx->wait == SV_WAIT_RNR)) &&
           (sv_now_ns() < tx->deadline);
}

/* ---- claiming a RECV ---- */

static bool sv_tx_claim_shared(struct sv_tx *tx)
{
    struct sv_shm_srq *srq = tx->rem_srq;
    uint32_t claimed       = atomic_load_explicit(&srq->claimed,
                                                  memory_order_relaxed);

    /* Counted first: if we die between the two steps, the owner gives back
     * one RECV too many, which costs a wait, and not one too few, for ever. */
    atomic_store_explicit(&tx->rem->claims,
                          atomic_load_explicit(&tx->rem->claims,
                                               memory_order_relaxed) + 1,
                          memory_order_relaxed);
    do {
        if ((int32_t)(tx->credit - claimed) <= 0) {
            tx->credit  = atomic_load_explicit(&srq->posted,
                                               memory_order_acquire);
            tx->min_len = atomic_load_explicit(&srq->min_len,
                                               memory_order_relaxed);
            if ((int32_t)(tx->credit - claimed) <= 0) {
                atomic_fetch_sub_explicit(&tx->rem->claims, 1,
                                          memory_order_relaxed);
                return false;
            }
        }
    } while (!atomic_compare_exchange_weak_explicit(&srq->claimed, &claimed,
                                                    claimed + 1,
                                                    memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

static bool sv_tx_claim(struct sv_tx *tx)
{
    if (tx->rem_srq != NULL) {
        return sv_tx_claim_shared(tx);
    }

    if (tx->claimed == tx->credit) {
        tx->credit  = atomic_load_explicit(&tx->rem->posted,
                                           memory_order_acquire);
        tx->min_len = atomic_load_explicit(&tx->rem->min_len,
                                           memory_order_relaxed);
        if (tx->claimed == tx->credit) {
            return false;
        }
    }
    ++tx->claimed;
    return true;
}

/* ---- records ---- */

/* Room for one record of `span` bytes in one piece; pads to the end of the ring
 * if it has to. NULL: not now. */
static struct sv_rec *sv_tx_room(struct sv_tx *tx, uint32_t span)
{
    uint32_t offset = tx->tail & (tx->ring_bytes - 1);
    uint32_t pad    = (tx->ring_bytes - offset < span) ?
                              tx->ring_bytes - offset : 0;
    struct sv_rec *rec;

    if (tx->tail + pad + span - tx->head > tx->ring_bytes) {
        tx->head = atomic_load_explicit(&tx->rem->head, memory_order_acquire);
        if (tx->tail + pad + span - tx->head > tx->ring_bytes) {
            return NULL;
        }
    }

    rec = (struct sv_rec*)(tx->ring + offset);
    if (pad == 0) {
        return rec;
    }

    rec->flags = SV_REC_PAD;
    atomic_store_explicit(&rec->tag, tx->tail ^ tx->key, memory_order_release);
    tx->tail += pad;
    return (struct sv_rec*)tx->ring;
}

/* Copies `bytes` of the message from `sent` on. */
static void sv_tx_gather(const struct sv_swqe *wqe, uint8_t *to, uint32_t bytes)
{
    uint32_t skip = wqe->sent;
    unsigned i;
    uint32_t n;

    for (i = 0; bytes > 0; ++i) {
        if (skip >= wqe->sge[i].length) {
            skip -= wqe->sge[i].length;
            continue;
        }
        n = wqe->sge[i].length - skip;
        n = (n < bytes) ? n : bytes;
        memcpy(to, (char*)(uintptr_t)wqe->sge[i].addr + skip, n);
        to    += n;
        bytes -= n;
        skip   = 0;
    }
}

static bool sv_tx_has_imm(const struct sv_swqe *wqe)
{
    return (wqe->opcode == IBV_WR_SEND_WITH_IMM) ||
           (wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM);
}

static void sv_tx_fill_record(struct sv_qp *qp, struct sv_rec *rec,
                              const struct sv_swqe *wqe, uint32_t bytes)
{
    unsigned flags = 0;

    if (wqe->sent == 0) {
        flags |= SV_REC_FIRST;
    }
    if (wqe->sent + bytes == wqe->total) {
        flags |= SV_REC_LAST;
    }
    if (sv_tx_has_imm(wqe)) {
        flags |= SV_REC_IMM;
    }

    rec->bytes   = bytes;
    rec->total   = wqe->total;
    rec->src_qpn = qp->base.qp_num;
    rec->imm     = wqe->imm;
    rec->flags   = flags;
    rec->sl      = 0;
    sv_tx_gather(wqe, (uint8_t*)(rec + 1), bytes);
}

/* Sends what is left of the message; false: the ring is full. */
static bool sv_tx_fragments(struct sv_qp *qp, struct sv_swqe *wqe)
{
    struct sv_tx *tx = &qp->tx;
    uint32_t max     = (tx->ring_bytes == SV_RING_BYTES) ?
                               SV_FRAG_MAX : SV_RING_SMALL / 4;
    struct sv_rec *rec;
    uint32_t bytes;

    do {
        bytes = wqe->total - wqe->sent;
        bytes = (bytes < max) ? bytes : max;
        rec   = sv_tx_room(tx, sv_rec_span(bytes));
        if (rec == NULL) {
            return false;
        }

        sv_tx_fill_record(qp, rec, wqe, bytes);
        atomic_store_explicit(&rec->tag, tx->tail ^ tx->key,
                              memory_order_release);
        tx->tail  += sv_rec_span(bytes);
        wqe->sent += bytes;
    } while (wqe->sent < wqe->total);
    return true;
}

/* ---- requests ---- */

/* Local keys, once per WR; inline data have none. */
static int sv_tx_resolve(struct sv_qp *qp, struct sv_swqe *wqe, int access)
{
    int64_t total;

    if (sv_likely(wqe->resolved)) {
        return 0;
    }

    total = sv_sge_resolve(qp->node, qp->pdn, wqe->sge, wqe->num_sge, access,
                           wqe->sge);
    if (total < 0) {
        return IBV_WC_LOC_PROT_ERR;
    }
    if (total > SV_LIMIT_MSG) {
        return IBV_WC_LOC_LEN_ERR;
    }

    wqe->total    = total;
    wqe->resolved = true;
    return 0;
}

/* In the ring, but perhaps too long for its RECV. */
static int sv_tx_verdict(struct sv_qp *qp, struct sv_swqe *wqe)
{
    struct sv_tx *tx = &qp->tx;

    switch (atomic_load_explicit(&tx->rem->nak, memory_order_acquire)) {
    case SV_NAK_INVALID_REQUEST:
        return IBV_WC_REM_INV_REQ_ERR;
    case SV_NAK_OPERATIONAL:
        return IBV_WC_REM_OP_ERR;
    default:
        break;
    }

    if (atomic_load_explicit(&tx->rem->head, memory_order_acquire) >=
        wqe->end) {
        return 0;
    }
    if ((atomic_load(&tx->rem->accept) != tx->epoch) ||
        !sv_peer_alive(tx->peer)) {
        return sv_tx_no_answer(qp);
    }
    return sv_tx_wait(tx, SV_WAIT_VERDICT);
}

/* The ring is full. A receiver that sleeps until a message is complete has to
 * be told, once for each time that the ring filled up. */
static void sv_tx_prod(struct sv_tx *tx)
{
    if ((tx->prodded_at != tx->tail) &&
        (atomic_load(&tx->rem_cq->armed) != SV_ARMED_NO)) {
        tx->prodded_at = tx->tail;
        sv_keeper_ring(tx->peer->head);
    }
}

static int sv_tx_send(struct sv_qp *qp, struct sv_swqe *wqe)
{
    struct sv_tx *tx = &qp->tx;
    bool solicited   = (wqe->flags & IBV_SEND_SOLICITED) != 0;
    bool all;
    int ret;

    if (sv_unlikely(wqe->stage == SV_STAGE_SENT)) {
        return sv_tx_verdict(qp, wqe);
    }

    ret = sv_tx_resolve(qp, wqe, 0);
    if (sv_unlikely(ret != 0)) {
        return ret;
    }
    if (sv_unlikely(!sv_tx_connect(qp))) {
        return sv_tx_no_answer(qp);
    }
    if (wqe->stage == SV_STAGE_NEW) {
        if (sv_unlikely(!sv_tx_claim(tx))) {
            sv_tx_leave(tx);
            return sv_tx_not_ready(qp);
        }
        wqe->stage = SV_STAGE_CLAIMED;
    }

    all = sv_tx_fragments(qp, wqe);
    sv_tx_leave(tx);
    if (sv_unlikely(!all)) {
        sv_tx_prod(tx);
        return sv_tx_wait(tx, SV_WAIT_RING);
    }

    sv_cq_notify(qp->node, tx->peer, tx->rem_cq, solicited);
    if (sv_unlikely(wqe->total > tx->min_len)) {
        wqe->end   = tx->tail;
        wqe->stage = SV_STAGE_SENT;
        return sv_tx_verdict(qp, wqe);
    }
    return 0;
}

/* The receiver's QP does not survive a request that it must deny. */
static int sv_tx_denied(struct sv_tx *tx, enum ibv_wc_status status)
{
    atomic_store(&tx->rem->fault, status);
    sv_keeper_ring(tx->peer->head);
    return status;
}

/* What process_vm_*() refused, as a completion. Where from EFAULT came is not
 * told, and pages that are registered but unmapped are a fault of the program
 * that registered them; the far side's is as likely as the near side's. */
static int sv_tx_copy_failed(struct sv_qp *qp)
{
    static bool said;

    if (errno == ESRCH) {
        return sv_tx_no_answer(qp);
    }
    if ((errno == EPERM) || (errno == ENOSYS)) {
        if (!said) {
            said = true;
            sv_say("RDMA between processes is impossible: process_vm_writev: "
                   "%m; a container's seccomp profile or the ptrace scope of "
                   "this kernel forbids it");
        }
    }
    return IBV_WC_REM_OP_ERR;
}

static int sv_tx_notice(struct sv_qp *qp, struct sv_swqe *wqe)
{
    struct sv_tx *tx   = &qp->tx;
    struct sv_rec *rec = sv_tx_room(tx, sv_rec_span(0));

    if (rec == NULL) {
        return sv_tx_wait(tx, SV_WAIT_RING);
    }

    wqe->sent = 0;
    sv_tx_fill_record(qp, rec, wqe, 0);
    rec->flags = SV_REC_FIRST | SV_REC_LAST | SV_REC_IMM | SV_REC_WRITE;
    atomic_store_explicit(&rec->tag, tx->tail ^ tx->key, memory_order_release);
    tx->tail += sv_rec_span(0);
    return 0;
}

/* Between enter and leave. */
static int sv_tx_write_entered(struct sv_qp *qp, struct sv_swqe *wqe)
{
    struct sv_tx *tx = &qp->tx;
    bool imm         = (wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM);
    uint64_t addr;

    if (imm && (wqe->stage == SV_STAGE_NEW)) {
        if (!sv_tx_claim(tx)) {
            return sv_tx_not_ready(qp);
        }
        wqe->stage = SV_STAGE_CLAIMED;
    }

    if (wqe->total > 0) {
        addr = (atomic_load(&tx->rem->access) & IBV_ACCESS_REMOTE_WRITE) ?
                       sv_mr_remote(tx->peer, tx->rem->pdn, wqe->rdma.rkey,
                                    wqe->rdma.addr, wqe->total,
                                    IBV_ACCESS_REMOTE_WRITE) : 0;
        if (addr == 0) {
            return sv_tx_denied(tx, IBV_WC_REM_ACCESS_ERR);
        }
        if (sv_peer_write(tx->peer, addr, wqe->sge, wqe->num_sge) != 0) {
            return sv_tx_copy_failed(qp);
        }
    }
    return imm ? sv_tx_notice(qp, wqe) : 0;
}

static int sv_tx_write(struct sv_qp *qp, struct sv_swqe *wqe)
{
    int ret = sv_tx_resolve(qp, wqe, 0);

    if (ret != 0) {
        return ret;
    }
    if (!sv_tx_connect(qp)) {
        return sv_tx_no_answer(qp);
    }

    ret = sv_tx_write_entered(qp, wqe);
    sv_tx_leave(&qp->tx);
    if ((ret == 0) && (wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)) {
        sv_cq_notify(qp->node, qp->tx.peer, qp->tx.rem_cq,
                     (wqe->flags & IBV_SEND_SOLICITED) != 0);
    }
    return ret;
}

static int sv_tx_read_entered(struct sv_qp *qp, struct sv_swqe *wqe)
{
    struct sv_tx *tx = &qp->tx;
    uint64_t addr;

    if (wqe->total == 0) {
        return 0;
    }

    addr = (atomic_load(&tx->rem->access) & IBV_ACCESS_REMOTE_READ) ?
                   sv_mr_remote(tx->peer, tx->rem->pdn, wqe->rdma.rkey,
                                wqe->rdma.addr, wqe->total,
                                IBV_ACCESS_REMOTE_READ) : 0;
    if (addr == 0) {
        return sv_tx_denied(tx, IBV_WC_REM_ACCESS_ERR);
    }
    if (sv_peer_read(tx->peer, addr, wqe->sge, wqe->num_sge) != 0) {
        return sv_tx_copy_failed(qp);
    }
    return 0;
}

static int sv_tx_read(struct sv_qp *qp, struct sv_swqe *wqe)
{
    int ret = sv_tx_resolve(qp, wqe, IBV_ACCESS_LOCAL_WRITE);

    if (ret != 0) {
        return ret;
    }
    if (!sv_tx_connect(qp)) {
        return sv_tx_no_answer(qp);
    }

    ret = sv_tx_read_entered(qp, wqe);
    sv_tx_leave(&qp->tx);
    return ret;
}

/* Read, compute, write, under a lock of the target process: atomic towards all
 * other requests on this device, which is IBV_ATOMIC_HCA. */
static int sv_tx_atomic_locked(struct sv_qp *qp, struct sv_swqe *wqe,
                               uint64_t addr)
{
    struct sv_peer *peer = qp->tx.peer;
    uint64_t old, new;
    struct ibv_sge sge = {.addr = (uintptr_t)&old, .length = sizeof(old)};

    if (sv_peer_read(peer, addr, &sge, 1) != 0) {
        return -1;
    }

    new = old + wqe->rdma.compare_add;
    if (wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        new = (old == wqe->rdma.compare_add) ? wqe->rdma.swap : old;
    }
    sge.addr = (uintptr_t)&new;
    if ((new != old) && (sv_peer_write(peer, addr, &sge, 1) != 0)) {
        return -1;
    }

    return sv_peer_read(qp->node->self, (uintptr_t)&old, wqe->sge,
                        wqe->num_sge);
}

static int sv_tx_atomic_entered(struct sv_qp *qp, struct sv_swqe *wqe)
{
    struct sv_tx *tx = &qp->tx;
    uint64_t addr;
    int ret;

    if ((wqe->rdma.addr % sizeof(uint64_t)) != 0) {
        return sv_tx_denied(tx, IBV_WC_REM_INV_REQ_ERR);
    }

    addr = (atomic_load(&tx->rem->access) & IBV_ACCESS_REMOTE_ATOMIC) ?
                   sv_mr_remote(tx->peer, tx->rem->pdn, wqe->rdma.rkey,
                                wqe->rdma.addr, sizeof(uint64_t),
                                IBV_ACCESS_REMOTE_ATOMIC) : 0;
    if (addr == 0) {
        return sv_tx_denied(tx, IBV_WC_REM_ACCESS_ERR);
    }
    if (!sv_shm_lock(qp->node, &tx->peer->head->atomic_lock)) {
        return sv_tx_wait(tx, SV_WAIT_RING);
    }

    ret = sv_tx_atomic_locked(qp, wqe, addr);
    sv_shm_unlock(&tx->peer->head->atomic_lock);
    return (ret == 0) ? 0 : sv_tx_copy_failed(qp);
}

static int sv_tx_atomic(struct sv_qp *qp, struct sv_swqe *wqe)
{
    int ret = sv_tx_resolve(qp, wqe, IBV_ACCESS_LOCAL_WRITE);

    if (ret != 0) {
        return ret;
    }
    if (wqe->total != sizeof(uint64_t)) {
        return IBV_WC_LOC_LEN_ERR;
    }
    if (!sv_tx_connect(qp)) {
        return sv_tx_no_answer(qp);
    }

    ret = sv_tx_atomic_entered(qp, wqe);
    sv_tx_leave(&qp->tx);
    return ret;
}

/* ---- datagrams ---- */

/* The segment behind a QP number; a few are kept at hand. */
static struct sv_peer *sv_tx_ud_peer(struct sv_qp *qp, uint32_t qpn)
{
    uint32_t slot         = sv_qpn_slot(qpn);
    struct sv_peer **kept = &qp->tx.ud_peers[slot % SV_UD_PEERS];

    if (*kept != NULL) {
        if (((*kept)->slot == slot) && sv_peer_alive(*kept)) {
            return *kept;
        }
        sv_peer_put(qp->node, *kept);
    }

    *kept = sv_peer_get(qp->node, slot);
    return *kept;
}

/* The entry that takes this datagram, or NULL: it is lost. */
static struct sv_shm_qp *sv_tx_ud_target(struct sv_peer *peer,
                                         const struct sv_swqe *wqe)
{
    uint32_t index = sv_qpn_index(wqe->ud.qpn);
    struct sv_shm_qp *rem;

    if (index >= atomic_load(&peer->head->qp_ready)) {
        return NULL;
    }

    rem = sv_peer_qp(peer, index);
    if ((atomic_load(&rem->qpn) != wqe->ud.qpn) ||
        (atomic_load(&rem->accept) == 0) || (rem->type != IBV_QPT_UD) ||
        (atomic_load(&rem->qkey) != wqe->ud.qkey)) {
        return NULL;
    }
    return rem;
}

/* Under the lock of the ring: position for a record, or NULL: no room. */
static struct sv_rec *sv_tx_ud_room(struct sv_shm_qp *rem, uint8_t *ring,
                                    uint32_t span, uint64_t *tail_p)
{
    uint64_t tail   = atomic_load_explicit(&rem->tail, memory_order_relaxed);
    uint64_t head   = atomic_load_explicit(&rem->head, memory_order_acquire);
    uint32_t offset = tail & (SV_RING_BYTES - 1);
    uint32_t pad    = (SV_RING_BYTES - offset < span) ?
                              SV_RING_BYTES - offset : 0;
    struct sv_rec *rec;

    if (tail + pad + span - head > SV_RING_BYTES) {
        return NULL;
    }

    rec     = (struct sv_rec*)(ring + offset);
    *tail_p = tail + pad;
    if (pad == 0) {
        return rec;
    }

    rec->flags = SV_REC_PAD;
    atomic_store_explicit(&rec->tag, tail ^ rem->key, memory_order_release);
    atomic_store_explicit(&rem->tail, tail + pad, memory_order_relaxed);
    return (struct sv_rec*)ring;
}

/* 0: sent or lost; SV_AGAIN: no room. */
static int sv_tx_ud_locked(struct sv_qp *qp, struct sv_swqe *wqe,
                           struct sv_peer *peer, struct sv_shm_qp *rem)
{
    uint8_t *ring = sv_peer_ring(peer, sv_qpn_index(wqe->ud.qpn));
    uint32_t span = sv_rec_span(wqe->total);
    struct sv_rec *rec;
    uint64_t tail;

    if (sv_tx_ud_target(peer, wqe) == NULL) {
        return 0; /* closed meanwhile */
    }

    rec = sv_tx_ud_room(rem, ring, span, &tail);
    if (rec == NULL) {
        return SV_AGAIN;
    }

    sv_tx_fill_record(qp, rec, wqe, wqe->total);
    rec->sl     = wqe->ud.sl;
    rec->flags |= wqe->ud.global ? SV_REC_GRH : 0;
    atomic_store_explicit(&rec->tag, tail ^ rem->key, memory_order_release);
    atomic_store_explicit(&rem->tail, tail + span, memory_order_relaxed);
    return 0;
}

/* No room: wait for it, but only once as long as nothing moves. */
static int sv_tx_ud_full(struct sv_tx *tx, struct sv_shm_qp *rem)
{
    uint64_t jam = atomic_load(&rem->head) | 1;

    if (atomic_load(&rem->jam_head) == jam) {
        return 0;
    }
    if (tx->wait != SV_WAIT_ROOM) {
        tx->deadline = sv_now_ns() + SV_ROOM_WAIT_NS;
        return sv_tx_wait(tx, SV_WAIT_ROOM);
    }
    if (sv_now_ns() < tx->deadline) {
        return SV_AGAIN;
    }

    atomic_store(&rem->jam_head, jam);
    return 0;
}

/* Success means "sent", as on any network. */
static int sv_tx_datagram(struct sv_qp *qp, struct sv_swqe *wqe)
{
    struct sv_shm_qp *rem;
    struct sv_peer *peer;
    int ret;

    ret = sv_tx_resolve(qp, wqe, 0);
    if (ret != 0) {
        return ret;
    }
    if (wqe->total > SV_UD_MTU) {
        return IBV_WC_LOC_LEN_ERR;
    }

    peer = (wqe->ud.dlid == SV_LID) ? sv_tx_ud_peer(qp, wqe->ud.qpn) : NULL;
    rem  = (peer != NULL) ? sv_tx_ud_target(peer, wqe) : NULL;
    if ((rem == NULL) || !sv_shm_lock(qp->node, &rem->lock)) {
        return 0;
    }

    ret = sv_tx_ud_locked(qp, wqe, peer, rem);
    sv_shm_unlock(&rem->lock);
    if (ret == SV_AGAIN) {
        return sv_tx_ud_full(&qp->tx, rem);
    }

    sv_cq_notify(qp->node, peer, sv_peer_cq(peer, rem->cq),
                 (wqe->flags & IBV_SEND_SOLICITED) != 0);
    return 0;
}

/* ---- the queue ---- */

static int sv_tx_execute(struct sv_qp *qp, struct sv_swqe *wqe)
{
    if (qp->base.qp_type == IBV_QPT_UD) {
        return sv_tx_datagram(qp, wqe);
    }

    switch (wqe->opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
        return sv_tx_send(qp, wqe);
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return sv_tx_write(qp, wqe);
    case IBV_WR_RDMA_READ:
        return sv_tx_read(qp, wqe);
    default:
        return sv_tx_atomic(qp, wqe);
    }
}

static enum ibv_wc_opcode sv_wc_opcode(uint32_t wr_opcode)
{
    switch (wr_opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
        return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return IBV_WC_FETCH_ADD;
    default:
        return IBV_WC_SEND;
    }
}

/* The oldest WR is over. Good ones are reported if they asked for it, bad ones
 * always. */
static void sv_tx_retire(struct sv_qp *qp, const struct sv_swqe *wqe,
                         enum ibv_wc_status status)
{
    struct sv_cqe cqe;

    ++qp->tx.done;
    if ((status == IBV_WC_SUCCESS) &&
        ((wqe->flags & IBV_SEND_SIGNALED) == 0) && !qp->sq_sig_all) {
        return;
    }

    memset(&cqe.wc, 0, sizeof(cqe.wc));
    cqe.qp          = qp;
    cqe.kind        = SV_CQE_SEND;
    cqe.slot        = qp->tx.done;
    cqe.wc.wr_id    = wqe->wr_id;
    cqe.wc.status   = status;
    cqe.wc.opcode   = sv_wc_opcode(wqe->opcode);
    cqe.wc.byte_len = wqe->total;
    cqe.wc.qp_num   = qp->base.qp_num;
    sv_cq_push(sv_cq(qp->base.send_cq), &cqe, true);
}

void sv_tx_flush(struct sv_qp *qp)
{
    struct sv_tx *tx = &qp->tx;

    while (tx->done != tx->posted) {
        sv_tx_retire(qp, sv_tx_wqe(tx, tx->done), IBV_WC_WR_FLUSH_ERR);
    }
}

/* A datagram QP stops sending (SQE); a connected one stops altogether. */
static void sv_tx_fail(struct sv_qp *qp, const struct sv_swqe *wqe,
                       enum ibv_wc_status status)
{
    bool is_ud = (qp->base.qp_type == IBV_QPT_UD);

    atomic_store(&qp->state, is_ud ? IBV_QPS_SQE : IBV_QPS_ERR);
    sv_tx_retire(qp, wqe, status);
    sv_tx_flush(qp);
    if (!is_ud) {
        atomic_store(&qp->rx_flush_due, true);
    }
}

static bool sv_swqe_is_begun(const struct sv_swqe *wqe)
{
    return (wqe->stage != SV_STAGE_NEW) || (wqe->sent > 0);
}

/* Whether the state lets the oldest WR be worked on: SQD finishes what is
 * begun and begins nothing. */
static bool sv_tx_may_run(struct sv_qp *qp)
{
    uint32_t state = atomic_load_explicit(&qp->state, memory_order_relaxed);

    return sv_likely(state == IBV_QPS_RTS) ||
           ((state == IBV_QPS_SQD) &&
            sv_swqe_is_begun(sv_tx_wqe(&qp->tx, qp->tx.done)));
}

void sv_tx_drained(struct sv_qp *qp)
{
    struct sv_tx *tx = &qp->tx;

    if ((atomic_load(&qp->state) == IBV_QPS_SQD) && tx->drain_event &&
        ((tx->done == tx->posted) ||
         !sv_swqe_is_begun(sv_tx_wqe(tx, tx->done)))) {
        tx->drain_event = false;
        sv_async_raise(qp->ctx, IBV_EVENT_SQ_DRAINED, qp);
    }
}

void sv_tx_run(struct sv_qp *qp)
{
    struct sv_tx *tx = &qp->tx;
    struct sv_swqe *wqe;
    int ret;

    while (tx->done != tx->posted) {
        if (sv_unlikely(!sv_tx_may_run(qp))) {
            sv_tx_drained(qp);
            return;
        }
        if (sv_unlikely(tx->wait != SV_WAIT_NONE) && sv_tx_timer_runs(tx)) {
            return;
        }

        wqe = sv_tx_wqe(tx, tx->done);
        ret = sv_tx_execute(qp, wqe);
        if (sv_unlikely(ret == SV_AGAIN)) {
            return;
        }

        tx->wait = SV_WAIT_NONE;
        if (sv_unlikely(ret != 0)) {
            sv_tx_fail(qp, wqe, ret);
            return;
        }
        sv_tx_retire(qp, wqe, IBV_WC_SUCCESS);
    }
}

/* ---- the stuck list ---- */

/* A QP could not finish its queue, or owes its RECVs a flush. Needs tx.lock. */
void sv_tx_enlist(struct sv_qp *qp)
{
    struct sv_node *node = qp->node;
    bool nudge           = false;

    sv_spin_lock(&node->stuck_lock);
    if (!qp->tx.stuck) {
        qp->tx.stuck      = true;
        qp->tx.stuck_next = node->stuck;
        node->stuck       = qp;
        nudge = (atomic_fetch_add(&node->num_stuck, 1) == 0);
    }
    sv_spin_unlock(&node->stuck_lock);
    if (nudge) {
        sv_keeper_nudge(node);
    }
}

static void sv_tx_unlink(struct sv_node *node, struct sv_qp **pp)
{
    struct sv_qp *qp = *pp;

    *pp          = qp->tx.stuck_next;
    qp->tx.stuck = false;
    atomic_fetch_sub(&node->num_stuck, 1);
}

void sv_tx_unlist(struct sv_qp *qp)
{
    struct sv_node *node = qp->node;
    struct sv_qp **pp;

    sv_spin_lock(&node->stuck_lock);
    if (qp->tx.stuck) {
        for (pp = &node->stuck; *pp != qp; pp = &(*pp)->tx.stuck_next) {
        }
        sv_tx_unlink(node, pp);
    }
    sv_spin_unlock(&node->stuck_lock);
}

/* True: nothing is left to do for this QP. Needs stuck_lock. */
static bool sv_tx_push(struct sv_qp *qp)
{
    struct sv_cq *cq = sv_cq(qp->base.recv_cq);
    bool idle;

    if (!sv_spin_try(&qp->tx.lock)) {
        return false;
    }
    sv_tx_run(qp);
    idle = (qp->tx.done == qp->tx.posted);
    sv_spin_unlock(&qp->tx.lock);

    if (atomic_load(&qp->rx_flush_due)) {
        if (!sv_spin_try(&cq->rx_lock)) {
            return false;
        }
        sv_rx_settle(qp);
        sv_spin_unlock(&cq->rx_lock);
    }
    return idle;
}

void sv_tx_push_stuck(struct sv_node *node)
{
    struct sv_qp **pp;

    if (!sv_spin_try(&node->stuck_lock)) {
        return;
    }

    for (pp = &node->stuck; *pp != NULL;) {
        if (sv_tx_push(*pp)) {
            sv_tx_unlink(node, pp);
        } else {
            pp = &(*pp)->tx.stuck_next;
        }
    }
    sv_spin_unlock(&node->stuck_lock);
}
