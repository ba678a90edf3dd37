/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/daqiri_hw.h"

#include <limits.h>

/* Only counters of lost packets and refused requests. Ordinary traffic makes
 * thousands of the others (bytes, packets). */
static const char *const uct_daqiri_hw_names[] = {
    /* of hardware, and of rxe */
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


struct uct_daqiri_hw {
    uint32_t   refs;                        /* atomic                    */
    ucs_time_t read_at;
    uint64_t   values[UCT_DAQIRI_HW_COUNT]; /* UINT64_MAX: there is none */
};


static uint64_t uct_daqiri_hw_read_one(const uct_daqiri_hw_port_t *port, int i)
{
    uint64_t value = UINT64_MAX;
    char path[PATH_MAX];
    FILE *file;

    snprintf(path, sizeof(path), "%s/ports/%u/%s", port->device->ibdev_path,
             port->num, uct_daqiri_hw_names[i]);
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


static int uct_daqiri_hw_has(const uct_daqiri_hw_t *hw, int i)
{
    return hw->values[i] != UINT64_MAX;
}


uct_daqiri_hw_t *uct_daqiri_hw_read(const uct_daqiri_hw_port_t *port,
                                    const uct_daqiri_hw_t *first)
{
    uct_daqiri_hw_t *hw = ucs_malloc(sizeof(*hw), "daqiri_hw");
    int i;

    if (hw == NULL) {
        return NULL;
    }
    hw->refs    = 1;
    hw->read_at = ucs_get_time();
    for (i = 0; i < UCT_DAQIRI_HW_COUNT; i++) {
        hw->values[i] = ((first == NULL) || uct_daqiri_hw_has(first, i))
                                ? uct_daqiri_hw_read_one(port, i) : UINT64_MAX;
    }
    return hw;
}


uct_daqiri_hw_t *uct_daqiri_hw_share(const uct_daqiri_hw_port_t *port,
                                     const uct_daqiri_hw_t *first,
                                     uct_daqiri_hw_t **last_p)
{
    uct_daqiri_hw_t *hw = *last_p;

    if ((hw == NULL) ||
        (ucs_get_time() - hw->read_at > ucs_time_from_sec(1.0))) {
        uct_daqiri_hw_release(hw);
        hw = *last_p = uct_daqiri_hw_read(port, first);
    }
    if (hw != NULL) {
        __atomic_add_fetch(&hw->refs, 1, __ATOMIC_RELAXED);
    }
    return hw;
}


void uct_daqiri_hw_release(uct_daqiri_hw_t *hw)
{
    if ((hw != NULL) &&
        (__atomic_sub_fetch(&hw->refs, 1, __ATOMIC_ACQ_REL) == 0)) {
        ucs_free(hw);
    }
}


/* A counter that was reset since then is left out, and so is one that does not
 * fit into the line. */
const char *uct_daqiri_hw_changes(const uct_daqiri_hw_port_t *port,
                                  const uct_daqiri_hw_t *since, char *buf,
                                  size_t size)
{
    size_t length = 0;
    uint64_t now;
    int i, n;

    for (i = 0; i < UCT_DAQIRI_HW_COUNT; i++) {
        if (!uct_daqiri_hw_has(since, i)) {
            continue;
        }
        now = uct_daqiri_hw_read_one(port, i);
        if ((now == UINT64_MAX) || (now <= since->values[i])) {
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
