/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What figures say, as pure functions: no clock, no device, no file. A row is
 * what was measured several times under the same conditions; each time is a
 * run.
 */

#ifndef DAQIRI_VERDICT_H
#define DAQIRI_VERDICT_H

#include <jansson.h>
#include <stddef.h>

/* The counter of an end: for how many ns its processor did not run. It is not
 * there if nobody has looked. */
#define DAQIRI_NO_CPU "no_cpu_ns"

/* The counter of an end: for how many ns its processor ran something else while
 * it was ready. Not there if the kernel does not tell. */
#define DAQIRI_WAITED "waited_ns"

/* The counter of an end: how long all of it took, in which these were counted. */
#define DAQIRI_TOOK "took_ns"

/* Of who sends first: how long a line of memory takes from its processor to
 * that of the other end and back, the median of its looks; and for how long it
 * took DAQIRI_FAR times as long, or longer. Not there if nobody has looked. */
#define DAQIRI_LINE     "line_ns"
#define DAQIRI_LINE_FAR "line_far_ns"
#define DAQIRI_FAR      2

/* Lines of two runs that differ by more than this factor are not of one machine:
 * two threads of a core, two cores, two groups of them have 60, 85 and 340 ns
 * (AMD EPYC), and at 77 ns 8-byte messages have 0.88 of their rate at 62. */
#define DAQIRI_LINES_ALIKE 1.2

/* Whether run i is below `share` (0 to 1) of the median of all. A single run
 * cannot collapse. */
int daqiri_verdict_collapsed(const double *values, size_t count, size_t i,
                             double share);

/* Whether the machine explains that a run had only this share of what it should
 * have had: with the processors that it got it could not have had more than
 * `possible`, and that is at least half of what is missing. Watching them costs up
 * to 2 %, so less than 5 % explains nothing. */
int daqiri_verdict_is_noise(double share, double possible);

/* Message rates by size, ascending. As messages get shorter the rate must not
 * fall: returns the index of the longer message with the highest rate, if it
 * is higher than that of row i by more than `tolerance` (0.05); or -1. Rates
 * of 0 are missing, and no argument. */
int daqiri_verdict_falls_behind(const double *rates, size_t count, size_t i,
                                double tolerance);

/* Whether the pace was missed; both in percent. */
int daqiri_verdict_pace_missed(double deviation, double tolerance);

/* The counters that set a slow run apart: those that count, for each message,
 * more than twice as much as in any of the others. `bad` and `others` are
 * objects of groups of counters, {"tx": {"stalls": 3}}. Writes up to four, the
 * most telling first: "tx.stalls 3 (0 else)". Empty when there are none. */
void daqiri_verdict_explain(const json_t *bad, double messages,
                            const json_t *const *others,
                            const double *others_messages, size_t count, char *text,
                            size_t length);

#endif
