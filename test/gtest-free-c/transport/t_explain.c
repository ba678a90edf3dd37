/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The message about a failed endpoint names both ends, the port, the times that
 * were waited, and what the port has counted of errors meanwhile; and the cause is
 * the first completion that is no flush, whether or not it was asked for.
 *
 * softverbs has no counters in sysfs: the program gives its device a folder that
 * has some.
 */
#include "t_uct.h"
#include "dq/dq_gid.h"
#include "dq/dq_wire.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];


struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct ibv_context *(*real)(struct ibv_device*);

    *(void**)&real = dlsym(RTLD_NEXT, "ibv_open_device");
    if (folder[0] != '\0') {
        snprintf(device->ibdev_path, sizeof(device->ibdev_path), "%s", folder);
    }
    return real(device);
}


static void counter_set(const char *name, const char *text)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/ports/1/%s", folder, name);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}


static void folder_remove(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command) != 0) {
        perror(command);
    }
}


static void folder_make(void)
{
    static const char *const parts[] = {"/ports", "/ports/1",
                                        "/ports/1/hw_counters",
                                        "/ports/1/counters"};
    char path[128];
    unsigned i;

    strcpy(folder, "/tmp/t_explain.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    atexit(folder_remove);
    for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", folder, parts[i]);
        ck_assert_int_eq(mkdir(path, 0700), 0);
    }
    counter_set("hw_counters/out_of_sequence", "5\n");
    counter_set("hw_counters/local_ack_timeout_err", "7\n");
    counter_set("hw_counters/packet_seq_err", "9\n");
    counter_set("hw_counters/rcvd_pkts", "1000\n");
    counter_set("hw_counters/duplicate_request", "many\n");
    counter_set("counters/symbol_error", "0\n");
}


static void plan(const char *text)
{
    const char *bed = getenv("T_BED");

    t_only_daqiri("explains");
    if ((bed != NULL) && (strcmp(bed, "softverbs") != 0)) {
        t_skip("only softverbs fails by a plan");
    }
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS", text, 1), 0);
    ck_assert_int_eq(setenv("SOFTVERBS_FAULTS_LOG", "/dev/null", 1), 0);
}


/* Sends until the endpoint has failed. */
static void send_in_vain(t_end_t *end, t_link_t *link)
{
    while (end->errors == 0) {
        (void)t_try_send(link, T_BCOPY, 100);
        t_progress_or_yield();
    }
    t_link_close(link);
}


/* Both are named: by host and process, and by where they are on the wire. */
static void check_ends(t_end_t *const *end)
{
    char name[256], words[512], gid[2][DQ_GID_TEXT_MAX];
    unsigned i;

    ck_assert_int_eq(gethostname(name, sizeof(name)), 0);
    name[strcspn(name, ".")] = '\0'; /* as UCX has it */
    name[DQ_WIRE_HOST_LEN - 1] = '\0';
    snprintf(words, sizeof(words), " of %s pid %d; ", name, getpid());
    ck_assert_uint_eq(t_log_count(words), 1);
    snprintf(words, sizeof(words), "check that pid %d still runs on %s, ",
             getpid(), name);
    ck_assert_uint_eq(t_log_count(words), 1);
    for (i = 0; i < 2; i++) {
        const dq_port_addr_t *port = (const void*)end[i]->address.dev;

        ck_assert_ptr_nonnull(dq_gid_text(port->gid, gid[i], sizeof(gid[i])));
    }
    snprintf(words, sizeof(words), "from port softverbs0:1, GID %s, to GID %s",
             gid[0], gid[1]);
    ck_assert_uint_eq(t_log_count(words), 1);
}


/* What has grown is named, and by how much; what stands, was set back, cannot be
 * read or is no error is not. */
START_TEST(test_counters)
{
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];

    plan("complete qp=rc n=3 status=RETRY_EXC_ERR times=1");
    t_expect_loss();
    t_expect_log("does not answer");
    folder_make();
    end[0] = t_end_open("RECOVERY=n TIMEOUT=8ms RETRY_COUNT=3 FAILURE=error");
    end[1] = t_end_open("RECOVERY=n TIMEOUT=8ms RETRY_COUNT=3 FAILURE=error");
    counter_set("hw_counters/out_of_sequence", "6\n"); /* before it is up */
    counter_set("hw_counters/local_ack_timeout_err", "99\n");
    counter_set("hw_counters/send_err", "1\n"); /* none is looked for anew */
    link = t_link_up(end[0], end[1], 1, &stream);

    counter_set("hw_counters/out_of_sequence", "8\n");
    counter_set("hw_counters/packet_seq_err", "2\n");
    counter_set("hw_counters/rcvd_pkts", "2000\n");
    counter_set("hw_counters/send_err", "4\n");
    counter_set("counters/symbol_error", "1\n");
    send_in_vain(end[0], link);
    check_ends(end);
    ck_assert_uint_eq(t_log_count("counters of the port since this connection "
                                  "was up: out_of_sequence +2, symbol_error "
                                  "+1\n"), 1);
    ck_assert_uint_eq(t_log_count("waited 8.4 ms for each of 4 tries"), 1);
    t_end_close_all();
}
END_TEST


/* Connections that come up within a second share what the counters were. It is there
 * still for the second one when the first is gone, and its peer. */
START_TEST(test_counters_shared)
{
    t_link_t *first, *second;
    t_stream_t stream[2];
    t_end_t *end[3];
    unsigned i;

    plan("complete qp=rc.5 n=3 status=RETRY_EXC_ERR times=1");
    t_expect_loss();
    t_expect_log("does not answer");
    folder_make();
    for (i = 0; i < 3; i++) { /* each makes a queue pair to learn of the device */
        end[i] = t_end_open("RECOVERY=n TIMEOUT=8ms RETRY_COUNT=3 FAILURE=error");
    }
    first  = t_link_up(end[0], end[2], 1, &stream[0]); /* rc.3 and rc.4 */
    second = t_link_up(end[0], end[1], 1, &stream[1]);
    t_link_close(first);
    t_end_close(end[2]);
    counter_set("hw_counters/out_of_sequence", "8\n");
    send_in_vain(end[0], second);
    ck_assert_uint_eq(t_log_count("counters of the port since this connection "
                                  "was up: out_of_sequence +3\n"), 1);
    t_end_close_all();
}
END_TEST


/* Of a conn that was never up: since the interface was opened. */
START_TEST(test_counters_before)
{
    t_address_t nobody;
    t_link_t *link;
    t_end_t *end[2];

    plan("drop");
    t_expect_loss();
    t_expect_log("the peer did not answer the handshake");
    folder_make();
    end[0] = t_end_open("CONN_TIMEOUT=300ms FAILURE=error");
    end[1] = t_end_open("");
    nobody = end[1]->address;
    counter_set("hw_counters/out_of_sequence", "6\n");
    link = t_link_open(end[0], &nobody, 1);
    send_in_vain(end[0], link);
    ck_assert_uint_eq(t_log_count("counters of the port since this interface "
                                  "was opened: out_of_sequence +1\n"), 1);
    t_end_close_all();
}
END_TEST


START_TEST(test_no_counters)
{
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];

    plan("complete qp=rc n=3 status=RETRY_EXC_ERR times=1");
    t_expect_loss();
    t_expect_log("does not answer");
    end[0] = t_end_open("RECOVERY=n TIMEOUT=8ms RETRY_COUNT=3 FAILURE=error");
    end[1] = t_end_open("RECOVERY=n TIMEOUT=8ms RETRY_COUNT=3 FAILURE=error");
    t_stream_open(&stream, end[1], 1);
    link = t_link_open(end[0], &end[1]->address, 1);
    send_in_vain(end[0], link);
    ck_assert_uint_eq(t_log_count("counters of the port"), 0);
    ck_assert_uint_eq(t_log_count("does not answer"), 1);
    t_end_close_all();
}
END_TEST


/* Every status that a completion may have, of a request for whose completion
 * nobody has asked, with many flushes behind it: it is the cause, and its own
 * sentence is in the log, once. */
START_TEST(test_first_error)
{
    static const struct {
        const char *status, *words;
    } cases[] = {
        {"LOC_LEN_ERR", "a message was longer than its buffer"},
        {"LOC_QP_OP_ERR", "could not execute a work request;"},
        {"LOC_EEC_OP_ERR", "(EE context)"},
        {"LOC_PROT_ERR", "a local buffer is not registered"},
        {"WR_FLUSH_ERR", "was flushed after an earlier error"},
        {"MW_BIND_ERR", "a memory window bind failed"},
        {"BAD_RESP_ERR", "an answer that fits nothing"},
        {"LOC_ACCESS_ERR", "the peer wrote where this side does not allow it"},
        {"REM_INV_REQ_ERR", "found the request invalid"},
        {"REM_ACCESS_ERR", "the peer's memory may not be accessed so"},
        {"REM_OP_ERR", "the peer's device could not complete the request"},
        {"RETRY_EXC_ERR", "the peer's device does not answer"},
        {"RNR_RETRY_EXC_ERR", "the peer has no receive buffer posted"},
        {"LOC_RDD_VIOL_ERR", "RDD violation"},
        {"REM_INV_RD_REQ_ERR", "rejects the RD request"},
        {"REM_ABORT_ERR", "the peer's device aborted the request"},
        {"INV_EECN_ERR", "invalid EE context"},
        {"INV_EEC_STATE_ERR", "invalid state of an EE context"},
        {"FATAL_ERR", "the device failed"},
        {"RESP_TIMEOUT_ERR", "the peer's device answered too late"},
        {"GENERAL_ERR", "the device reports a general error"},
    };
    char text[96];
    t_stream_t stream;
    t_link_t *link;
    t_end_t *end[2];

    ck_assert_uint_eq(sizeof(cases) / sizeof(cases[0]), IBV_WC_GENERAL_ERR);
    snprintf(text, sizeof(text), "complete qp=rc n=20 status=%s times=1",
             cases[_i].status);
    plan(text);
    t_expect_loss();
    t_expect_log(cases[_i].words);
    end[0] = t_end_open("RECOVERY=n SIGNAL_EVERY=64 FAILURE=error");
    end[1] = t_end_open("RECOVERY=n");
    end[1]->is_rude = 1;
    link = t_link_up(end[0], end[1], 1, &stream);
    end[1]->is_stopped = 1; /* so that no request of its own comes in between */
    send_in_vain(end[0], link);
    ck_assert_uint_eq(t_log_count(cases[_i].words), 1);
    end[1]->is_stopped = 0;
    t_end_close_all();
}
END_TEST


static Suite *suite_explain(void)
{
    Suite *suite = suite_create("explain");
    TCase *tcase = t_uct_case("explain");

    tcase_add_test(tcase, test_counters);
    tcase_add_test(tcase, test_counters_shared);
    tcase_add_test(tcase, test_counters_before);
    tcase_add_test(tcase, test_no_counters);
    tcase_add_loop_test(tcase, test_first_error, 0, IBV_WC_GENERAL_ERR);
    suite_add_tcase(suite, tcase);
    return suite;
}

T_UCT_MAIN(suite_explain)
