/* SPDX-License-Identifier: BSD-3-Clause */
/* The log, the clock, random numbers, files. */
#include "softverbs/base/sv_util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <time.h>

void sv_log(const char *format, ...)
{
    char line[1280];
    va_list ap;

    va_start(ap, format);
    vsnprintf(line, sizeof(line), format, ap);
    va_end(ap);
    fprintf(stderr, "softverbs: %s\n", line);
}

uint64_t sv_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + ts.tv_nsec;
}

uint64_t sv_random(void)
{
    static atomic_uint_fast64_t count;
    uint64_t value;

    /* The kernel's generator is ready long before any program of ours runs. The
     * fallback only has to differ from one call to the next. */
    if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != sizeof(value)) {
        value = (sv_now_ns() + atomic_fetch_add(&count, 1)) *
                0x9e3779b97f4a7c15ull;
    }
    return value;
}

int sv_reserve(int fd, uint64_t offset, uint64_t bytes)
{
    int ret;

    do {
        ret = fallocate(fd, 0, (off_t)offset, (off_t)bytes);
    } while ((ret != 0) && (errno == EINTR));
    return ret;
}

int sv_lock(int fd)
{
    int ret;

    do {
        ret = flock(fd, LOCK_EX);
    } while ((ret != 0) && (errno == EINTR));
    return ret;
}
