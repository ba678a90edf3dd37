/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_conn.h"

#define QP_OLD   DQ_ACT_QP_CLOSE
#define QP_NEW   DQ_ACT_QP_CREATE
#define CONNECT  DQ_ACT_QP_CONNECT
#define REQ      DQ_ACT_SEND_REQ
#define REP      DQ_ACT_SEND_REP
#define RTU      DQ_ACT_SEND_RTU
#define AGAIN    DQ_ACT_SEND_AGAIN
#define REFUSE   DQ_ACT_REFUSE
#define TIMER    DQ_ACT_TIMER_ARM
#define RENEW    DQ_ACT_TIMER_RENEW
#define NO_TIMER DQ_ACT_TIMER_STOP
#define UP       DQ_ACT_POST_UP
#define LOST     DQ_ACT_POST_LOST
#define DEATH    (DQ_ACT_TIMER_STOP | DQ_ACT_POST_DEAD)
#define DUP      DQ_ACT_COUNT_DUP

/*
 * Rows: states. Columns: events. `present` marks a written cell; a unit test checks that
 * none is missing.
 *
 * A peer that FORGOT the connection begins anew. What was under way is lost, so this end
 * must give the connection up, too. While local endpoints hold the dead connection, the
 * peer's next REQ is refused. After that it opens a new one.
 */
static const struct {
    uint8_t  present;
    uint8_t  next;
    uint16_t actions;
} dq_conn_table[DQ_CONN_STATE_LAST][DQ_EV_LAST] = {
    [DQ_CONN_IDLE] = {
        [DQ_EV_OPEN]      = {1, DQ_CONN_REQ_SENT, QP_NEW | REQ | TIMER},
        [DQ_EV_REQ]       = {1, DQ_CONN_REP_SENT,
                             QP_NEW | CONNECT | REP | TIMER},
        [DQ_EV_REQ_CROSS] = {1, DQ_CONN_IDLE, DUP},
        [DQ_EV_REQ_DUP]   = {1, DQ_CONN_IDLE, DUP},
        [DQ_EV_FORGOT]    = {1, DQ_CONN_IDLE, DUP},
        [DQ_EV_UNKNOWN]   = {1, DQ_CONN_IDLE, REFUSE},
        [DQ_EV_REP]       = {1, DQ_CONN_IDLE, DUP},
        [DQ_EV_AGAIN]     = {1, DQ_CONN_IDLE, DUP},
        [DQ_EV_WAIT]      = {1, DQ_CONN_IDLE, DUP},
        [DQ_EV_RTU]       = {1, DQ_CONN_IDLE, DUP},
        [DQ_EV_REFUSE]    = {1, DQ_CONN_IDLE, DUP},
        [DQ_EV_GONE]      = {1, DQ_CONN_IDLE, DUP},
        [DQ_EV_STALE]     = {1, DQ_CONN_IDLE, DUP},
        [DQ_EV_TICK]      = {1, DQ_CONN_IDLE, 0},
        [DQ_EV_EXPIRE]    = {1, DQ_CONN_IDLE, 0},
        [DQ_EV_LOSE]      = {1, DQ_CONN_IDLE, 0},
        [DQ_EV_DRAINED]   = {1, DQ_CONN_IDLE, 0},
        [DQ_EV_REST]      = {1, DQ_CONN_IDLE, 0},
        [DQ_EV_QP_ERROR]  = {1, DQ_CONN_IDLE, 0},
        [DQ_EV_VERB_FAIL] = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_NO_QP]     = {1, DQ_CONN_IDLE, 0},
    },
    [DQ_CONN_REQ_SENT] = {
        [DQ_EV_OPEN]      = {1, DQ_CONN_REQ_SENT, 0},
        [DQ_EV_REQ]       = {1, DQ_CONN_REP_SENT, CONNECT | REP | TIMER},
        [DQ_EV_REQ_CROSS] = {1, DQ_CONN_REQ_SENT, REQ | DUP},
        [DQ_EV_REQ_DUP]   = {1, DQ_CONN_REQ_SENT, DUP},
        [DQ_EV_FORGOT]    = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_UNKNOWN]   = {1, DQ_CONN_REQ_SENT, REFUSE},
        [DQ_EV_REP]       = {1, DQ_CONN_UP, CONNECT | RTU | NO_TIMER | UP},
        [DQ_EV_AGAIN]     = {1, DQ_CONN_REQ_SENT, REQ},
        [DQ_EV_WAIT]      = {1, DQ_CONN_REQ_SENT, RENEW},
        [DQ_EV_RTU]       = {1, DQ_CONN_REQ_SENT, DUP},
        [DQ_EV_REFUSE]    = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_GONE]      = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_STALE]     = {1, DQ_CONN_REQ_SENT, DUP},
        [DQ_EV_TICK]      = {1, DQ_CONN_REQ_SENT, REQ | TIMER},
        [DQ_EV_EXPIRE]    = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_LOSE]      = {1, DQ_CONN_REQ_SENT, 0},
        [DQ_EV_DRAINED]   = {1, DQ_CONN_REQ_SENT, 0},
        [DQ_EV_REST]      = {1, DQ_CONN_REQ_SENT, 0},
        [DQ_EV_QP_ERROR]  = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_VERB_FAIL] = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_NO_QP]     = {1, DQ_CONN_LOST, NO_TIMER | LOST},
    },
    [DQ_CONN_REP_SENT] = {
        [DQ_EV_OPEN]      = {1, DQ_CONN_REP_SENT, 0},
        [DQ_EV_REQ]       = {1, DQ_CONN_LOST, NO_TIMER | LOST},
        [DQ_EV_REQ_CROSS] = {1, DQ_CONN_REP_SENT, DUP},
        [DQ_EV_REQ_DUP]   = {1, DQ_CONN_REP_SENT, REP | TIMER | DUP},
        [DQ_EV_FORGOT]    = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_UNKNOWN]   = {1, DQ_CONN_REP_SENT, REFUSE},
        [DQ_EV_REP]       = {1, DQ_CONN_REP_SENT, DUP},
        [DQ_EV_AGAIN]     = {1, DQ_CONN_REP_SENT, DUP},
        [DQ_EV_WAIT]      = {1, DQ_CONN_REP_SENT, DUP},
        [DQ_EV_RTU]       = {1, DQ_CONN_UP, NO_TIMER | UP},
        [DQ_EV_REFUSE]    = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_GONE]      = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_STALE]     = {1, DQ_CONN_REP_SENT, DUP},
        [DQ_EV_TICK]      = {1, DQ_CONN_REP_SENT, REP | TIMER},
        [DQ_EV_EXPIRE]    = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_LOSE]      = {1, DQ_CONN_LOST, NO_TIMER},
        [DQ_EV_DRAINED]   = {1, DQ_CONN_REP_SENT, 0},
        [DQ_EV_REST]      = {1, DQ_CONN_REP_SENT, 0},
        [DQ_EV_QP_ERROR]  = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_VERB_FAIL] = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_NO_QP]     = {1, DQ_CONN_LOST, NO_TIMER | LOST},
    },
    [DQ_CONN_UP] = {
        [DQ_EV_OPEN]      = {1, DQ_CONN_UP, 0},
        [DQ_EV_REQ]       = {1, DQ_CONN_LOST, LOST},
        [DQ_EV_REQ_CROSS] = {1, DQ_CONN_UP, DUP},
        [DQ_EV_REQ_DUP]   = {1, DQ_CONN_UP, DUP},
        [DQ_EV_FORGOT]    = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_UNKNOWN]   = {1, DQ_CONN_UP, REFUSE},
        [DQ_EV_REP]       = {1, DQ_CONN_UP, RTU | DUP},
        [DQ_EV_AGAIN]     = {1, DQ_CONN_UP, DUP},
        [DQ_EV_WAIT]      = {1, DQ_CONN_UP, DUP},
        [DQ_EV_RTU]       = {1, DQ_CONN_UP, DUP},
        [DQ_EV_REFUSE]    = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_GONE]      = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_STALE]     = {1, DQ_CONN_UP, DUP},
        [DQ_EV_TICK]      = {1, DQ_CONN_UP, 0},
        [DQ_EV_EXPIRE]    = {1, DQ_CONN_UP, 0},
        [DQ_EV_LOSE]      = {1, DQ_CONN_LOST, 0},
        [DQ_EV_DRAINED]   = {1, DQ_CONN_UP, 0},
        [DQ_EV_REST]      = {1, DQ_CONN_UP, 0},
        [DQ_EV_QP_ERROR]  = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_VERB_FAIL] = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_NO_QP]     = {1, DQ_CONN_LOST, NO_TIMER | LOST},
    },
    [DQ_CONN_LOST] = {
        [DQ_EV_OPEN]      = {1, DQ_CONN_LOST, 0},
        [DQ_EV_REQ]       = {1, DQ_CONN_LOST, AGAIN | DUP},
        [DQ_EV_REQ_CROSS] = {1, DQ_CONN_LOST, DUP},
        [DQ_EV_REQ_DUP]   = {1, DQ_CONN_LOST, AGAIN | DUP},
        [DQ_EV_FORGOT]    = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_UNKNOWN]   = {1, DQ_CONN_LOST, REFUSE},
        [DQ_EV_REP]       = {1, DQ_CONN_LOST, DUP},
        [DQ_EV_AGAIN]     = {1, DQ_CONN_LOST, DUP},
        [DQ_EV_WAIT]      = {1, DQ_CONN_LOST, DUP},
        [DQ_EV_RTU]       = {1, DQ_CONN_LOST, DUP},
        [DQ_EV_REFUSE]    = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_GONE]      = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_STALE]     = {1, DQ_CONN_LOST, DUP},
        [DQ_EV_TICK]      = {1, DQ_CONN_LOST, 0},
        [DQ_EV_EXPIRE]    = {1, DQ_CONN_LOST, 0},
        [DQ_EV_LOSE]      = {1, DQ_CONN_LOST, 0},
        [DQ_EV_DRAINED]   = {1, DQ_CONN_REQ_SENT,
                             QP_OLD | QP_NEW | REQ | TIMER},
        [DQ_EV_REST]      = {1, DQ_CONN_RESTING, QP_OLD},
        [DQ_EV_QP_ERROR]  = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_VERB_FAIL] = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_NO_QP]     = {1, DQ_CONN_LOST, 0},
    },
    [DQ_CONN_RESTING] = {
        [DQ_EV_OPEN]      = {1, DQ_CONN_REQ_SENT, QP_NEW | REQ | TIMER},
        [DQ_EV_REQ]       = {1, DQ_CONN_REP_SENT,
                             QP_NEW | CONNECT | REP | TIMER},
        [DQ_EV_REQ_CROSS] = {1, DQ_CONN_RESTING, DUP},
        [DQ_EV_REQ_DUP]   = {1, DQ_CONN_RESTING, DUP},
        [DQ_EV_FORGOT]    = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_UNKNOWN]   = {1, DQ_CONN_RESTING, REFUSE},
        [DQ_EV_REP]       = {1, DQ_CONN_RESTING, DUP},
        [DQ_EV_AGAIN]     = {1, DQ_CONN_RESTING, DUP},
        [DQ_EV_WAIT]      = {1, DQ_CONN_RESTING, DUP},
        [DQ_EV_RTU]       = {1, DQ_CONN_RESTING, DUP},
        [DQ_EV_REFUSE]    = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_GONE]      = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_STALE]     = {1, DQ_CONN_RESTING, DUP},
        [DQ_EV_TICK]      = {1, DQ_CONN_RESTING, 0},
        [DQ_EV_EXPIRE]    = {1, DQ_CONN_RESTING, 0},
        [DQ_EV_LOSE]      = {1, DQ_CONN_RESTING, 0},
        [DQ_EV_DRAINED]   = {1, DQ_CONN_RESTING, 0},
        [DQ_EV_REST]      = {1, DQ_CONN_RESTING, 0},
        [DQ_EV_QP_ERROR]  = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_VERB_FAIL] = {1, DQ_CONN_DEAD, DEATH},
        [DQ_EV_NO_QP]     = {1, DQ_CONN_RESTING, 0},
    },
    [DQ_CONN_DEAD] = {
        [DQ_EV_OPEN]      = {1, DQ_CONN_DEAD, 0},
        [DQ_EV_REQ]       = {1, DQ_CONN_DEAD, REFUSE},
        [DQ_EV_REQ_CROSS] = {1, DQ_CONN_DEAD, REFUSE},
        [DQ_EV_REQ_DUP]   = {1, DQ_CONN_DEAD, REFUSE},
        [DQ_EV_FORGOT]    = {1, DQ_CONN_DEAD, REFUSE},
        [DQ_EV_UNKNOWN]   = {1, DQ_CONN_DEAD, REFUSE},
        [DQ_EV_REP]       = {1, DQ_CONN_DEAD, REFUSE},
        [DQ_EV_AGAIN]     = {1, DQ_CONN_DEAD, DUP},
        [DQ_EV_WAIT]      = {1, DQ_CONN_DEAD, DUP},
        [DQ_EV_RTU]       = {1, DQ_CONN_DEAD, DUP},
        [DQ_EV_REFUSE]    = {1, DQ_CONN_DEAD, DUP},
        [DQ_EV_GONE]      = {1, DQ_CONN_DEAD, DUP},
        [DQ_EV_STALE]     = {1, DQ_CONN_DEAD, DUP},
        [DQ_EV_TICK]      = {1, DQ_CONN_DEAD, 0},
        [DQ_EV_EXPIRE]    = {1, DQ_CONN_DEAD, 0},
        [DQ_EV_LOSE]      = {1, DQ_CONN_DEAD, 0},
        [DQ_EV_DRAINED]   = {1, DQ_CONN_DEAD, 0},
        [DQ_EV_REST]      = {1, DQ_CONN_DEAD, 0},
        [DQ_EV_QP_ERROR]  = {1, DQ_CONN_DEAD, 0},
        [DQ_EV_VERB_FAIL] = {1, DQ_CONN_DEAD, 0},
        [DQ_EV_NO_QP]     = {1, DQ_CONN_DEAD, 0},
    },
};


void dq_conn_init(dq_conn_t *conn, uint64_t my_uuid, uint64_t peer_uuid)
{
    *conn = (dq_conn_t){
        .state  = DQ_CONN_IDLE,
        .yields = my_uuid < peer_uuid,
    };
}


/* Whether the epoch names one of our attempts, from the first to the current. */
static int dq_conn_is_mine(const dq_conn_t *conn, uint32_t epoch)
{
    return (conn->epoch != 0) && !dq_epoch_is_newer(conn->first, epoch) &&
           !dq_epoch_is_newer(epoch, conn->epoch);
}


/* Whether the peer can have lost a QP that was connected to this attempt of ours. If we
 * are UP, that is the current attempt. In any other state we may be ahead of the peer. */
static int dq_conn_is_known(const dq_conn_t *conn, uint32_t epoch)
{
    if (conn->state == DQ_CONN_UP) {
        return epoch == conn->epoch;
    }
    return (epoch == 0) || dq_conn_is_mine(conn, epoch);
}


static dq_conn_event_t dq_conn_classify_req(const dq_conn_t *conn,
                                            const dq_frame_t *frame)
{
    if ((conn->peer_epoch != 0) && (frame->epoch == conn->peer_epoch)) {
        return DQ_EV_REQ_DUP;
    }
    if ((conn->peer_last != 0) &&
        !dq_epoch_is_newer(frame->epoch, conn->peer_last)) {
        return DQ_EV_STALE;
    }
    if ((conn->peer_first != 0) && (frame->first != conn->peer_first)) {
        return DQ_EV_FORGOT;
    }
    if (!dq_conn_is_known(conn, frame->peer_epoch)) {
        return DQ_EV_UNKNOWN;
    }
    /* A peer that names our current attempt has answered it already, and lost the QP.
     * Our REQ is stale to that peer, so the REQs do not cross. */
    if ((conn->state == DQ_CONN_REQ_SENT) && !conn->yields &&
        (frame->peer_epoch != conn->epoch)) {
        return DQ_EV_REQ_CROSS;
    }
    return DQ_EV_REQ;
}


int dq_conn_is_forged(const dq_conn_t *conn, const dq_frame_t *frame)
{
    return (conn->epoch != 0) && (frame->peer_epoch == conn->epoch) &&
           (frame->peer_mark != conn->mark);
}


/* Whether the frame answers our current attempt. It must come from the attempt of the
 * peer that our QP is connected to, if it is connected. */
static int dq_conn_is_answer(const dq_conn_t *conn, const dq_frame_t *frame)
{
    return (conn->epoch != 0) && (frame->peer_epoch == conn->epoch) &&
           ((conn->peer_epoch == 0) || (frame->epoch == conn->peer_epoch));
}


/* A peer whose REQ crossed ours, and has no answer yet, knows no other attempt that could
 * end. */
void dq_conn_name_ended(const dq_conn_t *conn, dq_frame_t *frame)
{
    int is_connected = conn->peer_epoch != 0;

    frame->peer_epoch = is_connected ? conn->peer_epoch : conn->heard;
    frame->peer_mark  = is_connected ? conn->peer_mark : conn->heard_mark;
}


/* The peer's first attempt identifies a connection. Before we know it, only a GONE that
 * names our attempt counts. Any other is about an earlier connection, or is forged. */
int dq_conn_is_ended_by(const dq_conn_t *conn, const dq_frame_t *frame)
{
    if (conn->peer_first == 0) {
        return dq_conn_is_answer(conn, frame);
    }
    return (frame->first == conn->peer_first) &&
           !dq_epoch_is_newer(conn->peer_last, frame->epoch);
}


/* To a first REQ an AGAIN brings a mark. If we have that mark already, the REQ waits for
 * the timer. After the loss of a QP, the AGAIN says that the peer drains. */
static dq_conn_event_t dq_conn_classify_again(const dq_conn_t *conn,
                                              const dq_frame_t *frame)
{
    if (!dq_conn_is_answer(conn, frame)) {
        return DQ_EV_STALE;
    }
    if (conn->peer_last != 0) {
        return DQ_EV_WAIT;
    }
    return (conn->peer_mark != frame->mark) ? DQ_EV_AGAIN : DQ_EV_STALE;
}


dq_conn_event_t dq_conn_classify(const dq_conn_t *conn,
                                 const dq_frame_t *frame)
{
    if (dq_conn_is_forged(conn, frame)) {
        return DQ_EV_STALE;
    }
    switch (frame->kind) {
    case DQ_FRAME_REQ:
        return dq_conn_classify_req(conn, frame);
    case DQ_FRAME_GONE:
        return dq_conn_is_ended_by(conn, frame) ? DQ_EV_GONE : DQ_EV_STALE;
    case DQ_FRAME_REFUSE:
        return dq_conn_is_answer(conn, frame) ? DQ_EV_REFUSE : DQ_EV_STALE;
    case DQ_FRAME_REP:
        return dq_conn_is_answer(conn, frame) ? DQ_EV_REP : DQ_EV_STALE;
    case DQ_FRAME_RTU:
        return dq_conn_is_answer(conn, frame) ? DQ_EV_RTU : DQ_EV_STALE;
    case DQ_FRAME_AGAIN:
        return dq_conn_classify_again(conn, frame);
    default:
        return DQ_EV_STALE;
    }
}


uint32_t dq_conn_step(dq_conn_t *conn, dq_conn_event_t event,
                      const dq_frame_t *frame, uint32_t next_epoch)
{
    dq_conn_cell_t cell;

    if (conn->state == DQ_CONN_LOST) {
        conn->is_wanted |= event == DQ_EV_REQ;
        if ((event == DQ_EV_REST) && conn->is_wanted) {
            event = DQ_EV_DRAINED; /* the peer waits */
        }
    }
    cell = dq_conn_cell(conn->state, event);
    if (cell.actions & DQ_ACT_QP_CREATE) {
        conn->is_wanted  = 0;
        conn->epoch      = next_epoch;
        conn->first      = (conn->first == 0) ? next_epoch : conn->first;
        conn->mark       = 0;
        conn->peer_epoch = 0;
    }
    if ((cell.actions & DQ_ACT_QP_CONNECT) && (frame != NULL)) {
        conn->peer_epoch = frame->epoch;
        conn->peer_last  = frame->epoch;
        conn->peer_first = frame->first;
        conn->peer_mark  = frame->mark;
        conn->heard      = 0;
        conn->heard_mark = 0;
    }
    if ((event == DQ_EV_AGAIN) && (frame != NULL)) {
        conn->peer_mark = frame->mark;
    }
    if ((event == DQ_EV_REQ_CROSS) && (frame != NULL)) {
        conn->heard      = frame->epoch;
        conn->heard_mark = frame->mark;
    }
    conn->state = cell.next;
    return cell.actions;
}


dq_conn_cell_t dq_conn_cell(dq_conn_state_t state, dq_conn_event_t event)
{
    DQ_ASSERT(dq_conn_table[state][event].present);
    return (dq_conn_cell_t){
        .next    = (dq_conn_state_t)dq_conn_table[state][event].next,
        .actions = dq_conn_table[state][event].actions,
    };
}


const char *dq_conn_state_name(dq_conn_state_t state)
{
    static const char *const names[DQ_CONN_STATE_LAST] = {
        [DQ_CONN_IDLE]     = "IDLE",
        [DQ_CONN_REQ_SENT] = "REQ_SENT",
        [DQ_CONN_REP_SENT] = "REP_SENT",
        [DQ_CONN_UP]       = "UP",
        [DQ_CONN_LOST]     = "LOST",
        [DQ_CONN_RESTING]  = "RESTING",
        [DQ_CONN_DEAD]     = "DEAD",
    };

    return (state < DQ_CONN_STATE_LAST) ? names[state] : "?";
}


const char *dq_conn_event_name(dq_conn_event_t event)
{
    static const char *const names[DQ_EV_LAST] = {
        [DQ_EV_OPEN]      = "OPEN",
        [DQ_EV_REQ]       = "REQ",
        [DQ_EV_REQ_CROSS] = "REQ_CROSS",
        [DQ_EV_REQ_DUP]   = "REQ_DUP",
        [DQ_EV_FORGOT]    = "FORGOT",
        [DQ_EV_UNKNOWN]   = "UNKNOWN",
        [DQ_EV_REP]       = "REP",
        [DQ_EV_AGAIN]     = "AGAIN",
        [DQ_EV_WAIT]      = "WAIT",
        [DQ_EV_RTU]       = "RTU",
        [DQ_EV_REFUSE]    = "REFUSE",
        [DQ_EV_GONE]      = "GONE",
        [DQ_EV_STALE]     = "STALE",
        [DQ_EV_TICK]      = "TICK",
        [DQ_EV_EXPIRE]    = "EXPIRE",
        [DQ_EV_LOSE]      = "LOSE",
        [DQ_EV_DRAINED]   = "DRAINED",
        [DQ_EV_REST]      = "REST",
        [DQ_EV_QP_ERROR]  = "QP_ERROR",
        [DQ_EV_VERB_FAIL] = "VERB_FAIL",
        [DQ_EV_NO_QP]     = "NO_QP",
    };

    return (event < DQ_EV_LAST) ? names[event] : "?";
}


const char *dq_conn_action_name(uint32_t bit)
{
    switch (bit) {
    case DQ_ACT_QP_CLOSE:
        return "close QP";
    case DQ_ACT_QP_CREATE:
        return "create QP";
    case DQ_ACT_QP_CONNECT:
        return "connect QP";
    case DQ_ACT_SEND_REQ:
        return "send REQ";
    case DQ_ACT_SEND_REP:
        return "send REP";
    case DQ_ACT_SEND_RTU:
        return "send RTU";
    case DQ_ACT_SEND_AGAIN:
        return "send AGAIN";
    case DQ_ACT_REFUSE:
        return "send REFUSE";
    case DQ_ACT_TIMER_ARM:
        return "arm timer";
    case DQ_ACT_TIMER_RENEW:
        return "renew limit";
    case DQ_ACT_TIMER_STOP:
        return "stop timer";
    case DQ_ACT_POST_UP:
        return "tell up";
    case DQ_ACT_POST_LOST:
        return "tell lost";
    case DQ_ACT_POST_DEAD:
        return "tell dead";
    case DQ_ACT_COUNT_DUP:
        return "count";
    default:
        return "?";
    }
}
