/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Idle closes: which conn gives up its queue pair, and how (daqiri_budget.h says why).
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_IDLE_H
#define UCT_DAQIRI_IDLE_H

#include "conn/daqiri_budget.h"
#include "iface/daqiri_iface.h"

/* Goes on with conns that close, and finds some if others wait for a queue pair. */
void uct_daqiri_idle_run(uct_daqiri_iface_t *iface);
/* Closes conns that have been idle for UCX_DAQIRI_IDLE_TIMEOUT. The watchdog calls it. */
void uct_daqiri_idle_check(uct_daqiri_iface_t *iface);

/* Is there something for uct_daqiri_idle_run()? */
static inline int uct_daqiri_idle_has_work(uct_daqiri_iface_t *iface)
{
    return iface->idle.is_short || !ucs_list_is_empty(&iface->idle.closing) ||
           uct_daqiri_budget_is_below(iface);
}

#endif
