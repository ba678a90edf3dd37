/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watch: each verdict at its bound, not a look earlier; what moves resets
 * it; and random lives against a model that goes over all that was seen anew at
 * every look.
 */
#include "t_unit.h"
#include "dq/dq_watchdog.h"

#include <string.h>

enum { LIVES = 300, LOOKS = 200 };

static const dq_watchdog_bounds_t usual = {.warn = 100, .give_up = 300, .probe = 50};


/* A connection with @a posted requests, of which some are over. */
static dq_watchdog_seen_t up(uint32_t posted, uint32_t retired, int is_due)
{
    return (dq_watchdog_seen_t){.posted = posted, .retired = retired, .is_up = 1,
                             .is_due = is_due};
}


static unsigned look(dq_watchdog_t *watchdog, dq_watchdog_seen_t seen, uint64_t elapsed)
{
    return dq_watchdog_sample(watchdog, &usual, &seen, elapsed);
}


/* ---- One verdict each ---- */

START_TEST(test_stuck)
{
    dq_watchdog_t watchdog;

    dq_watchdog_init(&watchdog);
    /*  1 the first look knows nothing of before */
    ck_assert_uint_eq(look(&watchdog, up(5, 4, 1), 1000), 0);
    /*  2 one less than the bound to say */
    ck_assert_uint_eq(look(&watchdog, up(5, 4, 1), 99), 0);
    /*  3 the bound */
    ck_assert_uint_eq(look(&watchdog, up(5, 4, 1), 1), DQ_WATCHDOG_WARN);
    /*  4 said once */
    ck_assert_uint_eq(look(&watchdog, up(5, 4, 1), 100), 0);
    /*  5 more posts behind it change nothing */
    ck_assert_uint_eq(look(&watchdog, up(9, 4, 1), 99), 0);
    ck_assert_uint_eq(watchdog.still, 299);
    /*  6 the bound to give up, and again until somebody does */
    ck_assert_uint_eq(look(&watchdog, up(9, 4, 1), 1), DQ_WATCHDOG_GIVE_UP);
    ck_assert_uint_eq(look(&watchdog, up(9, 4, 1), 0), DQ_WATCHDOG_GIVE_UP);
    /*  7 another QP is made: nothing is held against it */
    ck_assert_uint_eq(look(&watchdog, (dq_watchdog_seen_t){.posted  = 9,
                                                     .retired = 4,
                                                     .is_due  = 1}, 500), 0);
    ck_assert_uint_eq(look(&watchdog, up(9, 4, 1), 500), 0);
    ck_assert_uint_eq(look(&watchdog, up(9, 4, 1), 99), 0);
    /*  8 it may be said again */
    ck_assert_uint_eq(look(&watchdog, up(9, 4, 1), 1), DQ_WATCHDOG_WARN);
    /*  9 one completion, and time begins anew */
    ck_assert_uint_eq(look(&watchdog, up(9, 5, 1), 500), 0);
    ck_assert_uint_eq(look(&watchdog, up(9, 5, 1), 99), 0);
    ck_assert_uint_eq(look(&watchdog, up(9, 5, 1), 1), DQ_WATCHDOG_WARN);
}
END_TEST


/* What will not complete by itself does not wait, but is pushed. */
START_TEST(test_silent)
{
    dq_watchdog_seen_t seen = up(5, 0, 0);
    dq_watchdog_t watchdog;

    seen.is_silent = 1;
    dq_watchdog_init(&watchdog);
    /*  1 it may be about to post more */
    ck_assert_uint_eq(look(&watchdog, seen, 1000), 0);
    /*  2 it has come to rest */
    ck_assert_uint_eq(look(&watchdog, seen, 10), DQ_WATCHDOG_MARK);
    /*  3 it has posted more */
    seen.posted = 6;
    ck_assert_uint_eq(look(&watchdog, seen, 1000), 0);
    /*  4 not while it is down, nor at the first look after */
    seen.is_up = 0;
    ck_assert_uint_eq(look(&watchdog, seen, 10), 0);
    seen.is_up = 1;
    ck_assert_uint_eq(look(&watchdog, seen, 10), 0);
    ck_assert_uint_eq(look(&watchdog, seen, 10), DQ_WATCHDOG_MARK);
    ck_assert_uint_eq(watchdog.still, 0);
}
END_TEST


/* Somebody wants to post and may not. */
START_TEST(test_waiting)
{
    dq_watchdog_seen_t seen = up(5, 5, 0);
    dq_watchdog_t watchdog;

    dq_watchdog_init(&watchdog);
    seen.heard     = 1;
    seen.is_wanted = 1;
    ck_assert_uint_eq(look(&watchdog, seen, 1000), 0);
    seen.heard++;
    ck_assert_uint_eq(look(&watchdog, seen, 99), 0);
    seen.heard++;
    ck_assert_uint_eq(look(&watchdog, seen, 1), DQ_WATCHDOG_WARN);
    /*  the question whether its receiver is there is no progress */
    seen.posted  = seen.retired = 8;
    seen.probes  = 3;
    watchdog.is_logged = 0;
    ck_assert_uint_eq(look(&watchdog, seen, 1), DQ_WATCHDOG_WARN);
    seen.posted = seen.retired = 5;
    seen.probes = 0;
    /*  it is nothing to give up a queue pair for */
    seen.heard++;
    ck_assert_uint_eq(look(&watchdog, seen, 5000), 0);
    /*  nobody wants it any more */
    seen.heard++;
    seen.is_wanted = 0;
    ck_assert_uint_eq(look(&watchdog, seen, 1000), 0);
    seen.heard++;
    seen.is_wanted = 1;
    ck_assert_uint_eq(look(&watchdog, seen, 99), 0);
    /*  one went */
    seen.posted = seen.retired = 6;
    ck_assert_uint_eq(look(&watchdog, seen, 1000), 0);
    seen.heard++;
    ck_assert_uint_eq(look(&watchdog, seen, 99), 0);
    seen.heard++;
    ck_assert_uint_eq(look(&watchdog, seen, 1), DQ_WATCHDOG_WARN);
}
END_TEST


START_TEST(test_quiet)
{
    dq_watchdog_seen_t seen = up(5, 5, 0);
    dq_watchdog_t watchdog;

    dq_watchdog_init(&watchdog);
    ck_assert_uint_eq(look(&watchdog, seen, 1000), 0);
    ck_assert_uint_eq(look(&watchdog, seen, 49), 0);
    ck_assert_uint_eq(look(&watchdog, seen, 1), DQ_WATCHDOG_PROBE);
    /*  asked again after as long */
    ck_assert_uint_eq(look(&watchdog, seen, 49), 0);
    ck_assert_uint_eq(look(&watchdog, seen, 1), DQ_WATCHDOG_PROBE);
    /*  a message came */
    seen.heard++;
    ck_assert_uint_eq(look(&watchdog, seen, 1000), 0);
    ck_assert_uint_eq(look(&watchdog, seen, 49), 0);
    /*  a request went, and is under way: that will tell */
    seen.posted++;
    seen.is_due = 1;
    ck_assert_uint_eq(look(&watchdog, seen, 1000), 0);
    ck_assert_uint_eq(look(&watchdog, seen, 99), 0);
    seen.retired++;
    seen.is_due = 0;
    ck_assert_uint_eq(look(&watchdog, seen, 1000), 0);
    ck_assert_uint_eq(look(&watchdog, seen, 50), DQ_WATCHDOG_PROBE);
}
END_TEST


/* The peer puts off who wants another queue pair. Without its word that is no time that
 * counts: the handshake has its own limit. */
START_TEST(test_put_off)
{
    dq_watchdog_seen_t seen = {.posted = 5, .retired = 4, .is_wanted = 1};
    dq_watchdog_t watchdog;

    dq_watchdog_init(&watchdog);
    ck_assert_uint_eq(look(&watchdog, seen, 1000), 0);
    ck_assert_uint_eq(look(&watchdog, seen, 1000), 0);
    seen.is_put_off = 1;
    ck_assert_uint_eq(look(&watchdog, seen, 1000), 0);
    ck_assert_uint_eq(look(&watchdog, seen, 99), 0);
    ck_assert_uint_eq(look(&watchdog, seen, 1), DQ_WATCHDOG_WARN);
    /*  once; and nothing is given up for it */
    ck_assert_uint_eq(look(&watchdog, seen, 5000), 0);
    /*  nobody wants it */
    seen.is_wanted = 0;
    ck_assert_uint_eq(look(&watchdog, seen, 1000), 0);
    seen.is_wanted = 1;
    ck_assert_uint_eq(look(&watchdog, seen, 99), 0);
    /*  it has come */
    seen.is_put_off = 0;
    seen.is_up      = 1;
    ck_assert_uint_eq(look(&watchdog, seen, 1000), 0);
}
END_TEST


START_TEST(test_never)
{
    const dq_watchdog_bounds_t never = {0};
    dq_watchdog_seen_t seen          = up(5, 4, 1);
    dq_watchdog_t watchdog;
    unsigned i;

    dq_watchdog_init(&watchdog);
    seen.is_wanted = 1;
    for (i = 0; i < 100; i++) {
        ck_assert_uint_eq(dq_watchdog_sample(&watchdog, &never, &seen, 1u << 30), 0);
    }
    seen = up(5, 5, 0);
    for (i = 0; i < 100; i++) {
        ck_assert_uint_eq(dq_watchdog_sample(&watchdog, &never, &seen, 1u << 30), 0);
    }
}
END_TEST


START_TEST(test_period)
{
    static const struct {
        dq_watchdog_bounds_t bounds;
        uint64_t          period;
    } cases[] = {
        /*  1 */ {{0, 0, 0}, 1000},
        /*  2 */ {{4000, 0, 0}, 1000},
        /*  3 */ {{3999, 0, 0}, 999},
        /*  4 */ {{0, 400, 0}, 100},
        /*  5 */ {{0, 0, 80}, 20},
        /*  6 */ {{800, 400, 80}, 20},
        /*  7 */ {{80, 400, 800}, 20},
        /*  8 */ {{8, 0, 0}, 5},
        /*  9 */ {{1, 1, 1}, 5},
        /* 10 */ {{UINT64_MAX, UINT64_MAX, UINT64_MAX}, 1000},
    };
    unsigned i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_uint_eq(dq_watchdog_period(&cases[i].bounds, 5, 1000),
                          cases[i].period);
    }
}
END_TEST


/* ---- A model ---- */

typedef struct {
    dq_watchdog_seen_t seen[LOOKS];
    uint64_t        elapsed[LOOKS];
    unsigned        probes; /* look of the last ASK                           */
    int             is_asked;
} life_t;

typedef int (*same_t)(const dq_watchdog_seen_t *a, const dq_watchdog_seen_t *b);

static int same_due(const dq_watchdog_seen_t *a, const dq_watchdog_seen_t *b)
{
    return a->is_up && b->is_up && a->is_due && (a->retired == b->retired);
}


static int same_wanted(const dq_watchdog_seen_t *a, const dq_watchdog_seen_t *b)
{
    return ((a->is_up && b->is_up) || (a->is_put_off && b->is_put_off)) &&
           b->is_wanted && (a->posted - a->probes == b->posted - b->probes);
}


static int same_quiet(const dq_watchdog_seen_t *a, const dq_watchdog_seen_t *b)
{
    return a->is_up && b->is_up && (a->posted == b->posted) &&
           (a->retired == b->retired) && (a->heard == b->heard);
}


/* How long it has been so up to look @a at, counted from look @a from on. */
static uint64_t model_time(const life_t *life, unsigned at, unsigned from,
                           same_t same)
{
    uint64_t time = 0;

    for (; (at > from) && same(&life->seen[at - 1], &life->seen[at]); at--) {
        time += life->elapsed[at];
    }
    return time;
}


/* Did it have a reason to say something at an earlier look of the same
 * standstill? */
static int model_has_said(const life_t *life, unsigned at)
{
    uint64_t still, waiting;

    for (; at > 0; at--) {
        still   = model_time(life, at, 0, same_due);
        waiting = model_time(life, at, 0, same_wanted);
        if ((still == 0) && (waiting == 0)) {
            return 0;
        }
        if ((still >= usual.warn) || (waiting >= usual.warn)) {
            return 1;
        }
    }
    return 0;
}


static unsigned model(life_t *life, unsigned at)
{
    const dq_watchdog_seen_t *seen = &life->seen[at];
    uint64_t still   = model_time(life, at, 0, same_due);
    uint64_t waiting = model_time(life, at, 0, same_wanted);
    uint64_t quiet   = model_time(life, at, life->is_asked ? life->probes : 0,
                                  same_quiet);
    unsigned what    = 0;

    if ((at > 0) && life->seen[at - 1].is_up && seen->is_up &&
        seen->is_silent && (seen->posted == life->seen[at - 1].posted)) {
        what |= DQ_WATCHDOG_MARK;
    }
    if (((still >= usual.warn) || (waiting >= usual.warn)) &&
        !model_has_said(life, at - 1)) {
        what |= DQ_WATCHDOG_WARN;
    }
    if (still >= usual.give_up) {
        what |= DQ_WATCHDOG_GIVE_UP;
    }
    if ((quiet >= usual.probe) && (seen->posted == seen->retired)) {
        what          |= DQ_WATCHDOG_PROBE;
        life->probes   = at;
        life->is_asked = 1;
    }
    return what;
}


static dq_watchdog_seen_t some_seen(const dq_watchdog_seen_t *last, t_rng_t *rng)
{
    dq_watchdog_seen_t seen = *last;
    uint32_t in_use;

    seen.posted  += t_rng_once_in(rng, 4) ? t_rng_below(rng, 3) : 0;
    if (t_rng_once_in(rng, 8)) {
        seen.posted++;
        seen.probes++;
    }
    in_use        = seen.posted - seen.retired;
    seen.retired += t_rng_once_in(rng, 6) ? t_rng_below(rng, in_use + 1) : 0;
    in_use        = seen.posted - seen.retired;
    seen.heard   += t_rng_once_in(rng, 6);
    seen.is_up    = t_rng_once_in(rng, 30) ? !seen.is_up : seen.is_up;
    seen.is_put_off = !seen.is_up &&
                      (t_rng_once_in(rng, 6) ? !seen.is_put_off : seen.is_put_off);
    if (t_rng_once_in(rng, 6) || (in_use == 0)) {
        seen.is_due    = (in_use > 0) && t_rng_once_in(rng, 2);
        seen.is_silent = (in_use > 0) && !t_rng_once_in(rng, 3);
    }
    if (t_rng_once_in(rng, 8)) {
        seen.is_wanted = !seen.is_wanted;
    }
    return seen;
}


START_TEST(test_model)
{
    unsigned i, at, got, seen_what = 0;
    dq_watchdog_seen_t seen;
    dq_watchdog_t watchdog;
    life_t life;
    t_rng_t rng;

    t_rng_init(&rng, 0x3a7c);
    for (i = 0; i < LIVES; i++) {
        memset(&life, 0, sizeof(life));
        dq_watchdog_init(&watchdog);
        seen = up(-3u, -3u, 0); /* across the wrap */
        for (at = 0; at < LOOKS; at++) {
            seen             = some_seen(&seen, &rng);
            life.seen[at]    = seen;
            life.elapsed[at] = t_rng_range(&rng, 1, 40);
            got = look(&watchdog, seen, life.elapsed[at]);
            ck_assert_uint_eq(got, model(&life, at));
            seen_what |= got;
        }
    }
    ck_assert_uint_eq(seen_what, DQ_WATCHDOG_MARK | DQ_WATCHDOG_WARN |
                      DQ_WATCHDOG_GIVE_UP | DQ_WATCHDOG_PROBE);
}
END_TEST


static Suite *suite_watch(void)
{
    return t_suite("watchdog", "verdicts", test_stuck, "verdicts", test_silent,
                   "verdicts", test_waiting, "verdicts", test_put_off,
                   "verdicts", test_quiet,
                   "verdicts", test_never, "verdicts", test_period, "model",
                   test_model, NULL);
}

T_MAIN(suite_watch)
