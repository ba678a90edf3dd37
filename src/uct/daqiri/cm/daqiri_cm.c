/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starts and stops the async side, and makes the table of peers. Each callback of the
 * async thread ends with uct_daqiri_mail_hand_over(), so uct_daqiri_cm_stop() sees all
 * that the thread did. UCX orders the two as well, but in a way that no tool can see.
 */
#include "cm/daqiri_cm.h"

#include "base/daqiri_draw.h"
#include "base/daqiri_log.h"
#include "base/daqiri_mail.h"
#include "cm/daqiri_hs.h"
#include "cm/daqiri_ud.h"
#include "iface/daqiri_iface.h"

#include <sys/eventfd.h>
#include <sys/timerfd.h>


/* Runs on the async thread. */
static void uct_daqiri_cm_on_command(int fd, ucs_event_set_types_t events,
                                     void *arg)
{
    uct_daqiri_iface_t *iface = arg;
    uct_daqiri_peer_t *peer;
    uint32_t commands;
    eventfd_t count;

    (void)events;
    uct_daqiri_enter_async();
    (void)eventfd_read(fd, &count); /* EAGAIN: it has been read already */
    while ((peer = uct_daqiri_mail_next_command(iface, &commands)) != NULL) {
        uct_daqiri_hs_on_command(peer, commands);
    }
    uct_daqiri_hs_work(iface);
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
    uint64_t secret;
    ucs_status_t status;
    int error;

    status = uct_daqiri_draw(&iface->log_limit.draw, &secret, sizeof(secret));
    if (status != UCS_OK) {
        return status;
    }
    uct_daqiri_wait_init(&iface->cm.wait, secret);
    ucs_list_head_init(&iface->cm.timed);
    kh_init_inplace(uct_daqiri_peers, &iface->peers);
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
    uct_daqiri_wait_cleanup(&iface->cm.wait);
    if (iface->cm.timer_fd >= 0) {
        close(iface->cm.timer_fd);
    }
    kh_destroy_inplace(uct_daqiri_peers, &iface->peers);
    uct_daqiri_mail_cleanup(iface);
}
