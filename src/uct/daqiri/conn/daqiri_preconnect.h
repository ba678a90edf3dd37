/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The preconnect queue: requests of a conn that is not up yet.
 *
 * A program may send as soon as it has an endpoint. The queue takes a few requests, so
 * UCP need not queue them itself (dq_sq_admit_preconnect()). To the ledger they are
 * posted: they keep their order, use credits, and complete once. If the conn never comes
 * up, they complete with its status.
 *
 * UCX's own tests need it: uct_p2p_am_alignment, uct_fence_test and test_uct_pending send
 * as soon as they have an endpoint, and fail if that is refused.
 *
 * The first thread that knows that the conn is up posts them. Often that is the async
 * thread. A program may send and then compute for a minute: its message leaves at once
 * all the same, as later messages do. That is worth the lock.
 *
 * The queue copies active messages and inline data, so these survive their endpoint.
 * One-sided requests use the user's memory. When their endpoint goes, an empty request
 * takes their place.
 *
 * Threads: progress, but for uct_daqiri_preconnect_post(). conn->preconnect.lock orders
 * the two. None of this is on the data path: conn->preconnect.queue is NULL once
 * progress knows that the conn is up.
 */
#ifndef UCT_DAQIRI_PRECONNECT_H
#define UCT_DAQIRI_PRECONNECT_H

#include "conn/daqiri_conn.h"

/* Whether the queue takes one more request. After DQ_ADMIT_OK there is room for it. */
dq_admit_t uct_daqiri_preconnect_admit(uct_daqiri_conn_t *conn,
                                       dq_wr_class_t wr_class);
/* Takes a request instead of ibv_post_send(). Returns 0, or errno if the QP, which may be
 * up by now, refused it. @a desc is its send buffer, or NO_DESC. */
int uct_daqiri_preconnect_add(uct_daqiri_conn_t *conn,
                              const struct ibv_send_wr *wr, uct_daqiri_ep_t *ep,
                              uint32_t desc);
/* The QP is in RTS: posts the held requests. Async. */
void uct_daqiri_preconnect_post(uct_daqiri_conn_t *conn, struct ibv_qp *qp);
/* Progress knows that the conn is up: posts the requests that are still held, and frees
 * the queue. Requests that the device refused stay in the ledger;
 * uct_daqiri_tx_on_refused() handles them. */
void uct_daqiri_preconnect_open(uct_daqiri_conn_t *conn);
/* The conn failed, or lost its QP, before progress knew that it was up. Frees the queue.
 * Its requests stay in the ledger, and the next QP, if any, gets them like all others
 * (daqiri_replay.h). Sets qp.is_used if the async thread has posted them. */
void uct_daqiri_preconnect_drop(uct_daqiri_conn_t *conn);
/* The endpoint goes: no held request refers to its user's memory any more. Returns zero
 * if nothing is held, or no longer. */
int uct_daqiri_preconnect_detach(uct_daqiri_ep_t *ep);
/* Whether the device has the held requests, before progress knows that the conn is up. */
int uct_daqiri_preconnect_is_posted(uct_daqiri_conn_t *conn);

#endif
