/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * `daqiri serve`: options, clients and their lines (serve.c), and the runs of a
 * sweep (serve_flow.c). Each client is served in a process of its own.
 */

#ifndef DAQIRI_SERVE_H
#define DAQIRI_SERVE_H

#include "net.h"
#include "report.h"

#include <stdint.h>

typedef struct daqiri_serve_opts {
    daqiri_format_t format;
    const char      *speaker;
    const char      *listen_on;
    uint64_t        count;     /* of clients; 0: no bound */
    double          timeout;   /* s without anything from a client */
    const char      *device;   /* NULL: TCP only */
    unsigned        port;
    int             gid_index;
    unsigned        traffic_class;
    /* of the client of this process, asked for as it comes: of a connection
     * that broke the system tells neither */
    char            local_addr[DAQIRI_NET_NAME_MAX];
    char            remote_addr[DAQIRI_NET_NAME_MAX];
} daqiri_serve_opts_t;

/* One line on stdout; takes the report. Returns whether that was "ok". */
int daqiri_serve_say(const daqiri_serve_opts_t *opts, const char *test,
                     json_t *report);

/* Runs until the client has no more, or one fails. Returns whether all were
 * good. */
int daqiri_serve_flows(const daqiri_serve_opts_t *opts, int fd,
                       const char *version);

#endif
