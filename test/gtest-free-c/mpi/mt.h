/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What the MPI tests share. The program is started by an MPI with the names
 * of the cases to run; every rank runs every case. A case that finds a fault
 * says where and ends the job; there is no way to go on after one.
 *
 * All data is made from a pattern that depends on the seed, the sender, the
 * receiver, the size and a serial number, so that it can be checked without
 * being kept. What the transport has to carry of point-to-point calls is counted
 * and printed at the end, to be held against the transport's own counters.
 */

#ifndef MT_H
#define MT_H

#include "t.h"

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* The largest message in these tests. */
#define MT_MAX_SIZE ((size_t)16 << 20)

typedef struct mt {
    int rank;
    int np;
    int threads;  /* what MPI_Init_thread provided */
    uint64_t seed;
    uint64_t messages; /* sent, as far as a transport has to carry them */
    uint64_t bytes;
    uint64_t one_sided; /* bytes put to and got from other ranks */
    uint64_t atomics;   /* asked of other ranks, each with its own answer */
} mt_t;

extern mt_t mt;

/* Random numbers: the same on every rank for the same salt. */
t_rng_t mt_rng(uint64_t salt);

/* True unless this UCX was built without support for threads. */
int mt_ucx_has_threads(void);

void mt_fail(const char *file, int line, const char *what)
        __attribute__((noreturn));

#define MT_ASSERT(_condition) \
    ((_condition) ? (void)0 : mt_fail(__FILE__, __LINE__, #_condition))

/* Memory, or the end of the job. */
void *mt_alloc(size_t size);

/* Fills what `sender` sends to `receiver`, and checks it. */
void mt_fill(void *buffer, size_t size, int sender, int receiver,
             uint64_t serial);
void mt_check(const void *buffer, size_t size, int sender, int receiver,
              uint64_t serial);

/* MPI_Send and MPI_Isend of filled bytes, counted; thread-safe. */
void mt_send(const void *buffer, size_t size, int receiver, int tag);
void mt_isend(const void *buffer, size_t size, int receiver, int tag,
              MPI_Request *request);

/* What else is sent, so that it is counted. Thread-safe. */
void mt_count_sent(size_t size, int receiver);

/* Receives and checks source, tag and length. */
void mt_recv(void *buffer, size_t size, int sender, int tag);
/* Waits for requests whose statuses are of no interest. gcc takes MPICH's
 * MPI_STATUSES_IGNORE for an array that is too short. */
void mt_wait_all(int count, MPI_Request *requests);
void mt_check_status(MPI_Status *status, size_t size, int sender, int tag);

/* Sizes from 0 to MT_MAX_SIZE, with the neighbours of those where transports
 * change their ways. */
#define MT_NUM_SIZES 28
extern const size_t mt_sizes[MT_NUM_SIZES];

void mt_case_blocking(void);
void mt_case_nonblocking(void);
void mt_case_any_source(void);
void mt_case_self(void);
void mt_case_truncation(void);
void mt_case_probe(void);
void mt_case_unexpected(void);
void mt_case_random(void);
void mt_case_threads(void);
void mt_case_types(void);
void mt_case_thread_pairs(void);
void mt_case_windows(void);
void mt_case_shared_window(void);
void mt_case_atomics(void);
void mt_case_collectives(void);

#endif
