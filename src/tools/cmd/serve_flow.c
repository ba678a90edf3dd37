/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The other end of `daqiri sweep`, `drop-curve` and `tcp`. A connection is for
 * many runs: the client's terms, then whatever both ends of daqiri-flow have to
 * say to each other, then READY from here. DONE in place of terms ends it.
 */

#include "tools/base/clock.h"
#include "tools/base/stop.h"
#include "tools/cells/flow_run.h"
#include "tools/cmd/cmd.h"
#include "tools/cmd/serve.h"
#include "tools/peer/net.h"

#include <stdio.h>
#include <string.h>

/* A client has to start a program before its next run, and its machine may have
 * others to do: so many times the patience. */
#define SERVE_START_FACTOR 6

/* s beyond what the messages take, and for a run that is asked to stop. */
#define SERVE_RUN_SPARE 60.0
#define SERVE_GRACE 2.0

static const char *const serve_patterns[DAQIRI_PEER_PATTERN_LAST] = {
    [DAQIRI_PEER_STREAM] = "stream",
    [DAQIRI_PEER_ECHO]   = "pingpong",
    [DAQIRI_PEER_DUPLEX] = "duplex"
};

static int serve_is_tcp(const char *transport)
{
    return (strcmp(transport, "tcp") == 0) ||
           (strcmp(transport, "uct:tcp") == 0);
}

/* Of what is neither, nothing is claimed. */
static const char *serve_datapath(const char *transport)
{
    return serve_is_tcp(transport) ? "tcp" :
           ((strstr(transport, "verbs") != NULL) ||
            (strstr(transport, "daqiri") != NULL)) ? "rdma" : NULL;
}

/* ---- the report ---- */

static json_t *serve_new_report(const char *version)
{
    static const char *const unknown[] = {
        "datapath", "transport", "device", "pattern", "size", "window",
        "duration_s", "target_gbps"
    };
    json_t *report = daqiri_report_new("serve");
    size_t i;

    for (i = 0; i < sizeof(unknown) / sizeof(unknown[0]); ++i) {
        daqiri_report_set(report, unknown[i], json_null());
    }
    daqiri_report_text(report, "role", "server");
    daqiri_report_text(report, "peer_version", version);
    daqiri_report_int(report, "messages", 0);
    daqiri_report_int(report, "bytes", 0);
    daqiri_report_real(report, "elapsed_s", 0);
    daqiri_report_real(report, "gbps", 0);
    daqiri_report_real(report, "messages_per_s", 0);
    daqiri_report_real(report, "cpu_percent", 0);
    daqiri_report_bool(report, "interrupted", daqiri_stop_asked() != 0);
    return report;
}

static void serve_report_terms(json_t *report, const daqiri_flow_run_t *run)
{
    daqiri_report_text(report, "transport", run->transport);
    daqiri_report_text(report, "device", serve_is_tcp(run->transport) ? NULL :
                       run->device);
    daqiri_report_text(report, "pattern", run->pattern);
    daqiri_report_int(report, "size", (long long)run->size);
    daqiri_report_int(report, "window", (long long)run->window);
    daqiri_report_set(report, "duration_s", (run->seconds > 0) ?
                      json_real(run->seconds) : json_null());
    daqiri_report_set(report, "target_gbps", (run->gbps > 0) ?
                      json_real(run->gbps) : json_null());
}

static void serve_report_figures(json_t *report, const daqiri_flow_run_t *run,
                                 const json_t *flow)
{
    double messages = json_number_value(json_object_get(flow, "messages"));
    double seconds  = json_number_value(json_object_get(flow, "elapsed_s"));
    double rate     = (seconds > 0) ? messages / seconds : 0;

    daqiri_report_text(report, "datapath", serve_datapath(run->transport));
    daqiri_report_int(report, "messages", (long long)messages);
    daqiri_report_int(report, "bytes",
                      (long long)(messages * (double)run->size));
    daqiri_report_real(report, "elapsed_s", seconds);
    daqiri_report_real(report, "messages_per_s", rate);
    daqiri_report_real(report, "gbps", rate * (double)run->size * 8e-9);
    daqiri_report_set(report, "cpu_percent",
                      json_incref(json_object_get(flow, "cpu_percent")));
    daqiri_report_set(report, "interrupted",
                      json_incref(json_object_get(flow, "interrupted")));
}

/* What daqiri-flow has told of its failure, or else how it ended. */
static void serve_take_failure(const json_t *flow, const char *complaint,
                               daqiri_failure_t *failure)
{
    const char *class_name = daqiri_report_find_text(flow, "failure_class");
    const char *stage      = daqiri_report_find_text(flow, "stage");
    const char *error      = daqiri_report_find_text(flow, "error");

    error = (error != NULL) ? error : complaint;
    if ((class_name == NULL) || (stage == NULL)) {
        failure->stage = "datapath";
        daqiri_fail(failure, DAQIRI_CLASS_LOCAL, "%s", complaint);
        return;
    }
    failure->stage = stage; /* of the object, which outlives the failure */
    daqiri_fail(failure, daqiri_class_of_name(class_name), "%s", error);
}

/* ---- a run ---- */

static int serve_run(const daqiri_flow_run_t *run, json_t *report,
                     daqiri_failure_t *failure)
{
    static const char *const notes[] = {"stages", "local", "remote"};
    const daqiri_capture_wait_t wait = {.grace = SERVE_GRACE};
    char complaint[DAQIRI_FLOW_COMPLAINT_MAX];
    json_t *flow;
    size_t i;
    int ret;

    if ((run->device == NULL) && !serve_is_tcp(run->transport)) {
        failure->stage = "control";
        return daqiri_fail(failure, DAQIRI_CLASS_NO_DEVICE, "this server has "
                           "no RDMA device, it answers TCP only");
    }
    ret = daqiri_flow_run(run, &wait, &flow, complaint);
    if (ret == 0) {
        serve_report_figures(report, run, flow);
    } else {
        serve_take_failure(flow, complaint, failure);
    }
    for (i = 0; i < sizeof(notes) / sizeof(notes[0]); ++i) {
        if (json_object_get(flow, notes[i]) != NULL) {
            json_object_set(report, notes[i], json_object_get(flow, notes[i]));
        }
    }
    json_object_set_new(report, "flow", flow);
    return ret;
}

static void serve_take_terms(const daqiri_serve_opts_t *opts, int fd,
                             const daqiri_peer_frame_t *terms,
                             daqiri_flow_run_t *run)
{
    *run = (daqiri_flow_run_t){
        .device    = opts->device,
        .transport = terms->flow_terms.transport,
        .pattern   = serve_patterns[terms->flow_terms.pattern],
        .size      = terms->flow_terms.size,
        .window    = terms->flow_terms.window,
        .seconds   = (double)terms->flow_terms.duration_ns * 1e-9,
        .gbps      = (double)terms->flow_terms.pace * 1e-9,
        .fd        = fd,
        .is_second = 1,
        .verbs     = opts->verbs,
        .is_settled = 1,
        .setup     = (opts->setup > 0) ? opts->setup :
                     SERVE_START_FACTOR * opts->timeout,
        .patience  = opts->timeout
    };
    run->time_limit = ((run->seconds > 0) ? 1.5 * run->seconds : opts->max_duration) +
                      SERVE_RUN_SPARE + SERVE_START_FACTOR * opts->timeout;
    if (strcmp(run->pattern, "stream") != 0) {
        run->gbps = 0; /* it has none */
    }
}

/* In place of what that has led to. */
static void serve_stopped(const daqiri_serve_opts_t *opts,
                          daqiri_failure_t *failure)
{
    const char *stage = failure->stage;

    memset(failure, 0, sizeof(*failure));
    failure->stage = stage;
    daqiri_fail(failure, DAQIRI_CLASS_INTERRUPTED, "%s",
                (daqiri_now_ns() >= opts->end_ns) ?
                "its time on this server is over (--max-duration)" :
                "the server was asked to stop");
}

/* Returns 1 when there are no more runs, 0, or -1 and a failure. */
static int serve_next_terms(const daqiri_serve_opts_t *opts, int fd,
                            daqiri_peer_frame_t *frame,
                            daqiri_failure_t *failure)
{
    const uint64_t deadline_ns =
        daqiri_now_ns() +
        (uint64_t)(SERVE_START_FACTOR * opts->timeout * 1e9);

    failure->stage = "control";
    if (daqiri_stop_asked() ||
        (daqiri_net_recv_frame(fd, frame, deadline_ns, failure) != 0)) {
        if (!daqiri_stop_asked()) {
            return -1;
        }
        serve_stopped(opts, failure);
        daqiri_net_abort(fd, failure);
        return 1; /* nothing of the client's has failed here */
    }
    if (frame->kind == DAQIRI_PEER_DONE) {
        return 1;
    }
    return (frame->kind == DAQIRI_PEER_FLOW_TERMS) ? 0 :
           daqiri_fail(failure, DAQIRI_CLASS_PROTOCOL, "the peer sent \"%s\" "
                       "where the terms of a run were to come",
                       daqiri_peer_kind_name(frame->kind));
}

/* One run and its line. Returns 1 when there are no more, 0, or -1;
 * -DAQIRI_EXIT_APART if the client is on another fabric. */
static int serve_next(const daqiri_serve_opts_t *opts, int fd,
                      const char *version)
{
    daqiri_peer_frame_t ready = {.kind = DAQIRI_PEER_READY,
                                 .ready = {.stage = "done"}};
    daqiri_failure_t failure  = {0};
    daqiri_peer_frame_t terms;
    daqiri_flow_run_t run;
    json_t *report;
    int ret;

    ret = serve_next_terms(opts, fd, &terms, &failure);
    if (ret > 0) {
        return 1;
    }
    report = serve_new_report(version);
    if (ret == 0) {
        serve_take_terms(opts, fd, &terms, &run);
        serve_report_terms(report, &run);
        ret = daqiri_quota_take(&opts->quota, run.size, run.seconds, &failure);
        ret = (ret == 0) ? serve_run(&run, report, &failure) : ret;
        if ((ret != 0) && daqiri_stop_asked()) {
            serve_stopped(opts, &failure); /* before there was anything to measure */
        }
    }
    if (ret == 0) {
        failure.stage = "done";
        ret = daqiri_net_send_frame(fd, &ready, daqiri_now_ns() +
                                    (uint64_t)(opts->timeout * 1e9), &failure);
    }
    if (ret != 0) {
        daqiri_net_abort(fd, &failure);
    }
    daqiri_failure_report(&failure, report);
    json_object_del(report, "flow"); /* the failure has its stage from there */
    daqiri_report_bool(report, "ok", ret == 0);
    return daqiri_serve_say(opts, "flow", report) ? 0 :
           (failure.class_id == DAQIRI_CLASS_INTERRUPTED) ? 1 :
           (ret == DAQIRI_EXIT_APART) ? -DAQIRI_EXIT_APART : -1;
}

void daqiri_serve_refused(const daqiri_serve_opts_t *opts, const char *version,
                         const daqiri_failure_t *failure)
{
    json_t *report = serve_new_report((version[0] != '\0') ? version : NULL);

    daqiri_failure_report(failure, report);
    daqiri_report_bool(report, "ok", 0);
    daqiri_serve_say(opts, NULL, report);
}

int daqiri_serve_flows(const daqiri_serve_opts_t *opts, int fd,
                       const char *version)
{
    int ret;

    do {
        ret = serve_next(opts, fd, version);
    } while (ret == 0);
    return (ret >= 0) ? DAQIRI_EXIT_OK : (ret == -DAQIRI_EXIT_APART) ?
           DAQIRI_EXIT_APART : DAQIRI_EXIT_FAILED;
}
