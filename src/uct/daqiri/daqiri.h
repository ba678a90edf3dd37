/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names that every room of the plugin uses: its objects, and its limits. Each module
 * has a header of its own, which says what it is for.
 *
 *   base/   component, memory domain, memory, options, port, buffers, log; peers, mail
 *   iface/  the interface: birth, query, progress, sleep, watchdog, counters
 *   ep/     the endpoint: the operations of UCT
 *   conn/   the connection: its life, its queue pair, send line, receive line, recovery
 *   cm/     connecting: the async side, the handshake, its carrier, events
 *   compat/ UCX as the plugin sees it
 *
 * Two threads work on an interface, and every field belongs to one of them:
 *
 *   progress  the thread that drives the UCT worker (one at a time, by UCT's rules):
 *             ledgers, credits, both completion queues, pending
 *   async     UCX's async thread: the handshake, QP creation and transitions
 *
 * They share the table of peers (base/daqiri_peer.h), and tell each other about conns
 * (base/daqiri_mail.h), both under one lock. Neither thread holds the lock across a verb
 * or a callback. The data path never takes it.
 *
 * A connection (conn) is what UCP sees. A queue pair (QP) is what the NIC has, and a conn
 * may go through several. All endpoints to one peer interface share one conn with the
 * peer's endpoints to this interface.
 */
#ifndef UCT_DAQIRI_H
#define UCT_DAQIRI_H

#include "base/daqiri_assert.h"
#include "compat/ucx_compat.h"
#include "dq/dq.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UCT_DAQIRI_NAME "daqiri"

/* The functions that an idle program, and one in a ping-pong, calls all the time. The
 * linker places them next to each other. The first begins a page, and the others lie
 * in the 3 KiB that it leaves. Only an emulated processor needs this: QEMU looks up
 * each jump into another page, and an idle progress call took three times as long
 * there (docs/bench.md). The alignment stays in every build, so that the virtual
 * machine measures what is shipped. It costs 4 KiB of the file and no instruction. */
#define UCT_DAQIRI_POLLED_FIRST __attribute__((hot, aligned(4096)))
#define UCT_DAQIRI_POLLED       __attribute__((hot, aligned(1024)))

enum {
    UCT_DAQIRI_POLL_MAX     = 64,
    UCT_DAQIRI_HW_TEXT_MAX  = 200,
    UCT_DAQIRI_PREFETCH_MAX = 16,
    UCT_DAQIRI_SGE_MAX      = 32,
    UCT_DAQIRI_RECV_PIECES  = 2,       /* see daqiri_recv.c                  */
    UCT_DAQIRI_HDR_MAX      = 256,     /* most bytes of a zcopy header, copied */
    /* 16 KiB, and 64 bytes for the headers of UCP and daqiri. On a device in user space,
     * one message holds what UCP sends eagerly; see daqiri_port.c. */
    UCT_DAQIRI_WINDOW_LEAST = 4, /* credits of a peer, however few buffers are left */
    UCT_DAQIRI_SEG_SIZE    = 16384 + 64,
    UCT_DAQIRI_SEG_SIZE_EMULATED = 12288, /* see daqiri_port.c               */
    UCT_DAQIRI_FRAG_ALIGN  = 16,      /* see uct_daqiri_iface_seg_size()     */
    /* Progress polls the send CQ once in so many calls while no request is signalled.
     * The CQ can only hold errors then. */
    UCT_DAQIRI_TX_POLL_EVERY = 64,
    /* Most bytes of a short message of UCT, header and payload: a page, and the headers
     * of UCP around it. */
    UCT_DAQIRI_SHORT_MAX   = 4096 + 64,
    UCT_DAQIRI_QPN_BITS    = 24,      /* IBA 9.2                             */
    UCT_DAQIRI_QPN_LOW     = 12,
    UCT_DAQIRI_QPN_LEAF    = 1 << UCT_DAQIRI_QPN_LOW,
    UCT_DAQIRI_QPN_ROOT    = 1 << (UCT_DAQIRI_QPN_BITS - UCT_DAQIRI_QPN_LOW)
};

typedef struct uct_daqiri_iface uct_daqiri_iface_t;
typedef struct uct_daqiri_conn  uct_daqiri_conn_t;
typedef struct uct_daqiri_ep    uct_daqiri_ep_t;
typedef struct uct_daqiri_peer  uct_daqiri_peer_t; /* daqiri_peer.h */
typedef struct uct_daqiri_hs    uct_daqiri_hs_t; /* daqiri_hs.h */
typedef struct uct_daqiri_batch uct_daqiri_batch_t; /* daqiri_batch.h */
typedef struct uct_daqiri_replay  uct_daqiri_replay_t; /* daqiri_replay.h */
typedef struct uct_daqiri_preconnect uct_daqiri_preconnect_t; /* daqiri_preconnect.h */

#endif
