/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer is killed. Whatever it was in the middle of: every completion that
 * is owed comes, once; the endpoint says that it failed, once; it can be
 * destroyed; and nobody else notices.
 */
#include "t_uct.h"

#include <signal.h>
#include <string.h>

/* Rank 0 survives and kills rank 1; rank 2, if there is one, lives too. */
enum { SURVIVOR, VICTIM, WITNESS };

/* Numbers that the team shares. */
enum { IS_OVER, IS_FLOWING };

enum { REQUESTS = 20, VARIANTS = 8 };

/* Of the test that runs; set before the team is made. */
static unsigned variant;


/* Failures that come quickly, on any device. */
static const char *options(void)
{
    return (strcmp(t_tl(), "daqiri") == 0)
                   ? "TIMEOUT=8ms RETRY_COUNT=3 CONN_TIMEOUT=300ms "
                     "CONN_RETRY=5ms"
                   : "";
}


static void run(unsigned size, void (*body)(t_team_t *team))
{
    t_only_daqiri("reports a dead peer");
    t_expect_loss();
    t_team_run(size, 1u << VICTIM, body);
}


static void kill_victim(t_team_t *team)
{
    ck_assert_int_eq(kill(team->shared->pid[VICTIM], SIGKILL), 0);
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
    unsigned i;

    T_WAIT((end->errors > 0) && (link->zcopies == 0));
    ck_assert_ptr_eq(end->error_ep, link->ep);
    ck_assert_int_eq(t_try_send(link, T_BCOPY, 10), end->error);
    t_link_close(link);
    for (i = 0; i < 1000; i++) {
        t_progress_or_yield();
    }
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
    while (link->sent < 1 + 97 * variant) {
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


/* ---- Before it has answered ---- */

static void kill_unconnected(t_team_t *team)
{
    t_end_t *end = t_end_open(options());
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
    ck_assert_uint_eq(link->sent, 0);
    check_failed(end, link);
}

START_TEST(test_unconnected)
{
    run(2, kill_unconnected);
}
END_TEST


/* ---- Others ---- */

/* The victim streams to the survivor when it is killed; so does the witness,
 * before and after. What came is right, and the witness loses nothing. */
static void kill_sender(t_team_t *team)
{
    volatile uint64_t *number = team->shared->number;
    t_end_t *end              = t_end_open(options());
    t_stream_t stream[3];
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

    tcase_add_loop_test(death, test_in_stream, 0, VARIANTS);
    tcase_add_test(death, test_with_pending);
    tcase_add_loop_test(death, test_idle, 0, 4);
    tcase_add_test(death, test_unconnected);
    tcase_add_test(death, test_sender);
    tcase_add_test(death, test_one_of_two);
    suite_add_tcase(suite, death);
    return suite;
}

T_UCT_MAIN(suite_death)
