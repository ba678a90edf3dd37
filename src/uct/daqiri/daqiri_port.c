/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports and addresses: which GID to use, who can be reached, how to address.
 */
#include "daqiri.h"

/* All GIDs of the device, on all its ports, or minus an errno; the caller frees
 * *entries_p. One question: a table may have a thousand places and three of them
 * taken. */
static int uct_daqiri_gid_list(uct_daqiri_iface_t *iface,
                               struct ibv_gid_entry **entries_p)
{
    uct_daqiri_md_t *md = uct_daqiri_iface_md(iface);
    size_t max          = (size_t)iface->config.port.gid_tbl_len *
                          md->attr.phys_port_cnt;
    struct ibv_gid_entry *entries;
    ssize_t count;

    entries = ucs_calloc(ucs_max(max, (size_t)1), sizeof(*entries),
                         "daqiri_gids");
    if (entries == NULL) {
        return -ENOMEM;
    }
    count      = ibv_query_gid_table(md->context, entries, max, 0);
    *entries_p = entries;
    return count;
}


/* Zero, or an errno. Of a place that is empty libibverbs reads a GID of zeros. */
static int uct_daqiri_gid_read(uct_daqiri_iface_t *iface, int index,
                               union ibv_gid *gid)
{
    errno = 0;
    if (ibv_query_gid(uct_daqiri_iface_md(iface)->context,
                      iface->config.port_num, index, gid) == 0) {
        return 0;
    }
    return (errno != 0) ? errno : EIO;
}


/* The best GID index of the port, or -1 if its table is empty. Of those that
 * are equally good, the first: who adds an address changes nothing. */
static ucs_status_t uct_daqiri_gid_choose(uct_daqiri_iface_t *iface,
                                          const char *dev_name, int *index_p)
{
    struct ibv_gid_entry *entries = NULL;
    int best = -1, best_rank = 0;
    int count, i, rank;

    count = uct_daqiri_gid_list(iface, &entries);
    if (count < 0) {
        ucs_free(entries);
        uct_daqiri_log_verb(UCS_LOG_LEVEL_ERROR, dev_name,
                            "ibv_query_gid_table", -count);
        return UCS_ERR_IO_ERROR;
    }
    for (i = 0; i < count; i++) {
        if (entries[i].port_num != iface->config.port_num) {
            continue;
        }
        rank = dq_gid_rank(entries[i].gid.raw,
                           entries[i].gid_type == IBV_GID_TYPE_ROCE_V2);
        if (rank > best_rank) {
            best      = entries[i].gid_index;
            best_rank = rank;
        }
    }
    ucs_free(entries);
    *index_p = best;
    return UCS_OK;
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
    dq_port_addr_t *addr = &iface->config.port_addr;
    int index            = gid_index;
    ucs_status_t status;
    union ibv_gid gid;
    int ret;

    if (index < 0) {
        index  = 0;
        status = addr->is_eth ? uct_daqiri_gid_choose(iface, dev_name, &index)
                              : UCS_OK;
        if (status != UCS_OK) {
            return status;
        }
    }
    if ((index < 0) || (index >= iface->config.port.gid_tbl_len)) {
        return uct_daqiri_gid_refuse(dev_name, gid_index);
    }
    ret = uct_daqiri_gid_read(iface, index, &gid);
    if (ret != 0) {
        uct_daqiri_log_verb(UCS_LOG_LEVEL_ERROR, dev_name, "ibv_query_gid",
                            ret);
        return UCS_ERR_IO_ERROR;
    }
    if (dq_gid_rank(gid.raw, 0) == 0) {
        return uct_daqiri_gid_refuse(dev_name, gid_index);
    }

    iface->config.gid_index = index;
    memcpy(addr->gid, gid.raw, sizeof(addr->gid));
    (void)dq_gid_text(addr->gid, iface->config.gid_text,
                      sizeof(iface->config.gid_text));
    return UCS_OK;
}


int uct_daqiri_port_is_gid_lost(uct_daqiri_iface_t *iface)
{
    const dq_port_addr_t *addr = &iface->config.port_addr;
    union ibv_gid gid;
    int ret;

    ret = uct_daqiri_gid_read(iface, iface->config.gid_index, &gid);
    if ((ret == ENOMEM) || (ret == EAGAIN) || (ret == EMFILE) ||
        (ret == ENFILE)) {
        return 0; /* nobody could look */
    }
    /* an index that is taken again stands for another address */
    return (ret != 0) || (memcmp(gid.raw, addr->gid, sizeof(addr->gid)) != 0);
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
    snprintf(iface->config.port_name, sizeof(iface->config.port_name), "%s:%u",
             ibv_get_device_name(md->context->device), iface->config.port_num);
    uct_daqiri_hw_begin(iface);

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


void uct_daqiri_port_explain(const uct_daqiri_conn_t *conn, dq_facts_t *facts,
                             uct_daqiri_port_words_t *words)
{
    uct_daqiri_iface_t *iface   = conn->iface;
    const uct_daqiri_hw_t *then = conn->has_hw ? &conn->hw : &iface->hw;
    struct ibv_context *context = uct_daqiri_iface_md(iface)->context;
    struct ibv_port_attr port;
    int ret;

    ret = ibv_query_port(context, iface->config.port_num, &port);
    if ((ret == ENOMEM) || (ret == EAGAIN)) {
        return; /* nobody could look */
    }
    if (ret != 0) {
        facts->cause = DQ_CAUSE_DEVICE_GONE;
        facts->error = ret;
        return;
    }
    facts->hw_changes  = uct_daqiri_hw_changes(iface, then, words->hw_changes,
                                               sizeof(words->hw_changes));
    facts->hw_since_up = conn->has_hw;
    if (port.state != IBV_PORT_ACTIVE) {
        snprintf(words->port, sizeof(words->port), "%s:%u",
                 ibv_get_device_name(context->device),
                 iface->config.port_num);
        facts->down_port = words->port;
    }
    if (uct_daqiri_port_is_gid_lost(iface)) {
        facts->lost_gid  = dq_gid_text(iface->config.port_addr.gid, words->gid,
                                       sizeof(words->gid));
        facts->gid_index = iface->config.gid_index;
        if (facts->cause == DQ_CAUSE_VERB) {
            facts->cause = DQ_CAUSE_GID_LOST; /* nothing else is known */
        }
    }
}


int uct_daqiri_port_may_come_back(int error)
{
    return (error == ETIMEDOUT) || (error == EHOSTUNREACH) ||
           (error == ENETUNREACH) || (error == ENETDOWN) || (error == EAGAIN);
}


int uct_daqiri_port_is_reachable(const dq_port_addr_t *local,
                                 const dq_port_addr_t *remote)
{
    enum { SUBNET_PREFIX_LEN = 8 };

    if (local->is_eth != remote->is_eth) {
        return 0;
    }
    /* RoCE routes by IP; on InfiniBand a LID means something in its subnet */
    return local->is_eth
                   ? dq_gid_can_reach(local->gid, remote->gid)
                   : (memcmp(local->gid, remote->gid, SUBNET_PREFIX_LEN) == 0);
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


/* A packet of a full MTU is accompanied by this many bytes: on InfiniBand LRH,
 * BTH and two CRCs (IBA 5.2); on Ethernet gap, preamble, header and CRC, IPv6,
 * UDP, BTH and ICRC. */
static unsigned uct_daqiri_packet_overhead(const struct ibv_port_attr *port)
{
    return (port->link_layer == IBV_LINK_LAYER_ETHERNET)
                   ? 12 + 8 + 18 + 40 + 8 + 12 + 4
                   : 8 + 12 + 4 + 2;
}


double uct_daqiri_port_bandwidth(const uct_daqiri_iface_t *iface)
{
    const struct ibv_port_attr *port = &iface->config.port;
    double mtu                       = 128u << iface->config.mtu;

    return uct_daqiri_lane_rate(port->active_speed) *
           uct_daqiri_lanes(port->active_width) / 8 *
           (mtu / (mtu + uct_daqiri_packet_overhead(port)));
}


/* A device that the kernel does not know is in user space, and its wire is the
 * memory of this host. */
int uct_daqiri_port_is_in_user_space(const struct ibv_device *device)
{
    return access(device->ibdev_path, F_OK) != 0;
}


/*
 * No device tells how long a short message takes one way. With each generation
 * of links it became less, down to what PCI and the two hosts take; these are
 * what UCX takes for its own verbs transports. In user space it is measured.
 */
double uct_daqiri_port_latency(uct_daqiri_iface_t *iface)
{
    if (uct_daqiri_port_is_in_user_space(
                uct_daqiri_iface_md(iface)->context->device)) {
        return uct_daqiri_cost_latency();
    }
    switch (iface->config.port.active_speed) {
    case 1:
        return 5000e-9;
    case 2:
        return 2500e-9;
    case 4:
        return 1300e-9;
    case 8:
    case 16:
        return 700e-9;
    default:
        return 600e-9;
    }
}
