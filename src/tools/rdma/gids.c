/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/rdma/gids.h"

#include "dq/dq_gid.h"
#include "tools/rdma/devices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int gids_rank(const struct ibv_gid_entry *entry)
{
    return dq_gid_rank(entry->gid.raw,
                       entry->gid_type == IBV_GID_TYPE_ROCE_V2);
}

/* What the rank was given for. */
static const char *gids_kind(const struct ibv_gid_entry *entry)
{
    struct ibv_gid_entry v1 = *entry;

    v1.gid_type = IBV_GID_TYPE_ROCE_V1;
    switch (gids_rank(&v1)) {
    case 3:
        return "IPv4";
    case 2:
        return "IPv6";
    default:
        return "link-local";
    }
}

/* That of the software device is the GID of a fabric, too. */
static void gids_choose_ib(const struct ibv_context *context,
                           daqiri_gids_t *gids)
{
    int is_soft = daqiri_is_soft_device(ibv_get_device_name(context->device));

    if (gids->count > 0) {
        gids->chosen = 0;
        snprintf(gids->why, sizeof(gids->why), "InfiniBand: the port's own "
                 "GID%s", is_soft ? "; it connects " DAQIRI_SOFT_REACH : "");
    } else {
        snprintf(gids->why, sizeof(gids->why), "the GID table is empty");
    }
}

static void gids_choose_eth(daqiri_gids_t *gids)
{
    const struct ibv_gid_entry *best = NULL;
    size_t i, equals = 0;

    for (i = 0; i < gids->count; ++i) {
        if (gids_rank(&gids->entries[i]) == 0) {
            continue;
        }
        if ((best == NULL) ||
            (gids_rank(&gids->entries[i]) > gids_rank(best))) {
            best   = &gids->entries[i];
            equals = 0;
        } else if (gids_rank(&gids->entries[i]) == gids_rank(best)) {
            ++equals;
        }
    }
    if (best == NULL) {
        snprintf(gids->why, sizeof(gids->why), "the GID table is empty: the "
                 "port's network interface has no address, or is down");
        return;
    }
    gids->chosen = (int)best->gid_index;
    snprintf(gids->why, sizeof(gids->why), "%s with an %s address%s%s",
             daqiri_gid_type(best), gids_kind(best),
             (best->gid_type == IBV_GID_TYPE_ROCE_V2) ? "" :
             ", as there is no RoCE v2",
             (equals > 0) ? ", the first of such" : "");
    if (strcmp(gids_kind(best), "link-local") == 0) {
        snprintf(gids->why, sizeof(gids->why), "%s with a link-local address, "
                 "as there is no other", daqiri_gid_type(best));
    }
}

int daqiri_gids_query(struct ibv_context *context,
                      const struct ibv_device_attr *device, unsigned port_num,
                      const struct ibv_port_attr *port, daqiri_gids_t *gids)
{
    size_t max = (size_t)port->gid_tbl_len * device->phys_port_cnt;
    ssize_t count, i;

    memset(gids, 0, sizeof(*gids));
    gids->chosen  = -1;
    gids->entries = calloc(max + 1, sizeof(*gids->entries));
    if (gids->entries == NULL) {
        return ENOMEM;
    }
    count = ibv_query_gid_table(context, gids->entries, max, 0);
    if (count < 0) {
        snprintf(gids->why, sizeof(gids->why), "the GID table cannot be read: "
                 "%s", strerror((int)-count));
        return (int)-count;
    }
    for (i = 0; i < count; ++i) {
        if (gids->entries[i].port_num == port_num) {
            gids->entries[gids->count++] = gids->entries[i];
        }
    }
    if (port->link_layer == IBV_LINK_LAYER_ETHERNET) {
        gids_choose_eth(gids);
    } else {
        gids_choose_ib(context, gids);
    }
    return 0;
}

void daqiri_gids_cleanup(daqiri_gids_t *gids)
{
    free(gids->entries);
    gids->entries = NULL;
    gids->count   = 0;
}

const struct ibv_gid_entry *daqiri_gids_find(const daqiri_gids_t *gids,
                                             int gid_index)
{
    size_t i;

    for (i = 0; i < gids->count; ++i) {
        if ((int)gids->entries[i].gid_index == gid_index) {
            return &gids->entries[i];
        }
    }
    return NULL;
}

const char *daqiri_gid_type(const struct ibv_gid_entry *entry)
{
    switch (entry->gid_type) {
    case IBV_GID_TYPE_ROCE_V2:
        return "RoCE v2";
    case IBV_GID_TYPE_ROCE_V1:
        return "RoCE v1";
    default:
        return "IB";
    }
}

char *daqiri_gid_text(const union ibv_gid *gid, char *text)
{
    return dq_gid_text(gid->raw, text, DAQIRI_GID_TEXT_MAX);
}
