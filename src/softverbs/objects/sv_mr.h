/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions: what keys mean.
 */
#ifndef SV_MR_H
#define SV_MR_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct sv_node;
struct sv_peer;

struct sv_mr {
    struct ibv_mr base;
    uint32_t      index;
};

/* Sum of the lengths, or -1 if a piece is not covered by its lkey. The pieces'
 * addresses, which count from their MR's iova, are stored in `out` as real
 * ones; out may be sge itself, or NULL. */
int64_t sv_sge_resolve(struct sv_node *node, uint32_t pdn,
                       const struct ibv_sge *sge, uint32_t num_sge, int access,
                       struct ibv_sge *out);
/* Whether pieces of this process that were resolved are still registered. */
bool sv_sge_is_registered(struct sv_node *node, const struct ibv_sge *sge,
                          uint32_t num_sge);
/* The same of pieces that a record names, the owner's, who may be ourselves:
 * then they must lie in the memory of their keys, too. */
bool sv_sge_is_valid(struct sv_node *node, struct sv_peer *owner,
                     const struct ibv_sge *sge, uint32_t num_sge);
/* Address in the peer behind (rkey, addr), or 0: access denied. */
uint64_t sv_mr_remote(struct sv_node *node, struct sv_peer *peer, uint32_t pdn,
                      uint32_t rkey, uint64_t addr, uint64_t length,
                      int access);

#endif
