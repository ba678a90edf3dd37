/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send ledger: its edges by number, then random runs against a model that
 * keeps every request as a record in an array.
 *
 * The model's device is the least helpful one that is still correct: it
 * completes signalled requests only, and unsignalled ones only by an error.
 */
#include "t_unit.h"
#include "dq/dq_sq.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_SQS = 6,
    STEPS   = 25000, /* of one random run */
    RUNS    = 48
};

typedef struct {
    uint32_t      id;
    int           signalled;
    dq_wr_class_t wr_class;
} record_t;

/* One SQ: the ledger under test beside what it should say. */
typedef struct {
    dq_sq_t   sq;
    uint32_t  *slot;
    uint32_t  depth;
    uint32_t  signal_every; /* as the test asked for                        */
    uint32_t  every;   /* longest run that the header allows                */
    uint32_t  next_id;
    uint32_t  credits; /* not spent by a post                               */
    uint32_t  tokens;
    uint32_t  window;
    dq_gate_t gate;
    uint32_t  count;   /* records in use, oldest first                      */
    record_t  *record;
} lane_t;

typedef struct {
    dq_cq_t  cq;
    uint32_t depth;
    unsigned count;
    lane_t   lane[MAX_SQS];
} world_t;


static uint32_t model_every(uint32_t signal_every, uint32_t depth)
{
    uint32_t every = (signal_every == 0) ? 1 : signal_every;

    return (every < depth / 4) ? every : depth / 4;
}


static void lane_init(lane_t *lane, uint32_t depth, uint32_t signal_every,
                      uint32_t first_id)
{
    *lane = (lane_t){
        .depth   = depth,
        .signal_every = signal_every,
        .every   = model_every(signal_every, depth),
        .next_id = first_id,
        .gate    = DQ_GATE_NOT_UP,
        .slot    = calloc(dq_sq_slots(depth), sizeof(uint32_t)),
        .record  = calloc(depth, sizeof(record_t)),
    };
    ck_assert_ptr_nonnull(lane->slot);
    ck_assert_ptr_nonnull(lane->record);
    dq_sq_init(&lane->sq, depth, signal_every, first_id, lane->slot);
}


/* More depth: nothing else changes. */
static void lane_grow(lane_t *lane, uint32_t depth)
{
    uint32_t *slot   = calloc(dq_sq_slots(depth), sizeof(*slot));
    record_t *record = realloc(lane->record, depth * sizeof(*record));

    ck_assert_ptr_nonnull(slot);
    ck_assert_ptr_nonnull(record);
    T_NEED(dq_sq_grow(&lane->sq, depth, lane->signal_every, slot) == lane->slot);
    free(lane->slot);
    lane->slot   = slot;
    lane->record = record;
    lane->depth  = depth;
    lane->every  = model_every(lane->signal_every, depth);
}


/* Tests set any gate; the tokens end with UP. */
static void lane_set_gate(world_t *world, lane_t *lane, dq_gate_t gate)
{
    dq_sq_return_tokens(&lane->sq, &world->cq);
    lane->tokens  = 0;
    lane->gate    = gate;
    lane->sq.gate = gate;
}


/* A connected lane with all of its credits. */
static void lane_up(world_t *world, lane_t *lane, uint32_t window)
{
    lane_set_gate(world, lane, DQ_GATE_UP);
    lane->window    = window;
    lane->credits   = window;
    lane->sq.window = window;
    T_NEED_EQ(dq_sq_credit(&lane->sq, window), 0);
}


static void world_init(world_t *world, uint32_t cq_depth, unsigned count)
{
    *world = (world_t){.depth = cq_depth, .count = count};
    dq_cq_init(&world->cq, cq_depth);
}


static void world_deepen(world_t *world, uint32_t depth)
{
    dq_cq_deepen(&world->cq, depth);
    world->depth = depth;
}


static void world_free(world_t *world)
{
    unsigned i;

    for (i = 0; i < world->count; i++) {
        free(world->lane[i].slot);
        free(world->lane[i].record);
    }
}


static uint32_t world_used(const world_t *world)
{
    uint32_t used = 0;
    unsigned i;

    for (i = 0; i < world->count; i++) {
        used += world->lane[i].count + world->lane[i].tokens;
    }
    return used;
}


static uint32_t lane_signals(const lane_t *lane)
{
    uint32_t signals = 0;
    uint32_t i;

    for (i = 0; i < lane->count; i++) {
        signals += (lane->record[i].signalled != 0);
    }
    return signals;
}


static uint32_t lane_silent_tail(const lane_t *lane)
{
    uint32_t tail = 0;

    while ((tail < lane->count) &&
           !lane->record[lane->count - 1 - tail].signalled) {
        tail++;
    }
    return tail;
}


/* What the header says of admission, in the order in which it says it. */
static dq_admit_t model_admit(const world_t *world, const lane_t *lane,
                              dq_wr_class_t wr_class)
{
    int is_data    = (wr_class == DQ_WR_MSG) || (wr_class == DQ_WR_RMA);
    uint32_t slots = is_data ? 1 : 0;
    uint32_t spare = (wr_class == DQ_WR_GRANT) ? 0 : 1;

    if (lane->gate == DQ_GATE_DEAD) {
        return DQ_ADMIT_DEAD;
    }
    if ((lane->gate == DQ_GATE_CLOSING) ? is_data : (lane->gate != DQ_GATE_UP)) {
        return DQ_ADMIT_NOT_UP;
    }
    if (lane->count + slots >= lane->depth) {
        return DQ_ADMIT_SQ_FULL;
    }
    if (world_used(world) + slots >= world->depth) {
        return DQ_ADMIT_CQ_FULL;
    }
    if ((wr_class != DQ_WR_RMA) && (lane->credits <= spare)) {
        return DQ_ADMIT_NO_CREDIT;
    }
    return DQ_ADMIT_OK;
}


/* As many messages as need neither a question nor a signal, one by one. */
static uint32_t model_tokens(const world_t *world, const lane_t *lane,
                             uint32_t most)
{
    uint32_t n = 0;

    while ((lane->gate == DQ_GATE_UP) && (n < most) && (lane->credits > n + 1) &&
           (lane->count + n + 2 < lane->depth) &&
           (lane_silent_tail(lane) + n + 1 < lane->every) &&
           (world_used(world) + n + 1 < world->depth / 2)) {
        n++;
    }
    return n;
}


static void lane_take_tokens(world_t *world, lane_t *lane, uint32_t most)
{
    uint32_t expected;

    dq_sq_return_tokens(&lane->sq, &world->cq);
    lane->tokens = 0;
    expected     = model_tokens(world, lane, most);
    T_NEED_EQ(dq_sq_take_tokens(&lane->sq, &world->cq, most), expected);
    lane->tokens = expected;
}


/* Posts with tokens, as many as there are and at most @a most. Returns how many. */
static uint32_t lane_use_tokens(world_t *world, lane_t *lane, uint32_t most)
{
    uint32_t used = 0;

    while ((lane->tokens > 0) && (used < most)) {
        T_NEED_EQ(dq_sq_use_token(&lane->sq, &world->cq), lane->next_id);
        lane->record[lane->count++] = (record_t){.id = lane->next_id++,
                                                 .wr_class = DQ_WR_MSG};
        lane->tokens--;
        lane->credits--;
        used++;
    }
    return used;
}


/* Posts if that is admitted, and says if it was. */
static int lane_post(world_t *world, lane_t *lane, dq_wr_class_t wr_class,
                     int want_signal)
{
    dq_admit_t admit = dq_sq_admit(&lane->sq, &world->cq, wr_class);
    dq_ticket_t ticket;

    lane->tokens = 0;
    T_NEED_EQ(admit, model_admit(world, lane, wr_class));
    if (lane->gate != DQ_GATE_NOT_UP) {
        T_NEED_EQ(dq_sq_is_admitted(&lane->sq, &world->cq, wr_class),
                  admit == DQ_ADMIT_OK);
    }
    if (admit != DQ_ADMIT_OK) {
        return 0;
    }

    ticket = dq_sq_post(&lane->sq, &world->cq, wr_class, want_signal);
    T_NEED_EQ(ticket.id, lane->next_id);
    T_NEED(ticket.signal || !want_signal);

    lane->record[lane->count++] = (record_t){.id        = lane->next_id++,
                                             .signalled = ticket.signal,
                                             .wr_class  = wr_class};
    lane->credits -= (wr_class != DQ_WR_RMA);
    return 1;
}


static void lane_unpost(world_t *world, lane_t *lane, uint32_t count)
{
    uint32_t messages = 0;
    uint32_t i;

    for (i = 0; i < count; i++) {
        messages += (lane->record[--lane->count].wr_class != DQ_WR_RMA);
    }
    lane->next_id -= count;
    lane->credits += messages;
    lane->tokens   = 0;
    dq_sq_unpost(&lane->sq, &world->cq, count, messages);
}


/* A completion for the request at @a index: all before it are over too. Of the
 * oldest it may be told in either way. */
static void lane_complete(world_t *world, lane_t *lane, uint32_t index)
{
    uint32_t id   = lane->record[index].id;
    uint32_t over = index + 1;

    if ((over == 1) && (id % 2)) {
        dq_sq_retire_oldest(&lane->sq, &world->cq);
    } else {
        T_NEED_EQ(dq_sq_retire(&lane->sq, &world->cq, id), over);
    }
    lane->count -= over;
    memmove(lane->record, lane->record + over,
            lane->count * sizeof(*lane->record));
}


/* The device completes the oldest signalled request; says if there was one. */
static int lane_device(world_t *world, lane_t *lane)
{
    uint32_t i;

    for (i = 0; i < lane->count; i++) {
        if (lane->record[i].signalled) {
            lane_complete(world, lane, i);
            return 1;
        }
    }
    return 0;
}


static void lane_check(const world_t *world, const lane_t *lane)
{
    uint32_t tail = lane_silent_tail(lane);
    uint32_t i;

    T_NEED(dq_sq_check(&lane->sq, &world->cq));
    T_NEED_EQ(dq_sq_in_use(&lane->sq), lane->count);
    T_NEED_EQ(dq_sq_credits(&lane->sq), lane->credits);
    T_NEED_EQ(dq_sq_tokens(&lane->sq), lane->tokens);
    T_NEED_EQ(dq_sq_unsignalled(&lane->sq), tail);
    T_NEED_EQ(dq_sq_tail_is_silent(&lane->sq), tail > 0);
    T_NEED(tail + lane->tokens < lane->every);
    if (lane->count > 0) {
        i = (uint32_t)t_at % lane->count;
        T_NEED_EQ(dq_sq_is_signalled(&lane->sq, lane->record[i].id),
                  lane->record[i].signalled != 0);
    }
    if (lane->count + DQ_SQ_RESERVE >= lane->depth) {
        T_NEED_EQ(tail, 0); /* a full SQ drains by itself */
    }
}


static void world_check(const world_t *world)
{
    uint32_t signals = 0;
    uint32_t silent  = 0;
    uint32_t tokens  = 0;
    unsigned i;

    for (i = 0; i < world->count; i++) {
        tokens += world->lane[i].tokens;
        lane_check(world, &world->lane[i]);
        signals += lane_signals(&world->lane[i]);
        silent  += lane_silent_tail(&world->lane[i]) + world->lane[i].tokens;
    }
    T_NEED_EQ(world->cq.used, world_used(world));
    T_NEED_EQ(world->cq.tokens, tokens);
    T_NEED_EQ(dq_cq_in_use(&world->cq), world_used(world) - tokens);
    T_NEED_EQ(world->cq.signals, signals);
    T_NEED(world->cq.used <= world->depth);
    T_NEED(silent <= world->depth / 2);
}


/* ---- Edges ---- */

static void world_of_one(world_t *world, uint32_t cq_depth, uint32_t depth,
                         uint32_t signal_every, uint32_t first_id)
{
    world_init(world, cq_depth, 1);
    lane_init(&world->lane[0], depth, signal_every, first_id);
    lane_up(world, &world->lane[0], 1000);
}


static void post_many(world_t *world, lane_t *lane, dq_wr_class_t wr_class,
                      uint32_t count)
{
    while (count-- > 0) {
        T_NEED(lane_post(world, lane, wr_class, 0));
        world_check(world);
    }
}


START_TEST(test_slots)
{
    static const uint32_t depth[] = {1, 2, 3, 4, 5, 127, 128, 129, 1 << 20};
    static const uint32_t slots[] = {1, 2, 4, 4, 8, 128, 128, 256, 1 << 20};
    size_t i;

    for (i = 0; i < sizeof(depth) / sizeof(depth[0]); i++) {
        ck_assert_uint_eq(dq_sq_slots(depth[i]), slots[i]);
    }
}
END_TEST


/* Depths that are a power of two and that are not; the data's end at
 * depth - 1, the grant's at depth; one more of either is refused. */
START_TEST(test_depth)
{
    static const uint32_t depths[] = {4, 5, 7, 8, 16, 127, 128, 129};
    uint32_t depth = depths[_i];
    world_t world;
    lane_t *lane = &world.lane[0];

    world_of_one(&world, 1000, depth, 1000, 0);
    /* 0 */ T_NEED_EQ(dq_sq_in_use(&lane->sq), 0);
    /* 0 */ T_NEED(!dq_sq_tail_is_silent(&lane->sq));
    /* 0 */ T_NEED_EQ(dq_sq_retire(&lane->sq, &world.cq, 0), 0);
    post_many(&world, lane, DQ_WR_MSG, depth - 1);
    /* d-1 */ T_NEED(!lane_post(&world, lane, DQ_WR_MSG, 0));
    /* d-1 */ T_NEED(!lane_post(&world, lane, DQ_WR_RMA, 1));
    /* d-1 */ T_NEED_EQ(dq_sq_admit(&lane->sq, &world.cq, DQ_WR_MSG),
                        DQ_ADMIT_SQ_FULL);
    post_many(&world, lane, DQ_WR_GRANT, 1);
    /* d */ T_NEED_EQ(dq_sq_in_use(&lane->sq), depth);
    /* d+1 */ T_NEED_EQ(dq_sq_admit(&lane->sq, &world.cq, DQ_WR_GRANT),
                        DQ_ADMIT_SQ_FULL);
    while (lane_device(&world, lane)) {
        world_check(&world);
    }
    /* all */ T_NEED_EQ(dq_sq_in_use(&lane->sq), 0);
    /* all */ T_NEED_EQ(world.cq.used, 0);
    world_free(&world);
}
END_TEST


/* Two SQs share a CQ that is smaller than either. */
START_TEST(test_cq_depth)
{
    static const uint32_t depths[] = {4, 5, 8, 33};
    uint32_t depth = depths[_i];
    world_t world;
    uint32_t i;

    world_init(&world, depth, 2);
    for (i = 0; i < 2; i++) {
        lane_init(&world.lane[i], 64, 16, 0);
        lane_up(&world, &world.lane[i], 1000);
    }
    for (i = 0; i < depth - 1; i++) {
        post_many(&world, &world.lane[i % 2], DQ_WR_MSG, 1);
    }
    for (i = 0; i < 2; i++) {
        T_NEED_EQ(dq_sq_admit(&world.lane[i].sq, &world.cq, DQ_WR_MSG),
                  DQ_ADMIT_CQ_FULL);
        T_NEED_EQ(dq_sq_admit(&world.lane[i].sq, &world.cq, DQ_WR_RMA),
                  DQ_ADMIT_CQ_FULL);
    }
    post_many(&world, &world.lane[0], DQ_WR_GRANT, 1);
    T_NEED_EQ(dq_sq_admit(&world.lane[1].sq, &world.cq, DQ_WR_GRANT),
              DQ_ADMIT_CQ_FULL);
    T_NEED(lane_device(&world, &world.lane[0]));
    world_check(&world);
    post_many(&world, &world.lane[1], DQ_WR_GRANT, 1);
    world_free(&world);
}
END_TEST


/* 1: three eighths fill it; 2: an entry less does not; 3: one that was full has room once
 * it is deeper; 4: the pressure is gone, too. */
START_TEST(test_cq_deeper)
{
    static const struct {
        uint32_t depth, fill, deeper;
    } cases[] = {{4, 2, 5}, {8, 3, 16}, {16, 6, 32}, {33, 13, 66}, {64, 24, 65}};
    uint32_t depth = cases[_i].depth;
    world_t world;
    uint32_t i;

    world_of_one(&world, depth, 128, 128, 0);
    for (i = 0; i < depth - 1; i++) {
        T_NEED_EQ(dq_cq_is_filling(&world.cq), i >= cases[_i].fill);
        post_many(&world, &world.lane[0], DQ_WR_RMA, 1);
    }
    T_NEED_EQ(dq_sq_admit(&world.lane[0].sq, &world.cq, DQ_WR_RMA), DQ_ADMIT_CQ_FULL);
    world_deepen(&world, cases[_i].deeper);
    world_check(&world);
    T_NEED_EQ(dq_cq_is_pressed(&world.cq, 0), depth - 1 >= cases[_i].deeper / 2);
    post_many(&world, &world.lane[0], DQ_WR_RMA, cases[_i].deeper - depth);
    T_NEED_EQ(dq_sq_admit(&world.lane[0].sq, &world.cq, DQ_WR_RMA), DQ_ADMIT_CQ_FULL);
    world_free(&world);
}
END_TEST


/* With room everywhere, exactly one in signal_every asks for a completion. */
START_TEST(test_signal_every)
{
    static const uint32_t asked[] = {0, 1, 2, 8, 31, 32, 33, 5000};
    static const uint32_t given[] = {1, 1, 2, 8, 31, 32, 32, 32};
    world_t world;
    lane_t *lane = &world.lane[0];
    uint32_t i;

    world_of_one(&world, 1000, 128, asked[_i], 0);
    for (i = 1; i <= 96; i++) {
        post_many(&world, lane, DQ_WR_RMA, 1);
        T_NEED_EQ(lane->record[i - 1].signalled != 0,
                  (i % given[_i]) == 0);
    }
    world_free(&world);
}
END_TEST


/* The first post that half fills the CQ is signalled, and all after it. */
START_TEST(test_signal_under_pressure)
{
    world_t world;
    lane_t *lane = &world.lane[0];
    uint32_t i;

    world_of_one(&world, 64, 512, 128, 0);
    for (i = 1; i < 64; i++) {
        T_NEED_EQ(dq_cq_is_pressed(&world.cq, 0), (i - 1) >= 32);
        post_many(&world, lane, DQ_WR_RMA, 1);
        T_NEED_EQ(lane->record[i - 1].signalled != 0, i >= 32);
    }
    world_free(&world);
}
END_TEST


/* 1: data leaves the last credit; 2: a grant takes it; 3: nothing is left;
 * 4: one-sided needs none; 5: a promise past the window changes nothing. */
START_TEST(test_credits)
{
    world_t world;
    lane_t *lane = &world.lane[0];

    world_init(&world, 100, 1);
    lane_init(lane, 64, 8, 0);
    lane_up(&world, lane, 3);
    post_many(&world, lane, DQ_WR_MSG, 2);
    /* 1 */ T_NEED_EQ(dq_sq_admit(&lane->sq, &world.cq, DQ_WR_MSG),
                      DQ_ADMIT_NO_CREDIT);
    /* 2 */ post_many(&world, lane, DQ_WR_GRANT, 1);
    /* 3 */ T_NEED_EQ(dq_sq_admit(&lane->sq, &world.cq, DQ_WR_GRANT),
                      DQ_ADMIT_NO_CREDIT);
    /* 4 */ post_many(&world, lane, DQ_WR_RMA, 1);
    /* 5 */ T_NEED_EQ(dq_sq_credit(&lane->sq, 4), -1);
    /* 5 */ T_NEED_EQ(dq_sq_credit(&lane->sq, UINT32_MAX), -1);
    /* 5 */ T_NEED_EQ(lane->sq.credits, 0);
    T_NEED_EQ(dq_sq_credit(&lane->sq, 0), 0);
    T_NEED_EQ(dq_sq_credit(&lane->sq, 2), 0);
    /* 5 */ T_NEED_EQ(dq_sq_credit(&lane->sq, 2), -1);
    /* 5 */ T_NEED_EQ(dq_sq_credit(&lane->sq, UINT32_MAX - 1), -1);
    T_NEED_EQ(dq_sq_credit(&lane->sq, 1), 0);
    T_NEED_EQ(lane->sq.credits, 3);
    world_free(&world);
}
END_TEST


/*
 * One lane, 16 deep, a signal for each 4th at least.
 *  1  as many as asked for, and no more
 *  2  less than the run between two signals
 *  3  credits leave the reserve, depth leaves the reserve and the signal
 *  4  the CQ: no more than half with everything that is in use
 *  5  a post costs nothing more, and a completion retires it like any other
 *  6  admission returns them; so do a loss, a close and a refusal
 *  7  none unless the gate is open
 */
START_TEST(test_tokens)
{
    world_t world;
    lane_t *lane = &world.lane[0];
    uint32_t used;

    world_of_one(&world, 100, 16, 4, (uint32_t)-2);
    /* 1 */ T_NEED_EQ(dq_sq_take_tokens(&lane->sq, &world.cq, 0), 0);
    T_NEED_EQ(dq_sq_take_tokens(&lane->sq, &world.cq, 2), 2);
    /* 5 */ T_NEED_EQ(world.cq.used, 2);
    T_NEED_EQ(lane->sq.credits, 998);
    T_NEED_EQ(dq_sq_credits(&lane->sq), 1000);
    T_NEED_EQ(dq_sq_use_token(&lane->sq, &world.cq), (uint32_t)-2);
    T_NEED_EQ(world.cq.used, 2);
    T_NEED_EQ(dq_sq_credits(&lane->sq), 999);
    T_NEED_EQ(dq_sq_unsignalled(&lane->sq), 1);
    T_NEED(dq_sq_check(&lane->sq, &world.cq));
    /* 6 */ T_NEED_EQ(dq_sq_admit(&lane->sq, &world.cq, DQ_WR_RMA), DQ_ADMIT_OK);
    T_NEED_EQ(dq_sq_tokens(&lane->sq), 0);
    T_NEED_EQ(world.cq.used, 1);
    /* 2 */ T_NEED_EQ(dq_sq_take_tokens(&lane->sq, &world.cq, 99), 2);
    /* 5 */ T_NEED_EQ(dq_sq_retire(&lane->sq, &world.cq, (uint32_t)-2), 1);
    T_NEED_EQ(dq_sq_tokens(&lane->sq), 2);
    T_NEED(dq_sq_check(&lane->sq, &world.cq));
    /* 6 */ dq_sq_lose(&lane->sq, &world.cq);
    T_NEED_EQ(world.cq.used, 0);
    /* 7 */ T_NEED_EQ(dq_sq_take_tokens(&lane->sq, &world.cq, 99), 0);
    T_NEED_EQ(dq_sq_reopen(&lane->sq, 3, 3, 0), 0);
    /* 3 */ T_NEED_EQ(dq_sq_take_tokens(&lane->sq, &world.cq, 99), 2);
    T_NEED_EQ(lane->sq.credits, 1);
    dq_sq_return_tokens(&lane->sq, &world.cq);
    T_NEED_EQ(lane->sq.credits, 3);
    for (used = 0; used < 12; used++) {
        dq_sq_post(&lane->sq, &world.cq, DQ_WR_RMA, 1);
    }
    /* 3 */ T_NEED_EQ(dq_sq_take_tokens(&lane->sq, &world.cq, 99), 2);
    /* 6 */ dq_sq_unpost(&lane->sq, &world.cq, 2, 0);
    T_NEED_EQ(dq_sq_tokens(&lane->sq), 0);
    T_NEED_EQ(world.cq.used, 10);
    world.cq.used = 48;
    /* 4 */ T_NEED_EQ(dq_sq_take_tokens(&lane->sq, &world.cq, 99), 1);
    dq_sq_return_tokens(&lane->sq, &world.cq);
    world.cq.used = 49;
    T_NEED_EQ(dq_sq_take_tokens(&lane->sq, &world.cq, 99), 0);
    world.cq.used = 10;
    T_NEED_EQ(dq_sq_take_tokens(&lane->sq, &world.cq, 1), 1);
    /* 6 */ dq_sq_close(&lane->sq, &world.cq);
    T_NEED_EQ(world.cq.used, 10);
    T_NEED_EQ(dq_sq_admit(&lane->sq, &world.cq, DQ_WR_RMA), DQ_ADMIT_DEAD);
    world_free(&world);
}
END_TEST


START_TEST(test_gate)
{
    static const dq_wr_class_t classes[] = {DQ_WR_MSG, DQ_WR_RMA, DQ_WR_CONTROL,
                                            DQ_WR_GRANT};
    world_t world;
    lane_t *lane = &world.lane[0];
    size_t i;

    world_init(&world, 100, 1);
    lane_init(lane, 8, 2, 0);
    for (i = 0; i < 4; i++) {
        T_NEED_EQ(dq_sq_admit(&lane->sq, &world.cq, classes[i]),
                  DQ_ADMIT_NOT_UP);
    }
    lane_up(&world, lane, 100);
    post_many(&world, lane, DQ_WR_MSG, 7);
    dq_sq_shut(&lane->sq, &world.cq); /* only grants and control */
    for (i = 0; i < 4; i++) {
        T_NEED_EQ(dq_sq_admit(&lane->sq, &world.cq, classes[i]),
                  (i >= 2) ? DQ_ADMIT_OK : DQ_ADMIT_NOT_UP);
    }
    lane_set_gate(&world, lane, DQ_GATE_DEAD);
    for (i = 0; i < 4; i++) { /* before any other reason */
        T_NEED_EQ(dq_sq_admit(&lane->sq, &world.cq, classes[i]),
                  DQ_ADMIT_DEAD);
    }
    while (lane->count > 0) { /* what was posted is still accounted */
        lane_complete(&world, lane, 0);
        world_check(&world);
    }
    world_free(&world);
}
END_TEST


/* Posts as long as requests may be held. Returns how many. */
static uint32_t post_early(world_t *world, lane_t *lane, dq_wr_class_t wr_class)
{
    uint32_t count = 0;

    while (dq_sq_admit_preconnect(&lane->sq, &world->cq, wr_class) == DQ_ADMIT_OK) {
        T_NEED(dq_sq_is_admitted(&lane->sq, &world->cq, wr_class));
        T_NEED(dq_sq_admit(&lane->sq, &world->cq, wr_class) ==
               DQ_ADMIT_NOT_UP);
        (void)dq_sq_post(&lane->sq, &world->cq, wr_class, 0);
        count++;
        T_NEED(dq_sq_check(&lane->sq, &world->cq));
    }
    T_NEED_EQ(dq_sq_admit_preconnect(&lane->sq, &world->cq, wr_class),
              DQ_ADMIT_NOT_UP);
    T_NEED(!dq_sq_is_admitted(&lane->sq, &world->cq, wr_class));
    return count;
}


/* 1: messages take what every peer promises, and leave the last; 2: a grant
 * waits; 3: one-sided ones fill up the rest; 4: the gate opens with what the
 * peer promised in truth, of a window that may be more; 5: all of them complete;
 * 6: no more than the SQ has; 7: no more than half of the CQ; 8: once up or dead it
 * is the usual question; 9: a broken peer promises less than every peer must, or
 * more than its window. */
START_TEST(test_early)
{
    world_t world;
    lane_t *lane = &world.lane[0];
    lane_t *thin = &world.lane[1];

    world_init(&world, 20, 2);
    lane_init(lane, 64, 16, (uint32_t)-2);
    dq_sq_expect(&lane->sq);
    /* 0 */ T_NEED_EQ(dq_sq_admit_preconnect(&lane->sq, &world.cq, DQ_WR_CONTROL),
                      DQ_ADMIT_NOT_UP);
    /* 1 */ T_NEED_EQ(post_early(&world, lane, DQ_WR_MSG), DQ_WINDOW_MIN - 1);
    /* 2 */ T_NEED_EQ(dq_sq_admit_preconnect(&lane->sq, &world.cq, DQ_WR_GRANT),
                      DQ_ADMIT_NOT_UP);
    /* 3 */ T_NEED_EQ(post_early(&world, lane, DQ_WR_RMA),
                      DQ_SQ_PRECONNECT_MAX - (DQ_WINDOW_MIN - 1));

    lane_init(thin, 4, 1, 0);
    dq_sq_expect(&thin->sq);
    /* 7 */ T_NEED_EQ(post_early(&world, thin, DQ_WR_RMA), 2);
    /* 9 */ T_NEED_EQ(dq_sq_open(&lane->sq, 100, DQ_WINDOW_MIN - 1), -1);
    T_NEED_EQ(dq_sq_open(&lane->sq, 100, 101), -1);
    T_NEED_EQ(lane->sq.gate, DQ_GATE_NOT_UP);
    T_NEED_EQ(lane->sq.credits, 1);
    /* 4 */ T_NEED_EQ(dq_sq_open(&lane->sq, 100, 40), 0);
    T_NEED_EQ(lane->sq.credits, 40 - (DQ_WINDOW_MIN - 1));
    T_NEED_EQ(dq_sq_credit(&lane->sq, 100 - 37), -1);
    T_NEED_EQ(dq_sq_credit(&lane->sq, 100 - 38), 0);
    /* 5 */ T_NEED_EQ(dq_sq_retire(&lane->sq, &world.cq, lane->sq.posted - 1),
                      DQ_SQ_PRECONNECT_MAX);
    /* 6 */ T_NEED_EQ(post_early(&world, thin, DQ_WR_RMA), 1);
    T_NEED_EQ(dq_sq_open(&thin->sq, DQ_WINDOW_MIN, DQ_WINDOW_MIN), 0);
    T_NEED_EQ(thin->sq.credits, DQ_WINDOW_MIN);
    /* 8 */ T_NEED_EQ(dq_sq_admit_preconnect(&lane->sq, &world.cq, DQ_WR_GRANT),
                      DQ_ADMIT_OK);
    lane->sq.gate = DQ_GATE_DEAD;
    /* 8 */ T_NEED_EQ(dq_sq_admit_preconnect(&lane->sq, &world.cq, DQ_WR_RMA),
                      DQ_ADMIT_DEAD);
    T_NEED_EQ(dq_sq_retire(&thin->sq, &world.cq, thin->sq.posted - 1), 3);
    T_NEED_EQ(world.cq.used, 0);
    world_free(&world);
}
END_TEST


/*
 * A QP is lost, and another one takes over: nothing of the ledger changes but
 * the credits, which are counted anew.
 *  1 lost: everything must wait, and no credit is left
 *  2 what is in use stays, retires under its id, with its signal
 *  3 a promise that is less than what is sent again, or more than the window
 *  4 credits that came on the new QP before count, but not past the window
 *  5 open again
 *  6 the window is the peer's: the first QP may be lost before it was known
 */
START_TEST(test_lose)
{
    world_t world;
    lane_t *lane = &world.lane[0];
    uint32_t i, id;

    world_init(&world, 64, 1);
    lane_init(lane, 16, 4, (uint32_t)-3);
    dq_sq_expect(&lane->sq);
    T_NEED_EQ(dq_sq_open(&lane->sq, 20, 20), 0);
    for (i = 0; i < 6; i++) {
        dq_sq_post(&lane->sq, &world.cq, DQ_WR_MSG, i == 1);
    }
    T_NEED_EQ(lane->sq.credits, 14);
    dq_sq_lose(&lane->sq, &world.cq);
    /* 1 */ T_NEED_EQ(dq_sq_admit(&lane->sq, &world.cq, DQ_WR_RMA),
                      DQ_ADMIT_NOT_UP);
    T_NEED_EQ(dq_sq_admit(&lane->sq, &world.cq, DQ_WR_GRANT), DQ_ADMIT_NOT_UP);
    T_NEED_EQ(dq_sq_admit_preconnect(&lane->sq, &world.cq, DQ_WR_RMA),
              DQ_ADMIT_NOT_UP);
    T_NEED_EQ(lane->sq.credits, 0);
    /* 2 */ T_NEED_EQ(dq_sq_in_use(&lane->sq), 6);
    T_NEED_EQ(world.cq.used, 6);
    for (i = 0; i < 6; i++) {
        id = (uint32_t)-3 + i;
        T_NEED_EQ(dq_sq_is_signalled(&lane->sq, id), (i == 1) || (i == 5));
        if (i < 2) {
            T_NEED_EQ(dq_sq_retire(&lane->sq, &world.cq, id), 1);
        }
    }
    T_NEED_EQ(dq_sq_is_signalled(&lane->sq, (uint32_t)-1), 0);
    T_NEED(dq_sq_check(&lane->sq, &world.cq));

    /* 3 */ T_NEED_EQ(dq_sq_reopen(&lane->sq, 20, 3, 4), -1);
    T_NEED_EQ(dq_sq_reopen(&lane->sq, 20, 21, 4), -1);
    /* 4 */ T_NEED_EQ(dq_sq_credit(&lane->sq, 5), 0);
    T_NEED_EQ(dq_sq_reopen(&lane->sq, 20, 20, 4), -1);
    T_NEED_EQ(lane->sq.credits, 5);
    T_NEED_EQ(lane->sq.gate, DQ_GATE_LOST);
    T_NEED_EQ(dq_sq_reopen(&lane->sq, 20, 19, 4), 0);
    /* 5 */ T_NEED_EQ(lane->sq.credits, 20);
    dq_sq_lose(&lane->sq, &world.cq);
    /* 6 */ T_NEED_EQ(dq_sq_reopen(&lane->sq, 30, 30, 4), 0);
    T_NEED_EQ(lane->sq.credits, 26);
    T_NEED_EQ(lane->sq.window, 30);
    T_NEED_EQ(dq_sq_admit(&lane->sq, &world.cq, DQ_WR_MSG), DQ_ADMIT_OK);
    T_NEED_EQ(dq_sq_retire(&lane->sq, &world.cq, lane->sq.posted - 1), 4);
    T_NEED_EQ(world.cq.used, 0);
    T_NEED_EQ(world.cq.signals, 0);
    world_free(&world);
}
END_TEST


/* A QP dies: the device names every request, signalled or not, one by one. */
START_TEST(test_flush_names_each)
{
    world_t world;
    lane_t *lane = &world.lane[0];
    uint32_t died_at;

    for (died_at = 0; died_at < 31; died_at++) {
        world_of_one(&world, 100, 32, 8, (uint32_t)-16);
        post_many(&world, lane, DQ_WR_MSG, 31);
        lane_complete(&world, lane, died_at);
        world_check(&world);
        while (lane->count > 0) {
            lane_complete(&world, lane, 0);
            world_check(&world);
        }
        T_NEED_EQ(world.cq.used, 0);
        world_free(&world);
    }
}
END_TEST


/*
 * 1  a marker is posted whatever the gate says, and is signalled
 * 2  it takes no credit, and leaves the reserve of SQ and CQ
 * 3  it speaks for all before it: the ledger is empty when it is over
 */
START_TEST(test_mark)
{
    static const dq_gate_t gates[] = {DQ_GATE_LOST, DQ_GATE_DEAD};
    world_t world;
    lane_t *lane = &world.lane[0];
    uint32_t id;

    world_init(&world, 64, 1);
    lane_init(lane, 16, 4, (uint32_t)-3);
    dq_sq_expect(&lane->sq);
    T_NEED_EQ(dq_sq_open(&lane->sq, 20, 20), 0);
    dq_sq_post(&lane->sq, &world.cq, DQ_WR_MSG, 1);
    dq_sq_post(&lane->sq, &world.cq, DQ_WR_MSG, 0);
    T_NEED(dq_sq_tail_is_silent(&lane->sq));
    lane->sq.gate = gates[_i];
    /* 1 */ T_NEED(dq_sq_has_room(&lane->sq, &world.cq));
    id = lane->sq.posted;
    dq_sq_mark(&lane->sq, &world.cq);
    T_NEED_EQ(lane->sq.posted, id + 1);
    T_NEED(dq_sq_is_signalled(&lane->sq, id));
    T_NEED(!dq_sq_tail_is_silent(&lane->sq));
    T_NEED_EQ(world.cq.signals, 2);
    /* 2 */ T_NEED_EQ(lane->sq.credits, 18);
    T_NEED(dq_sq_check(&lane->sq, &world.cq));
    /* 3 */ T_NEED_EQ(dq_sq_retire(&lane->sq, &world.cq, id), 3);
    T_NEED_EQ(world.cq.used, 0);
    T_NEED_EQ(world.cq.signals, 0);
    for (id = 0; id < 15; id++) {
        T_NEED(dq_sq_has_room(&lane->sq, &world.cq));
        dq_sq_mark(&lane->sq, &world.cq);
    }
    /* 2 */ T_NEED(!dq_sq_has_room(&lane->sq, &world.cq));
    T_NEED_EQ(dq_sq_retire(&lane->sq, &world.cq, lane->sq.posted - 1), 15);
    world.cq.used = 63;
    T_NEED(!dq_sq_has_room(&lane->sq, &world.cq));
    world.cq.used = 62;
    T_NEED(dq_sq_has_room(&lane->sq, &world.cq));
    world_free(&world);
}
END_TEST


/* Ids that are not in use: retired ones, the next one, and far ones. */
START_TEST(test_stray_ids)
{
    world_t world;
    lane_t *lane = &world.lane[0];
    uint32_t first = (uint32_t)-3;
    int32_t stray;

    world_of_one(&world, 100, 16, 2, first);
    post_many(&world, lane, DQ_WR_MSG, 10);
    lane_complete(&world, lane, 3);
    for (stray = -40; stray < 4; stray++) {
        T_NEED_EQ(dq_sq_retire(&lane->sq, &world.cq, first + stray), 0);
    }
    for (stray = 10; stray < 50; stray++) {
        T_NEED_EQ(dq_sq_retire(&lane->sq, &world.cq, first + stray), 0);
    }
    world_check(&world);
    T_NEED_EQ(dq_sq_in_use(&lane->sq), 6);
    world_free(&world);
}
END_TEST


/* Every chain length with every point at which the device may refuse it,
 * from an empty and from a loaded queue; then the queue fills and drains. */
START_TEST(test_unpost)
{
    world_t world;
    lane_t *lane = &world.lane[0];
    uint32_t chain, kept, base;

    for (base = 0; base < 8; base++) {
        for (chain = 0; chain < 23 - base; chain++) {
            for (kept = 0; kept <= chain; kept++) {
                world_of_one(&world, 30, 24, 6, (uint32_t)-5);
                post_many(&world, lane, DQ_WR_MSG, base);
                lane_device(&world, lane);
                post_many(&world, lane, DQ_WR_MSG, chain);
                lane_unpost(&world, lane, chain - kept);
                world_check(&world);
                while (lane_post(&world, lane, DQ_WR_RMA, 0)) {
                    world_check(&world);
                }
                while (lane_device(&world, lane)) {
                    world_check(&world);
                }
                T_NEED_EQ(world.cq.used, 0);
                world_free(&world);
            }
        }
    }
}
END_TEST


/* dq_sq_check() is what debug builds rely on: it must see each kind of damage.
 * 16 deep, 8 in use, the last 2 unsignalled. */
START_TEST(test_check_sees)
{
    world_t world;
    lane_t *lane = &world.lane[0];
    dq_sq_t sq;
    dq_cq_t cq;

    world_of_one(&world, 100, 16, 3, 0);
    post_many(&world, lane, DQ_WR_MSG, 8);
#define SEES(_damage) \
    do { \
        sq = lane->sq; \
        cq = world.cq; \
        _damage; \
        ck_assert_msg(!dq_sq_check(&sq, &cq), "not seen: %s", #_damage); \
    } while (0)
    SEES((sq.retired = sq.posted - 17, cq.used = 17));
    SEES(cq.used = 101);
    SEES(cq.used = 7);
    SEES(cq.signals = 9);
    SEES(cq.signals = 1);
    SEES((sq.signals_over -= 9, cq.used = 20, cq.signals = 11));
    SEES(sq.tail -= 7);
    SEES(sq.tail += 1);
    SEES(sq.signal_every = 2);
    SEES(sq.credits = sq.window + 1);
    T_NEED_EQ(dq_sq_credit(&lane->sq, 8), 0); /* the whole window */
    SEES((sq.token_end++, cq.used++, cq.tokens++));
    lane->sq.credits--;
    lane->sq.signal_every = 8;
    SEES(sq.token_end++);
    SEES((sq.token_end++, cq.used++));
    SEES((sq.token_end++, cq.tokens++));
    SEES((sq.token_end++, cq.used++, cq.tokens++, sq.gate = DQ_GATE_LOST));
    SEES((sq.token_end++, cq.used++, cq.tokens++, sq.signal_every = 3));
    SEES((sq.token_end++, cq.used++, cq.tokens++, sq.depth = 9));
    sq = lane->sq;
    sq.token_end++;
    cq = world.cq;
    cq.used++;
    cq.tokens++;
    T_NEED(dq_sq_check(&sq, &cq));
#undef SEES
    world_free(&world);
}
END_TEST


START_TEST(test_names)
{
    unsigned i, j;

    for (i = 0; i < DQ_ADMIT_LAST; i++) {
        ck_assert_str_ne(dq_admit_name((dq_admit_t)i), "?");
        for (j = 0; j < i; j++) {
            ck_assert_str_ne(dq_admit_name((dq_admit_t)i),
                             dq_admit_name((dq_admit_t)j));
        }
    }
    ck_assert_str_eq(dq_admit_name(DQ_ADMIT_LAST), "?");
}
END_TEST


/* Half of the depth in use, or four times as many posts, say that more would help. */
START_TEST(test_tight)
{
    dq_sq_t sq = {.depth = 16, .posted = 1000, .retired = 993};

    T_NEED(!dq_sq_is_tight(&sq, 1000));
    T_NEED(!dq_sq_is_tight(&sq, 1000 - 63));
    T_NEED(dq_sq_is_tight(&sq, 1000 - 64));
    sq.retired = 992;
    T_NEED(dq_sq_is_tight(&sq, 1000));

    /* ids wrap */
    sq = (dq_sq_t){.depth = 16, .posted = 2, .retired = 2};
    T_NEED(!dq_sq_is_tight(&sq, (uint32_t)-61));
    T_NEED(dq_sq_is_tight(&sq, (uint32_t)-62));
}
END_TEST


/* A full SQ with a token is not full any more, and the signals are still known, in the
 * same order, across a wrap of ids and of both rings. */
START_TEST(test_grow_full)
{
    world_t world;
    lane_t *lane = &world.lane[0];
    uint32_t i;

    world_init(&world, 100, 1);
    lane_init(lane, 8, 2, (uint32_t)-5);
    lane_up(&world, lane, 50);
    while (lane_post(&world, lane, DQ_WR_RMA, 0)) {
        world_check(&world);
    }
    T_NEED_EQ(dq_sq_admit(&lane->sq, &world.cq, DQ_WR_RMA), DQ_ADMIT_SQ_FULL);
    lane_grow(lane, 20);
    world_check(&world);
    T_NEED_EQ(dq_sq_admit(&lane->sq, &world.cq, DQ_WR_RMA), DQ_ADMIT_OK);
    T_NEED_EQ(lane->sq.signal_every, 2);
    for (i = 0; i < lane->count; i++) {
        T_NEED_EQ(!!dq_sq_is_signalled(&lane->sq, lane->record[i].id),
                  !!lane->record[i].signalled);
    }
    while (lane_post(&world, lane, DQ_WR_RMA, 0)) {
        world_check(&world);
    }
    T_NEED_EQ(dq_sq_in_use(&lane->sq), 19);
    world_free(&world);
}
END_TEST


/* Tokens that were taken before stay tokens. */
START_TEST(test_grow_with_tokens)
{
    world_t world;
    lane_t *lane = &world.lane[0];

    world_init(&world, 100, 1);
    lane_init(lane, 16, 64, 0);
    lane_up(&world, lane, 50);
    lane_take_tokens(&world, lane, 40);
    T_NEED_EQ(dq_sq_tokens(&lane->sq), 3);
    lane_grow(lane, 64);
    world_check(&world);
    T_NEED_EQ(dq_sq_tokens(&lane->sq), 3);
    T_NEED_EQ(lane_use_tokens(&world, lane, 3), 3);
    world_check(&world);
    lane_take_tokens(&world, lane, 40);
    T_NEED_EQ(dq_sq_tokens(&lane->sq), 12);
    world_check(&world);
    world_free(&world);
}
END_TEST


/* ---- Random runs ---- */

static void random_world(world_t *world, t_rng_t *rng)
{
    unsigned count = t_rng_range(rng, 1, MAX_SQS);
    unsigned i;

    world_init(world,
               t_rng_once_in(rng, 2) ? t_rng_range(rng, 4, 40)
                                     : t_rng_range(rng, 40, 400),
               count);
    for (i = 0; i < count; i++) {
        lane_init(&world->lane[i], t_rng_range(rng, 4, 80),
                  t_rng_below(rng, 40),
                  (uint32_t)0 - (uint32_t)t_rng_below(rng, 3000));
        lane_up(world, &world->lane[i], t_rng_range(rng, 1, 200));
    }
}


/* A chain, of which the device may refuse a part. */
static void random_posts(world_t *world, lane_t *lane, t_rng_t *rng)
{
    static const dq_wr_class_t classes[] = {DQ_WR_MSG, DQ_WR_MSG, DQ_WR_MSG, DQ_WR_RMA,
                                            DQ_WR_CONTROL, DQ_WR_GRANT};
    uint32_t length = t_rng_range(rng, 1, 8);
    uint32_t posted = 0;

    while ((length-- > 0) &&
           lane_post(world, lane, classes[t_rng_below(rng, 6)],
                     t_rng_once_in(rng, 8))) {
        posted++;
        world_check(world);
    }
    if (t_rng_once_in(rng, 4)) {
        lane_unpost(world, lane, t_rng_range(rng, 0, posted));
    }
}


/* Takes tokens, and uses some or all of them. */
static void random_tokens(world_t *world, lane_t *lane, t_rng_t *rng)
{
    lane_take_tokens(world, lane, t_rng_below(rng, 40));
    world_check(world);
    (void)lane_use_tokens(world, lane, t_rng_below(rng, 40));
}


static void random_credit(lane_t *lane, t_rng_t *rng)
{
    uint32_t count = t_rng_below(rng, lane->window + 2);
    int fits       = lane->credits + count <= lane->window;

    T_NEED_EQ(dq_sq_credit(&lane->sq, count), fits ? 0 : -1);
    lane->credits += fits ? count : 0;
}


static void random_stray(world_t *world, lane_t *lane, t_rng_t *rng)
{
    uint32_t oldest = lane->next_id - lane->count;
    uint32_t id     = t_rng_once_in(rng, 2)
                              ? lane->next_id + (uint32_t)t_rng_below(rng, 100)
                              : oldest - 1 - (uint32_t)t_rng_below(rng, 100);

    T_NEED_EQ(dq_sq_retire(&lane->sq, &world->cq, id), 0);
}


/* Nothing is posted any more, the device does all that it owes: what is left
 * are silent tails, and every SQ that is up may be posted to again. */
static void world_drains(world_t *world)
{
    unsigned i;

    for (i = 0; i < world->count; i++) {
        while (lane_device(world, &world->lane[i])) {
            world_check(world);
        }
    }
    for (i = 0; i < world->count; i++) {
        if (world->lane[i].gate == DQ_GATE_UP) {
            T_NEED_EQ(dq_sq_admit(&world->lane[i].sq, &world->cq, DQ_WR_RMA),
                      DQ_ADMIT_OK);
            world->lane[i].tokens = 0;
        }
    }
}


static void random_step(world_t *world, t_rng_t *rng)
{
    lane_t *lane = &world->lane[t_rng_below(rng, world->count)];

    switch (t_rng_below(rng, 20)) {
    case 0:
    case 1:
    case 2:
        lane_device(world, lane);
        break;
    case 3: /* an error names any request, then flushes name the rest */
        if (lane->count > 0) {
            lane_complete(world, lane, t_rng_below(rng, lane->count));
        }
        break;
    case 4:
    case 5:
        random_credit(lane, rng);
        break;
    case 6:
        random_stray(world, lane, rng);
        break;
    case 7:
        if (t_rng_once_in(rng, 20)) {
            lane_set_gate(world, lane, (dq_gate_t)t_rng_below(rng, DQ_GATE_DEAD));
        } else if (t_rng_once_in(rng, 4)) {
            lane_set_gate(world, lane, DQ_GATE_UP);
        }
        break;
    case 8:
    case 9:
        random_tokens(world, lane, rng);
        break;
    case 10:
        (void)lane_use_tokens(world, lane, t_rng_below(rng, 40));
        break;
    case 11:
        if (t_rng_once_in(rng, 50)) {
            world_drains(world);
        }
        break;
    case 12:
        if (t_rng_once_in(rng, 500)) {
            lane_grow(lane, lane->depth + (uint32_t)t_rng_below(rng, 40));
        } else if (t_rng_once_in(rng, 500)) {
            world_deepen(world, world->depth + t_rng_range(rng, 1, 20));
        }
        break;
    default:
        random_posts(world, lane, rng);
    }
}


START_TEST(test_random)
{
    world_t world;
    t_rng_t rng;

    t_rng_init(&rng, 0x5100 + _i);
    random_world(&world, &rng);
    for (t_at = 0; t_at < STEPS; t_at++) {
        random_step(&world, &rng);
        world_check(&world);
    }
    world_free(&world);
}
END_TEST


/* Everybody posts what the ledger lets them until nobody may, whatever mix of
 * signals they ask for; then one completion must be on its way. */
START_TEST(test_never_stuck)
{
    world_t world;
    t_rng_t rng;
    lane_t *lane;
    unsigned i;

    t_rng_init(&rng, 0x5200 + _i);
    world_init(&world, t_rng_range(&rng, 4, 60), MAX_SQS);
    for (i = 0; i < MAX_SQS; i++) {
        lane_init(&world.lane[i], t_rng_range(&rng, 4, 40),
                  t_rng_below(&rng, 20), (uint32_t)-50);
        lane_up(&world, &world.lane[i], 1);
    }
    for (t_at = 0; t_at < 4000; t_at++) {
        lane = &world.lane[t_rng_below(&rng, MAX_SQS)];
        if (lane_post(&world, lane, DQ_WR_RMA, t_rng_once_in(&rng, 30))) {
            continue;
        }
        if (lane->count + DQ_SQ_RESERVE >= lane->depth) {
            T_NEED(lane_device(&world, lane));
            continue;
        }
        for (i = 0; !lane_device(&world, &world.lane[i]); i++) {
            T_NEED(i + 1 < MAX_SQS);
        }
    }
    world_drains(&world);
    world_free(&world);
}
END_TEST


static Suite *suite_sq(void)
{
    Suite *suite  = suite_create("sq");
    TCase *edges  = tcase_create("edges");
    TCase *random = tcase_create("random");

    tcase_set_timeout(edges, T_TIMEOUT);
    tcase_add_test(edges, test_slots);
    tcase_add_loop_test(edges, test_depth, 0, 8);
    tcase_add_loop_test(edges, test_cq_depth, 0, 4);
    tcase_add_loop_test(edges, test_cq_deeper, 0, 5);
    tcase_add_loop_test(edges, test_signal_every, 0, 8);
    tcase_add_test(edges, test_signal_under_pressure);
    tcase_add_test(edges, test_credits);
    tcase_add_test(edges, test_tokens);
    tcase_add_test(edges, test_gate);
    tcase_add_test(edges, test_early);
    tcase_add_test(edges, test_lose);
    tcase_add_loop_test(edges, test_mark, 0, 2);
    tcase_add_test(edges, test_flush_names_each);
    tcase_add_test(edges, test_stray_ids);
    tcase_add_test(edges, test_unpost);
    tcase_add_test(edges, test_check_sees);
    tcase_add_test(edges, test_tight);
    tcase_add_test(edges, test_grow_full);
    tcase_add_test(edges, test_grow_with_tokens);
    tcase_add_test(edges, test_names);
    suite_add_tcase(suite, edges);

    tcase_set_timeout(random, T_TIMEOUT);
    tcase_add_loop_test(random, test_random, 0, RUNS);
    tcase_add_loop_test(random, test_never_stuck, 0, RUNS);
    suite_add_tcase(suite, random);
    return suite;
}

T_MAIN(suite_sq)
