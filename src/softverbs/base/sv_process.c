/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes, as /proc shows them.
 */
#include "softverbs/base/sv_process.h"
#include "softverbs/base/sv_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Field 2, the name, may contain anything. So parsing starts at the last
 * parenthesis. */
int sv_process_stat(int pid, char *state_p, uint64_t *start_time_p)
{
    char path[32], text[512];
    char *p;
    ssize_t len;
    int fd, field;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }

    errno = EPROTO; /* unless read() says more */
    len   = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (len <= 0) {
        return -1;
    }

    text[len] = '\0';
    p         = strrchr(text, ')');
    if (p == NULL) {
        return -1;
    }

    *state_p = p[2];
    for (field = 2; (field < 22) && (p != NULL); ++field) {
        p = strchr(p + 1, ' ');
    }
    if (p == NULL) {
        return -1;
    }

    *start_time_p = strtoull(p + 1, NULL, 10);
    return 0;
}

int sv_process_lives(int pid, uint64_t start_time)
{
    uint64_t found;
    char state;

    if (sv_process_stat(pid, &state, &found) != 0) {
        /* ESRCH: it ended after open() */
        return ((errno == ENOENT) || (errno == ESRCH)) ? 0 : -1;
    }

    return (found == start_time) && (state != 'Z') && (state != 'X');
}

uint64_t sv_pid_namespace(void)
{
    struct stat st;

    return (stat("/proc/self/ns/pid", &st) == 0) ? st.st_ino : 0;
}

/* Start time and pid both grow. So the next process in a slot has another id,
 * even if it started within the same clock tick. 0 means unlocked. */
uint32_t sv_lock_id(const struct sv_shm_head *head)
{
    uint32_t id = (head->slot << 20) |
                  ((uint32_t)(head->start_time + head->pid) & 0xfffff);

    return (id != 0) ? id : 1;
}
