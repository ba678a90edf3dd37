/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RC queue pairs of the device: creation, connection, move to ERR. All functions but
 * uct_daqiri_rc_max_retry_time() may call the kernel.
 *
 * Threads: any, one at a time for each queue pair.
 */
#ifndef UCT_DAQIRI_RC_H
#define UCT_DAQIRI_RC_H

#include "daqiri.h"
#include "dq/dq_wire.h"

/* Creates a QP in INIT; the caller owns it. Logs a failure at @a level, and returns
 * UCS_ERR_NO_RESOURCE if a retry may succeed, or else UCS_ERR_IO_ERROR. If @a inline_p is
 * not NULL, a smaller limit of inline data suffices; *inline_p is that limit, bytes. */
ucs_status_t uct_daqiri_rc_create(uct_daqiri_iface_t *iface,
                                  ucs_log_level_t level,
                                  struct ibv_qp **qp_p, uint32_t *inline_p);
/* Moves a QP from INIT through RTR to RTS, towards @a peer. May block. Returns
 * UCS_ERR_NO_RESOURCE if a retry with another QP may succeed. Logs any other failure and
 * returns UCS_ERR_IO_ERROR. The QP stays the caller's. */
ucs_status_t uct_daqiri_rc_connect(uct_daqiri_iface_t *iface,
                                   struct ibv_qp *qp, uint32_t psn,
                                   const dq_frame_t *peer);
/* The longest time in which a device itself fails a request that gets no answer. */
ucs_time_t uct_daqiri_rc_max_retry_time(const uct_daqiri_iface_t *iface);
/* Moves a QP to ERR. Returns 0, or an errno: the QP then stays as it was. */
int uct_daqiri_rc_to_err(struct ibv_qp *qp);
/* Name of the state that the device reports, for messages. NULL if it reports none. */
const char *uct_daqiri_rc_state_name(struct ibv_qp *qp);

#endif
