/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two connection machines and a network that forgets nothing: any frame that
 * was ever sent may arrive now, again, later, or never. That is loss,
 * duplication and reordering in one, and it makes the state of the network a
 * set, so that every state there is can be visited.
 *
 * Either end, or both, may open; send; give up; lose its QP, so that a new one
 * does or so that none does; rest without one; miss a QP that could not be made, or
 * not be connected, where another one can; fail a verb; forget the connection, with a
 * GONE or without a word, and begin again; close for good; and put off who asks,
 * with an AGAIN. In every state that can be reached this way:
 *   - two ends that are UP are UP on the same pair of attempts;
 *   - who is UP may send: the QP that it sends to is connected to its own, or
 *     is gone;
 *   - a GONE ends no connection but that of its sender: not one that both ends
 *     hold since;
 *   - who names an attempt of the peer knows its mark; and in the walks, nothing
 *     that a stranger says, who knows none, brings an end up;
 *   - what arrives is the next message, never one again and never a later one;
 *   - once the network behaves again, all ends UP/UP on one pair, or with
 *     nobody waiting and nobody UP; and if nothing but the network and QPs
 *     went wrong and somebody wanted to connect, it ends UP/UP, and all that
 *     was sent has arrived.
 */
#include "t_unit.h"
#include "dq/dq_conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIDES        = 2,
    ATTEMPTS     = 3,     /* of one side in the search                       */
    OUTBOX       = 64,
    MESSAGES     = 2,     /* of one side in the search                       */
    SETTLE       = 8,     /* rounds                                          */
    TABLE        = 1 << 22,
    MEMORY       = 48,    /* frames that the network of a walk remembers     */
    WALK_STEPS   = 50000,
    WALKS        = 24
};

typedef struct {
    dq_conn_t conn;
    uint32_t  attempts; /* QPs made so far; the epochs follow from it        */
    uint32_t  closed;
    uint32_t  losses;
    uint32_t  misses;
    uint32_t  missing;  /* the action on a QP that fails when its time comes */
    uint32_t  posted;   /* messages, ever                                    */
    uint32_t  arrived;  /* of them, at the peer, by what the current QP knows */
    uint32_t  taken;    /* messages of the peer                              */
    uint32_t  peer_took; /* of ours, as the peer's REQ or REP says           */
    uint32_t  told[ATTEMPTS + 1]; /* what our frames say of taken: it is
                                     final when the attempt begins           */
    uint32_t  first[ATTEMPTS + 1]; /* and of the first attempt               */
} side_t;

typedef struct {
    side_t   side[SIDES];
    uint64_t sent[SIDES][2]; /* the search's network: a set of frames        */
    uint32_t is_calm;     /* nothing but the network went wrong              */
    uint32_t is_wanted;   /* somebody opened                                 */
} net_t;

typedef struct {
    dq_frame_t frame[OUTBOX];
    unsigned   count;
} outbox_t;

/* What may happen at a side besides the arrival of a frame. */
typedef enum {
    DO_OPEN,
    DO_TICK,
    DO_EXPIRE,
    DO_QP_ERROR,
    DO_VERB_FAIL,
    DO_POST,    /* a message                                                 */
    DO_DATA,    /* what the peer has sent on its QP arrives                  */
    DO_LOSE,    /* the QP, so that a new one does                            */
    DO_MISS_MADE, /* the next QP cannot be made, but the one after it can    */
    DO_MISS_CONNECTED, /* or not be connected                                */
    DO_DRAINED,
    DO_REST,    /* the same, and nobody here wants a QP until the next DO_OPEN */
    DO_RESTART, /* forget everything, begin at IDLE                          */
    DO_LEAVE,   /* the same, after a GONE                                    */
    DO_CLOSE,   /* say GONE and be no more                                   */
    DO_LAST
} deed_t;

static const uint64_t uuids[SIDES] = {10, 20}; /* side 0 yields              */

/* Both ends' epochs wrap, side 0's in the search already. */
static const uint32_t first_epoch[SIDES] = {UINT32_MAX - 2, UINT32_MAX - 100};


static uint32_t epoch_of(unsigned side, uint32_t attempt)
{
    uint32_t epoch = first_epoch[side] + attempt;

    return (epoch < first_epoch[side]) ? epoch + 1 : epoch; /* 0 is "none"   */
}


/* What an end has drawn for an attempt. */
static uint64_t mark_of(uint32_t epoch)
{
    return (UINT64_C(1) << 40) + epoch;
}


/* And for its AGAINs. */
static uint64_t ticket_of(unsigned side)
{
    return (UINT64_C(1) << 50) + side;
}


static int is_alive(const side_t *side)
{
    return !side->closed && (side->conn.state != DQ_CONN_IDLE) &&
           (side->conn.state != DQ_CONN_DEAD);
}


static int is_waiting(dq_conn_state_t state)
{
    return (state == DQ_CONN_REQ_SENT) || (state == DQ_CONN_REP_SENT);
}


/* The QP of @a a sends to the QP of @a b, and that one takes it. */
static int is_linked(const side_t *a, const side_t *b)
{
    return !b->closed && (a->conn.peer_epoch == b->conn.epoch) &&
           (b->conn.peer_epoch == a->conn.epoch) &&
           ((b->conn.state == DQ_CONN_REP_SENT) ||
            (b->conn.state == DQ_CONN_UP));
}


/* The QP of @a b is being drained: what @a a had sent may still come out. */
static int is_draining(const side_t *a, const side_t *b)
{
    return !b->closed && (b->conn.state == DQ_CONN_LOST) &&
           (a->conn.peer_epoch == b->conn.epoch) &&
           (b->conn.peer_epoch == a->conn.epoch);
}


static void net_check(const net_t *net)
{
    const side_t *side;
    unsigned s;

    for (s = 0; s < SIDES; s++) {
        side = &net->side[s];
        if (side->closed || (side->conn.state != DQ_CONN_UP)) {
            continue;
        }
        T_NEED(side->conn.epoch == epoch_of(s, side->attempts));
        /* the QP that it sends to is there and connected to its own, or it
         * is there no more */
        T_NEED(is_linked(side, &net->side[1 - s]) ||
               is_draining(side, &net->side[1 - s]) ||
               !is_alive(&net->side[1 - s]) ||
               (net->side[1 - s].conn.state == DQ_CONN_RESTING) ||
               (net->side[1 - s].conn.epoch != side->conn.peer_epoch));
        if (net->side[1 - s].conn.state == DQ_CONN_UP) {
            T_NEED(net->side[1 - s].closed ||
                   is_linked(side, &net->side[1 - s]));
        }
    }
}


/* What is asked of the caller fits what the machine says that it is in. */
static void check_actions(dq_conn_state_t before, dq_conn_state_t after,
                          uint32_t actions, dq_conn_event_t event,
                          const dq_frame_t *frame)
{
    int had_link   = (before == DQ_CONN_REP_SENT) || (before == DQ_CONN_UP);
    int has_link   = (after == DQ_CONN_REP_SENT) || (after == DQ_CONN_UP);
    int has_timer  = is_waiting(before);
    int connects   = (actions & DQ_ACT_QP_CONNECT) != 0;
    uint32_t timer = actions & (DQ_ACT_TIMER_ARM | DQ_ACT_TIMER_STOP);

    T_NEED_EQ((actions & DQ_ACT_POST_UP) != 0,
              (after == DQ_CONN_UP) && (before != DQ_CONN_UP));
    T_NEED_EQ((actions & DQ_ACT_POST_DEAD) != 0,
              (after == DQ_CONN_DEAD) && (before != DQ_CONN_DEAD));
    T_NEED_EQ((actions & DQ_ACT_QP_CREATE) != 0,
              ((before == DQ_CONN_IDLE) || (before == DQ_CONN_LOST) ||
               (before == DQ_CONN_RESTING)) && is_waiting(after));
    T_NEED_EQ((actions & DQ_ACT_QP_CLOSE) != 0,
              (before == DQ_CONN_LOST) &&
                      (is_waiting(after) || (after == DQ_CONN_RESTING)));
    T_NEED_EQ((actions & DQ_ACT_POST_LOST) != 0,
              ((frame != NULL) || (event == DQ_EV_NO_QP)) &&
                      (before != DQ_CONN_LOST) && (after == DQ_CONN_LOST));
    T_NEED_EQ(connects, !had_link && has_link);
    T_NEED(!connects || (frame->kind == DQ_FRAME_REQ) ||
           (frame->kind == DQ_FRAME_REP));

    T_NEED(timer != (DQ_ACT_TIMER_ARM | DQ_ACT_TIMER_STOP));
    has_timer = (timer == 0) ? has_timer : (timer == DQ_ACT_TIMER_ARM);
    T_NEED_EQ(has_timer, is_waiting(after));

    T_NEED(!(actions & DQ_ACT_SEND_REQ) || (after == DQ_CONN_REQ_SENT));
    T_NEED(!(actions & DQ_ACT_SEND_REP) || (after == DQ_CONN_REP_SENT));
    T_NEED(!(actions & DQ_ACT_SEND_RTU) || (after == DQ_CONN_UP));
    T_NEED(!(actions & DQ_ACT_REFUSE) ||
           ((after == before) && (frame != NULL)));
    T_NEED(!(actions & DQ_ACT_SEND_AGAIN) ||
           ((after == DQ_CONN_LOST) && (frame->kind == DQ_FRAME_REQ)));
    T_NEED_EQ((actions & DQ_ACT_TIMER_RENEW) != 0,
              (before == DQ_CONN_REQ_SENT) && (event == DQ_EV_WAIT));
    T_NEED_EQ(actions & ~(DQ_ACT_LAST_BIT - 1), 0);
}


/* Who names an attempt of the peer knows its mark. */
static void outbox_put(outbox_t *outbox, const side_t *side,
                       dq_frame_kind_t kind, uint32_t peer_epoch,
                       uint64_t peer_mark)
{
    T_NEED(outbox->count < OUTBOX);
    T_NEED((peer_epoch == 0) || (peer_mark == mark_of(peer_epoch)));
    outbox->frame[outbox->count++] = (dq_frame_t){
        .kind       = kind,
        /* a machine that never made an attempt refuses under any number */
        .epoch      = (side->conn.epoch != 0) ? side->conn.epoch : 77,
        .first      = side->conn.first,
        .peer_epoch = peer_epoch,
        .mark       = side->conn.mark,
        .peer_mark  = peer_mark,
        .delivered  = side->taken,
    };
}


/* What a step means for the messages. */
static void side_count(side_t *side, uint32_t actions, const dq_frame_t *frame)
{
    if (actions & DQ_ACT_QP_CREATE) {
        side->attempts++;
        if (side->attempts <= ATTEMPTS) {
            side->told[side->attempts]  = side->taken;
            side->first[side->attempts] = side->conn.first;
        }
    }
    if (actions & DQ_ACT_QP_CONNECT) {
        side->peer_took = frame->delivered;
    }
    if (actions & DQ_ACT_POST_UP) {
        T_NEED(side->peer_took >= side->arrived);
        T_NEED(side->peer_took <= side->posted);
        side->arrived = side->peer_took;
    }
}


static void side_step(net_t *net, unsigned s, dq_conn_event_t event,
                      const dq_frame_t *frame, outbox_t *outbox)
{
    side_t *side           = &net->side[s];
    const dq_conn_t was    = side->conn;
    dq_conn_state_t before = was.state;
    uint32_t actions, missed;

    actions = dq_conn_step(&side->conn, event, frame,
                           epoch_of(s, side->attempts + 1));
    check_actions(before, side->conn.state, actions, event, frame);
    T_NEED((event != DQ_EV_WAIT) ||
           (memcmp(&was, &side->conn, sizeof(was)) == 0));
    if (actions & DQ_ACT_QP_CREATE) {
        T_NEED_EQ(side->conn.mark, 0);
        side->conn.mark = mark_of(side->conn.epoch);
    }

    missed = actions & side->missing;
    if (missed) { /* then what comes after it is not done */
        side->missing = 0;
        actions      &= missed | (missed - 1);
    }
    side_count(side, actions, frame);
    if (actions & DQ_ACT_SEND_REQ) {
        outbox_put(outbox, side, DQ_FRAME_REQ, side->conn.peer_last,
                   side->conn.peer_mark);
    }
    if (actions & DQ_ACT_SEND_REP) {
        outbox_put(outbox, side, DQ_FRAME_REP, side->conn.peer_epoch,
                   side->conn.peer_mark);
    }
    if (actions & DQ_ACT_SEND_RTU) {
        outbox_put(outbox, side, DQ_FRAME_RTU, side->conn.peer_epoch,
                   side->conn.peer_mark);
    }
    if (actions & DQ_ACT_SEND_AGAIN) {
        outbox_put(outbox, side, DQ_FRAME_AGAIN, frame->epoch, frame->mark);
    }
    if (actions & DQ_ACT_REFUSE) {
        outbox_put(outbox, side, DQ_FRAME_REFUSE, frame->epoch, frame->mark);
    }
    if (missed) {
        side_step(net, s, DQ_EV_NO_QP, NULL, outbox);
    }
}


/* Whatever is said by who has not heard of our attempts, in the name of the peer's:
 * nothing of it brings us up. */
static void side_hears_stranger(const net_t *net, unsigned s)
{
    const side_t *side = &net->side[s];
    const side_t *peer = &net->side[1 - s];
    dq_frame_t frame   = {.first = peer->conn.first,
                          .mark  = peer->conn.mark};
    dq_conn_event_t event;
    unsigned kind, i, k;

    for (kind = 0; kind < DQ_FRAME_LAST; kind++) {
        for (i = 0; i < 3; i++) {
            for (k = 0; k < 3; k++) {
                frame.kind       = kind;
                frame.epoch      = epoch_of(1 - s, peer->attempts + i);
                frame.peer_epoch = epoch_of(s, side->attempts + k - 1);
                event            = dq_conn_classify(&side->conn, &frame);
                T_NEED(!(dq_conn_cell(side->conn.state, event).actions &
                         DQ_ACT_POST_UP));
            }
        }
    }
}


static void side_receive(net_t *net, unsigned s, const dq_frame_t *frame,
                         outbox_t *outbox)
{
    const side_t *side = &net->side[s];
    const side_t *peer = &net->side[1 - s];
    dq_conn_event_t event;

    if (side->closed) {
        return;
    }
    event = dq_conn_classify(&side->conn, frame);
    T_NEED((event != DQ_EV_GONE) || (side->conn.state == DQ_CONN_DEAD) ||
           !(is_linked(peer, side) && is_alive(peer)));
    side_step(net, s, event, frame, outbox);
}


/* An end that nobody has ever asked, and of whom too many ask, may answer a first
 * REQ with an AGAIN, once; and is then as it was. Says if it could. */
static int side_puts_off(const net_t *net, unsigned s, const dq_frame_t *frame,
                         outbox_t *outbox)
{
    const side_t *side = &net->side[s];

    if (side->closed || (side->conn.state != DQ_CONN_IDLE) ||
        (frame->kind != DQ_FRAME_REQ) || (frame->peer_epoch != 0) ||
        (frame->peer_mark == ticket_of(s))) {
        return 0;
    }
    outbox_put(outbox, side, DQ_FRAME_AGAIN, frame->epoch, frame->mark);
    outbox->frame[outbox->count - 1].mark = ticket_of(s);
    return 1;
}


static void side_begin(net_t *net, unsigned s)
{
    side_t *side = &net->side[s];

    dq_conn_init(&side->conn, uuids[s], uuids[1 - s]);
    side->posted = side->arrived = side->taken = side->peer_took = 0;
    side->missing = 0;
}


/* A message of the peer, or one without a number if it has none, comes out of
 * the QP; says if there was a way for it. */
static int side_take(net_t *net, unsigned s, outbox_t *outbox)
{
    side_t *side = &net->side[s];
    side_t *peer = &net->side[1 - s];

    if ((peer->conn.state != DQ_CONN_UP) || peer->closed ||
        !(is_linked(peer, side) || is_draining(peer, side)) ||
        ((peer->arrived == peer->posted) &&
         (side->conn.state != DQ_CONN_REP_SENT))) {
        return 0;
    }
    if (peer->arrived < peer->posted) {
        T_NEED_EQ(peer->arrived, side->taken);
        peer->arrived++;
        side->taken++;
    }
    if (side->conn.state == DQ_CONN_REP_SENT) {
        side_step(net, s, DQ_EV_RTU, NULL, outbox);
    }
    return 1;
}


/* Nothing is wrong yet: it will be with the next QP. */
static int side_miss(side_t *side, uint32_t action)
{
    if (side->missing != 0) {
        return 0;
    }
    side->misses++;
    side->missing = action;
    return 1;
}


static void side_say_gone(const side_t *side, outbox_t *outbox)
{
    dq_frame_t named;

    if (is_alive(side)) {
        dq_conn_name_ended(&side->conn, &named);
        outbox_put(outbox, side, DQ_FRAME_GONE, named.peer_epoch,
                   named.peer_mark);
    }
}


/* Does what can happen there now; says if anything could. */
static int side_do(net_t *net, unsigned s, deed_t deed, outbox_t *outbox)
{
    side_t *side          = &net->side[s];
    dq_conn_state_t state = side->conn.state;
    int is_live           = is_alive(side);

    if (side->closed) {
        return 0;
    }
    switch (deed) {
    case DO_OPEN:
        net->is_wanted = 1;
        side_step(net, s, DQ_EV_OPEN, NULL, outbox);
        return 1;
    case DO_TICK:
        side_step(net, s, DQ_EV_TICK, NULL, outbox);
        return 1;
    case DO_EXPIRE:
        net->is_calm &= !is_waiting(state);
        side_step(net, s, DQ_EV_EXPIRE, NULL, outbox);
        return is_waiting(state);
    case DO_QP_ERROR:
        net->is_calm &= !is_live;
        side_step(net, s, DQ_EV_QP_ERROR, NULL, outbox);
        return is_live;
    case DO_VERB_FAIL:
        if (is_live) {
            net->is_calm = 0;
            side_step(net, s, DQ_EV_VERB_FAIL, NULL, outbox);
        }
        return is_live;
    case DO_POST:
        side->posted += (state == DQ_CONN_UP);
        return state == DQ_CONN_UP;
    case DO_DATA:
        return side_take(net, s, outbox);
    case DO_LOSE:
        if ((state != DQ_CONN_REP_SENT) && (state != DQ_CONN_UP)) {
            return 0;
        }
        side->losses++;
        side_step(net, s, DQ_EV_LOSE, NULL, outbox);
        return 1;
    case DO_MISS_MADE:
        return side_miss(side, DQ_ACT_QP_CREATE);
    case DO_MISS_CONNECTED:
        return side_miss(side, DQ_ACT_QP_CONNECT);
    case DO_DRAINED:
        side_step(net, s, DQ_EV_DRAINED, NULL, outbox);
        return state == DQ_CONN_LOST;
    case DO_REST:
        if (state != DQ_CONN_LOST) {
            return 0;
        }
        side_step(net, s, DQ_EV_REST, NULL, outbox);
        return 1;
    case DO_RESTART:
        net->is_calm &= (state == DQ_CONN_IDLE);
        side_begin(net, s);
        return state != DQ_CONN_IDLE;
    case DO_LEAVE:
        net->is_calm &= !is_live;
        side_say_gone(side, outbox);
        side_begin(net, s);
        return is_live;
    case DO_CLOSE:
        net->is_calm = 0;
        side_say_gone(side, outbox);
        side->closed = 1;
        return 1;
    default:
        return 0;
    }
}


/* ---- The network behaves again ---- */

/* Delivers what is in the outboxes and what that gives rise to. */
static void net_deliver(net_t *net, outbox_t out[SIDES])
{
    unsigned next[SIDES] = {0, 0};
    unsigned s;

    while ((next[0] < out[0].count) || (next[1] < out[1].count)) {
        for (s = 0; s < SIDES; s++) {
            if (next[s] < out[s].count) {
                side_receive(net, 1 - s, &out[s].frame[next[s]++],
                             &out[1 - s]);
                net_check(net);
            }
        }
    }
}


/* What was lost is drained, what has been sent arrives, and who rests wants to send. */
static void net_flow(net_t *net, outbox_t out[SIDES])
{
    unsigned s;

    for (s = 0; s < SIDES; s++) {
        while ((net->side[s].conn.state != DQ_CONN_REP_SENT) &&
               side_do(net, s, DO_DATA, &out[s])) {
        }
    }
    for (s = 0; s < SIDES; s++) {
        side_do(net, s, DO_DRAINED, &out[s]);
        if (net->side[s].conn.state == DQ_CONN_RESTING) {
            side_do(net, s, DO_OPEN, &out[s]);
        }
    }
}


/* Who is UP uses its QP: the peer hears it, or the device says it is gone. */
static void net_talk(net_t *net, outbox_t out[SIDES])
{
    const side_t *side;
    unsigned s;

    for (s = 0; s < SIDES; s++) {
        side = &net->side[s];
        if (side->closed || (side->conn.state != DQ_CONN_UP)) {
            continue;
        }
        if (is_linked(side, &net->side[1 - s])) {
            side_do(net, 1 - s, DO_DATA, &out[1 - s]);
        } else if (!is_draining(side, &net->side[1 - s])) {
            side_do(net, s, DO_QP_ERROR, &out[s]);
        }
    }
}


static void net_round(net_t *net, deed_t deed, int is_talking)
{
    outbox_t out[SIDES];
    unsigned s;

    for (s = 0; s < SIDES; s++) {
        out[s].count = 0;
    }
    for (s = 0; s < SIDES; s++) {
        side_do(net, s, deed, &out[s]);
    }
    net_deliver(net, out);
    if (is_talking) {
        net_talk(net, out);
    }
    net_check(net);

    for (s = 0; s < SIDES; s++) {
        out[s].count = 0;
    }
    net_flow(net, out);
    net_deliver(net, out);
    net_check(net);
}


static int is_up(const net_t *net)
{
    return !net->side[0].closed && !net->side[1].closed &&
           (net->side[0].conn.state == DQ_CONN_UP) &&
           (net->side[1].conn.state == DQ_CONN_UP) &&
           is_linked(&net->side[0], &net->side[1]) &&
           is_linked(&net->side[1], &net->side[0]);
}


/* Frames alone must do it, for nobody may have anything to send. That the peer
 * is no more is something that only the device can tell. */
static void net_settles(const net_t *from)
{
    int must_be_up = from->is_calm && from->is_wanted;
    net_t net      = *from;
    unsigned i;

    for (i = 0; i < SETTLE; i++) {
        net_round(&net, DO_TICK, 0);
    }
    if (must_be_up && !is_up(&net)) {
        ck_abort_msg("after %u good rounds: %s and %s", i,
                     dq_conn_state_name(net.side[0].conn.state),
                     dq_conn_state_name(net.side[1].conn.state));
    }
    net_round(&net, DO_EXPIRE, 1);
    net_round(&net, DO_TICK, 1);
    if (!is_up(&net) && (is_alive(&net.side[0]) || is_alive(&net.side[1]))) {
        ck_abort_msg("ended as %s%s and %s%s",
                     dq_conn_state_name(net.side[0].conn.state),
                     net.side[0].closed ? " (closed)" : "",
                     dq_conn_state_name(net.side[1].conn.state),
                     net.side[1].closed ? " (closed)" : "");
    }
    if (is_up(&net)) {
        T_NEED_EQ(net.side[0].taken, net.side[1].posted);
        T_NEED_EQ(net.side[1].taken, net.side[0].posted);
    }
}


/* ---- Every state there is ---- */

/* A frame as a number below NUMBERS, and back. Attempts stand for epochs. */
static unsigned attempt_of(unsigned s, uint32_t epoch)
{
    unsigned i;

    for (i = 1; i <= ATTEMPTS; i++) {
        if (epoch == epoch_of(s, i)) {
            return i;
        }
    }
    return 0;
}


/* A first REQ has one of two marks. */
static const dq_frame_kind_t kinds[] = {
    DQ_FRAME_REQ, DQ_FRAME_REQ, DQ_FRAME_REP, DQ_FRAME_RTU, DQ_FRAME_REFUSE,
    DQ_FRAME_GONE, DQ_FRAME_AGAIN
};

enum { NUMBERS = sizeof(kinds) / sizeof(kinds[0]) * 16 };


static unsigned frame_number(unsigned from, const dq_frame_t *frame)
{
    int is_marked = (frame->kind == DQ_FRAME_REQ) && (frame->peer_epoch == 0) &&
                    (frame->peer_mark != 0);
    unsigned i;

    for (i = is_marked; kinds[i] != frame->kind; i++) {
    }
    return i * 16 + attempt_of(from, frame->epoch) * 4 +
           attempt_of(1 - from, frame->peer_epoch);
}


static dq_frame_t frame_of_number(const net_t *net, unsigned from,
                                  unsigned number)
{
    unsigned epoch   = (number % 16) / 4;
    unsigned peer    = number % 4;
    dq_frame_t frame = {
        .kind       = kinds[number / 16],
        .epoch      = (epoch == 0) ? 77 : epoch_of(from, epoch),
        .peer_epoch = (peer == 0) ? 0 : epoch_of(1 - from, peer),
        .first      = net->side[from].first[epoch],
        .delivered  = net->side[from].told[epoch],
    };

    frame.mark      = (frame.kind == DQ_FRAME_AGAIN) ? ticket_of(from)
                                                     : mark_of(frame.epoch);
    frame.peer_mark = mark_of(frame.peer_epoch);
    if ((frame.kind == DQ_FRAME_REQ) && (frame.peer_epoch == 0)) {
        frame.peer_mark = (number < 16) ? 0 : ticket_of(1 - from);
    }
    return frame;
}


typedef struct {
    net_t    *found;  /* [TABLE], every state, in the order it was found     */
    uint32_t *table;  /* [2 * TABLE], hash -> 1 + index into found           */
    uint32_t count;
} search_t;


static uint64_t net_hash(const net_t *net)
{
    const uint64_t *word = (const uint64_t*)net;
    uint64_t hash        = 0;
    size_t i;

    for (i = 0; i < sizeof(*net) / sizeof(*word); i++) {
        hash = (hash ^ word[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}


static void search_add(search_t *search, const net_t *net)
{
    uint64_t at = net_hash(net) % (2 * TABLE);

    while (search->table[at] != 0) {
        if (memcmp(&search->found[search->table[at] - 1], net,
                   sizeof(*net)) == 0) {
            return;
        }
        at = (at + 1) % (2 * TABLE);
    }
    T_NEED(search->count < TABLE);
    search->found[search->count] = *net;
    search->table[at]            = ++search->count;
}


/* The AGAIN of an end that drains. To one that was connected it is a WAIT, which changes
 * no machine (side_step()). So the search leaves it out; the walks have it. */
static int is_idle_word(unsigned s, const dq_frame_t *frame)
{
    return (frame->kind == DQ_FRAME_AGAIN) && (frame->mark != ticket_of(s));
}


/* The state after a step, and the frames that the step sent. */
static void search_arrive(search_t *search, net_t *net, unsigned s,
                          const outbox_t *outbox)
{
    unsigned i;

    unsigned number;

    T_NEED(net->side[s].attempts <= ATTEMPTS);
    for (i = 0; i < outbox->count; i++) {
        if (is_idle_word(s, &outbox->frame[i])) {
            continue;
        }
        number = frame_number(s, &outbox->frame[i]);
        net->sent[s][number / 64] |= UINT64_C(1) << (number % 64);
    }
    net_check(net);
    search_add(search, net);
}


/* How often each side may begin again after an attempt, lose its QP, and miss
 * one; and whether it puts off who asks, which makes four states of one. */
typedef struct {
    uint32_t restarts[SIDES];
    uint32_t losses[SIDES];
    uint32_t misses[SIDES];
    int      puts_off;
} bounds_t;


static int is_within(const net_t *net, unsigned s, deed_t deed,
                     const bounds_t *bounds)
{
    const side_t *side = &net->side[s];

    switch (deed) {
    case DO_RESTART:
    case DO_LEAVE:
        return side->attempts <= bounds->restarts[s];
    case DO_LOSE:
        return side->losses < bounds->losses[s];
    case DO_MISS_MADE:
    case DO_MISS_CONNECTED:
        return side->misses < bounds->misses[s];
    case DO_POST:
        return side->posted < MESSAGES;
    default:
        return 1;
    }
}


static void search_expand(search_t *search, const net_t *from,
                          const bounds_t *bounds)
{
    outbox_t outbox;
    dq_frame_t frame;
    unsigned s, deed, number;
    net_t net;

    for (s = 0; s < SIDES; s++) {
        for (deed = 0; deed < DO_LAST; deed++) {
            net          = *from;
            outbox.count = 0;
            if (is_within(from, s, (deed_t)deed, bounds) &&
                side_do(&net, s, (deed_t)deed, &outbox)) {
                search_arrive(search, &net, s, &outbox);
            }
        }
        for (number = 0; number < NUMBERS; number++) {
            if (from->sent[1 - s][number / 64] &
                (UINT64_C(1) << (number % 64))) {
                net          = *from;
                outbox.count = 0;
                frame        = frame_of_number(from, 1 - s, number);
                side_receive(&net, s, &frame, &outbox);
                search_arrive(search, &net, s, &outbox);
                outbox.count = 0;
                net          = *from;
                if (bounds->puts_off &&
                    side_puts_off(&net, s, &frame, &outbox)) {
                    search_arrive(search, &net, s, &outbox);
                }
            }
        }
    }
}


static uint32_t search_all(const bounds_t *bounds)
{
    search_t search = {.count = 0};
    net_t net;

    search.found = malloc(TABLE * sizeof(*search.found));
    search.table = calloc(2 * TABLE, sizeof(*search.table));
    ck_assert_ptr_nonnull(search.found);
    ck_assert_ptr_nonnull(search.table);

    memset(&net, 0, sizeof(net));
    net.is_calm = 1;
    side_begin(&net, 0);
    side_begin(&net, 1);
    search_add(&search, &net);
    for (t_at = 0; t_at < search.count; t_at++) {
        net_settles(&search.found[t_at]);
        search_expand(&search, &search.found[t_at], bounds);
    }
    free(search.found);
    free(search.table);
    return search.count;
}


static const bounds_t searches[] = {
    /* restarts, losses, misses */
    {{0, 0}, {0, 0}, {0, 0}}, {{1, 0}, {0, 0}, {0, 0}},
    {{0, 1}, {0, 0}, {0, 0}}, {{1, 1}, {0, 0}, {0, 0}},
    {{2, 0}, {0, 0}, {0, 0}}, {{0, 2}, {0, 0}, {0, 0}},
    {{0, 0}, {1, 0}, {0, 0}}, {{0, 0}, {0, 1}, {0, 0}},
    {{0, 0}, {1, 1}, {0, 0}}, {{0, 0}, {2, 0}, {0, 0}},
    {{0, 0}, {0, 2}, {0, 0}}, {{1, 0}, {1, 0}, {0, 0}},
    {{1, 0}, {0, 1}, {0, 0}}, {{0, 1}, {1, 0}, {0, 0}},
    {{0, 1}, {0, 1}, {0, 0}}, {{0, 0}, {0, 0}, {1, 1}},
    {{0, 0}, {0, 0}, {2, 0}}, {{0, 0}, {0, 0}, {0, 2}},
    {{0, 0}, {1, 0}, {1, 0}}, {{0, 0}, {1, 0}, {0, 1}},
    {{0, 0}, {0, 1}, {1, 0}}, {{0, 0}, {0, 1}, {0, 1}},
    {{1, 0}, {0, 0}, {0, 1}}, {{0, 1}, {0, 0}, {1, 0}},
    {{0, 0}, {0, 0}, {0, 0}, 1}, {{1, 0}, {0, 0}, {0, 0}, 1},
    {{0, 1}, {0, 0}, {0, 0}, 1}, {{0, 0}, {1, 0}, {0, 0}, 1},
    {{0, 0}, {0, 1}, {0, 0}, 1}, {{0, 0}, {0, 0}, {1, 0}, 1},
    {{0, 0}, {0, 0}, {0, 1}, 1},
};


START_TEST(test_search)
{
    const bounds_t *bounds = &searches[_i];
    uint32_t count         = search_all(bounds);

    printf("restarts %u and %u, losses %u and %u, misses %u and %u%s: %u "
           "states\n", bounds->restarts[0], bounds->restarts[1],
           bounds->losses[0], bounds->losses[1], bounds->misses[0],
           bounds->misses[1], bounds->puts_off ? ", puts off" : "", count);
    ck_assert_uint_gt(count, 100);
}
END_TEST


/* ---- Long walks ---- */

/* The network of a walk remembers the last frames only, but of any number of
 * attempts. */
typedef struct {
    net_t      net;
    dq_frame_t memory[SIDES][MEMORY];
    unsigned   sent[SIDES];
} walk_t;


static void walk_send(walk_t *walk, unsigned s, const outbox_t *outbox)
{
    unsigned i;

    for (i = 0; i < outbox->count; i++) {
        walk->memory[s][walk->sent[s]++ % MEMORY] = outbox->frame[i];
    }
}


static const dq_frame_t *walk_pick(walk_t *walk, unsigned from, t_rng_t *rng)
{
    unsigned known = (walk->sent[from] < MEMORY) ? walk->sent[from] : MEMORY;
    unsigned back  = t_rng_once_in(rng, 2) ? 4 : known; /* mostly news */

    if (known == 0) {
        return NULL;
    }
    back = t_rng_below(rng, (back < known) ? back : known);
    return &walk->memory[from][(walk->sent[from] - 1 - back) % MEMORY];
}


static deed_t walk_deed(t_rng_t *rng)
{
    static const deed_t rare[] = {DO_EXPIRE, DO_QP_ERROR, DO_VERB_FAIL,
                                  DO_RESTART, DO_RESTART, DO_LEAVE,
                                  DO_LEAVE, DO_MISS_MADE,
                                  DO_MISS_CONNECTED};
    static const deed_t common[] = {DO_OPEN, DO_TICK, DO_DATA, DO_DATA,
                                    DO_POST, DO_LOSE, DO_DRAINED, DO_DRAINED,
                                    DO_REST};

    return t_rng_once_in(rng, 12) ? rare[t_rng_below(rng, 9)]
                                  : common[t_rng_below(rng, 9)];
}


START_TEST(test_walk)
{
    const dq_frame_t *frame;
    outbox_t outbox;
    unsigned s, ups = 0;
    walk_t walk;
    t_rng_t rng;

    t_rng_init(&rng, 0xc000 + _i);
    memset(&walk, 0, sizeof(walk));
    walk.net.is_calm = 1;
    side_begin(&walk.net, 0);
    side_begin(&walk.net, 1);
    for (t_at = 0; t_at < WALK_STEPS; t_at++) {
        s            = t_rng_below(&rng, SIDES);
        outbox.count = 0;
        frame        = walk_pick(&walk, 1 - s, &rng);
        if ((frame != NULL) && !t_rng_once_in(&rng, 4)) {
            if (!t_rng_once_in(&rng, 3) ||
                !side_puts_off(&walk.net, s, frame, &outbox)) {
                side_receive(&walk.net, s, frame, &outbox);
            }
        } else {
            side_do(&walk.net, s, walk_deed(&rng), &outbox);
        }
        walk_send(&walk, s, &outbox);
        net_check(&walk.net);
        side_hears_stranger(&walk.net, s);
        ups += is_up(&walk.net);
        if (t_rng_once_in(&rng, 20)) {
            net_settles(&walk.net);
        }
    }
    ck_assert_uint_gt(ups, 0);
    ck_assert_uint_gt(walk.net.side[0].attempts, 100);
}
END_TEST


static Suite *suite_conn_net(void)
{
    Suite *suite  = suite_create("conn_net");
    TCase *search = tcase_create("search");
    TCase *walks  = tcase_create("walks");

    tcase_set_timeout(search, 2 * T_TIMEOUT);
    tcase_add_loop_test(search, test_search, 0,
                        sizeof(searches) / sizeof(searches[0]));
    suite_add_tcase(suite, search);

    tcase_set_timeout(walks, T_TIMEOUT);
    tcase_add_loop_test(walks, test_walk, 0, WALKS);
    suite_add_tcase(suite, walks);
    return suite;
}

T_MAIN(suite_conn_net)
