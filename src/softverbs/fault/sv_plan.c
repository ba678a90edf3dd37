/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Three tables say what a plan may contain: the words of a key's value, the
 * kind of value of each key, and the keys of each fault. Parsing, printing and
 * complaining read them.
 */
#include "softverbs/fault/sv_plan.h"

#include <ctype.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SV_NS_PER_HOUR    3600000000000ull
#define SV_PPB            1000000000ull
#define SV_LINE_MAX       400

/* ---- words ---- */

struct sv_word {
    const char *text;
    uint64_t    value;
};

#define SV_WORD_STATUS(_name)   {#_name, IBV_WC_##_name}
#define SV_WORD_EVENT(_name)    {#_name, IBV_EVENT_##_name}
#define SV_WORD_ERRNO(_name)    {#_name, _name}

static const struct sv_word sv_words_op[] = {
    {"send", SV_OP_SEND}, {"write", SV_OP_WRITE}, {"read", SV_OP_READ},
    {"atomic", SV_OP_ATOMIC}, {NULL, 0}
};

static const struct sv_word sv_words_verb[] = {
    {"any", SV_VERB_ANY},
    {"open_device", SV_VERB_OPEN_DEVICE},
    {"query_device", SV_VERB_QUERY_DEVICE},
    {"query_port", SV_VERB_QUERY_PORT},
    {"query_gid", SV_VERB_QUERY_GID},
    {"alloc_pd", SV_VERB_ALLOC_PD},
    {"reg_mr", SV_VERB_REG_MR},
    {"create_ah", SV_VERB_CREATE_AH},
    {"create_comp_channel", SV_VERB_CREATE_COMP_CHANNEL},
    {"create_cq", SV_VERB_CREATE_CQ},
    {"resize_cq", SV_VERB_RESIZE_CQ},
    {"create_srq", SV_VERB_CREATE_SRQ},
    {"modify_srq", SV_VERB_MODIFY_SRQ},
    {"create_qp", SV_VERB_CREATE_QP},
    {"modify_qp", SV_VERB_MODIFY_QP},
    {"query_qp", SV_VERB_QUERY_QP},
    {NULL, 0}
};

static const struct sv_word sv_words_errno[] = {
    SV_WORD_ERRNO(ENOMEM), SV_WORD_ERRNO(EINVAL), SV_WORD_ERRNO(EAGAIN),
    SV_WORD_ERRNO(EBUSY), SV_WORD_ERRNO(EIO), SV_WORD_ERRNO(EFAULT),
    SV_WORD_ERRNO(EPERM), SV_WORD_ERRNO(ENODEV), SV_WORD_ERRNO(ENOSPC),
    SV_WORD_ERRNO(EOPNOTSUPP), SV_WORD_ERRNO(ETIMEDOUT), {NULL, 0}
};

static const struct sv_word sv_words_status[] = {
    SV_WORD_STATUS(LOC_LEN_ERR), SV_WORD_STATUS(LOC_QP_OP_ERR),
    SV_WORD_STATUS(LOC_EEC_OP_ERR), SV_WORD_STATUS(LOC_PROT_ERR),
    SV_WORD_STATUS(WR_FLUSH_ERR), SV_WORD_STATUS(MW_BIND_ERR),
    SV_WORD_STATUS(BAD_RESP_ERR), SV_WORD_STATUS(LOC_ACCESS_ERR),
    SV_WORD_STATUS(REM_INV_REQ_ERR), SV_WORD_STATUS(REM_ACCESS_ERR),
    SV_WORD_STATUS(REM_OP_ERR), SV_WORD_STATUS(RETRY_EXC_ERR),
    SV_WORD_STATUS(RNR_RETRY_EXC_ERR), SV_WORD_STATUS(LOC_RDD_VIOL_ERR),
    SV_WORD_STATUS(REM_INV_RD_REQ_ERR), SV_WORD_STATUS(REM_ABORT_ERR),
    SV_WORD_STATUS(INV_EECN_ERR), SV_WORD_STATUS(INV_EEC_STATE_ERR),
    SV_WORD_STATUS(FATAL_ERR), SV_WORD_STATUS(RESP_TIMEOUT_ERR),
    SV_WORD_STATUS(GENERAL_ERR), {NULL, 0}
};

/* Not WQ_FATAL: the device has no WQs. */
static const struct sv_word sv_words_event[] = {
    SV_WORD_EVENT(CQ_ERR), {"QP_FATAL", IBV_EVENT_QP_FATAL},
    SV_WORD_EVENT(QP_REQ_ERR), SV_WORD_EVENT(QP_ACCESS_ERR),
    SV_WORD_EVENT(COMM_EST), SV_WORD_EVENT(SQ_DRAINED),
    SV_WORD_EVENT(PATH_MIG), SV_WORD_EVENT(PATH_MIG_ERR),
    SV_WORD_EVENT(DEVICE_FATAL), SV_WORD_EVENT(PORT_ACTIVE),
    SV_WORD_EVENT(PORT_ERR), SV_WORD_EVENT(LID_CHANGE),
    SV_WORD_EVENT(PKEY_CHANGE), SV_WORD_EVENT(SM_CHANGE),
    SV_WORD_EVENT(SRQ_ERR), SV_WORD_EVENT(SRQ_LIMIT_REACHED),
    SV_WORD_EVENT(QP_LAST_WQE_REACHED), SV_WORD_EVENT(CLIENT_REREGISTER),
    SV_WORD_EVENT(GID_CHANGE), {NULL, 0}
};

static const struct sv_word sv_words_direction[] = {
    {"send", SV_DIRECTION_SEND}, {"recv", SV_DIRECTION_RECV}, {NULL, 0}
};

static const struct sv_word sv_words_side[] = {
    {"local", SV_SIDE_LOCAL}, {"remote", SV_SIDE_REMOTE},
    {"both", SV_SIDE_LOCAL | SV_SIDE_REMOTE}, {NULL, 0}
};

static const struct sv_word sv_words_yes[] = {
    {"no", 0}, {"yes", 1}, {NULL, 0}
};

/* ---- keys ---- */

enum sv_value {
    SV_VALUE_WORD,
    SV_VALUE_NUMBER,
    SV_VALUE_TIME,
    SV_VALUE_PART,   /* of 1, as a decimal fraction */
    SV_VALUE_QP,
    SV_VALUE_EVERY   /* number or time */
};

struct sv_key_info {
    const char           *name;
    enum sv_value         type;
    const struct sv_word *words;
    uint64_t              min; /* of a number */
    uint64_t              max;
    uint64_t              preset; /* what it is if not given */
};

static const struct sv_key_info sv_keys[SV_KEYS] = {
    [SV_KEY_PROCESS]  = {"process", SV_VALUE_NUMBER, NULL, 0, 1000000, 0},
    [SV_KEY_QP]       = {"qp", SV_VALUE_QP, NULL, 0, 0, 0},
    [SV_KEY_OP]       = {"op", SV_VALUE_WORD, sv_words_op, 0, 0, 0},
    [SV_KEY_NAME]     = {"name", SV_VALUE_WORD, sv_words_verb, 0, 0, 0},
    [SV_KEY_POSITION] = {"position", SV_VALUE_NUMBER, NULL, 0, 16384, 0},
    [SV_KEY_ERRNO]    = {"errno", SV_VALUE_WORD, sv_words_errno, 0, 0, ENOMEM},
    [SV_KEY_STATUS]   = {"status", SV_VALUE_WORD, sv_words_status, 0, 0, 0},
    [SV_KEY_QUEUE]    = {"queue", SV_VALUE_WORD, sv_words_direction, 0, 0,
                         SV_DIRECTION_SEND},
    [SV_KEY_TIME]     = {"time", SV_VALUE_TIME, NULL, 0, 0, 0},
    [SV_KEY_BY]       = {"by", SV_VALUE_NUMBER, NULL, 1, 1000, 1},
    [SV_KEY_DOWN]     = {"down", SV_VALUE_TIME, NULL, 0, 0, 0},
    [SV_KEY_SIDE]     = {"side", SV_VALUE_WORD, sv_words_side, 0, 0,
                         SV_SIDE_LOCAL},
    [SV_KEY_EVENT]    = {"event", SV_VALUE_WORD, sv_words_yes, 0, 0, 1},
    [SV_KEY_TYPE]     = {"type", SV_VALUE_WORD, sv_words_event, 0, 0, 0},
    [SV_KEY_CQ]       = {"cq", SV_VALUE_WORD, sv_words_direction, 0, 0,
                         SV_DIRECTION_SEND},
    [SV_KEY_N]        = {"n", SV_VALUE_NUMBER, NULL, 1, 1000000000000, 1},
    [SV_KEY_EVERY]    = {"every", SV_VALUE_EVERY, NULL, 1, 1000000000000, 1},
    [SV_KEY_P]        = {"p", SV_VALUE_PART, NULL, 0, 0, SV_PPB},
    [SV_KEY_TIMES]    = {"times", SV_VALUE_NUMBER, NULL, 1, 1000000000000,
                         UINT64_MAX},
    [SV_KEY_AT]       = {"at", SV_VALUE_TIME, NULL, 0, 0, 0}
};

/* ---- faults ---- */

#define SV_BIT(_key)      (1u << SV_KEY_##_key)
#define SV_BITS_COUNTED   (SV_BIT(PROCESS) | SV_BIT(N) | SV_BIT(EVERY) | \
                           SV_BIT(P) | SV_BIT(TIMES))
#define SV_BITS_POST      (SV_BITS_COUNTED | SV_BIT(QP))
#define SV_BITS_WORK      (SV_BITS_POST | SV_BIT(OP))
#define SV_BITS_STATE     (SV_BITS_WORK | SV_BIT(AT))

struct sv_fault_info {
    const char      *name;
    uint32_t         needs;
    uint32_t         takes;
    enum sv_qp_class class; /* the only one that it can happen to */
};

static const struct sv_fault_info sv_faults[SV_FAULTS] = {
    [SV_FAULT_POST]       = {"post", 0, SV_BITS_POST | SV_BIT(POSITION) |
                             SV_BIT(ERRNO) | SV_BIT(QUEUE), SV_QP_ANY},
    [SV_FAULT_VERB]       = {"verb", SV_BIT(NAME), SV_BITS_COUNTED |
                             SV_BIT(ERRNO), SV_QP_ANY},
    [SV_FAULT_COMPLETE]   = {"complete", SV_BIT(STATUS), SV_BITS_WORK |
                             SV_BIT(QUEUE), SV_QP_ANY},
    [SV_FAULT_LOSE_ACK]   = {"lose-ack", 0, SV_BITS_WORK, SV_QP_RC},
    [SV_FAULT_DELAY]      = {"delay", SV_BIT(TIME), SV_BITS_WORK, SV_QP_ANY},
    [SV_FAULT_DROP]       = {"drop", 0, SV_BITS_POST, SV_QP_UD},
    [SV_FAULT_DUPLICATE]  = {"duplicate", 0, SV_BITS_POST, SV_QP_UD},
    [SV_FAULT_REORDER]    = {"reorder", 0, SV_BITS_POST | SV_BIT(BY),
                             SV_QP_UD},
    [SV_FAULT_LINK]       = {"link", SV_BIT(DOWN), SV_BITS_STATE, SV_QP_ANY},
    [SV_FAULT_QP_ERROR]   = {"qp-error", 0, SV_BITS_STATE | SV_BIT(SIDE) |
                             SV_BIT(EVENT), SV_QP_ANY},
    [SV_FAULT_EVENT]      = {"event", SV_BIT(TYPE), SV_BITS_STATE, SV_QP_ANY},
    [SV_FAULT_OVERRUN]    = {"overrun", 0, SV_BITS_STATE | SV_BIT(CQ),
                             SV_QP_ANY},
    [SV_FAULT_GID_CHANGE] = {"gid-change", 0, SV_BITS_STATE, SV_QP_ANY},
    [SV_FAULT_GID_MOVE]   = {"gid-move", 0, SV_BITS_STATE, SV_QP_ANY}
};

/* ---- complaining ---- */

struct sv_parser {
    struct sv_plan *plan;
    char           *why;
    unsigned        line;
    char            rule[SV_LINE_MAX]; /* as it stands in the plan */
};

/* -1 and "line 3, 'post n=x': ..." */
static int sv_plan_refuse(struct sv_parser *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int sv_plan_refuse(struct sv_parser *p, const char *format, ...)
{
    va_list ap;
    int used;

    used = snprintf(p->why, SV_WHY_BYTES, "line %u, '%.60s': ", p->line,
                    p->rule);
    va_start(ap, format);
    vsnprintf(p->why + used, SV_WHY_BYTES - used, format, ap);
    va_end(ap);
    return -1;
}

static void sv_list_add(char *list, const char *word)
{
    size_t used = strlen(list);

    snprintf(list + used, SV_WHY_BYTES - used, "%s%s", (used > 0) ? ", " : "",
             word);
}

static int sv_refuse_word(struct sv_parser *p, const struct sv_key_info *key,
                          const char *text)
{
    char list[SV_WHY_BYTES] = "";
    const struct sv_word *word;

    for (word = key->words; word->text != NULL; ++word) {
        sv_list_add(list, word->text);
    }
    return sv_plan_refuse(p, "%s= cannot be '%.40s'; it can be: %.700s",
                          key->name, text, list);
}

static int sv_refuse_fault(struct sv_parser *p, const char *text)
{
    char list[SV_WHY_BYTES] = "";
    unsigned i;

    for (i = 0; i < SV_FAULTS; ++i) {
        sv_list_add(list, sv_faults[i].name);
    }
    return sv_plan_refuse(p, "there is no fault '%.40s'; there are: %.700s",
                          text, list);
}

static int sv_refuse_key(struct sv_parser *p, const struct sv_fault_info *fault,
                         const char *text)
{
    char list[SV_WHY_BYTES] = "";
    unsigned i;

    for (i = 0; i < SV_KEYS; ++i) {
        if ((((fault->needs | fault->takes) >> i) & 1) != 0) {
            sv_list_add(list, sv_keys[i].name);
        }
    }
    return sv_plan_refuse(p, "%s has no '%.40s='; it has: %.700s", fault->name,
                          text, list);
}

/* ---- values ---- */

/* Digits only; true if there are some and they fit. */
static bool sv_read_number(const char **text, uint64_t *value_p)
{
    const char *start = *text;
    char *end;

    if (!isdigit((unsigned char)*start)) {
        return false;
    }
    errno    = 0;
    *value_p = strtoull(start, &end, 10);
    *text    = end;
    return errno == 0;
}

static bool sv_read_time(const char *text, uint64_t *ns_p)
{
    static const struct sv_word units[] = {
        {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {NULL, 0}
    };
    const struct sv_word *unit;
    uint64_t value;

    if (!sv_read_number(&text, &value)) {
        return false;
    }
    for (unit = units; unit->text != NULL; ++unit) {
        if (strcmp(text, unit->text) == 0) {
            *ns_p = value * unit->value;
            return value <= SV_NS_PER_HOUR / unit->value;
        }
    }
    return false;
}

/* "0.25", "1": above 0, at most 1, at most 9 decimals. */
static bool sv_read_part(const char *text, uint64_t *ppb_p)
{
    uint64_t whole, ppb, unit = SV_PPB;

    if (!sv_read_number(&text, &whole) || (whole > 1)) {
        return false;
    }

    ppb = whole * SV_PPB;
    if (*text == '.') {
        for (++text; isdigit((unsigned char)*text) && (unit > 1); ++text) {
            unit /= 10;
            ppb  += (*text - '0') * unit;
        }
    }
    *ppb_p = ppb;
    return (*text == '\0') && (ppb > 0) && (ppb <= SV_PPB);
}

/* "rc", "ud", "rc.0": class << 32 | number + 1, the latter 0 for all. */
static bool sv_read_qp(const char *text, uint64_t *value_p)
{
    uint64_t class, number = 0;

    class = (strncmp(text, "rc", 2) == 0) ? SV_QP_RC :
            (strncmp(text, "ud", 2) == 0) ? SV_QP_UD : SV_QP_ANY;
    if (class == SV_QP_ANY) {
        return false;
    }

    text += 2;
    if (*text == '.') {
        ++text;
        if (!sv_read_number(&text, &number) || (number > 1000000000)) {
            return false;
        }
        ++number;
    }
    *value_p = (class << 32) | number;
    return *text == '\0';
}

static bool sv_read_word(const char *text, const struct sv_word *words,
                         uint64_t *value_p)
{
    for (; words->text != NULL; ++words) {
        if (strcmp(text, words->text) == 0) {
            *value_p = words->value;
            return true;
        }
    }
    return false;
}

static int sv_parse_number(struct sv_parser *p, const struct sv_key_info *key,
                           const char *text, uint64_t *value_p)
{
    const char *end = text;

    if (!sv_read_number(&end, value_p) || (*end != '\0') ||
        (*value_p < key->min) || (*value_p > key->max)) {
        return sv_plan_refuse(p, "%s= wants a whole number from %llu to %llu, "
                              "not '%.40s'", key->name,
                              (unsigned long long)key->min,
                              (unsigned long long)key->max, text);
    }
    return 0;
}

static int sv_parse_time(struct sv_parser *p, const struct sv_key_info *key,
                         const char *text, uint64_t *value_p)
{
    if (!sv_read_time(text, value_p)) {
        return sv_plan_refuse(p, "%s= wants a whole number with us, ms or s, "
                              "at most an hour, not '%.40s'", key->name, text);
    }
    return 0;
}

static int sv_parse_value(struct sv_parser *p, enum sv_key id, const char *text,
                          struct sv_rule *rule)
{
    const struct sv_key_info *key = &sv_keys[id];
    uint64_t *value_p             = &rule->value[id];

    switch (key->type) {
    case SV_VALUE_WORD:
        return sv_read_word(text, key->words, value_p) ?
                       0 : sv_refuse_word(p, key, text);
    case SV_VALUE_NUMBER:
        return sv_parse_number(p, key, text, value_p);
    case SV_VALUE_TIME:
        return sv_parse_time(p, key, text, value_p);
    case SV_VALUE_PART:
        return sv_read_part(text, value_p) ? 0 :
               sv_plan_refuse(p, "p= wants a number above 0 and at most 1, "
                              "such as 0.001, not '%.40s'", text);
    case SV_VALUE_QP:
        return sv_read_qp(text, value_p) ? 0 :
               sv_plan_refuse(p, "qp= wants rc, ud, or one of them with a "
                              "number, such as rc.0, not '%.40s'", text);
    default:
        /* every= goes with at= or without, whichever comes first */
        return 0;
    }
}

/* ---- a rule ---- */

static int sv_parse_pair(struct sv_parser *p, char *pair, struct sv_rule *rule,
                         const char **every_p)
{
    const struct sv_fault_info *fault = &sv_faults[rule->fault];
    char *value                       = strchr(pair, '=');
    unsigned key;

    if (value == NULL) {
        return sv_plan_refuse(p, "'%.40s' is not KEY=VALUE", pair);
    }

    *value++ = '\0';
    for (key = 0; key < SV_KEYS; ++key) {
        if (strcmp(pair, sv_keys[key].name) == 0) {
            break;
        }
    }
    if ((key == SV_KEYS) ||
        ((((fault->needs | fault->takes) >> key) & 1) == 0)) {
        return sv_refuse_key(p, fault, pair);
    }
    if (sv_rule_has(rule, key)) {
        return sv_plan_refuse(p, "%s= is there twice", pair);
    }

    rule->given |= 1u << key;
    if (key == SV_KEY_EVERY) {
        *every_p = value;
    }
    return sv_parse_value(p, key, value, rule);
}

static int sv_parse_every(struct sv_parser *p, struct sv_rule *rule,
                          const char *every)
{
    const struct sv_key_info *key = &sv_keys[SV_KEY_EVERY];
    uint64_t *value_p             = &rule->value[SV_KEY_EVERY];

    if (every == NULL) {
        return 0;
    }
    if (!sv_rule_has(rule, SV_KEY_AT)) {
        return sv_parse_number(p, key, every, value_p);
    }
    if (sv_parse_time(p, key, every, value_p) != 0) {
        return -1;
    }
    return (*value_p >= 1000000) ? 0 :
           sv_plan_refuse(p, "every= with at= must be 1ms at least");
}

/* Checks what single values cannot tell. */
static int sv_check_rule(struct sv_parser *p, const struct sv_rule *rule)
{
    const struct sv_fault_info *fault = &sv_faults[rule->fault];
    enum sv_qp_class class            = rule->value[SV_KEY_QP] >> 32;
    bool at                           = sv_rule_has(rule, SV_KEY_AT);
    unsigned key;

    for (key = 0; key < SV_KEYS; ++key) {
        if (((fault->needs >> key) & 1) && !sv_rule_has(rule, key)) {
            return sv_plan_refuse(p, "%s needs %s=", fault->name,
                                  sv_keys[key].name);
        }
    }
    if (at && (sv_rule_has(rule, SV_KEY_N) || sv_rule_has(rule, SV_KEY_OP))) {
        return sv_plan_refuse(p, "at= is a time: it does not go with n= or "
                              "op=, which count requests");
    }
    if ((fault->class != SV_QP_ANY) && (class != SV_QP_ANY) &&
        (class != fault->class)) {
        return sv_plan_refuse(p, "%s can happen on qp=%s only", fault->name,
                              (fault->class == SV_QP_RC) ? "rc" : "ud");
    }
    if ((rule->fault == SV_FAULT_QP_ERROR) && (class == SV_QP_UD) &&
        (rule->value[SV_KEY_SIDE] != SV_SIDE_LOCAL)) {
        return sv_plan_refuse(p, "qp=ud has no other side");
    }
    if ((rule->value[SV_KEY_QUEUE] == SV_DIRECTION_RECV) &&
        sv_rule_has(rule, SV_KEY_OP)) {
        return sv_plan_refuse(p, "op= is for queue=send");
    }
    return 0;
}

static int sv_parse_rule(struct sv_parser *p, const char *name, char *rest)
{
    struct sv_plan *plan = p->plan;
    struct sv_rule *rule = &plan->rules[plan->num_rules];
    const char *every    = NULL;
    unsigned i;
    char *pair;

    if (plan->num_rules == SV_PLAN_RULES) {
        return sv_plan_refuse(p, "a plan has at most %d rules", SV_PLAN_RULES);
    }

    memset(rule, 0, sizeof(*rule));
    rule->line = p->line;
    for (i = 0; (i < SV_FAULTS) && (strcmp(name, sv_faults[i].name) != 0);
         ++i) {
    }
    if (i == SV_FAULTS) {
        return sv_refuse_fault(p, name);
    }

    rule->fault = i;
    for (i = 0; i < SV_KEYS; ++i) {
        rule->value[i] = sv_keys[i].preset;
    }
    while ((pair = strtok_r(NULL, " \t\r", &rest)) != NULL) {
        if (sv_parse_pair(p, pair, rule, &every) != 0) {
            return -1;
        }
    }
    if ((sv_parse_every(p, rule, every) != 0) ||
        (sv_check_rule(p, rule) != 0)) {
        return -1;
    }

    ++plan->num_rules;
    return 0;
}

static int sv_parse_seed(struct sv_parser *p, char *rest, bool *seeded)
{
    const char *text = strtok_r(NULL, " \t\r", &rest);
    const char *end  = text;

    if (*seeded || (p->plan->num_rules > 0)) {
        return sv_plan_refuse(p, "the seed is given once, before all rules");
    }
    if ((text == NULL) || !sv_read_number(&end, &p->plan->seed) ||
        (*end != '\0') || (strtok_r(NULL, " \t\r", &rest) != NULL)) {
        return sv_plan_refuse(p, "seed wants one whole number");
    }
    *seeded = true;
    return 0;
}

/* ---- the plan ---- */

/* One line, or what stands between semicolons. */
static int sv_parse_line(struct sv_parser *p, const char *text, size_t length,
                         bool *seeded)
{
    char line[SV_LINE_MAX];
    size_t i;
    char *word, *rest;

    while ((length > 0) && isspace((unsigned char)*text)) {
        ++text;
        --length;
    }
    snprintf(p->rule, sizeof(p->rule), "%.*s",
             (int)((length < sizeof(line)) ? length : sizeof(line) - 1), text);
    if (length >= sizeof(line)) {
        return sv_plan_refuse(p, "a rule has at most %d characters",
                              SV_LINE_MAX - 1);
    }
    for (i = 0; i < length; ++i) {
        if ((text[i] != '\t') && (text[i] != '\r') &&
            ((text[i] < ' ') || (text[i] > '~'))) {
            p->rule[i] = '\0';
            return sv_plan_refuse(p, "a byte 0x%02x follows, which is no text",
                                  (unsigned char)text[i]);
        }
    }

    memcpy(line, p->rule, length);
    line[length] = '\0';
    word         = strtok_r(line, " \t\r", &rest);
    if (word == NULL) {
        return 0;
    }
    if (strcmp(word, "seed") == 0) {
        return sv_parse_seed(p, rest, seeded);
    }
    return sv_parse_rule(p, word, rest);
}

int sv_plan_parse(struct sv_plan *plan, const char *text, char *why)
{
    struct sv_parser p = {.plan = plan, .why = why, .line = 1};
    bool seeded        = false;
    size_t length;

    memset(plan, 0, sizeof(*plan));
    plan->seed = 1;
    if (strlen(text) >= SV_PLAN_BYTES) {
        snprintf(why, SV_WHY_BYTES, "the plan is longer than %d bytes",
                 SV_PLAN_BYTES - 1);
        return -1;
    }

    for (; *text != '\0'; ++text) {
        length = strcspn(text, ";#\n");
        if (sv_parse_line(&p, text, length, &seeded) != 0) {
            return -1;
        }
        text += length;
        if (*text == '#') {
            text += strcspn(text, "\n");
        }
        p.line += (*text == '\n');
        if (*text == '\0') {
            break;
        }
    }

    if (plan->num_rules == 0) {
        snprintf(why, SV_WHY_BYTES, "the plan has no rule");
        return -1;
    }
    return 0;
}

/* ---- printing ---- */

const char *sv_key_word(enum sv_key key, uint64_t value)
{
    const struct sv_word *word;

    for (word = sv_keys[key].words; word->text != NULL; ++word) {
        if (word->value == value) {
            return word->text;
        }
    }
    return "?";
}

static void sv_print_time(char *text, size_t size, uint64_t ns)
{
    if ((ns % 1000000) != 0) {
        snprintf(text, size, "%lluus", (unsigned long long)(ns / 1000));
    } else {
        snprintf(text, size, "%llums", (unsigned long long)(ns / 1000000));
    }
}

static void sv_print_part(char *text, size_t size, uint64_t ppb)
{
    int used = snprintf(text, size, "%u.%09u", (unsigned)(ppb / SV_PPB),
                        (unsigned)(ppb % SV_PPB));

    while (text[used - 1] == '0') {
        text[--used] = '\0';
    }
    if (text[used - 1] == '.') {
        text[used - 1] = '\0';
    }
}

static void sv_print_value(const struct sv_rule *rule, enum sv_key key,
                           char *text, size_t size)
{
    uint64_t value     = rule->value[key];
    enum sv_value type = sv_keys[key].type;

    if (type == SV_VALUE_EVERY) {
        type = sv_rule_has(rule, SV_KEY_AT) ? SV_VALUE_TIME : SV_VALUE_NUMBER;
    }
    switch (type) {
    case SV_VALUE_WORD:
        snprintf(text, size, "%s", sv_key_word(key, value));
        break;
    case SV_VALUE_TIME:
        sv_print_time(text, size, value);
        break;
    case SV_VALUE_PART:
        sv_print_part(text, size, value);
        break;
    case SV_VALUE_QP:
        snprintf(text, size, "%s", ((value >> 32) == SV_QP_RC) ? "rc" : "ud");
        if ((uint32_t)value != 0) {
            snprintf(text + 2, size - 2, ".%u", (uint32_t)value - 1);
        }
        break;
    default:
        snprintf(text, size, "%llu", (unsigned long long)value);
        break;
    }
}

void sv_rule_print(const struct sv_rule *rule, char *text)
{
    char value[64];
    unsigned key;
    int used;

    used = snprintf(text, SV_WHY_BYTES, "%s", sv_faults[rule->fault].name);
    for (key = 0; key < SV_KEYS; ++key) {
        if (sv_rule_has(rule, key)) {
            sv_print_value(rule, key, value, sizeof(value));
            used += snprintf(text + used, SV_WHY_BYTES - used, " %s=%s",
                             sv_keys[key].name, value);
        }
    }
}

/* ---- deciding ---- */

bool sv_rule_is_for(const struct sv_rule *rule, uint32_t process)
{
    return !sv_rule_has(rule, SV_KEY_PROCESS) ||
           (rule->value[SV_KEY_PROCESS] == process);
}

bool sv_rule_is_for_qp(const struct sv_rule *rule, enum sv_qp_class class,
                       uint32_t number)
{
    enum sv_qp_class fault_class = sv_faults[rule->fault].class;
    uint64_t qp                  = rule->value[SV_KEY_QP];

    return ((fault_class == SV_QP_ANY) || (fault_class == class)) &&
           ((qp >> 32 == SV_QP_ANY) || (qp >> 32 == class)) &&
           (((uint32_t)qp == 0) || ((uint32_t)qp == number + 1));
}

bool sv_rule_is_for_op(const struct sv_rule *rule, enum sv_op op)
{
    return !sv_rule_has(rule, SV_KEY_OP) || (rule->value[SV_KEY_OP] == op);
}

/* The finaliser of splitmix64: every bit of the input affects all bits of the
 * output. */
static uint64_t sv_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x  = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x  = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

static uint64_t sv_draw_ppb(uint64_t seed, unsigned rule, uint32_t process,
                            uint64_t object, uint64_t n)
{
    uint64_t x;

    x = sv_mix(seed);
    x = sv_mix(x ^ (((uint64_t)rule << 32) | process));
    x = sv_mix(x ^ object);
    x = sv_mix(x ^ n);
    return (uint64_t)(((unsigned __int128)x * SV_PPB) >> 64);
}

bool sv_rule_fires(const struct sv_plan *plan, unsigned rule, uint32_t process,
                   uint64_t object, uint64_t n)
{
    const struct sv_rule *r = &plan->rules[rule];
    uint64_t first          = r->value[SV_KEY_N];
    bool every              = sv_rule_has(r, SV_KEY_EVERY) &&
                              !sv_rule_has(r, SV_KEY_AT);

    if (n < first) {
        return false;
    }
    if (every && ((n - first) % r->value[SV_KEY_EVERY] != 0)) {
        return false;
    }
    if (!sv_rule_has(r, SV_KEY_P)) {
        return every || !sv_rule_has(r, SV_KEY_N) || (n == first);
    }
    return sv_draw_ppb(plan->seed, rule, process, object, n) <
           r->value[SV_KEY_P];
}
