/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries of the send queue: how they are made of WRs and become records.
 *
 * All functions need tx.lock.
 */
#ifndef SV_WQE_H
#define SV_WQE_H

#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/objects/sv_pd.h"
#include "softverbs/objects/sv_qp.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdint.h>

static inline uint16_t sv_send_rec_flags(const struct ibv_send_wr *wr)
{
    uint16_t flags = 0;

    if ((wr->opcode == IBV_WR_SEND_WITH_IMM) ||
        (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)) {
        flags |= SV_REC_IMM;
    }
    if ((wr->send_flags & IBV_SEND_SOLICITED) != 0) {
        flags |= SV_REC_SOLICITED;
    }
    return flags;
}

static inline void sv_send_copy_inline(struct sv_tx *tx, struct sv_swqe *wqe,
                                const struct ibv_send_wr *wr)
{
    uint8_t *inlined = (uint8_t*)&wqe->sge[tx->max_sge];
    uint32_t total   = 0;
    int i;

    for (i = 0; i < wr->num_sge; ++i) {
        sv_copy(inlined + total, (void*)(uintptr_t)wr->sg_list[i].addr,
                wr->sg_list[i].length);
        total += wr->sg_list[i].length;
    }

    wqe->sge[0].addr   = (uintptr_t)inlined;
    wqe->sge[0].length = total;
    wqe->num_sge       = 1;
    wqe->total         = total;
    wqe->resolved      = true;
}

static inline void sv_send_copy_target(struct sv_qp *qp, struct sv_swqe *wqe,
                                const struct ibv_send_wr *wr)
{
    const struct sv_ah *ah;

    if (qp->base.qp_type == IBV_QPT_UD) {
        ah             = (const struct sv_ah*)wr->wr.ud.ah;
        wqe->ud.qpn    = wr->wr.ud.remote_qpn;
        /* The top bit selects the sender's own Q_Key. */
        wqe->ud.qkey   = (wr->wr.ud.remote_qkey >> 31) ?
                                 atomic_load(&qp->shm->qkey) :
                                 wr->wr.ud.remote_qkey;
        wqe->ud.sl     = ah->sl;
        wqe->ud.is_local = ah->is_local;
        if (ah->global) {
            wqe->rec_flags |= SV_REC_GRH;
        }
        return;
    }

    if ((wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) ||
        (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)) {
        wqe->rdma.addr        = wr->wr.atomic.remote_addr;
        wqe->rdma.rkey        = wr->wr.atomic.rkey;
        wqe->rdma.compare_add = wr->wr.atomic.compare_add;
        wqe->rdma.swap        = wr->wr.atomic.swap;
        return;
    }

    wqe->rdma.addr = wr->wr.rdma.remote_addr;
    wqe->rdma.rkey = wr->wr.rdma.rkey;
}

static inline __attribute__((always_inline)) void
sv_send_copy(struct sv_qp *qp, const struct ibv_send_wr *wr)
{
    struct sv_tx *tx    = &qp->tx;
    struct sv_swqe *wqe = sv_tx_wqe(tx, tx->posted++);
    int i;

    wqe->wr_id     = wr->wr_id;
    wqe->opcode    = wr->opcode;
    wqe->flags     = wr->send_flags;
    wqe->imm       = wr->imm_data;
    wqe->sent      = 0;
    wqe->total     = 0;
    wqe->stage     = SV_STAGE_NEW;
    wqe->resolved  = false;
    wqe->rec_flags = sv_send_rec_flags(wr);
    sv_send_copy_target(qp, wqe, wr);
    if ((wr->send_flags & IBV_SEND_INLINE) != 0) {
        sv_send_copy_inline(tx, wqe, wr);
        return;
    }

    wqe->num_sge = wr->num_sge;
    for (i = 0; i < wr->num_sge; ++i) {
        wqe->sge[i] = wr->sg_list[i];
    }
}

/* Makes a queue entry of a checked WR. */
struct sv_swqe *sv_send_queue(struct sv_qp *qp, const struct ibv_send_wr *wr);
/* Checks local keys, once per WR; inline data have none. 0 or a status. */
int sv_tx_resolve(struct sv_qp *qp, struct sv_swqe *wqe, int access);
/* Fills a record, except its tag, with `bytes` of the message from `sent`
 * on. */
void sv_tx_fill_record(struct sv_qp *qp, struct sv_rec *rec,
                       const struct sv_swqe *wqe, uint32_t bytes);

#endif
