/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks and waits between processes.
 *
 * A holder of a lock writes its id there, and so does a busy sender. So a
 * waiter can see that the other process has died, and takes over.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/fabric/sv_shm_lock.h"

#include <errno.h>
#include <sched.h>

/* How long to wait for a lock of another process. It is held for one copy of at
 * most 4 KiB, unless its holder is preempted or stopped. A preempted holder
 * runs again within a few time slices. */
#define SV_SHM_LOCK_NS    20000000u

/* Whether the process with this lock id can still unlock. */
static bool sv_lock_id_lives(struct sv_node *node, uint32_t lock_id)
{
    struct sv_peer *peer;
    bool lives;

    peer = sv_peer_get(node, lock_id >> 20);
    if (peer == NULL) {
        return errno != ENOENT; /* cannot look: do not take over */
    }

    lives = sv_peer_alive(peer) && (peer->lock_id == lock_id);
    sv_peer_put(node, peer);
    return lives;
}

bool sv_shm_lock(struct sv_node *node, _Atomic uint32_t *word)
{
    uint64_t deadline = 0;
    uint32_t holder;
    unsigned tries;

    for (tries = 0;; ++tries) {
        holder = 0;
        if (atomic_compare_exchange_strong_explicit(word, &holder,
                                                    node->lock_id,
                                                    memory_order_acquire,
                                                    memory_order_relaxed)) {
            return true;
        }
        if (tries % 128 != 127) {
            sv_relax();
            continue;
        }

        if (!sv_lock_id_lives(node, holder) &&
            atomic_compare_exchange_strong(word, &holder, node->lock_id)) {
            return true;
        }
        if (deadline == 0) {
            deadline = sv_now_ns() + SV_SHM_LOCK_NS;
        } else if (sv_now_ns() > deadline) {
            return false;
        }
        sched_yield();
    }
}

void sv_shm_unlock(_Atomic uint32_t *word)
{
    atomic_store_explicit(word, 0, memory_order_release);
}

bool sv_busy_wait(struct sv_node *node, struct sv_shm_qp *shm,
                  uint64_t limit_ns)
{
    uint64_t deadline = 0;
    uint32_t sender;

    for (;;) {
        sender = atomic_load_explicit(&shm->busy, memory_order_acquire);
        if (sender == 0) {
            return true;
        }
        if (!sv_lock_id_lives(node, sender)) {
            atomic_store(&shm->busy, 0);
            return true;
        }

        if (deadline == 0) {
            deadline = sv_now_ns() + limit_ns;
        } else if (sv_now_ns() > deadline) {
            return false;
        }
        sched_yield();
    }
}
