/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers: finding their segments, copying into and out of their memory.
 */
#include "softverbs/base/sv_limits.h"
#include "softverbs/base/sv_process.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/fabric/sv_segment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- mapping ---- */

struct sv_peer *sv_peer_new(int fd, uint8_t *base, uint32_t slot,
                            const char *path)
{
    struct sv_peer *peer = calloc(1, sizeof(*peer));

    if (peer != NULL) {
        peer->refs = 1;
        peer->slot = slot;
        peer->fd   = fd;
        peer->base = base;
        peer->head = (struct sv_shm_head*)base;
        snprintf(peer->path, sizeof(peer->path), "%s", path);
    }
    return peer;
}

void sv_peer_destroy(struct sv_peer *peer)
{
    munmap(peer->base, SV_SEG_BYTES);
    close(peer->fd);
    free(peer);
}

/* A process number of another namespace means another process here, or none.
 * The device needs these numbers to copy, to wake, and to see who is dead. */
static bool sv_peer_shares_pid_ns(const struct sv_shm_head *head)
{
    static atomic_bool logged;

    if (head->pid_ns == sv_pid_namespace()) {
        return true;
    }
    if (!atomic_exchange(&logged, true)) {
        sv_log("process %d is in another PID namespace and cannot be reached; "
               "run both in one (docker run --pid ...)", head->pid);
    }
    return false;
}

/* A process may be there, but this process has no room to map it. Refuse aloud:
 * otherwise what it sends would be lost, and nobody could tell why. */
static struct sv_peer *sv_peer_refuse(int error)
{
    static atomic_bool logged;

    if (!atomic_exchange(&logged, true)) {
        sv_log("another process cannot be reached: its segment cannot be %s: "
               "%s; for itself and for each process that it talks to a process "
               "needs %u MiB of address space (ulimit -v), one mapping and one "
               "file (ulimit -n)",
               (error == ENOMEM) ? "mapped" : "opened", strerror(error),
               (unsigned)(SV_SEG_BYTES >> 20));
    }
    errno = error;
    return NULL;
}

static struct sv_peer *sv_peer_absent(void)
{
    errno = ENOENT;
    return NULL;
}

/* Opens and checks a peer's segment. NULL and errno as in sv_peer_get(). Needs
 * node->lock. */
static struct sv_peer *sv_peer_attach(struct sv_node *node, uint32_t slot)
{
    struct sv_peer *peer = NULL;
    struct sv_shm_head *head;
    char path[SV_PATH_BYTES];
    uint8_t *base;
    struct stat st;
    int fd, lives, error;

    fd = sv_segment_open(slot, path);
    if (fd < 0) {
        return ((errno == EMFILE) || (errno == ENFILE) || (errno == ENOMEM)) ?
                       sv_peer_refuse(errno) : sv_peer_absent();
    }

    if ((fstat(fd, &st) != 0) || (st.st_blocks == 0)) {
        goto err_close;
    }

    base = sv_segment_map(fd);
    if (base == NULL) {
        close(fd);
        return sv_peer_refuse(ENOMEM);
    }

    head = (struct sv_shm_head*)base;
    if ((atomic_load(&head->ready) == 0) || (head->magic != SV_MAGIC) ||
        (head->version != SV_VERSION) || (head->slot != slot) ||
        !sv_peer_shares_pid_ns(head)) {
        goto err_unmap;
    }

    peer = sv_peer_new(fd, base, slot, path);
    if (peer == NULL) {
        munmap(base, SV_SEG_BYTES);
        close(fd);
        return sv_peer_refuse(ENOMEM);
    }

    peer->pid        = head->pid;
    peer->start_time = head->start_time;
    peer->lock_id    = sv_lock_id(head);
    peer->fence      = (head->needs_fence != 0) || node->self->fence;
    /* Memory is copied by process number, so the number must be this
     * process's. */
    lives = (sv_peer_alive(peer) && (peer->pid != node->self->pid)) ?
                    sv_process_lives(peer->pid, peer->start_time) : 0;
    if (lives <= 0) {
        error = errno;
        sv_peer_destroy(peer);
        return (lives < 0) ? sv_peer_refuse(error) : sv_peer_absent();
    }
    return peer;

err_unmap:
    munmap(base, SV_SEG_BYTES);
err_close:
    close(fd);
    return sv_peer_absent();
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

int sv_peer_check(struct sv_node *node, uint32_t slot)
{
    struct sv_peer *peer = sv_peer_get(node, slot);

    if (peer == NULL) {
        return (errno == ENOENT) ? 0 : errno;
    }
    sv_peer_put(node, peer);
    return 0;
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

void sv_peer_ring_bell(struct sv_peer *peer, uint32_t index)
{
    struct sv_shm_head *head = peer->head;

    atomic_fetch_or(&head->bells[index / 64], 1ull << (index % 64));
    atomic_fetch_or(&head->bell, 1ull << (index / 64 / SV_BELL_SHARE));
}

struct sv_shm_cq *sv_peer_named_cq(struct sv_peer *peer, uint32_t index)
{
    return ((index < SV_CQ_MAX) &&
            sv_entry_exists(peer->head->cq_pages, sizeof(struct sv_shm_cq),
                            index)) ? sv_peer_cq(peer, index) : NULL;
}

struct sv_shm_srq *sv_peer_named_srq(struct sv_peer *peer, uint32_t index)
{
    return ((index < SV_SRQ_MAX) &&
            sv_entry_exists(peer->head->srq_pages, sizeof(struct sv_shm_srq),
                            index)) ? sv_peer_srq(peer, index) : NULL;
}

/* ---- copying ---- */

/* Own memory needs no system call. `write` tells the direction. */
static void sv_copy_self(uint64_t at, const struct ibv_sge *sge, int num_sge,
                         bool write)
{
    uint8_t *mem = (uint8_t*)(uintptr_t)at;
    int i;

    for (i = 0; i < num_sge; ++i) {
        if (write) {
            memmove(mem, (void*)(uintptr_t)sge[i].addr, sge[i].length);
        } else {
            memmove((void*)(uintptr_t)sge[i].addr, mem, sge[i].length);
        }
        mem += sge[i].length;
    }
}

static int sv_copy_other(struct sv_peer *peer, uint64_t at,
                         const struct ibv_sge *sge, int num_sge, bool write)
{
    struct iovec local[SV_LIMIT_SGE], remote;
    size_t left = 0;
    ssize_t n;
    int i;

    for (i = 0; i < num_sge; ++i) {
        local[i].iov_base  = (void*)(uintptr_t)sge[i].addr;
        local[i].iov_len   = sge[i].length;
        left              += sge[i].length;
    }

    i = 0;
    while (left > 0) {
        remote.iov_base = (void*)(uintptr_t)at;
        remote.iov_len  = left;
        n = write ? process_vm_writev(peer->pid, local + i, num_sge - i,
                                      &remote, 1, 0) :
                    process_vm_readv(peer->pid, local + i, num_sge - i,
                                     &remote, 1, 0);
        if (n <= 0) {
            return -1;
        }

        at   += n;
        left -= n;
        while ((i < num_sge) && ((size_t)n >= local[i].iov_len)) {
            n -= local[i++].iov_len;
        }
        if (i < num_sge) {
            local[i].iov_base = (char*)local[i].iov_base + n;
            local[i].iov_len -= n;
        }
    }
    return 0;
}

int sv_peer_write(struct sv_peer *peer, uint64_t to, const struct ibv_sge *sge,
                  int num_sge)
{
    if (peer->self) {
        sv_copy_self(to, sge, num_sge, true);
        return 0;
    }
    return sv_copy_other(peer, to, sge, num_sge, true);
}

int sv_peer_read(struct sv_peer *peer, uint64_t from, const struct ibv_sge *sge,
                 int num_sge)
{
    if (peer->self) {
        sv_copy_self(from, sge, num_sge, false);
        return 0;
    }
    return sv_copy_other(peer, from, sge, num_sge, false);
}
