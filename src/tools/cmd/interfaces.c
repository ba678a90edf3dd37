/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * `daqiri interfaces`: network interfaces and RDMA ports side by side. Devices
 * are opened in children under a watchdog: a list of what there is must not
 * hang on what is broken.
 */

#include "tools/base/args.h"
#include "tools/base/progress.h"
#include "tools/base/report.h"
#include "tools/base/stop.h"
#include "tools/base/watch.h"
#include "tools/cmd/cmd.h"
#include "tools/rdma/gids.h"
#include "tools/rdma/netdev.h"
#include "tools/rdma/soft.h"

#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#define INTERFACES_TIMEOUT 10.0

typedef struct interfaces_opts {
    daqiri_format_t format;
    const char      *device;
} interfaces_opts_t;

enum { INTERFACES_DEVICE = DAQIRI_ARGS_OWN };

static const struct argp_option interfaces_options[] = {
    {"device", INTERFACES_DEVICE, "soft", 0,
     "Show the software device instead of RDMA devices"},
    {NULL}
};

static error_t interfaces_parse(int key, char *arg, struct argp_state *state)
{
    static const char *const devices[] = {"soft"};
    interfaces_opts_t *opts = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &opts->format;
        return 0;
    case INTERFACES_DEVICE:
        daqiri_args_word(state, "device", arg, devices, 1);
        opts->device = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child interfaces_children[] = {
    {&daqiri_args_table}, {NULL}
};

static const struct argp interfaces_argp = {
    interfaces_options, interfaces_parse, NULL,
    "Lists network interfaces, RDMA ports and their GIDs, and says which GID "
    "daqiri would choose and why.\v"
    "Exit status: 0; 1 a query failed; 2 usage error; 124 a device did not "
    "answer.",
    interfaces_children
};

/* ---- a port, in words ---- */

/* Codes of IBA 14.2.5.6, in Gb/s for one lane. */
static double interfaces_lane_gbps(unsigned speed)
{
    static const struct {
        unsigned code;
        double   gbps;
    } speeds[] = {{1, 2.5}, {2, 5}, {4, 10}, {8, 10}, {16, 14}, {32, 25},
                  {64, 50}, {128, 100}};
    size_t i;

    for (i = 0; i < sizeof(speeds) / sizeof(speeds[0]); ++i) {
        if (speeds[i].code == speed) {
            return speeds[i].gbps;
        }
    }
    return 0;
}

static unsigned interfaces_lanes(unsigned width)
{
    switch (width) {
    case 1:
        return 1;
    case 2:
        return 4;
    case 4:
        return 8;
    case 8:
        return 12;
    case 16:
        return 2;
    default:
        return 0;
    }
}

static const char *interfaces_link_layer(const struct ibv_port_attr *port)
{
    switch (port->link_layer) {
    case IBV_LINK_LAYER_ETHERNET:
        return "Ethernet";
    case IBV_LINK_LAYER_INFINIBAND:
    case IBV_LINK_LAYER_UNSPECIFIED:
        return "InfiniBand";
    default:
        return NULL;
    }
}

static void interfaces_gid(json_t *report, const char *device, unsigned port,
                           const daqiri_gids_t *gids,
                           const struct ibv_gid_entry *entry)
{
    json_t *row = daqiri_report_row(daqiri_report_array(report, "gids"));
    char text[DAQIRI_GID_TEXT_MAX], netdev[IF_NAMESIZE] = "";
    int is_chosen = ((int)entry->gid_index == gids->chosen);

    if (entry->ndev_ifindex != 0) {
        if_indextoname(entry->ndev_ifindex, netdev);
    }
    daqiri_report_text(row, "device", device);
    daqiri_report_int(row, "port", port);
    daqiri_report_int(row, "index", entry->gid_index);
    daqiri_report_text(row, "gid", daqiri_gid_text(&entry->gid, text));
    daqiri_report_text(row, "type", daqiri_gid_type(entry));
    daqiri_report_text(row, "netdev", (netdev[0] != '\0') ? netdev : NULL);
    daqiri_report_bool(row, "chosen", is_chosen);
    daqiri_report_text(row, "why", is_chosen ? gids->why : NULL);
}

static void interfaces_port(json_t *report, json_t *row,
                            struct ibv_context *context,
                            const struct ibv_device_attr *device,
                            unsigned port_num)
{
    const char *name = ibv_get_device_name(context->device);
    struct ibv_port_attr port;
    daqiri_gids_t gids;
    size_t i;
    int error;

    error = ibv_query_port(context, (uint8_t)port_num, &port);
    if (error != 0) {
        daqiri_report_format(row, "error", "its port cannot be asked: %s",
                             strerror(error));
        return;
    }
    daqiri_report_text(row, "state", ibv_port_state_str(port.state));
    daqiri_report_text(row, "link_layer", interfaces_link_layer(&port));
    daqiri_report_int(row, "lid", port.lid);
    daqiri_report_int(row, "active_mtu", 128 << port.active_mtu);
    daqiri_report_real(row, "speed_gbps",
                       interfaces_lane_gbps(port.active_speed) *
                       interfaces_lanes(port.active_width));
    error = daqiri_gids_query(context, device, port_num, &port, &gids);
    if (error != 0) {
        daqiri_report_text(row, "error", gids.why);
    }
    daqiri_report_int(row, "num_gids", (long long)gids.count);
    daqiri_report_set(row, "chosen_gid_index",
                      (gids.chosen < 0) ? json_null() :
                                          json_integer(gids.chosen));
    daqiri_report_text(row, "why", gids.why);
    for (i = 0; i < gids.count; ++i) {
        interfaces_gid(report, name, port_num, &gids, &gids.entries[i]);
    }
    daqiri_gids_cleanup(&gids);
}

/* ---- a device ---- */

/* A row with every key, so that a reader finds them all. */
static json_t *interfaces_row(json_t *report, const char *name, unsigned port)
{
    static const char *const keys[] = {
        "state", "link_layer", "lid", "active_mtu", "speed_gbps", "num_gids",
        "chosen_gid_index", "why", "error"
    };
    json_t *row = daqiri_report_row(daqiri_report_array(report, "devices"));
    char folder[PATH_MAX];
    size_t i;

    daqiri_report_text(row, "device", name);
    daqiri_report_int(row, "port", port);
    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); ++i) {
        daqiri_report_set(row, keys[i], json_null());
    }
    snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s", name);
    daqiri_netdev_sysfs_device(row, folder);
    return row;
}

static void interfaces_device(json_t *report, struct ibv_device *device)
{
    const char *name = ibv_get_device_name(device);
    struct ibv_context *context;
    struct ibv_device_attr attr;
    unsigned port;
    int error;

    errno   = 0;
    context = ibv_open_device(device);
    if (context == NULL) {
        daqiri_report_format(interfaces_row(report, name, 1), "error",
                             "it cannot be opened: %s",
                             strerror((errno != 0) ? errno : EIO));
        return;
    }
    error = ibv_query_device(context, &attr);
    if (error != 0) {
        daqiri_report_format(interfaces_row(report, name, 1), "error",
                             "it cannot be asked: %s", strerror(error));
    }
    for (port = 1; (error == 0) && (port <= attr.phys_port_cnt); ++port) {
        interfaces_port(report, interfaces_row(report, name, port), context,
                        &attr, port);
    }
    ibv_close_device(context);
}

/* ---- under a watchdog ---- */

/* In a child: the names of the devices. */
static json_t *interfaces_names(void *arg)
{
    json_t *result = json_object();
    json_t *names  = daqiri_report_array(result, "names");
    struct ibv_device **list;
    int i, count = 0;

    (void)arg;
    errno = 0;
    list  = ibv_get_device_list(&count);
    if ((list == NULL) && (errno != 0) && (errno != ENOSYS)) {
        daqiri_report_text(result, "error", strerror(errno));
    }
    for (i = 0; i < count; ++i) {
        json_array_append_new(names,
                              json_string(ibv_get_device_name(list[i])));
    }
    if (list != NULL) {
        ibv_free_device_list(list);
    }
    return result;
}

/* In a child of its own: the rows of the device of that name. */
static json_t *interfaces_look(void *arg)
{
    json_t *result = json_object();
    struct ibv_device **list;
    int i, count = 0;

    daqiri_report_array(result, "devices");
    daqiri_report_array(result, "gids");
    list = ibv_get_device_list(&count);
    for (i = 0; i < count; ++i) {
        if (strcmp(ibv_get_device_name(list[i]), arg) == 0) {
            interfaces_device(result, list[i]);
        }
    }
    if (list != NULL) {
        ibv_free_device_list(list);
    }
    return result;
}

/* Returns what a child says within the time, or NULL and why not. */
static json_t *interfaces_watch(daqiri_watch_func_t func, const char *name,
                                char *why, size_t length, int *status_p)
{
    daqiri_progress_t progress;
    daqiri_watch_t watch = {
        .timeout  = INTERFACES_TIMEOUT,
        .progress = &progress,
        .what     = (name != NULL) ? name : "the list of devices"
    };

    daqiri_progress_start(&progress);
    daqiri_watch_run(&watch, func, (void*)name);
    daqiri_progress_end(&progress);
    if (watch.end == DAQIRI_WATCH_DONE) {
        return watch.result;
    }
    daqiri_watch_text(&watch, INTERFACES_TIMEOUT, why, length);
    if (*status_p != DAQIRI_EXIT_WATCHDOG) {
        *status_p = (watch.end == DAQIRI_WATCH_TIMEOUT) ?
                    DAQIRI_EXIT_WATCHDOG : DAQIRI_EXIT_FAILED;
    }
    return NULL;
}

/* What a child has told, and which port a network interface belongs to. */
static void interfaces_take(json_t *report, const json_t *result)
{
    json_t *gids = json_object_get(result, "gids");
    char name[IBV_SYSFS_NAME_MAX + 8];
    const char *netdev;
    json_t *row;
    size_t i;

    json_array_extend(json_object_get(report, "devices"),
                      json_object_get(result, "devices"));
    json_array_extend(json_object_get(report, "gids"), gids);
    json_array_foreach(gids, i, row) {
        netdev = daqiri_report_find_text(row, "netdev");
        snprintf(name, sizeof(name), "%s:%lld",
                 daqiri_report_find_text(row, "device"),
                 json_integer_value(json_object_get(row, "port")));
        if (netdev != NULL) {
            daqiri_netdev_name_rdma(json_object_get(report, "interfaces"), netdev,
                                    name);
        }
    }
}

/* Each device in a child of its own, so that one that is wedged, or ends it,
 * takes nothing from the others. */
static void interfaces_ask(json_t *report, const char *speaker, int *status_p)
{
    json_t *names, *each, *result;
    char why[256] = "";
    const char *name;
    size_t i;

    names = interfaces_watch(interfaces_names, NULL, why, sizeof(why),
                             status_p);
    if ((names == NULL) || (daqiri_report_find(names, "error") != NULL)) {
        daqiri_report_format(report, "error", "RDMA devices cannot be listed: "
                             "%s", (names == NULL) ? why :
                             daqiri_report_find_text(names, "error"));
    }
    json_array_foreach(json_object_get(names, "names"), i, each) {
        name = json_string_value(each);
        if (daqiri_stop_asked()) {
            daqiri_report_text(report, "error", "interrupted: not every "
                               "device was asked");
            break;
        }
        result = interfaces_watch(interfaces_look, name, why, sizeof(why),
                                  status_p);
        if (result == NULL) {
            fprintf(stderr, "%s: %s: %s\n", speaker, name, why);
            daqiri_report_text(interfaces_row(report, name, 1), "error", why);
        }
        interfaces_take(report, result);
        json_decref(result);
    }
    json_decref(names);
}

/* ---- the command ---- */

static const daqiri_column_t interfaces_net_columns[] = {
    {"name", "interface"}, {"state", "state"}, {"mtu", "MTU"},
    {"speed_gbps", "Gb/s", DAQIRI_UNIT_GBPS}, {"driver", "driver"},
    {"numa_node", "NUMA"}, {"rdma", "RDMA"}, {"addresses", "addresses"}
};

static const daqiri_column_t interfaces_port_columns[] = {
    {"device", "device"}, {"port", "port"}, {"state", "state"},
    {"link_layer", "link"}, {"lid", "LID"}, {"active_mtu", "MTU"},
    {"speed_gbps", "Gb/s", DAQIRI_UNIT_GBPS}, {"driver", "driver"},
    {"numa_node", "NUMA"}, {"num_gids", "GIDs"},
    {"chosen_gid_index", "chosen"}, {"why", "because"}, {"error", "error"}
};

static const daqiri_column_t interfaces_gid_columns[] = {
    {"device", "device"}, {"port", "port"}, {"index", "index"},
    {"type", "type"}, {"netdev", "interface"}, {"chosen", "chosen"},
    {"gid", "GID"}
};

static const daqiri_section_t interfaces_sections[] = {
    {"devices", "RDMA ports", DAQIRI_COLUMNS(interfaces_port_columns)},
    {"gids", "\nGIDs", DAQIRI_COLUMNS(interfaces_gid_columns)},
    {"interfaces", "\nNetwork interfaces",
     DAQIRI_COLUMNS(interfaces_net_columns)}
};

/* Whether a row has an error, or the whole report. */
static int interfaces_has_error(const json_t *report)
{
    const json_t *devices = json_object_get(report, "devices");
    size_t i;

    for (i = 0; i < json_array_size(devices); ++i) {
        if (daqiri_report_find(json_array_get(devices, i), "error") != NULL) {
            return 1;
        }
    }
    return daqiri_report_find(report, "error") != NULL;
}

static int interfaces_show(const json_t *report, daqiri_format_t format,
                           const char *speaker)
{
    const char *error = daqiri_report_find_text(report, "error");
    int failed;

    if ((format == DAQIRI_FORMAT_TABLE) &&
        (json_array_size(json_object_get(report, "devices")) == 0)) {
        printf("RDMA ports: none (daqiri interfaces --device soft shows the "
               "software device)\n");
    }
    failed = daqiri_report_print(report, format, interfaces_sections, 3,
                                 stdout);
    if (failed != 0) {
        fprintf(stderr, "%s: the report cannot be written: %s\n", speaker,
                strerror(failed));
        return DAQIRI_EXIT_FAILED;
    }
    if (error != NULL) {
        fprintf(stderr, "%s: %s\n", speaker, error);
    }
    return interfaces_has_error(report) ? DAQIRI_EXIT_FAILED : DAQIRI_EXIT_OK;
}

int daqiri_interfaces(int argc, char **argv)
{
    interfaces_opts_t opts = {DAQIRI_FORMAT_TABLE, NULL};
    json_t *report;
    int status, error, shown;

    daqiri_args_parse(&interfaces_argp, argc, argv, &opts);
    daqiri_args_check_columns(argv[0], opts.format, interfaces_sections, 3);
    status = (opts.device != NULL) ? daqiri_soft_enter(argv) : 0;
    if (status != 0) {
        return status;
    }

    daqiri_stop_catch();
    report = daqiri_report_new("interfaces");
    daqiri_report_set(report, "error", json_null());
    error = daqiri_netdev_list(daqiri_report_array(report, "interfaces"));
    if (error != 0) {
        daqiri_report_format(report, "error", "network interfaces cannot be "
                             "listed: %s", strerror(error));
    }
    daqiri_report_array(report, "devices");
    daqiri_report_array(report, "gids");
    interfaces_ask(report, argv[0], &status);
    shown = interfaces_show(report, opts.format, argv[0]);
    json_decref(report);
    return (status != 0) ? status : shown;
}
