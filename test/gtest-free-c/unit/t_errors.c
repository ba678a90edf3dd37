/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * docs/errors.md is the table of dq_triage, printed, with a sentence about each
 * cause for users. `t_errors --print` prints it; the test compares, and sees that
 * the table is complete: every status that a completion may have, and every other
 * cause.
 */
#include "t.h"
#include "dq/dq_triage.h"

#include <infiniband/verbs.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char head[] =
        "<!-- SPDX-License-Identifier: BSD-3-Clause -->\n"
        "# Messages about errors\n"
        "\n"
        "For users who have a message of daqiri's in their log.\n"
        "\n"
        "The first line of a message says what happened, with numbers, and whose "
        "doing it probably is (the class). The lines below\n"
        "say what to check. What is not known is left out. An example:\n"
        "\n";

static const char notes[] =
        "\n"
        "A queue pair dies of its first completion that has an error and is no "
        "flush. The completions that follow are flushes. They\n"
        "are counted and not reported. \"May help\" in the column \"new queue pair\" "
        "means that daqiri replaces the queue pair and the\n"
        "connection goes on ([recovery.md](recovery.md)). The message then appears in "
        "full only if that fails, too. Elsewhere the\n"
        "endpoint, or the call that asked, fails at once.\n"
        "\n"
        "The table is printed from `src/dq/dq_triage.c`, and a test compares the two. "
        "After a change, in the build folder:\n"
        "\n"
        "<!-- not run: it writes this page -->\n"
        "```sh\n"
        "make -C test/gtest-free-c/unit print-errors\n"
        "```\n"
        "\n"
        "| what you see | cause; class | new queue pair | what it means | what to do "
        "|\n"
        "|---|---|---|---|---|\n";

/* What it means to who reads it, where the table's own sentence does not say. */
static const char *const meanings[DQ_CAUSE_LAST] = {
    [DQ_CAUSE_LOC_LEN] = "The two ends use segments of different length.",
    [DQ_CAUSE_LOC_QP_OP] =
        "The request was malformed, or the device had no way to the peer any "
        "more.",
    [DQ_CAUSE_LOC_EEC_OP] =
        "daqiri uses no EE contexts: the status is the device's mistake.",
    [DQ_CAUSE_LOC_PROT] =
        "The program freed or unmapped memory that a request still used.",
    [DQ_CAUSE_WR_FLUSH] =
        "The queue pair failed before this request. The cause was reported "
        "earlier.",
    [DQ_CAUSE_MW_BIND] =
        "daqiri binds no memory windows: the status is the device's mistake.",
    [DQ_CAUSE_BAD_RESP] = "A packet came from another device or was damaged.",
    [DQ_CAUSE_LOC_ACCESS] =
        "The peer used a wrong address or key for memory of this process.",
    [DQ_CAUSE_REM_INV_REQ] =
        "The request was too long for the peer's buffer, or of a kind that the "
        "peer does not allow.",
    [DQ_CAUSE_REM_ACCESS] =
        "The peer freed the memory, or the program used a wrong address or key.",
    [DQ_CAUSE_REM_OP] = "The peer's process is ending, or its device failed.",
    [DQ_CAUSE_RETRY_EXC] =
        "No acknowledgement came for any try. The peer's process or host died, "
        "or the network loses packets.",
    [DQ_CAUSE_RNR_RETRY_EXC] =
        "The peer broke its promise of receive buffers, or it is stopped.",
    [DQ_CAUSE_LOC_RDD_VIOL] =
        "daqiri uses no reliable datagrams: the status is the device's mistake.",
    [DQ_CAUSE_REM_INV_RD_REQ] =
        "daqiri uses no reliable datagrams: the status is the device's mistake.",
    [DQ_CAUSE_REM_ABORT] =
        "The peer's device gave up the request because of an error of its own.",
    [DQ_CAUSE_INV_EECN] =
        "daqiri uses no EE contexts: the status is the device's mistake.",
    [DQ_CAUSE_INV_EEC_STATE] =
        "daqiri uses no EE contexts: the status is the device's mistake.",
    [DQ_CAUSE_FATAL] = "The device or its driver failed.",
    [DQ_CAUSE_RESP_TIMEOUT] =
        "The answer to a READ or an atomic took longer than the device waits.",
    [DQ_CAUSE_GENERAL] = "The device knows no better reason.",
    [DQ_CAUSE_NO_DEVICE] = "libibverbs lists no device.",
    [DQ_CAUSE_DEVICE_OPEN] =
        "The user may not use the device, or its driver failed.",
    [DQ_CAUSE_PORT_DOWN] = "The port has no link.",
    [DQ_CAUSE_NO_SRQ] = "daqiri cannot use this device.",
    [DQ_CAUSE_NO_GID] =
        "UCX_DAQIRI_GID_INDEX names an empty entry of the GID table.",
    [DQ_CAUSE_GID_LOST] =
        "Peers know the interface by this address. It can make or replace no "
        "connection until the address is back.",
    [DQ_CAUSE_BAD_OPTION] = "daqiri does not start with this value.",
    [DQ_CAUSE_VERB] =
        "The device or the kernel refused a resource, most often for lack of "
        "memory.",
    [DQ_CAUSE_POST] = "The device is short of a resource for too long, or broken.",
    [DQ_CAUSE_NO_ANSWER] =
        "The peer's process ended or does not run yet, or the network drops "
        "datagrams.",
    [DQ_CAUSE_REFUSED] =
        "The peer has other settings, or cannot serve another connection.",
    [DQ_CAUSE_PEER_GONE] =
        "The peer's process closed its interface or its endpoint.",
    [DQ_CAUSE_PEER_FORGOT] = "The peer's end of the connection was made anew.",
    [DQ_CAUSE_LEFT] = "The messages may or may not have arrived.",
    [DQ_CAUSE_UCX_VERSION] = "The job goes on without daqiri.",
    [DQ_CAUSE_TWICE] = "The first copy works; the job goes on.",
    [DQ_CAUSE_DEVICE_GONE] = "All connections on it fail.",
    [DQ_CAUSE_GIVEN_UP] = "UCX or the program closed the endpoint by force.",
    [DQ_CAUSE_PEER_LOST] =
        "The peer asked for a new queue pair, because its own one died.",
    [DQ_CAUSE_NO_QP] = "The device failed to create or connect the queue pair.",
    [DQ_CAUSE_ATOMIC] = "The operation may or may not have been executed.",
    [DQ_CAUSE_MISMATCH] =
        "A device acknowledged a message that the peer has not received.",
    [DQ_CAUSE_STUCK] = "The device gives no answer about a request for too long.",
    [DQ_CAUSE_QP_EVENT] = "The device told by an event and not by a completion.",
    [DQ_CAUSE_CQ_BROKEN] = "The interface is unusable.",
    [DQ_CAUSE_SRQ_BROKEN] = "The interface can receive nothing any more.",
    [DQ_CAUSE_DEVICE_FATAL] = "All connections on it fail.",
    [DQ_CAUSE_PEER_UNRESPONSIVE] =
        "The peer's process is stopped, or its host is overloaded.",
    [DQ_CAUSE_CARRIER] =
        "Connections that are up go on; the next loss of a queue pair is final.",
    [DQ_CAUSE_GAP] = "A device acknowledged a message and did not deliver it.",
    [DQ_CAUSE_PEER_FAILED] =
        "The peer reported an error of its own and gave up the connection.",
    [DQ_CAUSE_FORKED] = "The child cannot connect to anybody.",
    [DQ_CAUSE_OTHER_FABRIC] =
        "softverbs cannot reach the peer; UCX needs another transport.",
    [DQ_CAUSE_OTHER_NET] =
        "The two ports use different networks or kinds of address.",
};


static int is_cause(int cause)
{
    return strcmp(dq_cause_name((dq_cause_t)cause), "?") != 0;
}


/* A newline would end the table; test_complete sees to `|`. */
static void print_cell(FILE *out, const char *text)
{
    fputs("| ", out);
    for (; *text != '\0'; text++) {
        fputc((*text == '\n') ? ' ' : *text, out);
    }
    fputc(' ', out);
}


/* What to check where nothing more is known: the lines below the first. */
static const char *check_of(int cause, char *message, size_t size)
{
    const dq_facts_t facts = {.cause = (dq_cause_t)cause};
    char *line;

    dq_triage_message(&facts, message, size);
    line = message + strcspn(message, "\n");
    return line + strspn(line, "\n ");
}


static void print_cause(FILE *out, int cause)
{
    char message[DQ_TRIAGE_MESSAGE_MAX];

    print_cell(out, dq_triage_what((dq_cause_t)cause));
    fprintf(out, "| %s; %s ", dq_cause_name((dq_cause_t)cause),
            dq_class_name(dq_triage_class((dq_cause_t)cause)));
    print_cell(out, dq_triage_new_qp_helps((dq_cause_t)cause) ? "may help" : "no");
    print_cell(out, (meanings[cause] != NULL) ? meanings[cause] : "");
    print_cell(out, check_of(cause, message, sizeof(message)));
    fputs("|\n", out);
}


static void print_example(FILE *out)
{
    const dq_facts_t facts = {
        .cause          = DQ_CAUSE_RETRY_EXC,
        .subject        = "daqiri",
        .qpn            = 0x11,
        .peer_qpn       = 0x2a,
        .peer_host      = "n7",
        .peer_pid       = 4711,
        .vendor_err     = 0x81,
        .outstanding    = 12,
        .depth          = 256,
        .ack_timeout_ms = 536.87,
        .retry_cnt      = 6,
        .tried_ms       = 30012,
        .port           = "rocep1s0:1",
        .gid            = "10.0.0.1",
        .peer_gid       = "10.0.0.7",
        .hw_changes     = "local_ack_timeout_err +7",
        .hw_since_up    = 1,
    };
    char message[DQ_TRIAGE_MESSAGE_MAX];
    char *line, *rest;

    dq_triage_message(&facts, message, sizeof(message));
    for (line = strtok_r(message, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        fprintf(out, "    %s\n", line);
    }
}


static void print_page(FILE *out)
{
    int cause;

    fputs(head, out);
    print_example(out);
    fputs(notes, out);
    for (cause = DQ_CAUSE_NONE + 1; cause < DQ_CAUSE_LAST; cause++) {
        if (is_cause(cause)) {
            print_cause(out, cause);
        }
    }
}


START_TEST(test_errors_md)
{
    t_check_page(T_ERRORS_MD, print_page, "print-errors");
}
END_TEST


/* Every status that verbs have up to TAG_MATCHING is here, by its own number; and
 * all others from NO_DEVICE on, without a gap. */
START_TEST(test_complete)
{
    int cause, other;

    for (cause = 0; cause <= IBV_WC_GENERAL_ERR; cause++) {
        ck_assert_msg(is_cause(cause), "status %d", cause);
    }
    ck_assert_int_eq(DQ_CAUSE_GENERAL, IBV_WC_GENERAL_ERR);
    for (cause = IBV_WC_GENERAL_ERR + 1; cause < DQ_CAUSE_NO_DEVICE; cause++) {
        ck_assert(!is_cause(cause));
    }
    for (cause = DQ_CAUSE_NO_DEVICE; cause < DQ_CAUSE_LAST; cause++) {
        ck_assert_msg(is_cause(cause), "cause %d", cause);
    }
    for (cause = 0; cause < DQ_CAUSE_LAST; cause++) {
        for (other = 0; is_cause(cause) && (other < cause); other++) {
            ck_assert_str_ne(dq_cause_name((dq_cause_t)cause),
                             dq_cause_name((dq_cause_t)other));
            ck_assert_str_ne(dq_triage_what((dq_cause_t)cause),
                             dq_triage_what((dq_cause_t)other));
        }
    }
}
END_TEST


/* Each cause says something in every column of the page. */
START_TEST(test_cells)
{
    char message[DQ_TRIAGE_MESSAGE_MAX];
    const char *cells[3];
    int cause;
    size_t i;

    for (cause = DQ_CAUSE_NONE + 1; cause < DQ_CAUSE_LAST; cause++) {
        if (!is_cause(cause)) {
            continue;
        }
        cells[0] = dq_triage_what((dq_cause_t)cause);
        cells[1] = meanings[cause];
        cells[2] = check_of(cause, message, sizeof(message));
        for (i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
            ck_assert_msg((cells[i] != NULL) && (cells[i][0] != '\0') &&
                          (strchr(cells[i], '|') == NULL),
                          "%s: cell %zu", dq_cause_name((dq_cause_t)cause), i);
        }
    }
}
END_TEST


static Suite *suite_errors(void)
{
    return t_suite("errors", "page", test_errors_md, "page", test_complete,
                   "page", test_cells, NULL);
}


int main(int argc, char **argv)
{
    const t_suite_func_t suites[] = {suite_errors};

    if ((argc == 2) && (strcmp(argv[1], "--print") == 0)) {
        print_page(stdout);
        return 0;
    }
    return t_main(suites, 1);
}
