/* SPDX-License-Identifier: BSD-3-Clause */

#include "settings.h"
#include "daqiri.h"

#include <stdlib.h>
#include <string.h>

static void *settings_or_exit(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "daqiri: no memory\n");
        exit(DAQIRI_EXIT_FAILED);
    }
    return memory;
}

void daqiri_settings_add(daqiri_settings_t *settings, const char *name,
                         const char *value)
{
    settings->list[settings->count].name  = name;
    settings->list[settings->count].value = settings_or_exit(strdup(value));
    ++settings->count;
}

const char *daqiri_settings_get(const daqiri_settings_t *settings,
                                const char *name)
{
    size_t i;

    for (i = 0; i < settings->count; ++i) {
        if (strcmp(settings->list[i].name, name) == 0) {
            return settings->list[i].value;
        }
    }
    return NULL;
}

/* Between single quotes a shell takes everything as it is but a quote. */
static void settings_print_quoted(const char *value, FILE *stream)
{
    fputc('\'', stream);
    for (; *value != '\0'; ++value) {
        if (*value == '\'') {
            fputs("'\\''", stream);
        } else {
            fputc(*value, stream);
        }
    }
    fputc('\'', stream);
}

void daqiri_settings_print(const daqiri_settings_t *settings, FILE *stream)
{
    size_t i;

    for (i = 0; i < settings->count; ++i) {
        fprintf(stream, "export %s=", settings->list[i].name);
        settings_print_quoted(settings->list[i].value, stream);
        fputc('\n', stream);
    }
}

void daqiri_settings_apply(const daqiri_settings_t *settings,
                           const char *speaker)
{
    const char *name, *value, *old;
    size_t i;

    for (i = 0; i < settings->count; ++i) {
        name  = settings->list[i].name;
        value = settings->list[i].value;
        old   = getenv(name);
        if ((old != NULL) && (strcmp(old, value) != 0) &&
            (strcmp(name, "LD_PRELOAD") != 0)) {
            fprintf(stderr, "%s: %s was '%s', now it is '%s'\n", speaker, name,
                    old, value);
        }
        if (setenv(name, value, 1) != 0) {
            settings_or_exit(NULL);
        }
    }
}

void daqiri_settings_cleanup(daqiri_settings_t *settings)
{
    while (settings->count > 0) {
        free(settings->list[--settings->count].value);
    }
}

static const char *settings_file_name(const char *path, size_t length)
{
    const char *start = path + length;

    while ((start > path) && (start[-1] != '/')) {
        --start;
    }
    return start;
}

static size_t settings_find_file(const char *preload, const char *file,
                                 const char **present_p)
{
    const char *entry = preload;
    const char *name;
    size_t length;

    while (*entry != '\0') {
        length = strcspn(entry, DAQIRI_PRELOAD_SEPARATORS);
        name   = settings_file_name(entry, length);
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

size_t daqiri_preload_add(char **preload_p, const char *path,
                          const char **present_p)
{
    const char *file = settings_file_name(path, strlen(path));
    const char *gap  = (**preload_p == '\0') ? "" : ":";
    size_t length    = settings_find_file(*preload_p, file, present_p);
    char *joined;

    if (length > 0) {
        return length;
    }
    if (asprintf(&joined, "%s%s%s", *preload_p, gap, path) < 0) {
        settings_or_exit(NULL);
    }
    free(*preload_p);
    *preload_p = joined;
    return 0;
}
