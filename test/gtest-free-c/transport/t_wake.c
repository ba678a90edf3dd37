/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeping on an interface's file descriptor: whatever gives progress something
 * to do wakes, each time; and while nothing happens nothing wakes.
 */
#include "t_uct.h"

#include <poll.h>
#include <stdlib.h>
#include <time.h>

enum { MSEC = 1000, PATIENCE = 60 * MSEC };

static int event_fd(t_end_t *end)
{
    int fd = -1;

    ck_assert_int_eq(uct_iface_event_fd_get(end->iface, &fd), UCS_OK);
    ck_assert_int_ge(fd, 0);
    return fd;
}


static int is_readable(int fd, int timeout)
{
    struct pollfd event = {.fd = fd, .events = POLLIN};
    int ret             = poll(&event, 1, timeout);

    ck_assert_int_ge(ret, 0);
    return ret;
}


static ucs_status_t arm(t_end_t *end)
{
    ucs_status_t status;

    status = uct_iface_event_arm(end->iface,
                                 UCT_EVENT_SEND_COMP | UCT_EVENT_RECV);
    ck_assert((status == UCS_OK) || (status == UCS_ERR_BUSY));
    return status;
}


/* Works until the end may sleep. */
static void settle(t_end_t *end)
{
    do {
        while (t_progress() > 0) {
        }
    } while (arm(end) != UCS_OK);
}


/* Works and sleeps until the condition holds; counts how often it slept. Nobody
 * sleeps as long as PATIENCE unless a wake-up was lost. */
#define SLEEP_UNTIL(_end, _slept, _cond) \
    do { \
        settle(_end); \
        if (_cond) { \
            break; \
        } \
        ck_assert_msg(is_readable(event_fd(_end), PATIENCE), \
                      "a wake-up was lost, after %llu", \
                      (unsigned long long)(_slept)); \
        (_slept)++; \
    } while (1)


/* What was under way when the end settled may still wake it: an acknowledgement,
 * the handshake's last frame, the watch over both. Nothing is under way for as
 * long as this. */
enum { LAST_WAKES = 5 };


/* Of all threads of this process. */
static double cpu_msec(void)
{
    struct timespec used;

    ck_assert_int_eq(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used), 0);
    return used.tv_sec * 1e3 + used.tv_nsec / 1e6;
}


/* Sleeps until nothing has woken the end for a second; the CPU time of that
 * second. */
static double quiet_msec(t_end_t *end)
{
    unsigned wakes = 0;
    double begin;

    do {
        ck_assert_uint_le(wakes++, LAST_WAKES);
        settle(end);
        begin = cpu_msec();
    } while (is_readable(event_fd(end), MSEC));
    return cpu_msec() - begin;
}


/* Nothing wakes an interface that has no peer, whatever it would watch of a peer. */
START_TEST(test_alone)
{
    t_end_t *end;

    t_only_daqiri("has these times");
    end = t_end_open("IDLE_TIMEOUT=10ms KEEPALIVE=20ms");
    settle(end);
    ck_assert(!is_readable(event_fd(end), MSEC));
}
END_TEST


START_TEST(test_quiet)
{
    uint64_t slept = 0;
    double used;
    t_stream_t stream;
    t_link_t *link;
    t_end_t *a, *b;

    a    = t_end_open("");
    b    = t_end_open("");
    link = t_link_up(a, b, 1, &stream);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);

    a->is_stopped = 1;
    used = quiet_msec(b);
    ck_assert_msg(used < MSEC / 10, "sleeping took %.0f ms of CPU", used);
    ck_assert_int_eq(t_try_send(link, T_SHORT, 50), UCS_OK);
    SLEEP_UNTIL(b, slept, stream.got == 2);
    a->is_stopped = 0;
}
END_TEST


/* UCP does not progress an interface before its first message. It watches the descriptor
 * again only when the interface could be armed, and the program sleeps meanwhile. */
START_TEST(test_not_progressed)
{
    const unsigned all = UCT_PROGRESS_SEND | UCT_PROGRESS_RECV;
    t_stream_t stream;
    t_link_t *link;
    t_end_t *a, *b;

    t_only_daqiri("can always be armed then");
    a = t_end_open("");
    b = t_end_open("");
    t_stream_open(&stream, b, 1);
    uct_iface_progress_disable(b->iface, all);
    b->is_stopped = 1;
    ck_assert_int_eq(arm(b), UCS_OK);
    ck_assert(!is_readable(event_fd(b), 0));

    link = t_link_open(a, &b->address, 1);
    t_send(link, T_SHORT, 8);
    while (stream.got == 0) {
        ck_assert_msg(is_readable(event_fd(b), PATIENCE), "a wake-up was lost");
        ck_assert_int_eq(arm(b), UCS_OK);
        (void)uct_iface_progress(b->iface);
        ck_assert_int_eq(arm(b), UCS_OK);
    }
    uct_iface_progress_enable(b->iface, all);
    b->is_stopped = 0;
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
}
END_TEST


/* What came between the last look and arming is not slept over. */
START_TEST(test_busy)
{
    t_stream_t stream;
    ucs_status_t status;
    t_link_t *link;
    t_end_t *a, *b;
    unsigned i;

    a    = t_end_open("");
    b    = t_end_open("");
    link = t_link_up(a, b, 1, &stream);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    /* Messages arrive before, but b could not grant: it is stopped while a sends. */
    T_WAIT(!t_is_daqiri() || (t_live_sum("conns_up") == 2));
    settle(b);

    for (i = 0; i < 200; i++) {
        b->is_stopped = 1;
        t_send(link, T_BCOPY, 10);
        ck_assert_int_eq(t_ep_flush(link), UCS_OK);
        b->is_stopped = 0;
        /* armed or not, it must be known that something is there */
        status = arm(b);
        ck_assert((status == UCS_ERR_BUSY) ||
                  is_readable(event_fd(b), PATIENCE));
        T_WAIT(stream.got == link->sent);
    }
}
END_TEST


/* A grant may still be under way when the last message has been taken. */
static void leave(t_team_t *team, t_end_t *end)
{
    t_iface_flush(end);
    t_team_barrier(team);
}


/* The handshake wakes, too: what waits for it could not go otherwise. */
static void connect_asleep(t_team_t *team)
{
    t_end_t *end   = t_end_open("");
    uint64_t slept = 0;
    t_stream_t stream;
    t_link_t *link;

    t_stream_open(&stream, end, 1);
    t_team_put_address(team, end);
    if (team->rank == 1) {
        SLEEP_UNTIL(end, slept, stream.got == 10);
        leave(team, end);
        return;
    }
    link = t_link_open(end, t_team_get_address(team, 1), 1);
    while (link->sent < 10) { /* the first few do not wait */
        SLEEP_UNTIL(end, slept, t_try_send(link, T_BCOPY, 10) == UCS_OK);
    }
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    leave(team, end);
}

START_TEST(test_connect_asleep)
{
    t_only_daqiri("tells of its handshake");
    t_team_run(2, 0, connect_asleep);
}
END_TEST


/* On Soft-RoCE each takes 2 ms or more. */
static unsigned many(void)
{
    const char *text = getenv("T_SLEEPS");

    return (text != NULL) ? (unsigned)atoi(text)
                          : t_some(t_is_softroce() ? 40000 : 100000);
}


/* To and fro, both asleep in between. */
static void ping_pong(t_team_t *team)
{
    const unsigned count = many();
    t_end_t *end         = t_end_open("");
    uint64_t slept       = 0;
    t_stream_t stream;
    t_link_t *link;
    unsigned i;

    t_stream_open(&stream, end, 1);
    t_team_put_address(team, end);
    link = t_link_open(end, t_team_get_address(team, 1 - team->rank), 1);
    for (i = 0; i < count; i++) {
        if ((team->rank == 0) || (i > 0)) {
            t_send(link, (i % 16 == 3) ? T_ZCOPY : T_SHORT, 8 + i % 50);
        }
        SLEEP_UNTIL(end, slept, stream.got > i);
    }
    if (team->rank == 1) {
        t_send(link, T_SHORT, 8);
    }
    ck_assert_uint_gt(slept, count / 4);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    leave(team, end);
}

START_TEST(test_ping_pong)
{
    t_team_run(2, 0, ping_pong);
}
END_TEST


/* A stream: the sender sleeps whenever its queue is full, through windows and
 * queues of any size. */
static const char *stream_options;

static void stream_asleep(t_team_t *team)
{
    const uint64_t count = t_some(20000);
    t_end_t *end         = t_end_open(stream_options);
    uint64_t slept       = 0;
    t_stream_t stream;
    t_link_t *link;

    t_stream_open(&stream, end, 1);
    t_team_put_address(team, end);
    if (team->rank == 1) {
        SLEEP_UNTIL(end, slept, stream.got == count);
        leave(team, end);
        return;
    }
    link = t_link_open(end, t_team_get_address(team, 1), 1);
    while (link->sent < count) {
        SLEEP_UNTIL(end, slept,
                    t_try_send(link, (link->sent % 3) ? T_BCOPY : T_ZCOPY,
                               100) == UCS_OK);
    }
    SLEEP_UNTIL(end, slept, link->zcopies == 0);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    leave(team, end);
}

START_TEST(test_stream_asleep)
{
    static const char *const options[] = {
        "", "SQ_DEPTH=8 RX_WINDOW=8", "SQ_DEPTH=4 CQ_LEN=4 RX_WINDOW=4",
        "TX_BATCH=on"
    };

    t_only_daqiri("has these options");
    stream_options = options[_i];
    t_team_run(2, 0, stream_asleep);
}
END_TEST


static Suite *suite_wake(void)
{
    Suite *suite = suite_create("wake");
    TCase *one   = t_uct_case("one process");
    TCase *team  = t_uct_case("team");

    tcase_add_test(one, test_alone);
    tcase_add_test(one, test_quiet);
    tcase_add_loop_test(one, test_not_progressed, 0, 10);
    tcase_add_test(one, test_busy);
    suite_add_tcase(suite, one);

    tcase_add_test(team, test_connect_asleep);
    tcase_add_test(team, test_ping_pong);
    tcase_add_loop_test(team, test_stream_asleep, 0, 4);
    suite_add_tcase(suite, team);
    return suite;
}

T_UCT_MAIN(suite_wake)
