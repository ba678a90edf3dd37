/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may ask now: the table by cells, places and waits by number, then many peers beside
 * a model that counts. Some of them never answer; nobody waits for those.
 */
#include "t_unit.h"
#include "dq/dq_pace.h"

enum {
    PEERS  = 40,
    STEPS  = 20000,
    RUNS   = 8,
    LEAST  = 20,
    MOST   = 1000
};

typedef struct {
    dq_pace_turn_t turn;
    int            is_dead;
    uint64_t       asked;
} peer_t;

/* The line is the caller's: peers by number, first come first. */
typedef struct {
    dq_pace_t pace;
    peer_t    peer[PEERS];
    unsigned  line[PEERS];
    unsigned  waiting;
    uint64_t  now;
    int64_t   mean, spread;
    unsigned  asked;
} world_t;


START_TEST(test_cells)
{
    static const char *const want[DQ_PACE_STATE_LAST] = {
        /* WANT TURN LATE END, by the first letters of the next states */
        [DQ_PACE_REST]    = "W RR",
        [DQ_PACE_WAITING] = "WAWR",
        [DQ_PACE_ASKING]  = "A LR",
        [DQ_PACE_LATE]    = "L LR",
    };
    dq_pace_cell_t cell;
    unsigned state, event;

    for (state = 0; state < DQ_PACE_STATE_LAST; state++) {
        for (event = 0; event < DQ_PACE_EV_LAST; event++) {
            cell = dq_pace_cell((dq_pace_state_t)state, (dq_pace_event_t)event);
            T_NEED_EQ(cell.is_legal, want[state][event] != ' ');
            T_NEED(!cell.is_legal ||
                   (dq_pace_state_name(cell.next)[0] == want[state][event]));
        }
    }
    ck_assert_str_eq(dq_pace_state_name(DQ_PACE_STATE_LAST), "?");
    ck_assert_str_eq(dq_pace_event_name(DQ_PACE_EV_LAST), "?");
    ck_assert_str_eq(dq_pace_event_name(DQ_PACE_EV_TURN), "TURN");
}
END_TEST


/* One place less for each question, and none is free at the last. A late one, an answer
 * and an end give theirs back, once. */
START_TEST(test_places)
{
    dq_pace_turn_t turn[4] = {{0}};
    dq_pace_t pace;
    unsigned i;

    dq_pace_init(&pace, 3);
    for (i = 0; i < 3; i++) {
        T_NEED(dq_pace_is_free(&pace));
        T_NEED(dq_pace_want(&turn[i]));
        T_NEED(!dq_pace_want(&turn[i]));
        dq_pace_begin(&pace, &turn[i], 100);
        T_NEED(!dq_pace_want(&turn[i]));
        T_NEED_EQ(pace.taken, i + 1);
    }
    T_NEED(!dq_pace_is_free(&pace));

    /* in line: leaves it, and had no place */
    T_NEED(dq_pace_want(&turn[3]));
    dq_pace_late(&pace, &turn[3], 200);
    T_NEED_EQ(turn[3].state, DQ_PACE_WAITING);
    T_NEED(dq_pace_answered(&pace, &turn[3], 200));
    T_NEED_EQ(pace.taken, 3);
    T_NEED(!dq_pace_answered(&pace, &turn[3], 200));
    T_NEED_EQ(pace.taken, 3);

    dq_pace_late(&pace, &turn[0], 200);
    T_NEED_EQ(pace.taken, 2);
    T_NEED(dq_pace_is_free(&pace));
    dq_pace_late(&pace, &turn[0], 300);
    T_NEED(!dq_pace_want(&turn[0]));
    T_NEED(!dq_pace_answered(&pace, &turn[0], 400));
    T_NEED_EQ(pace.taken, 2);
    T_NEED_EQ(turn[0].state, DQ_PACE_REST);

    T_NEED(!dq_pace_answered(&pace, &turn[1], 400));
    T_NEED_EQ(pace.taken, 1);
    T_NEED(!dq_pace_end(&pace, &turn[2]));
    T_NEED_EQ(pace.taken, 0);
    T_NEED(!dq_pace_end(&pace, &turn[2]));
    T_NEED_EQ(pace.taken, 0);
}
END_TEST


static void take(dq_pace_t *pace, uint64_t took)
{
    dq_pace_turn_t turn = {0};

    T_NEED(dq_pace_want(&turn));
    dq_pace_begin(pace, &turn, 1000);
    T_NEED(!dq_pace_answered(pace, &turn, 1000 + took));
}


START_TEST(test_waits)
{
    dq_pace_turn_t turn = {0};
    dq_pace_t pace;

    dq_pace_init(&pace, 1);
    T_NEED_EQ(dq_pace_wait(&pace, LEAST, MOST), LEAST);
    T_NEED_EQ(dq_pace_wait(&pace, MOST, MOST), MOST);

    take(&pace, 80); /* the first: the mean, and half of it about it */
    T_NEED_EQ(pace.mean, 80);
    T_NEED_EQ(pace.spread, 40);
    T_NEED_EQ(dq_pace_wait(&pace, LEAST, MOST), 240);
    T_NEED_EQ(dq_pace_wait(&pace, 239, MOST), 240);
    T_NEED_EQ(dq_pace_wait(&pace, 241, MOST), 241);
    T_NEED_EQ(dq_pace_wait(&pace, LEAST, 239), 239);

    take(&pace, 160); /* an eighth and a quarter of a further one */
    T_NEED_EQ(pace.mean, 90);
    T_NEED_EQ(pace.spread, 50);
    take(&pace, 10);
    T_NEED_EQ(pace.mean, 80);
    T_NEED_EQ(pace.spread, 58);

    /* an end teaches nothing; who is late does, once */
    T_NEED(dq_pace_want(&turn));
    dq_pace_begin(&pace, &turn, 1000);
    T_NEED(!dq_pace_end(&pace, &turn));
    T_NEED_EQ(pace.mean, 80);
    T_NEED(dq_pace_want(&turn));
    dq_pace_begin(&pace, &turn, 2000);
    dq_pace_late(&pace, &turn, 2800);
    T_NEED_EQ(pace.mean, 170);
    T_NEED_EQ(pace.spread, 58 + 180 - 14);
    dq_pace_late(&pace, &turn, 9000);
    T_NEED(!dq_pace_answered(&pace, &turn, 9000));
    T_NEED_EQ(pace.mean, 170);
    T_NEED_EQ(dq_pace_wait(&pace, LEAST, MOST), MOST);
}
END_TEST


/* ---- Random ---- */

static void world_check(const world_t *world)
{
    unsigned asking = 0, waiting = 0, i;

    for (i = 0; i < PEERS; i++) {
        asking  += world->peer[i].turn.state == DQ_PACE_ASKING;
        waiting += world->peer[i].turn.state == DQ_PACE_WAITING;
    }
    T_NEED_EQ(asking, world->pace.taken);
    T_NEED_EQ(waiting, world->waiting);
    T_NEED(asking <= world->pace.places);
    T_NEED_EQ(world->pace.mean, world->mean);
    T_NEED_EQ(world->pace.spread, world->spread);
    T_NEED_EQ(dq_pace_is_free(&world->pace), asking < world->pace.places);
}


static void learn(world_t *world, unsigned i)
{
    int64_t took = world->now - world->peer[i].asked;
    int64_t off  = took - world->mean;

    if (world->mean == 0) {
        world->mean   = took;
        world->spread = took / 2;
        return;
    }
    off            = (off < 0) ? -off : off;
    world->mean   += took / 8 - world->mean / 8;
    world->spread += off / 4 - world->spread / 4;
}


static void leave_line(world_t *world, unsigned peer)
{
    unsigned i, k = 0;

    for (i = 0; i < world->waiting; i++) {
        if (world->line[i] != peer) {
            world->line[k++] = world->line[i];
        }
    }
    T_NEED_EQ(k + 1, world->waiting);
    world->waiting = k;
}


static void ask_next(world_t *world)
{
    unsigned i;

    if ((world->waiting == 0) || !dq_pace_is_free(&world->pace)) {
        return;
    }
    i                    = world->line[0];
    world->peer[i].asked = world->now;
    dq_pace_begin(&world->pace, &world->peer[i].turn, world->now);
    leave_line(world, i);
    world->asked++;
}


static void random_step(world_t *world, t_rng_t *rng)
{
    unsigned i            = t_rng_below(rng, PEERS);
    peer_t *peer          = &world->peer[i];
    dq_pace_state_t state = peer->turn.state;

    world->now += t_rng_below(rng, 30);
    switch (t_rng_below(rng, 5)) {
    case 0:
        T_NEED_EQ(dq_pace_want(&peer->turn), state == DQ_PACE_REST);
        if (state == DQ_PACE_REST) {
            world->line[world->waiting++] = i;
        }
        break;
    case 1:
        if (state == DQ_PACE_ASKING) {
            learn(world, i);
        }
        dq_pace_late(&world->pace, &peer->turn, world->now);
        T_NEED_EQ(peer->turn.state, (state == DQ_PACE_ASKING) ? DQ_PACE_LATE : state);
        break;
    case 2:
        if (!peer->is_dead || (state == DQ_PACE_WAITING)) {
            if (state == DQ_PACE_ASKING) {
                learn(world, i);
            }
            if (dq_pace_answered(&world->pace, &peer->turn, world->now)) {
                leave_line(world, i);
            }
            T_NEED_EQ(peer->turn.state, DQ_PACE_REST);
        }
        break;
    case 3:
        if (t_rng_below(rng, 8) == 0) {
            if (dq_pace_end(&world->pace, &peer->turn)) {
                leave_line(world, i);
            }
            T_NEED_EQ(peer->turn.state, DQ_PACE_REST);
        }
        break;
    default:
        ask_next(world);
        break;
    }
}


START_TEST(test_random)
{
    world_t world = {.now = 1000};
    t_rng_t rng;
    unsigned i;

    t_rng_init(&rng, 0x9ace + _i);
    dq_pace_init(&world.pace, 1 + _i);
    for (i = 0; i < PEERS; i++) {
        world.peer[i].is_dead = i % 4 == 0;
    }
    for (t_at = 0; t_at < STEPS; t_at++) {
        random_step(&world, &rng);
        world_check(&world);
    }
    T_NEED(world.asked > STEPS / 1000);
}
END_TEST


/* All places are taken by peers that never answer. Each costs the line one wait. */
START_TEST(test_dead)
{
    dq_pace_turn_t dead[5] = {{0}}, alive = {0};
    dq_pace_t pace;
    unsigned i;

    dq_pace_init(&pace, 5);
    for (i = 0; i < 5; i++) {
        T_NEED(dq_pace_want(&dead[i]));
        dq_pace_begin(&pace, &dead[i], 0);
    }
    T_NEED(dq_pace_want(&alive));
    T_NEED(!dq_pace_is_free(&pace));
    dq_pace_late(&pace, &dead[2], LEAST);
    T_NEED(dq_pace_is_free(&pace));
    dq_pace_begin(&pace, &alive, LEAST);
    T_NEED_EQ(alive.state, DQ_PACE_ASKING);
}
END_TEST


static Suite *suite_pace(void)
{
    Suite *suite  = suite_create("pace");
    TCase *edges  = tcase_create("edges");
    TCase *random = tcase_create("random");

    tcase_add_test(edges, test_cells);
    tcase_add_test(edges, test_places);
    tcase_add_test(edges, test_waits);
    tcase_add_test(edges, test_dead);
    suite_add_tcase(suite, edges);

    tcase_set_timeout(random, T_TIMEOUT);
    tcase_add_loop_test(random, test_random, 0, RUNS);
    suite_add_tcase(suite, random);
    return suite;
}

T_MAIN(suite_pace)
