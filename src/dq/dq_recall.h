/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credits that a receiver asks back, because other peers need its buffers.
 *
 *              WANT          SENT           BACK
 *     REST ----------> DUE --------> ASKED -------> REST
 *
 * The receiver (dq_rx.h) first keeps what its peer has used and was not granted again:
 * that needs no question. Of the rest, which the peer may use at any time, it asks back a
 * part. The peer gives back what it has left then (dq_sq_give_back()), maybe nothing:
 * messages that cross the question have used it. The buffers are free once the answer is
 * there, and not before. So "promised <= posted" holds at every instant.
 *
 * Question and answer are RC messages, so none is lost, unless the queue pair is. Then
 * all is void: the next queue pair begins with a new promise of the whole window.
 *
 * Threads: one.
 */
#ifndef DQ_RECALL_H
#define DQ_RECALL_H

#include "dq_rx.h"

typedef enum {
    DQ_RECALL_REST,  /* nothing is asked                                     */
    DQ_RECALL_DUE,   /* the question is to be sent                           */
    DQ_RECALL_ASKED, /* it is sent, and the answer is not there              */
    DQ_RECALL_STATE_LAST
} dq_recall_state_t;

typedef enum {
    DQ_RECALL_EV_WANT, /* other peers need buffers                           */
    DQ_RECALL_EV_SENT, /* the question is posted                             */
    DQ_RECALL_EV_BACK, /* the answer is there                                */
    DQ_RECALL_EV_LOST, /* the queue pair is lost                             */
    DQ_RECALL_EV_LAST
} dq_recall_event_t;

typedef struct {
    int               is_legal;
    dq_recall_state_t next;
} dq_recall_cell_t;

typedef struct {
    dq_recall_state_t state;
    uint32_t          count; /* credits that are asked back, unless REST     */
} dq_recall_t;

/* The table itself; docs/states.md prints it. */
dq_recall_cell_t dq_recall_cell(dq_recall_state_t state, dq_recall_event_t event);

/* The window should have @a least credits, no less than DQ_WINDOW_MIN. Cuts off what is
 * owed, and returns how many buffers that frees. If that is not enough, the rest is DUE
 * to be asked back. Does nothing unless at REST, and backed. */
uint32_t dq_recall_want(dq_recall_t *recall, dq_rx_t *rx, dq_rx_window_t *window,
                        uint32_t least);

/* The question is posted. */
void dq_recall_sent(dq_recall_t *recall);

/* The answer: the peer gives back @a count credits, and as many buffers are free. Returns
 * 0. Returns -1 and changes nothing if the peer is broken: nobody asked for so many, or
 * it has used them. */
int dq_recall_back(dq_recall_t *recall, dq_rx_t *rx, dq_rx_window_t *window,
                   uint32_t count);

/* The queue pair is lost, and the question with it. */
void dq_recall_lost(dq_recall_t *recall);

const char *dq_recall_state_name(dq_recall_state_t state);
const char *dq_recall_event_name(dq_recall_event_t event);

#endif
