/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes a UCX look like another one to whoever looks functions up in it, as the
 * plugin does before it trusts a UCX:
 *
 *     T_UCX_VERSION_IS   1.99.7    what it says that it is
 *     T_UCX_LACKS        NAME      what it does not have
 *     T_UCX_HAS          NAME      what it has, besides
 *     T_UCX_SIZE_IS      NAME SIZE how large an object of it is, as the loader knows;
 *                                  of NAME_class, as the class itself says
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/type/class.h>

#ifdef __x86_64__
#define OLDEST_GLIBC  "GLIBC_2.2.5"
#define OLDEST_DLADDR1 "GLIBC_2.3.3"
#else
#define OLDEST_GLIBC  "GLIBC_2.17"
#define OLDEST_DLADDR1 "GLIBC_2.17"
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

/* 0: of this name nothing is said */
static size_t size_is(const char *name)
{
    const char *value = getenv("T_UCX_SIZE_IS");
    size_t length     = strlen(name);

    return ((value != NULL) && (strncmp(value, name, length) == 0) &&
            (value[length] == ' ')) ? strtoul(value + length, NULL, 10) : 0;
}

static void *class_of_size(const ucs_class_t *theirs, size_t size)
{
    static ucs_class_t ours;

    memcpy(&ours, theirs, sizeof(ours));
    ours.size = size;
    return &ours;
}

void *dlsym(void *handle, const char *name)
{
    static void *(*theirs)(void *handle, const char *name);
    void *symbol;

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
    symbol = theirs(handle, name);
    return ((symbol != NULL) && (strstr(name, "_class") != NULL) &&
            (size_is(name) != 0)) ? class_of_size(symbol, size_is(name)) :
                                    symbol;
}

int dladdr1(const void *address, Dl_info *info, void **extra, int flags)
{
    static int (*theirs)(const void *address, Dl_info *info, void **extra,
                         int flags);
    static ElfW(Sym) entry;
    int found;

    if (theirs == NULL) {
        theirs = (int (*)(const void*, Dl_info*, void**, int))dlvsym(
                RTLD_NEXT, "dladdr1", OLDEST_DLADDR1);
    }
    found = theirs(address, info, extra, flags);
    if ((found != 0) && (flags == RTLD_DL_SYMENT) && (*extra != NULL) &&
        (info->dli_sname != NULL) && (size_is(info->dli_sname) != 0)) {
        memcpy(&entry, *extra, sizeof(entry));
        entry.st_size = size_is(info->dli_sname);
        *extra        = &entry;
    }
    return found;
}
