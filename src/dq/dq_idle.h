/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ends agree to close a queue pair that is idle, so that another connection may have
 * one.
 *
 *             WANT        SENT                HEARD
 *     OPEN --------> DUE -------> WAITING --------------+
 *       | HEARD       | HEARD                           v      SHUT
 *       +-----------> ANSWER ------------------------> BOTH ---------> OPEN
 *                              SENT
 *
 * Each end sends one CLOSE. It is the last message but grants that the end posts on this
 * queue pair, and it is fenced: READs and atomics before it are over. So an end that has
 * sent its CLOSE and has heard the peer's, and whose own requests are all over, may
 * destroy the queue pair: nothing of either end is under way. Two CLOSEs that cross are
 * an agreement, too.
 *
 * Nobody refuses. An end that has just begun to send has the queue pair closed, and gets
 * another one at once.
 *
 * An end in WAITING still grants credits: the peer may need one for its CLOSE. An end in
 * BOTH sends nothing, because the peer's queue pair may be gone. If the queue pair is
 * lost meanwhile, all is void.
 *
 * Threads: one.
 */
#ifndef DQ_IDLE_H
#define DQ_IDLE_H

#include "dq.h"

typedef enum {
    DQ_IDLE_OPEN,    /* nobody wants to close                                */
    DQ_IDLE_DUE,     /* our CLOSE is to be sent                              */
    DQ_IDLE_ANSWER,  /* the same, and the peer's has come                    */
    DQ_IDLE_WAITING, /* ours is sent, and the peer's has not come            */
    DQ_IDLE_BOTH,    /* both                                                 */
    DQ_IDLE_STATE_LAST
} dq_idle_state_t;

typedef enum {
    DQ_IDLE_EV_WANT,  /* this end wants to close                             */
    DQ_IDLE_EV_SENT,  /* our CLOSE is posted                                 */
    DQ_IDLE_EV_HEARD, /* the peer's CLOSE has come                           */
    DQ_IDLE_EV_SHUT,  /* our requests are over, and the queue pair goes      */
    DQ_IDLE_EV_LOST,  /* the queue pair is lost                              */
    DQ_IDLE_EV_LAST
} dq_idle_event_t;

typedef struct {
    int             is_legal;
    dq_idle_state_t next;
} dq_idle_cell_t;

/* The table itself; docs/states.md prints it. */
dq_idle_cell_t dq_idle_cell(dq_idle_state_t state, dq_idle_event_t event);

/* One step: *state becomes the next one. Returns 0. Returns -1 and changes nothing if the
 * cell is not legal. That can only be HEARD, and the peer is broken: any other is a fault
 * of the caller. */
int dq_idle_step(dq_idle_state_t *state, dq_idle_event_t event);

/* Is our CLOSE to be sent? */
static inline int dq_idle_is_due(dq_idle_state_t state)
{
    return (state == DQ_IDLE_DUE) || (state == DQ_IDLE_ANSWER);
}

const char *dq_idle_state_name(dq_idle_state_t state);
const char *dq_idle_event_name(dq_idle_event_t event);

#endif
