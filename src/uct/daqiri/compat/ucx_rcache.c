/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registration cache. Up to UCX 1.13 it is the memory domain's business;
 * it hears of memory that goes away through UCX's memory hooks. Where those
 * are off or cannot work (UCX_MEM_EVENTS=n) there is no cache.
 */
#include "../daqiri.h"

#include <ucm/api/ucm.h>

/* At least, or half of what the device has: buffers of a few interfaces. */
#define UCT_DAQIRI_REG_RESERVE 512

/* As the cache keeps it. */
typedef struct {
    ucs_rcache_region_t super;
    uct_daqiri_mem_t    mem;
} uct_daqiri_region_t;


/* All access: who finds the region later may want more than who made it. */
static ucs_status_t uct_daqiri_rcache_reg(void *context, ucs_rcache_t *rcache,
                                          void *arg,
                                          ucs_rcache_region_t *super,
                                          uint16_t rcache_flags)
{
    uct_daqiri_region_t *region = ucs_derived_of(super, uct_daqiri_region_t);
    unsigned flags              = UCT_MD_MEM_ACCESS_ALL |
                                  (*(unsigned*)arg &
                                   UCT_MD_MEM_FLAG_HIDE_ERRORS);

    (void)rcache;
    if (rcache_flags & UCS_RCACHE_MEM_REG_HIDE_ERRORS) {
        flags |= UCT_MD_MEM_FLAG_HIDE_ERRORS;
    }
    return uct_daqiri_mem_map(context, (void*)super->super.start,
                              super->super.end - super->super.start, flags,
                              &region->mem);
}


static void uct_daqiri_rcache_dereg(void *context, ucs_rcache_t *rcache,
                                    ucs_rcache_region_t *super)
{
    (void)context;
    (void)rcache;
    (void)uct_daqiri_mem_unmap(
            &ucs_derived_of(super, uct_daqiri_region_t)->mem);
}


static void uct_daqiri_rcache_dump(void *context, ucs_rcache_t *rcache,
                                   ucs_rcache_region_t *super, char *buf,
                                   size_t max)
{
    const uct_daqiri_mem_t *mem =
            &ucs_derived_of(super, uct_daqiri_region_t)->mem;

    (void)context;
    (void)rcache;
    snprintf(buf, max, "lkey 0x%x rkey 0x%x", mem->lkey, mem->rkey);
}


static const ucs_rcache_ops_t uct_daqiri_rcache_ops = {
    .mem_reg     = uct_daqiri_rcache_reg,
    .mem_dereg   = uct_daqiri_rcache_dereg,
    .dump_region = uct_daqiri_rcache_dump,
};


static double uct_daqiri_rcache_cost(const uct_daqiri_md_t *md,
                                     const uct_md_rcache_config_t *config)
{
    return ((config->overhead == UCS_TIME_AUTO) &&
            uct_daqiri_port_is_in_user_space(md->context->device))
                   ? UCT_DAQIRI_REG_COST_SOFT
                   : uct_md_rcache_overhead(config);
}


/* A device has so many registrations and no more. What is kept for the next time
 * must leave some for what is in use: buffers of the interfaces, other users of
 * the device. The user's limit stands if it is lower. */
static unsigned long uct_daqiri_rcache_regions(const uct_daqiri_md_t *md,
                                               unsigned long wanted)
{
    unsigned long all     = (md->attr.max_mr > 0)
                                    ? (unsigned long)md->attr.max_mr
                                    : ULONG_MAX;
    unsigned long reserve = ucs_max(all / 8,
                                    (unsigned long)UCT_DAQIRI_REG_RESERVE);

    return ucs_min(wanted, all - ucs_min(reserve, all / 2));
}


void uct_daqiri_rcache_open(uct_daqiri_md_t *md,
                            const uct_daqiri_md_config_t *config)
{
    const char *name = ibv_get_device_name(md->context->device);
    ucs_rcache_params_t params;
    ucs_status_t status;

    md->reg_cost = ucs_linear_func_make(UCT_DAQIRI_REG_COST,
                                        UCT_DAQIRI_REG_COST_BYTE);
    if (config->reg_cache == UCS_CONFIG_OFF) {
        return;
    }

    uct_md_set_rcache_params(&params, &config->rcache);
    params.max_regions        = uct_daqiri_rcache_regions(md,
                                                          params.max_regions);
    params.region_struct_size = sizeof(uct_daqiri_region_t);
    params.max_alignment      = ucs_get_page_size();
    params.ucm_events         = UCM_EVENT_VM_UNMAPPED;
    params.context            = md;
    params.ops                = &uct_daqiri_rcache_ops;
    status = ucs_rcache_create(&params, name, UCS_STATS_RVAL(NULL),
                               &md->rcache);
    if (status == UCS_OK) {
        md->reg_cost = ucs_linear_func_make(
                uct_daqiri_rcache_cost(md, &config->rcache), 0);
        return;
    }
    md->rcache = NULL;
    ucs_log((config->reg_cache == UCS_CONFIG_ON) ? UCS_LOG_LEVEL_WARN
                                                 : UCS_LOG_LEVEL_DEBUG,
            "daqiri: no registration cache on %s: %s", name,
            ucs_status_string(status));
}


void uct_daqiri_rcache_close(uct_daqiri_md_t *md)
{
    if (md->rcache != NULL) {
        ucs_rcache_destroy(md->rcache);
    }
}


ucs_status_t uct_daqiri_rcache_get(uct_daqiri_md_t *md, void *address,
                                   size_t length, unsigned uct_flags,
                                   uct_daqiri_mem_t **mem_p)
{
    ucs_rcache_region_t *super;
    ucs_status_t status;

    status = ucs_rcache_get(md->rcache, address, length,
                            PROT_READ | PROT_WRITE, &uct_flags, &super);
    if (status == UCS_OK) {
        *mem_p = &ucs_derived_of(super, uct_daqiri_region_t)->mem;
    }
    return status;
}


static void uct_daqiri_rcache_invalidated(void *arg)
{
    uct_invoke_completion((uct_completion_t*)arg, UCS_OK);
}


void uct_daqiri_rcache_put(uct_daqiri_md_t *md, uct_daqiri_mem_t *mem,
                           uct_completion_t *comp)
{
    uct_daqiri_region_t *region = ucs_container_of(mem, uct_daqiri_region_t,
                                                   mem);

    if (comp != NULL) { /* nobody finds it any more; its keys go with it */
        ucs_rcache_region_invalidate(md->rcache, &region->super,
                                     uct_daqiri_rcache_invalidated, comp);
    }
    ucs_rcache_region_put(md->rcache, &region->super);
}
