/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the operations of an endpoint have in common: admission, the ways to
 * refuse, data that is fetched into a buffer of ours. Private to daqiri_ep.c,
 * daqiri_rma.c and daqiri_amo.c; where that data lies in the buffer, daqiri_iface.c
 * sets.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_EP_H
#define UCT_DAQIRI_EP_H

#include "base/daqiri_mem.h"
#include "conn/daqiri_tx.h"

struct uct_daqiri_ep {
    uct_base_ep_t     super;
    uct_daqiri_conn_t *conn;
    ucs_list_link_t   conn_link;
    int               is_reported; /* UCP has been told of its failure       */
};

UCS_CLASS_DECLARE_NEW_FUNC(uct_daqiri_ep_t, uct_ep_t, const uct_ep_params_t*);
UCS_CLASS_DECLARE_DELETE_FUNC(uct_daqiri_ep_t, uct_ep_t);

ucs_status_t uct_daqiri_ep_am_short(uct_ep_h tl_ep, uint8_t id,
                                    uint64_t header, const void *payload,
                                    unsigned length);
ucs_status_t uct_daqiri_ep_am_short_iov(uct_ep_h tl_ep, uint8_t id,
                                        const uct_iov_t *iov, size_t iovcnt);
ssize_t uct_daqiri_ep_am_bcopy(uct_ep_h tl_ep, uint8_t id,
                               uct_pack_callback_t pack_cb, void *arg,
                               unsigned flags);
ucs_status_t uct_daqiri_ep_am_zcopy(uct_ep_h tl_ep, uint8_t id,
                                    const void *header, unsigned header_length,
                                    const uct_iov_t *iov, size_t iovcnt,
                                    unsigned flags, uct_completion_t *comp);
ucs_status_t uct_daqiri_ep_flush(uct_ep_h tl_ep, unsigned flags,
                                 uct_completion_t *comp);
ucs_status_t uct_daqiri_ep_fence(uct_ep_h tl_ep, unsigned flags);
ucs_status_t uct_daqiri_ep_check(uct_ep_h tl_ep, unsigned flags,
                                 uct_completion_t *comp);
/* Gives up the conn, as if its QP had failed: its endpoints are told. */
ucs_status_t uct_daqiri_ep_invalidate(uct_ep_h tl_ep);

/* The one place where a refusal becomes a UCT status. Out of line. */
ucs_status_t uct_daqiri_ep_refused(uct_daqiri_ep_t *ep, dq_admit_t admit);

/* The same for a request that may be held, if the conn is not up yet: UCS_OK if
 * it may be posted all the same. Out of line. */
ucs_status_t uct_daqiri_ep_admit_preconnect(uct_daqiri_ep_t *ep,
                                            dq_wr_class_t wr_class,
                                            dq_admit_t admit);

/* Caller's mistakes: each is logged, and is INVALID_PARAM. */
ucs_status_t uct_daqiri_ep_bad_length(const char *op, size_t length,
                                      size_t max);
ucs_status_t uct_daqiri_ep_bad_iov(size_t iovcnt, unsigned max);

/*
 * What the peer's memory holds comes into a send buffer, and its user gets it
 * when the ledger says that it is there. Lies at the end of that buffer.
 */
typedef struct {
    uct_completion_t      super;  /* of the work request                     */
    uct_completion_t      *comp;  /* the user's, or NULL                     */
    uct_unpack_callback_t unpack; /* not called if it failed                 */
    void                  *arg;
    const void            *data;
    size_t                length;
} uct_daqiri_fetch_t;

/* Where in a send buffer it lies; what is before that is for data. */
static inline size_t uct_daqiri_fetch_offset_in(size_t seg_size)
{
    return ucs_align_down_pow2(seg_size - sizeof(uct_daqiri_fetch_t), 16);
}

static inline size_t uct_daqiri_fetch_offset(const uct_daqiri_iface_t *iface)
{
    return iface->config.fetch_offset;
}

/* Admits and posts a request that fetches, of which @a tx has the opcode and
 * where from, and @a fetch what becomes of the data. */
ucs_status_t uct_daqiri_fetch(uct_daqiri_ep_t *ep, uct_daqiri_tx_t *tx,
                              const uct_daqiri_fetch_t *fetch);

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
    ucs_status_t status;
    dq_admit_t admit;

    admit = dq_sq_admit(&conn->sq, &conn->iface->tx.ledger, wr_class);
    if (ucs_unlikely(admit != DQ_ADMIT_OK)) {
        status = uct_daqiri_ep_admit_preconnect(ep, wr_class, admit);
        if (status != UCS_OK) {
            return status;
        }
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
                                  : ((uct_daqiri_mem_t*)iov[i].memh)->lkey;
        total += length;
        num++;
    }
    *total_p = total;
    return num;
}

#endif
