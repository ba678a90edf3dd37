/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device as programs find it: list, open, attributes, protection domains,
 * address handles.
 *
 * It passes for an InfiniBand HCA with one active port. With an Ethernet link
 * layer, programs would look for GIDs and netdevs in sysfs that are not there.
 */
#include "sv.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Device specific libraries ask "is this one mine?" by comparing a pointer
 * that lies behind struct ibv_device in their own structure. It must exist,
 * and be zero. */
struct sv_device {
    struct ibv_device device;
    void             *not_yours[16];
};

static struct sv_device sv_the_device = {
    .device = {
        .node_type      = IBV_NODE_CA,
        .transport_type = IBV_TRANSPORT_IB,
        .name           = SV_DEVICE_NAME,
        .dev_name       = SV_DEVICE_NAME,
        .dev_path       = "/sys/class/infiniband_verbs/" SV_DEVICE_NAME,
        .ibdev_path     = "/sys/class/infiniband/" SV_DEVICE_NAME
    }
};

/* Open contexts, for the child of a fork. */
static pthread_mutex_t sv_contexts_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct sv_context *sv_contexts;

void sv_device_gid(union ibv_gid *gid_p)
{
    gid_p->global.subnet_prefix = htobe64(0xfe80000000000000ull);
    gid_p->global.interface_id  = htobe64(SV_GUID);
}

/* ---- list ---- */

SV_EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
    struct ibv_device **list = calloc(2, sizeof(*list));

    if (list == NULL) {
        return NULL;
    }

    list[0] = &sv_the_device.device;
    if (num_devices != NULL) {
        *num_devices = 1;
    }
    return list;
}

SV_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

SV_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

SV_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
    (void)device;
    return htobe64(SV_GUID);
}

SV_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
    (void)device;
    return -1;
}

/* ---- context ---- */

static void sv_context_list(struct sv_context *ctx)
{
    pthread_mutex_lock(&sv_contexts_mutex);
    ctx->next   = sv_contexts;
    sv_contexts = ctx;
    pthread_mutex_unlock(&sv_contexts_mutex);
}

static void sv_context_unlist(struct sv_context *ctx)
{
    struct sv_context **pp;

    pthread_mutex_lock(&sv_contexts_mutex);
    for (pp = &sv_contexts; (*pp != NULL) && (*pp != ctx); pp = &(*pp)->next) {
    }
    if (*pp != NULL) {
        *pp = ctx->next;
    }
    pthread_mutex_unlock(&sv_contexts_mutex);
}

static void sv_context_fill(struct sv_context *ctx, struct ibv_device *device)
{
    struct verbs_context *vctx = &ctx->vctx;

    vctx->sz                        = sizeof(*vctx);
    vctx->query_port                = sv_query_port;
    vctx->context.abi_compat        = __VERBS_ABI_IS_EXTENDED;
    vctx->context.device            = device;
    vctx->context.cmd_fd            = -1;
    vctx->context.async_fd          = ctx->async.fd;
    vctx->context.num_comp_vectors  = 1;
    vctx->context.ops.poll_cq       = sv_poll_cq;
    vctx->context.ops.req_notify_cq = sv_req_notify_cq;
    vctx->context.ops.post_send     = sv_post_send;
    vctx->context.ops.post_recv     = sv_post_recv;
    vctx->context.ops.post_srq_recv = sv_post_srq_recv;
    pthread_mutex_init(&vctx->context.mutex, NULL);
}

SV_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct sv_context *ctx = calloc(1, sizeof(*ctx));

    if (ctx == NULL) {
        return NULL;
    }

    if (sv_async_init(&ctx->async) != 0) {
        goto err_free;
    }

    ctx->node = sv_node_get();
    if (ctx->node == NULL) {
        goto err_async;
    }

    pthread_mutex_init(&ctx->lock, NULL);
    sv_context_fill(ctx, device);
    sv_context_list(ctx);
    return &ctx->vctx.context;

err_async:
    sv_async_cleanup(&ctx->async);
err_free:
    free(ctx);
    return NULL;
}

SV_EXPORT int ibv_close_device(struct ibv_context *context)
{
    struct sv_context *ctx = sv_context(context);

    sv_context_unlist(ctx);
    if (ctx->node != NULL) {
        sv_qp_close_all(ctx);
        sv_node_put(ctx->node);
    }
    sv_async_cleanup(&ctx->async);
    pthread_mutex_destroy(&ctx->lock);
    pthread_mutex_destroy(&context->mutex);
    free(ctx);
    return 0;
}

/* ---- attributes ---- */

SV_EXPORT int ibv_query_device(struct ibv_context *context,
                               struct ibv_device_attr *attr)
{
    (void)context;
    memset(attr, 0, sizeof(*attr));
    strncpy(attr->fw_ver, DAQIRI_VERSION, sizeof(attr->fw_ver) - 1);
    attr->node_guid                 = htobe64(SV_GUID);
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
    attr->max_srq_wr                = SV_LIMIT_WR;
    attr->max_srq_sge               = SV_LIMIT_SGE;
    attr->max_pkeys                 = 1;
    attr->phys_port_cnt             = 1;
    return 0;
}

static void sv_port_attr(struct ibv_port_attr *attr)
{
    attr->state           = IBV_PORT_ACTIVE;
    attr->max_mtu         = IBV_MTU_4096;
    attr->active_mtu      = IBV_MTU_4096;
    attr->gid_tbl_len     = 1;
    attr->max_msg_sz      = SV_LIMIT_MSG;
    attr->pkey_tbl_len    = 1;
    attr->lid             = SV_LID;
    attr->sm_lid          = SV_LID;
    attr->max_vl_num      = 1;
    attr->active_width    = 2;  /* 4x */
    attr->active_speed    = 32; /* EDR */
    attr->phys_state      = 5;  /* link up */
    attr->link_layer      = IBV_LINK_LAYER_INFINIBAND;
}

/* Callers that were built with an older header have a shorter structure. */
int sv_query_port(struct ibv_context *context, uint8_t port_num,
                  struct ibv_port_attr *attr, size_t length)
{
    struct ibv_port_attr full;

    (void)context;
    if (port_num != 1) {
        return EINVAL;
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
    if ((port_num != 1) || (index != 0)) {
        errno = EINVAL;
        return -1;
    }

    sv_device_gid(gid_p);
    return 0;
}

SV_EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num,
                                uint32_t gid_index,
                                struct ibv_gid_entry *entry,
                                uint32_t flags, size_t entry_size)
{
    struct ibv_gid_entry full;

    (void)context;
    if ((port_num != 1) || (flags != 0)) {
        return EINVAL;
    }
    if (gid_index != 0) {
        return ENODATA;
    }

    memset(&full, 0, sizeof(full));
    sv_device_gid(&full.gid);
    full.port_num = 1;
    full.gid_type = IBV_GID_TYPE_IB;
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

    ret = _ibv_query_gid_ex(context, 1, 0, entries, flags, entry_size);
    return (ret == 0) ? 1 : -ret;
}

/* Known to libibverbs' own programs; 0 is "IB or RoCE v1". */
SV_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num,
                                 unsigned int index, unsigned int *type);

SV_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num,
                                 unsigned int index, unsigned int *type)
{
    (void)context;
    if ((port_num != 1) || (index != 0)) {
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

/* ---- protection domains and address handles ---- */

SV_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct sv_context *ctx = sv_context(context);
    struct sv_pd *pd;

    if (atomic_fetch_add(&ctx->num_pd, 1) >= SV_LIMIT_PD) {
        atomic_fetch_sub(&ctx->num_pd, 1);
        errno = ENOMEM;
        return NULL;
    }

    pd = calloc(1, sizeof(*pd));
    if (pd == NULL) {
        atomic_fetch_sub(&ctx->num_pd, 1);
        return NULL;
    }

    pd->base.context = context;
    pd->pdn          = atomic_fetch_add(&ctx->node->next_pdn, 1) + 1;
    pd->base.handle  = pd->pdn;
    return &pd->base;
}

SV_EXPORT int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
    struct sv_pd *pd = sv_pd(ibpd);

    if (atomic_load(&pd->users) > 0) {
        return EBUSY;
    }

    atomic_fetch_sub(&sv_context(ibpd->context)->num_pd, 1);
    free(pd);
    return 0;
}

SV_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd,
                                       struct ibv_ah_attr *attr)
{
    struct sv_context *ctx = sv_context(pd->context);
    struct sv_ah *ah;

    if ((attr->port_num != 1) ||
        (attr->is_global && (attr->grh.sgid_index != 0))) {
        errno = EINVAL;
        return NULL;
    }
    if (atomic_fetch_add(&ctx->num_ah, 1) >= SV_LIMIT_AH) {
        atomic_fetch_sub(&ctx->num_ah, 1);
        errno = ENOMEM;
        return NULL;
    }

    ah = calloc(1, sizeof(*ah));
    if (ah == NULL) {
        atomic_fetch_sub(&ctx->num_ah, 1);
        return NULL;
    }

    ah->base.context = pd->context;
    ah->base.pd      = pd;
    ah->dlid         = attr->dlid;
    ah->sl           = attr->sl;
    ah->global       = attr->is_global;
    atomic_fetch_add(&sv_pd(pd)->users, 1);
    return &ah->base;
}

SV_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
    atomic_fetch_sub(&sv_context(ah->context)->num_ah, 1);
    atomic_fetch_sub(&sv_pd(ah->pd)->users, 1);
    free(ah);
    return 0;
}

SV_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num,
                                  struct ibv_wc *wc, struct ibv_grh *grh,
                                  struct ibv_ah_attr *attr)
{
    (void)context;
    memset(attr, 0, sizeof(*attr));
    attr->dlid          = wc->slid;
    attr->sl            = wc->sl;
    attr->src_path_bits = wc->dlid_path_bits;
    attr->port_num      = port_num;
    if ((wc->wc_flags & IBV_WC_GRH) != 0) {
        attr->is_global      = 1;
        attr->grh.dgid       = grh->sgid;
        attr->grh.sgid_index = 0;
        attr->grh.hop_limit  = 0xff;
    }
    return 0;
}

SV_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd,
                                               struct ibv_wc *wc,
                                               struct ibv_grh *grh,
                                               uint8_t port_num)
{
    struct ibv_ah_attr attr;

    if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) != 0) {
        return NULL;
    }
    return ibv_create_ah(pd, &attr);
}

/* ---- fork ---- */

static int sv_dead_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc)
{
    (void)cq;
    (void)num;
    (void)wc;
    return 0;
}

static int sv_dead_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    (void)cq;
    (void)solicited_only;
    return EIO;
}

static int sv_dead_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
                             struct ibv_send_wr **bad)
{
    (void)qp;
    *bad = wr;
    return EIO;
}

static int sv_dead_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
                             struct ibv_recv_wr **bad)
{
    (void)qp;
    *bad = wr;
    return EIO;
}

static int sv_dead_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
                                 struct ibv_recv_wr **bad)
{
    (void)srq;
    *bad = wr;
    return EIO;
}

/* The child has no keeper and no segment: whatever it inherited is dead. */
void sv_contexts_orphan(void)
{
    struct ibv_context_ops *ops;
    struct sv_context *ctx;

    pthread_mutex_init(&sv_contexts_mutex, NULL);
    for (ctx = sv_contexts; ctx != NULL; ctx = ctx->next) {
        ops                = &ctx->vctx.context.ops;
        ops->poll_cq       = sv_dead_poll_cq;
        ops->req_notify_cq = sv_dead_req_notify_cq;
        ops->post_send     = sv_dead_post_send;
        ops->post_recv     = sv_dead_post_recv;
        ops->post_srq_recv = sv_dead_post_srq_recv;
        ctx->orphaned      = true;
    }
    sv_contexts = NULL;
}
