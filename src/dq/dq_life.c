/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_life.h"

/* Rows: states. Columns: events. FAIL counts once: the first cause is the cause. */
static const struct {
    uint8_t is_legal;
    uint8_t next;
} dq_life_table[DQ_LIFE_STATE_LAST][DQ_LIFE_EV_LAST] = {
    [DQ_LIFE_UNCONNECTED] = {
        [DQ_LIFE_EV_QP]      = {1, DQ_LIFE_CONNECTING},
        [DQ_LIFE_EV_FAIL]    = {1, DQ_LIFE_FAILED},
    },
    [DQ_LIFE_CONNECTING] = {
        [DQ_LIFE_EV_UP]      = {1, DQ_LIFE_UP},
        [DQ_LIFE_EV_LOSE]    = {1, DQ_LIFE_RECOVERING},
        [DQ_LIFE_EV_FAIL]    = {1, DQ_LIFE_FAILED},
    },
    [DQ_LIFE_UP] = {
        [DQ_LIFE_EV_CLOSE]   = {1, DQ_LIFE_CLOSING},
        [DQ_LIFE_EV_LOSE]    = {1, DQ_LIFE_RECOVERING},
        [DQ_LIFE_EV_FAIL]    = {1, DQ_LIFE_FAILED},
    },
    [DQ_LIFE_RECOVERING] = {
        [DQ_LIFE_EV_UP]      = {1, DQ_LIFE_UP},
        [DQ_LIFE_EV_LOSE]    = {1, DQ_LIFE_RECOVERING},
        [DQ_LIFE_EV_FAIL]    = {1, DQ_LIFE_FAILED},
    },
    [DQ_LIFE_CLOSING] = {
        [DQ_LIFE_EV_LOSE]    = {1, DQ_LIFE_RECOVERING},
        [DQ_LIFE_EV_FAIL]    = {1, DQ_LIFE_FAILED},
        [DQ_LIFE_EV_AGREED]  = {1, DQ_LIFE_IDLE_CLOSED},
    },
    [DQ_LIFE_IDLE_CLOSED] = {
        [DQ_LIFE_EV_QP]      = {1, DQ_LIFE_RECOVERING},
        [DQ_LIFE_EV_FAIL]    = {1, DQ_LIFE_FAILED},
    },
    [DQ_LIFE_FAILED] = {
        [DQ_LIFE_EV_QP]      = {1, DQ_LIFE_FAILED},
        [DQ_LIFE_EV_FAIL]    = {1, DQ_LIFE_FAILED},
        [DQ_LIFE_EV_DRAINED] = {1, DQ_LIFE_CLOSED},
    },
    [DQ_LIFE_CLOSED] = {
        [DQ_LIFE_EV_QP]      = {1, DQ_LIFE_CLOSED},
        [DQ_LIFE_EV_FAIL]    = {1, DQ_LIFE_CLOSED},
        [DQ_LIFE_EV_RELEASE] = {1, DQ_LIFE_RELEASED},
    },
    [DQ_LIFE_RELEASED] = {
        [DQ_LIFE_EV_QP]      = {1, DQ_LIFE_RELEASED},
        [DQ_LIFE_EV_FAIL]    = {1, DQ_LIFE_RELEASED},
    },
};


dq_life_cell_t dq_life_cell(dq_life_state_t state, dq_life_event_t event)
{
    return (dq_life_cell_t){
        .is_legal = dq_life_table[state][event].is_legal,
        .next     = (dq_life_state_t)dq_life_table[state][event].next,
    };
}


void dq_life_step(dq_life_state_t *state, dq_life_event_t event)
{
    dq_life_cell_t cell = dq_life_cell(*state, event);

    DQ_ASSERT(cell.is_legal);
    if (cell.is_legal) {
        *state = cell.next;
    }
}


dq_gate_t dq_life_gate(dq_life_state_t state)
{
    switch (state) {
    case DQ_LIFE_UNCONNECTED:
    case DQ_LIFE_CONNECTING:
        return DQ_GATE_NOT_UP;
    case DQ_LIFE_UP:
        return DQ_GATE_UP;
    case DQ_LIFE_CLOSING:
        return DQ_GATE_CLOSING;
    case DQ_LIFE_RECOVERING:
    case DQ_LIFE_IDLE_CLOSED:
        return DQ_GATE_LOST;
    default:
        return DQ_GATE_DEAD;
    }
}


const char *dq_life_state_name(dq_life_state_t state)
{
    static const char *const names[DQ_LIFE_STATE_LAST] = {
        [DQ_LIFE_UNCONNECTED] = "UNCONNECTED",
        [DQ_LIFE_CONNECTING]  = "CONNECTING",
        [DQ_LIFE_UP]          = "UP",
        [DQ_LIFE_RECOVERING]  = "RECOVERING",
        [DQ_LIFE_CLOSING]     = "CLOSING",
        [DQ_LIFE_IDLE_CLOSED] = "IDLE_CLOSED",
        [DQ_LIFE_FAILED]      = "FAILED",
        [DQ_LIFE_CLOSED]      = "CLOSED",
        [DQ_LIFE_RELEASED]    = "RELEASED",
    };

    return (state < DQ_LIFE_STATE_LAST) ? names[state] : "?";
}


const char *dq_life_event_name(dq_life_event_t event)
{
    static const char *const names[DQ_LIFE_EV_LAST] = {
        [DQ_LIFE_EV_QP]      = "QP",
        [DQ_LIFE_EV_UP]      = "UP",
        [DQ_LIFE_EV_LOSE]    = "LOSE",
        [DQ_LIFE_EV_FAIL]    = "FAIL",
        [DQ_LIFE_EV_CLOSE]   = "CLOSE",
        [DQ_LIFE_EV_AGREED]  = "AGREED",
        [DQ_LIFE_EV_DRAINED] = "DRAINED",
        [DQ_LIFE_EV_RELEASE] = "RELEASE",
    };

    return (event < DQ_LIFE_EV_LAST) ? names[event] : "?";
}
