/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ringing the doorbell of a segment, our own or a peer's.
 */
#include "softverbs/base/sv_wire.h"
#include "softverbs/fabric/sv_doorbell.h"
#include "softverbs/fabric/sv_node.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void sv_futex_wait(_Atomic uint32_t *word, uint32_t value,
                   const struct timespec *timeout)
{
    syscall(SYS_futex, word, FUTEX_WAIT, value, timeout, NULL, 0);
}

void sv_futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void sv_doorbell_ring(struct sv_shm_head *head)
{
    atomic_fetch_add(&head->doorbell, 1);
    sv_futex_wake(&head->doorbell);
}

void sv_service_wake(struct sv_node *node, bool urgent)
{
    if (urgent) {
        atomic_store(&node->service_urgent, true);
        sv_doorbell_ring(node->head);
    } else if (atomic_load(&node->service_sleeps) != 0) {
        sv_doorbell_ring(node->head);
    }
}
