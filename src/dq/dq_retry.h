/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When to offer a device again what it has refused. It may have been short of
 * something for a moment: so as soon as anything completes, else after a while,
 * and twice as long each time. Whoever is refused for too long with nothing
 * taken in between stops to believe in it.
 *
 * A process that was stopped has not tried: the bound alone ends nothing, it
 * takes some tries, too.
 *
 * Times are in any unit, the same for all. Threads: one.
 */
#ifndef DQ_RETRY_H
#define DQ_RETRY_H

#include "dq.h"

enum { DQ_RETRY_TRIES_MIN = 8 };

typedef struct {
    uint64_t least, most; /* from one try to the next                        */
    uint64_t bound;       /* 0: never gives up                               */
} dq_retry_limits_t;

typedef struct {
    uint64_t since;   /* refused, and nothing taken                          */
    uint64_t next;    /* try                                                 */
    uint64_t wait;    /* before the one after that                           */
    uint32_t tries;   /* in vain, since then                                 */
    uint32_t retired; /* of the send ledger, at the last refusal             */
} dq_retry_t;

/* Is this errno of ibv_post_send() one that passes? */
int dq_retry_is_transient(int error);

/* Refused, for the first time. */
void dq_retry_begin(dq_retry_t *retry, const dq_retry_limits_t *limits,
                    uint64_t now, uint32_t retired);

/* Worth another try? */
int dq_retry_is_due(const dq_retry_t *retry, uint64_t now, uint32_t retired);

/* Refused once more; @a taken: not before something was taken. Returns non-zero
 * when it is time to give up. */
int dq_retry_refused(dq_retry_t *retry, const dq_retry_limits_t *limits,
                     uint64_t now, uint32_t retired, int taken);

#endif
