/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The process that opens UCX and the plugin, and tells what it finds: `daqiri`
 * itself, started again by `daqiri probe`, `daqiri run` or an MPI's starter. It may
 * die of what it opens.
 */

#ifndef DAQIRI_UCX_CHILD_H
#define DAQIRI_UCX_CHILD_H

#include "tools/base/capture.h"
#include "tools/job/ucx.h"

#include <jansson.h>

typedef struct daqiri_ucx_child {
    const char *what;    /* ucx, version, plugin or limits */
    const char *libraries[DAQIRI_UCX_LIBRARIES]; /* NULL: as the loader finds it */
    const char *plugin;  /* to be loaded into that UCX, or NULL */
} daqiri_ucx_child_t;

/* Says it, as one line on stdout. Returns an exit status. */
int daqiri_ucx_child(const daqiri_ucx_child_t *child);

/* Its command line, with the NULL at the end. The words are the UCX's and the plugin's
 * (NULL: none), and one of this function's own. */
#define DAQIRI_UCX_CHILD_WORDS 16
void daqiri_ucx_child_command(char **command, const char *what,
                              const daqiri_ucx_t *ucx, const char *plugin);

/* What it has said: the caller's, or NULL. `rest` has the lines of
 * UCX, the plugin and the loader. The text is cut. */
json_t *daqiri_ucx_child_answer(daqiri_capture_t *capture, char *rest, size_t size);

/* {"memlock_bytes", "memlock_max_bytes"} of this process; null: no limit. */
json_t *daqiri_ucx_child_limits(void);

#endif
