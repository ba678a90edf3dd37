/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which address of its netdev an interface takes, and what becomes of it when
 * addresses come and go. For the two ends of a wire, rxe0 on va and rxe1 on
 * vb, in a machine of our own: the tests take addresses away, and give them
 * back before and after.
 */
#include "t_uct.h"
#include "dq/dq_gid.h"
#include "dq/dq_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Addresses that are there at first, and one more pair. */
#define IPV4_A "10.2.0.1"
#define IPV4_B "10.2.0.2"
#define IPV6_A "fd02::1"
#define IPV6_B "fd02::2"
#define MORE_A "192.168.9.1"
#define MORE_B "192.168.9.2"

/* Failures that come soon. */
#define SOON "TIMEOUT=100ms RETRY_COUNT=3 CONN_TIMEOUT=10s RECOVERY_TIMEOUT=2s"

/* Places in a GID table that these tests come to use. */
enum { GIDS = 16 };

typedef struct {
    t_end_t    *a, *b;
    t_link_t   *link;
    t_stream_t stream;
} pair_t;


/* ---- Addresses ---- */

static void shell(const char *command)
{
    ck_assert_msg(system(command) == 0, "failed: %s", command);
}


/* Reads one place of a GID table; 0 if it is empty. */
static int gid_read(const char *device, unsigned index, char *text)
{
    unsigned group[DQ_GID_BYTES / 2], i;
    uint8_t gid[DQ_GID_BYTES];
    char path[96];
    FILE *file;
    int got;

    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gids/%u",
             device, index);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    got = fscanf(file, "%x:%x:%x:%x:%x:%x:%x:%x", &group[0], &group[1],
                 &group[2], &group[3], &group[4], &group[5], &group[6],
                 &group[7]);
    fclose(file);
    if (got != DQ_GID_BYTES / 2) {
        return 0;
    }
    for (i = 0; i < DQ_GID_BYTES; i++) {
        gid[i] = group[i / 2] >> ((i % 2) ? 0 : 8);
    }
    dq_gid_text(gid, text, DQ_GID_TEXT_MAX);
    return 1;
}


/* Where the address is in the table, or -1. */
static int gid_index(const char *device, const char *address)
{
    char text[DQ_GID_TEXT_MAX];
    int i;

    for (i = 0; i < GIDS; i++) {
        if (gid_read(device, i, text) && (strcmp(text, address) == 0)) {
            return i;
        }
    }
    return -1;
}


/* The kernel brings the table in line a moment after a command is over. */
static void wait_gid(const char *device, const char *address, int is_there)
{
    while ((gid_index(device, address) >= 0) != is_there) {
        t_progress_or_yield();
    }
}


static void reset_addresses(void)
{
    shell("ip -4 addr flush dev va; ip addr add " IPV4_A "/24 dev va;"
          "ip -4 addr flush dev vb; ip addr add " IPV4_B "/24 dev vb;"
          "for d in va vb; do tc qdisc del dev $d clsact 2>/dev/null; done;"
          "ip -6 addr replace " IPV6_A "/64 dev va nodad;"
          "ip -6 addr replace " IPV6_B "/64 dev vb nodad;"
          "ip neigh replace " IPV4_B " dev va nud permanent "
          "lladdr $(cat /sys/class/net/vb/address);"
          "ip neigh replace " IPV4_A " dev vb nud permanent "
          "lladdr $(cat /sys/class/net/va/address)");
    wait_gid("rxe0", IPV4_A, 1);
    wait_gid("rxe1", IPV4_B, 1);
    wait_gid("rxe0", IPV6_A, 1);
    wait_gid("rxe1", IPV6_B, 1);
}


static void more_addresses(void)
{
    shell("ip addr add " MORE_A "/24 dev va; ip addr add " MORE_B "/24 dev vb");
    wait_gid("rxe0", MORE_A, 1);
    wait_gid("rxe1", MORE_B, 1);
}


/* The address that an end gives its peers. */
static const char *address_of(const t_end_t *end)
{
    static char text[DQ_GID_TEXT_MAX];

    return dq_gid_text(((const dq_port_addr_t*)end->address.dev)->gid, text,
                       sizeof(text));
}


static int is_link_local(const t_end_t *end)
{
    return strncmp(address_of(end), "fe80::", 6) == 0;
}


/* ---- Ends that talk ---- */

/* Ends take rxe0 and rxe1 in turn, t_uct.h says; each has its own options. */
static void pair_ends(pair_t *pair, const char *options_a,
                      const char *options_b)
{
    pair->a = t_end_open(options_a);
    pair->b = t_end_open(options_b);
    t_stream_open(&pair->stream, pair->b, 1);
}


static void pair_meet(pair_t *pair)
{
    pair->link = t_link_open(pair->a, &pair->b->address, 1);
}


static void pair_open(pair_t *pair)
{
    pair_ends(pair, "", "");
    pair_meet(pair);
}


static void pair_talk(pair_t *pair, unsigned count)
{
    while (count-- > 0) {
        t_send(pair->link, T_BCOPY, 100);
    }
    T_WAIT(pair->stream.got == pair->link->sent);
    t_iface_flush(pair->a);
}


/* A pair at certain addresses, which has not met yet. */
static void pair_ends_at(pair_t *pair, const char *options, const char *a,
                         const char *b)
{
    char options_a[128], options_b[128];

    snprintf(options_a, sizeof(options_a), "%s GID_INDEX=%d", options,
             gid_index("rxe0", a));
    snprintf(options_b, sizeof(options_b), "%s GID_INDEX=%d", options,
             gid_index("rxe1", b));
    pair_ends(pair, options_a, options_b);
    ck_assert_str_eq(address_of(pair->a), a);
    ck_assert_str_eq(address_of(pair->b), b);
}


static void pair_at(pair_t *pair, const char *a, const char *b)
{
    pair_ends_at(pair, SOON, a, b);
    pair_meet(pair);
}


/* Sends until it fails; the endpoint says so, once, and can go. */
static void must_fail(t_end_t *end, t_link_t *link)
{
    ucs_status_t status;

    do {
        status = t_try_send(link, T_ZCOPY, 100);
        t_progress_or_yield();
    } while ((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE));
    T_WAIT((end->errors > 0) && (link->zcopies == 0));
    t_link_close(link);
    ck_assert_uint_eq(end->errors, 1);
}


/* ---- Choice ---- */

/* IPv4 before IPv6 before link-local, whatever comes first in the table. */
START_TEST(test_choice)
{
    pair_t pair;

    pair_open(&pair);
    ck_assert_str_eq(address_of(pair.a), IPV4_A);
    pair_talk(&pair, 100);
    t_end_close_all();

    shell("ip addr del " IPV4_A "/24 dev va; ip addr del " IPV4_B "/24 dev vb");
    wait_gid("rxe0", IPV4_A, 0);
    wait_gid("rxe1", IPV4_B, 0);
    pair_open(&pair);
    ck_assert_str_eq(address_of(pair.a), IPV6_A);
    pair_talk(&pair, 100);
    t_end_close_all();

    shell("ip addr del " IPV6_A "/64 dev va; ip addr del fd02::2/64 dev vb");
    wait_gid("rxe0", IPV6_A, 0);
    wait_gid("rxe1", IPV6_B, 0);
    pair_open(&pair);
    ck_assert(is_link_local(pair.a));
    pair_talk(&pair, 100);
    t_end_close_all();

    reset_addresses();
    pair_open(&pair);
    ck_assert_str_eq(address_of(pair.a), IPV4_A);
    pair_talk(&pair, 100);
}
END_TEST


/* Of several, the one that was there first; any of them that is asked for. */
START_TEST(test_several)
{
    pair_t pair, other;

    more_addresses();
    pair_open(&pair);
    ck_assert_str_eq(address_of(pair.a), IPV4_A);
    pair_talk(&pair, 100);
    pair_at(&other, MORE_A, MORE_B);
    pair_talk(&other, 100);
    pair_at(&other, IPV6_A, IPV6_B);
    pair_talk(&other, 100);
}
END_TEST


START_TEST(test_index_refused)
{
    static const char *const refused[] = {"GID_INDEX=60", "GID_INDEX=255"};
    t_end_t *end;

    t_expect_log("UCX_DAQIRI_GID_INDEX");
    ck_assert_int_eq(t_end_try_open(NULL, refused[_i], &end),
                     UCS_ERR_INVALID_PARAM);
    ck_assert_uint_eq(t_log_count("there is no GID at the index asked for "
                                  "(UCX_DAQIRI_"), 1);
}
END_TEST


/* An end with an IPv4 address and one with an IPv6 address do not meet, and
 * say so when they are asked. */
START_TEST(test_families)
{
    char options[32];
    t_end_t *a, *b;

    snprintf(options, sizeof(options), "GID_INDEX=%d",
             gid_index("rxe1", IPV6_B));
    a = t_end_open("");
    b = t_end_open(options);
    ck_assert(!uct_iface_is_reachable(a->iface,
                                      (uct_device_addr_t*)b->address.dev,
                                      (uct_iface_addr_t*)b->address.iface));
    ck_assert(!uct_iface_is_reachable(b->iface,
                                      (uct_device_addr_t*)a->address.dev,
                                      (uct_iface_addr_t*)a->address.iface));
}
END_TEST


/* ---- While it runs ---- */

/* Addresses of others come and go: nothing happens. */
START_TEST(test_others_come_and_go)
{
    pair_t pair;
    unsigned i;

    pair_open(&pair);
    for (i = 0; i < 5; i++) {
        pair_talk(&pair, 50);
        more_addresses();
        pair_talk(&pair, 50);
        shell("ip addr del " MORE_A "/24 dev va;"
              "ip addr del " MORE_B "/24 dev vb");
        wait_gid("rxe0", MORE_A, 0);
    }
    ck_assert_uint_eq(pair.a->errors + pair.b->errors, 0);
}
END_TEST


/* Its own address goes for good while it is connected: an error that says so,
 * once, and the next end takes what is left. */
START_TEST(test_lost_connected)
{
    pair_t pair, other;

    t_expect_log("");
    t_expect_loss();
    more_addresses();
    pair_at(&pair, MORE_A, MORE_B);
    pair_talk(&pair, 100);
    shell("ip addr del " MORE_A "/24 dev va");
    wait_gid("rxe0", MORE_A, 0);
    must_fail(pair.a, pair.link);
    ck_assert_uint_eq(t_log_count(MORE_A ", which was at GID index"), 1);

    pair_open(&other);
    ck_assert_str_eq(address_of(other.a), IPV4_A);
    pair_talk(&other, 100);
}
END_TEST


static const struct {
    const char *a, *b, *length;
} families[] = {
    {MORE_A, MORE_B, "/24"},
    {IPV6_A, IPV6_B, "/64 nodad"},
};

enum { FAMILIES = sizeof(families) / sizeof(families[0]) };


static void take_away(unsigned family)
{
    char command[64];

    snprintf(command, sizeof(command), "ip addr del %s%.3s dev va",
             families[family].a, families[family].length);
    shell(command);
    wait_gid("rxe0", families[family].a, 0);
}


static void give_back(unsigned family)
{
    char command[64];

    snprintf(command, sizeof(command), "ip addr add %s%s dev va",
             families[family].a, families[family].length);
    shell(command);
    wait_gid("rxe0", families[family].a, 1);
}


/* Its own address goes and comes back at another place of the table, for what
 * used it holds the old one: the connection goes on. */
START_TEST(test_comes_back)
{
    const char *address = families[_i].a;
    pair_t pair;
    int before;

    t_expect_loss();
    t_expect_losses_of_qps();
    t_expect_log(" and ready again");
    more_addresses();
    pair_at(&pair, address, families[_i].b);
    pair_talk(&pair, 100);
    before = gid_index("rxe0", address);
    take_away(_i);
    give_back(_i);
    ck_assert_int_ne(gid_index("rxe0", address), before);
    pair_talk(&pair, 100);
    /* what the handshake uses came with it */
    take_away(_i);
    give_back(_i);
    pair_talk(&pair, 100);
    ck_assert_uint_eq(pair.a->errors + pair.b->errors, 0);
}
END_TEST


/* What was lost without it waits for it. */
START_TEST(test_comes_back_late)
{
    pair_t pair;

    t_expect_loss();
    t_expect_losses_of_qps();
    t_expect_log(" and ready again");
    more_addresses();
    pair_ends_at(&pair, SOON " RECOVERY_TIMEOUT=30s", families[_i].a,
                 families[_i].b);
    pair_meet(&pair);
    pair_talk(&pair, 100);
    take_away(_i);
    t_send(pair.link, T_BCOPY, 100);
    T_WAIT(t_log_count("lost, connecting again") > 0);
    t_progress_turns(2000);
    ck_assert_uint_eq(t_log_count(" daqiri: back, with "), 0);
    give_back(_i);
    pair_talk(&pair, 100);
    ck_assert_uint_eq(pair.a->errors + pair.b->errors, 0);
}
END_TEST


/* And what has not been connected yet. */
START_TEST(test_comes_back_first)
{
    pair_t pair;

    t_expect_loss();
    more_addresses();
    pair_ends_at(&pair, SOON, families[_i].a, families[_i].b);
    take_away(_i);
    pair_meet(&pair);
    t_progress_turns(2000);
    give_back(_i);
    pair_talk(&pair, 100);
    ck_assert_uint_eq(pair.a->errors + pair.b->errors, 0);
}
END_TEST


/* The peer's address goes: the peer does not answer any more. */
START_TEST(test_lost_by_peer)
{
    pair_t pair;

    t_expect_log("");
    t_expect_loss();
    more_addresses();
    pair_at(&pair, MORE_A, MORE_B);
    pair_talk(&pair, 100);
    shell("ip addr del " MORE_B "/24 dev vb");
    wait_gid("rxe1", MORE_B, 0);
    must_fail(pair.a, pair.link);
    ck_assert_uint_eq(t_log_count("which was at GID index"), 0);
}
END_TEST


/* It goes before the first connection, and another takes its place. */
START_TEST(test_lost_unconnected)
{
    pair_t pair;

    t_expect_log("");
    t_expect_loss();
    more_addresses();
    pair_ends_at(&pair, SOON " CONN_TIMEOUT=1s", MORE_A, MORE_B);
    shell("ip addr del " MORE_A "/24 dev va");
    wait_gid("rxe0", MORE_A, 0);
    if (_i > 0) {
        shell("ip addr add 192.168.77.1/24 dev va");
        wait_gid("rxe0", "192.168.77.1", 1);
    }
    pair_meet(&pair);
    must_fail(pair.a, pair.link);
    ck_assert_uint_eq(t_log_count("this interface has no address any more"),
                      1);
    ck_assert_uint_eq(t_log_count(MORE_A ", which was at GID index"), 1);
}
END_TEST


/* A peer whose hardware address nobody tells, for two seconds: connecting
 * takes that much longer, and nothing arrives meanwhile. */
START_TEST(test_neighbour_late)
{
    ucs_status_t status = UCS_OK;
    time_t until;
    pair_t pair;

    more_addresses();
    shell("tc qdisc add dev vb clsact;"
          "tc filter add dev vb ingress protocol arp flower action drop");
    pair_at(&pair, MORE_A, MORE_B);
    until = time(NULL) + 2;
    while (time(NULL) <= until) {
        status = t_try_send(pair.link, T_BCOPY, 100);
        ck_assert((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE));
        t_progress_or_yield();
        ck_assert_uint_eq(pair.stream.got, 0);
    }
    /* a few were taken, to be held until then */
    ck_assert_int_eq(status, UCS_ERR_NO_RESOURCE);
    shell("tc qdisc del dev vb clsact");
    pair_talk(&pair, 100);
}
END_TEST


/* One that never tells: an error when time is up, which says why. */
START_TEST(test_neighbour_never)
{
    pair_t pair;

    t_expect_log("");
    t_expect_loss();
    more_addresses();
    shell("tc qdisc add dev vb clsact;"
          "tc filter add dev vb ingress protocol arp flower action drop");
    pair_at(&pair, MORE_A, MORE_B);
    must_fail(pair.a, pair.link);
    ck_assert_int_eq(pair.a->error, UCS_ERR_ENDPOINT_TIMEOUT);
    shell("tc qdisc del dev vb clsact");
}
END_TEST


static void setup(void)
{
    ck_assert_int_eq(setenv("T_DEVICES", "rxe0:1 rxe1:1", 1), 0);
    reset_addresses();
}


static TCase *address_case(const char *name)
{
    TCase *tcase = t_uct_case(name);

    tcase_add_checked_fixture(tcase, setup, NULL);
    return tcase;
}


static Suite *suite_address(void)
{
    Suite *suite     = suite_create("address");
    TCase *choice    = address_case("choice");
    TCase *running   = address_case("while it runs");
    TCase *back      = address_case("comes back");
    TCase *neighbour = address_case("neighbours");

    tcase_add_test(choice, test_choice);
    tcase_add_test(choice, test_several);
    tcase_add_loop_test(choice, test_index_refused, 0, 2);
    tcase_add_test(choice, test_families);
    suite_add_tcase(suite, choice);

    tcase_add_test(running, test_others_come_and_go);
    tcase_add_test(running, test_lost_connected);
    tcase_add_test(running, test_lost_by_peer);
    tcase_add_loop_test(running, test_lost_unconnected, 0, 2);
    suite_add_tcase(suite, running);

    tcase_add_loop_test(back, test_comes_back, 0, FAMILIES);
    tcase_add_loop_test(back, test_comes_back_late, 0, FAMILIES);
    tcase_add_loop_test(back, test_comes_back_first, 0, FAMILIES);
    suite_add_tcase(suite, back);

    tcase_add_test(neighbour, test_neighbour_late);
    tcase_add_test(neighbour, test_neighbour_never);
    suite_add_tcase(suite, neighbour);
    return suite;
}


int main(int argc, char **argv)
{
    const t_suite_func_t suites[] = {suite_address};
    const char *bed               = getenv("T_BED");

    (void)argc;
    if ((bed == NULL) || (strcmp(bed, "softroce") != 0)) {
        t_skip_all("needs a netdev whose addresses it may take away");
    }
    return t_uct_main(argv, suites, 1);
}
