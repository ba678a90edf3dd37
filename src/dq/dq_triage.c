/* SPDX-License-Identifier: BSD-3-Clause */
#include "dq_triage.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    dq_class_t class_id;
    int        new_qp_helps;
    const char *what;
    const char *check;  /* or what else can be done about it; NULL: nothing  */
} dq_triage_row_t;

#define DQ_CHECK_DRIVER "check the kernel log (dmesg) of this host"
/* what cannot come about by what daqiri does */
#define DQ_CHECK_FIRMWARE \
    "check the driver and the firmware of the device: daqiri gave no cause"

static const dq_triage_row_t dq_triage_table[DQ_CAUSE_LAST] = {
    [DQ_CAUSE_NONE] = {DQ_CLASS_UNKNOWN, 0,
        "no error",
        NULL},
    [DQ_CAUSE_LOC_LEN] = {DQ_CLASS_LOCAL, 0,
        "a message was longer than its buffer",
        "check UCX_DAQIRI_SEG_SIZE: it must be the same on both sides"},
    /* a port with no way out, too, on devices that ask for each packet */
    [DQ_CAUSE_LOC_QP_OP] = {DQ_CLASS_LOCAL, 1,
        "the device could not execute a work request",
        "check the kernel log (dmesg) of this host, and its route to the peer"},
    [DQ_CAUSE_LOC_EEC_OP] = {DQ_CLASS_LOCAL, 0,
        "the device could not execute a work request (EE context)",
        DQ_CHECK_FIRMWARE},
    [DQ_CAUSE_LOC_PROT] = {DQ_CLASS_LOCAL, 0,
        "a local buffer is not registered, or no longer",
        "check for memory that is freed or unmapped while it is sent"},
    [DQ_CAUSE_WR_FLUSH] = {DQ_CLASS_FLUSH, 1,
        "a work request was flushed after an earlier error",
        "check the message before: a flush follows from another error"},
    [DQ_CAUSE_MW_BIND] = {DQ_CLASS_LOCAL, 0,
        "a memory window bind failed",
        DQ_CHECK_FIRMWARE},
    [DQ_CAUSE_BAD_RESP] = {DQ_CLASS_PATH, 1,
        "the peer's device sent an answer that fits nothing",
        "check for two hosts with one address, and the firmware of both "
        "devices"},
    [DQ_CAUSE_LOC_ACCESS] = {DQ_CLASS_LOCAL, 0,
        "the peer wrote where this side does not allow it",
        "check what the peer writes to, and the key that it was given for "
        "that"},
    [DQ_CAUSE_REM_INV_REQ] = {DQ_CLASS_PEER, 0,
        "the peer's device found the request invalid",
        "check the peer's log, and UCX_DAQIRI_SEG_SIZE: it must be the same "
        "on both sides"},
    [DQ_CAUSE_REM_ACCESS] = {DQ_CLASS_PEER, 0,
        "the peer's memory may not be accessed so: wrong or expired key, or "
        "out of bounds",
        "check whether the peer has freed what this side reads or writes"},
    [DQ_CAUSE_REM_OP] = {DQ_CLASS_PEER, 1,
        "the peer's device could not complete the request",
        "check the peer's log, and whether its process still runs"},
    [DQ_CAUSE_RETRY_EXC] = {DQ_CLASS_PATH, 1,
        "the peer's device does not answer",
        "check the link and MTU between the two hosts, and whether the peer's "
        "process still runs"},
    [DQ_CAUSE_RNR_RETRY_EXC] = {DQ_CLASS_PEER, 1,
        "the peer has no receive buffer posted",
        "check the peer's log: for each message it has promised a receive "
        "buffer"},
    [DQ_CAUSE_LOC_RDD_VIOL] = {DQ_CLASS_LOCAL, 0,
        "RDD violation",
        DQ_CHECK_FIRMWARE},
    [DQ_CAUSE_REM_INV_RD_REQ] = {DQ_CLASS_PEER, 0,
        "the peer's device rejects the RD request",
        DQ_CHECK_FIRMWARE},
    [DQ_CAUSE_REM_ABORT] = {DQ_CLASS_PEER, 1,
        "the peer's device aborted the request",
        "check the peer's log, and the kernel log (dmesg) of its host"},
    [DQ_CAUSE_INV_EECN] = {DQ_CLASS_LOCAL, 0,
        "invalid EE context",
        DQ_CHECK_FIRMWARE},
    [DQ_CAUSE_INV_EEC_STATE] = {DQ_CLASS_LOCAL, 0,
        "invalid state of an EE context",
        DQ_CHECK_FIRMWARE},
    [DQ_CAUSE_FATAL] = {DQ_CLASS_LOCAL, 1,
        "the device failed",
        DQ_CHECK_DRIVER},
    [DQ_CAUSE_RESP_TIMEOUT] = {DQ_CLASS_PATH, 1,
        "the peer's device answered too late",
        "check the link and MTU between the two hosts, and how busy they are"},
    [DQ_CAUSE_GENERAL] = {DQ_CLASS_UNKNOWN, 1,
        "the device reports a general error",
        DQ_CHECK_DRIVER},
    [DQ_CAUSE_NO_DEVICE] = {DQ_CLASS_CONFIG, 0,
        "this machine has no RDMA device",
        "\"daqiri run COMMAND\" uses softverbs, the user-space device that "
        "comes with daqiri"},
    [DQ_CAUSE_DEVICE_OPEN] = {DQ_CLASS_CONFIG, 0,
        "the RDMA device cannot be opened",
        DQ_CHECK_DRIVER},
    [DQ_CAUSE_PORT_DOWN] = {DQ_CLASS_CONFIG, 0,
        "the port is not active",
        "check the cable, the switch, and the network interface (ip link)"},
    [DQ_CAUSE_NO_SRQ] = {DQ_CLASS_CONFIG, 0,
        "the device has no shared receive queue, which this version of daqiri "
        "needs",
        "check for another device (daqiri interfaces, UCX_NET_DEVICES)"},
    [DQ_CAUSE_NO_GID] = {DQ_CLASS_CONFIG, 0,
        "there is no GID at the index asked for",
        "check the addresses of the port (daqiri interfaces)"},
    [DQ_CAUSE_GID_LOST] = {DQ_CLASS_CONFIG, 0,
        "this interface has no address any more",
        "check what takes addresses away here (DHCP, NetworkManager)"},
    [DQ_CAUSE_BAD_OPTION] = {DQ_CLASS_CONFIG, 0,
        "an option is out of range",
        "check what the option takes (ucx_info -c -f)"},
    [DQ_CAUSE_VERB] = {DQ_CLASS_CONFIG, 0,
        "a verb failed",
        "check the limits of this process (ulimit -a), and the kernel log "
        "(dmesg)"},
    [DQ_CAUSE_POST] = {DQ_CLASS_LOCAL, 1,
        "the device refused a work request that fits its queue",
        DQ_CHECK_FIRMWARE},
    [DQ_CAUSE_NO_ANSWER] = {DQ_CLASS_PATH, 0,
        "the peer did not answer the handshake",
        "check that the peer process still runs, and that UD datagrams pass "
        "(UCX_DAQIRI_CONN_TIMEOUT)"},
    [DQ_CAUSE_REFUSED] = {DQ_CLASS_PEER, 0,
        "the peer refused the connection",
        "check the peer's log, which says why"},
    [DQ_CAUSE_PEER_GONE] = {DQ_CLASS_PEER, 0,
        "the peer has ended the connection",
        "check why the peer's process ended, or what it says in its log"},
    [DQ_CAUSE_PEER_FAILED] = {DQ_CLASS_PEER, 0,
        "the connection has failed at the peer's end",
        "check the peer's log, which says why"},
    [DQ_CAUSE_PEER_FORGOT] = {DQ_CLASS_PEER, 0,
        "the peer no longer knows this connection",
        "check whether the peer was started anew"},
    [DQ_CAUSE_LEFT] = {DQ_CLASS_LOCAL, 0,
        "an endpoint was destroyed while its sends were still under way",
        "check that the program flushes an endpoint before it destroys it"},
    [DQ_CAUSE_UCX_VERSION] = {DQ_CLASS_CONFIG, 0,
        "the plugin does not know this UCX and stays out of the job",
        "check which UCX the job loads (daqiri probe), and for a newer daqiri; "
        "DAQIRI_UCX_ANY=1 tries it all the same, and may crash the job"},
    [DQ_CAUSE_TWICE] = {DQ_CLASS_CONFIG, 0,
        "a daqiri plugin is loaded already and this copy stays out of its way",
        "check LD_PRELOAD and UCX_MODULE_DIR: the plugin is in both, or twice "
        "in one"},
    [DQ_CAUSE_DEVICE_GONE] = {DQ_CLASS_LOCAL, 0,
        "the RDMA device has been removed",
        "check who has removed it (rdma link delete, a driver reloaded), in "
        "the kernel log (dmesg)"},
    [DQ_CAUSE_GIVEN_UP] = {DQ_CLASS_LOCAL, 0,
        "UCX has given up an endpoint of this connection",
        "check the messages before this one"},
    [DQ_CAUSE_NO_QP] = {DQ_CLASS_LOCAL, 1,
        "a queue pair could not be created or connected",
        "check the kernel log (dmesg), and how many queue pairs the device "
        "has left (rdma resource)"},
    [DQ_CAUSE_PEER_LOST] = {DQ_CLASS_PEER, 1,
        "the peer has lost its queue pair",
        "check the peer's log, which says what its queue pair died of"},
    [DQ_CAUSE_ATOMIC] = {DQ_CLASS_PATH, 0,
        "a queue pair died while an atomic operation was under way: whether "
        "it was executed cannot be known, and it must not be executed twice",
        "check the line before that says what the queue pair died of"},
    [DQ_CAUSE_MISMATCH] = {DQ_CLASS_PATH, 0,
        "the two ends disagree about which messages were delivered before a "
        "queue pair died",
        "check the logs of both sides, and report it: this must not happen"},
    [DQ_CAUSE_STUCK] = {DQ_CLASS_PATH, 1,
        "a work request has neither completed nor failed",
        "check the link between the two hosts, and whether the peer's process "
        "is stopped (UCX_DAQIRI_STUCK_TIMEOUT)"},
    [DQ_CAUSE_QP_EVENT] = {DQ_CLASS_LOCAL, 1,
        "the device reports that a queue pair has failed",
        DQ_CHECK_DRIVER},
    [DQ_CAUSE_CQ_BROKEN] = {DQ_CLASS_LOCAL, 0,
        "the device reports that a completion queue has failed: it had no "
        "room for a completion, and gives none any more",
        DQ_CHECK_FIRMWARE},
    [DQ_CAUSE_SRQ_BROKEN] = {DQ_CLASS_LOCAL, 0,
        "the device reports that the shared receive queue has failed",
        DQ_CHECK_FIRMWARE},
    [DQ_CAUSE_DEVICE_FATAL] = {DQ_CLASS_LOCAL, 0,
        "the device reports that it has failed",
        DQ_CHECK_DRIVER},
    [DQ_CAUSE_PEER_UNRESPONSIVE] = {DQ_CLASS_PEER, 1,
        "the peer's device answers, but its process does not",
        "check whether the peer's process is stopped (UCX_DAQIRI_KEEPALIVE)"},
    [DQ_CAUSE_CARRIER] = {DQ_CLASS_LOCAL, 0,
        "the device reports that the completion queue of the handshake has "
        "failed: no connection can be made or replaced any more",
        DQ_CHECK_FIRMWARE},
    [DQ_CAUSE_GAP] = {DQ_CLASS_PATH, 0,
        "a message of the peer has not come, but a later one has",
        DQ_CHECK_FIRMWARE},
    [DQ_CAUSE_FORKED] = {DQ_CLASS_CONFIG, 0,
        "this process was forked while its parent used UCX, and UCX's thread "
        "that makes connections is in the parent alone",
        "check that the program forks before it uses UCX (ucp_init, MPI_Init), "
        "or that the child executes a program"},
    [DQ_CAUSE_OTHER_FABRIC] = {DQ_CLASS_CONFIG, 0,
        "the peer is on another fabric: a device in user space connects "
        "processes of one user on one host that share /dev/shm and the PID "
        "namespace",
        "check for an RDMA NIC or Soft-RoCE at both ends, or for another "
        "transport to go there (UCX_TLS=daqiri,tcp)"},
    [DQ_CAUSE_OTHER_NET] = {DQ_CLASS_CONFIG, 0,
        "there is no way from this port to the peer's",
        "check that both are of one InfiniBand subnet, or both of RoCE with "
        "addresses of one kind, IPv4 or IPv6 (daqiri interfaces, "
        "UCX_DAQIRI_GID_INDEX)"},
};

/* A message under construction: text that does not fit is cut. */
typedef struct {
    char   *buf;
    size_t size;
    size_t length;
} dq_text_t;


/* Empty, and terminated if there is room for that. */
static dq_text_t dq_text_begin(char *buf, size_t size)
{
    if (size > 0) {
        buf[0] = '\0';
    }
    return (dq_text_t){.buf = buf, .size = size};
}


__attribute__((format(printf, 2, 3)))
static void dq_text_add(dq_text_t *text, const char *format, ...)
{
    size_t room = text->size - text->length;
    va_list args;
    int length;

    if (text->size == 0) {
        return;
    }
    va_start(args, format);
    length = vsnprintf(text->buf + text->length, room, format, args);
    va_end(args);
    if (length > 0) {
        text->length += ((size_t)length < room) ? (size_t)length : room - 1;
    }
}


static const dq_triage_row_t *dq_triage_row(dq_cause_t cause)
{
    static const dq_triage_row_t unknown = {DQ_CLASS_UNKNOWN, 0,
                                            "unknown error", NULL};

    if (((unsigned)cause >= DQ_CAUSE_LAST) ||
        (dq_triage_table[cause].what == NULL)) {
        return &unknown;
    }
    return &dq_triage_table[cause];
}


const char *dq_cause_name(dq_cause_t cause)
{
    static const char *const names[DQ_CAUSE_LAST] = {
        [DQ_CAUSE_NONE] = "NONE",
        [DQ_CAUSE_LOC_LEN] = "LOC_LEN",
        [DQ_CAUSE_LOC_QP_OP] = "LOC_QP_OP",
        [DQ_CAUSE_LOC_EEC_OP] = "LOC_EEC_OP",
        [DQ_CAUSE_LOC_PROT] = "LOC_PROT",
        [DQ_CAUSE_WR_FLUSH] = "WR_FLUSH",
        [DQ_CAUSE_MW_BIND] = "MW_BIND",
        [DQ_CAUSE_BAD_RESP] = "BAD_RESP",
        [DQ_CAUSE_LOC_ACCESS] = "LOC_ACCESS",
        [DQ_CAUSE_REM_INV_REQ] = "REM_INV_REQ",
        [DQ_CAUSE_REM_ACCESS] = "REM_ACCESS",
        [DQ_CAUSE_REM_OP] = "REM_OP",
        [DQ_CAUSE_RETRY_EXC] = "RETRY_EXC",
        [DQ_CAUSE_RNR_RETRY_EXC] = "RNR_RETRY_EXC",
        [DQ_CAUSE_LOC_RDD_VIOL] = "LOC_RDD_VIOL",
        [DQ_CAUSE_REM_INV_RD_REQ] = "REM_INV_RD_REQ",
        [DQ_CAUSE_REM_ABORT] = "REM_ABORT",
        [DQ_CAUSE_INV_EECN] = "INV_EECN",
        [DQ_CAUSE_INV_EEC_STATE] = "INV_EEC_STATE",
        [DQ_CAUSE_FATAL] = "FATAL",
        [DQ_CAUSE_RESP_TIMEOUT] = "RESP_TIMEOUT",
        [DQ_CAUSE_GENERAL] = "GENERAL",
        [DQ_CAUSE_NO_DEVICE] = "NO_DEVICE",
        [DQ_CAUSE_DEVICE_OPEN] = "DEVICE_OPEN",
        [DQ_CAUSE_PORT_DOWN] = "PORT_DOWN",
        [DQ_CAUSE_NO_SRQ] = "NO_SRQ",
        [DQ_CAUSE_NO_GID] = "NO_GID",
        [DQ_CAUSE_GID_LOST] = "GID_LOST",
        [DQ_CAUSE_BAD_OPTION] = "BAD_OPTION",
        [DQ_CAUSE_VERB] = "VERB",
        [DQ_CAUSE_POST] = "POST",
        [DQ_CAUSE_NO_ANSWER] = "NO_ANSWER",
        [DQ_CAUSE_REFUSED] = "REFUSED",
        [DQ_CAUSE_PEER_GONE] = "PEER_GONE",
        [DQ_CAUSE_PEER_FORGOT] = "PEER_FORGOT",
        [DQ_CAUSE_LEFT] = "LEFT",
        [DQ_CAUSE_UCX_VERSION] = "UCX_VERSION",
        [DQ_CAUSE_TWICE] = "TWICE",
        [DQ_CAUSE_DEVICE_GONE] = "DEVICE_GONE",
        [DQ_CAUSE_GIVEN_UP] = "GIVEN_UP",
        [DQ_CAUSE_PEER_LOST] = "PEER_LOST",
        [DQ_CAUSE_NO_QP]     = "NO_QP",
        [DQ_CAUSE_ATOMIC] = "ATOMIC",
        [DQ_CAUSE_MISMATCH] = "MISMATCH",
        [DQ_CAUSE_STUCK] = "STUCK",
        [DQ_CAUSE_QP_EVENT] = "QP_EVENT",
        [DQ_CAUSE_CQ_BROKEN] = "CQ_BROKEN",
        [DQ_CAUSE_SRQ_BROKEN] = "SRQ_BROKEN",
        [DQ_CAUSE_DEVICE_FATAL] = "DEVICE_FATAL",
        [DQ_CAUSE_PEER_UNRESPONSIVE] = "PEER_UNRESPONSIVE",
        [DQ_CAUSE_CARRIER] = "CARRIER",
        [DQ_CAUSE_GAP] = "GAP",
        [DQ_CAUSE_PEER_FAILED] = "PEER_FAILED",
        [DQ_CAUSE_FORKED] = "FORKED",
        [DQ_CAUSE_OTHER_FABRIC] = "OTHER_FABRIC",
        [DQ_CAUSE_OTHER_NET] = "OTHER_NET",
    };

    return (((unsigned)cause < DQ_CAUSE_LAST) && (names[cause] != NULL))
                   ? names[cause] : "?";
}


const char *dq_triage_what(dq_cause_t cause)
{
    return dq_triage_row(cause)->what;
}


dq_class_t dq_triage_class(dq_cause_t cause)
{
    return dq_triage_row(cause)->class_id;
}


int dq_triage_is_parting(dq_cause_t cause)
{
    return (cause == DQ_CAUSE_NONE) || (cause == DQ_CAUSE_PEER_GONE) ||
           (cause == DQ_CAUSE_LEFT) || (cause == DQ_CAUSE_GIVEN_UP);
}


int dq_triage_new_qp_helps(dq_cause_t cause)
{
    return dq_triage_row(cause)->new_qp_helps;
}


const char *dq_class_name(dq_class_t class_id)
{
    static const char *const names[DQ_CLASS_LAST] = {
        [DQ_CLASS_LOCAL]   = "this process",
        [DQ_CLASS_PEER]    = "the peer",
        [DQ_CLASS_PATH]    = "the path",
        [DQ_CLASS_CONFIG]  = "configuration",
        [DQ_CLASS_FLUSH]   = "flush",
        [DQ_CLASS_UNKNOWN] = "unknown",
    };

    return ((unsigned)class_id < DQ_CLASS_LAST) ? names[class_id] : "?";
}


static void dq_triage_fact(const dq_facts_t *facts, dq_text_t *text)
{
    if (facts->subject != NULL) {
        dq_text_add(text, "%s: ", facts->subject);
    }
    dq_text_add(text, "%s", dq_triage_row(facts->cause)->what);
    if (facts->detail != NULL) {
        dq_text_add(text, " (%s)", facts->detail);
    }
    if (facts->verb != NULL) {
        dq_text_add(text, ": %s()", facts->verb);
    }
    if (facts->error != 0) {
        dq_text_add(text, ": %s", strerror(facts->error));
    }
}


static void dq_triage_numbers(const dq_facts_t *facts, dq_text_t *text)
{
    if (facts->qpn != 0) {
        dq_text_add(text, "; qp 0x%x", facts->qpn);
    }
    if (facts->peer_qpn != 0) {
        dq_text_add(text, " to qp 0x%x", facts->peer_qpn);
    }
    if (facts->peer_host != NULL) {
        dq_text_add(text, "%s %s pid %u",
                    (facts->peer_qpn != 0) ? " of" : "; peer",
                    facts->peer_host, facts->peer_pid);
    }
    if (facts->vendor_err != 0) {
        dq_text_add(text, "; vendor error 0x%x", facts->vendor_err);
    }
    if (facts->depth != 0) {
        dq_text_add(text, "; %u work requests outstanding of %u",
                    facts->outstanding, facts->depth);
    }
    if (facts->waited_ms != 0) {
        dq_text_add(text, "; gave up after %.0f ms", facts->waited_ms);
    }
}


/* What happened, with numbers, and whose doing it is. */
static void dq_triage_first_line(const dq_facts_t *facts, dq_text_t *text)
{
    dq_triage_fact(facts, text);
    dq_triage_numbers(facts, text);
    dq_text_add(text, "; class: %s",
                dq_class_name(dq_triage_class(facts->cause)));
}


/* For causes that wait or try again: how long, how often. */
static void dq_triage_waits(const dq_facts_t *facts, dq_text_t *text)
{
    switch (facts->cause) {
    case DQ_CAUSE_RETRY_EXC:
    case DQ_CAUSE_RESP_TIMEOUT:
        if (facts->ack_timeout_ms != 0) {
            dq_text_add(text,
                        "\n  waited %.1f ms for each of %u tries "
                        "(UCX_DAQIRI_TIMEOUT, UCX_DAQIRI_RETRY_COUNT)",
                        facts->ack_timeout_ms, facts->retry_cnt + 1);
        }
        break;
    case DQ_CAUSE_RNR_RETRY_EXC:
        if (facts->rnr_timer_ms != 0) {
            dq_text_add(text, "\n  the peer asked to wait %.2f ms each time "
                        "(UCX_DAQIRI_RNR_TIMEOUT)", facts->rnr_timer_ms);
        }
        break;
    default:
        break;
    }
}


/* The addresses of both ends, if the path between them may be the cause. */
static void dq_triage_check_path(const dq_facts_t *facts, dq_text_t *text)
{
    dq_class_t class_id = dq_triage_class(facts->cause);

    if ((class_id != DQ_CLASS_PATH) && (class_id != DQ_CLASS_FLUSH)) {
        return;
    }
    if ((facts->port != NULL) && (facts->gid != NULL) &&
        (facts->peer_gid != NULL)) {
        dq_text_add(text, "\n  from port %s, GID %s, to GID %s", facts->port,
                    facts->gid, facts->peer_gid);
    }
}


static void dq_triage_check_counters(const dq_facts_t *facts, dq_text_t *text)
{
    if (facts->hw_changes != NULL) {
        dq_text_add(text, "\n  counters of the port since this %s: %s",
                    facts->hw_since_up ? "connection was up"
                                       : "interface was opened",
                    facts->hw_changes);
    }
}


/* What to check at a known peer. 0: the cause has no such check. */
static int dq_triage_check_peer(const dq_facts_t *facts, dq_text_t *text)
{
    const char *host = facts->peer_host;
    uint32_t pid     = facts->peer_pid;

    if (host == NULL) {
        return 0;
    }
    switch (facts->cause) {
    case DQ_CAUSE_RETRY_EXC:
    case DQ_CAUSE_RESP_TIMEOUT:
    case DQ_CAUSE_STUCK:
        dq_text_add(text, "\n  check that pid %u still runs on %s, and the link "
                    "and MTU between the two hosts", pid, host);
        return 1;
    case DQ_CAUSE_REM_OP:
        dq_text_add(text, "\n  check that pid %u still runs on %s: of a process "
                    "that ends, the memory may go before its queue pairs do",
                    pid, host);
        return 1;
    case DQ_CAUSE_PEER_UNRESPONSIVE:
        dq_text_add(text, "\n  check whether pid %u on %s is stopped (SIGSTOP, a "
                    "debugger), or its machine far too busy "
                    "(UCX_DAQIRI_KEEPALIVE)", pid, host);
        return 1;
    default:
        return 0;
    }
}


static void dq_triage_check_gid(const dq_facts_t *facts, dq_text_t *text)
{
    if (facts->lost_gid != NULL) {
        dq_text_add(text, "\n  %s, which was at GID index %u of this port, is "
                    "gone: somebody took the address away",
                    facts->lost_gid, facts->gid_index);
    }
}


static void dq_triage_check_port(const dq_facts_t *facts, dq_text_t *text)
{
    if (facts->down_port != NULL) {
        dq_text_add(text, "\n  port %s of this process is down: check its "
                    "cable and its network interface", facts->down_port);
    }
}


static void dq_triage_check_memlock(const dq_facts_t *facts, dq_text_t *text)
{
    if ((facts->error == ENOMEM) && (facts->memlock_limit != 0) &&
        (facts->memlock_limit != UINT64_MAX)) {
        dq_text_add(text, "\n  locked memory is limited to %llu KiB "
                    "(ulimit -l): RDMA needs more, usually \"unlimited\"",
                    (unsigned long long)(facts->memlock_limit / 1024));
    }
}


/* One check: by the facts that are known, or from the table. */
static void dq_triage_check(const dq_facts_t *facts, dq_text_t *text)
{
    const char *check = dq_triage_row(facts->cause)->check;

    if (dq_triage_check_peer(facts, text)) {
        return;
    }
    if ((facts->cause == DQ_CAUSE_DEVICE_OPEN) &&
        ((facts->error == EACCES) || (facts->error == EPERM))) {
        check = "check the permissions of /dev/infiniband/uverbs*";
    }
    if (check != NULL) {
        dq_text_add(text, "\n  %s", check);
    }
}


static void dq_triage_checks(const dq_facts_t *facts, dq_text_t *text)
{
    dq_triage_waits(facts, text);
    dq_triage_check(facts, text);
    if (facts->tried_ms != 0) {
        dq_text_add(text, "\n  tried for %.0f ms to go on over another queue "
                    "pair (UCX_DAQIRI_RECOVERY_TIMEOUT)", facts->tried_ms);
    }
    dq_triage_check_path(facts, text);
    dq_triage_check_counters(facts, text);
    dq_triage_check_port(facts, text);
    dq_triage_check_gid(facts, text);
    dq_triage_check_memlock(facts, text);
}


char *dq_triage_message(const dq_facts_t *facts, char *buf, size_t size)
{
    dq_text_t text = dq_text_begin(buf, size);

    dq_triage_first_line(facts, &text);
    dq_triage_checks(facts, &text);
    return buf;
}


/* One line: what a queue pair died of, and what follows. */
static char *dq_triage_line(const dq_facts_t *facts, const char *outcome,
                            char *buf, size_t size)
{
    dq_text_t text = dq_text_begin(buf, size);

    dq_triage_first_line(facts, &text);
    dq_text_add(&text, "; %s", outcome);
    return buf;
}


char *dq_triage_recovering(const dq_facts_t *facts, char *buf, size_t size)
{
    return dq_triage_line(facts, "lost, connecting again", buf, size);
}


char *dq_triage_unreachable(const dq_facts_t *facts, char *buf, size_t size)
{
    return dq_triage_line(facts, dq_triage_row(facts->cause)->check, buf, size);
}


char *dq_triage_carrier(const dq_facts_t *facts, char *buf, size_t size)
{
    return dq_triage_line(facts, "of the handshake, and ready again", buf,
                          size);
}


char *dq_triage_recovered(const dq_recovered_t *back, char *buf, size_t size)
{
    dq_text_t text = dq_text_begin(buf, size);

    dq_text_add(&text, "daqiri: back, with %s pid %u, after %.1f ms: %u requests "
                "sent again, %u messages had arrived", back->peer_host,
                back->peer_pid, back->down_ms, back->resent, back->delivered);
    return buf;
}


/* ---- What stands still ---- */

static void dq_triage_stall_numbers(const dq_facts_t *facts,
                                    const dq_stall_t *stall, dq_text_t *text)
{
    dq_triage_numbers(facts, text);
    if (facts->outstanding > 0) {
        dq_text_add(text, ", the oldest is %u", stall->oldest_id);
        if (stall->oldest_kind != NULL) {
            dq_text_add(text, " (%s)", stall->oldest_kind);
        }
    }
    dq_text_add(text, "; %u credits of %u", stall->credits, stall->window);
    if (stall->reason != NULL) {
        dq_text_add(text, "; last refusal: %s", stall->reason);
    }
    if (stall->qp_state != NULL) {
        dq_text_add(text, "; queue pair in %s", stall->qp_state);
    }
}


static void dq_triage_stall_checks(const dq_facts_t *facts,
                                   const dq_stall_t *stall, dq_text_t *text)
{
    if (stall->is_waiting && stall->is_no_credit &&
        (facts->peer_host != NULL)) {
        dq_text_add(text, "\n  its receiver grants no credits: check that pid "
                    "%u on %s makes progress; it may compute, be stopped, or "
                    "keep all of its receive buffers", facts->peer_pid,
                    facts->peer_host);
    }
    if (stall->is_waiting && stall->is_put_off && (facts->peer_host != NULL)) {
        dq_text_add(text, "\n  it has lost its queue pair, and has not noticed: check "
                    "that pid %u on %s makes progress; it may compute, or wait in a "
                    "barrier", facts->peer_pid, facts->peer_host);
    }
    if (!stall->is_waiting && (facts->peer_host != NULL)) {
        dq_text_add(text, "\n  check that pid %u still runs on %s, and the link "
                    "and MTU between the two hosts", facts->peer_pid,
                    facts->peer_host);
    }
    if (stall->give_up_ms != 0) {
        dq_text_add(text, "\n  this queue pair will be given up after %.0f ms "
                    "(UCX_DAQIRI_STUCK_TIMEOUT)", stall->give_up_ms);
    }
    dq_triage_check_path(facts, text);
    dq_triage_check_counters(facts, text);
    dq_triage_check_port(facts, text);
    dq_triage_check_gid(facts, text);
}


char *dq_triage_stall(const dq_facts_t *facts, const dq_stall_t *stall,
                      char *buf, size_t size)
{
    dq_text_t text = dq_text_begin(buf, size);

    if (facts->subject != NULL) {
        dq_text_add(&text, "%s: ", facts->subject);
    }
    dq_text_add(&text, "%s for %.0f ms",
                stall->is_waiting ? "nothing could be sent"
                                  : "nothing has completed", stall->for_ms);
    dq_triage_stall_numbers(facts, stall, &text);
    dq_triage_stall_checks(facts, stall, &text);
    return buf;
}
