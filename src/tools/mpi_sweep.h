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
#define DAQIRI_SWEEP_MAX_OPS 1024

/* The same where the median of the rounds is asked for, so that there are many
 * of them and what interrupts the machine spoils few: one window. */
#define DAQIRI_SWEEP_MEDIAN_OPS 64

/* Bytes that the operations of one round may use in each direction; a single
 * operation that is larger gets what it needs. */
#define DAQIRI_SWEEP_BUFFER ((size_t)16 << 20)

/* Messages in flight in the bandwidth tests, as is usual in this field. */
#define DAQIRI_SWEEP_WINDOW 64

typedef struct daqiri_sweep_opts {
    size_t min_size;
    size_t max_size;
    uint64_t step;    /* each size is this many times the last one */
    double seconds;   /* for the whole sweep */
    uint64_t max_ops; /* timed operations per cell; 0: time decides */
    uint64_t seed;
    uint32_t tests;   /* bit i: test i of daqiri_sweep_tests */
    int is_median;    /* show the median round, not all of them together */
} daqiri_sweep_opts_t;

typedef struct daqiri_sweep_tally {
    uint64_t pt2pt_messages;
    uint64_t pt2pt_bytes;
    uint64_t collective_messages_min;
    uint64_t collective_bytes_min;
} daqiri_sweep_tally_t;

typedef struct daqiri_sweep {
    daqiri_sweep_opts_t opts;
    int rank;
    int np;
    char *tx;
    char *rx;
    uint32_t *sum;      /* room for one operation: what a reduction must give */
    size_t buffer_size; /* of tx and of rx */
    MPI_Request *requests; /* room for 2 x DAQIRI_SWEEP_MAX_OPS */
    MPI_Status *statuses;  /* the same */
    daqiri_sweep_tally_t tally;
    double started;
    unsigned cells_left;
    int wrong;          /* this rank, or after a round any, got wrong data */
} daqiri_sweep_t;

/* One round of one cell. */
typedef struct daqiri_sweep_round {
    uint32_t test;
    size_t size;
    size_t stride;   /* between the buffers of two operations */
    unsigned ops;
    uint64_t serial; /* of its first operation */
} daqiri_sweep_round_t;

/*
 * Runs one round and returns the seconds that this rank's clock says it took;
 * 0 on a rank that has no part in the test.
 */
typedef double (*daqiri_sweep_round_func_t)(daqiri_sweep_t *sweep,
                                            const daqiri_sweep_round_t *round);

/* What the seconds of a cell are turned into. */
typedef enum daqiri_sweep_unit {
    DAQIRI_SWEEP_LATENCY,     /* us: half of rank 0's round trip */
    DAQIRI_SWEEP_BANDWIDTH,   /* MB/s: one way */
    DAQIRI_SWEEP_BIBANDWIDTH, /* MB/s: both ways added */
    DAQIRI_SWEEP_RATE,        /* MB/s and messages/s: all pairs added */
    DAQIRI_SWEEP_AVERAGE      /* us: mean of all ranks */
} daqiri_sweep_unit_t;

typedef struct daqiri_sweep_test {
    const char *name;
    const char *what; /* one line for --help and the table's heading */
    daqiri_sweep_unit_t unit;
    daqiri_sweep_round_func_t round;
    size_t smallest;   /* size that makes sense */
    size_t granule;    /* sizes must be multiples of it; 0: has no size */
    int is_all_to_all; /* an operation needs np times its size */
} daqiri_sweep_test_t;

#define DAQIRI_SWEEP_NUM_TESTS 8
extern const daqiri_sweep_test_t daqiri_sweep_tests[DAQIRI_SWEEP_NUM_TESTS];

/* Fills *opts_p from the command line. Returns -1 to go on, else the status
 * to exit with; what there was to say has been said then. */
int daqiri_sweep_opts_parse(int argc, char **argv, daqiri_sweep_opts_t *opts_p);

/* The key of operation `op` of this round, from one rank to another. */
uint64_t daqiri_sweep_key(const daqiri_sweep_t *sweep,
                          const daqiri_sweep_round_t *round, unsigned op,
                          int sender, int receiver);

/*
 * Notes that something received was wrong, which ends the sweep after this
 * round, on all ranks and in order: a job that is torn down may lose the
 * message. Returns whether it is this rank's first, which alone is told.
 */
int daqiri_sweep_wrong(daqiri_sweep_t *sweep);

/* Checks a buffer of operation `op`; wrong data is told with its place. */
void daqiri_sweep_check(daqiri_sweep_t *sweep,
                        const daqiri_sweep_round_t *round, unsigned op,
                        int sender, int receiver, const void *buffer);

double daqiri_sweep_round_latency(daqiri_sweep_t *sweep,
                                  const daqiri_sweep_round_t *round);
double daqiri_sweep_round_bandwidth(daqiri_sweep_t *sweep,
                                    const daqiri_sweep_round_t *round);
double daqiri_sweep_round_bibandwidth(daqiri_sweep_t *sweep,
                                      const daqiri_sweep_round_t *round);
double daqiri_sweep_round_rate(daqiri_sweep_t *sweep,
                               const daqiri_sweep_round_t *round);
double daqiri_sweep_round_allreduce(daqiri_sweep_t *sweep,
                                    const daqiri_sweep_round_t *round);
double daqiri_sweep_round_alltoall(daqiri_sweep_t *sweep,
                                   const daqiri_sweep_round_t *round);
double daqiri_sweep_round_bcast(daqiri_sweep_t *sweep,
                                const daqiri_sweep_round_t *round);
double daqiri_sweep_round_barrier(daqiri_sweep_t *sweep,
                                  const daqiri_sweep_round_t *round);

#endif
