/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waking a process that sleeps on a completion channel.
 *
 * The channel's descriptor is a datagram socket with a name beside the owner's
 * segment: <segment>.<name>. A peer sends to that name from the one socket that
 * it has for all channels. So a channel costs its peers no descriptor. It also
 * works between user namespaces, wherever the segment can be reached.
 *
 * A datagram holds the number of a CQ and is only a hint. The CQ's entry counts
 * the events (base/sv_wire.h), so a hint too many does no harm. A hint may
 * fail, because the owner reads late and its queue is full, or because the name
 * was removed. Then the sender marks it as deferred, and the owner's service
 * thread sends it from inside.
 */
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/fabric/sv_doorbell.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fabric/sv_peer.h"
#include "softverbs/fabric/sv_segment.h"
#include "softverbs/fabric/sv_wake.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Attempts to find a free name for a channel. */
#define SV_WAKE_TRIES 16

/* Room for hints on their way to slow readers, of all channels together. The
 * kernel allows at most net.core.wmem_max. */
#define SV_WAKE_SNDBUF (1 << 20)

static socklen_t sv_wake_address(const char *segment, uint64_t name,
                                 struct sockaddr_un *address)
{
    address->sun_family = AF_UNIX;
    snprintf(address->sun_path, sizeof(address->sun_path),
             "%.*s." SV_WAKE_NAME, SV_PATH_BYTES - 1, segment, name);
    return sizeof(*address);
}

static int sv_wake_socket(int flags)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | flags, 0);
}

int sv_wake_open(struct sv_node *node)
{
    const int bytes = SV_WAKE_SNDBUF;

    node->wake_fd = sv_wake_socket(SOCK_NONBLOCK);
    if (node->wake_fd < 0) {
        sv_log("cannot make the socket that wakes other processes: %m");
        return -1;
    }
    setsockopt(node->wake_fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    return 0;
}

/* Binds to a name that nobody has. Its upper half is the owner's lock id, which
 * the sweeper reads. */
static int sv_wake_bind(const struct sv_node *node, int fd, uint64_t *name_p)
{
    struct sockaddr_un address;
    socklen_t length;
    unsigned tries;

    for (tries = 0; tries < SV_WAKE_TRIES; ++tries) {
        *name_p = ((uint64_t)node->lock_id << 32) | (uint32_t)sv_random();
        length  = sv_wake_address(node->path, *name_p, &address);
        if (bind(fd, (struct sockaddr*)&address, length) == 0) {
            /* With umask 0 everybody could send hints. */
            chmod(address.sun_path, S_IRUSR | S_IWUSR);
            return 0;
        }
        if (errno != EADDRINUSE) {
            break;
        }
    }
    sv_log("cannot make %s: %m", address.sun_path);
    return -1;
}

static int sv_wake_connect(const struct sv_node *node, int fd, uint64_t name)
{
    struct sockaddr_un address;
    socklen_t length = sv_wake_address(node->path, name, &address);

    return connect(fd, (struct sockaddr*)&address, length);
}

int sv_wake_pair(const struct sv_node *node, int fds[2], uint64_t *name_p)
{
    int saved;

    fds[0] = sv_wake_socket(0);
    if (fds[0] < 0) {
        return -1;
    }
    /* A program that never reads its events must not block its peers. */
    fds[1] = sv_wake_socket(SOCK_NONBLOCK);
    if (fds[1] < 0) {
        goto err_close;
    }
    if (sv_wake_bind(node, fds[0], name_p) != 0) {
        goto err_close_both;
    }
    if (sv_wake_connect(node, fds[1], *name_p) != 0) {
        sv_wake_unlink(node, *name_p);
        goto err_close_both;
    }
    return 0;

err_close_both:
    saved = errno;
    close(fds[1]);
    errno = saved;
err_close:
    saved = errno;
    close(fds[0]);
    errno = saved;
    return -1;
}

void sv_wake_unlink(const struct sv_node *node, uint64_t name)
{
    struct sockaddr_un address;

    sv_wake_address(node->path, name, &address);
    unlink(address.sun_path);
}

void sv_wake_peer(const struct sv_node *node, struct sv_peer *peer,
                  uint64_t name, uint32_t index)
{
    struct sockaddr_un address;
    socklen_t length = sv_wake_address(peer->path, name, &address);

    if (sendto(node->wake_fd, &index, sizeof(index), 0,
               (struct sockaddr*)&address, length) != sizeof(index)) {
        sv_wake_defer(peer->head);
    }
}

void sv_wake_defer(struct sv_shm_head *head)
{
    atomic_store(&head->deferred, 1);
    sv_doorbell_ring(head);
}
