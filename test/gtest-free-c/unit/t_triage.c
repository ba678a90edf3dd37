/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Triage: the messages themselves, word for word; that no check is printed
 * without the fact behind it; that whatever the size of the buffer, what is in
 * it is the beginning of the message.
 */
#include "t_unit.h"
#include "dq/dq_triage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_OTHER = DQ_CAUSE_NO_DEVICE };


static const char *message(const dq_facts_t *facts)
{
    static char buf[2 * DQ_TRIAGE_MESSAGE_MAX];

    ck_assert_ptr_eq(dq_triage_message(facts, buf, sizeof(buf)), buf);
    return buf;
}


static int is_cause(int cause)
{
    return ((cause >= 0) && (cause <= DQ_CAUSE_GENERAL)) ||
           ((cause >= FIRST_OTHER) && (cause < DQ_CAUSE_LAST));
}


/* As much as can be known at once. */
static dq_facts_t all_facts(int cause)
{
    return (dq_facts_t){
        .cause          = (dq_cause_t)cause,
        .error          = ENOMEM,
        .verb           = "ibv_create_qp",
        .subject        = "mlx5_bond_0:1",
        .detail         = "what was asked for",
        .vendor_err     = 0x81,
        .qpn            = 0xabcdef,
        .peer_qpn       = 0x123456,
        .peer_host      = "a-host-with-a-long-name",
        .peer_pid       = 4294967295u,
        .outstanding    = 32767,
        .depth          = 32768,
        .ack_timeout_ms = 8796093.0,
        .rnr_timer_ms   = 655.36,
        .down_port      = "rocep1s0:2",
        .retry_cnt      = 6,
        .waited_ms      = 3600000,
        .lost_gid       = "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
        .gid_index      = 255,
        .memlock_limit  = 8 << 20,
        .port           = "mlx5_17:1",
        .gid            = "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
        .peer_gid       = "2001:db8:ffff:ffff:ffff:ffff:ffff:fffe",
        .hw_changes     = "local_ack_timeout_err +18446744073709551615, "
                          "out_of_sequence +18446744073709551615",
    };
}


/* ---- Word for word ---- */

typedef struct {
    dq_facts_t facts;
    const char *text;
} golden_t;

static const golden_t golden[] = {
    {{.cause = DQ_CAUSE_RETRY_EXC, .port = "rxe0:1", .gid = "fe80::1",
      .peer_gid = "fe80::2", .hw_changes = "out_of_sequence +3"},
     "the peer's device does not answer; class: the path\n"
     "  check the link and MTU between the two hosts, and whether the peer's "
     "process still runs\n"
     "  from port rxe0:1, GID fe80::1, to GID fe80::2\n"
     "  counters of the port since this interface was opened: "
     "out_of_sequence +3"},

    {{.cause = DQ_CAUSE_REM_ACCESS, .port = "rxe0:1", .gid = "fe80::1",
      .peer_gid = "fe80::2"},
     "the peer's memory may not be accessed so: wrong or expired key, or out "
     "of bounds; class: the peer\n"
     "  check whether the peer has freed what this side reads or writes"},

    {{.cause = DQ_CAUSE_RETRY_EXC},
     "the peer's device does not answer; class: the path\n"
     "  check the link and MTU between the two hosts, and whether the peer's "
     "process still runs"},

    {{.cause = DQ_CAUSE_RETRY_EXC, .qpn = 0x11, .peer_qpn = 0x2a,
      .peer_host = "n7", .peer_pid = 99, .vendor_err = 0x81, .outstanding = 12,
      .depth = 256, .ack_timeout_ms = 536.87, .retry_cnt = 6},
     "the peer's device does not answer; qp 0x11 to qp 0x2a of n7 pid 99; "
     "vendor error 0x81; 12 work requests outstanding of 256; class: the path\n"
     "  waited 536.9 ms for each of 7 tries (UCX_DAQIRI_TIMEOUT, "
     "UCX_DAQIRI_RETRY_COUNT)\n"
     "  check that pid 99 still runs on n7, and the link and MTU between the "
     "two hosts"},

    {{.cause = DQ_CAUSE_RESP_TIMEOUT, .ack_timeout_ms = 8, .retry_cnt = 0},
     "the peer's device answered too late; class: the path\n"
     "  waited 8.0 ms for each of 1 tries (UCX_DAQIRI_TIMEOUT, "
     "UCX_DAQIRI_RETRY_COUNT)\n"
     "  check the link and MTU between the two hosts, and how busy they are"},

    {{.cause = DQ_CAUSE_REM_OP, .qpn = 0x11, .peer_qpn = 0x2a,
      .peer_host = "n7", .peer_pid = 99},
     "the peer's device could not complete the request; qp 0x11 to qp 0x2a of "
     "n7 pid 99; class: the peer\n"
     "  check that pid 99 still runs on n7: of a process that ends, the memory "
     "may go before its queue pairs do"},

    {{.cause = DQ_CAUSE_PEER_UNRESPONSIVE, .qpn = 0x11, .peer_qpn = 0x2a,
      .peer_host = "n7", .peer_pid = 99, .depth = 8, .waited_ms = 1000},
     "the peer's device answers, but its process does not; qp 0x11 to qp 0x2a "
     "of n7 pid 99; 0 work requests outstanding of 8; gave up after 1000 ms; "
     "class: the peer\n"
     "  check whether pid 99 on n7 is stopped (SIGSTOP, a debugger), or its "
     "machine far too busy (UCX_DAQIRI_KEEPALIVE)"},

    {{.cause = DQ_CAUSE_LOC_QP_OP, .qpn = 0x11, .down_port = "rxe0:1"},
     "the device could not execute a work request; qp 0x11; class: this "
     "process\n"
     "  check the kernel log (dmesg) of this host, and its route to the peer\n"
     "  port rxe0:1 of this process is down: check its cable and its network "
     "interface"},

    {{.cause = DQ_CAUSE_DEVICE_GONE, .qpn = 0x11, .error = EIO},
     "the RDMA device has been removed: Input/output error; qp 0x11; class: "
     "this process\n"
     "  check who has removed it (rdma link delete, a driver reloaded), in the "
     "kernel log (dmesg)"},

    {{.cause = DQ_CAUSE_GIVEN_UP, .subject = "daqiri", .qpn = 0x11},
     "daqiri: UCX has given up an endpoint of this connection; qp 0x11; "
     "class: this process\n"
     "  check the messages before this one"},

    {{.cause = DQ_CAUSE_RNR_RETRY_EXC, .rnr_timer_ms = 0.64},
     "the peer has no receive buffer posted; class: the peer\n"
     "  the peer asked to wait 0.64 ms each time (UCX_DAQIRI_RNR_TIMEOUT)\n"
     "  check the peer's log: for each message it has promised a receive "
     "buffer"},

    {{.cause = DQ_CAUSE_GID_LOST, .subject = "daqiri", .lost_gid = "10.2.0.1",
      .gid_index = 3},
     "daqiri: this interface has no address any more; class: configuration\n"
     "  check what takes addresses away here (DHCP, NetworkManager)\n"
     "  10.2.0.1, which was at GID index 3 of this port, is gone: somebody took "
     "the address away"},

    {{.cause = DQ_CAUSE_VERB, .verb = "ibv_reg_mr", .error = ENOMEM,
      .memlock_limit = 65536},
     "a verb failed: ibv_reg_mr(): Cannot allocate memory; class: "
     "configuration\n"
     "  check the limits of this process (ulimit -a), and the kernel log "
     "(dmesg)\n"
     "  locked memory is limited to 64 KiB (ulimit -l): RDMA needs more, "
     "usually \"unlimited\""},

    {{.cause = DQ_CAUSE_DEVICE_OPEN, .subject = "mlx5_0", .error = EACCES},
     "mlx5_0: the RDMA device cannot be opened: Permission denied; class: "
     "configuration\n"
     "  check the permissions of /dev/infiniband/uverbs*"},

    {{.cause = DQ_CAUSE_NO_DEVICE},
     "this machine has no RDMA device; class: configuration\n"
     "  \"daqiri run COMMAND\" uses softverbs, the user-space device that "
     "comes with daqiri"},

    {{.cause = DQ_CAUSE_PORT_DOWN, .subject = "mlx5_0:1", .detail = "DOWN"},
     "mlx5_0:1: the port is not active (DOWN); class: configuration\n"
     "  check the cable, the switch, and the network interface (ip link)"},

    {{.cause = DQ_CAUSE_BAD_OPTION, .subject = "UCX_DAQIRI_SQ_DEPTH",
      .detail = "1 is not within 4 and 32768"},
     "UCX_DAQIRI_SQ_DEPTH: an option is out of range "
     "(1 is not within 4 and 32768); class: configuration\n"
     "  check what the option takes (ucx_info -c -f)"},

    {{.cause = DQ_CAUSE_NO_ANSWER, .waited_ms = 60000, .peer_host = "n7",
      .peer_pid = 3},
     "the peer did not answer the handshake; peer n7 pid 3; gave up after "
     "60000 ms; class: the path\n"
     "  check that the peer process still runs, and that UD datagrams pass "
     "(UCX_DAQIRI_CONN_TIMEOUT)"},

    {{.cause = DQ_CAUSE_PEER_LOST, .qpn = 0x11},
     "the peer has lost its queue pair; qp 0x11; class: the peer\n"
     "  check the peer's log, which says what its queue pair died of"},

    {{.cause = DQ_CAUSE_ATOMIC, .qpn = 0x11},
     "a queue pair died while an atomic operation was under way: whether it was "
     "executed cannot be known, and it must not be executed twice; qp 0x11; "
     "class: the path\n"
     "  check the line before that says what the queue pair died of"},

    {{.cause = DQ_CAUSE_MISMATCH, .qpn = 0x11},
     "the two ends disagree about which messages were delivered before a queue "
     "pair died; qp 0x11; class: the path\n"
     "  check the logs of both sides, and report it: this must not happen"},

    {{.cause = DQ_CAUSE_REM_ABORT, .qpn = 0x11,
      .hw_changes = "link_downed +1", .hw_since_up = 1},
     "the peer's device aborted the request; qp 0x11; class: the peer\n"
     "  check the peer's log, and the kernel log (dmesg) of its host\n"
     "  counters of the port since this connection was up: link_downed +1"},

    {{.cause = DQ_CAUSE_REM_ABORT, .qpn = 0x11, .tried_ms = 2999.7},
     "the peer's device aborted the request; qp 0x11; class: the peer\n"
     "  check the peer's log, and the kernel log (dmesg) of its host\n"
     "  tried for 3000 ms to go on over another queue pair "
     "(UCX_DAQIRI_RECOVERY_TIMEOUT)"},

    {{.cause = DQ_CAUSE_UCX_VERSION, .detail = "this is UCX 1.99.0"},
     "the plugin does not know this UCX and stays out of the job "
     "(this is UCX 1.99.0); class: configuration\n"
     "  check which UCX the job loads (daqiri probe), and for a newer daqiri; "
     "DAQIRI_UCX_ANY=1 tries it all the same, and may crash the job"},
};


START_TEST(test_golden)
{
    ck_assert_str_eq(message(&golden[_i].facts), golden[_i].text);
}
END_TEST


/* Lost, and back: one line each, and nothing past the end of the buffer. */
START_TEST(test_lost_and_back)
{
    static const dq_facts_t lost = {.cause = DQ_CAUSE_RETRY_EXC,
                                    .subject = "daqiri", .qpn = 0x11,
                                    .peer_qpn = 0x2a, .peer_host = "n7",
                                    .peer_pid = 99, .ack_timeout_ms = 500};
    static const dq_recovered_t back = {.peer_host = "n7", .peer_pid = 99,
                                     .down_ms = 12.34, .resent = 7, .delivered = 2};
    static const dq_facts_t ours = {.cause = DQ_CAUSE_WR_FLUSH,
                                    .subject = "daqiri", .qpn = 3};
    static const dq_facts_t apart = {.cause = DQ_CAUSE_OTHER_FABRIC,
                                     .subject = "softverbs0:1",
                                     .detail = "GID fd00::1, here fd01::1"};
    char text[DQ_TRIAGE_MESSAGE_MAX + 1];
    size_t size;

    ck_assert_str_eq(dq_triage_carrier(&ours, text, sizeof(text)),
                     "daqiri: a work request was flushed after an earlier error; "
                     "qp 0x3; class: flush; of the handshake, and "
                     "ready again");
    ck_assert_str_eq(dq_triage_unreachable(&apart, text, sizeof(text)),
                     "softverbs0:1: the peer is on another fabric: a device in "
                     "user space connects processes of one user on one host "
                     "that share /dev/shm and the PID namespace (GID fd00::1, "
                     "here fd01::1); class: configuration; check for an "
                     "RDMA NIC or Soft-RoCE at both ends, or for another "
                     "transport to go there (UCX_TLS=daqiri,tcp)");
    ck_assert_str_eq(dq_triage_recovering(&lost, text, sizeof(text)),
                     "daqiri: the peer's device does not answer; qp 0x11 to qp "
                     "0x2a of n7 pid 99; class: the path; lost, "
                     "connecting again");
    ck_assert_str_eq(dq_triage_recovered(&back, text, sizeof(text)),
                     "daqiri: back, with n7 pid 99, after 12.3 ms: 7 requests "
                     "sent again, 2 messages had arrived");
    for (size = 0; size < 120; size++) {
        memset(text, 'x', sizeof(text));
        dq_triage_recovering(&lost, text, size);
        ck_assert((size == 0) || (strlen(text) < size));
        ck_assert_int_eq(text[size], 'x');
        memset(text, 'x', sizeof(text));
        dq_triage_recovered(&back, text, size);
        ck_assert((size == 0) || (strlen(text) < size));
        ck_assert_int_eq(text[size], 'x');
    }
}
END_TEST


/* A peer that takes nothing, and a request that does not end. */
START_TEST(test_stall)
{
    static const dq_facts_t facts = {.subject = "daqiri", .qpn = 0x11,
                                     .peer_qpn = 0x2a, .peer_host = "n7",
                                     .peer_pid = 99, .outstanding = 3,
                                     .depth = 8, .down_port = "rxe0:1"};
    static const dq_facts_t bare  = {.cause = DQ_CAUSE_STUCK};
    static const dq_stall_t full  = {.is_waiting = 1, .is_no_credit = 1,
                                     .reason = "no_credit", .for_ms = 30000.4,
                                     .credits = 1, .window = 256,
                                     .oldest_id = 77, .qp_state = "RTS"};
    static const dq_stall_t stuck = {.for_ms = 100, .give_up_ms = 120000,
                                     .oldest_id = 78, .window = 4,
                                     .oldest_kind = "WRITE"};
    static const dq_stall_t off   = {.is_waiting = 1, .is_put_off = 1,
                                     .reason = "not_up", .for_ms = 30000,
                                     .oldest_id = 79, .qp_state = "INIT"};
    char text[DQ_TRIAGE_MESSAGE_MAX + 1];
    size_t size;

    ck_assert_str_eq(dq_triage_stall(&facts, &off, text, sizeof(text)),
                     "daqiri: nothing could be sent for 30000 ms; qp 0x11 to qp "
                     "0x2a of n7 pid 99; 3 work requests outstanding of 8, the "
                     "oldest is 79; 0 credits of 0; last refusal: not_up; queue "
                     "pair in INIT\n"
                     "  it has lost its queue pair, and has not noticed: check that "
                     "pid 99 on n7 makes progress; it may compute, or wait in a "
                     "barrier\n"
                     "  port rxe0:1 of this process is down: check its cable "
                     "and its network interface");
    ck_assert_str_eq(dq_triage_stall(&facts, &full, text, sizeof(text)),
                     "daqiri: nothing could be sent for 30000 ms; qp 0x11 to qp "
                     "0x2a of n7 pid 99; 3 work requests outstanding of 8, the "
                     "oldest is 77; 1 credits of 256; last refusal: no_credit; "
                     "queue pair in RTS\n"
                     "  its receiver grants no credits: check that pid 99 on n7 "
                     "makes progress; it may compute, be stopped, or keep all "
                     "of its receive buffers\n"
                     "  port rxe0:1 of this process is down: check its cable "
                     "and its network interface");
    ck_assert_str_eq(dq_triage_stall(&facts, &stuck, text, sizeof(text)),
                     "daqiri: nothing has completed for 100 ms; qp 0x11 to qp "
                     "0x2a of n7 pid 99; 3 work requests outstanding of 8, the "
                     "oldest is 78 (WRITE); 0 credits of 4\n"
                     "  check that pid 99 still runs on n7, and the link and MTU "
                     "between the two hosts\n"
                     "  this queue pair will be given up after 120000 ms "
                     "(UCX_DAQIRI_STUCK_TIMEOUT)\n"
                     "  port rxe0:1 of this process is down: check its cable "
                     "and its network interface");
    ck_assert_str_eq(dq_triage_stall(&bare, &(dq_stall_t){0}, text,
                                     sizeof(text)),
                     "nothing has completed for 0 ms; 0 credits of 0");
    for (size = 0; size < 600; size++) {
        memset(text, 'x', sizeof(text));
        dq_triage_stall(&facts, &stuck, text, size);
        ck_assert((size == 0) || (strlen(text) < size));
        ck_assert_int_eq(text[size], 'x');
    }
}
END_TEST


/* ---- Every cause ---- */

START_TEST(test_every_cause_has_a_sentence)
{
    dq_facts_t facts = {.cause = DQ_CAUSE_NONE};
    char *seen[DQ_CAUSE_LAST] = {NULL};
    int cause, other;

    for (cause = 0; cause < DQ_CAUSE_LAST; cause++) {
        if (!is_cause(cause)) {
            continue;
        }
        facts.cause = (dq_cause_t)cause;
        seen[cause] = strdup(message(&facts));
        ck_assert_msg(strstr(seen[cause], "unknown error") == NULL,
                      "cause %d has no sentence", cause);
        ck_assert_int_gt(strlen(seen[cause]), 5);
        ck_assert_int_lt(dq_triage_class(facts.cause), DQ_CLASS_LAST);
        for (other = 0; other < cause; other++) {
            ck_assert_msg((seen[other] == NULL) ||
                                  (strcmp(seen[other], seen[cause]) != 0),
                          "causes %d and %d read alike", other, cause);
        }
    }
    for (cause = 0; cause < DQ_CAUSE_LAST; cause++) {
        free(seen[cause]);
    }
}
END_TEST


START_TEST(test_unknown_causes)
{
    static const int strange[] = {-1, DQ_CAUSE_GENERAL + 1, FIRST_OTHER - 1,
                                  DQ_CAUSE_LAST, 255, 1 << 30};
    dq_facts_t facts = {.cause = DQ_CAUSE_NONE};
    size_t i;

    for (i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
        facts.cause = (dq_cause_t)strange[i];
        ck_assert_str_eq(message(&facts), "unknown error; class: unknown");
        ck_assert_int_eq(dq_triage_class(facts.cause), DQ_CLASS_UNKNOWN);
        ck_assert(!dq_triage_new_qp_helps(facts.cause));
    }
}
END_TEST


/* Whose doing it is, and whether to try again: what the transport acts on. */
START_TEST(test_judgement)
{
    static const struct {
        dq_cause_t cause;
        dq_class_t class_id;
        int        helps;
    } want[] = {
        {DQ_CAUSE_LOC_LEN, DQ_CLASS_LOCAL, 0},
        {DQ_CAUSE_LOC_PROT, DQ_CLASS_LOCAL, 0},
        {DQ_CAUSE_LOC_QP_OP, DQ_CLASS_LOCAL, 1},
        {DQ_CAUSE_WR_FLUSH, DQ_CLASS_FLUSH, 1},
        {DQ_CAUSE_REM_ACCESS, DQ_CLASS_PEER, 0},
        {DQ_CAUSE_REM_INV_REQ, DQ_CLASS_PEER, 0},
        {DQ_CAUSE_RETRY_EXC, DQ_CLASS_PATH, 1},
        {DQ_CAUSE_RNR_RETRY_EXC, DQ_CLASS_PEER, 1},
        {DQ_CAUSE_REM_OP, DQ_CLASS_PEER, 1},
        {DQ_CAUSE_FATAL, DQ_CLASS_LOCAL, 1},
        {DQ_CAUSE_STUCK, DQ_CLASS_PATH, 1},
        {DQ_CAUSE_PEER_UNRESPONSIVE, DQ_CLASS_PEER, 1},
        {DQ_CAUSE_PEER_GONE, DQ_CLASS_PEER, 0},
        {DQ_CAUSE_PEER_FAILED, DQ_CLASS_PEER, 0},
        {DQ_CAUSE_REFUSED, DQ_CLASS_PEER, 0},
        {DQ_CAUSE_LEFT, DQ_CLASS_LOCAL, 0},
        {DQ_CAUSE_NO_ANSWER, DQ_CLASS_PATH, 0},
        {DQ_CAUSE_BAD_OPTION, DQ_CLASS_CONFIG, 0},
        {DQ_CAUSE_NO_DEVICE, DQ_CLASS_CONFIG, 0},
    };
    size_t i;

    for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        ck_assert_int_eq(dq_triage_class(want[i].cause), want[i].class_id);
        ck_assert_int_eq(dq_triage_new_qp_helps(want[i].cause),
                         want[i].helps);
    }
    for (i = FIRST_OTHER; i < DQ_CAUSE_LAST; i++) {
        ck_assert_int_ne(dq_triage_class((dq_cause_t)i), DQ_CLASS_FLUSH);
        ck_assert_int_ne(dq_triage_class((dq_cause_t)i), DQ_CLASS_UNKNOWN);
    }
}
END_TEST


START_TEST(test_class_names)
{
    int i, j;

    for (i = 0; i < DQ_CLASS_LAST; i++) {
        ck_assert_str_ne(dq_class_name((dq_class_t)i), "?");
        for (j = 0; j < i; j++) {
            ck_assert_str_ne(dq_class_name((dq_class_t)i),
                             dq_class_name((dq_class_t)j));
        }
    }
    ck_assert_str_eq(dq_class_name(DQ_CLASS_LAST), "?");
    ck_assert_str_eq(dq_class_name((dq_class_t)-1), "?");
}
END_TEST


/* ---- No check without its fact ---- */

/* Words that may be there only if this field is known. */
typedef struct {
    const char *words;
    size_t     at, length; /* of the field in dq_facts_t                     */
} guard_t;

#define GUARD(_words, _field) \
    {_words, offsetof(dq_facts_t, _field), sizeof(((dq_facts_t*)0)->_field)}

static const guard_t guards[] = {
    GUARD("mlx5_bond_0", subject),
    GUARD("what was asked for", detail),
    GUARD("ibv_create_qp", verb),
    GUARD("Cannot allocate memory", error),
    GUARD("locked memory", error),
    GUARD("locked memory", memlock_limit),
    GUARD("vendor error", vendor_err),
    GUARD("qp 0xabcdef", qpn),
    GUARD("qp 0x123456", peer_qpn),
    GUARD("a-host-with", peer_host),
    GUARD("outstanding", depth),
    GUARD("gave up after", waited_ms),
    GUARD("UCX_DAQIRI_TIMEOUT", ack_timeout_ms),
    GUARD("UCX_DAQIRI_RNR_TIMEOUT", rnr_timer_ms),
    GUARD("still runs on", peer_host),
    GUARD("took the address away", lost_gid),
    GUARD("rocep1s0:2", down_port),
    GUARD("from port mlx5_17:1", port),
    GUARD("from port", gid),
    GUARD("from port", peer_gid),
    GUARD("counters of the port", hw_changes),
};


START_TEST(test_no_check_without_its_fact)
{
    const guard_t *guard = &guards[_i];
    dq_facts_t facts;
    int cause, seen = 0;

    for (cause = 0; cause < DQ_CAUSE_LAST; cause++) {
        if (!is_cause(cause)) {
            continue;
        }
        facts = all_facts(cause);
        seen += (strstr(message(&facts), guard->words) != NULL);
        memset((char*)&facts + guard->at, 0, guard->length);
        ck_assert_msg(strstr(message(&facts), guard->words) == NULL,
                      "cause %d says \"%s\" without knowing it", cause,
                      guard->words);
    }
    ck_assert_int_gt(seen, 0);
}
END_TEST


/* With nothing known, a message is what happened and one line of what to check,
 * or what else to do about it. */
START_TEST(test_bare_causes)
{
    dq_facts_t facts = {.cause = DQ_CAUSE_NONE};
    const char *line;
    int cause;

    ck_assert_ptr_null(strchr(message(&facts), '\n'));
    for (cause = DQ_CAUSE_NONE + 1; cause < DQ_CAUSE_LAST; cause++) {
        facts.cause = (dq_cause_t)cause;
        line        = strchr(message(&facts), '\n');
        ck_assert_msg((line != NULL) == is_cause(cause), "cause %d", cause);
        if (line != NULL) {
            ck_assert_msg((strncmp(line, "\n  check ", 9) == 0) ||
                                  (cause == DQ_CAUSE_NO_DEVICE) ||
                                  (cause == DQ_CAUSE_UCX_VERSION),
                          "cause %d says \"%s\"", cause, line);
            ck_assert_ptr_null(strchr(line + 1, '\n'));
        }
    }
}
END_TEST


/* What is known of the peer is better than what could be said of any. */
START_TEST(test_one_check)
{
    dq_facts_t facts;
    const char *check;
    int cause;

    for (cause = DQ_CAUSE_NONE + 1; cause < DQ_CAUSE_LAST; cause++) {
        facts = (dq_facts_t){.cause = (dq_cause_t)cause, .peer_host = "n7",
                             .error = EACCES};
        check = strstr(message(&facts), "\n  check ");
        ck_assert((check == NULL) || (strstr(check + 1, "\n  check ") == NULL));
    }
}
END_TEST


START_TEST(test_memlock_limits)
{
    dq_facts_t facts = {.cause = DQ_CAUSE_VERB, .error = ENOMEM};

    facts.memlock_limit = UINT64_MAX; /* no limit: not the reason */
    ck_assert_ptr_null(strstr(message(&facts), "locked"));
    facts.memlock_limit = UINT64_MAX - 1;
    ck_assert_ptr_nonnull(strstr(message(&facts), "18014398509481983 KiB"));
    facts.memlock_limit = 8 << 20;
    ck_assert_ptr_nonnull(strstr(message(&facts), "8192 KiB"));
    facts.error = EINVAL; /* nor for any other errno */
    ck_assert_ptr_null(strstr(message(&facts), "locked"));
}
END_TEST


START_TEST(test_permissions)
{
    dq_facts_t facts = {.cause = DQ_CAUSE_DEVICE_OPEN};

    facts.error = EPERM;
    ck_assert_ptr_nonnull(strstr(message(&facts), "uverbs"));
    facts.error = ENODEV;
    ck_assert_ptr_null(strstr(message(&facts), "uverbs"));
}
END_TEST


/* Checks are lines of their own, each indented by two. */
START_TEST(test_shape)
{
    dq_facts_t facts;
    const char *line;
    int cause;

    for (cause = 0; cause < DQ_CAUSE_LAST; cause++) {
        facts = all_facts(cause);
        line  = message(&facts);
        ck_assert_int_ne(line[0], '\n');
        ck_assert_int_ne(line[strlen(line) - 1], '\n');
        while ((line = strchr(line, '\n')) != NULL) {
            line++;
            ck_assert_msg(strncmp(line, "  ", 2) == 0 && (line[2] != ' '),
                          "cause %d: a check begins \"%.10s\"", cause, line);
        }
    }
}
END_TEST


/* ---- Room ---- */

START_TEST(test_longest_fits)
{
    dq_facts_t facts;
    int cause;

    for (cause = 0; cause < DQ_CAUSE_LAST; cause++) {
        facts = all_facts(cause);
        ck_assert_uint_lt(strlen(message(&facts)), DQ_TRIAGE_MESSAGE_MAX);
    }
}
END_TEST


START_TEST(test_every_truncation)
{
    dq_facts_t facts = all_facts(DQ_CAUSE_RETRY_EXC);
    char *whole      = strdup(message(&facts));
    size_t length    = strlen(whole);
    size_t size, want;
    char *buf;

    for (size = 0; size <= length + 2; size++) {
        buf = malloc(size + 1);
        ck_assert_ptr_nonnull(buf);
        memset(buf, '#', size + 1);
        T_NEED(dq_triage_message(&facts, buf, size) == buf);
        T_NEED_EQ(buf[size], '#');
        if (size > 0) {
            want = (size - 1 < length) ? size - 1 : length;
            T_NEED_EQ(strnlen(buf, size), want);
            T_NEED(strncmp(buf, whole, want) == 0);
        }
        free(buf);
    }
    free(whole);
}
END_TEST


static Suite *suite_triage(void)
{
    Suite *suite = suite_create("triage");
    TCase *words = tcase_create("words");

    tcase_set_timeout(words, T_TIMEOUT);
    tcase_add_loop_test(words, test_golden, 0,
                        sizeof(golden) / sizeof(golden[0]));
    tcase_add_test(words, test_lost_and_back);
    tcase_add_test(words, test_stall);
    tcase_add_test(words, test_every_cause_has_a_sentence);
    tcase_add_test(words, test_unknown_causes);
    tcase_add_test(words, test_judgement);
    tcase_add_test(words, test_class_names);
    tcase_add_loop_test(words, test_no_check_without_its_fact, 0,
                        sizeof(guards) / sizeof(guards[0]));
    tcase_add_test(words, test_bare_causes);
    tcase_add_test(words, test_one_check);
    tcase_add_test(words, test_memlock_limits);
    tcase_add_test(words, test_permissions);
    tcase_add_test(words, test_shape);
    tcase_add_test(words, test_longest_fits);
    tcase_add_test(words, test_every_truncation);
    suite_add_tcase(suite, words);
    return suite;
}

T_MAIN(suite_triage)
