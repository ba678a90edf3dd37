/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/rdma/devices.h"

#include <ctype.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

static void devices_ask_ports(daqiri_device_t *device,
                              struct ibv_context *context, unsigned num_ports)
{
    struct ibv_port_attr attr;
    unsigned port;
    int ret;

    device->state      = DAQIRI_DEVICE_PORT_DOWN;
    device->port_state = "missing";
    for (port = 1; port <= num_ports; ++port) {
        ret = ibv_query_port(context, (uint8_t)port, &attr);
        if (ret != 0) {
            device->error = ret;
            continue;
        }
        if ((port == 1) || (attr.state == IBV_PORT_ACTIVE)) {
            device->port       = port;
            device->port_state = ibv_port_state_str(attr.state);
        }
        if (attr.state == IBV_PORT_ACTIVE) {
            device->state = DAQIRI_DEVICE_USABLE;
            device->error = 0;
            return;
        }
    }
}

static void devices_ask(daqiri_device_t *device, struct ibv_device *ibv_device)
{
    struct ibv_device_attr attr;
    struct ibv_context *context;

    snprintf(device->name, sizeof(device->name), "%s",
             ibv_get_device_name(ibv_device));
    device->port = 1;
    daqiri_near_ask(&device->near, ibv_device->ibdev_path);

    if (ibv_device->transport_type != IBV_TRANSPORT_IB) {
        device->state = DAQIRI_DEVICE_NOT_RC;
        return;
    }

    device->state = DAQIRI_DEVICE_NOT_OPENED;
    errno         = 0;
    context       = ibv_open_device(ibv_device);
    if (context == NULL) {
        /* libibverbs does not promise to set errno. */
        device->error = (errno != 0) ? errno : EIO;
        return;
    }
    device->error = ibv_query_device(context, &attr);
    if (device->error == 0) {
        devices_ask_ports(device, context, attr.phys_port_cnt);
    }
    ibv_close_device(context);
}

static struct ibv_device **devices_open_list(int *count_p)
{
    struct ibv_device **list = ibv_get_device_list(count_p);

    /* No RDMA in the kernel at all is an answer like "none". */
    if ((list == NULL) && (errno == ENOSYS)) {
        errno = 0;
    }
    return list;
}

int daqiri_devices_list(daqiri_device_t **devices_p, size_t *count_p)
{
    struct ibv_device **list;
    daqiri_device_t *devices;
    int count = 0;
    size_t used = 0;
    int i;

    errno = 0;
    list  = devices_open_list(&count);
    if (list == NULL) {
        *devices_p = NULL;
        *count_p   = 0;
        return errno;
    }

    devices = calloc((size_t)count + 1, sizeof(*devices));
    if (devices == NULL) {
        ibv_free_device_list(list);
        return ENOMEM;
    }
    for (i = 0; i < count; ++i) {
        if (!daqiri_is_soft_device(ibv_get_device_name(list[i]))) {
            devices_ask(&devices[used++], list[i]);
        }
    }
    ibv_free_device_list(list);

    *devices_p = devices;
    *count_p   = used;
    return 0;
}

int daqiri_devices_look_up(const char *name, char *names, size_t length)
{
    struct ibv_device **list;
    size_t used  = 0;
    int is_there = 0;
    int count    = 0;
    int i;

    errno = 0;
    list  = devices_open_list(&count);
    if ((list == NULL) && (errno != 0)) {
        return errno;
    }
    snprintf(names, length, "none");
    for (i = 0; (i < count) && (used < length); ++i) {
        is_there |= (strcmp(ibv_get_device_name(list[i]), name) == 0);
        used     += (size_t)snprintf(names + used, length - used, "%s%s",
                                     (i > 0) ? ", " : "",
                                     ibv_get_device_name(list[i]));
    }
    if (list != NULL) {
        ibv_free_device_list(list);
    }
    return is_there ? 0 : ENODEV;
}

const daqiri_device_t *daqiri_devices_usable(const daqiri_device_t *devices,
                                             size_t count)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        if (devices[i].state == DAQIRI_DEVICE_USABLE) {
            return &devices[i];
        }
    }
    return NULL;
}

void daqiri_device_why_not(const daqiri_device_t *device, char *text,
                           size_t length)
{
    switch (device->state) {
    case DAQIRI_DEVICE_USABLE:
        snprintf(text, length, "it is usable");
        break;
    case DAQIRI_DEVICE_NOT_RC:
        snprintf(text, length, "it is neither InfiniBand nor RoCE");
        break;
    case DAQIRI_DEVICE_NOT_OPENED:
        if ((device->error == EACCES) || (device->error == EPERM)) {
            snprintf(text, length,
                     "this user may not open it (look at the permissions of "
                     "/dev/infiniband/uverbs*)");
        } else {
            snprintf(text, length, "it cannot be opened: %s",
                     strerror(device->error));
        }
        break;
    case DAQIRI_DEVICE_PORT_DOWN:
        if (device->error != 0) {
            snprintf(text, length, "its ports cannot be asked: %s",
                     strerror(device->error));
        } else {
            snprintf(text, length, "its port %u is %s, not active",
                     device->port, device->port_state);
        }
        break;
    }
}

static int devices_try_pd(struct ibv_context *context, size_t length)
{
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    void *memory;
    int ret = 0;

    errno = 0;
    pd    = ibv_alloc_pd(context);
    if (pd == NULL) {
        return (errno != 0) ? errno : EIO;
    }
    memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        ret = errno;
    } else {
        errno = 0;
        mr    = ibv_reg_mr(pd, memory, length, IBV_ACCESS_LOCAL_WRITE);
        if (mr == NULL) {
            ret = (errno != 0) ? errno : EIO;
        } else {
            ibv_dereg_mr(mr);
        }
        munmap(memory, length);
    }
    ibv_dealloc_pd(pd);
    return ret;
}

int daqiri_device_try_memory(const daqiri_device_t *device, size_t length)
{
    struct ibv_device **list;
    struct ibv_context *context;
    int ret = ENODEV;
    int count, i;

    list = ibv_get_device_list(&count);
    if (list == NULL) {
        return ENODEV;
    }
    for (i = 0; i < count; ++i) {
        if (strcmp(ibv_get_device_name(list[i]), device->name) != 0) {
            continue;
        }
        context = ibv_open_device(list[i]);
        if (context != NULL) {
            ret = devices_try_pd(context, length);
            ibv_close_device(context);
        }
        break;
    }
    ibv_free_device_list(list);
    return ret;
}

int daqiri_is_soft_device(const char *name)
{
    static const char begin[] = DAQIRI_SOFT_DEVICES;

    return (strncmp(name, begin, sizeof(begin) - 1) == 0) &&
           isdigit((unsigned char)name[sizeof(begin) - 1]);
}

int daqiri_soft_device_room(unsigned long long *bytes_p)
{
    struct statvfs fs;

    /* EROFS, too, which for root is all that is in the way */
    if ((statvfs(DAQIRI_SOFT_DEVICE_FOLDER, &fs) != 0) ||
        (access(DAQIRI_SOFT_DEVICE_FOLDER, W_OK | X_OK) != 0)) {
        return errno;
    }
    *bytes_p = (unsigned long long)fs.f_bavail * fs.f_frsize;
    return 0;
}
