/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one ibv_post_send() of the RC QPs. Whether a request may be posted was
 * asked before (dq_sq_admit); from here on the ledger has it.
 *
 * Inline, so that each kind of message gets a post without what it does not
 * use: this is most of what a short send costs.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_TX_H
#define UCT_DAQIRI_TX_H

#include "daqiri.h"

/* What to send, in terms of the ledger. */
typedef struct {
    dq_wr_class_t      wr_class;
    enum ibv_wr_opcode opcode;
    unsigned           flags;  /* IBV_SEND_INLINE, or 0                      */
    uint32_t           imm;    /* host order                                 */
    int                signal; /* the caller wants to know                   */
    uint64_t           remote_addr; /* one-sided only, as is the key         */
    uint32_t           rkey;
    uct_daqiri_op_t    op;
} uct_daqiri_tx_t;

static const uct_daqiri_op_t uct_daqiri_op_none = {
    .desc = UCT_DAQIRI_NO_DESC,
};

/* Posts one admitted work request. On an error nothing of it is owned by the
 * NIC, and the conn is on its way to death. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_daqiri_tx_post(uct_daqiri_conn_t *conn, const uct_daqiri_tx_t *tx,
                   struct ibv_sge *sge, int num_sge)
{
    struct ibv_send_wr wr; /* only what the opcode reads is filled in */
    struct ibv_send_wr *bad_wr;
    dq_ticket_t ticket;
    int ret;

    ticket = dq_sq_post(&conn->sq, &conn->iface->tx.ledger, tx->wr_class,
                        tx->signal);

    wr.wr_id      = ticket.id;
    wr.next       = NULL;
    wr.sg_list    = sge;
    wr.num_sge    = num_sge;
    wr.opcode     = tx->opcode;
    wr.send_flags = tx->flags | conn->next_flags |
                    (ticket.signal ? IBV_SEND_SIGNALED : 0);
    if (tx->wr_class == DQ_WR_RMA) {
        wr.wr.rdma.remote_addr = tx->remote_addr;
        wr.wr.rdma.rkey        = tx->rkey;
    } else {
        wr.imm_data = htonl(tx->imm);
    }

    conn->next_flags = 0;

    ret = ibv_post_send(conn->qp, &wr, &bad_wr);
    if (ucs_unlikely(ret != 0)) {
        return uct_daqiri_tx_refused(conn, tx->wr_class, ret);
    }
    if ((tx->op.desc != UCT_DAQIRI_NO_DESC) || (tx->op.comp != NULL)) {
        conn->ops[ticket.id & conn->sq.mask] = tx->op;
        conn->op_count++;
    }
    return UCS_OK;
}

#endif
