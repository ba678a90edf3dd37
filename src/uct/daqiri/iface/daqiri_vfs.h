/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters as files of UCX's VFS.
 */
#ifndef UCT_DAQIRI_VFS_H
#define UCT_DAQIRI_VFS_H

#include "daqiri.h"

/* The counters as files of UCX's VFS. Any thread. */
void uct_daqiri_iface_vfs_refresh(uct_iface_h tl_iface);

#endif
