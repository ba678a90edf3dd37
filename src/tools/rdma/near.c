/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/rdma/near.h"

#include "tools/rdma/netdev.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the kernel can have at most (NR_CPUS, MAX_NUMNODES). */
#define NEAR_CPUS  8192
#define NEAR_NODES 1024

/* A list of the kernel's, such as 0-3,8: of `max` bits, those in it are 1. */
static void near_parse(const char *text, unsigned char *bits, long max)
{
    long first, last;
    char *end;

    memset(bits, 0, (size_t)max);
    for (;;) {
        first = strtol(text, &end, 10);
        if (end == text) {
            return;
        }
        last = (*end == '-') ? strtol(end + 1, &end, 10) : first;
        for (; (first >= 0) && (first <= last) && (first < max); ++first) {
            bits[first] = 1;
        }
        text = end + (*end == ',');
    }
}

static int near_read(const char *folder, const char *name, char *text,
                     size_t size)
{
    char path[PATH_MAX + 64];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return daqiri_netdev_sysfs_text(path, text, size);
}

/* The `index`th distance of a node, in the order of the nodes that are online. */
static double near_distance(const char *folder, long node, long index)
{
    char name[64];
    char text[8 * NEAR_NODES];
    char *at = text;
    char *end;
    double distance;

    snprintf(name, sizeof(name), "node%ld/distance", node);
    if (near_read(folder, name, text, sizeof(text)) != 0) {
        return DAQIRI_NEAR_UNKNOWN;
    }
    do {
        distance = (double)strtol(at, &end, 10);
        if (end == at) {
            return DAQIRI_NEAR_UNKNOWN;
        }
        at = end;
    } while (index-- > 0);
    return distance;
}

/* How many processors of this node there are for us. */
static long near_count(const char *folder, long node, const cpu_set_t *cpus)
{
    const size_t size = CPU_ALLOC_SIZE(NEAR_CPUS);
    static unsigned char bits[NEAR_CPUS];
    char name[64];
    char text[8 * NEAR_NODES];
    long count = 0;
    int cpu;

    snprintf(name, sizeof(name), "node%ld/cpulist", node);
    if (near_read(folder, name, text, sizeof(text)) != 0) {
        return 0;
    }
    near_parse(text, bits, NEAR_CPUS);
    for (cpu = 0; cpu < NEAR_CPUS; ++cpu) {
        count += bits[cpu] && CPU_ISSET_S(cpu, size, cpus);
    }
    return count;
}

/* Over all nodes in that folder, each with its weight. */
static double near_mean(const char *folder, long device_node,
                        const cpu_set_t *cpus)
{
    static unsigned char online[NEAR_NODES];
    char text[8 * NEAR_NODES];
    double distance, sum = 0;
    long count, total = 0;
    long index = 0;
    long node;

    if (near_read(folder, "online", text, sizeof(text)) != 0) {
        return DAQIRI_NEAR_UNKNOWN;
    }
    near_parse(text, online, NEAR_NODES);
    if ((device_node >= NEAR_NODES) || !online[device_node]) {
        return DAQIRI_NEAR_UNKNOWN;
    }
    for (node = 0; node < device_node; ++node) {
        index += online[node];
    }
    for (node = 0; node < NEAR_NODES; ++node) {
        count = online[node] ? near_count(folder, node, cpus) : 0;
        if (count > 0) {
            distance = near_distance(folder, node, index);
            if (distance < 0) {
                return DAQIRI_NEAR_UNKNOWN;
            }
            sum   += (double)count * distance;
            total += count;
        }
    }
    return (total > 0) ? sum / (double)total : DAQIRI_NEAR_UNKNOWN;
}

/* The root of sysfs is two folders above class/infiniband. */
static int near_find_nodes(const char *folder, char *nodes, size_t size)
{
    const char *found = strstr(folder, "/class/infiniband/");

    if (found == NULL) {
        return -1;
    }
    snprintf(nodes, size, "%.*s/devices/system/node", (int)(found - folder),
             folder);
    return 0;
}

void daqiri_near_ask(daqiri_near_t *near, const char *folder)
{
    const size_t size = CPU_ALLOC_SIZE(NEAR_CPUS);
    char nodes[PATH_MAX];
    char text[32];
    cpu_set_t *cpus;
    char *end;
    long node;

    near->node     = DAQIRI_NEAR_UNKNOWN;
    near->distance = DAQIRI_NEAR_UNKNOWN;
    if ((near_find_nodes(folder, nodes, sizeof(nodes)) != 0) ||
        (near_read(folder, "device/numa_node", text, sizeof(text)) != 0)) {
        return;
    }
    node = strtol(text, &end, 10);
    if ((end == text) || (node < 0) || (node >= NEAR_NODES)) {
        return; /* -1: a machine without nodes, or firmware that does not tell */
    }
    near->node = (int)node;
    cpus       = CPU_ALLOC(NEAR_CPUS);
    if (cpus == NULL) {
        return;
    }
    if (sched_getaffinity(0, size, cpus) == 0) {
        near->distance = near_mean(nodes, node, cpus);
    }
    CPU_FREE(cpus);
}
