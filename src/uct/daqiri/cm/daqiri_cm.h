/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of connections, and the mailboxes between the two threads.
 *
 * Threads: any; one lock guards both.
 */
#ifndef UCT_DAQIRI_CM_H
#define UCT_DAQIRI_CM_H

#include "dq/dq_triage.h"
#include "dq/dq_wire.h"
#include "iface/daqiri_iface.h"

/* What one thread asks of the other, or tells it. Bits: a repeated one counts once. */
enum {
    /* progress -> async */
    UCT_DAQIRI_CMD_OPEN  = UCS_BIT(0), /* an endpoint here uses the conn     */
    UCT_DAQIRI_CMD_FAIL  = UCS_BIT(1), /* the conn failed: conn->death       */
    UCT_DAQIRI_CMD_READY = UCS_BIT(2), /* data came: counts as an RTU, unless
                                          the conn is unproven               */
    UCT_DAQIRI_CMD_RELEASE  = UCS_BIT(3), /* release the async side's half   */
    UCT_DAQIRI_CMD_LOSE     = UCS_BIT(4), /* the QP failed, a new one may work */
    UCT_DAQIRI_CMD_DRAINED = UCS_BIT(5), /* the lost QP is drained: conn->resume */
    UCT_DAQIRI_CMD_PROBE = UCS_BIT(6), /* ask if the peer's process runs     */
    UCT_DAQIRI_CMD_CLOSE = UCS_BIT(7), /* destroy the lost QP                */
    /* async -> progress */
    UCT_DAQIRI_EVT_QP       = UCS_BIT(8),  /* the conn has a QP, with RECVs  */
    UCT_DAQIRI_EVT_UP       = UCS_BIT(9),
    UCT_DAQIRI_EVT_DEAD     = UCS_BIT(10),
    UCT_DAQIRI_EVT_RELEASED = UCS_BIT(11),
    UCT_DAQIRI_EVT_LOST     = UCS_BIT(12), /* the peer has lost its QP         */
    UCT_DAQIRI_EVT_ASYNC    = UCS_BIT(13), /* our QP failed: conn->async     */
    UCT_DAQIRI_EVT_NO_QP    = UCS_BIT(14),  /* another QP could not be made  */
    UCT_DAQIRI_EVT_CLOSED   = UCS_BIT(15) /* the lost QP is destroyed        */
};

/* The RECVs behind a connection's window. They are @a count new buffers of the receive
 * pool, from index @a first on, of which the device has taken the first @a posted. Or
 * they are @a reused buffers, which closed connections have left. */
typedef struct {
    uint32_t first, count, posted, reused;
} uct_daqiri_new_recvs_t;

/*
 * What the async side tells progress of a connection with an event. It is copied when the
 * event is posted, and again when progress takes it, both times under the lock. So
 * progress reads no field that the handshake writes.
 */
typedef struct {
    struct ibv_qp          *qp;       /* EVT_QP                              */
    uct_daqiri_new_recvs_t recvs;     /* EVT_QP: of the first QP             */
    uint32_t               window;    /* EVT_QP: most RECVs ever promised    */
    uint32_t               promised;  /* EVT_QP: RECVs promised at first     */
    dq_frame_t             peer;      /* EVT_UP: the peer's last REQ or REP  */
    int                    has_peer;  /* there has been one                  */
    dq_cause_t             cause;     /* EVT_DEAD                            */
    int                    ah_error;  /* EVT_DEAD: errno, if there is no ah  */
    int                    refused;   /* EVT_DEAD: errno of a frame that the
                                         device refused, or 0                */
} uct_daqiri_news_t;

/* What the next REQ or REP tells the peer of a lost QP; see dq_frame_t. */
typedef struct {
    uint32_t delivered, acked, done, promised;
} uct_daqiri_resume_t;

/* Opens the mailboxes and the carrier, and starts the async side. After a failure nothing
 * is left open. */
ucs_status_t uct_daqiri_cm_init(uct_daqiri_iface_t *iface);
/* Stops the async side: its thread does not touch the interface after this returns. */
void uct_daqiri_cm_stop(uct_daqiri_iface_t *iface);
/* Frees what uct_daqiri_cm_init() made, once it is stopped. */
void uct_daqiri_cm_cleanup(uct_daqiri_iface_t *iface);

/* Finds the conn to this peer, or creates it. UCS_ERR_NO_MEMORY if there is no memory.
 * Any thread. */
ucs_status_t uct_daqiri_cm_get(uct_daqiri_iface_t *iface,
                               const dq_port_addr_t *port,
                               const dq_iface_addr_t *addr,
                               uct_daqiri_conn_t **conn_p);
/* The same for a peer whose address comes from UCP. A REQ from another address may have
 * created a conn in the peer's name. That conn loses its place in the table, and the
 * caller must end it: *forged_p. Otherwise *forged_p is NULL. Progress. */
ucs_status_t uct_daqiri_cm_get_addressed(uct_daqiri_iface_t *iface,
                                         const dq_port_addr_t *port,
                                         const dq_iface_addr_t *addr,
                                         uct_daqiri_conn_t **conn_p,
                                         uct_daqiri_conn_t **forged_p);
/* Finds the conn of this peer. NULL if there is none. Any thread. */
uct_daqiri_conn_t *uct_daqiri_cm_find(uct_daqiri_iface_t *iface,
                                      uint64_t uuid);
/* Takes the conn out of the table: the next uct_daqiri_cm_get() creates another. */
void uct_daqiri_cm_remove(uct_daqiri_conn_t *conn);

/* Puts a command into the mailbox, and wakes the async thread. Progress. */
void uct_daqiri_cm_post_command(uct_daqiri_conn_t *conn, uint32_t command);
/* Puts an event into the mailbox, and wakes a program that sleeps. @a news is copied. It
 * may be NULL if nothing is new since the last event. Async. */
void uct_daqiri_cm_post_event(uct_daqiri_conn_t *conn, uint32_t event,
                              const uct_daqiri_news_t *news);
/* A thread sees after this call what another thread did before its own call. */
void uct_daqiri_cm_hand_over(uct_daqiri_iface_t *iface);
/* Tells progress that the watchdog is due. */
void uct_daqiri_cm_post_due(uct_daqiri_iface_t *iface);
/* Takes the next conn out of a mailbox, with its commands or events. NULL if the mailbox
 * is empty. */
uct_daqiri_conn_t *uct_daqiri_cm_next_command(uct_daqiri_iface_t *iface,
                                              uint32_t *commands_p);
uct_daqiri_conn_t *uct_daqiri_cm_next_event(uct_daqiri_iface_t *iface,
                                            uint32_t *events_p);

static inline int uct_daqiri_cm_has_events(uct_daqiri_iface_t *iface)
{
    return (uct_daqiri_iface_has_work(iface) & UCT_DAQIRI_WORK_EVENTS) != 0;
}

#endif
