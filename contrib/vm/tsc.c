/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Prints how fast the processor's time stamp counter is, in kHz. The guest of
 * contrib/vm/run reads the same counter and would otherwise find that out by
 * itself when it boots; on a busy machine it is then wrong by a factor of 2 to
 * 20, its clock runs that much too fast, and its time limits are over as early.
 */

#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

enum {
    TSC_TRIES    = 20,
    TSC_PAUSE_NS = 50000000
};

typedef struct tsc_sample {
    uint64_t tsc;
    double ns;
} tsc_sample_t;

/* Both clocks at the same time: of some tries the one that took the least, in
 * which nothing has come between. */
static tsc_sample_t tsc_sample(void)
{
    tsc_sample_t best   = {0, 0};
    uint64_t best_width = UINT64_MAX;
    uint64_t before, after;
    struct timespec now;
    int i;

    for (i = 0; i < TSC_TRIES; i++) {
        before = __rdtsc();
        clock_gettime(CLOCK_MONOTONIC, &now);
        after = __rdtsc();
        if (after - before < best_width) {
            best_width = after - before;
            best.tsc   = before + (best_width / 2);
            best.ns    = (now.tv_sec * 1e9) + now.tv_nsec;
        }
    }
    return best;
}

int main(void)
{
    const struct timespec pause = {0, TSC_PAUSE_NS};
    tsc_sample_t first, last;

    first = tsc_sample();
    nanosleep(&pause, NULL);
    last = tsc_sample();
    printf("%.0f\n", (last.tsc - first.tsc) * 1e6 / (last.ns - first.ns));
    return 0;
}
