/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_qp.h"

#define DRAIN   DQ_QP_ACT_DRAIN
#define DESTROY DQ_QP_ACT_DESTROY
#define REPORT  DQ_QP_ACT_REPORT

/*
 * Rows: states. Columns: events. An UP that comes late was of the queue pair that has
 * failed meanwhile. FAIL counts once: the first cause is the cause.
 */
static const struct {
    uint8_t is_legal;
    uint8_t next;
    uint8_t actions;
} dq_qp_table[DQ_QP_STATE_LAST][DQ_QP_EV_LAST] = {
    [DQ_QP_NONE] = {
        [DQ_QP_EV_CREATED]   = {1, DQ_QP_CONNECTING, 0},
        [DQ_QP_EV_UP]        = {1, DQ_QP_NONE, 0},
        [DQ_QP_EV_FAIL]      = {1, DQ_QP_NONE, 0},
        [DQ_QP_EV_NO_QP]     = {1, DQ_QP_FINAL, DRAIN},
    },
    [DQ_QP_CONNECTING] = {
        [DQ_QP_EV_UP]        = {1, DQ_QP_READY, 0},
        [DQ_QP_EV_FAIL]      = {1, DQ_QP_FAILED, DRAIN},
        [DQ_QP_EV_NO_QP]     = {1, DQ_QP_FAILED, DRAIN},
    },
    [DQ_QP_READY] = {
        [DQ_QP_EV_UP]        = {1, DQ_QP_READY, 0},
        [DQ_QP_EV_FAIL]      = {1, DQ_QP_FAILED, DRAIN},
        [DQ_QP_EV_NO_QP]     = {1, DQ_QP_FAILED, DRAIN},
    },
    [DQ_QP_FAILED] = {
        [DQ_QP_EV_UP]        = {1, DQ_QP_FAILED, 0},
        [DQ_QP_EV_FAIL]      = {1, DQ_QP_FAILED, 0},
        [DQ_QP_EV_IN_ERR]    = {1, DQ_QP_DRAINING, DRAIN},
        [DQ_QP_EV_NO_QP]     = {1, DQ_QP_FAILED, 0},
    },
    [DQ_QP_DRAINING] = {
        [DQ_QP_EV_UP]        = {1, DQ_QP_DRAINING, 0},
        [DQ_QP_EV_FAIL]      = {1, DQ_QP_DRAINING, 0},
        [DQ_QP_EV_TAKEN]     = {1, DQ_QP_DESTROYING, DESTROY},
        [DQ_QP_EV_NO_QP]     = {1, DQ_QP_DRAINING, 0},
    },
    [DQ_QP_DESTROYING] = {
        [DQ_QP_EV_UP]        = {1, DQ_QP_DESTROYING, 0},
        [DQ_QP_EV_FAIL]      = {1, DQ_QP_DESTROYING, 0},
        [DQ_QP_EV_DESTROYED] = {1, DQ_QP_FINAL, DRAIN},
        [DQ_QP_EV_NO_QP]     = {1, DQ_QP_DESTROYING, 0},
    },
    [DQ_QP_FINAL] = {
        [DQ_QP_EV_UP]        = {1, DQ_QP_FINAL, 0},
        [DQ_QP_EV_FAIL]      = {1, DQ_QP_FINAL, 0},
        [DQ_QP_EV_TAKEN]     = {1, DQ_QP_NONE, REPORT},
        [DQ_QP_EV_NO_QP]     = {1, DQ_QP_FINAL, 0},
    },
};


dq_qp_cell_t dq_qp_cell(dq_qp_state_t state, dq_qp_event_t event)
{
    return (dq_qp_cell_t){
        .is_legal = dq_qp_table[state][event].is_legal,
        .next     = (dq_qp_state_t)dq_qp_table[state][event].next,
        .actions  = dq_qp_table[state][event].actions,
    };
}


uint32_t dq_qp_step(dq_qp_state_t *state, dq_qp_event_t event)
{
    dq_qp_cell_t cell = dq_qp_cell(*state, event);

    DQ_ASSERT(cell.is_legal);
    if (!cell.is_legal) {
        return 0;
    }
    *state = cell.next;
    return cell.actions;
}


const char *dq_qp_state_name(dq_qp_state_t state)
{
    static const char *const names[DQ_QP_STATE_LAST] = {
        [DQ_QP_NONE]       = "NONE",
        [DQ_QP_CONNECTING] = "CONNECTING",
        [DQ_QP_READY]      = "READY",
        [DQ_QP_FAILED]     = "FAILED",
        [DQ_QP_DRAINING]   = "DRAINING",
        [DQ_QP_DESTROYING] = "DESTROYING",
        [DQ_QP_FINAL]      = "FINAL",
    };

    return (state < DQ_QP_STATE_LAST) ? names[state] : "?";
}


const char *dq_qp_event_name(dq_qp_event_t event)
{
    static const char *const names[DQ_QP_EV_LAST] = {
        [DQ_QP_EV_CREATED]   = "CREATED",
        [DQ_QP_EV_UP]        = "UP",
        [DQ_QP_EV_FAIL]      = "FAIL",
        [DQ_QP_EV_IN_ERR]    = "IN_ERR",
        [DQ_QP_EV_TAKEN]     = "TAKEN",
        [DQ_QP_EV_DESTROYED] = "DESTROYED",
        [DQ_QP_EV_NO_QP]     = "NO_QP",
    };

    return (event < DQ_QP_EV_LAST) ? names[event] : "?";
}


const char *dq_qp_action_name(uint32_t bit)
{
    switch (bit) {
    case DQ_QP_ACT_DRAIN:
        return "drain";
    case DQ_QP_ACT_DESTROY:
        return "destroy";
    case DQ_QP_ACT_REPORT:
        return "report";
    default:
        return "?";
    }
}
