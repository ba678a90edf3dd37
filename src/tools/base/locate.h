/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Where the libraries and programs are that belong to this very program: next to it in a
 * build tree, or where `make install` put them relative to it (so that a tree
 * moved as a whole still works), or where configure was told.
 */

#ifndef DAQIRI_LOCATE_H
#define DAQIRI_LOCATE_H

#include <limits.h>
#include <stddef.h>

typedef struct daqiri_library {
    const char *file;   /* libuct_daqiri.so.0 */
    const char *folder; /* in a build tree, from src/tools: ../uct/daqiri */
} daqiri_library_t;

extern const daqiri_library_t daqiri_library_plugin;
extern const daqiri_library_t daqiri_library_softverbs;

/* Returns 0 and the absolute path of a readable file, or -1 and, for a
 * message, the folders that were looked at. Both texts are PATH_MAX long. */
int daqiri_locate_library(const daqiri_library_t *library, char *path,
                          char *tried);

/* The same for a program that only `daqiri` starts. */
int daqiri_locate_program(const char *name, char *path, char *tried);

/* The same for a file that is no program: a script of gnuplot. */
int daqiri_locate_data(const char *name, char *path, char *tried);

/* The path of this program, PATH_MAX long; the kernel's own link to it, for as
 * long as this process lives, when its file has been removed or replaced. A
 * program that is started by its path has that name in ps, and not "exe". */
void daqiri_locate_self(char *path);

/*
 * The way from bindir to libdir when both have moved along with `exe_dir`:
 * ("/usr/bin", "/usr/lib/x", "/opt/d/bin") gives "/opt/d/bin/../lib/x".
 */
void daqiri_locate_moved(const char *bindir, const char *libdir,
                         const char *exe_dir, char *path, size_t length);

#endif
