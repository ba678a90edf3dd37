/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * `daqiri serve`: the server of TCP tests. Each client has a process of its
 * own, so that one that stalls, or sends nonsense, is nobody else's problem.
 */

#include "tcp.h"

#include "args.h"
#include "daqiri.h"
#include "net.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* At once; further ones wait. */
#define SERVE_CLIENTS_MAX 64

#define SERVE_LOOK_NS 200000000ull

enum {
    SERVE_LISTEN = DAQIRI_ARGS_OWN,
    SERVE_COUNT,
    SERVE_TIMEOUT
};

typedef struct serve_opts {
    daqiri_format_t format;
    const char      *speaker;
    const char      *listen_on;
    uint64_t        count;
    double          timeout;
} serve_opts_t;

static const struct argp_option serve_options[] = {
    {"listen", SERVE_LISTEN, "[HOST]:PORT", 0,
     "Where to listen; port 0 is any (:9000)"},
    {"count", SERVE_COUNT, "N", 0, "End after so many clients (never)"},
    {"timeout", SERVE_TIMEOUT, "TIME", 0,
     "Leave a client from which nothing comes (5s)"},
    {NULL}
};

static error_t serve_parse(int key, char *arg, struct argp_state *state)
{
    serve_opts_t *opts = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &opts->format;
        return 0;
    case SERVE_LISTEN:
        opts->listen_on = arg;
        return 0;
    case SERVE_COUNT:
        opts->count = daqiri_args_count(state, "count", arg, 1, 1u << 30);
        return 0;
    case SERVE_TIMEOUT:
        opts->timeout = daqiri_args_duration(state, "timeout", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child serve_children[] = {
    {&daqiri_args_output}, {NULL}
};

static const struct argp serve_argp = {
    serve_options, serve_parse, NULL,
    "Answers daqiri tcp, until it is interrupted. Prints a line, or with "
    "-json an object in a line, for each client.\v"
    "Exit status: 0, 1 when it cannot listen or a client failed, 2 for a "
    "mistake in the options.",
    serve_children
};

/* ---- one client, in a child ---- */

static const char *const serve_csv[] = {
    "remote_addr", "pattern", "size", "elapsed_s", "received_bytes",
    "sent_bytes", "gbit_per_s", "cpu_percent", "failure_class"
};

#define SERVE_CSV_COUNT (sizeof(serve_csv) / sizeof(serve_csv[0]))

/* One write for a line, so that those of several clients do not mix. */
static void serve_say(const serve_opts_t *opts, const json_t *report)
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
        fprintf(stream, "%s: %s of %lld bytes, %.3f s, %.3f Gb/s over TCP, "
                "%.0f %% of a processor",
                daqiri_report_find_text(report, "remote_addr"),
                daqiri_report_find_text(report, "pattern"),
                json_integer_value(json_object_get(report, "size")),
                json_real_value(json_object_get(report, "elapsed_s")),
                json_real_value(json_object_get(report, "gbit_per_s")),
                json_real_value(json_object_get(report, "cpu_percent")));
    }
    fputc('\n', stream);
    fclose(stream);
    if (write(STDOUT_FILENO, text, length) != (ssize_t)length) {
        fprintf(stderr, "%s: the report cannot be written\n", opts->speaker);
    }
    free(text);
}

static void serve_client(const serve_opts_t *opts, int fd)
{
    char local[DAQIRI_NET_NAME_MAX], remote[DAQIRI_NET_NAME_MAX];
    daqiri_tcp_t *test = calloc(1, sizeof(*test));
    json_t *report;
    int status;

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (test == NULL) {
        _exit(DAQIRI_EXIT_FAILED);
    }
    test->fd      = fd;
    test->timeout = opts->timeout;
    daqiri_net_name(fd, 0, local);
    daqiri_net_name(fd, 1, remote);
    status = daqiri_tcp_run(test);
    report = daqiri_tcp_report(test, "serve");
    daqiri_report_set(report, "addr", json_null());
    daqiri_report_text(report, "local_addr", local);
    daqiri_report_text(report, "remote_addr", remote);
    serve_say(opts, report);
    json_decref(report);
    free(test);
    _exit((status == 0) ? DAQIRI_EXIT_OK : DAQIRI_EXIT_FAILED);
}

/* ---- the server ---- */

typedef struct serve {
    int      listener;
    pid_t    pids[SERVE_CLIENTS_MAX]; /* of children; 0: a free place */
    unsigned running;
    uint64_t taken;
    uint64_t failed;
} serve_t;

/* Children that have ended; with `options` 0, waits for one. */
static void serve_reap(serve_t *serve, int options)
{
    int status;
    pid_t pid;
    size_t i;

    while ((serve->running > 0) &&
           ((pid = waitpid(-1, &status, options)) > 0)) {
        for (i = 0; i < SERVE_CLIENTS_MAX; ++i) {
            serve->pids[i] = (serve->pids[i] == pid) ? 0 : serve->pids[i];
        }
        --serve->running;
        serve->failed += !WIFEXITED(status) || (WEXITSTATUS(status) != 0);
    }
}

static void serve_note(serve_t *serve, pid_t pid)
{
    size_t i;

    for (i = 0; (i < SERVE_CLIENTS_MAX - 1) && (serve->pids[i] != 0); ++i) {
    }
    serve->pids[i] = pid;
    ++serve->taken;
    ++serve->running;
}

/* A terminal has told the children, too; kill(1) has not. */
static void serve_stop(const serve_t *serve)
{
    size_t i;

    for (i = 0; i < SERVE_CLIENTS_MAX; ++i) {
        if (serve->pids[i] != 0) {
            kill(serve->pids[i], SIGTERM);
        }
    }
}

static int serve_take(serve_t *serve, const serve_opts_t *opts,
                      daqiri_failure_t *failure)
{
    daqiri_failure_t none = {0};
    pid_t pid;
    int fd;

    fd = daqiri_net_accept(serve->listener, daqiri_now_ns() + SERVE_LOOK_NS,
                           &none);
    if (fd < 0) {
        return ((none.class_id == DAQIRI_CLASS_TIMEOUT) ||
                (none.class_id == DAQIRI_CLASS_INTERRUPTED)) ? 0 :
               daqiri_fail(failure, none.class_id, "%s", none.text);
    }
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        close(serve->listener);
        serve_client(opts, fd);
    }
    close(fd);
    if (pid < 0) {
        return daqiri_fail(failure, DAQIRI_CLASS_LOCAL, "no process for a "
                           "client: %s", strerror(errno));
    }
    serve_note(serve, pid);
    return 0;
}

static int serve_all(serve_t *serve, const serve_opts_t *opts)
{
    daqiri_failure_t failure = {0};
    int ret = 0;

    while ((ret == 0) && !daqiri_stop_asked() &&
           ((opts->count == 0) || (serve->taken < opts->count))) {
        serve_reap(serve, WNOHANG);
        if (serve->running == SERVE_CLIENTS_MAX) {
            poll(NULL, 0, 50);
        } else {
            ret = serve_take(serve, opts, &failure);
        }
    }
    close(serve->listener);
    if (ret != 0) {
        fprintf(stderr, "%s: %s\n", opts->speaker, failure.text);
    }
    if (daqiri_stop_asked()) {
        serve_stop(serve);
    }
    serve_reap(serve, 0);
    return ((ret != 0) || (serve->failed > 0)) ? DAQIRI_EXIT_FAILED :
                                                 DAQIRI_EXIT_OK;
}

int daqiri_serve(int argc, char **argv)
{
    serve_opts_t opts = {
        .speaker   = argv[0],
        .listen_on = ":" DAQIRI_NET_PORT,
        .timeout   = 5
    };
    daqiri_failure_t failure = {0};
    char name[DAQIRI_NET_NAME_MAX];
    serve_t serve = {0};
    size_t i;

    daqiri_args_parse(&serve_argp, argc, argv, &opts);
    daqiri_stop_catch();
    serve.listener = daqiri_net_listen(opts.listen_on, &failure);
    if (serve.listener < 0) {
        fprintf(stderr, "%s: %s\n", opts.speaker, failure.text);
        return DAQIRI_EXIT_FAILED;
    }
    fprintf(stderr, "%s: waiting for clients on %s\n", opts.speaker,
            daqiri_net_name(serve.listener, 0, name));
    for (i = 0; (opts.format == DAQIRI_FORMAT_CSV) && (i < SERVE_CSV_COUNT);
         ++i) {
        printf("%s%s", serve_csv[i], (i + 1 < SERVE_CSV_COUNT) ? "," : "\n");
    }
    fflush(stdout);
    return serve_all(&serve, &opts);
}
