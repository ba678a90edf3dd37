/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Offering again: when it is due, how the waits grow, when it is given up; which
 * refusals pass at all; and waits with a part left to chance.
 */
#include "t_unit.h"
#include "dq/dq_retry.h"

#include <errno.h>

enum { LEAST = 10, MOST = 100, BOUND = 5000, START = 1000, RETIRED = 7 };

static const dq_retry_limits_t limits = {LEAST, MOST, BOUND};


START_TEST(test_errors)
{
    static const int passes[] = {ENOMEM, ENOBUFS, EAGAIN, EBUSY, EINTR};
    static const int stays[]  = {0, EINVAL, EFAULT, EIO, ENODEV, EOPNOTSUPP,
                                 EPERM, ENOSYS, -1};
    unsigned i;

    for (i = 0; i < sizeof(passes) / sizeof(passes[0]); i++) {
        T_NEED(dq_retry_is_transient(passes[i]));
    }
    for (i = 0; i < sizeof(stays) / sizeof(stays[0]); i++) {
        T_NEED(!dq_retry_is_transient(stays[i]));
    }
}
END_TEST


/* After the least wait, not before; at once if something has completed. */
START_TEST(test_due)
{
    dq_retry_t retry;

    dq_retry_begin(&retry, &limits, START, RETIRED);
    T_NEED(!dq_retry_is_due(&retry, START, RETIRED));
    T_NEED(!dq_retry_is_due(&retry, START + LEAST - 1, RETIRED));
    T_NEED(dq_retry_is_due(&retry, START + LEAST, RETIRED));
    T_NEED(dq_retry_is_due(&retry, START, RETIRED + 1));
    T_NEED(dq_retry_is_due(&retry, START, RETIRED - 1)); /* wrapped */

    T_NEED(!dq_retry_refused(&retry, &limits, START, RETIRED + 1, 0));
    T_NEED(!dq_retry_is_due(&retry, START, RETIRED + 1));
}
END_TEST


/* Twice as long each time, up to the most; something taken begins it anew. */
START_TEST(test_waits)
{
    static const uint64_t waits[] = {20, 40, 80, 100, 100, 100};
    uint64_t now = START;
    dq_retry_t retry;
    unsigned i;

    dq_retry_begin(&retry, &limits, now, RETIRED);
    for (i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        T_NEED(!dq_retry_refused(&retry, &limits, now, RETIRED, 0));
        T_NEED(!dq_retry_is_due(&retry, now + waits[i] - 1, RETIRED));
        now += waits[i];
        T_NEED(dq_retry_is_due(&retry, now, RETIRED));
    }
    T_NEED(!dq_retry_refused(&retry, &limits, now, RETIRED, 1));
    T_NEED(dq_retry_is_due(&retry, now + LEAST, RETIRED));
    T_NEED_EQ(retry.since, now);
    T_NEED_EQ(retry.tries, 0);
}
END_TEST


/* At the bound, not before it; and not by the bound alone, nor by tries. */
START_TEST(test_bound)
{
    dq_retry_t retry;
    unsigned i;

    dq_retry_begin(&retry, &limits, START, RETIRED);
    for (i = 0; i < 100; i++) {
        T_NEED(!dq_retry_refused(&retry, &limits, START + BOUND - 1, RETIRED,
                                 0));
    }
    T_NEED(!dq_retry_refused(&retry, &limits, START + BOUND, RETIRED, 1));
    for (i = 0; i < 10; i++) {
        T_NEED(!dq_retry_refused(&retry, &limits, START + BOUND, RETIRED, 0));
    }
    T_NEED(dq_retry_refused(&retry, &limits, START + 2 * BOUND, RETIRED, 0));

    /* whoever was stopped for long has tried once */
    dq_retry_begin(&retry, &limits, START, RETIRED);
    for (i = 1; i < DQ_RETRY_TRIES_MIN; i++) {
        T_NEED(!dq_retry_refused(&retry, &limits, START + 9 * BOUND, RETIRED,
                                 0));
    }
    T_NEED(dq_retry_refused(&retry, &limits, START + 9 * BOUND, RETIRED, 0));
}
END_TEST


START_TEST(test_never)
{
    const dq_retry_limits_t never = {LEAST, MOST, 0};
    dq_retry_t retry;
    unsigned i;

    dq_retry_begin(&retry, &never, START, RETIRED);
    for (i = 0; i < 100; i++) {
        T_NEED(!dq_retry_refused(&retry, &never, UINT64_MAX / 2, RETIRED, 0));
    }
}
END_TEST


/* Twice as long, and the most from there on, exactly or not. */
START_TEST(test_longer)
{
    T_NEED_EQ(dq_retry_longer(1, 100), 2);
    T_NEED_EQ(dq_retry_longer(49, 100), 98);
    T_NEED_EQ(dq_retry_longer(50, 100), 100);
    T_NEED_EQ(dq_retry_longer(51, 100), 100);
    T_NEED_EQ(dq_retry_longer(100, 100), 100);
    T_NEED_EQ(dq_retry_longer(500, 100), 100);
    T_NEED_EQ(dq_retry_longer(UINT64_MAX - 1, UINT64_MAX) == UINT64_MAX, 1);
}
END_TEST


/* From the wait itself to half as much again, and all between with equal chance. */
START_TEST(test_spread)
{
    const uint64_t large = UINT64_C(1) << 62;
    unsigned count[10]   = {0};
    t_rng_t rng;
    uint64_t wait;
    unsigned i;

    T_NEED_EQ(dq_retry_spread(0, UINT32_MAX), 0);
    T_NEED_EQ(dq_retry_spread(1, UINT32_MAX), 1);
    T_NEED_EQ(dq_retry_spread(20, 0), 20);
    T_NEED_EQ(dq_retry_spread(20, UINT32_C(1) << 31), 25);
    T_NEED_EQ(dq_retry_spread(20, UINT32_MAX), 29);
    T_NEED(dq_retry_spread(large, 0) == large);
    T_NEED(dq_retry_spread(large, UINT32_C(1) << 31) == large + large / 4);
    T_NEED(dq_retry_spread(large, UINT32_MAX) < large + large / 2);
    T_NEED(dq_retry_spread(large, UINT32_MAX) > large + large / 2 - (UINT64_C(1) << 31));

    t_rng_init(&rng, 0x5b4ead);
    for (t_at = 0; t_at < 100000; t_at++) {
        wait = dq_retry_spread(1000, t_rng_next(&rng) >> 32);
        T_NEED((wait >= 1000) && (wait < 1500));
        count[(wait - 1000) / 50]++;
    }
    for (i = 0; i < 10; i++) { /* some ten standard deviations */
        T_NEED((count[i] > 9000) && (count[i] < 11000));
    }
}
END_TEST


static Suite *suite_again(void)
{
    Suite *suite = suite_create("retry");
    TCase *tcase = tcase_create("retry");

    tcase_add_test(tcase, test_errors);
    tcase_add_test(tcase, test_due);
    tcase_add_test(tcase, test_waits);
    tcase_add_test(tcase, test_bound);
    tcase_add_test(tcase, test_never);
    tcase_add_test(tcase, test_longer);
    tcase_add_test(tcase, test_spread);
    suite_add_tcase(suite, tcase);
    return suite;
}

T_MAIN(suite_again)
