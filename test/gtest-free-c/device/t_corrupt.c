/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What processes share can be written by all of them. Whoever reads there must
 * take nonsense for what it is: no store beyond a buffer, no loop without end,
 * no crash. What cannot be is the end of that QP, as of one that a device finds
 * to be out of order: the RECV it has begun completes with LOC_QP_OP_ERR, the
 * others are flushed, and QP_FATAL says so. All other QPs go on, and the damaged
 * one works again when it has been reset.
 *
 * The numbered cases damage one field each. The fuzz damages any words, in
 * rounds: T_SEED repeats one, T_ROUNDS says how many there are.
 */
#include "softverbs/base/sv_wire.h"
#include "t_fault.h"

#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SHORT = 64,
    LONG  = 40000,  /* three records */
    RECV  = 200000, /* of which no message here is as long */
    RECVS = 4
};

/* 1 ms, three times */
static const struct t_link mortal = {.timeout = 8, .retry_cnt = 2};

/* ---- what is in a segment ---- */

/* The segment that the QP lies in, as any process of this user may map it. */
static uint8_t *segment_map(uint32_t qpn)
{
    char path[T_SEGMENT_PATH];
    void *base;
    int fd;

    t_segment_path(path, qpn);
    fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    base = mmap(NULL, SV_SEG_BYTES, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_NORESERVE, fd, 0);
    ck_assert_ptr_ne(base, MAP_FAILED);
    close(fd);
    return base;
}

static ino_t segment_ino(uint32_t qpn)
{
    struct stat st;
    char path[T_SEGMENT_PATH];

    t_segment_path(path, qpn);
    return (stat(path, &st) == 0) ? st.st_ino : 0;
}

static void segment_unmap(uint8_t *base)
{
    ck_assert_int_eq(munmap(base, SV_SEG_BYTES), 0);
}

static struct sv_shm_qp *entry_of(uint8_t *base, uint32_t qpn)
{
    return (struct sv_shm_qp*)(base + SV_OFF_QP) + sv_qpn_index(qpn);
}

static uint8_t *ring_of(uint8_t *base, uint32_t qpn, uint32_t bytes)
{
    return base + sv_ring_offset(sv_qpn_index(qpn), bytes);
}

/* The n-th record of a message that the owner has not taken. */
static struct sv_rec *pending(uint8_t *base, uint32_t qpn, unsigned n)
{
    struct sv_shm_qp *entry = entry_of(base, qpn);
    uint64_t pos            = atomic_load(&entry->head);
    uint32_t bytes          = atomic_load(&entry->ring_bytes);
    struct sv_rec *rec;

    if ((pos < SV_RING_BYTES) && (entry->type == IBV_QPT_RC)) {
        bytes = SV_RING_SMALL; /* as far as the first SV_REC_MOVE */
    }
    for (;;) {
        rec = (struct sv_rec*)(ring_of(base, qpn, bytes) + (pos & (bytes - 1)));
        ck_assert_uint_eq(atomic_load(&rec->tag), pos ^ entry->key);
        if (rec->flags == SV_REC_MOVE) {
            bytes = rec->total;
            pos   = sv_ring_next(pos);
        } else if (n-- == 0) {
            return rec;
        } else {
            pos += sv_rec_span(rec->bytes);
        }
    }
}

/* ---- ends ---- */

/* RECVs 0, 1, ... that end where the buffer does. */
static void expect(struct t_end *end, size_t length)
{
    unsigned i;

    for (i = 0; i < RECVS; ++i) {
        ck_assert_int_eq(t_post_recv(end, i, end->size - length, length), 0);
    }
}

static void check_healthy(struct t_end ends[2])
{
    t_check_link(&ends[0], &ends[1]);
    t_check_link(&ends[1], &ends[0]);
}

/* The QP is over, and says it: of its RECVs, from the first on, `begun` were
 * begun. */
static void check_over(struct t_end *end, unsigned begun)
{
    unsigned i;

    for (i = 0; i < RECVS; ++i) {
        t_poll_is(end->recv_cq, i, (i < begun) ? IBV_WC_LOC_QP_OP_ERR :
                                                 IBV_WC_WR_FLUSH_ERR);
    }
    t_poll_none(end->recv_cq);
    ck_assert_int_eq(t_end_state(end), IBV_QPS_ERR);
    do {
        struct ibv_async_event event;

        ck_assert_int_eq(ibv_get_async_event(end->context, &event), 0);
        ibv_ack_async_event(&event);
        if (event.event_type == IBV_EVENT_QP_FATAL) {
            ck_assert_ptr_eq(event.element.qp, end->qp);
            break;
        }
        ck_assert_int_eq(event.event_type, IBV_EVENT_COMM_EST);
    } while (true);
    t_event_none(end);
}

/* As whoever recovers does it. */
static void check_again(struct t_end ends[2])
{
    struct t_address address[2] = {t_end_address(&ends[0]),
                                   t_end_address(&ends[1])};
    int i;

    for (i = 0; i < 2; ++i) {
        t_end_move(&ends[i], IBV_QPS_RESET);
    }
    for (i = 0; i < 2; ++i) {
        t_end_up(&ends[i], &address[1 - i], &mortal);
    }
    check_healthy(ends);
}

/* ---- records ---- */

enum field {
    NOTHING,
    BYTES,
    TOTAL,
    SOURCE,
    FLAGS,
    SL
};

struct damage {
    const char *name;
    size_t      length; /* of the message that is damaged */
    unsigned    record; /* which of its records */
    unsigned    begun;  /* RECVs that the damage finds begun */
    struct {
        enum field field;
        uint32_t   value;
    } set[4];
};

#define WHOLE (SV_REC_FIRST | SV_REC_LAST)

static const struct damage connected[] = {
    {"bytes without end", SHORT, 0, 0, {{BYTES, UINT32_MAX}}},
    {"bytes that wrap around", SHORT, 0, 0,
     {{BYTES, UINT32_MAX - 31}, {TOTAL, UINT32_MAX - 31}}},
    {"bytes beyond the ring", SHORT, 0, 0,
     {{BYTES, SV_RING_BYTES - 31}, {TOTAL, SV_RING_BYTES - 31}}},
    {"bytes beyond the message", SHORT, 0, 0, {{BYTES, SHORT + 1}}},
    {"bytes short of the message", SHORT, 0, 0, {{BYTES, SHORT - 1}}},
    {"no bytes", SHORT, 0, 0, {{BYTES, 0}}},
    {"total without end", SHORT, 0, 0, {{TOTAL, UINT32_MAX}}},
    {"total beyond the bytes", SHORT, 0, 0, {{TOTAL, SHORT + 1}}},
    {"total short of the bytes", SHORT, 0, 0, {{TOTAL, SHORT - 1}}},
    {"somebody else's", SHORT, 0, 0, {{SOURCE, 2}}},
    {"unknown flags", SHORT, 0, 0, {{FLAGS, WHOLE | 0x100}}},
    {"all flags", SHORT, 0, 0, {{FLAGS, UINT16_MAX}}},
    {"no flags", SHORT, 0, 0, {{FLAGS, 0}}},
    {"no FIRST", SHORT, 0, 0, {{FLAGS, SV_REC_LAST}}},
    {"no LAST", SHORT, 0, 0, {{FLAGS, SV_REC_FIRST}}},
    {"no bytes, no LAST", SHORT, 0, 0,
     {{FLAGS, SV_REC_FIRST}, {BYTES, 0}}},
    {"a message that is padding", SHORT, 0, 0, {{FLAGS, WHOLE | SV_REC_PAD}}},
    {"padding of a whole ring", SHORT, 0, 0, {{FLAGS, SV_REC_PAD}}},
    {"a route in a connection", SHORT, 0, 0, {{FLAGS, WHOLE | SV_REC_GRH}}},
    {"a WRITE with bytes", SHORT, 0, 0,
     {{FLAGS, WHOLE | SV_REC_WRITE | SV_REC_IMM}}},
    {"a WRITE without notice", SHORT, 0, 0,
     {{FLAGS, WHOLE | SV_REC_WRITE}, {BYTES, 0}}},
    {"a WRITE and an offer", SHORT, 0, 0,
     {{FLAGS, WHOLE | SV_REC_WRITE | SV_REC_IMM | SV_REC_OFFER}, {BYTES, 0}}},
    {"a WRITE that goes on", SHORT, 0, 0,
     {{FLAGS, SV_REC_FIRST | SV_REC_WRITE | SV_REC_IMM}, {BYTES, 0}}},
    {"an offer of a short message", SHORT, 0, 0,
     {{FLAGS, WHOLE | SV_REC_OFFER}}},
    {"an offer without pieces", SHORT, 0, 0,
     {{FLAGS, WHOLE | SV_REC_OFFER}, {TOTAL, 150000}, {BYTES, 0}}},
    {"an offer of half a piece", SHORT, 0, 0,
     {{FLAGS, WHOLE | SV_REC_OFFER}, {TOTAL, 150000}, {BYTES, 24}}},
    {"an offer of too many pieces", SHORT, 0, 0,
     {{FLAGS, WHOLE | SV_REC_OFFER}, {TOTAL, 150000}, {BYTES, 17 * 16}}},
    {"an offer that does not add up", SHORT, 0, 1,
     {{FLAGS, WHOLE | SV_REC_OFFER}, {TOTAL, 150000}}},
    {"a message that begins twice", LONG, 1, 1, {{FLAGS, SV_REC_FIRST}}},
    {"another total", LONG, 1, 1, {{TOTAL, LONG + 1}}},
    {"a fragment of nothing", LONG, 1, 1, {{BYTES, 0}}},
    {"a fragment beyond the message", LONG, 1, 1, {{BYTES, LONG}}},
    {"a fragment beyond the ring", LONG, 1, 1, {{BYTES, SV_RING_BYTES}}},
    {"a fragment without end", LONG, 2, 1, {{BYTES, UINT32_MAX}}},
    {"an end too early", LONG, 1, 1, {{FLAGS, SV_REC_LAST}}},
    {"no end", LONG, 2, 1, {{FLAGS, 0}}},
    {"an end beyond the message", LONG, 2, 1, {{BYTES, LONG}}},
    {"an end short of the message", LONG, 2, 1, {{BYTES, 1}}},
    {"somebody else's fragment", LONG, 1, 1, {{SOURCE, 0}}},
    {"an unknown fragment", LONG, 1, 1, {{FLAGS, 0x8000}}},
    {"a fragment that is a WRITE", LONG, 1, 1,
     {{FLAGS, SV_REC_LAST | SV_REC_WRITE | SV_REC_IMM}, {BYTES, 0}}},
    {"a fragment that is an offer", LONG, 1, 1,
     {{FLAGS, SV_REC_LAST | SV_REC_OFFER}, {BYTES, 16}}},
    {"no ring", SHORT, 0, 0, {{FLAGS, SV_REC_MOVE}, {TOTAL, 0}}},
    {"a ring of another size", SHORT, 0, 0,
     {{FLAGS, SV_REC_MOVE}, {TOTAL, 12345}}},
    {"a ring that is too large", SHORT, 0, 0,
     {{FLAGS, SV_REC_MOVE}, {TOTAL, 1u << 31}}},
    {"the same ring", SHORT, 0, 0,
     {{FLAGS, SV_REC_MOVE}, {TOTAL, SV_RING_SMALL}}},
    {"a smaller ring", LONG, 1, 1,
     {{FLAGS, SV_REC_MOVE}, {TOTAL, SV_RING_MIDDLE}}},
    {"the largest ring again", LONG, 1, 1,
     {{FLAGS, SV_REC_MOVE}, {TOTAL, SV_RING_BYTES}}},
    {"a message that is a move", SHORT, 0, 0,
     {{FLAGS, WHOLE | SV_REC_MOVE}, {TOTAL, SV_RING_BYTES}}}
};

static const struct damage datagrams[] = {
    {"bytes without end", SHORT, 0, 0, {{BYTES, UINT32_MAX}}},
    {"total without end", SHORT, 0, 0, {{TOTAL, UINT32_MAX - 20}}},
    {"more than an MTU", SHORT, 0, 0, {{BYTES, 4097}, {TOTAL, 4097}}},
    {"bytes beyond the datagram", SHORT, 0, 0, {{BYTES, SHORT + 1}}},
    {"no FIRST", SHORT, 0, 0, {{FLAGS, SV_REC_LAST}}},
    {"no LAST", SHORT, 0, 0, {{FLAGS, SV_REC_FIRST}}},
    {"unknown flags", SHORT, 0, 0, {{FLAGS, WHOLE | 0x200}}},
    {"a WRITE", SHORT, 0, 0,
     {{FLAGS, WHOLE | SV_REC_WRITE | SV_REC_IMM}, {BYTES, 0}}},
    {"an offer", SHORT, 0, 0,
     {{FLAGS, WHOLE | SV_REC_OFFER}, {TOTAL, 150000}}},
    {"padding of a whole ring", SHORT, 0, 0, {{FLAGS, SV_REC_PAD}}},
    {"another ring", SHORT, 0, 0,
     {{FLAGS, SV_REC_MOVE}, {TOTAL, SV_RING_BYTES}}},
    {"no QP's", SHORT, 0, 0, {{SOURCE, 1u << 24}}},
    {"an unknown service level", SHORT, 0, 0, {{SL, 16}}}
};

enum {
    CONNECTED = sizeof(connected) / sizeof(connected[0]),
    DATAGRAMS = sizeof(datagrams) / sizeof(datagrams[0])
};

static void do_damage(const struct damage *damage, struct sv_rec *rec)
{
    unsigned i;

    for (i = 0; (i < 4) && (damage->set[i].field != NOTHING); ++i) {
        switch (damage->set[i].field) {
        case BYTES:
            rec->bytes = damage->set[i].value;
            break;
        case TOTAL:
            rec->total = damage->set[i].value;
            break;
        case SOURCE:
            rec->src_qpn = damage->set[i].value;
            break;
        case FLAGS:
            rec->flags = damage->set[i].value;
            break;
        default:
            rec->sl = damage->set[i].value;
            break;
        }
    }
}

START_TEST(test_connected)
{
    const struct t_make make   = {.size = 2 * RECV};
    const struct damage *which = &connected[_i];
    struct t_end ends[2], healthy[2];
    struct ibv_wc wc;
    uint8_t *base;

    t_softverbs_only("what is damaged is how softverbs does it");
    fprintf(stderr, "%s\n", which->name);
    t_pair_open(healthy, NULL, NULL);
    t_pair_open(ends, &make, &mortal);
    base = segment_map(ends[1].qp->qp_num);
    expect(&ends[1], (which->length == LONG) ? LONG : RECV);
    ck_assert_int_eq(t_post_send(&ends[0], 1, 0, which->length,
                                 IBV_SEND_SIGNALED), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    do_damage(which, pending(base, ends[1].qp->qp_num, which->record));

    check_over(&ends[1], which->begun);
    /* a sender of what is acknowledged at once finds nobody any more */
    ck_assert_int_eq(t_post_send(&ends[0], 2, 0, SHORT, IBV_SEND_SIGNALED), 0);
    wc = t_poll(ends[0].send_cq);
    ck_assert((wc.status == IBV_WC_RETRY_EXC_ERR) ||
              (wc.status == IBV_WC_REM_OP_ERR));
    check_healthy(healthy);
    check_again(ends);
    check_healthy(healthy);
    segment_unmap(base);
    t_pair_close(ends);
    t_pair_close(healthy);
}
END_TEST

/* Of two ends of datagrams, the second is damaged. */
struct mail {
    struct t_end   ends[2];
    struct ibv_ah *ah;
    uint8_t       *base;
    struct sv_shm_qp *entry;
};

static void mail_open(struct mail *mail)
{
    const struct t_make make = {.type = IBV_QPT_UD};
    struct t_address to;

    t_pair_open(mail->ends, &make, NULL);
    to          = t_end_address(&mail->ends[1]);
    mail->ah    = t_create_ah(&mail->ends[0], &to);
    mail->base  = segment_map(to.qpn);
    mail->entry = entry_of(mail->base, to.qpn);
    expect(&mail->ends[1], SHORT + 40);
}

static void mail_post(struct mail *mail)
{
    ck_assert_int_eq(t_post_datagram(&mail->ends[0], mail->ah,
                                     mail->ends[1].qp->qp_num, T_QKEY, 1, 0,
                                     SHORT), 0);
    t_poll_is(mail->ends[0].send_cq, 1, IBV_WC_SUCCESS);
}

/* It is over, and works again. */
static void mail_close(struct mail *mail)
{
    struct t_address to = t_end_address(&mail->ends[1]);

    check_over(&mail->ends[1], 0);
    t_end_move(&mail->ends[1], IBV_QPS_RESET);
    t_end_up(&mail->ends[1], &to, NULL);
    expect(&mail->ends[1], SHORT + 40);
    mail_post(mail);
    t_poll_is(mail->ends[1].recv_cq, 0, IBV_WC_SUCCESS);
    ck_assert_int_eq(ibv_destroy_ah(mail->ah), 0);
    segment_unmap(mail->base);
    t_pair_close(mail->ends);
}

START_TEST(test_datagram)
{
    const struct damage *which = &datagrams[_i];
    struct t_end healthy[2];
    struct mail mail;

    t_softverbs_only("what is damaged is how softverbs does it");
    fprintf(stderr, "%s\n", which->name);
    t_pair_open(healthy, NULL, NULL);
    mail_open(&mail);
    mail_post(&mail);
    do_damage(which, pending(mail.base, mail.ends[1].qp->qp_num, 0));
    if (which->set[0].value == SV_REC_PAD) {
        mail_post(&mail);
    }
    mail_close(&mail);
    check_healthy(healthy);
    t_pair_close(healthy);
}
END_TEST

/* Where the next datagram would go: beside a line, beyond the ring. */
START_TEST(test_datagram_tail)
{
    static const uint64_t tails[] = {SV_RING_BYTES - 1, 8, 1ull << 40,
                                     SV_RING_BYTES + SV_LINE, UINT64_MAX};
    struct mail mail;

    t_softverbs_only("what is damaged is how softverbs does it");
    mail_open(&mail);
    atomic_store(&mail.entry->tail, tails[_i]);
    mail_post(&mail); /* it is lost */
    mail_close(&mail);
}
END_TEST

START_TEST(test_datagram_cq)
{
    struct mail mail;
    uint32_t cq;

    t_softverbs_only("what is damaged is how softverbs does it");
    mail_open(&mail);
    cq             = mail.entry->cq;
    mail.entry->cq = UINT32_MAX / 64;
    mail_post(&mail);
    t_end_wait(&mail.ends[1], IBV_QPS_ERR);
    t_poll_is(mail.ends[1].recv_cq, 0, IBV_WC_WR_FLUSH_ERR);
    mail.entry->cq = cq;
    ck_assert_int_eq(ibv_destroy_ah(mail.ah), 0);
    segment_unmap(mail.base);
    t_pair_close(mail.ends);
}
END_TEST

/* ---- what the sender reads ---- */

/* A receiver that claims to have read what was not sent, or not to have read
 * what it had: neither end goes on. */
static void check_head(bool ahead)
{
    const struct t_make make = {.size = 2 * RECV};
    struct t_end ends[2], healthy[2];
    struct sv_shm_qp *entry;
    uint8_t *base;

    t_softverbs_only("what is damaged is how softverbs does it");
    t_pair_open(healthy, NULL, NULL);
    t_pair_open(ends, &make, &mortal);
    base  = segment_map(ends[1].qp->qp_num);
    entry = entry_of(base, ends[1].qp->qp_num);
    t_check_link(&ends[0], &ends[1]);
    ck_assert_int_eq(t_post_recv(&ends[1], 9, 0, 128), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 1, 0, 128, IBV_SEND_SIGNALED), 0);
    t_poll_is(ends[1].recv_cq, 9, IBV_WC_SUCCESS);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);

    /* longer than the shortest RECV: the receiver has to say that it fits */
    expect(&ends[1], RECV);
    atomic_store(&entry->head, ahead ? 1ull << 40 : SV_LINE);
    ck_assert_int_eq(t_post_send(&ends[0], 2, 0, 128, IBV_SEND_SIGNALED), 0);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_REM_OP_ERR);
    t_end_wait(&ends[1], IBV_QPS_ERR);
    ck_assert_int_eq(t_end_state(&ends[0]), IBV_QPS_ERR);
    check_healthy(healthy);
    check_again(ends);
    segment_unmap(base);
    t_pair_close(ends);
    t_pair_close(healthy);
}

START_TEST(test_head_ahead)
{
    check_head(true);
}
END_TEST

START_TEST(test_head_behind)
{
    check_head(false);
}
END_TEST

/* The receiver names a CQ, or an SRQ, that there is not. */
START_TEST(test_terms)
{
    const struct t_make make = {.srq = true};
    struct t_end ends[2];
    struct sv_shm_qp *entry;
    uint8_t *base;

    t_softverbs_only("what is damaged is how softverbs does it");
    t_pair_open(ends, &make, &mortal);
    base  = segment_map(ends[1].qp->qp_num);
    entry = entry_of(base, ends[1].qp->qp_num);
    if (_i == 0) {
        entry->cq = UINT32_MAX / 64;
    } else {
        entry->srq = UINT32_MAX - 1;
    }
    ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 64), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 1, 0, 64, IBV_SEND_SIGNALED), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    segment_unmap(base);
    t_pair_close(ends);
}
END_TEST

/* What a key means is not for others to say: neither to send and receive, nor
 * to WRITE and READ in the process itself. */
START_TEST(test_own_keys)
{
    struct t_end ends[2];
    struct t_address to;
    struct sv_shm_mr *mr;
    uint8_t *base;
    int i;

    t_softverbs_only("what is damaged is how softverbs does it");
    t_pair_open(ends, NULL, NULL);
    base = segment_map(ends[0].qp->qp_num);
    for (i = 0; i < 2; ++i) {
        mr = (struct sv_shm_mr*)(base + SV_OFF_MR) + (ends[i].mr->rkey >> 16);
        mr->addr += 1ull << 46;
    }
    check_healthy(ends);
    to = t_end_address(&ends[1]);
    memset(ends[0].buf, 7, 100);
    ck_assert_int_eq(t_post_rdma(&ends[0], IBV_WR_RDMA_WRITE, 1, 0, 100, &to,
                                 500), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    ck_assert_mem_eq(ends[0].buf, ends[1].buf + 500, 100);
    ck_assert_int_eq(t_post_rdma(&ends[0], IBV_WR_RDMA_READ, 2, 1000, 100, &to,
                                 500), 0);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_SUCCESS);
    ck_assert_mem_eq(ends[0].buf + 1000, ends[1].buf + 500, 100);
    segment_unmap(base);
    t_pair_close(ends);
}
END_TEST

/* An event goes into the channel, whatever the entry calls it. */
START_TEST(test_own_channel)
{
    const struct t_make make = {.channel = true};
    struct t_end ends[2];
    struct sv_shm_cq *cq;
    struct sv_shm_qp *entry;
    struct ibv_cq *which;
    uint8_t *base;
    void *context;

    t_softverbs_only("what is damaged is how softverbs does it");
    t_pair_open(ends, &make, NULL);
    base  = segment_map(ends[1].qp->qp_num);
    entry = entry_of(base, ends[1].qp->qp_num);
    cq    = (struct sv_shm_cq*)(base + SV_OFF_CQ) + entry->cq;
    cq->name ^= 1;
    cq->state = ~cq->state;
    ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 64), 0);
    ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 0), 0);
    ck_assert_int_eq(t_post_send(&ends[0], 2, 0, 64, IBV_SEND_SIGNALED), 0);
    ck_assert_int_eq(ibv_get_cq_event(ends[1].channel, &which, &context), 0);
    ck_assert_ptr_eq(which, ends[1].recv_cq);
    ibv_ack_cq_events(which, 1);
    t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_SUCCESS);
    segment_unmap(base);
    t_pair_close(ends);
}
END_TEST

/* An offer of memory that the key does not cover. */
START_TEST(test_offered_elsewhere)
{
    const struct t_make make = {.size = 2 * RECV};
    const uint32_t total     = 150000;
    struct t_end ends[2];
    struct sv_shm_qp *own, *entry;
    struct ibv_sge *piece;
    struct sv_rec *rec;
    uint8_t *base;
    uint64_t end;

    t_softverbs_only("what is damaged is how softverbs does it");
    t_pair_open(ends, &make, &mortal);
    base  = segment_map(ends[1].qp->qp_num);
    entry = entry_of(base, ends[1].qp->qp_num);
    own   = entry_of(base, ends[0].qp->qp_num);
    expect(&ends[1], RECV);
    ck_assert_int_eq(t_post_send(&ends[0], 1, 0, SHORT, IBV_SEND_SIGNALED), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    rec    = pending(base, ends[1].qp->qp_num, 0);
    piece  = (struct ibv_sge*)(rec + 1);
    *piece = (struct ibv_sge){.addr = 1ull << 46, .length = total,
                              .lkey = ends[0].mr->lkey};
    rec->bytes = sizeof(*piece);
    rec->total = total;
    rec->flags = WHOLE | SV_REC_OFFER;
    end        = sv_rec_span(sizeof(*piece));
    atomic_store(&own->offer, (end ^ entry->key) | 1);

    t_poll_none(ends[1].recv_cq);
    t_end_move(&ends[1], IBV_QPS_ERR);
    t_poll_is(ends[1].recv_cq, 0, IBV_WC_WR_FLUSH_ERR);
    while (ibv_poll_cq(ends[1].recv_cq, 1, &(struct ibv_wc){0}) == 1) {
    }
    check_again(ends);
    segment_unmap(base);
    t_pair_close(ends);
}
END_TEST

/* A record that has lost its tag is not seen. The sender of what waits for an
 * answer makes the receiver look, who finds that something was sent. */
START_TEST(test_lost_record)
{
    const struct t_make make = {.size = 2 * RECV};
    struct t_end ends[2];
    struct sv_rec *rec;
    struct ibv_wc wc;
    uint8_t *base;

    t_softverbs_only("what is damaged is how softverbs does it");
    t_pair_open(ends, &make, &mortal);
    base = segment_map(ends[1].qp->qp_num);
    expect(&ends[1], RECV);
    ck_assert_int_eq(t_post_send(&ends[0], 1, 0, SHORT, IBV_SEND_SIGNALED), 0);
    t_poll_is(ends[0].send_cq, 1, IBV_WC_SUCCESS);
    rec = pending(base, ends[1].qp->qp_num, 0);
    atomic_store(&rec->tag, 0);
    ck_assert_int_eq(t_post_send(&ends[0], 2, 0, 150000, IBV_SEND_SIGNALED), 0);
    wc = t_poll(ends[0].send_cq);
    ck_assert((wc.status == IBV_WC_RETRY_EXC_ERR) ||
              (wc.status == IBV_WC_REM_OP_ERR));
    check_over(&ends[1], 0);
    check_again(ends);
    segment_unmap(base);
    t_pair_close(ends);
}
END_TEST

/* ---- who waits for a message is woken ---- */

/* Somebody has written over what says that the program waits. */
static uint64_t spoiled_state(uint64_t state, int how)
{
    switch (how) {
    case 0:
        return state & ~(uint64_t)SV_ARMED_MASK;
    case 1:
        return 0;
    case 2:
        return UINT64_MAX;
    case 3:
        return state + SV_DUE_ONE; /* and the hint is missing */
    default:
        return state | SV_DUE_MASK;
    }
}

enum { STATES = 5 };

START_TEST(test_sleeper)
{
    const struct t_make make = {.channel = true};
    struct t_end ends[2];
    struct sv_shm_qp *entry;
    struct sv_shm_cq *cq;
    struct ibv_cq *which;
    struct ibv_wc wc;
    uint8_t *base;
    void *context;
    int got = 0;

    t_softverbs_only("what is damaged is how softverbs does it");
    t_pair_open(ends, &make, NULL);
    base  = segment_map(ends[1].qp->qp_num);
    entry = entry_of(base, ends[1].qp->qp_num);
    cq    = (struct sv_shm_cq*)(base + SV_OFF_CQ) + entry->cq;
    ck_assert_int_eq(t_post_recv(&ends[1], 1, 0, 64), 0);
    ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 0), 0);
    atomic_store(&cq->state, spoiled_state(atomic_load(&cq->state), _i));
    ck_assert_int_eq(t_post_send(&ends[0], 2, 0, 64, IBV_SEND_SIGNALED), 0);
    /* as programs wait: an event may be one too many */
    while (got == 0) {
        ck_assert_int_eq(ibv_get_cq_event(ends[1].channel, &which, &context),
                         0);
        ck_assert_ptr_eq(which, ends[1].recv_cq);
        ibv_ack_cq_events(which, 1);
        ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 0), 0);
        got = ibv_poll_cq(ends[1].recv_cq, 1, &wc);
    }
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    t_poll_is(ends[0].send_cq, 2, IBV_WC_SUCCESS);
    segment_unmap(base);
    t_pair_close(ends);
}
END_TEST

/* ---- one of many QPs, of which nobody tells ---- */

enum { MANY = 40 };

/* It is idle, so its sender should ring a bell, and does not. */
static void send_in_silence(struct t_end *from, struct t_end *to,
                            struct ibv_cq *send_cq)
{
    uint8_t *base           = segment_map(to->qp->qp_num);
    struct sv_shm_qp *entry = entry_of(base, to->qp->qp_num);

    while (atomic_load(&entry->polled) != 0) {
        t_poll_none(to->recv_cq);
    }
    atomic_store(&entry->polled, 1);
    ck_assert_int_eq(t_post_recv(to, 1, 0, 64), 0);
    ck_assert_int_eq(t_post_send(from, 2, 0, 64, IBV_SEND_SIGNALED), 0);
    t_poll_is(send_cq, 2, IBV_WC_SUCCESS);
    segment_unmap(base);
}

static void many_open(struct t_end ends[2], struct t_end from[MANY],
                      struct t_end to[MANY])
{
    struct t_address from_at, to_at;
    int i;

    for (i = 0; i < MANY; ++i) {
        from[i] = t_sibling_open(&ends[0], false);
        to[i]   = t_sibling_open(&ends[1], false);
        from_at = t_end_address(&from[i]);
        to_at   = t_end_address(&to[i]);
        t_end_up(&from[i], &to_at, NULL);
        t_end_up(&to[i], &from_at, NULL);
    }
}

static void many_close(struct t_end ends[2], struct t_end from[MANY],
                       struct t_end to[MANY])
{
    int i;

    for (i = 0; i < MANY; ++i) {
        t_sibling_close(&from[i], &ends[0]);
        t_sibling_close(&to[i], &ends[1]);
    }
    t_pair_close(ends);
}

/* _i: the program polls, or sleeps. */
START_TEST(test_no_bell)
{
    const struct t_make make = {.channel = true, .depth = 64};
    struct t_end ends[2], from[MANY], to[MANY];
    struct ibv_cq *which;
    void *context;

    t_softverbs_only("what is damaged is how softverbs does it");
    t_pair_open(ends, &make, NULL);
    many_open(ends, from, to);
    if (_i == 1) {
        ck_assert_int_eq(ibv_req_notify_cq(ends[1].recv_cq, 0), 0);
    }
    send_in_silence(&from[MANY / 2], &to[MANY / 2], ends[0].send_cq);
    if (_i == 1) {
        ck_assert_int_eq(ibv_get_cq_event(ends[1].channel, &which, &context),
                         0);
        ibv_ack_cq_events(which, 1);
    }
    t_poll_is(ends[1].recv_cq, 1, IBV_WC_SUCCESS);
    many_close(ends, from, to);
}
END_TEST

/* ---- any words of it ---- */

enum {
    WORK     = 6,         /* requests of each round */
    LIMIT_NS = 200000000  /* of a QP that neither works nor fails: then the
                           * program gives it up, as daqiri's watchdog does */
};

/* Receives and answers, until it is killed. */
static void partner_run(int fd, const struct t_make *make)
{
    struct t_address to;
    struct ibv_cq *which;
    struct t_end end;
    struct ibv_wc wc;
    void *context;
    int i;

    t_end_open(&end, make);
    to = t_swap(fd, &end);
    t_end_up(&end, &to, &mortal);
    for (i = 0; i < 32; ++i) {
        ck_assert_int_eq(t_post_recv(&end, i, RECV, RECV), 0);
    }
    if (make->channel) {
        ck_assert_int_eq(ibv_req_notify_cq(end.recv_cq, 0), 0);
    }
    t_meet(fd);
    for (;;) {
        if (make->channel && (ibv_get_cq_event(end.channel, &which,
                                               &context) == 0)) {
            ibv_ack_cq_events(which, 1);
            (void)ibv_req_notify_cq(end.recv_cq, 0);
        }
        while ((ibv_poll_cq(end.recv_cq, 1, &wc) == 1) &&
            (wc.status == IBV_WC_SUCCESS)) {
            (void)t_post_recv(&end, 1, RECV, RECV);
            (void)t_post_send(&end, 2, 0, wc.byte_len % RECV, 0);
        }
        (void)ibv_poll_cq(end.send_cq, 1, &wc);
    }
}

static void partner(int fd)
{
    const struct t_make make = {.size = 2 * RECV, .depth = 64};

    partner_run(fd, &make);
}

/* The same asleep, and with an SRQ. */
static void partner_asleep(int fd)
{
    const struct t_make make = {.size = 2 * RECV, .depth = 64, .channel = true,
                                .srq = true};

    partner_run(fd, &make);
}

static void spoil(t_rng_t *rng, uint8_t *at, size_t bytes)
{
    static const uint32_t edges[] = {0, 1, 31, 63, 64, 2047, 2048, SV_FRAG_MAX,
                                     SV_RING_BYTES - 1, SV_RING_BYTES,
                                     SV_RING_BYTES + 1, INT32_MAX, UINT32_MAX,
                                     UINT32_MAX - 31};
    _Atomic uint32_t *word = (_Atomic uint32_t*)at +
                             t_rng_below(rng, bytes / sizeof(*word));

    switch (t_rng_below(rng, 3)) {
    case 0:
        atomic_fetch_xor(word, 1u << t_rng_below(rng, 32));
        break;
    case 1:
        atomic_store(word, edges[t_rng_below(rng, sizeof(edges) /
                                                  sizeof(edges[0]))]);
        break;
    default:
        atomic_store(word, (uint32_t)t_rng_next(rng));
        break;
    }
}

/* The ring that the entry names, which may be damaged by now. */
static uint32_t ring_bytes_of(const struct sv_shm_qp *entry)
{
    uint32_t bytes = atomic_load(&entry->ring_bytes);

    return ((bytes == SV_RING_BYTES) || (bytes == SV_RING_MIDDLE)) ?
                   bytes : SV_RING_SMALL;
}

/* Some field of a pending record of ours, or of our books. */
static void spoil_own(t_rng_t *rng, uint8_t *base, const struct t_end *end)
{
    struct sv_shm_qp *entry = entry_of(base, end->qp->qp_num);
    uint32_t bytes          = ring_bytes_of(entry);
    uint8_t *ring           = ring_of(base, end->qp->qp_num, bytes);
    uint64_t line           = t_rng_below(rng, 8) * SV_LINE;

    switch (t_rng_below(rng, 4)) {
    case 0:
        spoil(rng, (uint8_t*)entry, sizeof(*entry));
        break;
    case 1:
        spoil(rng, base + SV_OFF_MR +
                           (end->mr->rkey >> 16) * sizeof(struct sv_shm_mr),
              sizeof(struct sv_shm_mr));
        break;
    default:
        line += atomic_load(&entry->head);
        spoil(rng, ring + (line & (bytes - 1) & ~(uint64_t)(SV_LINE - 1)),
              sizeof(struct sv_rec));
        break;
    }
}

/* Some word of the partner's segment. The list of its robust locks is between
 * it and the kernel, and no process of this device reads it. */
static void spoil_other(t_rng_t *rng, uint8_t *base, const struct t_address *to)
{
    switch (t_rng_below(rng, 6)) {
    case 0:
        spoil(rng, base, offsetof(struct sv_shm_head, robust_next));
        break;
    case 1: /* one channel with two CQs is all that the partner has */
        spoil(rng, base + SV_OFF_CQ +
                           t_rng_below(rng, 3) * sizeof(struct sv_shm_cq),
              sizeof(struct sv_shm_cq));
        break;
    case 2:
        spoil(rng, base + SV_OFF_SRQ, sizeof(struct sv_shm_srq));
        break;
    case 3:
        spoil(rng, base + SV_OFF_MR +
                           (to->rkey >> 16) * sizeof(struct sv_shm_mr),
              sizeof(struct sv_shm_mr));
        break;
    default:
        spoil(rng, (uint8_t*)entry_of(base, to->qpn),
              sizeof(struct sv_shm_qp));
        break;
    }
}

static void post_some(t_rng_t *rng, struct t_end *end,
                      const struct t_address *to, unsigned *posted)
{
    static const size_t lengths[] = {1, SHORT, 4000, LONG, 150000};
    size_t length = lengths[t_rng_below(rng, 5)];
    int ret;

    switch (t_rng_below(rng, 4)) {
    case 0:
        ret = t_post_rdma(end, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, length, to,
                          RECV);
        break;
    case 1:
        ret = t_post_rdma(end, IBV_WR_RDMA_READ, 1, 0, length, to, RECV);
        break;
    default:
        ret = t_post_send(end, 1, 0, length, IBV_SEND_SIGNALED);
        break;
    }
    *posted += (ret == 0);
}

/* Everything that was posted comes to an end; if not by itself, then when the
 * program gives the QP up. */
static void finish(struct t_end *end, unsigned posted)
{
    uint64_t start = t_now_ns();
    unsigned done  = 0;
    struct ibv_wc wc;

    while (done < posted) {
        done += (ibv_poll_cq(end->send_cq, 1, &wc) == 1);
        (void)!ibv_poll_cq(end->recv_cq, 1, &wc);
        if ((t_now_ns() - start > LIMIT_NS) &&
            (t_end_state(end) != IBV_QPS_ERR)) {
            t_end_move(end, IBV_QPS_ERR);
        }
    }
}

static void fuzz_round(t_rng_t *rng)
{
    const struct t_make make = {.size = 2 * RECV, .depth = 64};
    struct t_end end, healthy[2];
    uint8_t *own, *other;
    struct t_address to;
    unsigned posted = 0;
    struct t_peer peer;
    char path[T_SEGMENT_PATH];
    ino_t ino;
    int i;

    t_peer_start(&peer, t_rng_once_in(rng, 3) ? partner_asleep : partner);
    t_pair_open(healthy, NULL, NULL);
    t_end_open(&end, &make);
    to = t_swap(peer.fd, &end);
    t_end_up(&end, &to, &mortal);
    for (i = 0; i < 32; ++i) {
        ck_assert_int_eq(t_post_recv(&end, i, RECV, RECV), 0);
    }
    t_meet(peer.fd);
    own   = segment_map(end.qp->qp_num);
    other = segment_map(to.qpn);
    ino   = segment_ino(to.qpn);

    for (i = 0; i < WORK; ++i) {
        if ((i > 0) || t_rng_once_in(rng, 4)) {
            if (t_rng_once_in(rng, 2)) {
                spoil_own(rng, own, &end);
            } else {
                spoil_other(rng, other, &to);
            }
        }
        post_some(rng, &end, &to, &posted);
    }
    finish(&end, posted);
    check_healthy(healthy);

    segment_unmap(own);
    segment_unmap(other);
    t_peer_kill(&peer);
    if (segment_ino(to.qpn) == ino) {
        t_segment_path(path, to.qpn);
        unlink(path); /* nobody may know any more whose it was */
    }
    t_end_close(&end);
    check_healthy(healthy);
    t_pair_close(healthy);
}

START_TEST(test_fuzz)
{
    const char *wanted = getenv("T_ROUNDS");
    int i, rounds      = (wanted != NULL) ? atoi(wanted) : 25;
    t_rng_t rng;

    t_softverbs_only("what is damaged is how softverbs does it");
    t_rng_init(&rng, _i);
    for (i = 0; i < rounds; ++i) {
        fuzz_round(&rng);
    }
}
END_TEST

static Suite *suite_corrupt(void)
{
    Suite *suite = t_suite("corrupt",
                           "sender", test_head_ahead,
                           "sender", test_head_behind,
                           "sender", test_datagram_cq,
                           "own", test_own_keys,
                           "own", test_own_channel,
                           "own", test_offered_elsewhere,
                           "own", test_lost_record,
                           NULL);

    t_suite_add_loop(suite, "connected", test_connected, CONNECTED);
    t_suite_add_loop(suite, "datagram", test_datagram, DATAGRAMS);
    t_suite_add_loop(suite, "tail", test_datagram_tail, 5);
    t_suite_add_loop(suite, "terms", test_terms, 2);
    t_suite_add_loop(suite, "sleeper", test_sleeper, STATES);
    t_suite_add_loop(suite, "no_bell", test_no_bell, 2);
    t_suite_add_loop(suite, "fuzz", test_fuzz, 4);
    return suite;
}

T_MAIN(suite_corrupt)
