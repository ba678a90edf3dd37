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

void mt_case_threads(void)
{
    pthread_t threads[MT_THREADS];
    intptr_t i;

    if (mt.threads < MPI_THREAD_MULTIPLE) {
        if (mt.rank == 0) {
            printf("# skip: this MPI gives thread level %d, not "
                   "MPI_THREAD_MULTIPLE\n", mt.threads);
        }
        return;
    }
    for (i = 0; i < MT_THREADS; ++i) {
        MT_ASSERT(pthread_create(&threads[i], NULL, mt_thread_main,
                                 (void*)i) == 0);
    }
    for (i = 0; i < MT_THREADS; ++i) {
        MT_ASSERT(pthread_join(threads[i], NULL) == 0);
    }
}
