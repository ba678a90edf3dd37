/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What executes the WRs of each kind; the answers are those of engine/sv_rc.h. All
 * need tx.lock.
 */
#ifndef SV_REQUEST_H
#define SV_REQUEST_H

#include "softverbs/objects/sv_qp.h"

#include <stdint.h>

/* The executing functions. */
int sv_tx_send(struct sv_qp *qp, struct sv_swqe *wqe);
int sv_tx_write(struct sv_qp *qp, struct sv_swqe *wqe);
int sv_tx_read(struct sv_qp *qp, struct sv_swqe *wqe);
int sv_tx_atomic(struct sv_qp *qp, struct sv_swqe *wqe);
int sv_tx_datagram(struct sv_qp *qp, struct sv_swqe *wqe);
/* 0, or the errno of what this process lacks to reach the owner of that QP.
 * Needs tx.lock. */
int sv_tx_ud_check(struct sv_qp *qp, uint32_t qpn);

#endif
