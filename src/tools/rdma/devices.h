/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The RDMA devices of this host and whether this user can use them, found by
 * trying: each is opened, its ports are asked for their state, and memory is
 * registered on it. Nothing stays open.
 *
 * The user-space device does not count here: it is on every host.
 */

#ifndef DAQIRI_DEVICES_H
#define DAQIRI_DEVICES_H

#include "tools/rdma/near.h"

#include <stddef.h>

#define DAQIRI_DEVICE_NAME_MAX 64

/* Names of the devices that libsoftverbs.so gives to every program begin so, and a number
 * follows: the first one unless SOFTVERBS_DEVICES asks for more. Whom they connect. */
#define DAQIRI_SOFT_DEVICES "softverbs"
#define DAQIRI_SOFT_DEVICE DAQIRI_SOFT_DEVICES "0"
#define DAQIRI_SOFT_REACH                                                  \
    "processes of one user on one host that share /dev/shm and the PID " \
    "namespace"

typedef enum daqiri_device_state {
    DAQIRI_DEVICE_USABLE,
    DAQIRI_DEVICE_NOT_RC,     /* neither InfiniBand nor RoCE: no UD, other RC */
    DAQIRI_DEVICE_NOT_OPENED, /* error says why */
    DAQIRI_DEVICE_PORT_DOWN   /* no port is ACTIVE; port is the first one */
} daqiri_device_state_t;

typedef struct daqiri_device {
    char name[DAQIRI_DEVICE_NAME_MAX];
    daqiri_device_state_t state;
    unsigned port;          /* from 1: the first ACTIVE one if there is one */
    const char *port_state; /* as libibverbs calls it; static */
    int error;              /* errno of what failed, or 0 */
    daqiri_near_t near;
} daqiri_device_t;

/* Returns 0 and an array to free(), also when there is no device (count 0,
 * no array), or an errno. */
int daqiri_devices_list(daqiri_device_t **devices_p, size_t *count_p);

/* Whether there is one of that name, usable or not; opens none. Returns 0;
 * ENODEV, and the names that there are, or "none"; or another errno. */
int daqiri_devices_look_up(const char *name, char *names, size_t length);

/* The first that is usable, or NULL. */
const daqiri_device_t *daqiri_devices_usable(const daqiri_device_t *devices,
                                             size_t count);

/* One clause that says why a device is not usable, such as
 * "its port 1 is down, not active". */
void daqiri_device_why_not(const daqiri_device_t *device, char *text,
                           size_t length);

/* Whether this user may register this much memory on the device: 0 or the
 * errno of what refused; ENOMEM is the locked memory limit if there is one. */
int daqiri_device_try_memory(const daqiri_device_t *device, size_t length);

/* Whether the name is that of a device of libsoftverbs.so; a port may follow it. */
int daqiri_is_soft_device(const char *name);

/* Where the software device keeps what its processes share. */
#define DAQIRI_SOFT_DEVICE_FOLDER "/dev/shm"

/* How many bytes are left there. Returns 0 or an errno: it is not there, or this
 * user may not write there. */
int daqiri_soft_device_room(unsigned long long *bytes_p);

#endif
