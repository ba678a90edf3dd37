/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every verb from any thread: the same QP, the same CQ, the same context, and
 * objects that come and go beside traffic.
 */
#include "t_device.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 3, EACH = 2000, SIZE = 64, DEPTH = 64 };

static void start(pthread_t *thread, void *(*run)(void*), void *arg)
{
    ck_assert_int_eq(pthread_create(thread, NULL, run, arg), 0);
}

static void join(pthread_t thread)
{
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

/* ---- several threads, one QP, one CQ ---- */

struct many {
    struct t_end ends[2];
    atomic_int   next;     /* number of the next message */
    atomic_int   done;     /* send completions */
    atomic_int   got;
    atomic_char  seen[THREADS * EACH];
};

static void *send_some(void *arg)
{
    struct many *m = arg;
    int number;

    while ((number = atomic_fetch_add(&m->next, 1)) < THREADS * EACH) {
        /* where slots come back too early, the CQ is what can be full */
        while (t_differs(T_DIFF_SEND_SLOT) &&
               (number - atomic_load(&m->done) >= DEPTH)) {
            sched_yield();
        }
        while (t_post_send(&m->ends[0], number, (number % DEPTH) * SIZE, SIZE,
                           IBV_SEND_SIGNALED) != 0) {
            sched_yield();
        }
    }
    return NULL;
}

static void *poll_sends(void *arg)
{
    struct many *m = arg;
    struct ibv_wc wc[4];
    int i, n;

    while (atomic_load(&m->done) < THREADS * EACH) {
        n = ibv_poll_cq(m->ends[0].send_cq, 4, wc);
        for (i = 0; i < n; ++i) {
            ck_assert_int_eq(wc[i].status, IBV_WC_SUCCESS);
            ck_assert_int_eq(atomic_exchange(&m->seen[wc[i].wr_id], 1), 0);
        }
        atomic_fetch_add(&m->done, n);
    }
    return NULL;
}

static void *poll_recvs(void *arg)
{
    struct many *m = arg;
    struct ibv_wc wc;

    while (atomic_load(&m->got) < THREADS * EACH) {
        if (ibv_poll_cq(m->ends[1].recv_cq, 1, &wc) == 1) {
            ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
            atomic_fetch_add(&m->got, 1);
            ck_assert_int_eq(t_post_recv(&m->ends[1], 0, wc.wr_id, SIZE), 0);
        }
    }
    return NULL;
}

static void check_many(bool srq)
{
    const struct t_make make = {.depth = DEPTH, .srq = srq};
    const struct t_link link = {.rnr_retry = 7};
    static struct many m;
    pthread_t thread[THREADS + 4];
    int i, n = 0;

    t_pair_open(m.ends, &make, &link);
    for (i = 0; i < DEPTH; ++i) {
        ck_assert_int_eq(t_post_recv(&m.ends[1], 0, 0, SIZE), 0);
    }
    for (i = 0; i < THREADS; ++i) {
        start(&thread[n++], send_some, &m);
    }
    for (i = 0; i < 2; ++i) {
        start(&thread[n++], poll_sends, &m);
        start(&thread[n++], poll_recvs, &m);
    }
    while (n > 0) {
        join(thread[--n]);
    }
    t_pair_close(m.ends);
}

START_TEST(test_one_qp)
{
    check_many(false);
}
END_TEST

START_TEST(test_one_qp_srq)
{
    check_many(true);
}
END_TEST

/* ---- objects come and go beside traffic on the same context and CQs ---- */

struct traffic {
    struct t_end ends[2];
    atomic_bool  stop;
};

static void *come_and_go(void *arg)
{
    struct traffic *t = arg;
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    struct t_address own;
    struct t_end side;
    struct ibv_mr *mr;

    ck_assert_int_eq(ibv_query_qp(t->ends[0].qp, &attr, IBV_QP_CAP, &init), 0);
    while (!atomic_load(&t->stop)) {
        side           = t->ends[0];
        init.cap       = attr.cap;
        init.qp_type   = IBV_QPT_RC;
        side.qp        = ibv_create_qp(side.pd, &init);
        ck_assert_ptr_nonnull(side.qp);
        mr  = ibv_reg_mr(side.pd, side.buf, side.size, T_ACCESS_ALL);
        own = t_end_address(&side);
        t_end_up(&side, &own, NULL);
        ck_assert_int_eq(t_post_recv(&side, 1ull << 40, 4096, SIZE), 0);
        ck_assert_int_eq(t_post_send(&side, 1ull << 40, 8192, SIZE, 0), 0);
        ck_assert_int_eq(ibv_dereg_mr(mr), 0);
        t_end_move(&side, IBV_QPS_ERR);
        ck_assert_int_eq(ibv_destroy_qp(side.qp), 0);
    }
    return NULL;
}

START_TEST(test_objects_beside_traffic)
{
    enum { MESSAGES = 5000 };
    const struct t_make make = {.depth = 32, .cqe = 4096};
    static struct traffic t;
    int sent = 0, done = 0, got = 0, i;
    pthread_t thread;
    struct ibv_wc wc;

    t_pair_open(t.ends, &make, NULL);
    for (i = 0; i < 32; ++i) {
        ck_assert_int_eq(t_post_recv(&t.ends[1], i, 0, SIZE), 0);
    }
    start(&thread, come_and_go, &t);
    while (got < MESSAGES) {
        if ((sent < MESSAGES) && (sent - got < 32) && (sent - done < 32)) {
            ck_assert_int_eq(t_post_send(&t.ends[0], sent++, 0, SIZE,
                                         IBV_SEND_SIGNALED), 0);
        }
        while (ibv_poll_cq(t.ends[0].send_cq, 1, &wc) == 1) {
            if (wc.wr_id < (1ull << 40)) {
                ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
                ck_assert_uint_eq(wc.wr_id, done++);
            }
        }
        while (ibv_poll_cq(t.ends[1].recv_cq, 1, &wc) == 1) {
            ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
            ck_assert_int_eq(t_post_recv(&t.ends[1], 0, 0, SIZE), 0);
            ++got;
        }
        /* what the other thread's QPs leave in the shared CQ */
        while (ibv_poll_cq(t.ends[0].recv_cq, 1, &wc) == 1) {
            ck_assert_uint_eq(wc.wr_id, 1ull << 40);
        }
    }
    atomic_store(&t.stop, true);
    join(thread);
    t_pair_close(t.ends);
}
END_TEST

/* ---- one thread's datagrams beside another's connection ---- */

struct control {
    struct t_end ends[2];
    atomic_bool  stop;
    atomic_int   rounds;
};

static void *datagrams(void *arg)
{
    struct control *c = arg;
    struct t_address to[2];
    struct ibv_ah *ah[2];
    struct ibv_wc wc;
    int i;

    for (i = 0; i < 2; ++i) {
        to[i] = t_end_address(&c->ends[1 - i]);
        ah[i] = t_create_ah(&c->ends[i], &to[i]);
    }
    while (!atomic_load(&c->stop)) {
        for (i = 0; i < 2; ++i) {
            ck_assert_int_eq(t_post_recv(&c->ends[1 - i], 1, 0, 1024), 0);
            ck_assert_int_eq(t_post_datagram(&c->ends[i], ah[i], to[i].qpn,
                                             T_QKEY, 2, 0, 256), 0);
            t_poll_is(c->ends[i].send_cq, 2, IBV_WC_SUCCESS);
            wc = t_poll_is(c->ends[1 - i].recv_cq, 1, IBV_WC_SUCCESS);
            ck_assert_uint_eq(wc.byte_len, 296);
        }
        ++c->rounds;
    }
    for (i = 0; i < 2; ++i) {
        ck_assert_int_eq(ibv_destroy_ah(ah[i]), 0);
    }
    return NULL;
}

START_TEST(test_control_beside_data)
{
    const struct t_make ud = {.type = IBV_QPT_UD};
    static struct control c;
    struct t_end ends[2];
    pthread_t thread;
    int i;

    t_pair_open(c.ends, &ud, NULL);
    t_pair_open(ends, NULL, NULL);
    start(&thread, datagrams, &c);
    for (i = 0; (i < 3000) || (atomic_load(&c.rounds) < 10); ++i) {
        t_check_link(&ends[i & 1], &ends[1 - (i & 1)]);
    }
    atomic_store(&c.stop, true);
    join(thread);
    t_pair_close(ends);
    t_pair_close(c.ends);
}
END_TEST

/* ---- a channel goes while somebody tells it of a completion ---- */

struct teller {
    struct t_end  *end;
    struct ibv_ah *ah;
    uint32_t      qpn;
};

static void *tell_once(void *arg)
{
    struct teller *t = arg;

    ck_assert_int_eq(t_post_datagram(t->end, t->ah, t->qpn, T_QKEY, 2, 0, 8),
                     0);
    t_poll_is(t->end->send_cq, 2, IBV_WC_SUCCESS);
    return NULL;
}

/* Whoever has the completion may close everything, and the event that belongs to
 * it must not end up in what has the channel's descriptor next. */
START_TEST(test_channel_goes)
{
    const struct t_make make = {.type = IBV_QPT_UD, .channel = true};
    struct t_address address;
    struct teller teller;
    struct t_end ends[2];
    struct pollfd next = {.events = POLLIN};
    pthread_t thread;
    int fds[2];
    int i;

    for (i = 0; i < (int)t_times(200); ++i) {
        t_pair_open(ends, &make, NULL);
        address = t_end_address(&ends[1]);
        teller  = (struct teller){.end = &ends[0],
                                  .ah  = t_create_ah(&ends[0], &address),
                                  .qpn = address.qpn};
        ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 256), 0);
        ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 0), 0);
        start(&thread, tell_once, &teller);
        t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
        t_end_close_queues(&ends[1]);
        ck_assert_int_eq(pipe(fds), 0);
        join(thread);
        next.fd = fds[0];
        ck_assert_int_eq(poll(&next, 1, 0), 0);

        ck_assert_int_eq(close(fds[0]), 0);
        ck_assert_int_eq(close(fds[1]), 0);
        ck_assert_int_eq(ibv_destroy_ah(teller.ah), 0);
        t_end_close(&ends[0]);
        t_end_close_memory(&ends[1]);
    }
}
END_TEST

/* ---- memory goes while somebody writes to it ---- */

/* Long enough for a deregistration to come in the middle of a copy. */
enum { REGION = 4 << 20, WRITES = 200 };

struct region {
    struct t_end    *end;
    uint32_t         rkey;
    uint64_t         addr;
    atomic_int       made;    /* regions so far */
    atomic_int       written; /* writes that were about to begin */
};

/* Registers; when the write is about to begin, deregisters and takes the memory
 * away: a byte that came after would be a crash. */
static void *map_and_unmap(void *arg)
{
    struct region *r = arg;
    struct ibv_mr *mr;
    t_rng_t rng;
    void *mem;
    int i, k;

    t_rng_init(&rng, 1);
    for (i = 1; i <= (int)t_times(WRITES); ++i) {
        mem = mmap(NULL, REGION, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(mem, MAP_FAILED);
        mr = ibv_reg_mr(r->end->pd, mem, REGION, T_ACCESS_ALL);
        ck_assert_ptr_nonnull(mr);
        r->addr = (uintptr_t)mem;
        r->rkey = mr->rkey;
        atomic_store(&r->made, i);
        while (atomic_load(&r->written) < i) {
            sched_yield();
        }
        for (k = t_rng_below(&rng, 20); k > 0; --k) {
            sched_yield();
        }
        ck_assert_int_eq(ibv_dereg_mr(mr), 0);
        ck_assert_int_eq(munmap(mem, REGION), 0);
    }
    return NULL;
}

/* After a request has failed with @a status. The QP whose error it was, and that
 * of who was told, are in ERR, or will be: from RESET as well, so this is waited
 * for. */
static void up_again(struct t_end ends[2], enum ibv_wc_status status)
{
    struct t_address address[2];
    int i;

    t_end_wait(&ends[0], IBV_QPS_ERR);
    if ((status == IBV_WC_REM_ACCESS_ERR) || (status == IBV_WC_REM_OP_ERR)) {
        t_end_wait(&ends[1], IBV_QPS_ERR);
    }
    for (i = 0; i < 2; ++i) {
        t_end_move(&ends[i], IBV_QPS_RESET);
        address[i] = t_end_address(&ends[i]);
    }
    for (i = 0; i < 2; ++i) {
        t_end_up(&ends[i], &address[1 - i], NULL);
    }
}

START_TEST(test_dereg_beside_write)
{
    const struct t_make make = {.size = REGION};
    struct t_address to      = {0};
    struct t_end ends[2];
    struct region r = {.end = &ends[1]};
    pthread_t thread;
    struct ibv_wc wc;
    int i;

    t_pair_open(ends, &make, NULL);
    start(&thread, map_and_unmap, &r);
    for (i = 1; i <= (int)t_times(WRITES); ++i) {
        while (atomic_load(&r.made) < i) {
            sched_yield();
        }
        to.rkey = r.rkey;
        to.buf  = r.addr;
        atomic_store(&r.written, i);
        ck_assert_int_eq(t_post_rdma(&ends[0], IBV_WR_RDMA_WRITE, 1, 0, REGION,
                                     &to, 0), 0);
        wc = t_poll(ends[0].send_cq);
        if (wc.status != IBV_WC_SUCCESS) {
            /* it came too late altogether */
            ck_assert_int_eq(wc.status, IBV_WC_REM_ACCESS_ERR);
            up_again(ends, wc.status);
        }
    }
    join(thread);
    t_pair_close(ends);
}
END_TEST

/* The end of a request that may fail in the middle. */
static struct ibv_wc poll_or_flush(struct t_end *end)
{
    enum { SECONDS = 5 }; /* some times what all of its tries take */
    uint64_t until = t_now_ns() + SECONDS * 1000000000ull;
    struct ibv_wc wc;

    if (!t_differs(T_DIFF_ERROR_SILENT)) {
        return t_poll(end->send_cq);
    }
    while (t_now_ns() < until) {
        if (ibv_poll_cq(end->send_cq, 1, &wc) == 1) {
            return wc;
        }
        sched_yield();
    }
    t_end_move(end, IBV_QPS_ERR);
    return t_poll(end->send_cq);
}

/* The same for the memory of a SEND (0) and of a RECV (1) that are under way:
 * here the copying is done by this process. */
START_TEST(test_dereg_under_way)
{
    const struct t_make make = {.size = REGION};
    struct t_end ends[2];
    struct ibv_mr *mr;
    struct ibv_wc wc;
    t_rng_t rng;
    void *mem;
    int i, k;

    t_rng_init(&rng, _i);
    t_pair_open(ends, &make, NULL);
    for (i = 0; i < (int)t_times(100); ++i) {
        struct t_end from = ends[0], to = ends[1];

        mem = mmap(NULL, REGION, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(mem, MAP_FAILED);
        mr = ibv_reg_mr(ends[_i].pd, mem, REGION, IBV_ACCESS_LOCAL_WRITE);
        ck_assert_ptr_nonnull(mr);
        ((_i == 0) ? &from : &to)->mr  = mr;
        ((_i == 0) ? &from : &to)->buf = mem;
        ck_assert_int_eq(t_post_recv(&to, 1, 0, REGION), 0);
        ck_assert_int_eq(t_post_send(&from, 2, 0, REGION, IBV_SEND_SIGNALED),
                         0);
        for (k = t_rng_below(&rng, 200); k > 0; --k) {
            sched_yield();
        }
        ck_assert_int_eq(ibv_dereg_mr(mr), 0);
        ck_assert_int_eq(munmap(mem, REGION), 0);

        /* RECVs of a sender that gave up in the middle wait for ever */
        wc = poll_or_flush(&ends[0]);
        ck_assert_uint_eq(wc.wr_id, 2);
        if (wc.status != IBV_WC_SUCCESS) {
            up_again(ends, wc.status);
        }
        while (ibv_poll_cq(ends[1].recv_cq, 1, &wc) == 1) {
            ck_assert_uint_eq(wc.wr_id, 1);
        }
    }
    t_pair_close(ends);
}
END_TEST

static Suite *suite_threads(void)
{
    Suite *suite = t_suite("threads",
                           "same", test_one_qp,
                           "same", test_one_qp_srq,
                           "beside", test_objects_beside_traffic,
                           "beside", test_control_beside_data,
                           "beside", test_channel_goes,
                           "memory", test_dereg_beside_write,
                           NULL);

    t_suite_add_loop(suite, "under_way", test_dereg_under_way, 2);
    return suite;
}

T_MAIN(suite_threads)
