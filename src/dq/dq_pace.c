/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_pace.h"

/* Shares of a new answer in the two means. */
enum {
    DQ_PACE_MEAN_SHARE   = 8,
    DQ_PACE_SPREAD_SHARE = 4,
    DQ_PACE_SPREADS      = 4
};

/* Rows: states. Columns: events. */
static const struct {
    uint8_t is_legal;
    uint8_t next;
} dq_pace_table[DQ_PACE_STATE_LAST][DQ_PACE_EV_LAST] = {
    [DQ_PACE_REST] = {
        [DQ_PACE_EV_WANT] = {1, DQ_PACE_WAITING},
        [DQ_PACE_EV_LATE] = {1, DQ_PACE_REST},
        [DQ_PACE_EV_END]  = {1, DQ_PACE_REST},
    },
    [DQ_PACE_WAITING] = {
        [DQ_PACE_EV_WANT] = {1, DQ_PACE_WAITING},
        [DQ_PACE_EV_TURN] = {1, DQ_PACE_ASKING},
        [DQ_PACE_EV_LATE] = {1, DQ_PACE_WAITING},
        [DQ_PACE_EV_END]  = {1, DQ_PACE_REST},
    },
    [DQ_PACE_ASKING] = {
        [DQ_PACE_EV_WANT] = {1, DQ_PACE_ASKING},
        [DQ_PACE_EV_LATE] = {1, DQ_PACE_LATE},
        [DQ_PACE_EV_END]  = {1, DQ_PACE_REST},
    },
    [DQ_PACE_LATE] = {
        [DQ_PACE_EV_WANT] = {1, DQ_PACE_LATE},
        [DQ_PACE_EV_LATE] = {1, DQ_PACE_LATE},
        [DQ_PACE_EV_END]  = {1, DQ_PACE_REST},
    },
};


dq_pace_cell_t dq_pace_cell(dq_pace_state_t state, dq_pace_event_t event)
{
    return (dq_pace_cell_t){
        .is_legal = dq_pace_table[state][event].is_legal,
        .next     = (dq_pace_state_t)dq_pace_table[state][event].next,
    };
}


/* Returns the state before. */
static dq_pace_state_t dq_pace_step(dq_pace_turn_t *turn, dq_pace_event_t event)
{
    dq_pace_state_t before = turn->state;
    dq_pace_cell_t cell    = dq_pace_cell(before, event);

    DQ_ASSERT(cell.is_legal);
    if (cell.is_legal) {
        turn->state = cell.next;
    }
    return before;
}


void dq_pace_init(dq_pace_t *pace, uint32_t places)
{
    *pace = (dq_pace_t){.places = places};
}


static void dq_pace_learn(dq_pace_t *pace, uint64_t took)
{
    uint64_t off = (took > pace->mean) ? took - pace->mean : pace->mean - took;

    if (pace->mean == 0) {
        pace->mean   = took;
        pace->spread = took / 2;
        return;
    }
    pace->mean   += took / DQ_PACE_MEAN_SHARE - pace->mean / DQ_PACE_MEAN_SHARE;
    pace->spread += off / DQ_PACE_SPREAD_SHARE - pace->spread / DQ_PACE_SPREAD_SHARE;
}


static void dq_pace_give_place(dq_pace_t *pace)
{
    DQ_ASSERT(pace->taken > 0);
    pace->taken--;
}


int dq_pace_want(dq_pace_turn_t *turn)
{
    return dq_pace_step(turn, DQ_PACE_EV_WANT) == DQ_PACE_REST;
}


void dq_pace_begin(dq_pace_t *pace, dq_pace_turn_t *turn, uint64_t now)
{
    DQ_ASSERT(dq_pace_is_free(pace));
    (void)dq_pace_step(turn, DQ_PACE_EV_TURN);
    pace->taken++;
    turn->asked = now;
}


void dq_pace_late(dq_pace_t *pace, dq_pace_turn_t *turn, uint64_t now)
{
    if (dq_pace_step(turn, DQ_PACE_EV_LATE) == DQ_PACE_ASKING) {
        dq_pace_give_place(pace);
        dq_pace_learn(pace, now - turn->asked);
    }
}


int dq_pace_answered(dq_pace_t *pace, dq_pace_turn_t *turn, uint64_t now)
{
    if (turn->state == DQ_PACE_ASKING) {
        dq_pace_learn(pace, now - turn->asked);
    }
    return dq_pace_end(pace, turn);
}


int dq_pace_end(dq_pace_t *pace, dq_pace_turn_t *turn)
{
    dq_pace_state_t before = dq_pace_step(turn, DQ_PACE_EV_END);

    if (before == DQ_PACE_ASKING) {
        dq_pace_give_place(pace);
    }
    return before == DQ_PACE_WAITING;
}


uint64_t dq_pace_wait(const dq_pace_t *pace, uint64_t least, uint64_t most)
{
    uint64_t wait = pace->mean + DQ_PACE_SPREADS * pace->spread;

    if (wait < least) {
        wait = least;
    }
    return (wait < most) ? wait : most;
}


const char *dq_pace_state_name(dq_pace_state_t state)
{
    static const char *const names[DQ_PACE_STATE_LAST] = {
        [DQ_PACE_REST]    = "REST",
        [DQ_PACE_WAITING] = "WAITING",
        [DQ_PACE_ASKING]  = "ASKING",
        [DQ_PACE_LATE]    = "LATE",
    };

    return (state < DQ_PACE_STATE_LAST) ? names[state] : "?";
}


const char *dq_pace_event_name(dq_pace_event_t event)
{
    static const char *const names[DQ_PACE_EV_LAST] = {
        [DQ_PACE_EV_WANT] = "WANT",
        [DQ_PACE_EV_TURN] = "TURN",
        [DQ_PACE_EV_LATE] = "LATE",
        [DQ_PACE_EV_END]  = "END",
    };

    return (event < DQ_PACE_EV_LAST) ? names[event] : "?";
}
