/* SPDX-License-Identifier: BSD-3-Clause */

/* What the subcommands share: numbers as people write them, percentiles,
 * reports, and children under a watchdog. */

#include "t.h"
#include "tools/base/answer.h"
#include "tools/base/clock.h"
#include "tools/base/failure.h"
#include "tools/base/hist.h"
#include "tools/base/mapped.h"
#include "tools/base/parse.h"
#include "tools/base/progress.h"
#include "tools/base/report.h"
#include "tools/base/stop.h"
#include "tools/base/watch.h"
#include "tools/peer/peer.h"

#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
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
    ck_assert(daqiri_hist_least(hist, 0) == 0);
    daqiri_hist_add(hist, 0);
    ck_assert_uint_eq(daqiri_hist_share(hist, 0.5), 0);
    daqiri_hist_add(hist, UINT64_MAX);
    ck_assert_uint_eq(daqiri_hist_share(hist, 0), 0);
    ck_assert_uint_eq(daqiri_hist_share(hist, 1), UINT64_MAX);
    ck_assert(daqiri_hist_least(hist, 0) == 1);
    ck_assert(daqiri_hist_least(hist, 1) == 0.5);
    ck_assert(daqiri_hist_least(hist, UINT64_MAX) == 0.5);
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

/* The columns that are asked for, in that order; a list that has none is left out. */
START_TEST(test_report_only)
{
    static const daqiri_column_t other_columns[] = {{"command", "command"}};
    static const daqiri_section_t other = {NULL, NULL, DAQIRI_COLUMNS(other_columns)};
    json_t *report = make_report();

    daqiri_report_only("size,name");
    ck_assert_ptr_null(daqiri_report_unknown(&section, 1));
    prints(report, DAQIRI_FORMAT_TABLE,
           "Title\n"
           "  size  name\n"
           "64 KiB  a, \"b\"\n"
           "     -  c\n");
    prints(report, DAQIRI_FORMAT_CSV,
           "size,name\n"
           "65536,\"a, \"\"b\"\"\"\n"
           ",c\n");
    ck_assert_str_eq(daqiri_report_unknown(&other, 1), "size");
    daqiri_report_only("name,");
    ck_assert_str_eq(daqiri_report_unknown(&section, 1), "");
    daqiri_report_only("nam");
    ck_assert_str_eq(daqiri_report_unknown(&section, 1), "nam");
    daqiri_report_only(NULL);
    ck_assert_ptr_null(daqiri_report_unknown(&section, 1));
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

static json_t *answer(void *arg)
{
    return json_string(arg);
}

static json_t *hang(void *arg)
{
    signal(SIGTERM, SIG_IGN);
    while (arg == NULL) {
        pause();
    }
    return NULL;
}

static json_t *die(void *arg)
{
    (void)arg;
    kill(getpid(), SIGKILL);
    return NULL;
}

static json_t *leave(void *arg)
{
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
    json_decref(watch.result);

    watch.timeout = 0.05;
    ck_assert_int_eq(daqiri_watch_run(&watch, hang, NULL),
                     DAQIRI_WATCH_TIMEOUT);
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
static json_t *much(void *arg)
{
    size_t length = *(size_t*)arg;
    char *text    = malloc(length + 1);
    json_t *result;

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

/* ---- what peers tell each other ---- */

static void fill_text(char *text, size_t size, t_rng_t *rng)
{
    size_t length = t_rng_below(rng, size);
    size_t i;

    for (i = 0; i < length; ++i) {
        text[i] = (char)t_rng_range(rng, ' ', '~');
    }
    text[length] = '\0';
}

static void fill_blob(daqiri_peer_blob_t *blob, t_rng_t *rng)
{
    blob->length = (uint16_t)t_rng_range(rng, 0, DAQIRI_PEER_BLOB_MAX);
    t_rng_fill(rng, blob->bytes, blob->length);
}

static void fill_transport(char *text, t_rng_t *rng)
{
    static const char letters[] = DAQIRI_PEER_TRANSPORT_LETTERS;
    size_t length = t_rng_range(rng, 1, DAQIRI_PEER_WORD_MAX - 1);
    size_t i;

    for (i = 0; i < length; ++i) {
        text[i] = letters[t_rng_below(rng, sizeof(letters) - 1)];
    }
}

/* Of a run of a sweep. */
static void make_flow_frame(daqiri_peer_frame_t *frame, t_rng_t *rng)
{
    switch (frame->kind) {
    case DAQIRI_PEER_FLOW_TERMS:
        fill_transport(frame->flow_terms.transport, rng);
        frame->flow_terms.pattern = (uint32_t)t_rng_range(rng, 1, 3);
        frame->flow_terms.size    = t_rng_range(rng, DAQIRI_PEER_FLOW_SIZE_MIN,
                                                DAQIRI_PEER_FLOW_SIZE_MAX);
        frame->flow_terms.window  = t_rng_range(rng, 1,
                                                DAQIRI_PEER_FLOW_WINDOW_MAX);
        frame->flow_terms.duration_ns = t_rng_range(rng, 0,
                                                    DAQIRI_PEER_NS_MAX);
        frame->flow_terms.pace    = t_rng_next(rng) >> 1;
        break;
    case DAQIRI_PEER_FLOW_ADDRESS:
        frame->flow_address.port = (uint16_t)t_rng_next(rng);
        fill_blob(&frame->flow_address.device, rng);
        fill_blob(&frame->flow_address.iface, rng);
        fill_blob(&frame->flow_address.ep, rng);
        break;
    case DAQIRI_PEER_FLOW_SIDE:
        frame->flow_side.sent       = t_rng_next(rng) >> 1;
        frame->flow_side.received   = t_rng_next(rng) >> 1;
        frame->flow_side.disorder   = t_rng_next(rng) >> 1;
        frame->flow_side.first_ns   = t_rng_next(rng) >> 2;
        frame->flow_side.last_ns    = frame->flow_side.first_ns +
                                      (t_rng_next(rng) >> 2);
        frame->flow_side.elapsed_ns = t_rng_next(rng) >> 1;
        frame->flow_side.cpu_ns     = t_rng_next(rng) >> 1;
        frame->flow_side.preempted  = t_rng_next(rng) >> 1;
        break;
    default:
        fill_text(frame->flow_counter.name, DAQIRI_PEER_COUNTER_MAX, rng);
        frame->flow_counter.value = t_rng_next(rng) >> 1;
    }
}

/* Any frame that may be sent. */
static void make_frame(daqiri_peer_frame_t *frame, t_rng_t *rng)
{
    memset(frame, 0, sizeof(*frame));
    frame->kind = (daqiri_peer_kind_t)t_rng_range(rng, DAQIRI_PEER_HELLO,
                                                  DAQIRI_PEER_LAST - 1);
    switch (frame->kind) {
    case DAQIRI_PEER_HELLO:
        frame->hello.protocol_min = (uint32_t)t_rng_range(rng, 1, UINT32_MAX);
        frame->hello.protocol_max = (uint32_t)t_rng_range(rng, 1, UINT32_MAX);
        fill_text(frame->hello.service, DAQIRI_PEER_WORD_MAX, rng);
        fill_text(frame->hello.version, DAQIRI_PEER_WORD_MAX, rng);
        break;
    case DAQIRI_PEER_INFO:
        frame->info.lid       = (uint16_t)t_rng_next(rng);
        frame->info.mtu       = (uint8_t)t_rng_range(rng, 1, 5);
        frame->info.is_global = (uint8_t)t_rng_below(rng, 2);
        frame->info.qpn       = (uint32_t)t_rng_below(rng, 1 << 24);
        frame->info.psn       = (uint32_t)t_rng_below(rng, 1 << 24);
        frame->info.gid_index = (int32_t)t_rng_next(rng);
        t_rng_fill(rng, frame->info.gid, sizeof(frame->info.gid));
        break;
    case DAQIRI_PEER_READY:
        fill_text(frame->ready.stage, DAQIRI_PEER_WORD_MAX, rng);
        break;
    case DAQIRI_PEER_DONE:
        frame->done.messages = t_rng_next(rng) >> 1;
        break;
    case DAQIRI_PEER_ABORT:
        fill_text(frame->abort.class_name, DAQIRI_PEER_WORD_MAX, rng);
        fill_text(frame->abort.stage, DAQIRI_PEER_WORD_MAX, rng);
        fill_text(frame->abort.text, DAQIRI_PEER_TEXT_MAX, rng);
        break;
    default:
        make_flow_frame(frame, rng);
    }
}

/* Texts only up to their zero. */
static int same_frame(const daqiri_peer_frame_t *a,
                      const daqiri_peer_frame_t *b)
{
    uint8_t x[DAQIRI_PEER_FRAME_MAX], y[DAQIRI_PEER_FRAME_MAX];
    size_t length = daqiri_peer_pack(a, x);

    return (length == daqiri_peer_pack(b, y)) && (memcmp(x, y, length) == 0);
}

/* In memory of exactly its length, so that a sanitizer sees one byte more. */
static int parse(const uint8_t *bytes, size_t length,
                 daqiri_peer_frame_t *frame)
{
    char why[DAQIRI_PEER_WHY_MAX] = "";
    uint8_t *copy;
    int ret;

    length -= DAQIRI_PEER_HEADER_LEN;
    copy    = malloc((length > 0) ? length : 1);
    memcpy(copy, bytes + DAQIRI_PEER_HEADER_LEN, length);
    ret = daqiri_peer_parse(copy, length, frame, why);
    ck_assert_int_eq(ret == 0, why[0] == '\0');
    free(copy);
    return ret;
}

/* Any frame, the longest among them, and each that is cut short. */
START_TEST(test_peer_round_trip)
{
    uint8_t bytes[DAQIRI_PEER_FRAME_MAX];
    daqiri_peer_frame_t frame, other;
    t_rng_t rng;
    size_t length, shorter;
    uint32_t said;
    int i;

    t_rng_init(&rng, 2);
    for (i = 0; i < 5000; ++i) {
        make_frame(&frame, &rng);
        length = daqiri_peer_pack(&frame, bytes);
        ck_assert_int_eq(daqiri_peer_parse_header(bytes, &said), DAQIRI_PEER_OK);
        ck_assert_uint_eq(said, length - DAQIRI_PEER_HEADER_LEN);
        ck_assert_int_eq(parse(bytes, length, &other), 0);
        ck_assert(same_frame(&frame, &other));
        shorter = t_rng_range(&rng, DAQIRI_PEER_HEADER_LEN, length - 1);
        ck_assert_int_eq(parse(bytes, shorter, &other), -1);
        bytes[length] = 0;
        ck_assert_int_eq(parse(bytes, length + 1, &other), -1);
    }
}
END_TEST

START_TEST(test_peer_header)
{
    static const struct {
        uint8_t               bytes[DAQIRI_PEER_HEADER_LEN];
        daqiri_peer_verdict_t verdict;
        uint32_t              length;
    } cases[] = {
        {{0, 0, 0, 0}, DAQIRI_PEER_OK, 0},
        {{0, 0, 0x40, 0}, DAQIRI_PEER_OK, DAQIRI_PEER_PAYLOAD_MAX},
        {{0, 0, 0x40, 1}, DAQIRI_PEER_NOT_OURS, DAQIRI_PEER_PAYLOAD_MAX + 1},
        {{0xff, 0xff, 0xff, 0xff}, DAQIRI_PEER_NOT_OURS, UINT32_MAX},
        {{'G', 'E', 'T', ' '}, DAQIRI_PEER_NOT_OURS, 0x47455420},
        {{'D', 'Q', 'R', 'I'}, DAQIRI_PEER_BINARY, 0x44515249}
    };
    uint32_t length;
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        ck_assert_msg(daqiri_peer_parse_header(cases[i].bytes, &length) ==
                      cases[i].verdict, "case %zu", i);
        ck_assert_uint_eq(length, cases[i].length);
    }
}
END_TEST

/* Keys that are not known are no reason to refuse; one that is missing is. */
START_TEST(test_peer_keys)
{
    static const struct {
        const char *text;
        int        ret;
    } cases[] = {
        {"{\"kind\":\"done\",\"messages\":7}", 0},
        {"{\"mood\":[{}],\"messages\":7,\"kind\":\"done\"}", 0},
        {"{\"kind\":\"done\",\"messages\":7.0}", -1},
        {"{\"kind\":\"done\",\"messages\":-7}", -1},
        {"{\"kind\":\"done\",\"messages\":\"7\"}", -1},
        {"{\"kind\":\"done\"}", -1},
        {"{\"kind\":\"done\",\"messages\":7}{}", -1},
        {"{\"messages\":7}", -1},
        {"{\"kind\":\"\",\"messages\":7}", -1},
        {"[\"done\",7]", -1},
        {"{\"kind\":\"ready\",\"stage\":\"a\\u001b[2Jb\"}", 0},
        {"{\"kind\":\"ready\",\"stage\":\"a\\u0000b\"}", -1},
        {"{\"kind\":\"ready\",\"stage\":\"\xff\"}", -1}
    };
    char why[DAQIRI_PEER_WHY_MAX];
    daqiri_peer_frame_t frame;
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        ck_assert_msg(daqiri_peer_parse((const uint8_t*)cases[i].text,
                                        strlen(cases[i].text), &frame, why) ==
                      cases[i].ret, "%s", cases[i].text);
        if ((cases[i].ret == 0) && (frame.kind == DAQIRI_PEER_DONE)) {
            ck_assert_uint_eq(frame.done.messages, 7);
        } else if (cases[i].ret == 0) {
            ck_assert_str_eq(frame.ready.stage, "a?[2Jb");
        }
    }
}
END_TEST

START_TEST(test_peer_agree)
{
    ck_assert_uint_eq(daqiri_peer_agree(3, 3, 3, 3), 3);
    ck_assert_uint_eq(daqiri_peer_agree(3, 3, 1, 9), 3); /* the peer is newer */
    ck_assert_uint_eq(daqiri_peer_agree(1, 9, 3, 3), 3); /* or older */
    ck_assert_uint_eq(daqiri_peer_agree(3, 5, 4, 9), 5);
    ck_assert_uint_eq(daqiri_peer_agree(3, 3, 4, 9), 0);
    ck_assert_uint_eq(daqiri_peer_agree(4, 9, 3, 3), 0);
    ck_assert_uint_eq(daqiri_peer_agree(3, 3, 9, 1), 0); /* nonsense */
}
END_TEST

/* Frames with bytes changed, and noise: no crash, and what is taken is within
 * its bounds, for it is the same when it is packed again. */
START_TEST(test_peer_fuzz)
{
    uint8_t bytes[DAQIRI_PEER_FRAME_MAX + 1];
    daqiri_peer_frame_t frame, other;
    size_t length, at;
    t_rng_t rng;
    int i, taken = 0;

    t_rng_init(&rng, 3);
    for (i = 0; i < 50000; ++i) {
        make_frame(&frame, &rng);
        length = daqiri_peer_pack(&frame, bytes);
        if (t_rng_once_in(&rng, 10)) {
            length = t_rng_range(&rng, DAQIRI_PEER_HEADER_LEN, 1024);
            t_rng_fill(&rng, bytes + DAQIRI_PEER_HEADER_LEN,
                       length - DAQIRI_PEER_HEADER_LEN);
        }
        do {
            at        = t_rng_range(&rng, DAQIRI_PEER_HEADER_LEN, length);
            bytes[at] = t_rng_once_in(&rng, 2) ? (uint8_t)t_rng_next(&rng) :
                        (uint8_t)t_rng_range(&rng, '0', '9');
        } while (!t_rng_once_in(&rng, 3));
        if (parse(bytes, length, &frame) != 0) {
            continue;
        }
        ++taken;
        length = daqiri_peer_pack(&frame, bytes);
        ck_assert_int_eq(parse(bytes, length, &other), 0);
        ck_assert(same_frame(&frame, &other));
    }
    ck_assert_int_gt(taken, 1000);
}
END_TEST

/* ---- Ctrl-C ---- */

START_TEST(test_stop_second)
{
    const uint64_t first = 12345;

    ck_assert(!daqiri_stop_is_second(0, 0));
    ck_assert(!daqiri_stop_is_second(0, UINT64_MAX));
    ck_assert(!daqiri_stop_is_second(first, first));
    ck_assert(!daqiri_stop_is_second(first, first + DAQIRI_STOP_GRACE_NS - 1));
    ck_assert(daqiri_stop_is_second(first, first + DAQIRI_STOP_GRACE_NS));
}
END_TEST

static void pass_grace(void)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    uint64_t end_ns = daqiri_now_ns() + DAQIRI_STOP_GRACE_NS;

    while (daqiri_now_ns() < end_ns) {
        nanosleep(&pause, NULL);
    }
}

/* In a child: waits for the word of its parent, however often it comes, before
 * and after a terminal's. Ends by the second signal of others. */
static void be_stopped(void)
{
    daqiri_stop_catch();
    daqiri_stop_tell(getpid());
    pass_grace();
    daqiri_stop_tell(getpid());
    raise(SIGINT);
    pass_grace();
    daqiri_stop_tell(getpid());
    if (!daqiri_stop_asked()) {
        _exit(1);
    }
    raise(SIGHUP);
    _exit(2);
}

START_TEST(test_stop_told)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        be_stopped();
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), SIGHUP);
}
END_TEST

/* What is done, and how long the rest takes if it goes on so. */
START_TEST(test_progress_bar)
{
    static const struct {
        double     done, seconds;
        const char *text;
    } cases[] = {
        {-1, 5, ""},
        {NAN, 5, ""},
        {0, 5, "[--------------------]   0 %: "},
        {0.25, 4, "[#####---------------]  25 %, 12 s left: "},
        {1, 4, "[####################] 100 %, 0 s left: "},
        {7, 4, "[####################] 100 %, 0 s left: "}
    };
    char text[DAQIRI_PROGRESS_BAR_MAX];
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        daqiri_progress_bar(cases[i].done, cases[i].seconds, text);
        ck_assert_str_eq(text, cases[i].text);
    }
}
END_TEST

/* What a parent reads: objects with the key, among all that others may say. */
START_TEST(test_answer_find)
{
    char text[] = "[1.5] UCX says {\"daqiri\":\"report\",\"n\":1}\n"
                  "{\"daqiri\":7}\n"
                  "{\"n\":2}\n"
                  "\n"
                  "{\"daqiri\":\"failure\",\"n\":3}\n"
                  "{\"daqiri\":\"report\",\"n\":4}\n"
                  "{\"daqiri\":\"report\",\"n\":5}\n"
                  "{\"daqiri\":\"report\",\"n\":";
    char rest[256];
    json_t *found = daqiri_answer_find(text, "report", rest, sizeof(rest));

    ck_assert_ptr_nonnull(found);
    ck_assert_int_eq(json_object_size(found), 1); /* the key is taken out */
    ck_assert_int_eq(json_integer_value(json_object_get(found, "n")), 4);
    ck_assert_str_eq(rest, "[1.5] UCX says {\"daqiri\":\"report\",\"n\":1}\n"
                           "{\"daqiri\":7}\n{\"n\":2}\n"
                           "{\"daqiri\":\"report\",\"n\":\n");
    json_decref(found);
}
END_TEST

START_TEST(test_answer_none)
{
    char text[] = "no answer";
    char rest[4];

    ck_assert_ptr_null(daqiri_answer_find(text, "report", rest, sizeof(rest)));
    ck_assert_str_eq(rest, "no "); /* cut */
    text[0] = '\0';
    ck_assert_ptr_null(daqiri_answer_find(text, "report", NULL, 0));
}
END_TEST

/* Is the library still mapped when nobody holds it any more? */
static int base_is_mapped(const char *name)
{
    return dlopen(name, RTLD_LAZY | RTLD_NOLOAD) != NULL;
}

/* Two libraries that every glibc has, and nothing here uses. */
START_TEST(test_mapped_keep)
{
    void *other = dlopen("libanl.so.1", RTLD_LAZY);
    void *kept  = dlopen("libBrokenLocale.so.1", RTLD_LAZY);

    ck_assert_ptr_nonnull(other);
    ck_assert_ptr_nonnull(kept);
    ck_assert_int_eq(mapped_keep("libBrokenLocale"), 1);
    ck_assert_int_eq(mapped_keep("libNobodyHas"), 0);
    dlclose(other);
    dlclose(kept);
    ck_assert(!base_is_mapped("libanl.so.1"));
    ck_assert(base_is_mapped("libBrokenLocale.so.1"));
}
END_TEST

static Suite *suite_base(void)
{
    return t_suite("base", "duration", test_duration, "size_text", test_size_text,
                   "hist", test_hist_edges, "hist", test_hist_random, "failure",
                   test_failure, "report", test_report, "report", test_report_only,
                   "report", test_report_csv, "report", test_report_full, "report",
                   test_report_not_utf8, "watch", test_watch, "watch",
                   test_watch_long_result, "peer", test_peer_round_trip, "peer",
                   test_peer_header, "peer", test_peer_keys, "peer", test_peer_agree,
                   "peer", test_peer_fuzz, "progress", test_progress_bar, "answer",
                   test_answer_find, "answer", test_answer_none, "stop",
                   test_stop_second, "stop", test_stop_told, "mapped",
                   test_mapped_keep, NULL);
}

T_MAIN(suite_base)
