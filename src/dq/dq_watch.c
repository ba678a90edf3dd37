/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_watch.h"

enum { DQ_WATCH_LOOKS = 4 }; /* within the shortest bound */


void dq_watch_init(dq_watch_t *watch)
{
    *watch = (dq_watch_t){0};
}


static uint64_t dq_watch_count(int is_same, uint64_t so_far, uint64_t elapsed)
{
    return is_same ? so_far + elapsed : 0;
}


static int dq_watch_is_over(uint64_t time, uint64_t bound)
{
    return (bound != 0) && (time >= bound);
}


static void dq_watch_count_all(dq_watch_t *watch, const dq_watch_seen_t *seen,
                               uint64_t elapsed)
{
    const dq_watch_seen_t *last = &watch->seen;
    int is_same                 = seen->is_up && last->is_up;
    int is_stuck                = is_same && (seen->retired == last->retired);
    int is_full                 = is_same && (seen->posted - seen->asked ==
                                              last->posted - last->asked);

    watch->still   = dq_watch_count(is_stuck && last->is_due, watch->still,
                                    elapsed);
    watch->waiting = dq_watch_count(is_full && seen->is_wanted, watch->waiting,
                                    elapsed);
    /* what is posted and not over counts as heard of: it will tell */
    watch->quiet   = dq_watch_count(is_stuck && (seen->heard == last->heard),
                                    watch->quiet, elapsed);
}


unsigned dq_watch_look(dq_watch_t *watch, const dq_watch_bounds_t *bounds,
                       const dq_watch_seen_t *seen, uint64_t elapsed)
{
    int is_rest   = seen->is_up && watch->seen.is_up && seen->is_silent &&
                    (seen->posted == watch->seen.posted);
    unsigned what = is_rest ? DQ_WATCH_PUSH : 0;

    dq_watch_count_all(watch, seen, elapsed);
    watch->seen = *seen;

    if ((watch->still == 0) && (watch->waiting == 0)) {
        watch->is_said = 0;
    } else if (!watch->is_said &&
               (dq_watch_is_over(watch->still, bounds->say) ||
                dq_watch_is_over(watch->waiting, bounds->say))) {
        watch->is_said  = 1;
        what           |= DQ_WATCH_SAY;
    }
    if (dq_watch_is_over(watch->still, bounds->give_up)) {
        what |= DQ_WATCH_GIVE_UP;
    }
    if (dq_watch_is_over(watch->quiet, bounds->ask) &&
        (seen->posted == seen->retired)) {
        watch->quiet  = 0;
        what         |= DQ_WATCH_ASK;
    }
    return what;
}


uint64_t dq_watch_period(const dq_watch_bounds_t *bounds, uint64_t least,
                         uint64_t most)
{
    const uint64_t all[] = {bounds->say, bounds->give_up, bounds->ask};
    uint64_t period      = most;
    unsigned i;

    for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if ((all[i] != 0) && (all[i] / DQ_WATCH_LOOKS < period)) {
            period = all[i] / DQ_WATCH_LOOKS;
        }
    }
    return (period < least) ? least : period;
}
