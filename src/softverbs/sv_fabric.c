/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a node does with segments once they are mapped: entries of the own
 * tables, ring memory, the lock between processes, copies into and out of the
 * memory of a peer.
 */
#include "sv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* How long a lock of another process is waited for. It is held for the time of
 * one copy of at most 4 KiB, unless its holder is preempted or stopped. */
#define SV_SHM_LOCK_NS    1000000u

static bool sv_has_membarrier;

bool sv_barrier_init(void)
{
    sv_has_membarrier =
            syscall(SYS_membarrier,
                    MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
    return sv_has_membarrier;
}

void sv_heavy_barrier(void)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (sv_has_membarrier) {
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    }
}

int sv_table_take_at(struct sv_node *node, struct sv_table *table,
                     uint32_t index)
{
    uint32_t ready = atomic_load(table->ready);
    uint32_t per_page = SV_PAGE / table->stride;

    if (index >= ready) {
        if (fallocate(node->self->fd, 0, table->offset + ready * table->stride,
                      (index / per_page + 1) * (uint64_t)SV_PAGE -
                              ready * table->stride) != 0) {
            errno = ENOMEM;
            return -1;
        }
        atomic_store(table->ready, (index / per_page + 1) * per_page);
    }

    table->taken[index] = 1;
    ++table->used;
    return index;
}

int sv_table_take(struct sv_node *node, struct sv_table *table)
{
    uint32_t i;

    for (i = table->next; i < table->max; ++i) {
        if (!table->taken[i]) {
            table->next = i + 1;
            return sv_table_take_at(node, table, i);
        }
    }

    errno = ENOMEM;
    return -1;
}

void sv_table_give(struct sv_table *table, uint32_t index)
{
    table->taken[index] = 0;
    --table->used;
    if (index < table->next) {
        table->next = index;
    }
}

int sv_ring_reserve(struct sv_peer *peer, uint32_t index, uint32_t bytes)
{
    return fallocate(peer->fd, 0,
                     SV_OFF_RING + (uint64_t)index * SV_RING_BYTES, bytes);
}

void sv_ring_release(struct sv_node *node, uint32_t index)
{
    fallocate(node->self->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              SV_OFF_RING + (uint64_t)index * SV_RING_BYTES, SV_RING_BYTES);
}

/* Whether the process that wrote this lock_id can still unlock. */
static bool sv_lock_id_lives(struct sv_node *node, uint32_t lock_id)
{
    struct sv_peer *peer;
    bool lives;

    peer = sv_peer_get(node, lock_id >> 20);
    if (peer == NULL) {
        return false;
    }

    lives = sv_peer_alive(peer) &&
            ((peer->head->start_time & 0xfffff) == (lock_id & 0xfffff));
    sv_peer_put(node, peer);
    return lives;
}

bool sv_shm_lock(struct sv_node *node, _Atomic uint32_t *word)
{
    uint64_t deadline = 0;
    uint32_t holder;
    unsigned tries;

    for (tries = 0;; ++tries) {
        holder = 0;
        if (atomic_compare_exchange_strong_explicit(word, &holder,
                                                    node->lock_id,
                                                    memory_order_acquire,
                                                    memory_order_relaxed)) {
            return true;
        }
        if (tries % 128 != 127) {
            sv_relax();
            continue;
        }

        if (!sv_lock_id_lives(node, holder) &&
            atomic_compare_exchange_strong(word, &holder, node->lock_id)) {
            return true;
        }
        if (deadline == 0) {
            deadline = sv_now_ns() + SV_SHM_LOCK_NS;
        } else if (sv_now_ns() > deadline) {
            return false;
        }
        sched_yield();
    }
}

void sv_shm_unlock(_Atomic uint32_t *word)
{
    atomic_store_explicit(word, 0, memory_order_release);
}

bool sv_busy_wait(struct sv_node *node, struct sv_shm_qp *shm,
                  uint64_t limit_ns)
{
    uint64_t deadline = 0;
    struct sv_peer *peer;
    bool lives;

    while (atomic_load_explicit(&shm->busy, memory_order_acquire) != 0) {
        peer  = sv_peer_get(node, sv_qpn_slot(atomic_load(&shm->dest_qpn)));
        lives = (peer != NULL) && sv_peer_alive(peer);
        if (peer != NULL) {
            sv_peer_put(node, peer);
        }
        if (!lives) {
            atomic_store(&shm->busy, 0);
            return true;
        }

        if (deadline == 0) {
            deadline = sv_now_ns() + limit_ns;
        } else if (sv_now_ns() > deadline) {
            return false;
        }
        sched_yield();
    }
    return true;
}

/* Own memory: no system call. write says which way. */
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
        n = write ? process_vm_writev(peer->head->pid, local + i, num_sge - i,
                                      &remote, 1, 0) :
                    process_vm_readv(peer->head->pid, local + i, num_sge - i,
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
