/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every part needs: the log, the clock, random numbers.
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
/* One sentence on stderr, "softverbs: ..." */
void sv_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
