/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device that does not do what it is told, and a peer that sends what no peer
 * sends: it is seen and counted, nothing of it is handed up, and no buffer is lost
 * or used twice by it.
 *
 * The program stands between the plugin and the device: where queue pairs are
 * modified, requests posted, RECVs given to the shared receive queue, completion
 * queues polled and events read.
 */
#include "t_uct.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MESSAGES = 3000,
    SPOKES   = 3,
    WINDOW   = 8,
    DRAIN_MS = 1000 /* so long a dead connection waits for its flushes       */
};

typedef enum {
    HONEST,
    KIND,     /* of the message's header: not one that there is              */
    AM_ID,
    FAR,      /* 256 messages from its turn                                  */
    LENGTH,   /* shorter than a header                                       */
    NUMBER,   /* not its turn                                                */
    TWICE,
    CREDITS,  /* more than were ever taken                                   */
    UNBIDDEN, /* before it, as many others as the window has credits, but one */
    STRAY,    /* a request of nobody's, with an id that is over              */
    REFUSED,  /* not sent at all                                             */
    FULL      /* the same, and it could be sent later                        */
} lie_t;

typedef int (*post_send_t)(struct ibv_qp*, struct ibv_send_wr*,
                           struct ibv_send_wr**);
typedef int (*post_recv_t)(struct ibv_srq*, struct ibv_recv_wr*,
                           struct ibv_recv_wr**);
typedef int (*poll_t)(struct ibv_cq*, int, struct ibv_wc*);

static struct {
    post_send_t post_send;
    post_recv_t post_srq_recv;
    poll_t      poll_cq;
    struct ibv_qp *qp;        /* of RC, that has posted last                 */
    unsigned    flags;        /* of the last message                         */
    lie_t       lie;          /* of the next message                         */
    int         is_willful;   /* timers are not what was asked for           */
    int         is_refusing;  /* RECVs, two calls of three                   */
    int         is_full;      /* all of them; atomic                         */
    int         is_late;      /* what qp was asked for completes later; atomic */
    int         is_mum;       /* it does not tell that a peer has sent; atomic */
    int         is_generous;  /* what has credits and no message goes twice  */
    uint64_t    refused;      /* id of the request that was                  */
    unsigned    ends;         /* posted to speak for the one before that     */
    unsigned    position;     /* of the first RECV of a chain that is refused */
    unsigned    calls;        /* atomic                                      */
} device;


static uint64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}


/* ---- Between plugin and device ---- */

static void post_once_more(struct ibv_qp *qp, struct ibv_send_wr wr)
{
    struct ibv_send_wr *bad_wr;

    ck_assert_int_eq(device.post_send(qp, &wr, &bad_wr), 0);
}


static void post_unsignalled(struct ibv_qp *qp, struct ibv_send_wr wr)
{
    wr.send_flags &= ~IBV_SEND_SIGNALED;
    post_once_more(qp, wr);
}


/* Completes, and does nothing. */
static void post_stray(struct ibv_qp *qp, uint64_t id)
{
    post_once_more(qp, (struct ibv_send_wr){
        .wr_id      = id,
        .opcode     = IBV_WR_RDMA_WRITE,
        .send_flags = IBV_SEND_SIGNALED,
    });
}


static int lie_once(struct ibv_qp *qp, struct ibv_send_wr *wr,
                    struct ibv_send_wr **bad_wr)
{
    struct ibv_sge sge[2]  = {wr->sg_list[0]};
    struct ibv_send_wr one = *wr;
    uint8_t header[4], *at = (uint8_t*)(uintptr_t)sge[0].addr;
    lie_t lie              = device.lie;
    unsigned i;
    int ret;

    device.lie  = HONEST;
    one.next    = NULL;
    memcpy(header, at, sizeof(header));
    switch (lie) {
    case KIND:
        at[0] = 0x77;
        break;
    case AM_ID:
        at[1] = 200;
        break;
    case FAR:
        at[3]++;
        break;
    case LENGTH:
        sge[0].length = sizeof(header) - 1;
        one.sg_list   = sge;
        one.num_sge   = 1;
        break;
    case NUMBER:
        at[2]++;
        break;
    case TWICE:
    case UNBIDDEN:
        at[0] = (lie == TWICE) ? header[0] : 0x77;
        for (i = 0; i < ((lie == TWICE) ? 1 : WINDOW - 1); i++) {
            post_unsignalled(qp, one);
        }
        at[0] = header[0];
        break;
    case STRAY:
        post_stray(qp, wr->wr_id - 1);
        break;
    default:
        one.opcode   = IBV_WR_SEND_WITH_IMM;
        one.imm_data = htonl(60000);
        break;
    }
    ret = device.post_send(qp, &one, bad_wr);
    memcpy(at, header, sizeof(header)); /* inline: it has been read */
    return ret;
}


static int refuse_once(struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    int error = (device.lie == FULL) ? ENOMEM : EINVAL;

    device.lie     = HONEST;
    device.refused = wr->wr_id;
    *bad_wr        = wr;
    return error;
}


static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
                     struct ibv_send_wr **bad_wr)
{
    if (qp->qp_type == IBV_QPT_RC) {
        if ((wr->opcode == IBV_WR_RDMA_WRITE) &&
            (wr->wr_id + 1 == device.refused)) {
            device.ends++;
        }
        __atomic_store_n(&device.qp, qp, __ATOMIC_RELAXED);
        __atomic_store_n(&device.flags, wr->send_flags, __ATOMIC_RELAXED);
        if ((device.lie == REFUSED) || (device.lie == FULL)) {
            return refuse_once(wr, bad_wr);
        }
        if (device.lie != HONEST) {
            return lie_once(qp, wr, bad_wr);
        }
        if (device.is_generous && (wr->opcode == IBV_WR_SEND_WITH_IMM) &&
            (wr->next == NULL) && (wr->sg_list[0].length == 4)) {
            post_unsignalled(qp, *wr);
        }
    }
    return device.post_send(qp, wr, bad_wr);
}


static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
    struct ibv_qp *qp = __atomic_load_n(&device.qp, __ATOMIC_RELAXED);

    return (__atomic_load_n(&device.is_late, __ATOMIC_RELAXED) &&
            (cq == qp->send_cq)) ? 0 : device.poll_cq(cq, count, wc);
}


static int refuses(void)
{
    return __atomic_load_n(&device.is_full, __ATOMIC_RELAXED) ||
           (device.is_refusing &&
            (__atomic_fetch_add(&device.calls, 1, __ATOMIC_RELAXED) % 3 != 0));
}


/* Takes what is before the one that is refused. */
static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
                         struct ibv_recv_wr **bad_wr)
{
    struct ibv_recv_wr *last = NULL, *stop = wr;
    unsigned i;

    for (i = 0; (i < device.position) && (stop != NULL); i++) {
        last = stop;
        stop = stop->next;
    }
    if ((stop == NULL) || !refuses()) {
        return device.post_srq_recv(srq, wr, bad_wr);
    }
    if (last != NULL) {
        last->next = NULL;
        ck_assert_int_eq(device.post_srq_recv(srq, wr, bad_wr), 0);
        last->next = stop;
    }
    *bad_wr = stop;
    return ENOMEM;
}


struct ibv_context *ibv_open_device(struct ibv_device *which)
{
    struct ibv_context *(*real)(struct ibv_device*);
    struct ibv_context *context;

    *(void**)&real = dlsym(RTLD_NEXT, "ibv_open_device");
    context        = real(which);
    if (context == NULL) {
        return NULL;
    }
    if (device.post_send == NULL) { /* before there are threads that call it */
        device.post_send     = context->ops.post_send;
        device.post_srq_recv = context->ops.post_srq_recv;
        device.poll_cq       = context->ops.poll_cq;
    }
    context->ops.poll_cq       = poll_cq;
    context->ops.post_send     = post_send;
    context->ops.post_srq_recv = post_srq_recv;
    return context;
}


int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    int (*real)(struct ibv_qp*, struct ibv_qp_attr*, int);
    struct ibv_qp_attr other = *attr;

    *(void**)&real = dlsym(RTLD_NEXT, "ibv_modify_qp");
    if (device.is_willful) {
        other.min_rnr_timer = 0;  /* 655.36 ms (IBA 9.7.5.2.8) */
        other.timeout       = 10; /* 4.096 us << 10 */
    }
    return real(qp, &other, mask);
}


int ibv_get_async_event(struct ibv_context *context,
                        struct ibv_async_event *event)
{
    int (*real)(struct ibv_context*, struct ibv_async_event*);
    int ret;

    *(void**)&real = dlsym(RTLD_NEXT, "ibv_get_async_event");
    while (((ret = real(context, event)) == 0) &&
           (event->event_type == IBV_EVENT_COMM_EST) &&
           __atomic_load_n(&device.is_mum, __ATOMIC_RELAXED)) {
        ibv_ack_async_event(event);
    }
    return ret;
}


/* ---- Timers ---- */

/* What counts is what the device says that it has. */
START_TEST(test_timers)
{
    static const char words[] = "keeps an RNR timer of 655.36 ms and an ACK "
                                "timeout of 4.194 ms, where 0.64 ms and "
                                "536.871 ms were set";
    t_stream_t stream;
    t_end_t *end;

    t_only_daqiri("reads its timers back");
    device.is_willful = 1;
    t_expect_log(words);
    end = t_end_open("");
    (void)t_link_up(end, end, 1, &stream);
    ck_assert_uint_eq(t_log_count(words), 1);
    ck_assert_uint_eq(t_live_sum("rnr_timer_ns"), 655360000);
    ck_assert_uint_eq(t_live_sum("ack_timeout_ns"), 4194304);
}
END_TEST


/* ---- Messages ---- */

static const struct {
    lie_t      lie;
    const char *counter;
    unsigned   got;  /* of two messages, the second one a lie                */
} lies[] = {
    {KIND, "rx_dropped_bad_kind", 1},
    {AM_ID, "rx_dropped_bad_field", 1},
    {LENGTH, "rx_dropped_short", 1},
    {TWICE, "rx_duplicates", 2},
    {CREDITS, "rx_dropped_bad_field", 2},
};

enum { LIES = sizeof(lies) / sizeof(lies[0]) };

static const lie_t gaps[] = {NUMBER, FAR};


/* A link between two ends, whose first message has arrived. */
static t_link_t *first_sent(t_end_t *end[2], t_stream_t *stream,
                            const char *options)
{
    t_link_t *link;

    t_only_daqiri("knows what is not for it");
    t_expect_loss();
    t_expect_bad_messages();
    end[0] = t_end_open(options);
    end[1] = t_end_open(options);
    link = t_link_up(end[0], end[1], 1, stream);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    return link;
}


/* As if nothing had been. */
static void go_on(t_link_t *link, const t_stream_t *stream)
{
    unsigned i;

    for (i = 0; i < 40; i++) {
        t_send(link, T_SHORT, 20);
        T_WAIT(stream->got == link->sent);
    }
}


static void close_ends(void)
{
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("rx_taken"), 0);
    ck_assert_uint_eq(t_stats_sum("rx_total"),
                      t_stats_sum("rx_free") + t_stats_sum("rx_posted"));
}


static void close_lies(void)
{
    close_ends();
    ck_assert_uint_eq(t_stats_sum("qp_failures"), 0);
}


/* Not handed up, or not twice; counted, once; its RECV is used again. */
START_TEST(test_lie)
{
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];

    link       = first_sent(end, &stream, "");
    device.lie = lies[_i].lie;
    t_send(link, T_SHORT, 20);
    T_WAIT((t_live_sum(lies[_i].counter) == 1) && (stream.got == lies[_i].got));
    ck_assert_int_eq(device.lie, HONEST);
    if (lies[_i].got == 2) {
        go_on(link, &stream);
    }
    close_lies();
    ck_assert_uint_eq(t_stats_sum(lies[_i].counter), 1);
    ck_assert_uint_eq(t_stats_sum("rx_dropped") + t_stats_sum("rx_duplicates"),
                      1);
}
END_TEST


/* What was before its turn is missing, and the sender has been told that all is
 * there: the connection ends, and says why. The sender may see its queue pair die
 * first, and hear of it before the receiver has drained its own, which then says
 * it. */
START_TEST(test_gap)
{
    static const char words[] = "a message of the peer has not come, but a later "
                                "one has";
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];

    link = first_sent(end, &stream, "");
    t_expect_log(words);
    t_expect_losses_of_qps();
    device.lie = gaps[_i];
    t_send(link, T_SHORT, 20);
    T_WAIT((end[0]->errors == 1) && (t_log_count(words) > 0));
    ck_assert_int_eq(end[0]->error, UCS_ERR_ENDPOINT_TIMEOUT);
    ck_assert_uint_eq(stream.got, 1);
    ck_assert_uint_eq(t_log_count(words), 1);
    t_link_close(link);
    close_ends();
    ck_assert_uint_eq(t_stats_sum("rx_out_of_order"), 1);
    ck_assert_uint_eq(t_stats_sum("rx_dropped"), 0);
}
END_TEST


/* A fence holds for the next message alone, among many that are posted alike. */
START_TEST(test_fence_flag)
{
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];
    unsigned i;

    link = first_sent(end, &stream, "TX_BATCH=n");
    for (i = 0; i < 100; i++) {
        if (i % 3 == 0) {
            T_WAIT(stream.got == link->sent);
            t_progress_turns(10);
            ck_assert_int_eq(uct_ep_fence(link->ep, 0), UCS_OK);
        }
        ck_assert_int_eq(t_try_send(link, T_SHORT, 20), UCS_OK);
        ck_assert_int_eq((device.flags & IBV_SEND_FENCE) != 0, i % 3 == 0);
    }
    T_WAIT(stream.got == link->sent);
    close_lies();
}
END_TEST


/* What one grant grants is not granted again. */
START_TEST(test_grant_twice)
{
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];

    link = first_sent(end, &stream, "RX_WINDOW=8");
    device.is_generous = 1;
    go_on(link, &stream);
    t_progress_turns(100);
    T_WAIT((t_live_sum("credit_frames_rx") == t_live_sum("credit_frames_tx")) &&
           (t_live_sum("rx_duplicates") == t_live_sum("credit_frames_tx")));
    device.is_generous = 0;
    close_lies();
    ck_assert_uint_gt(t_stats_sum("credit_frames_rx"), 0);
    ck_assert_uint_eq(t_stats_sum("credit_frames_rx"),
                      t_stats_sum("rx_duplicates"));
    ck_assert_uint_eq(t_stats_sum("rx_dropped"), 0);
    ck_assert_uint_eq(t_stats_sum("rx_overrun"), 0);
}
END_TEST


/* One more than the window has, all before the receiver looks: what came without
 * a credit is counted, and what is granted for it is not believed. */
START_TEST(test_unbidden)
{
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];

    link = first_sent(end, &stream, "RX_WINDOW=8");
    end[1]->is_stopped = 1;
    device.lie         = UNBIDDEN;
    t_send(link, T_SHORT, 20);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    end[1]->is_stopped = 0;
    T_WAIT(t_live_sum("rx_dropped_bad_kind") == WINDOW - 1);
    T_WAIT(t_live_sum("rx_overrun") == 1);
    go_on(link, &stream);
    close_lies();
    ck_assert_uint_eq(t_stats_sum("rx_overrun"), 1);
    ck_assert_uint_eq(t_stats_sum("rx_dropped_bad_field"), 1);
}
END_TEST


/* A completion of what is over, or was never there: counted, and nothing else
 * completes by it. */
START_TEST(test_stray)
{
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];

    link       = first_sent(end, &stream, "");
    device.lie = STRAY;
    t_send(link, T_SHORT, 20);
    T_WAIT(t_live_sum("stray_completions") == 1);
    go_on(link, &stream);
    close_lies();
    ck_assert_uint_eq(t_stats_sum("stray_completions"), 1);
    ck_assert_uint_eq(t_stats_sum("posted"), t_stats_sum("retired"));
}
END_TEST


/* A connection dies, and the device is slow to say what has become of a request:
 * until it does, the request's memory is the device's, and nobody is told. */
START_TEST(test_late)
{
    static const char words[] = "the device refused a work request that fits";
    uint64_t since;
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];
    int is_told;

    link = first_sent(end, &stream, "RECOVERY=n");
    t_expect_refused_posts();
    t_expect_log(words);
    __atomic_store_n(&device.is_late, 1, __ATOMIC_RELAXED);
    t_send(link, T_ZCOPY, 500);
    device.lie = REFUSED;
    since      = now_ms();
    ck_assert_int_eq(t_try_send(link, T_SHORT, 20), UCS_ERR_IO_ERROR);
    t_progress_turns(100);
    is_told = (end[0]->errors > 0) || (link->zcopies == 0);
    if (now_ms() - since < DRAIN_MS) { /* else we have not run for so long */
        ck_assert_int_eq(is_told, 0);
    }
    __atomic_store_n(&device.is_late, 0, __ATOMIC_RELAXED);
    T_WAIT((end[0]->errors == 1) && (link->zcopies == 0));
    ck_assert_int_eq(is_told ? UCS_OK : link->zcopy_status, UCS_OK);
    ck_assert_uint_eq(t_log_count(words), 1);
    t_link_close(link);
    t_end_close_all();
}
END_TEST


/* A queue pair is lost for what the device has refused, and what it took before
 * that is silent: something speaks for it, each time. */
START_TEST(test_end)
{
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];
    unsigned i;

    link = first_sent(end, &stream, "CONN_RETRY=5ms");
    t_expect_losses_of_qps();
    t_expect_refused_posts();
    for (i = 1; i <= 3; i++) {
        t_send(link, T_SHORT, 20);
        device.lie = REFUSED;
        t_send(link, T_SHORT, 20);
        T_WAIT((t_live_sum("recoveries") == 2 * i) &&
               (stream.got == link->sent));
        ck_assert_uint_eq(device.ends, i);
    }
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("qp_failures"), 2 * 3);
}
END_TEST


/* The peer has gone, and what shall end what it was sent finds no room: that is not
 * offered again, for there will be no connection to offer it for, and it is not
 * what the connection has died of. */
START_TEST(test_end_refused)
{
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];

    link = first_sent(end, &stream, (_i == 0) ? "" : "RECOVERY=n");
    t_expect_refused_posts();
    t_send(link, T_SHORT, 20);
    t_end_leave(end[1]);
    device.lie = FULL;
    T_WAIT(device.lie == HONEST);
    while (end[0]->errors == 0) { /* it says so when it is used again */
        (void)t_try_send(link, T_SHORT, 20);
        t_progress();
    }
    ck_assert_int_eq(end[0]->error, UCS_ERR_ENDPOINT_TIMEOUT);
    t_link_close(link);
    t_progress_turns(1000);
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("posts_refused"), 1);
    ck_assert_uint_eq(t_stats_sum("retries_kept"), 0);
    ck_assert_uint_eq(t_stats_sum("qp_failures"), 0);
}
END_TEST


/* ---- The last frame ---- */

/* It is lost, and the device does not tell that the peer has sent; but a message is
 * here. That is as good, once somebody here wants the peer: anybody could have sent
 * it. */
START_TEST(test_established_by_message)
{
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];
    unsigned i;

    t_only_daqiri("has a handshake");
    if (t_is_softroce()) {
        t_skip("only softverbs loses a frame by a plan");
    }
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS", "drop qp=ud.0 n=2 every=1", 1),
                     0);
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS_LOG", "/dev/null", 1), 0);
    device.is_mum = 1;
    end[0] = t_end_open("CONN_TIMEOUT=3600s");
    end[1] = t_end_open("CONN_TIMEOUT=3600s");
    t_stream_open(&stream, end[1], 1);
    link = t_link_open(end[0], &end[1]->address, 1);
    T_WAIT(t_live_sum("conns_up") == 1);
    /* no more than it was promised: grants cannot come */
    for (i = 1; i <= 6; i++) {
        t_send(link, T_SHORT, 10);
        T_WAIT(stream.got == i);
    }
    ck_assert_uint_eq(t_live_sum("conns_up"), 1);

    (void)t_link_open(end[1], &end[0]->address, 2);
    t_send(link, T_SHORT, 10);
    T_WAIT((stream.got == i) && (t_live_sum("conns_up") == 2));
    ck_assert_uint_eq(t_live_sum("events"), 0);
}
END_TEST


/* ---- RECVs ---- */

static const char refused[] = "refuses RECVs that fit its shared receive queue";


static void check_recvs(void)
{
    ck_assert_uint_gt(t_stats_sum("recvs_refused"), 0);
    ck_assert_uint_gt(t_log_count(refused), 0);
    ck_assert_uint_eq(t_stats_sum("qp_failures"), 0);
    ck_assert_uint_eq(t_stats_sum("rx_taken") + t_stats_sum("rx_held"), 0);
    ck_assert_uint_eq(t_stats_sum("rx_total"),
                      t_stats_sum("rx_free") + t_stats_sum("rx_posted"));
}


/* Any number of a chain is taken and the rest is not, in the queue of an interface
 * that opens, of connections that are made, and of messages that come. A buffer
 * that was given twice would hold the wrong one of two messages. */
START_TEST(test_recvs_refused)
{
    static const unsigned positions[] = {0, 1, 2, 5, 15};
    t_stream_t stream[SPOKES], back[SPOKES];
    t_link_t *link[SPOKES], *answer[SPOKES];
    t_end_t *hub, *spoke[SPOKES];
    uint64_t sent = 0;
    t_rng_t rng;
    unsigned i;

    t_only_daqiri("offers refused RECVs again");
    t_expect_log(refused);
    t_rng_init(&rng, 0x4ec0 + _i);
    device.position    = positions[_i];
    device.is_refusing = 1;
    hub = t_end_open("RX_WINDOW=24");
    for (i = 0; i < SPOKES; i++) {
        spoke[i] = t_end_open("RX_WINDOW=24");
        t_stream_open(&stream[i], spoke[i], i);
        t_stream_open(&back[i], hub, SPOKES + i);
        back[i].keep = 1;
        link[i]      = t_link_open(hub, &spoke[i]->address, i);
        answer[i]    = t_link_open(spoke[i], &hub->address, SPOKES + i);
    }
    while (sent < t_some(MESSAGES)) {
        i     = t_rng_below(&rng, 2 * SPOKES);
        sent -= link[i % SPOKES]->sent + answer[i % SPOKES]->sent;
        t_try_some((i < SPOKES) ? link[i] : answer[i - SPOKES], &rng);
        sent += link[i % SPOKES]->sent + answer[i % SPOKES]->sent;
        t_progress();
        t_stream_release(&back[i % SPOKES], &rng, 1);
    }
    for (i = 0; i < SPOKES; i++) {
        T_WAIT((stream[i].got == link[i]->sent) && (link[i]->zcopies == 0));
        T_WAIT((back[i].got == answer[i]->sent) && (answer[i]->zcopies == 0));
        t_stream_release(&back[i], &rng, 0);
    }
    t_end_close_all();
    check_recvs();
}
END_TEST


/* None is taken for a while, and whoever waits for that may not sleep: nothing
 * comes that would wake it. */
START_TEST(test_recvs_none)
{
    t_stream_t stream;
    t_end_t *end[2];
    uint64_t calls;
    t_link_t *link;
    int fd;

    t_only_daqiri("offers refused RECVs again");
    t_expect_log(refused);
    end[0] = t_end_open("RX_WINDOW=8");
    end[1] = t_end_open("RX_WINDOW=8");
    link = t_link_up(end[0], end[1], 1, &stream);

    __atomic_store_n(&device.is_full, 1, __ATOMIC_RELAXED);
    while (t_live_sum("recvs_refused") == 0) {
        (void)t_try_send(link, T_BCOPY, 100);
        t_progress_or_yield();
    }
    T_WAIT(stream.got == link->sent);
    calls = t_live_sum("recvs_refused");
    T_WAIT(t_live_sum("recvs_refused") > calls + 10);
    ck_assert_int_eq(uct_iface_event_fd_get(end[1]->iface, &fd), UCS_OK);
    ck_assert_int_eq(uct_iface_event_arm(end[1]->iface, UCT_EVENT_RECV),
                     UCS_ERR_BUSY);
    __atomic_store_n(&device.is_full, 0, __ATOMIC_RELAXED);
    while (link->sent < 200) {
        t_send(link, T_BCOPY, 100);
    }
    T_WAIT(stream.got == link->sent);
    t_end_close_all();
    check_recvs();
    ck_assert_uint_eq(t_stats_sum("rx_overcommit"), 0);
}
END_TEST


/* Credits are used until none are left; for all that was sent there was a RECV. */
static void send_what_goes(t_link_t *link, const t_stream_t *stream)
{
    unsigned i;

    for (i = 0; i < 1000; i++) {
        (void)t_try_send(link, T_BCOPY, 100);
        t_progress_or_yield();
    }
    T_WAIT(stream->got == link->sent);
}


/* No credit is granted any more, and then the queue pair dies: the next one has
 * no more credits than there are RECVs, so all that can be sent arrives. */
START_TEST(test_recvs_none_at_a_loss)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    t_stream_t stream;
    t_end_t *end[2];
    t_link_t *link;
    unsigned i;

    t_only_daqiri("offers refused RECVs again");
    t_expect_log(refused);
    t_expect_losses_of_qps();
    for (i = 0; i < 2; i++) {
        end[i] = t_end_open("RX_WINDOW=8 TIMEOUT=8ms RETRY_COUNT=3 "
                            "CONN_RETRY=5ms");
    }
    link = t_link_up(end[0], end[1], 1, &stream);

    __atomic_store_n(&device.is_full, 1, __ATOMIC_RELAXED);
    send_what_goes(link, &stream);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    ck_assert_int_eq(ibv_modify_qp(__atomic_load_n(&device.qp,
                                                   __ATOMIC_RELAXED), &attr,
                                   IBV_QP_STATE), 0);
    while ((t_live_sum("qp_failures") < 2) ||
           (t_live_sum("qp_failures") != t_live_sum("recoveries"))) {
        (void)t_try_send(link, T_BCOPY, 100); /* or nobody looks */
        t_progress_or_yield();
    }
    send_what_goes(link, &stream);
    __atomic_store_n(&device.is_full, 0, __ATOMIC_RELAXED);
    go_on(link, &stream);
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("rx_overcommit"), 0);
}
END_TEST


static Suite *suite_rogue(void)
{
    Suite *suite = suite_create("rogue");
    TCase *tcase = t_uct_case("rogue");
    TCase *end   = t_uct_case("end");

    tcase_add_test(tcase, test_timers);
    tcase_add_loop_test(tcase, test_lie, 0, LIES);
    tcase_add_loop_test(tcase, test_gap, 0, sizeof(gaps) / sizeof(gaps[0]));
    tcase_add_test(tcase, test_fence_flag);
    tcase_add_test(tcase, test_grant_twice);
    tcase_add_test(tcase, test_unbidden);
    tcase_add_test(tcase, test_stray);
    tcase_add_loop_test(tcase, test_recvs_refused, 0, 5);
    tcase_add_test(tcase, test_recvs_none);
    tcase_add_test(tcase, test_recvs_none_at_a_loss);
    suite_add_tcase(suite, tcase);

    tcase_add_test(end, test_late);
    tcase_add_test(end, test_end);
    tcase_add_loop_test(end, test_end_refused, 0, 2);
    tcase_add_test(end, test_established_by_message);
    suite_add_tcase(suite, end);
    return suite;
}

T_UCT_MAIN(suite_rogue)
