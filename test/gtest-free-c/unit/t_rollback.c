/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rollback: a chain that the device takes only in part leaves the ledger as if
 * the rest had never been posted. The twin of a ledger posts only what was
 * taken; the two must then be the same in every field.
 *
 * Six mistakes of another system's ledger, which covers only signalled requests
 * and learns of partial posts late, are tests here by the name of what they did:
 *
 *   1  a refusal in mid-batch leaks what the same call posted before
 *   2  a batch of which nothing was taken hides an earlier unsignalled one
 *   3  two that wait for each other's slots, each holding silent requests
 *   4  the request that failed cannot be told, for it was not signalled
 *   5  a healthy queue stays locked after a refusal
 *   6  what was taken is given up with what was not
 */
#include "t_unit.h"
#include "dq/dq_sq.h"

#include <stdlib.h>
#include <string.h>

enum { SQS = 3, DEPTH_MAX = 16, BATCH_MAX = 6, WINDOW = 64 };

typedef struct {
    dq_cq_t  cq;
    dq_sq_t  sq[SQS];
    uint32_t slot[SQS][DEPTH_MAX];
} world_t;


static void world_init(world_t *world, uint32_t depth, uint32_t every,
                       uint32_t cq_depth)
{
    unsigned i;

    memset(world, 0, sizeof(*world));
    dq_cq_init(&world->cq, cq_depth);
    for (i = 0; i < SQS; i++) {
        dq_sq_init(&world->sq[i], depth, every, -2u, world->slot[i]);
        dq_sq_expect(&world->sq[i]);
        T_NEED_EQ(dq_sq_open(&world->sq[i], WINDOW, WINDOW), 0);
    }
}


static void world_check(const world_t *world)
{
    uint32_t used = 0, signals = 0;
    unsigned i;

    for (i = 0; i < SQS; i++) {
        T_NEED(dq_sq_check(&world->sq[i], &world->cq));
        used    += dq_sq_in_use(&world->sq[i]);
        signals += world->sq[i].signals - world->sq[i].signals_over;
    }
    T_NEED_EQ(world->cq.used, used);
    T_NEED_EQ(world->cq.signals, signals);
}


/* Only what the ledger says, not where its slots lie. */
static void check_same(const world_t *a, const world_t *b)
{
    unsigned i;

    T_NEED_EQ(a->cq.used, b->cq.used);
    T_NEED_EQ(a->cq.signals, b->cq.signals);
    for (i = 0; i < SQS; i++) {
        T_NEED_EQ(a->sq[i].posted, b->sq[i].posted);
        T_NEED_EQ(a->sq[i].retired, b->sq[i].retired);
        T_NEED_EQ(a->sq[i].credits, b->sq[i].credits);
        T_NEED_EQ(dq_sq_unsignalled(&a->sq[i]), dq_sq_unsignalled(&b->sq[i]));
        T_NEED_EQ(a->sq[i].signals, b->sq[i].signals);
        T_NEED_EQ(a->sq[i].signals_over, b->sq[i].signals_over);
    }
}


/* One request, if it is admitted. */
static int post(world_t *world, unsigned i, dq_wr_class_t wr_class, int signal)
{
    if (dq_sq_admit(&world->sq[i], &world->cq, wr_class) != DQ_ADMIT_OK) {
        return 0;
    }
    (void)dq_sq_post(&world->sq[i], &world->cq, wr_class, signal);
    return 1;
}


/* The newest signalled request of an SQ completes; silent ones do not. */
static int complete_newest_signal(world_t *world, unsigned i)
{
    dq_sq_t *sq = &world->sq[i];
    uint32_t id;

    for (id = sq->posted; id != sq->retired; id--) {
        if (dq_sq_is_signalled(sq, id - 1)) {
            T_NEED(dq_sq_retire(sq, &world->cq, id - 1) > 0);
            return 1;
        }
    }
    return 0;
}


/* ---- Any position of any chain ---- */

/* Bits: which requests ask for a signal, and which are messages. */
static unsigned post_batch(world_t *world, unsigned i, unsigned count,
                           unsigned signals, unsigned messages)
{
    unsigned n;

    for (n = 0; n < count; n++) {
        if (!post(world, i, ((messages >> n) & 1) ? DQ_WR_MSG : DQ_WR_RMA,
                  (signals >> n) & 1)) {
            break;
        }
    }
    return n;
}


static unsigned count_bits(unsigned bits, unsigned from, unsigned to)
{
    unsigned count = 0;

    for (; from < to; from++) {
        count += (bits >> from) & 1;
    }
    return count;
}


/* Every length, position, mix of signals and messages; behind any number of
 * silent requests on the same SQ, with others on the other SQs. */
START_TEST(test_any_position)
{
    static const uint32_t depths[] = {4, 5, 8, 16};
    unsigned before, count, taken, signals, got;
    world_t world, twin;

    for (before = 0; before < 4; before++) {
        for (count = 1; count <= BATCH_MAX; count++) {
            for (signals = 0; signals < (1u << count); signals++) {
                unsigned messages = (signals * 0x2d + before) &
                                    ((1u << count) - 1);

                for (taken = 0; taken <= count; taken++) {
                    world_init(&world, depths[_i], 4, 20);
                    world_init(&twin, depths[_i], 4, 20);
                    post_batch(&world, 0, before, 0, ~0u);
                    post_batch(&world, 1, before, 2, ~0u);
                    post_batch(&twin, 0, before, 0, ~0u);
                    post_batch(&twin, 1, before, 2, ~0u);
                    got = post_batch(&world, 0, count, signals, messages);
                    if (taken > got) {
                        continue;
                    }
                    dq_sq_unpost(&world.sq[0], &world.cq, got - taken,
                                 count_bits(messages, taken, got));
                    post_batch(&twin, 0, taken, signals, messages);
                    check_same(&world, &twin);
                    world_check(&world);
                }
            }
        }
    }
}
END_TEST


/* Refusals on any subset of several SQs that share a CQ, again and again. */
START_TEST(test_subsets)
{
    unsigned round, i, got, taken, messages;
    world_t world;
    t_rng_t rng;

    t_rng_init(&rng, 0x4011 + _i);
    world_init(&world, t_rng_range(&rng, 4, DEPTH_MAX),
               t_rng_range(&rng, 1, 8), t_rng_range(&rng, 4, 40));
    for (round = 0; round < 20000; round++) {
        i        = t_rng_below(&rng, SQS);
        messages = t_rng_next(&rng);
        got      = post_batch(&world, i, t_rng_below(&rng, BATCH_MAX + 1),
                              t_rng_next(&rng), messages);
        taken    = t_rng_once_in(&rng, 3) ? t_rng_below(&rng, got + 1) : got;
        dq_sq_unpost(&world.sq[i], &world.cq, got - taken,
                     count_bits(messages, taken, got));
        world_check(&world);
        if (t_rng_once_in(&rng, 4)) {
            (void)complete_newest_signal(&world, t_rng_below(&rng, SQS));
        }
        (void)dq_sq_credit(&world.sq[i], t_rng_below(&rng, 4));
    }
    for (i = 0; i < SQS; i++) { /* what fills the CQ may be of any of them */
        while (complete_newest_signal(&world, i)) {
        }
    }
    for (i = 0; i < SQS; i++) {
        world.sq[i].credits = WINDOW;
        if (dq_sq_tail_is_silent(&world.sq[i])) {
            T_NEED(post(&world, i, DQ_WR_RMA, 1));
            T_NEED(complete_newest_signal(&world, i));
        }
    }
    T_NEED_EQ(world.cq.used, 0);
    T_NEED_EQ(world.cq.signals, 0);
}
END_TEST


/* ---- By name ---- */

START_TEST(test_mori_1_refusal_in_mid_batch)
{
    world_t world;
    uint32_t posted[SQS] = {0};
    unsigned i, any;

    world_init(&world, 4 + _i, 8, 3 * DEPTH_MAX);
    do { /* batches on all, in turns, without a word about signals */
        any = 0;
        for (i = 0; i < SQS; i++) {
            if (post(&world, i, DQ_WR_RMA, 0)) {
                posted[i]++;
                any++;
            }
        }
    } while (any > 0);
    for (i = 0; i < SQS; i++) {
        T_NEED_EQ(dq_sq_in_use(&world.sq[i]), posted[i]);
        /* the refusal cost nothing, and what was posted comes back */
        T_NEED(complete_newest_signal(&world, i));
        T_NEED_EQ(dq_sq_in_use(&world.sq[i]), 0);
    }
    world_check(&world);
}
END_TEST


START_TEST(test_mori_2_nothing_of_this_batch)
{
    unsigned before = 1 + _i;
    world_t world;

    world_init(&world, 16, 16, 64);
    T_NEED_EQ(post_batch(&world, 0, before, 0, 0), before);
    T_NEED(dq_sq_tail_is_silent(&world.sq[0]));
    /* this one has the signal for both, and none of it is taken */
    T_NEED_EQ(post_batch(&world, 0, 3, 4, 0), 3);
    dq_sq_unpost(&world.sq[0], &world.cq, 3, 0);
    T_NEED_EQ(dq_sq_in_use(&world.sq[0]), before);
    T_NEED(dq_sq_tail_is_silent(&world.sq[0])); /* whoever waits is told so */
    T_NEED(!complete_newest_signal(&world, 0));
    T_NEED(post(&world, 0, DQ_WR_RMA, 1));
    T_NEED(complete_newest_signal(&world, 0));
    T_NEED_EQ(world.cq.used, 0);
}
END_TEST


/* Whoever is refused can wait for something that comes by itself. */
START_TEST(test_mori_3_hold_and_wait)
{
    unsigned round, i;
    world_t world;
    t_rng_t rng;

    t_rng_init(&rng, 0x4012);
    world_init(&world, 4 + _i, 16, 8 + _i);
    for (round = 0; round < 5000; round++) {
        i = t_rng_below(&rng, SQS);
        world.sq[i].credits = WINDOW;
        if (post(&world, i, DQ_WR_RMA, 0)) {
            continue;
        }
        T_NEED(world.cq.signals > 0);
        for (i = t_rng_below(&rng, SQS); !complete_newest_signal(&world, i);
             i = (i + 1) % SQS) {
        }
        world_check(&world);
    }
}
END_TEST


/* An error names a silent request: what is before it is over, and it is it. */
START_TEST(test_mori_4_the_first_error_is_named)
{
    unsigned count = 6, at = _i;
    uint32_t first;
    world_t world;

    world_init(&world, 16, 16, 64);
    first = world.sq[0].posted;
    T_NEED_EQ(post_batch(&world, 0, count, 0, 0), count);
    T_NEED(!dq_sq_is_signalled(&world.sq[0], first + at));
    T_NEED_EQ(dq_sq_retire(&world.sq[0], &world.cq, first + at), at + 1);
    T_NEED_EQ(dq_sq_retire(&world.sq[0], &world.cq, first + at), 0);
    for (at++; at < count; at++) { /* flushes, each by its own name */
        T_NEED_EQ(dq_sq_retire(&world.sq[0], &world.cq, first + at), 1);
    }
    T_NEED_EQ(world.cq.used, 0);
    world_check(&world);
}
END_TEST


/* After each refusal there is as much room as before, a thousand times. */
START_TEST(test_mori_5_healthy_after_a_refusal)
{
    unsigned round, got;
    world_t world;

    world_init(&world, 8, 4, 16);
    for (round = 0; round < 1000; round++) {
        got = post_batch(&world, 0, 7, round, 0);
        T_NEED_EQ(got, 7);
        T_NEED_EQ(dq_sq_admit(&world.sq[0], &world.cq, DQ_WR_RMA),
                  DQ_ADMIT_SQ_FULL);
        dq_sq_unpost(&world.sq[0], &world.cq, 7 - round % 7, 0);
        T_NEED_EQ(dq_sq_admit(&world.sq[0], &world.cq, DQ_WR_RMA),
                  DQ_ADMIT_OK);
        T_NEED(post(&world, 0, DQ_WR_RMA, 1));
        T_NEED(complete_newest_signal(&world, 0));
        T_NEED_EQ(world.cq.used, 0);
    }
}
END_TEST


/* What was taken stays owned, each until a completion names it. */
START_TEST(test_mori_6_taken_is_owned)
{
    unsigned taken = 1 + _i, n;
    uint32_t first;
    world_t world;

    world_init(&world, 16, 4, 64);
    first = world.sq[0].posted;
    T_NEED_EQ(post_batch(&world, 0, 6, 0x12, 0x3f), 6);
    dq_sq_unpost(&world.sq[0], &world.cq, 6 - taken, 6 - taken);
    for (n = 0; n < taken; n++) {
        T_NEED_EQ(dq_sq_in_use(&world.sq[0]), taken - n);
        T_NEED_EQ(dq_sq_retire(&world.sq[0], &world.cq, first + taken), 0);
        T_NEED_EQ(dq_sq_retire(&world.sq[0], &world.cq, first + n), 1);
    }
    T_NEED_EQ(world.sq[0].credits, WINDOW - taken);
    T_NEED_EQ(world.cq.used, 0);
}
END_TEST


static Suite *suite_rollback(void)
{
    Suite *suite = suite_create("rollback");
    TCase *any   = tcase_create("any");
    TCase *named = tcase_create("named");

    tcase_set_timeout(any, T_TIMEOUT);
    tcase_add_loop_test(any, test_any_position, 0, 4);
    tcase_add_loop_test(any, test_subsets, 0, 20);
    suite_add_tcase(suite, any);
    tcase_add_loop_test(named, test_mori_1_refusal_in_mid_batch, 0, 13);
    tcase_add_loop_test(named, test_mori_2_nothing_of_this_batch, 0, 3);
    tcase_add_loop_test(named, test_mori_3_hold_and_wait, 0, 13);
    tcase_add_loop_test(named, test_mori_4_the_first_error_is_named, 0, 3);
    tcase_add_test(named, test_mori_5_healthy_after_a_refusal);
    tcase_add_loop_test(named, test_mori_6_taken_is_owned, 0, 6);
    suite_add_tcase(suite, named);
    return suite;
}

T_MAIN(suite_rollback)
