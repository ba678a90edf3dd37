/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/answer.h"

#include "tools/base/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int answer_write_all(const char *text, size_t length)
{
    ssize_t ret;

    for (; length > 0; text += ret, length -= (size_t)ret) {
        ret = write(STDOUT_FILENO, text, length);
        if (ret < 0) {
            if (errno != EINTR) {
                return errno;
            }
            ret = 0;
        }
    }
    return 0;
}

int daqiri_answer_write(const char *kind, json_t *object)
{
    char *text = NULL;
    size_t length;
    FILE *stream;
    int error;

    daqiri_report_text(object, DAQIRI_ANSWER_KEY, kind);
    stream = open_memstream(&text, &length);
    if (stream == NULL) {
        return errno;
    }
    json_dumpf(object, stream, JSON_COMPACT | JSON_REAL_PRECISION(12));
    fputc('\n', stream);
    fclose(stream);
    fflush(stdout);
    error = answer_write_all(text, length);
    free(text);
    return error;
}

char *daqiri_answer_next(char **text_p, json_t **object_p)
{
    char *line = *text_p;
    size_t length;

    *object_p = NULL;
    if ((line == NULL) || (line[0] == '\0')) {
        return NULL;
    }
    length   = strcspn(line, "\n");
    *text_p  = line + length + (line[length] == '\n');
    line[length] = '\0';
    if (line[0] == '{') {
        *object_p = json_loads(line, 0, NULL);
    }
    if ((*object_p != NULL) &&
        !json_is_string(json_object_get(*object_p, DAQIRI_ANSWER_KEY))) {
        json_decref(*object_p);
        *object_p = NULL;
    }
    return line;
}

int daqiri_answer_take(json_t *object, const char *kind)
{
    const char *is = daqiri_report_find_text(object, DAQIRI_ANSWER_KEY);

    if ((is == NULL) || (strcmp(is, kind) != 0)) {
        return 0;
    }
    json_object_del(object, DAQIRI_ANSWER_KEY);
    return 1;
}

json_t *daqiri_answer_find(char *text, const char *kind, char *rest, size_t size)
{
    json_t *found = NULL;
    size_t used   = 0;
    json_t *object;
    char *line;

    if (size > 0) {
        rest[0] = '\0';
    }
    while ((line = daqiri_answer_next(&text, &object)) != NULL) {
        if ((object == NULL) && (line[0] != '\0') && (used < size)) {
            used += (size_t)snprintf(rest + used, size - used, "%s\n", line);
        }
        if ((found == NULL) && daqiri_answer_take(object, kind)) {
            found = json_incref(object);
        }
        json_decref(object);
    }
    return found;
}
