/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of one record, the usual case: a SEND over a connection on which
 * nothing waits, into a RECV of one piece.
 *
 * Latency is these few instructions and one cache line that moves. So the
 * message goes from the program's WR into the ring without an entry of the send
 * queue in between. On the other side it goes from the ring into the RECV, and
 * its completion into the program's array.
 *
 * Nothing is decided differently here than in sv_tx.c, sv_send.c and sv_rx.c.
 * Whatever is unusual is left to them before anything has been done. Two things
 * turn out only when the message is in the ring: the receiver has closed, or
 * has to say whether the message fits. Then a queue entry is made, in the state
 * in which they would have left it.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/engine/sv_rc.h"
#include "softverbs/engine/sv_short.h"
#include "softverbs/engine/sv_tx.h"
#include "softverbs/engine/sv_wqe.h"
#include "softverbs/objects/sv_channel.h"
#include "softverbs/objects/sv_mr.h"
#include "softverbs/objects/sv_qp.h"

/* Most pieces of a short message: a header, and some of the program's. */
#define SV_SHORT_SGE    4

static inline bool sv_short_may_send(const struct sv_qp *qp,
                                     const struct ibv_send_wr *wr)
{
    const struct sv_tx *tx = &qp->tx;

    return (tx->done == tx->posted) && (tx->epoch != 0) && !tx->special &&
           (atomic_load_explicit(&qp->state, memory_order_relaxed) ==
            IBV_QPS_RTS) &&
           ((wr->opcode == IBV_WR_SEND) ||
            (wr->opcode == IBV_WR_SEND_WITH_IMM)) &&
           ((uint32_t)wr->num_sge <= tx->max_sge) &&
           (tx->posted - atomic_load_explicit(&tx->freed,
                                              memory_order_acquire) !=
            tx->depth);
}

/* Returns the bytes to send, or -1: not by this path. *pieces_p receives their
 * real addresses; `real` has room for SV_SHORT_SGE. */
static inline int64_t sv_short_pieces(struct sv_qp *qp,
                                      const struct ibv_send_wr *wr,
                                      const struct ibv_sge **pieces_p,
                                      struct ibv_sge *real)
{
    int64_t total = 0;
    int i;

    if ((wr->send_flags & IBV_SEND_INLINE) == 0) {
        if (wr->num_sge > SV_SHORT_SGE) {
            return -1;
        }
        for (i = 0; i < wr->num_sge; ++i) {
            real[i] = wr->sg_list[i]; /* an empty one stays as it is */
        }
        *pieces_p = real;
        return sv_sge_resolve(qp->node, qp->pdn, wr->sg_list, wr->num_sge, 0,
                              real);
    }

    for (i = 0; i < wr->num_sge; ++i) {
        total += wr->sg_list[i].length;
    }
    *pieces_p = wr->sg_list;
    return (total <= qp->tx.max_inline) ? total : -1;
}

static inline void sv_short_publish(struct sv_qp *qp, struct sv_rec *rec,
                                    const struct ibv_send_wr *wr,
                                    const struct ibv_sge *pieces,
                                    uint32_t total)
{
    struct sv_tx *tx = &qp->tx;
    uint8_t *to      = (uint8_t*)(rec + 1);
    int i;

    for (i = 0; i < wr->num_sge; ++i) {
        sv_copy(to, (void*)(uintptr_t)pieces[i].addr, pieces[i].length);
        to += pieces[i].length;
    }
    rec->bytes   = total;
    rec->total   = total;
    rec->src_qpn = qp->base.qp_num;
    rec->imm     = wr->imm_data;
    rec->flags   = sv_send_rec_flags(wr) | SV_REC_FIRST | SV_REC_LAST;
    atomic_store_explicit(&rec->tag, tx->tail ^ tx->key, memory_order_release);
    tx->tail    += sv_rec_span(total);
    sv_tx_fetch_ahead(tx, sv_rec_span(total));
}

/* The message is in the ring but not acknowledged. */
static __attribute__((noinline)) void
sv_short_await(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t total,
               bool closed)
{
    struct sv_swqe *wqe = sv_send_queue(qp, wr);

    wqe->total = total;
    wqe->sent  = total;
    wqe->end   = qp->tx.tail;
    wqe->stage = closed ? SV_STAGE_CLAIMED : SV_STAGE_SENT;
    if (closed) {
        (void)sv_tx_ack_timeout(qp);
    }
}

/* No entry is written: the memory of the queue is for requests that wait. */
static inline void sv_short_acknowledge(struct sv_qp *qp,
                                        const struct ibv_send_wr *wr,
                                        uint32_t total)
{
    struct sv_swqe wqe;

    wqe.wr_id  = wr->wr_id;
    wqe.opcode = wr->opcode;
    wqe.flags  = wr->send_flags;
    wqe.total  = total;
    ++qp->tx.posted;
    sv_tx_retire(qp, &wqe, IBV_WC_SUCCESS);
}

bool sv_tx_short(struct sv_qp *qp, const struct ibv_send_wr *wr)
{
    struct sv_tx *tx = &qp->tx;
    const struct ibv_sge *pieces;
    struct ibv_sge real[SV_SHORT_SGE];
    struct sv_rec *rec;
    int64_t total;
    bool closed;

    sv_assert_held(&qp->tx.lock);
    if (!sv_short_may_send(qp, wr)) {
        return false;
    }
    total = sv_short_pieces(qp, wr, &pieces, real);
    if ((total <= 0) || (total > sv_tx_max_record(tx)) ||
        !sv_tx_enter(tx)) {
        return false;
    }
    rec = sv_tx_room(tx, sv_rec_span(total));
    if (sv_unlikely((rec == NULL) || !sv_tx_claim(tx))) {
        sv_tx_leave(tx);
        return false;
    }

    sv_short_publish(qp, rec, wr, pieces, total);
    sv_tx_ring_bell(tx->peer, tx->rem);
    closed = sv_tx_is_closed(tx);
    sv_tx_leave(tx);
    if (sv_likely(!closed)) {
        sv_cq_notify(qp->node, tx->peer, tx->rem_cq,
                     (wr->send_flags & IBV_SEND_SOLICITED) != 0);
    }

    if (sv_unlikely(closed || (total > tx->min_len))) {
        sv_short_await(qp, wr, total, closed);
    } else {
        sv_short_acknowledge(qp, wr, total);
    }
    return true;
}
