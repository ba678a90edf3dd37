/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two threads share the table of conns and two mailboxes.
 *
 *   progress --commands--> async      eventfd wakes the async thread
 *   async    --events----> progress   a flag that each progress call reads
 *
 * A mailbox holds conns, each with a set of bits: a repeated request counts once. The
 * lock guards the table, the lists, the bits, and the copies of news. No thread holds it
 * across a verb or a callback.
 */
#include "cm/daqiri_cm.h"

#include "base/daqiri_log.h"
#include "cm/daqiri_async.h"
#include "cm/daqiri_hs.h"
#include "cm/daqiri_ud.h"
#include "conn/daqiri_conn.h"
#include "iface/daqiri_iface.h"

#include <sys/eventfd.h>
#include <sys/timerfd.h>


/* Each callback of the async thread ends with this call, so uct_daqiri_cm_stop() sees all
 * that the thread did. UCX orders the two as well, but in a way that no tool can see. */
void uct_daqiri_cm_hand_over(uct_daqiri_iface_t *iface)
{
    pthread_mutex_lock(&iface->cm.lock);
    pthread_mutex_unlock(&iface->cm.lock);
}


/* Runs on the async thread. */
static void uct_daqiri_cm_on_command(int fd, ucs_event_set_types_t events,
                                     void *arg)
{
    uct_daqiri_iface_t *iface = arg;
    uct_daqiri_conn_t *conn;
    uint32_t commands;
    eventfd_t count;

    (void)events;
    uct_daqiri_enter_async();
    (void)eventfd_read(fd, &count); /* EAGAIN: it has been read already */
    while ((conn = uct_daqiri_cm_next_command(iface, &commands)) != NULL) {
        uct_daqiri_hs_on_command(conn, commands);
    }
    uct_daqiri_cm_hand_over(iface);
    uct_daqiri_leave_async();
}


/* Runs on the async thread. */
static void uct_daqiri_cm_on_datagram(int fd, ucs_event_set_types_t events,
                                      void *arg)
{
    (void)fd;
    (void)events;
    uct_daqiri_enter_async();
    uct_daqiri_hs_on_datagram(arg);
    uct_daqiri_cm_hand_over(arg);
    uct_daqiri_leave_async();
}


/* Runs on the async thread. */
static void uct_daqiri_cm_on_timer(int fd, ucs_event_set_types_t events,
                                   void *arg)
{
    uint64_t expirations;

    (void)events;
    uct_daqiri_enter_async();
    if (read(fd, &expirations, sizeof(expirations)) > 0) {
        uct_daqiri_hs_on_tick(arg);
    }
    uct_daqiri_cm_hand_over(arg);
    uct_daqiri_leave_async();
}


static ucs_status_t uct_daqiri_cm_listen(uct_daqiri_iface_t *iface)
{
    const struct {
        int                  fd;
        ucs_async_event_cb_t cb;
    } sources[] = {
        {iface->cm.event_fd, uct_daqiri_cm_on_command},
        {iface->cm.timer_fd, uct_daqiri_cm_on_timer},
        {iface->cm.ud.channel->fd, uct_daqiri_cm_on_datagram},
    };
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < ucs_static_array_size(sources); i++) {
        /* No async context: these handlers take no lock of the worker. So the
         * handshake answers while the worker is busy. */
        status = ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                             sources[i].fd,
                                             UCS_EVENT_SET_EVREAD,
                                             sources[i].cb, iface, NULL);
        if (status != UCS_OK) {
            goto err;
        }
    }
    return UCS_OK;

err:
    while (i-- > 0) {
        ucs_async_remove_handler(sources[i].fd, 1);
    }
    return status;
}


ucs_status_t uct_daqiri_cm_init(uct_daqiri_iface_t *iface)
{
    ucs_status_t status;

    ucs_list_head_init(&iface->cm.commands);
    ucs_list_head_init(&iface->cm.events);
    ucs_list_head_init(&iface->cm.timed);
    kh_init_inplace(uct_daqiri_conns, &iface->cm.conns);
    pthread_mutex_init(&iface->cm.lock, NULL);

    iface->cm.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    iface->cm.timer_fd = timerfd_create(CLOCK_MONOTONIC,
                                        TFD_NONBLOCK | TFD_CLOEXEC);
    if ((iface->cm.event_fd < 0) || (iface->cm.timer_fd < 0)) {
        uct_daqiri_log_verb(UCS_LOG_LEVEL_ERROR, "handshake", "eventfd",
                            errno);
        status = UCS_ERR_IO_ERROR;
        goto err;
    }

    status = uct_daqiri_ud_open(iface);
    if (status != UCS_OK) {
        goto err;
    }
    /* The async thread reads this, and starts with the next call. */
    iface->config.addr.ud_qpn = iface->cm.ud.qp->qp_num;
    status = uct_daqiri_cm_listen(iface);
    if (status != UCS_OK) {
        goto err_ud;
    }
    return UCS_OK;

err_ud:
    uct_daqiri_ud_close(iface);
err:
    uct_daqiri_cm_cleanup(iface);
    return status;
}


void uct_daqiri_cm_stop(uct_daqiri_iface_t *iface)
{
    ucs_async_remove_handler(iface->cm.event_fd, 1);
    ucs_async_remove_handler(iface->cm.timer_fd, 1);
    ucs_async_remove_handler(iface->cm.ud.channel->fd, 1);
    uct_daqiri_cm_hand_over(iface);
}


void uct_daqiri_cm_cleanup(uct_daqiri_iface_t *iface)
{
    uct_daqiri_ud_close(iface);
    if (iface->cm.timer_fd >= 0) {
        close(iface->cm.timer_fd);
    }
    if (iface->cm.event_fd >= 0) {
        close(iface->cm.event_fd);
    }
    kh_destroy_inplace(uct_daqiri_conns, &iface->cm.conns);
    pthread_mutex_destroy(&iface->cm.lock);
}


static uct_daqiri_conn_t *uct_daqiri_cm_lookup(uct_daqiri_iface_t *iface,
                                               uint64_t uuid)
{
    khiter_t iter = kh_get(uct_daqiri_conns, &iface->cm.conns, uuid);

    return (iter == kh_end(&iface->cm.conns))
                   ? NULL
                   : kh_value(&iface->cm.conns, iter);
}


uct_daqiri_conn_t *uct_daqiri_cm_find(uct_daqiri_iface_t *iface, uint64_t uuid)
{
    uct_daqiri_conn_t *conn;

    pthread_mutex_lock(&iface->cm.lock);
    conn = uct_daqiri_cm_lookup(iface, uuid);
    pthread_mutex_unlock(&iface->cm.lock);
    return conn;
}


/* Creates a conn and puts it in the table, in the place of another one for this uuid, if
 * there is one. Returns NULL if there is no memory. The caller holds the lock. */
static uct_daqiri_conn_t *uct_daqiri_cm_put(uct_daqiri_iface_t *iface,
                                            const dq_port_addr_t *port,
                                            const dq_iface_addr_t *addr)
{
    uct_daqiri_conn_t *conn = uct_daqiri_conn_create(iface, port, addr);
    khiter_t iter;
    int ret;

    if (conn == NULL) {
        return NULL;
    }
    iter = kh_put(uct_daqiri_conns, &iface->cm.conns, addr->uuid, &ret);
    if (ret < 0) {
        uct_daqiri_conn_free(conn);
        return NULL;
    }
    kh_value(&iface->cm.conns, iter) = conn;
    iface->count->conns++;
    return conn;
}


ucs_status_t uct_daqiri_cm_get(uct_daqiri_iface_t *iface,
                               const dq_port_addr_t *port,
                               const dq_iface_addr_t *addr,
                               uct_daqiri_conn_t **conn_p)
{
    uct_daqiri_conn_t *conn;

    pthread_mutex_lock(&iface->cm.lock);
    conn = uct_daqiri_cm_lookup(iface, addr->uuid);
    if (conn == NULL) {
        conn = uct_daqiri_cm_put(iface, port, addr);
    }
    pthread_mutex_unlock(&iface->cm.lock);
    *conn_p = conn;
    return (conn == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
}


ucs_status_t uct_daqiri_cm_get_addressed(uct_daqiri_iface_t *iface,
                                         const dq_port_addr_t *port,
                                         const dq_iface_addr_t *addr,
                                         uct_daqiri_conn_t **conn_p,
                                         uct_daqiri_conn_t **forged_p)
{
    uct_daqiri_conn_t *forged = NULL;
    uct_daqiri_conn_t *conn;

    pthread_mutex_lock(&iface->cm.lock);
    conn = uct_daqiri_cm_lookup(iface, addr->uuid);
    if ((conn != NULL) && !conn->is_addressed &&
        !uct_daqiri_conn_is_at(conn, port, addr)) {
        forged = conn;
        conn   = NULL;
    }
    if (conn == NULL) {
        conn = uct_daqiri_cm_put(iface, port, addr);
    }
    if (conn == NULL) {
        forged = NULL; /* the table still has it */
    } else {
        conn->is_addressed = 1;
    }
    pthread_mutex_unlock(&iface->cm.lock);
    *conn_p   = conn;
    *forged_p = forged;
    return (conn == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
}


void uct_daqiri_cm_remove(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;
    khiter_t iter;

    pthread_mutex_lock(&iface->cm.lock);
    iter = kh_get(uct_daqiri_conns, &iface->cm.conns, conn->peer_iface.uuid);
    if ((iter != kh_end(&iface->cm.conns)) &&
        (kh_value(&iface->cm.conns, iter) == conn)) {
        kh_del(uct_daqiri_conns, &iface->cm.conns, iter);
    }
    pthread_mutex_unlock(&iface->cm.lock);
}


void uct_daqiri_cm_post_command(uct_daqiri_conn_t *conn, uint32_t command)
{
    uct_daqiri_iface_t *iface = conn->iface;

    pthread_mutex_lock(&iface->cm.lock);
    if (conn->commands == 0) {
        ucs_list_add_tail(&iface->cm.commands, &conn->cmd_link);
    }
    conn->commands |= command;
    pthread_mutex_unlock(&iface->cm.lock);

    (void)eventfd_write(iface->cm.event_fd, 1); /* EAGAIN: it is readable already */
}


void uct_daqiri_cm_post_event(uct_daqiri_conn_t *conn, uint32_t event,
                              const uct_daqiri_news_t *news)
{
    uct_daqiri_iface_t *iface = conn->iface;

    pthread_mutex_lock(&iface->cm.lock);
    if (conn->events == 0) {
        ucs_list_add_tail(&iface->cm.events, &conn->evt_link);
    }
    if (event & UCT_DAQIRI_EVT_QP) {
        /* these were about the QP before */
        conn->events &= ~(UCT_DAQIRI_EVT_UP | UCT_DAQIRI_EVT_LOST |
                          UCT_DAQIRI_EVT_NO_QP);
    }
    conn->events |= event;
    if (news != NULL) {
        conn->posted_news = *news;
    }
    uct_daqiri_iface_add_work(iface, UCT_DAQIRI_WORK_EVENTS);
    pthread_mutex_unlock(&iface->cm.lock);

    uct_daqiri_async_wake(iface);
}


/* Sets the bit under the lock, because uct_daqiri_cm_next_event() clears it there. */
void uct_daqiri_cm_post_due(uct_daqiri_iface_t *iface)
{
    pthread_mutex_lock(&iface->cm.lock);
    __atomic_store_n(&iface->watchdog.is_due, 1, __ATOMIC_RELAXED);
    uct_daqiri_iface_add_work(iface, UCT_DAQIRI_WORK_EVENTS);
    pthread_mutex_unlock(&iface->cm.lock);
}


uct_daqiri_conn_t *uct_daqiri_cm_next_command(uct_daqiri_iface_t *iface,
                                              uint32_t *commands_p)
{
    uct_daqiri_conn_t *conn = NULL;

    pthread_mutex_lock(&iface->cm.lock);
    if (!ucs_list_is_empty(&iface->cm.commands)) {
        conn           = ucs_list_extract_head(&iface->cm.commands,
                                               uct_daqiri_conn_t, cmd_link);
        *commands_p    = conn->commands;
        conn->commands = 0;
    }
    pthread_mutex_unlock(&iface->cm.lock);
    return conn;
}


uct_daqiri_conn_t *uct_daqiri_cm_next_event(uct_daqiri_iface_t *iface,
                                            uint32_t *events_p)
{
    uct_daqiri_conn_t *conn = NULL;

    pthread_mutex_lock(&iface->cm.lock);
    if (ucs_list_is_empty(&iface->cm.events)) {
        uct_daqiri_iface_clear_work(iface, UCT_DAQIRI_WORK_EVENTS);
    } else {
        conn         = ucs_list_extract_head(&iface->cm.events,
                                             uct_daqiri_conn_t, evt_link);
        *events_p    = conn->events;
        conn->events = 0;
        conn->news   = conn->posted_news;
    }
    pthread_mutex_unlock(&iface->cm.lock);
    return conn;
}
