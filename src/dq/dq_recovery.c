/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_recovery.h"


static int dq_recovery_was_well(const dq_recovery_t *recovery,
                                const dq_recovery_limits_t *limits,
                                const dq_recovery_seen_t *seen)
{
    uint64_t enough = seen->is_wanted ? limits->trial : limits->rest;

    return (seen->mark != recovery->mark) ||
           (recovery->is_back && (seen->now - recovery->back > enough));
}


static uint64_t dq_recovery_wait(const dq_recovery_t *recovery,
                                 const dq_recovery_limits_t *limits)
{
    uint64_t wait = limits->least;
    uint32_t i;

    if (recovery->in_a_row == 0) {
        return 0;
    }
    for (i = 1; (i < recovery->in_a_row) && (wait < limits->most); i++) {
        wait *= 2;
    }
    return (wait < limits->most) ? wait : limits->most;
}


void dq_recovery_add_failure(dq_recovery_t *recovery, const dq_recovery_limits_t *limits,
                             const dq_recovery_seen_t *seen)
{
    if (!recovery->is_begun || dq_recovery_was_well(recovery, limits, seen)) {
        recovery->first    = seen->now;
        recovery->in_a_row = 0;
        recovery->in_vain  = 0;
    } else {
        recovery->in_a_row++;
        recovery->in_vain = (recovery->is_back && !seen->is_wanted)
                                ? 0 : recovery->in_vain + !seen->is_unmade;
    }
    recovery->is_begun  = 1;
    recovery->is_back   = 0;
    recovery->mark      = seen->mark;
    recovery->since     = seen->now;
    recovery->not_until = seen->now +
                      (seen->is_peers ? 0 : dq_recovery_wait(recovery, limits));
}


int dq_recovery_may_try(const dq_recovery_t *recovery,
                        const dq_recovery_limits_t *limits)
{
    return (recovery->in_vain < DQ_RECOVERY_FUTILE_MAX) &&
           (recovery->since - recovery->first <= limits->bound);
}


void dq_recovery_add_success(dq_recovery_t *recovery, uint64_t now)
{
    recovery->is_back = 1;
    recovery->back    = now;
}
