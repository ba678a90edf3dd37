/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How two ends agree to close an idle queue pair: the table by cells, then two ends on
 * links that deliver in order, where requests are under way in both directions and the
 * queue pair may be lost at any time. An end destroys its queue pair only when nothing of
 * either end is under way but grants, and probes; and nobody waits for ever.
 */
#include "t_unit.h"
#include "dq/dq_idle.h"

enum {
    SIDES   = 2,
    ON_LINK = 64,
    STEPS   = 100000,
    RUNS    = 16
};

typedef enum { DATA, GRANT, CLOSE } kind_t;

typedef struct {
    dq_idle_state_t state;
    kind_t          link[ON_LINK]; /* to the peer, oldest first               */
    unsigned        under_way;
    int             is_gone;       /* its queue pair                          */
} end_t;

typedef struct {
    end_t    end[SIDES];
    unsigned closed, lost, crossed;
} world_t;


/* ---- The table ---- */

static const struct {
    dq_idle_state_t state;
    dq_idle_event_t event;
    dq_idle_state_t next;
} moves[] = {
    {DQ_IDLE_OPEN, DQ_IDLE_EV_WANT, DQ_IDLE_DUE},
    {DQ_IDLE_OPEN, DQ_IDLE_EV_HEARD, DQ_IDLE_ANSWER},
    {DQ_IDLE_DUE, DQ_IDLE_EV_SENT, DQ_IDLE_WAITING},
    {DQ_IDLE_DUE, DQ_IDLE_EV_HEARD, DQ_IDLE_ANSWER},
    {DQ_IDLE_ANSWER, DQ_IDLE_EV_SENT, DQ_IDLE_BOTH},
    {DQ_IDLE_WAITING, DQ_IDLE_EV_HEARD, DQ_IDLE_BOTH},
    {DQ_IDLE_BOTH, DQ_IDLE_EV_SHUT, DQ_IDLE_OPEN},
};


START_TEST(test_cells)
{
    dq_idle_cell_t cell;
    unsigned state, event, i;
    int is_legal;
    unsigned next;

    for (state = 0; state < DQ_IDLE_STATE_LAST; state++) {
        for (event = 0; event < DQ_IDLE_EV_LAST; event++) {
            /* who wants already wants; a lost queue pair ends everything */
            is_legal = (event == DQ_IDLE_EV_WANT) || (event == DQ_IDLE_EV_LOST);
            next     = (event == DQ_IDLE_EV_LOST) ? (unsigned)DQ_IDLE_OPEN
                                                  : (is_legal ? state : 0);
            for (i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
                if ((moves[i].state == state) && (moves[i].event == event)) {
                    is_legal = 1;
                    next     = moves[i].next;
                }
            }
            cell = dq_idle_cell((dq_idle_state_t)state, (dq_idle_event_t)event);
            ck_assert_int_eq(cell.is_legal, is_legal);
            ck_assert_uint_eq(cell.next, next);
        }
    }
}
END_TEST


/* A peer that sends two CLOSEs on one queue pair is broken. */
START_TEST(test_second_close)
{
    dq_idle_state_t states[] = {DQ_IDLE_ANSWER, DQ_IDLE_BOTH};
    dq_idle_state_t state    = states[_i];

    ck_assert_int_eq(dq_idle_step(&state, DQ_IDLE_EV_HEARD), -1);
    ck_assert_int_eq(state, states[_i]);
}
END_TEST


START_TEST(test_due)
{
    unsigned state;

    for (state = 0; state < DQ_IDLE_STATE_LAST; state++) {
        ck_assert_int_eq(dq_idle_is_due((dq_idle_state_t)state),
                         dq_idle_cell((dq_idle_state_t)state, DQ_IDLE_EV_SENT).is_legal);
    }
}
END_TEST


START_TEST(test_names)
{
    unsigned i;

    for (i = 0; i < DQ_IDLE_STATE_LAST; i++) {
        ck_assert_str_ne(dq_idle_state_name((dq_idle_state_t)i), "?");
    }
    for (i = 0; i < DQ_IDLE_EV_LAST; i++) {
        ck_assert_str_ne(dq_idle_event_name((dq_idle_event_t)i), "?");
    }
    ck_assert_str_eq(dq_idle_state_name(DQ_IDLE_STATE_LAST), "?");
    ck_assert_str_eq(dq_idle_event_name(DQ_IDLE_EV_LAST), "?");
}
END_TEST


/* ---- Two ends ---- */

static void post(end_t *end, kind_t kind)
{
    T_NEED(end->under_way < ON_LINK);
    end->link[end->under_way++] = kind;
}


static void send_data(end_t *end)
{
    /* the gate is shut behind a CLOSE */
    if (!end->is_gone && (end->state != DQ_IDLE_WAITING) &&
        (end->state != DQ_IDLE_BOTH) && (end->under_way < ON_LINK - 2)) {
        post(end, DATA);
    }
}


static void send_grant(end_t *end)
{
    if (!end->is_gone && (end->state != DQ_IDLE_BOTH) && (end->under_way < ON_LINK - 2)) {
        post(end, GRANT);
    }
}


static void send_close(world_t *world, end_t *end)
{
    if (!end->is_gone && dq_idle_is_due(end->state)) {
        post(end, CLOSE);
        T_NEED_EQ(dq_idle_step(&end->state, DQ_IDLE_EV_SENT), 0);
        world->crossed += end->state == DQ_IDLE_WAITING;
    }
}


/* The next request of @a from arrives, and is over there at once; or its queue pair is
 * gone, and the request stays. */
static void arrive(world_t *world, unsigned from)
{
    end_t *end  = &world->end[from];
    end_t *peer = &world->end[1 - from];
    kind_t kind = end->link[0];
    unsigned i;

    if ((end->under_way == 0) || end->is_gone || peer->is_gone) {
        return;
    }
    end->under_way--;
    for (i = 0; i < end->under_way; i++) {
        end->link[i] = end->link[i + 1];
    }
    if (kind == CLOSE) {
        T_NEED_EQ(dq_idle_step(&peer->state, DQ_IDLE_EV_HEARD), 0);
    }
}


static void begin_anew(world_t *world)
{
    unsigned s;

    for (s = 0; s < SIDES; s++) {
        world->end[s] = (end_t){.state = DQ_IDLE_OPEN};
    }
}


/* Is nothing of this end under way but grants? */
static int is_over(const end_t *end)
{
    unsigned i;

    for (i = 0; i < end->under_way; i++) {
        if (end->link[i] != GRANT) {
            return 0;
        }
    }
    return 1;
}


static void shut(world_t *world, unsigned s)
{
    end_t *end = &world->end[s];

    if (!end->is_gone && (end->state == DQ_IDLE_BOTH) && is_over(end)) {
        T_NEED(is_over(&world->end[1 - s])); /* the promise */
        T_NEED_EQ(dq_idle_step(&end->state, DQ_IDLE_EV_SHUT), 0);
        end->is_gone = 1;
        world->closed += world->end[1 - s].is_gone;
    }
}


static void lose(world_t *world)
{
    unsigned s;

    for (s = 0; s < SIDES; s++) {
        T_NEED_EQ(dq_idle_step(&world->end[s].state, DQ_IDLE_EV_LOST), 0);
        T_NEED_EQ(world->end[s].state, DQ_IDLE_OPEN);
    }
    world->lost++;
    begin_anew(world);
}


static void random_step(world_t *world, t_rng_t *rng)
{
    unsigned s = t_rng_below(rng, SIDES);
    end_t *end = &world->end[s];

    switch (t_rng_below(rng, 16)) {
    case 0:
        if (!end->is_gone) {
            T_NEED_EQ(dq_idle_step(&end->state, DQ_IDLE_EV_WANT), 0);
        }
        break;
    case 1:
    case 2:
        send_data(end);
        break;
    case 3:
        send_grant(end);
        break;
    case 4:
    case 5:
    case 6:
        send_close(world, end);
        break;
    case 7:
    case 8:
        shut(world, s);
        break;
    case 9:
        if (t_rng_once_in(rng, 50)) {
            lose(world);
        }
        break;
    default:
        arrive(world, s);
        break;
    }
    if (world->end[0].is_gone && world->end[1].is_gone) {
        begin_anew(world);
    }
}


/* Without any new wish, a close that has begun ends. */
static void settle(world_t *world)
{
    unsigned i, s, closed = world->closed;
    int is_begun = 0;

    for (s = 0; s < SIDES; s++) {
        is_begun |= (world->end[s].state != DQ_IDLE_OPEN) || world->end[s].is_gone;
    }
    for (i = 0; i < 4 * ON_LINK; i++) {
        for (s = 0; s < SIDES; s++) {
            send_close(world, &world->end[s]);
            arrive(world, s);
            shut(world, s);
        }
    }
    T_NEED_EQ(world->closed - closed, (unsigned)is_begun);
}


START_TEST(test_random)
{
    world_t world = {0};
    t_rng_t rng;

    t_rng_init(&rng, 0x1d1e + _i);
    begin_anew(&world);
    for (t_at = 0; t_at < STEPS; t_at++) {
        random_step(&world, &rng);
        if (t_rng_once_in(&rng, 1000)) {
            settle(&world);
            begin_anew(&world);
        }
    }
    T_NEED(world.closed > 100);
    T_NEED(world.lost > 20);
    T_NEED(world.crossed > 100);
}
END_TEST


static Suite *suite_idle(void)
{
    Suite *suite  = suite_create("idle");
    TCase *edges  = tcase_create("edges");
    TCase *random = tcase_create("random");

    tcase_set_timeout(edges, T_TIMEOUT);
    tcase_add_test(edges, test_cells);
    tcase_add_loop_test(edges, test_second_close, 0, 2);
    tcase_add_test(edges, test_due);
    tcase_add_test(edges, test_names);
    suite_add_tcase(suite, edges);
    tcase_set_timeout(random, T_TIMEOUT);
    tcase_add_loop_test(random, test_random, 0, RUNS);
    suite_add_tcase(suite, random);
    return suite;
}

T_MAIN(suite_idle)
