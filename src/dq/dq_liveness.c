/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_liveness.h"


void dq_liveness_init(dq_liveness_t *live)
{
    *live = (dq_liveness_t){0};
}


/* Counts the time since the last look. Zero: the process is not silent. */
static int dq_liveness_count(dq_liveness_t *live, const dq_liveness_seen_t *seen,
                             uint64_t elapsed)
{
    const dq_liveness_seen_t last = live->seen;

    live->seen = *seen;
    if (!seen->is_up || !last.is_up || (seen->heard != last.heard)) {
        *live = (dq_liveness_t){.seen = *seen};
        return 0;
    }
    if ((live->probes > 0) && (seen->retired != last.retired)) {
        live->unanswered += elapsed;
    }
    live->probes  += seen->probes - last.probes;
    live->silent += elapsed;
    live->rest    = (live->rest > elapsed) ? live->rest - elapsed : 0;
    return 1;
}


unsigned dq_liveness_look(dq_liveness_t *live,
                          const dq_liveness_bounds_t *bounds,
                          const dq_liveness_seen_t *seen, uint64_t elapsed)
{
    if (!dq_liveness_count(live, seen, elapsed) || (bounds->probe_after == 0) ||
        (live->silent < bounds->probe_after)) {
        return 0;
    }
    if ((live->unanswered >= bounds->unresponsive) &&
        (live->probes >= DQ_LIVENESS_PROBES_MIN)) {
        return DQ_LIVENESS_GIVE_UP;
    }
    if (live->rest > 0) {
        return DQ_LIVENESS_PROBE_DEVICE;
    }
    live->rest = bounds->unresponsive / DQ_LIVENESS_PROBES_MAX;
    return DQ_LIVENESS_PROBE_DEVICE | DQ_LIVENESS_PROBE_PROCESS;
}
