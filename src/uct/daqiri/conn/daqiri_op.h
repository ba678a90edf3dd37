/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a posted work request owes, by ledger slot, and the description of one to post.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_OP_H
#define UCT_DAQIRI_OP_H

#include "daqiri.h"
#include "dq/dq_sq.h"

/* A slot that owes nothing is empty: no comp, NO_DESC. Inline sends leave their slot
 * empty and cost nothing when they retire. */
typedef struct {
    uct_completion_t *comp; /* called when the request is over, or NULL      */
    uct_daqiri_ep_t  *ep;   /* the endpoint that comp came through           */
    uint32_t         desc;  /* its buffer in the send pool, or NO_DESC       */
    uint32_t         is_flush; /* comp only waits for earlier requests       */
} uct_daqiri_op_t;

#define UCT_DAQIRI_NO_DESC UINT32_MAX

/* A request to post, in terms of the ledger. */
typedef struct {
    dq_wr_class_t      wr_class;
    enum ibv_wr_opcode opcode;
    unsigned           flags;  /* IBV_SEND_INLINE, or 0                      */
    uint32_t           imm;    /* host byte order                            */
    int                signal; /* asks for a signalled completion            */
    uint64_t           remote_addr; /* one-sided only, as is the key         */
    uint32_t           rkey;
    uint64_t           operand;     /* atomics: to add, or to compare with   */
    uint64_t           swap;
    /* Its SGEs are remembered already, or will never be. */
    int                is_placed;
    uct_daqiri_replay_t *replay;    /* where, if is_placed; or NULL          */
    uct_daqiri_op_t    op;
} uct_daqiri_tx_t;

static const uct_daqiri_op_t uct_daqiri_op_none = {
    .desc = UCT_DAQIRI_NO_DESC,
};

#endif
