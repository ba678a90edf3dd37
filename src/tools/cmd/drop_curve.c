/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * `daqiri drop-curve`: what is reached, and lost, at which pace. The engine is
 * cells.h; this is what is asked for by default, the table and the picture.
 */

#include "tools/cells/cells.h"
#include "tools/cells/plot.h"
#include "tools/cmd/cmd.h"

#include <string.h>

/* ---- options ---- */

enum {
    DROP_CURVE_TARGETS = DAQIRI_ARGS_OWN,
    DROP_CURVE_GBPS,
    DROP_CURVE_PACE
};

static const struct argp_option drop_curve_options[] = {
    {"targets", DROP_CURVE_TARGETS, "LIST", 0,
     "Percent of maximum, or none (1,5,10,25,50,75,100)", 1},
    {"gbps", DROP_CURVE_GBPS, "LIST", 0, "Paces in Gb/s, instead", 1},
    {"pace", DROP_CURVE_PACE, "PERCENT", 0,
     "A pace is missed by more than this (1)", 1},
    {NULL}
};

static void drop_curve_take_percent(struct argp_state *state, const char *name,
                                    const char *word, size_t i)
{
    daqiri_cells_opts_t *opts = state->input;

    opts->percents[i] = daqiri_args_number(state, name, word, 0.001, 1000);
    daqiri_cells_need_new(state, name, word, opts->percents,
                          sizeof(opts->percents[0]), i);
}

static void drop_curve_take_gbps(struct argp_state *state, const char *name,
                                 const char *word, size_t i)
{
    daqiri_cells_opts_t *opts = state->input;

    opts->gbps[i] = daqiri_args_number(state, name, word, 1e-6, 1e6);
    daqiri_cells_need_new(state, name, word, opts->gbps,
                          sizeof(opts->gbps[0]), i);
}

static error_t drop_curve_parse(int key, char *arg, struct argp_state *state)
{
    daqiri_cells_opts_t *opts = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        daqiri_cells_parse_init(state);
        return 0;
    case DROP_CURVE_TARGETS:
        opts->percent_count = (strcmp(arg, "none") == 0) ? 0 :
                              daqiri_cells_list(state, "targets", arg,
                                                drop_curve_take_percent);
        opts->has_targets = 1;
        return 0;
    case DROP_CURVE_GBPS:
        opts->gbps_count    = daqiri_cells_list(state, "gbps", arg,
                                                drop_curve_take_gbps);
        return 0;
    case DROP_CURVE_PACE:
        opts->pace = daqiri_args_number(state, "pace", arg, 0.001, 100);
        return 0;
    case ARGP_KEY_END:
        if ((opts->gbps_count > 0) && opts->has_targets) {
            argp_error(state, "--targets and --gbps exclude each other");
        }
        opts->percent_count = (opts->gbps_count > 0) ? 0 : opts->percent_count;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp drop_curve_argp = {
    drop_curve_options, drop_curve_parse, NULL,
    "Checks paces and losses (--transports daqiri --sizes 64K --duration 1s).\v"
    DAQIRI_CELLS_STATUS,
    daqiri_cells_children
};

static void drop_curve_opts_init(daqiri_cells_opts_t *opts,
                                 const char *speaker)
{
    static const double percents[] = {1, 5, 10, 25, 50, 75, 100};

    daqiri_cells_opts_init(opts, speaker);
    strcpy(opts->transports[0], "daqiri");
    opts->transport_count = 1;
    opts->patterns[0]     = "stream";
    opts->pattern_count   = 1;
    opts->sizes[0]        = 65536;
    opts->size_count      = 1;
    memcpy(opts->percents, percents, sizeof(percents));
    opts->percent_count   = sizeof(percents) / sizeof(percents[0]);
    opts->duration        = 1;
}

/* ---- the table ---- */

static const daqiri_column_t drop_curve_columns[] = {
    {"transport", "transport"}, {"size", "size", DAQIRI_UNIT_SIZE},
    {"window", "window"},
    {"target_percent", "target %", DAQIRI_UNIT_PERCENT},
    {"target_gbps", "Gb/s", DAQIRI_UNIT_GBPS},
    {"gbps", "achieved", DAQIRI_UNIT_GBPS},
    {"least_gbps", "least", DAQIRI_UNIT_GBPS},
    {"deviation_percent", "deviation %",
     DAQIRI_UNIT_PERCENT},
    {"drops", "drops"},
    {"cpu_tx_percent", "CPU tx %", DAQIRI_UNIT_PERCENT},
    {"cpu_rx_percent", "rx %", DAQIRI_UNIT_PERCENT},
    {"verdict", "verdict"}, {"why", "why"}
};

static const daqiri_column_t drop_curve_csv_columns[] = {
    {"transport"}, {"device"}, {"size"}, {"window"}, {"target_percent"},
    {"target_gbps"}, {"runs_ok"}, {"messages_per_s"}, {"gbps"}, {"least_gbps"},
    {"most_gbps"}, {"deviation_percent"}, {"drops"}, {"cpu_tx_percent"},
    {"cpu_rx_percent"}, {"verdict"}, {"why"}
};

static const daqiri_column_t drop_curve_sums[] = {
    {"missing", "rows with runs missing"},
    {"collapse", "rows with a run that collapsed"},
    {"noisy", "rows that had no CPU, or far ones, for too long"},
    {"drops", "rows that lost messages"},
    {"pace", "rows with a missed pace (targets up to 75 %)"},
    {"rate", "rows slower than longer messages"},
    {"again", "runs made again: no CPU, or far ones (--stalled)"}
};

static const daqiri_section_t drop_curve_table[] = {
    {"rows", NULL, DAQIRI_COLUMNS(drop_curve_columns)},
    {"verdict", "", DAQIRI_COLUMNS(drop_curve_sums)}
};

static const daqiri_section_t drop_curve_csv = {
    "rows", NULL, DAQIRI_COLUMNS(drop_curve_csv_columns)
};

/* ---- the picture ---- */

static int drop_curve_is_paced(const json_t *row)
{
    return json_is_number(json_object_get(row, "target_gbps"));
}

/* A line of the picture is a series at one size. Two blocks of columns, target,
 * Gb/s, deviation, CPU, CPU: what had a pace, and what had none. */
static void drop_curve_draw_data(const json_t *report,
                                 const daqiri_plot_series_t *series,
                                 json_int_t size, const char *name,
                                 FILE *script)
{
    static const char *const paths[] = {
        "gbps", "deviation_percent", "cpu_tx_percent", "cpu_rx_percent"
    };
    const json_t *rows = json_object_get(report, "rows");
    const json_t *row;
    int is_paced;
    size_t r, p;

    for (is_paced = 0; is_paced <= 1; ++is_paced) {
        fprintf(script, "$%c%s << EOD\n", is_paced ? 'p' : 'u', name);
        for (r = 0; r < json_array_size(rows); ++r) {
            row = json_array_get(rows, r);
            if (!daqiri_plot_is_in(series, row) ||
                (json_integer_value(json_object_get(row, "size")) != size) ||
                (drop_curve_is_paced(row) != is_paced)) {
                continue;
            }
            daqiri_plot_number(row, is_paced ? "target_gbps" : "gbps", script);
            for (p = 0; p < sizeof(paths) / sizeof(paths[0]); ++p) {
                daqiri_plot_number(row, paths[p], script);
            }
            fprintf(script, "\n");
        }
        fprintf(script, "EOD\n");
    }
}

typedef struct drop_curve_line {
    char   name[16];
    char   title[96];
    size_t color;
} drop_curve_line_t;

static void drop_curve_add_line(const json_t *report,
                                const daqiri_plot_series_t *series,
                                size_t count, size_t i, json_int_t size,
                                drop_curve_line_t *line, size_t number,
                                FILE *script)
{
    char text[DAQIRI_PLOT_SIZE_MAX];
    FILE *title = fmemopen(line->title, sizeof(line->title), "w");

    snprintf(line->name, sizeof(line->name), "%zu", number);
    line->color = number + 1;
    if (title != NULL) {
        daqiri_plot_title(series, count, i, title);
        fprintf(title, ", %s", daqiri_plot_size((uint64_t)size, text));
        fclose(title);
    }
    drop_curve_draw_data(report, &series[i], size, line->name, script);
}

/* Returns how many lines there are. */
static size_t drop_curve_find_lines(const json_t *report,
                                    drop_curve_line_t *lines, FILE *script)
{
    daqiri_plot_series_t series[DAQIRI_PLOT_SERIES_MAX];
    size_t count       = daqiri_plot_find_series(report, series);
    const json_t *rows = json_object_get(report, "rows");
    size_t known       = 0;
    const json_t *row;
    size_t i, r;

    for (i = 0; i < count; ++i) {
        for (r = 0; r < json_array_size(rows); ++r) {
            row = json_array_get(rows, r);
            if (daqiri_plot_is_in(&series[i], row) &&
                !json_is_number(json_object_get(row, "target_percent")) &&
                !drop_curve_is_paced(row) &&
                (known < DAQIRI_PLOT_SERIES_MAX)) {
                drop_curve_add_line(report, series, count, i,
                                    json_integer_value(
                                        json_object_get(row, "size")),
                                    &lines[known], known, script);
                ++known;
            }
        }
    }
    return known;
}

static void drop_curve_draw_panel(const drop_curve_line_t *lines, size_t count,
                                  const char *column, const char *more,
                                  int dashes, FILE *script)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        fprintf(script, "$p%s using 1:%s with linespoints lt %zu lw 2 dt %d pt "
                "7 ps 0.7 title \"%s%s\", ", lines[i].name, column,
                lines[i].color, dashes, lines[i].title, more);
    }
}

static int drop_curve_has_paces(const json_t *report)
{
    const json_t *rows = json_object_get(report, "rows");
    int has            = 0;
    size_t i;

    for (i = 0; i < json_array_size(rows); ++i) {
        has |= drop_curve_is_paced(json_array_get(rows, i)) &&
               json_is_number(json_object_get(json_array_get(rows, i),
                                              "gbps"));
    }
    return has;
}

static void drop_curve_draw_paces(const drop_curve_line_t *lines, size_t count,
                                  FILE *script)
{
    fprintf(script, "set ylabel '|deviation|, %%'\nplot [:] [0.0001:100] ");
    drop_curve_draw_panel(lines, count,
                          "(abs($3) < 0.0001 ? 0.0001 : abs($3))", "", 1,
                          script);
    fprintf(script, "0.05 with lines lc rgb '#888888' dt 2 title '0.05 %%'\n"
            "unset logscale y\nset ylabel 'CPU, %% of one'\n"
            "plot [:] [0:110] ");
    drop_curve_draw_panel(lines, count, "4", " sender", 1, script);
    drop_curve_draw_panel(lines, count, "5", " receiver", 3, script);
    fprintf(script, "1/0 notitle\n");
}

static void drop_curve_draw(const json_t *report, FILE *script)
{
    drop_curve_line_t lines[DAQIRI_PLOT_SERIES_MAX];
    size_t count = drop_curve_find_lines(report, lines, script);
    size_t i;

    fprintf(script, "set multiplot layout 3,1 title "
            "'daqiri drop-curve: medians of the runs'\n"
            "set logscale xy 10\nset xlabel 'target, Gb/s'\n"
            "set ylabel 'achieved, Gb/s'\nplot ");
    if (drop_curve_has_paces(report)) {
        drop_curve_draw_panel(lines, count, "2", "", 1, script);
    }
    for (i = 0; i < count; ++i) {
        fprintf(script, "$u%s using 1:2 with points lt %zu lw 2 pt 6 ps 1.8 "
                "title \"%s unpaced\", ", lines[i].name, lines[i].color,
                lines[i].title);
    }
    fprintf(script, "x with lines lc rgb '#888888' dt 2 title 'target'\n");
    if (drop_curve_has_paces(report)) {
        drop_curve_draw_paces(lines, count, script);
    }
    fprintf(script, "unset multiplot\n");
}

int daqiri_drop_curve(int argc, char **argv)
{
    static daqiri_cells_opts_t opts;

    drop_curve_opts_init(&opts, argv[0]);
    daqiri_args_parse(&drop_curve_argp, argc, argv, &opts);
    return daqiri_cells_main(&opts, "drop-curve", drop_curve_table, 2,
                             &drop_curve_csv, drop_curve_draw);
}
