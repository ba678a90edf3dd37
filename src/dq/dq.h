/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every dq_ file shares. This folder is pure logic, so that tests can prove
 * it: it includes libc headers only, keeps no state of its own, never reads a clock,
 * never allocates, never prints. Time and randomness come in as arguments.
 */
#ifndef DQ_H
#define DQ_H

#include <stddef.h>
#include <stdint.h>

#if DQ_DEBUG
#include <assert.h>
/* Our own invariants, in debug builds only. */
#define DQ_ASSERT(_cond) assert(_cond)
#else
#define DQ_ASSERT(_cond) ((void)sizeof(_cond))
#endif

#define DQ_STATIC_ASSERT(_cond, _why) _Static_assert(_cond, _why)

#define DQ_LIKELY(_cond)   __builtin_expect(!!(_cond), 1)
#define DQ_UNLIKELY(_cond) __builtin_expect(!!(_cond), 0)

/*
 * Least credits in a window that work. One is kept for a grant, and a grant
 * uses a credit itself: with a window of 2, two ends at full load hand each
 * other the same credit to and fro for ever, and no data moves.
 */
enum { DQ_WINDOW_MIN = 3 };

static inline uint32_t dq_min(uint32_t a, uint32_t b)
{
    return (a < b) ? a : b;
}

#endif
