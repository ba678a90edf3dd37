/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Environment variables to be set, in order, each once. They are collected
 * first, so that they can be shown instead of set (env_print.h). Values are
 * copied; names are not and must be static.
 */

#ifndef DAQIRI_ENV_LIST_H
#define DAQIRI_ENV_LIST_H

#include <stddef.h>

#define DAQIRI_SETTINGS_MAX 16

typedef struct daqiri_env_list {
    struct {
        const char *name;
        char *value;
    } list[DAQIRI_SETTINGS_MAX];
    size_t count;
} daqiri_env_list_t;

/* Ends the program when there is no memory. */
void daqiri_env_list_add(daqiri_env_list_t *env_list, const char *name,
                         const char *value);

/* NULL when it is not among the env_list. */
const char *daqiri_env_list_get(const daqiri_env_list_t *env_list,
                                const char *name);

/* Says on stderr what had another value before, with `speaker` before it;
 * that is no error, but nobody should have to guess. LD_PRELOAD is left out:
 * it is added to, not replaced. */
void daqiri_env_list_apply(const daqiri_env_list_t *env_list,
                           const char *speaker);

void daqiri_env_list_cleanup(daqiri_env_list_t *env_list);

/* What LD_PRELOAD separates its entries with. */
#define DAQIRI_PRELOAD_SEPARATORS " :"

/*
 * Adds a library at the end of an LD_PRELOAD value, unless one with the same
 * file name is there: two copies of one library do not live together.
 * Returns the length of that entry and its start, or 0 when it was added.
 */
size_t daqiri_env_list_add_preload(char **preload_p, const char *path,
                                   const char **present_p);

#endif
