/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * `daqiri drop-curve`: what is reached, and lost, at which pace. The engine is
 * cells.h; this is what is asked for by default and the table.
 */

#include "tools/cells/cells.h"
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
    {"cpu_rx_percent"}, {"verdict"}, {"why"}, {"host"}, {"date"}, {"duration_s"},
    {"repeats"}
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

int daqiri_drop_curve(int argc, char **argv)
{
    static daqiri_cells_opts_t opts;

    drop_curve_opts_init(&opts, argv[0]);
    daqiri_args_parse(&drop_curve_argp, argc, argv, &opts);
    return daqiri_cells_main(&opts, "drop-curve", drop_curve_table, 2,
                             &drop_curve_csv);
}
