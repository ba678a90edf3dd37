/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection machine, given any sequence of events, of frames that anybody
 * may have made, and of actions that fail. A model of what the caller has (a
 * queue pair, a timer) stands beside it:
 *   - a QP is made when there is none, and connected once, to a frame's;
 *   - who is UP has a connected QP; who is DEAD stays so;
 *   - the timer runs while an answer is awaited, and only then;
 *   - a GONE of ours that names an attempt of the peer's has its mark;
 *   - a frame of an attempt that is over, or that answers one, moves nothing;
 *     nor does one that names the current attempt and does not know its mark.
 *
 * Each step takes four bytes: what; kind and whether the next action fails; the
 * epochs, three bits each, counted from our own and from the peer's last one,
 * so that what fits is as frequent as what does not, and a bit for a mark that is
 * wrong.
 */
#include "fuzz.h"

#include "dq/dq_conn.h"

enum { STEP_BYTES = 4, STEPS_MAX = 400 };

typedef struct {
    dq_conn_t conn;
    uint32_t  epoch;      /* the caller's rising count                       */
    int       has_qp, is_connected, is_timed;
    int       may_fail;   /* the next action on a QP does                    */
    int       is_hopeless; /* and another one would                          */
} fuzz_side_t;


static void fuzz_step(fuzz_side_t *side, dq_conn_event_t event,
                      const dq_frame_t *frame);


/* What is drawn for an attempt, of either end. */
static uint64_t fuzz_mark(uint32_t epoch)
{
    return (UINT64_C(1) << 40) + epoch;
}


/* What the caller does. Non-zero: it could not. */
static int fuzz_act(fuzz_side_t *side, uint32_t action,
                    const dq_frame_t *frame)
{
    switch (action) {
    case DQ_ACT_QP_CLOSE:
        side->has_qp = side->is_connected = 0;
        return 0;
    case DQ_ACT_QP_CREATE:
        FUZZ_MUST(!side->has_qp && (side->conn.epoch != 0));
        FUZZ_MUST(side->conn.mark == 0);
        side->conn.mark = fuzz_mark(side->conn.epoch);
        side->has_qp    = !side->may_fail;
        return side->may_fail;
    case DQ_ACT_QP_CONNECT:
        FUZZ_MUST(side->has_qp && !side->is_connected && (frame != NULL));
        FUZZ_MUST(side->conn.peer_epoch == frame->epoch);
        FUZZ_MUST(side->conn.peer_mark == frame->mark);
        side->is_connected = !side->may_fail;
        return side->may_fail;
    case DQ_ACT_SEND_REQ:
        FUZZ_MUST(side->has_qp && !side->is_connected);
        return 0;
    case DQ_ACT_SEND_REP:
    case DQ_ACT_SEND_RTU:
    case DQ_ACT_POST_UP:
        FUZZ_MUST(side->is_connected);
        return 0;
    case DQ_ACT_SEND_AGAIN:
    case DQ_ACT_REFUSE:
        FUZZ_MUST(frame != NULL);
        return 0;
    case DQ_ACT_TIMER_ARM:
        side->is_timed = 1;
        return 0;
    case DQ_ACT_TIMER_RENEW:
        FUZZ_MUST(side->is_timed);
        return 0;
    case DQ_ACT_TIMER_STOP:
        side->is_timed = 0;
        return 0;
    default:
        return 0;
    }
}


static void fuzz_check(const fuzz_side_t *side, dq_conn_state_t before)
{
    dq_conn_state_t state = side->conn.state;
    dq_frame_t gone;

    dq_conn_name_ended(&side->conn, &gone);
    FUZZ_MUST((gone.peer_epoch == 0) ||
              (gone.peer_mark == fuzz_mark(gone.peer_epoch)));
    FUZZ_MUST(state < DQ_CONN_STATE_LAST);
    FUZZ_MUST((before != DQ_CONN_DEAD) || (state == DQ_CONN_DEAD));
    FUZZ_MUST((before == DQ_CONN_IDLE) || (state != DQ_CONN_IDLE));
    FUZZ_MUST(((state != DQ_CONN_UP) && (state != DQ_CONN_REP_SENT)) ||
              side->is_connected);
    FUZZ_MUST((state != DQ_CONN_REQ_SENT) || side->has_qp);
    FUZZ_MUST(side->is_timed == ((state == DQ_CONN_REQ_SENT) ||
                                 (state == DQ_CONN_REP_SENT)));
}


static void fuzz_step(fuzz_side_t *side, dq_conn_event_t event,
                      const dq_frame_t *frame)
{
    dq_conn_state_t before = side->conn.state;
    uint32_t actions, action;

    side->epoch++;
    side->epoch += side->epoch == 0;
    actions = dq_conn_step(&side->conn, event, frame, side->epoch);
    FUZZ_MUST(actions < DQ_ACT_LAST_BIT);
    for (action = 1; action < DQ_ACT_LAST_BIT; action <<= 1) {
        if ((actions & action) && (fuzz_act(side, action, frame) != 0)) {
            side->may_fail = 0;
            fuzz_step(side, side->is_hopeless ? DQ_EV_VERB_FAIL : DQ_EV_NO_QP,
                      NULL);
            break;
        }
    }
    fuzz_check(side, before);
}


/* Three bits: an epoch near this one, or none. */
static uint32_t fuzz_near(uint32_t epoch, unsigned bits)
{
    return ((bits & 7) == 7) ? 0 : epoch + (bits & 7) - 3;
}


/* Must it change nothing? */
static int fuzz_is_over(const dq_conn_t *conn, const dq_frame_t *frame)
{
    int is_older = (conn->peer_last != 0) &&
                   dq_epoch_is_newer(conn->peer_last, frame->epoch);

    if ((conn->epoch != 0) && (frame->peer_epoch == conn->epoch) &&
        (frame->peer_mark != fuzz_mark(conn->epoch))) {
        return 1;
    }
    if (frame->kind == DQ_FRAME_REQ) {
        return is_older;
    }
    if ((frame->kind == DQ_FRAME_GONE) && (conn->peer_first != 0)) {
        return is_older || (frame->first != conn->peer_first);
    }
    return frame->peer_epoch != conn->epoch;
}


static void fuzz_arrive(fuzz_side_t *side, const uint8_t *bytes)
{
    dq_frame_t frame = {
        .kind       = (bytes[1] & 0x7f) % DQ_FRAME_LAST,
        .epoch      = fuzz_near(side->conn.peer_last, bytes[2]),
        .first      = fuzz_near((side->conn.peer_first != 0)
                                        ? side->conn.peer_first : 100,
                                bytes[2] >> 3),
        .peer_epoch = fuzz_near(side->conn.epoch, bytes[3]),
    };
    const dq_conn_t before = side->conn;
    dq_conn_event_t event;
    int is_over;

    if (frame.epoch == 0) {
        frame.epoch = 1; /* dq_frame_parse() lets no other through */
    }
    if ((frame.first == 0) && (frame.kind <= DQ_FRAME_REP)) {
        frame.first = 1;
    }
    frame.mark      = fuzz_mark(frame.epoch);
    frame.peer_mark = fuzz_mark(frame.peer_epoch) ^ ((bytes[3] >> 3) & 1);
    event = dq_conn_classify(&side->conn, &frame);
    FUZZ_MUST(event < DQ_EV_LAST);
    is_over = fuzz_is_over(&before, &frame);
    FUZZ_MUST(!is_over || (event == DQ_EV_STALE));
    fuzz_step(side, event, &frame);
    FUZZ_MUST((event != DQ_EV_AGAIN) ||
              ((before.peer_last == 0) && (before.peer_mark != frame.mark)));
    if (is_over) {
        FUZZ_MUST((side->conn.state == before.state) &&
                  (side->conn.epoch == before.epoch) &&
                  (side->conn.peer_epoch == before.peer_epoch) &&
                  (side->conn.peer_last == before.peer_last) &&
                  (side->conn.peer_mark == before.peer_mark));
    }
}


/* What the caller itself may tell. DRAINED follows a loss, always. */
static void fuzz_tell(fuzz_side_t *side, unsigned what)
{
    static const dq_conn_event_t events[] = {
        DQ_EV_OPEN, DQ_EV_TICK, DQ_EV_EXPIRE, DQ_EV_LOSE, DQ_EV_DRAINED,
        DQ_EV_QP_ERROR, DQ_EV_RTU
    };
    dq_conn_event_t event = events[what % (sizeof(events) /
                                           sizeof(events[0]))];

    /* the timer ends what waits; data comes on a QP that is connected */
    if ((((event == DQ_EV_TICK) || (event == DQ_EV_EXPIRE)) &&
         !side->is_timed) ||
        ((event == DQ_EV_RTU) && !side->is_connected)) {
        return;
    }
    fuzz_step(side, event, NULL);
}


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_side_t side = {.may_fail = 0};
    unsigned steps;

    if (size < 2) {
        return 0;
    }
    dq_conn_init(&side.conn, data[0] & 1, 1 - (data[0] & 1));
    side.epoch = (data[0] & 2) ? UINT32_MAX - (data[0] >> 2) : data[0] >> 2;
    data++;
    size--;
    for (steps = 0; (size >= STEP_BYTES) && (steps < STEPS_MAX); steps++) {
        side.may_fail    = (data[1] & 0x80) != 0;
        side.is_hopeless = (data[3] & 0x80) != 0;
        if (data[0] & 1) {
            fuzz_arrive(&side, data);
        } else {
            fuzz_tell(&side, data[0] >> 1);
        }
        data += STEP_BYTES;
        size -= STEP_BYTES;
    }
    return 0;
}
