/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * `daqiri stats`: the counters of jobs that run, without their help.
 */

#include "tools/base/args.h"
#include "tools/base/clock.h"
#include "tools/base/parse.h"
#include "tools/base/stats_read.h"
#include "tools/base/stop.h"
#include "tools/cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    STATS_WATCH = DAQIRI_ARGS_OWN,
    STATS_COUNT,
    STATS_ALL,
    STATS_USER
};

typedef struct stats_opts {
    daqiri_format_t format;
    const char      *speaker;
    uint32_t        uid;
    uint32_t        pid;      /* 0: all */
    double          interval; /* s; 0: once */
    uint64_t        count;    /* of reports; 0: as long as there is something */
    int             is_all;
} stats_opts_t;

static const struct argp_option stats_options[] = {
    {"watch", STATS_WATCH, "TIME", OPTION_ARG_OPTIONAL,
     "Again every second, or TIME, with rates"},
    {"count", STATS_COUNT, "N", 0, "With --watch: so many reports"},
    {"all", STATS_ALL, NULL, 0, "Values that are zero, too"},
    {"user", STATS_USER, "USER", 0,
     "Processes of this user (name or number); for root"},
    {NULL}
};

static error_t stats_parse(int key, char *arg, struct argp_state *state)
{
    stats_opts_t *opts = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &opts->format;
        return 0;
    case STATS_WATCH:
        opts->interval = (arg == NULL) ? 1 :
                         daqiri_args_duration(state, "watch", arg);
        return 0;
    case STATS_COUNT:
        opts->count = daqiri_args_count(state, "count", arg, 1, 1u << 30);
        return 0;
    case STATS_ALL:
        opts->is_all = 1;
        return 0;
    case STATS_USER:
        opts->uid = daqiri_args_user(state, arg);
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 0) {
            argp_error(state, "one process, or none for all");
        }
        if (daqiri_parse_pid(arg, &opts->pid) != 0) {
            argp_error(state, "'%s' is no process: it is a number from 1 to "
                       "%d", arg, INT32_MAX);
        }
        return 0;
    case ARGP_KEY_END:
        if ((opts->count > 0) && (opts->interval == 0)) {
            argp_error(state, "--count is for --watch");
        }
        if (opts->is_all && (opts->pid == 0) &&
            (opts->format == DAQIRI_FORMAT_TABLE)) {
            argp_error(state, "--all is for one process, or with --json or "
                       "--csv: a line for each has no values");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child stats_children[] = {
    {&daqiri_args_table}, {NULL}
};

static const struct argp stats_argp = {
    stats_options, stats_parse, "[PID]",
    "Prints the counters of processes that run daqiri: all of one process, or "
    "one line for each process.\v"
    "Exit status: 0; 1 there are no such counters; 2 usage error.",
    stats_children
};

/* ---- what is shown ---- */

static const daqiri_column_t stats_summary_columns[] = {
    {"pid", "pid"}, {"serial", "interface"}, {"device", "device"},
    {"alive", "alive"}, {"age_s", "open s", DAQIRI_UNIT_SEC},
    {"num_peers", "peers"}, {"sent", "sent"}, {"received", "received"},
    {"waited", "had to wait"}, {"lost", "QPs lost"}, {"notes", "notes"}
};

static const daqiri_column_t stats_head_columns[] = {
    {"pid", "process"}, {"host", "host"}, {"serial", "interface"},
    {"device", "device"}, {"port", "port"}, {"alive", "alive"},
    {"age_s", "open for", DAQIRI_UNIT_SEC},
    {"looked_s_ago", "gauges are old", DAQIRI_UNIT_SEC}
};

static const daqiri_column_t stats_value_columns[] = {
    {"name", "value"}, {"kind", "kind"}, {"value", "now"},
    {"per_s", "a second", DAQIRI_UNIT_RATE}
};

static const daqiri_column_t stats_peer_columns[] = {
    {"host", "host"}, {"pid", "pid"}, {"state", "state"}, {"qpn", "QPN"},
    {"peer_qpn", "its QPN"}, {"in_use", "in use"}, {"depth", "of"},
    {"credits", "credits"}, {"window", "of"}, {"owed", "owed"},
    {"promised", "of"}, {"posted", "posted"}, {"retired", "retired"},
    {"qp_failures", "lost"}, {"oldest_us", "oldest us", DAQIRI_UNIT_USEC}
};

static const daqiri_column_t stats_note_columns[] = {
    {"notes", "notes"}
};

static const daqiri_column_t stats_csv_columns[] = {
    {"time_s"}, {"pid"}, {"serial"}, {"name"}, {"kind"}, {"value"}, {"per_s"}
};

static long long stats_sum(const json_t *interface, const char *const *names,
                           size_t count)
{
    const json_t *values = json_object_get(interface, "values");
    long long sum        = 0;
    const json_t *row;
    const char *name;
    size_t i, j;

    for (i = 0; i < json_array_size(values); ++i) {
        row  = json_array_get(values, i);
        name = daqiri_report_find_text(row, "name");
        for (j = 0; j < count; ++j) {
            if (strcmp(name, names[j]) == 0) {
                sum += json_integer_value(json_object_get(row, "value"));
            }
        }
    }
    return sum;
}

/* For the lines of all interfaces. */
static void stats_summarise(json_t *interface)
{
    static const char *const sent[]     = {"am_short", "am_bcopy", "am_zcopy"};
    static const char *const received[] = {"am_rx"};
    static const char *const lost[]     = {"qp_failures"};
    static const char *const waited[]   = {
        "refused_sq_full", "refused_cq_full", "refused_no_credit",
        "refused_not_up", "refused_no_buffer"
    };

    daqiri_report_int(interface, "sent", stats_sum(interface, sent, 3));
    daqiri_report_int(interface, "received", stats_sum(interface, received, 1));
    daqiri_report_int(interface, "waited", stats_sum(interface, waited, 5));
    daqiri_report_int(interface, "lost", stats_sum(interface, lost, 1));
    daqiri_report_int(interface, "num_peers", (long long)json_array_size(
                              json_object_get(interface, "peers")));
}

static const daqiri_section_t stats_summary = {
    "interfaces", NULL, DAQIRI_COLUMNS(stats_summary_columns)
};

static const daqiri_section_t stats_full[] = {
    {NULL, NULL, DAQIRI_COLUMNS(stats_head_columns)},
    {"values", "\nValues", DAQIRI_COLUMNS(stats_value_columns)},
    {"peers", "\nPeers", DAQIRI_COLUMNS(stats_peer_columns)}
};

static const daqiri_section_t stats_csv = {
    "rows", NULL, DAQIRI_COLUMNS(stats_csv_columns)
};

static int stats_print_table(json_t *report, const stats_opts_t *opts)
{
    static const daqiri_section_t notes = {
        NULL, "\nNotes", DAQIRI_COLUMNS(stats_note_columns)
    };
    json_t *list = json_object_get(report, "interfaces");
    int error    = 0;
    json_t *interface;
    size_t i;

    for (i = 0; i < json_array_size(list); ++i) {
        interface = json_array_get(list, i);
        stats_summarise(interface);
        if (opts->pid == 0) {
            continue;
        }
        error = daqiri_report_print(interface, DAQIRI_FORMAT_TABLE, stats_full, 3,
                                    stdout);
        if (json_array_size(json_object_get(interface, "notes")) > 0) {
            error = daqiri_report_print(interface, DAQIRI_FORMAT_TABLE, &notes,
                                        1, stdout);
        }
    }
    return (opts->pid != 0) ? error :
           daqiri_report_print(report, DAQIRI_FORMAT_TABLE, &stats_summary, 1,
                               stdout);
}

/* One line for each value. The header comes once. */
static int stats_print_csv(const json_t *report, int is_first)
{
    const json_t *list = json_object_get(report, "interfaces");
    json_t *all  = json_object();
    json_t *rows = daqiri_report_array(all, "rows");
    const json_t *interface, *values;
    char *text = NULL;
    size_t length, i, j;
    FILE *stream;
    json_t *row;
    int error;

    for (i = 0; i < json_array_size(list); ++i) {
        interface = json_array_get(list, i);
        values    = json_object_get(interface, "values");
        for (j = 0; j < json_array_size(values); ++j) {
            row = daqiri_report_row(rows);
            json_object_update(row, json_array_get(values, j));
            json_object_set(row, "pid", json_object_get(interface, "pid"));
            json_object_set(row, "serial",
                            json_object_get(interface, "serial"));
            json_object_set(row, "time_s", json_object_get(report, "time_s"));
        }
    }
    stream = open_memstream(&text, &length);
    if (stream == NULL) {
        json_decref(all);
        return ENOMEM;
    }
    error = daqiri_report_print(all, DAQIRI_FORMAT_CSV, &stats_csv, 1, stream);
    fclose(stream);
    fputs(is_first ? text : strchr(text, '\n') + 1, stdout);
    free(text);
    json_decref(all);
    return ((error == 0) && (fflush(stdout) == 0)) ? 0 :
           (errno != 0) ? errno : EIO;
}

static int stats_print_json(const json_t *report, const stats_opts_t *opts)
{
    /* With --watch a line for each report, for a program that follows. */
    if (opts->interval == 0) {
        return daqiri_report_print(report, DAQIRI_FORMAT_JSON, NULL, 0,
                                   stdout);
    }
    json_dumpf(report, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12));
    putchar('\n');
    return ((fflush(stdout) == 0) && !ferror(stdout)) ? 0 : EIO;
}

static int stats_print(json_t *report, const stats_opts_t *opts, int is_first)
{
    switch (opts->format) {
    case DAQIRI_FORMAT_JSON:
        return stats_print_json(report, opts);
    case DAQIRI_FORMAT_CSV:
        return stats_print_csv(report, is_first);
    default:
        if ((opts->interval > 0) && isatty(STDOUT_FILENO)) {
            printf("\033[H\033[2J");
        } else if (!is_first) {
            printf("\n");
        }
        return stats_print_table(report, opts);
    }
}

/* ---- the command ---- */

/* The rates need what was there before: of files that are still there. */
static void stats_inherit(daqiri_stats_files_t *files,
                          daqiri_stats_files_t *before)
{
    daqiri_stats_file_t *file, *old;
    size_t i, j;

    for (i = 0; i < files->count; ++i) {
        file = &files->list[i];
        for (j = 0; j < before->count; ++j) {
            old = &before->list[j];
            if ((old->pid == file->pid) && (old->serial == file->serial) &&
                (old->header->uuid == file->header->uuid) &&
                (old->header->count == file->header->count)) {
                file->before    = old->before;
                file->before_ns = old->before_ns;
                old->before     = NULL;
            }
        }
    }
    daqiri_stats_close_all(before);
}

static int stats_once(const stats_opts_t *opts, daqiri_stats_files_t *files,
                      uint64_t start_ns, int is_first)
{
    json_t *report = daqiri_report_new("stats");
    json_t *list   = daqiri_report_array(report, "interfaces");
    size_t i;
    int error;

    daqiri_report_real(report, "time_s",
                       (double)(daqiri_now_ns() - start_ns) / 1e9);
    for (i = 0; i < files->count; ++i) {
        json_array_append_new(list, daqiri_stats_report(&files->list[i],
                                                        opts->is_all));
    }
    error = stats_print(report, opts, is_first);
    json_decref(report);
    if (error != 0) {
        fprintf(stderr, "%s: the report cannot be written: %s\n",
                opts->speaker, strerror(error));
    }
    return error;
}

/* Why there is nothing to be shown. */
static int stats_refuse(const stats_opts_t *opts, int error,
                        const daqiri_stats_rest_t *rest)
{
    char text[DAQIRI_STATS_TEXT_MAX];

    fprintf(stderr, "%s: %s\n", opts->speaker,
            daqiri_stats_explain(text, sizeof(text), opts->uid, opts->pid, error,
                                 rest));
    return DAQIRI_EXIT_FAILED;
}

int daqiri_stats(int argc, char **argv)
{
    stats_opts_t opts           = {.speaker = argv[0], .uid = geteuid()};
    daqiri_stats_files_t before = {NULL, 0}, files;
    uint64_t start_ns           = daqiri_now_ns();
    uint64_t reports            = 0;
    daqiri_stats_rest_t rest    = {0};
    int error = 0;

    daqiri_args_parse(&stats_argp, argc, argv, &opts);
    daqiri_args_check_columns(opts.speaker, opts.format,
                              (opts.format == DAQIRI_FORMAT_CSV) ? &stats_csv :
                              (opts.pid == 0) ? &stats_summary : stats_full,
                              (opts.pid == 0) ? 1 : 3);
    if (daqiri_stats_is_denied(opts.speaker, opts.uid)) {
        return DAQIRI_EXIT_FAILED;
    }
    daqiri_stop_catch();
    while ((error == 0) && !daqiri_stop_asked()) {
        error = daqiri_stats_find_all(opts.uid, opts.pid, &files, &rest);
        stats_inherit(&files, &before);
        before = files;
        if ((error != 0) || (files.count == 0)) {
            break;
        }
        error = stats_once(&opts, &before, start_ns, reports == 0);
        ++reports;
        if ((opts.interval == 0) || (reports == opts.count)) {
            break;
        }
        daqiri_stop_pause(opts.interval);
    }
    daqiri_stats_close_all(&before);
    if (reports == 0) {
        return daqiri_stop_asked() ? DAQIRI_EXIT_OK :
                                     stats_refuse(&opts, error, &rest);
    }
    return (error == 0) ? DAQIRI_EXIT_OK : DAQIRI_EXIT_FAILED;
}
