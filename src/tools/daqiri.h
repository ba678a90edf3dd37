/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The command `daqiri`: a table of subcommands (main.c), each a function that
 * takes its own arguments and returns an exit status.
 *
 * What a person should know goes to stderr, one sentence a line, with "daqiri
 * NAME:" before it; what a program may read goes to stdout.
 */

#ifndef DAQIRI_H
#define DAQIRI_H

#define DAQIRI_EXIT_OK        0
#define DAQIRI_EXIT_FAILED    1   /* asked for rightly, could not be done */
#define DAQIRI_EXIT_USAGE     2   /* asked for wrongly */
#define DAQIRI_EXIT_APART     3   /* the other end is on another fabric */
#define DAQIRI_EXIT_WATCHDOG  124 /* something did not come back in time */
#define DAQIRI_EXIT_NOT_EXEC  126 /* a command is there but cannot be run */
#define DAQIRI_EXIT_NOT_FOUND 127 /* a command is not there */

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

#endif
