/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A token bucket over all bytes of a run: it fills at the pace from the start,
 * holds any number of tokens and begins with one message. So a message that
 * went late makes the next ones no later, and what has gone by any moment is
 * the pace times that moment, up to one message.
 *
 * Pure arithmetic: the caller reads the clock. 2^53 ns are 104 days.
 */

#ifndef DAQIRI_BUCKET_H
#define DAQIRI_BUCKET_H

#include <stddef.h>
#include <stdint.h>

typedef struct daqiri_bucket {
    double ns_per_message; /* 0: no pace */
} daqiri_bucket_t;

/* gbps, 10^9 bits a second, 0: no pace; size in bytes. */
void daqiri_bucket_init(daqiri_bucket_t *bucket, double gbps, size_t size);

/* When message k (0 is the first) may go, in ns after the start. */
double daqiri_bucket_due_ns(const daqiri_bucket_t *bucket, uint64_t k);

/* How many messages may have gone by then. UINT64_MAX without a pace. */
uint64_t daqiri_bucket_allowed(const daqiri_bucket_t *bucket,
                               uint64_t past_ns);

#endif
