/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection machine by itself: which event a frame is, and that every
 * cell of the table says something that makes sense. What each cell says is in
 * docs/states.md, which t_states holds to the table; what the whole of it is
 * good for is t_conn_net's business.
 */
#include "t_unit.h"
#include "dq/dq_conn.h"

#define OLD  90u
#define MINE 100u
#define NEXT 110u
#define THEN 490u
#define FIRST 480u
#define PEER 500u
#define SOON 510u

#define MARK      UINT64_C(0xf000000000000001)
#define PEER_MARK UINT64_C(0x7000000000000001)


/* One line: where the machine is, what comes, which event that is. */
typedef struct {
    dq_conn_state_t state;
    int             yields;
    uint32_t        epoch, peer_epoch;
    dq_frame_kind_t kind;
    uint32_t        frame_epoch, frame_peer;
    dq_conn_event_t event;
    uint32_t        peer_last;   /* 0: as peer_epoch                         */
    uint32_t        frame_first; /* 0: the one we know of                    */
    uint64_t        frame_mark;  /* 0: the one we know of                    */
} line_t;

static const line_t lines[] = {
    /* a REQ finds nothing known */
    /*  1 */ {DQ_CONN_IDLE, 0, 0, 0, DQ_FRAME_REQ, PEER, 0, DQ_EV_REQ},
    /*  2 */ {DQ_CONN_IDLE, 1, 0, 0, DQ_FRAME_REQ, PEER, 0, DQ_EV_REQ},
    /* two REQs cross: the lower uuid yields */
    /*  3 */ {DQ_CONN_REQ_SENT, 1, MINE, 0, DQ_FRAME_REQ, PEER, 0, DQ_EV_REQ},
    /*  4 */ {DQ_CONN_REQ_SENT, 0, MINE, 0, DQ_FRAME_REQ, PEER, 0,
              DQ_EV_REQ_CROSS},
    /* the REQ that was answered, again; an older one; a newer one */
    /*  5 */ {DQ_CONN_REP_SENT, 0, MINE, PEER, DQ_FRAME_REQ, PEER, 0,
              DQ_EV_REQ_DUP},
    /*  6 */ {DQ_CONN_REP_SENT, 1, MINE, PEER, DQ_FRAME_REQ, THEN, 0,
              DQ_EV_STALE},
    /*  7 */ {DQ_CONN_REP_SENT, 0, MINE, PEER, DQ_FRAME_REQ, SOON, 0,
              DQ_EV_FORGOT, 0, SOON},
    /*  8 */ {DQ_CONN_UP, 1, MINE, PEER, DQ_FRAME_REQ, PEER, 0,
              DQ_EV_REQ_DUP},
    /*  9 */ {DQ_CONN_UP, 0, MINE, PEER, DQ_FRAME_REQ, THEN, 0, DQ_EV_STALE},
    /* 10 */ {DQ_CONN_UP, 0, MINE, PEER, DQ_FRAME_REQ, SOON, 0,
              DQ_EV_FORGOT, 0, SOON},
    /* 11 */ {DQ_CONN_UP, 1, MINE, PEER, DQ_FRAME_REQ, SOON, 0,
              DQ_EV_FORGOT, 0, SOON},
    /* newer is meant modulo 2^32 */
    /* 12 */ {DQ_CONN_UP, 0, MINE, UINT32_MAX, DQ_FRAME_REQ, 1, MINE,
              DQ_EV_REQ},
    /* 13 */ {DQ_CONN_UP, 0, MINE, 1, DQ_FRAME_REQ, UINT32_MAX, 0,
              DQ_EV_STALE},
    /* 14 */ {DQ_CONN_UP, 0, MINE, 1, DQ_FRAME_REQ, 0x80000000, MINE,
              DQ_EV_REQ},
    /* 15 */ {DQ_CONN_UP, 0, MINE, 1, DQ_FRAME_REQ, 0x80000002, 0,
              DQ_EV_STALE},

    /* a REP answers the current attempt, or is nothing */
    /* 16 */ {DQ_CONN_REQ_SENT, 0, MINE, 0, DQ_FRAME_REP, PEER, MINE,
              DQ_EV_REP},
    /* 17 */ {DQ_CONN_REQ_SENT, 0, MINE, 0, DQ_FRAME_REP, PEER, OLD,
              DQ_EV_STALE},
    /* 18 */ {DQ_CONN_REQ_SENT, 0, MINE, 0, DQ_FRAME_REP, PEER, NEXT,
              DQ_EV_STALE},
    /* 19 */ {DQ_CONN_REQ_SENT, 0, MINE, 0, DQ_FRAME_REP, PEER, 0,
              DQ_EV_STALE},
    /* 20 */ {DQ_CONN_IDLE, 0, 0, 0, DQ_FRAME_REP, PEER, 0, DQ_EV_STALE},
    /* 21 */ {DQ_CONN_UP, 0, MINE, PEER, DQ_FRAME_REP, PEER, MINE, DQ_EV_REP},
    /* 22 */ {DQ_CONN_UP, 0, MINE, PEER, DQ_FRAME_REP, SOON, MINE,
              DQ_EV_STALE},
    /* 23 */ {DQ_CONN_UP, 0, MINE, PEER, DQ_FRAME_REP, THEN, MINE,
              DQ_EV_STALE},

    /* so does an RTU */
    /* 24 */ {DQ_CONN_REP_SENT, 0, MINE, PEER, DQ_FRAME_RTU, PEER, MINE,
              DQ_EV_RTU},
    /* 25 */ {DQ_CONN_REP_SENT, 0, MINE, PEER, DQ_FRAME_RTU, PEER, OLD,
              DQ_EV_STALE},
    /* 26 */ {DQ_CONN_REP_SENT, 0, MINE, PEER, DQ_FRAME_RTU, THEN, MINE,
              DQ_EV_STALE},
    /* 27 */ {DQ_CONN_IDLE, 0, 0, 0, DQ_FRAME_RTU, PEER, 0, DQ_EV_STALE},

    /* and a REFUSE, whose sender may be one we know no attempt of */
    /* 28 */ {DQ_CONN_REQ_SENT, 0, MINE, 0, DQ_FRAME_REFUSE, PEER, MINE,
              DQ_EV_REFUSE},
    /* 29 */ {DQ_CONN_REQ_SENT, 0, MINE, 0, DQ_FRAME_REFUSE, PEER, OLD,
              DQ_EV_STALE},
    /* 30 */ {DQ_CONN_REP_SENT, 0, MINE, PEER, DQ_FRAME_REFUSE, PEER, MINE,
              DQ_EV_REFUSE},
    /* 31 */ {DQ_CONN_UP, 0, MINE, PEER, DQ_FRAME_REFUSE, PEER, MINE,
              DQ_EV_REFUSE},
    /* 32 */ {DQ_CONN_UP, 0, MINE, PEER, DQ_FRAME_REFUSE, THEN, MINE,
              DQ_EV_STALE},
    /* 33 */ {DQ_CONN_IDLE, 0, 0, 0, DQ_FRAME_REFUSE, PEER, 0, DQ_EV_STALE},

    /* what a peer ends that has not answered us is not this attempt */
    /* 34 */ {DQ_CONN_IDLE, 0, 0, 0, DQ_FRAME_GONE, PEER, 0, DQ_EV_STALE},
    /* 35 */ {DQ_CONN_REQ_SENT, 0, MINE, 0, DQ_FRAME_GONE, PEER, 0,
              DQ_EV_STALE},
    /* 36 */ {DQ_CONN_UP, 0, MINE, PEER, DQ_FRAME_GONE, PEER, MINE,
              DQ_EV_GONE},

    /* what no version of the wire lets through is harmless here too */
    /* 37 */ {DQ_CONN_UP, 0, MINE, PEER, DQ_FRAME_LAST, PEER, MINE,
              DQ_EV_STALE},

    /* a REQ after a loss names an attempt of ours, which we must know: from
     * the first (MINE) to the current (NEXT) */
    /* 38 */ {DQ_CONN_UP, 0, NEXT, PEER, DQ_FRAME_REQ, SOON, NEXT, DQ_EV_REQ},
    /* 39 */ {DQ_CONN_REP_SENT, 0, NEXT, PEER, DQ_FRAME_REQ, SOON, MINE,
              DQ_EV_REQ},
    /* 40 */ {DQ_CONN_UP, 0, NEXT, PEER, DQ_FRAME_REQ, SOON, OLD,
              DQ_EV_UNKNOWN},
    /* 41 */ {DQ_CONN_UP, 0, NEXT, PEER, DQ_FRAME_REQ, SOON, NEXT + 1,
              DQ_EV_UNKNOWN},
    /* 42 */ {DQ_CONN_UP, 0, NEXT, PEER, DQ_FRAME_REQ, THEN, NEXT,
              DQ_EV_STALE},
    /* 43 */ {DQ_CONN_UP, 0, NEXT, PEER, DQ_FRAME_REQ, PEER, NEXT,
              DQ_EV_REQ_DUP},
    /* 44 */ {DQ_CONN_REP_SENT, 0, MINE, PEER, DQ_FRAME_REQ, SOON, MINE,
              DQ_EV_REQ},
    /* 45 */ {DQ_CONN_LOST, 0, MINE, PEER, DQ_FRAME_REQ, SOON, MINE,
              DQ_EV_REQ},
    /* 46 */ {DQ_CONN_LOST, 0, MINE, PEER, DQ_FRAME_REQ, SOON, 0,
              DQ_EV_FORGOT, 0, SOON},
    /* 47 */ {DQ_CONN_IDLE, 0, 0, 0, DQ_FRAME_REQ, SOON, MINE, DQ_EV_UNKNOWN},
    /* 48 */ {DQ_CONN_REQ_SENT, 1, MINE, 0, DQ_FRAME_REQ, SOON, OLD,
              DQ_EV_UNKNOWN},

    /* both have lost the QP and ask, with PEER the last that was connected */
    /* 49 */ {DQ_CONN_REQ_SENT, 1, NEXT, 0, DQ_FRAME_REQ, SOON, MINE,
              DQ_EV_REQ, PEER},
    /* 50 */ {DQ_CONN_REQ_SENT, 0, NEXT, 0, DQ_FRAME_REQ, SOON, MINE,
              DQ_EV_REQ_CROSS, PEER},
    /* 51 */ {DQ_CONN_REQ_SENT, 1, NEXT, 0, DQ_FRAME_REQ, PEER, MINE,
              DQ_EV_STALE, PEER},
    /* 52 */ {DQ_CONN_REQ_SENT, 1, NEXT, 0, DQ_FRAME_REQ, SOON, 0,
              DQ_EV_FORGOT, PEER, SOON},
    /* 53 */ {DQ_CONN_REQ_SENT, 1, NEXT, 0, DQ_FRAME_REP, SOON, NEXT,
              DQ_EV_REP, PEER},
    /* 54 */ {DQ_CONN_REQ_SENT, 1, NEXT, 0, DQ_FRAME_REP, PEER, NEXT,
              DQ_EV_REP, PEER},
    /* 55 */ {DQ_CONN_REQ_SENT, 1, NEXT, 0, DQ_FRAME_REP, SOON, MINE,
              DQ_EV_STALE, PEER},
    /* who refuses makes no attempt for it */
    /* 56 */ {DQ_CONN_REQ_SENT, 1, NEXT, 0, DQ_FRAME_REFUSE, PEER, NEXT,
              DQ_EV_REFUSE, PEER},
    /* 57 */ {DQ_CONN_REQ_SENT, 1, NEXT, 0, DQ_FRAME_REFUSE, PEER, MINE,
              DQ_EV_STALE, PEER},
    /* the peer has answered our REQ, and lost the QP before we knew */
    /* 58 */ {DQ_CONN_REQ_SENT, 0, MINE, 0, DQ_FRAME_REQ, SOON, MINE,
              DQ_EV_REQ},
    /* 59 */ {DQ_CONN_REQ_SENT, 0, NEXT, 0, DQ_FRAME_REQ, SOON, NEXT,
              DQ_EV_REQ, PEER},
    /* the peer began anew, was connected to an old REQ of ours, and lost that */
    /* 60 */ {DQ_CONN_UP, 0, MINE, PEER, DQ_FRAME_REQ, SOON, MINE,
              DQ_EV_FORGOT, 0, SOON - 1},

    /* the peer took up our attempt, and ended it before its answer came */
    /* 61 */ {DQ_CONN_REQ_SENT, 0, MINE, 0, DQ_FRAME_GONE, PEER, MINE,
              DQ_EV_GONE},
    /* the end of one that it took up before */
    /* 62 */ {DQ_CONN_REQ_SENT, 0, MINE, 0, DQ_FRAME_GONE, PEER, OLD,
              DQ_EV_STALE},
    /* the end of a connection of the peer's before this one, or after it */
    /* 63 */ {DQ_CONN_UP, 0, MINE, PEER, DQ_FRAME_GONE, OLD, OLD, DQ_EV_STALE,
              0, OLD},
    /* 64 */ {DQ_CONN_REP_SENT, 0, MINE, PEER, DQ_FRAME_GONE, OLD, 0,
              DQ_EV_STALE, 0, OLD},
    /* 65 */ {DQ_CONN_LOST, 0, MINE, PEER, DQ_FRAME_GONE, SOON, 0, DQ_EV_STALE,
              0, SOON},
    /* 66 */ {DQ_CONN_REQ_SENT, 0, NEXT, 0, DQ_FRAME_GONE, OLD, NEXT,
              DQ_EV_STALE, PEER, OLD},
    /* who was connected since has not ended it before */
    /* 67 */ {DQ_CONN_UP, 0, MINE, PEER, DQ_FRAME_GONE, THEN, MINE,
              DQ_EV_STALE},
    /* the peer has lost its QP, and ended it instead of asking */
    /* 68 */ {DQ_CONN_UP, 0, MINE, PEER, DQ_FRAME_GONE, SOON, 0, DQ_EV_GONE},
    /* 69 */ {DQ_CONN_LOST, 0, MINE, PEER, DQ_FRAME_GONE, SOON, 0, DQ_EV_GONE},
    /* so have we, and ask */
    /* 70 */ {DQ_CONN_REQ_SENT, 0, NEXT, 0, DQ_FRAME_GONE, PEER, MINE,
              DQ_EV_GONE, PEER},
    /* 71 */ {DQ_CONN_REQ_SENT, 1, NEXT, 0, DQ_FRAME_GONE, SOON, 0, DQ_EV_GONE,
              PEER},

    /* a peer of an end that is UP was connected to that attempt, and to no
     * other; else it may be behind */
    /* 72 */ {DQ_CONN_UP, 0, NEXT, PEER, DQ_FRAME_REQ, SOON, MINE,
              DQ_EV_UNKNOWN},
    /* 73 */ {DQ_CONN_UP, 0, MINE, PEER, DQ_FRAME_REQ, SOON, 0,
              DQ_EV_UNKNOWN},
    /* 74 */ {DQ_CONN_REP_SENT, 0, MINE, PEER, DQ_FRAME_REQ, SOON, 0,
              DQ_EV_REQ},
    /* 75 */ {DQ_CONN_LOST, 0, NEXT, PEER, DQ_FRAME_REQ, SOON, MINE,
              DQ_EV_REQ},
    /* 76 */ {DQ_CONN_LOST, 0, NEXT, PEER, DQ_FRAME_REQ, SOON, NEXT + 1,
              DQ_EV_UNKNOWN},
    /* 77 */ {DQ_CONN_LOST, 0, NEXT, PEER, DQ_FRAME_REQ, SOON, OLD,
              DQ_EV_UNKNOWN},

    /* our first REQ is wanted with a mark; once for each mark */
    /* 78 */ {DQ_CONN_REQ_SENT, 0, MINE, 0, DQ_FRAME_AGAIN, PEER, MINE,
              DQ_EV_AGAIN, 0, 0, PEER_MARK + 1},
    /* 79 */ {DQ_CONN_REQ_SENT, 1, MINE, 0, DQ_FRAME_AGAIN, PEER, MINE,
              DQ_EV_STALE, 0, 0, PEER_MARK},
    /* 80 */ {DQ_CONN_REQ_SENT, 1, MINE, 0, DQ_FRAME_AGAIN, PEER, OLD,
              DQ_EV_STALE, 0, 0, PEER_MARK + 1},
    /* another was connected: the peer drains its lost QP */
    /* 81 */ {DQ_CONN_REQ_SENT, 1, NEXT, 0, DQ_FRAME_AGAIN, SOON, NEXT,
              DQ_EV_WAIT, PEER, 0, PEER_MARK + 1},
    /* 82 */ {DQ_CONN_REP_SENT, 1, MINE, PEER, DQ_FRAME_AGAIN, PEER, MINE,
              DQ_EV_WAIT, 0, 0, PEER_MARK + 1},
    /* 83 */ {DQ_CONN_IDLE, 1, 0, 0, DQ_FRAME_AGAIN, PEER, 0, DQ_EV_STALE, 0,
              0, PEER_MARK + 1},
    /* 84 */ {DQ_CONN_REQ_SENT, 1, NEXT, 0, DQ_FRAME_AGAIN, SOON, MINE,
              DQ_EV_STALE, PEER},
};


static dq_conn_t conn_of(const line_t *line)
{
    return (dq_conn_t){
        .state      = line->state,
        .yields     = line->yields,
        .epoch      = line->epoch,
        .first      = (line->epoch != 0) ? MINE : 0,
        .peer_epoch = line->peer_epoch,
        .peer_last  = (line->peer_last != 0) ? line->peer_last
                                             : line->peer_epoch,
        .peer_first = ((line->peer_epoch != 0) || (line->peer_last != 0))
                              ? FIRST : 0,
        .mark       = (line->epoch != 0) ? MARK : 0,
        .peer_mark  = PEER_MARK,
    };
}


static dq_frame_t frame_of(const line_t *line, uint64_t peer_mark)
{
    return (dq_frame_t){
        .kind       = line->kind,
        .epoch      = line->frame_epoch,
        .first      = (line->frame_first != 0) ? line->frame_first : FIRST,
        .peer_epoch = line->frame_peer,
        .mark       = (line->frame_mark != 0) ? line->frame_mark : PEER_MARK,
        .peer_mark  = peer_mark,
    };
}


START_TEST(test_classify)
{
    const line_t *line = &lines[_i];
    dq_conn_t conn     = conn_of(line);
    dq_conn_t before   = conn;
    dq_frame_t frame   = frame_of(line, MARK);

    ck_assert_msg(dq_conn_classify(&conn, &frame) == line->event,
                  "line %d: %s, expected %s", _i + 1,
                  dq_conn_event_name(dq_conn_classify(&conn, &frame)),
                  dq_conn_event_name(line->event));
    ck_assert_mem_eq(&conn, &before, sizeof(conn));
}
END_TEST


/* Who does not know the mark of our current attempt says nothing about it, and of
 * others what anybody may say. */
START_TEST(test_wrong_mark)
{
    static const uint64_t wrong[] = {0, MARK ^ 1, MARK ^ (UINT64_C(1) << 63),
                                     PEER_MARK, ~MARK};
    const line_t *line = &lines[_i];
    dq_conn_t conn     = conn_of(line);
    int names_it       = (line->epoch != 0) &&
                         (line->frame_peer == line->epoch);
    dq_frame_t frame   = frame_of(line, MARK);
    unsigned i;

    ck_assert(!dq_conn_is_forged(&conn, &frame));
    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        frame = frame_of(line, wrong[i]);
        ck_assert_int_eq(dq_conn_is_forged(&conn, &frame), names_it);
        ck_assert_int_eq(dq_conn_classify(&conn, &frame),
                         names_it ? DQ_EV_STALE : line->event);
    }
}
END_TEST


START_TEST(test_init)
{
    dq_conn_t conn;

    dq_conn_init(&conn, 1, 2);
    ck_assert(conn.yields);
    ck_assert_int_eq(conn.state, DQ_CONN_IDLE);
    ck_assert_uint_eq(conn.epoch, 0);
    ck_assert_uint_eq(conn.peer_epoch, 0);
    dq_conn_init(&conn, 2, 1);
    ck_assert(!conn.yields);
    dq_conn_init(&conn, UINT64_C(1) << 40, 1); /* all 64 bits count */
    ck_assert(!conn.yields);
    dq_conn_init(&conn, 3, 3);
    ck_assert(!conn.yields);
}
END_TEST


START_TEST(test_newer)
{
    ck_assert(dq_epoch_is_newer(2, 1));
    ck_assert(!dq_epoch_is_newer(1, 2));
    ck_assert(!dq_epoch_is_newer(1, 1));
    ck_assert(dq_epoch_is_newer(1, UINT32_MAX));
    ck_assert(!dq_epoch_is_newer(UINT32_MAX, 1));
}
END_TEST


/* A forgotten cell would be all zeroes: IDLE, no actions. From any state but
 * IDLE that is a move that nothing may make; in IDLE the written cells say
 * something, or belong to the timer and QP that it does not have. */
START_TEST(test_every_cell_is_written)
{
    dq_conn_cell_t cell;
    int state, event;

    for (state = 0; state < DQ_CONN_STATE_LAST; state++) {
        for (event = 0; event < DQ_EV_LAST; event++) {
            cell = dq_conn_cell((dq_conn_state_t)state,
                                (dq_conn_event_t)event);
            if ((state == DQ_CONN_IDLE) && ((event == DQ_EV_TICK) ||
                                            (event == DQ_EV_EXPIRE) ||
                                            (event == DQ_EV_LOSE) ||
                                            (event == DQ_EV_NO_QP) ||
                                            (event == DQ_EV_DRAINED) ||
                                            (event == DQ_EV_REST) ||
                                            (event == DQ_EV_QP_ERROR))) {
                continue;
            }
            ck_assert_msg((cell.next != DQ_CONN_IDLE) || (cell.actions != 0),
                          "no answer to %s in %s",
                          dq_conn_event_name((dq_conn_event_t)event),
                          dq_conn_state_name((dq_conn_state_t)state));
            ck_assert_int_lt(cell.next, DQ_CONN_STATE_LAST);
            ck_assert_msg((state == DQ_CONN_IDLE) ||
                                  (cell.next != DQ_CONN_IDLE),
                          "back to IDLE from %s",
                          dq_conn_state_name((dq_conn_state_t)state));
        }
    }
}
END_TEST


/* A step is the cell, and the epochs: ours with a QP, the peer's with its. */
START_TEST(test_step_is_the_cell)
{
    dq_frame_t frame = {.epoch = PEER, .first = FIRST, .mark = PEER_MARK};
    dq_conn_cell_t cell;
    dq_conn_t conn;
    uint32_t actions;
    int state, event, is_new, connects;

    for (state = 0; state < DQ_CONN_STATE_LAST; state++) {
        for (event = 0; event < DQ_EV_LAST; event++) {
            conn     = (dq_conn_t){.state = state, .epoch = 7, .first = 6,
                                   .peer_epoch = 8, .peer_last = 9,
                                   .peer_first = 5, .mark = MARK,
                                   .peer_mark = 4};
            cell     = dq_conn_cell((dq_conn_state_t)state,
                                    (dq_conn_event_t)event);
            actions  = dq_conn_step(&conn, (dq_conn_event_t)event, &frame,
                                    MINE);
            is_new   = (actions & DQ_ACT_QP_CREATE) != 0;
            connects = (actions & DQ_ACT_QP_CONNECT) != 0;
            ck_assert_uint_eq(actions, cell.actions);
            ck_assert_int_eq(conn.state, cell.next);
            ck_assert_uint_eq(conn.epoch, is_new ? MINE : 7);
            ck_assert_uint_eq(conn.first, 6);
            ck_assert_uint_eq(conn.peer_epoch,
                              connects ? PEER : is_new ? 0 : 8);
            ck_assert_uint_eq(conn.peer_last, connects ? PEER : 9);
            ck_assert_uint_eq(conn.peer_first, connects ? FIRST : 5);
            ck_assert_uint_eq(conn.peer_mark,
                              (connects || (event == DQ_EV_AGAIN)) ? PEER_MARK
                                                                   : 4);
            ck_assert_uint_eq(conn.mark, is_new ? 0 : MARK);
        }
    }

    dq_conn_init(&conn, 1, 2);
    dq_conn_step(&conn, DQ_EV_OPEN, NULL, MINE);
    ck_assert_uint_eq(conn.first, MINE);
}
END_TEST


/* A GONE names what the peer waits for an answer to, if that is all it knows. */
START_TEST(test_ended)
{
    dq_frame_t frame = {.kind = DQ_FRAME_REQ, .epoch = PEER, .first = PEER,
                        .mark = PEER_MARK};
    dq_frame_t gone  = {.kind = DQ_FRAME_GONE};
    dq_conn_t conn;

    dq_conn_init(&conn, 2, 1);
    dq_conn_step(&conn, DQ_EV_OPEN, NULL, MINE);
    dq_conn_name_ended(&conn, &gone);
    ck_assert_uint_eq(gone.peer_epoch, 0);
    ck_assert_uint_eq(gone.peer_mark, 0);

    ck_assert_int_eq(dq_conn_classify(&conn, &frame), DQ_EV_REQ_CROSS);
    dq_conn_step(&conn, DQ_EV_REQ_CROSS, &frame, NEXT);
    dq_conn_name_ended(&conn, &gone);
    ck_assert_uint_eq(gone.peer_epoch, PEER);
    ck_assert_uint_eq(gone.peer_mark, PEER_MARK);

    frame = (dq_frame_t){.kind = DQ_FRAME_REP, .epoch = SOON, .first = PEER,
                         .peer_epoch = MINE, .mark = PEER_MARK + 1};
    dq_conn_step(&conn, DQ_EV_REP, &frame, NEXT);
    ck_assert_uint_eq(conn.heard, 0);
    ck_assert_uint_eq(conn.heard_mark, 0);
    dq_conn_name_ended(&conn, &gone);
    ck_assert_uint_eq(gone.peer_epoch, SOON);
    ck_assert_uint_eq(gone.peer_mark, PEER_MARK + 1);

    dq_conn_step(&conn, DQ_EV_LOSE, NULL, NEXT);
    dq_conn_step(&conn, DQ_EV_DRAINED, NULL, NEXT);
    dq_conn_name_ended(&conn, &gone);
    ck_assert_uint_eq(gone.peer_epoch, 0);
}
END_TEST


/*
 * An end rests:
 *  1  it closes its QP, and another one comes with OPEN
 *  2  or with the peer's REQ, which it answers
 *  3  it does not rest if the peer has asked meanwhile
 *  4  and what was asked before the last QP does not count
 */
START_TEST(test_rest)
{
    const dq_frame_t req = {.kind = DQ_FRAME_REQ, .epoch = SOON, .first = PEER,
                            .peer_epoch = MINE, .mark = PEER_MARK};
    dq_conn_t conn = {.state = DQ_CONN_LOST, .epoch = MINE, .first = MINE,
                      .peer_last = PEER, .peer_first = PEER};
    dq_conn_t copy = conn;
    uint32_t actions;

    /* 1 */
    ck_assert_uint_eq(dq_conn_step(&conn, DQ_EV_REST, NULL, NEXT), DQ_ACT_QP_CLOSE);
    ck_assert_int_eq(conn.state, DQ_CONN_RESTING);
    ck_assert_uint_eq(conn.epoch, MINE);
    actions = dq_conn_step(&conn, DQ_EV_OPEN, NULL, NEXT);
    ck_assert_uint_eq(actions, DQ_ACT_QP_CREATE | DQ_ACT_SEND_REQ | DQ_ACT_TIMER_ARM);
    ck_assert_int_eq(conn.state, DQ_CONN_REQ_SENT);
    ck_assert_uint_eq(conn.epoch, NEXT);

    /* 2 */
    conn = copy;
    dq_conn_step(&conn, DQ_EV_REST, NULL, NEXT);
    ck_assert_int_eq(dq_conn_classify(&conn, &req), DQ_EV_REQ);
    actions = dq_conn_step(&conn, DQ_EV_REQ, &req, NEXT);
    ck_assert_uint_eq(actions, DQ_ACT_QP_CREATE | DQ_ACT_QP_CONNECT |
                                       DQ_ACT_SEND_REP | DQ_ACT_TIMER_ARM);
    ck_assert_int_eq(conn.state, DQ_CONN_REP_SENT);
    ck_assert_uint_eq(conn.peer_epoch, SOON);

    /* 3 */
    conn = copy;
    dq_conn_step(&conn, DQ_EV_REQ, &req, NEXT);
    ck_assert_int_eq(conn.state, DQ_CONN_LOST);
    actions = dq_conn_step(&conn, DQ_EV_REST, NULL, NEXT);
    ck_assert_uint_eq(actions, DQ_ACT_QP_CLOSE | DQ_ACT_QP_CREATE | DQ_ACT_SEND_REQ |
                                       DQ_ACT_TIMER_ARM);
    ck_assert_int_eq(conn.state, DQ_CONN_REQ_SENT);

    /* 4 */
    conn.state = DQ_CONN_LOST;
    dq_conn_step(&conn, DQ_EV_REST, NULL, NEXT + 1);
    ck_assert_int_eq(conn.state, DQ_CONN_RESTING);
}
END_TEST


START_TEST(test_names)
{
    uint32_t bit;
    int i, j;

    for (i = 0; i < DQ_CONN_STATE_LAST; i++) {
        ck_assert_str_ne(dq_conn_state_name((dq_conn_state_t)i), "?");
        for (j = 0; j < i; j++) {
            ck_assert_str_ne(dq_conn_state_name((dq_conn_state_t)i),
                             dq_conn_state_name((dq_conn_state_t)j));
        }
    }
    for (i = 0; i < DQ_EV_LAST; i++) {
        ck_assert_str_ne(dq_conn_event_name((dq_conn_event_t)i), "?");
        for (j = 0; j < i; j++) {
            ck_assert_str_ne(dq_conn_event_name((dq_conn_event_t)i),
                             dq_conn_event_name((dq_conn_event_t)j));
        }
    }
    for (bit = 1; bit < DQ_ACT_LAST_BIT; bit <<= 1) {
        ck_assert_str_ne(dq_conn_action_name(bit), "?");
    }
    ck_assert_str_eq(dq_conn_state_name(DQ_CONN_STATE_LAST), "?");
    ck_assert_str_eq(dq_conn_event_name(DQ_EV_LAST), "?");
    ck_assert_str_eq(dq_conn_action_name(DQ_ACT_LAST_BIT), "?");
    ck_assert_str_eq(dq_conn_action_name(0), "?");
}
END_TEST


static Suite *suite_conn(void)
{
    Suite *suite = suite_create("conn");
    TCase *edges = tcase_create("edges");

    tcase_set_timeout(edges, T_TIMEOUT);
    tcase_add_loop_test(edges, test_classify, 0,
                        sizeof(lines) / sizeof(lines[0]));
    tcase_add_loop_test(edges, test_wrong_mark, 0,
                        sizeof(lines) / sizeof(lines[0]));
    tcase_add_test(edges, test_init);
    tcase_add_test(edges, test_newer);
    tcase_add_test(edges, test_every_cell_is_written);
    tcase_add_test(edges, test_step_is_the_cell);
    tcase_add_test(edges, test_ended);
    tcase_add_test(edges, test_rest);
    tcase_add_test(edges, test_names);
    suite_add_tcase(suite, edges);
    return suite;
}

T_MAIN(suite_conn)
