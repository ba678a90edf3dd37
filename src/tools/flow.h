/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * daqiri-flow: messages from one process to another over one of UCX's
 * transports, at a pace. This is one end: opening the transport and being
 * connected, by the public UCT API (flow_link.c), and sending or receiving
 * (flow.c). The ends are two processes that a socket pair joins; what goes over
 * that is for the start and the end, never for a message.
 *
 * One thread. An end that cannot go on says so in a sentence and ends its
 * process.
 */

#ifndef DAQIRI_FLOW_H
#define DAQIRI_FLOW_H

#include <stddef.h>
#include <stdint.h>
#include <uct/api/uct.h>

#define FLOW_SERIAL_SIZE sizeof(uint64_t) /* in front of each fragment */

enum {
    FLOW_AM_DATA,
    FLOW_AM_ACK
};

typedef struct flow_opts {
    const char *tl;
    const char *device; /* as UCX writes it: mlx5_0:1 */
    size_t     size;    /* bytes of a message */
    uint64_t   window;  /* most messages that are not acknowledged */
    double     seconds;
    double     gbps;    /* 10^9 bits a second; 0: as fast as it goes */
} flow_opts_t;

typedef struct flow_link {
    ucs_async_context_t *async;
    uct_worker_h        worker;
    uct_md_h            md;
    uct_iface_h         iface;
    uct_iface_attr_t    attr;
    uct_ep_h            ep;
    uct_mem_h           memh;   /* of the data, if the transport wants one */
    char                *data;  /* of one fragment */
    size_t              most;   /* bytes of a fragment, its serial included */
    ucs_status_t        (*send)(struct flow_link *link, uint64_t serial,
                                size_t length);
    uct_completion_t    unused; /* a fragment's memory never changes */
} flow_link_t;

/* Ends this process with status 1 after a sentence on stderr. */
void flow_die(const char *format, ...)
    __attribute__((noreturn, format(printf, 1, 2)));

/* What goes over the socket pair, in pieces of any length. */
void flow_tell(int fd, const void *data, size_t length);
void flow_hear(int fd, void *data, size_t length);

/* Opens the transport and is connected to the other end of fd. `on_data` and
 * `on_ack` are called from flow_progress(). */
void flow_link_open(flow_link_t *link, const flow_opts_t *opts, int fd,
                    uct_am_callback_t on_data, uct_am_callback_t on_ack,
                    void *arg);

/* Both ends have stopped sending. */
void flow_link_close(flow_link_t *link, int fd);

/* Returns whether something happened. Lets others have the CPU when nothing
 * does for long: both ends may have to share one. */
int flow_progress(flow_link_t *link);

#endif
