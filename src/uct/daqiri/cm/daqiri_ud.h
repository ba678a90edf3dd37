/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The carrier of the handshake: a UD queue pair.
 *
 * Threads: async.
 */
#ifndef UCT_DAQIRI_UD_H
#define UCT_DAQIRI_UD_H

#include "daqiri.h"
#include "dq/dq_retry.h"
#include "dq/dq_triage.h"
#include "dq/dq_wire.h"

enum {
    UCT_DAQIRI_UD_RECVS = 256,
    UCT_DAQIRI_UD_SENDS = 32   /* bits of send_busy                          */
};

typedef struct {
    struct ibv_comp_channel *channel;
    struct ibv_cq           *cq;
    struct ibv_qp           *qp;
    struct ibv_mr           *mr;
    uint8_t                 *memory;   /* receive slots, send slots, junk    */
    uint32_t                send_busy; /* bitmap of send slots               */
    struct ibv_ah           *once[UCT_DAQIRI_UD_SENDS]; /* to destroy when a
                                          slot is free, or NULL              */
    uint16_t                idle[UCT_DAQIRI_UD_RECVS]; /* receive slots that */
    unsigned                idle_count; /* the device has not taken yet      */
    dq_cause_t              lost;      /* NONE: the QP is well               */
    int                     is_failed; /* its CQ has failed                  */
    dq_retry_t              retry;     /* when it may be remade              */
    uint32_t                passed;    /* datagrams                          */
} uct_daqiri_ud_t;

/* Idle receive slots exist, and only a busy send slot has an address handle. */
static inline void uct_daqiri_ud_check(const uct_daqiri_ud_t *ud)
{
#if DQ_DEBUG
    unsigned i;

    uct_daqiri_assert(ud->idle_count <= UCT_DAQIRI_UD_RECVS);
    for (i = 0; i < ud->idle_count; i++) {
        uct_daqiri_assert(ud->idle[i] < UCT_DAQIRI_UD_RECVS);
    }
    for (i = 0; i < UCT_DAQIRI_UD_SENDS; i++) {
        uct_daqiri_assert((ud->once[i] == NULL) || (ud->send_busy & UCS_BIT(i)));
    }
#else
    (void)ud;
#endif
}

/* Called for each datagram, GRH skipped. */
typedef void (*uct_daqiri_ud_rx_t)(uct_daqiri_iface_t *iface,
                                   const void *payload, size_t length);

ucs_status_t uct_daqiri_ud_open(uct_daqiri_iface_t *iface);
void uct_daqiri_ud_close(uct_daqiri_iface_t *iface);
ucs_status_t uct_daqiri_ud_send(uct_daqiri_iface_t *iface, struct ibv_ah *ah,
                                uint32_t qpn, const dq_frame_t *frame);
/* The same, but the carrier destroys @a ah when the send has completed or failed. */
ucs_status_t uct_daqiri_ud_send_once(uct_daqiri_iface_t *iface,
                                     struct ibv_ah *ah, uint32_t qpn,
                                     const dq_frame_t *frame);
void uct_daqiri_ud_poll(uct_daqiri_iface_t *iface, uct_daqiri_ud_rx_t rx);
/* Posts RECVs that the device has refused. Resets the QP if it has failed and it is time;
 * the QP keeps its number. Returns non-zero if it was reset. */
int uct_daqiri_ud_reset(uct_daqiri_iface_t *iface);
/* Whether uct_daqiri_ud_reset() has something to do, now or later. */
static inline int uct_daqiri_ud_is_hurt(const uct_daqiri_ud_t *ud)
{
    return !ud->is_failed &&
           ((ud->lost != DQ_CAUSE_NONE) || (ud->idle_count > 0));
}
/* Whether a send is under way that will complete. */
static inline int uct_daqiri_ud_is_sending(const uct_daqiri_ud_t *ud)
{
    return !ud->is_failed && (ud->send_busy != 0);
}

#endif
