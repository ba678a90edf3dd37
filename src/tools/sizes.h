/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Numbers as people write them on a command line. Each function takes the
 * whole text or nothing: it returns 0 and writes *value_p, or returns -1.
 */

#ifndef DAQIRI_SIZES_H
#define DAQIRI_SIZES_H

#include <stddef.h>
#include <stdint.h>

/* 0, 4096, 64K, 4M, 1G: powers of 1024. */
int daqiri_parse_size(const char *text, size_t *value_p);

/* Decimal, or hexadecimal with 0x. */
int daqiri_parse_u64(const char *text, uint64_t *value_p);

/* Seconds, greater than zero: 20, 0.5. */
int daqiri_parse_seconds(const char *text, double *value_p);

#endif
