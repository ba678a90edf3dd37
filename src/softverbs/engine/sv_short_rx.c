/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving messages of one record: from the ring into the RECV and into the
 * program's completion, without intermediate copies. engine/sv_short_tx.c says
 * when.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_limits.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/engine/sv_short.h"
#include "softverbs/fabric/sv_port.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_mr.h"
#include "softverbs/objects/sv_qp.h"
#include "softverbs/objects/sv_rq.h"
#include "softverbs/objects/sv_srq.h"

void sv_rx_fill_wc(const struct sv_qp *qp, struct ibv_wc *wc, uint64_t wr_id,
                   enum ibv_wc_status status, const struct sv_rec *rec)
{
    *wc = (struct ibv_wc){
        .wr_id  = wr_id,
        .status = status,
        .opcode = IBV_WC_RECV,
        .qp_num = qp->base.qp_num
    };
    if (rec == NULL) {
        return;
    }

    wc->byte_len = rec->total;
    wc->src_qp   = rec->src_qpn;
    wc->slid     = sv_port_lid();
    wc->sl       = rec->sl;
    if ((rec->flags & SV_REC_WRITE) != 0) {
        wc->opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    }
    if ((rec->flags & SV_REC_IMM) != 0) {
        wc->wc_flags |= IBV_WC_WITH_IMM;
        wc->imm_data  = rec->imm;
    }
    if ((rec->flags & SV_REC_GRH) != 0) {
        wc->wc_flags |= IBV_WC_GRH;
    }
    if (qp->base.qp_type == IBV_QPT_UD) {
        wc->byte_len += SV_GRH_BYTES;
    }
}

/* The oldest RECV if the short path can fill it, or NULL. Its first piece has to do. */
static inline const struct sv_rwqe *
sv_short_recv(const struct sv_qp *qp, const struct sv_rec *rec)
{
    const struct sv_rwqe *wqe;

    /* The RECV of an empty message may have no memory. */
    if (((rec->flags & (SV_REC_FIRST | SV_REC_LAST | SV_REC_WRITE |
                        SV_REC_OFFER)) != (SV_REC_FIRST | SV_REC_LAST)) ||
        qp->tx.special || (rec->bytes == 0)) {
        return NULL;
    }
    if ((qp->base.srq != NULL) &&
        (atomic_load_explicit(&sv_srq(qp->base.srq)->limit,
                              memory_order_relaxed) != 0)) {
        return NULL; /* taking a RECV may be an event */
    }

    wqe = sv_rq_oldest(qp->recvs);
    return ((wqe != NULL) && (wqe->num_sge > 0) &&
            (wqe->sge[0].length >= rec->bytes)) ? wqe : NULL;
}

bool sv_rx_short(struct sv_qp *qp, const struct sv_rec *rec,
                 const void *payload)
{
    struct sv_cq *cq = sv_cq(qp->base.recv_cq);
    const struct sv_rwqe *wqe;
    struct ibv_sge to;

    sv_assert_held(&sv_cq(qp->base.recv_cq)->rx_lock);
    /* Completions in the batch come first. */
    if ((cq->direct_room == 0) || (cq->num_batch != 0)) {
        return false;
    }
    wqe = sv_short_recv(qp, rec);
    if ((wqe == NULL) ||
        (sv_sge_resolve(qp->node, qp->pdn, wqe->sge, 1, IBV_ACCESS_LOCAL_WRITE,
                        &to) < 0)) {
        return false;
    }

    sv_copy((void*)(uintptr_t)to.addr, payload, rec->bytes);
    sv_rx_fill_wc(qp, cq->direct++, wqe->wr_id, IBV_WC_SUCCESS, rec);
    --cq->direct_room;
    ++qp->rx.consumed;
    sv_rq_finish(qp->recvs);
    return true;
}
