/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/cells/plot.h"

#include "tools/base/report.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLOT_PROGRAM "gnuplot"
#define PLOT_WIDTH   1120
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

/* What is drawn is beside the file until it is complete. */
static int plot_part(const char *path, char *part)
{
    return (snprintf(part, PATH_MAX, "%s.part", path) < PATH_MAX) ? 0 : -1;
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

int daqiri_plot_try(const char *path, const char *speaker)
{
    char part[PATH_MAX];
    FILE *file = (plot_part(path, part) == 0) ? fopen(part, "w") : NULL;

    if (file == NULL) {
        fprintf(stderr, "%s: %s cannot be written: %s\n", speaker, path,
                strerror(errno));
        return -1;
    }
    fclose(file);
    unlink(part);
    if (!plot_is_in_path(PLOT_PROGRAM)) {
        fprintf(stderr, "%s: --plot needs " PLOT_PROGRAM ", which is not there "
                "(on Debian: apt-get install gnuplot-nox)\n", speaker);
        return -1;
    }
    return 0;
}

/* ---- the child ---- */

static void plot_child(FILE *script, FILE *picture, FILE *said)
{
    dup2(fileno(script), STDIN_FILENO);
    dup2(fileno(picture), STDOUT_FILENO);
    dup2(fileno(said), STDERR_FILENO);
    execlp(PLOT_PROGRAM, PLOT_PROGRAM, "-d", (char*)NULL);
    fprintf(stderr, "it cannot be started: %s\n", strerror(errno));
    fflush(stderr);
    _exit(127);
}

/* Returns 0, or -1 and a line of what it has said. */
static int plot_run(FILE *script, FILE *picture, char *line)
{
    FILE *said = tmpfile();
    int status = -1;
    pid_t pid;

    line[0] = '\0';
    if (said == NULL) {
        snprintf(line, PLOT_LINE_MAX, "%s", strerror(errno));
        return -1;
    }
    fflush(script);
    rewind(script);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        plot_child(script, picture, said);
    }
    while ((pid > 0) && (waitpid(pid, &status, 0) < 0) && (errno == EINTR)) {
    }
    rewind(said);
    while ((line[strspn(line, " \t\n")] == '\0') &&
           (fgets(line, PLOT_LINE_MAX, said) != NULL)) {
    }
    line[strcspn(line, "\n")] = '\0';
    fclose(said);
    return (WIFEXITED(status) && (WEXITSTATUS(status) == 0)) ? 0 : -1;
}

static void plot_begin(const char *path, size_t panels, FILE *script)
{
    fprintf(script, "set encoding utf8\n");
    if (plot_ends_with(path, ".svg")) {
        fprintf(script, "set terminal svg size %d,%zu font 'sans,13' "
                "background '#ffffff'\n", PLOT_WIDTH, 90 + 340 * panels);
    } else {
        fprintf(script, "set terminal pngcairo size %d,%zu font 'sans,11'\n",
                PLOT_WIDTH, 90 + 340 * panels);
    }
    fprintf(script,
            "set grid lc rgb '#dddddd' lt 1\n"
            "set lmargin at screen 0.1\n"
            "set rmargin at screen 0.67\n"
            "set key outside right top Left reverse width 1\n"
            "set border 3\n"
            "set tics nomirror\n"
            "set linetype 1 lc rgb '#0072b2'\n"
            "set linetype 2 lc rgb '#d55e00'\n"
            "set linetype 3 lc rgb '#009e73'\n"
            "set linetype 4 lc rgb '#cc79a7'\n"
            "set linetype 5 lc rgb '#000000'\n"
            "set linetype 6 lc rgb '#56b4e9'\n"
            "set linetype cycle 6\n");
}

int daqiri_plot_draw(const char *path, const char *speaker,
                     void (*draw)(const json_t *report, FILE *script),
                     const json_t *report)
{
    char part[PATH_MAX], line[PLOT_LINE_MAX];
    FILE *script  = tmpfile();
    FILE *picture = (plot_part(path, part) == 0) ? fopen(part, "w") : NULL;
    int ret       = -1;

    if ((script != NULL) && (picture != NULL)) {
        plot_begin(path, 3, script);
        draw(report, script);
        ret = plot_run(script, picture, line);
        if ((ret == 0) && (rename(part, path) != 0)) {
            ret = -1;
        }
    }
    if (ret != 0) {
        fprintf(stderr, "%s: %s cannot be drawn: %s\n", speaker, path,
                ((script == NULL) || (picture == NULL) || (line[0] == '\0')) ?
                strerror(errno) : line);
        unlink(part);
    }
    if (script != NULL) {
        fclose(script);
    }
    if (picture != NULL) {
        fclose(picture);
    }
    return ret;
}

/* ---- for scripts ---- */

int daqiri_plot_is_in(const daqiri_plot_series_t *series, const json_t *row)
{
    return (strcmp(daqiri_report_find_text(row, "transport"),
                   series->transport) == 0) &&
           (strcmp(daqiri_report_find_text(row, "pattern"),
                   series->pattern) == 0) &&
           (json_integer_value(json_object_get(row, "window")) ==
            series->window);
}

size_t daqiri_plot_find_series(const json_t *report,
                               daqiri_plot_series_t *series)
{
    const json_t *rows = json_object_get(report, "rows");
    size_t count       = 0;
    const json_t *row;
    size_t i, k;

    for (i = 0; i < json_array_size(rows); ++i) {
        row = json_array_get(rows, i);
        for (k = 0; (k < count) && !daqiri_plot_is_in(&series[k], row); ++k) {
        }
        if ((k == count) && (count < DAQIRI_PLOT_SERIES_MAX) &&
            json_is_number(json_object_get(row, "gbps"))) {
            series[count++] = (daqiri_plot_series_t){
                daqiri_report_find_text(row, "transport"),
                daqiri_report_find_text(row, "pattern"),
                json_integer_value(json_object_get(row, "window"))
            };
        }
    }
    return count;
}

void daqiri_plot_title(const daqiri_plot_series_t *series, size_t count,
                       size_t i, FILE *script)
{
    int has_windows = 0;
    const char *c;
    size_t k;

    for (k = 0; k < count; ++k) {
        has_windows |= (series[k].window != series[i].window) &&
                       (strcmp(series[k].pattern, series[i].pattern) == 0);
    }
    for (c = series[i].transport; *c != '\0'; ++c) {
        fprintf(script, "%s%c", (*c == '_') ? "\\\\" : "", *c);
    }
    fprintf(script, " %s", series[i].pattern);
    if (has_windows) {
        fprintf(script, " %lld", series[i].window);
    }
}

size_t daqiri_plot_color(const daqiri_plot_series_t *series, size_t i)
{
    size_t color = 1;
    size_t k, j;

    for (k = 0; k < i; ++k) {
        if (strcmp(series[k].transport, series[i].transport) == 0) {
            return daqiri_plot_color(series, k);
        }
        for (j = 0; (j < k) && (strcmp(series[j].transport,
                                       series[k].transport) != 0); ++j) {
        }
        color += (j == k);
    }
    return color;
}

char *daqiri_plot_size(uint64_t size, char *text)
{
    static const char *const units[] = {"", "K", "M", "G"};
    size_t i = 0;

    while ((size >= 1024) && ((size % 1024) == 0) && (i < 3)) {
        size /= 1024;
        ++i;
    }
    snprintf(text, DAQIRI_PLOT_SIZE_MAX, "%llu%s", (unsigned long long)size,
             units[i]);
    return text;
}

void daqiri_plot_sizes(const json_t *report, FILE *script)
{
    const json_t *rows = json_object_get(report, "rows");
    const char *gap    = "";
    json_int_t least   = INT64_MAX;
    json_int_t most    = 0;
    char text[DAQIRI_PLOT_SIZE_MAX];
    json_int_t size;
    size_t i;

    fprintf(script, "set logscale x 2\nset xlabel 'message size, bytes'\n"
            "set xtics (");
    for (i = 0; i < json_array_size(rows); ++i) {
        size = json_integer_value(json_object_get(json_array_get(rows, i),
                                                  "size"));
        fprintf(script, "%s'%s' %lld", gap,
                daqiri_plot_size((uint64_t)size, text), (long long)size);
        gap   = ", ";
        least = (size < least) ? size : least;
        most  = (size > most) ? size : most;
    }
    /* Where the axis ends gnuplot may leave the number out. */
    fprintf(script, ")\nset xrange [%lld * 0.9:%lld * 1.1]\n",
            (long long)least, (long long)most);
}

void daqiri_plot_number(const json_t *row, const char *path, FILE *script)
{
    const json_t *value = daqiri_report_find(row, path);

    if (json_is_number(value)) {
        fprintf(script, " %.9g", json_number_value(value));
    } else {
        fprintf(script, " NaN");
    }
}
