/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving. All functions need rx_lock of the receive CQ.
 */
#ifndef SV_RX_H
#define SV_RX_H

#include "softverbs/objects/sv_qp.h"

#include <stdbool.h>

/* Records in a row from which on the receiver prefetches: two whole polls of
 * most programs. A shorter backlog means that the sender is only just ahead.
 * Prefetching then takes lines from it and slows it down by a fifth
 * (docs/bench.md). */
#define SV_BACKLOG 32

/* Receives up to `limit` messages and returns how many. notify: the program is
 * not polling, so completions raise events. */
unsigned sv_rx_run(struct sv_qp *qp, unsigned limit, bool notify);
/* Fails the QP if its ring lacks what the sender has published, or if our head
 * was overwritten. */
void sv_rx_audit(struct sv_qp *qp);
/* Starts to take packets. sv_rx_can_open(): false while a sender is stopped in
 * the middle of an old packet. */
bool sv_rx_can_open(struct sv_qp *qp);
void sv_rx_open(struct sv_qp *qp);
/* Stops taking packets. -1: a sender is stopped in the middle of a packet.
 *
 * deliver: first receive what an RC QP has acknowledged. A QP that is destroyed
 * must not, because the memory of its RECVs may be free. */
int sv_rx_close(struct sv_qp *qp, bool deliver);
/* Completes all RECVs of the QP with FLUSH_ERR. */
void sv_rx_flush(struct sv_qp *qp);
/* Closes and flushes if the send side has asked for it (rx_flush_due). */
void sv_rx_flush_if_due(struct sv_qp *qp);

#endif
