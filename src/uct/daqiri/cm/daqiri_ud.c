/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The carrier of the handshake: one UD QP beside the RC QPs, on the same port. It sends
 * frames and reports frames that arrive. It reads no more of the GRH than its length,
 * because the frame's cookie proves who has sent it.
 *
 * The carrier does not survive a failure of its CQ. Another CQ would need another QP, and
 * peers know this one by its number. Frames that are sent may still arrive, but no answer
 * does.
 *
 * Datagrams may be lost at either end. While all send slots are busy, the carrier takes
 * no frame. The handshake keeps some of them until a slot is free (daqiri_wait.h), and
 * sends all again.
 *
 * Anybody who knows the QP's number may send it datagrams of any length that the port
 * allows. A datagram that is longer than its RECV would end the QP (LOC_LEN). So bytes
 * that do not fit a slot go to memory that all RECVs share and nobody reads. This takes
 * two SGEs for each RECV, no more than the RC QPs take (UCX_DAQIRI_MAX_SGE). On a device
 * with one SGE ibv_create_qp() fails, and the log names it.
 *
 * A RECV that the device refuses is offered to it again with the next datagram, or after
 * a tick of the handshake's timer.
 *
 * A QP that fails is reset and keeps its number, which is part of the interface's
 * address. Peers need not learn another one. What it had received or was sending is lost
 * like any datagram.
 *
 * Threads: async. The thread that opens the interface opens and closes the carrier.
 */
#include "cm/daqiri_ud.h"

#include "base/daqiri_log.h"
#include "base/daqiri_md.h"
#include "iface/daqiri_iface.h"

enum {
    UCT_DAQIRI_UD_SLOT  = 192, /* bytes; a GRH and a frame fit               */
    UCT_DAQIRI_UD_JUNK  = DQ_WIRE_GRH_LEN + 4096 - UCT_DAQIRI_UD_SLOT, /* bytes:
                                  what else the longest has (IBV_MTU_4096)   */
    UCT_DAQIRI_UD_SGES  = 2,
    UCT_DAQIRI_UD_BATCH = 16,
    UCT_DAQIRI_UD_LEAST_MS = 5,
    UCT_DAQIRI_UD_MOST_MS  = 1000
};

#define UCT_DAQIRI_UD_QKEY    0x64717269u /* not privileged (IBA 10.2.5)     */
#define UCT_DAQIRI_UD_IS_SEND UCS_BIT(32) /* in wr_id                        */

DQ_STATIC_ASSERT(DQ_WIRE_GRH_LEN + DQ_FRAME_BYTES <= UCT_DAQIRI_UD_SLOT,
                 "a frame fits its slot");


static uint8_t *uct_daqiri_ud_send_slot(uct_daqiri_ud_t *ud, unsigned index)
{
    return ud->memory + (UCT_DAQIRI_UD_RECVS + index) * UCT_DAQIRI_UD_SLOT;
}


static uint8_t *uct_daqiri_ud_recv_slot(uct_daqiri_ud_t *ud, unsigned index)
{
    return ud->memory + index * UCT_DAQIRI_UD_SLOT;
}


static uint8_t *uct_daqiri_ud_junk(uct_daqiri_ud_t *ud)
{
    return uct_daqiri_ud_send_slot(ud, UCT_DAQIRI_UD_SENDS);
}


static int uct_daqiri_ud_post_recv(uct_daqiri_ud_t *ud, unsigned index)
{
    struct ibv_recv_wr *bad_wr;
    struct ibv_sge sge[UCT_DAQIRI_UD_SGES] = {
        {
            .addr   = (uintptr_t)uct_daqiri_ud_recv_slot(ud, index),
            .length = UCT_DAQIRI_UD_SLOT,
            .lkey   = ud->mr->lkey,
        },
        {
            .addr   = (uintptr_t)uct_daqiri_ud_junk(ud),
            .length = UCT_DAQIRI_UD_JUNK,
            .lkey   = ud->mr->lkey,
        },
    };
    struct ibv_recv_wr wr = {
        .wr_id   = index,
        .sg_list = sge,
        .num_sge = UCT_DAQIRI_UD_SGES,
    };

    return ibv_post_recv(ud->qp, &wr, &bad_wr);
}


/* Posts a RECV. A refused one waits for uct_daqiri_ud_offer(). Returns errno or 0. */
static int uct_daqiri_ud_give(uct_daqiri_iface_t *iface, unsigned index)
{
    uct_daqiri_ud_t *ud = &iface->cm.ud;
    int ret             = uct_daqiri_ud_post_recv(ud, index);

    if (ret != 0) {
        uct_daqiri_assert(ud->idle_count < UCT_DAQIRI_UD_RECVS);
        ud->idle[ud->idle_count++] = index;
        iface->count->ud_refused++;
    }
    return ret;
}


static void uct_daqiri_ud_offer(uct_daqiri_ud_t *ud)
{
    while ((ud->idle_count > 0) && (ud->lost == DQ_CAUSE_NONE) &&
           (uct_daqiri_ud_post_recv(ud, ud->idle[ud->idle_count - 1]) == 0)) {
        ud->idle_count--;
    }
}


static int uct_daqiri_ud_to_rts(uct_daqiri_iface_t *iface)
{
    struct ibv_qp *qp       = iface->cm.ud.qp;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = iface->config.port_num,
        .qkey     = UCT_DAQIRI_UD_QKEY,
    };
    int ret;

    ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                        IBV_QP_PORT | IBV_QP_QKEY);
    if (ret != 0) {
        return ret;
    }
    attr.qp_state = IBV_QPS_RTR;
    ret           = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    if (ret != 0) {
        return ret;
    }
    attr.qp_state = IBV_QPS_RTS;
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}


static struct ibv_qp *uct_daqiri_ud_create_qp(uct_daqiri_iface_t *iface)
{
    struct ibv_qp_init_attr init = {
        .send_cq = iface->cm.ud.cq,
        .recv_cq = iface->cm.ud.cq,
        .qp_type = IBV_QPT_UD,
        .cap     = {
            .max_send_wr  = UCT_DAQIRI_UD_SENDS,
            .max_recv_wr  = UCT_DAQIRI_UD_RECVS,
            .max_send_sge = 1,
            .max_recv_sge = UCT_DAQIRI_UD_SGES,
        },
    };

    return ibv_create_qp(uct_daqiri_iface_md(iface)->pd, &init);
}


/* Moves the QP from RESET to RTS and posts RECVs, one at least. Returns the name of the
 * verb that failed, or NULL. */
static const char *uct_daqiri_ud_ready(uct_daqiri_iface_t *iface)
{
    uct_daqiri_ud_t *ud = &iface->cm.ud;
    int ret             = 0;
    unsigned i;

    errno = uct_daqiri_ud_to_rts(iface);
    if (errno != 0) {
        return "ibv_modify_qp";
    }
    ud->idle_count = 0;
    for (i = 0; i < UCT_DAQIRI_UD_RECVS; i++) {
        ret = uct_daqiri_ud_give(iface, i);
    }
    errno = ret;
    return (ud->idle_count == UCT_DAQIRI_UD_RECVS) ? "ibv_post_recv" : NULL;
}


static void uct_daqiri_ud_free_send(uct_daqiri_ud_t *ud, unsigned index)
{
    uct_daqiri_assert(index < UCT_DAQIRI_UD_SENDS);
    ud->send_busy &= ~(uint32_t)UCS_BIT(index);
    if (ud->once[index] != NULL) {
        ibv_destroy_ah(ud->once[index]);
        ud->once[index] = NULL;
    }
}


/* The QP is in RESET or destroyed, so no send is under way. */
static void uct_daqiri_ud_free_sends(uct_daqiri_ud_t *ud)
{
    unsigned i;

    for (i = 0; i < UCT_DAQIRI_UD_SENDS; i++) {
        uct_daqiri_ud_free_send(ud, i);
    }
}


/* Returns the name of the verb that failed, or NULL. */
static const char *uct_daqiri_ud_setup(uct_daqiri_iface_t *iface)
{
    uct_daqiri_md_t *md = uct_daqiri_iface_md(iface);
    uct_daqiri_ud_t *ud = &iface->cm.ud;
    size_t length       = (UCT_DAQIRI_UD_RECVS + UCT_DAQIRI_UD_SENDS) *
                          UCT_DAQIRI_UD_SLOT + UCT_DAQIRI_UD_JUNK;
    const char *verb;

    ud->channel = ibv_create_comp_channel(md->context);
    if (ud->channel == NULL) {
        return "ibv_create_comp_channel";
    }
    ud->cq = ibv_create_cq(md->context,
                           UCT_DAQIRI_UD_RECVS + UCT_DAQIRI_UD_SENDS, NULL,
                           ud->channel, 0);
    if (ud->cq == NULL) {
        return "ibv_create_cq";
    }
    ud->qp = uct_daqiri_ud_create_qp(iface);
    if (ud->qp == NULL) {
        return "ibv_create_qp";
    }

    ud->memory = ucs_calloc(1, length, "daqiri_ud");
    if (ud->memory == NULL) {
        errno = ENOMEM;
        return "malloc";
    }
    ud->mr = ibv_reg_mr(md->pd, ud->memory, length, IBV_ACCESS_LOCAL_WRITE);
    if (ud->mr == NULL) {
        return "ibv_reg_mr";
    }

    verb = uct_daqiri_ud_ready(iface);
    if (verb != NULL) {
        return verb;
    }
    errno = ibv_req_notify_cq(ud->cq, 0);
    return (errno != 0) ? "ibv_req_notify_cq" : NULL;
}


/* How long to wait between two resets of the QP. The time grows if no datagram passed. */
static dq_retry_limits_t uct_daqiri_ud_limits(void)
{
    return (dq_retry_limits_t){
        .least = ucs_time_from_msec(UCT_DAQIRI_UD_LEAST_MS),
        .most  = ucs_time_from_msec(UCT_DAQIRI_UD_MOST_MS),
    };
}


ucs_status_t uct_daqiri_ud_open(uct_daqiri_iface_t *iface)
{
    struct ibv_context *context    = uct_daqiri_iface_md(iface)->context;
    const dq_retry_limits_t limits = uct_daqiri_ud_limits();
    const char *verb;

    dq_retry_begin(&iface->cm.ud.retry, &limits, ucs_get_time(), 0);
    verb = uct_daqiri_ud_setup(iface);
    if (verb != NULL) {
        uct_daqiri_log_verb(UCS_LOG_LEVEL_ERROR,
                            ibv_get_device_name(context->device), verb,
                            errno);
        uct_daqiri_ud_close(iface);
        return UCS_ERR_IO_ERROR;
    }
    return ucs_sys_fcntl_modfl(iface->cm.ud.channel->fd, O_NONBLOCK, 0);
}


void uct_daqiri_ud_close(uct_daqiri_iface_t *iface)
{
    uct_daqiri_ud_t *ud = &iface->cm.ud;

    if (ud->qp != NULL) {
        ibv_destroy_qp(ud->qp);
    }
    uct_daqiri_ud_free_sends(ud);
    if (ud->cq != NULL) {
        ibv_destroy_cq(ud->cq);
    }
    if (ud->channel != NULL) {
        ibv_destroy_comp_channel(ud->channel);
    }
    if (ud->mr != NULL) {
        ibv_dereg_mr(ud->mr);
    }
    ucs_free(ud->memory);
    *ud = (uct_daqiri_ud_t){0};
}


/* @a once is NULL, or an address handle that the carrier owns if this returns UCS_OK. */
static ucs_status_t
uct_daqiri_ud_post_send(uct_daqiri_iface_t *iface, struct ibv_ah *ah,
                        struct ibv_ah *once, uint32_t qpn,
                        const dq_frame_t *frame)
{
    uct_daqiri_ud_t *ud = &iface->cm.ud;
    struct ibv_send_wr *bad_wr;
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    unsigned index;
    int ret;

    uct_daqiri_assert_async(iface);
    if ((ud->send_busy == UINT32_MAX) || (ud->lost != DQ_CAUSE_NONE)) {
        return UCS_ERR_NO_RESOURCE;
    }

    index = ucs_ffs64(~(uint64_t)ud->send_busy);
    sge   = (struct ibv_sge){
        .addr   = (uintptr_t)uct_daqiri_ud_send_slot(ud, index),
        .length = DQ_FRAME_BYTES,
        .lkey   = ud->mr->lkey,
    };
    wr    = (struct ibv_send_wr){
        .wr_id      = UCT_DAQIRI_UD_IS_SEND | index,
        .sg_list    = &sge,
        .num_sge    = 1,
        .opcode     = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
    };
    wr.wr.ud.ah          = ah;
    wr.wr.ud.remote_qpn  = qpn;
    wr.wr.ud.remote_qkey = UCT_DAQIRI_UD_QKEY;

    dq_frame_pack(frame, uct_daqiri_ud_send_slot(ud, index));
    ret = ibv_post_send(ud->qp, &wr, &bad_wr);
    if (ret != 0) {
        uct_daqiri_log_verb(UCS_LOG_LEVEL_DEBUG, "handshake", "ibv_post_send",
                            ret);
        errno = ret;
        return UCS_ERR_IO_ERROR;
    }
    ud->send_busy   |= UCS_BIT(index);
    ud->once[index]  = once;
    iface->count->frames_tx++;
    return UCS_OK;
}


ucs_status_t uct_daqiri_ud_send(uct_daqiri_iface_t *iface, struct ibv_ah *ah,
                                uint32_t qpn, const dq_frame_t *frame)
{
    return uct_daqiri_ud_post_send(iface, ah, NULL, qpn, frame);
}


ucs_status_t uct_daqiri_ud_send_once(uct_daqiri_iface_t *iface,
                                     struct ibv_ah *ah, uint32_t qpn,
                                     const dq_frame_t *frame)
{
    ucs_status_t status = uct_daqiri_ud_post_send(iface, ah, ah, qpn, frame);

    if (status != UCS_OK) {
        ibv_destroy_ah(ah);
    }
    return status;
}


/* After an error nothing is posted until the QP is reset, even if only its sends have
 * failed (SQE). The first error that is no flush is the cause. */
static void uct_daqiri_ud_fail(uct_daqiri_ud_t *ud, enum ibv_wc_status status)
{
    if ((ud->lost == DQ_CAUSE_NONE) || (ud->lost == DQ_CAUSE_WR_FLUSH)) {
        ud->lost = (dq_cause_t)status;
    }
}


static void uct_daqiri_ud_on_wc(uct_daqiri_iface_t *iface,
                                const struct ibv_wc *wc,
                                uct_daqiri_ud_rx_t rx)
{
    uct_daqiri_ud_t *ud = &iface->cm.ud;
    unsigned index      = (uint32_t)wc->wr_id;

    if (wc->wr_id & UCT_DAQIRI_UD_IS_SEND) {
        uct_daqiri_ud_free_send(ud, index);
    }
    if (wc->status != IBV_WC_SUCCESS) {
        uct_daqiri_ud_fail(ud, wc->status);
        return; /* the reset takes the slot back */
    }
    ud->passed++;
    if (wc->wr_id & UCT_DAQIRI_UD_IS_SEND) {
        return;
    }
    if (wc->byte_len >= DQ_WIRE_GRH_LEN) {
        /* a longer datagram is cut to its slot */
        rx(iface, uct_daqiri_ud_recv_slot(ud, index) + DQ_WIRE_GRH_LEN,
           ucs_min(wc->byte_len, (uint32_t)UCT_DAQIRI_UD_SLOT) -
                   DQ_WIRE_GRH_LEN);
    }
    if (ud->lost == DQ_CAUSE_NONE) {
        (void)uct_daqiri_ud_give(iface, index);
    }
}


static void uct_daqiri_ud_drain(uct_daqiri_iface_t *iface,
                                uct_daqiri_ud_rx_t rx)
{
    struct ibv_wc wc[UCT_DAQIRI_UD_BATCH];
    int count, i;

    do {
        count = ibv_poll_cq(iface->cm.ud.cq, UCT_DAQIRI_UD_BATCH, wc);
        for (i = 0; i < count; i++) {
            uct_daqiri_ud_on_wc(iface, &wc[i], rx);
        }
        uct_daqiri_ud_offer(&iface->cm.ud);
        uct_daqiri_ud_check(&iface->cm.ud);
    } while (count > 0);
}


static void uct_daqiri_ud_ignore(uct_daqiri_iface_t *iface,
                                 const void *payload, size_t length)
{
    (void)iface;
    (void)payload;
    (void)length;
}


void uct_daqiri_ud_poll(uct_daqiri_iface_t *iface, uct_daqiri_ud_rx_t rx)
{
    uct_daqiri_ud_t *ud = &iface->cm.ud;
    struct ibv_cq *cq;
    void *context;
    unsigned events = 0;

    uct_daqiri_assert_async(iface);
    while (ibv_get_cq_event(ud->channel, &cq, &context) == 0) {
        events++;
    }
    if (events > 0) {
        ibv_ack_cq_events(ud->cq, events);
    }
    /* Arm before emptying the CQ: a completion in between then wakes this thread. */
    if (ibv_req_notify_cq(ud->cq, 0) != 0) {
        ucs_debug("handshake: ibv_req_notify_cq() failed: %m");
    }
    uct_daqiri_ud_drain(iface, ud->is_failed ? uct_daqiri_ud_ignore : rx);
}


/* ---- Reset after a failure ---- */

/* In RESET the device has no requests and adds no completions. The completions that are
 * in the CQ then are the last ones of the time before. */
static const char *uct_daqiri_ud_renew(uct_daqiri_iface_t *iface)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

    errno = ibv_modify_qp(iface->cm.ud.qp, &attr, IBV_QP_STATE);
    if (errno != 0) {
        return "ibv_modify_qp";
    }
    uct_daqiri_ud_drain(iface, uct_daqiri_ud_ignore);
    uct_daqiri_ud_free_sends(&iface->cm.ud);
    return uct_daqiri_ud_ready(iface);
}


static void uct_daqiri_ud_log(uct_daqiri_iface_t *iface)
{
    const uct_daqiri_ud_t *ud = &iface->cm.ud;
    const dq_facts_t facts    = {
        .cause   = ud->lost,
        .subject = UCT_DAQIRI_NAME,
        .qpn     = ud->qp->qp_num,
    };
    char line[DQ_TRIAGE_MESSAGE_MAX];
    char more[UCT_DAQIRI_MORE_MAX];

    if (uct_daqiri_may_log(&iface->log_limit.carrier, more)) {
        ucs_warn("%s%s", dq_triage_carrier(&facts, line, sizeof(line)), more);
    }
}


int uct_daqiri_ud_reset(uct_daqiri_iface_t *iface)
{
    uct_daqiri_ud_t *ud            = &iface->cm.ud;
    const dq_retry_limits_t limits = uct_daqiri_ud_limits();
    ucs_time_t now                 = ucs_get_time();
    const char *verb;

    uct_daqiri_assert_async(iface);
    if (!uct_daqiri_ud_is_hurt(&iface->cm.ud)) {
        return 0;
    }
    uct_daqiri_ud_offer(ud);
    if ((ud->lost == DQ_CAUSE_NONE) ||
        !dq_retry_is_due(&ud->retry, now, ud->retry.retired)) {
        return 0;
    }
    (void)dq_retry_refused(&ud->retry, &limits, now, ud->passed,
                           ud->passed != ud->retry.retired);
    verb = uct_daqiri_ud_renew(iface);
    if (verb != NULL) {
        uct_daqiri_log_verb(UCS_LOG_LEVEL_DEBUG, "handshake", verb, errno);
        return 0;
    }
    uct_daqiri_ud_log(iface);
    ud->lost = DQ_CAUSE_NONE;
    iface->count->ud_remade++;
    return 1;
}
