/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/base/answer.h"
#include "tools/base/clock.h"
#include "tools/base/exit_status.h"
#include "tools/base/report.h"
#include "tools/flow/flow.h"
#include "tools/peer/net.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* A page of counters, ten times over. */
#define PAIR_COUNTERS_MAX 1024

/* What makes a link is done by both ends at once, and one may have to wait for
 * its processor: so many times the patience. */
#define PAIR_SETUP_FACTOR 6

#define PAIR_BLAME_NS 200000000ull

/* s that who watches the stages gives on top of our own time-outs, and how often it is
 * told that the messages go on. */
#define PAIR_GRACE      3.0
#define PAIR_GOES_ON_NS 500000000ull

#define PAIR_STAGES_MAX 16

static struct {
    int              fd;        /* -1: the other end is of this host */
    double           patience;
    int              is_child;  /* of another part of daqiri */
    int              is_next_known; /* what comes next is there: it ends nothing */
    int              is_by_hand, is_hand_ready;
    double           setup;     /* s; 0: nobody watches the stages */
    struct {
        const char *name;
        uint64_t   start_ns;
    }                stages[PAIR_STAGES_MAX];
    size_t           stage_count;
    uint64_t         told_ns;   /* when the watcher was last told */
    json_t           *notes;    /* or NULL */
    daqiri_failure_t failure;
} pair = {.fd = -1, .failure = {.stage = "connect"}};

void flow_is_child(void)
{
    pair.is_child = 1;
}

void flow_pair_is_remote(int fd, double patience)
{
    pair.fd       = fd;
    pair.patience = patience;
}

void flow_pair_is_by_hand(double patience)
{
    pair.is_by_hand = 1;
    pair.patience   = patience;
}

int flow_pair_remote(void)
{
    return (pair.fd >= 0) || pair.is_by_hand;
}

int flow_pair_by_hand(void)
{
    return pair.is_by_hand;
}

/* ---- stages ---- */

static void pair_tell_stage(void)
{
    const char *name = pair.failure.stage;
    const int is_data = strcmp(name, "datapath") == 0;
    json_t *object   = json_object();

    daqiri_report_text(object, "name", name);
    daqiri_report_real(object, "limit_s", PAIR_GRACE +
                       (is_data ? pair.patience : pair.setup));
    daqiri_answer_write(DAQIRI_ANSWER_STAGE, object);
    json_decref(object);
    pair.told_ns = daqiri_now_ns();
}

void flow_stage(const char *name)
{
    pair.failure.stage = name;
    if (pair.setup <= 0) {
        return;
    }
    if (pair.stage_count < PAIR_STAGES_MAX) {
        pair.stages[pair.stage_count].name       = name;
        pair.stages[pair.stage_count++].start_ns = daqiri_now_ns();
    }
    pair_tell_stage();
}

void flow_stages_are_watched(double setup, double patience)
{
    pair.setup    = setup;
    pair.patience = patience;
    flow_stage(pair.failure.stage);
}

void flow_stage_goes_on(uint64_t now_ns)
{
    if ((pair.setup > 0) && (now_ns - pair.told_ns >= PAIR_GOES_ON_NS)) {
        pair_tell_stage();
    }
}

void flow_note(const char *key, json_t *value)
{
    if (pair.notes == NULL) {
        pair.notes = json_object();
    }
    daqiri_report_set(pair.notes, key, value);
}

void flow_add_notes(json_t *report, int is_ok)
{
    const uint64_t now_ns = daqiri_now_ns();
    json_t *rows, *row;
    uint64_t end_ns;
    size_t i;

    if (pair.notes != NULL) {
        json_object_update(report, pair.notes);
    }
    if (pair.setup <= 0) {
        return;
    }
    rows = daqiri_report_array(report, "stages");
    for (i = 0; i < pair.stage_count; ++i) {
        row    = daqiri_report_row(rows);
        end_ns = (i + 1 < pair.stage_count) ? pair.stages[i + 1].start_ns : now_ns;
        daqiri_report_text(row, "name", pair.stages[i].name);
        daqiri_report_bool(row, "ok", is_ok || (i + 1 < pair.stage_count));
        daqiri_report_real(row, "us", (double)(end_ns - pair.stages[i].start_ns) / 1e3);
    }
}

/* ---- the end of it ---- */

static void pair_say(const daqiri_failure_t *failure)
{
    json_t *object;

    if (pair.is_child) {
        object = json_object();
        daqiri_failure_report(failure, object);
        flow_add_notes(object, 0);
        daqiri_answer_write(DAQIRI_ANSWER_FAILURE, object);
        json_decref(object);
    } else {
        fprintf(stderr, "daqiri-flow: %s\n", failure->text);
    }
}

void flow_complain(daqiri_class_t class_id, const char *format, ...)
{
    daqiri_failure_t failure = {.stage = pair.failure.stage, .class_id = class_id};
    va_list args;

    va_start(args, format);
    vsnprintf(failure.text, sizeof(failure.text), format, args);
    va_end(args);
    pair_say(&failure);
}

/* A transport that dies has often lost its peer, and TCP knows it better. */
static void pair_blame(daqiri_failure_t *failure)
{
    const uint64_t deadline_ns = daqiri_now_ns() + PAIR_BLAME_NS;
    daqiri_failure_t peer      = {.stage = failure->stage};
    daqiri_peer_frame_t frame;

    while (daqiri_net_recv_frame(pair.fd, &frame, deadline_ns, &peer) == 0) {
    }
    if ((peer.class_id == DAQIRI_CLASS_PEER_FAILED) ||
        (peer.class_id == DAQIRI_CLASS_PEER_GONE)) {
        *failure = peer;
    }
}

static void pair_end(daqiri_failure_t *failure) __attribute__((noreturn));

static void pair_end(daqiri_failure_t *failure)
{
    daqiri_net_meanwhile(NULL, NULL);
    pair_say(failure);
    if ((pair.fd >= 0) && (failure->class_id != DAQIRI_CLASS_PEER_FAILED)) {
        daqiri_net_abort(pair.fd, failure);
    }
    exit((failure->class_id == DAQIRI_CLASS_OTHER_FABRIC) ?
         DAQIRI_EXIT_APART : DAQIRI_EXIT_FAILED);
}

static void pair_name(daqiri_failure_t *failure, daqiri_class_t class_id,
                      const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

static void pair_name(daqiri_failure_t *failure, daqiri_class_t class_id,
                      const char *format, va_list args)
{
    daqiri_net_meanwhile(NULL, NULL); /* it may be within that */
    failure->stage    = pair.failure.stage;
    failure->class_id = class_id;
    vsnprintf(failure->text, sizeof(failure->text), format, args);
    if ((pair.fd >= 0) && (class_id != DAQIRI_CLASS_OTHER_FABRIC)) {
        pair_blame(failure);
    }
}

void flow_die(const char *format, ...)
{
    daqiri_failure_t failure;
    va_list args;

    va_start(args, format);
    pair_name(&failure, DAQIRI_CLASS_LOCAL, format, args);
    va_end(args);
    pair_end(&failure);
}

void flow_die_as(daqiri_class_t class_id, const char *format, ...)
{
    daqiri_failure_t failure;
    va_list args;

    va_start(args, format);
    pair_name(&failure, class_id, format, args);
    va_end(args);
    pair_end(&failure);
}

/* ---- frames ---- */

uint64_t flow_deadline(void)
{
    return (pair.fd < 0) ? UINT64_MAX :
           daqiri_now_ns() + (uint64_t)(1e9 * ((pair.setup > 0) ? pair.setup :
                                               pair.patience * PAIR_SETUP_FACTOR));
}

/* On one host the first end hears of its child's end by a signal, and who has
 * failed has said so. */
static void pair_need(int ret)
{
    if (ret == 0) {
        return;
    }
    if (!flow_pair_remote() && (pair.failure.class_id == DAQIRI_CLASS_PEER_GONE)) {
        flow_die("the other end is gone");
    }
    pair_end(&pair.failure);
}

void flow_tell(int fd, const daqiri_peer_frame_t *frame)
{
    if (pair.is_by_hand) {
        return; /* nothing that people would have to carry */
    }
    pair_need(daqiri_net_send_frame(fd, frame, flow_deadline(),
                                    &pair.failure));
}

void flow_hear(int fd, daqiri_peer_kind_t kind, daqiri_peer_frame_t *frame)
{
    const uint64_t deadline_ns = flow_deadline();

    if (pair.is_by_hand) {
        memset(frame, 0, sizeof(*frame));
        frame->kind = kind;
        return;
    }
    pair.is_next_known = 0;
    do {
        pair_need(daqiri_net_recv_frame(fd, frame, deadline_ns,
                                        &pair.failure));
    } while ((frame->kind == DAQIRI_PEER_DONE) && (kind != DAQIRI_PEER_DONE));
    if (frame->kind != kind) {
        pair_need(daqiri_fail(&pair.failure, DAQIRI_CLASS_PROTOCOL, "the peer "
                              "sent \"%s\" where \"%s\" was to come",
                              daqiri_peer_kind_name(frame->kind),
                              daqiri_peer_kind_name(kind)));
    }
}

void flow_swap(int fd, const daqiri_peer_frame_t *mine,
               daqiri_peer_frame_t *theirs)
{
    if (pair.is_by_hand && (mine->kind == DAQIRI_PEER_INFO)) {
        pair_need(flow_hand_over(mine, theirs, &pair.failure));
        return;
    }
    flow_tell(fd, mine);
    flow_hear(fd, mine->kind, theirs);
}

void flow_meet(int fd)
{
    daqiri_peer_frame_t mine = {.kind = DAQIRI_PEER_READY};
    daqiri_peer_frame_t theirs;

    if (pair.is_by_hand) {
        pair_need(pair.is_hand_ready ? 0 : flow_hand_ready(&pair.failure));
        pair.is_hand_ready = 1;
        return;
    }
    snprintf(mine.ready.stage, sizeof(mine.ready.stage), "%s",
             pair.failure.stage);
    flow_swap(fd, &mine, &theirs);
    if (strcmp(mine.ready.stage, theirs.ready.stage) != 0) {
        pair_need(daqiri_fail(&pair.failure, DAQIRI_CLASS_PROTOCOL, "the peer "
                              "is in stage %s, not in %s", theirs.ready.stage,
                              mine.ready.stage));
    }
}

/* ---- counters ---- */

/* One each, and one without a name behind them. */
void flow_tell_counters(int fd, json_t *counters)
{
    daqiri_peer_frame_t frame;
    const char *name;
    json_t *value;

    json_object_foreach(counters, name, value) {
        memset(&frame, 0, sizeof(frame));
        frame.kind = DAQIRI_PEER_FLOW_COUNTER;
        snprintf(frame.flow_counter.name, sizeof(frame.flow_counter.name),
                 "%s", name);
        frame.flow_counter.value = (uint64_t)json_integer_value(value);
        flow_tell(fd, &frame);
    }
    memset(&frame, 0, sizeof(frame));
    frame.kind = DAQIRI_PEER_FLOW_COUNTER;
    flow_tell(fd, &frame);
    json_decref(counters);
}

json_t *flow_hear_counters(int fd)
{
    json_t *counters = json_object();
    daqiri_peer_frame_t frame;
    unsigned count;

    for (count = 0; count < PAIR_COUNTERS_MAX; ++count) {
        flow_hear(fd, DAQIRI_PEER_FLOW_COUNTER, &frame);
        if (frame.flow_counter.name[0] == '\0') {
            return counters;
        }
        daqiri_report_int(counters, frame.flow_counter.name,
                          (long long)frame.flow_counter.value);
    }
    pair_need(daqiri_fail(&pair.failure, DAQIRI_CLASS_PROTOCOL, "the peer has "
                          "more than %d counters", PAIR_COUNTERS_MAX));
    return counters;
}

/* ---- between the messages ---- */

/* What may be said of the next frame without taking it. */
typedef enum pair_next {
    PAIR_NOTHING, /* not all of it is there */
    PAIR_END,     /* the end, a failure, or no frame at all */
    PAIR_OTHER
} pair_next_t;

static pair_next_t pair_peek(int fd)
{
    static uint8_t bytes[DAQIRI_PEER_FRAME_MAX];
    char why[DAQIRI_PEER_WHY_MAX];
    daqiri_peer_frame_t frame;
    uint32_t length;
    ssize_t there;

    there = recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
    if ((there < 0) && ((errno == EAGAIN) || (errno == EINTR))) {
        return PAIR_NOTHING;
    }
    if (there <= 0) {
        return PAIR_END;
    }
    if (there < DAQIRI_PEER_HEADER_LEN) {
        return PAIR_NOTHING;
    }
    if (daqiri_peer_parse_header(bytes, &length) != DAQIRI_PEER_OK) {
        return PAIR_END;
    }
    if ((size_t)there < DAQIRI_PEER_HEADER_LEN + (size_t)length) {
        return PAIR_NOTHING;
    }
    return ((daqiri_peer_parse(bytes + DAQIRI_PEER_HEADER_LEN, length, &frame, why) ==
             0) &&
            (frame.kind != DAQIRI_PEER_DONE) && (frame.kind != DAQIRI_PEER_ABORT)) ?
           PAIR_OTHER : PAIR_END;
}

int flow_peer_stopped(int fd)
{
    daqiri_peer_frame_t frame;

    if (pair.is_next_known || pair.is_by_hand) {
        return 0;
    }
    switch (pair_peek(fd)) {
    case PAIR_NOTHING:
        return 0;
    case PAIR_OTHER:
        /* What it says when all is over may be here before its last message. */
        pair.is_next_known = 1;
        return 0;
    default:
        flow_hear(fd, DAQIRI_PEER_DONE, &frame);
        return 1;
    }
}
