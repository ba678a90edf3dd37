/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything that leaves the process: the header of a message, the credits in
 * its immediate data, the frames of the handshake, and the two addresses that
 * UCP carries to the peer. Layouts are written nowhere else.
 *
 * Multi-byte fields are little-endian, except the immediate data, which verbs
 * keeps in network order. Parsing takes a length, happens once, and answers
 * with a reason; nothing from the wire is trusted before it.
 */
#ifndef DQ_WIRE_H
#define DQ_WIRE_H

#include "dq.h"

#include <string.h>

enum {
    DQ_WIRE_VERSION    = 9,
    DQ_WIRE_GRH_LEN    = 40, /* in front of every UD message (IBA 11.4.1.2)  */
    DQ_WIRE_GID_LEN    = 16,
    DQ_WIRE_HOST_LEN   = 24,
    DQ_WIRE_MAX_CREDIT = UINT16_MAX,
    DQ_WIRE_AM_ID_MAX  = 32  /* UCT_AM_ID_MAX                                */
};

/* Why bytes from the wire were dropped; also the index of a counter. */
typedef enum {
    DQ_WIRE_OK,
    DQ_WIRE_SHORT,       /* fewer bytes than the layout has                  */
    DQ_WIRE_BAD_MAGIC,   /* not ours                                         */
    DQ_WIRE_BAD_VERSION, /* a daqiri of another version                      */
    DQ_WIRE_BAD_KIND,
    DQ_WIRE_BAD_FIELD,   /* a value out of its range                         */
    DQ_WIRE_BAD_COOKIE,  /* for another interface, or from another address than
                            the peer's                                       */
    DQ_WIRE_BAD_MARK,    /* names an attempt, but has not its mark           */
    DQ_WIRE_LAST
} dq_wire_status_t;

/* ---- Messages on the RC QP ---- */

typedef enum {
    DQ_MSG_AM    = 0x51, /* an active message: the header, then its data     */
    DQ_MSG_GRANT = 0x52, /* only the credits in the immediate data           */
    DQ_MSG_RECALL = 0x53, /* give back as many credits as that               */
    DQ_MSG_RETURN = 0x54, /* I give back as many                             */
    DQ_MSG_CLOSE  = 0x55 /* no data of mine follows on this QP (dq_idle.h)   */
} dq_msg_kind_t;

/* RC delivers in order and once. The number only proves that, so a few bits are
 * enough. Each byte costs an emulated device two rounds of a checksum. */
typedef struct {
    uint8_t  kind;
    uint8_t  am_id;
    uint16_t seq; /* counts active messages on this connection, from 0, or the
                     others, from 1; the low bits                            */
} __attribute__((packed)) dq_msg_hdr_t;

DQ_STATIC_ASSERT(sizeof(dq_msg_hdr_t) == 4, "whole words, as RoCE pads to");

static inline void dq_msg_pack(dq_msg_hdr_t *hdr, dq_msg_kind_t kind,
                               uint8_t am_id, uint32_t seq)
{
    const uint32_t word = kind | ((uint32_t)am_id << 8) | (seq << 16);

    memcpy(hdr, &word, sizeof(word));
}

/* Out of line: names what is wrong with it, or finds a rarer kind. */
dq_wire_status_t dq_msg_parse_slow(const void *buf, size_t length);

/* Is it an active message, as most are? */
static inline int dq_msg_is_am(const void *buf, size_t length)
{
    uint16_t word;

    if (DQ_UNLIKELY(length < sizeof(dq_msg_hdr_t))) {
        return 0;
    }

    /* kind and id at once: ids below 32 leave these bits zero */
    memcpy(&word, buf, sizeof(word));
    return (word & ~((DQ_WIRE_AM_ID_MAX - 1u) << 8)) == DQ_MSG_AM;
}

static inline dq_wire_status_t dq_msg_parse(const void *buf, size_t length)
{
    return DQ_LIKELY(dq_msg_is_am(buf, length))
                   ? DQ_WIRE_OK : dq_msg_parse_slow(buf, length);
}

/* ---- Frames of the handshake, one per UD datagram ---- */

typedef enum {
    DQ_FRAME_REQ,    /* connect to my QP                                     */
    DQ_FRAME_REP,    /* agreed: my QP                                        */
    DQ_FRAME_RTU,    /* my QP is ready to receive: you may send              */
    DQ_FRAME_REFUSE, /* I cannot, and asking again will not help             */
    DQ_FRAME_GONE,   /* my end is closed: nothing that you send will arrive  */
    DQ_FRAME_HEARD,  /* I have received your GONE                            */
    DQ_FRAME_AGAIN,  /* too many ask: repeat your first REQ with my mark, so that
                        I know that you hear me. After the loss of a QP: I
                        drain, go on asking                                  */
    DQ_FRAME_LAST
} dq_frame_kind_t;

/* Where a port is: enough to address it on InfiniBand and on RoCE. */
typedef struct {
    uint8_t  gid[DQ_WIRE_GID_LEN];
    uint16_t lid;
    uint8_t  is_eth; /* RoCE: the GID is needed; LIDs mean nothing           */
    uint8_t  mtu;    /* enum ibv_mtu of the port                             */
} __attribute__((packed)) dq_port_addr_t;

/* Which interface it is, and how to reach its handshake. */
typedef struct {
    uint64_t uuid;   /* names the interface, for as long as it lives         */
    uint64_t cookie; /* every frame to it has this                           */
    uint32_t ud_qpn;
} __attribute__((packed)) dq_iface_addr_t;

/* The same, with facts that a sender needs first. Up to version 5 of the wire, all
 * of seg was the size of a segment. */
typedef struct {
    dq_iface_addr_t who;
    uint32_t        seg; /* 24 bits: bytes of a RECV, and of the longest SEND;
                            8 bits: DQ_WIRE_VERSION, or 0: 5 or less         */
} __attribute__((packed)) dq_iface_info_t;

enum {
    DQ_WIRE_SEG_BITS = 24,
    DQ_WIRE_SEG_MAX  = (1 << DQ_WIRE_SEG_BITS) - 1,
    DQ_WIRE_QPN_MAX  = 0xffffff, /* QPN and PSN are 24 bits (IBA 9.2)        */
    DQ_WIRE_MTU_MIN  = 1,        /* IBV_MTU_256                              */
    DQ_WIRE_MTU_MAX  = 5         /* IBV_MTU_4096                             */
};

static inline dq_iface_info_t dq_iface_info_make(const dq_iface_addr_t *who,
                                                 uint32_t seg_size)
{
    DQ_ASSERT(seg_size <= DQ_WIRE_SEG_MAX);
    return (dq_iface_info_t){
        .who = *who,
        .seg = seg_size | ((uint32_t)DQ_WIRE_VERSION << DQ_WIRE_SEG_BITS),
    };
}

static inline uint32_t dq_iface_info_seg_size(const dq_iface_info_t *info)
{
    return info->seg & DQ_WIRE_SEG_MAX;
}

static inline unsigned dq_iface_info_version(const dq_iface_info_t *info)
{
    return info->seg >> DQ_WIRE_SEG_BITS;
}

/* Can this be an address of daqiri, of any version? Random bytes hardly ever pass. */
static inline int dq_port_addr_is_one(const dq_port_addr_t *port)
{
    return (port->is_eth <= 1) && (port->mtu >= DQ_WIRE_MTU_MIN) &&
           (port->mtu <= DQ_WIRE_MTU_MAX);
}

static inline int dq_iface_info_is_one(const dq_iface_info_t *info)
{
    return info->who.ud_qpn <= DQ_WIRE_QPN_MAX;
}

/* UCP packs port and info into the address that peers exchange, in few bytes:
 * uct device address <= 31, iface address <= 63 (UCX 1.13 address.c). */
DQ_STATIC_ASSERT(sizeof(dq_port_addr_t) == 20, "fits a device address");
DQ_STATIC_ASSERT(sizeof(dq_iface_addr_t) == 20, "goes with every frame");
DQ_STATIC_ASSERT(sizeof(dq_iface_info_t) == 24, "fits an iface address");

typedef struct {
    uint8_t         kind;       /* dq_frame_kind_t                           */
    uint64_t        dst_cookie; /* of the interface that it is for           */
    dq_iface_addr_t src;        /* of the sender                             */
    dq_port_addr_t  port;       /* of the sender                             */
    uint32_t        epoch;      /* of the sender's attempt                   */
    uint32_t        first;      /* of its first attempt on this connection   */
    uint32_t        peer_epoch; /* of the attempt answered; in a REQ, of the
                                   one that was lost, or 0                   */
    uint32_t        qpn;        /* of the sender's RC QP                     */
    uint32_t        psn;        /* that the sender's RC QP starts with       */
    uint32_t        delivered;  /* active messages handed up so far          */
    uint32_t        acked;      /* of the sender's, completed so far         */
    uint32_t        done;       /* requests of the sender's, of any kind, that
                                   are over                                  */
    uint16_t        credits;    /* most RECVs that the sender will ever promise
                                   at once to the receiver; in a REQ or REP,
                                   DQ_WINDOW_MIN or more                     */
    uint16_t        promised;   /* RECVs promised now; no more than credits;
                                   for a first QP, DQ_WINDOW_MIN or more     */
    uint8_t         reason;     /* dq_cause_t; in GONE, why the connection has
                                   failed, or 0 if it ends in order          */
    uint8_t         rd_atomic;  /* READs that the sender's QP can answer at
                                   once (IBA 9.7.4)                          */
    uint32_t        pid;        /* of the sender, for messages to people     */
    uint64_t        mark;       /* of the sender's attempt: random, and told to
                                   the receiver only. In an AGAIN to a first
                                   REQ, the mark of the interface. Not 0 in
                                   AGAIN, REQ, REP                           */
    uint64_t        peer_mark;  /* of the attempt that peer_epoch names: proves
                                   that the sender has heard of it. In a first
                                   REQ, the mark of an AGAIN, or 0           */
    char            host[DQ_WIRE_HOST_LEN]; /* of the sender, likewise:
                                   printable ASCII, as dq_wire_host() makes
                                   it                                        */
} dq_frame_t;

enum { DQ_FRAME_BYTES = 140 }; /* size of a packed frame                     */

/* The name of this host for a frame: cut to size, with question marks in place of
 * characters that a terminal could take for a command. */
void dq_wire_host(char host[DQ_WIRE_HOST_LEN], const char *name);

/* Writes DQ_FRAME_BYTES into @a buf. */
void dq_frame_pack(const dq_frame_t *frame, void *buf);

/* @a length is that of the bytes after the GRH. *frame is written only on OK. */
dq_wire_status_t dq_frame_parse(const void *buf, size_t length,
                                uint64_t my_cookie, dq_frame_t *frame);

/* The version of a frame for which dq_frame_parse() returned BAD_VERSION, if the frame
 * is for us; else DQ_WIRE_VERSION. */
unsigned dq_frame_version(const void *buf, size_t length, uint64_t my_cookie);

const char *dq_wire_status_name(dq_wire_status_t status);
const char *dq_frame_kind_name(unsigned kind);

#endif
