/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Preloaded into an MPI program, damages the last byte of what the hundredth
 * call of one function gives it: what a program that checks its data must
 * notice. MT_SPOIL names the function: recv, irecv (damaged when it is waited
 * for), allreduce, alltoall, bcast.
 *
 * With "stall" nothing is damaged. The program gets a clock that only receiving
 * moves: by MT_STEP for each recv, and by MT_STALL for the hundredth. A busy
 * machine does not change what the program measures by it.
 */

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define MT_SPOILED 100
#define MT_STEP    1e-6 /* seconds */
#define MT_STALL   2.0  /* seconds */

static char  *mt_irecv_end;
static double mt_clock;

/* Whether MT_SPOIL names this function. */
static int mt_is_named(const char *function)
{
    const char *name = getenv("MT_SPOIL");

    return (name != NULL) && (strcmp(name, function) == 0);
}

/* Whether this is the call. */
static int mt_spoils(const char *function, int count)
{
    static int seen;

    return mt_is_named(function) && (count > 0) && (++seen == MT_SPOILED);
}

static void mt_spoil(char *end)
{
    end[-1] ^= 0x10;
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag,
             MPI_Comm comm, MPI_Status *status)
{
    int ret = PMPI_Recv(buffer, count, type, source, tag, comm, status);

    if (mt_spoils("recv", count)) {
        mt_spoil((char*)buffer + count);
    }
    mt_clock += mt_spoils("stall", count) ? MT_STALL : MT_STEP;
    return ret;
}

double MPI_Wtime(void)
{
    return mt_is_named("stall") ? mt_clock : PMPI_Wtime();
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag,
              MPI_Comm comm, MPI_Request *request)
{
    if (mt_spoils("irecv", count)) {
        mt_irecv_end = (char*)buffer + count;
    }
    return PMPI_Irecv(buffer, count, type, source, tag, comm, request);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    int ret = PMPI_Waitall(count, requests, statuses);

    if (mt_irecv_end != NULL) {
        mt_spoil(mt_irecv_end);
        mt_irecv_end = NULL;
    }
    return ret;
}

int MPI_Allreduce(const void *tx, void *rx, int count, MPI_Datatype type,
                  MPI_Op op, MPI_Comm comm)
{
    int ret = PMPI_Allreduce(tx, rx, count, type, op, comm);

    if (mt_spoils("allreduce", count)) {
        mt_spoil((char*)rx + (size_t)count * sizeof(unsigned));
    }
    return ret;
}

int MPI_Alltoall(const void *tx, int tx_count, MPI_Datatype tx_type, void *rx,
                 int rx_count, MPI_Datatype rx_type, MPI_Comm comm)
{
    int ret = PMPI_Alltoall(tx, tx_count, tx_type, rx, rx_count, rx_type, comm);

    if (mt_spoils("alltoall", rx_count)) {
        mt_spoil((char*)rx + rx_count);
    }
    return ret;
}

/* The sweep also decides by broadcast what to do next: not in bytes. */
int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root,
              MPI_Comm comm)
{
    int ret = PMPI_Bcast(buffer, count, type, root, comm);

    if ((type == MPI_BYTE) && mt_spoils("bcast", count)) {
        mt_spoil((char*)buffer + count);
    }
    return ret;
}
