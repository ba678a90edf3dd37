/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/cells/cells.h"

#include "tools/base/clock.h"
#include "tools/base/exit_status.h"
#include "tools/base/median.h"
#include "tools/base/parse.h"
#include "tools/base/progress.h"
#include "tools/base/stop.h"
#include "tools/base/verdict.h"
#include "tools/cells/machine.h"
#include "tools/cells/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Rounds of runs that are made again begin so many runs' time after each other,
 * for what is the matter may last longer than one: for a minute the processors
 * of a virtual machine were far from each other (docs/bench.md). */
#define CELLS_ROUND    10.0
#define CELLS_PAUSE_NS 50000000

/* ---- which rows there are ---- */

static void *cells_realloc(const daqiri_cells_t *cells, void *memory,
                           size_t count, size_t size)
{
    memory = reallocarray(memory, count, size);
    if (memory == NULL) {
        fprintf(stderr, "%s: no memory\n", cells->opts->speaker);
        exit(DAQIRI_EXIT_FAILED);
    }
    return memory;
}

static void cells_add(daqiri_cells_t *cells, const daqiri_cells_row_t *row)
{
    cells->rows = cells_realloc(cells, cells->rows, cells->row_count + 1,
                                sizeof(*cells->rows));
    cells->rows[cells->row_count++] = *row;
}

/* One size: unpaced, then its paces. */
static void cells_add_paces(daqiri_cells_t *cells, daqiri_cells_row_t *row)
{
    const daqiri_cells_opts_t *opts = cells->opts;
    size_t i;

    row->is_paced = 0;
    row->percent  = 0;
    row->gbps     = 0;
    cells_add(cells, row);
    row->is_paced = 1;
    for (i = 0; i < opts->percent_count; ++i) {
        row->percent = opts->percents[i];
        cells_add(cells, row);
    }
    row->percent = 0;
    for (i = 0; i < opts->gbps_count; ++i) {
        row->gbps = opts->gbps[i];
        cells_add(cells, row);
    }
}

static void cells_plan(daqiri_cells_t *cells)
{
    const daqiri_cells_opts_t *opts = cells->opts;
    daqiri_cells_row_t row          = {0};
    size_t t, p, w, s;

    for (t = 0; t < opts->transport_count; ++t) {
        for (p = 0; p < opts->pattern_count; ++p) {
            for (w = 0; w < opts->window_count; ++w) {
                for (s = 0; s < opts->size_count; ++s) {
                    row.transport = opts->transports[t];
                    row.pattern   = opts->patterns[p];
                    row.window    = opts->windows[w];
                    row.size      = opts->sizes[s];
                    cells_add_paces(cells, &row);
                }
                if (strcmp(opts->patterns[p], "pingpong") == 0) {
                    break; /* it has no window */
                }
            }
        }
    }
    cells->all = cells->row_count * opts->repeats;
}

/* ---- runs ---- */

typedef struct cells_tick {
    daqiri_cells_t           *cells;
    const daqiri_cells_row_t *row;
    int                      is_again;
    uint64_t                 start_ns;
} cells_tick_t;

/* What is done of all, from 0 to 1. A run that is made again adds nothing. */
static double cells_done(const cells_tick_t *tick, uint64_t now_ns)
{
    const daqiri_cells_t *cells = tick->cells;
    const double part           = tick->is_again ? 0 :
                                  (double)(now_ns - tick->start_ns) * 1e-9 /
                                  cells->opts->duration;

    return (cells->opts->iters > 0) ? -1 : /* nobody knows */
           ((double)cells->done + fmin(part, 1)) / (double)cells->all;
}

static void cells_show_progress(void *arg)
{
    const cells_tick_t *tick = arg;
    daqiri_cells_t *cells    = tick->cells;
    uint64_t now_ns          = daqiri_now_ns();
    char size[DAQIRI_SIZE_TEXT_MAX];

    if (daqiri_progress_is_due(&cells->progress, now_ns)) {
        daqiri_progress_show(&cells->progress, now_ns,
                             cells_done(tick, now_ns),
                             "run %zu of %zu%s: %s, %s, %s",
                             cells->done + !tick->is_again, cells->all,
                             tick->is_again ? ", one of them again" : "",
                             tick->row->transport, tick->row->pattern,
                             daqiri_size_text(tick->row->size, size,
                                              sizeof(size)));
    }
}

/* The row that says how much a paced one may be. */
static const daqiri_cells_row_t *
cells_find_unpaced(const daqiri_cells_t *cells, const daqiri_cells_row_t *row)
{
    size_t i;

    for (i = 0; i < cells->row_count; ++i) {
        if (!cells->rows[i].is_paced &&
            (cells->rows[i].transport == row->transport) &&
            (cells->rows[i].pattern == row->pattern) &&
            (cells->rows[i].size == row->size) &&
            (cells->rows[i].window == row->window)) {
            return &cells->rows[i];
        }
    }
    return NULL;
}

/* Nothing to be a part of: the row stays without runs, and is missing. */
static void cells_set_targets(daqiri_cells_t *cells)
{
    const daqiri_cells_row_t *unpaced;
    daqiri_cells_row_t *row;
    size_t i;

    for (i = 0; i < cells->row_count; ++i) {
        row     = &cells->rows[i];
        unpaced = (row->percent > 0) ? cells_find_unpaced(cells, row) : NULL;
        if (unpaced != NULL) {
            row->gbps = fmax(daqiri_cells_median(unpaced, "gbps"), 0) *
                        row->percent / 100;
        }
    }
}

/* As it was in most of the runs, once for all: what is made again shall be like
 * what need not be. */
static void cells_set_line(daqiri_cells_t *cells)
{
    double *lines = cells_realloc(cells, NULL,
                                  cells->row_count * cells->opts->repeats + 1,
                                  sizeof(*lines));
    size_t count  = 0;
    size_t i, k;

    for (i = 0; i < cells->row_count; ++i) {
        for (k = 0; k < cells->rows[i].run_count; ++k) {
            lines[count] = daqiri_cells_line(&cells->rows[i].runs[k]);
            count       += lines[count] > 0;
        }
    }
    cells->line_ns = daqiri_median(lines, count);
    free(lines);
}

/* At once: what is still to be measured may take long. */
static void cells_say_apart(daqiri_cells_t *cells)
{
    if (cells->opts->is_single) {
        return; /* the end is near, and says it */
    }
    daqiri_progress_end(&cells->progress);
    fprintf(stderr, "%s: %s\n", cells->opts->speaker, cells->peer.apart);
    daqiri_progress_start(&cells->progress);
}

/* Above the lines of a run, which do not say whose they are. */
static void cells_head_intervals(const daqiri_cells_t *cells,
                                 const daqiri_cells_row_t *row, size_t number)
{
    const daqiri_cells_opts_t *opts = cells->opts;
    char size[DAQIRI_SIZE_TEXT_MAX];

    if ((opts->interval > 0) && !opts->is_single &&
        (opts->format == DAQIRI_FORMAT_TABLE)) {
        printf("%s, %s, %s, run %zu of %u%s\n", row->transport, row->pattern,
               daqiri_size_text(row->size, size, sizeof(size)), number, opts->repeats,
               row->is_paced ? ", at a pace" : "");
        fflush(stdout);
    }
}

/* Returns 0, or -1 if it was asked to stop. */
static int cells_measure_run(daqiri_cells_t *cells, daqiri_cells_row_t *row)
{
    cells_tick_t tick = {cells, row, 0, daqiri_now_ns()};
    int was_apart     = cells->peer.is_apart;
    int ret;

    cells_head_intervals(cells, row, row->run_count + 1);
    ret = daqiri_cells_run(cells->opts, row, &cells->peer,
                           cells_show_progress, &tick);
    if (cells->peer.is_apart && !was_apart) {
        cells_say_apart(cells);
    }
    return ret;
}

/* Returns 0, or -1 if it was asked to stop. */
static int cells_measure_again(daqiri_cells_t *cells,
                               const daqiri_cells_row_t *row,
                               daqiri_cells_run_t *run)
{
    cells_tick_t tick = {cells, row, 1, daqiri_now_ns()};

    if (daqiri_stop_asked()) {
        return -1;
    }
    cells_head_intervals(cells, row, (size_t)(run - row->runs) + 1);
    return daqiri_cells_run_again(cells->opts, row, run,
                                  daqiri_cells_no_cpu(run),
                                  daqiri_cells_far(cells, run), &cells->peer,
                                  cells_show_progress, &tick);
}

static int cells_is_due(const daqiri_cells_t *cells,
                        const daqiri_cells_run_t *run)
{
    return daqiri_cells_is_stalled(cells, run) &&
           (daqiri_cells_again(run) < DAQIRI_CELLS_AGAIN_MAX);
}

static int cells_has_due(const daqiri_cells_t *cells)
{
    int has = 0;
    size_t i, k;

    for (i = 0; i < cells->row_count; ++i) {
        for (k = 0; k < cells->rows[i].run_count; ++k) {
            has |= cells_is_due(cells, &cells->rows[i].runs[k]);
        }
    }
    return has;
}

/* Each of them once. Returns 0, or -1 if it was asked to stop. */
static int cells_measure_due(daqiri_cells_t *cells)
{
    daqiri_cells_row_t *row;
    size_t i, k;

    for (i = 0; i < cells->row_count; ++i) {
        row = &cells->rows[i];
        for (k = 0; k < row->run_count; ++k) {
            if (cells_is_due(cells, &row->runs[k]) &&
                (cells_measure_again(cells, row, &row->runs[k]) != 0)) {
                return -1;
            }
        }
    }
    return 0;
}

static void cells_await(uint64_t until_ns)
{
    const struct timespec pause = {.tv_nsec = CELLS_PAUSE_NS};

    while (!daqiri_stop_asked() && (daqiri_now_ns() < until_ns)) {
        nanosleep(&pause, NULL);
    }
}

/* When all of a kind have been made: by then it is known how far the processors
 * usually are, and what was the matter has had time to pass. */
static void cells_measure_all_due(daqiri_cells_t *cells)
{
    const double round_ns = CELLS_ROUND * cells->opts->duration * 1e9;
    uint64_t next_ns      = 0;

    while (!cells->is_interrupted && cells_has_due(cells)) {
        cells_await(next_ns);
        next_ns               = daqiri_now_ns() + (uint64_t)round_ns;
        cells->is_interrupted = cells_measure_due(cells) != 0;
    }
}

/* All rows of one kind, in turns. */
static void cells_measure_kind(daqiri_cells_t *cells, int is_paced)
{
    daqiri_cells_row_t *row;
    unsigned repeat;
    size_t i;

    for (repeat = 0; repeat < cells->opts->repeats; ++repeat) {
        for (i = 0; i < cells->row_count; ++i) {
            row = &cells->rows[i];
            if ((row->is_paced != is_paced) ||
                (is_paced && (row->gbps <= 0))) {
                continue;
            }
            if (daqiri_stop_asked() || (cells_measure_run(cells, row) != 0)) {
                cells->is_interrupted = 1;
                return;
            }
            ++cells->done;
        }
    }
    if (cells->line_ns == 0) {
        cells_set_line(cells);
    }
    cells_measure_all_due(cells);
}

/* Before the first run, so that nobody wonders afterwards. */
static void cells_look(daqiri_cells_t *cells)
{
    const time_t now = time(NULL);
    char text[256];
    struct tm utc;

    gmtime_r(&now, &utc);
    strftime(cells->date, sizeof(cells->date), "%Y-%m-%dT%H:%M:%SZ", &utc);
    cells->machine = daqiri_machine_look();
    if (cells->opts->is_single && !cells->opts->is_verbose) {
        return;
    }
    fprintf(stderr, "%s: this machine: %s\n", cells->opts->speaker,
            daqiri_machine_text(cells->machine,
                                (cells->opts->connect_to == NULL) ? 2 : 1, text,
                                sizeof(text)));
}

void daqiri_cells_measure(daqiri_cells_t *cells,
                          const daqiri_cells_opts_t *opts)
{
    memset(cells, 0, sizeof(*cells));
    cells->opts = opts;
    cells_look(cells);
    daqiri_cells_peer_init(&cells->peer, opts->connect_to, (opts->setup > 0) ?
                           opts->setup : opts->patience);
    cells_plan(cells);
    daqiri_progress_start(&cells->progress);
    if ((opts->interval > 0) && (opts->format == DAQIRI_FORMAT_TABLE)) {
        cells->progress.next_ns = UINT64_MAX; /* their lines are progress enough */
    }
    cells_measure_kind(cells, 0);
    if (!cells->is_interrupted) {
        cells_set_targets(cells);
        cells_measure_kind(cells, 1);
    }
    /* Asked during the last one: that one was cut short. */
    cells->is_interrupted |= daqiri_stop_asked() != 0;
    daqiri_progress_end(&cells->progress);
    daqiri_cells_peer_close(&cells->peer);
}

/* ---- a command ---- */

static int cells_has_figures(const daqiri_cells_t *cells)
{
    int has = 0;
    size_t i;

    for (i = 0; i < cells->row_count; ++i) {
        has |= daqiri_cells_median(&cells->rows[i], "gbps") >= 0;
    }
    return has;
}

static int cells_has_witness(const daqiri_cells_t *cells)
{
    int has = 0;
    size_t i, k;

    for (i = 0; i < cells->row_count; ++i) {
        for (k = 0; k < cells->rows[i].run_count; ++k) {
            has |= daqiri_cells_no_cpu(&cells->rows[i].runs[k]) >= 0;
        }
    }
    return has;
}

/* ---- what only the table has ---- */

static const daqiri_column_t cells_runs_columns[] = {
    {"transport", "transport"}, {"pattern", "pattern"},
    {"size", "size", DAQIRI_UNIT_SIZE}, {"window", "window"},
    {"target_gbps", "target Gb/s", DAQIRI_UNIT_GBPS}, {"run", "run"},
    {"gbps", "Gb/s", DAQIRI_UNIT_GBPS},
    {"messages_per_s", "messages/s", DAQIRI_UNIT_RATE},
    {"round_trip.p50_us", "round trip p50 us", DAQIRI_UNIT_USEC},
    {"no_cpu_percent", "no CPU %", DAQIRI_UNIT_PERCENT},
    {"waited_percent", "waited for a CPU %", DAQIRI_UNIT_PERCENT},
    {"far_percent", "far CPUs %", DAQIRI_UNIT_PERCENT},
    {"again", "made again"}, {"error", "error"}
};

static const daqiri_section_t cells_runs_section = {
    "runs_in_detail", "\nRuns", DAQIRI_COLUMNS(cells_runs_columns)
};

static void cells_add_run(const daqiri_cells_t *cells, const json_t *row,
                          const daqiri_cells_run_t *run, size_t number,
                          json_t *rows)
{
    static const char *const of_row[] = {"transport", "pattern", "size", "window",
                                         "target_gbps"};
    static const char *const of_run[] = {"gbps", "messages_per_s", "round_trip",
                                         "error"};
    const double no_cpu = daqiri_cells_no_cpu(run);
    const double waited = daqiri_cells_waited(run);
    const double far    = daqiri_cells_far(cells, run);
    json_t *line        = daqiri_report_row(rows);
    size_t i;

    for (i = 0; i < sizeof(of_row) / sizeof(of_row[0]); ++i) {
        json_object_set(line, of_row[i], json_object_get(row, of_row[i]));
    }
    daqiri_report_int(line, "run", (long long)number);
    for (i = 0; i < sizeof(of_run) / sizeof(of_run[0]); ++i) {
        json_object_set(line, of_run[i], json_object_get(run->report, of_run[i]));
    }
    daqiri_report_set(line, "no_cpu_percent", (no_cpu >= 0) ? json_real(no_cpu) :
                                                              json_null());
    daqiri_report_set(line, "waited_percent", (waited >= 0) ? json_real(waited) :
                                                              json_null());
    daqiri_report_set(line, "far_percent", (far >= 0) ? json_real(far) : json_null());
    daqiri_report_int(line, "again", (long long)daqiri_cells_again(run));
}

/* Each run for who wants the whys; and after Ctrl-C no rows of which there is none. */
static void cells_for_people(const daqiri_cells_t *cells, json_t *report)
{
    json_t *rows = json_object_get(report, "rows");
    json_t *runs = daqiri_report_array(report, "runs_in_detail");
    size_t at    = 0;
    size_t i, k;

    for (i = 0; i < cells->row_count; ++i) {
        for (k = 0; k < cells->rows[i].run_count; ++k) {
            cells_add_run(cells, json_array_get(rows, at), &cells->rows[i].runs[k],
                          k + 1, runs);
        }
        if (cells->is_interrupted && (cells->rows[i].run_count == 0)) {
            json_array_remove(rows, at);
        } else {
            ++at;
        }
    }
}

/* Of a run that failed: the way to it, and what another attempt needs. */
static void cells_add_failure(const daqiri_cells_t *cells, json_t *report)
{
    static const char *const keys[] = {"stages", "local", "remote"};
    const daqiri_cells_run_t *run   = &cells->rows[0].runs[0];
    size_t i;

    for (i = 0; (cells->rows[0].run_count > 0) && !run->is_ok &&
                (i < sizeof(keys) / sizeof(keys[0])); ++i) {
        json_object_set(report, keys[i], json_object_get(run->report, keys[i]));
    }
}

/* A row of a CSV stands alone, and says where and how it was measured. */
static void cells_for_csv(const daqiri_cells_t *cells, json_t *report)
{
    json_t *rows = json_object_get(report, "rows");
    json_t *row;
    size_t i;

    json_array_foreach(rows, i, row) {
        json_object_set(row, "host", json_object_get(cells->machine, "host"));
        json_object_set(row, "date", json_object_get(report, "date"));
        json_object_set(row, "duration_s", json_object_get(report, "duration_s"));
        json_object_set(row, "repeats", json_object_get(report, "repeats"));
    }
}

/* Why there is nothing, or not all, before what there is. */
static void cells_say_failure(const daqiri_cells_t *cells)
{
    const daqiri_cells_opts_t *opts = cells->opts;
    const daqiri_cells_run_t *run   = &cells->rows[0].runs[0];

    if (opts->is_single && (cells->rows[0].run_count > 0) && !run->is_ok) {
        fprintf(stderr, "%s: failed in stage %s (%s): %s\n", opts->speaker,
                daqiri_report_find_text(run->report, "stage"),
                daqiri_report_find_text(run->report, "failure_class"),
                daqiri_report_find_text(run->report, "error"));
    } else if (cells->peer.is_lost) {
        fprintf(stderr, "%s: %s\n", opts->speaker, cells->peer.failure.text);
    }
}

static int cells_print(const daqiri_cells_t *cells, json_t *report,
                       const daqiri_section_t *table, size_t table_count,
                       const daqiri_section_t *csv)
{
    const daqiri_cells_opts_t *opts = cells->opts;
    int is_csv = opts->format == DAQIRI_FORMAT_CSV;
    int error;

    cells_say_failure(cells);
    if (opts->format == DAQIRI_FORMAT_TABLE) {
        cells_for_people(cells, report);
        if (opts->is_single) {
            cells_add_failure(cells, report);
        }
    } else if (is_csv) {
        cells_for_csv(cells, report);
    }
    error = daqiri_report_print(report, opts->format, is_csv ? csv : table,
                                is_csv ? 1 : table_count, stdout);
    if ((error == 0) && opts->is_verbose && (opts->format == DAQIRI_FORMAT_TABLE)) {
        error = daqiri_report_print(report, opts->format, &cells_runs_section, 1,
                                    stdout);
    }
    if (error != 0) {
        fprintf(stderr, "%s: the report cannot be written: %s\n",
                opts->speaker, strerror(error));
    }
    if ((opts->stalled > 0) && !cells_has_witness(cells)) {
        fprintf(stderr, "%s: nobody has seen whether a CPU stood still, so no "
                "run was made again: SCHED_FIFO is not permitted, or the "
                "other end is on another host\n", opts->speaker);
    }
    if (cells->is_interrupted && !opts->is_single) {
        fprintf(stderr, "%s: interrupted: %zu of %zu runs were made\n",
                opts->speaker, cells->done, cells->all);
    }
    return (error != 0) ? DAQIRI_EXIT_FAILED : DAQIRI_EXIT_OK;
}

/* Returns 0, or -1 after one sentence. */
static int cells_plot(const daqiri_cells_t *cells, json_t *report,
                      const char *script, const daqiri_section_t *csv)
{
    const daqiri_cells_opts_t *opts = cells->opts;
    FILE *file = tmpfile();
    int ret    = -1;

    if (!cells_has_figures(cells)) {
        fprintf(stderr, "%s: there is nothing that could be drawn\n", opts->speaker);
    } else if (file == NULL) {
        fprintf(stderr, "%s: %s cannot be drawn: %s\n", opts->speaker, opts->plot,
                strerror(errno));
    } else {
        cells_for_csv(cells, report);
        daqiri_report_only(NULL);
        ret = daqiri_report_print(report, DAQIRI_FORMAT_CSV, csv, 1, file);
        ret = (ret == 0) ? daqiri_plot_draw(opts->plot, script, file, opts->speaker) : -1;
    }
    if (file != NULL) {
        fclose(file);
    }
    return ret;
}

int daqiri_cells_main(const daqiri_cells_opts_t *opts, const char *command,
                      const daqiri_section_t *table, size_t table_count,
                      const daqiri_section_t *csv)
{
    char script[DAQIRI_CELLS_NAME_MAX];
    daqiri_cells_t cells;
    json_t *report;
    int status;

    snprintf(script, sizeof(script), "%s.gp", command);

    daqiri_args_check_columns(opts->speaker, opts->format,
                              (opts->format == DAQIRI_FORMAT_CSV) ? csv : table,
                              table_count);
    if ((opts->plot != NULL) &&
        (daqiri_plot_try(opts->plot, script, opts->speaker) != 0)) {
        return DAQIRI_EXIT_FAILED; /* before it takes minutes */
    }
    daqiri_stop_catch();
    status = opts->is_settled ? DAQIRI_EXIT_OK : daqiri_cells_check(opts);
    if ((status != DAQIRI_EXIT_OK) && !daqiri_stop_asked()) {
        return status;
    }
    daqiri_cells_measure(&cells, opts);
    daqiri_cells_judge(&cells);
    report = daqiri_cells_report(&cells, command);
    status = daqiri_cells_status(&cells);
    if (cells_print(&cells, report, table, table_count, csv) != 0) {
        status = DAQIRI_EXIT_FAILED;
    }
    if ((opts->plot != NULL) && (cells_plot(&cells, report, script, csv) != 0)) {
        status = DAQIRI_EXIT_FAILED;
    }
    json_decref(report);
    daqiri_cells_cleanup(&cells);
    return status;
}
