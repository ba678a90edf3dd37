/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options of an interface, as UCX has read them.
 *
 * Threads: any; nothing changes after reading.
 */
#ifndef UCT_DAQIRI_CONFIG_H
#define UCT_DAQIRI_CONFIG_H

#include "daqiri.h"

typedef struct {
    uct_iface_config_t super;
    unsigned           sq_depth;
    unsigned long      cq_len;       /* UCS_ULUNITS_AUTO, UCS_ULUNITS_INF    */
    unsigned           signal_every;
    unsigned           rx_buffers;
    unsigned           rx_window, rx_window_start;
    unsigned           tx_buffers;
    int                tx_batch;     /* ucs_on_off_auto_value_t              */
    double             tx_batch_timeout; /* seconds                          */
    size_t             seg_size;
    unsigned           max_inline;
    unsigned           max_sge;
    unsigned           poll_batch;
    double             rnr_timeout;  /* seconds                              */
    double             ack_timeout;  /* seconds                              */
    unsigned           retry_count;
    double             conn_timeout; /* seconds                              */
    double             conn_retry;   /* seconds                              */
    int                recovery;     /* yes or no                            */
    int                stats;        /* yes or no                            */
    double             recovery_timeout; /* seconds                          */
    unsigned long      max_qps;      /* UCS_ULUNITS_AUTO, UCS_ULUNITS_INF    */
    double             idle_timeout; /* seconds                              */
    double             stall_timeout, stuck_timeout, keepalive; /* seconds   */
    int                gid_index;    /* -1: choose                           */
    unsigned           traffic_class;
    unsigned           service_level;
    double             latency, rdma_overhead; /* seconds; -1: auto          */
} uct_daqiri_iface_config_t;

extern const uct_daqiri_option_t uct_daqiri_md_options[];
extern const uct_daqiri_option_t uct_daqiri_iface_options[];

/* UCS_OK, or UCS_ERR_INVALID_PARAM after saying which option, and its range. */
ucs_status_t
uct_daqiri_config_check(const uct_daqiri_iface_config_t *config);

#endif
