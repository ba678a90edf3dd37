/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/cells/flow_run.h"

#include "tools/base/exit_status.h"
#include "tools/base/locate.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define RUN_ARGS_MAX   32
#define RUN_NUMBER_MAX 32

/* Who speaks before a run does. */
#define RUN_SPEAKER "daqiri run: "

typedef struct run_command {
    char *args[RUN_ARGS_MAX];
    int  count;
    char size[RUN_NUMBER_MAX], window[RUN_NUMBER_MAX];
    char time[RUN_NUMBER_MAX], gbps[RUN_NUMBER_MAX];
    char fd[RUN_NUMBER_MAX], patience[RUN_NUMBER_MAX];
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
    if (device != NULL) {
        run_add_option(command, "--device", device);
    }
    run_add(command, "--tls");
    run_add(command, (strcmp(transport, "verbs") == 0) ? "rc_verbs" :
                                                         transport);
    run_add(command, "--");
}

static void run_prepare(run_command_t *command, const daqiri_flow_run_t *run,
                        const char *flow)
{
    memset(command, 0, sizeof(*command));
    snprintf(command->size, RUN_NUMBER_MAX, "%zu", run->size);
    snprintf(command->window, RUN_NUMBER_MAX, "%llu",
             (unsigned long long)run->window);
    snprintf(command->time, RUN_NUMBER_MAX, "%.9fs", run->seconds);
    snprintf(command->gbps, RUN_NUMBER_MAX, "%.12g", run->gbps);
    snprintf(command->fd, RUN_NUMBER_MAX, "%d", run->fd);
    snprintf(command->patience, RUN_NUMBER_MAX, "%.9fs", run->patience);
    run_add_environment(command, run->device, run->transport);
    run_add(command, flow);
    run_add(command, "-json");
    run_add_option(command, "-tl", run->transport);
    run_add_option(command, "-pattern", run->pattern);
    run_add_option(command, "-size", command->size);
    run_add_option(command, "-window", command->window);
    run_add_option(command, "-time", command->time);
    if (run->gbps > 0) {
        run_add_option(command, "-gbps", command->gbps);
    }
    if (run->fd >= 0) {
        run_add_option(command, run->is_second ? "-second" : "-first",
                       command->fd);
        run_add_option(command, "-patience", command->patience);
    }
}

/* ---- what came of it ---- */

/* What `daqiri run` says of the device and of the way that it took. */
static int run_is_news(const char *line)
{
    static const char *const news[] = {
        RUN_SPEAKER "device ", RUN_SPEAKER "no RDMA device",
        RUN_SPEAKER "way into UCX"
    };
    size_t i;

    for (i = 0; i < sizeof(news) / sizeof(news[0]); ++i) {
        if (strncmp(line, news[i], strlen(news[i])) == 0) {
            return 1;
        }
    }
    return 0;
}

/* The first line that is no report and no news, up to `end`; empty if there is
 * none. */
static void run_find_complaint(const char *text, const char *end, char *line,
                               size_t size)
{
    size_t length;

    line[0] = '\0';
    for (; text < end; text += length + 1) {
        length = strcspn(text, "\n");
        if ((length > 0) && !run_is_news(text)) {
            snprintf(line, size, "%.*s", (int)length, text);
            return;
        }
    }
}

/* The report begins with a line of its own, and what complains may do so before
 * and after it. */
static json_t *run_find_report(const char *text, char *complaint, size_t size)
{
    const char *begin = (text[0] == '{') ? text : strstr(text, "\n{\n");
    const char *end   = text + strlen(text);
    json_error_t where;
    json_t *report = NULL;

    if (begin != NULL) {
        begin  += (begin[0] == '\n');
        report  = json_loadb(begin, (size_t)(end - begin),
                             JSON_DISABLE_EOF_CHECK, &where);
    }
    if (report == NULL) {
        run_find_complaint(text, end, complaint, size);
        return NULL;
    }
    run_find_complaint(text, begin, complaint, size);
    if (complaint[0] == '\0') {
        run_find_complaint(begin + where.position, end, complaint, size);
    }
    return report;
}

static void run_explain_end(const daqiri_capture_t *capture, char *text,
                            size_t size)
{
    if (text[0] != '\0') {
        return;
    }
    if (capture->error != 0) {
        snprintf(text, size, "it cannot be started: %s",
                 strerror(capture->error));
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

/* Runs the command, and takes its report and its complaint. */
static int run_capture(const run_command_t *command, double time_limit,
                       const daqiri_capture_wait_t *wait, json_t **report_p,
                       char *complaint)
{
    daqiri_capture_t *capture = calloc(1, sizeof(*capture));
    json_t *report;
    int ret;

    if (capture == NULL) {
        snprintf(complaint, DAQIRI_FLOW_COMPLAINT_MAX, "no memory");
        return -1;
    }
    ret    = daqiri_capture_run_while(capture, command->args, NULL, time_limit,
                                      wait);
    report = run_find_report(capture->text, complaint,
                             DAQIRI_FLOW_COMPLAINT_MAX);
    if (report != NULL) {
        json_decref(*report_p);
        *report_p = report;
    }
    if ((ret != 0) || (report == NULL)) {
        run_explain_end(capture, complaint, DAQIRI_FLOW_COMPLAINT_MAX);
    }
    if (complaint[0] != '\0') {
        ret = ((ret != 0) && WIFEXITED(capture->status) &&
               (WEXITSTATUS(capture->status) == DAQIRI_EXIT_APART)) ?
              DAQIRI_EXIT_APART : -1;
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
    run_add(&command, "-list");
    run_capture(&command, time_limit, &at_once, report_p, complaint);
    list = json_object_get(*report_p, "transports");
    return (json_array_size(list) > 0) ? 0 : -1;
}
