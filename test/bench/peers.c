/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * How much memory a rank needs for its peers, in kB.
 *
 *   peers exchange ROUNDS     each rank sends to and receives from each other one,
 *                             a message of 8 bytes in each round
 *   peers stream MESSAGES     all ranks send so many of 8 bytes to rank 0 at once
 *
 * Rank 0 prints "NP MOST DEVICE": the private memory of the rank with most (of rank 0
 * after a stream), and the largest of the segments that softverbs has in /dev/shm for the
 * ranks. No other job of the same user should run on softverbs meanwhile.
 */

#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* What the largest segment of this user's processes holds, kB. */
static long segment_kb(void)
{
    char prefix[64], path[512];
    struct dirent *entry;
    struct stat st;
    long most = 0;
    DIR *dir  = opendir("/dev/shm");

    if (dir == NULL) {
        return 0;
    }
    snprintf(prefix, sizeof(prefix), "softverbs-%u.", (unsigned)geteuid());
    while ((entry = readdir(dir)) != NULL) {
        snprintf(path, sizeof(path), "/dev/shm/%s", entry->d_name);
        if ((strncmp(entry->d_name, prefix, strlen(prefix)) == 0) &&
            (stat(path, &st) == 0) && S_ISREG(st.st_mode) &&
            (st.st_blocks / 2 > most)) {
            most = st.st_blocks / 2;
        }
    }
    closedir(dir);
    return most;
}

/* In each step a rank sends to one and receives from another. */
static int exchange(int rank, int np, long rounds)
{
    int is_right = 1;
    int step, to, from;
    double tx, rx;
    long round;

    for (round = 0; round < rounds; ++round) {
        for (step = 1; step < np; ++step) {
            to   = (rank + step) % np;
            from = (rank + np - step) % np;
            tx   = rank * 1000.0 + to + (double)round;
            MPI_Sendrecv(&tx, 1, MPI_DOUBLE, to, 0, &rx, 1, MPI_DOUBLE, from, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            is_right &= rx == from * 1000.0 + rank + (double)round;
        }
    }
    return is_right;
}

/* What rank 0 receives from each peer has to be in order. */
static int stream(int rank, int np, long messages)
{
    long *next   = calloc((size_t)np, sizeof(*next));
    int is_right = next != NULL;
    MPI_Status status;
    long i, got;

    if (!is_right) {
        return 0;
    }
    for (i = 0; (rank > 0) && (i < messages); ++i) {
        MPI_Send(&i, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD);
    }
    for (i = 0; (rank == 0) && (i < messages * (np - 1)); ++i) {
        MPI_Recv(&got, 1, MPI_LONG, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
        is_right &= got == next[status.MPI_SOURCE]++;
    }
    free(next);
    return is_right;
}

int main(int argc, char **argv)
{
    int is_stream = (argc == 3) && (strcmp(argv[1], "stream") == 0);
    long count    = (argc == 3) ? atol(argv[2]) : 0;
    int rank, np, is_right;
    long mine, most, device = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &np);
    is_right = (count > 0) && (is_stream ? stream(rank, np, count)
                                         : exchange(rank, np, count));
    mine     = private_kb();
    if (!is_right || (mine < 0)) {
        fprintf(stderr, "peers: rank %d: %s\n", rank,
                is_right ? "smaps_rollup cannot be read" : "wrong data, or usage");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (is_stream && (rank > 0)) {
        mine = 0;
    }
    if (rank == 0) {
        device = segment_kb();
    }
    MPI_Reduce(&mine, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d %ld %ld\n", np, most, device);
    }
    /* Not MPI_Finalize(): over tcp MPICH may hang in it where CPUs are few, because one
     * rank waits for the answer of another that has left UCX already. */
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    _exit(0);
}
