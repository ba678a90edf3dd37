/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options: nonsense is refused with a sentence that names the option, and
 * leaves nothing behind; the edges of every range work.
 */
#include "t_uct.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Just outside of a range, or no number at all. */
static const char *const refused[] = {
    "SQ_DEPTH=3",         "SQ_DEPTH=32769",      "SQ_DEPTH=-1",
    "SQ_DEPTH=many",      "SQ_DEPTH=4294967300", "SQ_DEPTH=16x",
    "SQ_DEPTH=",          "CQ_LEN=3",            "CQ_LEN=4194305",
    "SIGNAL_EVERY=0",     "SIGNAL_EVERY=32769",  "RX_BUFFERS=63",
    "RX_BUFFERS=1048577", "RX_WINDOW=3",         "RX_WINDOW=32769",
    "RX_WINDOW_START=3",  "RX_WINDOW_START=32769",
    "TX_BUFFERS=63",      "TX_BUFFERS=1048577",  "SEG_SIZE=255",
    "SEG_SIZE=1048577",   "SEG_SIZE=big",        "MAX_INLINE=4097",
    "MAX_INLINE=-8",      "MAX_SGE=1",           "MAX_SGE=33",
    "POLL_BATCH=0",       "POLL_BATCH=65",       "RNR_TIMEOUT=0",
    "RNR_TIMEOUT=1s",     "RNR_TIMEOUT=soon",    "TIMEOUT=0",
    "TIMEOUT=9000s",      "RETRY_COUNT=7",       "RETRY_COUNT=-1",
    "CONN_TIMEOUT=1ms",   "CONN_TIMEOUT=3601s",  "CONN_RETRY=0.1ms",
    "RECOVERY=maybe",     "RECOVERY_TIMEOUT=1ms", "RECOVERY_TIMEOUT=3601s",
    "CONN_RETRY=2s",      "GID_INDEX=256",       "GID_INDEX=-2",
    "GID_INDEX=first",    "TRAFFIC_CLASS=256",   "SL=16",
    "LATENCY=2s",         "LATENCY=inf",         "LATENCY=short",
    "RDMA_OVERHEAD=2s",   "RDMA_OVERHEAD=inf",   "RDMA_OVERHEAD=none",
};

enum { REFUSED = sizeof(refused) / sizeof(refused[0]) };

/* Both ends of every range. Where the largest would need much memory, another
 * option keeps it small. */
static const char *const edges[] = {
    "SQ_DEPTH=4",          "SQ_DEPTH=32768",
    "CQ_LEN=4",            "CQ_LEN=4194304",      "CQ_LEN=inf",
    "CQ_LEN=auto",
    "SIGNAL_EVERY=1",      "SIGNAL_EVERY=32768",
    "RX_BUFFERS=64",       "RX_BUFFERS=1048576",
    "RX_WINDOW=4",         "RX_WINDOW=32768 RX_BUFFERS=40000 SEG_SIZE=256",
    "RX_WINDOW_START=4",   "RX_WINDOW_START=32768 RX_BUFFERS=40000 SEG_SIZE=256",
    "TX_BUFFERS=64",       "TX_BUFFERS=1048576",
    "SEG_SIZE=256",        "SEG_SIZE=1m RX_WINDOW=4 POLL_BATCH=4",
    "MAX_INLINE=0",        "MAX_INLINE=4096",
    "MAX_INLINE=7",        "MAX_INLINE=8",
    "MAX_INLINE=16",       "MAX_SGE=2",
    "MAX_SGE=32",          "POLL_BATCH=1",
    "POLL_BATCH=64",       "RNR_TIMEOUT=0.01ms",
    "RNR_TIMEOUT=655.36ms", "TIMEOUT=8.192us",
    "TIMEOUT=8000s",       "RETRY_COUNT=0",
    "RETRY_COUNT=6",       "CONN_TIMEOUT=3600s",
    "RECOVERY=n",          "RECOVERY_TIMEOUT=10ms",
    "CONN_RETRY=1ms",      "CONN_RETRY=1s",
    "GID_INDEX=0",         "TRAFFIC_CLASS=255",
    "SL=15",               "POLL_BATCH=64 RX_BUFFERS=64",
    "LATENCY=0",           "LATENCY=1s",
    "RDMA_OVERHEAD=0",     "RDMA_OVERHEAD=1s",
    ("SQ_DEPTH=4 CQ_LEN=4 RX_WINDOW=4 RX_BUFFERS=64 TX_BUFFERS=64 "
     "SEG_SIZE=256 MAX_INLINE=0 MAX_SGE=2 POLL_BATCH=1 SIGNAL_EVERY=1"),
};

enum { EDGES = sizeof(edges) / sizeof(edges[0]) };


/* Two ends talk, with every kind of message that there is. */
static void must_work(const char *options)
{
    t_end_t *a = t_end_open(options);
    t_end_t *b = t_end_open(options);
    t_stream_t stream;
    t_link_t *link;
    t_how_t how;
    unsigned i;

    t_stream_open(&stream, b, 1);
    link = t_link_open(a, &b->address, 1);
    for (i = 0; i < 400; i++) {
        for (how = 0; how < T_HOW_LAST; how++) {
            if (t_can_send(link, how, i)) {
                t_send(link, how, i);
            }
        }
    }
    T_WAIT((stream.got == link->sent) && (link->zcopies == 0));
    ck_assert_uint_gt(stream.got, 400);
    t_end_close_all();
}


START_TEST(test_refused)
{
    static char name[32];
    t_end_t *end;

    t_only_daqiri("has these options");
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(refused[_i], "="),
             refused[_i]);
    t_expect_log(name);
    t_expect_log("onfig"); /* the parser of UCX has its own words */
    ck_assert_int_eq(t_end_try_open(NULL, refused[_i], &end),
                     UCS_ERR_INVALID_PARAM);
    ck_assert_msg(t_log_count(name) > 0, "%s was refused without a word",
                  refused[_i]);
    must_work("");
}
END_TEST


START_TEST(test_edges)
{
    t_only_daqiri("has these options");
    must_work(edges[_i]);
}
END_TEST


/* As long as zcopy, but where UCP would take a user's header of that length without
 * having a buffer for it: from 1.16 on, whose libuct has this function. */
static void check_max_bcopy(const t_end_t *end)
{
    size_t max = end->attr.cap.am.max_zcopy;

    if (dlsym(RTLD_DEFAULT, "uct_rkey_compare") != NULL) {
        max = (max < 8192 + 48) ? max : 8192 + 48;
    }
    ck_assert_uint_eq(end->attr.cap.am.max_bcopy, max);
}


/* What an interface says of itself is what the options ask for. */
START_TEST(test_limits_follow)
{
    t_end_t *small, *large;

    t_only_daqiri("has these options");
    small = t_end_open("SEG_SIZE=512 MAX_SGE=3 MAX_INLINE=0");
    large = t_end_open("SEG_SIZE=64k MAX_SGE=8");
    ck_assert_uint_eq(small->attr.cap.am.max_bcopy, 512 - 16);
    ck_assert_uint_eq(small->attr.cap.am.max_zcopy, 512 - 16);
    ck_assert_uint_eq(small->attr.cap.am.max_short, 512 - 16);
    ck_assert_uint_eq(small->attr.cap.am.max_iov, 2);
    check_max_bcopy(large);
    ck_assert_uint_eq(large->attr.cap.am.max_zcopy, 65536 - 16);
    ck_assert_uint_gt(large->attr.cap.am.max_short, 2048);
    ck_assert_uint_le(large->attr.cap.am.max_short, 4096 + 64);
    ck_assert_uint_eq(large->attr.cap.am.max_iov, 7);
}
END_TEST


/* Where packets are full, or nearly, is a matter of the device. */
START_TEST(test_segments)
{
    t_end_t *end;

    t_only_daqiri("has these options");
    end = t_end_open("");
    ck_assert_uint_eq(end->attr.cap.am.max_zcopy,
                      t_is_softroce() ? 3 * 4096 - 16 : 16384 + 48);
    check_max_bcopy(end);
    end = t_end_open("SEG_SIZE=auto");
    ck_assert_uint_eq(end->attr.cap.am.max_zcopy,
                      t_is_softroce() ? 3 * 4096 - 16 : 16384 + 48);
}
END_TEST


static Suite *suite_options(void)
{
    Suite *suite   = suite_create("options");
    TCase *refused = t_uct_case("refused");
    TCase *edges   = t_uct_case("edges");

    tcase_add_loop_test(refused, test_refused, 0, REFUSED);
    suite_add_tcase(suite, refused);

    tcase_add_loop_test(edges, test_edges, 0, EDGES);
    tcase_add_test(edges, test_limits_follow);
    tcase_add_test(edges, test_segments);
    suite_add_tcase(suite, edges);
    return suite;
}

T_UCT_MAIN(suite_options)
