/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * `daqiri top`: the interfaces of running jobs, on a screen that is kept current, or in
 * lines.
 */

#include "tools/cmd/top.h"

#include "tools/base/args.h"
#include "tools/base/clock.h"
#include "tools/base/stop.h"
#include "tools/cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum {
    TOP_INTERVAL = DAQIRI_ARGS_OWN,
    TOP_COUNT,
    TOP_SORT,
    TOP_USER,
    TOP_BATCH
};

typedef struct top_opts {
    const char *speaker;
    uint32_t   uid;
    double     interval; /* s */
    uint64_t   count;    /* of screens; 0: until the user quits */
    top_order_t order;
    int        is_batch;
} top_opts_t;

typedef struct top {
    const top_opts_t *opts;
    top_table_t      table;
    top_view_t       view;
    char             host[DQ_STATS_HOST_MAX];
    char             clock[16];
    char             nothing[DAQIRI_STATS_TEXT_MAX];
} top_t;

static const struct argp_option top_options[] = {
    {"interval", TOP_INTERVAL, "TIME", 0, "Look again after TIME (2s)"},
    {"count", TOP_COUNT, "N", 0, "End after so many times"},
    {"sort", TOP_SORT, "ORDER", 0, "By pid, rate, waits or lost (pid)"},
    {"user", TOP_USER, "USER", 0,
     "Processes of this user (name or number); for root"},
    {"batch", TOP_BATCH, NULL, 0, "Print lines; needs no terminal"},
    {NULL}
};

static error_t top_parse(int key, char *arg, struct argp_state *state)
{
    top_opts_t *opts = state->input;

    switch (key) {
    case TOP_INTERVAL:
        opts->interval = daqiri_args_interval(state, arg);
        return 0;
    case TOP_COUNT:
        opts->count = daqiri_args_count(state, "count", arg, 1, 1u << 30);
        return 0;
    case TOP_SORT:
        opts->order = (top_order_t)daqiri_args_word(state, "sort", arg,
                                                    top_order_names, TOP_ORDERS);
        return 0;
    case TOP_USER:
        opts->uid = daqiri_args_user(state, arg);
        return 0;
    case TOP_BATCH:
        opts->is_batch = 1;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child top_children[] = {
    {&daqiri_args_help}, {NULL}
};

static const struct argp top_argp = {
    top_options, top_parse, NULL,
    "Shows the interfaces and connections of running jobs on a screen that is kept "
    "current. Keys: q quits, h lists the others.\v"
    "Exit status: 0; 1 there is no terminal, or the counters cannot be read; 2 usage "
    "error.",
    top_children
};

/* ---- one look ---- */

static void top_note_time(top_t *top)
{
    time_t now = time(NULL);
    struct tm local;

    if ((localtime_r(&now, &local) == NULL) ||
        (strftime(top->clock, sizeof(top->clock), "%H:%M:%S", &local) == 0)) {
        top->clock[0] = '\0';
    }
}

/* Returns 0 or an errno. What was there before is kept if it fails. */
static int top_look(top_t *top)
{
    daqiri_stats_files_t files;
    daqiri_stats_rest_t rest;
    top_table_t table;
    int error;

    error = daqiri_stats_find_all(top->opts->uid, 0, &files, &rest);
    daqiri_stats_explain(top->nothing, sizeof(top->nothing), top->opts->uid, 0, error,
                         &rest);
    if (error == 0) {
        error = top_table_make(&table, &files, &top->table);
    }
    daqiri_stats_close_all(&files);
    if (error == 0) {
        top_table_free(&top->table);
        top->table = table;
        top_note_time(top);
    }
    return error;
}

static int top_fail(const top_t *top, int error)
{
    fprintf(stderr, "%s: %s\n", top->opts->speaker,
            (error == ENOMEM) ? "no memory" : top->nothing);
    return DAQIRI_EXIT_FAILED;
}

/* ---- lines ---- */

/* Of the terminal; 0 if there is none. */
static unsigned top_batch_width(void)
{
    struct winsize size;

    return (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) ? size.ws_col : 0;
}

static int top_print(top_t *top, int is_first)
{
    top_lines_t lines;
    int error, length;
    size_t i;

    top_table_sort(&top->table, top->view.order);
    top_lines_make(&lines, &top->table, &top->view, top_batch_width());
    error = lines.error;
    for (i = 0; (error == 0) && (i < lines.count); ++i) {
        for (length = (int)strlen(lines.list[i].text);
             (length > 0) && (lines.list[i].text[length - 1] == ' '); --length) {
        }
        printf("%s%.*s\n", ((i == 0) && !is_first) ? "\n" : "", length,
               lines.list[i].text);
    }
    top_lines_free(&lines);
    if ((fflush(stdout) != 0) || ferror(stdout)) {
        error = (errno != 0) ? errno : EIO;
        snprintf(top->nothing, sizeof(top->nothing), "the lines cannot be written: %s",
                 strerror(error));
    }
    return error;
}

/* Rates need two looks, so the first lines come after one interval. */
static int top_batch(top_t *top)
{
    uint64_t printed = 0;
    int error        = top_look(top);

    while ((error == 0) && !daqiri_stop_asked() &&
           ((top->opts->count == 0) || (printed < top->opts->count))) {
        daqiri_stop_pause(top->opts->interval);
        if (daqiri_stop_asked()) {
            break;
        }
        error = top_look(top);
        error = (error != 0) ? error : top_print(top, printed == 0);
        ++printed;
    }
    return (error != 0) ? top_fail(top, error) : DAQIRI_EXIT_OK;
}

/* ---- the screen ---- */

/* Returns how many lines fit below the head, 0 if there is no memory. */
static size_t top_draw(top_t *top)
{
    top_lines_t lines;
    size_t height, page;
    unsigned width;

    top_screen_size(&height, &width);
    top_table_sort(&top->table, top->view.order);
    top_lines_make(&lines, &top->table, &top->view, width);
    top_lines_place(&lines, &top->view, height, width);
    page = (lines.error != 0) ? 0 :
           (height > lines.head) ? height - lines.head : 1;
    top_screen_show(&lines, top->view.offset);
    top_lines_free(&lines);
    return page;
}

/* Until it is time for another look. Returns 0, or an errno with *is_over_p unset. */
static int top_attend(top_t *top, uint64_t until_ns, int *is_over_p)
{
    top_key_t key = TOP_KEY_NONE;
    size_t page;

    do {
        page = top_draw(top);
        if (page == 0) {
            return ENOMEM;
        }
        key = top_screen_wait(until_ns);
        if (key == TOP_KEY_GONE) {
            snprintf(top->nothing, sizeof(top->nothing), "the terminal has gone");
            return EIO;
        }
        top_view_press(&top->view, key, page);
        *is_over_p = (key == TOP_KEY_QUIT) || daqiri_stop_asked();
    } while (!*is_over_p && (daqiri_now_ns() < until_ns));
    return 0;
}

static int top_screen(top_t *top)
{
    uint64_t next_ns = daqiri_now_ns();
    uint64_t looks   = 0;
    int is_over      = 0;
    int error        = top_look(top);
    int status;

    if (error != 0) {
        return top_fail(top, error);
    }
    status = top_screen_open(top->opts->speaker);
    if (status != 0) {
        return status;
    }
    while ((error == 0) && !is_over) {
        next_ns += (uint64_t)(top->opts->interval * 1e9);
        error    = top_attend(top, next_ns, &is_over);
        ++looks;
        is_over = is_over || (looks == top->opts->count);
        error   = ((error != 0) || is_over) ? error : top_look(top);
    }
    top_screen_close();
    return (error != 0) ? top_fail(top, error) : DAQIRI_EXIT_OK;
}

int daqiri_top(int argc, char **argv)
{
    top_opts_t opts = {.speaker = argv[0], .uid = geteuid(), .interval = 2};
    top_t top       = {.opts = &opts};
    struct utsname name;
    int status;

    daqiri_args_parse(&top_argp, argc, argv, &opts);
    if (daqiri_stats_is_denied(opts.speaker, opts.uid)) {
        return DAQIRI_EXIT_FAILED;
    }
    if (uname(&name) == 0) {
        snprintf(top.host, sizeof(top.host), "%.*s", DQ_STATS_HOST_MAX - 1,
                 name.nodename);
    }
    top.view = (top_view_t){
        .order    = opts.order,
        .is_batch = opts.is_batch,
        .interval = opts.interval,
        .host     = top.host,
        .clock    = top.clock,
        .nothing  = top.nothing
    };
    daqiri_stop_catch();
    status = opts.is_batch ? top_batch(&top) : top_screen(&top);
    top_table_free(&top.table);
    return status;
}
