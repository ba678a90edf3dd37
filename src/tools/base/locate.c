/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/locate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCATE_EXE "/proc/self/exe"

const daqiri_library_t daqiri_library_plugin = {
    .file   = "libuct_daqiri.so.0",
    .folder = "../uct/daqiri/.libs"
};

const daqiri_library_t daqiri_library_softverbs = {
    .file   = "libsoftverbs.so",
    .folder = "../softverbs/.libs"
};

/* Length of the leading folders that two absolute paths share, without the
 * slash that ends them. */
static size_t locate_common(const char *a, const char *b)
{
    size_t common = 0;
    size_t i;

    for (i = 0; (a[i] == b[i]) && (a[i] != '\0'); ++i) {
        if (a[i] == '/') {
            common = i;
        }
    }
    if (((a[i] == '\0') || (a[i] == '/')) &&
        ((b[i] == '\0') || (b[i] == '/'))) {
        common = i;
    }
    return common;
}

void daqiri_locate_moved(const char *bindir, const char *libdir,
                         const char *exe_dir, char *path, size_t length)
{
    size_t common = locate_common(bindir, libdir);
    size_t used   = (size_t)snprintf(path, length, "%s", exe_dir);
    const char *rest;

    for (rest = bindir + common; (*rest != '\0') && (used < length); ++rest) {
        if ((*rest == '/') && (rest[1] != '\0')) {
            used += (size_t)snprintf(path + used, length - used, "/..");
        }
    }
    if (used < length) {
        snprintf(path + used, length - used, "%s", libdir + common);
    }
}

/* Returns 0, or -1 if the kernel does not tell. */
static int locate_exe(char *path)
{
    ssize_t length = readlink(LOCATE_EXE, path, PATH_MAX - 1);

    path[(length > 0) ? length : 0] = '\0';
    return (length > 0) ? 0 : -1;
}

void daqiri_locate_self(char *path)
{
    struct stat found, running;

    if ((locate_exe(path) != 0) || (stat(path, &found) != 0) ||
        (stat(LOCATE_EXE, &running) != 0) ||
        (found.st_dev != running.st_dev) || (found.st_ino != running.st_ino)) {
        snprintf(path, PATH_MAX, "/proc/%ld/exe", (long)getpid());
    }
}

static int locate_exe_dir(char *dir)
{
    char *slash;

    if (locate_exe(dir) != 0) {
        return -1;
    }
    slash = strrchr(dir, '/');
    if (slash == NULL) {
        return -1;
    }
    *slash = '\0';
    return 0;
}

/* Looks into one folder; adds a folder where the library is not to `tried`. */
static int locate_look(const char *folder, const char *file, char *path,
                       char *tried)
{
    size_t used = strlen(tried);
    char real[PATH_MAX];
    int length;

    /* The folder's own path, but the file's name as it is: a libtool library
     * is a link, and its name is what it is recognised by. */
    if (realpath(folder, real) != NULL) {
        length = snprintf(path, PATH_MAX, "%s/%s", real, file);
        if ((length < PATH_MAX) && (access(path, R_OK) == 0)) {
            return 0;
        }
    }
    snprintf(tried + used, PATH_MAX - used, "%s%s", (used > 0) ? ", " : "",
             folder);
    return -1;
}

/* In a build tree, then where it has moved along with this program, then where
 * it was installed. */
static int locate_find(const char *file, const char *folder_in_build,
                       const char *installed, char *path, char *tried)
{
    char exe_dir[PATH_MAX];
    char folder[2 * PATH_MAX];

    tried[0] = '\0';
    if (locate_exe_dir(exe_dir) == 0) {
        snprintf(folder, sizeof(folder), "%s/%s", exe_dir, folder_in_build);
        if (locate_look(folder, file, path, tried) == 0) {
            return 0;
        }
        daqiri_locate_moved(DAQIRI_BINDIR, installed, exe_dir, folder,
                            sizeof(folder));
        if (locate_look(folder, file, path, tried) == 0) {
            return 0;
        }
    }
    return locate_look(installed, file, path, tried);
}

int daqiri_locate_library(const daqiri_library_t *library, char *path,
                          char *tried)
{
    return locate_find(library->file, library->folder, DAQIRI_LIBDIR, path,
                       tried);
}

int daqiri_locate_program(const char *name, char *path, char *tried)
{
    return locate_find(name, ".", DAQIRI_LIBEXECDIR, path, tried);
}

int daqiri_locate_data(const char *name, char *path, char *tried)
{
    return locate_find(name, "cells", DAQIRI_DATADIR, path, tried);
}
