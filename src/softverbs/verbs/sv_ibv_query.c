/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queries of device, port, GID and P_Key.
 *
 * The device poses as an InfiniBand HCA with one active port. With an Ethernet
 * link layer, programs would look for GIDs and netdevs in sysfs, which does not
 * have them.
 */
#include "softverbs/base/sv_limits.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/fabric/sv_port.h"
#include "softverbs/objects/sv_hooks.h"
#include "softverbs/verbs/sv_ibv.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

SV_EXPORT int ibv_query_device(struct ibv_context *context,
                               struct ibv_device_attr *attr)
{
    int ret = sv_hook_verb(SV_VERB_QUERY_DEVICE);

    if (ret != 0) {
        return ret;
    }

    memset(attr, 0, sizeof(*attr));
    strncpy(attr->fw_ver, DAQIRI_VERSION, sizeof(attr->fw_ver) - 1);
    attr->node_guid                 = htobe64(sv_device_guid(context->device));
    attr->sys_image_guid            = htobe64(SV_GUID);
    attr->max_mr_size               = UINT64_MAX;
    attr->page_size_cap             = ~(uint64_t)(SV_PAGE - 1);
    attr->max_qp                    = SV_QP_MAX;
    attr->max_qp_wr                 = SV_LIMIT_WR;
    attr->device_cap_flags          = IBV_DEVICE_CURR_QP_STATE_MOD |
                                      IBV_DEVICE_RC_RNR_NAK_GEN |
                                      IBV_DEVICE_SYS_IMAGE_GUID;
    attr->max_sge                   = SV_LIMIT_SGE;
    attr->max_sge_rd                = SV_LIMIT_SGE;
    attr->max_cq                    = SV_CQ_MAX - 1;
    attr->max_cqe                   = SV_LIMIT_CQE;
    attr->max_mr                    = SV_MR_MAX;
    attr->max_pd                    = SV_LIMIT_PD;
    attr->max_qp_rd_atom            = SV_LIMIT_RD;
    attr->max_qp_init_rd_atom       = SV_LIMIT_RD;
    attr->max_res_rd_atom           = SV_LIMIT_RD * SV_QP_MAX;
    attr->atomic_cap                = IBV_ATOMIC_HCA;
    attr->max_ah                    = SV_LIMIT_AH;
    attr->max_srq                   = SV_SRQ_MAX;
    attr->max_srq_wr                = SV_LIMIT_SRQ_WR;
    attr->max_srq_sge               = SV_LIMIT_SGE;
    attr->max_pkeys                 = 1;
    attr->phys_port_cnt             = 1;
    return 0;
}

static void sv_port_attr(struct ibv_port_attr *attr)
{
    bool down = sv_port_link_is_down();

    attr->state           = down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
    attr->max_mtu         = IBV_MTU_4096;
    attr->active_mtu      = IBV_MTU_4096;
    attr->gid_tbl_len     = sv_port_gid_index() + 1;
    attr->max_msg_sz      = SV_LIMIT_MSG;
    attr->pkey_tbl_len    = 1;
    attr->lid             = sv_port_lid();
    attr->sm_lid          = sv_port_lid();
    attr->max_vl_num      = 1;
    attr->active_width    = 2;  /* 4x */
    attr->active_speed    = 64; /* HDR: with 4x the nearest to memory's */
    attr->phys_state      = down ? 2 : 5; /* polling, link up */
    attr->link_layer      = IBV_LINK_LAYER_INFINIBAND;
}

/* Callers that were built with an older header have a shorter structure. */
int sv_query_port(struct ibv_context *context, uint8_t port_num,
                  struct ibv_port_attr *attr, size_t length)
{
    struct ibv_port_attr full;
    int ret;

    (void)context;
    if (port_num != 1) {
        return EINVAL;
    }

    ret = sv_hook_verb(SV_VERB_QUERY_PORT);
    if (ret != 0) {
        return ret;
    }

    memset(&full, 0, sizeof(full));
    sv_port_attr(&full);
    memset(attr, 0, length);
    memcpy(attr, &full, (length < sizeof(full)) ? length : sizeof(full));
    return 0;
}

#undef ibv_query_port

SV_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port_num,
                             struct _compat_ibv_port_attr *attr)
{
    return sv_query_port(context, port_num, (struct ibv_port_attr*)attr,
                         offsetof(struct ibv_port_attr, port_cap_flags2));
}

SV_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port_num,
                            int index, union ibv_gid *gid_p)
{
    (void)context;
    if ((port_num != 1) || (index != (int)sv_port_gid_index())) {
        errno = EINVAL;
        return -1;
    }
    if (sv_hook_verb(SV_VERB_QUERY_GID) != 0) {
        return -1;
    }

    sv_port_gid(gid_p);
    return 0;
}

SV_EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num,
                                uint32_t gid_index,
                                struct ibv_gid_entry *entry,
                                uint32_t flags, size_t entry_size)
{
    struct ibv_gid_entry full;
    int ret;

    (void)context;
    if ((port_num != 1) || (flags != 0)) {
        return EINVAL;
    }
    if (gid_index != sv_port_gid_index()) {
        return ENODATA;
    }

    ret = sv_hook_verb(SV_VERB_QUERY_GID);
    if (ret != 0) {
        return ret;
    }

    memset(&full, 0, sizeof(full));
    sv_port_gid(&full.gid);
    full.gid_index = gid_index;
    full.port_num  = 1;
    full.gid_type  = IBV_GID_TYPE_IB;
    memcpy(entry, &full, (entry_size < sizeof(full)) ? entry_size :
                                                       sizeof(full));
    return 0;
}

SV_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context,
                                       struct ibv_gid_entry *entries,
                                       size_t max_entries, uint32_t flags,
                                       size_t entry_size)
{
    int ret;

    if (max_entries < 1) {
        return -EINVAL;
    }

    ret = _ibv_query_gid_ex(context, 1, sv_port_gid_index(), entries, flags,
                            entry_size);
    return (ret == 0) ? 1 : -ret;
}

/* libibverbs' own programs call it. 0 is "IB or RoCE v1". */
SV_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num,
                                 unsigned int index, unsigned int *type);

SV_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num,
                                 unsigned int index, unsigned int *type)
{
    (void)context;
    if ((port_num != 1) || (index != sv_port_gid_index())) {
        errno = EINVAL;
        return -1;
    }

    *type = 0;
    return 0;
}

SV_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port_num,
                             int index, __be16 *pkey_p)
{
    (void)context;
    if ((port_num != 1) || (index != 0)) {
        errno = EINVAL;
        return -1;
    }

    *pkey_p = htobe16(0xffff);
    return 0;
}

SV_EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num,
                                 __be16 pkey)
{
    (void)context;
    return ((port_num == 1) && (pkey == htobe16(0xffff))) ? 0 : -1;
}
