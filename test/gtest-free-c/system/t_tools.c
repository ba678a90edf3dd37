/* SPDX-License-Identifier: BSD-3-Clause */

/* The parts of the tools that need nothing but their arguments. */

#include "t.h"
#include "tools/base/env_list.h"
#include "tools/base/locate.h"
#include "tools/base/parse.h"
#include "tools/base/pattern.h"

#include <stdlib.h>
#include <string.h>

static void relocates(const char *bindir, const char *libdir,
                      const char *exe_dir, const char *expected)
{
    char path[PATH_MAX];

    daqiri_locate_moved(bindir, libdir, exe_dir, path, sizeof(path));
    ck_assert_str_eq(path, expected);
}

START_TEST(test_relocate)
{
    relocates("/usr/bin", "/usr/lib", "/usr/bin", "/usr/bin/../lib");
    relocates("/usr/bin", "/usr/lib/x86", "/opt/d/bin",
              "/opt/d/bin/../lib/x86");
    relocates("/usr/local/bin", "/usr/local/lib", "/tmp/r/usr/local/bin",
              "/tmp/r/usr/local/bin/../lib");
    relocates("/a/bin", "/b/lib", "/r/a/bin", "/r/a/bin/../../b/lib");
    relocates("/a", "/a", "/r/a", "/r/a");
    relocates("/a/bin", "/a", "/r/a/bin", "/r/a/bin/..");
    relocates("/a/bin", "/a/bin/lib", "/r/a/bin", "/r/a/bin/lib");
    /* a name that only begins like the other is another name */
    relocates("/a/li", "/a/lib", "/r/a/li", "/r/a/li/../lib");
}
END_TEST

START_TEST(test_relocate_is_bounded)
{
    char path[8] = "1234567";

    daqiri_locate_moved("/usr/bin", "/usr/lib", "/much/longer", path, 4);
    ck_assert_str_eq(path, "/mu");
    ck_assert_str_eq(path + 4, "567");
}
END_TEST

static void preloads(const char *before, const char *path,
                     const char *expected, const char *expected_present)
{
    char *preload       = strdup(before);
    const char *present = NULL;
    size_t length       = daqiri_env_list_add_preload(&preload, path, &present);

    ck_assert_str_eq(preload, expected);
    if (expected_present == NULL) {
        ck_assert_uint_eq(length, 0);
    } else {
        ck_assert_uint_eq(length, strlen(expected_present));
        ck_assert(memcmp(present, expected_present, length) == 0);
    }
    free(preload);
}

START_TEST(test_preload)
{
    preloads("", "/l/a.so", "/l/a.so", NULL);
    preloads("/x.so", "/l/a.so", "/x.so:/l/a.so", NULL);
    preloads("/x.so /y.so", "/l/a.so", "/x.so /y.so:/l/a.so", NULL);
    preloads("/l/a.so", "/l/a.so", "/l/a.so", "/l/a.so");
    preloads("/x.so:/m/a.so y.so", "/l/a.so", "/x.so:/m/a.so y.so", "/m/a.so");
    preloads("a.so", "/l/a.so", "a.so", "a.so");
    /* another file name, though one ends in the other */
    preloads("/l/liba.so", "/l/a.so", "/l/liba.so:/l/a.so", NULL);
    preloads("/l/a.so.1", "/l/a.so", "/l/a.so.1:/l/a.so", NULL);
    preloads(" : ", "/l/a.so", " : :/l/a.so", NULL);
}
END_TEST

START_TEST(test_sizes)
{
    static const char *const bad[] = {
        "", " 1", "-1", "+1", "1 ", "K", "1KB", "1k1", "0x", "1.5K", "1T",
        "18446744073709551616", "17179869184G", "nonsense"
    };
    size_t size = 77;
    size_t i;

    ck_assert_int_eq(daqiri_parse_size("0", &size), 0);
    ck_assert_uint_eq(size, 0);
    ck_assert_int_eq(daqiri_parse_size("4096", &size), 0);
    ck_assert_uint_eq(size, 4096);
    ck_assert_int_eq(daqiri_parse_size("64K", &size), 0);
    ck_assert_uint_eq(size, 65536);
    ck_assert_int_eq(daqiri_parse_size("4m", &size), 0);
    ck_assert_uint_eq(size, 4194304);
    ck_assert_int_eq(daqiri_parse_size("17179869183G", &size), 0);
    ck_assert_uint_eq(size, UINT64_C(17179869183) << 30);

    size = 77;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        ck_assert_msg(daqiri_parse_size(bad[i], &size) == -1, "%s", bad[i]);
        ck_assert_uint_eq(size, 77);
    }
}
END_TEST

START_TEST(test_seconds)
{
    static const char *const bad[] = {"", "0", "-1", "nan", "inf", "1s",
                                      "1e999", "nonsense"};
    double seconds = 77;
    size_t i;

    ck_assert_int_eq(daqiri_parse_seconds("0.5", &seconds), 0);
    ck_assert(seconds == 0.5);
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        ck_assert_msg(daqiri_parse_seconds(bad[i], &seconds) == -1, "%s",
                      bad[i]);
    }
}
END_TEST

/* What was filled is right; any one byte that is not, is found. */
START_TEST(test_pattern_finds_each_byte)
{
    uint8_t buffer[70];
    t_rng_t rng;
    uint64_t key;
    size_t length, i;

    t_rng_init(&rng, 1);
    for (length = 0; length <= sizeof(buffer); ++length) {
        key = t_rng_next(&rng);
        daqiri_pattern_fill(buffer, length, key);
        ck_assert_uint_eq(daqiri_pattern_check(buffer, length, key), length);
        for (i = 0; i < length; ++i) {
            ck_assert_uint_eq(buffer[i], daqiri_pattern_byte(i, key));
            buffer[i] ^= (uint8_t)t_rng_range(&rng, 1, 255);
            ck_assert_uint_eq(daqiri_pattern_check(buffer, length, key), i);
            buffer[i] = daqiri_pattern_byte(i, key);
        }
    }
}
END_TEST

/* A change in anything that identifies a message changes its data. */
START_TEST(test_pattern_depends_on_everything)
{
    daqiri_pattern_id_t ids[7] = {0};
    uint8_t data[7][64];
    size_t i, j;

    ids[1].seed     = 1;
    ids[2].serial   = 1;
    ids[3].size     = 1;
    ids[4].test     = 1;
    ids[5].sender   = 1;
    ids[6].receiver = 1;
    for (i = 0; i < 7; ++i) {
        daqiri_pattern_fill(data[i], 64, daqiri_pattern_key(&ids[i]));
        for (j = 0; j < i; ++j) {
            ck_assert(memcmp(data[i], data[j], 64) != 0);
        }
    }
}
END_TEST

static Suite *suite_tools(void)
{
    return t_suite("tools", "relocate", test_relocate, "relocate",
                   test_relocate_is_bounded, "preload", test_preload, "sizes",
                   test_sizes, "seconds", test_seconds, "pattern",
                   test_pattern_finds_each_byte, "pattern",
                   test_pattern_depends_on_everything, NULL);
}

T_MAIN(suite_tools)
