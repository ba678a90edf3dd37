/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The table of `daqiri top`: values by their names, and rates.
 */

#include "tools/cmd/top.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const top_order_names[TOP_ORDERS] = {"pid", "rate", "waits", "lost"};

/* Which counters are in which value; others are not shown. */
static const struct {
    const char     *name;
    top_value_id_t id;
} rows_names[] = {
    {"am_short", TOP_SENT},
    {"am_bcopy", TOP_SENT},
    {"am_zcopy", TOP_SENT},
    {"am_rx", TOP_RECEIVED},
    {"am_tx_bytes", TOP_SENT_BYTES},
    {"am_rx_bytes", TOP_RECEIVED_BYTES},
    {"rma_bytes", TOP_RMA_BYTES},
    {"qp_failures", TOP_LOST},
    {"recoveries", TOP_RECOVERED},
    {"windows_widened", TOP_WIDENED},
    {"windows_recalled", TOP_RECALLED},
    {"credits_returned", TOP_RETURNED},
    {"slots_grown", TOP_SLOTS_GROWN},
    {"idle_closes", TOP_IDLE_CLOSES},
    {"idle_reopens", TOP_IDLE_REOPENS},
    {"qp_waits", TOP_QP_WAITS},
    {"conns_open", TOP_CONNS},
    {"rx_posted", TOP_RX_POSTED},
    {"rx_promised", TOP_RX_PROMISED},
    {"sampled_at_ns", TOP_SAMPLED_NS}
};

#define ROWS_REASON "refused_"

/* ---- one interface, as it is ---- */

static void rows_take_value(top_interface_t *row, const char *name, uint64_t value)
{
    const size_t length = strlen(ROWS_REASON);
    top_wait_t *wait;
    size_t i;

    for (i = 0; i < sizeof(rows_names) / sizeof(rows_names[0]); ++i) {
        if (strcmp(name, rows_names[i].name) == 0) {
            row->values[rows_names[i].id].now += value;
        }
    }
    if ((strncmp(name, ROWS_REASON, length) == 0) &&
        (row->num_waits < TOP_WAITS_MAX)) {
        wait            = &row->waits[row->num_waits++];
        wait->value.now = value;
        memcpy(wait->reason, name + length, strlen(name + length) + 1);
    }
}

static void rows_take_values(top_interface_t *row, const dq_stats_header_t *header)
{
    uint32_t i;

    for (i = 0; i < header->count; ++i) {
        rows_take_value(row, dq_stats_entry(header, i)->name,
                        dq_stats_value(header, i));
    }
}

static int rows_take_conns(top_interface_t *row, const dq_stats_header_t *header)
{
    dq_stats_peer_t peer;
    uint32_t i;

    row->conns = calloc((size_t)header->peers + 1, sizeof(*row->conns));
    if (row->conns == NULL) {
        return ENOMEM;
    }
    for (i = 0; i < header->peers; ++i) {
        if (dq_stats_peer(header, i, &peer) && (peer.state > DQ_STATS_NONE) &&
            (peer.state < DQ_STATS_STATE_LAST)) {
            row->conns[row->count++] = (top_conn_t){
                .now = peer, .place = i, .requests_per_s = -1
            };
        }
    }
    return 0;
}

static int rows_take(top_interface_t *row, const daqiri_stats_file_t *file)
{
    const dq_stats_header_t *header = file->header;

    *row           = (top_interface_t){0};
    row->pid       = file->pid;
    row->serial    = file->serial;
    row->port      = header->port;
    row->uuid      = header->uuid;
    row->is_alive  = daqiri_stats_is_alive(file);
    row->opened_ns = header->opened_ns;
    row->read_ns   = file->read_ns;
    memcpy(row->device, header->device, sizeof(row->device));
    row->device[sizeof(row->device) - 1] = '\0';
    rows_take_values(row, header);
    return rows_take_conns(row, header);
}

/* ---- beside what it was ---- */

static double rows_rate(uint64_t now, uint64_t before, uint64_t ns)
{
    return ((now < before) || (ns == 0)) ? -1 :
           (double)(now - before) / ((double)ns / 1e9);
}

static uint64_t rows_waits(const top_interface_t *row)
{
    uint64_t sum = 0;
    size_t i;

    for (i = 0; i < row->num_waits; ++i) {
        sum += row->waits[i].value.now;
    }
    return sum;
}

/* Another connection may have got the place meanwhile. */
static const top_conn_t *rows_same_conn(const top_interface_t *before,
                                        const top_conn_t *conn)
{
    const top_conn_t *old;
    size_t i;

    for (i = 0; i < before->count; ++i) {
        old = &before->conns[i];
        if ((old->place == conn->place) && (old->now.pid == conn->now.pid) &&
            (strncmp(old->now.host, conn->now.host, DQ_STATS_HOST_MAX) == 0)) {
            return old;
        }
    }
    return NULL;
}

static void rows_compare_conns(top_interface_t *row, const top_interface_t *before)
{
    uint64_t now  = row->values[TOP_SAMPLED_NS].now;
    uint64_t then = before->values[TOP_SAMPLED_NS].now;
    const top_conn_t *old;
    top_conn_t *conn;
    size_t i;

    for (i = 0; i < row->count; ++i) {
        conn = &row->conns[i];
        old  = rows_same_conn(before, conn);
        if (old == NULL) {
            continue;
        }
        conn->requests_per_s = (now == then) ? old->requests_per_s :
                               rows_rate(conn->now.posted, old->now.posted,
                                         (now > then) ? now - then : 0);
    }
}

static void rows_compare(top_interface_t *row, const top_interface_t *before)
{
    uint64_t ns = (row->read_ns > before->read_ns) ? row->read_ns - before->read_ns : 0;
    size_t i;

    for (i = 0; i < TOP_CONNS; ++i) {
        row->values[i].per_s = rows_rate(row->values[i].now, before->values[i].now,
                                         ns);
    }
    row->waits_per_s = rows_rate(rows_waits(row), rows_waits(before), ns);
    for (i = 0; i < row->num_waits; ++i) {
        row->waits[i].value.per_s = (row->num_waits != before->num_waits) ? -1 :
                                    rows_rate(row->waits[i].value.now,
                                              before->waits[i].value.now, ns);
    }
    rows_compare_conns(row, before);
}

static void rows_compare_nothing(top_interface_t *row)
{
    size_t i;

    row->waits_per_s = -1;
    for (i = 0; i < TOP_VALUES; ++i) {
        row->values[i].per_s = -1;
    }
    for (i = 0; i < row->num_waits; ++i) {
        row->waits[i].value.per_s = -1;
    }
}

/* A pid may be another process's by now; the uuid is not another interface's. */
static const top_interface_t *rows_same(const top_table_t *before,
                                        const top_interface_t *row)
{
    const top_interface_t *old;
    size_t i;

    for (i = 0; i < before->count; ++i) {
        old = &before->list[i];
        if ((old->pid == row->pid) && (old->serial == row->serial) &&
            (old->uuid == row->uuid)) {
            return old;
        }
    }
    return NULL;
}

/* ---- all of them ---- */

int top_table_make(top_table_t *table, const daqiri_stats_files_t *files,
                   const top_table_t *before)
{
    const top_interface_t *old;
    top_interface_t *row;
    size_t i;

    table->count = 0;
    table->list  = calloc(files->count + 1, sizeof(*table->list));
    if (table->list == NULL) {
        return ENOMEM;
    }
    for (i = 0; i < files->count; ++i) {
        row = &table->list[table->count++];
        if (rows_take(row, &files->list[i]) != 0) {
            top_table_free(table);
            return ENOMEM;
        }
        old = rows_same(before, row);
        rows_compare_nothing(row);
        if (old != NULL) {
            rows_compare(row, old);
        }
    }
    return 0;
}

void top_table_free(top_table_t *table)
{
    size_t i;

    for (i = 0; i < table->count; ++i) {
        free(table->list[i].conns);
    }
    free(table->list);
    *table = (top_table_t){NULL, 0};
}

/* ---- their order ---- */

/* What is larger is shown first. */
static double rows_weight(const top_interface_t *row, top_order_t order)
{
    switch (order) {
    case TOP_BY_RATE:
        return row->values[TOP_SENT].per_s + row->values[TOP_RECEIVED].per_s;
    case TOP_BY_WAITS:
        return row->waits_per_s;
    case TOP_BY_LOST:
        return (double)row->values[TOP_LOST].now;
    default:
        return 0;
    }
}

static double rows_conn_weight(const top_conn_t *conn, top_order_t order)
{
    switch (order) {
    case TOP_BY_RATE:
        return conn->requests_per_s;
    case TOP_BY_WAITS: /* who has the least credits waits for them */
        return -(double)conn->now.credits;
    case TOP_BY_LOST:
        return (double)conn->now.losses;
    default:
        return 0;
    }
}

static int rows_order_of(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int rows_compare_weight(const void *a, const void *b, void *order)
{
    const top_interface_t *x = a, *y = b;
    double p  = rows_weight(x, *(top_order_t*)order);
    double q  = rows_weight(y, *(top_order_t*)order);
    int first = (p < q) - (p > q);

    first = (first != 0) ? first : rows_order_of(x->pid, y->pid);
    return (first != 0) ? first : rows_order_of(x->serial, y->serial);
}

static int rows_compare_conn_weight(const void *a, const void *b, void *order)
{
    const top_conn_t *x = a, *y = b;
    double p  = rows_conn_weight(x, *(top_order_t*)order);
    double q  = rows_conn_weight(y, *(top_order_t*)order);
    int first = (p < q) - (p > q);

    first = (first != 0) ? first :
            strncmp(x->now.host, y->now.host, DQ_STATS_HOST_MAX);
    first = (first != 0) ? first : rows_order_of(x->now.pid, y->now.pid);
    return (first != 0) ? first : rows_order_of(x->place, y->place);
}

void top_table_sort(top_table_t *table, top_order_t order)
{
    size_t i;

    if (table->count > 0) {
        qsort_r(table->list, table->count, sizeof(*table->list),
                rows_compare_weight, &order);
    }
    for (i = 0; i < table->count; ++i) {
        if (table->list[i].count > 0) {
            qsort_r(table->list[i].conns, table->list[i].count,
                    sizeof(top_conn_t), rows_compare_conn_weight, &order);
        }
    }
}
