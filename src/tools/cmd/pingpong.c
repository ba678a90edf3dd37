/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * `daqiri pingpong`: RC SEND and RECV between two processes through raw verbs.
 * The process that talks to the device is a child under a watchdog; this one
 * reads the options and says what came of it.
 */

#include "tools/cmd/pingpong.h"

#include "tools/base/args.h"
#include "tools/base/progress.h"
#include "tools/base/stop.h"
#include "tools/cmd/cmd.h"
#include "tools/peer/net.h"
#include "tools/rdma/soft.h"

#include <stdio.h>
#include <string.h>

enum {
    PINGPONG_LISTEN = DAQIRI_ARGS_OWN,
    PINGPONG_ADDR,
    PINGPONG_HAND,
    PINGPONG_DEVICE,
    PINGPONG_PORT,
    PINGPONG_GID,
    PINGPONG_SIZE,
    PINGPONG_ITERS,
    PINGPONG_DURATION,
    PINGPONG_MTU,
    PINGPONG_CLASS,
    PINGPONG_UC,
    PINGPONG_SETUP,
    PINGPONG_TIMEOUT,
    PINGPONG_INTERVAL
};

static const struct argp_option pingpong_options[] = {
    {"listen", PINGPONG_LISTEN, "[HOST:]PORT", 0,
     "Be the server; port 0 is any (9000)", 1},
    {"addr", PINGPONG_ADDR, "HOST[:PORT]", 0, "Be the client of that server",
     1},
    {"by-hand", PINGPONG_HAND, "ROLE", 0,
     "server or client: enter the values, without TCP", 1},
    {"size", PINGPONG_SIZE, "SIZE", 0, "Of a message; the client's (64)", 2},
    {"iters", PINGPONG_ITERS, "N", 0,
     "Round trips; the client's (10000 or --duration)", 2},
    {"duration", PINGPONG_DURATION, "TIME", 0,
     "How long, at most; the client's", 2},
    {"uc", PINGPONG_UC, NULL, 0, "UC instead of RC; the client's", 2},
    {"device", PINGPONG_DEVICE, "NAME", 0,
     "auto, soft or an RDMA device (auto)", 3},
    {"port", PINGPONG_PORT, "N", 0, "Its port (the first active one)", 3},
    {"gid-index", PINGPONG_GID, "N", 0, "GID (as daqiri chooses it)", 3},
    {"mtu", PINGPONG_MTU, "SIZE", 0, "256 to 4096 (the port's)", 3},
    {"traffic-class", PINGPONG_CLASS, "N", 0,
     "Of what this side sends, 0 to 255 (0)", 3},
    {"setup-timeout", PINGPONG_SETUP, "TIME", 0,
     "For each stage before the data (5s)", 4},
    {"timeout", PINGPONG_TIMEOUT, "TIME", 0,
     "Without any completion (5s)", 4},
    {"interval", PINGPONG_INTERVAL, "TIME", 0, "Print a line for each such time", 4},
    {NULL}
};

static error_t pingpong_parse_path(int key, char *arg,
                                   struct argp_state *state)
{
    daqiri_pingpong_t *opts = state->input;

    switch (key) {
    case PINGPONG_DEVICE:
        opts->device = daqiri_args_name(state, "device", arg);
        return 0;
    case PINGPONG_PORT:
        opts->port = (unsigned)daqiri_args_count(state, "port", arg, 1, 255);
        return 0;
    case PINGPONG_GID:
        opts->gid_index = (int)daqiri_args_count(state, "gid-index", arg, 0,
                                                 255);
        return 0;
    case PINGPONG_MTU:
        opts->mtu = (unsigned)daqiri_args_size(state, "mtu", arg, 256, 4096);
        if ((opts->mtu & (opts->mtu - 1)) != 0) {
            argp_error(state, "--mtu %s: it is a power of two", arg);
        }
        return 0;
    case PINGPONG_INTERVAL:
        opts->interval = daqiri_args_interval(state, arg);
        return 0;
    case PINGPONG_CLASS:
        opts->traffic_class = (unsigned)daqiri_args_count(state,
                                              "traffic-class", arg, 0, 255);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* What only goes together, or only alone. */
static void pingpong_judge(struct argp_state *state,
                           const daqiri_pingpong_t *opts)
{
    int ways = (opts->listen_on != NULL) + (opts->connect_to != NULL) +
               (opts->by_hand != NULL);

    if (ways != 1) {
        argp_error(state, "one of --listen, --addr and --by-hand says how the "
                   "two sides meet");
    }
    if ((opts->listen_on != NULL) &&
        ((opts->size > 0) || (opts->iters > 0) || (opts->duration > 0) ||
         opts->is_uc)) {
        argp_error(state, "--size, --iters, --duration and --uc are the client's: "
                   "this is the server, and is told them");
    }
    if ((opts->by_hand != NULL) && (opts->duration > 0)) {
        argp_error(state, "--duration cannot be used by hand: nothing would "
                   "tell the server that the time is over; use --iters");
    }
}

static void pingpong_defaults(daqiri_pingpong_t *opts)
{
    opts->size = (opts->size > 0) ? opts->size : 64;
    if (opts->iters == 0) {
        opts->iters = (opts->duration > 0) ? DAQIRI_PEER_ITERS_MAX : 10000;
    }
}

static error_t pingpong_parse(int key, char *arg, struct argp_state *state)
{
    static const char *const roles[] = {"server", "client"};
    daqiri_pingpong_t *opts = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &opts->format;
        return 0;
    case PINGPONG_LISTEN:
        opts->listen_on = daqiri_net_args_address(state, "listen", arg);
        return 0;
    case PINGPONG_ADDR:
        opts->connect_to = daqiri_net_args_address(state, "addr", arg);
        return 0;
    case PINGPONG_HAND:
        daqiri_args_word(state, "by-hand", arg, roles, 2);
        opts->by_hand = arg;
        return 0;
    case PINGPONG_SIZE:
        opts->size = daqiri_args_size(state, "size", arg, 1,
                                      DAQIRI_PEER_SIZE_MAX);
        return 0;
    case PINGPONG_ITERS:
        opts->iters = daqiri_args_count(state, "iters", arg, 1,
                                        DAQIRI_PEER_ITERS_MAX);
        return 0;
    case PINGPONG_DURATION:
        opts->duration = daqiri_args_duration(state, "duration", arg);
        return 0;
    case PINGPONG_UC:
        opts->is_uc = 1;
        return 0;
    case PINGPONG_SETUP:
        opts->setup_timeout = daqiri_args_duration(state, "setup-timeout",
                                                   arg);
        return 0;
    case PINGPONG_TIMEOUT:
        opts->timeout = daqiri_args_duration(state, "timeout", arg);
        return 0;
    case ARGP_KEY_END:
        pingpong_judge(state, opts);
        pingpong_defaults(opts);
        return 0;
    default:
        return pingpong_parse_path(key, arg, state);
    }
}

static const struct argp_child pingpong_children[] = {
    {&daqiri_args_table, 0, NULL, 5}, {NULL}
};

static const struct argp pingpong_argp = {
    pingpong_options, pingpong_parse, NULL,
    "Sends messages to and fro over one queue pair, on raw verbs.\v"
    "Exit status: 0; 1 it failed, with stage and class; 2 usage error; 3 the "
    "other end is beyond the software device; 124 a verb did not come back.",
    pingpong_children
};

/* ---- the report ---- */

void daqiri_pingpong_report_terms(json_t *report,
                                  const daqiri_pingpong_t *opts)
{
    daqiri_report_text(report, "transport", opts->is_uc ? "UC" : "RC");
    daqiri_report_int(report, "size", (long long)opts->size);
    daqiri_report_set(report, "iterations",
                      (opts->iters < DAQIRI_PEER_ITERS_MAX) ?
                      json_integer((json_int_t)opts->iters) : json_null());
    daqiri_report_set(report, "duration_s", (opts->duration > 0) ?
                      json_real(opts->duration) : json_null());
}

json_t *daqiri_pingpong_report(const daqiri_pingpong_t *opts)
{
    static const char *const unknown[] = {
        "port", "local_addr", "remote_addr", "local", "remote", "round_trip",
        "intervals",
        "datapath"
    };
    json_t *report = daqiri_report_new("pingpong");
    int is_server  = (opts->listen_on != NULL) ||
                     (opts->peer_version != NULL) ||
                     ((opts->by_hand != NULL) &&
                      (strcmp(opts->by_hand, "server") == 0));
    daqiri_failure_t none = {0};
    size_t i;

    daqiri_report_text(report, "role", is_server ? "server" : "client");
    daqiri_report_text(report, "device", opts->device);
    daqiri_report_int(report, "traffic_class", opts->traffic_class);
    daqiri_report_text(report, "pattern", "pingpong");
    daqiri_pingpong_report_terms(report, opts);
    for (i = 0; i < sizeof(unknown) / sizeof(unknown[0]); ++i) {
        daqiri_report_set(report, unknown[i], json_null());
    }
    daqiri_report_text(report, "addr", opts->connect_to);
    daqiri_report_text(report, "peer_version", opts->peer_version);
    daqiri_report_bool(report, "ok", 0);
    daqiri_report_bool(report, "interrupted", 0);
    daqiri_failure_report(&none, report);
    daqiri_report_array(report, "stages");
    daqiri_report_int(report, "messages", 0);
    daqiri_report_int(report, "bytes", 0);
    daqiri_report_real(report, "elapsed_s", 0);
    daqiri_report_real(report, "gbps", 0);
    daqiri_report_real(report, "messages_per_s", 0);
    daqiri_report_real(report, "cpu_percent", 0);
    return report;
}

static const daqiri_column_t pingpong_columns[] = {
    {"role", "role"}, {"device", "device"}, {"transport", "transport"},
    {"datapath", "data went over"}, {"size", "message", DAQIRI_UNIT_SIZE},
    {"messages", "messages, both ways"},
    {"elapsed_s", "time", DAQIRI_UNIT_SEC},
    {"messages_per_s", "messages", DAQIRI_UNIT_RATE},
    {"gbps", "both ways", DAQIRI_UNIT_GBPS},
    {"round_trip.min_us", "round trip min", DAQIRI_UNIT_USEC},
    {"round_trip.p50_us", "round trip p50", DAQIRI_UNIT_USEC},
    {"round_trip.p99_us", "round trip p99", DAQIRI_UNIT_USEC},
    {"round_trip.p999_us", "round trip p99.9", DAQIRI_UNIT_USEC},
    {"round_trip.max_us", "round trip max", DAQIRI_UNIT_USEC},
    {"cpu_percent", "processor, of one", DAQIRI_UNIT_PERCENT},
    {"stage", "stage"}, {"failure_class", "failure"}
};

static const daqiri_column_t pingpong_side_columns[] = {
    {"lid", "LID"}, {"qpn", "QPN"}, {"psn", "PSN"}, {"gid_index", "GID index"},
    {"gid", "GID"}, {"mtu", "MTU"}
};

static const daqiri_column_t pingpong_stage_columns[] = {
    {"name", "stage"}, {"ok", "ok"}, {"us", "us", DAQIRI_UNIT_USEC}
};

static const daqiri_section_t pingpong_good[] = {
    {NULL, NULL, DAQIRI_COLUMNS(pingpong_columns)}
};

/* After a failure: the way to it, and what another attempt needs. */
static const daqiri_section_t pingpong_bad[] = {
    {NULL, NULL, DAQIRI_COLUMNS(pingpong_columns)},
    {"stages", "\nStages", DAQIRI_COLUMNS(pingpong_stage_columns)},
    {"local", "\nThis side, for another attempt",
     DAQIRI_COLUMNS(pingpong_side_columns)},
    {"remote", "\nThe other side", DAQIRI_COLUMNS(pingpong_side_columns)}
};

/* ---- the command ---- */

static json_t *pingpong_child(void *arg, daqiri_watch_child_t *child)
{
    return daqiri_pingpong_run(*(const daqiri_pingpong_t**)arg, child);
}

/* A report for a child that could not write one. */
static json_t *pingpong_wedged(const daqiri_pingpong_t *opts,
                               const daqiri_watch_t *watch)
{
    json_t *report           = daqiri_pingpong_report(opts);
    daqiri_failure_t failure = {.stage = watch->step};
    char text[256];

    daqiri_watch_text(watch, watch->timeout, text, sizeof(text));
    daqiri_fail(&failure, (watch->end == DAQIRI_WATCH_TIMEOUT) ?
                DAQIRI_CLASS_PROVIDER_TIMEOUT : DAQIRI_CLASS_PROVIDER_DIED,
                "%s", text);
    daqiri_failure_report(&failure, report);
    if (opts->peer_version != NULL) {
        /* Who is wedged may keep the connection open. */
        daqiri_net_abort(opts->fd, &failure);
    }
    return report;
}

json_t *daqiri_pingpong_watched(const daqiri_pingpong_t *opts,
                                int *is_wedged_p)
{
    daqiri_progress_t progress;
    daqiri_watch_t watch = {.timeout = opts->setup_timeout, .own = "datapath"};

    if (opts->peer_version == NULL) { /* else there are other clients, too */
        daqiri_progress_start(&progress);
        watch.progress = &progress;
    }
    daqiri_watch_run(&watch, pingpong_child, &opts);
    if (watch.progress != NULL) {
        daqiri_progress_end(watch.progress);
    }
    *is_wedged_p = (watch.end == DAQIRI_WATCH_TIMEOUT);
    return (watch.end == DAQIRI_WATCH_DONE) ? watch.result :
                                              pingpong_wedged(opts, &watch);
}

static int pingpong_is_apart(const json_t *report)
{
    const char *name = daqiri_report_find_text(report, "failure_class");

    return (name != NULL) &&
           (daqiri_class_of_name(name) == DAQIRI_CLASS_OTHER_FABRIC);
}

static int pingpong_show(const daqiri_pingpong_t *opts, json_t *report)
{
    int is_ok = json_is_true(json_object_get(report, "ok"));
    int has   = json_integer_value(json_object_get(report, "messages")) > 0;
    int error;

    if (!is_ok) {
        fprintf(stderr, "%s: failed in stage %s (%s): %s\n", opts->speaker,
                daqiri_report_find_text(report, "stage"),
                daqiri_report_find_text(report, "failure_class"),
                daqiri_report_find_text(report, "error"));
        daqiri_failure_trim(report, opts->format);
    }
    error = is_ok ? daqiri_report_print(report, opts->format, pingpong_good, 1,
                                        stdout) :
                    daqiri_report_print(report, opts->format, pingpong_bad, 4,
                                        stdout);
    if (error != 0) {
        fprintf(stderr, "%s: the report cannot be written: %s\n",
                opts->speaker, strerror(error));
    }
    if (is_ok && has && (error == 0)) {
        return DAQIRI_EXIT_OK;
    }
    return pingpong_is_apart(report) ? DAQIRI_EXIT_APART : DAQIRI_EXIT_FAILED;
}

int daqiri_pingpong(int argc, char **argv)
{
    daqiri_pingpong_t opts = {
        .speaker       = argv[0],
        .device        = "auto",
        .gid_index     = -1,
        .setup_timeout = 5,
        .timeout       = 5
    };
    json_t *report;
    int status, is_wedged;

    daqiri_args_parse(&pingpong_argp, argc, argv, &opts);
    daqiri_args_check_columns(argv[0], opts.format, pingpong_bad, 4);
    status = daqiri_soft_settle(opts.device, argv, &opts.device);
    if (status != 0) {
        return status;
    }
    daqiri_stop_catch();
    report = daqiri_pingpong_watched(&opts, &is_wedged);
    status = pingpong_show(&opts, report);
    json_decref(report);
    return is_wedged ? DAQIRI_EXIT_WATCHDOG : status;
}
