/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UCX as the plugin sees it. Its versions differ in this folder and nowhere else:
 *
 *   ucx_types.h    what no installed header declares and all versions share
 *   ucx_layout.*   what they do not share, in numbers
 *   ucx_calls.h    all that is called, found when the UCX is known
 *   ucx_inline.h   UCX's own small functions
 *   ucx_find.c     which UCX this is
 *   ucx_tables.c   what UCX calls us through
 *   ucx_options.*  options
 *   ucx_rcache.c   the registration cache
 *   ucx_async.c    its async thread, after a fork
 *
 * Any installed UCX of the range will do to compile, and the plugin is the same.
 *
 * Threads, ownership: as UCX's own headers say.
 */
#ifndef UCT_DAQIRI_UCX_COMPAT_H
#define UCT_DAQIRI_UCX_COMPAT_H

/* Logs above this level are compiled out, as in Debian's UCX. */
#define UCS_MAX_LOG_LEVEL UCS_LOG_LEVEL_DEBUG

#include "ucx_calls.h"
#include "ucx_inline.h"
#include "ucx_layout.h"
#include "ucx_options.h"
#include "ucx_tables.h"
#include "ucx_types.h"

/* How long a bcopy message may be, at most @a max bytes. */
size_t uct_daqiri_compat_max_bcopy(size_t max);

/* False in a process that was forked while UCX's async thread ran: UCX wrongly believes
 * that it runs here, too. Knows of forks after uct_daqiri_compat_watch_forks(). */
int uct_daqiri_compat_async_runs(void);
void uct_daqiri_compat_watch_forks(void);

#endif
