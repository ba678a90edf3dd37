/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The node of this process: making, finding and clearing away segments.
 *
 * The names in /dev/shm are the registry. Whoever creates softverbs-<uid>.<n>
 * exclusively owns slot n. Every open first sweeps the directory: a segment
 * whose process is gone is unlinked, under a flock() on the file itself, so
 * that two sweepers cannot take away a successor of what they looked at.
 */
#include "sv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SV_SHM_DIR    "/dev/shm"

/* A file that has no header yet belongs to a process that is just opening;
 * after this many seconds it was killed on the way. */
#define SV_BIRTH_SECONDS    10

static pthread_mutex_t sv_node_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct sv_node *sv_node;

void sv_say(const char *format, ...)
{
    char line[256];
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

    /* The kernel's generator is always ready long before any program of ours;
     * the fallback only has to differ from one call to the next. */
    if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != sizeof(value)) {
        value = (sv_now_ns() + atomic_fetch_add(&count, 1)) *
                0x9e3779b97f4a7c15ull;
    }
    return value;
}

/* Fields 3 (state) and 22 (start time) of /proc/<pid>/stat. The name in field
 * 2 may contain anything, so parsing starts at the last parenthesis. */
static int sv_process_stat(int pid, char *state_p, uint64_t *start_time_p)
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

static uint64_t sv_pid_namespace(void)
{
    struct stat st;

    return (stat("/proc/self/ns/pid", &st) == 0) ? st.st_ino : 0;
}

static void sv_segment_path(char *path, size_t size, uint32_t slot)
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

static bool sv_segment_is_stale(int fd)
{
    struct sv_shm_head head;
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return false;
    }

    if ((pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head)) ||
        (head.magic != SV_MAGIC) || (atomic_load(&head.ready) == 0)) {
        return time(NULL) - st.st_mtime > SV_BIRTH_SECONDS;
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

static void sv_segment_sweep(void)
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

/* Takes the first free slot. Descriptor, or -1 and errno. */
static int sv_segment_create(struct sv_node *node)
{
    uint32_t slot;
    int fd;

    for (slot = 1; slot <= SV_SLOT_MAX; ++slot) {
        sv_segment_path(node->path, sizeof(node->path), slot);
        fd = open(node->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0) {
            node->slot = slot;
            return fd;
        }
        if (errno != EEXIST) {
            sv_say("cannot create %s: %m", node->path);
            return -1;
        }
    }

    sv_say("all %d places of this user on " SV_DEVICE_NAME " are taken",
           SV_SLOT_MAX);
    errno = ENOMEM;
    return -1;
}

static uint8_t *sv_segment_map(int fd)
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

static struct sv_peer *sv_peer_new(int fd, uint8_t *base, uint32_t slot)
{
    struct sv_peer *peer = calloc(1, sizeof(*peer));

    if (peer != NULL) {
        peer->refs = 1;
        peer->slot = slot;
        peer->fd   = fd;
        peer->base = base;
        peer->head = (struct sv_shm_head*)base;
    }
    return peer;
}

static void sv_peer_destroy(struct sv_peer *peer)
{
    unsigned i;

    for (i = 0; i < peer->num_pipes; ++i) {
        close(peer->pipes[i].fd);
    }
    munmap(peer->base, SV_SEG_BYTES);
    close(peer->fd);
    free(peer->pipes);
    free(peer);
}

static int sv_table_init(struct sv_table *table, uint64_t offset,
                         uint32_t stride, uint32_t max,
                         _Atomic uint32_t *ready)
{
    table->offset = offset;
    table->stride = stride;
    table->max    = max;
    table->ready  = ready;
    table->taken  = calloc(max, 1);
    return (table->taken == NULL) ? -1 : 0;
}

static int sv_node_tables(struct sv_node *node)
{
    struct sv_shm_head *head = node->head;

    node->mr_gen = calloc(SV_MR_MAX, sizeof(*node->mr_gen));
    node->qps    = calloc(SV_QP_MAX, sizeof(*node->qps));
    node->cqs    = calloc(SV_CQ_MAX, sizeof(*node->cqs));
    if ((node->mr_gen == NULL) || (node->qps == NULL) || (node->cqs == NULL) ||
        (sv_table_init(&node->qp_table, SV_OFF_QP, sizeof(struct sv_shm_qp),
                       SV_QP_MAX, &head->qp_ready) != 0) ||
        (sv_table_init(&node->cq_table, SV_OFF_CQ, sizeof(struct sv_shm_cq),
                       SV_CQ_MAX, &head->cq_ready) != 0) ||
        (sv_table_init(&node->srq_table, SV_OFF_SRQ, sizeof(struct sv_shm_srq),
                       SV_SRQ_MAX, &head->srq_ready) != 0) ||
        (sv_table_init(&node->mr_table, SV_OFF_MR, sizeof(struct sv_shm_mr),
                       SV_MR_MAX, &head->mr_ready) != 0)) {
        errno = ENOMEM;
        return -1;
    }

    /* CQ entry 0 is for QPs whose CQ has no channel. */
    return (sv_table_take_at(node, &node->cq_table, 0) < 0) ? -1 : 0;
}

static void sv_node_free(struct sv_node *node)
{
    free(node->qp_table.taken);
    free(node->cq_table.taken);
    free(node->srq_table.taken);
    free(node->mr_table.taken);
    free(node->mr_gen);
    free(node->qps);
    free(node->cqs);
    free(node);
}

static int sv_node_fill_head(struct sv_node *node)
{
    struct sv_shm_head *head = node->head;
    char state;

    head->magic       = SV_MAGIC;
    head->version     = SV_VERSION;
    head->slot        = node->slot;
    head->pid         = getpid();
    head->pid_ns      = sv_pid_namespace();
    head->needs_fence = !sv_barrier_init();
    if (sv_process_stat(head->pid, &state, &head->start_time) != 0) {
        sv_say("cannot read /proc/%d/stat: %m", head->pid);
        errno = ENODEV;
        return -1;
    }

    node->self->fence = (head->needs_fence != 0);
    node->lock_id     = (node->slot << 20) | (head->start_time & 0xfffff);
    return 0;
}

/* Reserves the head, maps, and makes the peer that is ourselves. */
static int sv_node_map(struct sv_node *node, int fd)
{
    uint8_t *base;

    if (ftruncate(fd, SV_SEG_BYTES) != 0) {
        sv_say("cannot size %s: %m", node->path);
        return -1;
    }

    if (fallocate(fd, 0, 0, SV_OFF_QP) != 0) {
        sv_say("no room for a segment in " SV_SHM_DIR ": %m");
        errno = ENOMEM;
        return -1;
    }

    base = sv_segment_map(fd);
    if (base == NULL) {
        sv_say("cannot map %s: %m", node->path);
        return -1;
    }

    node->self = sv_peer_new(fd, base, node->slot);
    if (node->self == NULL) {
        munmap(base, SV_SEG_BYTES);
        errno = ENOMEM;
        return -1;
    }

    node->self->self = true;
    node->head       = node->self->head;
    return 0;
}

static struct sv_node *sv_node_new(void)
{
    struct sv_node *node;
    int fd, saved;

    node = calloc(1, sizeof(*node));
    if (node == NULL) {
        return NULL;
    }

    node->serial = sv_random();
    pthread_mutex_init(&node->lock, NULL);
    pthread_mutex_init(&node->objects_lock, NULL);
    sv_segment_sweep();

    fd = sv_segment_create(node);
    if (fd < 0) {
        goto err_free;
    }
    if (sv_node_map(node, fd) != 0) {
        close(fd);
        goto err_unlink;
    }
    if ((sv_node_fill_head(node) != 0) || (sv_node_tables(node) != 0) ||
        (sv_keeper_start(node) != 0)) {
        goto err_unmap;
    }

    /* Where Yama lets only ancestors use process_vm_*, siblings may too. */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    atomic_store(&node->head->ready, 1);
    return node;

err_unmap:
    saved = errno;
    sv_peer_destroy(node->self);
    errno = saved;
err_unlink:
    saved = errno;
    unlink(node->path);
    errno = saved;
err_free:
    saved = errno;
    sv_node_free(node);
    errno = saved;
    return NULL;
}

static void sv_node_atfork_child(void)
{
    sv_contexts_orphan();
    pthread_mutex_init(&sv_node_mutex, NULL);
    sv_node = NULL;
}

struct sv_node *sv_node_get(void)
{
    static bool fork_handled;
    struct sv_node *node;

    pthread_mutex_lock(&sv_node_mutex);
    if (!fork_handled) {
        fork_handled = pthread_atfork(NULL, NULL, sv_node_atfork_child) == 0;
    }
    if (sv_node == NULL) {
        sv_node = sv_node_new();
    }
    node = sv_node;
    if (node != NULL) {
        ++node->refs;
    }
    pthread_mutex_unlock(&sv_node_mutex);
    return node;
}

/* The last context is closed: no object is left, so nobody of this process
 * uses the node. Peers that still map the segment see it closed. */
void sv_node_put(struct sv_node *node)
{
    struct sv_peer *peer;

    pthread_mutex_lock(&sv_node_mutex);
    if (--node->refs > 0) {
        pthread_mutex_unlock(&sv_node_mutex);
        return;
    }

    sv_node = NULL;
    sv_keeper_stop(node);
    unlink(node->path);
    pthread_mutex_unlock(&sv_node_mutex);

    while ((peer = node->peers) != NULL) {
        node->peers = peer->next;
        sv_peer_destroy(peer);
    }
    sv_peer_destroy(node->self);
    sv_node_free(node);
}

/* exit() without ibv_close_device(): take the name away at least. Threads may
 * still be running, so nothing else is touched. */
__attribute__((destructor)) static void sv_node_at_exit(void)
{
    if ((sv_node != NULL) && (sv_node->head->pid == getpid())) {
        unlink(sv_node->path);
    }
}

/* Opens and checks a peer's segment. Needs node->lock. */
static struct sv_peer *sv_peer_attach(struct sv_node *node, uint32_t slot)
{
    struct sv_peer *peer = NULL;
    struct sv_shm_head *head;
    uint8_t *base;
    char path[64];
    struct stat st;
    int fd;

    sv_segment_path(path, sizeof(path), slot);
    fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return NULL;
    }

    if ((fstat(fd, &st) != 0) || (st.st_uid != geteuid()) ||
        ((uint64_t)st.st_size != SV_SEG_BYTES) || (st.st_blocks == 0)) {
        goto err_close;
    }

    base = sv_segment_map(fd);
    if (base == NULL) {
        goto err_close;
    }

    head = (struct sv_shm_head*)base;
    if ((atomic_load(&head->ready) == 0) || (head->magic != SV_MAGIC) ||
        (head->version != SV_VERSION) || (head->slot != slot) ||
        (head->pid_ns != node->head->pid_ns)) {
        goto err_unmap;
    }

    peer = sv_peer_new(fd, base, slot);
    if (peer == NULL) {
        goto err_unmap;
    }

    peer->fence = (head->needs_fence != 0) || (node->head->needs_fence != 0);
    if (!sv_peer_alive(peer)) {
        sv_peer_destroy(peer);
        return NULL;
    }
    return peer;

err_unmap:
    munmap(base, SV_SEG_BYTES);
err_close:
    close(fd);
    return NULL;
}

struct sv_peer *sv_peer_get(struct sv_node *node, uint32_t slot)
{
    struct sv_peer *peer;

    if (slot == node->slot) {
        return node->self;
    }

    pthread_mutex_lock(&node->lock);
    for (peer = node->peers; peer != NULL; peer = peer->next) {
        if ((peer->slot == slot) && sv_peer_alive(peer)) {
            ++peer->refs;
            break;
        }
    }
    if (peer == NULL) {
        peer = sv_peer_attach(node, slot);
        if (peer != NULL) {
            peer->next  = node->peers;
            node->peers = peer;
        }
    }
    pthread_mutex_unlock(&node->lock);
    return peer;
}

void sv_peer_put(struct sv_node *node, struct sv_peer *peer)
{
    struct sv_peer **pp;

    if (peer->self) {
        return;
    }

    pthread_mutex_lock(&node->lock);
    if (--peer->refs == 0) {
        for (pp = &node->peers; *pp != peer; pp = &(*pp)->next) {
        }
        *pp = peer->next;
        sv_peer_destroy(peer);
    }
    pthread_mutex_unlock(&node->lock);
}
