/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The same messages over a TCP connection of their own: on loopback, or between
 * the addresses that the two hosts have found each other at. In the stream of bytes
 * each begins with its serial, and an acknowledgement is a serial with a bit
 * of its own and nothing behind it. One system call for each message, none
 * waits. What comes back in a ping-pong is compared with what was sent.
 */

#include "tools/flow/flow.h"
#include "tools/peer/net.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define TCP_ACK         (1ull << 62)
#define TCP_SEND_MAX    (1u << 31)
#define TCP_RECV_BUFFER (256u << 10)

typedef struct flow_tcp {
    flow_link_t link;
    int         fd;
    size_t      size;     /* of a message */
    uint64_t    out;      /* the serial of what is being sent */
    size_t      out_size; /* all of it; 0: nothing is */
    size_t      out_done; /* of which have gone */
    uint64_t    in;       /* the serial of what is coming */
    size_t      in_done;  /* of which have come */
    int         is_compared;
    char        *data;
    char        buffer[TCP_RECV_BUFFER];
} flow_tcp_t;

static void tcp_need(int ok, const char *what)
{
    if (!ok) {
        flow_die("%s: %s", what, strerror(errno));
    }
}

/* ---- what goes ---- */

/* As much of the message under way as the socket takes. */
static void tcp_push(flow_tcp_t *tcp)
{
    size_t head = (tcp->out_done < FLOW_SERIAL_SIZE) ?
                  FLOW_SERIAL_SIZE - tcp->out_done : 0;
    size_t gone = tcp->out_done + head - FLOW_SERIAL_SIZE; /* of the data */
    struct iovec iov[2] = {
        {(char*)&tcp->out + FLOW_SERIAL_SIZE - head, head},
        {tcp->data + gone, tcp->out_size - tcp->out_done - head}
    };
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = 2};
    ssize_t n = sendmsg(tcp->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0) {
        tcp_need((errno == EAGAIN) || (errno == EINTR), "sendmsg");
        return;
    }
    tcp->out_done += (size_t)n;
    if (tcp->out_done == tcp->out_size) {
        tcp->out_size = 0;
    }
}

/* Taken as soon as nothing else is under way. */
static int tcp_begin(flow_tcp_t *tcp, uint64_t serial, size_t length)
{
    if (tcp->out_size > 0) {
        tcp_push(tcp);
    }
    if (tcp->out_size > 0) {
        return 0;
    }
    tcp->out      = serial;
    tcp->out_size = length;
    tcp->out_done = 0;
    tcp_push(tcp);
    return 1;
}

static int tcp_send(flow_link_t *link, uint64_t serial, size_t length)
{
    return tcp_begin((flow_tcp_t*)link, serial, length);
}

static int tcp_ack(flow_link_t *link, uint64_t count)
{
    return tcp_begin((flow_tcp_t*)link, count | TCP_ACK, FLOW_SERIAL_SIZE);
}

/* ---- what comes ---- */

static void tcp_compare(const flow_tcp_t *tcp, const char *bytes, size_t length)
{
    if (memcmp(bytes, tcp->data + tcp->in_done - FLOW_SERIAL_SIZE, length) != 0) {
        flow_die_as(DAQIRI_CLASS_DATA_MISMATCH, "a message did not arrive as it "
                    "was sent");
    }
}

/* Takes some of these bytes; returns how many. */
static size_t tcp_take(flow_tcp_t *tcp, const char *bytes, size_t length)
{
    const flow_sink_t *sink = &tcp->link.sink;
    size_t want;

    if (tcp->in_done < FLOW_SERIAL_SIZE) {
        want   = FLOW_SERIAL_SIZE - tcp->in_done;
        length = (length < want) ? length : want;
        memcpy((char*)&tcp->in + tcp->in_done, bytes, length);
    } else {
        want   = tcp->size - tcp->in_done;
        length = (length < want) ? length : want;
        if (tcp->is_compared) {
            tcp_compare(tcp, bytes, length);
        }
    }
    tcp->in_done += length;
    if ((tcp->in_done == FLOW_SERIAL_SIZE) && ((tcp->in & TCP_ACK) != 0)) {
        tcp->in_done = 0;
        sink->on_ack(sink->arg, tcp->in & ~TCP_ACK);
    } else if (tcp->in_done == tcp->size) {
        tcp->in_done = 0;
        sink->on_data(sink->arg, tcp->in);
    }
    return length;
}

static int tcp_poll(flow_link_t *link)
{
    flow_tcp_t *tcp = (flow_tcp_t*)link;
    size_t done     = 0;
    ssize_t n;

    if (tcp->out_size > 0) {
        tcp_push(tcp);
    }
    n = recv(tcp->fd, tcp->buffer, sizeof(tcp->buffer), MSG_DONTWAIT);
    if (n < 0) {
        tcp_need((errno == EAGAIN) || (errno == EINTR), "recv");
        return 0;
    }
    if (n == 0) {
        flow_die_as(DAQIRI_CLASS_PEER_GONE, "the other end is gone");
    }
    while (done < (size_t)n) {
        done += tcp_take(tcp, tcp->buffer + done, (size_t)n - done);
    }
    return 1;
}

/* ---- the connection ---- */

static void tcp_count(flow_link_t *link, json_t *counters)
{
    const flow_tcp_t *tcp = (const flow_tcp_t*)link;
    struct tcp_info info  = {0};
    socklen_t length      = sizeof(info);

    if ((getsockopt(tcp->fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0) &&
        (info.tcpi_total_retrans > 0)) {
        json_object_set_new(counters, "retransmitted",
                            json_integer(info.tcpi_total_retrans));
    }
}

/* HOST:PORT where this end is, or the other one; port 0 is any. */
static void tcp_address(int fd, int is_peer, unsigned port, char *text,
                        size_t length)
{
    struct sockaddr_storage address = {0};
    socklen_t size                  = sizeof(address);
    char host[64]                   = "127.0.0.1"; /* a socket pair has none */
    int ret;

    ret = is_peer ? getpeername(fd, (struct sockaddr*)&address, &size) :
                    getsockname(fd, (struct sockaddr*)&address, &size);
    tcp_need(ret == 0, "getsockname");
    if ((address.ss_family != AF_UNIX) &&
        (getnameinfo((struct sockaddr*)&address, size, host, sizeof(host),
                     NULL, 0, NI_NUMERICHOST) != 0)) {
        flow_die("the address of the other end cannot be read");
    }
    snprintf(text, length, (address.ss_family == AF_INET6) ? "[%s]:%u" :
             "%s:%u", host, port);
}

static unsigned tcp_port(int listener)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof(address);
    char port[8];

    if ((getsockname(listener, (struct sockaddr*)&address, &length) != 0) ||
        (getnameinfo((struct sockaddr*)&address, length, NULL, 0, port,
                     sizeof(port), NI_NUMERICSERV) != 0)) {
        flow_die("the port of a socket cannot be read");
    }
    return (unsigned)strtoul(port, NULL, 10);
}

static int tcp_accept(int fd, daqiri_failure_t *failure)
{
    daqiri_peer_frame_t frame = {.kind = DAQIRI_PEER_FLOW_ADDRESS};
    char address[80];
    int listener, accepted;

    tcp_address(fd, 0, 0, address, sizeof(address));
    listener = daqiri_net_listen(address, failure);
    if (listener < 0) {
        return -1;
    }
    frame.flow_address.port = (uint16_t)tcp_port(listener);
    flow_tell(fd, &frame);
    accepted = daqiri_net_accept(listener, flow_deadline(), failure);
    close(listener);
    return accepted;
}

static int tcp_connect(int fd, daqiri_failure_t *failure)
{
    daqiri_peer_frame_t frame;
    char address[80];

    flow_hear(fd, DAQIRI_PEER_FLOW_ADDRESS, &frame);
    tcp_address(fd, 1, frame.flow_address.port, address, sizeof(address));
    return daqiri_net_connect(address, flow_deadline(), failure);
}

static void tcp_join(flow_tcp_t *tcp, int fd, int is_server)
{
    daqiri_failure_t failure = {0};

    tcp->fd = is_server ? tcp_accept(fd, &failure) : tcp_connect(fd, &failure);
    if (tcp->fd < 0) {
        flow_die_as(failure.class_id, "%s", failure.text);
    }
}

static void tcp_close(flow_link_t *link, int fd)
{
    flow_tcp_t *tcp = (flow_tcp_t*)link;

    while (tcp->out_size > 0) {
        tcp_push(tcp);
    }
    flow_meet(fd);
    close(tcp->fd);
    free(tcp->data);
    free(tcp);
}

flow_link_t *flow_tcp_open(const flow_opts_t *opts, int fd,
                           const flow_sink_t *sink, int is_server)
{
    flow_tcp_t *tcp = calloc(1, sizeof(*tcp));
    size_t i;

    if (tcp == NULL) {
        flow_die("no memory");
    }
    tcp->link = (flow_link_t){
        .sink       = *sink,
        .most       = TCP_SEND_MAX,
        .serial     = FLOW_SERIAL_SIZE,
        .window_max = UINT64_MAX,
        .send       = tcp_send,
        .ack        = tcp_ack,
        .poll       = tcp_poll,
        .count      = tcp_count,
        .close      = tcp_close
    };
    tcp->size        = opts->size;
    tcp->is_compared = (opts->pattern == FLOW_PINGPONG);
    tcp->data        = malloc(opts->size);
    if (tcp->data == NULL) {
        flow_die("no memory");
    }
    for (i = 0; i < opts->size; ++i) {
        tcp->data[i] = (char)(i * 31 + 7);
    }
    tcp_join(tcp, fd, is_server);
    return &tcp->link;
}
