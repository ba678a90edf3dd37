/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of connections, and the mailboxes between the two threads.
 *
 * Threads: any; one lock.
 */
#ifndef UCT_DAQIRI_CM_H
#define UCT_DAQIRI_CM_H

#include "dq/dq_triage.h"
#include "dq/dq_wire.h"
#include "iface/daqiri_iface.h"

/* What one thread asks of the other; bits, so that asking twice is once. */
enum {
    /* progress -> async */
    UCT_DAQIRI_CMD_OPEN  = UCS_BIT(0),
    UCT_DAQIRI_CMD_FAIL  = UCS_BIT(1), /* the QP died                        */
    UCT_DAQIRI_CMD_READY = UCS_BIT(2), /* data came: as good as an RTU, if
                                          somebody here wants it             */
    UCT_DAQIRI_CMD_RELEASE  = UCS_BIT(3), /* let go of it                     */
    UCT_DAQIRI_CMD_LOSE     = UCS_BIT(4), /* the QP died, a new one may do      */
    UCT_DAQIRI_CMD_DRAINED = UCS_BIT(5), /* and is done with: conn->resume   */
    UCT_DAQIRI_CMD_PROBE = UCS_BIT(6), /* does the peer's process run?       */
    UCT_DAQIRI_CMD_CLOSE = UCS_BIT(7), /* the lost QP has nothing to say     */
    /* async -> progress */
    UCT_DAQIRI_EVT_QP       = UCS_BIT(8),  /* it has a QP, with RECVs          */
    UCT_DAQIRI_EVT_UP       = UCS_BIT(9),
    UCT_DAQIRI_EVT_DEAD     = UCS_BIT(10),
    UCT_DAQIRI_EVT_RELEASED = UCS_BIT(11),
    UCT_DAQIRI_EVT_LOST     = UCS_BIT(12), /* the peer has lost its QP         */
    UCT_DAQIRI_EVT_ASYNC    = UCS_BIT(13), /* its own has died: conn->async    */
    UCT_DAQIRI_EVT_NO_QP    = UCS_BIT(14),  /* another QP could not be had      */
    UCT_DAQIRI_EVT_CLOSED   = UCS_BIT(15) /* the lost QP is no more            */
};

/* RECVs that were made for a connection's window: of the receive pool, the @a count
 * buffers from @a first on, of which the device has taken the first @a posted; or
 * @a reused ones that closed connections have left. */
typedef struct {
    uint32_t first, count, posted, reused;
} uct_daqiri_new_recvs_t;

/*
 * What the async side says of a connection with an event: copied when it is posted,
 * and once more, under the same lock, when progress takes it. So progress reads
 * nothing that the handshake goes on to write.
 */
typedef struct {
    struct ibv_qp          *qp;       /* EVT_QP                              */
    uct_daqiri_new_recvs_t recvs;     /* the same: of the first one          */
    uint32_t               window;    /* the same: most RECVs ever promised, */
    uint32_t               promised;  /* and at first                        */
    dq_frame_t             peer;      /* EVT_UP: its last REQ or REP, if ... */
    int                    has_peer;  /* ... it has said one                 */
    dq_cause_t             cause;     /* EVT_DEAD                            */
    int                    ah_error;  /* the same: why the peer has no address */
    int                    refused;   /* the same: errno of a frame that could
                                         not be posted, or 0                 */
} uct_daqiri_news_t;

/* What a peer is told of a QP that is lost; see dq_frame_t. */
typedef struct {
    uint32_t delivered, acked, done, promised;
} uct_daqiri_resume_t;

ucs_status_t uct_daqiri_cm_init(uct_daqiri_iface_t *iface);
/* The async thread is done with the interface when this returns. */
void uct_daqiri_cm_stop(uct_daqiri_iface_t *iface);
void uct_daqiri_cm_cleanup(uct_daqiri_iface_t *iface);

/* The conn to this peer, made if there is none. Any thread. */
ucs_status_t uct_daqiri_cm_get(uct_daqiri_iface_t *iface,
                               const dq_port_addr_t *port,
                               const dq_iface_addr_t *addr,
                               uct_daqiri_conn_t **conn_p);
/* The same for a peer whose address UCP has. A conn that only a REQ has asked for,
 * in the peer's name but from elsewhere, loses its place in the table: *forged_p,
 * for the caller to end; else that is NULL. Progress. */
ucs_status_t uct_daqiri_cm_get_addressed(uct_daqiri_iface_t *iface,
                                         const dq_port_addr_t *port,
                                         const dq_iface_addr_t *addr,
                                         uct_daqiri_conn_t **conn_p,
                                         uct_daqiri_conn_t **forged_p);
/* The conn of this peer, or NULL. Any thread. */
uct_daqiri_conn_t *uct_daqiri_cm_find(uct_daqiri_iface_t *iface,
                                      uint64_t uuid);
/* The table forgets the conn: the next uct_daqiri_cm_get() makes another. */
void uct_daqiri_cm_remove(uct_daqiri_conn_t *conn);

void uct_daqiri_cm_post_command(uct_daqiri_conn_t *conn, uint32_t command);
/* @a news, or NULL if there are none since the last. Async. */
void uct_daqiri_cm_post_event(uct_daqiri_conn_t *conn, uint32_t event,
                              const uct_daqiri_news_t *news);
/* What one thread did before this, another sees after it. */
void uct_daqiri_cm_hand_over(uct_daqiri_iface_t *iface);
/* It is time for progress to look at its conns. */
void uct_daqiri_cm_post_due(uct_daqiri_iface_t *iface);
/* The next conn in the mailbox, with what is asked of it; NULL if empty. */
uct_daqiri_conn_t *uct_daqiri_cm_next_command(uct_daqiri_iface_t *iface,
                                              uint32_t *commands_p);
uct_daqiri_conn_t *uct_daqiri_cm_next_event(uct_daqiri_iface_t *iface,
                                            uint32_t *events_p);

static inline int uct_daqiri_cm_has_events(uct_daqiri_iface_t *iface)
{
    return __atomic_load_n(&iface->cm.has_events, __ATOMIC_ACQUIRE) != 0;
}

#endif
