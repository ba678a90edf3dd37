/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a process of softverbs is, as a prefix of a GID and a LID: the same for
 * who can reach each other, another one if any part differs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softverbs/base/sv_site.h"
#include "t_unit.h"

static const struct sv_site here = {
    .boot    = "6bd10b32-6bd1-4bc9-bc39-4e3a3b0a1c1d",
    .version = 5,
    .uid     = 1000,
    .owner   = 1000,
    .device  = 0x1a,
    .inode   = 1,
    .pid_ns  = 4026531836u
};

/* What the authors of the algorithm publish. */
START_TEST(test_fnv)
{
    static const struct {
        const char *text;
        uint64_t   hash;
    } known[] = {
        {"", 0xcbf29ce484222325ull}, {"a", 0xaf63dc4c8601ec8cull},
        {"foobar", 0x85944171f73967e8ull}
    };
    size_t i;

    for (i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
        ck_assert_uint_eq(sv_fnv(SV_FNV_BASIS, known[i].text,
                                 strlen(known[i].text)), known[i].hash);
    }
    ck_assert_uint_eq(sv_fnv(sv_fnv(SV_FNV_BASIS, "foo", 3), "bar", 3),
                      known[2].hash);
}
END_TEST

/* Two builds of one version have to agree. */
START_TEST(test_golden)
{
    ck_assert_msg(sv_site_prefix(&here) == 0xfdce5496dab8a1d5ull, "0x%016llx",
                  (unsigned long long)sv_site_prefix(&here));
    ck_assert_msg(sv_site_lid(&here) == 16180, "%u", sv_site_lid(&here));
}
END_TEST

START_TEST(test_same)
{
    struct sv_site twin;

    /* what lies between the parts, or behind a text, is none of them */
    memset(&twin, 0xff, sizeof(twin));
    strcpy(twin.boot, here.boot);
    twin.version = here.version;
    twin.uid     = here.uid;
    twin.owner   = here.owner;
    twin.device  = here.device;
    twin.inode   = here.inode;
    twin.pid_ns  = here.pid_ns;
    ck_assert_uint_eq(sv_site_prefix(&twin), sv_site_prefix(&here));
    ck_assert_uint_eq(sv_site_lid(&twin), sv_site_lid(&here));
}
END_TEST

/* Changes part `part`; returns whether there is such a part. */
static int change(struct sv_site *site, unsigned part, uint64_t by)
{
    switch (part) {
    case 0:
        site->boot[by % 36] ^= 1;
        return 1;
    case 1:
        site->version ^= (uint32_t)by;
        return 1;
    case 2:
        site->uid ^= (uint32_t)by;
        return 1;
    case 3:
        site->owner ^= (uint32_t)by;
        return 1;
    case 4:
        site->device ^= by;
        return 1;
    case 5:
        site->inode ^= by;
        return 1;
    case 6:
        site->pid_ns ^= by;
        return 1;
    default:
        return 0;
    }
}

/* Each bit of each part matters. For the LID by far the most do, as so short a
 * digest has it, and the PID namespace never. */
START_TEST(test_each)
{
    unsigned part, bit, same = 0, all = 0;
    struct sv_site other;

    for (part = 0; change(&(struct sv_site){{0}}, part, 1); ++part) {
        for (bit = 0; bit < 64; ++bit) {
            other = here;
            change(&other, part, (part == 0) ? bit : 1ull << bit);
            if ((part > 0) && (part < 4) && (bit > 31)) {
                continue; /* it has none */
            }
            t_at = 100 * part + bit;
            T_NEED(sv_site_prefix(&other) != sv_site_prefix(&here));
            if (part == 6) {
                T_NEED(sv_site_lid(&other) == sv_site_lid(&here));
            } else {
                same += (sv_site_lid(&other) == sv_site_lid(&here));
                ++all;
            }
        }
    }
    ck_assert_uint_eq(part, 7);
    ck_assert_msg(same <= 1, "%u of %u changes do not change the LID", same,
                  all);
}
END_TEST

/* A text that goes on is another one, and is not taken for the next part. */
START_TEST(test_boot)
{
    struct sv_site one = here, other = here;

    strcpy(one.boot, "host");
    strcpy(other.boot, "host5");
    ck_assert(sv_site_prefix(&one) != sv_site_prefix(&other));
    strcpy(other.boot, "");
    ck_assert(sv_site_prefix(&one) != sv_site_prefix(&other));
    memset(one.boot, 'x', sizeof(one.boot)); /* no end: as long as it can be */
    other = one;
    other.boot[sizeof(other.boot) - 1] = 'y';
    ck_assert(sv_site_prefix(&one) != sv_site_prefix(&other));
}
END_TEST

static int by_value(const void *a, const void *b)
{
    const uint64_t *one = a, *other = b;

    return (*one > *other) - (*one < *other);
}

#define MANY 20000

/* Of users and folders as there are, in a row. */
START_TEST(test_many)
{
    static uint64_t prefixes[MANY], lids[MANY];
    uint64_t zeros = 0, ones = 0;
    struct sv_site site = here;
    size_t i, distinct = 1;

    for (i = 0; i < MANY; ++i) {
        site.uid = site.owner = 1000 + (unsigned)(i / 100);
        site.device = i % 100;
        prefixes[i] = sv_site_prefix(&site);
        lids[i]     = sv_site_lid(&site);
        t_at        = i;
        T_NEED((prefixes[i] >> 56) == 0xfd);
        T_NEED((lids[i] >= 1) && (lids[i] <= 0xbfff));
        ones  |= prefixes[i];
        zeros |= ~prefixes[i];
    }
    ck_assert_uint_eq(ones & zeros, (1ull << 56) - 1); /* no bit is idle */

    qsort(prefixes, MANY, sizeof(prefixes[0]), by_value);
    qsort(lids, MANY, sizeof(lids[0]), by_value);
    for (i = 1; i < MANY; ++i) {
        T_NEED(prefixes[i] != prefixes[i - 1]);
        distinct += (lids[i] != lids[i - 1]);
    }
    /* drawn at random, 16,430 of 49,151 would be */
    ck_assert_msg((distinct > 15500) && (distinct < 17500), "%zu LIDs",
                  distinct);
}
END_TEST

START_TEST(test_owner)
{
    static const char *const first = "         0          0 4294967295\n";
    static const char *const two   = "         0       1000          1\n"
                                     "         1     100000      65536\n";

    ck_assert_uint_eq(sv_site_owner(first, 0), 0);
    ck_assert_uint_eq(sv_site_owner(first, 1000), 1000);
    ck_assert_uint_eq(sv_site_owner(first, 4294967294u), 4294967294u);
    ck_assert_uint_eq(sv_site_owner(two, 0), 1000);
    ck_assert_uint_eq(sv_site_owner(two, 1), 100000);
    ck_assert_uint_eq(sv_site_owner(two, 65536), 165535);
    /* nobody's */
    ck_assert_uint_eq(sv_site_owner(two, 65537), 65537);
    ck_assert_uint_eq(sv_site_owner("", 7), 7);
    ck_assert_uint_eq(sv_site_owner("0 5 1", 0), 5);
    ck_assert_uint_eq(sv_site_owner("no map at all\n0 5 1\n", 0), 0);
}
END_TEST

static Suite *suite_site(void)
{
    return t_suite("site", "digest", test_fnv, "digest", test_golden,
                   "digest", test_same, "digest", test_each,
                   "digest", test_boot, "digest", test_many,
                   "owner", test_owner, NULL);
}

T_MAIN(suite_site)
