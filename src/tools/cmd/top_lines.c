/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The lines of `daqiri top`: what of the table fits so many columns, and the keys that
 * choose what is shown.
 *
 * A column has a rank. Those of rank 0 are always there. Each further rank is shown as a
 * whole, as long as there is room. What is left makes the columns of texts wider.
 */

#include "tools/cmd/top.h"

#include "tools/base/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINES_COLUMNS_MAX   = 16,
    LINES_CELL_MAX      = 96,
    LINES_CONN_INDENT   = 2,
    LINES_DETAIL_INDENT = 4
};

/* A process looks at its gauges every second at least, if it makes progress. */
#define LINES_OLD_NS UINT64_C(3000000000)

typedef struct lines_column {
    const char *title;
    unsigned   width;
    unsigned   rank;
    unsigned   widest; /* 0: no wider, and numbers end at the same place */
    void (*write)(const void *row, char *text, size_t size);
} lines_column_t;

typedef struct lines_layout {
    const lines_column_t *columns;
    size_t               count;
    unsigned             indent;
    unsigned             width;  /* of all of it */
    unsigned             widths[LINES_COLUMNS_MAX]; /* 0: not shown */
} lines_layout_t;

/* ---- cells ---- */

static void cell_rate(double per_s, char *text, size_t size)
{
    if (per_s < 0) {
        snprintf(text, size, "-");
    } else {
        snprintf(text, size, "%.0f", per_s);
    }
}

static void cell_gbps(double bytes_per_s, char *text, size_t size)
{
    double gbps = bytes_per_s * 8 / 1e9;

    if (bytes_per_s < 0) {
        snprintf(text, size, "-");
    } else {
        snprintf(text, size, "%.*f", daqiri_report_digits(gbps), gbps);
    }
}

static void cell_number(uint64_t number, char *text, size_t size)
{
    snprintf(text, size, "%llu", (unsigned long long)number);
}

static void cell_of(uint32_t part, uint32_t whole, char *text, size_t size)
{
    snprintf(text, size, "%u/%u", part, whole);
}

static void interface_name(const void *row, char *text, size_t size)
{
    const top_interface_t *interface = row;

    snprintf(text, size, "%u.%u", interface->pid, interface->serial);
}

static void interface_device(const void *row, char *text, size_t size)
{
    const top_interface_t *interface = row;

    snprintf(text, size, "%s:%u", interface->device, interface->port);
}

static void interface_peers(const void *row, char *text, size_t size)
{
    cell_number(((const top_interface_t*)row)->values[TOP_CONNS].now, text, size);
}

static void interface_sent(const void *row, char *text, size_t size)
{
    cell_rate(((const top_interface_t*)row)->values[TOP_SENT].per_s, text, size);
}

static void interface_received(const void *row, char *text, size_t size)
{
    cell_rate(((const top_interface_t*)row)->values[TOP_RECEIVED].per_s, text, size);
}

static void interface_sent_gbps(const void *row, char *text, size_t size)
{
    cell_gbps(((const top_interface_t*)row)->values[TOP_SENT_BYTES].per_s, text, size);
}

static void interface_received_gbps(const void *row, char *text, size_t size)
{
    cell_gbps(((const top_interface_t*)row)->values[TOP_RECEIVED_BYTES].per_s, text,
              size);
}

static void interface_rma_gbps(const void *row, char *text, size_t size)
{
    cell_gbps(((const top_interface_t*)row)->values[TOP_RMA_BYTES].per_s, text, size);
}

static void interface_gbps(const void *row, char *text, size_t size)
{
    const top_value_t *values = ((const top_interface_t*)row)->values;
    double sum                = values[TOP_SENT_BYTES].per_s +
                                values[TOP_RECEIVED_BYTES].per_s +
                                values[TOP_RMA_BYTES].per_s;

    cell_gbps((values[TOP_SENT_BYTES].per_s < 0) ? -1 : sum, text, size);
}

static void interface_waits(const void *row, char *text, size_t size)
{
    cell_rate(((const top_interface_t*)row)->waits_per_s, text, size);
}

static void interface_lost(const void *row, char *text, size_t size)
{
    cell_number(((const top_interface_t*)row)->values[TOP_LOST].now, text, size);
}

static void interface_recovered(const void *row, char *text, size_t size)
{
    cell_number(((const top_interface_t*)row)->values[TOP_RECOVERED].now, text, size);
}

static void interface_age(const void *row, char *text, size_t size)
{
    const top_interface_t *interface = row;
    uint64_t now = interface->read_ns, then = interface->opened_ns;

    cell_number((now > then) ? (now - then) / 1000000000 : 0, text, size);
}

static void conn_host(const void *row, char *text, size_t size)
{
    snprintf(text, size, "%.*s", DQ_STATS_HOST_MAX - 1,
             ((const top_conn_t*)row)->now.host);
}

static void conn_pid(const void *row, char *text, size_t size)
{
    cell_number(((const top_conn_t*)row)->now.pid, text, size);
}

static void conn_state(const void *row, char *text, size_t size)
{
    dq_stats_state_t state = (dq_stats_state_t)((const top_conn_t*)row)->now.state;

    snprintf(text, size, "%s", dq_stats_state_name(state));
}

static void conn_in_use(const void *row, char *text, size_t size)
{
    const dq_stats_peer_t *peer = &((const top_conn_t*)row)->now;

    cell_of(peer->in_use, peer->depth, text, size);
}

static void conn_credits(const void *row, char *text, size_t size)
{
    const dq_stats_peer_t *peer = &((const top_conn_t*)row)->now;

    cell_of(peer->credits, peer->window, text, size);
}

static void conn_owed(const void *row, char *text, size_t size)
{
    const dq_stats_peer_t *peer = &((const top_conn_t*)row)->now;

    cell_of(peer->owed, peer->promised, text, size);
}

static void conn_requests(const void *row, char *text, size_t size)
{
    cell_rate(((const top_conn_t*)row)->requests_per_s, text, size);
}

static void conn_lost(const void *row, char *text, size_t size)
{
    cell_number(((const top_conn_t*)row)->now.losses, text, size);
}

static void conn_stalls(const void *row, char *text, size_t size)
{
    cell_number(((const top_conn_t*)row)->now.stalls, text, size);
}

static void conn_oldest(const void *row, char *text, size_t size)
{
    cell_number(((const top_conn_t*)row)->now.oldest_ns / 1000, text, size);
}

static void conn_qpn(const void *row, char *text, size_t size)
{
    cell_number(((const top_conn_t*)row)->now.qpn, text, size);
}

static void conn_peer_qpn(const void *row, char *text, size_t size)
{
    cell_number(((const top_conn_t*)row)->now.peer_qpn, text, size);
}

static const lines_column_t interface_columns[] = {
    {"interface", 9, 0, 9, interface_name},
    {"device", 12, 0, 24, interface_device},
    {"peers", 5, 0, 0, interface_peers},
    {"sent/s", 8, 0, 0, interface_sent},
    {"received/s", 10, 0, 0, interface_received},
    {"Gb/s", 6, 0, 0, interface_gbps},
    {"sent Gb/s", 9, 2, 0, interface_sent_gbps},
    {"received Gb/s", 13, 2, 0, interface_received_gbps},
    {"RMA Gb/s", 8, 2, 0, interface_rma_gbps},
    {"waits/s", 8, 1, 0, interface_waits},
    {"lost", 4, 1, 0, interface_lost},
    {"recovered", 9, 1, 0, interface_recovered},
    {"open s", 7, 3, 0, interface_age}
};

static const lines_column_t conn_columns[] = {
    {"host", 8, 0, 24, conn_host},
    {"pid", 7, 0, 0, conn_pid},
    {"state", 10, 0, 10, conn_state},
    {"in use/depth", 12, 0, 0, conn_in_use},
    {"credits/window", 14, 0, 0, conn_credits},
    {"owed/promised", 13, 2, 0, conn_owed},
    {"requests/s", 10, 1, 0, conn_requests},
    {"lost", 4, 1, 0, conn_lost},
    {"stalls", 6, 2, 0, conn_stalls},
    {"oldest us", 10, 3, 0, conn_oldest},
    {"QPN", 8, 4, 0, conn_qpn},
    {"its QPN", 8, 4, 0, conn_peer_qpn}
};

static lines_layout_t layout_interfaces(void)
{
    return (lines_layout_t){
        .columns = interface_columns,
        .count   = sizeof(interface_columns) / sizeof(interface_columns[0])
    };
}

static lines_layout_t layout_conns(void)
{
    return (lines_layout_t){
        .columns = conn_columns,
        .count   = sizeof(conn_columns) / sizeof(conn_columns[0]),
        .indent  = LINES_CONN_INDENT
    };
}

/* ---- which columns there are ---- */

/* How wide the columns of a rank are, each with a blank before it. */
static unsigned layout_width(const lines_layout_t *layout, unsigned rank)
{
    unsigned width = 0;
    size_t i;

    for (i = 0; i < layout->count; ++i) {
        if (layout->columns[i].rank == rank) {
            width += layout->columns[i].width + 1;
        }
    }
    return width;
}

static void layout_show(lines_layout_t *layout, unsigned rank)
{
    size_t i;

    for (i = 0; i < layout->count; ++i) {
        if (layout->columns[i].rank == rank) {
            layout->widths[i] = layout->columns[i].width;
        }
    }
}

/* Gives what is left to columns that may be wider. */
static void layout_widen(lines_layout_t *layout, unsigned room)
{
    unsigned more;
    size_t i;

    for (i = 0; i < layout->count; ++i) {
        if ((layout->widths[i] > 0) &&
            (layout->columns[i].widest > layout->widths[i])) {
            more               = layout->columns[i].widest - layout->widths[i];
            more               = (more < room) ? more : room;
            layout->widths[i] += more;
            room              -= more;
        }
    }
}

/* The first column has no blank before it. */
static void layout_fit(lines_layout_t *layout, unsigned width)
{
    unsigned used = layout->indent + layout_width(layout, 0);
    unsigned rank;

    layout->width = width;
    layout_show(layout, 0);
    for (rank = 1; (layout_width(layout, rank) > 0) &&
                   (used + layout_width(layout, rank) <= width + 1); ++rank) {
        layout_show(layout, rank);
        used += layout_width(layout, rank);
    }
    layout_widen(layout, (used <= width) ? width + 1 - used : 0);
}

unsigned top_width_min(void)
{
    lines_layout_t interfaces = layout_interfaces(), conns = layout_conns();
    unsigned x = interfaces.indent + layout_width(&interfaces, 0);
    unsigned y = conns.indent + layout_width(&conns, 0);

    return ((x > y) ? x : y) - 1;
}

/* ---- lines ---- */

static top_line_t *lines_add(top_lines_t *lines, top_style_t style)
{
    static top_line_t nowhere;
    top_line_t *list = lines->list;

    if ((lines->count & (lines->count - 1)) == 0) { /* 0, 1, 2, 4, 8 ... */
        list = realloc(list, (2 * lines->count + 1) * sizeof(*list));
    }
    if (list == NULL) {
        lines->error = ENOMEM;
        return &nowhere;
    }
    lines->list       = list;
    list             += lines->count++;
    list->style       = style;
    list->text[0]     = '\0';
    return list;
}

/* No longer than the line may be, and no command to a terminal: texts come from files. */
static void line_append(top_line_t *line, unsigned width, const char *text)
{
    size_t used = strlen(line->text);
    size_t most = ((width > 0) && (width < TOP_LINE_MAX)) ? width : TOP_LINE_MAX - 1;

    for (; (*text != '\0') && (used < most); ++text) {
        line->text[used++] = ((*text >= ' ') && (*text <= '~')) ? *text : '?';
    }
    line->text[used] = '\0';
}

__attribute__((format(printf, 4, 5)))
static void lines_print(top_lines_t *lines, top_style_t style, unsigned width,
                        const char *format, ...)
{
    char text[TOP_LINE_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    line_append(lines_add(lines, style), width, text);
}

/* A cell that is longer than its column ends with a plus. */
static void cell_fit(char *cell, size_t size, const lines_column_t *column,
                     unsigned width, const char *text)
{
    snprintf(cell, size, (column->widest > 0) ? "%-*.*s" : "%*.*s", (int)width,
             (int)width, text);
    if (strlen(text) > width) {
        cell[width - 1] = '+';
    }
}

/* A row, or the titles if there is none. */
static void lines_row(top_lines_t *lines, top_style_t style,
                      const lines_layout_t *layout, const void *row)
{
    top_line_t *line  = lines_add(lines, style);
    const char *blank = "";
    char text[LINES_CELL_MAX], cell[LINES_CELL_MAX];
    size_t i;

    snprintf(text, sizeof(text), "%*s", (int)layout->indent, "");
    line_append(line, layout->width, text);
    for (i = 0; i < layout->count; ++i) {
        if (layout->widths[i] == 0) {
            continue;
        }
        if (row == NULL) {
            snprintf(text, sizeof(text), "%s", layout->columns[i].title);
        } else {
            layout->columns[i].write(row, text, sizeof(text));
        }
        cell_fit(cell, sizeof(cell), &layout->columns[i], layout->widths[i], text);
        line_append(line, layout->width, blank);
        line_append(line, layout->width, cell);
        blank = " ";
    }
}

/* Items with commas between, in as many lines as they need. */
typedef struct lines_list {
    top_lines_t *lines;
    unsigned    width;
    const char  *title;
    top_line_t  *line; /* NULL: there is no item yet */
} lines_list_t;

/* A counter, and its name on the screen. */
typedef struct {
    top_value_id_t id;
    const char     *name;
} lines_count_t;

__attribute__((format(printf, 2, 3)))
static void lines_item(lines_list_t *list, const char *format, ...)
{
    unsigned width = (list->width > 0) ? list->width : TOP_LINE_MAX - 1;
    char item[LINES_CELL_MAX], text[2 * LINES_CELL_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(item, sizeof(item), format, args);
    va_end(args);
    if ((list->line != NULL) &&
        (strlen(list->line->text) + strlen(", ") + strlen(item) + 1 <= width)) {
        snprintf(text, sizeof(text), ", %s", item);
    } else {
        if (list->line != NULL) {
            line_append(list->line, width, ",");
        }
        snprintf(text, sizeof(text), "%*s%s%s", LINES_DETAIL_INDENT, "",
                 (list->line == NULL) ? list->title : "  ", item);
        list->line = lines_add(list->lines, TOP_PLAIN);
    }
    line_append(list->line, width, text);
}

/* ---- an interface ---- */

static void lines_waits(top_lines_t *lines, const top_interface_t *row, unsigned width)
{
    lines_list_t list = {lines, width, "had to wait: ", NULL};
    char reason[DQ_STATS_NAME_MAX], *c;
    const top_value_t *value;
    size_t i;

    for (i = 0; i < row->num_waits; ++i) {
        value = &row->waits[i].value;
        if (value->now == 0) {
            continue;
        }
        memcpy(reason, row->waits[i].reason, sizeof(reason));
        for (c = reason; (c = strchr(c, '_')) != NULL; *c = ' ') {
        }
        if (value->per_s >= 0.5) {
            lines_item(&list, "%s %llu (%.0f/s)", reason,
                       (unsigned long long)value->now, value->per_s);
        } else {
            lines_item(&list, "%s %llu", reason, (unsigned long long)value->now);
        }
    }
}

/* A line of counters; those that are 0 are left out. */
static void lines_counts(lines_list_t *list, const top_interface_t *row,
                         const lines_count_t *items, size_t count)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        if (row->values[items[i].id].now > 0) {
            lines_item(list, "%s %llu", items[i].name,
                       (unsigned long long)row->values[items[i].id].now);
        }
    }
}

static void lines_budget(top_lines_t *lines, const top_interface_t *row,
                         unsigned width)
{
    static const lines_count_t items[] = {
        {TOP_IDLE_CLOSES, "idle, closed"},
        {TOP_IDLE_REOPENS, "back"},
        {TOP_QP_WAITS, "waited for"}
    };
    lines_list_t list = {lines, width, "queue pairs: ", NULL};

    lines_counts(&list, row, items, sizeof(items) / sizeof(items[0]));
}

static void lines_windows(top_lines_t *lines, const top_interface_t *row,
                          unsigned width)
{
    static const lines_count_t items[] = {
        {TOP_WIDENED, "widened"},
        {TOP_RECALLED, "recalled"},
        {TOP_RETURNED, "credits returned"},
        {TOP_SLOTS_GROWN, "slots grown"}
    };
    lines_list_t list = {lines, width, "windows: ", NULL};

    lines_counts(&list, row, items, sizeof(items) / sizeof(items[0]));
    if (row->values[TOP_RX_POSTED].now > 0) {
        lines_item(&list, "buffers promised %llu of %llu",
                   (unsigned long long)row->values[TOP_RX_PROMISED].now,
                   (unsigned long long)row->values[TOP_RX_POSTED].now);
    }
}

static void lines_health(top_lines_t *lines, const top_interface_t *row,
                         unsigned width)
{
    uint64_t sampled = row->values[TOP_SAMPLED_NS].now;

    if (!row->is_alive) {
        lines_print(lines, TOP_BOLD, width, "%*sthe process was killed",
                    LINES_DETAIL_INDENT, "");
    } else if ((sampled != 0) && (row->read_ns > sampled) &&
               (row->read_ns - sampled > LINES_OLD_NS)) {
        lines_print(lines, TOP_PLAIN, width, "%*sno progress call for %llu s: gauges "
                    "and connections are as old", LINES_DETAIL_INDENT, "",
                    (unsigned long long)(row->read_ns - sampled) / 1000000000);
    }
}

static void lines_conns(top_lines_t *lines, const top_interface_t *row,
                        const lines_layout_t *layout, unsigned width)
{
    uint64_t all = row->values[TOP_CONNS].now;
    int is_up;
    size_t i;

    for (i = 0; i < row->count; ++i) {
        is_up = (row->conns[i].now.state != DQ_STATS_LOST) &&
                (row->conns[i].now.state != DQ_STATS_DEAD);
        lines_row(lines, is_up ? TOP_PLAIN : TOP_BOLD, layout, &row->conns[i]);
    }
    if ((row->count > 0) && (all > row->count)) {
        lines_print(lines, TOP_PLAIN, width, "%*sand %llu more", LINES_CONN_INDENT, "",
                    (unsigned long long)(all - row->count));
    }
}

static void lines_interface(top_lines_t *lines, const top_interface_t *row,
                            const top_view_t *view, const lines_layout_t *interfaces,
                            const lines_layout_t *conns, unsigned width)
{
    lines_row(lines, row->is_alive ? TOP_PLAIN : TOP_BOLD, interfaces, row);
    lines_health(lines, row, width);
    if (!view->is_brief) {
        lines_waits(lines, row, width);
        lines_windows(lines, row, width);
    lines_budget(lines, row, width);
        lines_conns(lines, row, conns, width);
    }
}

/* ---- the head ---- */

/* "1 process", "2 processes". */
static const char *lines_count(char *text, size_t size, uint64_t count,
                               const char *one, const char *many)
{
    snprintf(text, size, "%llu %s", (unsigned long long)count,
             (count == 1) ? one : many);
    return text;
}

/* A process may have several interfaces; the files are not sorted by it here. */
static uint64_t lines_processes(const top_table_t *table)
{
    uint64_t count = 0;
    size_t i, j;

    for (i = 0; i < table->count; ++i) {
        for (j = 0; (j < i) && (table->list[j].pid != table->list[i].pid); ++j) {
        }
        count += (i == j);
    }
    return count;
}

static void lines_title(top_lines_t *lines, const top_table_t *table,
                        const top_view_t *view, unsigned width)
{
    char processes[32], interfaces[32], conns[32];
    uint64_t all = 0;
    size_t i;

    for (i = 0; i < table->count; ++i) {
        all += table->list[i].values[TOP_CONNS].now;
    }
    lines_print(lines, TOP_PLAIN, width, "daqiri top %s on %s: %s, %s, %s",
                view->clock, view->host,
                lines_count(processes, sizeof(processes), lines_processes(table),
                            "process", "processes"),
                lines_count(interfaces, sizeof(interfaces), table->count,
                            "interface", "interfaces"),
                lines_count(conns, sizeof(conns), all, "connection", "connections"));
}

/* How many connections are in which state, as far as they have rows. */
static void lines_states(top_lines_t *lines, const top_table_t *table,
                         const top_view_t *view, unsigned width)
{
    size_t states[DQ_STATS_STATE_LAST] = {0};
    char text[TOP_LINE_MAX] = "", state[32];
    top_line_t *line;
    size_t i, j;

    for (i = 0; i < table->count; ++i) {
        for (j = 0; j < table->list[i].count; ++j) {
            ++states[table->list[i].conns[j].now.state];
        }
    }
    snprintf(text, sizeof(text), "every %.10g s, by %s%s", view->interval,
             top_order_names[view->order], view->is_batch ? "" :
             " (h: help, q: quit)");
    line = lines_add(lines, TOP_PLAIN);
    line_append(line, width, text);
    for (i = DQ_STATS_NONE + 1; i < DQ_STATS_STATE_LAST; ++i) {
        if (states[i] > 0) {
            snprintf(state, sizeof(state), "%s %zu %s",
                     (strchr(line->text, ';') == NULL) ? ";" : ",", states[i],
                     dq_stats_state_name((dq_stats_state_t)i));
            line_append(line, width, state);
        }
    }
}

static const char *const lines_help[] = {
    "",
    "q          quit",
    "arrows     scroll by a line; PgUp, PgDn, Home and End by more",
    "s          sort by another value: pid, rate, waits, lost",
    "c          hide or show connections and details",
    "h or ?     this text, or back",
    "",
    "An interface is PROCESS.NUMBER. Rates are of the last interval.",
    "sent/s, received/s     messages",
    "Gb/s                   messages of both directions, and RDMA of this end",
    "waits/s                sends that had to wait; the reasons are below",
    "lost, recovered        queue pairs that died, and that were replaced",
    "windows, buffers       what receivers have given, asked back, and promised",
    "",
    "A connection is as old as its process's last sample; 64 are shown at most.",
    "in use/depth           requests under way, of those that fit",
    "credits/window         messages that may be sent, of all promised",
    "owed/promised          the same for the other direction, used up",
    "requests/s             work requests that were posted",
    "stalls, oldest us      standstills; how long no request has completed"
};

static void lines_make_help(top_lines_t *lines, unsigned width)
{
    size_t i;

    lines_print(lines, TOP_PLAIN, width, "daqiri top: help");
    lines_print(lines, TOP_PLAIN, width, "h goes back, q quits");
    lines->head = 2;
    for (i = 0; i < sizeof(lines_help) / sizeof(lines_help[0]); ++i) {
        lines_print(lines, TOP_PLAIN, width, "%s", lines_help[i]);
    }
}

void top_lines_make(top_lines_t *lines, const top_table_t *table,
                    const top_view_t *view, unsigned width)
{
    lines_layout_t interfaces = layout_interfaces(), conns = layout_conns();
    unsigned room             = (width > 0) ? width : TOP_LINE_MAX - 1;
    size_t i;

    *lines = (top_lines_t){0};
    if (view->is_help) {
        lines_make_help(lines, width);
        return;
    }
    layout_fit(&interfaces, room);
    layout_fit(&conns, room);
    lines_title(lines, table, view, width);
    lines_states(lines, table, view, width);
    if (table->count == 0) {
        lines->head = lines->count;
        lines_print(lines, TOP_PLAIN, width, "%s", "");
        lines_print(lines, TOP_PLAIN, width, "%s", view->nothing);
        lines_print(lines, TOP_PLAIN, width, "Waiting for one.");
        return;
    }
    lines_row(lines, TOP_HEADER, &interfaces, NULL);
    if (!view->is_brief) {
        lines_row(lines, TOP_HEADER, &conns, NULL);
    }
    lines->head = lines->count;
    for (i = 0; i < table->count; ++i) {
        lines_interface(lines, &table->list[i], view, &interfaces, &conns, width);
    }
}

void top_lines_free(top_lines_t *lines)
{
    free(lines->list);
    *lines = (top_lines_t){0};
}

/* ---- which of them are seen ---- */

void top_lines_place(top_lines_t *lines, top_view_t *view, size_t height,
                     unsigned width)
{
    size_t body = lines->count - lines->head;
    size_t page = (height > lines->head) ? height - lines->head : 1;
    top_line_t *line;
    char text[64];
    size_t used;

    view->offset = (body <= page) ? 0 :
                   (view->offset > body - page) ? body - page : view->offset;
    if ((body <= page) || (lines->count < 2)) {
        return;
    }
    line = &lines->list[1];
    used = strlen(line->text);
    snprintf(text, sizeof(text), "lines %zu to %zu of %zu", view->offset + 1,
             view->offset + page, body);
    if ((width < TOP_LINE_MAX) && (used + strlen(text) + 2 <= width)) {
        snprintf(line->text + used, sizeof(line->text) - used, "%*s",
                 (int)(width - used), text);
    }
}

void top_view_press(top_view_t *view, top_key_t key, size_t page)
{
    size_t step = (page > 1) ? page - 1 : 1; /* a line is seen twice */

    switch (key) {
    case TOP_KEY_UP:
        view->offset -= (view->offset > 0);
        break;
    case TOP_KEY_DOWN:
        ++view->offset;
        break;
    case TOP_KEY_PAGE_UP:
        view->offset -= (view->offset < step) ? view->offset : step;
        break;
    case TOP_KEY_PAGE_DOWN:
        view->offset += step;
        break;
    case TOP_KEY_HOME:
        view->offset = 0;
        break;
    case TOP_KEY_END:
        view->offset = SIZE_MAX / 2;
        break;
    case TOP_KEY_SORT:
        view->order = (top_order_t)((view->order + 1) % TOP_ORDERS);
        break;
    case TOP_KEY_BRIEF:
        view->is_brief = !view->is_brief;
        view->offset   = 0;
        break;
    case TOP_KEY_HELP:
        view->is_help = !view->is_help;
        view->offset  = 0;
        break;
    default:
        break;
    }
}
