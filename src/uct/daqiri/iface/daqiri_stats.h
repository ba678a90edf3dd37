/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters. Their owner writes them, and anybody may read them at any time.
 *
 * Threads: open, close and sample are progress. Each counter has one writing thread.
 */
#ifndef UCT_DAQIRI_STATS_H
#define UCT_DAQIRI_STATS_H

#include "daqiri.h"
#include "dq/dq_sq.h"
#include "dq/dq_stats.h"
#include "dq/dq_wire.h"

/* 64-bit words, each with a name in daqiri_stats.c. */
typedef struct {
    uint64_t am_tx_bytes, am_short, am_bcopy, am_zcopy;
    uint64_t put_short, put_bcopy, put_zcopy, get_bcopy, get_zcopy, rma_bytes;
    uint64_t atomics;
    uint64_t preconnect;
    uint64_t am_rx, am_rx_bytes, am_unhandled;
    uint64_t conns, conns_up, conns_closed;
    uint64_t credit_frames_tx, credit_frames_rx;
    uint64_t windows_widened;
    uint64_t windows_recalled;
    uint64_t credits_returned;
    uint64_t idle_closes;
    uint64_t idle_reopens;
    uint64_t idle_unanswered;
    uint64_t qp_waits;
    uint64_t qps_refused;      /* async                                      */
    uint64_t slots_grown;
    uint64_t refused[DQ_ADMIT_LAST];
    uint64_t refused_no_buffer;
    uint64_t rx_dropped[DQ_WIRE_LAST];
    uint64_t rx_duplicates, rx_out_of_order;
    uint64_t tx_errors, tx_flushed, rx_flushed;
    uint64_t recvs_refused;    /* calls                                      */
    uint64_t stray_completions, posts_refused, posts_enomem;
    uint64_t retries_kept, retries_posted; /* daqiri_retry.h                     */
    uint64_t batches, batched, batches_late; /* under the batch's lock        */
    uint64_t qp_failures, recoveries, replayed, replay_delivered;
    uint64_t stalls, stuck, markers, probes, liveness_probes, unresponsive, events;
    uint64_t frames_tx, frames_rx, frames_dup, frames_unknown, frames_crowded,
             frames_unheard, frames_delayed, frames_flooded, frames_repeated;
    uint64_t conns_forged;
    uint64_t ud_remade, ud_refused;
    uint64_t frames_dropped[DQ_WIRE_LAST];
} uct_daqiri_counters_t;

/* Values that are sampled now and then: also 64-bit words with names. */
typedef struct {
    uint64_t sampled_at_ns;
    uint64_t posted, retired;  /* work requests of all QPs                   */
    uint64_t sq_in_use, cq_len;
    uint64_t credits, oldest_ns;
    uint64_t rx_total, rx_free, rx_posted, rx_taken, rx_held;
    uint64_t rx_promised, rx_overcommit, rx_overrun;
    uint64_t tx_buffers, tx_buffers_out;
    uint64_t conns_open;
    uint64_t rnr_timer_ns, ack_timeout_ns; /* of the last QP; async          */
} uct_daqiri_gauges_t;

typedef struct {
    uct_daqiri_counters_t count;
    uct_daqiri_gauges_t   gauge;
} uct_daqiri_values_t;

/* The file that has these, or private memory if there can be no file. */
typedef struct {
    dq_stats_header_t *map;
    int               fd;      /* locked; -1: no file                        */
    char              path[DQ_STATS_FILE_MAX];
    pid_t             owner;   /* who may remove it; a child may not         */
    uint64_t          posted, retired; /* of conns that are over             */
    uint64_t          taken;   /* places for peers, a bit each               */
    ucs_list_link_t   link;    /* of all interfaces of the process           */
} uct_daqiri_stats_t;

/* Makes iface->count, and the file if possible. */
ucs_status_t uct_daqiri_stats_open(uct_daqiri_iface_t *iface, int is_wanted);
void uct_daqiri_stats_close(uct_daqiri_iface_t *iface);
/* Lets the file be read, when the interface is open. */
void uct_daqiri_stats_publish(uct_daqiri_iface_t *iface);
/* Called when a conn gets its first QP, and when it is closed. Progress. */
void uct_daqiri_stats_add_conn(uct_daqiri_conn_t *conn);
void uct_daqiri_stats_remove_conn(uct_daqiri_conn_t *conn);
/* Brings the gauges up to date. Progress. */
void uct_daqiri_stats_sample(uct_daqiri_iface_t *iface);
/* Writes the counters of a closing interface as text into DAQIRI_STATS_DIR. */
void uct_daqiri_stats_write(uct_daqiri_iface_t *iface);

#endif
