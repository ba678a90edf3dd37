/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive buffers of an interface. The only ibv_post_srq_recv is here.
 *
 * A buffer as the device and UCP see it. The pool hands out `point`:
 *
 *              UCP's headroom (rx_headroom)         point
 *         |<-------------------------------------->|
 *   [index][release]. . . . . . . . . . . [ header ][ data ... ]
 *                  ^desc                  ^the RECV starts here
 *
 * UCP may keep the buffer. Then it writes into the headroom, and only there. [index] and
 * [release] are written before each upcall: nobody writes to a buffer before its first
 * message, because on a device in user space it has no memory until then. UCP chooses the
 * headroom, which may be zero. Then both lie where the header was.
 *
 * On a device in user space a RECV has two pieces. The first is a head, a small copy of
 * what is above, and the second is the rest of the buffer:
 *
 *   [index][release]. . .[ header ][ data ]      the heads of a chunk, side by side
 *   [index][release]. . .          .      [ data ... ]      the buffers
 *                                  ^point
 *
 * A message that fits into the head is handed up there, and the buffer needs no memory.
 * Of a longer one, the beginning is copied to the buffer. A device of hardware holds all
 * pages in any case, and has one piece.
 */
#include "base/daqiri_recv.h"

#include "base/daqiri_log.h"
#include "base/daqiri_pool.h"
#include "base/daqiri_port.h"
#include "iface/daqiri_iface.h"


enum {
    UCT_DAQIRI_RECV_RESERVE  = 8,  /* this part of the buffers is for later peers */
    /* Bytes of a head, with all that is in front of it: eight in a page, which are the
     * first window of a peer. */
    UCT_DAQIRI_RECV_HEAD     = 512,
    UCT_DAQIRI_RECV_HEAD_MIN = 256 /* of a message, if UCP's headroom is large */
};


/* Bytes of a message in the head, from its header on. */
static size_t uct_daqiri_recv_head(uct_daqiri_iface_t *iface, size_t lead)
{
    size_t head = UCT_DAQIRI_RECV_HEAD - ucs_min(lead, UCT_DAQIRI_RECV_HEAD);

    return (uct_daqiri_recv_pieces(iface) > 1)
                   ? ucs_min(ucs_max(head, UCT_DAQIRI_RECV_HEAD_MIN),
                             iface->config.seg_size) : iface->config.seg_size;
}


uint32_t uct_daqiri_recv_pieces(uct_daqiri_iface_t *iface)
{
    const struct ibv_device *device = uct_daqiri_iface_md(iface)->context->device;

    return uct_daqiri_port_is_in_user_space(device) ? UCT_DAQIRI_RECV_PIECES : 1;
}


ucs_status_t uct_daqiri_recv_open_pool(uct_daqiri_iface_t *iface, size_t align,
                                       size_t offset)
{
    uct_daqiri_pool_params_t params = {
        .name   = "daqiri_rx",
        .pd     = uct_daqiri_iface_md(iface)->pd,
        .limit  = iface->rx.ledger.limit,
        .lead   = iface->config.headroom + sizeof(uct_daqiri_recv_desc_t),
        .length = iface->config.seg_size,
        .align  = align,
        .offset = offset,
    };

    iface->config.rx_head = uct_daqiri_recv_head(iface, params.lead);
    if (iface->config.rx_head < iface->config.seg_size) {
        params.head = iface->config.rx_head;
    }
    return uct_daqiri_pool_init(&iface->rx.pool, &params);
}


void *uct_daqiri_recv_join(uct_daqiri_iface_t *iface, uint32_t index)
{
    const uct_daqiri_buf_t *buf = &iface->rx.pool.bufs[index];

    memcpy((dq_msg_hdr_t*)buf->buf - 1, (dq_msg_hdr_t*)buf->head - 1,
           iface->config.rx_head);
    return buf->buf;
}


static void uct_daqiri_recv_fill(uct_daqiri_iface_t *iface, uint32_t index)
{
    const uct_daqiri_buf_t *buf = &iface->rx.pool.bufs[index];
    uct_daqiri_recv_t *recv     = &iface->rx.recvs[index];

    size_t head                 = iface->config.rx_head;
    size_t rest                 = iface->config.seg_size - head;

    recv->sge[0] = (struct ibv_sge){
        .addr   = (uintptr_t)buf->head - sizeof(dq_msg_hdr_t),
        .length = head,
        .lkey   = buf->lkey,
    };
    recv->sge[1] = (struct ibv_sge){
        .addr   = (uintptr_t)buf->buf - sizeof(dq_msg_hdr_t) + head,
        .length = rest,
        .lkey   = buf->lkey,
    };
    recv->wr     = (struct ibv_recv_wr){
        .wr_id   = index,
        .sg_list = recv->sge,
        .num_sge = (rest > 0) ? 2 : 1,
    };
}


ucs_status_t uct_daqiri_recv_make(uct_daqiri_iface_t *iface, uint32_t count,
                                  uint32_t *first_p)
{
    ucs_status_t status;
    uint32_t index;

    status = uct_daqiri_pool_grow(&iface->rx.pool, count, first_p);
    if (status != UCS_OK) {
        return status;
    }

    for (index = *first_p; index < *first_p + count; index++) {
        uct_daqiri_recv_fill(iface, index);
    }
    return UCS_OK;
}


/* The device has taken the RECVs before the one that it reports. */
static uint32_t uct_daqiri_recv_count_taken(const uct_daqiri_iface_t *iface,
                                            const uint32_t *index,
                                            uint32_t count,
                                            const struct ibv_recv_wr *bad_wr)
{
    uint32_t i;

    for (i = 0; i < count; i++) {
        if (&iface->rx.recvs[index[i]].wr == bad_wr) {
            return i;
        }
    }
    return 0;
}


uint32_t uct_daqiri_recv_post(uct_daqiri_iface_t *iface, const uint32_t *index,
                              uint32_t count)
{
    struct ibv_recv_wr *first, *bad_wr = NULL;
    struct ibv_recv_wr **link = &first;
    uint32_t i;
    int ret;

    for (i = 0; i < count; i++) {
        *link = &iface->rx.recvs[index[i]].wr;
        link  = &(*link)->next;
    }
    *link = NULL;

    ret = ibv_post_srq_recv(iface->rx.srq, first, &bad_wr);
    if (ucs_likely(ret == 0)) {
        return count;
    }
    uct_daqiri_log_verb(UCS_LOG_LEVEL_DEBUG, UCT_DAQIRI_NAME,
                        "ibv_post_srq_recv", ret);
    return uct_daqiri_recv_count_taken(iface, index, count, bad_wr);
}


void uct_daqiri_recv_refused(uct_daqiri_iface_t *iface)
{
    iface->count->recvs_refused++;
    iface->rx.is_refused = 1;
    uct_daqiri_iface_add_work(iface, UCT_DAQIRI_WORK_LISTS);
    if (!iface->rx.is_refusal_logged) {
        iface->rx.is_refusal_logged = 1;
        ucs_warn("daqiri: %s refuses RECVs that fit its shared receive queue: "
                 "they are offered again, and senders may have to wait",
                 iface->config.port_name);
    }
}


ucs_status_t uct_daqiri_recv_add(uct_daqiri_iface_t *iface, uint32_t count)
{
    ucs_status_t status;
    uint32_t first, i;

    uct_daqiri_assert_progress(iface);
    status = uct_daqiri_recv_make(iface, count, &first);
    if (status != UCS_OK) {
        return status;
    }
    dq_rx_grow(&iface->rx.ledger, count);
    for (i = 0; i < count; i++) {
        uct_daqiri_pool_put(&iface->rx.pool, first + i);
    }
    return UCS_OK;
}


/* Handlers keep buffers. Makes others, as far as the limit allows: an eighth more than
 * there are, because it costs a registration, and most programs keep few. The pool has
 * room for chunks of UCT_DAQIRI_WINDOW_LEAST. */
static void uct_daqiri_recv_grow(uct_daqiri_iface_t *iface)
{
    uint32_t count = ucs_max(dq_rx_short(&iface->rx.ledger),
                             ucs_max(iface->rx.ledger.total / 8,
                                     (uint32_t)UCT_DAQIRI_WINDOW_LEAST));

    count = ucs_min(count, dq_rx_room(&iface->rx.ledger));
    if (count > 0) {
        (void)uct_daqiri_recv_add(iface, count);
    }
}


void uct_daqiri_recv_post_free(uct_daqiri_iface_t *iface, uint32_t count)
{
    uct_daqiri_pool_t *pool = &iface->rx.pool;
    uint32_t *top;
    uint32_t n, taken;

    while (count > 0) {
        n     = ucs_min(count, UCT_DAQIRI_POLL_MAX);
        top   = &pool->free_stack[pool->free_count - n];
        taken = uct_daqiri_recv_post(iface, top, n);
        pool->free_count -= taken;
        dq_rx_posted(&iface->rx.ledger, taken);
        if (ucs_unlikely(taken < n)) {
            memmove(top, top + taken, (n - taken) * sizeof(*top));
            uct_daqiri_recv_refused(iface);
            return;
        }
        count -= n;
    }
}


void uct_daqiri_recv_refill(uct_daqiri_iface_t *iface)
{
    uct_daqiri_assert_progress(iface);
    if (ucs_unlikely(dq_rx_short(&iface->rx.ledger) > 0)) {
        uct_daqiri_recv_grow(iface);
    }
    uct_daqiri_recv_post_free(iface, dq_rx_due(&iface->rx.ledger));
}


void uct_daqiri_recv_catch_up(uct_daqiri_iface_t *iface)
{
    uct_daqiri_recv_post_free(iface, dq_rx_due_idle(&iface->rx.ledger));
}


void uct_daqiri_recv_release_desc(uct_recv_desc_t *self, void *desc)
{
    uct_daqiri_iface_t *iface = ucs_container_of(self, uct_daqiri_iface_t,
                                                 rx.release);
    uct_daqiri_recv_desc_t before;

    memcpy(&before, UCS_PTR_BYTE_OFFSET(desc, -sizeof(before)), sizeof(before));
    dq_rx_release_held(&iface->rx.ledger);
    uct_daqiri_pool_put(&iface->rx.pool, before.index);
    uct_daqiri_recv_refill(iface);
}


int uct_daqiri_recv_take_spare(uct_daqiri_iface_t *iface, uint32_t count)
{
    uint32_t spare = __atomic_load_n(&iface->rx.spare, __ATOMIC_ACQUIRE);

    while (spare >= count) {
        if (__atomic_compare_exchange_n(&iface->rx.spare, &spare,
                                        spare - count, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            return 1;
        }
    }
    return 0;
}


uint32_t uct_daqiri_recv_reserve(const uct_daqiri_iface_t *iface)
{
    return iface->rx.pool.limit / UCT_DAQIRI_RECV_RESERVE;
}


uint32_t uct_daqiri_recv_left(uct_daqiri_iface_t *iface)
{
    return uct_daqiri_pool_room(&iface->rx.pool) +
           __atomic_load_n(&iface->rx.spare, __ATOMIC_RELAXED);
}


int uct_daqiri_recv_are_few(uct_daqiri_iface_t *iface)
{
    return uct_daqiri_recv_left(iface) < uct_daqiri_recv_reserve(iface);
}
