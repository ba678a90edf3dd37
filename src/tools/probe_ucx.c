/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * UCX and the MPIs, as a rank would meet them: this program is started again
 * with the environment that `daqiri run` gives a job, once by itself and once
 * by each MPI's starter, and says what it sees there.
 */

#include "probe.h"

#include "capture.h"
#include "daqiri.h"
#include "report.h"
#include "run_env.h"
#include "stop.h"
#include "where.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <uct/api/uct.h>
#include <unistd.h>

/* What the child's line begins with, among what libraries say. */
#define PROBE_MARK "daqiri-probe: "

/* ---- in the child ---- */

static json_t *probe_limit(rlim_t limit)
{
    return (limit == RLIM_INFINITY) ? json_null() :
                                      json_integer((json_int_t)limit);
}

json_t *daqiri_probe_limits(void)
{
    json_t *report      = json_object();
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

    getrlimit(RLIMIT_MEMLOCK, &limit);
    daqiri_report_set(report, "memlock_bytes", probe_limit(limit.rlim_cur));
    daqiri_report_set(report, "memlock_max_bytes", probe_limit(limit.rlim_max));
    return report;
}

/* UCX's functions, found at run time: this program works without UCX. */
typedef struct probe_uct {
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
    const char *(*version)(void);
} probe_uct_t;

static void *probe_symbol(void *library, const char *name, int *missing)
{
    void *symbol = dlsym(library, name);

    *missing += (symbol == NULL);
    return symbol;
}

static int probe_uct_load(probe_uct_t *uct, json_t *report)
{
    void *uct_library = dlopen("libuct.so.0", RTLD_NOW | RTLD_GLOBAL);
    void *ucp_library = dlopen("libucp.so.0", RTLD_NOW | RTLD_GLOBAL);
    int missing       = 0;

    if ((uct_library == NULL) || (ucp_library == NULL)) {
        daqiri_report_format(report, "error", "UCX is not installed: %s",
                             dlerror());
        return -1;
    }
    /* not of that library alone: a plugin that is preloaded stands in front */
    uct->query_components = probe_symbol(RTLD_DEFAULT, "uct_query_components",
                                         &missing);
    uct->release_component_list = probe_symbol(
            uct_library, "uct_release_component_list", &missing);
    uct->component_query = probe_symbol(uct_library, "uct_component_query",
                                        &missing);
    uct->config_read = probe_symbol(uct_library, "uct_md_config_read",
                                    &missing);
    uct->config_release = probe_symbol(uct_library, "uct_config_release",
                                       &missing);
    uct->md_open  = probe_symbol(uct_library, "uct_md_open", &missing);
    uct->md_close = probe_symbol(uct_library, "uct_md_close", &missing);
    uct->md_query_tls = probe_symbol(uct_library, "uct_md_query_tl_resources",
                                     &missing);
    uct->release_tls = probe_symbol(uct_library,
                                    "uct_release_tl_resource_list", &missing);
    uct->version = probe_symbol(ucp_library, "ucp_get_version_string",
                                &missing);
    if (missing > 0) {
        daqiri_report_format(report, "error", "UCX lacks %d functions that it "
                             "should have", missing);
        return -1;
    }
    return 0;
}

static void probe_uct_md(const probe_uct_t *uct, uct_component_h component,
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
static void probe_uct_component(const probe_uct_t *uct,
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
            probe_uct_md(uct, component, attr.md_resources[i].md_name,
                         devices);
        }
    }
    free(attr.md_resources);
}

static void probe_uct_look(const probe_uct_t *uct, json_t *report)
{
    uct_component_attr_t attr;
    uct_component_h *list;
    unsigned count, i;

    daqiri_report_text(report, "ucx_version", uct->version());
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
            probe_uct_component(uct, list[i], attr.md_resource_count, report);
        }
    }
    uct->release_component_list(list);
}

int daqiri_probe_child(const char *what)
{
    probe_uct_t uct;
    json_t *report;
    char *text;

    if (strcmp(what, "limits") == 0) {
        report = daqiri_probe_limits();
    } else {
        report = json_object();
        if (probe_uct_load(&uct, report) == 0) {
            probe_uct_look(&uct, report);
        }
    }
    text = json_dumps(report, JSON_COMPACT);
    printf("%s%s\n", PROBE_MARK, (text != NULL) ? text : "{}");
    fflush(stdout);
    free(text);
    json_decref(report);
    return DAQIRI_EXIT_OK;
}

/* ---- in the parent ---- */

typedef struct probe_wait {
    daqiri_progress_t progress;
    const char        *what;
} probe_wait_t;

static void probe_tick(void *arg)
{
    probe_wait_t *wait = arg;
    uint64_t now_ns    = daqiri_now_ns();

    if (daqiri_progress_is_due(&wait->progress, now_ns)) {
        daqiri_progress_show(&wait->progress, now_ns, "waiting for %s",
                             wait->what);
    }
}

/* As daqiri_capture_run(), and a terminal sees what is waited for. */
static int probe_run(daqiri_capture_t *capture, char *const *command,
                     const daqiri_settings_t *settings, double timeout,
                     const char *what)
{
    probe_wait_t progress            = {.what = what};
    const daqiri_capture_wait_t wait = {0, probe_tick, &progress};
    int ret;

    daqiri_progress_start(&progress.progress);
    ret = daqiri_capture_run_while(capture, command, settings, timeout, &wait);
    daqiri_progress_end(&progress.progress);
    return ret;
}

/* Runs a command that ends in `daqiri probe -child=...`; its report, which is
 * the caller's, or NULL. */
static json_t *probe_ask(daqiri_capture_t *capture, char *const *command,
                         const daqiri_settings_t *settings, double timeout,
                         const char *what)
{
    const char *line;

    probe_run(capture, command, settings, timeout, what);
    line = daqiri_capture_line(capture, PROBE_MARK);
    return (line != NULL) ? json_loads(line, 0, NULL) : NULL;
}

/* Why there was no answer. */
static void probe_no_answer(json_t *row, const daqiri_capture_t *capture,
                            double timeout)
{
    if (daqiri_stop_asked()) {
        daqiri_report_text(row, "error", "interrupted");
    } else if (capture->is_timeout) {
        daqiri_report_format(row, "error", "it did not end within %.4g s",
                             timeout);
    } else if (capture->error != 0) {
        daqiri_report_format(row, "error", "it cannot be started: %s",
                             strerror(capture->error));
    } else if (WIFSIGNALED(capture->status)) {
        daqiri_report_format(row, "error", "it died: %s",
                             strsignal(WTERMSIG(capture->status)));
    } else {
        daqiri_report_format(row, "error", "it ended with status %d: %.400s",
                             WEXITSTATUS(capture->status), capture->text);
    }
}

static int probe_settings(daqiri_settings_t *settings, const char *device,
                          unsigned port, const char *speaker)
{
    daqiri_run_device_t chosen = {.port = port};

    snprintf(chosen.name, sizeof(chosen.name), "%s", device);
    chosen.is_soft = (strcmp(device, DAQIRI_SOFT_DEVICE) == 0);
    return daqiri_run_env(settings, "daqiri", &chosen, speaker);
}

/* A line of daqiri's in UCX's log tells why the plugin stays away; else the
 * line of the loader. */
static void probe_why_not(json_t *row, daqiri_capture_t *capture)
{
    char *line, *rest = capture->text;

    while ((line = strsep(&rest, "\n")) != NULL) {
        if (((strstr(line, "daqiri") != NULL) &&
             (strncmp(line, PROBE_MARK, strlen(PROBE_MARK)) != 0)) ||
            (strstr(line, "cannot be preloaded") != NULL)) {
            daqiri_report_text(row, "error", line);
            return;
        }
    }
    daqiri_report_text(row, "error", "UCX does not list it and gives no "
                       "reason; UCX_LOG_LEVEL=debug tells more");
}

/* Does it have the device that was probed? */
static int probe_has_device(const json_t *answer, const char *device,
                            unsigned port)
{
    const json_t *devices = json_object_get(answer, "devices");
    char wanted[DAQIRI_DEVICE_NAME_MAX + 16];
    const char *name;
    size_t i;

    snprintf(wanted, sizeof(wanted), "%s:%u", device, port);
    for (i = 0; i < json_array_size(devices); ++i) {
        name = json_string_value(json_array_get(devices, i));
        if ((name != NULL) && (strcmp(name, wanted) == 0)) {
            return 1;
        }
    }
    return 0;
}

static void probe_ucx_note(json_t *row, json_t *answer,
                           daqiri_capture_t *capture, const char *device,
                           unsigned port, double timeout)
{
    const char *error = daqiri_report_find_text(answer, "error");

    json_object_update(row, answer);
    if (answer == NULL) {
        probe_no_answer(row, capture, timeout);
    } else if ((error == NULL) &&
               !json_is_true(json_object_get(answer, "is_loaded"))) {
        probe_why_not(row, capture);
    } else if ((error == NULL) && !probe_has_device(answer, device, port)) {
        daqiri_report_format(row, "error", "it is loaded and does not offer "
                             "%s:%u", device, port);
    }
    daqiri_report_text(row, "result",
                       (daqiri_report_find(row, "error") == NULL) ?
                       DAQIRI_PROBE_OK : DAQIRI_PROBE_FAILED);
}

void daqiri_probe_ucx(json_t *report, const char *device, unsigned port,
                      double timeout, const char *speaker)
{
    static daqiri_capture_t capture;
    char path[PATH_MAX];
    char *const command[] = {path, (char*)"probe", (char*)"-child=ucx", NULL};
    daqiri_settings_t settings = {.count = 0};
    json_t *row = json_object();
    json_t *answer;

    daqiri_report_set(report, "ucx", row);
    daqiri_report_text(row, "result", DAQIRI_PROBE_SKIPPED);
    daqiri_report_text(row, "ucx_version", NULL);
    daqiri_report_bool(row, "is_loaded", 0);
    daqiri_report_array(row, "devices");
    daqiri_report_text(row, "error", NULL);
    if (device == NULL) {
        daqiri_report_text(row, "error", "there is no device to try it on");
        return;
    }
    daqiri_find_self(path);
    if (probe_settings(&settings, device, port, speaker) != 0) {
        daqiri_report_text(row, "result", DAQIRI_PROBE_FAILED);
        daqiri_report_text(row, "error", "the plugin is not installed where "
                           "daqiri looks for it");
    } else {
        answer = probe_ask(&capture, command, &settings, timeout, "UCX");
        probe_ucx_note(row, answer, &capture, device, port, timeout);
        json_decref(answer);
    }
    daqiri_settings_cleanup(&settings);
}

/* ---- the MPIs ---- */

typedef struct probe_mpi {
    const char *name;
    const char *starters[3];
    const char *mark;  /* in the output of --version */
    const char *options[5];
} probe_mpi_t;

static const probe_mpi_t probe_mpis[] = {
    {"Open MPI", {"mpirun.openmpi", "mpirun", NULL}, "Open MPI",
     {"--allow-run-as-root", "--oversubscribe", "-np", "1", NULL}},
    {"MPICH", {"mpiexec.mpich", "mpiexec.hydra", "mpiexec"}, "HYDRA",
     {"-np", "1", NULL}}
};

/* "4.1.4" of "mpirun (Open MPI) 4.1.4" and of "Version:  4.0.2". */
static void probe_mpi_version(json_t *row, char *text)
{
    char *word = strpbrk(text, "0123456789");

    if (word != NULL) {
        word[strcspn(word, " \t\n")] = '\0';
        daqiri_report_text(row, "mpi_version", word);
    }
}

/* The first of the starters that is this MPI's; NULL if none. */
static const char *probe_mpi_find(const probe_mpi_t *mpi, json_t *row,
                                  daqiri_capture_t *capture, double timeout)
{
    char *command[] = {NULL, (char*)"--version", NULL};
    size_t i;

    for (i = 0; (i < 3) && (mpi->starters[i] != NULL); ++i) {
        command[0] = (char*)mpi->starters[i];
        if ((probe_run(capture, command, NULL, timeout, mpi->name) == 0) &&
            (strstr(capture->text, mpi->mark) != NULL)) {
            probe_mpi_version(row, capture->text);
            return mpi->starters[i];
        }
    }
    return NULL;
}

/* What a job of this MPI has to have in its environment, and what of it this
 * environment has. MPICH needs UCX's variables only. */
static void probe_mpi_needs(json_t *row, const daqiri_settings_t *settings,
                            int is_ompi)
{
    json_t *needs = daqiri_report_array(row, "needs");
    const char *name, *value;
    json_t *need;
    size_t i;

    for (i = 0; i < settings->count; ++i) {
        name = settings->list[i].name;
        if ((strncmp(name, "OMPI_", 5) == 0) &&
            (!is_ompi || (strstr(name, "env_list") != NULL))) {
            continue;
        }
        value = getenv(name);
        need  = daqiri_report_row(needs);
        daqiri_report_text(need, "name", name);
        daqiri_report_text(need, "value", settings->list[i].value);
        daqiri_report_bool(need, "is_set", (value != NULL) &&
                           (strcmp(value, settings->list[i].value) == 0));
    }
}

static void probe_mpi_start(const probe_mpi_t *mpi, const char *starter,
                            json_t *row, const daqiri_settings_t *settings,
                            daqiri_capture_t *capture, double timeout)
{
    char path[PATH_MAX];
    char *command[12];
    size_t used = 0;
    size_t i;
    json_t *answer;

    daqiri_find_self(path);
    command[used++] = (char*)starter;
    for (i = 0; mpi->options[i] != NULL; ++i) {
        command[used++] = (char*)mpi->options[i];
    }
    command[used++] = path;
    command[used++] = (char*)"probe";
    command[used++] = (char*)"-child=limits";
    command[used]   = NULL;

    answer = probe_ask(capture, command, settings, timeout, mpi->name);
    if (answer == NULL) {
        probe_no_answer(row, capture, timeout);
        daqiri_report_text(row, "result", DAQIRI_PROBE_FAILED);
        return;
    }
    json_object_update(row, answer);
    daqiri_report_text(row, "result", DAQIRI_PROBE_OK);
    json_decref(answer);
}

void daqiri_probe_mpi(json_t *report, const char *device, unsigned port,
                      double timeout, const char *speaker)
{
    static daqiri_capture_t capture;
    daqiri_settings_t settings = {.count = 0};
    json_t *rows = daqiri_report_array(report, "mpi");
    const char *starter;
    json_t *row;
    size_t i;

    if ((device != NULL) &&
        (probe_settings(&settings, device, port, speaker) != 0)) {
        device = NULL;
    }
    for (i = 0; (i < sizeof(probe_mpis) / sizeof(probe_mpis[0])) &&
                !daqiri_stop_asked(); ++i) {
        row = daqiri_report_row(rows);
        daqiri_report_text(row, "name", probe_mpis[i].name);
        daqiri_report_text(row, "result", DAQIRI_PROBE_ABSENT);
        daqiri_report_text(row, "starter", NULL);
        daqiri_report_text(row, "mpi_version", NULL);
        daqiri_report_set(row, "memlock_bytes", json_null());
        daqiri_report_set(row, "memlock_max_bytes", json_null());
        daqiri_report_text(row, "error", NULL);
        daqiri_report_array(row, "needs");
        starter = probe_mpi_find(&probe_mpis[i], row, &capture, timeout);
        if (starter == NULL) {
            if (daqiri_stop_asked()) {
                daqiri_report_text(row, "result", DAQIRI_PROBE_SKIPPED);
                daqiri_report_text(row, "error", "interrupted");
            }
            continue;
        }
        daqiri_report_text(row, "starter", starter);
        daqiri_report_text(row, "result", DAQIRI_PROBE_SKIPPED);
        if (device != NULL) {
            probe_mpi_needs(row, &settings, i == 0);
            probe_mpi_start(&probe_mpis[i], starter, row, &settings, &capture,
                            timeout);
        }
    }
    daqiri_settings_cleanup(&settings);
}
