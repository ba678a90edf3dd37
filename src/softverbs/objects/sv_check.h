/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariants of objects, checked when a lock is about to be released.
 *
 * Only private memory is checked. What other processes can write is judged
 * where it is read. Builds without DQ_DEBUG check nothing.
 */
#ifndef SV_CHECK_H
#define SV_CHECK_H

struct sv_cq;
struct sv_qp;
struct sv_rq;
struct sv_srq;

#if DQ_DEBUG

/* Checks the sides of the QP whose locks the caller holds: the send side for
 * tx.lock, the receive side for rx_lock. */
void sv_qp_check(const struct sv_qp *qp);
/* Checks what rx_lock or lock guards, if the caller holds it. */
void sv_cq_check(const struct sv_cq *cq);
/* Checks a queue of RECVs. Needs post_lock. */
void sv_rq_check(const struct sv_rq *rq);
void sv_srq_check(const struct sv_srq *srq);

#else

static inline void sv_qp_check(const struct sv_qp *qp)
{
    (void)qp;
}

static inline void sv_cq_check(const struct sv_cq *cq)
{
    (void)cq;
}

static inline void sv_rq_check(const struct sv_rq *rq)
{
    (void)rq;
}

static inline void sv_srq_check(const struct sv_srq *srq)
{
    (void)srq;
}

#endif

#endif
