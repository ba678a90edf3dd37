/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Ctrl-C, the clock, and a line of progress for who waits at a terminal.
 *
 * The first SIGINT, SIGTERM or SIGHUP asks to stop: what was measured is
 * reported. A second one ends the program as if it had not been caught, unless
 * it comes within a second: one Ctrl-C may arrive twice, for timeout(1) signals
 * its child and then the whole group, and a shell may do so, too.
 */

#ifndef DAQIRI_STOP_H
#define DAQIRI_STOP_H

#include <stdint.h>
#include <sys/types.h>

/* Signals so soon after the first one are part of it. */
#define DAQIRI_STOP_GRACE_NS 1000000000ull

/* Catches the signals from now on, in this process and those it forks. System
 * calls that wait are interrupted by them (EINTR). */
void daqiri_stop_catch(void);

/* The number of the signal that asked to stop, or 0. */
int daqiri_stop_asked(void);

/* Tells a child of the caller that the caller was asked to stop. A terminal may
 * have told the child as well, at any time: this never counts as the second. */
void daqiri_stop_tell(pid_t pid);

/* Whether a signal that comes now ends the program; pure. first_ns is when the
 * first one came (daqiri_now_ns()), 0 if none has. */
int daqiri_stop_is_second(uint64_t first_ns, uint64_t now_ns);

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
