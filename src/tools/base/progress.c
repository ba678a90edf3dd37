/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/progress.h"

#include "tools/base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROGRESS_FIRST_NS 2000000000ull
#define PROGRESS_EVERY_NS 500000000ull

#define PROGRESS_MARKS 20

void daqiri_progress_start(daqiri_progress_t *progress)
{
    memset(progress, 0, sizeof(*progress));
    progress->start_ns = daqiri_now_ns();
    progress->next_ns  = isatty(STDERR_FILENO) ?
                         progress->start_ns + PROGRESS_FIRST_NS : UINT64_MAX;
}

void daqiri_progress_bar(double done, double seconds, char *text)
{
    char marks[PROGRESS_MARKS + 1];
    size_t filled;

    text[0] = '\0';
    if (!(done >= 0)) {
        return;
    }
    done   = (done < 1) ? done : 1;
    filled = (size_t)(done * PROGRESS_MARKS + 0.5);
    memset(marks, '#', filled);
    memset(marks + filled, '-', PROGRESS_MARKS - filled);
    marks[PROGRESS_MARKS] = '\0';
    if (done > 0) {
        snprintf(text, DAQIRI_PROGRESS_BAR_MAX, "[%s] %3.0f %%, %.0f s left: ", marks,
                 100 * done, seconds * (1 - done) / done);
    } else {
        snprintf(text, DAQIRI_PROGRESS_BAR_MAX, "[%s]   0 %%: ", marks);
    }
}

void daqiri_progress_show(daqiri_progress_t *progress, uint64_t now_ns,
                          double done, const char *format, ...)
{
    const double seconds = (double)(now_ns - progress->start_ns) / 1e9;
    char bar[DAQIRI_PROGRESS_BAR_MAX];
    va_list args;

    va_start(args, format);
    daqiri_progress_bar(done, seconds, bar);
    fprintf(stderr, "\r%.0f s: %s", seconds, bar);
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
