/* SPDX-License-Identifier: BSD-3-Clause */

/* The table and the lines of `daqiri top`, from files of counters in memory, without a
 * terminal. */

#include "t.h"
#include "tools/cmd/top.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

enum { VALUES = 32, PEERS = 4, FILES = 8, WIDEST = TOP_LINE_MAX - 1 };

/* ---- files ---- */

static daqiri_stats_file_t files_list[FILES];
static daqiri_stats_files_t files;

static dq_stats_header_t *header_of(size_t index)
{
    return files_list[index].copy;
}

/* A file of a process that lives; its time is 100 s. */
static size_t add_file(uint32_t pid, uint32_t serial, uint64_t uuid)
{
    daqiri_stats_file_t *file = &files_list[files.count];
    dq_stats_header_t layout, *header;

    dq_stats_layout(&layout, VALUES, PEERS);
    header  = calloc(1, layout.length);
    ck_assert_ptr_nonnull(header);
    *header = layout;
    header->pid       = pid;
    header->port      = 1;
    header->uuid      = uuid;
    header->opened_ns = 58 * SECOND;
    strcpy(header->device, "softverbs0");
    dq_stats_publish(header);
    *file = (daqiri_stats_file_t){
        .pid = pid, .serial = serial, .fd = -1, .copy = header,
        .read_ns = 100 * SECOND, .header = dq_stats_find(header, layout.length)
    };
    ck_assert_ptr_nonnull(file->header);
    files.list = files_list;
    return files.count++;
}

static void set_value(size_t index, const char *name, uint64_t value)
{
    dq_stats_header_t *header = header_of(index);
    dq_stats_entry_t *entries = (void*)((char*)header + header->entries_at);
    uint64_t *values          = (void*)((char*)header + header->values_at);
    size_t i;

    for (i = 0; (i < VALUES) && (entries[i].name[0] != '\0') &&
                (strcmp(entries[i].name, name) != 0); ++i) {
    }
    ck_assert_uint_lt(i, VALUES);
    strcpy(entries[i].name, name);
    values[i] = value;
}

static dq_stats_peer_t *peer_of(size_t index, uint32_t place)
{
    dq_stats_header_t *header = header_of(index);

    return (dq_stats_peer_t*)((char*)header + header->peers_at) + place;
}

static dq_stats_peer_t *set_peer(size_t index, uint32_t place, const char *host,
                                 uint32_t pid, dq_stats_state_t state)
{
    dq_stats_peer_t *peer = peer_of(index, place);

    *peer = (dq_stats_peer_t){
        .state = state, .pid = pid, .qpn = 17, .peer_qpn = 18, .in_use = 3, .depth = 64,
        .credits = 100, .window = 128, .owed = 4, .promised = 32, .losses = 1,
        .posted = 1000, .retired = 997, .oldest_ns = 5000, .stalls = 2
    };
    snprintf(peer->host, sizeof(peer->host), "%s", host);
    return peer;
}

static void drop_files(void)
{
    while (files.count > 0) {
        free(files_list[--files.count].copy);
    }
}

/* ---- the table ---- */

static top_table_t table, before;

static void look(void)
{
    top_table_free(&before);
    before = table;
    ck_assert_int_eq(top_table_make(&table, &files, &before), 0);
}

/* The time of all files is so many seconds later. */
static void later(double seconds)
{
    size_t i;

    for (i = 0; i < files.count; ++i) {
        files_list[i].read_ns += (uint64_t)(seconds * 1e9);
    }
}

static void setup(void)
{
    files  = (daqiri_stats_files_t){NULL, 0};
    table  = (top_table_t){NULL, 0};
    before = (top_table_t){NULL, 0};
}

START_TEST(test_values)
{
    static const struct {
        const char     *name;
        top_value_id_t id;
    } rows[] = {
        {"am_rx", TOP_RECEIVED}, {"am_tx_bytes", TOP_SENT_BYTES},
        {"am_rx_bytes", TOP_RECEIVED_BYTES}, {"rma_bytes", TOP_RMA_BYTES},
        {"qp_failures", TOP_LOST}, {"recoveries", TOP_RECOVERED},
        {"windows_widened", TOP_WIDENED}, {"windows_recalled", TOP_RECALLED},
        {"credits_returned", TOP_RETURNED}, {"slots_grown", TOP_SLOTS_GROWN},
        {"idle_closes", TOP_IDLE_CLOSES}, {"idle_reopens", TOP_IDLE_REOPENS},
        {"qp_waits", TOP_QP_WAITS}, {"conns_open", TOP_CONNS},
        {"rx_posted", TOP_RX_POSTED},
        {"rx_promised", TOP_RX_PROMISED}, {"sampled_at_ns", TOP_SAMPLED_NS}
    };
    const top_interface_t *row;
    size_t i;

    add_file(4000, 2, 77);
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        set_value(0, rows[i].name, 100 + i);
    }
    set_value(0, "am_short", 1);
    set_value(0, "am_bcopy", 20);
    set_value(0, "am_zcopy", 300);
    set_value(0, "of_another_version", 5000);
    look();
    ck_assert_uint_eq(table.count, 1);
    row = &table.list[0];
    ck_assert_uint_eq(row->pid, 4000);
    ck_assert_uint_eq(row->serial, 2);
    ck_assert_str_eq(row->device, "softverbs0");
    ck_assert_int_eq(row->is_alive, 1);
    ck_assert_uint_eq(row->values[TOP_SENT].now, 321);
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        ck_assert_uint_eq(row->values[rows[i].id].now, 100 + i);
    }
    for (i = 0; i < TOP_VALUES; ++i) {
        ck_assert(row->values[i].per_s < 0);
    }
    ck_assert(row->waits_per_s < 0);
}
END_TEST

START_TEST(test_rates)
{
    const top_interface_t *row;

    add_file(4000, 0, 77);
    set_value(0, "am_short", 1000);
    set_value(0, "am_rx", 50);
    set_value(0, "rma_bytes", 7);
    set_value(0, "refused_sq_full", 10);
    set_value(0, "refused_no_credit", 3);
    look();
    later(0.5);
    set_value(0, "am_short", 1600);
    set_value(0, "am_rx", 49); /* a counter does not shrink */
    set_value(0, "refused_sq_full", 30);
    set_value(0, "refused_no_credit", 4);
    look();
    row = &table.list[0];
    ck_assert_double_eq(row->values[TOP_SENT].per_s, 1200);
    ck_assert(row->values[TOP_RECEIVED].per_s < 0);
    ck_assert_double_eq(row->values[TOP_RMA_BYTES].per_s, 0);
    ck_assert_double_eq(row->waits_per_s, 42);
    ck_assert_uint_eq(row->num_waits, 2);
    ck_assert_str_eq(row->waits[0].reason, "sq_full");
    ck_assert_double_eq(row->waits[0].value.per_s, 40);
    ck_assert_str_eq(row->waits[1].reason, "no_credit");
    ck_assert_double_eq(row->waits[1].value.per_s, 2);

    look(); /* at the same time: nothing can be said */
    ck_assert(table.list[0].values[TOP_SENT].per_s < 0);
}
END_TEST

/* A pid may be used again, and files come and go between two looks. */
START_TEST(test_another)
{
    add_file(4000, 0, 77);
    add_file(4001, 0, 78);
    set_value(0, "am_short", 10);
    set_value(1, "am_short", 10);
    look();
    drop_files();
    add_file(3999, 0, 79);
    add_file(4000, 0, 80);
    add_file(4001, 1, 78);
    add_file(4001, 0, 78);
    later(1);
    set_value(0, "am_short", 20);
    set_value(1, "am_short", 20);
    set_value(2, "am_short", 20);
    set_value(3, "am_short", 20);
    look();
    ck_assert(table.list[0].values[TOP_SENT].per_s < 0);
    ck_assert(table.list[1].values[TOP_SENT].per_s < 0);
    ck_assert(table.list[2].values[TOP_SENT].per_s < 0);
    ck_assert_double_eq(table.list[3].values[TOP_SENT].per_s, 10);
    drop_files();
    look();
    ck_assert_uint_eq(table.count, 0);
}
END_TEST

/* A connection's rate is between two samples of its process, whenever they are read. */
START_TEST(test_requests)
{
    add_file(4000, 0, 77);
    set_value(0, "sampled_at_ns", 50 * SECOND);
    set_peer(0, 0, "one", 1, DQ_STATS_UP);
    set_peer(0, 2, "two", 2, DQ_STATS_UP);
    look();
    ck_assert_uint_eq(table.list[0].count, 2);
    ck_assert(table.list[0].conns[0].requests_per_s < 0);

    later(0.1);
    set_value(0, "sampled_at_ns", 54 * SECOND);
    peer_of(0, 0)->posted = 3000;
    set_peer(0, 2, "two", 3, DQ_STATS_UP)->posted = 3000; /* another process */
    look();
    ck_assert_double_eq(table.list[0].conns[0].requests_per_s, 500);
    ck_assert(table.list[0].conns[1].requests_per_s < 0);

    later(0.1); /* no new sample: what was true then still is all that is known */
    look();
    ck_assert_double_eq(table.list[0].conns[0].requests_per_s, 500);
    ck_assert(table.list[0].conns[1].requests_per_s < 0);

    set_value(0, "sampled_at_ns", 55 * SECOND);
    peer_of(0, 0)->posted = 2999; /* another connection to that process */
    peer_of(0, 2)->posted = 3001;
    look();
    ck_assert(table.list[0].conns[0].requests_per_s < 0);
    ck_assert_double_eq(table.list[0].conns[1].requests_per_s, 1);
}
END_TEST

START_TEST(test_states)
{
    uint32_t state;

    add_file(4000, 0, 77);
    for (state = DQ_STATS_NONE; state <= DQ_STATS_STATE_LAST + 1; ++state) {
        set_peer(0, 1, "one", 1, DQ_STATS_UP)->state = state;
        look();
        ck_assert_uint_eq(table.list[0].count, (state > DQ_STATS_NONE) &&
                                               (state < DQ_STATS_STATE_LAST));
    }
}
END_TEST

START_TEST(test_many_reasons)
{
    char name[DQ_STATS_NAME_MAX];
    size_t i;

    add_file(4000, 0, 77);
    for (i = 0; i < VALUES; ++i) {
        snprintf(name, sizeof(name), "refused_%zu", i);
        set_value(0, name, 1);
    }
    look();
    ck_assert_uint_eq(table.list[0].num_waits, TOP_WAITS_MAX);
}
END_TEST

/* Nobody holds the lock of the file: its process was killed. */
START_TEST(test_killed)
{
    char path[] = "/tmp/t_top_table.XXXXXX";
    int fd      = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    add_file(4000, 0, 77);
    files_list[0].fd = fd;
    look();
    ck_assert_int_eq(table.list[0].is_alive, 0);
    unlink(path);
    close(fd);
}
END_TEST

static void is_sorted(top_order_t order, const uint32_t *pids)
{
    size_t i;

    top_table_sort(&table, order);
    for (i = 0; i < table.count; ++i) {
        ck_assert_msg(table.list[i].pid == pids[i], "%s: %u is at %zu",
                      top_order_names[order], table.list[i].pid, i);
    }
}

START_TEST(test_order)
{
    static const struct {
        uint32_t pid;
        uint64_t sent, waits, lost;
    } rows[] = {{30, 5, 9, 0}, {10, 7, 0, 2}, {40, 1, 9, 2}, {20, 6, 1, 9}};
    static const uint32_t by_pid[] = {10, 20, 30, 40}, by_rate[] = {10, 20, 30, 40},
                          by_waits[] = {30, 40, 20, 10}, by_lost[] = {20, 10, 40, 30};
    size_t i;

    for (i = 0; i < 4; ++i) {
        add_file(rows[i].pid, 0, i);
        set_value(i, "am_short", 0);
        set_value(i, "refused_no_credit", 0);
    }
    look();
    later(1);
    for (i = 0; i < 4; ++i) {
        set_value(i, "am_short", rows[i].sent);
        set_value(i, "refused_no_credit", rows[i].waits);
        set_value(i, "qp_failures", rows[i].lost);
    }
    look();
    is_sorted(TOP_BY_PID, by_pid);
    is_sorted(TOP_BY_WAITS, by_waits);
    is_sorted(TOP_BY_LOST, by_lost);
    is_sorted(TOP_BY_RATE, by_rate);
}
END_TEST

static void is_conn_sorted(top_order_t order, const char *pids)
{
    char text[PEERS + 1] = "";
    size_t i;

    top_table_sort(&table, order);
    for (i = 0; i < table.list[0].count; ++i) {
        text[i] = (char)('0' + table.list[0].conns[i].now.pid);
    }
    ck_assert_str_eq(text, pids);
}

START_TEST(test_conn_order)
{
    add_file(4000, 0, 77);
    set_peer(0, 0, "b", 2, DQ_STATS_UP)->credits = 9;
    set_peer(0, 1, "b", 1, DQ_STATS_UP)->losses = 7;
    set_peer(0, 2, "a", 3, DQ_STATS_UP)->credits = 0;
    set_peer(0, 3, "c", 4, DQ_STATS_UP);
    set_value(0, "sampled_at_ns", SECOND);
    look();
    set_value(0, "sampled_at_ns", 2 * SECOND);
    peer_of(0, 3)->posted += 2;
    peer_of(0, 0)->posted += 1;
    look();
    is_conn_sorted(TOP_BY_PID, "3124");
    is_conn_sorted(TOP_BY_RATE, "4231");
    is_conn_sorted(TOP_BY_WAITS, "3214");
    is_conn_sorted(TOP_BY_LOST, "1324");
}
END_TEST

/* ---- the lines ---- */

static top_lines_t lines;

static const top_view_t usual = {
    .interval = 2, .host = "node1", .clock = "12:34:56",
    .nothing = "no process of user 0 runs daqiri with counters"
};

static void make_lines(const top_view_t *view, unsigned width)
{
    top_lines_free(&lines);
    top_lines_make(&lines, &table, view, width);
    ck_assert_int_eq(lines.error, 0);
    ck_assert_uint_le(lines.head, lines.count);
}

/* Without the blanks at their ends. */
static void are_lines(const char *const *expected, size_t count)
{
    char text[TOP_LINE_MAX];
    size_t i, length;

    for (i = 0; (i < count) && (i < lines.count); ++i) {
        strcpy(text, lines.list[i].text);
        for (length = strlen(text); (length > 0) && (text[length - 1] == ' ');
             text[--length] = '\0') {
        }
        ck_assert_str_eq(text, expected[i]);
    }
    ck_assert_uint_eq(lines.count, count);
}

#define ARE_LINES(...) \
    do { \
        static const char *const _lines[] = {__VA_ARGS__}; \
        are_lines(_lines, sizeof(_lines) / sizeof(_lines[0])); \
    } while (0)

/* Two processes between two looks that are 2 s apart. */
static void make_job(void)
{
    add_file(4000, 0, 77);
    set_peer(0, 0, "node1", 4001, DQ_STATS_UP);
    set_peer(0, 1, "node2", 5000, DQ_STATS_LOST);
    set_value(0, "sampled_at_ns", 99 * SECOND);
    set_value(0, "am_rx", 0);
    add_file(4001, 0, 78);
    set_value(1, "sampled_at_ns", 99 * SECOND);
    look();
    later(2);
    set_value(0, "sampled_at_ns", 101 * SECOND);
    set_value(0, "am_short", 2000000);
    set_value(0, "am_rx", 84);
    set_value(0, "am_tx_bytes", 500000000);
    set_value(0, "am_rx_bytes", 250000000);
    set_value(0, "rma_bytes", 1000000000);
    set_value(0, "qp_failures", 1);
    set_value(0, "recoveries", 1);
    set_value(0, "conns_open", 2);
    set_value(0, "refused_no_credit", 200);
    set_value(0, "refused_sq_full", 0);
    set_value(0, "refused_not_up", 1);
    set_value(0, "windows_widened", 5);
    set_value(0, "rx_posted", 512);
    set_value(0, "rx_promised", 256);
    set_value(1, "conns_open", 1);
    peer_of(0, 0)->posted = 3000;
    look();
}

START_TEST(test_lines_80)
{
    make_job();
    make_lines(&usual, 80);
    ARE_LINES(
"daqiri top 12:34:56 on node1: 2 processes, 2 interfaces, 3 connections",
"every 2 s, by pid (h: help, q: quit); 1 up, 1 lost",
"interface device        peers   sent/s received/s   Gb/s  waits/s lost recovered",
"  host                pid state      in use/depth credits/window requests/s lost",
"4000.0    softverbs0:1      2  1000000         42  7.000      100    1         1",
"    had to wait: no credit 200, not up 1",
"    windows: widened 5, buffers promised 256 of 512",
"  node1              4001 up                 3/64        100/128       1000    1",
"  node2              5000 lost               3/64        100/128          0    1",
"4001.0    softverbs0:1      1        0          0  0.000        0    0         0");
    ck_assert_uint_eq(lines.head, 4);
    ck_assert_int_eq(lines.list[2].style, TOP_HEADER);
    ck_assert_int_eq(lines.list[3].style, TOP_HEADER);
    ck_assert_int_eq(lines.list[7].style, TOP_PLAIN);
    ck_assert_int_eq(lines.list[8].style, TOP_BOLD);
}
END_TEST

START_TEST(test_lines_budget)
{
    make_job();
    set_value(0, "idle_closes", 6);
    set_value(0, "idle_reopens", 4);
    look();
    make_lines(&usual, 80);
    ck_assert_str_eq(lines.list[7].text, "    queue pairs: idle, closed 6, back 4");
}
END_TEST

START_TEST(test_lines_132)
{
    make_job();
    make_lines(&usual, 132);
    ck_assert_str_eq(lines.list[2].text,
        "interface device                   peers   sent/s received/s   Gb/s sent Gb/s "
        "received Gb/s RMA Gb/s  waits/s lost recovered  open s");
    ck_assert_str_eq(lines.list[4].text,
        "4000.0    softverbs0:1                 2  1000000         42  7.000     2.000 "
        "        1.000    4.000      100    1         1      44");
    ck_assert_str_eq(lines.list[3].text,
        "  host                  pid state      in use/depth credits/window owed/promise"
        "d requests/s lost stalls  oldest us      QPN  its QPN");
    ck_assert_str_eq(lines.list[7].text,
        "  node1                4001 up                 3/64        100/128          4/3"
        "2       1000    1      2          5       17       18");
}
END_TEST

/* At each width no line is longer, and what is always there is there as a whole. */
START_TEST(test_lines_widths)
{
    static const char *const always[] = {
        "interface", "device", "peers", "sent/s", "received/s", "Gb/s", "host", "pid",
        "state", "in use/depth", "credits/window"
    };
    unsigned width;
    size_t i;

    make_job();
    ck_assert_uint_le(top_width_min(), 80);
    for (width = 1; width <= WIDEST + 10; ++width) {
        make_lines(&usual, width);
        for (i = 0; i < lines.count; ++i) {
            ck_assert_uint_le(strlen(lines.list[i].text), width);
            ck_assert_uint_le(strlen(lines.list[i].text), WIDEST);
        }
        for (i = 0; (width >= top_width_min()) &&
                    (i < sizeof(always) / sizeof(always[0])); ++i) {
            ck_assert_msg((strstr(lines.list[2].text, always[i]) != NULL) ||
                          (strstr(lines.list[3].text, always[i]) != NULL),
                          "%s is missing at %u", always[i], width);
        }
    }
    make_lines(&usual, top_width_min() - 1);
    ck_assert((strstr(lines.list[2].text, "Gb/s") == NULL) ||
              (strstr(lines.list[3].text, "credits/window") == NULL));
}
END_TEST

/* Without a width: all columns. */
START_TEST(test_lines_batch)
{
    top_view_t view = usual;

    view.is_batch = 1;
    view.order    = TOP_BY_WAITS;
    view.interval = 0.25;
    make_job();
    make_lines(&view, 0);
    ck_assert_str_eq(lines.list[1].text, "every 0.25 s, by waits; 1 up, 1 lost");
    ck_assert_ptr_nonnull(strstr(lines.list[2].text, "open s"));
    ck_assert_ptr_nonnull(strstr(lines.list[3].text, "its QPN"));
}
END_TEST

START_TEST(test_lines_wrap)
{
    make_job();
    set_value(0, "refused_cq_full", 1000000);
    set_value(0, "refused_no_buffer", 1000000);
    look();
    set_value(0, "refused_sq_full", 1000000);
    later(2);
    look();
    make_lines(&usual, 60);
    ck_assert_str_eq(lines.list[5].text, "    had to wait: no credit 200, sq full "
                     "1000000 (500000/s),");
    ck_assert_str_eq(lines.list[6].text,
                     "      not up 1, cq full 1000000, no buffer 1000000");
}
END_TEST

START_TEST(test_lines_nothing)
{
    make_lines(&usual, 80);
    ARE_LINES(
        "daqiri top 12:34:56 on node1: 0 processes, 0 interfaces, 0 connections",
        "every 2 s, by pid (h: help, q: quit)",
        "",
        "no process of user 0 runs daqiri with counters",
        "Waiting for one.");
}
END_TEST

START_TEST(test_lines_brief)
{
    top_view_t view = usual;

    view.is_brief = 1;
    make_job();
    make_lines(&view, 80);
    ck_assert_uint_eq(lines.head, 3);
    ck_assert_uint_eq(lines.count, 5);
}
END_TEST

/* The help fits 80 columns and the lines of the smallest terminal that people use. */
START_TEST(test_lines_help)
{
    top_view_t view = usual;
    size_t i;

    view.is_help = 1;
    make_lines(&view, 0);
    ck_assert_uint_le(lines.count, 24);
    ck_assert_uint_eq(lines.head, 2);
    for (i = 0; i < lines.count; ++i) {
        ck_assert_uint_le(strlen(lines.list[i].text), 80);
    }
}
END_TEST

/* The process does not look at its gauges any more, or is no more. */
START_TEST(test_lines_health)
{
    char path[] = "/tmp/t_top_table.XXXXXX";
    int fd      = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    add_file(4000, 0, 77);
    set_value(0, "sampled_at_ns", 97 * SECOND);
    look();
    make_lines(&usual, 80);
    ck_assert_uint_eq(lines.count, 5);
    set_value(0, "sampled_at_ns", 88 * SECOND);
    look();
    make_lines(&usual, 80);
    ck_assert_uint_eq(lines.count, 6);
    ck_assert_str_eq(lines.list[5].text, "    no progress call for 12 s: gauges and "
                     "connections are as old");
    files_list[0].fd = fd;
    look();
    make_lines(&usual, 80);
    ck_assert_uint_eq(lines.count, 6);
    ck_assert_str_eq(lines.list[5].text, "    the process was killed");
    ck_assert_int_eq(lines.list[4].style, TOP_BOLD);
    unlink(path);
    close(fd);
}
END_TEST

/* There are more connections than places for them. */
START_TEST(test_lines_more)
{
    add_file(4000, 0, 77);
    set_peer(0, 0, "node1", 1, DQ_STATS_UP);
    set_value(0, "conns_open", 65);
    look();
    make_lines(&usual, 80);
    ck_assert_str_eq(lines.list[lines.count - 1].text, "  and 64 more");
}
END_TEST

/* Texts of a file are not believed, and what is too long is seen to be. */
START_TEST(test_lines_foreign)
{
    dq_stats_peer_t *peer;

    add_file(UINT32_MAX, UINT32_MAX, 77);
    memcpy(header_of(0)->device, "\033]0;own\007\302\233", 10);
    peer = set_peer(0, 0, "", UINT32_MAX, DQ_STATS_UP);
    memset(peer->host, 'x', sizeof(peer->host) - 1);
    peer->host[0] = '\033';
    set_value(0, "refused_\033[2J", 1);
    look();
    make_lines(&usual, 80);
    ck_assert_str_eq(lines.list[4].text, "42949672+ ?]0;own???:1      0        -      "
                     "    -      -        -    0         0");
    ck_assert_str_eq(lines.list[5].text, "    had to wait: ?[2J 1");
    ck_assert_uint_eq(lines.count, 7);
    ck_assert_msg(strncmp(lines.list[6].text, "  ?xxxxxxxxxxxxx+ 429496+ up", 28) == 0,
                  "%s", lines.list[6].text);
}
END_TEST

/* Whatever numbers and bytes: lines as long as they may be, of printable characters. */
START_TEST(test_lines_random)
{
    t_rng_t rng;
    size_t i, round;
    unsigned width;
    const char *c;

    t_rng_init(&rng, 0);
    make_job();
    for (round = 0; round < 2000; ++round) {
        t_rng_fill(&rng, peer_of(0, 0), sizeof(dq_stats_peer_t));
        peer_of(0, 0)->sequence = 0;
        peer_of(0, 0)->state    = (uint32_t)t_rng_below(&rng, DQ_STATS_STATE_LAST);
        set_value(0, "am_short", t_rng_next(&rng));
        set_value(0, "rma_bytes", t_rng_next(&rng));
        set_value(0, "conns_open", t_rng_next(&rng));
        set_value(0, "sampled_at_ns", t_rng_next(&rng));
        set_value(0, "refused_no_credit", t_rng_next(&rng));
        later(1);
        look();
        top_table_sort(&table, (top_order_t)t_rng_below(&rng, TOP_ORDERS));
        width = (unsigned)t_rng_below(&rng, 300);
        make_lines(&usual, width);
        for (i = 0; i < lines.count; ++i) {
            c = lines.list[i].text;
            ck_assert_uint_le(strlen(c), (width == 0) ? WIDEST : width);
            for (; *c != '\0'; ++c) {
                ck_assert((*c >= ' ') && (*c <= '~'));
            }
        }
    }
}
END_TEST

/* ---- which of them are seen, and keys ---- */

static void is_placed(size_t offset, size_t height, size_t expected, const char *text)
{
    top_view_t view = usual;

    view.offset = offset;
    make_lines(&view, 80);
    top_lines_place(&lines, &view, height, 80);
    ck_assert_uint_eq(view.offset, expected);
    ck_assert_uint_le(strlen(lines.list[1].text), 80);
    ck_assert_msg((strstr(lines.list[1].text, "lines") == NULL) == (*text == '\0'),
                  "%s", lines.list[1].text);
    ck_assert_ptr_nonnull(strstr(lines.list[1].text, text));
}

/* There are 6 lines below a head of 4. */
START_TEST(test_place)
{
    make_job();
    is_placed(0, 10, 0, "");
    is_placed(5, 10, 0, "");
    is_placed(0, 9, 0, "lines 1 to 5 of 6");
    is_placed(1, 9, 1, "lines 2 to 6 of 6");
    is_placed(2, 9, 1, "lines 2 to 6 of 6");
    is_placed(SIZE_MAX, 8, 2, "lines 3 to 6 of 6");
    is_placed(0, 0, 0, "lines 1 to 1 of 6");
    is_placed(SIZE_MAX, 3, 5, "lines 6 to 6 of 6");
}
END_TEST

START_TEST(test_place_narrow)
{
    top_view_t view = usual;
    char text[TOP_LINE_MAX];

    make_job();
    make_lines(&view, 60);
    strcpy(text, lines.list[1].text);
    top_lines_place(&lines, &view, 9, 60); /* there is no room for it */
    ck_assert_str_eq(lines.list[1].text, text);
}
END_TEST

START_TEST(test_press)
{
    top_view_t view = usual;

    top_view_press(&view, TOP_KEY_UP, 10);
    ck_assert_uint_eq(view.offset, 0);
    top_view_press(&view, TOP_KEY_DOWN, 10);
    ck_assert_uint_eq(view.offset, 1);
    top_view_press(&view, TOP_KEY_PAGE_DOWN, 10);
    ck_assert_uint_eq(view.offset, 10);
    top_view_press(&view, TOP_KEY_UP, 10);
    top_view_press(&view, TOP_KEY_PAGE_UP, 10);
    ck_assert_uint_eq(view.offset, 0);
    top_view_press(&view, TOP_KEY_PAGE_UP, 10);
    ck_assert_uint_eq(view.offset, 0);
    top_view_press(&view, TOP_KEY_PAGE_DOWN, 1); /* moves on all the same */
    ck_assert_uint_eq(view.offset, 1);
    top_view_press(&view, TOP_KEY_END, 10);
    top_view_press(&view, TOP_KEY_DOWN, 10); /* without coming round to 0 */
    top_view_press(&view, TOP_KEY_PAGE_DOWN, 10);
    ck_assert_uint_gt(view.offset, 1000000);
    top_view_press(&view, TOP_KEY_HOME, 10);
    ck_assert_uint_eq(view.offset, 0);

    top_view_press(&view, TOP_KEY_SORT, 10);
    ck_assert_int_eq(view.order, TOP_BY_RATE);
    top_view_press(&view, TOP_KEY_SORT, 10);
    top_view_press(&view, TOP_KEY_SORT, 10);
    ck_assert_int_eq(view.order, TOP_BY_LOST);
    top_view_press(&view, TOP_KEY_SORT, 10);
    ck_assert_int_eq(view.order, TOP_BY_PID);
    top_view_press(&view, TOP_KEY_BRIEF, 10);
    ck_assert_int_eq(view.is_brief, 1);
    top_view_press(&view, TOP_KEY_HELP, 10);
    ck_assert_int_eq(view.is_help, 1);
    top_view_press(&view, TOP_KEY_OTHER, 10);
    top_view_press(&view, TOP_KEY_NONE, 10);
    top_view_press(&view, TOP_KEY_HELP, 10);
    ck_assert_int_eq(view.is_help, 0);
    ck_assert_int_eq(view.is_brief, 1);
}
END_TEST

static void teardown(void)
{
    top_lines_free(&lines);
    top_table_free(&table);
    top_table_free(&before);
    drop_files();
}

/* Tests that begin with nothing, and leave nothing. */
static TCase *add_case(Suite *suite, const char *name)
{
    TCase *tests = tcase_create(name);

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, T_TIMEOUT);
    suite_add_tcase(suite, tests);
    return tests;
}

static Suite *suite_top(void)
{
    Suite *suite = suite_create("top");
    TCase *rows  = add_case(suite, "table");
    TCase *text  = add_case(suite, "lines");
    TCase *keys  = add_case(suite, "keys");

    tcase_add_test(rows, test_values);
    tcase_add_test(rows, test_rates);
    tcase_add_test(rows, test_another);
    tcase_add_test(rows, test_requests);
    tcase_add_test(rows, test_states);
    tcase_add_test(rows, test_many_reasons);
    tcase_add_test(rows, test_killed);
    tcase_add_test(rows, test_order);
    tcase_add_test(rows, test_conn_order);

    tcase_add_test(text, test_lines_80);
    tcase_add_test(text, test_lines_budget);
    tcase_add_test(text, test_lines_132);
    tcase_add_test(text, test_lines_widths);
    tcase_add_test(text, test_lines_batch);
    tcase_add_test(text, test_lines_wrap);
    tcase_add_test(text, test_lines_nothing);
    tcase_add_test(text, test_lines_brief);
    tcase_add_test(text, test_lines_help);
    tcase_add_test(text, test_lines_health);
    tcase_add_test(text, test_lines_more);
    tcase_add_test(text, test_lines_foreign);
    tcase_add_test(text, test_lines_random);

    tcase_add_test(keys, test_place);
    tcase_add_test(keys, test_place_narrow);
    tcase_add_test(keys, test_press);
    return suite;
}

T_MAIN(suite_top)
