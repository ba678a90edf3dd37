/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports and addresses: which GID to use, who can be reached, how to address.
 */
#include "daqiri.h"

/* Better GIDs have higher ranks; 0 is unusable. */
static int uct_daqiri_gid_rank(const struct ibv_gid_entry *entry)
{
    static const uint8_t ipv4_prefix[12] = {[10] = 0xff, [11] = 0xff};
    const uint8_t *gid                   = entry->gid.raw;
    int rank = (entry->gid_type == IBV_GID_TYPE_ROCE_V2) ? 4 : 1;

    if (memcmp(gid, ipv4_prefix, sizeof(ipv4_prefix)) == 0) {
        return rank + 2;
    }
    if ((gid[0] == 0xfe) && ((gid[1] & 0xc0) == 0x80)) {
        return rank; /* link-local */
    }
    return rank + 1;
}


/* The best GID index of a RoCE port, or -1 if its table is empty. */
static int uct_daqiri_gid_choose(struct ibv_context *context,
                                 uint8_t port_num, int table_len)
{
    struct ibv_gid_entry entry;
    int best = -1, best_rank = 0;
    int i, rank;

    for (i = 0; i < table_len; i++) {
        if (ibv_query_gid_ex(context, port_num, i, &entry, 0) != 0) {
            continue;
        }
        rank = uct_daqiri_gid_rank(&entry);
        if (rank > best_rank) {
            best      = i;
            best_rank = rank;
        }
    }
    return best;
}


static ucs_status_t uct_daqiri_gid_refuse(const char *dev_name, int gid_index)
{
    char detail[64];
    const dq_facts_t facts = {
        .cause   = DQ_CAUSE_NO_GID,
        .subject = dev_name,
        .detail  = detail,
    };

    if (gid_index < 0) {
        snprintf(detail, sizeof(detail), "the GID table is empty");
    } else {
        snprintf(detail, sizeof(detail), "UCX_DAQIRI_GID_INDEX=%d",
                 gid_index);
    }
    uct_daqiri_log(UCS_LOG_LEVEL_ERROR, &facts);
    return UCS_ERR_INVALID_PARAM;
}


static ucs_status_t uct_daqiri_gid_init(uct_daqiri_iface_t *iface,
                                        const char *dev_name, int gid_index)
{
    static const union ibv_gid empty;
    struct ibv_context *context = uct_daqiri_iface_md(iface)->context;
    dq_port_addr_t *addr        = &iface->config.port_addr;
    int table_len               = iface->config.port.gid_tbl_len;
    int index                   = gid_index;
    union ibv_gid gid;

    if (index < 0) {
        index = addr->is_eth ? uct_daqiri_gid_choose(context,
                                                     iface->config.port_num,
                                                     table_len)
                             : 0;
    }
    if ((index < 0) || (index >= table_len) ||
        (ibv_query_gid(context, iface->config.port_num, index, &gid) != 0) ||
        (memcmp(&gid, &empty, sizeof(gid)) == 0)) {
        return uct_daqiri_gid_refuse(dev_name, gid_index);
    }

    iface->config.gid_index = index;
    memcpy(addr->gid, gid.raw, sizeof(addr->gid));
    return UCS_OK;
}


ucs_status_t uct_daqiri_port_init(uct_daqiri_iface_t *iface,
                                  const char *dev_name, int gid_index)
{
    uct_daqiri_md_t *md    = uct_daqiri_iface_md(iface);
    const char *colon      = strrchr(dev_name, ':');
    dq_port_addr_t *addr   = &iface->config.port_addr;
    const dq_facts_t facts = {
        .cause   = DQ_CAUSE_PORT_DOWN,
        .subject = dev_name,
    };
    int ret;

    iface->config.port_num = (colon == NULL) ? 1 : atoi(colon + 1);

    ret = ibv_query_port(md->context, iface->config.port_num,
                         &iface->config.port);
    if (ret != 0) {
        uct_daqiri_log_verb(UCS_LOG_LEVEL_ERROR, dev_name, "ibv_query_port",
                            ret);
        return UCS_ERR_NO_DEVICE;
    }
    if (iface->config.port.state != IBV_PORT_ACTIVE) {
        uct_daqiri_log(UCS_LOG_LEVEL_ERROR, &facts);
        return UCS_ERR_UNREACHABLE;
    }

    addr->lid         = iface->config.port.lid;
    addr->is_eth      = iface->config.port.link_layer ==
                        IBV_LINK_LAYER_ETHERNET;
    addr->mtu         = iface->config.port.active_mtu;
    iface->config.mtu = iface->config.port.active_mtu;
    return uct_daqiri_gid_init(iface, dev_name, gid_index);
}


int uct_daqiri_port_is_reachable(const dq_port_addr_t *local,
                                 const dq_port_addr_t *remote)
{
    enum { SUBNET_PREFIX_LEN = 8 };

    if (local->is_eth != remote->is_eth) {
        return 0;
    }
    /* RoCE routes by IP; on InfiniBand a LID means something in its subnet */
    return local->is_eth ||
           (memcmp(local->gid, remote->gid, SUBNET_PREFIX_LEN) == 0);
}


void uct_daqiri_port_ah_attr(const uct_daqiri_iface_t *iface,
                             const dq_port_addr_t *remote,
                             struct ibv_ah_attr *attr)
{
    enum { HOP_LIMIT = 64 }; /* what IP stacks start with (RFC 1700) */

    *attr = (struct ibv_ah_attr){
        .dlid      = remote->lid,
        .sl        = iface->config.service_level,
        .port_num  = iface->config.port_num,
        .is_global = remote->is_eth,
    };
    if (!attr->is_global) {
        return;
    }
    memcpy(attr->grh.dgid.raw, remote->gid, sizeof(remote->gid));
    attr->grh.sgid_index    = iface->config.gid_index;
    attr->grh.hop_limit     = HOP_LIMIT;
    attr->grh.traffic_class = iface->config.traffic_class;
}


/* Signalling rate per lane in bits per second, and the share left by the
 * line code, by the bits of ibv_port_attr.active_speed (IBA 14.2.5.6). */
static double uct_daqiri_lane_rate(uint8_t active_speed)
{
    switch (active_speed) {
    case 1:
        return 2.5e9 * 8 / 10;
    case 2:
        return 5e9 * 8 / 10;
    case 4:
    case 8:
        return 10.3125e9 * 64 / 66;
    case 16:
        return 14.0625e9 * 64 / 66;
    case 32:
        return 25.78125e9 * 64 / 66;
    case 64:
        return 53.125e9 * 64 / 66;
    default:
        return 100e9;
    }
}


static unsigned uct_daqiri_lanes(uint8_t active_width)
{
    switch (active_width) {
    case 2:
        return 4;
    case 4:
        return 8;
    case 8:
        return 12;
    case 16:
        return 2;
    default:
        return 1;
    }
}


double uct_daqiri_port_bandwidth(const struct ibv_port_attr *port)
{
    return uct_daqiri_lane_rate(port->active_speed) *
           uct_daqiri_lanes(port->active_width) / 8;
}
