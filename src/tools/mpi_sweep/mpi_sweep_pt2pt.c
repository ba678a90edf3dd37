/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/pattern.h"
#include "tools/mpi_sweep/mpi_sweep.h"

#include <stdio.h>

#define SWEEP_TAG     1
#define SWEEP_ACK_TAG 2

static void sweep_count(mpi_sweep_t *sweep, size_t size)
{
    sweep->tally.pt2pt_messages += 1;
    sweep->tally.pt2pt_bytes    += size;
}

static void sweep_fill_tx(mpi_sweep_t *sweep,
                          const mpi_sweep_round_t *round, int peer)
{
    unsigned op;

    for (op = 0; op < round->ops; ++op) {
        daqiri_pattern_fill(sweep->tx + op * round->stride, round->size,
                            mpi_sweep_key(sweep, round, op, sweep->rank,
                                          peer));
    }
}

static void sweep_check_length(mpi_sweep_t *sweep,
                               const mpi_sweep_round_t *round, unsigned op,
                               int peer)
{
    int count;

    MPI_Get_count(&sweep->statuses[op], MPI_BYTE, &count);
    if (((size_t)count != round->size) && mpi_sweep_wrong(sweep)) {
        fprintf(stderr,
                "daqiri-mpi-sweep: rank %d: %s: message %llu from rank %d has "
                "%d bytes instead of %zu\n",
                sweep->rank, mpi_sweep_tests[round->test].name,
                (unsigned long long)(round->serial + op), peer, count,
                round->size);
    }
}

static void sweep_check_rx(mpi_sweep_t *sweep,
                           const mpi_sweep_round_t *round, int peer)
{
    unsigned op;

    for (op = 0; op < round->ops; ++op) {
        sweep_check_length(sweep, round, op, peer);
        mpi_sweep_check(sweep, round, op, peer, sweep->rank,
                        sweep->rx + op * round->stride);
    }
}

static void sweep_send(mpi_sweep_t *sweep,
                       const mpi_sweep_round_t *round, unsigned op, int peer)
{
    MPI_Send(sweep->tx + op * round->stride, (int)round->size, MPI_BYTE, peer,
             SWEEP_TAG, MPI_COMM_WORLD);
    sweep_count(sweep, round->size);
}

static void sweep_recv(mpi_sweep_t *sweep,
                       const mpi_sweep_round_t *round, unsigned op, int peer)
{
    MPI_Recv(sweep->rx + op * round->stride, (int)round->size, MPI_BYTE, peer,
             SWEEP_TAG, MPI_COMM_WORLD, &sweep->statuses[op]);
}

double mpi_sweep_round_latency(mpi_sweep_t *sweep,
                               const mpi_sweep_round_t *round)
{
    int takes_part = sweep->rank < 2;
    int peer       = 1 - sweep->rank;
    double start, seconds;
    unsigned op;

    if (takes_part) {
        sweep_fill_tx(sweep, round, peer);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (!takes_part) {
        return 0;
    }

    start = MPI_Wtime();
    for (op = 0; op < round->ops; ++op) {
        if (sweep->rank == 0) {
            sweep_send(sweep, round, op, peer);
            sweep_recv(sweep, round, op, peer);
        } else {
            sweep_recv(sweep, round, op, peer);
            sweep_send(sweep, round, op, peer);
        }
    }
    seconds = MPI_Wtime() - start;

    sweep_check_rx(sweep, round, peer);
    return seconds;
}

static unsigned sweep_post_recvs(mpi_sweep_t *sweep,
                                 const mpi_sweep_round_t *round,
                                 unsigned first, unsigned count, int peer)
{
    unsigned i;

    for (i = 0; i < count; ++i) {
        MPI_Irecv(sweep->rx + (first + i) * round->stride, (int)round->size,
                  MPI_BYTE, peer, SWEEP_TAG, MPI_COMM_WORLD,
                  &sweep->requests[i]);
    }
    return count;
}

static unsigned sweep_post_sends(mpi_sweep_t *sweep,
                                 const mpi_sweep_round_t *round,
                                 unsigned first, unsigned count, int peer,
                                 unsigned num_requests)
{
    unsigned i;

    for (i = 0; i < count; ++i) {
        MPI_Isend(sweep->tx + (first + i) * round->stride, (int)round->size,
                  MPI_BYTE, peer, SWEEP_TAG, MPI_COMM_WORLD,
                  &sweep->requests[num_requests + i]);
        sweep_count(sweep, round->size);
    }
    return count;
}

/*
 * One window. The receives come first in the list of requests, so that their
 * statuses, kept for the check, lie where the operations' numbers say.
 */
static void sweep_window(mpi_sweep_t *sweep,
                         const mpi_sweep_round_t *round, unsigned first,
                         int peer, int sends, int receives)
{
    unsigned count = round->ops - first;
    unsigned num   = 0;

    if (count > MPI_SWEEP_WINDOW) {
        count = MPI_SWEEP_WINDOW;
    }
    if (receives) {
        num += sweep_post_recvs(sweep, round, first, count, peer);
    }
    if (sends) {
        num += sweep_post_sends(sweep, round, first, count, peer, num);
    }
    MPI_Waitall((int)num, sweep->requests, sweep->statuses + first);
}

/* The window's receiver says that it has everything. */
static void sweep_acknowledge(mpi_sweep_t *sweep, int peer, int is_receiver)
{
    if (is_receiver) {
        MPI_Send(NULL, 0, MPI_BYTE, peer, SWEEP_ACK_TAG, MPI_COMM_WORLD);
        sweep_count(sweep, 0);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, peer, SWEEP_ACK_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }
}

/* Windows between this rank and its peer; the lower rank of the two leads. */
static double sweep_stream(mpi_sweep_t *sweep,
                           const mpi_sweep_round_t *round, int peer,
                           int both_ways)
{
    int takes_part = peer >= 0;
    int leads      = sweep->rank < peer;
    int sends      = leads || both_ways;
    int receives   = !leads || both_ways;
    double start, seconds;
    unsigned first;

    if (takes_part && sends) {
        sweep_fill_tx(sweep, round, peer);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (!takes_part) {
        return 0;
    }

    start = MPI_Wtime();
    for (first = 0; first < round->ops; first += MPI_SWEEP_WINDOW) {
        sweep_window(sweep, round, first, peer, sends, receives);
        sweep_acknowledge(sweep, peer, !leads);
    }
    seconds = MPI_Wtime() - start;

    if (receives) {
        sweep_check_rx(sweep, round, peer);
    }
    return seconds;
}

static int sweep_first_pair_peer(const mpi_sweep_t *sweep)
{
    return (sweep->rank < 2) ? (1 - sweep->rank) : -1;
}

/* Rank i of the lower half with rank i of the upper half; of an odd number
 * the last one has nobody. */
static int sweep_all_pairs_peer(const mpi_sweep_t *sweep)
{
    int half = sweep->np / 2;

    if (sweep->rank >= 2 * half) {
        return -1;
    }
    return (sweep->rank < half) ? (sweep->rank + half) : (sweep->rank - half);
}

double mpi_sweep_round_bandwidth(mpi_sweep_t *sweep,
                                 const mpi_sweep_round_t *round)
{
    return sweep_stream(sweep, round, sweep_first_pair_peer(sweep), 0);
}

double mpi_sweep_round_bibandwidth(mpi_sweep_t *sweep,
                                   const mpi_sweep_round_t *round)
{
    return sweep_stream(sweep, round, sweep_first_pair_peer(sweep), 1);
}

double mpi_sweep_round_rate(mpi_sweep_t *sweep,
                            const mpi_sweep_round_t *round)
{
    return sweep_stream(sweep, round, sweep_all_pairs_peer(sweep), 0);
}
