/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection machine: (state, event) -> (state, actions), as one table.
 *
 *            OPEN                  REP
 *     IDLE --------> REQ_SENT --------------> UP
 *       |              ^ | REQ, yielding       ^ |
 *       |  REQ         | v                     | |
 *       +-----------> REP_SENT ----------------+ |
 *                      |  | RTU, or data on the QP
 *              DRAINED |  |                      |
 *                     LOST <---------------------+
 *                           LOSE, or the peer's new REQ
 *
 * A connection whose ends have agreed to close an idle QP (dq_idle.h) goes from LOST to
 * RESTING (REST), and from there as from IDLE: OPEN, or the peer's REQ, brings a new QP.
 *
 * Every state also leads to DEAD: attempts exhausted, refusal, an error that no new QP
 * cures, peer gone. dq_conn_classify() turns a frame into an event, by its kind, its
 * epochs and who yields. dq_conn_step() looks the event up in the table. No cell is
 * missing: late, repeated and reordered frames are legal and have stated answers.
 *
 * Both ends may open at once. Then both have sent a REQ, and the end with the lower uuid
 * yields: it answers the other's REQ and drops its own. The other end repeats its REQ,
 * because the first one may have come too early.
 *
 * An epoch names one attempt of one end. Frames of an older attempt, and answers to one,
 * are STALE and change nothing.
 *
 * Epochs count up, so anybody can guess one. Each attempt also has a mark: a random
 * number that only the peer is told. A frame that names our current attempt must have its
 * mark. Otherwise it is STALE, whatever its kind. So a sender that takes us to UP has
 * heard our REQ or REP.
 *
 * A first REQ has no mark to prove that. An interface with too many first REQs keeps
 * nothing of a further one. It answers AGAIN, with a mark for the repeated REQ to carry.
 *
 * A connection outlives its QP. The QP fails, or a new REQ tells that the peer's QP has
 * failed. The old QP is then drained (LOST). After that the count of what it delivered is
 * final, and the next REQ or REP may tell it.
 *
 * Who drains answers each REQ with an AGAIN: a program that computes drains nothing, for
 * as long as it likes, and its peer must not take it for dead. So the time limit of the
 * peer's attempt counts from the last AGAIN.
 *
 * A REQ after a loss names the attempt of the peer that its sender was connected to
 * (peer_epoch). Every frame names its sender's first attempt. So an end can tell a peer
 * that lost a QP from one that forgot the connection. A forgotten connection ends on both
 * sides.
 *
 * Nothing here does I/O or reads a clock. The caller performs the actions, in the order
 * of their bits, and reports timeouts as events.
 *
 * Threads: one, which owns the handshake.
 */
#ifndef DQ_CONN_H
#define DQ_CONN_H

#include "dq_wire.h"

typedef enum {
    DQ_CONN_IDLE,     /* nothing known                                       */
    DQ_CONN_REQ_SENT, /* our QP is in INIT: we wait for the peer's           */
    DQ_CONN_REP_SENT, /* our QP is in RTS, the peer's may not be: no data    */
    DQ_CONN_UP,       /* both QPs carry data                                 */
    DQ_CONN_LOST,     /* the QP failed or closed; what it received is delivered */
    DQ_CONN_RESTING,  /* no QP, and nobody wants one                         */
    DQ_CONN_DEAD,     /* failed; posted requests are drained                 */
    DQ_CONN_STATE_LAST
} dq_conn_state_t;

typedef enum {
    DQ_EV_OPEN,      /* a local endpoint wants the peer                      */
    DQ_EV_REQ,       /* a REQ that is new to us: a first one, or after a loss */
    DQ_EV_REQ_CROSS, /* a REQ that crossed ours, and the peer will yield     */
    DQ_EV_REQ_DUP,   /* the REQ that we have answered, again                 */
    DQ_EV_FORGOT,    /* a REQ: the peer begins anew, we hold the old conn    */
    DQ_EV_UNKNOWN,   /* a REQ after the loss of a QP unknown to us           */
    DQ_EV_REP,       /* an answer to our REQ                                 */
    DQ_EV_AGAIN,     /* the peer wants our first REQ with a mark             */
    DQ_EV_WAIT,      /* the peer has our REQ, and still drains its lost QP   */
    DQ_EV_RTU,       /* the peer's QP is ready, or data came on ours         */
    DQ_EV_REFUSE,    /* the peer refuses to connect                          */
    DQ_EV_GONE,      /* the peer has ended the connection                    */
    DQ_EV_STALE,     /* a frame of, or about, an older attempt               */
    DQ_EV_TICK,      /* the retry timer ran out                              */
    DQ_EV_EXPIRE,    /* the retry timer and the time limit ran out           */
    DQ_EV_LOSE,      /* our QP failed, a new one may work                    */
    DQ_EV_DRAINED,   /* all that the lost QP had received is delivered       */
    DQ_EV_REST,      /* the same, and nobody here wants another QP           */
    DQ_EV_QP_ERROR,  /* our QP failed, a new one would not help              */
    DQ_EV_VERB_FAIL, /* an action failed                                     */
    DQ_EV_NO_QP,     /* an action failed, another QP may help                */
    DQ_EV_LAST
} dq_conn_event_t;

/* The actions. The caller performs them in this order. */
enum {
    DQ_ACT_QP_CLOSE   = 1 << 0,  /* destroy the lost QP                      */
    DQ_ACT_QP_CREATE  = 1 << 1,  /* create a QP in INIT, with RECVs          */
    DQ_ACT_QP_CONNECT = 1 << 2,  /* INIT -> RTR -> RTS, to the frame's QP    */
    DQ_ACT_SEND_REQ   = 1 << 3,
    DQ_ACT_SEND_REP   = 1 << 4,
    DQ_ACT_SEND_RTU   = 1 << 5,
    DQ_ACT_SEND_AGAIN = 1 << 6,  /* answer the frame's REQ by an AGAIN       */
    DQ_ACT_REFUSE     = 1 << 7,  /* send a REFUSE                            */
    DQ_ACT_TIMER_ARM  = 1 << 8,
    DQ_ACT_TIMER_RENEW = 1 << 9, /* the time limit counts from now           */
    DQ_ACT_TIMER_STOP = 1 << 10,
    DQ_ACT_POST_UP    = 1 << 11, /* the ledger's owner may post              */
    DQ_ACT_POST_LOST  = 1 << 12, /* the ledger's owner must drain, then DRAINED */
    DQ_ACT_POST_DEAD  = 1 << 13, /* the ledger's owner must drain; no QP follows */
    DQ_ACT_COUNT_DUP  = 1 << 14, /* count a frame that changed nothing       */
    DQ_ACT_LAST_BIT   = 1 << 15
};

typedef struct {
    dq_conn_state_t state;
    int             yields;     /* our uuid is the lower one                 */
    uint32_t        epoch;      /* of our current attempt; 0 before one      */
    uint32_t        first;      /* of our first attempt                      */
    uint32_t        peer_epoch; /* of the peer's attempt that our QP is
                                   connected to; 0: none                     */
    uint32_t        peer_last;  /* the last peer_epoch that was not 0        */
    uint32_t        peer_first; /* the peer's first attempt; 0: unknown      */
    uint64_t        mark;       /* of our current attempt; the caller draws it
                                   with DQ_ACT_QP_CREATE                     */
    uint64_t        peer_mark;  /* of peer_last; before that, of an AGAIN    */
    uint32_t        heard;      /* the peer's attempt whose REQ crossed ours, */
    uint64_t        heard_mark; /* and its mark; 0: none                     */
    int             is_wanted;  /* the peer has asked for a QP since ours was lost */
} dq_conn_t;

void dq_conn_init(dq_conn_t *conn, uint64_t my_uuid, uint64_t peer_uuid);

/* Whether the frame names our current attempt without its mark. */
int dq_conn_is_forged(const dq_conn_t *conn, const dq_frame_t *frame);

/* Enters in our GONE the attempt of the peer that it ends: the one that we are connected
 * to, or else the one whose REQ crossed ours. */
void dq_conn_name_ended(const dq_conn_t *conn, dq_frame_t *frame);

/* Whether this GONE is about the connection that we hold, and not an earlier one. */
int dq_conn_is_ended_by(const dq_conn_t *conn, const dq_frame_t *frame);

/* Returns the event that this frame is in this state. Changes nothing. */
dq_conn_event_t dq_conn_classify(const dq_conn_t *conn,
                                 const dq_frame_t *frame);

/*
 * Performs one step and returns the actions. @a frame is the frame behind the event, or
 * NULL. A new attempt takes @a next_epoch, which the caller counts up; it is never 0.
 */
uint32_t dq_conn_step(dq_conn_t *conn, dq_conn_event_t event,
                      const dq_frame_t *frame, uint32_t next_epoch);

/* True if epoch @a a is newer than @a b; epochs wrap. */
static inline int dq_epoch_is_newer(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

const char *dq_conn_state_name(dq_conn_state_t state);
const char *dq_conn_event_name(dq_conn_event_t event);
const char *dq_conn_action_name(uint32_t bit);

/* A cell of the table. A test prints all of them into docs/states.md. */
typedef struct {
    dq_conn_state_t next;
    uint32_t        actions;
} dq_conn_cell_t;

dq_conn_cell_t dq_conn_cell(dq_conn_state_t state, dq_conn_event_t event);

#endif
