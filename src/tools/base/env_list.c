/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/env_list.h"

#include "tools/base/exit_status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *env_list_or_exit(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "daqiri: no memory\n");
        exit(DAQIRI_EXIT_FAILED);
    }
    return memory;
}

void daqiri_env_list_add(daqiri_env_list_t *env_list, const char *name,
                         const char *value)
{
    env_list->list[env_list->count].name  = name;
    env_list->list[env_list->count].value = env_list_or_exit(strdup(value));
    ++env_list->count;
}

const char *daqiri_env_list_get(const daqiri_env_list_t *env_list,
                                const char *name)
{
    size_t i;

    for (i = 0; i < env_list->count; ++i) {
        if (strcmp(env_list->list[i].name, name) == 0) {
            return env_list->list[i].value;
        }
    }
    return NULL;
}

void daqiri_env_list_apply(const daqiri_env_list_t *env_list,
                           const char *speaker)
{
    const char *name, *value, *old;
    size_t i;

    for (i = 0; i < env_list->count; ++i) {
        name  = env_list->list[i].name;
        value = env_list->list[i].value;
        old   = getenv(name);
        if ((old != NULL) && (strcmp(old, value) != 0) &&
            (strcmp(name, "LD_PRELOAD") != 0)) {
            fprintf(stderr, "%s: %s was '%s', now it is '%s'\n", speaker, name,
                    old, value);
        }
        if (setenv(name, value, 1) != 0) {
            env_list_or_exit(NULL);
        }
    }
}

void daqiri_env_list_cleanup(daqiri_env_list_t *env_list)
{
    while (env_list->count > 0) {
        free(env_list->list[--env_list->count].value);
    }
}

static const char *env_list_file_name(const char *path, size_t length)
{
    const char *start = path + length;

    while ((start > path) && (start[-1] != '/')) {
        --start;
    }
    return start;
}

static size_t env_list_find_file(const char *preload, const char *file,
                                 const char **present_p)
{
    const char *entry = preload;
    const char *name;
    size_t length;

    while (*entry != '\0') {
        length = strcspn(entry, DAQIRI_PRELOAD_SEPARATORS);
        name   = env_list_file_name(entry, length);
        if (((size_t)(entry + length - name) == strlen(file)) &&
            (memcmp(name, file, strlen(file)) == 0)) {
            *present_p = entry;
            return length;
        }
        entry += length;
        entry += strspn(entry, DAQIRI_PRELOAD_SEPARATORS);
    }
    return 0;
}

size_t daqiri_env_list_add_preload(char **preload_p, const char *path,
                                   const char **present_p)
{
    const char *file = env_list_file_name(path, strlen(path));
    const char *gap  = (**preload_p == '\0') ? "" : ":";
    size_t length    = env_list_find_file(*preload_p, file, present_p);
    char *joined;

    if (length > 0) {
        return length;
    }
    if (asprintf(&joined, "%s%s%s", *preload_p, gap, path) < 0) {
        env_list_or_exit(NULL);
    }
    free(*preload_p);
    *preload_p = joined;
    return 0;
}
