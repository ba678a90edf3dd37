/* SPDX-License-Identifier: BSD-3-Clause */
#include "softverbs/base/sv_wire.h"
#include "t_device.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void t_segment_path(char path[T_SEGMENT_PATH], uint32_t qpn)
{
    snprintf(path, T_SEGMENT_PATH, "/dev/shm/softverbs-%u.%u",
             (unsigned)geteuid(), sv_qpn_slot(qpn));
}

size_t t_segment_bytes(const struct t_end *end)
{
    char path[T_SEGMENT_PATH];
    struct stat st;

    t_segment_path(path, end->qp->qp_num);
    if (stat(path, &st) != 0) {
        t_skip("the device keeps nothing in %s", path);
    }
    return (size_t)st.st_blocks * 512;
}

uint64_t t_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + ts.tv_nsec;
}

/* ---- beds ---- */

enum {
    KERNEL_6_1  = 6 * 1000 + 1,
    KERNEL_6_12 = 6 * 1000 + 12
};

/* The kernel that runs here, as 1000 times 6 and 12. */
static unsigned kernel(void)
{
    unsigned major, minor;
    struct utsname name;

    ck_assert_int_eq(uname(&name), 0);
    ck_assert_int_eq(sscanf(name.release, "%u.%u", &major, &minor), 2);
    return major * 1000 + minor;
}

bool t_differs(enum t_difference difference)
{
    /* the oldest and the newest of those tried in which it is so; without them it is
     * so in all */
    static const struct {
        unsigned oldest, newest;
    } tried[T_DIFFERENCES] = {
        [T_DIFF_ASYNC_ACCESS]   = {.newest = KERNEL_6_12},
        [T_DIFF_ASYNC_LAST_WQE] = {.newest = KERNEL_6_1},
        [T_DIFF_RTS_ATTRIBUTES] = {.oldest = KERNEL_6_12},
        [T_DIFF_LOCAL_FLUSHED]  = {.oldest = KERNEL_6_12},
    };
    unsigned newest;

    ck_assert_int_lt(difference, T_DIFFERENCES);
    newest = tried[difference].newest;
    return t_is_softroce() && (kernel() >= tried[difference].oldest) &&
           ((newest == 0) || (kernel() <= newest));
}

void t_softverbs_only(const char *why)
{
    if (t_is_softroce()) {
        t_skip("%s", why);
    }
}

uint8_t t_timeout(uint8_t code)
{
    enum { SLOWER = 4, LONGEST = 18 }; /* 1.07 s */

    if (!t_is_softroce() || (code >= LONGEST)) {
        return code;
    }
    return (code + SLOWER < LONGEST) ? code + SLOWER : LONGEST;
}

unsigned t_times(unsigned count)
{
    return t_is_softroce() ? (count + 9) / 10 : count;
}

/* ---- ends ---- */

struct ibv_context *t_open_device(void)
{
    struct ibv_context *context;
    struct ibv_device **list;
    int count = 0;

    list = ibv_get_device_list(&count);
    ck_assert_ptr_nonnull(list);
    if (count == 0) {
        t_skip("this machine has no RDMA device");
    }

    context = ibv_open_device(list[0]);
    ck_assert_msg(context != NULL, "cannot open %s: %s",
                  ibv_get_device_name(list[0]), strerror(errno));
    ibv_free_device_list(list);
    return context;
}

static void t_make_defaults(struct t_make *make)
{
    make->type    = (make->type == 0) ? IBV_QPT_RC : make->type;
    make->depth   = (make->depth == 0) ? 16 : make->depth;
    make->max_sge = (make->max_sge == 0) ? 4 : make->max_sge;
    make->cqe     = (make->cqe == 0) ? (int)make->depth * 2 : make->cqe;
    make->size    = (make->size == 0) ? 65536 : make->size;
    make->access  = (make->access == 0) ? T_ACCESS_ALL : make->access;
}

static void t_end_make_cqs(struct t_end *end)
{
    int cqe = end->make.cqe;

    if (end->make.channel) {
        end->channel = ibv_create_comp_channel(end->context);
        ck_assert_ptr_nonnull(end->channel);
    }

    end->send_cq = ibv_create_cq(end->context, cqe, end, end->channel, 0);
    ck_assert_ptr_nonnull(end->send_cq);
    end->recv_cq = end->send_cq;
    if (!end->make.one_cq) {
        end->recv_cq = ibv_create_cq(end->context, cqe, end, end->channel, 0);
        ck_assert_ptr_nonnull(end->recv_cq);
    }
}

static void t_end_make_srq(struct t_end *end)
{
    struct ibv_srq_init_attr init = {
        .attr = {.max_wr = end->make.depth, .max_sge = end->make.max_sge}
    };

    if (end->make.srq) {
        end->srq = ibv_create_srq(end->pd, &init);
        ck_assert_ptr_nonnull(end->srq);
    }
}

static void t_end_make_qp(struct t_end *end)
{
    struct ibv_qp_init_attr init = {
        .qp_context = end,
        .send_cq    = end->send_cq,
        .recv_cq    = end->recv_cq,
        .srq        = end->srq,
        .qp_type    = end->make.type,
        .sq_sig_all = end->make.sig_all,
        .cap        = {
            .max_send_wr     = end->make.depth,
            .max_recv_wr     = end->make.depth,
            .max_send_sge    = end->make.max_sge,
            .max_recv_sge    = end->make.max_sge,
            .max_inline_data = end->make.max_inline
        }
    };

    end->qp = ibv_create_qp(end->pd, &init);
    ck_assert_msg(end->qp != NULL, "ibv_create_qp: %s", strerror(errno));
}

void t_end_open(struct t_end *end, const struct t_make *make)
{
    memset(end, 0, sizeof(*end));
    if (make != NULL) {
        end->make = *make;
    }
    t_make_defaults(&end->make);

    end->size    = end->make.size;
    end->context = t_open_device();
    end->pd      = ibv_alloc_pd(end->context);
    ck_assert_ptr_nonnull(end->pd);
    ck_assert_int_eq(posix_memalign((void**)&end->buf, 4096, end->size), 0);
    memset(end->buf, 0, end->size);
    end->mr = ibv_reg_mr(end->pd, end->buf, end->size, end->make.access);
    ck_assert_ptr_nonnull(end->mr);
    t_end_make_cqs(end);
    t_end_make_srq(end);
    t_end_make_qp(end);
}

void t_end_close_queues(struct t_end *end)
{
    if (end->qp != NULL) {
        ck_assert_int_eq(ibv_destroy_qp(end->qp), 0);
    }
    if (end->srq != NULL) {
        ck_assert_int_eq(ibv_destroy_srq(end->srq), 0);
    }
    if (end->recv_cq != end->send_cq) {
        ck_assert_int_eq(ibv_destroy_cq(end->recv_cq), 0);
    }
    ck_assert_int_eq(ibv_destroy_cq(end->send_cq), 0);
    if (end->channel != NULL) {
        ck_assert_int_eq(ibv_destroy_comp_channel(end->channel), 0);
    }
}

void t_end_close_memory(struct t_end *end)
{
    if (end->mr != NULL) {
        ck_assert_int_eq(ibv_dereg_mr(end->mr), 0);
    }
    ck_assert_int_eq(ibv_dealloc_pd(end->pd), 0);
    ck_assert_int_eq(ibv_close_device(end->context), 0);
    free(end->buf);
}

void t_end_close(struct t_end *end)
{
    t_end_close_queues(end);
    t_end_close_memory(end);
}

struct t_end t_sibling_open(const struct t_end *end, bool own_cq)
{
    struct t_end sibling         = *end;
    struct ibv_qp_init_attr init = {
        .send_cq = end->send_cq, .srq = end->srq, .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1,
                .max_recv_sge = 1}
    };

    if (own_cq) {
        sibling.recv_cq = ibv_create_cq(end->context, 4, NULL, end->channel, 0);
        ck_assert_ptr_nonnull(sibling.recv_cq);
    }
    init.recv_cq = sibling.recv_cq;
    sibling.qp   = ibv_create_qp(end->pd, &init);
    ck_assert_ptr_nonnull(sibling.qp);
    return sibling;
}

void t_sibling_close(struct t_end *sibling, const struct t_end *end)
{
    ck_assert_int_eq(ibv_destroy_qp(sibling->qp), 0);
    if (sibling->recv_cq != end->recv_cq) {
        ck_assert_int_eq(ibv_destroy_cq(sibling->recv_cq), 0);
    }
}

struct t_address t_end_address(const struct t_end *end)
{
    struct t_address address = {0};
    struct ibv_port_attr port;

    ck_assert_int_eq(ibv_query_port(end->context, 1, &port), 0);
    ck_assert_int_eq(ibv_query_gid(end->context, 1, 0, &address.gid), 0);
    address.qpn = end->qp->qp_num;
    address.psn = end->qp->qp_num & 0xfff;
    address.lid = port.lid;
    if (end->mr != NULL) {
        address.rkey = end->mr->rkey;
        address.buf  = (uintptr_t)end->buf;
    }
    return address;
}

struct t_address t_address_elsewhere(const struct t_end *end,
                                     struct t_address address, bool is_routed)
{
    struct ibv_port_attr port;

    ck_assert_int_eq(ibv_query_port(end->context, 1, &port), 0);
    if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
        t_skip("on Ethernet there are neither LIDs nor subnets");
    }
    address.is_routed = is_routed;
    if (is_routed) {
        address.gid.raw[7] ^= 1;
    } else {
        address.lid ^= 1;
    }
    return address;
}

/* ---- states ---- */

/* 8.4 ms (t_timeout), seven times */
static const struct t_link t_default_link = {
    .timeout = 11, .retry_cnt = 6, .rnr_retry = 0, .min_rnr = 1
};

static struct t_link t_link_or_default(const struct t_link *link)
{
    struct t_link full = (link == NULL) ? t_default_link : *link;

    full.timeout = (full.timeout == 0) ? t_default_link.timeout : full.timeout;
    full.timeout = t_timeout(full.timeout);
    if ((full.rnr_retry == 7) && (full.retry_cnt == 0) &&
        t_differs(T_DIFF_RNR_TIMER)) {
        full.retry_cnt = 7;
    }
    full.min_rnr = (full.min_rnr == 0) ? t_default_link.min_rnr : full.min_rnr;
    full.access  = (full.access == 0) ? T_ACCESS_REMOTE : full.access;
    return full;
}

static void t_modify(struct t_end *end, struct ibv_qp_attr *attr, int mask)
{
    int ret = ibv_modify_qp(end->qp, attr, mask);

    ck_assert_msg(ret == 0, "ibv_modify_qp to state %d: %s", attr->qp_state,
                  strerror(ret));
}

static void t_fill_av(struct t_end *end, const struct t_address *to,
                      struct ibv_ah_attr *av)
{
    struct ibv_port_attr port;

    ck_assert_int_eq(ibv_query_port(end->context, 1, &port), 0);
    av->dlid      = to->lid;
    av->port_num  = 1;
    av->is_global = (port.link_layer == IBV_LINK_LAYER_ETHERNET) ||
                    to->is_routed;
    if (av->is_global) {
        av->grh.dgid      = to->gid;
        av->grh.hop_limit = 1;
    }
}

void t_end_init(struct t_end *end, const struct t_link *link)
{
    struct ibv_qp_attr attr = {
        .qp_state        = IBV_QPS_INIT,
        .port_num        = 1,
        .qkey            = T_QKEY,
        .qp_access_flags = t_link_or_default(link).access
    };

    t_modify(end, &attr,
             IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                     ((end->make.type == IBV_QPT_UD) ? IBV_QP_QKEY :
                                                       IBV_QP_ACCESS_FLAGS));
}

void t_end_rtr(struct t_end *end, const struct t_address *to,
               const struct t_link *link)
{
    struct t_link full      = t_link_or_default(link);
    struct ibv_qp_attr attr = {
        .qp_state           = IBV_QPS_RTR,
        .path_mtu           = IBV_MTU_1024,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer      = full.min_rnr
    };
    int mask = IBV_QP_STATE;

    if (end->make.type != IBV_QPT_UD) {
        t_fill_av(end, to, &attr.ah_attr);
        attr.dest_qp_num = to->qpn;
        attr.rq_psn      = (to->psn + full.psn_error) & 0xffffff;
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    t_modify(end, &attr, mask);
}

void t_end_rts(struct t_end *end, const struct t_link *link)
{
    struct t_link full      = t_link_or_default(link);
    struct ibv_qp_attr attr = {
        .qp_state      = IBV_QPS_RTS,
        .sq_psn        = t_end_address(end).psn,
        .timeout       = full.timeout,
        .retry_cnt     = full.retry_cnt,
        .rnr_retry     = full.rnr_retry,
        .max_rd_atomic = 1
    };
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

    if (end->make.type != IBV_QPT_UD) {
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                IBV_QP_MAX_QP_RD_ATOMIC;
    }
    t_modify(end, &attr, mask);
}

void t_end_up(struct t_end *end, const struct t_address *to,
              const struct t_link *link)
{
    t_end_init(end, link);
    t_end_rtr(end, to, link);
    t_end_rts(end, link);
}

void t_end_move(struct t_end *end, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};

    t_modify(end, &attr, IBV_QP_STATE);
    if (state == IBV_QPS_SQD) {
        t_end_drain(end);
    }
}

void t_end_drain(struct t_end *end)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    do {
        ck_assert_int_eq(ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init), 0);
    } while (attr.sq_draining);
}

enum ibv_qp_state t_end_state(struct t_end *end)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    ck_assert_int_eq(ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
}

void t_end_wait(struct t_end *end, enum ibv_qp_state state)
{
    while (t_end_state(end) != state) {
        sched_yield();
    }
}

void t_pair_open(struct t_end ends[2], const struct t_make *make,
                 const struct t_link *link)
{
    struct t_address address[2];
    int i;

    for (i = 0; i < 2; ++i) {
        t_end_open(&ends[i], make);
        address[i] = t_end_address(&ends[i]);
    }
    for (i = 0; i < 2; ++i) {
        t_end_up(&ends[i], &address[1 - i], link);
    }
}

void t_pair_close(struct t_end ends[2])
{
    t_end_close(&ends[0]);
    t_end_close(&ends[1]);
}

/* ---- work ---- */

static struct ibv_sge t_sge(const struct t_end *end, size_t offset,
                            size_t length)
{
    return (struct ibv_sge){
        .addr   = (uintptr_t)end->buf + offset,
        .length = length,
        .lkey   = (end->mr != NULL) ? end->mr->lkey : 0
    };
}

int t_post_recv(struct t_end *end, uint64_t wr_id, size_t offset, size_t length)
{
    struct ibv_sge sge    = t_sge(end, offset, length);
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr *bad;

    if (end->srq != NULL) {
        return ibv_post_srq_recv(end->srq, &wr, &bad);
    }
    return ibv_post_recv(end->qp, &wr, &bad);
}

/* One request with one piece; all else of it is in wr. */
static int t_post(struct t_end *end, struct ibv_send_wr wr, size_t offset,
                  size_t length)
{
    struct ibv_sge sge = t_sge(end, offset, length);
    struct ibv_send_wr *bad;

    wr.sg_list = &sge;
    wr.num_sge = 1;
    return ibv_post_send(end->qp, &wr, &bad);
}

int t_post_send(struct t_end *end, uint64_t wr_id, size_t offset, size_t length,
                unsigned flags)
{
    const struct ibv_send_wr wr = {
        .wr_id      = wr_id,
        .opcode     = IBV_WR_SEND,
        .send_flags = flags
    };

    return t_post(end, wr, offset, length);
}

int t_post_rdma(struct t_end *end, enum ibv_wr_opcode opcode, uint64_t wr_id,
                size_t offset, size_t length, const struct t_address *to,
                size_t to_offset)
{
    const struct ibv_send_wr wr = {
        .wr_id      = wr_id,
        .opcode     = opcode,
        .send_flags = IBV_SEND_SIGNALED,
        .imm_data   = 0x1234,
        .wr.rdma    = {.remote_addr = to->buf + to_offset, .rkey = to->rkey}
    };

    return t_post(end, wr, offset, length);
}

int t_post_atomic(struct t_end *end, enum ibv_wr_opcode opcode, uint64_t wr_id,
                  size_t offset, const struct t_address *to, size_t to_offset,
                  uint64_t compare_add, uint64_t swap)
{
    const struct ibv_send_wr wr = {
        .wr_id      = wr_id,
        .opcode     = opcode,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.atomic  = {.remote_addr = to->buf + to_offset,
                       .compare_add = compare_add, .swap = swap,
                       .rkey = to->rkey}
    };

    return t_post(end, wr, offset, sizeof(uint64_t));
}

int t_post_datagram(struct t_end *end, struct ibv_ah *ah, uint32_t qpn,
                    uint32_t qkey, uint64_t wr_id, size_t offset,
                    size_t length)
{
    const struct ibv_send_wr wr = {
        .wr_id      = wr_id,
        .opcode     = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.ud      = {.ah = ah, .remote_qpn = qpn, .remote_qkey = qkey}
    };

    return t_post(end, wr, offset, length);
}

struct ibv_ah *t_create_ah(struct t_end *end, const struct t_address *to)
{
    struct ibv_ah_attr attr = {0};
    struct ibv_ah *ah;

    t_fill_av(end, to, &attr);
    ah = ibv_create_ah(end->pd, &attr);
    ck_assert_ptr_nonnull(ah);
    return ah;
}

struct ibv_wc t_poll(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int n;

    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0) {
        sched_yield();
    }
    ck_assert_int_eq(n, 1);
    return wc;
}

struct ibv_wc t_poll_is(struct ibv_cq *cq, uint64_t wr_id,
                        enum ibv_wc_status status)
{
    struct ibv_wc wc = t_poll(cq);

    ck_assert_msg((wc.wr_id == wr_id) && (wc.status == status),
                  "wr_id %lu status %s, expected wr_id %lu status %s",
                  (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status),
                  (unsigned long)wr_id, ibv_wc_status_str(status));
    return wc;
}

struct ibv_wc t_poll_fails(struct ibv_cq *cq, uint64_t wr_id,
                           enum ibv_wc_status status,
                           enum ibv_wc_status elsewhere)
{
    struct ibv_wc wc = t_poll(cq);

    ck_assert_msg((wc.wr_id == wr_id) &&
                  ((wc.status == status) ||
                   (t_is_softroce() && (wc.status == elsewhere))),
                  "wr_id %lu status %s, expected wr_id %lu status %s",
                  (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status),
                  (unsigned long)wr_id, ibv_wc_status_str(status));
    return wc;
}

struct ibv_wc t_poll_refused(struct ibv_cq *cq, uint64_t wr_id)
{
    if (t_differs(T_DIFF_LOCAL_FLUSHED)) {
        return t_poll_is(cq, wr_id, IBV_WC_WR_FLUSH_ERR);
    }
    return t_poll_fails(cq, wr_id, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR);
}

void t_poll_none(struct ibv_cq *cq)
{
    struct ibv_wc wc;

    ck_assert_int_eq(ibv_poll_cq(cq, 1, &wc), 0);
}

void t_check_link(struct t_end *from, struct t_end *to)
{
    static uint8_t value;

    ++value;
    memset(from->buf, value, 64);
    memset(to->buf, 0, 64);
    ck_assert_int_eq(t_post_recv(to, 901, 0, 64), 0);
    ck_assert_int_eq(t_post_send(from, 902, 0, 64, IBV_SEND_SIGNALED), 0);
    t_poll_is(from->send_cq, 902, IBV_WC_SUCCESS);
    t_poll_is(to->recv_cq, 901, IBV_WC_SUCCESS);
    ck_assert_uint_eq(to->buf[0], value);
    ck_assert_uint_eq(to->buf[63], value);
}

/* ---- a second process ---- */

enum { SEGMENTS = 64 };

struct segment {
    char  *base;
    size_t bytes;
};

/* What softverbs has mapped, its own segment and those of peers. */
static int t_segments(struct segment segments[SEGMENTS])
{
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long from, to;
    char line[512];
    int count = 0;

    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof(line), maps) != NULL) {
        if ((strstr(line, "/softverbs-") != NULL) &&
            (sscanf(line, "%lx-%lx", &from, &to) == 2)) {
            ck_assert_int_lt(count, SEGMENTS);
            segments[count++] = (struct segment){(char*)from, to - from};
        }
    }
    fclose(maps);
    return count;
}

pid_t t_fork(void)
{
    struct segment segments[SEGMENTS];
    int count = t_segments(segments);
    pid_t pid = fork();

    while ((pid == 0) && (count > 0)) {
        --count;
        munmap(segments[count].base, segments[count].bytes);
    }
    return pid;
}

void t_peer_start(struct t_peer *peer, t_peer_func_t run)
{
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds),
                     0);
    peer->pid = t_fork();
    ck_assert_int_ge(peer->pid, 0);
    if (peer->pid == 0) {
        close(fds[0]);
        t_unmarked = 1;
        run(fds[1]);
        exit(0);
    }

    close(fds[1]);
    peer->fd = fds[0];
}

void t_peer_join(struct t_peer *peer)
{
    int status;

    ck_assert_int_eq(waitpid(peer->pid, &status, 0), peer->pid);
    ck_assert_msg(status == 0, "the second process ended with status %#x",
                  status);
    close(peer->fd);
}

void t_peer_kill(struct t_peer *peer)
{
    ck_assert_int_eq(kill(peer->pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(peer->pid, NULL, 0), peer->pid);
    close(peer->fd);
}

void t_tell(int fd, const void *data, size_t length)
{
    ck_assert_int_eq(send(fd, data, length, MSG_NOSIGNAL), (ssize_t)length);
}

void t_hear(int fd, void *data, size_t length)
{
    ck_assert_int_eq(recv(fd, data, length, MSG_WAITALL), (ssize_t)length);
}

void t_meet(int fd)
{
    char c = 'm';

    t_tell(fd, &c, 1);
    t_hear(fd, &c, 1);
}

struct t_address t_swap(int fd, const struct t_end *end)
{
    struct t_address own = t_end_address(end);
    struct t_address other;

    t_tell(fd, &own, sizeof(own));
    t_hear(fd, &other, sizeof(other));
    return other;
}
