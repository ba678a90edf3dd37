/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of one queue pair, as the owner of its send queue sees it.
 *
 *            CREATED              UP
 *     NONE ----------> CONNECTING -----> READY
 *      ^                   | FAIL          | FAIL
 *      | TAKEN             +------+--------+
 *      |                          v      IN_ERR            TAKEN
 *     FINAL <---- DESTROYING <-- DRAINING <----- FAILED
 *           DESTROYED        TAKEN
 *
 * A queue pair that fails is moved to ERR by us, even if it has failed by itself: its
 * error completion may come before the device has stopped it from taking messages.
 * What it has left in the CQs is taken twice: in ERR, because to destroy it may remove
 * that (mlx5), and after it has been destroyed, because one in ERR may still be taking
 * a message (rxe). Only then is it final how much it has delivered.
 *
 * The table is total. A cell without an entry cannot be reached: a step there is a
 * fault of the caller, asserted in debug builds, and else changes nothing.
 *
 * Threads: one (the owner of the send queue).
 */
#ifndef DQ_QP_H
#define DQ_QP_H

#include "dq.h"

typedef enum {
    DQ_QP_NONE,       /* there is none: not yet, or not any more             */
    DQ_QP_CONNECTING, /* messages may arrive on it; none may be sent         */
    DQ_QP_READY,      /* it sends and receives                               */
    DQ_QP_FAILED,     /* nothing more is sent; it is to be moved to ERR      */
    DQ_QP_DRAINING,   /* in ERR: messages and flushes are taken              */
    DQ_QP_DESTROYING, /* until the device has it no more                     */
    DQ_QP_FINAL,      /* destroyed: what it has left is taken                */
    DQ_QP_STATE_LAST
} dq_qp_state_t;

typedef enum {
    DQ_QP_EV_CREATED,   /* another queue pair                                */
    DQ_QP_EV_UP,        /* both ends are ready                               */
    DQ_QP_EV_FAIL,      /* it has died, or has been given up                 */
    DQ_QP_EV_IN_ERR,    /* it is in ERR, or will not go there                */
    DQ_QP_EV_TAKEN,     /* all that it had in the CQs has been taken         */
    DQ_QP_EV_DESTROYED, /* the device has it no more                         */
    DQ_QP_EV_NO_QP,     /* another one could not be had                      */
    DQ_QP_EV_LAST
} dq_qp_event_t;

/* What the caller has to do, in this order. */
enum {
    DQ_QP_ACT_DRAIN   = 1 << 0, /* take what is in the CQs, from here on     */
    DQ_QP_ACT_DESTROY = 1 << 1, /* have it destroyed                         */
    DQ_QP_ACT_REPORT  = 1 << 2, /* say how much it has delivered             */
    DQ_QP_ACT_LAST    = 1 << 3
};

typedef struct {
    int           is_legal;
    dq_qp_state_t next;
    uint32_t      actions;
} dq_qp_cell_t;

/* The table itself; docs/states.md prints it. */
dq_qp_cell_t dq_qp_cell(dq_qp_state_t state, dq_qp_event_t event);

/* One step: *state becomes the next one. Returns the actions. */
uint32_t dq_qp_step(dq_qp_state_t *state, dq_qp_event_t event);

/* Is it one that has not failed? */
static inline int dq_qp_is_alive(dq_qp_state_t state)
{
    return (state == DQ_QP_CONNECTING) || (state == DQ_QP_READY);
}

const char *dq_qp_state_name(dq_qp_state_t state);
const char *dq_qp_event_name(dq_qp_event_t event);
const char *dq_qp_action_name(uint32_t bit);

#endif
