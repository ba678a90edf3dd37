/* SPDX-License-Identifier: BSD-3-Clause */

/* What the subcommands share: numbers as people write them, percentiles,
 * reports, and children under a watchdog. */

#include "t.h"
#include "tools/failure.h"
#include "tools/hist.h"
#include "tools/report.h"
#include "tools/sizes.h"
#include "tools/watch.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- numbers ---- */

START_TEST(test_duration)
{
    static const struct {
        const char *text;
        double     seconds;
    } good[] = {{"10s", 10}, {"10", 10}, {"0.5", 0.5}, {"500ms", 0.5},
                {"250us", 250e-6}, {"2m", 120}, {"1h", 3600}, {"1.5s", 1.5},
                {"168h", 604800}, {"0.001ms", 1e-6}};
    static const char *const bad[] = {
        "", "s", "0", "0s", "-1", "+1", " 1", "1 s", "1x", "1ss", "1s ",
        "0x10", "inf", "nan", "1e3", "1.2.3", "169h", ".5", "10S", "1..",
        "99999999999999999999999999999999999999999"
    };
    double value;
    size_t i;

    for (i = 0; i < sizeof(good) / sizeof(good[0]); ++i) {
        value = -1;
        ck_assert_int_eq(daqiri_parse_duration(good[i].text, &value), 0);
        ck_assert_double_eq_tol(value, good[i].seconds, 1e-12);
    }
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        value = -1;
        ck_assert_msg(daqiri_parse_duration(bad[i], &value) == -1, "%s",
                      bad[i]);
        ck_assert_double_eq(value, -1);
    }
}
END_TEST

static void shows_size(uint64_t value, const char *expected)
{
    char text[DAQIRI_SIZE_TEXT_MAX];

    ck_assert_str_eq(daqiri_size_text(value, text, sizeof(text)), expected);
}

START_TEST(test_size_text)
{
    shows_size(0, "0 B");
    shows_size(1023, "1023 B");
    shows_size(1024, "1 KiB");
    shows_size(1025, "1025 B");
    shows_size(65536, "64 KiB");
    shows_size(1ull << 20, "1 MiB");
    shows_size(3ull << 30, "3 GiB");
    shows_size(1ull << 50, "1024 TiB");
    shows_size(UINT64_MAX, "18446744073709551615 B");
}
END_TEST

/* ---- percentiles ---- */

START_TEST(test_hist_edges)
{
    daqiri_hist_t *hist = malloc(sizeof(*hist));

    daqiri_hist_init(hist);
    ck_assert_uint_eq(daqiri_hist_share(hist, 0.5), 0);
    daqiri_hist_add(hist, 0);
    ck_assert_uint_eq(daqiri_hist_share(hist, 0.5), 0);
    daqiri_hist_add(hist, UINT64_MAX);
    ck_assert_uint_eq(daqiri_hist_share(hist, 0), 0);
    ck_assert_uint_eq(daqiri_hist_share(hist, 1), UINT64_MAX);
    ck_assert_uint_eq(hist->count, 2);

    daqiri_hist_init(hist);
    daqiri_hist_add(hist, 1234567);
    ck_assert_uint_eq(daqiri_hist_share(hist, 0), 1234567);
    ck_assert_uint_eq(daqiri_hist_share(hist, 0.5), 1234567);
    ck_assert_uint_eq(daqiri_hist_share(hist, 1), 1234567);
    free(hist);
}
END_TEST

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;

    return (x > y) - (x < y);
}

/* Against sorting all of them: within 0.8 %. */
START_TEST(test_hist_random)
{
    static const double shares[] = {0, 0.01, 0.5, 0.9, 0.95, 0.99, 0.999, 1};
    enum { MAX = 5000 };
    daqiri_hist_t *hist = malloc(sizeof(*hist));
    uint64_t *values    = malloc(MAX * sizeof(*values));
    t_rng_t rng;
    size_t round, count, i;
    uint64_t exact, got, limit;

    t_rng_init(&rng, 1);
    for (round = 0; round < 200; ++round) {
        daqiri_hist_init(hist);
        count = t_rng_range(&rng, 1, MAX);
        limit = 1ull << t_rng_range(&rng, 1, 40);
        for (i = 0; i < count; ++i) {
            values[i] = t_rng_range(&rng, 0, limit);
            daqiri_hist_add(hist, values[i]);
        }
        qsort(values, count, sizeof(*values), compare);
        for (i = 0; i < sizeof(shares) / sizeof(shares[0]); ++i) {
            size_t rank = (size_t)ceil(shares[i] * (double)count);

            exact = values[(rank > 0) ? rank - 1 : 0];
            got   = daqiri_hist_share(hist, shares[i]);
            ck_assert_msg(fabs((double)got - (double)exact) <=
                          0.008 * (double)exact + 0.5,
                          "share %g of %zu: %llu, not %llu", shares[i], count,
                          (unsigned long long)got, (unsigned long long)exact);
        }
    }
    free(hist);
    free(values);
}
END_TEST

/* ---- failures ---- */

START_TEST(test_failure)
{
    daqiri_failure_t failure = {0};
    int i;

    for (i = 0; i < DAQIRI_CLASS_LAST; ++i) {
        ck_assert_ptr_nonnull(daqiri_class_name((daqiri_class_t)i));
        ck_assert_int_eq(daqiri_class_of_name(
                                 daqiri_class_name((daqiri_class_t)i)), i);
    }
    ck_assert_int_eq(daqiri_class_of_name("whatever"), DAQIRI_CLASS_LAST);

    /* the first one stays */
    ck_assert_int_eq(daqiri_fail(&failure, DAQIRI_CLASS_TIMEOUT, "%d", 1), -1);
    ck_assert_int_eq(daqiri_fail(&failure, DAQIRI_CLASS_LOCAL, "%d", 2), -1);
    ck_assert_int_eq(failure.class_id, DAQIRI_CLASS_TIMEOUT);
    ck_assert_str_eq(failure.text, "1");
}
END_TEST

/* ---- reports ---- */

static const daqiri_column_t columns[] = {
    {"name", "name"}, {"size", "size", DAQIRI_UNIT_SIZE},
    {"lat.p50_us", "p50 us", DAQIRI_UNIT_USEC}, {"none", "none"},
    {"list", "list"}, {"ok", "ok"}
};

static const daqiri_section_t section = {"rows", "Title",
                                         DAQIRI_COLUMNS(columns)};

static json_t *make_report(void)
{
    json_t *report = daqiri_report_new("test");
    json_t *rows   = daqiri_report_array(report, "rows");
    json_t *row    = daqiri_report_row(rows);

    daqiri_report_text(row, "name", "a, \"b\"");
    daqiri_report_int(row, "size", 65536);
    daqiri_report_set(row, "lat", json_pack("{s:f}", "p50_us", 12.3456));
    daqiri_report_set(row, "list", json_pack("[s,s]", "x", "y"));
    daqiri_report_bool(row, "ok", 1);
    row = daqiri_report_row(rows);
    daqiri_report_text(row, "name", "c");
    daqiri_report_set(row, "size", json_null());
    daqiri_report_bool(row, "ok", 0);
    return report;
}

static void prints(const json_t *report, daqiri_format_t format,
                   const char *expected)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    ck_assert_int_eq(daqiri_report_print(report, format, &section, 1, stream),
                     0);
    fclose(stream);
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(test_report)
{
    json_t *report = make_report();

    prints(report, DAQIRI_FORMAT_TABLE,
           "Title\n"
           "name      size  p50 us  list  ok\n"
           "a, \"b\"  64 KiB   12.35  x, y  yes\n"
           "c            -       -  -     no\n");
    json_decref(report);
}
END_TEST

START_TEST(test_report_csv)
{
    json_t *report = make_report();

    prints(report, DAQIRI_FORMAT_CSV,
           "name,size,lat.p50_us,none,list,ok\n"
           "\"a, \"\"b\"\"\",65536,12.3456,,\"x, y\",yes\n"
           "c,,,,,no\n");
    json_decref(report);
}
END_TEST

/* A stream that takes nothing is no success. */
START_TEST(test_report_full)
{
    json_t *report = make_report();
    FILE *stream   = fopen("/dev/full", "w");
    int format;

    for (format = DAQIRI_FORMAT_TABLE; format <= DAQIRI_FORMAT_CSV; ++format) {
        clearerr(stream);
        ck_assert_int_ne(daqiri_report_print(report, (daqiri_format_t)format,
                                             &section, 1, stream), 0);
    }
    fclose(stream);
    json_decref(report);
}
END_TEST

START_TEST(test_report_not_utf8)
{
    json_t *report = daqiri_report_new("test");

    daqiri_report_text(report, "name", "a\xff\xfe" "b");
    ck_assert_str_eq(daqiri_report_find_text(report, "name"), "a??b");
    daqiri_report_text(report, "name", NULL);
    ck_assert_ptr_null(daqiri_report_find(report, "name"));
    ck_assert_ptr_null(daqiri_report_find(report, "no.such.path"));
    json_decref(report);
}
END_TEST

/* ---- the watchdog ---- */

static json_t *answer(void *arg, daqiri_watch_child_t *child)
{
    daqiri_watch_step(child, "first", 60);
    daqiri_watch_step(child, "second", 60);
    return json_string(arg);
}

static json_t *hang(void *arg, daqiri_watch_child_t *child)
{
    (void)arg;
    signal(SIGTERM, SIG_IGN);
    daqiri_watch_step(child, "hanging", 0.05);
    while (child != NULL) {
        pause();
    }
    return NULL;
}

static json_t *die(void *arg, daqiri_watch_child_t *child)
{
    (void)arg;
    daqiri_watch_step(child, "dying", 60);
    kill(getpid(), SIGKILL);
    return NULL;
}

static json_t *leave(void *arg, daqiri_watch_child_t *child)
{
    (void)child;
    _exit(*(int*)arg);
}

START_TEST(test_watch)
{
    daqiri_watch_t watch = {.timeout = 60};
    char text[256];
    int status = 3;

    ck_assert_int_eq(daqiri_watch_run(&watch, answer, (void*)"yes"),
                     DAQIRI_WATCH_DONE);
    ck_assert_str_eq(json_string_value(watch.result), "yes");
    ck_assert_str_eq(watch.step, "second");
    json_decref(watch.result);

    ck_assert_int_eq(daqiri_watch_run(&watch, hang, NULL),
                     DAQIRI_WATCH_TIMEOUT);
    ck_assert_str_eq(watch.step, "hanging");
    ck_assert_ptr_null(watch.result);

    watch.timeout = 60;
    ck_assert_int_eq(daqiri_watch_run(&watch, die, NULL), DAQIRI_WATCH_DIED);
    ck_assert_int_eq(WTERMSIG(watch.status), SIGKILL);
    daqiri_watch_text(&watch, 1, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "died: Killed"));

    ck_assert_int_eq(daqiri_watch_run(&watch, leave, &status),
                     DAQIRI_WATCH_DIED);
    ck_assert_int_eq(WEXITSTATUS(watch.status), 3);
    /* nobody is left to be waited for */
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
}
END_TEST

/* A result that does not fit a pipe. */
static json_t *much(void *arg, daqiri_watch_child_t *child)
{
    size_t length = *(size_t*)arg;
    char *text    = malloc(length + 1);
    json_t *result;

    (void)child;
    memset(text, 'x', length);
    text[length] = '\0';
    result       = json_string(text);
    free(text);
    return result;
}

START_TEST(test_watch_long_result)
{
    daqiri_watch_t watch = {.timeout = 60};
    size_t length        = 3000000;

    ck_assert_int_eq(daqiri_watch_run(&watch, much, &length),
                     DAQIRI_WATCH_DONE);
    ck_assert_uint_eq(json_string_length(watch.result), length);
    json_decref(watch.result);
}
END_TEST

static Suite *suite_base(void)
{
    return t_suite("base", "duration", test_duration, "size_text",
                   test_size_text, "hist", test_hist_edges, "hist",
                   test_hist_random, "failure", test_failure, "report",
                   test_report, "report", test_report_csv, "report",
                   test_report_full, "report", test_report_not_utf8, "watch",
                   test_watch, "watch", test_watch_long_result, NULL);
}

T_MAIN(suite_base)
