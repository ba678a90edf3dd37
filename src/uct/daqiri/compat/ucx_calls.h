/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All that the plugin calls or reads of UCX's libraries.
 *
 * The plugin is not linked with them. Which UCX a process uses is known only when that
 * UCX asks for transports. A plugin that brought a UCX of its own would put two into the
 * process. So there is a pointer to everything, which is found in the UCX that asks
 * (ucx_find.c). The names of UCX stand for what the pointers point to. A name that is
 * missing here fails the link (-z defs).
 *
 * Include after all headers of UCX.
 */
#ifndef UCT_DAQIRI_UCX_CALLS_H
#define UCT_DAQIRI_UCX_CALLS_H

#include "ucx_types.h"

#include <ucs/debug/log_def.h>
#include <ucs/sys/string.h>
#include <ucs/vfs/base/vfs_cb.h>
#include <ucs/vfs/base/vfs_obj.h>

#include "ucx_prototypes.h"

/* ---- The list ---- */

/* CALL: a function or object with its declared type. NAME: one that the plugin only hands
 * on to UCX. MAYBE: such a one that some versions lack. */
#define UCT_DAQIRI_UCX_CALLS(CALL, NAME, MAYBE) \
    CALL(ucs_async_remove_handler) \
    CALL(ucs_async_set_event_handler) \
    CALL(ucs_calloc) \
    CALL(ucs_class_call_cleanup_chain) \
    CALL(ucs_class_check_new_func_result) \
    CALL(ucs_class_free) \
    CALL(ucs_class_malloc) \
    CALL(ucs_free) \
    CALL(ucs_generate_uuid) \
    CALL(ucs_get_cpu_clocks_per_sec) \
    CALL(ucs_get_host_name) \
    CALL(ucs_get_page_size) \
    CALL(ucs_global_opts) \
    CALL(ucs_log_dispatch) \
    CALL(ucs_malloc) \
    CALL(ucs_posix_memalign) \
    CALL(ucs_rcache_create) \
    CALL(ucs_rcache_destroy) \
    CALL(ucs_rcache_region_invalidate) \
    CALL(ucs_rcache_region_put) \
    CALL(ucs_read_file_str) \
    CALL(ucs_status_string) \
    CALL(ucs_strncpy_zero) \
    CALL(ucs_strtrim) \
    CALL(ucs_sys_fcntl_modfl) \
    CALL(ucs_vfs_obj_add_ro_file) \
    CALL(ucs_vfs_show_primitive) \
    CALL(uct_base_ep_t_init) \
    CALL(uct_base_iface_fence) \
    CALL(uct_base_iface_progress_disable) \
    CALL(uct_base_iface_progress_enable) \
    CALL(uct_base_iface_query) \
    CALL(uct_base_iface_t_init) \
    CALL(uct_component_register) \
    CALL(uct_components_list) \
    CALL(uct_iface_handle_ep_err) \
    CALL(uct_iface_set_am_handler) \
    CALL(uct_md_query_empty_md_resource) \
    CALL(uct_tl_register) \
    UCT_DAQIRI_UCX_CALLS_ARCH(CALL) \
    NAME(ucs_config_clone_double) \
    NAME(ucs_config_clone_int) \
    NAME(ucs_config_clone_table) \
    NAME(ucs_config_clone_uint) \
    NAME(ucs_config_clone_ulong) \
    NAME(ucs_config_help_generic) \
    NAME(ucs_config_help_table) \
    NAME(ucs_config_release_nop) \
    NAME(ucs_config_release_table) \
    NAME(ucs_config_sprintf_bool) \
    NAME(ucs_config_sprintf_memunits) \
    NAME(ucs_config_sprintf_on_off_auto) \
    NAME(ucs_config_sprintf_time) \
    NAME(ucs_config_sprintf_time_units) \
    NAME(ucs_config_sprintf_uint) \
    NAME(ucs_config_sprintf_ulunits) \
    NAME(ucs_config_sscanf_bool) \
    NAME(ucs_config_sscanf_memunits) \
    NAME(ucs_config_sscanf_on_off_auto) \
    NAME(ucs_config_sscanf_table) \
    NAME(ucs_config_sscanf_time) \
    NAME(ucs_config_sscanf_time_units) \
    NAME(ucs_config_sscanf_ulunits) \
    NAME(ucs_rcache_get) \
    NAME(uct_base_ep_t_class) \
    NAME(uct_base_iface_estimate_perf) \
    NAME(uct_base_iface_t_class) \
    NAME(uct_iface_config_table) \
    NAME(uct_md_config_table) \
    MAYBE(ucs_config_doc_nop) \
    MAYBE(uct_base_rkey_compare) \
    MAYBE(uct_iface_base_query_v2)

#ifdef __x86_64__
#define UCT_DAQIRI_UCX_CALLS_ARCH(CALL) \
    CALL(ucs_arch_x86_enable_rdtsc) \
    CALL(ucs_x86_init_tsc_freq)
#else
#define UCT_DAQIRI_UCX_CALLS_ARCH(CALL)
#endif

/* All pointers, nothing else. Set once, before UCX knows of the plugin. */
typedef struct {
#define UCT_DAQIRI_UCX_MEMBER(_name)  __typeof__(_name) *_name;
#define UCT_DAQIRI_UCX_POINTER(_name) void *_name;
    UCT_DAQIRI_UCX_CALLS(UCT_DAQIRI_UCX_MEMBER, UCT_DAQIRI_UCX_POINTER,
                         UCT_DAQIRI_UCX_POINTER)
#undef UCT_DAQIRI_UCX_MEMBER
#undef UCT_DAQIRI_UCX_POINTER
} uct_daqiri_ucx_t;

extern uct_daqiri_ucx_t uct_daqiri_ucx
        __attribute__((visibility("hidden")));

/* ---- What UCX's names stand for in the plugin ---- */

#define UCT_DAQIRI_UCX_CALL(_name) (*uct_daqiri_ucx._name)

#define ucs_async_remove_handler UCT_DAQIRI_UCX_CALL(ucs_async_remove_handler)
#define ucs_async_set_event_handler UCT_DAQIRI_UCX_CALL(ucs_async_set_event_handler)
#define ucs_calloc UCT_DAQIRI_UCX_CALL(ucs_calloc)
#define ucs_class_call_cleanup_chain UCT_DAQIRI_UCX_CALL(ucs_class_call_cleanup_chain)
#define ucs_class_check_new_func_result \
    UCT_DAQIRI_UCX_CALL(ucs_class_check_new_func_result)
#define ucs_class_free UCT_DAQIRI_UCX_CALL(ucs_class_free)
#define ucs_class_malloc UCT_DAQIRI_UCX_CALL(ucs_class_malloc)
#define ucs_free UCT_DAQIRI_UCX_CALL(ucs_free)
#define ucs_generate_uuid UCT_DAQIRI_UCX_CALL(ucs_generate_uuid)
#define ucs_get_cpu_clocks_per_sec UCT_DAQIRI_UCX_CALL(ucs_get_cpu_clocks_per_sec)
#define ucs_get_host_name UCT_DAQIRI_UCX_CALL(ucs_get_host_name)
#define ucs_get_page_size UCT_DAQIRI_UCX_CALL(ucs_get_page_size)
#define ucs_global_opts UCT_DAQIRI_UCX_CALL(ucs_global_opts)
#define ucs_log_dispatch UCT_DAQIRI_UCX_CALL(ucs_log_dispatch)
#define ucs_malloc UCT_DAQIRI_UCX_CALL(ucs_malloc)
#define ucs_posix_memalign UCT_DAQIRI_UCX_CALL(ucs_posix_memalign)
#define ucs_rcache_create UCT_DAQIRI_UCX_CALL(ucs_rcache_create)
#define ucs_rcache_destroy UCT_DAQIRI_UCX_CALL(ucs_rcache_destroy)
#define ucs_rcache_region_invalidate UCT_DAQIRI_UCX_CALL(ucs_rcache_region_invalidate)
#define ucs_rcache_region_put UCT_DAQIRI_UCX_CALL(ucs_rcache_region_put)
#define ucs_read_file_str UCT_DAQIRI_UCX_CALL(ucs_read_file_str)
#define ucs_status_string UCT_DAQIRI_UCX_CALL(ucs_status_string)
#define ucs_strncpy_zero UCT_DAQIRI_UCX_CALL(ucs_strncpy_zero)
#define ucs_strtrim UCT_DAQIRI_UCX_CALL(ucs_strtrim)
#define ucs_sys_fcntl_modfl UCT_DAQIRI_UCX_CALL(ucs_sys_fcntl_modfl)
#define ucs_vfs_obj_add_ro_file UCT_DAQIRI_UCX_CALL(ucs_vfs_obj_add_ro_file)
#define ucs_vfs_show_primitive UCT_DAQIRI_UCX_CALL(ucs_vfs_show_primitive)
#define uct_base_ep_t_init UCT_DAQIRI_UCX_CALL(uct_base_ep_t_init)
#define uct_base_iface_fence UCT_DAQIRI_UCX_CALL(uct_base_iface_fence)
#define uct_base_iface_progress_disable \
    UCT_DAQIRI_UCX_CALL(uct_base_iface_progress_disable)
#define uct_base_iface_progress_enable \
    UCT_DAQIRI_UCX_CALL(uct_base_iface_progress_enable)
#define uct_base_iface_query UCT_DAQIRI_UCX_CALL(uct_base_iface_query)
#define uct_base_iface_t_init UCT_DAQIRI_UCX_CALL(uct_base_iface_t_init)
#define uct_component_register UCT_DAQIRI_UCX_CALL(uct_component_register)
#define uct_components_list UCT_DAQIRI_UCX_CALL(uct_components_list)
#define uct_iface_handle_ep_err UCT_DAQIRI_UCX_CALL(uct_iface_handle_ep_err)
#define uct_iface_set_am_handler UCT_DAQIRI_UCX_CALL(uct_iface_set_am_handler)
#define uct_md_query_empty_md_resource \
    UCT_DAQIRI_UCX_CALL(uct_md_query_empty_md_resource)
#define uct_tl_register UCT_DAQIRI_UCX_CALL(uct_tl_register)
#define ucs_arch_x86_enable_rdtsc UCT_DAQIRI_UCX_CALL(ucs_arch_x86_enable_rdtsc)
#define ucs_x86_init_tsc_freq UCT_DAQIRI_UCX_CALL(ucs_x86_init_tsc_freq)

#endif
