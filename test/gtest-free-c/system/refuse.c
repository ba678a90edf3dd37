/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A shim over verbs that refuses what T_REFUSE names, so that tests can show
 * what a user is told. Preloaded in front of the device's library:
 *
 *   no_device     there is none (the list is empty)
 *   open_eacces   the device may not be opened
 *   port_down     its port is down
 *   no_srq        it has no shared receive queues
 *   reg_enomem    no memory can be registered
 *   no_gid        its GID table is empty
 *   create_qp     queue pairs cannot be made
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#undef ibv_reg_mr
#undef ibv_query_port

static int is_refused(const char *what)
{
    const char *refused = getenv("T_REFUSE");

    return (refused != NULL) && (strcmp(refused, what) == 0);
}


struct ibv_device **ibv_get_device_list(int *num_devices)
{
    struct ibv_device **(*real)(int*) = dlsym(RTLD_NEXT, __func__);

    if (!is_refused("no_device")) {
        return real(num_devices);
    }
    if (num_devices != NULL) {
        *num_devices = 0;
    }
    errno = ENOSYS;
    return NULL;
}


static int query_port_down(struct ibv_context *context, uint8_t port_num,
                           struct ibv_port_attr *attr, size_t length)
{
    (void)context;
    (void)port_num;
    memset(attr, 0, length);
    attr->state = IBV_PORT_DOWN;
    return 0;
}


struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct ibv_context *(*real)(struct ibv_device*) = dlsym(RTLD_NEXT,
                                                           __func__);
    struct ibv_context *context;

    if (is_refused("open_eacces")) {
        errno = EACCES;
        return NULL;
    }
    context = real(device);
    if ((context != NULL) && is_refused("port_down")) {
        /* the header calls it through the context, not by its symbol */
        verbs_get_ctx(context)->query_port = query_port_down;
    }
    return context;
}


int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    int (*real)(struct ibv_context*, struct ibv_device_attr*) =
            dlsym(RTLD_NEXT, __func__);
    int ret = real(context, attr);

    if (is_refused("no_srq")) {
        attr->max_srq = 0;
    }
    return ret;
}


int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num,
                      uint32_t gid_index, struct ibv_gid_entry *entry,
                      uint32_t flags, size_t entry_size)
{
    int (*real)(struct ibv_context*, uint32_t, uint32_t,
                struct ibv_gid_entry*, uint32_t, size_t) =
            dlsym(RTLD_NEXT, __func__);

    if (is_refused("no_gid")) {
        return ENODATA;
    }
    return real(context, port_num, gid_index, entry, flags, entry_size);
}


struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
                          int access)
{
    struct ibv_mr *(*real)(struct ibv_pd*, void*, size_t, int) =
            dlsym(RTLD_NEXT, __func__);

    if (is_refused("reg_enomem")) {
        errno = ENOMEM;
        return NULL;
    }
    return real(pd, addr, length, access);
}


struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp *(*real)(struct ibv_pd*, struct ibv_qp_init_attr*) =
            dlsym(RTLD_NEXT, __func__);

    if (is_refused("create_qp")) {
        errno = ENOMEM;
        return NULL;
    }
    return real(pd, attr);
}
