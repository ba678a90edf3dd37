/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What a job needs in its environment so that UCX, Open MPI and MPICH take
 * the transport that was asked for, on the device that was chosen.
 */

#ifndef DAQIRI_RUN_ENV_H
#define DAQIRI_RUN_ENV_H

#include "devices.h"
#include "settings.h"

typedef struct daqiri_run_device {
    char name[DAQIRI_DEVICE_NAME_MAX]; /* empty: no RDMA device */
    unsigned port;
    int is_soft;
} daqiri_run_device_t;

/* Whether any transport of this UCX_TLS list runs on an RDMA device. */
int daqiri_run_needs_device(const char *tls);

/* Whether any of them goes over the host's own network. */
int daqiri_run_has_network(const char *tls);

/* Returns 0 or, when a library is missing, an exit status after one sentence
 * on stderr with `speaker` before it. */
int daqiri_run_env(daqiri_settings_t *settings, const char *tls,
                   const daqiri_run_device_t *device, const char *speaker);

#endif
