/* SPDX-License-Identifier: BSD-3-Clause */

#include "mt.h"

#include <stdlib.h>
#include <string.h>

static const size_t mt_coll_sizes[] = {1, 8, 1000, 8192, 70000, 1048576};

#define MT_NUM_COLL_SIZES (sizeof(mt_coll_sizes) / sizeof(mt_coll_sizes[0]))

static void mt_coll_bcast(size_t size)
{
    char *buffer = mt_alloc(size);
    int root;

    for (root = 0; root < mt.np; ++root) {
        if (mt.rank == root) {
            mt_fill(buffer, size, root, 0, 1);
        }
        MPI_Bcast(buffer, (int)size, MPI_BYTE, root, MPI_COMM_WORLD);
        mt_check(buffer, size, root, 0, 1);
        memset(buffer, 0, size);
    }
    free(buffer);
}

static void mt_coll_gather_scatter(size_t size)
{
    char *mine = mt_alloc(size);
    char *all  = mt_alloc(size * (size_t)mt.np);
    int peer;

    mt_fill(mine, size, mt.rank, 0, 2);
    MPI_Allgather(mine, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE,
                  MPI_COMM_WORLD);
    for (peer = 0; peer < mt.np; ++peer) {
        mt_check(all + (size_t)peer * size, size, peer, 0, 2);
    }

    memset(mine, 0, size);
    MPI_Scatter(all, (int)size, MPI_BYTE, mine, (int)size, MPI_BYTE, mt.np - 1,
                MPI_COMM_WORLD);
    mt_check(mine, size, mt.rank, 0, 2);
    free(all);
    free(mine);
}

static void mt_coll_alltoall(size_t size)
{
    size_t total = size * (size_t)mt.np;
    char *tx     = mt_alloc(total);
    char *rx     = mt_alloc(total);
    int peer;

    for (peer = 0; peer < mt.np; ++peer) {
        mt_fill(tx + (size_t)peer * size, size, mt.rank, peer, 3);
    }
    MPI_Alltoall(tx, (int)size, MPI_BYTE, rx, (int)size, MPI_BYTE,
                 MPI_COMM_WORLD);
    for (peer = 0; peer < mt.np; ++peer) {
        mt_check(rx + (size_t)peer * size, size, peer, mt.rank, 3);
    }
    free(rx);
    free(tx);
}

/* Sums that can be worked out: element i of rank r is i + r. */
static void mt_coll_reduce(size_t size)
{
    size_t count  = (size + 7) / 8;
    uint64_t *tx  = mt_alloc(count * sizeof(*tx));
    uint64_t *rx  = mt_alloc(count * sizeof(*rx));
    uint64_t np   = (uint64_t)mt.np;
    uint64_t rank = (uint64_t)mt.rank;
    size_t i;

    for (i = 0; i < count; ++i) {
        tx[i] = i + rank;
    }
    MPI_Allreduce(tx, rx, (int)count, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (i = 0; i < count; ++i) {
        MT_ASSERT(rx[i] == np * i + np * (np - 1) / 2);
    }
    MPI_Scan(tx, rx, (int)count, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (i = 0; i < count; ++i) {
        MT_ASSERT(rx[i] == (rank + 1) * i + rank * (rank + 1) / 2);
    }
    free(rx);
    free(tx);
}

/* Several collectives in flight at once, and a communicator of half the
 * ranks whose traffic must not be taken for the other half's. */
static void mt_coll_split(size_t size)
{
    char *buffers = mt_alloc(3 * size);
    MPI_Request requests[4];
    MPI_Comm half;
    int i, root;

    MPI_Comm_split(MPI_COMM_WORLD, mt.rank % 2, mt.rank, &half);
    root = mt.rank % 2;
    for (i = 0; i < 3; ++i) {
        if (mt.rank == root) {
            mt_fill(buffers + (size_t)i * size, size, root, 0, 4 + (uint64_t)i);
        }
        MPI_Ibcast(buffers + (size_t)i * size, (int)size, MPI_BYTE, 0, half,
                   &requests[i]);
    }
    MPI_Ibarrier(half, &requests[3]);
    mt_wait_all(4, requests);
    for (i = 0; i < 3; ++i) {
        mt_check(buffers + (size_t)i * size, size, root, 0, 4 + (uint64_t)i);
    }
    MPI_Comm_free(&half);
    free(buffers);
}

void mt_case_collectives(void)
{
    size_t i;

    for (i = 0; i < MT_NUM_COLL_SIZES; ++i) {
        mt_coll_bcast(mt_coll_sizes[i]);
        mt_coll_gather_scatter(mt_coll_sizes[i]);
        mt_coll_alltoall(mt_coll_sizes[i]);
        mt_coll_reduce(mt_coll_sizes[i]);
        mt_coll_split(mt_coll_sizes[i]);
    }
}
