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

/* Returns the sum of the lengths, or -1 if an lkey does not cover its piece.
 * Stores the pieces' real addresses in `out` (those in `sge` count from their
 * MR's iova). `out` may be `sge` itself, or NULL. */
int64_t sv_sge_resolve(struct sv_node *node, uint32_t pdn,
                       const struct ibv_sge *sge, uint32_t num_sge, int access,
                       struct ibv_sge *out);
/* Whether resolved pieces of this process are still registered. */
bool sv_sge_is_registered(struct sv_node *node, const struct ibv_sge *sge,
                          uint32_t num_sge);
/* The same for pieces in a record of `owner`. If that is this process, the
 * pieces must also lie in the memory of their keys. */
bool sv_sge_is_valid(struct sv_node *node, struct sv_peer *owner,
                     const struct ibv_sge *sge, uint32_t num_sge);
/* The address in the peer behind (rkey, addr), or 0: access denied. */
uint64_t sv_mr_remote(struct sv_node *node, struct sv_peer *peer, uint32_t pdn,
                      uint32_t rkey, uint64_t addr, uint64_t length,
                      int access);

#endif
