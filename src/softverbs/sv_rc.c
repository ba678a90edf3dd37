/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reliable connections: reaching the other end, and SEND.
 *
 * A message counts as acknowledged when it is in the receiver's ring, a RECV
 * has been claimed for it, and it fits all RECVs that the receiver ever posted.
 * If it does not fit all of them, it waits for the receiver's verdict.
 */
#include "sv_tx.h"

/* ---- the connection ---- */

/* Whether the entry is the other end of this QP, as far as can be told. */
static bool sv_tx_is_remote_of(struct sv_qp *qp, struct sv_shm_qp *rem)
{
    return (atomic_load(&rem->qpn) == qp->attr.dest_qp_num) &&
           (atomic_load(&rem->dest_qpn) == qp->base.qp_num);
}

/* In the large ring if there is room for it, see SV_RING_BYTES. */
static void sv_tx_choose_ring(struct sv_tx *tx, struct sv_shm_qp *rem,
                              uint32_t index)
{
    struct sv_rec *first = (struct sv_rec*)sv_peer_small_ring(tx->peer, index);

    tx->tail       = 0;
    tx->ring       = (uint8_t*)first;
    tx->ring_bytes = SV_RING_SMALL;
    if (sv_ring_reserve(tx->peer, index) == 0) {
        tx->tail       = SV_RING_BYTES;
        tx->ring       = sv_peer_ring(tx->peer, index);
        tx->ring_bytes = SV_RING_BYTES;
    }

    tx->head = tx->tail;
    atomic_store(&rem->ring_bytes, tx->ring_bytes);
    if (tx->tail != 0) {
        first->flags = SV_REC_PAD;
        atomic_store_explicit(&first->tag, 0 ^ tx->key, memory_order_release);
    }
}

/* Takes the receiver's terms. Between enter and leave. */
static bool sv_tx_accept_terms(struct sv_qp *qp, struct sv_shm_qp *rem)
{
    struct sv_tx *tx = &qp->tx;
    uint32_t srq     = rem->srq;

    /* A ring that was sent into already expects another packet than ours. */
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
    sv_tx_choose_ring(tx, rem, sv_qpn_index(qp->attr.dest_qp_num));
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
    return ((qp->tx.epoch != 0) || sv_tx_reach(qp)) && sv_tx_enter(&qp->tx);
}

/* ---- waiting ---- */

int sv_tx_ack_timeout(struct sv_qp *qp)
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

int sv_tx_rnr(struct sv_qp *qp)
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

bool sv_tx_claim(struct sv_tx *tx)
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

/* It has not looked yet: the large ring begins behind the small one. */
static bool sv_tx_ring_is_unread(const struct sv_tx *tx, uint64_t head)
{
    return (head == 0) && (tx->head == SV_RING_BYTES) &&
           (tx->ring_bytes == SV_RING_BYTES);
}

/* How far the receiver says it is. It cannot be behind what it has said, nor
 * ahead of us: then the connection is broken. */
static void sv_tx_update_head(struct sv_tx *tx)
{
    uint64_t head = atomic_load_explicit(&tx->rem->head, memory_order_acquire);

    if (sv_likely(head - tx->head <= tx->tail - tx->head)) {
        tx->head = head;
    } else if (!sv_tx_ring_is_unread(tx, head) && !sv_tx_is_closed(tx)) {
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

/* The receiver's books are not in order: neither end can go on. */
static int sv_tx_broken(struct sv_tx *tx)
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

struct sv_rec *sv_tx_room(struct sv_tx *tx, uint32_t span)
{
    uint32_t offset = tx->tail & (tx->ring_bytes - 1);
    uint32_t pad    = (tx->ring_bytes - offset < span) ?
                              tx->ring_bytes - offset : 0;
    struct sv_rec *rec;

    if (tx->tail + pad + span - tx->head > tx->ring_bytes) {
        sv_tx_update_head(tx);
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

enum sv_sent {
    SV_SENT_ALL,
    SV_SENT_PART,   /* the ring is full */
    SV_SENT_OFFER
};

/* One record, without some of its flags. False: the ring is full. */
static inline __attribute__((always_inline)) bool
sv_tx_fragment(struct sv_qp *qp, struct sv_swqe *wqe, uint32_t bytes,
               unsigned but_flags)
{
    struct sv_tx *tx   = &qp->tx;
    struct sv_rec *rec = sv_tx_room(tx, sv_rec_span(bytes));

    if (sv_unlikely(rec == NULL)) {
        return false;
    }

    sv_tx_fill_record(qp, rec, wqe, bytes);
    rec->flags &= ~but_flags;
    atomic_store_explicit(&rec->tag, tx->tail ^ tx->key, memory_order_release);
    tx->tail  += sv_rec_span(bytes);
    wqe->sent += bytes;
    return true;
}

static __attribute__((noinline)) enum sv_sent
sv_tx_fragments(struct sv_qp *qp, struct sv_swqe *wqe, uint32_t max)
{
    /* of a message that was declined, the offer was the first record */
    unsigned but_flags = (wqe->stage == SV_STAGE_DECLINED) ? SV_REC_FIRST : 0;
    uint32_t bytes;

    if (sv_tx_may_offer(&qp->tx, wqe)) {
        return sv_tx_offer(qp, wqe) ? SV_SENT_OFFER : SV_SENT_PART;
    }

    do {
        bytes = wqe->total - wqe->sent;
        bytes = (bytes < max) ? bytes : max;
        if (!sv_tx_fragment(qp, wqe, bytes, but_flags)) {
            return SV_SENT_PART;
        }
    } while (wqe->sent < wqe->total);
    return SV_SENT_ALL;
}

/* Sends what is left of the message. */
static inline enum sv_sent sv_tx_message(struct sv_qp *qp, struct sv_swqe *wqe)
{
    struct sv_tx *tx = &qp->tx;
    uint32_t max     = sv_tx_max_record(tx);
    uint32_t bytes   = wqe->total - wqe->sent;

    if (sv_unlikely(bytes > max)) {
        return sv_tx_fragments(qp, wqe, max);
    }
    if (sv_unlikely(!sv_tx_fragment(qp, wqe, bytes, 0))) {
        return SV_SENT_PART;
    }
    sv_tx_fetch_ahead(tx, sv_rec_span(bytes));
    return SV_SENT_ALL;
}

/* ---- SEND ---- */

/* The receiver has skipped the offer: nothing is in the RECV. */
static int sv_tx_push_declined(struct sv_tx *tx, struct sv_swqe *wqe)
{
    tx->declined = true;
    wqe->stage   = SV_STAGE_DECLINED;
    return sv_tx_wait(tx, SV_WAIT_RING);
}

/* The memory behind it was deregistered: nobody can fetch it. */
static bool sv_tx_offer_is_void(const struct sv_qp *qp,
                                const struct sv_swqe *wqe)
{
    return (wqe->stage == SV_STAGE_OFFERED) &&
           !sv_sge_is_registered(qp->node, wqe->sge, wqe->num_sge);
}

/* In the ring, but perhaps too long for its RECV, or still to be fetched. */
static int sv_tx_verdict(struct sv_qp *qp, struct sv_swqe *wqe)
{
    struct sv_tx *tx = &qp->tx;

    if (sv_peer_alive(tx->peer) && !sv_peer_answers(tx->peer)) {
        return sv_tx_ack_timeout(qp); /* its link is down: nothing comes back */
    }

    switch (atomic_load_explicit(&tx->rem->nak, memory_order_acquire)) {
    case SV_NAK_INVALID_REQUEST:
        return IBV_WC_REM_INV_REQ_ERR;
    case SV_NAK_OPERATIONAL:
        return sv_tx_offer_is_void(qp, wqe) ? IBV_WC_LOC_PROT_ERR :
                                              IBV_WC_REM_OP_ERR;
    default:
        break;
    }

    sv_tx_update_head(tx);
    if (tx->broken) {
        return sv_tx_broken(tx);
    }
    if (tx->head >= wqe->end) {
        return ((wqe->stage == SV_STAGE_OFFERED) &&
                (atomic_load(&tx->rem->declined) == wqe->end)) ?
                       sv_tx_push_declined(tx, wqe) : 0;
    }
    if (sv_tx_offer_is_void(qp, wqe)) {
        return IBV_WC_LOC_PROT_ERR;
    }
    if ((atomic_load(&tx->rem->accept) != tx->epoch) ||
        !sv_peer_alive(tx->peer)) {
        return sv_tx_ack_timeout(qp);
    }
    return sv_tx_wait(tx, SV_WAIT_VERDICT);
}

/* The ring is full. A receiver that sleeps until a message is complete has to
 * be told, once for each time that the ring filled up. */
static void sv_tx_wake_receiver(struct sv_tx *tx)
{
    if ((tx->receiver_woken_at != tx->tail) &&
        sv_is_armed(atomic_load(&tx->rem_cq->state))) {
        tx->receiver_woken_at = tx->tail;
        sv_doorbell_ring(tx->peer->head);
    }
}

int sv_tx_send(struct sv_qp *qp, struct sv_swqe *wqe)
{
    struct sv_tx *tx = &qp->tx;
    bool closed;
    bool solicited   = (wqe->flags & IBV_SEND_SOLICITED) != 0;
    enum sv_sent sent;
    int ret;

    if (sv_unlikely(wqe->stage >= SV_STAGE_SENT)) {
        return sv_tx_verdict(qp, wqe);
    }

    ret = sv_tx_resolve(qp, wqe, 0);
    if (sv_unlikely(ret != 0)) {
        return ret;
    }
    if (sv_unlikely(!sv_tx_connect(qp))) {
        return sv_tx_ack_timeout(qp);
    }
    if (wqe->stage == SV_STAGE_NEW) {
        if (sv_unlikely(!sv_tx_claim(tx))) {
            sv_tx_leave(tx);
            return sv_tx_rnr(qp);
        }
        wqe->stage = SV_STAGE_CLAIMED;
    }

    sent = sv_tx_message(qp, wqe);
    sv_tx_ring_bell(tx->peer, tx->rem);
    closed = sv_tx_is_closed(tx);
    sv_tx_leave(tx);
    if (sv_unlikely(closed)) {
        return sv_tx_ack_timeout(qp);
    }
    if (sv_unlikely(sent == SV_SENT_PART)) {
        sv_tx_wake_receiver(tx);
        return sv_tx_no_room(tx);
    }

    sv_cq_notify(qp->node, tx->peer, tx->rem_cq, solicited);
    if (sv_unlikely(sent == SV_SENT_OFFER)) {
        return sv_tx_verdict(qp, wqe);
    }
    if (sv_unlikely(wqe->total > tx->min_len)) {
        wqe->end   = tx->tail;
        wqe->stage = SV_STAGE_SENT;
        return sv_tx_verdict(qp, wqe);
    }
    return 0;
}
