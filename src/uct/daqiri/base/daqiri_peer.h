/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer of a conn: all of a conn that both threads know, and the table of peers.
 *
 * conn/ has the rest of the conn, which is progress'. cm/ has the handshake, which is the
 * async thread's. This object lies in the conn, and only passes it on.
 *
 * Threads: any, unless a function or a field names one; iface->mail.lock guards the
 * table.
 */
#ifndef UCT_DAQIRI_PEER_H
#define UCT_DAQIRI_PEER_H

#include "base/daqiri_hw.h"
#include "base/daqiri_mail.h"
#include "dq/dq_gid.h"
#include "iface/daqiri_iface.h"

struct uct_daqiri_peer {
    /* Set once, before the other thread sees the conn. */
    uct_daqiri_iface_t *iface;
    uct_daqiri_conn_t  *conn;
    dq_port_addr_t     port;
    char               gid_text[DQ_GID_TEXT_MAX];
    dq_iface_addr_t    addr;
    int                is_self;
    uct_daqiri_hs_t    *hs;        /* the handshake; async                   */

    int                is_addressed; /* the address came from UCP; mail.lock */
    /* Contents of the next REQ or REP. Progress writes it before CMD_DRAINED. */
    uct_daqiri_resume_t resume;
    dq_cause_t         death;      /* Progress writes it before CMD_FAIL.    */
    /* What dq_liveness and dq_watchdog compare. Atomic: async writes, progress reads. */
    struct {
        uint32_t heard;            /* frames received from the peer          */
        uint32_t probes;           /* probes sent                            */
        int      is_put_off;       /* the peer drains; we want another QP    */
    } liveness;
    uct_daqiri_hw_t    *hw;        /* async sets it before EVT_UP            */
    uct_daqiri_mail_t  mail;
};

/* Makes the peer of a new conn. UCS_ERR_NO_MEMORY if there is no memory. */
ucs_status_t uct_daqiri_peer_init(uct_daqiri_peer_t *peer,
                                  uct_daqiri_iface_t *iface,
                                  uct_daqiri_conn_t *conn,
                                  const dq_port_addr_t *port,
                                  const dq_iface_addr_t *addr);
/* Frees what uct_daqiri_peer_init() made, after a failure, too. The async side must have
 * released the conn before. */
void uct_daqiri_peer_cleanup(uct_daqiri_peer_t *peer);
/* Whether the peer has this address, cookie included. */
int uct_daqiri_peer_is_at(const uct_daqiri_peer_t *peer,
                          const dq_port_addr_t *port,
                          const dq_iface_addr_t *addr);

/* A conn with mail is on the list of that mail. The caller holds iface->mail.lock. */
static inline void uct_daqiri_mail_check(const uct_daqiri_peer_t *peer)
{
#if DQ_DEBUG
    const uct_daqiri_mail_t *mail = &peer->mail;

    uct_daqiri_assert_held(&peer->iface->mail.lock);
    uct_daqiri_assert((mail->commands & ~(uint32_t)UCT_DAQIRI_CMD_ALL) == 0);
    uct_daqiri_assert((mail->events & ~(uint32_t)UCT_DAQIRI_EVT_ALL) == 0);
    uct_daqiri_assert((mail->commands == 0) ||
                      (mail->cmd_link.next->prev == &mail->cmd_link));
    uct_daqiri_assert((mail->events == 0) ||
                      (mail->evt_link.next->prev == &mail->evt_link));
#else
    (void)peer;
#endif
}

/* Finds the peer with this uuid. NULL if there is none. */
uct_daqiri_peer_t *uct_daqiri_peer_find(uct_daqiri_iface_t *iface,
                                        uint64_t uuid);
/* Finds this peer, or creates it with its conn. UCS_ERR_NO_MEMORY if there is no
 * memory. */
ucs_status_t uct_daqiri_peer_get(uct_daqiri_iface_t *iface,
                                 const dq_port_addr_t *port,
                                 const dq_iface_addr_t *addr,
                                 uct_daqiri_peer_t **peer_p);
/* The same for a peer whose address comes from UCP. A REQ from another address may have
 * created a conn in the peer's name. That conn loses its place in the table, and the
 * caller must end it: *forged_p. Otherwise *forged_p is NULL. Progress. */
ucs_status_t uct_daqiri_peer_get_addressed(uct_daqiri_iface_t *iface,
                                           const dq_port_addr_t *port,
                                           const dq_iface_addr_t *addr,
                                           uct_daqiri_peer_t **peer_p,
                                           uct_daqiri_peer_t **forged_p);
/* Takes the peer out of the table: the next uct_daqiri_peer_get() creates another. */
void uct_daqiri_peer_remove(uct_daqiri_peer_t *peer);

#endif
