/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the operations of an endpoint have in common: admission, and the ways
 * to refuse. Private to daqiri_ep.c and daqiri_rma.c.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_EP_H
#define UCT_DAQIRI_EP_H

#include "daqiri_tx.h"

/* The one place where a refusal becomes a UCT status. Out of line. */
ucs_status_t uct_daqiri_ep_refused(uct_daqiri_ep_t *ep, dq_admit_t admit);

/* Caller's mistakes: each is logged, and is INVALID_PARAM. */
ucs_status_t uct_daqiri_ep_bad_length(const char *op, size_t length,
                                      size_t max);
ucs_status_t uct_daqiri_ep_bad_iov(size_t iovcnt, unsigned max);

/* Requests that wait go first: a send may not overtake them. */
static inline int uct_daqiri_ep_must_queue(uct_daqiri_conn_t *conn)
{
    return ucs_unlikely(!ucs_queue_is_empty(&conn->pending)) &&
           (conn->iface->tx.dispatching != conn);
}

static inline ucs_status_t uct_daqiri_ep_admit(uct_daqiri_ep_t *ep,
                                               dq_wr_class_t wr_class)
{
    uct_daqiri_conn_t *conn = ep->conn;
    dq_admit_t admit;

    admit = dq_sq_admit(&conn->sq, &conn->iface->tx.ledger, wr_class);
    if (ucs_unlikely(admit != DQ_ADMIT_OK)) {
        return uct_daqiri_ep_refused(ep, admit);
    }
    return uct_daqiri_ep_must_queue(conn) ? UCS_ERR_NO_RESOURCE : UCS_OK;
}

/* The entries of an iov; empty ones are left out. Returns how many remain. */
static inline int uct_daqiri_ep_fill_sge(struct ibv_sge *sge,
                                         const uct_iov_t *iov, size_t iovcnt,
                                         size_t *total_p)
{
    size_t total = 0;
    int num      = 0;
    size_t i, length;

    for (i = 0; i < iovcnt; i++) {
        length = uct_iov_get_length(&iov[i]);
        if (length == 0) {
            continue;
        }
        sge[num].addr   = (uintptr_t)iov[i].buffer;
        sge[num].length = length;
        sge[num].lkey   = (iov[i].memh == UCT_MEM_HANDLE_NULL)
                                  ? 0
                                  : ((struct ibv_mr*)iov[i].memh)->lkey;
        total += length;
        num++;
    }
    *total_p = total;
    return num;
}

#endif
