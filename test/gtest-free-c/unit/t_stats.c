/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file of counters: what was laid out is found again; whatever bytes are
 * in a file, the reader keeps inside of it; a peer is never seen half written.
 */
#include "t_unit.h"
#include "dq/dq_stats.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 20, PEERS = 3, ROUNDS = 20000 };


/* A file in memory that is no longer than it says, so that a sanitizer sees
 * who reads beyond. */
static dq_stats_header_t *make(uint32_t count, uint32_t peers)
{
    dq_stats_header_t layout, *header;
    dq_stats_entry_t *entries;
    uint64_t *values;
    uint32_t i;

    dq_stats_layout(&layout, count, peers);
    header = calloc(1, layout.length);
    ck_assert_ptr_nonnull(header);
    *header = layout;
    entries = (dq_stats_entry_t*)((char*)header + header->entries_at);
    values  = (uint64_t*)((char*)header + header->values_at);
    for (i = 0; i < count; i++) {
        snprintf(entries[i].name, sizeof(entries[i].name), "value_%u", i);
        entries[i].kind = i % DQ_STATS_KIND_LAST;
        values[i]       = UINT64_C(1) << (i % 64);
    }
    return header;
}


static dq_stats_peer_t *places(dq_stats_header_t *header)
{
    return (dq_stats_peer_t*)((char*)header + header->peers_at);
}


/* ---- Names of files ---- */

START_TEST(test_path)
{
    char path[DQ_STATS_FILE_MAX];
    uint32_t pid, serial;

    dq_stats_path(path, sizeof(path), UINT32_MAX, UINT32_MAX, UINT32_MAX);
    ck_assert_uint_lt(strlen(path), sizeof(path) - 1);
    ck_assert_str_eq(dq_stats_path(path, sizeof(path), 1000, 42, 7),
                     "/dev/shm/daqiri-stats-1000.42.7");
    ck_assert(dq_stats_is_name(path + sizeof(DQ_STATS_DIR), 1000, &pid,
                               &serial));
    ck_assert_uint_eq(pid, 42);
    ck_assert_uint_eq(serial, 7);
}
END_TEST


START_TEST(test_is_name)
{
    static const struct {
        const char *name;
        int        is;
    } cases[] = {
        /*  1 */ {"daqiri-stats-0.1.0", 1},
        /*  2 */ {"daqiri-stats-0.4294967295.4294967295", 1},
        /*  3 */ {"daqiri-stats-1.1.0", 0},
        /*  4 */ {"daqiri-stats-0.1", 0},
        /*  5 */ {"daqiri-stats-0.1.", 0},
        /*  6 */ {"daqiri-stats-0.1.0.", 0},
        /*  7 */ {"daqiri-stats-0.1.0x", 0},
        /*  8 */ {"daqiri-stats-0..0", 0},
        /*  9 */ {"daqiri-stats-.1.0", 0},
        /* 10 */ {"daqiri-stats-00.1.0", 0},
        /* 11 */ {"daqiri-stats-0.01.0", 0},
        /* 12 */ {"daqiri-stats-0.1.00", 0},
        /* 13 */ {"daqiri-stats-0.4294967296.0", 0},
        /* 14 */ {"daqiri-stats-0.-1.0", 0},
        /* 15 */ {"daqiri-stats-0. 1.0", 0},
        /* 16 */ {"daqiri-stat-0.1.0", 0},
        /* 17 */ {"xdaqiri-stats-0.1.0", 0},
        /* 18 */ {"softverbs-0.1", 0},
        /* 19 */ {"", 0},
        /* 20 */ {"daqiri-stats-0.1.4294967296", 0},
        /* 21 */ {"daqiri-stats-0.18446744073709551617.0", 0},
    };
    uint32_t pid, serial;

    ck_assert_int_eq(dq_stats_is_name(cases[_i].name, 0, &pid, &serial),
                     cases[_i].is);
}
END_TEST


/* ---- Finding ---- */

START_TEST(test_found)
{
    dq_stats_header_t *header = make(VALUES, PEERS);
    dq_stats_peer_t peer;
    char name[DQ_STATS_NAME_MAX];
    uint32_t i;

    ck_assert_ptr_null(dq_stats_find(header, header->length)); /* not yet */
    dq_stats_publish(header);
    ck_assert_ptr_eq(dq_stats_find(header, header->length), header);
    ck_assert_ptr_null(dq_stats_find(header, header->length - 1));
    for (i = 0; i < VALUES; i++) {
        snprintf(name, sizeof(name), "value_%u", i);
        ck_assert_str_eq(dq_stats_entry(header, i)->name, name);
        ck_assert_uint_eq(dq_stats_value(header, i), UINT64_C(1) << i);
    }
    for (i = 0; i < PEERS; i++) {
        ck_assert_int_eq(dq_stats_peer(header, i, &peer), 0);
    }
    free(header);
}
END_TEST


/* The parts touch nobody: the last byte of each is before the next. */
START_TEST(test_layout)
{
    dq_stats_header_t header;
    t_rng_t rng;
    unsigned i;

    t_rng_init(&rng, 0x5701);
    for (i = 0; i < 1000; i++) {
        dq_stats_layout(&header, t_rng_below(&rng, DQ_STATS_VALUES_MAX + 1),
                        t_rng_below(&rng, 300));
        ck_assert_uint_ge(header.entries_at, sizeof(header));
        ck_assert_uint_ge(header.values_at, header.entries_at +
                          header.count * sizeof(dq_stats_entry_t));
        ck_assert_uint_ge(header.peers_at, header.values_at +
                          header.count * sizeof(uint64_t));
        ck_assert_uint_eq(header.length, header.peers_at +
                          header.peers * sizeof(dq_stats_peer_t));
        ck_assert_uint_eq(header.values_at % 64, 0);
        ck_assert_uint_eq(header.peers_at % 64, 0);
    }
}
END_TEST


/* A field that is not what it must be is a file that is not read. */
START_TEST(test_refused)
{
    const struct {
        size_t   at;
        uint32_t value;
    } cases[] = {
        /*  1 */ {offsetof(dq_stats_header_t, magic), 0},
        /*  2 */ {offsetof(dq_stats_header_t, version), DQ_STATS_VERSION + 1},
        /*  3 */ {offsetof(dq_stats_header_t, version), 0},
        /*  4 */ {offsetof(dq_stats_header_t, count), DQ_STATS_VALUES_MAX + 1},
        /*  5 */ {offsetof(dq_stats_header_t, count), UINT32_MAX},
        /*  6 */ {offsetof(dq_stats_header_t, peers), DQ_STATS_PEERS_MAX + 1},
        /*  7 */ {offsetof(dq_stats_header_t, peers), PEERS + 1},
        /*  8 */ {offsetof(dq_stats_header_t, entries_at), 0},
        /*  9 */ {offsetof(dq_stats_header_t, entries_at), UINT32_MAX - 7},
        /* 10 */ {offsetof(dq_stats_header_t, values_at), UINT32_MAX - 7},
        /* 11 */ {offsetof(dq_stats_header_t, values_at), 257},
        /* 12 */ {offsetof(dq_stats_header_t, peers_at), UINT32_MAX - 7},
        /* 13 */ {offsetof(dq_stats_header_t, peers_at), 8},
        /* 14 */ {offsetof(dq_stats_header_t, entry_size), 0},
        /* 15 */ {offsetof(dq_stats_header_t, peer_size), 4096},
        /* 16 */ {offsetof(dq_stats_header_t, length), UINT32_MAX},
        /* 17 */ {offsetof(dq_stats_header_t, length), 100},
    };
    dq_stats_header_t *header = make(VALUES, PEERS);
    uint32_t length           = header->length;
    unsigned i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        free(header);
        header = make(VALUES, PEERS);
        dq_stats_publish(header);
        memcpy((char*)header + cases[i].at, &cases[i].value,
               sizeof(cases[i].value));
        ck_assert_msg(dq_stats_find(header, length) == NULL, "case %u", i + 1);
    }
    free(header);
}
END_TEST


/* Texts that do not end, kinds that do not exist. */
START_TEST(test_bad_text)
{
    dq_stats_header_t *header = make(VALUES, PEERS);
    dq_stats_entry_t *entry   = (dq_stats_entry_t*)dq_stats_entry(header, 7);

    dq_stats_publish(header);
    memset(header->host, 'x', sizeof(header->host));
    ck_assert_ptr_null(dq_stats_find(header, header->length));
    header->host[sizeof(header->host) - 1] = '\0';
    ck_assert_ptr_nonnull(dq_stats_find(header, header->length));
    memset(header->device, 'x', sizeof(header->device));
    ck_assert_ptr_null(dq_stats_find(header, header->length));
    header->device[0] = '\0';
    memset(entry->name, 'x', sizeof(entry->name));
    ck_assert_ptr_null(dq_stats_find(header, header->length));
    entry->name[0] = '\0';
    ck_assert_ptr_nonnull(dq_stats_find(header, header->length));
    entry->kind = DQ_STATS_KIND_LAST;
    ck_assert_ptr_null(dq_stats_find(header, header->length));
    free(header);
}
END_TEST


/* Reads all that there is; a sanitizer watches. */
static void read_all(const dq_stats_header_t *header)
{
    dq_stats_peer_t peer;
    uint64_t sum = 0;
    uint32_t i;

    for (i = 0; i < header->count; i++) {
        ck_assert_uint_lt(strlen(dq_stats_entry(header, i)->name),
                          DQ_STATS_NAME_MAX);
        sum += dq_stats_value(header, i);
    }
    for (i = 0; i < header->peers; i++) {
        if (dq_stats_peer(header, i, &peer)) {
            ck_assert_uint_lt(strlen(peer.host), DQ_STATS_HOST_MAX);
            ck_assert_str_ne(dq_stats_state_name(peer.state), "?");
        }
    }
    (void)sum;
}


START_TEST(test_any_bytes)
{
    unsigned round, i, found = 0;
    dq_stats_header_t *header;
    size_t length;
    t_rng_t rng;

    t_rng_init(&rng, 0x5702);
    for (round = 0; round < ROUNDS; round++) {
        header = make(t_rng_below(&rng, VALUES), t_rng_below(&rng, PEERS));
        length = header->length;
        dq_stats_publish(header);
        for (i = t_rng_below(&rng, 4); i > 0; i--) {
            ((uint8_t*)header)[t_rng_below(&rng, t_rng_once_in(&rng, 2)
                                                         ? sizeof(*header)
                                                         : length)] =
                    t_rng_next(&rng);
        }
        if (t_rng_once_in(&rng, 4)) {
            length = t_rng_below(&rng, length + 1);
            header = realloc(header, length + (length == 0));
            ck_assert_ptr_nonnull(header);
        }
        if (dq_stats_find(header, length) != NULL) {
            found++;
            read_all(header);
        }
        free(header);
    }
    ck_assert_uint_gt(found, ROUNDS / 10);
    ck_assert_uint_lt(found, ROUNDS);
}
END_TEST


/* ---- Peers ---- */

START_TEST(test_peer)
{
    dq_stats_header_t *header = make(VALUES, PEERS);
    dq_stats_peer_t peer = {.state = DQ_STATS_UP, .host = "n1", .pid = 5,
                            .posted = 1u << 31, .oldest_ns = 77};
    dq_stats_peer_t got;

    dq_stats_publish(header);
    dq_stats_write_peer(&places(header)[1], &peer);
    ck_assert_int_eq(dq_stats_peer(header, 0, &got), 0);
    ck_assert_int_eq(dq_stats_peer(header, 2, &got), 0);
    ck_assert_int_eq(dq_stats_peer(header, 1, &got), 1);
    ck_assert_str_eq(got.host, "n1");
    ck_assert_uint_eq(got.pid, 5);
    ck_assert_uint_eq(got.posted, 1u << 31);
    ck_assert_uint_eq(got.oldest_ns, 77);
    ck_assert_uint_eq(got.sequence, 2);

    places(header)[1].sequence++; /* its writer was killed in the middle */
    ck_assert_int_eq(dq_stats_peer(header, 1, &got), 0);
    places(header)[1].sequence++;
    places(header)[1].state = DQ_STATS_STATE_LAST;
    ck_assert_int_eq(dq_stats_peer(header, 1, &got), 0);
    peer.state = DQ_STATS_NONE;
    dq_stats_write_peer(&places(header)[1], &peer);
    ck_assert_int_eq(dq_stats_peer(header, 1, &got), 0);
    free(header);
}
END_TEST


/* A writer that never rests: all fields of a copy are of one writing. */
typedef struct {
    dq_stats_header_t *header;
    uint32_t          is_over;
} writer_t;

static void *write_peers(void *arg)
{
    writer_t *writer = arg;
    dq_stats_peer_t peer = {.state = DQ_STATS_UP};
    uint64_t i;

    for (i = 0; !__atomic_load_n(&writer->is_over, __ATOMIC_ACQUIRE); i++) {
        peer.pid     = i;
        peer.posted  = i;
        peer.retired = i;
        peer.stalls  = i;
        dq_stats_write_peer(places(writer->header), &peer);
    }
    return NULL;
}


START_TEST(test_peer_is_whole)
{
    writer_t writer = {.header = make(VALUES, PEERS)};
    dq_stats_peer_t peer;
    unsigned got = 0;
    pthread_t thread;

    dq_stats_publish(writer.header);
    ck_assert_int_eq(pthread_create(&thread, NULL, write_peers, &writer), 0);
    while (got < ROUNDS) {
        if (dq_stats_peer(writer.header, 0, &peer)) {
            got++;
            ck_assert_uint_eq(peer.posted, peer.retired);
            ck_assert_uint_eq(peer.posted, peer.stalls);
            ck_assert_uint_eq((uint32_t)peer.posted, peer.pid);
        }
    }
    __atomic_store_n(&writer.is_over, 1, __ATOMIC_RELEASE);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    free(writer.header);
}
END_TEST


START_TEST(test_state_names)
{
    unsigned i, j;

    for (i = 0; i < DQ_STATS_STATE_LAST; i++) {
        ck_assert_str_ne(dq_stats_state_name(i), "?");
        for (j = 0; j < i; j++) {
            ck_assert_str_ne(dq_stats_state_name(i), dq_stats_state_name(j));
        }
    }
    ck_assert_str_eq(dq_stats_state_name(DQ_STATS_STATE_LAST), "?");
}
END_TEST


static Suite *suite_stats(void)
{
    Suite *suite = t_suite("stats", "names", test_path, "find", test_found,
                           "find", test_layout, "find", test_refused, "find",
                           test_bad_text, "find", test_any_bytes, "peers",
                           test_peer, "peers", test_peer_is_whole, "peers",
                           test_state_names, NULL);
    TCase *names = tcase_create("is_name");

    tcase_add_loop_test(names, test_is_name, 0, 21);
    suite_add_tcase(suite, names);
    return suite;
}

T_MAIN(suite_stats)
