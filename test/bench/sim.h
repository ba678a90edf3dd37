/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many interfaces that connect to each other on a simulated network. Each connection is
 * two machines of src/dq (dq_conn), each interface has the transport's own pacing
 * (dq_pace), retries (dq_retry) and backlog (dq_backlog). Simulated are the rest of the
 * async thread, the UD queue pair, and the network:
 *
 *     program -> line -> [async thread] -> send slots -> network -> [loss]
 *                             ^                                        |
 *                             +---- backlog <---- receive ring <-------+
 *
 * An async thread does one thing at a time, and each takes its time: to receive a frame,
 * to send one, to make a queue pair, to connect it. A frame that finds no free receive
 * buffer is lost. A frame that finds no send slot waits, or is lost if nothing is paced.
 *
 * Who connects to whom is a ring: each interface with those at the same distances from
 * it, on both sides. All distances are all-to-all. A part of them, chosen by chance, is a
 * part of the work of a job that is too large for this machine. Both ends open. Or it is
 * a star: all others open a connection to interface 0.
 *
 * A connection has a record (some 300 bytes) only while it is being made. So memory grows
 * with the connections that are under way at a time. A connection that is done, or not
 * begun, costs 4 bytes.
 *
 * Equal settings give equal figures. Threads: one.
 */
#ifndef SIM_H
#define SIM_H

#include <stdint.h>

typedef struct {
    uint32_t ifaces;
    uint32_t distances; /* of the ring; 0: all; SIM_STAR                     */
    uint64_t seed;
    double   loss;      /* of a frame on the network, 0 to 1                 */
    /* what the interface is given; times in nanoseconds */
    uint32_t ring, slots, places, backlog, unproven;
    uint64_t retry, retry_most, timeout, tick, skew;
    /* what things cost, in nanoseconds */
    uint64_t latency, wire, wake, receive, send, create, connect;
    int      in_order;  /* all interfaces begin with the same peers          */
    /* without what a large job needs, to see what it is worth */
    int      no_pace, no_jitter, no_backlog, no_learning;
} sim_settings_t;

#define SIM_STAR UINT32_MAX

enum { SIM_KINDS = 7, SIM_SHARES = 4 };

typedef struct {
    uint64_t wanted, connected, failed; /* connections                       */
    uint64_t sent[SIM_KINDS];           /* frames, by kind                   */
    uint64_t frames, repeated;          /* all; sent because of a timer      */
    uint64_t lost, overrun, unsent;     /* on the network; no receive buffer;
                                           no send slot                      */
    uint64_t full;                      /* questions without room in a backlog */
    uint64_t most_waiting;              /* frames in a ring and a backlog     */
    uint64_t most_alive;                /* records at a time                  */
    uint64_t bytes;                     /* memory of the simulation           */
    double   seconds;                   /* simulated, until all is over       */
    double   took[SIM_SHARES];          /* from its first question to both ends
                                           being up: half of the connections
                                           took less; 99 %; 99.9 %; all       */
} sim_result_t;

/* What the transport has by default, and a device on which a queue pair costs 0.1 ms. */
sim_settings_t sim_defaults(void);

/* Returns 0; -1 if there is not enough memory. */
int sim_run(const sim_settings_t *settings, sim_result_t *result);

#endif
