/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Messages on one RC queue pair, without UCX: what the device and libibverbs
 * cost alone. All messages are sent from one buffer and received into one, as
 * in the bandwidth tests of perftest, so a serial travels as immediate data:
 *
 *   31     30    29 ... 0
 *   last   ack   serial, or count: the lowest bits
 *
 * The sender never finds no RECV: there is one for each message and each
 * acknowledgement that may be under way, and some more. Thus those that a
 * message has taken are posted again when something has been sent, which is
 * the other end's turn to work, or when there are some of them.
 */

#include "tools/flow/flow.h"
#include "tools/rdma/qp.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERBS_DEVICE    "softverbs0:1" /* where nobody has named one */
#define VERBS_DEPTH_MAX 2048u
#define VERBS_SPARE     8u  /* RECVs for what comes beside a window's messages */
#define VERBS_BATCH     16
#define VERBS_INLINE    64u
#define VERBS_SEND_MAX  (1u << 31)

#define VERBS_IMM_LAST (1u << 31)
#define VERBS_IMM_ACK  (1u << 30)
#define VERBS_IMM_MASK (VERBS_IMM_ACK - 1)

typedef struct flow_verbs {
    flow_link_t link;
    daqiri_qp_t qp;
    uint64_t    posted, retired; /* SENDs */
    uint64_t    serial_in;       /* of the message that is awaited */
    uint64_t    count_in;        /* of the last acknowledgement */
    unsigned    taken;           /* RECVs, to be posted again */
    int         batch;           /* completions polled at once */
    size_t      compared;        /* bytes of a message; 0: none are */
} flow_verbs_t;

static void verbs_need(int ret, const daqiri_failure_t *failure)
{
    if (ret != 0) {
        flow_die_as(failure->class_id, "%s", failure->text);
    }
}

/* Both tell where they are, and hear where the other one is. */
static void verbs_swap_addresses(int fd, const daqiri_qp_addr_t *local,
                                 daqiri_qp_addr_t *remote)
{
    daqiri_peer_frame_t mine, theirs;

    daqiri_qp_addr_pack(local, &mine);
    flow_swap(fd, &mine, &theirs);
    daqiri_qp_addr_take(&theirs, remote);
}

/* ---- RECV ---- */

static void verbs_post_taken(flow_verbs_t *verbs)
{
    int error;

    for (; verbs->taken > 0; --verbs->taken) {
        error = daqiri_qp_post_recv(&verbs->qp, 0);
        if (error != 0) {
            flow_die("ibv_post_recv: %s", strerror(error));
        }
    }
}

/* ---- the bytes of a ping-pong ---- */

/* Byte i of the first message; the next ones differ in what is stamped. */
static uint8_t verbs_byte(size_t i)
{
    return (uint8_t)(i * 31 + (i >> 8) + 7);
}

/* The number of a message is in its first bytes and in its last one. */
static void verbs_stamp(uint8_t *buffer, size_t size, uint64_t number)
{
    memcpy(buffer, &number, (size < sizeof(number)) ? size : sizeof(number));
    buffer[size - 1] = (uint8_t)number;
}

static int verbs_has_stamp(const uint8_t *buffer, size_t size, uint64_t number)
{
    uint8_t expected[sizeof(number)];

    if (size > sizeof(number)) {
        return (memcmp(buffer, &number, sizeof(number)) == 0) &&
               (buffer[size - 1] == (uint8_t)number);
    }
    verbs_stamp(expected, size, number);
    return memcmp(buffer, expected, size) == 0;
}

/* All of the first message, the stamp of the others. */
static void verbs_compare(flow_verbs_t *verbs, uint64_t number)
{
    const uint8_t *buffer = daqiri_qp_recv_buffer(&verbs->qp);
    const size_t size     = verbs->compared;
    size_t i;

    if (!verbs_has_stamp(buffer, size, number)) {
        flow_die_as(DAQIRI_CLASS_DATA_MISMATCH, "message %llu did not arrive as it "
                    "was sent", (unsigned long long)number);
    }
    for (i = sizeof(number); (number == 0) && (i + 1 < size); ++i) {
        if (buffer[i] != verbs_byte(i)) {
            flow_die_as(DAQIRI_CLASS_DATA_MISMATCH, "byte %zu of the first message "
                        "is 0x%02x, not 0x%02x", i, buffer[i], verbs_byte(i));
        }
    }
}

static void verbs_fill(flow_verbs_t *verbs)
{
    size_t i;

    for (i = 0; i < verbs->compared; ++i) {
        daqiri_qp_send_buffer(&verbs->qp)[i] = verbs_byte(i);
    }
}

/* ---- SEND ---- */

/* One in a quarter of the queue is signalled: then there is always one under
 * way that will make room. */
static int verbs_post(flow_verbs_t *verbs, uint32_t imm, size_t length)
{
    daqiri_qp_t *qp    = &verbs->qp;
    struct ibv_sge sge = {
        .addr   = (uintptr_t)daqiri_qp_send_buffer(qp),
        .length = (uint32_t)length,
        .lkey   = qp->mr->lkey
    };
    struct ibv_send_wr request = {
        .wr_id    = verbs->posted,
        .sg_list  = &sge,
        .num_sge  = (length > 0) ? 1 : 0,
        .opcode   = IBV_WR_SEND_WITH_IMM,
        .imm_data = htonl(imm)
    };
    struct ibv_send_wr *bad;
    int error;

    if (verbs->posted - verbs->retired >= qp->opts.depth) {
        return 0;
    }
    if (((verbs->posted + 1) % (qp->opts.depth / 4)) == 0) {
        request.send_flags |= IBV_SEND_SIGNALED;
    }
    if ((length > 0) && (length <= qp->cap.max_inline_data)) {
        request.send_flags |= IBV_SEND_INLINE;
    }
    error = ibv_post_send(qp->qp, &request, &bad);
    if (error != 0) {
        flow_die("ibv_post_send: %s", strerror(error));
    }
    ++verbs->posted;
    verbs_post_taken(verbs);
    return 1;
}

static int verbs_send(flow_link_t *link, uint64_t serial, size_t length)
{
    flow_verbs_t *verbs = (flow_verbs_t*)link;

    /* The answer to what was in it has come, so nobody needs that any more. */
    if (verbs->compared > 0) {
        verbs_stamp(daqiri_qp_send_buffer(&verbs->qp), verbs->compared,
                    serial & ~FLOW_LAST);
    }
    return verbs_post(verbs,
                      (uint32_t)(serial & VERBS_IMM_MASK) |
                      (((serial & FLOW_LAST) != 0) ? VERBS_IMM_LAST : 0),
                      length);
}

static int verbs_ack(flow_link_t *link, uint64_t count)
{
    return verbs_post((flow_verbs_t*)link,
                      (uint32_t)(count & VERBS_IMM_MASK) | VERBS_IMM_ACK, 0);
}

/* ---- what comes ---- */

static void verbs_take_recv(flow_verbs_t *verbs, const struct ibv_wc *wc)
{
    const flow_sink_t *sink = &verbs->link.sink;
    const uint32_t imm      = ntohl(wc->imm_data);
    uint64_t serial;

    if (++verbs->taken == VERBS_SPARE) {
        verbs_post_taken(verbs);
    }
    if ((imm & VERBS_IMM_ACK) != 0) {
        verbs->count_in += (imm - verbs->count_in) & VERBS_IMM_MASK;
        sink->on_ack(sink->arg, verbs->count_in);
        return;
    }
    serial = verbs->serial_in + ((imm - verbs->serial_in) & VERBS_IMM_MASK);
    verbs->serial_in = serial + 1;
    if (verbs->compared > 0) {
        verbs_compare(verbs, serial);
    }
    sink->on_data(sink->arg, serial | (((imm & VERBS_IMM_LAST) != 0) ?
                                       FLOW_LAST : 0));
}

/* Not in the poll: emptying a failure takes longer than finding nothing. */
static void verbs_fail_completion(const flow_verbs_t *verbs,
                                  const struct ibv_wc *wc)
{
    daqiri_failure_t failure = {0};

    verbs_need(daqiri_qp_fail_completion(&verbs->qp, wc, &failure), &failure);
}

static int verbs_poll(flow_link_t *link)
{
    flow_verbs_t *verbs = (flow_verbs_t*)link;
    struct ibv_wc wc[VERBS_BATCH];
    int count, i;

    count = ibv_poll_cq(verbs->qp.cq, verbs->batch, wc);
    if (count < 0) {
        flow_die("ibv_poll_cq failed");
    }
    for (i = 0; i < count; ++i) {
        if (wc[i].status != IBV_WC_SUCCESS) {
            verbs_fail_completion(verbs, &wc[i]);
        } else if ((wc[i].opcode & IBV_WC_RECV) != 0) {
            verbs_take_recv(verbs, &wc[i]);
        } else {
            verbs->retired = wc[i].wr_id + 1;
        }
    }
    return count > 0;
}

/* ---- the queue pair ---- */

static void verbs_count(flow_link_t *link, json_t *counters)
{
    (void)link;
    (void)counters; /* verbs tell nothing of one queue pair */
}

/* Messages of a window and the acknowledgements of another. */
static void verbs_choose_depth(flow_verbs_t *verbs, const flow_opts_t *opts,
                               daqiri_qp_opts_t *qp)
{
    uint64_t window = opts->window;

    window = (window > VERBS_DEPTH_MAX / 2 - VERBS_SPARE) ?
             VERBS_DEPTH_MAX / 2 - VERBS_SPARE : window;
    qp->depth              = 2 * ((unsigned)window + VERBS_SPARE);
    verbs->link.window_max = window;
}

static void verbs_create(flow_verbs_t *verbs, const flow_opts_t *opts)
{
    daqiri_failure_t failure = {0};
    const char *devices = (opts->devices != NULL) ? opts->devices :
                          VERBS_DEVICE;
    char *device        = verbs->link.device;
    daqiri_qp_opts_t qp;
    char name[FLOW_DEVICE_MAX];
    size_t length;

    snprintf(device, FLOW_DEVICE_MAX, "%.*s", (int)strcspn(devices, ","),
             devices);
    length = strcspn(device, ":");
    snprintf(name, sizeof(name), "%.*s", (int)length, device);
    daqiri_qp_opts_init(&qp, name, opts->size);
    qp.port = (device[length] == ':') ? (unsigned)atoi(device + length + 1) :
                                        0;
    qp.gid_index     = opts->gid_index;
    qp.mtu           = opts->mtu;
    qp.traffic_class = (uint8_t)opts->traffic_class;
    qp.is_uc         = (strcmp(opts->tl, "verbs_uc") == 0);
    qp.max_inline = (opts->size <= VERBS_INLINE) ? VERBS_INLINE : 0;
    verbs_choose_depth(verbs, opts, &qp);
    verbs_need(daqiri_qp_open(&verbs->qp, &qp, &failure), &failure);
    verbs_need(daqiri_qp_create(&verbs->qp, &failure), &failure);
    snprintf(device, FLOW_DEVICE_MAX, "%.*s:%u", (int)strcspn(name, ":"), name,
             verbs->qp.port_num);
    verbs->qp.opts.device = device;
    verbs_fill(verbs);
}

static json_t *verbs_side(const daqiri_qp_addr_t *addr)
{
    json_t *side = json_object();
    char gid[DAQIRI_GID_TEXT_MAX];

    daqiri_report_int(side, "lid", addr->lid);
    daqiri_report_int(side, "qpn", addr->qpn);
    daqiri_report_int(side, "psn", addr->psn);
    daqiri_report_int(side, "gid_index", addr->gid_index);
    daqiri_report_text(side, "gid", daqiri_gid_text(&addr->gid, gid));
    daqiri_report_int(side, "mtu", 128 << addr->mtu);
    return side;
}

static void verbs_connect(flow_verbs_t *verbs, int fd)
{
    daqiri_failure_t failure = {0};
    daqiri_qp_addr_t remote;
    unsigned i;

    for (i = 0; i < verbs->qp.opts.depth; ++i) {
        if (daqiri_qp_post_recv(&verbs->qp, 0) != 0) {
            flow_die("ibv_post_recv: the device takes %u of %u", i,
                     verbs->qp.opts.depth);
        }
    }
    flow_stage("exchange-rdma-info");
    flow_note("local", verbs_side(&verbs->qp.local));
    verbs_swap_addresses(fd, &verbs->qp.local, &remote);
    flow_note("remote", verbs_side(&remote));
    flow_stage("connect-rdma");
    verbs_need(daqiri_qp_rtr(&verbs->qp, &remote, &failure), &failure);
    verbs_need(daqiri_qp_rts(&verbs->qp, &failure), &failure);
    flow_stage("exchange-rdma-ready");
}

static void verbs_close(flow_link_t *link, int fd)
{
    flow_verbs_t *verbs = (flow_verbs_t*)link;

    flow_meet(fd);
    daqiri_qp_close(&verbs->qp);
    free(verbs);
}

flow_link_t *flow_verbs_open(const flow_opts_t *opts, int fd,
                             const flow_sink_t *sink)
{
    flow_verbs_t *verbs = calloc(1, sizeof(*verbs));

    if (verbs == NULL) {
        flow_die("no memory");
    }
    verbs->link = (flow_link_t){
        .sink  = *sink,
        .most  = VERBS_SEND_MAX,
        .send  = verbs_send,
        .ack   = verbs_ack,
        .poll  = verbs_poll,
        .count = verbs_count,
        .close = verbs_close
    };
    /* behind the answer there is nothing to look for */
    verbs->batch    = (opts->pattern == FLOW_PINGPONG) ? 1 : VERBS_BATCH;
    verbs->compared = (opts->pattern == FLOW_PINGPONG) ? opts->size : 0;
    flow_stage("open-rdma-resources");
    verbs_create(verbs, opts);
    verbs_connect(verbs, fd);
    return &verbs->link;
}
