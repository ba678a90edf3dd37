/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librdmacm looks for devices before it looks for its kernel module. Where the
 * module is not, but a device is, rsocket() and rdma_create_ep() say ENOMEM,
 * which sends people looking for memory. So librdmacm finds no device on a
 * machine where it could do nothing with one, and says what it says there:
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
