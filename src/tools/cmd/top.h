/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * `daqiri top`: the interfaces of running jobs, on a screen that is kept current.
 *
 *   files of counters -> table (top_rows.c) -> lines (top_lines.c) -> screen or stdout
 *
 * stats_read.h finds and reads the files, as for `daqiri stats`. The table and the lines
 * need no terminal, and look at no clock. top_screen.c alone knows curses.
 *
 * A counter is current, so its rate is over the time between two reads. A gauge and the
 * row of a peer are as old as the interface's last sample. Their rate is over the time
 * between two samples, and stays until there is another one.
 *
 * One thread.
 */

#ifndef DAQIRI_CMD_TOP_H
#define DAQIRI_CMD_TOP_H

#include "tools/base/stats_read.h"

#include <stddef.h>
#include <stdint.h>

/* ---- the table ---- */

/* What is known of an interface. Several counters may make one of these. */
typedef enum top_value_id {
    TOP_SENT,           /* active messages */
    TOP_RECEIVED,
    TOP_SENT_BYTES,
    TOP_RECEIVED_BYTES,
    TOP_RMA_BYTES,      /* that this end wrote or read */
    TOP_LOST,           /* queue pairs */
    TOP_RECOVERED,
    TOP_WIDENED,        /* windows */
    TOP_RECALLED,
    TOP_RETURNED,       /* credits */
    TOP_SLOTS_GROWN,
    TOP_IDLE_CLOSES,    /* queue pairs */
    TOP_IDLE_REOPENS,
    TOP_QP_WAITS,       /* connections */
    TOP_CONNS,          /* this and what follows are gauges */
    TOP_RX_POSTED,
    TOP_RX_PROMISED,
    TOP_SAMPLED_NS,
    TOP_VALUES
} top_value_id_t;

typedef struct top_value {
    uint64_t now;
    double   per_s; /* < 0: not known */
} top_value_t;

/* A reason for which sends had to wait. */
typedef struct top_wait {
    char        reason[DQ_STATS_NAME_MAX];
    top_value_t value;
} top_wait_t;

typedef struct top_conn {
    dq_stats_peer_t now;
    uint32_t        place;
    double          requests_per_s; /* < 0: not known */
} top_conn_t;

/* More reasons than there are have no place. */
#define TOP_WAITS_MAX 16

typedef struct top_interface {
    uint32_t    pid, serial, port;
    uint64_t    uuid;
    char        device[DQ_STATS_HOST_MAX];
    int         is_alive;
    uint64_t    opened_ns, read_ns;
    top_value_t values[TOP_VALUES];
    top_wait_t  waits[TOP_WAITS_MAX];
    size_t      num_waits;
    double      waits_per_s; /* of all reasons; < 0: not known */
    top_conn_t  *conns;
    size_t      count;
} top_interface_t;

typedef struct top_table {
    top_interface_t *list;
    size_t          count;
} top_table_t;

/* Names of orders, for options and for the screen. */
typedef enum top_order {
    TOP_BY_PID,
    TOP_BY_RATE,
    TOP_BY_WAITS,
    TOP_BY_LOST,
    TOP_ORDERS
} top_order_t;

extern const char *const top_order_names[TOP_ORDERS];

/* Makes the table of these files. Rates are since `before`, which may be empty. Returns
 * 0, or ENOMEM with an empty table. */
int top_table_make(top_table_t *table, const daqiri_stats_files_t *files,
                   const top_table_t *before);
void top_table_free(top_table_t *table);

/* What is equal in that order is by pid. */
void top_table_sort(top_table_t *table, top_order_t order);

/* ---- the lines ---- */

typedef enum top_style {
    TOP_PLAIN,
    TOP_BOLD,   /* something is wrong */
    TOP_HEADER  /* of columns */
} top_style_t;

#define TOP_LINE_MAX 256

typedef struct top_line {
    top_style_t style;
    char        text[TOP_LINE_MAX];
} top_line_t;

typedef struct top_lines {
    top_line_t *list;
    size_t     count;
    size_t     head;  /* so many at first do not scroll */
    int        error; /* ENOMEM: some are missing */
} top_lines_t;

/* What the user has chosen, and what else is in the first lines. */
typedef struct top_view {
    top_order_t order;
    int         is_brief; /* without connections */
    int         is_help;
    int         is_batch; /* there are no keys */
    size_t      offset;   /* first line that is shown below the head */
    double      interval; /* s */
    const char  *host;
    const char  *clock;   /* the time, as text */
    const char  *nothing; /* why the table is empty */
} top_view_t;

/* A screen is at least so large. */
#define TOP_HEIGHT_MIN 8
unsigned top_width_min(void);

/* Makes the lines for so many columns; 0: as many as there are. Nothing in them is a
 * command to a terminal. */
void top_lines_make(top_lines_t *lines, const top_table_t *table,
                    const top_view_t *view, unsigned width);
void top_lines_free(top_lines_t *lines);

/* Keeps the offset within the lines, of which so many fit the screen, and writes into the
 * second line which of them are shown. */
void top_lines_place(top_lines_t *lines, top_view_t *view, size_t height,
                     unsigned width);

/* ---- the screen ---- */

typedef enum top_key {
    TOP_KEY_NONE,  /* it may be time, or the size is another */
    TOP_KEY_OTHER,
    TOP_KEY_GONE,  /* there is no terminal any more */
    TOP_KEY_QUIT,
    TOP_KEY_UP,
    TOP_KEY_DOWN,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_SORT,
    TOP_KEY_BRIEF,
    TOP_KEY_HELP
} top_key_t;

/* What a key changes in the view. A page has so many lines. */
void top_view_press(top_view_t *view, top_key_t key, size_t page);

/* Returns 0, or an exit status after a sentence on stderr. */
int top_screen_open(const char *speaker);
/* Restores the terminal. */
void top_screen_close(void);
void top_screen_size(size_t *height, unsigned *width);
void top_screen_show(const top_lines_t *lines, size_t offset);
/* Waits for a key, at most until this time (daqiri_now_ns()), a signal, or another
 * size. */
top_key_t top_screen_wait(uint64_t until_ns);

#endif
