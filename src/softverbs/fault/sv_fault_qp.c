/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a plan does to the work of a QP.
 *
 * The plan decides once for each WR, when the WR is the oldest of the send
 * queue and is first tried. The decision holds until the WR is retired. So a
 * rule's n-th opportunity on a QP is the n-th WR that becomes the oldest,
 * whatever waits in between.
 */
#include "softverbs/base/sv_assert.h"
#include "softverbs/base/sv_limits.h"
#include "softverbs/base/sv_util.h"
#include "softverbs/base/sv_wire.h"
#include "softverbs/engine/sv_rc.h"
#include "softverbs/engine/sv_request.h"
#include "softverbs/engine/sv_wqe.h"
#include "softverbs/fabric/sv_doorbell.h"
#include "softverbs/fabric/sv_node.h"
#include "softverbs/fabric/sv_port.h"
#include "softverbs/fault/sv_fault.h"
#include "softverbs/fault/sv_plan.h"
#include "softverbs/objects/sv_context.h"
#include "softverbs/objects/sv_cq.h"
#include "softverbs/objects/sv_event.h"
#include "softverbs/objects/sv_qp.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long a datagram waits at most for others to overtake it. */
#define SV_HOLD_NS    20000000u

/* ---- which QP ---- */

enum sv_qp_class sv_fault_class(const struct sv_qp *qp)
{
    return (qp->base.qp_type == IBV_QPT_UD) ? SV_QP_UD : SV_QP_RC;
}

uint64_t sv_fault_object(const struct sv_qp *qp)
{
    return ((uint64_t)sv_fault_class(qp) << 32) | qp->number;
}

void sv_fault_where(const struct sv_qp *qp, char *text)
{
    snprintf(text, 32, "qp=%s.%u", (sv_fault_class(qp) == SV_QP_UD) ? "ud" :
                                                                     "rc",
             qp->number);
}

/* Counts one more opportunity of this rule on this QP: does it fire? */
static bool sv_fault_fires(struct sv_qp *qp, unsigned rule)
{
    struct sv_fault_qp *f = qp->faults;
    char where[32];

    sv_fault_where(qp, where);
    return sv_fault_decide(f->faults, rule, sv_fault_object(qp),
                           ++f->count[rule], where);
}

static bool sv_fault_is_for(const struct sv_qp *qp, const struct sv_rule *rule)
{
    return sv_rule_is_for(rule, qp->faults->faults->process) &&
           sv_rule_is_for_qp(rule, sv_fault_class(qp), qp->number);
}

static enum sv_op sv_fault_op(uint32_t opcode)
{
    switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return SV_OP_WRITE;
    case IBV_WR_RDMA_READ:
        return SV_OP_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return SV_OP_ATOMIC;
    default:
        return SV_OP_SEND;
    }
}

/* ---- changes of state ---- */

/* Fails the other end, as a request that it must deny does. */
static void sv_fault_kill_remote(struct sv_qp *qp, bool event)
{
    struct sv_tx *tx = &qp->tx;

    if ((qp->base.qp_type != IBV_QPT_RC) || !sv_tx_connect(qp)) {
        return;
    }

    atomic_store(&tx->rem->fault, event ? SV_KILL_FATAL : SV_KILL_QUIETLY);
    atomic_store(&tx->peer->head->faults, 1);
    sv_tx_leave(tx);
    sv_doorbell_ring(tx->peer->head);
}

static struct sv_cq *sv_fault_cq(struct sv_qp *qp, const struct sv_rule *rule)
{
    return sv_cq((rule->value[SV_KEY_CQ] == SV_DIRECTION_RECV) ?
                         qp->base.recv_cq : qp->base.send_cq);
}

/* Posts an event about an object of the QP. */
static void sv_fault_post_event(struct sv_qp *qp, enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_CQ_ERR:
        sv_event_post(qp->ctx, type, qp->base.send_cq);
        break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        if (qp->base.srq != NULL) {
            sv_event_post(qp->ctx, type, qp->base.srq);
        }
        break;
    default:
        sv_event_post(qp->ctx, type, qp);
        break;
    }
}

bool sv_fault_is_global(const struct sv_rule *rule)
{
    switch (rule->fault) {
    case SV_FAULT_LINK:
    case SV_FAULT_GID_CHANGE:
    case SV_FAULT_GID_MOVE:
        return true;
    case SV_FAULT_EVENT:
        return sv_event_is_of_port(rule->value[SV_KEY_TYPE]);
    default:
        return false;
    }
}

void sv_fault_inject_global(struct sv_node *node, const struct sv_rule *rule)
{
    if (rule->fault == SV_FAULT_LINK) {
        sv_fault_link_down(node, rule->value[SV_KEY_DOWN]);
    } else if (rule->fault == SV_FAULT_GID_CHANGE) {
        sv_fault_gid_change();
    } else if (rule->fault == SV_FAULT_GID_MOVE) {
        sv_fault_gid_move();
    } else {
        sv_contexts_post_event(rule->value[SV_KEY_TYPE]);
    }
}

bool sv_fault_inject(struct sv_qp *qp, const struct sv_rule *rule)
{
    bool event = (rule->value[SV_KEY_EVENT] != 0);
    unsigned side;

    sv_assert_held(&qp->tx.lock);
    if (sv_fault_is_global(rule)) {
        sv_fault_inject_global(qp->node, rule);
        return false;
    }
    if (rule->fault == SV_FAULT_OVERRUN) {
        sv_cq_overrun(sv_fault_cq(qp, rule));
        return false;
    }
    if (rule->fault == SV_FAULT_EVENT) {
        sv_fault_post_event(qp, rule->value[SV_KEY_TYPE]);
        return false;
    }

    side = rule->value[SV_KEY_SIDE];
    if ((side & SV_SIDE_REMOTE) != 0) {
        sv_fault_kill_remote(qp, event);
    }
    if ((side & SV_SIDE_LOCAL) == 0) {
        return false;
    }
    if (event) {
        sv_event_post(qp->ctx, IBV_EVENT_QP_FATAL, qp);
    }
    return true;
}

/* ---- decisions ---- */

static void sv_fault_draw_rule(struct sv_qp *qp, const struct sv_rule *rule)
{
    struct sv_decision *decision = &qp->faults->decision;

    switch (rule->fault) {
    case SV_FAULT_COMPLETE:
        if (decision->status == 0) {
            decision->status = rule->value[SV_KEY_STATUS];
        }
        break;
    case SV_FAULT_LOSE_ACK:
        decision->lose_ack = true;
        break;
    case SV_FAULT_DELAY:
        decision->delay_until = sv_now_ns() + rule->value[SV_KEY_TIME];
        break;
    case SV_FAULT_DROP:
        decision->drop = true;
        break;
    case SV_FAULT_DUPLICATE:
        decision->copies = 2;
        break;
    case SV_FAULT_REORDER:
        decision->hold    = true;
        decision->hold_by = rule->value[SV_KEY_BY];
        break;
    default:
        decision->kill |= sv_fault_inject(qp, rule);
        break;
    }
}

/* Whether the rule concerns WRs of the send queue. */
static bool sv_rule_is_of_work(const struct sv_rule *rule)
{
    return (rule->fault != SV_FAULT_POST) && (rule->fault != SV_FAULT_VERB) &&
           !sv_rule_has(rule, SV_KEY_AT) &&
           (rule->value[SV_KEY_QUEUE] == SV_DIRECTION_SEND);
}

static void sv_fault_draw(struct sv_qp *qp, const struct sv_swqe *wqe)
{
    struct sv_fault_qp *f      = qp->faults;
    const struct sv_plan *plan = &f->faults->plan;
    enum sv_op op              = sv_fault_op(wqe->opcode);
    unsigned i;

    f->decision = (struct sv_decision){
        .is_drawn = true,
        .position = qp->tx.done,
        .copies   = 1
    };
    for (i = 0; i < plan->num_rules; ++i) {
        if (sv_rule_is_of_work(&plan->rules[i]) &&
            sv_fault_is_for(qp, &plan->rules[i]) &&
            sv_rule_is_for_op(&plan->rules[i], op) && sv_fault_fires(qp, i)) {
            sv_fault_draw_rule(qp, &plan->rules[i]);
        }
    }
}

void sv_fault_tx_reset(struct sv_qp *qp)
{
    qp->faults->decision.is_drawn = false;
    sv_fault_drop_held(qp->faults);
}

/* ---- datagrams ---- */

void sv_fault_drop_held(struct sv_fault_qp *f)
{
    if (f->held != NULL) {
        atomic_fetch_sub(&sv_fault_num_held, 1);
        free(f->held);
        f->held = NULL;
    }
}

/* Holds back a copy with its data. The WR completes, as WRs of datagrams do. */
static int sv_fault_hold(struct sv_qp *qp, struct sv_swqe *wqe)
{
    struct sv_fault_qp *f = qp->faults;
    struct sv_swqe *held;
    uint8_t *to;
    unsigned i;
    int ret;

    ret = sv_tx_resolve(qp, wqe, 0);
    if (ret != 0) {
        return ret;
    }
    if (wqe->total > SV_UD_MTU) {
        return IBV_WC_LOC_LEN_ERR;
    }

    held = malloc(sizeof(*held) + sizeof(held->sge[0]) + SV_UD_MTU);
    if (held == NULL) {
        return 0; /* lost */
    }

    *held = *wqe;
    to    = (uint8_t*)&held->sge[1];
    held->sge[0]  = (struct ibv_sge){.addr   = (uintptr_t)to,
                                     .length = wqe->total};
    for (i = 0; i < wqe->num_sge; ++i) {
        memcpy(to, (void*)(uintptr_t)wqe->sge[i].addr, wqe->sge[i].length);
        to += wqe->sge[i].length;
    }
    held->num_sge = 1;
    held->flags  |= IBV_SEND_INLINE;
    f->held       = held;
    f->held_by    = f->decision.hold_by;
    f->held_until = sv_now_ns() + SV_HOLD_NS;
    atomic_fetch_add(&sv_fault_num_held, 1);
    sv_doorbell_ring(qp->node->head);
    return 0;
}

bool sv_fault_release_held(struct sv_qp *qp, uint64_t now)
{
    struct sv_fault_qp *f = qp->faults;

    sv_assert_held(&qp->tx.lock);
    if ((f == NULL) || (f->held == NULL)) {
        return false;
    }
    if ((f->held_by > 0) && (now < f->held_until)) {
        return true;
    }

    /* If there is no room now, the datagram is lost, as datagrams are. */
    if (!sv_port_link_is_down()) {
        sv_tx_datagram(qp, f->held);
    }
    sv_fault_drop_held(f);
    return false;
}

static int sv_fault_datagram(struct sv_qp *qp, struct sv_swqe *wqe)
{
    struct sv_fault_qp *f = qp->faults;
    int ret;

    if (f->decision.drop || sv_port_link_is_down()) {
        return 0;
    }
    if (f->decision.hold && (f->held == NULL)) {
        return sv_fault_hold(qp, wqe);
    }

    for (; f->decision.copies > 0; --f->decision.copies) {
        ret = sv_tx_datagram(qp, wqe);
        if (ret != 0) {
            return ret;
        }
    }
    if ((f->held != NULL) && (f->held_by > 0)) {
        --f->held_by;
        sv_fault_release_held(qp, 0);
    }
    return 0;
}

/* ---- executing ---- */

int sv_fault_execute(struct sv_qp *qp, struct sv_swqe *wqe,
                     sv_execute_func_t execute)
{
    struct sv_decision *decision = &qp->faults->decision;
    int ret;

    sv_assert_held(&qp->tx.lock);
    if (wqe->stage == SV_STAGE_SILENT) {
        return sv_tx_ack_timeout(qp);
    }
    if (!decision->is_drawn || (decision->position != qp->tx.done)) {
        sv_fault_draw(qp, wqe);
    }

    if (decision->kill) {
        return IBV_WC_WR_FLUSH_ERR;
    }
    if (decision->delay_until != 0) {
        if (sv_now_ns() < decision->delay_until) {
            return sv_tx_wait(&qp->tx, SV_WAIT_DELAY);
        }
        decision->delay_until = 0;
    }
    if (decision->status != 0) {
        return decision->status;
    }
    if (qp->base.qp_type == IBV_QPT_UD) {
        return sv_fault_datagram(qp, wqe);
    }
    if (sv_port_link_is_down()) {
        return sv_tx_ack_timeout(qp);
    }

    ret = execute(qp, wqe);
    if ((ret == 0) && decision->lose_ack) {
        wqe->stage = SV_STAGE_SILENT;
        return sv_tx_ack_timeout(qp);
    }
    return ret;
}

/* ---- posting and receiving ---- */

/* The position of the WR that is refused in a list of that length, with its
 * errno; UINT_MAX: none. Needs tx.lock, for either queue. */
static unsigned sv_fault_refuse_at(struct sv_qp *qp, enum sv_direction queue,
                                   unsigned length, int *ret_p)
{
    const struct sv_plan *plan = &qp->faults->faults->plan;
    const struct sv_rule *rule;
    unsigned at = UINT_MAX;
    unsigned i;

    sv_assert_held(&qp->tx.lock);
    for (i = 0; i < plan->num_rules; ++i) {
        rule = &plan->rules[i];
        if ((rule->fault == SV_FAULT_POST) &&
            (rule->value[SV_KEY_QUEUE] == queue) && sv_fault_is_for(qp, rule) &&
            (rule->value[SV_KEY_POSITION] < length) && sv_fault_fires(qp, i) &&
            (at == UINT_MAX)) {
            at     = rule->value[SV_KEY_POSITION];
            *ret_p = rule->value[SV_KEY_ERRNO];
        }
    }
    return at;
}

struct ibv_send_wr *sv_fault_refuse_send(struct sv_qp *qp,
                                         struct ibv_send_wr *wr, int *ret_p)
{
    struct ibv_send_wr *end;
    unsigned length = 0;
    unsigned at;

    for (end = wr; end != NULL; end = end->next) {
        ++length;
    }
    at = sv_fault_refuse_at(qp, SV_DIRECTION_SEND, length, ret_p);
    for (; (wr != NULL) && (at > 0); wr = wr->next) {
        --at;
    }
    return wr;
}

struct ibv_recv_wr *sv_fault_refuse_recv(struct sv_qp *qp,
                                         struct ibv_recv_wr *wr, int *ret_p)
{
    struct ibv_recv_wr *end;
    unsigned length = 0;
    unsigned at;

    for (end = wr; end != NULL; end = end->next) {
        ++length;
    }
    at = sv_fault_refuse_at(qp, SV_DIRECTION_RECV, length, ret_p);
    for (; (wr != NULL) && (at > 0); wr = wr->next) {
        --at;
    }
    return wr;
}

int sv_fault_receive(struct sv_qp *qp)
{
    const struct sv_plan *plan = &qp->faults->faults->plan;
    const struct sv_rule *rule;
    unsigned i;
    int status = 0;

    sv_assert_held(&sv_cq(qp->base.recv_cq)->rx_lock);
    for (i = 0; i < plan->num_rules; ++i) {
        rule = &plan->rules[i];
        if ((rule->fault == SV_FAULT_COMPLETE) &&
            (rule->value[SV_KEY_QUEUE] == SV_DIRECTION_RECV) &&
            sv_fault_is_for(qp, rule) && sv_fault_fires(qp, i) &&
            (status == 0)) {
            status = rule->value[SV_KEY_STATUS];
        }
    }
    return status;
}
