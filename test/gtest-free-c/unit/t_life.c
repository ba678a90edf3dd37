/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lives of a queue pair and of a connection: every cell of both tables, by
 * rules that the tables do not state. docs/states.md prints them (t_states).
 */
#include "t_unit.h"
#include "dq/dq_life.h"
#include "dq/dq_qp.h"


/* ---- The queue pair ---- */

/* The way that each goes, in its order. What is not on it changes nothing, or cannot
 * be. */
static const struct {
    dq_qp_state_t state;
    dq_qp_event_t event;
    dq_qp_state_t next;
    uint32_t      actions;
} qp_moves[] = {
    {DQ_QP_NONE, DQ_QP_EV_CREATED, DQ_QP_CONNECTING, 0},
    {DQ_QP_NONE, DQ_QP_EV_NO_QP, DQ_QP_FINAL, DQ_QP_ACT_DRAIN},
    {DQ_QP_CONNECTING, DQ_QP_EV_UP, DQ_QP_READY, 0},
    {DQ_QP_CONNECTING, DQ_QP_EV_FAIL, DQ_QP_FAILED, DQ_QP_ACT_DRAIN},
    {DQ_QP_CONNECTING, DQ_QP_EV_NO_QP, DQ_QP_FAILED, DQ_QP_ACT_DRAIN},
    {DQ_QP_READY, DQ_QP_EV_FAIL, DQ_QP_FAILED, DQ_QP_ACT_DRAIN},
    {DQ_QP_READY, DQ_QP_EV_NO_QP, DQ_QP_FAILED, DQ_QP_ACT_DRAIN},
    {DQ_QP_FAILED, DQ_QP_EV_IN_ERR, DQ_QP_DRAINING, DQ_QP_ACT_DRAIN},
    {DQ_QP_DRAINING, DQ_QP_EV_TAKEN, DQ_QP_DESTROYING, DQ_QP_ACT_DESTROY},
    {DQ_QP_DESTROYING, DQ_QP_EV_DESTROYED, DQ_QP_FINAL, DQ_QP_ACT_DRAIN},
    {DQ_QP_FINAL, DQ_QP_EV_TAKEN, DQ_QP_NONE, DQ_QP_ACT_REPORT},
};


/* What others tell may come late, in any state. */
static int qp_may_come_late(dq_qp_event_t event)
{
    return (event == DQ_QP_EV_UP) || (event == DQ_QP_EV_FAIL) ||
           (event == DQ_QP_EV_NO_QP);
}


START_TEST(test_qp_cells)
{
    dq_qp_cell_t cell;
    unsigned state, event, i, found;

    for (state = 0; state < DQ_QP_STATE_LAST; state++) {
        for (event = 0; event < DQ_QP_EV_LAST; event++) {
            cell  = dq_qp_cell((dq_qp_state_t)state, (dq_qp_event_t)event);
            found = 0;
            for (i = 0; i < sizeof(qp_moves) / sizeof(qp_moves[0]); i++) {
                if ((qp_moves[i].state == state) && (qp_moves[i].event == event)) {
                    ck_assert_int_ne(cell.is_legal, 0);
                    ck_assert_int_eq(cell.next, qp_moves[i].next);
                    ck_assert_uint_eq(cell.actions, qp_moves[i].actions);
                    found = 1;
                }
            }
            if (!found) {
                ck_assert_int_eq(cell.is_legal,
                                 qp_may_come_late((dq_qp_event_t)event));
                ck_assert_int_eq(cell.next, cell.is_legal ? state : DQ_QP_NONE);
                ck_assert_uint_eq(cell.actions, 0);
            }
        }
    }
}
END_TEST


/* Whatever comes, a queue pair is drained in ERR before it is destroyed, and once
 * more before it is said how much it has delivered. */
START_TEST(test_qp_walks)
{
    dq_qp_state_t state = DQ_QP_NONE;
    unsigned drained = 0, reports = 0, step;
    dq_qp_event_t event;
    dq_qp_cell_t cell;
    uint32_t actions;
    t_rng_t rng;

    t_rng_init(&rng, 0x11fe);
    for (step = 0; step < 200000; step++) {
        event = (dq_qp_event_t)t_rng_below(&rng, DQ_QP_EV_LAST);
        cell  = dq_qp_cell(state, event);
        if (!cell.is_legal) {
            continue;
        }
        actions = dq_qp_step(&state, event);
        ck_assert_int_eq(state, cell.next);
        ck_assert_uint_eq(actions, cell.actions);
        if (event == DQ_QP_EV_CREATED) {
            drained = 0;
        }
        drained += (actions & DQ_QP_ACT_DRAIN) != 0;
        if (actions & DQ_QP_ACT_DESTROY) {
            ck_assert_uint_eq(drained, 2); /* failed, and in ERR */
        }
        if (actions & DQ_QP_ACT_REPORT) {
            reports++;
            ck_assert_uint_ge(drained, 1);
            drained = 0;
        }
        ck_assert_int_eq(dq_qp_is_alive(state),
                         (state == DQ_QP_CONNECTING) || (state == DQ_QP_READY));
    }
    ck_assert_uint_gt(reports, 1000);
}
END_TEST


/* ---- The connection ---- */

static const struct {
    dq_life_state_t state;
    dq_life_event_t event;
    dq_life_state_t next;
} life_moves[] = {
    {DQ_LIFE_UNCONNECTED, DQ_LIFE_EV_QP, DQ_LIFE_CONNECTING},
    {DQ_LIFE_CONNECTING, DQ_LIFE_EV_UP, DQ_LIFE_UP},
    {DQ_LIFE_CONNECTING, DQ_LIFE_EV_LOSE, DQ_LIFE_RECOVERING},
    {DQ_LIFE_UP, DQ_LIFE_EV_LOSE, DQ_LIFE_RECOVERING},
    {DQ_LIFE_RECOVERING, DQ_LIFE_EV_UP, DQ_LIFE_UP},
    {DQ_LIFE_RECOVERING, DQ_LIFE_EV_LOSE, DQ_LIFE_RECOVERING},
    {DQ_LIFE_UP, DQ_LIFE_EV_CLOSE, DQ_LIFE_CLOSING},
    {DQ_LIFE_CLOSING, DQ_LIFE_EV_LOSE, DQ_LIFE_RECOVERING},
    {DQ_LIFE_CLOSING, DQ_LIFE_EV_AGREED, DQ_LIFE_IDLE_CLOSED},
    {DQ_LIFE_IDLE_CLOSED, DQ_LIFE_EV_QP, DQ_LIFE_RECOVERING},
    {DQ_LIFE_FAILED, DQ_LIFE_EV_DRAINED, DQ_LIFE_CLOSED},
    {DQ_LIFE_CLOSED, DQ_LIFE_EV_RELEASE, DQ_LIFE_RELEASED},
};


START_TEST(test_life_cells)
{
    dq_life_cell_t cell;
    unsigned state, event, i;
    int is_legal, next;

    for (state = 0; state < DQ_LIFE_STATE_LAST; state++) {
        for (event = 0; event < DQ_LIFE_EV_LAST; event++) {
            is_legal = 0;
            next     = 0;
            for (i = 0; i < sizeof(life_moves) / sizeof(life_moves[0]); i++) {
                if ((life_moves[i].state == state) &&
                    (life_moves[i].event == event)) {
                    is_legal = 1;
                    next     = life_moves[i].next;
                }
            }
            if (event == DQ_LIFE_EV_FAIL) { /* from everywhere, and once */
                is_legal = 1;
                next     = (state < DQ_LIFE_FAILED) ? DQ_LIFE_FAILED : (int)state;
            }
            if ((event == DQ_LIFE_EV_QP) && (state >= DQ_LIFE_FAILED)) {
                is_legal = 1; /* too late */
                next     = (int)state;
            }
            cell = dq_life_cell((dq_life_state_t)state, (dq_life_event_t)event);
            ck_assert_int_eq(cell.is_legal, is_legal);
            ck_assert_int_eq(cell.next, next);
        }
    }
}
END_TEST


/* The gate is open in one state, and one that is over never opens it again. */
START_TEST(test_life_gate)
{
    dq_life_state_t state = DQ_LIFE_UNCONNECTED;
    unsigned step, released = 0;
    dq_life_event_t event;
    int was_over = 0;
    t_rng_t rng;

    t_rng_init(&rng, 0x9a7e);
    for (step = 0; step < 100000; step++) {
        event = (dq_life_event_t)t_rng_below(&rng, DQ_LIFE_EV_LAST);
        if (!dq_life_cell(state, event).is_legal) {
            continue;
        }
        dq_life_step(&state, event);
        ck_assert_int_eq(dq_life_gate(state) == DQ_GATE_UP, state == DQ_LIFE_UP);
        ck_assert_int_eq(dq_life_gate(state) == DQ_GATE_DEAD,
                         dq_life_is_over(state));
        ck_assert(!was_over || dq_life_is_over(state));
        was_over = dq_life_is_over(state);
        if (state == DQ_LIFE_RELEASED) {
            released++;
            state    = DQ_LIFE_UNCONNECTED;
            was_over = 0;
        }
    }
    ck_assert_uint_gt(released, 1000);
    ck_assert_int_eq(dq_life_gate(DQ_LIFE_UNCONNECTED), DQ_GATE_NOT_UP);
    ck_assert_int_eq(dq_life_gate(DQ_LIFE_CONNECTING), DQ_GATE_NOT_UP);
    ck_assert_int_eq(dq_life_gate(DQ_LIFE_RECOVERING), DQ_GATE_LOST);
}
END_TEST


START_TEST(test_names)
{
    unsigned i;

    for (i = 0; i < DQ_QP_STATE_LAST; i++) {
        ck_assert_str_ne(dq_qp_state_name((dq_qp_state_t)i), "?");
    }
    for (i = 0; i < DQ_QP_EV_LAST; i++) {
        ck_assert_str_ne(dq_qp_event_name((dq_qp_event_t)i), "?");
    }
    for (i = 1; i < DQ_QP_ACT_LAST; i <<= 1) {
        ck_assert_str_ne(dq_qp_action_name(i), "?");
    }
    for (i = 0; i < DQ_LIFE_STATE_LAST; i++) {
        ck_assert_str_ne(dq_life_state_name((dq_life_state_t)i), "?");
    }
    for (i = 0; i < DQ_LIFE_EV_LAST; i++) {
        ck_assert_str_ne(dq_life_event_name((dq_life_event_t)i), "?");
    }
    ck_assert_str_eq(dq_qp_state_name(DQ_QP_STATE_LAST), "?");
    ck_assert_str_eq(dq_qp_event_name(DQ_QP_EV_LAST), "?");
    ck_assert_str_eq(dq_qp_action_name(DQ_QP_ACT_LAST), "?");
    ck_assert_str_eq(dq_life_state_name(DQ_LIFE_STATE_LAST), "?");
    ck_assert_str_eq(dq_life_event_name(DQ_LIFE_EV_LAST), "?");
}
END_TEST


static Suite *suite_life(void)
{
    return t_suite("life", "qp", test_qp_cells, "qp", test_qp_walks, "conn",
                   test_life_cells, "conn", test_life_gate, "names", test_names,
                   NULL);
}

T_MAIN(suite_life)
