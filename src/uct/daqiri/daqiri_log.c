/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From facts to UCX's log, and the counters of a closing interface to a file.
 */
#include "daqiri.h"

#include <sys/resource.h>

/* dq_triage.h has its own numbers, so that it need not know verbs. */
DQ_STATIC_ASSERT((int)DQ_CAUSE_LOC_LEN == IBV_WC_LOC_LEN_ERR, "wc status");
DQ_STATIC_ASSERT((int)DQ_CAUSE_LOC_PROT == IBV_WC_LOC_PROT_ERR, "wc status");
DQ_STATIC_ASSERT((int)DQ_CAUSE_WR_FLUSH == IBV_WC_WR_FLUSH_ERR, "wc status");
DQ_STATIC_ASSERT((int)DQ_CAUSE_REM_ACCESS == IBV_WC_REM_ACCESS_ERR,
                 "wc status");
DQ_STATIC_ASSERT((int)DQ_CAUSE_RETRY_EXC == IBV_WC_RETRY_EXC_ERR,
                 "wc status");
DQ_STATIC_ASSERT((int)DQ_CAUSE_RNR_RETRY_EXC == IBV_WC_RNR_RETRY_EXC_ERR,
                 "wc status");
DQ_STATIC_ASSERT((int)DQ_CAUSE_FATAL == IBV_WC_FATAL_ERR, "wc status");
DQ_STATIC_ASSERT((int)DQ_CAUSE_GENERAL == IBV_WC_GENERAL_ERR, "wc status");


void uct_daqiri_log(ucs_log_level_t level, const dq_facts_t *facts)
{
    char message[DQ_TRIAGE_MESSAGE_MAX];

    ucs_log(level, "%s", dq_triage_message(facts, message, sizeof(message)));
}


static uint64_t uct_daqiri_memlock_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
        return 0;
    }
    return (limit.rlim_cur == RLIM_INFINITY) ? UINT64_MAX : limit.rlim_cur;
}


void uct_daqiri_log_verb(ucs_log_level_t level, const char *subject,
                         const char *verb, int error)
{
    const dq_facts_t facts = {
        .cause         = DQ_CAUSE_VERB,
        .subject       = subject,
        .verb          = verb,
        .error         = error,
        .memlock_limit = uct_daqiri_memlock_limit(),
    };

    uct_daqiri_log(level, &facts);
}


ucs_status_t uct_daqiri_cause_status(dq_cause_t cause)
{
    switch (cause) {
    case DQ_CAUSE_NONE:
        return UCS_OK;
    case DQ_CAUSE_RETRY_EXC:
    case DQ_CAUSE_RESP_TIMEOUT:
    case DQ_CAUSE_RNR_RETRY_EXC:
    case DQ_CAUSE_NO_ANSWER:
    case DQ_CAUSE_REM_OP: /* of a process that dies, memory may go first */
    case DQ_CAUSE_REFUSED:
    case DQ_CAUSE_PEER_GONE:
    case DQ_CAUSE_PEER_FORGOT:
    case DQ_CAUSE_WR_FLUSH:
        /* what UCP answers to whatever is sent after that, so that a program
         * sees one status and not two; the message in the log says more */
        return UCS_ERR_ENDPOINT_TIMEOUT;
    case DQ_CAUSE_GIVEN_UP:
        return UCS_ERR_CANCELED;
    default:
        return UCS_ERR_IO_ERROR;
    }
}


/* Messages to this interface itself: each has had its number. */
static uint64_t uct_daqiri_self_tx(uct_daqiri_iface_t *iface)
{
    uct_daqiri_conn_t *conn = uct_daqiri_cm_find(iface,
                                                 iface->config.addr.uuid);

    return (conn == NULL) ? 0 : conn->tx_seq;
}


static void uct_daqiri_stats_print(uct_daqiri_iface_t *iface, FILE *file)
{
    const uct_daqiri_counters_t *count = &iface->count;
    const struct {
        const char *key;
        uint64_t   value;
    } rows[] = {
        {"pid", iface->config.pid},
        {"am_tx", count->am_short + count->am_bcopy + count->am_zcopy},
        {"am_tx_bytes", count->am_tx_bytes},
        {"am_rx", count->am_rx},
        {"am_rx_bytes", count->am_rx_bytes},
        {"am_short", count->am_short},
        {"am_bcopy", count->am_bcopy},
        {"am_zcopy", count->am_zcopy},
        {"put_short", count->put_short},
        {"put_bcopy", count->put_bcopy},
        {"put_zcopy", count->put_zcopy},
        {"get_bcopy", count->get_bcopy},
        {"get_zcopy", count->get_zcopy},
        {"rma_bytes", count->rma_bytes},
        {"atomics", count->atomics},
        {"early", count->early},
        {"am_self_tx", uct_daqiri_self_tx(iface)},
        {"conns", count->conns},
        {"conns_up", count->conns_up},
        {"credit_frames_tx", count->credit_frames_tx},
        {"credit_frames_rx", count->credit_frames_rx},
        {"refused_no_buffer", count->refused_no_buffer},
        {"rx_overcommit", iface->rx.ledger.overcommit},
        {"rx_overrun", iface->rx.ledger.overrun},
        {"rx_out_of_order", count->rx_out_of_order},
        {"tx_errors", count->tx_errors},
        {"tx_flushed", count->tx_flushed},
        {"rx_flushed", count->rx_flushed},
        {"stray_completions", count->stray_completions},
        {"posts_refused", count->posts_refused},
        {"chains", count->chains},
        {"chained", count->chained},
        {"chains_late", count->chains_late},
        {"losses", count->losses},
        {"recoveries", count->recoveries},
        {"redone", count->redone},
        {"redo_had", count->redo_had},
        {"frames_tx", count->frames_tx},
        {"frames_rx", count->frames_rx},
        {"frames_dup", count->frames_dup},
        {"rx_buffers", iface->rx.ledger.total},
        {"tx_buffers", iface->tx.pool.count},
        {"sq_in_use_at_close", iface->tx.ledger.used},
        {"rx_held_at_close", iface->rx.ledger.held},
        {"tx_buffers_out_at_close",
         iface->tx.pool.count - iface->tx.pool.free_count},
    };
    uint64_t rx_dropped = 0, frames_dropped = 0;
    unsigned i;

    fprintf(file, "device %s\n",
            ibv_get_device_name(uct_daqiri_iface_md(iface)->context->device));
    for (i = 0; i < ucs_static_array_size(rows); i++) {
        fprintf(file, "%s %" PRIu64 "\n", rows[i].key, rows[i].value);
    }
    for (i = DQ_ADMIT_OK + 1; i < DQ_ADMIT_LAST; i++) {
        fprintf(file, "refused_%s %" PRIu64 "\n",
                dq_admit_name((dq_admit_t)i), count->refused[i]);
    }
    for (i = DQ_WIRE_OK + 1; i < DQ_WIRE_LAST; i++) {
        rx_dropped     += count->rx_dropped[i];
        frames_dropped += count->frames_dropped[i];
        fprintf(file, "frames_dropped_%s %" PRIu64 "\n",
                dq_wire_status_name((dq_wire_status_t)i),
                count->frames_dropped[i]);
    }
    fprintf(file, "rx_dropped %" PRIu64 "\n", rx_dropped);
    fprintf(file, "frames_dropped %" PRIu64 "\n", frames_dropped);
}


void uct_daqiri_stats_write(uct_daqiri_iface_t *iface)
{
    static unsigned serial = 0;
    const char *dir        = getenv("DAQIRI_STATS_DIR");
    char path[PATH_MAX];
    FILE *file;

    if ((dir == NULL) || (*dir == '\0')) {
        return;
    }

    snprintf(path, sizeof(path), "%s/daqiri.%u.%u", dir, iface->config.pid,
             __atomic_fetch_add(&serial, 1, __ATOMIC_RELAXED));
    file = fopen(path, "w");
    if (file == NULL) {
        ucs_warn("cannot write the counters to %s: %m", path);
        return;
    }
    uct_daqiri_stats_print(iface, file);
    if (fclose(file) != 0) {
        ucs_warn("cannot write the counters to %s: %m", path);
    }
}
