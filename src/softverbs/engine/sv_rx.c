/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving: from records in our ring to RECVs and completions.
 *
 * All functions run under rx_lock of the receive CQ. Their callers are
 * ibv_poll_cq(), the service thread, and state changes of the QP.
 *
 * The sender can write to a ring at any time, and so can any process that has
 * it mapped. So a record's header is copied before it is checked. A record that
 * no sender writes fails the QP (sv_rx_fatal): nothing behind it can be
 * trusted.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_barrier.h"
#include "softverbs/base/sv_limits.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/engine/sv_offer.h"
#include "softverbs/engine/sv_rc.h"
#include "softverbs/engine/sv_rx.h"
#include "softverbs/engine/sv_scan.h"
#include "softverbs/engine/sv_short.h"
#include "softverbs/engine/sv_tx.h"
#include "softverbs/fabric/sv_doorbell.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/fabric/sv_port.h"
#include "softverbs/fabric/sv_shm_lock.h"
#include "softverbs/fabric/sv_table.h"
#include "softverbs/objects/sv_check.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_event.h"
#include "softverbs/objects/sv_hooks.h"
#include "softverbs/objects/sv_mr.h"
#include "softverbs/objects/sv_qp.h"
#include "softverbs/objects/sv_rq.h"
#include "softverbs/objects/sv_srq.h"

#include <string.h>

/* How long to wait for a sender that is in the middle of a record when we
 * close. A sender that takes longer is stopped. Then the entry is not reused
 * until the sender leaves. */
#define SV_CLOSE_WAIT_NS    20000000u

enum sv_rx_result {
    SV_RX_PART,    /* a record, more of the message to come */
    SV_RX_MESSAGE, /* a completion was made */
    SV_RX_STALLED, /* no RECV: the record stays where it is */
    SV_RX_FAILED,  /* the QP is in ERR now, by a completion */
    SV_RX_DEAD_SENDER     /* the sender has failed: nothing comes any more */
};

static void sv_rx_complete(struct sv_qp *qp, enum ibv_wc_status status,
                           const struct sv_rec *rec, enum sv_notify notify)
{
    struct sv_cqe *cqe = sv_cq_next(sv_cq(qp->base.recv_cq), notify);

    sv_rx_fill_wc(qp, &cqe->wc, qp->rx.cur->wr_id, status, rec);
    cqe->qp     = qp;
    cqe->kind   = SV_CQE_RECV;
    cqe->notify = ((status != IBV_WC_SUCCESS) || (rec->flags &
                                                  SV_REC_SOLICITED)) ?
                          SV_NOTIFY_SOLICITED : SV_NOTIFY_NEXT;
    qp->rx.busy = false;
}

/* ---- closing and opening ---- */

/* Tells the CQ's scan where the next record will appear. */
static void sv_rx_expect(struct sv_qp *qp)
{
    struct sv_scan *scan = &sv_cq(qp->base.recv_cq)->scan[qp->rx.scan];
    uint64_t offset      = qp->rx.pos & (qp->rx.ring_bytes - 1);

    scan->tag    = &((struct sv_rec*)(qp->rx.ring + offset))->tag;
    scan->expect = qp->rx.pos ^ qp->rx.key;
}

void sv_rx_flush(struct sv_qp *qp)
{
    sv_assert_held(&sv_cq(qp->base.recv_cq)->rx_lock);
    if (qp->rx.busy) {
        sv_rx_complete(qp, IBV_WC_WR_FLUSH_ERR, NULL, SV_NOTIFY_SOLICITED);
    }

    if (qp->base.srq != NULL) {
        sv_event_post(qp->ctx, IBV_EVENT_QP_LAST_WQE_REACHED, qp);
        return; /* RECVs of an SRQ are for the others */
    }

    while (sv_rq_take(qp->recvs, qp->rx.cur)) {
        sv_rx_complete(qp, IBV_WC_WR_FLUSH_ERR, NULL, SV_NOTIFY_SOLICITED);
    }
}

/* Gives back what the sender claimed in the SRQ and did not use. If that is
 * more than the SRQ holds, the count is damaged and nothing is given back. */
static void sv_rx_return_claims(struct sv_qp *qp)
{
    uint32_t unused;

    if ((qp->base.srq == NULL) || (qp->base.qp_type != IBV_QPT_RC)) {
        return;
    }

    unused = atomic_load(&qp->shm->claims) - qp->rx.consumed;
    if (unused <= qp->recvs->depth) {
        atomic_fetch_sub(&sv_srq(qp->base.srq)->shm->claimed, unused);
    }
    atomic_store(&qp->shm->claims, 0);
    qp->rx.consumed = 0;
}

int sv_rx_close(struct sv_qp *qp, bool deliver)
{
    int ret = 0;

    sv_assert_held(&sv_cq(qp->base.recv_cq)->rx_lock);
    if (!qp->rx.open) {
        return 0;
    }

    atomic_store(&qp->shm->accept, 0);
    sv_heavy_barrier();
    if (qp->base.qp_type == IBV_QPT_UD) {
        /* Senders look at `accept` again under the lock. */
        if (sv_shm_lock(qp->node, &qp->shm->lock)) {
            sv_shm_unlock(&qp->shm->lock);
        } else {
            ret = -1;
        }
    } else if (!sv_busy_wait(qp->node, qp->shm, SV_CLOSE_WAIT_NS)) {
        ret = -1;
    }

    if (deliver && (qp->base.qp_type != IBV_QPT_UD)) {
        sv_rx_run(qp, UINT32_MAX, true);
    }
    qp->rx.open = false;
    sv_scan_stop(sv_cq(qp->base.recv_cq), qp);
    sv_rx_return_claims(qp);
    return ret;
}

bool sv_rx_can_open(struct sv_qp *qp)
{
    sv_assert_held(&sv_cq(qp->base.recv_cq)->rx_lock);
    if (!sv_busy_wait(qp->node, qp->shm, 0) ||
        !sv_shm_lock(qp->node, &qp->shm->lock)) {
        return false;
    }

    sv_shm_unlock(&qp->shm->lock);
    return true;
}

void sv_rx_open(struct sv_qp *qp)
{
    struct sv_shm_qp *shm = qp->shm;
    struct sv_rx *rx      = &qp->rx;
    bool is_ud            = (qp->base.qp_type == IBV_QPT_UD);

    sv_assert_held(&sv_cq(qp->base.recv_cq)->rx_lock);
    rx->key        = sv_random();
    rx->ring_bytes = is_ud ? SV_RING_BYTES : SV_RING_SMALL;
    rx->ring       = sv_peer_ring(qp->node->self, qp->index, rx->ring_bytes);
    rx->remote_qpn = is_ud ? SV_NO_REMOTE_QPN : qp->attr.dest_qp_num;
    rx->pos        = 0;
    rx->published  = 0;
    rx->busy       = false;
    rx->consumed   = 0;
    rx->open       = true;
    /* What the ring holds at position 0 must not look like a record. */
    if (*(uint64_t*)rx->ring == rx->key) {
        ++rx->key;
    }

    shm->key = rx->key;
    atomic_store(&shm->head, 0);
    atomic_store(&shm->tail, 0);
    atomic_store(&shm->jam_head, 0);
    atomic_store(&shm->nak, SV_NAK_NONE);
    atomic_store(&shm->declined, 0);
    atomic_store(&shm->ring_bytes, is_ud ? SV_RING_BYTES : 0);
    atomic_store(&shm->claims, 0);
    atomic_store(&shm->awaits, 0);
    atomic_store(&shm->fault, 0);
    atomic_store(&shm->waiting, 0);
    sv_rx_expect(qp);
    if (++qp->epoch == 0) {
        ++qp->epoch; /* 0 is closed */
    }
    atomic_store(&shm->accept, qp->epoch);
}

void sv_rx_flush_if_due(struct sv_qp *qp)
{
    sv_assert_held(&sv_cq(qp->base.recv_cq)->rx_lock);
    if (atomic_exchange(&qp->rx_flush_due, false)) {
        sv_rx_close(qp, true);
        sv_rx_flush(qp);
    }
}

/* ---- failing ---- */

/* Fails the QP. The RECV that was taken, if any, completes with `status`. */
static void sv_rx_fail_qp(struct sv_qp *qp, enum ibv_wc_status status,
                          enum sv_nak nak)
{
    atomic_store(&qp->shm->nak, nak);
    atomic_store(&qp->state, IBV_QPS_ERR);
    /* The rest of the ring came after the message that failed. */
    qp->rx.pos = UINT64_MAX;
    if (qp->rx.busy) {
        sv_rx_complete(qp, status, NULL, SV_NOTIFY_SOLICITED);
    }
    sv_rx_close(qp, true);
    sv_rx_flush(qp);

    sv_spin_lock(&qp->tx.lock);
    sv_tx_flush(qp);
    sv_spin_unlock(&qp->tx.lock);
}

static enum sv_rx_result sv_rx_fail(struct sv_qp *qp, enum ibv_wc_status status,
                                    enum sv_nak nak)
{
    sv_rx_fail_qp(qp, status, nak);
    return SV_RX_FAILED;
}

/* The ring holds an impossible record. The QP fails with an event, because it
 * may have no RECV to complete. */
static __attribute__((noinline)) enum sv_rx_result sv_rx_fatal(struct sv_qp *qp)
{
    bool busy = qp->rx.busy;

    sv_rx_fail_qp(qp, IBV_WC_LOC_QP_OP_ERR, SV_NAK_OPERATIONAL);
    sv_event_post(qp->ctx, IBV_EVENT_QP_FATAL, qp);
    return busy ? SV_RX_FAILED : SV_RX_DEAD_SENDER;
}

/* ---- what a record may be ---- */

/* Reads the header once, because the writer can still change it. */
static inline void sv_rx_read_header(struct sv_rec *to,
                                     const struct sv_rec *from)
{
    memcpy((void*)to, (const void*)from, sizeof(*to));
    __asm__ __volatile__("" : : "r"(to) : "memory");
}

static inline uint32_t sv_rx_payload_room(const struct sv_rx *rx,
                                          uint32_t offset)
{
    return rx->ring_bytes - offset - sizeof(struct sv_rec);
}

/* A whole message of a connection, with nothing special. */
static inline bool sv_rx_is_usual(const struct sv_rx *rx,
                                  const struct sv_rec *rec, uint32_t offset)
{
    uint32_t what = rec->flags & ~(SV_REC_IMM | SV_REC_SOLICITED);

    return (((what ^ (SV_REC_FIRST | SV_REC_LAST)) |
             (rec->bytes ^ rec->total) | (rec->src_qpn ^ rx->remote_qpn) |
             rx->busy) == 0) &&
           (rec->bytes <= sv_rx_payload_room(rx, offset));
}

static bool sv_rx_is_legal_datagram(const struct sv_rec *rec)
{
    uint32_t what = rec->flags & ~(SV_REC_IMM | SV_REC_SOLICITED | SV_REC_GRH);

    return (what == (SV_REC_FIRST | SV_REC_LAST)) &&
           (rec->bytes == rec->total) && (rec->total <= SV_UD_MTU) &&
           (rec->src_qpn < (1u << 24)) && (rec->sl <= 15);
}

/* The notice of a WRITE, or an offer: records that stand for other data. */
static bool sv_rx_is_legal_special(const struct sv_rx *rx,
                                   const struct sv_rec *rec)
{
    uint32_t what = rec->flags & ~(SV_REC_IMM | SV_REC_SOLICITED |
                                   SV_REC_FIRST | SV_REC_LAST);

    if ((rec->flags & SV_REC_LAST) == 0) {
        return false;
    }
    if (what == SV_REC_WRITE) {
        return ((rec->flags & SV_REC_IMM) != 0) && (rec->bytes == 0);
    }
    return (what == SV_REC_OFFER) && (rec->total > rx->ring_bytes) &&
           (rec->bytes > 0) && (rec->bytes % sizeof(struct ibv_sge) == 0) &&
           (rec->bytes / sizeof(struct ibv_sge) <= SV_LIMIT_SGE);
}

/* Whether a sender may write this record at this place. */
static __attribute__((noinline)) bool
sv_rx_is_legal(const struct sv_qp *qp, const struct sv_rec *rec,
               uint32_t offset)
{
    const struct sv_rx *rx = &qp->rx;
    bool first             = (rec->flags & SV_REC_FIRST) != 0;
    uint32_t left          = first ? rec->total : rx->left;

    if ((first == rx->busy) || (rec->total > SV_LIMIT_MSG) ||
        (rec->bytes > sv_rx_payload_room(rx, offset))) {
        return false;
    }
    if (qp->base.qp_type == IBV_QPT_UD) {
        return sv_rx_is_legal_datagram(rec);
    }
    if ((rec->src_qpn != rx->remote_qpn) ||
        (!first && (rec->total != rx->total))) {
        return false;
    }
    if ((rec->flags & ~(SV_REC_IMM | SV_REC_SOLICITED | SV_REC_FIRST |
                        SV_REC_LAST)) != 0) {
        return first && sv_rx_is_legal_special(rx, rec);
    }
    return ((rec->flags & SV_REC_LAST) != 0) ?
                   (rec->bytes == left) :
                   ((rec->bytes > 0) && (rec->bytes < left));
}

/* Padding extends to the end of the ring. */
static bool sv_rx_is_padding(const struct sv_rec *rec, uint32_t offset)
{
    return (rec->flags == SV_REC_PAD) && (offset != 0);
}

/* ---- records ---- */

static void sv_rx_limit_event(struct sv_qp *qp, struct sv_srq *srq)
{
    uint32_t limit = atomic_load(&srq->limit);

    if ((limit != 0) &&
        (atomic_load(&srq->rq.ready) - atomic_load(&srq->rq.taken) < limit) &&
        (atomic_exchange(&srq->limit, 0) != 0)) {
        sv_event_post(qp->ctx, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
    }
}

/* Claims a RECV for a datagram, since its sender has not: one that no other
 * sender has claimed. */
static bool sv_rx_claim(struct sv_qp *qp)
{
    struct sv_shm_srq *shm;
    uint32_t claimed;

    if ((qp->base.srq == NULL) || (qp->base.qp_type != IBV_QPT_UD)) {
        return true;
    }

    shm     = sv_srq(qp->base.srq)->shm;
    claimed = atomic_load(&shm->claimed);
    do {
        if ((int32_t)(atomic_load(&shm->posted) - claimed) <= 0) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&shm->claimed, &claimed,
                                           claimed + 1));
    return true;
}

/* Takes a RECV. False: there is none, and the next post of one wakes the
 * service thread. */
static bool sv_rx_take(struct sv_qp *qp)
{
    struct sv_rq *rq = qp->recvs;

    if (!sv_rx_claim(qp) || !sv_rq_take(rq, qp->rx.cur)) {
        if (!atomic_exchange(&rq->starved, true)) {
            sv_heavy_barrier();
        }
        return false;
    }

    ++qp->rx.consumed;
    qp->rx.busy       = true;
    qp->rx.sge        = 0;
    qp->rx.sge_offset = 0;
    if (qp->base.srq != NULL) {
        sv_rx_limit_event(qp, sv_srq(qp->base.srq));
    }
    return true;
}

/* Appends bytes to those that the RECV already has. */
static void sv_rx_place(struct sv_rx *rx, const uint8_t *from, uint32_t bytes)
{
    const struct ibv_sge *sge;
    uint32_t n;

    while (bytes > 0) {
        sge = &rx->cur->sge[rx->sge];
        n   = sge->length - rx->sge_offset;
        n   = (n < bytes) ? n : bytes;
        sv_copy((char*)(uintptr_t)sge->addr + rx->sge_offset, from, n);
        from           += n;
        bytes          -= n;
        rx->sge_offset += n;
        if (rx->sge_offset == sge->length) {
            ++rx->sge;
            rx->sge_offset = 0;
        }
    }
}

/* Writes the 40 bytes before a datagram: a global route header with our own GID
 * on both sides. */
static void sv_rx_place_grh(struct sv_qp *qp, const struct sv_rec *rec)
{
    uint8_t grh[SV_GRH_BYTES] = {0};
    union ibv_gid gid;

    if ((rec->flags & SV_REC_GRH) != 0) {
        sv_port_gid(&gid);
        grh[0] = 0x60;
        grh[4] = (rec->total + 4) >> 8;
        grh[5] = (rec->total + 4) & 0xff;
        grh[6] = 0x1b;
        grh[7] = 64;
        memcpy(grh + 8, &gid, sizeof(gid));
        memcpy(grh + 24, &gid, sizeof(gid));
    }
    sv_rx_place(&qp->rx, grh, sizeof(grh));
}

static enum sv_rx_result sv_rx_begin(struct sv_qp *qp, const struct sv_rec *rec)
{
    struct sv_rwqe *cur = qp->rx.cur;
    bool is_ud          = (qp->base.qp_type == IBV_QPT_UD);
    int64_t room, need;
    int fault;

    if (!sv_rx_take(qp)) {
        return SV_RX_STALLED;
    }
    if (sv_unlikely(qp->faults != NULL)) {
        fault = sv_hooks.receive(qp);
        if (fault != 0) {
            return sv_rx_fail(qp, fault, (fault == IBV_WC_LOC_LEN_ERR) ?
                                                 SV_NAK_INVALID_REQUEST :
                                                 SV_NAK_OPERATIONAL);
        }
    }

    qp->rx.total = rec->total;
    qp->rx.left  = rec->total;
    if ((rec->flags & SV_REC_WRITE) != 0) {
        return SV_RX_PART; /* the data is in place already */
    }

    need = rec->total + (is_ud ? SV_GRH_BYTES : 0);
    room = sv_sge_resolve(qp->node, qp->pdn, cur->sge, cur->num_sge,
                          IBV_ACCESS_LOCAL_WRITE, cur->sge);
    if (sv_unlikely(room < 0)) {
        return sv_rx_fail(qp, IBV_WC_LOC_PROT_ERR, SV_NAK_OPERATIONAL);
    }
    if (sv_unlikely(room < need)) {
        return sv_rx_fail(qp, IBV_WC_LOC_LEN_ERR, SV_NAK_INVALID_REQUEST);
    }

    if (is_ud) {
        sv_rx_place_grh(qp, rec);
    }
    return SV_RX_PART;
}

/* SV_RX_MESSAGE: the message is in the RECV. SV_RX_PART: fragments will
 * follow. */
static enum sv_rx_result sv_rx_accept_offer(struct sv_qp *qp,
                                            const struct sv_rec *rec,
                                            const void *payload)
{
    switch (sv_rx_fetch(qp, rec, payload)) {
    case SV_FETCHED:
        return SV_RX_MESSAGE;
    case SV_FETCH_DECLINED:
        return SV_RX_PART;
    case SV_FETCH_FAULT:
        return sv_rx_fail(qp, IBV_WC_LOC_PROT_ERR, SV_NAK_OPERATIONAL);
    case SV_FETCH_CORRUPT:
        return sv_rx_fatal(qp);
    default:
        /* The RECV stays taken until the QP is flushed. If a sender waits for
         * us, it made another offer than this. */
        atomic_store(&qp->shm->nak, SV_NAK_OPERATIONAL);
        qp->rx.pos = UINT64_MAX;
        sv_scan_stop(sv_cq(qp->base.recv_cq), qp);
        return SV_RX_DEAD_SENDER;
    }
}

static enum sv_rx_result
sv_rx_record(struct sv_qp *qp, const struct sv_rec *rec, const void *payload,
             bool notify)
{
    enum sv_rx_result result;

    if ((rec->flags & SV_REC_FIRST) != 0) {
        result = sv_rx_begin(qp, rec);
        if (result != SV_RX_PART) {
            return result;
        }
    } else if (!sv_sge_is_registered(qp->node, qp->rx.cur->sge,
                                     qp->rx.cur->num_sge)) {
        return sv_rx_fail(qp, IBV_WC_LOC_PROT_ERR, SV_NAK_OPERATIONAL);
    }

    if (sv_likely((rec->flags & (SV_REC_WRITE | SV_REC_OFFER)) == 0)) {
        sv_rx_place(&qp->rx, payload, rec->bytes);
        qp->rx.left -= rec->bytes;
    } else if ((rec->flags & SV_REC_OFFER) != 0) {
        result = sv_rx_accept_offer(qp, rec, payload);
        if (result != SV_RX_MESSAGE) {
            return result;
        }
    }
    if ((rec->flags & SV_REC_LAST) == 0) {
        return SV_RX_PART;
    }

    sv_rx_complete(qp, IBV_WC_SUCCESS, rec,
                   !notify ? SV_NOTIFY_NONE :
                   (rec->flags & SV_REC_SOLICITED) ? SV_NOTIFY_SOLICITED :
                                                     SV_NOTIFY_NEXT);
    return SV_RX_MESSAGE;
}

static void sv_rx_wake_sender(struct sv_qp *qp)
{
    struct sv_peer *peer;

    atomic_store(&qp->shm->waiting, 0);
    peer = (qp->base.qp_type == IBV_QPT_UD) ? NULL :
           sv_peer_get(qp->node, sv_qpn_slot(qp->rx.remote_qpn));
    if (peer != NULL) {
        sv_doorbell_ring(peer->head);
        sv_peer_put(qp->node, peer);
    }
}

/* Tells the sender our position, if it is at least `step` bytes further than
 * what the sender was told last. */
static inline void sv_rx_publish(struct sv_qp *qp, uint32_t step)
{
    if (qp->rx.pos - qp->rx.published >= step) {
        qp->rx.published = qp->rx.pos;
        atomic_store_explicit(&qp->shm->head, qp->rx.pos, memory_order_release);
    }
}

/* The sender goes on in a larger ring, which it should have reserved: we make
 * sure. False: it cannot go there. */
static bool sv_rx_move(struct sv_qp *qp, const struct sv_rec *rec)
{
    struct sv_rx *rx     = &qp->rx;
    struct sv_node *node = qp->node;
    uint32_t left        = rx->ring_bytes;

    if (((rec->total != SV_RING_MIDDLE) && (rec->total != SV_RING_BYTES)) ||
        (rec->total <= left) || (qp->base.qp_type == IBV_QPT_UD) ||
        (sv_ring_reserve(node->self, qp->index, rec->total) != 0)) {
        return false;
    }

    rx->ring       = sv_peer_ring(node->self, qp->index, rec->total);
    rx->ring_bytes = rec->total;
    rx->pos        = sv_ring_next(rx->pos);
    if (left == SV_RING_MIDDLE) {
        sv_ring_release(node, qp->index, left);
    }
    return true;
}

void sv_rx_audit(struct sv_qp *qp)
{
    struct sv_rx *rx           = &qp->rx;
    const struct sv_scan *scan = &sv_cq(qp->base.recv_cq)->scan[rx->scan];
    uint64_t awaits            = atomic_load(&qp->shm->awaits);

    sv_assert_held(&sv_cq(qp->base.recv_cq)->rx_lock);
    if (!rx->open || (rx->pos == UINT64_MAX) || (awaits == 0) ||
        (qp->base.qp_type == IBV_QPT_UD)) {
        return;
    }

    if ((atomic_load(&qp->shm->head) != rx->published) ||
        ((awaits > rx->pos) && (atomic_load(scan->tag) != scan->expect))) {
        (void)sv_rx_fatal(qp);
    }
}

/* Prefetches behind the current record. After a backlog more records are there,
 * and their lines come over while this one is processed. Without a backlog the
 * sender has just prefetched those lines itself. */
static inline void sv_rx_fetch_ahead(struct sv_rx *rx)
{
    if (++rx->streak > SV_BACKLOG) {
        __builtin_prefetch(rx->ring + ((rx->pos + SV_AHEAD * SV_CACHE_LINE) &
                                       (rx->ring_bytes - 1)));
    }
}

/* Prefetches the line of the likely answer. A program that answered the last
 * message will answer this one. The other end has polled that line since, and
 * so has a copy of it. Prefetched now, the line is ours alone when the answer
 * is posted. If nothing was sent since, the prefetch would only disturb the
 * other end's polls. */
static inline void sv_rx_fetch_answer(struct sv_qp *qp)
{
    uint8_t *next = atomic_load_explicit(&qp->tx.next, memory_order_relaxed);

    if (next != qp->rx.answer) {
        qp->rx.answer = next;
        sv_prefetch_write(next);
    }
}

unsigned sv_rx_run(struct sv_qp *qp, unsigned limit, bool notify)
{
    struct sv_rx *rx  = &qp->rx;
    unsigned messages = 0;
    enum sv_rx_result result;
    const struct sv_rec *at;
    struct sv_rec rec;
    uint32_t offset;

    sv_assert_held(&sv_cq(qp->base.recv_cq)->rx_lock);
    if (!rx->open || (rx->pos == UINT64_MAX)) {
        return 0;
    }

    if (sv_unlikely(atomic_load(&qp->state) == IBV_QPS_RTR) &&
        !qp->comm_established) {
        qp->comm_established = true;
        sv_event_post(qp->ctx, IBV_EVENT_COMM_EST, qp);
    }

    while (messages < limit) {
        offset = rx->pos & (rx->ring_bytes - 1);
        at     = (struct sv_rec*)(rx->ring + offset);
        if (atomic_load_explicit(&at->tag, memory_order_acquire) !=
            (rx->pos ^ rx->key)) {
            rx->streak = 0;
            break;
        }

        sv_rx_read_header(&rec, at);
        if (sv_unlikely(!sv_rx_is_usual(rx, &rec, offset))) {
            if (sv_rx_is_padding(&rec, offset)) {
                rx->pos += rx->ring_bytes - offset;
                continue;
            }
            if ((rec.flags == SV_REC_MOVE) && sv_rx_move(qp, &rec)) {
                continue;
            }
            if (!sv_rx_is_legal(qp, &rec, offset)) {
                return messages + (sv_rx_fatal(qp) == SV_RX_FAILED);
            }
        }

        sv_rx_fetch_answer(qp);
        sv_rx_fetch_ahead(rx);
        result = sv_rx_short(qp, &rec, at + 1) ?
                         SV_RX_MESSAGE :
                         sv_rx_record(qp, &rec, at + 1, notify);
        if (sv_unlikely(result >= SV_RX_STALLED)) {
            if (result == SV_RX_STALLED) {
                break;
            }
            return messages + (result == SV_RX_FAILED);
        }

        rx->pos  += sv_rec_span(rec.bytes);
        messages += (result == SV_RX_MESSAGE);
        sv_rx_publish(qp, rx->ring_bytes / 16);
    }

    sv_rx_publish(qp, 1);
    sv_rx_expect(qp);
    if (sv_unlikely(atomic_load_explicit(&qp->shm->waiting,
                                         memory_order_relaxed) != 0)) {
        sv_rx_wake_sender(qp);
    }
    sv_qp_check(qp);
    return messages;
}
