/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving. All functions need rx_lock of the receive CQ.
 */
#ifndef SV_RX_H
#define SV_RX_H

#include "softverbs/objects/sv_qp.h"

#include <stdbool.h>

/* Records found one after the other from which on the receiver does: two whole
 * polls of most programs. With fewer it takes lines from a sender that is only
 * just ahead, and slows it down by a fifth (docs/bench.md). */
#define SV_BACKLOG 32

/* Receives up to `limit` messages and returns how many. notify: this is not
 * the program polling, so completions are worth an event. */
unsigned sv_rx_run(struct sv_qp *qp, unsigned limit, bool notify);
/* Whether what its sender says it has sent is there, and what it was told of us
 * still stands; if not, the QP dies. */
void sv_rx_audit(struct sv_qp *qp);
/* Begins to take packets; cannot while a sender is stopped in the middle of an
 * old one. */
bool sv_rx_can_open(struct sv_qp *qp);
void sv_rx_open(struct sv_qp *qp);
/* Takes no more packets. What an RC QP has acknowledged is delivered first, if
 * wanted: not by a QP that is destroyed, whose RECVs may be in memory that is
 * free already. -1: a sender is stopped in the middle of a packet. */
int sv_rx_close(struct sv_qp *qp, bool deliver);
/* Completes all RECVs of the QP with FLUSH_ERR. */
void sv_rx_flush(struct sv_qp *qp);
/* Both of these if the send side said that they are due (rx_flush_due). */
void sv_rx_flush_if_due(struct sv_qp *qp);

#endif
