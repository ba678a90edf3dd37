/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device that refuses, fails and forgets by a plan: what the transport can
 * cure nobody learns. Messages and READs go between two ends of this process;
 * every one arrives, once, in order, and nothing is left over.
 *
 * Each plan is run alone, so that each fault is known to be cured by itself;
 * contrib/check --long faults mixes them.
 */
#include "t_uct.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGES = 2000, ROUNDS = 40, CARRIED = 400, LEAVERS = 12 };

typedef struct {
    const char *plan;
    const char *options;
    int        is_kept; /* refused, and taken later: no queue pair is lost   */
} fault_t;

#define QUICK "TIMEOUT=8ms RETRY_COUNT=3 CONN_RETRY=5ms"

static const fault_t faults[] = {
    /* refused: one request, what follows it, all of a chain but its first */
    {"post qp=rc n=30", QUICK, 1},
    {"post qp=rc p=0.01", QUICK, 1},
    {"post qp=rc p=0.2 times=200", QUICK, 1},
    {"post qp=rc p=0.01 errno=EINVAL", QUICK " SQ_DEPTH=8 RX_WINDOW=8"},
    {"post qp=rc n=1 times=2", QUICK, 1},
    {"post qp=rc position=1 times=2", QUICK " TX_BATCH=on", 1},
    {"post qp=rc p=0.01", QUICK " TX_BATCH=on", 1},
    {"post qp=rc p=0.1 position=1", QUICK " TX_BATCH=on", 1},
    {"post qp=rc p=0.1 position=4", QUICK " TX_BATCH=on TX_BATCH_TIMEOUT=1ms", 1},
    {"post qp=rc p=0.01; qp-error qp=rc p=0.01", QUICK},
    /* completions that tell of errors */
    {"complete qp=rc p=0.01 status=WR_FLUSH_ERR", QUICK},
    {"complete qp=rc p=0.01 status=RETRY_EXC_ERR", QUICK},
    {"complete qp=rc p=0.01 status=RNR_RETRY_EXC_ERR", QUICK},
    {"complete qp=rc p=0.01 status=GENERAL_ERR", QUICK},
    {"complete qp=rc p=0.01 status=LOC_QP_OP_ERR", QUICK},
    {"complete qp=rc p=0.01 status=REM_OP_ERR", QUICK},
    {"complete qp=rc p=0.01 status=GENERAL_ERR queue=recv", QUICK},
    {"complete qp=rc p=0.01 status=WR_FLUSH_ERR queue=recv", QUICK},
    {"lose-ack qp=rc p=0.003", QUICK},
    /* queue pairs that die, with and without a word */
    {"qp-error qp=rc p=0.01", QUICK},
    {"qp-error qp=rc p=0.01 event=no side=remote", QUICK},
    {"qp-error qp=rc p=0.01 side=both", QUICK " SIGNAL_EVERY=1"},
    /* between one state and the next, and verbs that fail now and then */
    {"qp-error qp=rc at=1ms every=10ms p=0.3", QUICK},
    {"qp-error qp=rc p=0.01; verb name=create_qp n=20 p=0.3", QUICK},
    {"qp-error qp=rc p=0.01; verb name=modify_qp n=60 p=0.1", QUICK},
    {"link down=60ms qp=rc n=300 every=300 times=30", QUICK},
    {"gid-move qp=rc p=0.003; qp-error qp=rc p=0.005", QUICK},
    /* a handshake that loses, doubles, overtakes and waits */
    {"qp-error qp=rc p=0.005; drop p=0.3; duplicate p=0.3; reorder p=0.3; "
     "delay qp=ud p=0.1 time=3ms", QUICK},
};

enum { FAULTS = sizeof(faults) / sizeof(faults[0]) };


/* ---- The plan ---- */

static char log_path[64];


static void log_remove(void)
{
    unlink(log_path);
}


/* Before anything opens the device. */
static void plan_set(const char *plan)
{
    const char *bed = getenv("T_BED");

    t_only_daqiri("goes on over another queue pair");
    if ((bed != NULL) && (strcmp(bed, "softverbs") != 0)) {
        t_skip("only softverbs fails by a plan");
    }
    snprintf(log_path, sizeof(log_path), "/tmp/t_faulty.%d", getpid());
    atexit(log_remove);
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS", plan, 1), 0);
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS_LOG", log_path, 1), 0);
}


/* Decisions so far. */
static unsigned plan_count(void)
{
    FILE *file = fopen(log_path, "r");
    unsigned n = 0;
    char line[1200];

    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        n += line[0] != '#';
    }
    fclose(file);
    return n;
}


/* ---- What goes on meanwhile ---- */

typedef struct {
    t_stream_t stream[2];
    t_link_t   *link[2];
    t_end_t    *end[2];
} pair_t;


static void pair_open(pair_t *pair, const char *options)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        pair->end[i] = t_end_open(options);
        t_stream_open(&pair->stream[i], pair->end[i], 1 + i);
    }
    for (i = 0; i < 2; i++) {
        pair->link[i] = t_link_open(pair->end[i], &pair->end[1 - i]->address,
                                    2 - i);
    }
}


/* Until each link has sent so many. */
static void talk(t_link_t *link[2], unsigned count, t_rng_t *rng)
{
    unsigned i;

    while ((link[0]->sent < count) || (link[1]->sent < count)) {
        i = t_rng_below(rng, 2);
        if (link[i]->sent < count) {
            t_try_some(link[i], rng);
        }
        if (t_rng_once_in(rng, 5)) {
            t_progress();
        }
    }
}


/* All that was sent has come, and nobody has learned. */
static void pair_settle(pair_t *pair, unsigned count)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        T_WAIT((pair->stream[i].got == count) &&
               (pair->link[i]->zcopies == 0));
        ck_assert_uint_eq(pair->end[i]->errors, 0);
        ck_assert_int_eq(t_ep_flush(pair->link[i]), UCS_OK);
    }
}


/* Something has failed, and the transport has noticed. A link that is down for
 * 60 ms costs nothing while the process does not run. */
static int is_shown(const fault_t *fault, unsigned failed)
{
    return (failed > 0) &&
           (fault->is_kept || (t_live_sum("qp_failures") > 0));
}


/* Goes on until the fault has shown, since some wait for a time or for luck; and
 * for one more round, in which it is mended. */
START_TEST(test_fault)
{
    const fault_t *fault = &faults[_i];
    unsigned count       = 0, round = 0, failed;
    pair_t pair;
    t_rng_t rng;

    plan_set(fault->plan);
    t_expect_losses_of_qps();
    t_expect_refused_posts();
    t_rng_init(&rng, 0xe000 + _i);
    pair_open(&pair, fault->options);
    do {
        failed = plan_count();
        count += t_some(MESSAGES);
        talk(pair.link, count, &rng);
    } while (!is_shown(fault, failed) && (++round < ROUNDS));
    pair_settle(&pair, count);
    t_end_close_all();
    ck_assert_uint_gt(failed, 0);
    ck_assert_int_eq(t_stats_sum("qp_failures") > 0, !fault->is_kept);
    ck_assert(!fault->is_kept || (t_stats_sum("retries_posted") > 0));
    ck_assert_uint_eq(t_stats_sum("replayed"),
                      t_log_sum(" requests sent again"));
    ck_assert_uint_eq(t_stats_sum("replay_delivered"),
                      t_log_sum(" messages had arrived"));
    ck_assert_uint_eq(t_stats_sum("am_rx"), 2 * count);
}
END_TEST


/* ---- The handshake's own queue pair ---- */

static const struct {
    const char *plan;
    int        is_later; /* during a recovery, not before a connection       */
} carriers[] = {
    /* the first datagram of either end goes down with it */
    {"qp-error qp=ud n=1"},
    {"qp-error qp=ud n=1 every=1 times=6 event=no"},
    {"complete qp=ud n=1 status=GENERAL_ERR"},
    {"qp-error qp=rc n=100 times=4; qp-error qp=ud n=4", 1},
    {"qp-error qp=rc n=100 times=4; qp-error qp=ud n=3 every=2", 1},
    {"qp-error qp=rc n=100 times=4; complete qp=ud n=4 every=3 "
     "status=LOC_PROT_ERR", 1},
    /* and the verbs that are to make it ready again fail */
    {"qp-error qp=rc n=100 times=4; qp-error qp=ud n=3 every=2; "
     "verb name=modify_qp n=25 p=0.5 times=12", 1},
};

enum { CARRIERS = sizeof(carriers) / sizeof(carriers[0]) };


/* It keeps its number, so the peers need not learn. */
START_TEST(test_carrier)
{
    static const char said[] = "; of the handshake, and ready again";
    pair_t pair;
    t_rng_t rng;

    plan_set(carriers[_i].plan);
    t_expect_losses_of_qps();
    t_expect_log(said);
    t_rng_init(&rng, 0xea00 + _i);
    pair_open(&pair, QUICK);
    talk(pair.link, CARRIED, &rng);
    pair_settle(&pair, CARRIED);
    t_end_close_all();
    ck_assert_uint_gt(t_log_count(said), 0); /* not more than once a second */
    ck_assert_uint_ge(t_stats_sum("ud_remade"),
                      t_log_count(said) + t_log_sum(" more like it before"));
    ck_assert_int_eq(t_stats_sum("qp_failures") > 0, carriers[_i].is_later);
    ck_assert_uint_eq(t_stats_sum("am_rx"), 2 * CARRIED);
}
END_TEST


/* ---- Verbs that lack memory when an interface opens ---- */

static const struct {
    const char *plan;
    const char *words;
} lacks[] = {
    /* the first call was about the device, not the interface */
    {"verb name=query_port n=2", "a verb failed: ibv_query_port()"},
    {"verb name=query_gid n=1", "a verb failed: ibv_query_gid_ex()"},
    {"verb name=create_cq n=1", "a verb failed: ibv_create_cq()"},
    {"verb name=create_srq n=1", "a verb failed: ibv_create_srq()"},
    {"verb name=modify_qp n=1", "a verb failed: ibv_modify_qp"},
    {"verb name=create_comp_channel n=1",
     "a verb failed: ibv_create_comp_channel()"},
};

enum { LACKS = sizeof(lacks) / sizeof(lacks[0]) };


/* The sentence names the verb; nothing is left behind, and the next goes. */
START_TEST(test_lack)
{
    t_stream_t stream;
    t_end_t *end;

    plan_set(lacks[_i].plan);
    t_expect_log(lacks[_i].words);
    ck_assert_int_ne(t_end_try_open(NULL, QUICK, &end), UCS_OK);
    ck_assert_uint_eq(plan_count(), 1);
    ck_assert_uint_eq(t_log_count(lacks[_i].words), 1);

    end = t_end_open(QUICK);
    (void)t_link_up(end, end, 1, &stream);
    t_end_close_all();
}
END_TEST


/* ---- Peers that leave ---- */

/* Every second datagram is lost, so that a peer which leaves has to be heard by
 * more than luck: who has not heard it keeps its RECVs for ever. */
START_TEST(test_farewell)
{
    t_stream_t stream[LEAVERS];
    t_link_t *link;
    t_end_t *stays, *leaves;
    unsigned i;

    plan_set("drop p=0.5");
    stays = t_end_open(QUICK);
    for (i = 0; i < LEAVERS; i++) {
        t_stream_open(&stream[i], stays, i);
        leaves = t_end_open(QUICK);
        link   = t_link_open(leaves, &stays->address, i);
        t_send(link, T_BCOPY, 100);
        T_WAIT(t_live_sum("rx_promised") > 0);
        t_end_close(leaves);
        T_WAIT(t_live_sum("rx_promised") == 0);
    }
    ck_assert_uint_eq(stays->errors, 0);
    t_end_close_all();
    ck_assert_uint_gt(plan_count(), LEAVERS);
    ck_assert_uint_eq(t_stats_sum("qp_failures"), 0);
    ck_assert_uint_eq(t_stats_sum("am_rx"), LEAVERS);
}
END_TEST


static Suite *suite_faulty(void)
{
    Suite *suite = suite_create("faulty");
    TCase *tcase = t_uct_case("faults");
    TCase *lack  = t_uct_case("lack");
    TCase *ud    = t_uct_case("carrier");

    tcase_set_timeout(ud, 3 * T_TIMEOUT);
    tcase_add_loop_test(ud, test_carrier, 0, CARRIERS);
    suite_add_tcase(suite, ud);

    tcase_add_loop_test(lack, test_lack, 0, LACKS);
    suite_add_tcase(suite, lack);

    tcase_set_timeout(tcase, 3 * T_TIMEOUT);
    tcase_add_loop_test(tcase, test_fault, 0, FAULTS);
    tcase_add_test(tcase, test_farewell);
    suite_add_tcase(suite, tcase);
    return suite;
}

T_UCT_MAIN(suite_faulty)
