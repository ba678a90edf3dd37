/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hooks: where the device asks whether a fault is wanted here.
 *
 * The core defines an empty table and calls what somebody has filled in; a hook
 * that is NULL does nothing. The room fault/ fills the table, by defining it a
 * second time (the core's definition is weak). Without that room the device is
 * the same, but for the faults.
 *
 * The paths of messages look at two things only: a QP's `faults`, which is NULL
 * unless a plan is in force, and sv_hooks_active for the control verbs and for
 * RECVs. Hooks of a QP are called only if its `faults` is not NULL.
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
    /* The device is opened. -1 and EINVAL, after a sentence: it must not be. */
    int (*open)(void);
    /* The node is there; is going. */
    void (*node_up)(struct sv_node *node);
    void (*node_down)(struct sv_node *node);
    /* In the child of a fork: as in a new process. */
    void (*orphan)(void);

    /* The service thread was rung. */
    void (*rung)(struct sv_node *node);
    /* The service thread looks around. For how long it may sleep, in `pause`,
     * or NULL: until it is rung. */
    const struct timespec *(*tick)(struct sv_node *node,
                                   struct timespec *pause);

    /* 0, or the errno, also in errno, that a control verb ends with. */
    int (*verb)(enum sv_verb verb);

    /* The number of a new QP among its kind. */
    uint32_t (*qp_number)(enum ibv_qp_type type);
    /* A QP is in node->qps; is out of it. */
    void (*qp_attach)(struct sv_qp *qp);
    void (*qp_detach)(struct sv_qp *qp);

    /* The WR of a list that is refused, and with what errno; NULL: none. Both
     * need tx.lock. */
    struct ibv_send_wr *(*refuse_send)(struct sv_qp *qp, struct ibv_send_wr *wr,
                                       int *ret_p);
    struct ibv_recv_wr *(*refuse_recv)(struct sv_qp *qp, struct ibv_recv_wr *wr,
                                       int *ret_p);
    /* Executes the oldest WR, with `execute` for what a connected QP does by
     * itself, and answers as that does. Needs tx.lock. */
    int (*execute)(struct sv_qp *qp, struct sv_swqe *wqe,
                   sv_execute_func_t execute);
    /* The send queue was emptied. Needs tx.lock. */
    void (*tx_reset)(struct sv_qp *qp);
    /* A message has its RECV: 0, or the status with which that completes. Needs
     * rx_lock. */
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
