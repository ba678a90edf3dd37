/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue pairs of a conn, one after another. A conn has one at a time, so the object
 * lies in the conn. uct_daqiri_qp_begin() assigns all of it, so no field survives from
 * the QP before. Recovery therefore allocates no memory for it.
 *
 * The async thread makes, connects and destroys the verbs object (base/daqiri_rc.h). This
 * is the half of the owner of the send queue.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_QP_H
#define UCT_DAQIRI_QP_H

#include "daqiri.h"
#include "dq/dq_qp.h"

typedef struct {
    struct ibv_qp *verbs;       /* NULL: the device has no QP of this conn   */
    dq_qp_state_t state;        /* only uct_daqiri_qp_step() writes it       */
    int           is_used;      /* the device may have requests of the ledger */
    int           is_err;       /* in ERR, by itself or moved by us          */
    int           has_told_data; /* READY was posted: data is as good as an RTU */
    int           has_flushed;  /* an error completion has come, and ...     */
    uint32_t      flushed;      /* ... the last one was for the id before    */
    int           has_send_end; /* the device refused a request: it has none */
    uint32_t      send_end;     /* from this id on                           */
    int           has_marker;   /* a signalled request covers the last id before
                                   send_end */
    struct {
        ucs_time_t until;       /* flushes come within microseconds          */
        unsigned   polls;       /* progress calls since the drain was marked */
        uint64_t   taken;       /* completions taken in these calls          */
    } drain;
} uct_daqiri_qp_t;

/* What the device has fits the state. */
static inline void uct_daqiri_qp_check(const uct_daqiri_qp_t *qp)
{
    uct_daqiri_assert((qp->verbs != NULL) || (qp->state == DQ_QP_NONE) ||
                      (qp->state >= DQ_QP_DESTROYING));
    uct_daqiri_assert((qp->state != DQ_QP_DRAINING) || qp->is_err);
    uct_daqiri_assert(!qp->has_marker || qp->has_send_end);
    uct_daqiri_assert((qp->drain.polls > 0) || (qp->drain.taken == 0));
}

/* Begins the life of another QP. @a is_used: the async thread has posted to it already
 * (daqiri_preconnect.h). */
void uct_daqiri_qp_begin(uct_daqiri_qp_t *qp, struct ibv_qp *verbs, int is_used);
/* Moves the state by the table of dq_qp.h. Returns DQ_QP_ACT_*. This function performs
 * DRAIN itself; the caller performs the others. */
uint32_t uct_daqiri_qp_step(uct_daqiri_qp_t *qp, dq_qp_event_t event);
/* Starts the count of the drain: completions in the CQs now must be taken before it
 * ends. */
void uct_daqiri_qp_mark_drain(uct_daqiri_qp_t *qp);

/* The number of the QP, or 0 (never ours: IBA 3.5.3). */
static inline uint32_t uct_daqiri_qp_num(const uct_daqiri_qp_t *qp)
{
    return (qp->verbs != NULL) ? qp->verbs->qp_num : 0;
}

/*
 * The only function that posts requests to an RC queue pair: a list, one doorbell.
 * Returns 0, or errno. After an error the device has all requests before the id
 * *send_end_p and none from it on. uct_daqiri_tx_on_refused() knows what that means for
 * the connection.
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
