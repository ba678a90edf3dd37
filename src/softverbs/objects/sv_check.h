/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is true of an object whenever its locks are free, or are about to be.
 *
 * Only what this process keeps to itself is checked. What others can write is
 * judged where it is read. Builds without DQ_DEBUG check nothing.
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
/* Needs rx_lock or lock; checks what these guard. */
void sv_cq_check(const struct sv_cq *cq);
/* Needs post_lock. */
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
