/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/exit_status.h"
#include "tools/base/median.h"
#include "tools/base/verdict.h"
#include "tools/cells/cells.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    unsigned   bit;
    const char *name;
} judge_names[] = {
    {DAQIRI_CELLS_MISSING, "missing"},
    {DAQIRI_CELLS_COLLAPSE, "collapse"},
    {DAQIRI_CELLS_NOISY, "noisy"},
    {DAQIRI_CELLS_DROPS, "drops"},
    {DAQIRI_CELLS_RATE, "rate"},
    {DAQIRI_CELLS_PACE, "pace"}
};

#define JUDGE_NUM_NAMES (sizeof(judge_names) / sizeof(judge_names[0]))

double daqiri_cells_median(const daqiri_cells_row_t *row, const char *path)
{
    double values[DAQIRI_CELLS_REPEATS_MAX];
    const json_t *value;
    size_t count = 0;
    size_t i;

    for (i = 0; i < row->run_count; ++i) {
        value = row->runs[i].is_ok ?
                daqiri_report_find(row->runs[i].report, path) : NULL;
        if (json_is_number(value)) {
            values[count++] = json_number_value(value);
        }
    }
    return (count > 0) ? daqiri_median(values, count) : -1;
}

const char *daqiri_cells_verdict_text(const daqiri_cells_row_t *row,
                                      char *text, size_t length)
{
    size_t used = 0;
    size_t i;

    snprintf(text, length, "%s", (row->run_count > 0) ? "ok" : "not measured");
    for (i = 0; (i < JUDGE_NUM_NAMES) && (used < length); ++i) {
        if ((row->verdict & judge_names[i].bit) != 0) {
            used += (size_t)snprintf(text + used, length - used, "%s%s",
                                     (used > 0) ? ", " : "",
                                     judge_names[i].name);
        }
    }
    return text;
}

/* ---- one row ---- */

/* Adds a clause to what is said of the row. */
static void judge_say(daqiri_cells_row_t *row, unsigned verdict,
                      const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void judge_say(daqiri_cells_row_t *row, unsigned verdict,
                      const char *format, ...)
{
    size_t used = strlen(row->why);
    va_list args;

    row->verdict |= verdict;
    used += (size_t)snprintf(row->why + used, sizeof(row->why) - used, "%s",
                             (used > 0) ? "; " : "");
    if (used < sizeof(row->why)) {
        va_start(args, format);
        vsnprintf(row->why + used, sizeof(row->why) - used, format, args);
        va_end(args);
    }
}

/* What is wrong, unless the machine explains it. */
static unsigned judge_blame(unsigned verdict, double share, double possible)
{
    return daqiri_verdict_is_noise(share, possible) ? DAQIRI_CELLS_NOISY : verdict;
}

static void judge_missing(daqiri_cells_row_t *row, const daqiri_cells_t *cells)
{
    size_t failed     = 0;
    const char *error = NULL;
    size_t i;

    for (i = 0; i < row->run_count; ++i) {
        if (!row->runs[i].is_ok) {
            ++failed;
            error = daqiri_report_find_text(row->runs[i].report, "error");
        }
    }
    if (failed > 0) {
        judge_say(row, DAQIRI_CELLS_MISSING, "%zu of %zu runs failed: %s",
                  failed, row->run_count, (error != NULL) ? error : "");
    } else if ((row->run_count == 0) && !cells->is_interrupted) {
        judge_say(row, DAQIRI_CELLS_MISSING, "there is no maximum that it "
                  "could be a part of");
    }
}

/* One that is slow, of those that have a figure; the others tell why. */
static void judge_slow(const daqiri_cells_t *cells, daqiri_cells_row_t *row,
                       size_t slow, double share)
{
    const daqiri_cells_run_t *run = &row->runs[slow];
    const json_t *others[DAQIRI_CELLS_REPEATS_MAX];
    double messages[DAQIRI_CELLS_REPEATS_MAX];
    char reason[256], cpu[DAQIRI_CELLS_CPU_TEXT_MAX];
    size_t count = 0;
    size_t i;

    for (i = 0; i < row->run_count; ++i) {
        if (row->runs[i].is_ok && (i != slow)) {
            others[count]     = daqiri_cells_counters(&row->runs[i]);
            messages[count++] = row->runs[i].messages;
        }
    }
    daqiri_verdict_explain(daqiri_cells_counters(run), run->messages, others,
                           messages, count, reason, sizeof(reason));
    judge_say(row, judge_blame(DAQIRI_CELLS_COLLAPSE, share,
                               daqiri_cells_speed(cells, run)),
              "run %zu had %.2f of the median%s%s%s", slow + 1, share,
              daqiri_cells_cpu_text(cells, run, cpu),
              (reason[0] != '\0') ? ": " : "", reason);
}

/* All runs that have a figure, good or not. */
static void judge_collapse(const daqiri_cells_t *cells,
                           daqiri_cells_row_t *row)
{
    double values[DAQIRI_CELLS_REPEATS_MAX] = {0};
    size_t runs[DAQIRI_CELLS_REPEATS_MAX];
    size_t count = 0;
    size_t i;

    for (i = 0; i < row->run_count; ++i) {
        if (row->runs[i].is_ok) {
            runs[count]     = i;
            values[count++] = row->runs[i].gbps;
        }
    }
    for (i = 0; i < count; ++i) {
        if (daqiri_verdict_collapsed(values, count, i,
                                     cells->opts->collapse / 100)) {
            judge_slow(cells, row, runs[i], values[i] / daqiri_median(values, count));
        }
    }
}

/* The most, or the least, that those have which a run is made instead of. */
static double judge_former(const daqiri_cells_run_t *run, const char *key,
                           int is_most)
{
    const json_t *formers = json_object_get(run->report, "instead_of");
    double found          = 0;
    double value;
    size_t i;

    for (i = 0; i < json_array_size(formers); ++i) {
        value = json_number_value(json_object_get(json_array_get(formers, i),
                                                  key));
        found = ((i == 0) || ((value > found) == (is_most != 0))) ? value :
                                                                    found;
    }
    return found;
}

/* Whatever came of it, nobody shall take it for the first one. */
static void judge_again(const daqiri_cells_t *cells, daqiri_cells_row_t *row)
{
    double median = daqiri_cells_median(row, "gbps");
    const daqiri_cells_run_t *run;
    char times[32];
    size_t i;

    for (i = 0; i < row->run_count; ++i) {
        run = &row->runs[i];
        if ((daqiri_cells_again(run) > 0) && (median > 0)) {
            snprintf(times, sizeof(times), "%zu times", daqiri_cells_again(run));
            judge_say(row, 0, "run %zu was made %s more: at worst it had %.2f "
                      "of the median, no CPU for %.1f %%, far ones for %.1f %%"
                      "%s", i + 1,
                      (daqiri_cells_again(run) == 1) ? "once" : times,
                      judge_former(run, "gbps", 0) / median,
                      judge_former(run, "no_cpu_percent", 1),
                      judge_former(run, "far_percent", 1),
                      daqiri_cells_is_stalled(cells, run) ?
                      ", and the last one is like that" : "");
        }
    }
}

static double judge_sum(const daqiri_cells_row_t *row, const char *key)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < row->run_count; ++i) {
        sum += json_number_value(json_object_get(row->runs[i].report, key));
    }
    return sum;
}

static void judge_drops(daqiri_cells_row_t *row)
{
    double drops    = judge_sum(row, "sent") - judge_sum(row, "received");
    double disorder = judge_sum(row, "disorder");

    if ((drops != 0) || (disorder != 0)) {
        judge_say(row, DAQIRI_CELLS_DROPS, "%.0f messages lost, %.0f out of "
                  "order", drops, disorder);
    }
}

/* ---- against others ---- */

static int judge_is_same_line(const daqiri_cells_row_t *a,
                              const daqiri_cells_row_t *b)
{
    return !a->is_paced && !b->is_paced && (a->transport == b->transport) &&
           (a->pattern == b->pattern) && (a->window == b->window);
}

/* What the counters of the first run tell beside those of another row. */
static void judge_explain_beside(const daqiri_cells_row_t *row,
                                 const daqiri_cells_row_t *other, char *reason,
                                 size_t size)
{
    const json_t *counters = daqiri_cells_counters(&other->runs[0]);

    daqiri_verdict_explain(daqiri_cells_counters(&row->runs[0]),
                           row->runs[0].messages, &counters,
                           &other->runs[0].messages, 1, reason, size);
}

static void judge_explain_rate(const daqiri_cells_t *cells,
                               daqiri_cells_row_t *row,
                               const daqiri_cells_row_t *longer)
{
    const double share  = daqiri_cells_median(row, "messages_per_s") /
                          daqiri_cells_median(longer, "messages_per_s");
    char reason[256];

    judge_explain_beside(row, longer, reason, sizeof(reason));
    judge_say(row, judge_blame(DAQIRI_CELLS_RATE, share,
                               daqiri_cells_row_speed(cells, row)),
              "%.2f of the messages/s of %zu bytes%s%s", share, longer->size,
              (reason[0] != '\0') ? ": " : "", reason);
}

/* Rows of one line come by size, the shortest first. */
static void judge_rate(daqiri_cells_t *cells, size_t index)
{
    double rates[DAQIRI_CELLS_LIST_MAX];
    daqiri_cells_row_t *rows[DAQIRI_CELLS_LIST_MAX];
    size_t count = 0;
    size_t i;
    int faster;

    for (i = index; (i < cells->row_count) &&
                    (count < DAQIRI_CELLS_LIST_MAX); ++i) {
        if (judge_is_same_line(&cells->rows[index], &cells->rows[i])) {
            rows[count]    = &cells->rows[i];
            rates[count++] = daqiri_cells_median(&cells->rows[i],
                                                 "messages_per_s");
        }
    }
    faster = (count > 1) ?
             daqiri_verdict_falls_behind(rates, count, 0, cells->opts->rate / 100) : -1;
    if (faster > 0) {
        judge_explain_rate(cells, rows[0], rows[faster]);
    }
}

/* The row without a pace that goes with it, or NULL. */
static const daqiri_cells_row_t *judge_unpaced(const daqiri_cells_t *cells,
                                               const daqiri_cells_row_t *row)
{
    size_t i;

    for (i = 0; i < cells->row_count; ++i) {
        if (!cells->rows[i].is_paced &&
            (cells->rows[i].transport == row->transport) &&
            (cells->rows[i].size == row->size) &&
            (cells->rows[i].window == row->window)) {
            return &cells->rows[i];
        }
    }
    return NULL;
}

/* All its runs alike: no median of its own would tell. */
static void judge_pace_collapsed(const daqiri_cells_t *cells,
                                 daqiri_cells_row_t *row,
                                 const daqiri_cells_row_t *unpaced)
{
    const double share  = daqiri_cells_median(row, "gbps") / row->gbps;
    char reason[256];

    judge_explain_beside(row, unpaced, reason, sizeof(reason));
    judge_say(row, judge_blame(DAQIRI_CELLS_COLLAPSE, share,
                               daqiri_cells_row_speed(cells, row)),
              "it had %.2f of its pace%s%s", share, (reason[0] != '\0') ? ": " : "",
              reason);
}

/* A pace in Gb/s is a part of the maximum, too. */
static void judge_pace(const daqiri_cells_t *cells, daqiri_cells_row_t *row)
{
    const daqiri_cells_row_t *unpaced = judge_unpaced(cells, row);
    double deviation = daqiri_cells_median(row, "deviation_percent");
    double gbps      = daqiri_cells_median(row, "gbps");

    if (!row->is_paced || (gbps < 0) || (unpaced == NULL) ||
        (row->gbps > daqiri_cells_median(unpaced, "gbps") *
                     (DAQIRI_CELLS_JUDGED_PERCENT + 1e-6) / 100)) {
        return;
    }
    if (daqiri_verdict_pace_missed(deviation, cells->opts->pace)) {
        judge_say(row, judge_blame(DAQIRI_CELLS_PACE, gbps / row->gbps,
                                   daqiri_cells_row_speed(cells, row)),
                  "the pace was missed by %.3f %%", deviation);
    }
    if (gbps < row->gbps * cells->opts->collapse / 100) {
        judge_pace_collapsed(cells, row, unpaced);
    }
}

void daqiri_cells_judge(daqiri_cells_t *cells)
{
    size_t i;

    for (i = 0; i < cells->row_count; ++i) {
        judge_missing(&cells->rows[i], cells);
        judge_collapse(cells, &cells->rows[i]);
        judge_again(cells, &cells->rows[i]);
        judge_drops(&cells->rows[i]);
        judge_rate(cells, i);
        judge_pace(cells, &cells->rows[i]);
    }
}

/* Some verdicts are failures always, all of them if that was asked for. */
int daqiri_cells_status(const daqiri_cells_t *cells)
{
    const char *name;

    const unsigned grave = DAQIRI_CELLS_MISSING | DAQIRI_CELLS_COLLAPSE |
                           DAQIRI_CELLS_DROPS;
    unsigned found = 0;
    size_t i;

    for (i = 0; i < cells->row_count; ++i) {
        found |= cells->rows[i].verdict;
    }
    if (cells->opts->is_single && (cells->rows[0].run_count > 0)) {
        name = daqiri_report_find_text(cells->rows[0].runs[0].report, "failure_class");
        if ((name != NULL) &&
            (daqiri_class_of_name(name) == DAQIRI_CLASS_PROVIDER_TIMEOUT)) {
            return DAQIRI_EXIT_WATCHDOG;
        }
    }
    return (((found & (cells->opts->is_strict ? ~0u : grave)) != 0) ||
            (cells->is_interrupted &&
             !(cells->opts->is_single && (cells->done == cells->all)))) ?
           (cells->peer.is_apart ? DAQIRI_EXIT_APART : DAQIRI_EXIT_FAILED) :
           DAQIRI_EXIT_OK;
}

void daqiri_cells_cleanup(daqiri_cells_t *cells)
{
    size_t i, k;

    for (i = 0; i < cells->row_count; ++i) {
        for (k = 0; k < cells->rows[i].run_count; ++k) {
            json_decref(cells->rows[i].runs[k].report);
        }
    }
    json_decref(cells->machine);
    free(cells->rows);
    cells->rows = NULL;
}

/* ---- as JSON ---- */

static json_t *judge_real(double value)
{
    return (value >= 0) ? json_real(value) : json_null();
}

/* What the good runs have under this path; as medians are, -1 if none has it. */
static void judge_extremes(const daqiri_cells_row_t *row, const char *path,
                           double *least_p, double *most_p)
{
    const json_t *value;
    size_t i;

    *least_p = *most_p = -1;
    for (i = 0; i < row->run_count; ++i) {
        value = daqiri_report_find(row->runs[i].report, path);
        if (row->runs[i].is_ok && json_is_number(value)) {
            *least_p = ((*least_p < 0) || (json_number_value(value) < *least_p)) ?
                       json_number_value(value) : *least_p;
            *most_p  = fmax(*most_p, json_number_value(value));
        }
    }
}

static json_t *judge_latency(const daqiri_cells_row_t *row)
{
    static const char *const keys[] = {
        "min_us", "p50_us", "p90_us", "p99_us", "p999_us", "max_us"
    };
    json_t *latency = json_object();
    double value = -1;
    double least, most;
    char path[32];
    size_t i;

    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); ++i) {
        snprintf(path, sizeof(path), "round_trip.%s", keys[i]);
        value = daqiri_cells_median(row, path);
        daqiri_report_set(latency, keys[i], judge_real(value));
    }
    judge_extremes(row, "round_trip.p50_us", &least, &most);
    daqiri_report_set(latency, "least_p50_us", judge_real(least));
    daqiri_report_set(latency, "most_p50_us", judge_real(most));
    if (value >= 0) {
        return latency;
    }
    json_decref(latency);
    return json_null();
}

/* What one run has, without what its row says already. */
static json_t *judge_run(const daqiri_cells_run_t *run)
{
    static const char *const of_row[] = {
        "command", "version", "tl", "device", "pattern", "size", "window",
        "target_gbps"
    };
    static const char *const keys[] = {
        "gbps", "messages_per_s", "deviation_percent", "sent", "received",
        "disorder", "elapsed_s", "cpu_tx_percent", "cpu_rx_percent", "round_trip",
        "counters", "instead_of", "intervals"
    };
    json_t *report = json_copy(run->report);
    size_t i;

    for (i = 0; i < sizeof(of_row) / sizeof(of_row[0]); ++i) {
        json_object_del(report, of_row[i]);
    }
    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); ++i) {
        if (json_object_get(report, keys[i]) == NULL) {
            daqiri_report_set(report, keys[i], json_null());
        }
    }
    return report;
}

static void judge_report_figures(json_t *object, const daqiri_cells_row_t *row)
{
    double least, most;
    size_t good = 0;
    size_t i;

    for (i = 0; i < row->run_count; ++i) {
        good += row->runs[i].is_ok != 0;
    }
    judge_extremes(row, "gbps", &least, &most);
    daqiri_report_int(object, "runs_ok", (long long)good);
    daqiri_report_set(object, "messages_per_s",
                      judge_real(daqiri_cells_median(row, "messages_per_s")));
    daqiri_report_set(object, "gbps",
                      judge_real(daqiri_cells_median(row, "gbps")));
    daqiri_report_set(object, "least_gbps", judge_real(least));
    daqiri_report_set(object, "most_gbps", judge_real(most));
    daqiri_report_set(object, "deviation_percent",
                      (row->is_paced && (good > 0)) ?
                      json_real(daqiri_cells_median(row,
                                                    "deviation_percent")) :
                      json_null());
    daqiri_report_set(object, "drops", (good > 0) ?
                      json_integer((json_int_t)(judge_sum(row, "sent") -
                                                judge_sum(row, "received"))) :
                      json_null());
    daqiri_report_set(object, "cpu_tx_percent",
                      judge_real(daqiri_cells_median(row, "cpu_tx_percent")));
    daqiri_report_set(object, "cpu_rx_percent",
                      judge_real(daqiri_cells_median(row, "cpu_rx_percent")));
    daqiri_report_set(object, "round_trip", judge_latency(row));
}

static void judge_report_row(json_t *object, const daqiri_cells_row_t *row)
{
    char verdict[64];
    json_t *runs;
    const char *device = NULL;
    size_t i;

    for (i = 0; i < row->run_count; ++i) {
        device = (device == NULL) ?
                 daqiri_report_find_text(row->runs[i].report, "device") :
                 device;
    }
    daqiri_report_text(object, "transport", row->transport);
    daqiri_report_text(object, "device",
                       (strcmp(row->transport, "tcp") == 0) ? NULL : device);
    daqiri_report_text(object, "pattern", row->pattern);
    daqiri_report_int(object, "size", (long long)row->size);
    daqiri_report_int(object, "window", (strcmp(row->pattern, "pingpong") == 0) ?
                      1 : (long long)row->window);
    daqiri_report_set(object, "target_percent", (row->percent > 0) ?
                      json_real(row->percent) : json_null());
    daqiri_report_set(object, "target_gbps",
                      (row->is_paced && (row->gbps > 0)) ?
                      json_real(row->gbps) : json_null());
    judge_report_figures(object, row);
    daqiri_report_text(object, "verdict",
                       daqiri_cells_verdict_text(row, verdict,
                                                 sizeof(verdict)));
    daqiri_report_text(object, "why", (row->why[0] != '\0') ? row->why : NULL);
    runs = daqiri_report_array(object, "runs");
    for (i = 0; i < row->run_count; ++i) {
        json_array_append_new(runs, judge_run(&row->runs[i]));
    }
}

static size_t judge_count_again(const daqiri_cells_t *cells)
{
    size_t sum = 0;
    size_t i, k;

    for (i = 0; i < cells->row_count; ++i) {
        for (k = 0; k < cells->rows[i].run_count; ++k) {
            sum += daqiri_cells_again(&cells->rows[i].runs[k]);
        }
    }
    return sum;
}

json_t *daqiri_cells_report(const daqiri_cells_t *cells, const char *command)
{
    json_t *report = daqiri_report_new(command);
    json_t *sums   = json_object();
    json_t *rows;
    unsigned found = 0;
    size_t i, k, sum;

    daqiri_report_text(report, "addr", cells->opts->connect_to);
    daqiri_report_text(report, "date", cells->date);
    daqiri_report_set(report, "machine", (cells->machine != NULL) ?
                      json_incref(cells->machine) : json_null());
    daqiri_report_text(report, "peer_version", (cells->peer.version[0] != '\0') ?
                       cells->peer.version : NULL);
    daqiri_report_bool(report, "interrupted", cells->is_interrupted);
    daqiri_report_int(report, "repeats", cells->opts->repeats);
    daqiri_report_set(report, "duration_s",
                      (cells->opts->duration < DAQIRI_CELLS_ENDLESS) ?
                      json_real(cells->opts->duration) : json_null());
    if (cells->opts->iters > 0) {
        daqiri_report_int(report, "iterations", (long long)cells->opts->iters);
    }
    daqiri_report_real(report, "collapse_percent", cells->opts->collapse);
    daqiri_report_real(report, "rate_percent", cells->opts->rate);
    daqiri_report_set(report, "pace_percent",
                      (cells->opts->percent_count + cells->opts->gbps_count > 0) ?
                      json_real(cells->opts->pace) : json_null());
    daqiri_report_set(report, "stalled_percent", (cells->opts->stalled > 0) ?
                      json_real(cells->opts->stalled) : json_null());
    daqiri_report_set(report, "line_us", (cells->line_ns > 0) ?
                      json_real(cells->line_ns / 1e3) : json_null());
    daqiri_report_int(report, "runs", (long long)cells->done);
    daqiri_report_int(report, "runs_planned", (long long)cells->all);
    rows = daqiri_report_array(report, "rows");
    for (i = 0; i < cells->row_count; ++i) {
        judge_report_row(daqiri_report_row(rows), &cells->rows[i]);
        found |= cells->rows[i].verdict;
    }
    for (k = 0; k < JUDGE_NUM_NAMES; ++k) {
        for (i = 0, sum = 0; i < cells->row_count; ++i) {
            sum += (cells->rows[i].verdict & judge_names[k].bit) != 0;
        }
        daqiri_report_int(sums, judge_names[k].name, (long long)sum);
    }
    daqiri_report_int(sums, "again", (long long)judge_count_again(cells));
    daqiri_report_bool(sums, "ok", (found == 0) && !cells->is_interrupted);
    daqiri_report_set(report, "verdict", sums);
    return report;
}
