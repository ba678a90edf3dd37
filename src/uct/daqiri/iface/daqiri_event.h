/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeping until something completes.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_EVENT_H
#define UCT_DAQIRI_EVENT_H

#include "daqiri.h"

/* Makes the channel of the CQs. After a failure cleanup frees what was made. */
ucs_status_t uct_daqiri_event_init(uct_daqiri_iface_t *iface);
void uct_daqiri_event_cleanup(uct_daqiri_iface_t *iface);
ucs_status_t uct_daqiri_iface_event_fd_get(uct_iface_h tl_iface, int *fd_p);
ucs_status_t uct_daqiri_iface_event_arm(uct_iface_h tl_iface, unsigned events);

#endif
