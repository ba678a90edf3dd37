/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The software device for this very program: it is a library that has to be
 * there before the program starts, so the program starts itself again.
 */

#ifndef DAQIRI_SOFT_H
#define DAQIRI_SOFT_H

#include "tools/base/watch.h"

/* Whether it is loaded: then it is the only device to be seen. */
int daqiri_soft_is_loaded(void);

/*
 * Starts `daqiri` again with the software device loaded; argv is the
 * subcommand's, argv[0] "daqiri NAME". Returns only if that cannot be done,
 * with an exit status after one sentence on stderr, or 0 if it is loaded.
 */
int daqiri_soft_enter(char **argv);

/* For daqiri_watch_run(), for to look for a device is to open each, and one may
 * be wedged: the "name" of the first that is usable, and of the "first" of all,
 * or null; or an "error". The software device does not count. */
json_t *daqiri_soft_find(void *arg);

/*
 * Settles which device a command uses. "soft" and its name enter it; "auto"
 * (or NULL) enters it when there is no usable RDMA device, and says so on
 * stderr. Returns 0 and the device's name, which lives as long as the program,
 * or an exit status after one sentence.
 */
int daqiri_soft_settle(const char *wanted, char **argv, const char **name_p);

#endif
