/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/peer/net.h"

#include "tools/base/args.h"
#include "tools/base/clock.h"
#include "tools/base/progress.h"
#include "tools/base/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NET_ABORT_NS 1000000000ull

/* ---- addresses ---- */

/* Splits [HOST][:PORT]; an IPv6 address with a port is in brackets. The resolver
 * would take a number alone for an address of IPv4. */
static int net_split(const char *address, char *host, size_t host_size,
                     char *port, size_t port_size, daqiri_failure_t *failure)
{
    const char *colon = strrchr(address, ':');
    size_t length     = strlen(address);

    if ((length > 0) && (strspn(address, "0123456789") == length)) {
        snprintf(port, port_size, "%s", address);
        host[0] = '\0';
        return 0;
    }
    if (address[0] == '[') {
        const char *end = strchr(address, ']');

        if ((end == NULL) || ((end[1] != '\0') && (end[1] != ':'))) {
            return daqiri_fail(failure, DAQIRI_CLASS_LOCAL, "'%s' is no "
                               "address: it is HOST:PORT, or [IPv6]:PORT",
                               address);
        }
        colon   = (end[1] == ':') ? end + 1 : NULL;
        length  = (size_t)(end - address) - 1;
        address = address + 1;
    } else if ((colon != NULL) && (strchr(address, ':') == colon)) {
        length = (size_t)(colon - address);
    } else {
        colon = NULL; /* no port, or an IPv6 address alone */
    }
    snprintf(port, port_size, "%s",
             ((colon != NULL) && (colon[1] != '\0')) ? colon + 1 :
                                                       DAQIRI_NET_PORT);
    snprintf(host, host_size, "%.*s", (int)length, address);
    return 0;
}

/* The resolver takes what is left of a number in 16 bits. */
static int net_check_port(const char *address, const char *port,
                          daqiri_failure_t *failure)
{
    const size_t length = strspn(port, "0123456789");

    if ((port[length] != '\0') || (strtoul(port, NULL, 10) <= UINT16_MAX)) {
        return 0;
    }
    return daqiri_fail(failure, DAQIRI_CLASS_LOCAL, "'%s' is no address: a "
                       "port is a number up to %d", address, UINT16_MAX);
}

int daqiri_net_check(const char *address, daqiri_failure_t *failure)
{
    char host[256], port[64];

    return ((net_split(address, host, sizeof(host), port, sizeof(port),
                       failure) == 0) &&
            (net_check_port(address, port, failure) == 0)) ? 0 : -1;
}

const char *daqiri_net_args_address(struct argp_state *state, const char *name,
                                    const char *text)
{
    daqiri_failure_t failure = {0};

    daqiri_args_name(state, name, text);
    if (daqiri_net_check(text, &failure) != 0) {
        argp_error(state, "--%s %s", name, failure.text);
    }
    return text;
}

static int net_is_without_host(const char *address)
{
    daqiri_failure_t ignored = {0};
    char host[256], port[64];

    return (net_split(address, host, sizeof(host), port, sizeof(port),
                      &ignored) == 0) && (host[0] == '\0');
}

static struct addrinfo *net_resolve(const char *address, int flags,
                                    daqiri_failure_t *failure)
{
    struct addrinfo hints = {
        .ai_socktype = SOCK_STREAM,
        .ai_flags    = flags
    };
    struct addrinfo *list = NULL;
    char host[256], port[64];
    int ret;

    if ((net_split(address, host, sizeof(host), port, sizeof(port), failure) !=
         0) || (net_check_port(address, port, failure) != 0)) {
        return NULL;
    }
    ret = getaddrinfo((host[0] != '\0') ? host : NULL, port, &hints, &list);
    if (ret != 0) {
        daqiri_fail(failure, DAQIRI_CLASS_PEER_UNREACHABLE, "'%s': %s",
                    address, (ret == EAI_SYSTEM) ? strerror(errno) :
                                                   gai_strerror(ret));
        return NULL;
    }
    return list;
}

/* A socket for both has IPv4's addresses as ::ffff:192.0.2.1, which nobody
 * writes. */
static void net_unmap(struct sockaddr_storage *address, socklen_t *length)
{
    struct sockaddr_in6 both;
    struct sockaddr_in old = {.sin_family = AF_INET};

    if (address->ss_family != AF_INET6) {
        return;
    }
    memcpy(&both, address, sizeof(both));
    if (IN6_IS_ADDR_V4MAPPED(&both.sin6_addr)) {
        old.sin_port = both.sin6_port;
        memcpy(&old.sin_addr, &both.sin6_addr.s6_addr[12],
               sizeof(old.sin_addr));
        memcpy(address, &old, sizeof(old));
        *length = sizeof(old);
    }
}

int daqiri_net_address(const struct sockaddr *address, struct in6_addr *ip)
{
    if (address->sa_family == AF_INET6) {
        *ip = ((const struct sockaddr_in6*)address)->sin6_addr;
        return 0;
    }
    if (address->sa_family != AF_INET) {
        return -1;
    }
    memset(ip, 0, sizeof(*ip));
    memset(&ip->s6_addr[10], 0xff, 2);
    memcpy(&ip->s6_addr[12],
           &((const struct sockaddr_in*)address)->sin_addr, 4);
    return 0;
}

char *daqiri_net_name(int fd, int is_peer, char *name)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof(address);
    char host[64], port[8];
    int ret;

    ret = is_peer ? getpeername(fd, (struct sockaddr*)&address, &length) :
                    getsockname(fd, (struct sockaddr*)&address, &length);
    if (ret == 0) {
        net_unmap(&address, &length);
    }
    if ((ret != 0) ||
        (getnameinfo((struct sockaddr*)&address, length, host, sizeof(host),
                     port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) !=
         0)) {
        snprintf(name, DAQIRI_NET_NAME_MAX, "unknown");
    } else {
        snprintf(name, DAQIRI_NET_NAME_MAX,
                 (address.ss_family == AF_INET6) ? "[%s]:%s" : "%s:%s", host,
                 port);
    }
    return name;
}

int daqiri_net_listens_on(int listener, char (*names)[DAQIRI_NET_NAME_MAX])
{
    struct sockaddr_in6 address = {0};
    socklen_t length            = sizeof(address);
    int is_v6_only              = 1;
    socklen_t option            = sizeof(is_v6_only);

    if ((getsockname(listener, (struct sockaddr*)&address, &length) != 0) ||
        (address.sin6_family != AF_INET6) ||
        !IN6_IS_ADDR_UNSPECIFIED(&address.sin6_addr) ||
        (getsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &is_v6_only,
                    &option) != 0) || is_v6_only) {
        daqiri_net_name(listener, 0, names[0]);
        return 1;
    }
    snprintf(names[0], DAQIRI_NET_NAME_MAX, "0.0.0.0:%u",
             (unsigned)ntohs(address.sin6_port));
    daqiri_net_name(listener, 0, names[1]);
    return 2;
}

/* ---- waiting ---- */

static daqiri_progress_t *net_progress;

/* What goes on while the peer is waited for. */
static struct {
    daqiri_net_work_t work;
    void              *arg;
} net_meanwhile;

/* How long poll() may wait, in milliseconds: with work to do, no longer than that
 * can be left alone. */
static int net_wait_ms(uint64_t left_ns)
{
    if (net_meanwhile.work != NULL) {
        return net_meanwhile.work(net_meanwhile.arg) ? 0 : 1;
    }
    /* Not for long: a signal just before poll() does not end it. */
    return (left_ns > 100000000) ? 100 : (int)(left_ns / 1000000) + 1;
}

/* Until then, or a signal. Returns 0 when `events` may be tried. */
static int net_wait(int fd, short events, uint64_t deadline_ns,
                    const char *what, daqiri_failure_t *failure)
{
    struct pollfd event = {.fd = fd, .events = events};
    uint64_t now_ns;

    for (;;) {
        if (daqiri_stop_asked() && !daqiri_stop_is_owned()) {
            return daqiri_fail(failure, DAQIRI_CLASS_INTERRUPTED,
                               "interrupted while %s", what);
        }
        now_ns = daqiri_now_ns();
        if (now_ns >= deadline_ns) {
            return daqiri_fail(failure, DAQIRI_CLASS_TIMEOUT, "no answer in "
                               "time while %s", what);
        }
        if ((net_progress != NULL) &&
            daqiri_progress_is_due(net_progress, now_ns)) {
            daqiri_progress_show(net_progress, now_ns, -1, "%s", what);
        }
        if (poll(&event, 1, net_wait_ms(deadline_ns - now_ns)) > 0) {
            return 0;
        }
    }
}

void daqiri_net_meanwhile(daqiri_net_work_t work, void *arg)
{
    net_meanwhile.work = work;
    net_meanwhile.arg  = arg;
}

void daqiri_net_show(daqiri_progress_t *progress)
{
    if (progress != NULL) {
        daqiri_progress_start(progress);
    } else if (net_progress != NULL) {
        daqiri_progress_end(net_progress);
    }
    net_progress = progress;
}

/* Nothing waits for more to send; nothing blocks. */
static int net_prepare(int fd)
{
    int one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fcntl(fd, F_SETFL, O_NONBLOCK);
}

/* ---- making connections ---- */

/* Returns a socket, or -1 and errno. */
static int net_listen_one(const struct addrinfo *info, int is_for_all)
{
    int one  = 1;
    int zero = 0;
    int error, fd;

    fd = socket(info->ai_family, info->ai_socktype, info->ai_protocol);
    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (is_for_all && (info->ai_family == AF_INET6)) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
    }
    if ((bind(fd, info->ai_addr, info->ai_addrlen) != 0) ||
        (listen(fd, 16) != 0) || (net_prepare(fd) != 0)) {
        error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* The first that can be had of one family, or of any. */
static int net_listen_first(const struct addrinfo *list, int family,
                            int is_for_all, int *error)
{
    const struct addrinfo *info;
    int fd = -1;

    for (info = list; (info != NULL) && (fd < 0); info = info->ai_next) {
        if ((family == AF_UNSPEC) || (info->ai_family == family)) {
            fd     = net_listen_one(info, is_for_all);
            *error = (fd < 0) ? errno : 0;
        }
    }
    return fd;
}

/* On all addresses one socket of IPv6 does for both, where there is IPv6. */
int daqiri_net_listen(const char *address, daqiri_failure_t *failure)
{
    struct addrinfo *list = net_resolve(address, AI_PASSIVE, failure);
    int error             = EADDRNOTAVAIL;
    int fd                = -1;
    int is_for_all;

    if (list == NULL) {
        return -1;
    }
    is_for_all = net_is_without_host(address);
    if (is_for_all) {
        fd = net_listen_first(list, AF_INET6, 1, &error);
    }
    if ((fd < 0) && (error != EADDRINUSE)) {
        fd = net_listen_first(list, is_for_all ? AF_INET : AF_UNSPEC, 0,
                              &error);
    }
    freeaddrinfo(list);
    return (fd >= 0) ? fd :
           daqiri_fail(failure, DAQIRI_CLASS_LOCAL, "cannot listen on %s: %s",
                       address, strerror(error));
}

/* Returns 0 or an errno; -1 with a failure. */
static int net_connect_one(int fd, const struct addrinfo *info,
                           uint64_t deadline_ns, daqiri_failure_t *failure)
{
    socklen_t length = sizeof(int);
    int error        = 0;

    if (connect(fd, info->ai_addr, info->ai_addrlen) == 0) {
        return 0;
    }
    if (errno != EINPROGRESS) {
        return errno;
    }
    if (net_wait(fd, POLLOUT, deadline_ns, "connecting", failure) != 0) {
        return -1;
    }
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    return error;
}

int daqiri_net_connect(const char *address, uint64_t deadline_ns,
                       daqiri_failure_t *failure)
{
    struct addrinfo *list = net_resolve(address, 0, failure);
    struct addrinfo *info;
    int error = EADDRNOTAVAIL;
    int fd;

    for (info = list; info != NULL; info = info->ai_next) {
        fd = socket(info->ai_family, info->ai_socktype, info->ai_protocol);
        if ((fd < 0) || (net_prepare(fd) != 0)) {
            error = errno;
        } else {
            error = net_connect_one(fd, info, deadline_ns, failure);
        }
        if (error == 0) {
            freeaddrinfo(list);
            return fd;
        }
        if (fd >= 0) {
            close(fd);
        }
        if (error < 0) {
            break;
        }
    }
    if (list != NULL) {
        freeaddrinfo(list);
    }
    return daqiri_fail(failure, DAQIRI_CLASS_PEER_UNREACHABLE, "cannot connect "
                       "to %s: %s", address, strerror(error));
}

int daqiri_net_accept(int listener, uint64_t deadline_ns,
                      daqiri_failure_t *failure)
{
    int fd;

    for (;;) {
        if (net_wait(listener, POLLIN, deadline_ns, "waiting for a client",
                     failure) != 0) {
            return -1;
        }
        fd = accept(listener, NULL, NULL);
        if (fd >= 0) {
            net_prepare(fd);
            return fd;
        }
        if ((errno == EMFILE) || (errno == ENFILE) || (errno == ENOMEM) ||
            (errno == ENOBUFS)) {
            return daqiri_fail(failure, DAQIRI_CLASS_LOCAL, "no client can be "
                               "taken: %s", strerror(errno));
        }
    }
}

/* ---- bytes ---- */

static int net_fail_io(int error, daqiri_failure_t *failure)
{
    return daqiri_fail(failure, ((error == ECONNRESET) || (error == EPIPE)) ?
                       DAQIRI_CLASS_PEER_GONE : DAQIRI_CLASS_LOCAL,
                       "the connection to the peer broke: %s",
                       strerror(error));
}

int daqiri_net_send(int fd, const void *bytes, size_t length,
                    uint64_t deadline_ns, daqiri_failure_t *failure)
{
    const uint8_t *next = bytes;
    ssize_t ret;

    while (length > 0) {
        ret = send(fd, next, length, MSG_NOSIGNAL);
        if (ret > 0) {
            next   += ret;
            length -= (size_t)ret;
        } else if ((errno == EAGAIN) || (errno == EINTR)) {
            if (net_wait(fd, POLLOUT, deadline_ns, "sending to the peer",
                         failure) != 0) {
                return -1;
            }
        } else {
            return net_fail_io(errno, failure);
        }
    }
    return 0;
}

int daqiri_net_recv(int fd, void *bytes, size_t length, uint64_t deadline_ns,
                    daqiri_failure_t *failure)
{
    uint8_t *next = bytes;
    ssize_t ret;

    while (length > 0) {
        ret = recv(fd, next, length, 0);
        if (ret > 0) {
            next   += ret;
            length -= (size_t)ret;
        } else if (ret == 0) {
            return daqiri_fail(failure, DAQIRI_CLASS_PEER_GONE, "the peer "
                               "closed the connection in the middle");
        } else if ((errno == EAGAIN) || (errno == EINTR)) {
            if (net_wait(fd, POLLIN, deadline_ns, "waiting for the peer",
                         failure) != 0) {
                return -1;
            }
        } else {
            return net_fail_io(errno, failure);
        }
    }
    return 0;
}

/* ---- frames ---- */

/* What an older daqiri, which knows binary frames only, takes for a newer one's: it
 * says so, and which version this is. */
static void net_answer_binary(int fd)
{
    static const uint8_t header[] = {'D', 'Q', 'R', 'I', 0, DAQIRI_PEER_PROTOCOL_MAX,
                                     0, DAQIRI_PEER_HELLO, 0, 0, 0, 0, 0, 0, 0, 0};
    daqiri_failure_t ignored = {0};

    daqiri_net_send(fd, header, sizeof(header), daqiri_now_ns() + NET_ABORT_NS,
                    &ignored);
}

static int net_recv_header(int fd, uint32_t *length_p, uint64_t deadline_ns,
                           daqiri_failure_t *failure)
{
    uint8_t bytes[DAQIRI_PEER_HEADER_LEN];

    if (daqiri_net_recv(fd, bytes, sizeof(bytes), deadline_ns, failure) != 0) {
        return -1;
    }
    switch (daqiri_peer_parse_header(bytes, length_p)) {
    case DAQIRI_PEER_OK:
        return 0;
    case DAQIRI_PEER_BINARY:
        net_answer_binary(fd);
        return daqiri_fail(failure, DAQIRI_CLASS_PROTOCOL, "the peer is daqiri 0.1, "
                           "which speaks a protocol that this one does not: use the "
                           "same ucx-daqiri on both sides");
    default:
        return daqiri_fail(failure, DAQIRI_CLASS_PROTOCOL, "the peer is not daqiri, or "
                           "sent a message of %u bytes, where %d are the most",
                           *length_p, DAQIRI_PEER_PAYLOAD_MAX);
    }
}

int daqiri_net_recv_frame(int fd, daqiri_peer_frame_t *frame,
                          uint64_t deadline_ns, daqiri_failure_t *failure)
{
    uint8_t bytes[DAQIRI_PEER_PAYLOAD_MAX];
    char why[DAQIRI_PEER_WHY_MAX];
    uint32_t length;

    if ((net_recv_header(fd, &length, deadline_ns, failure) != 0) ||
        (daqiri_net_recv(fd, bytes, length, deadline_ns, failure) != 0)) {
        return -1;
    }
    if (daqiri_peer_parse(bytes, length, frame, why) != 0) {
        return daqiri_fail(failure, DAQIRI_CLASS_PROTOCOL, "the peer sent a message "
                           "that cannot be read: %s", why);
    }
    if (frame->kind == DAQIRI_PEER_ABORT) {
        return daqiri_fail(failure, DAQIRI_CLASS_PEER_FAILED, "the peer failed "
                           "in stage %s (%s): %s", frame->abort.stage,
                           frame->abort.class_name, frame->abort.text);
    }
    return 0;
}

/* Who takes nothing any more has often said why before it went. */
static void net_blame(int fd, daqiri_failure_t *failure)
{
    daqiri_failure_t peer = {.stage = failure->stage};
    daqiri_peer_frame_t frame;

    while (daqiri_net_recv_frame(fd, &frame, daqiri_now_ns() + NET_ABORT_NS,
                                 &peer) == 0) {
    }
    if (peer.class_id == DAQIRI_CLASS_PEER_FAILED) {
        *failure = peer;
    }
}

int daqiri_net_send_frame(int fd, const daqiri_peer_frame_t *frame,
                          uint64_t deadline_ns, daqiri_failure_t *failure)
{
    uint8_t bytes[DAQIRI_PEER_FRAME_MAX];
    int ret;

    ret = daqiri_net_send(fd, bytes, daqiri_peer_pack(frame, bytes),
                          deadline_ns, failure);
    if ((ret != 0) && (failure->class_id == DAQIRI_CLASS_PEER_GONE)) {
        net_blame(fd, failure);
    }
    return ret;
}

int daqiri_net_expect(int fd, daqiri_peer_kind_t kind,
                      daqiri_peer_frame_t *frame, uint64_t deadline_ns,
                      daqiri_failure_t *failure)
{
    if (daqiri_net_recv_frame(fd, frame, deadline_ns, failure) != 0) {
        return -1;
    }
    return (frame->kind == kind) ? 0 :
           daqiri_fail(failure, DAQIRI_CLASS_PROTOCOL, "the peer sent \"%s\" where "
                       "\"%s\" was to come", daqiri_peer_kind_name(frame->kind),
                       daqiri_peer_kind_name(kind));
}

/* ---- who is there, and what both speak ---- */

static const char *const net_services[DAQIRI_PEER_SERVICE_LAST] = {
    [DAQIRI_PEER_FLOW] = "sweep"
};

static int net_send_hello(int fd, daqiri_peer_service_t service,
                          uint64_t deadline_ns, daqiri_failure_t *failure)
{
    daqiri_peer_frame_t frame = {.kind = DAQIRI_PEER_HELLO};

    frame.hello.protocol_min = DAQIRI_PEER_PROTOCOL_MIN;
    frame.hello.protocol_max = DAQIRI_PEER_PROTOCOL_MAX;
    snprintf(frame.hello.service, sizeof(frame.hello.service), "%s",
             net_services[service]);
    snprintf(frame.hello.version, sizeof(frame.hello.version), "%s",
             DAQIRI_VERSION);
    return daqiri_net_send_frame(fd, &frame, deadline_ns, failure);
}

static int net_recv_hello(int fd, daqiri_peer_frame_t *frame, char *version,
                          uint64_t deadline_ns, daqiri_failure_t *failure)
{
    if (daqiri_net_expect(fd, DAQIRI_PEER_HELLO, frame, deadline_ns,
                          failure) != 0) {
        return -1;
    }
    snprintf(version, DAQIRI_PEER_WORD_MAX, "%s", frame->hello.version);
    if (daqiri_peer_agree(DAQIRI_PEER_PROTOCOL_MIN, DAQIRI_PEER_PROTOCOL_MAX,
                          frame->hello.protocol_min,
                          frame->hello.protocol_max) != 0) {
        return 0;
    }
    return daqiri_fail(failure, DAQIRI_CLASS_PROTOCOL, "the peer, daqiri %s, speaks "
                       "versions %u to %u of the protocol, and daqiri %s speaks %d to "
                       "%d", frame->hello.version, frame->hello.protocol_min,
                       frame->hello.protocol_max, DAQIRI_VERSION,
                       DAQIRI_PEER_PROTOCOL_MIN, DAQIRI_PEER_PROTOCOL_MAX);
}

int daqiri_net_hello_any(int fd, daqiri_peer_service_t *service, char *version,
                         uint64_t deadline_ns, daqiri_failure_t *failure)
{
    daqiri_peer_frame_t frame;
    unsigned i;

    if (net_recv_hello(fd, &frame, version, deadline_ns, failure) != 0) {
        return -1;
    }
    for (i = 1; i < DAQIRI_PEER_SERVICE_LAST; ++i) {
        if (strcmp(frame.hello.service, net_services[i]) == 0) {
            *service = (daqiri_peer_service_t)i;
            return net_send_hello(fd, *service, deadline_ns, failure);
        }
    }
    return daqiri_fail(failure, DAQIRI_CLASS_UNSUPPORTED, "the peer, daqiri %s, asks "
                       "for \"%s\", which daqiri %s does not have", version,
                       frame.hello.service, DAQIRI_VERSION);
}

int daqiri_net_hello(int fd, daqiri_peer_service_t service, char *version,
                     uint64_t deadline_ns, daqiri_failure_t *failure)
{
    daqiri_peer_frame_t frame;

    if ((net_send_hello(fd, service, deadline_ns, failure) != 0) ||
        (net_recv_hello(fd, &frame, version, deadline_ns, failure) != 0)) {
        return -1;
    }
    return (strcmp(frame.hello.service, net_services[service]) == 0) ? 0 :
           daqiri_fail(failure, DAQIRI_CLASS_PEER_REFUSED, "the peer is there for "
                       "daqiri %s, not for daqiri %s", frame.hello.service,
                       net_services[service]);
}

void daqiri_net_abort(int fd, const daqiri_failure_t *failure)
{
    daqiri_peer_frame_t frame = {.kind = DAQIRI_PEER_ABORT};
    uint8_t bytes[DAQIRI_PEER_FRAME_MAX];
    daqiri_failure_t ignored  = {0};

    snprintf(frame.abort.class_name, sizeof(frame.abort.class_name), "%s",
             daqiri_class_name(failure->class_id));
    snprintf(frame.abort.stage, sizeof(frame.abort.stage), "%s",
             (failure->stage != NULL) ? failure->stage : "none");
    snprintf(frame.abort.text, sizeof(frame.abort.text), "%.700s",
             failure->text);
    daqiri_net_send(fd, bytes, daqiri_peer_pack(&frame, bytes),
                    daqiri_now_ns() + NET_ABORT_NS, &ignored);
}
