/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events of the device.
 */
#ifndef UCT_DAQIRI_ASYNC_H
#define UCT_DAQIRI_ASYNC_H

#include "daqiri.h"

/* From here on what the device tells is heeded, until it leaves. */
ucs_status_t uct_daqiri_async_subscribe(uct_daqiri_iface_t *iface);
void uct_daqiri_async_unsubscribe(uct_daqiri_iface_t *iface);
/* Wakes a program that sleeps until there is something to progress. Async. */
void uct_daqiri_async_wake(uct_daqiri_iface_t *iface);
/* Has the device, which is asked, said of nothing of the interface that it is
 * broken? If it has, progress knows, and its conns fail. Async. */
int uct_daqiri_async_is_sound(uct_daqiri_iface_t *iface);
/* Performs what was told of a conn's QP; of the whole interface. Progress. */
void uct_daqiri_async_on_lose(uct_daqiri_conn_t *conn);
void uct_daqiri_async_take_events(uct_daqiri_iface_t *iface);

#endif
