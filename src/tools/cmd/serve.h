/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * `daqiri serve`: options, clients and their lines (serve.c), who may come
 * (clients.c) and what he may have (quota.c), and runs
 * (serve_flow.c). Each client is served in a process of its own.
 */

#ifndef DAQIRI_SERVE_H
#define DAQIRI_SERVE_H

#include "tools/base/report.h"
#include "tools/cells/flow_run.h"
#include "tools/peer/net.h"
#include "tools/peer/quota.h"

#include <stdint.h>

typedef struct daqiri_serve_opts {
    daqiri_format_t format;
    const char      *speaker;
    const char      *listen_on;
    uint64_t        count;     /* of clients; 0: no bound */
    double          timeout;   /* s without anything from a client */
    double          setup;     /* s, for each stage of a run before the messages; 0:
                                  some times the timeout */
    const char      *device;   /* NULL: TCP only */
    daqiri_flow_verbs_t verbs; /* of raw verbs */
    uint64_t        max_clients, max_per_address;
    uint64_t        max_memory;   /* bytes, of all clients' messages */
    double          max_duration; /* s */
    /* of the client of this process, asked for as it comes: of a connection
     * that broke the system tells neither */
    daqiri_quota_t  quota;
    uint64_t        end_ns;    /* when its time here is over */
    char            local_addr[DAQIRI_NET_NAME_MAX];
    char            remote_addr[DAQIRI_NET_NAME_MAX];
} daqiri_serve_opts_t;

/* As `daqiri serve` has it unless told otherwise. */
void daqiri_serve_init(daqiri_serve_opts_t *opts, const char *speaker);

/* Until it is asked to stop, or has had its clients. Returns an exit status. */
int daqiri_serve_run(daqiri_serve_opts_t *opts, char **argv);

/* One line on stdout; takes the report. Returns whether that was "ok". */
int daqiri_serve_say(const daqiri_serve_opts_t *opts, const char *test,
                     json_t *report);

/* The line of a client of which nothing is known but why. */
void daqiri_serve_refused(const daqiri_serve_opts_t *opts, const char *version,
                         const daqiri_failure_t *failure);

/* Runs until the client has no more, or one fails. Returns an exit
 * status. */
int daqiri_serve_flows(const daqiri_serve_opts_t *opts, int fd,
                       const char *version);

#endif
