/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * `daqiri sweep`: message sizes x transports x patterns. `daqiri tcp`: one of these,
 * for longer. The engine is cells.h; this is what is asked for by default and the
 * table.
 */

#include "tools/cmd/sweep.h"

#include "tools/cells/cells.h"
#include "tools/cmd/cmd.h"

#include <string.h>

static const char *const sweep_patterns[] = {"stream", "duplex", "pingpong"};

#define SWEEP_NUM_PATTERNS (sizeof(sweep_patterns) / sizeof(sweep_patterns[0]))

/* ---- options ---- */

enum {
    SWEEP_PATTERNS = DAQIRI_ARGS_OWN
};

static const struct argp_option sweep_options[] = {
    {"patterns", SWEEP_PATTERNS, "LIST", 0,
     "stream (one way), duplex (both) and pingpong", 1},
    {NULL}
};

static void sweep_take_pattern(struct argp_state *state, const char *name,
                               const char *word, size_t i)
{
    daqiri_cells_opts_t *opts = state->input;

    opts->patterns[i] = sweep_patterns[daqiri_args_word(state, name, word,
                                                        sweep_patterns,
                                                        SWEEP_NUM_PATTERNS)];
    daqiri_cells_need_new(state, name, word, opts->patterns,
                          sizeof(opts->patterns[0]), i);
}

static error_t sweep_parse(int key, char *arg, struct argp_state *state)
{
    daqiri_cells_opts_t *opts = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        daqiri_cells_parse_init(state);
        return 0;
    case SWEEP_PATTERNS:
        opts->pattern_count = daqiri_cells_list(state, "patterns", arg,
                                                sweep_take_pattern);
        return 0;
    case ARGP_KEY_END:
        if (opts->has_windows && (opts->pattern_count == 1) &&
            (strcmp(opts->patterns[0], "pingpong") == 0)) {
            argp_error(state, "--windows is not for pingpong, where each "
                       "message waits for an answer");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp sweep_argp = {
    sweep_options, sweep_parse, NULL,
    "Measures and judges message rates, bandwidth and round trips by size.\v"
    "Defaults: daqiri,rc_verbs,verbs,tcp; stream,pingpong; 64,512,4K,64K,1M; "
    "300ms.\n"
    DAQIRI_CELLS_STATUS,
    daqiri_cells_children
};

/* What a newcomer wants to see, in about a minute. */
static void sweep_opts_init(daqiri_cells_opts_t *opts, const char *speaker)
{
    static const char *const transports[] = {"daqiri", "rc_verbs", "verbs",
                                             "tcp"};
    static const size_t sizes[] = {64, 512, 4096, 65536, 1048576};

    daqiri_cells_opts_init(opts, speaker);
    for (; opts->transport_count < sizeof(transports) / sizeof(transports[0]);
         ++opts->transport_count) {
        strcpy(opts->transports[opts->transport_count],
               transports[opts->transport_count]);
    }
    memcpy(opts->sizes, sizes, sizeof(sizes));
    opts->size_count    = sizeof(sizes) / sizeof(sizes[0]);
    opts->patterns[0]   = "stream";
    opts->patterns[1]   = "pingpong";
    opts->pattern_count = 2;
    opts->duration      = 0.3;
}

/* ---- the table ---- */

static const daqiri_column_t sweep_columns[] = {
    {"transport", "transport"}, {"pattern", "pattern"},
    {"size", "size", DAQIRI_UNIT_SIZE}, {"window", "window"},
    {"messages_per_s", "messages/s", DAQIRI_UNIT_RATE},
    {"gbps", "Gb/s", DAQIRI_UNIT_GBPS},
    {"least_gbps", "least", DAQIRI_UNIT_GBPS},
    {"round_trip.p50_us", "round trip p50 us", DAQIRI_UNIT_USEC},
    {"round_trip.p90_us", "p90", DAQIRI_UNIT_USEC},
    {"round_trip.p99_us", "p99", DAQIRI_UNIT_USEC},
    {"round_trip.p999_us", "p99.9", DAQIRI_UNIT_USEC},
    {"round_trip.max_us", "max", DAQIRI_UNIT_USEC},
    {"cpu_tx_percent", "CPU tx %", DAQIRI_UNIT_PERCENT},
    {"cpu_rx_percent", "rx %", DAQIRI_UNIT_PERCENT},
    {"verdict", "verdict"}, {"why", "why"}
};

static const daqiri_column_t sweep_csv_columns[] = {
    {"transport"}, {"device"}, {"pattern"}, {"size"}, {"window"}, {"runs_ok"},
    {"messages_per_s"}, {"gbps"}, {"least_gbps"}, {"most_gbps"}, {"drops"},
    {"round_trip.min_us"}, {"round_trip.p50_us"}, {"round_trip.p90_us"},
    {"round_trip.p99_us"}, {"round_trip.p999_us"}, {"round_trip.max_us"},
    {"round_trip.least_p50_us"}, {"round_trip.most_p50_us"}, {"cpu_tx_percent"},
    {"cpu_rx_percent"}, {"verdict"}, {"why"}, {"host"}, {"date"}, {"duration_s"},
    {"repeats"}
};

static const daqiri_column_t sweep_sums[] = {
    {"missing", "rows with runs missing"},
    {"collapse", "rows with a run that collapsed"},
    {"noisy", "rows that had no CPU, or far ones, for too long"},
    {"drops", "rows that lost messages"},
    {"rate", "rows slower than longer messages"},
    {"again", "runs made again: no CPU, or far ones (--stalled)"}
};

const daqiri_section_t daqiri_sweep_table[2] = {
    {"rows", NULL, DAQIRI_COLUMNS(sweep_columns)},
    {"verdict", "", DAQIRI_COLUMNS(sweep_sums)}
};

const daqiri_section_t daqiri_sweep_csv = {
    "rows", NULL, DAQIRI_COLUMNS(sweep_csv_columns)
};

int daqiri_sweep(int argc, char **argv)
{
    static daqiri_cells_opts_t opts;

    sweep_opts_init(&opts, argv[0]);
    daqiri_args_parse(&sweep_argp, argc, argv, &opts);
    return daqiri_cells_main(&opts, "sweep", daqiri_sweep_table, 2, &daqiri_sweep_csv);
}

/* ---- daqiri tcp ---- */

enum {
    TCP_PATTERN = DAQIRI_ARGS_OWN,
    TCP_SIZE
};

/* Bytes on their way: enough for any network, and not much of the memory of a server. */
#define TCP_WINDOW_BYTES (64u << 20)
#define TCP_WINDOW_LEAST 2
#define TCP_WINDOW_MOST  4096

static const struct argp_option tcp_options[] = {
    {"addr", DAQIRI_CELLS_OPT_ADDR, "HOST[:PORT]", 0,
     "Where daqiri serve is (port 9000)"},
    {"pattern", TCP_PATTERN, "NAME", 0,
     "stream, pingpong or duplex (stream)"},
    {"size", TCP_SIZE, "SIZE", 0, "Of a message, 8 or more (1M; pingpong: 64)"},
    {"duration", DAQIRI_CELLS_OPT_DURATION, "TIME", 0, "How long to send (10s)"},
    {"timeout", DAQIRI_CELLS_OPT_TIMEOUT, "TIME", 0,
     "To connect, and without any answer (5s)"},
    {"interval", DAQIRI_CELLS_OPT_INTERVAL, "TIME", 0,
     "Print a line for each such time"},
    {"verbose", DAQIRI_CELLS_OPT_VERBOSE, NULL, 0,
     "Print what explains the figures, too"},
    {NULL}
};

static void tcp_settle(struct argp_state *state, daqiri_cells_opts_t *opts)
{
    if (opts->connect_to == NULL) {
        argp_error(state, "--addr is missing: where daqiri serve is");
    }
    if (opts->sizes[0] == 0) {
        opts->sizes[0] = (strcmp(opts->patterns[0], "pingpong") == 0) ? 64 : 1 << 20;
    }
    opts->windows[0] = TCP_WINDOW_BYTES / opts->sizes[0];
    opts->windows[0] = (opts->windows[0] < TCP_WINDOW_LEAST) ? TCP_WINDOW_LEAST :
                       (opts->windows[0] > TCP_WINDOW_MOST) ? TCP_WINDOW_MOST :
                       opts->windows[0];
}

static error_t tcp_parse(int key, char *arg, struct argp_state *state)
{
    daqiri_cells_opts_t *opts = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &opts->format;
        return 0;
    case TCP_PATTERN:
        opts->patterns[0] = sweep_patterns[daqiri_args_word(state, "pattern", arg,
                                                            sweep_patterns,
                                                            SWEEP_NUM_PATTERNS)];
        return 0;
    case TCP_SIZE:
        opts->sizes[0] = daqiri_args_size(state, "size", arg, DAQIRI_CELLS_SIZE_MIN,
                                          DAQIRI_CELLS_SIZE_MAX);
        return 0;
    case ARGP_KEY_END:
        tcp_settle(state, opts);
        return 0;
    default:
        return daqiri_cells_parse(key, arg, state);
    }
}

static const struct argp_child tcp_children[] = {
    {&daqiri_args_table}, {NULL}
};

static const struct argp tcp_argp = {
    tcp_options, tcp_parse, NULL,
    "Sends messages over TCP to daqiri serve, for comparison with RDMA.\v"
    "Exit status: 0; 1 it failed, with stage and class; 2 usage error.",
    tcp_children
};

int daqiri_tcp(int argc, char **argv)
{
    static daqiri_cells_opts_t opts;

    daqiri_cells_opts_init(&opts, argv[0]);
    opts.is_single       = 1;
    opts.repeats         = 1;
    opts.duration        = 10;
    strcpy(opts.transports[0], "tcp");
    opts.transport_count = 1;
    opts.patterns[0]     = "stream";
    opts.pattern_count   = 1;
    opts.size_count      = 1;
    daqiri_args_parse(&tcp_argp, argc, argv, &opts);
    return daqiri_cells_main(&opts, "tcp", daqiri_sweep_table, 1, &daqiri_sweep_csv);
}
