/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Assertions of builds with DQ_DEBUG (debug, asan, tsan): which side of the plugin
 * runs a function, the locks that it needs, and the invariants of objects. Other
 * builds have none.
 *
 * A thread is on the async side while it runs one of the plugin's handlers of events,
 * and else on the progress side. Its id would not do. UCX's thread also progresses an
 * interface that nobody else drives. With UCS_THREAD_MODE_SERIALIZED or MULTI each
 * call of the user's may come from another thread.
 *
 * An interface that is being opened or closed has one thread, which plays both sides.
 * uct_daqiri_iface_t.is_open says when it has two.
 */
#ifndef UCT_DAQIRI_ASSERT_H
#define UCT_DAQIRI_ASSERT_H

#include <pthread.h>

#if DQ_DEBUG

/* Prints the condition that does not hold, and aborts. */
void uct_daqiri_assert_fail(const char *file, int line, const char *what)
        __attribute__((noreturn));
/* Handlers call these first and last. */
void uct_daqiri_enter_async(void);
void uct_daqiri_leave_async(void);
int uct_daqiri_is_async(void);

#define uct_daqiri_assert(_condition)                                \
    do {                                                             \
        if (!(_condition)) {                                         \
            uct_daqiri_assert_fail(__FILE__, __LINE__, #_condition); \
        }                                                            \
    } while (0)

#define uct_daqiri_set_open(_iface, _is_open) \
    __atomic_store_n(&(_iface)->is_open, _is_open, __ATOMIC_RELAXED)

#define uct_daqiri_assert_async(_iface)     \
    uct_daqiri_assert(uct_daqiri_is_async() || \
                      !__atomic_load_n(&(_iface)->is_open, __ATOMIC_RELAXED))

#define uct_daqiri_assert_progress(_iface)   \
    uct_daqiri_assert(!uct_daqiri_is_async() || \
                      !__atomic_load_n(&(_iface)->is_open, __ATOMIC_RELAXED))

/* Somebody holds the mutex; a pthread_mutex_t does not tell who. */
#define uct_daqiri_assert_held(_mutex) \
    uct_daqiri_assert(pthread_mutex_trylock(_mutex) != 0)

#else

#define uct_daqiri_enter_async()              ((void)0)
#define uct_daqiri_leave_async()              ((void)0)
#define uct_daqiri_assert(_condition)         ((void)sizeof(_condition))
#define uct_daqiri_set_open(_iface, _is_open) ((void)(_iface))
#define uct_daqiri_assert_async(_iface)       ((void)(_iface))
#define uct_daqiri_assert_progress(_iface)    ((void)(_iface))
#define uct_daqiri_assert_held(_mutex)        ((void)(_mutex))

#endif

#endif
