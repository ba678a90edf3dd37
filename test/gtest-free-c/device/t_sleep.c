/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waking processes that sleep on a channel, whatever the two have, and however
 * many channels come and go: it costs no descriptors and gets lost nowhere.
 */
#include "t_device.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct t_make with_channel = {.channel = true};

static unsigned count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned count = 0;

    ck_assert_ptr_nonnull(dir);
    while (readdir(dir) != NULL) {
        ++count;
    }
    closedir(dir);
    return count;
}

/* Sleeps until the event comes, and takes what it tells of. */
static void sleep_for_one(struct t_end *end)
{
    struct ibv_cq *cq;
    void *context;

    ck_assert_int_eq(ibv_get_cq_event(end->channel, &cq, &context), 0);
    ck_assert_ptr_eq(cq, end->recv_cq);
    ibv_ack_cq_events(cq, 1);
    t_poll_is(end->recv_cq, 1, IBV_WC_SUCCESS);
}

/* A process that opens an end, is woken once, and closes it, as often as it is
 * told to. */
static void sleeper(int fd)
{
    struct t_end end;
    struct t_address to;
    unsigned rounds;

    for (t_hear(fd, &rounds, sizeof(rounds)); rounds > 0; --rounds) {
        t_end_open(&end, &with_channel);
        to = t_swap(fd, &end);
        t_end_up(&end, &to, NULL);
        ck_assert_int_eq(t_post_recv(&end, 1, 0, 64), 0);
        ck_assert_int_eq(ibv_req_notify_cq(end.recv_cq, 0), 0);
        t_meet(fd);
        sleep_for_one(&end);
        t_meet(fd);
        t_end_close(&end);
    }
}

/* The other side of one round. */
static void wake_once(int fd)
{
    struct t_end end;
    struct t_address to;

    t_end_open(&end, NULL);
    to = t_swap(fd, &end);
    t_end_up(&end, &to, NULL);
    t_meet(fd);
    ck_assert_int_eq(t_post_send(&end, 2, 0, 64, IBV_SEND_SIGNALED), 0);
    t_poll_is(end.send_cq, 2, IBV_WC_SUCCESS);
    t_meet(fd);
    t_end_close(&end);
}

/* The same, of a process that is connected by something else, too. */
static void sleeper_known(int fd)
{
    struct t_address to;
    struct t_end stays;

    t_end_open(&stays, NULL);
    to = t_swap(fd, &stays);
    t_end_up(&stays, &to, NULL);
    ck_assert_int_eq(t_post_recv(&stays, 1, 0, 64), 0);
    t_meet(fd);
    t_poll_is(stays.recv_cq, 1, IBV_WC_SUCCESS);
    sleeper(fd);
    t_end_close(&stays);
}

/* The other side of that: each has sent something to the other, or heard of it,
 * and so has whatever it needs to know of the other process. */
static void sleeper_know(struct t_peer *peer, struct t_end *stays)
{
    struct t_address to;

    t_peer_start(peer, sleeper_known);
    t_end_open(stays, NULL);
    to = t_swap(peer->fd, stays);
    t_end_up(stays, &to, NULL);
    t_meet(peer->fd);
    ck_assert_int_eq(t_post_send(stays, 2, 0, 64, IBV_SEND_SIGNALED), 0);
    t_poll_is(stays->send_cq, 2, IBV_WC_SUCCESS);
}

/* The peer lives on while its channels come and go. */
START_TEST(test_flat)
{
    unsigned rounds = t_times(200) + 2, before = 0, i;
    struct t_peer peer;
    struct t_end stays;

    sleeper_know(&peer, &stays);
    t_tell(peer.fd, &rounds, sizeof(rounds));
    for (i = 0; i < rounds; ++i) {
        wake_once(peer.fd);
        if (i == 1) {
            before = count_descriptors();
        }
    }
    ck_assert_uint_eq(count_descriptors(), before);
    t_peer_join(&peer);
    t_end_close(&stays);
}
END_TEST

/* Who wakes has not one descriptor to spare. */
START_TEST(test_no_descriptor)
{
    struct rlimit limit, before;
    struct t_end end, stays;
    unsigned rounds = 1;
    struct t_address to;
    struct t_peer peer;
    int lowest;

    sleeper_know(&peer, &stays);
    t_end_open(&end, NULL);
    t_tell(peer.fd, &rounds, sizeof(rounds));
    to = t_swap(peer.fd, &end);
    t_end_up(&end, &to, NULL);
    t_meet(peer.fd);

    lowest = dup(peer.fd);
    ck_assert_int_ge(lowest, 0);
    close(lowest);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit          = before;
    limit.rlim_cur = lowest;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(dup(peer.fd), -1);
    ck_assert_int_eq(t_post_send(&end, 2, 0, 64, IBV_SEND_SIGNALED), 0);
    t_poll_is(end.send_cq, 2, IBV_WC_SUCCESS);
    t_meet(peer.fd);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    t_end_close(&end);
    t_peer_join(&peer);
    t_end_close(&stays);
}
END_TEST

/* ---- many on one channel ---- */

/* More than any queue of datagrams takes by default (net.unix.max_dgram_qlen),
 * where it is 10; where it is 512, this is an ordinary test. */
enum { MANY = 64 };

/* Each CQ has exactly one event, and nobody reads before all have come. */
static void each_has_one(struct t_end *end, struct t_end siblings[MANY])
{
    struct pollfd pfd = {.fd = end->channel->fd, .events = POLLIN};
    bool seen[MANY]   = {false};
    struct ibv_cq *cq;
    void *context;
    unsigned n, i;

    for (n = 0; n < MANY; ++n) {
        /* not ibv_get_cq_event() alone: programs ask before they read */
        ck_assert_int_eq(poll(&pfd, 1, -1), 1);
        ck_assert_int_eq(ibv_get_cq_event(end->channel, &cq, &context), 0);
        for (i = 0; (i < MANY) && (siblings[i].recv_cq != cq); ++i) {
        }
        ck_assert_uint_lt(i, MANY);
        ck_assert(!seen[i]);
        seen[i] = true;
        ibv_ack_cq_events(cq, 1);
        t_poll_is(cq, 1, IBV_WC_SUCCESS);
    }
    ck_assert_int_eq(fcntl(pfd.fd, F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(ibv_get_cq_event(end->channel, &cq, &context), -1);
    ck_assert_int_eq(errno, EAGAIN);
}

static void late_reader(int fd)
{
    struct t_end end, siblings[MANY];
    struct t_address to;
    unsigned i;

    t_end_open(&end, &with_channel);
    for (i = 0; i < MANY; ++i) {
        siblings[i] = t_sibling_open(&end, true);
        to          = t_swap(fd, &siblings[i]);
        t_end_up(&siblings[i], &to, NULL);
        ck_assert_int_eq(t_post_recv(&siblings[i], 1, 0, 64), 0);
        ck_assert_int_eq(ibv_req_notify_cq(siblings[i].recv_cq, 0), 0);
    }
    t_meet(fd);
    t_meet(fd); /* all are sent */
    each_has_one(&end, siblings);
    t_meet(fd);
    for (i = 0; i < MANY; ++i) {
        t_sibling_close(&siblings[i], &end);
    }
    t_end_close(&end);
}

START_TEST(test_late_reader)
{
    struct t_end end, siblings[MANY];
    struct t_address to;
    struct t_peer peer;
    unsigned i;

    t_peer_start(&peer, late_reader);
    t_end_open(&end, NULL);
    for (i = 0; i < MANY; ++i) {
        siblings[i] = t_sibling_open(&end, false);
        to          = t_swap(peer.fd, &siblings[i]);
        t_end_up(&siblings[i], &to, NULL);
    }
    t_meet(peer.fd);
    for (i = 0; i < MANY; ++i) {
        ck_assert_int_eq(t_post_send(&siblings[i], 2, 0, 64,
                                     IBV_SEND_SIGNALED), 0);
        t_poll_is(end.send_cq, 2, IBV_WC_SUCCESS);
    }
    t_meet(peer.fd);
    t_meet(peer.fd);
    for (i = 0; i < MANY; ++i) {
        t_sibling_close(&siblings[i], &end);
    }
    t_end_close(&end);
    t_peer_join(&peer);
}
END_TEST

/* The same of a process that sends to itself. */
START_TEST(test_late_reader_of_own)
{
    struct t_end ends[2], from[MANY], to[MANY];
    struct t_address from_at, to_at;
    unsigned i;

    t_pair_open(ends, &with_channel, NULL);
    for (i = 0; i < MANY; ++i) {
        from[i] = t_sibling_open(&ends[0], false);
        to[i]   = t_sibling_open(&ends[1], true);
        from_at = t_end_address(&from[i]);
        to_at   = t_end_address(&to[i]);
        t_end_up(&from[i], &to_at, NULL);
        t_end_up(&to[i], &from_at, NULL);
        ck_assert_int_eq(t_post_recv(&to[i], 1, 0, 64), 0);
        ck_assert_int_eq(ibv_req_notify_cq(to[i].recv_cq, 0), 0);
        ck_assert_int_eq(t_post_send(&from[i], 2, 0, 64, IBV_SEND_SIGNALED), 0);
        t_poll_is(ends[0].send_cq, 2, IBV_WC_SUCCESS);
    }
    each_has_one(&ends[1], to);
    for (i = 0; i < MANY; ++i) {
        t_sibling_close(&from[i], &ends[0]);
        t_sibling_close(&to[i], &ends[1]);
    }
    t_pair_close(ends);
}
END_TEST

/* ---- what the two have ---- */

/* Of all channels of the process that this QP is of. */
static void names_remove(uint32_t qpn)
{
    char path[T_SEGMENT_PATH], pattern[T_SEGMENT_PATH + 2];
    glob_t names;
    size_t i;

    t_segment_path(path, qpn);
    snprintf(pattern, sizeof(pattern), "%s.*", path);
    ck_assert_int_eq(glob(pattern, 0, NULL, &names), 0);
    for (i = 0; i < names.gl_pathc; ++i) {
        ck_assert_int_eq(unlink(names.gl_pathv[i]), 0);
    }
    globfree(&names);
}

/* Somebody has cleaned up in /dev/shm. Those that know each other go on. */
START_TEST(test_removed_name)
{
    unsigned rounds = 1;
    struct t_address to;
    struct t_peer peer;
    struct t_end end;

    t_softverbs_only("other devices have no names for channels");
    t_peer_start(&peer, sleeper);
    t_end_open(&end, NULL);
    t_tell(peer.fd, &rounds, sizeof(rounds));
    to = t_swap(peer.fd, &end);
    t_end_up(&end, &to, NULL);
    t_meet(peer.fd);
    names_remove(to.qpn);
    ck_assert_int_eq(t_post_send(&end, 2, 0, 64, IBV_SEND_SIGNALED), 0);
    t_poll_is(end.send_cq, 2, IBV_WC_SUCCESS);
    t_meet(peer.fd);
    t_end_close(&end);
    t_peer_join(&peer);
}
END_TEST

static void sleeper_apart(int fd)
{
    bool apart = (unshare(CLONE_NEWUSER) == 0);

    t_tell(fd, &apart, sizeof(apart));
    if (apart) {
        sleeper(fd);
    }
}

/* Each in a user namespace of its own, as ranks in rootless containers are. */
START_TEST(test_user_namespaces)
{
    unsigned rounds = 1;
    struct t_peer peer;
    bool apart;

    t_softverbs_only("other devices wake by the kernel");
    t_peer_start(&peer, sleeper_apart);
    t_hear(peer.fd, &apart, sizeof(apart));
    if (!apart || (unshare(CLONE_NEWUSER) != 0)) {
        t_peer_kill(&peer);
        t_skip("user namespaces are not allowed here");
        return;
    }
    t_tell(peer.fd, &rounds, sizeof(rounds));
    wake_once(peer.fd);
    t_peer_join(&peer);
}
END_TEST

static Suite *suite_sleep(void)
{
    return t_suite("sleep",
                   "descriptors", test_flat,
                   "descriptors", test_no_descriptor,
                   "late", test_late_reader,
                   "late", test_late_reader_of_own,
                   "names", test_removed_name,
                   "namespaces", test_user_namespaces,
                   NULL);
}

T_MAIN(suite_sleep)
