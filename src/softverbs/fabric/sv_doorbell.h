/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doorbell of a segment: a futex on which its service thread sleeps.
 */
#ifndef SV_DOORBELL_H
#define SV_DOORBELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct sv_node;
struct sv_shm_head;

/* Wakes the service thread of a node. */
void sv_doorbell_ring(struct sv_shm_head *head);
/* Wakes our own service thread, because the stuck list has an entry. urgent:
 * the program is about to sleep and will not run the list itself. */
void sv_service_wake(struct sv_node *node, bool urgent);
/* Sleeps while the word has this value, until a wake-up or the timeout. */
void sv_futex_wait(_Atomic uint32_t *word, uint32_t value,
                   const struct timespec *timeout);
void sv_futex_wake(_Atomic uint32_t *word);

#endif
