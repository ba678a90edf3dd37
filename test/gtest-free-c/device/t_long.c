/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that are longer than a device buffers, between two processes: how
 * they are cut, their order, and that one which arrives is whole, whatever its
 * sender does to its memory at that moment.
 */
#include "t_device.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { LONGEST = 400000, SHORT = 64, PIECES = 4 };

static const struct t_make long_make = {
    .max_sge = PIECES, .size = LONGEST + SHORT
};

static void connect_over(int fd, struct t_end *end)
{
    const struct t_link link = {.rnr_retry = 7, .timeout = 18, .retry_cnt = 6};
    struct t_address to      = t_swap(fd, end);

    t_end_up(end, &to, &link);
    t_meet(fd);
}

static void fill(uint8_t *to, uint32_t number, size_t length)
{
    t_rng_t rng;

    t_rng_init(&rng, number + 1000);
    t_rng_fill(&rng, to, length);
}

/* Whether the buffer holds message `number`. */
static bool is_message(const struct t_end *end, uint32_t number, size_t length)
{
    uint8_t *expected = malloc(length);
    bool same;

    ck_assert_ptr_nonnull(expected);
    fill(expected, number, length);
    same = (memcmp(end->buf, expected, length) == 0);
    free(expected);
    return same;
}

/* ---- pieces, and short messages between ---- */

enum { MESSAGES = 60 };

/* Both sides know from the number how long a message is. */
static size_t length_of(uint32_t number)
{
    t_rng_t rng;

    t_rng_init(&rng, number);
    return t_rng_once_in(&rng, 4) ? t_rng_range(&rng, 1, 3000) :
                                    t_rng_range(&rng, 100000, LONGEST);
}

/* Cuts the first `length` bytes of the buffer; some pieces are empty. */
static void cut(const struct t_end *end, t_rng_t *rng, size_t length,
                struct ibv_sge *sge)
{
    size_t at = 0, n;
    unsigned i;

    for (i = 0; i < PIECES; ++i) {
        n = (i == PIECES - 1) ? length - at :
            t_rng_once_in(rng, 4) ? 0 : t_rng_below(rng, length - at + 1);
        sge[i] = (struct ibv_sge){(uintptr_t)end->buf + at, n, end->mr->lkey};
        at    += n;
    }
}

static void pieces_send(struct t_end *end, uint32_t number, t_rng_t *rng)
{
    struct ibv_sge sge[PIECES];
    struct ibv_send_wr wr = {.wr_id = number, .sg_list = sge,
                             .num_sge = PIECES, .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    size_t length = length_of(number);

    fill(end->buf, number, length);
    cut(end, rng, length, sge);
    ck_assert_int_eq(ibv_post_send(end->qp, &wr, &bad), 0);
    /* behind it one that the device can take at once */
    end->buf[LONGEST] = number;
    ck_assert_int_eq(t_post_send(end, number + 1, LONGEST, 1,
                                 IBV_SEND_SIGNALED), 0);
    t_poll_is(end->send_cq, number, IBV_WC_SUCCESS);
    t_poll_is(end->send_cq, number + 1, IBV_WC_SUCCESS);
}

static void pieces_sender(int fd)
{
    struct t_end end;
    t_rng_t rng;
    uint32_t i;

    t_rng_init(&rng, 7);
    t_end_open(&end, &long_make);
    connect_over(fd, &end);
    for (i = 0; i < MESSAGES; ++i) {
        t_meet(fd);
        pieces_send(&end, i, &rng);
    }
    t_meet(fd);
    t_end_close(&end);
}

static void pieces_receive(int fd, struct t_end *end, uint32_t number,
                           t_rng_t *rng)
{
    struct ibv_sge sge[PIECES];
    struct ibv_recv_wr wr = {.wr_id = number, .sg_list = sge,
                             .num_sge = PIECES};
    struct ibv_recv_wr *bad;
    size_t length = length_of(number);

    memset(end->buf, 0xee, end->size);
    cut(end, rng, length + t_rng_below(rng, LONGEST - length + 1), sge);
    ck_assert_int_eq(ibv_post_recv(end->qp, &wr, &bad), 0);
    ck_assert_int_eq(t_post_recv(end, number + 1, LONGEST, SHORT), 0);
    t_meet(fd);
    ck_assert_uint_eq(t_poll_is(end->recv_cq, number, IBV_WC_SUCCESS).byte_len,
                      length);
    ck_assert_uint_eq(t_poll_is(end->recv_cq, number + 1,
                                IBV_WC_SUCCESS).byte_len, 1);
    ck_assert(is_message(end, number, length));
    if (length < LONGEST) {
        ck_assert_uint_eq(end->buf[length], 0xee);
    }
    ck_assert_uint_eq(end->buf[LONGEST], (uint8_t)number);
}

START_TEST(test_pieces)
{
    struct t_peer peer;
    struct t_end end;
    t_rng_t rng;
    uint32_t i;

    t_peer_start(&peer, pieces_sender);
    t_rng_init(&rng, 8);
    t_end_open(&end, &long_make);
    connect_over(peer.fd, &end);
    for (i = 0; i < MESSAGES; ++i) {
        pieces_receive(peer.fd, &end, i, &rng);
    }
    t_meet(peer.fd);
    t_end_close(&end);
    t_peer_join(&peer);
}
END_TEST

/* ---- the sender takes its memory back ---- */

/* So long that a copy is under way in most rounds when the sender does: the
 * moment is a random one of the time that an undisturbed message took. */
enum { ROUNDS = 10, TAKEN = 16 << 20 };

enum { FREE = 0xff }; /* what the sender's memory holds when it is taken back */

static const struct t_make taken_make = {
    .size = TAKEN, .access = IBV_ACCESS_LOCAL_WRITE
};

enum way {
    WAY_ERR,   /* its QP goes to ERR */
    WAY_RESET, /* its QP goes to RESET: no completion */
    WAY_DEREG, /* it deregisters the memory */
    WAYS
};

/* What the sender knows of its message in the end. */
struct outcome {
    enum ibv_wc_status status;
    int                known; /* no padding: it goes through a socket */
};

static struct outcome take_back(struct t_end *end, enum way way)
{
    struct outcome outcome = {.status = IBV_WC_SUCCESS, .known = true};

    switch (way) {
    case WAY_ERR:
        t_end_move(end, IBV_QPS_ERR);
        outcome.status = t_poll(end->send_cq).status;
        break;
    case WAY_RESET:
        t_end_move(end, IBV_QPS_RESET);
        outcome.known = false;
        break;
    default:
        ck_assert_int_eq(ibv_dereg_mr(end->mr), 0);
        break;
    }
    /* it is the program's again: who still copies meets the end first */
    memset(end->buf + TAKEN / 2, FREE, TAKEN / 2);
    memset(end->buf, FREE, TAKEN / 2);
    if (way == WAY_DEREG) {
        outcome.status = t_poll(end->send_cq).status;
        end->mr = ibv_reg_mr(end->pd, end->buf, end->size, taken_make.access);
        ck_assert_ptr_nonnull(end->mr);
    }
    return outcome;
}

/* Message `number`, all of one byte: on its way when this returns. */
static uint64_t taken_post(int fd, struct t_end *end, uint32_t number)
{
    memset(end->buf, number, TAKEN);
    t_meet(fd);
    ck_assert_int_eq(t_post_send(end, number, 0, TAKEN, IBV_SEND_SIGNALED), 0);
    return t_now_ns();
}

static void fickle_sender(int fd)
{
    struct outcome outcome;
    struct t_end end;
    uint64_t start, whole, pause;
    unsigned i;
    t_rng_t rng;

    t_rng_init(&rng, 9);
    t_end_open(&end, &taken_make);
    connect_over(fd, &end);
    start = taken_post(fd, &end, 0);
    t_poll_is(end.send_cq, 0, IBV_WC_SUCCESS);
    whole = t_now_ns() - start;
    t_end_move(&end, IBV_QPS_RESET);
    t_meet(fd);

    for (i = 1; i <= ROUNDS * WAYS; ++i) {
        connect_over(fd, &end);
        start = taken_post(fd, &end, i);
        pause = t_rng_below(&rng, whole);
        while (t_now_ns() - start < pause) {
        }
        outcome = take_back(&end, i % WAYS);
        t_tell(fd, &outcome, sizeof(outcome));
        t_end_move(&end, IBV_QPS_RESET);
        t_meet(fd);
    }
    t_end_close(&end);
}

static bool is_whole(const struct t_end *end, uint32_t number)
{
    return (end->buf[0] == number) &&
           (memcmp(end->buf, end->buf + 1, TAKEN - 1) == 0);
}

static bool is_told(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

/* The message if it comes, and otherwise the RECV back. */
static void see_outcome(int fd, struct t_end *end, uint32_t number)
{
    struct outcome outcome;
    struct ibv_wc wc;
    int got = 0;

    while ((got == 0) && !is_told(fd)) {
        got = ibv_poll_cq(end->recv_cq, 1, &wc);
    }
    t_hear(fd, &outcome, sizeof(outcome));
    if (got == 0) {
        t_end_move(end, IBV_QPS_ERR);
        wc = t_poll(end->recv_cq);
    }
    if (wc.status == IBV_WC_SUCCESS) {
        ck_assert(is_whole(end, number));
    } else {
        ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
        ck_assert(!outcome.known || (outcome.status != IBV_WC_SUCCESS));
    }
    if (outcome.known && (outcome.status != IBV_WC_SUCCESS)) {
        ck_assert_int_eq(outcome.status, (number % WAYS == WAY_DEREG) ?
                                                 IBV_WC_LOC_PROT_ERR :
                                                 IBV_WC_WR_FLUSH_ERR);
    }
}

START_TEST(test_taken_back)
{
    struct t_peer peer;
    struct t_end end;
    unsigned i;

    t_peer_start(&peer, fickle_sender);
    t_end_open(&end, &taken_make);
    for (i = 0; i <= ROUNDS * WAYS; ++i) {
        connect_over(peer.fd, &end);
        ck_assert_int_eq(t_post_recv(&end, i, 0, TAKEN), 0);
        t_meet(peer.fd);
        if (i == 0) {
            t_poll_is(end.recv_cq, i, IBV_WC_SUCCESS);
        } else {
            see_outcome(peer.fd, &end, i);
        }
        t_end_move(&end, IBV_QPS_RESET);
        t_meet(peer.fd);
    }
    t_end_close(&end);
    t_peer_join(&peer);
}
END_TEST

static Suite *suite_long(void)
{
    return t_suite("long",
                   "messages", test_pieces,
                   "messages", test_taken_back,
                   NULL);
}

T_MAIN(suite_long)
