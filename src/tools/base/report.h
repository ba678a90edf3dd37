/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What a subcommand has to say, once, as JSON (jansson): an object that begins
 * with "command" and "version". The table for people and the CSV are made of
 * the same object by lists of columns, so the three cannot disagree.
 *
 * libsmartcols lays the tables out, for the width of the terminal if there is one.
 *
 * A section is a table with a row for each element of an array, or a list with
 * a line for each column of one object. Keys are paths into the row:
 * "round_trip.p50_us". A value that is missing or null is shown as "-" and left
 * empty in CSV. CSV shows the first section only: one table a file.
 *
 * Nothing here is for a hot path, and threads are not expected. Running out of
 * memory ends the program.
 */

#ifndef DAQIRI_REPORT_H
#define DAQIRI_REPORT_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

typedef enum daqiri_format {
    DAQIRI_FORMAT_TABLE,
    DAQIRI_FORMAT_JSON,
    DAQIRI_FORMAT_CSV
} daqiri_format_t;

/* How a person reads the value. */
typedef enum daqiri_unit {
    DAQIRI_UNIT_NONE,  /* text, numbers and yes or no, as they are */
    DAQIRI_UNIT_SIZE,  /* bytes: 64 KiB */
    DAQIRI_UNIT_GBPS,  /* Gb/s, 10^9 bits a second */
    DAQIRI_UNIT_RATE,  /* a second */
    DAQIRI_UNIT_USEC,
    DAQIRI_UNIT_SEC,
    DAQIRI_UNIT_PERCENT
} daqiri_unit_t;

typedef struct daqiri_column {
    const char    *key;
    const char    *title;
    daqiri_unit_t unit;
} daqiri_column_t;

typedef struct daqiri_section {
    const char            *key;   /* in the report; NULL: the report itself */
    const char            *title; /* line above it, or NULL */
    const daqiri_column_t *columns;
    size_t                count;
} daqiri_section_t;

#define DAQIRI_COLUMNS(_columns) \
    (_columns), (sizeof(_columns) / sizeof((_columns)[0]))

/* {"command": ..., "version": ...}; the caller owns it. */
json_t *daqiri_report_new(const char *command);

/* json_object_set_new() that cannot fail silently. Takes the value. */
void daqiri_report_set(json_t *object, const char *key, json_t *value);

/* Shorthands of the same. NULL texts become null. */
void daqiri_report_text(json_t *object, const char *key, const char *text);
void daqiri_report_int(json_t *object, const char *key, long long value);
void daqiri_report_real(json_t *object, const char *key, double value);
void daqiri_report_bool(json_t *object, const char *key, int value);

/* Text as in sprintf. */
void daqiri_report_format(json_t *object, const char *key, const char *format,
                          ...) __attribute__((format(printf, 3, 4)));

/* Puts an array there, or the one that is there already; not owned by the
 * caller. */
json_t *daqiri_report_array(json_t *object, const char *key);

/* Appends a new object to it; not owned by the caller. */
json_t *daqiri_report_row(json_t *array);

/* The value at a path, or NULL. Not owned by the caller. */
json_t *daqiri_report_find(const json_t *object, const char *path);

/* Its text, or NULL when there is none. */
const char *daqiri_report_find_text(const json_t *object, const char *path);

/* From now on a table or CSV has these columns only, in this order: keys with commas
 * between. A section that has none of them is left out. Kept, not copied. */
int daqiri_report_has_only(void);
void daqiri_report_only(const char *keys);

/* Which of those keys no section has, or NULL. */
const char *daqiri_report_unknown(const daqiri_section_t *sections, size_t count);

/* How many digits a person reads behind the point, except of a rate: none. */
int daqiri_report_digits(double value);

/* Writes all of it. Returns 0, or an errno when the stream does not take it. */
int daqiri_report_print(const json_t *report, daqiri_format_t format,
                        const daqiri_section_t *sections, size_t count,
                        FILE *stream);

#endif
