/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * daqiri run: choose a device, work out the environment, become the command.
 *
 * Nothing is guessed silently: which device and why goes to stderr, and what
 * cannot be had ends with one sentence before the command starts.
 */

#include "tools/base/args.h"
#include "tools/base/env_list.h"
#include "tools/cmd/cmd.h"
#include "tools/cmd/run.h"
#include "tools/job/command.h"
#include "tools/job/job.h"
#include "tools/job/travel.h"
#include "tools/rdma/devices.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* s for UCX to say its version. */
#define RUN_ASK_TIMEOUT 10.0

static const struct argp_option run_options[] = {
    {"device", 'd', "WHICH", 0,
     "auto: the nearest usable RDMA device, else soft. soft: the software device, for "
     "this host only. NAME[,NAME]...: the nearest of these, such as mlx5_0 (auto)", 1},
    {"rails", 'r', "N", 0,
     "How many devices each rank uses at once, the nearest ones: 1 to 4; of the software "
     "device as many are made (1)", 1},
    {"tls", 't', "LIST", 0,
     "UCX transports; others for comparison on the same device: "
     "rc_verbs,ud_verbs or tcp (daqiri)", 1},
    {"print-env", 'p', "FORMAT", OPTION_ARG_OPTIONAL,
     "Print what would be set, and run nothing. sh, csh: for a shell's eval; lua, tcl: "
     "a modulefile (sh)", 2},
    {"quiet", 'q', NULL, 0, "Say only what is wrong", 2},
    {NULL}
};

int daqiri_run_is_speaker(const run_opts_t *opts)
{
    return opts->local_rank <= 0;
}

/* The first of these in the environment that is a number, or -1. */
static long run_number(const char *const *names)
{
    const char *text;
    char *end;
    long number;

    for (; *names != NULL; ++names) {
        text = getenv(*names);
        if ((text != NULL) && (text[0] != '\0')) {
            number = strtol(text, &end, 10);
            if ((*end == '\0') && (number >= 0)) {
                return number;
            }
        }
    }
    return -1;
}

/* Of what a launcher has started. In a script of Slurm's that starts the ranks, the
 * same variables are those of the script. */
static long run_local_rank(char *const *command)
{
    static const char *const names[] = {
        "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMIX_LOCAL_RANK",
        "SLURM_LOCALID", NULL
    };

    return (daqiri_command_starter(command) == NULL) ? run_number(names) : -1;
}

/* A list is of RDMA devices; auto and soft stand alone. */
static void run_check_device(struct argp_state *state, const char *list)
{
    size_t length;

    if (strchr(list, ',') == NULL) {
        return;
    }
    for (;; list += length + 1) {
        length = strcspn(list, ",");
        if (length == 0) {
            argp_error(state, "--device has an empty name in its list");
        }
        if (((length == 4) && ((strncmp(list, "soft", 4) == 0) ||
                               (strncmp(list, "auto", 4) == 0))) ||
            ((length == strlen(DAQIRI_SOFT_DEVICE)) &&
             (strncmp(list, DAQIRI_SOFT_DEVICE, length) == 0))) {
            argp_error(state, "--device %.*s cannot be in a list", (int)length, list);
        }
        if (list[length] == '\0') {
            return;
        }
    }
}

/* The first word that is no option is COMMAND, and all others are its own. */
static error_t run_parse(int key, char *arg, struct argp_state *state)
{
    run_opts_t *opts = state->input;

    switch (key) {
    case 'd':
        opts->device = daqiri_args_name(state, "device", arg);
        run_check_device(state, arg);
        return 0;
    case 'r':
        opts->rails = (unsigned)daqiri_args_count(state, "rails", arg, 1,
                                                  DAQIRI_RAILS_MAX);
        return 0;
    case 't':
        opts->tls = daqiri_args_name(state, "tls", arg);
        if (arg[strspn(arg, ", ")] == '\0') {
            argp_error(state, "--tls names no transport");
        }
        return 0;
    case 'p':
        opts->print_env = 1;
        opts->format    = (arg == NULL) ? DAQIRI_ENV_SH :
                          (daqiri_env_format_t)daqiri_args_word(
                                  state, "print-env", arg, daqiri_env_formats,
                                  DAQIRI_ENV_FORMATS);
        return 0;
    case 'q':
        opts->is_quiet = 1;
        return 0;
    case ARGP_KEY_ARG:
        opts->command = &state->argv[state->next - 1];
        state->next   = state->argc;
        return 0;
    case ARGP_KEY_END:
        opts->local_rank = run_local_rank(opts->command);
        if ((opts->command[0] == NULL) && !opts->print_env) {
            argp_error(state, "which command? For example: daqiri run mpirun "
                       "-np 2 ./a.out");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child run_children[] = {
    {&daqiri_args_help}, {NULL}
};

static const struct argp run_argp = {
    run_options, run_parse, "[--] COMMAND [ARG]...",
    "Runs COMMAND, such as 'mpirun -np 2 ./a.out', over daqiri.\v"
    "Works with Open MPI and MPICH. Exit status: that of COMMAND; 1 the device or "
    "a library cannot be used; 2 usage error; 126 COMMAND cannot be run; 127 "
    "COMMAND does not exist.",
    run_children
};

/* The line goes out in one write: ranks say theirs at the same time. */
void daqiri_run_say(const run_opts_t *opts, const char *format, ...)
{
    va_list args;
    char *text;
    int length;

    if (opts->is_quiet) {
        return;
    }
    va_start(args, format);
    length = vasprintf(&text, format, args);
    va_end(args);
    if (length >= 0) {
        fprintf(stderr, RUN_SPEAKER ": %s\n", text);
        free(text);
    }
}

static int run_refuse_command(const char *command, int error)
{
    if ((error == ENOENT) || (error == ENOTDIR)) {
        if (daqiri_command_is_starter(command)) {
            fprintf(stderr, RUN_SPEAKER ": %s was not found: this MPI is not "
                    "installed, or not in PATH (on Debian: apt-get install "
                    "openmpi-bin, or mpich)\n", command);
        } else {
            fprintf(stderr, RUN_SPEAKER ": %s: there is no such command\n",
                    command);
        }
        return DAQIRI_EXIT_NOT_FOUND;
    }
    fprintf(stderr, RUN_SPEAKER ": %s cannot be run: %s\n", command,
            strerror(error));
    return DAQIRI_EXIT_NOT_EXEC;
}

static int run_check_command(const run_opts_t *opts)
{
    int error;

    if (opts->command[0] == NULL) {
        return RUN_GO_ON;
    }
    error = daqiri_command_check(opts->command[0]);
    return (error == 0) ? RUN_GO_ON :
                          run_refuse_command(opts->command[0], error);
}

/* What a job on several hosts will find out at its first message. Names that do
 * not look alike may be one host, so it is only said. */
static void run_say_hosts(const run_opts_t *opts,
                          const daqiri_job_device_t *device, size_t count,
                          const char *names)
{
    char way[512];

    if (!device->is_soft || (count < 2)) {
        return;
    }
    snprintf(way, sizeof(way), daqiri_job_has_network(opts->tls) ?
             "what goes from one to another goes over the other transports of "
             "--tls" :
             "over it no rank reaches those of another host; an RDMA NIC or "
             "Soft-RoCE does (--device), and tcp beside it (--tls %.200s,tcp)",
             opts->tls);
    daqiri_run_say(opts, "device %s:%u connects " DAQIRI_SOFT_REACH ", and this job has "
            "%zu hosts (%s): %s", device->name, device->port, count, names, way);
}

/* ---- the way into UCX ---- */

static void run_say_way(const run_opts_t *opts, const daqiri_ucx_t *ucx)
{
    const char *modules = getenv("UCX_MODULES");

    if ((ucx->version[0] == '\0') && (ucx->why[0] != '\0')) {
        return; /* that was said, and it will come to nothing */
    }
    if (ucx->version[0] == '\0') {
        daqiri_run_say(opts, "way into UCX: LD_PRELOAD, which works for all; which "
                       "UCX %s loads is not known beforehand", ucx->whose);
        return;
    }
    if (daqiri_ucx_loads_plugin(ucx)) {
        daqiri_run_say(opts, "way into UCX %s of %s (%s): " DAQIRI_UCX_PLUGIN_PATH
                       ", from which it loads the plugin itself", ucx->version,
                       ucx->whose, ucx->libraries[DAQIRI_UCX_UCT]);
    } else if (daqiri_ucx_has_plugin_path(ucx)) {
        daqiri_run_say(opts, "way into UCX %s of %s (%s): LD_PRELOAD, for UCX_MODULES=%s "
                "keeps it from loading the plugin", ucx->version, ucx->whose,
                ucx->libraries[DAQIRI_UCX_UCT], (modules != NULL) ? modules : "");
    } else {
        daqiri_run_say(opts, "way into UCX %s of %s (%s): LD_PRELOAD", ucx->version,
                ucx->whose, ucx->libraries[DAQIRI_UCX_UCT]);
    }
}

/* That a plugin which the loader refuses would end every program of the job, or
 * leave it without daqiri, is known before it starts. What keeps it out of one UCX
 * is said, and the job goes on: its ranks may be elsewhere, with another UCX. */
static int run_choose_way(const run_opts_t *opts,
                          const daqiri_job_device_t *device, daqiri_ucx_t *ucx)
{
    char plugin[PATH_MAX];
    char why[2 * PATH_MAX];
    char *preload;
    int status;

    /* the software device stands for libibverbs, which the plugin needs */
    status = daqiri_job_preload(&preload, device, RUN_SPEAKER);
    if (status != 0) {
        free(preload);
        return status;
    }

    if (daqiri_job_find_plugin(plugin, why, sizeof(why)) != 0) {
        fprintf(stderr, RUN_SPEAKER ": %s\n", why);
        free(preload);
        return DAQIRI_EXIT_FAILED;
    }
    daqiri_ucx_of_command(ucx, opts->command);
    if (ucx->libraries[DAQIRI_UCX_UCT][0] != '\0') {
        daqiri_ucx_ask(ucx, plugin, preload, RUN_ASK_TIMEOUT);
    } else {
        daqiri_ucx_ask_plugin(ucx, plugin, preload, RUN_ASK_TIMEOUT);
    }
    free(preload);
    if (ucx->broken[0] != '\0') {
        fprintf(stderr, RUN_SPEAKER ": the plugin cannot be loaded here: %s\n",
                ucx->broken);
        return DAQIRI_EXIT_FAILED;
    }
    if (ucx->why[0] != '\0') {
        fprintf(stderr, RUN_SPEAKER ": %s\n", ucx->why);
    }
    if (daqiri_run_is_speaker(opts)) {
        run_say_way(opts, ucx);
    }
    return RUN_GO_ON;
}

static int run_exec(char **command)
{
    int error;

    execvp(command[0], command);
    error = errno;
    return run_refuse_command(command[0], error);
}

static void run_print(const run_opts_t *opts,
                      const daqiri_job_device_t *device,
                      const daqiri_env_list_t *env_list)
{
    char what[256];

    snprintf(what, sizeof(what), "MPI jobs over UCX_TLS=%.100s, on %s", opts->tls,
             (device->name[0] != '\0') ? device->name : "no RDMA device");
    daqiri_env_print(env_list, opts->format, what, stdout);
}

/* The environment, and what is to be done with it. */
static int run_with_env(const run_opts_t *opts,
                        const daqiri_job_device_t *device,
                        const daqiri_ucx_t *ucx, size_t hosts)
{
    daqiri_env_list_t env_list = {0};
    char text[1024];
    int status;

    if (opts->print_env && daqiri_env_is_module(opts->format)) {
        unsetenv("LD_PRELOAD");
        unsetenv(DAQIRI_UCX_PLUGIN_PATH);
    }
    status = daqiri_job_env(&env_list, opts->tls, device, ucx, RUN_SPEAKER);
    if (status != 0) {
        daqiri_env_list_cleanup(&env_list);
        return status;
    }
    if (daqiri_travel_check(&env_list, opts->command, hosts, text,
                            sizeof(text)) != 0) {
        fprintf(stderr, RUN_SPEAKER ": %s\n", text);
        status = DAQIRI_EXIT_USAGE;
    } else if (opts->print_env) {
        run_print(opts, device, &env_list);
    } else {
        daqiri_travel_stuck(opts->command, hosts, text, sizeof(text));
        if (text[0] != '\0') {
            fprintf(stderr, RUN_SPEAKER ": %s\n", text);
        }
        daqiri_env_list_apply(&env_list, RUN_SPEAKER);
        status = run_exec(opts->command);
    }
    daqiri_env_list_cleanup(&env_list);
    return status;
}

int daqiri_run(int argc, char **argv)
{
    run_opts_t opts            = {
        .device     = "auto",
        .tls        = "daqiri",
        .rails      = 1,
        .command    = argv + argc,
        .local_rank = -1
    };
    daqiri_job_device_t device = {0};
    static daqiri_ucx_t ucx;
    char names[256];
    size_t hosts;
    int status;

    daqiri_args_parse_command(&run_argp, argc, argv, &opts);
    status = run_check_command(&opts);
    if (status != RUN_GO_ON) {
        return status;
    }
    if (daqiri_job_needs_device(opts.tls)) {
        status = daqiri_run_choose(&opts, &device);
        if (status != RUN_GO_ON) {
            return status;
        }
    } else if (opts.rails > 1) {
        fprintf(stderr, RUN_SPEAKER ": --rails %u needs a transport that uses an RDMA "
                "device, and --tls %s names none\n", opts.rails, opts.tls);
        return DAQIRI_EXIT_USAGE;
    } else {
        daqiri_run_say(&opts, "no RDMA device: UCX_TLS=%s uses none", opts.tls);
    }
    hosts = daqiri_command_hosts(opts.command, names, sizeof(names));
    run_say_hosts(&opts, &device, hosts, names);
    if (daqiri_job_uses_plugin(opts.tls)) {
        status = run_choose_way(&opts, &device, &ucx);
        if (status != RUN_GO_ON) {
            return status;
        }
    }
    return run_with_env(&opts, &device, &ucx, hosts);
}
