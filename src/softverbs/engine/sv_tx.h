/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send queue of a QP.
 */
#ifndef SV_TX_H
#define SV_TX_H

#include "softverbs/objects/sv_qp.h"

#include <infiniband/verbs.h>

/* Executes the send queue as far as it goes without waiting. Needs tx.lock. */
void sv_tx_run(struct sv_qp *qp);
/* Completes everything in the send queue with FLUSH_ERR. Needs tx.lock. */
void sv_tx_flush(struct sv_qp *qp);
/* In SQD: posts the event that the program asked for, once nothing is under
 * way. Needs tx.lock. */
void sv_tx_drained(struct sv_qp *qp);
/* Releases the peers. Needs tx.lock. */
void sv_tx_disconnect(struct sv_qp *qp);
/* Retires the oldest WR. A failed WR always completes; a successful one
 * completes if the program asked for it. */
void sv_tx_retire(struct sv_qp *qp, const struct sv_swqe *wqe,
                  enum ibv_wc_status status);

#endif
