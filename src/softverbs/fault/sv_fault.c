/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plan in force: which QPs have it, what it decides. What a decision does
 * to a QP is in sv_fault_qp.c, and to the process in sv_fault_tick.c.
 */
#include "softverbs/base/sv_atomic.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/engine/sv_qp_error.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fault/sv_fault.h"
#include "softverbs/fault/sv_plan.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_qp.h"
#include "softverbs/objects/sv_rq.h"
#include "softverbs/objects/sv_srq.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t sv_fault_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct sv_faults *sv_fault_current;
static struct sv_node *sv_fault_node;
static bool sv_fault_is_open;
static uint32_t sv_fault_process;

static _Atomic uint32_t sv_fault_qp_numbers[2]; /* RC, UD */

/* Assigned to a QP that has no plan any more but must stay with the fault
 * code. */
static struct sv_faults sv_no_faults = {.refs = 1};

/* ---- deciding ---- */

/* Counts one more. False: the rule has fired as often as it may. */
static bool sv_fault_reserve(struct sv_faults *faults, unsigned rule)
{
    uint64_t limit = faults->plan.rules[rule].value[SV_KEY_TIMES];
    uint64_t fired = atomic_load(&faults->fired[rule]);

    do {
        if (fired >= limit) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&faults->fired[rule], &fired,
                                           fired + 1));
    return true;
}

bool sv_fault_decide(struct sv_faults *faults, unsigned rule, uint64_t object,
                     uint64_t n, const char *where)
{
    if (!sv_rule_fires(&faults->plan, rule, faults->process, object, n) ||
        !sv_fault_reserve(faults, rule)) {
        return false;
    }

    sv_fault_log_decision(faults, rule, where, n);
    return true;
}

/* The errno that the plan wants for this call, or 0. Under sv_fault_mutex. */
static int sv_fault_verb_locked(struct sv_faults *faults, enum sv_verb verb)
{
    char where[64];
    struct sv_rule *rule;
    unsigned i;
    int ret = 0;

    snprintf(where, sizeof(where), "verb=%s", sv_key_word(SV_KEY_NAME, verb));
    for (i = 0; i < faults->plan.num_rules; ++i) {
        rule = &faults->plan.rules[i];
        if ((rule->fault != SV_FAULT_VERB) ||
            !sv_rule_is_for(rule, faults->process) ||
            ((rule->value[SV_KEY_NAME] != SV_VERB_ANY) &&
             (rule->value[SV_KEY_NAME] != verb))) {
            continue;
        }
        if (sv_fault_decide(faults, i, rule->value[SV_KEY_NAME],
                            ++faults->seen[i], where) && (ret == 0)) {
            ret = rule->value[SV_KEY_ERRNO];
        }
    }
    return ret;
}

int sv_fault_verb(enum sv_verb verb)
{
    int ret = 0;

    pthread_mutex_lock(&sv_fault_mutex);
    if (sv_fault_current != NULL) {
        ret = sv_fault_verb_locked(sv_fault_current, verb);
    }
    pthread_mutex_unlock(&sv_fault_mutex);
    if (ret != 0) {
        errno = ret;
    }
    return ret;
}

struct sv_faults *sv_fault_lock(void)
{
    pthread_mutex_lock(&sv_fault_mutex);
    return sv_fault_current;
}

void sv_fault_unlock(void)
{
    pthread_mutex_unlock(&sv_fault_mutex);
}

/* ---- the QPs of a plan ---- */

static void sv_faults_put(struct sv_faults *faults)
{
    if ((faults != NULL) && (atomic_fetch_sub(&faults->refs, 1) == 1)) {
        free(faults);
    }
}

static void sv_fault_qp_free(struct sv_fault_qp *f)
{
    if (f != NULL) {
        sv_fault_drop_held(f);
        sv_faults_put(f->faults);
        free(f);
    }
}

static struct sv_fault_qp *sv_fault_qp_new(struct sv_faults *faults)
{
    struct sv_fault_qp *f = calloc(1, sizeof(*f));

    if (f == NULL) {
        sv_log("out of memory, a queue pair is without its faults");
        return NULL;
    }
    atomic_fetch_add(&faults->refs, 1);
    f->faults = faults;
    return f;
}

/* Whether the QP must stay with the fault code: its oldest WR was executed, and
 * must not be executed again. Needs tx.lock. */
static bool sv_fault_must_stay(struct sv_qp *qp)
{
    struct sv_tx *tx = &qp->tx;

    return (qp->faults != NULL) && (tx->done != tx->posted) &&
           (sv_tx_wqe(tx, tx->done)->stage == SV_STAGE_SILENT);
}

/* Hides the length of RECVs from senders if the plan may fail messages in their
 * RECVs. So senders wait for the verdict. */
static void sv_fault_hide_recv_length(struct sv_qp *qp,
                                      const struct sv_faults *faults)
{
    struct sv_rq *rq = (qp->base.srq != NULL) ? &sv_srq(qp->base.srq)->rq
                                              : &qp->rq;
    const struct sv_rule *rule;
    unsigned i;

    for (i = 0; (faults != NULL) && (i < faults->plan.num_rules); ++i) {
        rule = &faults->plan.rules[i];
        if ((rule->fault == SV_FAULT_COMPLETE) &&
            (rule->value[SV_KEY_QUEUE] == SV_DIRECTION_RECV) &&
            sv_rule_is_for(rule, faults->process) &&
            sv_rule_is_for_qp(rule, sv_fault_class(qp), qp->number)) {
            atomic_store(rq->shm_min_len, 0);
        }
    }
}

/* Assigns a plan to a QP, or removes it if `faults` is NULL. A datagram that is
 * held back is lost. Needs sv_fault_mutex. */
static void sv_fault_assign(struct sv_qp *qp, struct sv_faults *faults)
{
    struct sv_cq *cq = sv_cq(qp->base.recv_cq);
    struct sv_fault_qp *spare, *old;

    sv_assert_mutex_held(&sv_fault_mutex);
    spare = sv_fault_qp_new((faults != NULL) ? faults : &sv_no_faults);
    sv_spin_lock(&cq->rx_lock);
    sv_spin_lock(&qp->tx.lock);
    old = qp->faults;
    if ((faults == NULL) && !sv_fault_must_stay(qp)) {
        qp->faults = NULL;
    } else if ((old == NULL) || (old->faults != faults)) {
        qp->faults = spare;
        spare      = NULL;
    } else {
        old = NULL;
    }
    qp->tx.special = (qp->faults != NULL) || (qp->base.qp_type == IBV_QPT_UD);
    sv_spin_unlock(&qp->tx.lock);
    sv_cq_rx_unlock(cq);
    sv_fault_hide_recv_length(qp, faults);
    sv_fault_qp_free(spare);
    sv_fault_qp_free(old);
}

/* Needs sv_fault_mutex. */
static void sv_fault_assign_all(struct sv_faults *faults)
{
    struct sv_node *node = sv_fault_node;
    uint32_t i;

    if (node == NULL) {
        return;
    }

    pthread_mutex_lock(&node->objects_lock);
    for (i = 0; i < SV_QP_MAX; ++i) {
        if (node->qps[i] != NULL) {
            sv_fault_assign(node->qps[i], faults);
        }
    }
    pthread_mutex_unlock(&node->objects_lock);
    sv_fault_link_up(node);
}

void sv_fault_qp_attach(struct sv_qp *qp)
{
    if (!atomic_load(&sv_hooks_active)) {
        return;
    }

    pthread_mutex_lock(&sv_fault_mutex);
    if (sv_fault_current != NULL) {
        sv_fault_assign(qp, sv_fault_current);
    }
    pthread_mutex_unlock(&sv_fault_mutex);
}

void sv_fault_qp_detach(struct sv_qp *qp)
{
    sv_fault_qp_free(qp->faults);
    qp->faults = NULL;
}

uint32_t sv_fault_qp_number(enum ibv_qp_type type)
{
    return atomic_fetch_add(&sv_fault_qp_numbers[type == IBV_QPT_UD], 1);
}

/* ---- setting it ---- */

struct sv_faults *sv_faults_new(const char *text, uint32_t process, char *why)
{
    struct sv_faults *faults = calloc(1, sizeof(*faults));

    if (faults == NULL) {
        snprintf(why, SV_WHY_BYTES, "out of memory");
        return NULL;
    }
    if (sv_plan_parse(&faults->plan, text, why) != 0) {
        free(faults);
        return NULL;
    }

    faults->refs     = 1;
    faults->process  = process;
    faults->begun_ns = sv_now_ns();
    return faults;
}

/* Needs sv_fault_mutex. */
static void sv_fault_install(struct sv_faults *faults)
{
    struct sv_faults *old = sv_fault_current;

    sv_assert_mutex_held(&sv_fault_mutex);
    if (faults != NULL) {
        sv_fault_log_plan(faults);
    }
    sv_fault_current = faults;
    atomic_store(&sv_hooks_active, faults != NULL);
    sv_fault_assign_all(faults);
    sv_faults_put(old);
}

int sv_fault_set_plan(const char *text, char *why)
{
    struct sv_faults *faults = NULL;

    if (text != NULL) {
        faults = sv_faults_new(text, sv_fault_process, why);
        if (faults == NULL) {
            return -1;
        }
    }

    pthread_mutex_lock(&sv_fault_mutex);
    sv_fault_install(faults);
    pthread_mutex_unlock(&sv_fault_mutex);
    return 0;
}

/* ---- showing it ---- */

static void sv_show_plan(const struct sv_faults *faults, char *text,
                         size_t size)
{
    char rule[SV_WHY_BYTES];
    size_t used;
    unsigned i;

    snprintf(text, size, "process %u, seed %llu, rules %u, decisions so far "
             "%u\n", faults->process, (unsigned long long)faults->plan.seed,
             faults->plan.num_rules, sv_fault_log_index());
    for (i = 0; i < faults->plan.num_rules; ++i) {
        sv_rule_print(&faults->plan.rules[i], rule);
        used = strlen(text);
        snprintf(text + used, size - used, "rule %u fired %llu: %s\n", i + 1,
                 (unsigned long long)atomic_load(&faults->fired[i]), rule);
    }
}

/* Lists the QPs that qp= may name, in the order of their numbers, as far as
 * there is room. Needs sv_fault_mutex. */
static void sv_show_qps(struct sv_node *node, char *text, size_t size)
{
    static const char *const states[] = {"RESET", "INIT", "RTR", "RTS",
                                         "SQD",   "SQE",  "ERR"};
    struct sv_qp **qps;
    unsigned count, i;
    char where[32];
    size_t used;

    sv_assert_mutex_held(&sv_fault_mutex);
    pthread_mutex_lock(&node->objects_lock);
    qps = sv_fault_sorted_qps(node, &count);
    for (i = 0; i < count; ++i) {
        sv_fault_where(qps[i], where);
        used = strlen(text);
        sv_spin_lock(&qps[i]->tx.lock);
        snprintf(text + used, size - used, "%s is QP 0x%x, %s, requests %u\n",
                 where, qps[i]->base.qp_num,
                 states[atomic_load(&qps[i]->state)], qps[i]->tx.done);
        sv_spin_unlock(&qps[i]->tx.lock);
    }
    free(qps);
    pthread_mutex_unlock(&node->objects_lock);
}

void sv_fault_show(char *text, size_t size)
{
    pthread_mutex_lock(&sv_fault_mutex);
    if (sv_fault_current == NULL) {
        snprintf(text, size, "process %u, no plan\n", sv_fault_process);
    } else {
        sv_show_plan(sv_fault_current, text, size);
    }
    if (sv_fault_node != NULL) {
        sv_show_qps(sv_fault_node, text, size);
    }
    pthread_mutex_unlock(&sv_fault_mutex);
}

/* ---- beginning and end ---- */

/* Needs sv_fault_mutex. */
static int sv_fault_open_locked(void)
{
    const char *log = getenv(SV_FAULT_ENV_LOG);
    const char *plan = getenv(SV_FAULT_ENV_PLAN);
    struct sv_faults *faults = NULL;

    if (sv_fault_is_open) {
        return 0;
    }
    if (sv_fault_env_process(&sv_fault_process) != 0) {
        return -1;
    }
    if ((plan != NULL) && (*plan != '\0')) {
        faults = sv_fault_env_plan(plan, sv_fault_process);
        if (faults == NULL) {
            return -1;
        }
    }
    if ((log != NULL) && (*log != '\0') &&
        (sv_fault_log_open(log, sv_fault_process) != 0)) {
        sv_faults_put(faults);
        return -1;
    }

    sv_fault_is_open = true;
    if (faults != NULL) {
        sv_fault_install(faults);
    }
    return 0;
}

int sv_fault_open(void)
{
    int ret;

    pthread_mutex_lock(&sv_fault_mutex);
    ret = sv_fault_open_locked();
    pthread_mutex_unlock(&sv_fault_mutex);
    if (ret != 0) {
        errno = EINVAL;
    }
    return ret;
}

void sv_fault_node_up(struct sv_node *node)
{
    pthread_mutex_lock(&sv_fault_mutex);
    sv_fault_node = node;
    sv_fault_link_reset();
    pthread_mutex_unlock(&sv_fault_mutex);
}

void sv_fault_node_down(struct sv_node *node)
{
    (void)node;
    pthread_mutex_lock(&sv_fault_mutex);
    sv_fault_node = NULL;
    pthread_mutex_unlock(&sv_fault_mutex);
}

void sv_fault_orphan(void)
{
    pthread_mutex_init(&sv_fault_mutex, NULL);
    sv_faults_put(sv_fault_current);
    sv_fault_current = NULL;
    sv_fault_node    = NULL;
    sv_fault_is_open = false;
    atomic_store(&sv_hooks_active, false);
    atomic_store(&sv_fault_qp_numbers[0], 0);
    atomic_store(&sv_fault_qp_numbers[1], 0);
    sv_fault_log_orphan();
    sv_fault_tick_orphan();
}
