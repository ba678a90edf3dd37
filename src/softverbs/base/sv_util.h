/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every part needs: the log, the clock, random numbers, files.
 */
#ifndef SV_UTIL_H
#define SV_UTIL_H

#include <stdint.h>

#define SV_EXPORT __attribute__((visibility("default")))

static inline uint32_t sv_roundup_pow2(uint32_t value)
{
    return (value <= 1) ? 1 : 1u << (32 - __builtin_clz(value - 1));
}

uint64_t sv_now_ns(void);
uint64_t sv_random(void);
/* Reserves pages of a file in memory. 0, or -1 and errno. A signal does not end it, as
 * it ends fallocate() on many kernels. */
int sv_reserve(int fd, uint64_t offset, uint64_t bytes);
/* Waits for the lock on an open file. 0, or -1 and errno. A signal does not end it. */
int sv_lock(int fd);
/* One sentence on stderr, "softverbs: ..." */
void sv_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
