/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flush, fence and check. A flush is over when all that was posted before it
 * is, not earlier, and says so once.
 */
#include "t_uct.h"

enum { FLUSHES = 200 };

typedef struct {
    t_end_t    *a, *b;
    t_link_t   *link;
    t_stream_t stream;
} pair_t;


static void pair_open(pair_t *pair, const char *options)
{
    pair->a    = t_end_open(options);
    pair->b    = t_end_open(options);
    pair->link = t_link_open(pair->a, &pair->b->address, 3);
    t_stream_open(&pair->stream, pair->b, 3);
}


static void pair_connect(pair_t *pair)
{
    t_send(pair->link, T_BCOPY, 8);
    T_WAIT(pair->stream.got == 1);
    ck_assert_int_eq(t_ep_flush(pair->link), UCS_OK);
}


/* A flush that knows what had been posted when it was made. */
typedef struct {
    uct_completion_t comp;
    t_link_t         *link;
    uint64_t         zcopies_before;
    unsigned         calls;
} flush_t;

static void on_flush(uct_completion_t *comp)
{
    flush_t *flush = (flush_t*)comp;
    uint64_t over  = flush->link->zcopies_sent - flush->link->zcopies;

    ck_assert_uint_ge(over, flush->zcopies_before);
    ck_assert_int_eq(comp->status, UCS_OK);
    ck_assert_uint_eq(flush->calls, 0);
    flush->calls++;
}


static ucs_status_t flush_start(flush_t *flush, t_link_t *link)
{
    *flush = (flush_t){.comp           = {.func   = on_flush,
                                          .count  = 1,
                                          .status = UCS_OK},
                       .link           = link,
                       .zcopies_before = link->zcopies_sent};
    return uct_ep_flush(link->ep, UCT_FLUSH_FLAG_LOCAL, &flush->comp);
}


START_TEST(test_nothing_to_flush)
{
    pair_t pair;

    pair_open(&pair, "");
    ck_assert_int_eq(t_ep_flush(pair.link), UCS_OK); /* not even connected */
    t_iface_flush(pair.a);
    pair_connect(&pair);
    ck_assert_int_eq(t_ep_flush(pair.link), UCS_OK);
    t_iface_flush(pair.a);
}
END_TEST


/* Flushes between sends of all kinds; many of them under way at a time. */
START_TEST(test_ep_flush)
{
    static const char *const options[] = {
        "", "SQ_DEPTH=16 SIGNAL_EVERY=4", "CQ_LEN=6 SIGNAL_EVERY=32"
    };
    static flush_t flush[FLUSHES];
    unsigned under_way = 0;
    ucs_status_t status;
    pair_t pair;
    t_rng_t rng;
    unsigned i, j;

    t_rng_init(&rng, 0xf300 + _i);
    pair_open(&pair, (t_tl()[0] == 'd') ? options[_i] : "");
    pair_connect(&pair);
    for (i = 0; i < FLUSHES; i++) {
        for (j = t_rng_below(&rng, 6); j > 0; j--) {
            t_send(pair.link, t_rng_once_in(&rng, 2) ? T_ZCOPY : T_BCOPY,
                   t_rng_below(&rng, 2000));
        }
        while ((status = flush_start(&flush[i], pair.link)) ==
               UCS_ERR_NO_RESOURCE) {
            t_progress_or_yield();
        }
        ck_assert((status == UCS_OK) || (status == UCS_INPROGRESS));
        under_way += (status == UCS_INPROGRESS);
        if (status == UCS_OK) {
            on_flush(&flush[i].comp); /* what it claims is true at once */
        }
    }
    for (i = 0; i < FLUSHES; i++) {
        T_WAIT(flush[i].calls == 1);
    }
    T_WAIT((pair.stream.got == pair.link->sent) && (pair.link->zcopies == 0));
    ck_assert_uint_gt(under_way, 0);
}
END_TEST


/* The queue is full and the peer stands still: a flush waits its turn. */
START_TEST(test_flush_when_full)
{
    ucs_status_t status;
    unsigned idle = 0;
    flush_t flush;
    pair_t pair;

    t_only_daqiri("has a queue that this fills");
    pair_open(&pair, "SQ_DEPTH=8 RX_WINDOW=16");
    pair_connect(&pair);
    pair.b->is_stopped = 1;
    while (idle < 100) {
        status = t_try_send(pair.link, T_ZCOPY, 4000);
        idle   = (status == UCS_OK) ? 0 : idle + 1;
        t_progress();
    }
    while ((status = flush_start(&flush, pair.link)) == UCS_ERR_NO_RESOURCE) {
        t_progress_or_yield();
        pair.b->is_stopped = 0;
    }
    if (status == UCS_INPROGRESS) {
        T_WAIT(flush.calls == 1);
    }
    ck_assert_uint_eq(pair.link->zcopies, 0);
    pair.b->is_stopped = 0;
    T_WAIT(pair.stream.got == pair.link->sent);
}
END_TEST


/* A flush that cancels is over when the NIC is through with the user's memory,
 * which is spoilt at once: whatever arrives, was what had been sent. */
START_TEST(test_cancel)
{
    static const char *const options[] = {"", "SQ_DEPTH=16", "RX_WINDOW=8"};
    ucs_status_t status;
    flush_t flush;
    pair_t pair;
    unsigned i;

    t_only_daqiri("goes on with what has been posted");
    pair_open(&pair, options[_i]);
    for (i = 0; i < 100; i++) {
        while ((t_try_send(pair.link, T_ZCOPY, 8000) == UCS_OK) &&
               (pair.link->zcopies < i));
        flush = (flush_t){.comp           = {.func   = on_flush,
                                             .count  = 1,
                                             .status = UCS_OK},
                          .link           = pair.link,
                          .zcopies_before = pair.link->zcopies_sent};
        while ((status = uct_ep_flush(pair.link->ep, UCT_FLUSH_FLAG_CANCEL,
                                      &flush.comp)) == UCS_ERR_NO_RESOURCE) {
            t_progress_or_yield();
        }
        if (status == UCS_INPROGRESS) {
            T_WAIT(flush.calls == 1);
        } else {
            ck_assert_int_eq(status, UCS_OK);
        }
        ck_assert_uint_eq(pair.link->zcopies, 0);
    }
    T_WAIT(pair.stream.got == pair.link->sent);
}
END_TEST


START_TEST(test_iface_flush)
{
    t_stream_t stream[3];
    t_link_t *link[3];
    t_end_t *a = t_end_open("");
    unsigned i, j;
    t_rng_t rng;

    t_rng_init(&rng, 0xf400);
    for (i = 0; i < 3; i++) {
        t_end_t *b = t_end_open("");

        t_stream_open(&stream[i], b, i);
        link[i] = t_link_open(a, &b->address, i);
    }
    for (i = 0; i < 300; i++) {
        for (j = t_rng_below(&rng, 10); j > 0; j--) {
            t_send(link[t_rng_below(&rng, 3)],
                   t_rng_once_in(&rng, 2) ? T_ZCOPY : T_BCOPY,
                   t_rng_below(&rng, 3000));
        }
        t_iface_flush(a);
        ck_assert_uint_eq(link[0]->zcopies + link[1]->zcopies +
                          link[2]->zcopies, 0);
    }
    for (i = 0; i < 3; i++) {
        T_WAIT(stream[i].got == link[i]->sent);
    }
}
END_TEST


/* UCP relies on it: never "no resource", and no completion (UCX 1.13). */
START_TEST(test_iface_flush_never_refuses)
{
    unsigned idle = 0;
    ucs_status_t status;
    t_comp_t comp;
    pair_t pair;

    t_only_daqiri("has a queue that this fills");
    pair_open(&pair, "SQ_DEPTH=4 CQ_LEN=4 RX_WINDOW=4");
    pair_connect(&pair);
    t_comp_init(&comp);
    pair.b->is_stopped = 1;
    while (idle < 100) {
        status = t_try_send(pair.link, T_BCOPY, 100);
        idle   = (status == UCS_OK) ? 0 : idle + 1;
        status = uct_iface_flush(pair.a->iface, UCT_FLUSH_FLAG_LOCAL, NULL);
        ck_assert((status == UCS_OK) || (status == UCS_INPROGRESS));
        t_progress();
    }
    ck_assert_int_eq(uct_iface_flush(pair.a->iface, UCT_FLUSH_FLAG_LOCAL,
                                     &comp.super), UCS_ERR_UNSUPPORTED);
    ck_assert_uint_eq(comp.calls, 0);
    pair.b->is_stopped = 0;
    T_WAIT(pair.stream.got == pair.link->sent);
}
END_TEST


/* Who has flushed may leave: the grant that is due for the last message is not
 * left for the next progress call, and then for a peer that has gone. */
START_TEST(test_iface_flush_grants)
{
    uint64_t granted = 0;
    pair_t pair;

    t_only_daqiri("grants credits");
    pair_open(&pair, "RX_WINDOW=8");
    pair_connect(&pair);
    T_WAIT(t_live_sum("conns_up") == 2); /* to grant by, there too */
    while (pair.stream.got < 50) {
        t_send(pair.link, T_BCOPY, 100);
        T_WAIT(pair.stream.got == pair.link->sent);
        t_iface_flush(pair.b);
        granted = t_live_sum("credit_frames_tx");
        t_progress();
        t_progress();
        ck_assert_uint_eq(t_live_sum("credit_frames_tx"), granted);
    }
    ck_assert_uint_gt(granted, 0);
}
END_TEST


/* UCX exports it, and does not install the header that declares it. */
ucs_status_t uct_ep_invalidate(uct_ep_h ep, unsigned flags);

/* Who has flushed knows of each failure that came before: also where nothing was under
 * way, and the connection has no queue pair yet, one, or none any more. */
START_TEST(test_iface_flush_tells)
{
    enum { UNCONNECTED, CONNECTED, IDLE };
    pair_t pair;

    t_only_daqiri("can be told to give a peer up");
    t_expect_loss();
    t_expect_log((_i == UNCONNECTED)
                         ? "UCX has given up an endpoint of this connection; 0 work"
                         : "UCX has given up an endpoint of this connection");
    pair_open(&pair, (_i == IDLE) ? "IDLE_TIMEOUT=10ms" : "");
    if (_i != UNCONNECTED) {
        pair_connect(&pair);
        t_iface_flush(pair.a);
    }
    if (_i == IDLE) {
        T_WAIT(t_live_sum("idle_closes") == 2);
    }
    ck_assert_int_eq(uct_ep_invalidate(pair.link->ep, 0), UCS_OK);
    ck_assert_int_eq(uct_ep_put_short(pair.link->ep, NULL, 0, 0, 0), UCS_OK);
    ck_assert_uint_eq(pair.a->errors, 0);
    t_iface_flush(pair.a);
    ck_assert_uint_eq(pair.a->errors, 1);
    t_link_close(pair.link);
}
END_TEST


/* Messages of one endpoint are in order with or without; a fence costs none. */
START_TEST(test_fence)
{
    pair_t pair;
    unsigned i;

    pair_open(&pair, "");
    for (i = 0; i < 200; i++) {
        t_send(pair.link, (i % 2) ? T_BCOPY : T_ZCOPY, i);
        ck_assert_int_eq(uct_ep_fence(pair.link->ep, 0), UCS_OK);
        ck_assert_int_eq(uct_iface_fence(pair.a->iface, 0), UCS_OK);
    }
    T_WAIT((pair.stream.got == 200) && (pair.link->zcopies == 0));
}
END_TEST


/* A peer that lives is found to live, however often one asks, before the
 * connection and after it, idle and under load. */
START_TEST(test_check_of_the_living)
{
    ucs_status_t status;
    pair_t pair;
    unsigned i;

    t_only_daqiri("has ep_check in any case");
    pair_open(&pair, "");
    for (i = 0; i < 2000; i++) {
        status = uct_ep_check(pair.link->ep, 0, NULL);
        ck_assert((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE));
        if ((i % 10) == 0) {
            t_send(pair.link, T_BCOPY, 30);
        }
        t_progress();
    }
    T_WAIT(pair.stream.got == pair.link->sent);
    t_iface_flush(pair.a);
    ck_assert_uint_eq(pair.a->errors + pair.b->errors, 0);
}
END_TEST


static Suite *suite_flush(void)
{
    Suite *suite = suite_create("flush");
    TCase *flush = t_uct_case("flush");
    TCase *other = t_uct_case("fence and check");

    tcase_add_test(flush, test_nothing_to_flush);
    tcase_add_loop_test(flush, test_ep_flush, 0, 3);
    tcase_add_test(flush, test_flush_when_full);
    tcase_add_loop_test(flush, test_cancel, 0, 3);
    tcase_add_test(flush, test_iface_flush);
    tcase_add_test(flush, test_iface_flush_grants);
    tcase_add_test(flush, test_iface_flush_never_refuses);
    tcase_add_loop_test(flush, test_iface_flush_tells, 0, 3);
    suite_add_tcase(suite, flush);

    tcase_add_test(other, test_fence);
    tcase_add_test(other, test_check_of_the_living);
    suite_add_tcase(suite, other);
    return suite;
}

T_UCT_MAIN(suite_flush)
