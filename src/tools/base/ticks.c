/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/ticks.h"

#include "tools/base/clock.h"

#include <stdio.h>
#include <string.h>

#define TICKS_SOURCE \
    "/sys/devices/system/clocksource/clocksource0/current_clocksource"

/* The system's clock is read within 100 ns of the counter: of so long that is
 * less than the 0.8 % that hist.h keeps. */
#define TICKS_SPAN_NS 10000000ull

static int ticks_is_tsc(void)
{
    FILE *file    = fopen(TICKS_SOURCE, "r");
    char word[16] = "";

    if (file != NULL) {
        if (fscanf(file, "%15s", word) != 1) {
            word[0] = '\0';
        }
        fclose(file);
    }
    return strcmp(word, "tsc") == 0;
}

void daqiri_ticks_start(daqiri_ticks_t *ticks)
{
    ticks->is_tsc   = ticks_is_tsc();
    ticks->first_ns = daqiri_now_ns();
    ticks->first    = daqiri_ticks_now(ticks);
}

double daqiri_ticks_ns(const daqiri_ticks_t *ticks)
{
    uint64_t now, now_ns;

    if (!ticks->is_tsc) {
        return 1;
    }
    do {
        now_ns = daqiri_now_ns();
        now    = daqiri_ticks_now(ticks);
    } while ((now_ns - ticks->first_ns < TICKS_SPAN_NS) ||
             (now <= ticks->first));
    return (double)(now_ns - ticks->first_ns) / (double)(now - ticks->first);
}
