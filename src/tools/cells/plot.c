/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/cells/plot.h"

#include "tools/base/locate.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLOT_PROGRAM  "gnuplot"
#define PLOT_LINE_MAX 256

/* ---- the file ---- */

static int plot_ends_with(const char *text, const char *end)
{
    size_t length = strlen(text);

    return (length > strlen(end)) &&
           (strcmp(text + length - strlen(end), end) == 0);
}

int daqiri_plot_is_name(const char *path)
{
    return plot_ends_with(path, ".svg") || plot_ends_with(path, ".png");
}

/* What is drawn is beside the file until it is complete, and ends as it does.
 * Returns 0, or -1 and errno. */
static int plot_part(const char *path, char *part)
{
    const char *slash  = strrchr(path, '/');
    const char *name   = (slash != NULL) ? slash + 1 : path;
    const int folder   = (int)(name - path);
    FILE *file         = NULL;

    if (snprintf(part, PATH_MAX, "%s%.*s.part-%s", (folder == 0) ? "./" : "", folder,
                 path, name) < PATH_MAX) {
        file = fopen(part, "w");
    } else {
        errno = ENAMETOOLONG;
    }
    if (file != NULL) {
        fclose(file);
    }
    return (file != NULL) ? 0 : -1;
}

static int plot_is_in_path(const char *name)
{
    const char *folder = getenv("PATH");
    char path[PATH_MAX];
    size_t length;

    for (folder = (folder != NULL) ? folder : "/bin:/usr/bin";
         *folder != '\0'; folder += length + (folder[length] == ':')) {
        length = strcspn(folder, ":");
        snprintf(path, sizeof(path), "%.*s/%s", (int)length, folder, name);
        if (access(path, X_OK) == 0) {
            return 1;
        }
    }
    return 0;
}

int daqiri_plot_try(const char *path, const char *script, const char *speaker)
{
    char part[PATH_MAX], found[PATH_MAX], tried[PATH_MAX];

    if (plot_part(path, part) != 0) {
        fprintf(stderr, "%s: %s cannot be written: %s\n", speaker, path,
                strerror(errno));
        return -1;
    }
    unlink(part);
    if (!plot_is_in_path(PLOT_PROGRAM)) {
        fprintf(stderr, "%s: --plot needs " PLOT_PROGRAM ", which is not there "
                "(on Debian: apt-get install gnuplot-nox)\n", speaker);
        return -1;
    }
    if (daqiri_locate_data(script, found, tried) != 0) {
        fprintf(stderr, "%s: %s was not found in %s\n", speaker, script, tried);
        return -1;
    }
    return 0;
}

/* ---- the child ---- */

static void plot_child(const char *script, const char *csv, const char *picture,
                       FILE *said)
{
    dup2(fileno(said), STDOUT_FILENO);
    dup2(fileno(said), STDERR_FILENO);
    execlp(PLOT_PROGRAM, PLOT_PROGRAM, "-d", "-c", script, csv, picture, (char*)NULL);
    fprintf(stderr, "it cannot be started: %s\n", strerror(errno));
    fflush(stderr);
    _exit(127);
}

/* The last thing that it has said: before it come warnings, and the line of the script
 * that is meant. */
static void plot_read(FILE *said, char *line)
{
    char next[PLOT_LINE_MAX];

    rewind(said);
    while (fgets(next, sizeof(next), said) != NULL) {
        next[strcspn(next, "\n")] = '\0';
        if (next[strspn(next, " \t")] != '\0') {
            memcpy(line, next, sizeof(next));
        }
    }
}

/* Returns 0, or -1 and a line of what it has said. */
static int plot_run(const char *script, FILE *csv, const char *picture, char *line)
{
    FILE *said = tmpfile();
    int status = -1;
    char name[32];
    pid_t pid;

    if (said == NULL) {
        snprintf(line, PLOT_LINE_MAX, "%s", strerror(errno));
        return -1;
    }
    fflush(NULL);
    snprintf(name, sizeof(name), "/dev/fd/%d", fileno(csv));
    pid = fork();
    if (pid == 0) {
        plot_child(script, name, picture, said);
    }
    while ((pid > 0) && (waitpid(pid, &status, 0) < 0) && (errno == EINTR)) {
    }
    snprintf(line, PLOT_LINE_MAX, "%s has failed", PLOT_PROGRAM);
    plot_read(said, line);
    fclose(said);
    return (WIFEXITED(status) && (WEXITSTATUS(status) == 0)) ? 0 : -1;
}

int daqiri_plot_draw(const char *path, const char *script, FILE *csv,
                     const char *speaker)
{
    char part[PATH_MAX], found[PATH_MAX], line[PATH_MAX];
    int ret = daqiri_locate_data(script, found, line);

    if (ret != 0) {
        snprintf(line, sizeof(line), "%s was not found", script);
    } else if (plot_part(path, part) != 0) {
        ret = -1;
        snprintf(line, sizeof(line), "%s", strerror(errno));
    } else {
        ret = plot_run(found, csv, part, line);
        if ((ret == 0) && (rename(part, path) != 0)) {
            ret = -1;
            snprintf(line, sizeof(line), "%s", strerror(errno));
        }
        unlink(part);
    }
    if (ret != 0) {
        fprintf(stderr, "%s: %s cannot be drawn: %s\n", speaker, path, line);
    }
    return ret;
}
