/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows: what a peer may send before it hears from us starts small, and grows with
 * what the peer sends. Whatever it is, no message finds the receive queue empty: the
 * teardown would see the overrun.
 */
#include "t_uct.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    START = 8,   /* RX_WINDOW_START                                          */
    MOST  = 256, /* RX_WINDOW                                                */
    SPARE = 1    /* credits that data leaves for a grant                     */
};

/* Of who only sends: else the grants that it takes would make its own wider. */
#define NARROW "RX_WINDOW=8"


/* One way, as fast as it goes. */
static void stream(t_link_t *link, const t_stream_t *to, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; i++) {
        t_send(link, T_SHORT, 8);
    }
    T_WAIT(to->got == link->sent);
}


/* ---- The start ---- */

/* What is promised, and not a message more, may be sent. */
START_TEST(test_start)
{
    static const struct {
        const char *options;
        unsigned   promised;
    } cases[] = {
        {"", START},
        {"RX_WINDOW_START=4", 4},
        {"RX_WINDOW_START=256", MOST},
        {"RX_WINDOW_START=32768", MOST},
        {"RX_WINDOW=4", 4},
        {"RX_WINDOW=24 RX_WINDOW_START=24", 24},
    };
    const unsigned promised = cases[_i].promised;
    t_end_t *a              = t_end_open("SQ_DEPTH=1024");
    t_end_t *b              = t_end_open(cases[_i].options);
    t_stream_t to;
    t_link_t *link;

    t_only_daqiri("has windows");
    link = t_link_up(a, b, 1, &to);
    T_WAIT(t_live_sum("rx_promised") == START + promised - 1);
    while (t_try_send(link, T_SHORT, 8) == UCS_OK) {
    }
    ck_assert_uint_eq(link->sent, promised - SPARE);
    T_WAIT(to.got == link->sent);
}
END_TEST


/* ---- Wider ---- */

/* A stream comes to have all of the window; who sends a little does not. */
START_TEST(test_stream)
{
    t_end_t *a = t_end_open(NARROW);
    t_end_t *b = t_end_open("");
    t_end_t *c = t_end_open(NARROW);
    t_stream_t to, from_c;
    t_link_t *link;

    t_only_daqiri("has windows");
    link = t_link_up(a, b, 1, &to);
    (void)t_link_up(c, b, 2, &from_c);
    stream(link, &to, t_some(6000));
    ck_assert_uint_eq(t_live_sum("windows_widened"), 5);
    T_WAIT(t_live_sum("credit_frames_rx") == t_live_sum("credit_frames_tx"));
    /* b's to a, half of it at least, for grants need not come sooner; the others' */
    T_WAIT((t_live_sum("rx_promised") > MOST / 2 + 3 * START - 2) &&
           (t_live_sum("rx_promised") <= MOST + 3 * START));
}
END_TEST


/* A few questions and answers leave it as it is; more of them, although none ever
 * uses it up, make it wider, for each grant costs something. */
START_TEST(test_ping_pong)
{
    const unsigned rounds = 1500;
    t_end_t *end[2]       = {t_end_open(""), t_end_open("")};
    t_stream_t to[2];
    t_link_t *link[2];
    unsigned i, s;

    t_only_daqiri("has windows");
    for (s = 0; s < 2; s++) {
        link[s] = t_link_up(end[s], end[1 - s], s, &to[s]);
    }
    for (i = 0; i < rounds; i++) {
        for (s = 0; s < 2; s++) {
            t_send(link[s], T_SHORT, 8);
            T_WAIT(to[s].got == link[s]->sent);
        }
        if (i < 350) {
            ck_assert_uint_eq(t_live_sum("windows_widened"), 0);
        }
    }
    ck_assert_uint_eq(t_live_sum("windows_widened"), 4);
}
END_TEST


/* ---- Where it cannot be ---- */

/* No more memory can be had: it stays as it is, and does its work. */
START_TEST(test_no_memory)
{
    t_end_t *a = t_end_open(NARROW);
    t_end_t *b = t_end_open("");
    t_stream_t to;
    t_link_t *link;

    t_only_daqiri("has windows");
    if (t_is_softroce()) {
        t_skip("only softverbs refuses a registration by a plan");
    }
    link = t_link_up(a, b, 1, &to);
    t_plan_by_command("verb name=reg_mr times=1");
    t_expect_log("ibv_reg_mr");
    stream(link, &to, 2000);
    ck_assert_uint_eq(t_live_sum("windows_widened"), 0);
    ck_assert_uint_eq(t_log_count("ibv_reg_mr"), 1);
}
END_TEST


/* Handlers keep all that there may ever be. */
START_TEST(test_all_kept)
{
    t_end_t *a = t_end_open(NARROW);
    t_end_t *b = t_end_open("RX_BUFFERS=1024 POLL_BATCH=4");
    t_stream_t to, others[2];
    t_link_t *link, *other[2];
    t_rng_t rng;
    unsigned i;

    t_only_daqiri("has windows");
    link = t_link_up(a, b, 1, &to);
    for (i = 0; i < 2; i++) {
        other[i] = t_link_up(t_end_open(NARROW), b, 2 + i, &others[i]);
    }
    to.keep = 1;
    stream(link, &to, 1200);
    ck_assert_uint_gt(to.kept, 700); /* all but the windows of all peers */
    for (i = 0; i < 2; i++) {
        stream(other[i], &others[i], 1000);
    }
    t_rng_init(&rng, 0xb1de);
    t_stream_release(&to, &rng, 0);
    for (i = 0; i < 2; i++) {
        stream(other[i], &others[i], 1000);
    }
}
END_TEST


/* ---- Narrower ---- */

/* One peer has had a wide window, and is quiet. Others come, until all buffers are used:
 * it gives back what it does not use, and all of them get through. Those that come before
 * the answer may be promised more than there is (rx_overcommit). */
START_TEST(test_given_back)
{
    enum { PEERS = 28 };
    t_end_t *b = t_end_open("RX_BUFFERS=200");
    t_stream_t to[PEERS];
    t_link_t *link[PEERS];
    unsigned i;

    t_only_daqiri("has windows");
    t_expect_log("receive buffers are not enough");
    link[0] = t_link_up(t_end_open(NARROW), b, 1, &to[0]);
    stream(link[0], &to[0], 500);
    ck_assert_uint_eq(t_live_sum("windows_widened"), 3); /* 8 to 50, a quarter */
    for (i = 1; i < PEERS; i++) {
        link[i] = t_link_up(t_end_open(NARROW), b, 1 + i, &to[i]);
    }
    T_WAIT(t_live_sum("credits_returned") > 0);
    ck_assert_uint_gt(t_live_sum("windows_recalled"), 0);
    for (i = 0; i < PEERS; i++) {
        stream(link[i], &to[i], 20);
    }
}
END_TEST


/* Some peers have come to have all that is not kept for new ones, and are quiet. One that
 * is connected all the time begins to stream: it gets its share of theirs. */
START_TEST(test_late_stream)
{
    enum { EARLY = 3, PEERS = EARLY + 1 };
    t_end_t *b = t_end_open("RX_BUFFERS=200 POLL_BATCH=4");
    t_stream_t to[PEERS];
    t_link_t *link[PEERS];
    unsigned i, widened;

    t_only_daqiri("has windows");
    for (i = 0; i < PEERS; i++) {
        link[i] = t_link_up(t_end_open(NARROW), b, 1 + i, &to[i]);
    }
    for (i = 0; i < EARLY; i++) {
        stream(link[i], &to[i], 500);
    }
    widened = t_live_sum("windows_widened");
    T_WAIT((stream(link[EARLY], &to[EARLY], 500),
            t_live_sum("windows_widened") >= widened + 2));
    ck_assert_uint_eq(t_live_sum("rx_overcommit"), 0);
}
END_TEST


static void burst(t_link_t *link)
{
    while (t_try_send(link, T_SHORT, 8) == UCS_OK) {
    }
}


/* Credits are asked back where all are used but the one that is left for a grant: of an
 * end's connection to itself, and between two ends that both ask. The question leaves
 * that one, too. Buffers become few with one of these numbers of peers. */
START_TEST(test_asked_at_the_last_credit)
{
    enum { LEAST = 14, COUNTS = 12, CONNECTING = 5000 /* us */ };
    static t_stream_t others[2 * (LEAST + COUNTS)];
    unsigned count = LEAST + _i % COUNTS;
    unsigned ends  = 1 + _i / COUNTS;
    unsigned i, s;
    t_end_t *end[2];
    t_stream_t to[2];
    t_link_t *link[2];

    t_only_daqiri("has windows");
    t_expect_log("receive buffers are not enough");
    end[0] = t_end_open("RX_BUFFERS=200 POLL_BATCH=4");
    end[1] = (ends == 1) ? end[0] : t_end_open("RX_BUFFERS=200 POLL_BATCH=4");
    for (s = 0; s < 2; s++) {
        link[s] = t_link_up(end[s], end[1 - s], 1 + s, &to[s]);
        stream(link[s], &to[s], 500);
    }
    for (i = 0; i < count; i++) {
        for (s = 0; s < ends; s++) {
            (void)t_link_up(t_end_open(NARROW), end[s], 3 + i, &others[2 * i + s]);
        }
    }
    for (s = 0; s < 2; s++) {
        t_stream_open(&others[2 * i + s], end[s], (ends == 2) ? 3 + i : 3 + i + s);
        (void)t_link_open(t_end_open(NARROW), &end[s]->address, 3 + i);
    }
    usleep(CONNECTING); /* the next progress call finds a new peer */
    burst(link[0]);
    burst(link[1]);
    T_WAIT((to[0].got == link[0]->sent) && (to[1].got == link[1]->sent));
    for (s = 0; s < 2; s++) {
        stream(link[s], &to[s], 20);
    }
}
END_TEST


/* The peer asks for credits, and its QP dies before we read that: its question is void.
 * An answer on the next QP would be one to no question. */
START_TEST(test_asked_on_a_lost_qp)
{
    enum { PEERS = 28, NEWS = 20000 /* us: for the thread that reads events */ };
    t_end_t *a = t_end_open("CONN_RETRY=5ms");
    t_end_t *b = t_end_open("RX_BUFFERS=200 CONN_RETRY=5ms");
    t_stream_t to[PEERS], back;
    t_link_t *link[PEERS], *backward;
    uint64_t returned;
    unsigned i;

    t_only_daqiri("has windows");
    if (t_is_softroce()) {
        t_skip("only softverbs kills a QP by a plan");
    }
    t_expect_log("receive buffers are not enough");
    t_expect_losses_of_qps();
    link[0]  = t_link_up(a, b, 1, &to[0]);
    backward = t_link_up(b, a, 1, &back);
    stream(link[0], &to[0], 500);
    a->is_stopped = 1;
    for (i = 1; i < PEERS; i++) {
        link[i] = t_link_up(t_end_open(NARROW), b, 1 + i, &to[i]);
    }
    T_WAIT(t_live_sum("windows_recalled") > 0);
    t_progress_turns(100); /* others have answered */
    returned = t_live_sum("credits_returned");
    t_plan_by_command("qp-error qp=rc op=send n=1 times=1");
    ck_assert_int_eq(t_try_send(backward, T_SHORT, 8), UCS_OK);
    T_WAIT(t_live_sum("qp_failures") > 0);
    t_progress_turns(100);
    usleep(NEWS);
    a->is_stopped = 0;
    T_WAIT(back.got == backward->sent);
    stream(link[0], &to[0], 20);
    stream(backward, &back, 20);
    ck_assert_uint_eq(t_live_sum("credits_returned"), returned);
    ck_assert_uint_eq(t_live_sum("rx_dropped"), 0);
}
END_TEST


/* Many send as fast as they may to one that is slow and has few buffers: nobody
 * starves. */
START_TEST(test_fair)
{
    enum { PEERS = 30, EACH = 200, BURST = 16, SLOW = 8 };
    t_end_t *b    = t_end_open("RX_BUFFERS=120 POLL_BATCH=4");
    uint64_t most = 0, least = UINT64_MAX, all = 0;
    t_stream_t to[PEERS];
    t_link_t *link[PEERS];
    unsigned i, turn, sent;

    t_only_daqiri("has windows");
    t_expect_log("receive buffers are not enough");
    for (i = 0; i < PEERS; i++) {
        link[i] = t_link_up(t_end_open(NARROW), b, 1 + i, &to[i]);
    }
    for (turn = 0; all < EACH * PEERS; turn++) {
        for (i = 0; i < PEERS; i++) {
            for (sent = 0; (sent < BURST) &&
                           (t_try_send(link[i], T_SHORT, 8) == UCS_OK); sent++) {
            }
        }
        b->is_stopped = (turn % SLOW) != 0;
        (void)t_progress();
        for (all = 0, i = 0; i < PEERS; i++) {
            all += to[i].got;
        }
    }
    b->is_stopped = 0;
    for (i = 0; i < PEERS; i++) {
        most  = (to[i].got > most) ? to[i].got : most;
        least = (to[i].got < least) ? to[i].got : least;
    }
    ck_assert_uint_ge(2 * least, most);
    for (i = 0; i < PEERS; i++) {
        T_WAIT(to[i].got == link[i]->sent);
    }
}
END_TEST


/* Made wider while QPs die: promises are counted anew, of the window as it is. */
START_TEST(test_losses)
{
    t_end_t *a = t_end_open(NARROW " TIMEOUT=8ms RETRY_COUNT=3 CONN_RETRY=5ms");
    t_end_t *b = t_end_open("TIMEOUT=8ms RETRY_COUNT=3 CONN_RETRY=5ms");
    t_stream_t to;
    t_link_t *link;

    t_only_daqiri("recovers");
    if (t_is_softroce()) {
        t_skip("only softverbs kills a QP by a plan");
    }
    t_expect_losses_of_qps();
    link = t_link_up(a, b, 1, &to);
    t_plan_by_command("qp-error qp=rc op=send n=300 times=1");
    stream(link, &to, t_some(6000));
    ck_assert_uint_gt(t_live_sum("recoveries"), 0);
    ck_assert_uint_eq(t_live_sum("windows_widened"), 5);
}
END_TEST


static Suite *suite_window(void)
{
    Suite *suite = suite_create("window");
    TCase *start = t_uct_case("start");
    TCase *wider = t_uct_case("wider");

    tcase_add_loop_test(start, test_start, 0, 6);
    suite_add_tcase(suite, start);

    tcase_add_test(wider, test_stream);
    tcase_add_test(wider, test_ping_pong);
    tcase_add_test(wider, test_no_memory);
    tcase_add_test(wider, test_all_kept);
    tcase_add_test(wider, test_given_back);
    tcase_add_test(wider, test_late_stream);
    tcase_add_loop_test(wider, test_asked_at_the_last_credit, 0, 24);
    tcase_add_test(wider, test_asked_on_a_lost_qp);
    tcase_add_test(wider, test_fair);
    tcase_add_test(wider, test_losses);
    suite_add_tcase(suite, wider);
    return suite;
}

T_UCT_MAIN(suite_window)
