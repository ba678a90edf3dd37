/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long messages, which the receiver fetches from the sender's memory.
 */
#ifndef SV_OFFER_H
#define SV_OFFER_H

#include "softverbs/objects/sv_qp.h"

#include <stdbool.h>

struct sv_rec;

/* Whether the message is for the receiver to fetch; puts the offer into the
 * ring, and answers false if there is no room now. */
bool sv_tx_may_offer(const struct sv_tx *tx, const struct sv_swqe *wqe);
bool sv_tx_offer(struct sv_qp *qp, struct sv_swqe *wqe);
/* No message is offered any more: its memory may be used for something else
 * once this returns. Needs tx.lock. */
void sv_tx_withdraw(struct sv_qp *qp);

/* Receiving; all need rx_lock of the receive CQ. */
enum sv_fetched {
    SV_FETCHED,
    SV_FETCH_DECLINED, /* may not: the sender will push the message */
    SV_FETCH_WITHDRAWN,     /* the sender does not stand behind it any more */
    SV_FETCH_FAULT,    /* some of the memory is not mapped */
    SV_FETCH_CORRUPT   /* nobody makes such an offer */
};

/* Takes the message that a record offers into the RECV. `rec` is a copy of its
 * header, checked; `payload` is in the ring. */
enum sv_fetched sv_rx_fetch(struct sv_qp *qp, const struct sv_rec *rec,
                            const void *payload);

#endif
