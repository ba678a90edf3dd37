/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeping. One file descriptor becomes readable when progress has something to do. A
 * program arms it before it sleeps, so that it misses nothing that happens in between.
 *
 *   channel    completions of either CQ           ibv_req_notify_cq
 *   wake_fd    messages of the async side         uct_daqiri_mail_wake
 *
 * Some devices (rxe) report only completions that come after they were armed. So both CQs
 * are polled once more after arming. Completions that this finds are kept for the next
 * progress call, because the caller does not expect callbacks.
 *
 * UCP does not progress an interface on which nothing has come yet. When its descriptor
 * becomes readable, UCP stops watching it until it can be armed, and tries that once for
 * each call of ucp_worker_progress(). The program does not know of this. It arms the
 * worker and sleeps, and nothing wakes it. So such an interface is never too busy to be
 * armed: its descriptor stays readable instead.
 *
 * Threads: progress. UCX's async thread may play that part for an interface that nobody
 * else progresses.
 */
#include "iface/daqiri_event.h"

#include "base/daqiri_log.h"
#include "base/daqiri_mail.h"
#include "conn/daqiri_batch.h"
#include "conn/daqiri_budget.h"
#include "iface/daqiri_iface.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>


static ucs_status_t uct_daqiri_event_failed(const char *call)
{
    uct_daqiri_log_verb(UCS_LOG_LEVEL_ERROR, UCT_DAQIRI_NAME, call, errno);
    return UCS_ERR_IO_ERROR;
}


ucs_status_t uct_daqiri_event_init(uct_daqiri_iface_t *iface)
{
    iface->rx.prefetched.wc = iface->prefetched[0];
    iface->tx.prefetched.wc = iface->prefetched[1];

    iface->event.channel = ibv_create_comp_channel(
            uct_daqiri_iface_md(iface)->context);
    if (iface->event.channel == NULL) {
        return uct_daqiri_event_failed("ibv_create_comp_channel");
    }
    iface->event.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (iface->event.wake_fd < 0) {
        return uct_daqiri_event_failed("eventfd");
    }
    return ucs_sys_fcntl_modfl(iface->event.channel->fd, O_NONBLOCK, 0);
}


void uct_daqiri_event_cleanup(uct_daqiri_iface_t *iface)
{
    if (iface->event.epoll_fd >= 0) {
        close(iface->event.epoll_fd);
    }
    if (iface->event.wake_fd >= 0) {
        close(iface->event.wake_fd);
    }
    if (iface->event.channel != NULL) {
        ibv_destroy_comp_channel(iface->event.channel);
    }
}


static int uct_daqiri_event_watch(uct_daqiri_iface_t *iface, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};

    return epoll_ctl(iface->event.epoll_fd, EPOLL_CTL_ADD, fd, &event);
}


ucs_status_t uct_daqiri_iface_event_fd_get(uct_iface_h tl_iface, int *fd_p)
{
    uct_daqiri_iface_t *iface = ucs_derived_of(tl_iface, uct_daqiri_iface_t);

    if (iface->event.epoll_fd < 0) {
        iface->event.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if ((iface->event.epoll_fd < 0) ||
            (uct_daqiri_event_watch(iface, iface->event.channel->fd) != 0) ||
            (uct_daqiri_event_watch(iface, iface->event.wake_fd) != 0)) {
            return uct_daqiri_event_failed("epoll");
        }
    }
    *fd_p = iface->event.epoll_fd;
    return UCS_OK;
}


/* Empties both descriptors. Returns how many events there were. */
static unsigned uct_daqiri_event_take(uct_daqiri_iface_t *iface)
{
    unsigned tx = 0, rx = 0;
    struct ibv_cq *cq;
    void *context;
    eventfd_t news = 0;

    while (ibv_get_cq_event(iface->event.channel, &cq, &context) == 0) {
        tx += cq == iface->tx.cq;
        rx += cq == iface->rx.cq;
    }
    if (tx > 0) {
        ibv_ack_cq_events(iface->tx.cq, tx);
    }
    if (rx > 0) {
        ibv_ack_cq_events(iface->rx.cq, rx);
    }
    (void)eventfd_read(iface->event.wake_fd, &news); /* EAGAIN: none */
    return tx + rx + (news > 0);
}


/* Takes completions that have come since the CQ was polled last. */
static int uct_daqiri_event_prefetch(uct_daqiri_prefetched_t *prefetched,
                                     struct ibv_cq *cq)
{
    prefetched->count = uct_daqiri_cq_take(cq, UCT_DAQIRI_PREFETCH_MAX,
                                                 prefetched->wc);
    return prefetched->count > 0;
}


/* The async side sets a bit of iface->work and then reads is_armed. This side sets
 * is_armed and then reads iface->work. All four are SEQ_CST, so one side sees what the
 * other has set.
 *
 * A conn that is draining counts time, and a peer waits for a grant that is due. */
static int uct_daqiri_event_is_busy(uct_daqiri_iface_t *iface)
{
    return (iface->tx.prefetched.count > 0) || (iface->rx.prefetched.count > 0) ||
           (__atomic_load_n(&iface->work, __ATOMIC_SEQ_CST) & UCT_DAQIRI_WORK_EVENTS) ||
           iface->rx.is_refused || !ucs_list_is_empty(&iface->rx.grants_due) ||
           !ucs_list_is_empty(&iface->tx.retry) ||
           !ucs_list_is_empty(&iface->draining) || iface->idle.is_short ||
           uct_daqiri_budget_is_below(iface);
}


/* Whether time matters to its conns even if nothing is under way. Without a conn nobody
 * has to be woken. */
static int uct_daqiri_event_has_clock(uct_daqiri_iface_t *iface)
{
    return !ucs_list_is_empty(&iface->conns) &&
           ((iface->idle.timeout > 0) || (iface->watchdog.bounds.probe > 0));
}


/* The interface has something to do now. */
static ucs_status_t uct_daqiri_event_keep_awake(uct_daqiri_iface_t *iface)
{
    if (iface->super.progress_flags & UCT_PROGRESS_RECV) {
        return UCS_ERR_BUSY;
    }
    uct_daqiri_mail_wake(iface);
    return UCS_OK;
}


ucs_status_t uct_daqiri_iface_event_arm(uct_iface_h tl_iface, unsigned events)
{
    uct_daqiri_iface_t *iface = ucs_derived_of(tl_iface, uct_daqiri_iface_t);
    int found;

    uct_daqiri_assert_progress(iface);
    uct_daqiri_batch_flush(iface);
    __atomic_store_n(&iface->watchdog.is_needed,
                     (dq_cq_in_use(&iface->tx.ledger) > 0) ||
                     !ucs_list_is_empty(&iface->tx.pending) ||
                     !ucs_list_is_empty(&iface->idle.closing) ||
                     uct_daqiri_event_has_clock(iface), __ATOMIC_RELEASE);
    __atomic_store_n(&iface->event.is_armed, 1, __ATOMIC_SEQ_CST);
    if ((uct_daqiri_event_take(iface) > 0) ||
        uct_daqiri_event_is_busy(iface)) {
        return uct_daqiri_event_keep_awake(iface);
    }

    if (((events & UCT_EVENT_RECV) &&
         (ibv_req_notify_cq(iface->rx.cq, 0) != 0)) ||
        ((events & UCT_EVENT_SEND_COMP) &&
         (ibv_req_notify_cq(iface->tx.cq, 0) != 0))) {
        return uct_daqiri_event_failed("ibv_req_notify_cq");
    }
    found  = uct_daqiri_event_prefetch(&iface->rx.prefetched, iface->rx.cq);
    found |= uct_daqiri_event_prefetch(&iface->tx.prefetched, iface->tx.cq);
    return found ? uct_daqiri_event_keep_awake(iface) : UCS_OK;
}
