/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The batch: work requests of one QP that share a doorbell.
 *
 * Where the doorbell is a system call (a device that the kernel emulates), it
 * is a good part of what a short request costs. So those that are made ready
 * inside one progress call are posted together at its end; a long one goes at
 * once, and takes along those before it. Outside of progress the first request
 * of a conn goes out at once, and the messages that follow it before the next
 * progress call wait for that call, or for a full batch, or until twice TX_BATCH_TIMEOUT
 * after the last of them at most: then the async thread rings, for a program
 * that has gone to compute, and nothing of that program is held for some time.
 * After that call the first one waits, too: the conn streams, until it has no
 * more than one for a call. Who waits for an answer calls progress, and waits
 * no longer than without.
 *
 * A request that is held has been posted as far as the ledger is concerned.
 * Its doorbell can only be late, never forgotten.
 *
 * Threads: progress; the timer on async. The lock guards the held requests,
 * and is kept over their ibv_post_send(), so that they stay in order. The timer
 * does not wait for it: whoever has it is posting, and nothing is late. Without
 * a batch none of this is on the data path but one branch.
 */
#ifndef UCT_DAQIRI_BATCH_H
#define UCT_DAQIRI_BATCH_H

#include "base/daqiri_config.h"
#include "conn/daqiri_conn.h"

#include <time.h>

enum {
    /* 16 have most of the gain: rxe goes from 75 to 97 thousand messages per
     * second, and with 64 to 100 (measured, Linux 6.1) */
    UCT_DAQIRI_BATCH_MAX    = 32,
    UCT_DAQIRI_BATCH_SGE    = 4,  /* more are posted at once                 */
    UCT_DAQIRI_BATCH_INLINE = 512 /* bytes; the same                         */
};

/* One held request, with all it points to. */
typedef struct {
    struct ibv_send_wr wr;
    struct ibv_sge     sge[UCT_DAQIRI_BATCH_SGE];
    uint8_t            data[UCT_DAQIRI_BATCH_INLINE];
} uct_daqiri_held_t;

/* Here for what every progress call does; the rest is daqiri_batch.c's. */
struct uct_daqiri_batch {
    uct_daqiri_iface_t   *iface;
    int                  timer_fd;
    struct itimerspec    hold;
    pthread_mutex_t      timer_lock; /* the timer's, while it is at work     */
    int                  is_inside; /* a progress call; progress             */
    int                  is_used;   /* something has been held since the last
                                       uct_daqiri_batch_flush(); progress     */
    uint64_t             direct_epoch; /* what conns hold against their turn: that
                                       of the last progress call, or 0 if one
                                       is under way, or something is held, or
                                       has failed; progress                  */

    uint8_t              is_locked; /* the lock: of all below; atomic        */
    uct_daqiri_conn_t    *conn;     /* whose requests are held               */
    unsigned             count;     /* of them                               */
    uint64_t             serial;    /* of the batch that is held             */
    uint64_t             timed;     /* serial when the timer was set         */
    int                  is_timed;  /* the timer is set                      */
    unsigned             misses;    /* how often it had to ring              */
    uint64_t             rest;      /* nothing is held before this turn      */
    uct_daqiri_conn_t    *failed;   /* those whose QP refused what was held  */
    uct_daqiri_held_t    held[UCT_DAQIRI_BATCH_MAX];
};

/* Makes iface->tx.batch if TX_BATCH says so. */
ucs_status_t uct_daqiri_batch_init(uct_daqiri_iface_t *iface,
                                   const uct_daqiri_iface_config_t *config);
/* Posts what is held; from here on every request is posted at once. */
void uct_daqiri_batch_close(uct_daqiri_iface_t *iface);

/* In place of ibv_post_send() of this one request: 0, or errno if it was
 * refused. What it points to inline is copied. */
int uct_daqiri_batch_post(uct_daqiri_conn_t *conn, struct ibv_send_wr *wr);
/* Posts what is held. */
void uct_daqiri_batch_flush(uct_daqiri_iface_t *iface);

/* Before progress call @a turn looks for work. Inline: an idle program does this
 * all the time, and has little else to do (UCT_DAQIRI_POLLED). */
static inline void uct_daqiri_batch_start_epoch(uct_daqiri_batch_t *batch,
                                                uint64_t epoch)
{
    if (ucs_unlikely(batch->direct_epoch == 0)) {
        uct_daqiri_batch_flush(batch->iface);
    }
    batch->direct_epoch = epoch;
}

/* Around the work that it has found. */
static inline void uct_daqiri_batch_begin_progress(uct_daqiri_batch_t *batch)
{
    batch->is_inside    = 1;
    batch->direct_epoch = 0;
}

static inline void uct_daqiri_batch_end_progress(uct_daqiri_batch_t *batch,
                                                 uint64_t epoch)
{
    batch->is_inside = 0;
    if (batch->is_used) {
        uct_daqiri_batch_flush(batch->iface);
    }
    batch->direct_epoch = epoch;
}

#endif
