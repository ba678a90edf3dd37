/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucp_apart FOLDER...: a program that is linked with no UCX and opens one by its path,
 * for itself alone, as a part of an MPI library would; and then another. The loader
 * would not find those folders: each library is opened before those that need it. A
 * second UCX has libraries of other names, .so.9.
 *
 * Prints what UCP has found, and then, a line each, the libraries of UCX that are in
 * the process.
 */
#include <dlfcn.h>
#include <link.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

static void *open_library(const char *folder, const char *name)
{
    char path[PATH_MAX];
    void *handle;

    snprintf(path, sizeof(path), "%s/%s.so.0", folder, name);
    if (access(path, R_OK) != 0) {
        snprintf(path, sizeof(path), "%s/%s.so.9", folder, name);
    }
    handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
    }
    return handle;
}

static int print_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    if ((strstr(info->dlpi_name, "/libuc") != NULL) &&
        (strstr(info->dlpi_name, "daqiri") == NULL)) {
        printf("library %s\n", info->dlpi_name);
    }
    return 0;
}

static int use(const char *folder)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG,
    };
    __typeof__(ucp_init_version) *init;
    __typeof__(ucp_context_print_info) *print_info;
    ucp_context_h context;
    ucs_status_t status;
    void *ucp;

    if ((open_library(folder, "libucm") == NULL) ||
        (open_library(folder, "libucs") == NULL) ||
        (open_library(folder, "libuct") == NULL) ||
        ((ucp = open_library(folder, "libucp")) == NULL)) {
        return 2;
    }
    *(void**)&init       = dlsym(ucp, "ucp_init_version");
    *(void**)&print_info = dlsym(ucp, "ucp_context_print_info");

    status = init(UCP_API_MAJOR, UCP_API_MINOR, &params, NULL, &context);
    if (status != UCS_OK) {
        fprintf(stderr, "ucp_init_version: %d\n", status);
        return 1;
    }
    print_info(context, stdout);
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    int i, ret;

    if (argc < 2) {
        return 2;
    }
    for (i = 1; i < argc; ++i) {
        ret = use(argv[i]);
        if (ret != 0) {
            return ret;
        }
    }
    dl_iterate_phdr(print_library, NULL);
    return 0;
}
