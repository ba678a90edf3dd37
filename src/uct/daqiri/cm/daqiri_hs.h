/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake.
 *
 * Threads: async.
 */
#ifndef UCT_DAQIRI_HS_H
#define UCT_DAQIRI_HS_H

#include "cm/daqiri_cm.h"
#include "dq/dq_conn.h"

/* The async side's half of a conn: progress sees nothing of it. What it has to know
 * comes by value, with an event (uct_daqiri_news_t). */
struct uct_daqiri_hs {
    uct_daqiri_conn_t     *conn;
    dq_conn_t             machine;
    struct ibv_qp         *qp;
    uint32_t              qpn;       /* in the table: the QP's, also of the
                                        one that was destroyed last; or 0    */
    struct ibv_ah         *ah;
    int                   ah_error;  /* why there is none                    */
    uint8_t               ah_gid_index; /* at which the GID was              */
    int                   is_unproven; /* only a REQ has asked for it        */
    int                   has_no_qp; /* there is no QP that can be connected */
    int                   refused;   /* errno: no frame of it may be posted  */
    unsigned              refusals;  /* so many times, one after the other   */
    ucs_time_t            refused_at; /* ... since then                      */
    int                   is_told;   /* that we close; it may have been lost */
    int                   is_heard;  /* the peer knows, or is gone itself    */
    uint32_t              psn;
    uint32_t              window;    /* most RECVs ever promised to the peer */
    uint32_t              promised;  /* of them, at first                    */
    uct_daqiri_new_recvs_t recvs;    /* for these                            */
    uct_daqiri_resume_t   resume;    /* as of CMD_DRAINED: a call may go out
                                        while progress writes the next       */
    dq_frame_t            peer;      /* the last REQ or REP taken            */
    int                   has_peer;
    ucs_time_t            started, next_try, interval;
    ucs_list_link_t       timer_link;
    int                   is_timed;
    dq_cause_t            cause;     /* of death                             */
};

/* For a new conn; NULL: no memory. Any thread. */
uct_daqiri_hs_t *uct_daqiri_hs_create(uct_daqiri_conn_t *conn);
/* When the async thread is done with the conn. Any thread. */
void uct_daqiri_hs_free(uct_daqiri_hs_t *hs);
void uct_daqiri_hs_on_command(uct_daqiri_conn_t *conn, uint32_t commands);
void uct_daqiri_hs_on_frame(uct_daqiri_iface_t *iface, const void *payload,
                            size_t length);
void uct_daqiri_hs_on_datagram(uct_daqiri_iface_t *iface);
void uct_daqiri_hs_on_tick(uct_daqiri_iface_t *iface);
/* Whoever waits for an answer asks at once, and then as at the beginning. */
void uct_daqiri_hs_retry_now(uct_daqiri_iface_t *iface);
/* The carrier's CQ has failed: no answer comes any more. Who waits for one, and
 * who will want a QP, fails; conns that are up go on. */
void uct_daqiri_hs_fail_carrier(uct_daqiri_iface_t *iface);
/* While the interface closes: says so to the peer, unless it is known to know.
 * cm.silent counts who was told and has not answered, but did so before. */
void uct_daqiri_hs_send_all_gone(uct_daqiri_conn_t *conn);
/* In place of uct_daqiri_hs_on_frame(): what is answered, or answers us; and who
 * asks for a connection is told that there will be none. */
void uct_daqiri_hs_on_last_frame(uct_daqiri_iface_t *iface,
                                 const void *payload, size_t length);

#endif
