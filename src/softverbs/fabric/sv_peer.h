/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers: the mapped segments of other processes, and our own as one of them.
 *
 * base/sv_wire.h says who may touch what in a segment.
 */
#ifndef SV_PEER_H
#define SV_PEER_H

#include "softverbs/base/sv_wire.h"
#include "softverbs/fabric/sv_segment.h"

#include <infiniband/verbs.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>

struct sv_node;

/* A mapped segment: a peer's, or our own (self). It lives while referenced. */
struct sv_peer {
    struct sv_peer     *next;
    unsigned            refs;  /* under sv_node.lock */
    uint32_t            slot;
    int                 pid;   /* as its head said when it was mapped */
    uint64_t            start_time;
    uint32_t            lock_id;
    int                 fd;
    uint8_t            *base;
    struct sv_shm_head *head;  /* == base */
    bool                self;
    bool                fence; /* see sv_light_barrier() */
    char                path[SV_PATH_BYTES];
};

/* Makes a peer of a mapped segment, with one reference. Takes over fd and
 * base. */
struct sv_peer *sv_peer_new(int fd, uint8_t *base, uint32_t slot,
                            const char *path);
void sv_peer_destroy(struct sv_peer *peer);
/* The peer in a slot, or NULL and errno. ENOENT: nobody is there, or nobody
 * whom this process may reach. Other values name what this process lacks; the
 * log has a sentence then. */
struct sv_peer *sv_peer_get(struct sv_node *node, uint32_t slot);
/* Whether this process could reach the peer in a slot: 0 if so, or if nobody is
 * there; else an errno. */
int sv_peer_check(struct sv_node *node, uint32_t slot);
void sv_peer_put(struct sv_node *node, struct sv_peer *peer);

/* False once the kernel has begun to tear the process down. */
static inline bool sv_peer_alive(const struct sv_peer *peer)
{
    uint32_t life = atomic_load_explicit(&peer->head->life,
                                         memory_order_relaxed);

    return (life & (FUTEX_OWNER_DIED | SV_LIFE_CLOSED)) == 0;
}

/* Whether messages reach the process: it lives, and its link is up. */
static inline bool sv_peer_answers(const struct sv_peer *peer)
{
    uint32_t life = atomic_load_explicit(&peer->head->life,
                                         memory_order_relaxed);

    return (life & (FUTEX_OWNER_DIED | SV_LIFE_CLOSED | SV_LIFE_LINK_DOWN)) ==
           0;
}

static inline struct sv_shm_qp *sv_peer_qp(struct sv_peer *peer, uint32_t index)
{
    return (struct sv_shm_qp*)(peer->base + SV_OFF_QP) + index;
}

/* Whether the page of a QP entry is reserved. */
static inline bool sv_peer_has_qp(const struct sv_peer *peer, uint32_t index)
{
    return sv_entry_exists(peer->head->qp_pages, sizeof(struct sv_shm_qp),
                           index);
}

static inline bool sv_peer_has_mr(const struct sv_peer *peer, uint32_t index)
{
    return sv_entry_exists(peer->head->mr_pages, sizeof(struct sv_shm_mr),
                           index);
}

static inline uint32_t
sv_peer_qp_index(struct sv_peer *peer, const struct sv_shm_qp *entry)
{
    return entry - sv_peer_qp(peer, 0);
}

static inline struct sv_shm_cq *sv_peer_cq(struct sv_peer *peer, uint32_t index)
{
    return (struct sv_shm_cq*)(peer->base + SV_OFF_CQ) + index;
}

static inline struct sv_shm_srq *
sv_peer_srq(struct sv_peer *peer, uint32_t index)
{
    return (struct sv_shm_srq*)(peer->base + SV_OFF_SRQ) + index;
}

static inline struct sv_shm_mr *sv_peer_mr(struct sv_peer *peer, uint32_t index)
{
    return (struct sv_shm_mr*)(peer->base + SV_OFF_MR) + index;
}

static inline uint8_t *
sv_peer_ring(struct sv_peer *peer, uint32_t index, uint32_t bytes)
{
    return peer->base + sv_ring_offset(index, bytes);
}

/* The entry whose index a peer's QP entry holds, or NULL: there is none. */
struct sv_shm_cq *sv_peer_named_cq(struct sv_peer *peer, uint32_t index);
struct sv_shm_srq *sv_peer_named_srq(struct sv_peer *peer, uint32_t index);

/* Rings the bell of a QP that its owner does not poll. */
void sv_peer_ring_bell(struct sv_peer *peer, uint32_t index);
/* Copies between local pieces and a peer's memory. 0, or -1 and errno: ESRCH
 * the process is gone, EFAULT one of the two sides is not mapped. */
int sv_peer_write(struct sv_peer *peer, uint64_t to, const struct ibv_sge *sge,
                  int num_sge);
int sv_peer_read(struct sv_peer *peer, uint64_t from, const struct ibv_sge *sge,
                 int num_sge);

#endif
