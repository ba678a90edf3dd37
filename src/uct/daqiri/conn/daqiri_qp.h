/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RC queue pairs: made, connected, moved to ERR.
 */
#ifndef UCT_DAQIRI_QP_H
#define UCT_DAQIRI_QP_H

#include "daqiri.h"
#include "dq/dq_wire.h"

/* Both: NO_RESOURCE if another QP, or another time, may do. @a level: of what is
 * said if there is none. */
ucs_status_t uct_daqiri_qp_create(uct_daqiri_iface_t *iface,
                                  ucs_log_level_t level,
                                  struct ibv_qp **qp_p, uint32_t *inline_p);
ucs_status_t uct_daqiri_qp_connect(uct_daqiri_iface_t *iface,
                                   struct ibv_qp *qp, uint32_t psn,
                                   const dq_frame_t *peer);
/* Within this time a device fails a request that gets no answer, by itself. */
ucs_time_t uct_daqiri_qp_max_retry_time(const uct_daqiri_iface_t *iface);
/* 0, or errno: it goes on as it was. */
int uct_daqiri_qp_to_err(struct ibv_qp *qp);
/* What the device says of its state, for people. Calls the kernel. */
const char *uct_daqiri_qp_state_name(struct ibv_qp *qp);

#endif
