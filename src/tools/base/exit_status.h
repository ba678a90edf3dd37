/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The exit status of the command `daqiri`, the same in all subcommands.
 */

#ifndef DAQIRI_EXIT_STATUS_H
#define DAQIRI_EXIT_STATUS_H

#define DAQIRI_EXIT_OK        0
#define DAQIRI_EXIT_FAILED    1   /* asked for rightly, could not be done */
#define DAQIRI_EXIT_USAGE     2   /* usage error */
#define DAQIRI_EXIT_APART     3   /* the other end is on another fabric */
#define DAQIRI_EXIT_WATCHDOG  124 /* something did not come back in time */
#define DAQIRI_EXIT_NOT_EXEC  126 /* a command is there but cannot be run */
#define DAQIRI_EXIT_NOT_FOUND 127 /* a command is not there */

#endif
