/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long messages, which the receiver fetches from the sender's memory.
 */
#ifndef SV_OFFER_H
#define SV_OFFER_H

#include "softverbs/objects/sv_qp.h"

#include <stdbool.h>

struct sv_rec;

/* sv_tx_may_offer(): whether the receiver should fetch the message.
 * sv_tx_offer(): puts the offer into the ring; false if there is no room
 * now. */
bool sv_tx_may_offer(const struct sv_tx *tx, const struct sv_swqe *wqe);
bool sv_tx_offer(struct sv_qp *qp, struct sv_swqe *wqe);
/* Withdraws all offers: when this returns, their memory may be reused. Needs
 * tx.lock. */
void sv_tx_withdraw(struct sv_qp *qp);

/* The receive side. All need rx_lock of the receive CQ. */
enum sv_fetched {
    SV_FETCHED,
    SV_FETCH_DECLINED, /* may not: the sender will push the message */
    SV_FETCH_WITHDRAWN,     /* the sender does not stand behind it any more */
    SV_FETCH_FAULT,    /* some of the memory is not mapped */
    SV_FETCH_CORRUPT   /* nobody makes such an offer */
};

/* Copies the message that a record offers into the RECV. `rec` is a checked
 * copy of its header; `payload` is in the ring. */
enum sv_fetched sv_rx_fetch(struct sv_qp *qp, const struct sv_rec *rec,
                            const void *payload);

#endif
