/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/flow/bucket.h"

void daqiri_bucket_init(daqiri_bucket_t *bucket, double gbps, size_t size)
{
    bucket->ns_per_message = (gbps > 0) ? (double)size * 8 / gbps : 0;
}

double daqiri_bucket_due_ns(const daqiri_bucket_t *bucket, uint64_t k)
{
    return (double)k * bucket->ns_per_message;
}

uint64_t daqiri_bucket_allowed(const daqiri_bucket_t *bucket,
                               uint64_t past_ns)
{
    double messages;

    if (bucket->ns_per_message <= 0) {
        return UINT64_MAX;
    }
    messages = (double)past_ns / bucket->ns_per_message + 1;
    return (messages < 1e18) ? (uint64_t)messages : UINT64_MAX;
}
