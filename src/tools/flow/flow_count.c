/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/stats_read.h"
#include "tools/flow/flow.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void count_add(json_t *counters, const char *name, uint64_t value)
{
    json_int_t before = json_integer_value(json_object_get(counters, name));

    json_object_set_new(counters, name,
                        json_integer(before + (json_int_t)value));
}

/* ---- of the transport ---- */

static void count_stats_file(const daqiri_stats_file_t *file, json_t *counters)
{
    const dq_stats_entry_t *entry;
    char name[DQ_STATS_NAME_MAX];
    uint64_t value;
    uint32_t i;

    for (i = 0; i < file->header->count; ++i) {
        entry = dq_stats_entry(file->header, i);
        value = dq_stats_value(file->header, i);
        snprintf(name, sizeof(name), "%.*s", DQ_STATS_NAME_MAX - 1,
                 entry->name);
        if ((name[0] != '\0') && (value > 0) &&
            (entry->kind != DQ_STATS_GAUGE)) {
            count_add(counters, name, value);
        }
    }
}

void flow_count_stats(json_t *counters)
{
    daqiri_stats_files_t files = {0};
    daqiri_stats_rest_t rest;
    size_t i;

    if (daqiri_stats_find_all(geteuid(), (uint32_t)getpid(), &files, &rest) != 0) {
        return;
    }
    for (i = 0; i < files.count; ++i) {
        count_stats_file(&files.list[i], counters);
    }
    daqiri_stats_close_all(&files);
}

/* ---- of the port ---- */

static void count_folder(const char *folder, json_t *counters)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    char path[PATH_MAX + 1 + NAME_MAX];
    unsigned long long value;
    FILE *file;

    while ((dir != NULL) && ((entry = readdir(dir)) != NULL)) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        file = (entry->d_name[0] != '.') ? fopen(path, "r") : NULL;
        if (file != NULL) {
            if (fscanf(file, "%llu", &value) == 1) {
                count_add(counters, entry->d_name, value);
            }
            fclose(file);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

json_t *flow_count_port(const char *sysfs, const char *device)
{
    static const char *const folders[] = {"counters", "hw_counters"};
    json_t *counters  = json_object();
    size_t length     = strcspn(device, ":,");
    const char *port  = (device[length] == ':') ? device + length + 1 : "1";
    char path[PATH_MAX];
    size_t i;

    for (i = 0; i < sizeof(folders) / sizeof(folders[0]); ++i) {
        snprintf(path, sizeof(path), "%s/class/infiniband/%.*s/ports/%.*s/%s",
                 sysfs, (int)length, device, (int)strcspn(port, ","), port,
                 folders[i]);
        count_folder(path, counters);
    }
    return counters;
}

json_t *flow_count_change(const json_t *before, const json_t *after)
{
    json_t *change = json_object();
    json_int_t more;
    const char *name;
    void *i;

    for (i = json_object_iter((json_t*)after); i != NULL;
         i = json_object_iter_next((json_t*)after, i)) {
        name = json_object_iter_key(i);
        more = json_integer_value(json_object_iter_value(i)) -
               json_integer_value(json_object_get(before, name));
        if (more != 0) {
            json_object_set_new(change, name, json_integer(more));
        }
    }
    return change;
}
