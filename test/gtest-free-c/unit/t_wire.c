/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire format: what is packed comes back; what is cut, flipped, foreign or
 * out of range is refused with the right reason and touches nothing. Whatever
 * is parsed lies in heap memory of exactly its size, so that a sanitizer sees
 * a read past the end.
 */
#include "t_unit.h"
#include "dq/dq_wire.h"

#include <stdlib.h>
#include <string.h>

/* Where things lie, as the other side of the wire knows it: written down
 * here again, so that a change of the layout cannot go unseen. */
enum {
    AT_MAGIC      = 0,
    AT_VERSION    = 4,
    AT_KIND       = 5,
    AT_REASON     = 6,
    AT_RD_ATOMIC = 7,
    AT_COOKIE     = 8,
    AT_SRC_UUID   = 16,
    AT_SRC_COOKIE = 24,
    AT_SRC_UD_QPN = 32,
    AT_GID        = 36,
    AT_LID        = 52,
    AT_IS_ETH     = 54,
    AT_MTU        = 55,
    AT_EPOCH      = 56,
    AT_FIRST      = 60,
    AT_PEER_EPOCH = 64,
    AT_QPN        = 68,
    AT_PSN        = 72,
    AT_DELIVERED  = 76,
    AT_ACKED      = 80,
    AT_DONE       = 84,
    AT_CREDITS    = 88,
    AT_PROMISED   = 90,
    AT_PID        = 92,
    AT_MARK       = 96,
    AT_PEER_MARK  = 104,
    AT_HOST       = 112,
    AT_END        = 136
};

#define COOKIE UINT64_C(0x1122334455667788)


static dq_frame_t sample_frame(dq_frame_kind_t kind)
{
    return (dq_frame_t){
        .kind       = kind,
        .dst_cookie = COOKIE,
        .src        = {.uuid   = UINT64_C(0xa1a2a3a4a5a6a7a8),
                       .cookie = UINT64_C(0xb1b2b3b4b5b6b7b8),
                       .ud_qpn = 0x00c1c2c3},
        .port       = {.gid = {0xd0, 0xd1, [15] = 0xdf},
                       .lid = 0xe1e2, .is_eth = 1, .mtu = 5},
        .epoch      = 0xf1f2f3f4,
        .first      = 0x21222324,
        .peer_epoch = 0x01020304,
        .qpn        = 0x00060708,
        .psn        = 0x000a0b0c,
        .delivered  = 0x0d0e0f10,
        .acked      = 0x25262728,
        .done       = 0x292a2b2c,
        .credits    = 0x1112,
        .promised   = 1, /* less than DQ_WINDOW_MIN, to be no reason there */
        .reason     = 0x13,
        .rd_atomic  = 0x10,
        .pid        = 0x14151617,
        .mark       = UINT64_C(0x3132333435363738),
        .peer_mark  = UINT64_C(0x4142434445464748),
        .host       = "a-host",
    };
}


static void random_frame(dq_frame_t *frame, t_rng_t *rng)
{
    unsigned i;

    t_rng_fill(rng, frame, sizeof(*frame));
    frame->kind        = t_rng_below(rng, DQ_FRAME_LAST);
    frame->dst_cookie  = COOKIE;
    frame->src.ud_qpn &= 0xffffff;
    frame->port.is_eth = t_rng_below(rng, 2);
    frame->port.mtu    = t_rng_range(rng, 1, 5);
    frame->epoch      |= 1;
    frame->qpn        &= 0xffffff;
    frame->psn        &= 0xffffff;
    frame->first      |= 1;
    frame->mark       |= 1;
    frame->credits     = t_rng_range(rng, DQ_WINDOW_MIN, DQ_WIRE_MAX_CREDIT);
    frame->promised    = t_rng_range(rng, 0, frame->credits);
    for (i = 0; i < DQ_WIRE_HOST_LEN; i++) {
        frame->host[i] = (char)t_rng_range(rng, ' ', '~');
    }
    frame->host[t_rng_below(rng, DQ_WIRE_HOST_LEN)] = '\0';
}


static int is_same_frame(const dq_frame_t *a, const dq_frame_t *b)
{
    return (a->kind == b->kind) && (a->dst_cookie == b->dst_cookie) &&
           (memcmp(&a->src, &b->src, sizeof(a->src)) == 0) &&
           (memcmp(&a->port, &b->port, sizeof(a->port)) == 0) &&
           (a->epoch == b->epoch) && (a->peer_epoch == b->peer_epoch) &&
           (a->qpn == b->qpn) && (a->psn == b->psn) &&
           (a->delivered == b->delivered) && (a->credits == b->credits) &&
           (a->first == b->first) && (a->acked == b->acked) &&
           (a->done == b->done) &&
           (a->promised == b->promised) &&
           (a->reason == b->reason) &&
           (a->rd_atomic == b->rd_atomic) && (a->pid == b->pid) &&
           (a->mark == b->mark) && (a->peer_mark == b->peer_mark) &&
           (memcmp(a->host, b->host, sizeof(a->host)) == 0);
}


/* What the header says of every frame that is let through. */
static int is_in_range(const dq_frame_t *frame)
{
    int has_qp = (frame->kind == DQ_FRAME_REQ) || (frame->kind == DQ_FRAME_REP);

    return (frame->kind < DQ_FRAME_LAST) && (frame->dst_cookie == COOKIE) &&
           (frame->src.ud_qpn <= 0xffffff) && (frame->port.is_eth <= 1) &&
           (frame->port.mtu >= 1) && (frame->port.mtu <= 5) &&
           (frame->epoch != 0) &&
           (strnlen(frame->host, DQ_WIRE_HOST_LEN) < DQ_WIRE_HOST_LEN) &&
           ((frame->mark != 0) ||
            (!has_qp && (frame->kind != DQ_FRAME_AGAIN))) &&
           (!has_qp ||
            ((frame->qpn <= 0xffffff) && (frame->psn <= 0xffffff) &&
             (frame->credits >= DQ_WINDOW_MIN) && (frame->first != 0) &&
             (frame->promised <= frame->credits)));
}


/* Parses a copy of exactly @a length bytes. Nothing is written but on OK. */
static dq_wire_status_t parse(const uint8_t *bytes, size_t length,
                              dq_frame_t *frame)
{
    uint8_t *copy = malloc(length);
    dq_frame_t untouched;
    dq_wire_status_t status;

    T_NEED((copy != NULL) || (length == 0));
    if (length > 0) {
        memcpy(copy, bytes, length);
    }
    memset(frame, 0xa5, sizeof(*frame));
    memset(&untouched, 0xa5, sizeof(untouched));
    status = dq_frame_parse(copy, length, COOKIE, frame);
    free(copy);

    if (status == DQ_WIRE_OK) {
        T_NEED(is_in_range(frame));
    } else {
        T_NEED(memcmp(frame, &untouched, sizeof(untouched)) == 0);
    }
    return status;
}


static void pack(const dq_frame_t *frame, uint8_t *bytes)
{
    uint8_t *exact = malloc(DQ_FRAME_BYTES);

    T_NEED(exact != NULL);
    memset(exact, 0x5a, DQ_FRAME_BYTES);
    dq_frame_pack(frame, exact);
    memcpy(bytes, exact, DQ_FRAME_BYTES);
    free(exact);
}


/* ---- Frames ---- */

static const struct {
    unsigned at, length;
    uint8_t  bytes[8];
} layout[] = {
    {AT_MAGIC, 4, {'d', 'q', 'r', 'i'}},
    {AT_VERSION, 1, {9}},
    {AT_KIND, 1, {DQ_FRAME_REP}},
    {AT_REASON, 1, {0x13}},
    {AT_RD_ATOMIC, 1, {0x10}},
    {AT_COOKIE, 8, {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11}},
    {AT_SRC_UUID, 8, {0xa8, 0xa7, 0xa6, 0xa5, 0xa4, 0xa3, 0xa2, 0xa1}},
    {AT_SRC_COOKIE, 8, {0xb8, 0xb7, 0xb6, 0xb5, 0xb4, 0xb3, 0xb2, 0xb1}},
    {AT_SRC_UD_QPN, 4, {0xc3, 0xc2, 0xc1, 0}},
    {AT_GID, 3, {0xd0, 0xd1, 0}},
    {AT_GID + 15, 1, {0xdf}},
    {AT_LID, 2, {0xe2, 0xe1}},
    {AT_IS_ETH, 1, {1}},
    {AT_MTU, 1, {5}},
    {AT_EPOCH, 4, {0xf4, 0xf3, 0xf2, 0xf1}},
    {AT_FIRST, 4, {0x24, 0x23, 0x22, 0x21}},
    {AT_PEER_EPOCH, 4, {4, 3, 2, 1}},
    {AT_QPN, 4, {8, 7, 6, 0}},
    {AT_PSN, 4, {0xc, 0xb, 0xa, 0}},
    {AT_DELIVERED, 4, {0x10, 0xf, 0xe, 0xd}},
    {AT_ACKED, 4, {0x28, 0x27, 0x26, 0x25}},
    {AT_DONE, 4, {0x2c, 0x2b, 0x2a, 0x29}},
    {AT_CREDITS, 2, {0x12, 0x11}},
    {AT_PROMISED, 2, {1, 0}},
    {AT_PID, 4, {0x17, 0x16, 0x15, 0x14}},
    {AT_MARK, 8, {0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31}},
    {AT_PEER_MARK, 8, {0x48, 0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41}},
    {AT_HOST, 8, "a-host\0"},
    {AT_END, 4, {'d', 'q', 'r', 'i'}},
};


START_TEST(test_layout)
{
    dq_frame_t frame = sample_frame(DQ_FRAME_REP);
    uint8_t bytes[DQ_FRAME_BYTES];
    size_t i;

    ck_assert_uint_eq(DQ_FRAME_BYTES, AT_END + 4);
    pack(&frame, bytes);
    for (i = 0; i < sizeof(layout) / sizeof(layout[0]); i++) {
        ck_assert_mem_eq(bytes + layout[i].at, layout[i].bytes,
                         layout[i].length);
    }
}
END_TEST


START_TEST(test_round_trip)
{
    uint8_t bytes[DQ_FRAME_BYTES];
    dq_frame_t frame, back;
    t_rng_t rng;

    t_rng_init(&rng, 0x3100);
    for (t_at = 0; t_at < 200000; t_at++) {
        random_frame(&frame, &rng);
        pack(&frame, bytes);
        T_NEED_EQ(parse(bytes, sizeof(bytes), &back), DQ_WIRE_OK);
        T_NEED(is_same_frame(&frame, &back));
    }
}
END_TEST


START_TEST(test_every_truncation)
{
    dq_frame_t frame = sample_frame((dq_frame_kind_t)_i);
    uint8_t bytes[DQ_FRAME_BYTES];
    dq_frame_t back;

    pack(&frame, bytes);
    for (t_at = 0; t_at < DQ_FRAME_BYTES; t_at++) {
        T_NEED_EQ(parse(bytes, t_at, &back), DQ_WIRE_SHORT);
    }
}
END_TEST


/* A datagram may be padded: what follows the frame is not looked at. */
START_TEST(test_longer)
{
    dq_frame_t frame = sample_frame(DQ_FRAME_REQ);
    uint8_t bytes[DQ_FRAME_BYTES + 40];
    dq_frame_t back;

    memset(bytes, 0xff, sizeof(bytes));
    pack(&frame, bytes);
    for (t_at = DQ_FRAME_BYTES; t_at <= sizeof(bytes); t_at++) {
        T_NEED_EQ(parse(bytes, t_at, &back), DQ_WIRE_OK);
        T_NEED(is_same_frame(&frame, &back));
    }
}
END_TEST


/* Every bit of every kind, alone: refused, or a frame in range (parse() looks)
 * that differs from what was sent. */
START_TEST(test_every_bit_flip)
{
    dq_frame_t frame = sample_frame((dq_frame_kind_t)_i);
    uint8_t bytes[DQ_FRAME_BYTES];
    dq_frame_t back;
    unsigned refused = 0;

    pack(&frame, bytes);
    for (t_at = 0; t_at < 8 * DQ_FRAME_BYTES; t_at++) {
        bytes[t_at / 8] ^= 1 << (t_at % 8);
        if (parse(bytes, sizeof(bytes), &back) == DQ_WIRE_OK) {
            T_NEED(!is_same_frame(&frame, &back));
        } else {
            refused++;
        }
        bytes[t_at / 8] ^= 1 << (t_at % 8);
    }
    /* the magic twice, version, cookie: all their bits */
    ck_assert_uint_ge(refused, 32 + 32 + 8 + 64);
}
END_TEST


START_TEST(test_random_noise)
{
    uint8_t bytes[DQ_FRAME_BYTES];
    dq_frame_t frame, back;
    unsigned flips;
    t_rng_t rng;

    t_rng_init(&rng, 0x3200);
    for (t_at = 0; t_at < 300000; t_at++) {
        random_frame(&frame, &rng);
        pack(&frame, bytes);
        for (flips = t_rng_range(&rng, 1, 12); flips > 0; flips--) {
            bytes[t_rng_below(&rng, sizeof(bytes))] = t_rng_next(&rng);
        }
        parse(bytes, t_rng_once_in(&rng, 4) ? t_rng_below(&rng, sizeof(bytes))
                                            : sizeof(bytes), &back);
    }
}
END_TEST


/* One field of a good frame changed, and the reason that this must give. The
 * kinds with a QP are stricter. */
static const struct {
    unsigned         at, length;
    uint64_t         value;
    dq_wire_status_t with_qp, without;
} fields[] = {
    {AT_MAGIC, 4, 0, DQ_WIRE_BAD_MAGIC, DQ_WIRE_BAD_MAGIC},
    {AT_END, 4, 0, DQ_WIRE_BAD_MAGIC, DQ_WIRE_BAD_MAGIC},
    {AT_COOKIE, 8, 0, DQ_WIRE_BAD_COOKIE, DQ_WIRE_BAD_COOKIE},
    {AT_COOKIE, 8, COOKIE + 1, DQ_WIRE_BAD_COOKIE, DQ_WIRE_BAD_COOKIE},
    {AT_RD_ATOMIC, 1, 0, DQ_WIRE_OK, DQ_WIRE_OK},
    {AT_RD_ATOMIC, 1, 255, DQ_WIRE_OK, DQ_WIRE_OK},
    {AT_FIRST, 4, 0, DQ_WIRE_BAD_FIELD, DQ_WIRE_OK},
    {AT_FIRST, 4, 1, DQ_WIRE_OK, DQ_WIRE_OK},
    {AT_PROMISED, 2, 0, DQ_WIRE_OK, DQ_WIRE_OK},
    {AT_PROMISED, 2, 0x1112, DQ_WIRE_OK, DQ_WIRE_OK},
    {AT_PROMISED, 2, 0x1113, DQ_WIRE_BAD_FIELD, DQ_WIRE_OK},
    {AT_EPOCH, 4, 0, DQ_WIRE_BAD_FIELD, DQ_WIRE_BAD_FIELD},
    {AT_EPOCH, 4, 1, DQ_WIRE_OK, DQ_WIRE_OK},
    {AT_EPOCH, 4, UINT32_MAX, DQ_WIRE_OK, DQ_WIRE_OK},
    {AT_PEER_EPOCH, 4, 0, DQ_WIRE_OK, DQ_WIRE_OK},
    {AT_SRC_UD_QPN, 4, 0xffffff, DQ_WIRE_OK, DQ_WIRE_OK},
    {AT_SRC_UD_QPN, 4, 0x1000000, DQ_WIRE_BAD_FIELD, DQ_WIRE_BAD_FIELD},
    {AT_IS_ETH, 1, 0, DQ_WIRE_OK, DQ_WIRE_OK},
    {AT_IS_ETH, 1, 2, DQ_WIRE_BAD_FIELD, DQ_WIRE_BAD_FIELD},
    {AT_MTU, 1, 0, DQ_WIRE_BAD_FIELD, DQ_WIRE_BAD_FIELD},
    {AT_MTU, 1, 1, DQ_WIRE_OK, DQ_WIRE_OK},
    {AT_MTU, 1, 6, DQ_WIRE_BAD_FIELD, DQ_WIRE_BAD_FIELD},
    {AT_MTU, 1, 255, DQ_WIRE_BAD_FIELD, DQ_WIRE_BAD_FIELD},
    {AT_QPN, 4, 0xffffff, DQ_WIRE_OK, DQ_WIRE_OK},
    {AT_QPN, 4, 0x1000000, DQ_WIRE_BAD_FIELD, DQ_WIRE_OK},
    {AT_PSN, 4, 0xffffff, DQ_WIRE_OK, DQ_WIRE_OK},
    {AT_PSN, 4, 0x1000000, DQ_WIRE_BAD_FIELD, DQ_WIRE_OK},
    {AT_CREDITS, 2, 0, DQ_WIRE_BAD_FIELD, DQ_WIRE_OK},
    {AT_CREDITS, 2, DQ_WINDOW_MIN - 1, DQ_WIRE_BAD_FIELD, DQ_WIRE_OK},
    {AT_CREDITS, 2, DQ_WINDOW_MIN, DQ_WIRE_OK, DQ_WIRE_OK},
    {AT_CREDITS, 2, DQ_WIRE_MAX_CREDIT, DQ_WIRE_OK, DQ_WIRE_OK},
    {AT_MARK, 8, UINT64_C(1) << 63, DQ_WIRE_OK, DQ_WIRE_OK},
    {AT_PEER_MARK, 8, 0, DQ_WIRE_OK, DQ_WIRE_OK},
    {AT_HOST, 8, 0, DQ_WIRE_OK, DQ_WIRE_OK},
};


START_TEST(test_fields)
{
    dq_frame_t frame = sample_frame((dq_frame_kind_t)_i);
    int has_qp       = (_i == DQ_FRAME_REQ) || (_i == DQ_FRAME_REP);
    uint8_t bytes[DQ_FRAME_BYTES];
    dq_frame_t back;

    for (t_at = 0; t_at < sizeof(fields) / sizeof(fields[0]); t_at++) {
        pack(&frame, bytes);
        memcpy(bytes + fields[t_at].at, &fields[t_at].value,
               fields[t_at].length);
        T_NEED_EQ(parse(bytes, sizeof(bytes), &back),
                  has_qp ? fields[t_at].with_qp : fields[t_at].without);
    }

    pack(&frame, bytes);
    memset(bytes + AT_MARK, 0, 8);
    T_NEED_EQ(parse(bytes, sizeof(bytes), &back),
              (has_qp || (_i == DQ_FRAME_AGAIN)) ? DQ_WIRE_BAD_FIELD
                                                 : DQ_WIRE_OK);

    pack(&frame, bytes);
    memset(bytes + AT_HOST, 'x', DQ_WIRE_HOST_LEN);
    T_NEED_EQ(parse(bytes, sizeof(bytes), &back), DQ_WIRE_BAD_FIELD);
    bytes[AT_HOST + DQ_WIRE_HOST_LEN - 1] = '\0';
    T_NEED_EQ(parse(bytes, sizeof(bytes), &back), DQ_WIRE_OK);
}
END_TEST


/* A name goes into the log of whoever gets it: commands to a terminal are no
 * names. The bytes behind its end are nobody's. */
START_TEST(test_host)
{
    dq_frame_t frame = sample_frame(DQ_FRAME_GONE);
    char host[DQ_WIRE_HOST_LEN];
    uint8_t bytes[DQ_FRAME_BYTES];
    dq_frame_t back;

    for (t_at = 0; t_at < 256; t_at++) {
        pack(&frame, bytes);
        bytes[AT_HOST + 3] = t_at;
        T_NEED_EQ(parse(bytes, sizeof(bytes), &back),
                  ((t_at == 0) || ((t_at >= ' ') && (t_at <= '~'))) ?
                          DQ_WIRE_OK : DQ_WIRE_BAD_FIELD);
        pack(&frame, bytes);
        bytes[AT_HOST + sizeof("a-host")] = t_at;
        T_NEED_EQ(parse(bytes, sizeof(bytes), &back), DQ_WIRE_OK);
    }

    dq_wire_host(host, "a\033]0;\302\233\177b");
    ck_assert_str_eq(host, "a?]0;???b");
    dq_wire_host(host, "a-name-of-more-than-23-characters");
    ck_assert_str_eq(host, "a-name-of-more-than-23-");
    dq_wire_host(host, "");
    ck_assert_str_eq(host, "");
}
END_TEST


START_TEST(test_every_kind_and_version)
{
    dq_frame_t frame = sample_frame(DQ_FRAME_REQ);
    uint8_t bytes[DQ_FRAME_BYTES];
    dq_frame_t back;

    for (t_at = 0; t_at < 256; t_at++) {
        pack(&frame, bytes);
        bytes[AT_KIND] = t_at;
        T_NEED_EQ(parse(bytes, sizeof(bytes), &back),
                  (t_at < DQ_FRAME_LAST) ? DQ_WIRE_OK : DQ_WIRE_BAD_KIND);
        pack(&frame, bytes);
        bytes[AT_VERSION] = t_at;
        T_NEED_EQ(parse(bytes, sizeof(bytes), &back),
                  (t_at == DQ_WIRE_VERSION) ? DQ_WIRE_OK
                                            : DQ_WIRE_BAD_VERSION);
    }
}
END_TEST


/* A frame of another version is told apart although all else differs, its length
 * too; but for the cookie, which says whether it is for us. */
START_TEST(test_version_comes_first)
{
    dq_frame_t frame = sample_frame(DQ_FRAME_REQ);
    uint8_t bytes[DQ_FRAME_BYTES];
    dq_frame_t back;

    pack(&frame, bytes);
    memset(bytes + AT_KIND, 0xee, sizeof(bytes) - AT_KIND);
    bytes[AT_VERSION] = DQ_WIRE_VERSION - 1;
    for (t_at = 0; t_at <= DQ_FRAME_BYTES; t_at++) {
        T_NEED_EQ(parse(bytes, t_at, &back),
                  (t_at < AT_COOKIE + 8) ? DQ_WIRE_SHORT : DQ_WIRE_BAD_VERSION);
    }
}
END_TEST


static unsigned version_of(const uint8_t *bytes, size_t length)
{
    uint8_t *copy = malloc(length);
    unsigned version;

    T_NEED((copy != NULL) || (length == 0));
    if (length > 0) {
        memcpy(copy, bytes, length);
    }
    version = dq_frame_version(copy, length, COOKIE);
    free(copy);
    return version;
}


START_TEST(test_whose_version)
{
    dq_frame_t frame = sample_frame(DQ_FRAME_REQ);
    uint8_t bytes[DQ_FRAME_BYTES];
    unsigned length;

    for (t_at = 0; t_at < 256; t_at++) {
        pack(&frame, bytes);
        bytes[AT_VERSION] = t_at;
        for (length = 0; length <= sizeof(bytes); length++) {
            T_NEED_EQ(version_of(bytes, length),
                      (length < AT_COOKIE + 8) ? DQ_WIRE_VERSION : t_at);
        }
        bytes[AT_COOKIE] ^= 1;
        T_NEED_EQ(version_of(bytes, sizeof(bytes)), DQ_WIRE_VERSION);
        bytes[AT_COOKIE] ^= 1;
        bytes[AT_MAGIC]  ^= 1;
        T_NEED_EQ(version_of(bytes, sizeof(bytes)), DQ_WIRE_VERSION);
    }
}
END_TEST


/* ---- The address that UCP carries ---- */

START_TEST(test_iface_info)
{
    static const uint32_t sizes[] = {256, 12292, 16452, 1 << 20,
                                     DQ_WIRE_SEG_MAX};
    const dq_iface_addr_t who     = sample_frame(DQ_FRAME_REQ).src;
    dq_iface_info_t info;
    uint8_t bytes[sizeof(info)];
    unsigned i;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        info = dq_iface_info_make(&who, sizes[i]);
        ck_assert_mem_eq(&info.who, &who, sizeof(who));
        ck_assert_uint_eq(dq_iface_info_seg_size(&info), sizes[i]);
        ck_assert_uint_eq(dq_iface_info_version(&info), DQ_WIRE_VERSION);
        memcpy(bytes, &info, sizeof(bytes));
        ck_assert_uint_eq(bytes[23], DQ_WIRE_VERSION);
    }
    info.seg = 16452; /* as all versions before 6 have it */
    ck_assert_uint_eq(dq_iface_info_seg_size(&info), 16452);
    ck_assert_uint_eq(dq_iface_info_version(&info), 0);
}
END_TEST


/* Of all bytes that may stand there, those that can be an address. */
START_TEST(test_is_one)
{
    dq_port_addr_t port  = sample_frame(DQ_FRAME_REQ).port;
    dq_iface_addr_t who  = sample_frame(DQ_FRAME_REQ).src;
    dq_iface_info_t info = dq_iface_info_make(&who, 256);
    unsigned is_eth, mtu;

    for (is_eth = 0; is_eth <= UINT8_MAX; is_eth++) {
        for (mtu = 0; mtu <= UINT8_MAX; mtu++) {
            port.is_eth = is_eth;
            port.mtu    = mtu;
            ck_assert_int_eq(dq_port_addr_is_one(&port),
                             (is_eth <= 1) && (mtu >= 1) && (mtu <= 5));
        }
    }
    info.who.ud_qpn = (1 << 24) - 1;
    ck_assert(dq_iface_info_is_one(&info));
    info.who.ud_qpn = 1 << 24;
    ck_assert(!dq_iface_info_is_one(&info));
    info.who.ud_qpn = UINT32_MAX;
    ck_assert(!dq_iface_info_is_one(&info));
}
END_TEST


/* ---- Messages ---- */

static dq_wire_status_t parse_msg(const void *bytes, size_t length)
{
    uint8_t *copy = malloc(length);
    dq_wire_status_t status;

    T_NEED((copy != NULL) || (length == 0));
    if (length > 0) {
        memcpy(copy, bytes, length);
    }
    status = dq_msg_parse(copy, length);
    free(copy);
    return status;
}


START_TEST(test_msg_layout)
{
    static const uint8_t want[] = {0x51, 7, 0xd4, 0xc3};
    uint8_t bytes[sizeof(dq_msg_hdr_t)];

    memset(bytes, 0xff, sizeof(bytes));
    dq_msg_pack((dq_msg_hdr_t*)bytes, DQ_MSG_AM, 7, 0xa1b2c3d4);
    ck_assert_mem_eq(bytes, want, sizeof(want));
}
END_TEST


START_TEST(test_msg_every_kind_and_id)
{
    static const dq_msg_kind_t kinds[] = {DQ_MSG_AM, DQ_MSG_GRANT, DQ_MSG_RECALL,
                                          DQ_MSG_CLOSE};
    dq_msg_hdr_t hdr;
    uint64_t i;

    for (i = 0; i < 4; i++) {
        for (t_at = 0; t_at < 256; t_at++) {
            dq_msg_pack(&hdr, kinds[i], t_at, t_at);
            T_NEED_EQ(parse_msg(&hdr, sizeof(hdr)),
                      (t_at < DQ_WIRE_AM_ID_MAX) ? DQ_WIRE_OK
                                                 : DQ_WIRE_BAD_FIELD);
        }
    }
    for (t_at = 0; t_at < 256; t_at++) {
        dq_msg_pack(&hdr, DQ_MSG_AM, 1, 2);
        hdr.kind = t_at;
        T_NEED_EQ(parse_msg(&hdr, sizeof(hdr)),
                  ((t_at >= DQ_MSG_AM) && (t_at <= DQ_MSG_CLOSE))
                          ? DQ_WIRE_OK
                          : DQ_WIRE_BAD_KIND);
    }
}
END_TEST


START_TEST(test_msg_every_length_and_flip)
{
    uint8_t bytes[sizeof(dq_msg_hdr_t) + 5] = {0};
    dq_wire_status_t status;
    dq_msg_hdr_t *hdr = (dq_msg_hdr_t*)bytes;

    dq_msg_pack(hdr, DQ_MSG_AM, 31, UINT32_MAX);
    for (t_at = 0; t_at <= sizeof(bytes); t_at++) {
        T_NEED_EQ(parse_msg(bytes, t_at), (t_at < sizeof(dq_msg_hdr_t))
                                                  ? DQ_WIRE_SHORT
                                                  : DQ_WIRE_OK);
    }
    for (t_at = 0; t_at < 8 * sizeof(dq_msg_hdr_t); t_at++) {
        bytes[t_at / 8] ^= 1 << (t_at % 8);
        status = parse_msg(bytes, sizeof(dq_msg_hdr_t));
        if (status == DQ_WIRE_OK) {
            T_NEED((hdr->kind >= DQ_MSG_AM) && (hdr->kind <= DQ_MSG_CLOSE));
            T_NEED(hdr->am_id < DQ_WIRE_AM_ID_MAX);
        }
        T_NEED((status == DQ_WIRE_OK) || (t_at < 16)); /* any seq is good */
        bytes[t_at / 8] ^= 1 << (t_at % 8);
    }
}
END_TEST


START_TEST(test_names)
{
    unsigned i;

    for (i = 0; i < DQ_WIRE_LAST; i++) {
        ck_assert_str_ne(dq_wire_status_name((dq_wire_status_t)i), "?");
    }
    ck_assert_str_eq(dq_wire_status_name(DQ_WIRE_LAST), "?");
    for (i = 0; i < DQ_FRAME_LAST; i++) {
        ck_assert_str_ne(dq_frame_kind_name(i), "?");
    }
    ck_assert_str_eq(dq_frame_kind_name(DQ_FRAME_LAST), "?");
    ck_assert_str_eq(dq_frame_kind_name(255), "?");
}
END_TEST


static Suite *suite_wire(void)
{
    Suite *suite    = suite_create("wire");
    TCase *frames   = tcase_create("frames");
    TCase *address  = tcase_create("address");
    TCase *messages = tcase_create("messages");

    tcase_set_timeout(frames, T_TIMEOUT);
    tcase_add_test(frames, test_layout);
    tcase_add_test(frames, test_round_trip);
    tcase_add_loop_test(frames, test_every_truncation, 0, DQ_FRAME_LAST);
    tcase_add_test(frames, test_longer);
    tcase_add_loop_test(frames, test_every_bit_flip, 0, DQ_FRAME_LAST);
    tcase_add_test(frames, test_random_noise);
    tcase_add_loop_test(frames, test_fields, 0, DQ_FRAME_LAST);
    tcase_add_test(frames, test_every_kind_and_version);
    tcase_add_test(frames, test_host);
    tcase_add_test(frames, test_version_comes_first);
    tcase_add_test(frames, test_whose_version);
    suite_add_tcase(suite, frames);

    tcase_add_test(address, test_iface_info);
    tcase_add_test(address, test_is_one);
    suite_add_tcase(suite, address);

    tcase_set_timeout(messages, T_TIMEOUT);
    tcase_add_test(messages, test_msg_layout);
    tcase_add_test(messages, test_msg_every_kind_and_id);
    tcase_add_test(messages, test_msg_every_length_and_flip);
    tcase_add_test(messages, test_names);
    suite_add_tcase(suite, messages);
    return suite;
}

T_MAIN(suite_wire)
