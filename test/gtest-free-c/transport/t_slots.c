/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slots of a send queue: a connection that sends little has few. One that sends more
 * gets more, while requests are in flight, held by a batch, or to be replayed. The same
 * of the completion queue that all connections share.
 */
#include "t_uct.h"

#include <stdlib.h>

/* The receiver lets all messages of a test come. */
#define WIDE "RX_WINDOW_START=256 "


static uint64_t grown(void)
{
    return t_live_sum("slots_grown");
}


/* A link from one end to another, which may send as much as it likes. */
static t_link_t *link_open(const char *options, t_stream_t *to)
{
    t_end_t *a = t_end_open(options);
    t_end_t *b = t_end_open(WIDE);

    t_only_daqiri("counts its slots");
    return t_link_up(a, b, 1, to);
}


/* A few messages fit the 16 that are there, however often that is. */
START_TEST(test_few)
{
    t_stream_t to;
    t_link_t *link = link_open(WIDE, &to);
    unsigned i;

    for (i = 0; i < 40; i++) {
        t_send(link, T_SHORT, 8);
        ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    }
    ck_assert_uint_le(grown(), 1); /* each flush is a request, too */
    T_WAIT(to.got == link->sent);
}
END_TEST


/* Nothing completes while 200 are posted: each time that half of the slots are in use,
 * there come more. */
START_TEST(test_in_flight)
{
    t_stream_t to;
    t_link_t *link = link_open(WIDE "TX_BATCH=off", &to);
    unsigned i;

    for (i = 0; i < 200; i++) {
        ck_assert_int_eq(t_try_send(link, (t_how_t)_i, 100), UCS_OK);
    }
    ck_assert_uint_eq(grown(), 2); /* 16, 64, 256 */
    T_WAIT(to.got == link->sent);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    ck_assert_uint_eq(grown(), 2);
}
END_TEST


/* SQ_DEPTH is the end, be it a power of two or not. */
START_TEST(test_most)
{
    static const struct {
        const char *options;
        unsigned   grown, fit;
    } cases[] = {
        {WIDE "TX_BATCH=off SQ_DEPTH=4", 0, 3},
        {WIDE "TX_BATCH=off SQ_DEPTH=16", 0, 15},
        {WIDE "TX_BATCH=off SQ_DEPTH=17", 1, 16},
        {WIDE "TX_BATCH=off SQ_DEPTH=100", 2, 99},
    };
    t_stream_t to;
    t_link_t *link = link_open(cases[_i].options, &to);
    unsigned i;

    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    for (i = 0; i < cases[_i].fit; i++) {
        ck_assert_int_eq(t_try_send(link, T_SHORT, 8), UCS_OK);
    }
    ck_assert_int_eq(t_try_send(link, T_SHORT, 8), UCS_ERR_NO_RESOURCE);
    ck_assert_uint_eq(grown(), cases[_i].grown);
    T_WAIT(to.got == link->sent);
}
END_TEST


/* The queue pair dies while there come more slots. What was posted before and after is
 * replayed from the new log, and comes once, in order, as it was. */
START_TEST(test_lost)
{
    static const char *const batch[] = {"off", "on"};
    char options[128], plan[64];
    t_stream_t to;
    t_link_t *link;
    t_end_t *a, *b;
    unsigned i;

    t_only_daqiri("recovers");
    if (t_is_softroce()) {
        t_skip("only softverbs kills a QP by a plan");
    }
    t_expect_losses_of_qps();
    snprintf(options, sizeof(options), WIDE "TX_BATCH=%s TIMEOUT=8ms RETRY_COUNT=3 "
             "CONN_RETRY=5ms", batch[_i % 2]);
    a    = t_end_open(options);
    b    = t_end_open(options);
    link = t_link_up(a, b, 1, &to);
    snprintf(plan, sizeof(plan), "qp-error qp=rc op=send n=%d times=1", 3 + 5 * _i);
    t_plan_by_command(plan);
    for (i = 0; i < 150; i++) {
        t_send(link, (t_how_t)(i % T_HOW_LAST), 30 + i);
    }
    T_WAIT(to.got == link->sent);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    ck_assert_uint_gt(t_live_sum("recoveries"), 0);
    ck_assert_uint_ge(grown(), 2);
}
END_TEST


/* ---- The completion queue of all ---- */

enum {
    KEEPERS = 2,    /* connections that keep entries of the queue            */
    KEPT    = 1000, /* entries of each: together more than 3/8 of 4096       */
    CQ_LEN  = 4096
};

/* Deep send queues that seldom ask for a completion. */
#define KEEPING "TX_BATCH=off SQ_DEPTH=4096 SIGNAL_EVERY=1024 SEG_SIZE=512 " \
    "RX_BUFFERS=16384 RX_WINDOW=4096 RX_WINDOW_START=4096 "


/* Sends until the link has all of its slots, and then KEPT messages of which none asks
 * for a completion. */
static void keep(t_link_t *link)
{
    unsigned i;

    for (i = 0; i < 600; i++) {
        ck_assert_int_eq(t_try_send(link, T_SHORT, 8), UCS_OK);
    }
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    for (i = 0; i < KEPT; i++) {
        t_send(link, T_SHORT, 8);
    }
}


/* An interface whose connections keep much of the queue gets a longer one, unless its
 * user has said how long it is, or the device has none. Messages come in any case, and
 * each entry is given back in the end. */
START_TEST(test_cq)
{
    static const struct {
        const char *options, *plan;
        unsigned   length;
    } cases[] = {
        {KEEPING, NULL, 2 * CQ_LEN},
        {KEEPING "CQ_LEN=4096", NULL, CQ_LEN},
        {KEEPING, "verb name=resize_cq errno=EOPNOTSUPP", CQ_LEN},
    };
    unsigned length = cases[_i].length + KEEPERS * CQ_LEN;
    t_stream_t to[KEEPERS];
    t_link_t *link[KEEPERS];
    t_end_t *from;
    double start;
    unsigned i;

    t_only_daqiri("tells the length of its queue");
    t_no_idle_closes("connections that keep what they have posted");
    if ((cases[_i].plan != NULL) && t_is_softroce()) {
        t_skip("only softverbs refuses by a plan");
    }
    from = t_end_open(cases[_i].options);
    for (i = 0; i < KEEPERS; i++) {
        link[i] = t_link_up(from, t_end_open(KEEPING), 1 + i, &to[i]);
    }
    if (cases[_i].plan != NULL) {
        t_plan_by_command(cases[_i].plan);
    }
    for (i = 0; i < KEEPERS; i++) {
        keep(link[i]);
        T_WAIT(to[i].got == link[i]->sent);
    }
    start = t_seconds();
    while ((t_live_sum("cq_len") != length) || (t_seconds() - start < 2.5)) {
        t_progress_or_yield(); /* two looks of the watchdog, and it is no longer */
    }
    for (i = 0; i < KEEPERS; i++) {
        t_send(link[i], T_SHORT, 8);
        T_WAIT(to[i].got == link[i]->sent);
    }
}
END_TEST


static Suite *suite_slots(void)
{
    Suite *suite = suite_create("slots");
    TCase *grow  = t_uct_case("grow");
    TCase *lost  = t_uct_case("lost");
    TCase *queue = t_uct_case("cq");

    tcase_add_test(grow, test_few);
    tcase_add_loop_test(grow, test_in_flight, 0, T_HOW_LAST);
    tcase_add_loop_test(grow, test_most, 0, 4);
    suite_add_tcase(suite, grow);
    tcase_add_loop_test(lost, test_lost, 0, 12);
    suite_add_tcase(suite, lost);
    tcase_add_loop_test(queue, test_cq, 0, 3);
    suite_add_tcase(suite, queue);
    return suite;
}

T_UCT_MAIN(suite_slots)
