/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whatever of the handshake has to wait, each in the order in which it came:
 *
 *   line      peers that are to be asked, and have no place yet (dq_pace.h)
 *   owing     peers for whom a frame is due, which found no send slot
 *   backlog   questions of peers, which have no answer yet (dq_backlog.h)
 *
 * A queue pair takes a thousand times as long as a datagram. So the async thread receives
 * all datagrams first, then answers the oldest question, and begins to ask only when
 * nobody waits for an answer.
 *
 * Threads: async.
 */
#ifndef UCT_DAQIRI_WAIT_H
#define UCT_DAQIRI_WAIT_H

#include "daqiri.h"
#include "dq/dq_backlog.h"
#include "dq/dq_conn.h"
#include "dq/dq_pace.h"

/* Of an interface. */
typedef struct {
    dq_pace_t       pace;
    ucs_list_link_t line;
    ucs_list_link_t owing;
    dq_backlog_t    backlog;
    dq_frame_t      *asked;   /* questions, by index of the backlog          */
    uint64_t        random;   /* for uct_daqiri_wait_draw()                  */
    uint64_t        secret;   /* for the names of questions                  */
} uct_daqiri_wait_t;

/* Of a peer. */
typedef struct {
    dq_pace_turn_t  pace;
    dq_conn_event_t wanted;    /* in line: what begins the attempt           */
    ucs_list_link_t line_link;
    ucs_list_link_t owing_link;
    int             is_owing;
    dq_frame_kind_t owed;
} uct_daqiri_turn_t;

/* The secret is a random number that no peer is told. */
void uct_daqiri_wait_init(uct_daqiri_wait_t *wait, uint64_t secret);
void uct_daqiri_wait_cleanup(uct_daqiri_wait_t *wait);
/* The peer no longer waits for anything. */
void uct_daqiri_wait_leave(uct_daqiri_wait_t *wait, uct_daqiri_turn_t *turn);

/* Half of a number by chance. Not a secret. */
uint32_t uct_daqiri_wait_draw(uct_daqiri_wait_t *wait);

/* The peer goes to the end of the line, if it does not ask already. */
void uct_daqiri_wait_in_line(uct_daqiri_wait_t *wait, uct_daqiri_turn_t *turn,
                             dq_conn_event_t wanted);
/* The first in line, or NULL. */
uct_daqiri_turn_t *uct_daqiri_wait_first(uct_daqiri_wait_t *wait);
/* The first in line leaves it and takes a place, which is free. */
void uct_daqiri_wait_begin(uct_daqiri_wait_t *wait, uct_daqiri_turn_t *turn);
/* The peer needs no place any more; an answer teaches how long one takes. */
void uct_daqiri_wait_end(uct_daqiri_wait_t *wait, uct_daqiri_turn_t *turn,
                         int is_answered);

/* The frame goes to the peer once there is a send slot. It replaces an earlier one. */
void uct_daqiri_wait_owe(uct_daqiri_wait_t *wait, uct_daqiri_turn_t *turn,
                         dq_frame_kind_t kind);
/* The peer that is owed a frame for the longest time, or NULL. */
uct_daqiri_turn_t *uct_daqiri_wait_owed(uct_daqiri_wait_t *wait);
void uct_daqiri_wait_paid(uct_daqiri_turn_t *turn);

/* Keeps the question until it is taken. A peer that asks again keeps its place. Returns
 * zero if there is no room. */
int uct_daqiri_wait_note(uct_daqiri_wait_t *wait, const dq_frame_t *request);
/* Takes the oldest question. Returns zero if there is none. */
int uct_daqiri_wait_take(uct_daqiri_wait_t *wait, dq_frame_t *request);
/* The peer has ended the attempt that it asks for. */
void uct_daqiri_wait_forget(uct_daqiri_wait_t *wait, const dq_frame_t *gone);

#endif
