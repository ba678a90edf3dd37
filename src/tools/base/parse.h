/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Numbers as people write them on a command line. Each function takes the
 * whole text or nothing: it returns 0 and writes *value_p, or returns -1.
 */

#ifndef DAQIRI_PARSE_H
#define DAQIRI_PARSE_H

#include <stddef.h>
#include <stdint.h>

/* 0, 4096, 64K, 4M, 1G: powers of 1024. */
int daqiri_parse_size(const char *text, size_t *value_p);

/* Decimal, or hexadecimal with 0x. */
int daqiri_parse_u64(const char *text, uint64_t *value_p);

/* The number of a process, from 1 on. */
int daqiri_parse_pid(const char *text, uint32_t *value_p);

/* Seconds, greater than zero: 20, 0.5. */
int daqiri_parse_seconds(const char *text, double *value_p);

/* The longest time that any option takes: a week, in seconds. */
#define DAQIRI_DURATION_MAX (7 * 24 * 3600.0)

/* A time greater than zero with its unit: 10s, 500ms, 250us, 2m, 1h; without a
 * unit, seconds. *value_p is in seconds. */
int daqiri_parse_duration(const char *text, double *value_p);

/* The other way, for people: "64 KiB", "1000 B". Returns text, as long as
 * DAQIRI_SIZE_TEXT_MAX. */
#define DAQIRI_SIZE_TEXT_MAX 24
char *daqiri_size_text(uint64_t value, char *text, size_t length);

#endif
