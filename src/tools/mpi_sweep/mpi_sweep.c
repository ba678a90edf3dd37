/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/mpi_sweep/mpi_sweep.h"

#include "tools/base/mapped.h"
#include "tools/base/median.h"
#include "tools/base/pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The first round of a cell warms up caches, connections and registrations,
 * and tells how long an operation takes. */
#define SWEEP_WARM_UP_OPS 8

#define SWEEP_WIDTH_SIZE  10
#define SWEEP_WIDTH_VALUE 20

/* What has been measured of a cell; all but `room` are of rank 0's clock. */
typedef struct sweep_cell {
    double started;  /* MPI_Wtime() */
    double seconds;  /* that it may take */
    unsigned room;   /* operations that a round may have */
    unsigned done;   /* operations, those of the warm-up included */
    unsigned timed;  /* without them */
    double total;    /* seconds of those */
    unsigned rounds; /* timed; their seconds for each operation: */
    double per_op[DAQIRI_MEDIAN_MOST];
    struct {
        double at;    /* MPI_Wtime() */
        unsigned timed;
        double total;
    } told;           /* up to which an interval has been printed */
} sweep_cell_t;

const mpi_sweep_test_t mpi_sweep_tests[MPI_SWEEP_NUM_TESTS] = {
    {"latency", "ping-pong of ranks 0 and 1, one way", MPI_SWEEP_LATENCY,
     mpi_sweep_round_latency, 0, 1, 0},
    {"bw", "rank 0 to rank 1, many in flight", MPI_SWEEP_BANDWIDTH,
     mpi_sweep_round_bandwidth, 1, 1, 0},
    {"bibw", "ranks 0 and 1, both ways at once", MPI_SWEEP_BIBANDWIDTH,
     mpi_sweep_round_bibandwidth, 1, 1, 0},
    {"rate", "lower half of the ranks to the upper half", MPI_SWEEP_RATE,
     mpi_sweep_round_rate, 0, 1, 0},
    {"allreduce", "sum of unsigned 32-bit numbers", MPI_SWEEP_AVERAGE,
     mpi_sweep_round_allreduce, 4, 4, 0},
    {"alltoall", "a block of this size from each to each",
     MPI_SWEEP_AVERAGE, mpi_sweep_round_alltoall, 1, 1, 1},
    {"bcast", "from rank 0", MPI_SWEEP_AVERAGE, mpi_sweep_round_bcast, 1,
     1, 0},
    {"barrier", "has no size", MPI_SWEEP_AVERAGE,
     mpi_sweep_round_barrier, 0, 0, 0}
};

uint64_t mpi_sweep_key(const mpi_sweep_t *sweep,
                       const mpi_sweep_round_t *round, unsigned op,
                       int sender, int receiver)
{
    daqiri_pattern_id_t id = {
        .seed     = sweep->opts.seed,
        .serial   = round->serial + op,
        .size     = round->size,
        .test     = round->test,
        .sender   = (uint32_t)sender,
        .receiver = (uint32_t)receiver
    };

    return daqiri_pattern_key(&id);
}

int mpi_sweep_wrong(mpi_sweep_t *sweep)
{
    int is_first = !sweep->wrong;

    sweep->wrong = 1;
    return is_first;
}

void mpi_sweep_check(mpi_sweep_t *sweep,
                     const mpi_sweep_round_t *round, unsigned op,
                     int sender, int receiver, const void *buffer)
{
    uint64_t key  = mpi_sweep_key(sweep, round, op, sender, receiver);
    size_t offset = daqiri_pattern_check(buffer, round->size, key);

    if ((offset == round->size) || !mpi_sweep_wrong(sweep)) {
        return;
    }

    fprintf(stderr,
            "daqiri-mpi-sweep: rank %d: %s: wrong data at offset %zu of "
            "message %" PRIu64 " from rank %d, size %zu: expected 0x%02x, "
            "got 0x%02x\n",
            sweep->rank, mpi_sweep_tests[round->test].name, offset,
            round->serial + op, sender, round->size,
            daqiri_pattern_byte(offset, key), ((const uint8_t*)buffer)[offset]);
}

static int sweep_fits(const mpi_sweep_test_t *test, size_t size)
{
    if (test->granule == 0) {
        return size == 0;
    }
    return (size >= test->smallest) && ((size % test->granule) == 0);
}

/* A test without a size runs once, as if it had size 0. */
static size_t sweep_first_size(const mpi_sweep_t *sweep,
                               const mpi_sweep_test_t *test)
{
    return (test->granule == 0) ? 0 : sweep->opts.min_size;
}

static size_t sweep_next_size(const mpi_sweep_t *sweep,
                              const mpi_sweep_test_t *test, size_t size)
{
    if (test->granule == 0) {
        return sweep->opts.max_size + 1;
    }
    return (size == 0) ? 1 : (size * sweep->opts.step);
}

static unsigned sweep_count_cells(const mpi_sweep_t *sweep,
                                  const mpi_sweep_test_t *test)
{
    unsigned cells = 0;
    size_t size;

    for (size = sweep_first_size(sweep, test); size <= sweep->opts.max_size;
         size = sweep_next_size(sweep, test, size)) {
        cells += sweep_fits(test, size) ? 1 : 0;
    }
    return cells;
}

static void sweep_print_heading(const mpi_sweep_test_t *test)
{
    static const char *const columns[] = {
        [MPI_SWEEP_LATENCY]     = "One way (us)",
        [MPI_SWEEP_BANDWIDTH]   = "Gb/s",
        [MPI_SWEEP_BIBANDWIDTH] = "Gb/s",
        [MPI_SWEEP_RATE]        = "Gb/s",
        [MPI_SWEEP_AVERAGE]     = "Mean (us)"
    };

    printf("\n# %s: %s\n", test->name, test->what);
    if (test->granule == 0) {
        printf("# %s\n", columns[test->unit]);
        return;
    }
    printf("%-*s%*s", SWEEP_WIDTH_SIZE, "# Size", SWEEP_WIDTH_VALUE,
           columns[test->unit]);
    if (test->unit == MPI_SWEEP_RATE) {
        printf("%*s", SWEEP_WIDTH_VALUE, "Messages/s");
    }
    printf("\n");
}

static void sweep_print_value(double value)
{
    printf("%*.2f", SWEEP_WIDTH_VALUE, value);
}

/* A digit more: of short messages it is little. */
static void sweep_print_gbps(double bytes, double seconds)
{
    printf("%*.3f", SWEEP_WIDTH_VALUE, bytes * 8e-9 / seconds);
}

/* The end of a line: what `ops` operations are that took `seconds`. */
static void sweep_print_values(const mpi_sweep_t *sweep,
                               const mpi_sweep_test_t *test, size_t size,
                               double seconds, double ops)
{
    double bytes = (double)size * ops;

    switch (test->unit) {
    case MPI_SWEEP_LATENCY:
        sweep_print_value(seconds * 1e6 / ops / 2);
        break;
    case MPI_SWEEP_BANDWIDTH:
        sweep_print_gbps(bytes, seconds);
        break;
    case MPI_SWEEP_BIBANDWIDTH:
        sweep_print_gbps(2 * bytes, seconds);
        break;
    case MPI_SWEEP_RATE:
        sweep_print_gbps((sweep->np / 2) * bytes, seconds);
        sweep_print_value((sweep->np / 2) * ops / seconds);
        break;
    case MPI_SWEEP_AVERAGE:
        sweep_print_value(seconds * 1e6 / ops);
        break;
    }
    printf("\n");
    fflush(stdout);
}

/* Seconds that all timed operations took, or would have if each had been one of
 * the median round. */
static double sweep_seconds(const mpi_sweep_t *sweep,
                            const sweep_cell_t *cell)
{
    return sweep->opts.is_median ?
           daqiri_median(cell->per_op, cell->rounds) * cell->timed :
           cell->total;
}

static void sweep_print_cell(const mpi_sweep_t *sweep,
                             const mpi_sweep_test_t *test, size_t size,
                             const sweep_cell_t *cell)
{
    if (test->granule != 0) {
        printf("%-*zu", SWEEP_WIDTH_SIZE, size);
    }
    sweep_print_values(sweep, test, size, sweep_seconds(sweep, cell),
                       cell->timed);
}

/* Tells what the cell has done since the last interval, when the next one is over. The
 * times count from the start of the sweep. It is a comment to who reads tables. */
static void sweep_tell_interval(const mpi_sweep_t *sweep,
                                const mpi_sweep_test_t *test, size_t size,
                                sweep_cell_t *cell)
{
    double now = MPI_Wtime();

    if ((sweep->rank != 0) || (sweep->opts.interval == 0) ||
        (now - cell->told.at < sweep->opts.interval) ||
        (cell->timed == cell->told.timed)) {
        return;
    }
    printf("# %7.2f to %7.2f s", cell->told.at - sweep->started,
           now - sweep->started);
    sweep_print_values(sweep, test, size, cell->total - cell->told.total,
                       cell->timed - cell->told.timed);
    cell->told.at    = now;
    cell->told.timed = cell->timed;
    cell->told.total = cell->total;
}

/* Rank 0 is told what all ranks' clocks say together. */
static double sweep_join_seconds(const mpi_sweep_t *sweep,
                                 const mpi_sweep_test_t *test,
                                 double seconds)
{
    double joined = seconds;

    if (test->unit == MPI_SWEEP_RATE) {
        MPI_Reduce(&seconds, &joined, 1, MPI_DOUBLE, MPI_MAX, 0,
                   MPI_COMM_WORLD);
    } else if (test->unit == MPI_SWEEP_AVERAGE) {
        MPI_Reduce(&seconds, &joined, 1, MPI_DOUBLE, MPI_SUM, 0,
                   MPI_COMM_WORLD);
        joined /= sweep->np;
    }
    return joined;
}

static void sweep_note_round(sweep_cell_t *cell, unsigned ops, double seconds)
{
    if (cell->done > 0) {
        cell->total += seconds;
        cell->timed += ops;
        if (cell->rounds < DAQIRI_MEDIAN_MOST) {
            cell->per_op[cell->rounds++] = seconds / ops;
        }
    }
    cell->done += ops;
}

/*
 * How many operations the next round has; 0 ends the cell. Half of the time
 * that is left, so that a wrong guess costs little, and at least one measured
 * round in any case. Rounds that are compared are of one length.
 */
static unsigned sweep_plan(const mpi_sweep_t *sweep,
                           const sweep_cell_t *cell)
{
    double used   = MPI_Wtime() - cell->started;
    double left   = cell->seconds - used;
    double ops    = left / 2 / used * cell->done;
    unsigned room = cell->room;

    if ((sweep->opts.max_ops > 0) &&
        (room > sweep->opts.max_ops - cell->timed)) {
        room = (unsigned)(sweep->opts.max_ops - cell->timed);
    }
    if (ops > room) {
        ops = room;
    }
    if (ops < 1) { /* less than nothing, perhaps */
        return (cell->timed == 0) ? 1 : 0;
    }
    if (sweep->opts.is_median && (cell->timed > 0) &&
        ((cell->rounds == DAQIRI_MEDIAN_MOST) || (ops < room))) {
        return 0;
    }
    return (unsigned)ops;
}

/* Every rank says whether its data was right, and hears what comes next. */
static unsigned sweep_agree(mpi_sweep_t *sweep, unsigned planned)
{
    unsigned decision[2] = {planned, 0};
    int wrong            = 0;

    MPI_Reduce(&sweep->wrong, &wrong, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    if (wrong) {
        decision[0] = 0;
        decision[1] = 1;
    }
    MPI_Bcast(decision, 2, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
    sweep->wrong = (int)decision[1];
    return decision[0];
}

static unsigned sweep_room(const mpi_sweep_t *sweep, size_t stride)
{
    unsigned room = sweep->opts.is_median ? MPI_SWEEP_MEDIAN_OPS :
                                            MPI_SWEEP_MAX_OPS;

    return ((stride == 0) || (sweep->buffer_size / stride > room)) ?
           room : (unsigned)(sweep->buffer_size / stride);
}

static void sweep_cell(mpi_sweep_t *sweep, uint32_t test_index, size_t size)
{
    const mpi_sweep_test_t *test = &mpi_sweep_tests[test_index];
    size_t op_size    = test->is_all_to_all ? (size * sweep->np) : size;
    sweep_cell_t cell = {.started = MPI_Wtime()};
    mpi_sweep_round_t round;
    double seconds;

    cell.seconds = (sweep->opts.seconds - (cell.started - sweep->started)) /
                   sweep->cells_left;
    cell.told.at = cell.started;
    round.test   = test_index;
    round.size   = size;
    round.serial = 0;
    /* A cache line for each, so that operations do not share one. */
    round.stride = (op_size + 63) / 64 * 64;
    cell.room    = sweep_room(sweep, round.stride);
    round.ops    = (cell.room < SWEEP_WARM_UP_OPS) ? cell.room :
                                                     SWEEP_WARM_UP_OPS;

    while (round.ops > 0) {
        seconds = sweep_join_seconds(sweep, test, test->round(sweep, &round));
        sweep_note_round(&cell, round.ops, seconds);
        sweep_tell_interval(sweep, test, size, &cell);
        round.serial += round.ops;
        round.ops     = sweep_agree(sweep, sweep_plan(sweep, &cell));
    }

    if ((sweep->rank == 0) && !sweep->wrong) {
        sweep_print_cell(sweep, test, size, &cell);
    }
    --sweep->cells_left;
}

static void sweep_run(mpi_sweep_t *sweep)
{
    const mpi_sweep_test_t *test;
    uint32_t i;
    size_t size;

    for (i = 0; (i < MPI_SWEEP_NUM_TESTS) && !sweep->wrong; ++i) {
        test = &mpi_sweep_tests[i];
        if (((sweep->opts.tests >> i) & 1) == 0) {
            continue;
        }
        if (sweep->rank == 0) {
            sweep_print_heading(test);
        }
        for (size = sweep_first_size(sweep, test);
             (size <= sweep->opts.max_size) && !sweep->wrong;
             size = sweep_next_size(sweep, test, size)) {
            if (sweep_fits(test, size)) {
                sweep_cell(sweep, i, size);
            }
        }
    }
}

static void sweep_print_tallies(const mpi_sweep_t *sweep)
{
    uint64_t mine[5] = {
        (uint64_t)getpid(), sweep->tally.pt2pt_messages,
        sweep->tally.pt2pt_bytes, sweep->tally.collective_messages_min,
        sweep->tally.collective_bytes_min
    };
    uint64_t *all = calloc((size_t)sweep->np, sizeof(mine));
    const uint64_t *row;
    int rank;

    if (all == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Gather(mine, 5, MPI_UINT64_T, all, 5, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    for (rank = 0; (sweep->rank == 0) && (rank < sweep->np); ++rank) {
        row = &all[rank * 5];
        printf("%s# sent rank=%d pid=%" PRIu64 " pt2pt_messages=%" PRIu64
               " pt2pt_bytes=%" PRIu64 " collective_messages_min=%" PRIu64
               " collective_bytes_min=%" PRIu64 "\n",
               (rank == 0) ? "\n" : "", rank, row[0], row[1], row[2], row[3],
               row[4]);
    }
    free(all);
}

static void sweep_print_start(const mpi_sweep_t *sweep)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    char *tab;
    int length;

    MPI_Get_library_version(library, &length);
    library[strcspn(library, ",\n")] = '\0';
    /* MPICH puts tabs between its name and its version. */
    while ((tab = strchr(library, '\t')) != NULL) {
        *tab = ' ';
    }
    printf("# daqiri-mpi-sweep %s, %s, %d ranks, seed %" PRIu64
           ", about %g s, %severy payload is checked\n",
           DAQIRI_VERSION, library, sweep->np, sweep->opts.seed,
           sweep->opts.seconds,
           sweep->opts.is_median ? "medians of rounds, " : "");
    fflush(stdout);
}

static int sweep_init(mpi_sweep_t *sweep)
{
    size_t largest = sweep->opts.max_size;
    size_t room    = MPI_SWEEP_BUFFER;
    unsigned i;

    for (i = 0; i < MPI_SWEEP_NUM_TESTS; ++i) {
        if (((sweep->opts.tests >> i) & 1) == 0) {
            continue;
        }
        sweep->cells_left += sweep_count_cells(sweep, &mpi_sweep_tests[i]);
        if (mpi_sweep_tests[i].is_all_to_all &&
            (largest * sweep->np > room)) {
            room = largest * sweep->np;
        }
    }
    /* Strides are rounded up to a cache line. */
    sweep->buffer_size = ((largest > room) ? largest : room) + 64;

    sweep->tx       = malloc(sweep->buffer_size);
    sweep->rx       = malloc(sweep->buffer_size);
    sweep->sum      = malloc(largest + sizeof(*sweep->sum));
    sweep->requests = calloc(2 * MPI_SWEEP_MAX_OPS,
                             sizeof(*sweep->requests));
    sweep->statuses = calloc(2 * MPI_SWEEP_MAX_OPS,
                             sizeof(*sweep->statuses));
    if ((sweep->tx == NULL) || (sweep->rx == NULL) || (sweep->sum == NULL) ||
        (sweep->requests == NULL) || (sweep->statuses == NULL)) {
        fprintf(stderr, "daqiri-mpi-sweep: rank %d: no memory for buffers of "
                "%zu bytes\n", sweep->rank, sweep->buffer_size);
        return -1;
    }
    return 0;
}

static void sweep_cleanup(mpi_sweep_t *sweep)
{
    free(sweep->statuses);
    free(sweep->requests);
    free(sweep->sum);
    free(sweep->rx);
    free(sweep->tx);
}

/* Open MPI's mpirun ends the job when the first rank returns a status that is not 0. It
 * may drop what the other ranks have printed and it has not read: 4 of 40 jobs lost the
 * sentence about wrong data over tcp, and 10 over a faster transport. So each rank gives
 * it time to read. */
static void sweep_let_be_read(void)
{
    const struct timespec time = {.tv_nsec = 300 * 1000 * 1000};

    fflush(NULL);
    nanosleep(&time, NULL);
}

int main(int argc, char **argv)
{
    mpi_sweep_t sweep = {0};

    mpi_sweep_opts_parse(argc, argv, &sweep.opts);
    MPI_Init(&argc, &argv);
    mapped_keep_pmix();
    MPI_Comm_rank(MPI_COMM_WORLD, &sweep.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &sweep.np);
    if (sweep.np < 2) {
        fprintf(stderr, "daqiri-mpi-sweep: needs at least 2 ranks: "
                "mpirun -np 2 daqiri mpi-sweep\n");
        MPI_Finalize();
        return 2;
    }
    if (sweep_init(&sweep) != 0) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }

    if (sweep.rank == 0) {
        sweep_print_start(&sweep);
    }
    sweep.started = MPI_Wtime();
    sweep_run(&sweep);
    sweep_print_tallies(&sweep);

    sweep_cleanup(&sweep);
    fflush(NULL); /* of a job that does not end, what it has found is read */
    MPI_Finalize();
    if (sweep.wrong) {
        sweep_let_be_read();
    }
    return sweep.wrong ? 1 : 0;
}
