/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hides the device from librdmacm where librdmacm cannot use it.
 *
 * librdmacm looks for devices before it looks for its kernel module. If there
 * is a device but no module, rsocket() and rdma_create_ep() return ENOMEM,
 * which sends people looking for memory. If there is no device, they return
 * ENODEV.
 */
#include "softverbs/verbs/sv_ibv.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#define SV_RDMA_CM "/dev/infiniband/rdma_cm"

bool sv_is_idle_rdmacm(const void *caller)
{
    Dl_info info;

    return (dladdr(caller, &info) != 0) && (info.dli_fname != NULL) &&
           (strstr(info.dli_fname, "librdmacm.so") != NULL) &&
           (access(SV_RDMA_CM, F_OK) != 0);
}
