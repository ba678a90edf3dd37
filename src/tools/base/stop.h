/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Ctrl-C.
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

/* Waits so long, or until the user asks to stop. */
void daqiri_stop_pause(double seconds);

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

#endif
