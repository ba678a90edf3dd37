/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What peers ask and has no answer yet, in the order in which they began to ask.
 *
 *     oldest -> [peer 7] -> [peer 3] -> [peer 9] <- newest
 *
 * To answer may take a thousand times as long as to receive. So a flooded receiver first
 * empties its receive buffers and notes who asks what. A peer that asks again meanwhile
 * keeps its place, and the new question takes the place of the old one. If the backlog is
 * full, a further peer finds no place and asks again later.
 *
 * Only names and their order are here. The caller keeps a question for each index. The
 * indices in use are low ones, so its memory is touched as far as it has been needed.
 *
 * The order is a list. A hash table finds a peer:
 *
 *     entry[b].bucket -> [index] -same-> [index]    peers whose name ends in b
 *
 * The names must be random, because their low bits choose the bucket. All functions but
 * grow take the same time whatever the size. Threads: one.
 */
#ifndef DQ_BACKLOG_H
#define DQ_BACKLOG_H

#include "dq.h"

#define DQ_BACKLOG_NONE UINT32_MAX

typedef struct {
    uint64_t key;
    uint32_t older, newer; /* index, or NONE; of a free one, newer is the next */
    uint32_t bucket, same; /* index, or NONE                                 */
} dq_backlog_entry_t;

typedef struct {
    dq_backlog_entry_t *entry; /* the caller's, as many as size              */
    uint32_t           size;   /* a power of two, or 0                       */
    uint32_t           count;
    uint32_t           used;   /* entries that were ever used                */
    uint32_t           oldest, newest, free; /* index, or NONE               */
} dq_backlog_t;

/* An empty backlog without room. */
void dq_backlog_init(dq_backlog_t *backlog);

/* Gives it room for @a size peers, a power of two and no less than before. @a entry
 * begins with the entries that it had. */
void dq_backlog_grow(dq_backlog_t *backlog, dq_backlog_entry_t *entry, uint32_t size);

/* Returns the index of the peer, which becomes the newest if it was not there. NONE: it
 * was not, and there is no room. */
uint32_t dq_backlog_put(dq_backlog_t *backlog, uint64_t key);

/* Returns the index of the peer, or NONE. */
uint32_t dq_backlog_find(const dq_backlog_t *backlog, uint64_t key);

/* Removes the oldest. Returns its index, which is free when the next is put. NONE: there
 * is none. */
uint32_t dq_backlog_take(dq_backlog_t *backlog);

/* Removes the peer if it is there. */
void dq_backlog_remove(dq_backlog_t *backlog, uint64_t key);

#endif
