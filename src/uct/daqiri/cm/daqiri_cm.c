/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starts and stops the async side, and keeps the table of conns. Each callback of the
 * async thread ends with uct_daqiri_mail_hand_over(), so uct_daqiri_cm_stop() sees all
 * that the thread did. UCX orders the two as well, but in a way that no tool can see.
 */
#include "cm/daqiri_cm.h"

#include "base/daqiri_log.h"
#include "base/daqiri_mail.h"
#include "cm/daqiri_async.h"
#include "cm/daqiri_hs.h"
#include "cm/daqiri_ud.h"
#include "conn/daqiri_conn.h"
#include "iface/daqiri_iface.h"

#include <sys/eventfd.h>
#include <sys/timerfd.h>


/* Runs on the async thread. */
static void uct_daqiri_cm_on_command(int fd, ucs_event_set_types_t events,
                                     void *arg)
{
    uct_daqiri_iface_t *iface = arg;
    uct_daqiri_mail_t *mail;
    uint32_t commands;
    eventfd_t count;

    (void)events;
    uct_daqiri_enter_async();
    (void)eventfd_read(fd, &count); /* EAGAIN: it has been read already */
    while ((mail = uct_daqiri_mail_next_command(iface, &commands)) != NULL) {
        uct_daqiri_hs_on_command(mail->conn, commands);
    }
    uct_daqiri_mail_hand_over(iface);
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
    uct_daqiri_mail_hand_over(arg);
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
    uct_daqiri_mail_hand_over(arg);
    uct_daqiri_leave_async();
}


static ucs_status_t uct_daqiri_cm_listen(uct_daqiri_iface_t *iface)
{
    const struct {
        int                  fd;
        ucs_async_event_cb_t cb;
    } sources[] = {
        {iface->mail.event_fd, uct_daqiri_cm_on_command},
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
    int error;

    ucs_list_head_init(&iface->cm.timed);
    kh_init_inplace(uct_daqiri_conns, &iface->cm.conns);
    iface->cm.timer_fd = -1;

    error = uct_daqiri_mail_open(iface);
    if (error == 0) {
        iface->cm.timer_fd = timerfd_create(CLOCK_MONOTONIC,
                                            TFD_NONBLOCK | TFD_CLOEXEC);
        error              = (iface->cm.timer_fd < 0) ? errno : 0;
    }
    if (error != 0) {
        uct_daqiri_log_verb(UCS_LOG_LEVEL_ERROR, "handshake", "eventfd",
                            error);
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
    ucs_async_remove_handler(iface->mail.event_fd, 1);
    ucs_async_remove_handler(iface->cm.timer_fd, 1);
    ucs_async_remove_handler(iface->cm.ud.channel->fd, 1);
    uct_daqiri_mail_hand_over(iface);
}


void uct_daqiri_cm_cleanup(uct_daqiri_iface_t *iface)
{
    uct_daqiri_ud_close(iface);
    if (iface->cm.timer_fd >= 0) {
        close(iface->cm.timer_fd);
    }
    kh_destroy_inplace(uct_daqiri_conns, &iface->cm.conns);
    uct_daqiri_mail_cleanup(iface);
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

    pthread_mutex_lock(&iface->mail.lock);
    conn = uct_daqiri_cm_lookup(iface, uuid);
    pthread_mutex_unlock(&iface->mail.lock);
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

    pthread_mutex_lock(&iface->mail.lock);
    conn = uct_daqiri_cm_lookup(iface, addr->uuid);
    if (conn == NULL) {
        conn = uct_daqiri_cm_put(iface, port, addr);
    }
    pthread_mutex_unlock(&iface->mail.lock);
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

    pthread_mutex_lock(&iface->mail.lock);
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
    pthread_mutex_unlock(&iface->mail.lock);
    *conn_p   = conn;
    *forged_p = forged;
    return (conn == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
}


void uct_daqiri_cm_remove(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;
    khiter_t iter;

    pthread_mutex_lock(&iface->mail.lock);
    iter = kh_get(uct_daqiri_conns, &iface->cm.conns, conn->peer_iface.uuid);
    if ((iter != kh_end(&iface->cm.conns)) &&
        (kh_value(&iface->cm.conns, iter) == conn)) {
        kh_del(uct_daqiri_conns, &iface->cm.conns, iter);
    }
    pthread_mutex_unlock(&iface->mail.lock);
}
