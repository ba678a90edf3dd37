/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a verbs device costs beside what the memory of the machine costs, two
 * processes on CPUs 0 and 1, in turns: `device ROUNDS` prints a name and a
 * figure for each thing that it measures in each round. contrib/bench compiles
 * it, runs it on softverbs and knows the names.
 */
#define _GNU_SOURCE
#include "must.h"

#include <infiniband/verbs.h>

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LONG     = 1 << 20, /* bytes of a long message */
    RING     = 128 << 10,
    CHUNK    = 16 << 10,
    DEPTH    = 512,
    SIGNAL   = 32,      /* every so many short messages ask for a completion */
    SLOTS    = 1024,
    MANY_QPS = 4000,
    FEW_QPS  = 16
};

struct slot {
    _Alignas(64) _Atomic uint64_t number;
    uint64_t                      payload;
};

/* What the two processes share besides the device. */
struct shared {
    _Alignas(64) _Atomic uint64_t ball;
    _Alignas(64) _Atomic uint64_t arrived[2];
    _Alignas(64) _Atomic uint64_t consumed;
    struct {
        uint32_t qpn, long_qpn, rkey;
        uint64_t buf;
        pid_t    pid;
    } side[2];
    _Alignas(64) _Atomic uint64_t head;
    _Alignas(64) _Atomic uint64_t tail;
    struct slot slots[SLOTS];
    struct slot answers[SLOTS];
    uint8_t     ring[RING];
};

static struct shared *shared;
static int me; /* 0 or 1 */

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_qp *qp, *long_qp;
static struct ibv_mr *mr;
static uint8_t *buf;

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static void pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    MUST(sched_setaffinity(0, sizeof(set), &set) == 0);
}

static void tell(const char *name, double value)
{
    if (me == 0) {
        printf("%s %.4g\n", name, value);
    }
}

static void meet(void)
{
    uint64_t turn = ++shared->arrived[me];

    while (shared->arrived[1 - me] < turn) {
        sched_yield();
    }
}

/* ---- the device ---- */

static void open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    MUST((list != NULL) && (list[0] != NULL));
    context = ibv_open_device(list[0]);
    MUST(context != NULL);
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(context);
    MUST(pd != NULL);
}

static struct ibv_qp *make_qp(struct ibv_cq *sends, struct ibv_cq *recvs,
                              unsigned depth)
{
    struct ibv_qp_init_attr init = {
        .send_cq = sends, .recv_cq = recvs, .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1,
                .max_recv_sge = 1, .max_inline_data = 8}
    };
    struct ibv_qp *made = ibv_create_qp(pd, &init);

    MUST(made != NULL);
    return made;
}

static void connect_qp(struct ibv_qp *which, uint32_t to)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
    };

    MUST(ibv_modify_qp(which, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                                     IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = to,
        .max_dest_rd_atomic = 1, .min_rnr_timer = 1,
        .ah_attr = {.dlid = 1, .port_num = 1}
    };
    MUST(ibv_modify_qp(which, &attr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                               IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC |
                               IBV_QP_MIN_RNR_TIMER) == 0);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7,
        .max_rd_atomic = 1
    };
    MUST(ibv_modify_qp(which, &attr,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                               IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                               IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static void open_pair(void)
{
    open_device();
    send_cq = ibv_create_cq(context, 2 * DEPTH, NULL, NULL, 0);
    recv_cq = ibv_create_cq(context, 2 * DEPTH, NULL, NULL, 0);
    MUST((send_cq != NULL) && (recv_cq != NULL));
    /* one for each kind of message: softverbs answers a SEND at once if it
     * fits the shortest RECV that the QP has ever posted */
    qp      = make_qp(send_cq, recv_cq, DEPTH);
    long_qp = make_qp(send_cq, recv_cq, 16);
    MUST(posix_memalign((void**)&buf, 4096, 2 * LONG) == 0);
    memset(buf, 1, 2 * LONG);
    mr = ibv_reg_mr(pd, buf, 2 * LONG,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                            IBV_ACCESS_REMOTE_READ);
    MUST(mr != NULL);
    shared->side[me].qpn      = qp->qp_num;
    shared->side[me].long_qpn = long_qp->qp_num;
    shared->side[me].rkey     = mr->rkey;
    shared->side[me].buf      = (uintptr_t)buf;
    shared->side[me].pid      = getpid();
    meet();
    connect_qp(qp, shared->side[1 - me].qpn);
    connect_qp(long_qp, shared->side[1 - me].long_qpn);
    meet();
}

static void post_recv_on(struct ibv_qp *which, size_t length)
{
    struct ibv_sge sge    = {(uintptr_t)buf + LONG, length, mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr *bad;

    MUST(ibv_post_recv(which, &wr, &bad) == 0);
}

static void post_on(struct ibv_qp *which, enum ibv_wr_opcode opcode,
                    size_t length, unsigned flags)
{
    struct ibv_sge sge    = {(uintptr_t)buf, length, mr->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = flags,
        .wr.rdma = {.remote_addr = shared->side[1 - me].buf + LONG,
                    .rkey = shared->side[1 - me].rkey}
    };
    struct ibv_send_wr *bad;

    MUST(ibv_post_send(which, &wr, &bad) == 0);
}

static int take(struct ibv_cq *cq, int most)
{
    struct ibv_wc wc[64];
    int i, n;

    n = ibv_poll_cq(cq, (most < 64) ? most : 64, wc);
    for (i = 0; i < n; ++i) {
        MUST(wc[i].status == IBV_WC_SUCCESS);
    }
    return n;
}

static void take_one(struct ibv_cq *cq)
{
    while (take(cq, 1) == 0) {
    }
}

/* ---- memory alone ---- */

static void line_latency(unsigned count)
{
    double start;
    uint64_t i;

    shared->ball = 0;
    meet();
    start = now();
    for (i = 0; i < count; ++i) {
        while (atomic_load_explicit(&shared->ball, memory_order_acquire) !=
               2 * i + me) {
        }
        atomic_store_explicit(&shared->ball, 2 * i + me + 1,
                              memory_order_release);
    }
    tell("line_ns", (now() - start) / count / 2 * 1e9);
    meet();
}

/* What a message in a queue takes at least: there and back, each a line of its
 * own that the other side polls before it is written, and no other work. The
 * line above is written by whoever has just read it. */
static void queue_latency(unsigned count)
{
    struct slot *const lines[] = {shared->slots, shared->answers};
    uint64_t i, sum = 0;
    struct slot *slot;
    double start;

    if (me == 0) {
        memset(shared->slots, 0, sizeof(shared->slots));
        memset(shared->answers, 0, sizeof(shared->answers));
    }
    meet();
    start = now();
    for (i = 0; i < 2 * (uint64_t)count; ++i) {
        slot = &lines[i % 2][i / 2 % SLOTS];
        if (i % 2 == (uint64_t)me) {
            slot->payload = i / 2;
            atomic_store_explicit(&slot->number, i / 2 + 1,
                                  memory_order_release);
            continue;
        }
        while (atomic_load_explicit(&slot->number, memory_order_acquire) !=
               i / 2 + 1) {
        }
        sum += slot->payload;
    }
    tell("queue_ns", (now() - start) / count / 2 * 1e9);
    MUST(sum == (uint64_t)count * (count - 1) / 2);
    meet();
}

/* One writer, one reader, a line for each message of 8 bytes. */
static void queue_rate(unsigned count)
{
    uint64_t i, sum = 0, free_until = SLOTS;
    struct slot *slot;
    double start;

    if (me == 0) {
        memset(shared->slots, 0, sizeof(shared->slots));
        shared->consumed = 0;
    }
    meet();
    start = now();
    for (i = 0; i < count; ++i) {
        slot = &shared->slots[i % SLOTS];
        if (me == 0) {
            while (i == free_until) {
                free_until = SLOTS + atomic_load_explicit(
                                             &shared->consumed,
                                             memory_order_acquire);
            }
            slot->payload = i;
            atomic_store_explicit(&slot->number, i + 1, memory_order_release);
            continue;
        }
        while (atomic_load_explicit(&slot->number, memory_order_acquire) !=
               i + 1) {
        }
        sum += slot->payload;
        if (i % 64 == 63) {
            atomic_store_explicit(&shared->consumed, i + 1,
                                  memory_order_release);
        }
    }
    MUST((me == 0) || (sum == (uint64_t)count * (count - 1) / 2));
    meet();
    tell("queue_mps", count / (now() - start) / 1e6);
}

static void copy_bandwidth(unsigned count)
{
    struct iovec local  = {buf, LONG};
    struct iovec remote = {(void*)(uintptr_t)(shared->side[1 - me].buf + LONG),
                           LONG};
    double start;
    unsigned i;

    meet();
    if (me == 0) {
        start = now();
        for (i = 0; i < count; ++i) {
            memcpy(buf + LONG, buf, LONG);
            __asm__ __volatile__("" : : "r"(buf) : "memory");
        }
        tell("memcpy_gbs", (double)count * LONG / (now() - start) / 1e9);
        start = now();
        for (i = 0; i < count; ++i) {
            MUST(process_vm_writev(shared->side[1].pid, &local, 1, &remote, 1,
                                   0) == LONG);
        }
        tell("vm_write_gbs", (double)count * LONG / (now() - start) / 1e9);
    }
    meet();
}

/* What a SEND must do that knows nothing of its RECV: into a ring of the size
 * that softverbs has, and out of it. */
static void ring_bandwidth(unsigned count)
{
    const uint64_t total = (uint64_t)count * LONG;
    uint64_t pos;
    double start;

    shared->head = 0;
    shared->tail = 0;
    meet();
    start = now();
    for (pos = 0; pos < total; pos += CHUNK) {
        if (me == 0) {
            while (pos + CHUNK - shared->head > RING) {
            }
            memcpy(shared->ring + pos % RING, buf + pos % LONG, CHUNK);
            atomic_store_explicit(&shared->tail, pos + CHUNK,
                                  memory_order_release);
        } else {
            while (shared->tail < pos + CHUNK) {
            }
            memcpy(buf + LONG + pos % LONG, shared->ring + pos % RING, CHUNK);
            atomic_store_explicit(&shared->head, pos + CHUNK,
                                  memory_order_release);
        }
    }
    meet();
    tell("ring_gbs", total / (now() - start) / 1e9);
}

/* ---- the same through verbs ---- */

/* As raw as line_latency(): the requests are made beforehand, and each side
 * answers before it does anything else. There are RECVs enough for that. */
static void send_latency(const char *name, double unit, unsigned count)
{
    struct ibv_sge from     = {(uintptr_t)buf, 8, mr->lkey};
    struct ibv_sge to       = {(uintptr_t)buf + LONG, 8, mr->lkey};
    struct ibv_send_wr send = {.sg_list = &from, .num_sge = 1,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_INLINE};
    struct ibv_recv_wr recv = {.sg_list = &to, .num_sge = 1};
    struct ibv_send_wr *bad_send;
    struct ibv_recv_wr *bad_recv;
    double start;
    unsigned i;

    for (i = 0; i < 64; ++i) {
        post_recv_on(qp, 8);
    }
    meet();
    start = now();
    if (me == 0) {
        MUST(ibv_post_send(qp, &send, &bad_send) == 0);
    }
    for (i = 0; i < count; ++i) {
        send.send_flags = IBV_SEND_INLINE |
                          ((i % 16) ? 0 : IBV_SEND_SIGNALED);
        take_one(recv_cq);
        if ((me == 1) || (i + 1 < count)) {
            MUST(ibv_post_send(qp, &send, &bad_send) == 0);
        }
        if (i + 64 < count) {
            MUST(ibv_post_recv(qp, &recv, &bad_recv) == 0);
        }
        if (i % 16 == 0) {
            take_one(send_cq);
        }
    }
    tell(name, (now() - start) / count / 2 * unit);
    meet();
    /* slots are free when a later completion is polled */
    post_on(qp, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED);
    take_one(send_cq);
    meet();
}

static void send_rate(unsigned count)
{
    unsigned posted = 0, done = 0, got = 0, i, n;
    double start;

    for (i = 0; (me == 1) && (i < DEPTH); ++i) {
        post_recv_on(qp, 8);
    }
    meet();
    start = now();
    while ((me == 0) && (done < count)) {
        for (; (posted < count) && (posted - done < DEPTH - SIGNAL); ++posted) {
            post_on(qp, IBV_WR_SEND, 8,
                    IBV_SEND_INLINE |
                            (((posted + 1) % SIGNAL) ? 0 : IBV_SEND_SIGNALED));
        }
        done += take(send_cq, 64) * SIGNAL;
    }
    while ((me == 1) && (got < count)) {
        n = take(recv_cq, 64);
        for (i = 0; i < n; ++i) {
            if (got + i + DEPTH < count) {
                post_recv_on(qp, 8);
            }
        }
        got += n;
    }
    meet();
    tell("send_mps", count / (now() - start) / 1e6);
    meet();
}

static void long_bandwidth(const char *name, enum ibv_wr_opcode opcode,
                           unsigned count)
{
    unsigned posted = 0, done = 0, got = 0, n, i;
    double start;

    for (i = 0; (me == 1) && (opcode == IBV_WR_SEND) && (i < 16); ++i) {
        post_recv_on(long_qp, LONG);
    }
    meet();
    start = now();
    while ((me == 0) && (done < count)) {
        for (; (posted < count) && (posted - done < 4); ++posted) {
            post_on(long_qp, opcode, LONG, IBV_SEND_SIGNALED);
        }
        done += take(send_cq, 4);
    }
    while ((me == 1) && (opcode == IBV_WR_SEND) && (got < count)) {
        n = take(recv_cq, 4);
        for (i = 0; i < n; ++i) {
            if (got + i + 16 < count) {
                post_recv_on(long_qp, LONG);
            }
        }
        got += n;
    }
    tell(name, (double)count * LONG / (now() - start) / 1e9);
    meet();
}

/* ---- many QPs, in one process ---- */

/* Bytes of our segment that are taken; the slot is in the QP numbers. */
static double segment_bytes(void)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof(path), "/dev/shm/softverbs-%u.%u",
             (unsigned)geteuid(), qp->qp_num >> 14);
    MUST(stat(path, &st) == 0);
    return st.st_blocks * 512.0;
}

static double private_bytes(void)
{
    char line[128];
    double kib   = 0;
    FILE *status = fopen("/proc/self/status", "r");

    MUST(status != NULL);
    while (fgets(line, sizeof(line), status) != NULL) {
        (void)!sscanf(line, "RssAnon: %lf", &kib);
    }
    fclose(status);
    return kib * 1024;
}

static void many_polls(struct ibv_cq *cq, struct ibv_qp *used, unsigned qps)
{
    const unsigned count = 200000;
    char name[32];
    double start;
    unsigned i;

    for (i = 0; i < 2000; ++i) {
        MUST(take(cq, 16) == 0);
    }
    start = now();
    for (i = 0; i < count; ++i) {
        MUST(take(cq, 16) == 0);
    }
    snprintf(name, sizeof(name), "poll_%u_ns", qps);
    tell(name, (now() - start) / count * 1e9);

    start = now();
    for (i = 0; i < count; ++i) {
        post_recv_on(used, 8);
        post_on(used, IBV_WR_SEND, 8, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
        take_one(cq);
        take_one(send_cq);
    }
    snprintf(name, sizeof(name), "turn_%u_ns", qps);
    tell(name, (now() - start) / count * 1e9);
}

/* Destroys what it made, so that nothing of it is in the way of others. */
static void many_qps(unsigned qps)
{
    static struct ibv_qp *made[MANY_QPS];
    static bool told;
    double segment, private;
    struct ibv_cq *cq;
    unsigned i;

    cq = ibv_create_cq(context, 16 * MANY_QPS, NULL, NULL, 0);
    MUST(cq != NULL);
    segment = segment_bytes();
    private = private_bytes();
    for (i = 0; i < qps; ++i) {
        made[i] = make_qp(send_cq, cq, 2);
        connect_qp(made[i], made[i]->qp_num);
    }
    if ((qps == MANY_QPS) && !told) {
        told = true; /* later rounds find the heap grown already */
        tell("qp_shared_bytes", (segment_bytes() - segment) / qps);
        tell("qp_private_bytes", (private_bytes() - private) / qps);
    }
    many_polls(cq, made[qps / 2], qps);
    for (i = 0; i < qps; ++i) {
        MUST(ibv_destroy_qp(made[i]) == 0);
    }
    MUST(ibv_destroy_cq(cq) == 0);
}

/* ---- all of it ---- */

static void one_round(void)
{
    pin(me);
    line_latency(100000);
    queue_latency(100000);
    send_latency("send_ns", 1e9, 100000);
    queue_rate(4000000);
    send_rate(SIGNAL * 100000);
    copy_bandwidth(2000);
    ring_bandwidth(2000);
    long_bandwidth("send_gbs", IBV_WR_SEND, 2000);
    long_bandwidth("write_gbs", IBV_WR_RDMA_WRITE, 2000);
    long_bandwidth("read_gbs", IBV_WR_RDMA_READ, 2000);
    pin(0);
    meet();
    send_latency("one_cpu_us", 1e6, 5000);
    pin(me);
    meet();
    if (me == 0) {
        many_qps(FEW_QPS);
        many_qps(MANY_QPS);
        fflush(stdout);
    }
    meet();
}

int main(int argc, char **argv)
{
    int rounds = (argc > 1) ? atoi(argv[1]) : 1;
    int status = 0;
    pid_t other;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(shared != MAP_FAILED);
    other = fork();
    MUST(other >= 0);
    if (other == 0) {
        me = 1;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    open_pair();
    for (; rounds > 0; --rounds) {
        one_round();
    }
    MUST((ibv_destroy_qp(qp) == 0) && (ibv_destroy_qp(long_qp) == 0));
    MUST(ibv_dereg_mr(mr) == 0);
    MUST((ibv_destroy_cq(send_cq) == 0) && (ibv_destroy_cq(recv_cq) == 0));
    MUST((ibv_dealloc_pd(pd) == 0) && (ibv_close_device(context) == 0));
    if (me == 0) {
        MUST(waitpid(other, &status, 0) == other);
    }
    return (status == 0) ? 0 : 1;
}
