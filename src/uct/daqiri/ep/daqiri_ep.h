/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The endpoint, and what its operations share: admission, refusals, and fetches into a
 * send buffer.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_EP_H
#define UCT_DAQIRI_EP_H

#include "base/daqiri_mem.h"
#include "conn/daqiri_tx.h"

UCS_CLASS_DECLARE_NEW_FUNC(uct_daqiri_ep_t, uct_ep_t, const uct_ep_params_t*);
UCS_CLASS_DECLARE_DELETE_FUNC(uct_daqiri_ep_t, uct_ep_t);

/* Active messages; lengths in bytes. If the message is posted, short ones return UCS_OK,
 * bcopy returns the packed length, and zcopy returns UCS_INPROGRESS. The user's memory
 * of a zcopy must stay until @a comp is invoked; the header is copied. Errors:
 * UCS_ERR_NO_RESOURCE if a retry may succeed, UCS_ERR_INVALID_PARAM for a wrong id or
 * length, and the status of a failed conn. */
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
/* Returns UCS_OK if nothing is under way. Returns UCS_INPROGRESS if @a comp, where it is
 * not NULL, will be invoked after everything posted before. Errors: UCS_ERR_NO_RESOURCE
 * if a retry may succeed, and the status of a failed conn. */
ucs_status_t uct_daqiri_ep_flush(uct_ep_h tl_ep, unsigned flags,
                                 uct_completion_t *comp);
/* Orders what follows after what was posted before. Always UCS_OK. */
ucs_status_t uct_daqiri_ep_fence(uct_ep_h tl_ep, unsigned flags);
/* Makes sure that a failure of the path to the peer is noticed and reported to UCP.
 * UCS_ERR_NO_RESOURCE if a retry may succeed. */
ucs_status_t uct_daqiri_ep_check(uct_ep_h tl_ep, unsigned flags,
                                 uct_completion_t *comp);
/* Fails the conn, as if its QP had failed. UCP is told for each of its endpoints. */
ucs_status_t uct_daqiri_ep_invalidate(uct_ep_h tl_ep);

/* Counts a refusal and turns it into a UCT status. No other function does that. Out of
 * line. */
ucs_status_t uct_daqiri_ep_refused(uct_daqiri_ep_t *ep, dq_admit_t admit);

/* The same, but returns UCS_OK if the conn is not up yet and can hold the request until
 * it is. Out of line. */
ucs_status_t uct_daqiri_ep_admit_preconnect(uct_daqiri_ep_t *ep,
                                            dq_wr_class_t wr_class,
                                            dq_admit_t admit);

/* Log a mistake of the caller. Return UCS_ERR_INVALID_PARAM. */
ucs_status_t uct_daqiri_ep_bad_length(const char *op, size_t length,
                                      size_t max);
ucs_status_t uct_daqiri_ep_bad_iov(size_t iovcnt, unsigned max);

/*
 * A fetch from the peer's memory. The device writes the data to a send buffer. When the
 * ledger retires the request, @a unpack hands the data to the user. This struct lies at
 * the end of the same buffer.
 */
typedef struct {
    uct_completion_t      super;  /* completion of the work request          */
    uct_completion_t      *comp;  /* the user's, or NULL                     */
    uct_unpack_callback_t unpack; /* not called if the fetch failed          */
    void                  *arg;
    const void            *data;
    size_t                length;
} uct_daqiri_fetch_t;

/* Offset of that struct in a send buffer, bytes. The data lies before it. */
static inline size_t uct_daqiri_fetch_offset_in(size_t seg_size)
{
    return ucs_align_down_pow2(seg_size - sizeof(uct_daqiri_fetch_t), 16);
}

static inline size_t uct_daqiri_fetch_offset(const uct_daqiri_iface_t *iface)
{
    return iface->config.fetch_offset;
}

/* Admits and posts a fetch. @a tx has the opcode and the remote address. @a fetch says
 * what to do with the data, and is copied. Returns UCS_OK if posted, or as
 * uct_daqiri_ep_admit(). */
ucs_status_t uct_daqiri_fetch(uct_daqiri_ep_t *ep, uct_daqiri_tx_t *tx,
                              const uct_daqiri_fetch_t *fetch);

/* Whether requests wait: a new send must not overtake them. */
static inline int uct_daqiri_ep_must_queue(uct_daqiri_conn_t *conn)
{
    return ucs_unlikely(!ucs_queue_is_empty(&conn->pending.queue)) &&
           (conn->iface->tx.dispatching != conn);
}

/* Whether an operation may be posted now: UCS_OK, UCS_ERR_NO_RESOURCE if a retry may
 * succeed, or the status of a failed conn. */
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

/* Copies the entries of an iov that are not empty. Returns how many those are; *total_p
 * is their length, bytes. */
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
