/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UCX's async thread after fork(). UCX 1.13 starts one thread for the process and counts
 * its users. A child inherits the count, but not the thread. Handlers that the child
 * registers are never called. They also enter the event set that the child shares with
 * its parent, whose thread takes them for its own.
 *
 * UCX does not tell whether its thread runs, and in the child its locks may be held for
 * ever. So the parent looks for the thread before the fork.
 */
#include "daqiri.h"

#include <dirent.h>

#define UCT_DAQIRI_ASYNC_NAME "async" /* as UCX calls its thread */

static int uct_daqiri_is_watching;
static int uct_daqiri_had_thread; /* at the fork that is under way */
static int uct_daqiri_is_stranded;


static int uct_daqiri_is_async_thread(const char *id)
{
    char name[32];

    return (id[0] != '.') &&
           (ucs_read_file_str(name, sizeof(name), 1, "/proc/self/task/%s/comm",
                              id) > 0) &&
           (strcmp(ucs_strtrim(name), UCT_DAQIRI_ASYNC_NAME) == 0);
}


static int uct_daqiri_has_async_thread(void)
{
    DIR *dir = opendir("/proc/self/task");
    const struct dirent *entry;
    int has = 0;

    while (!has && (dir != NULL) && ((entry = readdir(dir)) != NULL)) {
        has = uct_daqiri_is_async_thread(entry->d_name);
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return has;
}


static void uct_daqiri_before_fork(void)
{
    int error = errno;

    uct_daqiri_had_thread = uct_daqiri_has_async_thread();
    errno                 = error;
}


static void uct_daqiri_in_child(void)
{
    uct_daqiri_is_stranded |= uct_daqiri_had_thread;
}


/* Called when UCX asks for devices. Until then UCX is not in use, and a fork costs
 * nothing. */
void uct_daqiri_compat_watch_forks(void)
{
    if (!__atomic_exchange_n(&uct_daqiri_is_watching, 1, __ATOMIC_RELAXED)) {
        (void)pthread_atfork(uct_daqiri_before_fork, NULL,
                             uct_daqiri_in_child);
    }
}


int uct_daqiri_compat_async_runs(void)
{
    return !uct_daqiri_is_stranded;
}
