/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Losses of queue pairs: what makes a row of them, how the waits grow, and when
 * there is no other one any more.
 */
#include "t_unit.h"
#include "dq/dq_recovery.h"

enum { LEAST = 2, MOST = 50, BOUND = 3000, TRIAL = 4000, REST = 100,
       START = 1000, MARK = 7 };

static const dq_recovery_limits_t limits = {LEAST, MOST, BOUND, TRIAL, REST};


static void lose(dq_recovery_t *recovery, uint64_t now, uint32_t mark, int is_wanted)
{
    const dq_recovery_seen_t seen = {now, mark, is_wanted, 0, 0};

    dq_recovery_add_failure(recovery, &limits, &seen);
}


/* Lost once at START. */
static dq_recovery_t lost_once(void)
{
    dq_recovery_t recovery = {0};

    lose(&recovery, START, MARK, 1);
    T_NEED(dq_recovery_may_try(&recovery, &limits));
    T_NEED_EQ(recovery.first, START);
    T_NEED_EQ(recovery.not_until, START); /* at once */
    return recovery;
}


/* None before the first of a row, then twice as long each time. */
START_TEST(test_waits)
{
    static const uint64_t waits[] = {2, 4, 8, 16, 32, 50, 50, 50};
    dq_recovery_t recovery        = lost_once();
    unsigned i;

    for (i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        lose(&recovery, START + i, MARK, 1);
        T_NEED_EQ(recovery.not_until, START + i + waits[i]);
        T_NEED_EQ(recovery.first, START);
        T_NEED_EQ(recovery.since, START + i);
    }
    lose(&recovery, START + i, MARK + 1, 1);
    T_NEED_EQ(recovery.not_until, START + i);
    lose(&recovery, START + i, MARK + 1, 1);
    T_NEED_EQ(recovery.not_until, START + i + LEAST);
}
END_TEST


/* The peer has waited; but each counts. */
START_TEST(test_follows)
{
    const dq_recovery_seen_t seen = {START, MARK, 1, 1, 0};
    dq_recovery_t recovery        = lost_once();

    dq_recovery_add_failure(&recovery, &limits, &seen);
    T_NEED_EQ(recovery.not_until, START);
    T_NEED_EQ(recovery.in_a_row, 1);
    lose(&recovery, START, MARK, 1);
    T_NEED_EQ(recovery.not_until, START + 2 * LEAST);
}
END_TEST


/* Nothing has ever got through: then the first loss is the first. */
START_TEST(test_first)
{
    dq_recovery_t recovery = {0};

    lose(&recovery, 100 * BOUND, 0, 1);
    T_NEED_EQ(recovery.first, 100 * BOUND);
    T_NEED_EQ(recovery.in_a_row, 0);
    T_NEED(dq_recovery_may_try(&recovery, &limits));
}
END_TEST


/* None came up: so many, and no more; after progress, as many again. */
START_TEST(test_in_vain)
{
    dq_recovery_t recovery = lost_once();
    unsigned i;

    for (i = 1; i < DQ_RECOVERY_FUTILE_MAX; i++) {
        lose(&recovery, START + i, MARK, i % 2);
        T_NEED(dq_recovery_may_try(&recovery, &limits));
    }
    for (i = 0; i < DQ_RECOVERY_FUTILE_MAX; i++) {
        lose(&recovery, START + BOUND, MARK + 1, 0);
        T_NEED(dq_recovery_may_try(&recovery, &limits));
    }
    lose(&recovery, START + BOUND, MARK + 1, 0);
    T_NEED(!dq_recovery_may_try(&recovery, &limits));
}
END_TEST


/* None could be made: that is not in vain, and takes the time of a row at most. */
START_TEST(test_unmade)
{
    dq_recovery_seen_t seen = {START, MARK, 1, 0, 1};
    dq_recovery_t recovery  = lost_once();
    unsigned i;

    lose(&recovery, START, MARK, 1);
    for (i = 1; i < 3 * DQ_RECOVERY_FUTILE_MAX; i++) {
        dq_recovery_add_failure(&recovery, &limits, &seen);
        T_NEED(dq_recovery_may_try(&recovery, &limits));
        T_NEED_EQ(recovery.in_a_row, i + 1);
    }
    for (i = 2; i < DQ_RECOVERY_FUTILE_MAX; i++) { /* those that are, go on counting */
        lose(&recovery, START, MARK, 1);
        T_NEED(dq_recovery_may_try(&recovery, &limits));
    }
    seen.now = START + BOUND;
    dq_recovery_add_failure(&recovery, &limits, &seen);
    T_NEED(dq_recovery_may_try(&recovery, &limits));
    seen.now++;
    dq_recovery_add_failure(&recovery, &limits, &seen);
    T_NEED(!dq_recovery_may_try(&recovery, &limits));
}
END_TEST


/* They came up, and failed at what was wanted of them. */
START_TEST(test_wanted)
{
    dq_recovery_t recovery = lost_once();
    unsigned i;

    for (i = 1; i < DQ_RECOVERY_FUTILE_MAX; i++) {
        dq_recovery_add_success(&recovery, START + i);
        lose(&recovery, START + i, MARK, 1);
        T_NEED(dq_recovery_may_try(&recovery, &limits));
    }
    dq_recovery_add_success(&recovery, START + i);
    lose(&recovery, START + i, MARK, 1);
    T_NEED(!dq_recovery_may_try(&recovery, &limits));
}
END_TEST


/* Something gets through between any two; the mark may wrap. */
START_TEST(test_progress)
{
    dq_recovery_t recovery = lost_once();
    unsigned i;

    for (i = 1; i < 10 * DQ_RECOVERY_FUTILE_MAX; i++) {
        lose(&recovery, START + i * 2 * BOUND, MARK - i, 1);
        T_NEED(dq_recovery_may_try(&recovery, &limits));
        T_NEED_EQ(recovery.in_a_row, 0);
    }
    lose(&recovery, recovery.since, MARK, 1);
    T_NEED_EQ(recovery.in_a_row, 0);
    lose(&recovery, recovery.since, MARK, 1);
    T_NEED_EQ(recovery.in_a_row, 1);
}
END_TEST


/* Nothing was wanted of them: any number, in the time that a row has. */
START_TEST(test_idle)
{
    dq_recovery_t recovery = lost_once();
    uint64_t now;

    for (now = START; now <= START + BOUND; now++) {
        dq_recovery_add_success(&recovery, now);
        lose(&recovery, now, MARK, 0);
        T_NEED(dq_recovery_may_try(&recovery, &limits));
    }
    dq_recovery_add_success(&recovery, now);
    lose(&recovery, now, MARK, 0);
    T_NEED(!dq_recovery_may_try(&recovery, &limits));
}
END_TEST


/* One that came up ends those that were in vain. */
START_TEST(test_idle_between)
{
    dq_recovery_t recovery = lost_once();
    unsigned i;

    for (i = 1; i < 10 * DQ_RECOVERY_FUTILE_MAX; i++) {
        if (i % (DQ_RECOVERY_FUTILE_MAX - 1) == 0) {
            dq_recovery_add_success(&recovery, START + i);
        }
        lose(&recovery, START + i, MARK, 0);
        T_NEED(dq_recovery_may_try(&recovery, &limits));
    }
}
END_TEST


/* It has rested for longer than it may take to die at once: for ever so. */
START_TEST(test_rested)
{
    dq_recovery_t recovery = lost_once();
    uint64_t now           = START;
    unsigned i;

    for (i = 0; i < 100; i++) {
        dq_recovery_add_success(&recovery, now);
        now += REST + 1;
        lose(&recovery, now, MARK, 0);
        T_NEED_EQ(recovery.first, now);
        T_NEED_EQ(recovery.in_a_row, 0);
        T_NEED(dq_recovery_may_try(&recovery, &limits));
    }
    dq_recovery_add_success(&recovery, now);
    lose(&recovery, now + REST, MARK, 0);
    T_NEED_EQ(recovery.first, now);
}
END_TEST


/* Not one of which something was wanted: that takes longer. */
START_TEST(test_trial)
{
    dq_recovery_t recovery = lost_once();

    dq_recovery_add_success(&recovery, START);
    lose(&recovery, START + TRIAL, MARK, 1);
    T_NEED_EQ(recovery.first, START);
    T_NEED(!dq_recovery_may_try(&recovery, &limits));

    recovery = lost_once();
    dq_recovery_add_success(&recovery, START);
    lose(&recovery, START + TRIAL + 1, MARK, 1);
    T_NEED_EQ(recovery.first, START + TRIAL + 1);
    T_NEED(dq_recovery_may_try(&recovery, &limits));
}
END_TEST


/* What never came up has not lived at all, however long ago that is. */
START_TEST(test_never_up)
{
    dq_recovery_t recovery = lost_once();

    dq_recovery_add_success(&recovery, START);
    lose(&recovery, START + 1, MARK, 0);
    lose(&recovery, START + BOUND, MARK, 0);
    T_NEED_EQ(recovery.first, START);
    T_NEED(dq_recovery_may_try(&recovery, &limits));
    lose(&recovery, START + BOUND + 1, MARK, 0);
    T_NEED_EQ(recovery.first, START);
    T_NEED(!dq_recovery_may_try(&recovery, &limits));
}
END_TEST


static Suite *suite_loss(void)
{
    Suite *suite = suite_create("recovery");
    TCase *tcase = tcase_create("recovery");

    tcase_add_test(tcase, test_first);
    tcase_add_test(tcase, test_waits);
    tcase_add_test(tcase, test_follows);
    tcase_add_test(tcase, test_in_vain);
    tcase_add_test(tcase, test_unmade);
    tcase_add_test(tcase, test_wanted);
    tcase_add_test(tcase, test_progress);
    tcase_add_test(tcase, test_idle);
    tcase_add_test(tcase, test_idle_between);
    tcase_add_test(tcase, test_rested);
    tcase_add_test(tcase, test_trial);
    tcase_add_test(tcase, test_never_up);
    suite_add_tcase(suite, tcase);
    return suite;
}

T_MAIN(suite_loss)
