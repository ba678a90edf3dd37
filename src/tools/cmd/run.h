/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What the files of daqiri run share: its options, and the choice of the device.
 */

#ifndef DAQIRI_RUN_H
#define DAQIRI_RUN_H

#include "tools/base/env_print.h"
#include "tools/job/job.h"

#define RUN_SPEAKER "daqiri run"

/* Go on; anything else is a status to exit with. */
#define RUN_GO_ON (-1)

typedef struct run_opts {
    const char *device; /* auto, soft, or names with commas between */
    const char *tls;
    unsigned rails; /* devices of each rank */
    int print_env;
    daqiri_env_format_t format;
    int is_quiet;
    char **command;     /* ends with NULL; empty when there is none */
    long local_rank;    /* of the rank that this is on its host; -1: it is none */
} run_opts_t;

/* What is not wrong, for a person. */
void daqiri_run_say(const run_opts_t *opts, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Of all the ranks of a host, one says what they have in common. */
int daqiri_run_is_speaker(const run_opts_t *opts);

/* Chooses the device, and says which and why. RUN_GO_ON, or a status after a sentence. */
int daqiri_run_choose(const run_opts_t *opts, daqiri_job_device_t *chosen);

#endif
