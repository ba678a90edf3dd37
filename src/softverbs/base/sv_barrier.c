/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Barriers between processes: base/sv_barrier.h.
 */
#include "softverbs/base/sv_barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool sv_has_membarrier;

bool sv_barrier_init(void)
{
    sv_has_membarrier =
            syscall(SYS_membarrier,
                    MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
    return sv_has_membarrier;
}

void sv_heavy_barrier(void)
{
    __sync_synchronize();
    if (sv_has_membarrier) {
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    }
}
