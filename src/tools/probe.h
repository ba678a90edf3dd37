/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The parts of `daqiri probe`: verbs (probe_verbs.c), UCX and the MPIs
 * (probe_ucx.c), and what is told of UCX by a process of its own
 * (probe_child.c).
 */

#ifndef DAQIRI_PROBE_H
#define DAQIRI_PROBE_H

#include "capture.h"
#include "rc.h"
#include "ucx.h"

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

/* UCX with the plugin, and each MPI's starter, on that device (NULL: none). The UCX
 * is that of this program, or NULL: the one that the loader finds. */
void daqiri_probe_ucx(json_t *report, const char *device, unsigned port,
                      const char *program, double timeout,
                      const char *speaker);
void daqiri_probe_mpi(json_t *report, const char *device, unsigned port,
                      double timeout, const char *speaker);

/* ---- the program that those two start, and daqiri run ---- */

typedef struct daqiri_probe_child {
    const char *what;    /* ucx, version, plugin or limits */
    const char *libraries[DAQIRI_UCX_LIBRARIES]; /* NULL: as the loader finds it */
    const char *plugin;  /* to be loaded into that UCX, or NULL */
} daqiri_probe_child_t;

/* Says it, as one line on stdout. Returns an exit status. */
int daqiri_probe_child(const daqiri_probe_child_t *child);

/* What its line begins with, among what libraries say. */
#define DAQIRI_PROBE_MARK "daqiri-probe: "

/* Its command line, with the NULL at the end, and what it has said: the caller's, or
 * NULL. The words are the UCX's and the plugin's (NULL: none), and one of this
 * function's own. */
#define DAQIRI_PROBE_CHILD_WORDS 16
void daqiri_probe_child_command(char **command, const char *what,
                                const daqiri_ucx_t *ucx, const char *plugin);
json_t *daqiri_probe_child_answer(daqiri_capture_t *capture);

/* {"memlock_bytes", "memlock_max_bytes"} of this process; null: no limit. */
json_t *daqiri_probe_limits(void);

#endif
