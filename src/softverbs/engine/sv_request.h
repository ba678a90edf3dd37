/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions that execute WRs, one for each kind. They answer as
 * engine/sv_rc.h says, and need tx.lock.
 */
#ifndef SV_REQUEST_H
#define SV_REQUEST_H

#include "softverbs/objects/sv_qp.h"

#include <stdint.h>

/* Execute one WR. */
int sv_tx_send(struct sv_qp *qp, struct sv_swqe *wqe);
int sv_tx_write(struct sv_qp *qp, struct sv_swqe *wqe);
int sv_tx_read(struct sv_qp *qp, struct sv_swqe *wqe);
int sv_tx_atomic(struct sv_qp *qp, struct sv_swqe *wqe);
int sv_tx_datagram(struct sv_qp *qp, struct sv_swqe *wqe);
/* Returns 0, or the errno of what this process lacks to reach the owner of that
 * QP. Needs tx.lock. */
int sv_tx_ud_check(struct sv_qp *qp, uint32_t qpn);

#endif
