/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_again.h"

#include <errno.h>


int dq_again_is_curable(int error)
{
    switch (error) {
    case ENOMEM:
    case ENOBUFS:
    case EAGAIN:
    case EBUSY:
    case EINTR:
        return 1;
    default:
        return 0;
    }
}


void dq_again_begin(dq_again_t *again, const dq_again_limits_t *limits,
                    uint64_t now, uint32_t retired)
{
    *again = (dq_again_t){
        .since   = now,
        .next    = now + limits->least,
        .wait    = limits->least,
        .retired = retired,
    };
}


int dq_again_is_due(const dq_again_t *again, uint64_t now, uint32_t retired)
{
    return (now >= again->next) || (retired != again->retired);
}


int dq_again_refused(dq_again_t *again, const dq_again_limits_t *limits,
                     uint64_t now, uint32_t retired, int taken)
{
    if (taken) {
        dq_again_begin(again, limits, now, retired);
        return 0;
    }
    again->wait    = (again->wait < limits->most / 2) ? again->wait * 2
                                                      : limits->most;
    again->next    = now + again->wait;
    again->retired = retired;
    again->tries++;
    return (limits->bound != 0) && (again->tries >= DQ_AGAIN_TRIES_MIN) &&
           (now - again->since >= limits->bound);
}
