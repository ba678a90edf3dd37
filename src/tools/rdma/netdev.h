/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The network interfaces of this host, as rows of a report, and what sysfs has
 * to say of devices. Asks the kernel only; sends nothing.
 */

#ifndef DAQIRI_NETDEV_H
#define DAQIRI_NETDEV_H

#include <jansson.h>
#include <stddef.h>

/* Appends {"name", "index", "state", "mtu" (bytes), "speed_gbps", "mac",
 * "driver", "numa_node", "addresses", "rdma"}; what is not known is null.
 * Returns 0 or an errno. */
int daqiri_netdev_list(json_t *rows);

/* Notes that this RDMA port ("rxe0:1") goes over that interface. */
void daqiri_netdev_name_rdma(json_t *rows, const char *name, const char *port);

/* The first line of a file, or where a link goes to without its folders.
 * Return 0, or -1 and an empty text. */
int daqiri_netdev_sysfs_text(const char *path, char *text, size_t length);
int daqiri_netdev_sysfs_link(const char *path, char *text, size_t length);

/* Sets "driver" and "numa_node" of the device behind a folder of /sys/class. */
void daqiri_netdev_sysfs_device(json_t *row, const char *folder);

#endif
