/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What a child of a command tells the process that started it: JSON objects, one a
 * line on stdout. Each has the key "daqiri", whose value says what it is. Any other
 * line is of somebody else, such as UCX's log, which goes to stdout, too. No reader
 * looks into such a line.
 */

#ifndef DAQIRI_ANSWER_H
#define DAQIRI_ANSWER_H

#include "tools/base/failure.h"

#include <jansson.h>
#include <stddef.h>

#define DAQIRI_ANSWER_KEY "daqiri"

/* What it is. */
#define DAQIRI_ANSWER_REPORT  "report"
#define DAQIRI_ANSWER_FAILURE "failure" /* as daqiri_failure_report() has it */
#define DAQIRI_ANSWER_INTERVAL "interval" /* one of interval.h, at once */
#define DAQIRI_ANSWER_STAGE   "stage" /* "name", which may take "limit_s" from now on */
#define DAQIRI_ANSWER_HAND    "hand"  /* to a person: "word" of this side, or "ready" */

/* Sets the key in the object, and writes it with one call. Returns 0, or an errno. */
int daqiri_answer_write(const char *kind, json_t *object);

/* Reads the line at *text_p, and goes on to the next; NULL at the end. If it is an
 * object of that form, *object_p is it, the caller's; else NULL. Returns the line,
 * which ends with a '\0' now. */
char *daqiri_answer_next(char **text_p, json_t **object_p);

/* Whether it is of that kind. If so, the key is taken out. */
int daqiri_answer_take(json_t *object, const char *kind);

/* The first object of that kind in a text, the caller's, or NULL. `rest` has the other
 * lines; with a size of 0 they are not wanted. */
json_t *daqiri_answer_find(char *text, const char *kind, char *rest, size_t size);

#endif
