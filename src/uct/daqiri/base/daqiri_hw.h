/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port's own counters of errors. Where the driver tells them, sysfs has a file
 * for each.
 *
 * A snapshot is what they were at one moment. One is taken when an interface is
 * opened. Another is taken when a connection is up for the first time; all
 * connections that come up within a second share it. A job connects to thousands
 * of peers at once, and some drivers ask the device for each counter. When a
 * connection fails, its message tells what has grown since its snapshot.
 *
 * A snapshot does not change, and lives until its last user has released it.
 *
 * Threads: any. Reading calls the kernel; the data path never does it.
 */
#ifndef UCT_DAQIRI_HW_H
#define UCT_DAQIRI_HW_H

#include "daqiri.h"

typedef struct uct_daqiri_hw uct_daqiri_hw_t;

typedef struct {
    const struct ibv_device *device;
    uint8_t                 num;
} uct_daqiri_hw_port_t;

/* A new snapshot. NULL if there is no memory. @a first: an earlier one of the port, or
 * NULL. A counter that the port did not have then is not looked for again. */
uct_daqiri_hw_t *uct_daqiri_hw_read(const uct_daqiri_hw_port_t *port,
                                    const uct_daqiri_hw_t *first);
/* A reference to *last_p, which is first taken anew if it is older than a second.
 * NULL if there is no memory. *last_p belongs to one thread. @a first: as above. */
uct_daqiri_hw_t *uct_daqiri_hw_share(const uct_daqiri_hw_port_t *port,
                                     const uct_daqiri_hw_t *first,
                                     uct_daqiri_hw_t **last_p);
/* Gives one reference back. NULL is allowed. */
void uct_daqiri_hw_release(uct_daqiri_hw_t *hw);
/* The counters that have grown since @a since, in words in @a buf. NULL if none
 * has. */
const char *uct_daqiri_hw_changes(const uct_daqiri_hw_port_t *port,
                                  const uct_daqiri_hw_t *since, char *buf,
                                  size_t size);

#endif
