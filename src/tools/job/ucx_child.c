/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What this program says of UCX when it is started again by itself, by an MPI's
 * starter, or by `daqiri run`: other people's libraries are opened here, in a
 * process that may die of it.
 */

#include "tools/job/ucx_child.h"

#include "tools/base/answer.h"
#include "tools/base/exit_status.h"
#include "tools/base/locate.h"
#include "tools/base/report.h"
#include "tools/job/ucx.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <uct/api/uct.h>

/* What its answer is called. */
#define CHILD_ANSWER "ucx"

static json_t *child_limit(rlim_t limit)
{
    return (limit == RLIM_INFINITY) ? json_null() :
                                      json_integer((json_int_t)limit);
}

json_t *daqiri_ucx_child_limits(void)
{
    json_t *report      = json_object();
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

    getrlimit(RLIMIT_MEMLOCK, &limit);
    daqiri_report_set(report, "memlock_bytes", child_limit(limit.rlim_cur));
    daqiri_report_set(report, "memlock_max_bytes", child_limit(limit.rlim_max));
    return report;
}

/* UCX's functions, found at run time: this program works without UCX. */
typedef struct child_uct {
    ucs_status_t (*query_components)(uct_component_h **list, unsigned *count);
    void (*release_component_list)(uct_component_h *list);
    ucs_status_t (*component_query)(uct_component_h component,
                                    uct_component_attr_t *attr);
    ucs_status_t (*config_read)(uct_component_h component, const char *prefix,
                                const char *file, uct_md_config_t **config_p);
    void (*config_release)(void *config);
    ucs_status_t (*md_open)(uct_component_h component, const char *name,
                            const uct_md_config_t *config, uct_md_h *md_p);
    void (*md_close)(uct_md_h md);
    ucs_status_t (*md_query_tls)(uct_md_h md, uct_tl_resource_desc_t **list,
                                 unsigned *count);
    void (*release_tls)(uct_tl_resource_desc_t *list);
} child_uct_t;

static void *child_symbol(void *library, const char *name, int *missing)
{
    void *symbol = dlsym(library, name);

    *missing += (symbol == NULL);
    return symbol;
}

/* ---- which UCX ---- */

/* One library after another, for the loader need not find them in the folder where
 * they are. Returns a handle of that one, or NULL and an error in the report. */
static void *child_open(const daqiri_ucx_child_t *child, int library,
                        json_t *report)
{
    static const char *const names[] = {"libucm.so.0", "libucs.so.0",
                                        "libuct.so.0", "libucp.so.0"};
    const char *path = child->libraries[library];
    /* libucm calls functions of libucs, which needs it */
    int mode         = (library == DAQIRI_UCX_UCM) ? RTLD_LAZY : RTLD_NOW;
    void *handle;

    if ((path == NULL) && (child->libraries[DAQIRI_UCX_UCT] != NULL)) {
        return NULL;
    }
    path   = (path != NULL) ? path : names[library];
    handle = dlopen(path, mode | RTLD_GLOBAL);
    if ((handle == NULL) && (daqiri_report_find_text(report, "error") == NULL)) {
        daqiri_report_format(report, "error", "UCX %s: %s",
                             (path == names[library]) ? "is not installed" :
                                                        "cannot be loaded",
                             dlerror());
    }
    return handle;
}

/* A program may be linked with libuct alone: its libucp lies beside it. */
static void *child_open_beside(const char *libuct)
{
    char path[PATH_MAX];
    char *file;

    snprintf(path, sizeof(path), "%s", libuct);
    file = strrchr(path, '/');
    if ((file == NULL) || (strncmp(file, "/libuct", strlen("/libuct")) != 0)) {
        return NULL;
    }
    file[strlen("/libuct") - 1] = 'p';
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

typedef struct child_ucx {
    void *uct;
    void *ucp;
} child_ucx_t;

static int child_ucx_open(const daqiri_ucx_child_t *child,
                          child_ucx_t *ucx, json_t *report)
{
    struct link_map *map;

    child_open(child, DAQIRI_UCX_UCM, report);
    child_open(child, DAQIRI_UCX_UCS, report);
    ucx->uct = child_open(child, DAQIRI_UCX_UCT, report);
    ucx->ucp = child_open(child, DAQIRI_UCX_UCP, report);
    if ((ucx->uct == NULL) ||
        (daqiri_report_find_text(report, "error") != NULL)) {
        return -1;
    }
    if (dlinfo(ucx->uct, RTLD_DI_LINKMAP, &map) == 0) {
        daqiri_report_text(report, "library", map->l_name);
        ucx->ucp = (ucx->ucp != NULL) ? ucx->ucp :
                                        child_open_beside(map->l_name);
    }
    if (ucx->ucp == NULL) {
        daqiri_report_text(report, "error", "nothing tells its version: there "
                           "is no libucp beside it");
        return -1;
    }
    return 0;
}

static int child_ucx_version(const child_ucx_t *ucx, json_t *report)
{
    void (*version)(unsigned *major, unsigned *minor, unsigned *release);
    unsigned major, minor, release;

    *(void**)&version = dlsym(ucx->ucp, "ucp_get_version");
    if (version == NULL) {
        daqiri_report_text(report, "error", "nothing tells its version: its "
                           "libucp has no ucp_get_version");
        return -1;
    }
    version(&major, &minor, &release);
    daqiri_report_format(report, "ucx_version", "%u.%u.%u", major, minor,
                         release);
    return 0;
}

/* It looks at the UCX that is here, and says so if it stays out: when it is loaded,
 * or if it was preloaded before there was a UCX, when it is called as a module. */
static void child_plugin(const daqiri_ucx_child_t *child, json_t *report)
{
    ucs_status_t (*init)(void);

    *(void**)&init = dlsym(RTLD_DEFAULT, "ucs_module_global_init");
    if (init != NULL) {
        init();
    } else if ((child->plugin != NULL) &&
               (dlopen(child->plugin, RTLD_NOW | RTLD_LOCAL) == NULL)) {
        daqiri_report_text(report, "plugin_error", dlerror());
    }
}

/* ---- what it has ---- */

static int child_uct_load(const child_ucx_t *ucx, child_uct_t *uct,
                          json_t *report)
{
    int missing = 0;

    /* not of that library alone: a plugin that is preloaded stands in front */
    uct->query_components = child_symbol(RTLD_DEFAULT, "uct_query_components",
                                         &missing);
    uct->release_component_list = child_symbol(
            ucx->uct, "uct_release_component_list", &missing);
    uct->component_query = child_symbol(ucx->uct, "uct_component_query",
                                        &missing);
    uct->config_read = child_symbol(ucx->uct, "uct_md_config_read", &missing);
    uct->config_release = child_symbol(ucx->uct, "uct_config_release",
                                       &missing);
    uct->md_open  = child_symbol(ucx->uct, "uct_md_open", &missing);
    uct->md_close = child_symbol(ucx->uct, "uct_md_close", &missing);
    uct->md_query_tls = child_symbol(ucx->uct, "uct_md_query_tl_resources",
                                     &missing);
    uct->release_tls = child_symbol(ucx->uct, "uct_release_tl_resource_list",
                                    &missing);
    if (missing > 0) {
        daqiri_report_format(report, "error", "UCX lacks %d functions that it "
                             "should have", missing);
        return -1;
    }
    return 0;
}

static void child_uct_md(const child_uct_t *uct, uct_component_h component,
                         const char *md_name, json_t *devices)
{
    uct_tl_resource_desc_t *tls;
    uct_md_config_t *config;
    unsigned count, i;
    uct_md_h md;

    if (uct->config_read(component, NULL, NULL, &config) != UCS_OK) {
        return;
    }
    if (uct->md_open(component, md_name, config, &md) == UCS_OK) {
        if (uct->md_query_tls(md, &tls, &count) == UCS_OK) {
            for (i = 0; i < count; ++i) {
                json_array_append_new(devices, json_string(tls[i].dev_name));
            }
            uct->release_tls(tls);
        }
        uct->md_close(md);
    }
    uct->config_release(config);
}

/* The devices that the component has, once it was found. */
static void child_uct_component(const child_uct_t *uct,
                                uct_component_h component, unsigned num_mds,
                                json_t *report)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES
    };
    json_t *devices = daqiri_report_array(report, "devices");
    unsigned i;

    attr.md_resources = calloc(num_mds + 1, sizeof(*attr.md_resources));
    if ((attr.md_resources != NULL) &&
        (uct->component_query(component, &attr) == UCS_OK)) {
        for (i = 0; i < num_mds; ++i) {
            child_uct_md(uct, component, attr.md_resources[i].md_name,
                         devices);
        }
    }
    free(attr.md_resources);
}

static void child_uct_look(const child_uct_t *uct, json_t *report)
{
    uct_component_attr_t attr;
    uct_component_h *list;
    unsigned count, i;

    daqiri_report_bool(report, "is_loaded", 0);
    if (uct->query_components(&list, &count) != UCS_OK) {
        daqiri_report_text(report, "error", "UCX cannot list its components");
        return;
    }
    for (i = 0; i < count; ++i) {
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME |
                          UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
        if ((uct->component_query(list[i], &attr) == UCS_OK) &&
            (strcmp(attr.name, "daqiri") == 0)) {
            daqiri_report_bool(report, "is_loaded", 1);
            child_uct_component(uct, list[i], attr.md_resource_count, report);
        }
    }
    uct->release_component_list(list);
}

/* ---- as a whole ---- */

static void child_ucx(const daqiri_ucx_child_t *child, json_t *report)
{
    child_ucx_t ucx;
    child_uct_t uct;

    if ((child_ucx_open(child, &ucx, report) == 0) &&
        (child_ucx_version(&ucx, report) == 0) &&
        (child_uct_load(&ucx, &uct, report) == 0)) {
        child_uct_look(&uct, report);
    }
}

static void child_version(const daqiri_ucx_child_t *child,
                                json_t *report)
{
    child_ucx_t ucx;

    if (child_ucx_open(child, &ucx, report) == 0) {
        child_ucx_version(&ucx, report);
    }
    child_plugin(child, report);
}

int daqiri_ucx_child(const daqiri_ucx_child_t *child)
{
    json_t *report = json_object();

    if (strcmp(child->what, "limits") == 0) {
        json_decref(report);
        report = daqiri_ucx_child_limits();
    } else if (strcmp(child->what, "version") == 0) {
        child_version(child, report);
    } else if (strcmp(child->what, "plugin") == 0) {
        child_plugin(child, report);
    } else {
        child_ucx(child, report);
    }
    daqiri_answer_write(CHILD_ANSWER, report);
    json_decref(report);
    return DAQIRI_EXIT_OK;
}

/* ---- to start it, and to read it ---- */

void daqiri_ucx_child_command(char **command, const char *what,
                              const daqiri_ucx_t *ucx, const char *plugin)
{
    static char self[PATH_MAX];
    size_t used = 0;
    size_t i;

    daqiri_locate_self(self);
    command[used++] = self;
    command[used++] = (char*)"probe";
    command[used++] = (char*)"--child";
    command[used++] = (char*)what;
    for (i = 0; (ucx != NULL) && (i < DAQIRI_UCX_LIBRARIES); ++i) {
        if (ucx->libraries[i][0] != '\0') {
            command[used++] = (char*)"--child-library";
            command[used++] = (char*)ucx->libraries[i];
        }
    }
    if (plugin != NULL) {
        command[used++] = (char*)"--child-plugin";
        command[used++] = (char*)plugin;
    }
    command[used] = NULL;
}

json_t *daqiri_ucx_child_answer(daqiri_capture_t *capture, char *rest, size_t size)
{
    return daqiri_answer_find(capture->text, CHILD_ANSWER, rest, size);
}
