/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/cells/cells.h"
#include "tools/cells/plot.h"
#include "tools/peer/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELLS_WINDOW_MAX (1u << 20)

void daqiri_cells_opts_init(daqiri_cells_opts_t *opts, const char *speaker)
{
    memset(opts, 0, sizeof(*opts));
    opts->speaker      = speaker;
    opts->device       = "auto";
    opts->windows[0]   = 64;
    opts->window_count = 1;
    opts->repeats      = 3;
    opts->patience     = 5;
    opts->verbs.gid_index = -1;
    opts->collapse     = 50;
    opts->rate         = 10;
    opts->pace         = 1;
}

/* ---- lists ---- */

size_t daqiri_cells_list(struct argp_state *state, const char *name,
                         const char *text,
                         void (*take)(struct argp_state *state,
                                      const char *name, const char *word,
                                      size_t i))
{
    char word[64];
    size_t count = 0;
    size_t length;

    for (;;) {
        length = strcspn(text, ",");
        if ((length == 0) || (length >= sizeof(word))) {
            argp_error(state, "--%s: it is a list with commas between", name);
        }
        if (count == DAQIRI_CELLS_LIST_MAX) {
            argp_error(state, "--%s: it has %d words at most", name,
                       DAQIRI_CELLS_LIST_MAX);
        }
        snprintf(word, sizeof(word), "%.*s", (int)length, text);
        take(state, name, word, count);
        ++count;
        if (text[length] == '\0') {
            return count;
        }
        text += length + 1;
    }
}

void daqiri_cells_need_new(struct argp_state *state, const char *name,
                           const char *word, const void *values, size_t size,
                           size_t i)
{
    const char *value = (const char*)values + i * size;
    size_t k;

    for (k = 0; k < i; ++k) {
        if (memcmp((const char*)values + k * size, value, size) == 0) {
            argp_error(state, "--%s %s: it is there twice", name, word);
        }
    }
}

/* It becomes a word of a command, a file and a picture. */
static void cells_take_transport(struct argp_state *state, const char *name,
                                 const char *word, size_t i)
{
    daqiri_cells_opts_t *opts = state->input;

    if ((strlen(word) >= DAQIRI_CELLS_NAME_MAX) ||
        (word[strspn(word, DAQIRI_PEER_TRANSPORT_LETTERS)] != '\0')) {
        argp_error(state, "--%s %s: it is verbs, tcp, or a transport of UCX",
                   name, word);
    }
    memset(opts->transports[i], 0, DAQIRI_CELLS_NAME_MAX);
    snprintf(opts->transports[i], DAQIRI_CELLS_NAME_MAX, "%s", word);
    daqiri_cells_need_new(state, name, word, opts->transports,
                          DAQIRI_CELLS_NAME_MAX, i);
}

static void cells_take_size(struct argp_state *state, const char *name,
                            const char *word, size_t i)
{
    daqiri_cells_opts_t *opts = state->input;
    size_t size = daqiri_args_size(state, name, word, DAQIRI_CELLS_SIZE_MIN,
                                   DAQIRI_CELLS_SIZE_MAX);

    for (; (i > 0) && (opts->sizes[i - 1] > size); --i) {
        opts->sizes[i] = opts->sizes[i - 1];
    }
    if ((i > 0) && (opts->sizes[i - 1] == size)) {
        argp_error(state, "--%s %s: it is there twice", name, word);
    }
    opts->sizes[i] = size;
}

static void cells_take_window(struct argp_state *state, const char *name,
                              const char *word, size_t i)
{
    daqiri_cells_opts_t *opts = state->input;

    opts->windows[i] = daqiri_args_count(state, name, word, 1,
                                         CELLS_WINDOW_MAX);
    daqiri_cells_need_new(state, name, word, opts->windows,
                          sizeof(opts->windows[0]), i);
}

/* ---- options ---- */

static const struct argp_option cells_options[] = {
    {"addr", DAQIRI_CELLS_OPT_ADDR, "HOST[:PORT]", 0,
     "Through daqiri serve on that host (on this one)", 10},
    {"transports", DAQIRI_CELLS_OPT_TRANSPORTS, "LIST", 0,
     "verbs, tcp, or UCX's: daqiri, rc_verbs, uct:tcp", 10},
    {"sizes", DAQIRI_CELLS_OPT_SIZES, "LIST", 0, "Of messages, 8 bytes or more", 10},
    {"windows", DAQIRI_CELLS_OPT_WINDOWS, "LIST", 0,
     "Most messages without acknowledgement (64)", 10},
    {"duration", DAQIRI_CELLS_OPT_DURATION, "TIME", 0, "Time of one run", 11},
    {"repeats", DAQIRI_CELLS_OPT_REPEATS, "N", 0, "Runs of each row (3)", 11},
    {"device", DAQIRI_CELLS_OPT_DEVICE, "NAME", 0,
     "auto, soft or an RDMA device (auto)", 11},
    {"collapse", DAQIRI_CELLS_OPT_COLLAPSE, "PERCENT", 0,
     "Below this share of its median: collapse (50)", 12},
    {"rate", DAQIRI_CELLS_OPT_RATE, "PERCENT", 0,
     "Allowed lag of short behind long messages (10)", 12},
    {"stalled", DAQIRI_CELLS_OPT_STALLED, "PERCENT", 0,
     "Repeat runs with no or far CPUs for more (never)", 12},
    {"strict", DAQIRI_CELLS_OPT_STRICT, NULL, 0,
     "Fail on any verdict but ok; print each run", 12},
    {"verbose", DAQIRI_CELLS_OPT_VERBOSE, NULL, OPTION_ALIAS},
    {"interval", DAQIRI_CELLS_OPT_INTERVAL, "TIME", 0,
     "Print a line for each such time of a run", 13},
    {"plot", DAQIRI_CELLS_OPT_PLOT, "FILE", 0, "Draw a picture: FILE.svg or FILE.png",
     13},
    {NULL}
};

static error_t cells_parse_verdict(int key, char *arg,
                                   struct argp_state *state)
{
    daqiri_cells_opts_t *opts = state->input;

    switch (key) {
    case DAQIRI_CELLS_OPT_COLLAPSE:
        opts->collapse = daqiri_args_number(state, "collapse", arg, 1, 100);
        return 0;
    case DAQIRI_CELLS_OPT_RATE:
        opts->rate = daqiri_args_number(state, "rate", arg, 0, 100);
        return 0;
    case DAQIRI_CELLS_OPT_STALLED:
        opts->stalled = daqiri_args_number(state, "stalled", arg, 0.1, 100);
        return 0;
    case DAQIRI_CELLS_OPT_STRICT:
        opts->is_strict = 1;
        return 0;
    case DAQIRI_CELLS_OPT_VERBOSE:
        opts->is_verbose = 1;
        return 0;
    case DAQIRI_CELLS_OPT_PLOT:
        if (!daqiri_plot_is_name(arg)) {
            argp_error(state, "--plot %s: the name ends with .svg or .png", arg);
        }
        opts->plot = arg;
        return 0;
    case DAQIRI_CELLS_OPT_INTERVAL:
        opts->interval = daqiri_args_interval(state, arg);
        return 0;
    case DAQIRI_CELLS_OPT_TIMEOUT:
        opts->patience = daqiri_args_duration(state, "timeout", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

error_t daqiri_cells_parse(int key, char *arg, struct argp_state *state)
{
    daqiri_cells_opts_t *opts = state->input;

    switch (key) {
    case DAQIRI_CELLS_OPT_ADDR:
        opts->connect_to = daqiri_net_args_address(state, "addr", arg);
        return 0;
    case DAQIRI_CELLS_OPT_TRANSPORTS:
        opts->transport_count = daqiri_cells_list(state, "transports", arg,
                                                  cells_take_transport);
        opts->has_transports  = 1;
        return 0;
    case DAQIRI_CELLS_OPT_SIZES:
        opts->size_count = daqiri_cells_list(state, "sizes", arg,
                                             cells_take_size);
        return 0;
    case DAQIRI_CELLS_OPT_WINDOWS:
        opts->window_count = daqiri_cells_list(state, "windows", arg,
                                               cells_take_window);
        opts->has_windows  = 1;
        return 0;
    case DAQIRI_CELLS_OPT_DURATION:
        opts->duration = daqiri_args_duration(state, "duration", arg);
        return 0;
    case DAQIRI_CELLS_OPT_REPEATS:
        opts->repeats = (unsigned)
            daqiri_args_count(state, "repeats", arg, 1,
                              DAQIRI_CELLS_REPEATS_MAX);
        return 0;
    case DAQIRI_CELLS_OPT_DEVICE:
        opts->device = daqiri_args_name(state, "device", arg);
        return 0;
    default:
        return cells_parse_verdict(key, arg, state);
    }
}

static const struct argp cells_argp = {cells_options, daqiri_cells_parse};

const struct argp_child daqiri_cells_children[] = {
    {&cells_argp, 0, NULL, 10}, {&daqiri_args_table, 0, NULL, 11}, {NULL}
};

void daqiri_cells_parse_init(struct argp_state *state)
{
    daqiri_cells_opts_t *opts = state->input;

    state->child_inputs[0] = opts;
    state->child_inputs[1] = &opts->format;
}
