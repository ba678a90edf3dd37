/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The parts of `daqiri probe`: verbs (probe_verbs.c), UCX and the MPIs
 * (probe_ucx.c).
 */

#ifndef DAQIRI_PROBE_H
#define DAQIRI_PROBE_H

#include "rc.h"

#include <jansson.h>

/* What a step came to, as "result" of its row. */
#define DAQIRI_PROBE_OK      "ok"
#define DAQIRI_PROBE_FAILED  "failed"  /* and it is needed */
#define DAQIRI_PROBE_ABSENT  "absent"  /* and daqiri does without it */
#define DAQIRI_PROBE_SKIPPED "skipped"
#define DAQIRI_PROBE_TIMEOUT "timeout"

/* A row in which nothing is known yet: "name", "result", "needed", "ms",
 * "detail", "failure_class", "error". */
json_t *daqiri_probe_row(json_t *rows, const char *name, int is_needed);

/* Tries everything on this device, each in a process of its own that may take
 * `timeout` s; appends a row for each. Returns the port: the one asked for, or
 * the first that is active. */
unsigned daqiri_probe_verbs(json_t *rows, const daqiri_rc_opts_t *opts,
                            double timeout);

/* UCX with the plugin, and each MPI's starter, on that device (NULL: none). */
void daqiri_probe_ucx(json_t *report, const char *device, unsigned port,
                      double timeout, const char *speaker);
void daqiri_probe_mpi(json_t *report, const char *device, unsigned port,
                      double timeout, const char *speaker);

/* What the program says that those two start, as one line on stdout; `what` is
 * "ucx" or "limits". Returns an exit status. */
int daqiri_probe_child(const char *what);

/* {"memlock_bytes", "memlock_max_bytes"} of this process; null: no limit. */
json_t *daqiri_probe_limits(void);

#endif
