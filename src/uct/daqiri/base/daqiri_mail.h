/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the two threads of an interface tell each other about a conn.
 *
 *   progress --commands--> async      eventfd wakes the async thread
 *   async    --events----> progress   a flag that each progress call reads
 *
 * Each conn has a mailbox in both directions: a set of bits, so a repeated request
 * counts once. The interface has a list of conns for each direction. iface->mail.lock
 * guards the lists, the bits, and the copies of news. No thread holds it across a verb or
 * a callback.
 *
 * Threads: any, unless a function or a field names one.
 */
#ifndef UCT_DAQIRI_MAIL_H
#define UCT_DAQIRI_MAIL_H

#include "daqiri.h"
#include "dq/dq_triage.h"
#include "dq/dq_wire.h"

/* What one thread asks of the other, or tells it. Bits: a repeated one counts once. */
enum {
    /* progress -> async */
    UCT_DAQIRI_CMD_OPEN  = UCS_BIT(0), /* an endpoint here uses the conn     */
    UCT_DAQIRI_CMD_FAIL  = UCS_BIT(1), /* the conn failed: peer->death       */
    UCT_DAQIRI_CMD_READY = UCS_BIT(2), /* data came: counts as an RTU, unless
                                          the conn is unproven               */
    UCT_DAQIRI_CMD_RELEASE  = UCS_BIT(3), /* release the async side's half   */
    UCT_DAQIRI_CMD_LOSE     = UCS_BIT(4), /* the QP failed, a new one may work */
    UCT_DAQIRI_CMD_DRAINED = UCS_BIT(5), /* the lost QP is drained: peer->resume */
    UCT_DAQIRI_CMD_PROBE = UCS_BIT(6), /* ask if the peer's process runs     */
    UCT_DAQIRI_CMD_CLOSE = UCS_BIT(7), /* destroy the lost QP                */
    /* async -> progress */
    UCT_DAQIRI_EVT_QP       = UCS_BIT(8),  /* the conn has a QP, with RECVs  */
    UCT_DAQIRI_EVT_UP       = UCS_BIT(9),
    UCT_DAQIRI_EVT_DEAD     = UCS_BIT(10),
    UCT_DAQIRI_EVT_RELEASED = UCS_BIT(11),
    UCT_DAQIRI_EVT_LOST     = UCS_BIT(12), /* the peer has lost its QP         */
    UCT_DAQIRI_EVT_ASYNC    = UCS_BIT(13), /* our QP failed: qp_event        */
    UCT_DAQIRI_EVT_NO_QP    = UCS_BIT(14),  /* a QP could not be made        */
    UCT_DAQIRI_EVT_CLOSED   = UCS_BIT(15), /* the lost QP is destroyed        */

    /* progress -> async, again */
    UCT_DAQIRI_CMD_REST = UCS_BIT(16), /* as CMD_DRAINED, and nobody here wants
                                          another QP */

    UCT_DAQIRI_EVT_ALL = UCS_MASK(16) & ~UCS_MASK(8),
    UCT_DAQIRI_CMD_ALL = UCS_MASK(8) | UCT_DAQIRI_CMD_REST
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
    dq_cause_t             cause;     /* EVT_DEAD                            */
    int                    ah_error;  /* EVT_DEAD: errno, if there is no ah  */
    int                    refused;   /* EVT_DEAD: errno of a frame that the
                                         device refused, or 0                */
} uct_daqiri_news_t;

/* An event of the device about a QP that has failed by it. */
typedef struct {
    uint32_t   qpn;
    dq_cause_t cause;
    const char *name;      /* of the event                                   */
} uct_daqiri_qp_event_t;

/* What the next REQ or REP tells the peer of a lost QP; see dq_frame_t. */
typedef struct {
    uint32_t delivered, acked, done, promised;
} uct_daqiri_resume_t;

/* The mail of one conn. */
typedef struct {
    uct_daqiri_news_t  news;          /* of the last event taken; progress   */
    uct_daqiri_qp_event_t qp_event;   /* the last one; progress              */
    /* iface->mail.lock */
    ucs_list_link_t    cmd_link, evt_link;
    uint32_t           commands, events;
    uct_daqiri_news_t  posted;        /* news of the last event posted       */
    uct_daqiri_qp_event_t posted_qp_event;
} uct_daqiri_mail_t;

/* Makes the lists of an interface, empty. Returns the errno of a failure, or 0.
 * uct_daqiri_mail_cleanup() frees what was made, after a failure, too. */
int uct_daqiri_mail_open(uct_daqiri_iface_t *iface);
void uct_daqiri_mail_cleanup(uct_daqiri_iface_t *iface);
/* Posts a command, and wakes the async thread. Progress. */
void uct_daqiri_mail_post_command(uct_daqiri_peer_t *peer, uint32_t command);
/* Posts an event, and wakes a program that sleeps. @a news is copied. It may be NULL if
 * nothing is new since the last event. Async. */
void uct_daqiri_mail_post_event(uct_daqiri_peer_t *peer, uint32_t event,
                                const uct_daqiri_news_t *news);
/* Posts UCT_DAQIRI_EVT_ASYNC. Async. */
void uct_daqiri_mail_post_qp_event(uct_daqiri_peer_t *peer,
                                   const uct_daqiri_qp_event_t *qp_event);
/* Takes the next conn's commands or events, and what goes with them. Returns the peer of
 * the conn, or NULL if there are none. */
uct_daqiri_peer_t *uct_daqiri_mail_next_command(uct_daqiri_iface_t *iface,
                                                uint32_t *commands_p);
uct_daqiri_peer_t *uct_daqiri_mail_next_event(uct_daqiri_iface_t *iface,
                                              uint32_t *events_p);
/* Tells progress that the watchdog is due. */
void uct_daqiri_mail_post_due(uct_daqiri_iface_t *iface);
/* Tells progress that the device had no queue pair for an unknown peer. Async. */
void uct_daqiri_mail_post_refused(uct_daqiri_iface_t *iface);
/* Has that been told since the last call? Progress. */
int uct_daqiri_mail_take_refused(uct_daqiri_iface_t *iface);
/* Wakes a program that sleeps until there is something to progress. Any thread. */
void uct_daqiri_mail_wake(uct_daqiri_iface_t *iface);
/* A thread sees after this call what another thread did before its own call. */
void uct_daqiri_mail_hand_over(uct_daqiri_iface_t *iface);

#endif
