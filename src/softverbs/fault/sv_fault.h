/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults on purpose: they fill the hooks of the device (objects/sv_hooks.h).
 *
 * Without a plan a QP's `faults` is NULL. With a plan each QP has its own
 * counters, so that the decisions for a QP depend on its own history alone.
 *
 * One plan is in force in a process. It comes from the environment when the
 * device is first opened, or from the command `daqiri faults` while the program
 * runs (sv_control.c). The QPs share it and count references: the last QP that
 * releases a replaced plan frees it.
 *
 * Locks: take sv_fault_mutex before sv_node.objects_lock, and never with a lock
 * of a QP or CQ held. A fault that is injected under such locks takes only the
 * innermost ones: the log's lock, the list of contexts, async.
 */
#ifndef SV_FAULT_H
#define SV_FAULT_H

#include "softverbs/base/sv_atomic.h"
#include "softverbs/fault/sv_plan.h"
#include "softverbs/objects/sv_hooks.h"
#include "softverbs/objects/sv_qp.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct sv_node;

/* A plan in force. */
struct sv_faults {
    _Atomic uint32_t refs;
    uint32_t         process;   /* which process of the job we are */
    uint64_t         begun_ns;
    struct sv_plan   plan;
    _Atomic uint64_t fired[SV_PLAN_RULES];
    uint64_t         seen[SV_PLAN_RULES]; /* of verbs and of times; under
                                           * sv_fault_mutex */
};

/* What a plan decided for the oldest WR of a QP. */
struct sv_decision {
    bool     is_drawn;
    uint32_t position;    /* of that WR in its send queue */
    bool     kill;        /* the QP goes to ERR */
    uint32_t status;      /* enum ibv_wc_status to complete with, or 0 */
    bool     lose_ack;
    bool     drop;
    bool     hold;        /* let `hold_by` others overtake it */
    uint32_t hold_by;
    uint32_t copies;      /* still to be sent */
    uint64_t delay_until; /* 0: not delayed */
};

/* A QP's part. tx.lock guards it; rx_lock guards what belongs to receiving.
 * Exchanging it takes both locks. */
struct sv_fault_qp {
    struct sv_faults  *faults;
    struct sv_decision decision;
    struct sv_swqe    *held;       /* a datagram that others overtake */
    uint32_t           held_by;    /* how many still have to */
    uint64_t           held_until; /* it goes then in any case */
    uint64_t           count[SV_PLAN_RULES]; /* opportunities so far */
};

/* ---- what fills the hooks (sv_fault_hooks.c; objects/sv_hooks.h tells what
 * each of them does) ---- */

int sv_fault_open(void);
void sv_fault_node_up(struct sv_node *node);
void sv_fault_node_down(struct sv_node *node);
void sv_fault_orphan(void);
void sv_control_answer(struct sv_node *node);
const struct timespec *sv_fault_tick(struct sv_node *node,
                                     struct timespec *pause);
int sv_fault_verb(enum sv_verb verb);
uint32_t sv_fault_qp_number(enum ibv_qp_type type);
void sv_fault_qp_attach(struct sv_qp *qp);
void sv_fault_qp_detach(struct sv_qp *qp);
struct ibv_send_wr *sv_fault_refuse_send(struct sv_qp *qp,
                                         struct ibv_send_wr *wr, int *ret_p);
struct ibv_recv_wr *sv_fault_refuse_recv(struct sv_qp *qp,
                                         struct ibv_recv_wr *wr, int *ret_p);
int sv_fault_execute(struct sv_qp *qp, struct sv_swqe *wqe,
                     sv_execute_func_t execute);
void sv_fault_tx_reset(struct sv_qp *qp);
int sv_fault_receive(struct sv_qp *qp);

/* ---- between sv_fault*.c ---- */

/* The object of a decision: part of the random draw and of the log. */
uint64_t sv_fault_object(const struct sv_qp *qp);
enum sv_qp_class sv_fault_class(const struct sv_qp *qp);

/* Decides, counts and logs. where: "qp=rc.0" and the like. */
bool sv_fault_decide(struct sv_faults *faults, unsigned rule, uint64_t object,
                     uint64_t n, const char *where);

/* Writes "qp=rc.0"; `text` has 32 bytes. */
void sv_fault_where(const struct sv_qp *qp, char *text);

/* Takes sv_fault_mutex and returns the plan in force, or NULL; releases the
 * mutex. */
struct sv_faults *sv_fault_lock(void);
void sv_fault_unlock(void);

/* Makes a plan that is not in force yet. NULL and a sentence in `why`. */
struct sv_faults *sv_faults_new(const char *text, uint32_t process, char *why);

/* The environment. */
#define SV_FAULT_ENV_PLAN       "SOFTVERBS_FAULTS"
#define SV_FAULT_ENV_LOG        "SOFTVERBS_FAULTS_LOG"
#define SV_FAULT_ENV_PROCESS    "SOFTVERBS_PROCESS"
int sv_fault_env_process(uint32_t *process_p);
struct sv_faults *sv_fault_env_plan(const char *plan, uint32_t process);

/* The log. %d in the pattern stands for the process. */
int sv_fault_log_open(const char *pattern, uint32_t process);
void sv_fault_log_decision(const struct sv_faults *faults, unsigned rule,
                           const char *where, uint64_t n);
void sv_fault_log_plan(const struct sv_faults *faults);
uint32_t sv_fault_log_index(void);
void sv_fault_log_orphan(void);

/* All QPs in the order of their numbers, which is the same in the next run. The
 * caller frees the array. Needs objects_lock. */
struct sv_qp **sv_fault_sorted_qps(struct sv_node *node, unsigned *count_p);

/* Faults that need no WR. The caller may hold any locks of the QP. */
void sv_fault_link_down(struct sv_node *node, uint64_t ns);
void sv_fault_link_up(struct sv_node *node);
/* Resets the link for a new node, whose link is up. */
void sv_fault_link_reset(void);
void sv_fault_gid_change(void);
void sv_fault_gid_move(void);
void sv_fault_tick_orphan(void);

/* Injects a rule that changes the state of a QP or its objects. Killing the QP
 * here depends on the caller's locks, so it is left to the caller: true asks
 * for that. Needs tx.lock. */
bool sv_fault_inject(struct sv_qp *qp, const struct sv_rule *rule);
/* Whether the rule concerns the process, and not QPs. */
bool sv_fault_is_global(const struct sv_rule *rule);
void sv_fault_inject_global(struct sv_node *node, const struct sv_rule *rule);

/* Sends the datagram that is held back if it has waited long enough. True: one
 * still waits. Needs tx.lock. */
bool sv_fault_release_held(struct sv_qp *qp, uint64_t now);
/* Drops the datagram that is held back. Needs tx.lock, unless nobody else knows
 * the QP. */
void sv_fault_drop_held(struct sv_fault_qp *f);

/* How many QPs of this process hold a datagram back. */
extern _Atomic uint32_t sv_fault_num_held;

/* Replaces the plan; text NULL: by none. 0, or -1 and a sentence in `why`
 * (SV_WHY_BYTES). */
int sv_fault_set_plan(const char *text, char *why);
/* Writes the plan in force, and what it has done so far, as text. */
void sv_fault_show(char *text, size_t size);

#endif
