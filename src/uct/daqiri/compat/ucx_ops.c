/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables that UCX calls us through, and the functions whose signatures
 * change from one UCX to the next. What they do is elsewhere.
 */
#include "../daqiri.h"


/* ---- Memory domain ---- */

static ucs_status_t uct_daqiri_md_query(uct_md_h tl_md, uct_md_attr_t *attr)
{
    memset(attr, 0, sizeof(*attr));
    attr->cap.flags            = UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_MEMH |
                                 UCT_MD_FLAG_NEED_RKEY |
                                 UCT_MD_FLAG_INVALIDATE;
    attr->cap.reg_mem_types    = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    attr->cap.access_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    attr->cap.max_reg          = ucs_derived_of(tl_md, uct_daqiri_md_t)
                                         ->attr.max_mr_size;
    attr->cap.max_alloc        = SIZE_MAX; /* the process's own memory */
    attr->rkey_packed_size     = sizeof(uint32_t);
    attr->reg_cost             = ucs_derived_of(tl_md, uct_daqiri_md_t)
                                         ->reg_cost;
    memset(&attr->local_cpus, 0xff, sizeof(attr->local_cpus));
    return UCS_OK;
}


static ucs_status_t uct_daqiri_md_mem_reg(uct_md_h tl_md, void *address,
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


static ucs_status_t
uct_daqiri_md_mem_dereg(uct_md_h tl_md, const uct_md_mem_dereg_params_t *params)
{
    uct_completion_t *comp = NULL;

    UCT_MD_MEM_DEREG_CHECK_PARAMS(params, 1);
    if (UCT_MD_MEM_DEREG_FIELD_VALUE(params, flags, FIELD_FLAGS, 0) &
        UCT_MD_MEM_DEREG_FLAG_INVALIDATE) {
        comp = params->comp;
    }
    return uct_daqiri_mem_dereg(ucs_derived_of(tl_md, uct_daqiri_md_t),
                                params->memh, comp);
}


static ucs_status_t
uct_daqiri_md_mkey_pack(uct_md_h tl_md, uct_mem_h memh,
                        const uct_md_mkey_pack_params_t *params,
                        void *rkey_buffer)
{
    const uct_daqiri_mem_t *mem = memh;

    (void)tl_md;
    (void)params;
    memcpy(rkey_buffer, &mem->rkey, sizeof(mem->rkey));
    return UCS_OK;
}


ucs_status_t uct_daqiri_rkey_unpack(uct_component_t *component,
                                    const void *rkey_buffer,
                                    uct_rkey_t *rkey_p, void **handle_p)
{
    uint32_t rkey;

    (void)component;
    memcpy(&rkey, rkey_buffer, sizeof(rkey));
    *rkey_p   = rkey;
    *handle_p = NULL;
    return UCS_OK;
}


uct_md_ops_t uct_daqiri_md_ops = {
    .close                  = uct_daqiri_md_close,
    .query                  = uct_daqiri_md_query,
    .mem_reg                = uct_daqiri_md_mem_reg,
    .mem_dereg              = uct_daqiri_md_mem_dereg,
    .mkey_pack              = uct_daqiri_md_mkey_pack,
    .is_sockaddr_accessible = ucs_empty_function_return_zero_int,
    .detect_memory_type     = ucs_empty_function_return_unsupported,
};


/* ---- Interface ---- */

static ucs_status_t uct_daqiri_ep_query(uct_ep_h ep, uct_ep_attr_t *attr)
{
    (void)ep;
    (void)attr;
    return UCS_ERR_UNSUPPORTED; /* asks for socket addresses: we have none */
}


static ucs_status_t uct_daqiri_compat_ep_invalidate(uct_ep_h ep,
                                                    unsigned flags)
{
    (void)flags;
    return uct_daqiri_ep_invalidate(ep);
}


uct_iface_internal_ops_t uct_daqiri_iface_internal_ops = {
    .iface_estimate_perf = uct_base_iface_estimate_perf,
    .iface_vfs_refresh   = uct_daqiri_iface_vfs_refresh,
    .ep_query            = uct_daqiri_ep_query,
    .ep_invalidate       = uct_daqiri_compat_ep_invalidate,
};


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
    .iface_fence              = uct_base_iface_fence,
    .iface_progress_enable    = uct_base_iface_progress_enable,
    .iface_progress_disable   = uct_base_iface_progress_disable,
    .iface_progress           = uct_daqiri_iface_progress,
    .iface_event_fd_get       = uct_daqiri_iface_event_fd_get,
    .iface_event_arm          = uct_daqiri_iface_event_arm,
    .iface_close              = UCS_CLASS_DELETE_FUNC_NAME(uct_daqiri_iface_t),
    .iface_query              = uct_daqiri_iface_query,
    .iface_get_device_address = uct_daqiri_iface_get_device_address,
    .iface_get_address        = uct_daqiri_iface_get_address,
    .iface_is_reachable       = uct_daqiri_iface_is_reachable,
};
