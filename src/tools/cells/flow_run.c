/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/cells/flow_run.h"

#include "tools/base/answer.h"
#include "tools/base/clock.h"
#include "tools/base/exit_status.h"
#include "tools/base/locate.h"
#include "tools/base/report.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define RUN_ENDLESS    604800.0 /* s; another bound ends it */
#define RUN_ARGS_MAX   48
#define RUN_DEVICE_MAX 96
#define RUN_STAGE_MAX  64
#define RUN_NUMBER_MAX 32

typedef struct run_command {
    char *args[RUN_ARGS_MAX];
    int  count;
    char size[RUN_NUMBER_MAX], window[RUN_NUMBER_MAX];
    char time[RUN_NUMBER_MAX], gbps[RUN_NUMBER_MAX];
    char fd[RUN_NUMBER_MAX], patience[RUN_NUMBER_MAX];
    char interval[RUN_NUMBER_MAX], iters[RUN_NUMBER_MAX], setup[RUN_NUMBER_MAX];
    char gid[RUN_NUMBER_MAX], mtu[RUN_NUMBER_MAX], traffic[RUN_NUMBER_MAX];
    char device[RUN_DEVICE_MAX];
    char self[PATH_MAX];
} run_command_t;

/* ---- the command ---- */

static void run_add(run_command_t *command, const char *word)
{
    command->args[command->count++] = (char*)word;
}

static void run_add_option(run_command_t *command, const char *name,
                           const char *value)
{
    run_add(command, name);
    run_add(command, value);
}

const char *daqiri_flow_transport_name(const char *transport)
{
    static const char prefix[] = DAQIRI_FLOW_UCT_PREFIX;
    size_t length              = strlen(prefix);

    return (strncmp(transport, prefix, length) == 0) ? transport + length :
                                                       transport;
}

static int run_is_verbs(const char *transport)
{
    return (strcmp(transport, "verbs") == 0) || (strcmp(transport, "verbs_uc") == 0);
}

/* The environment of a UCX transport is that of `daqiri run`; raw verbs need
 * the device of it alone; a socket nothing. */
static void run_add_environment(run_command_t *command, const char *device,
                                const char *transport)
{
    if (strcmp(transport, "tcp") == 0) {
        return;
    }
    transport = daqiri_flow_transport_name(transport);
    daqiri_locate_self(command->self);
    run_add(command, command->self);
    run_add(command, "run");
    run_add(command, "--quiet");
    if (device != NULL) {
        run_add_option(command, "--device", device);
    }
    run_add(command, "--tls");
    run_add(command, run_is_verbs(transport) ? "rc_verbs" : transport);
    run_add(command, "--");
}

static void run_add_number(run_command_t *command, const char *name, char *text,
                           unsigned long long value)
{
    snprintf(text, RUN_NUMBER_MAX, "%llu", value);
    run_add_option(command, name, text);
}

/* What is for verbs is not asked of the others. */
static void run_add_verbs(run_command_t *command, const daqiri_flow_run_t *run)
{
    const daqiri_flow_verbs_t *verbs = &run->verbs;

    if (!run_is_verbs(run->transport)) {
        return;
    }
    if (run->is_settled) {
        snprintf(command->device, RUN_DEVICE_MAX, (verbs->port > 0) ? "%s:%u" : "%s",
                 run->device, verbs->port);
        run_add_option(command, "--device", command->device);
    }
    if (verbs->gid_index >= 0) {
        run_add_number(command, "--gid-index", command->gid,
                       (unsigned long long)verbs->gid_index);
    }
    if (verbs->mtu > 0) {
        run_add_number(command, "--mtu", command->mtu, verbs->mtu);
    }
    if (verbs->traffic_class > 0) {
        run_add_number(command, "--traffic-class", command->traffic,
                       verbs->traffic_class);
    }
    if (run->by_hand != NULL) {
        run_add_option(command, "--by-hand", run->by_hand);
    }
}

static void run_prepare(run_command_t *command, const daqiri_flow_run_t *run,
                        const char *flow)
{
    memset(command, 0, sizeof(*command));
    snprintf(command->size, RUN_NUMBER_MAX, "%zu", run->size);
    snprintf(command->window, RUN_NUMBER_MAX, "%llu",
             (unsigned long long)run->window);
    snprintf(command->time, RUN_NUMBER_MAX, "%.9fs", (run->seconds > 0) ?
             run->seconds : RUN_ENDLESS);
    snprintf(command->gbps, RUN_NUMBER_MAX, "%.12g", run->gbps);
    snprintf(command->interval, RUN_NUMBER_MAX, "%.9fs", run->interval);
    snprintf(command->fd, RUN_NUMBER_MAX, "%d", run->fd);
    snprintf(command->patience, RUN_NUMBER_MAX, "%.9fs", run->patience);
    if (!run->is_settled || !run_is_verbs(run->transport)) {
        run_add_environment(command, run->device, run->transport);
    }
    run_add(command, flow);
    run_add(command, "--json");
    run_add_option(command, "--tl", run->transport);
    run_add_option(command, "--pattern", run->pattern);
    run_add_option(command, "--size", command->size);
    run_add_option(command, "--window", command->window);
    run_add_option(command, "--time", command->time);
    if (run->gbps > 0) {
        run_add_option(command, "--gbps", command->gbps);
    }
    run_add_verbs(command, run);
    if (run->iters > 0) {
        run_add_number(command, "--iters", command->iters, run->iters);
    }
    if (run->setup > 0) {
        snprintf(command->setup, RUN_NUMBER_MAX, "%.9fs", run->setup);
        run_add_option(command, "--setup-timeout", command->setup);
    }
    if (run->interval > 0) {
        run_add_option(command, "--interval", command->interval);
    }
    if (run->fd >= 0) {
        run_add_option(command, run->is_second ? "--second" : "--first",
                       command->fd);
    }
    if ((run->fd >= 0) || (run->by_hand != NULL)) {
        run_add_option(command, "--patience", command->patience);
    }
}

/* ---- while it goes on ---- */

typedef struct run_watch {
    const daqiri_capture_wait_t *wait;  /* the caller's */
    char     stage[RUN_STAGE_MAX];      /* the last one told, or "" */
    double   limit;                     /* s, of that */
    uint64_t until_ns;                  /* 0: no bound */
} run_watch_t;

static int run_take_stage(run_watch_t *watch, const char *line)
{
    json_t *object = (line[0] == '{') ? json_loads(line, 0, NULL) : NULL;
    int is_stage   = (object != NULL) && daqiri_answer_take(object, DAQIRI_ANSWER_STAGE);
    const char *name;

    if (is_stage) {
        name         = daqiri_report_find_text(object, "name");
        watch->limit = json_number_value(json_object_get(object, "limit_s"));
        snprintf(watch->stage, RUN_STAGE_MAX, "%s", (name != NULL) ? name : "");
        watch->until_ns = daqiri_now_ns() + (uint64_t)(watch->limit * 1e9);
    }
    json_decref(object);
    return is_stage;
}

static int run_take_line(void *arg, char *line)
{
    run_watch_t *watch = arg;

    return run_take_stage(watch, line) ||
           ((watch->wait->take != NULL) && watch->wait->take(watch->wait->arg, line));
}

static void run_tick(void *arg)
{
    const run_watch_t *watch = arg;

    if (watch->wait->tick != NULL) {
        watch->wait->tick(watch->wait->arg);
    }
}

/* ---- what came of it ---- */

/* The report, or else the first failure, is *report_p. The complaint is that failure,
 * or else the first line of somebody else: `daqiri run --quiet` says only what is
 * wrong, and so do libraries. */
static void run_read(char *text, json_t **report_p, char *complaint, size_t size)
{
    json_t *report  = NULL;
    json_t *failure = NULL;
    json_t *object;
    char *line;

    complaint[0] = '\0';
    while ((line = daqiri_answer_next(&text, &object)) != NULL) {
        if ((object == NULL) && (complaint[0] == '\0')) {
            snprintf(complaint, size, "%s", line);
        } else if ((report == NULL) &&
                   daqiri_answer_take(object, DAQIRI_ANSWER_REPORT)) {
            report = json_incref(object);
        } else if ((failure == NULL) &&
                   daqiri_answer_take(object, DAQIRI_ANSWER_FAILURE)) {
            failure = json_incref(object);
        }
        json_decref(object);
    }
    if (daqiri_report_find_text(failure, "error") != NULL) {
        snprintf(complaint, size, "%s", daqiri_report_find_text(failure, "error"));
    }
    if ((report != NULL) || (failure != NULL)) {
        json_decref(*report_p);
        *report_p = json_incref((report != NULL) ? report : failure);
    }
    json_decref(report);
    json_decref(failure);
}

/* Of one that has not told its own failure. */
static daqiri_class_t run_class_of_end(const daqiri_capture_t *capture)
{
    return capture->is_timeout ? DAQIRI_CLASS_PROVIDER_TIMEOUT :
           ((capture->error == 0) && WIFSIGNALED(capture->status)) ?
           DAQIRI_CLASS_PROVIDER_DIED : DAQIRI_CLASS_LOCAL;
}

static void run_explain_end(const daqiri_capture_t *capture, const run_watch_t *watch,
                            char *text, size_t size)
{
    if ((text[0] != '\0') && !capture->is_timeout) {
        return;
    }
    if (capture->error != 0) {
        snprintf(text, size, "it cannot be started: %s",
                 strerror(capture->error));
    } else if (capture->is_timeout && (watch->until_ns > 0)) {
        snprintf(text, size, "it did not come back within %.4g s", watch->limit);
    } else if (capture->is_timeout) {
        snprintf(text, size, "it did not end in time");
    } else if (WIFSIGNALED(capture->status)) {
        snprintf(text, size, "it was ended by signal %d",
                 WTERMSIG(capture->status));
    } else {
        snprintf(text, size, "it ended with status %d",
                 WEXITSTATUS(capture->status));
    }
}

/* Returns 0, or -1 and why not. */
static int run_find_flow(char *path, char *complaint)
{
    char tried[PATH_MAX];

    if (daqiri_locate_program("daqiri-flow", path, tried) == 0) {
        return 0;
    }
    snprintf(complaint, DAQIRI_FLOW_COMPLAINT_MAX, "daqiri-flow was not found");
    return -1;
}

/* A failure has a stage and a class, whoever has told of it. */
static void run_name_failure(const daqiri_capture_t *capture, const run_watch_t *watch,
                             json_t *report)
{
    if (capture->is_timeout ||
        (daqiri_report_find_text(report, "failure_class") == NULL)) {
        daqiri_report_text(report, "failure_class",
                           daqiri_class_name(run_class_of_end(capture)));
        daqiri_report_text(report, "stage", (watch->stage[0] != '\0') ? watch->stage :
                                                                        "connect");
    }
}

/* Runs the command, and takes its report and its complaint. */
static int run_capture(const run_command_t *command, double time_limit,
                       const daqiri_capture_wait_t *wait, json_t **report_p,
                       char *complaint)
{
    daqiri_capture_t *capture = calloc(1, sizeof(*capture));
    run_watch_t watch         = {.wait = wait};
    const daqiri_capture_wait_t own = {wait->grace, run_tick, &watch, run_take_line,
                                       &watch.until_ns, wait->has_stdin};
    int ret;

    if (capture == NULL) {
        snprintf(complaint, DAQIRI_FLOW_COMPLAINT_MAX, "no memory");
        return -1;
    }
    ret = daqiri_capture_run_while(capture, command->args, NULL, time_limit, &own);
    run_read(capture->text, report_p, complaint, DAQIRI_FLOW_COMPLAINT_MAX);
    if ((ret != 0) || (json_object_size(*report_p) == 0)) {
        run_explain_end(capture, &watch, complaint, DAQIRI_FLOW_COMPLAINT_MAX);
    }
    if (complaint[0] != '\0') {
        ret = ((ret != 0) && WIFEXITED(capture->status) &&
               (WEXITSTATUS(capture->status) == DAQIRI_EXIT_APART)) ?
              DAQIRI_EXIT_APART : capture->is_timeout ? DAQIRI_EXIT_WATCHDOG : -1;
        run_name_failure(capture, &watch, *report_p);
    }
    free(capture);
    return ret;
}

int daqiri_flow_run(const daqiri_flow_run_t *run,
                    const daqiri_capture_wait_t *wait, json_t **report_p,
                    char *complaint)
{
    char flow[PATH_MAX];
    run_command_t command;

    *report_p = json_object();
    if (run_find_flow(flow, complaint) != 0) {
        return -1;
    }
    run_prepare(&command, run, flow);
    if (run->fd >= 0) {
        fcntl(run->fd, F_SETFD, 0); /* it is for that program */
    }
    return run_capture(&command, run->time_limit, wait, report_p, complaint);
}

/* What a library says beside the list is no complaint about it. */
int daqiri_flow_list(const char *device, const char *transport,
                     double time_limit, json_t **report_p, char *complaint)
{
    static const daqiri_capture_wait_t at_once = {0};
    char flow[PATH_MAX];
    run_command_t command;
    json_t *list;

    *report_p = json_object();
    if (run_find_flow(flow, complaint) != 0) {
        return -1;
    }
    memset(&command, 0, sizeof(command));
    run_add_environment(&command, device, transport);
    run_add(&command, flow);
    run_add(&command, "--json");
    run_add(&command, "--list");
    run_capture(&command, time_limit, &at_once, report_p, complaint);
    list = json_object_get(*report_p, "transports");
    return (json_array_size(list) > 0) ? 0 : -1;
}
