/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registered memory, with UCX's registration cache or without.
 *
 * Threads: any.
 */
#ifndef UCT_DAQIRI_MEM_H
#define UCT_DAQIRI_MEM_H

#include "base/daqiri_md.h"

/* A memory handle. A packed key is the rkey. */
typedef struct {
    struct ibv_mr *mr;
    uint32_t      lkey, rkey;
    int           is_dmabuf; /* of another device: not in the cache          */
    int           may_invalidate; /* a key was packed that can be taken back */
} uct_daqiri_mem_t;

/* A handle that is in use has a registration, and its keys. */
static inline void uct_daqiri_mem_check(const uct_daqiri_mem_t *mem)
{
    uct_daqiri_assert(mem->mr != NULL);
    uct_daqiri_assert(mem->lkey == mem->mr->lkey);
    uct_daqiri_assert(mem->rkey == mem->mr->rkey);
}

ucs_status_t uct_daqiri_mem_reg(uct_daqiri_md_t *md, void *address,
                                size_t length, unsigned uct_flags,
                                uct_daqiri_mem_t **mem_p);
/* Registers memory of another device. @a fd and @a offset name it, and requests use
 * @a address for it. UCS_ERR_UNSUPPORTED if the RDMA device cannot do this. */
ucs_status_t uct_daqiri_mem_reg_dmabuf(uct_daqiri_md_t *md, void *address,
                                       size_t length, unsigned uct_flags,
                                       int fd, size_t offset,
                                       uct_daqiri_mem_t **mem_p);
/* Whether the device can register such memory. Asks the device. */
int uct_daqiri_mem_has_dmabuf(const uct_daqiri_md_t *md);
/* Completes @a comp, which may be NULL, when the device does not know the keys any
 * more. That may be before this returns. It is at the latest when all users of the same
 * registration have released it. */
ucs_status_t uct_daqiri_mem_dereg(uct_daqiri_md_t *md, uct_daqiri_mem_t *mem,
                                  uct_completion_t *comp);
/* The verbs, without the cache. */
ucs_status_t uct_daqiri_mem_map(uct_daqiri_md_t *md, void *address,
                                size_t length, unsigned uct_flags,
                                uct_daqiri_mem_t *mem);
ucs_status_t uct_daqiri_mem_unmap(uct_daqiri_mem_t *mem);

/* ---- compat/ucx_rcache.c ---- */

/* Makes md->rcache if the options and UCX allow it. */
void uct_daqiri_rcache_open(uct_daqiri_md_t *md,
                            const uct_daqiri_md_config_t *config);
void uct_daqiri_rcache_close(uct_daqiri_md_t *md);
ucs_status_t uct_daqiri_rcache_get(uct_daqiri_md_t *md, void *address,
                                   size_t length, unsigned uct_flags,
                                   uct_daqiri_mem_t **mem_p);
/* @a comp: see uct_daqiri_mem_dereg(). */
void uct_daqiri_rcache_put(uct_daqiri_md_t *md, uct_daqiri_mem_t *mem,
                           uct_completion_t *comp);

#endif
