/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many interfaces that connect to each other, in the simulation of `contrib/bench scale`.
 * Its times are simulated: they depend on nothing but the code and the seed. So a test
 * may compare them.
 *
 * Each part that a large job needs is left out once, and is missed.
 */
#include "t_unit.h"
#include "../../bench/sim.h"

enum { MANY = 256, RING = 500, STAR = 3000 };

static const double losses[] = {0, 0.001, 0.01, 0.1};


static sim_settings_t settings(uint32_t ifaces, uint32_t distances)
{
    sim_settings_t set = sim_defaults();

    set.ifaces    = ifaces;
    set.distances = distances;
    set.seed      = t_seed();
    return set;
}


static sim_result_t run(const sim_settings_t *set)
{
    sim_result_t result;

    ck_assert_int_eq(sim_run(set, &result), 0);
    T_NEED_EQ(result.connected + result.failed, result.wanted);
    return result;
}


static double frames_each(const sim_result_t *result)
{
    return (double)result->frames / result->wanted;
}


/* Each pair once, whatever the numbers are. */
START_TEST(test_pairs)
{
    static const uint32_t counts[] = {2, 3, 4, 5, 16, 17, 100, 101};
    sim_settings_t set;
    sim_result_t result;
    unsigned i;
    uint64_t n;

    for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        n                = counts[i];
        set              = settings(n, 0);
        result           = run(&set);
        T_NEED_EQ(result.wanted, n * (n - 1) / 2);
        T_NEED_EQ(result.connected, result.wanted);
        set.in_order     = 1;
        result           = run(&set);
        T_NEED_EQ(result.connected, n * (n - 1) / 2);
        set              = settings(n, SIM_STAR);
        result           = run(&set);
        T_NEED_EQ(result.wanted, n - 1);
        T_NEED_EQ(result.connected, n - 1);
    }
    set    = settings(1000, 7); /* some peers of each */
    result = run(&set);
    T_NEED((result.wanted == 7000) || (result.wanted == 6500));
    T_NEED_EQ(result.connected, result.wanted);
}
END_TEST


/* Three frames and the few REQs that cross; no frame twice, and none finds no room. */
START_TEST(test_no_loss)
{
    sim_settings_t set  = settings(MANY, 0);
    sim_result_t result = run(&set);

    T_NEED_EQ(result.connected, result.wanted);
    T_NEED_EQ(result.repeated, 0);
    T_NEED_EQ(result.overrun + result.unsent + result.full, 0);
    T_NEED(frames_each(&result) < 3.1);
    /* each end makes one queue pair for each peer, and does nothing else for long */
    T_NEED(result.seconds < 1.2e-9 * (MANY - 1) * (set.create + set.connect));
}
END_TEST


START_TEST(test_loss)
{
    sim_settings_t set = settings(MANY, 0);
    sim_result_t result;

    set.loss = losses[_i];
    result   = run(&set);
    T_NEED_EQ(result.connected, result.wanted);
    T_NEED_EQ(result.overrun, 0);
    /* of three frames, each is repeated as often as it is lost, and so is what answers */
    T_NEED(frames_each(&result) < 3.1 * (1 + 2 * set.loss));
    T_NEED((set.loss < 0.01) || (result.lost > 0));
    T_NEED((set.loss < 0.01) || (result.repeated > 0));
}
END_TEST


START_TEST(test_same_again)
{
    sim_settings_t set = settings(60, 0);
    sim_result_t one, other;

    set.loss = 0.05;
    one      = run(&set);
    other    = run(&set);
    T_NEED_EQ(one.frames, other.frames);
    T_NEED_EQ(one.lost, other.lost);
    T_NEED(one.seconds == other.seconds);
    set.seed++;
    other = run(&set);
    T_NEED((one.frames != other.frames) || (one.seconds != other.seconds));
}
END_TEST


/* One of everything: slow, but it ends. */
START_TEST(test_least)
{
    sim_settings_t set = settings(40, 0);
    sim_result_t result;

    set.ring = set.slots = set.places = set.unproven = 1;
    set.backlog = 16;
    set.loss    = 0.01;
    result      = run(&set);
    T_NEED_EQ(result.connected, result.wanted);
    set.distances = SIM_STAR;
    set.ifaces    = 400;
    result        = run(&set);
    T_NEED_EQ(result.connected, result.wanted);
}
END_TEST


/* Nobody answers: all fail, after their time and not before. */
START_TEST(test_all_lost)
{
    sim_settings_t set = settings(20, 0);
    sim_result_t result;

    set.loss    = 1;
    set.timeout = 1000000000;
    result      = run(&set);
    T_NEED_EQ(result.failed, result.wanted);
    T_NEED(result.seconds > 1);
    T_NEED(result.seconds < 4);
}
END_TEST


/* Without places the questions find no send slot, and wait for timers instead. */
START_TEST(test_pace)
{
    sim_settings_t set = settings(RING, 0);
    sim_result_t with, without;

    with        = run(&set);
    set.no_pace = 1;
    without     = run(&set);
    T_NEED_EQ(without.connected, without.wanted);
    T_NEED_EQ(with.unsent, 0);
    T_NEED(without.unsent > 1000);
    T_NEED(without.seconds > 1.5 * with.seconds);
    T_NEED(without.most_alive > 20 * with.most_alive); /* which is memory */
}
END_TEST


/* Thousands ask one at once. It answers without a pause: 1.3 times its own work. */
START_TEST(test_flood)
{
    sim_settings_t set = settings(STAR, SIM_STAR);
    double work        = 1e-9 * STAR * (set.create + set.connect);
    sim_result_t with, without;

    with = run(&set);
    T_NEED_EQ(with.connected, with.wanted);
    T_NEED(with.seconds < 1.3 * work);
    T_NEED(frames_each(&with) < 8);

    set.no_backlog = 1;
    without        = run(&set);
    T_NEED_EQ(without.connected, without.wanted);
    T_NEED(without.seconds > 1.5 * with.seconds);
    T_NEED(without.overrun > 2 * with.overrun);
}
END_TEST


/* The same, and no wait has a part left to chance: who was lost is lost again. */
START_TEST(test_jitter)
{
    sim_settings_t set = settings(STAR, SIM_STAR);
    sim_result_t with, without;

    set.backlog   = 256;
    with          = run(&set);
    set.no_jitter = 1;
    without       = run(&set);
    T_NEED(without.seconds > 1.5 * with.seconds);
}
END_TEST


/* Where an answer takes longer than CONN_RETRY, questions are repeated in vain until
 * that is learned. */
START_TEST(test_learning)
{
    sim_settings_t set = settings(MANY, 0);
    sim_result_t with, without;

    set.create  *= 100;
    set.connect *= 100;
    with            = run(&set);
    set.no_learning = 1;
    without         = run(&set);
    T_NEED(without.repeated > 10 * with.repeated);
    T_NEED(frames_each(&with) < 3.1);
}
END_TEST


static Suite *suite_scale(void)
{
    Suite *suite = suite_create("scale");
    TCase *all   = tcase_create("all");
    TCase *parts = tcase_create("parts");

    tcase_set_timeout(all, T_TIMEOUT);
    tcase_add_test(all, test_pairs);
    tcase_add_test(all, test_no_loss);
    tcase_add_loop_test(all, test_loss, 0, sizeof(losses) / sizeof(losses[0]));
    tcase_add_test(all, test_same_again);
    tcase_add_test(all, test_least);
    tcase_add_test(all, test_all_lost);
    suite_add_tcase(suite, all);

    tcase_set_timeout(parts, T_TIMEOUT);
    tcase_add_test(parts, test_pace);
    tcase_add_test(parts, test_flood);
    tcase_add_test(parts, test_jitter);
    tcase_add_test(parts, test_learning);
    suite_add_tcase(suite, parts);
    return suite;
}

T_MAIN(suite_scale)
