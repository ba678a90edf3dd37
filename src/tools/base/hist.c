/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/hist.h"

#include "tools/base/report.h"

#include <math.h>
#include <string.h>

void daqiri_hist_init(daqiri_hist_t *hist)
{
    memset(hist, 0, sizeof(*hist));
    hist->min_ns = UINT64_MAX;
}

/* Values below 2^BITS have a bucket each; then each doubling has 2^BITS. */
static unsigned hist_index(uint64_t ns)
{
    unsigned top, shift;

    if (ns < (1ull << DAQIRI_HIST_BITS)) {
        return (unsigned)ns;
    }
    top   = 63 - (unsigned)__builtin_clzll(ns);
    shift = top - DAQIRI_HIST_BITS;
    if (shift >= DAQIRI_HIST_EXP) {
        return DAQIRI_HIST_BUCKETS - 1;
    }
    return ((shift + 1) << DAQIRI_HIST_BITS) +
           (unsigned)((ns >> shift) & ((1u << DAQIRI_HIST_BITS) - 1));
}

/* The middle of a bucket. */
static uint64_t hist_value(unsigned index)
{
    unsigned shift;
    uint64_t low;

    if (index < (1u << DAQIRI_HIST_BITS)) {
        return index;
    }
    shift = (index >> DAQIRI_HIST_BITS) - 1;
    low   = (uint64_t)((1u << DAQIRI_HIST_BITS) |
                       (index & ((1u << DAQIRI_HIST_BITS) - 1))) << shift;
    return low + ((1ull << shift) / 2);
}

void daqiri_hist_add(daqiri_hist_t *hist, uint64_t ns)
{
    ++hist->count;
    ++hist->buckets[hist_index(ns)];
    hist->min_ns = (ns < hist->min_ns) ? ns : hist->min_ns;
    hist->max_ns = (ns > hist->max_ns) ? ns : hist->max_ns;
}

uint64_t daqiri_hist_share(const daqiri_hist_t *hist, double share)
{
    uint64_t wanted = (uint64_t)ceil(share * (double)hist->count);
    uint64_t seen   = 0;
    uint64_t value;
    unsigned i;

    if (hist->count == 0) {
        return 0;
    }
    if (wanted <= 1) {
        return hist->min_ns;
    }
    if (wanted >= hist->count) {
        return hist->max_ns;
    }
    for (i = 0; i < DAQIRI_HIST_BUCKETS; ++i) {
        seen += hist->buckets[i];
        if (seen >= wanted) {
            break;
        }
    }
    value = hist_value(i);
    value = (value < hist->min_ns) ? hist->min_ns : value;
    return (value > hist->max_ns) ? hist->max_ns : value;
}

double daqiri_hist_least(const daqiri_hist_t *hist, uint64_t ns)
{
    uint64_t seen = 0;
    unsigned i;

    for (i = hist_index(ns); i < DAQIRI_HIST_BUCKETS; ++i) {
        seen += hist->buckets[i];
    }
    return (hist->count > 0) ? (double)seen / (double)hist->count : 0;
}

json_t *daqiri_hist_report_in(const daqiri_hist_t *hist, double unit_ns)
{
    static const struct {
        const char *name;
        double     share;
    } shares[] = {
        {"min_us", 0}, {"p50_us", 0.5}, {"p90_us", 0.9}, {"p95_us", 0.95},
        {"p99_us", 0.99}, {"p999_us", 0.999}, {"max_us", 1}
    };
    json_t *report = json_object();
    size_t i;

    daqiri_report_int(report, "count", (long long)hist->count);
    for (i = 0; i < sizeof(shares) / sizeof(shares[0]); ++i) {
        daqiri_report_real(report, shares[i].name, unit_ns / 1e3 *
                           (double)daqiri_hist_share(hist, shares[i].share));
    }
    return report;
}
