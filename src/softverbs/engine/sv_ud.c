/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams.
 *
 * All senders to one QP share its ring, under a lock in the receiver's segment.
 * There are no acknowledgements: success means "sent", as on any network. A
 * datagram without a receiver is silently lost.
 */
#include "softverbs/base/sv_assert.h"
#include "softverbs/base/sv_limits.h"
#include "softverbs/base/sv_process.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/engine/sv_rc.h"
#include "softverbs/engine/sv_request.h"
#include "softverbs/engine/sv_wqe.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/fabric/sv_shm_lock.h"
#include "softverbs/objects/sv_channel.h"
#include "softverbs/objects/sv_qp.h"

#include <errno.h>

/* How long a datagram waits for room. Dropping it at once would be legal, and
 * would ruin every protocol above. */
#define SV_ROOM_WAIT_NS    20000000u

/* How often that wait is repeated if the receiver's process is runnable. It
 * waits for a CPU, or computes, and so cannot poll. */
#define SV_ROOM_WAITS      50u

/* Returns the peer behind a QP number; keeps a few of them. */
static struct sv_peer *sv_tx_ud_peer(struct sv_qp *qp, uint32_t qpn)
{
    uint32_t slot         = sv_qpn_slot(qpn);
    struct sv_peer **kept = &qp->tx.ud_peers[slot % SV_UD_PEERS];

    if (*kept != NULL) {
        if (((*kept)->slot == slot) && sv_peer_answers(*kept)) {
            return *kept;
        }
        sv_peer_put(qp->node, *kept);
    }

    *kept = sv_peer_get(qp->node, slot);
    return ((*kept != NULL) && sv_peer_answers(*kept)) ? *kept : NULL;
}

/* The entry that takes this datagram, or NULL: the datagram is lost. */
static struct sv_shm_qp *sv_tx_ud_target(struct sv_peer *peer,
                                         const struct sv_swqe *wqe)
{
    uint32_t index = sv_qpn_index(wqe->ud.qpn);
    struct sv_shm_qp *rem;

    if (!sv_peer_has_qp(peer, index)) {
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

/* Whether the ring's positions are possible: whole lines, and no more than
 * full. */
static bool sv_tx_ud_ring_is_valid(uint64_t head, uint64_t tail)
{
    return (tail % SV_LINE == 0) && (tail - head <= SV_RING_BYTES);
}

/* Returns room for a record, or NULL. Needs the lock of the ring. */
static struct sv_rec *sv_tx_ud_room(struct sv_shm_qp *rem, uint8_t *ring,
                                    uint32_t span, uint64_t head, uint64_t tail,
                                    uint64_t *tail_p)
{
    uint32_t offset = tail & (SV_RING_BYTES - 1);
    uint32_t pad    = (SV_RING_BYTES - offset < span) ?
                              SV_RING_BYTES - offset : 0;
    struct sv_rec *rec;

    if (tail + pad + span - head > SV_RING_BYTES) {
        return NULL;
    }

    rec     = (struct sv_rec*)(ring + offset);
    *tail_p = tail + pad;
    if (pad != 0) {
        rec->flags = SV_REC_PAD;
        atomic_store_explicit(&rec->tag, tail ^ rem->key, memory_order_release);
        atomic_store_explicit(&rem->tail, tail + pad, memory_order_relaxed);
        rec = (struct sv_rec*)ring;
    }
    sv_rec_clear_end(rec, span);
    return rec;
}

/* 0: sent or lost. SV_AGAIN: no room. */
static int sv_tx_ud_locked(struct sv_qp *qp, struct sv_swqe *wqe,
                           struct sv_peer *peer, struct sv_shm_qp *rem)
{
    uint8_t *ring = sv_peer_ring(peer, sv_qpn_index(wqe->ud.qpn),
                                 SV_RING_BYTES);
    uint32_t span = sv_rec_span(wqe->total);
    uint64_t head = atomic_load_explicit(&rem->head, memory_order_acquire);
    uint64_t tail = atomic_load_explicit(&rem->tail, memory_order_relaxed);
    struct sv_rec *rec;

    if (sv_tx_ud_target(peer, wqe) == NULL) {
        return 0; /* closed meanwhile */
    }
    if (!sv_tx_ud_ring_is_valid(head, tail)) {
        sv_tx_fail_remote_qp(peer, rem, SV_KILL_FATAL);
        return 0;
    }

    rec = sv_tx_ud_room(rem, ring, span, head, tail, &tail);
    if (rec == NULL) {
        return SV_AGAIN;
    }

    sv_tx_fill_record(qp, rec, wqe, wqe->total);
    rec->sl = wqe->ud.sl;
    atomic_store_explicit(&rec->tag, tail ^ rem->key, memory_order_release);
    atomic_store_explicit(&rem->tail, tail + span, memory_order_relaxed);
    sv_tx_ring_bell(peer, rem);
    return 0;
}

static bool sv_tx_ud_is_runnable(const struct sv_peer *peer)
{
    uint64_t start_time;
    char state;

    return !peer->self &&
           (sv_process_stat(peer->pid, &state, &start_time) == 0) &&
           (state == 'R');
}

/* The ring is full. Waits, but only once as long as its head does not move. */
static int sv_tx_ud_full(struct sv_tx *tx, const struct sv_peer *peer,
                         struct sv_shm_qp *rem)
{
    uint64_t jam = atomic_load(&rem->head) | 1;

    if (atomic_load(&rem->jam_head) == jam) {
        return 0;
    }
    if (tx->wait != SV_WAIT_ROOM) {
        tx->tries    = 0;
        tx->deadline = sv_now_ns() + SV_ROOM_WAIT_NS;
        return sv_tx_wait(tx, SV_WAIT_ROOM);
    }
    if (sv_now_ns() < tx->deadline) {
        return SV_AGAIN;
    }
    if ((++tx->tries < SV_ROOM_WAITS) && sv_tx_ud_is_runnable(peer)) {
        tx->deadline = sv_now_ns() + SV_ROOM_WAIT_NS;
        return SV_AGAIN;
    }

    atomic_store(&rem->jam_head, jam);
    return 0;
}

int sv_tx_ud_check(struct sv_qp *qp, uint32_t qpn)
{
    sv_assert_held(&qp->tx.lock);
    errno = 0;
    return ((sv_tx_ud_peer(qp, qpn) != NULL) || (errno == ENOENT)) ? 0 : errno;
}

int sv_tx_datagram(struct sv_qp *qp, struct sv_swqe *wqe)
{
    struct sv_shm_qp *rem;
    struct sv_shm_cq *cq;
    struct sv_peer *peer;
    int ret;

    sv_assert_held(&qp->tx.lock);
    ret = sv_tx_resolve(qp, wqe, 0);
    if (ret != 0) {
        return ret;
    }
    if (wqe->total > SV_UD_MTU) {
        return IBV_WC_LOC_LEN_ERR;
    }

    peer = wqe->ud.is_local ? sv_tx_ud_peer(qp, wqe->ud.qpn) : NULL;
    rem  = (peer != NULL) ? sv_tx_ud_target(peer, wqe) : NULL;
    if ((rem == NULL) || !sv_shm_lock(qp->node, &rem->lock)) {
        return 0;
    }

    ret = sv_tx_ud_locked(qp, wqe, peer, rem);
    sv_shm_unlock(&rem->lock);
    if (ret == SV_AGAIN) {
        return sv_tx_ud_full(&qp->tx, peer, rem);
    }

    cq = sv_peer_named_cq(peer, rem->cq);
    if (cq != NULL) {
        sv_cq_notify(qp->node, peer, cq,
                     (wqe->flags & IBV_SEND_SOLICITED) != 0);
    } else {
        sv_tx_fail_remote_qp(peer, rem, SV_KILL_FATAL);
    }
    return 0;
}
