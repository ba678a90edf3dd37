/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What the two processes of a test tell each other over TCP: frames, each a JSON
 * object behind its length, 4 bytes, big-endian. The key "kind" says which frame it is.
 *
 * The first frame of both sides is "hello". It has the versions of this protocol that
 * the side speaks, from protocol_min to protocol_max. Both take the highest version that
 * both speak (daqiri_peer_agree). Nobody sends a kind that this version does not have.
 * A reader takes no notice of a key that it does not know, so a new key needs no new
 * version if an older reader can do without it.
 *
 * These functions turn structs into bytes and back; they do no I/O. Parsing takes any
 * bytes from anybody. What it returns is within the bounds below.
 */

#ifndef DAQIRI_PEER_H
#define DAQIRI_PEER_H

#include <stddef.h>
#include <stdint.h>

/* Versions 1 and 2 were binary: frames that began with "DQRI". */
#define DAQIRI_PEER_PROTOCOL_MIN 3
#define DAQIRI_PEER_PROTOCOL_MAX 3

enum {
    DAQIRI_PEER_HEADER_LEN  = 4,
    DAQIRI_PEER_PAYLOAD_MAX = 16384,
    DAQIRI_PEER_FRAME_MAX   = DAQIRI_PEER_HEADER_LEN + DAQIRI_PEER_PAYLOAD_MAX,
    DAQIRI_PEER_TEXT_MAX    = 768, /* with the zero that ends it */
    DAQIRI_PEER_WORD_MAX    = 32,
    DAQIRI_PEER_COUNTER_MAX = 64,  /* name of a counter */
    DAQIRI_PEER_BLOB_MAX    = 256, /* of an address that only UCX reads */
    DAQIRI_PEER_WHY_MAX     = 128
};

/* Largest that a peer may ask for. */
#define DAQIRI_PEER_SIZE_MAX  ((uint64_t)256 << 20)
#define DAQIRI_PEER_ITERS_MAX ((uint64_t)1 << 40)
#define DAQIRI_PEER_NS_MAX    ((uint64_t)7 * 24 * 3600 * 1000000000)

/* What a transport's name is made of: it becomes a word of a command. */
#define DAQIRI_PEER_TRANSPORT_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789_:"

/* Of a run of daqiri sweep: a serial is in front of each message. */
#define DAQIRI_PEER_FLOW_SIZE_MIN   1u
#define DAQIRI_PEER_FLOW_SIZE_MAX   (1u << 30)
#define DAQIRI_PEER_FLOW_WINDOW_MAX (1u << 20)

typedef enum daqiri_peer_kind {
    DAQIRI_PEER_HELLO = 1, /* the first frame of both sides */
    DAQIRI_PEER_INFO,      /* where to connect to */
    DAQIRI_PEER_READY,     /* a barrier: this stage is behind me */
    DAQIRI_PEER_DONE,      /* I have nothing more to send, or was asked to stop */
    DAQIRI_PEER_ABORT,     /* I failed */
    DAQIRI_PEER_FLOW_TERMS,   /* of a run; from the client */
    DAQIRI_PEER_FLOW_ADDRESS, /* where UCX, or TCP, is to connect to */
    DAQIRI_PEER_FLOW_SIDE,    /* what the server saw of it */
    DAQIRI_PEER_FLOW_COUNTER, /* and has counted; as many as there are */
    DAQIRI_PEER_LAST
} daqiri_peer_kind_t;

typedef enum daqiri_peer_service {
    DAQIRI_PEER_FLOW = 1, /* daqiri sweep, drop-curve, pingpong, tcp */
    DAQIRI_PEER_SERVICE_LAST
} daqiri_peer_service_t;

typedef enum daqiri_peer_pattern {
    DAQIRI_PEER_STREAM = 1, /* client to server */
    DAQIRI_PEER_ECHO   = 2, /* ping-pong */
    DAQIRI_PEER_DUPLEX = 3, /* both ways at once */
    DAQIRI_PEER_PATTERN_LAST
} daqiri_peer_pattern_t;

/* Bytes that are nobody's business but of who asked for them. */
typedef struct daqiri_peer_blob {
    uint16_t length;
    uint8_t  bytes[DAQIRI_PEER_BLOB_MAX]; /* zero behind the length */
} daqiri_peer_blob_t;

/* One frame; which member counts is said by the kind. Numbers are below 2^63. */
typedef struct daqiri_peer_frame {
    daqiri_peer_kind_t kind;
    union {
        struct {
            uint32_t protocol_min, protocol_max;
            char     service[DAQIRI_PEER_WORD_MAX]; /* maybe of a newer daqiri */
            char     version[DAQIRI_PEER_WORD_MAX]; /* of ucx-daqiri */
        } hello;
        struct {
            uint16_t lid;
            uint8_t  mtu;       /* 1 to 5, as enum ibv_mtu */
            uint8_t  is_global;
            uint32_t qpn;       /* 24 bits */
            uint32_t psn;       /* 24 bits */
            int32_t  gid_index;
            uint8_t  gid[16];
        } info;
        struct {
            char stage[DAQIRI_PEER_WORD_MAX];
        } ready;
        struct {
            uint64_t messages;
        } done;
        struct {
            char class_name[DAQIRI_PEER_WORD_MAX];
            char stage[DAQIRI_PEER_WORD_MAX];
            char text[DAQIRI_PEER_TEXT_MAX];
        } abort;
        struct {
            char     transport[DAQIRI_PEER_WORD_MAX]; /* a-z 0-9 _ : */
            uint32_t pattern;
            uint64_t size;        /* FLOW_SIZE_MIN to FLOW_SIZE_MAX */
            uint64_t window;      /* 1 to FLOW_WINDOW_MAX */
            uint64_t duration_ns; /* to NS_MAX; 0: not known */
            uint64_t pace;        /* bits a second; 0: none */
        } flow_terms;
        struct {
            uint16_t           port; /* of TCP; 0: none */
            daqiri_peer_blob_t device, iface, ep;
        } flow_address;
        struct {
            uint64_t sent, received;
            uint64_t disorder;
            uint64_t first_ns, last_ns; /* on its own clock, in this order */
            uint64_t elapsed_ns, cpu_ns;
            uint64_t preempted;
        } flow_side;
        struct {
            char     name[DAQIRI_PEER_COUNTER_MAX];
            uint64_t value;
        } flow_counter;
    };
} daqiri_peer_frame_t;

typedef enum daqiri_peer_verdict {
    DAQIRI_PEER_OK,
    DAQIRI_PEER_NOT_OURS,     /* too long a frame, or not daqiri at all */
    DAQIRI_PEER_BINARY        /* daqiri, with version 1 or 2 */
} daqiri_peer_verdict_t;

/* Writes length and object; `bytes` is DAQIRI_PEER_FRAME_MAX long. Returns the length
 * of both. Running out of memory ends the program. */
size_t daqiri_peer_pack(const daqiri_peer_frame_t *frame, uint8_t *bytes);

/* Of DAQIRI_PEER_HEADER_LEN bytes. *length_p is set in any case. */
daqiri_peer_verdict_t daqiri_peer_parse_header(const uint8_t *bytes,
                                               uint32_t *length_p);

/* Of the bytes behind the header. Returns 0, or -1 and what is wrong with them,
 * DAQIRI_PEER_WHY_MAX long. Texts are printable ASCII. */
int daqiri_peer_parse(const uint8_t *bytes, size_t length,
                      daqiri_peer_frame_t *frame, char *why);

/* "terms", or "flow_side". */
const char *daqiri_peer_kind_name(daqiri_peer_kind_t kind);

/* The highest version that both speak, of two ranges; 0 if there is none. */
unsigned daqiri_peer_agree(unsigned min, unsigned max, unsigned peer_min,
                           unsigned peer_max);

#endif
