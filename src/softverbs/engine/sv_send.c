/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SEND over a connection.
 *
 * A message is acknowledged under three conditions: it is in the receiver's
 * ring, a RECV has been claimed for it, and it fits every RECV that the
 * receiver ever posted. If only the last is missing, the sender waits for the
 * receiver's verdict.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/engine/sv_offer.h"
#include "softverbs/engine/sv_rc.h"
#include "softverbs/engine/sv_request.h"
#include "softverbs/engine/sv_wqe.h"
#include "softverbs/fabric/sv_doorbell.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/objects/sv_channel.h"
#include "softverbs/objects/sv_mr.h"
#include "softverbs/objects/sv_qp.h"

/* ---- records ---- */

enum sv_sent {
    SV_SENT_ALL,
    SV_SENT_PART,   /* the ring is full */
    SV_SENT_OFFER
};

/* Writes one record, without the flags in `but_flags`. False: the ring is
 * full. */
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
    /* if the receiver declined, the offer was the first record */
    unsigned but_flags = (wqe->stage == SV_STAGE_DECLINED) ? SV_REC_FIRST : 0;
    uint32_t bytes;

    if (sv_tx_may_offer(&qp->tx, wqe)) {
        return sv_tx_offer(qp, wqe) ? SV_SENT_OFFER : SV_SENT_PART;
    }
    if (sv_tx_move(&qp->tx, wqe->total)) {
        max = sv_tx_max_record(&qp->tx);
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

/* Sends the rest of the message. */
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

/* The receiver has skipped the offer, and the RECV is still empty. */
static int sv_tx_push_declined(struct sv_tx *tx, struct sv_swqe *wqe)
{
    tx->declined = true;
    wqe->stage   = SV_STAGE_DECLINED;
    return sv_tx_wait(tx, SV_WAIT_RING);
}

/* Whether the offered memory was deregistered: nobody can fetch it. */
static bool sv_tx_offer_is_void(const struct sv_qp *qp,
                                const struct sv_swqe *wqe)
{
    return (wqe->stage == SV_STAGE_OFFERED) &&
           !sv_sge_is_registered(qp->node, wqe->sge, wqe->num_sge);
}

/* The message is in the ring, but may be too long for its RECV, or is still to
 * be fetched. */
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

/* The ring is full. A receiver that sleeps until a message is complete must be
 * woken, once each time that the ring fills up. */
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

    sv_assert_held(&qp->tx.lock);
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
