/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a connection, as its user sees it. A queue pair is what the NIC has
 * (dq_qp.h); a connection may go through several.
 *
 *                    QP               UP          LOSE
 *     UNCONNECTED ------> CONNECTING ----> UP ----------> RECOVERING
 *                              |            ^      UP         |
 *                              | LOSE       +-----------------+
 *                              +------------------------------^
 *
 * A queue pair that is idle may be closed in order (dq_idle.h):
 *
 *           CLOSE          AGREED                QP
 *       UP -------> CLOSING -------> IDLE_CLOSED ----> RECOVERING
 *                      | LOSE                              ^
 *                      +-----------------------------------+
 *
 * and from each of these by FAIL to FAILED, where what was posted is drained, then
 * CLOSED, where its endpoints know, then RELEASED: the memory is the async thread's.
 *
 * The table is total. A cell without an entry cannot be reached: a step there is a
 * fault of the caller, asserted in debug builds, and else changes nothing.
 *
 * Threads: one (the owner of the send queue).
 */
#ifndef DQ_LIFE_H
#define DQ_LIFE_H

#include "dq_sq.h"

typedef enum {
    DQ_LIFE_UNCONNECTED, /* it has had no queue pair                         */
    DQ_LIFE_CONNECTING,  /* it has its first one, the peer may have none     */
    DQ_LIFE_UP,          /* requests are posted                              */
    DQ_LIFE_RECOVERING,  /* its queue pair is lost; another one is made      */
    DQ_LIFE_CLOSING,     /* its queue pair is idle: both ends agree to close it */
    DQ_LIFE_IDLE_CLOSED, /* it has none; the next send gets another          */
    DQ_LIFE_FAILED,      /* for ever; what was posted is drained             */
    DQ_LIFE_CLOSED,      /* nothing of it is left; endpoints may hold it     */
    DQ_LIFE_RELEASED,    /* nobody holds it: the async thread frees it       */
    DQ_LIFE_STATE_LAST
} dq_life_state_t;

typedef enum {
    DQ_LIFE_EV_QP,      /* it has its first queue pair, or one after an idle close */
    DQ_LIFE_EV_UP,      /* the peer is ready, and what it promises is legal  */
    DQ_LIFE_EV_LOSE,    /* its queue pair has failed, and another may do     */
    DQ_LIFE_EV_FAIL,    /* no other may do                                   */
    DQ_LIFE_EV_CLOSE,   /* it has told the peer that it posts no more data   */
    DQ_LIFE_EV_AGREED,  /* so has the peer, and nothing is under way         */
    DQ_LIFE_EV_DRAINED, /* the ledger is empty, the window is given back     */
    DQ_LIFE_EV_RELEASE, /* no endpoint is left                               */
    DQ_LIFE_EV_LAST
} dq_life_event_t;

typedef struct {
    int             is_legal;
    dq_life_state_t next;
} dq_life_cell_t;

/* The table itself; docs/states.md prints it. */
dq_life_cell_t dq_life_cell(dq_life_state_t state, dq_life_event_t event);

/* One step: *state becomes the next one. */
void dq_life_step(dq_life_state_t *state, dq_life_event_t event);

/* Has it failed, for ever? */
static inline int dq_life_is_over(dq_life_state_t state)
{
    return state >= DQ_LIFE_FAILED;
}

/* How the gate of its ledger stands in this state. */
dq_gate_t dq_life_gate(dq_life_state_t state);

const char *dq_life_state_name(dq_life_state_t state);
const char *dq_life_event_name(dq_life_event_t event);

#endif
