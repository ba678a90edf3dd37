/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When to offer a device again a request that it has refused. The device may have
 * been short of something for a moment. So try again as soon as anything completes,
 * else after a while, and then after twice as long each time. Give up when the device
 * has refused for too long and has taken nothing in between.
 *
 * A process that was stopped has not tried. So the bound alone does not end it; a
 * number of tries must have failed, too.
 *
 * A peer is asked again with the same growth. A part of each wait is left to chance.
 *
 * Times are in any unit, the same for all. Threads: one.
 */
#ifndef DQ_RETRY_H
#define DQ_RETRY_H

#include "dq.h"

enum { DQ_RETRY_TRIES_MIN = 8 };

typedef struct {
    uint64_t least, most; /* time from one try to the next                   */
    uint64_t bound;       /* 0: never gives up                               */
} dq_retry_limits_t;

typedef struct {
    uint64_t since;   /* when the refusals began with nothing taken since    */
    uint64_t next;    /* time of the next try                                */
    uint64_t wait;    /* time from that to the one after it                  */
    uint32_t tries;   /* failed since then                                   */
    uint32_t retired; /* of the send ledger, at the last refusal             */
} dq_retry_t;

/* Is this errno of ibv_post_send() temporary? */
int dq_retry_is_transient(int error);

/* The first refusal. */
void dq_retry_begin(dq_retry_t *retry, const dq_retry_limits_t *limits,
                    uint64_t now, uint32_t retired);

/* Worth another try? */
int dq_retry_is_due(const dq_retry_t *retry, uint64_t now, uint32_t retired);

/* Another refusal; @a taken: the device took something before it. Returns non-zero
 * when it is time to give up. */
int dq_retry_refused(dq_retry_t *retry, const dq_retry_limits_t *limits,
                     uint64_t now, uint32_t retired, int taken);

/* Of peers that must be asked again, not of a device: */

/* The wait after this one: twice as long, @a most at most. */
uint64_t dq_retry_longer(uint64_t wait, uint64_t most);

/* A wait between this one and half as much again. Those that began to wait together then
 * do not ask again together. @a random: any 32 bits with equal chance. */
uint64_t dq_retry_spread(uint64_t wait, uint32_t random);

#endif
