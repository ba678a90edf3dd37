/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of the handshake that somebody has made up: without the interface's
 * cookie, of attempts that are over, in the name of others. They change nothing
 * and are counted, and messages go on as if nothing had happened.
 *
 * The forger is a UD queue pair of its own, on the same device. Datagrams of one
 * queue pair stay in order there: when its last one, which must be refused, is
 * answered, all before it have been looked at.
 */
#include "t_uct.h"

#include "dq/dq_wire.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum {
    SLOT  = 256,
    RECVS = 64,
    MTU   = 4096 /* bytes; what the longest datagram has                     */
};

#define QKEY   0x64717269u /* daqiri_ud.c */
#define FORGER UINT64_C(0xf0f0f0f0f0f0f0f0)
#define MARK   UINT64_C(0xe0e0e0e000000000) /* of its attempts, and their number */

#define CLOCKS_DIFFER 1.05 /* UCX's may be no clock that a test can read */

static struct {
    struct ibv_context *context;
    struct ibv_pd      *pd;
    struct ibv_cq      *cq, *sent; /* of RECVs, and of sends                 */
    struct ibv_qp      *qp;
    struct ibv_mr      *mr;
    struct ibv_ah      *ah;
    uint8_t            memory[SLOT * RECVS + MTU]; /* the end is sent        */
    dq_iface_addr_t    victim, peer; /* the ends whose frames are forged     */
    dq_port_addr_t     port;
} forger;


/* ---- Where cookies and marks come from ---- */

enum { DRAWS = 100 };

static struct {
    unsigned failures; /* of the plugin's next calls                         */
    int      error;
    uint64_t drawn;    /* what it has got first since this was 0             */
    int      is_held;  /* it waits; atomic                                   */
} kernel;


/* Others draw, too: the device does. */
static int is_plugin(const void *caller)
{
    Dl_info info;

    return (dladdr(caller, &info) != 0) && (info.dli_fname != NULL) &&
           (strstr(info.dli_fname, "uct_daqiri") != NULL);
}


/* Between the plugin and the kernel. */
ssize_t getrandom(void *buffer, size_t length, unsigned flags)
{
    int is_plugins = is_plugin(__builtin_return_address(0));
    ssize_t (*real)(void*, size_t, unsigned);
    ssize_t ret;

    if (is_plugins && (kernel.failures > 0)) {
        kernel.failures--;
        errno = kernel.error;
        return -1;
    }
    while (is_plugins && __atomic_load_n(&kernel.is_held, __ATOMIC_RELAXED)) {
        sched_yield();
    }
    *(void**)&real = dlsym(RTLD_NEXT, "getrandom");
    ret            = real(buffer, length, flags);
    if (is_plugins && (kernel.drawn == 0)) {
        ck_assert_int_ge(ret, sizeof(kernel.drawn));
        memcpy(&kernel.drawn, buffer, sizeof(kernel.drawn));
    }
    return ret;
}


static dq_iface_addr_t address_drawn(const char *options)
{
    dq_iface_addr_t addr;
    t_end_t *end;

    kernel.drawn = 0;
    end          = t_end_open(options);
    memcpy(&addr, end->address.iface, sizeof(addr));
    t_end_close(end);
    return addr;
}


/* It is what the kernel gave, every bit of it, and nothing that follows from the
 * uuid. */
START_TEST(test_cookies_are_drawn)
{
    uint64_t cookies[DRAWS], zeros = 0, ones = 0;
    unsigned i, j;

    t_only_daqiri("has cookies");
    for (i = 0; i < DRAWS; i++) {
        cookies[i] = address_drawn("").cookie;
        ck_assert_uint_eq(cookies[i], kernel.drawn);
        zeros |= ~cookies[i];
        ones  |= cookies[i];
        for (j = 0; j < i; j++) {
            ck_assert_uint_ne(cookies[i], cookies[j]);
        }
    }
    ck_assert_uint_eq(zeros, UINT64_MAX); /* else: once in 2^93 */
    ck_assert_uint_eq(ones, UINT64_MAX);
}
END_TEST


START_TEST(test_draw_is_interrupted)
{
    t_only_daqiri("has cookies");
    kernel.error    = EINTR;
    kernel.failures = 3;
    (void)address_drawn("");
    ck_assert_uint_eq(kernel.failures, 0);
}
END_TEST


/* An interface that could not tell its peers from others is none. */
START_TEST(test_no_draw)
{
    t_end_t *end;

    t_only_daqiri("has cookies");
    t_expect_log("getrandom");
    kernel.error    = ENOSYS;
    kernel.failures = 1;
    ck_assert_int_eq(t_end_try_open(NULL, "", &end), UCS_ERR_IO_ERROR);
    ck_assert_uint_eq(t_log_count("getrandom"), 1);
    (void)address_drawn("");
}
END_TEST


/* ---- Between the plugin and the device ---- */

enum { NO_RTR = 1, OTHER_TIMERS };

enum { SLOW_LID = 0x7777, SLOW_MS = 150 };

static int device_does; /* one of these, or 0; atomic                        */
static int slow_ahs;    /* that were to be made; atomic                      */
static int rc_qps;      /* that there are; atomic                            */


/* Nobody is at one address, and it takes a while to find that out. */
struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    static const struct timespec slow = {.tv_nsec = SLOW_MS * 1000000l};
    struct ibv_ah *(*real)(struct ibv_pd*, struct ibv_ah_attr*);

    if (attr->dlid == SLOW_LID) {
        __atomic_fetch_add(&slow_ahs, 1, __ATOMIC_RELAXED);
        (void)nanosleep(&slow, NULL);
        errno = ETIMEDOUT;
        return NULL;
    }
    *(void**)&real = dlsym(RTLD_NEXT, "ibv_create_ah");
    return real(pd, attr);
}


struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    struct ibv_qp *(*real)(struct ibv_pd*, struct ibv_qp_init_attr*);
    struct ibv_qp *qp;

    *(void**)&real = dlsym(RTLD_NEXT, "ibv_create_qp");
    qp             = real(pd, init);
    if ((qp != NULL) && (qp->qp_type == IBV_QPT_RC)) {
        __atomic_fetch_add(&rc_qps, 1, __ATOMIC_RELAXED);
    }
    return qp;
}


int ibv_destroy_qp(struct ibv_qp *qp)
{
    int is_rc = qp->qp_type == IBV_QPT_RC;
    int (*real)(struct ibv_qp*);
    int ret;

    *(void**)&real = dlsym(RTLD_NEXT, "ibv_destroy_qp");
    ret            = real(qp);
    if ((ret == 0) && is_rc) {
        __atomic_fetch_sub(&rc_qps, 1, __ATOMIC_RELAXED);
    }
    return ret;
}


int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    int (*real)(struct ibv_qp*, struct ibv_qp_attr*, int);

    if ((attr->qp_state == IBV_QPS_RTR) && (qp->qp_type == IBV_QPT_RC) &&
        (__atomic_load_n(&device_does, __ATOMIC_RELAXED) == NO_RTR)) {
        return EINVAL;
    }
    *(void**)&real = dlsym(RTLD_NEXT, "ibv_modify_qp");
    return real(qp, attr, mask);
}


int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
                 struct ibv_qp_init_attr *init)
{
    int (*real)(struct ibv_qp*, struct ibv_qp_attr*, int,
                struct ibv_qp_init_attr*);
    int ret;

    *(void**)&real = dlsym(RTLD_NEXT, "ibv_query_qp");
    ret            = real(qp, attr, mask, init);
    if (__atomic_load_n(&device_does, __ATOMIC_RELAXED) == OTHER_TIMERS) {
        attr->min_rnr_timer = 0;
    }
    return ret;
}


/* ---- A queue pair that says anything ---- */

static void forger_modify(void)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qkey     = QKEY,
    };

    ck_assert_int_eq(ibv_modify_qp(forger.qp, &attr, IBV_QP_STATE |
                                   IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                   IBV_QP_QKEY), 0);
    attr.qp_state = IBV_QPS_RTR;
    ck_assert_int_eq(ibv_modify_qp(forger.qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    ck_assert_int_eq(ibv_modify_qp(forger.qp, &attr, IBV_QP_STATE |
                                   IBV_QP_SQ_PSN), 0);
}


static void forger_post_recv(unsigned index)
{
    struct ibv_recv_wr *bad_wr;
    struct ibv_sge sge = {
        .addr   = (uintptr_t)&forger.memory[SLOT * index],
        .length = SLOT,
        .lkey   = forger.mr->lkey,
    };
    struct ibv_recv_wr wr = {
        .wr_id   = index,
        .sg_list = &sge,
        .num_sge = 1,
    };

    ck_assert_int_eq(ibv_post_recv(forger.qp, &wr, &bad_wr), 0);
}


static void forger_open(const t_end_t *victim, const t_end_t *peer)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_UD,
        .cap     = {.max_send_wr = 1, .max_recv_wr = RECVS,
                    .max_send_sge = 1, .max_recv_sge = 1},
    };
    struct ibv_ah_attr attr = {.port_num = 1};
    unsigned i;

    memcpy(&forger.victim, victim->address.iface, sizeof(forger.victim));
    memcpy(&forger.peer, peer->address.iface, sizeof(forger.peer));
    memcpy(&forger.port, victim->address.dev, sizeof(forger.port));
    ck_assert(devices != NULL && devices[0] != NULL);
    forger.context = ibv_open_device(devices[0]);
    ibv_free_device_list(devices);
    ck_assert_ptr_nonnull(forger.context);
    forger.pd = ibv_alloc_pd(forger.context);
    forger.cq   = ibv_create_cq(forger.context, RECVS, NULL, NULL, 0);
    forger.sent = ibv_create_cq(forger.context, 1, NULL, NULL, 0);
    ck_assert(forger.pd != NULL && forger.cq != NULL && forger.sent != NULL);
    init.recv_cq = forger.cq;
    init.send_cq = forger.sent;
    forger.qp    = ibv_create_qp(forger.pd, &init);
    forger.mr    = ibv_reg_mr(forger.pd, forger.memory, sizeof(forger.memory),
                              IBV_ACCESS_LOCAL_WRITE);
    attr.dlid      = forger.port.lid;
    attr.is_global = forger.port.is_eth;
    memcpy(attr.grh.dgid.raw, forger.port.gid, sizeof(forger.port.gid));
    forger.ah = ibv_create_ah(forger.pd, &attr);
    ck_assert(forger.qp != NULL && forger.mr != NULL && forger.ah != NULL);
    forger_modify();
    for (i = 0; i < RECVS; i++) {
        forger_post_recv(i);
    }
}


static void forger_close(void)
{
    ck_assert_int_eq(ibv_destroy_ah(forger.ah), 0);
    ck_assert_int_eq(ibv_destroy_qp(forger.qp), 0);
    ck_assert_int_eq(ibv_dereg_mr(forger.mr), 0);
    ck_assert_int_eq(ibv_destroy_cq(forger.cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(forger.sent), 0);
    ck_assert_int_eq(ibv_dealloc_pd(forger.pd), 0);
    ck_assert_int_eq(ibv_close_device(forger.context), 0);
}


/* One completion of this CQ; the ends work meanwhile. */
static struct ibv_wc forger_wait_for(struct ibv_cq *cq)
{
    struct ibv_wc wc;

    T_WAIT(ibv_poll_cq(cq, 1, &wc) == 1);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    return wc;
}


static struct ibv_wc forger_wait(void)
{
    return forger_wait_for(forger.cq);
}


static void forger_send(size_t length)
{
    struct ibv_send_wr *bad_wr;
    struct ibv_sge sge = {
        .addr   = (uintptr_t)&forger.memory[SLOT * RECVS],
        .length = length,
        .lkey   = forger.mr->lkey,
    };
    struct ibv_send_wr wr = {
        .sg_list    = &sge,
        .num_sge    = 1,
        .opcode     = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
    };

    wr.wr.ud.ah          = forger.ah;
    wr.wr.ud.remote_qpn  = forger.victim.ud_qpn;
    wr.wr.ud.remote_qkey = QKEY;
    ck_assert_int_eq(ibv_post_send(forger.qp, &wr, &bad_wr), 0);
    ck_assert_int_eq(forger_wait_for(forger.sent).opcode, IBV_WC_SEND);
}


/* ---- What it says ---- */

/* As the peer would say it, but for what the test changes. */
static dq_frame_t forger_frame(dq_frame_kind_t kind)
{
    return (dq_frame_t){
        .kind       = kind,
        .dst_cookie = forger.victim.cookie,
        .src        = forger.peer,
        .port       = forger.port,
        .epoch      = 1000,
        .first      = 1,
        .peer_epoch = 1,
        .qpn        = 0x123,
        .psn        = 0x456,
        .credits    = 64,
        .promised   = 64,
        .rd_atomic  = 1,
        .mark       = MARK,
        .host       = "nowhere",
    };
}


static void forger_say(const dq_frame_t *frame)
{
    dq_frame_pack(frame, &forger.memory[SLOT * RECVS]);
    forger_send(DQ_FRAME_BYTES);
}


/* Where answers to it arrive at the forger. */
static dq_iface_addr_t forger_address(uint64_t uuid)
{
    return (dq_iface_addr_t){.uuid   = uuid,
                             .cookie = FORGER,
                             .ud_qpn = forger.qp->qp_num};
}


static dq_frame_t forger_read(const struct ibv_wc *wc)
{
    dq_frame_t frame;

    ck_assert_int_eq(wc->opcode, IBV_WC_RECV);
    ck_assert_int_eq(dq_frame_parse(&forger.memory[SLOT * wc->wr_id +
                                                   DQ_WIRE_GRH_LEN],
                                    wc->byte_len - DQ_WIRE_GRH_LEN, FORGER,
                                    &frame), DQ_WIRE_OK);
    forger_post_recv(wc->wr_id);
    ck_assert_uint_eq(frame.src.uuid, forger.victim.uuid);
    return frame;
}


static dq_frame_t forger_next(void)
{
    struct ibv_wc wc = forger_wait();

    return forger_read(&wc);
}


/* A stranger's word is not heard if the one before took long, as it may on a busy
 * machine: then it is said again. */
static uint64_t unheard(void)
{
    return t_live_sum("frames_unheard");
}


/* The answer to a frame with this mark, or 0 if there will be none. */
static int forger_hears(uint64_t mark, uint64_t unheard_before,
                        dq_frame_t *answer)
{
    struct ibv_wc wc;
    int got;

    do {
        T_WAIT(((got = ibv_poll_cq(forger.cq, 1, &wc)) == 1) ||
               (unheard() > unheard_before));
        if (got != 1) {
            return 0;
        }
        *answer = forger_read(&wc);
    } while (answer->peer_mark != mark);
    return 1;
}


/* The next answer to a frame with this mark; there may be others before it. */
static dq_frame_t forger_hear(uint64_t mark)
{
    dq_frame_t answer;

    do {
        answer = forger_next();
    } while (answer.peer_mark != mark);
    return answer;
}


static dq_frame_t forger_hear_kind(dq_frame_kind_t kind)
{
    dq_frame_t frame;

    do {
        frame = forger_next();
    } while (frame.kind != kind);
    return frame;
}


/* Hears what has come, so that there is room for what will. */
static void forger_catch_up(void)
{
    struct ibv_wc wc;

    while (ibv_poll_cq(forger.cq, 1, &wc) == 1) {
        forger_post_recv(wc.wr_id);
    }
}


/* A REQ that goes on with a connection that nobody knows: refused. */
static void forger_settle(uint64_t uuid)
{
    static uint64_t turn;
    dq_frame_t frame = forger_frame(DQ_FRAME_REQ), answer;
    uint64_t before;

    forger_catch_up();
    frame.src        = forger_address(uuid);
    frame.mark       = ~MARK - ++turn;
    frame.peer_epoch = 77;
    do {
        before = unheard();
        forger_say(&frame);
    } while (!forger_hears(frame.mark, before, &answer));
    ck_assert_int_eq(answer.kind, DQ_FRAME_REFUSE);
    ck_assert_uint_eq(answer.peer_epoch, frame.epoch); /* so it is heeded */
    ck_assert_uint_eq(answer.mark, 0); /* that of an AGAIN is for no other */
}


/* ---- Two ends that do not care ---- */

static struct {
    t_end_t    *end[2];
    t_link_t   *link[2];
    t_stream_t stream[2];
    unsigned   conns; /* of both                                             */
} pair;


static void pair_talk(unsigned count)
{
    unsigned n, i;

    for (n = 0; n < count; n++) {
        for (i = 0; i < 2; i++) {
            t_send(pair.link[i], T_BCOPY, 100);
        }
    }
    for (i = 0; i < 2; i++) {
        T_WAIT(pair.stream[i].got == pair.link[1 - i]->sent);
    }
}


static void pair_open_with(const char *options)
{
    const char *bed = getenv("T_BED");
    unsigned i;

    t_only_daqiri("has this handshake");
    if ((bed != NULL) && (strcmp(bed, "softverbs") != 0)) {
        t_skip("the forger knows softverbs' GID and port only");
    }
    for (i = 0; i < 2; i++) {
        pair.end[i] = t_end_open(options);
        t_stream_open(&pair.stream[i], pair.end[i], 1 + i);
    }
    for (i = 0; i < 2; i++) {
        pair.link[i] = t_link_open(pair.end[i], &pair.end[1 - i]->address,
                                   2 - i);
    }
    pair.conns = 2;
    pair_talk(10);
    forger_open(pair.end[0], pair.end[1]);
}


static void pair_open(void)
{
    pair_open_with("");
}


/* What there was before goes on. */
static void pair_end(void)
{
    forger_settle(FORGER);
    pair_talk(100);
    ck_assert_uint_eq(pair.end[0]->errors + pair.end[1]->errors, 0);
    forger_close();
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("conns_up"), pair.conns);
}


/* Nothing has changed, and so much was counted. */
static void pair_close(uint64_t bad_cookies, uint64_t ignored_at_least)
{
    pair_end();
    ck_assert_uint_eq(t_stats_sum("frames_dropped_bad_cookie"), bad_cookies);
    ck_assert_uint_ge(t_stats_sum("frames_dup"), ignored_at_least);
    ck_assert_uint_eq(t_stats_sum("qp_failures"), 0);
    /* of the one refused nothing */
    ck_assert_uint_eq(t_stats_sum("conns"), pair.conns);
}


START_TEST(test_without_the_cookie)
{
    dq_frame_t frame;
    unsigned kind;

    pair_open();
    for (kind = 0; kind < DQ_FRAME_LAST; kind++) {
        frame            = forger_frame(kind);
        frame.dst_cookie = 0;
        forger_say(&frame);
        frame.dst_cookie = forger.victim.cookie ^ 1;
        forger_say(&frame);
        frame.dst_cookie = forger.peer.cookie; /* of another interface */
        forger_say(&frame);
    }
    pair_close(3 * DQ_FRAME_LAST, 0);
}
END_TEST


START_TEST(test_in_the_peers_name)
{
    dq_frame_t frame;
    unsigned kind;

    pair_open();
    for (kind = 0; kind < DQ_FRAME_LAST; kind++) {
        frame            = forger_frame(kind);
        frame.src.cookie = FORGER; /* the peer's is not known */
        frame.src.ud_qpn = forger.qp->qp_num;
        forger_say(&frame);
    }
    pair_close(DQ_FRAME_LAST, 0);
}
END_TEST


/* Who knows the peer's cookie, but is elsewhere. */
START_TEST(test_in_the_peers_name_from_elsewhere)
{
    dq_frame_t frame;
    unsigned kind;

    pair_open();
    for (kind = 0; kind < DQ_FRAME_LAST; kind++) {
        frame            = forger_frame(kind);
        frame.src.ud_qpn = forger.qp->qp_num;
        forger_say(&frame);
        frame            = forger_frame(kind);
        frame.port.lid++;
        forger_say(&frame);
    }
    pair_close(2 * DQ_FRAME_LAST, 0);
}
END_TEST


START_TEST(test_of_old_epochs)
{
    static const uint32_t old[] = {1u << 31, UINT32_MAX - 1000, UINT32_MAX};
    dq_frame_t frame;
    unsigned i, kind;

    pair_open();
    for (i = 0; i < sizeof(old) / sizeof(old[0]); i++) {
        for (kind = 0; kind <= DQ_FRAME_GONE; kind++) {
            frame            = forger_frame(kind);
            frame.epoch      = old[i];
            frame.peer_epoch = old[i];
            if (kind == DQ_FRAME_GONE) {
                frame.first = old[i]; /* else it may well be the peer's end */
            }
            forger_say(&frame);
        }
    }
    pair_close(0, 3 * (DQ_FRAME_GONE + 1));
}
END_TEST


/* Who has no connection here answers nothing that was asked. */
START_TEST(test_of_other_interfaces)
{
    dq_frame_t frame;
    unsigned kind;

    pair_open();
    for (kind = DQ_FRAME_REP; kind < DQ_FRAME_LAST; kind++) {
        frame          = forger_frame(kind);
        frame.src.uuid = FORGER + 1 + kind;
        forger_say(&frame);
    }
    pair_close(0, DQ_FRAME_LAST - 1);
}
END_TEST


START_TEST(test_noise)
{
    uint8_t *bytes = &forger.memory[SLOT * RECVS];
    unsigned i, length;
    t_rng_t rng;

    t_rng_init(&rng, 0xf0);
    pair_open();
    for (i = 0; i < 500; i++) {
        length = t_rng_below(&rng, DQ_FRAME_BYTES + 20);
        t_rng_fill(&rng, bytes, length);
        forger_send(length);
        if (i % 100 == 99) {
            forger_settle(FORGER);
        }
    }
    pair_close(0, 0);
    ck_assert_uint_eq(t_stats_sum("frames_dropped_short") +
                      t_stats_sum("frames_dropped_bad_magic"), 500);
}
END_TEST


/* ---- Of another version of the wire ---- */

enum {
    OLD_VERSION = 5,
    OLD_BYTES   = 124, /* of a frame                                         */
    AT_VERSION  = 4,
    OLD_FRAMES  = 200
};


/* What an old process would say. Of the layout only the head is looked at. */
static void forger_say_old(uint64_t cookie)
{
    uint8_t *bytes   = &forger.memory[SLOT * RECVS];
    dq_frame_t frame = forger_frame(DQ_FRAME_REQ);

    frame.dst_cookie = cookie;
    dq_frame_pack(&frame, bytes);
    bytes[AT_VERSION] = OLD_VERSION;
    forger_send(OLD_BYTES);
}


/* It is said, with its number, once a second; but not of a stranger without the
 * cookie. */
START_TEST(test_other_version)
{
    static const char words[] = "does not connect to a peer with version 5 of "
                                "daqiri's wire, for here it is 9";
    unsigned i;

    pair_open();
    for (i = 0; i < OLD_FRAMES; i++) {
        forger_say_old(forger.victim.cookie ^ 1);
    }
    forger_settle(FORGER + 1);
    ck_assert_uint_eq(t_log_count(words), 0);

    t_expect_log(words);
    for (i = 0; i < OLD_FRAMES; i++) {
        forger_say_old(forger.victim.cookie);
    }
    T_WAIT(t_log_count(words) > 0);
    pair_close(0, 0);
    ck_assert_uint_lt(t_log_count(words), OLD_FRAMES);
    ck_assert_uint_eq(t_stats_sum("frames_dropped_bad_version"),
                      2 * OLD_FRAMES);
}
END_TEST


/* ---- Datagrams longer than any frame ---- */

/* Around what a slot of the receiver's has behind the GRH, and the MTU. */
static const uint16_t lengths[] = {
    DQ_FRAME_BYTES + 1, 151, 152, 153, 191, 192, 193, 1024, MTU - 1, MTU
};

enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]), LONG_EACH = 30 };


/* So many of one length: noise, and frames with more behind them. All are looked at
 * before it returns: the device drops what finds no RECV, and the victim has 256. */
static void forger_ramble(unsigned length, t_rng_t *rng)
{
    uint8_t *bytes   = &forger.memory[SLOT * RECVS];
    dq_frame_t frame = forger_frame(DQ_FRAME_REP);
    unsigned i;

    for (i = 0; i < LONG_EACH; i++) {
        t_rng_fill(rng, bytes, length);
        forger_send(length);
        frame.dst_cookie = forger.victim.cookie ^ 1;
        dq_frame_pack(&frame, bytes);
        forger_send(length);
    }
    forger_settle(FORGER);
}


/* Meanwhile others connect to the same queue pair, as if nothing had been. */
START_TEST(test_longer_than_a_frame)
{
    t_stream_t stream;
    unsigned i;
    t_end_t *other;
    t_link_t *link;
    t_rng_t rng;

    t_rng_init(&rng, 0xf1);
    pair_open();
    for (i = 0; i < LENGTHS; i++) {
        other = t_end_open("");
        link  = t_link_open(other, &pair.end[0]->address, 3);
        t_stream_open(&stream, pair.end[0], 3);
        forger_ramble(lengths[i], &rng);
        t_send(link, T_BCOPY, 100);
        T_WAIT(stream.got == 1);
        t_end_close(other);
        pair.conns += 2;
    }
    pair_close(LENGTHS * LONG_EACH, 0);
    ck_assert_uint_eq(t_stats_sum("frames_dropped_bad_magic"),
                      LENGTHS * LONG_EACH);
    ck_assert_uint_eq(t_stats_sum("frames_dropped_short"), 0);
    ck_assert_uint_eq(t_stats_sum("ud_remade"), 0);
}
END_TEST


/* The same while queue pairs of others die: they recover, and talk, and who is new
 * connects. */
START_TEST(test_longer_than_a_frame_while_others_recover)
{
    uint64_t before;
    t_stream_t stream;
    t_link_t *link;
    t_end_t *other;
    unsigned i, n, rambles = 0;
    t_rng_t rng;

    t_rng_init(&rng, 0xf2);
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS_LOG", "/dev/null", 1), 0);
    pair_open();
    t_expect_losses_of_qps();
    t_plan_by_command("qp-error qp=rc n=20 every=20");
    for (i = 0; i < LENGTHS; i++) {
        other  = t_end_open("");
        link   = t_link_open(other, &pair.end[0]->address, 3);
        before = t_live_sum("recoveries");
        t_stream_open(&stream, pair.end[0], 3);
        do {
            for (n = 0; n < 20; n++) {
                t_send(pair.link[0], T_BCOPY, 100);
                t_send(pair.link[1], T_BCOPY, 100);
            }
            forger_ramble(lengths[i], &rng);
            rambles++;
        } while (t_live_sum("recoveries") < before + 2);
        pair_talk(1);
        t_send(link, T_BCOPY, 100);
        T_WAIT(stream.got == 1);
        t_end_close(other);
        pair.conns += 2;
    }
    t_plan_by_command("verb name=resize_cq"); /* nobody does */
    pair_end();
    ck_assert_uint_ge(t_stats_sum("recoveries"), 2 * LENGTHS);
    ck_assert_uint_eq(t_stats_sum("frames_dropped_bad_cookie"),
                      rambles * LONG_EACH);
    ck_assert_uint_eq(t_stats_sum("frames_dropped_bad_magic"),
                      rambles * LONG_EACH);
    ck_assert_uint_eq(t_stats_sum("ud_remade"), 0);
}
END_TEST


/* ---- Who takes the place of a peer that is still to come ---- */

enum { OTHER_COOKIE, OTHER_QPN, OTHER_PORT, PLACES };


/* A REQ that says it is @a peer's, but for one thing. */
static void forge_first_word(const t_end_t *peer, int what)
{
    dq_frame_t frame = forger_frame(DQ_FRAME_REQ);
    uint64_t before  = t_live_sum("conns");

    memcpy(&frame.src, peer->address.iface, sizeof(frame.src));
    frame.peer_epoch = 0;
    switch (what) {
    case OTHER_COOKIE:
        frame.src.cookie ^= 1;
        break;
    case OTHER_QPN:
        frame.src.ud_qpn = 0xffffff; /* nobody is there */
        break;
    default:
        frame.port.lid++;
        break;
    }
    forger_say(&frame);
    T_WAIT(t_live_sum("conns") > before);
}


/* UCP's address says where the peer is: what is there in its name and is not of
 * it makes room. */
START_TEST(test_address_wins)
{
    t_stream_t stream[2];
    t_end_t *other;

    pair_open();
    other = t_end_open("");
    forge_first_word(other, _i);
    (void)t_link_up(pair.end[0], other, 3, &stream[0]);
    (void)t_link_up(other, pair.end[0], 3, &stream[1]);
    T_WAIT(t_live_sum("conns_closed") == 1);
    pair.conns += 2;
    pair_end();
    ck_assert_uint_eq(t_stats_sum("conns_forged"), 1);
    ck_assert_uint_eq(t_stats_sum("conns"), pair.conns + 1);
}
END_TEST


/* The async thread draws the numbers of its queue pair when the conn is over. */
START_TEST(test_address_wins_at_once)
{
    t_stream_t stream;
    t_end_t *other;

    pair_open();
    other = t_end_open("");
    __atomic_store_n(&kernel.is_held, 1, __ATOMIC_RELAXED);
    forge_first_word(other, OTHER_COOKIE);
    t_link_open(pair.end[0], &other->address, 3);
    t_progress_turns(1000);
    __atomic_store_n(&kernel.is_held, 0, __ATOMIC_RELAXED);
    T_WAIT(t_live_sum("conns_closed") == 1);
    (void)t_link_up(other, pair.end[0], 4, &stream);
    pair.conns += 2;
    pair_end();
    ck_assert_uint_eq(t_stats_sum("conns_forged"), 1);
}
END_TEST


/* ---- Strangers, who know the cookie ---- */

enum {
    STRANGERS = 100,
    BEGINNERS = 8,
    CROWD     = 400,
    CROWD_MAX = 64, /* daqiri_hs.c */
    HEARERS   = 3 * CROWD_MAX,
    LOSSES    = 50,
    SILENT    = 32,
    GUESSES   = 9
};


/* Who goes on with what is not known is answered, and nothing is kept of it. */
START_TEST(test_strangers)
{
    unsigned i;

    pair_open();
    for (i = 1; i <= STRANGERS; i++) {
        forger_settle(FORGER + i);
    }
    pair_close(0, 0);
    ck_assert_uint_eq(t_stats_sum("frames_unknown"), STRANGERS + 1);
}
END_TEST


/* A stranger's first word; it has been looked at. Non-zero: there is a connection
 * for it. */
static int stranger_asks_with(unsigned index, uint32_t ud_qpn,
                              uint64_t peer_mark)
{
    uint64_t conns   = t_live_sum("conns");
    uint64_t crowded = t_live_sum("frames_crowded");
    dq_frame_t frame = forger_frame(DQ_FRAME_REQ);
    uint64_t before;

    frame.src        = forger_address(FORGER + index);
    frame.src.ud_qpn = ud_qpn;
    frame.mark       = MARK + index;
    frame.peer_epoch = 0;
    frame.peer_mark  = peer_mark;
    do {
        before = unheard();
        forger_say(&frame);
        T_WAIT((t_live_sum("conns") > conns) ||
               (t_live_sum("frames_crowded") > crowded) ||
               (unheard() > before));
    } while (unheard() > before);
    return t_live_sum("conns") > conns;
}


static int stranger_asks(unsigned index)
{
    return stranger_asks_with(index, forger.qp->qp_num, 0);
}


/* And nobody is where it says. */
static int stranger_says(unsigned index)
{
    return stranger_asks_with(index, 0xffffff, 0);
}


/* What it says to the REP: that it is ready, and the mark that it has heard. */
static void stranger_answers(unsigned index, const dq_frame_t *rep,
                             uint64_t mark)
{
    dq_frame_t frame = forger_frame(DQ_FRAME_RTU);

    frame.src        = forger_address(FORGER + index);
    frame.mark       = MARK + index;
    frame.peer_epoch = rep->epoch;
    frame.peer_mark  = mark;
    forger_say(&frame);
}


/* And that it goes, so that there is room for others. */
static void stranger_goes(unsigned index, const dq_frame_t *rep)
{
    uint64_t over    = t_live_sum("conns_closed");
    dq_frame_t frame = forger_frame(DQ_FRAME_GONE);

    frame.src        = forger_address(FORGER + index);
    frame.mark       = MARK + index;
    frame.peer_epoch = rep->epoch;
    frame.peer_mark  = rep->mark;
    forger_say(&frame);
    T_WAIT(t_live_sum("conns_closed") > over);
}


/* So many are answered at once and no more. What is wanted here is none of them,
 * and a peer who is there does not wait until they are over. */
START_TEST(test_crowd)
{
    t_stream_t stream[2];
    t_end_t *other[2];
    unsigned i, taken = 0;

    pair_open_with("CONN_TIMEOUT=3600s");
    for (i = 1; i <= CROWD; i++) {
        taken += stranger_says(i);
    }
    ck_assert_uint_eq(taken, CROWD_MAX);
    ck_assert_uint_eq(t_live_sum("frames_crowded"), CROWD - CROWD_MAX);
    for (i = 0; i < 2; i++) {
        other[i] = t_end_open("CONN_TIMEOUT=3600s");
    }
    (void)t_link_up(pair.end[0], other[0], 3, &stream[0]);
    (void)t_link_up(other[1], pair.end[0], 3, &stream[1]);
    pair.conns += 4;
    pair_end();
    ck_assert_uint_eq(t_stats_sum("conns"), pair.conns + CROWD_MAX);
}
END_TEST


/* Who is put off is told a mark, and with that is a peer like any other. One that
 * is made up is none. */
START_TEST(test_crowd_that_asks_again)
{
    uint64_t ticket = 0;
    dq_frame_t answer;
    unsigned i;

    pair_open_with("CONN_TIMEOUT=3600s");
    for (i = 1; i <= CROWD_MAX; i++) {
        ck_assert(stranger_says(i));
    }
    for (; i <= 2 * CROWD_MAX; i++) {
        ck_assert(!stranger_asks(i));
        answer = forger_hear(MARK + i);
        ck_assert_int_eq(answer.kind, DQ_FRAME_AGAIN);
        ck_assert_uint_eq(answer.peer_epoch, forger_frame(DQ_FRAME_REQ).epoch);
        ck_assert((ticket == 0) || (ticket == answer.mark));
        ticket = answer.mark;
        ck_assert(!stranger_asks_with(i, forger.qp->qp_num, ticket ^ 1));
        ck_assert_int_eq(forger_hear(MARK + i).kind, DQ_FRAME_AGAIN);

        ck_assert(stranger_asks_with(i, forger.qp->qp_num, ticket));
        answer = forger_hear(MARK + i);
        ck_assert_int_eq(answer.kind, DQ_FRAME_REP);
        stranger_answers(i, &answer, answer.mark);
        T_WAIT(t_live_sum("conns_up") == 2 + i - CROWD_MAX);
    }
    ck_assert_uint_ne(ticket, 0);
    ck_assert_uint_ne(ticket, forger.victim.cookie);
    ck_assert(!stranger_says(i));
    pair.conns += CROWD_MAX;
    pair_end();
}
END_TEST


/* To have a place for longer takes more than a guess: all that is in an RTU but
 * the mark, which only those have whom the REP has reached. */
START_TEST(test_crowd_that_guesses)
{
    static const uint64_t guesses[] = {0, 1, UINT64_C(1) << 63};
    unsigned i, k, answered = 0;
    dq_frame_t rep;

    pair_open();
    for (i = 1; i <= CROWD; i++) {
        if (!stranger_asks(i)) {
            continue;
        }
        rep = forger_hear(MARK + i);
        answered++;
        ck_assert_int_eq(rep.kind, DQ_FRAME_REP);
        stranger_answers(i, &rep, 0);
        for (k = 0; k < sizeof(guesses) / sizeof(guesses[0]); k++) {
            stranger_answers(i, &rep, rep.mark ^ guesses[k] ^ 2);
        }
        stranger_answers(i, &rep, rep.peer_mark);
        stranger_answers(i, &rep, forger.victim.cookie);
    }
    ck_assert_uint_eq(answered, CROWD_MAX);
    ck_assert_uint_eq(t_live_sum("conns"), 2 + CROWD_MAX);
    ck_assert_uint_eq(t_live_sum("conns_up"), 2);
    ck_assert_int_eq(__atomic_load_n(&rc_qps, __ATOMIC_RELAXED), 2 + CROWD_MAX);
    pair_end();
    ck_assert_uint_eq(t_stats_sum("frames_dropped_bad_mark"), 6 * CROWD_MAX);
    ck_assert_uint_eq(t_stats_sum("frames_crowded"), CROWD - CROWD_MAX);
}
END_TEST


/* Who has heard is a peer like any other, however many they are. */
START_TEST(test_crowd_that_hears)
{
    dq_frame_t rep;
    unsigned i;

    pair_open();
    for (i = 1; i <= HEARERS; i++) {
        ck_assert(stranger_asks(i));
        rep = forger_hear(MARK + i);
        stranger_answers(i, &rep, rep.mark);
        T_WAIT(t_live_sum("conns_up") == 2 + i);
    }
    ck_assert_uint_eq(t_live_sum("conns"), 2 + HEARERS);
    pair.conns += HEARERS;
    pair_end();
    ck_assert_uint_eq(t_stats_sum("frames_crowded"), 0);
    ck_assert_uint_eq(t_stats_sum("frames_dropped_bad_mark"), 0);
}
END_TEST


/* ---- Who goes while others ask ---- */

/* The forger is the peer at this address. */
static t_address_t forger_is_peer(uint64_t uuid)
{
    t_address_t to = pair.end[1]->address;
    dq_iface_info_t info;

    memcpy(&info, to.iface, sizeof(info));
    info.who = forger_address(uuid);
    memcpy(to.iface, &info, sizeof(info));
    return to;
}


static void forger_says_gone(uint64_t uuid, uint32_t peer_epoch,
                             uint64_t peer_mark)
{
    dq_frame_t frame = forger_frame(DQ_FRAME_GONE);

    frame.src        = forger_address(uuid);
    frame.first      = frame.epoch;
    frame.peer_epoch = peer_epoch;
    frame.peer_mark  = peer_mark;
    forger_say(&frame);
}


/* A peer that goes and has heard our first REQ ends it, and does not leave it to
 * CONN_TIMEOUT. Who has not heard it ends nothing. */
START_TEST(test_gone_before_an_answer)
{
    t_address_t to;
    dq_frame_t req;
    t_link_t *link;
    unsigned i;

    pair_open_with("CONN_TIMEOUT=3600s");
    t_expect_loss();
    t_expect_log("the peer has ended the connection");
    to   = forger_is_peer(FORGER + 1);
    link = t_link_open(pair.end[0], &to, 3);
    req  = forger_hear_kind(DQ_FRAME_REQ);

    forger_says_gone(FORGER + 1, 0, 0);
    forger_says_gone(FORGER + 1, 0, req.mark);
    forger_says_gone(FORGER + 1, req.epoch + 1, req.mark);
    forger_says_gone(FORGER + 1, req.epoch, 0);
    forger_says_gone(FORGER + 1, req.epoch, req.mark ^ 1);
    forger_settle(FORGER);
    for (i = 0; i < 1000; i++) {
        (void)t_try_send(link, T_BCOPY, 100); /* some are held */
        t_progress_or_yield();
    }
    ck_assert_uint_eq(pair.end[0]->errors, 0);
    ck_assert_uint_eq(t_live_sum("frames_dropped_bad_mark"), 2);

    forger_says_gone(FORGER + 1, req.epoch, req.mark);
    while (pair.end[0]->errors == 0) { /* it says so when it is used again */
        (void)t_try_send(link, T_BCOPY, 100);
        t_progress_or_yield();
    }
    ck_assert_int_eq(pair.end[0]->error, UCS_ERR_ENDPOINT_TIMEOUT);
    t_link_close(link);
    forger_settle(FORGER);
    forger_close();
}
END_TEST


/* Both have asked, neither has been answered, and one goes: its GONE names what it
 * has heard. */
START_TEST(test_gone_while_both_ask)
{
    uint64_t low = 1; /* so the other does not yield */
    t_address_t to;
    dq_frame_t frame, gone;
    uint64_t before;
    t_end_t *other;

    pair_open();
    other = t_end_open("CONN_TIMEOUT=3600s");
    memcpy(&forger.victim, other->address.iface, sizeof(forger.victim));
    to = forger_is_peer(low);
    (void)t_link_open(other, &to, 3);
    (void)forger_hear_kind(DQ_FRAME_REQ);

    before           = t_live_sum("frames_dup");
    frame            = forger_frame(DQ_FRAME_REQ);
    frame.src        = forger_address(low);
    frame.first      = frame.epoch;
    frame.peer_epoch = 0;
    forger_say(&frame);
    T_WAIT(t_live_sum("frames_dup") > before);
    t_end_close(other);
    gone = forger_hear_kind(DQ_FRAME_GONE);
    ck_assert_uint_eq(gone.peer_epoch, frame.epoch);
    ck_assert_uint_eq(gone.peer_mark, frame.mark);
    forger_close();
}
END_TEST


/* A first REQ, or one after a loss, that comes while the interface closes. */
START_TEST(test_asked_while_it_closes)
{
    dq_frame_t frame, answer;
    t_end_t *other;
    t_hold_t hold;

    pair_open();
    other = t_end_open("");
    memcpy(&forger.victim, other->address.iface, sizeof(forger.victim));
    frame            = forger_frame(DQ_FRAME_REQ);
    frame.src        = forger_address(FORGER + 1);
    frame.peer_epoch = _i;
    t_hold_begin(&hold);
    forger_say(&frame);
    t_end_close(other);
    answer = forger_hear(frame.mark);
    t_hold_end(&hold);
    ck_assert_int_eq(answer.kind, (_i == 0) ? DQ_FRAME_GONE : DQ_FRAME_REFUSE);
    ck_assert_uint_eq(answer.peer_epoch, frame.epoch);
    forger_close();
}
END_TEST


/* ---- Data that comes before the RTU ---- */

typedef struct {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
} stream_qp_t;


static void qp_open(stream_qp_t *rc)
{
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap     = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
                    .max_recv_sge = 1},
    };
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

    rc->cq       = ibv_create_cq(forger.context, 2, NULL, NULL, 0);
    init.send_cq = init.recv_cq = rc->cq;
    rc->qp       = ibv_create_qp(forger.pd, &init);
    ck_assert(rc->cq != NULL && rc->qp != NULL);
    ck_assert_int_eq(ibv_modify_qp(rc->qp, &attr, IBV_QP_STATE |
                                   IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                   IBV_QP_ACCESS_FLAGS), 0);
}


static void qp_connect(stream_qp_t *rc, const dq_frame_t *rep)
{
    struct ibv_qp_attr attr = {
        .qp_state    = IBV_QPS_RTR,
        .path_mtu    = IBV_MTU_1024,
        .dest_qp_num = rep->qpn,
        .rq_psn      = rep->psn,
        .ah_attr     = {.port_num = 1, .dlid = forger.port.lid,
                        .is_global = forger.port.is_eth},
    };

    memcpy(attr.ah_attr.grh.dgid.raw, forger.port.gid, sizeof(forger.port.gid));
    ck_assert_int_eq(ibv_modify_qp(rc->qp, &attr, IBV_QP_STATE | IBV_QP_AV |
                                   IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                   IBV_QP_MIN_RNR_TIMER), 0);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS,
        .sq_psn   = forger_frame(DQ_FRAME_REQ).psn,
        .timeout  = 14,
    };
    ck_assert_int_eq(ibv_modify_qp(rc->qp, &attr, IBV_QP_STATE |
                                   IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
                                   IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                   IBV_QP_MAX_QP_RD_ATOMIC), 0);
}


/* What is no message, but arrives. */
static void qp_send(stream_qp_t *rc)
{
    struct ibv_send_wr *bad_wr;
    struct ibv_sge sge = {
        .addr   = (uintptr_t)&forger.memory[SLOT * RECVS],
        .length = sizeof(dq_msg_hdr_t),
        .lkey   = forger.mr->lkey,
    };
    struct ibv_send_wr wr = {
        .sg_list    = &sge,
        .num_sge    = 1,
        .opcode     = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
    };

    memset(&forger.memory[SLOT * RECVS], 0, sizeof(dq_msg_hdr_t));
    ck_assert_int_eq(ibv_post_send(rc->qp, &wr, &bad_wr), 0);
    (void)forger_wait_for(rc->cq);
}


static void qp_close(stream_qp_t *rc)
{
    ck_assert_int_eq(ibv_destroy_qp(rc->qp), 0);
    ck_assert_int_eq(ibv_destroy_cq(rc->cq), 0);
}


/* It takes the number of a queue pair and no mark, so it gives nobody a place. The
 * RTU does, when it comes. */
START_TEST(test_crowd_that_sends)
{
    dq_frame_t frame, rep;
    stream_qp_t rc;
    unsigned i;

    pair_open();
    t_expect_bad_messages();
    qp_open(&rc);
    frame            = forger_frame(DQ_FRAME_REQ);
    frame.src        = forger_address(FORGER);
    frame.peer_epoch = 0;
    frame.qpn        = rc.qp->qp_num;
    forger_say(&frame);
    rep = forger_hear(frame.mark);
    for (i = 1; i < CROWD_MAX; i++) {
        ck_assert(stranger_says(i));
    }

    qp_connect(&rc, &rep);
    qp_send(&rc);
    T_WAIT(t_live_sum("rx_dropped_bad_kind") == 1);
    for (i = 0; i < 10; i++) {
        forger_settle(FORGER - 1); /* the handshake's thread has its turn */
    }
    ck_assert_uint_eq(t_live_sum("conns_up"), 2);
    ck_assert(!stranger_says(CROWD_MAX));

    stranger_answers(0, &rep, rep.mark);
    T_WAIT(t_live_sum("conns_up") == 3);
    ck_assert(stranger_says(CROWD_MAX));
    stranger_goes(0, &rep);
    qp_close(&rc);
    pair.conns++;
    pair_end();
}
END_TEST


/* Who begins a connection and says no more is given up. What it has got goes
 * back: the queue pair, RECVs, the memory. */
START_TEST(test_beginners)
{
    unsigned i;

    pair_open_with("CONN_TIMEOUT=3s");
    for (i = 1; i <= BEGINNERS; i++) {
        stranger_says(i);
    }
    ck_assert_uint_eq(t_live_sum("conns"), 2 + BEGINNERS);
    T_WAIT(t_live_sum("conns_closed") == BEGINNERS);
    pair_end();
}
END_TEST


/* Who asks from where nobody is has no connection, and half of the time at most of
 * the thread that answers others. */
START_TEST(test_from_nowhere)
{
    uint64_t before;
    dq_frame_t frame;
    double begin, taken;
    t_stream_t stream;
    t_end_t *other;
    unsigned i;

    pair_open();
    before = t_live_sum("frames_rx");
    begin  = t_seconds();
    for (i = 1; i <= STRANGERS; i++) {
        frame            = forger_frame(DQ_FRAME_REQ);
        frame.src        = forger_address(FORGER + i);
        frame.port.lid   = SLOW_LID;
        frame.peer_epoch = i % 2;
        forger_say(&frame);
    }
    T_WAIT(t_live_sum("frames_rx") == before + STRANGERS);
    other = t_end_open("");
    (void)t_link_up(pair.end[0], other, 3, &stream);
    taken = __atomic_load_n(&slow_ahs, __ATOMIC_RELAXED) * SLOW_MS * 1e-3;
    ck_assert_double_gt(taken, 0);
    ck_assert_double_le(taken, (t_seconds() - begin) / 2 * CLOCKS_DIFFER +
                               SLOW_MS * 1e-3);
    pair_talk(100);
    forger_close();
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("conns"), 4);
    ck_assert_uint_gt(t_stats_sum("frames_unheard"), 0);
}
END_TEST


/* Nobody is a peer in our own name. */
START_TEST(test_in_our_own_name)
{
    dq_frame_t frame;
    unsigned kind;

    pair_open();
    for (kind = 0; kind < DQ_FRAME_LAST; kind++) {
        frame            = forger_frame(kind);
        frame.src        = forger.victim;
        frame.peer_epoch = 0;
        forger_say(&frame);
    }
    pair_close(0, DQ_FRAME_LAST);
}
END_TEST


/* Nor where we are our own peer, whose attempts are easily guessed. */
START_TEST(test_in_our_own_name_to_ourselves)
{
    t_stream_t stream;
    dq_frame_t frame;
    unsigned kind, epoch;
    t_link_t *link;

    pair_open();
    pair.conns++;
    link = t_link_up(pair.end[0], pair.end[0], 3, &stream);
    for (epoch = 1; epoch < GUESSES; epoch++) {
        for (kind = 0; kind < DQ_FRAME_LAST; kind++) {
            frame            = forger_frame(kind);
            frame.src        = forger.victim;
            frame.epoch      = epoch;
            frame.peer_epoch = epoch;
            forger_say(&frame);
        }
    }
    t_send(link, T_BCOPY, 100);
    T_WAIT(stream.got == 2);
    pair_close(0, (GUESSES - 1) * DQ_FRAME_LAST);
}
END_TEST


/* ---- What is said of them ---- */

static const struct {
    const char *plan;  /* what the device does from then on                  */
    int        does;   /* the same, here                                     */
    unsigned   times;
    int        has_conn; /* that is over then                                */
    const char *words; /* in each line                                       */
} causes[] = {
    {"verb name=create_ah", 0, 1000, 0, "ibv_create_ah"},
    {"verb name=reg_mr", 0, 1000, 1, "ibv_reg_mr"},
    {NULL, NO_RTR, 1000, 1, "ibv_modify_qp to RTR"},
    {NULL, OTHER_TIMERS, 60, 1, "keeps an RNR timer of"},
};

enum { CAUSES = sizeof(causes) / sizeof(causes[0]) };

/* Another stranger's first word, as often as it takes to have a connection; once
 * if there is none to be had. */
static void stranger_begins(unsigned index, int has_conn)
{
    dq_frame_t frame = forger_frame(DQ_FRAME_REQ);
    uint64_t before, heard;

    if (has_conn) {
        while (!stranger_says(index)) {
        }
        return;
    }
    frame.src        = forger_address(FORGER + index);
    frame.peer_epoch = 0;
    do {
        before = unheard();
        heard  = t_live_sum("frames_rx");
        forger_say(&frame);
        T_WAIT(t_live_sum("frames_rx") > heard);
    } while (unheard() > before);
}


/* No more of them than seconds since then. */
static void check_lines(const char *words, double begin)
{
    unsigned said = t_log_count(words); /* first: time goes on */

    ck_assert_uint_gt(said, 0);
    ck_assert_uint_le(said, (t_ucx_seconds() - begin) * CLOCKS_DIFFER + 1);
}


/* The next one is said. */
static void wait_for_a_line(void)
{
    double begin = t_ucx_seconds();

    T_WAIT(t_ucx_seconds() - begin > CLOCKS_DIFFER);
}


/* However many there are, a line a second says it, and how many there were. */
START_TEST(test_lines)
{
    const char *words = causes[_i].words;
    double begin;
    unsigned i;

    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS_LOG", "/dev/null", 1), 0);
    pair_open_with("CONN_TIMEOUT=3s");
    t_expect_log(words);
    if (causes[_i].plan != NULL) {
        t_plan_by_command(causes[_i].plan);
    }
    __atomic_store_n(&device_does, causes[_i].does, __ATOMIC_RELAXED);
    begin = t_ucx_seconds();
    for (i = 1; i <= causes[_i].times; i++) {
        stranger_begins(i, causes[_i].has_conn);
    }
    T_WAIT(t_log_count(words) > 0);
    check_lines(words, begin);

    wait_for_a_line();
    stranger_begins(i, causes[_i].has_conn);
    T_WAIT(t_log_count(words) + t_log_sum(" more like it before") ==
           causes[_i].times + 1);
    __atomic_store_n(&device_does, 0, __ATOMIC_RELAXED);
    t_plan_by_command("verb name=resize_cq"); /* nobody does */
    if (causes[_i].has_conn) {
        T_WAIT(t_live_sum("conns_closed") == causes[_i].times + 1);
    }
    pair_end();
}
END_TEST


/* Strangers for whom the device has no queue pair leave nothing behind, not even a line
 * each. What there was before closes for them while it is idle, and comes back. */
START_TEST(test_strangers_without_qp)
{
    static const char told[] = " makes no more queue pairs now";
    unsigned i;

    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS_LOG", "/dev/null", 1), 0);
    pair_open();
    t_expect_log(told);
    t_plan_by_command("verb name=create_qp");
    for (i = 1; i <= CROWD; i++) {
        stranger_begins(i, 0);
    }
    T_WAIT(t_live_sum("qps_refused") >= CROWD);
    T_WAIT(t_log_count(told) == 1);
    ck_assert_uint_eq(t_live_sum("conns"), pair.conns);
    t_plan_by_command("verb name=resize_cq"); /* nobody does */
    pair_end();
}
END_TEST


/* A stranger's queue pair, which is lost again and again: it says so, hears our
 * REQ, and answers that. Its uuid is the lower one, so that it is always we who
 * ask. */
static void loser_says(dq_frame_kind_t kind, uint32_t epoch,
                       const dq_frame_t *victim)
{
    dq_frame_t frame = forger_frame(kind);

    frame.src        = forger_address(1);
    frame.epoch      = frame.first + epoch;
    frame.mark       = MARK + epoch;
    frame.peer_epoch = victim->epoch;
    frame.peer_mark  = victim->mark;
    frame.done       = epoch; /* so that it is not in vain */
    forger_say(&frame);
}


static dq_frame_t loser_loses(uint32_t epoch, const dq_frame_t *victim)
{
    uint64_t before = t_live_sum("recoveries");
    dq_frame_t req;

    loser_says(DQ_FRAME_REQ, epoch, victim);
    do {
        req = forger_hear_kind(DQ_FRAME_REQ);
    } while (req.epoch == victim->epoch);
    loser_says(DQ_FRAME_REP, epoch + 1, &req);
    T_WAIT(t_live_sum("recoveries") > before);
    return req;
}


/* Of a connection that nobody here wants. */
START_TEST(test_lines_of_losses)
{
    static const char lost[] = "; lost, connecting again";
    static const char back[] = " daqiri: back, with nowhere ";
    const dq_frame_t nobody  = {.epoch = 0};
    dq_frame_t victim;
    unsigned i;
    double begin;

    pair_open_with("CONN_TIMEOUT=3600s RECOVERY_TIMEOUT=3600s");
    t_expect_losses_of_qps();
    loser_says(DQ_FRAME_REQ, 0, &nobody);
    victim = forger_hear(MARK);
    loser_says(DQ_FRAME_RTU, 0, &victim);
    T_WAIT(t_live_sum("conns_up") == 3);

    begin = t_ucx_seconds();
    for (i = 0; i < LOSSES; i++) {
        victim = loser_loses(2 * i + 1, &victim);
    }
    check_lines(lost, begin);
    check_lines(back, begin);
    wait_for_a_line();
    victim = loser_loses(2 * i + 1, &victim);
    T_WAIT(t_log_count(lost) + t_log_count(back) +
           t_log_sum(" more like it before") == 2 * (LOSSES + 1));
    pair.conns++;
    pair_end();
    ck_assert_uint_eq(t_stats_sum("qp_failures"), LOSSES + 1);
}
END_TEST


/* Their device is asked whether it is there, and does not answer. */
START_TEST(test_lines_of_stalls)
{
    static const char words[] = "nothing has completed for ";
    dq_frame_t rep[SILENT + 1];
    double begin;
    unsigned i;

    pair_open_with("CONN_TIMEOUT=3600s KEEPALIVE=200ms SQ_STALL_TIMEOUT=10ms "
                   "TIMEOUT=4s RETRY_COUNT=6");
    t_expect_losses_of_qps();
    t_expect_log(words);
    begin = t_ucx_seconds();
    for (i = 1; i <= SILENT; i++) {
        ck_assert(stranger_asks(i));
        rep[i] = forger_hear(MARK + i);
        stranger_answers(i, &rep[i], rep[i].mark);
    }
    T_WAIT(t_live_sum("stalls") >= SILENT);
    check_lines(words, begin);
    for (i = 1; i <= SILENT; i++) {
        stranger_goes(i, &rep[i]);
    }
    pair.conns += SILENT;
    pair_end();
}
END_TEST


/* A message for which the program has no handler. */
START_TEST(test_lines_of_messages)
{
    static const char words[] = "with active message id 9, for which there is "
                                "no handler";
    t_link_t *link;
    double begin;
    unsigned i;

    pair_open();
    t_expect_log(words);
    begin = t_ucx_seconds();
    link  = t_link_open(pair.end[1], &pair.end[0]->address, 9);
    for (i = 0; i < CROWD; i++) {
        t_send(link, T_BCOPY, 100);
    }
    T_WAIT(t_live_sum("am_unhandled") == CROWD);
    check_lines(words, begin);
    wait_for_a_line();
    t_send(link, T_BCOPY, 100);
    T_WAIT(t_log_count(words) + t_log_sum(" more like it before") ==
           CROWD + 1);
    pair_close(0, 0);
}
END_TEST


/* ---- RECVs that the device refuses ---- */

static const struct {
    const char *plan;
    unsigned   refused; /* RECVs, at least; not calls                        */
} recvs[] = {
    /* As often as there are RECVs, of those that datagrams have used; they are
     * offered again, which is refused as well, so some are always left. */
    {"post qp=ud.0 queue=recv n=257 every=1 times=256", 1},
    /* all but one when the interface opens */
    {"post qp=ud.0 queue=recv times=255", 255},
};


/* One that is not taken is not lost: datagrams arrive, however many. */
START_TEST(test_recvs_refused)
{
    uint64_t before;
    unsigned i;

    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS", recvs[_i].plan, 1), 0);
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS_LOG", "/dev/null", 1), 0);
    pair_open();
    before = t_live_sum("frames_rx");
    for (i = 0; i < 300; i++) {
        forger_send(1); /* no frame */
        T_WAIT(t_live_sum("frames_rx") > before + i);
    }
    pair_close(0, 0);
    ck_assert_uint_ge(t_stats_sum("ud_refused"), recvs[_i].refused);
    ck_assert_uint_eq(t_stats_sum("frames_dropped_short"), 300);
}
END_TEST


static Suite *suite_forged(void)
{
    Suite *suite   = suite_create("forged");
    TCase *tcase   = t_uct_case("frames");
    TCase *cookies = t_uct_case("cookies");

    tcase_add_test(tcase, test_without_the_cookie);
    tcase_add_test(tcase, test_in_the_peers_name);
    tcase_add_test(tcase, test_in_the_peers_name_from_elsewhere);
    tcase_add_test(tcase, test_of_old_epochs);
    tcase_add_test(tcase, test_of_other_interfaces);
    tcase_add_test(tcase, test_noise);
    tcase_add_test(tcase, test_other_version);
    tcase_add_test(tcase, test_longer_than_a_frame);
    tcase_add_test(tcase, test_longer_than_a_frame_while_others_recover);
    tcase_add_loop_test(tcase, test_address_wins, 0, PLACES);
    tcase_add_test(tcase, test_address_wins_at_once);
    tcase_add_test(tcase, test_strangers);
    tcase_add_test(tcase, test_crowd);
    tcase_add_test(tcase, test_crowd_that_asks_again);
    tcase_add_test(tcase, test_crowd_that_guesses);
    tcase_add_test(tcase, test_crowd_that_hears);
    tcase_add_test(tcase, test_crowd_that_sends);
    tcase_add_test(tcase, test_gone_before_an_answer);
    tcase_add_test(tcase, test_gone_while_both_ask);
    tcase_add_loop_test(tcase, test_asked_while_it_closes, 0, 2);
    tcase_add_test(tcase, test_beginners);
    tcase_add_test(tcase, test_from_nowhere);
    tcase_add_test(tcase, test_in_our_own_name);
    tcase_add_test(tcase, test_in_our_own_name_to_ourselves);
    tcase_add_loop_test(tcase, test_lines, 0, CAUSES);
    tcase_add_test(tcase, test_lines_of_losses);
    tcase_add_test(tcase, test_lines_of_stalls);
    tcase_add_test(tcase, test_strangers_without_qp);
    tcase_add_test(tcase, test_lines_of_messages);
    tcase_add_loop_test(tcase, test_recvs_refused, 0,
                        sizeof(recvs) / sizeof(recvs[0]));
    suite_add_tcase(suite, tcase);

    tcase_add_test(cookies, test_cookies_are_drawn);
    tcase_add_test(cookies, test_draw_is_interrupted);
    tcase_add_test(cookies, test_no_draw);
    suite_add_tcase(suite, cookies);
    return suite;
}

T_UCT_MAIN(suite_forged)
