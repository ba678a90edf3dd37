/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The node: this process on the fabric.
 *
 * Contexts, made by ibv_open_device(), share the node. The first makes it and
 * the last takes it down (verbs/sv_startup.c). It has the process's shared
 * segment, its service thread, and the segments of the peers that it talks to.
 *
 * Locks of the whole device, outermost first:
 *
 *     sv_context.lock         control verbs of a context: counts of objects
 *     ibv_qp.mutex            modify, query and destroy of one QP
 *     sv_node.objects_lock    lists of CQs and QPs (service thread)
 *     sv_cq.rx_lock           receiving on all QPs that receive into this CQ
 *     sv_qp.tx.lock           send queue of one QP, and its connection
 *     sv_node.stuck_lock      stuck list; its holder only *tries* the two above
 *     sv_rq.post_lock, sv_rq.take_lock
 *     sv_cq.lock              completion ring
 *     sv_node.lock            own tables, peers, channels
 *     sv_async.lock           asynchronous events
 *
 * Between processes there is one lock, for senders of datagrams and for
 * atomics. It names its holder, and is taken over from the dead.
 */
#ifndef SV_NODE_H
#define SV_NODE_H

#include "softverbs/base/sv_atomic.h"
#include "softverbs/fabric/sv_segment.h"
#include "softverbs/fabric/sv_table.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct sv_channel;
struct sv_cq;
struct sv_peer;
struct sv_qp;
struct sv_shm_head;

/* What a key of this process means. The entry in the segment's MR table is for
 * peers to read. We trust our own copy, which nobody else can write. */
struct sv_region {
    _Atomic uint32_t key;    /* 0: nothing here */
    uint32_t         access;
    uint32_t         pdn;
    uint64_t         iova;
    uint64_t         addr;
    uint64_t         length;
};

struct sv_node {
    char                    path[SV_PATH_BYTES];
    uint32_t                slot;
    uint32_t                lock_id;   /* our id in locks between processes */
    struct sv_peer         *self;
    struct sv_shm_head     *head;
    unsigned                refs;      /* contexts, under the list's mutex */

    pthread_mutex_t         lock;
    struct sv_table         qp_table;
    struct sv_table         cq_table;
    struct sv_table         srq_table;
    struct sv_table         mr_table;
    struct sv_table         small_table; /* small rings, as the QP entries */
    uint32_t                serial;    /* of the next QP number */
    uint16_t               *mr_gen;    /* generation of each MR entry's key */
    struct sv_region       *regions;   /* by index of MR entry */
    struct sv_cq          **cqs;       /* by index of CQ entry */
    struct sv_peer         *peers;
    struct sv_channel      *channels;  /* list through sv_channel.next */
    int                     wake_fd;   /* from which peers are woken */
    _Atomic uint32_t        next_pdn;

    struct sv_spin          stuck_lock;
    struct sv_qp           *stuck;     /* list through sv_tx.stuck_next */
    _Atomic uint32_t        num_stuck;

    pthread_mutex_t         objects_lock;
    struct sv_cq           *all_cqs;   /* list through sv_cq.next */
    struct sv_qp          **qps;       /* by index of QP entry */

    pthread_t               service_thread;
    clockid_t               service_clock; /* its processor time */
    _Atomic uint32_t        service_sleeps;
    atomic_bool             service_urgent;
    _Atomic uint32_t        pushes;      /* of the stuck list, by pollers */
    uint32_t                pushes_seen; /* service thread's own */
    atomic_bool             service_stop;
    struct robust_list_head robust;
};

#endif
