/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/progress.h"

#include "tools/base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROGRESS_FIRST_NS 2000000000ull
#define PROGRESS_EVERY_NS 500000000ull

void daqiri_progress_start(daqiri_progress_t *progress)
{
    memset(progress, 0, sizeof(*progress));
    progress->start_ns = daqiri_now_ns();
    progress->next_ns  = isatty(STDERR_FILENO) ?
                         progress->start_ns + PROGRESS_FIRST_NS : UINT64_MAX;
}

void daqiri_progress_show(daqiri_progress_t *progress, uint64_t now_ns,
                          const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "\r%.0f s: ",
            (double)(now_ns - progress->start_ns) / 1e9);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\033[K");
    fflush(stderr);
    va_end(args);
    progress->is_shown = 1;
    progress->next_ns  = now_ns + PROGRESS_EVERY_NS;
}

void daqiri_progress_end(daqiri_progress_t *progress)
{
    if (progress->is_shown) {
        fprintf(stderr, "\r\033[K");
        fflush(stderr);
    }
    progress->is_shown = 0;
    progress->next_ns  = UINT64_MAX;
}
