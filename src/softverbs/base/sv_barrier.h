/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The heavy barrier pairs with compiler barriers.
 *
 * Two sides each store and then load what the other stores. The sender asks "I
 * am writing; are you still open?", the owner "I have closed; is anybody
 * writing?". That needs a full barrier on both sides. The sender's side is
 * every message, the owner's is rare, so the owner pays for both: membarrier()
 * makes every running thread of every registered process execute one. A sender
 * whose kernel refuses the registration, or whose peer's kernel does, fences
 * for itself (sv_light_barrier).
 */
#ifndef SV_BARRIER_H
#define SV_BARRIER_H

#include "softverbs/base/sv_atomic.h"

/* Registers this process; false if the kernel will not. Once per process. */
bool sv_barrier_init(void);
/* The rare side. May take 10 us. */
void sv_heavy_barrier(void);

/* The frequent side; `fence` says that somebody has no membarrier. */
static inline void sv_light_barrier(bool fence)
{
    if (sv_unlikely(fence)) {
        __sync_synchronize();
    } else {
        atomic_signal_fence(memory_order_seq_cst);
    }
}

#endif
