/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The chain: messages that share a doorbell wait for progress, or for a timer,
 * and for nothing else; and whatever becomes of the conn, each is posted once.
 */
#include "t_uct.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <string.h>
#include <time.h>

/* So long that the timer never rings; so short that it soon does. */
#define HOLD_LONG  "TX_BATCH=on TX_BATCH_TIMEOUT=60s"
#define HOLD_SHORT "TX_BATCH=on TX_BATCH_TIMEOUT=1ms"

typedef struct {
    t_end_t    *a, *b;
    t_link_t   *link;
    t_stream_t stream;
} pair_t;

/* ---- A doorbell that takes long ---- */

/* Ten times what the timer holds, and the hook sleeps for it once. */
#define HOLD_SLOW  "TX_BATCH=on TX_BATCH_TIMEOUT=30ms"
#define SLOW_MS    300

static struct {
    int (*post_send)(struct ibv_qp*, struct ibv_send_wr*,
                     struct ibv_send_wr**);
    int is_slow;  /* the next one is; atomic       */
    int is_begun; /* the slow one has been; atomic */
} device;


static int slow_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
                          struct ibv_send_wr **bad_wr)
{
    const struct timespec slow = {.tv_nsec = SLOW_MS * 1000000l};

    if (__atomic_exchange_n(&device.is_slow, 0, __ATOMIC_RELAXED)) {
        __atomic_store_n(&device.is_begun, 1, __ATOMIC_RELEASE);
        (void)nanosleep(&slow, NULL);
    }
    return device.post_send(qp, wr, bad_wr);
}


struct ibv_context *ibv_open_device(struct ibv_device *which)
{
    struct ibv_context *(*real)(struct ibv_device*);
    struct ibv_context *context;

    *(void**)&real = dlsym(RTLD_NEXT, "ibv_open_device");
    context        = real(which);
    if (context != NULL) {
        device.post_send       = context->ops.post_send;
        context->ops.post_send = slow_post_send;
    }
    return context;
}


static double cpu_ms(void)
{
    struct timespec used;

    ck_assert_int_eq(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used), 0);
    return used.tv_sec * 1e3 + used.tv_nsec / 1e6;
}


/* ---- Ends ---- */

static void pair_open(pair_t *pair, const char *options)
{
    t_only_daqiri("has a chain");
    pair->a    = t_end_open(options);
    pair->b    = t_end_open("RX_WINDOW_START=256"); /* no grant is needed */
    pair->link = t_link_up(pair->a, pair->b, 5, &pair->stream);
}


/* The sender does not progress; its peer works as long as something comes. */
static void only_b(pair_t *pair, unsigned turns)
{
    pair->a->is_stopped = 1;
    while (turns-- > 0) {
        t_progress_or_yield();
    }
    pair->a->is_stopped = 0;
}


/* One message more than the chain holds is not needed: the first has gone. */
static void send_without_progress(pair_t *pair, t_how_t how, unsigned count)
{
    while (count-- > 0) {
        ck_assert_int_eq(t_try_send(pair->link, how, 100), UCS_OK);
    }
}


START_TEST(test_first_goes_at_once)
{
    pair_t pair;

    pair_open(&pair, HOLD_LONG);
    t_progress();
    send_without_progress(&pair, T_SHORT, 1);
    pair.a->is_stopped = 1;
    T_WAIT(pair.stream.got == 2);
    pair.a->is_stopped = 0;
}
END_TEST


/* Two without progress make a stream: after the next progress call the first waits,
 * too. It remains the only one, so there is no stream after one more call. */
START_TEST(test_first_of_a_stream_waits)
{
    pair_t pair;

    pair_open(&pair, HOLD_LONG);
    t_progress();
    send_without_progress(&pair, T_SHORT, 2);
    t_progress();
    send_without_progress(&pair, T_SHORT, 1);
    only_b(&pair, 1000);
    ck_assert_uint_eq(pair.stream.got, 1 + 2);
    t_progress();
    send_without_progress(&pair, T_SHORT, 1);
    pair.a->is_stopped = 1;
    T_WAIT(pair.stream.got == 1 + 4);
    pair.a->is_stopped = 0;
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("batched"), 2);
}
END_TEST


/* In every way of sending: inline data must have been copied, for the fixture
 * makes the next message in the same memory. */
START_TEST(test_others_wait_for_progress)
{
    pair_t pair;

    pair_open(&pair, HOLD_LONG);
    t_progress();
    send_without_progress(&pair, (t_how_t)_i, 6);
    only_b(&pair, 1000);
    ck_assert_uint_eq(pair.stream.got, 2);
    T_WAIT(pair.stream.got == 7);
    t_end_close_all();
    ck_assert_uint_ge(t_stats_sum("batched"), 5);
    ck_assert_uint_eq(t_stats_sum("batches_late"), 0);
}
END_TEST


/* 32 fit: the 33rd that is held finds an empty chain. */
START_TEST(test_full_chain_goes)
{
    pair_t pair;

    pair_open(&pair, HOLD_LONG);
    t_progress();
    send_without_progress(&pair, T_SHORT, 1 + 32 + 3);
    pair.a->is_stopped = 1;
    T_WAIT(pair.stream.got == 1 + 1 + 32);
    pair.a->is_stopped = 0;
    only_b(&pair, 1000);
    ck_assert_uint_eq(pair.stream.got, 1 + 1 + 32);
    T_WAIT(pair.stream.got == pair.link->sent);
}
END_TEST


/* The program computes: the timer rings, and next time nothing is held. */
START_TEST(test_timer_rings)
{
    pair_t pair;
    unsigned round;

    pair_open(&pair, HOLD_SHORT);
    for (round = 0; round < 3; round++) {
        t_progress();
        send_without_progress(&pair, T_BCOPY, 4);
        pair.a->is_stopped = 1;
        T_WAIT(pair.stream.got == pair.link->sent);
        pair.a->is_stopped = 0;
    }
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("batches_late"), 1);
}
END_TEST


/* Ends whose first message has gone, alone; the next doorbell is the slow one. */
static void slow_open(pair_t *pair)
{
    pair_open(pair, HOLD_SLOW);
    t_progress();
    send_without_progress(pair, T_SHORT, 1);
    __atomic_store_n(&device.is_slow, 1, __ATOMIC_RELAXED);
}


/* The timer wants to ring while the program does, who has the same processor
 * perhaps: it must not turn round until then. And it has to come back, for the
 * last three. */
START_TEST(test_timer_meets_doorbell)
{
    pair_t pair;
    double used;

    slow_open(&pair);
    used = cpu_ms();
    send_without_progress(&pair, T_SHORT, 32 + 3);
    ck_assert_double_lt(cpu_ms() - used, SLOW_MS / 2);
    ck_assert_int_eq(device.is_begun, 1);
    pair.a->is_stopped = 1;
    T_WAIT(pair.stream.got == pair.link->sent);
    pair.a->is_stopped = 0;
}
END_TEST


/* The other way round: the program posts while the timer rings. */
START_TEST(test_doorbell_meets_timer)
{
    pair_t pair;
    double used;

    slow_open(&pair);
    send_without_progress(&pair, T_SHORT, 3);
    pair.a->is_stopped = 1;
    T_WAIT(__atomic_load_n(&device.is_begun, __ATOMIC_ACQUIRE));
    pair.a->is_stopped = 0;
    used = cpu_ms();
    send_without_progress(&pair, T_SHORT, 1);
    ck_assert_double_lt(cpu_ms() - used, SLOW_MS / 2);
    T_WAIT(pair.stream.got == pair.link->sent);
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("batches_late"), 1);
}
END_TEST


/* What is too long to wait goes at once, behind what has waited. */
START_TEST(test_long_one_takes_along)
{
    pair_t pair;

    pair_open(&pair, HOLD_LONG);
    t_progress();
    send_without_progress(&pair, T_SHORT, 3);
    ck_assert_int_eq(t_try_send(pair.link, T_ZCOPY, 8000), UCS_OK);
    pair.a->is_stopped = 1;
    T_WAIT(pair.stream.got == 1 + 4);
    pair.a->is_stopped = 0;
    t_end_close_all();
    ck_assert_uint_ge(t_stats_sum("batched"), 3);
}
END_TEST


/* A chain belongs to one QP: a message to another peer posts it. */
START_TEST(test_two_peers)
{
    t_stream_t stream;
    t_link_t *other;
    t_end_t *c;
    pair_t pair;

    pair_open(&pair, HOLD_LONG);
    c     = t_end_open("");
    other = t_link_up(pair.a, c, 6, &stream);

    t_progress();
    send_without_progress(&pair, T_SHORT, 4);
    ck_assert_int_eq(t_try_send(other, T_SHORT, 50), UCS_OK);
    pair.a->is_stopped = 1;
    T_WAIT((pair.stream.got == 5) && (stream.got == 2));
    pair.a->is_stopped = 0;
}
END_TEST


/* What is held when its endpoint, or the interface, goes. */
START_TEST(test_closed_while_held)
{
    pair_t pair;

    pair_open(&pair, HOLD_LONG);
    t_progress();
    send_without_progress(&pair, _i ? T_ZCOPY : T_BCOPY, 5);
    t_link_close(pair.link);
    T_WAIT(pair.stream.got == 6);
}
END_TEST


START_TEST(test_peer_gone_while_held)
{
    pair_t pair;

    pair_open(&pair, HOLD_LONG " TIMEOUT=8ms RETRY_COUNT=3");
    t_expect_loss();
    pair.b->is_rude = 1;
    t_progress();
    send_without_progress(&pair, T_ZCOPY, 5);
    t_end_close(pair.b);
    T_WAIT((pair.a->errors == 1) && (pair.link->zcopies == 0));
}
END_TEST


/* Long enough for every meeting of timer, progress and a full chain. */
START_TEST(test_random)
{
    const uint64_t count = t_some(25000);
    t_how_t how;
    pair_t pair;
    t_rng_t rng;
    unsigned n;

    t_rng_init(&rng, 0xc4a1 + _i);
    pair_open(&pair, _i ? "TX_BATCH=on TX_BATCH_TIMEOUT=10us SQ_DEPTH=16"
                        : "TX_BATCH=on TX_BATCH_TIMEOUT=50us");
    while (pair.link->sent < count) {
        for (n = t_rng_below(&rng, 50); n > 0; n--) {
            how = (t_how_t)t_rng_below(&rng, T_HOW_LAST);
            if (t_try_send(pair.link, how, 8 + t_rng_below(&rng, 90)) !=
                UCS_OK) {
                break;
            }
        }
        if (t_rng_once_in(&rng, 100)) {
            ck_assert_int_eq(t_ep_flush(pair.link), UCS_OK);
        }
        t_progress_or_yield();
    }
    T_WAIT((pair.stream.got == pair.link->sent) && (pair.link->zcopies == 0));
}
END_TEST


START_TEST(test_options)
{
    t_end_t *end;

    t_only_daqiri("has these options");
    t_expect_log("UCX_DAQIRI_TX_BATCH_TIMEOUT");
    ck_assert_int_eq(t_end_try_open(NULL, "TX_BATCH_TIMEOUT=61s", &end),
                     UCS_ERR_INVALID_PARAM);
    ck_assert_int_eq(t_end_try_open(NULL, "TX_BATCH_TIMEOUT=0", &end),
                     UCS_ERR_INVALID_PARAM);
    ck_assert_uint_eq(t_log_count("UCX_DAQIRI_TX_BATCH_TIMEOUT"), 2);
}
END_TEST


/* ---- READs ---- */

enum {
    READS       = 4,
    READ_SHORT  = 2048,
    READ_LENGTH = 64 << 10,
    ASK_ID      = 9
};

/* A program of A that reads B's memory, piece by piece, when it is asked. */
typedef struct {
    pair_t     pair;
    t_region_t to, from;
    t_comp_t   comp[READS];
    unsigned   started;
} reader_t;


static void reader_open(reader_t *reader)
{
    pair_t *pair = &reader->pair;

    pair_open(pair, HOLD_LONG);
    reader->started = 0;
    t_region_open(&reader->to, pair->a, NULL, READS * READ_LENGTH);
    t_region_open(&reader->from, pair->b, NULL, READS * READ_LENGTH);
    memset(reader->from.mem, 0x5a, reader->from.length);
}


/* Short and long ones in turns. */
static size_t reader_length(unsigned i)
{
    return (i % 2) ? READ_LENGTH : READ_SHORT;
}


static void reader_read(reader_t *reader)
{
    const size_t offset = reader->started * READ_LENGTH;
    const size_t length = reader_length(reader->started);
    t_comp_t *comp      = &reader->comp[reader->started++];
    uct_iov_t iov       = {.buffer = reader->to.mem + offset,
                           .length = length,
                           .memh   = reader->to.memh, .count = 1};

    t_comp_init(comp);
    ck_assert_int_eq(uct_ep_get_zcopy(reader->pair.link->ep, &iov, 1,
                                      (uintptr_t)reader->from.mem + offset,
                                      reader->from.key.rkey, &comp->super),
                     UCS_INPROGRESS);
}


static ucs_status_t reader_on_ask(void *arg, void *data, size_t length,
                                  unsigned flags)
{
    reader_t *reader = arg;

    (void)data;
    (void)length;
    (void)flags;
    while (reader->started < READS) {
        reader_read(reader);
    }
    return UCS_OK;
}


/* All that was started is over, and right. */
static void reader_close(reader_t *reader)
{
    size_t offset;
    unsigned i;

    for (i = 0; i < reader->started; i++) {
        offset = i * READ_LENGTH;
        T_WAIT(reader->comp[i].calls == 1);
        ck_assert_int_eq(reader->comp[i].super.status, UCS_OK);
        ck_assert_int_eq(memcmp(reader->to.mem + offset,
                                reader->from.mem + offset,
                                reader_length(i)), 0);
    }
    t_region_close(&reader->to);
    t_region_close(&reader->from);
}


/* What a rendezvous does: asked by a message, inside of a progress call. A long
 * READ takes along the short one before it, and waits for no other. */
START_TEST(test_reads_share_a_doorbell)
{
    reader_t reader;
    t_link_t *back;

    reader_open(&reader);
    ck_assert_int_eq(uct_iface_set_am_handler(reader.pair.a->iface, ASK_ID,
                                              reader_on_ask, &reader, 0),
                     UCS_OK);
    back = t_link_open(reader.pair.b, &reader.pair.a->address, ASK_ID);
    t_send(back, T_SHORT, 8);
    T_WAIT(reader.started == READS);
    reader_close(&reader);
    t_end_close_all();
    ck_assert_uint_ge(t_stats_sum("batched"), READS);
    ck_assert_uint_ge(t_stats_sum("batches"), READS / 2);
}
END_TEST


/* Outside, the device may be busy with the first while the next is prepared. */
START_TEST(test_read_goes_at_once)
{
    volatile uint8_t *last;
    reader_t reader;

    reader_open(&reader);
    t_progress();
    while (reader.started < 3) {
        reader_read(&reader);
    }
    last                      = &reader.to.mem[2 * READ_LENGTH + READ_SHORT - 1];
    reader.pair.a->is_stopped = 1;
    T_WAIT(*last == 0x5a);
    reader.pair.a->is_stopped = 0;
    reader_close(&reader);
}
END_TEST


/* A device that no kernel emulates is left alone, unless asked. */
START_TEST(test_off)
{
    pair_t pair;

    pair_open(&pair, "TX_BATCH=off");
    t_progress();
    send_without_progress(&pair, T_BCOPY, 10);
    pair.a->is_stopped = 1;
    T_WAIT(pair.stream.got == 11);
    pair.a->is_stopped = 0;
}
END_TEST


static Suite *chain_suite(void)
{
    Suite *suite = suite_create("chain");
    TCase *held  = t_uct_case("held");
    TCase *ends  = t_uct_case("ends");
    TCase *many  = t_uct_case("many");

    tcase_add_test(held, test_first_goes_at_once);
    tcase_add_test(held, test_first_of_a_stream_waits);
    tcase_add_loop_test(held, test_others_wait_for_progress, 0, T_HOW_LAST);
    tcase_add_test(held, test_full_chain_goes);
    tcase_add_test(held, test_timer_rings);
    tcase_add_test(held, test_timer_meets_doorbell);
    tcase_add_test(held, test_doorbell_meets_timer);
    tcase_add_test(held, test_long_one_takes_along);
    tcase_add_test(held, test_two_peers);
    tcase_add_test(held, test_reads_share_a_doorbell);
    tcase_add_test(held, test_read_goes_at_once);
    tcase_add_test(held, test_off);
    tcase_add_test(held, test_options);
    suite_add_tcase(suite, held);

    tcase_add_loop_test(ends, test_closed_while_held, 0, 2);
    tcase_add_test(ends, test_peer_gone_while_held);
    suite_add_tcase(suite, ends);

    tcase_add_loop_test(many, test_random, 0, 2);
    suite_add_tcase(suite, many);
    return suite;
}


T_UCT_MAIN(chain_suite)
