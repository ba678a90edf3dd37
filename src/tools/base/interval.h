/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What was measured in each interval of a test (--interval): a line on stdout at once,
 * for who reads tables, and an array for the report. A child tells its intervals to the
 * process that started it (answer.h), and keeps none. One thread.
 */

#ifndef DAQIRI_INTERVAL_H
#define DAQIRI_INTERVAL_H

#include <jansson.h>
#include <stdint.h>

typedef struct daqiri_interval {
    /* in */
    double   every;   /* s; 0: there are none */
    int      is_shown;
    int      is_told; /* to the process that started this one */
    /* between */
    uint64_t start_ns, last_ns;
    uint64_t next_ns; /* UINT64_MAX: never */
    uint64_t messages, bytes; /* up to last_ns */
    json_t   *list;
} daqiri_interval_t;

/* The first one begins now; before that, none is due. */
void daqiri_interval_start(daqiri_interval_t *interval, uint64_t now_ns);

static inline int daqiri_interval_is_due(const daqiri_interval_t *interval,
                                         uint64_t now_ns)
{
    return (interval->start_ns > 0) && (now_ns >= interval->next_ns);
}

/* One is over; messages and bytes are those of the whole test so far. */
void daqiri_interval_note(daqiri_interval_t *interval, uint64_t now_ns,
                          uint64_t messages, uint64_t bytes);

/* The test is over: what came after the last interval is one, too. */
void daqiri_interval_end(daqiri_interval_t *interval, uint64_t now_ns,
                         uint64_t messages, uint64_t bytes);

/* The line of one. */
void daqiri_interval_print(const json_t *row);

/* [{"start_s", "end_s", "messages", "messages_per_s", "gbps"}, ...], or null; the
 * caller's. */
json_t *daqiri_interval_report(daqiri_interval_t *interval);

#endif
