/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waking a process that sleeps on a completion channel.
 */
#ifndef SV_WAKE_H
#define SV_WAKE_H

#include <inttypes.h>
#include <stdint.h>

struct sv_node;
struct sv_peer;
struct sv_shm_head;

/* The part of a channel's path behind the path of the segment and a dot. */
#define SV_WAKE_NAME       "%016" PRIx64

#define SV_WAKE_NAME_CHARS 16

/* Makes the socket from which this process wakes others. 0, or -1 and errno. */
int sv_wake_open(struct sv_node *node);
/* Makes the two ends of a channel. fds[0] has the name and is read; fds[1]
 * writes to it from inside. 0, or -1 and errno. */
int sv_wake_pair(const struct sv_node *node, int fds[2], uint64_t *name_p);
void sv_wake_unlink(const struct sv_node *node, uint64_t name);
/* Sends a hint for the peer's CQ at this index to the channel of this name.
 * Never waits. */
void sv_wake_peer(const struct sv_node *node, struct sv_peer *peer,
                  uint64_t name, uint32_t index);
/* Marks a hint as deferred: the owner of this head has to send it. */
void sv_wake_defer(struct sv_shm_head *head);

#endif
