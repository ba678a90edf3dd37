/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many processes: everybody sends to everybody, itself included; and two that
 * send to each other as fast as they can while they work only now and then.
 */
#include "t_uct.h"

#include <string.h>

enum { EIGHT = 8, EACH = 400, STREAM = 100000 };


/* The id of a stream says who sends it. */
static void all_to_all(t_team_t *team)
{
    t_stream_t stream[T_TEAM_MAX];
    t_link_t *link[T_TEAM_MAX];
    unsigned i, peer;
    t_how_t how;
    t_end_t *end;
    t_rng_t rng;

    t_rng_init(&rng, 0x8000 + team->rank);
    end = t_end_open("");
    for (peer = 0; peer < team->size; peer++) {
        t_stream_open(&stream[peer], end, peer);
    }
    t_team_put_address(team, end);
    for (i = 0; i < team->size; i++) {
        /* each begins with another peer, and meets half of them half way */
        peer       = (team->rank + i) % team->size;
        link[peer] = t_link_open(end, t_team_get_address(team, peer),
                                 team->rank);
    }
    for (i = 0; i < t_some(EACH) * team->size; i++) {
        peer = (team->rank + i) % team->size;
        how  = t_some_how(link[peer], &rng);
        t_send(link[peer], how, t_some_length(link[peer], how, 10, &rng));
    }
    for (peer = 0; peer < team->size; peer++) {
        T_WAIT((stream[peer].got == t_some(EACH)) && (link[peer]->zcopies == 0));
    }
    t_iface_flush(end);
    t_team_barrier(team);
}


START_TEST(test_all_to_all)
{
    t_team_run(_i, 0, all_to_all);
    if (strcmp(t_tl(), "daqiri") == 0) {
        ck_assert_uint_eq(t_stats_sum("conns"), _i * _i);
        ck_assert_uint_eq(t_stats_sum("conns_up"), _i * _i);
        ck_assert_uint_eq(t_stats_sum("am_rx"), _i * _i * t_some(EACH));
        ck_assert_uint_eq(t_stats_sum("am_self_tx"), _i * t_some(EACH));
    }
}
END_TEST


/* Each works rarely, and sends as long as it may. */
static void both_stream(t_team_t *team)
{
    unsigned count = t_some(STREAM);
    t_stream_t stream;
    ucs_status_t status;
    t_link_t *link;
    t_how_t how;
    t_end_t *end;
    t_rng_t rng;

    t_rng_init(&rng, 0x8100 + team->rank);
    end = t_end_open((t_tl()[0] == 'd') ? "RX_WINDOW=32 SQ_DEPTH=32" : "");
    t_stream_open(&stream, end, 1);
    t_team_put_address(team, end);
    link = t_link_open(end, t_team_get_address(team, 1 - team->rank), 1);
    while (link->sent < count) {
        how    = t_some_how(link, &rng);
        status = t_try_send(link, how, t_some_length(link, how, 10, &rng));
        ck_assert((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE));
        if ((status != UCS_OK) || t_rng_once_in(&rng, 50)) {
            t_progress_or_yield();
        }
    }
    T_WAIT((stream.got == count) && (link->zcopies == 0));
    t_iface_flush(end);
    t_team_barrier(team);
}


START_TEST(test_both_stream)
{
    t_team_run(2, 0, both_stream);
    if (strcmp(t_tl(), "daqiri") == 0) {
        ck_assert_uint_eq(t_stats_sum("am_rx"), 2 * t_some(STREAM));
        ck_assert_uint_gt(t_stats_sum("refused_no_credit") +
                          t_stats_sum("refused_sq_full"), 0);
    }
}
END_TEST


static Suite *suite_team(void)
{
    Suite *suite = suite_create("team");
    TCase *team  = t_uct_case("processes");

    tcase_add_loop_test(team, test_all_to_all, 1, 5);
    tcase_add_loop_test(team, test_all_to_all, EIGHT, EIGHT + 1);
    tcase_add_test(team, test_both_stream);
    suite_add_tcase(suite, team);
    return suite;
}

T_UCT_MAIN(suite_team)
