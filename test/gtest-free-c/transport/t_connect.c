/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How ends meet: on one pair of QPs, whoever begins, however many endpoints
 * there are, and although the peer computes; and how they part.
 */
#include "t_uct.h"
#include "dq/dq_wire.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ENDPOINTS = 16, ROUNDS = 30 };

/* What the team leaves in shared->number. */
enum { WAS_SENT, IS_OVER, ARE_THERE };

enum { ASKER, PEER, KEEPER }; /* ranks of test_stopped */


/* Where an end opens and closes in each, which takes a third of a second on
 * Soft-RoCE. Of the end that stays, four take all that it may promise, if
 * nothing comes back. */
static unsigned rounds(void)
{
    return t_is_softroce() ? ROUNDS / 3 : ROUNDS;
}


/* ---- In one process ---- */

static int reaches(const t_end_t *from, const t_end_t *to)
{
    return uct_iface_is_reachable(from->iface,
                                  (const uct_device_addr_t*)to->address.dev,
                                  (const uct_iface_addr_t*)to->address.iface);
}


/* Else the first long message would be the last. */
START_TEST(test_other_segments)
{
    t_end_t *small, *large, *alike;
    unsigned i;

    t_only_daqiri("tells its peers how long a segment is");
    small = t_end_open("SEG_SIZE=4k");
    large = t_end_open("SEG_SIZE=8k");
    alike = t_end_open("SEG_SIZE=8192");
    ck_assert(reaches(large, alike));
    ck_assert(reaches(alike, large));

    t_expect_log("UCX_DAQIRI_SEG_SIZE to the same on both sides");
    for (i = 0; i < 3; i++) {
        ck_assert(!reaches(small, large));
        ck_assert(!reaches(large, small));
    }
    ck_assert_uint_eq(t_log_count("segments have 8180 bytes, for here they "
                                  "have 4084: set UCX_DAQIRI_SEG_SIZE"), 1);
    ck_assert_uint_eq(t_log_count("segments have 4084 bytes, for here they "
                                  "have 8180: set UCX_DAQIRI_SEG_SIZE"), 1);
}
END_TEST


/* An address as a version gives it: 0 for what all before 6 do. */
static void make_version(t_address_t *address, unsigned version)
{
    dq_iface_info_t info;

    memcpy(&info, address->iface, sizeof(info));
    info.seg = (info.seg & DQ_WIRE_SEG_MAX) | (version << DQ_WIRE_SEG_BITS);
    memcpy(address->iface, &info, sizeof(info));
}


static const struct {
    unsigned   version;
    const char *words;
} versions[] = {
    {0, "does not connect to a peer with version 5 or less of daqiri's wire, "
        "for here it is 9: install the same ucx-daqiri on both sides"},
    {10, "does not connect to a peer with version 10 of daqiri's wire, for here "
        "it is 9: install the same ucx-daqiri on both sides"},
};


/* No frame of either would mean anything to the other: said at once. */
START_TEST(test_other_version)
{
    t_end_t *end, *other;
    t_link_t *link;
    unsigned i;

    t_only_daqiri("tells its peers its version");
    end   = t_end_open("");
    other = t_end_open("");
    ck_assert(reaches(end, other));

    make_version(&other->address, versions[_i].version);
    t_expect_log(versions[_i].words);
    for (i = 0; i < 3; i++) {
        ck_assert(!reaches(end, other));
    }
    link = t_link_make(end, 1);
    ck_assert_int_eq(uct_ep_connect_to_ep(
                             link->ep,
                             (const uct_device_addr_t*)other->address.dev,
                             (const uct_ep_addr_t*)other->address.iface),
                     UCS_ERR_UNREACHABLE);
    ck_assert_uint_eq(t_log_count(versions[_i].words), 1);
}
END_TEST


START_TEST(test_many_endpoints_one_connection)
{
    t_stream_t stream[2][ENDPOINTS];
    t_link_t *link[2][ENDPOINTS];
    t_end_t *end[2];
    unsigned s, i, k;

    t_only_daqiri("counts its connections");
    for (s = 0; s < 2; s++) {
        end[s] = t_end_open("");
        for (i = 0; i < ENDPOINTS; i++) {
            t_stream_open(&stream[s][i], end[s], i);
        }
    }
    for (i = 0; i < ENDPOINTS; i++) {
        for (s = 0; s < 2; s++) {
            link[s][i] = t_link_open(end[s], &end[1 - s]->address, i);
        }
    }
    for (k = 0; k < 20; k++) {
        for (i = 0; i < ENDPOINTS; i++) {
            t_send(link[0][i], T_BCOPY, 10);
            t_send(link[1][i], T_BCOPY, 10);
        }
    }
    for (i = 0; i < ENDPOINTS; i++) {
        T_WAIT((stream[0][i].got == 20) && (stream[1][i].got == 20));
    }
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("conns"), 2);
    ck_assert_uint_eq(t_stats_sum("conns_up"), 2);
}
END_TEST


START_TEST(test_to_oneself)
{
    t_stream_t stream[4];
    t_link_t *link[4];
    t_end_t *end = t_end_open("");
    unsigned i, k;

    for (i = 0; i < 4; i++) {
        t_stream_open(&stream[i], end, i);
        link[i] = t_link_open(end, &end->address, i);
    }
    for (k = 0; k < 5000; k++) {
        t_send(link[k % 4], (k % 3) ? T_BCOPY : T_ZCOPY, k % 4000);
    }
    for (i = 0; i < 4; i++) {
        T_WAIT((stream[i].got == link[i]->sent) && (link[i]->zcopies == 0));
    }
    t_end_close_all();
    if (strcmp(t_tl(), "daqiri") == 0) {
        ck_assert_uint_eq(t_stats_sum("conns"), 1);
        ck_assert_uint_eq(t_stats_sum("am_self_tx"), 5000);
    }
}
END_TEST


/* Endpoints that come and go: unused, used, before and after the connection
 * is there. */
START_TEST(test_endpoints_come_and_go)
{
    t_stream_t stream;
    t_end_t *a = t_end_open("");
    t_end_t *b = t_end_open("");
    uint64_t sent = 0;
    t_link_t *link;
    t_rng_t rng;
    unsigned i;

    t_rng_init(&rng, 0xc100);
    t_stream_open(&stream, b, 1);
    for (i = 0; i < 500; i++) {
        link       = t_link_open(a, &b->address, 1);
        link->sent = sent; /* one stream, whichever endpoint it goes by */
        if (t_rng_once_in(&rng, 2)) {
            t_send(link, T_BCOPY, 20);
            sent++;
        }
        if (t_rng_once_in(&rng, 2)) {
            ck_assert_int_eq(t_ep_flush(link), UCS_OK);
        }
        t_link_close(link);
        t_progress();
    }
    T_WAIT(stream.got == sent);
}
END_TEST


/* An end that opens, connects and closes again and again, while another stays:
 * what it had been promised is given back each time, and the buffers of that are
 * the next one's. */
START_TEST(test_peers_come_and_go)
{
    t_stream_t here, there;
    t_end_t *stays, *goes;
    t_link_t *to, *back;
    unsigned i;

    t_only_daqiri("has these options");
    stays = t_end_open("RX_BUFFERS=256 RX_WINDOW=64");
    for (i = 0; i < rounds(); i++) {
        goes = t_end_open("RX_BUFFERS=64 RX_WINDOW=32 POLL_BATCH=4");
        t_stream_open(&here, stays, 1);
        t_stream_open(&there, goes, 2);
        to   = t_link_open(goes, &stays->address, 1);
        back = t_link_open(stays, &goes->address, 2);
        while (to->sent < 200) {
            t_send(to, T_BCOPY, 100);
            t_send(back, T_BCOPY, 100);
        }
        T_WAIT((here.got == 200) && (there.got == 200));
        t_iface_flush(goes);
        t_iface_flush(stays);
        t_link_close(back);
        t_end_close(goes);
        T_WAIT(t_live_sum("conns_closed") == i + 1);
    }
    t_end_close(stays);
    ck_assert_uint_eq(t_stats_max("conns"), rounds());
    ck_assert_uint_le(t_stats_max("rx_total"), 64); /* of 256 */
    ck_assert_uint_eq(t_stats_sum("rx_overcommit"), 0);
}
END_TEST


/* More peers than the memory limit has buffers for: they wait for each other,
 * nothing is lost, and it is counted and said, once. */
START_TEST(test_more_peers_than_buffers)
{
    t_stream_t stream[ENDPOINTS];
    t_link_t *link[ENDPOINTS];
    t_end_t *few;
    unsigned i, k;

    t_only_daqiri("has these options");
    t_expect_log("receive buffers are not enough");
    few = t_end_open("RX_BUFFERS=64 RX_WINDOW=32 POLL_BATCH=4");
    for (i = 0; i < ENDPOINTS; i++) {
        t_stream_open(&stream[i], few, i);
        link[i] = t_link_open(t_end_open("RNR_TIMEOUT=0.01ms"),
                              &few->address, i);
    }
    for (k = 0; k < 300; k++) {
        for (i = 0; i < ENDPOINTS; i++) {
            t_send(link[i], T_BCOPY, 100);
        }
    }
    for (i = 0; i < ENDPOINTS; i++) {
        T_WAIT(stream[i].got == 300);
    }
    ck_assert_uint_eq(t_log_count("receive buffers are not enough"), 1);
    t_end_close_all();
    ck_assert_uint_gt(t_stats_sum("rx_overcommit"), 0);
}
END_TEST


/* How many ends connect at once: more than there are places for those that ask. */
static unsigned many(void)
{
    return t_is_softroce() ? 40 : 100;
}


/* Opens and connects one end and many others: one of them asks all, or all ask it. None
 * has to wait for a timer. CONN_RETRY is long, so that a slow machine does not look like
 * a lost frame; if it stands still once, those are late that have a place then, 32. */
static void connect_many(int is_one_asking)
{
    const char *small = "RX_BUFFERS=64 RX_WINDOW=32 POLL_BATCH=4 CONN_RETRY=1s";
    t_end_t *end[100], *one = t_end_open("RX_WINDOW=4 CONN_RETRY=1s");
    unsigned i;

    for (i = 0; i < many(); i++) {
        end[i] = t_end_open(small);
    }
    for (i = 0; i < many(); i++) {
        (void)t_link_open(is_one_asking ? one : end[i],
                          is_one_asking ? &end[i]->address : &one->address, 0);
    }
    T_WAIT(t_live_sum("conns_up") == 2 * many());
    t_end_close_all();
    ck_assert_uint_eq(t_stats_max("conns_up"), many());
    ck_assert_uint_lt(t_stats_sum("frames_repeated"), 34);
    ck_assert_uint_eq(t_stats_sum("frames_flooded"), 0);
}


START_TEST(test_one_asks_many)
{
    t_only_daqiri("has these options");
    connect_many(1);
}
END_TEST


START_TEST(test_many_ask_one)
{
    t_only_daqiri("has these options");
    connect_many(0);
}
END_TEST


/* ---- Parting ---- */

/* The peer closes while we hold an endpoint to it. What is sent after that is
 * lost, and the endpoint says so, once; everything else goes on. */
START_TEST(test_peer_closes)
{
    t_end_t *a = t_end_open("");
    t_end_t *b = t_end_open("");
    t_end_t *c = t_end_open("");
    t_stream_t at_b, at_c;
    t_link_t *to_b, *to_c;
    ucs_status_t status;

    t_only_daqiri("says when a peer closes");
    t_expect_loss();
    t_stream_open(&at_b, b, 1);
    t_stream_open(&at_c, c, 2);
    to_b = t_link_open(a, &b->address, 1);
    to_c = t_link_open(a, &c->address, 2);
    t_send(to_b, T_BCOPY, 10);
    t_send(to_c, T_BCOPY, 10);
    T_WAIT((at_b.got == 1) && (at_c.got == 1));
    t_iface_flush(a);
    t_end_close(b);

    do {
        status = t_try_send(to_b, T_BCOPY, 10);
        t_progress_or_yield();
    } while ((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE));
    T_WAIT(a->errors == 1);
    ck_assert_ptr_eq(a->error_ep, to_b->ep);
    t_send(to_c, T_BCOPY, 10);
    T_WAIT(at_c.got == 2);
    t_link_close(to_b);
    t_send(to_c, T_BCOPY, 10);
    T_WAIT(at_c.got == 3);
    ck_assert_uint_eq(a->errors, 1);
    ck_assert_uint_eq(c->errors, 0);
}
END_TEST


/* A peer that closes while nobody wants anything of it is no error. */
START_TEST(test_peer_closes_unnoticed)
{
    t_end_t *a = t_end_open("");
    t_end_t *b = t_end_open("");
    t_stream_t stream;
    t_link_t *link;

    link = t_link_up(a, b, 1, &stream);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    t_end_close(b);
    t_progress_turns(2000);
    ck_assert_uint_eq(a->errors, 0);
    t_link_close(link);
    t_end_close(a);
}
END_TEST


/* Closing is quick and leaves nothing behind, although nobody has flushed and
 * the last messages were not signalled. */
START_TEST(test_close_without_flush)
{
    t_end_t *a = t_end_open("");
    t_end_t *b = t_end_open("");
    t_stream_t stream;
    t_link_t *link;
    unsigned i;

    t_stream_open(&stream, b, 1);
    link = t_link_open(a, &b->address, 1);
    for (i = 0; i < 7; i++) {
        t_send(link, T_BCOPY, 10);
    }
    T_WAIT(stream.got == 7);
    t_end_leave(a);
}
END_TEST


/* Who has an endpoint to a peer, has flushed it, and has only been sent to since,
 * owes credit and wants nothing: that the peer leaves is no error to it. */
START_TEST(test_left_by_a_sender)
{
    t_end_t *a = t_end_open("");
    t_end_t *b = t_end_open("");
    t_stream_t streams[2];
    t_link_t *to, *back;
    unsigned i;

    t_stream_open(&streams[0], b, 1);
    t_stream_open(&streams[1], a, 2);
    to   = t_link_open(a, &b->address, 1);
    back = t_link_open(b, &a->address, 2);
    t_send(back, T_BCOPY, 10);
    T_WAIT(streams[1].got == 1);
    t_iface_flush(b);
    for (i = 1; t_live_sum("credit_frames_tx") == 0; i++) {
        t_send(to, T_BCOPY, 10);
        T_WAIT(streams[0].got == i);
        t_progress();
    }
    t_link_close(to);
    t_end_leave(a);
    t_progress_turns(2000);
    ck_assert_uint_eq(b->errors, 0);
    t_end_close_all();
    t_expect_losses_of_qps(); /* of one that has only a grant under way */
}
END_TEST


static ucs_status_t go_and_count(uct_pending_req_t *req)
{
    (void)req;
    return UCS_ERR_NO_RESOURCE;
}


static void count_purged(uct_pending_req_t *req, void *arg)
{
    (void)req;
    (*(unsigned*)arg)++;
}


/* What follows needs the peer to leave at a certain moment. */
static void expect_leaving(void)
{
    t_only_daqiri("says when a peer closes");
    if (t_is_softroce()) {
        t_skip("only softverbs is slow by a plan");
    }
    t_expect_loss();
    t_expect_losses_of_qps();
}

/* Some messages that nobody waits for have been taken, and no completion has said
 * so. The peer's leaving is no error, a flush has nothing to wait for, and the next
 * message is told. */
static void leave_silent_requests(t_how_t how, unsigned count)
{
    t_end_t *a = t_end_open("");
    t_end_t *b = t_end_open("");
    t_stream_t stream;
    t_link_t *link;
    unsigned i;

    link = t_link_up(a, b, 1, &stream);
    for (i = 0; i < count; i++) {
        t_send(link, how, 10);
    }
    T_WAIT(stream.got == 1 + count);
    t_end_leave(b);
    t_progress_turns(2000);
    ck_assert_uint_eq(a->errors, 0);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    t_iface_flush(a);
    ck_assert_uint_eq(a->errors, 0);

    while (a->errors == 0) {
        (void)t_try_send(link, how, 10);
        t_progress();
    }
    t_link_close(link);
    t_end_close(a);
}

START_TEST(test_left_with_silent_requests)
{
    static const t_how_t hows[] = {T_SHORT, T_SHORT_IOV, T_BCOPY};

    t_only_daqiri("says when a peer closes");
    t_expect_loss();
    t_expect_losses_of_qps(); /* what is sent last may be flushed */
    leave_silent_requests(hows[_i % 3], 1 + 3 * (_i / 3));
}
END_TEST


/* A message that the peer had not taken when it left is lost. Its sender may wait for
 * an answer, and nothing but this tells him that none will come. */
START_TEST(test_left_with_a_message_lost)
{
    static const t_how_t hows[] = {T_SHORT, T_SHORT_IOV, T_BCOPY};
    t_end_t *a = t_end_open("");
    t_end_t *b = t_end_open("");
    t_stream_t stream;
    t_link_t *link;

    expect_leaving();
    link = t_link_up(a, b, 1, &stream);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    t_plan_by_command("delay qp=rc op=send time=50ms");
    t_send(link, hows[_i], 10);
    t_end_leave(b);
    T_WAIT(a->errors == 1);
    t_link_close(link);
    t_end_close(a);
}
END_TEST


/* A flush that is under way when the peer leaves ends well: nothing is wanted of the
 * peer any more. */
START_TEST(test_left_during_a_flush)
{
    t_end_t *a = t_end_open("");
    t_end_t *b = t_end_open("");
    t_stream_t stream;
    t_link_t *link;
    t_comp_t comp;
    ucs_status_t status;

    expect_leaving();
    t_plan_by_command("delay qp=rc op=write time=50ms");
    link = t_link_up(a, b, 1, &stream);
    t_send(link, T_BCOPY, 10);
    T_WAIT(stream.got == 2);
    t_comp_init(&comp);
    status = uct_ep_flush(link->ep, 0, &comp.super);
    ck_assert_int_eq(status, UCS_INPROGRESS);
    t_end_leave(b);
    T_WAIT(comp.calls == 1);
    ck_assert_int_eq(comp.super.status, UCS_OK);
    t_progress_turns(2000);
    ck_assert_uint_eq(a->errors, 0);
    t_link_close(link);
    t_end_close(a);
}
END_TEST


/* The peer has answered the handshake, and left, before this side looks and asks. */
START_TEST(test_left_before_a_check)
{
    t_end_t *a = t_end_open("");
    t_end_t *b = t_end_open("");
    t_link_t *link;

    expect_leaving();
    link          = t_link_open(a, &b->address, 1);
    a->is_stopped = 1;
    T_WAIT(t_live_sum("frames_rx") >= 3);
    t_end_leave(b);
    a->is_stopped = 0;

    ck_assert_int_eq(uct_ep_check(link->ep, 0, NULL), UCS_OK);
    T_WAIT(a->errors == 1);
    t_link_close(link);
    t_end_close(a);
}
END_TEST


/* Who has asked whether the peer is there is told that it is not. */
START_TEST(test_left_after_a_check)
{
    t_end_t *a = t_end_open("");
    t_end_t *b = t_end_open("");
    t_stream_t stream;
    t_link_t *link;

    expect_leaving();
    link = t_link_up(a, b, 1, &stream);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    ck_assert_int_eq(uct_ep_check(link->ep, 0, NULL), UCS_OK);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    if (_i == 0) {
        t_end_leave(b); /* it asks when the peer has gone, and does not know yet */
        ck_assert_int_eq(uct_ep_check(link->ep, 0, NULL), UCS_OK);
    } else {
        t_plan_by_command("delay qp=rc op=write time=50ms");
        ck_assert_int_eq(uct_ep_check(link->ep, 0, NULL), UCS_OK);
        ck_assert_int_eq(uct_ep_check(link->ep, 0, NULL), UCS_OK);
        t_end_leave(b);
    }
    T_WAIT(a->errors == 1);
    t_link_close(link);
    t_end_close(a);
}
END_TEST


static ucs_status_t leave_go_send(uct_pending_req_t *self)
{
    t_wait_t *req = ucs_container_of(self, t_wait_t, super);

    req->is_done = t_try_send(req->link, T_BCOPY, 10) == UCS_OK;
    return req->is_done ? UCS_OK : UCS_ERR_NO_RESOURCE;
}

/* A send queue full of messages that the peer is too slow to take, and behind them a
 * request that waits for room. */
static void leave_waiting(uct_pending_callback_t go)
{
    t_end_t *a = t_end_open("SQ_DEPTH=8");
    t_end_t *b = t_end_open("");
    t_wait_t req = {.super.func = go};
    unsigned purged = 0;
    t_stream_t stream;

    req.link = t_link_up(a, b, 1, &stream);
    t_comp_init(&req.comp);
    t_plan_by_command("delay qp=rc op=send time=50ms");
    while (t_try_send(req.link, T_BCOPY, 10) == UCS_OK) {
    }
    ck_assert_int_eq(uct_ep_pending_add(req.link->ep, &req.super, 0), UCS_OK);
    t_end_leave(b);
    T_WAIT(a->errors > 0);
    t_progress_turns(2000);
    ck_assert_uint_eq(a->errors, 1);
    ck_assert_uint_eq(req.is_done, 0);
    uct_ep_pending_purge(req.link->ep, count_purged, &purged);
    ck_assert_uint_eq(purged, 1);
    t_link_close(req.link);
    t_end_close(a);
}

START_TEST(test_left_with_a_flush_that_waits)
{
    expect_leaving();
    leave_waiting(t_wait_flush);
}
END_TEST

START_TEST(test_left_with_a_message_that_waits)
{
    expect_leaving();
    leave_waiting(leave_go_send);
}
END_TEST


/* Somebody waits for a READ: the endpoint is told if, and only if, it failed. */
START_TEST(test_left_while_reading)
{
    t_end_t *a = t_end_open("");
    t_end_t *b = t_end_open("");
    t_region_t from, to;
    t_stream_t stream;
    ucs_status_t status;
    t_link_t *link;
    t_comp_t comp;
    uct_iov_t iov;

    expect_leaving();
    t_region_open(&from, b, NULL, 4096);
    t_region_open(&to, a, NULL, 4096);
    link = t_link_up(a, b, 1, &stream);
    if (_i) {
        t_plan_by_command("delay qp=rc op=read time=10s");
    }
    iov = (uct_iov_t){.buffer = to.mem, .length = 4096, .memh = to.memh,
                      .count = 1};
    t_comp_init(&comp);
    status = uct_ep_get_zcopy(link->ep, &iov, 1, (uintptr_t)from.mem,
                              from.key.rkey, &comp.super);
    ck_assert_int_eq(status, UCS_INPROGRESS);
    t_region_close(&from);
    t_end_leave(b);
    T_WAIT(comp.calls == 1);
    t_progress_turns(2000);
    ck_assert_uint_eq(a->errors, comp.super.status != UCS_OK);
    ck_assert(!_i || (comp.super.status != UCS_OK));
    t_link_close(link);
    t_region_close(&to);
    t_end_close(a);
}
END_TEST


/* Given up while it connects, with requests that wait. */
START_TEST(test_destroyed_while_connecting)
{
    uct_pending_req_t req[4];
    t_end_t *a = t_end_open("");
    t_end_t *b = t_end_open("");
    unsigned i, k, purged;
    t_link_t *link;

    for (i = 0; i < ROUNDS; i++) {
        link = t_link_open(a, &b->address, 1);
        for (k = 0; k < 4; k++) {
            req[k].func = go_and_count;
            if (uct_ep_pending_add(link->ep, &req[k], 0) != UCS_OK) {
                break; /* connected by now */
            }
        }
        purged = 0;
        uct_ep_pending_purge(link->ep, count_purged, &purged);
        ck_assert_uint_eq(purged, k);
        t_link_close(link);
        if (i % 2) {
            t_progress();
        }
    }
}
END_TEST


/* ---- Between processes ---- */

/* Both open at once, and again and again with new ends: every time one
 * connection, every message. */
static void both_open(t_team_t *team)
{
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end;
    unsigned i;

    for (i = 0; i < rounds(); i++) {
        end = t_end_open("");
        t_stream_open(&stream, end, 1);
        t_team_put_address(team, end);
        t_team_barrier(team);
        link = t_link_open(end, t_team_get_address(team, 1 - team->rank), 1);
        while (link->sent < 10) {
            t_send(link, T_BCOPY, 50);
        }
        T_WAIT(stream.got == 10);
        t_iface_flush(end);
        t_team_barrier(team);
        t_end_close(end);
        t_team_barrier(team);
    }
}

START_TEST(test_both_open)
{
    t_team_run(2, 0, both_open);
    if (strcmp(t_tl(), "daqiri") == 0) {
        ck_assert_uint_eq(t_stats_sum("conns"), 2 * rounds());
        ck_assert_uint_eq(t_stats_sum("conns_up"), 2 * rounds());
        ck_assert_uint_eq(t_stats_sum("am_rx"), 2 * rounds() * 10);
    }
}
END_TEST


/* Rank 1 computes: it never lets UCX work until rank 0 has connected to it,
 * sent, and seen its flush complete. */
static void one_computes(t_team_t *team)
{
    volatile uint64_t *number = team->shared->number;
    t_end_t *end              = t_end_open("");
    t_stream_t stream;
    t_link_t *link;

    t_stream_open(&stream, end, 1);
    t_team_put_address(team, end);
    if (team->rank == 0) {
        link = t_link_open(end, t_team_get_address(team, 1), 1);
        while (link->sent < 5) {
            t_send(link, T_BCOPY, 50);
        }
        ck_assert_int_eq(t_ep_flush(link), UCS_OK);
        number[WAS_SENT] = 1;
    } else {
        while (!number[WAS_SENT]) {
            sched_yield();
        }
        T_WAIT(stream.got == 5);
    }
    t_team_barrier(team);
}

START_TEST(test_one_computes)
{
    t_only_daqiri("promises to connect although the peer computes");
    t_team_run(2, 0, one_computes);
    ck_assert_uint_eq(t_stats_sum("am_rx"), 5);
}
END_TEST


/* The very first message travels while its sender has gone on to compute. */
static void one_sends_and_computes(t_team_t *team)
{
    volatile uint64_t *number = team->shared->number;
    t_end_t *end              = t_end_open("");
    t_stream_t stream;
    t_link_t *link;

    t_stream_open(&stream, end, 1);
    t_team_put_address(team, end);
    if (team->rank == 0) {
        link = t_link_open(end, t_team_get_address(team, 1), 1);
        t_send(link, T_BCOPY, 50);
        while (!number[IS_OVER]) {
            sched_yield();
        }
        t_iface_flush(end); /* before its peer goes */
    } else {
        T_WAIT(stream.got == 1);
        number[IS_OVER] = 1;
    }
    t_team_barrier(team);
}

START_TEST(test_one_sends_and_computes)
{
    t_only_daqiri("promises to connect although the peer computes");
    t_team_run(2, 0, one_sends_and_computes);
}
END_TEST


/* Its threads may go on for a while after kill(). */
static void stop(pid_t pid)
{
    char name[32];
    char state = '?';
    FILE *file;

    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    (void)snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
    while (state != 'T') {
        file = fopen(name, "r");
        ck_assert_ptr_nonnull(file);
        ck_assert_int_eq(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
        fclose(file);
    }
}


/* A suspended job: both ends stand still for longer than their time limit, in
 * the middle of the handshake. */
static void stopped(t_team_t *team)
{
    volatile uint64_t *number = team->shared->number;
    volatile pid_t *pid       = team->shared->pid;
    t_end_t *end              = t_end_open("CONN_TIMEOUT=500ms");
    t_stream_t stream;
    t_link_t *link;

    t_stream_open(&stream, end, 1);
    t_team_put_address(team, end);
    (void)__atomic_add_fetch(&number[ARE_THERE], 1, __ATOMIC_SEQ_CST);
    T_WAIT(number[ARE_THERE] == 3); /* a barrier could be stopped in the middle */
    switch (team->rank) {
    case ASKER:
        stop(pid[PEER]);
        link = t_link_open(end, t_team_get_address(team, PEER), 1);
        t_send(link, T_BCOPY, 50);
        T_WAIT(t_live_sum("frames_repeated") > 0); /* it has begun to ask */
        number[WAS_SENT] = 1;
        ck_assert_int_eq(t_ep_flush(link), UCS_OK);
        number[IS_OVER] = 1;
        break;
    case PEER:
        T_WAIT((stream.got == 1) && number[IS_OVER]);
        break;
    default:
        while (!number[WAS_SENT]) {
            sched_yield();
        }
        stop(pid[ASKER]);
        usleep(1000000);
        ck_assert_int_eq(kill(pid[ASKER], SIGCONT), 0);
        usleep(50000); /* the asker sees first how late it is */
        ck_assert_int_eq(kill(pid[PEER], SIGCONT), 0);
    }
    t_team_barrier(team);
    ck_assert_uint_eq(end->errors, 0);
}

START_TEST(test_stopped)
{
    t_only_daqiri("promises that a suspended job goes on");
    t_team_run(3, 0, stopped);
}
END_TEST


static Suite *suite_connect(void)
{
    Suite *suite = suite_create("connect");
    TCase *meet  = t_uct_case("meet");
    TCase *part  = t_uct_case("part");
    TCase *team  = t_uct_case("stopped processes");

    tcase_add_test(meet, test_other_segments);
    tcase_add_loop_test(meet, test_other_version, 0,
                        sizeof(versions) / sizeof(versions[0]));
    tcase_add_test(meet, test_many_endpoints_one_connection);
    tcase_add_test(meet, test_to_oneself);
    tcase_add_test(meet, test_endpoints_come_and_go);
    tcase_add_test(meet, test_peers_come_and_go);
    tcase_add_test(meet, test_more_peers_than_buffers);
    tcase_add_test(meet, test_one_asks_many);
    tcase_add_test(meet, test_many_ask_one);
    suite_add_tcase(suite, meet);

    tcase_add_test(part, test_peer_closes);
    tcase_add_test(part, test_peer_closes_unnoticed);
    tcase_add_test(part, test_close_without_flush);
    tcase_add_test(part, test_left_by_a_sender);
    tcase_add_loop_test(part, test_left_with_silent_requests, 0, 9);
    tcase_add_loop_test(part, test_left_with_a_message_lost, 0, 3);
    tcase_add_test(part, test_left_during_a_flush);
    tcase_add_test(part, test_left_before_a_check);
    tcase_add_loop_test(part, test_left_after_a_check, 0, 2);
    tcase_add_test(part, test_left_with_a_flush_that_waits);
    tcase_add_test(part, test_left_with_a_message_that_waits);
    tcase_add_loop_test(part, test_left_while_reading, 0, 2);
    tcase_add_test(part, test_destroyed_while_connecting);
    suite_add_tcase(suite, part);

    tcase_add_test(team, test_both_open);
    tcase_add_test(team, test_one_computes);
    tcase_add_test(team, test_one_sends_and_computes);
    tcase_add_test(team, test_stopped);
    suite_add_tcase(suite, team);
    return suite;
}

T_UCT_MAIN(suite_connect)
