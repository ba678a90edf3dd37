/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues.
 */
#ifndef SV_SRQ_H
#define SV_SRQ_H

#include "softverbs/objects/sv_rq.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdint.h>

struct sv_shm_srq;

struct sv_srq {
    struct ibv_srq     base;
    struct sv_rq       rq;
    uint32_t           index;
    struct sv_shm_srq *shm;
    _Atomic uint32_t   limit;      /* armed SRQ limit, or 0 */
    uint32_t           async_sent;
    _Atomic uint32_t   users;
};

static inline struct sv_srq *sv_srq(struct ibv_srq *srq)
{
    return (struct sv_srq*)srq;
}

#endif
