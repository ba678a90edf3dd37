/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A clock for times of less than a microsecond, where a call of the system's
 * would be a good part of what is measured: the processor's counter, if the
 * kernel itself keeps time by it (so it is steady, and the same on all
 * processors), else daqiri_now_ns(). What a tick is in ns is known when some
 * have passed: by the system's clock at both ends.
 */

#ifndef DAQIRI_TICKS_H
#define DAQIRI_TICKS_H

#include "tools/base/clock.h"

#include <stdint.h>
#ifdef __x86_64__
#  include <x86intrin.h>
#endif

typedef struct daqiri_ticks {
    int      is_tsc;
    uint64_t first;    /* tick, and when that was */
    uint64_t first_ns;
} daqiri_ticks_t;

void daqiri_ticks_start(daqiri_ticks_t *ticks);

static inline uint64_t daqiri_ticks_now(const daqiri_ticks_t *ticks)
{
#ifdef __x86_64__
    if (ticks->is_tsc) {
        return __rdtsc();
    }
#else
    (void)ticks;
#endif
    return daqiri_now_ns();
}

/* How many ns one is. Takes up to 10 ms when it was started just now. */
double daqiri_ticks_ns(const daqiri_ticks_t *ticks);

#endif
