/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * daqiri-flow: see flow.h. Started by `daqiri sweep` and `daqiri drop-curve`, in
 * the environment that `daqiri run` makes:
 *
 *     daqiri run --device soft daqiri-flow --size 64K --gbps 10 --json
 *
 * With --first or --second it is one end, and the socket of that number leads to
 * the other one.
 */

#include "tools/flow/flow.h"

#include "tools/base/answer.h"
#include "tools/base/args.h"
#include "tools/base/exit_status.h"
#include "tools/base/report.h"
#include "tools/base/stop.h"
#include "tools/base/verdict.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FLOW_SYSFS "/sys"

static const char *const flow_patterns[] = {
    [FLOW_STREAM]   = "stream",
    [FLOW_DUPLEX]   = "duplex",
    [FLOW_PINGPONG] = "pingpong"
};

#define FLOW_NUM_PATTERNS (sizeof(flow_patterns) / sizeof(flow_patterns[0]))

/* ---- the report ---- */

static double flow_seconds(const flow_side_t *side)
{
    return (double)(side->last_ns - side->first_ns) * 1e-9;
}

/* Of the messages that this side has received, from the first on. */
static double flow_rate(const flow_side_t *side)
{
    return ((side->received > 1) && (side->last_ns > side->first_ns)) ?
           (double)(side->received - 1) / flow_seconds(side) : 0;
}

/* In both directions. Who asks knows when the first one began. */
static double flow_rate_all(const flow_opts_t *opts, const flow_side_t *tx,
                            const flow_side_t *rx)
{
    return (opts->pattern == FLOW_PINGPONG) ?
           (double)(tx->sent + tx->received) / flow_seconds(tx) :
           flow_rate(tx) + flow_rate(rx);
}

static double flow_cpu_percent(const flow_side_t *side)
{
    return (side->elapsed_ns > 0) ?
           (double)side->cpu_ns / (double)side->elapsed_ns * 100 : 0;
}

static json_t *flow_counters(flow_end_t *end)
{
    json_t *counters = json_object();

    end->link->count(end->link, counters);
    daqiri_report_int(counters, "preempted", (long long)end->side.preempted);
    daqiri_report_int(counters, DAQIRI_TOOK, (long long)end->side.elapsed_ns);
    if (end->side.no_cpu_ns != FLOW_NOT_SEEN) {
        daqiri_report_int(counters, DAQIRI_NO_CPU, end->side.no_cpu_ns);
    }
    if (end->side.waited_ns != FLOW_NOT_SEEN) {
        daqiri_report_int(counters, DAQIRI_WAITED, end->side.waited_ns);
    }
    if (end->side.line_ns > 0) {
        daqiri_report_int(counters, DAQIRI_LINE, (long long)end->side.line_ns);
        daqiri_report_int(counters, DAQIRI_LINE_FAR,
                          (long long)end->side.line_far_ns);
    }
    return counters;
}

static void flow_report_rates(json_t *report, const flow_opts_t *opts,
                              const flow_side_t *tx, const flow_side_t *rx)
{
    double rate = flow_rate_all(opts, tx, rx);
    double gbps = rate * (double)opts->size * 8e-9;

    daqiri_report_real(report, "gbps", gbps);
    daqiri_report_real(report, "messages_per_s", rate);
    daqiri_report_set(report, "deviation_percent", (opts->gbps > 0) ?
                      json_real((gbps / opts->gbps - 1) * 100) : json_null());
    daqiri_report_int(report, "sent", (long long)(tx->sent + rx->sent));
    daqiri_report_int(report, "received",
                      (long long)(tx->received + rx->received));
    daqiri_report_int(report, "disorder",
                      (long long)(tx->disorder + rx->disorder));
    daqiri_report_real(report, "elapsed_s", flow_seconds(
                           (opts->pattern == FLOW_PINGPONG) ? tx : rx));
}

static json_t *flow_report(flow_end_t *end, const flow_side_t *rx,
                           json_t *rx_counters)
{
    const flow_opts_t *opts = end->opts;
    const flow_side_t *tx   = &end->side;
    json_t *report          = daqiri_report_new("flow");
    json_t *counters        = json_object();

    daqiri_report_text(report, "tl", opts->tl);
    daqiri_report_text(report, "device", (end->link->device[0] != '\0') ?
                       end->link->device : NULL);
    daqiri_report_text(report, "pattern", flow_patterns[opts->pattern]);
    daqiri_report_int(report, "size", (long long)opts->size);
    daqiri_report_int(report, "window", (opts->pattern == FLOW_PINGPONG) ? 1 :
                      (long long)end->window);
    daqiri_report_set(report, "target_gbps", (opts->gbps > 0) ?
                      json_real(opts->gbps) : json_null());
    flow_report_rates(report, opts, tx, rx);
    daqiri_report_real(report, "cpu_tx_percent", flow_cpu_percent(tx));
    daqiri_report_real(report, "cpu_rx_percent", flow_cpu_percent(rx));
    daqiri_report_set(report, "round_trip", (end->hist.count > 0) ?
                      daqiri_hist_report_in(&end->hist, end->tick_ns) :
                      json_null());
    daqiri_report_set(counters, "tx", flow_counters(end));
    daqiri_report_set(counters, "rx", rx_counters);
    daqiri_report_set(report, "counters", counters);
    flow_add_notes(report, 1);
    return report;
}

static const daqiri_column_t flow_columns[] = {
    {"tl", "transport", DAQIRI_UNIT_NONE},
    {"device", "device", DAQIRI_UNIT_NONE},
    {"size", "message", DAQIRI_UNIT_SIZE},
    {"window", "window", DAQIRI_UNIT_NONE},
    {"target_gbps", "target", DAQIRI_UNIT_GBPS},
    {"gbps", "arrived", DAQIRI_UNIT_GBPS},
    {"messages_per_s", "messages", DAQIRI_UNIT_RATE},
    {"deviation_percent", "deviation", DAQIRI_UNIT_PERCENT},
    {"sent", "sent", DAQIRI_UNIT_NONE},
    {"received", "received", DAQIRI_UNIT_NONE},
    {"disorder", "out of order", DAQIRI_UNIT_NONE},
    {"elapsed_s", "time", DAQIRI_UNIT_SEC},
    {"cpu_tx_percent", "CPU of the sender", DAQIRI_UNIT_PERCENT},
    {"cpu_rx_percent", "CPU of the receiver", DAQIRI_UNIT_PERCENT},
    {"round_trip.p50_us", "round trip p50", DAQIRI_UNIT_USEC},
    {"round_trip.p99_us", "round trip p99", DAQIRI_UNIT_USEC},
    {"round_trip.p999_us", "round trip p99.9", DAQIRI_UNIT_USEC},
    {"round_trip.max_us", "round trip max", DAQIRI_UNIT_USEC}
};

static const daqiri_section_t flow_section = {
    NULL, NULL, DAQIRI_COLUMNS(flow_columns)
};

/* ---- what they tell each other ---- */

static const daqiri_peer_pattern_t flow_peer_patterns[] = {
    [FLOW_STREAM]   = DAQIRI_PEER_STREAM,
    [FLOW_DUPLEX]   = DAQIRI_PEER_DUPLEX,
    [FLOW_PINGPONG] = DAQIRI_PEER_ECHO
};

static void flow_tell_terms(const flow_opts_t *opts, int fd)
{
    daqiri_peer_frame_t frame = {.kind = DAQIRI_PEER_FLOW_TERMS};

    snprintf(frame.flow_terms.transport, sizeof(frame.flow_terms.transport),
             "%s", opts->tl);
    frame.flow_terms.pattern     = flow_peer_patterns[opts->pattern];
    frame.flow_terms.size        = opts->size;
    frame.flow_terms.window      = opts->window;
    /* Nobody knows how long so many round trips take. */
    frame.flow_terms.duration_ns = (opts->iters > 0) ? 0 :
                                   (uint64_t)(opts->seconds * 1e9 + 0.5);
    frame.flow_terms.pace        = (uint64_t)(opts->gbps * 1e9 + 0.5);
    flow_tell(fd, &frame);
}

static void flow_tell_side(const flow_side_t *side, int fd)
{
    daqiri_peer_frame_t frame = {.kind = DAQIRI_PEER_FLOW_SIDE};

    frame.flow_side.sent       = side->sent;
    frame.flow_side.received   = side->received;
    frame.flow_side.disorder   = side->disorder;
    frame.flow_side.first_ns   = side->first_ns;
    frame.flow_side.last_ns    = side->last_ns;
    frame.flow_side.elapsed_ns = side->elapsed_ns;
    frame.flow_side.cpu_ns     = side->cpu_ns;
    frame.flow_side.preempted  = side->preempted;
    flow_tell(fd, &frame);
}

static void flow_hear_side(flow_side_t *side, int fd)
{
    daqiri_peer_frame_t frame;

    flow_hear(fd, DAQIRI_PEER_FLOW_SIDE, &frame);
    side->sent       = frame.flow_side.sent;
    side->received   = frame.flow_side.received;
    side->disorder   = frame.flow_side.disorder;
    side->first_ns   = frame.flow_side.first_ns;
    side->last_ns    = frame.flow_side.last_ns;
    side->elapsed_ns = frame.flow_side.elapsed_ns;
    side->cpu_ns     = frame.flow_side.cpu_ns;
    side->preempted  = frame.flow_side.preempted;
}

/* ---- the two ends ---- */

/* What daqiri serve wants to know. */
static json_t *flow_second_report(flow_end_t *end)
{
    const flow_side_t *side = &end->side;
    json_t *report          = json_object();

    daqiri_report_int(report, "messages",
                      (long long)(side->sent + side->received));
    daqiri_report_real(report, "elapsed_s", flow_seconds(side));
    daqiri_report_real(report, "cpu_percent", flow_cpu_percent(side));
    daqiri_report_bool(report, "interrupted",
                       daqiri_stop_asked() || end->is_stopped);
    flow_add_notes(report, 1);
    return report;
}

/* By hand nothing is heard of the other end: each message that has gone was answered. */
static json_t *flow_hand_report(flow_end_t *end)
{
    const flow_side_t other = {.sent     = end->side.received,
                               .received = end->side.sent};
    json_t *report          = flow_report(end, &other, json_object());

    daqiri_report_set(report, "cpu_rx_percent", json_null());
    return report;
}

/* Returns the report, for who is not the child of the other end. */
static json_t *flow_second(const flow_opts_t *opts, int fd, flow_line_t *line)
{
    flow_end_t end;
    json_t *report;

    flow_end_open(&end, opts, fd, 0);
    flow_end_run(&end, 0, line);
    flow_stage("result");
    flow_tell_side(&end.side, fd);
    flow_tell_counters(fd, flow_counters(&end));
    report = flow_pair_by_hand() ? flow_hand_report(&end) : flow_second_report(&end);
    end.link->close(end.link, fd);
    return report;
}

/* Lost or disordered messages are a failure. */
static int flow_judge(const flow_side_t *one, const flow_side_t *other)
{
    if ((one->sent == other->received) && (other->sent == one->received) &&
        (one->disorder + other->disorder == 0)) {
        return DAQIRI_EXIT_OK;
    }
    flow_complain(DAQIRI_CLASS_DATA_MISMATCH, "%llu messages were sent, %llu have "
                  "arrived, %llu out of order",
                  (unsigned long long)(one->sent + other->sent),
                  (unsigned long long)(one->received + other->received),
                  (unsigned long long)(one->disorder + other->disorder));
    return DAQIRI_EXIT_FAILED;
}

/* Returns an exit status. */
static int flow_first(const flow_opts_t *opts, int fd, flow_line_t *line,
                      daqiri_format_t format)
{
    const char *devices = (opts->devices != NULL) ? opts->devices : "";
    flow_side_t other;
    json_t *port, *port_after, *report;
    flow_end_t end;
    int error;

    port = flow_count_port(FLOW_SYSFS, devices);
    flow_end_open(&end, opts, fd, 1);
    flow_end_run(&end, 1, line);
    flow_stage("result");
    flow_hear_side(&other, fd);
    report     = flow_pair_by_hand() ? flow_hand_report(&end) :
                 flow_report(&end, &other, flow_hear_counters(fd));
    port_after = flow_count_port(FLOW_SYSFS, devices);
    daqiri_report_set(json_object_get(report, "counters"), "port",
                      flow_count_change(port, port_after));
    end.link->close(end.link, fd);
    json_decref(daqiri_interval_report(&end.interval)); /* they were shown */

    error = (format == DAQIRI_FORMAT_JSON) ?
            daqiri_answer_write(DAQIRI_ANSWER_REPORT, report) :
            daqiri_report_print(report, format, &flow_section, 1, stdout);
    json_decref(report);
    json_decref(port);
    json_decref(port_after);
    if (error != 0) {
        flow_die("the report cannot be written: %s", strerror(error));
    }
    return flow_pair_by_hand() ? DAQIRI_EXIT_OK : flow_judge(&end.side, &other);
}

/* ---- options ---- */

typedef struct flow_arguments {
    daqiri_format_t format;
    int             is_list;
    flow_opts_t     opts;
} flow_arguments_t;

enum {
    FLOW_OPT_TL = DAQIRI_ARGS_OWN,
    FLOW_OPT_DEVICE,
    FLOW_OPT_PATTERN,
    FLOW_OPT_SIZE,
    FLOW_OPT_WINDOW,
    FLOW_OPT_TIME,
    FLOW_OPT_GBPS,
    FLOW_OPT_INTERVAL,
    FLOW_OPT_FIRST,
    FLOW_OPT_SECOND,
    FLOW_OPT_PATIENCE,
    FLOW_OPT_LIST,
    FLOW_OPT_ITERS,
    FLOW_OPT_SETUP,
    FLOW_OPT_GID,
    FLOW_OPT_MTU,
    FLOW_OPT_CLASS,
    FLOW_OPT_HAND
};

static const struct argp_option flow_options[] = {
    {"tl", FLOW_OPT_TL, "NAME", 0,
     "verbs (raw; verbs_uc), tcp (a socket), or UCX's, uct:NAME or NAME (daqiri)"},
    {"device", FLOW_OPT_DEVICE, "NAME:PORT", 0,
     "Device (one in UCX_NET_DEVICES; else any, for verbs softverbs0:1)"},
    {"pattern", FLOW_OPT_PATTERN, "NAME", 0,
     "stream, duplex or pingpong (stream)"},
    {"size", FLOW_OPT_SIZE, "SIZE", 0, "Bytes of a message, 8 or more (64)"},
    {"window", FLOW_OPT_WINDOW, "N", 0,
     "Most messages without acknowledgement (64)"},
    {"time", FLOW_OPT_TIME, "TIME", 0, "How long (1s)"},
    {"gbps", FLOW_OPT_GBPS, "N", 0, "Pace in Gb/s (as fast as it goes)"},
    {"interval", FLOW_OPT_INTERVAL, "TIME", 0, "Tell of each such time at once"},
    {"first", FLOW_OPT_FIRST, "FD", 0,
     "Be the end that sends first; the other one is at this socket"},
    {"second", FLOW_OPT_SECOND, "FD", 0, "Be the other end"},
    {"patience", FLOW_OPT_PATIENCE, "TIME", 0,
     "With these: how long nothing may come (5s)"},
    {"list", FLOW_OPT_LIST, NULL, 0,
     "List UCX's transports and devices in JSON"},
    /* of daqiri pingpong, whose page tells of them */
    {"iters", FLOW_OPT_ITERS, "N", OPTION_HIDDEN, NULL},
    {"setup-timeout", FLOW_OPT_SETUP, "TIME", OPTION_HIDDEN, NULL},
    {"gid-index", FLOW_OPT_GID, "N", OPTION_HIDDEN, NULL},
    {"mtu", FLOW_OPT_MTU, "SIZE", OPTION_HIDDEN, NULL},
    {"traffic-class", FLOW_OPT_CLASS, "N", OPTION_HIDDEN, NULL},
    {"by-hand", FLOW_OPT_HAND, "ROLE", OPTION_HIDDEN, NULL},
    {NULL}
};

static double flow_parse_gbps(struct argp_state *state, const char *text)
{
    double value;
    char *rest;

    errno = 0;
    value = strtod(text, &rest);
    if ((errno != 0) || (rest == text) || (*rest != '\0') ||
        !(value >= 1e-6) || !(value <= 1e6)) {
        argp_error(state, "--gbps %s: it is a number from 0.000001 to 1000000",
                   text);
    }
    return value;
}

static void flow_parse_end(struct argp_state *state, const char *name,
                           const char *arg, int is_second)
{
    flow_arguments_t *arguments = state->input;

    arguments->opts.fd        = (int)daqiri_args_count(state, name, arg, 3,
                                                       1u << 20);
    arguments->opts.is_second = is_second;
}

static error_t flow_parse_preset(int key, char *arg, struct argp_state *state)
{
    static const char *const roles[] = {"client", "server"};
    flow_arguments_t *arguments      = state->input;
    flow_opts_t *opts                = &arguments->opts;

    switch (key) {
    case FLOW_OPT_ITERS:
        opts->iters = daqiri_args_count(state, "iters", arg, 1, DAQIRI_PEER_ITERS_MAX);
        return 0;
    case FLOW_OPT_SETUP:
        opts->setup = daqiri_args_duration(state, "setup-timeout", arg);
        return 0;
    case FLOW_OPT_GID:
        opts->gid_index = (int)daqiri_args_count(state, "gid-index", arg, 0, 255);
        return 0;
    case FLOW_OPT_MTU:
        opts->mtu = (unsigned)daqiri_args_size(state, "mtu", arg, 256, 4096);
        return 0;
    case FLOW_OPT_CLASS:
        opts->traffic_class = (unsigned)daqiri_args_count(state, "traffic-class", arg,
                                                          0, 255);
        return 0;
    case FLOW_OPT_HAND:
        opts->is_second  = daqiri_args_word(state, "by-hand", arg, roles, 2);
        opts->is_by_hand = 1;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int flow_is_verbs(const flow_opts_t *opts)
{
    return (strcmp(opts->tl, "verbs") == 0) || (strcmp(opts->tl, "verbs_uc") == 0);
}

/* What only goes together. */
static void flow_judge_options(struct argp_state *state, const flow_opts_t *opts)
{
    if ((opts->gbps > 0) && (opts->pattern != FLOW_STREAM)) {
        argp_error(state, "--gbps is for the pattern stream");
    }
    if ((opts->size < FLOW_SERIAL_SIZE) && !flow_is_verbs(opts)) {
        argp_error(state, "--size %zu: with this transport it is 8 or more", opts->size);
    }
    if ((opts->iters > 0) && (opts->pattern != FLOW_PINGPONG)) {
        argp_error(state, "--iters is for the pattern pingpong");
    }
    if (opts->is_by_hand && (!flow_is_verbs(opts) || (opts->fd >= 0) ||
                             (opts->pattern != FLOW_PINGPONG))) {
        argp_error(state, "--by-hand is for a ping-pong over verbs");
    }
}

static error_t flow_parse(int key, char *arg, struct argp_state *state)
{
    flow_arguments_t *arguments = state->input;
    flow_opts_t *opts           = &arguments->opts;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &arguments->format;
        return 0;
    case FLOW_OPT_TL:
        opts->tl = arg;
        return 0;
    case FLOW_OPT_DEVICE:
        opts->devices = arg;
        return 0;
    case FLOW_OPT_PATTERN:
        opts->pattern = (flow_pattern_t)
            daqiri_args_word(state, "pattern", arg, flow_patterns,
                             FLOW_NUM_PATTERNS);
        return 0;
    case FLOW_OPT_SIZE:
        opts->size = daqiri_args_size(state, "size", arg, 1, 1u << 30);
        return 0;
    case FLOW_OPT_WINDOW:
        opts->window = daqiri_args_count(state, "window", arg, 1, 1u << 20);
        return 0;
    case FLOW_OPT_TIME:
        opts->seconds = daqiri_args_duration(state, "time", arg);
        return 0;
    case FLOW_OPT_GBPS:
        opts->gbps = flow_parse_gbps(state, arg);
        return 0;
    case FLOW_OPT_INTERVAL:
        opts->interval.every = daqiri_args_interval(state, arg);
        return 0;
    case FLOW_OPT_FIRST:
        flow_parse_end(state, "first", arg, 0);
        return 0;
    case FLOW_OPT_SECOND:
        flow_parse_end(state, "second", arg, 1);
        return 0;
    case FLOW_OPT_PATIENCE:
        opts->patience = daqiri_args_duration(state, "patience", arg);
        return 0;
    case FLOW_OPT_LIST:
        arguments->is_list = 1;
        return 0;
    case ARGP_KEY_END:
        flow_judge_options(state, opts);
        return 0;
    default:
        return flow_parse_preset(key, arg, state);
    }
}

static const struct argp_child flow_children[] = {
    {&daqiri_args_table}, {NULL}
};

static const struct argp flow_argp = {
    flow_options, flow_parse, NULL,
    "Sends messages between two processes over one transport, at a pace, and "
    "counts what arrives. Started by daqiri run.\v"
    "Exit status: 0; 1 messages were lost or the transport failed; 2 usage error; "
    "3 the other end is beyond the software device.",
    flow_children
};

/* ---- the two processes ---- */

static volatile sig_atomic_t flow_receiver_ended;
static volatile sig_atomic_t flow_answers; /* to a process that started this one */

/* A receiver that fails has said why; nothing would come from it any more. What this
 * says is what flow_die() would, which a signal's handler cannot call. */
static void flow_on_child(int number)
{
    static const char said[] = "daqiri-flow: the receiver was killed\n";
    static const char told[] =
        "{\"" DAQIRI_ANSWER_KEY "\":\"" DAQIRI_ANSWER_FAILURE "\","
        "\"stage\":\"datapath\",\"failure_class\":\"local\","
        "\"error\":\"the receiver was killed\"}\n";
    int status;

    (void)number;
    if (waitpid(-1, &status, WNOHANG) <= 0) {
        return;
    }
    flow_receiver_ended = 1;
    if (WIFSIGNALED(status)) {
        (void)!(flow_answers ? write(STDOUT_FILENO, told, sizeof(told) - 1) :
                               write(STDERR_FILENO, said, sizeof(said) - 1));
    }
    if (status != 0) {
        _exit(DAQIRI_EXIT_FAILED);
    }
}

/* UCX starts a thread for its VFS when it is loaded, where it has FUSE (Debian 13). If
 * that thread holds a lock of UCX's while we fork, the receiver waits for the lock for
 * ever. What UCX is told when it is loaded it must find in the environment. */
static void flow_leave_out_vfs(char **argv)
{
    const char *enabled = getenv("UCX_VFS_ENABLE");

    if ((enabled != NULL) && (strcmp(enabled, "n") == 0)) {
        return;
    }
    setenv("UCX_VFS_ENABLE", "n", 1);
    execv("/proc/self/exe", argv);
    flow_die("/proc/self/exe: %s", strerror(errno));
}

static int flow_fork_receiver(const flow_opts_t *opts, flow_line_t *line)
{
    struct sigaction action = {.sa_handler = flow_on_child,
                               .sa_flags   = SA_RESTART | SA_NOCLDSTOP};
    flow_opts_t receiver = *opts;
    int fds[2];
    pid_t child;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                   fds) != 0) {
        flow_die("socketpair: %s", strerror(errno));
    }
    sigaction(SIGCHLD, &action, NULL);
    child = fork();
    if (child < 0) {
        flow_die("fork: %s", strerror(errno));
    }
    if (child == 0) {
        signal(SIGCHLD, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fds[0]);
        receiver.interval.every = 0; /* the sender tells */
        json_decref(flow_second(&receiver, fds[1], line));
        exit(DAQIRI_EXIT_OK);
    }
    close(fds[1]);
    return fds[0];
}

static int flow_list(void)
{
    json_t *report = json_object();

    flow_uct_list(daqiri_report_array(report, "transports"));
    daqiri_answer_write(DAQIRI_ANSWER_REPORT, report);
    json_decref(report);
    return DAQIRI_EXIT_OK;
}

static int flow_here(const flow_arguments_t *arguments)
{
    flow_line_t *line = flow_line_make();
    int fd            = flow_fork_receiver(&arguments->opts, line);
    int status        = flow_first(&arguments->opts, fd, line,
                                   arguments->format);

    while (!flow_receiver_ended) {
        usleep(1000); /* how it ends is seen by flow_on_child() */
    }
    return status;
}

static int flow_between_hosts(const flow_arguments_t *arguments)
{
    const flow_opts_t *opts = &arguments->opts;
    json_t *report;

    if (opts->is_by_hand) {
        flow_pair_is_by_hand(opts->patience);
    } else {
        flow_pair_is_remote(opts->fd, opts->patience);
    }
    if (opts->setup > 0) {
        flow_stages_are_watched(opts->setup, opts->patience);
    }
    if (!opts->is_second) {
        flow_tell_terms(opts, opts->fd);
        return flow_first(opts, opts->fd, NULL, arguments->format);
    }
    report = flow_second(opts, opts->fd, NULL);
    daqiri_answer_write(DAQIRI_ANSWER_REPORT, report);
    json_decref(report);
    return DAQIRI_EXIT_OK;
}

int main(int argc, char **argv)
{
    flow_arguments_t arguments = {
        DAQIRI_FORMAT_TABLE, 0,
        {.tl = "daqiri", .devices = getenv("UCX_NET_DEVICES"), .size = 64,
         .window = 64, .seconds = 1, .fd = -1, .patience = 5, .gid_index = -1}
    };

    daqiri_args_parse(&flow_argp, argc, argv, &arguments);
    daqiri_args_check_columns("daqiri-flow", arguments.format, &flow_section, 1);
    if (arguments.format == DAQIRI_FORMAT_JSON) {
        flow_answers = 1;
        flow_is_child();
    }
    arguments.opts.interval.is_told  = flow_answers;
    arguments.opts.interval.is_shown = (arguments.format == DAQIRI_FORMAT_TABLE);
    if (arguments.opts.is_second) {
        arguments.opts.interval.every = 0;
    }
    if (arguments.is_list) {
        return flow_list();
    }
    if ((arguments.opts.fd < 0) && !arguments.opts.is_by_hand) {
        flow_leave_out_vfs(argv);
    }
    daqiri_stop_catch();
    daqiri_stop_own(); /* a message that is under way is finished */
    return ((arguments.opts.fd < 0) && !arguments.opts.is_by_hand) ?
           flow_here(&arguments) : flow_between_hosts(&arguments);
}
