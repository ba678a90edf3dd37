/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes a UCX look like another one to whoever looks functions up in it, as the
 * plugin does before it trusts a UCX:
 *
 *     T_UCX_VERSION_IS   1.99.7    what it says that it is
 *     T_UCX_LACKS        NAME      what it does not have
 *     T_UCX_HAS          NAME      what it has, besides
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __x86_64__
#define OLDEST_GLIBC "GLIBC_2.2.5"
#else
#define OLDEST_GLIBC "GLIBC_2.17"
#endif

static void version_is(unsigned *major, unsigned *minor, unsigned *release)
{
    const char *version = getenv("T_UCX_VERSION_IS");

    sscanf(version, "%u.%u.%u", major, minor, release);
}

static int is_in(const char *variable, const char *name)
{
    const char *value = getenv(variable);

    return (value != NULL) && (strcmp(value, name) == 0);
}

void *dlsym(void *handle, const char *name)
{
    static void *(*theirs)(void *handle, const char *name);

    if (theirs == NULL) {
        theirs = (void *(*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym",
                                                       OLDEST_GLIBC);
    }
    if (is_in("T_UCX_LACKS", name)) {
        return NULL;
    }
    if (is_in("T_UCX_HAS", name) ||
        ((strcmp(name, "ucp_get_version") == 0) &&
         (getenv("T_UCX_VERSION_IS") != NULL) &&
         (theirs(handle, name) != NULL))) {
        return (void*)version_is;
    }
    return theirs(handle, name);
}
