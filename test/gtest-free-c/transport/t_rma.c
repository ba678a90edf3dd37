/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUT and GET: what is written is exactly what was meant, and not a byte
 * around it; the peer need not take part; and a key that is wrong hurts
 * nobody but the endpoint that used it.
 */
#include "t_uct.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE = 3 << 20, GUARD = 64, OPS = 2000, PIECES_MAX = 32 };

/* Numbers that a team shares: an address, a packed key, where we are. */
enum { ADDRESS, IS_WRITTEN, IS_CHECKED, KEY };

/* Operations of one link, and how they came out. */
typedef struct {
    uct_completion_t comp;
    unsigned         *over;
    ucs_status_t     *status;
} op_t;

typedef struct {
    t_end_t    *a, *b;
    t_link_t   *link;
    t_stream_t stream;
    t_region_t local, remote;
    unsigned   started, over;
    ucs_status_t status; /* of the last that failed                          */
} pair_t;


static void pair_open(pair_t *pair, const char *options, int is_loop)
{
    *pair      = (pair_t){.status = UCS_OK};
    pair->a    = t_end_open(options);
    pair->b    = is_loop ? pair->a : t_end_open(options);
    pair->link = t_link_open(pair->a, &pair->b->address, 1);
    t_stream_open(&pair->stream, pair->b, 1);
    t_region_open(&pair->local, pair->a, NULL, SIZE);
    t_region_open(&pair->remote, pair->b, NULL, SIZE);
}


static void pair_close(pair_t *pair)
{
    T_WAIT(pair->over == pair->started);
    t_region_close(&pair->local);
    t_region_close(&pair->remote);
}


static void on_op(uct_completion_t *comp)
{
    op_t *op = (op_t*)comp;

    (*op->over)++;
    if (comp->status != UCS_OK) {
        *op->status = comp->status;
    }
    memset(op, 0xdd, sizeof(*op)); /* a second call will not survive it */
    free(op);
}


typedef enum {
    PUT, /* on registered memory */
    GET,
    PUT_SHORT,
    PUT_BCOPY,
    GET_BCOPY,
    KINDS
} kind_t;

static int is_put(kind_t kind)
{
    return (kind != GET) && (kind != GET_BCOPY);
}


static size_t max_length(const t_end_t *end, kind_t kind)
{
    switch (kind) {
    case PUT_SHORT:
        return end->attr.cap.put.max_short;
    case PUT_BCOPY:
        return end->attr.cap.put.max_bcopy;
    case GET_BCOPY:
        return end->attr.cap.get.max_bcopy;
    default:
        return SIZE;
    }
}


static size_t max_pieces(const t_end_t *end, kind_t kind)
{
    switch (kind) {
    case PUT:
        return end->attr.cap.put.max_iov;
    case GET:
        return end->attr.cap.get.max_iov;
    default:
        return 1;
    }
}


static size_t pack(void *to, void *arg)
{
    const uct_iov_t *iov = arg;

    memcpy(to, iov->buffer, iov->length);
    return iov->length;
}


static void unpack(void *to, const void *data, size_t length)
{
    memcpy(to, data, length);
}


static ucs_status_t call_op(pair_t *pair, kind_t kind, uct_iov_t *iov,
                            unsigned pieces, uint64_t remote, uct_rkey_t rkey,
                            uct_completion_t *comp)
{
    uct_ep_h ep = pair->link->ep;
    ssize_t length;

    switch (kind) {
    case PUT:
        return uct_ep_put_zcopy(ep, iov, pieces, remote, rkey, comp);
    case GET:
        return uct_ep_get_zcopy(ep, iov, pieces, remote, rkey, comp);
    case PUT_SHORT:
        return uct_ep_put_short(ep, iov->buffer, iov->length, remote, rkey);
    case PUT_BCOPY:
        length = uct_ep_put_bcopy(ep, pack, iov, remote, rkey);
        return (length < 0) ? (ucs_status_t)length : UCS_OK;
    default:
        return uct_ep_get_bcopy(ep, unpack, iov->buffer, iov->length, remote,
                                rkey, comp);
    }
}

/* One operation between the same offsets of the two regions, in pieces. */
static ucs_status_t try_op(pair_t *pair, kind_t kind, size_t at, size_t length,
                           unsigned pieces, uct_rkey_t rkey)
{
    op_t *op = malloc(sizeof(*op));
    uct_iov_t iov[PIECES_MAX];
    ucs_status_t status;
    size_t done = 0;
    unsigned i;

    ck_assert_ptr_nonnull(op);
    ck_assert_uint_le(pieces, PIECES_MAX);
    *op = (op_t){.comp   = {.func = on_op, .count = 1, .status = UCS_OK},
                 .over   = &pair->over,
                 .status = &pair->status};
    for (i = 0; i < pieces; i++) {
        iov[i] = (uct_iov_t){.buffer = pair->local.mem + at + done,
                             .length = (i + 1 == pieces) ? length - done
                                                         : length * 2 * i /
                                                           (pieces * pieces),
                             .memh   = pair->local.memh,
                             .count  = 1};
        done += iov[i].length;
    }
    status = call_op(pair, kind, iov, pieces,
                     (uintptr_t)pair->remote.mem + at, rkey, &op->comp);
    if (status == UCS_INPROGRESS) {
        pair->started++;
    } else {
        free(op);
    }
    return status;
}


static void do_op(pair_t *pair, kind_t kind, size_t at, size_t length,
                  unsigned pieces)
{
    ucs_status_t status;

    while ((status = try_op(pair, kind, at, length, pieces,
                            pair->remote.key.rkey)) == UCS_ERR_NO_RESOURCE) {
        t_progress_or_yield();
    }
    ck_assert((status == UCS_OK) || (status == UCS_INPROGRESS));
}


static uint8_t *source(const pair_t *pair, kind_t kind)
{
    return is_put(kind) ? pair->local.mem : pair->remote.mem;
}


/* An operation copies all that it is asked to, and nothing beside that. */
static void check_op(pair_t *pair, kind_t kind, size_t at, size_t length,
                     unsigned pieces)
{
    const uint8_t *from = source(pair, kind);
    uint8_t *to         = is_put(kind) ? pair->remote.mem : pair->local.mem;
    size_t i;

    memset(to, 0x55, at + length + GUARD);
    do_op(pair, kind, at, length, pieces);
    T_WAIT(pair->over == pair->started);
    ck_assert_int_eq(t_ep_flush(pair->link), UCS_OK);
    ck_assert(memcmp(to + at, from + at, length) == 0);
    for (i = 1; i <= GUARD; i++) {
        ck_assert_uint_eq(to[at - i], 0x55);
        ck_assert_uint_eq(to[at + length + i - 1], 0x55);
    }
}


START_TEST(test_sizes)
{
    static const size_t sizes[] = {0, 1, 7, 8, 9, 63, 64, 65, 4095, 4096, 4097,
                                   8000, 8191, 8192, 8256, 12280, 12288, 65536,
                                   65537, 1 << 20,
                                   (2 << 20) + 3};
    kind_t kind = _i % KINDS;
    unsigned pieces, k;
    size_t i, at;
    pair_t pair;
    t_rng_t rng;

    t_rng_init(&rng, 0x4100);
    pair_open(&pair, "", _i / KINDS);
    t_rng_fill(&rng, source(&pair, kind), SIZE);
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (sizes[i] > max_length(pair.a, kind)) {
            continue;
        }
        pieces = max_pieces(pair.a, kind);
        pieces = (pieces < 4) ? pieces : 4;
        for (k = 1; k <= pieces; k++) {
            at = GUARD + t_rng_below(&rng, 9);
            check_op(&pair, kind, at, sizes[i], k);
        }
    }
    ck_assert_int_eq(pair.status, UCS_OK);
    pair_close(&pair);
}
END_TEST


/* Every number of pieces, up to what the device takes, the first of them empty;
 * at any offset, around a packet's length and what a buffer holds. */
START_TEST(test_pieces)
{
    static const size_t sizes[] = {1, 31, 32, 33, 1000, 4095, 4096, 4097, 8248,
                                   8249, 65537};
    kind_t kind = _i;
    unsigned pieces, k;
    size_t i, at;
    pair_t pair;
    t_rng_t rng;

    t_rng_init(&rng, 0x4108);
    pair_open(&pair, "MAX_SGE=32", 0);
    pieces = max_pieces(pair.a, kind);
    pieces = (pieces < PIECES_MAX) ? pieces : PIECES_MAX;
    t_rng_fill(&rng, source(&pair, kind), SIZE);
    for (k = 1; k <= pieces; k++) {
        for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            at = GUARD + t_rng_below(&rng, 70);
            check_op(&pair, kind, at, sizes[i], k);
        }
    }
    ck_assert_int_eq(pair.status, UCS_OK);
    pair_close(&pair);
}
END_TEST


/* As long as is claimed, exactly; and then one byte more. (What packs says
 * itself how much it has packed.) */
START_TEST(test_longest)
{
    kind_t kind = _i;
    pair_t pair;
    t_rng_t rng;
    size_t max;

    t_rng_init(&rng, 0x4110);
    pair_open(&pair, "", 0);
    max = max_length(pair.a, kind);
    ck_assert_uint_gt(max, 0);
    t_rng_fill(&rng, source(&pair, kind), SIZE);
    check_op(&pair, kind, GUARD, max, 1);
    if (kind != PUT_BCOPY) {
        t_expect_log("bytes");
        ck_assert_int_eq(try_op(&pair, kind, GUARD, max + 1, 1,
                                pair.remote.key.rkey),
                         UCS_ERR_INVALID_PARAM);
    }
    pair_close(&pair);
}
END_TEST


/* Each GET holds a send buffer until its data has come. */
START_TEST(test_buffers_are_few)
{
    pair_t pair;
    t_rng_t rng;
    unsigned i;
    size_t at;

    t_only_daqiri("has this option");
    t_rng_init(&rng, 0x4120);
    pair_open(&pair, "TX_BUFFERS=64 SQ_DEPTH=512", 0);
    t_rng_fill(&rng, pair.remote.mem, SIZE);
    memset(pair.local.mem, 0, SIZE);
    for (i = 0; i < OPS; i++) {
        at = i * 1024;
        do_op(&pair, (_i == 0) ? GET_BCOPY : (kind_t)(GET_BCOPY - i % 2), at,
              1024, 1);
    }
    T_WAIT(pair.over == pair.started);
    ck_assert_int_eq(t_ep_flush(pair.link), UCS_OK);
    for (i = 0; i < OPS; i++) {
        at = i * 1024;
        ck_assert(memcmp(pair.local.mem + at, pair.remote.mem + at, 1024) ==
                  0);
    }
    pair_close(&pair);
}
END_TEST


/* Many under way, among messages, through queues of any size. A message that
 * follows a PUT behind a fence finds it done. */
START_TEST(test_stream)
{
    static const char *const options[] = {
        "", "SQ_DEPTH=8 RX_WINDOW=8", "SQ_DEPTH=4 CQ_LEN=4 SIGNAL_EVERY=1"
    };
    unsigned i;
    pair_t pair;
    t_rng_t rng;
    size_t at;

    t_rng_init(&rng, 0x4200 + _i);
    pair_open(&pair, options[_i], 0);
    t_rng_fill(&rng, pair.local.mem, SIZE);
    memset(pair.remote.mem, 0, SIZE);
    for (i = 0; i < OPS; i++) {
        at = i * 1024;
        do_op(&pair, PUT, at, 1 + t_rng_below(&rng, 1024), 1);
        ck_assert_int_eq(uct_ep_fence(pair.link->ep, 0), UCS_OK);
        t_send(pair.link, T_BCOPY, 20);
        if (t_rng_once_in(&rng, 10)) {
            T_WAIT(pair.stream.got == pair.link->sent);
            ck_assert_uint_eq(pair.remote.mem[at], pair.local.mem[at]);
        }
    }
    T_WAIT(pair.stream.got == pair.link->sent);
    ck_assert_int_eq(t_ep_flush(pair.link), UCS_OK);
    ck_assert_uint_eq(pair.over, pair.started);
    ck_assert_int_eq(pair.status, UCS_OK);
    pair_close(&pair);
}
END_TEST


/* What a GET brings is what a PUT before it has written. */
START_TEST(test_put_then_get)
{
    uint8_t *copy = malloc(SIZE);
    unsigned i;
    pair_t pair;
    t_rng_t rng;
    size_t length;

    ck_assert_ptr_nonnull(copy);
    t_rng_init(&rng, 0x4300);
    pair_open(&pair, "", 0);
    for (i = 0; i < 200; i++) {
        length = t_rng_range(&rng, 1, 20000);
        t_rng_fill(&rng, pair.local.mem, length);
        memcpy(copy, pair.local.mem, length);
        do_op(&pair, PUT, 0, length, 1);
        T_WAIT(pair.over == pair.started);
        memset(pair.local.mem, 0, length);
        ck_assert_int_eq(uct_ep_fence(pair.link->ep, 0), UCS_OK);
        do_op(&pair, GET, 0, length, 1);
        T_WAIT(pair.over == pair.started);
        ck_assert(memcmp(copy, pair.local.mem, length) == 0);
    }
    free(copy);
    pair_close(&pair);
}
END_TEST


/* A completion that closes its endpoint. */
typedef struct {
    t_comp_t super;
    t_link_t *link;
} last_t;

static void last_go(uct_completion_t *self)
{
    last_t *last = ucs_container_of(self, last_t, super.super);

    last->super.calls++;
    t_link_close(last->link);
}

/* The first completion closes the endpoint. The others have come with it, and are told
 * before the endpoint is gone. */
START_TEST(test_completion_closes)
{
    enum { OTHERS = 5 };
    t_comp_t other[OTHERS];
    uct_iov_t iov;
    last_t last;
    pair_t pair;
    unsigned i;

    t_only_daqiri("waits for what an endpoint has under way");
    pair_open(&pair, "", 0);
    T_WAIT(t_ep_flush(pair.link) == UCS_OK);
    iov = (uct_iov_t){
        .buffer = pair.local.mem, .length = 64, .memh = pair.local.memh, .count = 1,
    };
    t_comp_init(&last.super);
    last.super.super.func = last_go;
    last.link             = pair.link;
    pair.a->is_stopped    = 1;
    ck_assert_int_eq(uct_ep_put_zcopy(pair.link->ep, &iov, 1,
                                      (uintptr_t)pair.remote.mem,
                                      pair.remote.key.rkey, &last.super.super),
                     UCS_INPROGRESS);
    for (i = 0; i < OTHERS; i++) {
        t_comp_init(&other[i]);
        ck_assert_int_eq(uct_ep_put_zcopy(pair.link->ep, &iov, 1,
                                          (uintptr_t)pair.remote.mem,
                                          pair.remote.key.rkey, &other[i].super),
                         UCS_INPROGRESS);
    }
    pair.a->is_stopped = 0;
    T_WAIT(last.super.calls == 1);
    for (i = 0; i < OTHERS; i++) {
        ck_assert_uint_eq(other[i].calls, 1);
        ck_assert_int_eq(other[i].super.status, UCS_OK);
    }
    pair_close(&pair);
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("stray_completions"), 0);
}
END_TEST


/* ---- Refused, or failed ---- */

START_TEST(test_too_many_pieces)
{
    kind_t kind = _i;
    unsigned max;
    pair_t pair;

    t_expect_log("an iov of");
    pair_open(&pair, "MAX_SGE=3", 0);
    max = (kind == PUT) ? pair.a->attr.cap.put.max_iov
                        : pair.a->attr.cap.get.max_iov;
    do_op(&pair, kind, 0, 100, max);
    T_WAIT(pair.over == 1);
    ck_assert_int_eq(try_op(&pair, kind, 0, 100, max + 1,
                            pair.remote.key.rkey), UCS_ERR_INVALID_PARAM);
    do_op(&pair, kind, 0, 100, max);
    pair_close(&pair);
}
END_TEST


static void pair_open_for_wrong_key(pair_t *pair)
{
    t_expect_loss();
    t_expect_log("wrong or expired key");
    pair_open(pair, "FAILURE=error", 0);
    t_send(pair->link, T_BCOPY, 10);
    T_WAIT(pair->stream.got == 1);
}


/* A key that nobody gave out: that endpoint fails, its operations each say so
 * once, the message names the peer's memory; the ends live on. */
START_TEST(test_wrong_key)
{
    kind_t kind = _i;
    ucs_status_t status;
    pair_t pair;
    unsigned i;

    pair_open_for_wrong_key(&pair);
    for (i = 0; i < 10; i++) {
        status = try_op(&pair, kind, 0, 5000, 1, 0xdeadbeef + i);
        ck_assert((status == UCS_INPROGRESS) || UCS_STATUS_IS_ERR(status));
        t_progress();
    }
    T_WAIT((pair.a->errors == 1) && (pair.over == pair.started));
    ck_assert_int_ne(pair.status, UCS_OK);
    ck_assert_int_eq(pair.a->error, UCS_ERR_ENDPOINT_TIMEOUT);
    ck_assert_uint_eq(t_log_count("wrong or expired key"), 1);
    ck_assert_ptr_eq(pair.a->error_ep, pair.link->ep);
    ck_assert_int_eq(pair.b->errors, 0);
    pair_close(&pair);
}
END_TEST


/* The endpoint hears of its end in the progress call in which its last request has
 * failed: a program that flushes and then looks sees it. */
START_TEST(test_wrong_key_told)
{
    kind_t kind = _i;
    pair_t pair;

    pair_open_for_wrong_key(&pair);
    ck_assert_int_eq(t_ep_flush(pair.link), UCS_OK);
    ck_assert_int_eq(try_op(&pair, kind, 0, 5000, 1, 0xdeadbeef),
                     UCS_INPROGRESS);
    pair.b->is_stopped = 1; /* so that nothing comes in between */
    T_WAIT(pair.over == pair.started);
    ck_assert_uint_eq(pair.a->errors, 1);
    ck_assert_int_ne(pair.status, UCS_OK);
    pair.b->is_stopped = 0;
    pair_close(&pair);
}
END_TEST


/* ---- Processes ---- */

/* Rank 1 computes while rank 0 writes into its memory and reads it back. */
static void one_computes(t_team_t *team)
{
    volatile uint64_t *number = team->shared->number;
    t_end_t *end              = t_end_open("");
    t_region_t region;
    pair_t pair;
    t_rng_t rng;

    t_rng_init(&rng, 0x4400);
    t_region_open(&region, end, NULL, SIZE);
    if (team->rank == 1) {
        memcpy((void*)&number[KEY], region.packed, T_KEY_MAX);
        number[ADDRESS] = (uintptr_t)region.mem;
        t_team_put_address(team, end);
        while (!number[IS_WRITTEN]) {
            sched_yield(); /* no progress */
        }
        ck_assert_uint_eq(t_checksum(region.mem, SIZE), number[IS_CHECKED]);
        t_team_barrier(team);
        t_region_close(&region);
        return;
    }

    pair = (pair_t){.a = end, .b = end, .status = UCS_OK};
    pair.link       = t_link_open(end, t_team_get_address(team, 1), 1);
    pair.local      = region;
    pair.remote.mem = (uint8_t*)(uintptr_t)number[ADDRESS];
    memcpy(pair.remote.packed, (void*)&number[KEY], T_KEY_MAX);
    ck_assert_int_eq(uct_rkey_unpack(end->component, pair.remote.packed,
                                     &pair.remote.key), UCS_OK);
    t_rng_fill(&rng, region.mem, SIZE);
    number[IS_CHECKED] = t_checksum(region.mem, SIZE);
    do_op(&pair, PUT, 0, SIZE, 1);
    ck_assert_int_eq(t_ep_flush(pair.link), UCS_OK);
    memset(region.mem, 0, SIZE);
    do_op(&pair, GET, 0, SIZE, 1);
    T_WAIT(pair.over == 2);
    ck_assert_uint_eq(t_checksum(region.mem, SIZE), number[IS_CHECKED]);
    number[IS_WRITTEN] = 1;
    t_team_barrier(team);
    ck_assert_int_eq(uct_rkey_release(end->component, &pair.remote.key),
                     UCS_OK);
    t_region_close(&region);
}

START_TEST(test_one_computes)
{
    t_team_run(2, 0, one_computes);
}
END_TEST


/* Rank 1 is killed while rank 0 writes into its memory: every operation comes
 * to an end, once. It must not be given up before, however long nobody lets it
 * run: then nobody would kill it. */
static void one_is_killed(t_team_t *team)
{
    volatile uint64_t *number = team->shared->number;
    t_end_t *end = t_end_open("TIMEOUT=32ms RETRY_COUNT=3 "
                              "RECOVERY_TIMEOUT=2s");
    int is_killed = 0;
    ucs_status_t status;
    t_region_t region;
    pair_t pair;

    t_region_open(&region, end, NULL, SIZE);
    if (team->rank == 1) {
        memcpy((void*)&number[KEY], region.packed, T_KEY_MAX);
        number[ADDRESS] = (uintptr_t)region.mem;
        t_team_put_address(team, end);
        T_WAIT(0);
    }

    pair = (pair_t){.a = end, .b = end, .status = UCS_OK};
    pair.link       = t_link_open(end, t_team_get_address(team, 1), 1);
    pair.local      = region;
    pair.remote.mem = (uint8_t*)(uintptr_t)number[ADDRESS];
    memcpy(pair.remote.packed, (void*)&number[KEY], T_KEY_MAX);
    ck_assert_int_eq(uct_rkey_unpack(end->component, pair.remote.packed,
                                     &pair.remote.key), UCS_OK);
    do {
        status = try_op(&pair, pair.started % 2, 0, 100000, 1,
                        pair.remote.key.rkey);
        t_progress_or_yield();
        if ((pair.started == 200) && !is_killed) {
            /* once: when it is gone the team has 0 for its pid */
            kill(team->shared->pid[1], SIGKILL);
            is_killed = 1;
        }
    } while ((status == UCS_INPROGRESS) || (status == UCS_ERR_NO_RESOURCE));
    T_WAIT((end->errors == 1) && (pair.over == pair.started));
    ck_assert(is_killed); /* or rank 1 would be waited for in vain */
    /* a queue pair that was idle has nothing that can fail */
    ck_assert((pair.status != UCS_OK) || (t_live_sum("idle_closes") > 0));
    ck_assert_int_eq(uct_rkey_release(end->component, &pair.remote.key),
                     UCS_OK);
    t_region_close(&region);
}

START_TEST(test_one_is_killed)
{
    t_expect_loss();
    t_expect_log("; lost, connecting again");
    t_team_run(2, 1u << 1, one_is_killed);
}
END_TEST


/* ---- Queue pairs that die ---- */

static void plan_set(const char *text)
{
    t_only_daqiri("goes on with another queue pair");
    if (t_is_softroce()) {
        t_skip("only softverbs fails by a plan");
    }
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS", text, 1), 0);
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS_LOG", "/dev/null", 1), 0);
}


/* A message fails, on each queue pair the second one. What was written before it
 * is over, though nobody has asked: its owner has written there since, and that
 * stays. */
START_TEST(test_written_once)
{
    enum { ROUNDS = 6 };
    volatile uint64_t *word;
    uint64_t value;
    pair_t pair;

#ifdef __SANITIZE_THREAD__
    t_skip("memory is looked at that the device has written, untold");
#endif
    t_no_idle_closes("it counts the requests of a queue pair");
    plan_set("complete qp=rc op=send n=2 status=RETRY_EXC_ERR");
    t_expect_losses_of_qps();
    pair_open(&pair, "CONN_RETRY=5ms", 0);
    word = (volatile uint64_t*)pair.remote.mem;
    for (value = 1; value <= ROUNDS; value++) {
        *word = 0;
        while (uct_ep_put_short(pair.link->ep, &value, sizeof(value),
                                (uintptr_t)word, pair.remote.key.rkey) ==
               UCS_ERR_NO_RESOURCE) {
            t_progress_or_yield();
        }
        T_WAIT(*word == value);
        *word = 100 + value;
        t_send(pair.link, T_SHORT, 10);
        T_WAIT(pair.stream.got == value);
        ck_assert_uint_eq(*word, 100 + value);
    }
    pair_close(&pair);
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("qp_failures"), 2 * (ROUNDS - 1));
}
END_TEST


/* An end that is only read from sends nothing. It loses its queue pair again and
 * again, for longer than recovery may take: but between any two of these somebody
 * has read, and says so. */
START_TEST(test_only_read)
{
    const time_t until = time(NULL) + 6;
    pair_t pair;

    plan_set("qp-error qp=rc at=200ms every=200ms");
    t_expect_losses_of_qps();
    pair_open(&pair, "CONN_RETRY=5ms RECOVERY_TIMEOUT=3s", 0);
    while (time(NULL) < until) {
        do_op(&pair, GET_BCOPY, 0, 8, 1);
        T_WAIT(pair.over == pair.started);
        ck_assert_int_eq(pair.status, UCS_OK);
    }
    t_plan_by_command("drop qp=ud.99");
    /* both are there again when one has read; losses and recoveries need not be
     * as many, for a queue pair may be lost before it has come back */
    do_op(&pair, GET_BCOPY, 0, 8, 1);
    T_WAIT(pair.over == pair.started);
    ck_assert_int_eq(pair.status, UCS_OK);
    ck_assert_uint_eq(pair.a->errors, 0);
    pair_close(&pair);
    t_end_close_all();
    ck_assert_uint_gt(t_stats_sum("qp_failures"), 2);
}
END_TEST


/* ---- what it costs ---- */

enum { AM_SHORT, OP_PUT_SHORT = 3, GET_ZCOPY = 8, OP_LAST }; /* of UCX       */
enum { COST_CASES = 4 };

/* What UCX asks of an operation, up to the overhead. */
typedef struct {
    uint64_t field_mask; /* OPERATION and SEND_PRE_OVERHEAD                  */
    int      operation;
    int      memory_types[2];
    uint8_t  sys_devices[2];
    double   overhead;
    uint64_t more[32];
} perf_attr_t;

typedef ucs_status_t (*estimate_t)(uct_iface_h iface, perf_attr_t *attr);

/* The kind of the device decides what a READ or a WRITE costs beyond a message, unless
 * the user does. Without options; with one, whatever the latency is; with 0. */
START_TEST(test_cost)
{
    const struct {
        const char *options;
        double     overhead;
    } cases[] = {
        {"",                                   t_is_softroce() ? 0 : 1.3e-6},
        {"LATENCY=300ns",                      t_is_softroce() ? 0 : 1.3e-6},
        {"LATENCY=300ns RDMA_OVERHEAD=700ns",  700e-9},
        {"RDMA_OVERHEAD=0",                    0},
    };
    double rdma = cases[_i].overhead;
    estimate_t estimate;
    perf_attr_t attr;
    t_end_t *end;
    int op;

    t_only_daqiri("is known to say so");
    *(void**)&estimate = dlsym(RTLD_DEFAULT, "uct_iface_estimate_perf");
    ck_assert(estimate != NULL);
    end = t_end_open(cases[_i].options);
    for (op = AM_SHORT; op < OP_LAST; op++) {
        attr = (perf_attr_t){.field_mask = 1 | (1 << 5), .operation = op};
        ck_assert_int_eq(estimate(end->iface, &attr), UCS_OK);
        /* whatever the ticks of UCX's clock are: on Soft-RoCE, microseconds */
        ck_assert_double_eq_tol(attr.overhead, end->attr.overhead +
                                ((op >= OP_PUT_SHORT) ? rdma : 0), 1e-12);
    }
    /* of no operation in particular */
    attr = (perf_attr_t){.field_mask = 1 << 5, .operation = GET_ZCOPY};
    ck_assert_int_eq(estimate(end->iface, &attr), UCS_OK);
    ck_assert_double_eq_tol(attr.overhead, end->attr.overhead, 1e-12);
    attr = (perf_attr_t){.field_mask = 1, .operation = GET_ZCOPY};
    ck_assert_int_eq(estimate(end->iface, &attr), UCS_OK);
    ck_assert_double_eq_tol(attr.overhead, 0, 1e-12);
}
END_TEST


static Suite *suite_rma(void)
{
    Suite *suite   = suite_create("rma");
    TCase *copied  = t_uct_case("copied");
    TCase *cost    = t_uct_case("cost");
    TCase *fenced  = t_uct_case("fenced");
    TCase *lost    = t_uct_case("lost");
    TCase *refused = t_uct_case("refused");
    TCase *team    = t_uct_case("two processes");

    tcase_add_loop_test(copied, test_sizes, 0, 2 * KINDS);
    tcase_add_loop_test(copied, test_pieces, PUT, GET + 1);
    tcase_add_loop_test(copied, test_longest, PUT_SHORT, KINDS);
    tcase_add_loop_test(copied, test_buffers_are_few, 0, 2);
    tcase_add_loop_test(copied, test_stream, 0, 3);
    suite_add_tcase(suite, copied);
    tcase_add_loop_test(cost, test_cost, 0, COST_CASES);
    suite_add_tcase(suite, cost);
    tcase_add_test(fenced, test_put_then_get);
    tcase_add_test(fenced, test_completion_closes);
    suite_add_tcase(suite, fenced);

    tcase_add_test(lost, test_written_once);
    tcase_add_test(lost, test_only_read);
    suite_add_tcase(suite, lost);

    tcase_add_loop_test(refused, test_too_many_pieces, 0, 2);
    tcase_add_loop_test(refused, test_wrong_key, 0, 2);
    tcase_add_loop_test(refused, test_wrong_key_told, 0, 2);
    suite_add_tcase(suite, refused);

    tcase_add_test(team, test_one_computes);
    tcase_add_test(team, test_one_is_killed);
    suite_add_tcase(suite, team);
    return suite;
}

T_UCT_MAIN(suite_rma)
