/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments as files: names, making, clearing away.
 *
 * The names in /dev/shm are the registry. Whoever creates softverbs-<uid>.<n>
 * exclusively owns slot n. Every open first sweeps the directory: a segment
 * whose process is gone is unlinked, under a flock() on the file itself, so
 * that two sweepers cannot take away a successor of what they looked at. Until
 * its head says whose it is, a segment is locked by its maker; one that has
 * neither a head nor a lock was left by a process that was killed on the way.
 */
#include "sv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The name in field 2 may contain anything, so parsing starts at the last
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

    len = read(fd, text, sizeof(text) - 1);
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

static bool sv_process_lives(int pid, uint64_t start_time)
{
    uint64_t found;
    char state;

    if (sv_process_stat(pid, &state, &found) != 0) {
        return false;
    }

    return (found == start_time) && (state != 'Z') && (state != 'X');
}

uint64_t sv_pid_namespace(void)
{
    struct stat st;

    return (stat("/proc/self/ns/pid", &st) == 0) ? st.st_ino : 0;
}

void sv_segment_path(char *path, size_t size, uint32_t slot)
{
    snprintf(path, size, SV_SHM_DIR "/softverbs-%u.%u", (unsigned)geteuid(),
             slot);
}

/* Whether fd is still what the name says; false after somebody replaced it. */
static bool sv_segment_is_named(int fd, const char *path)
{
    struct stat by_fd, by_name;

    return (fstat(fd, &by_fd) == 0) && (lstat(path, &by_name) == 0) &&
           (by_fd.st_ino == by_name.st_ino) && (by_fd.st_dev == by_name.st_dev);
}

/* Nobody's who is alive, provided that nobody has locked it. What does not look
 * like a segment is not ours to judge. */
static bool sv_segment_is_stale(int fd)
{
    struct sv_shm_head head;
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return false;
    }
    if (st.st_size == 0) {
        return true;
    }
    if (((uint64_t)st.st_size != SV_SEG_BYTES) ||
        (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head)) ||
        ((head.magic != SV_MAGIC) && (head.magic != 0))) {
        return false;
    }
    if (atomic_load(&head.ready) == 0) {
        return true;
    }

    if (head.pid_ns != sv_pid_namespace()) {
        return false; /* cannot know from here */
    }

    return !sv_process_lives(head.pid, head.start_time);
}

static void sv_segment_sweep_one(const char *path)
{
    struct stat st;
    int fd;

    fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return;
    }

    if ((fstat(fd, &st) == 0) && S_ISREG(st.st_mode) &&
        (st.st_uid == geteuid()) && sv_segment_is_stale(fd) &&
        (flock(fd, LOCK_EX | LOCK_NB) == 0) && sv_segment_is_named(fd, path) &&
        sv_segment_is_stale(fd)) {
        unlink(path);
    }
    close(fd);
}

void sv_segment_sweep(void)
{
    char path[64], prefix[32];
    struct dirent *entry;
    DIR *dir;

    dir = opendir(SV_SHM_DIR);
    if (dir == NULL) {
        return;
    }

    snprintf(prefix, sizeof(prefix), "softverbs-%u.", (unsigned)geteuid());
    while ((entry = readdir(dir)) != NULL) {
        if ((strncmp(entry->d_name, prefix, strlen(prefix)) == 0) &&
            (strlen(entry->d_name) < sizeof(path) - sizeof(SV_SHM_DIR))) {
            snprintf(path, sizeof(path), SV_SHM_DIR "/%.32s", entry->d_name);
            sv_segment_sweep_one(path);
        }
    }
    closedir(dir);
}

int sv_segment_create(struct sv_node *node)
{
    uint32_t slot;
    int fd;

    for (slot = 1; slot <= SV_SLOT_MAX; ++slot) {
        sv_segment_path(node->path, sizeof(node->path), slot);
        fd = open(node->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if ((fd < 0) && (errno != EEXIST)) {
            sv_say("cannot create %s: %m", node->path);
            return -1;
        }
        if (fd < 0) {
            continue;
        }

        /* A sweeper may have come between the two. */
        if ((flock(fd, LOCK_EX) == 0) && sv_segment_is_named(fd, node->path)) {
            node->slot = slot;
            return fd;
        }
        close(fd);
    }

    sv_say("all %d places of this user on " SV_DEVICE_NAME " are taken",
           SV_SLOT_MAX);
    errno = ENOMEM;
    return -1;
}

void sv_segment_born(int fd)
{
    flock(fd, LOCK_UN);
}

uint8_t *sv_segment_map(int fd)
{
    void *base;

    base = mmap(NULL, SV_SEG_BYTES, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED) {
        return NULL;
    }

    /* A fork must not write into the parent's fabric, and half a gigabyte of
     * holes is nothing for a core file. */
    madvise(base, SV_SEG_BYTES, MADV_DONTFORK);
    madvise(base, SV_SEG_BYTES, MADV_DONTDUMP);
    return base;
}
