/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_retry.h"

#include <errno.h>


int dq_retry_is_transient(int error)
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


void dq_retry_begin(dq_retry_t *retry, const dq_retry_limits_t *limits,
                    uint64_t now, uint32_t retired)
{
    *retry = (dq_retry_t){
        .since   = now,
        .next    = now + limits->least,
        .wait    = limits->least,
        .retired = retired,
    };
}


int dq_retry_is_due(const dq_retry_t *retry, uint64_t now, uint32_t retired)
{
    return (now >= retry->next) || (retired != retry->retired);
}


uint64_t dq_retry_longer(uint64_t wait, uint64_t most)
{
    return (wait < most / 2) ? wait * 2 : most;
}


uint64_t dq_retry_spread(uint64_t wait, uint32_t random)
{
    const uint64_t half = wait / 2;

    /* in two steps: a wait of centuries in nanoseconds does not overflow */
    return wait + (half >> 32) * random + (((half & UINT32_MAX) * random) >> 32);
}


int dq_retry_refused(dq_retry_t *retry, const dq_retry_limits_t *limits,
                     uint64_t now, uint32_t retired, int taken)
{
    if (taken) {
        dq_retry_begin(retry, limits, now, retired);
        return 0;
    }
    retry->wait    = dq_retry_longer(retry->wait, limits->most);
    retry->next    = now + retry->wait;
    retry->retired = retired;
    retry->tries++;
    return (limits->bound != 0) && (retry->tries >= DQ_RETRY_TRIES_MIN) &&
           (now - retry->since >= limits->bound);
}
