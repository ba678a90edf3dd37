/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The chain: work requests of one QP that share a doorbell.
 *
 * Where the doorbell is a system call (a device that the kernel emulates), it
 * is a good part of what a short message costs. So requests that are made
 * ready inside one progress call are posted together at its end. Outside of
 * progress the first request of a conn goes out at once, and those that follow
 * it before the next progress call wait for that call, or for a full chain, or
 * for twice TX_HOLD at most: then the async thread rings, for a program that
 * has gone to compute, and nothing of that program is held for some time. Who
 * waits for an answer calls progress, and waits no longer than without.
 *
 * A request that is held has been posted as far as the ledger is concerned.
 * Its doorbell can only be late, never forgotten.
 *
 * Threads: progress; the timer on async. The lock guards the held requests,
 * and is kept over their ibv_post_send(), so that they stay in order. Without
 * a chain none of this is on the data path but one branch.
 */
#ifndef UCT_DAQIRI_CHAIN_H
#define UCT_DAQIRI_CHAIN_H

#include "daqiri.h"

/* Makes iface->tx.chain if TX_CHAIN says so. */
ucs_status_t uct_daqiri_chain_init(uct_daqiri_iface_t *iface,
                                   const uct_daqiri_iface_config_t *config);
/* Posts what is held; from here on every request is posted at once. */
void uct_daqiri_chain_close(uct_daqiri_iface_t *iface);

/* In place of ibv_post_send() of this one request: 0, or errno if it was
 * refused. What it points to inline is copied. */
int uct_daqiri_chain_post(uct_daqiri_conn_t *conn, struct ibv_send_wr *wr);
/* Posts what is held. */
void uct_daqiri_chain_ring(uct_daqiri_iface_t *iface);
/* Around the work of a progress call. */
void uct_daqiri_chain_enter(uct_daqiri_chain_t *chain);
void uct_daqiri_chain_leave(uct_daqiri_chain_t *chain);

#endif
