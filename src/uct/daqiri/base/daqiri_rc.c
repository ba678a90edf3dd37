/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creates RC queue pairs of the device, connects them, and moves them to ERR. This file
 * does not know what a queue pair is for.
 */
#include "base/daqiri_rc.h"

#include "base/daqiri_log.h"
#include "base/daqiri_port.h"
#include "dq/dq_time.h"
#include "iface/daqiri_iface.h"

enum {
    /* After an RNR, 7 means "retry for ever" on every device (IBA 9.7.5.2.8). A peer
     * that is slow to post RECVs is not dead. */
    UCT_DAQIRI_RNR_RETRY = 7
};


static int uct_daqiri_rc_to_init(uct_daqiri_iface_t *iface, struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state        = IBV_QPS_INIT,
        .pkey_index      = 0,
        .port_num        = iface->config.port_num,
        /* a flush posts an empty WRITE */
        .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ,
    };

    if (uct_daqiri_iface_md(iface)->attr.atomic_cap != IBV_ATOMIC_NONE) {
        attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
    }
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                         IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}


/* Returns UCS_ERR_NO_RESOURCE if a retry may succeed. */
static ucs_status_t uct_daqiri_rc_status(int error)
{
    return ((error == ENOMEM) || uct_daqiri_port_may_come_back(error))
                   ? UCS_ERR_NO_RESOURCE : UCS_ERR_IO_ERROR;
}


/* Who asks for a QP to carry data can wait for one, and says so. */
static ucs_status_t uct_daqiri_rc_not_created(uct_daqiri_iface_t *iface,
                                              ucs_log_level_t level, int may_wait,
                                              const char *verb, int error)
{
    ucs_status_t status = uct_daqiri_rc_status(error);

    if ((status == UCS_ERR_NO_RESOURCE) && may_wait) {
        level = UCS_LOG_LEVEL_DEBUG;
    }
    uct_daqiri_log_verb_rarely(&iface->log_limit.qp, level,
                               ibv_get_device_name(
                                       uct_daqiri_iface_md(iface)->context->device),
                               verb, error);
    return status;
}


ucs_status_t uct_daqiri_rc_create(uct_daqiri_iface_t *iface,
                                  ucs_log_level_t level,
                                  struct ibv_qp **qp_p, uint32_t *inline_p)
{
    struct ibv_qp_init_attr init = {
        .send_cq = iface->tx.cq,
        .recv_cq = iface->rx.cq,
        .srq     = iface->rx.srq,
        .qp_type = IBV_QPT_RC,
        .cap     = {
            .max_send_wr     = iface->config.sq_depth,
            .max_send_sge    = iface->config.max_sge,
            .max_inline_data = iface->config.max_inline,
        },
    };
    struct ibv_pd *pd = uct_daqiri_iface_md(iface)->pd;
    int may_wait      = inline_p == NULL;
    struct ibv_qp *qp;
    int ret;

    qp = ibv_create_qp(pd, &init);
    while ((qp == NULL) && (inline_p != NULL) &&
           (init.cap.max_inline_data > 0)) {
        /* a device tells its limit of inline data only by refusing a QP */
        init.cap.max_inline_data /= 2;
        qp = ibv_create_qp(pd, &init);
    }
    if (qp == NULL) {
        return uct_daqiri_rc_not_created(iface, level, may_wait, "ibv_create_qp", errno);
    }

    ret = uct_daqiri_rc_to_init(iface, qp);
    if (ret != 0) {
        ibv_destroy_qp(qp);
        return uct_daqiri_rc_not_created(iface, level, may_wait, "ibv_modify_qp to INIT",
                                         ret);
    }

    *qp_p = qp;
    if (inline_p != NULL) {
        *inline_p = init.cap.max_inline_data;
    }
    return UCS_OK;
}


static int uct_daqiri_rc_to_rtr(uct_daqiri_iface_t *iface, struct ibv_qp *qp,
                                const dq_frame_t *peer)
{
    struct ibv_qp_attr attr = {
        .qp_state           = IBV_QPS_RTR,
        .path_mtu           = ucs_min((int)iface->config.mtu,
                                      (int)peer->port.mtu),
        .dest_qp_num        = peer->qpn,
        .rq_psn             = peer->psn,
        .max_dest_rd_atomic = iface->config.rd_atomic,
        .min_rnr_timer      = iface->config.rnr_timer,
    };

    uct_daqiri_port_ah_attr(iface, &peer->port, &attr.ah_attr);
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV |
                         IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}


static int uct_daqiri_rc_to_rts(uct_daqiri_iface_t *iface, struct ibv_qp *qp,
                                uint32_t psn, const dq_frame_t *peer)
{
    struct ibv_qp_attr attr = {
        .qp_state      = IBV_QPS_RTS,
        .sq_psn        = psn,
        .timeout       = iface->config.ack_timeout,
        .retry_cnt     = iface->config.retry_count,
        .rnr_retry     = UCT_DAQIRI_RNR_RETRY,
        .max_rd_atomic = ucs_min(iface->config.rd_atomic, peer->rd_atomic),
    };

    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN |
                         IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                         IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}


/* Reads the timers back, because a device may not keep what was written. An RNR timer of
 * 0 means 655 ms of silence for each message that finds no RECV. */
static void uct_daqiri_rc_read_back(uct_daqiri_iface_t *iface,
                                    struct ibv_qp *qp)
{
    char more[UCT_DAQIRI_MORE_MAX];
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    if (ibv_query_qp(qp, &attr, IBV_QP_TIMEOUT | IBV_QP_MIN_RNR_TIMER,
                     &init) != 0) {
        return;
    }
    iface->gauge->rnr_timer_ns   = dq_rnr_timer_seconds(attr.min_rnr_timer) *
                                   1e9 + 0.5;
    iface->gauge->ack_timeout_ns = dq_ack_timeout_seconds(attr.timeout) * 1e9 +
                                   0.5;
    if (((attr.min_rnr_timer != iface->config.rnr_timer) ||
         (attr.timeout != iface->config.ack_timeout)) &&
        uct_daqiri_may_log(&iface->log_limit.timers, more)) {
        ucs_warn("qp 0x%x keeps an RNR timer of %.2f ms and an ACK timeout of "
                 "%.3f ms, where %.2f ms and %.3f ms were set%s", qp->qp_num,
                 dq_rnr_timer_seconds(attr.min_rnr_timer) * 1e3,
                 dq_ack_timeout_seconds(attr.timeout) * 1e3,
                 dq_rnr_timer_seconds(iface->config.rnr_timer) * 1e3,
                 dq_ack_timeout_seconds(iface->config.ack_timeout) * 1e3, more);
    }
}


/* Whether the QP has failed since its creation, which explains the refusal. */
static int uct_daqiri_rc_is_dead(struct ibv_qp *qp)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    return (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0) &&
           (attr.qp_state == IBV_QPS_ERR);
}


ucs_status_t uct_daqiri_rc_connect(uct_daqiri_iface_t *iface,
                                   struct ibv_qp *qp, uint32_t psn,
                                   const dq_frame_t *peer)
{
    const char *verb = "ibv_modify_qp to RTR";
    uint8_t index    = uct_daqiri_iface_gid_index(iface);
    int ret;

    ret = uct_daqiri_rc_to_rtr(iface, qp, peer);
    if (ret == 0) {
        verb = "ibv_modify_qp to RTS";
        ret  = uct_daqiri_rc_to_rts(iface, qp, psn, peer);
    }
    if ((ret != 0) && (uct_daqiri_rc_is_dead(qp) ||
                       (uct_daqiri_rc_status(ret) == UCS_ERR_NO_RESOURCE) ||
                       uct_daqiri_port_has_gid_left(iface, index))) {
        uct_daqiri_log_verb(UCS_LOG_LEVEL_DEBUG, peer->host, verb, ret);
        return UCS_ERR_NO_RESOURCE;
    }
    if (ret != 0) {
        uct_daqiri_log_verb_rarely(&iface->log_limit.connect, UCS_LOG_LEVEL_ERROR,
                                   peer->host, verb, ret);
        return UCS_ERR_IO_ERROR;
    }
    uct_daqiri_rc_read_back(iface, qp);
    return UCS_OK;
}


ucs_time_t uct_daqiri_rc_max_retry_time(const uct_daqiri_iface_t *iface)
{
    enum { SLACK = 4 }; /* a device may wait 4 ACK timeouts (IBA 9.7.6.1.3) */
    double timeout = dq_ack_timeout_seconds(iface->config.ack_timeout);

    return ucs_time_from_sec(SLACK * timeout *
                             (iface->config.retry_count + 1));
}


const char *uct_daqiri_rc_state_name(struct ibv_qp *qp)
{
    static const char *const names[] = {
        [IBV_QPS_RESET] = "RESET", [IBV_QPS_INIT] = "INIT",
        [IBV_QPS_RTR] = "RTR",     [IBV_QPS_RTS] = "RTS",
        [IBV_QPS_SQD] = "SQD",     [IBV_QPS_SQE] = "SQE",
        [IBV_QPS_ERR] = "ERR",
    };
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    if ((qp == NULL) || (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) != 0) ||
        ((unsigned)attr.qp_state >= ucs_static_array_size(names))) {
        return NULL;
    }
    return names[attr.qp_state];
}


int uct_daqiri_rc_to_err(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    int ret;

    ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    if (ret != 0) {
        ucs_debug("qp 0x%x: ibv_modify_qp to ERR failed: %s", qp->qp_num,
                  strerror(ret));
    }
    return ret;
}
