/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * `daqiri pingpong`: the options and the report (pingpong.c), the stages
 * (pingpong_run.c), and the values that two people hand over where there is no
 * TCP (pingpong_hand.c).
 */

#ifndef DAQIRI_PINGPONG_H
#define DAQIRI_PINGPONG_H

#include "tools/base/report.h"
#include "tools/base/watch.h"
#include "tools/peer/quota.h"
#include "tools/rdma/qp.h"

#include <stdint.h>

typedef struct daqiri_pingpong {
    daqiri_format_t format;
    const char      *speaker;       /* "daqiri pingpong" */
    const char      *listen_on;     /* one of these four */
    const char      *connect_to;
    const char      *by_hand;       /* "server" or "client" */
    const char      *peer_version;  /* or a client has come to the server ... */
    int             fd;             /* ... here, and said this */
    const char      *device;
    unsigned        port;
    int             gid_index;
    size_t          size;           /* bytes of a message */
    uint64_t        iters;          /* DAQIRI_PEER_ITERS_MAX: no bound */
    double          duration;       /* s; 0: no bound */
    unsigned        mtu;
    unsigned        traffic_class;
    int             is_uc;
    double          setup_timeout;  /* s, for each stage before the data */
    double          timeout;        /* s without any completion */
    double          interval;       /* s; 0: none */
    const daqiri_quota_t *quota;    /* of daqiri serve; NULL: no bounds */
} daqiri_pingpong_t;

/* Runs all of it under the watchdog. Returns the report, also when that had to
 * end it; *is_wedged_p says so. */
json_t *daqiri_pingpong_watched(const daqiri_pingpong_t *opts,
                                int *is_wedged_p);

/* All stages, in the child of the watchdog. Returns the report. */
json_t *daqiri_pingpong_run(const daqiri_pingpong_t *opts,
                            daqiri_watch_child_t *child);

/* A report in which nothing has happened yet. */
json_t *daqiri_pingpong_report(const daqiri_pingpong_t *opts);

/* What is measured, as far as it is known: the server is told. */
void daqiri_pingpong_report_terms(json_t *report,
                                  const daqiri_pingpong_t *opts);

/* What the other side has to know, as one word, and back; text is
 * DAQIRI_PINGPONG_WORD_MAX long. Parsing returns 0 or -1. */
#define DAQIRI_PINGPONG_WORD_MAX 128
char *daqiri_pingpong_word(const daqiri_qp_addr_t *addr, char *text);
int daqiri_pingpong_parse_word(const char *text, daqiri_qp_addr_t *addr);

/* Tells stderr our word and reads the other's from stdin. */
int daqiri_pingpong_hand_over(const daqiri_pingpong_t *opts,
                              const daqiri_qp_addr_t *local,
                              daqiri_qp_addr_t *remote,
                              daqiri_failure_t *failure);

/* Waits for a line on stdin: the other side is ready. */
int daqiri_pingpong_hand_ready(const daqiri_pingpong_t *opts,
                               daqiri_failure_t *failure);

#endif
