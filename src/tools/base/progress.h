/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Progress on stderr, if that is a terminal: nothing in the first 2 s, then a
 * line that is written anew twice a second, and is gone at the end. Where the part
 * that is done is known, it has a bar and the time that is left. Cheap
 * enough to be called often; one thread.
 */

#ifndef DAQIRI_PROGRESS_H
#define DAQIRI_PROGRESS_H

#include <stdint.h>

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

/* `done` is from 0 to 1; less than 0: not known. */
void daqiri_progress_show(daqiri_progress_t *progress, uint64_t now_ns,
                          double done, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* How a bar looks: "[#####---------------]  25 %, 12 s left: "; pure. Nothing, if that is
 * not known. */
#define DAQIRI_PROGRESS_BAR_MAX 64
void daqiri_progress_bar(double done, double seconds, char *text);

void daqiri_progress_end(daqiri_progress_t *progress);

#endif
