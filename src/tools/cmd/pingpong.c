/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * `daqiri pingpong`: a sweep of one run (cells.h) over raw verbs, whose stages are
 * watched. What it has beside a sweep is how the two sides meet: through daqiri serve, as
 * a server for one client, or by hand.
 */

#include "tools/base/args.h"
#include "tools/cells/cells.h"
#include "tools/cmd/cmd.h"
#include "tools/cmd/serve.h"
#include "tools/cmd/sweep.h"
#include "tools/peer/net.h"
#include "tools/rdma/soft.h"

#include <string.h>

#define PINGPONG_ITERS 10000

enum {
    PINGPONG_LISTEN = DAQIRI_ARGS_OWN,
    PINGPONG_HAND,
    PINGPONG_PORT,
    PINGPONG_GID,
    PINGPONG_SIZE,
    PINGPONG_ITERATIONS,
    PINGPONG_MTU,
    PINGPONG_CLASS,
    PINGPONG_UC,
    PINGPONG_SETUP
};

typedef struct pingpong {
    daqiri_cells_opts_t cells;
    const char          *listen_on; /* NULL: this is not the server */
} pingpong_t;

static const struct argp_option pingpong_options[] = {
    {"listen", PINGPONG_LISTEN, "[HOST:]PORT", 0,
     "Be the server; port 0 is any (9000)", 1},
    {"addr", DAQIRI_CELLS_OPT_ADDR, "HOST[:PORT]", 0, "Be the client of that server",
     1},
    {"by-hand", PINGPONG_HAND, "ROLE", 0,
     "server or client: enter the values, without TCP", 1},
    {"size", PINGPONG_SIZE, "SIZE", 0, "Of a message; the client's (64)", 2},
    {"iters", PINGPONG_ITERATIONS, "N", 0,
     "Round trips; the client's (10000 or --duration)", 2},
    {"duration", DAQIRI_CELLS_OPT_DURATION, "TIME", 0,
     "How long, at most; the client's", 2},
    {"uc", PINGPONG_UC, NULL, 0, "UC instead of RC; the client's", 2},
    {"device", DAQIRI_CELLS_OPT_DEVICE, "NAME", 0,
     "auto, soft or an RDMA device (auto)", 3},
    {"port", PINGPONG_PORT, "N", 0, "Its port (the first active one)", 3},
    {"gid-index", PINGPONG_GID, "N", 0, "GID (as daqiri chooses it)", 3},
    {"mtu", PINGPONG_MTU, "SIZE", 0, "256 to 4096 (the port's)", 3},
    {"traffic-class", PINGPONG_CLASS, "N", 0,
     "Of what this side sends, 0 to 255 (0)", 3},
    {"setup-timeout", PINGPONG_SETUP, "TIME", 0,
     "For each stage before the data (5s)", 4},
    {"timeout", DAQIRI_CELLS_OPT_TIMEOUT, "TIME", 0,
     "Without any completion (5s)", 4},
    {"interval", DAQIRI_CELLS_OPT_INTERVAL, "TIME", 0,
     "Print a line for each such time", 4},
    {"verbose", DAQIRI_CELLS_OPT_VERBOSE, NULL, 0,
     "Print what explains the figures, too", 4},
    {NULL}
};

static error_t pingpong_parse_verbs(int key, char *arg, struct argp_state *state)
{
    daqiri_cells_opts_t *opts  = state->input;
    daqiri_flow_verbs_t *verbs = &opts->verbs;

    switch (key) {
    case PINGPONG_PORT:
        verbs->port = (unsigned)daqiri_args_count(state, "port", arg, 1, 255);
        return 0;
    case PINGPONG_GID:
        verbs->gid_index = (int)daqiri_args_count(state, "gid-index", arg, 0, 255);
        return 0;
    case PINGPONG_MTU:
        verbs->mtu = (unsigned)daqiri_args_size(state, "mtu", arg, 256, 4096);
        if ((verbs->mtu & (verbs->mtu - 1)) != 0) {
            argp_error(state, "--mtu %s: it is a power of two", arg);
        }
        return 0;
    case PINGPONG_CLASS:
        verbs->traffic_class = (unsigned)daqiri_args_count(state, "traffic-class", arg,
                                                           0, 255);
        return 0;
    case PINGPONG_SETUP:
        opts->setup = daqiri_args_duration(state, "setup-timeout", arg);
        return 0;
    default:
        return daqiri_cells_parse(key, arg, state);
    }
}

/* What only goes together, or only alone. */
static void pingpong_judge(struct argp_state *state, const pingpong_t *pingpong)
{
    const daqiri_cells_opts_t *opts = &pingpong->cells;
    int ways = (pingpong->listen_on != NULL) + (opts->connect_to != NULL) +
               (opts->by_hand != NULL);

    if (ways != 1) {
        argp_error(state, "one of --listen, --addr and --by-hand says how the "
                   "two sides meet");
    }
    if ((pingpong->listen_on != NULL) &&
        ((opts->sizes[0] > 0) || (opts->iters > 0) || (opts->duration > 0) ||
         (strcmp(opts->transports[0], "verbs_uc") == 0))) {
        argp_error(state, "--size, --iters, --duration and --uc are the client's: "
                   "this is the server, and is told them");
    }
    if ((pingpong->listen_on != NULL) &&
        ((opts->interval > 0) || opts->is_verbose || daqiri_report_has_only())) {
        argp_error(state, "--interval, --verbose and --columns are the client's: "
                   "the server prints a line for its client");
    }
    if ((opts->by_hand != NULL) && (opts->duration > 0)) {
        argp_error(state, "--duration cannot be used by hand: nothing would "
                   "tell the server that the time is over; use --iters");
    }
}

static void pingpong_defaults(daqiri_cells_opts_t *opts)
{
    opts->sizes[0] = (opts->sizes[0] > 0) ? opts->sizes[0] : 64;
    if ((opts->iters == 0) && (opts->duration <= 0)) {
        opts->iters = PINGPONG_ITERS;
    }
    opts->duration = (opts->duration > 0) ? opts->duration : DAQIRI_CELLS_ENDLESS;
}

static error_t pingpong_parse(int key, char *arg, struct argp_state *state)
{
    static const char *const roles[] = {"server", "client"};
    pingpong_t *pingpong             = state->input;
    daqiri_cells_opts_t *opts        = &pingpong->cells;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &opts->format;
        return 0;
    case PINGPONG_LISTEN:
        pingpong->listen_on = daqiri_net_args_address(state, "listen", arg);
        return 0;
    case PINGPONG_HAND:
        daqiri_args_word(state, "by-hand", arg, roles, 2);
        opts->by_hand = arg;
        return 0;
    case PINGPONG_SIZE:
        opts->sizes[0] = daqiri_args_size(state, "size", arg, 1, DAQIRI_PEER_SIZE_MAX);
        return 0;
    case PINGPONG_ITERATIONS:
        opts->iters = daqiri_args_count(state, "iters", arg, 1, DAQIRI_PEER_ITERS_MAX);
        return 0;
    case PINGPONG_UC:
        strcpy(opts->transports[0], "verbs_uc");
        return 0;
    case ARGP_KEY_END:
        pingpong_judge(state, pingpong);
        pingpong_defaults(opts);
        return 0;
    default:
        return pingpong_parse_verbs(key, arg, state);
    }
}

static const struct argp_child pingpong_children[] = {
    {&daqiri_args_table, 0, NULL, 5}, {NULL}
};

static const struct argp pingpong_argp = {
    pingpong_options, pingpong_parse, NULL,
    "Sends messages to and fro over one queue pair, on raw verbs.\v"
    "Exit status: 0; 1 failed; 2 usage error; 3 unreachable; 124 a verb hangs.",
    pingpong_children
};

/* ---- the command ---- */

static const daqiri_column_t pingpong_side_columns[] = {
    {"lid", "LID"}, {"qpn", "QPN"}, {"psn", "PSN"}, {"gid_index", "GID index"},
    {"gid", "GID"}, {"mtu", "MTU"}
};

static const daqiri_column_t pingpong_stage_columns[] = {
    {"name", "stage"}, {"ok", "ok"}, {"us", "us", DAQIRI_UNIT_USEC}
};

/* After a failure: the way to it, and what another attempt needs. */
static const daqiri_section_t pingpong_failure[] = {
    {"stages", "\nStages", DAQIRI_COLUMNS(pingpong_stage_columns)},
    {"local", "\nThis side, for another attempt",
     DAQIRI_COLUMNS(pingpong_side_columns)},
    {"remote", "\nThe other side", DAQIRI_COLUMNS(pingpong_side_columns)}
};

static void pingpong_init(pingpong_t *pingpong, const char *speaker)
{
    daqiri_cells_opts_t *opts = &pingpong->cells;

    daqiri_cells_opts_init(opts, speaker);
    opts->is_single       = 1;
    opts->repeats         = 1;
    opts->setup           = 5;
    opts->duration        = 0; /* until all options were read */
    strcpy(opts->transports[0], "verbs");
    opts->transport_count = 1;
    opts->patterns[0]     = "pingpong";
    opts->pattern_count   = 1;
    opts->size_count      = 1;
}

/* daqiri serve for one client, which is nobody's to be kept within bounds. */
static int pingpong_serve(const pingpong_t *pingpong, char **argv)
{
    const daqiri_cells_opts_t *opts = &pingpong->cells;
    daqiri_serve_opts_t serve;

    daqiri_serve_init(&serve, opts->speaker);
    serve.format       = opts->format;
    serve.listen_on    = pingpong->listen_on;
    serve.count        = 1;
    serve.device       = opts->device;
    serve.verbs        = opts->verbs;
    serve.timeout      = opts->patience;
    serve.setup        = opts->setup;
    serve.max_memory   = UINT64_MAX;
    serve.max_duration = DAQIRI_CELLS_ENDLESS;
    return daqiri_serve_run(&serve, argv);
}

int daqiri_pingpong(int argc, char **argv)
{
    static pingpong_t pingpong;
    daqiri_cells_opts_t *opts = &pingpong.cells;
    daqiri_section_t table[4];
    int status;

    pingpong_init(&pingpong, argv[0]);
    daqiri_args_parse(&pingpong_argp, argc, argv, &pingpong);
    if (pingpong.listen_on != NULL) {
        return pingpong_serve(&pingpong, argv);
    }
    table[0] = daqiri_sweep_table[0];
    memcpy(table + 1, pingpong_failure, sizeof(pingpong_failure));
    daqiri_args_check_columns(argv[0], opts->format, (opts->format == DAQIRI_FORMAT_CSV) ?
                              &daqiri_sweep_csv : table, 4);
    status = daqiri_soft_settle(opts->device, argv, &opts->device);
    if (status != 0) {
        return status;
    }
    opts->is_settled = 1;
    return daqiri_cells_main(opts, "pingpong", table, 4, &daqiri_sweep_csv);
}
