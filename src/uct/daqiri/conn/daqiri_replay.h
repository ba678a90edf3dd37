/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The replay log: what it takes to post each request again on another QP. Each ledger
 * slot has an entry until the ledger retires the request. Inline data lies in the log,
 * and most of it before the device reads it. All other memory belongs to the request
 * until it completes, so the log keeps addresses only.
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
    uint16_t num_sge;
    union {
        uint32_t rkey;
        uint32_t imm;     /* only of refused requests; network order         */
    };
    uint64_t remote_addr;
    struct ibv_sge sge[]; /* or one, and inline data behind it               */
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

/* Room in the log for @a length bytes of inline data of the next request. Sets *sge_p and
 * the fields of *tx that say so. Only for a conn that has a log. */
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

/* The place of the only SGE of the next request: in the log, or else *other. Sets the
 * fields of *tx that say so. */
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

/* Notes all of the request but its SGEs and data. */
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

/* Notes a message that is posted with a token. Its @a length bytes are inline in @a
 * replay. */
static UCS_F_ALWAYS_INLINE void
uct_daqiri_replay_note_short(const uct_daqiri_conn_t *conn,
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

/* Notes the whole request. @a wr then points to the SGEs and the inline data in the
 * log. */
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

/* Notes the rest of a request that could not be posted at once. The same QP needs it; the
 * next QP does not. */
void uct_daqiri_replay_note_rest(uct_daqiri_conn_t *conn,
                                 const struct ibv_send_wr *wr);
/* Posts a request on the QP that it was made for. Returns 0, or errno. */
int uct_daqiri_replay_post_as_was(uct_daqiri_conn_t *conn, uint32_t id);
/* Posts a request on another QP. If @a is_past, the peer has the messages up to here. A
 * request that must not be repeated is replaced by an empty WRITE, which keeps its place.
 * Returns 0, or errno. */
int uct_daqiri_replay_post(uct_daqiri_conn_t *conn, uint32_t id, int is_past);

/*
 * The conn has another QP. Posts all requests that the peer does not have by its REQ or
 * REP, in order and under the same ids. Opens the gate. Returns DQ_CAUSE_NONE, or the
 * reason why the conn cannot go on. Fills *back if it can.
 */
dq_cause_t uct_daqiri_replay_all(uct_daqiri_conn_t *conn,
                                 const dq_frame_t *peer, dq_recovered_t *back);

#endif
