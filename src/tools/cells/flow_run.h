/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Starts daqiri-flow (flow.h) in the environment of `daqiri run`, and takes its
 * report: with both of its ends on this host, or with one of them, for a
 * connection on which both hosts have said who they are.
 */

#ifndef DAQIRI_FLOW_RUN_H
#define DAQIRI_FLOW_RUN_H

#include "tools/base/capture.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* What only raw verbs have. */
typedef struct daqiri_flow_verbs {
    unsigned port;          /* 0: the first that is active */
    int      gid_index;     /* -1: as daqiri chooses it */
    unsigned mtu;           /* 0: the port's */
    unsigned traffic_class;
} daqiri_flow_verbs_t;

#define DAQIRI_FLOW_VERBS_INIT {.gid_index = -1}

typedef struct daqiri_flow_run {
    const char *device;    /* as for `daqiri run`; NULL: for a transport that
                              uses none */
    const char *transport;
    const char *pattern;
    size_t     size;
    uint64_t   window;
    double     seconds;
    double     gbps;       /* 0: no pace */
    double     interval;   /* s; 0: none are told */
    uint64_t   iters;      /* round trips; 0: no bound */
    double     setup;      /* s, for each stage before the messages; 0: none is
                              watched */
    daqiri_flow_verbs_t verbs;
    int        is_settled; /* this process has the device, so raw verbs need no
                              other environment */
    const char *by_hand;   /* "client" or "server": the other end is where only
                              people reach it; NULL */
    int        fd;         /* -1: both ends are here */
    int        is_second;
    double     patience;   /* s; between hosts */
    double     time_limit; /* s, for all of it */
} daqiri_flow_run_t;

#define DAQIRI_FLOW_COMPLAINT_MAX 512
#define DAQIRI_FLOW_UCT_PREFIX "uct:" /* in front of a transport: UCX's, surely */

/* Returns the transport's name as UCX knows it, within `transport`. */
const char *daqiri_flow_transport_name(const char *transport);

/* Returns 0 when it ended well, DAQIRI_EXIT_APART if the other end is on another
 * fabric of the software device, DAQIRI_EXIT_WATCHDOG if it did not come back, or -1.
 * *report_p is what it has reported, also when it failed; of a failure it has at least
 * "stage" and "failure_class". `complaint` is why it failed, or what it, or a library,
 * has said beside its report; "" if nothing. */
int daqiri_flow_run(const daqiri_flow_run_t *run,
                    const daqiri_capture_wait_t *wait, json_t **report_p,
                    char *complaint);

/* What UCX has in the environment that this transport would have. Returns 0 and
 * {"transports": [{"name": "tcp", "device": "eth0"}, ...]}, or -1, an object and
 * why there is none. */
int daqiri_flow_list(const char *device, const char *transport,
                     double time_limit, json_t **report_p, char *complaint);

#endif
