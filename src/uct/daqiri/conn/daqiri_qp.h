/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue pair of a conn, one after another. A conn has one at most, so the object
 * lies in the conn; uct_daqiri_qp_begin() assigns it whole, and nothing of the one
 * before it survives. To recover needs no memory for that.
 *
 * The async thread makes, connects and destroys what the device has of it
 * (base/daqiri_rc.h). Here is the half of the owner of the send queue.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_QP_H
#define UCT_DAQIRI_QP_H

#include "daqiri.h"
#include "dq/dq_qp.h"

typedef struct {
    struct ibv_qp *verbs;       /* NULL: the device has none of ours         */
    dq_qp_state_t state;        /* uct_daqiri_qp_step() alone writes it      */
    int           is_used;      /* the device may own what the ledger has    */
    int           is_err;       /* it is in ERR, of itself or by us          */
    int           has_told_data; /* to the handshake: as good as an RTU      */
    int           has_flushed;  /* an error has been seen on it: ...         */
    uint32_t      flushed;      /* ... the last one before this id           */
    int           has_send_end; /* the device has refused a request: ...     */
    uint32_t      send_end;     /* ... it has none from this id on           */
    int           has_marker;   /* and something speaks for the last one     */
    struct {
        ucs_time_t until;       /* flushes come within microseconds          */
        unsigned   polls;       /* progress calls since it began             */
        uint64_t   taken;       /* completions taken in them                 */
    } drain;
} uct_daqiri_qp_t;

/* Another one, which has sent nothing. @a is_used: but what was held for it. */
void uct_daqiri_qp_begin(uct_daqiri_qp_t *qp, struct ibv_qp *verbs, int is_used);
/* Returns DQ_QP_ACT_*, of which DRAIN has been done. */
uint32_t uct_daqiri_qp_step(uct_daqiri_qp_t *qp, dq_qp_event_t event);
/* From here on, see that all that has been received is handed up. */
void uct_daqiri_qp_mark_drain(uct_daqiri_qp_t *qp);

/* Its number, or 0 (IBA 3.5.3: never ours). */
static inline uint32_t uct_daqiri_qp_num(const uct_daqiri_qp_t *qp)
{
    return (qp->verbs != NULL) ? qp->verbs->qp_num : 0;
}

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
