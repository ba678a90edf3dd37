/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port's own counters of errors, in sysfs.
 *
 * Threads: any; calls the kernel.
 */
#ifndef UCT_DAQIRI_HW_H
#define UCT_DAQIRI_HW_H

#include "daqiri.h"

/* The port's counters of errors, as they were at some moment. */
typedef struct {
    int        is_known;
    ucs_time_t read_at;
    uint64_t   values[UCT_DAQIRI_HW_COUNTERS]; /* UINT64_MAX: there is none  */
} uct_daqiri_hw_t;

/* Reads what there is, to compare with later. Calls the kernel. */
void uct_daqiri_hw_begin(uct_daqiri_iface_t *iface);
/* The same, for a conn that is up for the first time. Async. */
void uct_daqiri_hw_mark(uct_daqiri_conn_t *conn);
/* What has grown since, in words: NULL if nothing has. Calls the kernel. */
const char *uct_daqiri_hw_changes(const uct_daqiri_iface_t *iface,
                                  const uct_daqiri_hw_t *since, char *buf,
                                  size_t size);

#endif
