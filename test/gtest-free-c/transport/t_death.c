/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer is killed. Whatever it was in the middle of: every completion that
 * is owed comes, once; the endpoint says that it failed, once; it can be
 * destroyed; and nobody else notices.
 */
#include "t_uct.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Rank 0 survives and kills rank 1; rank 2, if there is one, lives too. */
enum { SURVIVOR, VICTIM, WITNESS };

/* Numbers that the team shares. */
enum { IS_OVER, IS_FLOWING, IS_CLOSING, ADDRESS, KEY };

enum { REQUESTS = 20, VARIANTS = 8 };

/* Of the test that runs; set before the team is made. */
static unsigned variant;


/* Failures that come quickly, on any device: but not so quickly that a living
 * peer, whom nobody lets run for a while, is taken for a dead one. */
static const char *options(void)
{
    return (strcmp(t_tl(), "daqiri") == 0)
                   ? "TIMEOUT=32ms RETRY_COUNT=3 CONN_TIMEOUT=5s "
                     "RECOVERY_TIMEOUT=500ms" : "";
}


/* The same for who wants to connect to the dead. */
static const char *hasty_options(void)
{
    return "TIMEOUT=32ms RETRY_COUNT=3 CONN_TIMEOUT=300ms CONN_RETRY=5ms "
           "RECOVERY_TIMEOUT=200ms";
}


static void run(unsigned size, void (*body)(t_team_t *team))
{
    t_only_daqiri("reports a dead peer");
    t_expect_loss();
    t_expect_log("; lost, connecting again");
    t_team_run(size, 1u << VICTIM, body);
}


static void kill_victim(t_team_t *team)
{
    ck_assert_int_eq(kill(team->shared->pid[VICTIM], SIGKILL), 0);
}


/* A link whose first message has only been taken may have no peer yet. */
static void meet(t_link_t *link)
{
    t_send(link, T_BCOPY, 10);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
}


/* Works until it is killed, or for the others until all is over. */
static void stay(t_team_t *team)
{
    T_WAIT(team->shared->number[IS_OVER]);
}


/* Sends until that fails. Returns how it failed. Now and then it checks the
 * endpoint, as UCP's keepalive does: who waits for credits of a dead peer has
 * nothing under way that could fail. */
static ucs_status_t send_in_vain(t_link_t *link, t_how_t how)
{
    unsigned i = 0;
    ucs_status_t status;

    do {
        status = t_try_send(link, how, 1000);
        if (++i % 100 == 0) {
            uct_ep_check(link->ep, 0, NULL);
        }
        t_progress_or_yield();
    } while ((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE));
    return status;
}


/* The endpoint has failed, has said so once, owes nothing, and can go. */
static void check_failed(t_end_t *end, t_link_t *link)
{
    T_WAIT((end->errors > 0) && (link->zcopies == 0));
    ck_assert_ptr_eq(end->error_ep, link->ep);
    ck_assert_int_eq(t_try_send(link, T_BCOPY, 10), end->error);
    t_link_close(link);
    t_progress_turns(1000);
    ck_assert_uint_eq(end->errors, 1);
}


/* ---- In the middle of a stream of ours ---- */

/* Between the kill and the error: messages of some kind, flushes. */
static void kill_in_stream(t_team_t *team)
{
    t_how_t how  = (variant % 2) ? T_ZCOPY : T_BCOPY;
    t_end_t *end = t_end_open(options());
    t_stream_t stream;
    ucs_status_t status;
    t_link_t *link;

    t_stream_open(&stream, end, 1);
    t_team_put_address(team, end);
    if (team->rank == VICTIM) {
        stay(team);
        return;
    }

    link = t_link_open(end, t_team_get_address(team, VICTIM), 1);
    meet(link);
    while (link->sent < 2 + 97 * variant) {
        t_send(link, how, 1000);
    }
    kill_victim(team);
    if (variant % 4 >= 2) {
        t_try_send(link, T_ZCOPY, 1000);
        status = t_ep_flush(link);
        ck_assert_int_ne(status, UCS_INPROGRESS);
    }
    status = send_in_vain(link, how);
    ck_assert(UCS_STATUS_IS_ERR(status));
    check_failed(end, link);
}

START_TEST(test_in_stream)
{
    variant = _i;
    run(2, kill_in_stream);
}
END_TEST


/* ---- With requests that wait ---- */

static ucs_status_t pending_go(uct_pending_req_t *req)
{
    (void)req;
    return UCS_ERR_NO_RESOURCE;
}


static void pending_back(uct_pending_req_t *req, void *arg)
{
    ck_assert_ptr_nonnull(req->func);
    req->func = NULL; /* comes back once */
    (*(unsigned*)arg)++;
}


static void kill_with_pending(t_team_t *team)
{
    uct_pending_req_t req[REQUESTS];
    t_end_t *end     = t_end_open(options());
    unsigned added   = 0;
    unsigned purged  = 0;
    t_stream_t stream;
    ucs_status_t status;
    t_link_t *link;

    t_stream_open(&stream, end, 1);
    t_team_put_address(team, end);
    if (team->rank == VICTIM) {
        stay(team);
        return;
    }

    link = t_link_open(end, t_team_get_address(team, VICTIM), 1);
    meet(link);
    t_send(link, T_ZCOPY, 1000);
    kill_victim(team);
    while (added < REQUESTS) {
        req[added].func = pending_go;
        status          = uct_ep_pending_add(link->ep, &req[added], 0);
        if (status == UCS_OK) {
            added++;
        } else if (t_try_send(link, T_ZCOPY, 1000) != UCS_OK) {
            t_progress_or_yield();
        }
        if (end->errors > 0) {
            break;
        }
    }
    while (end->errors == 0) {
        uct_ep_check(link->ep, 0, NULL);
        t_progress_or_yield();
    }
    uct_ep_pending_purge(link->ep, pending_back, &purged);
    ck_assert_uint_eq(purged, added);
    check_failed(end, link);
}

START_TEST(test_with_pending)
{
    run(2, kill_with_pending);
}
END_TEST


/* ---- While nothing is under way ---- */

static void kill_idle(t_team_t *team)
{
    t_end_t *end = t_end_open(options());
    t_stream_t stream;
    t_link_t *link;

    t_stream_open(&stream, end, 1);
    t_team_put_address(team, end);
    if (team->rank == VICTIM) {
        stay(team);
        return;
    }

    link = t_link_open(end, t_team_get_address(team, VICTIM), 1);
    meet(link);
    t_send(link, T_BCOPY, 100);
    if (variant < 2) { /* otherwise its completion was not asked for */
        ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    }
    kill_victim(team);
    if (variant % 2 == 0) { /* ep_check finds out */
        while (end->errors == 0) {
            uct_ep_check(link->ep, 0, NULL);
            t_progress_or_yield();
        }
    } else { /* the next message does */
        send_in_vain(link, T_ZCOPY);
    }
    check_failed(end, link);
}

START_TEST(test_idle)
{
    variant = _i;
    run(2, kill_idle);
}
END_TEST


/* All that was sent is over, and the peer has granted nothing for it: nothing is
 * under way that could fail, and nothing is asked but to send, or to wait. */
static void kill_ungranting(t_team_t *team)
{
    uct_pending_req_t req = {.func = pending_go};
    t_end_t *end          = t_end_open(options());
    unsigned purged       = 0;
    t_link_t *link;

    t_team_put_address(team, end);
    if (team->rank == VICTIM) {
        while (!team->shared->number[IS_OVER]) {
            sched_yield(); /* its device takes messages, and it none */
        }
        return;
    }

    link = t_link_open(end, t_team_get_address(team, VICTIM), 1);
    meet(link);
    while (t_try_send(link, T_BCOPY, 10) == UCS_OK) {
        ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    }
    kill_victim(team);
    if (variant == 0) {
        while (t_try_send(link, T_BCOPY, 10) == UCS_ERR_NO_RESOURCE) {
            t_progress_or_yield();
        }
    } else {
        ck_assert_int_eq(uct_ep_pending_add(link->ep, &req, 0), UCS_OK);
        T_WAIT(end->errors > 0);
        uct_ep_pending_purge(link->ep, pending_back, &purged);
        ck_assert_uint_eq(purged, 1);
    }
    check_failed(end, link);
}

START_TEST(test_ungranting)
{
    variant = _i;
    run(2, kill_ungranting);
}
END_TEST


/* ---- Before it has answered ---- */

static void kill_unconnected(t_team_t *team)
{
    t_end_t *end = t_end_open(hasty_options());
    const t_address_t *address;
    ucs_status_t status;
    t_link_t *link;

    t_team_put_address(team, end);
    if (team->rank == VICTIM) {
        stay(team);
        return;
    }

    address = t_team_get_address(team, VICTIM);
    kill_victim(team);
    link   = t_link_open(end, address, 1);
    status = send_in_vain(link, T_BCOPY);
    ck_assert_int_eq(status, UCS_ERR_ENDPOINT_TIMEOUT);
    ck_assert_uint_le(link->sent, 2); /* held, and lost */
    check_failed(end, link);
}

START_TEST(test_unconnected)
{
    run(2, kill_unconnected);
}
END_TEST


/* ---- With each kind of operation, before, during and after ---- */

typedef enum {
    AM_ZCOPY,
    PUT_SHORT,
    PUT_BCOPY,
    PUT_ZCOPY,
    GET_BCOPY,
    GET_ZCOPY,
    ADD,
    FETCH_ADD,
    CSWAP,
    FLUSH,
    KINDS
} kind_t;

typedef enum {
    CONNECTING, /* the first requests are held, or have just gone            */
    POSTED,     /* killed with requests under way                            */
    KILLED,     /* the requests are posted afterwards                        */
    WHENS
} when_t;

enum { OPS = 48, LENGTH = 256 << 10, KEY_MAX = 256, SHORT = 32 };

typedef struct {
    uint8_t           *mem;
    uct_mem_h         memh;
    uint64_t          remote;
    uct_rkey_bundle_t key;
    t_comp_t          comp[OPS];
} ops_t;


static void ops_open(ops_t *ops, t_end_t *end)
{
    *ops     = (ops_t){.mem = calloc(1, LENGTH)};
    ck_assert_ptr_nonnull(ops->mem);
    ck_assert_int_eq(uct_md_mem_reg(end->md, ops->mem, LENGTH,
                                    UCT_MD_MEM_ACCESS_ALL, &ops->memh),
                     UCS_OK);
}


/* Nobody may use the memory any more. */
static void ops_close(ops_t *ops, t_end_t *end)
{
    ck_assert_int_eq(uct_md_mem_dereg(end->md, ops->memh), UCS_OK);
    memset(ops->mem, 0xdd, LENGTH);
    free(ops->mem);
}


/* The victim's memory, for the survivor. */
static void ops_offer(const ops_t *ops, t_end_t *end, t_team_t *team)
{
    uint64_t packed[KEY_MAX / 8] = {0};

    ck_assert_uint_le(end->md_attr.rkey_packed_size, sizeof(packed[0]));
    ck_assert_int_eq(uct_md_mkey_pack(end->md, ops->memh, packed), UCS_OK);
    team->shared->number[ADDRESS] = (uintptr_t)ops->mem;
    team->shared->number[KEY]     = packed[0];
}


static void ops_take(ops_t *ops, t_end_t *end, t_team_t *team)
{
    uint64_t packed[KEY_MAX / 8] = {0};

    ops->remote = team->shared->number[ADDRESS];
    packed[0]   = team->shared->number[KEY];
    ck_assert_int_eq(uct_rkey_unpack(end->component, packed, &ops->key),
                     UCS_OK);
}


static size_t pack_short(void *to, void *arg)
{
    memcpy(to, arg, SHORT);
    return SHORT;
}


static void unpack_short(void *to, const void *data, size_t length)
{
    memcpy(to, data, length);
}


static ucs_status_t ops_call(ops_t *ops, t_link_t *link, kind_t kind,
                             uct_completion_t *comp)
{
    size_t length = (kind == AM_ZCOPY) ? 2000 : LENGTH;
    uct_ep_h ep   = link->ep;
    uct_iov_t iov = {.buffer = ops->mem, .length = length, .memh = ops->memh,
                     .count = 1};
    ssize_t packed;

    switch (kind) {
    case AM_ZCOPY:
        return uct_ep_am_zcopy(ep, 2, NULL, 0, &iov, 1, 0, comp);
    case PUT_SHORT:
        return uct_ep_put_short(ep, ops->mem, SHORT, ops->remote,
                                ops->key.rkey);
    case PUT_BCOPY:
        packed = uct_ep_put_bcopy(ep, pack_short, ops->mem, ops->remote,
                                  ops->key.rkey);
        return (packed < 0) ? (ucs_status_t)packed : UCS_OK;
    case PUT_ZCOPY:
        return uct_ep_put_zcopy(ep, &iov, 1, ops->remote, ops->key.rkey, comp);
    case GET_BCOPY:
        return uct_ep_get_bcopy(ep, unpack_short, ops->mem, SHORT, ops->remote,
                                ops->key.rkey, comp);
    case GET_ZCOPY:
        return uct_ep_get_zcopy(ep, &iov, 1, ops->remote, ops->key.rkey, comp);
    case ADD:
        return uct_ep_atomic64_post(ep, UCT_ATOMIC_OP_ADD, 1, ops->remote,
                                    ops->key.rkey);
    case FETCH_ADD:
        return uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_ADD, 1,
                                     (uint64_t*)ops->mem, ops->remote,
                                     ops->key.rkey, comp);
    case CSWAP:
        return uct_ep_atomic_cswap64(ep, 0, 1, ops->remote, ops->key.rkey,
                                     (uint64_t*)ops->mem, comp);
    default:
        return uct_ep_flush(ep, 0, comp);
    }
}


static ucs_status_t ignore(void *arg, void *data, size_t length,
                           unsigned flags)
{
    (void)arg;
    (void)data;
    (void)length;
    (void)flags;
    return UCS_OK;
}


/* As many as there is room for. */
static void ops_post(ops_t *ops, t_link_t *link, kind_t kind)
{
    unsigned i;

    for (i = 0; i < OPS; i++) {
        t_comp_init(&ops->comp[i]);
        switch (ops_call(ops, link, kind, &ops->comp[i].super)) {
        case UCS_INPROGRESS:
            break;
        case UCS_OK:
            ops->comp[i].calls = 1; /* none will come */
            break;
        default:
            ops->comp[i].calls = 1;
            return;
        }
    }
}


static unsigned ops_left(const ops_t *ops)
{
    unsigned left = 0;
    unsigned i;

    for (i = 0; (i < OPS) && (ops->comp[i].super.func != NULL); i++) {
        left += ops->comp[i].calls == 0;
    }
    return left;
}


static void kill_with_ops(t_team_t *team)
{
    when_t when  = (when_t)(variant % WHENS);
    kind_t kind  = (kind_t)(variant / WHENS);
    t_end_t *end = t_end_open((when == CONNECTING) ? hasty_options()
                                                   : options());
    t_stream_t stream;
    t_link_t *link;
    ops_t ops;

    t_stream_open(&stream, end, 1);
    ops_open(&ops, end);
    if (team->rank == VICTIM) {
        ck_assert_int_eq(uct_iface_set_am_handler(end->iface, 2, ignore, NULL,
                                                  0), UCS_OK);
        ops_offer(&ops, end, team);
        t_team_put_address(team, end);
        stay(team);
        return;
    }

    link = t_link_open(end, t_team_get_address(team, VICTIM), 1);
    ops_take(&ops, end, team);
    if (when != CONNECTING) {
        meet(link);
    }
    if (when != KILLED) {
        ops_post(&ops, link, kind);
    }
    kill_victim(team);
    if (when == KILLED) {
        ops_post(&ops, link, kind);
    }
    while (end->errors == 0) {
        uct_ep_check(link->ep, 0, NULL); /* those that wrote could be through */
        t_progress_or_yield();
    }
    ck_assert_uint_eq(ops_left(&ops), 0);
    check_failed(end, link);
    ops_close(&ops, end);
}

START_TEST(test_with_ops)
{
    variant = _i;
    run(2, kill_with_ops);
}
END_TEST


/* The victim is closing when it is killed, and may or may not have come to say
 * so. A message after that fails, in either case. */
static void kill_closing(t_team_t *team)
{
    t_end_t *end = t_end_open(options());
    t_stream_t stream;
    t_link_t *link, *back;
    unsigned i;

    t_stream_open(&stream, end, 1);
    t_team_put_address(team, end);
    if (team->rank == VICTIM) {
        back = t_link_open(end, t_team_get_address(team, SURVIVOR), 1);
        t_send(back, T_BCOPY, 100);
        T_WAIT(team->shared->number[IS_CLOSING]);
        t_end_close_all();
        for (;;) {
            sched_yield(); /* is killed */
        }
    }

    link = t_link_open(end, t_team_get_address(team, VICTIM), 1);
    t_send(link, T_BCOPY, 100);
    T_WAIT(stream.got == 1);
    team->shared->number[IS_CLOSING] = 1;
    for (i = 0; i < (1u << variant); i++) {
        t_progress_or_yield();
    }
    kill_victim(team);
    send_in_vain(link, T_ZCOPY);
    check_failed(end, link);
}

START_TEST(test_closing)
{
    variant = _i;
    run(2, kill_closing);
}
END_TEST


/* ---- Others ---- */

/* The victim streams to the survivor when it is killed; so does the witness,
 * before and after. What came is right, and the witness loses nothing. */
static void kill_sender(t_team_t *team)
{
    volatile uint64_t *number = team->shared->number;
    t_end_t *end              = t_end_open(options());
    static t_stream_t stream[3]; /* messages of the victim may still be read after this */
    t_link_t *link;
    unsigned i;

    for (i = 0; i < 3; i++) {
        t_stream_open(&stream[i], end, i);
    }
    t_team_put_address(team, end);
    if (team->rank == SURVIVOR) {
        T_WAIT((stream[VICTIM].got > 500) && (stream[WITNESS].got > 500));
        kill_victim(team);
        T_WAIT(stream[WITNESS].got == 20000);
        number[IS_OVER] = 1;
        return;
    }

    link = t_link_open(end, t_team_get_address(team, SURVIVOR), team->rank);
    while ((team->rank == VICTIM) || (link->sent < 20000)) {
        t_send(link, T_BCOPY, 200);
    }
    t_iface_flush(end);
    stay(team);
    ck_assert_uint_eq(end->errors, 0);
}

START_TEST(test_sender)
{
    run(3, kill_sender);
}
END_TEST


/* The survivor sends to both. One fails, the other does not. */
static void kill_one_of_two(t_team_t *team)
{
    t_end_t *end = t_end_open(options());
    t_link_t *to_victim, *to_witness;
    t_stream_t stream;

    t_stream_open(&stream, end, 1);
    t_team_put_address(team, end);
    if (team->rank == WITNESS) {
        T_WAIT(stream.got == 3000);
        team->shared->number[IS_OVER] = 1;
    }
    if (team->rank != SURVIVOR) {
        stay(team);
        return;
    }

    to_victim  = t_link_open(end, t_team_get_address(team, VICTIM), 1);
    to_witness = t_link_open(end, t_team_get_address(team, WITNESS), 1);
    while (to_witness->sent < 1000) {
        t_send(to_victim, T_ZCOPY, 500);
        t_send(to_witness, T_ZCOPY, 500);
    }
    kill_victim(team);
    while (to_witness->sent < 2000) {
        t_try_send(to_victim, T_ZCOPY, 500);
        t_send(to_witness, T_ZCOPY, 500);
    }
    send_in_vain(to_victim, T_ZCOPY);
    check_failed(end, to_victim);
    while (to_witness->sent < 3000) {
        t_send(to_witness, T_ZCOPY, 500);
    }
    T_WAIT(to_witness->zcopies == 0);
    ck_assert_int_eq(to_witness->zcopy_status, UCS_OK);
    stay(team);
}

START_TEST(test_one_of_two)
{
    run(3, kill_one_of_two);
}
END_TEST


static Suite *suite_death(void)
{
    Suite *suite = suite_create("death");
    TCase *death = t_uct_case("death");
    TCase *quiet = t_uct_case("quiet");

    tcase_add_loop_test(death, test_in_stream, 0, VARIANTS);
    tcase_add_test(death, test_with_pending);
    tcase_add_loop_test(death, test_idle, 0, 4);
    tcase_add_test(death, test_unconnected);
    tcase_add_loop_test(death, test_with_ops, 0, KINDS * WHENS);
    tcase_add_loop_test(death, test_closing, 0, 10);
    tcase_add_test(death, test_sender);
    tcase_add_test(death, test_one_of_two);
    suite_add_tcase(suite, death);

    tcase_add_loop_test(quiet, test_ungranting, 0, 2);
    suite_add_tcase(suite, quiet);
    return suite;
}

T_UCT_MAIN(suite_death)
