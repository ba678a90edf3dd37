/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_replay.h"


dq_replay_t dq_replay_verdict(dq_op_kind_t kind, int is_past)
{
    switch (kind) {
    case DQ_OP_READ:
        return DQ_REPLAY_RESEND;
    case DQ_OP_ATOMIC:
        return DQ_REPLAY_UNKNOWN;
    case DQ_OP_GRANT:
    case DQ_OP_BLANK:
        return is_past ? DQ_REPLAY_DONE : DQ_REPLAY_BLANK;
    default:
        return is_past ? DQ_REPLAY_DONE : DQ_REPLAY_RESEND;
    }
}


static int dq_replay_is_delivered(const dq_op_t *op, uint32_t delivered)
{
    return (op->kind == DQ_OP_MSG) && ((int32_t)(op->seq - delivered) < 0);
}


dq_replay_plan_t dq_replay_plan(const dq_replay_log_t *log, uint32_t retired,
                                uint32_t posted, uint32_t delivered)
{
    dq_replay_plan_t plan = {.over = retired, .ahead = retired};
    const dq_op_t *op;
    uint32_t id;

    for (id = retired; id != posted; id++) {
        if (dq_replay_is_delivered(dq_replay_slot(log, id), delivered)) {
            plan.ahead = id + 1;
            plan.had++;
        }
    }
    while ((plan.over != plan.ahead) &&
           (dq_replay_verdict((dq_op_kind_t)dq_replay_slot(log, plan.over)->kind,
                              1) == DQ_REPLAY_DONE)) {
        plan.over++;
    }
    for (id = plan.over; id != posted; id++) {
        op             = dq_replay_slot(log, id);
        plan.unknown  |= op->kind == DQ_OP_ATOMIC;
        plan.messages += (op->kind == DQ_OP_MSG) &&
                         !dq_replay_is_delivered(op, delivered);
    }
    return plan;
}


uint32_t dq_replay_acked(const dq_replay_log_t *log, uint32_t retired,
                         uint32_t posted, uint32_t next_seq)
{
    uint32_t id;

    for (id = retired; id != posted; id++) {
        if (dq_replay_slot(log, id)->kind == DQ_OP_MSG) {
            return dq_replay_slot(log, id)->seq;
        }
    }
    return next_seq;
}


const char *dq_op_kind_name(dq_op_kind_t kind)
{
    static const char *const names[DQ_OP_LAST] = {
        [DQ_OP_MSG]    = "message", [DQ_OP_GRANT]  = "credits",
        [DQ_OP_WRITE]  = "WRITE",   [DQ_OP_READ]   = "READ",
        [DQ_OP_ATOMIC] = "atomic",  [DQ_OP_BLANK]  = "empty WRITE",
    };

    return ((unsigned)kind < DQ_OP_LAST) ? names[kind] : "?";
}
