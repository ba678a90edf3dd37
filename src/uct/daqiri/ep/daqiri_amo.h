/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations of an endpoint.
 *
 * A post returns UCS_OK. The others return UCS_INPROGRESS: the result is in *result when
 * @a comp is invoked. Errors: UCS_ERR_NO_RESOURCE if a retry may succeed,
 * UCS_ERR_INVALID_PARAM for an address that is not a multiple of 8,
 * UCS_ERR_UNSUPPORTED for an opcode other than ADD, and the status of a failed conn.
 *
 * Threads: progress.
 */
#ifndef UCT_DAQIRI_AMO_H
#define UCT_DAQIRI_AMO_H

#include "daqiri.h"

ucs_status_t uct_daqiri_ep_atomic_cswap64(uct_ep_h tl_ep, uint64_t compare,
                                          uint64_t swap, uint64_t remote_addr,
                                          uct_rkey_t rkey, uint64_t *result,
                                          uct_completion_t *comp);
ucs_status_t uct_daqiri_ep_atomic64_post(uct_ep_h tl_ep, uct_atomic_op_t opcode,
                                         uint64_t value, uint64_t remote_addr,
                                         uct_rkey_t rkey);
ucs_status_t uct_daqiri_ep_atomic64_fetch(uct_ep_h tl_ep,
                                          uct_atomic_op_t opcode,
                                          uint64_t value, uint64_t *result,
                                          uint64_t remote_addr,
                                          uct_rkey_t rkey,
                                          uct_completion_t *comp);

#endif
