/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Verbs that libibverbs has had since 1.15 of its versions. The headers that this
 * is built with may not have them, so they are declared here. Those of objects that
 * the device refuses to create are left out: nobody can call them.
 *
 * A buffer of ibv_alloc_buf() is memory of the process, page by page.
 */
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>

#undef ibv_reg_mr

struct ibv_buf {
    void *address;
    size_t length;
};

struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_dmah_init_attr;
struct ibv_mr_init_attr;

SV_EXPORT struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context,
                                          struct ibv_dmah_init_attr *attr);
SV_EXPORT struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd,
                                       struct ibv_mr_init_attr *attr);
SV_EXPORT int ibv_query_port_speed(struct ibv_context *context,
                                   uint32_t port_num, uint64_t *speed);
SV_EXPORT void *ibv_alloc_buf(struct ibv_pd *pd, size_t size,
                              struct ibv_buf **buf_p);
SV_EXPORT void ibv_free_buf(struct ibv_buf *buf);
SV_EXPORT struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf,
                                        void *addr, size_t length, int access);
SV_EXPORT int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);
SV_EXPORT int _ibv_query_comp_cntr_caps(struct ibv_context *context,
                                        struct ibv_comp_cntr_caps *caps,
                                        size_t size);
SV_EXPORT struct ibv_comp_cntr *
ibv_create_comp_cntr(struct ibv_context *context,
                     struct ibv_comp_cntr_init_attr *attr);

struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context,
                                struct ibv_dmah_init_attr *attr)
{
    (void)context;
    (void)attr;
    errno = EOPNOTSUPP;
    return NULL;
}

struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr)
{
    (void)pd;
    (void)attr;
    errno = EOPNOTSUPP;
    return NULL;
}

int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num,
                         uint64_t *speed)
{
    (void)context;
    (void)port_num;
    (void)speed;
    return EOPNOTSUPP;
}

void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf_p)
{
    struct ibv_buf *buf;
    int error;

    (void)pd;
    if (size == 0) {
        errno = EINVAL;
        return NULL;
    }
    buf = malloc(sizeof(*buf));
    if (buf == NULL) {
        return NULL;
    }
    error = posix_memalign(&buf->address, SV_PAGE, size);
    if (error != 0) {
        free(buf);
        errno = error;
        return NULL;
    }
    buf->length = size;
    *buf_p      = buf;
    return buf->address;
}

void ibv_free_buf(struct ibv_buf *buf)
{
    free(buf->address);
    free(buf);
}

struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr,
                              size_t length, int access)
{
    size_t offset = (uintptr_t)addr - (uintptr_t)buf->address;

    if ((offset > buf->length) || (length > buf->length - offset)) {
        errno = EINVAL;
        return NULL;
    }
    return ibv_reg_mr(pd, addr, length, access);
}

int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
    (void)buf;
    errno = EOPNOTSUPP;
    return -1;
}

int _ibv_query_comp_cntr_caps(struct ibv_context *context,
                              struct ibv_comp_cntr_caps *caps, size_t size)
{
    (void)context;
    (void)caps;
    (void)size;
    return EOPNOTSUPP;
}

struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *context,
                                           struct ibv_comp_cntr_init_attr *attr)
{
    (void)context;
    (void)attr;
    errno = EOPNOTSUPP;
    return NULL;
}
