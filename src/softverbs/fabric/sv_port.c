/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The addresses of the port, which tell where this process is (base/sv_site.h).
 *
 * They are computed when the process makes its segment, because they tell
 * whether others can find that segment.
 */
#include "softverbs/base/sv_limits.h"
#include "softverbs/base/sv_process.h"
#include "softverbs/base/sv_site.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/fabric/sv_port.h"
#include "softverbs/fabric/sv_segment.h"

#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static _Atomic uint64_t sv_prefix;
_Atomic uint16_t sv_lid;

static _Atomic uint32_t sv_gid_changes;
static _Atomic uint32_t sv_gid_moves;
static atomic_bool sv_link_is_down;

/* ---- looking ---- */

/* Reads the first line of a small file; empty if it cannot be read. */
static void sv_address_read_file(const char *path, char *text, size_t size)
{
    ssize_t length = -1;
    int fd         = open(path, O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        length = read(fd, text, size - 1);
        close(fd);
    }
    text[(length > 0) ? length : 0] = '\0';
}

/* Falls back to the host's name where /proc has no boot_id. */
static void sv_address_boot_id(char *boot, size_t size)
{
    struct utsname names;

    sv_address_read_file("/proc/sys/kernel/random/boot_id", boot, size);
    boot[strcspn(boot, "\n")] = '\0';
    if ((boot[0] == '\0') && (uname(&names) == 0)) {
        snprintf(boot, size, "%.*s", (int)size - 1, names.nodename);
    }
}

void sv_address_init(void)
{
    struct sv_site site = {
        .version = SV_VERSION,
        .uid     = geteuid(),
        .pid_ns  = sv_pid_namespace()
    };
    char map[4096];

    sv_address_boot_id(site.boot, sizeof(site.boot));
    sv_address_read_file("/proc/self/uid_map", map, sizeof(map));
    site.owner = sv_site_owner(map, site.uid);
    sv_segment_folder_id(&site.device, &site.inode);
    atomic_store(&sv_prefix, sv_site_prefix(&site));
    atomic_store(&sv_lid, sv_site_lid(&site));
}

/* ---- what may change while the device is open ---- */

uint32_t sv_port_gid_index(void)
{
    return atomic_load(&sv_gid_moves) % SV_GID_PLACES;
}

void sv_port_change_gid(void)
{
    atomic_fetch_add(&sv_gid_changes, 1);
}

void sv_port_move_gid(void)
{
    atomic_fetch_add(&sv_gid_moves, 1);
}

bool sv_port_link_is_down(void)
{
    return atomic_load_explicit(&sv_link_is_down, memory_order_relaxed);
}

void sv_port_set_link(bool is_up)
{
    atomic_store(&sv_link_is_down, !is_up);
}

void sv_port_reset(void)
{
    atomic_store(&sv_gid_changes, 0);
    atomic_store(&sv_gid_moves, 0);
    atomic_store(&sv_link_is_down, false);
}

/* ---- addresses ---- */

void sv_port_gid(union ibv_gid *gid_p)
{
    gid_p->global.subnet_prefix = htobe64(atomic_load(&sv_prefix));
    gid_p->global.interface_id  = htobe64(SV_GUID +
                                          atomic_load(&sv_gid_changes));
}

bool sv_address_is_local(const struct ibv_ah_attr *to)
{
    return to->is_global ? (be64toh(to->grh.dgid.global.subnet_prefix) ==
                            atomic_load(&sv_prefix)) :
                           (to->dlid == sv_port_lid());
}

/* Multicast addresses are no process's place. */
static bool sv_address_is_multicast(const struct ibv_ah_attr *to)
{
    return to->is_global ? (to->grh.dgid.raw[0] == 0xff) : (to->dlid >= 0xc000);
}

static void sv_address_print(const struct ibv_ah_attr *to, char *text,
                             size_t size)
{
    char theirs[INET6_ADDRSTRLEN], ours[INET6_ADDRSTRLEN];
    union ibv_gid gid;

    if (to->is_global) {
        sv_port_gid(&gid);
        inet_ntop(AF_INET6, to->grh.dgid.raw, theirs, sizeof(theirs));
        inet_ntop(AF_INET6, gid.raw, ours, sizeof(ours));
        snprintf(text, size, "GID %s from here (%s)", theirs, ours);
    } else {
        snprintf(text, size, "LID %u from here (%u)", to->dlid,
                 sv_port_lid());
    }
}

void sv_address_check(const struct ibv_ah_attr *to)
{
    static atomic_bool logged;
    char text[2 * INET6_ADDRSTRLEN + 32];

    if (sv_address_is_local(to) || sv_address_is_multicast(to) ||
        atomic_exchange(&logged, true)) {
        return;
    }
    sv_address_print(to, text, sizeof(text));
    sv_log("nobody can be reached at %s: " SV_DEVICE_NAME " connects processes "
           "of one user on one host that share " SV_SHM_DIR " and the PID "
           "namespace; others are reached over an RDMA NIC or Soft-RoCE", text);
}
