/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credits from end to end: send ledgers and receive ledgers on both sides of
 * in-order channels, doing what the transport does with them. For each window
 * size, at full load in both directions, and for a connection from an end to
 * itself:
 *   - a message never finds the receive queue empty;
 *   - credits are conserved: had, in flight, or owed, they add up;
 *   - from wherever chance has led, everything moves on;
 *   - when the load stops, the grants stop.
 */
#include "t_unit.h"
#include "dq/dq_rx.h"
#include "dq/dq_sq.h"

#include <stdlib.h>

enum {
    MAX_CONNS  = 3,
    MAX_DEPTH  = 64,
    QUEUE      = 1024, /* more than can be in flight                         */
    STEPS      = 6000, /* of one random run                                  */
    WINDOW_MAX = 64,
    START_MIN  = 4 /* RX_WINDOW_START                                        */
};

typedef struct half half_t;
typedef struct end  end_t;

typedef struct {
    half_t   *to;
    uint32_t id;
    uint32_t credits;
    int      signalled;
    int      is_data;
} message_t;

/* A FIFO: what a channel carries, or what waits in a completion queue. */
typedef struct {
    message_t slot[QUEUE];
    uint32_t  head, tail;
} fifo_t;

/* One side of a connection. */
struct half {
    end_t          *end;
    half_t         *peer; /* may be itself                                   */
    dq_sq_t        sq;
    uint32_t       slot[MAX_DEPTH];
    dq_rx_window_t window;
    uint32_t       size;
    uint32_t       most;    /* that it may be widened to                     */
    fifo_t         channel; /* towards the peer                              */
    uint64_t       got;
};

struct end {
    dq_cq_t  cq;
    dq_rx_t  rx;
    uint32_t batch;
    fifo_t   arrived;
    half_t   half[MAX_CONNS];
    uint32_t ride_from; /* owed * ride_from >= size: credits ride on data    */
};

typedef struct {
    end_t    end[2];
    unsigned ends;
    unsigned conns;
    unsigned round; /* each begins with another connection: they share a CQ  */
    int      load;  /* data is sent                                          */
    int      moved;
} world_t;


static uint32_t fifo_length(const fifo_t *fifo)
{
    return fifo->tail - fifo->head;
}


static void fifo_push(fifo_t *fifo, message_t message)
{
    T_NEED(fifo_length(fifo) < QUEUE);
    fifo->slot[fifo->tail++ % QUEUE] = message;
}


static message_t fifo_pop(fifo_t *fifo)
{
    T_NEED(fifo_length(fifo) > 0);
    return fifo->slot[fifo->head++ % QUEUE];
}


static const message_t *fifo_at(const fifo_t *fifo, uint32_t index)
{
    return &fifo->slot[(fifo->head + index) % QUEUE];
}


/* What of the window that @a half has promised is somewhere on the way:
 * messages that used a credit, and credits on their way to be used. */
static uint32_t count_in_flight(const half_t *half)
{
    const fifo_t *in   = &half->peer->channel;
    const fifo_t *out  = &half->channel;
    const fifo_t *here = &half->end->arrived;
    const fifo_t *far  = &half->peer->end->arrived;
    uint32_t count     = fifo_length(in);
    uint32_t i;

    for (i = 0; i < fifo_length(here); i++) {
        count += (fifo_at(here, i)->to == half);
    }
    for (i = 0; i < fifo_length(out); i++) {
        count += fifo_at(out, i)->credits;
    }
    for (i = 0; i < fifo_length(far); i++) {
        count += (fifo_at(far, i)->to == half->peer)
                         ? fifo_at(far, i)->credits
                         : 0;
    }
    return count;
}


static void half_check(const half_t *half)
{
    T_NEED(dq_sq_check(&half->sq, &half->end->cq));
    T_NEED_EQ(half->peer->sq.credits + count_in_flight(half) +
                      half->window.owed,
              half->window.size);
    T_NEED(half->window.size <= half->most);
}


static void world_check(const world_t *world)
{
    unsigned i, j;

    for (i = 0; i < world->ends; i++) {
        T_NEED(dq_rx_check(&world->end[i].rx));
        T_NEED_EQ(world->end[i].rx.overcommit, 0);
        T_NEED_EQ(world->end[i].rx.overrun, 0);
        T_NEED(world->end[i].rx.reserved - world->end[i].rx.owed <=
               world->end[i].rx.posted);
        for (j = 0; j < world->conns; j++) {
            half_check(&world->end[i].half[j]);
        }
    }
}


/* As the transport: what it is widened by brings its buffers along. */
static void half_widen(half_t *half)
{
    dq_rx_t *rx    = &half->end->rx;
    uint32_t count = dq_rx_wider_by(&half->window);
    uint32_t grow  = dq_min(count, dq_rx_room(rx));

    dq_rx_grow(rx, grow);
    if (dq_rx_widen(rx, &half->window, count)) {
        dq_rx_posted(rx, dq_rx_due(rx));
    }
}


static void half_post(world_t *world, half_t *half, dq_wr_class_t wr_class,
                      uint32_t credits)
{
    dq_ticket_t ticket = dq_sq_post(&half->sq, &half->end->cq, wr_class, 0);

    dq_rx_grant(&half->end->rx, &half->window, credits);
    fifo_push(&half->channel, (message_t){.to        = half->peer,
                                          .id        = ticket.id,
                                          .credits   = credits,
                                          .signalled = ticket.signal,
                                          .is_data = wr_class == DQ_WR_MSG});
    world->moved++;
    if (dq_rx_is_narrow(&half->window)) {
        half_widen(half);
    }
}


static int half_send_data(world_t *world, half_t *half)
{
    uint32_t credits = 0;

    if (!world->load || (dq_sq_admit(&half->sq, &half->end->cq, DQ_WR_MSG) !=
                         DQ_ADMIT_OK)) {
        return 0;
    }
    if (half->window.owed * half->end->ride_from >= half->window.size) {
        credits = dq_rx_grantable(&half->end->rx, &half->window);
    }
    half_post(world, half, DQ_WR_MSG, credits);
    return 1;
}


static void half_send_grant(world_t *world, half_t *half)
{
    uint32_t credits;

    if (dq_rx_is_narrow(&half->window)) {
        half_widen(half);
    }
    credits = dq_rx_grantable(&half->end->rx, &half->window);
    if ((credits > 0) && dq_rx_grant_is_due(&half->window) &&
        (dq_sq_admit(&half->sq, &half->end->cq, DQ_WR_GRANT) ==
         DQ_ADMIT_OK)) {
        half_post(world, half, DQ_WR_GRANT, credits);
    }
}


/* The oldest message of a channel arrives; its sender's completion, if one
 * was asked for, is polled at once. */
static int half_deliver(world_t *world, half_t *half)
{
    end_t *to = half->peer->end;
    message_t message;

    if (fifo_length(&half->channel) == 0) {
        return 0;
    }
    message = fifo_pop(&half->channel);
    T_NEED(to->rx.posted > fifo_length(&to->arrived)); /* no RNR */
    fifo_push(&to->arrived, message);
    if (message.signalled) {
        T_NEED(dq_sq_retire(&half->sq, &half->end->cq, message.id) > 0);
    }
    world->moved++;
    return 1;
}


static void end_refill(end_t *end)
{
    uint32_t grow = dq_min(dq_rx_short(&end->rx), dq_rx_room(&end->rx));

    dq_rx_grow(&end->rx, grow);
    dq_rx_posted(&end->rx, dq_rx_due(&end->rx));
}


/* One batch: all are taken and the queue is refilled before any handler runs.
 * One in @a hold_one_in handlers keeps its buffer. */
static int end_poll(world_t *world, end_t *end, t_rng_t *rng,
                    uint64_t hold_one_in)
{
    uint32_t count = dq_min(fifo_length(&end->arrived), end->batch);
    message_t message;
    uint32_t i;

    dq_rx_taken(&end->rx, count);
    for (i = 0; i < count; i++) {
        message = fifo_pop(&end->arrived);
        dq_rx_use(&end->rx, &message.to->window);
        T_NEED_EQ(dq_sq_credit(&message.to->sq, message.credits), 0);
        message.to->got += message.is_data;
    }
    end_refill(end);
    for (i = 0; i < count; i++) {
        if ((hold_one_in > 0) && t_rng_once_in(rng, hold_one_in) &&
            dq_rx_may_hold(&end->rx)) {
            dq_rx_hold(&end->rx);
        } else {
            dq_rx_release(&end->rx);
        }
    }
    world->moved += count;
    return count > 0;
}


static void end_init(end_t *end, t_rng_t *rng, unsigned conns, uint32_t size,
                     uint32_t most)
{
    uint32_t first_id = (uint32_t)-30;
    uint32_t extra    = t_rng_once_in(rng, 2) ? 0 : 100;
    unsigned i;

    end->batch     = t_rng_range(rng, 1, 16);
    end->ride_from = t_rng_once_in(rng, 2) ? 4 : size; /* a quarter, or any */
    dq_cq_init(&end->cq, t_rng_range(rng, 4, 60));
    dq_rx_init(&end->rx, 2 * end->batch + conns * most + extra, end->batch);
    dq_rx_grow_posted(&end->rx, 2 * end->batch);
    for (i = 0; i < conns; i++) {
        end->half[i].end  = end;
        end->half[i].size = size;
        end->half[i].most = most;
        dq_sq_init(&end->half[i].sq, t_rng_range(rng, 4, MAX_DEPTH),
                   t_rng_range(rng, 1, 16), first_id, end->half[i].slot);
        end->half[i].sq.gate   = DQ_GATE_UP;
        end->half[i].sq.window = most;
        T_NEED_EQ(dq_sq_credit(&end->half[i].sq, size), 0);
        dq_rx_grow_posted(&end->rx, size);
        T_NEED(dq_rx_open(&end->rx, &end->half[i].window, size, most));
    }
}


static world_t *world_new(t_rng_t *rng, unsigned ends, unsigned conns,
                          uint32_t size, uint32_t most)
{
    world_t *world = calloc(1, sizeof(*world));
    unsigned i, j;

    ck_assert_ptr_nonnull(world);
    *world = (world_t){.ends = ends, .conns = conns, .load = 1};
    for (i = 0; i < ends; i++) {
        end_init(&world->end[i], rng, conns, size, most);
        for (j = 0; j < conns; j++) {
            world->end[i].half[j].peer = &world->end[ends - 1 - i].half[j];
        }
    }
    return world;
}


/* Everybody does all that may be done, at the same pace. */
static void world_round(world_t *world)
{
    half_t *half;
    unsigned i, j;

    world->moved = 0;
    world->round++;
    for (i = 0; i < world->ends; i++) {
        while (world->end[i].rx.held > 0) {
            dq_rx_release_held(&world->end[i].rx);
        }
        end_refill(&world->end[i]);
        for (j = 0; j < world->conns; j++) {
            half = &world->end[i].half[(j + world->round) % world->conns];
            while (half_send_data(world, half)) {
            }
            half_send_grant(world, half);
        }
    }
    for (i = 0; i < world->ends; i++) {
        for (j = 0; j < world->conns; j++) {
            while (half_deliver(world, &world->end[i].half[j])) {
            }
        }
    }
    world_check(world);
    for (i = 0; i < world->ends; i++) {
        while (end_poll(world, &world->end[i], NULL, 0)) {
        }
    }
    world_check(world);
}


/* Within few rounds, each side of each connection gets @a count messages. */
static void world_moves_on(world_t *world, uint64_t count)
{
    unsigned i, j, rounds;
    half_t *half;

    for (i = 0; i < world->ends; i++) {
        for (j = 0; j < world->conns; j++) {
            world->end[i].half[j].got = 0;
        }
    }
    for (rounds = 0; rounds < 4 * count + 20; rounds++) {
        world_round(world);
    }
    for (i = 0; i < world->ends; i++) {
        for (j = 0; j < world->conns; j++) {
            half = &world->end[i].half[j];
            if (half->got < count) {
                ck_abort_msg("window %u: end %u conn %u got %u messages in %u "
                             "rounds: credits %u owed %u sq %u of %u",
                             half->window.size, i, j, (unsigned)half->got, rounds,
                             half->sq.credits, half->window.owed,
                             dq_sq_in_use(&half->sq), half->sq.depth);
            }
        }
    }
}


static void world_goes_quiet(world_t *world)
{
    unsigned rounds = 0;

    world->load = 0;
    do {
        T_NEED(rounds++ < 20);
        world_round(world);
    } while (world->moved > 0);
}


static void random_step(world_t *world, t_rng_t *rng)
{
    end_t *end   = &world->end[t_rng_below(rng, world->ends)];
    half_t *half = &end->half[t_rng_below(rng, world->conns)];

    switch (t_rng_below(rng, 6)) {
    case 0:
        half_deliver(world, half);
        break;
    case 1:
        end_poll(world, end, rng, 3);
        break;
    case 2:
        half_send_grant(world, half);
        break;
    case 3:
        if (end->rx.held > 0) {
            dq_rx_release_held(&end->rx);
        }
        break;
    default:
        half_send_data(world, half);
    }
}


/* Wherever they start, under load they come to be as wide as they may. */
static void check_all_are_wide(const world_t *world)
{
    unsigned i, j;

    for (i = 0; i < world->ends; i++) {
        for (j = 0; j < world->conns; j++) {
            T_NEED_EQ(world->end[i].half[j].window.size,
                      world->end[i].half[j].most);
        }
    }
}


/* Windows that start with @a size and may be widened to @a most. */
static void run(uint32_t size, uint32_t most, unsigned ends, unsigned conns,
                uint64_t salt)
{
    world_t *world;
    t_rng_t rng;

    t_rng_init(&rng, (salt << 32) + (ends << 16) + (conns << 8) + size);
    world = world_new(&rng, ends, conns, size, most);
    world_moves_on(world, 20);
    for (t_at = 0; t_at < STEPS; t_at++) {
        random_step(world, &rng);
        world_check(world);
        if (t_rng_once_in(&rng, 1000)) {
            world_moves_on(world, 2);
        }
    }
    world_goes_quiet(world);
    world->load = 1;
    world_moves_on(world, 20);
    check_all_are_wide(world);
    free(world);
}


START_TEST(test_two_ends)
{
    run(_i, _i, 2, 1, 1);
}
END_TEST


START_TEST(test_two_ends_many_conns)
{
    run(_i, _i, 2, MAX_CONNS, 2);
}
END_TEST


START_TEST(test_to_itself)
{
    run(_i, _i, 1, 1, 3);
}
END_TEST


START_TEST(test_widened)
{
    run(START_MIN, _i, 2, MAX_CONNS, 4);
    run((_i + START_MIN) / 2, _i, 1, 1, 5);
}
END_TEST


static Suite *suite_credits(void)
{
    Suite *suite  = suite_create("credits");
    TCase *random = tcase_create("windows");

    tcase_set_timeout(random, T_TIMEOUT);
    tcase_add_loop_test(random, test_two_ends, DQ_WINDOW_MIN, WINDOW_MAX + 1);
    tcase_add_loop_test(random, test_two_ends_many_conns, DQ_WINDOW_MIN,
                        WINDOW_MAX + 1);
    tcase_add_loop_test(random, test_to_itself, DQ_WINDOW_MIN, WINDOW_MAX + 1);
    tcase_add_loop_test(random, test_widened, START_MIN, WINDOW_MAX + 1);
    suite_add_tcase(suite, random);
    return suite;
}

T_MAIN(suite_credits)
