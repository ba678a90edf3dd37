/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_backlog.h"

void dq_backlog_init(dq_backlog_t *backlog)
{
    *backlog = (dq_backlog_t){
        .oldest = DQ_BACKLOG_NONE,
        .newest = DQ_BACKLOG_NONE,
        .free   = DQ_BACKLOG_NONE,
    };
}


/* Where the index is noted that the list of this peer's bucket begins with. */
static uint32_t *dq_backlog_bucket(const dq_backlog_t *backlog, uint64_t key)
{
    return &backlog->entry[key & (backlog->size - 1)].bucket;
}


static void dq_backlog_hash(dq_backlog_t *backlog, uint32_t index)
{
    uint32_t *bucket = dq_backlog_bucket(backlog, backlog->entry[index].key);

    backlog->entry[index].same = *bucket;
    *bucket                    = index;
}


void dq_backlog_grow(dq_backlog_t *backlog, dq_backlog_entry_t *entry, uint32_t size)
{
    uint32_t i;

    DQ_ASSERT((size >= backlog->size) && ((size & (size - 1)) == 0));
    backlog->entry = entry;
    backlog->size  = size;
    for (i = 0; i < size; i++) {
        entry[i].bucket = DQ_BACKLOG_NONE;
    }
    for (i = backlog->oldest; i != DQ_BACKLOG_NONE; i = entry[i].newer) {
        dq_backlog_hash(backlog, i);
    }
}


uint32_t dq_backlog_find(const dq_backlog_t *backlog, uint64_t key)
{
    uint32_t index = DQ_BACKLOG_NONE;

    if (backlog->count > 0) {
        index = *dq_backlog_bucket(backlog, key);
    }
    while ((index != DQ_BACKLOG_NONE) && (backlog->entry[index].key != key)) {
        index = backlog->entry[index].same;
    }
    return index;
}


static uint32_t dq_backlog_get_free(dq_backlog_t *backlog)
{
    uint32_t index = backlog->free;

    if (index != DQ_BACKLOG_NONE) {
        backlog->free = backlog->entry[index].newer;
    } else if (backlog->used < backlog->size) {
        index = backlog->used++;
    }
    return index;
}


uint32_t dq_backlog_put(dq_backlog_t *backlog, uint64_t key)
{
    uint32_t index = dq_backlog_find(backlog, key);

    if (index != DQ_BACKLOG_NONE) {
        return index;
    }
    index = dq_backlog_get_free(backlog);
    if (index == DQ_BACKLOG_NONE) {
        return index;
    }
    backlog->entry[index].key   = key;
    backlog->entry[index].older = backlog->newest;
    backlog->entry[index].newer = DQ_BACKLOG_NONE;
    if (backlog->newest == DQ_BACKLOG_NONE) {
        backlog->oldest = index;
    } else {
        backlog->entry[backlog->newest].newer = index;
    }
    backlog->newest = index;
    backlog->count++;
    dq_backlog_hash(backlog, index);
    return index;
}


static void dq_backlog_unhash(dq_backlog_t *backlog, uint32_t index)
{
    uint32_t *at = dq_backlog_bucket(backlog, backlog->entry[index].key);

    while (*at != index) {
        at = &backlog->entry[*at].same;
    }
    *at = backlog->entry[index].same;
}


static void dq_backlog_unlink(dq_backlog_t *backlog, uint32_t index)
{
    dq_backlog_entry_t *entry = &backlog->entry[index];

    dq_backlog_unhash(backlog, index);
    if (entry->older == DQ_BACKLOG_NONE) {
        backlog->oldest = entry->newer;
    } else {
        backlog->entry[entry->older].newer = entry->newer;
    }
    if (entry->newer == DQ_BACKLOG_NONE) {
        backlog->newest = entry->older;
    } else {
        backlog->entry[entry->newer].older = entry->older;
    }
    entry->newer  = backlog->free;
    backlog->free = index;
    backlog->count--;
}


uint32_t dq_backlog_take(dq_backlog_t *backlog)
{
    uint32_t index = backlog->oldest;

    if (index != DQ_BACKLOG_NONE) {
        dq_backlog_unlink(backlog, index);
    }
    return index;
}


void dq_backlog_remove(dq_backlog_t *backlog, uint64_t key)
{
    uint32_t index = dq_backlog_find(backlog, key);

    if (index != DQ_BACKLOG_NONE) {
        dq_backlog_unlink(backlog, index);
    }
}
