/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The own segment: barriers, entries of tables, ring memory.
 */
#include "sv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

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
    __sync_synchronize();
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
