/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Assertions of builds with DQ_DEBUG (debug, asan, tsan): the locks that a
 * function needs, and the invariants of objects. Other builds have none.
 */
#ifndef SV_ASSERT_H
#define SV_ASSERT_H

#include <pthread.h>

#if DQ_DEBUG

/* Prints the condition that does not hold, and aborts. */
void sv_assert_fail(const char *file, int line, const char *what)
        __attribute__((noreturn));

#define sv_assert(_condition)                              \
    do {                                                   \
        if (!(_condition)) {                               \
            sv_assert_fail(__FILE__, __LINE__, #_condition); \
        }                                                  \
    } while (0)

/* This thread holds the spin lock (struct sv_spin). */
#define sv_assert_held(_spin) sv_assert(sv_spin_is_mine(_spin))

/* Somebody holds the mutex; a pthread_mutex_t does not tell who. */
#define sv_assert_mutex_held(_mutex) \
    sv_assert(pthread_mutex_trylock(_mutex) != 0)

#else

#define sv_assert(_condition)        ((void)0)
#define sv_assert_held(_spin)        ((void)0)
#define sv_assert_mutex_held(_mutex) ((void)0)

#endif

#endif
