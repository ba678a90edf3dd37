/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What processes see of each other: the layout of a node's shared segment.
 *
 * A process that opens the device owns one segment, a sparse file in /dev/shm
 * named softverbs-<uid>.<slot>. The slot is in the upper bits of its QP
 * numbers, so a QP number alone says which file to map.
 *
 *     0        head        who owns this segment, is it alive, how full
 *     4K       control     a request to the owner, and its answer
 *     20K      QP table    one entry of 4 lines for each inbound side of a QP
 *     ..       CQ table    is anybody waiting on this CQ, and on which channel
 *     ..       SRQ table   how many RECVs are posted, how many are claimed
 *     ..       MR table    what a remote key may reach
 *     ..       small rings one for each QP entry: what its sender writes
 *     ..       middle      one larger ring for each QP entry, while it is needed
 *     ..       large       one large ring for each QP entry, once it is needed
 *
 * Nobody may touch a page before its owner has reserved it with fallocate(): a
 * store into a hole of a full tmpfs is a SIGBUS. The head says which pages of
 * each table are reserved.
 *
 * A ring is a sequence of records. A record is a header and its payload, and
 * starts on a cache line. Its sender publishes it by storing its tag last. The
 * tag is the record's position (bytes since the ring was opened) XOR a random
 * key that changes with each opening. So what an earlier lap or an earlier
 * connection left behind does not look like a record. One thing only has to be
 * erased: see sv_rec_clear_end().
 *
 *     owner reads at  pos = head         sender writes at  pos = tail
 *          v                                  v
 *     [hdr|payload....][hdr|payload][hdr|pay..]--- free ---
 *
 * Any process of the user can write anything here, by mistake at least. Three
 * rules follow. Read a field that others write once. Trust no value that could
 * lead beyond a buffer or into an endless loop. If a value is one that no owner
 * or sender stores, fail the QP that it is about. Values that are possible are
 * trusted. A process keeps what it must rely on (its keys, its identity, its
 * peers) in private memory, and stores a copy here for the others.
 *
 * All counters run free; differences are taken modulo their width. Each field
 * has one writer, named in its comment. "Owner" is the segment's process.
 * "Sender" is the process whose QP is connected to this entry.
 */
#ifndef SV_WIRE_H
#define SV_WIRE_H

#include <stdatomic.h>
#include <stdint.h>

#define SV_MAGIC      0x7362726576746673ull /* "sftverbs" in memory */
#define SV_VERSION    8u
#define SV_LINE       64u
#define SV_PAGE       4096u

/* A QP number is slot << SV_SERIAL_BITS | serial. The serial modulo SV_QP_MAX
 * is the QP's index in the QP table. Serials are handed out in a circle, so a
 * number comes back only after 16384 others. Slot 0 is not used: QP numbers 0
 * and 1 are special. */
enum {
    SV_SLOT_BITS   = 10,
    SV_SERIAL_BITS = 14,
    SV_SLOT_MAX    = (1 << SV_SLOT_BITS) - 1,
    SV_SERIAL_MASK = (1 << SV_SERIAL_BITS) - 1,
    SV_QP_MAX      = 8192,
    SV_CQ_MAX      = 4096,
    SV_SRQ_MAX     = 4096,
    SV_MR_MAX      = 65536
};

/* Ring sizes were measured: 128 KiB with 16 KiB fragments is the knee of the
 * curve. But most connections of a large job carry little, so one begins in the
 * small ring, which a QP has from the start. A sender that finds the ring too
 * short for a message, or full, reserves a larger one. Its record SV_REC_MOVE
 * says so: the next record is at the next multiple of SV_RING_BYTES, in that
 * ring. One line of a ring is kept free for this record. If there is no room in
 * /dev/shm, the sender stays where it is. The middle ring holds what a sender
 * of short messages may have under way. Datagrams use the large ring from the
 * beginning. */
#define SV_RING_BYTES    (128u << 10)
#define SV_RING_MIDDLE   (16u << 10)
#define SV_RING_SMALL    2048u
#define SV_FRAG_MAX      (16u << 10)

/* struct sv_shm_head.life: the thread id of the owner's service thread while it
 * lives. The word is on that thread's robust list, so the kernel sets
 * FUTEX_OWNER_DIED in it, whatever the process dies of. */
#define SV_LIFE_CLOSED   0x20000000u
/* The owner's link is down (an injected fault): the owner lives, but nothing
 * reaches it. The kernel leaves this bit alone: to it, the bit is
 * FUTEX_WAITERS. */
#define SV_LIFE_LINK_DOWN 0x80000000u

/* Words of struct sv_shm_head.bells, of 64 QPs each, and how many of them share a
 * bit of `bell`. */
enum {
    SV_BELL_WORDS = SV_QP_MAX / 64,
    SV_BELL_SHARE = SV_BELL_WORDS / 64
};

/* Words of a bitmap that has a bit for each page of a table. */
#define SV_PAGE_WORDS(_entries, _stride) \
    ((_entries) / (SV_PAGE / (_stride)) / 64)

struct sv_shm_head {
    uint64_t         magic;
    uint32_t         version;
    uint32_t         slot;
    int32_t          pid;
    uint32_t         needs_fence; /* owner has no membarrier: fence for it */
    uint64_t         start_time;  /* clock ticks since boot, tells pids apart */
    uint64_t         pid_ns;      /* inode of the owner's PID namespace */
    _Atomic uint32_t ready;       /* 1: all of the above is valid */

    /* Which pages of each table are reserved, a bit for each. */
    _Alignas(SV_LINE) _Atomic uint64_t qp_pages[SV_PAGE_WORDS(SV_QP_MAX, 256)];
    _Atomic uint64_t cq_pages[SV_PAGE_WORDS(SV_CQ_MAX, 64)];
    _Atomic uint64_t srq_pages[SV_PAGE_WORDS(SV_SRQ_MAX, 128)];
    _Atomic uint64_t mr_pages[SV_PAGE_WORDS(SV_MR_MAX, 64)];
    _Atomic uint64_t small_pages[SV_PAGE_WORDS(SV_QP_MAX, SV_RING_SMALL)];

    /* Read by every sender for every message, written when the owner dies. */
    _Alignas(SV_LINE) uintptr_t robust_next; /* kernel's list, owner's memory */
    _Atomic uint32_t life;

    /* Futex: incremented by whoever wants the owner's service thread to run. */
    _Alignas(SV_LINE) _Atomic uint32_t doorbell;
    _Atomic uint32_t faults;      /* some struct sv_shm_qp.fault is set */
    _Atomic uint32_t audit;       /* some struct sv_shm_qp.awaits is set */
    _Atomic uint32_t deferred;    /* an event is due that no hint tells of */
    _Atomic uint32_t control_asked;    /* requests in struct sv_shm_control */
    _Atomic uint32_t control_answered; /* the last one that has its answer */

    /* Bells: one bit for each QP entry that has something new and is not polled
     * (struct sv_shm_qp.polled), and one bit for each SV_BELL_SHARE words of
     * those bits. Senders set them, the owner clears them. */
    _Alignas(SV_LINE) _Atomic uint64_t bell;
    _Alignas(SV_LINE) _Atomic uint64_t bells[SV_BELL_WORDS];

    /* Atomics of all peers on this process's memory exclude each other. */
    _Alignas(SV_LINE) _Atomic uint32_t atomic_lock;
};

/* The asking process reserves it. A lock on the file lets one ask at a time. */
enum { SV_CONTROL_BYTES = 8192 };

struct sv_shm_control {
    char request[SV_CONTROL_BYTES];
    char reply[SV_CONTROL_BYTES];
};

/* struct sv_shm_qp.fault: the enum ibv_wc_status of the request that was
 * denied, or one of these, which a plan of faults uses. */
enum {
    SV_KILL_FATAL   = 1000, /* with the event QP_FATAL */
    SV_KILL_QUIETLY = 1001
};

/* Verdicts of the receiver on a message, struct sv_shm_qp.nak. */
enum sv_nak {
    SV_NAK_NONE,
    SV_NAK_INVALID_REQUEST, /* message longer than its RECV */
    SV_NAK_OPERATIONAL      /* receiver could not use its RECV */
};

struct sv_shm_qp {
    /* Line 0: the owner's terms. Written while accept is 0 and busy is 0. */
    _Atomic uint32_t qpn;         /* 0: entry is free */
    _Atomic uint32_t accept;      /* epoch while packets are taken, else 0 */
    _Atomic uint32_t dest_qpn;    /* RC: the only QP that is listened to */
    uint32_t         type;        /* enum ibv_qp_type */
    uint32_t         rq_psn;
    _Atomic uint32_t qkey;        /* UD */
    uint64_t         key;
    uint32_t         cq;          /* CQ entry of the receive CQ, 0: no events */
    uint32_t         srq;         /* SRQ entry, or SV_NO_SRQ */
    uint32_t         pdn;
    _Atomic uint32_t access;      /* enum ibv_access_flags of the QP */
    _Atomic uint32_t min_rnr;     /* code of the RNR timer */
    uint32_t         last_epoch;  /* of the entry's former QP */
    _Atomic uint32_t waiting;     /* sender sleeps: ring when there is room */
    _Atomic uint32_t polled;      /* the owner looks; if not, ring its bell */

    /* Line 1: the sender's. `busy` brackets all that the sender does to the
     * owner. It holds the sender's lock id, because dest_qpn may already name a
     * successor. */
    _Alignas(SV_LINE) _Atomic uint32_t busy;
    _Atomic uint32_t ring_bytes;  /* of its ring, 0 until it has begun */
    _Atomic uint32_t claims;      /* SRQ: RECVs claimed for this QP */
    _Atomic uint32_t fault;       /* a request that must kill the owner's QP */
    _Atomic uint64_t awaits;      /* tail, when the sender last had to wait: all
                                   * up to there has been published */

    /* Line 2: the owner's, hot. */
    _Alignas(SV_LINE) _Atomic uint64_t head;
    _Atomic uint32_t posted;      /* RECVs posted on the QP's own queue */
    _Atomic uint32_t min_len;     /* shortest of all RECVs posted so far */
    _Atomic uint32_t nak;         /* enum sv_nak */
    _Atomic uint64_t declined;    /* ring position behind the last offer that
                                   * the owner could not take */
    _Atomic uint64_t offer;       /* what the owner itself offers to the other
                                   * end (sv_offer.c), 0: nothing */

    /* Line 3: all UD senders', under lock. */
    _Alignas(SV_LINE) _Atomic uint32_t lock;
    _Atomic uint64_t tail;
    _Atomic uint64_t jam_head;    /* head at which waiting was given up */
};

#define SV_NO_SRQ    UINT32_MAX

/* struct sv_shm_cq.state, from the lowest bit on: what the owner waits for; how
 * many events it has not read (due); which CQ this is of those that have used
 * the entry (cookie). It is one word, so that an event belongs to the CQ that
 * was armed. */
enum sv_armed {
    SV_ARMED_NO,
    SV_ARMED_SOLICITED,
    SV_ARMED_ANY,
    SV_ARMED_MASK = 3
};

#define SV_DUE_ONE      ((uint64_t)SV_ARMED_MASK + 1)
#define SV_DUE_MASK     (UINT32_MAX & ~(uint64_t)SV_ARMED_MASK)
#define SV_COOKIE_SHIFT 32

/* Entry 0 belongs to no CQ and is never armed. */
struct sv_shm_cq {
    /* The owner arms the CQ and takes what is due. Whoever fires disarms it and
     * adds one event. */
    _Alignas(SV_LINE) _Atomic uint64_t state;
    uint64_t name;                /* owner: of the channel's socket */
};

struct sv_shm_srq {
    _Alignas(SV_LINE) _Atomic uint32_t posted;  /* owner */
    _Atomic uint32_t min_len;                   /* owner */
    _Alignas(SV_LINE) _Atomic uint32_t claimed; /* whoever takes a RECV */
};

/* A key is index << 16 | generation; generation 0 is never given out. */
struct sv_shm_mr {
    _Alignas(SV_LINE) _Atomic uint32_t key;     /* 0: nothing here */
    uint32_t access;
    uint32_t pdn;
    uint64_t iova;
    uint64_t addr;
    uint64_t length;
};

enum sv_rec_flags {
    SV_REC_FIRST     = 1 << 0,
    SV_REC_LAST      = 1 << 1,
    SV_REC_IMM       = 1 << 2,
    SV_REC_SOLICITED = 1 << 3,
    SV_REC_WRITE     = 1 << 4, /* the notice of a WRITE_WITH_IMM, no payload */
    SV_REC_GRH       = 1 << 5, /* UD: sent with a global route */
    SV_REC_PAD       = 1 << 6, /* nothing up to the end of the ring */
    SV_REC_OFFER     = 1 << 7, /* the message's pieces, to be fetched */
    SV_REC_MOVE      = 1 << 8  /* goes on in a ring of `total` bytes */
};

struct sv_rec {
    _Atomic uint64_t tag;      /* position ^ key, stored last */
    uint32_t         bytes;    /* payload in this record */
    uint32_t         total;    /* payload of the whole message */
    uint32_t         src_qpn;
    uint32_t         imm;
    uint16_t         flags;    /* enum sv_rec_flags */
    uint8_t          sl;
    uint8_t          reserved[5];
};

_Static_assert(sizeof(struct sv_rec) == 32, "half a line is for payload");
/* The strides of the tables must match the page bitmaps above. */
_Static_assert(sizeof(struct sv_shm_qp) == 256, "four lines");
_Static_assert(sizeof(struct sv_shm_cq) == 64, "one line");
_Static_assert(sizeof(struct sv_shm_srq) == 128, "two lines");
_Static_assert(sizeof(struct sv_shm_mr) == 64, "one line");
_Static_assert(sizeof(struct sv_shm_head) <= SV_PAGE, "one page");
_Static_assert(sizeof(struct sv_shm_control) % SV_PAGE == 0, "whole pages");

#define SV_OFF_CONTROL ((uint64_t)SV_PAGE)
#define SV_OFF_QP      (SV_OFF_CONTROL + sizeof(struct sv_shm_control))
#define SV_OFF_CQ      (SV_OFF_QP + SV_QP_MAX * sizeof(struct sv_shm_qp))
#define SV_OFF_SRQ     (SV_OFF_CQ + SV_CQ_MAX * sizeof(struct sv_shm_cq))
#define SV_OFF_MR      (SV_OFF_SRQ + SV_SRQ_MAX * sizeof(struct sv_shm_srq))
#define SV_OFF_SMALL   (SV_OFF_MR + SV_MR_MAX * sizeof(struct sv_shm_mr))
#define SV_OFF_MIDDLE  (SV_OFF_SMALL + (uint64_t)SV_QP_MAX * SV_RING_SMALL)
#define SV_OFF_RING    (SV_OFF_MIDDLE + (uint64_t)SV_QP_MAX * SV_RING_MIDDLE)
#define SV_SEG_BYTES   (SV_OFF_RING + (uint64_t)SV_QP_MAX * SV_RING_BYTES)

static inline uint32_t sv_qpn_slot(uint32_t qpn)
{
    return qpn >> SV_SERIAL_BITS;
}

static inline uint32_t sv_qpn_index(uint32_t qpn)
{
    return qpn & (SV_QP_MAX - 1);
}

/* Where the ring of this size of a QP entry is in the segment. */
static inline uint64_t sv_ring_offset(uint32_t index, uint32_t bytes)
{
    return ((bytes == SV_RING_BYTES)  ? SV_OFF_RING :
            (bytes == SV_RING_MIDDLE) ? SV_OFF_MIDDLE : SV_OFF_SMALL) +
           (uint64_t)index * bytes;
}

/* Where a sender goes on that leaves its ring at `position`. */
static inline uint64_t sv_ring_next(uint64_t position)
{
    return (position | (SV_RING_BYTES - 1)) + 1;
}

/* Whether the entry may be touched: its page is reserved. */
static inline int sv_entry_exists(const _Atomic uint64_t *pages,
                                  uint32_t stride, uint32_t index)
{
    uint32_t page = index / (SV_PAGE / stride);

    return (atomic_load_explicit(&pages[page / 64], memory_order_relaxed) >>
            (page % 64)) & 1;
}

/* These take struct sv_shm_cq.state. */
static inline int sv_is_armed(uint64_t state)
{
    return (state & SV_ARMED_MASK) != SV_ARMED_NO;
}

static inline int sv_is_due(uint64_t state)
{
    return (state & SV_DUE_MASK) != 0;
}

static inline uint32_t sv_rec_span(uint32_t bytes)
{
    return (sizeof(struct sv_rec) + bytes + SV_LINE - 1) & ~(SV_LINE - 1);
}

/* A sender calls this before it writes a record of `span` bytes. The payload may
 * end with a few bytes in the last line, over part of a tag of an earlier lap.
 * In the next lap a record may begin in that line. Its tag differs from the old
 * one in a few bytes only, and the payload may have just those: two bytes do in a
 * short ring, once in 65536 times. So the rest of the old tag has to go. */
static inline void sv_rec_clear_end(struct sv_rec *rec, uint32_t span)
{
    struct sv_rec *last = (struct sv_rec*)((uint8_t*)rec + span - SV_LINE);

    atomic_store_explicit(&last->tag, 0, memory_order_relaxed);
}

#endif
