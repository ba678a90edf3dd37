/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that come before their conn is up, and are held until it is.
 *
 * A program may send as soon as it has an endpoint, and a few requests need
 * not be told to come back (dq_sq_admit_preconnect()). To the ledger they have been
 * posted: they keep their place, take their credits, and complete once, with
 * the conn's status if it never comes up.
 *
 * Whoever first knows that the conn is up posts them: that may be the async
 * thread, for a program that has sent something and gone on to compute.
 *
 * An active message and whatever is inline is copied, so a program that closes
 * its endpoint takes nothing away from them. One-sided requests on the user's
 * memory are not: when their endpoint goes, they go out without their data.
 *
 * Threads: progress, but for uct_daqiri_preconnect_post(); conn->preconnect_lock orders
 * the two. Off the data path: conn->preconnect is NULL once progress knows that the
 * conn is up.
 */
#ifndef UCT_DAQIRI_PRECONNECT_H
#define UCT_DAQIRI_PRECONNECT_H

#include "conn/daqiri_conn.h"

/* May one more request be held? If so there is room for it. */
dq_admit_t uct_daqiri_preconnect_admit(uct_daqiri_conn_t *conn,
                                       dq_wr_class_t wr_class);
/* In place of ibv_post_send() of this one request: 0, or errno if the QP, which
 * is up by now, has refused it. @a desc is its send buffer, or NO_DESC. */
int uct_daqiri_preconnect_add(uct_daqiri_conn_t *conn,
                              const struct ibv_send_wr *wr, uct_daqiri_ep_t *ep,
                              uint32_t desc);
/* The QP is in RTS: posts what is held. Async. */
void uct_daqiri_preconnect_post(uct_daqiri_conn_t *conn, struct ibv_qp *qp);
/* Progress has heard that the conn is up: posts what is still held. Nothing
 * will be held any more. What the device has refused stays in the ledger, for
 * the conn is on its way to death. */
void uct_daqiri_preconnect_open(uct_daqiri_conn_t *conn);
/* The conn will not be up, or has lost its QP before progress knew that it was,
 * or before it was: forgets what is held. It stays in the ledger, and if there is
 * another QP it is posted there like everything else (daqiri_replay.h). Sets
 * qp.is_used
 * if it has been posted by now. */
void uct_daqiri_preconnect_drop(uct_daqiri_conn_t *conn);
/* The endpoint goes: nothing that is held refers to its user's memory. Returns
 * zero if nothing is held, or no longer. */
int uct_daqiri_preconnect_detach(uct_daqiri_ep_t *ep);
/* Has the device what was held, before progress knows that the conn is up? */
int uct_daqiri_preconnect_is_posted(uct_daqiri_conn_t *conn);

#endif
