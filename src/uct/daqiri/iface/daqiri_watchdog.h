/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watchdog: it looks now and then at connections that make no progress.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_WATCHDOG_H
#define UCT_DAQIRI_WATCHDOG_H

#include "base/daqiri_config.h"
#include "iface/daqiri_iface.h"

void uct_daqiri_watchdog_configure(uct_daqiri_iface_t *iface,
                                   const uct_daqiri_iface_config_t *config);
ucs_status_t uct_daqiri_watchdog_open(uct_daqiri_iface_t *iface);
void uct_daqiri_watchdog_close(uct_daqiri_iface_t *iface);
void uct_daqiri_watchdog_run(uct_daqiri_iface_t *iface);

#endif
