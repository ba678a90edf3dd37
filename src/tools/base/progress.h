/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Progress on stderr, if that is a terminal: nothing in the first 2 s, then a
 * line that is written anew twice a second, and is gone at the end. Cheap
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
void daqiri_progress_show(daqiri_progress_t *progress, uint64_t now_ns,
                          const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void daqiri_progress_end(daqiri_progress_t *progress);

#endif
