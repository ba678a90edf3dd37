/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send ledger: which work requests the NIC still owns.
 *
 *     retired            last signal              posted
 *        |  owned by the NIC  |   unsignalled tail   |
 *   -----[####################|......................]-----> ids
 *        <------------ in use <= depth -------------->
 *
 * A work request costs one slot of its send queue (SQ) and one slot of the
 * completion queue (CQ), signalled or not: when a QP dies, the device flushes
 * every one of them into the CQ. So both are debited at post and credited at
 * retire, and "full" is a subtraction that cannot be wrong.
 *
 * Ids run freely and wrap at 2^32; id modulo the power of two above the depth
 * is the slot. The id is the wr_id, so every completion names its request.
 *
 * Three promises, each checked by dq_sq_check() and by the unit tests:
 *  - in use <= depth, and the CQ slots in use are the sum over all its SQs;
 *  - the newest request of a full SQ is signalled, so a full SQ always drains;
 *  - unsignalled tails hold at most half of the CQ, so a full CQ always
 *    drains, however many SQs share it.
 *
 * Credits are the peer's promise of posted RECVs. A message takes one. Data
 * leaves the last one for a credit grant: two peers that have both run out of
 * data credits can still release each other.
 *
 * While the gate is still closed a few requests may be posted all the same, to
 * be held until it opens: whoever sends first need not be told to come back.
 * They are debited like any other. Their messages live on the credits that
 * every peer promises at the least (DQ_WINDOW_MIN).
 *
 * Threads: one. Complexity: every function O(1), but dq_sq_unpost(), which is
 * O(signal_every + n).
 */
#ifndef DQ_SQ_H
#define DQ_SQ_H

#include "dq.h"

/* Why a work request may not be posted now. All but DEAD mean: ask again. */
typedef enum {
    DQ_ADMIT_OK,
    DQ_ADMIT_SQ_FULL,
    DQ_ADMIT_CQ_FULL,
    DQ_ADMIT_NO_CREDIT,
    DQ_ADMIT_NOT_UP,
    DQ_ADMIT_DEAD,
    DQ_ADMIT_LAST
} dq_admit_t;

typedef enum {
    DQ_WR_MSG,   /* SEND of data: a credit, and leaves the control reserve   */
    DQ_WR_RMA,   /* one-sided: no credit, leaves the control reserve         */
    DQ_WR_GRANT  /* SEND of a credit grant: a credit, may use every reserve  */
} dq_wr_class_t;

typedef enum {
    DQ_GATE_NOT_UP, /* connecting: nothing may be posted                     */
    DQ_GATE_UP,
    DQ_GATE_LOST,   /* the QP is gone, what is posted waits for another      */
    DQ_GATE_DEAD    /* for ever                                              */
} dq_gate_t;

/* Slots of the send CQ, shared by all SQs that complete into it. */
typedef struct {
    uint32_t depth;   /* CQEs the device gave                                */
    uint32_t used;    /* slots owed to posted requests                       */
    uint32_t signals; /* of those, requests that will complete by themselves */
} dq_cq_t;

typedef struct {
    uint32_t  posted;        /* id of the next request                       */
    uint32_t  retired;       /* id of the oldest request in use              */
    uint32_t  depth;         /* most requests in use                         */
    uint32_t  credits;       /* RECVs that the peer has promised us          */
    uint32_t  unsignalled;   /* length of the unsignalled tail               */
    uint32_t  signal_every;  /* longest run that ends in a signal            */
    uint32_t  mask;          /* slots - 1                                    */
    uint32_t  signals;       /* signalled requests ever posted               */
    uint32_t  signals_over;  /* of those, retired                            */
    uint32_t  window;        /* most credits that the peer may promise       */
    dq_gate_t gate;
    uint32_t  *slot;         /* `signals` as it was after each post          */
} dq_sq_t;

typedef struct {
    uint32_t id;     /* goes into wr_id                                      */
    int      signal; /* non-zero: ask the device for a completion            */
} dq_ticket_t;

enum {
    DQ_SQ_RESERVE        = 1, /* SQ slots that only a grant may take              */
    DQ_SQ_PRECONNECT_MAX = 8, /* requests that may wait for the gate to open */
    DQ_CREDIT_SPARE      = 1, /* credits that only a grant may take               */
    DQ_SQ_DEPTH_MIN      = 4,
    DQ_SQ_DEPTH_MAX      = 1 << 20,
    DQ_CQ_DEPTH_MIN      = 4
};

/* Number of uint32_t that dq_sq_init() wants for @a depth requests. */
uint32_t dq_sq_slots(uint32_t depth);

/*
 * @a slot is memory for dq_sq_slots(depth) words, the caller's, alive as long
 * as the ledger. signal_every is cut to a quarter of the depth. The gate
 * starts at NOT_UP. @a first_id lets a test start just before the wrap.
 */
void dq_sq_init(dq_sq_t *sq, uint32_t depth, uint32_t signal_every,
                uint32_t first_id, uint32_t *slot);

void dq_cq_init(dq_cq_t *cq, uint32_t depth);

static inline uint32_t dq_sq_in_use(const dq_sq_t *sq)
{
    return sq->posted - sq->retired;
}

/* Will half of the CQ be owed with @a more requests? */
static inline int dq_cq_is_pressed(const dq_cq_t *cq, uint32_t more)
{
    return cq->used + more >= (cq->depth / 2);
}

/* Out of line: names the reason once something is short. */
dq_admit_t dq_sq_refusal(const dq_sq_t *sq, const dq_cq_t *cq,
                         dq_wr_class_t wr_class);

/* May a request of this class be posted now? A question: changes nothing. */
static inline dq_admit_t dq_sq_admit(const dq_sq_t *sq, const dq_cq_t *cq,
                                     dq_wr_class_t wr_class)
{
    if (DQ_LIKELY((sq->gate == DQ_GATE_UP) &&
                  (dq_sq_in_use(sq) + DQ_SQ_RESERVE < sq->depth) &&
                  (cq->used + DQ_SQ_RESERVE < cq->depth) &&
                  ((wr_class == DQ_WR_RMA) ||
                   (sq->credits > DQ_CREDIT_SPARE)))) {
        return DQ_ADMIT_OK;
    }
    return dq_sq_refusal(sq, cq, wr_class);
}

/* Before the gate has ever been open: count on the credits that there will be
 * in any case, for dq_sq_admit_preconnect(). */
void dq_sq_expect(dq_sq_t *sq);

/*
 * May a request of this class be posted now, to be held until the gate opens?
 * Held requests complete late, or never: they get at most half of the CQ, so
 * that conns which are up always have the other half. Where the gate is open or
 * dead, the same as dq_sq_admit().
 */
dq_admit_t dq_sq_admit_preconnect(const dq_sq_t *sq, const dq_cq_t *cq,
                                  dq_wr_class_t wr_class);

/*
 * The gate opens: the peer promises @a promised RECVs, DQ_WINDOW_MIN at least, of
 * which the messages that were held have taken some, and never more than @a window.
 * Returns 0, or -1 if it promises fewer, or more: a broken peer, and nothing is
 * changed.
 */
int dq_sq_open(dq_sq_t *sq, uint32_t window, uint32_t promised);

/* The gate closes until dq_sq_reopen(). What is posted stays in the ledger, and
 * no credit of the old QP is worth anything. */
void dq_sq_lose(dq_sq_t *sq);

/*
 * A new QP: the peer promises @a promised RECVs for it, of a window that may be
 * news, for the first QP may have been lost before it was known. Of these the
 * messages that are sent again take @a taken. Credits that have come on the new
 * QP already count, too. Returns 0, or -1 if it promises fewer than that, or all
 * together more than the window: a broken peer, and nothing is changed.
 */
int dq_sq_reopen(dq_sq_t *sq, uint32_t window, uint32_t promised,
                 uint32_t taken);

/* Was a completion asked for, when this request, which is in use, was posted? */
int dq_sq_is_signalled(const dq_sq_t *sq, uint32_t id);

/* The ticket of the next request, if it is admitted. A question: the debit is
 * dq_sq_debit(). @a want_signal asks for a signal; the ledger adds its own where
 * a wait would otherwise never end. */
static inline dq_ticket_t dq_sq_ticket(const dq_sq_t *sq, const dq_cq_t *cq,
                                       int want_signal)
{
    return (dq_ticket_t){
        .id     = sq->posted,
        .signal = want_signal || (sq->unsignalled + 1 >= sq->signal_every) ||
                  (dq_sq_in_use(sq) + 1 + DQ_SQ_RESERVE >= sq->depth) ||
                  dq_cq_is_pressed(cq, 1),
    };
}

/* Is the next one admitted if it is a message, and with a ticket of no signal? What
 * dq_sq_admit() and dq_sq_ticket() say, in fewer steps, for what most are. */
static inline int dq_sq_is_plain(const dq_sq_t *sq, const dq_cq_t *cq)
{
    return (sq->gate == DQ_GATE_UP) && (sq->credits > DQ_CREDIT_SPARE) &&
           (sq->unsignalled + 1 < sq->signal_every) &&
           (dq_sq_in_use(sq) + 1 + DQ_SQ_RESERVE < sq->depth) &&
           !dq_cq_is_pressed(cq, 1);
}

/* What a debit does; dq_sq_debit() and dq_sq_mark() say when it may. */
static inline void dq_sq_enter(dq_sq_t *sq, dq_cq_t *cq, dq_wr_class_t wr_class,
                               dq_ticket_t ticket)
{
    DQ_ASSERT(ticket.id == sq->posted);
    sq->posted++;
    cq->used++;
    sq->credits -= (wr_class != DQ_WR_RMA);

    if (DQ_UNLIKELY(ticket.signal)) {
        sq->signals++;
        cq->signals++;
        sq->unsignalled = 0;
    } else {
        sq->unsignalled++;
    }
    sq->slot[ticket.id & sq->mask] = sq->signals;
}

/* Debit one admitted request with its ticket. The device may have it by now, but
 * nothing else has happened to the ledger since the ticket. */
static inline void dq_sq_debit(dq_sq_t *sq, dq_cq_t *cq,
                               dq_wr_class_t wr_class, dq_ticket_t ticket)
{
    DQ_ASSERT(dq_sq_admit_preconnect(sq, cq, wr_class) == DQ_ADMIT_OK);
    dq_sq_enter(sq, cq, wr_class, ticket);
}

/* Both at once. */
static inline dq_ticket_t dq_sq_post(dq_sq_t *sq, dq_cq_t *cq,
                                     dq_wr_class_t wr_class, int want_signal)
{
    dq_ticket_t ticket = dq_sq_ticket(sq, cq, want_signal);

    dq_sq_debit(sq, cq, wr_class, ticket);
    return ticket;
}

/*
 * The device refused the newest @a count requests, of which @a messages had
 * taken a credit: they are as if never posted. Everything older stays owned.
 */
void dq_sq_unpost(dq_sq_t *sq, dq_cq_t *cq, uint32_t count, uint32_t messages);

/*
 * A completion names @a id: everything up to it is over, oldest first.
 * Returns how many requests that is; 0 if no such request is in use, which
 * the caller counts (a completion that belongs to nothing).
 */
static inline uint32_t dq_sq_retire(dq_sq_t *sq, dq_cq_t *cq, uint32_t id)
{
    uint32_t count = id - sq->retired + 1;
    uint32_t signals;

    if (DQ_UNLIKELY((count == 0) || (count > dq_sq_in_use(sq)))) {
        return 0;
    }

    signals           = sq->slot[id & sq->mask];
    cq->signals      -= signals - sq->signals_over;
    cq->used         -= count;
    sq->signals_over  = signals;
    sq->retired      += count;
    if (sq->unsignalled > dq_sq_in_use(sq)) {
        /* an error names unsignalled requests too */
        sq->unsignalled = dq_sq_in_use(sq);
    }
    return count;
}

/* The oldest request, and there is one, is over: the same in fewer steps. */
static inline void dq_sq_retire_oldest(dq_sq_t *sq, dq_cq_t *cq)
{
    uint32_t signals = sq->slot[sq->retired & sq->mask];

    DQ_ASSERT(dq_sq_in_use(sq) > 0);
    cq->signals -= signals - sq->signals_over;
    cq->used--;
    sq->signals_over = signals;
    sq->retired++;
    if (sq->unsignalled > dq_sq_in_use(sq)) {
        sq->unsignalled = dq_sq_in_use(sq);
    }
}

/* The peer promised @a count more RECVs. Returns 0, or -1 if that is more
 * than its whole window: a broken peer, and nothing is changed. */
int dq_sq_credit(dq_sq_t *sq, uint32_t count);

/* True if the newest request will not complete by itself: whoever wants to
 * wait for it has to post a signalled one behind it. */
static inline int dq_sq_tail_is_silent(const dq_sq_t *sq)
{
    return sq->unsignalled > 0;
}

/* Is there room for a marker: a signalled request that needs no credit, behind the
 * last request of a queue pair that is lost? The gate is closed to all others. */
static inline int dq_sq_may_mark(const dq_sq_t *sq, const dq_cq_t *cq)
{
    return (dq_sq_in_use(sq) + DQ_SQ_RESERVE < sq->depth) &&
           (cq->used + DQ_SQ_RESERVE < cq->depth);
}

/* Debit one, if there is room. */
static inline void dq_sq_mark(dq_sq_t *sq, dq_cq_t *cq)
{
    DQ_ASSERT(dq_sq_may_mark(sq, cq));
    dq_sq_enter(sq, cq, DQ_WR_RMA,
                (dq_ticket_t){.id = sq->posted, .signal = 1});
}

/* True if the invariants hold for this SQ, and its CQ as far as one SQ tells. */
int dq_sq_check(const dq_sq_t *sq, const dq_cq_t *cq);

const char *dq_admit_name(dq_admit_t admit);

#endif
