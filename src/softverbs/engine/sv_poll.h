/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Polling a CQ, which is where receiving happens.
 */
#ifndef SV_POLL_H
#define SV_POLL_H

#include "softverbs/objects/sv_cq.h"

#include <infiniband/verbs.h>

/* A sender waits: fails the QPs whose rings are damaged. */
void sv_cq_audit(struct sv_cq *cq);
/* Receives what has arrived, for a program that sleeps. */
void sv_cq_drain(struct sv_cq *cq);
/* The same, and looks also at QPs whose bell has not rung. */
void sv_cq_drain_all(struct sv_cq *cq);
/* Notifies if the CQ is armed for a completion that is there and that no event
 * has announced. */
void sv_cq_fire_pending(struct sv_cq *cq);
/* The program has read an event. It announced the oldest completion that no
 * other event had announced. */
void sv_cq_event_read(struct sv_cq *cq);
int sv_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc);

#endif
