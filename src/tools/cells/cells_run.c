/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/answer.h"
#include "tools/base/exit_status.h"
#include "tools/base/interval.h"
#include "tools/base/stop.h"
#include "tools/base/verdict.h"
#include "tools/cells/cells.h"
#include "tools/cells/flow_run.h"
#include "tools/job/job.h"

#include <string.h>

/* s beyond what the messages take: devices open, peers are found. */
#define RUN_SPARE 60.0
/* s for a run that is asked to stop, to tell what it has. */
#define RUN_GRACE 10.0

static double run_number(const json_t *report, const char *key)
{
    return json_number_value(json_object_get(report, key));
}

static void run_take(daqiri_cells_run_t *run, json_t *report, int is_ok,
                     const char *complaint)
{
    daqiri_failure_t failure = {.stage = "datapath"};

    run->report = report;
    run->is_ok  = is_ok;
    daqiri_report_bool(report, "ok", is_ok);
    if (is_ok) {
        daqiri_report_text(report, "error", NULL);
    } else if (daqiri_report_find(report, "failure_class") == NULL) {
        daqiri_fail(&failure, DAQIRI_CLASS_LOCAL, "%s", complaint);
        daqiri_failure_report(&failure, report);
    } else {
        daqiri_report_text(report, "error", complaint);
    }
    run->gbps      = run_number(report, "gbps");
    run->rate      = run_number(report, "messages_per_s");
    run->deviation = run_number(report, "deviation_percent");
    run->messages  = run_number(report, "received");
}

/* Whether a run would only find again that the other end is on another fabric. */
static int run_is_apart(const daqiri_cells_peer_t *peer, const char *transport)
{
    return peer->is_apart && (strcmp(transport, "tcp") != 0) &&
           daqiri_job_needs_device(daqiri_flow_transport_name(transport));
}

static void run_note_apart(daqiri_cells_peer_t *peer, const char *complaint)
{
    peer->is_apart = 1;
    snprintf(peer->apart, sizeof(peer->apart), "%s", complaint);
}

/* Between hosts: a connection before it, and afterwards the server's word that
 * it is ready for the next one. */
static int run_between_hosts(daqiri_cells_peer_t *peer, daqiri_flow_run_t *flow,
                             const daqiri_capture_wait_t *wait,
                             json_t **report_p, char *complaint)
{
    daqiri_failure_t apart = {.stage = "connect"};
    int ret;

    if (run_is_apart(peer, flow->transport)) {
        *report_p = json_object();
        daqiri_fail(&apart, DAQIRI_CLASS_OTHER_FABRIC, "%s", peer->apart);
        daqiri_failure_report(&apart, *report_p);
        snprintf(complaint, DAQIRI_FLOW_COMPLAINT_MAX, "%s", peer->apart);
        return -1;
    }
    if (daqiri_cells_peer_connect(peer) != 0) {
        *report_p = json_object();
        daqiri_failure_report(&peer->failure, *report_p);
        snprintf(complaint, DAQIRI_FLOW_COMPLAINT_MAX, "%.500s",
                 peer->failure.text);
        return -1;
    }
    flow->fd = peer->fd;
    ret      = daqiri_flow_run(flow, wait, report_p, complaint);
    if ((ret == 0) && (daqiri_cells_peer_ready(peer) != 0)) {
        ret = -1;
        snprintf(complaint, DAQIRI_FLOW_COMPLAINT_MAX, "%.500s",
                 peer->failure.text);
    }
    if (ret == DAQIRI_EXIT_APART) {
        run_note_apart(peer, complaint);
    }
    if (ret != 0) {
        daqiri_cells_peer_close(peer); /* who knows what is under way there */
    }
    return ret;
}

/* ---- while it goes on ---- */

typedef struct run_watch {
    const daqiri_cells_opts_t *opts;
    void   (*tick)(void *arg);
    void   *arg;
    json_t *intervals; /* NULL: nobody wants them */
} run_watch_t;

static void run_tick(void *arg)
{
    const run_watch_t *watch = arg;

    watch->tick(watch->arg);
}

/* What a person is to do. */
static void run_ask(const daqiri_cells_opts_t *opts, const json_t *object)
{
    const char *word = daqiri_report_find_text(object, "word");

    if (word != NULL) {
        fprintf(stderr, "%s: give the other side this word, and enter its word "
                "here:\n%s\n", opts->speaker, word);
    } else {
        fprintf(stderr, "%s: ready; press Enter when the other side is ready, too, the "
                "client last\n", opts->speaker);
    }
}

static int run_take_line(void *arg, char *line)
{
    run_watch_t *watch = arg;
    json_t *object;
    int is_taken;

    daqiri_answer_next(&line, &object);
    if ((object != NULL) && daqiri_answer_take(object, DAQIRI_ANSWER_HAND)) {
        run_ask(watch->opts, object);
        json_decref(object);
        return 1;
    }
    is_taken = (object != NULL) && daqiri_answer_take(object, DAQIRI_ANSWER_INTERVAL);
    if (is_taken && (watch->intervals != NULL)) {
        json_array_append(watch->intervals, object);
        if (watch->opts->format == DAQIRI_FORMAT_TABLE) {
            daqiri_interval_print(object);
        }
    }
    json_decref(object);
    return is_taken;
}

/* Returns 0, or -1 if it was asked to stop: the run is what it was. */
static int run_make(const daqiri_cells_opts_t *opts,
                    const daqiri_cells_row_t *row, daqiri_cells_run_t *run,
                    daqiri_cells_peer_t *peer, void (*tick)(void *arg),
                    void *arg)
{
    run_watch_t watch = {opts, tick, arg, (opts->interval > 0) ? json_array() : NULL};
    const daqiri_capture_wait_t wait = {RUN_GRACE, run_tick, &watch, run_take_line,
                                        NULL, opts->by_hand != NULL};
    daqiri_flow_run_t flow = {
        .device     = opts->device,
        .transport  = row->transport,
        .pattern    = row->pattern,
        .size       = row->size,
        .window     = row->window,
        .seconds    = opts->duration,
        .gbps       = row->is_paced ? row->gbps : 0,
        .fd         = -1,
        .interval   = opts->interval,
        .iters      = opts->iters,
        .setup      = opts->setup,
        .verbs      = opts->verbs,
        .is_settled = opts->is_settled,
        .by_hand    = opts->by_hand,
        .patience   = opts->patience,
        .time_limit = 1.5 * opts->duration + RUN_SPARE
    };
    char complaint[DAQIRI_FLOW_COMPLAINT_MAX];
    json_t *report;
    int ret;

    ret = (opts->connect_to == NULL) ?
          daqiri_flow_run(&flow, &wait, &report, complaint) :
          run_between_hosts(peer, &flow, &wait, &report, complaint);
    if ((ret == DAQIRI_EXIT_APART) && !peer->is_apart) {
        run_note_apart(peer, complaint); /* by hand */
    }
    if (daqiri_stop_asked() && (ret != 0) && !opts->is_single) {
        json_decref(watch.intervals);
        json_decref(report);
        return -1;
    }
    run_take(run, report, ret == 0, complaint);
    daqiri_report_set(report, "intervals", (watch.intervals != NULL) ?
                      watch.intervals : json_null());
    return 0;
}

int daqiri_cells_run(const daqiri_cells_opts_t *opts, daqiri_cells_row_t *row,
                     daqiri_cells_peer_t *peer, void (*tick)(void *arg),
                     void *arg)
{
    if (run_make(opts, row, &row->runs[row->run_count], peer, tick,
                 arg) != 0) {
        return -1;
    }
    ++row->run_count;
    return 0;
}

/* What is kept of one that counts for nothing. */
static json_t *run_former(const daqiri_cells_run_t *run, double no_cpu,
                          double far)
{
    json_t *former = json_object();

    daqiri_report_real(former, "gbps", run->gbps);
    daqiri_report_set(former, "no_cpu_percent",
                      (no_cpu >= 0) ? json_real(no_cpu) : json_null());
    daqiri_report_set(former, "far_percent",
                      (far >= 0) ? json_real(far) : json_null());
    daqiri_report_set(former, "line_us", (far >= 0) ?
                      json_real(daqiri_cells_line(run) / 1e3) : json_null());
    return former;
}

int daqiri_cells_run_again(const daqiri_cells_opts_t *opts,
                           const daqiri_cells_row_t *row,
                           daqiri_cells_run_t *run, double no_cpu, double far,
                           daqiri_cells_peer_t *peer,
                           void (*tick)(void *arg), void *arg)
{
    daqiri_cells_run_t next;
    json_t *formers;

    if (run_make(opts, row, &next, peer, tick, arg) != 0) {
        return -1;
    }
    formers = json_object_get(run->report, "instead_of");
    formers = (formers != NULL) ? json_incref(formers) : json_array();
    json_array_append_new(formers, run_former(run, no_cpu, far));
    daqiri_report_set(next.report, "instead_of", formers);
    json_decref(run->report);
    *run = next;
    return 0;
}
