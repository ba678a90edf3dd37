/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_time.h"

#define DQ_ACK_TIMEOUT_UNIT 4.096e-6

/* In units of 10 us, by code. */
static const uint32_t dq_rnr_timer[DQ_RNR_TIMER_CODES] = {
    65536, 1,   2,   3,   4,   6,    8,    12,   16,   24,   32,
    48,    64,  96,  128, 192, 256,  384,  512,  768,  1024, 1536,
    2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};


double dq_ack_timeout_seconds(uint8_t code)
{
    return DQ_ACK_TIMEOUT_UNIT * (double)(UINT64_C(1) << (code & 31));
}


uint8_t dq_ack_timeout_code(double seconds)
{
    uint8_t code = DQ_ACK_TIMEOUT_MIN;

    while ((code < DQ_ACK_TIMEOUT_MAX) &&
           (dq_ack_timeout_seconds(code) < seconds)) {
        code++;
    }
    return code;
}


double dq_rnr_timer_seconds(uint8_t code)
{
    return dq_rnr_timer[code & (DQ_RNR_TIMER_CODES - 1)] * 1e-5;
}


uint8_t dq_rnr_timer_code(double seconds)
{
    /* room for the rounding of a decimal fraction */
    double least = seconds * (1 - 1e-9);
    uint8_t code;

    for (code = 1; code < DQ_RNR_TIMER_CODES; code++) {
        if (dq_rnr_timer_seconds(code) >= least) {
            return code;
        }
    }
    return 0; /* the longest: 655.36 ms */
}
