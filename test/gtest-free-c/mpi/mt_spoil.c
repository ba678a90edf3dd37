/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Preloaded into an MPI program, damages the last byte of the hundredth
 * message that MPI_Recv gives it and that has one: what a program that checks
 * its data must notice.
 */

#include <mpi.h>

#define MT_SPOILED 100

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag,
             MPI_Comm comm, MPI_Status *status)
{
    static int seen;
    int ret   = PMPI_Recv(buffer, count, type, source, tag, comm, status);
    char *end = (char*)buffer + count;

    if ((count > 0) && (++seen == MT_SPOILED)) {
        end[-1] ^= 0x10;
    }
    return ret;
}
