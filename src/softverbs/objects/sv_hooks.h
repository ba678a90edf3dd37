/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hooks: where the core asks whether to inject a fault.
 *
 * The core defines an empty table, as a weak symbol. The room fault/ defines
 * the same table, filled. A hook that is NULL does nothing, so without that
 * room the device works and has no faults.
 *
 * The message paths look at two things only: a QP's `faults`, which is NULL
 * unless a plan is in force, and sv_hooks_active, for control verbs and RECVs.
 * The hooks of a QP are called only if its `faults` is not NULL.
 */
#ifndef SV_HOOKS_H
#define SV_HOOKS_H

#include "softverbs/base/sv_atomic.h"
#include "softverbs/objects/sv_verb.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

struct sv_node;
struct sv_qp;
struct sv_swqe;

typedef int (*sv_execute_func_t)(struct sv_qp *qp, struct sv_swqe *wqe);

struct sv_hooks {
    /* The device is opened. Returns 0, or -1 with errno EINVAL and a sentence
     * in the log: then the open fails. */
    int (*open)(void);
    /* The node has started; is about to stop. */
    void (*node_up)(struct sv_node *node);
    void (*node_down)(struct sv_node *node);
    /* Runs in the child of a fork: resets to the state of a new process. */
    void (*orphan)(void);

    /* Somebody rang the doorbell. */
    void (*rung)(struct sv_node *node);
    /* The service thread runs. Returns how long it may sleep, stored in
     * `pause`, or NULL: until somebody rings. */
    const struct timespec *(*tick)(struct sv_node *node,
                                   struct timespec *pause);

    /* The errno that a control verb fails with (also stored in errno), or 0. */
    int (*verb)(enum sv_verb verb);

    /* Returns the number of a new QP among its kind. */
    uint32_t (*qp_number)(enum ibv_qp_type type);
    /* A QP was added to node->qps; was removed from it. */
    void (*qp_attach)(struct sv_qp *qp);
    void (*qp_detach)(struct sv_qp *qp);

    /* The WR of a list that the post refuses, with the errno in *ret_p; NULL:
     * none. Both need tx.lock. */
    struct ibv_send_wr *(*refuse_send)(struct sv_qp *qp, struct ibv_send_wr *wr,
                                       int *ret_p);
    struct ibv_recv_wr *(*refuse_recv)(struct sv_qp *qp, struct ibv_recv_wr *wr,
                                       int *ret_p);
    /* Executes the oldest WR. `execute` is what a connected QP does without
     * faults; the answers are the same. Needs tx.lock. */
    int (*execute)(struct sv_qp *qp, struct sv_swqe *wqe,
                   sv_execute_func_t execute);
    /* The send queue was emptied. Needs tx.lock. */
    void (*tx_reset)(struct sv_qp *qp);
    /* A message has taken a RECV. Returns 0, or the status to complete it with.
     * Needs rx_lock. */
    int (*receive)(struct sv_qp *qp);
};

extern const struct sv_hooks sv_hooks;

/* Whether a plan of faults is in force. */
extern atomic_bool sv_hooks_active;

static inline int sv_hook_verb(enum sv_verb verb)
{
    return sv_unlikely(atomic_load_explicit(&sv_hooks_active,
                                            memory_order_acquire)) ?
                   sv_hooks.verb(verb) : 0;
}

#endif
