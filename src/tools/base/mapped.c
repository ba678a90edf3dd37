/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/base/mapped.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAPPED_MAX = 16 /* libraries; pmix has two */
};

typedef struct {
    const char *part;
    char       *path[MAPPED_MAX];
    int        count;
} mapped_found_t;

static int mapped_note(struct dl_phdr_info *info, size_t size, void *arg)
{
    mapped_found_t *found = arg;

    (void)size;
    if ((strstr(info->dlpi_name, found->part) != NULL) && (found->count < MAPPED_MAX)) {
        found->path[found->count] = strdup(info->dlpi_name);
        found->count             += found->path[found->count] != NULL;
    }
    return 0;
}

/* dlopen() takes the lock that dl_iterate_phdr() holds, so it is called afterwards. */
int mapped_keep(const char *part)
{
    mapped_found_t found = {.part = part};
    int kept             = 0;
    int i;

    dl_iterate_phdr(mapped_note, &found);
    for (i = 0; i < found.count; i++) {
        kept += dlopen(found.path[i], RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) != NULL;
        free(found.path[i]);
    }
    return kept;
}

void mapped_keep_pmix(void)
{
    (void)mapped_keep("pmix");
}
