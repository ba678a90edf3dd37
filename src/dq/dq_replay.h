/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens to the requests of a lost queue pair.
 *
 * The peer has told how many active messages it has handed up. RC is ordered, so a
 * count is enough. The peer has executed everything up to the last of these
 * messages:
 *
 *        retired        the last message that
 *        |              the peer has handed up       posted
 *        |  past        v |  ahead                   |
 *   -----[################|##########################]-----> ids
 *
 *             past                           ahead
 *   message   over                           again
 *   WRITE     over                           again: in order, so nothing that
 *                                            the peer knows of is overwritten
 *   READ      again: its answer is missing   again
 *   atomic    unknown, and so the end: done  unknown: it may have been done
 *             but nobody knows the result
 *   grant     over                           blank: credits are counted anew
 *   blank     over                           blank
 *
 * A request that is over, but stands behind one that is not, keeps its place: it is
 * posted again as a blank, an empty WRITE. So ids and order stay as they were.
 *
 * Threads: one. Complexity: O(requests in use).
 */
#ifndef DQ_REPLAY_H
#define DQ_REPLAY_H

#include "dq.h"

typedef enum {
    DQ_OP_MSG,
    DQ_OP_GRANT,
    DQ_OP_WRITE,
    DQ_OP_READ,
    DQ_OP_ATOMIC,
    DQ_OP_BLANK, /* its user is gone                                        */
    DQ_OP_LAST
} dq_op_kind_t;

typedef enum {
    DQ_REPLAY_DONE,
    DQ_REPLAY_RESEND,
    DQ_REPLAY_BLANK,
    DQ_REPLAY_UNKNOWN
} dq_replay_t;

/* How a remembered request begins. */
typedef struct {
    uint8_t  kind; /* dq_op_kind_t                                           */
    uint32_t seq;  /* of a message; else, of the next message                */
} dq_op_t;

/* Requests by ledger slot: id modulo the power of two, @a stride bytes each. */
typedef struct {
    uint8_t  *slots;
    size_t   stride;
    uint32_t mask;
} dq_replay_log_t;

typedef struct {
    uint32_t over;     /* everything before this id is over                  */
    uint32_t ahead;    /* from this id on the peer knows nothing             */
    uint32_t messages; /* to be sent again                                   */
    uint32_t had;      /* messages that the peer had                         */
    int      unknown;  /* an atomic whose fate or result is unknown          */
} dq_replay_plan_t;

static inline dq_op_t *dq_replay_slot(const dq_replay_log_t *log, uint32_t id)
{
    return (dq_op_t*)(void*)(log->slots + ((id & log->mask) * log->stride));
}

const char *dq_op_kind_name(dq_op_kind_t kind);

/* What to do with a request of this kind; @a is_past as drawn above. */
dq_replay_t dq_replay_verdict(dq_op_kind_t kind, int is_past);

/* What to do with the requests from @a retired to before @a posted, if the peer
 * has handed up @a delivered messages. */
dq_replay_plan_t dq_replay_plan(const dq_replay_log_t *log, uint32_t retired,
                                uint32_t posted, uint32_t delivered);

/* How many of our messages have completed: the number of the oldest message in use,
 * or @a next_seq if there is none. */
uint32_t dq_replay_acked(const dq_replay_log_t *log, uint32_t retired,
                         uint32_t posted, uint32_t next_seq);

#endif
