/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Verbs that this device does not have, and verbs that mean nothing to it. All
 * must be here, because libibverbs' own versions would look for private parts
 * inside our objects.
 */
#include "softverbs/base/sv_util.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

/* Copies use virtual addresses of the live process, so a child may share pages
 * without harm. Nothing has to be initialised. */
SV_EXPORT int ibv_fork_init(void)
{
    return 0;
}

SV_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

SV_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    (void)qp;
    return NULL;
}

SV_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
                                  size_t size);

SV_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
                                  size_t size)
{
    (void)dir;
    (void)file;
    (void)buf;
    (void)size;
    return -1;
}

SV_EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd,
                           void *addr, size_t length, int access)
{
    (void)mr;
    (void)flags;
    (void)pd;
    (void)addr;
    (void)length;
    (void)access;
    errno = EOPNOTSUPP;
    return IBV_REREG_MR_ERR_INPUT;
}

SV_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
                                           size_t length, uint64_t iova, int fd,
                                           int access)
{
    (void)pd;
    (void)offset;
    (void)length;
    (void)iova;
    (void)fd;
    (void)access;
    errno = EOPNOTSUPP;
    return NULL;
}

SV_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
                               uint16_t lid)
{
    (void)qp;
    (void)gid;
    (void)lid;
    return EOPNOTSUPP;
}

SV_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
                               uint16_t lid)
{
    (void)qp;
    (void)gid;
    (void)lid;
    return EOPNOTSUPP;
}

SV_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp;
    (void)ece;
    return EOPNOTSUPP;
}

SV_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp;
    (void)ece;
    return EOPNOTSUPP;
}

SV_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp,
                                         enum ibv_wr_opcode op, uint32_t flags)
{
    (void)qp;
    (void)op;
    (void)flags;
    return 0;
}

SV_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
    (void)cmd_fd;
    errno = EOPNOTSUPP;
    return NULL;
}

SV_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context,
                                       uint32_t pd_handle)
{
    (void)context;
    (void)pd_handle;
    errno = EOPNOTSUPP;
    return NULL;
}

SV_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
    (void)pd;
}

SV_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
    (void)pd;
    (void)mr_handle;
    errno = EOPNOTSUPP;
    return NULL;
}

SV_EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
    (void)mr;
}

SV_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context,
                                       uint32_t dm_handle)
{
    (void)context;
    (void)dm_handle;
    errno = EOPNOTSUPP;
    return NULL;
}

SV_EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
    (void)dm;
}
