/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults by time and of the whole process: rules with at=, the link, the GID
 * table, datagrams that have waited long enough.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_limits.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/engine/sv_qp_error.h"
#include "softverbs/fabric/sv_doorbell.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fabric/sv_port.h"
#include "softverbs/fault/sv_fault.h"
#include "softverbs/fault/sv_plan.h"
#include "softverbs/objects/sv_context.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_qp.h"

#include <stdlib.h>

/* How often the service thread looks while a datagram is held back. */
#define SV_HELD_TICK_NS   1000000u

_Atomic uint32_t sv_fault_num_held;

static _Atomic uint64_t sv_link_up_at; /* 0: the link is up */


/* ---- the port ---- */

void sv_fault_link_down(struct sv_node *node, uint64_t ns)
{
    uint64_t up_at = sv_now_ns() + ns;

    if (atomic_exchange(&sv_link_up_at, up_at) == 0) {
        sv_port_set_link(false);
        atomic_fetch_or(&node->head->life, SV_LIFE_LINK_DOWN);
        sv_contexts_post_event(IBV_EVENT_PORT_ERR);
    }
    sv_doorbell_ring(node->head);
}

void sv_fault_link_up(struct sv_node *node)
{
    if (atomic_exchange(&sv_link_up_at, 0) != 0) {
        sv_port_set_link(true);
        atomic_fetch_and(&node->head->life, ~SV_LIFE_LINK_DOWN);
        sv_contexts_post_event(IBV_EVENT_PORT_ACTIVE);
    }
}

void sv_fault_gid_change(void)
{
    sv_port_change_gid();
    sv_contexts_post_event(IBV_EVENT_GID_CHANGE);
}

void sv_fault_gid_move(void)
{
    sv_port_move_gid();
    sv_contexts_post_event(IBV_EVENT_GID_CHANGE);
}

void sv_fault_link_reset(void)
{
    atomic_store(&sv_link_up_at, 0);
    sv_port_set_link(true);
}

void sv_fault_tick_orphan(void)
{
    sv_fault_link_reset();
    sv_port_reset();
    atomic_store(&sv_fault_num_held, 0);
}

/* ---- rules with a time ---- */

static int sv_qp_compare(const void *a, const void *b)
{
    uint64_t x = sv_fault_object(*(struct sv_qp *const*)a);
    uint64_t y = sv_fault_object(*(struct sv_qp *const*)b);

    return (x > y) - (x < y);
}

struct sv_qp **sv_fault_sorted_qps(struct sv_node *node, unsigned *count_p)
{
    struct sv_qp **qps = calloc(SV_QP_MAX, sizeof(*qps));
    unsigned count     = 0;
    unsigned i;

    sv_assert_mutex_held(&node->objects_lock);
    for (i = 0; (i < SV_QP_MAX) && (qps != NULL); ++i) {
        if (node->qps[i] != NULL) {
            qps[count++] = node->qps[i];
        }
    }
    if (count > 1) {
        qsort(qps, count, sizeof(*qps), sv_qp_compare);
    }
    *count_p = count;
    return qps;
}

static void sv_fault_tick_qp(struct sv_faults *faults, unsigned i,
                             struct sv_qp *qp, uint64_t n)
{
    struct sv_rule *rule = &faults->plan.rules[i];
    struct sv_cq *cq     = sv_cq(qp->base.recv_cq);
    uint32_t state       = atomic_load(&qp->state);
    bool kill            = false;
    char where[32];

    if (!sv_rule_is_for_qp(rule, sv_fault_class(qp), qp->number) ||
        (state == IBV_QPS_RESET) || (state == IBV_QPS_ERR)) {
        return;
    }

    sv_fault_where(qp, where);
    sv_spin_lock(&cq->rx_lock);
    sv_spin_lock(&qp->tx.lock);
    if (sv_fault_decide(faults, i, sv_fault_object(qp), n, where)) {
        kill = sv_fault_inject(qp, rule);
    }
    sv_spin_unlock(&qp->tx.lock);
    if (kill) {
        sv_qp_to_err(qp);
    }
    sv_cq_rx_unlock(cq);
}

/* The rule's n-th time has come. Needs sv_fault_mutex. */
static void sv_fault_tick_rule(struct sv_node *node, struct sv_faults *faults,
                               unsigned i, uint64_t n)
{
    struct sv_rule *rule = &faults->plan.rules[i];
    struct sv_qp **qps;
    unsigned count, k;

    if (sv_fault_is_global(rule)) {
        if (sv_fault_decide(faults, i, 0, n, "")) {
            sv_fault_inject_global(node, rule);
        }
        return;
    }

    pthread_mutex_lock(&node->objects_lock);
    qps = sv_fault_sorted_qps(node, &count);
    for (k = 0; k < count; ++k) {
        sv_fault_tick_qp(faults, i, qps[k], n);
    }
    free(qps);
    pthread_mutex_unlock(&node->objects_lock);
}

/* When the rule is due next; UINT64_MAX: never again. */
static uint64_t sv_fault_due(const struct sv_faults *faults, unsigned i)
{
    const struct sv_rule *rule = &faults->plan.rules[i];
    uint64_t ticks             = faults->seen[i];

    if (!sv_rule_has(rule, SV_KEY_AT) ||
        !sv_rule_is_for(rule, faults->process) ||
        ((ticks > 0) && !sv_rule_has(rule, SV_KEY_EVERY)) ||
        (atomic_load(&faults->fired[i]) >= rule->value[SV_KEY_TIMES])) {
        return UINT64_MAX;
    }
    return faults->begun_ns + rule->value[SV_KEY_AT] +
           ticks * rule->value[SV_KEY_EVERY];
}

/* Injects what is due, and returns when something is due next. Needs
 * sv_fault_mutex. */
static uint64_t sv_fault_tick_plan(struct sv_node *node,
                                   struct sv_faults *faults, uint64_t now)
{
    uint64_t next = UINT64_MAX;
    uint64_t due;
    unsigned i;

    for (i = 0; i < faults->plan.num_rules; ++i) {
        while ((due = sv_fault_due(faults, i)) <= now) {
            sv_fault_tick_rule(node, faults, i, ++faults->seen[i]);
        }
        next = (due < next) ? due : next;
    }
    return next;
}

static void sv_fault_tick_held(struct sv_node *node, uint64_t now)
{
    struct sv_qp *qp;
    uint32_t i;

    pthread_mutex_lock(&node->objects_lock);
    for (i = 0; i < SV_QP_MAX; ++i) {
        qp = node->qps[i];
        if (qp != NULL) {
            sv_spin_lock(&qp->tx.lock);
            sv_fault_release_held(qp, now);
            sv_spin_unlock(&qp->tx.lock);
        }
    }
    pthread_mutex_unlock(&node->objects_lock);
}

static uint64_t sv_fault_tick_link(struct sv_node *node, uint64_t now)
{
    uint64_t up_at = atomic_load(&sv_link_up_at);

    if (up_at == 0) {
        return UINT64_MAX;
    }
    if (up_at > now) {
        return up_at;
    }
    sv_fault_link_up(node);
    return UINT64_MAX;
}

static uint64_t sv_min_time(uint64_t a, uint64_t b)
{
    return (a < b) ? a : b;
}

const struct timespec *sv_fault_tick(struct sv_node *node,
                                     struct timespec *pause)
{
    uint64_t next = UINT64_MAX;
    struct sv_faults *faults;
    uint64_t now;

    if (!atomic_load(&sv_hooks_active) && !sv_port_link_is_down()) {
        return NULL;
    }

    now = sv_now_ns();
    faults = sv_fault_lock();
    if (faults != NULL) {
        next = sv_fault_tick_plan(node, faults, now);
    }
    sv_fault_unlock();
    if (atomic_load(&sv_fault_num_held) > 0) {
        sv_fault_tick_held(node, now);
        next = sv_min_time(next, now + SV_HELD_TICK_NS);
    }
    next = sv_min_time(next, sv_fault_tick_link(node, now));
    if (next == UINT64_MAX) {
        return NULL;
    }

    pause->tv_sec  = (next - now) / 1000000000u;
    pause->tv_nsec = (next - now) % 1000000000u;
    return pause;
}
