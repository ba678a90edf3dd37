/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake.
 *
 * Threads: async.
 */
#ifndef UCT_DAQIRI_HS_H
#define UCT_DAQIRI_HS_H

#include "base/daqiri_peer.h"
#include "cm/daqiri_wait.h"
#include "dq/dq_conn.h"

/* The async side's half of a conn. Progress reads nothing of it: an event carries what
 * progress has to know, by value (uct_daqiri_news_t). */
struct uct_daqiri_hs {
    uct_daqiri_peer_t     *owner;    /* whose handshake it is               */
    dq_conn_t             machine;
    struct ibv_qp         *qp;
    uint32_t              qpn;       /* in the QPN table: that of the QP, or of
                                        the last one; 0: none                */
    struct ibv_ah         *ah;
    int                   ah_error;  /* errno, if there is no ah             */
    uint8_t               ah_gid_index; /* index of our GID for ah           */
    int                   is_unproven; /* only a REQ has asked for the conn  */
    int                   has_no_qp; /* no QP could be made or connected     */
    int                   refused;   /* errno of the last refused frame      */
    unsigned              refusals;  /* frames refused in a row              */
    ucs_time_t            refused_at; /* when the row began                  */
    int                   is_told;   /* that we close; the frame may be lost */
    int                   is_heard;  /* the peer knows, or has closed itself */
    uint32_t              psn;
    uint32_t              window;    /* most RECVs ever promised to the peer */
    uint32_t              promised;  /* RECVs promised at first              */
    uct_daqiri_new_recvs_t recvs;    /* the RECVs behind them                */
    uct_daqiri_resume_t   resume;    /* copied at CMD_DRAINED: a REQ may go out
                                        while progress writes the next one   */
    dq_frame_t            peer;      /* the last REQ or REP accepted         */
    int                   has_peer;
    ucs_time_t            started, next_try, interval;
    ucs_list_link_t       timer_link;
    uct_daqiri_turn_t     turn;
    int                   is_timed;
    dq_cause_t            cause;     /* why the conn failed                  */
};

/* What the handshake has fits together, and it is that of its peer. */
static inline void uct_daqiri_hs_check(const uct_daqiri_hs_t *hs)
{
    uct_daqiri_assert(hs->owner->hs == hs);
    uct_daqiri_assert((hs->qp == NULL) || (hs->qpn == 0) ||
                      (hs->qpn == hs->qp->qp_num));
    uct_daqiri_assert(hs->promised <= hs->window);
    uct_daqiri_assert(!hs->is_told || hs->has_peer);
    uct_daqiri_assert(!hs->is_timed || (hs->interval > 0));
    uct_daqiri_assert(!hs->is_unproven || (hs->owner->iface->cm.unproven > 0));
}

/* Creates the async side's half of a new conn. NULL if there is no memory. Any thread. */
uct_daqiri_hs_t *uct_daqiri_hs_create(uct_daqiri_peer_t *peer);
/* Frees that half. The async side must have released the conn before. Any thread. */
void uct_daqiri_hs_free(uct_daqiri_hs_t *hs);
/* Performs the commands of progress (UCT_DAQIRI_CMD_*). */
void uct_daqiri_hs_on_command(uct_daqiri_peer_t *peer, uint32_t commands);
/* Answers who has asked, oldest first, then asks whom this interface wants. Returns after
 * some of them, and the timer goes on: other work of this thread must not wait long. */
void uct_daqiri_hs_work(uct_daqiri_iface_t *iface);
/* Handles the datagrams that the carrier has received. */
void uct_daqiri_hs_on_datagram(uct_daqiri_iface_t *iface);
/* Repeats the frames whose time has come, and ends what has waited for too long. */
void uct_daqiri_hs_on_tick(uct_daqiri_iface_t *iface);
/* Makes conns that wait for an answer ask at once, and then at intervals as at first. */
void uct_daqiri_hs_retry_now(uct_daqiri_iface_t *iface);
/* The carrier's CQ has failed, so no answer comes any more. Conns that wait for one, or
 * will need a QP, fail. Conns that are up go on. */
void uct_daqiri_hs_fail_carrier(uct_daqiri_iface_t *iface);
/* Tells the peer that the interface closes, unless the peer is known to know it. While
 * the interface closes, cm.silent counts the peers that were told and have not answered,
 * of those that have answered before. */
void uct_daqiri_hs_send_all_gone(uct_daqiri_peer_t *peer);
/* Replaces uct_daqiri_hs_on_frame() while the interface closes. Answers the frames that
 * need an answer, notes the answers to ours, and tells peers that ask for a connection
 * that there will be none. */
void uct_daqiri_hs_on_last_frame(uct_daqiri_iface_t *iface,
                                 const void *payload, size_t length);
/* The same for those that have asked, and have no answer yet. */
void uct_daqiri_hs_answer_last(uct_daqiri_iface_t *iface);

#endif
