/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may ask for a connection now. An interface of a large job wants many peers at
 * once. If it asked all of them, the questions would find no room: its own send slots are
 * few, and each peer has few receive buffers. So a question needs a place, places are
 * few, and the others wait in line.
 *
 *              WANT             TURN            LATE
 *     REST ----------> WAITING -------> ASKING -------> LATE
 *       ^                 | END           | END           | END
 *       +-----------------+---------------+---------------+
 *
 * A peer that does not answer in time is LATE. It gives its place back and asks on, each
 * time after a longer wait (dq_retry.h). So peers that are dead keep nobody waiting.
 *
 * How long an answer may take depends on how many ask the peer. So the first wait is
 * learned from the answers: their mean and four times the mean difference from it. What a
 * LATE one has waited counts as an answer, because otherwise only quick answers counted.
 *
 * Times are in any unit, the same for all. Threads: one.
 */
#ifndef DQ_PACE_H
#define DQ_PACE_H

#include "dq.h"

typedef enum {
    DQ_PACE_REST,    /* nobody wants to ask, or the answer is there          */
    DQ_PACE_WAITING, /* in line                                              */
    DQ_PACE_ASKING,  /* has a place: the question is under way               */
    DQ_PACE_LATE,    /* has no place any more, and asks on                   */
    DQ_PACE_STATE_LAST
} dq_pace_state_t;

typedef enum {
    DQ_PACE_EV_WANT, /* a question is to be asked                            */
    DQ_PACE_EV_TURN, /* the first in line gets a place                       */
    DQ_PACE_EV_LATE, /* the wait is over                                     */
    DQ_PACE_EV_END,  /* the answer is there, or is not needed any more       */
    DQ_PACE_EV_LAST
} dq_pace_event_t;

typedef struct {
    int             is_legal;
    dq_pace_state_t next;
} dq_pace_cell_t;

/* The places of an interface. */
typedef struct {
    uint32_t places; /* at least 1                                           */
    uint32_t taken;  /* questions that are ASKING                            */
    uint64_t mean;   /* time that an answer takes; 0: none is known          */
    uint64_t spread; /* mean difference from it                              */
} dq_pace_t;

/* What one peer has of them. */
typedef struct {
    dq_pace_state_t state;
    uint64_t        asked; /* when, in ASKING                                */
} dq_pace_turn_t;

/* The table itself; docs/states.md prints it. */
dq_pace_cell_t dq_pace_cell(dq_pace_state_t state, dq_pace_event_t event);

void dq_pace_init(dq_pace_t *pace, uint32_t places);

/* Is there a place? */
static inline int dq_pace_is_free(const dq_pace_t *pace)
{
    return pace->taken < pace->places;
}

/* The peer is to be asked. Returns non-zero if it goes to the end of the line; zero if it
 * is in line already, or asking. */
int dq_pace_want(dq_pace_turn_t *turn);

/* The first in line takes a place, which must be free. */
void dq_pace_begin(dq_pace_t *pace, dq_pace_turn_t *turn, uint64_t now);

/* No answer in time. Does nothing unless ASKING. */
void dq_pace_late(dq_pace_t *pace, dq_pace_turn_t *turn, uint64_t now);

/* An answer has come. Does nothing unless there is a question. Returns non-zero if the
 * peer must leave the line. */
int dq_pace_answered(dq_pace_t *pace, dq_pace_turn_t *turn, uint64_t now);

/* The same, but no answer comes: the connection ends. */
int dq_pace_end(dq_pace_t *pace, dq_pace_turn_t *turn);

/* How long to wait for the first answer: @a least or more, @a most or less. */
uint64_t dq_pace_wait(const dq_pace_t *pace, uint64_t least, uint64_t most);

const char *dq_pace_state_name(dq_pace_state_t state);
const char *dq_pace_event_name(dq_pace_event_t event);

#endif
