/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many QPs on one CQ, nearly all of them idle, and many processes, each of which
 * talks to each other.
 */
#include "t_device.h"

#include <malloc.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- one end with many QPs ---- */

enum { MANY = 120, SIZE = 64, DEPTH = 4, IDLE_POLLS = 3000, QP_TABLE = 8192 };

struct crowd {
    struct t_end     base;       /* its QP is the first */
    struct t_end     ends[MANY]; /* the same but for their QPs */
    unsigned         count;
};

/* One more like the first. */
static struct t_end *crowd_add(struct crowd *crowd)
{
    struct t_end *end = &crowd->ends[crowd->count++];
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    *end = crowd->base;
    ck_assert_int_eq(ibv_query_qp(end->qp, &attr, IBV_QP_CAP, &init), 0);
    init.cap = attr.cap;
    end->qp  = ibv_create_qp(crowd->base.pd, &init);
    ck_assert_ptr_nonnull(end->qp);
    return end;
}

static void crowd_fill(struct crowd *crowd, unsigned count)
{
    while (crowd->count < count) {
        crowd_add(crowd);
    }
}

static void crowd_open(struct crowd *crowd, const struct t_make *make,
                       unsigned count)
{
    t_end_open(&crowd->base, make);
    crowd->ends[0] = crowd->base;
    crowd->count   = 1;
    crowd_fill(crowd, count);
}

static void crowd_close(struct crowd *crowd)
{
    unsigned i;

    for (i = 1; i < crowd->count; ++i) {
        ck_assert_int_eq(ibv_destroy_qp(crowd->ends[i].qp), 0);
    }
    t_end_close(&crowd->base);
}

static unsigned crowd_find(const struct crowd *crowd, uint32_t qp_num)
{
    unsigned i;

    for (i = 0; crowd->ends[i].qp->qp_num != qp_num; ++i) {
        ck_assert_uint_lt(i + 1, crowd->count);
    }
    return i;
}

static void poll_in_vain(struct ibv_cq *cq, unsigned times)
{
    while (times-- > 0) {
        t_poll_none(cq);
    }
}

static const struct t_make crowd_make = {
    .depth = DEPTH, .cqe = 2 * MANY * DEPTH, .size = MANY * SIZE
};

/* Any of them may be the next, after any pause. */
static void check_some(struct crowd *from, struct crowd *to, t_rng_t *rng,
                       unsigned number)
{
    unsigned first = t_rng_below(rng, MANY);
    unsigned some  = t_rng_once_in(rng, 4) ? MANY : 1 + t_rng_below(rng, 3);
    unsigned i, at;
    struct ibv_wc wc;

    for (i = 0; i < some; ++i) {
        at = (first + i) % MANY;
        memset(from->base.buf + at * SIZE, (uint8_t)(at + number), SIZE);
        memset(to->base.buf + at * SIZE, 0, SIZE);
        ck_assert_int_eq(t_post_recv(&to->ends[at], at, at * SIZE, SIZE), 0);
        ck_assert_int_eq(t_post_send(&from->ends[at], at, at * SIZE, SIZE,
                                     IBV_SEND_SIGNALED), 0);
    }
    for (i = 0; i < some; ++i) {
        ck_assert_int_eq(t_poll(from->base.send_cq).status, IBV_WC_SUCCESS);
        wc = t_poll(to->base.recv_cq);
        at = wc.wr_id;
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(wc.qp_num, to->ends[at].qp->qp_num);
        ck_assert_uint_eq(to->base.buf[at * SIZE], (uint8_t)(at + number));
        ck_assert_uint_eq(to->base.buf[at * SIZE + SIZE - 1],
                          (uint8_t)(at + number));
    }
    t_poll_none(to->base.recv_cq);
}

/* Uses up numbers of QPs, so that those that follow lie elsewhere in softverbs' table of
 * QP_TABLE entries. */
static void crowd_skip_to(struct crowd *crowd, unsigned place)
{
    unsigned left = QP_TABLE, at;

    do {
        at = crowd_add(crowd)->qp->qp_num % QP_TABLE;
        ck_assert_int_eq(ibv_destroy_qp(crowd->ends[--crowd->count].qp), 0);
    } while ((at != place) && (--left > 0));
}

/* Wherever they lie: at 0 where they are put, in the middle of the table, across its
 * end. */
START_TEST(test_mostly_idle)
{
    static const unsigned places[] = {0, QP_TABLE / 2 - MANY, QP_TABLE - MANY};
    static struct crowd crowds[2];
    struct t_address address;
    unsigned i, j;
    t_rng_t rng;

    t_rng_init(&rng, 1 + _i);
    crowd_open(&crowds[0], &crowd_make, 1);
    if (places[_i] != 0) {
        crowd_skip_to(&crowds[0], places[_i]);
    }
    crowd_fill(&crowds[0], MANY);
    crowd_open(&crowds[1], &crowd_make, MANY);
    for (i = 0; i < MANY; ++i) {
        for (j = 0; j < 2; ++j) {
            address = t_end_address(&crowds[1 - j].ends[i]);
            t_end_up(&crowds[j].ends[i], &address, NULL);
        }
    }
    for (i = 0; i < t_times(300); ++i) {
        j = t_rng_below(&rng, 2);
        if (t_rng_once_in(&rng, 3)) {
            poll_in_vain(crowds[1 - j].base.recv_cq, IDLE_POLLS);
        }
        check_some(&crowds[j], &crowds[1 - j], &rng, i);
    }
    crowd_close(&crowds[0]);
    crowd_close(&crowds[1]);
}
END_TEST

/* ---- what an idle QP costs ---- */

enum { IDLE_QPS = 400, IDLE_LIMIT = 5 * 1024 };

/* Bytes of memory that all objects of this process take; 0 where another
 * allocator than libc's counts them. */
static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* Connected, each to itself, with queues of two WRs, so that it is the QP that
 * is weighed and not what its program wants it to hold. */
START_TEST(test_idle_memory)
{
    const struct t_make make = {.depth = 2, .max_sge = 1, .size = SIZE};
    static struct ibv_qp *qps[IDLE_QPS];
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1,
                .max_recv_sge = 1}
    };
    struct t_address address;
    struct t_end base, end;
    size_t before;
    unsigned i;

    t_end_open(&base, &make);
    init.send_cq = base.send_cq;
    init.recv_cq = base.recv_cq;
    end          = base;
    before       = heap_bytes() + t_segment_bytes(&base);
    for (i = 0; i < IDLE_QPS; ++i) {
        qps[i] = end.qp = ibv_create_qp(base.pd, &init);
        ck_assert_ptr_nonnull(end.qp);
        address = t_end_address(&end);
        t_end_up(&end, &address, NULL);
    }
    ck_assert_uint_le((heap_bytes() + t_segment_bytes(&base) - before) / IDLE_QPS,
                      IDLE_LIMIT);
    for (i = 0; i < IDLE_QPS; ++i) {
        ck_assert_int_eq(ibv_destroy_qp(qps[i]), 0);
    }
    t_end_close(&base);
}
END_TEST

/* From a QP to itself. */
static void check_echo(struct t_end *end, uint8_t value)
{
    memset(end->buf, value, SIZE);
    memset(end->buf + SIZE, value + 1, SIZE);
    ck_assert_int_eq(t_post_recv(end, 1, SIZE, SIZE), 0);
    ck_assert_int_eq(t_post_send(end, 2, 0, SIZE, IBV_SEND_SIGNALED), 0);
    t_poll_is(end->send_cq, 2, IBV_WC_SUCCESS);
    t_poll_is(end->recv_cq, 1, IBV_WC_SUCCESS);
    ck_assert_mem_eq(end->buf, end->buf + SIZE, SIZE);
}

static void crowd_join(struct crowd *crowd)
{
    struct t_end *end        = crowd_add(crowd);
    struct t_address address = t_end_address(end);

    t_end_up(end, &address, NULL);
}

/* QPs go while others are idle, and come back in their place. */
START_TEST(test_come_and_go)
{
    static struct crowd crowd;
    struct t_address address;
    unsigned i, at;
    t_rng_t rng;

    t_rng_init(&rng, 2);
    crowd_open(&crowd, &crowd_make, MANY);
    for (i = 0; i < MANY; ++i) {
        address = t_end_address(&crowd.ends[i]);
        t_end_up(&crowd.ends[i], &address, NULL);
    }
    poll_in_vain(crowd.base.recv_cq, IDLE_POLLS);
    for (i = 0; i < t_times(500); ++i) {
        at = 1 + t_rng_below(&rng, crowd.count - 1);
        if (t_rng_once_in(&rng, 10) && (crowd.count > MANY / 10)) {
            ck_assert_int_eq(ibv_destroy_qp(crowd.ends[at].qp), 0);
            crowd.ends[at] = crowd.ends[--crowd.count];
            if (t_rng_once_in(&rng, 2)) {
                crowd_join(&crowd);
            }
        } else if (t_rng_once_in(&rng, 5)) {
            poll_in_vain(crowd.base.recv_cq, IDLE_POLLS);
        } else {
            check_echo(&crowd.ends[at], i);
        }
    }
    crowd_close(&crowd);
}
END_TEST

/* ---- a sender beside a poller ---- */

enum { BESIDE = 3000 };

static void swap_all(int fd, struct crowd *crowd)
{
    struct t_address to;
    unsigned i;

    for (i = 0; i < MANY; ++i) {
        to = t_swap(fd, &crowd->ends[i]);
        t_end_up(&crowd->ends[i], &to, NULL);
    }
    t_meet(fd);
}

static void send_now_and_then(int fd)
{
    static struct crowd crowd;
    unsigned i, pause, at;
    uint32_t number;
    t_rng_t rng;

    t_rng_init(&rng, 3);
    crowd_open(&crowd, &crowd_make, MANY);
    swap_all(fd, &crowd);
    t_meet(fd); /* the RECVs are there */
    for (i = 0; i < t_times(BESIDE); ++i) {
        at     = t_rng_below(&rng, MANY);
        number = i;
        memcpy(crowd.base.buf, &number, sizeof(number));
        ck_assert_int_eq(t_post_send(&crowd.ends[at], i, 0, SIZE,
                                     IBV_SEND_SIGNALED), 0);
        t_poll_is(crowd.base.send_cq, i, IBV_WC_SUCCESS);
        t_hear(fd, &number, sizeof(number));
        ck_assert_uint_eq(number, i);
        for (pause = t_rng_below(&rng, 300); pause > 0; --pause) {
            t_now_ns();
        }
    }
    t_meet(fd);
    crowd_close(&crowd);
}

START_TEST(test_beside_poller)
{
    static struct crowd crowd;
    struct t_peer peer;
    unsigned i, at;
    uint32_t number;
    struct ibv_wc wc;

    t_peer_start(&peer, send_now_and_then);
    crowd_open(&crowd, &crowd_make, MANY);
    swap_all(peer.fd, &crowd);
    for (i = 0; i < MANY; ++i) {
        ck_assert_int_eq(t_post_recv(&crowd.ends[i], i, i * SIZE, SIZE), 0);
    }
    t_meet(peer.fd);
    for (i = 0; i < t_times(BESIDE); ++i) {
        wc = t_poll(crowd.base.recv_cq);
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        at = crowd_find(&crowd, wc.qp_num);
        ck_assert_uint_eq(at, wc.wr_id);
        memcpy(&number, crowd.base.buf + at * SIZE, sizeof(number));
        ck_assert_uint_eq(number, i);
        ck_assert_int_eq(t_post_recv(&crowd.ends[at], at, at * SIZE, SIZE),
                         0);
        t_tell(peer.fd, &number, sizeof(number));
    }
    t_meet(peer.fd);
    crowd_close(&crowd);
    t_peer_join(&peer);
}
END_TEST

/* ---- all to all ---- */

enum {
    RANKS = 8, EACH = 150, WINDOW = 4, LONGEST = 20000, RECVS = 8,
    AT_OUT = 64, AT_SUM = AT_OUT + RANKS * WINDOW * LONGEST,
    AT_IN = AT_SUM + 64, ALL_BYTES = AT_IN + RANKS * RECVS * LONGEST
};

static const struct t_link patient = {.timeout = 18, .retry_cnt = 7,
                                      .rnr_retry = 7};

/* Where the processes meet. */
struct square {
    struct t_address address[RANKS][RANKS];
    atomic_uint      arrived;
};

static void square_meet(struct square *square, unsigned times)
{
    ++square->arrived;
    while (square->arrived < RANKS * times) {
        sched_yield();
    }
}

struct citizen {
    struct crowd crowd; /* one QP for each other */
    unsigned     rank;
    unsigned     sent[RANKS], done[RANKS], got[RANKS];
};

static size_t letter_length(unsigned from, unsigned to, unsigned number)
{
    t_rng_t rng;

    t_rng_init(&rng, (from * RANKS + to) * EACH + number);
    return t_rng_range(&rng, 16, t_rng_once_in(&rng, 4) ? LONGEST : 200);
}

static uint8_t letter_byte(unsigned from, unsigned to, unsigned number)
{
    return from * 31 + to * 7 + number;
}

/* A letter, and one more in the other's sum. */
static void send_letter(struct citizen *c, unsigned to,
                        const struct t_address *address)
{
    struct t_end *end = &c->crowd.ends[to];
    unsigned number   = c->sent[to]++;
    size_t at         = AT_OUT + (to * WINDOW + number % WINDOW) * LONGEST;
    size_t length     = letter_length(c->rank, to, number);

    memset(c->crowd.base.buf + at, letter_byte(c->rank, to, number), length);
    ck_assert_int_eq(t_post_send(end, to, at, length, 0), 0);
    ck_assert_int_eq(t_post_atomic(end, IBV_WR_ATOMIC_FETCH_AND_ADD, to,
                                   AT_SUM + 8 * to, address, 0, 1, 0), 0);
}

static void take_letter(struct citizen *c)
{
    const uint8_t *letter;
    unsigned from, number;
    struct ibv_wc wc;

    if (ibv_poll_cq(c->crowd.base.recv_cq, 1, &wc) == 0) {
        return;
    }
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    from   = crowd_find(&c->crowd, wc.qp_num);
    number = c->got[from]++;
    letter = c->crowd.base.buf + AT_IN + wc.wr_id * LONGEST;
    ck_assert_uint_eq(wc.byte_len, letter_length(from, c->rank, number));
    ck_assert_uint_eq(letter[0], letter_byte(from, c->rank, number));
    ck_assert_mem_eq(letter, letter + 1, wc.byte_len - 1);
    ck_assert_int_eq(t_post_recv(&c->crowd.ends[from], wc.wr_id,
                                 AT_IN + wc.wr_id * LONGEST, LONGEST), 0);
}

/* True: all sent, all received. */
static bool citizen_is_done(const struct citizen *c)
{
    unsigned i;

    for (i = 0; i < RANKS; ++i) {
        if ((c->done[i] < EACH) || (c->got[i] < EACH)) {
            return false;
        }
    }
    return true;
}

static void citizen_step(struct citizen *c, const struct t_address *addresses)
{
    struct ibv_wc wc;
    unsigned i;

    for (i = 0; i < RANKS; ++i) {
        if ((c->sent[i] < EACH) && (c->sent[i] - c->done[i] < WINDOW)) {
            send_letter(c, i, &addresses[i]);
        }
    }
    if (ibv_poll_cq(c->crowd.base.send_cq, 1, &wc) == 1) {
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        ++c->done[wc.wr_id];
    }
    take_letter(c);
}

/* Odd ones have an SRQ; all talk to themselves, too. */
static void live(struct square *square, unsigned rank)
{
    static struct citizen c;
    const struct t_make make = {.size = ALL_BYTES, .depth = RANKS * RECVS,
                                .cqe = 4 * RANKS * RECVS,
                                .srq = (rank % 2 == 1)};
    struct t_address to[RANKS];
    unsigned i;

    c.rank = rank;
    crowd_open(&c.crowd, &make, RANKS);
    for (i = 0; i < RANKS; ++i) {
        square->address[rank][i] = t_end_address(&c.crowd.ends[i]);
    }
    square_meet(square, 1);
    for (i = 0; i < RANKS; ++i) {
        to[i] = square->address[i][rank];
        t_end_up(&c.crowd.ends[i], &to[i], &patient);
    }
    for (i = 0; i < RANKS * RECVS; ++i) {
        ck_assert_int_eq(t_post_recv(&c.crowd.ends[i % RANKS], i,
                                     AT_IN + i * LONGEST, LONGEST), 0);
    }
    square_meet(square, 2);
    while (!citizen_is_done(&c)) {
        citizen_step(&c, to);
    }
    square_meet(square, 3);
    ck_assert_uint_eq(*(uint64_t*)c.crowd.base.buf, RANKS * EACH);
    crowd_close(&c.crowd);
}

static struct square *the_square;

static void live_as_told(int fd)
{
    unsigned rank;

    t_hear(fd, &rank, sizeof(rank));
    live(the_square, rank);
}

START_TEST(test_all_to_all)
{
    struct t_peer peer[RANKS];
    unsigned rank;

    the_square = mmap(NULL, sizeof(*the_square), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(the_square, MAP_FAILED);
    for (rank = 1; rank < RANKS; ++rank) {
        t_peer_start(&peer[rank], live_as_told);
        t_tell(peer[rank].fd, &rank, sizeof(rank));
    }
    live(the_square, 0);
    for (rank = 1; rank < RANKS; ++rank) {
        t_peer_join(&peer[rank]);
    }
    ck_assert_int_eq(munmap(the_square, sizeof(*the_square)), 0);
}
END_TEST

static Suite *suite_many(void)
{
    Suite *suite = t_suite("many",
                           "qps", test_idle_memory,
                           "qps", test_come_and_go,
                           "qps", test_beside_poller,
                           "processes", test_all_to_all,
                           NULL);

    t_suite_add_loop(suite, "idle", test_mostly_idle, 3);
    return suite;
}

T_MAIN(suite_many)
