/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_loss.h"


static int dq_loss_was_well(const dq_loss_t *loss,
                            const dq_loss_limits_t *limits,
                            const dq_loss_seen_t *seen)
{
    uint64_t enough = seen->is_wanted ? limits->trial : limits->rest;

    return (seen->mark != loss->mark) ||
           (loss->is_back && (seen->now - loss->back > enough));
}


static uint64_t dq_loss_wait(const dq_loss_t *loss,
                             const dq_loss_limits_t *limits)
{
    uint64_t wait = limits->least;
    uint32_t i;

    if (loss->in_a_row == 0) {
        return 0;
    }
    for (i = 1; (i < loss->in_a_row) && (wait < limits->most); i++) {
        wait *= 2;
    }
    return (wait < limits->most) ? wait : limits->most;
}


void dq_loss_add(dq_loss_t *loss, const dq_loss_limits_t *limits,
                 const dq_loss_seen_t *seen)
{
    if (!loss->is_begun || dq_loss_was_well(loss, limits, seen)) {
        loss->first    = seen->now;
        loss->in_a_row = 0;
        loss->in_vain  = 0;
    } else {
        loss->in_a_row++;
        loss->in_vain = (loss->is_back && !seen->is_wanted)
                                ? 0 : loss->in_vain + 1;
    }
    loss->is_begun  = 1;
    loss->is_back   = 0;
    loss->mark      = seen->mark;
    loss->since     = seen->now;
    loss->not_until = seen->now +
                      (seen->is_peers ? 0 : dq_loss_wait(loss, limits));
}


int dq_loss_may_try(const dq_loss_t *loss, const dq_loss_limits_t *limits)
{
    return (loss->in_vain < DQ_LOSS_VAIN_MAX) &&
           (loss->since - loss->first <= limits->bound);
}


void dq_loss_back(dq_loss_t *loss, uint64_t now)
{
    loss->is_back = 1;
    loss->back    = now;
}
