/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Libraries that must stay mapped until the process ends.
 *
 * Threads: any one.
 */
#ifndef MAPPED_H
#define MAPPED_H

/* Keeps each loaded library whose path contains @a part: dlclose() does not unmap it any
 * more. Returns how many libraries those are. */
int mapped_keep(const char *part);

/*
 * Call after MPI_Init(). orte_finalize() of Open MPI 4.1 unloads its component mca_pmix_*
 * before it joins the thread that runs the callbacks of that component. So a process may
 * crash in MPI_Finalize(): "signal 11, address not mapped", in a thread of Open MPI.
 */
void mapped_keep_pmix(void);

#endif
