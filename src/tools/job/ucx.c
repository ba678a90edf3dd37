/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/job/ucx.h"

#include "tools/base/capture.h"
#include "tools/base/elf_file.h"
#include "tools/base/locate.h"
#include "tools/base/report.h"
#include "tools/job/command.h"
#include "tools/job/ucx_child.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* s for the loader to list what it would load. */
#define UCX_LIST_TIMEOUT 10.0

/* The first that loads the plugin from UCX_PLUGIN_PATH. */
#define UCX_MAJOR 1
#define UCX_MINOR 22

/* What the loader says of a program or a library, as far as it matters here. */
typedef struct ucx_list {
    char libraries[DAQIRI_UCX_LIBRARIES][PATH_MAX];
    char mpi[PATH_MAX];     /* libmpi, libmpich */
    char starter[PATH_MAX]; /* what Open MPI's mpirun is made of */
    char error[512];        /* what it says instead */
} ucx_list_t;

/* ---- what the loader would load ---- */

/* libuct.so.0 is "libuct", and so is a wheel's libuct-1a2b3c4d.so.0.0.0;
 * libuct_ib.so.0 is not. */
static int ucx_is_library(const char *file, const char *name)
{
    size_t length = strlen(name);

    return (strncmp(file, name, length) == 0) &&
           ((file[length] == '.') || (file[length] == '-'));
}

static const char *ucx_file(const char *path)
{
    const char *slash = strrchr(path, '/');

    return (slash != NULL) ? slash + 1 : path;
}

int daqiri_ucx_library(const char *path)
{
    static const char *const names[DAQIRI_UCX_LIBRARIES] = {
        "libucm", "libucs", "libuct", "libucp"
    };
    int i;

    for (i = 0; i < DAQIRI_UCX_LIBRARIES; ++i) {
        if (ucx_is_library(ucx_file(path), names[i])) {
            return i;
        }
    }
    return -1;
}

static void ucx_note_library(ucx_list_t *list, const char *file,
                             const char *path)
{
    int library = daqiri_ucx_library(file);

    if (library >= 0) {
        snprintf(list->libraries[library], PATH_MAX, "%s", path);
    } else if (ucx_is_library(file, "libmpi") ||
               ucx_is_library(file, "libmpich")) {
        snprintf(list->mpi, sizeof(list->mpi), "%s", path);
    } else if (ucx_is_library(file, "libopen-rte")) {
        snprintf(list->starter, sizeof(list->starter), "%s", path);
    }
}

/* "NAME => PATH (0x...)"; of what is missing, its complaint. */
static void ucx_note_line(ucx_list_t *list, char *line)
{
    static const char failed[] = "error while loading shared libraries: ";
    char *arrow = strstr(line, " => ");
    char *error = strstr(line, failed);
    char *path, *end;

    if (error != NULL) {
        snprintf(list->error, sizeof(list->error), "%.500s",
                 error + strlen(failed));
    }
    if (arrow == NULL) {
        return;
    }
    *arrow = '\0';
    path   = arrow + strlen(" => ");
    end    = strstr(path, " (0x");
    if (end != NULL) {
        *end = '\0';
    }
    ucx_note_library(list, ucx_file(line + strspn(line, " \t")), path);
}

/* Of a program, with its own loader; of a library, with that of this program. */
static void ucx_list(ucx_list_t *list, const char *loader, const char *path)
{
    static daqiri_capture_t capture;
    char *const command[] = {(char*)loader, (char*)"--list", (char*)path, NULL};
    char *rest            = capture.text;
    char *line;

    memset(list, 0, sizeof(*list));
    /* a library that is missing is a status, too */
    daqiri_capture_run(&capture, command, NULL, UCX_LIST_TIMEOUT);
    while ((line = strsep(&rest, "\n")) != NULL) {
        ucx_note_line(list, line);
    }
}

/* Returns 1 if it is known now, or known why not. */
static int ucx_take(daqiri_ucx_t *ucx, const ucx_list_t *list)
{
    if (list->error[0] != '\0') {
        snprintf(ucx->why, sizeof(ucx->why), "%s cannot be loaded: %s",
                 ucx->whose, list->error);
        return 1;
    }
    if (list->libraries[DAQIRI_UCX_UCT][0] == '\0') {
        return 0;
    }
    memcpy(ucx->libraries, list->libraries, sizeof(ucx->libraries));
    return 1;
}

/* ---- of an MPI ---- */

/* The first file of this pattern that this program could load. */
static int ucx_glob(const char *pattern, char *path)
{
    char text[PATH_MAX];
    glob_t found;
    size_t i;
    int ret = -1;

    if (glob(pattern, 0, NULL, &found) != 0) {
        return -1;
    }
    for (i = 0; (i < found.gl_pathc) && (ret != 0); ++i) {
        if (daqiri_elf_check(found.gl_pathv[i], text, sizeof(text)) == 0) {
            snprintf(path, PATH_MAX, "%s", found.gl_pathv[i]);
            ret = 0;
        }
    }
    globfree(&found);
    return ret;
}

static void ucx_folder(const char *path, char *folder)
{
    char *slash;

    if (realpath(path, folder) == NULL) {
        snprintf(folder, PATH_MAX, "%s", path);
    }
    slash = strrchr(folder, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
}

/* libmpi is linked with UCX, or Open MPI has a component that is. */
static int ucx_of_mpi(daqiri_ucx_t *ucx, const char *loader, const char *mpi)
{
    static const char *const places[] = {"", "/openmpi/lib"};
    char folder[PATH_MAX], component[PATH_MAX];
    char pattern[2 * PATH_MAX];
    static ucx_list_t list;
    size_t i;

    ucx_list(&list, loader, mpi);
    if (ucx_take(ucx, &list)) {
        return 1;
    }
    ucx_folder(mpi, folder);
    for (i = 0; i < sizeof(places) / sizeof(places[0]); ++i) {
        snprintf(pattern, sizeof(pattern), "%s%s/openmpi*/mca_pml_ucx.so",
                 folder, places[i]);
        if (ucx_glob(pattern, component) == 0) {
            ucx_list(&list, loader, component);
            return ucx_take(ucx, &list);
        }
    }
    return 0;
}

/* The libmpi that lies near a starter: where that one's own libraries are, or in a
 * lib folder beside its bin folder. */
static int ucx_find_mpi(const char *starter, const ucx_list_t *list, char *mpi)
{
    static const char *const open_mpi[] = {"libmpi.so.[4-9]?", NULL};
    static const char *const mpich[]    = {"libmpich.so.1?", "libmpi.so.1?",
                                           NULL};
    static const char *const places[]   = {"../lib*", "../lib/*"};
    char folder[PATH_MAX], real[PATH_MAX];
    char pattern[2 * PATH_MAX];
    const char *const *name;
    size_t i;

    if (realpath(starter, real) == NULL) {
        return -1;
    }
    name = ((strstr(real, "hydra") != NULL) || (strstr(real, "mpich") != NULL))
                   ? mpich : open_mpi;
    for (; *name != NULL; ++name) {
        ucx_folder(list->starter, folder);
        snprintf(pattern, sizeof(pattern), "%s/%s", folder, *name);
        if ((list->starter[0] != '\0') && (ucx_glob(pattern, mpi) == 0)) {
            return 0;
        }
        ucx_folder(real, folder);
        for (i = 0; i < sizeof(places) / sizeof(places[0]); ++i) {
            snprintf(pattern, sizeof(pattern), "%s/%s/%s", folder, places[i],
                     *name);
            if (ucx_glob(pattern, mpi) == 0) {
                return 0;
            }
        }
    }
    return -1;
}

static void ucx_of_starter(daqiri_ucx_t *ucx, const char *loader,
                           const char *starter)
{
    static ucx_list_t list;
    char path[PATH_MAX], mpi[PATH_MAX];

    if (daqiri_command_find(starter, path) != 0) {
        return;
    }
    ucx_list(&list, loader, path);
    if (ucx_find_mpi(path, &list, mpi) == 0) {
        snprintf(ucx->whose, sizeof(ucx->whose), "%.200s's MPI", starter);
        ucx_of_mpi(ucx, loader, mpi);
    }
}

/* ---- of a command ---- */

static int ucx_of_program(daqiri_ucx_t *ucx, const char *loader,
                          const char *program)
{
    static ucx_list_t list;
    char path[PATH_MAX];
    daqiri_elf_t elf;

    if ((daqiri_command_find(program, path) != 0) ||
        (daqiri_elf_read(path, &elf) != 0)) {
        return 0;
    }
    snprintf(ucx->whose, sizeof(ucx->whose), "%.200s", program);
    if (daqiri_elf_check(path, ucx->why, sizeof(ucx->why)) != 0) {
        return 1;
    }
    if (elf.loader[0] == '\0') {
        snprintf(ucx->why, sizeof(ucx->why), "%s is linked statically: nothing "
                 "gets into it", program);
        return 1;
    }
    ucx_list(&list, elf.loader, path);
    if (ucx_take(ucx, &list)) {
        return 1;
    }
    return (list.mpi[0] != '\0') && ucx_of_mpi(ucx, loader, list.mpi);
}

void daqiri_ucx_of_command(daqiri_ucx_t *ucx, char *const *command)
{
    const char *program, *starter;
    daqiri_elf_t self;

    memset(ucx, 0, sizeof(*ucx));
    daqiri_elf_self(&self);
    program = daqiri_command_program(command, &starter);
    if ((program != NULL) && ucx_of_program(ucx, self.loader, program)) {
        return;
    }
    if (starter != NULL) {
        ucx_of_starter(ucx, self.loader, starter);
    }
    if (ucx->whose[0] == '\0') {
        snprintf(ucx->whose, sizeof(ucx->whose), "%.200s",
                 (program != NULL) ? program :
                 (*command != NULL) ? *command : "a command");
    }
}

/* ---- what that UCX says ---- */

/* The plugin's own sentence, which does not go through UCX's log: its lines begin with
 * its name. */
static void ucx_note_refusal(daqiri_ucx_t *ucx, char *rest)
{
    char *line;

    while ((line = strsep(&rest, "\n")) != NULL) {
        if (strncmp(line, "daqiri: ", strlen("daqiri: ")) == 0) {
            snprintf(ucx->why, sizeof(ucx->why), "%.1000s",
                     line + strlen("daqiri: "));
            return;
        }
    }
}

static void ucx_note_answer(daqiri_ucx_t *ucx, const json_t *answer)
{
    const char *version = daqiri_report_find_text(answer, "ucx_version");
    const char *library = daqiri_report_find_text(answer, "library");
    const char *error   = daqiri_report_find_text(answer, "error");
    const char *broken  = daqiri_report_find_text(answer, "plugin_error");

    if (version != NULL) {
        snprintf(ucx->version, sizeof(ucx->version), "%s", version);
    }
    if (library != NULL) {
        snprintf(ucx->libraries[DAQIRI_UCX_UCT], PATH_MAX, "%s", library);
    }
    if (error != NULL) {
        snprintf(ucx->why, sizeof(ucx->why), "%s", error);
    }
    if (broken != NULL) {
        snprintf(ucx->broken, sizeof(ucx->broken), "%s", broken);
    }
}

static void ucx_ask(daqiri_ucx_t *ucx, const char *what, const char *plugin,
                    const char *preload, double timeout)
{
    static daqiri_capture_t capture;
    static char rest[DAQIRI_CAPTURE_MAX];
    daqiri_env_list_t env_list = {.count = 0};
    char *command[DAQIRI_UCX_CHILD_WORDS];
    json_t *answer;

    /* so that the plugin speaks */
    daqiri_env_list_add(&env_list, "UCX_TLS", "daqiri");
    if (preload != NULL) {
        daqiri_env_list_add(&env_list, "LD_PRELOAD", preload);
    }
    daqiri_ucx_child_command(command, what, ucx, plugin);
    daqiri_capture_run(&capture, command, &env_list, timeout);
    answer = daqiri_ucx_child_answer(&capture, rest, sizeof(rest));
    if (answer != NULL) {
        ucx_note_answer(ucx, answer);
        if (ucx->why[0] == '\0') {
            ucx_note_refusal(ucx, rest);
        }
        json_decref(answer);
    } else {
        snprintf(ucx->why, sizeof(ucx->why), "the UCX %.500s does not say its "
                 "version: the process that opened it %s",
                 ucx->libraries[DAQIRI_UCX_UCT],
                 capture.is_timeout ? "did not come back" : "died");
    }
    daqiri_env_list_cleanup(&env_list);
}

void daqiri_ucx_ask(daqiri_ucx_t *ucx, const char *plugin, const char *preload,
                    double timeout)
{
    ucx_ask(ucx, "version", plugin, preload, timeout);
}

void daqiri_ucx_ask_plugin(daqiri_ucx_t *ucx, const char *plugin,
                           const char *preload, double timeout)
{
    ucx_ask(ucx, "plugin", plugin, preload, timeout);
}

/* ---- the way in ---- */

int daqiri_ucx_has_plugin_path(const daqiri_ucx_t *ucx)
{
    unsigned major = 0;
    unsigned minor = 0;

    return (sscanf(ucx->version, "%u.%u", &major, &minor) == 2) &&
           ((major > UCX_MAJOR) ||
            ((major == UCX_MAJOR) && (minor >= UCX_MINOR)));
}

int daqiri_ucx_excludes_plugin(void)
{
    const char *list = getenv("UCX_MODULES");
    int is_negative, is_in;
    char words[1024];

    if (list == NULL) {
        return 0;
    }
    is_negative = (list[0] == '^');
    snprintf(words, sizeof(words), ",%s,", list + is_negative);
    is_in = (strstr(words, ",daqiri,") != NULL) ||
            (strstr(words, ",all,") != NULL);
    return (is_in == is_negative);
}

int daqiri_ucx_loads_plugin(const daqiri_ucx_t *ucx)
{
    return daqiri_ucx_has_plugin_path(ucx) && !daqiri_ucx_excludes_plugin();
}
