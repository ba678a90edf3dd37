/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a queue pair; see daqiri_qp.h, and dq_qp.h for its table.
 */
#include "conn/daqiri_qp.h"


void uct_daqiri_qp_begin(uct_daqiri_qp_t *qp, struct ibv_qp *verbs, int is_used)
{
    DQ_ASSERT(qp->state == DQ_QP_NONE);
    *qp = (uct_daqiri_qp_t){
        .verbs   = verbs,
        .is_used = is_used,
        .state   = DQ_QP_NONE,
    };
    (void)uct_daqiri_qp_step(qp, DQ_QP_EV_CREATED);
}


void uct_daqiri_qp_mark_drain(uct_daqiri_qp_t *qp)
{
    qp->drain.polls = 0;
    qp->drain.taken = 0;
}


uint32_t uct_daqiri_qp_step(uct_daqiri_qp_t *qp, dq_qp_event_t event)
{
    dq_qp_state_t before = qp->state;
    uint32_t actions     = dq_qp_step(&qp->state, event);

    if (qp->state != before) {
        ucs_debug("qp 0x%x: %s -> %s (%s)", uct_daqiri_qp_num(qp),
                  dq_qp_state_name(before), dq_qp_state_name(qp->state),
                  dq_qp_event_name(event));
    }
    if (actions & DQ_QP_ACT_DRAIN) {
        uct_daqiri_qp_mark_drain(qp);
    }
    uct_daqiri_qp_check(qp);
    return actions;
}
