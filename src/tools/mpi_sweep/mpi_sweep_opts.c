/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/args.h"
#include "tools/base/parse.h"
#include "tools/mpi_sweep/mpi_sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* MPI counts bytes in int. */
#define SWEEP_LARGEST_SIZE ((size_t)512 << 20)

static const struct argp_option sweep_options[] = {
    {"tests", 't', "LIST", 0, "Tests to run, with commas between (all)"},
    {"min", 'm', "SIZE", 0, "Smallest message (0)"},
    {"max", 'M', "SIZE", 0, "Largest message (4M)"},
    {"step", 's', "N", 0, "Each size is N times the last one (2)"},
    {"seconds", 'T', "S", 0, "Time for the whole sweep, roughly (30)"},
    {"ops", 'n', "N", 0, "Timed operations per size, at most"},
    {"median", 'd', NULL, 0, "Show the median of the rounds"},
    {"interval", 'i', "TIME", 0, "Tell of the size under way every TIME"},
    {"seed", 'S', "N", 0, "Other data (1)"},
    {"version", 'V', NULL, 0, "Print the version"},
    {NULL}
};

/* A mistake is made by all ranks alike; one of them says so. MPI has not been
 * started yet, so the rank is known only from what the starters set. */
static int sweep_speaks(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                        "PMIX_RANK"};
    const char *rank;
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        rank = getenv(names[i]);
        if (rank != NULL) {
            return strcmp(rank, "0") == 0;
        }
    }
    return 1;
}

static uint32_t sweep_parse_tests(struct argp_state *state, const char *list)
{
    const char *name = list;
    uint32_t tests   = 0;
    size_t length;
    unsigned i;

    do {
        length = strcspn(name, ",");
        for (i = 0; i < MPI_SWEEP_NUM_TESTS; ++i) {
            if ((strlen(mpi_sweep_tests[i].name) == length) &&
                (memcmp(mpi_sweep_tests[i].name, name, length) == 0)) {
                break;
            }
        }
        if (i == MPI_SWEEP_NUM_TESTS) {
            argp_error(state, "--tests %s: there is no test '%.*s'; --help "
                       "names them", list, (int)length, name);
        }
        tests |= UINT32_C(1) << i;
        name  += length;
    } while (*name++ == ',');

    return tests;
}

static double sweep_parse_seconds(struct argp_state *state, const char *value)
{
    double seconds;

    if (daqiri_parse_seconds(value, &seconds) != 0) {
        argp_error(state, "--seconds %s: not a number of seconds above 0", value);
    }
    return seconds;
}

static error_t sweep_parse(int key, char *value, struct argp_state *state)
{
    mpi_sweep_opts_t *opts = state->input;

    switch (key) {
    case 't':
        opts->tests = sweep_parse_tests(state, value);
        return 0;
    case 'm':
        opts->min_size = daqiri_args_size(state, "min", value, 0,
                                          SWEEP_LARGEST_SIZE);
        return 0;
    case 'M':
        opts->max_size = daqiri_args_size(state, "max", value, 0,
                                          SWEEP_LARGEST_SIZE);
        return 0;
    case 's':
        opts->step = daqiri_args_count(state, "step", value, 2, 1024);
        return 0;
    case 'T':
        opts->seconds = sweep_parse_seconds(state, value);
        return 0;
    case 'n':
        opts->max_ops = daqiri_args_count(state, "ops", value, 1, 1000000000);
        return 0;
    case 'd':
        opts->is_median = 1;
        return 0;
    case 'i':
        opts->interval = daqiri_args_interval(state, value);
        return 0;
    case 'S':
        opts->seed = daqiri_args_count(state, "seed", value, 0, UINT64_MAX);
        return 0;
    case 'V':
        printf("daqiri-mpi-sweep %s\n", DAQIRI_VERSION);
        exit(0);
    case ARGP_KEY_ARG:
        argp_error(state, "%s: this program takes options only", value);
        return 0;
    case ARGP_KEY_END:
        if (opts->min_size > opts->max_size) {
            argp_error(state, "--min is larger than --max");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The tests, behind the options. */
static char *sweep_help(int key, const char *text, void *input)
{
    char *tests   = NULL;
    size_t length = 0;
    FILE *stream;
    unsigned i;

    (void)input;
    if (key == ARGP_KEY_HELP_DUP_ARGS_NOTE) {
        return NULL; /* no screen has room for it */
    }
    stream = (key == ARGP_KEY_HELP_POST_DOC) ? open_memstream(&tests, &length) :
                                               NULL;
    if (stream == NULL) {
        return (char*)text;
    }
    fprintf(stream, "Tests:");
    for (i = 0; i < MPI_SWEEP_NUM_TESTS; ++i) {
        fprintf(stream, "\n  %-10s %s", mpi_sweep_tests[i].name,
                mpi_sweep_tests[i].what);
    }
    fclose(stream);
    return tests;
}

static const struct argp_child sweep_children[] = {
    {&daqiri_args_help}, {NULL}
};

static const struct argp sweep_argp = {
    sweep_options, sweep_parse, NULL,
    "Measures MPI by message size, and checks every byte. Start it by mpirun -np 2."
    "\vTests", sweep_children, sweep_help
};

/* Whether only another rank speaks: what this one says goes nowhere. */
static void sweep_be_silent(void)
{
    if (!sweep_speaks() &&
        ((freopen("/dev/null", "w", stdout) == NULL) ||
         (freopen("/dev/null", "w", stderr) == NULL))) {
        exit(1);
    }
}

void mpi_sweep_opts_parse(int argc, char **argv, mpi_sweep_opts_t *opts_p)
{
    int fds[] = {dup(STDOUT_FILENO), dup(STDERR_FILENO)};

    *opts_p = (mpi_sweep_opts_t){
        .min_size = 0,
        .max_size = (size_t)4 << 20,
        .step     = 2,
        .seconds  = 30,
        .seed     = 1,
        .tests    = (UINT32_C(1) << MPI_SWEEP_NUM_TESTS) - 1
    };
    sweep_be_silent();
    daqiri_args_parse(&sweep_argp, argc, argv, opts_p);
    dup2(fds[0], STDOUT_FILENO);
    dup2(fds[1], STDERR_FILENO);
    close(fds[0]);
    close(fds[1]);
}
