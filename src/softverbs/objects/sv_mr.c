/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What keys mean.
 *
 * We check our own keys against a private copy (struct sv_region), and a peer's
 * keys against the MR table in its segment.
 */
#include "softverbs/base/sv_wire.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/objects/sv_mr.h"

/* The address in our own memory behind (key, addr), or 0: access denied. */
static inline uint64_t sv_region_find(struct sv_node *node, uint32_t pdn,
                                      uint32_t key, uint64_t addr,
                                      uint64_t length, int access)
{
    const struct sv_region *region = &node->regions[key >> 16];
    uint64_t offset;

    if (atomic_load_explicit(&region->key, memory_order_acquire) != key) {
        return 0;
    }

    offset = addr - region->iova;
    if ((region->pdn != pdn) ||
        ((region->access & access) != (unsigned)access) ||
        (offset > region->length) || (length > region->length - offset)) {
        return 0;
    }
    return region->addr + offset;
}

int64_t sv_sge_resolve(struct sv_node *node, uint32_t pdn,
                       const struct ibv_sge *sge, uint32_t num_sge, int access,
                       struct ibv_sge *out)
{
    int64_t total = 0;
    uint64_t addr;
    uint32_t i;

    for (i = 0; i < num_sge; ++i) {
        if (sge[i].length == 0) {
            continue;
        }

        addr = sv_region_find(node, pdn, sge[i].lkey, sge[i].addr,
                              sge[i].length, access);
        if (addr == 0) {
            return -1;
        }

        total += sge[i].length;
        if (out != NULL) {
            out[i].addr = addr;
        }
    }
    return total;
}

bool sv_sge_is_registered(struct sv_node *node, const struct ibv_sge *sge,
                          uint32_t num_sge)
{
    uint32_t i;

    for (i = 0; i < num_sge; ++i) {
        if ((sge[i].length > 0) &&
            (atomic_load_explicit(&node->regions[sge[i].lkey >> 16].key,
                                  memory_order_acquire) != sge[i].lkey)) {
            return false;
        }
    }
    return true;
}

/* Whether a real address lies in the memory of its key. */
static bool sv_region_contains(struct sv_node *node, const struct ibv_sge *sge)
{
    const struct sv_region *region = &node->regions[sge->lkey >> 16];
    uint64_t offset                = sge->addr - region->addr;

    return (offset <= region->length) &&
           (sge->length <= region->length - offset);
}

bool sv_sge_is_valid(struct sv_node *node, struct sv_peer *owner,
                     const struct ibv_sge *sge, uint32_t num_sge)
{
    uint32_t i;

    for (i = 0; i < num_sge; ++i) {
        if (owner->self) {
            if (!sv_sge_is_registered(node, &sge[i], 1) ||
                !sv_region_contains(node, &sge[i])) {
                return false;
            }
        } else if (!sv_peer_has_mr(owner, sge[i].lkey >> 16) ||
                   (atomic_load_explicit(
                            &sv_peer_mr(owner, sge[i].lkey >> 16)->key,
                            memory_order_acquire) != sge[i].lkey)) {
            return false;
        }
    }
    return true;
}

/* A peer may state what it likes about its own memory: the copy reaches into
 * that process and no other. */
uint64_t sv_mr_remote(struct sv_node *node, struct sv_peer *peer, uint32_t pdn,
                      uint32_t rkey, uint64_t addr, uint64_t length, int access)
{
    struct sv_shm_mr *shm;
    uint64_t offset, room;

    if (peer->self) {
        return sv_region_find(node, pdn, rkey, addr, length, access);
    }
    if (!sv_peer_has_mr(peer, rkey >> 16)) {
        return 0;
    }

    shm = sv_peer_mr(peer, rkey >> 16);
    if (atomic_load_explicit(&shm->key, memory_order_acquire) != rkey) {
        return 0;
    }

    offset = addr - shm->iova;
    room   = shm->length;
    if ((shm->pdn != pdn) || ((shm->access & access) != (unsigned)access) ||
        (offset > room) || (length > room - offset)) {
        return 0;
    }
    return shm->addr + offset;
}
