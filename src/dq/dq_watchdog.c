/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_watchdog.h"

enum { DQ_WATCHDOG_SAMPLES = 4 }; /* within the shortest bound */


void dq_watchdog_init(dq_watchdog_t *watchdog)
{
    *watchdog = (dq_watchdog_t){0};
}


static uint64_t dq_watchdog_count(int is_same, uint64_t so_far, uint64_t elapsed)
{
    return is_same ? so_far + elapsed : 0;
}


static int dq_watchdog_is_over(uint64_t time, uint64_t bound)
{
    return (bound != 0) && (time >= bound);
}


static void dq_watchdog_count_all(dq_watchdog_t *watchdog, const dq_watchdog_seen_t *seen,
                                  uint64_t elapsed)
{
    const dq_watchdog_seen_t *last = &watchdog->seen;
    int is_same                 = seen->is_up && last->is_up;
    int is_stuck                = is_same && (seen->retired == last->retired);
    int is_put_off              = seen->is_put_off && last->is_put_off;
    int is_full                 = (is_same || is_put_off) &&
                                  (seen->posted - seen->probes ==
                                   last->posted - last->probes);

    watchdog->still   = dq_watchdog_count(is_stuck && last->is_due, watchdog->still,
                                       elapsed);
    watchdog->waiting = dq_watchdog_count(is_full && seen->is_wanted, watchdog->waiting,
                                       elapsed);
    /* what is posted and not over counts as heard of: it will tell */
    watchdog->quiet   = dq_watchdog_count(is_stuck && (seen->heard == last->heard),
                                       watchdog->quiet, elapsed);
}


unsigned dq_watchdog_sample(dq_watchdog_t *watchdog, const dq_watchdog_bounds_t *bounds,
                            const dq_watchdog_seen_t *seen, uint64_t elapsed)
{
    int is_rest   = seen->is_up && watchdog->seen.is_up && seen->is_silent &&
                    (seen->posted == watchdog->seen.posted);
    unsigned what = is_rest ? DQ_WATCHDOG_MARK : 0;

    dq_watchdog_count_all(watchdog, seen, elapsed);
    watchdog->seen = *seen;

    if ((watchdog->still == 0) && (watchdog->waiting == 0)) {
        watchdog->is_logged = 0;
    } else if (!watchdog->is_logged &&
               (dq_watchdog_is_over(watchdog->still, bounds->warn) ||
                dq_watchdog_is_over(watchdog->waiting, bounds->warn))) {
        watchdog->is_logged = 1;
        what           |= DQ_WATCHDOG_WARN;
    }
    if (dq_watchdog_is_over(watchdog->still, bounds->give_up)) {
        what |= DQ_WATCHDOG_GIVE_UP;
    }
    if (dq_watchdog_is_over(watchdog->quiet, bounds->probe) &&
        (seen->posted == seen->retired)) {
        watchdog->quiet  = 0;
        what         |= DQ_WATCHDOG_PROBE;
    }
    return what;
}


uint64_t dq_watchdog_period(const dq_watchdog_bounds_t *bounds, uint64_t least,
                            uint64_t most)
{
    const uint64_t all[] = {bounds->warn, bounds->give_up, bounds->probe};
    uint64_t period      = most;
    unsigned i;

    for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if ((all[i] != 0) && (all[i] / DQ_WATCHDOG_SAMPLES < period)) {
            period = all[i] / DQ_WATCHDOG_SAMPLES;
        }
    }
    return (period < least) ? least : period;
}
