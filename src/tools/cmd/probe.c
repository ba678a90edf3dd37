/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * `daqiri probe`: is RDMA usable here, by this user, right now?
 */

#include "tools/cmd/probe.h"

#include "tools/base/args.h"
#include "tools/base/progress.h"
#include "tools/base/report.h"
#include "tools/base/stop.h"
#include "tools/base/watch.h"
#include "tools/cmd/cmd.h"
#include "tools/job/command.h"
#include "tools/job/ucx_child.h"
#include "tools/rdma/devices.h"
#include "tools/rdma/soft.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PROBE_TIMEOUT 10.0

enum {
    PROBE_OPT_DEVICE = DAQIRI_ARGS_OWN,
    PROBE_OPT_PORT,
    PROBE_OPT_GID,
    PROBE_OPT_TIMEOUT,
    PROBE_OPT_NO_UCX,
    PROBE_OPT_NO_MPI,
    PROBE_OPT_PROGRAM,
    PROBE_OPT_CHILD,
    PROBE_OPT_CHILD_LIBRARY,
    PROBE_OPT_CHILD_PLUGIN
};

typedef struct probe_opts {
    daqiri_format_t format;
    const char      *device;
    unsigned        port;
    int             gid_index;
    double          timeout;
    int             no_ucx;
    int             no_mpi;
    const char      *program;
    daqiri_ucx_child_t child;
} probe_opts_t;

static const struct argp_option probe_options[] = {
    {"device", PROBE_OPT_DEVICE, "NAME", 0,
     "This RDMA device (the first), or soft: the software device"},
    {"port", PROBE_OPT_PORT, "N", 0, "Its port (the first that is active)"},
    {"gid-index", PROBE_OPT_GID, "N", 0, "GID (as daqiri chooses it)"},
    {"timeout", PROBE_OPT_TIMEOUT, "TIME", 0,
     "How long each step may take (10s)"},
    {"no-ucx", PROBE_OPT_NO_UCX, NULL, 0, "Leave UCX and the MPIs out"},
    {"no-mpi", PROBE_OPT_NO_MPI, NULL, 0, "Leave the MPIs out"},
    {"program", PROBE_OPT_PROGRAM, "FILE", 0,
     "Take the UCX that this program loads, or an mpirun's ranks (the one that "
     "the loader finds)"},
    {"child", PROBE_OPT_CHILD, "WHAT", OPTION_HIDDEN, NULL},
    {"child-library", PROBE_OPT_CHILD_LIBRARY, "FILE", OPTION_HIDDEN, NULL},
    {"child-plugin", PROBE_OPT_CHILD_PLUGIN, "FILE", OPTION_HIDDEN, NULL},
    {NULL}
};

static error_t probe_parse(int key, char *arg, struct argp_state *state)
{
    static const char *const children[] = {"ucx", "limits", "version",
                                           "plugin"};
    probe_opts_t *opts = state->input;
    int library;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &opts->format;
        return 0;
    case PROBE_OPT_DEVICE:
        opts->device = daqiri_args_name(state, "device", arg);
        return 0;
    case PROBE_OPT_PORT:
        opts->port = (unsigned)daqiri_args_count(state, "port", arg, 1, 255);
        return 0;
    case PROBE_OPT_GID:
        opts->gid_index = (int)daqiri_args_count(state, "gid-index", arg, 0,
                                                 255);
        return 0;
    case PROBE_OPT_TIMEOUT:
        opts->timeout = daqiri_args_duration(state, "timeout", arg);
        return 0;
    case PROBE_OPT_NO_UCX:
        opts->no_ucx = 1;
        return 0;
    case PROBE_OPT_NO_MPI:
        opts->no_mpi = 1;
        return 0;
    case PROBE_OPT_CHILD:
        daqiri_args_word(state, "child", arg, children, 4);
        opts->child.what = arg;
        return 0;
    case PROBE_OPT_CHILD_LIBRARY:
        library = daqiri_ucx_library(arg);
        if (library >= 0) {
            opts->child.libraries[library] = arg;
        }
        return 0;
    case PROBE_OPT_CHILD_PLUGIN:
        opts->child.plugin = arg;
        return 0;
    case PROBE_OPT_PROGRAM:
        opts->program = daqiri_args_name(state, "program", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child probe_children[] = {
    {&daqiri_args_table}, {NULL}
};

static const struct argp probe_argp = {
    probe_options, probe_parse, NULL,
    "Tries whether this user can use RDMA here, right now. Each verb runs in a "
    "process of its own, which is killed if the verb does not come back. Then "
    "tries UCX with daqiri, and says what the MPIs here need.\v"
    "Exit status: 0 usable; 1 not usable; 2 usage error; 124 a step did not "
    "come back.",
    probe_children
};

/* ---- which device ---- */

/* NULL: none, or what keeps us from knowing, in *error_p. */
static const char *probe_found(const json_t *result, const char **error_p)
{
    const char *name = daqiri_report_find_text(result, "name");

    *error_p = daqiri_report_find_text(result, "error");
    if (name == NULL) {
        name = daqiri_report_find_text(result, "first");
    }
    return ((name == NULL) && (*error_p == NULL) && daqiri_soft_is_loaded())
                   ? DAQIRI_SOFT_DEVICE : name;
}

/* Without --device: a usable one, else the first. Opening may hang, too. */
static int probe_choose(const probe_opts_t *opts, json_t *rows, char *name,
                        size_t length)
{
    daqiri_progress_t progress;
    daqiri_watch_t watch = {
        .timeout  = opts->timeout,
        .progress = &progress,
        .what     = "the list of devices"
    };
    const char *found = NULL;
    const char *error = NULL;
    char text[256];
    json_t *row;
    int end;

    daqiri_progress_start(&progress);
    end = daqiri_watch_run(&watch, daqiri_soft_find, NULL);
    daqiri_progress_end(&progress);
    if (end == DAQIRI_WATCH_DONE) {
        found = probe_found(watch.result, &error);
    } else {
        daqiri_watch_text(&watch, opts->timeout, text, sizeof(text));
        error = text;
    }
    if (found == NULL) {
        row = daqiri_probe_row(rows, "device", 1);
        daqiri_report_text(row, "result",
                           (watch.end == DAQIRI_WATCH_TIMEOUT) ?
                           DAQIRI_PROBE_TIMEOUT : DAQIRI_PROBE_FAILED);
        daqiri_report_text(row, "failure_class", daqiri_class_name(
                (watch.end == DAQIRI_WATCH_TIMEOUT) ?
                DAQIRI_CLASS_PROVIDER_TIMEOUT : DAQIRI_CLASS_NO_DEVICE));
        daqiri_report_text(row, "error", (error != NULL) ? error :
                           "there is no RDMA device; --device soft probes the "
                           "software device");
    } else {
        snprintf(name, length, "%s", found);
    }
    json_decref(watch.result);
    return (found != NULL) ? 0 : -1;
}

/* ---- the command ---- */

static const daqiri_column_t probe_step_columns[] = {
    {"name", "step"}, {"result", "result"},
    {"us", "us", DAQIRI_UNIT_USEC}, {"failure_class", "class"},
    {"detail", "detail"}
};

static const daqiri_column_t probe_csv_columns[] = {
    {"name"}, {"result"}, {"needed"}, {"us"}, {"failure_class"}, {"detail"},
    {"error"}
};

static const daqiri_column_t probe_ucx_columns[] = {
    {"result", "daqiri in UCX"}, {"ucx_version", "UCX"},
    {"library", "which is"}, {"way", "daqiri gets in by"},
    {"devices", "devices"}, {"error", "error"}
};

static const daqiri_column_t probe_mpi_columns[] = {
    {"name", "MPI"}, {"result", "result"}, {"mpi_version", "version"},
    {"starter", "starter"}, {"memlock", "a rank may lock", DAQIRI_UNIT_SIZE},
    {"ucx_version", "its UCX"}, {"way", "daqiri gets in by"},
    {"error", "error"}
};

static const daqiri_column_t probe_need_columns[] = {
    {"mpi", "needs"}, {"name", "variable"}, {"is_set", "set here"},
    {"value", "value"}
};

static const daqiri_column_t probe_verdict_columns[] = {
    {"device", "device"}, {"reach", "connects"}, {"usable", "usable"}
};

/* What only the table has: errors where details are, one table of all needs,
 * and limits as words. */
static void probe_for_people(json_t *report)
{
    json_t *mpis  = json_object_get(report, "mpi");
    json_t *steps = json_object_get(report, "steps");
    const char *error;
    json_t *table = daqiri_report_array(report, "needs");
    json_t *mpi, *needs, *limit, *row;
    size_t i, j;

    for (i = 0; i < json_array_size(steps); ++i) {
        row   = json_array_get(steps, i);
        error = daqiri_report_find_text(row, "error");
        if (error != NULL) {
            daqiri_report_text(row, "detail", error);
        }
    }
    for (i = 0; i < json_array_size(mpis); ++i) {
        mpi   = json_array_get(mpis, i);
        limit = daqiri_report_find(mpi, "memlock_bytes");
        /* Who was not started has not told its limit. */
        if (strcmp(daqiri_report_find_text(mpi, "result"), DAQIRI_PROBE_OK) ==
            0) {
            daqiri_report_set(mpi, "memlock", (limit == NULL) ?
                              json_string("any amount") : json_incref(limit));
        }
        needs = json_object_get(mpi, "needs");
        for (j = 0; j < json_array_size(needs); ++j) {
            row = daqiri_report_row(table);
            json_object_update(row, json_array_get(needs, j));
            daqiri_report_text(row, "mpi",
                               daqiri_report_find_text(mpi, "name"));
        }
    }
}

static const daqiri_section_t probe_sections[] = {
    {"steps", "Device", DAQIRI_COLUMNS(probe_step_columns)},
    {"ucx", "\nUCX", DAQIRI_COLUMNS(probe_ucx_columns)},
    {"mpi", "\nMPI", DAQIRI_COLUMNS(probe_mpi_columns)},
    {"needs", "\nWhat a job needs (daqiri run sets it)",
     DAQIRI_COLUMNS(probe_need_columns)},
    {NULL, "\nVerdict", DAQIRI_COLUMNS(probe_verdict_columns)}
};

static const daqiri_section_t probe_csv_section = {
    "steps", NULL, DAQIRI_COLUMNS(probe_csv_columns)
};

static int probe_any(const json_t *rows, const char *result, int only_needed)
{
    const json_t *row;
    size_t i;

    for (i = 0; i < json_array_size(rows); ++i) {
        row = json_array_get(rows, i);
        if ((strcmp(daqiri_report_find_text(row, "result"), result) == 0) &&
            (!only_needed || json_is_true(json_object_get(row, "needed")))) {
            return 1;
        }
    }
    return 0;
}

static int probe_verdict(const json_t *report)
{
    const json_t *steps = json_object_get(report, "steps");
    const char *ucx     = daqiri_report_find_text(report, "ucx.result");

    if (probe_any(steps, DAQIRI_PROBE_TIMEOUT, 0)) {
        return DAQIRI_EXIT_WATCHDOG;
    }
    return (probe_any(steps, DAQIRI_PROBE_FAILED, 0) ||
            probe_any(steps, DAQIRI_PROBE_SKIPPED, 1) ||
            ((ucx != NULL) && (strcmp(ucx, DAQIRI_PROBE_OK) != 0)) ||
            probe_any(json_object_get(report, "mpi"), DAQIRI_PROBE_FAILED,
                      0)) ? DAQIRI_EXIT_FAILED : DAQIRI_EXIT_OK;
}

static int probe_print(json_t *report, daqiri_format_t format,
                       const char *speaker)
{
    int error;

    if (format == DAQIRI_FORMAT_TABLE) {
        probe_for_people(report);
    }
    error = daqiri_report_print(report, format,
                                (format == DAQIRI_FORMAT_CSV) ?
                                &probe_csv_section : probe_sections,
                                sizeof(probe_sections) /
                                sizeof(probe_sections[0]), stdout);
    if (error != 0) {
        fprintf(stderr, "%s: the report cannot be written: %s\n", speaker,
                strerror(error));
    }
    return error;
}

int daqiri_probe(int argc, char **argv)
{
    probe_opts_t opts = {.gid_index = -1, .timeout = PROBE_TIMEOUT};
    daqiri_qp_opts_t qp;
    char name[DAQIRI_DEVICE_NAME_MAX];
    const char *device = name;
    json_t *report, *steps;
    unsigned port = 0;
    int status    = 0;

    daqiri_args_parse(&probe_argp, argc, argv, &opts);
    if (opts.child.what != NULL) {
        return daqiri_ucx_child(&opts.child);
    }
    daqiri_args_check_columns(argv[0], opts.format,
                              (opts.format == DAQIRI_FORMAT_CSV) ?
                              &probe_csv_section : probe_sections,
                              sizeof(probe_sections) / sizeof(probe_sections[0]));
    if ((opts.program != NULL) && (daqiri_command_check(opts.program) != 0)) {
        fprintf(stderr, "%s: --program %s: there is no such command\n", argv[0],
                opts.program);
        return DAQIRI_EXIT_USAGE;
    }
    if (opts.device != NULL) {
        status = daqiri_soft_settle(opts.device, argv, &device);
    }
    if (status != 0) {
        return status;
    }

    daqiri_stop_catch();
    report = daqiri_report_new("probe");
    steps  = daqiri_report_array(report, "steps");
    if ((opts.device == NULL) &&
        (probe_choose(&opts, steps, name, sizeof(name)) != 0)) {
        device = NULL;
    } else {
        daqiri_qp_opts_init(&qp, device, 4096);
        qp.port      = opts.port;
        qp.gid_index = opts.gid_index;
        port = daqiri_probe_verbs(steps, &qp, opts.timeout);
    }
    daqiri_report_text(report, "device", device);
    daqiri_report_text(report, "reach", ((device != NULL) &&
                       daqiri_is_soft_device(device)) ?
                       DAQIRI_SOFT_REACH : NULL);
    daqiri_report_set(report, "limits", daqiri_ucx_child_limits());
    daqiri_report_set(report, "ucx", json_null());
    daqiri_report_array(report, "mpi");
    if (!opts.no_ucx && !daqiri_stop_asked()) {
        daqiri_probe_ucx(report, device, port, opts.program, opts.timeout,
                         argv[0]);
        if (!opts.no_mpi && !daqiri_stop_asked()) {
            daqiri_probe_mpi(report, device, port, opts.timeout, argv[0]);
        }
    }
    daqiri_report_bool(report, "interrupted", daqiri_stop_asked() != 0);
    status = probe_verdict(report);
    if ((status == DAQIRI_EXIT_OK) && daqiri_stop_asked()) {
        status = DAQIRI_EXIT_FAILED; /* what was not tried is not known */
    }
    daqiri_report_bool(report, "usable", status == DAQIRI_EXIT_OK);
    if (probe_print(report, opts.format, argv[0]) != 0) {
        status = DAQIRI_EXIT_FAILED;
    }
    if (daqiri_stop_asked()) {
        fprintf(stderr, "%s: interrupted: not everything was tried\n",
                argv[0]);
    }
    json_decref(report);
    return status;
}
