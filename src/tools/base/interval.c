/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/interval.h"

#include "tools/base/answer.h"
#include "tools/base/report.h"

#include <stdio.h>

void daqiri_interval_start(daqiri_interval_t *interval, uint64_t now_ns)
{
    interval->start_ns = interval->last_ns = now_ns;
    interval->messages = interval->bytes = 0;
    interval->next_ns  = UINT64_MAX;
    if (interval->every > 0) {
        interval->next_ns = now_ns + (uint64_t)(interval->every * 1e9);
        interval->list    = interval->is_told ? NULL : json_array();
    }
}

static double interval_number(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

void daqiri_interval_print(const json_t *row)
{
    printf("%7.2f to %7.2f s  %12.0f messages/s  %8.3f Gb/s\n",
           interval_number(row, "start_s"), interval_number(row, "end_s"),
           interval_number(row, "messages_per_s"), interval_number(row, "gbps"));
    fflush(stdout);
}

void daqiri_interval_note(daqiri_interval_t *interval, uint64_t now_ns,
                          uint64_t messages, uint64_t bytes)
{
    const double start   = (double)(interval->last_ns - interval->start_ns) / 1e9;
    const double end     = (double)(now_ns - interval->start_ns) / 1e9;
    const double rate    = (double)(messages - interval->messages) / (end - start);
    const double gbps    = (double)(bytes - interval->bytes) * 8e-9 / (end - start);
    json_t *row          = json_object();

    daqiri_report_real(row, "start_s", start);
    daqiri_report_real(row, "end_s", end);
    daqiri_report_int(row, "messages", (long long)(messages - interval->messages));
    daqiri_report_real(row, "messages_per_s", rate);
    daqiri_report_real(row, "gbps", gbps);
    if (interval->is_shown) {
        daqiri_interval_print(row);
    }
    if (interval->is_told) {
        daqiri_answer_write(DAQIRI_ANSWER_INTERVAL, row);
        json_decref(row);
    } else {
        json_array_append_new(interval->list, row);
    }
    interval->messages = messages;
    interval->bytes    = bytes;
    interval->last_ns  = now_ns;
    while (interval->next_ns <= now_ns) {
        interval->next_ns += (uint64_t)(interval->every * 1e9);
    }
}

void daqiri_interval_end(daqiri_interval_t *interval, uint64_t now_ns,
                         uint64_t messages, uint64_t bytes)
{
    if ((interval->start_ns > 0) && (interval->next_ns != UINT64_MAX) &&
        (messages > interval->messages) &&
        (now_ns > interval->last_ns)) {
        daqiri_interval_note(interval, now_ns, messages, bytes);
    }
    interval->next_ns = UINT64_MAX;
}

json_t *daqiri_interval_report(daqiri_interval_t *interval)
{
    json_t *list = interval->list;

    interval->list = NULL;
    return (list != NULL) ? list : json_null();
}
