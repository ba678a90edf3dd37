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

#include "pingpong.h"

#include "hist.h"
#include "net.h"
#include "stop.h"

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

#define PINGPONG_MESSAGES 2 /* receives posted */

typedef struct pingpong {
    daqiri_pingpong_t    opts;
    daqiri_watch_child_t *child;
    json_t               *report;
    daqiri_failure_t     failure;
    daqiri_rc_t          rc;
    daqiri_rc_addr_t     remote;
    int                  fd;         /* control connection, or -1 */
    int                  is_client;
    uint64_t             stage_ns;   /* when it began */
    uint64_t             deadline_ns;
    /* data path */
    daqiri_hist_t        *hist;
    daqiri_progress_t    progress;
    uint64_t             done;       /* iterations */
    uint64_t             start_ns, end_ns, step_ns;
    int                  peer_done;  /* the peer has said so */
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
    daqiri_report_real(row, "ms",
                       (double)(daqiri_now_ns() - pp->stage_ns) / 1e6);
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
    char name[DAQIRI_NET_NAME_MAX];

    if (listener < 0) {
        return -1;
    }
    fprintf(stderr, "%s: waiting for a client on %s\n", pp->opts.speaker,
            daqiri_net_name(listener, 0, name));
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
    return 0;
}

static int pingpong_control(pingpong_t *pp)
{
    char version[DAQIRI_PEER_WORD_MAX];

    pingpong_stage(pp, "pre-resource-control", pp->opts.setup_timeout);
    if (pp->opts.by_hand != NULL) {
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
    return pingpong_terms(pp);
}

static int pingpong_open(pingpong_t *pp)
{
    daqiri_rc_opts_t opts;

    pingpong_stage(pp, "open-rdma-resources", pp->opts.setup_timeout);
    daqiri_rc_opts_init(&opts, pp->opts.device, pp->opts.size);
    opts.port      = pp->opts.port;
    opts.gid_index = pp->opts.gid_index;
    opts.mtu       = pp->opts.mtu;
    opts.is_uc     = pp->opts.is_uc;
    opts.depth     = PINGPONG_MESSAGES;
    if ((daqiri_rc_open(&pp->rc, &opts, &pp->failure) != 0) ||
        (daqiri_rc_create(&pp->rc, &pp->failure) != 0)) {
        return -1;
    }
    pingpong_stage(pp, "post-resource-control", pp->opts.setup_timeout);
    return (pp->fd < 0) ? 0 : pingpong_barrier(pp);
}

static int pingpong_info_tcp(pingpong_t *pp)
{
    const daqiri_rc_addr_t *local = &pp->rc.local;
    daqiri_peer_frame_t frame     = {.kind = DAQIRI_PEER_INFO};

    frame.info.lid       = local->lid;
    frame.info.mtu       = local->mtu;
    frame.info.is_global = local->is_global;
    frame.info.qpn       = local->qpn;
    frame.info.psn       = local->psn;
    frame.info.gid_index = local->gid_index;
    memcpy(frame.info.gid, local->gid.raw, sizeof(frame.info.gid));
    if ((daqiri_net_send_frame(pp->fd, &frame, pp->deadline_ns,
                               &pp->failure) != 0) ||
        (daqiri_net_expect(pp->fd, DAQIRI_PEER_INFO, &frame, pp->deadline_ns,
                           &pp->failure) != 0)) {
        return -1;
    }
    pp->remote.lid       = frame.info.lid;
    pp->remote.mtu       = frame.info.mtu;
    pp->remote.is_global = frame.info.is_global;
    pp->remote.qpn       = frame.info.qpn;
    pp->remote.psn       = frame.info.psn;
    pp->remote.gid_index = frame.info.gid_index;
    memcpy(pp->remote.gid.raw, frame.info.gid, sizeof(frame.info.gid));
    return 0;
}

static json_t *pingpong_side(const daqiri_rc_addr_t *addr)
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
    daqiri_report_set(pp->report, "local", pingpong_side(&pp->rc.local));
    daqiri_report_int(pp->report, "port", pp->rc.port_num);
    ret = (pp->fd >= 0) ? pingpong_info_tcp(pp) :
          daqiri_pingpong_hand_over(&pp->opts, &pp->rc.local, &pp->remote,
                                    &pp->failure);
    if (ret == 0) {
        daqiri_report_set(pp->report, "remote", pingpong_side(&pp->remote));
    }
    return ret;
}

static int pingpong_post_recv(pingpong_t *pp)
{
    int ret = daqiri_rc_post_recv(&pp->rc, 0);

    return (ret == 0) ? 0 : daqiri_fail_verb(&pp->failure, "ibv_post_recv",
                                             ret);
}

static int pingpong_connect(pingpong_t *pp)
{
    pingpong_stage(pp, "connect-rdma", pp->opts.setup_timeout);
    if ((pingpong_post_recv(pp) != 0) ||
        (daqiri_rc_rtr(&pp->rc, &pp->remote, &pp->failure) != 0) ||
        (daqiri_rc_rts(&pp->rc, &pp->failure) != 0)) {
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
    memcpy(buffer, &number, (size < sizeof(number)) ? size : sizeof(number));
    buffer[size - 1] = (uint8_t)number;
}

static int pingpong_check(pingpong_t *pp, uint64_t number)
{
    const uint8_t *buffer = daqiri_rc_recv_buffer(&pp->rc);
    size_t size           = pp->opts.size;
    uint8_t expected[sizeof(number)];
    size_t i;

    memcpy(expected, &number, sizeof(number));
    if (size <= sizeof(number)) {
        expected[size - 1] = (uint8_t)number;
    }
    if ((memcmp(buffer, expected, (size < sizeof(number)) ?
                size : sizeof(number)) != 0) ||
        (buffer[size - 1] != (uint8_t)number)) {
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
    pp->peer_done = 1;
    return 0;
}

static void pingpong_tick(pingpong_t *pp, uint64_t now_ns)
{
    if (now_ns - pp->step_ns > PINGPONG_STEP_NS) {
        pp->step_ns = now_ns;
        daqiri_watch_step(pp->child, "datapath",
                          pp->opts.timeout + PINGPONG_GRACE);
    }
    if (daqiri_progress_is_due(&pp->progress, now_ns)) {
        daqiri_progress_show(&pp->progress, now_ns, "%llu of %llu round trips",
                             (unsigned long long)pp->done,
                             (unsigned long long)pp->opts.iters);
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

/* Waits for `recvs` and `sends` completions. Returns 0, -1, or 1 when one of
 * us has been asked to stop and no message is under way to here. */
static int pingpong_wait(pingpong_t *pp, int recvs, int sends)
{
    uint64_t now_ns      = daqiri_now_ns();
    uint64_t deadline_ns = now_ns + (uint64_t)(pp->opts.timeout * 1e9);
    struct ibv_wc wc;
    int ret;

    while ((recvs > 0) || (sends > 0)) {
        ret = daqiri_rc_wait(&pp->rc, &wc, now_ns + PINGPONG_LOOK_NS,
                             &pp->failure);
        if (ret < 0) {
            return pingpong_blame(pp);
        }
        if (ret > 0) {
            recvs -= (wc.opcode == IBV_WC_RECV);
            sends -= (wc.opcode == IBV_WC_SEND);
            continue;
        }
        now_ns = daqiri_now_ns();
        pingpong_tick(pp, now_ns);
        if (pingpong_look(pp) != 0) {
            return -1;
        }
        if (daqiri_stop_asked() || pp->peer_done) {
            return 1;
        }
        if (now_ns >= deadline_ns) {
            return daqiri_fail(&pp->failure, DAQIRI_CLASS_TIMEOUT, "nothing "
                               "completed within %.4g s, after %llu round "
                               "trips", pp->opts.timeout,
                               (unsigned long long)pp->done);
        }
    }
    return 0;
}

static int pingpong_send(pingpong_t *pp, uint64_t number)
{
    int ret;

    pingpong_stamp(daqiri_rc_send_buffer(&pp->rc), pp->opts.size, number);
    ret = daqiri_rc_post_send(&pp->rc, 1, pp->opts.size, IBV_SEND_SIGNALED);
    return (ret == 0) ? 0 : daqiri_fail_verb(&pp->failure, "ibv_post_send",
                                             ret);
}

/* One round trip; number 0 is not counted. Returns as pingpong_wait(). */
static int pingpong_round(pingpong_t *pp, uint64_t number)
{
    int ret;

    if (pp->is_client) {
        if (pingpong_send(pp, number) != 0) {
            return -1;
        }
        ret = pingpong_wait(pp, 1, 1);
    } else {
        ret = pingpong_wait(pp, 1, 0);
    }
    if (ret != 0) {
        return ret;
    }
    /* Before the answer, or the next message, can cause another. */
    if ((pingpong_check(pp, number) != 0) || (pingpong_post_recv(pp) != 0)) {
        return -1;
    }
    if (!pp->is_client) {
        return (pingpong_send(pp, number) != 0) ? -1 : pingpong_wait(pp, 0, 1);
    }
    return 0;
}

static int pingpong_data(pingpong_t *pp)
{
    uint64_t now_ns, last_ns;
    size_t i;
    int ret;

    pingpong_stage(pp, "datapath", pp->opts.timeout);
    daqiri_stop_own();
    for (i = 0; i < pp->opts.size; ++i) {
        daqiri_rc_send_buffer(&pp->rc)[i] = pingpong_byte(i);
    }
    daqiri_progress_start(&pp->progress);
    ret          = pingpong_round(pp, 0);
    pp->start_ns = last_ns = pp->step_ns = daqiri_now_ns();
    while ((ret == 0) && (pp->done < pp->opts.iters)) {
        if (pp->is_client && daqiri_stop_asked()) {
            break;
        }
        ret    = pingpong_round(pp, pp->done + 1);
        now_ns = daqiri_now_ns();
        if (ret == 0) {
            ++pp->done;
            daqiri_hist_add(pp->hist, now_ns - last_ns);
        }
        last_ns = now_ns;
        if (now_ns - pp->step_ns > PINGPONG_STEP_NS) {
            pingpong_tick(pp, now_ns);
        }
    }
    pp->end_ns = last_ns;
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
    double seconds  = (double)(pp->end_ns - pp->start_ns) / 1e9;
    double messages = 2.0 * (double)pp->done;
    double bytes    = messages * (double)pp->opts.size;

    daqiri_report_int(pp->report, "size", (long long)pp->opts.size);
    daqiri_report_int(pp->report, "iterations", (long long)pp->opts.iters);
    daqiri_report_text(pp->report, "transport", pp->opts.is_uc ? "UC" : "RC");
    if ((pp->done == 0) || (seconds <= 0)) {
        return;
    }
    daqiri_report_text(pp->report, "datapath", "rdma");
    daqiri_report_int(pp->report, "messages", (long long)messages);
    daqiri_report_int(pp->report, "bytes", (long long)bytes);
    daqiri_report_real(pp->report, "elapsed_s", seconds);
    daqiri_report_real(pp->report, "bytes_per_s", bytes / seconds);
    daqiri_report_real(pp->report, "gbit_per_s", bytes * 8e-9 / seconds);
    daqiri_report_real(pp->report, "messages_per_s", messages / seconds);
    daqiri_report_set(pp->report, "latency", daqiri_hist_report(pp->hist));
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
    daqiri_rc_close(&pp.rc);
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
