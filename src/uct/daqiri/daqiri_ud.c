/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The carrier of the handshake: one UD QP beside the RC QPs, on the same port.
 * It sends a frame, and it says when one has arrived; that the sender is who
 * the frame says is for the frame's cookie to show, so of the GRH nothing is
 * read but its length.
 *
 * Datagrams may be lost at either end (here: when all send slots are busy).
 * The handshake asks again.
 *
 * Threads: async; open and close on whichever thread opens the interface.
 */
#include "daqiri.h"

enum {
    UCT_DAQIRI_UD_RECVS = 256,
    UCT_DAQIRI_UD_SENDS = 32,  /* bits of send_busy                          */
    UCT_DAQIRI_UD_SLOT  = 192, /* bytes; a GRH and a frame fit               */
    UCT_DAQIRI_UD_BATCH = 16
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


static int uct_daqiri_ud_post_recv(uct_daqiri_ud_t *ud, unsigned index)
{
    struct ibv_recv_wr *bad_wr;
    struct ibv_sge sge = {
        .addr   = (uintptr_t)uct_daqiri_ud_recv_slot(ud, index),
        .length = UCT_DAQIRI_UD_SLOT,
        .lkey   = ud->mr->lkey,
    };
    struct ibv_recv_wr wr = {
        .wr_id   = index,
        .sg_list = &sge,
        .num_sge = 1,
    };

    return ibv_post_recv(ud->qp, &wr, &bad_wr);
}


static int uct_daqiri_ud_modify(uct_daqiri_iface_t *iface)
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
            .max_recv_sge = 1,
        },
    };

    return ibv_create_qp(uct_daqiri_iface_md(iface)->pd, &init);
}


/* Names the verb that failed, or returns NULL. */
static const char *uct_daqiri_ud_setup(uct_daqiri_iface_t *iface)
{
    uct_daqiri_md_t *md = uct_daqiri_iface_md(iface);
    uct_daqiri_ud_t *ud = &iface->cm.ud;
    size_t length       = (UCT_DAQIRI_UD_RECVS + UCT_DAQIRI_UD_SENDS) *
                          UCT_DAQIRI_UD_SLOT;
    unsigned i;

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

    errno = uct_daqiri_ud_modify(iface);
    if (errno != 0) {
        return "ibv_modify_qp";
    }
    for (i = 0; i < UCT_DAQIRI_UD_RECVS; i++) {
        errno = uct_daqiri_ud_post_recv(ud, i);
        if (errno != 0) {
            return "ibv_post_recv";
        }
    }
    errno = ibv_req_notify_cq(ud->cq, 0);
    return (errno != 0) ? "ibv_req_notify_cq" : NULL;
}


ucs_status_t uct_daqiri_ud_open(uct_daqiri_iface_t *iface)
{
    struct ibv_context *context = uct_daqiri_iface_md(iface)->context;
    const char *verb;

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


ucs_status_t uct_daqiri_ud_send(uct_daqiri_iface_t *iface, struct ibv_ah *ah,
                                uint32_t qpn, const dq_frame_t *frame)
{
    uct_daqiri_ud_t *ud = &iface->cm.ud;
    struct ibv_send_wr *bad_wr;
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    unsigned index;
    int ret;

    if (ud->send_busy == UINT32_MAX) {
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
        return UCS_ERR_IO_ERROR;
    }
    ud->send_busy |= UCS_BIT(index);
    iface->count->frames_tx++;
    return UCS_OK;
}


static void uct_daqiri_ud_on_wc(uct_daqiri_iface_t *iface,
                                const struct ibv_wc *wc,
                                uct_daqiri_ud_rx_t rx)
{
    uct_daqiri_ud_t *ud = &iface->cm.ud;
    unsigned index      = (uint32_t)wc->wr_id;

    if (wc->wr_id & UCT_DAQIRI_UD_IS_SEND) {
        ud->send_busy &= ~(uint32_t)UCS_BIT(index);
        return;
    }
    if (wc->status != IBV_WC_SUCCESS) {
        return; /* the QP is gone, and the slot with it */
    }
    if (wc->byte_len >= DQ_WIRE_GRH_LEN) {
        rx(iface, uct_daqiri_ud_recv_slot(ud, index) + DQ_WIRE_GRH_LEN,
           wc->byte_len - DQ_WIRE_GRH_LEN);
    }
    if (uct_daqiri_ud_post_recv(ud, index) != 0) {
        ucs_debug("handshake: ibv_post_recv() failed: %m");
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
    } while (count > 0);
}


void uct_daqiri_ud_poll(uct_daqiri_iface_t *iface, uct_daqiri_ud_rx_t rx)
{
    uct_daqiri_ud_t *ud = &iface->cm.ud;
    struct ibv_cq *cq;
    void *context;
    unsigned events = 0;

    while (ibv_get_cq_event(ud->channel, &cq, &context) == 0) {
        events++;
    }
    if (events > 0) {
        ibv_ack_cq_events(ud->cq, events);
    }
    /* armed before the CQ is emptied: what comes in between wakes us again */
    if (ibv_req_notify_cq(ud->cq, 0) != 0) {
        ucs_debug("handshake: ibv_req_notify_cq() failed: %m");
    }
    uct_daqiri_ud_drain(iface, rx);
}
