/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events of the device. The table says what each of them does, and to which
 * conns. Every event is acknowledged at once, before it is handled. An object that is
 * being destroyed then does not wait for this thread.
 *
 * Completions tell more about a failed QP than events do, and are handled first. But a QP
 * that only receives has no completions of errors, and a CQ that has overflowed has no
 * more completions. Devices differ in the events that they raise; rxe raises none about
 * its QPs. So every failure is also found without events, only later.
 *
 * A failure of the whole interface counts more than the failures of conns that follow
 * from it. Progress asks for it before it declares a conn failed. The async thread reads
 * pending events before it tells a peer how much was received.
 *
 * Threads: functions under "Async" run on the async side. The thread that opens and
 * closes interfaces subscribes and unsubscribes.
 */
#include "cm/daqiri_async.h"

#include "base/daqiri_hooks.h"
#include "base/daqiri_mail.h"
#include "base/daqiri_md.h"
#include "base/daqiri_peer.h"
#include "cm/daqiri_hs.h"
#include "iface/daqiri_iface.h"

/* Which conns an event concerns. */
typedef enum {
    UCT_DAQIRI_OF_QP,    /* the conn of that QP                              */
    UCT_DAQIRI_OF_CQ,    /* all conns of the interface that has it           */
    UCT_DAQIRI_OF_SRQ,
    UCT_DAQIRI_OF_PORT,  /* those of all interfaces on that port             */
    UCT_DAQIRI_OF_DEVICE /* those of all interfaces                          */
} uct_daqiri_scope_t;

/* What an event does. */
typedef enum {
    UCT_DAQIRI_COUNT,    /* nothing: it says what is known, or will be       */
    UCT_DAQIRI_LOSE,     /* the QP is lost: another one                      */
    UCT_DAQIRI_READY,    /* as good as the last frame of a handshake         */
    UCT_DAQIRI_BREAK,    /* no QP works any more: the conns fail             */
    UCT_DAQIRI_RETRY_NOW, /* handshakes ask again at once                    */
    UCT_DAQIRI_BACK      /* and what the outage has cost is missed sooner    */
} uct_daqiri_act_t;

typedef struct {
    const char         *name;
    uct_daqiri_scope_t scope;
    uct_daqiri_act_t   act;
    dq_cause_t         cause;
} uct_daqiri_event_row_t;

/* docs/events.md says why. */
static const uct_daqiri_event_row_t uct_daqiri_events[] = {
    [IBV_EVENT_CQ_ERR] = {"CQ_ERR", UCT_DAQIRI_OF_CQ, UCT_DAQIRI_BREAK,
                          DQ_CAUSE_CQ_BROKEN},
    [IBV_EVENT_QP_FATAL] = {"QP_FATAL", UCT_DAQIRI_OF_QP, UCT_DAQIRI_LOSE,
                            DQ_CAUSE_QP_EVENT},
    [IBV_EVENT_QP_REQ_ERR] = {"QP_REQ_ERR", UCT_DAQIRI_OF_QP, UCT_DAQIRI_COUNT,
                              DQ_CAUSE_NONE},
    [IBV_EVENT_QP_ACCESS_ERR] = {"QP_ACCESS_ERR", UCT_DAQIRI_OF_QP,
                                 UCT_DAQIRI_COUNT, DQ_CAUSE_NONE},
    [IBV_EVENT_COMM_EST] = {"COMM_EST", UCT_DAQIRI_OF_QP, UCT_DAQIRI_READY,
                            DQ_CAUSE_NONE},
    [IBV_EVENT_SQ_DRAINED] = {"SQ_DRAINED", UCT_DAQIRI_OF_QP, UCT_DAQIRI_COUNT,
                              DQ_CAUSE_NONE},
    [IBV_EVENT_PATH_MIG] = {"PATH_MIG", UCT_DAQIRI_OF_QP, UCT_DAQIRI_COUNT,
                            DQ_CAUSE_NONE},
    [IBV_EVENT_PATH_MIG_ERR] = {"PATH_MIG_ERR", UCT_DAQIRI_OF_QP,
                                UCT_DAQIRI_COUNT, DQ_CAUSE_NONE},
    [IBV_EVENT_DEVICE_FATAL] = {"DEVICE_FATAL", UCT_DAQIRI_OF_DEVICE,
                                UCT_DAQIRI_BREAK, DQ_CAUSE_DEVICE_FATAL},
    [IBV_EVENT_PORT_ACTIVE] = {"PORT_ACTIVE", UCT_DAQIRI_OF_PORT,
                               UCT_DAQIRI_BACK, DQ_CAUSE_NONE},
    [IBV_EVENT_PORT_ERR] = {"PORT_ERR", UCT_DAQIRI_OF_PORT, UCT_DAQIRI_COUNT,
                            DQ_CAUSE_NONE},
    [IBV_EVENT_LID_CHANGE] = {"LID_CHANGE", UCT_DAQIRI_OF_PORT,
                              UCT_DAQIRI_RETRY_NOW, DQ_CAUSE_NONE},
    [IBV_EVENT_PKEY_CHANGE] = {"PKEY_CHANGE", UCT_DAQIRI_OF_PORT,
                               UCT_DAQIRI_RETRY_NOW, DQ_CAUSE_NONE},
    [IBV_EVENT_SM_CHANGE] = {"SM_CHANGE", UCT_DAQIRI_OF_PORT, UCT_DAQIRI_COUNT,
                             DQ_CAUSE_NONE},
    [IBV_EVENT_SRQ_ERR] = {"SRQ_ERR", UCT_DAQIRI_OF_SRQ, UCT_DAQIRI_BREAK,
                           DQ_CAUSE_SRQ_BROKEN},
    [IBV_EVENT_SRQ_LIMIT_REACHED] = {"SRQ_LIMIT_REACHED", UCT_DAQIRI_OF_SRQ,
                                     UCT_DAQIRI_COUNT, DQ_CAUSE_NONE},
    [IBV_EVENT_QP_LAST_WQE_REACHED] = {"QP_LAST_WQE_REACHED", UCT_DAQIRI_OF_QP,
                                       UCT_DAQIRI_COUNT, DQ_CAUSE_NONE},
    [IBV_EVENT_CLIENT_REREGISTER] = {"CLIENT_REREGISTER", UCT_DAQIRI_OF_PORT,
                                     UCT_DAQIRI_COUNT, DQ_CAUSE_NONE},
    [IBV_EVENT_GID_CHANGE] = {"GID_CHANGE", UCT_DAQIRI_OF_PORT,
                              UCT_DAQIRI_RETRY_NOW, DQ_CAUSE_NONE},
};


/* ---- Async ---- */

/* A conn that is found here stays valid: this thread releases it. */
static int uct_daqiri_async_qp(uct_daqiri_iface_t *iface,
                               const uct_daqiri_event_row_t *row, uint32_t qpn)
{
    const uct_daqiri_qp_event_t qp_event = {qpn, row->cause, row->name};
    uct_daqiri_conn_t *conn              = uct_daqiri_iface_conn(iface, qpn);
    uct_daqiri_peer_t *peer;

    uct_daqiri_assert_async(iface);
    if (conn == NULL) {
        return 0;
    }
    peer = iface->hooks->conn_peer(conn);
    iface->count->events++;
    if (row->act == UCT_DAQIRI_LOSE) {
        uct_daqiri_mail_post_qp_event(peer, &qp_event);
    } else if (row->act == UCT_DAQIRI_READY) {
        uct_daqiri_hs_on_command(peer, UCT_DAQIRI_CMD_READY);
    }
    return 1;
}


static void uct_daqiri_async_iface(uct_daqiri_iface_t *iface,
                                   const uct_daqiri_event_row_t *row)
{
    iface->count->events++;
    if (row->act == UCT_DAQIRI_BREAK) {
        __atomic_store_n(&iface->broken, row->cause, __ATOMIC_RELEASE);
        uct_daqiri_mail_post_due(iface);
        uct_daqiri_mail_wake(iface);
        return;
    }
    if (row->act == UCT_DAQIRI_BACK) {
        __atomic_store_n(&iface->watchdog.is_back, 1, __ATOMIC_RELAXED);
    }
    if (row->act != UCT_DAQIRI_COUNT) {
        uct_daqiri_hs_retry_now(iface);
    }
}


static int uct_daqiri_async_is_of(const uct_daqiri_iface_t *iface,
                                  const uct_daqiri_event_row_t *row,
                                  const struct ibv_async_event *event)
{
    switch (row->scope) {
    case UCT_DAQIRI_OF_CQ:
        return (event->element.cq == iface->tx.cq) ||
               (event->element.cq == iface->rx.cq);
    case UCT_DAQIRI_OF_SRQ:
        return event->element.srq == iface->rx.srq;
    case UCT_DAQIRI_OF_PORT:
        return event->element.port_num == iface->config.port_num;
    default:
        return 1;
    }
}


/* Reads the event's object before the acknowledgement: afterwards it may be destroyed at
 * any moment. */
static void uct_daqiri_async_take(uct_daqiri_md_t *md,
                                  struct ibv_async_event *event)
{
    const uct_daqiri_event_row_t *row = NULL;
    uct_daqiri_iface_t *iface;
    uint32_t qpn = 0;

    uct_daqiri_assert_held(&md->ifaces_lock);
    if (((unsigned)event->event_type <
         ucs_static_array_size(uct_daqiri_events)) &&
        (uct_daqiri_events[event->event_type].name != NULL)) {
        row = &uct_daqiri_events[event->event_type];
    }
    if ((row != NULL) && (row->scope == UCT_DAQIRI_OF_QP)) {
        qpn = event->element.qp->qp_num;
    }
    ibv_ack_async_event(event);
    if (row == NULL) {
        return; /* a kind that concerns no object of ours, such as work queues */
    }

    ucs_debug("%s: event %s, qp 0x%x",
              ibv_get_device_name(md->context->device), row->name, qpn);
    ucs_list_for_each(iface, &md->ifaces, md_link) {
        if (row->scope == UCT_DAQIRI_OF_QP) {
            if (uct_daqiri_async_qp(iface, row, qpn)) {
                break;
            }
        } else if (uct_daqiri_async_is_of(iface, row, event)) {
            uct_daqiri_async_iface(iface, row);
        } else if ((row->scope == UCT_DAQIRI_OF_CQ) &&
                   (event->element.cq == iface->cm.ud.cq)) {
            iface->count->events++;
            uct_daqiri_hs_fail_carrier(iface);
        }
    }
}


static void uct_daqiri_async_read(uct_daqiri_md_t *md)
{
    struct ibv_async_event event;

    pthread_mutex_lock(&md->ifaces_lock);
    while (ibv_get_async_event(md->context, &event) == 0) {
        uct_daqiri_async_take(md, &event);
    }
    pthread_mutex_unlock(&md->ifaces_lock);
}


static void uct_daqiri_async_on_event(int fd, ucs_event_set_types_t events,
                                      void *arg)
{
    (void)fd;
    (void)events;
    uct_daqiri_enter_async();
    uct_daqiri_async_read(arg);
    uct_daqiri_leave_async();
}


int uct_daqiri_async_is_sound(uct_daqiri_iface_t *iface)
{
    uct_daqiri_assert_async(iface);
    uct_daqiri_async_read(uct_daqiri_iface_md(iface));
    return __atomic_load_n(&iface->broken, __ATOMIC_RELAXED) == DQ_CAUSE_NONE;
}


/* ---- Listening, as long as there is an interface ---- */

ucs_status_t uct_daqiri_async_subscribe(uct_daqiri_iface_t *iface)
{
    uct_daqiri_md_t *md = uct_daqiri_iface_md(iface);
    int fd              = md->context->async_fd;
    ucs_status_t status = UCS_OK;
    int is_first;

    pthread_mutex_lock(&md->ifaces_lock);
    is_first = ucs_list_is_empty(&md->ifaces);
    ucs_list_add_tail(&md->ifaces, &iface->md_link);
    pthread_mutex_unlock(&md->ifaces_lock);
    uct_daqiri_set_open(iface, 1);
    if (!is_first) {
        return UCS_OK;
    }

    status = ucs_sys_fcntl_modfl(fd, O_NONBLOCK, 0);
    if (status == UCS_OK) {
        status = ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                             fd, UCS_EVENT_SET_EVREAD,
                                             uct_daqiri_async_on_event, md,
                                             NULL);
    }
    if (status != UCS_OK) {
        uct_daqiri_set_open(iface, 0);
        pthread_mutex_lock(&md->ifaces_lock);
        ucs_list_del(&iface->md_link);
        pthread_mutex_unlock(&md->ifaces_lock);
    }
    return status;
}


void uct_daqiri_async_unsubscribe(uct_daqiri_iface_t *iface)
{
    uct_daqiri_md_t *md = uct_daqiri_iface_md(iface);
    int is_last;

    uct_daqiri_set_open(iface, 0);
    pthread_mutex_lock(&md->ifaces_lock);
    ucs_list_del(&iface->md_link);
    is_last = ucs_list_is_empty(&md->ifaces);
    pthread_mutex_unlock(&md->ifaces_lock);
    if (is_last) {
        ucs_async_remove_handler(md->context->async_fd, 1);
        /* its last run has ended before this lock is taken */
        pthread_mutex_lock(&md->ifaces_lock);
        pthread_mutex_unlock(&md->ifaces_lock);
    }
}
