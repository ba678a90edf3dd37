/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of one record, the usual case (sv_short_tx.c, sv_short_rx.c).
 */
#ifndef SV_SHORT_H
#define SV_SHORT_H

#include "softverbs/objects/sv_qp.h"

#include <infiniband/verbs.h>
#include <stdbool.h>

struct sv_rec;

/* Sends a WR at once if it fits into one record and nothing prevents it. False:
 * nothing was done. */
bool sv_tx_short(struct sv_qp *qp, const struct ibv_send_wr *wr);
/* Receives a message of one record into a RECV of one piece. False: nothing was
 * done. */
bool sv_rx_short(struct sv_qp *qp, const struct sv_rec *rec,
                 const void *payload);
void sv_rx_fill_wc(const struct sv_qp *qp, struct ibv_wc *wc, uint64_t wr_id,
                   enum ibv_wc_status status, const struct sv_rec *rec);

#endif
