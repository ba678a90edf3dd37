/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Pictures, by gnuplot as a child: it runs a script that is installed (sweep.gp,
 * drop-curve.gp), which reads the CSV of the command. The picture takes the place of
 * its file when it is complete.
 */

#ifndef DAQIRI_PLOT_H
#define DAQIRI_PLOT_H

#include <stdio.h>

/* Whether it ends as a picture does that can be drawn: .svg or .png. */
int daqiri_plot_is_name(const char *path);

/* Whether gnuplot and the script are there and the file could be written; what is
 * not so is said on stderr. Returns 0 or -1. */
int daqiri_plot_try(const char *path, const char *script, const char *speaker);

/* Of the CSV in a file, which need not have a name. Returns 0, or -1 after one
 * sentence. */
int daqiri_plot_draw(const char *path, const char *script, FILE *csv,
                     const char *speaker);

#endif
