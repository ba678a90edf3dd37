/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active messages of every kind, at and around every limit that the interface
 * names: what is sent arrives, byte for byte and in order; what does not fit
 * is refused with a sentence and costs nothing.
 */
#include "t_uct.h"

#include <string.h>

enum { ID = 5, LENGTHS = 64 };

/* Two ends of one process, or one end with itself. */
typedef struct {
    t_end_t    *a, *b;
    t_link_t   *link;
    t_stream_t stream;
} pair_t;


static void pair_open(pair_t *pair, int is_loop)
{
    pair->a    = t_end_open("");
    pair->b    = is_loop ? pair->a : t_end_open("");
    pair->link = t_link_open(pair->a, &pair->b->address, ID);
    t_stream_open(&pair->stream, pair->b, ID);
}


static void pair_wait(pair_t *pair)
{
    T_WAIT((pair->stream.got == pair->link->sent) &&
           (pair->link->zcopies == 0));
    ck_assert_uint_eq(pair->stream.bytes, pair->link->bytes);
    ck_assert_int_eq(pair->link->zcopy_status, UCS_OK);
}


/* Lengths around 0, 1, what is inlined, and every limit of the interface. */
static unsigned lengths(const t_end_t *end, size_t *length)
{
    const size_t around[] = {
        0, 1, 8, 64, 128, 256, 4096, end->attr.cap.am.max_short,
        end->attr.cap.am.max_bcopy, end->attr.cap.am.max_zcopy,
        end->attr.cap.put.max_short - 4 /* inline, with our header */
    };
    unsigned count = 0;
    size_t i;
    int d;

    for (i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
        for (d = -2; d <= 2; d++) {
            if ((int64_t)around[i] + d >= 0) {
                length[count++] = around[i] + d;
            }
        }
    }
    ck_assert_uint_le(count, LENGTHS);
    return count;
}


/* Each kind, between two ends and to itself. */
START_TEST(test_lengths)
{
    t_how_t how   = _i % T_HOW_LAST;
    unsigned went = 0;
    size_t length[LENGTHS];
    unsigned count, i;
    pair_t pair;

    pair_open(&pair, _i / T_HOW_LAST);
    count = lengths(pair.a, length);
    for (i = 0; i < count; i++) {
        if (t_can_send(pair.link, how, length[i])) {
            t_send(pair.link, how, length[i]);
            went++;
        }
    }
    pair_wait(&pair);
    ck_assert_uint_gt(went, 3);
}
END_TEST


/* A device in user space has short messages elsewhere than longer ones. */
START_TEST(test_every_length)
{
    size_t length;
    pair_t pair;

    pair_open(&pair, _i);
    for (length = 0; length <= 1100; length++) {
        t_send(pair.link, T_BCOPY, length);
    }
    pair_wait(&pair);
}
END_TEST


/* UCP has its shortest way for what is short, so what it would copy is, whether
 * it goes inline or not. */
START_TEST(test_half_a_page_is_short)
{
    static const char *const options[] = {"", "MAX_INLINE=0"};
    static const size_t lengths[]      = {8, 120, 121, 512, 2048 + 8};
    uint64_t sent;
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end;
    unsigned i, k;

    t_only_daqiri("has these limits");
    end  = t_end_open(options[_i]);
    link = t_link_open(end, &end->address, ID);
    t_stream_open(&stream, end, ID);
    ck_assert(end->attr.cap.flags & UCT_IFACE_FLAG_AM_SHORT);
    for (i = 0; i < 5; i++) {
        for (k = 0; k < 20; k++) {
            ck_assert(t_can_send(link, T_SHORT, lengths[i]));
            t_send(link, T_SHORT, lengths[i]);
            link->pieces = 1 + (k % 3);
            t_send(link, T_SHORT_IOV, lengths[i]);
            link->pieces = 1;
        }
    }
    T_WAIT(stream.got == link->sent);
    ck_assert_uint_eq(stream.bytes, link->bytes);
    sent = link->sent;
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("am_short"), sent);
}
END_TEST


/* Kinds follow each other: they share one ledger and one order. */
START_TEST(test_mixed)
{
    size_t length[LENGTHS];
    unsigned count, i;
    t_how_t how;
    pair_t pair;
    t_rng_t rng;

    t_rng_init(&rng, 0xa000 + _i);
    pair_open(&pair, _i);
    count = lengths(pair.a, length);
    for (i = 0; i < 3000; i++) {
        how               = t_rng_below(&rng, T_HOW_LAST);
        pair.link->pieces = t_rng_range(&rng, 1, 3);
        pair.link->header = t_rng_below(&rng, 40);
        if (t_can_send(pair.link, how, length[i % count])) {
            t_send(pair.link, how, length[i % count]);
        }
    }
    pair_wait(&pair);
    ck_assert_uint_gt(pair.stream.got, 500);
}
END_TEST


/* Every header length, and every number of iov entries, some of them empty. */
START_TEST(test_zcopy_shapes)
{
    unsigned header, pieces;
    size_t length;
    pair_t pair;

    pair_open(&pair, 0);
    for (header = 0; header <= 512; header++) {
        for (pieces = 1; pieces <= 32; pieces++) {
            pair.link->header = header;
            pair.link->pieces = pieces;
            length            = header + pieces * (header % 3) * 37;
            if (t_can_send(pair.link, T_ZCOPY, length)) {
                t_send(pair.link, T_ZCOPY, length);
            }
        }
    }
    pair_wait(&pair);
    ck_assert_uint_gt(pair.stream.got, 100);
}
END_TEST


START_TEST(test_short_iov_shapes)
{
    unsigned pieces;
    size_t length;
    pair_t pair;

    pair_open(&pair, 0);
    for (pieces = 1; pieces <= 32; pieces++) {
        for (length = 0; length <= 512; length++) {
            pair.link->pieces = pieces;
            if (t_can_send(pair.link, T_SHORT_IOV, length)) {
                t_send(pair.link, T_SHORT_IOV, length);
            }
        }
    }
    pair_wait(&pair);
    ck_assert_uint_gt(pair.stream.got, 100);
}
END_TEST


/* Without a completion nothing is called, and a flush tells when the memory
 * may be used again. */
START_TEST(test_zcopy_without_completion)
{
    uint8_t memory[64] = "zcopy";
    uct_iov_t iov      = {.buffer = memory, .length = 64, .count = 1};
    ucs_status_t status;
    pair_t pair;

    pair_open(&pair, 0);
    ck_assert_int_eq(uct_md_mem_reg(pair.a->md, memory, sizeof(memory),
                                    UCT_MD_MEM_ACCESS_ALL, &iov.memh), UCS_OK);
    t_send(pair.link, T_BCOPY, 1);
    T_WAIT(pair.stream.got == 1);
    t_stream_open(&pair.stream, pair.b, 0);
    do {
        /* of length 0, so that it is message 0 of the stream 0 */
        iov.length = 0;
        status     = uct_ep_am_zcopy(pair.link->ep, 0, NULL, 0, &iov, 1, 0,
                                     NULL);
        t_progress();
    } while (status == UCS_ERR_NO_RESOURCE);
    ck_assert(!UCS_STATUS_IS_ERR(status));
    ck_assert_int_eq(t_ep_flush(pair.link), UCS_OK);
    ck_assert_int_eq(uct_md_mem_dereg(pair.a->md, iov.memh), UCS_OK);
    T_WAIT(pair.stream.got == 1);
}
END_TEST


/* Every id has its own stream. */
START_TEST(test_every_id)
{
    t_stream_t stream[UCT_AM_ID_MAX];
    t_link_t *link[UCT_AM_ID_MAX];
    t_end_t *a = t_end_open("");
    t_end_t *b = t_end_open("");
    unsigned id, i;

    for (id = 0; id < UCT_AM_ID_MAX; id++) {
        t_stream_open(&stream[id], b, id);
        link[id] = t_link_open(a, &b->address, id);
    }
    for (i = 0; i < 50; i++) {
        for (id = 0; id < UCT_AM_ID_MAX; id++) {
            t_send(link[id], T_BCOPY, 10 * i + id);
        }
    }
    for (id = 0; id < UCT_AM_ID_MAX; id++) {
        T_WAIT(stream[id].got == 50);
    }
}
END_TEST


/* ---- What is refused ---- */

START_TEST(test_too_long)
{
    static const t_how_t hows[] = {T_SHORT, T_SHORT_IOV, T_ZCOPY};
    t_how_t how = hows[_i];
    pair_t pair;
    size_t max;

    t_only_daqiri("checks the length in every build");
    t_expect_log("where at most");
    pair_open(&pair, 0);
    t_send(pair.link, T_BCOPY, 1); /* connected: nothing else may refuse it */
    pair_wait(&pair);
    max = (how == T_ZCOPY) ? pair.a->attr.cap.am.max_zcopy
                           : pair.a->attr.cap.am.max_short;
    ck_assert_int_eq(t_try_send(pair.link, how, max + 1),
                     UCS_ERR_INVALID_PARAM);
    ck_assert_uint_eq(t_log_count("where at most"), 1);
    t_send(pair.link, how, max);
    pair_wait(&pair);
}
END_TEST


START_TEST(test_too_many_pieces)
{
    static const t_how_t hows[] = {T_SHORT_IOV, T_ZCOPY};
    pair_t pair;

    t_only_daqiri("checks the iov in every build");
    t_expect_log("an iov of");
    pair_open(&pair, 0);
    t_send(pair.link, T_BCOPY, 1);
    pair_wait(&pair);
    pair.link->pieces = pair.a->attr.cap.am.max_iov + 1;
    ck_assert_int_eq(t_try_send(pair.link, hows[_i], 16),
                     UCS_ERR_INVALID_PARAM);
    ck_assert_uint_eq(t_log_count("an iov of"), 1);
    pair.link->pieces--;
    t_send(pair.link, hows[_i], 16);
    pair_wait(&pair);
}
END_TEST


START_TEST(test_bad_id)
{
    pair_t pair;

    t_only_daqiri("checks the id in every build");
    t_expect_log("active message id");
    pair_open(&pair, 0);
    t_send(pair.link, T_BCOPY, 1);
    pair_wait(&pair);
    pair.link->id = UCT_AM_ID_MAX;
    ck_assert_int_eq(t_try_send(pair.link, _i, 16), UCS_ERR_INVALID_PARAM);
    pair.link->id = UINT8_MAX;
    ck_assert_int_eq(t_try_send(pair.link, _i, 16), UCS_ERR_INVALID_PARAM);
    ck_assert_uint_eq(t_log_count("active message id"), 2);
    pair.link->id = ID;
    t_send(pair.link, _i, 16);
    pair_wait(&pair);
}
END_TEST


/* ---- Where the data lies at the receiver ---- */

enum { PLACED = 600 }; /* messages, each longer than the last */

typedef struct {
    size_t   align, offset, headroom;
    unsigned count;
} place_t;


/* A line of memory in which nothing but our header of 4 bytes is would be one more
 * for the device to take; where a line is asked for, it cannot be helped. */
static void check_line(const place_t *place, const void *data)
{
    const uintptr_t line = 64; /* or a half, where they have 128 bytes */

    if ((place->align < line) && (strcmp(t_tl(), "daqiri") == 0)) {
        ck_assert_uint_eq((uintptr_t)data / line, ((uintptr_t)data - 4) / line);
    }
}


/* UCP writes into the headroom of what it keeps, all of it. */
static ucs_status_t on_placed(void *arg, void *data, size_t length,
                              unsigned flags)
{
    place_t *place = arg;
    uint8_t copy[64 + PLACED];

    ck_assert_uint_eq(length, 64 + place->count);
    ck_assert_uint_eq(((uintptr_t)data + place->offset) % place->align, 0);
    check_line(place, data);
    place->count++;
    if (flags & UCT_CB_PARAM_FLAG_DESC) {
        memcpy(copy, data, length);
        memset((uint8_t*)data - place->headroom, 0xcc, place->headroom);
        ck_assert_mem_eq(copy, data, length);
    }
    return UCS_OK;
}


START_TEST(test_alignment_and_headroom)
{
    static const size_t aligns[]    = {8, 64, 64, 256, 4096, 16, 2, 1, 4, 32};
    static const size_t offsets[]   = {0, 0, 32, 200, 0, 8, 8, 0, 2, 60};
    static const size_t headrooms[] = {0, 80, 1, 512, 80, 17, 80, 80, 9, 0};
    place_t place                   = {.align    = aligns[_i],
                                       .offset   = offsets[_i],
                                       .headroom = headrooms[_i]};
    uct_iface_params_t params       = {
        .field_mask      = UCT_IFACE_PARAM_FIELD_AM_ALIGNMENT |
                           UCT_IFACE_PARAM_FIELD_AM_ALIGN_OFFSET |
                           UCT_IFACE_PARAM_FIELD_RX_HEADROOM,
        .am_alignment    = place.align,
        .am_align_offset = place.offset,
        .rx_headroom     = place.headroom,
    };
    t_link_t *link;
    t_end_t *end;
    unsigned i;

    ck_assert_int_eq(t_end_try_open(&params, "", &end), UCS_OK);
    ck_assert_int_eq(uct_iface_set_am_handler(end->iface, ID, on_placed,
                                              &place, 0), UCS_OK);
    link = t_link_open(end, &end->address, ID);
    for (i = 0; i < PLACED; i++) {
        t_send(link, T_BCOPY, 64 + i);
    }
    T_WAIT(place.count == PLACED);
}
END_TEST


static Suite *suite_am(void)
{
    Suite *suite   = suite_create("am");
    TCase *arrives = t_uct_case("arrives");
    TCase *refused = t_uct_case("refused");
    TCase *placed  = t_uct_case("placed");

    tcase_add_loop_test(arrives, test_lengths, 0, 2 * T_HOW_LAST);
    tcase_add_loop_test(arrives, test_every_length, 0, 2);
    tcase_add_loop_test(arrives, test_half_a_page_is_short, 0, 2);
    tcase_add_loop_test(arrives, test_mixed, 0, 2);
    tcase_add_test(arrives, test_zcopy_shapes);
    tcase_add_test(arrives, test_short_iov_shapes);
    tcase_add_test(arrives, test_zcopy_without_completion);
    tcase_add_test(arrives, test_every_id);
    suite_add_tcase(suite, arrives);

    tcase_add_loop_test(refused, test_too_long, 0, 3);
    tcase_add_loop_test(refused, test_too_many_pieces, 0, 2);
    tcase_add_loop_test(refused, test_bad_id, 0, T_HOW_LAST);
    suite_add_tcase(suite, refused);

    tcase_add_loop_test(placed, test_alignment_and_headroom, 0, 10);
    suite_add_tcase(suite, placed);
    return suite;
}

T_UCT_MAIN(suite_am)
