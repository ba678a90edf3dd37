/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries of the send queue, and how they become records.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_limits.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/engine/sv_wqe.h"
#include "softverbs/objects/sv_mr.h"
#include "softverbs/objects/sv_qp.h"

struct sv_swqe *sv_send_queue(struct sv_qp *qp, const struct ibv_send_wr *wr)
{
    sv_assert_held(&qp->tx.lock);
    sv_send_copy(qp, wr);
    return sv_tx_wqe(&qp->tx, qp->tx.posted - 1);
}

int sv_tx_resolve(struct sv_qp *qp, struct sv_swqe *wqe, int access)
{
    int64_t total;

    sv_assert_held(&qp->tx.lock);
    if (wqe->resolved) {
        /* inline data are safe; memory that had to wait may be deregistered by
         * now */
        return ((wqe->flags & IBV_SEND_INLINE) ||
                sv_sge_is_registered(qp->node, wqe->sge, wqe->num_sge)) ?
                       0 : IBV_WC_LOC_PROT_ERR;
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

/* Copies `bytes` of the message, starting at `sent`. */
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
        sv_copy(to, (char*)(uintptr_t)wqe->sge[i].addr + skip, n);
        to    += n;
        bytes -= n;
        skip   = 0;
    }
}

void sv_tx_fill_record(struct sv_qp *qp, struct sv_rec *rec,
                              const struct sv_swqe *wqe, uint32_t bytes)
{
    unsigned flags = wqe->rec_flags;

    if (wqe->sent == 0) {
        flags |= SV_REC_FIRST;
    }
    if (wqe->sent + bytes == wqe->total) {
        flags |= SV_REC_LAST;
    }

    rec->bytes   = bytes;
    rec->total   = wqe->total;
    rec->src_qpn = qp->base.qp_num;
    rec->imm     = wqe->imm;
    rec->flags   = flags;
    sv_tx_gather(wqe, (uint8_t*)(rec + 1), bytes);
}
