/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slots of a conn's send ledger; see daqiri_slots.h.
 */
#include "conn/daqiri_slots.h"

#include "conn/daqiri_op.h"
#include "conn/daqiri_replay.h"
#include "iface/daqiri_iface.h"

enum { UCT_DAQIRI_SLOTS_FACTOR = 4 };

/* Three arrays of one length. */
typedef struct {
    uint32_t        *signal;
    uct_daqiri_op_t *op;
    dq_replay_log_t log; /* without slots if RECOVERY=n                      */
} uct_daqiri_slots_t;


/* Makes none if this interface does not recover. */
static ucs_status_t uct_daqiri_slots_alloc_log(const uct_daqiri_iface_t *iface,
                                               uint32_t count, dq_replay_log_t *log)
{
    size_t length = ucs_max(iface->config.max_inline + sizeof(struct ibv_sge),
                            iface->config.max_sge * sizeof(struct ibv_sge));
    void *slots;

    if (!iface->config.recovery) {
        return UCS_OK;
    }
    /* Each slot starts a cache line, so a short request lies in one line. */
    log->mask   = count - 1;
    log->stride = ucs_align_up(sizeof(uct_daqiri_replay_t) + length,
                               UCS_SYS_CACHE_LINE_SIZE);
    if (ucs_posix_memalign(&slots, UCS_SYS_CACHE_LINE_SIZE, count * log->stride,
                           "daqiri_replay") != 0) {
        return UCS_ERR_NO_MEMORY;
    }
    /* Touches the pages now, so that the first messages do not fault them in one by
     * one. */
    memset(slots, 0, count * log->stride);
    log->slots = slots;
    return UCS_OK;
}


/* Copies the entry of a request to another log. Does nothing without a log. */
static void uct_daqiri_slots_move_log(const dq_replay_log_t *to,
                                      const dq_replay_log_t *from, uint32_t id)
{
    uct_daqiri_replay_t *replay;

    if (from->slots == NULL) {
        return;
    }
    replay = (uct_daqiri_replay_t*)dq_replay_slot(to, id);
    memcpy(replay, dq_replay_slot(from, id), from->stride);
    if (replay->flags & IBV_SEND_INLINE) {
        replay->sge[0].addr = (uintptr_t)&replay->sge[1];
    }
}


static void uct_daqiri_slots_free(uct_daqiri_slots_t *slots)
{
    ucs_free(slots->log.slots);
    ucs_free(slots->op);
    ucs_free(slots->signal);
}


static ucs_status_t uct_daqiri_slots_alloc(const uct_daqiri_iface_t *iface,
                                           uint32_t count,
                                           uct_daqiri_slots_t *slots)
{
    uint32_t i;

    *slots = (uct_daqiri_slots_t){
        .signal = ucs_malloc(count * sizeof(*slots->signal), "daqiri_ledger"),
        .op     = ucs_malloc(count * sizeof(*slots->op), "daqiri_ops"),
    };
    if ((slots->signal == NULL) || (slots->op == NULL) ||
        (uct_daqiri_slots_alloc_log(iface, count, &slots->log) != UCS_OK)) {
        uct_daqiri_slots_free(slots);
        return UCS_ERR_NO_MEMORY;
    }
    for (i = 0; i < count; i++) {
        slots->op[i] = uct_daqiri_op_none;
    }
    return UCS_OK;
}


ucs_status_t uct_daqiri_slots_init(uct_daqiri_conn_t *conn)
{
    const uct_daqiri_iface_t *iface = conn->iface;
    uint32_t depth = ucs_min(iface->config.sq_depth, UCT_DAQIRI_SLOTS_START);
    uct_daqiri_slots_t slots;
    ucs_status_t status;

    status = uct_daqiri_slots_alloc(iface, dq_sq_slots(depth), &slots);
    if (status != UCS_OK) {
        return status;
    }
    dq_sq_init(&conn->sq, depth, iface->config.signal_every, 0, slots.signal);
    conn->ops.slot    = slots.op;
    conn->replay      = slots.log;
    conn->slots.most  = iface->config.sq_depth;
    conn->slots.since = conn->sq.posted;
    return UCS_OK;
}


void uct_daqiri_slots_cleanup(uct_daqiri_conn_t *conn)
{
    uct_daqiri_slots_t slots = {
        .signal = conn->sq.slot,
        .op     = conn->ops.slot,
        .log    = conn->replay,
    };

    uct_daqiri_slots_free(&slots);
}


int uct_daqiri_slots_grow(uct_daqiri_conn_t *conn, dq_replay_log_t *log_p)
{
    const uct_daqiri_iface_t *iface = conn->iface;
    uct_daqiri_slots_t slots;
    uint32_t depth, mask, id;

    uct_daqiri_assert_progress(iface);
    depth = ucs_min(conn->sq.depth * UCT_DAQIRI_SLOTS_FACTOR, conn->slots.most);
    if (uct_daqiri_slots_alloc(iface, dq_sq_slots(depth), &slots) != UCS_OK) {
        return 0;
    }
    mask = dq_sq_slots(depth) - 1;
    for (id = conn->sq.retired; id != conn->sq.posted; id++) {
        slots.op[id & mask] = conn->ops.slot[id & conn->sq.mask];
        uct_daqiri_slots_move_log(&slots.log, &conn->replay, id);
    }
    *log_p = slots.log;

    ucs_free(conn->ops.slot);
    conn->ops.slot    = slots.op;
    conn->slots.since = conn->sq.posted;
    ucs_free(dq_sq_grow(&conn->sq, depth, iface->config.signal_every, slots.signal));
    conn->iface->count->slots_grown++;
    DQ_ASSERT(dq_sq_check(&conn->sq, &iface->tx.ledger));
    return 1;
}


void uct_daqiri_slots_free_log(dq_replay_log_t *log)
{
    ucs_free(log->slots);
}
