/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posts requests again; see daqiri_replay.h.
 */
#include "conn/daqiri_replay.h"

#include "conn/daqiri_conn.h"
#include "conn/daqiri_qp.h"
#include "conn/daqiri_retry.h"
#include "conn/daqiri_tx.h"
#include "iface/daqiri_iface.h"


/* Behind the only SGE of an atomic. */
typedef struct {
    uint64_t compare_add, swap;
} uct_daqiri_operands_t;

DQ_STATIC_ASSERT(sizeof(uct_daqiri_operands_t) <= sizeof(struct ibv_sge),
                 "fits the second SGE, which every slot has");


static int uct_daqiri_replay_is_atomic(const uct_daqiri_replay_t *replay)
{
    return replay->op.kind == DQ_OP_ATOMIC;
}


void uct_daqiri_replay_note_rest(uct_daqiri_conn_t *conn,
                                 const struct ibv_send_wr *wr)
{
    uct_daqiri_replay_t *replay = uct_daqiri_replay_slot(conn, wr->wr_id);
    uct_daqiri_operands_t operands;

    if (uct_daqiri_replay_is_atomic(replay)) {
        operands.compare_add = wr->wr.atomic.compare_add;
        operands.swap        = wr->wr.atomic.swap;
        memcpy(&replay->sge[1], &operands, sizeof(operands));
    } else if (wr->opcode == IBV_WR_SEND_WITH_IMM) {
        replay->imm = wr->imm_data;
    }
}


static struct ibv_send_wr uct_daqiri_replay_blank(const uct_daqiri_conn_t *conn,
                                                  uint32_t id)
{
    return (struct ibv_send_wr){
        .wr_id      = id,
        .opcode     = IBV_WR_RDMA_WRITE,
        .send_flags = dq_sq_is_signalled(&conn->sq, id) ? IBV_SEND_SIGNALED
                                                        : 0,
    };
}


static void uct_daqiri_replay_fill(const uct_daqiri_replay_t *replay,
                                   struct ibv_send_wr *wr)
{
    wr->opcode      = (enum ibv_wr_opcode)replay->opcode;
    wr->send_flags |= replay->flags;
    wr->sg_list     = (struct ibv_sge*)replay->sge;
    wr->num_sge     = replay->num_sge;
}


static int uct_daqiri_replay_do_post(uct_daqiri_conn_t *conn,
                                     struct ibv_send_wr *wr)
{
    uint32_t send_end;
    int ret;

    ret = uct_daqiri_qp_post(conn->qp.verbs, wr, &send_end);
    if (ucs_unlikely(ret != 0)) {
        uct_daqiri_tx_count_refused(conn->iface, ret);
    }
    return ret;
}


int uct_daqiri_replay_post_as_was(uct_daqiri_conn_t *conn, uint32_t id)
{
    uct_daqiri_replay_t *replay = uct_daqiri_replay_slot(conn, id);
    struct ibv_send_wr wr       = uct_daqiri_replay_blank(conn, id);
    uct_daqiri_operands_t operands;

    if (replay->op.kind != DQ_OP_BLANK) {
        uct_daqiri_replay_fill(replay, &wr);
    }
    if (uct_daqiri_replay_is_atomic(replay)) {
        memcpy(&operands, &replay->sge[1], sizeof(operands));
        wr.wr.atomic.remote_addr = replay->remote_addr;
        wr.wr.atomic.rkey        = replay->rkey;
        wr.wr.atomic.compare_add = operands.compare_add;
        wr.wr.atomic.swap        = operands.swap;
    } else if (wr.opcode == IBV_WR_SEND_WITH_IMM) {
        wr.imm_data = replay->imm;
    } else if (replay->op.kind != DQ_OP_BLANK) {
        wr.wr.rdma.rkey        = replay->rkey;
        wr.wr.rdma.remote_addr = replay->remote_addr;
    }
    return uct_daqiri_replay_do_post(conn, &wr);
}


int uct_daqiri_replay_post(uct_daqiri_conn_t *conn, uint32_t id, int is_past)
{
    uct_daqiri_replay_t *replay = uct_daqiri_replay_slot(conn, id);
    dq_op_kind_t kind           = (dq_op_kind_t)replay->op.kind;
    struct ibv_send_wr wr       = uct_daqiri_replay_blank(conn, id);

    if (dq_replay_verdict(kind, is_past) == DQ_REPLAY_RESEND) {
        uct_daqiri_replay_fill(replay, &wr);
        wr.wr.rdma.rkey        = replay->rkey;
        wr.wr.rdma.remote_addr = replay->remote_addr;
        if (kind == DQ_OP_MSG) {
            wr.opcode = IBV_WR_SEND; /* credits are counted anew: none go along */
        }
    }
    return uct_daqiri_replay_do_post(conn, &wr);
}


dq_cause_t uct_daqiri_replay_all(uct_daqiri_conn_t *conn,
                                 const dq_frame_t *peer, dq_recovered_t *back)
{
    uint32_t acked = dq_replay_acked(&conn->replay, conn->sq.retired,
                                     conn->sq.posted, conn->tx_seq);
    dq_replay_plan_t plan;
    uint32_t id, end;
    int ret;

    if (((int32_t)(peer->delivered - acked) < 0) ||
        ((int32_t)(conn->tx_seq - peer->delivered) < 0)) {
        return DQ_CAUSE_MISMATCH;
    }
    plan = dq_replay_plan(&conn->replay, conn->sq.retired, conn->sq.posted,
                          peer->delivered);
    if (plan.unknown) {
        return DQ_CAUSE_ATOMIC;
    }
    if (dq_sq_reopen(&conn->sq, peer->credits, peer->promised,
                     plan.messages) != 0) {
        return DQ_CAUSE_MISMATCH;
    }

    /* All replays come first: completions may post more. */
    end             = conn->sq.posted;
    back->resent    = end - plan.over;
    back->delivered = plan.had;
    for (id = plan.over; id != end; id++) {
        ret = uct_daqiri_replay_post(conn, id, (int32_t)(id - plan.ahead) < 0);
        if (ret == 0) {
            continue;
        }
        if (!uct_daqiri_retry_keep_replay(conn, id, plan.ahead, end, ret)) {
            uct_daqiri_tx_set_send_end(conn, id);
            return DQ_CAUSE_POST;
        }
        break;
    }
    uct_daqiri_tx_retire_to(conn, plan.over);
    return DQ_CAUSE_NONE;
}
