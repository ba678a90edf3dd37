/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * How far a device is from the processors that this process may run on, as the kernel's
 * table of distances between NUMA nodes has it.
 */

#ifndef DAQIRI_NEAR_H
#define DAQIRI_NEAR_H

/* What the kernel does not say. */
#define DAQIRI_NEAR_UNKNOWN (-1)

typedef struct daqiri_near {
    int node;        /* of the device, or DAQIRI_NEAR_UNKNOWN */
    double distance; /* mean over the processors, 10 is none; or DAQIRI_NEAR_UNKNOWN */
} daqiri_near_t;

/* `folder` is the device's in sysfs: .../class/infiniband/NAME. */
void daqiri_near_ask(daqiri_near_t *near, const char *folder);

#endif
