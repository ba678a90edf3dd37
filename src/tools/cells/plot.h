/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Pictures, by gnuplot as a child: it reads a script on its standard input and
 * writes the picture, which takes the place of the file when it is complete.
 */

#ifndef DAQIRI_PLOT_H
#define DAQIRI_PLOT_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* Whether it ends as a picture does that can be drawn: .svg or .png. */
int daqiri_plot_is_name(const char *path);

/* Whether the program is there and the file could be written; what is not so
 * is said on stderr. Returns 0 or -1. */
int daqiri_plot_try(const char *path, const char *speaker);

/* `draw` writes the script: all but the terminal and the output. Returns 0, or
 * -1 after one sentence. */
int daqiri_plot_draw(const char *path, const char *speaker,
                     void (*draw)(const json_t *report, FILE *script),
                     const json_t *report);

/* ---- for scripts ---- */

/* One line of a picture: the rows that have the same transport, pattern and
 * window. A paced and an unpaced row may be in the same one. */
typedef struct daqiri_plot_series {
    const char *transport;
    const char *pattern;
    long long  window;
} daqiri_plot_series_t;

/* Of the report's rows that have figures; in their order. Returns how many. */
#define DAQIRI_PLOT_SERIES_MAX 64
size_t daqiri_plot_find_series(const json_t *report,
                               daqiri_plot_series_t *series);
int daqiri_plot_is_in(const daqiri_plot_series_t *series, const json_t *row);

/* "daqiri stream", with the window if there are several. */
void daqiri_plot_title(const daqiri_plot_series_t *series, size_t count,
                       size_t i, FILE *script);

/* A color for each transport, in the order of their appearance. */
size_t daqiri_plot_color(const daqiri_plot_series_t *series, size_t i);

/* 64, 4K, 1M. Returns text, as long as that. */
#define DAQIRI_PLOT_SIZE_MAX 24
char *daqiri_plot_size(uint64_t size, char *text);

/* A logarithmic x axis of sizes: 64, 4K, 1M. */
void daqiri_plot_sizes(const json_t *report, FILE *script);

/* The number at a path of a row, or NaN, which gnuplot leaves out. */
void daqiri_plot_number(const json_t *row, const char *path, FILE *script);

#endif
