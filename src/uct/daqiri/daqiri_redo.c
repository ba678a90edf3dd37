/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting again; see daqiri_redo.h.
 */
#include "daqiri_tx.h"


ucs_status_t uct_daqiri_redo_init(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;
    size_t length = ucs_max(iface->config.max_inline + sizeof(struct ibv_sge),
                            iface->config.max_sge * sizeof(struct ibv_sge));

    if (!iface->config.recovery) {
        return UCS_OK;
    }
    conn->redo.mask   = conn->sq.mask;
    conn->redo.stride = ucs_align_up(sizeof(uct_daqiri_redo_t) + length,
                                     _Alignof(uct_daqiri_redo_t));
    conn->redo.slots  = ucs_malloc((conn->sq.mask + 1) * conn->redo.stride,
                                   "daqiri_redo");
    return (conn->redo.slots == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
}


void uct_daqiri_redo_cleanup(uct_daqiri_conn_t *conn)
{
    ucs_free(conn->redo.slots);
}


/* One request, under its old id. What is over by now goes as an empty WRITE,
 * which keeps its place. */
static int uct_daqiri_redo_post(uct_daqiri_conn_t *conn, uint32_t id,
                                int is_past)
{
    uct_daqiri_redo_t *redo = uct_daqiri_redo_slot(conn, id);
    dq_op_kind_t kind       = (dq_op_kind_t)redo->op.kind;
    struct ibv_send_wr wr   = {
        .wr_id      = id,
        .opcode     = IBV_WR_RDMA_WRITE,
        .send_flags = dq_sq_is_signalled(&conn->sq, id) ? IBV_SEND_SIGNALED
                                                        : 0,
    };
    struct ibv_send_wr *bad_wr;
    int ret;

    if (dq_redo_verdict(kind, is_past) == DQ_REDO_AGAIN) {
        wr.opcode              = (kind == DQ_OP_MSG) ? IBV_WR_SEND
                                                     : redo->opcode;
        wr.send_flags         |= redo->flags;
        wr.sg_list             = redo->sge;
        wr.num_sge             = redo->num_sge;
        wr.wr.rdma.rkey        = redo->rkey;
        wr.wr.rdma.remote_addr = redo->remote_addr;
    }
    ret = ibv_post_send(conn->qp, &wr, &bad_wr);
    if (ucs_unlikely(ret != 0)) {
        uct_daqiri_tx_count_refused(conn->iface, ret);
    }
    return ret;
}


dq_cause_t uct_daqiri_redo_all(uct_daqiri_conn_t *conn,
                               const dq_frame_t *peer, dq_return_t *back)
{
    uint32_t acked = dq_redo_acked(&conn->redo, conn->sq.retired,
                                   conn->sq.posted, conn->tx_seq);
    dq_redo_plan_t plan;
    uint32_t id, end;

    if (((int32_t)(peer->delivered - acked) < 0) ||
        ((int32_t)(conn->tx_seq - peer->delivered) < 0)) {
        return DQ_CAUSE_MISMATCH;
    }
    plan = dq_redo_plan(&conn->redo, conn->sq.retired, conn->sq.posted,
                        peer->delivered);
    if (plan.unknown) {
        return DQ_CAUSE_ATOMIC;
    }
    if (dq_sq_reopen(&conn->sq, peer->credits, peer->promised,
                     plan.messages) != 0) {
        return DQ_CAUSE_MISMATCH;
    }

    /* first, all that is to be posted again: completions may post more */
    end         = conn->sq.posted;
    back->again = end - plan.over;
    back->had   = plan.had;
    for (id = plan.over; id != end; id++) {
        if (uct_daqiri_redo_post(conn, id, (int32_t)(id - plan.ahead) < 0) !=
            0) {
            conn->is_holed = 1;
            conn->hole     = id;
            return DQ_CAUSE_POST;
        }
    }
    uct_daqiri_tx_retire_to(conn, plan.over);
    return DQ_CAUSE_NONE;
}
