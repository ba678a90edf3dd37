/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send ledger: which work requests the NIC still owns.
 *
 *     retired            last signal              posted
 *        |  owned by the NIC  |   unsignalled tail   |
 *   -----[####################|......................]-----> ids
 *        <------------ in use <= depth -------------->
 *
 * A work request costs one slot of its send queue (SQ) and one slot of the completion
 * queue (CQ), signalled or not. When a QP fails, the device flushes every request into
 * the CQ. So the ledger debits both slots at post and credits them at retire, and "full"
 * is a subtraction that cannot be wrong.
 *
 * Ids run freely and wrap at 2^32. The id is the wr_id, so a completion names its
 * request.
 *
 * Three promises, each checked by dq_sq_check() and by the unit tests:
 *  - in use <= depth, and the CQ slots in use are the sum over all its SQs and tokens;
 *  - the newest request of a full SQ is signalled, so a full SQ always drains;
 *  - unsignalled tails and tokens hold at most half of the CQ, so a full CQ always
 *    drains, however many SQs share it.
 *
 * Tokens make most messages cheap. A token is the right to post one message without a
 * question: the next id, unsignalled. dq_sq_take_tokens() has paid for it before: the
 * credit and the CQ slot are debited, and the SQ has room. So a post with a token only
 * counts. Tokens that nobody uses are returned before any other post, and when the
 * gate closes.
 *
 * Credits are the peer's promise of posted RECVs. A message takes one. Data leaves the
 * last one for a credit grant. So two peers that have both run out of data credits can
 * still release each other.
 *
 * A few requests may be posted before the gate has opened, to be held until it opens. So
 * the first requests of a program are not refused. The ledger debits them like any other.
 * Their messages use the credits that every peer promises at least (DQ_WINDOW_MIN).
 *
 * Threads: one. Complexity: O(1), except O(signal_every + n) of dq_sq_unpost().
 */
#ifndef DQ_SQ_H
#define DQ_SQ_H

#include "dq.h"

/* Why a work request may not be posted now. A later try may succeed, except if DEAD. */
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
    DQ_WR_MSG,     /* SEND of data: takes a credit, leaves the reserve       */
    DQ_WR_RMA,     /* one-sided: takes no credit, leaves the reserve         */
    DQ_WR_CONTROL, /* SEND of a recall, its answer, a close: takes a credit, may use
                      the reserved slots. The last credit stays: if such a message had
                      it, no grant could go, and perhaps none come */
    DQ_WR_GRANT    /* SEND of a grant: takes a credit, may use reserves      */
} dq_wr_class_t;

typedef enum {
    DQ_GATE_NOT_UP, /* connecting: nothing may be posted                     */
    DQ_GATE_UP,
    DQ_GATE_CLOSING, /* an idle QP is being closed: only grants may be posted */
    DQ_GATE_LOST,   /* the QP failed; posted requests wait for another       */
    DQ_GATE_DEAD    /* failed: closed for ever                               */
} dq_gate_t;

/* Slots of the send CQ, shared by all SQs that complete into it. */
typedef struct {
    uint32_t depth;   /* CQEs the device gave                                */
    uint32_t used;    /* slots owed to posted requests and to tokens         */
    uint32_t tokens;  /* of those, tokens                                    */
    uint32_t signals; /* of those, signalled requests                        */
} dq_cq_t;

typedef struct {
    uint32_t  posted;        /* id of the next request                       */
    uint32_t  token_end;     /* the tokens are the ids from `posted` to here */
    uint32_t  retired;       /* id of the oldest request in use              */
    uint32_t  tail;          /* the unsignalled tail begins at this id       */
    uint32_t  depth;         /* most requests in use                         */
    uint32_t  credits;       /* RECVs that the peer has promised us, beyond
                                those that tokens have taken                 */
    uint32_t  signal_every;  /* longest run that ends in a signal            */
    uint32_t  mask;          /* of slot                                      */
    uint32_t  signals;       /* signalled requests ever posted               */
    uint32_t  signals_over;  /* of those, retired                            */
    uint32_t  window;        /* most credits that the peer may promise       */
    dq_gate_t gate;
    uint32_t  *slot;         /* ids of the signalled requests in use         */
} dq_sq_t;

typedef struct {
    uint32_t id;     /* the wr_id of the request                             */
    int      signal; /* non-zero: ask the device for a completion            */
} dq_ticket_t;

enum {
    DQ_SQ_RESERVE        = 1, /* SQ slots that only grants and control may take   */
    DQ_SQ_PRECONNECT_MAX = 8, /* requests that may wait for the gate to open */
    DQ_CREDIT_SPARE      = 1, /* credits that only a grant may take               */
    DQ_SQ_DEPTH_MIN      = 4,
    DQ_SQ_DEPTH_MAX      = 1 << 20,
    DQ_CQ_DEPTH_MIN      = 4
};

/* Number of uint32_t that dq_sq_init() needs for @a depth requests: a power of two. */
uint32_t dq_sq_slots(uint32_t depth);

/*
 * Begins an empty ledger, with the gate at NOT_UP. @a slot has dq_sq_slots(depth) words.
 * The caller owns them, and they must live as long as the ledger. @a signal_every is cut
 * to a quarter of @a depth. A test passes a @a first_id just before the wrap.
 */
void dq_sq_init(dq_sq_t *sq, uint32_t depth, uint32_t signal_every,
                uint32_t first_id, uint32_t *slot);

/* Moves the ledger to @a slot, which has dq_sq_slots(depth) words, and makes it @a depth
 * deep, no less than before. @a signal_every is cut as in dq_sq_init(). Returns the words
 * that it used before, which are the caller's again. */
uint32_t *dq_sq_grow(dq_sq_t *sq, uint32_t depth, uint32_t signal_every,
                     uint32_t *slot);

void dq_cq_init(dq_cq_t *cq, uint32_t depth);

/* The CQ has become @a depth deep, more than before. */
void dq_cq_deepen(dq_cq_t *cq, uint32_t depth);

static inline uint32_t dq_sq_in_use(const dq_sq_t *sq)
{
    return sq->posted - sq->retired;
}

/*
 * Whether more depth would help: half of it is in use, or the SQ has posted four times as
 * many requests since @a since. A small depth makes every few requests ask for a signal.
 */
static inline int dq_sq_is_tight(const dq_sq_t *sq, uint32_t since)
{
    return (dq_sq_in_use(sq) * 2 >= sq->depth) ||
           (sq->posted - since >= sq->depth * 4);
}

static inline uint32_t dq_sq_tokens(const dq_sq_t *sq)
{
    return sq->token_end - sq->posted;
}

/* Slots owed to posted requests. */
static inline uint32_t dq_cq_in_use(const dq_cq_t *cq)
{
    return cq->used - cq->tokens;
}

/* Length of the unsignalled tail. */
static inline uint32_t dq_sq_unsignalled(const dq_sq_t *sq)
{
    return sq->posted - sq->tail;
}

/* RECVs that the peer has promised us, with those that tokens have taken. */
static inline uint32_t dq_sq_credits(const dq_sq_t *sq)
{
    return sq->credits + dq_sq_tokens(sq);
}

/* Whether @a more requests bring the CQ to half of its depth. */
static inline int dq_cq_is_pressed(const dq_cq_t *cq, uint32_t more)
{
    return cq->used + more >= (cq->depth / 2);
}

/* Whether a longer CQ would help: three eighths of it are used, and sends soon come under
 * pressure. */
static inline int dq_cq_is_filling(const dq_cq_t *cq)
{
    return (uint64_t)cq->used * 8 >= (uint64_t)cq->depth * 3;
}

/* Whether SQ and CQ have room for one request more, beside the reserve. */
static inline int dq_sq_has_room(const dq_sq_t *sq, const dq_cq_t *cq)
{
    return (dq_sq_in_use(sq) + DQ_SQ_RESERVE < sq->depth) &&
           (cq->used + DQ_SQ_RESERVE < cq->depth);
}

/* The rest of dq_sq_admit(): finds the reason. Out of line. */
dq_admit_t dq_sq_refusal(const dq_sq_t *sq, const dq_cq_t *cq,
                         dq_wr_class_t wr_class);

/*
 * Takes tokens for as many of the next messages as need no question, from none on.
 * Returns how many there are now. At most @a most; zero is allowed.
 */
uint32_t dq_sq_take_tokens(dq_sq_t *sq, dq_cq_t *cq, uint32_t most);

/* The unused tokens pay back what they have cost. Without tokens it writes nothing, so
 * another thread may call it for an SQ of its own. */
void dq_sq_return_tokens(dq_sq_t *sq, dq_cq_t *cq);

/* Posts one message with a token, which there must be. Returns its id. */
static inline uint32_t dq_sq_use_token(dq_sq_t *sq, dq_cq_t *cq)
{
    DQ_ASSERT((dq_sq_tokens(sq) > 0) && (cq->tokens > 0));
    cq->tokens--;
    return sq->posted++;
}

/* Whether a request of this class may be posted now without a token. Returns the
 * tokens, and changes nothing else. */
static inline dq_admit_t dq_sq_admit(dq_sq_t *sq, dq_cq_t *cq,
                                     dq_wr_class_t wr_class)
{
    if (DQ_UNLIKELY(dq_sq_tokens(sq) > 0)) {
        dq_sq_return_tokens(sq, cq);
    }
    if (DQ_LIKELY((sq->gate == DQ_GATE_UP) && dq_sq_has_room(sq, cq) &&
                  ((wr_class == DQ_WR_RMA) ||
                   (sq->credits > DQ_CREDIT_SPARE)))) {
        return DQ_ADMIT_OK;
    }
    return dq_sq_refusal(sq, cq, wr_class);
}

/* Adds the credits that every peer promises at least, for dq_sq_admit_preconnect(). Must
 * be called before the gate first opens, at most once. */
void dq_sq_expect(dq_sq_t *sq);

/*
 * Whether a request of this class may be posted now, to be held until the gate opens.
 * Held requests complete late, or never. So they get at most half of the CQ, and conns
 * that are up always have the other half. Unless the gate is NOT_UP, the same as
 * dq_sq_admit().
 */
dq_admit_t dq_sq_admit_preconnect(dq_sq_t *sq, dq_cq_t *cq,
                                  dq_wr_class_t wr_class);

/*
 * Opens the gate. The peer promises @a promised RECVs now, and never more than @a window.
 * Held messages have taken some of the promised ones already. Returns 0. Returns -1 and
 * changes nothing if the peer is broken: it promises more than @a window, or fewer than
 * dq_sq_expect() assumed.
 */
int dq_sq_open(dq_sq_t *sq, uint32_t window, uint32_t promised);

/* Closes the gate to all but grants and control, until dq_sq_lose(). Tokens are
 * returned. */
void dq_sq_shut(dq_sq_t *sq, dq_cq_t *cq);

/* Closes the gate until dq_sq_reopen(). Posted requests stay in the ledger. The credits
 * of the old QP are void, and the tokens are returned. */
void dq_sq_lose(dq_sq_t *sq, dq_cq_t *cq);

/* Closes the gate for ever, and returns the tokens. */
void dq_sq_close(dq_sq_t *sq, dq_cq_t *cq);

/*
 * Opens the gate for a new QP, for which the peer promises @a promised RECVs. @a window
 * may be new here, because the first QP may have failed before it was known. Messages
 * that are sent again take @a taken of the RECVs. Credits that have come on the new QP
 * count, too. Returns 0. Returns -1 and changes nothing if the peer is broken: it
 * promises fewer than @a taken, or more than @a window in all.
 */
int dq_sq_reopen(dq_sq_t *sq, uint32_t window, uint32_t promised,
                 uint32_t taken);

/* Whether request @a id, which must be in use, was posted with a signal. */
int dq_sq_is_signalled(const dq_sq_t *sq, uint32_t id);

/* The ticket of the next request, which must be admitted. Changes nothing: dq_sq_debit()
 * debits it. @a want_signal asks for a signal. The ledger adds its own where a wait would
 * otherwise never end. */
static inline dq_ticket_t dq_sq_ticket(const dq_sq_t *sq, const dq_cq_t *cq,
                                       int want_signal)
{
    return (dq_ticket_t){
        .id     = sq->posted,
        .signal = want_signal || (dq_sq_unsignalled(sq) + 1 >= sq->signal_every) ||
                  (dq_sq_in_use(sq) + 1 + DQ_SQ_RESERVE >= sq->depth) ||
                  dq_cq_is_pressed(cq, 1),
    };
}

/* Debits a ticket. The callers, dq_sq_debit() and dq_sq_mark(), check that they may. */
static inline void dq_sq_enter(dq_sq_t *sq, dq_cq_t *cq, dq_wr_class_t wr_class,
                               dq_ticket_t ticket)
{
    DQ_ASSERT((ticket.id == sq->posted) && (dq_sq_tokens(sq) == 0));
    sq->token_end = ++sq->posted;
    cq->used++;
    sq->credits -= (wr_class != DQ_WR_RMA);

    if (DQ_UNLIKELY(ticket.signal)) {
        sq->slot[sq->signals++ & sq->mask] = ticket.id;
        cq->signals++;
        sq->tail = sq->posted;
    }
}

/* Whether dq_sq_admit_preconnect() admits the request, for assertions. Changes nothing,
 * and there must be no token. */
int dq_sq_is_admitted(const dq_sq_t *sq, const dq_cq_t *cq, dq_wr_class_t wr_class);

/* Debits one admitted request with its ticket. The device may already have the request,
 * but the ledger must not have changed since the ticket. */
static inline void dq_sq_debit(dq_sq_t *sq, dq_cq_t *cq,
                               dq_wr_class_t wr_class, dq_ticket_t ticket)
{
    DQ_ASSERT(dq_sq_is_admitted(sq, cq, wr_class));
    dq_sq_enter(sq, cq, wr_class, ticket);
}

/* dq_sq_ticket() and dq_sq_debit() at once. */
static inline dq_ticket_t dq_sq_post(dq_sq_t *sq, dq_cq_t *cq,
                                     dq_wr_class_t wr_class, int want_signal)
{
    dq_ticket_t ticket = dq_sq_ticket(sq, cq, want_signal);

    dq_sq_debit(sq, cq, wr_class, ticket);
    return ticket;
}

/* The peer wants @a count credits back. Gives up as many as are left beside @a keep, and
 * returns how many those are. Returns the tokens. */
uint32_t dq_sq_give_back(dq_sq_t *sq, dq_cq_t *cq, uint32_t count, uint32_t keep);

/*
 * Takes back the newest @a count requests, which the device has refused: they are as if
 * never posted. @a messages of them had taken a credit. Older requests stay in use.
 */
void dq_sq_unpost(dq_sq_t *sq, dq_cq_t *cq, uint32_t count, uint32_t messages);

/* Retires the @a count oldest requests, of which there must be so many. */
static inline void dq_sq_retire_count(dq_sq_t *sq, dq_cq_t *cq, uint32_t count)
{
    while ((sq->signals_over != sq->signals) &&
           (sq->slot[sq->signals_over & sq->mask] - sq->retired < count)) {
        sq->signals_over++;
        cq->signals--;
    }
    cq->used    -= count;
    sq->retired += count;
    if (DQ_UNLIKELY(dq_sq_unsignalled(sq) > dq_sq_in_use(sq))) {
        sq->tail = sq->retired; /* an error completes an unsignalled request, too */
    }
}

/*
 * Retires all requests up to @a id, which a completion names. Returns how many those are;
 * the caller completes them, oldest first. Returns 0 if no such request is in use; the
 * caller counts that completion as unknown.
 */
static inline uint32_t dq_sq_retire(dq_sq_t *sq, dq_cq_t *cq, uint32_t id)
{
    uint32_t count = id - sq->retired + 1;

    if (DQ_UNLIKELY((count == 0) || (count > dq_sq_in_use(sq)))) {
        return 0;
    }
    dq_sq_retire_count(sq, cq, count);
    return count;
}

/* Retires the oldest request, in fewer steps. At least one must be in use. */
static inline void dq_sq_retire_oldest(dq_sq_t *sq, dq_cq_t *cq)
{
    DQ_ASSERT(dq_sq_in_use(sq) > 0);
    dq_sq_retire_count(sq, cq, 1);
}

/* Adds @a count credits that the peer has granted. Returns 0. Returns -1 and changes
 * nothing if that exceeds the peer's whole window: the peer is broken. */
int dq_sq_credit(dq_sq_t *sq, uint32_t count);

/* True if the newest request has no signal. A caller that waits for it must post a
 * signalled request behind it. */
static inline int dq_sq_tail_is_silent(const dq_sq_t *sq)
{
    return dq_sq_unsignalled(sq) > 0;
}

/* Debits a marker: a signalled request that needs no credit, behind the last request of
 * a lost queue pair. The gate is closed to all other requests. There must be room, and
 * no token. */
static inline void dq_sq_mark(dq_sq_t *sq, dq_cq_t *cq)
{
    DQ_ASSERT(dq_sq_has_room(sq, cq));
    dq_sq_enter(sq, cq, DQ_WR_RMA,
                (dq_ticket_t){.id = sq->posted, .signal = 1});
}

/* True if the invariants of this SQ hold, and those of the CQ that one SQ can show. */
int dq_sq_check(const dq_sq_t *sq, const dq_cq_t *cq);

const char *dq_admit_name(dq_admit_t admit);

#endif
