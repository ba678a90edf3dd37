/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Percentiles of times, without keeping the times: counts of ranges that are
 * 1/128 of their value wide, so that a percentile is at most 0.8 % off, from
 * 1 ns to 18 minutes. The least and the most are exact.
 *
 * daqiri_hist_add() allocates nothing and reads no clock. One thread at a time.
 */

#ifndef DAQIRI_HIST_H
#define DAQIRI_HIST_H

#include <jansson.h>
#include <stdint.h>

enum {
    DAQIRI_HIST_BITS    = 7,  /* of a value that count */
    DAQIRI_HIST_EXP     = 34, /* doublings beyond those */
    DAQIRI_HIST_BUCKETS = (DAQIRI_HIST_EXP + 1) << DAQIRI_HIST_BITS
};

typedef struct daqiri_hist {
    uint64_t count;
    uint64_t min_ns;
    uint64_t max_ns;
    uint64_t buckets[DAQIRI_HIST_BUCKETS];
} daqiri_hist_t;

void daqiri_hist_init(daqiri_hist_t *hist);
void daqiri_hist_add(daqiri_hist_t *hist, uint64_t ns);

/* The time that this share (0 to 1) of all times does not exceed: 0.5 is the
 * median. 0 when there are none. In ns. */
uint64_t daqiri_hist_share(const daqiri_hist_t *hist, double share);

/* Which share (0 to 1) of all times is no less than this; 0 of none. */
double daqiri_hist_least(const daqiri_hist_t *hist, uint64_t ns);

/* {"count", "min_us", "p50_us", "p90_us", "p95_us", "p99_us", "p999_us", "max_us"} of
 * times that were counted in something that is so many ns long. */
json_t *daqiri_hist_report_in(const daqiri_hist_t *hist, double unit_ns);

#endif
