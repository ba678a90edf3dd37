/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/parse.h"
#include "tools/mpi_sweep/mpi_sweep.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SWEEP_EXIT_USAGE 2
#define SWEEP_GO_ON      (-1)

/* MPI counts bytes in int. */
#define SWEEP_LARGEST_SIZE ((size_t)512 << 20)

static const struct option sweep_long_options[] = {
    {"tests",   required_argument, NULL, 't'},
    {"min",     required_argument, NULL, 'm'},
    {"max",     required_argument, NULL, 'M'},
    {"step",    required_argument, NULL, 's'},
    {"seconds", required_argument, NULL, 'T'},
    {"ops",     required_argument, NULL, 'n'},
    {"median",  no_argument,       NULL, 'd'},
    {"seed",    required_argument, NULL, 'S'},
    {"version", no_argument,       NULL, 'V'},
    {"help",    no_argument,       NULL, 'h'},
    {NULL,      0,                 NULL, 0}
};

static void sweep_help(void)
{
    unsigned i;

    printf("Usage: mpirun -np N daqiri mpi-sweep [OPTION]...\n"
           "Measures MPI by message size and checks every byte.\n"
           "\n"
           "  -t, --tests LIST     tests to run, with commas between (all)\n"
           "  -m, --min SIZE       smallest message (0)\n"
           "  -M, --max SIZE       largest message (4M)\n"
           "  -s, --step N         each size is N times the last one (2)\n"
           "  -T, --seconds S      time for the whole sweep, roughly (30)\n"
           "  -n, --ops N          timed operations per size, at most\n"
           "  -d, --median         show the median of the rounds\n"
           "  -S, --seed N         other data (1)\n"
           "  -V, --version        print the version\n"
           "  -h, --help           print this\n"
           "\n"
           "Tests:\n");
    for (i = 0; i < MPI_SWEEP_NUM_TESTS; ++i) {
        printf("  %-10s %s\n", mpi_sweep_tests[i].name,
               mpi_sweep_tests[i].what);
    }
}

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

static int sweep_refuse(const char *format, ...)
{
    va_list args;

    if (sweep_speaks()) {
        fprintf(stderr, "daqiri-mpi-sweep: ");
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fprintf(stderr, "\n");
    }
    return SWEEP_EXIT_USAGE;
}

/* Each of these returns SWEEP_GO_ON or a status to exit with. */

static int sweep_parse_tests(const char *list, uint32_t *tests_p)
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
            return sweep_refuse("--tests %s: there is no test '%.*s'; --help "
                                "names them", list, (int)length, name);
        }
        tests |= UINT32_C(1) << i;
        name  += length;
    } while (*name++ == ',');

    *tests_p = tests;
    return SWEEP_GO_ON;
}

static int sweep_parse_number(const char *option, const char *value,
                              uint64_t min, uint64_t max, uint64_t *number_p)
{
    uint64_t number;

    if ((daqiri_parse_u64(value, &number) != 0) || (number < min) ||
        (number > max)) {
        return sweep_refuse("--%s %s: not a whole number from %" PRIu64
                            " to %" PRIu64, option, value, min, max);
    }
    *number_p = number;
    return SWEEP_GO_ON;
}

static int sweep_parse_bytes(const char *option, const char *value,
                             size_t *size_p)
{
    if ((daqiri_parse_size(value, size_p) != 0) ||
        (*size_p > SWEEP_LARGEST_SIZE)) {
        return sweep_refuse("--%s %s: not a size up to 512M, such as 4096, "
                            "64K or 4M", option, value);
    }
    return SWEEP_GO_ON;
}

static int sweep_parse_seconds(const char *value, double *seconds_p)
{
    if (daqiri_parse_seconds(value, seconds_p) != 0) {
        return sweep_refuse("--seconds %s: not a number of seconds above 0",
                            value);
    }
    return SWEEP_GO_ON;
}

static int sweep_opt(int letter, const char *value, mpi_sweep_opts_t *opts)
{
    switch (letter) {
    case 't':
        return sweep_parse_tests(value, &opts->tests);
    case 'm':
        return sweep_parse_bytes("min", value, &opts->min_size);
    case 'M':
        return sweep_parse_bytes("max", value, &opts->max_size);
    case 's':
        return sweep_parse_number("step", value, 2, 1024, &opts->step);
    case 'T':
        return sweep_parse_seconds(value, &opts->seconds);
    case 'n':
        return sweep_parse_number("ops", value, 1, 1000000000, &opts->max_ops);
    case 'd':
        opts->is_median = 1;
        return SWEEP_GO_ON;
    case 'S':
        return sweep_parse_number("seed", value, 0, UINT64_MAX, &opts->seed);
    case 'V':
        if (sweep_speaks()) {
            printf("daqiri-mpi-sweep %s\n", DAQIRI_VERSION);
        }
        return 0;
    case 'h':
        if (sweep_speaks()) {
            sweep_help();
        }
        return 0;
    default:
        return sweep_refuse("--help says what there is");
    }
}

int mpi_sweep_opts_parse(int argc, char **argv, mpi_sweep_opts_t *opts_p)
{
    int letter, status;

    *opts_p = (mpi_sweep_opts_t){
        .min_size = 0,
        .max_size = (size_t)4 << 20,
        .step     = 2,
        .seconds  = 30,
        .seed     = 1,
        .tests    = (UINT32_C(1) << MPI_SWEEP_NUM_TESTS) - 1
    };

    opterr = sweep_speaks();
    while ((letter = getopt_long(argc, argv, "t:m:M:s:T:n:dS:Vh",
                                 sweep_long_options, NULL)) != -1) {
        status = sweep_opt(letter, optarg, opts_p);
        if (status != SWEEP_GO_ON) {
            return status;
        }
    }
    if (optind < argc) {
        return sweep_refuse("%s: this program takes options only",
                            argv[optind]);
    }
    if (opts_p->min_size > opts_p->max_size) {
        return sweep_refuse("--min is larger than --max");
    }
    return SWEEP_GO_ON;
}
