/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RC queue pairs of the device: made, connected, moved to ERR.
 *
 * Threads: any, one at a time for each queue pair.
 */
#ifndef UCT_DAQIRI_RC_H
#define UCT_DAQIRI_RC_H

#include "daqiri.h"
#include "dq/dq_wire.h"

/* Creates a QP in INIT. UCS_ERR_NO_RESOURCE if a retry may succeed. @a level: of the
 * log line if there is none. @a inline_p, if not NULL: a smaller limit of inline data
 * will do, and this is it. */
ucs_status_t uct_daqiri_rc_create(uct_daqiri_iface_t *iface,
                                  ucs_log_level_t level,
                                  struct ibv_qp **qp_p, uint32_t *inline_p);
/* INIT -> RTR -> RTS, towards @a peer. UCS_ERR_NO_RESOURCE if another QP may do. */
ucs_status_t uct_daqiri_rc_connect(uct_daqiri_iface_t *iface,
                                   struct ibv_qp *qp, uint32_t psn,
                                   const dq_frame_t *peer);
/* Within this time a device fails a request that gets no answer, by itself. */
ucs_time_t uct_daqiri_rc_max_retry_time(const uct_daqiri_iface_t *iface);
/* 0, or errno: it goes on as it was. */
int uct_daqiri_rc_to_err(struct ibv_qp *qp);
/* What the device says of its state, for people. Calls the kernel. */
const char *uct_daqiri_rc_state_name(struct ibv_qp *qp);

#endif
