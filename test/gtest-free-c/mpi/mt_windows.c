/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One-sided communication: put, get, accumulate, and the atomics that answer.
 * Windows are made from memory of our own as well as by MPI.
 */

#include "mt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What each rank owns in each other rank's window. */
#define MT_SLOT ((size_t)200000)

static char *mt_slot(char *window, int rank)
{
    return window + (size_t)rank * MT_SLOT;
}

/* To itself a rank may write without any transport. */
static void mt_count_one_sided(size_t size, int peer)
{
    if (peer != mt.rank) {
        mt.one_sided += size;
    }
}

/* Everyone writes its slot everywhere, in pieces of all sizes. */
static void mt_put_all(MPI_Win win, char *tx, uint64_t serial)
{
    size_t offset, size;
    int peer;

    for (peer = 0; peer < mt.np; ++peer) {
        mt_fill(mt_slot(tx, peer), MT_SLOT, mt.rank, peer, serial);
        for (offset = 0, size = 1; offset < MT_SLOT; offset += size, size *= 3) {
            if (size > MT_SLOT - offset) {
                size = MT_SLOT - offset;
            }
            MPI_Put(mt_slot(tx, peer) + offset, (int)size, MPI_BYTE, peer,
                    (MPI_Aint)((size_t)mt.rank * MT_SLOT + offset), (int)size,
                    MPI_BYTE, win);
            mt_count_one_sided(size, peer);
        }
    }
}

static void mt_check_window(char *window, uint64_t serial)
{
    int peer;

    for (peer = 0; peer < mt.np; ++peer) {
        mt_check(mt_slot(window, peer), MT_SLOT, peer, mt.rank, serial);
    }
}

/* Reads from every other window what its owner's neighbour put there. */
static void mt_get_all(MPI_Win win, char *rx, uint64_t serial)
{
    int peer, writer;

    memset(rx, 0, MT_SLOT * (size_t)mt.np);
    MPI_Win_lock_all(0, win);
    for (peer = 0; peer < mt.np; ++peer) {
        writer = (peer + mt.rank) % mt.np;
        MPI_Get(mt_slot(rx, peer), (int)MT_SLOT, MPI_BYTE, peer,
                (MPI_Aint)((size_t)writer * MT_SLOT), (int)MT_SLOT, MPI_BYTE,
                win);
        mt_count_one_sided(MT_SLOT, peer);
    }
    MPI_Win_flush_all(win);
    for (peer = 0; peer < mt.np; ++peer) {
        writer = (peer + mt.rank) % mt.np;
        mt_check(mt_slot(rx, peer), MT_SLOT, writer, peer, serial);
    }
    MPI_Win_unlock_all(win);
}

static void mt_use_window(MPI_Win win, char *window, uint64_t serial)
{
    char *tx = mt_alloc(MT_SLOT * (size_t)mt.np);

    MPI_Win_fence(0, win);
    mt_put_all(win, tx, serial);
    MPI_Win_fence(0, win);
    mt_check_window(window, serial);
    MPI_Win_fence(0, win);

    MPI_Barrier(MPI_COMM_WORLD);
    mt_get_all(win, tx, serial);
    MPI_Barrier(MPI_COMM_WORLD);
    free(tx);
}

/* Each rank adds to every element of every window, so that the sum tells
 * whether anything was lost or came twice. */
#define MT_ELEMENTS 5000

static void mt_accumulate(void)
{
    uint64_t *mine = mt_alloc(MT_ELEMENTS * sizeof(*mine));
    uint64_t *window;
    MPI_Win win;
    int peer, i;

    MPI_Win_allocate(MT_ELEMENTS * sizeof(*window), sizeof(*window),
                     MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    memset(window, 0, MT_ELEMENTS * sizeof(*window));
    for (i = 0; i < MT_ELEMENTS; ++i) {
        mine[i] = (uint64_t)i + (uint64_t)mt.rank;
    }
    MPI_Win_fence(0, win);
    for (peer = 0; peer < mt.np; ++peer) {
        MPI_Accumulate(mine, MT_ELEMENTS, MPI_UINT64_T, peer, 0, MT_ELEMENTS,
                       MPI_UINT64_T, MPI_SUM, win);
    }
    MPI_Win_fence(0, win);
    for (i = 0; i < MT_ELEMENTS; ++i) {
        MT_ASSERT(window[i] == (uint64_t)(mt.np * i + mt.np * (mt.np - 1) / 2));
    }
    MPI_Win_free(&win);
    free(mine);
}

/* The ranks of MPICH 5 may each be told that they are alone on their host. */
#if defined(MPICH_NUMVERSION) && (MPICH_NUMVERSION >= 50000000)
#define MT_MAY_BE_ALONE 1
#else
#define MT_MAY_BE_ALONE 0
#endif

/* The one kind of window that needs memory of the host, on any transport. */
void mt_case_shared_window(void)
{
    MPI_Comm host;
    MPI_Aint size;
    int *mine, *theirs;
    int unit, rank, np;
    MPI_Win win;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                        &host);
    MPI_Comm_rank(host, &rank);
    MPI_Comm_size(host, &np);
    MT_ASSERT((np == mt.np) || MT_MAY_BE_ALONE);
    MPI_Win_allocate_shared(sizeof(*mine), sizeof(*mine), MPI_INFO_NULL, host,
                            &mine, &win);
    MPI_Win_fence(0, win);
    *mine = 100 + rank;
    MPI_Win_fence(0, win);
    MPI_Win_shared_query(win, (rank + 1) % np, &size, &unit, &theirs);
    MT_ASSERT(*theirs == 100 + (rank + 1) % np);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    MPI_Comm_free(&host);
    if ((np < mt.np) && (mt.rank == 0)) {
        printf("# skip: this MPI lets %d of %d ranks share memory, over any "
               "transport\n", np, mt.np);
    }
}

void mt_case_windows(void)
{
    size_t size = MT_SLOT * (size_t)mt.np;
    char *window;
    MPI_Win win;

    MPI_Win_allocate((MPI_Aint)size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window,
                     &win);
    mt_use_window(win, window, 1);
    mt_use_window(win, window, 2);
    MPI_Win_free(&win);

    window = mt_alloc(size);
    MPI_Win_create(window, (MPI_Aint)size, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                   &win);
    mt_use_window(win, window, 3);
    MPI_Win_free(&win);
    free(window);

    mt_accumulate();
}

#define MT_TICKETS 200

static int mt_compare_tickets(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t*)a;
    uint64_t y = *(const uint64_t*)b;

    return (x > y) - (x < y);
}

/* A counter on rank 0 hands out tickets: each number once, none left out. */
static void mt_take_tickets(MPI_Win win)
{
    uint64_t *tickets = mt_alloc(MT_TICKETS * sizeof(*tickets));
    uint64_t *all     = mt_alloc(MT_TICKETS * sizeof(*all) * (size_t)mt.np);
    uint64_t one      = 1;
    int i;

    MPI_Win_lock_all(0, win);
    for (i = 0; i < MT_TICKETS; ++i) {
        MPI_Fetch_and_op(&one, &tickets[i], MPI_UINT64_T, 0, 0, MPI_SUM, win);
        MPI_Win_flush(0, win);
    }
    MPI_Win_unlock_all(win);
    mt.atomics += (mt.rank != 0) ? MT_TICKETS : 0;

    MPI_Gather(tickets, MT_TICKETS, MPI_UINT64_T, all, MT_TICKETS,
               MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (mt.rank == 0) {
        qsort(all, MT_TICKETS * (size_t)mt.np, sizeof(*all),
              mt_compare_tickets);
        for (i = 0; i < MT_TICKETS * mt.np; ++i) {
            MT_ASSERT(all[i] == (uint64_t)i);
        }
    }
    free(all);
    free(tickets);
}

/* Ranks take turns by compare-and-swap on rank 0: i may go when the value is
 * i, and leaves i + 1. */
static void mt_take_turns(MPI_Win win)
{
    uint64_t mine = (uint64_t)mt.rank;
    uint64_t next = mine + 1;
    uint64_t seen;

    MPI_Win_lock_all(0, win);
    do {
        MPI_Compare_and_swap(&next, &mine, &seen, MPI_UINT64_T, 0, 1, win);
        MPI_Win_flush(0, win);
        MT_ASSERT(seen <= mine);
    } while (seen != mine);
    MPI_Win_unlock_all(win);
}

void mt_case_atomics(void)
{
    uint64_t *window;
    MPI_Win win;

    MPI_Win_allocate(2 * sizeof(*window), sizeof(*window), MPI_INFO_NULL,
                     MPI_COMM_WORLD, &window, &win);
    memset(window, 0, 2 * sizeof(*window));
    MPI_Barrier(MPI_COMM_WORLD);
    mt_take_tickets(win);
    mt_take_turns(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, mt.rank, 0, win);
    MT_ASSERT((mt.rank != 0) || (window[0] == (uint64_t)(MT_TICKETS * mt.np)));
    MT_ASSERT((mt.rank != 0) || (window[1] == (uint64_t)mt.np));
    MPI_Win_unlock(mt.rank, win);
    MPI_Win_free(&win);
}
