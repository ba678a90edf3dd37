/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What UCP is told, by what a READ of own memory took: numbers by hand, then
 * what must hold for any measurement.
 */
#include "t_unit.h"
#include "dq/dq_cost.h"

#include <math.h>

/* Nanoseconds. */
static const struct {
    double own_read, latency;
} cases[] = {
    /*  0 */ {0, 140},                /* no clock, or no READ at all */
    /*  1 */ {-1, 140},
    /*  2 */ {-INFINITY, 140},
    /*  3 */ {NAN, 140},
    /*  4 */ {0.001, 105},            /* as fast as a message, not faster */
    /*  5 */ {104.97, 105},
    /*  6 */ {105, 105},
    /*  7 */ {105.03, 105.01},
    /*  8 */ {210, 140},              /* a READ like two messages */
    /*  9 */ {450, 220},              /* where a READ takes 600 ns */
    /* 10 */ {1050, 420},             /* where it takes 1.4 us */
    /* 11 */ {1124.97, 444.99},
    /* 12 */ {1125, 445},             /* the most that is believed */
    /* 13 */ {1125.03, 445},
    /* 14 */ {1e9, 445},
    /* 15 */ {INFINITY, 445},
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };


START_TEST(test_case)
{
    ck_assert_double_eq_tol(dq_cost_latency(cases[_i].own_read * 1e-9) * 1e9,
                            cases[_i].latency, 1e-6);
}
END_TEST


/* A dearer READ never makes UCP believe in a shorter way, and no READ
 * moves the transport past one of the others. */
START_TEST(test_any)
{
    double own_read = 0, last = 0, latency;
    t_rng_t rng;

    t_rng_init(&rng, 1);
    for (t_at = 0; t_at < 1000000; t_at++) {
        own_read += 1e-12 + (double)t_rng_below(&rng, 20) * 1e-12;
        latency   = dq_cost_latency(own_read);
        T_NEED(latency >= last);
        T_NEED(latency > 80e-9);  /* UCX's shared memory */
        T_NEED(latency < 600e-9); /* its verbs transports, on this device */
        last = latency;
    }
    T_NEED(own_read > DQ_COST_READ_MAX); /* so the end has been seen, too */
}
END_TEST


/* What RDMA takes is the READ that the latency was made of, and never less than
 * nothing. */
START_TEST(test_rdma)
{
    ck_assert_double_eq_tol(dq_cost_rdma(dq_cost_latency(1050e-9)), 1.4e-6,
                            1e-15);
    ck_assert_double_eq_tol(dq_cost_rdma(dq_cost_latency(1)), DQ_COST_READ_MAX,
                            1e-15);
    ck_assert_double_eq_tol(dq_cost_rdma(dq_cost_latency(1e-12)),
                            DQ_COST_READ_MIN, 1e-15);
    ck_assert_double_eq_tol(dq_cost_rdma(70e-9), 0, 1e-15);
    ck_assert(dq_cost_rdma(0) == 0);
    ck_assert(dq_cost_rdma(NAN) == 0);
}
END_TEST


static Suite *suite_cost(void)
{
    Suite *suite = t_suite("cost", "any", test_any, "any", test_rdma, NULL);
    TCase *tcase = tcase_create("cases");

    tcase_add_loop_test(tcase, test_case, 0, CASES);
    suite_add_tcase(suite, tcase);
    return suite;
}

T_MAIN(suite_cost)
