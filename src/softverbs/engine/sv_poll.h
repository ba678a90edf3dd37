/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Polling a CQ, which is where receiving happens.
 */
#ifndef SV_POLL_H
#define SV_POLL_H

#include "softverbs/objects/sv_cq.h"

#include <infiniband/verbs.h>

/* A sender waits: lets the QPs die whose rings are not in order. */
void sv_cq_audit(struct sv_cq *cq);
/* Receives whatever there is, for a program that is asleep. */
void sv_cq_drain(struct sv_cq *cq);
/* The same, also what no bell has told of. */
void sv_cq_drain_all(struct sv_cq *cq);
/* Fires if a completion is there that the CQ is armed for and that no event
 * has announced yet. */
void sv_cq_fire_pending(struct sv_cq *cq);
/* The program has read an event: it announced the oldest completion that none
 * had announced before. */
void sv_cq_event_read(struct sv_cq *cq);
int sv_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc);

#endif
