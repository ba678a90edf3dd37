/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Offering again: when it is due, how the waits grow, when it is given up; and
 * which refusals pass at all.
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


static Suite *suite_again(void)
{
    Suite *suite = suite_create("retry");
    TCase *tcase = tcase_create("retry");

    tcase_add_test(tcase, test_errors);
    tcase_add_test(tcase, test_due);
    tcase_add_test(tcase, test_waits);
    tcase_add_test(tcase, test_bound);
    tcase_add_test(tcase, test_never);
    suite_add_tcase(suite, tcase);
    return suite;
}

T_MAIN(suite_again)
