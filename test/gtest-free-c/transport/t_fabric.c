/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers of another fabric: by the prefix of their GID they are unreachable, in
 * one sentence, at once, and nothing waits for them; those of one's own are not.
 */
#include "t_uct.h"
#include "dq/dq_wire.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART "softverbs0:1: the peer is on another fabric: a device in user " \
              "space connects processes of one user on one host that share " \
              "/dev/shm and the PID namespace (GID "

enum { MESSAGES = 50 };


static void only_softverbs(void)
{
    t_only_daqiri("says why a peer is unreachable");
    if (t_is_softroce()) {
        t_skip("on Ethernet there are no subnets");
    }
}


static int reaches(const t_end_t *from, const t_address_t *to)
{
    return uct_iface_is_reachable(from->iface,
                                  (const uct_device_addr_t*)to->dev,
                                  (const uct_iface_addr_t*)to->iface);
}


/* What becomes of an endpoint that is made all the same. */
static ucs_status_t try_create(const t_end_t *from, const t_address_t *to)
{
    const uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface      = from->iface,
        .dev_addr   = (const uct_device_addr_t*)to->dev,
        .iface_addr = (const uct_iface_addr_t*)to->iface,
    };
    uct_ep_h ep;

    return uct_ep_create(&params, &ep);
}


static ucs_status_t try_connect(t_end_t *from, const t_address_t *to)
{
    t_link_t *link = t_link_make(from, 1);
    ucs_status_t status;

    status = uct_ep_connect_to_ep(link->ep, (const uct_device_addr_t*)to->dev,
                                  (const uct_ep_addr_t*)to->iface);
    t_link_close(link);
    return status;
}


static unsigned count_lines(void)
{
    return t_log_count(APART);
}


/* ---- In one process ---- */

/* Each byte of the prefix counts, and none of the rest. */
START_TEST(test_prefix)
{
    t_address_t other;
    t_end_t *a, *b;
    unsigned i;

    only_softverbs();
    t_expect_log(APART);
    a = t_end_open("");
    b = t_end_open("");
    for (i = 0; i < 16; i++) {
        other = b->address;
        ((dq_port_addr_t*)other.dev)->gid[i] ^= 0x10;
        ck_assert_int_eq(reaches(a, &other), i >= 8);
        ck_assert(reaches(a, &b->address));
    }
    ck_assert_uint_eq(count_lines(), 1);
}
END_TEST


/* Also if nobody asks before. Others are reached as ever. */
START_TEST(test_created_all_the_same)
{
    t_address_t other;
    t_stream_t stream;
    t_end_t *a, *b;
    unsigned i;

    only_softverbs();
    t_expect_log(APART);
    a = t_end_open("");
    b = t_end_open("");
    other = b->address;
    ((dq_port_addr_t*)other.dev)->gid[3] ^= 1;
    for (i = 0; i < 3; i++) {
        ck_assert_int_eq(try_create(a, &other), UCS_ERR_UNREACHABLE);
        ck_assert_int_eq(try_connect(a, &other), UCS_ERR_UNREACHABLE);
    }
    ck_assert_uint_eq(count_lines(), 1);
    (void)t_link_up(a, b, 1, &stream);
    t_end_close_all();
    ck_assert_uint_eq(t_stats_sum("conns"), 2); /* none is left of those */
}
END_TEST


/* ---- Where they are ---- */

/* From now on this process has a /dev/shm of its own. Returns whether it has. */
static int leave_shm(void)
{
    return (unshare(CLONE_NEWNS) == 0) &&
           (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0) &&
           (mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL) == 0);
}


static void need_mounts(void)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        _exit(!leave_shm());
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0)) {
        t_skip("mounting in a namespace is not allowed here");
    }
}


/* Rank 1 is elsewhere. */
static void one_elsewhere(t_team_t *team)
{
    const t_address_t *to;
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end;
    unsigned rank;

    if (team->rank == 1) {
        ck_assert(leave_shm());
    }
    end = t_end_open("");
    t_stream_open(&stream, end, 1);
    t_team_put_address(team, end);
    for (rank = 0; rank < team->size; rank++) {
        to = t_team_get_address(team, rank);
        if ((rank == 1) != (team->rank == 1)) {
            ck_assert(!reaches(end, to));
            ck_assert_int_eq(try_create(end, to), UCS_ERR_UNREACHABLE);
        } else if (rank != team->rank) {
            link = t_link_open(end, to, 1);
            while (link->sent < MESSAGES) {
                t_send(link, T_BCOPY, 50);
            }
        }
    }
    T_WAIT(stream.got == ((team->rank == 1) ? 0 : MESSAGES));
    t_iface_flush(end);
    t_team_barrier(team);
}

START_TEST(test_one_elsewhere)
{
    only_softverbs();
    need_mounts();
    t_expect_log(APART);
    t_team_run(3, 0, one_elsewhere);
    ck_assert_uint_eq(count_lines(), 3); /* one of each process */
    ck_assert_uint_eq(t_stats_sum("conns"), 2);
    ck_assert_uint_eq(t_stats_sum("am_rx"), 2 * MESSAGES);
}
END_TEST


static Suite *suite_fabric(void)
{
    Suite *suite = suite_create("fabric");
    TCase *apart = t_uct_case("apart");

    tcase_add_test(apart, test_prefix);
    tcase_add_test(apart, test_created_all_the_same);
    tcase_add_test(apart, test_one_elsewhere);
    suite_add_tcase(suite, apart);
    return suite;
}

T_UCT_MAIN(suite_fabric)
