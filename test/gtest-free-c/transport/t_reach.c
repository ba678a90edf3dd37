/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What later UCX asks of a transport before it connects, and afterwards: whom it
 * reaches, and from how far; whether an endpoint leads to this address; whether
 * it leaves the node. No installed header has these questions, so they are
 * written down here once more, beside what the plugin has of them.
 */
#include "t_uct.h"
#include "dq/dq_wire.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The questions ---- */

enum {
    REACH_DEVICE_ADDR = 1 << 0, REACH_IFACE_ADDR = 1 << 1, REACH_INFO = 1 << 2,
    REACH_INFO_LENGTH = 1 << 3, REACH_SCOPE = 1 << 4,
    SCOPE_DEVICE      = 0, SCOPE_NETWORK = 1,
    CONNECTED_DEVICE_ADDR = 1 << 0, CONNECTED_IFACE_ADDR = 1 << 1,
    CONNECTED_EP_ADDR     = 1 << 2
};

#define INTER_NODE (1ull << 54)

typedef struct {
    uint64_t   mask;
    const void *device_addr, *iface_addr;
    char       *info;
    size_t     info_length;
    int        scope;
    size_t     device_addr_length, iface_addr_length;
} reach_t;

typedef struct {
    uint64_t   mask;
    const void *device_addr, *iface_addr, *ep_addr;
} connected_t;


/* Of the UCX that this runs on; a version is known by what it was the first to
 * have. */
static void *need(const char *name, const char *why)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);

    if (symbol == NULL) {
        t_skip(why);
    }
    return symbol;
}


static char reason[128]; /* why it is not reached */

static int ask_reach(const t_end_t *from, const void *device,
                     const void *address, int scope)
{
    char info[128] = "";
    reach_t reach  = {
        .mask        = REACH_INFO | REACH_INFO_LENGTH,
        .info        = info,
        .info_length = sizeof(info),
        .device_addr = device,
        .iface_addr  = address,
        .scope       = scope,
    };
    int (*ask)(uct_iface_h iface, const reach_t *reach);

    reach.mask |= (device != NULL) ? REACH_DEVICE_ADDR : 0;
    reach.mask |= (address != NULL) ? REACH_IFACE_ADDR : 0;
    reach.mask |= (scope >= 0) ? REACH_SCOPE : 0;
    *(void**)&ask = need("uct_iface_is_reachable_v2",
                         "this UCX has one question about reaching, the old one");
    if (ask(from->iface, &reach)) {
        ck_assert_str_eq(info, "");
        return 1;
    }
    snprintf(reason, sizeof(reason), "%s", info);
    return 0;
}


static int ask_connected(const t_link_t *link, const void *device,
                         const void *address, const void *ep_address)
{
    const connected_t connected = {
        .mask = ((device != NULL) ? CONNECTED_DEVICE_ADDR : 0) |
                ((address != NULL) ? CONNECTED_IFACE_ADDR : 0) |
                ((ep_address != NULL) ? CONNECTED_EP_ADDR : 0),
        .device_addr = device,
        .iface_addr  = address,
        .ep_addr     = ep_address,
    };
    int (*ask)(uct_ep_h ep, const connected_t *connected);

    *(void**)&ask = need("uct_ep_is_connected",
                         "UCX before 1.16 does not ask whether an endpoint is "
                         "connected");
    return ask(link->ep, &connected);
}


/* ---- Whom it reaches ---- */

/* The same network, another device: another port of it. */
static void make_other_device(const t_end_t *end, uint8_t *device)
{
    dq_port_addr_t port;

    memcpy(&port, end->address.dev, sizeof(port));
    port.lid++;
    memcpy(device, &port, sizeof(port));
}


/* A subnet that no port of this host is in; on Ethernet, another kind of link. */
static void make_other_network(const t_end_t *end, uint8_t *device)
{
    dq_port_addr_t port;

    memcpy(&port, end->address.dev, sizeof(port));
    port.is_eth = !port.is_eth;
    memcpy(device, &port, sizeof(port));
}


START_TEST(test_scope)
{
    uint8_t device[T_ADDRESS_MAX], network[T_ADDRESS_MAX];
    t_end_t *end, *peer;

    t_only_daqiri("has these addresses");
    need("ucs_config_sscanf_uint_enum",
         "UCX before 1.15 does not ask from how far a peer is reached");
    end  = t_end_open("");
    peer = t_end_open("");
    make_other_device(end, device);
    make_other_network(end, network);
    t_expect_log("the peer is on another fabric"); /* softverbs' alone */

    ck_assert(ask_reach(end, peer->address.dev, peer->address.iface, -1));
    ck_assert(ask_reach(end, peer->address.dev, peer->address.iface,
                        SCOPE_NETWORK));
    ck_assert(ask_reach(end, end->address.dev, end->address.iface,
                        SCOPE_DEVICE));
    ck_assert(ask_reach(end, device, peer->address.iface, -1));
    ck_assert(ask_reach(end, device, peer->address.iface, SCOPE_NETWORK));
    ck_assert(!ask_reach(end, device, peer->address.iface, SCOPE_DEVICE));
    ck_assert_str_eq(reason, "the peer is at another device");
    ck_assert(!ask_reach(end, network, peer->address.iface, -1));
    ck_assert_str_eq(reason, "no network of this port leads to the peer's");
    ck_assert(!ask_reach(end, network, peer->address.iface, SCOPE_NETWORK));
    ck_assert(!ask_reach(end, network, peer->address.iface, SCOPE_DEVICE));
}
END_TEST


/* UCP asks with the address of a device alone, too, from 1.16 on; 1.15's libuct
 * itself says no to that. */
START_TEST(test_half_an_address)
{
    uint8_t network[T_ADDRESS_MAX];
    t_end_t *end, *other;

    t_only_daqiri("has these addresses");
    need("uct_base_rkey_compare", "UCX before 1.16 asks with whole addresses");
    end   = t_end_open("SEG_SIZE=4k");
    other = t_end_open("SEG_SIZE=8k");
    make_other_network(end, network);
    t_expect_log("the peer is on another fabric"); /* softverbs' alone */

    ck_assert(ask_reach(end, other->address.dev, NULL, -1));
    ck_assert(ask_reach(end, end->address.dev, NULL, SCOPE_DEVICE));
    ck_assert(!ask_reach(end, network, NULL, SCOPE_NETWORK));
    ck_assert(!ask_reach(end, NULL, end->address.iface, -1));
    ck_assert_str_eq(reason, "the address of the device is missing");
    ck_assert(!ask_reach(end, NULL, NULL, SCOPE_NETWORK));
    /* the other half is looked at where it is there */
    t_expect_log("UCX_DAQIRI_SEG_SIZE to the same on both sides");
    ck_assert(!ask_reach(end, other->address.dev, other->address.iface,
                         SCOPE_NETWORK));
    ck_assert_str_eq(reason, "the peer has another SEG_SIZE, or another "
                             "version of daqiri");
}
END_TEST


/* Bytes that are no address are not a peer whom anybody has to be told of. */
START_TEST(test_no_address)
{
    uint8_t device[T_ADDRESS_MAX], address[T_ADDRESS_MAX];
    dq_iface_info_t info;
    dq_port_addr_t port;
    t_end_t *end;

    t_only_daqiri("has these addresses");
    need("ucs_config_sscanf_uint_enum",
         "UCX before 1.15 does not ask why a peer is not reached");
    end = t_end_open("");

    memcpy(&port, end->address.dev, sizeof(port));
    port.gid[0] ^= 0xff;
    port.mtu     = 6;
    memcpy(device, &port, sizeof(port));
    ck_assert(!ask_reach(end, device, end->address.iface, -1));
    ck_assert_str_eq(reason, "this is no address of daqiri");

    port.mtu    = 1;
    port.is_eth = 2;
    memcpy(device, &port, sizeof(port));
    ck_assert(!ask_reach(end, device, end->address.iface, -1));
    ck_assert_str_eq(reason, "this is no address of daqiri");

    memcpy(&info, end->address.iface, sizeof(info));
    info.who.ud_qpn = 1 << 24;
    info.seg       ^= 1;
    memcpy(address, &info, sizeof(info));
    ck_assert(!ask_reach(end, end->address.dev, address, -1));
    ck_assert_str_eq(reason, "this is no address of daqiri");
}
END_TEST


/* ---- Whom an endpoint leads to ---- */

START_TEST(test_connected)
{
    uint8_t device[T_ADDRESS_MAX];
    t_stream_t stream;
    t_end_t *end, *peer, *third;
    t_link_t *link;

    t_only_daqiri("has these addresses");
    need("uct_ep_is_connected",
         "UCX before 1.16 does not ask whether an endpoint is connected");
    end   = t_end_open("");
    peer  = t_end_open("");
    third = t_end_open("");
    link  = t_link_up(end, peer, 1, &stream);
    make_other_device(peer, device);

    /* an endpoint's address is its interface's */
    ck_assert(ask_connected(link, peer->address.dev, peer->address.iface,
                            NULL));
    ck_assert(ask_connected(link, peer->address.dev, NULL,
                            peer->address.iface));
    ck_assert(ask_connected(link, NULL, NULL, peer->address.iface));
    ck_assert(ask_connected(link, peer->address.dev, NULL, NULL));

    ck_assert(!ask_connected(link, peer->address.dev, third->address.iface,
                             NULL));
    ck_assert(!ask_connected(link, peer->address.dev, NULL,
                             third->address.iface));
    ck_assert(!ask_connected(link, device, peer->address.iface, NULL));
    ck_assert(!ask_connected(link, NULL, NULL, NULL));
    t_end_close_all();
}
END_TEST


/* One that leads nowhere yet. */
START_TEST(test_not_connected)
{
    t_end_t *end, *peer;
    t_link_t *link, *back;

    t_only_daqiri("has these addresses");
    need("uct_ep_is_connected",
         "UCX before 1.16 does not ask whether an endpoint is connected");
    end  = t_end_open("");
    peer = t_end_open("");
    link = t_link_make(end, 1);
    back = t_link_make(peer, 1);
    ck_assert(!ask_connected(link, peer->address.dev, peer->address.iface,
                             NULL));
    ck_assert_int_eq(t_link_connect(link, back), UCS_OK);
    ck_assert(ask_connected(link, peer->address.dev, NULL,
                            peer->address.iface));
    ck_assert(!ask_connected(back, end->address.dev, NULL,
                             end->address.iface));
    ck_assert_int_eq(t_link_connect(back, link), UCS_OK);
    ck_assert(ask_connected(back, end->address.dev, NULL,
                            end->address.iface));
    t_end_close_all();
}
END_TEST


/* UCP of 1.18 and later counts on such transports alone between hosts. */
START_TEST(test_inter_node)
{
    t_end_t *end;

    t_only_daqiri("is asked here");
    need("uct_iface_fill_info_str_buf",
         "UCX before 1.18 does not ask whether a transport leaves the node");
    end = t_end_open("");
    ck_assert(end->attr.cap.flags & INTER_NODE);
}
END_TEST


static Suite *suite_reach(void)
{
    Suite *suite = suite_create("reach");
    TCase *reach = t_uct_case("reach");

    tcase_add_test(reach, test_scope);
    tcase_add_test(reach, test_half_an_address);
    tcase_add_test(reach, test_no_address);
    tcase_add_test(reach, test_connected);
    tcase_add_test(reach, test_not_connected);
    tcase_add_test(reach, test_inter_node);
    suite_add_tcase(suite, reach);
    return suite;
}

T_UCT_MAIN(suite_reach)
