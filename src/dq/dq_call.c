/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_call.h"


void dq_call_init(dq_call_t *call)
{
    *call = (dq_call_t){0};
}


/* Counts the time since the last look. Zero: the process is not silent. */
static int dq_call_count(dq_call_t *call, const dq_call_seen_t *seen,
                         uint64_t elapsed)
{
    const dq_call_seen_t last = call->seen;

    call->seen = *seen;
    if (!seen->is_up || !last.is_up || (seen->told != last.told)) {
        *call = (dq_call_t){.seen = *seen};
        return 0;
    }
    if ((call->calls > 0) && (seen->retired != last.retired)) {
        call->unanswered += elapsed;
    }
    call->calls  += seen->called - last.called;
    call->silent += elapsed;
    call->rest    = (call->rest > elapsed) ? call->rest - elapsed : 0;
    return 1;
}


unsigned dq_call_look(dq_call_t *call, const dq_call_bounds_t *bounds,
                      const dq_call_seen_t *seen, uint64_t elapsed)
{
    if (!dq_call_count(call, seen, elapsed) || (bounds->call == 0) ||
        (call->silent < bounds->call)) {
        return 0;
    }
    if ((call->unanswered >= bounds->mute) && (call->calls >= DQ_CALL_LEAST)) {
        return DQ_CALL_GIVE_UP;
    }
    if (call->rest > 0) {
        return DQ_CALL_DEVICE;
    }
    call->rest = bounds->mute / DQ_CALL_OFTEN;
    return DQ_CALL_DEVICE | DQ_CALL_PROCESS;
}
