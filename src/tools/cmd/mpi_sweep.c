/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * `daqiri mpi-sweep`: becomes the program that was built for the MPI whose
 * starter has started it. Each MPI has one of its own, in a folder that nobody
 * has in PATH.
 */

#include "tools/base/locate.h"
#include "tools/cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct start_mpi {
    const char *name;
    const char *program;
    const char *signs[4]; /* variables that its starter sets */
} start_mpi_t;

/* PMIX_RANK: another starter than its own, such as srun. Debian's MPICH speaks
 * PMI. */
static const start_mpi_t start_mpis[] = {
    {"Open MPI", "daqiri-mpi-sweep-ompi", {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK"}},
    {"MPICH", "daqiri-mpi-sweep-mpich", {"PMI_RANK", "PMI_SIZE", "PMI_FD"}}
};

#define START_NUM_MPIS (sizeof(start_mpis) / sizeof(start_mpis[0]))

static int start_is_here(const start_mpi_t *mpi)
{
    size_t i;

    for (i = 0; mpi->signs[i] != NULL; ++i) {
        if (getenv(mpi->signs[i]) != NULL) {
            return 1;
        }
    }
    return 0;
}

/* The words that need no MPI; which program prints them is all the same. */
static int start_is_for_print(int argc, char **argv)
{
    static const char *const words[] = {"-h", "--help", "-help", "-V",
                                        "--version", "-version"};
    size_t i;

    for (i = 0; (argc == 2) && (i < sizeof(words) / sizeof(words[0])); ++i) {
        if (strcmp(argv[1], words[i]) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Returns only if it cannot be done. */
static int start_become(const start_mpi_t *mpi, char **argv)
{
    char path[PATH_MAX], tried[PATH_MAX];

    if (daqiri_locate_program(mpi->program, path, tried) != 0) {
        fprintf(stderr, "%s: the sweep for %s, %s, is in none of: %s (Debian's "
                "package of it is ucx-daqiri-mpi)\n",
                argv[0], mpi->name, mpi->program, tried);
        return DAQIRI_EXIT_FAILED;
    }
    execv(path, argv);
    fprintf(stderr, "%s: %s cannot be started: %s\n", argv[0], path,
            strerror(errno));
    return DAQIRI_EXIT_FAILED;
}

int daqiri_mpi_sweep(int argc, char **argv)
{
    char path[PATH_MAX], tried[PATH_MAX];
    const start_mpi_t *mpi;

    for (mpi = start_mpis; mpi < start_mpis + START_NUM_MPIS; ++mpi) {
        if (start_is_here(mpi)) {
            return start_become(mpi, argv);
        }
    }
    if (!start_is_for_print(argc, argv)) {
        fprintf(stderr, "%s: no MPI has started it; for example: daqiri run "
                "mpirun -np 2 daqiri mpi-sweep\n", argv[0]);
        return DAQIRI_EXIT_USAGE;
    }
    mpi = start_mpis;
    if (daqiri_locate_program(mpi->program, path, tried) != 0) {
        ++mpi;
    }
    return start_become(mpi, argv);
}
