/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What may never come back, in a child under a watchdog. A verb goes into a
 * kernel driver, and one that is wedged can hold a process for ever, beyond
 * any signal; the child is then killed, and left behind if it does not die, and
 * the command goes on and says so.
 *
 * The child tells its result as JSON.
 */

#ifndef DAQIRI_WATCH_H
#define DAQIRI_WATCH_H

#include "tools/base/progress.h"

#include <jansson.h>

typedef enum daqiri_watch_end {
    DAQIRI_WATCH_DONE,     /* there is a result */
    DAQIRI_WATCH_TIMEOUT,  /* the step took too long; the child was killed */
    DAQIRI_WATCH_DIED,     /* a signal, or an end without a result */
    DAQIRI_WATCH_NO_CHILD  /* none could be started */
} daqiri_watch_end_t;

typedef struct daqiri_watch {
    /* in */
    double timeout; /* s */
    daqiri_progress_t *progress; /* shown when it takes long, or NULL */
    const char *what; /* of the progress */
    /* out */
    daqiri_watch_end_t end;
    json_t *result; /* of DONE; the caller's */
    int    error;   /* errno of NO_CHILD */
    int    status;  /* of DIED, as from waitpid() */
} daqiri_watch_t;

/* Runs in the child; returns the result, which is given away. */
typedef json_t *(*daqiri_watch_func_t)(void *arg);

/* Returns watch->end. The child flushes stdio and ends with _exit(). */
daqiri_watch_end_t daqiri_watch_run(daqiri_watch_t *watch,
                                    daqiri_watch_func_t func, void *arg);

/* One clause for people about a watch that is not DONE, such as "it did not
 * come back within 10 s". */
void daqiri_watch_text(const daqiri_watch_t *watch, double timeout, char *text,
                       size_t length);

#endif
