/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_sq.h"


uint32_t dq_sq_slots(uint32_t depth)
{
    uint32_t slots = 1;

    while (slots < depth) {
        slots <<= 1;
    }
    return slots;
}


/* The longest run that ends in a signal. */
static uint32_t dq_sq_cut(uint32_t signal_every, uint32_t depth)
{
    return dq_min((signal_every > 0) ? signal_every : 1, depth / 4);
}


void dq_sq_init(dq_sq_t *sq, uint32_t depth, uint32_t signal_every,
                uint32_t first_id, uint32_t *slot)
{
    DQ_ASSERT((depth >= DQ_SQ_DEPTH_MIN) && (depth <= DQ_SQ_DEPTH_MAX));
    *sq = (dq_sq_t){
        .posted       = first_id,
        .token_end    = first_id,
        .retired      = first_id,
        .tail         = first_id,
        .depth        = depth,
        .signal_every = dq_sq_cut(signal_every, depth),
        .mask         = dq_sq_slots(depth) - 1,
        .gate         = DQ_GATE_NOT_UP,
        .slot         = slot,
    };
}


uint32_t *dq_sq_grow(dq_sq_t *sq, uint32_t depth, uint32_t signal_every,
                     uint32_t *slot)
{
    uint32_t *before = sq->slot;
    uint32_t mask    = dq_sq_slots(depth) - 1;
    uint32_t i;

    DQ_ASSERT((depth >= sq->depth) && (depth <= DQ_SQ_DEPTH_MAX));
    for (i = sq->signals_over; i != sq->signals; i++) {
        slot[i & mask] = before[i & sq->mask];
    }
    sq->slot         = slot;
    sq->mask         = mask;
    sq->depth        = depth;
    sq->signal_every = dq_sq_cut(signal_every, depth);
    return before;
}


void dq_cq_init(dq_cq_t *cq, uint32_t depth)
{
    DQ_ASSERT(depth >= DQ_CQ_DEPTH_MIN);
    *cq = (dq_cq_t){.depth = depth};
}


void dq_cq_deepen(dq_cq_t *cq, uint32_t depth)
{
    DQ_ASSERT(depth > cq->depth);
    cq->depth = depth;
}


dq_admit_t dq_sq_refusal(const dq_sq_t *sq, const dq_cq_t *cq,
                         dq_wr_class_t wr_class)
{
    int is_internal  = (wr_class == DQ_WR_GRANT) || (wr_class == DQ_WR_CONTROL);
    uint32_t reserve = is_internal ? 0 : DQ_SQ_RESERVE;
    uint32_t spare   = (wr_class == DQ_WR_GRANT) ? 0 : DQ_CREDIT_SPARE;

    if (sq->gate == DQ_GATE_DEAD) {
        return DQ_ADMIT_DEAD;
    }
    if ((sq->gate != DQ_GATE_UP) &&
        ((sq->gate != DQ_GATE_CLOSING) || !is_internal)) {
        return DQ_ADMIT_NOT_UP;
    }
    if (dq_sq_in_use(sq) + reserve >= sq->depth) {
        return DQ_ADMIT_SQ_FULL;
    }
    if (cq->used + reserve >= cq->depth) {
        return DQ_ADMIT_CQ_FULL;
    }
    if ((wr_class != DQ_WR_RMA) && (sq->credits <= spare)) {
        return DQ_ADMIT_NO_CREDIT;
    }
    return DQ_ADMIT_OK;
}


/* Each limit is one of the questions of dq_sq_admit() and dq_sq_ticket(), asked for the
 * last of the messages. */
uint32_t dq_sq_take_tokens(dq_sq_t *sq, dq_cq_t *cq, uint32_t most)
{
    uint32_t in_use = dq_sq_in_use(sq) + DQ_SQ_RESERVE + 1;

    DQ_ASSERT(dq_sq_tokens(sq) == 0);
    if ((sq->gate != DQ_GATE_UP) || (sq->credits <= DQ_CREDIT_SPARE) ||
        (in_use >= sq->depth) || dq_cq_is_pressed(cq, 1)) {
        return 0;
    }
    most = dq_min(most, sq->credits - DQ_CREDIT_SPARE);
    most = dq_min(most, sq->depth - in_use);
    most = dq_min(most, sq->signal_every - 1 - dq_sq_unsignalled(sq));
    most = dq_min(most, cq->depth / 2 - 1 - cq->used);

    sq->token_end += most;
    sq->credits   -= most;
    cq->used      += most;
    cq->tokens    += most;
    return most;
}


void dq_sq_return_tokens(dq_sq_t *sq, dq_cq_t *cq)
{
    uint32_t count = dq_sq_tokens(sq);

    if (count == 0) {
        return;
    }
    sq->token_end -= count;
    sq->credits   += count;
    cq->used      -= count;
    cq->tokens    -= count;
}


void dq_sq_expect(dq_sq_t *sq)
{
    DQ_ASSERT((sq->gate == DQ_GATE_NOT_UP) && (sq->window == 0));
    sq->window  = DQ_WINDOW_MIN;
    sq->credits = DQ_WINDOW_MIN;
}


/* Whether a request may be held until the gate opens. */
static int dq_sq_may_hold(const dq_sq_t *sq, const dq_cq_t *cq,
                          dq_wr_class_t wr_class)
{
    uint32_t most = dq_min(DQ_SQ_PRECONNECT_MAX, sq->depth - DQ_SQ_RESERVE);

    return ((wr_class == DQ_WR_RMA) ||
            ((wr_class == DQ_WR_MSG) && (sq->credits > DQ_CREDIT_SPARE))) &&
           (dq_sq_in_use(sq) < most) && !dq_cq_is_pressed(cq, 0);
}


dq_admit_t dq_sq_admit_preconnect(dq_sq_t *sq, dq_cq_t *cq,
                                  dq_wr_class_t wr_class)
{
    if (sq->gate != DQ_GATE_NOT_UP) {
        return dq_sq_admit(sq, cq, wr_class);
    }
    return dq_sq_may_hold(sq, cq, wr_class) ? DQ_ADMIT_OK : DQ_ADMIT_NOT_UP;
}


int dq_sq_is_admitted(const dq_sq_t *sq, const dq_cq_t *cq, dq_wr_class_t wr_class)
{
    return (sq->gate == DQ_GATE_NOT_UP)
                   ? dq_sq_may_hold(sq, cq, wr_class)
                   : (dq_sq_refusal(sq, cq, wr_class) == DQ_ADMIT_OK);
}


int dq_sq_open(dq_sq_t *sq, uint32_t window, uint32_t promised)
{
    DQ_ASSERT(sq->gate == DQ_GATE_NOT_UP);
    if ((promised < sq->window) || (promised > window)) {
        return -1;
    }
    sq->credits += promised - sq->window;
    sq->window   = window;
    sq->gate     = DQ_GATE_UP;
    return 0;
}


void dq_sq_shut(dq_sq_t *sq, dq_cq_t *cq)
{
    DQ_ASSERT(sq->gate == DQ_GATE_UP);
    dq_sq_return_tokens(sq, cq);
    sq->gate = DQ_GATE_CLOSING;
}


void dq_sq_lose(dq_sq_t *sq, dq_cq_t *cq)
{
    DQ_ASSERT(sq->gate != DQ_GATE_DEAD);
    dq_sq_return_tokens(sq, cq);
    sq->gate    = DQ_GATE_LOST;
    sq->credits = 0;
}


void dq_sq_close(dq_sq_t *sq, dq_cq_t *cq)
{
    dq_sq_return_tokens(sq, cq);
    sq->gate = DQ_GATE_DEAD;
}


int dq_sq_reopen(dq_sq_t *sq, uint32_t window, uint32_t promised,
                 uint32_t taken)
{
    DQ_ASSERT(sq->gate == DQ_GATE_LOST);
    if ((taken > promised) || (promised > window) ||
        (sq->credits > window - (promised - taken))) {
        return -1;
    }
    sq->window   = window;
    sq->credits += promised - taken;
    sq->gate     = DQ_GATE_UP;
    return 0;
}


/* The ids in slot[] ascend, so half of them can be left out at each step. */
int dq_sq_is_signalled(const dq_sq_t *sq, uint32_t id)
{
    uint32_t from = sq->signals_over;
    uint32_t to   = sq->signals;
    uint32_t middle;

    while (from != to) {
        middle = from + (to - from) / 2;
        if (sq->slot[middle & sq->mask] == id) {
            return 1;
        }
        if (sq->slot[middle & sq->mask] - sq->retired < id - sq->retired) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return 0;
}


/* The first id behind the newest signalled request in use, or else the oldest id. */
static uint32_t dq_sq_find_tail(const dq_sq_t *sq)
{
    return (sq->signals == sq->signals_over)
                   ? sq->retired
                   : sq->slot[(sq->signals - 1) & sq->mask] + 1;
}


void dq_sq_unpost(dq_sq_t *sq, dq_cq_t *cq, uint32_t count, uint32_t messages)
{
    DQ_ASSERT((count <= dq_sq_in_use(sq)) && (messages <= count));
    dq_sq_return_tokens(sq, cq);
    sq->posted    -= count;
    sq->token_end  = sq->posted;
    sq->credits   += messages;
    cq->used      -= count;

    while ((sq->signals != sq->signals_over) &&
           (sq->slot[(sq->signals - 1) & sq->mask] - sq->retired >=
            dq_sq_in_use(sq))) {
        sq->signals--;
        cq->signals--;
    }
    sq->tail = dq_sq_find_tail(sq);
}


int dq_sq_credit(dq_sq_t *sq, uint32_t count)
{
    if ((count > sq->window) || (dq_sq_credits(sq) > sq->window - count)) {
        return -1;
    }
    sq->credits += count;
    return 0;
}


uint32_t dq_sq_give_back(dq_sq_t *sq, dq_cq_t *cq, uint32_t count, uint32_t keep)
{
    dq_sq_return_tokens(sq, cq);
    count        = dq_min(count, (sq->credits > keep) ? sq->credits - keep : 0);
    sq->credits -= count;
    return count;
}


/* Whether what tokens have paid for is still there. */
static int dq_sq_check_tokens(const dq_sq_t *sq)
{
    uint32_t tokens = dq_sq_tokens(sq);
    uint32_t in_use = dq_sq_in_use(sq);

    return (tokens == 0) ||
           ((sq->gate == DQ_GATE_UP) && (tokens < sq->depth - in_use) &&
            (tokens < sq->signal_every - dq_sq_unsignalled(sq)));
}


int dq_sq_check(const dq_sq_t *sq, const dq_cq_t *cq)
{
    uint32_t in_use  = dq_sq_in_use(sq);
    uint32_t signals = sq->signals - sq->signals_over;

    return (in_use <= sq->depth) && (cq->used <= cq->depth) &&
           (signals <= in_use) &&
           (cq->tokens <= cq->used) && (dq_sq_tokens(sq) <= cq->tokens) &&
           (in_use <= dq_cq_in_use(cq)) &&
           (cq->signals <= dq_cq_in_use(cq)) && (signals <= cq->signals) &&
           (dq_sq_unsignalled(sq) < sq->signal_every) &&
           (sq->tail == dq_sq_find_tail(sq)) &&
           (dq_sq_credits(sq) <= sq->window) && dq_sq_check_tokens(sq);
}


const char *dq_admit_name(dq_admit_t admit)
{
    static const char *const names[DQ_ADMIT_LAST] = {
        [DQ_ADMIT_OK]        = "ok",
        [DQ_ADMIT_SQ_FULL]   = "sq_full",
        [DQ_ADMIT_CQ_FULL]   = "cq_full",
        [DQ_ADMIT_NO_CREDIT] = "no_credit",
        [DQ_ADMIT_NOT_UP]    = "not_up",
        [DQ_ADMIT_DEAD]      = "dead",
    };

    return (admit < DQ_ADMIT_LAST) ? names[admit] : "?";
}
