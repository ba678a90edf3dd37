/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How often and how long a connection is given another queue pair.
 *
 *      lost   back   lost      back        lost
 *     --|------|######|---------|###########|-------> time
 *       |<------------- a row ------------->|
 *
 * Losses make a row as long as nothing goes well between them, and a row has a
 * bound: the time since its first loss. What goes well, so that the next loss
 * begins a new row:
 *
 *   - something gets through, of either end;
 *   - a queue pair that something was wanted of has lived for longer than
 *     @a trial. A path that does not carry what is sent lets every new one come
 *     up, and fail only when its device gives up;
 *   - one that nothing was wanted of has lived for longer than @a rest: it has
 *     failed at nothing, and it did not die at once.
 *
 * Of a row only so many queue pairs may be in vain, one after another: they did
 * not come up, or did nothing of what was wanted. One that came up and of which
 * nothing was wanted was not in vain. Before each but the first of a row there
 * is a wait, twice as long each time. Who only follows a peer that has lost its
 * own does not wait: the peer has.
 *
 * Times are in any unit, the same for all. Threads: one.
 */
#ifndef DQ_RECOVERY_H
#define DQ_RECOVERY_H

#include "dq.h"

enum { DQ_RECOVERY_FUTILE_MAX = 16 };

typedef struct {
    uint64_t least, most; /* wait before the second of a row, and later ones */
    uint64_t bound;       /* of a row                                        */
    uint64_t trial, rest;
} dq_recovery_limits_t;

/* What is known when a queue pair is lost. */
typedef struct {
    uint64_t now;
    uint32_t mark;      /* changes when something gets through               */
    int      is_wanted; /* something was under way, or waited to be          */
    int      is_peers;  /* the peer has lost its own, and waited             */
} dq_recovery_seen_t;

typedef struct {
    uint64_t first;     /* loss of the row                                   */
    uint64_t since;     /* the last loss                                     */
    uint64_t not_until; /* there may be another queue pair                   */
    uint64_t back;      /* when the last one came up, if is_back             */
    uint32_t mark;      /* at the last loss                                  */
    uint32_t in_a_row;  /* losses that followed the first                    */
    uint32_t in_vain;   /* queue pairs, one after another                    */
    int      is_back;
    int      is_begun;  /* there has been a loss                             */
} dq_recovery_t;

/* A queue pair is lost, or could not be had. */
void dq_recovery_add_failure(dq_recovery_t *recovery, const dq_recovery_limits_t *limits,
                             const dq_recovery_seen_t *seen);

/* May there be another one, after that? */
int dq_recovery_may_try(const dq_recovery_t *recovery,
                        const dq_recovery_limits_t *limits);

/* The other one has come up. */
void dq_recovery_add_success(dq_recovery_t *recovery, uint64_t now);

#endif
