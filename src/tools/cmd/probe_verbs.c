/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The steps of `daqiri probe` on a device. Each runs in a child of its own and
 * makes what it needs anew, so that one that hangs or dies takes nothing with
 * it but its own answer.
 */

#include "tools/base/clock.h"
#include "tools/base/parse.h"
#include "tools/base/progress.h"
#include "tools/base/report.h"
#include "tools/base/stop.h"
#include "tools/base/watch.h"
#include "tools/cmd/probe.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PROBE_MESSAGE  64
#define PROBE_SIZE     4096
#define PROBE_ANSWER_S 2.0 /* for a completion of a message to itself */

/* Memory is registered up to this, or a quarter of what is there. */
#define PROBE_MEMORY_MAX ((size_t)1 << 30)
#define PROBE_MEMORY_MIN ((size_t)1 << 20)

typedef struct probe_step probe_step_t;

/* What a step's child has at hand. */
typedef struct probe_try {
    const probe_step_t     *step;
    const daqiri_qp_opts_t *opts;
    daqiri_qp_t            qp;
    daqiri_failure_t       failure;
    char                   detail[512];
    int                    said_fd; /* its stderr, or -1: that of daqiri */
} probe_try_t;

struct probe_step {
    const char *name;
    int        (*run)(probe_try_t *try);
    int        is_needed;
    unsigned   after; /* bits of steps without which it is not tried */
};

enum {
    PROBE_DEVICE     = 1u << 0,
    PROBE_PORT       = 1u << 1,
    PROBE_PD         = 1u << 2,
    PROBE_MR         = 1u << 3,
    PROBE_CQ         = 1u << 4,
    PROBE_QP         = 1u << 5,
    PROBE_INIT       = 1u << 6,
    PROBE_RTR        = 1u << 7,
    PROBE_RTS        = 1u << 8,
    PROBE_COMPLETION = 1u << 9
};

/* ---- how far to go ---- */

static int probe_created(probe_try_t *try, const daqiri_qp_opts_t *opts)
{
    return ((daqiri_qp_open(&try->qp, opts, &try->failure) == 0) &&
            (daqiri_qp_create(&try->qp, &try->failure) == 0)) ? 0 : -1;
}

/* A queue pair whose other end is itself. */
static int probe_connected(probe_try_t *try, const daqiri_qp_opts_t *opts)
{
    return ((probe_created(try, opts) == 0) &&
            (daqiri_qp_rtr(&try->qp, &try->qp.local, &try->failure) == 0) &&
            (daqiri_qp_rts(&try->qp, &try->failure) == 0)) ? 0 : -1;
}

static uint64_t probe_deadline(void)
{
    return daqiri_now_ns() + (uint64_t)(PROBE_ANSWER_S * 1e9);
}

/* Both completions of a message from here to here, and its bytes. */
static int probe_finish(probe_try_t *try, size_t length)
{
    uint64_t deadline_ns = probe_deadline();
    struct ibv_wc wc;
    int i, ret;

    for (i = 0; i < 2; ++i) {
        ret = daqiri_qp_wait(&try->qp, &wc, deadline_ns, &try->failure);
        if (ret < 0) {
            return -1;
        }
        if (ret == 0) {
            return daqiri_fail(&try->failure, DAQIRI_CLASS_TIMEOUT, "%d of 2 "
                               "completions came within %.0f s", i,
                               PROBE_ANSWER_S);
        }
    }
    if (memcmp(daqiri_qp_send_buffer(&try->qp),
               daqiri_qp_recv_buffer(&try->qp), length) != 0) {
        return daqiri_fail(&try->failure, DAQIRI_CLASS_DATA_MISMATCH, "%zu "
                           "bytes arrived, and not those that were sent",
                           length);
    }
    return 0;
}

static int probe_send(probe_try_t *try, size_t length, unsigned flags)
{
    size_t i;
    int ret;

    for (i = 0; i < length; ++i) {
        daqiri_qp_send_buffer(&try->qp)[i] = (uint8_t)(i * 7 + 1);
    }
    ret = daqiri_qp_post_recv(&try->qp, 1);
    if (ret != 0) {
        return daqiri_fail_verb(&try->failure, "ibv_post_recv", ret);
    }
    ret = daqiri_qp_post_send(&try->qp, 2, length, IBV_SEND_SIGNALED | flags);
    if (ret != 0) {
        return daqiri_fail_verb(&try->failure, "ibv_post_send", ret);
    }
    return 0;
}

/* ---- what must work ---- */

static int probe_device(probe_try_t *try)
{
    daqiri_failure_t ignored = {0};
    const struct ibv_device_attr *attr = &try->qp.device;
    char size[DAQIRI_SIZE_TEXT_MAX];

    /* The port is the next step's. */
    if ((daqiri_qp_open(&try->qp, try->opts, &ignored) != 0) &&
        ((try->qp.context == NULL) || (attr->phys_port_cnt == 0))) {
        try->failure = ignored;
        return -1;
    }
    snprintf(try->detail, sizeof(try->detail), "firmware %s, %d ports, claims "
             "%d QPs, %d CQs, %d MRs of %s", (attr->fw_ver[0] != '\0') ?
             attr->fw_ver : "unknown", attr->phys_port_cnt, attr->max_qp,
             attr->max_cq, attr->max_mr, (attr->max_mr_size >= INT64_MAX) ?
             "any size" : daqiri_size_text(attr->max_mr_size, size,
                                           sizeof(size)));
    return 0;
}

static int probe_port(probe_try_t *try)
{
    char gid[DAQIRI_GID_TEXT_MAX];

    if (daqiri_qp_open(&try->qp, try->opts, &try->failure) != 0) {
        return -1;
    }
    snprintf(try->detail, sizeof(try->detail), "port %u, %s, LID %u, MTU %u, "
             "GID %d %s (%s)", try->qp.port_num,
             (try->qp.port.link_layer == IBV_LINK_LAYER_ETHERNET) ?
             "Ethernet" : "InfiniBand", try->qp.port.lid,
             128u << try->qp.port.active_mtu, try->qp.local.gid_index,
             daqiri_gid_text(&try->qp.local.gid, gid), try->qp.gids.why);
    return 0;
}

static int probe_pd(probe_try_t *try)
{
    return ((daqiri_qp_open(&try->qp, try->opts, &try->failure) == 0) &&
            (daqiri_qp_create_pd(&try->qp, &try->failure) == 0)) ? 0 : -1;
}

static int probe_register(probe_try_t *try, size_t length, int *error_p)
{
    void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr;

    if (memory == MAP_FAILED) {
        *error_p = errno;
        return -1;
    }
    errno = 0;
    mr    = ibv_reg_mr(try->qp.pd, memory, length, IBV_ACCESS_LOCAL_WRITE);
    *error_p = (errno != 0) ? errno : EIO;
    if (mr != NULL) {
        ibv_dereg_mr(mr);
    }
    munmap(memory, length);
    return (mr != NULL) ? 0 : -1;
}

static size_t probe_memory_max(void)
{
    size_t quarter = (size_t)sysconf(_SC_AVPHYS_PAGES) / 4 *
                     (size_t)sysconf(_SC_PAGESIZE);

    return (quarter < PROBE_MEMORY_MAX) ? quarter : PROBE_MEMORY_MAX;
}

/* How much, by doubling; the limit that explains it is in the detail. */
static int probe_mr(probe_try_t *try)
{
    char most[DAQIRI_SIZE_TEXT_MAX], lock[DAQIRI_SIZE_TEXT_MAX] = "any amount";
    size_t length = PROBE_MEMORY_MIN;
    size_t had    = 0;
    struct rlimit limit;
    int error = 0;

    if ((probe_pd(try) != 0) ||
        (daqiri_qp_create_mr(&try->qp, &try->failure) != 0)) {
        return -1;
    }
    for (; (had == 0) || (length <= probe_memory_max()); length *= 2) {
        if (probe_register(try, length, &error) != 0) {
            break;
        }
        had = length;
    }
    if ((getrlimit(RLIMIT_MEMLOCK, &limit) == 0) &&
        (limit.rlim_cur != RLIM_INFINITY)) {
        daqiri_size_text(limit.rlim_cur, lock, sizeof(lock));
    }
    if (had == 0) {
        return daqiri_fail(&try->failure, DAQIRI_CLASS_RESOURCE_EXHAUSTED,
                           "ibv_reg_mr failed for 1 MiB: %s; this process may "
                           "lock %s (ulimit -l)", strerror(error), lock);
    }
    daqiri_size_text(had, most, sizeof(most));
    if (length <= probe_memory_max()) {
        snprintf(try->detail, sizeof(try->detail), "%s at most, twice that is "
                 "refused: %s; may lock %s", most, strerror(error), lock);
    } else {
        snprintf(try->detail, sizeof(try->detail), "%s, more was not tried; "
                 "may lock %s", most, lock);
    }
    return 0;
}

static int probe_cq(probe_try_t *try)
{
    return ((daqiri_qp_open(&try->qp, try->opts, &try->failure) == 0) &&
            (daqiri_qp_create_cq(&try->qp, &try->failure) == 0)) ? 0 : -1;
}

static int probe_qp(probe_try_t *try)
{
    if ((probe_cq(try) != 0) ||
        (daqiri_qp_create_pd(&try->qp, &try->failure) != 0) ||
        (daqiri_qp_create_qp(&try->qp, &try->failure) != 0)) {
        return -1;
    }
    snprintf(try->detail, sizeof(try->detail), "RC, QPN %u",
             try->qp.local.qpn);
    return 0;
}

static int probe_init(probe_try_t *try)
{
    return probe_created(try, try->opts);
}

static int probe_rtr(probe_try_t *try)
{
    return ((probe_created(try, try->opts) == 0) &&
            (daqiri_qp_rtr(&try->qp, &try->qp.local, &try->failure) == 0)) ?
           0 : -1;
}

static int probe_rts(probe_try_t *try)
{
    return probe_connected(try, try->opts);
}

static int probe_completion(probe_try_t *try)
{
    if ((probe_connected(try, try->opts) != 0) ||
        (probe_send(try, PROBE_MESSAGE, 0) != 0) ||
        (probe_finish(try, PROBE_MESSAGE) != 0)) {
        return -1;
    }
    snprintf(try->detail, sizeof(try->detail), "%d bytes to itself arrived",
             PROBE_MESSAGE);
    return 0;
}

static int probe_ah(probe_try_t *try)
{
    struct ibv_ah_attr attr;
    struct ibv_ah *ah;

    if (probe_pd(try) != 0) {
        return -1;
    }
    daqiri_qp_ah(&try->qp, &try->qp.local, &attr);
    errno = 0;
    ah    = ibv_create_ah(try->qp.pd, &attr);
    if (ah == NULL) {
        return daqiri_fail_verb(&try->failure, "ibv_create_ah", errno);
    }
    ibv_destroy_ah(ah);
    snprintf(try->detail, sizeof(try->detail), "to the port itself, with GID "
             "%d", try->qp.local.gid_index);
    return 0;
}

/* ---- what is there besides ---- */

static int probe_srq(probe_try_t *try)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_sge sge            = {.length = PROBE_MESSAGE};
    struct ibv_recv_wr request    = {.sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr *bad;
    struct ibv_srq *srq;
    int ret;

    if ((probe_pd(try) != 0) ||
        (daqiri_qp_create_mr(&try->qp, &try->failure) != 0)) {
        return -1;
    }
    errno = 0;
    srq   = ibv_create_srq(try->qp.pd, &attr);
    if (srq == NULL) {
        return daqiri_fail_verb(&try->failure, "ibv_create_srq", errno);
    }
    sge.addr = (uintptr_t)daqiri_qp_recv_buffer(&try->qp);
    sge.lkey = try->qp.mr->lkey;
    ret      = ibv_post_srq_recv(srq, &request, &bad);
    ibv_destroy_srq(srq);
    if (ret != 0) {
        return daqiri_fail_verb(&try->failure, "ibv_post_srq_recv", ret);
    }
    snprintf(try->detail, sizeof(try->detail), "claims %d of %d requests",
             try->qp.device.max_srq, try->qp.device.max_srq_wr);
    return 0;
}

/* Claims are hints: the largest that a queue pair is made with. */
static int probe_inline(probe_try_t *try)
{
    daqiri_qp_opts_t opts = *try->opts;
    daqiri_failure_t why  = {0};
    unsigned had          = 0;
    uint32_t granted;

    for (opts.max_inline = 16; opts.max_inline <= PROBE_SIZE;
         opts.max_inline *= 2) {
        daqiri_qp_close(&try->qp);
        memset(&why, 0, sizeof(why));
        if ((daqiri_qp_open(&try->qp, &opts, &try->failure) != 0)) {
            return -1;
        }
        if (daqiri_qp_create(&try->qp, &why) != 0) {
            break;
        }
        had = opts.max_inline;
    }
    daqiri_qp_close(&try->qp);
    opts.max_inline = had;
    if ((had == 0) || (probe_connected(try, &opts) != 0)) {
        return daqiri_fail(&try->failure, DAQIRI_CLASS_UNSUPPORTED, "no queue "
                           "pair takes inline data: %s", why.text);
    }
    granted = (try->qp.cap.max_inline_data < PROBE_SIZE) ?
              try->qp.cap.max_inline_data : PROBE_SIZE;
    if ((probe_send(try, granted, IBV_SEND_INLINE) != 0) ||
        (probe_finish(try, granted) != 0)) {
        return -1;
    }
    snprintf(try->detail, sizeof(try->detail), "%u bytes asked for, %u "
             "granted and sent", had, granted);
    return 0;
}

/* One message gathered from as many places as the device claims. */
static int probe_sge(probe_try_t *try)
{
    enum { PIECE = 8, MAX = 128 };
    daqiri_qp_opts_t opts = *try->opts;
    struct ibv_sge sge[MAX];
    struct ibv_send_wr request = {
        .wr_id      = 2,
        .sg_list    = sge,
        .opcode     = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED
    };
    struct ibv_send_wr *bad;
    int claimed, count, i, ret;

    if (daqiri_qp_open(&try->qp, &opts, &try->failure) != 0) {
        return -1;
    }
    claimed = try->qp.device.max_sge;
    daqiri_qp_close(&try->qp);
    count        = (claimed < MAX) ? claimed : MAX;
    opts.max_sge = (unsigned)count;
    if (probe_connected(try, &opts) != 0) {
        return -1;
    }
    for (i = 0; i < count; ++i) {
        memset(daqiri_qp_send_buffer(&try->qp) + i * PIECE, i + 1, PIECE);
        sge[i].addr   = (uintptr_t)daqiri_qp_send_buffer(&try->qp) +
                        (uintptr_t)(i * PIECE);
        sge[i].length = PIECE;
        sge[i].lkey   = try->qp.mr->lkey;
    }
    request.num_sge = count;
    ret             = daqiri_qp_post_recv(&try->qp, 1);
    if (ret == 0) {
        ret = ibv_post_send(try->qp.qp, &request, &bad);
    }
    if (ret != 0) {
        return daqiri_fail_verb(&try->failure, "ibv_post_send", ret);
    }
    if (probe_finish(try, (size_t)(count * PIECE)) != 0) {
        return -1;
    }
    snprintf(try->detail, sizeof(try->detail), "claims %d, %d sent as one "
             "message", claimed, count);
    return 0;
}

/* Adds to a word of its own memory and looks at both results. */
static int probe_atomics(probe_try_t *try)
{
    static const uint64_t before = 40, more = 2;
    struct ibv_sge sge         = {.length = sizeof(uint64_t)};
    struct ibv_send_wr request = {
        .wr_id      = 2,
        .sg_list    = &sge,
        .num_sge    = 1,
        .opcode     = IBV_WR_ATOMIC_FETCH_AND_ADD,
        .send_flags = IBV_SEND_SIGNALED
    };
    struct ibv_send_wr *bad;
    struct ibv_wc wc;
    uint64_t *target, *fetched;
    int ret;

    if (probe_connected(try, try->opts) != 0) {
        return -1;
    }
    if (try->qp.device.atomic_cap == IBV_ATOMIC_NONE) {
        return daqiri_fail(&try->failure, DAQIRI_CLASS_UNSUPPORTED,
                           "the device claims none");
    }
    target  = (void*)daqiri_qp_recv_buffer(&try->qp);
    fetched = (void*)daqiri_qp_send_buffer(&try->qp);
    *target = before;
    sge.addr = (uintptr_t)fetched;
    sge.lkey = try->qp.mr->lkey;
    request.wr.atomic.remote_addr = (uintptr_t)target;
    request.wr.atomic.rkey        = try->qp.mr->rkey;
    request.wr.atomic.compare_add = more;
    ret = ibv_post_send(try->qp.qp, &request, &bad);
    if (ret != 0) {
        return daqiri_fail_verb(&try->failure, "ibv_post_send", ret);
    }
    ret = daqiri_qp_wait(&try->qp, &wc, probe_deadline(), &try->failure);
    if (ret <= 0) {
        return daqiri_fail(&try->failure, DAQIRI_CLASS_TIMEOUT, "no completion "
                           "came within %.0f s", PROBE_ANSWER_S);
    }
    if ((*target != before + more) || (*fetched != before)) {
        return daqiri_fail(&try->failure, DAQIRI_CLASS_DATA_MISMATCH, "fetch "
                           "and add gave a wrong result");
    }
    snprintf(try->detail, sizeof(try->detail), "fetch and add works, atomic "
             "%s", (try->qp.device.atomic_cap == IBV_ATOMIC_GLOB) ?
             "with the processors, too" : "among requests to the device");
    return 0;
}

/* A device that registers memory of another, such as a GPU's, looks at the descriptor
 * that stands for it, and finds that this is none. */
static int probe_dmabuf(probe_try_t *try)
{
    struct ibv_mr *mr;

    if (probe_pd(try) != 0) {
        return -1;
    }
    errno = 0;
    mr    = ibv_reg_dmabuf_mr(try->qp.pd, 0, 4096, 0, -1,
                              IBV_ACCESS_LOCAL_WRITE);
    if (mr != NULL) {
        ibv_dereg_mr(mr);
    } else if (errno != EBADF) {
        return daqiri_fail_verb(&try->failure, "ibv_reg_dmabuf_mr", errno);
    }
    snprintf(try->detail, sizeof(try->detail), "memory of other devices can be "
             "registered, from UCX 1.14 on");
    return 0;
}

/* Armed, then woken by the completion and not by the time-out. */
static int probe_events(probe_try_t *try)
{
    daqiri_qp_opts_t opts = *try->opts;
    struct pollfd event   = {.events = POLLIN};
    struct ibv_cq *cq;
    void *context;
    int ret;

    opts.has_events = 1;
    if (probe_connected(try, &opts) != 0) {
        return -1;
    }
    ret = ibv_req_notify_cq(try->qp.cq, 0);
    if (ret != 0) {
        return daqiri_fail_verb(&try->failure, "ibv_req_notify_cq", ret);
    }
    if (probe_send(try, PROBE_MESSAGE, 0) != 0) {
        return -1;
    }
    event.fd = try->qp.channel->fd;
    if (poll(&event, 1, (int)(PROBE_ANSWER_S * 1e3)) != 1) {
        return daqiri_fail(&try->failure, DAQIRI_CLASS_TIMEOUT, "the "
                           "completion channel did not wake up within %.0f s",
                           PROBE_ANSWER_S);
    }
    if ((ibv_get_cq_event(try->qp.channel, &cq, &context) != 0) ||
        (cq != try->qp.cq)) {
        return daqiri_fail_verb(&try->failure, "ibv_get_cq_event", errno);
    }
    ibv_ack_cq_events(cq, 1);
    snprintf(try->detail, sizeof(try->detail), "a sleeping program is woken by "
             "a completion");
    return probe_finish(try, PROBE_MESSAGE);
}

static int probe_uc(probe_try_t *try)
{
    daqiri_qp_opts_t opts = *try->opts;

    opts.is_uc = 1;
    if ((probe_connected(try, &opts) != 0) ||
        (probe_send(try, PROBE_MESSAGE, 0) != 0)) {
        return -1;
    }
    return probe_finish(try, PROBE_MESSAGE);
}

/* ---- all of them ---- */

#define PROBE_MADE (PROBE_DEVICE | PROBE_PORT | PROBE_PD)
#define PROBE_UP   (PROBE_MADE | PROBE_MR | PROBE_CQ | PROBE_QP)

/* The order of the first ones is that of the bits. */
static const probe_step_t probe_steps[] = {
    {"device", probe_device, 1, 0},
    {"port", probe_port, 1, PROBE_DEVICE},
    {"pd", probe_pd, 1, PROBE_DEVICE | PROBE_PORT},
    {"memory", probe_mr, 1, PROBE_MADE},
    {"cq", probe_cq, 1, PROBE_DEVICE | PROBE_PORT},
    {"qp", probe_qp, 1, PROBE_MADE | PROBE_CQ},
    {"init", probe_init, 1, PROBE_UP},
    {"rtr", probe_rtr, 1, PROBE_UP | PROBE_INIT},
    {"rts", probe_rts, 1, PROBE_UP | PROBE_RTR},
    {"completion", probe_completion, 1, PROBE_UP | PROBE_RTS},
    {"ah", probe_ah, 1, PROBE_MADE},
    {"srq", probe_srq, 0, PROBE_MADE | PROBE_MR},
    {"inline", probe_inline, 0, PROBE_UP | PROBE_COMPLETION},
    {"sge", probe_sge, 0, PROBE_UP | PROBE_COMPLETION},
    {"atomics", probe_atomics, 0, PROBE_UP | PROBE_RTS},
    {"dmabuf", probe_dmabuf, 0, PROBE_MADE},
    {"events", probe_events, 0, PROBE_UP | PROBE_COMPLETION},
    {"uc", probe_uc, 0, PROBE_UP}
};

#define PROBE_NUM_STEPS (sizeof(probe_steps) / sizeof(probe_steps[0]))

json_t *daqiri_probe_row(json_t *rows, const char *name, int is_needed)
{
    json_t *row = daqiri_report_row(rows);

    daqiri_report_text(row, "name", name);
    daqiri_report_text(row, "result", DAQIRI_PROBE_SKIPPED);
    daqiri_report_bool(row, "needed", is_needed);
    daqiri_report_set(row, "us", json_null());
    daqiri_report_text(row, "detail", NULL);
    daqiri_report_text(row, "failure_class", NULL);
    daqiri_report_text(row, "error", NULL);
    return row;
}

static json_t *probe_child(void *arg)
{
    probe_try_t *try = arg;
    json_t *result   = json_object();
    int ret;

    if (try->said_fd >= 0) {
        dup2(try->said_fd, STDERR_FILENO);
    }
    ret = try->step->run(try);
    daqiri_report_text(result, "detail",
                       (try->detail[0] != '\0') ? try->detail : NULL);
    daqiri_failure_report(&try->failure, result);
    daqiri_report_bool(result, "ok", ret == 0);
    daqiri_report_int(result, "port", try->qp.port_num);
    daqiri_qp_close(&try->qp);
    return result;
}

static void probe_note(json_t *row, const probe_step_t *step,
                       const daqiri_watch_t *watch)
{
    char text[256];
    int is_ok;

    if (watch->end != DAQIRI_WATCH_DONE) {
        daqiri_watch_text(watch, watch->timeout, text, sizeof(text));
        daqiri_report_text(row, "result",
                           (watch->end == DAQIRI_WATCH_TIMEOUT) ?
                           DAQIRI_PROBE_TIMEOUT : DAQIRI_PROBE_FAILED);
        daqiri_report_text(row, "failure_class", daqiri_class_name(
                (watch->end == DAQIRI_WATCH_TIMEOUT) ?
                DAQIRI_CLASS_PROVIDER_TIMEOUT : DAQIRI_CLASS_PROVIDER_DIED));
        daqiri_report_text(row, "error", text);
        return;
    }
    is_ok = json_is_true(json_object_get(watch->result, "ok"));
    daqiri_report_text(row, "result", is_ok ? DAQIRI_PROBE_OK :
                       step->is_needed ? DAQIRI_PROBE_FAILED :
                                         DAQIRI_PROBE_ABSENT);
    daqiri_report_text(row, "detail",
                       daqiri_report_find_text(watch->result, "detail"));
    daqiri_report_text(row, "failure_class",
                       daqiri_report_find_text(watch->result,
                                               "failure_class"));
    daqiri_report_text(row, "error",
                       daqiri_report_find_text(watch->result, "error"));
    json_decref(watch->result);
}

/* A driver may say on stderr why it has not what a job does not need. */
static int probe_listen(const probe_step_t *step)
{
    return step->is_needed ? -1 : memfd_create("said", MFD_CLOEXEC);
}

/* Of what is absent it is a part of the answer; else it goes where it was meant
 * to go. */
static void probe_hear(json_t *row, int fd)
{
    const char *error = daqiri_report_find_text(row, "error");
    char text[512];
    ssize_t length;

    if (fd < 0) {
        return;
    }
    length = pread(fd, text, sizeof(text) - 1, 0);
    close(fd);
    if (length <= 0) {
        return;
    }
    text[length] = '\0';
    if (strcmp(daqiri_report_find_text(row, "result"),
               DAQIRI_PROBE_ABSENT) != 0) {
        fputs(text, stderr);
        return;
    }
    text[strcspn(text, "\n")] = '\0';
    daqiri_report_format(row, "error", "%s%s%s", (error != NULL) ? error : "",
                         (error != NULL) ? "; " : "", text);
}

/* Of a step that came to have a port, or the one that is known so far. */
static unsigned probe_port_of(const daqiri_watch_t *watch, unsigned known)
{
    json_int_t port = (watch->end != DAQIRI_WATCH_DONE) ? 0 :
                      json_integer_value(json_object_get(watch->result,
                                                         "port"));

    return (port > 0) ? (unsigned)port : known;
}

/* Why a step is left out, or NULL. */
static const char *probe_skip(const probe_step_t *step, unsigned missing,
                              const char *wedged)
{
    size_t i;

    if (wedged != NULL) {
        return wedged;
    }
    for (i = 0; i < PROBE_NUM_STEPS; ++i) {
        if ((step->after & missing & (1u << i)) != 0) {
            return probe_steps[i].name;
        }
    }
    return NULL;
}

unsigned daqiri_probe_verbs(json_t *rows, const daqiri_qp_opts_t *opts,
                            double timeout)
{
    unsigned port      = (opts->port > 0) ? opts->port : 1;
    const char *wedged = NULL;
    unsigned missing   = 0;
    const char *cause;
    daqiri_watch_t watch = {0};
    daqiri_progress_t progress;
    probe_try_t try;
    uint64_t start_ns;
    json_t *row;
    size_t i;

    daqiri_progress_start(&progress);
    watch.progress = &progress;
    for (i = 0; i < PROBE_NUM_STEPS; ++i) {
        row   = daqiri_probe_row(rows, probe_steps[i].name,
                                 probe_steps[i].is_needed);
        cause = daqiri_stop_asked() ? "you" :
                probe_skip(&probe_steps[i], missing, wedged);
        if (cause != NULL) {
            missing |= 1u << i;
            daqiri_report_format(row, "detail", "not tried, because of %s",
                                 cause);
            continue;
        }
        memset(&try, 0, sizeof(try));
        try.step      = &probe_steps[i];
        try.opts      = opts;
        try.said_fd   = probe_listen(try.step);
        watch.timeout = timeout;
        watch.what    = probe_steps[i].name;
        start_ns      = daqiri_now_ns();
        daqiri_watch_run(&watch, probe_child, &try);
        daqiri_report_real(row, "us",
                           (double)(daqiri_now_ns() - start_ns) / 1e3);
        port = probe_port_of(&watch, port);
        probe_note(row, &probe_steps[i], &watch);
        probe_hear(row, try.said_fd);
        if (strcmp(daqiri_report_find_text(row, "result"),
                   DAQIRI_PROBE_OK) != 0) {
            missing |= 1u << i;
        }
        if (watch.end == DAQIRI_WATCH_TIMEOUT) {
            wedged = probe_steps[i].name;
        }
    }
    daqiri_progress_end(&progress);
    return port;
}
