/* SPDX-License-Identifier: BSD-3-Clause */

#include "cells.h"

#include "flow_run.h"

#include <string.h>

/* s beyond what the messages take: devices open, peers are found. */
#define RUN_SPARE 60.0
/* s for a run that is asked to stop, to tell what it has. */
#define RUN_GRACE 10.0
/* s that the other host may be silent. */
#define RUN_PATIENCE 5.0

static double run_number(const json_t *report, const char *key)
{
    return json_number_value(json_object_get(report, key));
}

static void run_take(daqiri_cells_run_t *run, json_t *report, int is_ok,
                     const char *complaint)
{
    run->report = report;
    run->is_ok  = is_ok;
    daqiri_report_bool(report, "ok", is_ok);
    daqiri_report_text(report, "error", is_ok ? NULL : complaint);
    run->gbps          = run_number(report, "gbps");
    run->rate          = run_number(report, "messages_per_s");
    run->deviation     = run_number(report, "deviation_percent");
    run->messages      = run_number(report, "received");
    run->former_gbps   = 0;
    run->former_no_cpu = 0;
}

/* Between hosts: a connection before it, and afterwards the server's word that
 * it is ready for the next one. */
static int run_between_hosts(daqiri_cells_peer_t *peer, daqiri_flow_run_t *flow,
                             const daqiri_capture_wait_t *wait,
                             json_t **report_p, char *complaint)
{
    int ret;

    if (daqiri_cells_peer_connect(peer) != 0) {
        *report_p = json_object();
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
    if (ret != 0) {
        daqiri_cells_peer_close(peer); /* who knows what is under way there */
    }
    return ret;
}

int daqiri_cells_run(const daqiri_cells_opts_t *opts, daqiri_cells_row_t *row,
                     daqiri_cells_peer_t *peer, void (*tick)(void *arg),
                     void *arg)
{
    const daqiri_capture_wait_t wait = {RUN_GRACE, tick, arg};
    daqiri_flow_run_t flow = {
        .device     = opts->device,
        .transport  = row->transport,
        .pattern    = row->pattern,
        .size       = row->size,
        .window     = row->window,
        .seconds    = opts->duration,
        .gbps       = row->is_paced ? row->gbps : 0,
        .fd         = -1,
        .patience   = RUN_PATIENCE,
        .time_limit = 1.5 * opts->duration + RUN_SPARE
    };
    char complaint[DAQIRI_FLOW_COMPLAINT_MAX];
    json_t *report;
    int ret;

    ret = (opts->connect_to == NULL) ?
          daqiri_flow_run(&flow, &wait, &report, complaint) :
          run_between_hosts(peer, &flow, &wait, &report, complaint);
    if (daqiri_stop_asked() && (ret != 0)) {
        json_decref(report);
        return -1;
    }
    run_take(&row->runs[row->run_count], report, ret == 0, complaint);
    ++row->run_count;
    return 0;
}

int daqiri_cells_run_again(const daqiri_cells_opts_t *opts,
                           daqiri_cells_row_t *row, daqiri_cells_peer_t *peer,
                           void (*tick)(void *arg), void *arg)
{
    daqiri_cells_run_t *run         = &row->runs[row->run_count - 1];
    const daqiri_cells_run_t former = *run;

    --row->run_count;
    if (daqiri_cells_run(opts, row, peer, tick, arg) != 0) {
        *run = former;
        ++row->run_count;
        return -1;
    }
    run->former_gbps   = former.gbps;
    run->former_no_cpu = daqiri_cells_no_cpu(&former);
    daqiri_report_set(run->report, "instead_of",
                      json_pack("{s:f, s:f}", "gbps", former.gbps,
                                "no_cpu_percent", run->former_no_cpu));
    json_decref(former.report);
    return 0;
}
