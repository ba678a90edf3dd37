/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The command `daqiri`: a table of subcommands (main.c), each a function that
 * takes its own arguments and returns an exit status.
 *
 * What a person should know goes to stderr, one sentence a line, with "daqiri
 * NAME:" before it; what a program may read goes to stdout.
 */

#ifndef DAQIRI_CMD_H
#define DAQIRI_CMD_H

#include "tools/base/exit_status.h"

/* Which commit this is: contrib/commit. */
extern const char daqiri_commit[];

/* argv[0] is "daqiri NAME", for messages. */
int daqiri_run(int argc, char **argv);
int daqiri_faults(int argc, char **argv);
int daqiri_interfaces(int argc, char **argv);
int daqiri_probe(int argc, char **argv);
int daqiri_pingpong(int argc, char **argv);
int daqiri_serve(int argc, char **argv);
int daqiri_tcp(int argc, char **argv);
int daqiri_sweep(int argc, char **argv);
int daqiri_drop_curve(int argc, char **argv);
int daqiri_mpi_sweep(int argc, char **argv);
int daqiri_stats(int argc, char **argv);
int daqiri_top(int argc, char **argv);

#endif
