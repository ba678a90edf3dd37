/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small inline functions of UCX whose headers are not installed, or not in every version:
 * arithmetic, queues, time, completions. Names and meanings are UCX's.
 */
#ifndef UCT_DAQIRI_UCX_INLINE_H
#define UCT_DAQIRI_UCX_INLINE_H

#include "ucx_calls.h"

#include <limits.h>
#include <time.h>

/* ---- Arithmetic, which the installed headers had up to some version ---- */

#ifndef ucs_padding
#define ucs_padding(_n, _alignment) \
    (((_alignment) - (_n) % (_alignment)) % (_alignment))
#endif

#ifndef ucs_align_up
#define ucs_align_up(_n, _alignment) ((_n) + ucs_padding(_n, _alignment))
#endif

#ifndef ucs_align_down_pow2
#define ucs_align_down_pow2(_n, _alignment) ((_n) & ~((_alignment) - 1))
#endif

#ifndef ucs_align_up_pow2
#define ucs_align_up_pow2(_n, _alignment) \
    ucs_align_down_pow2((_n) + (_alignment) - 1, _alignment)
#endif

#ifndef ucs_is_pow2
#define ucs_is_pow2(_n) (((_n) > 0) && (((_n) & ((_n) - 1)) == 0))
#endif

/* ---- A FIFO: the head points to the first element and to the last link ---- */

static inline void ucs_queue_head_init(ucs_queue_head_t *queue)
{
    queue->head  = NULL;
    queue->ptail = &queue->head;
}

static inline int ucs_queue_is_empty(const ucs_queue_head_t *queue)
{
    return queue->ptail == &queue->head;
}

static inline void ucs_queue_push(ucs_queue_head_t *queue,
                                  ucs_queue_elem_t *elem)
{
    *queue->ptail = elem;
    queue->ptail  = &elem->next;
}

static inline void ucs_queue_push_head(ucs_queue_head_t *queue,
                                       ucs_queue_elem_t *elem)
{
    if (ucs_queue_is_empty(queue)) {
        queue->ptail = &elem->next;
    }
    elem->next  = queue->head;
    queue->head = elem;
}

static inline ucs_queue_elem_t *
ucs_queue_pull_non_empty(ucs_queue_head_t *queue)
{
    ucs_queue_elem_t *elem = queue->head;

    if (queue->ptail == &elem->next) {
        queue->ptail = &queue->head;
    }
    queue->head = elem->next;
    return elem;
}

/* Takes what @a iter points to out of the queue; @a iter then points to the next. */
static inline void ucs_queue_del_iter(ucs_queue_head_t *queue,
                                      ucs_queue_iter_t iter)
{
    ucs_queue_elem_t *elem = *iter;

    if (queue->ptail == &elem->next) {
        queue->ptail = iter;
        *iter        = NULL;
    } else {
        *iter = elem->next;
    }
}

static inline void ucs_queue_splice(ucs_queue_head_t *queue,
                                    ucs_queue_head_t *others)
{
    if (!ucs_queue_is_empty(others)) {
        *queue->ptail = others->head;
        queue->ptail  = others->ptail;
        ucs_queue_head_init(others);
    }
}

#define ucs_queue_pull_elem_non_empty(_queue, _type, _member) \
    ucs_container_of(ucs_queue_pull_non_empty(_queue), _type, _member)

/* The element may be taken out by ucs_queue_del_iter() meanwhile. */
#define ucs_queue_for_each_safe(_elem, _iter, _queue, _member) \
    for (_iter = &(_queue)->head; \
         (_iter != (_queue)->ptail) && \
         (_elem = ucs_container_of(*_iter, ucs_typeof(*_elem), _member), 1); \
         _iter = (*_iter == &(_elem)->_member) ? &(*_iter)->next : _iter)

/* ---- Time, in ticks of UCX's clock ---- */

#define UCS_TIME_INFINITY ULLONG_MAX
#define UCS_TIME_AUTO     (UCS_TIME_INFINITY - 1)

/* Used if the processor's clock cannot be, or until that is known. */
ucs_time_t uct_daqiri_ucx_slow_time(void);

static inline ucs_time_t ucs_get_time(void)
{
#if defined(__x86_64__)
    if (ucs_unlikely(ucs_arch_x86_enable_rdtsc != UCS_YES)) {
        return uct_daqiri_ucx_slow_time();
    }
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;

    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
    return ticks;
#else
    return uct_daqiri_ucx_slow_time();
#endif
}

static inline ucs_time_t ucs_time_from_sec(double sec)
{
    return (ucs_time_t)(sec * ucs_get_cpu_clocks_per_sec() + 0.5);
}

static inline ucs_time_t ucs_time_from_msec(double msec)
{
    return ucs_time_from_sec(msec / 1e3);
}

static inline ucs_time_t ucs_time_from_usec(double usec)
{
    return ucs_time_from_sec(usec / 1e6);
}

static inline double ucs_time_to_sec(ucs_time_t ticks)
{
    return ticks / ucs_get_cpu_clocks_per_sec();
}

static inline double ucs_time_to_msec(ucs_time_t ticks)
{
    return ucs_time_to_sec(ticks) * 1e3;
}

static inline double ucs_time_to_nsec(ucs_time_t ticks)
{
    return ucs_time_to_sec(ticks) * 1e9;
}

static inline void ucs_sec_to_timespec(double sec, struct timespec *ts)
{
    ts->tv_sec  = (time_t)sec;
    ts->tv_nsec = (long)((sec - ts->tv_sec) * 1e9);
}

/* ---- Of UCT ---- */

static inline size_t uct_iov_get_length(const uct_iov_t *iov)
{
    return iov->count * iov->length;
}

/* One of the operations that it waits for is over. */
static UCS_F_ALWAYS_INLINE void
uct_invoke_completion(uct_completion_t *comp, ucs_status_t status)
{
    if (ucs_unlikely(status != UCS_OK) && (comp->status == UCS_OK)) {
        comp->status = status;
    }
    if (--comp->count == 0) {
        comp->func(comp);
    }
}

/* The log level for a connection that has failed. @a handled is what UCP's error handler
 * returned. */
static inline ucs_log_level_t
uct_base_iface_failure_log_level(uct_base_iface_t *iface, ucs_status_t handled,
                                 ucs_status_t status)
{
    if (handled != UCS_OK) {
        return UCS_LOG_LEVEL_FATAL;
    }
    return ((status == UCS_ERR_ENDPOINT_TIMEOUT) ||
            (status == UCS_ERR_CONNECTION_RESET))
                   ? (ucs_log_level_t)iface->failure_level
                   : UCS_LOG_LEVEL_ERROR;
}

#endif
