/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * mt-spawn FORM CHILDREN ROUNDS
 *
 * Processes that come and go while their peers stay: what MPI calls dynamic
 * processes. In each round the one parent gets CHILDREN new ones, exchanges messages
 * of every length with each, and both sides part. A peer that leaves in order must
 * not end anybody's job. FORM is one of
 *
 *   spawn     one MPI_Comm_spawn
 *   multiple  one MPI_Comm_spawn_multiple of two commands (CHILDREN each)
 *   merge     the same as spawn, and one communicator of all, with collectives and
 *             a window
 *   connect   the children connect once more, by MPI_Comm_connect to a port
 *   silent    the last thing that the parent does is to send, and nobody answers
 *   stay      all rounds' children stay until the end, and part in turns
 *   leave     the parent leaves first: the children have work among themselves,
 *             and do it when the parent is gone
 *   die       the children end without MPI_Finalize
 *   halves    nobody is started: the two halves of a job connect, and part
 *
 * Every byte is checked. Who finds a fault says so and ends the job.
 */

#include "tools/base/mapped.h"

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MT_LONGEST = 1 << 20,
    MT_TAG     = 7,
    MT_KEPT    = 16 /* rounds of the form stay, at most */
};

static const int mt_sizes[] = {0, 8, 64, 4096, 20000, MT_LONGEST};

enum { MT_SIZES = sizeof(mt_sizes) / sizeof(mt_sizes[0]) };

static void mt_fail(const char *what, int line)
{
    fprintf(stderr, "mt-spawn: not so: %s (line %d)\n", what, line);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

#define MT_ASSERT(_condition) \
    ((_condition) ? (void)0 : mt_fail(#_condition, __LINE__))

static void *mt_alloc(size_t size)
{
    void *memory = malloc(size);

    MT_ASSERT(memory != NULL);
    return memory;
}

static unsigned char mt_byte(int i, int size)
{
    return (unsigned char)(i * 7 + size);
}

static void mt_fill(unsigned char *buffer, int size)
{
    int i;

    for (i = 0; i < size; i++) {
        buffer[i] = mt_byte(i, size);
    }
}

static void mt_check(const unsigned char *buffer, int size)
{
    int i;

    for (i = 0; i < size; i++) {
        MT_ASSERT(buffer[i] == mt_byte(i, size));
    }
}

/* One message of each length each way, with rank `peer` of the other group. */
static void mt_exchange(MPI_Comm comm, int peer)
{
    unsigned char *tx = mt_alloc(MT_LONGEST);
    unsigned char *rx = mt_alloc(MT_LONGEST);
    MPI_Request request[2];
    MPI_Status status[2];
    int i;

    for (i = 0; i < MT_SIZES; i++) {
        mt_fill(tx, mt_sizes[i]);
        MPI_Irecv(rx, mt_sizes[i], MPI_BYTE, peer, MT_TAG, comm, &request[0]);
        MPI_Isend(tx, mt_sizes[i], MPI_BYTE, peer, MT_TAG, comm, &request[1]);
        MPI_Waitall(2, request, status);
        mt_check(rx, mt_sizes[i]);
    }
    free(tx);
    free(rx);
}

/* The parent with each of its children, all of which call this, too. */
static void mt_meet(MPI_Comm comm, int is_parent)
{
    int count, i;

    if (!is_parent) {
        mt_exchange(comm, 0);
        return;
    }
    MPI_Comm_remote_size(comm, &count);
    for (i = 0; i < count; i++) {
        mt_exchange(comm, i);
    }
}

/* Short messages, to be found in the ledger of whoever is told that the peer has
 * gone: nothing waits for them. */
static void mt_say_last(MPI_Comm comm, int is_parent)
{
    enum { LAST = 3 };
    char byte = 1;
    int count, i, k;

    MPI_Comm_remote_size(comm, &count);
    for (i = 0; i < (is_parent ? count : 1); i++) {
        for (k = 0; k < LAST; k++) {
            if (is_parent) {
                MPI_Send(&byte, 1, MPI_BYTE, i, MT_TAG, comm);
            } else {
                MPI_Recv(&byte, 1, MPI_BYTE, 0, MT_TAG, comm,
                         MPI_STATUS_IGNORE);
            }
        }
    }
}

/* One communicator of all: collectives, and memory that others read and write. */
static void mt_merge(MPI_Comm inter, int is_parent)
{
    int rank, size, sum, next, seen;
    MPI_Comm all;
    MPI_Win win;
    int *shared;

    MPI_Intercomm_merge(inter, !is_parent, &all);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all);
    MT_ASSERT(sum == size * (size - 1) / 2);

    MPI_Win_allocate(sizeof(*shared), sizeof(*shared), MPI_INFO_NULL, all,
                     &shared, &win);
    *shared = -1;
    MPI_Barrier(all);
    next = (rank + 1) % size;
    MPI_Win_lock_all(0, win);
    MPI_Put(&rank, 1, MPI_INT, next, 0, 1, MPI_INT, win);
    MPI_Win_flush(next, win);
    MPI_Barrier(all);
    MPI_Get(&seen, 1, MPI_INT, rank, 0, 1, MPI_INT, win);
    MPI_Win_flush(rank, win);
    MPI_Win_unlock_all(win);
    MT_ASSERT(seen == (rank + size - 1) % size);
    MPI_Win_free(&win);
    MPI_Comm_free(&all);
}

/* The children come once more, through a port that the parent opens. */
static void mt_connect(MPI_Comm inter, int is_parent)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm other, local;
    int root = is_parent ? MPI_ROOT : 0;

    if (is_parent) {
        MPI_Open_port(MPI_INFO_NULL, port);
    }
    MPI_Bcast(port, sizeof(port), MPI_CHAR, root, inter);
    if (is_parent) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
        MPI_Close_port(port);
    } else {
        MPI_Comm_dup(MPI_COMM_WORLD, &local);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, local, &other);
        MPI_Comm_free(&local);
    }
    mt_meet(other, is_parent);
    MPI_Comm_disconnect(&other);
}

/* What both sides do in a round, before they part. */
static void mt_round(const char *form, MPI_Comm inter, int is_parent)
{
    mt_meet(inter, is_parent);
    if (strcmp(form, "merge") == 0) {
        mt_merge(inter, is_parent);
    } else if (strcmp(form, "connect") == 0) {
        mt_connect(inter, is_parent);
    } else if (strcmp(form, "silent") == 0) {
        mt_say_last(inter, is_parent);
    }
}

/* The parent has gone, or goes: its children have each other. */
static void mt_go_on(void)
{
    enum { STEPS = 200 };
    int rank, size, sum, i;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (i = 0; i < STEPS; i++) {
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MT_ASSERT(sum == size * (size - 1) / 2);
        usleep(1000);
    }
}

static int mt_child(const char *form, MPI_Comm parent)
{
    mt_round(form, parent, 0);
    MPI_Comm_disconnect(&parent);
    if (strcmp(form, "leave") == 0) {
        mt_go_on();
    } else if (strcmp(form, "die") == 0) {
        _exit(0);
    }
    MPI_Finalize();
    return 0;
}

/* The upper half connects to the lower one, and each rank exchanges with its like. */
static void mt_halves(int rounds)
{
    char port[MPI_MAX_PORT_NAME] = "";
    int rank, size, is_upper, i;
    MPI_Comm half, other;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MT_ASSERT((size % 2) == 0);
    is_upper = rank >= size / 2;
    MPI_Comm_split(MPI_COMM_WORLD, is_upper, rank, &half);
    for (i = 0; i < rounds; i++) {
        if (rank == 0) {
            MPI_Open_port(MPI_INFO_NULL, port);
        }
        MPI_Bcast(port, sizeof(port), MPI_CHAR, 0, MPI_COMM_WORLD);
        if (is_upper) {
            MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &other);
        } else {
            MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &other);
        }
        if (rank == 0) {
            MPI_Close_port(port);
        }
        mt_exchange(other, rank % (size / 2));
        MPI_Comm_disconnect(&other);
    }
    MPI_Comm_free(&half);
}

static MPI_Comm mt_spawn(const char *form, char *program, int children)
{
    char *argv[]     = {(char*)form, NULL};
    char **argvs[2]  = {argv, argv};
    char *program2[] = {program, program};
    int counts[]     = {children, children};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm inter;

    if (strcmp(form, "multiple") == 0) {
        MPI_Comm_spawn_multiple(2, program2, argvs, counts, infos, 0,
                                MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE);
    } else {
        MPI_Comm_spawn(program, argv, children, MPI_INFO_NULL, 0, MPI_COMM_SELF,
                       &inter, MPI_ERRCODES_IGNORE);
    }
    return inter;
}

int main(int argc, char **argv)
{
    MPI_Comm parent, kept[MT_KEPT];
    int children, rounds, i;
    const char *form;

    MPI_Init(&argc, &argv);
    mapped_keep_pmix();
    form = (argc > 1) ? argv[1] : "spawn";
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        return mt_child(form, parent);
    }

    MT_ASSERT(argc == 4);
    children = atoi(argv[2]);
    rounds   = atoi(argv[3]);
    MT_ASSERT((strcmp(form, "stay") != 0) || (rounds <= MT_KEPT));
    if (strcmp(form, "halves") == 0) {
        mt_halves(rounds);
        rounds = 0;
    }
    for (i = 0; i < rounds; i++) {
        kept[i % MT_KEPT] = mt_spawn(form, argv[0], children);
        mt_round(form, kept[i % MT_KEPT], 1);
        if (strcmp(form, "stay") != 0) {
            MPI_Comm_disconnect(&kept[i % MT_KEPT]);
        }
    }
    for (i = 0; (strcmp(form, "stay") == 0) && (i < rounds); i++) {
        MPI_Comm_disconnect(&kept[i]);
    }
    printf("mt-spawn: %s, %d children, %d rounds\n", form, children,
           atoi(argv[3]));
    MPI_Finalize();
    return 0;
}
