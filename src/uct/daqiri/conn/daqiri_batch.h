/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The batch: work requests of one QP that share a doorbell.
 *
 * The doorbell is a system call on a device that the kernel emulates. It is then a large
 * part of the cost of a short request. So requests made inside one progress call are
 * posted together at its end. A long request is posted at once, with those held before
 * it.
 *
 * Outside of progress the first request of a conn is posted at once. Later messages wait
 * for the next progress call or for a full batch. They wait no longer than twice
 * TX_BATCH_TIMEOUT after the last of them: then the async thread posts them, for a
 * program that computes. After such a rescue nothing of that program is held for some
 * time. After a progress call a conn with two messages or more is streaming, and its
 * first message waits, too. It stops streaming when it has only one message for a call. A
 * program that waits for an answer calls progress, so a batch does not delay it.
 *
 * Why not inside of progress only: a program that streams sends outside of it. Then
 * 20,000 messages of 8 bytes (ucx_perftest am_bw) take 20,002 doorbells in place of
 * 1,359, and 2,000 of the MPI sweep's rate test 1,976 in place of 114.
 *
 * To the ledger a held request is posted. Its doorbell may be late, but is never
 * forgotten.
 *
 * Threads: progress; the timer is async. The lock guards the held requests. It is kept
 * over their ibv_post_send(), which keeps them in order. The timer only tries the lock: a
 * holder is posting already. Without a batch the data path has one branch more.
 */
#ifndef UCT_DAQIRI_BATCH_H
#define UCT_DAQIRI_BATCH_H

#include "base/daqiri_config.h"
#include "conn/daqiri_conn.h"

#include <time.h>

enum {
    /* rxe posts 75 thousand messages per second without a batch, 97 with 16, and 100 with
     * 64 (measured, Linux 6.1) */
    UCT_DAQIRI_BATCH_MAX    = 32,
    UCT_DAQIRI_BATCH_SGE    = 4,  /* requests with more are posted at once   */
    UCT_DAQIRI_BATCH_INLINE = 512 /* bytes; requests with more are posted at once */
};

/* One held request, with its SGEs and inline data. */
typedef struct {
    struct ibv_send_wr wr;
    struct ibv_sge     sge[UCT_DAQIRI_BATCH_SGE];
    uint8_t            data[UCT_DAQIRI_BATCH_INLINE];
} uct_daqiri_held_t;

/* In this header because every progress call reads it. Other rooms use no more than the
 * inline functions below do. */
struct uct_daqiri_batch {
    uct_daqiri_iface_t   *iface;
    int                  timer_fd;
    struct itimerspec    hold;
    pthread_mutex_t      timer_lock; /* held by the timer while it works     */
    int                  is_inside; /* a progress call is under way; progress */
    int                  is_used;   /* some request was held since the last
                                       uct_daqiri_batch_flush(); progress */
    /* Conns compare it with their last_post_epoch. It is the epoch of the last progress
     * call. It is 0 during a progress call, while requests are held, and after a failure.
     * Progress. */
    uint64_t             direct_epoch;

    uint8_t              is_locked; /* the lock of all fields below; atomic  */
    uct_daqiri_conn_t    *conn;     /* the conn of the held requests         */
    unsigned             count;     /* number of held requests               */
    uint64_t             serial;    /* number of the batch that is held      */
    uint64_t             timed;     /* serial when the timer was set         */
    int                  is_timed;  /* the timer is set                      */
    unsigned             misses;    /* how often the timer had to post       */
    uint64_t             rest;      /* nothing is held before this epoch     */
    uct_daqiri_conn_t    *failed;   /* conns whose QP refused held requests  */
    uct_daqiri_held_t    held[UCT_DAQIRI_BATCH_MAX];
};

/* Makes iface->tx.batch if TX_BATCH asks for it. UCS_ERR_NO_MEMORY, or UCS_ERR_IO_ERROR
 * if there is no timer. */
ucs_status_t uct_daqiri_batch_init(uct_daqiri_iface_t *iface,
                                   const uct_daqiri_iface_config_t *config);
/* Posts the held requests and frees the batch. Later requests are posted at once. */
void uct_daqiri_batch_close(uct_daqiri_iface_t *iface);

/* Takes a request instead of ibv_post_send(). Copies its SGEs and inline data unless the
 * conn remembers them. Returns 0, or errno if the device refused this request at once. A
 * later refusal is reported by uct_daqiri_batch_flush(). */
int uct_daqiri_batch_post(uct_daqiri_conn_t *conn, struct ibv_send_wr *wr);
/* Exchanges the conn's replay log and *log, which has the conn's requests already. The
 * held ones point to it from now on. */
void uct_daqiri_batch_swap_log(uct_daqiri_conn_t *conn, dq_replay_log_t *log);
/* Posts the held requests, and handles refusals of the timer's posts, too. */
void uct_daqiri_batch_flush(uct_daqiri_iface_t *iface);

/* Called before the progress call @a epoch polls. Inline, because an idle program does
 * little else (UCT_DAQIRI_POLLED). */
static inline void uct_daqiri_batch_start_epoch(uct_daqiri_batch_t *batch,
                                                uint64_t epoch)
{
    if (ucs_unlikely(batch->direct_epoch == 0)) {
        uct_daqiri_batch_flush(batch->iface);
    }
    batch->direct_epoch = epoch;
}

/* Called before and after a progress call handles the work that it found. */
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
