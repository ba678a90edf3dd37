/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels: who is told that a completion came, and how.
 *
 * A channel is a pipe. Whoever puts a completion into an armed CQ, in this
 * process or another, disarms it and writes 8 bytes that name the CQ. A peer
 * opens the pipe as /proc/<pid>/fd/<n>, after looking at the inode, because by
 * then the number may belong to some other file of the program. It opens it
 * for reading, too: a pipe without readers would kill the writer by SIGPIPE.
 */
#include "sv_fault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* What goes through a channel's pipe. */
struct sv_wakeup {
    uint32_t index;  /* CQ entry */
    uint32_t cookie; /* tells this CQ from a former one at the same entry */
};

static uint32_t sv_next_cookie;

SV_EXPORT struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
    struct sv_channel *channel;
    struct stat st;
    int fds[2];

    if (sv_fault_verb(SV_VERB_CREATE_COMP_CHANNEL) != 0) {
        return NULL;
    }

    channel = calloc(1, sizeof(*channel));
    if (channel == NULL) {
        return NULL;
    }

    if (pipe2(fds, O_CLOEXEC) != 0) {
        free(channel);
        return NULL;
    }

    /* A program that never reads its events must not block its peers. */
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    fstat(fds[0], &st);
    channel->base.context = context;
    channel->base.fd      = fds[0];
    channel->write_fd     = fds[1];
    channel->ino          = st.st_ino;
    return &channel->base;
}

SV_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *ibchannel)
{
    struct sv_channel *channel = (struct sv_channel*)ibchannel;
    struct sv_context *ctx     = sv_context(ibchannel->context);
    int refs;

    if (sv_is_orphaned(ibchannel->context)) {
        return 0;
    }
    pthread_mutex_lock(&ctx->lock);
    refs = ibchannel->refcnt;
    pthread_mutex_unlock(&ctx->lock);
    if (refs > 0) {
        return EBUSY;
    }

    close(channel->base.fd);
    close(channel->write_fd);
    free(channel);
    return 0;
}

/* Gives a CQ its entry in the shared table. Needs ctx->lock. */
int sv_cq_bind_channel(struct sv_cq *cq, struct sv_channel *channel)
{
    struct sv_node *node = sv_context(cq->base.context)->node;
    int index;

    pthread_mutex_lock(&node->lock);
    index = sv_table_take(node, &node->cq_table);
    if (index >= 0) {
        cq->index        = index;
        cq->shm          = sv_peer_cq(node->self, index);
        cq->cookie       = ++sv_next_cookie;
        cq->shm->pipe_fd = channel->write_fd;
        cq->shm->pipe_ino = channel->ino;
        cq->shm->cookie  = cq->cookie;
        node->cqs[index] = cq;
        atomic_store(&cq->shm->armed, SV_ARMED_NO);
    }
    pthread_mutex_unlock(&node->lock);
    if (index < 0) {
        return -1;
    }

    ++channel->base.refcnt;
    return 0;
}

void sv_cq_unbind_channel(struct sv_cq *cq)
{
    struct sv_node *node = sv_context(cq->base.context)->node;

    if (cq->index == 0) {
        return;
    }

    atomic_store(&cq->shm->armed, SV_ARMED_NO);
    pthread_mutex_lock(&node->lock);
    node->cqs[cq->index] = NULL;
    sv_table_give(&node->cq_table, cq->index);
    pthread_mutex_unlock(&node->lock);
    --cq->base.channel->refcnt;
}

/* Descriptor of a peer's pipe, opened once. Needs node->lock; -1: gone. */
static int sv_peer_pipe(struct sv_peer *peer, const struct sv_shm_cq *shm)
{
    uint64_t ino = shm->pipe_ino;
    struct sv_pipe *pipes;
    struct stat st;
    char path[64];
    unsigned i;
    int fd;

    for (i = 0; i < peer->num_pipes; ++i) {
        if (peer->pipes[i].ino == ino) {
            return peer->pipes[i].fd;
        }
    }

    snprintf(path, sizeof(path), "/proc/%d/fd/%u", peer->pid,
             shm->pipe_fd);
    if ((stat(path, &st) != 0) || !S_ISFIFO(st.st_mode) ||
        (st.st_ino != ino)) {
        return -1;
    }

    fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    if ((fstat(fd, &st) != 0) || (st.st_ino != ino)) {
        close(fd);
        return -1;
    }

    pipes = realloc(peer->pipes, (peer->num_pipes + 1) * sizeof(*pipes));
    if (pipes == NULL) {
        close(fd);
        return -1;
    }

    peer->pipes                      = pipes;
    pipes[peer->num_pipes].ino       = ino;
    pipes[peer->num_pipes++].fd      = fd;
    return fd;
}

/* Our own, whatever the entry says. Needs node->lock; -1: there is none. */
static int sv_own_pipe(struct sv_node *node, uint32_t index)
{
    const struct sv_cq *cq = node->cqs[index];

    return (cq != NULL) ?
                   ((struct sv_channel*)cq->base.channel)->write_fd : -1;
}

/* The slow half: the CQ is armed. Only the one who disarms it writes.
 *
 * Under the lock, which whoever destroys the CQ takes, too: before its channel is
 * closed, and the descriptor perhaps another file's, all have written. What the
 * event names is read last: it must not be a former CQ at this entry whose
 * successor has just been disarmed. */
static void sv_cq_fire(struct sv_node *node, struct sv_peer *peer,
                       struct sv_shm_cq *shm, uint32_t armed)
{
    struct sv_wakeup wakeup;
    int fd = -1;

    pthread_mutex_lock(&node->lock);
    if (atomic_compare_exchange_strong(&shm->armed, &armed, SV_ARMED_NO)) {
        fd = peer->self ? sv_own_pipe(node, shm - sv_peer_cq(peer, 0)) :
                          sv_peer_pipe(peer, shm);
    }
    if (fd >= 0) {
        wakeup.index  = shm - sv_peer_cq(peer, 0);
        wakeup.cookie = shm->cookie;
        (void)!write(fd, &wakeup, sizeof(wakeup));
    }
    pthread_mutex_unlock(&node->lock);
}

void sv_cq_notify(struct sv_node *node, struct sv_peer *peer,
                  struct sv_shm_cq *shm, bool solicited)
{
    uint32_t armed;

    sv_light_barrier(peer->fence);
    armed = atomic_load_explicit(&shm->armed, memory_order_relaxed);
    if (sv_likely(armed == SV_ARMED_NO)) {
        return;
    }

    if (solicited || (armed == SV_ARMED_ANY)) {
        sv_cq_fire(node, peer, shm, armed);
    }
}

int sv_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
    struct sv_node *node = sv_context(ibcq->context)->node;
    struct sv_cq *cq     = sv_cq(ibcq);
    uint32_t armed       = SV_ARMED_NO;

    if (cq->index == 0) {
        return 0;
    }

    /* Asking for less while armed for more keeps the more. */
    if (!solicited_only) {
        atomic_store(&cq->shm->armed, SV_ARMED_ANY);
    } else {
        atomic_compare_exchange_strong(&cq->shm->armed, &armed,
                                       SV_ARMED_SOLICITED);
    }

    /* From here on either a sender sees that we are armed, or we see what it
     * sent. What came earlier fires, too: the specification lets programs look
     * for it themselves, but real devices do not, and there are programs that
     * rely on it. It does not fire a second time for what has had its event:
     * programs arm before they poll, and one that polls once for each event
     * would take the second for the next completion. */
    sv_heavy_barrier();
    sv_cq_fire_pending(cq);
    if (atomic_load(&node->num_stuck) > 0) {
        sv_keeper_nudge(node, true);
    }
    return 0;
}

/* Not for a former CQ at this entry. Where the entry has lost its cookie, who
 * fired could not know the right one: too many events are better than none. */
static bool sv_wakeup_is_for(struct sv_cq *cq, const struct sv_wakeup *wakeup)
{
    uint32_t cookie = cq->shm->cookie;

    cq->shm->cookie = cq->cookie;
    return (wakeup->cookie == cq->cookie) || (cookie != cq->cookie);
}

SV_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel,
                               struct ibv_cq **cq_p, void **cq_context_p)
{
    struct sv_node *node = sv_context(channel->context)->node;
    struct sv_wakeup wakeup;
    struct sv_cq *cq;
    ssize_t n;

    if (sv_is_orphaned(channel->context)) {
        errno = EIO; /* the events in the pipe are the parent's */
        return -1;
    }

    for (;;) {
        n = read(channel->fd, &wakeup, sizeof(wakeup));
        if (n != (ssize_t)sizeof(wakeup)) {
            return -1;
        }

        pthread_mutex_lock(&node->lock);
        cq = (wakeup.index < SV_CQ_MAX) ? node->cqs[wakeup.index] : NULL;
        if ((cq != NULL) && sv_wakeup_is_for(cq, &wakeup)) {
            ++cq->events_sent;
            pthread_mutex_unlock(&node->lock);
            sv_cq_event_read(cq);
            *cq_p         = &cq->base;
            *cq_context_p = cq->base.cq_context;
            return 0;
        }
        pthread_mutex_unlock(&node->lock);
        /* The CQ was destroyed with this event unread. */
    }
}

SV_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
    pthread_mutex_lock(&cq->mutex);
    cq->comp_events_completed += nevents;
    pthread_cond_signal(&cq->cond);
    pthread_mutex_unlock(&cq->mutex);
}
