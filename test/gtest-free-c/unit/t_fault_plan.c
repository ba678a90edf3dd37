/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plan of faults of softverbs: every line that must be refused and what is
 * said of it, what is printed of those that are not, and the decisions, against
 * a model that follows docs/faults.md word by word.
 */
#include <infiniband/verbs.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softverbs/fault/sv_plan.h"
#include "t.h"

static struct sv_plan plan;
static char why[SV_WHY_BYTES];

static void parses(const char *text)
{
    ck_assert_msg(sv_plan_parse(&plan, text, why) == 0, "'%s' is refused: %s",
                  text, why);
}

/* ---- what is refused ---- */

struct bad {
    const char *plan;
    const char *says;
};

static const struct bad bad_plans[] = {
    {"", "the plan has no rule"},
    {"# nothing\n\n  # but comments", "the plan has no rule"},
    {"seed 1", "the plan has no rule"},
    {"seed", "line 1, 'seed': seed wants one whole number"},
    {"seed x", "line 1, 'seed x': seed wants one whole number"},
    {"seed 1 2", "line 1, 'seed 1 2': seed wants one whole number"},
    {"seed -1", "line 1, 'seed -1': seed wants one whole number"},
    {"seed 99999999999999999999", "seed wants one whole number"},
    {"seed 1\nseed 2", "line 2, 'seed 2': the seed is given once, before all "
                       "rules"},
    {"drop\nseed 2", "line 2, 'seed 2': the seed is given once"},
    {"explode", "line 1, 'explode': there is no fault 'explode'; there are: "
                "post, verb, complete, lose-ack, delay, drop, duplicate, "
                "reorder, link, qp-error, event, overrun, gid-change, gid-move"},
    {"n=1", "there is no fault 'n=1'"},
    {"Drop", "there is no fault 'Drop'"},
    {"drop\n\n drop now", "line 3, 'drop now': 'now' is not KEY=VALUE"},
    {"drop; drop; drop =1", "line 1, 'drop =1': drop has no '='; it has: "
                            "process, qp, n, every, p, times"},
    {"drop status=FATAL_ERR", "drop has no 'status='; it has: process, qp, n, "
                              "every, p, times"},
    {"drop when=3", "drop has no 'when='"},
    {"drop n=1 n=2", "n= is there twice"},
    {"drop every=2 every=2", "every= is there twice"},
    {"drop n=", "n= wants a whole number from 1 to 1000000000000, not ''"},
    {"drop n=0", "n= wants a whole number from 1"},
    {"drop n=-1", "n= wants a whole number from 1"},
    {"drop n=+1", "n= wants a whole number from 1"},
    {"drop n=1x", "not '1x'"},
    {"drop n=0x10", "not '0x10'"},
    {"drop n=1000000000001", "n= wants a whole number"},
    {"drop n=99999999999999999999999", "n= wants a whole number"},
    {"drop times=0", "times= wants a whole number from 1"},
    {"drop process=1000001", "process= wants a whole number from 0 to 1000000"},
    {"drop every=0", "every= wants a whole number from 1"},
    {"drop every=5ms", "every= wants a whole number from 1"},
    {"drop p=0", "p= wants a number above 0 and at most 1"},
    {"drop p=0.0000000001", "p= wants a number above 0"},
    {"drop p=1.000000001", "p= wants a number above 0 and at most 1"},
    {"drop p=2", "p= wants a number above 0 and at most 1"},
    {"drop p=.5", "p= wants a number above 0"},
    {"drop p=0,5", "p= wants a number above 0"},
    {"drop p=1e-3", "p= wants a number above 0"},
    {"drop qp=rc", "drop can happen on qp=ud only"},
    {"duplicate qp=rc.1", "duplicate can happen on qp=ud only"},
    {"reorder qp=rc", "reorder can happen on qp=ud only"},
    {"lose-ack qp=ud", "lose-ack can happen on qp=rc only"},
    {"lose-ack qp=uc", "qp= wants rc, ud, or one of them with a number, such "
                       "as rc.0, not 'uc'"},
    {"lose-ack qp=rc.", "qp= wants rc, ud"},
    {"lose-ack qp=rc.x", "qp= wants rc, ud"},
    {"lose-ack qp=rc0", "qp= wants rc, ud"},
    {"lose-ack qp=rc.99999999999", "qp= wants rc, ud"},
    {"lose-ack qp=", "qp= wants rc, ud"},
    {"lose-ack at=1s", "lose-ack has no 'at='"},
    {"lose-ack op=recv", "op= cannot be 'recv'; it can be: send, write, read, "
                         "atomic"},
    {"reorder by=0", "by= wants a whole number from 1 to 1000"},
    {"reorder by=1001", "by= wants a whole number from 1 to 1000"},
    {"post position=16385", "position= wants a whole number from 0 to 16384"},
    {"post errno=12", "errno= cannot be '12'; it can be: ENOMEM, EINVAL, "},
    {"post op=send", "post has no 'op='"},
    {"verb", "line 1, 'verb': verb needs name="},
    {"verb errno=ENOMEM", "verb needs name="},
    {"verb name=ibv_create_qp", "name= cannot be 'ibv_create_qp'; it can be: "
                                "any, open_device, "},
    {"verb name=poll_cq", "name= cannot be 'poll_cq'"},
    {"verb name=any qp=rc", "verb has no 'qp='"},
    {"complete", "complete needs status="},
    {"complete status=SUCCESS", "status= cannot be 'SUCCESS'; it can be: "
                                "LOC_LEN_ERR, "},
    {"complete status=IBV_WC_FATAL_ERR", "status= cannot be 'IBV_WC_FATAL_"},
    {"complete status=FATAL_ERR queue=both", "queue= cannot be 'both'; it can "
                                             "be: send, recv"},
    {"complete status=FATAL_ERR queue=recv op=send", "op= is for queue=send"},
    {"delay", "delay needs time="},
    {"delay time=5", "time= wants a whole number with us, ms or s, at most an "
                     "hour, not '5'"},
    {"delay time=ms", "time= wants a whole number with us"},
    {"delay time=1.5s", "time= wants a whole number with us"},
    {"delay time=5min", "time= wants a whole number with us"},
    {"delay time=3601s", "time= wants a whole number with us"},
    {"delay time=99999999999999999999s", "time= wants a whole number with us"},
    {"link", "link needs down="},
    {"link down=", "down= wants a whole number with us"},
    {"link down=1s at=1", "at= wants a whole number with us"},
    {"link down=1s at=1s n=3", "at= is a time: it does not go with n= or op="},
    {"link down=1s at=1s op=send", "at= is a time: it does not go with n="},
    {"link down=1s at=1s every=10", "every= wants a whole number with us"},
    {"link every=10 down=1s at=1s", "every= wants a whole number with us"},
    {"link down=1s at=1s every=999us", "every= with at= must be 1ms at least"},
    {"qp-error side=mine", "side= cannot be 'mine'; it can be: local, remote, "
                           "both"},
    {"qp-error event=maybe", "event= cannot be 'maybe'; it can be: no, yes"},
    {"qp-error qp=ud side=both", "qp=ud has no other side"},
    {"qp-error qp=ud.3 side=remote", "qp=ud has no other side"},
    {"event", "event needs type="},
    {"event type=QP_ERR", "type= cannot be 'QP_ERR'; it can be: CQ_ERR, "
                          "QP_FATAL, "},
    {"event type=WQ_FATAL", "type= cannot be 'WQ_FATAL'"},
    {"overrun cq=both", "cq= cannot be 'both'; it can be: send, recv"},
    {"gid-change type=GID_CHANGE", "gid-change has no 'type='"},
    {"drop\x01", "line 1, 'drop': a byte 0x01 follows, which is no text"},
    {"drop p=0.5\xc2\xa0", "a byte 0xc2 follows, which is no text"}
};

START_TEST(test_refused)
{
    const struct bad *bad = &bad_plans[_i];

    ck_assert_msg(sv_plan_parse(&plan, bad->plan, why) == -1,
                  "'%s' is not refused", bad->plan);
    ck_assert_msg(strstr(why, bad->says) != NULL,
                  "'%s': it says '%s', not '%s'", bad->plan, why, bad->says);
    ck_assert_ptr_null(strchr(why, '\n'));
}
END_TEST

/* A line that is wrong is wrong wherever it stands. */
START_TEST(test_refused_among_good)
{
    const struct bad *bad = &bad_plans[_i];
    char text[2048], expected[32];

    if ((strncmp(bad->plan, "seed", 4) == 0) || (bad->plan[0] == '\0') ||
        (bad->plan[0] == '#') || (strpbrk(bad->plan, "\n;") != NULL)) {
        return; /* not one line of a rule */
    }
    snprintf(text, sizeof(text), "seed 7 # as always\ndrop p=0.5\n\n%s\n"
             "delay time=1ms", bad->plan);
    ck_assert_int_eq(sv_plan_parse(&plan, text, why), -1);
    snprintf(expected, sizeof(expected), "line 4, '%.4s", bad->plan);
    ck_assert_msg(strncmp(why, expected, strlen(expected)) == 0, "%s", why);
}
END_TEST

START_TEST(test_too_much)
{
    char *text = calloc(1, 3 * SV_PLAN_BYTES);
    int i;

    for (i = 0; i < SV_PLAN_RULES; ++i) {
        strcat(text, "drop\n");
    }
    parses(text);
    ck_assert_uint_eq(plan.num_rules, SV_PLAN_RULES);
    strcat(text, "drop");
    ck_assert_int_eq(sv_plan_parse(&plan, text, why), -1);
    ck_assert_str_eq(why, "line 65, 'drop': a plan has at most 64 rules");

    memset(text, ' ', 3 * SV_PLAN_BYTES - 1);
    memcpy(text, "drop\n", 5);
    text[5 + 399] = '\n';
    text[SV_PLAN_BYTES - 1] = '\0';
    ck_assert_int_eq(sv_plan_parse(&plan, text, why), 0);
    text[5 + 399] = ' ';
    memcpy(text + 4000, "drop", 4);
    ck_assert_int_eq(sv_plan_parse(&plan, text, why), -1);
    ck_assert_ptr_nonnull(strstr(why, "a rule has at most 399 characters"));

    text[SV_PLAN_BYTES - 1] = ' ';
    ck_assert_int_eq(sv_plan_parse(&plan, text, why), -1);
    ck_assert_str_eq(why, "the plan is longer than 7999 bytes");
    free(text);
}
END_TEST

/* ---- what is taken ---- */

struct good {
    const char *plan;
    const char *printed; /* NULL: as it stands */
};

static const struct good good_rules[] = {
    {"post", NULL},
    {"  post\t position=3   errno=EAGAIN ", "post position=3 errno=EAGAIN"},
    {"post\r\n", "post"},
    {"post errno=ENOMEM position=0 n=7", "post position=0 errno=ENOMEM n=7"},
    {"verb name=create_qp", NULL},
    {"verb process=3 name=any errno=EOPNOTSUPP n=12", NULL},
    {"complete status=RETRY_EXC_ERR n=100", NULL},
    {"complete qp=rc.2 op=write status=GENERAL_ERR p=0.001 times=3", NULL},
    {"complete status=LOC_PROT_ERR queue=recv", NULL},
    {"lose-ack qp=rc op=atomic every=10 n=5", "lose-ack qp=rc op=atomic n=5 "
                                              "every=10"},
    {"delay time=1s", "delay time=1000ms"},
    {"delay time=1500us", NULL},
    {"drop qp=ud.0 p=1.0", "drop qp=ud.0 p=1"},
    {"drop p=0.000000001", NULL},
    {"duplicate p=0.250", "duplicate p=0.25"},
    {"post position=1 errno=EIO queue=recv n=2", NULL},
    {"reorder by=5", NULL},
    {"link down=3600s", "link down=3600000ms"},
    {"link down=10ms every=2s at=0ms", "link down=10ms every=2000ms at=0ms"},
    {"qp-error side=both event=no at=20ms", NULL},
    {"event type=PORT_ERR # comment; and more", "event type=PORT_ERR"},
    {"overrun cq=recv n=1", NULL},
    {"gid-change at=1ms times=2", "gid-change times=2 at=1ms"},
    {"gid-move qp=rc n=4", "gid-move qp=rc n=4"}
};

START_TEST(test_taken)
{
    const struct good *good = &good_rules[_i];
    char first[SV_WHY_BYTES], second[SV_WHY_BYTES];

    parses(good->plan);
    ck_assert_uint_eq(plan.num_rules, 1);
    ck_assert_uint_eq(plan.seed, 1);
    sv_rule_print(&plan.rules[0], first);
    ck_assert_str_eq(first, (good->printed != NULL) ? good->printed :
                                                      good->plan);
    parses(first);
    sv_rule_print(&plan.rules[0], second);
    ck_assert_str_eq(first, second);
}
END_TEST

START_TEST(test_lines)
{
    parses("# a plan\nseed 18446744073709551615\n\n"
           "drop p=0.5; delay time=2ms ;;duplicate # ; lose-ack\n"
           "post position=2");
    ck_assert(plan.seed == UINT64_MAX);
    ck_assert_uint_eq(plan.num_rules, 4);
    ck_assert_int_eq(plan.rules[0].fault, SV_FAULT_DROP);
    ck_assert_uint_eq(plan.rules[0].line, 4);
    ck_assert_int_eq(plan.rules[1].fault, SV_FAULT_DELAY);
    ck_assert_uint_eq(plan.rules[1].value[SV_KEY_TIME], 2000000);
    ck_assert_int_eq(plan.rules[2].fault, SV_FAULT_DUPLICATE);
    ck_assert_int_eq(plan.rules[3].fault, SV_FAULT_POST);
    ck_assert_uint_eq(plan.rules[3].line, 5);
    ck_assert_uint_eq(plan.rules[3].value[SV_KEY_POSITION], 2);
    ck_assert_uint_eq(plan.rules[3].value[SV_KEY_ERRNO], ENOMEM);
}
END_TEST

/* Whatever bytes: refused or taken, in bounds; and what is taken can be printed
 * and read again. */
START_TEST(test_any_text)
{
    static const char *const words[] = {
        "drop", "post", "seed", "complete", "=", "n=", "1", "every=", "ms",
        " ", " ", " ", "\n", ";", "#", "qp=", "rc", ".0", "at=", "p=", "0.5",
        "status=FATAL_ERR", "link", "down=", "2s", "times=3", "\t", "\xff"
    };
    char text[512], printed[SV_WHY_BYTES];
    struct sv_plan again;
    unsigned taken = 0;
    t_rng_t rng;
    unsigned i, k;

    t_rng_init(&rng, 1);
    for (i = 0; i < 200000; ++i) {
        text[0] = '\0';
        for (k = t_rng_below(&rng, 12); k > 0; --k) {
            strcat(text, words[t_rng_below(&rng, sizeof(words) /
                                                         sizeof(words[0]))]);
        }
        memset(why, 0, sizeof(why));
        if (sv_plan_parse(&plan, text, why) != 0) {
            ck_assert_uint_gt(strlen(why), 10);
            continue;
        }
        ++taken;
        for (k = 0; k < plan.num_rules; ++k) {
            sv_rule_print(&plan.rules[k], printed);
            ck_assert_int_eq(sv_plan_parse(&again, printed, why), 0);
            ck_assert_uint_eq(again.rules[0].given, plan.rules[k].given);
            ck_assert_mem_eq(again.rules[0].value, plan.rules[k].value,
                             sizeof(again.rules[0].value));
        }
    }
    ck_assert_uint_gt(taken, 500);
}
END_TEST

/* ---- for whom ---- */

START_TEST(test_for_whom)
{
    parses("delay time=1ms\ndelay time=1ms qp=rc\ndelay time=1ms qp=ud.2\n"
           "drop\ndelay time=1ms op=read process=3");
    ck_assert(sv_rule_is_for_qp(&plan.rules[0], SV_QP_RC, 0));
    ck_assert(sv_rule_is_for_qp(&plan.rules[0], SV_QP_UD, 9));
    ck_assert(sv_rule_is_for_qp(&plan.rules[1], SV_QP_RC, 9));
    ck_assert(!sv_rule_is_for_qp(&plan.rules[1], SV_QP_UD, 0));
    ck_assert(sv_rule_is_for_qp(&plan.rules[2], SV_QP_UD, 2));
    ck_assert(!sv_rule_is_for_qp(&plan.rules[2], SV_QP_UD, 3));
    ck_assert(!sv_rule_is_for_qp(&plan.rules[2], SV_QP_RC, 2));
    ck_assert(sv_rule_is_for_qp(&plan.rules[3], SV_QP_UD, 0));
    ck_assert(!sv_rule_is_for_qp(&plan.rules[3], SV_QP_RC, 0));
    ck_assert(sv_rule_is_for(&plan.rules[0], 3));
    ck_assert(sv_rule_is_for(&plan.rules[4], 3));
    ck_assert(!sv_rule_is_for(&plan.rules[4], 0));
    ck_assert(sv_rule_is_for_op(&plan.rules[4], SV_OP_READ));
    ck_assert(!sv_rule_is_for_op(&plan.rules[4], SV_OP_SEND));
    ck_assert(sv_rule_is_for_op(&plan.rules[0], SV_OP_SEND));
}
END_TEST

/* ---- decisions ---- */

static bool fires(uint64_t n)
{
    return sv_rule_fires(&plan, 0, 0, 0, n);
}

START_TEST(test_counts)
{
    uint64_t n;

    parses("drop n=3");
    for (n = 1; n < 20; ++n) {
        ck_assert_int_eq(fires(n), n == 3);
    }
    parses("drop n=3 every=4");
    for (n = 1; n < 40; ++n) {
        ck_assert_int_eq(fires(n), (n == 3) || ((n > 3) && (n % 4 == 3)));
    }
    parses("drop every=4");
    for (n = 1; n < 40; ++n) {
        ck_assert_int_eq(fires(n), n % 4 == 1);
    }
    parses("drop");
    for (n = 1; n < 40; ++n) {
        ck_assert(fires(n));
    }
    parses("drop n=5 p=1");
    for (n = 1; n < 40; ++n) {
        ck_assert_int_eq(fires(n), n >= 5);
    }
    /* with at=, every= is a time and restricts nothing here */
    parses("gid-change at=1s every=2s");
    for (n = 1; n < 40; ++n) {
        ck_assert(fires(n));
    }
}
END_TEST

/* The steps of docs/faults.md, one by one, with a list instead of sums. The
 * draw itself is taken from a rule that has nothing but p=. */
static bool model_fires(const struct sv_rule *rule, bool drawn, uint64_t n)
{
    uint64_t at;

    if (!sv_rule_has(rule, SV_KEY_N) && !sv_rule_has(rule, SV_KEY_EVERY)) {
        return drawn;
    }
    at = sv_rule_has(rule, SV_KEY_N) ? rule->value[SV_KEY_N] : 1;
    if (!sv_rule_has(rule, SV_KEY_EVERY)) {
        return sv_rule_has(rule, SV_KEY_P) ? (n >= at) && drawn : n == at;
    }
    while (at < n) {
        at += rule->value[SV_KEY_EVERY];
    }
    return (at == n) && drawn;
}

START_TEST(test_model)
{
    char text[256], only_p[64];
    struct sv_plan drawing;
    unsigned round, fired = 0;
    uint64_t n, seed, object;
    uint32_t process;
    t_rng_t rng;
    bool drawn;

    t_rng_init(&rng, 2);
    for (round = 0; round < 3000; ++round) {
        seed    = t_rng_next(&rng);
        process = t_rng_below(&rng, 8);
        object  = t_rng_next(&rng);
        snprintf(only_p, sizeof(only_p), " p=0.%09u",
                 (unsigned)t_rng_range(&rng, 1, 999999999));
        if (t_rng_once_in(&rng, 2)) {
            only_p[0] = '\0';
        }
        snprintf(text, sizeof(text), "seed %llu; drop%s",
                 (unsigned long long)seed, only_p);
        parses(text);
        drawing = plan;
        if (t_rng_once_in(&rng, 2)) {
            sprintf(text + strlen(text), " n=%u",
                    (unsigned)t_rng_range(&rng, 1, 12));
        }
        if (t_rng_once_in(&rng, 2)) {
            sprintf(text + strlen(text), " every=%u",
                    (unsigned)t_rng_range(&rng, 1, 5));
        }
        parses(text);
        for (n = 1; n < 40; ++n) {
            drawn = sv_rule_fires(&drawing, 0, process, object, n);
            ck_assert_msg(sv_rule_fires(&plan, 0, process, object, n) ==
                          model_fires(&plan.rules[0], drawn, n), "%s, n=%llu",
                          text, (unsigned long long)n);
            fired += drawn;
        }
    }
    ck_assert_uint_gt(fired, 3000);
}
END_TEST

/* ---- chance ---- */

enum { DRAWS = 200000 };

/* One decision after the other, as bits. */
static void stream(uint8_t *to, uint32_t process, uint64_t object)
{
    unsigned n;

    for (n = 0; n < DRAWS; ++n) {
        to[n] = sv_rule_fires(&plan, 0, process, object, n + 1);
    }
}

static unsigned agreements(const uint8_t *a, const uint8_t *b)
{
    unsigned count = 0;
    unsigned n;

    for (n = 0; n < DRAWS; ++n) {
        count += (a[n] == b[n]);
    }
    return count;
}

START_TEST(test_share)
{
    static const double shares[] = {0.5, 0.25, 0.01, 0.001};
    static uint8_t bits[DRAWS];
    unsigned i, n, count = 0;
    double sigma;
    char text[64];

    for (i = 0; i < 4; ++i) {
        snprintf(text, sizeof(text), "seed 12345; drop p=%.3f", shares[i]);
        parses(text);
        stream(bits, 0, 0);
        count = 0;
        for (n = 0; n < DRAWS; ++n) {
            count += bits[n];
        }
        /* the seed is fixed, so this is not a game of chance */
        sigma = sqrt(DRAWS * shares[i] * (1 - shares[i]));
        ck_assert_msg(fabs(count - DRAWS * shares[i]) < 5 * sigma,
                      "p=%.3f: %u of %d", shares[i], count, DRAWS);
    }
}
END_TEST

/* Independent: two fair streams agree in half of the places. */
START_TEST(test_streams)
{
    static uint8_t first[DRAWS], other[DRAWS];
    const unsigned half = DRAWS / 2, off = 1200; /* more than 5 sigma */

    parses("seed 1; drop p=0.5");
    stream(first, 0, 0);
    stream(other, 0, 0);
    ck_assert_uint_eq(agreements(first, other), DRAWS);
    stream(other, 1, 0);
    ck_assert_uint_lt(agreements(first, other), half + off);
    ck_assert_uint_gt(agreements(first, other), half - off);
    stream(other, 0, 1);
    ck_assert_uint_lt(agreements(first, other), half + off);
    ck_assert_uint_gt(agreements(first, other), half - off);
    parses("seed 2; drop p=0.5");
    stream(other, 0, 0);
    ck_assert_uint_lt(agreements(first, other), half + off);
    ck_assert_uint_gt(agreements(first, other), half - off);
}
END_TEST

/* Two rules of a plan do not fire together more often than chance has it. */
START_TEST(test_rules_are_independent)
{
    unsigned n, both = 0;

    parses("seed 3; drop p=0.5; drop p=0.5");
    for (n = 1; n <= DRAWS; ++n) {
        both += sv_rule_fires(&plan, 0, 0, 0, n) &&
                sv_rule_fires(&plan, 1, 0, 0, n);
    }
    ck_assert_uint_lt(both, DRAWS / 4 + 1000);
    ck_assert_uint_gt(both, DRAWS / 4 - 1000);
}
END_TEST

/* A run can be replayed on another machine, and next year. */
START_TEST(test_golden)
{
    uint64_t bits = 0;
    unsigned n;

    parses("seed 42; drop p=0.5");
    for (n = 1; n <= 64; ++n) {
        bits = (bits << 1) | sv_rule_fires(&plan, 0, 3, 0x100000002ull, n);
    }
    ck_assert_msg(bits == 0x4ffa6d660f39aa70ull, "0x%016llx",
                  (unsigned long long)bits);
}
END_TEST

static Suite *suite_fault_plan(void)
{
    Suite *suite = suite_create("fault_plan");
    TCase *text  = tcase_create("text");
    TCase *draw  = tcase_create("draw");

    tcase_set_timeout(text, T_TIMEOUT);
    tcase_set_timeout(draw, T_TIMEOUT);
    tcase_add_loop_test(text, test_refused, 0,
                        sizeof(bad_plans) / sizeof(bad_plans[0]));
    tcase_add_loop_test(text, test_refused_among_good, 0,
                        sizeof(bad_plans) / sizeof(bad_plans[0]));
    tcase_add_test(text, test_too_much);
    tcase_add_loop_test(text, test_taken, 0,
                        sizeof(good_rules) / sizeof(good_rules[0]));
    tcase_add_test(text, test_lines);
    tcase_add_test(text, test_any_text);
    tcase_add_test(text, test_for_whom);
    tcase_add_test(draw, test_counts);
    tcase_add_test(draw, test_model);
    tcase_add_test(draw, test_share);
    tcase_add_test(draw, test_streams);
    tcase_add_test(draw, test_rules_are_independent);
    tcase_add_test(draw, test_golden);
    suite_add_tcase(suite, text);
    suite_add_tcase(suite, draw);
    return suite;
}

T_MAIN(suite_fault_plan)
