/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/report.h"

#include "tools/base/parse.h"

#include <errno.h>
#include <inttypes.h>
#include <libsmartcols.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPORT_CELL_MAX 256

#define REPORT_SEPARATOR "  "

/* A last column that is narrower than that is left to the library. */
#define REPORT_WRAP_LEAST 8

/* Of a section, and of --columns. */
#define REPORT_COLUMNS_MAX 64

/* ---- building ---- */

static json_t *report_own(json_t *value)
{
    if (value == NULL) {
        fprintf(stderr, "daqiri: no memory\n");
        exit(1);
    }
    return value;
}

json_t *daqiri_report_new(const char *command)
{
    json_t *report = report_own(json_object());

    daqiri_report_text(report, "command", command);
    daqiri_report_text(report, "version", DAQIRI_VERSION);
    return report;
}

void daqiri_report_set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, report_own(value)) != 0) {
        report_own(NULL);
    }
}

/* Whether a terminal may take these bytes for a command: ASCII's controls, but
 * ends of lines and tabs, and in UTF-8 those of ISO 6429. */
static int report_is_control(const char *c)
{
    unsigned char byte = (unsigned char)*c, next = (unsigned char)c[1];

    return ((byte < ' ') && (byte != '\n') && (byte != '\t')) ||
           (byte == 0x7f) ||
           ((byte == 0xc2) && (next >= 0x80) && (next <= 0x9f));
}

/* A name from the kernel, a file or a peer may be anything: what is no UTF-8 has
 * no place in JSON, and commands to a terminal have none anywhere. They are
 * shown as question marks. */
static json_t *report_string(const char *text)
{
    char *copy = strdup(text);
    json_t *value;
    char *c;

    for (c = copy; (c != NULL) && (*c != '\0'); ++c) {
        if (report_is_control(c)) {
            if ((unsigned char)*c == 0xc2) {
                *c++ = '?';
            }
            *c = '?';
        }
    }
    value = (copy != NULL) ? json_string(copy) : NULL;
    for (c = copy; (value == NULL) && (c != NULL) && (*c != '\0'); ++c) {
        *c = ((unsigned char)*c >= 0x80) ? '?' : *c;
    }
    if ((value == NULL) && (copy != NULL)) {
        value = json_string(copy);
    }
    free(copy);
    return value;
}

void daqiri_report_text(json_t *object, const char *key, const char *text)
{
    daqiri_report_set(object, key,
                      (text != NULL) ? report_string(text) : json_null());
}

void daqiri_report_int(json_t *object, const char *key, long long value)
{
    daqiri_report_set(object, key, json_integer(value));
}

void daqiri_report_real(json_t *object, const char *key, double value)
{
    daqiri_report_set(object, key, json_real(value));
}

void daqiri_report_bool(json_t *object, const char *key, int value)
{
    daqiri_report_set(object, key, json_boolean(value));
}

void daqiri_report_format(json_t *object, const char *key, const char *format,
                          ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    daqiri_report_text(object, key, text);
}

json_t *daqiri_report_array(json_t *object, const char *key)
{
    json_t *array = json_object_get(object, key);

    if (!json_is_array(array)) {
        daqiri_report_set(object, key, json_array());
        array = json_object_get(object, key);
    }
    return array;
}

json_t *daqiri_report_row(json_t *array)
{
    json_t *row = report_own(json_object());

    if (json_array_append_new(array, row) != 0) {
        report_own(NULL);
    }
    return row;
}

json_t *daqiri_report_find(const json_t *object, const char *path)
{
    const json_t *value = object;
    char key[64];
    size_t length;

    while (value != NULL) {
        length = strcspn(path, ".");
        snprintf(key, sizeof(key), "%.*s", (int)length, path);
        value = json_object_get(value, key);
        if (path[length] == '\0') {
            break;
        }
        path += length + 1;
    }
    return json_is_null(value) ? NULL : (json_t*)value;
}

const char *daqiri_report_find_text(const json_t *object, const char *path)
{
    return json_string_value(daqiri_report_find(object, path));
}

/* ---- one value ---- */

/* Arrays of texts are shown with commas between. */
static void report_list(const json_t *value, char *text, size_t size)
{
    const char *word;
    size_t used = 0;
    size_t i;

    text[0] = '\0';
    for (i = 0; (i < json_array_size(value)) && (used < size); ++i) {
        word  = json_string_value(json_array_get(value, i));
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 (i > 0) ? ", " : "",
                                 (word != NULL) ? word : "?");
    }
}

static void report_plain(const json_t *value, char *text, size_t size)
{
    switch ((value != NULL) ? json_typeof(value) : JSON_NULL) {
    case JSON_STRING:
        snprintf(text, size, "%s", json_string_value(value));
        break;
    case JSON_INTEGER:
        snprintf(text, size, "%" JSON_INTEGER_FORMAT,
                 json_integer_value(value));
        break;
    case JSON_REAL:
        snprintf(text, size, "%.10g", json_real_value(value));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        snprintf(text, size, "%s", json_is_true(value) ? "yes" : "no");
        break;
    case JSON_ARRAY:
        report_list(value, text, size);
        break;
    default:
        text[0] = '\0';
    }
}

int daqiri_report_digits(double value)
{
    return (value < 10) ? 3 : (value < 100) ? 2 : (value < 1000) ? 1 : 0;
}

/* `with_unit`: behind the value, where there is no title that has it. */
static void report_human(const json_t *value, daqiri_unit_t unit,
                         int with_unit, char *text, size_t size)
{
    static const char *const names[] = {
        [DAQIRI_UNIT_GBPS] = " Gb/s", [DAQIRI_UNIT_RATE] = " /s",
        [DAQIRI_UNIT_USEC] = " us",   [DAQIRI_UNIT_SEC] = " s",
        [DAQIRI_UNIT_PERCENT] = " %"
    };
    double number;

    if (!json_is_number(value) || (unit == DAQIRI_UNIT_NONE)) {
        report_plain(value, text, size);
        if (text[0] == '\0') {
            snprintf(text, size, "-");
        }
        return;
    }
    if (unit == DAQIRI_UNIT_SIZE) {
        daqiri_size_text((uint64_t)json_number_value(value), text, size);
        return;
    }
    number = json_number_value(value);
    snprintf(text, size, "%.*f%s",
             (unit == DAQIRI_UNIT_RATE) ? 0 : daqiri_report_digits(number), number,
             with_unit ? names[unit] : "");
}

/* ---- sections ---- */

static const json_t *report_section(const json_t *report,
                                    const daqiri_section_t *section)
{
    return (section->key == NULL) ? report :
                                    daqiri_report_find(report, section->key);
}

static const char *report_only;

void daqiri_report_only(const char *keys)
{
    report_only = keys;
}

int daqiri_report_has_only(void)
{
    return report_only != NULL;
}

static const daqiri_column_t *report_find_column(const daqiri_section_t *section,
                                                 const char *key, size_t length)
{
    size_t c;

    for (c = 0; c < section->count; ++c) {
        if ((strlen(section->columns[c].key) == length) &&
            (memcmp(section->columns[c].key, key, length) == 0)) {
            return &section->columns[c];
        }
    }
    return NULL;
}

const char *daqiri_report_unknown(const daqiri_section_t *sections, size_t count)
{
    static char unknown[64];
    const char *key = report_only;
    size_t length, i;

    while (key != NULL) {
        length = strcspn(key, ",");
        for (i = 0; (i < count) &&
                    (report_find_column(&sections[i], key, length) == NULL); ++i) {
        }
        if (i == count) {
            snprintf(unknown, sizeof(unknown), "%.*s", (int)length, key);
            return unknown;
        }
        key = (key[length] == ',') ? key + length + 1 : NULL;
    }
    return NULL;
}

/* The columns that are shown, as many as the section has at most. Returns how many. */
static size_t report_choose(const daqiri_section_t *section,
                            const daqiri_column_t **chosen)
{
    const char *key = report_only;
    size_t count    = 0;
    size_t length;

    for (; (key == NULL) && (count < section->count); ++count) {
        chosen[count] = &section->columns[count];
    }
    while (key != NULL) {
        length        = strcspn(key, ",");
        chosen[count] = report_find_column(section, key, length);
        count        += (chosen[count] != NULL) && (count + 1 < REPORT_COLUMNS_MAX);
        key           = (key[length] == ',') ? key + length + 1 : NULL;
    }
    return count;
}

static void *report_own_table(void *table)
{
    report_own((table != NULL) ? json_true() : NULL);
    return table;
}

static struct libscols_table *report_new_table(FILE *stream)
{
    struct libscols_table *table = report_own_table(scols_new_table());

    scols_table_set_stream(table, stream);
    scols_table_set_column_separator(table, REPORT_SEPARATOR);
    if (stream != stdout) {
        scols_table_set_termforce(table, SCOLS_TERMFORCE_NEVER);
    }
    return table;
}

/* Numbers end, texts begin at the same place. Of a column only the last one, if it is a
 * text, may need several lines. */
static void report_add_column(struct libscols_table *table, const char *title,
                              int is_text, int is_last)
{
    report_own_table(scols_table_new_column(table, title, 0, !is_text ?
                                            SCOLS_FL_RIGHT : is_last ?
                                            SCOLS_FL_WRAP : 0));
}

static void report_set_cell(struct libscols_line *line, size_t column,
                            const char *text)
{
    if (scols_line_set_data(line, column, text) != 0) {
        report_own(NULL);
    }
}

/* ---- lines of the last column, which the library would break within words ---- */

/* Columns of a terminal, of so many bytes of UTF-8. */
static size_t report_width(const char *text, size_t bytes)
{
    size_t width = 0;
    size_t i;

    for (i = 0; i < bytes; ++i) {
        width += ((unsigned char)text[i] & 0xc0) != 0x80;
    }
    return width;
}

/* Bytes of the text that one line takes: up to a space, or, of a word that is longer than
 * the line, what fits. */
static size_t report_line_length(const char *text, size_t width)
{
    const size_t all = strlen(text);
    size_t length    = 0;
    size_t next;

    if (report_width(text, all) <= width) {
        return all;
    }
    for (next = strcspn(text, " "); report_width(text, next) <= width;
         next += 1 + strcspn(text + next + 1, " ")) {
        length = next;
    }
    while ((length == 0) || (text[length] != ' ')) {
        do {
            ++length;
        } while (((unsigned char)text[length] & 0xc0) == 0x80);
        if (report_width(text, length) == width) {
            break;
        }
    }
    return length;
}

static void report_wrap_cell(struct libscols_line *line, size_t column, size_t width)
{
    const char *text = scols_cell_get_data(scols_line_get_cell(line, column));
    char wrapped[8 * REPORT_CELL_MAX];
    size_t used = 0;
    size_t length;

    while ((text != NULL) && (*text != '\0') && (used < sizeof(wrapped))) {
        length = report_line_length(text, width);
        used  += (size_t)snprintf(wrapped + used, sizeof(wrapped) - used, "%s%.*s",
                                  (used > 0) ? "\n" : "", (int)length, text);
        text  += length + (text[length] == ' ');
    }
    if (used > 0) {
        report_set_cell(line, column, wrapped);
    }
}

static size_t report_title_width(struct libscols_table *table, size_t c)
{
    const char *title = scols_column_get_name(scols_table_get_column(table, c));

    return (title != NULL) ? report_width(title, strlen(title)) : 0;
}

/* What the columns before the last take. */
static size_t report_width_before(struct libscols_table *table, size_t last)
{
    const size_t lines = scols_table_get_nlines(table);
    size_t sum         = 0;
    const char *text;
    size_t width, least, c, i;

    for (c = 0; c < last; ++c) {
        least = scols_table_is_noheadings(table) ? 0 : report_title_width(table, c);
        for (i = 0; i < lines; ++i) {
            text  = scols_cell_get_data(
                scols_line_get_cell(scols_table_get_line(table, i), c));
            width = (text != NULL) ? report_width(text, strlen(text)) : 0;
            least = (width > least) ? width : least;
        }
        sum += least + strlen(REPORT_SEPARATOR);
    }
    return sum;
}

static void report_wrap(struct libscols_table *table)
{
    const size_t last              = scols_table_get_ncols(table) - 1;
    struct libscols_column *column = scols_table_get_column(table, last);
    const size_t all               = scols_table_get_termwidth(table);
    size_t before, i;

    before = report_width_before(table, last);
    if (!scols_column_is_wrap(column) || (all < before + REPORT_WRAP_LEAST)) {
        return;
    }
    for (i = 0; i < scols_table_get_nlines(table); ++i) {
        report_wrap_cell(scols_table_get_line(table, i), last, all - before);
    }
    if ((scols_column_set_safechars(column, "\n") != 0) ||
        (scols_column_set_wrapfunc(column, scols_wrapnl_chunksize,
                                   scols_wrapnl_nextchunk, NULL) != 0)) {
        report_own(NULL);
    }
}

static void report_print_table(struct libscols_table *table, FILE *stream)
{
    if ((stream == stdout) && isatty(STDOUT_FILENO) &&
        (scols_table_get_ncols(table) > 0)) {
        report_wrap(table);
    }
    scols_print_table(table);
    scols_unref_table(table);
}

/* Whether there is any value in it, and whether one of them is a text. */
static int report_look(const json_t *rows, const daqiri_column_t *column,
                       int *is_text)
{
    int is_there = 0;
    const json_t *value;
    size_t i;

    *is_text = 0;
    for (i = 0; i < json_array_size(rows); ++i) {
        value     = daqiri_report_find(json_array_get(rows, i), column->key);
        is_there |= (value != NULL);
        *is_text |= (value != NULL) && !json_is_number(value);
    }
    return is_there;
}

/* Titles carry the unit. A column in which there is nothing is left out. */
static void report_rows(const json_t *rows, const daqiri_column_t **columns,
                        size_t count, FILE *stream)
{
    struct libscols_table *table = report_new_table(stream);
    char cell[REPORT_CELL_MAX];
    struct libscols_line *line;
    int is_text[REPORT_COLUMNS_MAX];
    size_t shown = 0;
    size_t i, c;

    for (c = 0; c < count; ++c) {
        if (report_look(rows, columns[c], &is_text[shown])) {
            columns[shown++] = columns[c];
        }
    }
    for (c = 0; c < shown; ++c) {
        report_add_column(table, columns[c]->title, is_text[c], c + 1 == shown);
    }
    for (i = 0; i < json_array_size(rows); ++i) {
        line = report_own_table(scols_table_new_line(table, NULL));
        for (c = 0; c < shown; ++c) {
            report_human(daqiri_report_find(json_array_get(rows, i), columns[c]->key),
                         columns[c]->unit, 0, cell, sizeof(cell));
            report_set_cell(line, c, cell);
        }
    }
    report_print_table(table, stream);
}

/* One line for each value that there is. */
static void report_fields(const json_t *object, const daqiri_column_t **columns,
                          size_t count, FILE *stream)
{
    struct libscols_table *table = report_new_table(stream);
    char cell[4 * REPORT_CELL_MAX];
    struct libscols_line *line;
    const json_t *value;
    size_t c;

    scols_table_enable_noheadings(table, 1);
    report_add_column(table, "name", 1, 0);
    report_add_column(table, "value", 1, 1);
    for (c = 0; c < count; ++c) {
        value = daqiri_report_find(object, columns[c]->key);
        if (value != NULL) {
            line = report_own_table(scols_table_new_line(table, NULL));
            report_human(value, columns[c]->unit, 1, cell, sizeof(cell));
            report_set_cell(line, 0, columns[c]->title);
            report_set_cell(line, 1, cell);
        }
    }
    report_print_table(table, stream);
}

static void report_table(const json_t *report, const daqiri_section_t *section,
                         FILE *stream)
{
    const json_t *value = report_section(report, section);
    const daqiri_column_t *columns[REPORT_COLUMNS_MAX];
    size_t count;

    count = report_choose(section, columns);
    if ((value == NULL) || (count == 0) ||
        (json_is_array(value) && (json_array_size(value) == 0))) {
        return;
    }
    if (section->title != NULL) {
        fprintf(stream, "%s\n", section->title);
    }
    if (json_is_array(value)) {
        report_rows(value, columns, count, stream);
    } else {
        report_fields(value, columns, count, stream);
    }
}

/* As RFC 4180 has it, with lines that end like those of all other programs. */
static void report_csv_cell(const char *text, FILE *stream)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, stream);
        return;
    }
    fputc('"', stream);
    for (; *text != '\0'; ++text) {
        if (*text == '"') {
            fputc('"', stream);
        }
        fputc(*text, stream);
    }
    fputc('"', stream);
}

static void report_csv_row(const json_t *row, const daqiri_column_t **columns,
                           size_t count, FILE *stream)
{
    char cell[4 * REPORT_CELL_MAX];
    size_t c;

    for (c = 0; c < count; ++c) {
        if (c > 0) {
            fputc(',', stream);
        }
        report_plain(daqiri_report_find(row, columns[c]->key), cell, sizeof(cell));
        report_csv_cell(cell, stream);
    }
    fputc('\n', stream);
}

static void report_csv(const json_t *report, const daqiri_section_t *section,
                       FILE *stream)
{
    const json_t *value = report_section(report, section);
    const daqiri_column_t *columns[REPORT_COLUMNS_MAX];
    size_t count = report_choose(section, columns);
    size_t i;

    for (i = 0; i < count; ++i) {
        fprintf(stream, "%s%s", (i > 0) ? "," : "", columns[i]->key);
    }
    fputc('\n', stream);
    if (!json_is_array(value)) {
        report_csv_row(value, columns, count, stream);
        return;
    }
    for (i = 0; i < json_array_size(value); ++i) {
        report_csv_row(json_array_get(value, i), columns, count, stream);
    }
}

int daqiri_report_print(const json_t *report, daqiri_format_t format,
                        const daqiri_section_t *sections, size_t count,
                        FILE *stream)
{
    size_t i;

    errno = 0;
    switch (format) {
    case DAQIRI_FORMAT_JSON:
        json_dumpf(report, stream, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
        fputc('\n', stream);
        break;
    case DAQIRI_FORMAT_CSV:
        report_csv(report, &sections[0], stream);
        break;
    case DAQIRI_FORMAT_TABLE:
        for (i = 0; i < count; ++i) {
            report_table(report, &sections[i], stream);
        }
        break;
    }
    if ((fflush(stream) != 0) || ferror(stream)) {
        return (errno != 0) ? errno : EIO;
    }
    return 0;
}
