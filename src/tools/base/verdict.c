/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/verdict.h"

#include "tools/base/median.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define VERDICT_REASONS_MAX 4
#define VERDICT_TELLING     2.0
#define VERDICT_EXPLAINED   0.5 /* of what is missing */
#define VERDICT_LOST_LEAST  0.05

int daqiri_verdict_collapsed(const double *values, size_t count, size_t i,
                             double share)
{
    return (count > 1) && (values[i] < share * daqiri_median(values, count));
}

int daqiri_verdict_is_noise(double share, double possible)
{
    return (1 - possible >= VERDICT_EXPLAINED * (1 - share)) &&
           (1 - possible >= VERDICT_LOST_LEAST);
}

int daqiri_verdict_falls_behind(const double *rates, size_t count, size_t i,
                                double tolerance)
{
    size_t best = i;
    size_t j;

    if (rates[i] <= 0) {
        return -1;
    }
    for (j = i + 1; j < count; ++j) {
        best = (rates[j] > rates[best]) ? j : best;
    }
    return (rates[best] > rates[i] * (1 + tolerance)) ? (int)best : -1;
}

int daqiri_verdict_pace_missed(double deviation, double tolerance)
{
    return !(fabs(deviation) <= tolerance);
}

/* ---- counters ---- */

typedef struct verdict_reason {
    const char *group;
    const char *name;
    double     value;
    double     elsewhere; /* scaled to as many messages; the most */
    double     weight;
} verdict_reason_t;

static double verdict_count(const json_t *counters, const char *group,
                            const char *name)
{
    return json_number_value(json_object_get(json_object_get(counters, group),
                                             name));
}

/* Times and averages are no counts. */
static int verdict_is_count(const char *name)
{
    size_t length = strlen(name);

    return (length < 3) || (strcmp(name + length - 3, "_ns") != 0);
}

/* Keeps the list in order of weight. */
static void verdict_keep(verdict_reason_t *list, size_t *used_p,
                         const verdict_reason_t *reason)
{
    size_t i;

    if (*used_p == VERDICT_REASONS_MAX) {
        if (list[*used_p - 1].weight >= reason->weight) {
            return;
        }
        --*used_p;
    }
    for (i = *used_p; (i > 0) && (list[i - 1].weight < reason->weight); --i) {
        list[i] = list[i - 1];
    }
    list[i] = *reason;
    ++*used_p;
}

static void verdict_weigh(verdict_reason_t *reason, double messages,
                          const json_t *const *others,
                          const double *others_messages, size_t count)
{
    double scaled;
    size_t i;

    for (i = 0; i < count; ++i) {
        scaled = verdict_count(others[i], reason->group, reason->name) *
                 messages / ((others_messages[i] > 0) ? others_messages[i] : 1);
        reason->elsewhere = (scaled > reason->elsewhere) ? scaled :
                                                           reason->elsewhere;
    }
    reason->weight = reason->value / (reason->elsewhere + 0.5);
}

void daqiri_verdict_explain(const json_t *bad, double messages,
                            const json_t *const *others,
                            const double *others_messages, size_t count, char *text,
                            size_t length)
{
    verdict_reason_t list[VERDICT_REASONS_MAX];
    verdict_reason_t reason;
    json_t *group, *value;
    const char *group_name, *name;
    size_t known = 0;
    size_t used  = 0;
    size_t i;

    json_object_foreach((json_t*)bad, group_name, group) {
        json_object_foreach(group, name, value) {
            reason = (verdict_reason_t){group_name, name,
                                        json_number_value(value), 0, 0};
            verdict_weigh(&reason, messages, others, others_messages, count);
            if (verdict_is_count(name) && (reason.value >= 1) &&
                (reason.value > VERDICT_TELLING * reason.elsewhere)) {
                verdict_keep(list, &known, &reason);
            }
        }
    }
    text[0] = '\0';
    for (i = 0; (i < known) && (used < length); ++i) {
        used += (size_t)snprintf(text + used, length - used,
                                 "%s%s.%s %.0f (%.0f else)",
                                 (i > 0) ? ", " : "", list[i].group,
                                 list[i].name, list[i].value,
                                 list[i].elsewhere);
    }
}
