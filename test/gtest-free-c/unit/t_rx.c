/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive ledger: its edges by number, then random runs against a model
 * that keeps the state of each single buffer, and of each peer the credits
 * that it still has.
 */
#include "t_unit.h"
#include "dq/dq_rx.h"

#include <string.h>

enum {
    MAX_BUFS    = 256,
    MAX_WINDOWS = 12,
    STEPS       = 25000, /* of one random run */
    RUNS        = 48
};

typedef enum {
    BUF_NONE,
    BUF_FREE,
    BUF_POSTED,
    BUF_TAKEN,
    BUF_HELD,
    BUF_LAST
} buf_state_t;

typedef struct {
    int            is_open;
    dq_rx_window_t window;
    int            backed;
    uint32_t       size, most;
    uint32_t       wear;
    uint32_t       credits; /* the peer may send so many                     */
    uint32_t       arrived; /* sent, in a RECV, not polled yet               */
    int            told_quarter, told_half; /* dq_rx_use() has reported it   */
} peer_t;

typedef struct {
    dq_rx_t     rx;
    uint32_t    limit, batch;
    buf_state_t buf[MAX_BUFS];
    peer_t      peer[MAX_WINDOWS];
    uint64_t    overcommit, overrun;
} world_t;


/* What was reported and is no longer true will be reported again. */
static void peer_untold(peer_t *peer)
{
    uint32_t owed = peer->size - peer->credits - peer->arrived;

    peer->told_quarter &= 4 * owed >= peer->size;
    peer->told_half    &= 2 * owed >= peer->size;
}


static uint32_t count_bufs(const world_t *world, buf_state_t state)
{
    uint32_t count = 0;
    uint32_t i;

    for (i = 0; i < world->limit; i++) {
        count += (world->buf[i] == state);
    }
    return count;
}


/* Moves @a count buffers, whichever, from one state to another. */
static void move_bufs(world_t *world, buf_state_t from, buf_state_t to,
                      uint32_t count)
{
    uint32_t i;

    for (i = 0; (i < world->limit) && (count > 0); i++) {
        if (world->buf[i] == from) {
            world->buf[i] = to;
            count--;
        }
    }
    T_NEED_EQ(count, 0);
}


static uint32_t sum_reserved(const world_t *world)
{
    uint32_t sum = 0;
    unsigned i;

    for (i = 0; i < MAX_WINDOWS; i++) {
        sum += world->peer[i].backed ? world->peer[i].size : 0;
    }
    return sum;
}


/* Messages that peers may still send, or that nobody has polled. */
static uint32_t sum_promised(const world_t *world)
{
    uint32_t sum = 0;
    unsigned i;

    for (i = 0; i < MAX_WINDOWS; i++) {
        sum += world->peer[i].backed
                       ? world->peer[i].credits + world->peer[i].arrived
                       : 0;
    }
    return sum;
}


static uint32_t sum_arrived(const world_t *world)
{
    uint32_t sum = 0;
    unsigned i;

    for (i = 0; i < MAX_WINDOWS; i++) {
        sum += world->peer[i].arrived;
    }
    return sum;
}


static uint32_t model_target(const world_t *world)
{
    uint32_t wanted = sum_reserved(world) + 2 * world->batch;

    return (wanted < world->limit) ? wanted : world->limit;
}


static void world_init(world_t *world, uint32_t limit, uint32_t batch)
{
    memset(world, 0, sizeof(*world));
    world->limit = limit;
    world->batch = batch;
    dq_rx_init(&world->rx, limit, batch);
}


static void world_grow(world_t *world, uint32_t count)
{
    dq_rx_grow(&world->rx, count);
    move_bufs(world, BUF_NONE, BUF_FREE, count);
}


static void world_grow_posted(world_t *world, uint32_t count)
{
    dq_rx_grow_posted(&world->rx, count);
    move_bufs(world, BUF_NONE, BUF_POSTED, count);
}


static uint32_t world_refill(world_t *world)
{
    uint32_t due = dq_rx_due(&world->rx);

    dq_rx_posted(&world->rx, due);
    move_bufs(world, BUF_FREE, BUF_POSTED, due);
    return due;
}


/* Of a program that has nothing else to do. */
static uint32_t world_catch_up(world_t *world)
{
    uint32_t due = dq_rx_is_behind(&world->rx) ? dq_rx_due_idle(&world->rx) : 0;

    dq_rx_posted(&world->rx, due);
    move_bufs(world, BUF_FREE, BUF_POSTED, due);
    return due;
}


static int world_open_to(world_t *world, peer_t *peer, uint32_t size,
                         uint32_t most)
{
    *peer = (peer_t){
        .is_open = 1,
        .size    = size,
        .most    = most,
        .credits = size,
    };
    peer->backed = dq_rx_open(&world->rx, &peer->window, size, most) != 0;
    world->overcommit += peer->backed ? 0 : size;
    return peer->backed;
}


static int world_open(world_t *world, peer_t *peer, uint32_t size)
{
    return world_open_to(world, peer, size, size);
}


/* Done if all backed windows could be renewed at the same time. */
static int world_widen(world_t *world, peer_t *peer, uint32_t count)
{
    uint32_t usable = world->limit - count_bufs(world, BUF_NONE) -
                      count_bufs(world, BUF_HELD);
    int is_wider    = usable >= sum_reserved(world) + count;

    T_NEED_EQ(dq_rx_widen(&world->rx, &peer->window, count) != 0, is_wider);
    peer->size += is_wider ? count : 0;
    peer_untold(peer);
    peer->wear  = 0;
    return is_wider;
}


static void world_close(world_t *world, peer_t *peer)
{
    dq_rx_close(&world->rx, &peer->window);
    *peer = (peer_t){0};
}


/* One message, polled. Its use is reported if it, or a wider window, has made a quarter
 * or the half of the window owed. */
static void world_take(world_t *world, peer_t *peer)
{
    uint32_t owed = peer->size - peer->credits - peer->arrived + 1;
    int told;

    dq_rx_taken(&world->rx, 1);
    told = dq_rx_use(&world->rx, &peer->window);
    T_NEED(!told || (4 * owed >= peer->size));
    T_NEED(told || (4 * owed < peer->size) || peer->told_quarter);
    T_NEED(told || (2 * owed < peer->size) || peer->told_half);
    peer->told_quarter = 4 * owed >= peer->size;
    peer->told_half    = 2 * owed >= peer->size;
    move_bufs(world, BUF_POSTED, BUF_TAKEN, 1);
    peer->arrived--;
}


static void world_release(world_t *world)
{
    dq_rx_release(&world->rx);
    move_bufs(world, BUF_TAKEN, BUF_FREE, 1);
}


static void world_hold(world_t *world)
{
    dq_rx_hold(&world->rx);
    move_bufs(world, BUF_TAKEN, BUF_HELD, 1);
}


static void world_release_held(world_t *world)
{
    dq_rx_release_held(&world->rx);
    move_bufs(world, BUF_HELD, BUF_FREE, 1);
}


static void world_grant(world_t *world, peer_t *peer, uint32_t count)
{
    uint32_t owed = peer->size - peer->credits - peer->arrived;

    dq_rx_grant(&world->rx, &peer->window, count);
    peer->wear        += (4 * owed >= 3 * peer->size) ? DQ_RX_WEAR_MAX : 1;
    peer->credits     += count;
    world->overcommit += peer->backed ? 0 : count;
    peer_untold(peer);
}


/* A peer sends all that it may, and all of it is polled. */
static void world_use_up(world_t *world, peer_t *peer, uint32_t count)
{
    peer->credits -= count;
    peer->arrived += count;
    while (peer->arrived > 0) {
        world_take(world, peer);
    }
}


static int is_overcommitted(const world_t *world)
{
    return (world->overcommit > 0) || (world->overrun > 0);
}


static void peer_check(const world_t *world, const peer_t *peer)
{
    uint32_t owed = peer->size - peer->credits - peer->arrived;
    uint32_t idle;

    int is_narrow;

    is_narrow = peer->backed && (peer->size < peer->most) &&
                ((peer->wear >= DQ_RX_WEAR_MAX) ||
                 (4 * owed >= 3 * peer->size));
    T_NEED_EQ(dq_rx_is_narrow(&peer->window), is_narrow);
    T_NEED_EQ(dq_rx_wider_by(&peer->window),
              (2 * peer->size <= peer->most) ? peer->size
                                             : peer->most - peer->size);
    T_NEED_EQ(peer->window.size, peer->size);
    T_NEED_EQ(peer->window.owed, owed);
    T_NEED_EQ(dq_rx_may_piggyback(&peer->window), 4 * owed >= peer->size);
    T_NEED_EQ(dq_rx_grant_is_due(&peer->window), 2 * owed >= peer->size);
    T_NEED_EQ(dq_rx_grant_is_urgent(&peer->window),
              4 * owed >= 3 * peer->size);
    if (!peer->backed) {
        T_NEED_EQ(dq_rx_grantable(&world->rx, &peer->window), owed);
        return;
    }
    idle = count_bufs(world, BUF_POSTED);
    idle = (idle > sum_promised(world)) ? idle - sum_promised(world) : 0;
    T_NEED_EQ(dq_rx_grantable(&world->rx, &peer->window),
              (idle < owed) ? idle : owed);
}


static void world_check(const world_t *world)
{
    uint32_t posted = count_bufs(world, BUF_POSTED);
    uint32_t held   = count_bufs(world, BUF_HELD);
    uint32_t have   = world->limit - count_bufs(world, BUF_NONE);
    uint32_t target = model_target(world);
    uint32_t half   = (world->batch + 1) / 2;
    uint32_t wanted = sum_reserved(world) + 2 * world->batch;
    unsigned i;

    T_NEED_EQ(world->rx.free, count_bufs(world, BUF_FREE));
    T_NEED_EQ(world->rx.posted, posted);
    T_NEED_EQ(world->rx.taken, count_bufs(world, BUF_TAKEN));
    T_NEED_EQ(world->rx.held, held);
    T_NEED_EQ(world->rx.total, have);
    T_NEED_EQ(world->rx.reserved, sum_reserved(world));
    T_NEED_EQ(world->rx.reserved - world->rx.owed, sum_promised(world));
    T_NEED_EQ(world->rx.overcommit, world->overcommit);
    T_NEED_EQ(world->rx.overrun, world->overrun);
    T_NEED_EQ(dq_rx_room(&world->rx), world->limit - have);
    T_NEED_EQ(dq_rx_target(&world->rx), target);
    T_NEED_EQ(dq_rx_short(&world->rx),
              (have - held < target) ? target - (have - held) : 0);
    T_NEED_EQ(dq_rx_may_hold(&world->rx), held + target < world->limit);
    T_NEED(dq_rx_is_low(&world->rx) || (dq_rx_due(&world->rx) == 0));
    T_NEED_EQ(dq_rx_is_low(&world->rx), posted + world->batch <= wanted);
    T_NEED_EQ(dq_rx_is_behind(&world->rx),
              (world->rx.free >= half) && (posted + half <= wanted));
    T_NEED(dq_rx_check(&world->rx));
    if (!is_overcommitted(world)) {
        T_NEED(sum_promised(world) <= posted); /* so RNR cannot happen */
    }
    for (i = 0; i < MAX_WINDOWS; i++) {
        if (world->peer[i].is_open) {
            peer_check(world, &world->peer[i]);
        }
    }
}


/* Handlers come to their end, memory is taken as far as there is any, what is
 * due is posted. Then every backed window can be renewed in full: no peer
 * waits for what another does. */
static void world_settle(world_t *world)
{
    uint32_t grow;
    unsigned i;

    while (world->rx.taken > 0) {
        world_release(world);
    }
    grow = dq_min(dq_rx_short(&world->rx), dq_rx_room(&world->rx));
    world_grow(world, grow);
    world_refill(world);
    world_check(world);
    for (i = 0; i < MAX_WINDOWS; i++) {
        T_NEED_EQ(dq_rx_grantable(&world->rx, &world->peer[i].window),
                  world->peer[i].window.owed);
    }
}


/* ---- Edges ---- */

START_TEST(test_empty)
{
    world_t world;

    world_init(&world, 8, 4);
    world_check(&world);
    T_NEED_EQ(dq_rx_target(&world.rx), 8);
    T_NEED_EQ(dq_rx_short(&world.rx), 8);
    T_NEED_EQ(dq_rx_due(&world.rx), 0); /* none to post */
    world_grow(&world, 8);
    world_check(&world);
    T_NEED_EQ(dq_rx_room(&world.rx), 0);
    T_NEED_EQ(dq_rx_due(&world.rx), 8);
    T_NEED_EQ(world_refill(&world), 8);
    T_NEED_EQ(dq_rx_due(&world.rx), 0);
    T_NEED(!dq_rx_may_hold(&world.rx));
}
END_TEST


/* One less than a batch missing: nothing is due. A batch: all that misses. */
START_TEST(test_due_in_batches)
{
    world_t world;
    peer_t *peer = &world.peer[0];
    uint32_t i;

    world_init(&world, 100, 8);
    world_grow_posted(&world, 40);
    T_NEED(world_open(&world, peer, 24));
    for (i = 1; i < 8; i++) {
        world_use_up(&world, peer, 1);
        world_release(&world);
        T_NEED_EQ(dq_rx_due(&world.rx), 0);
        world_check(&world);
    }
    world_use_up(&world, peer, 1);
    T_NEED_EQ(dq_rx_due(&world.rx), 7); /* the eighth is in our hands */
    world_release(&world);
    T_NEED_EQ(dq_rx_due(&world.rx), 8);
    T_NEED_EQ(world_refill(&world), 8);
    world_check(&world);
}
END_TEST


/* Half a batch is enough for who has nothing else to do, of an odd one the larger
 * half; then all that misses. */
START_TEST(test_due_idle)
{
    const uint32_t half = (_i + 1) / 2;
    world_t world;
    peer_t *peer = &world.peer[0];
    uint32_t i;

    world_init(&world, 100, _i);
    world_grow_posted(&world, 24 + 2 * _i);
    T_NEED(world_open(&world, peer, 24));
    for (i = 1; i < half; i++) {
        world_use_up(&world, peer, 1);
        world_release(&world);
        T_NEED(!dq_rx_is_behind(&world.rx));
        world_check(&world);
    }
    world_use_up(&world, peer, 1);
    T_NEED(!dq_rx_is_behind(&world.rx)); /* it is in our hands */
    world_release(&world);
    T_NEED_EQ(world_catch_up(&world), half);
    T_NEED_EQ(world.rx.posted, dq_rx_target(&world.rx));
    world_check(&world);
}
END_TEST


/* size == posted: backed. One more: not. The promise of the first remains. */
START_TEST(test_backed_edge)
{
    uint32_t size;
    world_t world;

    for (size = 30; size <= 34; size++) {
        world_init(&world, 64, 2);
        world_grow_posted(&world, 32);
        T_NEED_EQ(world_open(&world, &world.peer[0], size), size <= 32);
        T_NEED_EQ(world.rx.overcommit, (size <= 32) ? 0 : size);
        world_check(&world);
        T_NEED_EQ(world_open(&world, &world.peer[1], 3),
                  (size <= 29) || (size > 32));
        world_close(&world, &world.peer[0]);
        world_check(&world);
        T_NEED(world_open(&world, &world.peer[2], 29));
        world_check(&world);
    }
}
END_TEST


/* A window is not backed by RECVs that another window has only used up: when
 * that one is renewed there would be too few for both. */
START_TEST(test_backed_twice)
{
    world_t world;

    world_init(&world, 64, 2);
    world_grow_posted(&world, 64);
    T_NEED(world_open(&world, &world.peer[0], 60));
    world_use_up(&world, &world.peer[0], 60);
    while (world.rx.taken > 0) {
        world_release(&world);
    }
    world_refill(&world);
    world_open(&world, &world.peer[1], 60);
    world_settle(&world);
}
END_TEST


/* Nor by buffers that handlers keep. */
START_TEST(test_backed_by_held)
{
    world_t world;
    unsigned i;

    world_init(&world, 64, 2);
    world_grow_posted(&world, 64);
    T_NEED(world_open(&world, &world.peer[0], 8));
    while (dq_rx_may_hold(&world.rx)) {
        world_use_up(&world, &world.peer[0], 1);
        world_hold(&world);
        world_refill(&world);
        world_grant(&world, &world.peer[0], 1);
        world_check(&world);
    }
    T_NEED_EQ(world.rx.held, 52);
    world_close(&world, &world.peer[0]);
    for (i = 1; i < 3; i++) {
        T_NEED_EQ(world_open(&world, &world.peer[i], 12), i == 1);
        world_use_up(&world, &world.peer[i], 12);
        world_settle(&world);
    }
}
END_TEST


/* All memory is promised, none is slack. A peer uses its window, which is
 * smaller than a batch, while the others are silent: it must be renewed. */
START_TEST(test_renewed_at_the_limit)
{
    world_t world;
    unsigned i;

    world_init(&world, 64, 16);
    world_grow_posted(&world, 64);
    for (i = 0; i < 4; i++) {
        T_NEED(world_open(&world, &world.peer[i], 16));
    }
    world_use_up(&world, &world.peer[2], 15);
    world_settle(&world);
}
END_TEST


/* owed: 0, half - 1, half, all, and one more than all. */
START_TEST(test_window_edges)
{
    world_t world;
    peer_t *peer = &world.peer[0];

    world_init(&world, 100, 4);
    world_grow_posted(&world, 50);
    T_NEED(world_open(&world, peer, 10));
    /* 0 */ T_NEED(!dq_rx_grant_is_due(&peer->window));
    /* 0 */ T_NEED_EQ(dq_rx_grantable(&world.rx, &peer->window), 0);
    world_use_up(&world, peer, 4);
    /* h-1 */ T_NEED(!dq_rx_grant_is_due(&peer->window));
    world_use_up(&world, peer, 1);
    /* h */ T_NEED(dq_rx_grant_is_due(&peer->window));
    world_use_up(&world, peer, 2);
    /* 3/4 of 10, less a half */
    T_NEED(!dq_rx_grant_is_urgent(&peer->window));
    world_use_up(&world, peer, 1);
    T_NEED(dq_rx_grant_is_urgent(&peer->window));
    world_use_up(&world, peer, 2);
    world_check(&world);
    /* all */ T_NEED_EQ(dq_rx_grantable(&world.rx, &peer->window), 10);
    T_NEED(!dq_rx_use(&world.rx, &peer->window));
    world.overrun++;
    /* all+1 */ T_NEED_EQ(world.rx.overrun, 1);
    world_check(&world);
    world_grant(&world, peer, 10);
    world_check(&world);
    /* 0 */ T_NEED_EQ(dq_rx_grantable(&world.rx, &peer->window), 0);
}
END_TEST


/* A window that has become a little wider: its quarter has moved, and is reported
 * there. */
START_TEST(test_wider_mark)
{
    world_t world;
    peer_t *peer = &world.peer[0];

    world_init(&world, 100, 4);
    world_grow_posted(&world, 60);
    T_NEED(world_open_to(&world, peer, 20, 22));
    T_NEED(world_widen(&world, peer, 2));
    world_grant(&world, peer, 2);
    world_check(&world);
    world_use_up(&world, peer, 5);
    T_NEED(!peer->told_quarter);
    world_use_up(&world, peer, 1);
    T_NEED(peer->told_quarter);
    world_check(&world);

    T_NEED(world_open_to(&world, &world.peer[1], 20, 22));
    T_NEED(world_widen(&world, &world.peer[1], 2));
    world_use_up(&world, &world.peer[1], 3); /* 2 are owed by the widening */
    T_NEED(!world.peer[1].told_quarter);
    world_use_up(&world, &world.peer[1], 1);
    T_NEED(world.peer[1].told_quarter);
}
END_TEST


/* Widened: 1 not while the peer stays within three quarters; 2 once it has used
 * them; 3 to twice its size, then to its most; 4 what is new is owed, and granted as
 * RECVs are posted; 5 it is all reserved, and given back; 6 or after so many grants;
 * 7 not if others could then not be renewed; 8 never if it is not backed, or settled. */
START_TEST(test_widen)
{
    world_t world;
    peer_t *peer = &world.peer[0];
    uint32_t i;

    world_init(&world, 64, 2);
    world_grow_posted(&world, 12);
    T_NEED(world_open_to(&world, peer, 8, 20));
    world_use_up(&world, peer, 5);
    /* 1 */ T_NEED(!dq_rx_is_narrow(&peer->window));
    world_use_up(&world, peer, 1);
    /* 2 */ T_NEED(dq_rx_is_narrow(&peer->window));
    /* 3 */ T_NEED_EQ(dq_rx_wider_by(&peer->window), 8);
    /* 7 */ T_NEED(!world_widen(&world, peer, 8));
    world_check(&world);
    world_grow(&world, 8);
    T_NEED(world_widen(&world, peer, 8));
    /* 4 */ T_NEED_EQ(peer->window.owed, 14);
    T_NEED_EQ(dq_rx_grantable(&world.rx, &peer->window), 4);
    world_check(&world);
    world_settle(&world);
    T_NEED_EQ(dq_rx_grantable(&world.rx, &peer->window), 14);
    world_grant(&world, peer, 14);
    T_NEED_EQ(peer->credits, 16);
    /* 6 */ T_NEED(dq_rx_is_narrow(&peer->window));
    /* 3 */ T_NEED_EQ(dq_rx_wider_by(&peer->window), 4);
    world_grow(&world, 4);
    T_NEED(world_widen(&world, peer, 4));
    world_settle(&world);
    world_grant(&world, peer, 4);
    T_NEED(!dq_rx_is_narrow(&peer->window));
    /* 5 */ T_NEED_EQ(world.rx.reserved, 20);
    world_close(&world, peer);
    T_NEED_EQ(world.rx.reserved, 0);
    T_NEED_EQ(world.rx.owed, 0);
    world_check(&world);

    T_NEED(world_open_to(&world, peer, 8, 16));
    for (i = 0; i < DQ_RX_WEAR_MAX; i++) {
        /* 6 */ T_NEED(!dq_rx_is_narrow(&peer->window));
        world_use_up(&world, peer, 1);
        world_settle(&world);
        world_grant(&world, peer, 1);
    }
    T_NEED(dq_rx_is_narrow(&peer->window));
    /* 8 */ dq_rx_settle(&peer->window);
    peer->most = 8;
    world_check(&world);
    T_NEED(!dq_rx_is_narrow(&peer->window));
    T_NEED(!world_open_to(&world, &world.peer[1], 8, 16));
    world_use_up(&world, &world.peer[1], 6);
    world_check(&world);
}
END_TEST


/* A closed window gives back what it had reserved, used or not. */
START_TEST(test_close)
{
    world_t world;
    uint32_t used;

    for (used = 0; used <= 8; used++) {
        world_init(&world, 40, 2);
        world_grow_posted(&world, 20);
        T_NEED(world_open(&world, &world.peer[0], 8));
        T_NEED(world_open(&world, &world.peer[1], 8));
        world_use_up(&world, &world.peer[0], used);
        world_check(&world);
        world_close(&world, &world.peer[0]);
        world_check(&world);
        T_NEED_EQ(world.rx.reserved, 8);
        T_NEED_EQ(world.rx.owed, 0);
        world_settle(&world);
    }
}
END_TEST


/* Over-committed: the credits flow all the same, and are counted. */
START_TEST(test_overcommit)
{
    world_t world;
    peer_t *peer = &world.peer[1];

    world_init(&world, 8, 2);
    world_grow_posted(&world, 8);
    T_NEED(world_open(&world, &world.peer[0], 8));
    T_NEED(!world_open(&world, peer, 8));
    T_NEED_EQ(world.rx.overcommit, 8);
    world_use_up(&world, peer, 6);
    world_check(&world);
    T_NEED_EQ(dq_rx_grantable(&world.rx, &peer->window), 6);
    world_grant(&world, peer, 5);
    T_NEED_EQ(world.rx.overcommit, 13);
    world_check(&world);
    world_settle(&world);
    world_use_up(&world, peer, 7);
    T_NEED(!dq_rx_use(&world.rx, &peer->window)); /* no credit: nothing is owed */
    world.overrun++;
    world_check(&world);
}
END_TEST


/* dq_rx_check() must see each kind of damage. */
START_TEST(test_check_sees)
{
    world_t world;
    dq_rx_t rx;

    world_init(&world, 20, 2);
    world_grow_posted(&world, 12);
    T_NEED(world_open(&world, &world.peer[0], 8));
    world_use_up(&world, &world.peer[0], 3);
    ck_assert(dq_rx_check(&world.rx));
#define SEES(_damage) \
    do { \
        rx = world.rx; \
        _damage; \
        ck_assert_msg(!dq_rx_check(&rx), "not seen: %s", #_damage); \
    } while (0)
    SEES(rx.free++);
    SEES(rx.taken--);
    SEES(rx.held++);
    SEES(rx.posted--);
    SEES(rx.total++);
    SEES(rx.limit = 11);
    SEES((rx.reserved = 21, rx.owed = 20));
    SEES((rx.owed = rx.reserved + 1, rx.overcommit = 1));
    SEES((rx.posted = 4, rx.free += 5));
#undef SEES
}
END_TEST


/* ---- Random runs ---- */

static void random_open(world_t *world, t_rng_t *rng)
{
    peer_t *peer  = &world->peer[t_rng_below(rng, MAX_WINDOWS)];
    uint32_t size = t_rng_range(rng, 3, 40);
    uint32_t most = t_rng_once_in(rng, 2) ? size : t_rng_range(rng, size, 90);
    uint32_t room = dq_rx_room(&world->rx);

    if (peer->is_open) {
        if ((peer->arrived == 0) && t_rng_once_in(rng, 10)) {
            world_close(world, peer);
        }
        return;
    }
    /* a window brings its buffers along, as long as there is memory */
    if (size <= room) {
        world_grow_posted(world, size);
    }
    if ((_Bool)t_rng_once_in(rng, 3) || (size <= room)) {
        world_open_to(world, peer, size, most);
    }
}


/* Half of the time it brings its buffers along, as the transport's does. */
static void random_widen(world_t *world, peer_t *peer, t_rng_t *rng)
{
    uint32_t count;

    if (!peer->is_open || !dq_rx_is_narrow(&peer->window)) {
        return;
    }
    count = dq_rx_wider_by(&peer->window);
    if (t_rng_once_in(rng, 2) && (count <= dq_rx_room(&world->rx))) {
        world_grow(world, count);
    }
    world_widen(world, peer, count);
}


static void random_arrival(world_t *world, peer_t *peer, t_rng_t *rng)
{
    uint32_t posted = world->rx.posted - sum_arrived(world);

    if (peer->credits == 0) {
        return;
    }
    if (!is_overcommitted(world)) {
        T_NEED(posted > 0);
    }
    if (posted > 0) {
        peer->credits--;
        peer->arrived++;
    }
    if (t_rng_once_in(rng, 2)) {
        random_arrival(world, peer, rng);
    }
}


/* A broken peer sends without a credit. */
static void random_overrun(world_t *world, peer_t *peer)
{
    if (!peer->is_open || (peer->window.owed < peer->size) ||
        (world->rx.posted <= sum_promised(world) + sum_arrived(world))) {
        return;
    }
    dq_rx_taken(&world->rx, 1);
    T_NEED(!dq_rx_use(&world->rx, &peer->window));
    move_bufs(world, BUF_POSTED, BUF_TAKEN, 1);
    world->overrun++;
}


static void random_handler(world_t *world, t_rng_t *rng)
{
    if (world->rx.taken == 0) {
        return;
    }
    if (t_rng_once_in(rng, 3) && dq_rx_may_hold(&world->rx)) {
        world_hold(world);
    } else {
        world_release(world);
    }
}


static void random_grant(world_t *world, peer_t *peer, t_rng_t *rng)
{
    uint32_t count = dq_rx_grantable(&world->rx, &peer->window);

    if (peer->is_open) {
        world_grant(world, peer,
                    t_rng_once_in(rng, 2) ? count
                                          : t_rng_range(rng, 0, count));
    }
}


static void random_refill(world_t *world)
{
    int64_t missing = (int64_t)model_target(world) - world->rx.posted;
    int is_short    = world->rx.posted < world->rx.reserved;
    uint32_t free   = world->rx.free;
    uint32_t due    = world_refill(world);

    if ((missing >= world->batch) || is_short) {
        T_NEED_EQ(due, (missing < free) ? missing : free);
    } else {
        T_NEED_EQ(due, 0);
    }
}


static void random_catch_up(world_t *world)
{
    uint32_t missing = (model_target(world) > world->rx.posted)
                               ? model_target(world) - world->rx.posted : 0;
    uint32_t free    = world->rx.free;
    uint32_t due     = world_catch_up(world);

    if (due > 0) {
        T_NEED_EQ(due, dq_min(missing, free));
    } else {
        T_NEED(dq_min(missing, free) < (world->batch + 1) / 2);
    }
}


static void random_step(world_t *world, t_rng_t *rng)
{
    peer_t *peer = &world->peer[t_rng_below(rng, MAX_WINDOWS)];

    switch (t_rng_below(rng, 20)) {
    case 0:
        random_open(world, rng);
        break;
    case 1:
        world_grow(world, t_rng_range(rng, 0, dq_min(3,
                                              dq_rx_room(&world->rx))));
        break;
    case 2:
        world_grow(world, dq_min(dq_rx_short(&world->rx),
                                 dq_rx_room(&world->rx)));
        break;
    case 3:
        if (t_rng_once_in(rng, 50)) {
            random_overrun(world, peer);
        }
        break;
    case 4:
        if (t_rng_once_in(rng, 20)) {
            world_settle(world);
        }
        break;
    case 5:
        if (world->rx.held > 0) {
            world_release_held(world);
        }
        random_widen(world, peer, rng);
        break;
    case 6:
    case 7:
    case 8:
        random_grant(world, peer, rng);
        break;
    case 9:
    case 10:
        random_refill(world);
        if (t_rng_once_in(rng, 4)) {
            random_catch_up(world);
        }
        break;
    case 11:
    case 12:
    case 13:
        random_handler(world, rng);
        break;
    case 14:
    case 15:
    case 16:
        if (peer->arrived > 0) {
            world_take(world, peer);
        }
        break;
    default:
        random_arrival(world, peer, rng);
    }
}


/* Runs 0 to RUNS / 2 have memory for all windows, so nothing is ever
 * over-committed; the others soon run out of it. */
START_TEST(test_random)
{
    uint32_t batch;
    world_t world;
    t_rng_t rng;

    t_rng_init(&rng, 0x7800 + _i);
    batch = t_rng_range(&rng, 1, 20);
    world_init(&world, t_rng_range(&rng, 2 * batch,
                                   (_i < RUNS / 2) ? MAX_BUFS : 64), batch);
    world_grow_posted(&world, dq_min(2 * batch, world.limit));
    for (t_at = 0; t_at < STEPS; t_at++) {
        random_step(&world, &rng);
        world_check(&world);
    }
}
END_TEST


static Suite *suite_rx(void)
{
    Suite *suite  = suite_create("rx");
    TCase *edges  = tcase_create("edges");
    TCase *random = tcase_create("random");

    tcase_set_timeout(edges, T_TIMEOUT);
    tcase_add_test(edges, test_empty);
    tcase_add_test(edges, test_wider_mark);
    tcase_add_test(edges, test_due_in_batches);
    tcase_add_loop_test(edges, test_due_idle, 1, 18);
    tcase_add_test(edges, test_backed_edge);
    tcase_add_test(edges, test_backed_twice);
    tcase_add_test(edges, test_backed_by_held);
    tcase_add_test(edges, test_renewed_at_the_limit);
    tcase_add_test(edges, test_window_edges);
    tcase_add_test(edges, test_widen);
    tcase_add_test(edges, test_close);
    tcase_add_test(edges, test_overcommit);
    tcase_add_test(edges, test_check_sees);
    suite_add_tcase(suite, edges);

    tcase_set_timeout(random, T_TIMEOUT);
    tcase_add_loop_test(random, test_random, 0, RUNS);
    suite_add_tcase(suite, random);
    return suite;
}

T_MAIN(suite_rx)
