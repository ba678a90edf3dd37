/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * `daqiri tcp`: the client of a TCP test, for numbers that stand beside those
 * of RDMA. It never claims to have used any.
 */

#include "tools/cmd/tcp.h"

#include "tools/base/args.h"
#include "tools/base/clock.h"
#include "tools/base/stop.h"
#include "tools/cmd/cmd.h"
#include "tools/peer/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TCP_ADDR = DAQIRI_ARGS_OWN,
    TCP_PATTERN,
    TCP_SIZE,
    TCP_DURATION,
    TCP_TIMEOUT,
    TCP_INTERVAL
};

typedef struct tcp_opts {
    daqiri_format_t format;
    const char      *addr;
    int             pattern;
    size_t          size;
    double          duration;
    double          timeout;
    double          interval;
} tcp_opts_t;

static const struct argp_option tcp_options[] = {
    {"addr", TCP_ADDR, "HOST[:PORT]", 0, "Where daqiri serve is (port 9000)"},
    {"pattern", TCP_PATTERN, "NAME", 0,
     "stream, pingpong or duplex (stream)"},
    {"size", TCP_SIZE, "SIZE", 0, "Of a message (1M; pingpong: 64)"},
    {"duration", TCP_DURATION, "TIME", 0, "How long to send (10s)"},
    {"timeout", TCP_TIMEOUT, "TIME", 0,
     "To connect, and without any answer (5s)"},
    {"interval", TCP_INTERVAL, "TIME", 0, "Print a line for each such time"},
    {NULL}
};

static error_t tcp_parse(int key, char *arg, struct argp_state *state)
{
    tcp_opts_t *opts = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &opts->format;
        return 0;
    case TCP_ADDR:
        opts->addr = daqiri_net_args_address(state, "addr", arg);
        return 0;
    case TCP_PATTERN:
        opts->pattern = 1 + daqiri_args_word(state, "pattern", arg,
                                             daqiri_tcp_patterns, 3);
        return 0;
    case TCP_SIZE:
        opts->size = daqiri_args_size(state, "size", arg, 1,
                                      DAQIRI_PEER_SIZE_MAX);
        return 0;
    case TCP_DURATION:
        opts->duration = daqiri_args_duration(state, "duration", arg);
        return 0;
    case TCP_TIMEOUT:
        opts->timeout = daqiri_args_duration(state, "timeout", arg);
        return 0;
    case TCP_INTERVAL:
        opts->interval = daqiri_args_interval(state, arg);
        return 0;
    case ARGP_KEY_END:
        if (opts->addr == NULL) {
            argp_error(state, "--addr is missing: where daqiri serve is");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
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

static const daqiri_column_t tcp_columns[] = {
    {"remote_addr", "server"}, {"datapath", "data went over"},
    {"pattern", "pattern"}, {"size", "message", DAQIRI_UNIT_SIZE},
    {"messages", "messages, both ways"},
    {"elapsed_s", "time", DAQIRI_UNIT_SEC},
    {"messages_per_s", "messages", DAQIRI_UNIT_RATE},
    {"gbps", "both ways", DAQIRI_UNIT_GBPS},
    {"sent_bytes", "bytes sent"}, {"received_bytes", "bytes received"},
    {"peer_received_bytes", "bytes the server received"},
    {"cpu_percent", "processor, of one", DAQIRI_UNIT_PERCENT},
    {"round_trip.min_us", "round trip min", DAQIRI_UNIT_USEC},
    {"round_trip.p50_us", "round trip p50", DAQIRI_UNIT_USEC},
    {"round_trip.p99_us", "round trip p99", DAQIRI_UNIT_USEC},
    {"round_trip.p999_us", "round trip p99.9", DAQIRI_UNIT_USEC},
    {"round_trip.max_us", "round trip max", DAQIRI_UNIT_USEC},
    {"stage", "stage"}, {"failure_class", "failure"}
};

static const daqiri_section_t tcp_section = {
    NULL, NULL, DAQIRI_COLUMNS(tcp_columns)
};

static void tcp_run(daqiri_tcp_t *test, const tcp_opts_t *opts, char *local,
                    char *remote)
{
    test->is_client     = 1;
    test->pattern       = (uint32_t)opts->pattern;
    test->duration      = opts->duration;
    test->timeout       = opts->timeout;
    test->size          = (opts->size > 0) ? opts->size :
                          (opts->pattern == DAQIRI_PEER_ECHO) ? 64 : 1 << 20;
    test->failure.stage = "connect";
    daqiri_net_show(&test->progress);
    test->fd = daqiri_net_connect(opts->addr, daqiri_now_ns() +
                                  (uint64_t)(opts->timeout * 1e9),
                                  &test->failure);
    if (test->fd < 0) {
        daqiri_net_show(NULL);
        return;
    }
    daqiri_net_name(test->fd, 0, local);
    daqiri_net_name(test->fd, 1, remote);
    daqiri_tcp_run(test);
    close(test->fd);
}

static int tcp_show(const daqiri_tcp_t *test, json_t *report,
                    daqiri_format_t format, const char *speaker)
{
    int error;

    if (test->failure.class_id != DAQIRI_CLASS_NONE) {
        fprintf(stderr, "%s: failed in stage %s (%s): %s\n", speaker,
                test->failure.stage, daqiri_class_name(test->failure.class_id),
                test->failure.text);
        daqiri_failure_trim(report, format);
    }
    error = daqiri_report_print(report, format, &tcp_section, 1, stdout);
    if (test->failure.class_id != DAQIRI_CLASS_NONE) {
        return DAQIRI_EXIT_FAILED;
    }
    if (error != 0) {
        fprintf(stderr, "%s: the report cannot be written: %s\n", speaker,
                strerror(error));
    }
    return ((error != 0) || (test->sent == 0)) ? DAQIRI_EXIT_FAILED :
                                                 DAQIRI_EXIT_OK;
}

int daqiri_tcp(int argc, char **argv)
{
    tcp_opts_t opts = {
        .pattern  = DAQIRI_PEER_STREAM,
        .duration = 10,
        .timeout  = 5
    };
    char local[DAQIRI_NET_NAME_MAX] = "", remote[DAQIRI_NET_NAME_MAX] = "";
    daqiri_tcp_t *test;
    json_t *report;
    int status;

    daqiri_args_parse(&tcp_argp, argc, argv, &opts);
    daqiri_args_check_columns(argv[0], opts.format, &tcp_section, 1);
    test = calloc(1, sizeof(*test));
    if (test == NULL) {
        fprintf(stderr, "%s: no memory\n", argv[0]);
        return DAQIRI_EXIT_FAILED;
    }
    test->interval.every    = opts.interval;
    test->interval.is_shown = (opts.format == DAQIRI_FORMAT_TABLE);
    daqiri_stop_catch();
    tcp_run(test, &opts, local, remote);
    report = daqiri_tcp_report(test, "tcp");
    daqiri_report_text(report, "addr", opts.addr);
    daqiri_report_text(report, "local_addr", (local[0] != '\0') ? local : NULL);
    daqiri_report_text(report, "remote_addr", (remote[0] != '\0') ? remote :
                                                                    NULL);
    status = tcp_show(test, report, opts.format, argv[0]);
    json_decref(report);
    free(test);
    return status;
}
