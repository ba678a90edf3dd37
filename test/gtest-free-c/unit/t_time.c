/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times and their codes, against the tables of the InfiniBand specification
 * as they are printed there.
 */
#include "t_unit.h"
#include "dq/dq_time.h"

#include <math.h>

/* Milliseconds by code: IBA 9.7.5.2.8, table 45. */
static const double rnr_ms[DQ_RNR_TIMER_CODES] = {
    655.36, 0.01,  0.02,  0.03,  0.04,  0.06,   0.08,   0.12,
    0.16,   0.24,  0.32,  0.48,  0.64,  0.96,   1.28,   1.92,
    2.56,   3.84,  5.12,  7.68,  10.24, 15.36,  20.48,  30.72,
    40.96,  61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
};


START_TEST(test_rnr_seconds)
{
    int code;

    for (code = 0; code < DQ_RNR_TIMER_CODES; code++) {
        ck_assert_double_eq_tol(dq_rnr_timer_seconds(code) * 1e3,
                                rnr_ms[code], 1e-9);
    }
}
END_TEST


/* The code of a code's own time is that code; a bit more is the next; a bit
 * less is still this one. */
START_TEST(test_rnr_code)
{
    uint8_t code;

    for (code = 1; code < DQ_RNR_TIMER_CODES; code++) {
        ck_assert_uint_eq(dq_rnr_timer_code(rnr_ms[code] * 1e-3), code);
        ck_assert_uint_eq(dq_rnr_timer_code(rnr_ms[code] * 0.999e-3), code);
        ck_assert_uint_eq(dq_rnr_timer_code(rnr_ms[code] * 1.001e-3),
                          (code + 1) % DQ_RNR_TIMER_CODES);
    }
    ck_assert_uint_eq(dq_rnr_timer_code(0), 1); /* never the trap */
    ck_assert_uint_eq(dq_rnr_timer_code(-1), 1);
    ck_assert_uint_eq(dq_rnr_timer_code(0.65536), 0);
    ck_assert_uint_eq(dq_rnr_timer_code(100), 0);
    ck_assert_uint_eq(dq_rnr_timer_code(0.64e-3), 12); /* the default */
}
END_TEST


/* 4.096 us times two to the power of the code: IBA 9.7.6.1.3. */
START_TEST(test_ack)
{
    uint8_t code;
    double want;

    for (code = DQ_ACK_TIMEOUT_MIN; code <= DQ_ACK_TIMEOUT_MAX; code++) {
        want = ldexp(4.096e-6, code);
        ck_assert_double_eq_tol(dq_ack_timeout_seconds(code), want,
                                want * 1e-12);
        ck_assert_uint_eq(dq_ack_timeout_code(want * 0.999), code);
        ck_assert_uint_eq(dq_ack_timeout_code(want), code);
        ck_assert_uint_eq(dq_ack_timeout_code(want * 1.001),
                          (code < DQ_ACK_TIMEOUT_MAX) ? code + 1 : code);
    }
    ck_assert_uint_eq(dq_ack_timeout_code(0), 1); /* 0 would be for ever */
    ck_assert_uint_eq(dq_ack_timeout_code(-1), 1);
    ck_assert_uint_eq(dq_ack_timeout_code(1e9), DQ_ACK_TIMEOUT_MAX);
    ck_assert_uint_eq(dq_ack_timeout_code(0.5), 17); /* the default: 536 ms */
}
END_TEST


static Suite *suite_time(void)
{
    return t_suite("time", "codes", test_rnr_seconds, "codes", test_rnr_code,
                   "codes", test_ack, NULL);
}

T_MAIN(suite_time)
