/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues so small that they are always full: 8 endpoints of one interface that
 * share a CQ of 16 entries, with send queues of 8; random depths; 8 processes,
 * all to all. Full is an answer and never an error: the device refuses
 * nothing (posts_refused and posts_enomem are 0, which the fixture asserts of
 * the first), nobody starves, everything arrives and comes back.
 */
#include "t_uct.h"

#include <stdio.h>
#include <string.h>

enum { PEERS = 8, ROUNDS = 15, BATCH = 50 };


static void check_none_refused(void)
{
    ck_assert_uint_eq(t_stats_sum("posts_refused"), 0);
    ck_assert_uint_eq(t_stats_sum("posts_enomem"), 0);
    ck_assert_uint_eq(t_stats_sum("tx_errors"), 0);
    ck_assert_uint_eq(t_stats_sum("qp_failures"), 0);
    ck_assert_uint_eq(t_stats_sum("posted"), t_stats_sum("retired"));
}


/* ---- A batch that waits its turn ---- */

/* Some messages to one peer, put in with one call: they go as there is room. */
typedef struct {
    uct_pending_req_t req;
    t_link_t          *link;
    unsigned          left;
    t_how_t           how;
    int               is_over;
} batch_t;

static ucs_status_t batch_go(uct_pending_req_t *req)
{
    batch_t *batch = (batch_t*)req;
    ucs_status_t status;

    while (batch->left > 0) {
        status = t_try_send(batch->link, batch->how, 200);
        if (status != UCS_OK) {
            ck_assert_int_eq(status, UCS_ERR_NO_RESOURCE);
            return status;
        }
        batch->left--;
    }
    batch->is_over = 1;
    return UCS_OK;
}


static void batch_start(batch_t *batch, t_link_t *link, unsigned count,
                        t_how_t how)
{
    ucs_status_t status;

    *batch = (batch_t){.req = {.func = batch_go}, .link = link, .left = count,
                       .how = how};
    do {
        status = batch_go(&batch->req);
        if (status == UCS_OK) {
            return;
        }
        status = uct_ep_pending_add(link->ep, &batch->req, 0);
    } while (status == UCS_ERR_BUSY); /* there is room again */
    ck_assert_int_eq(status, UCS_OK);
}


/* ---- Many endpoints, one small CQ ---- */

/* Batches longer than the send queue to every peer at once; the next round
 * begins when all are over, so who starves holds up all. */
static void run_batches(const char *options, t_rng_t *rng)
{
    unsigned rounds = t_some(ROUNDS) + 1, round, i;
    t_stream_t stream[PEERS], back[PEERS];
    t_link_t *link[PEERS], *answer[PEERS];
    batch_t batch[PEERS], reply[PEERS];
    t_end_t *hub, *peer[PEERS];
    uint64_t sent = 0;

    hub = t_end_open(options);
    for (i = 0; i < PEERS; i++) {
        peer[i] = t_end_open(options);
        t_stream_open(&stream[i], peer[i], i);
        t_stream_open(&back[i], hub, PEERS + i);
        link[i]   = t_link_open(hub, &peer[i]->address, i);
        answer[i] = t_link_open(peer[i], &hub->address, PEERS + i);
    }
    for (round = 0; round < rounds; round++) {
        for (i = 0; i < PEERS; i++) {
            batch_start(&batch[i], link[i], BATCH,
                        t_rng_once_in(rng, 3) ? T_ZCOPY : T_BCOPY);
            batch_start(&reply[i], answer[i], BATCH / 5, T_BCOPY);
        }
        for (i = 0; i < PEERS; i++) {
            T_WAIT(batch[i].is_over && reply[i].is_over &&
                   (link[i]->zcopies == 0));
        }
        sent += BATCH;
    }
    for (i = 0; i < PEERS; i++) {
        T_WAIT((stream[i].got == sent) && (back[i].got == sent / 5));
        ck_assert_uint_eq(peer[i]->errors, 0);
    }
    ck_assert_uint_eq(hub->errors, 0);
    t_end_close_all();
    check_none_refused();
}


START_TEST(test_eight_endpoints)
{
    t_rng_t rng;

    t_only_daqiri("has such options");
    t_rng_init(&rng, 0x8000);
    run_batches("SQ_DEPTH=8 CQ_LEN=16", &rng);
    ck_assert_uint_gt(t_stats_sum("refused_cq_full"), 0);
}
END_TEST


START_TEST(test_random_depths)
{
    char options[128];
    t_rng_t rng;

    t_only_daqiri("has such options");
    t_rng_init(&rng, 0x8001 + _i);
    snprintf(options, sizeof(options),
             "SQ_DEPTH=%u CQ_LEN=%u SIGNAL_EVERY=%u RX_WINDOW=%u TX_BUFFERS=64",
             (unsigned)t_rng_range(&rng, 4, 40),
             (unsigned)t_rng_range(&rng, 4, 60),
             (unsigned)t_rng_range(&rng, 1, 64),
             (unsigned)t_rng_range(&rng, 4, 40));
    fprintf(stderr, "# %s\n", options);
    run_batches(options, &rng);
}
END_TEST


/* ---- Many processes ---- */
static void all_to_all(t_team_t *team)
{
    unsigned count = t_some(400) + 1, i, peer;
    t_stream_t stream[T_TEAM_MAX];
    t_link_t *link[T_TEAM_MAX];
    t_end_t *end;

    end = t_end_open("SQ_DEPTH=8 CQ_LEN=16");
    for (peer = 0; peer < team->size; peer++) {
        t_stream_open(&stream[peer], end, peer);
    }
    t_team_put_address(team, end);
    for (peer = 0; peer < team->size; peer++) {
        link[peer] = t_link_open(end, t_team_get_address(team, peer),
                                 team->rank);
    }
    for (i = 0; i < count; i++) {
        for (peer = 0; peer < team->size; peer++) {
            t_send(link[peer], (i % 7 == 0) ? T_ZCOPY : T_BCOPY, 300);
        }
    }
    for (peer = 0; peer < team->size; peer++) {
        T_WAIT((stream[peer].got == count) && (link[peer]->zcopies == 0));
    }
    t_iface_flush(end);
    t_team_barrier(team);
    ck_assert_uint_eq(end->errors, 0);
}

START_TEST(test_eight_processes)
{
    t_only_daqiri("has such options");
    t_team_run(PEERS, 0, all_to_all);
    check_none_refused();
}
END_TEST


static Suite *suite_small(void)
{
    Suite *suite = suite_create("small");
    TCase *tcase = t_uct_case("small");

    tcase_set_timeout(tcase, 3 * T_TIMEOUT);
    tcase_add_test(tcase, test_eight_endpoints);
    tcase_add_loop_test(tcase, test_random_depths, 0, 4);
    tcase_add_test(tcase, test_eight_processes);
    suite_add_tcase(suite, tcase);
    return suite;
}

T_UCT_MAIN(suite_small)
