/* SPDX-License-Identifier: BSD-3-Clause */

#include "mt.h"

#include <stdlib.h>
#include <string.h>

#define MT_TAG_DATA 11

static int mt_next(void)
{
    return (mt.rank + 1) % mt.np;
}

static int mt_previous(void)
{
    return (mt.rank + mt.np - 1) % mt.np;
}

/* Round the ring; odd ranks receive first, so that large messages, which wait
 * for their receiver, get through. One rank alone has nobody to wait for. */
static void mt_ring_step(void *tx, void *rx, size_t size)
{
    if (mt.rank % 2 == 0) {
        mt_send(tx, size, mt_next(), MT_TAG_DATA);
        mt_recv(rx, size, mt_previous(), MT_TAG_DATA);
    } else {
        mt_recv(rx, size, mt_previous(), MT_TAG_DATA);
        mt_send(tx, size, mt_next(), MT_TAG_DATA);
    }
}

static void mt_sendrecv_step(void *tx, void *rx, size_t size)
{
    MPI_Status status;

    MPI_Sendrecv(tx, (int)size, MPI_BYTE, mt_next(), MT_TAG_DATA, rx,
                 (int)size, MPI_BYTE, mt_previous(), MT_TAG_DATA,
                 MPI_COMM_WORLD, &status);
    mt_check_status(&status, size, mt_previous(), MT_TAG_DATA);
}

void mt_case_blocking(void)
{
    char *tx = mt_alloc(MT_MAX_SIZE);
    char *rx = mt_alloc(MT_MAX_SIZE);
    uint64_t serial;
    size_t i;

    for (i = 0; i < MT_NUM_SIZES; ++i) {
        for (serial = 0; serial < 2; ++serial) {
            mt_fill(tx, mt_sizes[i], mt.rank, mt_next(), serial);
            memset(rx, 0, mt_sizes[i]);
            if ((serial == 0) && (mt.np > 1)) {
                mt_ring_step(tx, rx, mt_sizes[i]);
            } else {
                mt_sendrecv_step(tx, rx, mt_sizes[i]);
            }
            mt_check(rx, mt_sizes[i], mt_previous(), mt.rank, serial);
        }
    }
    free(rx);
    free(tx);
}

/* Every rank to every rank, all at once, a few messages each. */
static void mt_exchange_all(size_t size, unsigned per_peer)
{
    unsigned count        = per_peer * (unsigned)mt.np;
    char *tx              = mt_alloc(size * count);
    char *rx              = mt_alloc(size * count);
    MPI_Request *requests = mt_alloc(2 * count * sizeof(*requests));
    MPI_Status *statuses  = mt_alloc(2 * count * sizeof(*statuses));
    unsigned i;
    int peer;

    for (i = 0; i < count; ++i) {
        peer = (int)(i % (unsigned)mt.np);
        MPI_Irecv(rx + i * size, (int)size, MPI_BYTE, peer, (int)i / mt.np,
                  MPI_COMM_WORLD, &requests[i]);
    }
    for (i = 0; i < count; ++i) {
        peer = (int)(i % (unsigned)mt.np);
        mt_fill(tx + i * size, size, mt.rank, peer, i / (unsigned)mt.np);
        mt_isend(tx + i * size, size, peer, (int)i / mt.np,
                 &requests[count + i]);
    }
    MPI_Waitall((int)(2 * count), requests, statuses);
    for (i = 0; i < count; ++i) {
        peer = (int)(i % (unsigned)mt.np);
        mt_check_status(&statuses[i], size, peer, (int)i / mt.np);
        mt_check(rx + i * size, size, peer, mt.rank, i / (unsigned)mt.np);
    }

    free(statuses);
    free(requests);
    free(rx);
    free(tx);
}

void mt_case_nonblocking(void)
{
    size_t i;

    for (i = 0; i < MT_NUM_SIZES; ++i) {
        mt_exchange_all(mt_sizes[i], (mt_sizes[i] <= 65536) ? 16 : 1);
    }
}

/*
 * Rank 0 takes what comes. Messages of one sender must come in order whatever
 * the others do; their sizes change between what is sent at once and what
 * waits for its receiver, which is where a transport may get the order wrong.
 */
static size_t mt_any_source_size(uint64_t serial)
{
    static const size_t sizes[] = {1, 70000, 8, 9000, 200};

    return sizes[serial % (sizeof(sizes) / sizeof(sizes[0]))];
}

#define MT_ANY_SOURCE_MESSAGES 200

static void mt_any_source_receive(void)
{
    char *rx      = mt_alloc(70000);
    uint64_t *due = mt_alloc((size_t)mt.np * sizeof(*due));
    MPI_Status status;
    int left;

    memset(due, 0, (size_t)mt.np * sizeof(*due));
    for (left = (mt.np - 1) * MT_ANY_SOURCE_MESSAGES; left > 0; --left) {
        MPI_Recv(rx, 70000, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG,
                 MPI_COMM_WORLD, &status);
        mt_check_status(&status,
                        mt_any_source_size(due[status.MPI_SOURCE]),
                        status.MPI_SOURCE, (int)due[status.MPI_SOURCE]);
        mt_check(rx, mt_any_source_size(due[status.MPI_SOURCE]),
                 status.MPI_SOURCE, 0, due[status.MPI_SOURCE]);
        ++due[status.MPI_SOURCE];
    }
    free(due);
    free(rx);
}

static void mt_any_source_send(void)
{
    char *tx = mt_alloc(70000);
    uint64_t serial;

    for (serial = 0; serial < MT_ANY_SOURCE_MESSAGES; ++serial) {
        mt_fill(tx, mt_any_source_size(serial), mt.rank, 0, serial);
        mt_send(tx, mt_any_source_size(serial), 0, (int)serial);
    }
    free(tx);
}

void mt_case_any_source(void)
{
    if (mt.rank == 0) {
        mt_any_source_receive();
    } else {
        mt_any_source_send();
    }
}

void mt_case_self(void)
{
    char *tx = mt_alloc(MT_MAX_SIZE);
    char *rx = mt_alloc(MT_MAX_SIZE);
    MPI_Request requests[2];
    size_t i;

    for (i = 0; i < MT_NUM_SIZES; ++i) {
        mt_fill(tx, mt_sizes[i], mt.rank, mt.rank, i);
        memset(rx, 0, mt_sizes[i]);
        /* Once with the receive there first, once with the send. */
        if (i % 2 == 0) {
            MPI_Irecv(rx, (int)mt_sizes[i], MPI_BYTE, mt.rank, (int)i,
                      MPI_COMM_WORLD, &requests[0]);
            mt_isend(tx, mt_sizes[i], mt.rank, (int)i, &requests[1]);
        } else {
            mt_isend(tx, mt_sizes[i], mt.rank, (int)i, &requests[1]);
            MPI_Irecv(rx, (int)mt_sizes[i], MPI_BYTE, mt.rank, (int)i,
                      MPI_COMM_WORLD, &requests[0]);
        }
        mt_wait_all(2, requests);
        mt_check(rx, mt_sizes[i], mt.rank, mt.rank, i);
    }
    free(rx);
    free(tx);
}

/* A message that is too long for its receive is an error there, and only
 * there: what follows it arrives. */
static void mt_truncate(size_t size, size_t room)
{
    char *tx = mt_alloc(size);
    char *rx = mt_alloc(size);
    MPI_Request request;
    int error, error_class;

    mt_fill(tx, size, mt.rank, mt_next(), 1);
    mt_isend(tx, size, mt_next(), 1, &request);
    error = MPI_Recv(rx, (int)room, MPI_BYTE, mt_previous(), 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    MT_ASSERT(error != MPI_SUCCESS);
    MPI_Error_class(error, &error_class);
    MT_ASSERT(error_class == MPI_ERR_TRUNCATE);
    MT_ASSERT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);

    mt_fill(tx, size, mt.rank, mt_next(), 2);
    mt_sendrecv_step(tx, rx, size);
    mt_check(rx, size, mt_previous(), mt.rank, 2);
    free(rx);
    free(tx);
}

void mt_case_truncation(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    mt_truncate(1, 0);
    mt_truncate(100, 10);
    mt_truncate(5000, 4999);
    mt_truncate(1 << 20, 10);
    mt_truncate(1 << 20, (1 << 20) - 1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void mt_probe_step(uint64_t serial, size_t size)
{
    char *tx = mt_alloc(size);
    char *rx = mt_alloc(size);
    MPI_Message message;
    MPI_Request request;
    MPI_Status status;
    int flag = 0;

    mt_fill(tx, size, mt.rank, mt_next(), serial);
    mt_isend(tx, size, mt_next(), (int)serial, &request);

    if (serial % 3 == 0) {
        MPI_Probe(MPI_ANY_SOURCE, (int)serial, MPI_COMM_WORLD, &status);
    } else {
        while (!flag) {
            MPI_Iprobe(mt_previous(), MPI_ANY_TAG, MPI_COMM_WORLD, &flag,
                       &status);
        }
    }
    mt_check_status(&status, size, mt_previous(), (int)serial);

    if (serial % 2 == 0) {
        MPI_Mprobe(mt_previous(), (int)serial, MPI_COMM_WORLD, &message,
                   &status);
        MPI_Mrecv(rx, (int)size, MPI_BYTE, &message, &status);
        mt_check_status(&status, size, mt_previous(), (int)serial);
    } else {
        mt_recv(rx, size, mt_previous(), (int)serial);
    }
    mt_check(rx, size, mt_previous(), mt.rank, serial);

    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(rx);
    free(tx);
}

void mt_case_probe(void)
{
    size_t i;

    for (i = 0; i < MT_NUM_SIZES; ++i) {
        mt_probe_step(i, mt_sizes[i]);
    }
}

/* More messages than any queue has room for, sent before their receiver asks
 * for the first one, and asked for from the last one backwards. */
#define MT_UNEXPECTED_MESSAGES 4000
#define MT_UNEXPECTED_SIZE     40

void mt_case_unexpected(void)
{
    char *tx              = mt_alloc(MT_UNEXPECTED_MESSAGES * MT_UNEXPECTED_SIZE);
    char *rx              = mt_alloc(MT_UNEXPECTED_SIZE);
    MPI_Request *requests = mt_alloc(MT_UNEXPECTED_MESSAGES * sizeof(*requests));
    char *message;
    int i;

    for (i = 0; i < MT_UNEXPECTED_MESSAGES; ++i) {
        message = tx + i * MT_UNEXPECTED_SIZE;
        mt_fill(message, MT_UNEXPECTED_SIZE, mt.rank, mt_next(), (uint64_t)i);
        mt_isend(message, MT_UNEXPECTED_SIZE, mt_next(), i, &requests[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (i = MT_UNEXPECTED_MESSAGES - 1; i >= 0; --i) {
        mt_recv(rx, MT_UNEXPECTED_SIZE, mt_previous(), i);
        mt_check(rx, MT_UNEXPECTED_SIZE, mt_previous(), mt.rank, (uint64_t)i);
    }
    mt_wait_all(MT_UNEXPECTED_MESSAGES, requests);

    free(requests);
    free(rx);
    free(tx);
}
