/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_redo.h"


dq_redo_t dq_redo_verdict(dq_op_kind_t kind, int is_past)
{
    switch (kind) {
    case DQ_OP_READ:
        return DQ_REDO_AGAIN;
    case DQ_OP_ATOMIC:
        return DQ_REDO_UNKNOWN;
    case DQ_OP_GRANT:
    case DQ_OP_BLANK:
        return is_past ? DQ_REDO_OVER : DQ_REDO_BLANK;
    default:
        return is_past ? DQ_REDO_OVER : DQ_REDO_AGAIN;
    }
}


static int dq_redo_is_had(const dq_op_t *op, uint32_t delivered)
{
    return (op->kind == DQ_OP_MSG) && ((int32_t)(op->seq - delivered) < 0);
}


dq_redo_plan_t dq_redo_plan(const dq_redo_log_t *log, uint32_t retired,
                            uint32_t posted, uint32_t delivered)
{
    dq_redo_plan_t plan = {.over = retired, .ahead = retired};
    const dq_op_t *op;
    uint32_t id;

    for (id = retired; id != posted; id++) {
        if (dq_redo_is_had(dq_redo_slot(log, id), delivered)) {
            plan.ahead = id + 1;
            plan.had++;
        }
    }
    while ((plan.over != plan.ahead) &&
           (dq_redo_verdict((dq_op_kind_t)dq_redo_slot(log, plan.over)->kind,
                            1) == DQ_REDO_OVER)) {
        plan.over++;
    }
    for (id = plan.over; id != posted; id++) {
        op             = dq_redo_slot(log, id);
        plan.unknown  |= op->kind == DQ_OP_ATOMIC;
        plan.messages += (op->kind == DQ_OP_MSG) &&
                         !dq_redo_is_had(op, delivered);
    }
    return plan;
}


uint32_t dq_redo_acked(const dq_redo_log_t *log, uint32_t retired,
                       uint32_t posted, uint32_t next_seq)
{
    uint32_t id;

    for (id = retired; id != posted; id++) {
        if (dq_redo_slot(log, id)->kind == DQ_OP_MSG) {
            return dq_redo_slot(log, id)->seq;
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
