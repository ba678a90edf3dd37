/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send queue of a QP.
 */
#ifndef SV_TX_H
#define SV_TX_H

#include "softverbs/objects/sv_qp.h"

#include <infiniband/verbs.h>

/* Executes what is in the send queue as far as it goes. Needs tx.lock. */
void sv_tx_run(struct sv_qp *qp);
/* Completes everything in the send queue with FLUSH_ERR. Needs tx.lock. */
void sv_tx_flush(struct sv_qp *qp);
/* In SQD: raises the event that was asked for once nothing is under way. Needs
 * tx.lock. */
void sv_tx_drained(struct sv_qp *qp);
/* Lets go of the peers. Needs tx.lock. */
void sv_tx_disconnect(struct sv_qp *qp);
/* The oldest WR is over. Good ones are reported if they asked for it, bad ones
 * always. */
void sv_tx_retire(struct sv_qp *qp, const struct sv_swqe *wqe,
                  enum ibv_wc_status status);

#endif
