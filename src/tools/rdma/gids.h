/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The GIDs of a port and which of them is taken, by the rule of the transport
 * (dq_gid.h): the same answer here and there.
 */

#ifndef DAQIRI_GIDS_H
#define DAQIRI_GIDS_H

#include <infiniband/verbs.h>
#include <stddef.h>

#define DAQIRI_GID_TEXT_MAX 40
#define DAQIRI_GID_WHY_MAX  160

typedef struct daqiri_gids {
    struct ibv_gid_entry *entries; /* of this port only */
    size_t count;
    int    chosen;                 /* a gid_index, or -1 */
    char   why[DAQIRI_GID_WHY_MAX]; /* one clause */
} daqiri_gids_t;

/* Returns 0, or an errno when the device does not say. Give it back with
 * daqiri_gids_cleanup() in any case. */
int daqiri_gids_query(struct ibv_context *context,
                      const struct ibv_device_attr *device, unsigned port_num,
                      const struct ibv_port_attr *port, daqiri_gids_t *gids);
void daqiri_gids_cleanup(daqiri_gids_t *gids);

/* NULL when there is none at this index. */
const struct ibv_gid_entry *daqiri_gids_find(const daqiri_gids_t *gids,
                                             int gid_index);

/* "IB", "RoCE v1", "RoCE v2"; static. */
const char *daqiri_gid_type(const struct ibv_gid_entry *entry);

/* As people write it; returns text, of length DAQIRI_GID_TEXT_MAX. */
char *daqiri_gid_text(const union ibv_gid *gid, char *text);

#endif
