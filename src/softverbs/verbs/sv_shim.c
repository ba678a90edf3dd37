/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands in for a device file.
 *
 * Some programs believe in a device only if /dev/infiniband/<name> is a
 * character device that they may read and write. There is none, and making one
 * takes root. So the two calls with which they ask are answered here, for those
 * paths. All other paths go to the kernel.
 */
#include "softverbs/base/sv_limits.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/verbs/sv_ibv.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* C libraries before 2.33 have no symbol `stat`. Programs built there call
 * this. */
SV_EXPORT int __xstat(int version, const char *path, struct stat *st);

static bool sv_is_device_path(const char *path)
{
    static const char begin[] = "/dev/infiniband/" SV_DEVICE;
    const char *number;

    if ((path == NULL) || (strncmp(path, begin, sizeof(begin) - 1) != 0)) {
        return false;
    }
    number = path + sizeof(begin) - 1;
    return (number[0] >= '0') && (number[0] < '0' + (int)sv_device_count()) &&
           (number[1] == '\0');
}

SV_EXPORT int stat(const char *path, struct stat *st)
{
    if (!sv_is_device_path(path)) {
        return fstatat(AT_FDCWD, path, st, 0);
    }

    memset(st, 0, sizeof(*st));
    st->st_mode  = S_IFCHR | 0666;
    st->st_nlink = 1;
    return 0;
}

SV_EXPORT int __xstat(int version, const char *path, struct stat *st)
{
    (void)version;
    return stat(path, st);
}

SV_EXPORT int access(const char *path, int mode)
{
    return sv_is_device_path(path) ? 0 : faccessat(AT_FDCWD, path, mode, 0);
}
