/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Collectives. Each operation is timed alone and followed by a barrier that
 * is not, so that no rank can run ahead of the others. The bounds counted are
 * what must leave a rank under any algorithm; with one rank that is nothing.
 */

#include "tools/base/pattern.h"
#include "tools/mpi_sweep/mpi_sweep.h"

#include <stdio.h>
#include <string.h>

/* What a reduction starts from belongs to no receiver. */
#define SWEEP_NO_RECEIVER (-1)

static void sweep_count_min(mpi_sweep_t *sweep, size_t bytes)
{
    if (sweep->np > 1) {
        sweep->tally.collective_messages_min += 1;
        sweep->tally.collective_bytes_min    += bytes;
    }
}

static void sweep_allreduce_fill(mpi_sweep_t *sweep,
                                 const mpi_sweep_round_t *round)
{
    unsigned op;

    for (op = 0; op < round->ops; ++op) {
        daqiri_pattern_fill(sweep->tx + op * round->stride, round->size,
                            mpi_sweep_key(sweep, round, op, sweep->rank,
                                          SWEEP_NO_RECEIVER));
    }
}

/*
 * Every rank can work out every other rank's part. Unsigned sums wrap, so the
 * order in which the library adds makes no difference. tx of this operation
 * has been sent and serves as scratch.
 */
static void sweep_allreduce_check(mpi_sweep_t *sweep,
                                  const mpi_sweep_round_t *round,
                                  unsigned op)
{
    uint32_t *part = (uint32_t*)(sweep->tx + op * round->stride);
    uint32_t *got  = (uint32_t*)(sweep->rx + op * round->stride);
    size_t count   = round->size / sizeof(*part);
    size_t i;
    int rank;

    memset(sweep->sum, 0, round->size);
    for (rank = 0; rank < sweep->np; ++rank) {
        daqiri_pattern_fill(part, round->size,
                            mpi_sweep_key(sweep, round, op, rank,
                                          SWEEP_NO_RECEIVER));
        for (i = 0; i < count; ++i) {
            sweep->sum[i] += part[i];
        }
    }

    for (i = 0; (i < count) && (got[i] == sweep->sum[i]); ++i) {
    }
    if ((i < count) && mpi_sweep_wrong(sweep)) {
        fprintf(stderr,
                "daqiri-mpi-sweep: rank %d: allreduce: wrong sum at offset "
                "%zu of operation %llu, size %zu: expected 0x%08x, got 0x%08x\n",
                sweep->rank, i * sizeof(*part),
                (unsigned long long)(round->serial + op), round->size,
                sweep->sum[i], got[i]);
    }
}

double mpi_sweep_round_allreduce(mpi_sweep_t *sweep,
                                 const mpi_sweep_round_t *round)
{
    double seconds = 0;
    double start;
    unsigned op;

    sweep_allreduce_fill(sweep, round);
    for (op = 0; op < round->ops; ++op) {
        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        MPI_Allreduce(sweep->tx + op * round->stride,
                      sweep->rx + op * round->stride,
                      (int)(round->size / sizeof(uint32_t)), MPI_UINT32_T,
                      MPI_SUM, MPI_COMM_WORLD);
        seconds += MPI_Wtime() - start;
        sweep_count_min(sweep, round->size);
    }
    for (op = 0; op < round->ops; ++op) {
        sweep_allreduce_check(sweep, round, op);
    }
    return seconds;
}

static void sweep_alltoall_fill(mpi_sweep_t *sweep,
                                const mpi_sweep_round_t *round)
{
    unsigned op;
    char *block;
    int peer;

    for (op = 0; op < round->ops; ++op) {
        for (peer = 0; peer < sweep->np; ++peer) {
            block = sweep->tx + op * round->stride + peer * round->size;
            daqiri_pattern_fill(block, round->size,
                                mpi_sweep_key(sweep, round, op, sweep->rank,
                                              peer));
        }
    }
}

static void sweep_alltoall_check(mpi_sweep_t *sweep,
                                 const mpi_sweep_round_t *round)
{
    unsigned op;
    int peer;

    for (op = 0; op < round->ops; ++op) {
        for (peer = 0; peer < sweep->np; ++peer) {
            mpi_sweep_check(sweep, round, op, peer, sweep->rank,
                            sweep->rx + op * round->stride +
                                       peer * round->size);
        }
    }
}

double mpi_sweep_round_alltoall(mpi_sweep_t *sweep,
                                const mpi_sweep_round_t *round)
{
    int count      = (int)round->size;
    double seconds = 0;
    double start;
    unsigned op;

    sweep_alltoall_fill(sweep, round);
    for (op = 0; op < round->ops; ++op) {
        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        MPI_Alltoall(sweep->tx + op * round->stride, count, MPI_BYTE,
                     sweep->rx + op * round->stride, count, MPI_BYTE,
                     MPI_COMM_WORLD);
        seconds += MPI_Wtime() - start;
        sweep_count_min(sweep, round->size * (sweep->np - 1));
    }
    sweep_alltoall_check(sweep, round);
    return seconds;
}

static void sweep_bcast_fill(mpi_sweep_t *sweep,
                             const mpi_sweep_round_t *round)
{
    unsigned op;

    for (op = 0; op < round->ops; ++op) {
        daqiri_pattern_fill(sweep->rx + op * round->stride, round->size,
                            mpi_sweep_key(sweep, round, op, 0,
                                          SWEEP_NO_RECEIVER));
    }
}

double mpi_sweep_round_bcast(mpi_sweep_t *sweep,
                             const mpi_sweep_round_t *round)
{
    int is_root    = sweep->rank == 0;
    double seconds = 0;
    double start;
    unsigned op;

    if (is_root) {
        sweep_bcast_fill(sweep, round);
    }
    for (op = 0; op < round->ops; ++op) {
        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        MPI_Bcast(sweep->rx + op * round->stride, (int)round->size, MPI_BYTE,
                  0, MPI_COMM_WORLD);
        seconds += MPI_Wtime() - start;
        if (is_root) {
            sweep_count_min(sweep, round->size);
        }
    }
    for (op = 0; op < round->ops; ++op) {
        mpi_sweep_check(sweep, round, op, 0, SWEEP_NO_RECEIVER,
                        sweep->rx + op * round->stride);
    }
    return seconds;
}

double mpi_sweep_round_barrier(mpi_sweep_t *sweep,
                               const mpi_sweep_round_t *round)
{
    double start;
    unsigned op;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (op = 0; op < round->ops; ++op) {
        MPI_Barrier(MPI_COMM_WORLD);
        sweep_count_min(sweep, 0);
    }
    return MPI_Wtime() - start;
}
