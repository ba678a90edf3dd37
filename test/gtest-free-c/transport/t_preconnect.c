/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first requests on a new endpoint. Nobody has let UCX work in between, so
 * the conn cannot be up; they are taken all the same, in order, each completes
 * once, and what they were made from may be gone by then.
 */
#include "t_uct.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 64 << 10, ROUNDS = 40, MESSAGES = 2 };

/* Ranks and numbers of a team. */
enum { SURVIVOR, VICTIM };
enum { IS_OVER };

typedef struct {
    t_end_t    *a, *b;
    t_stream_t stream;
    t_region_t local, remote;
} pair_t;

static unsigned variant;


/* Each opens and closes two ends, which takes half a second on Soft-RoCE; each
 * of the four ways to go comes three times there. */
static unsigned rounds(void)
{
    return t_is_softroce() ? 12 : ROUNDS;
}


static void pair_open(pair_t *pair)
{
    pair->a = t_end_open("");
    pair->b = t_end_open("");
    t_stream_open(&pair->stream, pair->b, 1);
    t_region_open(&pair->local, pair->a, NULL, SIZE);
    t_region_open(&pair->remote, pair->b, NULL, SIZE);
    memset(pair->local.mem, 0x5a, SIZE);
}


static void pair_close(pair_t *pair)
{
    t_region_close(&pair->local);
    t_region_close(&pair->remote);
}


/* ---- Messages ---- */

/* However it is sent, and to whomever: the first ones go, and then the answer
 * is to come back later. What waits then comes after what was held. */
START_TEST(test_messages)
{
    t_how_t how = (t_how_t)(_i % T_HOW_LAST);
    t_end_t *a  = t_end_open("");
    t_end_t *b  = (_i < T_HOW_LAST) ? t_end_open("") : a;
    t_stream_t stream;
    t_link_t *link;
    unsigned i;

    t_only_daqiri("holds what comes early");
    t_stream_open(&stream, b, 1);
    link = t_link_open(a, &b->address, 1);
    for (i = 0; i < MESSAGES; i++) {
        ck_assert_int_eq(t_try_send(link, how, 40 + i), UCS_OK);
    }
    ck_assert_int_eq(t_try_send(link, how, 40), UCS_ERR_NO_RESOURCE);
    while (link->sent < 300) {
        t_send(link, how, 40);
    }
    T_WAIT((stream.got == 300) && (link->zcopies == 0));
    ck_assert_int_eq(link->zcopy_status, UCS_OK);
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("preconnect"), MESSAGES);
}
END_TEST


/* Both sides at once. */
START_TEST(test_both_sides)
{
    t_stream_t stream[2];
    t_link_t *link[2];
    t_end_t *end[2];
    unsigned s;

    t_only_daqiri("holds what comes early");
    for (s = 0; s < 2; s++) {
        end[s] = t_end_open("RX_WINDOW=4");
        t_stream_open(&stream[s], end[s], s);
    }
    for (s = 0; s < 2; s++) {
        link[s] = t_link_open(end[s], &end[1 - s]->address, 1 - s);
        while (t_try_send(link[s], T_BCOPY, 100) == UCS_OK);
        ck_assert_uint_eq(link[s]->sent, MESSAGES);
    }
    for (s = 0; s < 2; s++) {
        while (link[s]->sent < 100) {
            t_send(link[s], T_BCOPY, 100);
        }
        T_WAIT(stream[1 - s].got == 100);
    }
}
END_TEST


/* A request that waits has been refused after two that were held; a third may
 * not overtake it. */
static ucs_status_t go(uct_pending_req_t *req);

typedef struct {
    uct_pending_req_t super;
    t_link_t          *link;
} waiting_t;

static ucs_status_t go(uct_pending_req_t *req)
{
    return t_try_send(((waiting_t*)req)->link, T_BCOPY, 10);
}

START_TEST(test_pending)
{
    waiting_t waiting = {.super = {.func = go}};
    t_end_t *a        = t_end_open("");
    t_end_t *b        = t_end_open("");
    t_stream_t stream;

    t_only_daqiri("holds what comes early");
    t_stream_open(&stream, b, 1);
    waiting.link = t_link_open(a, &b->address, 1);
    ck_assert_int_eq(t_try_send(waiting.link, T_BCOPY, 10), UCS_OK);
    ck_assert_int_eq(uct_ep_pending_add(waiting.link->ep, &waiting.super, 0),
                     UCS_OK);
    ck_assert_int_eq(t_try_send(waiting.link, T_BCOPY, 10),
                     UCS_ERR_NO_RESOURCE);
    T_WAIT(stream.got == 2);
}
END_TEST


/* ---- One-sided ---- */

typedef enum {
    PUT_SHORT,
    PUT_BCOPY,
    PUT_ZCOPY,
    GET_BCOPY,
    GET_ZCOPY,
    ADD,
    FETCH_ADD,
    CSWAP,
    FLUSH, /* behind a message */
    KINDS
} kind_t;

static size_t pack(void *to, void *arg)
{
    memcpy(to, arg, 64);
    return 64;
}


static void unpack(void *to, const void *data, size_t length)
{
    memcpy(to, data, length);
}


static ucs_status_t call_op(pair_t *pair, t_link_t *link, kind_t kind,
                            uct_completion_t *comp)
{
    uint8_t *mem    = pair->local.mem;
    uint64_t at     = (uintptr_t)pair->remote.mem;
    uct_rkey_t rkey = pair->remote.key.rkey;
    uct_iov_t iov   = {
        .buffer = mem, .length = 64, .memh = pair->local.memh, .count = 1,
    };
    ssize_t length;

    switch (kind) {
    case PUT_SHORT:
        return uct_ep_put_short(link->ep, mem, 64, at, rkey);
    case PUT_BCOPY:
        length = uct_ep_put_bcopy(link->ep, pack, mem, at, rkey);
        return (length < 0) ? (ucs_status_t)length : UCS_OK;
    case PUT_ZCOPY:
        return uct_ep_put_zcopy(link->ep, &iov, 1, at, rkey, comp);
    case GET_BCOPY:
        return uct_ep_get_bcopy(link->ep, unpack, mem, 64, at, rkey, comp);
    case GET_ZCOPY:
        return uct_ep_get_zcopy(link->ep, &iov, 1, at, rkey, comp);
    case ADD:
        return uct_ep_atomic64_post(link->ep, UCT_ATOMIC_OP_ADD, 5, at, rkey);
    case FETCH_ADD:
        return uct_ep_atomic64_fetch(link->ep, UCT_ATOMIC_OP_ADD, 5,
                                     (uint64_t*)mem, at, rkey, comp);
    case CSWAP:
        return uct_ep_atomic_cswap64(link->ep, 0, 5, at, rkey, (uint64_t*)mem,
                                     comp);
    default:
        ck_assert_int_eq(t_try_send(link, T_BCOPY, 10), UCS_OK);
        return uct_ep_flush(link->ep, 0, comp);
    }
}


/* Each of them is taken at once, and has done what it should when it ends. */
START_TEST(test_one_sided)
{
    static const uint8_t zeros[64];
    kind_t kind = (kind_t)_i;
    uint64_t five = 5;
    ucs_status_t status;
    t_link_t *link;
    t_comp_t comp;
    pair_t pair;

    t_only_daqiri("holds what comes early");
    pair_open(&pair);
    link = t_link_open(pair.a, &pair.b->address, 1);
    t_comp_init(&comp);
    status = call_op(&pair, link, kind, &comp.super);
    if (kind <= PUT_BCOPY || kind == ADD) {
        ck_assert_int_eq(status, UCS_OK);
        if (kind != ADD) {
            memset(pair.local.mem, 0, 64); /* it is ours again */
        }
    } else {
        ck_assert_int_eq(status, UCS_INPROGRESS);
        T_WAIT(comp.calls == 1);
        ck_assert_int_eq(comp.super.status, UCS_OK);
    }
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    switch (kind) {
    case PUT_SHORT:
    case PUT_BCOPY:
    case PUT_ZCOPY:
        ck_assert_uint_eq(pair.remote.mem[0], 0x5a);
        ck_assert_uint_eq(pair.remote.mem[63], 0x5a);
        ck_assert_uint_eq(pair.remote.mem[64], 0);
        break;
    case ADD:
    case FETCH_ADD:
    case CSWAP:
        ck_assert_mem_eq(pair.remote.mem, &five, sizeof(five));
        break;
    case FLUSH: /* says that it is there, not that it has been handed up */
        T_WAIT(pair.stream.got == 1);
        break;
    default:
        break;
    }
    if ((kind == GET_BCOPY) || (kind == GET_ZCOPY)) {
        ck_assert_mem_eq(pair.local.mem, zeros, 64);
    } else if ((kind == FETCH_ADD) || (kind == CSWAP)) {
        ck_assert_mem_eq(pair.local.mem, zeros, 8);
    }
    pair_close(&pair);
}
END_TEST


/* The endpoint goes before anything went out: what had been copied arrives,
 * and of the user's memory, gone as well, nothing is touched any more. */
START_TEST(test_endpoint_goes)
{
    t_link_t *link;
    t_comp_t comp;
    pair_t pair;
    unsigned i;

    t_only_daqiri("holds what comes early");
    for (i = 0; i < rounds(); i++) {
        pair_open(&pair);
        link = t_link_open(pair.a, &pair.b->address, 1);
        ck_assert_int_eq(t_try_send(link, T_SHORT, 40), UCS_OK);
        t_comp_init(&comp);
        ck_assert_int_eq(call_op(&pair, link, (i % 2) ? PUT_ZCOPY : GET_ZCOPY,
                                 &comp.super), UCS_INPROGRESS);
        ck_assert_int_eq(t_try_send(link, T_BCOPY, 500), UCS_OK);
        if (i % 4 >= 2) {
            sched_yield(); /* the NIC may have it by now, or not */
        }
        t_link_close(link);
        ck_assert_uint_eq(comp.calls, 1);
        t_region_close(&pair.local);
        T_WAIT(pair.stream.got == 2);
        t_region_close(&pair.remote);
        t_end_close_all();
    }
}
END_TEST


/* ---- The endpoint goes, and then the queue pair dies ---- */

/* The ends do not meet until the plan is another: all that is asked for is held.
 * The queue pair of the first dies at its first request. */
static const char nobody_meets[] = "drop qp=ud";
static const char dies_at_once[] = "qp-error qp=rc n=1 times=1 event=no";

static void plan(const char *text)
{
    t_only_daqiri("holds what comes early");
    if (t_is_softroce()) {
        t_skip("only softverbs has plans");
    }
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS", text, 1), 0);
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS_LOG", "/dev/null", 1), 0);
}


/* A message out of memory that is its user's again cannot be sent once more, nor
 * left out, for the peer counts: the other endpoint of the connection fails. */
START_TEST(test_endpoint_goes_before_loss)
{
    t_stream_t stream;
    t_link_t *link;
    t_end_t *a, *b;

    plan(nobody_meets);
    t_expect_loss();
    a = t_end_open("CONN_RETRY=5ms");
    b = t_end_open("CONN_RETRY=5ms");
    t_stream_open(&stream, b, 1);
    link = t_link_open(a, &b->address, 1);
    (void)t_link_open(a, &b->address, 2);
    ck_assert_int_eq(t_try_send(link, T_ZCOPY, 100), UCS_OK);
    t_link_close(link);
    t_plan_by_command(dies_at_once);
    T_WAIT((a->errors > 0) || (t_live_sum("qp_failures") > 0));
    ck_assert_uint_eq(t_live_sum("qp_failures"), 0);
    ck_assert_uint_eq(a->errors, 1);
    ck_assert_uint_eq(stream.got, 0);
}
END_TEST


/* What is one-sided can be left out: nothing is written, or read, any more. */
START_TEST(test_one_sided_goes_before_loss)
{
    kind_t kind = (_i == 0) ? PUT_ZCOPY : GET_ZCOPY;
    t_link_t *link, *other;
    t_comp_t comp;
    pair_t pair;

    plan(nobody_meets);
    t_expect_losses_of_qps();
    pair_open(&pair);
    link  = t_link_open(pair.a, &pair.b->address, 2);
    other = t_link_open(pair.a, &pair.b->address, 1);
    t_comp_init(&comp);
    ck_assert_int_eq(call_op(&pair, link, kind, &comp.super), UCS_INPROGRESS);
    t_link_close(link);
    ck_assert_uint_eq(comp.calls, 1);
    ck_assert_int_eq(comp.super.status, UCS_ERR_CANCELED);
    memset(pair.local.mem, 0x77, SIZE);
    t_plan_by_command(dies_at_once);
    T_WAIT(t_live_sum("recoveries") >= 2);
    t_send(other, T_BCOPY, 10);
    T_WAIT(pair.stream.got == 1);
    ck_assert_int_eq(t_ep_flush(other), UCS_OK);
    ck_assert_uint_eq(pair.remote.mem[0], 0);
    ck_assert_uint_eq(pair.local.mem[0], 0x77);
    pair_close(&pair);
}
END_TEST


/* ---- The device has it, and UCX has not worked since ---- */

/* What was held is under way, and takes longer than anybody waits for a dead
 * conn: to cancel it must not make the conn one. */
START_TEST(test_cancelled_before_progress)
{
    ucs_status_t status;
    t_comp_t comp;
    t_link_t *link;
    pair_t pair;

    plan("delay qp=rc op=send n=2 time=1s");
    pair_open(&pair);
    link = t_link_open(pair.a, &pair.b->address, 1);
    ck_assert_int_eq(t_try_send(link, T_BCOPY, 40), UCS_OK);
    ck_assert_int_eq(t_try_send(link, T_ZCOPY, 40), UCS_OK);
    pair.a->is_stopped = 1;
    T_WAIT(pair.stream.got == 1);
    pair.a->is_stopped = 0;

    t_comp_init(&comp);
    status = uct_ep_flush(link->ep, UCT_FLUSH_FLAG_CANCEL, &comp.super);
    ck_assert_int_eq(status, UCS_ERR_NO_RESOURCE);
    while (status == UCS_ERR_NO_RESOURCE) {
        t_progress_or_yield();
        status = uct_ep_flush(link->ep, UCT_FLUSH_FLAG_CANCEL, &comp.super);
    }
    ck_assert_int_eq(status, UCS_INPROGRESS);
    T_WAIT(comp.calls == 1);
    ck_assert_int_eq(comp.super.status, UCS_OK);
    ck_assert_uint_eq(link->zcopies, 0);
    ck_assert_int_eq(link->zcopy_status, UCS_OK);
    T_WAIT(pair.stream.got == 2);
    pair_close(&pair);
}
END_TEST


/* A completion that uses its endpoint once more. */
typedef struct {
    t_comp_t super;
    t_comp_t next;
    pair_t   *pair;
    t_link_t *link;
} chain_t;

static void chain_go(uct_completion_t *self)
{
    chain_t *chain = ucs_container_of(self, chain_t, super.super);

    chain->super.calls++;
    ck_assert_int_eq(call_op(chain->pair, chain->link, GET_ZCOPY,
                             &chain->next.super), UCS_INPROGRESS);
}

/* The queue pair dies at the message. Before progress has heard of it, the completion of
 * the request before posts another one. The message failed first, so it is sent again. */
START_TEST(test_dies_before_progress)
{
    enum { NEWS = 20000 }; /* us: for the thread that reads events */
    volatile uint8_t *written;
    chain_t chain;
    pair_t pair;

#ifdef __SANITIZE_THREAD__
    t_skip("memory is looked at that the device has written, untold");
#endif
    plan("qp-error qp=rc op=send n=1 times=1");
    t_expect_losses_of_qps();
    pair_open(&pair);
    written    = pair.remote.mem;
    chain.pair = &pair;
    chain.link = t_link_open(pair.a, &pair.b->address, 1);
    t_comp_init(&chain.super);
    t_comp_init(&chain.next);
    chain.super.super.func = chain_go;
    ck_assert_int_eq(call_op(&pair, chain.link, PUT_SHORT, NULL), UCS_OK);
    ck_assert_int_eq(call_op(&pair, chain.link, PUT_ZCOPY, &chain.super.super),
                     UCS_INPROGRESS);
    ck_assert_int_eq(t_try_send(chain.link, T_SHORT, 8), UCS_OK);
    pair.a->is_stopped = 1;
    T_WAIT(*written == 0x5a);
    usleep(NEWS);
    pair.a->is_stopped = 0;
    T_WAIT((pair.stream.got == 1) && (chain.next.calls == 1));
    ck_assert_uint_eq(chain.super.calls, 1);
    ck_assert_int_eq(chain.super.super.status, UCS_OK);
    ck_assert_int_eq(chain.next.super.status, UCS_OK);
    pair_close(&pair);
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("recoveries"), 2);
}
END_TEST


/* ---- It will never be up ---- */

/* Whatever is held ends once, with the reason. */
static void nobody_answers(t_team_t *team)
{
    t_end_t *end = t_end_open("CONN_TIMEOUT=100ms CONN_RETRY=5ms");
    const t_address_t *address;
    t_comp_t comp[2];
    pair_t pair = {.a = end};
    t_link_t *link;

    t_team_put_address(team, end);
    if (team->rank == VICTIM) {
        T_WAIT(team->shared->number[IS_OVER]);
        return;
    }

    t_region_open(&pair.local, end, NULL, SIZE);
    pair.remote = pair.local; /* a key that nobody will look at */
    address     = t_team_get_address(team, VICTIM);
    ck_assert_int_eq(kill(team->shared->pid[VICTIM], SIGKILL), 0);
    while (team->shared->pid[VICTIM] != 0) {
        sched_yield(); /* until it has been waited for */
    }
    link = t_link_open(end, address, 1);
    ck_assert_int_eq(t_try_send(link, T_ZCOPY, 100), UCS_OK);
    t_comp_init(&comp[0]);
    t_comp_init(&comp[1]);
    ck_assert_int_eq(call_op(&pair, link, (kind_t)variant, &comp[0].super),
                     UCS_INPROGRESS);
    ck_assert_int_eq(uct_ep_flush(link->ep, 0, &comp[1].super),
                     UCS_INPROGRESS);
    T_WAIT(end->errors > 0);
    ck_assert_int_eq(link->zcopy_status, UCS_ERR_ENDPOINT_TIMEOUT);
    ck_assert_uint_eq(comp[0].calls, 1);
    ck_assert_uint_eq(comp[1].calls, 1);
    ck_assert_int_eq(comp[0].super.status, UCS_ERR_ENDPOINT_TIMEOUT);
    ck_assert_int_eq(comp[1].super.status, UCS_ERR_ENDPOINT_TIMEOUT);
    ck_assert_uint_eq(link->zcopies, 0);
    ck_assert_uint_eq(end->errors, 1);
    t_link_close(link);
    t_region_close(&pair.local);
}

START_TEST(test_nobody_answers)
{
    static const kind_t kinds[] = {PUT_ZCOPY, GET_BCOPY, GET_ZCOPY, FETCH_ADD,
                                   CSWAP};

    variant = kinds[_i];
    t_only_daqiri("holds what comes early");
    t_expect_loss();
    t_team_run(2, 1u << VICTIM, nobody_answers);
}
END_TEST


/* The interface goes while it connects, rudely. */
START_TEST(test_interface_goes)
{
    unsigned i;

    t_only_daqiri("holds what comes early");
    t_expect_loss();
    for (i = 0; i < rounds(); i++) {
        t_end_t *a     = t_end_open("");
        t_end_t *b     = t_end_open("");
        t_link_t *link = t_link_open(a, &b->address, 1);

        ck_assert_int_eq(t_try_send(link, T_BCOPY, 100), UCS_OK);
        if (i % 2) {
            sched_yield();
        }
        a->is_rude = 1;
        b->is_rude = 1;
        t_end_close(a);
        t_end_close(b);
    }
}
END_TEST


static Suite *suite_early(void)
{
    Suite *suite = suite_create("preconnect");
    TCase *early = t_uct_case("preconnect");
    TCase *lost  = t_uct_case("lost");

    tcase_add_loop_test(early, test_messages, 0, 2 * T_HOW_LAST);
    tcase_add_test(early, test_both_sides);
    tcase_add_test(early, test_pending);
    tcase_add_loop_test(early, test_one_sided, 0, KINDS);
    tcase_add_test(early, test_endpoint_goes);
    tcase_add_loop_test(early, test_nobody_answers, 0, 5);
    tcase_add_test(early, test_interface_goes);
    tcase_add_test(early, test_cancelled_before_progress);
    suite_add_tcase(suite, early);

    tcase_add_test(lost, test_endpoint_goes_before_loss);
    tcase_add_test(lost, test_dies_before_progress);
    tcase_add_loop_test(lost, test_one_sided_goes_before_loss, 0, 2);
    suite_add_tcase(suite, lost);
    return suite;
}

T_UCT_MAIN(suite_early)
