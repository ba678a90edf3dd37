/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a queue pair that dies costs the operation that meets it: two processes
 * on CPUs 0 and 1 play ping-pong over UCP, without error handling, while a plan
 * of faults kills queue pairs of the first; without a plan it does that itself,
 * between two operations. `recovery KILLS FILE` writes, for so many of them, the
 * microseconds from the last completion before to the completion of the first
 * operation after, and for how many of these a CPU stood still. contrib/bench
 * compiles and runs it.
 *
 * An operation is taken for one that has met a death if a queue pair of this
 * process was made ready for it: the program stands between the plugin and the
 * device where that is done.
 *
 * A virtual CPU that its host does not run is no longer there, and the kernel need
 * not know. So on each of the two a thread that goes before all else wants to run
 * every millisecond; by how much it is late is what has been lost.
 */
#define _GNU_SOURCE
#include "must.h"

#include <infiniband/verbs.h>
#include <ucp/api/ucp.h>

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    ADDRESS_MAX = 4096,
    WARM_UP     = 20, /* round trips before the first that counts */
    KILL_EVERY  = 20, /* round trips, without a plan */
    LOOK_EVERY  = 1000 * 1000, /* nanoseconds, whether a CPU runs */
    LATE        = 500 /* microseconds, from which on it has not */
};

/* What the two processes share besides the device. */
struct shared {
    _Atomic uint32_t arrived;
    _Atomic bool     is_over;
    size_t           length[2];
    uint8_t          address[2][ADDRESS_MAX];
};

static struct shared *shared;
static int me; /* 0 asks, 1 answers */

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h peer;

typedef int (*modify_t)(struct ibv_qp *, struct ibv_qp_attr *, int);

/* queue pairs that this process has brought up, and the last of them */
static atomic_uint ups;
static _Atomic(struct ibv_qp *) last_up;

static modify_t real_modify(void)
{
    modify_t real;

    *(void **)&real = dlsym(RTLD_NEXT, "ibv_modify_qp");
    MUST(real != NULL);
    return real;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    int ret = real_modify()(qp, attr, mask);

    if ((ret == 0) && (qp->qp_type == IBV_QPT_RC) &&
        (attr->qp_state == IBV_QPS_RTS)) {
        last_up = qp;
        ups++;
    }
    return ret;
}

static void kill_last(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    MUST(real_modify()(last_up, &attr, IBV_QP_STATE) == 0);
}

static double now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1e6 + ts.tv_nsec * 1e-3;
}

static void pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    (void)sched_setaffinity(0, sizeof(set), &set);
}

/* ---- Does the CPU run? ---- */

/* microseconds, each, that it did not; less than 0: nobody may look */
static _Atomic int64_t lost[2];

static void *look(void *arg)
{
    const struct sched_param first = {.sched_priority = 1};
    int cpu                        = (int)(intptr_t)arg;
    struct timespec wanted, now;
    int64_t late;

    pin(cpu);
    if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &first) != 0) {
        lost[cpu] = -1;
        return NULL;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (;;) {
        wanted          = now;
        wanted.tv_nsec += LOOK_EVERY;
        wanted.tv_sec  += wanted.tv_nsec / 1000000000;
        wanted.tv_nsec %= 1000000000;
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wanted, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
        late = (now.tv_sec - wanted.tv_sec) * 1000000 +
               (now.tv_nsec - wanted.tv_nsec) / 1000;
        lost[cpu] += (late >= LATE) ? late : 0;
    }
    return NULL;
}

static void start_looking(void)
{
    pthread_t thread;
    intptr_t cpu;

    for (cpu = 0; cpu < 2; cpu++) {
        MUST(pthread_create(&thread, NULL, look, (void *)cpu) == 0);
    }
}

/* The CPU that has lost more since then, microseconds. */
static int64_t lost_since(const int64_t then[2])
{
    int64_t first = lost[0] - then[0], second = lost[1] - then[1];

    if ((lost[0] < 0) || (lost[1] < 0)) {
        return -1;
    }
    return (first > second) ? first : second;
}

static void progress(void)
{
    if (ucp_worker_progress(worker) == 0) {
        sched_yield();
    }
}

static void meet(uint32_t turn)
{
    shared->arrived++;
    while (shared->arrived < 2 * turn) {
        progress();
    }
}

static void open_worker(void)
{
    const ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG
    };
    const ucp_worker_params_t how = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE
    };
    ucp_address_t *address;
    size_t length;

    MUST(ucp_init(&params, NULL, &context) == UCS_OK);
    MUST(ucp_worker_create(context, &how, &worker) == UCS_OK);
    MUST(ucp_worker_get_address(worker, &address, &length) == UCS_OK);
    MUST(length <= ADDRESS_MAX);
    memcpy(shared->address[me], address, length);
    ucp_worker_release_address(worker, address);
}

static void open_all(void)
{
    ucp_ep_params_t to = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address    = (const ucp_address_t *)shared->address[1 - me]
    };

    open_worker();
    meet(1);
    MUST(ucp_ep_create(worker, &to, &peer) == UCS_OK);
    meet(2);
}

/* Works until it has ended, or, if nobody asks any more, cancels it. Returns
 * whether it has been done. */
static bool is_done(ucs_status_ptr_t request, bool may_cancel)
{
    ucs_status_t status = UCS_PTR_STATUS(request);

    if (UCS_PTR_IS_PTR(request)) {
        while ((status = ucp_request_check_status(request)) ==
               UCS_INPROGRESS) {
            if (may_cancel && shared->is_over) {
                ucp_request_cancel(worker, request);
            }
            progress();
        }
        ucp_request_free(request);
    }
    MUST((status == UCS_OK) || (may_cancel && (status == UCS_ERR_CANCELED)));
    return status == UCS_OK;
}

static void send_one(void)
{
    static const ucp_request_param_t param;
    static const uint64_t word = 1;

    (void)is_done(ucp_tag_send_nbx(peer, &word, sizeof(word), 1, &param),
                  false);
}

static bool receive_one(void)
{
    static const ucp_request_param_t param;
    static uint64_t word;

    return is_done(ucp_tag_recv_nbx(worker, &word, sizeof(word), 1, ~0ul,
                                    &param), true);
}

static void answer(void)
{
    while (receive_one()) {
        send_one();
    }
}

static void ask(unsigned kills, FILE *out)
{
    bool is_mine = getenv("SOFTVERBS_FAULTS") == NULL;
    double before, after = now_us();
    int64_t lost_before[2];
    unsigned found = 0, ups_before, i;

    for (i = 0; found < kills; i++) {
        before         = after;
        lost_before[0] = lost[0];
        lost_before[1] = lost[1];
        ups_before     = ups;
        if (is_mine && (i >= WARM_UP) && (i % KILL_EVERY == 0)) {
            kill_last();
        }
        send_one();
        MUST(receive_one());
        after = now_us();
        if ((ups != ups_before) && (i >= WARM_UP)) {
            fprintf(out, "%.1f %lld\n", after - before,
                    (long long)lost_since(lost_before));
            found++;
        }
    }
    shared->is_over = true;
}

static void close_all(void)
{
    static const ucp_request_param_t param;

    (void)is_done(ucp_worker_flush_nbx(worker, &param), false);
    meet(3);
    (void)is_done(ucp_ep_close_nbx(peer, &param), false);
    meet(4);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

int main(int argc, char **argv)
{
    unsigned kills = (argc == 3) ? strtoul(argv[1], NULL, 10) : 0;
    FILE *out      = (kills > 0) ? fopen(argv[2], "w") : NULL;
    int status     = 0;
    pid_t child;

    MUST(out != NULL);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(shared != MAP_FAILED);
    child = fork();
    MUST(child >= 0);
    me = (child == 0);
    MUST(!me || (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0));
    MUST(setenv("SOFTVERBS_PROCESS", me ? "1" : "0", 1) == 0);
    pin(me); /* each has a CPU of its own if there are two */
    open_all();
    if (me == 0) {
        start_looking();
        ask(kills, out);
    } else {
        answer();
    }
    close_all();
    if (me == 0) {
        MUST((fclose(out) == 0) && (waitpid(child, &status, 0) == child));
    }
    return status != 0;
}
