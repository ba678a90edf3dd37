/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that is not linked with libibverbs: it loads it by name and asks
 * for functions and their versions, as NCCL does. Prints the devices, and what
 * libibverbs itself calls a status.
 */
#include <infiniband/verbs.h>

#include <dlfcn.h>
#include <stdio.h>

typedef struct ibv_device **(*list_func_t)(int *count);
typedef const char *(*name_func_t)(struct ibv_device *device);
typedef struct ibv_context *(*open_func_t)(struct ibv_device *device);
typedef int (*close_func_t)(struct ibv_context *context);
typedef const char *(*status_func_t)(enum ibv_wc_status status);

static void *library;

static void *find(const char *name)
{
    void *found = dlvsym(library, name, "IBVERBS_1.1");

    if (found == NULL) {
        fprintf(stderr, "by_name: %s\n", dlerror());
    }
    return found;
}

int main(void)
{
    struct ibv_context *context;
    struct ibv_device **list;
    list_func_t get_list;
    name_func_t get_name;
    open_func_t open_device;
    close_func_t close_device;
    status_func_t status_str;
    int count = 0;

    library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "by_name: %s\n", dlerror());
        return 1;
    }

    *(void**)&get_list     = find("ibv_get_device_list");
    *(void**)&get_name     = find("ibv_get_device_name");
    *(void**)&open_device  = find("ibv_open_device");
    *(void**)&close_device = find("ibv_close_device");
    *(void**)&status_str   = find("ibv_wc_status_str");
    if (!get_list || !get_name || !open_device || !close_device ||
        !status_str) {
        return 1;
    }

    list = get_list(&count);
    if ((list == NULL) || (count == 0)) {
        fprintf(stderr, "by_name: no device\n");
        return 1;
    }

    context = open_device(list[0]);
    printf("%s %s, status 0 is %s\n", get_name(list[0]),
           (context != NULL) ? "opened" : "not opened", status_str(0));
    return (context != NULL) ? close_device(context) : 1;
}
