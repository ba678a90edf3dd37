/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GIDs: which is best, who can be reached, and their text, which is held
 * against the C library's own.
 */
#include "t_unit.h"
#include "dq/dq_gid.h"

#include <arpa/inet.h>
#include <string.h>


/* A GID from its text; IPv4 is written ::ffff:1.2.3.4 here. */
static const uint8_t *gid(const char *text)
{
    static uint8_t gids[4][DQ_GID_BYTES];
    static unsigned next;
    uint8_t *at = gids[next++ % 4];

    ck_assert_int_eq(inet_pton(AF_INET6, text, at), 1);
    return at;
}


typedef struct {
    const char *text;
    int        is_v2;
} ranked_t;

/* From the best to the worst. */
static const ranked_t ranked[] = {
    {"::ffff:10.2.0.1", 1}, {"fd02::1", 1}, {"fe80::1", 1},
    {"::ffff:10.2.0.1", 0}, {"fd02::1", 0}, {"fe80::1", 0},
};

enum { RANKED = sizeof(ranked) / sizeof(ranked[0]) };


START_TEST(test_order)
{
    int i, last = 1000, rank;

    for (i = 0; i < RANKED; i++) {
        rank = dq_gid_rank(gid(ranked[i].text), ranked[i].is_v2);
        ck_assert_int_lt(rank, last);
        ck_assert_int_gt(rank, 0);
        last = rank;
    }
}
END_TEST


/* Addresses of the same kind are equally good. */
START_TEST(test_equals)
{
    static const char *const pairs[][2] = {
        {"::ffff:10.2.0.1", "::ffff:255.255.255.255"},
        {"::ffff:10.2.0.1", "::ffff:0.0.0.1"},
        {"fe80::1", "febf:ffff::"},
        {"2001:db8::1", "fec0::1"},
        {"2001:db8::1", "fe7f::1"},
        {"2001:db8::1", "ff80::1"},
        {"2001:db8::1", "::1"},
        {"2001:db8::1", "::fffe:10.2.0.1"},
        {"2001:db8::1", "0:0:0:0:1:ffff:102:1"},
    };
    unsigned i;

    for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        ck_assert_msg(dq_gid_rank(gid(pairs[i][0]), 1) ==
                      dq_gid_rank(gid(pairs[i][1]), 1), "%s and %s",
                      pairs[i][0], pairs[i][1]);
    }
}
END_TEST


START_TEST(test_empty)
{
    ck_assert_int_eq(dq_gid_rank(gid("::"), 1), 0);
    ck_assert_int_eq(dq_gid_rank(gid("::"), 0), 0);
}
END_TEST


/* ---- A table ---- */

static dq_gid_row_t row(const char *text, int is_v2, unsigned index,
                        unsigned netdev)
{
    dq_gid_row_t made = {
        .index = index, .is_roce_v2 = is_v2, .netdev = netdev,
    };

    memcpy(made.gid, gid(text), sizeof(made.gid));
    return made;
}


/* The best wherever it is; of equals the first. */
START_TEST(test_choose)
{
    dq_gid_row_t rows[RANKED + 1];
    int first, i;

    for (first = 0; first < RANKED; first++) {
        for (i = 0; i < RANKED; i++) {
            rows[i] = row(ranked[(first + i) % RANKED].text,
                          ranked[(first + i) % RANKED].is_v2, 10 + i, 1);
        }
        rows[RANKED] = row("::ffff:10.2.0.9", 1, 99, 1);
        i = (RANKED - first) % RANKED;
        ck_assert_ptr_eq(dq_gid_choose(rows, RANKED + 1), &rows[i]);
        ck_assert_ptr_eq(dq_gid_choose(rows, i), (i == 0) ? NULL : &rows[0]);
    }
    rows[0] = row("::", 1, 0, 1);
    ck_assert_ptr_null(dq_gid_choose(rows, 1));
}
END_TEST


/* The same address, at whatever place, but of no other netdev or protocol. */
START_TEST(test_find)
{
    const dq_gid_row_t wanted = row("fe80::1", 1, 3, 7);
    dq_gid_row_t rows[]       = {
        row("fe80::2", 1, 3, 7), row("fe80::1", 0, 4, 7),
        row("fe80::1", 1, 5, 8), row("fe80::1", 1, 6, 7),
        row("fe80::1", 1, 9, 7),
    };

    ck_assert_ptr_eq(dq_gid_find(rows, 5, &wanted), &rows[3]);
    ck_assert_ptr_null(dq_gid_find(rows, 3, &wanted));
    ck_assert_ptr_null(dq_gid_find(NULL, 0, &wanted));
}
END_TEST


START_TEST(test_reach)
{
    ck_assert(dq_gid_can_reach(gid("::ffff:10.2.0.1"), gid("::ffff:10.9.0.1")));
    ck_assert(dq_gid_can_reach(gid("fd02::1"), gid("fe80::1")));
    ck_assert(!dq_gid_can_reach(gid("fd02::1"), gid("::ffff:10.2.0.1")));
    ck_assert(!dq_gid_can_reach(gid("::ffff:10.2.0.1"), gid("fd02::1")));
}
END_TEST


/* An IPv4 address is written as one; all else as inet_ntop() does, which has
 * words of its own for what looks like an IPv4 address in other ways. */
static void check_text(const uint8_t *bytes)
{
    char want[INET6_ADDRSTRLEN], got[DQ_GID_TEXT_MAX];
    const char *plain = want;

    ck_assert_ptr_nonnull(inet_ntop(AF_INET6, bytes, want, sizeof(want)));
    if (strncmp(want, "::ffff:", 7) == 0 && strchr(want, '.') != NULL) {
        plain = want + 7;
    } else if (strchr(want, '.') != NULL) {
        return;
    }
    ck_assert_ptr_eq(dq_gid_text(bytes, got, sizeof(got)), got);
    ck_assert_str_eq(got, plain);
}


START_TEST(test_text)
{
    static const char *const texts[] = {
        "::", "::1", "1::", "::ffff:10.2.0.1", "fe80::a8ae:e6ff:fe19:f7dc",
        "1:2:3:4:5:6:7:8", "1:0:3:4:5:6:7:8", "0:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7:0", "1::4:0:0:7:8", "1:0:0:4::", "::3:0:0:6:7:8",
        "1:2:3:4:5:6::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "::ffff:255.255.255.255", "1:0:0:4:0:0:0:8", "1:0:0:0:5:0:0:8",
    };
    unsigned i;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        check_text(gid(texts[i]));
    }
}
END_TEST


START_TEST(test_random_text)
{
    uint8_t bytes[DQ_GID_BYTES];
    t_rng_t rng;
    int i, k;

    t_rng_init(&rng, 0x91d);
    for (i = 0; i < 20000; i++) {
        t_rng_fill(&rng, bytes, sizeof(bytes));
        for (k = 0; k < DQ_GID_BYTES; k += 2) {
            if (t_rng_once_in(&rng, 2)) {
                memset(bytes + k, 0, 2);
            }
        }
        check_text(bytes);
    }
}
END_TEST


/* What does not fit is cut. */
START_TEST(test_short_buffer)
{
    char buf[8] = "#######";

    dq_gid_text(gid("1:2:3:4:5:6:7:8"), buf, 4);
    ck_assert_str_eq(buf, "1:2");
    ck_assert_int_eq(buf[4], '#');
    dq_gid_text(gid("::ffff:10.2.0.1"), buf, 5);
    ck_assert_str_eq(buf, "10.2");
    ck_assert_int_eq(buf[5], '#');
}
END_TEST


static Suite *suite_gid(void)
{
    return t_suite("gid", "choice", test_order, "choice", test_equals,
                   "choice", test_empty, "choice", test_reach,
                   "table", test_choose, "table", test_find,
                   "text", test_text, "text", test_random_text,
                   "text", test_short_buffer, NULL);
}

T_MAIN(suite_gid)
