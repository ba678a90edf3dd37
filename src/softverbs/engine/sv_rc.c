/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reliable connections: reaching the other end, claiming its RECVs, its ring.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/engine/sv_rc.h"
#include "softverbs/fabric/sv_doorbell.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/fabric/sv_port.h"
#include "softverbs/fabric/sv_table.h"
#include "softverbs/objects/sv_qp.h"

/* ---- the connection ---- */

/* Whether the entry is the other end of this QP, as far as can be told. */
static bool sv_tx_is_remote_of(struct sv_qp *qp, struct sv_shm_qp *rem)
{
    return (atomic_load(&rem->qpn) == qp->attr.dest_qp_num) &&
           (atomic_load(&rem->dest_qpn) == qp->base.qp_num);
}

/* One line of a ring is for the record that leaves it: see SV_RING_BYTES. */
static void sv_tx_use_ring(struct sv_tx *tx, uint32_t bytes, uint64_t from)
{
    tx->ring       = sv_peer_ring(tx->peer, sv_peer_qp_index(tx->peer, tx->rem),
                                  bytes);
    tx->ring_bytes = bytes;
    tx->ring_room  = bytes - ((bytes < SV_RING_BYTES) ? SV_LINE : 0);
    tx->ring_from  = from;
    tx->tail       = from;
    atomic_store(&tx->rem->ring_bytes, bytes);
}

/* Reads the receiver's terms. Between sv_tx_enter() and sv_tx_leave(). */
static bool sv_tx_accept_terms(struct sv_qp *qp, struct sv_shm_qp *rem)
{
    struct sv_tx *tx = &qp->tx;
    uint32_t srq     = rem->srq;

    /* A ring that was sent into expects another PSN than ours. */
    if (!sv_tx_is_remote_of(qp, rem) || (rem->type != IBV_QPT_RC) ||
        (rem->rq_psn != qp->attr.sq_psn) ||
        (atomic_load(&rem->ring_bytes) != 0)) {
        return false;
    }

    tx->rem_cq  = sv_peer_named_cq(tx->peer, rem->cq);
    tx->rem_srq = (srq == SV_NO_SRQ) ? NULL : sv_peer_named_srq(tx->peer, srq);
    if ((tx->rem_cq == NULL) ||
        ((tx->rem_srq == NULL) && (srq != SV_NO_SRQ))) {
        return false;
    }

    tx->key               = rem->key;
    tx->broken            = false;
    tx->receiver_woken_at = UINT64_MAX;
    tx->poll_requested_at = UINT64_MAX;
    tx->claimed           = 0;
    tx->credit            = 0;
    tx->declined          = false;
    tx->head              = 0;
    sv_tx_use_ring(tx, SV_RING_SMALL, 0);
    return true;
}

/* Finds the other end: once per connection, and again at each timeout while
 * nobody answers. */
static bool sv_tx_reach(struct sv_qp *qp)
{
    struct sv_tx *tx = &qp->tx;
    uint32_t index   = sv_qpn_index(qp->attr.dest_qp_num);
    struct sv_shm_qp *rem;
    bool reached;

    if (tx->peer == NULL) {
        if (sv_address_is_local(&qp->attr.ah_attr)) {
            tx->peer = sv_peer_get(qp->node, sv_qpn_slot(qp->attr.dest_qp_num));
        }
        if (tx->peer == NULL) {
            return false;
        }
    }
    if (!sv_peer_alive(tx->peer)) {
        sv_peer_put(qp->node, tx->peer);
        tx->peer = NULL;
        return false;
    }
    if (!sv_peer_has_qp(tx->peer, index)) {
        return false;
    }

    rem = sv_peer_qp(tx->peer, index);
    if (!sv_tx_is_remote_of(qp, rem)) {
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

bool sv_tx_connect(struct sv_qp *qp)
{
    sv_assert_held(&qp->tx.lock);
    return ((qp->tx.epoch != 0) || sv_tx_reach(qp)) && sv_tx_enter(&qp->tx);
}

/* ---- waiting ---- */

int sv_tx_ack_timeout(struct sv_qp *qp)
{
    struct sv_tx *tx = &qp->tx;
    uint64_t period  = 4096ull << qp->attr.timeout;

    sv_assert_held(&qp->tx.lock);
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

int sv_tx_rnr(struct sv_qp *qp)
{
    struct sv_tx *tx = &qp->tx;

    sv_assert_held(&qp->tx.lock);
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

/* ---- claiming a RECV ---- */

static bool sv_tx_claim_shared(struct sv_tx *tx)
{
    struct sv_shm_srq *srq = tx->rem_srq;
    uint32_t claimed       = atomic_load_explicit(&srq->claimed,
                                                  memory_order_relaxed);

    /* Counted first. If we die between the two steps, the owner gives back one
     * RECV too many, which costs a wait. The other order would give back one
     * too few, for ever. */
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

bool sv_tx_claim(struct sv_tx *tx)
{
    sv_assert_held(&tx->lock);
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

/* The receiver's head can neither go back nor pass our tail. Otherwise the
 * connection is broken. */
void sv_tx_update_head(struct sv_tx *tx)
{
    uint64_t head = atomic_load_explicit(&tx->rem->head, memory_order_acquire);

    sv_assert_held(&tx->lock);
    if (sv_likely(head - tx->head <= tx->tail - tx->head)) {
        tx->head = head;
    } else if (!sv_tx_is_closed(tx)) {
        tx->broken = true;
    }
}

void sv_tx_fail_remote_qp(struct sv_peer *peer, struct sv_shm_qp *rem,
                          uint32_t fault)
{
    atomic_store(&rem->fault, fault);
    atomic_store(&peer->head->faults, 1);
    sv_doorbell_ring(peer->head);
}

/* The receiver's entry is damaged: both ends fail. */
int sv_tx_broken(struct sv_tx *tx)
{
    if (sv_tx_enter(tx)) { /* not the entry's next QP */
        sv_tx_fail_remote_qp(tx->peer, tx->rem, SV_KILL_FATAL);
        sv_tx_leave(tx);
    }
    return IBV_WC_REM_OP_ERR;
}

int sv_tx_no_room(struct sv_tx *tx)
{
    return tx->broken ? sv_tx_broken(tx) : sv_tx_wait(tx, SV_WAIT_RING);
}

/* The smallest ring that is larger, and in which a message of so many bytes is
 * one record, if that is possible. */
static uint32_t sv_ring_above(uint32_t bytes, uint32_t total)
{
    return ((bytes < SV_RING_MIDDLE) &&
            (total <= sv_ring_max_record(SV_RING_MIDDLE))) ?
                   SV_RING_MIDDLE : SV_RING_BYTES;
}

__attribute__((noinline)) bool sv_tx_move(struct sv_tx *tx, uint32_t total)
{
    uint32_t bytes     = sv_ring_above(tx->ring_bytes, total);
    uint32_t offset    = tx->tail & (tx->ring_bytes - 1);
    struct sv_rec *rec = (struct sv_rec*)(tx->ring + offset);
    uint64_t from      = tx->tail;

    sv_assert_held(&tx->lock);
    if (!sv_tx_may_move(tx)) {
        return false;
    }
    if (sv_ring_reserve(tx->peer, sv_peer_qp_index(tx->peer, tx->rem),
                        bytes) != 0) {
        tx->ring_room = tx->ring_bytes; /* asks once */
        return false;
    }

    rec->bytes = 0;
    rec->total = bytes;
    rec->flags = SV_REC_MOVE;
    sv_tx_use_ring(tx, bytes, sv_ring_next(from));
    atomic_store_explicit(&rec->tag, from ^ tx->key, memory_order_release);
    return true;
}

static inline uint32_t sv_tx_pad(const struct sv_tx *tx, uint32_t span)
{
    uint32_t left = tx->ring_bytes - (tx->tail & (tx->ring_bytes - 1));

    return (left < span) ? left : 0;
}

/* Whether a record fits that did not at first sight. */
static __attribute__((noinline)) bool
sv_tx_make_room(struct sv_tx *tx, uint32_t span)
{
    sv_tx_update_head(tx);
    return (sv_tx_unread(tx) + sv_tx_pad(tx, span) + span <= tx->ring_room) ||
           (!tx->broken && sv_tx_move(tx, span));
}

struct sv_rec *sv_tx_room(struct sv_tx *tx, uint32_t span)
{
    uint32_t pad = sv_tx_pad(tx, span);
    struct sv_rec *rec;

    sv_assert_held(&tx->lock);
    if (sv_unlikely(tx->tail + pad + span - tx->head > tx->ring_room)) {
        if (!sv_tx_make_room(tx, span)) {
            return NULL;
        }
        pad = sv_tx_pad(tx, span);
    }

    rec = (struct sv_rec*)(tx->ring + (tx->tail & (tx->ring_bytes - 1)));
    if (sv_unlikely(pad != 0)) {
        rec->flags = SV_REC_PAD;
        atomic_store_explicit(&rec->tag, tx->tail ^ tx->key,
                              memory_order_release);
        tx->tail += pad;
        rec       = (struct sv_rec*)tx->ring;
    }
    sv_rec_clear_end(rec, span);
    return rec;
}
