/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/clock.h"
#include "tools/base/progress.h"
#include "tools/base/report.h"
#include "tools/base/stop.h"
#include "tools/cmd/tcp.h"
#include "tools/peer/net.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* HELLO, terms and the answers to them. */
#define TCP_SETUP_NS 5000000000ull

/* The result, which ends what the server sends. */
#define TCP_RESULT_LEN DAQIRI_PEER_RESULT_LEN

const char *const daqiri_tcp_patterns[3] = {"stream", "pingpong", "duplex"};

/* ---- common ---- */

static uint64_t tcp_patience(const daqiri_tcp_t *test)
{
    return daqiri_now_ns() + (uint64_t)(test->timeout * 1e9);
}

/* As many as both ends have sent. */
static uint64_t tcp_messages(const daqiri_tcp_t *test)
{
    return (test->size > 0) ? (test->sent + test->received) / test->size : 0;
}

/* The client goes on until then, with one message at least, or until it is
 * asked to stop. */
static int tcp_is_over(daqiri_tcp_t *test, uint64_t now_ns)
{
    if (daqiri_stop_asked()) {
        test->is_interrupted = 1;
        return 1;
    }
    if (daqiri_interval_is_due(&test->interval, now_ns)) {
        daqiri_interval_note(&test->interval, now_ns, tcp_messages(test),
                             test->sent + test->received);
    }
    if (daqiri_progress_is_due(&test->progress, now_ns)) {
        daqiri_progress_show(&test->progress, now_ns, (now_ns < test->end_ns) ?
                             1 - (double)(test->end_ns - now_ns) / 1e9 /
                             test->duration : 1, "%.2f GB sent, %.2f GB received",
                             (double)test->sent / 1e9,
                             (double)test->received / 1e9);
    }
    return (now_ns >= test->end_ns) && (test->sent > 0);
}

static int tcp_send_result(daqiri_tcp_t *test)
{
    daqiri_peer_frame_t frame = {.kind = DAQIRI_PEER_TCP_RESULT};

    frame.tcp_result.bytes      = test->received;
    frame.tcp_result.messages   = test->received / test->size;
    frame.tcp_result.elapsed_ns = test->elapsed_ns;
    return daqiri_net_send_frame(test->fd, &frame, tcp_patience(test),
                                 &test->failure);
}

/* ---- stream ---- */

static int tcp_recv_result(daqiri_tcp_t *test)
{
    daqiri_peer_frame_t frame;

    test->failure.stage = "result";
    if (daqiri_net_expect(test->fd, DAQIRI_PEER_TCP_RESULT, &frame,
                          tcp_patience(test), &test->failure) != 0) {
        return -1;
    }
    test->peer_received = frame.tcp_result.bytes;
    return 0;
}

static int tcp_stream_client(daqiri_tcp_t *test)
{
    while (!tcp_is_over(test, daqiri_now_ns())) {
        if (daqiri_net_send(test->fd, test->out, test->size,
                            tcp_patience(test), &test->failure) != 0) {
            return -1;
        }
        test->sent += test->size;
    }
    return 0;
}

/* recv() has failed: waits a while for more, unless there was another reason
 * than that nothing is there. The peer's time begins when *deadline_p is 0. */
static int tcp_wait(daqiri_tcp_t *test, uint64_t *deadline_p)
{
    struct pollfd event = {.fd = test->fd, .events = POLLIN};

    if ((errno != EAGAIN) && (errno != EINTR)) {
        return daqiri_fail(&test->failure, DAQIRI_CLASS_PEER_GONE, "the "
                           "connection to the peer broke: %s",
                           strerror(errno));
    }
    if (*deadline_p == 0) {
        *deadline_p = tcp_patience(test);
    }
    if (daqiri_stop_asked()) {
        return daqiri_fail(&test->failure, DAQIRI_CLASS_INTERRUPTED,
                           "interrupted in the middle of a test");
    }
    if (daqiri_now_ns() >= *deadline_p) {
        return daqiri_fail(&test->failure, DAQIRI_CLASS_TIMEOUT, "nothing "
                           "came from the peer within %.4g s", test->timeout);
    }
    poll(&event, 1, 100);
    return 0;
}

/* Whatever comes, to its end. */
static int tcp_stream_server(daqiri_tcp_t *test)
{
    uint64_t deadline_ns = tcp_patience(test);
    ssize_t ret;

    for (;;) {
        ret = recv(test->fd, test->in, test->size, 0);
        if (ret == 0) {
            return 0;
        }
        if (ret > 0) {
            test->received += (uint64_t)ret;
            deadline_ns     = 0;
            continue;
        }
        if (tcp_wait(test, &deadline_ns) != 0) {
            return -1;
        }
    }
}

/* ---- pingpong ---- */

static int tcp_echo_client(daqiri_tcp_t *test)
{
    uint64_t last_ns = daqiri_now_ns();
    uint64_t now_ns;

    while (!tcp_is_over(test, last_ns)) {
        memcpy(test->out, &last_ns, (test->size < sizeof(last_ns)) ?
               test->size : sizeof(last_ns));
        if ((daqiri_net_send(test->fd, test->out, test->size,
                             tcp_patience(test), &test->failure) != 0) ||
            (daqiri_net_recv(test->fd, test->in, test->size,
                             tcp_patience(test), &test->failure) != 0)) {
            return -1;
        }
        now_ns = daqiri_now_ns();
        if (memcmp(test->in, test->out, (test->size < sizeof(last_ns)) ?
                   test->size : sizeof(last_ns)) != 0) {
            return daqiri_fail(&test->failure, DAQIRI_CLASS_DATA_MISMATCH,
                               "a message did not come back as it was sent");
        }
        test->sent     += test->size;
        test->received += test->size;
        daqiri_hist_add(&test->hist, now_ns - last_ns);
        last_ns = now_ns;
    }
    return 0;
}

/* Whether the peer has closed its half; waits for one or the other. */
static int tcp_is_end(daqiri_tcp_t *test, int *is_end)
{
    uint64_t deadline_ns = tcp_patience(test);
    ssize_t ret;
    char byte;

    for (;;) {
        ret = recv(test->fd, &byte, 1, MSG_PEEK);
        if (ret >= 0) {
            *is_end = (ret == 0);
            return 0;
        }
        if (tcp_wait(test, &deadline_ns) != 0) {
            return -1;
        }
    }
}

static int tcp_echo_server(daqiri_tcp_t *test)
{
    int is_end;

    for (;;) {
        if (tcp_is_end(test, &is_end) != 0) {
            return -1;
        }
        if (is_end) {
            return 0;
        }
        if ((daqiri_net_recv(test->fd, test->in, test->size,
                             tcp_patience(test), &test->failure) != 0) ||
            (daqiri_net_send(test->fd, test->in, test->size,
                             tcp_patience(test), &test->failure) != 0)) {
            return -1;
        }
        test->received += test->size;
        test->sent     += test->size;
    }
}

/* ---- duplex ---- */

/* The last bytes of what came: in the end, the result is there. */
typedef struct tcp_tail {
    uint8_t bytes[TCP_RESULT_LEN];
} tcp_tail_t;

static void tcp_tail_add(tcp_tail_t *tail, const uint8_t *bytes, size_t length)
{
    if (length >= TCP_RESULT_LEN) {
        memcpy(tail->bytes, bytes + length - TCP_RESULT_LEN, TCP_RESULT_LEN);
        return;
    }
    memmove(tail->bytes, tail->bytes + length, TCP_RESULT_LEN - length);
    memcpy(tail->bytes + TCP_RESULT_LEN - length, bytes, length);
}

typedef struct tcp_duplex {
    uint64_t   offset;    /* in the message that is being sent */
    int        is_closed; /* our half: no more is sent */
    int        is_end;    /* theirs: no more comes */
    tcp_tail_t tail;
} tcp_duplex_t;

/* Both return 1 when something moved, 0, or -1. */
static int tcp_duplex_send(daqiri_tcp_t *test, tcp_duplex_t *duplex)
{
    ssize_t ret = send(test->fd, test->out + duplex->offset,
                       test->size - duplex->offset, MSG_NOSIGNAL);

    if (ret < 0) {
        return ((errno == EAGAIN) || (errno == EINTR)) ? 0 :
               daqiri_fail(&test->failure, DAQIRI_CLASS_PEER_GONE, "the "
                           "connection to the peer broke: %s",
                           strerror(errno));
    }
    test->sent     += (uint64_t)ret;
    duplex->offset += (uint64_t)ret;
    if (duplex->offset == test->size) {
        duplex->offset = 0;
    }
    return 1;
}

static int tcp_duplex_recv(daqiri_tcp_t *test, tcp_duplex_t *duplex)
{
    ssize_t ret = recv(test->fd, test->in, test->size, 0);

    if (ret < 0) {
        return ((errno == EAGAIN) || (errno == EINTR)) ? 0 :
               daqiri_fail(&test->failure, DAQIRI_CLASS_PEER_GONE, "the "
                           "connection to the peer broke: %s",
                           strerror(errno));
    }
    if (ret == 0) {
        duplex->is_end = 1;
        return 1;
    }
    test->received += (uint64_t)ret;
    tcp_tail_add(&duplex->tail, test->in, (size_t)ret);
    return 1;
}

/* Ends our half at the end of a message: the client when its time is over, the
 * server when the client has. */
static int tcp_duplex_close(daqiri_tcp_t *test, tcp_duplex_t *duplex)
{
    int is_over = test->is_client ? tcp_is_over(test, daqiri_now_ns()) :
                                    duplex->is_end;

    if (!is_over || duplex->is_closed || (duplex->offset != 0)) {
        return 0;
    }
    duplex->is_closed = 1;
    if (!test->is_client) {
        return tcp_send_result(test);
    }
    shutdown(test->fd, SHUT_WR);
    return 0;
}

static int tcp_duplex_result(daqiri_tcp_t *test, const tcp_duplex_t *duplex)
{
    char why[DAQIRI_PEER_WHY_MAX];
    daqiri_peer_frame_t frame;
    uint32_t length;

    if ((test->received < TCP_RESULT_LEN) ||
        (daqiri_peer_parse_header(duplex->tail.bytes, &length) !=
         DAQIRI_PEER_OK) ||
        (length != TCP_RESULT_LEN - DAQIRI_PEER_HEADER_LEN) ||
        (daqiri_peer_parse(duplex->tail.bytes + DAQIRI_PEER_HEADER_LEN, length,
                           &frame, why) != 0) ||
        (frame.kind != DAQIRI_PEER_TCP_RESULT)) {
        return daqiri_fail(&test->failure, DAQIRI_CLASS_PEER_GONE, "the peer "
                           "closed the connection without its result");
    }
    test->received     -= TCP_RESULT_LEN;
    test->peer_received = frame.tcp_result.bytes;
    return 0;
}

static int tcp_duplex_move(daqiri_tcp_t *test, tcp_duplex_t *duplex)
{
    int out = duplex->is_closed ? 0 : tcp_duplex_send(test, duplex);
    int in  = ((out < 0) || duplex->is_end) ? 0 :
                                              tcp_duplex_recv(test, duplex);

    return ((out < 0) || (in < 0)) ? -1 : (out + in > 0);
}

static int tcp_duplex(daqiri_tcp_t *test)
{
    tcp_duplex_t duplex  = {0};
    uint64_t deadline_ns = tcp_patience(test);
    struct pollfd event  = {.fd = test->fd};
    int ret;

    while (!duplex.is_closed || !duplex.is_end) {
        if (tcp_duplex_close(test, &duplex) != 0) {
            return -1;
        }
        ret = tcp_duplex_move(test, &duplex);
        if (ret < 0) {
            return -1;
        }
        if (ret > 0) {
            deadline_ns = 0;
            continue;
        }
        deadline_ns = (deadline_ns == 0) ? tcp_patience(test) : deadline_ns;
        if (daqiri_now_ns() >= deadline_ns) {
            return daqiri_fail(&test->failure, DAQIRI_CLASS_TIMEOUT, "nothing "
                               "moved within %.4g s", test->timeout);
        }
        event.events = (short)((duplex.is_closed ? 0 : POLLOUT) |
                               (duplex.is_end ? 0 : POLLIN));
        poll(&event, 1, 100);
    }
    return test->is_client ? tcp_duplex_result(test, &duplex) : 0;
}

/* ---- all of it ---- */

static int tcp_terms(daqiri_tcp_t *test)
{
    uint64_t deadline_ns = daqiri_now_ns() + TCP_SETUP_NS;
    daqiri_peer_frame_t frame = {.kind = DAQIRI_PEER_TCP_TERMS};

    test->failure.stage = "control";
    if (test->is_client) {
        if (daqiri_net_hello(test->fd, DAQIRI_PEER_TCP, test->peer_version,
                             deadline_ns, &test->failure) != 0) {
            return -1;
        }
        frame.tcp_terms.pattern     = test->pattern;
        frame.tcp_terms.size        = test->size;
        frame.tcp_terms.duration_ms = (uint64_t)(test->duration * 1e3 + 0.999);
        if (daqiri_net_send_frame(test->fd, &frame, deadline_ns,
                                  &test->failure) != 0) {
            return -1;
        }
        return daqiri_net_expect(test->fd, DAQIRI_PEER_READY, &frame,
                                 deadline_ns, &test->failure);
    }
    if (daqiri_net_expect(test->fd, DAQIRI_PEER_TCP_TERMS, &frame, deadline_ns,
                          &test->failure) != 0) {
        return -1;
    }
    test->pattern  = frame.tcp_terms.pattern;
    test->size     = frame.tcp_terms.size;
    test->duration = (double)frame.tcp_terms.duration_ms / 1e3;
    return daqiri_quota_take(test->quota, test->size, test->duration,
                             &test->failure);
}

static int tcp_ready(daqiri_tcp_t *test)
{
    daqiri_peer_frame_t frame = {.kind = DAQIRI_PEER_READY};
    uint64_t i;

    test->out = malloc(test->size);
    test->in  = malloc(test->size);
    if ((test->out == NULL) || (test->in == NULL)) {
        return daqiri_fail(&test->failure, DAQIRI_CLASS_RESOURCE_EXHAUSTED,
                           "there is no memory for messages of %llu bytes",
                           (unsigned long long)test->size);
    }
    for (i = 0; i < test->size; ++i) {
        test->out[i] = (uint8_t)(i * 31 + 7);
    }
    memset(test->in, 0, test->size);
    if (test->is_client) {
        return 0;
    }
    snprintf(frame.ready.stage, sizeof(frame.ready.stage), "datapath");
    return daqiri_net_send_frame(test->fd, &frame, tcp_patience(test),
                                 &test->failure);
}

static int tcp_data(daqiri_tcp_t *test)
{
    test->failure.stage = "datapath";
    if (test->is_client) {
        /* A message that is under way is finished, or both sides would be left
         * in the middle of one. */
        daqiri_stop_own();
    }
    switch (test->pattern) {
    case DAQIRI_PEER_DUPLEX:
        return tcp_duplex(test);
    case DAQIRI_PEER_ECHO:
        return test->is_client ? tcp_echo_client(test) : tcp_echo_server(test);
    default:
        return test->is_client ? tcp_stream_client(test) :
                                 tcp_stream_server(test);
    }
}

/* The end of stream and pingpong; a duplex has had its own. */
static int tcp_finish(daqiri_tcp_t *test)
{
    if (test->pattern == DAQIRI_PEER_DUPLEX) {
        return 0;
    }
    if (!test->is_client) {
        return tcp_send_result(test);
    }
    shutdown(test->fd, SHUT_WR);
    return tcp_recv_result(test);
}

int daqiri_tcp_run(daqiri_tcp_t *test)
{
    uint64_t start_ns = 0;
    double cpu        = 0;
    int ret;

    daqiri_hist_init(&test->hist);
    ret = tcp_terms(test);
    if (ret == 0) {
        ret = tcp_ready(test);
    }
    daqiri_net_show(NULL);
    daqiri_progress_start(&test->progress);
    if (!test->is_client) {
        test->progress.next_ns = UINT64_MAX;
    }
    if (ret == 0) {
        start_ns         = daqiri_now_ns();
        cpu              = daqiri_cpu_s();
        test->end_ns     = start_ns + (uint64_t)(test->duration * 1e9);
        daqiri_interval_start(&test->interval, start_ns);
        ret              = tcp_data(test);
        test->elapsed_ns = daqiri_now_ns() - start_ns;
        daqiri_interval_end(&test->interval, start_ns + test->elapsed_ns,
                            tcp_messages(test), test->sent + test->received);
    }
    if (ret == 0) {
        ret = tcp_finish(test);
        /* What is still on its way has not been carried yet. */
        test->elapsed_ns = daqiri_now_ns() - start_ns;
    }
    if (test->elapsed_ns > 0) {
        test->cpu_percent = 100 * (daqiri_cpu_s() - cpu) /
                            ((double)test->elapsed_ns / 1e9);
    }
    daqiri_progress_end(&test->progress);
    if (ret == 0) {
        test->failure.stage = "done";
    } else if (test->failure.class_id != DAQIRI_CLASS_PEER_FAILED) {
        daqiri_net_abort(test->fd, &test->failure);
    }
    free(test->out);
    free(test->in);
    test->out = test->in = NULL;
    return ret;
}

json_t *daqiri_tcp_report(daqiri_tcp_t *test, const char *command)
{
    json_t *report  = daqiri_report_new(command);
    double seconds  = (double)test->elapsed_ns / 1e9;
    uint64_t bytes  = test->sent + test->received;
    double messages = (test->size > 0) ? (double)bytes / (double)test->size : 0;
    int has         = (bytes > 0) && (seconds > 0);

    daqiri_report_text(report, "datapath", has ? "tcp" : NULL);
    daqiri_report_text(report, "role", test->is_client ? "client" : "server");
    daqiri_report_text(report, "peer_version", (test->peer_version[0] != '\0') ?
                       test->peer_version : NULL);
    daqiri_report_text(report, "pattern", (test->pattern > 0) ?
                       daqiri_tcp_patterns[test->pattern - 1] : NULL);
    daqiri_report_int(report, "size", (long long)test->size);
    daqiri_report_real(report, "duration_s", test->duration);
    daqiri_report_bool(report, "ok",
                       test->failure.class_id == DAQIRI_CLASS_NONE);
    daqiri_report_bool(report, "interrupted", test->is_interrupted);
    daqiri_failure_report(&test->failure, report);
    daqiri_report_int(report, "sent_bytes", (long long)test->sent);
    daqiri_report_int(report, "received_bytes", (long long)test->received);
    daqiri_report_set(report, "peer_received_bytes",
                      test->is_client ?
                      json_integer((json_int_t)test->peer_received) :
                      json_null());
    daqiri_report_set(report, "intervals", daqiri_interval_report(&test->interval));
    daqiri_report_int(report, "messages", (long long)messages);
    daqiri_report_int(report, "bytes", (long long)bytes);
    daqiri_report_real(report, "elapsed_s", seconds);
    daqiri_report_real(report, "gbps",
                       has ? (double)bytes * 8e-9 / seconds : 0);
    daqiri_report_real(report, "messages_per_s", has ? messages / seconds : 0);
    daqiri_report_real(report, "cpu_percent", test->cpu_percent);
    daqiri_report_set(report, "round_trip", (test->hist.count > 0) ?
                      daqiri_hist_report(&test->hist) : json_null());
    return report;
}
