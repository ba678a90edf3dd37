/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/rdma/qp.h"

#include "dq/dq_time.h"
#include "dq/dq_triage.h"
#include "tools/base/clock.h"
#include "tools/base/stop.h"
#include "tools/rdma/devices.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>

/* How many empty polls go by before the clock is read. */
#define QP_POLLS_PER_CLOCK 256

/* 67 ms for an answer, 7 times again: half a second until a silent peer is an
 * error; 0.64 ms, 6 times again, for one that has no buffer. Never 7 for the
 * latter: that is for ever. */
#define QP_TIMEOUT   14
#define QP_RETRY     6
#define QP_RNR_TIMER 12
#define QP_RNR_RETRY 6

/* libibverbs does not promise to set errno. */
static int qp_errno(void)
{
    return (errno != 0) ? errno : EIO;
}

void daqiri_qp_opts_init(daqiri_qp_opts_t *opts, const char *device,
                         size_t size)
{
    memset(opts, 0, sizeof(*opts));
    opts->device    = device;
    opts->gid_index = -1;
    opts->size      = size;
    opts->depth     = 1;
    opts->max_sge   = 1;
    opts->timeout   = QP_TIMEOUT;
    opts->retry     = QP_RETRY;
    opts->rnr_retry = QP_RNR_RETRY;
    opts->rnr_timer = QP_RNR_TIMER;
}

/* ---- what is told of it ---- */

void daqiri_qp_addr_pack(const daqiri_qp_addr_t *addr,
                         daqiri_peer_frame_t *frame)
{
    frame->kind           = DAQIRI_PEER_INFO;
    frame->info.lid       = addr->lid;
    frame->info.mtu       = addr->mtu;
    frame->info.is_global = addr->is_global;
    frame->info.qpn       = addr->qpn;
    frame->info.psn       = addr->psn;
    frame->info.gid_index = addr->gid_index;
    memcpy(frame->info.gid, addr->gid.raw, sizeof(frame->info.gid));
}

void daqiri_qp_addr_take(const daqiri_peer_frame_t *frame,
                         daqiri_qp_addr_t *addr)
{
    addr->lid       = frame->info.lid;
    addr->mtu       = frame->info.mtu;
    addr->is_global = frame->info.is_global;
    addr->qpn       = frame->info.qpn;
    addr->psn       = frame->info.psn;
    addr->gid_index = frame->info.gid_index;
    memcpy(addr->gid.raw, frame->info.gid, sizeof(frame->info.gid));
}

/* ---- device, port, GID ---- */

static int qp_open_named(daqiri_qp_t *qp, struct ibv_device **list, int count,
                         daqiri_failure_t *failure)
{
    char names[256] = "none";
    size_t used     = 0;
    int i;

    for (i = 0; i < count; ++i) {
        if (strcmp(ibv_get_device_name(list[i]), qp->opts.device) == 0) {
            errno       = 0;
            qp->context = ibv_open_device(list[i]);
            return (qp->context != NULL) ? 0 :
                   daqiri_fail_verb(failure, "ibv_open_device", errno);
        }
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
                                 (i > 0) ? ", " : "",
                                 ibv_get_device_name(list[i]));
        used = (used < sizeof(names)) ? used : sizeof(names) - 1;
    }
    return daqiri_fail(failure, DAQIRI_CLASS_NO_DEVICE, "there is no device "
                       "'%s'; there are: %s", qp->opts.device, names);
}

static int qp_open_device(daqiri_qp_t *qp, daqiri_failure_t *failure)
{
    struct ibv_device **list;
    int count = 0;
    int ret;

    errno = 0;
    list  = ibv_get_device_list(&count);
    if ((list == NULL) && (errno != ENOSYS) && (errno != 0)) {
        return daqiri_fail_verb(failure, "ibv_get_device_list", errno);
    }
    ret = qp_open_named(qp, list, count, failure);
    if (list != NULL) {
        ibv_free_device_list(list);
    }
    if (ret != 0) {
        return ret;
    }
    ret = ibv_query_device(qp->context, &qp->device);
    return (ret == 0) ? 0 : daqiri_fail_verb(failure, "ibv_query_device", ret);
}

static int qp_open_port(daqiri_qp_t *qp, daqiri_failure_t *failure)
{
    unsigned first = (qp->opts.port > 0) ? qp->opts.port : 1;
    unsigned last  = (qp->opts.port > 0) ? first : qp->device.phys_port_cnt;
    int ret;

    if (first > qp->device.phys_port_cnt) {
        return daqiri_fail(failure, DAQIRI_CLASS_NO_DEVICE, "device %s has no "
                           "port %u, but %u", qp->opts.device, first,
                           qp->device.phys_port_cnt);
    }
    for (qp->port_num = first; qp->port_num <= last; ++qp->port_num) {
        ret = ibv_query_port(qp->context, (uint8_t)qp->port_num, &qp->port);
        if (ret != 0) {
            return daqiri_fail_verb(failure, "ibv_query_port", ret);
        }
        if (qp->port.state == IBV_PORT_ACTIVE) {
            return 0;
        }
    }
    qp->port_num = first;
    return daqiri_fail(failure, DAQIRI_CLASS_PORT_DOWN, "port %u of %s is %s, "
                       "not active", last, qp->opts.device,
                       ibv_port_state_str(qp->port.state));
}

static int qp_open_gid(daqiri_qp_t *qp, daqiri_failure_t *failure)
{
    const struct ibv_gid_entry *entry;
    int error;

    error = daqiri_gids_query(qp->context, &qp->device, qp->port_num,
                              &qp->port, &qp->gids);
    if (error != 0) {
        return daqiri_fail_verb(failure, "ibv_query_gid_table", error);
    }
    qp->local.gid_index = (qp->opts.gid_index < 0) ? qp->gids.chosen :
                                                     qp->opts.gid_index;
    qp->local.is_global = (qp->port.link_layer == IBV_LINK_LAYER_ETHERNET) ||
                          (qp->opts.gid_index >= 0) ||
                          (qp->opts.traffic_class > 0);
    entry = daqiri_gids_find(&qp->gids, qp->local.gid_index);
    if (entry != NULL) {
        qp->local.gid = entry->gid;
        return 0;
    }
    if (qp->opts.gid_index >= 0) {
        return daqiri_fail(failure, DAQIRI_CLASS_NO_GID, "there is no GID %d "
                           "on %s:%u; daqiri interfaces lists them",
                           qp->opts.gid_index, qp->opts.device, qp->port_num);
    }
    return !qp->local.is_global ? 0 :
           daqiri_fail(failure, DAQIRI_CLASS_NO_GID, "%s:%u has no GID: %s",
                       qp->opts.device, qp->port_num, qp->gids.why);
}

/* The path takes the smaller of what was asked for and what the port has. */
static void qp_set_mtu(daqiri_qp_t *qp)
{
    unsigned code = qp->port.active_mtu;

    while ((qp->opts.mtu > 0) && (code > IBV_MTU_256) &&
           ((128u << code) > qp->opts.mtu)) {
        --code;
    }
    qp->local.mtu = (uint8_t)code;
}

int daqiri_qp_open(daqiri_qp_t *qp, const daqiri_qp_opts_t *opts,
                   daqiri_failure_t *failure)
{
    memset(qp, 0, sizeof(*qp));
    qp->opts = *opts;
    if ((qp_open_device(qp, failure) != 0) ||
        (qp_open_port(qp, failure) != 0) || (qp_open_gid(qp, failure) != 0)) {
        return -1;
    }
    qp->local.lid = qp->port.lid;
    qp_set_mtu(qp);
    return 0;
}

/* ---- what is made on it ---- */

int daqiri_qp_create_pd(daqiri_qp_t *qp, daqiri_failure_t *failure)
{
    errno  = 0;
    qp->pd = ibv_alloc_pd(qp->context);
    return (qp->pd != NULL) ? 0 :
           daqiri_fail_verb(failure, "ibv_alloc_pd", qp_errno());
}

/* ENOMEM is worth a limit only where there is one. */
static int qp_fail_mr(const daqiri_qp_t *qp, int error,
                      daqiri_failure_t *failure)
{
    struct rlimit limit;

    if ((error == ENOMEM) && (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) &&
        (limit.rlim_cur != RLIM_INFINITY)) {
        return daqiri_fail(failure, DAQIRI_CLASS_RESOURCE_EXHAUSTED,
                           "ibv_reg_mr failed for %zu KiB: %s; this process "
                           "may lock %llu KiB (ulimit -l)", qp->length >> 10,
                           strerror(error),
                           (unsigned long long)(limit.rlim_cur >> 10));
    }
    return daqiri_fail_verb(failure, "ibv_reg_mr", error);
}

int daqiri_qp_create_mr(daqiri_qp_t *qp, daqiri_failure_t *failure)
{
    size_t page = 4096;
    void *memory;

    qp->length = 2 * ((qp->opts.size + page) / page * page);
    memory     = mmap(NULL, qp->length, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
        return daqiri_fail(failure, DAQIRI_CLASS_RESOURCE_EXHAUSTED,
                           "%zu KiB of memory cannot be had: %s",
                           qp->length >> 10, strerror(errno));
    }
    qp->memory = memory;
    errno      = 0;
    qp->mr     = ibv_reg_mr(qp->pd, memory, qp->length,
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                            IBV_ACCESS_REMOTE_READ |
                            ((qp->device.atomic_cap != IBV_ATOMIC_NONE) ?
                             IBV_ACCESS_REMOTE_ATOMIC : 0));
    return (qp->mr != NULL) ? 0 : qp_fail_mr(qp, qp_errno(), failure);
}

int daqiri_qp_create_cq(daqiri_qp_t *qp, daqiri_failure_t *failure)
{
    errno = 0;
    if (qp->opts.has_events) {
        qp->channel = ibv_create_comp_channel(qp->context);
        if (qp->channel == NULL) {
            return daqiri_fail_verb(failure, "ibv_create_comp_channel",
                                    qp_errno());
        }
    }
    qp->cq = ibv_create_cq(qp->context, (int)(2 * qp->opts.depth), NULL,
                           qp->channel, 0);
    return (qp->cq != NULL) ? 0 :
           daqiri_fail_verb(failure, "ibv_create_cq", qp_errno());
}

int daqiri_qp_create_qp(daqiri_qp_t *qp, daqiri_failure_t *failure)
{
    struct ibv_qp_init_attr attr = {
        .send_cq    = qp->cq,
        .recv_cq    = qp->cq,
        .qp_type    = qp->opts.is_uc ? IBV_QPT_UC : IBV_QPT_RC,
        .sq_sig_all = 0,
        .cap        = {
            .max_send_wr     = qp->opts.depth,
            .max_recv_wr     = qp->opts.depth,
            .max_send_sge    = qp->opts.max_sge,
            .max_recv_sge    = 1,
            .max_inline_data = qp->opts.max_inline
        }
    };

    errno  = 0;
    qp->qp = ibv_create_qp(qp->pd, &attr);
    if (qp->qp == NULL) {
        return daqiri_fail_verb(failure, qp->opts.is_uc ?
                                "ibv_create_qp of a UC queue pair" :
                                "ibv_create_qp", qp_errno());
    }
    qp->cap       = attr.cap;
    qp->local.qpn = qp->qp->qp_num;
    if (getrandom(&qp->local.psn, sizeof(qp->local.psn), 0) < 0) {
        qp->local.psn = (uint32_t)daqiri_now_ns();
    }
    qp->local.psn &= 0xffffff;
    return 0;
}

int daqiri_qp_init(daqiri_qp_t *qp, daqiri_failure_t *failure)
{
    struct ibv_qp_attr attr = {
        .qp_state        = IBV_QPS_INIT,
        .port_num        = (uint8_t)qp->port_num,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE
    };
    int ret;

    if (!qp->opts.is_uc) {
        attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ;
        if (qp->device.atomic_cap != IBV_ATOMIC_NONE) {
            attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
        }
    }
    ret = ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                        IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    return (ret == 0) ? 0 :
           daqiri_fail_verb(failure, "ibv_modify_qp to INIT", ret);
}

int daqiri_qp_create(daqiri_qp_t *qp, daqiri_failure_t *failure)
{
    if ((daqiri_qp_create_pd(qp, failure) != 0) ||
        (daqiri_qp_create_mr(qp, failure) != 0) ||
        (daqiri_qp_create_cq(qp, failure) != 0) ||
        (daqiri_qp_create_qp(qp, failure) != 0)) {
        return -1;
    }
    return daqiri_qp_init(qp, failure);
}

void daqiri_qp_ah(const daqiri_qp_t *qp, const daqiri_qp_addr_t *remote,
                  struct ibv_ah_attr *attr)
{
    memset(attr, 0, sizeof(*attr));
    attr->dlid     = remote->lid;
    attr->port_num = (uint8_t)qp->port_num;
    if (qp->local.is_global) {
        attr->is_global      = 1;
        attr->grh.dgid       = remote->gid;
        attr->grh.sgid_index = (uint8_t)qp->local.gid_index;
        attr->grh.hop_limit  = 64;
        attr->grh.traffic_class = qp->opts.traffic_class;
    }
}

static int qp_fail_rtr(const daqiri_qp_t *qp, const daqiri_qp_addr_t *remote,
                       int error, daqiri_failure_t *failure)
{
    char local[DAQIRI_GID_TEXT_MAX], peer[DAQIRI_GID_TEXT_MAX];

    return daqiri_fail(failure, DAQIRI_CLASS_RTR_REFUSED, "ibv_modify_qp to "
                       "RTR failed: %s; from GID %d %s to LID %u, QPN %u, GID "
                       "%s, MTU %u", strerror(error), qp->local.gid_index,
                       daqiri_gid_text(&qp->local.gid, local), remote->lid,
                       remote->qpn, daqiri_gid_text(&remote->gid, peer),
                       128u << remote->mtu);
}

/* What is sent to another fabric is lost, and only time would tell. The subnet
 * prefix of its GIDs says which one the software device is on. */
static int qp_check_fabric(const daqiri_qp_t *qp,
                           const daqiri_qp_addr_t *remote,
                           daqiri_failure_t *failure)
{
    const char *device = ibv_get_device_name(qp->context->device);
    char port[DAQIRI_DEVICE_NAME_MAX + 16], gids[2 * DAQIRI_GID_TEXT_MAX + 16];
    char local[DAQIRI_GID_TEXT_MAX], peer[DAQIRI_GID_TEXT_MAX];
    char text[DQ_TRIAGE_MESSAGE_MAX];
    const dq_facts_t facts = {
        .cause   = DQ_CAUSE_OTHER_FABRIC,
        .subject = port,
        .detail  = gids
    };

    if (!daqiri_is_soft_device(device) ||
        (qp->local.gid.global.subnet_prefix ==
         remote->gid.global.subnet_prefix)) {
        return 0;
    }
    snprintf(port, sizeof(port), "%.*s:%u", DAQIRI_DEVICE_NAME_MAX, device,
             qp->port_num);
    snprintf(gids, sizeof(gids), "GID %s, here %s",
             daqiri_gid_text(&remote->gid, peer),
             daqiri_gid_text(&qp->local.gid, local));
    return daqiri_fail(failure, DAQIRI_CLASS_OTHER_FABRIC, "%s",
                       dq_triage_unreachable(&facts, text, sizeof(text)));
}

int daqiri_qp_rtr(daqiri_qp_t *qp, const daqiri_qp_addr_t *remote,
                  daqiri_failure_t *failure)
{
    struct ibv_qp_attr attr = {
        .qp_state           = IBV_QPS_RTR,
        .path_mtu           = (qp->local.mtu < remote->mtu) ?
                              qp->local.mtu : remote->mtu,
        .dest_qp_num        = remote->qpn,
        .rq_psn             = remote->psn,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer      = qp->opts.rnr_timer
    };
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
               IBV_QP_RQ_PSN;
    int ret;

    if (qp_check_fabric(qp, remote, failure) != 0) {
        return -1;
    }
    if (!qp->opts.is_uc) {
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    daqiri_qp_ah(qp, remote, &attr.ah_attr);
    ret = ibv_modify_qp(qp->qp, &attr, mask);
    return (ret == 0) ? 0 : qp_fail_rtr(qp, remote, ret, failure);
}

int daqiri_qp_rts(daqiri_qp_t *qp, daqiri_failure_t *failure)
{
    struct ibv_qp_attr attr = {
        .qp_state      = IBV_QPS_RTS,
        .sq_psn        = qp->local.psn,
        .timeout       = qp->opts.timeout,
        .retry_cnt     = qp->opts.retry,
        .rnr_retry     = qp->opts.rnr_retry,
        .max_rd_atomic = 1
    };
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    int ret;

    if (!qp->opts.is_uc) {
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                IBV_QP_MAX_QP_RD_ATOMIC;
    }
    ret = ibv_modify_qp(qp->qp, &attr, mask);
    return (ret == 0) ? 0 :
           daqiri_fail_verb(failure, "ibv_modify_qp to RTS", ret);
}

void daqiri_qp_close(daqiri_qp_t *qp)
{
    if (qp->qp != NULL) {
        ibv_destroy_qp(qp->qp);
    }
    if (qp->cq != NULL) {
        ibv_destroy_cq(qp->cq);
    }
    if (qp->channel != NULL) {
        ibv_destroy_comp_channel(qp->channel);
    }
    if (qp->mr != NULL) {
        ibv_dereg_mr(qp->mr);
    }
    if (qp->memory != NULL) {
        munmap(qp->memory, qp->length);
    }
    if (qp->pd != NULL) {
        ibv_dealloc_pd(qp->pd);
    }
    daqiri_gids_cleanup(&qp->gids);
    if (qp->context != NULL) {
        ibv_close_device(qp->context);
    }
    memset(qp, 0, sizeof(*qp));
}

/* ---- messages ---- */

int daqiri_qp_post_recv(daqiri_qp_t *qp, uint64_t id)
{
    struct ibv_sge sge = {
        .addr   = (uintptr_t)daqiri_qp_recv_buffer(qp),
        .length = (uint32_t)qp->opts.size,
        .lkey   = qp->mr->lkey
    };
    struct ibv_recv_wr request = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr *bad;

    return ibv_post_recv(qp->qp, &request, &bad);
}

int daqiri_qp_post_send(daqiri_qp_t *qp, uint64_t id, size_t length,
                        unsigned flags)
{
    struct ibv_sge sge = {
        .addr   = (uintptr_t)daqiri_qp_send_buffer(qp),
        .length = (uint32_t)length,
        .lkey   = qp->mr->lkey
    };
    struct ibv_send_wr request = {
        .wr_id      = id,
        .sg_list    = &sge,
        .num_sge    = 1,
        .opcode     = IBV_WR_SEND,
        .send_flags = flags
    };
    struct ibv_send_wr *bad;

    return ibv_post_send(qp->qp, &request, &bad);
}

static daqiri_class_t qp_class_of(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_LOC_LEN_ERR:
        return DAQIRI_CLASS_COMPLETION_PROTECTION;
    default:
        return DAQIRI_CLASS_COMPLETION_FAILURE;
    }
}

int daqiri_qp_fail_completion(const daqiri_qp_t *qp, const struct ibv_wc *wc,
                              daqiri_failure_t *failure)
{
    char text[DQ_TRIAGE_MESSAGE_MAX];
    const dq_facts_t facts = {
        .cause          = (dq_cause_t)wc->status,
        .vendor_err     = wc->vendor_err,
        .qpn            = qp->local.qpn,
        .subject        = qp->opts.device,
        .ack_timeout_ms = dq_ack_timeout_seconds(qp->opts.timeout) * 1e3,
        .retry_cnt      = qp->opts.retry,
        .rnr_timer_ms   = dq_rnr_timer_seconds(qp->opts.rnr_timer) * 1e3
    };

    return daqiri_fail(failure, qp_class_of(wc->status), "%s",
                       dq_triage_message(&facts, text, sizeof(text)));
}

static int qp_poll(daqiri_qp_t *qp, struct ibv_wc *wc, unsigned polls,
                   daqiri_failure_t *failure)
{
    int ret = 0;

    for (; (ret == 0) && (polls > 0); --polls) {
        ret = ibv_poll_cq(qp->cq, 1, wc);
    }
    if (ret < 0) {
        return daqiri_fail(failure, DAQIRI_CLASS_VERB_REFUSED,
                           "ibv_poll_cq failed");
    }
    return ((ret == 0) || (wc->status == IBV_WC_SUCCESS)) ? ret :
           daqiri_qp_fail_completion(qp, wc, failure);
}

int daqiri_qp_wait(daqiri_qp_t *qp, struct ibv_wc *wc, uint64_t deadline_ns,
                   daqiri_failure_t *failure)
{
    int ret;

    do {
        ret = qp_poll(qp, wc, QP_POLLS_PER_CLOCK, failure);
    } while ((ret == 0) && (daqiri_now_ns() < deadline_ns) &&
             !daqiri_stop_asked());
    return ret;
}
