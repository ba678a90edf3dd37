/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The own segment: entries of its tables, and the memory of rings.
 */
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/fabric/sv_segment.h"
#include "softverbs/fabric/sv_table.h"

#include <errno.h>
#include <fcntl.h>

/* Logged once: a program that gets ENOMEM may retry for a long time. */
static void sv_log_no_room(void)
{
    static atomic_bool logged;

    if (!atomic_exchange(&logged, true)) {
        sv_log(SV_SHM_DIR " is full: %m");
    }
    errno = ENOMEM;
}

int sv_table_take_at(struct sv_node *node, struct sv_table *table,
                     uint32_t index)
{
    uint32_t page = index / (SV_PAGE / table->stride);

    if (!sv_entry_exists(table->pages, table->stride, index)) {
        if (sv_reserve(node->self->fd, table->offset + (uint64_t)page * SV_PAGE,
                       SV_PAGE) != 0) {
            sv_log_no_room();
            return -1;
        }
        atomic_fetch_or(&table->pages[page / 64], 1ull << (page % 64));
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
    int ret = sv_reserve(peer->fd, sv_ring_offset(index, bytes), bytes);

    /* A sender that gets no larger ring goes on with its own. */
    if ((ret != 0) && peer->self) {
        sv_log_no_room();
    }
    return ret;
}

void sv_ring_release(struct sv_node *node, uint32_t index, uint32_t bytes)
{
    fallocate(node->self->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              sv_ring_offset(index, bytes), bytes);
}
