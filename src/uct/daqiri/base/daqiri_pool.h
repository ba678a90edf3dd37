/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registered buffers of one size, in chunks.
 *
 * Threads: progress. Any thread may grow a pool.
 */
#ifndef UCT_DAQIRI_POOL_H
#define UCT_DAQIRI_POOL_H

#include "base/daqiri_log.h"

typedef struct {
    void     *buf;  /* the point                                             */
    void     *head; /* the point of the head; without heads the same         */
    uint32_t lkey;
} uct_daqiri_buf_t;

/* What the buffers of a pool are like. */
typedef struct {
    const char    *name;
    struct ibv_pd *pd;
    uint32_t      limit;  /* most buffers                                    */
    size_t        lead;   /* bytes in front of the point                     */
    size_t        length; /* bytes from the point on                         */
    size_t        head;   /* bytes from the point of a head on; 0: no heads  */
    size_t        align;  /* of the point and offset bytes; a cache line or more */
    size_t        offset;
} uct_daqiri_pool_params_t;

typedef struct {
    void          *memory;
    size_t        length;
    struct ibv_mr *mr;
} uct_daqiri_chunk_t;

typedef struct {
    struct ibv_pd      *pd;
    const char         *name;
    size_t             stride;      /* bytes from one buffer to the next     */
    size_t             head_stride; /* the same of heads; 0: there are none  */
    size_t             lead;        /* bytes in front of the point           */
    size_t             align;       /* of the point and offset bytes         */
    size_t             offset;
    uint32_t           limit;       /* most buffers                          */
    uint32_t           count;       /* buffers that exist                    */
    uct_daqiri_buf_t   *bufs;       /* [limit], by index                     */
    uint32_t           *free_stack; /* [limit], indices; progress            */
    uint32_t           free_count;
    uct_daqiri_chunk_t *chunks;
    unsigned           chunk_count;
    pthread_mutex_t    lock;        /* of what follows, count, chunks        */
    uct_daqiri_log_limit_t log_limit;
} uct_daqiri_pool_t;

/* A head is a second, small buffer. Those of a chunk lie side by side, so that they need
 * few pages of memory. */
ucs_status_t uct_daqiri_pool_init(uct_daqiri_pool_t *pool,
                                  const uct_daqiri_pool_params_t *params);
void uct_daqiri_pool_cleanup(uct_daqiri_pool_t *pool);
/* Makes @a count more buffers, with indices from *first_p on. They belong to the caller
 * and are not on the free stack. Any thread. */
ucs_status_t uct_daqiri_pool_grow(uct_daqiri_pool_t *pool, uint32_t count,
                                  uint32_t *first_p);

/* How many more buffers may be made. Any thread. */
uint32_t uct_daqiri_pool_room(uct_daqiri_pool_t *pool);

/* The counts are within their limits, and the last buffer lies within the last chunk.
 * The caller holds the lock. */
static inline void uct_daqiri_pool_check(uct_daqiri_pool_t *pool)
{
#if DQ_DEBUG
    const uct_daqiri_chunk_t *chunk = &pool->chunks[pool->chunk_count - 1];
    const char *last;

    uct_daqiri_assert_held(&pool->lock);
    uct_daqiri_assert(pool->count <= pool->limit);
    uct_daqiri_assert((pool->chunk_count > 0) &&
                      (pool->chunk_count <= pool->count));
    last = pool->bufs[pool->count - 1].buf;
    uct_daqiri_assert(last - pool->lead >= (const char*)chunk->memory);
    uct_daqiri_assert(last - pool->lead + pool->stride <=
                      (const char*)chunk->memory + chunk->length);
#else
    (void)pool;
#endif
}

static inline void uct_daqiri_pool_put(uct_daqiri_pool_t *pool, uint32_t index)
{
    uct_daqiri_assert(index < pool->limit);
    uct_daqiri_assert(pool->free_count < pool->limit);
    pool->free_stack[pool->free_count++] = index;
}

#endif
