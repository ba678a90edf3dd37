/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The command that `daqiri run` becomes: whether it is there, what it starts, and, of
 * one that starts the ranks of a job, on how many hosts it will do so.
 */

#ifndef DAQIRI_COMMAND_H
#define DAQIRI_COMMAND_H

#include <stddef.h>

/* As execvp() would look for it: 0, or the errno for which it cannot be run. */
int daqiri_command_check(const char *name);

/* The same, and where it is; path is PATH_MAX long. */
int daqiri_command_find(const char *name, char *path);

/*
 * The word of a command line that is what its ranks run: the first that is a command
 * and does not itself start another, as mpirun, srun, env and timeout do. NULL: there
 * is none. *starter_p is the last word that starts an MPI's ranks, or NULL.
 */
const char *daqiri_command_program(char *const *command,
                                   const char **starter_p);

/* Whether it is one of an MPI's (mpirun, mpiexec, ...), by its name. */
int daqiri_command_is_starter(const char *name);

/* Slurm's, by its name. */
int daqiri_command_is_srun(const char *name);

/* The word of a command line that starts ranks, an MPI's starter or srun, or NULL. */
const char *daqiri_command_starter(char *const *command);

/* Whether that one is, or may be, Open MPI's. */
int daqiri_command_is_open_mpi(char *const *command);

/* What the first option of these names (without dashes, NULL at the end) has for a
 * value on the starter's command line: behind a = or in the next word. NULL: it is not
 * there. */
const char *daqiri_command_option(char *const *command,
                                  const char *const *names);

/* Whether -x NAME is there, which Open MPI and PRRTE have. */
int daqiri_command_exports(char *const *command, const char *name);

/*
 * How many different hosts a job has, as far as the command line of an MPI's
 * starter says it (lists of hosts, and files of them), or else the environment
 * (those of batch systems and of the MPIs); 0 if neither does. Of a command that
 * Slurm starts once for each rank, only the first rank's has any. Writes their
 * names, some if there are many. Two names of one host that do not look alike are
 * two.
 */
size_t daqiri_command_hosts(char *const *command, char *text, size_t size);

#endif
