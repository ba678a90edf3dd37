/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is remembered of each posted request, so that it can be posted again on
 * another QP: by ledger slot, until the ledger retires it. Inline data has no
 * other place to be, so it is here, most of it before the device is given it; of
 * everything else the memory belongs to the request until it completes, and
 * addresses do.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_REPLAY_H
#define UCT_DAQIRI_REPLAY_H

#include "conn/daqiri_conn.h"

struct uct_daqiri_replay {
    dq_op_t  op;
    uint8_t  opcode;      /* enum ibv_wr_opcode                              */
    uint8_t  flags;       /* IBV_SEND_INLINE, IBV_SEND_FENCE                 */
    uint8_t  num_sge;
    union {
        uint32_t rkey;
        uint32_t imm;     /* only of what was refused; network order         */
    };
    uint64_t remote_addr;
    struct ibv_sge sge[]; /* or, after the first one, the inline data        */
};

static inline uct_daqiri_replay_t *
uct_daqiri_replay_slot(const uct_daqiri_conn_t *conn, uint32_t id)
{
    return (uct_daqiri_replay_t*)dq_replay_slot(&conn->replay, id);
}

static UCS_F_ALWAYS_INLINE dq_op_kind_t
uct_daqiri_replay_kind(const uct_daqiri_tx_t *tx)
{
    if (tx->wr_class != DQ_WR_RMA) {
        return (tx->wr_class == DQ_WR_MSG) ? DQ_OP_MSG : DQ_OP_GRANT;
    }
    switch (tx->opcode) {
    case IBV_WR_RDMA_WRITE:
        return DQ_OP_WRITE;
    case IBV_WR_RDMA_READ:
        return DQ_OP_READ;
    default:
        return DQ_OP_ATOMIC;
    }
}

/* Room for the @a length bytes of inline data of the next request, where they
 * will be remembered; *tx says so, and so does the SGE. Only if the conn
 * remembers. */
static UCS_F_ALWAYS_INLINE void *
uct_daqiri_replay_inline(uct_daqiri_conn_t *conn, size_t length,
                         uct_daqiri_tx_t *tx, struct ibv_sge **sge_p)
{
    uct_daqiri_replay_t *replay = uct_daqiri_replay_slot(conn, conn->sq.posted);

    replay->sge[0].addr   = (uintptr_t)&replay->sge[1];
    replay->sge[0].length = length;
    tx->is_placed         = 1;
    tx->replay            = replay;
    *sge_p                = replay->sge;
    return &replay->sge[1];
}

/* Where the one SGE of the next request goes: to where it will be remembered, or
 * else into *other; *tx says so. */
static UCS_F_ALWAYS_INLINE struct ibv_sge *
uct_daqiri_replay_sge(const uct_daqiri_conn_t *conn, uct_daqiri_tx_t *tx,
                      struct ibv_sge *other)
{
    tx->is_placed = 1;
    if (ucs_unlikely(conn->replay.slots == NULL)) {
        return other;
    }
    tx->replay = uct_daqiri_replay_slot(conn, conn->sq.posted);
    return tx->replay->sge;
}

/* What it is, but not of what. */
static UCS_F_ALWAYS_INLINE void
uct_daqiri_replay_note_kind(uct_daqiri_conn_t *conn, uct_daqiri_replay_t *replay,
                            const uct_daqiri_tx_t *tx, unsigned flags,
                            int num_sge)
{
    replay->op.kind = uct_daqiri_replay_kind(tx);
    replay->op.seq  = conn->tx_seq;
    replay->opcode  = tx->opcode;
    replay->flags   = flags;
    replay->num_sge = num_sge;
    if (tx->wr_class == DQ_WR_RMA) {
        replay->rkey        = tx->rkey;
        replay->remote_addr = tx->remote_addr;
    }
}

/* A message without credits, whose @a length bytes are inline in @a redo. */
static UCS_F_ALWAYS_INLINE void
uct_daqiri_replay_note_plain(const uct_daqiri_conn_t *conn,
                             uct_daqiri_replay_t *replay, size_t length)
{
    replay->op.kind       = DQ_OP_MSG;
    replay->op.seq        = conn->tx_seq;
    replay->opcode        = IBV_WR_SEND;
    replay->flags         = IBV_SEND_INLINE;
    replay->num_sge       = 1;
    replay->sge[0].addr   = (uintptr_t)&replay->sge[1];
    replay->sge[0].length = length;
}

/* Remembers the request. @a wr then has its SGEs, and inline data, from here. */
static UCS_F_ALWAYS_INLINE void
uct_daqiri_replay_note(uct_daqiri_conn_t *conn, const uct_daqiri_tx_t *tx,
                       unsigned flags, struct ibv_send_wr *wr)
{
    uct_daqiri_replay_t *replay = uct_daqiri_replay_slot(conn, wr->wr_id);
    uint8_t *data               = (uint8_t*)&replay->sge[1];
    uint8_t *end                = data;
    int i;

    uct_daqiri_replay_note_kind(conn, replay, tx, flags, wr->num_sge);
    if (tx->flags & IBV_SEND_INLINE) {
        for (i = 0; i < wr->num_sge; i++) {
            memcpy(end, (const void*)(uintptr_t)wr->sg_list[i].addr,
                   wr->sg_list[i].length);
            end += wr->sg_list[i].length;
        }
        replay->num_sge       = 1;
        replay->sge[0].addr   = (uintptr_t)data;
        replay->sge[0].length = end - data;
        wr->sg_list           = replay->sge;
        wr->num_sge           = 1;
        return;
    }
    for (i = 0; i < wr->num_sge; i++) {
        replay->sge[i] = wr->sg_list[i];
    }
    wr->sg_list = replay->sge;
}

/* The rest of a request that could not be posted at once: what it needs to be
 * posted on the same QP, and not on another one. */
void uct_daqiri_replay_note_rest(uct_daqiri_conn_t *conn,
                                 const struct ibv_send_wr *wr);
/* Posts a request on the QP that it was made for. 0, or errno. */
int uct_daqiri_replay_post_as_was(uct_daqiri_conn_t *conn, uint32_t id);
/* Posts one on another QP. What is over by now, because @a is_past, goes as an
 * empty WRITE, which keeps its place. 0, or errno. */
int uct_daqiri_replay_post(uct_daqiri_conn_t *conn, uint32_t id, int is_past);

/* Makes room, if this interface recovers. */
ucs_status_t uct_daqiri_replay_init(uct_daqiri_conn_t *conn);
void uct_daqiri_replay_cleanup(uct_daqiri_conn_t *conn);

/*
 * The conn has another QP: all that the peer does not have, by what its REQ or
 * REP says, is posted again, in order and under the same ids. The gate opens.
 * Returns DQ_CAUSE_NONE, or why the conn cannot go on.
 */
dq_cause_t uct_daqiri_replay_all(uct_daqiri_conn_t *conn,
                                 const dq_frame_t *peer, dq_recovered_t *back);

#endif
