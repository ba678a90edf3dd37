/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The completion queue for sends, and its growth.
 *
 * A request that asks for no completion keeps its entry until a later one of the same
 * connection completes, because the device reports it if the queue pair fails. So each
 * idle connection keeps a few entries, and an interface with many connections needs a
 * long queue. Where half of it is kept, each request asks for a completion of its own,
 * which costs more instructions.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_SEND_CQ_H
#define UCT_DAQIRI_SEND_CQ_H

#include "base/daqiri_config.h"
#include "iface/daqiri_iface.h"

/* Makes the queue and its ledger. Returns 0, or -1 with the errno of ibv_create_cq(). */
int uct_daqiri_send_cq_open(uct_daqiri_iface_t *iface,
                            const uct_daqiri_iface_config_t *config);

/* Makes the queue twice as long if much of it is kept, and the user has not chosen its
 * length. The watchdog calls it: it may block. */
void uct_daqiri_send_cq_check(uct_daqiri_iface_t *iface);

#endif
