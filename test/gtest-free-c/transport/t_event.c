/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events: what docs/events.md says that each of them does, and
 * nothing else; and that all of them are acknowledged, for without that the queue
 * pairs that they are about could not be destroyed. A plan of faults makes the
 * event alone: nothing is wrong with what it is about.
 */
#include "t_uct.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGES = 200, AT = 40 };

/* What the conns of the end that gets it do. */
typedef enum {
    GOES_ON,  /* nothing that anybody could see                              */
    RECOVERS, /* another queue pair, and all arrives                         */
    FAILS     /* the endpoints                                               */
} end_t;

static const struct {
    const char *type;
    end_t      end;
    const char *words; /* in the log                                         */
} events[] = {
    {"QP_FATAL", RECOVERS, "a queue pair has failed (QP_FATAL)"},
    {"QP_REQ_ERR", GOES_ON, NULL}, /* its cause is at the peer */
    {"QP_ACCESS_ERR", GOES_ON, NULL},
    {"COMM_EST", GOES_ON, NULL},
    {"SQ_DRAINED", GOES_ON, NULL},
    {"PATH_MIG", GOES_ON, NULL},
    {"PATH_MIG_ERR", GOES_ON, NULL},
    {"QP_LAST_WQE_REACHED", GOES_ON, NULL},
    {"CQ_ERR", FAILS, "that a completion queue has failed"},
    {"SRQ_ERR", FAILS, "that the shared receive queue has failed"},
    {"SRQ_LIMIT_REACHED", GOES_ON, NULL},
    {"DEVICE_FATAL", FAILS, "the device reports that it has failed"},
    {"PORT_ERR", GOES_ON, NULL},
    {"PORT_ACTIVE", GOES_ON, NULL},
    {"LID_CHANGE", GOES_ON, NULL},
    {"PKEY_CHANGE", GOES_ON, NULL},
    {"SM_CHANGE", GOES_ON, NULL},
    {"CLIENT_REREGISTER", GOES_ON, NULL},
    {"GID_CHANGE", GOES_ON, NULL},
};

enum { EVENTS = sizeof(events) / sizeof(events[0]) };


static void plan_text(const char *text)
{
    const char *bed = getenv("T_BED");

    t_only_daqiri("heeds events");
    if ((bed != NULL) && (strcmp(bed, "softverbs") != 0)) {
        t_skip("only softverbs makes events by a plan");
    }
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS", text, 1), 0);
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS_LOG", "/dev/null", 1), 0);
}


static void plan(const char *type)
{
    char text[128];

    snprintf(text, sizeof(text), "event type=%s qp=rc n=%d times=1", type,
             (int)AT);
    plan_text(text);
}


/* Sends until all is there, or the endpoint has failed: before that has been
 * told, no operation does. */
static void stream_all(t_link_t *link, t_stream_t *stream, t_end_t *end)
{
    ucs_status_t status;

    while ((link->sent < MESSAGES) && (end->errors == 0)) {
        status = t_try_send(link, (link->sent % 3) ? T_BCOPY : T_ZCOPY, 500);
        ck_assert((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE));
        t_progress_or_yield();
    }
    T_WAIT((stream->got == MESSAGES) || (end->errors > 0));
    T_WAIT(link->zcopies == 0);
}


START_TEST(test_event)
{
    const char *words = events[_i].words;
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];

    plan(events[_i].type);
    if (events[_i].end == RECOVERS) {
        t_expect_losses_of_qps();
    } else if (events[_i].end == FAILS) {
        t_expect_loss();
        t_expect_losses_of_qps();
        t_expect_log(words);
    }
    end[0] = t_end_open("CONN_RETRY=5ms TIMEOUT=8ms RETRY_COUNT=3 "
                        "RECOVERY_TIMEOUT=1s");
    end[1] = t_end_open("CONN_RETRY=5ms TIMEOUT=8ms RETRY_COUNT=3 "
                        "RECOVERY_TIMEOUT=1s");
    t_stream_open(&stream, end[1], 1);
    link = t_link_open(end[0], &end[1]->address, 1);
    stream_all(link, &stream, end[0]);
    T_WAIT(t_live_sum("events") > 0);
    if (events[_i].end == RECOVERS) {
        T_WAIT((t_live_sum("qp_failures") > 0) &&
               (t_live_sum("qp_failures") == t_live_sum("recoveries")));
    }
    if (events[_i].end == FAILS) {
        T_WAIT(end[0]->errors == 1);
        t_link_close(link);
    } else {
        ck_assert_uint_eq(stream.got, MESSAGES);
        ck_assert_int_eq(t_ep_flush(link), UCS_OK);
        ck_assert_uint_eq(end[0]->errors, 0);
    }
    t_end_close_all(); /* which waits for ever if it is not acknowledged */

    ck_assert_uint_ge(t_stats_sum("events"), 1);
    if (events[_i].end == RECOVERS) {
        ck_assert_uint_gt(t_stats_sum("recoveries"), 0);
        ck_assert_uint_eq(t_log_count(words), 1);
    } else if (events[_i].end == GOES_ON) {
        ck_assert_uint_eq(t_stats_sum("qp_failures"), 0);
    }
}
END_TEST


/* Of the endpoints of one process, all that share what is broken fail, each
 * once; and the next that is made fails as well, instead of waiting. */
START_TEST(test_all_fail)
{
    t_stream_t stream[3];
    t_link_t *link[3];
    t_end_t *end[4];
    unsigned i;

    plan((_i == 0) ? "DEVICE_FATAL" : "CQ_ERR");
    t_expect_loss();
    t_expect_losses_of_qps();
    t_expect_log("the device reports that ");
    for (i = 0; i < 4; i++) {
        end[i] = t_end_open("CONN_RETRY=5ms TIMEOUT=8ms RETRY_COUNT=3 "
                            "RECOVERY_TIMEOUT=1s");
    }
    for (i = 0; i < 3; i++) {
        link[i] = t_link_up(end[0], end[1 + i], i, &stream[i]);
    }
    while (end[0]->errors == 0) {
        (void)t_try_send(link[0], T_BCOPY, 10);
        t_progress_or_yield();
    }
    T_WAIT(end[0]->errors == 3);
    for (i = 0; i < 3; i++) {
        t_link_close(link[i]);
    }
    t_end_close_all();
}
END_TEST


/* A flush that has nothing to wait for is an operation like any other: it does
 * not fail before it was told why, or the program would end without a word. */
START_TEST(test_flush)
{
    static const char words[] = "that the shared receive queue has failed";
    ucs_status_t status;
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end;

    plan("SRQ_ERR");
    t_expect_loss();
    t_expect_losses_of_qps();
    t_expect_log(words);
    end = t_end_open("SIGNAL_EVERY=1");
    t_stream_open(&stream, end, 1);
    link = t_link_open(end, &end->address, 1);
    while (end->errors == 0) {
        if (link->sent < AT) {
            (void)t_try_send(link, T_BCOPY, 10);
        }
        status = uct_ep_flush(link->ep, 0, NULL);
        ck_assert_msg((status == UCS_OK) || (status == UCS_INPROGRESS) ||
                      (status == UCS_ERR_NO_RESOURCE),
                      "%s, before anybody has said why",
                      ucs_status_string(status));
        t_progress_or_yield();
    }
    ck_assert_uint_eq(t_log_count(words), 1);
    ck_assert_int_eq(uct_ep_flush(link->ep, 0, NULL), UCS_ERR_IO_ERROR);
    t_link_close(link);
    t_end_close_all();
}
END_TEST


/* ---- What is asked again at once ---- */

/* A connection has died of something, and before anybody is told the device fails
 * as a whole: the first cause is the cause. */
START_TEST(test_first_cause)
{
    static const char words[] = "the device refused a work request that fits "
                                "its queue";
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];

    plan_text("");
    t_expect_loss();
    t_expect_refused_posts();
    t_expect_log(words);
    end[0] = t_end_open("RECOVERY=n");
    end[1] = t_end_open("RECOVERY=n");
    link = t_link_up(end[0], end[1], 1, &stream);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    t_plan_by_command("post qp=rc times=1");
    ck_assert_int_ne(t_try_send(link, T_SHORT, 10), UCS_OK);
    t_plan_by_command("event type=DEVICE_FATAL qp=ud.0 at=0ms times=1");
    while (t_live_sum("events") == 0) {
        sched_yield(); /* no progress: it would tell */
    }
    T_WAIT(end[0]->errors == 1);
    ck_assert_uint_eq(t_log_count(words), 1);
    t_link_close(link);
    t_end_close_all();
}
END_TEST


/* Nothing arrives, and who asks would wait for a second each time: so often it
 * asks only because the wire, or the address, may be another one now. */
START_TEST(test_hurry)
{
    static const char *const types[] = {"PORT_ACTIVE", "GID_CHANGE",
                                        "LID_CHANGE", "PKEY_CHANGE"};
    t_end_t *end[2];
    char plan[96];

    plan_text("drop");
    end[0] = t_end_open("CONN_RETRY=1s CONN_TIMEOUT=3600s");
    end[1] = t_end_open("");
    (void)t_link_open(end[0], &end[1]->address, 1);
    T_WAIT(t_live_sum("frames_tx") > 0);
    snprintf(plan, sizeof(plan), "drop; event type=%s qp=ud.0 at=0ms every=5ms",
             types[_i]);
    t_plan_by_command(plan);
    T_WAIT(t_live_sum("frames_tx") > 300);
    ck_assert_uint_gt(t_live_sum("events"), 100);
    ck_assert_uint_eq(t_live_sum("conns_up"), 0);
}
END_TEST


/*
 * Who is hurried asks as often as one who has just begun to, although it had
 * come to ask seldom. Both lose what they ask first, the other two times more,
 * and the waits between double: so the other meets its peer later. One that
 * still asked seldom would take seconds, and the other would be first. Both have
 * the same thread, which when it is late is so for both.
 */
START_TEST(test_hurried_afresh)
{
    static const char once[] = "drop qp=ud.0 times=5; drop qp=ud.1 times=7; "
                               "event type=PORT_ACTIVE qp=ud.0 at=0ms times=1";
    t_stream_t stream[2];
    t_link_t *link[2];
    t_end_t *end[3];
    unsigned i;

    plan_text("drop");
    for (i = 0; i < 3; i++) {
        end[i] = t_end_open("CONN_RETRY=5ms CONN_TIMEOUT=3600s");
    }
    for (i = 0; i < 2; i++) {
        t_stream_open(&stream[i], end[2], i);
    }
    link[0] = t_link_open(end[0], &end[2]->address, 0);
    T_WAIT(t_live_sum("frames_tx") >= 8); /* the next one after 640 ms */
    t_plan_by_command(once);
    T_WAIT(t_live_sum("events") > 0);
    link[1] = t_link_open(end[1], &end[2]->address, 1);
    t_send(link[1], T_SHORT, 10);
    t_send(link[0], T_SHORT, 10);
    T_WAIT(stream[0].got + stream[1].got > 0);
    ck_assert_uint_eq(stream[0].got, 1);
    T_WAIT(stream[1].got == 1);
}
END_TEST


/* The last frame of a handshake is lost, and nothing is sent: that the device has
 * heard of the peer is as good, once somebody here wants it. */
START_TEST(test_established)
{
    static const char heard[] = "drop qp=ud.0; "
                                "event type=COMM_EST qp=rc at=0ms times=8";
    t_end_t *end[2];

    plan_text("drop qp=ud.0 n=2 every=1");
    end[0] = t_end_open("CONN_TIMEOUT=3600s");
    end[1] = t_end_open("CONN_TIMEOUT=3600s");
    (void)t_link_open(end[0], &end[1]->address, 1);
    T_WAIT(t_live_sum("conns_up") == 1);
    t_progress_turns(1000);
    ck_assert_uint_eq(t_live_sum("conns_up"), 1);
    t_plan_by_command(heard);
    T_WAIT(t_live_sum("events") == 2); /* of both ends */
    ck_assert_uint_eq(t_live_sum("conns_up"), 1);
    (void)t_link_open(end[1], &end[0]->address, 1);
    t_plan_by_command(heard);
    T_WAIT(t_live_sum("conns_up") == 2);
}
END_TEST


/* ---- An event that is read late ---- */

/*
 * A receive queue overruns: the third message is acknowledged, but nobody learns
 * that it is here, and the queue pair dies of it. That is seen, and all of it
 * drained, before the event is read. What has failed must be said nevertheless,
 * and not what is wrong with the counts by that.
 */
START_TEST(test_overrun)
{
    static const char options[] = "CONN_RETRY=5ms TIMEOUT=8ms RETRY_COUNT=3 "
                                  "SIGNAL_EVERY=1";
    static const char words[]   = "that a completion queue has failed";
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];
    t_hold_t hold;
    int i;

    plan_text("overrun qp=rc cq=recv n=3 times=1");
    t_expect_loss();
    t_expect_losses_of_qps();
    t_expect_log(words);
    end[0] = t_end_open(options);
    end[1] = t_end_open(options);
    t_stream_open(&stream, end[0], 1);
    link = t_link_open(end[0], &end[0]->address, 1);
    for (i = 0; i < 2; i++) {
        t_send(link, T_BCOPY, 10);
        T_WAIT(stream.got == (unsigned)i + 1);
    }

    t_hold_begin(&hold);
    /* a command is there before the event, and so are those that follow it */
    (void)t_link_open(end[0], &end[1]->address, 2);
    while (t_live_sum("qp_failures") == 0) {
        (void)t_try_send(link, T_BCOPY, 10);
        t_progress_or_yield();
    }
    T_WAIT(uct_iface_event_arm(end[0]->iface, UCT_EVENT_SEND_COMP) == UCS_OK);
    t_hold_end(&hold);
    T_WAIT(end[0]->errors > 0);
    t_link_close(link);
    t_end_close_all();
    ck_assert_uint_eq(stream.got, 2);
    ck_assert_uint_gt(t_log_count(words), 0);
}
END_TEST


/*
 * A queue pair has failed, says the device, and nobody had a reason to look at the
 * completion queue, where it says why: that is what is told.
 */
START_TEST(test_why)
{
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];

    plan_text("");
    t_expect_losses_of_qps();
    end[0] = t_end_open("SIGNAL_EVERY=64 CONN_RETRY=5ms");
    end[1] = t_end_open("SIGNAL_EVERY=64 CONN_RETRY=5ms");
    link = t_link_up(end[0], end[1], 1, &stream);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    t_plan_by_command("event type=QP_FATAL qp=rc times=1; "
                      "complete qp=rc times=1 status=RETRY_EXC_ERR");
    ck_assert_int_eq(t_try_send(link, T_SHORT, 10), UCS_OK);
    while (t_live_sum("events") == 0) {
        sched_yield(); /* no progress: it might look */
    }
    T_WAIT((t_live_sum("recoveries") == 2) && (stream.got == 2));
    t_end_close_all();
    ck_assert_uint_eq(t_log_count("(QP_FATAL)"), 0);
    ck_assert_uint_eq(t_stats_sum("qp_failures"), 2);
}
END_TEST


/* Until it waits for nothing but the thread that is held. */
static void go_on_without(t_end_t *other)
{
    other->is_stopped = 1;
    t_progress_turns(1000);
    other->is_stopped = 0;
}


/* A request fails, and its queue pair is drained, to be destroyed. */
static void lose_without(t_link_t *link, t_end_t *other)
{
    uint64_t losses = t_live_sum("qp_failures");

    other->is_stopped = 1;
    t_plan_by_command("complete qp=rc times=1 status=RETRY_EXC_ERR");
    ck_assert_int_eq(t_try_send(link, T_SHORT, 10), UCS_OK);
    T_WAIT(t_live_sum("qp_failures") == losses + 1);
    go_on_without(other);
}


/*
 * Both ends lose their queue pairs. That the peer's is lost is told to an end that
 * has lost its own already, and is read together with that it is destroyed: the next
 * one is not meant. What the thread does comes in the order in which it is asked:
 * first what the peer asks, then what the end has asked by itself.
 */
START_TEST(test_both_lose)
{
    static const char options[] = "CONN_RETRY=1s SIGNAL_EVERY=1";
    t_stream_t stream[2];
    t_link_t *link[2];
    t_end_t *end[2];
    t_hold_t hold[4];
    unsigned i;

    plan_text("");
    t_expect_losses_of_qps();
    for (i = 0; i < 2; i++) {
        end[i] = t_end_open(options);
    }
    for (i = 0; i < 2; i++) {
        link[i] = t_link_up(end[i], end[1 - i], i, &stream[i]);
        ck_assert_int_eq(t_ep_flush(link[i]), UCS_OK);
    }
    t_hold_begin(&hold[0]);
    lose_without(link[1], end[0]);
    t_hold_next(&hold[1], &hold[0]); /* the peer's is destroyed */
    go_on_without(end[0]);
    t_hold_next(&hold[2], &hold[1]); /* and the peer has asked */
    lose_without(link[0], end[1]);
    t_hold_next(&hold[3], &hold[2]); /* which has been heard; now, the end's is */
    for (i = 0; i < 4; i++) {
        t_hold_end(&hold[i]);
    }
    T_WAIT(t_live_sum("recoveries") >= 2);
    for (i = 0; i < 2; i++) {
        t_send(link[i], T_SHORT, 10);
        T_WAIT(stream[i].got == link[i]->sent);
    }
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("qp_failures"), 2);
}
END_TEST


/* ---- The handshake's own completion queue ---- */

/* At the fourth frame of the first interface: its first connection takes two,
 * three on a machine that stands still for a second. A queue pair dies later. */
static const char *const deaf_plans[] = {
    "event type=CQ_ERR qp=ud.0 n=4 times=1; qp-error qp=rc n=150 times=1",
    "overrun qp=ud.0 n=4 times=1; qp-error qp=rc n=150 times=1",
};

enum { DEAF_PLANS = sizeof(deaf_plans) / sizeof(deaf_plans[0]) };


/* Fails without waiting for what bounds a handshake; CONN_TIMEOUT is longer than
 * this test may take. */
static void deaf_attempt(t_end_t *end, const t_address_t *to, uint8_t id)
{
    unsigned errors = end->errors;
    t_link_t *link  = t_link_open(end, to, id);

    T_WAIT(end->errors == errors + 1);
    ck_assert_int_eq(end->error, UCS_ERR_IO_ERROR);
    t_link_close(link);
}


static void deaf_talk(t_link_t *link, const t_stream_t *stream)
{
    unsigned i;

    for (i = 0; i < 50; i++) {
        t_send(link, T_BCOPY, 100);
    }
    T_WAIT(stream->got == link->sent);
}


/* What is up goes on, and so does a connection to oneself; what would need an
 * answer fails, and says why. */
START_TEST(test_deaf)
{
    static const char words[]   = "that the completion queue of the handshake "
                                  "has failed";
    static const char options[] = "CONN_RETRY=1s CONN_TIMEOUT=600s TIMEOUT=8ms "
                                  "RETRY_COUNT=3 RECOVERY_TIMEOUT=1s";
    t_stream_t stream[2];
    t_address_t nobody;
    t_link_t *link[2];
    t_end_t *end[3];
    unsigned i;

    plan_text(deaf_plans[_i]);
    t_expect_loss();
    t_expect_losses_of_qps();
    t_expect_log(words);
    for (i = 0; i < 3; i++) {
        end[i] = t_end_open(options);
    }
    nobody = end[2]->address;
    t_end_close(end[2]);
    end[2] = t_end_open(options);
    t_stream_open(&stream[0], end[1], 1);
    t_stream_open(&stream[1], end[0], 2);
    link[0] = t_link_open(end[0], &end[1]->address, 1);
    deaf_talk(link[0], &stream[0]);

    deaf_attempt(end[0], &nobody, 3);
    ck_assert_uint_eq(t_log_count(words), 2);
    deaf_attempt(end[0], &end[2]->address, 4);
    ck_assert_uint_eq(t_log_count(words), 3);
    link[1] = t_link_open(end[0], &end[0]->address, 2);
    deaf_talk(link[1], &stream[1]);
    deaf_talk(link[0], &stream[0]);
    ck_assert_uint_eq(end[0]->errors, 2);

    while (end[0]->errors == 2) {
        (void)t_try_send(link[0], T_BCOPY, 100);
        t_progress_or_yield();
    }
    ck_assert_uint_eq(t_log_count(words), 4);
    t_link_close(link[0]);
    deaf_talk(link[1], &stream[1]);
    t_end_close_all();
}
END_TEST


static Suite *suite_event(void)
{
    Suite *suite = suite_create("event");
    TCase *tcase = t_uct_case("event");
    TCase *hurry = t_uct_case("hurry");
    TCase *cause = t_uct_case("cause");

    tcase_add_loop_test(tcase, test_event, 0, EVENTS);
    tcase_add_loop_test(tcase, test_all_fail, 0, 2);
    tcase_add_test(tcase, test_flush);
    tcase_add_loop_test(tcase, test_hurry, 0, 4);
    tcase_add_test(tcase, test_established);
    tcase_add_test(tcase, test_overrun);
    tcase_add_loop_test(tcase, test_deaf, 0, DEAF_PLANS);
    suite_add_tcase(suite, tcase);

    tcase_add_test(hurry, test_hurried_afresh);
    suite_add_tcase(suite, hurry);

    tcase_add_test(cause, test_first_cause);
    tcase_add_test(cause, test_why);
    tcase_add_test(cause, test_both_lose);
    suite_add_tcase(suite, cause);
    return suite;
}

T_UCT_MAIN(suite_event)
