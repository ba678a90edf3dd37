/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations of an endpoint; lengths in bytes.
 *
 * If the operation is posted, put_short returns UCS_OK, put_bcopy returns the packed
 * length, and the others return UCS_INPROGRESS; or UCS_OK if there are no data. The
 * user's memory of a zcopy must stay until @a comp is invoked. Errors:
 * UCS_ERR_NO_RESOURCE if a retry may succeed, UCS_ERR_INVALID_PARAM for a wrong length
 * or iov, and the status of a failed conn.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_RMA_H
#define UCT_DAQIRI_RMA_H

#include "daqiri.h"

ucs_status_t uct_daqiri_ep_put_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                     size_t iovcnt, uint64_t remote_addr,
                                     uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t uct_daqiri_ep_get_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                     size_t iovcnt, uint64_t remote_addr,
                                     uct_rkey_t rkey, uct_completion_t *comp);

ucs_status_t uct_daqiri_ep_put_short(uct_ep_h tl_ep, const void *buffer,
                                     unsigned length, uint64_t remote_addr,
                                     uct_rkey_t rkey);
ssize_t uct_daqiri_ep_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack_cb,
                                void *arg, uint64_t remote_addr,
                                uct_rkey_t rkey);
ucs_status_t uct_daqiri_ep_get_bcopy(uct_ep_h tl_ep,
                                     uct_unpack_callback_t unpack_cb,
                                     void *arg, size_t length,
                                     uint64_t remote_addr, uct_rkey_t rkey,
                                     uct_completion_t *comp);

#endif
