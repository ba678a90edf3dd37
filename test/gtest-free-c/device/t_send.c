/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending and receiving as it should be: sizes, pieces, inline, immediate data,
 * order, what a completion says; connected and datagram; to another QP and to
 * itself.
 */
#include "t_device.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BIG = 4 << 20 };

/* Every edge that a device may have: lines, pages, packets, rings. */
static const size_t sizes[] = {
    0, 1, 7, 8, 31, 32, 33, 63, 64, 65, 1023, 1024, 1025, 4095, 4096, 4097,
    8192, 16352, 16383, 16384, 16385, 65535, 65536, 131071, 131072, 131073,
    262144, 1 << 20, BIG
};

static void fill(struct t_end *end, size_t length, uint64_t salt)
{
    t_rng_t rng;

    t_rng_init(&rng, salt);
    t_rng_fill(&rng, end->buf, length);
}

static void check_sizes(const struct t_make *make)
{
    struct t_end ends[2];
    struct ibv_wc wc;
    unsigned i;

    t_pair_open(ends, make, NULL);
    for (i = 0; i < sizeof(sizes) / sizeof(*sizes); ++i) {
        fill(&ends[0], sizes[i], i);
        memset(ends[1].buf, 0xee, sizes[i] + 1);
        ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, BIG), 0);
        ck_assert_int_eq(t_post_send(&ends[0], 2, 0, sizes[i],
                                     IBV_SEND_SIGNALED), 0);
        wc = t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
        ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
        ck_assert_uint_eq(wc.byte_len, sizes[i]);
        ck_assert_uint_eq(wc.qp_num, ends[1].qp->qp_num);
        ck_assert_int_eq(wc.wc_flags & IBV_WC_WITH_IMM, 0);
        wc = t_poll_is(ends[0].send_cq, 2, IBV_WC_SUCCESS);
        ck_assert_int_eq(wc.opcode, IBV_WC_SEND);
        ck_assert_uint_eq(wc.qp_num, ends[0].qp->qp_num);
        ck_assert_mem_eq(ends[0].buf, ends[1].buf, sizes[i]);
        ck_assert_uint_eq(ends[1].buf[sizes[i]], 0xee);
    }
    t_pair_close(ends);
}

START_TEST(test_sizes)
{
    const struct t_make make = {.size = BIG + 4096};

    check_sizes(&make);
}
END_TEST

START_TEST(test_sizes_srq)
{
    const struct t_make make = {.size = BIG + 4096, .srq = true};

    check_sizes(&make);
}
END_TEST

/* Messages of random sizes in flight together, both ways, with RECVs of the
 * same length: all arrive whole and in order. */
static void check_stream(const struct t_make *make, size_t longest)
{
    enum { MESSAGES = 3000 };
    uint32_t depth = make->depth;
    unsigned posted[2] = {0}, sent[2] = {0}, got[2] = {0}, polled[2] = {0};
    static size_t length[MESSAGES];
    struct t_end ends[2];
    struct ibv_wc wc;
    t_rng_t rng;
    size_t at;
    int i;

    t_rng_init(&rng, 7);
    for (i = 0; i < MESSAGES; ++i) {
        length[i] = t_rng_range(&rng, 8, longest);
    }

    t_pair_open(ends, make, NULL);
    while ((got[0] < MESSAGES) || (got[1] < MESSAGES)) {
        for (i = 0; i < 2; ++i) {
            struct t_end *from = &ends[i], *to = &ends[1 - i];

            while ((posted[i] < MESSAGES) && (posted[i] - got[i] < depth)) {
                at = depth * longest + (posted[i] % depth) * longest;
                ck_assert_int_eq(t_post_recv(to, posted[i]++, at, longest), 0);
            }
            while ((sent[i] < posted[i]) && (sent[i] - polled[i] < depth)) {
                at = (sent[i] % depth) * longest;
                memcpy(from->buf + at, &sent[i], sizeof(sent[i]));
                memset(from->buf + at + 4, sent[i] & 0xff,
                       length[sent[i]] - 4);
                ck_assert_int_eq(t_post_send(from, sent[i], at,
                                             length[sent[i]],
                                             IBV_SEND_SIGNALED), 0);
                ++sent[i];
            }
            while (ibv_poll_cq(from->send_cq, 1, &wc) == 1) {
                ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
                ck_assert_uint_eq(wc.wr_id, polled[i]++);
            }
            while (ibv_poll_cq(to->recv_cq, 1, &wc) == 1) {
                at = depth * longest + (got[i] % depth) * longest;
                ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
                ck_assert_uint_eq(wc.wr_id, got[i]);
                ck_assert_uint_eq(wc.byte_len, length[got[i]]);
                ck_assert_mem_eq(to->buf + at, &got[i], sizeof(got[i]));
                ck_assert_uint_eq(to->buf[at + wc.byte_len - 1],
                                  (wc.byte_len > 4) ? got[i] & 0xff : 0);
                ++got[i];
            }
        }
    }
    t_pair_close(ends);
}

START_TEST(test_stream_small)
{
    const struct t_make make = {.depth = 32, .size = 2 * 32 * 512};

    check_stream(&make, 512);
}
END_TEST

START_TEST(test_stream_large)
{
    const struct t_make make = {.depth = 8, .size = 2 * 8 * 40000};

    check_stream(&make, 40000);
}
END_TEST

START_TEST(test_stream_srq)
{
    const struct t_make make = {.depth = 16, .size = 2 * 16 * 9000,
                                .srq = true};

    check_stream(&make, 9000);
}
END_TEST

START_TEST(test_pieces)
{
    const struct t_make make = {.max_sge = 16, .size = 1 << 20};
    struct ibv_sge out[16], in[16];
    struct ibv_send_wr send = {.wr_id = 1, .sg_list = out, .num_sge = 16,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED};
    struct ibv_recv_wr recv = {.wr_id = 2, .sg_list = in, .num_sge = 16};
    struct ibv_send_wr *bad_send;
    struct ibv_recv_wr *bad_recv;
    struct t_end ends[2];
    size_t total, room;
    uint8_t *expected;
    unsigned round, i, k;
    t_rng_t rng;

    t_pair_open(ends, &make, NULL);
    expected = malloc(ends[0].size);
    t_rng_init(&rng, 3);
    for (round = 0; round < 200; ++round) {
        fill(&ends[0], ends[0].size, round);
        for (total = 0, room = 0, i = 0; i < 16; ++i) {
            out[i].addr   = (uintptr_t)ends[0].buf + i * 4096 +
                            t_rng_below(&rng, 64);
            out[i].length = t_rng_below(&rng, 4) ? t_rng_below(&rng, 3000) : 0;
            out[i].lkey   = ends[0].mr->lkey;
            memcpy(expected + total, (void*)(uintptr_t)out[i].addr,
                   out[i].length);
            total += out[i].length;
        }
        for (i = 0; i < 16; ++i) {
            in[i].addr   = (uintptr_t)ends[1].buf + i * 65536;
            in[i].length = (i == 15) ? total - room :
                           t_rng_below(&rng, total - room + 1);
            in[i].lkey   = ends[1].mr->lkey;
            room += in[i].length;
        }
        ck_assert_int_eq(ibv_post_recv(ends[1].qp, &recv, &bad_recv), 0);
        ck_assert_int_eq(ibv_post_send(ends[0].qp, &send, &bad_send), 0);
        t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
        ck_assert_uint_eq(t_poll_is(ends[1].recv_cq, 2,
                                    IBV_WC_SUCCESS).byte_len, total);
        for (k = 0, i = 0; i < 16; ++i) {
            ck_assert_mem_eq((void*)(uintptr_t)in[i].addr, expected + k,
                             in[i].length);
            k += in[i].length;
        }
    }
    free(expected);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_no_pieces)
{
    struct ibv_send_wr send = {.wr_id = 1, .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED};
    struct ibv_recv_wr recv = {.wr_id = 2};
    struct ibv_send_wr *bad_send;
    struct ibv_recv_wr *bad_recv;
    struct t_end ends[2];

    t_pair_open(ends, NULL, NULL);
    ck_assert_int_eq(ibv_post_recv(ends[1].qp, &recv, &bad_recv), 0);
    ck_assert_int_eq(ibv_post_send(ends[0].qp, &send, &bad_send), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    ck_assert_uint_eq(t_poll_is(ends[1].recv_cq, 2, IBV_WC_SUCCESS).byte_len,
                      0);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_inline)
{
    const struct t_make make = {.max_inline = 200};
    struct t_end ends[2];
    size_t length;

    t_pair_open(ends, &make, NULL);
    for (length = 0; length <= 200; ++length) {
        fill(&ends[0], length, length);
        memcpy(ends[0].buf + 1000, ends[0].buf, length);
        ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 200), 0);
        ck_assert_int_eq(t_post_send(&ends[0], 2, 0, length,
                                     IBV_SEND_SIGNALED | IBV_SEND_INLINE), 0);
        memset(ends[0].buf, 0, length); /* it is ours again at once */
        t_poll_is(ends[0].send_cq, 2, IBV_WC_SUCCESS);
        t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
        ck_assert_mem_eq(ends[1].buf, ends[0].buf + 1000, length);
    }
    t_pair_close(ends);
}
END_TEST

/* Inline data need no key, and survive a wait in the queue. */
START_TEST(test_inline_waits)
{
    const struct t_make make = {.max_inline = 64, .depth = 8};
    const struct t_link link = {.rnr_retry = 7, .min_rnr = 1};
    uint8_t text[8][64];
    struct ibv_sge sge      = {.length = 64};
    struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED |
                                             IBV_SEND_INLINE};
    struct ibv_send_wr *bad;
    struct t_end ends[2];
    int i;

    t_pair_open(ends, &make, &link);
    for (i = 0; i < 8; ++i) {
        memset(text[i], 'a' + i, 64);
        sge.addr   = (uintptr_t)text[i];
        send.wr_id = i;
        ck_assert_int_eq(ibv_post_send(ends[0].qp, &send, &bad), 0);
        memset(text[i], 0, 64);
    }
    for (i = 0; i < 8; ++i) {
        ck_assert_int_eq(t_post_recv(&ends[1], i, i * 64, 64), 0);
    }
    for (i = 0; i < 8; ++i) {
        t_poll_is(ends[0].send_cq, i, IBV_WC_SUCCESS);
        t_poll_is(ends[1].recv_cq, i, IBV_WC_SUCCESS);
        ck_assert_uint_eq(ends[1].buf[i * 64 + 63], 'a' + i);
    }
    t_pair_close(ends);
}
END_TEST

START_TEST(test_immediate)
{
    struct ibv_sge sge;
    struct ibv_send_wr send = {.wr_id = 1, .sg_list = &sge, .num_sge = 1,
                               .opcode = IBV_WR_SEND_WITH_IMM,
                               .send_flags = IBV_SEND_SIGNALED,
                               .imm_data = htobe32(0xdeadbeef)};
    struct ibv_send_wr *bad;
    struct t_end ends[2];
    struct ibv_wc wc;

    t_pair_open(ends, NULL, NULL);
    sge = (struct ibv_sge){(uintptr_t)ends[0].buf, 40000, ends[0].mr->lkey};
    ck_assert_int_eq(t_post_recv(&ends[1], 2, 0, 40000), 0);
    ck_assert_int_eq(ibv_post_send(ends[0].qp, &send, &bad), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    wc = t_poll_is(ends[1].recv_cq, 2, IBV_WC_SUCCESS);
    ck_assert_uint_ne(wc.wc_flags & IBV_WC_WITH_IMM, 0);
    ck_assert_uint_eq(be32toh(wc.imm_data), 0xdeadbeef);
    ck_assert_uint_eq(wc.byte_len, 40000);
    t_pair_close(ends);
}
END_TEST

/* A completion of one WR says that all before it are over, and gives their
 * slots back. */
START_TEST(test_unsignalled)
{
    const struct t_make make = {.depth = 8};
    struct t_end ends[2];
    int round, i;

    t_pair_open(ends, &make, NULL);
    for (round = 0; round < 10; ++round) {
        for (i = 0; i < 8; ++i) {
            ck_assert_int_eq(t_post_recv(&ends[1], i, 0, 64), 0);
        }
        for (i = 0; i < 8; ++i) {
            ck_assert_int_eq(t_post_send(&ends[0], i, 0, 64,
                                         (i == 7) ? IBV_SEND_SIGNALED : 0), 0);
        }
        t_poll_is(ends[0].send_cq, 7, IBV_WC_SUCCESS);
        t_poll_none(ends[0].send_cq);
        for (i = 0; i < 8; ++i) {
            t_poll_is(ends[1].recv_cq, i, IBV_WC_SUCCESS);
        }
    }
    t_pair_close(ends);
}
END_TEST

START_TEST(test_sig_all)
{
    const struct t_make make = {.sig_all = true};
    struct t_end ends[2];

    t_pair_open(ends, &make, NULL);
    ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 64), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 2, 0, 64, 0), 0);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_SUCCESS);
    t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
    t_pair_close(ends);
}
END_TEST

/* A QP that is its own peer. */
START_TEST(test_to_itself)
{
    const struct t_make make = {.size = 1 << 20};
    struct t_address own;
    struct t_end end;
    unsigned i;

    t_end_open(&end, &make);
    own = t_end_address(&end);
    t_end_up(&end, &own, NULL);
    for (i = 0; i < 100; ++i) {
        size_t length = 1 + i * 3001;

        fill(&end, length, i);
        ck_assert_int_eq(t_post_recv(&end, 1, 1 << 19, 1 << 19), 0);
        ck_assert_int_eq(t_post_send(&end, 2, 0, length, IBV_SEND_SIGNALED),
                         0);
        t_poll_is(end.recv_cq, 1, IBV_WC_SUCCESS);
        t_poll_is(end.send_cq, 2, IBV_WC_SUCCESS);
        ck_assert_mem_eq(end.buf, end.buf + (1 << 19), length);
    }
    t_end_close(&end);
}
END_TEST

/* A destroyed QP leaves no completion behind, and takes none of another's. */
START_TEST(test_destroy_takes_completions)
{
    const struct t_make make = {.sig_all = true};
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    struct t_end ends[2];
    struct ibv_qp *other;

    t_pair_open(ends, &make, NULL);
    ck_assert_int_eq(ibv_query_qp(ends[0].qp, &attr, IBV_QP_CAP, &init), 0);
    init.cap = attr.cap;
    other    = ibv_create_qp(ends[0].pd, &init);
    ck_assert_ptr_nonnull(other);

    ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 64), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 2, 0, 64, 0), 0);
    t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
    if (t_differs(T_DIFF_STALE_COMPLETION)) {
        t_end_move(&ends[0], IBV_QPS_ERR); /* waits for the driver's tasks */
        ck_assert_int_eq(ibv_destroy_qp(ends[0].qp), 0);
        t_poll_is(ends[0].send_cq, 2, IBV_WC_SUCCESS);
    } else {
        ck_assert_int_eq(ibv_destroy_qp(ends[0].qp), 0);
    }
    t_poll_none(ends[0].send_cq);
    ends[0].qp = other;
    t_pair_close(ends);
}
END_TEST

/* ---- datagrams ---- */

START_TEST(test_datagram)
{
    const struct t_make make = {.type = IBV_QPT_UD};
    struct t_address to;
    struct t_end ends[2];
    struct ibv_ah *ah;
    struct ibv_wc wc;
    size_t length;

    t_pair_open(ends, &make, NULL);
    to = t_end_address(&ends[1]);
    ah = t_create_ah(&ends[0], &to);
    for (length = 0; length <= 1024; length += (length < 64) ? 1 : 60) {
        fill(&ends[0], length, length);
        ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 2000), 0);
        ck_assert_int_eq(t_post_datagram(&ends[0], ah, to.qpn, T_QKEY, 2, 0,
                                         length), 0);
        t_poll_is(ends[0].send_cq, 2, IBV_WC_SUCCESS);
        wc = t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
        /* 40 bytes are the route's, always */
        ck_assert_uint_eq(wc.byte_len, length + 40);
        ck_assert_uint_eq(wc.src_qp, ends[0].qp->qp_num);
        ck_assert_mem_eq(ends[1].buf + 40, ends[0].buf, length);
    }
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    t_pair_close(ends);
}
END_TEST

START_TEST(test_datagram_answer)
{
    const struct t_make make = {.type = IBV_QPT_UD};
    struct t_address to;
    struct t_end ends[2];
    struct ibv_ah *ah;
    struct ibv_wc wc;

    t_pair_open(ends, &make, NULL);
    to = t_end_address(&ends[1]);
    ah = t_create_ah(&ends[0], &to);
    ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 2000), 0);
    ck_assert_int_eq(t_post_datagram(&ends[0], ah, to.qpn, T_QKEY, 2, 0, 100),
                     0);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_SUCCESS);
    wc = t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);

    /* back to where it came from, knowing nothing but the completion */
    ah = ibv_create_ah_from_wc(ends[1].pd, &wc,
                               (struct ibv_grh*)ends[1].buf, 1);
    ck_assert_ptr_nonnull(ah);
    ck_assert_int_eq(t_post_recv(&ends[0], 3, 0, 2000), 0);
    ck_assert_int_eq(t_post_datagram(&ends[1], ah, wc.src_qp, T_QKEY, 4, 0,
                                     100), 0);
    t_poll_is(ends[1].send_cq, 4, IBV_WC_SUCCESS);
    t_poll_is(ends[0].recv_cq, 3, IBV_WC_SUCCESS);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    t_pair_close(ends);
}
END_TEST

/* Lost without a word: wrong Q_Key, nobody there, not ready to receive. */
START_TEST(test_datagram_lost)
{
    const struct t_make make = {.type = IBV_QPT_UD};
    struct t_address to;
    struct t_end ends[2], late;
    struct ibv_ah *ah;
    int i;

    t_pair_open(ends, &make, NULL);
    t_end_open(&late, &make);
    t_end_init(&late, NULL);
    to = t_end_address(&ends[1]);
    ah = t_create_ah(&ends[0], &to);
    ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 2000), 0);
    ck_assert_int_eq(t_post_recv(&late, 1, 0, 2000), 0);

    ck_assert_int_eq(t_post_datagram(&ends[0], ah, to.qpn, T_QKEY + 1, 10, 0,
                                     100), 0);
    ck_assert_int_eq(t_post_datagram(&ends[0], ah, 0xfffffd, T_QKEY, 11, 0,
                                     100), 0);
    ck_assert_int_eq(t_post_datagram(&ends[0], ah, late.qp->qp_num, T_QKEY, 12,
                                     0, 100), 0);
    /* this one follows them and arrives */
    ends[0].buf[200] = 77;
    ck_assert_int_eq(t_post_datagram(&ends[0], ah, to.qpn, T_QKEY, 13, 200, 1),
                     0);
    for (i = 10; i <= 13; ++i) {
        t_poll_is(ends[0].send_cq, i, IBV_WC_SUCCESS);
    }
    ck_assert_uint_eq(t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS).byte_len,
                      41);
    ck_assert_uint_eq(ends[1].buf[40], 77);
    t_poll_none(late.recv_cq);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    t_end_close(&late);
    t_pair_close(ends);
}
END_TEST

/* Of three addresses one is the receiver's, also if it is named by its GID. */
START_TEST(test_datagram_elsewhere)
{
    const struct t_make make = {.type = IBV_QPT_UD};
    struct t_address to[4];
    struct t_end ends[2];
    struct ibv_ah *ah;
    int i;

    t_pair_open(ends, &make, NULL);
    to[0] = to[1] = t_end_address(&ends[1]);
    to[1].is_routed = true;
    to[2] = t_address_elsewhere(&ends[0], to[0], false);
    to[3] = t_address_elsewhere(&ends[0], to[0], true);
    for (i = 3; i >= 0; --i) {
        ck_assert_int_eq(t_post_recv(&ends[1], 10 + i, 0, 2000), 0);
    }
    for (i = 3; i >= 0; --i) {
        ah = t_create_ah(&ends[0], &to[i]);
        ck_assert_int_eq(t_post_datagram(&ends[0], ah, to[i].qpn, T_QKEY, i, 0,
                                         100 + i), 0);
        t_poll_is(ends[0].send_cq, i, IBV_WC_SUCCESS);
        ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    }
    ck_assert_uint_eq(t_poll_is(ends[1].recv_cq, 13, IBV_WC_SUCCESS).byte_len,
                      40 + 101);
    ck_assert_uint_eq(t_poll_is(ends[1].recv_cq, 12, IBV_WC_SUCCESS).byte_len,
                      40 + 100);
    t_poll_none(ends[1].recv_cq);
    t_pair_close(ends);
}
END_TEST

/* More datagrams than there are RECVs: the sender is never stopped by it, and
 * what arrives is whole. */
START_TEST(test_datagram_flood)
{
    enum { COUNT = 5000 };
    const struct t_make make = {.type = IBV_QPT_UD, .depth = 16};
    unsigned sent = 0, got = 0;
    struct t_address to;
    struct t_end ends[2];
    struct ibv_ah *ah;
    struct ibv_wc wc;

    t_pair_open(ends, &make, NULL);
    to = t_end_address(&ends[1]);
    ah = t_create_ah(&ends[0], &to);
    memset(ends[0].buf, 0x5a, 512);
    while (sent < COUNT) {
        ck_assert_int_eq(t_post_datagram(&ends[0], ah, to.qpn, T_QKEY, sent,
                                         0, 512), 0);
        t_poll_is(ends[0].send_cq, sent++, IBV_WC_SUCCESS);
        if (sent % 50 == 0) {
            ck_assert_int_eq(t_post_recv(&ends[1], got, 0, 2000), 0);
        }
        while (ibv_poll_cq(ends[1].recv_cq, 1, &wc) == 1) {
            ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
            ck_assert_uint_eq(wc.byte_len, 552);
            ck_assert_uint_eq(ends[1].buf[551], 0x5a);
            ++got;
        }
    }
    ck_assert_uint_ge(got, 1);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    t_pair_close(ends);
}
END_TEST

static Suite *suite_send(void)
{
    return t_suite("send",
                   "sizes", test_sizes,
                   "sizes", test_sizes_srq,
                   "stream", test_stream_small,
                   "stream", test_stream_large,
                   "stream", test_stream_srq,
                   "pieces", test_pieces,
                   "pieces", test_no_pieces,
                   "inline", test_inline,
                   "inline", test_inline_waits,
                   "immediate", test_immediate,
                   "signal", test_unsignalled,
                   "signal", test_sig_all,
                   "itself", test_to_itself,
                   "destroy", test_destroy_takes_completions,
                   "datagram", test_datagram,
                   "datagram", test_datagram_answer,
                   "datagram", test_datagram_lost,
                   "datagram", test_datagram_elsewhere,
                   "datagram", test_datagram_flood,
                   NULL);
}

T_MAIN(suite_send)
