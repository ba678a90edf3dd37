/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue pair of a conn.
 *
 * Threads: that of the send queue's owner.
 */
#ifndef UCT_DAQIRI_QP_H
#define UCT_DAQIRI_QP_H

#include "daqiri.h"

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

#endif
