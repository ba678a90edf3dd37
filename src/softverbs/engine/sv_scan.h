/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which QPs a poll of a CQ looks at.
 */
#ifndef SV_SCAN_H
#define SV_SCAN_H

#include "softverbs/objects/sv_cq.h"

struct sv_qp;

/* Adds a QP that receives into this CQ. 0 or -1: no memory. */
int sv_scan_add(struct sv_cq *cq, struct sv_qp *qp);
/* The QP takes no packets: the scan ignores its ring. Needs rx_lock. */
void sv_scan_stop(struct sv_cq *cq, struct sv_qp *qp);
void sv_scan_remove(struct sv_cq *cq, struct sv_qp *qp);
void sv_scan_cleanup(struct sv_cq *cq);
/* Before each look at the active QPs, if there are many: activates those whose
 * bells have rung, and sweeps now and then. Needs rx_lock. */
void sv_scan_update(struct sv_cq *cq);
/* Looks at all idle QPs, whatever their bells say. Needs rx_lock. */
void sv_scan_check_all_idle(struct sv_cq *cq);

#endif
