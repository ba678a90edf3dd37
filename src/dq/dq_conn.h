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
 * and from everywhere to DEAD: attempts exhausted, refusal, an error that no
 * new QP cures, peer gone. A frame first becomes an event (dq_conn_classify),
 * by its kind, its epochs and who yields; then the table is looked up. No cell
 * is missing: late, repeated and reordered frames are legal and have stated
 * answers.
 *
 * Both ends may open at once. Then both have sent a REQ, and the end with the
 * lower uuid yields: it answers the other's REQ and forgets its own. The other
 * end says its REQ again, for the first one may have come too early.
 *
 * An epoch names one attempt of one end. Frames of an older attempt, or that
 * answer one, are STALE and change nothing.
 *
 * Epochs are counted, so anybody can guess one. Each attempt has a mark besides,
 * which is drawn, and told to the peer alone. A frame that names our current
 * attempt must have its mark, or it is STALE, whatever it is: so who takes us to
 * UP has heard our REQ or REP.
 *
 * A first REQ shows nothing of the kind. An interface to which too many say one
 * keeps nothing of another, and answers AGAIN, with a mark that the REQ is to have.
 *
 * A connection outlives its QP. When that dies, or the peer says in a new REQ
 * that its own has died, the old one is drained (LOST): only then it is final
 * how much it has delivered, and the next REQ or REP may say so. A REQ that
 * follows a loss names the attempt of the peer that it was connected to
 * (peer_epoch), and every frame its sender's first attempt: so who has
 * forgotten a connection is told from who has lost a QP. The former ends it, on
 * both sides.
 *
 * Nothing here does I/O: the caller performs the actions, in the order of
 * their bits, and passes the time in.
 *
 * Threads: one (the one that owns the handshake).
 */
#ifndef DQ_CONN_H
#define DQ_CONN_H

#include "dq_wire.h"

typedef enum {
    DQ_CONN_IDLE,     /* nothing known                                       */
    DQ_CONN_REQ_SENT, /* our QP is in INIT, waiting for the peer's           */
    DQ_CONN_REP_SENT, /* our QP is in RTS, the peer's may not be: no sending */
    DQ_CONN_UP,       /* both QPs carry data                                 */
    DQ_CONN_LOST,     /* the QP is gone; what it has received is delivered   */
    DQ_CONN_DEAD,     /* over; what was posted is being drained              */
    DQ_CONN_STATE_LAST
} dq_conn_state_t;

typedef enum {
    DQ_EV_OPEN,      /* a local endpoint wants the peer                      */
    DQ_EV_REQ,       /* a REQ that is new to us: a first one, or after a loss */
    DQ_EV_REQ_CROSS, /* a REQ that crossed ours, and the peer will yield     */
    DQ_EV_REQ_DUP,   /* the REQ that we have answered, again                 */
    DQ_EV_FORGOT,    /* a REQ of a peer that begins anew what we still hold  */
    DQ_EV_UNKNOWN,   /* a REQ after the loss of a QP that we know nothing of */
    DQ_EV_REP,       /* an answer to our REQ                                 */
    DQ_EV_AGAIN,     /* the peer wants our first REQ with a mark             */
    DQ_EV_RTU,       /* the peer's QP is ready; or data came on ours         */
    DQ_EV_REFUSE,    /* the peer will not                                    */
    DQ_EV_GONE,      /* the peer has ended it                                */
    DQ_EV_STALE,     /* any frame of, or about, an attempt that is over      */
    DQ_EV_TICK,      /* the retry timer ran out                              */
    DQ_EV_EXPIRE,    /* it ran out, and so did the time limit                */
    DQ_EV_LOSE,      /* our QP died, and a new one may do                    */
    DQ_EV_DRAINED,   /* all that the lost QP had received is delivered       */
    DQ_EV_QP_ERROR,  /* our QP died, and a new one would not help            */
    DQ_EV_VERB_FAIL, /* an action could not be performed                     */
    DQ_EV_NO_QP,     /* the same, and with another QP it may be              */
    DQ_EV_LAST
} dq_conn_event_t;

/* What the caller has to do, in this order. */
enum {
    DQ_ACT_QP_CLOSE   = 1 << 0,  /* destroy the QP that was lost             */
    DQ_ACT_QP_CREATE  = 1 << 1,  /* a QP in INIT, with RECVs behind it       */
    DQ_ACT_QP_CONNECT = 1 << 2,  /* INIT -> RTR -> RTS, to the frame's QP    */
    DQ_ACT_SEND_REQ   = 1 << 3,
    DQ_ACT_SEND_REP   = 1 << 4,
    DQ_ACT_SEND_RTU   = 1 << 5,
    DQ_ACT_REFUSE     = 1 << 6,  /* send a REFUSE                            */
    DQ_ACT_TIMER_ARM  = 1 << 7,
    DQ_ACT_TIMER_STOP = 1 << 8,
    DQ_ACT_POST_UP    = 1 << 9,  /* the owner of the ledger may post         */
    DQ_ACT_POST_LOST  = 1 << 10, /* it must drain, and say DRAINED           */
    DQ_ACT_POST_DEAD  = 1 << 11, /* it must drain; this is the end           */
    DQ_ACT_COUNT_DUP  = 1 << 12, /* a frame that changed nothing             */
    DQ_ACT_LAST_BIT   = 1 << 13
};

typedef struct {
    dq_conn_state_t state;
    int             yields;     /* our uuid is the lower one                 */
    uint32_t        epoch;      /* of our current attempt; 0 before one      */
    uint32_t        first;      /* of our first attempt                      */
    uint32_t        peer_epoch; /* of the peer's attempt that our QP is
                                   connected to; 0 if it is to none          */
    uint32_t        peer_last;  /* the last one that was not 0               */
    uint32_t        peer_first; /* the peer's first attempt, once we know it */
    uint64_t        mark;       /* of our current attempt; the caller draws it
                                   with DQ_ACT_QP_CREATE                     */
    uint64_t        peer_mark;  /* of peer_last; before, that of an AGAIN    */
    uint32_t        heard;      /* the peer's attempt whose REQ crossed ours, */
    uint64_t        heard_mark; /* and its mark; 0: none                     */
} dq_conn_t;

void dq_conn_init(dq_conn_t *conn, uint64_t my_uuid, uint64_t peer_uuid);

/* Does it name our current attempt, without its mark? */
int dq_conn_is_forged(const dq_conn_t *conn, const dq_frame_t *frame);

/* Which attempt of the peer a GONE of ours ends: what we are connected to, or have
 * heard of. It says so in *frame. */
void dq_conn_name_ended(const dq_conn_t *conn, dq_frame_t *frame);

/* Is this GONE about the connection that we hold, not about one before it? */
int dq_conn_is_ended_by(const dq_conn_t *conn, const dq_frame_t *frame);

/* Which event this frame is, in this state. Changes nothing. */
dq_conn_event_t dq_conn_classify(const dq_conn_t *conn,
                                 const dq_frame_t *frame);

/*
 * One step. @a frame is the frame behind the event, or NULL. @a next_epoch is
 * the number that a new attempt takes: the caller's own rising count, never 0.
 * Returns the actions.
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

/* The table itself, for the test that prints it into docs/states.md. */
typedef struct {
    dq_conn_state_t next;
    uint32_t        actions;
} dq_conn_cell_t;

dq_conn_cell_t dq_conn_cell(dq_conn_state_t state, dq_conn_event_t event);

#endif
