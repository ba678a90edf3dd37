/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The options of who prints a report. Apart from args.c, since a program that reads
 * options needs no library of JSON and of tables for that.
 */

#include "tools/base/args.h"
#include "tools/base/exit_status.h"
#include "tools/base/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct argp_option args_output_options[] = {
    {"json", DAQIRI_ARGS_JSON, NULL, 0, "Print JSON, or comma-separated values", 90},
    {"csv", DAQIRI_ARGS_CSV, NULL, OPTION_ALIAS, NULL, 90},
    {NULL}
};

static const struct argp_child args_output_children[] = {
    {&daqiri_args_help}, {NULL}
};

static error_t args_output_parse(int key, char *arg, struct argp_state *state)
{
    daqiri_format_t *format = state->input;

    (void)arg;
    switch (key) {
    case DAQIRI_ARGS_JSON:
        if (*format == DAQIRI_FORMAT_CSV) {
            argp_error(state, "--json and --csv exclude each other");
        }
        *format = DAQIRI_FORMAT_JSON;
        return 0;
    case DAQIRI_ARGS_CSV:
        if (*format == DAQIRI_FORMAT_JSON) {
            argp_error(state, "--json and --csv exclude each other");
        }
        *format = DAQIRI_FORMAT_CSV;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp daqiri_args_output = {
    args_output_options, args_output_parse, NULL, NULL, args_output_children
};

static const struct argp_option args_table_options[] = {
    {"columns", DAQIRI_ARGS_COLUMNS, "LIST", 0,
     "Only these of a table or CSV; keys as in CSV", 90},
    {NULL}
};

/* Which there are is not known yet. */
static void args_check_list(struct argp_state *state, const char *list)
{
    const char *word = list;
    const char *other;
    size_t length;

    for (;; word += length + 1) {
        length = strcspn(word, ",");
        if (length == 0) {
            argp_error(state, "--columns: it is a list with commas between");
        }
        for (other = list; other < word; other += strcspn(other, ",") + 1) {
            if ((strcspn(other, ",") == length) &&
                (memcmp(other, word, length) == 0)) {
                argp_error(state, "--columns %.*s: it is there twice", (int)length,
                           word);
            }
        }
        if (word[length] == '\0') {
            return;
        }
    }
}

static error_t args_table_parse(int key, char *arg, struct argp_state *state)
{
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = state->input;
        return 0;
    case DAQIRI_ARGS_COLUMNS:
        daqiri_args_name(state, "columns", arg);
        args_check_list(state, arg);
        daqiri_report_only(arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child args_table_children[] = {
    {&daqiri_args_output}, {NULL}
};

const struct argp daqiri_args_table = {
    args_table_options, args_table_parse, NULL, NULL, args_table_children
};

/* Which there are is known from the sections, so it is not argp that says it. */
void daqiri_args_check_columns(const char *speaker, daqiri_format_t format,
                               const daqiri_section_t *sections, size_t count)
{
    const char *unknown;
    size_t i, c;

    count   = (format == DAQIRI_FORMAT_CSV) ? 1 : count;
    unknown = daqiri_report_unknown(sections, count);
    if (unknown == NULL) {
        return;
    }
    fprintf(stderr, "%s: --columns %s: there is no such column; there are:", speaker,
            unknown);
    for (i = 0; i < count; ++i) {
        for (c = 0; c < sections[i].count; ++c) {
            fprintf(stderr, "%s %s", (i + c > 0) ? "," : "", sections[i].columns[c].key);
        }
    }
    fprintf(stderr, "\n");
    exit(DAQIRI_EXIT_USAGE);
}
