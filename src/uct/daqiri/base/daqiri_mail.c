/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands and events between the two threads; see daqiri_mail.h.
 */
#include "base/daqiri_mail.h"

#include "base/daqiri_peer.h"
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


void uct_daqiri_mail_post_command(uct_daqiri_peer_t *peer, uint32_t command)
{
    uct_daqiri_iface_t *iface = peer->iface;

    uct_daqiri_assert_progress(iface);
    uct_daqiri_assert((command != 0) && !(command & ~UCT_DAQIRI_CMD_ALL));
    pthread_mutex_lock(&iface->mail.lock);
    uct_daqiri_mail_check(peer);
    if (peer->mail.commands == 0) {
        ucs_list_add_tail(&iface->mail.commands, &peer->mail.cmd_link);
    }
    peer->mail.commands |= command;
    pthread_mutex_unlock(&iface->mail.lock);

    (void)eventfd_write(iface->mail.event_fd, 1); /* EAGAIN: it is readable already */
}


/* The caller holds the lock. */
static void uct_daqiri_mail_add_event(uct_daqiri_peer_t *peer, uint32_t event)
{
    uct_daqiri_iface_t *iface = peer->iface;

    uct_daqiri_assert_async(iface);
    uct_daqiri_assert((event != 0) && !(event & ~UCT_DAQIRI_EVT_ALL));
    uct_daqiri_mail_check(peer);
    if (peer->mail.events == 0) {
        ucs_list_add_tail(&iface->mail.events, &peer->mail.evt_link);
    }
    if (event & UCT_DAQIRI_EVT_QP) {
        /* these were about the QP before */
        peer->mail.events &= ~(UCT_DAQIRI_EVT_UP | UCT_DAQIRI_EVT_LOST |
                          UCT_DAQIRI_EVT_NO_QP);
    }
    peer->mail.events |= event;
    uct_daqiri_iface_add_work(iface, UCT_DAQIRI_WORK_EVENTS);
}


void uct_daqiri_mail_post_event(uct_daqiri_peer_t *peer, uint32_t event,
                                const uct_daqiri_news_t *news)
{
    uct_daqiri_iface_t *iface = peer->iface;

    pthread_mutex_lock(&iface->mail.lock);
    uct_daqiri_mail_add_event(peer, event);
    if (news != NULL) {
        peer->mail.posted = *news;
    }
    pthread_mutex_unlock(&iface->mail.lock);

    uct_daqiri_mail_wake(iface);
}


void uct_daqiri_mail_post_qp_event(uct_daqiri_peer_t *peer,
                                   const uct_daqiri_qp_event_t *qp_event)
{
    uct_daqiri_iface_t *iface = peer->iface;

    pthread_mutex_lock(&iface->mail.lock);
    uct_daqiri_mail_add_event(peer, UCT_DAQIRI_EVT_ASYNC);
    peer->mail.posted_qp_event = *qp_event;
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


void uct_daqiri_mail_post_refused(uct_daqiri_iface_t *iface)
{
    uct_daqiri_assert_async(iface);
    pthread_mutex_lock(&iface->mail.lock);
    __atomic_store_n(&iface->mail.is_refused, 1, __ATOMIC_RELAXED);
    uct_daqiri_iface_add_work(iface, UCT_DAQIRI_WORK_EVENTS);
    pthread_mutex_unlock(&iface->mail.lock);

    uct_daqiri_mail_wake(iface);
}


int uct_daqiri_mail_take_refused(uct_daqiri_iface_t *iface)
{
    return __atomic_load_n(&iface->mail.is_refused, __ATOMIC_RELAXED) &&
           __atomic_exchange_n(&iface->mail.is_refused, 0, __ATOMIC_RELAXED);
}


uct_daqiri_peer_t *uct_daqiri_mail_next_command(uct_daqiri_iface_t *iface,
                                                uint32_t *commands_p)
{
    uct_daqiri_peer_t *peer = NULL;

    pthread_mutex_lock(&iface->mail.lock);
    if (!ucs_list_is_empty(&iface->mail.commands)) {
        peer = ucs_list_extract_head(&iface->mail.commands, uct_daqiri_peer_t,
                                     mail.cmd_link);
        uct_daqiri_assert(peer->mail.commands != 0);
        *commands_p         = peer->mail.commands;
        peer->mail.commands = 0;
    }
    pthread_mutex_unlock(&iface->mail.lock);
    return peer;
}


uct_daqiri_peer_t *uct_daqiri_mail_next_event(uct_daqiri_iface_t *iface,
                                              uint32_t *events_p)
{
    uct_daqiri_peer_t *peer = NULL;

    uct_daqiri_assert_progress(iface);
    pthread_mutex_lock(&iface->mail.lock);
    if (ucs_list_is_empty(&iface->mail.events)) {
        uct_daqiri_iface_clear_work(iface, UCT_DAQIRI_WORK_EVENTS);
    } else {
        peer = ucs_list_extract_head(&iface->mail.events, uct_daqiri_peer_t,
                                     mail.evt_link);
        uct_daqiri_assert(peer->mail.events != 0);
        *events_p           = peer->mail.events;
        peer->mail.events   = 0;
        peer->mail.news     = peer->mail.posted;
        peer->mail.qp_event = peer->mail.posted_qp_event;
    }
    pthread_mutex_unlock(&iface->mail.lock);
    return peer;
}
