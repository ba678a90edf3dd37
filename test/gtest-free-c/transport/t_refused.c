/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device that refuses requests although they fit: at any position of a chain,
 * on some endpoints and not on others, signalled or not. The queue pair is
 * healthy, so nothing is lost and nothing is replaced: what was refused is
 * offered again, in order, and arrives once. What does not pass is not waited
 * for for ever.
 */
#include "t_uct.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 400, POSITIONS = 6, SPOKES = 4 };

static const unsigned signal_every[] = {1, 3, 64};

enum { SIGNALS = sizeof(signal_every) / sizeof(signal_every[0]) };


static void plan_set(const char *plan)
{
    const char *bed = getenv("T_BED");

    t_only_daqiri("offers refused requests again");
    if ((bed != NULL) && (strcmp(bed, "softverbs") != 0)) {
        t_skip("only softverbs fails by a plan");
    }
    t_expect_refused_posts();
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS", plan, 1), 0);
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS_LOG", "/dev/null", 1), 0);
}


/* Refused, and yet all queue pairs have lived. */
static void check_none_lost(void)
{
    ck_assert_uint_gt(t_stats_sum("posts_refused"), 0);
    ck_assert_uint_gt(t_stats_sum("retries_kept"), 0);
    ck_assert_uint_eq(t_stats_sum("retries_kept"), t_stats_sum("retries_posted"));
    ck_assert_uint_eq(t_stats_sum("qp_failures"), 0);
    ck_assert_uint_eq(t_stats_sum("replayed"), 0);
    ck_assert_uint_eq(t_stats_sum("posted"), t_stats_sum("retired"));
    ck_assert_uint_eq(t_stats_sum("stray_completions"), 0);
}


/* Both ways between a hub and its spokes, by all kinds of messages. */
static void run_traffic(const char *options, unsigned spokes, t_rng_t *rng)
{
    t_stream_t stream[SPOKES], back[SPOKES];
    t_link_t *link[SPOKES], *answer[SPOKES], *some;
    unsigned i;
    t_end_t *hub   = t_end_open(options), *spoke[SPOKES];
    uint64_t sent  = 0;

    for (i = 0; i < spokes; i++) {
        spoke[i] = t_end_open(options);
        t_stream_open(&stream[i], spoke[i], i);
        t_stream_open(&back[i], hub, SPOKES + i);
        link[i]   = t_link_open(hub, &spoke[i]->address, i);
        answer[i] = t_link_open(spoke[i], &hub->address, SPOKES + i);
    }
    while (sent < (uint64_t)MESSAGES * spokes) {
        i    = t_rng_below(rng, spokes);
        some = t_rng_once_in(rng, 3) ? answer[i] : link[i];
        sent -= some->sent;
        t_try_some(some, rng);
        sent += some->sent;
        if (t_rng_once_in(rng, 24)) {
            t_progress();
        }
    }
    for (i = 0; i < spokes; i++) {
        T_WAIT((stream[i].got == link[i]->sent) && (link[i]->zcopies == 0));
        T_WAIT((back[i].got == answer[i]->sent) && (answer[i]->zcopies == 0));
        ck_assert_int_eq(t_ep_flush(link[i]), UCS_OK);
        ck_assert_int_eq(t_ep_flush(answer[i]), UCS_OK);
        ck_assert_uint_eq(spoke[i]->errors, 0);
    }
    ck_assert_uint_eq(hub->errors, 0);
    t_end_close_all();
    check_none_lost();
}


/* ---- Where in a chain ---- */

/* The first is refused by itself, the others in chains. */
START_TEST(test_position)
{
    char plan[64], options[96];
    t_rng_t rng;

    snprintf(plan, sizeof(plan), "post qp=rc every=2 position=%d", _i / SIGNALS);
    plan_set(plan);
    snprintf(options, sizeof(options), "TX_BATCH=on TX_BATCH_TIMEOUT=60s SIGNAL_EVERY=%u",
             signal_every[_i % SIGNALS]);
    t_rng_init(&rng, 0x2ef0 + _i);
    run_traffic(options, 1, &rng);
}
END_TEST


/* Any of the first ones, and again any when it is offered again. */
START_TEST(test_subset)
{
    static const char *const options[] = {
        "TX_BATCH=on", "TX_BATCH=on SQ_DEPTH=8 CQ_LEN=16",
        "TX_BATCH=on TX_BATCH_TIMEOUT=1ms SIGNAL_EVERY=1",
        "SQ_DEPTH=8 CQ_LEN=16", "SIGNAL_EVERY=1", "RX_WINDOW=4 SQ_DEPTH=16"
    };
    t_rng_t rng;

    plan_set("post qp=rc p=0.3; post qp=rc p=0.3 position=1; "
             "post qp=rc p=0.3 position=2; post qp=rc p=0.3 position=3; "
             "post qp=rc p=0.3 position=4 errno=EAGAIN");
    t_rng_init(&rng, 0x2e50 + _i);
    run_traffic(options[_i], 1, &rng);
}
END_TEST


/* Some endpoints are refused; the others do not wait for them. Of the 13 queue
 * pairs of five ends, five are not used for more than to try the device, and
 * nobody knows which: so some that are used are among these seven, and some
 * are not. */
START_TEST(test_endpoints)
{
    t_rng_t rng;

    plan_set("post qp=rc.2 p=0.4; post qp=rc.3 p=0.4; post qp=rc.5 p=0.4; "
             "post qp=rc.6 p=0.4; post qp=rc.8 p=0.4; post qp=rc.9 p=0.4; "
             "post qp=rc.11 p=0.4");
    t_rng_init(&rng, 0x2ee0 + _i);
    run_traffic((_i == 0) ? "" : "TX_BATCH=on CQ_LEN=32", SPOKES, &rng);
}
END_TEST


/* Held until the conn was up, and refused then. */
START_TEST(test_early)
{
    t_stream_t stream;
    t_end_t *end[2];
    t_link_t *link;
    unsigned i;

    plan_set("post qp=rc times=6; post qp=rc position=1 times=1");
    end[0] = t_end_open("");
    end[1] = t_end_open("");
    t_stream_open(&stream, end[1], 1);
    link = t_link_open(end[0], &end[1]->address, 1);
    for (i = 0; i < 6; i++) {
        t_send(link, (i % 2) ? T_ZCOPY : T_SHORT, 40);
    }
    T_WAIT((stream.got == 6) && (link->zcopies == 0));
    t_end_close_all();
    check_none_lost();
}
END_TEST


/* ---- Who leaves meanwhile, and who waits ---- */

/* A link between two ends, whose first message has arrived and whose next two
 * requests will be refused. */
static t_link_t *one_sent(t_stream_t *stream, const char *options)
{
    t_end_t *end[2];
    t_link_t *link;

    plan_set("post qp=rc n=3 times=1; post qp=rc n=4 times=1");
    end[0] = t_end_open(options);
    end[1] = t_end_open(options);
    link = t_link_up(end[0], end[1], 1, stream);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    return link;
}


/* An endpoint goes while the device refuses what it has sent: what lies in its
 * user's memory is waited for, and arrives. */
START_TEST(test_endpoint_goes)
{
    t_stream_t stream;
    t_link_t *link;

    link = one_sent(&stream, "");
    t_send(link, T_ZCOPY, 1000);
    t_send(link, T_BCOPY, 10);
    t_link_close(link);
    T_WAIT(stream.got == 3);
    t_end_close_all();
    check_none_lost();
}
END_TEST


/* Whoever sleeps is told that there is still something to do. */
START_TEST(test_no_sleep)
{
    t_stream_t stream;
    ucs_status_t status;
    t_link_t *link;
    int fd;

    link = one_sent(&stream, "");
    ck_assert_int_eq(uct_iface_event_fd_get(link->end->iface, &fd), UCS_OK);
    do {
        t_progress_or_yield();
        status = uct_iface_event_arm(link->end->iface,
                                     UCT_EVENT_RECV | UCT_EVENT_SEND_COMP);
    } while (status == UCS_ERR_BUSY);
    ck_assert_int_eq(status, UCS_OK);
    t_send(link, T_BCOPY, 10);
    ck_assert_int_eq(uct_iface_event_arm(link->end->iface,
                                         UCT_EVENT_RECV |
                                         UCT_EVENT_SEND_COMP), UCS_ERR_BUSY);
    T_WAIT(stream.got == 2);
    t_end_close_all();
    check_none_lost();
}
END_TEST


/* ---- What does not pass ---- */

/* Refused for longer than the bound: the queue pair is lost as ever, and so are
 * the next ones; in the end the endpoint fails, with the cause. */
START_TEST(test_for_ever)
{
    t_stream_t stream;
    t_end_t *end[2];
    t_link_t *link;

    plan_set("post qp=rc");
    t_expect_losses_of_qps();
    t_expect_loss();
    t_expect_log("the device refused a work request that fits its queue");
    t_expect_log("; gave up after ");
    t_expect_log("nothing has completed for ");
    end[0] = t_end_open((_i == 0) ? "SQ_STALL_TIMEOUT=50ms STUCK_TIMEOUT=0 "
                                    "RECOVERY_TIMEOUT=200ms CONN_RETRY=5ms"
                                  : "SQ_STALL_TIMEOUT=0 STUCK_TIMEOUT=50ms "
                                    "RECOVERY_TIMEOUT=200ms CONN_RETRY=5ms");
    end[1] = t_end_open("CONN_RETRY=5ms");
    t_stream_open(&stream, end[1], 1);
    link = t_link_open(end[0], &end[1]->address, 1);
    t_send(link, T_ZCOPY, 100);
    T_WAIT((end[0]->errors == 1) && (link->zcopies == 0));
    ck_assert_int_ne(link->zcopy_status, UCS_OK);
    ck_assert_uint_eq(stream.got, 0);
    t_link_close(link);
    t_end_close_all();
    ck_assert_uint_gt(t_stats_sum("retries_kept"), 0);
    ck_assert_uint_gt(t_stats_sum("qp_failures"), 0);
}
END_TEST


/* Nothing is offered again where there is no recovery: the endpoint fails with
 * the cause, and what the device has never had does not count as outstanding. */
START_TEST(test_off)
{
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end;

    t_expect_loss();
    t_expect_log("the device refused a work request that fits its queue");
    link = one_sent(&stream, "RECOVERY=n");
    end  = link->end;
    ck_assert_int_ne(t_try_send(link, T_SHORT, 10), UCS_OK);
    T_WAIT(end->errors == 1);
    ck_assert_uint_eq(t_log_count("; 0 work requests outstanding of "), 1);
    t_link_close(link);
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("posted"), t_stats_sum("retired"));
}
END_TEST


static Suite *suite_refused(void)
{
    Suite *suite = suite_create("refused");
    TCase *tcase = t_uct_case("refused");

    tcase_set_timeout(tcase, 3 * T_TIMEOUT);
    tcase_add_loop_test(tcase, test_position, 0, POSITIONS * SIGNALS);
    tcase_add_loop_test(tcase, test_subset, 0, 6);
    tcase_add_loop_test(tcase, test_endpoints, 0, 2);
    tcase_add_test(tcase, test_early);
    tcase_add_test(tcase, test_endpoint_goes);
    tcase_add_test(tcase, test_no_sleep);
    tcase_add_loop_test(tcase, test_for_ever, 0, 2);
    tcase_add_test(tcase, test_off);
    suite_add_tcase(suite, tcase);
    return suite;
}

T_UCT_MAIN(suite_refused)
