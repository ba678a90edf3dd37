/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim.h"

#include "dq/dq_backlog.h"
#include "dq/dq_conn.h"
#include "dq/dq_pace.h"
#include "dq/dq_retry.h"

#include <stdlib.h>
#include <string.h>

enum {
    UNIT       = 100,     /* nanoseconds: events in the same one keep their order */
    WHEEL      = 1 << 17, /* units: the near future                          */
    NONE       = UINT32_MAX,
    DONE       = UINT32_MAX - 1,
    COMPLETION = 2000,    /* nanoseconds: a send has left the NIC            */
    OCTAVE     = 16,      /* classes of times in an octave                   */
    CLASSES    = 64 * OCTAVE
};

/* An event; or a frame, from the moment when it is sent until it is handled. */
typedef struct {
    uint64_t at, mark, peer_mark;
    uint32_t next;  /* in a slot of the wheel, a ring, or the free list      */
    uint32_t where; /* record of the frame; interface to serve               */
    uint32_t epoch, first, peer_epoch;
    uint8_t  kind;  /* of the frame                                          */
    uint8_t  to;    /* the side that receives it                             */
    uint8_t  is_frame, has_port;
} node_t;

typedef struct {
    dq_conn_t      conn;
    dq_pace_turn_t turn;
    uint64_t       started, next_try, interval;
    uint32_t       before, after;  /* in the list of those that wait         */
    uint32_t       next_owing;
    uint8_t        is_timed, is_owing, owed;
    uint8_t        is_known, is_unproven;
} side_t;

/* A connection that is being made. */
typedef struct {
    side_t   side[2];
    uint32_t iface[2];
    uint32_t edge;
    uint32_t frames;   /* that are about it                                  */
    uint64_t begun;    /* first question; 0: none                            */
    int      is_over;
} record_t;

/* A side of a record in one number. */
typedef uint32_t place_t;

typedef struct {
    uint64_t     serve_at, busy_until, port_free, timer_low, start, phase, ticket;
    uint32_t     first, last, count;    /* the receive ring                  */
    uint32_t     owing_first, owing_last, slots;
    uint32_t     timed;
    uint32_t     opened, epoch, unproven;
    uint32_t     *asked;                /* of the backlog: frames            */
    dq_backlog_t backlog;
    dq_pace_t    pace;
} iface_t;

typedef struct {
    const sim_settings_t *set;
    sim_result_t         *result;
    uint64_t             now, unit, random;
    uint64_t             cost;          /* of what is being done             */
    uint32_t             peers;         /* that each interface opens         */
    uint32_t             distances;
    uint32_t             *distance;
    uint64_t             edges;
    uint32_t             *record_of;    /* of an edge: record, NONE or DONE  */
    iface_t              *iface;
    node_t               *node;
    uint32_t             nodes, free_node;
    record_t             *record;
    uint32_t             records, free_record, alive;
    uint32_t             head[WHEEL], tail[WHEEL];
    uint64_t             classes[CLASSES];
    int                  is_short;      /* of memory                         */
} sim_t;


sim_settings_t sim_defaults(void)
{
    return (sim_settings_t){
        .ifaces     = 1000,
        .seed       = 1,
        .ring       = 256,
        .slots      = 32,
        .places     = 32,
        .backlog    = 4096,
        .unproven   = 64,
        .retry      = 20000000,
        .retry_most = 1000000000,
        .timeout    = UINT64_C(60000000000),
        .tick       = 5000000,
        .skew       = 1000000,
        .latency    = 2000,
        .wire       = 16,
        .wake       = 5000,
        .receive    = 1000,
        .send       = 500,
        .create     = 60000,
        .connect    = 40000,
    };
}


/* ---- Chance ---- */

static uint64_t sim_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}


static uint64_t sim_random(sim_t *sim)
{
    sim->random += UINT64_C(0x9e3779b97f4a7c15);
    return sim_mix(sim->random);
}


static int sim_has_luck(sim_t *sim, double chance)
{
    return (chance > 0) && ((sim_random(sim) >> 11) * 0x1p-53 < chance);
}


/* ---- Events: a wheel of lists. What is further away comes round again. ---- */

static uint32_t sim_node_get(sim_t *sim)
{
    uint32_t index = sim->free_node;
    uint32_t count = (sim->nodes == 0) ? 4096 : sim->nodes * 2;
    node_t *more;

    if (index == NONE) {
        more = realloc(sim->node, (size_t)count * sizeof(*more));
        if (more == NULL) {
            sim->is_short = 1;
            return NONE;
        }
        sim->node = more;
        while (sim->nodes < count) {
            sim->node[sim->nodes].next = sim->free_node;
            sim->free_node             = sim->nodes++;
        }
        index = sim->free_node;
    }
    sim->free_node = sim->node[index].next;
    return index;
}


static void sim_node_put(sim_t *sim, uint32_t index)
{
    sim->node[index].next = sim->free_node;
    sim->free_node        = index;
}


static void sim_schedule(sim_t *sim, uint32_t index)
{
    uint64_t unit = (sim->node[index].at + UNIT - 1) / UNIT;
    uint32_t slot;

    if (unit < sim->unit) {
        unit = sim->unit;
    }
    if (unit >= sim->unit + WHEEL) {
        unit = sim->unit + WHEEL - 1;
    }
    slot                  = unit % WHEEL;
    sim->node[index].next = NONE;
    if (sim->head[slot] == NONE) {
        sim->head[slot] = index;
    } else {
        sim->node[sim->tail[slot]].next = index;
    }
    sim->tail[slot] = index;
}


/* The async thread of the interface does something at that time, or earlier. */
static void sim_wake(sim_t *sim, uint32_t i, uint64_t at)
{
    iface_t *iface = &sim->iface[i];
    uint32_t index;

    at = (at < iface->busy_until) ? iface->busy_until : at;
    if (iface->serve_at <= at) {
        return;
    }
    index = sim_node_get(sim);
    if (index == NONE) {
        return;
    }
    iface->serve_at  = at;
    sim->node[index] = (node_t){.at = at, .where = i};
    sim_schedule(sim, index);
}


/* ---- Who connects to whom ---- */

static int sim_is_star(const sim_t *sim)
{
    return sim->set->distances == SIM_STAR;
}


/* A permutation of 0 to count - 1, of each interface its own. */
static uint32_t sim_shuffle(const sim_t *sim, uint32_t i, uint32_t n, uint32_t count)
{
    uint32_t bits = 2, half, mask, left, right, swap, round;
    uint64_t key  = sim->set->seed * UINT64_C(0x9e3779b97f4a7c15) + i;

    while ((UINT64_C(1) << bits) < count) {
        bits += 2;
    }
    half = bits / 2;
    mask = (1u << half) - 1;
    do {
        left  = n >> half;
        right = n & mask;
        for (round = 0; round < 4; round++) {
            swap  = right;
            right = left ^ (sim_mix(key + ((uint64_t)right << 8) + round) & mask);
            left  = swap;
        }
        n = (left << half) | right;
    } while (n >= count);
    return n;
}


/* The edge to the n-th peer that an interface opens. */
static uint64_t sim_edge(const sim_t *sim, uint32_t i, uint32_t n)
{
    uint32_t count = sim->set->ifaces;
    uint32_t k     = sim->distances;
    uint32_t peer, apart;

    if (sim_is_star(sim)) {
        return i - 1;
    }
    if (sim->set->in_order) { /* all distances: that of number n is n + 1 */
        peer  = n + (n >= i);
        apart = (peer + count - i) % count;
        n     = (apart <= k) ? apart - 1 : k + (count - apart) - 1;
    } else {
        n = sim_shuffle(sim, i, n, sim->peers);
    }
    if (n < k) {
        if ((sim->distance[n] * 2 == count) && (i >= count / 2)) {
            i -= count / 2; /* both ends are at this distance from each other */
        }
        return (uint64_t)i * k + n;
    }
    n -= k;
    return (uint64_t)((i + count - sim->distance[n]) % count) * k + n;
}


static void sim_ends(const sim_t *sim, uint64_t edge, uint32_t ends[2])
{
    if (sim_is_star(sim)) {
        ends[0] = 0;
        ends[1] = edge + 1;
    } else {
        ends[0] = edge / sim->distances;
        ends[1] = (ends[0] + sim->distance[edge % sim->distances]) % sim->set->ifaces;
    }
}


/* ---- Records ---- */

static uint32_t sim_record_make(sim_t *sim, uint64_t edge)
{
    uint32_t count = (sim->records == 0) ? 1024 : sim->records * 2;
    uint32_t index = sim->free_record;
    record_t *record, *more;
    uint64_t uuid[2];
    unsigned s;

    if (index == NONE) {
        more = realloc(sim->record, (size_t)count * sizeof(*more));
        if (more == NULL) {
            sim->is_short = 1;
            return NONE;
        }
        sim->record = more;
        while (sim->records < count) {
            sim->record[sim->records].edge = sim->free_record;
            sim->free_record               = sim->records++;
        }
        index = sim->free_record;
    }
    record           = &sim->record[index];
    sim->free_record = record->edge;
    memset(record, 0, sizeof(*record));
    record->edge = edge;
    sim_ends(sim, edge, record->iface);
    for (s = 0; s < 2; s++) {
        uuid[s]                  = sim_mix(record->iface[s] + 1);
        record->side[s].is_known = !sim_is_star(sim) || (s == 1);
    }
    for (s = 0; s < 2; s++) {
        dq_conn_init(&record->side[s].conn, uuid[s], uuid[1 - s]);
    }
    sim->record_of[edge] = index;
    sim->alive++;
    if (sim->alive > sim->result->most_alive) {
        sim->result->most_alive = sim->alive;
    }
    return index;
}


static uint32_t sim_class(uint64_t time)
{
    uint32_t octave = 63 - __builtin_clzll(time | OCTAVE);

    return (octave - 4) * OCTAVE + ((time >> (octave - 4)) & (OCTAVE - 1));
}


/* When nothing can change it any more, a record is not needed. */
static void sim_settle(sim_t *sim, uint32_t r)
{
    record_t *record      = &sim->record[r];
    dq_conn_state_t one   = record->side[0].conn.state;
    dq_conn_state_t other = record->side[1].conn.state;

    if (!record->is_over) {
        if ((one == DQ_CONN_UP) && (other == DQ_CONN_UP)) {
            sim->result->connected++;
            sim->classes[sim_class(sim->now + sim->cost - record->begun)]++;
            record->is_over = 1;
        } else if ((one == DQ_CONN_DEAD) || (other == DQ_CONN_DEAD)) {
            sim->result->failed++;
            record->is_over = 1;
        }
    }
    if (record->is_over && (record->frames == 0) && !record->side[0].is_timed &&
        !record->side[1].is_timed && !record->side[0].is_owing &&
        !record->side[1].is_owing) {
        sim->record_of[record->edge] = DONE;
        record->edge                 = sim->free_record;
        sim->free_record             = r;
        sim->alive--;
    }
}


static side_t *sim_side(sim_t *sim, place_t place)
{
    return &sim->record[place / 2].side[place % 2];
}


static uint32_t sim_iface_of(const sim_t *sim, place_t place)
{
    return sim->record[place / 2].iface[place % 2];
}


/* ---- Timers ---- */

static void sim_timer_set(sim_t *sim, place_t place)
{
    iface_t *iface = &sim->iface[sim_iface_of(sim, place)];
    side_t *side   = sim_side(sim, place);
    uint64_t wait  = side->interval;

    if (!sim->set->no_jitter) {
        wait = dq_retry_spread(wait, sim_random(sim) >> 32);
    }
    side->next_try = sim->now + sim->cost + wait;
    if (side->next_try < iface->timer_low) {
        iface->timer_low = side->next_try;
    }
}


static void sim_timer_arm(sim_t *sim, place_t place)
{
    iface_t *iface = &sim->iface[sim_iface_of(sim, place)];
    side_t *side   = sim_side(sim, place);

    if (side->is_timed) {
        side->interval = dq_retry_longer(side->interval, sim->set->retry_most);
    } else {
        side->is_timed = 1;
        side->before   = NONE;
        side->after    = iface->timed;
        if (iface->timed != NONE) {
            sim_side(sim, iface->timed)->before = place;
        }
        iface->timed   = place;
        side->started  = sim->now;
        side->interval = sim->set->retry;
        if (!sim->set->no_learning && (side->conn.state == DQ_CONN_REQ_SENT)) {
            side->interval = dq_pace_wait(&iface->pace, sim->set->retry,
                                          sim->set->retry_most);
        }
    }
    sim_timer_set(sim, place);
}


static void sim_timer_stop(sim_t *sim, place_t place)
{
    iface_t *iface = &sim->iface[sim_iface_of(sim, place)];
    side_t *side   = sim_side(sim, place);

    if (!side->is_timed) {
        return;
    }
    side->is_timed = 0;
    if (side->before == NONE) {
        iface->timed = side->after;
    } else {
        sim_side(sim, side->before)->after = side->after;
    }
    if (side->after != NONE) {
        sim_side(sim, side->after)->before = side->before;
    }
}


/* The first tick of the interface's timer that is not before that time. */
static uint64_t sim_tick_after(const sim_t *sim, const iface_t *iface, uint64_t time)
{
    if (time < iface->phase) {
        return iface->phase;
    }
    return iface->phase +
           (time - iface->phase + sim->set->tick - 1) / sim->set->tick * sim->set->tick;
}


/* ---- Frames ---- */

static void sim_transmit(sim_t *sim, place_t place, const dq_frame_t *frame)
{
    record_t *record = &sim->record[place / 2];
    uint32_t index;

    sim->cost += sim->set->send;
    sim->result->frames++;
    sim->result->sent[frame->kind]++;
    sim->iface[sim_iface_of(sim, place)].slots++;
    if (record->begun == 0) {
        record->begun = sim->now + sim->cost;
    }
    if (sim_has_luck(sim, sim->set->loss)) {
        sim->result->lost++;
        return;
    }
    index = sim_node_get(sim);
    if (index == NONE) {
        return;
    }
    sim->node[index] = (node_t){
        .at         = sim->now + sim->cost + sim->set->latency,
        .where      = place / 2,
        .to         = 1 - place % 2,
        .is_frame   = 1,
        .kind       = frame->kind,
        .epoch      = frame->epoch,
        .first      = frame->first,
        .peer_epoch = frame->peer_epoch,
        .mark       = frame->mark,
        .peer_mark  = frame->peer_mark,
    };
    record->frames++;
    sim_schedule(sim, index);
}


static int sim_has_slot(sim_t *sim, place_t place)
{
    return sim->iface[sim_iface_of(sim, place)].slots < sim->set->slots;
}


static void sim_send_now(sim_t *sim, place_t place, dq_frame_kind_t kind)
{
    const dq_conn_t *conn  = &sim_side(sim, place)->conn;
    const dq_frame_t frame = {
        .kind       = kind,
        .epoch      = conn->epoch,
        .first      = conn->first,
        .mark       = conn->mark,
        .peer_epoch = (kind == DQ_FRAME_REQ) ? conn->peer_last : conn->peer_epoch,
        .peer_mark  = conn->peer_mark,
    };

    sim_transmit(sim, place, &frame);
}


/* The frame that the peer waits for in this state, if it is not sent already. */
static int sim_is_owed(const side_t *side)
{
    switch (side->owed) {
    case DQ_FRAME_REQ:
        return side->conn.state == DQ_CONN_REQ_SENT;
    case DQ_FRAME_REP:
        return side->conn.state == DQ_CONN_REP_SENT;
    default:
        return side->conn.state == DQ_CONN_UP;
    }
}


static void sim_send(sim_t *sim, place_t place, dq_frame_kind_t kind)
{
    iface_t *iface = &sim->iface[sim_iface_of(sim, place)];
    side_t *side   = sim_side(sim, place);

    if (sim_has_slot(sim, place)) {
        sim_send_now(sim, place, kind);
        return;
    }
    sim->result->unsent++;
    if (sim->set->no_pace) {
        return;
    }
    side->owed = kind;
    if (!side->is_owing) {
        side->is_owing   = 1;
        side->next_owing = NONE;
        if (iface->owing_first == NONE) {
            iface->owing_first = place;
        } else {
            sim_side(sim, iface->owing_last)->next_owing = place;
        }
        iface->owing_last = place;
    }
}


static void sim_send_owed(sim_t *sim, iface_t *iface)
{
    place_t place;
    side_t *side;

    while ((iface->owing_first != NONE) && (iface->slots < sim->set->slots)) {
        place              = iface->owing_first;
        side               = sim_side(sim, place);
        iface->owing_first = side->next_owing;
        side->is_owing     = 0;
        if (sim_is_owed(side)) {
            sim_send_now(sim, place, side->owed);
        }
        sim_settle(sim, place / 2);
    }
}


/* ---- The machine ---- */

static void sim_prove(sim_t *sim, place_t place)
{
    side_t *side = sim_side(sim, place);

    sim->iface[sim_iface_of(sim, place)].unproven -= side->is_unproven;
    side->is_unproven = 0;
}


static void sim_act(sim_t *sim, place_t place, uint32_t action)
{
    side_t *side = sim_side(sim, place);

    switch (action) {
    case DQ_ACT_QP_CREATE:
        sim->cost += sim->set->create;
        side->conn.mark = sim_random(sim) | 1;
        break;
    case DQ_ACT_QP_CONNECT:
        sim->cost += sim->set->connect;
        break;
    case DQ_ACT_SEND_REQ:
        sim_send(sim, place, DQ_FRAME_REQ);
        break;
    case DQ_ACT_SEND_REP:
        sim_send(sim, place, DQ_FRAME_REP);
        break;
    case DQ_ACT_SEND_RTU:
        sim_send(sim, place, DQ_FRAME_RTU);
        break;
    case DQ_ACT_TIMER_ARM:
        sim_timer_arm(sim, place);
        break;
    case DQ_ACT_TIMER_STOP:
        sim_timer_stop(sim, place);
        break;
    case DQ_ACT_POST_UP:
        sim_prove(sim, place);
        break;
    default:
        break;
    }
}


static uint32_t sim_epoch(iface_t *iface)
{
    iface->epoch++;
    if (iface->epoch == 0) {
        iface->epoch = 1;
    }
    return iface->epoch;
}


static void sim_step(sim_t *sim, place_t place, dq_conn_event_t event,
                     const dq_frame_t *frame)
{
    iface_t *iface         = &sim->iface[sim_iface_of(sim, place)];
    dq_conn_state_t before = sim_side(sim, place)->conn.state;
    uint32_t actions, action;

    actions = dq_conn_step(&sim_side(sim, place)->conn, event, frame,
                           sim_epoch(iface));
    for (action = 1; action < DQ_ACT_LAST_BIT; action <<= 1) {
        if (actions & action) {
            sim_act(sim, place, action);
        }
    }
    if ((before == DQ_CONN_REQ_SENT) &&
        (sim_side(sim, place)->conn.state != DQ_CONN_REQ_SENT)) {
        (void)dq_pace_answered(&iface->pace, &sim_side(sim, place)->turn,
                               sim->now + sim->cost);
    }
}


/* ---- What the async thread does ---- */

static void sim_open_next(sim_t *sim, uint32_t i)
{
    iface_t *iface = &sim->iface[i];
    uint64_t edge  = sim_edge(sim, i, iface->opened++);
    uint32_t r     = sim->record_of[edge];
    place_t place;
    side_t *side;

    if (r == DONE) {
        return;
    }
    if (r == NONE) {
        r = sim_record_make(sim, edge);
        if (r == NONE) {
            return;
        }
    }
    place = r * 2 + (sim->record[r].iface[0] != i);
    side  = sim_side(sim, place);
    if (side->conn.state != DQ_CONN_IDLE) {
        return;
    }
    if (!sim->set->no_pace) {
        (void)dq_pace_want(&side->turn);
        dq_pace_begin(&iface->pace, &side->turn, sim->now);
    }
    sim_step(sim, place, DQ_EV_OPEN, NULL);
}


/* An interface with too many peers that have not proven that they hear it answers that
 * they must ask again with its ticket. */
static int sim_is_put_off(sim_t *sim, place_t place, const dq_frame_t *request)
{
    iface_t *iface   = &sim->iface[sim_iface_of(sim, place)];
    side_t *side     = sim_side(sim, place);
    int is_unproven  = request->peer_mark != iface->ticket;
    dq_frame_t again = {
        .kind       = DQ_FRAME_AGAIN,
        .mark       = iface->ticket,
        .peer_epoch = request->epoch,
        .peer_mark  = request->mark,
    };

    if (!is_unproven || (iface->unproven < sim->set->unproven)) {
        side->is_known    = 1;
        side->is_unproven = is_unproven;
        iface->unproven  += is_unproven;
        return 0;
    }
    again.epoch = again.first = sim_epoch(iface);
    if (sim_has_slot(sim, place)) {
        sim_transmit(sim, place, &again);
    } else {
        sim->result->unsent++;
    }
    return 1;
}


/* Handles a frame that has been received, and forgets it. */
static void sim_handle(sim_t *sim, uint32_t index)
{
    const node_t *node     = &sim->node[index];
    place_t place          = node->where * 2 + node->to;
    const dq_frame_t frame = {
        .kind       = node->kind,
        .epoch      = node->epoch,
        .first      = node->first,
        .peer_epoch = node->peer_epoch,
        .mark       = node->mark,
        .peer_mark  = node->peer_mark,
    };
    side_t *side           = sim_side(sim, place);

    sim_node_put(sim, index);
    sim->record[place / 2].frames--;
    if (side->is_known ||
        ((frame.kind == DQ_FRAME_REQ) && !sim_is_put_off(sim, place, &frame))) {
        side = sim_side(sim, place);
        sim_step(sim, place, dq_conn_classify(&side->conn, &frame), &frame);
    }
    sim_settle(sim, place / 2);
}


static void sim_ring_take(sim_t *sim, iface_t *iface, uint32_t *index_p)
{
    *index_p     = iface->first;
    iface->first = sim->node[*index_p].next;
    iface->count--;
    sim->cost += sim->set->receive;
}


static int sim_backlog_grow(sim_t *sim, iface_t *iface)
{
    uint32_t size = (iface->backlog.size == 0) ? 16 : iface->backlog.size * 2;
    void *entry, *asked;

    if (size > sim->set->backlog) {
        return -1;
    }
    entry = realloc(iface->backlog.entry, size * sizeof(dq_backlog_entry_t));
    if (entry == NULL) {
        sim->is_short = 1;
        return -1;
    }
    iface->backlog.entry = entry; /* the old one is gone, whatever comes next */
    asked                = realloc(iface->asked, size * sizeof(*iface->asked));
    if (asked == NULL) {
        sim->is_short = 1;
        return -1;
    }
    iface->asked = asked;
    dq_backlog_grow(&iface->backlog, entry, size);
    return 0;
}


static void sim_note(sim_t *sim, iface_t *iface, uint32_t index)
{
    uint64_t key   = sim_mix(sim->record[sim->node[index].where].edge);
    uint32_t count = iface->backlog.count;
    uint32_t at    = dq_backlog_put(&iface->backlog, key);
    uint32_t old   = index;

    if ((at == DQ_BACKLOG_NONE) && (sim_backlog_grow(sim, iface) == 0)) {
        at = dq_backlog_put(&iface->backlog, key);
    }
    if (at == DQ_BACKLOG_NONE) {
        sim->result->full++;
    } else if (iface->backlog.count == count) {
        old              = iface->asked[at]; /* asked again: the new one counts */
        iface->asked[at] = index;
    } else {
        iface->asked[at] = index;
        return;
    }
    sim->record[sim->node[old].where].frames--;
    sim_settle(sim, sim->node[old].where);
    sim_node_put(sim, old);
}


static void sim_receive(sim_t *sim, iface_t *iface)
{
    uint32_t index;

    sim_ring_take(sim, iface, &index);
    if ((sim->node[index].kind == DQ_FRAME_REQ) && !sim->set->no_backlog) {
        sim_note(sim, iface, index);
    } else {
        sim_handle(sim, index);
    }
}


static void sim_retry(sim_t *sim, iface_t *iface)
{
    uint64_t low = UINT64_MAX;
    place_t place, next;
    uint64_t before;
    side_t *side;

    iface->timer_low = UINT64_MAX; /* what is set from here on is later */
    for (place = iface->timed; place != NONE; place = next) {
        side = sim_side(sim, place);
        next = side->after;
        if (side->next_try > sim->now) {
            low = (side->next_try < low) ? side->next_try : low;
            continue;
        }
        dq_pace_late(&iface->pace, &side->turn, sim->now);
        before = sim->result->frames;
        sim_step(sim, place, (sim->now - side->started > sim->set->timeout)
                                     ? DQ_EV_EXPIRE : DQ_EV_TICK, NULL);
        sim->result->repeated += sim->result->frames - before;
        sim_settle(sim, place / 2);
    }
    iface->timer_low = (low < iface->timer_low) ? low : iface->timer_low;
}


static int sim_may_open(const sim_t *sim, const iface_t *iface)
{
    return (iface->opened < sim->peers) && (sim->now >= iface->start) &&
           (sim->set->no_pace || dq_pace_is_free(&iface->pace));
}


/* Does the next thing that there is to do. Returns zero if there is nothing. */
static int sim_do_next(sim_t *sim, uint32_t i)
{
    iface_t *iface = &sim->iface[i];
    uint32_t oldest;

    if (sim->set->no_pace && sim_may_open(sim, iface)) {
        sim_open_next(sim, i);
        return 1;
    }
    iface->slots = 0; /* the completions of all sends are polled */
    sim_send_owed(sim, iface);
    if (iface->count > 0) {
        sim_receive(sim, iface);
        return 1;
    }
    if (iface->timer_low <= sim->now) {
        if (sim_tick_after(sim, iface, iface->timer_low) <= sim->now) {
            sim_retry(sim, iface);
            return 1;
        }
    }
    oldest = dq_backlog_take(&iface->backlog);
    if (oldest != DQ_BACKLOG_NONE) {
        sim_handle(sim, iface->asked[oldest]);
        return 1;
    }
    if (sim_may_open(sim, iface)) {
        sim_open_next(sim, i);
        return 1;
    }
    return 0;
}


static void sim_serve(sim_t *sim, uint32_t i)
{
    iface_t *iface = &sim->iface[i];
    int is_busy;

    sim->cost       = 0;
    iface->serve_at = UINT64_MAX;
    is_busy         = sim_do_next(sim, i);

    iface->busy_until = sim->now + sim->cost;
    if (is_busy || (sim->cost > 0)) {
        sim_wake(sim, i, iface->busy_until);
    } else if (iface->owing_first != NONE) {
        sim_wake(sim, i, sim->now + COMPLETION);
    } else if (iface->timer_low != UINT64_MAX) {
        sim_wake(sim, i, sim_tick_after(sim, iface, iface->timer_low));
    }
}


/* A frame reaches the port of its receiver. */
static void sim_arrive(sim_t *sim, uint32_t index)
{
    node_t *node   = &sim->node[index];
    uint32_t i     = sim->record[node->where].iface[node->to];
    iface_t *iface = &sim->iface[i];
    uint64_t waiting;

    if (!node->has_port && (iface->port_free > sim->now)) {
        node->has_port    = 1;
        node->at          = iface->port_free;
        iface->port_free += sim->set->wire;
        sim_schedule(sim, index);
        return;
    }
    if (!node->has_port) {
        iface->port_free = sim->now + sim->set->wire;
    }
    if (iface->count >= sim->set->ring) {
        sim->result->overrun++;
        sim->record[node->where].frames--;
        sim->cost = 0;
        sim_settle(sim, node->where);
        sim_node_put(sim, index);
        return;
    }
    if (iface->count++ == 0) {
        iface->first = index;
    } else {
        sim->node[iface->last].next = index;
    }
    iface->last = index;
    node->next  = NONE;
    waiting     = iface->count + iface->backlog.count;
    if (waiting > sim->result->most_waiting) {
        sim->result->most_waiting = waiting;
    }
    sim_wake(sim, i, sim->now + sim->set->wake);
}


/* ---- A run ---- */

static void sim_event(sim_t *sim, uint32_t index)
{
    node_t *node = &sim->node[index];
    uint32_t i   = node->where;

    if (node->at > sim->now) {
        sim_schedule(sim, index); /* it was too far away */
    } else if (node->is_frame) {
        sim_arrive(sim, index);
    } else {
        /* there may have been an earlier one since */
        int is_it = sim->iface[i].serve_at == node->at;

        sim_node_put(sim, index);
        if (is_it) {
            sim_serve(sim, i);
        }
    }
}


static int sim_is_over(const sim_t *sim)
{
    return sim->is_short ||
           (sim->result->connected + sim->result->failed >= sim->result->wanted);
}


static void sim_loop(sim_t *sim)
{
    uint32_t slot, index;

    while (!sim_is_over(sim)) {
        slot     = sim->unit % WHEEL;
        sim->now = sim->unit * UNIT;
        while (((index = sim->head[slot]) != NONE) && !sim_is_over(sim)) {
            sim->head[slot] = sim->node[index].next;
            sim_event(sim, index);
        }
        sim->unit++;
    }
}


static void *sim_take(sim_t *sim, uint64_t count, size_t size)
{
    void *memory = calloc(count, size);

    sim->result->bytes += count * size;
    sim->is_short      |= memory == NULL;
    return memory;
}


static int sim_distance_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}


/* All distances from 1 to half of the interfaces, or some of them by chance. */
static void sim_choose_distances(sim_t *sim)
{
    uint32_t all = sim->set->ifaces / 2;
    uint32_t k, i;

    sim->distances = (sim->set->distances == 0) ? all : sim->set->distances;
    sim->distance  = sim_take(sim, sim->distances, sizeof(*sim->distance));
    if (sim->distance == NULL) {
        return;
    }
    for (k = 0, i = 1; (i <= all) && (k < sim->distances); i++) {
        if (sim_random(sim) % (all - i + 1) < sim->distances - k) {
            sim->distance[k++] = i;
        }
    }
    qsort(sim->distance, sim->distances, sizeof(*sim->distance), sim_distance_compare);
    sim->edges = (uint64_t)sim->set->ifaces * sim->distances;
    sim->peers = sim->distances * 2;
    if (sim->distance[sim->distances - 1] * 2 == sim->set->ifaces) {
        sim->peers--;
    }
}


static void sim_iface_init(sim_t *sim, uint32_t i)
{
    iface_t *iface = &sim->iface[i];

    iface->owing_first = iface->timed = NONE;
    iface->timer_low   = iface->serve_at = UINT64_MAX;
    iface->ticket      = sim_random(sim) | 1;
    iface->start       = (sim->set->skew > 0) ? sim_random(sim) % sim->set->skew : 0;
    iface->phase       = sim_random(sim) % sim->set->tick;
    dq_backlog_init(&iface->backlog);
    dq_pace_init(&iface->pace, sim->set->places);
    iface->start = (iface->start + UNIT - 1) / UNIT * UNIT;
    if (sim_is_star(sim) && (i == 0)) {
        iface->opened = UINT32_MAX;
    } else {
        sim_wake(sim, i, iface->start);
    }
}


static void sim_begin(sim_t *sim)
{
    uint64_t i;

    sim->free_node = sim->free_record = NONE;
    memset(sim->head, 0xff, sizeof(sim->head));
    if (sim_is_star(sim)) {
        sim->edges = sim->set->ifaces - 1;
        sim->peers = 1;
    } else {
        sim_choose_distances(sim);
    }
    if (sim->is_short) {
        return;
    }
    sim->record_of = sim_take(sim, sim->edges, sizeof(*sim->record_of));
    sim->iface     = sim_take(sim, sim->set->ifaces, sizeof(*sim->iface));
    if (sim->is_short) {
        return;
    }
    memset(sim->record_of, 0xff, sim->edges * sizeof(*sim->record_of));
    for (i = 0; i < sim->set->ifaces; i++) {
        sim_iface_init(sim, i);
    }
    sim->result->wanted = sim_is_star(sim)
                                  ? sim->edges
                                  : (uint64_t)sim->set->ifaces * sim->peers / 2;
}


/* The time that a share of the connections did not need more than: the end of its class,
 * which is a sixteenth of an octave. */
static double sim_share(const sim_t *sim, double share)
{
    uint64_t sum = 0, count = 0;
    uint32_t class, octave;

    for (class = 0; class < CLASSES; class++) {
        sum += sim->classes[class];
    }
    for (class = 0; class < CLASSES; class++) {
        count += sim->classes[class];
        if ((count > 0) && (count >= share * sum)) {
            octave = class / OCTAVE + 4;
            return ((UINT64_C(1) << octave) +
                    ((class % OCTAVE + UINT64_C(1)) << (octave - 4))) * 1e-9;
        }
    }
    return 0;
}


static void sim_report(sim_t *sim)
{
    static const double share[SIM_SHARES] = {0.5, 0.99, 0.999, 1};
    unsigned i;

    for (i = 0; i < SIM_SHARES; i++) {
        sim->result->took[i] = sim_share(sim, share[i]);
    }
    sim->result->seconds = sim->now * 1e-9;
    sim->result->bytes  += sim->nodes * sizeof(*sim->node) +
                           sim->records * sizeof(*sim->record);
}


static void sim_end(sim_t *sim)
{
    uint64_t i;

    for (i = 0; (sim->iface != NULL) && (i < sim->set->ifaces); i++) {
        free(sim->iface[i].backlog.entry);
        free(sim->iface[i].asked);
    }
    free(sim->iface);
    free(sim->distance);
    free(sim->record_of);
    free(sim->record);
    free(sim->node);
    free(sim);
}


int sim_run(const sim_settings_t *settings, sim_result_t *result)
{
    sim_t *sim = calloc(1, sizeof(*sim));
    int is_short;

    if (sim == NULL) {
        return -1;
    }
    *result     = (sim_result_t){0};
    sim->set    = settings;
    sim->result = result;
    sim->random = settings->seed;
    sim_begin(sim);
    if (!sim->is_short) {
        sim_loop(sim);
        sim_report(sim);
    }
    is_short = sim->is_short;
    sim_end(sim);
    return is_short ? -1 : 0;
}
