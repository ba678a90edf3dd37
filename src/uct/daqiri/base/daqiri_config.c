/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options: their names, defaults, help and ranges. All of them are read
 * from UCX_DAQIRI_<NAME>; `ucx_info -c -f` prints them.
 */
#include "base/daqiri_config.h"

#include "base/daqiri_log.h"
#include "base/daqiri_md.h"
#include "dq/dq_sq.h"

#include <limits.h>

#define FIELD(_name)  offsetof(uct_daqiri_iface_config_t, _name)
#define RCACHE(_name) offsetof(uct_daqiri_md_config_t, rcache._name)

const uct_daqiri_option_t uct_daqiri_md_options[] = {
    {"", "", NULL, offsetof(uct_daqiri_md_config_t, super),
     UCT_DAQIRI_OPTION_MD},

    {"REG_CACHE", "auto",
     "Cache registrations of memory (on, off, auto). The cache needs UCX's\n"
     "memory hooks; \"auto\" turns it off where they cannot work.",
     offsetof(uct_daqiri_md_config_t, reg_cache), UCT_DAQIRI_OPTION_ON_OFF_AUTO},

    {"RCACHE_MEM_PRIO", "1000",
     "Priority of the registration cache among the listeners of UCX's memory\n"
     "hooks.",
     RCACHE(event_priority), UCT_DAQIRI_OPTION_UINT},

    {"RCACHE_OVERHEAD", "auto",
     "The time for a look-up in the registration cache that UCP is told.",
     RCACHE(overhead), UCT_DAQIRI_OPTION_TIME_UNITS},

    /* The cache's own grain, as in UCX's verbs transports. With cache lines, buffers
     * that adjoin would overlap, and each would be registered again together with
     * all buffers before it. */
    {"RCACHE_ADDR_ALIGN", "16",
     "Registered memory begins and ends at multiples of this: a power of 2 from\n"
     "16 to the size of a page.",
     RCACHE(alignment), UCT_DAQIRI_OPTION_UINT},

    {"RCACHE_MAX_REGIONS", "inf",
     "Most regions of memory that may stay registered.",
     RCACHE(max_regions), UCT_DAQIRI_OPTION_ULUNITS},

    {"RCACHE_MAX_SIZE", "inf",
     "Most memory that may stay registered.",
     RCACHE(max_size), UCT_DAQIRI_OPTION_MEMUNITS},

    {"RCACHE_MAX_UNRELEASED", "512M",
     "Most memory that may wait to be deregistered.",
     RCACHE(max_unreleased), UCT_DAQIRI_OPTION_MEMUNITS},

    {"RCACHE_PURGE_ON_FORK", "y",
     "Empty the registration cache in a process that is forked.",
     RCACHE(purge_on_fork), UCT_DAQIRI_OPTION_BOOL},

    {NULL}
};

const uct_daqiri_option_t uct_daqiri_iface_options[] = {
    {"", "", NULL, FIELD(super), UCT_DAQIRI_OPTION_IFACE},

    {"SQ_DEPTH", "256",
     "Work requests that a QP's send queue holds (4 to 32768).",
     FIELD(sq_depth), UCT_DAQIRI_OPTION_UINT},

    {"CQ_LEN", "auto",
     "Completion queue entries for sends, shared by all QPs of an interface\n"
     "(4 to 4194304). When they run out, sends wait. \"auto\": 4096, and more\n"
     "while many connections keep some, 65536 at most. \"inf\": all that the\n"
     "device has.",
     FIELD(cq_len), UCT_DAQIRI_OPTION_COUNT},

    {"SIGNAL_EVERY", "64",
     "Ask the device for a completion once in this many work requests\n"
     "(1 to 32768; cut to a quarter of SQ_DEPTH).",
     FIELD(signal_every), UCT_DAQIRI_OPTION_UINT},

    {"RX_BUFFERS", "2000",
     "Receive buffers that an interface may have (64 to 1048576), allocated as\n"
     "connections are made. This times SEG_SIZE is the memory limit: 32 MiB.",
     FIELD(rx_buffers), UCT_DAQIRI_OPTION_UINT},

    {"RX_WINDOW", "256",
     "Most messages that a peer may ever send without an answer (4 to 32768).\n"
     "Each of them has a receive buffer. One peer gets at most a quarter of\n"
     "RX_BUFFERS. Where buffers are few, peers share them.",
     FIELD(rx_window), UCT_DAQIRI_OPTION_UINT},

    {"RX_WINDOW_START", "8",
     "Messages that a new peer may send without an answer (4 to 32768). This\n"
     "doubles while the peer uses it up, up to RX_WINDOW. It becomes 4 if the\n"
     "peer sends nothing and other peers need the buffers.",
     FIELD(rx_window_start), UCT_DAQIRI_OPTION_UINT},

    {"TX_BUFFERS", "4096",
     "Send buffers that an interface may have (64 to 1048576), allocated on\n"
     "demand.",
     FIELD(tx_buffers), UCT_DAQIRI_OPTION_UINT},

    {"TX_BATCH", "auto",
     "Post send requests that are ready at the same time in one batch, with\n"
     "one doorbell. \"auto\": on devices that the kernel emulates, where the\n"
     "doorbell is a system call.",
     FIELD(tx_batch), UCT_DAQIRI_OPTION_ON_OFF_AUTO},

    {"TX_BATCH_TIMEOUT", "10ms",
     "Bound for TX_BATCH: how long a message waits in a batch if the program\n"
     "makes no progress (1us to 60s; the wait may become twice as long).",
     FIELD(tx_batch_timeout), UCT_DAQIRI_OPTION_TIME},

    {"SEG_SIZE", "auto",
     "Bytes in a send or receive buffer (256 to 1m), the same on both sides of a\n"
     "connection; rounded down so that a message holds a multiple of 16. \"auto\":\n"
     "12288 on devices that the kernel emulates, 16448 on others.",
     FIELD(seg_size), UCT_DAQIRI_OPTION_MEMUNITS},

    {"MAX_INLINE", "128",
     "Bytes to send inline, with the 4 bytes of header (0 to 4096). The device\n"
     "may allow more, or less.",
     FIELD(max_inline), UCT_DAQIRI_OPTION_UINT},

    {"MAX_SGE", "6",
     "Scatter/gather entries in a work request (2 to 32), or as many as the\n"
     "device allows.",
     FIELD(max_sge), UCT_DAQIRI_OPTION_UINT},

    {"POLL_BATCH", "16",
     "Completions to take from a queue at once (1 to 64).",
     FIELD(poll_batch), UCT_DAQIRI_OPTION_UINT},

    {"RNR_TIMEOUT", "0.64ms",
     "How long a peer waits before it sends again a message that found no\n"
     "receive buffer (0.01ms to 655.36ms). Credits keep this from happening.",
     FIELD(rnr_timeout), UCT_DAQIRI_OPTION_TIME},

    {"TIMEOUT", "500ms",
     "How long to wait for an acknowledgement before sending again (8.192us\n"
     "to 8000s; rounded up to 4.096us times a power of two).",
     FIELD(ack_timeout), UCT_DAQIRI_OPTION_TIME},

    {"RETRY_COUNT", "6",
     "How often to send again before the QP fails (0 to 6; some devices treat\n"
     "7 as \"for ever\").",
     FIELD(retry_count), UCT_DAQIRI_OPTION_UINT},

    {"CONN_TIMEOUT", "60s",
     "How long to try to connect before an endpoint fails (10ms to 3600s).",
     FIELD(conn_timeout), UCT_DAQIRI_OPTION_TIME},

    {"CONN_RETRY", "20ms",
     "How long to wait at least for an answer before asking again, and longer if\n"
     "answers take longer; then twice as long each time, up to a second or a\n"
     "quarter of the time limit, and by chance up to half as long again (1ms to\n"
     "1s).",
     FIELD(conn_retry), UCT_DAQIRI_OPTION_TIME},

    {"RECOVERY", "y",
     "Replace a queue pair that dies, and resume, if nothing is lost by that.",
     FIELD(recovery), UCT_DAQIRI_OPTION_BOOL},

    {"RECOVERY_TIMEOUT", "30s",
     "How long RECOVERY tries before an endpoint fails (10ms to 3600s).",
     FIELD(recovery_timeout), UCT_DAQIRI_OPTION_TIME},

    {"MAX_QPS", "auto",
     "Most queue pairs of an interface (1 to 16777215). When more peers are\n"
     "needed, the connection that has been idle longest closes its own, and\n"
     "the next send brings it back. \"auto\": what the device has, shared by the\n"
     "ranks of this host. \"inf\": as many as the device gives.",
     FIELD(max_qps), UCT_DAQIRI_OPTION_COUNT},

    {"IDLE_TIMEOUT", "0",
     "Close the queue pair of a connection that has been idle for this long\n"
     "(10ms to 3600s, or 0 for never). The next send brings it back.",
     FIELD(idle_timeout), UCT_DAQIRI_OPTION_TIME},

    {"SQ_STALL_TIMEOUT", "30s",
     "Log a message if requests to a peer have waited for this long without\n"
     "any progress (10ms to 3600s, or 0 for never).",
     FIELD(stall_timeout), UCT_DAQIRI_OPTION_TIME},

    {"STUCK_TIMEOUT", "120s",
     "Give up a queue pair if one of its requests has neither completed nor\n"
     "failed for this long (10ms to 3600s, or 0 for never). This must be longer\n"
     "than a device may take for its retries, four times TIMEOUT for each.",
     FIELD(stuck_timeout), UCT_DAQIRI_OPTION_TIME},

    {"KEEPALIVE", "0",
     "Probe a peer's device and process if nothing has come from them for this\n"
     "long (10ms to 3600s, or 0 for never). A peer is lost if its process does\n"
     "not answer for as long again, 1s at least, although its device does.",
     FIELD(keepalive), UCT_DAQIRI_OPTION_TIME},

    {"STATS", "y",
     "Keep the counters in a file in /dev/shm, which \"daqiri stats\" reads\n"
     "while the program runs.",
     FIELD(stats), UCT_DAQIRI_OPTION_BOOL},

    {"GID_INDEX", "auto",
     "Index in the port's GID table, or \"auto\": RoCE v2 before v1, IPv4\n"
     "before IPv6 before link-local; 0 on InfiniBand.",
     FIELD(gid_index), UCT_DAQIRI_OPTION_GID},

    {"TRAFFIC_CLASS", "0",
     "Traffic class of RoCE packets (0 to 255).",
     FIELD(traffic_class), UCT_DAQIRI_OPTION_UINT},

    {"SL", "0",
     "Service level (0 to 15).",
     FIELD(service_level), UCT_DAQIRI_OPTION_UINT},

    {"LATENCY", "auto",
     "One-way time of a short message that UCP is told (0 to 1s). The larger it\n"
     "is, the longer the messages at which UCP begins to use rendezvous.\n"
     "\"auto\": by the generation of the link, from 600ns to 5us. 400ns for a\n"
     "device in user space.",
     FIELD(latency), UCT_DAQIRI_OPTION_SECONDS},

    {"RDMA_OVERHEAD", "auto",
     "Processor time that UCP is told that a READ or a WRITE takes beyond that of\n"
     "a message (0 to 1s). The larger it is, the longer the messages at which UCP\n"
     "begins to use rendezvous. UCP 1.16 and newer ask for it. \"auto\": 1.3us for\n"
     "a device in user space, where no hardware moves the bytes; 0 elsewhere.",
     FIELD(rdma_overhead), UCT_DAQIRI_OPTION_SECONDS},

    {NULL}
};


/* One option with its range. */
typedef struct {
    const char *name;
    double     value, least, most;
    const char *unit;
} uct_daqiri_range_t;


/* An option that may be 0 for "never". */
static double uct_daqiri_or_never(double value, double otherwise)
{
    return (value == 0) ? otherwise : value;
}


/* Seconds. "auto" is within any range. */
static double uct_daqiri_or_auto(double value)
{
    return (value < 0) ? 0 : value;
}


static size_t uct_daqiri_bytes_or_auto(size_t value, size_t otherwise)
{
    return (value == UCS_MEMUNITS_AUTO) ? otherwise : value;
}


/* "auto" and "inf" are within any range. */
static double uct_daqiri_units_or(unsigned long value, double otherwise)
{
    return ((value == UCS_ULUNITS_AUTO) || (value == UCS_ULUNITS_INF)) ? otherwise
                                                                       : (double)value;
}


static ucs_status_t uct_daqiri_range_check(const uct_daqiri_range_t *range)
{
    char subject[64], detail[128];
    dq_facts_t facts = {
        .cause   = DQ_CAUSE_BAD_OPTION,
        .subject = subject,
        .detail  = detail,
    };

    if ((range->value >= range->least) && (range->value <= range->most)) {
        return UCS_OK;
    }
    snprintf(subject, sizeof(subject), "UCX_DAQIRI_%s", range->name);
    snprintf(detail, sizeof(detail), "%g%s is not within %g%s and %g%s",
             range->value, range->unit, range->least, range->unit,
             range->most, range->unit);
    uct_daqiri_log(UCS_LOG_LEVEL_ERROR, &facts);
    return UCS_ERR_INVALID_PARAM;
}


/* A queue pair that is closed in order comes back as one that was lost. */
static ucs_status_t uct_daqiri_config_check_idle(const uct_daqiri_iface_config_t *config)
{
    int has_budget         = uct_daqiri_units_or(config->max_qps, 0) != 0;
    const dq_facts_t facts = {
        .cause   = DQ_CAUSE_BAD_OPTION,
        .subject = has_budget ? "UCX_DAQIRI_MAX_QPS" : "UCX_DAQIRI_IDLE_TIMEOUT",
        .detail  = "it needs UCX_DAQIRI_RECOVERY=y",
    };

    if (config->recovery || (!has_budget && (config->idle_timeout == 0))) {
        return UCS_OK;
    }
    uct_daqiri_log(UCS_LOG_LEVEL_ERROR, &facts);
    return UCS_ERR_INVALID_PARAM;
}


ucs_status_t uct_daqiri_config_check(const uct_daqiri_iface_config_t *config)
{
    const uct_daqiri_range_t ranges[] = {
        {"SQ_DEPTH", config->sq_depth, DQ_SQ_DEPTH_MIN, 32768, ""},
        {"CQ_LEN", uct_daqiri_units_or(config->cq_len, DQ_CQ_DEPTH_MIN),
         DQ_CQ_DEPTH_MIN, 4194304, ""},
        {"SIGNAL_EVERY", config->signal_every, 1, 32768, ""},
        {"RX_BUFFERS", config->rx_buffers, 64, 1048576, ""},
        {"RX_WINDOW", config->rx_window, 4, 32768, ""},
        {"RX_WINDOW_START", config->rx_window_start, 4, 32768, ""},
        {"TX_BUFFERS", config->tx_buffers, 64, 1048576, ""},
        {"TX_BATCH_TIMEOUT", config->tx_batch_timeout, 1e-6, 60, "s"},
        {"SEG_SIZE", uct_daqiri_bytes_or_auto(config->seg_size, UCS_KBYTE),
         256, UCS_MBYTE, " bytes"},
        {"MAX_INLINE", config->max_inline, 0, 4096, ""},
        {"MAX_SGE", config->max_sge, 2, UCT_DAQIRI_SGE_MAX, ""},
        {"POLL_BATCH", config->poll_batch, 1, UCT_DAQIRI_POLL_MAX, ""},
        {"RNR_TIMEOUT", config->rnr_timeout, 1e-5, 0.65536, "s"},
        {"TIMEOUT", config->ack_timeout, 8.192e-6, 8000, "s"},
        {"RETRY_COUNT", config->retry_count, 0, 6, ""},
        {"CONN_TIMEOUT", config->conn_timeout, 0.01, 3600, "s"},
        {"CONN_RETRY", config->conn_retry, 0.001, 1, "s"},
        {"RECOVERY_TIMEOUT", config->recovery_timeout, 0.01, 3600, "s"},
        {"MAX_QPS", uct_daqiri_units_or(config->max_qps, 1), 1, 16777215, ""},
        {"IDLE_TIMEOUT", uct_daqiri_or_never(config->idle_timeout, 1), 0.01, 3600,
         "s"},
        {"SQ_STALL_TIMEOUT", uct_daqiri_or_never(config->stall_timeout, 1),
         0.01, 3600, "s"},
        {"STUCK_TIMEOUT", uct_daqiri_or_never(config->stuck_timeout, 1), 0.01,
         3600, "s"},
        {"KEEPALIVE", uct_daqiri_or_never(config->keepalive, 1), 0.01, 3600,
         "s"},
        {"GID_INDEX", config->gid_index, -1, 255, ""},
        {"TRAFFIC_CLASS", config->traffic_class, 0, 255, ""},
        {"SL", config->service_level, 0, 15, ""},
        {"LATENCY", uct_daqiri_or_auto(config->latency), 0, 1, "s"},
        {"RDMA_OVERHEAD", uct_daqiri_or_auto(config->rdma_overhead), 0, 1, "s"},
    };
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < ucs_static_array_size(ranges); i++) {
        status = uct_daqiri_range_check(&ranges[i]);
        if (status != UCS_OK) {
            return status;
        }
    }
    return uct_daqiri_config_check_idle(config);
}
