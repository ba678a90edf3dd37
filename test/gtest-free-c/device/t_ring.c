/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rings of softverbs: a connection has the memory that its messages need. Each test
 * looks into the receiver's file in /dev/shm, and checks every message.
 */
#include "softverbs/base/sv_wire.h"
#include "t_device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    DEPTH   = 512,
    LONGEST = 20000,      /* more than a record of any ring */
    SLOT    = 20032,      /* of the buffers, one for each message under way */
    SIZE    = DEPTH * SLOT
};

static const struct t_make ring_make = {.depth = DEPTH, .size = SIZE};
static const struct t_link ring_link = {.rnr_retry = 7, .timeout = 18,
                                        .retry_cnt = 6};

/* A signal ends flock(), and fallocate() on many kernels. Here so many signals end each
 * call of the device, before one call is made. */
static atomic_uint signals, calls;

static bool is_ended(void)
{
    if (atomic_fetch_add(&calls, 1) % (signals + 1) == signals) {
        return false;
    }
    errno = EINTR;
    return true;
}

int fallocate(int fd, int mode, off_t offset, off_t length)
{
    return ((mode == 0) && is_ended()) ?
                   -1 : (int)syscall(SYS_fallocate, fd, mode, offset, length);
}

int flock(int fd, int operation)
{
    return is_ended() ? -1 : (int)syscall(SYS_flock, fd, operation);
}

/* What has been sent, in order: a message is told by its number. */
struct flow {
    struct t_end end[2];
    uint32_t     length[DEPTH];
    unsigned     posted, sent, seen;
};

static void flow_open(struct flow *flow)
{
    memset(flow, 0, sizeof(*flow));
    t_softverbs_only("the rings are softverbs' own");
    t_pair_open(flow->end, &ring_make, &ring_link);
}

static size_t slot_of(unsigned number)
{
    return (size_t)(number % DEPTH) * SLOT;
}

static void flow_send(struct flow *flow, uint32_t length)
{
    uint8_t *data = flow->end[0].buf + slot_of(flow->posted);

    ck_assert_uint_lt(flow->posted - flow->seen, DEPTH);
    memset(data, (int)(flow->posted % 251), length);
    ck_assert_int_eq(t_post_recv(&flow->end[1], flow->posted,
                                 slot_of(flow->posted), SLOT), 0);
    ck_assert_int_eq(t_post_send(&flow->end[0], flow->posted,
                                 slot_of(flow->posted), length,
                                 IBV_SEND_SIGNALED), 0);
    flow->length[flow->posted % DEPTH] = length;
    flow->posted++;
}

static void flow_poll_sent(struct flow *flow)
{
    struct ibv_wc wc;

    while (ibv_poll_cq(flow->end[0].send_cq, 1, &wc) == 1) {
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(wc.wr_id, flow->sent);
        flow->sent++;
    }
}

/* One assertion for all bytes, because each costs a write to a file. */
static bool is_filled(const uint8_t *data, uint32_t length, uint8_t value)
{
    return (data[0] == value) && (memcmp(data, data + 1, length - 1) == 0);
}

/* Receives up to `most` of what is there. */
static void flow_receive(struct flow *flow, unsigned most)
{
    struct ibv_wc wc;
    unsigned count;

    for (count = 0; (count < most) &&
                    (ibv_poll_cq(flow->end[1].recv_cq, 1, &wc) == 1); ++count) {
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(wc.wr_id, flow->seen);
        ck_assert_uint_eq(wc.byte_len, flow->length[flow->seen % DEPTH]);
        ck_assert(is_filled(flow->end[1].buf + slot_of(flow->seen), wc.byte_len,
                            flow->seen % 251));
        flow->seen++;
    }
}

static void flow_drain(struct flow *flow)
{
    while ((flow->seen != flow->posted) || (flow->sent != flow->posted)) {
        flow_poll_sent(flow);
        flow_receive(flow, DEPTH);
    }
}

static void flow_close(struct flow *flow)
{
    flow_drain(flow);
    t_check_link(&flow->end[1], &flow->end[0]);
    t_pair_close(flow->end);
}

/* The entry of an end's QP, as it is in the file. */
static struct sv_shm_qp entry_of(const struct t_end *end)
{
    uint32_t qpn = end->qp->qp_num;
    char path[T_SEGMENT_PATH];
    struct sv_shm_qp entry;
    int fd;

    t_segment_path(path, qpn);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, &entry, sizeof(entry),
                           SV_OFF_QP + sv_qpn_index(qpn) * sizeof(entry)),
                     sizeof(entry));
    close(fd);
    return entry;
}

/* Of the ring that the sender uses. */
static uint32_t ring_bytes(const struct flow *flow)
{
    return entry_of(&flow->end[1]).ring_bytes;
}

/* ---- which ring ---- */

START_TEST(test_one_at_a_time)
{
    struct flow flow;
    size_t bytes;
    unsigned i;

    flow_open(&flow);
    bytes = t_segment_bytes(&flow.end[1]);
    for (i = 0; i < 2000; ++i) {
        flow_send(&flow, 1 + i % 512);
        flow_drain(&flow);
    }
    ck_assert_uint_eq(ring_bytes(&flow), SV_RING_SMALL);
    ck_assert_uint_eq(t_segment_bytes(&flow.end[1]), bytes);
    flow_close(&flow);
}
END_TEST

/* As many lines as the ring has, less the one that is kept, and one more. */
START_TEST(test_full)
{
    struct flow flow;
    unsigned i;

    flow_open(&flow);
    for (i = 0; i < SV_RING_SMALL / SV_LINE - 1; ++i) {
        flow_send(&flow, 8);
    }
    ck_assert_uint_eq(ring_bytes(&flow), SV_RING_SMALL);
    flow_send(&flow, 8);
    ck_assert_uint_eq(ring_bytes(&flow), SV_RING_MIDDLE);
    for (i = 1; i < SV_RING_MIDDLE / SV_LINE - 1; ++i) {
        flow_send(&flow, 8);
    }
    ck_assert_uint_eq(ring_bytes(&flow), SV_RING_MIDDLE);
    flow_send(&flow, 8);
    ck_assert_uint_eq(ring_bytes(&flow), SV_RING_BYTES);
    flow_close(&flow);
}
END_TEST

START_TEST(test_long)
{
    static const struct {
        uint32_t length, ring;
    } cases[] = {
        {512, SV_RING_SMALL},   {513, SV_RING_MIDDLE}, {4096, SV_RING_MIDDLE},
        {4097, SV_RING_BYTES},  {16384, SV_RING_BYTES}, {LONGEST, SV_RING_BYTES}
    };
    struct flow flow;
    unsigned i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        flow_open(&flow);
        flow_send(&flow, 1);
        flow_send(&flow, cases[i].length);
        flow_drain(&flow);
        ck_assert_uint_eq(ring_bytes(&flow), cases[i].ring);
        flow_send(&flow, cases[i].length);
        flow_close(&flow);
    }
}
END_TEST

/* The receiver gives the middle ring back when it has left it, and all with the QP. */
START_TEST(test_given_back)
{
    struct flow flow;
    struct flow again;
    size_t first, middle, large;

    flow_open(&again); /* keeps the segment */
    flow_open(&flow);
    flow_send(&flow, 1);
    flow_drain(&flow);
    first = t_segment_bytes(&flow.end[1]);

    flow_send(&flow, 513);
    flow_drain(&flow);
    middle = t_segment_bytes(&flow.end[1]);
    ck_assert_uint_eq(middle - first, SV_RING_MIDDLE);

    flow_send(&flow, LONGEST);
    flow_drain(&flow);
    large = t_segment_bytes(&flow.end[1]);
    ck_assert_uint_eq(large - first, SV_RING_BYTES);
    flow_close(&flow);

    ck_assert_uint_le(t_segment_bytes(&again.end[1]), first);
    flow_close(&again);
}
END_TEST

/* A device, its queue pairs and its rings come up in spite of signals. */
START_TEST(test_signals)
{
    struct flow flow;

    for (signals = 1; signals < 4; ++signals) {
        calls = 0;
        flow_open(&flow);
        flow_send(&flow, 1);
        flow_send(&flow, 513);
        flow_drain(&flow);
        ck_assert_uint_eq(ring_bytes(&flow), SV_RING_MIDDLE);
        flow_send(&flow, LONGEST);
        flow_drain(&flow);
        ck_assert_uint_eq(ring_bytes(&flow), SV_RING_BYTES);
        ck_assert_uint_gt(calls, 8 * signals);
        flow_close(&flow);
    }
    signals = 0;
}
END_TEST

/* ---- what earlier laps have left ---- */

enum {
    ARRIVALS = 32768,     /* where in the buffer */
    FIRST    = 32,        /* bytes of a message in the first line of its record */
    PLACE    = 8 * SV_LINE
};

/* One message at a time, over a connection or in datagrams. */
struct laps {
    struct t_end   end[2];
    struct ibv_ah *ah; /* NULL: a connection */
    uint64_t       id;
};

static void laps_expect(struct laps *laps)
{
    struct t_end *to = &laps->end[1];

    ck_assert_int_eq(t_post_recv(to, ++laps->id, ARRIVALS, to->size - ARRIVALS), 0);
}

/* Into the RECV that was posted last. */
static void laps_fill(struct laps *laps, uint32_t length)
{
    struct t_end *to = &laps->end[1];
    uint64_t id      = laps->id;

    ck_assert_int_eq((laps->ah == NULL) ?
                             t_post_send(&laps->end[0], id, 0, length,
                                         IBV_SEND_SIGNALED) :
                             t_post_datagram(&laps->end[0], laps->ah,
                                             to->qp->qp_num, T_QKEY, id, 0,
                                             length), 0);
    t_poll_is(to->recv_cq, id, IBV_WC_SUCCESS);
    t_poll_is(laps->end[0].send_cq, id, IBV_WC_SUCCESS);
}

static void laps_send(struct laps *laps, uint32_t length)
{
    laps_expect(laps);
    laps_fill(laps, length);
}

static void laps_open(struct laps *laps, uint32_t ring, enum ibv_qp_type type)
{
    const struct t_make make = {.type = type};
    struct t_address to;

    memset(laps, 0, sizeof(*laps));
    t_softverbs_only("the rings are softverbs' own");
    t_pair_open(laps->end, &make, &ring_link);
    if (type == IBV_QPT_UD) {
        to       = t_end_address(&laps->end[1]);
        laps->ah = t_create_ah(&laps->end[0], &to);
        return;
    }
    laps_send(laps, (ring == SV_RING_SMALL) ? 1 :
                    (ring == SV_RING_MIDDLE) ? 513 : LONGEST);
}

static void laps_close(struct laps *laps)
{
    if (laps->ah != NULL) {
        ck_assert_int_eq(ibv_destroy_ah(laps->ah), 0);
    }
    t_pair_close(laps->end);
}

/* Goes on to this position with messages of one line. */
static void laps_go(struct laps *laps, uint64_t to)
{
    uint64_t at = entry_of(&laps->end[1]).head;

    for (; at < to; at += SV_LINE) {
        laps_send(laps, 8);
    }
    ck_assert_uint_eq(entry_of(&laps->end[1]).head, to);
}

/* A message ends with `bytes` bytes in a line where a record of the lap before began. In
 * the next lap a record begins there. These bytes are all that its tag differs in. */
static void check_end(struct laps *laps, uint32_t ring, unsigned bytes)
{
    struct sv_shm_qp entry = entry_of(&laps->end[1]);
    uint64_t place         = (entry.head | (ring - 1)) + 1 + PLACE;
    uint64_t tag;

    while ((place >> (8 * bytes)) != ((place + 2 * ring) >> (8 * bytes))) {
        place += ring;
    }
    laps_go(laps, place + SV_LINE);
    laps_go(laps, place + ring - SV_LINE);
    tag = (place + 2 * ring) ^ entry.key;
    memcpy(laps->end[0].buf + FIRST, &tag, bytes);
    laps_send(laps, FIRST + bytes);

    laps_go(laps, place + 2 * ring);
    laps_expect(laps);
    t_poll_none(laps->end[1].recv_cq);
    laps_fill(laps, 8);
}

static const struct {
    uint32_t         ring;
    enum ibv_qp_type type;
} lap_cases[] = {
    {SV_RING_SMALL, IBV_QPT_RC},
    {SV_RING_MIDDLE, IBV_QPT_RC},
    {SV_RING_BYTES, IBV_QPT_RC},
    {SV_RING_BYTES, IBV_QPT_UD}
};

/* Such an end is never taken for the tag of the record that is to come. */
START_TEST(test_ends)
{
    const uint32_t ring = lap_cases[_i].ring;
    struct laps laps;
    unsigned bytes;

    laps_open(&laps, ring, lap_cases[_i].type);
    for (bytes = 2; bytes < sizeof(uint64_t); ++bytes) {
        if (2 * ring < 1ull << (8 * bytes)) {
            check_end(&laps, ring, bytes);
        }
    }
    laps_close(&laps);
}
END_TEST

/* ---- random steps ---- */

static uint32_t random_length(t_rng_t *rng, unsigned kind)
{
    static const uint32_t most[] = {32, 300, 1500, LONGEST};

    return t_rng_range(rng, 1, t_rng_once_in(rng, 40) ? LONGEST : most[kind]);
}

START_TEST(test_random)
{
    struct flow flow;
    t_rng_t rng;
    unsigned step, chance;

    t_rng_init(&rng, _i);
    flow_open(&flow);
    chance = t_rng_range(&rng, 2, 60); /* of a poll, once in so many steps */
    for (step = 0; step < 600; ++step) {
        if (t_rng_once_in(&rng, chance) ||
            (flow.posted - flow.sent == DEPTH) ||
            (flow.posted - flow.seen == DEPTH)) {
            flow_poll_sent(&flow);
            flow_receive(&flow, t_rng_range(&rng, 1, 40));
        } else {
            flow_send(&flow, random_length(&rng, _i % 4));
        }
    }
    flow_close(&flow);
}
END_TEST

static Suite *suite_ring(void)
{
    Suite *suite = t_suite("ring",
                           "which", test_one_at_a_time,
                           "which", test_full,
                           "which", test_long,
                           "which", test_given_back,
                           "which", test_signals,
                           NULL);

    t_suite_add_loop(suite, "ends", test_ends,
                     sizeof(lap_cases) / sizeof(lap_cases[0]));
    t_suite_add_loop(suite, "random", test_random, 60);
    return suite;
}

T_MAIN(suite_ring)
