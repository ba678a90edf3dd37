/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks inside one process, and copies of a few words.
 *
 * sv_spin guards a few dozen instructions. A thread that has to wait for long
 * gives its CPU away, because the holder may be waiting for that CPU.
 */
#ifndef SV_ATOMIC_H
#define SV_ATOMIC_H

#include "softverbs/base/sv_assert.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define sv_likely(_x)    __builtin_expect(!!(_x), 1)
#define sv_unlikely(_x)  __builtin_expect(!!(_x), 0)
#define SV_CACHE_LINE    64

struct sv_spin {
    atomic_bool held;
#if DQ_DEBUG
    _Atomic uintptr_t owner; /* the thread that holds it, or 0 */
#endif
};

static inline void sv_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

#if DQ_DEBUG
static inline void sv_spin_set_owner(struct sv_spin *spin, uintptr_t owner)
{
    atomic_store_explicit(&spin->owner, owner, memory_order_relaxed);
}

static inline bool sv_spin_is_mine(const struct sv_spin *spin)
{
    return atomic_load_explicit(&spin->owner, memory_order_relaxed) ==
           (uintptr_t)pthread_self();
}
#else
#define sv_spin_set_owner(_spin, _owner) ((void)0)
#endif

static inline bool sv_spin_try(struct sv_spin *spin)
{
    bool taken = !atomic_load_explicit(&spin->held, memory_order_relaxed) &&
                 !atomic_exchange_explicit(&spin->held, true,
                                           memory_order_acquire);

    if (taken) {
        sv_spin_set_owner(spin, (uintptr_t)pthread_self());
    }
    return taken;
}

static inline void sv_spin_lock(struct sv_spin *spin)
{
    unsigned tries = 0;

    while (!sv_spin_try(spin)) {
        if (++tries % 128 == 0) {
            sched_yield();
        } else {
            sv_relax();
        }
    }
}

static inline void sv_spin_unlock(struct sv_spin *spin)
{
    sv_assert_held(spin);
    sv_spin_set_owner(spin, 0);
    atomic_store_explicit(&spin->held, false, memory_order_release);
}

/* memcpy for what is mostly a few words: no call for up to 32 bytes. */
static inline void sv_copy(void *to, const void *from, size_t bytes)
{
    uint64_t a, b, c, d;

    if (sv_unlikely(bytes > 32) || (bytes < 8)) {
        memcpy(to, from, bytes);
        return;
    }

    /* The first and the last words; they overlap if there are few. */
    memcpy(&a, from, 8);
    memcpy(&d, (const char*)from + bytes - 8, 8);
    if (bytes > 16) {
        memcpy(&b, (const char*)from + 8, 8);
        memcpy(&c, (const char*)from + bytes - 16, 8);
        memcpy((char*)to + 8, &b, 8);
        memcpy((char*)to + bytes - 16, &c, 8);
    }
    memcpy(to, &a, 8);
    memcpy((char*)to + bytes - 8, &d, 8);
}

/* Asks for a cache line that will be written. A hint: it never faults. */
static inline void sv_prefetch_write(const void *line)
{
#if defined(__x86_64__)
    /* the builtin asks for reading only, unless built for newer CPUs */
    __asm__ __volatile__("prefetchw (%0)" : : "r"(line));
#else
    __builtin_prefetch(line, 1);
#endif
}

#endif
