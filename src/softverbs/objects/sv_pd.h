/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection domains and address handles.
 */
#ifndef SV_PD_H
#define SV_PD_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sv_pd {
    struct ibv_pd   base;
    uint32_t        pdn;   /* unique in the process */
    _Atomic uint32_t users; /* MRs, QPs, SRQs, AHs */
};

struct sv_ah {
    struct ibv_ah base;
    uint8_t       sl;
    bool          global;
    bool          is_local; /* see sv_address_is_local() */
};

static inline struct sv_pd *sv_pd(struct ibv_pd *pd)
{
    return (struct sv_pd*)pd;
}

#endif
