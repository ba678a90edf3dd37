/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels: arming a CQ, firing it, waking the program.
 */
#ifndef SV_CHANNEL_H
#define SV_CHANNEL_H

#include "softverbs/base/sv_wire.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct sv_cq;
struct sv_node;
struct sv_peer;

struct sv_channel {
    struct ibv_comp_channel base; /* base.fd: the end that is read */
    int                     write_fd;
    uint64_t                name; /* of base.fd, for peers */
    struct sv_channel      *next; /* under sv_node.lock */
};

/* Gives a CQ its place in the shared table, where peers find its channel. */
int sv_cq_bind_channel(struct sv_cq *cq, struct sv_channel *channel);
void sv_cq_unbind_channel(struct sv_cq *cq);
/* Sends the hints that others have deferred. */
void sv_channels_send_deferred(struct sv_node *node);
/* Whether the program waits for an event of this CQ. If no event can reach it,
 * it gets one. */
bool sv_cq_check_wakeup(struct sv_cq *cq);
/* Removes the names of channels that the program has not destroyed. */
void sv_channels_unlink(struct sv_node *node);
/* Notifies a CQ, of this process or of a peer, of a completion. */
void sv_cq_notify(struct sv_node *node, struct sv_peer *peer,
                  struct sv_shm_cq *shm, bool solicited);
/* Arms the CQ. A CQ that is armed for more stays armed for more. */
void sv_cq_arm(struct sv_cq *cq, enum sv_armed wanted);
/* Takes one event; false: the hint was one too many. Needs sv_node.lock. */
bool sv_cq_take_event(struct sv_cq *cq);

#endif
