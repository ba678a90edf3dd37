/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands and events between the two threads; see daqiri_mail.h.
 */
#include "base/daqiri_mail.h"

#include "iface/daqiri_iface.h"

#include <sys/eventfd.h>


int uct_daqiri_mail_open(uct_daqiri_iface_t *iface)
{
    ucs_list_head_init(&iface->mail.commands);
    ucs_list_head_init(&iface->mail.events);
    pthread_mutex_init(&iface->mail.lock, NULL);
    iface->mail.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return (iface->mail.event_fd < 0) ? errno : 0;
}


void uct_daqiri_mail_cleanup(uct_daqiri_iface_t *iface)
{
    if (iface->mail.event_fd >= 0) {
        close(iface->mail.event_fd);
    }
    pthread_mutex_destroy(&iface->mail.lock);
}


void uct_daqiri_mail_init(uct_daqiri_mail_t *mail, uct_daqiri_iface_t *iface,
                          uct_daqiri_conn_t *conn)
{
    mail->iface = iface;
    mail->conn  = conn;
}


void uct_daqiri_mail_hand_over(uct_daqiri_iface_t *iface)
{
    pthread_mutex_lock(&iface->mail.lock);
    pthread_mutex_unlock(&iface->mail.lock);
}


void uct_daqiri_mail_wake(uct_daqiri_iface_t *iface)
{
    if (__atomic_load_n(&iface->event.is_armed, __ATOMIC_SEQ_CST)) {
        (void)eventfd_write(iface->event.wake_fd, 1); /* EAGAIN: it is readable already */
    }
}


void uct_daqiri_mail_post_command(uct_daqiri_mail_t *mail, uint32_t command)
{
    uct_daqiri_iface_t *iface = mail->iface;

    pthread_mutex_lock(&iface->mail.lock);
    if (mail->commands == 0) {
        ucs_list_add_tail(&iface->mail.commands, &mail->cmd_link);
    }
    mail->commands |= command;
    pthread_mutex_unlock(&iface->mail.lock);

    (void)eventfd_write(iface->mail.event_fd, 1); /* EAGAIN: it is readable already */
}


/* The caller holds the lock. */
static void uct_daqiri_mail_add_event(uct_daqiri_mail_t *mail, uint32_t event)
{
    uct_daqiri_iface_t *iface = mail->iface;

    uct_daqiri_assert_held(&iface->mail.lock);
    if (mail->events == 0) {
        ucs_list_add_tail(&iface->mail.events, &mail->evt_link);
    }
    if (event & UCT_DAQIRI_EVT_QP) {
        /* these were about the QP before */
        mail->events &= ~(UCT_DAQIRI_EVT_UP | UCT_DAQIRI_EVT_LOST |
                          UCT_DAQIRI_EVT_NO_QP);
    }
    mail->events |= event;
    uct_daqiri_iface_add_work(iface, UCT_DAQIRI_WORK_EVENTS);
}


void uct_daqiri_mail_post_event(uct_daqiri_mail_t *mail, uint32_t event,
                                const uct_daqiri_news_t *news)
{
    uct_daqiri_iface_t *iface = mail->iface;

    pthread_mutex_lock(&iface->mail.lock);
    uct_daqiri_mail_add_event(mail, event);
    if (news != NULL) {
        mail->posted = *news;
    }
    pthread_mutex_unlock(&iface->mail.lock);

    uct_daqiri_mail_wake(iface);
}


void uct_daqiri_mail_post_qp_event(uct_daqiri_mail_t *mail,
                                   const uct_daqiri_qp_event_t *qp_event)
{
    uct_daqiri_iface_t *iface = mail->iface;

    pthread_mutex_lock(&iface->mail.lock);
    uct_daqiri_mail_add_event(mail, UCT_DAQIRI_EVT_ASYNC);
    mail->posted_qp_event = *qp_event;
    pthread_mutex_unlock(&iface->mail.lock);

    uct_daqiri_mail_wake(iface);
}


/* Sets the bit under the lock, because uct_daqiri_mail_next_event() clears it there. */
void uct_daqiri_mail_post_due(uct_daqiri_iface_t *iface)
{
    pthread_mutex_lock(&iface->mail.lock);
    __atomic_store_n(&iface->watchdog.is_due, 1, __ATOMIC_RELAXED);
    uct_daqiri_iface_add_work(iface, UCT_DAQIRI_WORK_EVENTS);
    pthread_mutex_unlock(&iface->mail.lock);
}


uct_daqiri_mail_t *uct_daqiri_mail_next_command(uct_daqiri_iface_t *iface,
                                                uint32_t *commands_p)
{
    uct_daqiri_mail_t *mail = NULL;

    pthread_mutex_lock(&iface->mail.lock);
    if (!ucs_list_is_empty(&iface->mail.commands)) {
        mail           = ucs_list_extract_head(&iface->mail.commands,
                                               uct_daqiri_mail_t, cmd_link);
        *commands_p    = mail->commands;
        mail->commands = 0;
    }
    pthread_mutex_unlock(&iface->mail.lock);
    return mail;
}


uct_daqiri_mail_t *uct_daqiri_mail_next_event(uct_daqiri_iface_t *iface,
                                              uint32_t *events_p)
{
    uct_daqiri_mail_t *mail = NULL;

    pthread_mutex_lock(&iface->mail.lock);
    if (ucs_list_is_empty(&iface->mail.events)) {
        uct_daqiri_iface_clear_work(iface, UCT_DAQIRI_WORK_EVENTS);
    } else {
        mail           = ucs_list_extract_head(&iface->mail.events,
                                               uct_daqiri_mail_t, evt_link);
        *events_p      = mail->events;
        mail->events   = 0;
        mail->news     = mail->posted;
        mail->qp_event = mail->posted_qp_event;
    }
    pthread_mutex_unlock(&iface->mail.lock);
    return mail;
}
