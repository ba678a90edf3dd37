/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Runs another program and keeps what it says, within a time.
 */

#ifndef DAQIRI_CAPTURE_H
#define DAQIRI_CAPTURE_H

#include "tools/base/env_list.h"

#include <stdint.h>

#define DAQIRI_CAPTURE_MAX 65536

typedef struct daqiri_capture {
    char text[DAQIRI_CAPTURE_MAX]; /* stdout and stderr, as they came */
    int  status;                   /* as from waitpid() */
    int  is_timeout;               /* it, and its children, were killed */
    int  error;                    /* errno: it could not be started */
} daqiri_capture_t;

/* env_list, or NULL, are set for the program only. Returns 0 when it ended
 * with status 0 in time, -1 otherwise. stdin is /dev/null. */
int daqiri_capture_run(daqiri_capture_t *capture, char *const *command,
                       const daqiri_env_list_t *env_list, double timeout);

/* How to wait: tick, or NULL, is called at least twice a second; a signal that
 * asks to stop is passed on as SIGINT, and the program has `grace` seconds to
 * end by itself. take, or NULL, is handed each whole line as it comes, and may change
 * it; lines of which it returns non-zero are not kept. *until_ns, if there is one that
 * is not 0, ends the program as the timeout does; take may change it. */
typedef struct daqiri_capture_wait {
    double grace;
    void   (*tick)(void *arg);
    void   *arg;
    int    (*take)(void *arg, char *line);
    const uint64_t *until_ns; /* as daqiri_now_ns(); or NULL */
    int    has_stdin;         /* it reads ours */
} daqiri_capture_wait_t;

int daqiri_capture_run_while(daqiri_capture_t *capture, char *const *command,
                             const daqiri_env_list_t *env_list, double timeout,
                             const daqiri_capture_wait_t *wait);

#endif
