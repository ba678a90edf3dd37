/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two atomics of verbs: fetch-and-add and compare-and-swap of 64 bits. daqiri does
 * not offer UCX's others (32 bits, and, or, xor, swap). UCP then emulates every atomic
 * operation, so all of them stay atomic with each other.
 *
 * A verbs atomic always fetches. A post of UCT wants no result: the device writes it to a
 * buffer, and nobody reads it.
 */
#include "ep/daqiri_amo.h"

#include "conn/daqiri_conn.h"
#include "conn/daqiri_op.h"
#include "ep/daqiri_ep.h"
#include "iface/daqiri_iface.h"


static void uct_daqiri_amo_unpack(void *arg, const void *data, size_t length)
{
    if (arg != NULL) {
        memcpy(arg, data, length);
    }
}


/* An HCA answers EINVAL, or never, if the address is not aligned. */
static ucs_status_t uct_daqiri_amo_bad_address(uint64_t remote_addr)
{
    ucs_error("daqiri: atomic operation on address 0x%" PRIx64 ", which is not "
              "a multiple of 8", remote_addr);
    return UCS_ERR_INVALID_PARAM;
}


static ucs_status_t uct_daqiri_amo_post(uct_ep_h tl_ep, uct_daqiri_tx_t *tx,
                                        uint64_t *result,
                                        uct_completion_t *comp)
{
    uct_daqiri_ep_t *ep            = ucs_derived_of(tl_ep, uct_daqiri_ep_t);
    const uct_daqiri_fetch_t fetch = {
        .comp   = comp,
        .unpack = uct_daqiri_amo_unpack,
        .arg    = result,
        .length = sizeof(uint64_t),
    };
    ucs_status_t status;

    if (ucs_unlikely((tx->remote_addr % sizeof(uint64_t)) != 0)) {
        return uct_daqiri_amo_bad_address(tx->remote_addr);
    }
    status = uct_daqiri_fetch(ep, tx, &fetch);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    ep->conn->iface->count->atomics++;
    return UCS_OK;
}


ucs_status_t uct_daqiri_ep_atomic_cswap64(uct_ep_h tl_ep, uint64_t compare,
                                          uint64_t swap, uint64_t remote_addr,
                                          uct_rkey_t rkey, uint64_t *result,
                                          uct_completion_t *comp)
{
    uct_daqiri_tx_t tx = {
        .opcode      = IBV_WR_ATOMIC_CMP_AND_SWP,
        .remote_addr = remote_addr,
        .rkey        = rkey,
        .operand     = compare,
        .swap        = swap,
    };
    ucs_status_t status;

    status = uct_daqiri_amo_post(tl_ep, &tx, result, comp);
    return (status == UCS_OK) ? UCS_INPROGRESS : status;
}


static ucs_status_t uct_daqiri_amo_add(uct_ep_h tl_ep, uct_atomic_op_t opcode,
                                       uint64_t value, uint64_t *result,
                                       uint64_t remote_addr, uct_rkey_t rkey,
                                       uct_completion_t *comp)
{
    uct_daqiri_tx_t tx = {
        .opcode      = IBV_WR_ATOMIC_FETCH_AND_ADD,
        .remote_addr = remote_addr,
        .rkey        = rkey,
        .operand     = value,
    };

    if (opcode != UCT_ATOMIC_OP_ADD) {
        return UCS_ERR_UNSUPPORTED;
    }
    return uct_daqiri_amo_post(tl_ep, &tx, result, comp);
}


ucs_status_t uct_daqiri_ep_atomic64_post(uct_ep_h tl_ep, uct_atomic_op_t opcode,
                                         uint64_t value, uint64_t remote_addr,
                                         uct_rkey_t rkey)
{
    return uct_daqiri_amo_add(tl_ep, opcode, value, NULL, remote_addr, rkey,
                              NULL);
}


ucs_status_t uct_daqiri_ep_atomic64_fetch(uct_ep_h tl_ep,
                                          uct_atomic_op_t opcode,
                                          uint64_t value, uint64_t *result,
                                          uint64_t remote_addr,
                                          uct_rkey_t rkey,
                                          uct_completion_t *comp)
{
    ucs_status_t status;

    status = uct_daqiri_amo_add(tl_ep, opcode, value, result, remote_addr,
                                rkey, comp);
    return (status == UCS_OK) ? UCS_INPROGRESS : status;
}
