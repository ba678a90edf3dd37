/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * docs/errors.md is the table of dq_triage, printed, with the message that each
 * cause makes where all is known. `t_errors --print` prints it; the test
 * compares, and sees that the table is complete: every status that a completion
 * may have, and every other cause.
 */
#include "t.h"
#include "dq/dq_triage.h"

#include <infiniband/verbs.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char head[] =
        "<!-- SPDX-License-Identifier: BSD-3-Clause -->\n"
        "# Messages about errors\n"
        "\n"
        "Printed from the table in `src/dq/dq_triage.c`; a test holds it to "
        "that. After a\nchange of the table, in the build folder:\n"
        "\n"
        "    make -C test/gtest-free-c/unit print-errors\n"
        "\n"
        "A message is one line of what happened, with numbers and its class, and "
        "then lines of\nwhat to check. The class says whose doing it probably is. "
        "What is not known is not in\nit. Examples show messages in which all is "
        "known. \"New queue pair\" says whether another\none may cure it "
        "([recovery.md](recovery.md)): if so, a connection goes on, and the\n"
        "message appears where it could not.\n"
        "\n"
        "The first completion of a queue pair that is no flush is the cause, also "
        "if its\nrequest was not signalled; flushes are counted.\n";


static int is_cause(int cause)
{
    return strcmp(dq_cause_name((dq_cause_t)cause), "?") != 0;
}


static int is_completion(int cause)
{
    return cause < DQ_CAUSE_NO_DEVICE;
}


/* Is there a connection that it is about? */
static int has_peer(int cause)
{
    return is_completion(cause) ||
           ((cause >= DQ_CAUSE_POST) && (cause <= DQ_CAUSE_LEFT)) ||
           ((cause >= DQ_CAUSE_GIVEN_UP) && (cause < DQ_CAUSE_FORKED));
}


/* An example, with what is known where this happens. */
static dq_facts_t example(int cause)
{
    dq_facts_t facts = {.cause = (dq_cause_t)cause, .subject = "daqiri"};

    if (has_peer(cause)) {
        facts.qpn            = 0x11;
        facts.peer_qpn       = 0x2a;
        facts.peer_host      = "n7";
        facts.peer_pid       = 4711;
        facts.outstanding    = 12;
        facts.depth          = 256;
        facts.ack_timeout_ms = 536.87;
        facts.rnr_timer_ms   = 0.64;
        facts.retry_cnt      = 6;
        facts.port           = "rocep1s0:1";
        facts.gid            = "10.0.0.1";
        facts.peer_gid       = "10.0.0.7";
    }
    switch (cause) {
    case DQ_CAUSE_RETRY_EXC:
        facts.vendor_err = 0x81;
        facts.hw_changes = "local_ack_timeout_err +7";
        facts.hw_since_up = 1;
        facts.tried_ms   = 30012;
        break;
    case DQ_CAUSE_NO_ANSWER:
        facts.waited_ms = 60000;
        facts.down_port = "rocep1s0:1";
        break;
    case DQ_CAUSE_STUCK:
        facts.waited_ms = 120000;
        break;
    case DQ_CAUSE_PEER_UNRESPONSIVE:
        facts.waited_ms = 10000;
        facts.tried_ms  = 30012;
        break;
    case DQ_CAUSE_QP_EVENT:
        facts.detail = "QP_FATAL";
        break;
    case DQ_CAUSE_POST:
        facts.error = EINVAL;
        break;
    case DQ_CAUSE_VERB:
        facts.verb          = "ibv_create_cq";
        facts.error         = ENOMEM;
        facts.subject       = "rocep1s0";
        facts.memlock_limit = 64 << 10;
        break;
    case DQ_CAUSE_DEVICE_OPEN:
        facts.error   = EACCES;
        facts.subject = "rocep1s0";
        break;
    case DQ_CAUSE_GID_LOST:
        facts.lost_gid  = "10.0.0.1";
        facts.gid_index = 3;
        break;
    case DQ_CAUSE_BAD_OPTION:
        facts.subject = "UCX_DAQIRI_SQ_DEPTH";
        facts.detail  = "3 is not within 4 and 32768";
        break;
    case DQ_CAUSE_NO_GID:
        facts.subject = "rocep1s0:1";
        facts.detail  = "UCX_DAQIRI_GID_INDEX=9";
        break;
    case DQ_CAUSE_OTHER_FABRIC:
        facts.subject = "softverbs0:1";
        facts.detail  = "GID fd79:6961:d403:d69a:273:6674:6273:1, here "
                        "fd24:dcd3:a74b:6207:273:6674:6273:1";
        break;
    case DQ_CAUSE_OTHER_NET:
        facts.subject = "rocep1s0:1";
        facts.detail  = "GID 10.0.0.7, here fd02::1";
        break;
    case DQ_CAUSE_PORT_DOWN:
    case DQ_CAUSE_NO_SRQ:
        facts.subject = "rocep1s0:1";
        break;
    default:
        break;
    }
    return facts;
}


static void print_cause(FILE *out, int cause)
{
    dq_facts_t facts = example(cause);
    char message[DQ_TRIAGE_MESSAGE_MAX];
    char *line, *rest;

    fprintf(out, "\n### %s\n\n%s: %s. New queue pair: %s.\n\n",
            dq_cause_name((dq_cause_t)cause),
            dq_class_name(dq_triage_class((dq_cause_t)cause)),
            dq_triage_what((dq_cause_t)cause),
            dq_triage_new_qp_helps((dq_cause_t)cause) ? "may help" : "does not "
                                                                     "help");
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
    fputs("\n## Of completions\n", out);
    for (cause = DQ_CAUSE_NONE + 1; cause < DQ_CAUSE_LAST; cause++) {
        if (cause == DQ_CAUSE_NO_DEVICE) {
            fputs("\n## Others\n", out);
        }
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


static Suite *suite_errors(void)
{
    return t_suite("errors", "page", test_errors_md, "page", test_complete,
                   NULL);
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
