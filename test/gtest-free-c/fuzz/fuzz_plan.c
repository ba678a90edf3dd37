/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans of faults: any text is taken or refused with a sentence; what is taken
 * prints to a plan that is the same.
 */
#include "fuzz.h"

#include "softverbs/fault/sv_plan.h"

#include <string.h>


static void fuzz_check_rules(const struct sv_plan *a, const struct sv_plan *b)
{
    unsigned i;

    FUZZ_MUST((a->seed == b->seed) && (a->num_rules == b->num_rules));
    for (i = 0; i < a->num_rules; i++) {
        FUZZ_MUST(a->rules[i].fault == b->rules[i].fault);
        FUZZ_MUST(a->rules[i].given == b->rules[i].given);
        FUZZ_MUST(memcmp(a->rules[i].value, b->rules[i].value,
                         sizeof(a->rules[i].value)) == 0);
    }
}


static void fuzz_again(const struct sv_plan *plan)
{
    char text[SV_PLAN_RULES * SV_WHY_BYTES], why[SV_WHY_BYTES];
    struct sv_plan again;
    size_t used;
    unsigned i;

    used = snprintf(text, sizeof(text), "seed %llu",
                    (unsigned long long)plan->seed);
    for (i = 0; i < plan->num_rules; i++) {
        text[used++] = '\n';
        sv_rule_print(&plan->rules[i], text + used);
        used += strlen(text + used);
        FUZZ_MUST(sv_rule_fires(plan, i, 0, 1, 1) ==
                  sv_rule_fires(plan, i, 0, 1, 1));
    }
    if (used < SV_PLAN_BYTES) { /* what was short may print long */
        FUZZ_MUST(sv_plan_parse(&again, text, why) == 0);
        fuzz_check_rules(plan, &again);
    }
}


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    char why[SV_WHY_BYTES];
    struct sv_plan plan;

    FUZZ_MUST(text != NULL);
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    memset(why, 0, sizeof(why));
    if (sv_plan_parse(&plan, text, why) == 0) {
        FUZZ_MUST((plan.num_rules > 0) && (plan.num_rules <= SV_PLAN_RULES));
        fuzz_again(&plan);
    } else {
        FUZZ_MUST((why[0] != '\0') && (strlen(why) < sizeof(why)));
    }
    free(text);
    return 0;
}
