/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pool allocates buffers in chunks and numbers them. A work request's id, or a ledger
 * slot, names a buffer by this index in 32 bits. Chunks live as long as the pool.
 *
 * The table of buffers has its final size from the start. Growing the pool never moves
 * an entry that the other thread reads.
 */
#include "base/daqiri_pool.h"

#include "base/daqiri_log.h"
#include "base/daqiri_port.h"

#include <sys/mman.h>

enum { UCT_DAQIRI_POOL_CHUNKS_MIN = 64 };


static unsigned uct_daqiri_pool_chunks(const uct_daqiri_pool_t *pool)
{
    /* each growth is of 4 buffers or more (RX_WINDOW) */
    return ucs_max(pool->limit / 4 + 1, UCT_DAQIRI_POOL_CHUNKS_MIN);
}


ucs_status_t uct_daqiri_pool_init(uct_daqiri_pool_t *pool,
                                  const uct_daqiri_pool_params_t *params)
{
    *pool = (uct_daqiri_pool_t){
        .pd     = params->pd,
        .name   = params->name,
        .limit  = params->limit,
        .lead   = params->lead,
        .align  = params->align,
        .offset = params->offset,
        .stride = ucs_align_up(params->lead + params->length, params->align),
    };
    if (params->head > 0) {
        pool->head_stride = ucs_align_up(params->lead + params->head, params->align);
    }
    pthread_mutex_init(&pool->lock, NULL);

    pool->bufs       = ucs_calloc(pool->limit, sizeof(*pool->bufs), pool->name);
    pool->free_stack = ucs_calloc(pool->limit, sizeof(*pool->free_stack),
                                  pool->name);
    pool->chunks     = ucs_calloc(uct_daqiri_pool_chunks(pool),
                                  sizeof(*pool->chunks), pool->name);
    if ((pool->bufs == NULL) || (pool->free_stack == NULL) ||
        (pool->chunks == NULL)) {
        uct_daqiri_pool_cleanup(pool);
        return UCS_ERR_NO_MEMORY;
    }
    return UCS_OK;
}


static void uct_daqiri_chunk_free(uct_daqiri_chunk_t *chunk)
{
    if ((chunk->mr != NULL) && (ibv_dereg_mr(chunk->mr) != 0)) {
        ucs_warn("ibv_dereg_mr() failed: %m");
    }
    munmap(chunk->memory, chunk->length);
}


void uct_daqiri_pool_cleanup(uct_daqiri_pool_t *pool)
{
    unsigned i;

    for (i = 0; i < pool->chunk_count; i++) {
        uct_daqiri_chunk_free(&pool->chunks[i]);
    }
    ucs_free(pool->chunks);
    ucs_free(pool->free_stack);
    ucs_free(pool->bufs);
    pthread_mutex_destroy(&pool->lock);
}


/* In user space no device holds pages: one comes when it is first used. Most buffers of a
 * large job never hold a long message. */
static struct ibv_mr *uct_daqiri_chunk_reg(const uct_daqiri_pool_t *pool,
                                           const uct_daqiri_chunk_t *chunk)
{
    int access = IBV_ACCESS_LOCAL_WRITE;
    struct ibv_mr *mr;

    if (uct_daqiri_port_is_in_user_space(pool->pd->context->device)) {
        access |= IBV_ACCESS_ON_DEMAND;
    }
    for (;;) {
        mr = ibv_reg_mr(pool->pd, chunk->memory, chunk->length, access);
        if ((mr != NULL) || !(access & IBV_ACCESS_ON_DEMAND) || (errno != EINVAL)) {
            return mr;
        }
        access &= ~IBV_ACCESS_ON_DEMAND; /* the device has no such thing */
    }
}


static ucs_status_t uct_daqiri_chunk_alloc(uct_daqiri_pool_t *pool,
                                           uint32_t count,
                                           uct_daqiri_chunk_t *chunk)
{
    const size_t page = ucs_get_page_size();

    chunk->length = ucs_align_up(count * (pool->head_stride + pool->stride) +
                                 pool->align, page);
    chunk->memory = mmap(NULL, chunk->length, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk->memory == MAP_FAILED) {
        uct_daqiri_log_verb_rarely(&pool->log_limit, UCS_LOG_LEVEL_ERROR,
                                   pool->name, "mmap", errno);
        return UCS_ERR_NO_MEMORY;
    }

    chunk->mr = uct_daqiri_chunk_reg(pool, chunk);
    if (chunk->mr == NULL) {
        uct_daqiri_log_verb_rarely(&pool->log_limit, UCS_LOG_LEVEL_ERROR,
                                   pool->name, "ibv_reg_mr", errno);
        uct_daqiri_chunk_free(chunk);
        return UCS_ERR_NO_MEMORY;
    }
    return UCS_OK;
}


/* The first point of buffers that begin at @a from: it has `lead` bytes or more in front
 * of it, and the address `offset` bytes behind it is aligned. */
static uintptr_t uct_daqiri_pool_point(const uct_daqiri_pool_t *pool, uintptr_t from)
{
    return ucs_align_up(from + pool->lead + pool->offset, pool->align) -
           pool->offset;
}


/* The heads, then the buffers. A buffer's user gets the points. */
static void uct_daqiri_chunk_carve(uct_daqiri_pool_t *pool,
                                   const uct_daqiri_chunk_t *chunk,
                                   uint32_t first, uint32_t count)
{
    uintptr_t memory = (uintptr_t)chunk->memory;
    uintptr_t head   = uct_daqiri_pool_point(pool, memory);
    uintptr_t point  = uct_daqiri_pool_point(pool,
                                             memory + count * pool->head_stride);
    int has_heads    = pool->head_stride > 0;
    uint32_t i;

    for (i = 0; i < count; i++) {
        pool->bufs[first + i] = (uct_daqiri_buf_t){
            .buf  = (void*)point,
            .head = (void*)(has_heads ? head : point),
            .lkey = chunk->mr->lkey,
        };
        point += pool->stride;
        head  += pool->head_stride;
    }
}


ucs_status_t uct_daqiri_pool_grow(uct_daqiri_pool_t *pool, uint32_t count,
                                  uint32_t *first_p)
{
    ucs_status_t status = UCS_ERR_NO_RESOURCE;
    uct_daqiri_chunk_t chunk;

    pthread_mutex_lock(&pool->lock);
    if ((count > pool->limit - pool->count) ||
        (pool->chunk_count == uct_daqiri_pool_chunks(pool))) {
        goto out;
    }
    status = uct_daqiri_chunk_alloc(pool, count, &chunk);
    if (status != UCS_OK) {
        goto out;
    }

    pool->chunks[pool->chunk_count++] = chunk;
    *first_p                          = pool->count;
    uct_daqiri_chunk_carve(pool, &chunk, *first_p, count);
    pool->count += count;
    uct_daqiri_pool_check(pool);
out:
    pthread_mutex_unlock(&pool->lock);
    return status;
}


uint32_t uct_daqiri_pool_room(uct_daqiri_pool_t *pool)
{
    uint32_t room;

    pthread_mutex_lock(&pool->lock);
    room = pool->limit - pool->count;
    pthread_mutex_unlock(&pool->lock);
    return room;
}
