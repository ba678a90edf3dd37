/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RC queue pairs: made, connected, posted to, moved to ERR.
 *
 * Threads: posting is that of the send queue's owner; all else async.
 */
#ifndef UCT_DAQIRI_QP_H
#define UCT_DAQIRI_QP_H

#include "daqiri.h"
#include "dq/dq_wire.h"

/*
 * The only place where requests go to an RC queue pair: a list of them, one doorbell.
 * Returns 0, or errno: then the device has all before the id *send_end_p, and none
 * from it on. What that means for the connection, uct_daqiri_tx_on_refused() knows.
 */
static UCS_F_ALWAYS_INLINE int
uct_daqiri_qp_post(struct ibv_qp *qp, struct ibv_send_wr *wr,
                   uint32_t *send_end_p)
{
    struct ibv_send_wr *bad_wr;
    int ret;

    ret = ibv_post_send(qp, wr, &bad_wr);
    if (ucs_unlikely(ret != 0)) {
        *send_end_p = bad_wr->wr_id;
    }
    return ret;
}

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
