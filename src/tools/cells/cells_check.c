/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A device or a transport that is none is better said now than by each of its
 * runs. Transports that nobody has named may be missing: then their rows are.
 */

#include "tools/base/exit_status.h"
#include "tools/cells/cells.h"
#include "tools/cells/flow_run.h"
#include "tools/job/job.h"
#include "tools/rdma/devices.h"

#include <errno.h>
#include <string.h>

/* s; it opens every memory domain of UCX's. */
#define CHECK_TIME_LIMIT 60.0

/* ---- the device ---- */

static int check_refuse_device(const daqiri_cells_opts_t *opts,
                               const char *names)
{
    int has_others = strcmp(names, "none") != 0;

    fprintf(stderr, "%s: there is no device '%s'; there are: %s%ssoft\n",
            opts->speaker, opts->device, has_others ? names : "",
            has_others ? ", " : "");
    return DAQIRI_EXIT_USAGE;
}

static int check_device(const daqiri_cells_opts_t *opts)
{
    char names[256];
    int error;

    if ((strcmp(opts->device, "auto") == 0) ||
        (strcmp(opts->device, "soft") == 0) ||
        (strcmp(opts->device, DAQIRI_SOFT_DEVICE) == 0)) {
        return DAQIRI_EXIT_OK;
    }
    error = daqiri_devices_look_up(opts->device, names, sizeof(names));
    if (error == ENODEV) {
        return check_refuse_device(opts, names);
    }
    if (error != 0) {
        fprintf(stderr, "%s: RDMA devices cannot be listed: %s\n",
                opts->speaker, strerror(error));
        return DAQIRI_EXIT_FAILED;
    }
    return DAQIRI_EXIT_OK;
}

/* ---- the transports ---- */

/* These are the tools' own. */
static int check_is_own(const char *transport)
{
    return (strcmp(transport, "verbs") == 0) || (strcmp(transport, "tcp") == 0) ||
           (strcmp(transport, "verbs_uc") == 0);
}

/* In whose environment UCX is to be asked; NULL: there is nothing to ask. The
 * plugin and a device have to be there, unless none of them needs one. */
static const char *check_environment(const daqiri_cells_opts_t *opts)
{
    const char *environment = NULL;
    const char *name;
    size_t i;

    for (i = 0; i < opts->transport_count; ++i) {
        if (!check_is_own(opts->transports[i])) {
            name = daqiri_flow_transport_name(opts->transports[i]);
            if (daqiri_job_needs_device(name)) {
                return "daqiri";
            }
            environment = "uct:tcp";
        }
    }
    return environment;
}

static const char *check_row_name(const json_t *list, size_t i)
{
    return daqiri_report_find_text(json_array_get(list, i), "name");
}

static int check_has(const json_t *list, size_t count, const char *name)
{
    size_t i;

    for (i = 0; (i < count) &&
                (strcmp(check_row_name(list, i), name) != 0); ++i) {
    }
    return i < count;
}

static int check_refuse_transport(const daqiri_cells_opts_t *opts,
                                  const char *transport, const json_t *list)
{
    const char *name;
    size_t i;

    fprintf(stderr, "%s: there is no transport '%s'; there are: verbs, verbs_uc, tcp",
            opts->speaker, transport);
    for (i = 0; i < json_array_size(list); ++i) {
        name = check_row_name(list, i);
        if (!check_has(list, i, name)) {
            fprintf(stderr, ", %s%s",
                    check_is_own(name) ? DAQIRI_FLOW_UCT_PREFIX : "", name);
        }
    }
    fprintf(stderr, "\n");
    return DAQIRI_EXIT_USAGE;
}

static int check_transports(const daqiri_cells_opts_t *opts)
{
    const char *environment = check_environment(opts);
    char complaint[DAQIRI_FLOW_COMPLAINT_MAX] = "";
    int status = DAQIRI_EXIT_OK;
    json_t *report, *list;
    size_t i;

    if (environment == NULL) {
        return DAQIRI_EXIT_OK;
    }
    if (daqiri_flow_list(opts->device, environment, CHECK_TIME_LIMIT, &report,
                         complaint) != 0) {
        fprintf(stderr, "%s: UCX's transports cannot be listed: %s\n",
                opts->speaker, complaint);
        json_decref(report);
        return DAQIRI_EXIT_FAILED;
    }
    list = json_object_get(report, "transports");
    for (i = 0; (i < opts->transport_count) && (status == DAQIRI_EXIT_OK);
         ++i) {
        if (!check_is_own(opts->transports[i]) &&
            !check_has(list, json_array_size(list),
                       daqiri_flow_transport_name(opts->transports[i]))) {
            status = check_refuse_transport(opts, opts->transports[i], list);
        }
    }
    json_decref(report);
    return status;
}

int daqiri_cells_check(const daqiri_cells_opts_t *opts)
{
    int status = check_device(opts);

    return ((status == DAQIRI_EXIT_OK) && opts->has_transports) ?
           check_transports(opts) : status;
}
