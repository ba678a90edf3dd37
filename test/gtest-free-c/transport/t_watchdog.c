/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What stands still is seen: a request that neither completes nor fails, a peer
 * that takes nothing, a peer of which nothing is heard. Each bound is an option;
 * what happens at it happens not before it, and once. The device is told by plans
 * of faults to keep requests to itself.
 */
#include "t_uct.h"
#include "dq/dq_stats.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MESSAGES = 40 };


/* What devices that are opened from now on do wrong. */
static void plan(const char *text)
{
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS", text, 1), 0);
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS_LOG", "/dev/null", 1), 0);
}


typedef struct {
    t_end_t    *end[2];
    t_stream_t stream;
    t_link_t   *link;
} pair_t;

static void pair_open(pair_t *pair, const char *options)
{
    pair->end[0] = t_end_open(options);
    pair->end[1] = t_end_open(options);
    pair->link = t_link_up(pair->end[0], pair->end[1], 1, &pair->stream);
    ck_assert_int_eq(t_ep_flush(pair->link), UCS_OK);
}


/* ---- A look at the live counters ---- */

static const dq_stats_header_t *map_stats(const t_end_t *end, unsigned which)
{
    DIR *dir = opendir(DQ_STATS_DIR);
    const struct dirent *entry;
    char path[DQ_STATS_FILE_MAX];
    uint32_t pid, serial, wanted = UINT32_MAX;
    struct stat stat;
    void *map;
    int fd;

    (void)end;
    ck_assert_msg(dir != NULL, "%s: %s", DQ_STATS_DIR, strerror(errno));
    while ((entry = readdir(dir)) != NULL) {
        if (dq_stats_is_name(entry->d_name, geteuid(), &pid, &serial) &&
            (pid == (uint32_t)getpid()) && (serial == which)) {
            wanted = serial;
        }
    }
    closedir(dir);
    dq_stats_path(path, sizeof(path), geteuid(), getpid(), wanted);
    fd = open(path, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &stat), 0);
    map = mmap(NULL, stat.st_size, PROT_READ, MAP_SHARED, fd, 0);
    ck_assert(map != MAP_FAILED);
    close(fd);
    return dq_stats_find(map, stat.st_size);
}


static uint64_t value(const dq_stats_header_t *header, const char *name)
{
    uint32_t i;

    for (i = 0; i < header->count; i++) {
        if (strcmp(dq_stats_entry(header, i)->name, name) == 0) {
            return dq_stats_value(header, i);
        }
    }
    ck_abort_msg("there is no value %s", name);
}


/* ---- A request that neither completes nor fails ---- */

/* The device keeps a request for an hour. After the bound another queue pair is
 * made, and all arrives, once. Also if nobody asked for a completion. */
START_TEST(test_stuck)
{
    double bound = 0.2, began;
    unsigned i;
    pair_t pair;

    t_only_daqiri("gives up a queue pair whose requests are stuck");
    t_expect_losses_of_qps();
    plan((_i % 2) ? "delay time=3600s qp=rc n=3 times=1"
                  : "delay time=3600s qp=rc n=30 times=1");
    pair_open(&pair, "STUCK_TIMEOUT=200ms CONN_RETRY=5ms SQ_DEPTH=64");
    began = t_ucx_seconds();
    for (i = 0; i < MESSAGES; i++) {
        t_send(pair.link, (_i < 2) ? T_BCOPY : T_ZCOPY, 1000);
        if (_i % 2) {
            break; /* alone, and its completion not asked for */
        }
    }
    T_WAIT((pair.stream.got == pair.link->sent) && (pair.link->zcopies == 0));
    ck_assert(t_ucx_seconds() - began >= bound);
    ck_assert_int_eq(t_ep_flush(pair.link), UCS_OK);
    ck_assert_uint_eq(pair.end[0]->errors, 0);
    t_end_close_all();
    /* on a machine that is busy enough, others may take as long */
    ck_assert_uint_ge(t_stats_sum("stuck"), 1);
    ck_assert_uint_ge(t_stats_sum("recoveries"), 1);
    ck_assert_uint_eq(t_log_count("has neither completed nor failed"),
                      t_stats_sum("stuck"));
}
END_TEST


/* The next queue pair has the whole bound for itself. */
START_TEST(test_stuck_twice)
{
    const dq_stats_header_t *map;
    double bound = 0.5, began;
    pair_t pair;

    t_only_daqiri("gives up a queue pair whose requests are stuck");
    t_expect_losses_of_qps();
    plan("");
    pair_open(&pair, "STUCK_TIMEOUT=500ms CONN_RETRY=5ms");
    map = map_stats(pair.end[0], 0);
    t_plan_by_command("delay time=3600s qp=rc");
    began = t_ucx_seconds();
    t_send(pair.link, T_ZCOPY, 1000);
    T_WAIT(value(map, "stuck") >= 2);
    ck_assert(t_ucx_seconds() - began >= 2 * bound);
    t_plan_by_command("delay time=1ms qp=rc n=1000000 times=1");
    T_WAIT((pair.stream.got == pair.link->sent) && (pair.link->zcopies == 0));
    ck_assert_uint_eq(pair.end[0]->errors, 0);
    munmap((void*)map, map->length);
}
END_TEST


/* Without recovery the endpoint fails, and says why; all completions come. */
START_TEST(test_stuck_off)
{
    ucs_status_t status;
    pair_t pair;

    t_only_daqiri("gives up a queue pair whose requests are stuck");
    t_expect_loss();
    plan("delay time=3600s qp=rc n=3 times=1");
    pair_open(&pair, "STUCK_TIMEOUT=100ms RECOVERY=n");
    t_send(pair.link, T_ZCOPY, 1000);
    t_send(pair.link, T_BCOPY, 1000);
    do {
        t_progress_or_yield();
        status = t_try_send(pair.link, T_BCOPY, 100);
    } while ((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE));
    ck_assert_int_eq(status, UCS_ERR_ENDPOINT_TIMEOUT);
    T_WAIT((pair.end[0]->errors == 1) && (pair.link->zcopies == 0));
    ck_assert_int_ne(pair.link->zcopy_status, UCS_OK);
    t_link_close(pair.link);
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("stuck"), 1);
    ck_assert_uint_eq(t_stats_sum("qp_failures"), 0);
}
END_TEST


/* The port comes back, says the device, and keeps a request all the same: it is
 * missed as soon as the device should have failed it. */
START_TEST(test_stuck_after_outage)
{
    pair_t pair;

    t_only_daqiri("gives up a queue pair whose requests are stuck");
    t_expect_losses_of_qps();
    plan("event type=PORT_ACTIVE qp=rc n=3 times=1;"
         "delay time=3600s qp=rc n=3 times=1");
    pair_open(&pair, "STUCK_TIMEOUT=3600s SQ_STALL_TIMEOUT=800ms TIMEOUT=8ms "
                     "RETRY_COUNT=3 CONN_RETRY=5ms");
    t_send(pair.link, T_ZCOPY, 1000);
    T_WAIT((pair.stream.got == 2) && (pair.link->zcopies == 0));
    ck_assert_uint_eq(pair.end[0]->errors, 0);
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("stuck"), 1);
    ck_assert_uint_ge(t_stats_sum("recoveries"), 1);
}
END_TEST


/* Nothing is given up whose bound is "never", or has not come. */
START_TEST(test_not_stuck)
{
    pair_t pair;

    t_only_daqiri("gives up a queue pair whose requests are stuck");
    plan("delay time=400ms qp=rc n=3 times=1");
    pair_open(&pair, (_i == 0) ? "STUCK_TIMEOUT=0 SQ_STALL_TIMEOUT=0"
                               : "STUCK_TIMEOUT=60s KEEPALIVE=10ms");
    t_send(pair.link, T_ZCOPY, 1000);
    T_WAIT((pair.stream.got == 2) && (pair.link->zcopies == 0));
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("stuck"), 0);
    ck_assert_uint_eq(t_stats_sum("stalls"), 0);
    ck_assert_uint_eq(t_stats_sum("qp_failures"), 0);
}
END_TEST


/* A process that was stopped for longer than the bound has not waited for its
 * device: nothing is given up when it goes on. */
static void be_stopped(t_team_t *team)
{
    /* who stops it must not find that out */
    t_end_t *end = t_end_open((team->rank == 0)
                                      ? "STUCK_TIMEOUT=2s KEEPALIVE=50ms "
                                        "TIMEOUT=8s"
                                      : "STUCK_TIMEOUT=2s TIMEOUT=8s");
    t_stream_t stream;
    t_link_t *link;
    double until;

    t_stream_open(&stream, end, 1);
    t_team_put_address(team, end);
    if (team->rank == 0) {
        link = t_link_open(end, t_team_get_address(team, 1), 1);
        t_send(link, T_ZCOPY, 1000);
        T_WAIT(link->zcopies == 0);
        t_send(link, T_ZCOPY, 1000);
        team->shared->number[0] = 1;
        T_WAIT(team->shared->number[1]);
        T_WAIT(link->zcopies == 0);
    } else {
        T_WAIT(team->shared->number[0]);
        ck_assert_int_eq(kill(team->shared->pid[0], SIGSTOP), 0);
        for (until = t_seconds() + 3; t_seconds() < until;) {
            t_progress_or_yield();
        }
        ck_assert_int_eq(kill(team->shared->pid[0], SIGCONT), 0);
        team->shared->number[1] = 1;
        T_WAIT(stream.got == 2);
    }
    t_team_barrier(team);
    ck_assert_uint_eq(end->errors, 0);
}

START_TEST(test_stopped)
{
    t_only_daqiri("gives up a queue pair whose requests are stuck");
    t_team_run(2, 0, be_stopped);
    ck_assert_uint_eq(t_stats_sum("stuck"), 0);
    ck_assert_uint_eq(t_stats_sum("qp_failures"), 0);
}
END_TEST


/* ---- Standstill is said ---- */

/* A receiver that does not look: no credits. Said once, with what is known; when
 * it looks again all goes on, and another standstill is said again. */
START_TEST(test_say_no_credit)
{
    unsigned round;
    uint64_t sent;
    pair_t pair;

    t_only_daqiri("says what stands still");
    t_expect_log("nothing could be sent for ");
    t_expect_log("grants no credits: check that pid");
    t_expect_log("from port softverbs0:1, GID ");
    pair_open(&pair, "SQ_STALL_TIMEOUT=100ms RX_WINDOW=16");
    for (round = 1; round <= 2; round++) {
        pair.end[1]->is_stopped = 1;
        while (t_log_count("nothing could be sent for ") < round) {
            sent = pair.link->sent;
            (void)t_try_send(pair.link, T_BCOPY, 100);
            t_progress_or_yield();
        }
        /*  the same standstill: some looks later nothing more is said */
        for (double until = t_seconds() + 0.5; t_seconds() < until;) {
            ck_assert_int_eq(t_try_send(pair.link, T_BCOPY, 100),
                             UCS_ERR_NO_RESOURCE);
            t_progress_or_yield();
        }
        ck_assert_uint_eq(pair.link->sent, sent);
        ck_assert_uint_eq(t_log_count("nothing could be sent for "), round);
        pair.end[1]->is_stopped = 0;
        t_send(pair.link, T_BCOPY, 100);
        T_WAIT(pair.stream.got == pair.link->sent);
    }
    /* nobody wants anything, who once was refused */
    for (double until = t_seconds() + 0.5; t_seconds() < until;) {
        t_progress_or_yield();
    }
    /* the last one is for a grant of its own */
    ck_assert_uint_eq(t_log_count("; 1 credits of 16; last refusal: no_credit; "
                                  "queue pair in RTS"), 2);
    ck_assert_uint_eq(t_log_count("grants no credits: check that pid"), 2);
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("stalls"), 2);
    ck_assert_uint_gt(t_stats_sum("refused_no_credit"), 0);
}
END_TEST


/* A request that takes its time. */
START_TEST(test_say_slow)
{
    const dq_stats_header_t *map;
    dq_stats_peer_t peer;
    char words[128];
    pair_t pair;

    t_only_daqiri("says what stands still");
    t_expect_log("nothing has completed for ");
    t_expect_log("still runs on ");
    t_expect_log("will be given up after 50000 ms");
    t_expect_log("from port softverbs0:1, GID ");
    plan("delay time=1s qp=rc n=3 every=1");
    pair_open(&pair, "SQ_STALL_TIMEOUT=100ms STUCK_TIMEOUT=50s SQ_DEPTH=64");
    map = map_stats(pair.end[0], 0);
    do { /* where looks are too seldom, time does not count */
        T_WAIT(pair.link->zcopies == 0);
        t_send(pair.link, T_ZCOPY, 1000);
        T_WAIT((value(map, "stalls") == 1) || (pair.link->zcopies == 0));
    } while (value(map, "stalls") == 0);
    ck_assert_uint_gt(value(map, "oldest_ns"), 99999999);
    ck_assert_int_eq(dq_stats_peer(map, 0, &peer), 1);
    ck_assert_int_eq(peer.state, DQ_STATS_UP);
    ck_assert_uint_ge(peer.in_use, 1);
    ck_assert_uint_eq(peer.pid, getpid());
    ck_assert_uint_eq(peer.stalls, 1);
    ck_assert_uint_gt(peer.oldest_ns, 99999999);
    snprintf(words, sizeof(words), "; %u work requests outstanding of 64, the "
             "oldest is %" PRIu64 " (message); ", peer.in_use,
             value(map, "retired"));
    ck_assert_uint_eq(t_log_count(words), 1);
    T_WAIT((pair.stream.got == pair.link->sent) && (pair.link->zcopies == 0));
    T_WAIT(value(map, "oldest_ns") == 0);
    ck_assert_uint_eq(t_log_count("nothing has completed for "), 1);
    ck_assert_uint_eq(t_log_count("(message)"), 1);
    ck_assert_uint_eq(t_log_count("will be given up after 50000 ms"), 1);
    munmap((void*)map, map->length);
}
END_TEST


/* ---- What has come to rest is pushed ---- */

/* Nobody asked for completions; all the same they are known, a little later. */
START_TEST(test_push)
{
    const dq_stats_header_t *map;
    pair_t pair;
    unsigned i;

    t_only_daqiri("pushes what has come to rest");
    pair_open(&pair, "SQ_STALL_TIMEOUT=40ms STUCK_TIMEOUT=20s");
    map = map_stats(pair.end[0], 0);
    for (i = 0; i < 5; i++) {
        t_send(pair.link, T_BCOPY, 100);
    }
    T_WAIT((value(map, "markers") > 0) && (value(map, "sq_in_use") == 0));
    T_WAIT(value(map, "posted") == value(map, "retired"));
    ck_assert_uint_gt(value(map, "posted"), 5);
    ck_assert_uint_eq(value(map, "tx_buffers_out"), 0);
    munmap((void*)map, map->length);
}
END_TEST


/* ---- Peers of which nothing is heard ---- */

enum { SURVIVOR, VICTIM };

static int how_to_die;

/* An idle survivor that only waits: nobody sends, nobody checks. */
static void outlive(t_team_t *team)
{
    t_end_t *end = t_end_open("KEEPALIVE=50ms TIMEOUT=32ms RETRY_COUNT=3 "
                              "RECOVERY_TIMEOUT=300ms CONN_RETRY=5ms");
    t_stream_t stream;
    t_link_t *link;
    pid_t victim;

    t_stream_open(&stream, end, 1);
    t_team_put_address(team, end);
    if (team->rank == VICTIM) {
        T_WAIT(0);
    }
    link   = t_link_open(end, t_team_get_address(team, VICTIM), 1);
    victim = team->shared->pid[VICTIM]; /* it is there by now */
    t_send(link, T_BCOPY, 10);
    ck_assert_int_eq(t_ep_flush(link), UCS_OK);
    ck_assert_int_eq(kill(victim, how_to_die), 0);
    T_WAIT(end->errors > 0);
    ck_assert_ptr_eq(end->error_ep, link->ep);
    ck_assert_int_eq(end->error, UCS_ERR_ENDPOINT_TIMEOUT);
    t_link_close(link);
    if (how_to_die != SIGKILL) {
        ck_assert_int_eq(kill(victim, SIGKILL), 0);
    }
}

/* kill -9; and kill -STOP for longer than the bound, which is for ever: then the
 * device still answers. */
START_TEST(test_dead_peer)
{
    t_only_daqiri("asks quiet peers");
    t_expect_loss();
    t_expect_log("; lost, connecting again");
    t_expect_log("is stopped (SIGSTOP, a debugger)");
    how_to_die = (_i == 0) ? SIGKILL : SIGSTOP;
    t_team_run(2, 1u << VICTIM, outlive);
    ck_assert_uint_gt(t_stats_sum("probes"), 0);
    ck_assert_uint_eq(t_stats_sum("unresponsive"), _i);
    ck_assert_int_eq(t_log_count("but its process does not") > 0, _i);
}
END_TEST


static int is_long;

/* The victim is stopped until it was called in vain, or given up; goes on. */
static void be_mute(t_team_t *team)
{
    t_end_t *end = t_end_open((team->rank == VICTIM) ? ""
                              : is_long ? "KEEPALIVE=50ms CONN_RETRY=5ms"
                                        : "KEEPALIVE=1s");
    t_stream_t stream;
    t_link_t *link;
    uint64_t called;
    pid_t victim;

    t_stream_open(&stream, end, 1);
    t_team_put_address(team, end);
    link = t_link_open(end, t_team_get_address(team, !team->rank), 1);
    t_send(link, T_BCOPY, 100);
    T_WAIT(stream.got == 1);
    t_team_barrier(team);
    victim = team->shared->pid[VICTIM]; /* it is there by now */
    if (team->rank == SURVIVOR) {
        ck_assert_int_eq(kill(victim, SIGSTOP), 0);
        called = t_live_sum("liveness_probes");
        T_WAIT(t_live_sum(is_long ? "unresponsive" : "liveness_probes") >
               (is_long ? 0 : called));
        ck_assert_int_eq(kill(victim, SIGCONT), 0);
        team->shared->number[0] = 1;
    }
    T_WAIT(team->shared->number[0]);
    t_send(link, T_ZCOPY, 1000);
    T_WAIT((stream.got == 2) && (link->zcopies == 0));
    t_team_barrier(team);
    ck_assert_uint_eq(end->errors, 0);
}


/* A peer that is stopped for less than the bound goes on as if nothing had been.
 * One that is stopped for longer, but not until recovery is given up, goes on
 * with other queue pairs, and nothing is lost. */
START_TEST(test_mute)
{
    t_only_daqiri("calls silent peers");
    is_long = _i;
    if (is_long) {
        t_expect_losses_of_qps();
    }
    t_team_run(2, 0, be_mute);
    ck_assert_uint_eq(t_stats_sum("am_rx"), 4);
    if (!is_long) {
        ck_assert_uint_eq(t_stats_sum("qp_failures"), 0);
    }
}
END_TEST


/* A living peer is asked and called now and then, and that is all: also if it
 * makes no progress, and if every fifth datagram is lost. Were no call answered,
 * there would not be so many: it would be given up before. */
START_TEST(test_living_peer)
{
    pair_t pair;

    t_only_daqiri("asks quiet peers");
    if (_i == 1) {
        plan("drop qp=ud p=0.2");
    }
    pair_open(&pair, "KEEPALIVE=20ms CONN_RETRY=5ms");
    pair.end[1]->is_stopped = 1;
    T_WAIT(t_live_sum("liveness_probes") >= 40);
    ck_assert_uint_ge(t_live_sum("probes"), 5);
    ck_assert_uint_eq(t_live_sum("am_bcopy"), 1);
    pair.end[1]->is_stopped = 0;
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("qp_failures"), 0);
}
END_TEST


/* By default nobody is asked. */
START_TEST(test_not_asked)
{
    pair_t pair;
    double until;

    t_only_daqiri("asks quiet peers");
    pair_open(&pair, "SQ_STALL_TIMEOUT=20ms");
    for (until = t_seconds() + 0.3; t_seconds() < until;) {
        t_progress_or_yield();
    }
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("probes"), 0);
    ck_assert_uint_eq(t_stats_sum("liveness_probes"), 0);
}
END_TEST


/* The link is down for longer than recovery may take. */
START_TEST(test_link_down)
{
    pair_t pair;
    double began;

    t_only_daqiri("asks quiet peers");
    t_expect_loss();
    t_expect_log("; lost, connecting again");
    t_expect_log("port softverbs0:1 of this process is down");
    plan(""); /* no plan yet, and no log of the next one */
    pair_open(&pair, "KEEPALIVE=50ms TIMEOUT=8ms RETRY_COUNT=2 "
                     "RECOVERY_TIMEOUT=300ms CONN_RETRY=5ms");
    began = t_ucx_seconds();
    t_plan_by_command("link down=3600s qp=rc at=0ms times=1");
    T_WAIT(pair.end[0]->errors == 1);
    ck_assert(t_ucx_seconds() - began >= 0.3);
    ck_assert_int_eq(pair.end[0]->error, UCS_ERR_ENDPOINT_TIMEOUT);
    t_link_close(pair.link);
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("am_rx"), 1);
    ck_assert_uint_eq(t_stats_sum("unresponsive"), 0); /* nothing is known of that */
}
END_TEST


/* ---- Suite ---- */

static Suite *suite_watch(void)
{
    Suite *suite = suite_create("watch");
    TCase *stuck = t_uct_case("stuck");
    TCase *said  = t_uct_case("said");
    TCase *quiet = t_uct_case("quiet");

    tcase_add_loop_test(stuck, test_stuck, 0, 4);
    tcase_add_test(stuck, test_stuck_off);
    tcase_add_test(stuck, test_stuck_twice);
    tcase_add_test(stuck, test_stuck_after_outage);
    tcase_add_loop_test(stuck, test_not_stuck, 0, 2);
    tcase_add_test(stuck, test_stopped);
    suite_add_tcase(suite, stuck);

    tcase_add_test(said, test_say_no_credit);
    tcase_add_test(said, test_say_slow);
    tcase_add_test(said, test_push);
    suite_add_tcase(suite, said);

    tcase_add_loop_test(quiet, test_dead_peer, 0, 2);
    tcase_add_loop_test(quiet, test_mute, 0, 2);
    tcase_add_loop_test(quiet, test_living_peer, 0, 2);
    tcase_add_test(quiet, test_not_asked);
    tcase_add_test(quiet, test_link_down);
    suite_add_tcase(suite, quiet);
    return suite;
}

T_UCT_MAIN(suite_watch)
