/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UCX as the plugin sees it. Its versions differ in here and in ucx_ops.c,
 * and nowhere else.
 *
 * Threads, ownership: as UCX's own headers say.
 */
#ifndef UCT_DAQIRI_UCX_COMPAT_H
#define UCT_DAQIRI_UCX_COMPAT_H

#ifdef HAVE_CONFIG_H
#include "config.h" /* UCX's own, from `ucx_info -b` */
#endif

#include <uct/api/version.h>

#if (UCT_API < UCT_VERSION(1, 13)) || (UCT_API >= UCT_VERSION(1, 14))
#error "daqiri supports UCX 1.13 only so far"
#endif

#include <ucs/async/async.h>
#include <ucs/config/parser.h>
#include <ucs/datastruct/list.h>
#include <ucs/datastruct/queue.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>
#include <ucs/time/time.h>
#include <ucs/type/class.h>
#include <uct/base/uct_component.h>
#include <uct/base/uct_iface.h>
#include <uct/base/uct_iov.inl>
#include <uct/base/uct_md.h>
#include <uct/base/uct_worker.h>

extern uct_iface_ops_t          uct_daqiri_iface_ops;
extern uct_iface_internal_ops_t uct_daqiri_iface_internal_ops;
extern uct_md_ops_t             uct_daqiri_md_ops;

ucs_status_t uct_daqiri_rkey_unpack(uct_component_t *component,
                                    const void *rkey_buffer,
                                    uct_rkey_t *rkey_p, void **handle_p);

/* Parsers of options that, unlike UCX's own, take the whole text or nothing:
 * "12abc" is not 12. Return 1 if it was understood. */
int uct_daqiri_config_read_uint(const char *buf, void *dest, const void *arg);
int uct_daqiri_config_read_gid(const char *buf, void *dest, const void *arg);
int uct_daqiri_config_write_gid(char *buf, size_t max, const void *src,
                                const void *arg);

#define UCT_DAQIRI_CONFIG_UINT \
    {uct_daqiri_config_read_uint, ucs_config_sprintf_uint, \
     ucs_config_clone_uint, ucs_config_release_nop, \
     ucs_config_help_generic, "unsigned integer"}

#define UCT_DAQIRI_CONFIG_GID \
    {uct_daqiri_config_read_gid, uct_daqiri_config_write_gid, \
     ucs_config_clone_int, ucs_config_release_nop, \
     ucs_config_help_generic, "<index> or \"auto\""}

/* True if the UCX of this process is the one that this was built for; both
 * are named in @a why. */
int uct_daqiri_compat_fits(char *why, size_t size);

/* False in a process that was forked while UCX's async thread ran: UCX believes
 * that it runs here, too. Of forks after the first call of the other one. */
int uct_daqiri_compat_async_runs(void);
void uct_daqiri_compat_watch_forks(void);

#endif
