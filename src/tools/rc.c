/* SPDX-License-Identifier: BSD-3-Clause */

#include "rc.h"

#include "devices.h"
#include "stop.h"

#include "dq/dq_time.h"
#include "dq/dq_triage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>

/* How many empty polls go by before the clock is read. */
#define RC_POLLS_PER_CLOCK 256

/* 67 ms for an answer, 7 times again: half a second until a silent peer is an
 * error; 0.64 ms, 6 times again, for one that has no buffer. Never 7 for the
 * latter: that is for ever. */
#define RC_TIMEOUT   14
#define RC_RETRY     6
#define RC_RNR_TIMER 12
#define RC_RNR_RETRY 6

/* libibverbs does not promise to set errno. */
static int rc_errno(void)
{
    return (errno != 0) ? errno : EIO;
}

void daqiri_rc_opts_init(daqiri_rc_opts_t *opts, const char *device,
                         size_t size)
{
    memset(opts, 0, sizeof(*opts));
    opts->device    = device;
    opts->gid_index = -1;
    opts->size      = size;
    opts->depth     = 1;
    opts->max_sge   = 1;
    opts->timeout   = RC_TIMEOUT;
    opts->retry     = RC_RETRY;
    opts->rnr_retry = RC_RNR_RETRY;
    opts->rnr_timer = RC_RNR_TIMER;
}

/* ---- what is told of it ---- */

void daqiri_rc_addr_pack(const daqiri_rc_addr_t *addr,
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

void daqiri_rc_addr_take(const daqiri_peer_frame_t *frame,
                         daqiri_rc_addr_t *addr)
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

static int rc_open_named(daqiri_rc_t *rc, struct ibv_device **list, int count,
                         daqiri_failure_t *failure)
{
    char names[256] = "none";
    size_t used     = 0;
    int i;

    for (i = 0; i < count; ++i) {
        if (strcmp(ibv_get_device_name(list[i]), rc->opts.device) == 0) {
            errno       = 0;
            rc->context = ibv_open_device(list[i]);
            return (rc->context != NULL) ? 0 :
                   daqiri_fail_verb(failure, "ibv_open_device", errno);
        }
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
                                 (i > 0) ? ", " : "",
                                 ibv_get_device_name(list[i]));
        used = (used < sizeof(names)) ? used : sizeof(names) - 1;
    }
    return daqiri_fail(failure, DAQIRI_CLASS_NO_DEVICE, "there is no device "
                       "'%s'; there are: %s", rc->opts.device, names);
}

static int rc_open_device(daqiri_rc_t *rc, daqiri_failure_t *failure)
{
    struct ibv_device **list;
    int count = 0;
    int ret;

    errno = 0;
    list  = ibv_get_device_list(&count);
    if ((list == NULL) && (errno != ENOSYS) && (errno != 0)) {
        return daqiri_fail_verb(failure, "ibv_get_device_list", errno);
    }
    ret = rc_open_named(rc, list, count, failure);
    if (list != NULL) {
        ibv_free_device_list(list);
    }
    if (ret != 0) {
        return ret;
    }
    ret = ibv_query_device(rc->context, &rc->device);
    return (ret == 0) ? 0 : daqiri_fail_verb(failure, "ibv_query_device", ret);
}

static int rc_open_port(daqiri_rc_t *rc, daqiri_failure_t *failure)
{
    unsigned first = (rc->opts.port > 0) ? rc->opts.port : 1;
    unsigned last  = (rc->opts.port > 0) ? first : rc->device.phys_port_cnt;
    int ret;

    if (first > rc->device.phys_port_cnt) {
        return daqiri_fail(failure, DAQIRI_CLASS_NO_DEVICE, "device %s has no "
                           "port %u, but %u", rc->opts.device, first,
                           rc->device.phys_port_cnt);
    }
    for (rc->port_num = first; rc->port_num <= last; ++rc->port_num) {
        ret = ibv_query_port(rc->context, (uint8_t)rc->port_num, &rc->port);
        if (ret != 0) {
            return daqiri_fail_verb(failure, "ibv_query_port", ret);
        }
        if (rc->port.state == IBV_PORT_ACTIVE) {
            return 0;
        }
    }
    rc->port_num = first;
    return daqiri_fail(failure, DAQIRI_CLASS_PORT_DOWN, "port %u of %s is %s, "
                       "not active", last, rc->opts.device,
                       ibv_port_state_str(rc->port.state));
}

static int rc_open_gid(daqiri_rc_t *rc, daqiri_failure_t *failure)
{
    const struct ibv_gid_entry *entry;
    int error;

    error = daqiri_gids_query(rc->context, &rc->device, rc->port_num,
                              &rc->port, &rc->gids);
    if (error != 0) {
        return daqiri_fail_verb(failure, "ibv_query_gid_table", error);
    }
    rc->local.gid_index = (rc->opts.gid_index < 0) ? rc->gids.chosen :
                                                     rc->opts.gid_index;
    rc->local.is_global = (rc->port.link_layer == IBV_LINK_LAYER_ETHERNET) ||
                          (rc->opts.gid_index >= 0) ||
                          (rc->opts.traffic_class > 0);
    entry = daqiri_gids_find(&rc->gids, rc->local.gid_index);
    if (entry != NULL) {
        rc->local.gid = entry->gid;
        return 0;
    }
    if (rc->opts.gid_index >= 0) {
        return daqiri_fail(failure, DAQIRI_CLASS_NO_GID, "there is no GID %d "
                           "on %s:%u; daqiri interfaces lists them",
                           rc->opts.gid_index, rc->opts.device, rc->port_num);
    }
    return !rc->local.is_global ? 0 :
           daqiri_fail(failure, DAQIRI_CLASS_NO_GID, "%s:%u has no GID: %s",
                       rc->opts.device, rc->port_num, rc->gids.why);
}

/* The path takes the smaller of what was asked for and what the port has. */
static void rc_set_mtu(daqiri_rc_t *rc)
{
    unsigned code = rc->port.active_mtu;

    while ((rc->opts.mtu > 0) && (code > IBV_MTU_256) &&
           ((128u << code) > rc->opts.mtu)) {
        --code;
    }
    rc->local.mtu = (uint8_t)code;
}

int daqiri_rc_open(daqiri_rc_t *rc, const daqiri_rc_opts_t *opts,
                   daqiri_failure_t *failure)
{
    memset(rc, 0, sizeof(*rc));
    rc->opts = *opts;
    if ((rc_open_device(rc, failure) != 0) ||
        (rc_open_port(rc, failure) != 0) || (rc_open_gid(rc, failure) != 0)) {
        return -1;
    }
    rc->local.lid = rc->port.lid;
    rc_set_mtu(rc);
    return 0;
}

/* ---- what is made on it ---- */

int daqiri_rc_create_pd(daqiri_rc_t *rc, daqiri_failure_t *failure)
{
    errno  = 0;
    rc->pd = ibv_alloc_pd(rc->context);
    return (rc->pd != NULL) ? 0 :
           daqiri_fail_verb(failure, "ibv_alloc_pd", rc_errno());
}

/* ENOMEM is worth a limit only where there is one. */
static int rc_fail_mr(const daqiri_rc_t *rc, int error,
                      daqiri_failure_t *failure)
{
    struct rlimit limit;

    if ((error == ENOMEM) && (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) &&
        (limit.rlim_cur != RLIM_INFINITY)) {
        return daqiri_fail(failure, DAQIRI_CLASS_RESOURCE_EXHAUSTED,
                           "ibv_reg_mr failed for %zu KiB: %s; this process "
                           "may lock %llu KiB (ulimit -l)", rc->length >> 10,
                           strerror(error),
                           (unsigned long long)(limit.rlim_cur >> 10));
    }
    return daqiri_fail_verb(failure, "ibv_reg_mr", error);
}

int daqiri_rc_create_mr(daqiri_rc_t *rc, daqiri_failure_t *failure)
{
    size_t page = 4096;
    void *memory;

    rc->length = 2 * ((rc->opts.size + page) / page * page);
    memory     = mmap(NULL, rc->length, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
        return daqiri_fail(failure, DAQIRI_CLASS_RESOURCE_EXHAUSTED,
                           "%zu KiB of memory cannot be had: %s",
                           rc->length >> 10, strerror(errno));
    }
    rc->memory = memory;
    errno      = 0;
    rc->mr     = ibv_reg_mr(rc->pd, memory, rc->length,
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                            IBV_ACCESS_REMOTE_READ |
                            ((rc->device.atomic_cap != IBV_ATOMIC_NONE) ?
                             IBV_ACCESS_REMOTE_ATOMIC : 0));
    return (rc->mr != NULL) ? 0 : rc_fail_mr(rc, rc_errno(), failure);
}

int daqiri_rc_create_cq(daqiri_rc_t *rc, daqiri_failure_t *failure)
{
    errno = 0;
    if (rc->opts.has_events) {
        rc->channel = ibv_create_comp_channel(rc->context);
        if (rc->channel == NULL) {
            return daqiri_fail_verb(failure, "ibv_create_comp_channel",
                                    rc_errno());
        }
    }
    rc->cq = ibv_create_cq(rc->context, (int)(2 * rc->opts.depth), NULL,
                           rc->channel, 0);
    return (rc->cq != NULL) ? 0 :
           daqiri_fail_verb(failure, "ibv_create_cq", rc_errno());
}

int daqiri_rc_create_qp(daqiri_rc_t *rc, daqiri_failure_t *failure)
{
    struct ibv_qp_init_attr attr = {
        .send_cq    = rc->cq,
        .recv_cq    = rc->cq,
        .qp_type    = rc->opts.is_uc ? IBV_QPT_UC : IBV_QPT_RC,
        .sq_sig_all = 0,
        .cap        = {
            .max_send_wr     = rc->opts.depth,
            .max_recv_wr     = rc->opts.depth,
            .max_send_sge    = rc->opts.max_sge,
            .max_recv_sge    = 1,
            .max_inline_data = rc->opts.max_inline
        }
    };

    errno  = 0;
    rc->qp = ibv_create_qp(rc->pd, &attr);
    if (rc->qp == NULL) {
        return daqiri_fail_verb(failure, rc->opts.is_uc ?
                                "ibv_create_qp of a UC queue pair" :
                                "ibv_create_qp", rc_errno());
    }
    rc->cap       = attr.cap;
    rc->local.qpn = rc->qp->qp_num;
    if (getrandom(&rc->local.psn, sizeof(rc->local.psn), 0) < 0) {
        rc->local.psn = (uint32_t)daqiri_now_ns();
    }
    rc->local.psn &= 0xffffff;
    return 0;
}

int daqiri_rc_init(daqiri_rc_t *rc, daqiri_failure_t *failure)
{
    struct ibv_qp_attr attr = {
        .qp_state        = IBV_QPS_INIT,
        .port_num        = (uint8_t)rc->port_num,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE
    };
    int ret;

    if (!rc->opts.is_uc) {
        attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ;
        if (rc->device.atomic_cap != IBV_ATOMIC_NONE) {
            attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
        }
    }
    ret = ibv_modify_qp(rc->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                        IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    return (ret == 0) ? 0 :
           daqiri_fail_verb(failure, "ibv_modify_qp to INIT", ret);
}

int daqiri_rc_create(daqiri_rc_t *rc, daqiri_failure_t *failure)
{
    if ((daqiri_rc_create_pd(rc, failure) != 0) ||
        (daqiri_rc_create_mr(rc, failure) != 0) ||
        (daqiri_rc_create_cq(rc, failure) != 0) ||
        (daqiri_rc_create_qp(rc, failure) != 0)) {
        return -1;
    }
    return daqiri_rc_init(rc, failure);
}

void daqiri_rc_ah(const daqiri_rc_t *rc, const daqiri_rc_addr_t *remote,
                  struct ibv_ah_attr *attr)
{
    memset(attr, 0, sizeof(*attr));
    attr->dlid     = remote->lid;
    attr->port_num = (uint8_t)rc->port_num;
    if (rc->local.is_global) {
        attr->is_global      = 1;
        attr->grh.dgid       = remote->gid;
        attr->grh.sgid_index = (uint8_t)rc->local.gid_index;
        attr->grh.hop_limit  = 64;
        attr->grh.traffic_class = rc->opts.traffic_class;
    }
}

static int rc_fail_rtr(const daqiri_rc_t *rc, const daqiri_rc_addr_t *remote,
                       int error, daqiri_failure_t *failure)
{
    char local[DAQIRI_GID_TEXT_MAX], peer[DAQIRI_GID_TEXT_MAX];

    return daqiri_fail(failure, DAQIRI_CLASS_RTR_REFUSED, "ibv_modify_qp to "
                       "RTR failed: %s; from GID %d %s to LID %u, QPN %u, GID "
                       "%s, MTU %u", strerror(error), rc->local.gid_index,
                       daqiri_gid_text(&rc->local.gid, local), remote->lid,
                       remote->qpn, daqiri_gid_text(&remote->gid, peer),
                       128u << remote->mtu);
}

/* What is sent to another fabric is lost, and only time would tell. The subnet
 * prefix of its GIDs says which one the software device is on. */
static int rc_check_fabric(const daqiri_rc_t *rc,
                           const daqiri_rc_addr_t *remote,
                           daqiri_failure_t *failure)
{
    const char *device = ibv_get_device_name(rc->context->device);
    char port[DAQIRI_DEVICE_NAME_MAX + 16], gids[2 * DAQIRI_GID_TEXT_MAX + 16];
    char local[DAQIRI_GID_TEXT_MAX], peer[DAQIRI_GID_TEXT_MAX];
    char text[DQ_TRIAGE_MESSAGE_MAX];
    const dq_facts_t facts = {
        .cause   = DQ_CAUSE_OTHER_FABRIC,
        .subject = port,
        .detail  = gids
    };

    if ((strcmp(device, DAQIRI_SOFT_DEVICE) != 0) ||
        (rc->local.gid.global.subnet_prefix ==
         remote->gid.global.subnet_prefix)) {
        return 0;
    }
    snprintf(port, sizeof(port), "%.*s:%u", DAQIRI_DEVICE_NAME_MAX, device,
             rc->port_num);
    snprintf(gids, sizeof(gids), "GID %s, here %s",
             daqiri_gid_text(&remote->gid, peer),
             daqiri_gid_text(&rc->local.gid, local));
    return daqiri_fail(failure, DAQIRI_CLASS_OTHER_FABRIC, "%s",
                       dq_triage_unreachable(&facts, text, sizeof(text)));
}

int daqiri_rc_rtr(daqiri_rc_t *rc, const daqiri_rc_addr_t *remote,
                  daqiri_failure_t *failure)
{
    struct ibv_qp_attr attr = {
        .qp_state           = IBV_QPS_RTR,
        .path_mtu           = (rc->local.mtu < remote->mtu) ?
                              rc->local.mtu : remote->mtu,
        .dest_qp_num        = remote->qpn,
        .rq_psn             = remote->psn,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer      = rc->opts.rnr_timer
    };
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
               IBV_QP_RQ_PSN;
    int ret;

    if (rc_check_fabric(rc, remote, failure) != 0) {
        return -1;
    }
    if (!rc->opts.is_uc) {
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    daqiri_rc_ah(rc, remote, &attr.ah_attr);
    ret = ibv_modify_qp(rc->qp, &attr, mask);
    return (ret == 0) ? 0 : rc_fail_rtr(rc, remote, ret, failure);
}

int daqiri_rc_rts(daqiri_rc_t *rc, daqiri_failure_t *failure)
{
    struct ibv_qp_attr attr = {
        .qp_state      = IBV_QPS_RTS,
        .sq_psn        = rc->local.psn,
        .timeout       = rc->opts.timeout,
        .retry_cnt     = rc->opts.retry,
        .rnr_retry     = rc->opts.rnr_retry,
        .max_rd_atomic = 1
    };
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    int ret;

    if (!rc->opts.is_uc) {
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                IBV_QP_MAX_QP_RD_ATOMIC;
    }
    ret = ibv_modify_qp(rc->qp, &attr, mask);
    return (ret == 0) ? 0 :
           daqiri_fail_verb(failure, "ibv_modify_qp to RTS", ret);
}

void daqiri_rc_close(daqiri_rc_t *rc)
{
    if (rc->qp != NULL) {
        ibv_destroy_qp(rc->qp);
    }
    if (rc->cq != NULL) {
        ibv_destroy_cq(rc->cq);
    }
    if (rc->channel != NULL) {
        ibv_destroy_comp_channel(rc->channel);
    }
    if (rc->mr != NULL) {
        ibv_dereg_mr(rc->mr);
    }
    if (rc->memory != NULL) {
        munmap(rc->memory, rc->length);
    }
    if (rc->pd != NULL) {
        ibv_dealloc_pd(rc->pd);
    }
    daqiri_gids_cleanup(&rc->gids);
    if (rc->context != NULL) {
        ibv_close_device(rc->context);
    }
    memset(rc, 0, sizeof(*rc));
}

/* ---- messages ---- */

int daqiri_rc_post_recv(daqiri_rc_t *rc, uint64_t id)
{
    struct ibv_sge sge = {
        .addr   = (uintptr_t)daqiri_rc_recv_buffer(rc),
        .length = (uint32_t)rc->opts.size,
        .lkey   = rc->mr->lkey
    };
    struct ibv_recv_wr request = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr *bad;

    return ibv_post_recv(rc->qp, &request, &bad);
}

int daqiri_rc_post_send(daqiri_rc_t *rc, uint64_t id, size_t length,
                        unsigned flags)
{
    struct ibv_sge sge = {
        .addr   = (uintptr_t)daqiri_rc_send_buffer(rc),
        .length = (uint32_t)length,
        .lkey   = rc->mr->lkey
    };
    struct ibv_send_wr request = {
        .wr_id      = id,
        .sg_list    = &sge,
        .num_sge    = 1,
        .opcode     = IBV_WR_SEND,
        .send_flags = flags
    };
    struct ibv_send_wr *bad;

    return ibv_post_send(rc->qp, &request, &bad);
}

static daqiri_class_t rc_class_of(enum ibv_wc_status status)
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

int daqiri_rc_fail_completion(const daqiri_rc_t *rc, const struct ibv_wc *wc,
                              daqiri_failure_t *failure)
{
    char text[DQ_TRIAGE_MESSAGE_MAX];
    const dq_facts_t facts = {
        .cause          = (dq_cause_t)wc->status,
        .vendor_err     = wc->vendor_err,
        .qpn            = rc->local.qpn,
        .subject        = rc->opts.device,
        .ack_timeout_ms = dq_ack_timeout_seconds(rc->opts.timeout) * 1e3,
        .retry_cnt      = rc->opts.retry,
        .rnr_timer_ms   = dq_rnr_timer_seconds(rc->opts.rnr_timer) * 1e3
    };

    return daqiri_fail(failure, rc_class_of(wc->status), "%s",
                       dq_triage_message(&facts, text, sizeof(text)));
}

int daqiri_rc_poll(daqiri_rc_t *rc, struct ibv_wc *wc, unsigned polls,
                   daqiri_failure_t *failure)
{
    int ret = 0;

    for (; (ret == 0) && (polls > 0); --polls) {
        ret = ibv_poll_cq(rc->cq, 1, wc);
    }
    if (ret < 0) {
        return daqiri_fail(failure, DAQIRI_CLASS_VERB_REFUSED,
                           "ibv_poll_cq failed");
    }
    return ((ret == 0) || (wc->status == IBV_WC_SUCCESS)) ? ret :
           daqiri_rc_fail_completion(rc, wc, failure);
}

int daqiri_rc_wait(daqiri_rc_t *rc, struct ibv_wc *wc, uint64_t deadline_ns,
                   daqiri_failure_t *failure)
{
    int ret;

    do {
        ret = daqiri_rc_poll(rc, wc, RC_POLLS_PER_CLOCK, failure);
    } while ((ret == 0) && (daqiri_now_ns() < deadline_ns) &&
             !daqiri_stop_asked());
    return ret;
}
