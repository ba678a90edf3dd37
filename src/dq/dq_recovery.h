/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The budget of recovery: how often, and for how long, a connection gets another queue
 * pair.
 *
 *      lost   back   lost      back        lost
 *     --|------|######|---------|###########|-------> time
 *       |<------------- a row ------------->|
 *
 * Losses without a success between them make a row. The time from the first loss of a row
 * to its last is bounded. After each of these successes the next loss begins a new row:
 *
 *   - a request of either end got through;
 *   - a queue pair with requests to send lived for longer than @a trial. On a path that
 *     carries none of them, every new queue pair comes up, and fails only when its device
 *     gives up;
 *   - an idle queue pair lived for longer than @a rest: it failed at nothing, and it did
 *     not fail at once.
 *
 * A queue pair was in vain if it did not come up, or got none of its requests through. An
 * idle queue pair that came up was not in vain. Fewer than DQ_RECOVERY_FUTILE_MAX queue
 * pairs of a row, one after another, may be in vain. A queue pair that could not be made
 * was not tried, so only the time is bounded: a device that is full may have room soon.
 *
 * Each queue pair of a row but the first waits, each time twice as long as before. An end
 * that only follows the loss of its peer does not wait, because the peer has waited.
 *
 * Times are in any unit, the same for all. Threads: one.
 */
#ifndef DQ_RECOVERY_H
#define DQ_RECOVERY_H

#include "dq.h"

enum { DQ_RECOVERY_FUTILE_MAX = 16 };

typedef struct {
    uint64_t least, most; /* wait before the second of a row; longest wait   */
    uint64_t bound;       /* most time from the first loss of a row to the last */
    uint64_t trial, rest;
} dq_recovery_limits_t;

/* What is known when a queue pair is lost. */
typedef struct {
    uint64_t now;
    uint32_t mark;      /* changes when a request gets through               */
    int      is_wanted; /* requests were under way, or waited                */
    int      is_peers;  /* the peer lost its QP first, and has waited        */
    int      is_unmade; /* the device had no QP to give                      */
} dq_recovery_seen_t;

typedef struct {
    uint64_t first;     /* time of the first loss of the row                 */
    uint64_t since;     /* time of the last loss                             */
    uint64_t not_until; /* no other queue pair before this time              */
    uint64_t back;      /* when the last queue pair came up, if is_back      */
    uint32_t mark;      /* of dq_recovery_seen_t, at the last loss           */
    uint32_t in_a_row;  /* losses that followed the first                    */
    uint32_t in_vain;   /* queue pairs in vain, one after another            */
    int      is_back;
    int      is_begun;  /* there has been a loss                             */
} dq_recovery_t;

/* Notes that a queue pair was lost, or could not be made. */
void dq_recovery_add_failure(dq_recovery_t *recovery, const dq_recovery_limits_t *limits,
                             const dq_recovery_seen_t *seen);

/* Whether the connection may have another queue pair after that, from not_until on. */
int dq_recovery_may_try(const dq_recovery_t *recovery,
                        const dq_recovery_limits_t *limits);

/* Notes that the new queue pair has come up. */
void dq_recovery_add_success(dq_recovery_t *recovery, uint64_t now);

#endif
