/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of UCX that the plugin calls and no installed header declares.
 * contrib/check-ucx-layout compiles this behind UCX's own declarations.
 */
#ifndef UCT_DAQIRI_UCX_PROTOTYPES_H
#define UCT_DAQIRI_UCX_PROTOTYPES_H

#ifndef UCT_DAQIRI_UCX_CHECK
#include "ucx_types.h"
#endif

void *ucs_malloc(size_t size, const char *name);
void *ucs_calloc(size_t count, size_t size, const char *name);
void ucs_free(void *ptr);
int ucs_posix_memalign(void **ptr_p, size_t boundary, size_t size,
                       const char *name);

double ucs_get_cpu_clocks_per_sec(void);
size_t ucs_get_page_size(void);
const char *ucs_get_host_name(void);
uint64_t ucs_generate_uuid(uint64_t seed);
ucs_status_t ucs_sys_fcntl_modfl(int fd, int add, int remove);
ssize_t ucs_read_file_str(char *buf, size_t max, int silent,
                          const char *name_format, ...)
        __attribute__((format(printf, 4, 5)));

/* The two arguments at the end are those of a UCX with statistics; another does
 * not look at them (x86-64, arm64: they are in registers or on the caller's
 * stack). */
ucs_status_t
uct_base_iface_t_init(uct_base_iface_t *self, ucs_class_t *myclass,
                      int *init_count, uct_iface_ops_t *ops,
                      uct_iface_internal_ops_t *internal_ops, uct_md_h md,
                      uct_worker_h worker, const uct_iface_params_t *params,
                      const uct_iface_config_t *config,
                      ucs_stats_node_t *stats_parent, const char *stats_name);
ucs_status_t uct_base_ep_t_init(uct_base_ep_t *self, ucs_class_t *myclass,
                                int *init_count, uct_base_iface_t *iface);
void uct_base_iface_query(uct_base_iface_t *iface, uct_iface_attr_t *attr);
ucs_status_t uct_base_iface_fence(uct_iface_h iface, unsigned flags);
void uct_base_iface_progress_enable(uct_iface_h iface, unsigned flags);
void uct_base_iface_progress_disable(uct_iface_h iface, unsigned flags);
ucs_status_t uct_iface_handle_ep_err(uct_iface_h iface, uct_ep_h ep,
                                     ucs_status_t status);
ucs_status_t uct_md_query_empty_md_resource(uct_md_resource_desc_t **list_p,
                                            unsigned *count_p);
void uct_component_register(uct_component_t *component);
void uct_tl_register(uct_component_t *component, uct_tl_t *tl);

ucs_status_t ucs_rcache_create(const ucs_rcache_params_t *params, const char *name,
                               ucs_stats_node_t *stats, ucs_rcache_t **cache_p);
void ucs_rcache_destroy(ucs_rcache_t *cache);
void ucs_rcache_region_put(ucs_rcache_t *cache, ucs_rcache_region_t *region);
void ucs_rcache_region_invalidate(ucs_rcache_t *cache,
                                  ucs_rcache_region_t *region,
                                  void (*done)(void *arg), void *arg);

extern ucs_list_link_t uct_components_list;

#ifdef __x86_64__
void ucs_x86_init_tsc_freq(void);
extern ucs_ternary_auto_value_t ucs_arch_x86_enable_rdtsc;
#endif

#endif
