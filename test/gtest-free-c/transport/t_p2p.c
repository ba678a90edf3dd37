/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints that are made first and connected later, as UCP's client/server
 * path makes them: until then everything waits, and nothing is lost by it.
 */
#include "t_uct.h"

#include <string.h>

enum { MESSAGES = 200, REQUESTS = 40, ROUNDS = 200 };

/* A request that waits until its message goes. */
typedef struct {
    uct_pending_req_t super;
    t_link_t          *link;
    unsigned          *done;
    unsigned          number;
} wait_t;


static ucs_status_t on_pending(uct_pending_req_t *super)
{
    wait_t *wait = ucs_container_of(super, wait_t, super);
    ucs_status_t status;

    status = t_try_send(wait->link, T_BCOPY, 30);
    if (status == UCS_OK) {
        ck_assert_uint_eq(wait->number, *wait->done); /* in order */
        (*wait->done)++;
    }
    return status;
}


static void on_purged(uct_pending_req_t *super, void *arg)
{
    wait_t *wait = ucs_container_of(super, wait_t, super);

    ck_assert_uint_eq(wait->number, *(unsigned*)arg);
    (*(unsigned*)arg)++;
}


static void let_wait(wait_t *wait, t_link_t *link, unsigned count,
                     unsigned *done)
{
    unsigned i;

    *done = 0;
    for (i = 0; i < count; i++) {
        wait[i] = (wait_t){.super  = {.func = on_pending},
                           .link   = link,
                           .done   = done,
                           .number = i};
        ck_assert_int_eq(uct_ep_pending_add(link->ep, &wait[i].super, 0),
                         UCS_OK);
    }
}


/* Two ends, or one with itself; both ways. */
START_TEST(test_connected)
{
    t_stream_t stream[2];
    t_link_t *link[2];
    t_end_t *end[2];
    unsigned i;

    end[0] = t_end_open("");
    end[1] = (_i == 0) ? t_end_open("") : end[0];
    for (i = 0; i < 2; i++) {
        t_stream_open(&stream[i], end[i], i);
        link[i] = t_link_make(end[i], 1 - i);
    }
    ck_assert_int_eq(t_link_connect(link[0], link[1]), UCS_OK);
    ck_assert_int_eq(t_link_connect(link[1], link[0]), UCS_OK);
    for (i = 0; i < MESSAGES; i++) {
        t_send(link[0], (i % 2) ? T_ZCOPY : T_BCOPY, i * 20);
        t_send(link[1], T_BCOPY, 10);
    }
    T_WAIT((stream[0].got == MESSAGES) && (stream[1].got == MESSAGES));
    for (i = 0; i < 2; i++) {
        ck_assert_int_eq(t_ep_flush(link[i]), UCS_OK);
    }
}
END_TEST


/* It is refused, may wait, and goes in order once there is a connection. Those of
 * another link, which is not connected, stay. */
START_TEST(test_requests_wait)
{
    t_end_t *a = t_end_open("");
    t_end_t *b = t_end_open("");
    wait_t wait[REQUESTS], stays[REQUESTS];
    t_link_t *link, *other, *back, *first;
    t_stream_t stream, first_stream;
    unsigned done, none;
    unsigned i;

    t_stream_open(&stream, b, 1);
    link  = t_link_make(a, 1);
    other = t_link_make(a, 2);
    back  = t_link_make(b, 0);
    ck_assert_int_eq(t_try_send(link, T_BCOPY, 10), UCS_ERR_NO_RESOURCE);
    ck_assert_int_eq(uct_ep_fence(link->ep, 0), UCS_OK);
    ck_assert_int_eq(uct_ep_check(link->ep, 0, NULL), UCS_OK);
    let_wait(wait, link, REQUESTS, &done);
    let_wait(stays, other, REQUESTS, &none);
    for (i = 0; i < 1000; i++) {
        t_progress();
    }
    ck_assert_uint_eq(done, 0);
    ck_assert_int_eq(uct_iface_flush(a->iface, 0, NULL), UCS_INPROGRESS);

    if (_i == 1) { /* there is a connection already */
        first = t_link_up(a, b, 3, &first_stream);
        ck_assert_int_eq(t_ep_flush(first), UCS_OK);
    }
    ck_assert_int_eq(t_link_connect(link, back), UCS_OK);
    T_WAIT(stream.got == REQUESTS);
    ck_assert_uint_eq(done, REQUESTS);
    ck_assert_uint_eq(none, 0);
    uct_ep_pending_purge(other->ep, on_purged, &none);
    ck_assert_uint_eq(none, REQUESTS);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
}
END_TEST


/* Again to the same is nothing; to another is a mistake, and changes nothing. */
START_TEST(test_connected_twice)
{
    t_end_t *a = t_end_open("");
    t_end_t *b = t_end_open("");
    t_end_t *c = t_end_open("");
    t_link_t *link, *to_b, *to_c;
    t_stream_t stream;
    unsigned i;

    t_only_daqiri("says so");
    t_expect_log("cannot be connected to another peer");
    t_stream_open(&stream, b, 1);
    link = t_link_make(a, 1);
    to_b = t_link_make(b, 0);
    to_c = t_link_make(c, 0);
    for (i = 0; i < 3; i++) {
        ck_assert_int_eq(t_link_connect(link, to_b), UCS_OK);
        t_send(link, T_BCOPY, 10);
    }
    ck_assert_int_eq(t_link_connect(link, to_c), UCS_ERR_ALREADY_EXISTS);
    t_send(link, T_BCOPY, 10);
    T_WAIT(stream.got == 4);
}
END_TEST


/* Never connected: flushed, cancelled, purged and destroyed at any moment. */
START_TEST(test_never_connected)
{
    t_end_t *a = t_end_open("");
    wait_t wait[REQUESTS];
    unsigned done, purged;
    t_link_t *link;
    t_rng_t rng;
    unsigned i;

    t_rng_init(&rng, 0xb100);
    for (i = 0; i < ROUNDS; i++) {
        link = t_link_make(a, 1);
        if (t_rng_once_in(&rng, 2)) {
            ck_assert_int_eq(t_ep_flush(link), UCS_OK);
        }
        let_wait(wait, link, t_rng_below(&rng, REQUESTS), &done);
        t_progress();
        if (t_rng_once_in(&rng, 2)) {
            purged = 0;
            uct_ep_pending_purge(link->ep, on_purged, &purged);
        }
        if (t_rng_once_in(&rng, 2)) {
            ck_assert_int_eq(uct_ep_flush(link->ep, UCT_FLUSH_FLAG_CANCEL,
                                          NULL), UCS_OK);
        }
        t_link_close(link);
        ck_assert_uint_eq(done, 0);
    }
}
END_TEST


static Suite *suite_p2p(void)
{
    Suite *suite = suite_create("p2p");
    TCase *tcase = t_uct_case("connected later");

    tcase_add_loop_test(tcase, test_connected, 0, 2);
    tcase_add_loop_test(tcase, test_requests_wait, 0, 2);
    tcase_add_test(tcase, test_connected_twice);
    tcase_add_test(tcase, test_never_connected);
    suite_add_tcase(suite, tcase);
    return suite;
}

T_UCT_MAIN(suite_p2p)
