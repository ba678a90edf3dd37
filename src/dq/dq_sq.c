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


void dq_sq_init(dq_sq_t *sq, uint32_t depth, uint32_t signal_every,
                uint32_t first_id, uint32_t *slot)
{
    uint32_t quarter = depth / 4;

    DQ_ASSERT((depth >= DQ_SQ_DEPTH_MIN) && (depth <= DQ_SQ_DEPTH_MAX));
    *sq = (dq_sq_t){
        .posted       = first_id,
        .retired      = first_id,
        .depth        = depth,
        .signal_every = dq_min((signal_every > 0) ? signal_every : 1, quarter),
        .mask         = dq_sq_slots(depth) - 1,
        .gate         = DQ_GATE_NOT_UP,
        .slot         = slot,
    };
}


void dq_cq_init(dq_cq_t *cq, uint32_t depth)
{
    DQ_ASSERT(depth >= DQ_CQ_DEPTH_MIN);
    *cq = (dq_cq_t){.depth = depth};
}


dq_admit_t dq_sq_refusal(const dq_sq_t *sq, const dq_cq_t *cq,
                         dq_wr_class_t wr_class)
{
    uint32_t reserve = (wr_class == DQ_WR_GRANT) ? 0 : DQ_SQ_RESERVE;
    uint32_t spare   = (wr_class == DQ_WR_GRANT) ? 0 : DQ_CREDIT_SPARE;

    if (sq->gate == DQ_GATE_DEAD) {
        return DQ_ADMIT_DEAD;
    }
    if (sq->gate != DQ_GATE_UP) {
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


void dq_sq_expect(dq_sq_t *sq)
{
    DQ_ASSERT((sq->gate == DQ_GATE_NOT_UP) && (sq->window == 0));
    sq->window  = DQ_WINDOW_MIN;
    sq->credits = DQ_WINDOW_MIN;
}


dq_admit_t dq_sq_admit_preconnect(const dq_sq_t *sq, const dq_cq_t *cq,
                                  dq_wr_class_t wr_class)
{
    uint32_t most = dq_min(DQ_SQ_PRECONNECT_MAX, sq->depth - DQ_SQ_RESERVE);

    if (sq->gate != DQ_GATE_NOT_UP) {
        return dq_sq_admit(sq, cq, wr_class);
    }
    if ((wr_class == DQ_WR_GRANT) || (dq_sq_in_use(sq) >= most) ||
        dq_cq_is_pressed(cq, 0) ||
        ((wr_class == DQ_WR_MSG) && (sq->credits <= DQ_CREDIT_SPARE))) {
        return DQ_ADMIT_NOT_UP;
    }
    return DQ_ADMIT_OK;
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


void dq_sq_lose(dq_sq_t *sq)
{
    DQ_ASSERT(sq->gate != DQ_GATE_DEAD);
    sq->gate    = DQ_GATE_LOST;
    sq->credits = 0;
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


int dq_sq_is_signalled(const dq_sq_t *sq, uint32_t id)
{
    uint32_t before = (id == sq->retired) ? sq->signals_over
                                          : sq->slot[(id - 1) & sq->mask];

    return sq->slot[id & sq->mask] != before;
}


/* Counts the requests after the newest signalled one that is in use. */
static uint32_t dq_sq_count_silent(const dq_sq_t *sq)
{
    uint32_t count = 0;
    uint32_t before;
    uint32_t id;

    for (id = sq->posted; id != sq->retired; id--) {
        before = (id - 1 == sq->retired) ? sq->signals_over
                                         : sq->slot[(id - 2) & sq->mask];
        if (sq->slot[(id - 1) & sq->mask] != before) {
            break;
        }
        count++;
    }
    return count;
}


void dq_sq_unpost(dq_sq_t *sq, dq_cq_t *cq, uint32_t count, uint32_t messages)
{
    uint32_t signals;

    DQ_ASSERT((count <= dq_sq_in_use(sq)) && (messages <= count));
    sq->posted  -= count;
    sq->credits += messages;
    cq->used    -= count;

    signals          = (dq_sq_in_use(sq) == 0)
                               ? sq->signals_over
                               : sq->slot[(sq->posted - 1) & sq->mask];
    cq->signals     -= sq->signals - signals;
    sq->signals      = signals;
    sq->unsignalled  = dq_sq_count_silent(sq);
}


int dq_sq_credit(dq_sq_t *sq, uint32_t count)
{
    if ((count > sq->window) || (sq->credits > sq->window - count)) {
        return -1;
    }
    sq->credits += count;
    return 0;
}


int dq_sq_check(const dq_sq_t *sq, const dq_cq_t *cq)
{
    uint32_t in_use  = dq_sq_in_use(sq);
    uint32_t signals = sq->signals - sq->signals_over;

    return (in_use <= sq->depth) && (cq->used <= cq->depth) &&
           (in_use <= cq->used) && (signals <= in_use) &&
           (cq->signals <= cq->used) && (signals <= cq->signals) &&
           (sq->unsignalled <= in_use) &&
           (sq->unsignalled < sq->signal_every) &&
           (sq->unsignalled == dq_sq_count_silent(sq)) &&
           (sq->credits <= sq->window);
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
