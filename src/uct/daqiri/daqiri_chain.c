/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Holding work requests for one doorbell; see daqiri_chain.h.
 */
#include "daqiri_chain.h"

#include <sys/timerfd.h>

enum {
    UCT_DAQIRI_CHAIN_LONG   = 4200, /* bytes; more are posted at once        */
    /* progress calls for which nothing is held after the timer had to ring;
     * twice as many each time, so often */
    UCT_DAQIRI_CHAIN_REST   = 64,
    UCT_DAQIRI_CHAIN_DOUBLE = 10
};


/* ---- Is it worth it? ---- */

static int uct_daqiri_chain_is_wanted(uct_daqiri_iface_t *iface,
                                      const uct_daqiri_iface_config_t *config)
{
    return (config->tx_chain == UCS_CONFIG_AUTO)
                   ? uct_daqiri_port_is_emulated(
                              uct_daqiri_iface_md(iface)->context->device)
                   : (config->tx_chain == UCS_CONFIG_ON);
}


/* ---- The lock ---- */

static inline int uct_daqiri_chain_trylock(uct_daqiri_chain_t *chain)
{
    return !__atomic_test_and_set(&chain->is_locked, __ATOMIC_ACQUIRE);
}


static void uct_daqiri_chain_await_timer(uct_daqiri_chain_t *chain)
{
    pthread_mutex_lock(&chain->timer_lock);
    pthread_mutex_unlock(&chain->timer_lock);
}


/* Whom the timer keeps waiting sleeps until it is done: to spin would keep it
 * from the processor that both may have. */
static UCS_F_NOINLINE void uct_daqiri_chain_await(uct_daqiri_chain_t *chain)
{
    while (!uct_daqiri_chain_trylock(chain)) {
        uct_daqiri_chain_await_timer(chain);
    }
}


/* Nearly always free, for the timer seldom rings, and taken for each message: of
 * a mutex, 64 instructions and six jumps into other pages go to waste. */
static inline void uct_daqiri_chain_lock(uct_daqiri_chain_t *chain)
{
    if (ucs_unlikely(!uct_daqiri_chain_trylock(chain))) {
        uct_daqiri_chain_await(chain);
    }
}


static inline void uct_daqiri_chain_unlock(uct_daqiri_chain_t *chain)
{
    __atomic_clear(&chain->is_locked, __ATOMIC_RELEASE);
}


/* ---- Posting what is held; under the lock ---- */

/* What the device refuses stays in the ledger, and nothing of the conn may
 * be posted behind it. Progress has to see to the rest. */
static void uct_daqiri_chain_fail(uct_daqiri_chain_t *chain, int error,
                                  uint32_t hole)
{
    uct_daqiri_conn_t *conn = chain->conn;

    conn->chain_error  = error;
    conn->chain_hole   = hole;
    conn->chain_failed = chain->failed;
    chain->failed      = conn;
}


static void uct_daqiri_chain_do_ring(uct_daqiri_chain_t *chain)
{
    struct ibv_send_wr *bad_wr;
    unsigned i;
    int ret;

    if (chain->count == 0) {
        return;
    }
    for (i = 0; i + 1 < chain->count; i++) {
        chain->held[i].wr.next = &chain->held[i + 1].wr;
    }
    chain->held[i].wr.next = NULL;

    ret = ibv_post_send(chain->conn->qp, &chain->held[0].wr, &bad_wr);
    if (ucs_unlikely(ret != 0)) {
        uct_daqiri_chain_fail(chain, ret, bad_wr->wr_id);
    }
    chain->iface->count->chains++;
    chain->iface->count->chained += chain->count;
    chain->serial++;
    chain->count = 0;
}


static size_t uct_daqiri_chain_length(const struct ibv_send_wr *wr)
{
    size_t length = 0;
    int i;

    for (i = 0; i < wr->num_sge; i++) {
        length += wr->sg_list[i].length;
    }
    return length;
}


/* Whether there is room for what is not remembered (uct_daqiri_chain_copy()). */
static int uct_daqiri_chain_has_room(const struct ibv_send_wr *wr,
                                     size_t length)
{
    return (wr->send_flags & IBV_SEND_INLINE)
                   ? (length <= UCT_DAQIRI_CHAIN_INLINE)
                   : (wr->num_sge <= UCT_DAQIRI_CHAIN_SGE);
}


/* Only what is short is worth waiting for: the device could be busy with the first
 * of several long ones while the next is made ready, and what answers a chain of
 * long READs comes in a flood that a wire loses (docs/bench.md). Outside of
 * progress it is messages alone. */
static int uct_daqiri_chain_may_wait(const uct_daqiri_chain_t *chain,
                                     const struct ibv_send_wr *wr,
                                     size_t length)
{
    const int is_message = (wr->opcode == IBV_WR_SEND) ||
                           (wr->opcode == IBV_WR_SEND_WITH_IMM);

    return (is_message || chain->is_inside) &&
           (length <= UCT_DAQIRI_CHAIN_LONG);
}


/* What the request points to belongs to the caller, who may change it when we
 * return, unless the conn remembers it (daqiri_redo.h). */
static void uct_daqiri_chain_copy(uct_daqiri_held_t *held,
                                  const uct_daqiri_conn_t *conn,
                                  const struct ibv_send_wr *wr)
{
    uint8_t *data = held->data;
    int i;

    /* as far as an RC QP reads it */
    memcpy(&held->wr, wr, offsetof(struct ibv_send_wr, qp_type));
    if (conn->redo.slots != NULL) {
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


static void uct_daqiri_chain_wind(const uct_daqiri_chain_t *chain)
{
    (void)timerfd_settime(chain->timer_fd, 0, &chain->hold, NULL);
}


/* To set a timer costs as much as a doorbell, so it is left alone while chains
 * come and go: a chain waits for one to two times TX_HOLD, counted from when the
 * program was last seen to post. */
static void uct_daqiri_chain_set_timer(uct_daqiri_chain_t *chain)
{
    chain->is_timed = 1;
    chain->timed    = chain->serial;
    uct_daqiri_chain_wind(chain);
}


static void uct_daqiri_chain_hold(uct_daqiri_chain_t *chain,
                                  uct_daqiri_conn_t *conn,
                                  const struct ibv_send_wr *wr)
{
    chain->conn    = conn;
    chain->alone   = 0;
    chain->is_used = 1;
    uct_daqiri_chain_copy(&chain->held[chain->count], conn, wr);
    chain->count++;
    if (chain->count == UCT_DAQIRI_CHAIN_MAX) {
        uct_daqiri_chain_do_ring(chain);
    } else if (!chain->is_timed && !chain->is_inside) {
        uct_daqiri_chain_set_timer(chain);
    }
}


/* ---- Progress ---- */

/* Takes note of what was refused when nobody could be told. */
static void uct_daqiri_chain_see_failure(uct_daqiri_chain_t *chain)
{
    uct_daqiri_conn_t *conn;
    uint32_t hole = 0;
    int error     = 0;

    do {
        uct_daqiri_chain_lock(chain);
        conn = chain->failed;
        if (conn != NULL) {
            error             = conn->chain_error;
            hole              = conn->chain_hole;
            conn->chain_error = 0;
            chain->failed     = conn->chain_failed;
        }
        uct_daqiri_chain_unlock(chain);
        if (conn != NULL) {
            uct_daqiri_tx_hole(conn, hole, error);
        }
    } while (conn != NULL);
}


/* A program that once made us late is believed not to progress for a while. */
static int uct_daqiri_chain_rests(const uct_daqiri_chain_t *chain)
{
    return (int64_t)(chain->rest - chain->iface->turn) > 0;
}


/* Under the lock. What must not wait takes along what does. */
static int uct_daqiri_chain_add(uct_daqiri_chain_t *chain,
                                uct_daqiri_conn_t *conn, int is_first,
                                struct ibv_send_wr *wr)
{
    const int is_open   = chain->is_inside ||
                          (!is_first && !uct_daqiri_chain_rests(chain));
    const size_t length = uct_daqiri_chain_length(wr);
    const int waits     = is_open &&
                          uct_daqiri_chain_may_wait(chain, wr, length);
    struct ibv_send_wr *bad_wr;

    if ((waits || (chain->count > 0)) &&
        uct_daqiri_chain_has_room(wr, length)) {
        uct_daqiri_chain_hold(chain, conn, wr);
        if (!waits) {
            uct_daqiri_chain_do_ring(chain);
        }
        return 0;
    }
    uct_daqiri_chain_do_ring(chain);
    return (conn->chain_error != 0) ? 0 : ibv_post_send(conn->qp, wr, &bad_wr);
}


/* Outside of progress: the second request of a turn makes a stream. What has
 * posted in a turn does not go out alone, and a stream has posted in the next one
 * already; it is none any more if its first request there remains the only one. */
static void uct_daqiri_chain_note(uct_daqiri_conn_t *conn, uint64_t turn)
{
    if (conn->chain_turn < turn) {
        conn->chain_turn = turn;
    } else if ((conn->chain_turn == turn) && conn->is_streaming) {
        conn->is_streaming = 0;
    } else {
        conn->chain_turn   = turn + 1;
        conn->is_streaming = 1;
    }
}


int uct_daqiri_chain_post(uct_daqiri_conn_t *conn, struct ibv_send_wr *wr)
{
    uct_daqiri_chain_t *chain = conn->iface->tx.chain;
    const uint64_t turn       = chain->iface->turn;
    const int is_first        = conn->chain_turn < turn;
    int ret                   = 0;

    if (!chain->is_inside) {
        uct_daqiri_chain_note(conn, turn);
    }
    uct_daqiri_chain_lock(chain);
    if (chain->conn != conn) {
        uct_daqiri_chain_do_ring(chain);
    }
    if (conn->chain_error == 0) { /* else behind what was refused */
        ret = uct_daqiri_chain_add(chain, conn, is_first, wr);
    }
    uct_daqiri_chain_unlock(chain);
    return ret;
}


void uct_daqiri_chain_ring(uct_daqiri_iface_t *iface)
{
    uct_daqiri_chain_t *chain = iface->tx.chain;

    if (chain == NULL) {
        return;
    }
    chain->is_used = 0;
    uct_daqiri_chain_lock(chain);
    uct_daqiri_chain_do_ring(chain);
    uct_daqiri_chain_unlock(chain);
    uct_daqiri_chain_see_failure(chain);
}


/* ---- The timer; async ---- */

static void uct_daqiri_chain_miss(uct_daqiri_chain_t *chain)
{
    uint64_t turns = UCT_DAQIRI_CHAIN_REST
                     << ucs_min(chain->misses, UCT_DAQIRI_CHAIN_DOUBLE);

    chain->rest = __atomic_load_n(&chain->iface->turn, __ATOMIC_RELAXED) +
                  turns;
    chain->misses++;
    chain->iface->count->chains_late++;
}


/* Under the lock. */
static void uct_daqiri_chain_expire(uct_daqiri_chain_t *chain)
{
    if ((chain->count > 0) && (chain->serial == chain->timed)) {
        uct_daqiri_chain_do_ring(chain);
        uct_daqiri_chain_miss(chain);
    }
    chain->is_timed = 0;
    if (chain->count > 0) {
        uct_daqiri_chain_set_timer(chain); /* a younger one */
    }
}


static void uct_daqiri_chain_on_timer(int fd, ucs_event_set_types_t events,
                                      void *arg)
{
    uct_daqiri_chain_t *chain = arg;
    uint64_t expirations;

    (void)events;
    if (read(fd, &expirations, sizeof(expirations)) <= 0) {
        return;
    }
    pthread_mutex_lock(&chain->timer_lock);
    if (uct_daqiri_chain_trylock(chain)) {
        uct_daqiri_chain_expire(chain);
        uct_daqiri_chain_unlock(chain);
    } else {
        uct_daqiri_chain_wind(chain); /* the program posts right now */
    }
    pthread_mutex_unlock(&chain->timer_lock);
}


/* ---- Birth and death ---- */

static ucs_status_t uct_daqiri_chain_open_timer(uct_daqiri_chain_t *chain)
{
    ucs_status_t status;

    chain->timer_fd = timerfd_create(CLOCK_MONOTONIC,
                                     TFD_NONBLOCK | TFD_CLOEXEC);
    if (chain->timer_fd < 0) {
        uct_daqiri_log_verb(UCS_LOG_LEVEL_ERROR, UCT_DAQIRI_NAME,
                            "timerfd_create", errno);
        return UCS_ERR_IO_ERROR;
    }
    status = ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                         chain->timer_fd,
                                         UCS_EVENT_SET_EVREAD,
                                         uct_daqiri_chain_on_timer, chain,
                                         NULL);
    if (status != UCS_OK) {
        close(chain->timer_fd);
    }
    return status;
}


ucs_status_t uct_daqiri_chain_init(uct_daqiri_iface_t *iface,
                                   const uct_daqiri_iface_config_t *config)
{
    struct timespec hold;
    uct_daqiri_chain_t *chain;
    ucs_status_t status;

    if (!uct_daqiri_chain_is_wanted(iface, config)) {
        return UCS_OK;
    }

    chain = ucs_calloc(1, sizeof(*chain), "daqiri_chain");
    if (chain == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    ucs_sec_to_timespec(config->tx_hold, &hold);
    chain->iface         = iface;
    chain->hold.it_value = hold;
    pthread_mutex_init(&chain->timer_lock, NULL);
    status = uct_daqiri_chain_open_timer(chain);
    if (status != UCS_OK) {
        pthread_mutex_destroy(&chain->timer_lock);
        ucs_free(chain);
        return status;
    }
    iface->tx.chain = chain;
    return UCS_OK;
}


void uct_daqiri_chain_close(uct_daqiri_iface_t *iface)
{
    uct_daqiri_chain_t *chain = iface->tx.chain;
    uct_daqiri_conn_t *conn;

    if (chain == NULL) {
        return;
    }
    ucs_async_remove_handler(chain->timer_fd, 1);
    uct_daqiri_chain_await_timer(chain);
    uct_daqiri_chain_ring(iface);
    iface->tx.chain = NULL;
    ucs_list_for_each(conn, &iface->conns, iface_link) {
        uct_daqiri_tx_set_alone(conn);
    }
    close(chain->timer_fd);
    pthread_mutex_destroy(&chain->timer_lock);
    ucs_free(chain);
}
