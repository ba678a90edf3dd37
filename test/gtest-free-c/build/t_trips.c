/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sanitizer that was linked wrongly, or switched off by an option or by a
 * suppression that matches too much, finds nothing and says nothing. Each
 * test here makes one mistake of the kind it must find, and passes if the
 * sanitizer ends the test with the status that t-env asks it for.
 */
#include "t.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#define T_REPORTED 99

#if defined(__SANITIZE_ADDRESS__)

/* The compiler must neither see the mistakes nor remove them. */
static volatile size_t t_eight = 8;
static volatile int t_most     = INT_MAX;
static char *volatile t_block;

START_TEST(test_overflow)
{
    t_block          = malloc(t_eight);
    t_block[t_eight] = 1;
}
END_TEST

START_TEST(test_use_after_free)
{
    t_block = malloc(t_eight);
    free(t_block);
    t_block[0] = 1;
}
END_TEST

START_TEST(test_leak)
{
    t_block = malloc(t_eight);
    t_block = NULL;
}
END_TEST

START_TEST(test_signed_overflow)
{
    t_most = t_most + 1;
}
END_TEST

static const TTest **t_mistakes(void)
{
    static const TTest *tests[5];

    tests[0] = test_overflow;
    tests[1] = test_use_after_free;
    tests[2] = test_leak;
    tests[3] = test_signed_overflow;
    return tests;
}

#else

static int t_shared;

static void *t_write(void *arg)
{
    (void)arg;
    t_shared++;
    return NULL;
}

START_TEST(test_race)
{
    pthread_t threads[2];
    int i;

    for (i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, t_write, NULL), 0);
    }
    for (i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    }
}
END_TEST

static const TTest **t_mistakes(void)
{
    static const TTest *tests[2];

    tests[0] = test_race;
    return tests;
}

#endif

static Suite *suite_trips(void)
{
    Suite *suite        = suite_create("trips");
    TCase *tcase        = tcase_create("mistakes");
    const TTest **tests = t_mistakes();

    for (; *tests != NULL; tests++) {
        tcase_add_exit_test(tcase, *tests, T_REPORTED);
    }
    suite_add_tcase(suite, tcase);
    return suite;
}

T_MAIN(suite_trips)
