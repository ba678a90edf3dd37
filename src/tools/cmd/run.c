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
#include "tools/job/command.h"
#include "tools/job/job.h"
#include "tools/rdma/devices.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define RUN_SPEAKER "daqiri run"

/* Go on; anything else is a status to exit with. */
#define RUN_GO_ON (-1)

/*
 * Memory that a transport registers before the first message: send buffers
 * and a window of receive buffers for a few peers, 4 and 2 MiB with their
 * defaults, and a large message or two. A lower limit cannot work; a higher
 * one may still be too small for many peers, and then the transport says so.
 */
#define RUN_MEMORY_NEEDED ((size_t)16 << 20)

/* Shared memory of two ranks, as measured; every further one takes about half
 * as much. */
#define RUN_SOFT_ROOM_NEEDED ((size_t)2 << 20)

/* s for UCX to say its version. */
#define RUN_ASK_TIMEOUT 10.0

typedef struct run_opts {
    const char *device; /* auto, soft, or a name */
    const char *tls;
    int print_env;
    int is_quiet;
    char **command;     /* ends with NULL; empty when there is none */
} run_opts_t;

static const struct argp_option run_options[] = {
    {"device", 'd', "WHICH", 0,
     "auto: a usable RDMA device, else soft. soft: the software device, for this "
     "host only. NAME: that RDMA device, such as mlx5_0 (auto)", 1},
    {"tls", 't', "LIST", 0,
     "UCX transports; others for comparison on the same device: "
     "rc_verbs,ud_verbs or tcp (daqiri)", 1},
    {"print-env", 'p', NULL, 0,
     "Print what would be set, for a shell's eval; run nothing", 2},
    {"quiet", 'q', NULL, 0, "Say only what is wrong", 2},
    {NULL}
};

/* The first word that is no option is COMMAND, and all others are its own. */
static error_t run_parse(int key, char *arg, struct argp_state *state)
{
    run_opts_t *opts = state->input;

    switch (key) {
    case 'd':
        opts->device = daqiri_args_name(state, "device", arg);
        return 0;
    case 't':
        opts->tls = daqiri_args_name(state, "tls", arg);
        if (arg[strspn(arg, ", ")] == '\0') {
            argp_error(state, "--tls names no transport");
        }
        return 0;
    case 'p':
        opts->print_env = 1;
        return 0;
    case 'q':
        opts->is_quiet = 1;
        return 0;
    case ARGP_KEY_ARG:
        opts->command = &state->argv[state->next - 1];
        state->next   = state->argc;
        return 0;
    case ARGP_KEY_END:
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

/* What is not wrong, for a person. */
static void run_say(const run_opts_t *opts, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void run_say(const run_opts_t *opts, const char *format, ...)
{
    va_list args;

    if (opts->is_quiet) {
        return;
    }
    va_start(args, format);
    fprintf(stderr, RUN_SPEAKER ": ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
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

/* A full folder of shared memory stops the software device as surely as a
 * locked memory limit stops another. */
static int run_refuse_soft(unsigned long long room, int error)
{
    if (error != 0) {
        fprintf(stderr, RUN_SPEAKER ": device " DAQIRI_SOFT_DEVICE " cannot be "
                "used: " DAQIRI_SOFT_DEVICE_FOLDER ": %s\n", strerror(error));
    } else {
        fprintf(stderr, RUN_SPEAKER ": device " DAQIRI_SOFT_DEVICE " cannot be "
                "used: " DAQIRI_SOFT_DEVICE_FOLDER " has %llu KiB left, at "
                "least %zu KiB are needed\n", room >> 10,
                RUN_SOFT_ROOM_NEEDED >> 10);
    }
    return DAQIRI_EXIT_FAILED;
}

static int run_choose_soft(const run_opts_t *opts, const char *why,
                           daqiri_job_device_t *chosen)
{
    unsigned long long room = 0;
    int error               = daqiri_soft_device_room(&room);

    if ((error != 0) || (room < RUN_SOFT_ROOM_NEEDED)) {
        return run_refuse_soft(room, error);
    }
    chosen->is_soft = 1;
    snprintf(chosen->name, sizeof(chosen->name), DAQIRI_SOFT_DEVICE);
    chosen->port = 1;
    run_say(opts, "device %s:1, in software and for this host only: %s",
            chosen->name, why);
    return RUN_GO_ON;
}

/* A limit on locked memory is worth a sentence only where it is the cause. */
static int run_refuse_memory(const daqiri_device_t *device, int error)
{
    struct rlimit limit;

    if ((error == ENOMEM) && (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) &&
        (limit.rlim_cur != RLIM_INFINITY)) {
        fprintf(stderr, RUN_SPEAKER ": device %s cannot be used: this user "
                "may lock %llu KiB of memory, at least %zu KiB are needed "
                "(ulimit -l; raise it in /etc/security/limits.conf)\n",
                device->name, (unsigned long long)(limit.rlim_cur >> 10),
                RUN_MEMORY_NEEDED >> 10);
    } else {
        fprintf(stderr, RUN_SPEAKER ": device %s cannot be used: it does not "
                "register %zu KiB of memory: %s\n", device->name,
                RUN_MEMORY_NEEDED >> 10, strerror(error));
    }
    return DAQIRI_EXIT_FAILED;
}

static int run_choose_device(const run_opts_t *opts,
                             const daqiri_device_t *device, const char *why,
                             daqiri_job_device_t *chosen)
{
    int error = daqiri_device_try_memory(device, RUN_MEMORY_NEEDED);

    if (error != 0) {
        return run_refuse_memory(device, error);
    }
    chosen->is_soft = 0;
    snprintf(chosen->name, sizeof(chosen->name), "%s", device->name);
    chosen->port = device->port;
    run_say(opts, "device %s:%u: %s", device->name, device->port, why);
    return RUN_GO_ON;
}

static int run_choose_auto(const run_opts_t *opts,
                           const daqiri_device_t *devices, size_t count,
                           daqiri_job_device_t *chosen)
{
    char why[128];
    size_t i;

    for (i = 0; i < count; ++i) {
        if (devices[i].state == DAQIRI_DEVICE_USABLE) {
            return run_choose_device(opts, &devices[i],
                                     "the first usable RDMA device", chosen);
        }
        daqiri_device_why_not(&devices[i], why, sizeof(why));
        run_say(opts, "device %s is not usable: %s", devices[i].name, why);
    }
    return run_choose_soft(opts, (count == 0) ? "there is no RDMA device" :
                                                "no RDMA device is usable", chosen);
}

static int run_refuse_name(const daqiri_device_t *devices, size_t count,
                           const char *name)
{
    size_t i;

    fprintf(stderr, RUN_SPEAKER ": there is no device '%s'; there are: ", name);
    for (i = 0; i < count; ++i) {
        fprintf(stderr, "%s, ", devices[i].name);
    }
    fprintf(stderr, "soft\n");
    return DAQIRI_EXIT_FAILED;
}

static int run_choose_named(const run_opts_t *opts,
                            const daqiri_device_t *devices, size_t count,
                            daqiri_job_device_t *chosen)
{
    char why[128];
    size_t i;

    for (i = 0; (i < count) && (strcmp(devices[i].name, opts->device) != 0); ++i) {
    }
    if (i == count) {
        return run_refuse_name(devices, count, opts->device);
    }
    if (devices[i].state != DAQIRI_DEVICE_USABLE) {
        daqiri_device_why_not(&devices[i], why, sizeof(why));
        fprintf(stderr, RUN_SPEAKER ": device %s cannot be used: %s\n",
                devices[i].name, why);
        return DAQIRI_EXIT_FAILED;
    }
    return run_choose_device(opts, &devices[i], "asked for with --device", chosen);
}

static int run_choose(const run_opts_t *opts, daqiri_job_device_t *chosen)
{
    daqiri_device_t *devices;
    size_t count;
    int error, status;

    if ((strcmp(opts->device, "soft") == 0) ||
        (strcmp(opts->device, DAQIRI_SOFT_DEVICE) == 0)) {
        return run_choose_soft(opts, "asked for with --device", chosen);
    }

    error = daqiri_devices_list(&devices, &count);
    if (error != 0) {
        fprintf(stderr, RUN_SPEAKER ": RDMA devices cannot be listed: %s\n",
                strerror(error));
        return DAQIRI_EXIT_FAILED;
    }
    if (strcmp(opts->device, "auto") == 0) {
        status = run_choose_auto(opts, devices, count, chosen);
    } else {
        status = run_choose_named(opts, devices, count, chosen);
    }
    free(devices);
    return status;
}

/* What a job on several hosts will find out at its first message. Names that do
 * not look alike may be one host, so it is only said. */
static void run_say_hosts(const run_opts_t *opts,
                          const daqiri_job_device_t *device)
{
    char names[256], way[512];
    size_t count = daqiri_command_hosts(opts->command, names, sizeof(names));

    if (!device->is_soft || (count < 2)) {
        return;
    }
    snprintf(way, sizeof(way), daqiri_job_has_network(opts->tls) ?
             "what goes from one to another goes over the other transports of "
             "--tls" :
             "over it no rank reaches those of another host; an RDMA NIC or "
             "Soft-RoCE does (--device), and tcp beside it (--tls %.200s,tcp)",
             opts->tls);
    run_say(opts, "device %s:%u connects " DAQIRI_SOFT_REACH ", and this job has "
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
        run_say(opts, "way into UCX: LD_PRELOAD, which works for all; which UCX %s "
                "loads is not known beforehand", ucx->whose);
        return;
    }
    if (daqiri_ucx_loads_plugin(ucx)) {
        run_say(opts, "way into UCX %s of %s (%s): " DAQIRI_UCX_PLUGIN_PATH ", from "
                "which it loads the plugin itself", ucx->version, ucx->whose,
                ucx->libraries[DAQIRI_UCX_UCT]);
    } else if (daqiri_ucx_has_plugin_path(ucx)) {
        run_say(opts, "way into UCX %s of %s (%s): LD_PRELOAD, for UCX_MODULES=%s "
                "keeps it from loading the plugin", ucx->version, ucx->whose,
                ucx->libraries[DAQIRI_UCX_UCT], (modules != NULL) ? modules : "");
    } else {
        run_say(opts, "way into UCX %s of %s (%s): LD_PRELOAD", ucx->version,
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
    run_say_way(opts, ucx);
    return RUN_GO_ON;
}

static int run_exec(char **command)
{
    int error;

    execvp(command[0], command);
    error = errno;
    return run_refuse_command(command[0], error);
}

int daqiri_run(int argc, char **argv)
{
    run_opts_t opts            = {
        .device  = "auto",
        .tls     = "daqiri",
        .command = argv + argc
    };
    daqiri_job_device_t device = {0};
    daqiri_env_list_t env_list = {0};
    static daqiri_ucx_t ucx;
    int status;

    daqiri_args_parse_command(&run_argp, argc, argv, &opts);
    status = run_check_command(&opts);
    if (status != RUN_GO_ON) {
        return status;
    }
    if (daqiri_job_needs_device(opts.tls)) {
        status = run_choose(&opts, &device);
        if (status != RUN_GO_ON) {
            return status;
        }
    } else {
        run_say(&opts, "no RDMA device: UCX_TLS=%s uses none", opts.tls);
    }
    run_say_hosts(&opts, &device);
    if (daqiri_job_uses_plugin(opts.tls)) {
        status = run_choose_way(&opts, &device, &ucx);
        if (status != RUN_GO_ON) {
            return status;
        }
    }

    status = daqiri_job_env(&env_list, opts.tls, &device, &ucx, RUN_SPEAKER);
    if (status == 0) {
        if (opts.print_env) {
            daqiri_env_list_print(&env_list, stdout);
        } else {
            daqiri_env_list_apply(&env_list, RUN_SPEAKER);
            status = run_exec(opts.command);
        }
    }
    daqiri_env_list_cleanup(&env_list);
    return status;
}
