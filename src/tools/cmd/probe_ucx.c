/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * UCX and the MPIs, as a rank would meet them: this program is started again
 * with the environment that `daqiri run` gives a job, once by itself and once
 * by each MPI's starter, and says what it sees there (ucx_child.c).
 */

#include "tools/base/capture.h"
#include "tools/base/clock.h"
#include "tools/base/locate.h"
#include "tools/base/progress.h"
#include "tools/base/report.h"
#include "tools/base/stop.h"
#include "tools/cmd/cmd.h"
#include "tools/cmd/probe.h"
#include "tools/job/job.h"
#include "tools/job/ucx.h"
#include "tools/job/ucx_child.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct probe_wait {
    daqiri_progress_t progress;
    const char        *what;
} probe_wait_t;

static void probe_tick(void *arg)
{
    probe_wait_t *wait = arg;
    uint64_t now_ns    = daqiri_now_ns();

    if (daqiri_progress_is_due(&wait->progress, now_ns)) {
        daqiri_progress_show(&wait->progress, now_ns, -1, "waiting for %s",
                             wait->what);
    }
}

/* As daqiri_capture_run(), and a terminal sees what is waited for. */
static int probe_run(daqiri_capture_t *capture, char *const *command,
                     const daqiri_env_list_t *env_list, double timeout,
                     const char *what)
{
    probe_wait_t progress            = {.what = what};
    const daqiri_capture_wait_t wait = {0, probe_tick, &progress};
    int ret;

    daqiri_progress_start(&progress.progress);
    ret = daqiri_capture_run_while(capture, command, env_list, timeout, &wait);
    daqiri_progress_end(&progress.progress);
    return ret;
}

/* Runs a command that ends in `daqiri probe --child=...`; its report, which is
 * the caller's, or NULL. What others have said is the text of `capture`. */
static json_t *probe_ask(daqiri_capture_t *capture, char *const *command,
                         const daqiri_env_list_t *env_list, double timeout,
                         const char *what)
{
    static char rest[DAQIRI_CAPTURE_MAX];
    json_t *answer;

    probe_run(capture, command, env_list, timeout, what);
    answer = daqiri_ucx_child_answer(capture, rest, sizeof(rest));
    snprintf(capture->text, sizeof(capture->text), "%s", rest);
    return answer;
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

static int probe_settings(daqiri_env_list_t *env_list, const char *device,
                          unsigned port, const daqiri_ucx_t *ucx,
                          const char *speaker)
{
    daqiri_job_device_t chosen = {.port = port};

    snprintf(chosen.name, sizeof(chosen.name), "%s", device);
    chosen.is_soft = daqiri_is_soft_device(device);
    return daqiri_job_env(env_list, "daqiri", &chosen, ucx, speaker);
}

/* UCX, the plugin and the loader say nothing unless something is wrong, and nobody
 * knows all that they may say: all of it is shown. */
static void probe_why_not(json_t *row, daqiri_capture_t *capture)
{
    size_t length = strlen(capture->text);
    char *end;

    while ((length > 0) && (capture->text[length - 1] == '\n')) {
        capture->text[--length] = '\0';
    }
    if (length == 0) {
        daqiri_report_text(row, "error", "UCX does not list it and gives no "
                           "reason; UCX_LOG_LEVEL=debug tells more");
        return;
    }
    while ((end = strchr(capture->text, '\n')) != NULL) {
        *end = ';';
    }
    daqiri_report_text(row, "error", capture->text);
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

/* ---- which UCX, and by which way ---- */

static const char *probe_way(const daqiri_ucx_t *ucx)
{
    return (ucx->version[0] == '\0') ? NULL :
           daqiri_ucx_loads_plugin(ucx) ? DAQIRI_UCX_PLUGIN_PATH : "LD_PRELOAD";
}

/* What both UCX and the MPIs have of it. */
static void probe_note_way(json_t *row, const daqiri_ucx_t *ucx)
{
    const char *library = ucx->libraries[DAQIRI_UCX_UCT];
    int is_out          = (ucx->why[0] != '\0') || (ucx->broken[0] != '\0');

    daqiri_report_text(row, "ucx_version",
                       (ucx->version[0] != '\0') ? ucx->version : NULL);
    daqiri_report_text(row, "library", (library[0] != '\0') ? library : NULL);
    daqiri_report_text(row, "way", is_out ? NULL : probe_way(ucx));
}

/* Why the plugin does not get in; NULL: it does, as far as that UCX says. */
static const char *probe_why_out(const daqiri_ucx_t *ucx)
{
    return (ucx->broken[0] != '\0') ? ucx->broken :
           (ucx->why[0] != '\0') ? ucx->why : NULL;
}

/* Of the loader's, or if it has none, of an MPI that is here. */
static void probe_ucx_default(daqiri_ucx_t *ucx, const char *plugin,
                              double timeout)
{
    static const char *const starters[] = {"mpirun.openmpi", "mpirun",
                                           "mpiexec.mpich", "mpiexec"};
    static daqiri_ucx_t other;
    char *command[] = {NULL, NULL};
    size_t i;

    memset(ucx, 0, sizeof(*ucx));
    daqiri_ucx_ask(ucx, plugin, NULL, timeout);
    for (i = 0; (i < sizeof(starters) / sizeof(starters[0])) &&
                (ucx->libraries[DAQIRI_UCX_UCT][0] == '\0') &&
                !daqiri_stop_asked(); ++i) {
        command[0] = (char*)starters[i];
        daqiri_ucx_of_command(&other, command);
        if (other.libraries[DAQIRI_UCX_UCT][0] != '\0') {
            daqiri_ucx_ask(&other, plugin, NULL, timeout);
            *ucx = other;
        }
    }
}

static void probe_ucx_find(daqiri_ucx_t *ucx, const char *program,
                           const char *plugin, double timeout)
{
    char *const command[] = {(char*)program, NULL};

    if (program == NULL) {
        probe_ucx_default(ucx, plugin, timeout);
        return;
    }
    daqiri_ucx_of_command(ucx, command);
    if (ucx->libraries[DAQIRI_UCX_UCT][0] != '\0') {
        daqiri_ucx_ask(ucx, plugin, NULL, timeout);
    } else if (ucx->why[0] == '\0') {
        snprintf(ucx->why, sizeof(ucx->why), "which UCX %.200s loads is not known "
                 "beforehand", program);
    }
}

/* As a rank has it, on that device. */
static void probe_ucx_try(json_t *row, const daqiri_ucx_t *ucx,
                          const char *device, unsigned port, double timeout,
                          const char *speaker)
{
    static daqiri_capture_t capture;
    char *command[DAQIRI_UCX_CHILD_WORDS];
    daqiri_env_list_t env_list = {.count = 0};
    json_t *answer;

    if (probe_settings(&env_list, device, port, ucx, speaker) != 0) {
        daqiri_report_text(row, "result", DAQIRI_PROBE_FAILED);
        daqiri_report_text(row, "error", "the plugin or the software device "
                           "cannot be used");
    } else {
        daqiri_ucx_child_command(command, "ucx", ucx, NULL);
        answer = probe_ask(&capture, command, &env_list, timeout, "UCX");
        probe_ucx_note(row, answer, &capture, device, port, timeout);
        json_decref(answer);
    }
    daqiri_env_list_cleanup(&env_list);
}

static void probe_ucx_fill(json_t *row, const char *device, unsigned port,
                           const char *program, double timeout,
                           const char *speaker)
{
    static daqiri_ucx_t ucx;
    char plugin[PATH_MAX];
    char why[2 * PATH_MAX];

    if (daqiri_job_find_plugin(plugin, why, sizeof(why)) != 0) {
        daqiri_report_text(row, "result", DAQIRI_PROBE_FAILED);
        daqiri_report_text(row, "error", why);
        return;
    }
    probe_ucx_find(&ucx, program, plugin, timeout);
    probe_note_way(row, &ucx);
    if (daqiri_stop_asked()) {
        daqiri_report_text(row, "error", "interrupted");
    } else if (probe_why_out(&ucx) != NULL) {
        daqiri_report_text(row, "result", DAQIRI_PROBE_FAILED);
        daqiri_report_text(row, "error", probe_why_out(&ucx));
    } else if (device == NULL) {
        daqiri_report_text(row, "error", "there is no device to try it on");
    } else {
        probe_ucx_try(row, &ucx, device, port, timeout, speaker);
    }
}

void daqiri_probe_ucx(json_t *report, const char *device, unsigned port,
                      const char *program, double timeout, const char *speaker)
{
    json_t *row = json_object();

    daqiri_report_set(report, "ucx", row);
    daqiri_report_text(row, "result", DAQIRI_PROBE_SKIPPED);
    daqiri_report_text(row, "ucx_version", NULL);
    daqiri_report_text(row, "library", NULL);
    daqiri_report_text(row, "way", NULL);
    daqiri_report_bool(row, "is_loaded", 0);
    daqiri_report_array(row, "devices");
    daqiri_report_text(row, "error", NULL);
    probe_ucx_fill(row, device, port, program, timeout, speaker);
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
static void probe_mpi_needs(json_t *row, const daqiri_env_list_t *env_list,
                            int is_ompi)
{
    json_t *needs = daqiri_report_array(row, "needs");
    const char *name, *value;
    json_t *need;
    size_t i;

    for (i = 0; i < env_list->count; ++i) {
        name = env_list->list[i].name;
        if ((strncmp(name, "OMPI_", 5) == 0) &&
            (!is_ompi || (strstr(name, "env_list") != NULL))) {
            continue;
        }
        value = getenv(name);
        need  = daqiri_report_row(needs);
        daqiri_report_text(need, "name", name);
        daqiri_report_text(need, "value", env_list->list[i].value);
        daqiri_report_bool(need, "is_set", (value != NULL) &&
                           (strcmp(value, env_list->list[i].value) == 0));
    }
}

static void probe_mpi_start(const probe_mpi_t *mpi, const char *starter,
                            json_t *row, const daqiri_env_list_t *env_list,
                            daqiri_capture_t *capture, double timeout)
{
    char path[PATH_MAX];
    char *command[12];
    size_t used = 0;
    size_t i;
    json_t *answer;

    daqiri_locate_self(path);
    command[used++] = (char*)starter;
    for (i = 0; mpi->options[i] != NULL; ++i) {
        command[used++] = (char*)mpi->options[i];
    }
    command[used++] = path;
    command[used++] = (char*)"probe";
    command[used++] = (char*)"--child=limits";
    command[used]   = NULL;

    answer = probe_ask(capture, command, env_list, timeout, mpi->name);
    if (answer == NULL) {
        probe_no_answer(row, capture, timeout);
        daqiri_report_text(row, "result", DAQIRI_PROBE_FAILED);
        return;
    }
    json_object_update(row, answer);
    daqiri_report_text(row, "result", DAQIRI_PROBE_OK);
    json_decref(answer);
}

/* The UCX of its ranks, and what they need for it on that device. */
static void probe_mpi_try(const probe_mpi_t *mpi, const char *starter,
                          json_t *row, const char *device, unsigned port,
                          daqiri_capture_t *capture, double timeout,
                          const char *speaker)
{
    char *const command[]      = {(char*)starter, NULL};
    daqiri_env_list_t env_list = {.count = 0};
    static daqiri_ucx_t ucx;
    char plugin[PATH_MAX];
    char why[2 * PATH_MAX];

    daqiri_ucx_of_command(&ucx, command);
    if ((ucx.libraries[DAQIRI_UCX_UCT][0] != '\0') &&
        (daqiri_job_find_plugin(plugin, why, sizeof(why)) == 0)) {
        daqiri_ucx_ask(&ucx, plugin, NULL, timeout);
    }
    probe_note_way(row, &ucx);
    if ((device != NULL) &&
        (probe_settings(&env_list, device, port, &ucx, speaker) == 0)) {
        probe_mpi_needs(row, &env_list, mpi == &probe_mpis[0]);
        probe_mpi_start(mpi, starter, row, &env_list, capture, timeout);
    }
    daqiri_env_list_cleanup(&env_list);
}

void daqiri_probe_mpi(json_t *report, const char *device, unsigned port,
                      double timeout, const char *speaker)
{
    static daqiri_capture_t capture;
    json_t *rows = daqiri_report_array(report, "mpi");
    const char *starter;
    json_t *row;
    size_t i;

    for (i = 0; (i < sizeof(probe_mpis) / sizeof(probe_mpis[0])) &&
                !daqiri_stop_asked(); ++i) {
        row = daqiri_report_row(rows);
        daqiri_report_text(row, "name", probe_mpis[i].name);
        daqiri_report_text(row, "result", DAQIRI_PROBE_ABSENT);
        daqiri_report_text(row, "starter", NULL);
        daqiri_report_text(row, "mpi_version", NULL);
        probe_note_way(row, &(daqiri_ucx_t){.version = ""});
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
        probe_mpi_try(&probe_mpis[i], starter, row, device, port, &capture,
                      timeout, speaker);
    }
}
