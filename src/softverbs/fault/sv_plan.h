/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plan of faults: its text, and its decisions. Pure: no device, no clock, no
 * memory but the caller's.
 *
 * Whether a rule fires is a function of five things: the seed, the process, the
 * rule, the object (a QP, a verb, the process itself), and the number of
 * opportunities that the object has had for that rule. There is no random
 * state. So the decisions for one QP do not depend on what other QPs do.
 *
 * docs/faults.md describes the text.
 */
#ifndef SV_PLAN_H
#define SV_PLAN_H

#include "softverbs/objects/sv_verb.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SV_PLAN_RULES = 64,
    SV_PLAN_BYTES = 8000, /* of a plan's text, with its end */
    SV_WHY_BYTES  = 1024  /* a sentence about a plan, or a rule as text */
};

enum sv_fault {
    SV_FAULT_POST,
    SV_FAULT_VERB,
    SV_FAULT_COMPLETE,
    SV_FAULT_LOSE_ACK,
    SV_FAULT_DELAY,
    SV_FAULT_DROP,
    SV_FAULT_DUPLICATE,
    SV_FAULT_REORDER,
    SV_FAULT_LINK,
    SV_FAULT_QP_ERROR,
    SV_FAULT_EVENT,
    SV_FAULT_OVERRUN,
    SV_FAULT_GID_CHANGE,
    SV_FAULT_GID_MOVE,
    SV_FAULTS
};

enum sv_key {
    SV_KEY_PROCESS,
    SV_KEY_QP,
    SV_KEY_OP,
    SV_KEY_NAME,     /* enum sv_verb */
    SV_KEY_POSITION,
    SV_KEY_ERRNO,
    SV_KEY_STATUS,   /* enum ibv_wc_status */
    SV_KEY_QUEUE,    /* enum sv_direction */
    SV_KEY_TIME,     /* ns, as all times */
    SV_KEY_BY,
    SV_KEY_DOWN,
    SV_KEY_SIDE,     /* enum sv_side, as bits */
    SV_KEY_EVENT,    /* 0 or 1 */
    SV_KEY_TYPE,     /* enum ibv_event_type */
    SV_KEY_CQ,       /* enum sv_direction */
    SV_KEY_N,
    SV_KEY_EVERY,    /* opportunities, or ns with SV_KEY_AT */
    SV_KEY_P,        /* in units of 1e-9 */
    SV_KEY_TIMES,
    SV_KEY_AT,
    SV_KEYS
};

enum sv_op {
    SV_OP_SEND,
    SV_OP_WRITE,
    SV_OP_READ,
    SV_OP_ATOMIC
};

enum sv_direction {
    SV_DIRECTION_SEND,
    SV_DIRECTION_RECV
};

enum sv_side {
    SV_SIDE_LOCAL  = 1,
    SV_SIDE_REMOTE = 2
};

/* The types of QP that rules tell apart. */
enum sv_qp_class {
    SV_QP_ANY,
    SV_QP_RC,
    SV_QP_UD
};

struct sv_rule {
    enum sv_fault fault;
    unsigned      line;
    uint32_t      given; /* a bit for each enum sv_key */
    uint64_t      value[SV_KEYS]; /* given, or the default */
};

struct sv_plan {
    uint64_t       seed;
    unsigned       num_rules;
    struct sv_rule rules[SV_PLAN_RULES];
};

static inline bool sv_rule_has(const struct sv_rule *rule, enum sv_key key)
{
    return ((rule->given >> key) & 1) != 0;
}

/* 0, or -1 and a sentence of at most SV_WHY_BYTES in `why`. */
int sv_plan_parse(struct sv_plan *plan, const char *text, char *why);

/* Prints the rule as one line of a plan, without the line's end. Parsing it
 * again gives the same rule. `text` has SV_WHY_BYTES. */
void sv_rule_print(const struct sv_rule *rule, char *text);

/* Whether the rule applies to this process; to the QP of that class with that
 * number; to that operation. */
bool sv_rule_is_for(const struct sv_rule *rule, uint32_t process);
bool sv_rule_is_for_qp(const struct sv_rule *rule, enum sv_qp_class class,
                       uint32_t number);
bool sv_rule_is_for_op(const struct sv_rule *rule, enum sv_op op);

/* Whether the rule fires at an object's n-th opportunity, counted from 1. The
 * caller keeps SV_KEY_TIMES. */
bool sv_rule_fires(const struct sv_plan *plan, unsigned rule, uint32_t process,
                   uint64_t object, uint64_t n);

/* The word for a value, as in a plan, if the key has words. */
const char *sv_key_word(enum sv_key key, uint64_t value);

#endif
