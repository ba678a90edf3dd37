/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The counters of running interfaces (dq_stats.h), found and read. Nobody is
 * asked and nobody notices.
 *
 * Anybody may make files there: one whose name or owner is of another user than
 * the one that is asked for is not opened, or not read. A file is read into
 * memory, once: whatever is done to it later, what has been checked stays.
 */
#ifndef DAQIRI_STATS_READ_H
#define DAQIRI_STATS_READ_H

#include "dq/dq_stats.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

typedef struct daqiri_stats_file {
    uint32_t pid;
    uint32_t serial;
    int      fd;
    void     *copy;      /* of the file, as it was when it was found */
    uint64_t read_ns;    /* when that was */
    const dq_stats_header_t *header; /* in the copy */
    uint64_t *before;    /* values at the last report, or NULL */
    uint64_t before_ns;
} daqiri_stats_file_t;

typedef struct daqiri_stats_files {
    daqiri_stats_file_t *list; /* by pid and serial */
    size_t count;
} daqiri_stats_files_t;

/* What could not be taken. */
typedef struct daqiri_stats_rest {
    unsigned unreadable; /* of the user: no such file, or of another layout */
    unsigned foreign;    /* of other users */
    uint32_t foreign_uid; /* of one of those */
} daqiri_stats_rest_t;

/* Finds and reads the files of this user, of this process or of all (pid 0).
 * Returns 0 or an errno; no file is not an error. */
int daqiri_stats_find_all(uint32_t uid, uint32_t pid,
                          daqiri_stats_files_t *files,
                          daqiri_stats_rest_t *rest);
void daqiri_stats_close_all(daqiri_stats_files_t *files);

/* Says on stderr, and returns 1, if the caller may not see what this user has. */
int daqiri_stats_is_denied(const char *speaker, uint32_t uid);

/* Why daqiri_stats_find_all() has found nothing, or has failed; no full stop. Returns
 * text. */
#define DAQIRI_STATS_TEXT_MAX 256
const char *daqiri_stats_explain(char *text, size_t size, uint32_t uid, uint32_t pid,
                                 int error, const daqiri_stats_rest_t *rest);

/* Whether the process that writes it still lives. */
int daqiri_stats_is_alive(const daqiri_stats_file_t *file);

/* A row: what it is, "values", "peers" and "notes"; rates since the last call
 * for this file. With is_all, values that are zero, too. */
json_t *daqiri_stats_report(daqiri_stats_file_t *file, int is_all);

#endif
