/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/rdma/soft.h"

#include "tools/base/env_list.h"
#include "tools/base/exit_status.h"
#include "tools/base/locate.h"
#include "tools/base/report.h"
#include "tools/base/watch.h"
#include "tools/rdma/devices.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* s for all devices. */
#define SOFT_FIND_TIMEOUT 10.0

int daqiri_soft_is_loaded(void)
{
    return dlsym(RTLD_DEFAULT, "softverbs_processes") != NULL;
}

/* {"daqiri", NAME, ARG...} of {"daqiri NAME", ARG...}; NULL: no memory. */
static char **soft_command(char **argv)
{
    char **command, *gap;
    size_t count = 0;

    while (argv[count] != NULL) {
        ++count;
    }
    command = calloc(count + 2, sizeof(*command));
    gap     = strchr(argv[0], ' ');
    if ((command == NULL) || (gap == NULL)) {
        free(command);
        return NULL;
    }
    command[0] = (char*)"daqiri";
    command[1] = gap + 1;
    memcpy(&command[2], &argv[1], count * sizeof(*command));
    return command;
}

int daqiri_soft_enter(char **argv)
{
    const char *old = getenv("LD_PRELOAD");
    char path[PATH_MAX], tried[PATH_MAX], self[PATH_MAX];
    const char *present;
    char **command;
    char *preload;

    if (daqiri_soft_is_loaded()) {
        return 0;
    }
    if (daqiri_locate_library(&daqiri_library_softverbs, path, tried) != 0) {
        fprintf(stderr, "%s: %s is in none of: %s\n", argv[0],
                daqiri_library_softverbs.file, tried);
        return DAQIRI_EXIT_FAILED;
    }
    preload = strdup((old != NULL) ? old : "");
    command = soft_command(argv);
    if ((preload == NULL) || (command == NULL)) {
        fprintf(stderr, "%s: no memory\n", argv[0]);
        return DAQIRI_EXIT_FAILED;
    }
    if ((strpbrk(path, DAQIRI_PRELOAD_SEPARATORS) != NULL) ||
        (daqiri_env_list_add_preload(&preload, path, &present) > 0)) {
        fprintf(stderr, "%s: %s cannot be preloaded\n", argv[0], path);
        return DAQIRI_EXIT_FAILED;
    }
    setenv("LD_PRELOAD", preload, 1);
    daqiri_locate_self(self);
    execv(self, command);
    fprintf(stderr, "%s: %s cannot be started again: %s\n", argv[0], self,
            strerror(errno));
    return DAQIRI_EXIT_FAILED;
}

json_t *daqiri_soft_find(void *arg)
{
    json_t *result = json_object();
    const daqiri_device_t *device;
    daqiri_device_t *devices;
    size_t count;
    int error;

    (void)arg;
    error = daqiri_devices_list(&devices, &count);
    if (error != 0) {
        daqiri_report_format(result, "error", "RDMA devices cannot be listed: "
                             "%s", strerror(error));
        return result;
    }
    device = daqiri_devices_usable(devices, count);
    daqiri_report_text(result, "name", (device != NULL) ? device->name : NULL);
    daqiri_report_text(result, "first", (count > 0) ? devices[0].name : NULL);
    free(devices);
    return result;
}

static int soft_settle_auto(char **argv, const char **name_p)
{
    static char name[DAQIRI_DEVICE_NAME_MAX];
    daqiri_watch_t watch = {.timeout = SOFT_FIND_TIMEOUT};
    const char *error, *found;
    char text[256];
    int status = DAQIRI_EXIT_FAILED;

    if (daqiri_watch_run(&watch, daqiri_soft_find, NULL) != DAQIRI_WATCH_DONE) {
        daqiri_watch_text(&watch, watch.timeout, text, sizeof(text));
        fprintf(stderr, "%s: no device was found, for looking for one failed: "
                "%s\n", argv[0], text);
        return (watch.end == DAQIRI_WATCH_TIMEOUT) ? DAQIRI_EXIT_WATCHDOG :
                                                     DAQIRI_EXIT_FAILED;
    }
    error = daqiri_report_find_text(watch.result, "error");
    found = daqiri_report_find_text(watch.result, "name");
    if (error != NULL) {
        fprintf(stderr, "%s: %s\n", argv[0], error);
    } else if (found != NULL) {
        snprintf(name, sizeof(name), "%s", found);
        *name_p = name;
        status  = 0;
    } else {
        fprintf(stderr, "%s: no RDMA device is usable (daqiri interfaces lists "
                "them): this is the software device, for this host only\n",
                argv[0]);
        *name_p = DAQIRI_SOFT_DEVICE;
        status  = daqiri_soft_enter(argv);
    }
    json_decref(watch.result);
    return status;
}

int daqiri_soft_settle(const char *wanted, char **argv, const char **name_p)
{
    if (daqiri_soft_is_loaded() && ((wanted == NULL) ||
                                    (strcmp(wanted, "auto") == 0))) {
        *name_p = DAQIRI_SOFT_DEVICE;
        return 0;
    }
    if ((wanted == NULL) || (strcmp(wanted, "auto") == 0)) {
        return soft_settle_auto(argv, name_p);
    }
    if ((strcmp(wanted, "soft") == 0) ||
        (strcmp(wanted, DAQIRI_SOFT_DEVICE) == 0)) {
        *name_p = DAQIRI_SOFT_DEVICE;
        return daqiri_soft_enter(argv);
    }
    *name_p = wanted;
    return 0;
}
