/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * daqiri-flow: see flow.h. Started by contrib/grid, in the environment that
 * `daqiri run` makes:
 *
 *     daqiri run --device soft daqiri-flow -size 64K -gbps 10 -csv
 *
 * Message k is due at k * size / pace after the start, whenever the ones before
 * it went: who was late catches up, so the pace is kept over all bytes. It is
 * judged where messages arrive, from the first one to the last.
 */

#include "args.h"
#include "daqiri.h"
#include "flow.h"
#include "report.h"
#include "stop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FLOW_LAST     (1ull << 63) /* in the serial of the last fragment */
#define FLOW_WARM_UP  1000         /* messages that are not measured, at most */
#define FLOW_COUNT_MIN 64          /* messages that are */

/* What the receiver has seen. */
typedef struct flow_result {
    uint64_t messages;
    uint64_t first_ns, last_ns; /* arrivals of measured messages */
    uint64_t disorder;          /* fragments that were not the next one */
    double   cpu;               /* s, of that process */
} flow_result_t;

typedef struct flow_end {
    flow_link_t       link;
    const flow_opts_t *opts;
    uint64_t          warm_up;   /* messages before those that are measured */
    uint64_t          fragments; /* of a message */
    uint64_t          next;      /* serial of the next fragment */
    uint64_t          acked;     /* sender: messages; receiver: told of */
    uint64_t          arrived;   /* receiver: messages */
    int               is_over;
    flow_result_t     result;
} flow_end_t;

static double flow_cpu(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/* ---- receiver ---- */

static ucs_status_t flow_on_data(void *arg, void *data, size_t length,
                                 unsigned flags)
{
    flow_end_t *end = arg;
    uint64_t serial;

    (void)flags;
    if (length < sizeof(serial)) {
        flow_die("a message of %zu bytes has come", length);
    }
    memcpy(&serial, data, sizeof(serial));
    end->result.disorder += (serial & ~FLOW_LAST) != end->next;
    end->next             = (serial & ~FLOW_LAST) + 1;
    if ((end->next % end->fragments) != 0) {
        return UCS_OK;
    }

    ++end->arrived;
    if (end->arrived > end->warm_up) {
        end->result.last_ns = daqiri_now_ns();
        if (end->arrived == end->warm_up + 1) {
            end->result.first_ns = end->result.last_ns;
        }
        ++end->result.messages;
    }
    end->is_over = (serial & FLOW_LAST) != 0;
    return UCS_OK;
}

/* A quarter of the window at a time, and all at the end and after the warm-up,
 * which the sender waits for. */
static void flow_ack(flow_end_t *end)
{
    uint64_t some = (end->opts->window + 3) / 4;

    if ((end->arrived - end->acked < some) && !end->is_over &&
        (end->arrived != end->warm_up)) {
        return;
    }
    if (uct_ep_am_short(end->link.ep, FLOW_AM_ACK, end->arrived, NULL, 0) ==
        UCS_OK) {
        end->acked = end->arrived;
    }
}

static void flow_receive(flow_end_t *end)
{
    while (!end->is_over || (end->acked < end->arrived)) {
        flow_progress(&end->link);
        if (end->acked < end->arrived) {
            flow_ack(end);
        }
    }
}

/* ---- sender ---- */

static ucs_status_t flow_on_ack(void *arg, void *data, size_t length,
                                unsigned flags)
{
    flow_end_t *end = arg;

    (void)flags;
    if (length != sizeof(end->acked)) {
        flow_die("an acknowledgement of %zu bytes has come", length);
    }
    memcpy(&end->acked, data, sizeof(end->acked));
    return UCS_OK;
}

static uint64_t flow_in_flight(const flow_end_t *end)
{
    return end->next / end->fragments - end->acked;
}

static void flow_send_message(flow_end_t *end, int is_last)
{
    const size_t room = end->link.most - FLOW_SERIAL_SIZE;
    size_t left       = end->opts->size - FLOW_SERIAL_SIZE * end->fragments;
    uint64_t serial, i;
    ucs_status_t status;
    size_t length;

    for (i = 1; i <= end->fragments; ++i) {
        length  = (left < room) ? left : room;
        left   -= length;
        serial  = end->next | ((is_last && (i == end->fragments)) ?
                               FLOW_LAST : 0);
        do {
            status = end->link.send(&end->link, serial,
                                    length + FLOW_SERIAL_SIZE);
            if (status == UCS_ERR_NO_RESOURCE) {
                flow_progress(&end->link);
            }
        } while (status == UCS_ERR_NO_RESOURCE);
        if (status != UCS_OK) {
            flow_die("a message cannot be sent: %s", ucs_status_string(status));
        }
        ++end->next;
    }
}

static void flow_await(flow_end_t *end, uint64_t in_flight)
{
    while (flow_in_flight(end) > in_flight) {
        flow_progress(&end->link);
    }
}

static void flow_warm_up(flow_end_t *end)
{
    uint64_t i;

    for (i = 0; i < end->warm_up; ++i) {
        flow_await(end, end->opts->window - 1);
        flow_send_message(end, 0);
    }
    flow_await(end, 0);
}

/* When message k is due, in ns after the start. */
static double flow_due(const flow_opts_t *opts, uint64_t k)
{
    return (double)k * (double)opts->size * 8 / opts->gbps;
}

/* A pace that cannot be kept is given up after half as long again, and a
 * second for a machine that is busy. */
static int flow_is_last(const flow_opts_t *opts, uint64_t k, uint64_t past_ns)
{
    const double limit = (opts->gbps > 0) ? opts->seconds * 1.5e9 + 1e9 :
                                            opts->seconds * 1e9;

    if (daqiri_stop_asked() || ((double)past_ns >= limit)) {
        return 1;
    }
    return (opts->gbps > 0) && (k + 1 >= FLOW_COUNT_MIN) &&
           (flow_due(opts, k + 1) > opts->seconds * 1e9);
}

static uint64_t flow_send(flow_end_t *end)
{
    const flow_opts_t *opts = end->opts;
    uint64_t start, past, k;
    int is_last = 0;

    flow_warm_up(end);
    start = daqiri_now_ns();
    for (k = 0; !is_last; ++k) {
        flow_await(end, opts->window - 1);
        past = daqiri_now_ns() - start;
        while ((opts->gbps > 0) && ((double)past < flow_due(opts, k))) {
            flow_progress(&end->link);
            past = daqiri_now_ns() - start;
        }
        is_last = flow_is_last(opts, k, past);
        flow_send_message(end, is_last);
    }
    flow_await(end, 0);
    return k;
}

/* ---- both ---- */

static void flow_end_open(flow_end_t *end, const flow_opts_t *opts, int fd)
{
    size_t room;

    memset(end, 0, sizeof(*end));
    end->opts = opts;
    flow_link_open(&end->link, opts, fd, flow_on_data, flow_on_ack, end);
    room           = end->link.most;
    end->fragments = (opts->size + room - 1) / room;
    end->warm_up   = 2 * opts->window;
    if (end->warm_up > FLOW_WARM_UP) {
        end->warm_up = FLOW_WARM_UP;
    }
}

static void flow_receiver(const flow_opts_t *opts, int fd)
{
    flow_end_t end;
    double cpu;

    flow_end_open(&end, opts, fd);
    cpu = flow_cpu();
    flow_receive(&end);
    end.result.cpu = flow_cpu() - cpu;
    flow_tell(fd, &end.result, sizeof(end.result));
    flow_link_close(&end.link, fd);
}

static json_t *flow_report(const flow_opts_t *opts, uint64_t sent,
                           const flow_result_t *result, double cpu)
{
    double seconds = (double)(result->last_ns - result->first_ns) * 1e-9;
    double rate    = (seconds > 0) ? (double)(result->messages - 1) / seconds :
                                     0;
    double gbps    = rate * (double)opts->size * 8e-9;
    json_t *report = daqiri_report_new("flow");

    daqiri_report_text(report, "tl", opts->tl);
    daqiri_report_text(report, "device", opts->device);
    daqiri_report_int(report, "size", (long long)opts->size);
    daqiri_report_int(report, "window", (long long)opts->window);
    daqiri_report_set(report, "target_gbps", (opts->gbps > 0) ?
                      json_real(opts->gbps) : json_null());
    daqiri_report_real(report, "gbps", gbps);
    daqiri_report_real(report, "messages_per_s", rate);
    daqiri_report_set(report, "deviation_percent", (opts->gbps > 0) ?
                      json_real((gbps / opts->gbps - 1) * 100) : json_null());
    daqiri_report_int(report, "sent", (long long)sent);
    daqiri_report_int(report, "received", (long long)result->messages);
    daqiri_report_int(report, "disorder", (long long)result->disorder);
    daqiri_report_real(report, "seconds", seconds);
    daqiri_report_real(report, "cpu_tx_s", cpu);
    daqiri_report_real(report, "cpu_rx_s", result->cpu);
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
    {"seconds", "time", DAQIRI_UNIT_SEC},
    {"cpu_tx_s", "CPU of the sender", DAQIRI_UNIT_SEC},
    {"cpu_rx_s", "CPU of the receiver", DAQIRI_UNIT_SEC}
};

static const daqiri_section_t flow_section = {
    NULL, NULL, DAQIRI_COLUMNS(flow_columns)
};

/* Returns an exit status: lost or disordered messages are a failure. */
static int flow_sender(const flow_opts_t *opts, int fd, daqiri_format_t format)
{
    flow_result_t result;
    flow_end_t end;
    uint64_t sent;
    json_t *report;
    double cpu;
    int error;

    flow_end_open(&end, opts, fd);
    cpu  = flow_cpu();
    sent = flow_send(&end);
    cpu  = flow_cpu() - cpu;
    flow_hear(fd, &result, sizeof(result));
    flow_link_close(&end.link, fd);

    report = flow_report(opts, sent, &result, cpu);
    error  = daqiri_report_print(report, format, &flow_section, 1, stdout);
    json_decref(report);
    if (error != 0) {
        flow_die("the report cannot be written: %s", strerror(error));
    }
    if ((result.messages != sent) || (result.disorder != 0)) {
        flow_die("%llu messages were sent, %llu have arrived, %llu out of "
                 "order", (unsigned long long)sent,
                 (unsigned long long)result.messages,
                 (unsigned long long)result.disorder);
    }
    return DAQIRI_EXIT_OK;
}

/* ---- options ---- */

typedef struct flow_arguments {
    daqiri_format_t format;
    flow_opts_t     opts;
} flow_arguments_t;

enum {
    FLOW_OPT_TL = DAQIRI_ARGS_OWN,
    FLOW_OPT_DEVICE,
    FLOW_OPT_SIZE,
    FLOW_OPT_WINDOW,
    FLOW_OPT_TIME,
    FLOW_OPT_GBPS
};

static const struct argp_option flow_options[] = {
    {"tl", FLOW_OPT_TL, "NAME", 0, "Transport (daqiri)"},
    {"device", FLOW_OPT_DEVICE, "NAME:PORT", 0, "Device (softverbs0:1)"},
    {"size", FLOW_OPT_SIZE, "SIZE", 0, "Bytes of a message, 8 or more (64)"},
    {"window", FLOW_OPT_WINDOW, "N", 0,
     "Most messages that are not acknowledged by the receiver (64)"},
    {"time", FLOW_OPT_TIME, "TIME", 0, "How long (1s)"},
    {"gbps", FLOW_OPT_GBPS, "N", 0, "Pace in Gb/s (as fast as it goes)"},
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
        argp_error(state, "-gbps %s: it is a number from 0.000001 to 1000000",
                   text);
    }
    return value;
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
        opts->device = arg;
        return 0;
    case FLOW_OPT_SIZE:
        opts->size = daqiri_args_size(state, "size", arg, FLOW_SERIAL_SIZE,
                                      1u << 30);
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
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child flow_children[] = {
    {&daqiri_args_output}, {NULL}
};

static const struct argp flow_argp = {
    flow_options, flow_parse, NULL,
    "Sends messages from one process to another over one of UCX's transports, "
    "at a pace, and counts what arrives. Started by daqiri run.\v"
    "Exit status: 0, 1 when messages were lost or the transport failed, 2 for "
    "a mistake in the options.",
    flow_children
};

/* ---- the two processes ---- */

static volatile sig_atomic_t flow_receiver_ended;

/* A receiver that fails has said why; nothing would come from it any more. */
static void flow_on_child(int number)
{
    static const char killed[] = "daqiri-flow: the receiver was killed\n";
    int status;

    (void)number;
    if (waitpid(-1, &status, WNOHANG) <= 0) {
        return;
    }
    flow_receiver_ended = 1;
    if (WIFSIGNALED(status)) {
        (void)!write(STDERR_FILENO, killed, sizeof(killed) - 1);
    }
    if (status != 0) {
        _exit(DAQIRI_EXIT_FAILED);
    }
}

static int flow_fork_receiver(const flow_opts_t *opts)
{
    struct sigaction action = {.sa_handler = flow_on_child,
                               .sa_flags   = SA_RESTART | SA_NOCLDSTOP};
    int fds[2];
    pid_t child;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
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
        flow_receiver(opts, fds[1]);
        exit(DAQIRI_EXIT_OK);
    }
    close(fds[1]);
    return fds[0];
}

int main(int argc, char **argv)
{
    flow_arguments_t arguments = {
        DAQIRI_FORMAT_TABLE,
        {.tl = "daqiri", .device = "softverbs0:1", .size = 64, .window = 64,
         .seconds = 1}
    };
    int status, fd;

    daqiri_args_parse(&flow_argp, argc, argv, &arguments);
    daqiri_stop_catch();
    fd     = flow_fork_receiver(&arguments.opts);
    status = flow_sender(&arguments.opts, fd, arguments.format);
    while (!flow_receiver_ended) {
        usleep(1000); /* how it ends is seen by flow_on_child() */
    }
    return status;
}
