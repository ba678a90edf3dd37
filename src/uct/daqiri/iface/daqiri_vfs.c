/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of an interface as files of UCX's VFS, if UCX was built with it:
 *
 *     /tmp/ucx/PID/uct/worker/ADDRESS/iface/ADDRESS/counters/NAME
 *
 * A read returns the counter itself. Sums and gauges are as they were at the last sample
 * (docs/stats.md). UCX asks for the files when somebody lists the folder, and again after
 * each new endpoint. It removes them before it closes the interface.
 *
 * Threads: the one that serves the VFS.
 */
#include "iface/daqiri_vfs.h"

#include "iface/daqiri_iface.h"

DQ_STATIC_ASSERT(sizeof(unsigned long) == sizeof(uint64_t),
                 "is how a counter is shown");


void uct_daqiri_iface_vfs_refresh(uct_iface_h tl_iface)
{
    uct_daqiri_iface_t *iface    = ucs_derived_of(tl_iface,
                                                  uct_daqiri_iface_t);
    const dq_stats_header_t *map = iface->stats.map;
    uint64_t *values             = UCS_PTR_BYTE_OFFSET(map, map->values_at);
    const char *name;
    uint32_t i;

    for (i = 0; i < map->count; i++) {
        name = dq_stats_entry(map, i)->name;
        if (name[0] != '\0') {
            /* an existing file is no error */
            (void)ucs_vfs_obj_add_ro_file(iface, ucs_vfs_show_primitive,
                                          &values[i], UCS_VFS_TYPE_ULONG,
                                          "counters/%s", name);
        }
    }
}
