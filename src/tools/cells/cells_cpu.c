/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What the machine did in a run: for how long an end had no processor, and how far
 * the two processors were from each other (flow_cpu.c).
 */

#include "tools/base/median.h"
#include "tools/base/verdict.h"
#include "tools/cells/cells.h"

#include <math.h>

const json_t *daqiri_cells_counters(const daqiri_cells_run_t *run)
{
    return json_object_get(run->report, "counters");
}

/* What "tx" or "rx" has counted; -1: nobody has looked. */
static double cpu_count(const daqiri_cells_run_t *run, const char *end,
                        const char *name)
{
    const json_t *count = json_object_get(
        json_object_get(daqiri_cells_counters(run), end), name);

    return json_is_integer(count) ? json_number_value(count) : -1;
}

static double cpu_seconds(const daqiri_cells_run_t *run)
{
    return fmax(cpu_count(run, "tx", DAQIRI_TOOK), 0) * 1e-9;
}

/* Of the end that has the more of it. */
static double cpu_percent(const daqiri_cells_run_t *run, const char *name)
{
    double ns = fmax(cpu_count(run, "tx", name), cpu_count(run, "rx", name));

    return ((ns >= 0) && (cpu_seconds(run) > 0)) ?
           ns * 1e-9 / cpu_seconds(run) * 100 : -1;
}

double daqiri_cells_no_cpu(const daqiri_cells_run_t *run)
{
    return cpu_percent(run, DAQIRI_NO_CPU);
}

double daqiri_cells_waited(const daqiri_cells_run_t *run)
{
    return cpu_percent(run, DAQIRI_WAITED);
}

double daqiri_cells_line(const daqiri_cells_run_t *run)
{
    return fmax(cpu_count(run, "tx", DAQIRI_LINE), 0);
}

static int cpu_is_usual(const daqiri_cells_t *cells, double line_ns)
{
    return (cells->line_ns <= 0) ||
           ((line_ns <= DAQIRI_LINES_ALIKE * cells->line_ns) &&
            (line_ns * DAQIRI_LINES_ALIKE >= cells->line_ns));
}

/* A run knows what was twice its own median; the median itself may be another
 * than usual. */
double daqiri_cells_far(const daqiri_cells_t *cells,
                        const daqiri_cells_run_t *run)
{
    double line_ns = daqiri_cells_line(run);

    if ((line_ns <= 0) || (cpu_seconds(run) <= 0)) {
        return -1;
    }
    return cpu_is_usual(cells, line_ns) ?
           fmax(cpu_percent(run, DAQIRI_LINE_FAR), 0) : 100;
}

int daqiri_cells_is_stalled(const daqiri_cells_t *cells,
                            const daqiri_cells_run_t *run)
{
    const double stalled = cells->opts->stalled;

    return (stalled > 0) && run->is_ok &&
           ((daqiri_cells_no_cpu(run) >= stalled) ||
            (daqiri_cells_far(cells, run) >= stalled));
}

size_t daqiri_cells_again(const daqiri_cells_run_t *run)
{
    return json_array_size(json_object_get(run->report, "instead_of"));
}

/* ---- what a run could have had ---- */

/* Both ends are needed at the same time, and each loses its own. */
static double cpu_share(const daqiri_cells_run_t *run)
{
    static const char *const ends[] = {"tx", "rx"};
    const double seconds = cpu_seconds(run);
    double share         = 1;
    double lost_ns;
    size_t i;

    for (i = 0; (i < 2) && (seconds > 0); ++i) {
        lost_ns = fmax(cpu_count(run, ends[i], DAQIRI_NO_CPU), 0) +
                  fmax(cpu_count(run, ends[i], DAQIRI_WAITED), 0);
        share  *= 1 - fmin(lost_ns * 1e-9 / seconds, 1);
    }
    return share;
}

/* Nothing between two ends is slower by more than the line is. */
static double cpu_nearness(const daqiri_cells_t *cells,
                           const daqiri_cells_run_t *run)
{
    const double line_ns = daqiri_cells_line(run);

    if (!cpu_is_usual(cells, line_ns) && (line_ns > cells->line_ns)) {
        return cells->line_ns / line_ns;
    }
    return 1 - fmax(cpu_percent(run, DAQIRI_LINE_FAR), 0) / 100 *
               (1 - 1.0 / DAQIRI_FAR);
}

double daqiri_cells_speed(const daqiri_cells_t *cells,
                          const daqiri_cells_run_t *run)
{
    return cpu_share(run) * cpu_nearness(cells, run);
}

double daqiri_cells_row_speed(const daqiri_cells_t *cells,
                              const daqiri_cells_row_t *row)
{
    double speeds[DAQIRI_CELLS_REPEATS_MAX];
    size_t count = 0;
    size_t i;

    for (i = 0; i < row->run_count; ++i) {
        if (row->runs[i].is_ok) {
            speeds[count++] = daqiri_cells_speed(cells, &row->runs[i]);
        }
    }
    return (count > 0) ? daqiri_median(speeds, count) : 1;
}

/* ---- for people ---- */

/* "no CPU: tx 67.8 ms, rx 54.3 ms", or nothing if neither end has looked. */
static int cpu_put_ends(const daqiri_cells_run_t *run, const char *name,
                        const char *title, char *text, size_t length)
{
    const double tx = cpu_count(run, "tx", name);
    const double rx = cpu_count(run, "rx", name);

    return ((tx < 0) || (rx < 0)) ? 0 :
           snprintf(text, length, "%s: tx %.1f ms, rx %.1f ms; ", title, tx * 1e-6,
                    rx * 1e-6);
}

const char *daqiri_cells_cpu_text(const daqiri_cells_t *cells,
                                  const daqiri_cells_run_t *run, char *text)
{
    const size_t length  = DAQIRI_CELLS_CPU_TEXT_MAX;
    const double line_ns = daqiri_cells_line(run);
    int used             = snprintf(text, length, " (");

    used += cpu_put_ends(run, DAQIRI_NO_CPU, "no CPU", text + used,
                         length - (size_t)used);
    used += cpu_put_ends(run, DAQIRI_WAITED, "waited for a CPU", text + used,
                         length - (size_t)used);
    if (line_ns > 0) {
        used += cpu_is_usual(cells, line_ns) ?
                snprintf(text + used, length - (size_t)used, "line %.0f ns; ",
                         line_ns) :
                snprintf(text + used, length - (size_t)used,
                         "line %.0f ns instead of %.0f ns; ", line_ns,
                         cells->line_ns);
    }
    if (used == 2) {
        used += snprintf(text + used, length - (size_t)used, "no CPU: not known; ");
    }
    snprintf(text + used - 2, length - (size_t)used + 2, ")");
    return text;
}
