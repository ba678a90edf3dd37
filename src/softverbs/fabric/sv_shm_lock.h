/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks and waits between processes. Both survive the death of the other side.
 */
#ifndef SV_SHM_LOCK_H
#define SV_SHM_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sv_node;
struct sv_shm_qp;

/* Takes a lock between processes. False if its living holder kept it for 20 ms;
 * it may be stopped. */
bool sv_shm_lock(struct sv_node *node, _Atomic uint32_t *word);
void sv_shm_unlock(_Atomic uint32_t *word);
/* Waits until the sender of a QP entry is not busy, or is dead. False if it is
 * busy for limit_ns; it may be stopped. */
bool sv_busy_wait(struct sv_node *node, struct sv_shm_qp *shm,
                  uint64_t limit_ns);

#endif
