/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What the clients of `daqiri serve` may ask for: memory, all of them together,
 * and time. A client asks with the terms of its test, in the process that
 * serves it; what each has is in memory that those processes share.
 */

#ifndef DAQIRI_QUOTA_H
#define DAQIRI_QUOTA_H

#include "tools/base/failure.h"

#include <stddef.h>
#include <stdint.h>

typedef struct daqiri_quota {
    uint64_t max_memory;   /* bytes */
    double   max_duration; /* s */
    uint64_t *taken;       /* bytes that the client in each place has; shared */
    size_t   places;
    size_t   place;        /* the caller's */
} daqiri_quota_t;

/* Memory for so many places, or NULL. */
uint64_t *daqiri_quota_share(size_t places);
void daqiri_quota_unshare(uint64_t *taken, size_t places);

/* A test with messages of this size, for so long; 0 s: it is not said. In place
 * of what this client has had before. Returns 0, or -1 and a failure. Without a
 * quota all is granted. */
int daqiri_quota_take(const daqiri_quota_t *quota, uint64_t size,
                      double seconds, daqiri_failure_t *failure);

#endif
