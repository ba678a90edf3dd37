/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which QPs a poll of a CQ looks at.
 *
 * A CQ with few QPs looks at all of them every time, which is a load of one
 * line each. Of many QPs it looks only at the active ones, the first
 * `num_active` of `scan`. The others are not `polled`: their senders ring a
 * bell in the head of the segment. So an empty poll costs the same for 4000 QPs
 * as for 16.
 *
 *     sender:  publish; (barrier) if (!polled) ring bell
 *     sweep:   polled = 0 for QPs not used since the last sweep; (barrier)
 *              QPs that have a record now stay active, the others become idle
 *
 * The barrier is the heavy one, so senders to polled QPs pay nothing. A sweep
 * is due when looking at unused QPs has cost about as much as the sweep will.
 *
 * Bells belong to the process, not to a CQ. Each CQ answers those of its own
 * QPs.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_barrier.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/engine/sv_qp_error.h"
#include "softverbs/engine/sv_scan.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_qp.h"

#include <stdlib.h>
#include <string.h>

/* A CQ with up to this many QPs looks at all of them. */
#define SV_SCAN_ALWAYS_MAX      16

/* Looks between two sweeps: they cost about 10 us, as a heavy barrier does. */
#define SV_SCAN_SWEEP_COST    8192

static const _Atomic uint64_t sv_no_tag;

static void sv_scan_set_polled(struct sv_qp *qp, uint32_t hot)
{
    atomic_store_explicit(&qp->shm->polled, hot, memory_order_relaxed);
}

static void sv_scan_swap(struct sv_cq *cq, unsigned a, unsigned b)
{
    struct sv_scan scan = cq->scan[a];

    cq->scan[a]             = cq->scan[b];
    cq->scan[b]             = scan;
    cq->scan[a].qp->rx.scan = a;
    cq->scan[b].qp->rx.scan = b;
}

static void sv_scan_activate(struct sv_cq *cq, struct sv_qp *qp)
{
    sv_scan_set_polled(qp, 1);
    if (qp->rx.scan >= cq->num_active) {
        sv_scan_swap(cq, qp->rx.scan, cq->num_active++);
    }
    cq->scan[qp->rx.scan].used = true;
}

/* ---- members ---- */

static void sv_scan_add_bell(struct sv_cq *cq, struct sv_qp *qp)
{
    const uint64_t bit = 1ull << (qp->index % 64);

    /* The bell may have rung for the entry's former QP. */
    atomic_fetch_and(&cq->node->head->bells[qp->index / 64], ~bit);
    cq->bells->members[qp->index / 64] |= bit;
    cq->bells->qps[qp->index]           = qp;
}

/* Makes room for one more QP. */
static int sv_scan_grow(struct sv_cq *cq)
{
    struct sv_scan *scan;
    unsigned i, room;

    if (cq->num_scan == cq->scan_room) {
        room = (cq->scan_room == 0) ? 8 : 2 * cq->scan_room;
        scan = realloc(cq->scan, room * sizeof(*scan));
        if (scan == NULL) {
            return -1;
        }
        cq->scan      = scan;
        cq->scan_room = room;
    }

    if ((cq->num_scan == SV_SCAN_ALWAYS_MAX) && (cq->bells == NULL)) {
        cq->bells = calloc(1, sizeof(*cq->bells));
        if (cq->bells == NULL) {
            return -1;
        }
        for (i = 0; i < cq->num_scan; ++i) {
            sv_scan_add_bell(cq, cq->scan[i].qp);
        }
    }
    return 0;
}

int sv_scan_add(struct sv_cq *cq, struct sv_qp *qp)
{
    sv_spin_lock(&cq->rx_lock);
    if (sv_scan_grow(cq) != 0) {
        sv_spin_unlock(&cq->rx_lock);
        return -1;
    }

    if (cq->bells != NULL) {
        sv_scan_add_bell(cq, qp);
    }
    qp->rx.scan               = cq->num_scan;
    cq->scan[cq->num_scan].qp = qp;
    ++cq->num_scan;
    sv_scan_stop(cq, qp);
    sv_scan_activate(cq, qp);
    sv_spin_unlock(&cq->rx_lock);
    return 0;
}

void sv_scan_stop(struct sv_cq *cq, struct sv_qp *qp)
{
    sv_assert_held(&cq->rx_lock);
    cq->scan[qp->rx.scan].tag    = &sv_no_tag;
    cq->scan[qp->rx.scan].expect = 1;
}

void sv_scan_remove(struct sv_cq *cq, struct sv_qp *qp)
{
    const uint64_t bit = 1ull << (qp->index % 64);

    sv_spin_lock(&cq->rx_lock);
    if (qp->rx.scan < cq->num_active) {
        sv_scan_swap(cq, qp->rx.scan, --cq->num_active);
    }
    sv_scan_swap(cq, qp->rx.scan, --cq->num_scan);
    if (cq->bells != NULL) {
        cq->bells->members[qp->index / 64] &= ~bit;
        atomic_fetch_and(&cq->node->head->bells[qp->index / 64], ~bit);
    }
    sv_spin_unlock(&cq->rx_lock);
}

void sv_scan_cleanup(struct sv_cq *cq)
{
    free(cq->bells);
    free(cq->scan);
}

/* ---- bells ---- */

/* Answers the bells of our QPs in one word. */
static void sv_scan_serve_bell_word(struct sv_cq *cq, unsigned word)
{
    struct sv_shm_head *head = cq->node->head;
    uint64_t ours;

    ours = atomic_load(&head->bells[word]) & cq->bells->members[word];
    if (ours != 0) {
        atomic_fetch_and(&head->bells[word], ~ours);
    }
    for (; ours != 0; ours &= ours - 1) {
        sv_scan_activate(cq, cq->bells->qps[word * 64 + __builtin_ctzll(ours)]);
    }
}

/* Whether a bell rings in the words behind one bit of `bell`. */
static bool sv_scan_any_bell(const struct sv_shm_head *head, unsigned first)
{
    unsigned word;

    for (word = first; word < first + SV_BELL_SHARE; ++word) {
        if (atomic_load(&head->bells[word]) != 0) {
            return true;
        }
    }
    return false;
}

/* Answers the bells of our QPs behind one bit of `bell`. Bells of other CQs may go on
 * ringing there. */
static void sv_scan_serve_bell(struct sv_cq *cq, unsigned bell)
{
    struct sv_shm_head *head = cq->node->head;
    const unsigned first     = bell * SV_BELL_SHARE;
    const uint64_t bit       = 1ull << bell;
    unsigned word;

    for (word = first; word < first + SV_BELL_SHARE; ++word) {
        sv_scan_serve_bell_word(cq, word);
    }
    if (sv_scan_any_bell(head, first)) {
        return;
    }
    atomic_fetch_and(&head->bell, ~bit);
    if (sv_scan_any_bell(head, first)) {
        atomic_fetch_or(&head->bell, bit); /* rung in between */
    }
}

static void sv_scan_serve_bells(struct sv_cq *cq)
{
    uint64_t bells = atomic_load(&cq->node->head->bell);

    for (; bells != 0; bells &= bells - 1) {
        sv_scan_serve_bell(cq, __builtin_ctzll(bells));
    }
}

static bool sv_scan_clear_polled(struct sv_cq *cq)
{
    bool any = false;
    unsigned i;

    for (i = 0; i < cq->num_active; ++i) {
        if (!cq->scan[i].used) {
            sv_scan_set_polled(cq->scan[i].qp, 0);
            any = true;
        }
    }
    return any;
}

static void sv_scan_sweep(struct sv_cq *cq)
{
    bool any = sv_scan_clear_polled(cq);
    struct sv_scan *scan;
    unsigned i = 0;

    if (any) {
        sv_heavy_barrier();
    }
    while (i < cq->num_active) {
        scan = &cq->scan[i];
        if (!scan->used && (atomic_load(scan->tag) != scan->expect)) {
            sv_scan_swap(cq, i, --cq->num_active);
            continue;
        }
        sv_scan_set_polled(scan->qp, 1);
        scan->used = false;
        ++i;
    }
}

/* Looks at some of the idle QPs. If a process overwrites `polled` or the bells
 * by mistake, no bell rings for a QP. So one idle QP is checked each time that
 * a sweep would be due. */
static void sv_scan_check_idle(struct sv_cq *cq, unsigned count)
{
    struct sv_scan *scan;

    for (; (count > 0) && (cq->num_active < cq->num_scan); --count) {
        if ((cq->scan_again < cq->num_active) ||
            (cq->scan_again >= cq->num_scan)) {
            cq->scan_again = cq->num_active;
        }
        scan = &cq->scan[cq->scan_again++];
        if (atomic_load(scan->tag) == scan->expect) {
            sv_scan_activate(cq, scan->qp);
        }
    }
}

void sv_scan_check_all_idle(struct sv_cq *cq)
{
    sv_assert_held(&cq->rx_lock);
    sv_scan_check_idle(cq, cq->num_scan);
}

void sv_scan_update(struct sv_cq *cq)
{
    sv_assert_held(&cq->rx_lock);
    if (atomic_load_explicit(&cq->node->head->bell, memory_order_relaxed) !=
        0) {
        sv_scan_serve_bells(cq);
    }

    cq->scan_cost += cq->num_active + 1;
    if (cq->scan_cost < SV_SCAN_SWEEP_COST) {
        return;
    }
    cq->scan_cost = 0;
    sv_scan_check_idle(cq, 1);
    if (cq->num_active > SV_SCAN_ALWAYS_MAX) {
        sv_scan_sweep(cq);
    }
}
