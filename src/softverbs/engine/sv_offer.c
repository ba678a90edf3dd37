/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long messages (rendezvous): the sender offers, the receiver fetches.
 *
 * A message that does not fit into any ring cannot complete before the receiver
 * takes it out. Through the ring it would also be copied twice, from one core's
 * cache to the other's and back. So the sender puts only the addresses of its
 * pieces into the ring, and the receiver copies with process_vm_readv().
 *
 *     sender                                   receiver
 *     offer = end of the record ^ key
 *     publish the record ------------------->  offer as expected? copy
 *     wait until head is behind it             still as expected? complete
 *     <--------------------------------------  publish head
 *
 * The sender's memory may get another use before the receiver has copied it:
 * the sender's queue is flushed, its program deregisters the memory, or it
 * dies. When the queue is flushed, the sender withdraws the offer before its
 * program can know. So a copy counts only if the offer is still valid after it.
 * Nobody has to wait for anybody.
 *
 * A receiver that may not read the sender's memory declines: it skips the
 * record. Then the sender pushes this message and all later ones through the
 * ring.
 */
#include "softverbs/base/sv_assert.h"
#include "softverbs/base/sv_limits.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/engine/sv_offer.h"
#include "softverbs/engine/sv_rc.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_mr.h"
#include "softverbs/objects/sv_qp.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* Never 0, and different from that of an earlier connection. */
static uint64_t sv_offer_word(uint64_t end, uint64_t key)
{
    return (end ^ key) | 1;
}

/* ---- the sender ---- */

bool sv_tx_may_offer(const struct sv_tx *tx, const struct sv_swqe *wqe)
{
    uint32_t most = sv_tx_may_move(tx) ? SV_RING_BYTES : tx->ring_bytes;

    return (wqe->total > most) && (wqe->sent == 0) && !tx->declined;
}

bool sv_tx_offer(struct sv_qp *qp, struct sv_swqe *wqe)
{
    struct sv_tx *tx = &qp->tx;
    struct ibv_sge *pieces;
    struct sv_rec *rec;
    uint32_t bytes = 0;
    uint32_t span;
    unsigned i;

    sv_assert_held(&qp->tx.lock);
    span = sv_rec_span(wqe->num_sge * sizeof(*pieces));
    rec  = sv_tx_room(tx, span);
    if (rec == NULL) {
        return false;
    }

    pieces = (struct ibv_sge*)(rec + 1);
    for (i = 0; i < wqe->num_sge; ++i) {
        if (wqe->sge[i].length > 0) {
            *pieces++ = wqe->sge[i];
            bytes    += sizeof(*pieces);
        }
    }

    span         = sv_rec_span(bytes);
    rec->bytes   = bytes;
    rec->total   = wqe->total;
    rec->src_qpn = qp->base.qp_num;
    rec->imm     = wqe->imm;
    rec->flags   = wqe->rec_flags | SV_REC_FIRST | SV_REC_LAST | SV_REC_OFFER;
    wqe->end     = tx->tail + span;
    wqe->stage   = SV_STAGE_OFFERED;
    atomic_store(&qp->shm->offer, sv_offer_word(wqe->end, tx->key));
    atomic_store_explicit(&rec->tag, tx->tail ^ tx->key, memory_order_release);
    tx->tail     = wqe->end;
    return true;
}

void sv_tx_withdraw(struct sv_qp *qp)
{
    sv_assert_held(&qp->tx.lock);
    atomic_store(&qp->shm->offer, 0);
    __sync_synchronize();
}

/* ---- the receiver ---- */

struct sv_offer {
    struct sv_peer *peer;
    uint32_t        qpn;
    uint64_t        word;
    struct ibv_sge  pieces[SV_LIMIT_SGE]; /* a copy: the ring's may change */
    uint32_t        num_pieces;
};

static bool sv_offer_is_valid(struct sv_node *node,
                              const struct sv_offer *offer)
{
    uint32_t index = sv_qpn_index(offer->qpn);
    struct sv_shm_qp *shm;

    if (!sv_peer_alive(offer->peer) || !sv_peer_has_qp(offer->peer, index)) {
        return false;
    }

    shm = sv_peer_qp(offer->peer, index);
    return (atomic_load(&shm->qpn) == offer->qpn) &&
           (atomic_load(&shm->offer) == offer->word) &&
           sv_sge_is_valid(node, offer->peer, offer->pieces, offer->num_pieces);
}

/* Appends to the bytes that the RECV already has. 0, or -1 and errno. */
static int sv_rx_fetch_piece(struct sv_rx *rx, struct sv_peer *peer,
                             const struct ibv_sge *piece)
{
    uint64_t from = piece->addr;
    uint32_t left = piece->length;
    struct ibv_sge to;
    uint32_t room;

    while (left > 0) {
        room      = rx->cur->sge[rx->sge].length - rx->sge_offset;
        to.length = (left < room) ? left : room;
        to.addr   = rx->cur->sge[rx->sge].addr + rx->sge_offset;
        if ((to.length > 0) && (sv_peer_read(peer, from, &to, 1) != 0)) {
            return -1;
        }

        from           += to.length;
        left           -= to.length;
        rx->sge_offset += to.length;
        if (to.length == room) {
            ++rx->sge;
            rx->sge_offset = 0;
        }
    }
    return 0;
}

static enum sv_fetched sv_rx_fetch_pieces(struct sv_qp *qp,
                                          const struct sv_offer *offer)
{
    struct sv_rx *rx       = &qp->rx;
    enum sv_fetched result = SV_FETCHED;
    uint32_t i;

    if (!sv_offer_is_valid(qp->node, offer)) {
        return SV_FETCH_WITHDRAWN;
    }

    for (i = 0; (i < offer->num_pieces) && (result == SV_FETCHED); ++i) {
        if (sv_rx_fetch_piece(rx, offer->peer, &offer->pieces[i]) != 0) {
            result = (errno == EFAULT) ? SV_FETCH_FAULT : SV_FETCH_DECLINED;
        }
    }
    __sync_synchronize();
    return sv_offer_is_valid(qp->node, offer) ? result : SV_FETCH_WITHDRAWN;
}

/* Whether the lengths of the pieces add up to the message. */
static bool sv_offer_length_is_valid(const struct sv_offer *offer,
                                     uint32_t total)
{
    uint64_t sum = 0;
    uint32_t i;

    for (i = 0; i < offer->num_pieces; ++i) {
        sum += offer->pieces[i].length;
    }
    return sum == total;
}

enum sv_fetched sv_rx_fetch(struct sv_qp *qp, const struct sv_rec *rec,
                            const void *payload)
{
    struct sv_rx *rx      = &qp->rx;
    uint64_t end          = rx->pos + sv_rec_span(rec->bytes);
    struct sv_offer offer = {
        .qpn        = rec->src_qpn,
        .word       = sv_offer_word(end, rx->key),
        .num_pieces = rec->bytes / sizeof(struct ibv_sge)
    };
    enum sv_fetched result;

    sv_assert_held(&sv_cq(qp->base.recv_cq)->rx_lock);
    memcpy(offer.pieces, payload, rec->bytes);
    if (!sv_offer_length_is_valid(&offer, rec->total)) {
        return SV_FETCH_CORRUPT;
    }

    offer.peer = sv_peer_get(qp->node, sv_qpn_slot(offer.qpn));
    if (offer.peer != NULL) {
        result = sv_rx_fetch_pieces(qp, &offer);
        sv_peer_put(qp->node, offer.peer);
    } else {
        result = (errno == ENOENT) ? SV_FETCH_WITHDRAWN : SV_FETCH_DECLINED;
    }
    if (result == SV_FETCH_DECLINED) {
        rx->sge        = 0;
        rx->sge_offset = 0;
        atomic_store(&qp->shm->declined, end);
    }
    return result;
}
