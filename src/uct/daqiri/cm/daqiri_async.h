/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events of the device.
 */
#ifndef UCT_DAQIRI_ASYNC_H
#define UCT_DAQIRI_ASYNC_H

#include "daqiri.h"

/* Starts and ends handling events of the device for the interface. */
ucs_status_t uct_daqiri_async_subscribe(uct_daqiri_iface_t *iface);
void uct_daqiri_async_unsubscribe(uct_daqiri_iface_t *iface);
/* Reads pending events. Returns non-zero if the device reported no CQ, SRQ or device
 * error for the interface. After such an error progress fails all conns. Async. */
int uct_daqiri_async_is_sound(uct_daqiri_iface_t *iface);

#endif
