/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports and addresses: which GID to use, who can be reached, how to address.
 */
#include "base/daqiri_port.h"

#include "base/daqiri_hw.h"
#include "base/daqiri_log.h"
#include "base/daqiri_md.h"
#include "iface/daqiri_iface.h"

#include <limits.h>
#include <stdlib.h>

/*
 * What UCP is told of a device in user space, seconds. No hardware moves the
 * bytes there: the processor that begins a READ or a WRITE also carries it out.
 * These constants are the figures of a usual host. They are not timed: all
 * processes of a job then choose alike, and LATENCY and RDMA_OVERHEAD overrule
 * them.
 *
 * UCP 1.13 adds up four latencies when it weighs a rendezvous: the request to
 * send, the answer that ends it, and a READ there and back. A message takes
 * 140 ns beside its post and a READ 1.3 us, so four latencies are 2 * 140 ns +
 * 1.3 us. At 445 ns or less, one message of the transport holds whatever UCP
 * 1.13 sends without a rendezvous (UCT_DAQIRI_SEG_SIZE). The latency also places
 * the transport behind UCX's shared memory (80 ns) and before its verbs
 * transports on the same device (600 ns).
 *
 * From 1.16 on UCP asks for the overhead of each operation.
 */
#define UCT_DAQIRI_USER_LATENCY       400e-9
#define UCT_DAQIRI_USER_RDMA_OVERHEAD 1300e-9


static dq_gid_row_t uct_daqiri_gid_row(const struct ibv_gid_entry *entry)
{
    dq_gid_row_t row = {
        .index      = entry->gid_index,
        .is_roce_v2 = entry->gid_type == IBV_GID_TYPE_ROCE_V2,
        .netdev     = entry->ndev_ifindex,
    };

    memcpy(row.gid, entry->gid.raw, sizeof(row.gid));
    return row;
}


/* Copies those GIDs of the device that the port can be addressed by. */
static int uct_daqiri_gid_take(const uct_daqiri_iface_t *iface,
                               const struct ibv_gid_entry *entries, int count,
                               dq_gid_row_t *rows)
{
    int taken = 0;
    int i;

    for (i = 0; i < count; i++) {
        if ((entries[i].port_num == iface->config.port_num) &&
            (entries[i].gid_index <= UINT8_MAX)) {
            rows[taken++] = uct_daqiri_gid_row(&entries[i]);
        }
    }
    return taken;
}


/* Returns how many GIDs the port has, or a negative errno. The caller frees *rows_p. One
 * call reads the whole table, which may have a thousand places and three GIDs. */
static int uct_daqiri_gid_list(uct_daqiri_iface_t *iface,
                               dq_gid_row_t **rows_p)
{
    uct_daqiri_md_t *md = uct_daqiri_iface_md(iface);
    size_t max          = ucs_max((size_t)iface->config.port.gid_tbl_len *
                                  md->attr.phys_port_cnt, (size_t)1);
    struct ibv_gid_entry *entries;
    int count = -ENOMEM;

    entries = ucs_calloc(max, sizeof(*entries), "daqiri_gids");
    *rows_p = ucs_calloc(max, sizeof(**rows_p), "daqiri_gid_rows");
    if ((entries != NULL) && (*rows_p != NULL)) {
        count = ibv_query_gid_table(md->context, entries, max, 0);
        if (count > 0) {
            count = uct_daqiri_gid_take(iface, entries, count, *rows_p);
        }
    }
    ucs_free(entries);
    return count;
}


/* Zero, or an errno: ENODATA if the place is empty. */
static int uct_daqiri_gid_read(uct_daqiri_iface_t *iface, int index,
                               dq_gid_row_t *row)
{
    struct ibv_gid_entry entry;
    int ret;

    ret = ibv_query_gid_ex(uct_daqiri_iface_md(iface)->context,
                           iface->config.port_num, index, &entry, 0);
    if (ret != 0) {
        return ret;
    }
    *row = uct_daqiri_gid_row(&entry);
    return (dq_gid_rank(row->gid, row->is_roce_v2) == 0) ? ENODATA : 0;
}


/* The best GID index of the port, or -1 if its table is empty. */
static ucs_status_t uct_daqiri_gid_choose(uct_daqiri_iface_t *iface,
                                          const char *dev_name, int *index_p)
{
    const dq_gid_row_t *best;
    dq_gid_row_t *rows;
    int count;

    count = uct_daqiri_gid_list(iface, &rows);
    if (count < 0) {
        ucs_free(rows);
        uct_daqiri_log_verb(UCS_LOG_LEVEL_ERROR, dev_name,
                            "ibv_query_gid_table", -count);
        return UCS_ERR_IO_ERROR;
    }
    best     = dq_gid_choose(rows, count);
    *index_p = (best == NULL) ? -1 : best->index;
    ucs_free(rows);
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
    ret = uct_daqiri_gid_read(iface, index, &iface->config.gid);
    if (ret == ENODATA) {
        return uct_daqiri_gid_refuse(dev_name, gid_index);
    }
    if (ret != 0) {
        uct_daqiri_log_verb(UCS_LOG_LEVEL_ERROR, dev_name, "ibv_query_gid_ex",
                            ret);
        return UCS_ERR_IO_ERROR;
    }

    iface->config.gid_index = index;
    memcpy(addr->gid, iface->config.gid.gid, sizeof(addr->gid));
    (void)dq_gid_text(addr->gid, iface->config.gid_text,
                      sizeof(iface->config.gid_text));
    return UCS_OK;
}


static int uct_daqiri_gid_read_failed(int error)
{
    return (error == ENOMEM) || (error == EAGAIN) || (error == EMFILE) ||
           (error == ENFILE);
}


/* Searches the table for the GID, which is not at its index any more. */
static ucs_status_t uct_daqiri_gid_search(uct_daqiri_iface_t *iface)
{
    const dq_gid_row_t *found;
    dq_gid_row_t *rows;
    ucs_status_t status = UCS_OK;
    int count;

    count = uct_daqiri_gid_list(iface, &rows);
    if (count < 0) {
        ucs_free(rows);
        return uct_daqiri_gid_read_failed(-count) ? UCS_OK
                                                     : UCS_ERR_IO_ERROR;
    }
    found = dq_gid_find(rows, count, &iface->config.gid);
    if (found == NULL) {
        status = UCS_ERR_UNREACHABLE;
    } else {
        ucs_debug("%s is at GID index %u now, was at %u",
                  iface->config.gid_text, found->index,
                  uct_daqiri_iface_gid_index(iface));
        __atomic_store_n(&iface->config.gid_index, found->index,
                         __ATOMIC_RELAXED);
    }
    ucs_free(rows);
    return status;
}


ucs_status_t uct_daqiri_port_find_gid(uct_daqiri_iface_t *iface)
{
    dq_gid_row_t row;
    int ret;

    ret = uct_daqiri_gid_read(iface, uct_daqiri_iface_gid_index(iface), &row);
    if (uct_daqiri_gid_read_failed(ret)) {
        return UCS_OK;
    }
    if ((ret != 0) && (ret != ENODATA) && (ret != EINVAL)) {
        return UCS_ERR_IO_ERROR;
    }
    /* the index may have been given to another address */
    return ((ret == 0) && dq_gid_is_same(&row, &iface->config.gid))
                   ? UCS_OK : uct_daqiri_gid_search(iface);
}


int uct_daqiri_port_has_gid_left(uct_daqiri_iface_t *iface, uint8_t index)
{
    return (uct_daqiri_port_find_gid(iface) == UCS_ERR_UNREACHABLE) ||
           (uct_daqiri_iface_gid_index(iface) != index);
}


static uct_daqiri_hw_port_t
uct_daqiri_port_of_hw(const uct_daqiri_iface_t *iface)
{
    return (uct_daqiri_hw_port_t){
        .device = ucs_derived_of(iface->super.md, uct_daqiri_md_t)->context->device,
        .num    = iface->config.port_num,
    };
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
    uct_daqiri_hw_port_t hw_port;
    ucs_status_t status;
    int ret;

    iface->config.port_num = (colon == NULL) ? 1 : atoi(colon + 1);
    snprintf(iface->config.port_name, sizeof(iface->config.port_name), "%s:%u",
             ibv_get_device_name(md->context->device), iface->config.port_num);
    hw_port                = uct_daqiri_port_of_hw(iface);
    iface->hw              = uct_daqiri_hw_read(&hw_port, NULL);
    if (iface->hw == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

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
    status            = uct_daqiri_gid_init(iface, dev_name, gid_index);
    if (status == UCS_OK) {
        uct_daqiri_port_check(iface);
    }
    return status;
}


uct_daqiri_hw_t *uct_daqiri_port_share_hw(uct_daqiri_iface_t *iface)
{
    const uct_daqiri_hw_port_t port = uct_daqiri_port_of_hw(iface);

    return uct_daqiri_hw_share(&port, iface->hw, &iface->cm.hw);
}


void uct_daqiri_port_cleanup(uct_daqiri_iface_t *iface)
{
    uct_daqiri_hw_release(iface->cm.hw);
    uct_daqiri_hw_release(iface->hw);
}


void uct_daqiri_port_explain(uct_daqiri_iface_t *iface,
                             const uct_daqiri_hw_t *when_up, dq_facts_t *facts,
                             uct_daqiri_port_words_t *words)
{
    const uct_daqiri_hw_port_t hw_port = uct_daqiri_port_of_hw(iface);
    struct ibv_context *context        = uct_daqiri_iface_md(iface)->context;
    struct ibv_port_attr port;
    int ret;

    ret = ibv_query_port(context, iface->config.port_num, &port);
    if ((ret == ENOMEM) || (ret == EAGAIN)) {
        return; /* the query itself failed and tells nothing */
    }
    if (ret != 0) {
        facts->cause = DQ_CAUSE_DEVICE_GONE;
        facts->error = ret;
        return;
    }
    facts->hw_changes  = uct_daqiri_hw_changes(
            &hw_port, (when_up != NULL) ? when_up : iface->hw,
            words->hw_changes, sizeof(words->hw_changes));
    facts->hw_since_up = when_up != NULL;
    if (port.state != IBV_PORT_ACTIVE) {
        snprintf(words->port, sizeof(words->port), "%s:%u",
                 ibv_get_device_name(context->device),
                 iface->config.port_num);
        facts->down_port = words->port;
    }
    if (uct_daqiri_port_find_gid(iface) != UCS_OK) {
        facts->lost_gid  = dq_gid_text(iface->config.port_addr.gid, words->gid,
                                       sizeof(words->gid));
        facts->gid_index = uct_daqiri_iface_gid_index(iface);
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
    /* RoCE routes by IP. On InfiniBand a LID is valid within its subnet. */
    return local->is_eth
                   ? dq_gid_can_reach(local->gid, remote->gid)
                   : (memcmp(local->gid, remote->gid, SUBNET_PREFIX_LEN) == 0);
}


/* Where there are several ports, some commonly do not reach a peer: no reason to warn. A
 * user whose only device is in user space is stopped by it and gets a warning. The
 * warning comes once, because it may concern every peer. */
static ucs_log_level_t
uct_daqiri_port_level(const struct ibv_device *device)
{
    static int said;

    if (!uct_daqiri_port_is_in_user_space(device)) {
        return UCS_LOG_LEVEL_DIAG;
    }
    return __atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)
                   ? UCS_LOG_LEVEL_DEBUG : UCS_LOG_LEVEL_WARN;
}


static void uct_daqiri_port_refuse(uct_daqiri_iface_t *iface,
                                   const dq_port_addr_t *remote)
{
    const struct ibv_device *device =
            uct_daqiri_iface_md(iface)->context->device;
    char detail[2 * DQ_GID_TEXT_MAX + 24], message[DQ_TRIAGE_MESSAGE_MAX];
    const ucs_log_level_t level = uct_daqiri_port_level(device);
    char gid[DQ_GID_TEXT_MAX];
    const dq_facts_t facts = {
        .cause   = uct_daqiri_port_is_in_user_space(device)
                           ? DQ_CAUSE_OTHER_FABRIC : DQ_CAUSE_OTHER_NET,
        .subject = iface->config.port_name,
        .detail  = detail,
    };

    snprintf(detail, sizeof(detail), "GID %s, here %s",
             dq_gid_text(remote->gid, gid, sizeof(gid)),
             iface->config.gid_text);
    ucs_log(level, "%s",
            dq_triage_unreachable(&facts, message, sizeof(message)));
}


int uct_daqiri_port_reaches(uct_daqiri_iface_t *iface,
                            const dq_port_addr_t *remote)
{
    if (uct_daqiri_port_is_reachable(&iface->config.port_addr, remote)) {
        return 1;
    }
    uct_daqiri_port_refuse(iface, remote);
    return 0;
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
    attr->grh.sgid_index    = uct_daqiri_iface_gid_index(iface);
    attr->grh.hop_limit     = HOP_LIMIT;
    attr->grh.traffic_class = iface->config.traffic_class;
}


/* Bits per second of a lane, times the share that the line code leaves, for each bit of
 * ibv_port_attr.active_speed (IBA 14.2.5.6). */
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


/* Bytes on the wire beside the payload of a full packet. On InfiniBand: LRH, BTH, CRCs
 * (IBA 5.2). On Ethernet: gap, preamble, header and CRC, IPv6, UDP, BTH, ICRC. */
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


/* A device that the kernel does not know is in user space. */
int uct_daqiri_port_is_in_user_space(const struct ibv_device *device)
{
    return access(device->ibdev_path, F_OK) != 0;
}


/* The kernel's own RDMA devices have no hardware behind them in sysfs. */
int uct_daqiri_port_is_emulated(const struct ibv_device *device)
{
    static const char virtual[] = "/sys/devices/virtual/";
    char path[PATH_MAX];

    return (realpath(device->ibdev_path, path) != NULL) &&
           (strncmp(path, virtual, sizeof(virtual) - 1) == 0);
}


/* On an emulated device each packet costs CPU time, whatever its length. A segment of
 * this size fills three packets of 4096 bytes, or nearly. */
size_t uct_daqiri_port_seg_size(const struct ibv_device *device)
{
    return uct_daqiri_port_is_emulated(device) ? UCT_DAQIRI_SEG_SIZE_EMULATED
                                               : UCT_DAQIRI_SEG_SIZE;
}


/*
 * No device tells how long a short message takes one way. It became less with each
 * generation of links, down to the time of PCI and the two hosts. These are the figures
 * of UCX for its own verbs transports.
 *
 * In user space there is no link. The latency stands for half a message and a
 * quarter of a READ (UCT_DAQIRI_USER_LATENCY).
 */
double uct_daqiri_port_latency(uct_daqiri_iface_t *iface)
{
    if (uct_daqiri_port_is_in_user_space(
                uct_daqiri_iface_md(iface)->context->device)) {
        return UCT_DAQIRI_USER_LATENCY;
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


double uct_daqiri_port_rdma_overhead(uct_daqiri_iface_t *iface)
{
    return uct_daqiri_port_is_in_user_space(
                   uct_daqiri_iface_md(iface)->context->device)
                   ? UCT_DAQIRI_USER_RDMA_OVERHEAD : 0;
}
