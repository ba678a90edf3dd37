/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * MPI_THREAD_MULTIPLE: the threads of a rank send and receive at once, each
 * with the thread of its number on the neighbouring ranks.
 */

#include "mt.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define MT_THREADS         4
#define MT_THREAD_MESSAGES 100
#define MT_THREAD_MAX_SIZE 100000

#define MT_PAIR_THREADS    2
#define MT_PAIR_ROUNDS     10
#define MT_PAIR_MIN_SIZE   ((size_t)64 << 10)
#define MT_PAIR_MAX_SIZE   ((size_t)4 << 20)

static void mt_thread_step(int thread, uint64_t serial, size_t size, char *tx,
                           char *rx)
{
    int next     = (mt.rank + 1) % mt.np;
    int previous = (mt.rank + mt.np - 1) % mt.np;
    MPI_Request requests[2];
    MPI_Status statuses[2];

    mt_fill(tx, size, mt.rank, next, serial);
    MPI_Irecv(rx, (int)size, MPI_BYTE, previous, thread, MPI_COMM_WORLD,
              &requests[0]);
    mt_isend(tx, size, next, thread, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    mt_check_status(&statuses[0], size, previous, thread);
    mt_check(rx, size, previous, mt.rank, serial);
}

static void *mt_thread_main(void *arg)
{
    int thread   = (int)(intptr_t)arg;
    t_rng_t rng  = mt_rng(100 + (uint64_t)thread);
    char *tx     = mt_alloc(MT_THREAD_MAX_SIZE);
    char *rx     = mt_alloc(MT_THREAD_MAX_SIZE);
    uint64_t serial;
    size_t size;

    for (serial = 0; serial < MT_THREAD_MESSAGES; ++serial) {
        size = t_rng_below(&rng, MT_THREAD_MAX_SIZE >> t_rng_below(&rng, 16));
        mt_thread_step(thread, (uint64_t)thread << 32 | serial, size, tx, rx);
    }
    free(rx);
    free(tx);
    return NULL;
}

/* To and fro with the thread of this number of the other rank of a pair, each
 * turn with calls that wait, and that no other thread can do for it. */
static void mt_pair_round(int thread, uint64_t serial, size_t size, char *buffer)
{
    int other = mt.rank ^ 1;
    int turn;

    for (turn = 0; turn < 2; ++turn) {
        if ((mt.rank & 1) == turn) {
            mt_fill(buffer, size, mt.rank, other, serial);
            mt_send(buffer, size, other, thread);
        } else {
            mt_recv(buffer, size, other, thread);
            mt_check(buffer, size, other, mt.rank, serial);
        }
    }
}

static void *mt_pair_main(void *arg)
{
    int thread   = (int)(intptr_t)arg;
    char *buffer = mt_alloc(MT_PAIR_MAX_SIZE);
    uint64_t serial;
    size_t size;

    for (size = MT_PAIR_MIN_SIZE; size <= MT_PAIR_MAX_SIZE; size *= 4) {
        for (serial = 0; serial < MT_PAIR_ROUNDS; ++serial) {
            mt_pair_round(thread, (uint64_t)thread << 32 | serial, size, buffer);
        }
    }
    free(buffer);
    return NULL;
}

/* False, and said why: this MPI, or its UCX, does not let threads call it at once. */
static int mt_has_threads(void)
{
    if (mt.threads >= MPI_THREAD_MULTIPLE) {
        return 1;
    }
    if (mt.rank == 0) {
        printf("# skip: this %s gives thread level %d, not "
               "MPI_THREAD_MULTIPLE\n",
               mt_ucx_has_threads() ? "MPI" : "UCX (built without --enable-mt)",
               mt.threads);
    }
    return 0;
}

static void mt_run_threads(int count, void *(*run)(void*))
{
    pthread_t threads[MT_THREADS];
    intptr_t i;

    for (i = 0; i < count; ++i) {
        MT_ASSERT(pthread_create(&threads[i], NULL, run, (void*)i) == 0);
    }
    for (i = 0; i < count; ++i) {
        MT_ASSERT(pthread_join(threads[i], NULL) == 0);
    }
}

void mt_case_threads(void)
{
    if (mt_has_threads()) {
        mt_run_threads(MT_THREADS, mt_thread_main);
    }
}

void mt_case_thread_pairs(void)
{
    MT_ASSERT(mt.np % 2 == 0);
    if (mt_has_threads()) {
        mt_run_threads(MT_PAIR_THREADS, mt_pair_main);
    }
}
