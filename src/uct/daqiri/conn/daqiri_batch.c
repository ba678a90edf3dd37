/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Holds work requests for one doorbell; see daqiri_batch.h.
 */
#include "conn/daqiri_batch.h"

#include "base/daqiri_config.h"
#include "base/daqiri_log.h"
#include "base/daqiri_port.h"
#include "conn/daqiri_conn.h"
#include "conn/daqiri_qp.h"
#include "conn/daqiri_replay.h"
#include "conn/daqiri_tx.h"
#include "iface/daqiri_iface.h"

#include <sys/timerfd.h>

enum {
    UCT_DAQIRI_BATCH_LONG   = 4200, /* bytes; longer requests are posted at once */
    /* After the timer had to post, nothing is held for BATCH_REST progress calls. That
     * number doubles with each further time, BATCH_DOUBLE times at most. */
    UCT_DAQIRI_BATCH_REST   = 64,
    UCT_DAQIRI_BATCH_DOUBLE = 10
};


/* ---- Is it worth it? ---- */

static int uct_daqiri_batch_is_wanted(uct_daqiri_iface_t *iface,
                                      const uct_daqiri_iface_config_t *config)
{
    return (config->tx_batch == UCS_CONFIG_AUTO)
                   ? uct_daqiri_port_is_emulated(
                              uct_daqiri_iface_md(iface)->context->device)
                   : (config->tx_batch == UCS_CONFIG_ON);
}


/* ---- The lock ---- */

static inline int uct_daqiri_batch_trylock(uct_daqiri_batch_t *batch)
{
    return !__atomic_test_and_set(&batch->is_locked, __ATOMIC_ACQUIRE);
}


static void uct_daqiri_batch_await_timer(uct_daqiri_batch_t *batch)
{
    pthread_mutex_lock(&batch->timer_lock);
    pthread_mutex_unlock(&batch->timer_lock);
}


/* Blocks until the timer is done. A spin would take the CPU from the timer where both
 * share one. */
static UCS_F_NOINLINE void uct_daqiri_batch_await(uct_daqiri_batch_t *batch)
{
    while (!uct_daqiri_batch_trylock(batch)) {
        uct_daqiri_batch_await_timer(batch);
    }
}


/* The lock is taken for each message and nearly always free, because the timer seldom
 * fires. A mutex would cost 64 instructions, and six jumps into other pages. */
static inline void uct_daqiri_batch_lock(uct_daqiri_batch_t *batch)
{
    if (ucs_unlikely(!uct_daqiri_batch_trylock(batch))) {
        uct_daqiri_batch_await(batch);
    }
}


static inline void uct_daqiri_batch_unlock(uct_daqiri_batch_t *batch)
{
    __atomic_clear(&batch->is_locked, __ATOMIC_RELEASE);
}


/* ---- Posting held requests; under the lock ---- */

/* Refused requests stay in the ledger, and no later request of the conn may be posted.
 * Progress handles the refusal (uct_daqiri_batch_take_failure()). */
static void uct_daqiri_batch_fail(uct_daqiri_batch_t *batch, int error,
                                  uint32_t send_end)
{
    uct_daqiri_conn_t *conn = batch->conn;

    conn->batch.error    = error;
    conn->batch.send_end = send_end;
    conn->batch.failed   = batch->failed;
    batch->failed        = conn;
}


static void uct_daqiri_batch_do_flush(uct_daqiri_batch_t *batch)
{
    uint32_t send_end;
    unsigned i;
    int ret;

    if (batch->count == 0) {
        return;
    }
    for (i = 0; i + 1 < batch->count; i++) {
        batch->held[i].wr.next = &batch->held[i + 1].wr;
    }
    batch->held[i].wr.next = NULL;

    ret = uct_daqiri_qp_post(batch->conn->qp.verbs, &batch->held[0].wr, &send_end);
    if (ucs_unlikely(ret != 0)) {
        uct_daqiri_batch_fail(batch, ret, send_end);
    }
    batch->iface->count->batches++;
    batch->iface->count->batched += batch->count;
    batch->serial++;
    batch->count = 0;
}


static size_t uct_daqiri_batch_length(const struct ibv_send_wr *wr)
{
    size_t length = 0;
    int i;

    for (i = 0; i < wr->num_sge; i++) {
        length += wr->sg_list[i].length;
    }
    return length;
}


/* Whether a slot has room for the request, if it is not remembered
 * (uct_daqiri_batch_copy()). */
static int uct_daqiri_batch_has_room(const struct ibv_send_wr *wr,
                                     size_t length)
{
    return (wr->send_flags & IBV_SEND_INLINE)
                   ? (length <= UCT_DAQIRI_BATCH_INLINE)
                   : (wr->num_sge <= UCT_DAQIRI_BATCH_SGE);
}


/* Only short requests wait. While the next of several long ones is made ready, the
 * device could be busy with the first. And the responses to a batch of long READs come
 * in a flood, which a network loses (docs/bench.md). Outside of progress only messages
 * wait. */
static int uct_daqiri_batch_may_wait(const uct_daqiri_batch_t *batch,
                                     const struct ibv_send_wr *wr,
                                     size_t length)
{
    const int is_message = (wr->opcode == IBV_WR_SEND) ||
                           (wr->opcode == IBV_WR_SEND_WITH_IMM);

    return (is_message || batch->is_inside) &&
           (length <= UCT_DAQIRI_BATCH_LONG);
}


/* The SGEs and inline data belong to the caller, who may change them after the return. So
 * they are copied, unless the conn remembers them (daqiri_replay.h). */
static void uct_daqiri_batch_copy(uct_daqiri_held_t *held,
                                  const uct_daqiri_conn_t *conn,
                                  const struct ibv_send_wr *wr)
{
    uint8_t *data = held->data;
    int i;

    /* the fields that an RC QP reads */
    memcpy(&held->wr, wr, offsetof(struct ibv_send_wr, qp_type));
    if (conn->replay.slots != NULL) {
        return;
    }
    held->wr.sg_list = held->sge;
    if (!(wr->send_flags & IBV_SEND_INLINE)) {
        for (i = 0; i < wr->num_sge; i++) {
            held->sge[i] = wr->sg_list[i];
        }
        return;
    }

    for (i = 0; i < wr->num_sge; i++) {
        memcpy(data, (const void*)(uintptr_t)wr->sg_list[i].addr,
               wr->sg_list[i].length);
        data += wr->sg_list[i].length;
    }
    held->wr.num_sge = wr->num_sge > 0;
    held->sge[0]     = (struct ibv_sge){
        .addr   = (uintptr_t)held->data,
        .length = data - held->data,
    };
}


static void uct_daqiri_batch_wind(const uct_daqiri_batch_t *batch)
{
    (void)timerfd_settime(batch->timer_fd, 0, &batch->hold, NULL);
}


/* Setting a timer costs as much as a doorbell, so a batch that is posted leaves it set.
 * Thus a batch waits for one to two times TX_BATCH_TIMEOUT, counted from the last post of
 * the program. */
static void uct_daqiri_batch_set_timer(uct_daqiri_batch_t *batch)
{
    batch->is_timed = 1;
    batch->timed    = batch->serial;
    uct_daqiri_batch_wind(batch);
}


static void uct_daqiri_batch_hold(uct_daqiri_batch_t *batch,
                                  uct_daqiri_conn_t *conn,
                                  const struct ibv_send_wr *wr)
{
    batch->conn         = conn;
    batch->direct_epoch = 0;
    batch->is_used      = 1;
    uct_daqiri_batch_copy(&batch->held[batch->count], conn, wr);
    batch->count++;
    if (batch->count == UCT_DAQIRI_BATCH_MAX) {
        uct_daqiri_batch_do_flush(batch);
    } else if (!batch->is_timed && !batch->is_inside) {
        uct_daqiri_batch_set_timer(batch);
    }
}


/* ---- Progress ---- */

/* Handles the refusals of posts by either thread. */
static void uct_daqiri_batch_take_failure(uct_daqiri_batch_t *batch)
{
    uct_daqiri_conn_t *conn;
    uint32_t send_end = 0;
    int error         = 0;

    do {
        uct_daqiri_batch_lock(batch);
        conn = batch->failed;
        if (conn != NULL) {
            error             = conn->batch.error;
            send_end          = conn->batch.send_end;
            conn->batch.error = 0;
            batch->failed     = conn->batch.failed;
        }
        uct_daqiri_batch_unlock(batch);
        if (conn != NULL) {
            uct_daqiri_tx_on_refused(conn, send_end, error);
        }
    } while (conn != NULL);
}


/* Under the lock, because the timer may be posting what is held. */
static void uct_daqiri_batch_point(uct_daqiri_batch_t *batch, uct_daqiri_conn_t *conn)
{
    struct ibv_send_wr *wr;
    unsigned i;

    if ((batch->conn != conn) || (conn->replay.slots == NULL)) {
        return;
    }
    for (i = 0; i < batch->count; i++) {
        wr          = &batch->held[i].wr;
        wr->sg_list = uct_daqiri_replay_slot(conn, wr->wr_id)->sge;
    }
}


void uct_daqiri_batch_swap_log(uct_daqiri_conn_t *conn, dq_replay_log_t *log)
{
    uct_daqiri_batch_t *batch = conn->iface->tx.batch;
    dq_replay_log_t before    = conn->replay;

    if (batch == NULL) {
        conn->replay = *log;
    } else {
        uct_daqiri_batch_lock(batch);
        conn->replay = *log;
        uct_daqiri_batch_point(batch, conn);
        uct_daqiri_batch_unlock(batch);
    }
    *log = before;
}


/* Whether the timer had to post lately. The program is then expected not to call progress
 * for a while. */
static int uct_daqiri_batch_is_resting(const uct_daqiri_batch_t *batch)
{
    return (int64_t)(batch->rest - batch->iface->progress_epoch) > 0;
}


/* Under the lock. A request that must not wait is posted with those that are held. */
static int uct_daqiri_batch_add(uct_daqiri_batch_t *batch,
                                uct_daqiri_conn_t *conn, int is_first,
                                struct ibv_send_wr *wr)
{
    const int is_open   = batch->is_inside ||
                          (!is_first && !uct_daqiri_batch_is_resting(batch));
    const size_t length = uct_daqiri_batch_length(wr);
    const int waits     = is_open &&
                          uct_daqiri_batch_may_wait(batch, wr, length);
    uint32_t send_end;

    if ((waits || (batch->count > 0)) &&
        uct_daqiri_batch_has_room(wr, length)) {
        uct_daqiri_batch_hold(batch, conn, wr);
        if (!waits) {
            uct_daqiri_batch_do_flush(batch);
        }
        return 0;
    }
    uct_daqiri_batch_do_flush(batch);
    return (conn->batch.error != 0)
                   ? 0 : uct_daqiri_qp_post(conn->qp.verbs, wr, &send_end);
}


/* Outside of progress. The second request of an epoch makes the conn a stream. A conn
 * that has posted in this epoch posts nothing directly. A streaming conn counts as if it
 * had posted in the next epoch already. It stops streaming if that epoch gets one request
 * only. */
static void uct_daqiri_batch_note(uct_daqiri_conn_t *conn, uint64_t epoch)
{
    if (conn->batch.last_post_epoch < epoch) {
        conn->batch.last_post_epoch = epoch;
    } else if ((conn->batch.last_post_epoch == epoch) && conn->batch.is_streaming) {
        conn->batch.is_streaming = 0;
    } else {
        conn->batch.last_post_epoch = epoch + 1;
        conn->batch.is_streaming    = 1;
    }
}


int uct_daqiri_batch_post(uct_daqiri_conn_t *conn, struct ibv_send_wr *wr)
{
    uct_daqiri_batch_t *batch = conn->iface->tx.batch;
    const uint64_t epoch      = batch->iface->progress_epoch;
    const int is_first        = conn->batch.last_post_epoch < epoch;
    int ret                   = 0;

    if (!batch->is_inside) {
        uct_daqiri_batch_note(conn, epoch);
    }
    uct_daqiri_batch_lock(batch);
    if (batch->conn != conn) {
        uct_daqiri_batch_do_flush(batch);
    }
    if (conn->batch.error == 0) { /* else it stays behind the refused one */
        ret = uct_daqiri_batch_add(batch, conn, is_first, wr);
    }
    uct_daqiri_batch_unlock(batch);
    return ret;
}


void uct_daqiri_batch_flush(uct_daqiri_iface_t *iface)
{
    uct_daqiri_batch_t *batch = iface->tx.batch;

    if (batch == NULL) {
        return;
    }
    batch->is_used = 0;
    uct_daqiri_batch_lock(batch);
    uct_daqiri_batch_do_flush(batch);
    uct_daqiri_batch_unlock(batch);
    uct_daqiri_batch_take_failure(batch);
}


/* ---- The timer; async ---- */

static void uct_daqiri_batch_note_late(uct_daqiri_batch_t *batch)
{
    uint64_t turns = UCT_DAQIRI_BATCH_REST
                     << ucs_min(batch->misses, UCT_DAQIRI_BATCH_DOUBLE);

    batch->rest = __atomic_load_n(&batch->iface->progress_epoch, __ATOMIC_RELAXED) +
                  turns;
    batch->misses++;
    batch->iface->count->batches_late++;
}


/* Under the lock. */
static void uct_daqiri_batch_expire(uct_daqiri_batch_t *batch)
{
    if ((batch->count > 0) && (batch->serial == batch->timed)) {
        uct_daqiri_batch_do_flush(batch);
        uct_daqiri_batch_note_late(batch);
    }
    batch->is_timed = 0;
    if (batch->count > 0) {
        uct_daqiri_batch_set_timer(batch); /* a later batch */
    }
}


static void uct_daqiri_batch_on_timer(int fd, ucs_event_set_types_t events,
                                      void *arg)
{
    uct_daqiri_batch_t *batch = arg;
    uint64_t expirations;

    (void)events;
    if (read(fd, &expirations, sizeof(expirations)) <= 0) {
        return;
    }
    pthread_mutex_lock(&batch->timer_lock);
    if (uct_daqiri_batch_trylock(batch)) {
        uct_daqiri_batch_expire(batch);
        uct_daqiri_batch_unlock(batch);
    } else {
        uct_daqiri_batch_wind(batch); /* the program is posting now */
    }
    pthread_mutex_unlock(&batch->timer_lock);
}


/* ---- Birth and death ---- */

static ucs_status_t uct_daqiri_batch_open_timer(uct_daqiri_batch_t *batch)
{
    ucs_status_t status;

    batch->timer_fd = timerfd_create(CLOCK_MONOTONIC,
                                     TFD_NONBLOCK | TFD_CLOEXEC);
    if (batch->timer_fd < 0) {
        uct_daqiri_log_verb(UCS_LOG_LEVEL_ERROR, UCT_DAQIRI_NAME,
                            "timerfd_create", errno);
        return UCS_ERR_IO_ERROR;
    }
    status = ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                         batch->timer_fd,
                                         UCS_EVENT_SET_EVREAD,
                                         uct_daqiri_batch_on_timer, batch,
                                         NULL);
    if (status != UCS_OK) {
        close(batch->timer_fd);
    }
    return status;
}


ucs_status_t uct_daqiri_batch_init(uct_daqiri_iface_t *iface,
                                   const uct_daqiri_iface_config_t *config)
{
    struct timespec hold;
    uct_daqiri_batch_t *batch;
    ucs_status_t status;

    if (!uct_daqiri_batch_is_wanted(iface, config)) {
        return UCS_OK;
    }

    batch = ucs_calloc(1, sizeof(*batch), "daqiri_batch");
    if (batch == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    ucs_sec_to_timespec(config->tx_batch_timeout, &hold);
    batch->iface         = iface;
    batch->hold.it_value = hold;
    pthread_mutex_init(&batch->timer_lock, NULL);
    status = uct_daqiri_batch_open_timer(batch);
    if (status != UCS_OK) {
        pthread_mutex_destroy(&batch->timer_lock);
        ucs_free(batch);
        return status;
    }
    iface->tx.batch = batch;
    return UCS_OK;
}


void uct_daqiri_batch_close(uct_daqiri_iface_t *iface)
{
    uct_daqiri_batch_t *batch = iface->tx.batch;
    uct_daqiri_conn_t *conn;

    if (batch == NULL) {
        return;
    }
    ucs_async_remove_handler(batch->timer_fd, 1);
    uct_daqiri_batch_await_timer(batch);
    uct_daqiri_batch_flush(iface);
    iface->tx.batch = NULL;
    ucs_list_for_each(conn, &iface->conns, iface_link) {
        uct_daqiri_tx_set_direct(conn);
    }
    close(batch->timer_fd);
    pthread_mutex_destroy(&batch->timer_lock);
    ucs_free(batch);
}
