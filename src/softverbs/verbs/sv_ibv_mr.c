/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions. lkey and rkey are the same number. It names an entry in the
 * segment's MR table, which peers read to check their own requests. We check
 * ours against a private copy (struct sv_region).
 *
 * Deregistration. A peer looks up the key and copies while the `busy` word of
 * the receiving QP is set. ibv_dereg_mr() removes the key and makes that
 * visible everywhere. Then it waits until each busy word of the process was
 * seen clear once: whoever sets it later finds no key.
 *
 * Our own engines copy under a lock and look up the keys each time that they
 * take it. So taking each lock once shows that they have stopped.
 *
 * On hardware, registration pins pages. Here registration populates the pages
 * of a buffer, because whoever registers it expects no page fault at the first
 * message. With IBV_ACCESS_ON_DEMAND a page comes when it is first used.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_barrier.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/fabric/sv_shm_lock.h"
#include "softverbs/fabric/sv_table.h"
#include "softverbs/objects/sv_context.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_hooks.h"
#include "softverbs/objects/sv_mr.h"
#include "softverbs/objects/sv_pd.h"
#include "softverbs/objects/sv_qp.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#undef ibv_reg_mr

#undef ibv_reg_mr_iova

/* How long to wait for peers. A copy of 1 GiB takes a fraction of this. A peer
 * that is stopped inside a copy may take for ever, and must not stop us; then
 * the memory is not free yet. */
#define SV_DEREG_WAIT_NS    2000000000ull

#define SV_ACCESS_KNOWN                                                   \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |                   \
     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |                  \
     IBV_ACCESS_ON_DEMAND)

#define SV_ACCESS_NEEDS_LOCAL_WRITE                                       \
    (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/* Whether the range is mapped from end to end. MS_ASYNC checks that and does
 * nothing else. */
static bool sv_range_is_mapped(const void *addr, size_t length)
{
    uintptr_t start = (uintptr_t)addr & ~(uintptr_t)(SV_PAGE - 1);
    uintptr_t end   = (uintptr_t)addr + length;

    if (end < (uintptr_t)addr) {
        return false;
    }
    return (length == 0) || (msync((void*)start, end - start, MS_ASYNC) == 0);
}

/* Larger memory is not populated. Its user has filled it already, or keeps it
 * for later; the device should not take so much from the machine. */
#define SV_POPULATE_MAX (16ul << 20)

/* May fail: the kernel is older than 5.14, or this kind of memory cannot be
 * populated. Then the pages come with the first use. */
static void sv_range_populate(void *addr, size_t length, unsigned access)
{
    uintptr_t start = (uintptr_t)addr & ~(uintptr_t)(SV_PAGE - 1);
    int advice      = ((access & IBV_ACCESS_LOCAL_WRITE) != 0)
                              ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
    int saved       = errno;

    if (((access & IBV_ACCESS_ON_DEMAND) == 0) && (length > 0) &&
        (length <= SV_POPULATE_MAX)) {
        (void)madvise((void*)start, (uintptr_t)addr + length - start, advice);
    }
    errno = saved;
}

static void sv_mr_publish(struct sv_node *node, struct sv_mr *mr,
                          uint64_t iova, int access)
{
    struct sv_shm_mr *shm    = sv_peer_mr(node->self, mr->index);
    struct sv_region *region = &node->regions[mr->index];
    uint16_t gen             = ++node->mr_gen[mr->index];

    if (gen == 0) {
        gen = ++node->mr_gen[mr->index];
    }

    mr->base.lkey = mr->base.rkey = ((uint32_t)mr->index << 16) | gen;
    region->access = shm->access = access;
    region->pdn    = shm->pdn    = sv_pd(mr->base.pd)->pdn;
    region->iova   = shm->iova   = iova;
    region->addr   = shm->addr   = (uintptr_t)mr->base.addr;
    region->length = shm->length = mr->base.length;
    atomic_store_explicit(&region->key, mr->base.lkey, memory_order_release);
    atomic_store_explicit(&shm->key, mr->base.lkey, memory_order_release);
}

static struct ibv_mr *sv_mr_reg(struct ibv_pd *pd, void *addr, size_t length,
                                uint64_t iova, unsigned access)
{
    struct sv_node *node = sv_context(pd->context)->node;
    struct sv_mr *mr;
    int index;

    if (sv_is_orphaned(pd->context)) {
        errno = EIO;
        return NULL;
    }

    if (sv_hook_verb(SV_VERB_REG_MR) != 0) {
        return NULL;
    }

    access &= ~IBV_ACCESS_OPTIONAL_RANGE;
    if (((access & ~SV_ACCESS_KNOWN) != 0) ||
        (((access & SV_ACCESS_NEEDS_LOCAL_WRITE) != 0) &&
         ((access & IBV_ACCESS_LOCAL_WRITE) == 0))) {
        errno = EINVAL;
        return NULL;
    }

    if (!sv_range_is_mapped(addr, length)) {
        errno = EFAULT;
        return NULL;
    }

    sv_range_populate(addr, length, access);
    mr = calloc(1, sizeof(*mr));
    if (mr == NULL) {
        return NULL;
    }

    mr->base.context = pd->context;
    mr->base.pd      = pd;
    mr->base.addr    = addr;
    mr->base.length  = length;
    pthread_mutex_lock(&node->lock);
    index = sv_table_take(node, &node->mr_table);
    if (index >= 0) {
        mr->index       = index;
        mr->base.handle = index;
        sv_mr_publish(node, mr, iova, access);
    }
    pthread_mutex_unlock(&node->lock);
    if (index < 0) {
        free(mr);
        errno = ENOMEM;
        return NULL;
    }

    atomic_fetch_add(&sv_pd(pd)->users, 1);
    return &mr->base;
}

SV_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr,
                                    size_t length, int access)
{
    return sv_mr_reg(pd, addr, length, (uintptr_t)addr, access);
}

SV_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr,
                                         size_t length, uint64_t iova,
                                         int access)
{
    return sv_mr_reg(pd, addr, length, iova, access);
}

SV_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr,
                                          size_t length, uint64_t iova,
                                          unsigned int access)
{
    return sv_mr_reg(pd, addr, length, iova, access);
}

/* Waits until nobody is inside a request that began before the heavy barrier.
 * False: somebody still is, and seems to be stopped. */
static bool sv_wait_for_senders(struct sv_node *node)
{
    const uint32_t per_page = SV_PAGE / sizeof(struct sv_shm_qp);
    uint32_t page, i;

    for (page = 0; page < SV_QP_MAX / per_page; ++page) {
        if (!sv_peer_has_qp(node->self, page * per_page)) {
            continue;
        }
        for (i = 0; i < per_page; ++i) {
            if (!sv_busy_wait(node,
                              sv_peer_qp(node->self, page * per_page + i),
                              SV_DEREG_WAIT_NS)) {
                return false;
            }
        }
    }
    return true;
}

/* Waits until none of our own engines is inside a copy that began with the
 * key. */
static void sv_wait_for_engines(struct sv_node *node)
{
    struct sv_cq *cq;
    uint32_t i;

    pthread_mutex_lock(&node->objects_lock);
    for (cq = node->all_cqs; cq != NULL; cq = cq->next) {
        sv_spin_lock(&cq->rx_lock);
        sv_spin_unlock(&cq->rx_lock);
    }
    for (i = 0; i < SV_QP_MAX; ++i) {
        if (node->qps[i] != NULL) {
            sv_spin_lock(&node->qps[i]->tx.lock);
            sv_spin_unlock(&node->qps[i]->tx.lock);
        }
    }
    pthread_mutex_unlock(&node->objects_lock);
}

SV_EXPORT int ibv_dereg_mr(struct ibv_mr *ibmr)
{
    struct sv_mr *mr         = (struct sv_mr*)ibmr;
    struct sv_node *node     = sv_context(ibmr->context)->node;
    struct sv_region *region = &node->regions[mr->index];

    if (sv_is_orphaned(ibmr->context)) {
        return 0;
    }

    atomic_store(&region->key, 0);
    atomic_store(&sv_peer_mr(node->self, mr->index)->key, 0);
    sv_wait_for_engines(node);
    if ((region->access & ~IBV_ACCESS_LOCAL_WRITE) != 0) {
        sv_heavy_barrier();
        if (!sv_wait_for_senders(node)) {
            sv_log("memory cannot be deregistered: a process that is stopped "
                   "is in the middle of a transfer");
            return EBUSY;
        }
    }

    pthread_mutex_lock(&node->lock);
    sv_table_give(&node->mr_table, mr->index);
    pthread_mutex_unlock(&node->lock);
    atomic_fetch_sub(&sv_pd(ibmr->pd)->users, 1);
    free(mr);
    return 0;
}
