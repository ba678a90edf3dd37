/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What a job needs in its environment so that UCX, Open MPI and MPICH take
 * the transport that was asked for, on the device that was chosen.
 */

#ifndef DAQIRI_JOB_H
#define DAQIRI_JOB_H

#include "tools/base/env_list.h"
#include "tools/job/ucx.h"
#include "tools/rdma/devices.h"

enum { DAQIRI_RAILS_MAX = 4 };

/* The port of a device. */
typedef struct daqiri_job_port {
    char name[DAQIRI_DEVICE_NAME_MAX];
    unsigned port;
} daqiri_job_port_t;

typedef struct daqiri_job_device {
    char name[DAQIRI_DEVICE_NAME_MAX]; /* empty: no RDMA device */
    unsigned port;
    int is_soft;
    unsigned others;                   /* that a job uses beside it: more rails */
    daqiri_job_port_t other[DAQIRI_RAILS_MAX - 1];
} daqiri_job_device_t;

/* Whether any transport of this UCX_TLS list runs on an RDMA device. */
int daqiri_job_needs_device(const char *tls);

/* Whether any of them goes over the host's own network. */
int daqiri_job_has_network(const char *tls);

/* Whether daqiri is one of them. */
int daqiri_job_uses_plugin(const char *tls);

/* Where the plugin is, PATH_MAX long. Returns 0 or, when it is missing or not for
 * programs of this system, -1 and a sentence. */
int daqiri_job_find_plugin(char *path, char *why, size_t size);

/* LD_PRELOAD as it is with the device in it: the caller's to free. Returns 0, or an
 * exit status after one sentence. */
int daqiri_job_preload(char **preload_p, const daqiri_job_device_t *device,
                       const char *speaker);

/* For a job that loads this UCX; all zero: any. Returns 0 or, when a library is
 * missing, an exit status after one sentence on stderr with `speaker` before it. */
int daqiri_job_env(daqiri_env_list_t *env_list, const char *tls,
                   const daqiri_job_device_t *device, const daqiri_ucx_t *ucx,
                   const char *speaker);

#endif
