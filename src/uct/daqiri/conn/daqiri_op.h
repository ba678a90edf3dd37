/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a posted work request owes, by ledger slot, and what to post.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_OP_H
#define UCT_DAQIRI_OP_H

#include "daqiri.h"
#include "dq/dq_sq.h"

/* A slot that owes nothing is empty: no comp, NO_DESC. Inline sends leave
 * theirs so, and cost nothing when they are retired. */
typedef struct {
    uct_completion_t *comp; /* told when it is over, or NULL                 */
    uct_daqiri_ep_t  *ep;   /* whose comp it is                              */
    uint32_t         desc;  /* its buffer in the send pool, or NO_DESC       */
    uint32_t         is_flush; /* comp waits for what was before it alone    */
} uct_daqiri_op_t;

#define UCT_DAQIRI_NO_DESC UINT32_MAX

/* What to send, in terms of the ledger. */
typedef struct {
    dq_wr_class_t      wr_class;
    enum ibv_wr_opcode opcode;
    unsigned           flags;  /* IBV_SEND_INLINE, or 0                      */
    uint32_t           imm;    /* host order                                 */
    int                signal; /* the caller wants to know                   */
    uint64_t           remote_addr; /* one-sided only, as is the key         */
    uint32_t           rkey;
    uint64_t           operand;     /* atomics: to add, or to compare with   */
    uint64_t           swap;
    int                is_placed;   /* what its SGEs say is remembered, or never
                                       will be                               */
    uct_daqiri_replay_t *replay;    /* where, if is_placed; or NULL          */
    uct_daqiri_op_t    op;
} uct_daqiri_tx_t;

static const uct_daqiri_op_t uct_daqiri_op_none = {
    .desc = UCT_DAQIRI_NO_DESC,
};

#endif
