/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A TCP test, both ends of it: `daqiri tcp` and `daqiri serve`.
 *
 * After HELLO and the client's terms come the messages, with nothing around
 * them. The client ends its own by closing its half of the connection; the
 * server then tells what it has received, as its last frame.
 *
 *   stream     client to server
 *   pingpong   each message is sent back
 *   duplex     both send all the time; the server until the client ends
 */

#ifndef DAQIRI_TCP_H
#define DAQIRI_TCP_H

#include "tools/base/failure.h"
#include "tools/base/hist.h"
#include "tools/base/interval.h"
#include "tools/base/progress.h"
#include "tools/peer/peer.h"
#include "tools/peer/quota.h"

#include <jansson.h>
#include <stdint.h>

typedef struct daqiri_tcp {
    /* in */
    int      fd;
    int      is_client;
    uint32_t pattern;      /* daqiri_peer_pattern_t; the client's */
    uint64_t size;         /* bytes of a message; the client's */
    double   duration;     /* s; the client's */
    double   timeout;      /* s without a byte */
    daqiri_interval_t interval; /* its every and is_shown */
    const daqiri_quota_t *quota; /* of the server; NULL: no bounds */
    /* out */
    daqiri_failure_t failure;
    char     peer_version[DAQIRI_PEER_WORD_MAX];
    uint64_t sent, received; /* bytes */
    uint64_t peer_received;  /* bytes; the client is told */
    uint64_t elapsed_ns;
    double   cpu_percent;  /* of one processor, of this process */
    int      is_interrupted;
    daqiri_hist_t hist;    /* round trips */
    /* between */
    uint8_t  *out, *in;    /* a message each */
    uint64_t end_ns;       /* when the client stops to send */
    daqiri_progress_t progress;
} daqiri_tcp_t;

/* All of a test on a connection; on the server, after both HELLOs. Returns 0,
 * or -1 and test->failure. */
int daqiri_tcp_run(daqiri_tcp_t *test);

/* The report of a test, for "tcp" or "serve". */
json_t *daqiri_tcp_report(daqiri_tcp_t *test, const char *command);

/* "stream", "pingpong", "duplex": index 0 is the pattern 1. */
extern const char *const daqiri_tcp_patterns[3];

#endif
