/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registration cache. UCX's memory hooks tell it when memory goes away. Where the
 * hooks are off or cannot work (UCX_MEM_EVENTS=n) there is no cache.
 *
 * UCX's own options for it changed their names and places. The plugin has options of its
 * own, with the names that UCX's had first.
 */
#include "base/daqiri_md.h"
#include "base/daqiri_mem.h"
#include "base/daqiri_port.h"

#include <sys/mman.h>
#include <ucm/api/ucm.h>

/* Registrations that the cache leaves free, or half of the device's if that is less: for
 * buffers of a few interfaces. */
#define UCT_DAQIRI_REG_RESERVE 512

/* A region of the cache, with our handle behind it. */
typedef struct {
    ucs_rcache_region_t super;
    uct_daqiri_mem_t    mem;
} uct_daqiri_region_t;


/* Registers with all access: a later user of the region may need more than the first. */
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
    if (rcache_flags & UCT_DAQIRI_RCACHE_HIDE_ERRORS) {
        flags |= UCT_MD_MEM_FLAG_HIDE_ERRORS;
    }
    return uct_daqiri_mem_map(context, (void*)super->start,
                              super->end - super->start, flags,
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


/* UCX merges two regions. Ours always have all access, so nothing is to be done. In
 * versions without `merge' this stands in the place of `dump_region'. */
static void uct_daqiri_rcache_merge(void)
{
}


/* `merge' came with a patch release, and no symbol tells which UCX has it: 1.17.0 has
 * three functions, the last of its branch four. */
static void *const uct_daqiri_rcache_ops[] = {
    uct_daqiri_rcache_reg,
    uct_daqiri_rcache_dereg,
    uct_daqiri_rcache_merge,
    uct_daqiri_rcache_dump,
};


/* The time of a look into the cache, seconds. */
static double uct_daqiri_rcache_cost(const uct_daqiri_md_t *md,
                                     const uct_daqiri_rcache_config_t *config)
{
    if (config->overhead != UCS_TIME_AUTO) {
        return ucs_time_to_sec(config->overhead);
    }
    return uct_daqiri_port_is_in_user_space(md->context->device)
                   ? UCT_DAQIRI_REG_COST_SOFT : UCT_DAQIRI_REG_COST_CACHED;
}


/* A device has a limited number of registrations. The cache leaves some of them for
 * buffers of the interfaces and for other users of the device. A lower limit of the
 * user's counts. */
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


static void
uct_daqiri_rcache_params(uct_daqiri_md_t *md, void *params,
                         const uct_daqiri_rcache_config_t *config)
{
    UCT_DAQIRI_UCX_PUT(params, CACHE_REGION_SIZE, size_t,
                       sizeof(uct_daqiri_region_t));
    UCT_DAQIRI_UCX_PUT(params, CACHE_ALIGN, size_t, config->alignment);
    UCT_DAQIRI_UCX_PUT(params, CACHE_MAX_ALIGN, size_t, ucs_get_page_size());
    UCT_DAQIRI_UCX_PUT(params, CACHE_EVENTS, int, UCM_EVENT_VM_UNMAPPED);
    UCT_DAQIRI_UCX_PUT(params, CACHE_PRIORITY, int, config->event_priority);
    UCT_DAQIRI_UCX_PUT(params, CACHE_OPS, const void*, uct_daqiri_rcache_ops);
    UCT_DAQIRI_UCX_PUT(params, CACHE_CONTEXT, void*, md);
    UCT_DAQIRI_UCX_PUT(params, CACHE_FLAGS, int,
                       config->purge_on_fork ? UCT_DAQIRI_RCACHE_PURGE_ON_FORK
                                             : 0);
    UCT_DAQIRI_UCX_PUT(params, CACHE_MAX_REGIONS, unsigned long,
                       uct_daqiri_rcache_regions(md, config->max_regions));
    UCT_DAQIRI_UCX_PUT(params, CACHE_MAX_SIZE, size_t, config->max_size);
    UCT_DAQIRI_UCX_PUT(params, CACHE_MAX_UNRELEASED, size_t,
                       config->max_unreleased);
}


void uct_daqiri_rcache_open(uct_daqiri_md_t *md,
                            const uct_daqiri_md_config_t *config)
{
    const char *name     = ibv_get_device_name(md->context->device);
    uint64_t params[32]  = {0}; /* more than any version has                 */
    ucs_status_t status;

    md->reg_cost = ucs_linear_func_make(UCT_DAQIRI_REG_COST,
                                        UCT_DAQIRI_REG_COST_BYTE);
    md->reg_align = config->rcache.alignment;
    if (config->reg_cache == UCS_CONFIG_OFF) {
        return;
    }

    uct_daqiri_rcache_params(md, params, &config->rcache);
    status = ucs_rcache_create(params, name, NULL, &md->rcache);
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


typedef ucs_status_t (*uct_daqiri_rcache_get_13_t)(
        ucs_rcache_t *cache, void *address, size_t length, int prot, void *arg,
        ucs_rcache_region_t **region_p);
typedef ucs_status_t (*uct_daqiri_rcache_get_17_t)(
        ucs_rcache_t *cache, void *address, size_t length, size_t alignment,
        int prot, void *arg, ucs_rcache_region_t **region_p);


/* From 1.17 on the alignment goes with the call. */
static ucs_status_t uct_daqiri_rcache_find(uct_daqiri_md_t *md, void *address,
                                           size_t length, unsigned *uct_flags,
                                           ucs_rcache_region_t **region_p)
{
    const int prot = PROT_READ | PROT_WRITE;

    if (uct_daqiri_ucx_is_since(17)) {
        return ((uct_daqiri_rcache_get_17_t)uct_daqiri_ucx.ucs_rcache_get)(
                md->rcache, address, length, md->reg_align, prot, uct_flags,
                region_p);
    }
    return ((uct_daqiri_rcache_get_13_t)uct_daqiri_ucx.ucs_rcache_get)(
            md->rcache, address, length, prot, uct_flags, region_p);
}


ucs_status_t uct_daqiri_rcache_get(uct_daqiri_md_t *md, void *address,
                                   size_t length, unsigned uct_flags,
                                   uct_daqiri_mem_t **mem_p)
{
    ucs_rcache_region_t *super;
    ucs_status_t status;

    status = uct_daqiri_rcache_find(md, address, length, &uct_flags, &super);
    if (status == UCS_OK) {
        *mem_p = &ucs_derived_of(super, uct_daqiri_region_t)->mem;
    }
    return status;
}


static void uct_daqiri_rcache_invalidated(void *arg)
{
    if (arg != NULL) {
        uct_invoke_completion((uct_completion_t*)arg, UCS_OK);
    }
}


/* From 1.16 on UCX's own transports have no cache, because UCP has one. The user may
 * switch UCP's off. A key that may be invalidated must then become invalid when UCP
 * has closed an endpoint by force and dropped the memory. */
static int uct_daqiri_rcache_is_over(const uct_daqiri_mem_t *mem)
{
    return uct_daqiri_ucx_is_since(16) &&
           __atomic_load_n(&mem->may_invalidate, __ATOMIC_RELAXED);
}


void uct_daqiri_rcache_put(uct_daqiri_md_t *md, uct_daqiri_mem_t *mem,
                           uct_completion_t *comp)
{
    uct_daqiri_region_t *region = ucs_container_of(mem, uct_daqiri_region_t,
                                                   mem);

    if ((comp != NULL) || uct_daqiri_rcache_is_over(mem)) {
        /* no later lookup finds the region, and its keys end with it */
        ucs_rcache_region_invalidate(md->rcache, &region->super,
                                     uct_daqiri_rcache_invalidated, comp);
    }
    ucs_rcache_region_put(md->rcache, &region->super);
}
