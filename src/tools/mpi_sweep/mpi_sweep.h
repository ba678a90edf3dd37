/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The MPI sweep: what MPI delivers over whatever it runs on, by message size.
 *
 * A test is run at one size after another; one (test, size) is a cell. A cell
 * is measured in rounds. A round fills its buffers, synchronises, runs `ops`
 * operations against the clock, each with a buffer of its own, and then checks
 * every byte that was received. Filling and checking are outside the clock;
 * separate buffers are what makes that possible. Rank 0 decides after each
 * round how many operations the next one has, from the time that is left and
 * from whether all data was right, and tells the others, so that all ranks
 * leave a cell together.
 *
 * Every rank counts what it sends. For collectives it can only know a lower
 * bound: what any algorithm must send. What the library sends on its own
 * account (synchronisation, rank 0's decisions) is left out, so the counts
 * never exceed the truth.
 *
 * One thread per rank. Buffers live as long as the sweep.
 */

#ifndef DAQIRI_MPI_SWEEP_H
#define DAQIRI_MPI_SWEEP_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* Operations in one round, at most. A thousand of the fastest operations
 * last long enough for the clock; their buffers still fit a second-level
 * cache. */
#define MPI_SWEEP_MAX_OPS 1024

/* The same where the median of the rounds is asked for, so that there are many
 * of them and what interrupts the machine spoils few: one window. */
#define MPI_SWEEP_MEDIAN_OPS 64

/* Bytes that the operations of one round may use in each direction; a single
 * operation that is larger gets what it needs. */
#define MPI_SWEEP_BUFFER ((size_t)16 << 20)

/* Messages in flight in the bandwidth tests, as is usual in this field. */
#define MPI_SWEEP_WINDOW 64

typedef struct mpi_sweep_opts {
    size_t min_size;
    size_t max_size;
    uint64_t step;    /* each size is this many times the last one */
    double seconds;   /* for the whole sweep */
    uint64_t max_ops; /* timed operations per cell; 0: time decides */
    uint64_t seed;
    uint32_t tests;   /* bit i: test i of mpi_sweep_tests */
    int is_median;    /* show the median round, not all of them together */
    double interval;  /* s between lines about the cell under way; 0: none */
} mpi_sweep_opts_t;

typedef struct mpi_sweep_tally {
    uint64_t pt2pt_messages;
    uint64_t pt2pt_bytes;
    uint64_t collective_messages_min;
    uint64_t collective_bytes_min;
} mpi_sweep_tally_t;

typedef struct mpi_sweep {
    mpi_sweep_opts_t opts;
    int rank;
    int np;
    char *tx;
    char *rx;
    uint32_t *sum;      /* room for one operation: what a reduction must give */
    size_t buffer_size; /* of tx and of rx */
    MPI_Request *requests; /* room for 2 x MPI_SWEEP_MAX_OPS */
    MPI_Status *statuses;  /* the same */
    mpi_sweep_tally_t tally;
    double started;
    unsigned cells_left;
    int wrong;          /* this rank, or after a round any, got wrong data */
} mpi_sweep_t;

/* One round of one cell. */
typedef struct mpi_sweep_round {
    uint32_t test;
    size_t size;
    size_t stride;   /* between the buffers of two operations */
    unsigned ops;
    uint64_t serial; /* of its first operation */
} mpi_sweep_round_t;

/*
 * Runs one round and returns the seconds that this rank's clock says it took;
 * 0 on a rank that has no part in the test.
 */
typedef double (*mpi_sweep_round_func_t)(mpi_sweep_t *sweep,
                                         const mpi_sweep_round_t *round);

/* What the seconds of a cell are turned into. */
typedef enum mpi_sweep_unit {
    MPI_SWEEP_LATENCY,     /* us: half of rank 0's round trip */
    MPI_SWEEP_BANDWIDTH,   /* Gb/s: one way */
    MPI_SWEEP_BIBANDWIDTH, /* Gb/s: both ways added */
    MPI_SWEEP_RATE,        /* Gb/s and messages/s: all pairs added */
    MPI_SWEEP_AVERAGE      /* us: mean of all ranks */
} mpi_sweep_unit_t;

typedef struct mpi_sweep_test {
    const char *name;
    const char *what; /* one line for --help and the table's heading */
    mpi_sweep_unit_t unit;
    mpi_sweep_round_func_t round;
    size_t smallest;   /* size that makes sense */
    size_t granule;    /* sizes must be multiples of it; 0: has no size */
    int is_all_to_all; /* an operation needs np times its size */
} mpi_sweep_test_t;

#define MPI_SWEEP_NUM_TESTS 8
extern const mpi_sweep_test_t mpi_sweep_tests[MPI_SWEEP_NUM_TESTS];

/* Fills *opts_p from the command line; ends the program for --help, --version and usage
 * errors. */
void mpi_sweep_opts_parse(int argc, char **argv, mpi_sweep_opts_t *opts_p);

/* The key of operation `op` of this round, from one rank to another. */
uint64_t mpi_sweep_key(const mpi_sweep_t *sweep,
                       const mpi_sweep_round_t *round, unsigned op,
                       int sender, int receiver);

/*
 * Notes that something received was wrong, which ends the sweep after this
 * round, on all ranks and in order: a job that is torn down may lose the
 * message. Returns whether it is this rank's first, which alone is told.
 */
int mpi_sweep_wrong(mpi_sweep_t *sweep);

/* Checks a buffer of operation `op`; wrong data is told with its place. */
void mpi_sweep_check(mpi_sweep_t *sweep,
                     const mpi_sweep_round_t *round, unsigned op,
                     int sender, int receiver, const void *buffer);

double mpi_sweep_round_latency(mpi_sweep_t *sweep,
                               const mpi_sweep_round_t *round);
double mpi_sweep_round_bandwidth(mpi_sweep_t *sweep,
                                 const mpi_sweep_round_t *round);
double mpi_sweep_round_bibandwidth(mpi_sweep_t *sweep,
                                   const mpi_sweep_round_t *round);
double mpi_sweep_round_rate(mpi_sweep_t *sweep,
                            const mpi_sweep_round_t *round);
double mpi_sweep_round_allreduce(mpi_sweep_t *sweep,
                                 const mpi_sweep_round_t *round);
double mpi_sweep_round_alltoall(mpi_sweep_t *sweep,
                                const mpi_sweep_round_t *round);
double mpi_sweep_round_bcast(mpi_sweep_t *sweep,
                             const mpi_sweep_round_t *round);
double mpi_sweep_round_barrier(mpi_sweep_t *sweep,
                               const mpi_sweep_round_t *round);

#endif
