/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The async side: its start, its end, and the sources of events that it handles.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_CM_H
#define UCT_DAQIRI_CM_H

#include "daqiri.h"

/* Opens the mail and the carrier, and starts the async side. After a failure nothing
 * is left open. */
ucs_status_t uct_daqiri_cm_init(uct_daqiri_iface_t *iface);
/* Stops the async side: its thread does not touch the interface after this returns. */
void uct_daqiri_cm_stop(uct_daqiri_iface_t *iface);
/* Frees what uct_daqiri_cm_init() made, once it is stopped. */
void uct_daqiri_cm_cleanup(uct_daqiri_iface_t *iface);

#endif
