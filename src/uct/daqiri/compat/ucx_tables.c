/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables through which UCX calls the plugin, laid out for the UCX that was found. The
 * functions here adapt signatures that differ between versions. What the operations do
 * is elsewhere.
 */
#include "base/daqiri_config.h"
#include "base/daqiri_md.h"
#include "base/daqiri_mem.h"
#include "ep/daqiri_amo.h"
#include "ep/daqiri_ep.h"
#include "ep/daqiri_p2p.h"
#include "ep/daqiri_pending.h"
#include "ep/daqiri_rma.h"
#include "iface/daqiri_event.h"
#include "iface/daqiri_iface.h"
#include "iface/daqiri_query.h"
#include "iface/daqiri_vfs.h"

#define UCT_DAQIRI_UCX_SLOT(_table, _row, _function) \
    do { \
        if (uct_daqiri_ucx_has(UCT_DAQIRI_UCX_##_row)) { \
            *uct_daqiri_ucx_slot(_table, UCT_DAQIRI_UCX_##_row) = _function; \
        } \
    } while (0)

enum {
    UCT_DAQIRI_UCX_OPS_MAX       = 24, /* some more than any version has     */
    UCT_DAQIRI_UCX_COMPONENT_MAX = 256,
    UCT_DAQIRI_UCX_TL_MAX        = 128
};

static void *uct_daqiri_md_ops[UCT_DAQIRI_UCX_OPS_MAX];
void *uct_daqiri_iface_internal_ops[UCT_DAQIRI_UCX_OPS_MAX];

static uint64_t uct_daqiri_ucx_component[UCT_DAQIRI_UCX_COMPONENT_MAX / 8];
static uint64_t uct_daqiri_ucx_tl[UCT_DAQIRI_UCX_TL_MAX / 8];


/* Operations that a version has and the plugin does not support. */
static ucs_status_t uct_daqiri_ucx_unsupported(void)
{
    return UCS_ERR_UNSUPPORTED;
}


static void uct_daqiri_ucx_do_nothing(void)
{
}


static ucs_status_t uct_daqiri_ucx_ok(void)
{
    return UCS_OK;
}


static int uct_daqiri_ucx_no(void)
{
    return 0;
}


static void uct_daqiri_ucx_clear_slots(void **table)
{
    int i;

    for (i = 0; i < UCT_DAQIRI_UCX_OPS_MAX; i++) {
        table[i] = uct_daqiri_ucx_unsupported;
    }
}


/* ---- Memory domain ---- */

static uint64_t uct_daqiri_md_flags(const uct_daqiri_md_t *md)
{
    uint64_t flags = UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_MEMH |
                     UCT_MD_FLAG_NEED_RKEY | UCT_MD_FLAG_INVALIDATE;

    if (md->has_dmabuf && uct_daqiri_ucx_is_since(14)) {
        flags |= UCT_DAQIRI_MD_REG_DMABUF;
    }
    if (uct_daqiri_ucx_is_since(15)) {
        flags |= UCT_DAQIRI_MD_INVALIDATE_RMA | UCT_DAQIRI_MD_INVALIDATE_AMO;
    }
    return flags;
}


static ucs_status_t uct_daqiri_md_query(uct_md_h tl_md, void *attr)
{
    const uct_daqiri_md_t *md = ucs_derived_of(tl_md, uct_daqiri_md_t);
    const uint64_t host       = UCS_BIT(UCS_MEMORY_TYPE_HOST);

    if (uct_daqiri_ucx_has(UCT_DAQIRI_UCX_ATTR_TO_CLEAR)) {
        memset(attr, 0, uct_daqiri_ucx_layout[UCT_DAQIRI_UCX_ATTR_TO_CLEAR]);
    }
    UCT_DAQIRI_UCX_PUT(attr, ATTR_FLAGS, uint64_t, uct_daqiri_md_flags(md));
    UCT_DAQIRI_UCX_PUT(attr, ATTR_REG_TYPES, uint64_t, host);
    UCT_DAQIRI_UCX_PUT(attr, ATTR_CACHE_TYPES, uint64_t, host);
    UCT_DAQIRI_UCX_PUT(attr, ATTR_ACCESS_TYPES, uint64_t, host);
    UCT_DAQIRI_UCX_PUT(attr, ATTR_MAX_REG, uint64_t, md->attr.max_mr_size);
    /* the process's own memory */
    UCT_DAQIRI_UCX_PUT(attr, ATTR_MAX_ALLOC, uint64_t, UINT64_MAX);
    UCT_DAQIRI_UCX_PUT(attr, ATTR_RKEY_SIZE, size_t, sizeof(uint32_t));
    UCT_DAQIRI_UCX_PUT(attr, ATTR_REG_COST, ucs_linear_func_t, md->reg_cost);
    UCT_DAQIRI_UCX_PUT(attr, ATTR_REG_ALIGN, size_t, 1);
    memset(uct_daqiri_ucx_at(attr, UCT_DAQIRI_UCX_ATTR_CPUS), 0xff,
           sizeof(ucs_cpu_set_t));
    return UCS_OK;
}


static ucs_status_t uct_daqiri_md_mem_reg_13(uct_md_h tl_md, void *address,
                                             size_t length, unsigned flags,
                                             uct_mem_h *memh_p)
{
    uct_daqiri_mem_t *mem;
    ucs_status_t status;

    status = uct_daqiri_mem_reg(ucs_derived_of(tl_md, uct_daqiri_md_t),
                                address, length, flags, &mem);
    if (status == UCS_OK) {
        *memh_p = mem;
    }
    return status;
}


/* From 1.14 on a file descriptor may name the memory. -1 means that none does. */
static ucs_status_t
uct_daqiri_md_mem_reg_14(uct_md_h tl_md, void *address, size_t length,
                         const uct_md_mem_reg_params_t *params,
                         uct_mem_h *memh_p)
{
    const uint64_t mask  = params->field_mask;
    const unsigned flags = (mask & UCT_DAQIRI_REG_FLAGS) ? params->flags : 0;
    const size_t offset  = (mask & UCT_DAQIRI_REG_DMABUF_OFFSET)
                                   ? params->dmabuf_offset : 0;
    uct_daqiri_mem_t *mem;
    ucs_status_t status;

    if (!(mask & UCT_DAQIRI_REG_DMABUF_FD) || (params->dmabuf_fd == -1)) {
        return uct_daqiri_md_mem_reg_13(tl_md, address, length, flags, memh_p);
    }
    status = uct_daqiri_mem_reg_dmabuf(ucs_derived_of(tl_md, uct_daqiri_md_t),
                                       address, length, flags,
                                       params->dmabuf_fd, offset, &mem);
    if (status == UCS_OK) {
        *memh_p = mem;
    }
    return status;
}


/* From 1.14 on only a key that was packed for it can be invalidated. */
static int uct_daqiri_ucx_may_invalidate(uct_mem_h memh)
{
    return !uct_daqiri_ucx_is_since(14) ||
           __atomic_load_n(&((const uct_daqiri_mem_t*)memh)->may_invalidate,
                           __ATOMIC_RELAXED);
}


static ucs_status_t
uct_daqiri_md_mem_dereg(uct_md_h tl_md, const uct_md_mem_dereg_params_t *params)
{
    uct_completion_t *comp = NULL;

    if ((params->field_mask & UCT_DAQIRI_DEREG_FLAGS) &&
        (params->flags & UCT_DAQIRI_DEREG_INVALIDATE)) {
        if (!(params->field_mask & UCT_DAQIRI_DEREG_COMP) ||
            (params->comp == NULL)) {
            return UCS_ERR_INVALID_PARAM;
        }
        comp = params->comp;
    }
    if (!(params->field_mask & UCT_DAQIRI_DEREG_MEMH)) {
        return UCS_ERR_INVALID_PARAM;
    }
    if ((comp != NULL) && !uct_daqiri_ucx_may_invalidate(params->memh)) {
        return UCS_ERR_INVALID_PARAM;
    }
    return uct_daqiri_mem_dereg(ucs_derived_of(tl_md, uct_daqiri_md_t),
                                params->memh, comp);
}


static ucs_status_t
uct_daqiri_md_mkey_pack_13(uct_md_h tl_md, uct_mem_h memh,
                           const uct_md_mkey_pack_params_t *params,
                           void *rkey_buffer)
{
    const unsigned invalidate = UCT_DAQIRI_PACK_INVALIDATE |
                                (uct_daqiri_ucx_is_since(15)
                                         ? UCT_DAQIRI_PACK_INVALIDATE_AMO : 0);
    uct_daqiri_mem_t *mem     = memh;

    (void)tl_md;
    if ((params->field_mask & UCT_DAQIRI_PACK_FLAGS) &&
        (params->flags & invalidate)) {
        __atomic_store_n(&mem->may_invalidate, 1, __ATOMIC_RELAXED);
    }
    memcpy(rkey_buffer, &mem->rkey, sizeof(mem->rkey));
    return UCS_OK;
}


/* From 1.16 on UCX names a part of the memory. Its key is that of the whole. */
static ucs_status_t
uct_daqiri_md_mkey_pack_16(uct_md_h tl_md, uct_mem_h memh, void *address,
                           size_t length,
                           const uct_md_mkey_pack_params_t *params,
                           void *rkey_buffer)
{
    (void)address;
    (void)length;
    return uct_daqiri_md_mkey_pack_13(tl_md, memh, params, rkey_buffer);
}


static ucs_status_t uct_daqiri_rkey_unpack_13(uct_component_t *component,
                                              const void *rkey_buffer,
                                              uct_rkey_t *rkey_p,
                                              void **handle_p)
{
    uint32_t rkey;

    (void)component;
    memcpy(&rkey, rkey_buffer, sizeof(rkey));
    *rkey_p   = rkey;
    *handle_p = NULL;
    return UCS_OK;
}


static ucs_status_t uct_daqiri_rkey_unpack_19(uct_component_t *component,
                                              const void *rkey_buffer,
                                              const void *params,
                                              uct_rkey_t *rkey_p,
                                              void **handle_p)
{
    (void)params;
    return uct_daqiri_rkey_unpack_13(component, rkey_buffer, rkey_p, handle_p);
}


static void uct_daqiri_ucx_fill_md_ops(void)
{
    void **ops = uct_daqiri_md_ops;

    uct_daqiri_ucx_clear_slots(ops);
    UCT_DAQIRI_UCX_SLOT(ops, MD_CLOSE, uct_daqiri_md_close);
    UCT_DAQIRI_UCX_SLOT(ops, MD_QUERY, uct_daqiri_md_query);
    UCT_DAQIRI_UCX_SLOT(ops, MD_REG,
                        uct_daqiri_ucx_is_since(14)
                                ? (void*)uct_daqiri_md_mem_reg_14
                                : (void*)uct_daqiri_md_mem_reg_13);
    UCT_DAQIRI_UCX_SLOT(ops, MD_DEREG, uct_daqiri_md_mem_dereg);
    UCT_DAQIRI_UCX_SLOT(ops, MD_PACK,
                        uct_daqiri_ucx_is_since(16)
                                ? (void*)uct_daqiri_md_mkey_pack_16
                                : (void*)uct_daqiri_md_mkey_pack_13);
    UCT_DAQIRI_UCX_SLOT(ops, MD_SOCKADDR, uct_daqiri_ucx_no);
}


/* ---- Interface ---- */

static int uct_daqiri_ucx_field(uint64_t mask, uint64_t bit)
{
    return (mask & bit) != 0;
}


/* Returns NULL if the peer is reachable. From 1.15 on UCX may ask whether it is on the
 * same device. */
static const char *
uct_daqiri_ucx_unreachable(const uct_iface_h iface,
                           const uct_iface_is_reachable_params_t *params)
{
    uint64_t mask = params->field_mask;

    if (!uct_daqiri_ucx_field(mask, UCT_DAQIRI_REACH_DEVICE) ||
        (params->device_addr == NULL)) {
        return "the address of the device is missing";
    }
    if (uct_daqiri_ucx_field(mask, UCT_DAQIRI_REACH_SCOPE) &&
        (params->scope == UCT_DAQIRI_SCOPE_DEVICE) &&
        !uct_daqiri_iface_is_same_device(iface, params->device_addr)) {
        return "the peer is at another device";
    }
    return uct_daqiri_iface_unreachable(
            iface, params->device_addr,
            uct_daqiri_ucx_field(mask, UCT_DAQIRI_REACH_IFACE)
                    ? params->iface_addr : NULL);
}


/* UCP's own message ends with the reason. */
static int
uct_daqiri_iface_is_reachable_15(const uct_iface_h iface,
                                 const uct_iface_is_reachable_params_t *params)
{
    const char *reason = uct_daqiri_ucx_unreachable(iface, params);
    uint64_t mask      = params->field_mask;

    if ((reason != NULL) &&
        uct_daqiri_ucx_field(mask, UCT_DAQIRI_REACH_INFO) &&
        uct_daqiri_ucx_field(mask, UCT_DAQIRI_REACH_INFO_LEN)) {
        snprintf(params->info_string, params->info_string_length, "%s", reason);
    }
    return reason == NULL;
}


static ucs_status_t uct_daqiri_ep_connect_to_ep_14(
        uct_ep_h ep, const uct_device_addr_t *device_addr,
        const uct_ep_addr_t *ep_addr, const void *params)
{
    (void)params;
    return uct_daqiri_ep_connect_to_ep(ep, device_addr, ep_addr);
}


/* The address of an endpoint is that of its interface. */
static int
uct_daqiri_ep_is_connected_16(const uct_ep_h ep,
                              const uct_ep_is_connected_params_t *params)
{
    uint64_t mask       = params->field_mask;
    const void *device  = NULL;
    const void *address = NULL;

    if (uct_daqiri_ucx_field(mask, UCT_DAQIRI_CONNECTED_DEVICE)) {
        device = params->device_addr;
    }
    if (uct_daqiri_ucx_field(mask, UCT_DAQIRI_CONNECTED_EP)) {
        address = params->ep_addr;
    }
    if ((address == NULL) &&
        uct_daqiri_ucx_field(mask, UCT_DAQIRI_CONNECTED_IFACE)) {
        address = params->iface_addr;
    }
    return uct_daqiri_ep_is_connected(ep, device, address);
}


/* The second argument is not needed: flags up to 1.20, later parameters. */
static ucs_status_t uct_daqiri_ucx_ep_invalidate(uct_ep_h ep, uintptr_t unused)
{
    (void)unused;
    return uct_daqiri_ep_invalidate(ep);
}


/* UCX's own estimate is the same for all operations. On some devices RDMA costs more than
 * a message (uct_daqiri_port_rdma_overhead()). */
static ucs_status_t uct_daqiri_ucx_estimate_perf(uct_iface_h iface,
                                                 uct_perf_attr_t *attr)
{
    ucs_status_t (*base)(uct_iface_h, uct_perf_attr_t*);
    ucs_status_t status;

    *(void**)&base = uct_daqiri_ucx.uct_base_iface_estimate_perf;
    status         = base(iface, attr);
    if ((status == UCS_OK) &&
        uct_daqiri_ucx_field(attr->field_mask, UCT_DAQIRI_PERF_PRE) &&
        uct_daqiri_ucx_field(attr->field_mask, UCT_DAQIRI_PERF_OPERATION) &&
        (attr->operation >= UCT_DAQIRI_OP_PUT_SHORT) &&
        (attr->operation <= UCT_DAQIRI_OP_GET_ZCOPY)) {
        attr->send_pre_overhead += uct_daqiri_iface_rdma_overhead(iface);
    }
    return status;
}


static void uct_daqiri_ucx_fill_internal_ops(void)
{
    void **ops = uct_daqiri_iface_internal_ops;

    uct_daqiri_ucx_clear_slots(ops);
    UCT_DAQIRI_UCX_SLOT(ops, ESTIMATE, uct_daqiri_ucx_estimate_perf);
    UCT_DAQIRI_UCX_SLOT(ops, VFS, uct_daqiri_iface_vfs_refresh);
    UCT_DAQIRI_UCX_SLOT(ops, INVALIDATE, uct_daqiri_ucx_ep_invalidate);
    UCT_DAQIRI_UCX_SLOT(ops, CONNECT_V2, uct_daqiri_ep_connect_to_ep_14);
    UCT_DAQIRI_UCX_SLOT(ops, REACHABLE_V2, uct_daqiri_iface_is_reachable_15);
    UCT_DAQIRI_UCX_SLOT(ops, CONNECTED, uct_daqiri_ep_is_connected_16);
    if (uct_daqiri_ucx.uct_iface_base_query_v2 != NULL) {
        UCT_DAQIRI_UCX_SLOT(ops, QUERY_V2,
                            uct_daqiri_ucx.uct_iface_base_query_v2);
    }
}


/* Operations that are the same in all versions. UCX's own functions are added when they
 * are known. */
uct_iface_ops_t uct_daqiri_iface_ops = {
    .ep_am_short              = uct_daqiri_ep_am_short,
    .ep_am_short_iov          = uct_daqiri_ep_am_short_iov,
    .ep_am_bcopy              = uct_daqiri_ep_am_bcopy,
    .ep_am_zcopy              = uct_daqiri_ep_am_zcopy,
    .ep_put_short             = uct_daqiri_ep_put_short,
    .ep_put_bcopy             = uct_daqiri_ep_put_bcopy,
    .ep_put_zcopy             = uct_daqiri_ep_put_zcopy,
    .ep_get_bcopy             = uct_daqiri_ep_get_bcopy,
    .ep_get_zcopy             = uct_daqiri_ep_get_zcopy,
    .ep_atomic_cswap64        = uct_daqiri_ep_atomic_cswap64,
    .ep_atomic64_post         = uct_daqiri_ep_atomic64_post,
    .ep_atomic64_fetch        = uct_daqiri_ep_atomic64_fetch,
    .ep_flush                 = uct_daqiri_ep_flush,
    .ep_fence                 = uct_daqiri_ep_fence,
    .ep_check                 = uct_daqiri_ep_check,
    .ep_pending_add           = uct_daqiri_ep_pending_add,
    .ep_pending_purge         = uct_daqiri_ep_pending_purge,
    .ep_get_address           = uct_daqiri_ep_get_address,
    .ep_connect_to_ep         = uct_daqiri_ep_connect_to_ep,
    .ep_create                = UCS_CLASS_NEW_FUNC_NAME(uct_daqiri_ep_t),
    .ep_destroy               = UCS_CLASS_DELETE_FUNC_NAME(uct_daqiri_ep_t),
    .iface_flush              = uct_daqiri_iface_flush,
    .iface_progress           = uct_daqiri_iface_progress,
    .iface_event_fd_get       = uct_daqiri_iface_event_fd_get,
    .iface_event_arm          = uct_daqiri_iface_event_arm,
    .iface_close              = UCS_CLASS_DELETE_FUNC_NAME(uct_daqiri_iface_t),
    .iface_query              = uct_daqiri_iface_query,
    .iface_get_device_address = uct_daqiri_iface_get_device_address,
    .iface_get_address        = uct_daqiri_iface_get_address,
    .iface_is_reachable       = uct_daqiri_iface_is_reachable,
};


static void uct_daqiri_ucx_fill_iface_ops(void)
{
    uct_daqiri_iface_ops.iface_fence            = uct_base_iface_fence;
    uct_daqiri_iface_ops.iface_progress_enable  =
            uct_base_iface_progress_enable;
    uct_daqiri_iface_ops.iface_progress_disable =
            uct_base_iface_progress_disable;
}


int uct_daqiri_ucx_is_sound(const uct_base_iface_t *iface, uct_md_h md,
                            uct_worker_h worker)
{
    return (iface->internal_ops == uct_daqiri_iface_internal_ops) &&
           (iface->md == md) && (iface->worker == worker) &&
           (iface->super.ops.ep_am_short == uct_daqiri_ep_am_short);
}


/* ---- Component and transport ---- */

static void uct_daqiri_ucx_fill_config(void *config, const char *name,
                                       const char *prefix, void *options,
                                       size_t size)
{
    UCT_DAQIRI_UCX_PUT(config, CONFIG_NAME, const char*, name);
    UCT_DAQIRI_UCX_PUT(config, CONFIG_PREFIX, const char*, prefix);
    UCT_DAQIRI_UCX_PUT(config, CONFIG_TABLE, void*, options);
    UCT_DAQIRI_UCX_PUT(config, CONFIG_SIZE, size_t, size);
}


static ucs_status_t uct_daqiri_ucx_md_open(uct_component_t *component,
                                           const char *md_name,
                                           const uct_md_config_t *config,
                                           uct_md_h *md_p)
{
    ucs_status_t status = uct_daqiri_md_open(component, md_name, config, md_p);

    if (status == UCS_OK) {
        (*md_p)->ops = uct_daqiri_md_ops;
    }
    return status;
}


static void uct_daqiri_ucx_fill_component(void *component, void *options)
{
    strcpy(component, UCT_DAQIRI_NAME);
    UCT_DAQIRI_UCX_PUT(component, COMPONENT_QUERY_MDS, void*,
                       uct_daqiri_query_md_resources);
    UCT_DAQIRI_UCX_PUT(component, COMPONENT_MD_OPEN, void*,
                       uct_daqiri_ucx_md_open);
    UCT_DAQIRI_UCX_PUT(component, COMPONENT_CM_OPEN, void*,
                       uct_daqiri_ucx_unsupported);
    UCT_DAQIRI_UCX_PUT(component, COMPONENT_UNPACK, void*,
                       uct_daqiri_ucx_is_since(19)
                               ? (void*)uct_daqiri_rkey_unpack_19
                               : (void*)uct_daqiri_rkey_unpack_13);
    UCT_DAQIRI_UCX_PUT(component, COMPONENT_RKEY_PTR, void*,
                       uct_daqiri_ucx_unsupported);
    UCT_DAQIRI_UCX_PUT(component, COMPONENT_RELEASE, void*, uct_daqiri_ucx_ok);
    UCT_DAQIRI_UCX_PUT(component, COMPONENT_COMPARE, void*,
                       uct_daqiri_ucx.uct_base_rkey_compare);
    UCT_DAQIRI_UCX_PUT(component, COMPONENT_VFS, void*,
                       uct_daqiri_ucx_do_nothing);
    ucs_list_head_init(uct_daqiri_ucx_at(component,
                                         UCT_DAQIRI_UCX_COMPONENT_TLS));
    uct_daqiri_ucx_fill_config(
            uct_daqiri_ucx_at(component, UCT_DAQIRI_UCX_COMPONENT_MD_CONFIG),
            "daqiri memory domain", "DAQIRI_MD_", options,
            sizeof(uct_daqiri_md_config_t));
    uct_daqiri_ucx_fill_config(
            uct_daqiri_ucx_at(component, UCT_DAQIRI_UCX_COMPONENT_CM_CONFIG),
            "", "", NULL, 0);
}


static void uct_daqiri_ucx_fill_tl(void *tl, void *options)
{
    strcpy(tl, UCT_DAQIRI_NAME);
    UCT_DAQIRI_UCX_PUT(tl, TL_QUERY_DEVICES, void*, uct_daqiri_query_devices);
    UCT_DAQIRI_UCX_PUT(tl, TL_OPEN, void*,
                       UCS_CLASS_NEW_FUNC_NAME(uct_daqiri_iface_t));
    uct_daqiri_ucx_fill_config(uct_daqiri_ucx_at(tl, UCT_DAQIRI_UCX_TL_CONFIG),
                               "daqiri transport", "DAQIRI_", options,
                               sizeof(uct_daqiri_iface_config_t));
}


int uct_daqiri_ucx_is_taken(void)
{
    ucs_list_link_t *link;
    const char *name;

    for (link = uct_components_list.next; link != &uct_components_list;
         link = link->next) {
        name = (char*)link - uct_daqiri_ucx_layout[UCT_DAQIRI_UCX_COMPONENT_LINK];
        if (strcmp(name, UCT_DAQIRI_NAME) == 0) {
            return 1;
        }
    }
    return 0;
}


int uct_daqiri_ucx_register(void)
{
    uct_component_t *component = (uct_component_t*)uct_daqiri_ucx_component;
    void *md_options           = uct_daqiri_ucx_options(uct_daqiri_md_options);
    void *iface_options        =
            uct_daqiri_ucx_options(uct_daqiri_iface_options);

    if ((md_options == NULL) || (iface_options == NULL)) {
        free(md_options);
        free(iface_options);
        return 0;
    }

    uct_daqiri_ucx_fill_md_ops();
    uct_daqiri_ucx_fill_internal_ops();
    uct_daqiri_ucx_fill_iface_ops();
    uct_daqiri_ucx_fill_component(component, md_options);
    uct_daqiri_ucx_fill_tl(uct_daqiri_ucx_tl, iface_options);
    uct_component_register(component);
    uct_tl_register(component, uct_daqiri_ucx_tl);
    return 1;
}


/*
 * UCP allows a user's header of an active message to be as long as a bcopy message. Since
 * 1.16 it copies the header unchecked into a buffer of UCX_SEG_SIZE bytes, which is
 * 8 KiB: a longer header ends the process. With this length, which is that of rc_verbs,
 * no header is too long.
 */
size_t uct_daqiri_compat_max_bcopy(size_t max)
{
    enum { SAFE = 8192 + 48 };

    return uct_daqiri_ucx_is_since(16) ? ucs_min(max, (size_t)SAFE) : max;
}
