/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registration of the user's memory. A registration is a system call that pins pages.
 * It is kept for the next time if UCX can tell when memory goes away
 * (compat/ucx_rcache.c). Otherwise memory is registered and deregistered each time.
 *
 * Threads: any.
 */
#include "base/daqiri_mem.h"

#include "base/daqiri_log.h"
#include "base/daqiri_md.h"


static int uct_daqiri_access_flags(const uct_daqiri_md_t *md,
                                   unsigned uct_flags)
{
    int access = IBV_ACCESS_LOCAL_WRITE;

    if (uct_flags & UCT_MD_MEM_ACCESS_REMOTE_PUT) {
        access |= IBV_ACCESS_REMOTE_WRITE;
    }
    if (uct_flags & UCT_MD_MEM_ACCESS_REMOTE_GET) {
        access |= IBV_ACCESS_REMOTE_READ;
    }
    if ((uct_flags & UCT_MD_MEM_ACCESS_REMOTE_ATOMIC) &&
        (md->attr.atomic_cap != IBV_ATOMIC_NONE)) {
        access |= IBV_ACCESS_REMOTE_ATOMIC;
    }
    return access;
}


/* Fills @a mem from what the verb returned. If that is NULL, errno says why. */
static ucs_status_t uct_daqiri_mem_take(const uct_daqiri_md_t *md,
                                        struct ibv_mr *mr, const char *verb,
                                        unsigned uct_flags,
                                        uct_daqiri_mem_t *mem)
{
    const int error = errno;

    if (mr == NULL) {
        uct_daqiri_log_verb((uct_flags & UCT_MD_MEM_FLAG_HIDE_ERRORS)
                                    ? UCS_LOG_LEVEL_DEBUG
                                    : UCS_LOG_LEVEL_ERROR,
                            ibv_get_device_name(md->context->device), verb,
                            error);
        return (error == ENOMEM) ? UCS_ERR_NO_MEMORY : UCS_ERR_IO_ERROR;
    }
    *mem = (uct_daqiri_mem_t){.mr = mr, .lkey = mr->lkey, .rkey = mr->rkey};
    return UCS_OK;
}


ucs_status_t uct_daqiri_mem_map(uct_daqiri_md_t *md, void *address,
                                size_t length, unsigned uct_flags,
                                uct_daqiri_mem_t *mem)
{
    struct ibv_mr *mr = ibv_reg_mr(md->pd, address, length,
                                   uct_daqiri_access_flags(md, uct_flags));

    return uct_daqiri_mem_take(md, mr, "ibv_reg_mr", uct_flags, mem);
}


/* Tries it with a bad descriptor. Only a device that has the verb looks at it. */
int uct_daqiri_mem_has_dmabuf(const uct_daqiri_md_t *md)
{
    struct ibv_mr *mr;

    errno = 0;
    mr    = ibv_reg_dmabuf_mr(md->pd, 0, ucs_get_page_size(), 0, -1,
                              IBV_ACCESS_LOCAL_WRITE);
    if (mr != NULL) {
        ibv_dereg_mr(mr);
        return 1;
    }
    return errno == EBADF;
}


ucs_status_t uct_daqiri_mem_reg_dmabuf(uct_daqiri_md_t *md, void *address,
                                       size_t length, unsigned uct_flags,
                                       int fd, size_t offset,
                                       uct_daqiri_mem_t **mem_p)
{
    uct_daqiri_mem_t *mem;
    struct ibv_mr *mr;
    ucs_status_t status;

    if (!md->has_dmabuf) {
        return UCS_ERR_UNSUPPORTED;
    }
    mem = ucs_malloc(sizeof(*mem), "daqiri_mem");
    if (mem == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    mr     = ibv_reg_dmabuf_mr(md->pd, offset, length, (uintptr_t)address, fd,
                               uct_daqiri_access_flags(md, uct_flags));
    status = uct_daqiri_mem_take(md, mr, "ibv_reg_dmabuf_mr", uct_flags, mem);
    if (status != UCS_OK) {
        ucs_free(mem);
        return status;
    }
    mem->is_dmabuf = 1;
    *mem_p         = mem;
    return UCS_OK;
}


ucs_status_t uct_daqiri_mem_unmap(uct_daqiri_mem_t *mem)
{
    int ret;

    uct_daqiri_mem_check(mem);
    ret = ibv_dereg_mr(mem->mr);
    if (ret != 0) {
        ucs_error("ibv_dereg_mr() failed: %s", strerror(ret));
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}


ucs_status_t uct_daqiri_mem_reg(uct_daqiri_md_t *md, void *address,
                                size_t length, unsigned uct_flags,
                                uct_daqiri_mem_t **mem_p)
{
    uct_daqiri_mem_t *mem;
    ucs_status_t status;

    if (md->rcache != NULL) {
        return uct_daqiri_rcache_get(md, address, length, uct_flags, mem_p);
    }
    mem = ucs_malloc(sizeof(*mem), "daqiri_mem");
    if (mem == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = uct_daqiri_mem_map(md, address, length, uct_flags, mem);
    if (status != UCS_OK) {
        ucs_free(mem);
        return status;
    }
    *mem_p = mem;
    return UCS_OK;
}


ucs_status_t uct_daqiri_mem_dereg(uct_daqiri_md_t *md, uct_daqiri_mem_t *mem,
                                  uct_completion_t *comp)
{
    ucs_status_t status;

    if ((md->rcache != NULL) && !mem->is_dmabuf) {
        uct_daqiri_rcache_put(md, mem, comp);
        return UCS_OK;
    }
    status = uct_daqiri_mem_unmap(mem);
    ucs_free(mem);
    if (comp != NULL) {
        uct_invoke_completion(comp, UCS_OK);
    }
    return status;
}
