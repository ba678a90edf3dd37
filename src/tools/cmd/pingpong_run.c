/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The stages of a ping-pong, in order, each behind the last on both sides:
 *
 *   pre-resource-control   TCP, versions, the client's terms
 *   open-rdma-resources    device, PD, MR, CQ, QP, INIT
 *   post-resource-control  both have them
 *   exchange-rdma-info     LID, QPN, PSN, GID
 *   connect-rdma           RTR, RTS
 *   exchange-rdma-ready    both are in RTS and have posted receives
 *   datapath               the messages
 *   done                   neither needs the other any more
 *
 * The barrier before the data path is why the first message cannot be lost,
 * and the last one why no side pulls its queue pair away from the other.
 */

#include "tools/base/clock.h"
#include "tools/base/hist.h"
#include "tools/base/interval.h"
#include "tools/base/progress.h"
#include "tools/base/stop.h"
#include "tools/base/ticks.h"
#include "tools/cmd/pingpong.h"
#include "tools/peer/net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How often the data path looks up from its queue. */
#define PINGPONG_LOOK_NS 100000000ull
#define PINGPONG_STEP_NS 500000000ull

/* What the watchdog gives on top of our own time-outs. */
#define PINGPONG_GRACE 3.0

/* Polls between two looks at the clock, ticks between two at everything else:
 * neither is for the time of a message. */
#define PINGPONG_POLLS      256
#define PINGPONG_LOOK_TICKS (1u << 20)

/* As in perftest: one request of so many is signalled, short messages go
 * inline, and receives are posted far ahead. With only the next ones posted,
 * each message has to find out first that there is one. */
#define PINGPONG_DEPTH  64u
#define PINGPONG_SIGNAL 16
#define PINGPONG_INLINE 64u

typedef struct pingpong {
    daqiri_pingpong_t    opts;
    daqiri_watch_child_t *child;
    json_t               *report;
    daqiri_failure_t     failure;
    daqiri_qp_t          qp;
    daqiri_qp_addr_t     remote;
    int                  fd;         /* control connection, or -1 */
    int                  is_client;
    uint64_t             stage_ns;   /* when it began */
    uint64_t             deadline_ns;
    /* data path */
    daqiri_hist_t        *hist;
    daqiri_progress_t    progress;
    daqiri_interval_t    interval;
    uint64_t             done;       /* iterations */
    daqiri_ticks_t       ticks;
    uint64_t             start, end; /* ticks */
    double               tick_ns;
    uint64_t             start_ns, step_ns, look_ns;
    double               cpu_percent;
    int                  peer_done;  /* the peer has said so, */
    uint64_t             peer_count; /* and after how many round trips */
    unsigned             flags;      /* of each request */
    int                  recvs;      /* completed, and not waited for yet */
    int                  taken;      /* of those posted; to be posted again */
    uint64_t             posted, retired; /* requests */
} pingpong_t;

/* ---- stages ---- */

static void pingpong_stage_over(pingpong_t *pp)
{
    json_t *row;

    if (pp->failure.stage == NULL) {
        return;
    }
    row = daqiri_report_row(daqiri_report_array(pp->report, "stages"));
    daqiri_report_text(row, "name", pp->failure.stage);
    daqiri_report_bool(row, "ok", pp->failure.class_id == DAQIRI_CLASS_NONE);
    daqiri_report_real(row, "us",
                       (double)(daqiri_now_ns() - pp->stage_ns) / 1e3);
}

static void pingpong_stage(pingpong_t *pp, const char *name, double timeout)
{
    pingpong_stage_over(pp);
    pp->failure.stage = name;
    pp->stage_ns      = daqiri_now_ns();
    pp->deadline_ns   = pp->stage_ns + (uint64_t)(timeout * 1e9);
    daqiri_watch_step(pp->child, name, timeout + PINGPONG_GRACE);
}

/* Both sides say that they are through a stage. */
static int pingpong_barrier(pingpong_t *pp)
{
    daqiri_peer_frame_t frame = {.kind = DAQIRI_PEER_READY};

    snprintf(frame.ready.stage, sizeof(frame.ready.stage), "%s",
             pp->failure.stage);
    if ((daqiri_net_send_frame(pp->fd, &frame, pp->deadline_ns,
                               &pp->failure) != 0) ||
        (daqiri_net_expect(pp->fd, DAQIRI_PEER_READY, &frame, pp->deadline_ns,
                           &pp->failure) != 0)) {
        return -1;
    }
    return (strcmp(frame.ready.stage, pp->failure.stage) == 0) ? 0 :
           daqiri_fail(&pp->failure, DAQIRI_CLASS_PROTOCOL, "the peer is in "
                       "stage %s, not in %s", frame.ready.stage,
                       pp->failure.stage);
}

static int pingpong_listen(pingpong_t *pp)
{
    int listener = daqiri_net_listen(pp->opts.listen_on, &pp->failure);
    char names[DAQIRI_NET_NAMES][DAQIRI_NET_NAME_MAX];
    int i, count;

    if (listener < 0) {
        return -1;
    }
    count = daqiri_net_listens_on(listener, names);
    for (i = 0; i < count; ++i) {
        fprintf(stderr, "%s: waiting for a client on %s\n", pp->opts.speaker,
                names[i]);
    }
    daqiri_watch_step(pp->child, "pre-resource-control", 7 * 24 * 3600.0);
    pp->fd = daqiri_net_accept(listener, UINT64_MAX, &pp->failure);
    close(listener);
    if (pp->fd < 0) {
        return -1;
    }
    /* The time for a client to come does not count. */
    pp->deadline_ns = daqiri_now_ns() +
                      (uint64_t)(pp->opts.setup_timeout * 1e9);
    daqiri_watch_step(pp->child, "pre-resource-control",
                      pp->opts.setup_timeout + PINGPONG_GRACE);
    return 0;
}

/* The server takes the client's terms. */
static int pingpong_terms(pingpong_t *pp)
{
    daqiri_peer_frame_t frame = {.kind = DAQIRI_PEER_TERMS};

    if (pp->is_client) {
        frame.terms.size  = pp->opts.size;
        frame.terms.iters = pp->opts.iters;
        frame.terms.is_uc = (uint8_t)pp->opts.is_uc;
        return daqiri_net_send_frame(pp->fd, &frame, pp->deadline_ns,
                                     &pp->failure);
    }
    if (daqiri_net_expect(pp->fd, DAQIRI_PEER_TERMS, &frame, pp->deadline_ns,
                          &pp->failure) != 0) {
        return -1;
    }
    pp->opts.size  = frame.terms.size;
    pp->opts.iters = frame.terms.iters;
    pp->opts.is_uc = frame.terms.is_uc;
    return daqiri_quota_take(pp->opts.quota, pp->opts.size, 0, &pp->failure);
}

/* A connection on which both have said who they are. */
static int pingpong_meet(pingpong_t *pp)
{
    char version[DAQIRI_PEER_WORD_MAX];

    if (pp->opts.peer_version != NULL) {
        pp->fd = pp->opts.fd;
        return 0;
    }
    if (pp->is_client) {
        pp->fd = daqiri_net_connect(pp->opts.connect_to, pp->deadline_ns,
                                    &pp->failure);
    } else if (pingpong_listen(pp) != 0) {
        return -1;
    }
    if ((pp->fd < 0) ||
        (daqiri_net_hello(pp->fd, DAQIRI_PEER_PINGPONG, version,
                          pp->deadline_ns, &pp->failure) != 0)) {
        return -1;
    }
    daqiri_report_text(pp->report, "peer_version", version);
    return 0;
}

static int pingpong_control(pingpong_t *pp)
{
    char name[DAQIRI_NET_NAME_MAX];
    int ret;

    pingpong_stage(pp, "pre-resource-control", pp->opts.setup_timeout);
    if (pp->opts.by_hand != NULL) {
        return 0;
    }
    ret = pingpong_meet(pp);
    if (pp->fd >= 0) {
        daqiri_report_text(pp->report, "local_addr",
                           daqiri_net_name(pp->fd, 0, name));
        daqiri_report_text(pp->report, "remote_addr",
                           daqiri_net_name(pp->fd, 1, name));
    }
    return (ret == 0) ? pingpong_terms(pp) : -1;
}

static int pingpong_open(pingpong_t *pp)
{
    daqiri_qp_opts_t opts;

    pingpong_stage(pp, "open-rdma-resources", pp->opts.setup_timeout);
    daqiri_qp_opts_init(&opts, pp->opts.device, pp->opts.size);
    opts.port      = pp->opts.port;
    opts.gid_index = pp->opts.gid_index;
    opts.mtu       = pp->opts.mtu;
    opts.is_uc     = pp->opts.is_uc;
    opts.depth     = PINGPONG_DEPTH;
    opts.traffic_class = (uint8_t)pp->opts.traffic_class;
    opts.max_inline = (pp->opts.size <= PINGPONG_INLINE) ? PINGPONG_INLINE : 0;
    if ((daqiri_qp_open(&pp->qp, &opts, &pp->failure) != 0) ||
        (daqiri_qp_create(&pp->qp, &pp->failure) != 0)) {
        return -1;
    }
    pp->flags = (pp->opts.size <= pp->qp.cap.max_inline_data) ?
                IBV_SEND_INLINE : 0;
    pingpong_stage(pp, "post-resource-control", pp->opts.setup_timeout);
    return (pp->fd < 0) ? 0 : pingpong_barrier(pp);
}

static int pingpong_info_tcp(pingpong_t *pp)
{
    daqiri_peer_frame_t frame;

    daqiri_qp_addr_pack(&pp->qp.local, &frame);
    if ((daqiri_net_send_frame(pp->fd, &frame, pp->deadline_ns,
                               &pp->failure) != 0) ||
        (daqiri_net_expect(pp->fd, DAQIRI_PEER_INFO, &frame, pp->deadline_ns,
                           &pp->failure) != 0)) {
        return -1;
    }
    daqiri_qp_addr_take(&frame, &pp->remote);
    return 0;
}

static json_t *pingpong_side(const daqiri_qp_addr_t *addr)
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

static int pingpong_info(pingpong_t *pp)
{
    int ret;

    pingpong_stage(pp, "exchange-rdma-info",
                   (pp->opts.by_hand != NULL) ? 3600 :
                                                pp->opts.setup_timeout);
    daqiri_report_set(pp->report, "local", pingpong_side(&pp->qp.local));
    daqiri_report_int(pp->report, "port", pp->qp.port_num);
    ret = (pp->fd >= 0) ? pingpong_info_tcp(pp) :
          daqiri_pingpong_hand_over(&pp->opts, &pp->qp.local, &pp->remote,
                                    &pp->failure);
    if (ret == 0) {
        daqiri_report_set(pp->report, "remote", pingpong_side(&pp->remote));
    }
    return ret;
}

static int pingpong_post_recv(pingpong_t *pp)
{
    int ret = daqiri_qp_post_recv(&pp->qp, 0);

    return (ret == 0) ? 0 : daqiri_fail_verb(&pp->failure, "ibv_post_recv",
                                             ret);
}

static int pingpong_connect(pingpong_t *pp)
{
    unsigned i;

    pingpong_stage(pp, "connect-rdma", pp->opts.setup_timeout);
    for (i = 0; i < PINGPONG_DEPTH; ++i) {
        if (pingpong_post_recv(pp) != 0) {
            return -1;
        }
    }
    if ((daqiri_qp_rtr(&pp->qp, &pp->remote, &pp->failure) != 0) ||
        (daqiri_qp_rts(&pp->qp, &pp->failure) != 0)) {
        return -1;
    }
    pingpong_stage(pp, "exchange-rdma-ready",
                   (pp->opts.by_hand != NULL) ? 3600 :
                                                pp->opts.setup_timeout);
    return (pp->fd >= 0) ? pingpong_barrier(pp) :
           daqiri_pingpong_hand_ready(&pp->opts, &pp->failure);
}

/* ---- the messages ---- */

/* Byte i of the first message; the next ones differ in what is stamped. */
static uint8_t pingpong_byte(size_t i)
{
    return (uint8_t)(i * 31 + (i >> 8) + 7);
}

/* The number of a message is in its first bytes and in its last one. */
static void pingpong_stamp(uint8_t *buffer, size_t size, uint64_t number)
{
    if (size >= sizeof(number)) {
        memcpy(buffer, &number, sizeof(number));
    } else {
        memcpy(buffer, &number, size);
    }
    buffer[size - 1] = (uint8_t)number;
}

static int pingpong_has_stamp(const uint8_t *buffer, size_t size,
                              uint64_t number)
{
    uint8_t expected[sizeof(number)];

    if (size > sizeof(number)) {
        return (memcmp(buffer, &number, sizeof(number)) == 0) &&
               (buffer[size - 1] == (uint8_t)number);
    }
    pingpong_stamp(expected, size, number);
    return memcmp(buffer, expected, size) == 0;
}

/* All of the first message, the stamp of the others. */
static int pingpong_check(pingpong_t *pp, uint64_t number)
{
    const uint8_t *buffer = daqiri_qp_recv_buffer(&pp->qp);
    size_t size           = pp->opts.size;
    size_t i;

    if (!pingpong_has_stamp(buffer, size, number)) {
        return daqiri_fail(&pp->failure, DAQIRI_CLASS_DATA_MISMATCH, "message "
                           "%llu did not arrive as it was sent",
                           (unsigned long long)number);
    }
    for (i = sizeof(number); (number == 0) && (i + 1 < size); ++i) {
        if (buffer[i] != pingpong_byte(i)) {
            return daqiri_fail(&pp->failure, DAQIRI_CLASS_DATA_MISMATCH,
                               "byte %zu of the first message is 0x%02x, not "
                               "0x%02x", i, buffer[i], pingpong_byte(i));
        }
    }
    return 0;
}

/* Whether the peer has something to say: that it is done, failed, or gone. */
static int pingpong_look(pingpong_t *pp)
{
    daqiri_peer_frame_t frame;

    if ((pp->fd < 0) || pp->peer_done || !daqiri_net_is_readable(pp->fd)) {
        return 0;
    }
    if (daqiri_net_expect(pp->fd, DAQIRI_PEER_DONE, &frame,
                          daqiri_now_ns() + PINGPONG_LOOK_NS * 10,
                          &pp->failure) != 0) {
        return -1;
    }
    pp->peer_done  = 1;
    pp->peer_count = frame.done.messages;
    return 0;
}

/* What is done of it, by the number or by the time, whichever ends it first. */
static double pingpong_part(const pingpong_t *pp, uint64_t now_ns)
{
    double number = (pp->opts.iters < DAQIRI_PEER_ITERS_MAX) ?
                    (double)pp->done / (double)pp->opts.iters : -1;
    double time   = (pp->opts.duration > 0) ?
                    (double)(now_ns - pp->start_ns) / 1e9 / pp->opts.duration : -1;

    return (number > time) ? number : time;
}

static void pingpong_tick(pingpong_t *pp, uint64_t now_ns)
{
    if (now_ns - pp->step_ns > PINGPONG_STEP_NS) {
        pp->step_ns = now_ns;
        daqiri_watch_step(pp->child, "datapath",
                          pp->opts.timeout + PINGPONG_GRACE);
    }
    if (daqiri_interval_is_due(&pp->interval, now_ns)) {
        daqiri_interval_note(&pp->interval, now_ns, 2 * pp->done,
                             2 * pp->done * pp->opts.size);
    }
    if (!daqiri_progress_is_due(&pp->progress, now_ns)) {
        return;
    }
    if (pp->opts.iters < DAQIRI_PEER_ITERS_MAX) {
        daqiri_progress_show(&pp->progress, now_ns, pingpong_part(pp, now_ns),
                             "%llu of %llu round trips",
                             (unsigned long long)pp->done,
                             (unsigned long long)pp->opts.iters);
    } else {
        daqiri_progress_show(&pp->progress, now_ns, pingpong_part(pp, now_ns),
                             "%llu round trips",
                             (unsigned long long)pp->done);
    }
}

/* A queue pair that dies has often lost its peer, and TCP knows it better; the
 * end of a process is seen there a moment later. */
static int pingpong_blame(pingpong_t *pp)
{
    daqiri_failure_t peer = {.stage = pp->failure.stage};
    daqiri_peer_frame_t frame;

    if ((pp->fd >= 0) && !pp->peer_done &&
        (daqiri_net_recv_frame(pp->fd, &frame,
                               daqiri_now_ns() + 2 * PINGPONG_LOOK_NS,
                               &peer) != 0) &&
        ((peer.class_id == DAQIRI_CLASS_PEER_GONE) ||
         (peer.class_id == DAQIRI_CLASS_PEER_FAILED))) {
        pp->failure = peer;
    }
    return -1;
}

/* No answer will come any more. That to the last message is under way if the
 * peer has counted it: what TCP says may well be here before it. */
static int pingpong_is_left(const pingpong_t *pp)
{
    return pp->peer_done && (pp->peer_count <= pp->done);
}

/* Nothing has come for some polls. Returns as pingpong_wait(). */
static int pingpong_idle(pingpong_t *pp, uint64_t *deadline_ns)
{
    uint64_t now_ns = daqiri_now_ns();

    if (*deadline_ns == 0) {
        *deadline_ns = now_ns + (uint64_t)(pp->opts.timeout * 1e9);
    }
    if (now_ns - pp->look_ns >= PINGPONG_LOOK_NS) {
        pp->look_ns = now_ns;
        pingpong_tick(pp, now_ns);
        if (pingpong_look(pp) != 0) {
            return -1;
        }
    }
    if (daqiri_stop_asked() || pingpong_is_left(pp)) {
        return 1;
    }
    return (now_ns < *deadline_ns) ? 0 :
           daqiri_fail(&pp->failure, DAQIRI_CLASS_TIMEOUT, "nothing completed "
                       "within %.4g s, after %llu round trips",
                       pp->opts.timeout, (unsigned long long)pp->done);
}

/*
 * Waits for a message, and for room for another one. Returns 0, -1, or 1 when
 * one of us has been asked to stop and no message is under way to here.
 *
 * Nothing orders the two queues: the peer's next message may complete before
 * the answer to the last one does, and is then kept for the next call.
 */
static int pingpong_wait(pingpong_t *pp)
{
    uint64_t deadline_ns = 0;
    struct ibv_wc wc;
    int ret;

    while ((pp->recvs == 0) ||
           (pp->posted - pp->retired >= PINGPONG_DEPTH)) {
        ret = daqiri_qp_poll(&pp->qp, &wc, PINGPONG_POLLS, &pp->failure);
        if (ret < 0) {
            return pingpong_blame(pp);
        }
        if (ret == 0) {
            ret = pingpong_idle(pp, &deadline_ns);
            if (ret != 0) {
                return ret;
            }
        } else if (wc.opcode == IBV_WC_RECV) {
            ++pp->recvs;
        } else {
            pp->retired = wc.wr_id;
        }
    }
    --pp->recvs;
    ++pp->taken;
    return 0;
}

/* A buffer is stamped anew only after the answer to what was in it, so nobody
 * needs that any more, whether its request has been retired or not. */
static int pingpong_send(pingpong_t *pp, uint64_t number)
{
    unsigned flags = pp->flags;
    int ret;

    ++pp->posted;
    if (pp->posted % PINGPONG_SIGNAL == 0) {
        flags |= IBV_SEND_SIGNALED;
    }
    pingpong_stamp(daqiri_qp_send_buffer(&pp->qp), pp->opts.size, number);
    ret = daqiri_qp_post_send(&pp->qp, pp->posted, pp->opts.size, flags);
    if (ret != 0) {
        return daqiri_fail_verb(&pp->failure, "ibv_post_send", ret);
    }
    /* While that is on its way. There is another one for the answer. */
    for (; pp->taken > 0; --pp->taken) {
        if (pingpong_post_recv(pp) != 0) {
            return -1;
        }
    }
    return 0;
}

/* One round trip; number 0 is not counted. Returns as pingpong_wait(). */
static int pingpong_round(pingpong_t *pp, uint64_t number)
{
    int ret;

    if (pp->is_client && (pingpong_send(pp, number) != 0)) {
        return -1;
    }
    ret = pingpong_wait(pp);
    if (ret != 0) {
        return ret;
    }
    /* Before the answer, or the next message, can cause another. */
    if (pingpong_check(pp, number) != 0) {
        return -1;
    }
    return pp->is_client ? 0 : pingpong_send(pp, number);
}

/* The time is the client's; the server is told. Either may be asked to stop,
 * with nothing owed to the other: a message to a server that has stopped finds
 * its receive, and is not answered. */
static int pingpong_is_over(const pingpong_t *pp, uint64_t now_ns)
{
    return (pp->done == pp->opts.iters) || daqiri_stop_asked() ||
           ((pp->opts.duration > 0) && (pp->done > 0) &&
            ((double)(now_ns - pp->start_ns) >= pp->opts.duration * 1e9));
}

/* Round trips until it is over. Returns as pingpong_wait(). */
static int pingpong_rounds(pingpong_t *pp)
{
    uint64_t looked = pp->start;
    uint64_t now_ns = pp->start_ns;
    uint64_t now;
    int ret = 0;

    while ((ret == 0) && !pingpong_is_over(pp, now_ns)) {
        ret = pingpong_round(pp, pp->done + 1);
        if (ret != 0) {
            break;
        }
        now = daqiri_ticks_now(&pp->ticks);
        daqiri_hist_add(pp->hist, now - pp->end);
        pp->end = now;
        ++pp->done;
        if (now - looked > PINGPONG_LOOK_TICKS) {
            looked = now;
            now_ns = daqiri_now_ns();
            pingpong_tick(pp, now_ns);
        }
    }
    return ret;
}

static int pingpong_data(pingpong_t *pp)
{
    double cpu_s;
    size_t i;
    int ret;

    pingpong_stage(pp, "datapath", pp->opts.timeout);
    daqiri_stop_own();
    for (i = 0; i < pp->opts.size; ++i) {
        daqiri_qp_send_buffer(&pp->qp)[i] = pingpong_byte(i);
    }
    daqiri_progress_start(&pp->progress);
    if (pp->opts.peer_version != NULL) {
        pp->progress.next_ns = UINT64_MAX; /* there are other clients, too */
    }
    pp->look_ns = daqiri_now_ns();
    daqiri_ticks_start(&pp->ticks);
    ret          = pingpong_round(pp, 0);
    cpu_s        = daqiri_cpu_s();
    pp->start_ns = pp->step_ns = daqiri_now_ns();
    pp->start    = pp->end = daqiri_ticks_now(&pp->ticks);
    daqiri_interval_start(&pp->interval, pp->start_ns);
    ret          = (ret == 0) ? pingpong_rounds(pp) : ret;
    daqiri_interval_end(&pp->interval, daqiri_now_ns(), 2 * pp->done,
                        2 * pp->done * pp->opts.size);
    /* Not until the last one: a server has then waited for more. */
    pp->cpu_percent = 100 * (daqiri_cpu_s() - cpu_s) /
                      ((double)(daqiri_now_ns() - pp->start_ns) / 1e9);
    pp->tick_ns     = daqiri_ticks_ns(&pp->ticks);
    daqiri_progress_end(&pp->progress);
    return (ret < 0) ? -1 : 0;
}

/* Neither takes its queue pair away before the other has what it needs. */
static int pingpong_done(pingpong_t *pp)
{
    daqiri_peer_frame_t frame = {.kind = DAQIRI_PEER_DONE};

    pingpong_stage(pp, "done", pp->opts.setup_timeout);
    if (pp->fd < 0) {
        return 0;
    }
    frame.done.messages = pp->done;
    if (daqiri_net_send_frame(pp->fd, &frame, pp->deadline_ns, &pp->failure) !=
        0) {
        return -1;
    }
    return pp->peer_done ? 0 :
           daqiri_net_expect(pp->fd, DAQIRI_PEER_DONE, &frame,
                             pp->deadline_ns, &pp->failure);
}

/* ---- all of it ---- */

static void pingpong_measured(pingpong_t *pp)
{
    double seconds  = (double)(pp->end - pp->start) * pp->tick_ns / 1e9;
    double messages = 2.0 * (double)pp->done;
    double bytes    = messages * (double)pp->opts.size;

    daqiri_pingpong_report_terms(pp->report, &pp->opts);
    if ((pp->done == 0) || (seconds <= 0)) {
        return;
    }
    daqiri_report_set(pp->report, "intervals", daqiri_interval_report(&pp->interval));
    daqiri_report_text(pp->report, "datapath", "rdma");
    daqiri_report_int(pp->report, "messages", (long long)messages);
    daqiri_report_int(pp->report, "bytes", (long long)bytes);
    daqiri_report_real(pp->report, "elapsed_s", seconds);
    daqiri_report_real(pp->report, "gbps", bytes * 8e-9 / seconds);
    daqiri_report_real(pp->report, "messages_per_s", messages / seconds);
    daqiri_report_real(pp->report, "cpu_percent", pp->cpu_percent);
    daqiri_report_set(pp->report, "round_trip", daqiri_hist_report_in(pp->hist,
                                                        pp->tick_ns));
}

static int pingpong_all(pingpong_t *pp)
{
    return ((pingpong_control(pp) == 0) && (pingpong_open(pp) == 0) &&
            (pingpong_info(pp) == 0) && (pingpong_connect(pp) == 0) &&
            (pingpong_data(pp) == 0) && (pingpong_done(pp) == 0)) ? 0 : -1;
}

json_t *daqiri_pingpong_run(const daqiri_pingpong_t *opts,
                            daqiri_watch_child_t *child)
{
    pingpong_t pp = {.opts = *opts, .child = child, .fd = -1};
    const char *failed_in;

    pp.interval.every    = opts->interval;
    pp.interval.is_shown = (opts->format == DAQIRI_FORMAT_TABLE);
    pp.report    = daqiri_pingpong_report(opts);
    pp.is_client = (opts->connect_to != NULL) ||
                   ((opts->by_hand != NULL) &&
                    (strcmp(opts->by_hand, "client") == 0));
    pp.hist      = malloc(sizeof(*pp.hist));
    if (pp.hist == NULL) {
        daqiri_fail(&pp.failure, DAQIRI_CLASS_RESOURCE_EXHAUSTED, "no memory");
    } else {
        daqiri_hist_init(pp.hist);
        pingpong_all(&pp);
    }
    failed_in = pp.failure.stage;
    if ((pp.failure.class_id != DAQIRI_CLASS_NONE) && (pp.fd >= 0) &&
        (pp.failure.class_id != DAQIRI_CLASS_PEER_FAILED)) {
        daqiri_net_abort(pp.fd, &pp.failure);
    }
    pingpong_stage_over(&pp);
    daqiri_watch_step(child, "close", opts->setup_timeout + PINGPONG_GRACE);
    pp.failure.stage = failed_in;
    if (pp.hist != NULL) {
        pingpong_measured(&pp);
    }
    daqiri_qp_close(&pp.qp);
    if (pp.fd >= 0) {
        close(pp.fd);
    }
    daqiri_failure_report(&pp.failure, pp.report);
    daqiri_report_bool(pp.report, "ok",
                       pp.failure.class_id == DAQIRI_CLASS_NONE);
    daqiri_report_bool(pp.report, "interrupted", daqiri_stop_asked() != 0);
    free(pp.hist);
    return pp.report;
}
