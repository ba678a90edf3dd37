/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stuck list: QPs whose send queue cannot go on now.
 */
#ifndef SV_STUCK_H
#define SV_STUCK_H

#include "softverbs/objects/sv_qp.h"

struct sv_node;

/* Adds a QP whose queue is not finished. Needs tx.lock. */
void sv_stuck_add(struct sv_qp *qp);

enum sv_pusher {
    SV_PUSHER_POLLER,  /* a thread of the program */
    SV_PUSHER_SERVICE, /* the service thread, as the program's threads do not */
    SV_PUSHER_WATCH    /* the service thread, for those that cannot go on */
};

/* Runs the queue of every QP on the list. The service thread also asks
 * receivers to make room. */
void sv_stuck_run(struct sv_node *node, enum sv_pusher pusher);
void sv_stuck_remove(struct sv_qp *qp);

#endif
