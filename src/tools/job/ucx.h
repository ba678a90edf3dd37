/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The UCX that a job will load, and the way by which the plugin gets into it.
 *
 * The loader is asked which libraries it would give to the program, or to the MPI
 * that starts it or is linked with it; nothing of the job is run for that. The UCX
 * that it names is then opened by a process of its own, together with the plugin,
 * and says its version; the plugin says there if it would stay out. A script, or a
 * program that opens UCX by itself, shows only when it runs which UCX that is.
 *
 * UCX loads modules only if they were built with it, until 1.22: so the plugin is
 * preloaded. Later ones look into the folders of UCX_PLUGIN_PATH, and then
 * nothing needs to be loaded into programs that have no UCX. A UCX that is not
 * known gets the preloaded plugin, which works in all of them; an older one would
 * warn of UCX_PLUGIN_PATH.
 */

#ifndef DAQIRI_UCX_H
#define DAQIRI_UCX_H

#include <limits.h>

#define DAQIRI_UCX_PLUGIN_PATH "UCX_PLUGIN_PATH"

/* In the order in which they need each other. */
enum {
    DAQIRI_UCX_UCM,
    DAQIRI_UCX_UCS,
    DAQIRI_UCX_UCT,
    DAQIRI_UCX_UCP,
    DAQIRI_UCX_LIBRARIES
};

typedef struct daqiri_ucx {
    char whose[256];       /* the program that loads it, or the MPI of a starter */
    char libraries[DAQIRI_UCX_LIBRARIES][PATH_MAX]; /* empty: not needed */
    char version[32];      /* empty: not known */
    char why[1024];        /* why it is not known, or the plugin stays out; or empty */
    char broken[1024];     /* why the plugin cannot be loaded at all; or empty */
} daqiri_ucx_t;

/* Which of them this path is, by the name of the file; -1: none. */
int daqiri_ucx_library(const char *path);

/* Which UCX the ranks of this command load; without libraries: not known. */
void daqiri_ucx_of_command(daqiri_ucx_t *ucx, char *const *command);

/* Opens that UCX, or without libraries the one that the loader finds by its name,
 * and the plugin in a process of its own, which may take `timeout` s. Fills in what
 * they say. The process has this LD_PRELOAD; NULL: as this one. */
void daqiri_ucx_ask(daqiri_ucx_t *ucx, const char *plugin, const char *preload,
                    double timeout);

/* Without asking it: whether the plugin can be loaded. */
void daqiri_ucx_ask_plugin(daqiri_ucx_t *ucx, const char *plugin,
                           const char *preload, double timeout);

/* Whether this UCX looks for modules where UCX_PLUGIN_PATH says. */
int daqiri_ucx_has_plugin_path(const daqiri_ucx_t *ucx);

/* Whether the user has told UCX to load no module of this name. */
int daqiri_ucx_excludes_plugin(void);

/* Whether that way, and not LD_PRELOAD. */
int daqiri_ucx_loads_plugin(const daqiri_ucx_t *ucx);

#endif
