/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Ctrl-C, the clock, and a line of progress for who waits at a terminal.
 *
 * The first SIGINT, SIGTERM or SIGHUP asks to stop: what was measured is
 * reported. A second one ends the program as if it had not been caught.
 */

#ifndef DAQIRI_STOP_H
#define DAQIRI_STOP_H

#include <stdint.h>

/* Catches the signals from now on, in this process and those it forks. System
 * calls that wait are interrupted by them (EINTR). */
void daqiri_stop_catch(void);

/* The number of the signal that asked to stop, or 0. */
int daqiri_stop_asked(void);

/* From now on the caller asks at points of its own, between messages: what
 * waits for the peer (net.h) is bounded by its deadline alone. */
void daqiri_stop_own(void);
int daqiri_stop_is_owned(void);

/* Monotonic, in ns. */
uint64_t daqiri_now_ns(void);

/* Processor time of this process so far, the kernel's included, in s. */
double daqiri_cpu_s(void);

/*
 * Progress on stderr, if that is a terminal: nothing in the first 2 s, then a
 * line that is written anew twice a second, and is gone at the end. Cheap
 * enough to be called often; one thread.
 */
typedef struct daqiri_progress {
    uint64_t start_ns;
    uint64_t next_ns;  /* UINT64_MAX: never */
    int      is_shown;
} daqiri_progress_t;

void daqiri_progress_start(daqiri_progress_t *progress);
static inline int daqiri_progress_is_due(const daqiri_progress_t *progress,
                                         uint64_t now_ns)
{
    return now_ns >= progress->next_ns;
}
void daqiri_progress_show(daqiri_progress_t *progress, uint64_t now_ns,
                          const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void daqiri_progress_end(daqiri_progress_t *progress);

#endif
