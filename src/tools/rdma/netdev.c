/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/rdma/netdev.h"

#include "tools/base/report.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int daqiri_netdev_sysfs_text(const char *path, char *text, size_t length)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;

    if (file != NULL) {
        line = fgets(text, (int)length, file);
        fclose(file);
    }
    if (line == NULL) {
        text[0] = '\0';
        return -1;
    }
    text[strcspn(text, "\n")] = '\0';
    return 0;
}

int daqiri_netdev_sysfs_link(const char *path, char *text, size_t length)
{
    char target[PATH_MAX];
    ssize_t used = readlink(path, target, sizeof(target) - 1);
    const char *slash;

    if (used <= 0) {
        text[0] = '\0';
        return -1;
    }
    target[used] = '\0';
    slash        = strrchr(target, '/');
    snprintf(text, length, "%s", (slash != NULL) ? slash + 1 : target);
    return 0;
}

/* A number of sysfs, or null: many drivers say -1 or nothing. */
static void net_number(json_t *row, const char *key, const char *folder,
                       const char *file, double factor)
{
    char path[PATH_MAX], text[64];
    long value;
    char *end;

    snprintf(path, sizeof(path), "%s/%s", folder, file);
    if (daqiri_netdev_sysfs_text(path, text, sizeof(text)) == 0) {
        value = strtol(text, &end, 10);
        if ((end != text) && (value >= 0)) {
            if (factor != 1) {
                daqiri_report_real(row, key, (double)value * factor);
            } else {
                daqiri_report_int(row, key, value);
            }
            return;
        }
    }
    daqiri_report_set(row, key, json_null());
}

void daqiri_netdev_sysfs_device(json_t *row, const char *folder)
{
    char path[PATH_MAX], text[64];

    snprintf(path, sizeof(path), "%s/device/driver", folder);
    daqiri_report_text(row, "driver",
                       (daqiri_netdev_sysfs_link(path, text, sizeof(text)) == 0) ?
                       text : NULL);
    net_number(row, "numa_node", folder, "device/numa_node", 1);
}

static void net_describe(json_t *row, const char *name)
{
    char folder[PATH_MAX], path[PATH_MAX + 32], text[64];

    snprintf(folder, sizeof(folder), "/sys/class/net/%s", name);
    daqiri_report_text(row, "name", name);
    daqiri_report_int(row, "index", if_nametoindex(name));
    snprintf(path, sizeof(path), "%s/operstate", folder);
    daqiri_netdev_sysfs_text(path, text, sizeof(text));
    daqiri_report_text(row, "state", (text[0] != '\0') ? text : NULL);
    net_number(row, "mtu", folder, "mtu", 1);
    net_number(row, "speed_gbps", folder, "speed", 1e-3);
    snprintf(path, sizeof(path), "%s/address", folder);
    daqiri_netdev_sysfs_text(path, text, sizeof(text));
    daqiri_report_text(row, "mac", (text[0] != '\0') ? text : NULL);
    daqiri_netdev_sysfs_device(row, folder);
    daqiri_report_array(row, "addresses");
    daqiri_report_set(row, "rdma", json_null());
}

static json_t *net_find(json_t *rows, const char *name)
{
    const char *other;
    size_t i;

    for (i = 0; i < json_array_size(rows); ++i) {
        other = daqiri_report_find_text(json_array_get(rows, i), "name");
        if ((other != NULL) && (strcmp(other, name) == 0)) {
            return json_array_get(rows, i);
        }
    }
    return NULL;
}

static unsigned net_prefix(const uint8_t *mask, size_t length)
{
    unsigned bits = 0;
    size_t i;

    for (i = 0; i < length; ++i) {
        bits += (unsigned)__builtin_popcount(mask[i]);
    }
    return bits;
}

static void net_add_address(json_t *row, const struct ifaddrs *address)
{
    int family = (address->ifa_addr != NULL) ? address->ifa_addr->sa_family : 0;
    char text[INET6_ADDRSTRLEN], full[INET6_ADDRSTRLEN + 8];
    size_t length;
    const uint8_t *raw, *mask;

    if ((family == AF_INET) && (address->ifa_netmask != NULL)) {
        raw  = (void*)&((struct sockaddr_in*)address->ifa_addr)->sin_addr;
        mask = (void*)&((struct sockaddr_in*)address->ifa_netmask)->sin_addr;
        length = 4;
    } else if ((family == AF_INET6) && (address->ifa_netmask != NULL)) {
        raw  = (void*)&((struct sockaddr_in6*)address->ifa_addr)->sin6_addr;
        mask = (void*)&((struct sockaddr_in6*)address->ifa_netmask)->sin6_addr;
        length = 16;
    } else {
        return;
    }
    inet_ntop(family, raw, text, sizeof(text));
    snprintf(full, sizeof(full), "%s/%u", text, net_prefix(mask, length));
    json_array_append_new(daqiri_report_array(row, "addresses"),
                          json_string(full));
}

int daqiri_netdev_list(json_t *rows)
{
    struct ifaddrs *list, *address;
    json_t *row;

    if (getifaddrs(&list) != 0) {
        return errno;
    }
    for (address = list; address != NULL; address = address->ifa_next) {
        row = net_find(rows, address->ifa_name);
        if (row == NULL) {
            row = daqiri_report_row(rows);
            net_describe(row, address->ifa_name);
        }
        net_add_address(row, address);
    }
    freeifaddrs(list);
    return 0;
}

void daqiri_netdev_name_rdma(json_t *rows, const char *name, const char *port)
{
    json_t *row = net_find(rows, name);

    if (row != NULL) {
        daqiri_report_text(row, "rdma", port);
    }
}
