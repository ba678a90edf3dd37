/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What `daqiri sweep` and `daqiri drop-curve` make of figures: the token bucket,
 * medians, verdicts, the counters that explain. The figures are made up.
 */

#include "t.h"

#include "tools/base/clock.h"
#include "tools/base/median.h"
#include "tools/base/verdict.h"
#include "tools/cells/cells.h"
#include "tools/cells/machine.h"
#include "tools/flow/bucket.h"
#include "tools/flow/flow.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the token bucket ---- */

START_TEST(test_bucket_without_pace)
{
    daqiri_bucket_t bucket;

    daqiri_bucket_init(&bucket, 0, 64);
    ck_assert(daqiri_bucket_allowed(&bucket, 0) == UINT64_MAX);
    ck_assert(daqiri_bucket_due_ns(&bucket, 1000) == 0);
}
END_TEST

START_TEST(test_bucket_edges)
{
    daqiri_bucket_t bucket;

    daqiri_bucket_init(&bucket, 1, 125); /* a message in 1000 ns */
    ck_assert_uint_eq(daqiri_bucket_allowed(&bucket, 0), 1);
    ck_assert_uint_eq(daqiri_bucket_allowed(&bucket, 999), 1);
    ck_assert_uint_eq(daqiri_bucket_allowed(&bucket, 1000), 2);
    ck_assert_uint_eq(daqiri_bucket_allowed(&bucket, 1999), 2);
    ck_assert_uint_eq(daqiri_bucket_allowed(&bucket, 1000000000), 1000001);
    ck_assert(daqiri_bucket_due_ns(&bucket, 0) == 0);
    ck_assert(daqiri_bucket_due_ns(&bucket, 7) == 7000);
}
END_TEST

/* A sender that comes by at any times, and sleeps now and then, has sent what
 * the pace says each time it leaves; and never more. */
START_TEST(test_bucket_random)
{
    daqiri_bucket_t bucket;
    uint64_t now, sent, bytes;
    double gbps, due;
    unsigned round, i;
    t_rng_t rng;

    t_rng_init(&rng, 4);
    for (round = 0; round < 2000; ++round) {
        bytes = t_rng_range(&rng, 8, 1 << 20);
        gbps  = (double)t_rng_range(&rng, 1, 400000) / 1000;
        daqiri_bucket_init(&bucket, gbps, bytes);
        now  = 0;
        sent = 0;
        for (i = 0; i < 50; ++i) {
            now += t_rng_once_in(&rng, 10) ?
                   t_rng_range(&rng, 0, 10000000) :
                   t_rng_range(&rng, 0, 2000);
            while (sent < daqiri_bucket_allowed(&bucket, now)) {
                due = daqiri_bucket_due_ns(&bucket, sent);
                ck_assert(due <= (double)now + 1e-3);
                sent = daqiri_bucket_allowed(&bucket, now);
            }
            ck_assert(fabs((double)sent * (double)bytes * 8 / gbps -
                           (double)now) <=
                      (double)bytes * 8 / gbps * (1 + 1e-9));
        }
    }
}
END_TEST

/* ---- figures ---- */

START_TEST(test_median)
{
    static const double values[] = {5, 1, 4, 2, 3};

    ck_assert(daqiri_median(values, 0) == 0);
    ck_assert(daqiri_median(values, 1) == 5);
    ck_assert(daqiri_median(values, 2) == 3);
    ck_assert(daqiri_median(values, 3) == 4);
    ck_assert(daqiri_median(values, 4) == 3);
    ck_assert(daqiri_median(values, 5) == 3);
    ck_assert(values[0] == 5); /* it has not sorted them in place */
}
END_TEST

START_TEST(test_collapsed)
{
    static const double good[] = {10, 11, 5};
    static const double bad[]  = {10, 4.9, 11};
    static const double dead[] = {10, 10, 0};

    ck_assert(!daqiri_verdict_collapsed(good, 3, 2, 0.5)); /* not below */
    ck_assert(daqiri_verdict_collapsed(bad, 3, 1, 0.5));
    ck_assert(!daqiri_verdict_collapsed(bad, 3, 0, 0.5));
    ck_assert(!daqiri_verdict_collapsed(bad, 3, 1, 0.4));
    ck_assert(daqiri_verdict_collapsed(bad, 3, 1, 0.9));
    ck_assert(daqiri_verdict_collapsed(dead, 3, 2, 0.01));
    ck_assert(!daqiri_verdict_collapsed(dead + 2, 1, 0, 0.5));
}
END_TEST

START_TEST(test_noise)
{
    ck_assert(!daqiri_verdict_is_noise(0.4, 1));
    ck_assert(!daqiri_verdict_is_noise(0.4, 0.71));
    ck_assert(daqiri_verdict_is_noise(0.4, 0.69)); /* half of what is missing */
    ck_assert(daqiri_verdict_is_noise(0, 0));
    ck_assert(!daqiri_verdict_is_noise(0, 0.51));
    /* that may be those who look */
    ck_assert(!daqiri_verdict_is_noise(0.98, 0.96));
    ck_assert(daqiri_verdict_is_noise(0.98, 0.94));
    ck_assert(daqiri_verdict_is_noise(1.02, 0.94));
}
END_TEST

START_TEST(test_falls_behind)
{
    static const double rates[] = {90, 100, 99, 0, 101};

    ck_assert_int_eq(daqiri_verdict_falls_behind(rates, 5, 0, 0.05), 4);
    ck_assert_int_eq(daqiri_verdict_falls_behind(rates, 3, 0, 0.05), 1);
    ck_assert_int_eq(daqiri_verdict_falls_behind(rates, 5, 0, 0.2), -1);
    ck_assert_int_eq(daqiri_verdict_falls_behind(rates, 5, 1, 0.05), -1);
    ck_assert_int_eq(daqiri_verdict_falls_behind(rates, 5, 1, 0), 4);
    ck_assert_int_eq(daqiri_verdict_falls_behind(rates, 5, 3, 0.05), -1); /* missing */
    ck_assert_int_eq(daqiri_verdict_falls_behind(rates, 5, 4, 0), -1);
}
END_TEST

START_TEST(test_pace_missed)
{
    ck_assert_int_eq(daqiri_verdict_pace_missed(0.05, 0.05), 0);
    ck_assert_int_eq(daqiri_verdict_pace_missed(-0.05, 0.05), 0);
    ck_assert_int_ne(daqiri_verdict_pace_missed(0.051, 0.05), 0);
    ck_assert_int_ne(daqiri_verdict_pace_missed(-0.051, 0.05), 0);
    ck_assert_int_ne(daqiri_verdict_pace_missed(NAN, 0.05), 0);
}
END_TEST

/* ---- counters ---- */

static void explains(const char *bad, double messages, const char *other,
                     double other_messages, const char *expected)
{
    json_t *counters      = json_loads(bad, 0, NULL);
    json_t *more          = json_loads(other, 0, NULL);
    const json_t *others[] = {more, more};
    double count[]        = {other_messages, other_messages};
    char text[256];

    ck_assert(counters != NULL && more != NULL);
    daqiri_verdict_explain(counters, messages, others, count, 2, text, sizeof(text));
    ck_assert_str_eq(text, expected);
    json_decref(counters);
    json_decref(more);
}

START_TEST(test_explain)
{
    explains("{}", 1, "{}", 1, "");
    explains("{\"tx\": {\"stalls\": 3}}", 10, "{\"tx\": {}}", 10,
             "tx.stalls 3 (0 else)");
    explains("{\"tx\": {\"stalls\": 3}}", 10, "{}", 10,
             "tx.stalls 3 (0 else)");
    /* as much in each message, and twice as much */
    explains("{\"rx\": {\"am_rx\": 100}}", 10, "{\"rx\": {\"am_rx\": 1000}}",
             100, "");
    explains("{\"rx\": {\"am_rx\": 200}}", 10, "{\"rx\": {\"am_rx\": 1000}}",
             100, "");
    explains("{\"rx\": {\"am_rx\": 210}}", 10, "{\"rx\": {\"am_rx\": 1000}}",
             100, "rx.am_rx 210 (100 else)");
    explains("{\"tx\": {\"sampled_at_ns\": 3}}", 10, "{}", 10, "");
    explains("{\"tx\": {\"a\": 1, \"b\": 50, \"c\": 2, \"d\": 7, \"e\": 9}}",
             10, "{}", 10,
             "tx.b 50 (0 else), tx.e 9 (0 else), tx.d 7 (0 else), "
             "tx.c 2 (0 else)");
}
END_TEST

START_TEST(test_port_counters)
{
    char folder[] = "/tmp/t_verdict.XXXXXX";
    char path[256];
    json_t *before, *after, *change;
    FILE *file;
    int value;

    ck_assert(mkdtemp(folder) != NULL);
    before = flow_count_port(folder, "x0:2");
    ck_assert_uint_eq(json_object_size(before), 0);
    json_decref(before);
    snprintf(path, sizeof(path), "mkdir -p %s/class/infiniband/x0/ports/2/"
             "hw_counters", folder);
    ck_assert_int_eq(system(path), 0);
    before = NULL;
    for (value = 5; value <= 8; value += 3) {
        snprintf(path, sizeof(path), "%s/class/infiniband/x0/ports/2/"
                 "hw_counters/rnr", folder);
        file = fopen(path, "w");
        ck_assert(file != NULL);
        fprintf(file, "%d\n", value);
        fclose(file);
        after  = flow_count_port(folder, "x0:2");
        before = (before == NULL) ? json_incref(after) : before;
        change = flow_count_change(before, after);
        if (value == 5) {
            ck_assert_uint_eq(json_object_size(change), 0);
        } else {
            ck_assert_int_eq(json_integer_value(json_object_get(change,
                                                                "rnr")), 3);
        }
        json_decref(change);
        json_decref(after);
    }
    json_decref(before);
    snprintf(path, sizeof(path), "rm -r %s", folder);
    ck_assert_int_eq(system(path), 0);
}
END_TEST

/* ---- processors ---- */

/* Each end has its own, and together they have all of them. */
START_TEST(test_cpu_halves)
{
    cpu_set_t all, both, half[2];
    int count;

    CPU_ZERO(&all);
    for (count = 1; count <= 100; ++count) {
        CPU_SET(1 + 2 * count, &all);
        flow_cpu_halve(&all, 1, &half[0]);
        flow_cpu_halve(&all, 0, &half[1]);
        CPU_OR(&both, &half[0], &half[1]);
        ck_assert(CPU_EQUAL(&both, &all));
        CPU_AND(&both, &half[0], &half[1]);
        ck_assert_int_eq(CPU_COUNT(&both), (count == 1) ? 1 : 0);
        ck_assert_int_eq(CPU_COUNT(&half[0]), (count == 1) ? 1 : count / 2);
        ck_assert(CPU_ISSET(3, &half[0]));
        ck_assert(CPU_ISSET(1 + 2 * count, &half[1]));
    }
}
END_TEST

START_TEST(test_witness_lost)
{
    ck_assert(flow_witness_lost(5000000, 4000000) == 0); /* a signal */
    ck_assert(flow_witness_lost(5000000, 5000000) == 0);
    ck_assert(flow_witness_lost(5000000, 5999999) == 0);
    ck_assert(flow_witness_lost(5000000, 6000000) == 1000000);
    ck_assert(flow_witness_lost(5000000, 72800000) == 67800000);
}
END_TEST

START_TEST(test_witness_next)
{
    ck_assert(flow_witness_next(0) == 5000000);
    ck_assert(flow_witness_next(4999999) == 5000000);
    ck_assert(flow_witness_next(5000000) == 10000000);
    ck_assert(flow_witness_next(14999999) == 15000000);
}
END_TEST

/* ---- the machine ---- */

static void put(const char *folder, const char *name, const char *text)
{
    char command[512];

    snprintf(command, sizeof(command), "mkdir -p $(dirname %s/%s); printf '%s' >%s/%s",
             folder, name, text, folder, name);
    ck_assert_int_eq(system(command), 0);
}

static void says(const json_t *machine, unsigned wanted, const char *expected)
{
    char text[256];

    ck_assert_str_eq(daqiri_machine_text(machine, wanted, text, sizeof(text)),
                     expected);
}

/* CPU 1 may not be used, and what it does is no matter. */
START_TEST(test_machine)
{
    char folder[] = "/tmp/t_verdict.XXXXXX";
    daqiri_machine_times_t before, after;
    char command[64];
    json_t *machine;
    cpu_set_t cpus;

    ck_assert(mkdtemp(folder) != NULL);
    CPU_ZERO(&cpus);
    CPU_SET(0, &cpus);
    CPU_SET(2, &cpus);
    daqiri_machine_read_times(folder, &cpus, &before);
    machine = daqiri_machine_report(folder, &cpus, &before, &before);
    ck_assert(json_is_null(json_object_get(machine, "load")));
    ck_assert(json_is_null(json_object_get(machine, "busy_percent")));
    ck_assert(json_is_null(json_object_get(machine, "ghz")));
    says(machine, 2, "2 CPUs"); /* nobody knows more */
    json_decref(machine);

    put(folder, "proc/loadavg", "0.52 0.4 0.3 1/99 7\n");
    put(folder, "proc/stat", "cpu 9 9 9 9 9 9 9 9 9 9\\ncpu0 5 0 5 100 0 0 0 0 0 0\\n"
        "cpu1 0 0 0 100 0 0 0 0 0 0\\ncpu2 0 0 0 100 0 0 0 0 0 0\\nintr 1\\n");
    daqiri_machine_read_times(folder, &cpus, &before);
    put(folder, "proc/stat", "cpu0 9 1 5 105 0 0 0 0 0 0\\n"
        "cpu1 999 0 0 100 0 0 0 0 0 0\\ncpu2 0 0 0 110 0 0 0 0 0 0\\n");
    daqiri_machine_read_times(folder, &cpus, &after);
    machine = daqiri_machine_report(folder, &cpus, &before, &after);
    says(machine, 2, "2 CPUs, load 0.5, others use 25 %");
    json_decref(machine);

    put(folder, "proc/stat", "cpu0 9 1 5 105 0 0 0 6 0 0\\n"
        "cpu2 9 0 0 111 0 0 0 0 0 0\\n");
    put(folder, "sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq", "3500000");
    put(folder, "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3500000");
    put(folder, "sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq", "1200000");
    put(folder, "sys/devices/system/cpu/cpu2/cpufreq/cpuinfo_max_freq", "3500000");
    before = after;
    daqiri_machine_read_times(folder, &cpus, &after);
    machine = daqiri_machine_report(folder, &cpus, &before, &after);
    says(machine, 2, "2 CPUs, load 0.5, others use 56 %, the host of this machine "
         "takes 38 %, held to 1.2 of 3.5 GHz; the two ends want one each, so expect "
         "noisy rows");
    says(machine, 1, "2 CPUs, load 0.5, others use 56 %, the host of this machine "
         "takes 38 %, held to 1.2 of 3.5 GHz; this end wants one, so expect noisy "
         "rows");
    json_decref(machine);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/* ---- the line ---- */

#define LOOK_PASSES 16 /* that are timed */

typedef struct looker {
    flow_line_t *line;
    uint64_t    look_ns;
} looker_t;

static void *answer(void *arg)
{
    const looker_t *looker = arg;

    flow_line_answer(looker->line, looker->look_ns);
    return NULL;
}

/* Returns what who asks has seen. A look that is to be in some time lasts until
 * then: on a busy machine both need that. */
static uint64_t look(flow_line_t *line, uint64_t asked_ns,
                     uint64_t answered_ns)
{
    looker_t looker = {line, answered_ns};
    uint64_t start  = daqiri_now_ns();
    uint64_t took_ns;
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, answer, &looker), 0);
    took_ns = flow_line_ask(line, asked_ns);
    ck_assert(took_ns * LOOK_PASSES <= daqiri_now_ns() - start);
    pthread_join(thread, NULL);
    return took_ns;
}

START_TEST(test_line)
{
    flow_line_t *line = flow_line_make();
    uint64_t soon;
    unsigned i;

    ck_assert(line != NULL);
    /* nobody there, and what it left is nothing for the next one */
    ck_assert(flow_line_ask(line, daqiri_now_ns()) == 0);
    flow_line_answer(line, daqiri_now_ns());
    ck_assert(flow_line_ask(line, daqiri_now_ns()) == 0);
    /* who is late does not wait */
    ck_assert(flow_line_ask(line, 1000) == 0);

    for (i = 0; i < 3; ++i) {
        soon = daqiri_now_ns() + 10000000000u;
        ck_assert(look(line, soon, soon) > 0);
        soon = daqiri_now_ns() + 100000000u;
        ck_assert(look(line, soon, soon + 1) == 0); /* another look's */
    }
}
END_TEST

/* Two ends with a witness each, on two processors. */
START_TEST(test_line_between)
{
    flow_line_t *line = flow_line_make();

    ck_assert(!flow_line_is_between(NULL));
    flow_line_enter(NULL, 1, 0);
    flow_line_leave(NULL, 1);
    ck_assert(!flow_line_is_between(line));
    flow_line_enter(line, 1, 0);
    ck_assert(!flow_line_is_between(line));
    flow_line_enter(line, 0, 0);
    ck_assert(!flow_line_is_between(line)); /* of one processor */
    flow_line_enter(line, 0, 1);
    ck_assert(flow_line_is_between(line));
    flow_line_enter(line, 1, -1); /* nobody knows which */
    ck_assert(!flow_line_is_between(line));
    flow_line_enter(line, 1, 5);
    ck_assert(flow_line_is_between(line));
    flow_line_leave(line, 0);
    ck_assert(!flow_line_is_between(line));
}
END_TEST

/* ---- rows ---- */

static daqiri_cells_opts_t opts;

static void cells_start(daqiri_cells_t *cells, size_t rows)
{
    size_t i;

    opts.collapse = 50;
    opts.rate     = 10;
    opts.pace     = 0.05;
    memset(cells, 0, sizeof(*cells));
    cells->opts      = &opts;
    cells->row_count = rows;
    cells->rows      = calloc(rows, sizeof(*cells->rows));
    for (i = 0; i < rows; ++i) {
        cells->rows[i].transport = "daqiri";
        cells->rows[i].pattern   = "stream";
        cells->rows[i].window    = 64;
        cells->rows[i].size      = 64;
    }
}

/* A run of 100 messages; gbps below 0: it failed. */
static void ran(daqiri_cells_row_t *row, double gbps, double received)
{
    daqiri_cells_run_t *run = &row->runs[row->run_count++];
    double rate             = gbps * 1e9 / 8 / (double)row->size;

    run->is_ok     = gbps >= 0;
    run->gbps      = gbps;
    run->rate      = rate;
    run->messages  = received;
    run->report    = (gbps < 0) ?
        json_pack("{s:b, s:s}", "ok", 0, "error", "it broke") :
        json_pack("{s:b, s:f, s:f, s:i, s:f, s:i, s:o}", "ok", 1, "gbps", gbps,
                  "messages_per_s", rate, "sent", 100, "received", received,
                  "disorder", 0, "deviation_percent", (row->gbps > 0) ?
                  json_real((gbps / row->gbps - 1) * 100) : json_null());
}

static void no_cpu(daqiri_cells_run_t *run, double seconds, int tx_ns,
                   int rx_ns)
{
    json_object_set_new(run->report, "counters",
                        json_pack("{s:{s:i, s:i}, s:{s:i}}", "tx", DAQIRI_NO_CPU,
                                  tx_ns, DAQIRI_TOOK, (int)(seconds * 1e9), "rx",
                                  DAQIRI_NO_CPU, rx_ns));
}

/* Of 100 ms. */
static void waited(daqiri_cells_run_t *run, int tx_ms, int rx_ms)
{
    json_object_set_new(run->report, "counters",
                        json_pack("{s:{s:i, s:i}, s:{s:i}}", "tx", DAQIRI_WAITED,
                                  tx_ms * 1000000, DAQIRI_TOOK, 100000000, "rx",
                                  DAQIRI_WAITED, rx_ms * 1000000));
}

static void line(daqiri_cells_run_t *run, int line_ns, int far_ns)
{
    json_t *tx = json_object_get(json_object_get(run->report, "counters"),
                                 "tx");

    json_object_set_new(tx, DAQIRI_LINE, json_integer(line_ns));
    json_object_set_new(tx, DAQIRI_LINE_FAR, json_integer(far_ns));
}

/* What another host tells may be anything. */
START_TEST(test_cpu_text)
{
    const json_int_t most    = INT64_MAX;
    daqiri_cells_t cells     = {.line_ns = 1};
    daqiri_cells_run_t run   = {0};
    char text[DAQIRI_CELLS_CPU_TEXT_MAX];

    run.report = json_pack("{s:{s:{s:I, s:I, s:I}, s:{s:I, s:I}}}", "counters", "tx",
                           DAQIRI_NO_CPU, most, DAQIRI_WAITED, most, DAQIRI_LINE, most,
                           "rx", DAQIRI_NO_CPU, most, DAQIRI_WAITED, most);
    ck_assert_str_eq(daqiri_cells_cpu_text(&cells, &run, text),
                     " (no CPU: tx 9223372036854.8 ms, rx 9223372036854.8 ms; waited "
                     "for a CPU: tx 9223372036854.8 ms, rx 9223372036854.8 ms; line "
                     "9223372036854775808 ns instead of 1 ns)");
    json_decref(run.report);
}
END_TEST

static void instead_of(daqiri_cells_run_t *run, double gbps, double no_cpu,
                       double far)
{
    json_t *formers = json_object_get(run->report, "instead_of");

    if (formers == NULL) {
        formers = json_array();
        json_object_set_new(run->report, "instead_of", formers);
    }
    json_array_append_new(formers,
                          json_pack("{s:f, s:f, s:f}", "gbps", gbps,
                                    "no_cpu_percent", no_cpu, "far_percent",
                                    far));
}

static void judged(daqiri_cells_t *cells, size_t row, unsigned verdict,
                   const char *why)
{
    const daqiri_cells_row_t *judged_row = &cells->rows[row];

    ck_assert_msg(judged_row->verdict == verdict, "row %zu: %x, not %x (%s)",
                  row, judged_row->verdict, verdict, judged_row->why);
    ck_assert_msg(strstr(judged_row->why, why) != NULL, "row %zu: %s", row,
                  judged_row->why);
}

START_TEST(test_rows_good)
{
    daqiri_cells_t cells;
    char text[64];

    cells_start(&cells, 2);
    cells.rows[1].size = 4096;
    ran(&cells.rows[0], 1, 100);
    ran(&cells.rows[0], 0.6, 100);
    ran(&cells.rows[0], 1.2, 100);
    ran(&cells.rows[1], 20, 100);
    daqiri_cells_judge(&cells);
    judged(&cells, 0, 0, "");
    judged(&cells, 1, 0, "");
    ck_assert_str_eq(daqiri_cells_verdict_text(&cells.rows[0], text,
                                               sizeof(text)), "ok");
    daqiri_cells_cleanup(&cells);
}
END_TEST

START_TEST(test_rows_missing)
{
    daqiri_cells_t cells;
    char text[64];

    cells_start(&cells, 3);
    ran(&cells.rows[0], 1, 100);
    ran(&cells.rows[0], -1, 0);
    cells.rows[2].size = 128;
    ran(&cells.rows[2], -1, 0);
    daqiri_cells_judge(&cells);
    judged(&cells, 0, DAQIRI_CELLS_MISSING, "1 of 2 runs failed: it broke");
    judged(&cells, 1, DAQIRI_CELLS_MISSING, "no maximum");
    judged(&cells, 2, DAQIRI_CELLS_MISSING, "1 of 1 runs failed");
    daqiri_cells_cleanup(&cells);

    /* interrupted: what was not begun is not missing */
    cells_start(&cells, 1);
    cells.is_interrupted = 1;
    daqiri_cells_judge(&cells);
    judged(&cells, 0, 0, "");
    ck_assert_str_eq(daqiri_cells_verdict_text(&cells.rows[0], text,
                                               sizeof(text)), "not measured");
    daqiri_cells_cleanup(&cells);
}
END_TEST

START_TEST(test_rows_collapse_and_drops)
{
    daqiri_cells_t cells;
    char text[64];

    cells_start(&cells, 1);
    ran(&cells.rows[0], 1, 100);
    ran(&cells.rows[0], 1, 99);
    ran(&cells.rows[0], 0.4, 100);
    json_object_set_new(cells.rows[0].runs[2].report, "counters",
                        json_pack("{s:{s:i}}", "tx", "stalls", 2));
    daqiri_cells_judge(&cells);
    judged(&cells, 0, DAQIRI_CELLS_COLLAPSE | DAQIRI_CELLS_DROPS,
           "run 3 had 0.40 of the median (no CPU: not known): tx.stalls 2 "
           "(0 else); 1 messages lost");
    ck_assert_str_eq(daqiri_cells_verdict_text(&cells.rows[0], text,
                                               sizeof(text)),
                     "collapse, drops");
    daqiri_cells_cleanup(&cells);
}
END_TEST

/* The time in which nothing ran is said with the run that collapsed. */
START_TEST(test_rows_no_cpu)
{
    daqiri_cells_t cells;

    cells_start(&cells, 1);
    ran(&cells.rows[0], 1, 100);
    ran(&cells.rows[0], 0.4, 100);
    ran(&cells.rows[0], 1, 100);
    no_cpu(&cells.rows[0].runs[1], 0.5, 67800000, 54300000);
    daqiri_cells_judge(&cells);
    judged(&cells, 0, DAQIRI_CELLS_COLLAPSE,
           "run 2 had 0.40 of the median (no CPU: tx 67.8 ms, rx 54.3 ms)");
    line(&cells.rows[0].runs[1], 461, 0);
    cells.rows[0].why[0] = '\0';
    daqiri_cells_judge(&cells);
    judged(&cells, 0, DAQIRI_CELLS_COLLAPSE,
           "(no CPU: tx 67.8 ms, rx 54.3 ms; line 461 ns)");
    daqiri_cells_cleanup(&cells);
}
END_TEST

static void judged_anew(daqiri_cells_t *cells, unsigned verdict, const char *why)
{
    cells->rows[0].verdict = 0;
    cells->rows[0].why[0]  = '\0';
    daqiri_cells_judge(cells);
    judged(cells, 0, verdict, why);
}

/* A slow run whose ends had no CPU, or far ones, for as long as explains it; any
 * other one is still a collapse. */
START_TEST(test_rows_noisy)
{
    daqiri_cells_t cells;
    daqiri_cells_row_t *row;
    daqiri_cells_run_t *run;
    char text[64];

    cells_start(&cells, 1);
    row = &cells.rows[0];
    ran(row, 1, 100);
    ran(row, 0.4, 100);
    ran(row, 1, 100);
    ran(row, 1, 100);
    ran(row, 0.3, 100);
    run = &row->runs[1];
    waited(run, 10, 30); /* 0.9 * 0.7: 0.37 of the 0.6 that are missing */
    waited(&row->runs[4], 10, 10);
    daqiri_cells_judge(&cells);
    judged(&cells, 0, DAQIRI_CELLS_NOISY | DAQIRI_CELLS_COLLAPSE,
           "run 2 had 0.40 of the median (waited for a CPU: tx 10.0 ms, rx 30.0 ms); "
           "run 5 had 0.30 of the median (waited for a CPU: tx 10.0 ms, rx 10.0 ms)");
    ck_assert_str_eq(daqiri_cells_verdict_text(row, text, sizeof(text)),
                     "collapse, noisy");
    row->run_count = 4;

    judged_anew(&cells, DAQIRI_CELLS_NOISY, "run 2 had 0.40");
    waited(run, 10, 10);
    judged_anew(&cells, DAQIRI_CELLS_COLLAPSE, "run 2 had 0.40");
    no_cpu(run, 0.1, 20000000, 20000000); /* it stood still */
    judged_anew(&cells, DAQIRI_CELLS_NOISY, "run 2 had 0.40");
    no_cpu(run, 0.1, 0, 0);
    line(run, 100, 50000000); /* far for half of it */
    cells.line_ns = 100;
    judged_anew(&cells, DAQIRI_CELLS_COLLAPSE, "run 2 had 0.40");
    line(run, 100, 70000000);
    judged_anew(&cells, DAQIRI_CELLS_NOISY, "run 2 had 0.40");
    line(run, 130, 0); /* all of it was, by this much */
    judged_anew(&cells, DAQIRI_CELLS_COLLAPSE, "run 2 had 0.40");
    line(run, 150, 0);
    judged_anew(&cells, DAQIRI_CELLS_NOISY, "; line 150 ns instead of 100 ns)");
    row->run_count = 5;
    daqiri_cells_cleanup(&cells);
}
END_TEST

/* What is slow in all runs alike, is explained by all of them alike. */
START_TEST(test_rows_noisy_medians)
{
    daqiri_cells_t cells;
    json_t *report;
    size_t i;

    cells_start(&cells, 4);
    ran(&cells.rows[0], 10, 100);
    cells.rows[1].is_paced = cells.rows[2].is_paced = 1;
    cells.rows[1].gbps     = cells.rows[2].gbps = 5;
    ran(&cells.rows[1], 4.9, 100);
    ran(&cells.rows[2], 2, 100);
    cells.rows[3].size = 128;
    ran(&cells.rows[3], 40, 100);
    for (i = 0; i < 3; ++i) {
        waited(&cells.rows[i].runs[0], 1, 1);
    }
    daqiri_cells_judge(&cells);
    judged(&cells, 0, DAQIRI_CELLS_RATE, "0.50 of the messages/s of 128 bytes");
    judged(&cells, 1, DAQIRI_CELLS_PACE, "missed by -2.000 %");
    judged(&cells, 2, DAQIRI_CELLS_PACE | DAQIRI_CELLS_COLLAPSE, "0.40 of its pace");
    for (i = 0; i < 3; ++i) {
        waited(&cells.rows[i].runs[0], 20, 20);
        cells.rows[i].verdict = 0;
        cells.rows[i].why[0]  = '\0';
    }
    daqiri_cells_judge(&cells);
    judged(&cells, 0, DAQIRI_CELLS_NOISY, "0.50 of the messages/s of 128 bytes");
    judged(&cells, 1, DAQIRI_CELLS_NOISY, "missed by -2.000 %");
    judged(&cells, 2, DAQIRI_CELLS_NOISY, "0.40 of its pace");
    report = daqiri_cells_report(&cells, "drop-curve");
    ck_assert_int_eq(json_integer_value(
                         daqiri_report_find(report, "verdict.noisy")), 3);
    ck_assert(json_is_false(daqiri_report_find(report, "verdict.ok")));
    json_decref(report);
    daqiri_cells_cleanup(&cells);
}
END_TEST

/* Of the verdicts only some are failures, unless any of them is to be one. */
START_TEST(test_rows_status)
{
    static const unsigned verdicts[] = {
        DAQIRI_CELLS_MISSING, DAQIRI_CELLS_COLLAPSE, DAQIRI_CELLS_DROPS,
        DAQIRI_CELLS_RATE, DAQIRI_CELLS_PACE, DAQIRI_CELLS_NOISY
    };
    daqiri_cells_t cells;
    size_t i;

    cells_start(&cells, 2);
    ck_assert_int_eq(daqiri_cells_status(&cells), 0);
    for (i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); ++i) {
        cells.rows[1].verdict = verdicts[i];
        opts.is_strict        = 0;
        ck_assert_int_eq(daqiri_cells_status(&cells), i < 3);
        opts.is_strict = 1;
        ck_assert_int_eq(daqiri_cells_status(&cells), 1);
        opts.is_strict = 0;
    }
    daqiri_cells_cleanup(&cells);
}
END_TEST

START_TEST(test_rows_again)
{
    daqiri_cells_t cells;
    daqiri_cells_run_t *run;
    json_t *report;

    cells_start(&cells, 1);
    ran(&cells.rows[0], 2, 100);
    ran(&cells.rows[0], 2, 100);
    run = &cells.rows[0].runs[1];
    ck_assert(daqiri_cells_no_cpu(run) == -1);
    no_cpu(run, 0.5, 4000000, 5000000);
    ck_assert(fabs(daqiri_cells_no_cpu(run) - 1) < 1e-9);
    opts.stalled = 0;
    ck_assert(!daqiri_cells_is_stalled(&cells, run));
    opts.stalled = 0.99;
    ck_assert(daqiri_cells_is_stalled(&cells, run));
    run->is_ok = 0; /* that is missing, whatever the machine did */
    ck_assert(!daqiri_cells_is_stalled(&cells, run));
    run->is_ok   = 1;
    opts.stalled = 1.01;
    ck_assert(!daqiri_cells_is_stalled(&cells, run));

    ck_assert_uint_eq(daqiri_cells_again(run), 0);
    instead_of(run, 1.5, 12.34, 0);
    ck_assert_uint_eq(daqiri_cells_again(run), 1);
    daqiri_cells_judge(&cells);
    ck_assert_str_eq(cells.rows[0].why, "run 2 was made once more: at worst it "
                     "had 0.75 of the median, no CPU for 12.3 %, far ones for "
                     "0.0 %");
    /* the least of their rates, the most of the others; and the last one, too */
    instead_of(run, 0.5, 1, 100);
    instead_of(run, 1.9, 2, 3);
    cells.rows[0].why[0] = '\0';
    opts.stalled         = 1;
    daqiri_cells_judge(&cells);
    judged(&cells, 0, 0, "run 2 was made 3 times more: at worst it had 0.25 of "
                         "the median, no CPU for 12.3 %, far ones for 100.0 %, "
                         "and the last one is like that");
    report = daqiri_cells_report(&cells, "sweep");
    ck_assert_int_eq(json_integer_value(
                         daqiri_report_find(report, "verdict.again")), 3);
    ck_assert(json_real_value(
                  json_object_get(report, "stalled_percent")) == 1);
    ck_assert(json_is_null(json_object_get(report, "line_us")));
    json_decref(report);
    opts.stalled = 0;
    daqiri_cells_cleanup(&cells);
}
END_TEST

/* Nearer than usual is as far as farther, the whole of it; else it is what the run
 * has seen itself. */
START_TEST(test_rows_far)
{
    daqiri_cells_t cells;
    daqiri_cells_run_t *run;
    json_t *report;

    cells_start(&cells, 1);
    ran(&cells.rows[0], 2, 100);
    run = &cells.rows[0].runs[0];
    ck_assert(daqiri_cells_line(run) == 0);
    ck_assert(daqiri_cells_far(&cells, run) == -1);
    no_cpu(run, 0.5, 0, 0);
    ck_assert(daqiri_cells_waited(run) == -1);
    ck_assert(daqiri_cells_line(run) == 0);
    ck_assert(daqiri_cells_far(&cells, run) == -1);
    line(run, 120, 10000000);
    ck_assert(daqiri_cells_line(run) == 120);
    opts.stalled = 2.1;
    ck_assert(fabs(daqiri_cells_far(&cells, run) - 2) < 1e-9);
    ck_assert(!daqiri_cells_is_stalled(&cells, run));
    for (cells.line_ns = 101; cells.line_ns < 144; ++cells.line_ns) {
        ck_assert(fabs(daqiri_cells_far(&cells, run) - 2) < 1e-9);
    }
    cells.line_ns = 145;
    ck_assert(daqiri_cells_far(&cells, run) == 100);
    ck_assert(daqiri_cells_is_stalled(&cells, run));
    cells.line_ns = 99;
    ck_assert(daqiri_cells_far(&cells, run) == 100);
    ck_assert(daqiri_cells_is_stalled(&cells, run));
    report = daqiri_cells_report(&cells, "sweep");
    ck_assert(json_real_value(json_object_get(report, "line_us")) == 99 / 1e3);
    json_decref(report);
    opts.stalled  = 1.9;
    cells.line_ns = 120;
    ck_assert(daqiri_cells_is_stalled(&cells, run));
    opts.stalled = 0;
    ck_assert(!daqiri_cells_is_stalled(&cells, run));
    daqiri_cells_cleanup(&cells);
}
END_TEST

START_TEST(test_rows_rate)
{
    daqiri_cells_t cells;

    cells_start(&cells, 4);
    cells.rows[1].size      = 128;
    cells.rows[2].size      = 256;
    cells.rows[3].size      = 512;
    cells.rows[3].transport = "tcp"; /* another line */
    ran(&cells.rows[0], 0.064 * 80, 100);
    ran(&cells.rows[1], 0.128 * 89, 100);
    ran(&cells.rows[2], 0.256 * 100, 100);
    ran(&cells.rows[3], 0.512 * 999, 100);
    daqiri_cells_judge(&cells);
    judged(&cells, 0, DAQIRI_CELLS_RATE, "0.80 of the messages/s of 256");
    judged(&cells, 1, DAQIRI_CELLS_RATE, "0.89 of");
    judged(&cells, 2, 0, "");
    judged(&cells, 3, 0, "");
    daqiri_cells_cleanup(&cells);
}
END_TEST

START_TEST(test_rows_pace)
{
    static const double paces[]    = {1, 7.5, 7.5, 10, 1, 4, 4};
    static const double achieved[] = {1.0004, 7.504, 7.5037, 4, 0.9994, 2,
                                      1.96};
    daqiri_cells_t cells;
    size_t i;

    cells_start(&cells, 8);
    ran(&cells.rows[0], 10, 100);
    for (i = 1; i < 8; ++i) {
        cells.rows[i].is_paced = 1;
        cells.rows[i].gbps     = paces[i - 1];
        ran(&cells.rows[i], achieved[i - 1], 100);
    }
    json_object_set_new(cells.rows[7].runs[0].report, "counters",
                        json_pack("{s:{s:i}}", "tx", "stalls", 2));
    daqiri_cells_judge(&cells);
    judged(&cells, 0, 0, "");
    judged(&cells, 1, 0, "");
    judged(&cells, 2, DAQIRI_CELLS_PACE, "missed by 0.053 %");
    judged(&cells, 3, 0, "");
    judged(&cells, 4, 0, ""); /* more than 75 % of what there is */
    judged(&cells, 5, DAQIRI_CELLS_PACE, "missed by -0.060 %");
    judged(&cells, 6, DAQIRI_CELLS_PACE, "missed by -50.000 %");
    judged(&cells, 7, DAQIRI_CELLS_COLLAPSE | DAQIRI_CELLS_PACE,
           "it had 0.49 of its pace: tx.stalls 2 (0 else)");

    opts.pace = 0.055; /* what is missed by less is kept */
    for (i = 0; i < 8; ++i) {
        cells.rows[i].verdict = 0;
    }
    daqiri_cells_judge(&cells);
    judged(&cells, 2, 0, "");
    judged(&cells, 5, DAQIRI_CELLS_PACE, "missed by -0.060 %");
    daqiri_cells_cleanup(&cells);
}
END_TEST

START_TEST(test_rows_report)
{
    daqiri_cells_t cells;
    json_t *report, *row;

    cells_start(&cells, 1);
    ran(&cells.rows[0], 3, 100);
    ran(&cells.rows[0], -1, 0);
    ran(&cells.rows[0], 1, 98);
    daqiri_cells_judge(&cells);
    report = daqiri_cells_report(&cells, "sweep");
    row    = json_array_get(json_object_get(report, "rows"), 0);
    /* 1 is no less than half of the median of 3 and 1 */
    ck_assert_str_eq(daqiri_report_find_text(row, "verdict"),
                     "missing, drops");
    ck_assert(json_real_value(json_object_get(row, "gbps")) == 2);
    ck_assert(json_real_value(json_object_get(row, "least_gbps")) == 1);
    ck_assert(json_real_value(json_object_get(row, "most_gbps")) == 3);
    ck_assert_int_eq(json_integer_value(json_object_get(row, "runs_ok")), 2);
    ck_assert_int_eq(json_integer_value(json_object_get(row, "drops")), 2);
    ck_assert_uint_eq(json_array_size(json_object_get(row, "runs")), 3);
    ck_assert_int_eq(json_integer_value(
                         daqiri_report_find(report, "verdict.missing")), 1);
    ck_assert(json_is_false(daqiri_report_find(report, "verdict.ok")));
    json_decref(report);
    daqiri_cells_cleanup(&cells);
}
END_TEST

static Suite *suite_verdict(void)
{
    return t_suite("verdict", "bucket", test_bucket_without_pace, "bucket",
                   test_bucket_edges, "bucket", test_bucket_random, "figures",
                   test_median, "figures", test_collapsed, "figures",
                   test_falls_behind, "figures", test_pace_missed, "figures",
                   test_noise, "counters",
                   test_explain, "counters", test_port_counters,
                   "processors", test_cpu_halves, "processors",
                   test_witness_lost, "processors", test_witness_next,
                   "processors", test_line, "processors", test_line_between,
                   "rows", test_rows_good, "rows", test_rows_missing, "rows",
                   test_rows_collapse_and_drops, "rows", test_rows_no_cpu,
                   "rows", test_cpu_text,
                   "rows", test_rows_noisy, "rows", test_rows_noisy_medians,
                   "rows", test_rows_status, "machine", test_machine,
                   "rows", test_rows_again, "rows", test_rows_far, "rows",
                   test_rows_rate, "rows", test_rows_pace, "rows",
                   test_rows_report, NULL);
}

T_MAIN(suite_verdict)
