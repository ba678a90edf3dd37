/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The parts of `daqiri probe`: verbs (probe_verbs.c), UCX and the MPIs
 * (probe_ucx.c). What is told of UCX comes from a process of its own
 * (job/ucx_child.h).
 */

#ifndef DAQIRI_PROBE_H
#define DAQIRI_PROBE_H

#include "tools/base/capture.h"
#include "tools/job/ucx.h"
#include "tools/rdma/qp.h"

#include <jansson.h>

/* What a step came to, as "result" of its row. */
#define DAQIRI_PROBE_OK      "ok"
#define DAQIRI_PROBE_FAILED  "failed"  /* and it is needed */
#define DAQIRI_PROBE_ABSENT  "absent"  /* and daqiri does without it */
#define DAQIRI_PROBE_SKIPPED "skipped"
#define DAQIRI_PROBE_TIMEOUT "timeout"

/* A row in which nothing is known yet: "name", "result", "needed", "us",
 * "detail", "failure_class", "error". */
json_t *daqiri_probe_row(json_t *rows, const char *name, int is_needed);

/* Tries everything on this device, each in a process of its own that may take
 * `timeout` s; appends a row for each. Returns the port: the one asked for, or
 * the first that is active. */
unsigned daqiri_probe_verbs(json_t *rows, const daqiri_qp_opts_t *opts,
                            double timeout);

/* UCX with the plugin, and each MPI's starter, on that device (NULL: none). The UCX
 * is that of this program, or NULL: the one that the loader finds. */
void daqiri_probe_ucx(json_t *report, const char *device, unsigned port,
                      const char *program, double timeout,
                      const char *speaker);
void daqiri_probe_mpi(json_t *report, const char *device, unsigned port,
                      double timeout, const char *speaker);

#endif
