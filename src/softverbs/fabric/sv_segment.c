/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments as files: names, creation, clean-up.
 *
 * The names in /dev/shm are the registry. Whoever creates softverbs-<uid>.<n>
 * exclusively owns slot n. Every open first sweeps the directory: it unlinks
 * segments whose process is gone. A sweeper holds a flock() on the file, so
 * that two sweepers cannot remove the successor of what they looked at. A
 * segment is locked by its maker until its head says whose it is. A file with
 * neither a head nor a lock was left by a process that was killed on the way.
 *
 * Everybody may make files in /dev/shm, and so take these names. If the user
 * has a folder softverbs-<uid> that only this user may write to, new segments
 * are softverbs-<uid>/<n> instead. The device makes that folder when other
 * users have taken all names. A slot has one segment, in one of the two places,
 * and processes look in both. A file of another user is never waited for and
 * never used.
 */
#include "softverbs/base/sv_limits.h"
#include "softverbs/base/sv_process.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fabric/sv_segment.h"
#include "softverbs/fabric/sv_wake.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void sv_segment_path(char *path, size_t size, bool in_folder,
                            uint32_t slot)
{
    snprintf(path, size, SV_SHM_DIR "/softverbs-%u%c%u", (unsigned)geteuid(),
             in_folder ? '/' : '.', slot);
}

static void sv_segment_folder_path(char *path, size_t size)
{
    snprintf(path, size, SV_SHM_DIR "/softverbs-%u", (unsigned)geteuid());
}

/* Whether the user has a folder that nobody else can write to. In /dev/shm
 * nobody else can rename it either. */
static bool sv_segment_has_folder(void)
{
    char path[SV_PATH_BYTES];
    struct stat st;

    sv_segment_folder_path(path, sizeof(path));
    return (lstat(path, &st) == 0) && S_ISDIR(st.st_mode) &&
           (st.st_uid == geteuid()) &&
           ((st.st_mode & (S_IWGRP | S_IWOTH)) == 0);
}

/* Usually both places are on one file system, so one pair of numbers describes
 * both. If another file system is mounted on the user's folder, several
 * /dev/shm may have that folder. Then all segments are in it, and it is the
 * place. */
void sv_segment_folder_id(uint64_t *device_p, uint64_t *inode_p)
{
    struct stat st = {0}, own;
    char path[SV_PATH_BYTES];

    (void)stat(SV_SHM_DIR, &st);
    sv_segment_folder_path(path, sizeof(path));
    if (sv_segment_has_folder() && (lstat(path, &own) == 0) &&
        (own.st_dev != st.st_dev)) {
        st = own;
    }
    *device_p = st.st_dev;
    *inode_p  = st.st_ino;
}

/* Another user may hold a lease on a file, or put a FIFO there. O_NONBLOCK
 * waits for neither. */
static int sv_segment_open_path(const char *path, struct stat *st)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0) {
        return -1;
    }
    if ((fstat(fd, st) != 0) || !S_ISREG(st->st_mode) ||
        (st->st_uid != geteuid())) {
        close(fd);
        return -1;
    }
    return fd;
}

int sv_segment_open(uint32_t slot, char *path)
{
    struct stat st;
    int fd = -1;

    if (sv_segment_has_folder()) {
        sv_segment_path(path, SV_PATH_BYTES, true, slot);
        fd = sv_segment_open_path(path, &st);
    }
    if (fd < 0) {
        sv_segment_path(path, SV_PATH_BYTES, false, slot);
        fd = sv_segment_open_path(path, &st);
    }
    if ((fd >= 0) && ((uint64_t)st.st_size != SV_SEG_BYTES)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Whether the name still refers to fd; false if somebody replaced the file. */
static bool sv_segment_is_named(int fd, const char *path)
{
    struct stat by_fd, by_name;

    return (fstat(fd, &by_fd) == 0) && (lstat(path, &by_name) == 0) &&
           (by_fd.st_ino == by_name.st_ino) && (by_fd.st_dev == by_name.st_dev);
}

void sv_segment_unlink(int fd, const char *path)
{
    if (sv_segment_is_named(fd, path)) {
        unlink(path);
    }
}

/* The beginning of the head says whose a segment is. All versions share it,
 * since each version removes what others have left. */
_Static_assert((offsetof(struct sv_shm_head, magic) == 0) &&
               (offsetof(struct sv_shm_head, pid) == 16) &&
               (offsetof(struct sv_shm_head, start_time) == 24) &&
               (offsetof(struct sv_shm_head, pid_ns) == 32) &&
               (offsetof(struct sv_shm_head, ready) == 40),
               "the fields that say whose a segment is have moved");

#define SV_IDENTITY_BYTES \
    (offsetof(struct sv_shm_head, ready) + sizeof(uint32_t))

/* Its maker was killed before it wrote anything. */
static bool sv_segment_is_blank(const struct stat *st,
                                const struct sv_shm_head *head)
{
    static const uint8_t zeros[SV_IDENTITY_BYTES];

    return (memcmp(head, zeros, sizeof(zeros)) == 0) &&
           (((uint64_t)st->st_size == SV_SEG_BYTES) || (st->st_blocks == 0));
}

/* Whether no living process owns the segment, provided that nobody has locked
 * it. A file that does not look like a segment of any version is left alone. */
static bool sv_segment_is_stale(int fd)
{
    struct sv_shm_head head;
    struct stat st;
    ssize_t length;

    memset(&head, 0, sizeof(head));
    length = pread(fd, &head, SV_IDENTITY_BYTES, 0);
    if ((length < 0) || (fstat(fd, &st) != 0)) {
        return false;
    }
    if ((st.st_size == 0) || sv_segment_is_blank(&st, &head)) {
        return true;
    }
    if ((length != SV_IDENTITY_BYTES) || (head.magic != SV_MAGIC)) {
        return false;
    }
    if (atomic_load(&head.ready) == 0) {
        return true;
    }

    if (head.pid_ns != sv_pid_namespace()) {
        return false; /* cannot know from here */
    }

    return sv_process_lives(head.pid, head.start_time) == 0;
}

static void sv_segment_sweep_one(const char *path)
{
    struct stat st;
    int fd;

    fd = sv_segment_open_path(path, &st);
    if (fd < 0) {
        return;
    }

    if (sv_segment_is_stale(fd) && (flock(fd, LOCK_EX | LOCK_NB) == 0) &&
        sv_segment_is_named(fd, path) && sv_segment_is_stale(fd)) {
        unlink(path);
    }
    close(fd);
}

/* Removes the name of a channel whose process is gone. The upper half of the
 * name is the owner's lock id. The head of the segment tells who has the slot
 * now. A channel is made after the segment and removed before it. */
static void sv_segment_sweep_channel(const char *segment, const char *name)
{
    struct sv_shm_head head;
    char path[SV_PATH_BYTES];
    struct stat st;
    bool stale;
    int fd;

    fd = sv_segment_open_path(segment, &st);
    if (fd < 0) {
        stale = (errno == ENOENT);
    } else {
        stale = (pread(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head)) &&
                (atomic_load(&head.ready) != 0) &&
                (sv_lock_id(&head) != strtoull(name, NULL, 16) >> 32);
        close(fd);
    }
    snprintf(path, sizeof(path), "%s.%s", segment, name);
    if (stale && (lstat(path, &st) == 0) && S_ISSOCK(st.st_mode) &&
        (st.st_uid == geteuid())) {
        unlink(path);
    }
}

/* "<number>" is a segment, "<number>.<name>" a channel. */
static void sv_segment_sweep_entry(const char *directory, const char *prefix,
                                   const char *rest, bool channels)
{
    size_t digits    = strspn(rest, "0123456789");
    const char *name = rest + digits + 1;
    char path[SV_PATH_BYTES];

    if ((digits == 0) || (digits > 10)) {
        return;
    }
    snprintf(path, sizeof(path), "%s/%s%.*s", directory, prefix, (int)digits,
             rest);
    if (!channels && (rest[digits] == '\0')) {
        sv_segment_sweep_one(path);
    } else if (channels && (rest[digits] == '.') &&
               (strlen(name) == SV_WAKE_NAME_CHARS) &&
               (strspn(name, "0123456789abcdef") == SV_WAKE_NAME_CHARS)) {
        sv_segment_sweep_channel(path, name);
    }
}

/* All in this directory whose name begins with `prefix`. */
static void sv_segment_sweep_pass(const char *directory, const char *prefix,
                                  bool channels)
{
    size_t length = strlen(prefix);
    struct dirent *entry;
    DIR *dir;

    dir = opendir(directory);
    if (dir == NULL) {
        return;
    }

    while ((entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, prefix, length) == 0) {
            sv_segment_sweep_entry(directory, prefix, entry->d_name + length,
                                   channels);
        }
    }
    closedir(dir);
}

/* Segments first, since channels are judged by them. */
static void sv_segment_sweep_dir(const char *directory, const char *prefix)
{
    sv_segment_sweep_pass(directory, prefix, false);
    sv_segment_sweep_pass(directory, prefix, true);
}

void sv_segment_sweep(void)
{
    char path[SV_PATH_BYTES], prefix[32];

    snprintf(prefix, sizeof(prefix), "softverbs-%u.", (unsigned)geteuid());
    sv_segment_sweep_dir(SV_SHM_DIR, prefix);
    if (sv_segment_has_folder()) {
        sv_segment_folder_path(path, sizeof(path));
        sv_segment_sweep_dir(path, "");
    }
}

/* Files of other users in this user's places. */
struct sv_foreign_files {
    unsigned count;
    unsigned uid;                 /* of one of them */
    char     path[SV_PATH_BYTES];
};

static void sv_segment_count_foreign(const char *path,
                                     struct sv_foreign_files *foreign)
{
    struct stat st;

    if ((lstat(path, &st) == 0) && (st.st_uid != geteuid())) {
        ++foreign->count;
        foreign->uid = st.st_uid;
        snprintf(foreign->path, sizeof(foreign->path), "%s", path);
    }
}

/* Whether this user has a file for the slot in the other place. */
static bool sv_segment_is_elsewhere(bool in_folder, uint32_t slot)
{
    char path[SV_PATH_BYTES];
    struct stat st;

    sv_segment_path(path, sizeof(path), !in_folder, slot);
    return (in_folder || sv_segment_has_folder()) && (lstat(path, &st) == 0) &&
           (st.st_uid == geteuid());
}

/* Takes the first free slot there. Descriptor, or -1; errno is EEXIST if there
 * is none. */
static int sv_segment_take(struct sv_node *node, bool in_folder,
                           struct sv_foreign_files *foreign)
{
    uint32_t slot;
    int fd;

    for (slot = 1; slot <= SV_SLOT_MAX; ++slot) {
        sv_segment_path(node->path, sizeof(node->path), in_folder, slot);
        fd = open(node->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if ((fd < 0) && (errno != EEXIST)) {
            sv_log("cannot create %s: %m", node->path);
            return -1;
        }
        if (fd < 0) {
            sv_segment_count_foreign(node->path, foreign);
            continue;
        }

        /* A sweeper may have removed the file between open and flock. The other
         * place is checked after the file exists: of two processes that do this
         * at the same time, none takes the slot. */
        if ((sv_lock(fd) == 0) && sv_segment_is_named(fd, node->path)) {
            if (!sv_segment_is_elsewhere(in_folder, slot)) {
                node->slot = slot;
                return fd;
            }
            unlink(node->path);
        }
        close(fd);
    }

    errno = EEXIST;
    return -1;
}

/* Other users have taken all names, and this user has no folder yet. */
static int sv_segment_take_in_folder(struct sv_node *node,
                                     struct sv_foreign_files *foreign)
{
    char path[SV_PATH_BYTES];
    int made;

    sv_segment_folder_path(path, sizeof(path));
    made = (mkdir(path, S_IRWXU) == 0);
    if (!made && !sv_segment_has_folder()) {
        sv_log("no place is left for this user on " SV_DEVICE_NAME ": %u of %d "
               "are files of others, as %s of user %u, and %s is not a folder "
               "of this user alone: ask for their removal", foreign->count,
               SV_SLOT_MAX, foreign->path, foreign->uid, path);
        errno = ENOMEM;
        return -1;
    }
    if (made) {
        sv_log("%u of this user's %d places in " SV_SHM_DIR " are files of "
               "others, as %s of user %u: the folder %s is used from now on",
               foreign->count, SV_SLOT_MAX, foreign->path, foreign->uid,
               path);
    }
    foreign->count = 0;
    return sv_segment_take(node, true, foreign);
}

int sv_segment_create(struct sv_node *node)
{
    struct sv_foreign_files foreign = {0};
    int fd;

    fd = sv_segment_take(node, sv_segment_has_folder(), &foreign);
    if ((fd < 0) && (errno == EEXIST) && (foreign.count > 0)) {
        fd = sv_segment_take_in_folder(node, &foreign);
    }
    if ((fd < 0) && (errno == EEXIST)) {
        sv_log("all %d places of this user on " SV_DEVICE_NAME " are taken",
               SV_SLOT_MAX);
        errno = ENOMEM;
    }
    return fd;
}

void sv_segment_unlock(int fd)
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

    /* A child of a fork must not write into the parent's fabric. A core file
     * needs no half gigabyte of holes. */
    madvise(base, SV_SEG_BYTES, MADV_DONTFORK);
    madvise(base, SV_SEG_BYTES, MADV_DONTDUMP);
    return base;
}
