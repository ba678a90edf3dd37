/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_idle.h"

/* Rows: states. Columns: events. */
static const struct {
    uint8_t is_legal;
    uint8_t next;
} dq_idle_table[DQ_IDLE_STATE_LAST][DQ_IDLE_EV_LAST] = {
    [DQ_IDLE_OPEN] = {
        [DQ_IDLE_EV_WANT]  = {1, DQ_IDLE_DUE},
        [DQ_IDLE_EV_HEARD] = {1, DQ_IDLE_ANSWER},
        [DQ_IDLE_EV_LOST]  = {1, DQ_IDLE_OPEN},
    },
    [DQ_IDLE_DUE] = {
        [DQ_IDLE_EV_WANT]  = {1, DQ_IDLE_DUE},
        [DQ_IDLE_EV_SENT]  = {1, DQ_IDLE_WAITING},
        [DQ_IDLE_EV_HEARD] = {1, DQ_IDLE_ANSWER},
        [DQ_IDLE_EV_LOST]  = {1, DQ_IDLE_OPEN},
    },
    [DQ_IDLE_ANSWER] = {
        [DQ_IDLE_EV_WANT]  = {1, DQ_IDLE_ANSWER},
        [DQ_IDLE_EV_SENT]  = {1, DQ_IDLE_BOTH},
        [DQ_IDLE_EV_LOST]  = {1, DQ_IDLE_OPEN},
    },
    [DQ_IDLE_WAITING] = {
        [DQ_IDLE_EV_WANT]  = {1, DQ_IDLE_WAITING},
        [DQ_IDLE_EV_HEARD] = {1, DQ_IDLE_BOTH},
        [DQ_IDLE_EV_LOST]  = {1, DQ_IDLE_OPEN},
    },
    [DQ_IDLE_BOTH] = {
        [DQ_IDLE_EV_WANT]  = {1, DQ_IDLE_BOTH},
        [DQ_IDLE_EV_SHUT]  = {1, DQ_IDLE_OPEN},
        [DQ_IDLE_EV_LOST]  = {1, DQ_IDLE_OPEN},
    },
};


dq_idle_cell_t dq_idle_cell(dq_idle_state_t state, dq_idle_event_t event)
{
    return (dq_idle_cell_t){
        .is_legal = dq_idle_table[state][event].is_legal,
        .next     = (dq_idle_state_t)dq_idle_table[state][event].next,
    };
}


int dq_idle_step(dq_idle_state_t *state, dq_idle_event_t event)
{
    dq_idle_cell_t cell = dq_idle_cell(*state, event);

    DQ_ASSERT(cell.is_legal || (event == DQ_IDLE_EV_HEARD));
    if (!cell.is_legal) {
        return -1;
    }
    *state = cell.next;
    return 0;
}


const char *dq_idle_state_name(dq_idle_state_t state)
{
    static const char *const names[DQ_IDLE_STATE_LAST] = {
        [DQ_IDLE_OPEN]    = "OPEN",
        [DQ_IDLE_DUE]     = "DUE",
        [DQ_IDLE_ANSWER]  = "ANSWER",
        [DQ_IDLE_WAITING] = "WAITING",
        [DQ_IDLE_BOTH]    = "BOTH",
    };

    return (state < DQ_IDLE_STATE_LAST) ? names[state] : "?";
}


const char *dq_idle_event_name(dq_idle_event_t event)
{
    static const char *const names[DQ_IDLE_EV_LAST] = {
        [DQ_IDLE_EV_WANT]  = "WANT",
        [DQ_IDLE_EV_SENT]  = "SENT",
        [DQ_IDLE_EV_HEARD] = "HEARD",
        [DQ_IDLE_EV_SHUT]  = "SHUT",
        [DQ_IDLE_EV_LOST]  = "LOST",
    };

    return (event < DQ_IDLE_EV_LAST) ? names[event] : "?";
}
