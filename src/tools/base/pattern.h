/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Test data that can be checked without having been kept.
 *
 * A buffer's contents follow from one 64-bit key, and the key from everything
 * that tells one message from another: a byte that is stale, shifted, from
 * another message or from another rank does not match. Word i of a buffer is
 * a mix of key + i, so any part of it can be checked alone. Cost: a few
 * operations for each 8 bytes, no memory. No state, so any thread may call.
 */

#ifndef DAQIRI_PATTERN_H
#define DAQIRI_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/* What makes one message different from all others of a run. */
typedef struct daqiri_pattern_id {
    uint64_t seed;
    uint64_t serial; /* counts messages of this sender to this receiver */
    uint64_t size;
    uint32_t test;
    uint32_t sender;
    uint32_t receiver;
} daqiri_pattern_id_t;

uint64_t daqiri_pattern_key(const daqiri_pattern_id_t *id);

void daqiri_pattern_fill(void *buffer, size_t length, uint64_t key);

/* Offset of the first wrong byte, or length when all are right. */
size_t daqiri_pattern_check(const void *buffer, size_t length, uint64_t key);

/* The byte that belongs at this offset. */
uint8_t daqiri_pattern_byte(size_t offset, uint64_t key);

#endif
