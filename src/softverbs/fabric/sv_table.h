/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables of the own segment, and the memory of rings.
 */
#ifndef SV_TABLE_H
#define SV_TABLE_H

#include <stdatomic.h>
#include <stdint.h>

struct sv_node;
struct sv_peer;

/* A table of the own segment: which entries are in use. Pages are reserved when
 * they are first needed and are kept. */
struct sv_table {
    uint64_t          offset;
    uint32_t          stride;
    uint32_t          max;
    uint32_t          next;  /* where to look first */
    uint32_t          used;
    uint8_t          *taken; /* one byte an entry */
    _Atomic uint64_t *pages; /* which are reserved, in the segment's head */
};

/* Take and return entries of the own segment. Index, or -1 and errno: ENOMEM
 * when the table or /dev/shm is full. Callers hold sv_node.lock. */
int sv_table_take(struct sv_node *node, struct sv_table *table);
int sv_table_take_at(struct sv_node *node, struct sv_table *table,
                     uint32_t index);
void sv_table_give(struct sv_table *table, uint32_t index);
/* Reserves the pages of a middle or large ring. 0, or -1: no room. */
int sv_ring_reserve(struct sv_peer *peer, uint32_t index, uint32_t bytes);
void sv_ring_release(struct sv_node *node, uint32_t index, uint32_t bytes);

#endif
