/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * How the environment of `daqiri run` gets to the ranks, on other hosts too. Each
 * launcher has its own way:
 *
 *   srun              all of it, unless --export or SLURM_EXPORT_ENV says otherwise
 *   MPICH's mpiexec   all of it, unless -genvnone or HYDRA_ENV says otherwise
 *   PRRTE, Open MPI 5 nothing; all of it with prte_fwd_environment
 *   Open MPI 4        what is in a list of names
 */

#ifndef DAQIRI_TRAVEL_H
#define DAQIRI_TRAVEL_H

#include "tools/base/env_list.h"

/* Adds what has each launcher hand over env_list as it is now, and the user's variables
 * that ranks need. */
void daqiri_travel_add(daqiri_env_list_t *env_list);

/* Whether the command line keeps variables from the ranks. Returns 0, or -1 and a
 * sentence that names them. `hosts` are those of the job, 0 if that is not known. */
int daqiri_travel_check(const daqiri_env_list_t *env_list, char *const *command,
                        size_t hosts, char *why, size_t size);

/* A sentence about a variable that Open MPI 4 cannot hand to other hosts by itself;
 * empty: there is none. */
void daqiri_travel_stuck(char *const *command, size_t hosts, char *text,
                         size_t size);

#endif
