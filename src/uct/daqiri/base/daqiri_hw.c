/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the port itself counts of errors, where its driver tells: sysfs has a
 * file for each. They are read when an interface is opened, when a connection is
 * up for the first time, once a second at most, and when something has to be
 * explained; never on the data path.
 *
 * Threads: a connection's are taken by async, before progress hears that it is
 * up; the rest is progress.
 */
#include "base/daqiri_hw.h"

#include "base/daqiri_md.h"
#include "conn/daqiri_conn.h"
#include "iface/daqiri_iface.h"

#include <limits.h>

/* Those that say something of a lost packet or a refused request; of the
 * others (bytes, packets) traffic makes thousands. */
static const char *const uct_daqiri_hw_names[] = {
    /* of hardware, and rxe's */
    "hw_counters/local_ack_timeout_err",
    "hw_counters/packet_seq_err",
    "hw_counters/implied_nak_seq_err",
    "hw_counters/out_of_sequence",
    "hw_counters/duplicate_request",
    "hw_counters/out_of_buffer",
    "hw_counters/rnr_nak_retry_err",
    "hw_counters/req_remote_access_errors",
    "hw_counters/req_remote_invalid_request",
    "hw_counters/resp_local_length_error",
    "hw_counters/resp_remote_access_errors",
    "hw_counters/rx_icrc_encapsulated",
    "hw_counters/roce_slow_restart",
    "hw_counters/np_cnp_sent",
    "hw_counters/rp_cnp_handled",
    "hw_counters/out_of_seq_request",
    "hw_counters/rcvd_rnr_err",
    "hw_counters/send_rnr_err",
    "hw_counters/rcvd_seq_err",
    "hw_counters/completer_retry_err",
    "hw_counters/retry_exceeded_err",
    "hw_counters/retry_rnr_exceeded_err",
    "hw_counters/send_err",
    "hw_counters/link_downed",
    /* of the link */
    "counters/symbol_error",
    "counters/link_error_recovery",
    "counters/link_downed",
    "counters/port_rcv_errors",
    "counters/port_xmit_discards",
    "counters/local_link_integrity_errors",
    "counters/excessive_buffer_overrun_errors",
};

enum { UCT_DAQIRI_HW_COUNT = ucs_static_array_size(uct_daqiri_hw_names) };

DQ_STATIC_ASSERT((int)UCT_DAQIRI_HW_COUNT <= (int)UCT_DAQIRI_HW_COUNTERS,
                 "room for all");


/* UINT64_MAX: there is none. */
static uint64_t uct_daqiri_hw_read(const uct_daqiri_iface_t *iface,
                                   const char *name)
{
    struct ibv_context *context =
            ucs_derived_of(iface->super.md, uct_daqiri_md_t)->context;
    uint64_t value              = UINT64_MAX;
    char path[PATH_MAX];
    FILE *file;

    snprintf(path, sizeof(path), "%s/ports/%u/%s", context->device->ibdev_path,
             iface->config.port_num, name);
    file = fopen(path, "re");
    if (file == NULL) {
        return UINT64_MAX;
    }
    if (fscanf(file, "%" SCNu64, &value) != 1) {
        value = UINT64_MAX;
    }
    fclose(file);
    return value;
}


void uct_daqiri_hw_begin(uct_daqiri_iface_t *iface)
{
    int i;

    for (i = 0; i < UCT_DAQIRI_HW_COUNT; i++) {
        iface->hw.values[i] = uct_daqiri_hw_read(iface,
                                                 uct_daqiri_hw_names[i]);
    }
    iface->hw.is_known = 1;
}


/* Of those that come up within a second the first one reads: a job connects to
 * thousands at once, and some drivers ask the device for each counter. */
void uct_daqiri_hw_mark(uct_daqiri_conn_t *conn)
{
    uct_daqiri_iface_t *iface = conn->iface;
    ucs_time_t now            = ucs_get_time();
    int i;

    if (conn->hw.is_known) {
        return;
    }
    if (!iface->cm.hw.is_known ||
        (now - iface->cm.hw.read_at > ucs_time_from_sec(1.0))) {
        for (i = 0; i < UCT_DAQIRI_HW_COUNT; i++) {
            iface->cm.hw.values[i] =
                    (iface->hw.values[i] == UINT64_MAX)
                            ? UINT64_MAX
                            : uct_daqiri_hw_read(iface,
                                                 uct_daqiri_hw_names[i]);
        }
        iface->cm.hw.read_at  = now;
        iface->cm.hw.is_known = 1;
    }
    conn->hw = iface->cm.hw;
}


/* One that has been set back says nothing; neither does one too many for the
 * line. */
const char *uct_daqiri_hw_changes(const uct_daqiri_iface_t *iface,
                                  const uct_daqiri_hw_t *since, char *buf,
                                  size_t size)
{
    size_t length = 0;
    uint64_t now;
    int i, n;

    for (i = 0; i < UCT_DAQIRI_HW_COUNT; i++) {
        now = uct_daqiri_hw_read(iface, uct_daqiri_hw_names[i]);
        if ((now == UINT64_MAX) || (since->values[i] == UINT64_MAX) ||
            (now <= since->values[i])) {
            continue;
        }
        n = snprintf(buf + length, size - length, "%s%s +%" PRIu64,
                     (length > 0) ? ", " : "",
                     strchr(uct_daqiri_hw_names[i], '/') + 1,
                     now - since->values[i]);
        if ((n < 0) || ((size_t)n >= size - length)) {
            buf[length] = '\0';
            break;
        }
        length += n;
    }
    return (length > 0) ? buf : NULL;
}
