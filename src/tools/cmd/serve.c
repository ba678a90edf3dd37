/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * `daqiri serve`: the server of daqiri tcp, pingpong, sweep and drop-curve. Each
 * client has a process of its own, so that one that stalls, or sends nonsense, is
 * nobody else's problem.
 */

#include "tools/cmd/serve.h"

#include "tools/base/args.h"
#include "tools/base/clock.h"
#include "tools/base/parse.h"
#include "tools/base/stop.h"
#include "tools/cmd/cmd.h"
#include "tools/peer/clients.h"
#include "tools/peer/net.h"
#include "tools/rdma/devices.h"
#include "tools/rdma/soft.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Unless the user says otherwise. */
#define SERVE_CLIENTS     64
#define SERVE_PER_ADDRESS 16
#define SERVE_MEMORY      ((uint64_t)2 << 30)
#define SERVE_DURATION    3600.0

#define SERVE_CLIENTS_MAX 1024

/* A client may stay longer than a test may last: so many times the patience. */
#define SERVE_SPARE_FACTOR 3

#define SERVE_LOOK_NS 200000000ull

enum {
    SERVE_LISTEN = DAQIRI_ARGS_OWN,
    SERVE_COUNT,
    SERVE_TIMEOUT,
    SERVE_DEVICE,
    SERVE_PORT,
    SERVE_GID,
    SERVE_CLASS,
    SERVE_CLIENTS_AT_ONCE,
    SERVE_OF_ADDRESS,
    SERVE_MEMORY_OF_ALL,
    SERVE_TIME
};

static const struct argp_option serve_options[] = {
    {"listen", SERVE_LISTEN, "[HOST:]PORT", 0,
     "Where to listen; port 0 is any (9000, on all addresses)"},
    {"count", SERVE_COUNT, "N", 0, "End after so many clients (never)"},
    {"timeout", SERVE_TIMEOUT, "TIME", 0,
     "Drop a client that sends nothing for so long (5s)"},
    {"device", SERVE_DEVICE, "NAME", 0,
     "auto, soft, an RDMA device, or none: TCP only (auto)"},
    {"port", SERVE_PORT, "N", 0, "Its port, for raw verbs (the first active one)"},
    {"gid-index", SERVE_GID, "N", 0, "GID, for raw verbs (as daqiri chooses it)"},
    {"traffic-class", SERVE_CLASS, "N", 0,
     "Of what goes by raw verbs, 0 to 255 (0)"},
    {"max-clients", SERVE_CLIENTS_AT_ONCE, "N", 0,
     "Clients at once; more are refused (64)"},
    {"max-per-address", SERVE_OF_ADDRESS, "N", 0,
     "Clients at once from one address (16)"},
    {"max-memory", SERVE_MEMORY_OF_ALL, "SIZE", 0,
     "Memory for the messages of all clients (2G)"},
    {"max-duration", SERVE_TIME, "TIME", 0,
     "Longest test, and longest stay of a client (1h)"},
    {NULL}
};

static error_t serve_parse_bound(int key, char *arg, struct argp_state *state)
{
    daqiri_serve_opts_t *opts = state->input;

    switch (key) {
    case SERVE_CLIENTS_AT_ONCE:
        opts->max_clients = daqiri_args_count(state, "max-clients", arg, 1,
                                              SERVE_CLIENTS_MAX);
        return 0;
    case SERVE_OF_ADDRESS:
        opts->max_per_address = daqiri_args_count(state, "max-per-address",
                                                  arg, 1, SERVE_CLIENTS_MAX);
        return 0;
    case SERVE_MEMORY_OF_ALL:
        opts->max_memory = daqiri_args_size(state, "max-memory", arg, 1,
                                            (size_t)1 << 50);
        return 0;
    case SERVE_TIME:
        opts->max_duration = daqiri_args_duration(state, "max-duration", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t serve_parse(int key, char *arg, struct argp_state *state)
{
    daqiri_serve_opts_t *opts = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &opts->format;
        return 0;
    case SERVE_LISTEN:
        opts->listen_on = daqiri_net_args_address(state, "listen", arg);
        return 0;
    case SERVE_COUNT:
        opts->count = daqiri_args_count(state, "count", arg, 1, 1u << 30);
        return 0;
    case SERVE_TIMEOUT:
        opts->timeout = daqiri_args_duration(state, "timeout", arg);
        return 0;
    case SERVE_DEVICE:
        opts->device = daqiri_args_name(state, "device", arg);
        return 0;
    case SERVE_PORT:
        opts->verbs.port = (unsigned)daqiri_args_count(state, "port", arg, 1, 255);
        return 0;
    case SERVE_GID:
        opts->verbs.gid_index = (int)daqiri_args_count(state, "gid-index", arg, 0,
                                                 255);
        return 0;
    case SERVE_CLASS:
        opts->verbs.traffic_class = (unsigned)daqiri_args_count(state,
                                              "traffic-class", arg, 0, 255);
        return 0;
    case ARGP_KEY_END:
        if ((strcmp(opts->device, "none") == 0) &&
            ((opts->verbs.port != 0) || (opts->verbs.gid_index >= 0) ||
             (opts->verbs.traffic_class > 0))) {
            argp_error(state, "--port, --gid-index and --traffic-class are of a "
                       "device, and --device none has none");
        }
        return 0;
    default:
        return serve_parse_bound(key, arg, state);
    }
}

static const struct argp_child serve_children[] = {
    {&daqiri_args_output}, {NULL}
};

static const struct argp serve_argp = {
    serve_options, serve_parse, NULL,
    "Serves daqiri tcp, pingpong, sweep and drop-curve until it is interrupted. "
    "Prints one line for each test; with --json, one object in a line.\v"
    "Exit status: 0; 1 it cannot listen, or a client failed; 2 usage error.",
    serve_children
};

/* ---- one client, in a child ---- */

static const char *const serve_csv[] = {
    "remote_addr", "test", "datapath", "pattern", "size", "messages", "bytes",
    "elapsed_s", "gbps", "cpu_percent", "failure_class"
};

#define SERVE_CSV_COUNT (sizeof(serve_csv) / sizeof(serve_csv[0]))

static const char *serve_over(const json_t *report)
{
    const char *datapath = daqiri_report_find_text(report, "datapath");

    if (strcmp(daqiri_report_find_text(report, "test"), "flow") == 0) {
        return daqiri_report_find_text(report, "transport");
    }
    return (datapath == NULL) ? "nothing" :
           (strcmp(datapath, "rdma") == 0) ? "RDMA" : "TCP";
}

/* One write for a line, so that those of several clients do not mix. */
static void serve_print(const daqiri_serve_opts_t *opts, const json_t *report)
{
    const char *error = daqiri_report_find_text(report, "error");
    char *text        = NULL;
    size_t length     = 0;
    FILE *stream      = open_memstream(&text, &length);
    const json_t *value;
    size_t i;

    if (stream == NULL) {
        return;
    }
    if (opts->format == DAQIRI_FORMAT_JSON) {
        json_dumpf(report, stream, JSON_COMPACT | JSON_REAL_PRECISION(12));
    } else if (opts->format == DAQIRI_FORMAT_CSV) {
        for (i = 0; i < SERVE_CSV_COUNT; ++i) {
            value = daqiri_report_find(report, serve_csv[i]);
            fprintf(stream, "%s", (i > 0) ? "," : "");
            if (json_is_string(value)) {
                fputs(json_string_value(value), stream);
            } else if (value != NULL) {
                fprintf(stream, "%.10g", json_number_value(value));
            }
        }
    } else if (error != NULL) {
        fprintf(stream, "%s: failed in stage %s (%s): %s",
                daqiri_report_find_text(report, "remote_addr"),
                daqiri_report_find_text(report, "stage"),
                daqiri_report_find_text(report, "failure_class"), error);
    } else {
        fprintf(stream, "%s: %s of %lld bytes, %.3f s, %.3f Gb/s over %s, "
                "%.0f %% of a processor",
                daqiri_report_find_text(report, "remote_addr"),
                daqiri_report_find_text(report, "pattern"),
                json_integer_value(json_object_get(report, "size")),
                json_real_value(json_object_get(report, "elapsed_s")),
                json_real_value(json_object_get(report, "gbps")),
                serve_over(report),
                json_real_value(json_object_get(report, "cpu_percent")));
    }
    fputc('\n', stream);
    fclose(stream);
    if (write(STDOUT_FILENO, text, length) != (ssize_t)length) {
        fprintf(stderr, "%s: the report cannot be written\n", opts->speaker);
    }
    free(text);
}

int daqiri_serve_say(const daqiri_serve_opts_t *opts, const char *test,
                     json_t *report)
{
    int is_ok;

    daqiri_report_text(report, "test", test);
    daqiri_report_text(report, "local_addr", opts->local_addr);
    daqiri_report_text(report, "remote_addr", opts->remote_addr);
    serve_print(opts, report);
    is_ok = json_is_true(json_object_get(report, "ok"));
    json_decref(report);
    return is_ok;
}

/* Returns an exit status. */
static int serve_one(const daqiri_serve_opts_t *opts, int fd)
{
    daqiri_failure_t failure           = {.stage = "control"};
    char version[DAQIRI_PEER_WORD_MAX] = "";
    daqiri_peer_service_t service;

    if (daqiri_net_hello_any(fd, &service, version, daqiri_now_ns() +
                             (uint64_t)(opts->timeout * 1e9), &failure) != 0) {
        daqiri_net_abort(fd, &failure);
        daqiri_serve_refused(opts, version, &failure);
        return DAQIRI_EXIT_FAILED;
    }
    return daqiri_serve_flows(opts, fd, version);
}

static void serve_client(const daqiri_serve_opts_t *opts, int fd,
                         const daqiri_quota_t *quota, size_t place,
                         uint64_t end_ns)
{
    daqiri_serve_opts_t own = *opts;

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    own.quota       = *quota;
    own.quota.place = place;
    own.end_ns      = end_ns;
    daqiri_net_name(fd, 0, own.local_addr);
    daqiri_net_name(fd, 1, own.remote_addr);
    _exit(serve_one(&own, fd));
}

/* ---- the server ---- */

/* Whatever becomes of the client, the server goes on. */
static void serve_start(daqiri_clients_t *clients,
                        const daqiri_serve_opts_t *opts, int listener, int fd)
{
    const double stay        = opts->max_duration +
                               SERVE_SPARE_FACTOR * opts->timeout;
    const uint64_t end_ns    = daqiri_now_ns() + (uint64_t)(stay * 1e9);
    daqiri_failure_t failure = {0};
    pid_t pid;
    int place;

    place = daqiri_clients_find(clients, fd, &failure);
    if (place < 0) {
        daqiri_clients_refuse(clients, fd, &failure);
        return;
    }
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        close(listener);
        daqiri_clients_leave(clients);
        serve_client(opts, fd, &clients->quota, (size_t)place, end_ns);
    }
    if (pid < 0) {
        daqiri_fail(&failure, DAQIRI_CLASS_RESOURCE_EXHAUSTED, "there is no "
                    "process for another client: %s", strerror(errno));
        daqiri_clients_refuse(clients, fd, &failure);
        return;
    }
    daqiri_clients_note(clients, place, fd, pid, end_ns);
    close(fd);
}

/* Waits for a client, for a while. */
static void serve_take(daqiri_clients_t *clients,
                       const daqiri_serve_opts_t *opts, int listener)
{
    daqiri_failure_t failure = {0};
    int fd;

    fd = daqiri_net_accept(listener, daqiri_now_ns() + SERVE_LOOK_NS, &failure);
    if (fd >= 0) {
        serve_start(clients, opts, listener, fd);
    } else if (failure.class_id == DAQIRI_CLASS_LOCAL) {
        daqiri_clients_say(clients, failure.text);
        poll(NULL, 0, 50); /* out of descriptors: not at once again */
    }
}

static int serve_all(daqiri_clients_t *clients, const daqiri_serve_opts_t *opts,
                     int listener)
{
    int is_stopped = 0;

    while (!daqiri_stop_asked() &&
           ((opts->count == 0) || (clients->taken < opts->count))) {
        daqiri_clients_look(clients);
        serve_take(clients, opts, listener);
    }
    close(listener);
    while (clients->running > 0) {
        if (daqiri_stop_asked() && !is_stopped) {
            daqiri_clients_stop(clients);
            is_stopped = 1;
        }
        poll(NULL, 0, 20);
        daqiri_clients_look(clients);
    }
    return (clients->failed == 0) ? DAQIRI_EXIT_OK :
           ((opts->count == 1) && (clients->last == DAQIRI_EXIT_APART)) ?
           DAQIRI_EXIT_APART : DAQIRI_EXIT_FAILED;
}

/* A name that is none is better said now than to each client. */
static int serve_look_up(const daqiri_serve_opts_t *opts)
{
    char names[256];
    int error = 0;

    if (strcmp(opts->device, DAQIRI_SOFT_DEVICE) != 0) {
        error = daqiri_devices_look_up(opts->device, names, sizeof(names));
    }
    if (error == ENODEV) {
        fprintf(stderr, "%s: there is no device '%s'; there are: %s\n",
                opts->speaker, opts->device, names);
    } else if (error != 0) {
        fprintf(stderr, "%s: RDMA devices cannot be listed: %s\n",
                opts->speaker, strerror(error));
    }
    return (error == 0) ? DAQIRI_EXIT_OK : DAQIRI_EXIT_FAILED;
}

/* Which device pingpong uses, before anybody comes. Without any there is still
 * TCP, unless one was asked for. Returns an exit status. */
static int serve_settle(daqiri_serve_opts_t *opts, char **argv)
{
    int is_auto = (strcmp(opts->device, "auto") == 0);
    int status;

    if (strcmp(opts->device, "none") == 0) {
        opts->device = NULL;
        return DAQIRI_EXIT_OK;
    }
    status = daqiri_soft_settle(opts->device, argv, &opts->device);
    if ((status != 0) && is_auto) {
        fprintf(stderr, "%s: so RDMA is refused, and TCP is answered\n", opts->speaker);
        opts->device = NULL;
        return DAQIRI_EXIT_OK;
    }
    return (status == 0) ? serve_look_up(opts) : status;
}

/* Where, one line for each address. */
static void serve_greet(const daqiri_serve_opts_t *opts, int listener)
{
    char names[DAQIRI_NET_NAMES][DAQIRI_NET_NAME_MAX];
    int i, count;

    if (opts->device != NULL) {
        fprintf(stderr, "%s: RDMA goes over %s%s\n", opts->speaker,
                opts->device, daqiri_is_soft_device(opts->device) ?
                ", which connects " DAQIRI_SOFT_REACH : "");
    }
    count = daqiri_net_listens_on(listener, names);
    for (i = 0; i < count; ++i) {
        fprintf(stderr, "%s: waiting for clients on %s\n", opts->speaker,
                names[i]);
    }
}

void daqiri_serve_init(daqiri_serve_opts_t *opts, const char *speaker)
{
    *opts = (daqiri_serve_opts_t){
        .speaker         = speaker,
        .listen_on       = ":" DAQIRI_NET_PORT,
        .timeout         = 5,
        .device          = "auto",
        .verbs           = DAQIRI_FLOW_VERBS_INIT,
        .max_clients     = SERVE_CLIENTS,
        .max_per_address = SERVE_PER_ADDRESS,
        .max_memory      = SERVE_MEMORY,
        .max_duration    = SERVE_DURATION
    };
}

int daqiri_serve_run(daqiri_serve_opts_t *opts, char **argv)
{
    daqiri_failure_t failure = {0};
    daqiri_clients_t clients;
    int listener, status;
    size_t i;

    status = serve_settle(opts, argv);
    if (status != DAQIRI_EXIT_OK) {
        return status;
    }
    clients = (daqiri_clients_t){
        .speaker         = opts->speaker,
        .count           = opts->max_clients,
        .max_per_address = opts->max_per_address,
        .quota           = {.max_memory   = opts->max_memory,
                            .max_duration = opts->max_duration}
    };
    if (daqiri_clients_open(&clients) != 0) {
        fprintf(stderr, "%s: no memory\n", opts->speaker);
        return DAQIRI_EXIT_FAILED;
    }
    daqiri_stop_catch();
    listener = daqiri_net_listen(opts->listen_on, &failure);
    if (listener < 0) {
        fprintf(stderr, "%s: %s\n", opts->speaker, failure.text);
        daqiri_clients_close(&clients);
        return DAQIRI_EXIT_FAILED;
    }
    serve_greet(opts, listener);
    for (i = 0; (opts->format == DAQIRI_FORMAT_CSV) && (i < SERVE_CSV_COUNT);
         ++i) {
        printf("%s%s", serve_csv[i], (i + 1 < SERVE_CSV_COUNT) ? "," : "\n");
    }
    fflush(stdout);
    status = serve_all(&clients, opts, listener);
    daqiri_clients_close(&clients);
    return status;
}

int daqiri_serve(int argc, char **argv)
{
    daqiri_serve_opts_t opts;

    daqiri_serve_init(&opts, argv[0]);
    daqiri_args_parse(&serve_argp, argc, argv, &opts);
    return daqiri_serve_run(&opts, argv);
}
