/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * RDMA devices that a machine does not have, for programs that only list and
 * open them. Preloaded; FAKE_VERBS names the devices and what is up with each,
 * such as "mlx5_0=active mlx5_1=down":
 *
 *   active  port 1 is ACTIVE            down    both ports are DOWN
 *   second  only port 2 is ACTIVE       denied  this user may not open it
 *   broken  it cannot be opened         iwarp   of a kind without RC and UD
 *   wedged  opening it never comes back; it makes the file FAKE_FILE
 *   deadly  opening it ends the process
 *   limit   active, but memory is registered only up to the locked memory
 *           limit, as the kernel does for an ordinary user
 *
 * "list=denied" instead fails the listing itself.
 *
 * FAKE_SYSFS is the root of their sysfs, from which a test says where each device is.
 *
 * With FAKE_GIDS the ports are RoCE, and these are the GIDs of port 1, in
 * order from index 0, on the interface lo: "v1=fe80::1 v2=::ffff:192.0.2.1".
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* verbs.h makes a macro of it. */
#undef ibv_reg_mr
#undef ibv_query_port

#define FAKE_MAX 8

typedef struct fake_device {
    struct ibv_device device;
    char state[16];
    struct ibv_context context;
} fake_device_t;

static fake_device_t fake_devices[FAKE_MAX];

static fake_device_t *fake_of(struct ibv_context *context)
{
    return (fake_device_t*)((char*)context - offsetof(fake_device_t, context));
}

static int fake_is(const fake_device_t *fake, const char *state)
{
    return strcmp(fake->state, state) == 0;
}

static int fake_parse(void)
{
    const char *text  = getenv("FAKE_VERBS");
    const char *sysfs = getenv("FAKE_SYSFS");
    int count        = 0;
    int length;

    text = (text != NULL) ? text : "";
    while ((count < FAKE_MAX) &&
           (sscanf(text, " %63[^=]=%15s%n", fake_devices[count].device.name,
                   fake_devices[count].state, &length) == 2)) {
        fake_devices[count].device.transport_type =
                fake_is(&fake_devices[count], "iwarp") ? IBV_TRANSPORT_IWARP :
                                                         IBV_TRANSPORT_IB;
        snprintf(fake_devices[count].device.ibdev_path,
                 sizeof(fake_devices[count].device.ibdev_path),
                 "%.180s/class/infiniband/%.50s",
                 (sysfs != NULL) ? sysfs : "/nowhere",
                 fake_devices[count].device.name);
        text += length;
        ++count;
    }
    return count;
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
    int count = fake_parse();
    struct ibv_device **list;
    int i;

    if ((count > 0) && (strcmp(fake_devices[0].device.name, "list") == 0)) {
        errno = EPERM;
        return NULL;
    }
    list = calloc((size_t)count + 1, sizeof(*list));
    for (i = 0; (list != NULL) && (i < count); ++i) {
        list[i] = &fake_devices[i].device;
    }
    if (num_devices != NULL) {
        *num_devices = count;
    }
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

static void fake_hang(void)
{
    const char *path = getenv("FAKE_FILE");

    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    if (path != NULL) {
        close(open(path, O_CREAT | O_WRONLY, 0600));
    }
    for (;;) {
        pause();
    }
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    fake_device_t *fake = (fake_device_t*)device;

    if (fake_is(fake, "denied")) {
        errno = EACCES;
        return NULL;
    }
    if (fake_is(fake, "broken")) {
        errno = EIO;
        return NULL;
    }
    if (fake_is(fake, "deadly")) {
        abort();
    }
    if (fake_is(fake, "wedged")) {
        fake_hang();
    }
    fake->context.device = device;
    return &fake->context;
}

int ibv_close_device(struct ibv_context *context)
{
    (void)context;
    return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    (void)context;
    memset(attr, 0, sizeof(*attr));
    attr->phys_port_cnt = 2;
    return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port_num,
                   struct _compat_ibv_port_attr *compat)
{
    struct ibv_port_attr *attr = (struct ibv_port_attr*)compat;
    fake_device_t *fake        = fake_of(context);
    int active = fake_is(fake, "second") ? (port_num == 2) :
                                           (port_num == 1);

    active = active && !fake_is(fake, "down");

    attr->state = active ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    if (getenv("FAKE_GIDS") != NULL) {
        attr->link_layer  = IBV_LINK_LAYER_ETHERNET;
        attr->gid_tbl_len = FAKE_MAX;
    }
    return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context,
                             struct ibv_gid_entry *entries, size_t max,
                             uint32_t flags, size_t entry_size)
{
    const char *text = getenv("FAKE_GIDS");
    char type[8], gid[64];
    ssize_t count = 0;
    int length;

    (void)context;
    (void)flags;
    (void)entry_size;
    text = (text != NULL) ? text : "";
    while (((size_t)count < max) &&
           (sscanf(text, " %7[^=]=%63s%n", type, gid, &length) == 2)) {
        memset(&entries[count], 0, sizeof(entries[count]));
        entries[count].gid_index    = (uint32_t)count;
        entries[count].port_num     = 1;
        entries[count].gid_type     = (strcmp(type, "v2") == 0) ?
                                      IBV_GID_TYPE_ROCE_V2 :
                                      IBV_GID_TYPE_ROCE_V1;
        entries[count].ndev_ifindex = 1;
        inet_pton(AF_INET6, gid, entries[count].gid.raw);
        text += length;
        ++count;
    }
    return count;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    static struct ibv_pd pd;

    pd.context = context;
    return &pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    (void)pd;
    return 0;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
                          int access)
{
    static struct ibv_mr mr;
    struct rlimit limit;

    (void)addr;
    (void)access;
    if (fake_is(fake_of(pd->context), "limit") &&
        (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) &&
        (limit.rlim_cur < length)) {
        errno = ENOMEM;
        return NULL;
    }
    return &mr;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    (void)mr;
    return 0;
}
