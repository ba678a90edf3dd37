/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device that refuses, fails and forgets by a plan: what the transport can
 * cure nobody learns. Messages and READs go between two ends of this process;
 * every one arrives, once, in order, and nothing is left over.
 *
 * Each plan is run alone, so that each fault is known to be cured by itself;
 * contrib/faults mixes them.
 */
#include "t_uct.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGES = 4000 };

typedef struct {
    const char *plan;
    const char *options;
} fault_t;

#define QUICK "TIMEOUT=8ms RETRY_COUNT=3 CONN_RETRY=5ms"

static const fault_t faults[] = {
    /* refused: one request, what follows it, all of a chain but its first */
    {"post qp=rc n=30", QUICK},
    {"post qp=rc p=0.01", QUICK},
    {"post qp=rc p=0.2 times=200", QUICK},
    {"post qp=rc p=0.01 errno=EINVAL", QUICK " SQ_DEPTH=8 RX_WINDOW=8"},
    {"post qp=rc n=1 times=2", QUICK},
    {"post qp=rc position=1 times=2", QUICK " TX_CHAIN=on"},
    {"post qp=rc p=0.01", QUICK " TX_CHAIN=on"},
    {"post qp=rc p=0.1 position=1", QUICK " TX_CHAIN=on"},
    {"post qp=rc p=0.1 position=4", QUICK " TX_CHAIN=on TX_HOLD=1ms"},
    {"post qp=rc p=0.01; qp-error qp=rc p=0.01", QUICK},
    /* completions that tell of errors */
    {"complete qp=rc p=0.01 status=WR_FLUSH_ERR", QUICK},
    {"complete qp=rc p=0.01 status=RETRY_EXC_ERR", QUICK},
    {"complete qp=rc p=0.01 status=RNR_RETRY_EXC_ERR", QUICK},
    {"complete qp=rc p=0.01 status=GENERAL_ERR", QUICK},
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
    {"link down=60ms qp=rc n=300 times=3", QUICK},
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

START_TEST(test_fault)
{
    const fault_t *fault = &faults[_i];
    unsigned count       = t_some(MESSAGES), i;
    t_stream_t stream[2];
    t_link_t *link[2];
    t_end_t *end[2];
    t_rng_t rng;

    plan_set(fault->plan);
    t_expect_losses_of_qps();
    t_expect_refused_posts();
    t_rng_init(&rng, 0xe000 + _i);
    for (i = 0; i < 2; i++) {
        end[i] = t_end_open(fault->options);
        t_stream_open(&stream[i], end[i], 1 + i);
    }
    for (i = 0; i < 2; i++) {
        link[i] = t_link_open(end[i], &end[1 - i]->address, 2 - i);
    }
    while ((link[0]->sent < count) || (link[1]->sent < count)) {
        i = t_rng_below(&rng, 2);
        if (link[i]->sent < count) {
            t_try_some(link[i], &rng);
        }
        if (t_rng_once_in(&rng, 5)) {
            t_progress();
        }
    }
    for (i = 0; i < 2; i++) {
        T_WAIT((stream[i].got == count) && (link[i]->zcopies == 0));
        ck_assert_uint_eq(end[i]->errors, 0);
        ck_assert_int_eq(t_ep_flush(link[i]), UCS_OK);
    }
    t_end_close_all();
    ck_assert_uint_gt(plan_count(), 0);
    ck_assert_uint_gt(t_stats_sum("losses"), 0);
    ck_assert_uint_eq(t_stats_sum("am_rx"), 2 * count);
}
END_TEST


static Suite *suite_faulty(void)
{
    Suite *suite = suite_create("faulty");
    TCase *tcase = t_uct_case("faults");

    tcase_set_timeout(tcase, 3 * T_TIMEOUT);
    tcase_add_loop_test(tcase, test_fault, 0, FAULTS);
    suite_add_tcase(suite, tcase);
    return suite;
}

T_UCT_MAIN(suite_faulty)
