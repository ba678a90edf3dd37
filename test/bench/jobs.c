/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every MPI program does, with many ranks: alltoalls of 64 bytes, allreduces and
 * barriers, every result checked, and MPI_Finalize(). `contrib/bench jobs` takes the time
 * of the whole job.
 */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 5, WORDS = 8 };

/* The word that rank sends to peer in that round. */
static double word_of(int rank, int peer, int round, int word)
{
    return ((double)rank * 4096 + peer) * 64 + round * WORDS + word;
}

static int alltoall(double *tx, double *rx, int rank, int np, int round)
{
    int peer, word, is_right = 1;

    for (peer = 0; peer < np; ++peer) {
        for (word = 0; word < WORDS; ++word) {
            tx[peer * WORDS + word] = word_of(rank, peer, round, word);
        }
    }
    MPI_Alltoall(tx, WORDS, MPI_DOUBLE, rx, WORDS, MPI_DOUBLE, MPI_COMM_WORLD);
    for (peer = 0; peer < np; ++peer) {
        for (word = 0; word < WORDS; ++word) {
            is_right &= rx[peer * WORDS + word] == word_of(peer, rank, round, word);
        }
    }
    return is_right;
}

int main(int argc, char **argv)
{
    int rank, np, round, sum, is_right = 1;
    double *tx, *rx;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &np);
    tx = calloc((size_t)np * WORDS, sizeof(*tx));
    rx = calloc((size_t)np * WORDS, sizeof(*rx));
    if ((tx == NULL) || (rx == NULL)) {
        fprintf(stderr, "jobs: rank %d has no memory\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (round = 0; round < ROUNDS; ++round) {
        is_right &= alltoall(tx, rx, rank, np, round);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        is_right &= sum == np * (np - 1) / 2;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (!is_right) {
        fprintf(stderr, "jobs: rank %d: wrong data\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    free(tx);
    free(rx);
    if (rank == 0) {
        printf("%d ranks\n", np);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
