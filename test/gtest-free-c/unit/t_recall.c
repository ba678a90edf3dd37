/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credits that are asked back: the table by cells, the edges by number, then one receiver
 * and several senders on links that deliver in order and may be lost. Whatever crosses,
 * each message finds a RECV.
 */
#include "t_unit.h"
#include "dq/dq_recall.h"
#include "dq/dq_sq.h"

#include <stdlib.h>

enum {
    SENDERS  = 5,
    LEAST    = 4,
    MOST     = 64,
    BATCH    = 4,
    LIMIT    = 2 * BATCH + SENDERS * MOST,
    ON_LINK  = 1000,
    STEPS    = 20000,
    RUNS     = 24
};

typedef enum { MESSAGE, RETURN, GRANT, RECALL } kind_t;

typedef struct {
    kind_t   kind;
    uint32_t count;
} word_t;

/* What is under way, oldest first. */
typedef struct {
    word_t   word[ON_LINK];
    unsigned count;
} link_t;

typedef struct {
    dq_rx_window_t window; /* the receiver's                                 */
    dq_recall_t    recall;
    uint32_t       credits;
    link_t         to, from; /* the receiver, and from it                    */
    int            is_asked;
    uint32_t       asked;
} sender_t;

typedef struct {
    dq_rx_t  rx;
    dq_cq_t  cq;
    sender_t sender[SENDERS];
    uint32_t free;  /* buffers that no window has                            */
    uint64_t given; /* credits that came back                                */
} world_t;


static void put(link_t *link, kind_t kind, uint32_t count)
{
    ck_assert_uint_lt(link->count, ON_LINK);
    link->word[link->count++] = (word_t){.kind = kind, .count = count};
}


static word_t take(link_t *link)
{
    word_t word = link->word[0];
    unsigned i;

    ck_assert_uint_gt(link->count, 0);
    link->count--;
    for (i = 0; i < link->count; i++) {
        link->word[i] = link->word[i + 1];
    }
    return word;
}


/* ---- What always holds ---- */

/* Messages that take a RECV, now or when they are sent. */
static uint32_t claims(const sender_t *sender)
{
    uint32_t sum = sender->credits + sender->to.count;
    unsigned i;

    for (i = 0; i < sender->from.count; i++) {
        sum += (sender->from.word[i].kind == GRANT) ? sender->from.word[i].count : 0;
    }
    for (i = 0; i < sender->to.count; i++) {
        /* on the way back, and not yet the receiver's */
        sum += (sender->to.word[i].kind == RETURN) ? sender->to.word[i].count : 0;
    }
    return sum;
}


static void world_check(const world_t *world)
{
    const sender_t *sender;
    uint32_t sum = 0, sizes = 0;
    unsigned i;

    T_NEED(dq_rx_check(&world->rx));
    for (i = 0; i < SENDERS; i++) {
        sender = &world->sender[i];
        T_NEED_EQ(claims(sender), sender->window.size - sender->window.owed);
        T_NEED(sender->window.size >= LEAST);
        T_NEED(sender->window.size <= MOST);
        sum   += claims(sender);
        sizes += sender->window.size;
    }
    T_NEED(sum <= world->rx.posted);
    T_NEED_EQ(sizes, world->rx.reserved);
    T_NEED_EQ(sizes + world->free + world->rx.slack, LIMIT);
}


/* ---- Steps ---- */

static void refill(world_t *world)
{
    dq_rx_posted(&world->rx, dq_rx_due(&world->rx));
}


static void world_init(world_t *world)
{
    sender_t *sender;
    unsigned i;

    *world = (world_t){.free = SENDERS * MOST};
    dq_rx_init(&world->rx, LIMIT, BATCH);
    dq_rx_grow_posted(&world->rx, LIMIT);
    for (i = 0; i < SENDERS; i++) {
        sender = &world->sender[i];
        T_NEED(dq_rx_open(&world->rx, &sender->window, MOST, MOST));
        sender->credits = MOST;
        world->free    -= MOST;
    }
    world_check(world);
}


/* Not the last one: it is for a grant. */
static int send_message(sender_t *sender)
{
    if (sender->credits <= DQ_CREDIT_SPARE) {
        return 0;
    }
    sender->credits--;
    put(&sender->to, MESSAGE, 0);
    return 1;
}


/* As the ledger does it. */
static void answer(world_t *world, sender_t *sender)
{
    dq_sq_t sq = {.credits = sender->credits};
    uint32_t count;

    if (!sender->is_asked || (sender->credits <= DQ_CREDIT_SPARE)) {
        return;
    }
    count            = dq_sq_give_back(&sq, &world->cq, sender->asked, 3);
    sender->credits  = sq.credits - 1; /* the answer is a message */
    sender->is_asked = 0;
    put(&sender->to, RETURN, count);
}


static void want(world_t *world, sender_t *sender, uint32_t least)
{
    world->free += dq_recall_want(&sender->recall, &world->rx, &sender->window, least);
}


static void ask(sender_t *sender)
{
    if (sender->recall.state == DQ_RECALL_DUE) {
        put(&sender->from, RECALL, sender->recall.count);
        dq_recall_sent(&sender->recall);
    }
}


static void grant(world_t *world, sender_t *sender)
{
    uint32_t count = dq_rx_grantable(&world->rx, &sender->window);

    if (count > 0) {
        dq_rx_grant(&world->rx, &sender->window, count);
        put(&sender->from, GRANT, count);
    }
}


static void widen(world_t *world, sender_t *sender, uint32_t count)
{
    count = dq_min(count, sender->window.most - sender->window.size);
    if ((sender->recall.state == DQ_RECALL_REST) && (count <= world->free) &&
        dq_rx_widen(&world->rx, &sender->window, count)) {
        world->free -= count;
    }
}


static void receive(world_t *world, sender_t *sender)
{
    word_t word;

    if (sender->to.count == 0) {
        return;
    }
    word = take(&sender->to);
    T_NEED(world->rx.posted > 0);
    dq_rx_taken(&world->rx, 1);
    (void)dq_rx_use(&world->rx, &sender->window);
    if (word.kind == RETURN) {
        T_NEED_EQ(dq_recall_back(&sender->recall, &world->rx, &sender->window,
                                 word.count), 0);
        world->free  += word.count;
        world->given += word.count;
    }
    dq_rx_release(&world->rx);
    refill(world);
}


static void hear(sender_t *sender)
{
    word_t word;

    if (sender->from.count == 0) {
        return;
    }
    word = take(&sender->from);
    if (word.kind == GRANT) {
        sender->credits += word.count;
    } else {
        sender->is_asked = 1;
        sender->asked    = word.count;
    }
}


/* Another queue pair: all that was under way is gone, and the window is promised anew. */
static void lose(world_t *world, sender_t *sender)
{
    sender->to.count   = 0;
    sender->from.count = 0;
    sender->is_asked   = 0;
    dq_recall_lost(&sender->recall);
    dq_rx_grant(&world->rx, &sender->window,
                dq_rx_grantable(&world->rx, &sender->window));
    sender->credits = sender->window.size - sender->window.owed;
}


/* ---- The table ---- */

START_TEST(test_cells)
{
    static const char *const cells[DQ_RECALL_STATE_LAST][DQ_RECALL_EV_LAST] = {
        /*           WANT   SENT     BACK    LOST */
        /* REST  */ {"DUE", NULL,    NULL,   "REST"},
        /* DUE   */ {NULL,  "ASKED", NULL,   "REST"},
        /* ASKED */ {NULL,  NULL,    "REST", "REST"},
    };
    dq_recall_cell_t cell;
    unsigned state, event;

    for (state = 0; state < DQ_RECALL_STATE_LAST; state++) {
        for (event = 0; event < DQ_RECALL_EV_LAST; event++) {
            cell = dq_recall_cell((dq_recall_state_t)state, (dq_recall_event_t)event);
            ck_assert_int_eq(cell.is_legal, cells[state][event] != NULL);
            if (cell.is_legal) {
                ck_assert_str_eq(dq_recall_state_name(cell.next), cells[state][event]);
            }
        }
    }
    ck_assert_str_eq(dq_recall_state_name(DQ_RECALL_STATE_LAST), "?");
    ck_assert_str_eq(dq_recall_event_name(DQ_RECALL_EV_LAST), "?");
    ck_assert_str_eq(dq_recall_event_name(DQ_RECALL_EV_BACK), "BACK");
}
END_TEST


/* ---- Edges ---- */

/* What is owed is cut off without a question; the rest is asked for. */
START_TEST(test_cut_then_ask)
{
    world_t *world   = calloc(1, sizeof(*world));
    sender_t *sender = &world->sender[0];
    unsigned i;

    ck_assert_ptr_nonnull(world);
    world_init(world);
    for (i = 0; i < 10; i++) {
        T_NEED(send_message(sender));
        receive(world, sender);
    }
    want(world, sender, MOST); /* 0: it has no more than that */
    T_NEED_EQ(world->free, 0);
    T_NEED_EQ(sender->recall.state, DQ_RECALL_REST);
    want(world, sender, MOST - 10); /* 1: all of it is owed */
    T_NEED_EQ(world->free, 10);
    T_NEED_EQ(sender->recall.state, DQ_RECALL_REST);
    world_check(world);
    want(world, sender, LEAST); /* 2: nothing is owed */
    T_NEED_EQ(world->free, 10);
    T_NEED_EQ(sender->recall.state, DQ_RECALL_DUE);
    T_NEED_EQ(sender->recall.count, MOST - 10 - LEAST);
    ask(sender);
    want(world, sender, LEAST); /* 3: one question at a time */
    hear(sender);
    answer(world, sender);
    world_check(world);
    T_NEED_EQ(world->free, 10); /* 4: nothing is free before the answer is there */
    receive(world, sender);
    world_check(world);
    T_NEED_EQ(world->free, MOST - LEAST);
    T_NEED_EQ(sender->window.size, LEAST);
    T_NEED_EQ(sender->recall.state, DQ_RECALL_REST);
    free(world);
}
END_TEST


/* Messages cross the question: the sender has one credit left, which is for a grant. It
 * answers when it has more. */
START_TEST(test_crossing)
{
    world_t *world   = calloc(1, sizeof(*world));
    sender_t *sender = &world->sender[0];

    ck_assert_ptr_nonnull(world);
    world_init(world);
    want(world, sender, LEAST);
    ask(sender);
    while (send_message(sender)) {
    }
    hear(sender);
    answer(world, sender);
    T_NEED_EQ(sender->is_asked, 1);
    T_NEED_EQ(sender->credits, DQ_CREDIT_SPARE);
    while (sender->to.count > 0) {
        receive(world, sender);
        world_check(world);
    }
    T_NEED_EQ(sender->recall.state, DQ_RECALL_ASKED);
    grant(world, sender);
    hear(sender);
    answer(world, sender);
    receive(world, sender);
    world_check(world);
    T_NEED(world->given > 0);
    T_NEED_EQ(sender->window.size, MOST - world->given);
    T_NEED_EQ(sender->recall.state, DQ_RECALL_REST);
    free(world);
}
END_TEST


/* Peers that lie change nothing. */
START_TEST(test_liar)
{
    world_t *world   = calloc(1, sizeof(*world));
    sender_t *sender = &world->sender[0];
    unsigned i;

    ck_assert_ptr_nonnull(world);
    world_init(world);
    /* nobody asked */
    T_NEED_EQ(dq_recall_back(&sender->recall, &world->rx, &sender->window, 0), -1);
    want(world, sender, LEAST);
    T_NEED_EQ(dq_recall_back(&sender->recall, &world->rx, &sender->window, 0), -1);
    ask(sender);
    /* more than was asked for */
    T_NEED_EQ(dq_recall_back(&sender->recall, &world->rx, &sender->window,
                             MOST - LEAST + 1), -1);
    /* more than it can have left */
    for (i = 0; i < 10; i++) {
        T_NEED(send_message(sender));
        receive(world, sender);
    }
    T_NEED_EQ(dq_recall_back(&sender->recall, &world->rx, &sender->window,
                             MOST - 10 + 1), -1);
    T_NEED_EQ(sender->recall.state, DQ_RECALL_ASKED);
    T_NEED_EQ(sender->window.size, MOST);
    world_check(world);
    T_NEED_EQ(dq_recall_back(&sender->recall, &world->rx, &sender->window, 0), 0);
    free(world);
}
END_TEST


/* A window that is not backed has promised buffers that do not exist. */
START_TEST(test_unbacked)
{
    dq_rx_window_t window;
    dq_recall_t recall = {.state = DQ_RECALL_REST};
    dq_rx_t rx;

    dq_rx_init(&rx, 2 * BATCH, BATCH);
    T_NEED(!dq_rx_open(&rx, &window, MOST, MOST));
    T_NEED_EQ(dq_recall_want(&recall, &rx, &window, LEAST), 0);
    T_NEED_EQ(recall.state, DQ_RECALL_REST);
    T_NEED_EQ(window.size, MOST);
}
END_TEST


/* ---- Random ---- */

static void random_step(world_t *world, t_rng_t *rng)
{
    sender_t *sender = &world->sender[t_rng_below(rng, SENDERS)];

    switch (t_rng_below(rng, 12)) {
    case 0:
        want(world, sender, t_rng_range(rng, LEAST, MOST));
        break;
    case 1:
        ask(sender);
        break;
    case 2:
    case 3:
        hear(sender);
        break;
    case 4:
        answer(world, sender);
        break;
    case 5:
        grant(world, sender);
        break;
    case 6:
        widen(world, sender, t_rng_below(rng, 20));
        break;
    case 7:
        if (t_rng_once_in(rng, 100)) {
            lose(world, sender);
        }
        break;
    case 8:
    case 9:
        receive(world, sender);
        break;
    default:
        (void)send_message(sender);
    }
}


/* In the end all is quiet, everybody is asked, and all but the least is free. */
START_TEST(test_random)
{
    world_t *world = calloc(1, sizeof(*world));
    sender_t *sender;
    t_rng_t rng;
    unsigned i, k;

    ck_assert_ptr_nonnull(world);
    t_rng_init(&rng, 0x4eca + _i);
    world_init(world);
    for (t_at = 0; t_at < STEPS; t_at++) {
        random_step(world, &rng);
        world_check(world);
    }
    T_NEED(world->given > 0);
    for (k = 0; k < 3; k++) {
        for (i = 0; i < SENDERS; i++) {
            sender = &world->sender[i];
            ask(sender);
            while (sender->from.count > 0) {
                hear(sender);
                answer(world, sender);
            }
            answer(world, sender);
            while (sender->to.count > 0) {
                receive(world, sender);
            }
            grant(world, sender);
            want(world, sender, LEAST);
            world_check(world);
        }
    }
    for (i = 0; i < SENDERS; i++) {
        T_NEED_EQ(world->sender[i].window.size, LEAST);
    }
    T_NEED_EQ(world->free, SENDERS * (MOST - LEAST));
    free(world);
}
END_TEST


static Suite *suite_recall(void)
{
    Suite *suite  = suite_create("recall");
    TCase *edges  = tcase_create("edges");
    TCase *random = tcase_create("random");

    tcase_set_timeout(edges, T_TIMEOUT);
    tcase_add_test(edges, test_cells);
    tcase_add_test(edges, test_cut_then_ask);
    tcase_add_test(edges, test_crossing);
    tcase_add_test(edges, test_liar);
    tcase_add_test(edges, test_unbacked);
    suite_add_tcase(suite, edges);

    tcase_set_timeout(random, T_TIMEOUT);
    tcase_add_loop_test(random, test_random, 0, RUNS);
    suite_add_tcase(suite, random);
    return suite;
}


T_MAIN(suite_recall)
