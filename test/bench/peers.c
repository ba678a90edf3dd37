/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * How much memory a rank needs for its peers: five alltoalls of 8 bytes, so that each
 * rank has sent and received by each connection, and then the pages that are this
 * process's alone.
 *
 * Rank 0 prints "NP LEAST MOST", the private kB of the rank with least and of the one
 * with most.
 */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 5 };

/* Private pages of this process, kB (proc(5), smaps_rollup). -1: they cannot be read. */
static long private_kb(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    long sum   = 0, kb;
    char line[256];

    if (file == NULL) {
        return -1;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        if ((sscanf(line, "Private_Clean: %ld kB", &kb) == 1) ||
            (sscanf(line, "Private_Dirty: %ld kB", &kb) == 1)) {
            sum += kb;
        }
    }
    fclose(file);
    return sum;
}

int main(int argc, char **argv)
{
    int rank, np, round, peer, is_right = 1;
    long mine, least, most;
    double *tx, *rx;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &np);
    tx = calloc((size_t)np, sizeof(*tx));
    rx = calloc((size_t)np, sizeof(*rx));
    if ((tx == NULL) || (rx == NULL)) {
        fprintf(stderr, "peers: rank %d has no memory\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (round = 0; round < ROUNDS; ++round) {
        for (peer = 0; peer < np; ++peer) {
            tx[peer] = rank * 1000.0 + peer + round;
        }
        MPI_Alltoall(tx, 1, MPI_DOUBLE, rx, 1, MPI_DOUBLE, MPI_COMM_WORLD);
        for (peer = 0; peer < np; ++peer) {
            is_right &= rx[peer] == peer * 1000.0 + rank + round;
        }
    }
    mine = private_kb();
    MPI_Reduce(&mine, &least, 1, MPI_LONG, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (!is_right || (mine < 0)) {
        fprintf(stderr, "peers: rank %d: %s\n", rank,
                is_right ? "smaps_rollup cannot be read" : "wrong data");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (rank == 0) {
        printf("%d %ld %ld\n", np, least, most);
    }
    /* Not MPI_Finalize(): over tcp MPICH may hang in it where CPUs are few, because one
     * rank waits for the answer of another that has left UCX already. */
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    _exit(0);
}
