/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Message k is due at k * size / pace after the start, whenever the ones before
 * it went (bucket.h). A rate is judged where messages arrive, from the first
 * one to the last.
 */

#include "tools/base/clock.h"
#include "tools/base/stop.h"
#include "tools/base/ticks.h"
#include "tools/base/verdict.h"
#include "tools/flow/bucket.h"
#include "tools/flow/flow.h"
#include "tools/peer/net.h"

#include <sched.h>
#include <string.h>
#include <sys/resource.h>

#define END_WARM_UP    1000       /* messages that are not measured, at most */
#define END_COUNT_MIN  64         /* messages of a paced run */
#define END_IDLE_POLLS 1024
#define END_LOOK_TURNS 8192       /* between two looks at the other host */
#define END_LOOK_TICKS (1u << 18) /* between two looks at the clock */

/* The slowest link, in Gb/s, on which a message is waited for. */
#define END_SLOWEST 0.1

/* ---- what comes ---- */

/* The messages in between need no clock, which takes a good part of what a
 * short one does. */
static void end_on_first_or_last(flow_end_t *end)
{
    end->side.last_ns = daqiri_now_ns();
    if (end->side.received == 1) {
        end->side.first_ns = end->side.last_ns;
    }
}

static void end_on_data(void *arg, uint64_t serial)
{
    flow_end_t *end = arg;

    end->side.disorder += (serial & ~FLOW_LAST) != end->next_in;
    end->next_in        = (serial & ~FLOW_LAST) + 1;
    if ((end->next_in % end->fragments) != 0) {
        return;
    }
    ++end->arrived;
    end->is_over = (serial & FLOW_LAST) != 0;
    if (end->arrived <= end->warm_up) {
        return;
    }
    ++end->side.received;
    if ((end->side.received == 1) || end->is_over) {
        end_on_first_or_last(end);
    }
}

static void end_on_ack(void *arg, uint64_t count)
{
    flow_end_t *end = arg;

    end->acked = count;
}

/* A quarter of the window at a time, and all at the end and after the warm-up,
 * which the sender waits for. */
static void end_ack(flow_end_t *end)
{
    uint64_t some = (end->window + 3) / 4;

    if ((end->arrived == end->told) ||
        (end->opts->pattern == FLOW_PINGPONG) ||
        ((end->arrived - end->told < some) && !end->is_over &&
         (end->arrived != end->warm_up))) {
        return;
    }
    if (end->link->ack(end->link, end->arrived)) {
        end->told = end->arrived;
    }
}

/* s that may pass without anything: of a pace, or of a long message on a slow
 * link, there is nothing to be seen until it is over. */
static double end_patience(const flow_opts_t *opts)
{
    const double gbits = (double)opts->size * 8e-9;

    return opts->patience + gbits / END_SLOWEST +
           ((opts->gbps > 0) ? gbits / opts->gbps : 0);
}

/* Messages that this end knows to have arrived, in both directions. */
static uint64_t end_messages(const flow_end_t *end)
{
    const uint64_t in  = (end->arrived > end->warm_up) ? end->arrived - end->warm_up : 0;
    const uint64_t out = (end->opts->pattern == FLOW_PINGPONG) ? in :
                         (end->acked > end->warm_up) ? end->acked - end->warm_up : 0;

    return in + out;
}

static void end_note(flow_end_t *end, uint64_t now_ns)
{
    if (daqiri_interval_is_due(&end->interval, now_ns)) {
        daqiri_interval_note(&end->interval, now_ns, end_messages(end),
                             end_messages(end) * end->opts->size);
    }
}

/* Between two hosts nothing else tells that the other end has gone, or that it
 * has been asked to stop. */
static void end_look(flow_end_t *end)
{
    const daqiri_peer_frame_t stop = {.kind = DAQIRI_PEER_DONE};
    const uint64_t now_ns          = daqiri_now_ns();

    end_note(end, now_ns);
    if (!flow_pair_remote()) {
        return;
    }
    flow_stage_goes_on(now_ns);
    if (daqiri_stop_asked() && !end->has_told_stop) {
        end->has_told_stop = 1;
        flow_tell(end->fd, &stop);
    }
    end->is_stopped |= flow_peer_stopped(end->fd);
    if (end->has_moved || (end->event_ns == 0)) {
        end->has_moved = 0;
        end->event_ns  = now_ns;
    } else if ((double)(now_ns - end->event_ns) >
               end_patience(end->opts) * 1e9) {
        flow_die_as(DAQIRI_CLASS_TIMEOUT, "nothing came from the other end "
                    "within %.4g s", end_patience(end->opts));
    }
}

/* Lets others have the CPU when nothing happens for long: both ends may have
 * to share one. */
static void end_turn(flow_end_t *end)
{
    if (end->link->poll(end->link)) {
        end->idle      = 0;
        end->has_moved = 1;
    } else {
        ++end->idle;
    }
    end_ack(end);
    if (++end->turns % END_LOOK_TURNS == 0) {
        end_look(end);
    }
    if (end->idle >= END_IDLE_POLLS) {
        end->idle = 0;
        sched_yield();
    }
}

/* ---- what goes ---- */

static void end_send(flow_end_t *end, int is_last)
{
    const size_t room = end->link->most - end->link->serial;
    size_t left       = end->opts->size - end->link->serial * end->fragments;
    uint64_t serial, i;
    size_t length;

    for (i = 1; i <= end->fragments; ++i) {
        length  = (left < room) ? left : room;
        left   -= length;
        serial  = end->next_out | ((is_last && (i == end->fragments)) ?
                                   FLOW_LAST : 0);
        while (!end->link->send(end->link, serial,
                                length + end->link->serial)) {
            end_turn(end);
        }
        ++end->next_out;
    }
}

static void end_await_acks(flow_end_t *end, uint64_t in_flight)
{
    while (end->next_out / end->fragments - end->acked > in_flight) {
        end_turn(end);
    }
}

static void end_await_messages(flow_end_t *end, uint64_t count)
{
    while (end->arrived < count) {
        end_turn(end);
    }
}

/* A pace that cannot be kept is given up after half as long again, and a
 * second for a machine that is busy. A rate is between two messages at least. */
static int end_is_last(const flow_end_t *end, const daqiri_bucket_t *bucket,
                       uint64_t k, uint64_t past_ns)
{
    const flow_opts_t *opts = end->opts;
    const double limit = (opts->gbps > 0) ? opts->seconds * 1.5e9 + 1e9 :
                                            opts->seconds * 1e9;

    if (k == 0) {
        return 0;
    }
    if (daqiri_stop_asked() || end->is_stopped ||
        ((double)past_ns >= limit)) {
        return 1;
    }
    return (opts->gbps > 0) && (k + 1 >= END_COUNT_MIN) &&
           (daqiri_bucket_due_ns(bucket, k + 1) > opts->seconds * 1e9);
}

static void end_send_all(flow_end_t *end)
{
    daqiri_bucket_t bucket;
    uint64_t start, past, k;
    int is_last = 0;

    for (k = 0; k < end->warm_up; ++k) {
        end_await_acks(end, end->window - 1);
        end_send(end, 0);
    }
    end_await_acks(end, 0);

    daqiri_bucket_init(&bucket, end->opts->gbps, end->opts->size);
    start = daqiri_now_ns();
    daqiri_interval_start(&end->interval, start);
    for (k = 0; !is_last; ++k) {
        end_await_acks(end, end->window - 1);
        past = daqiri_now_ns() - start;
        end_note(end, start + past);
        while (daqiri_bucket_allowed(&bucket, past) <= k) {
            end_turn(end);
            past = daqiri_now_ns() - start;
        }
        is_last = end_is_last(end, &bucket, k, past);
        end_send(end, is_last);
    }
    end->side.sent = k;
    end_await_acks(end, 0);
}

static void end_receive_all(flow_end_t *end)
{
    while (!end->is_over || (end->told < end->arrived)) {
        end_turn(end);
    }
}

static void end_ask(flow_end_t *end)
{
    daqiri_ticks_t ticks;
    uint64_t k, before, now, looked, past_ns;
    int is_last = 0;

    for (k = 0; k < end->warm_up; ++k) {
        end_send(end, 0);
        end_await_messages(end, k + 1);
    }
    daqiri_ticks_start(&ticks);
    daqiri_interval_start(&end->interval, ticks.first_ns);
    past_ns = 0;
    before  = looked = ticks.first;
    for (k = 0; !is_last; ++k) {
        is_last = end_is_last(end, &(daqiri_bucket_t){0}, k, past_ns) ||
                  (k + 1 == end->opts->iters);
        end_send(end, is_last);
        end_await_messages(end, end->warm_up + k + 1);
        now = daqiri_ticks_now(&ticks);
        daqiri_hist_add(&end->hist, now - before);
        before = now;
        if (now - looked > END_LOOK_TICKS) {
            looked  = now;
            past_ns = daqiri_now_ns() - ticks.first_ns;
            end_note(end, ticks.first_ns + past_ns);
            flow_stage_goes_on(ticks.first_ns + past_ns);
        }
    }
    end->side.sent     = k;
    end->side.first_ns = ticks.first_ns; /* the first round trip counts, too */
    end->tick_ns       = daqiri_ticks_ns(&ticks);
}

static void end_answer(flow_end_t *end)
{
    uint64_t k = 0;

    do {
        end_await_messages(end, k + 1);
        end_send(end, end->is_over);
        ++k;
    } while (!end->is_over);
    end->side.sent = k - end->warm_up;
}

/* ---- both ---- */

static uint64_t end_cpu_ns(const struct rusage *usage)
{
    return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) *
           1000000000 +
           (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000;
}

static void end_run_pattern(flow_end_t *end, int is_first)
{
    if (end->opts->pattern == FLOW_PINGPONG) {
        if (is_first) {
            end_ask(end);
        } else {
            end_answer(end);
        }
        return;
    }
    if (is_first || (end->opts->pattern == FLOW_DUPLEX)) {
        end_send_all(end);
    }
    if (!is_first || (end->opts->pattern == FLOW_DUPLEX)) {
        end_receive_all(end);
    }
}

static void end_take_witness(flow_end_t *end, flow_witness_t *witness)
{
    const daqiri_hist_t *passes = &witness->passes;

    end->side.no_cpu_ns = flow_witness_stop(witness);
    if (passes->count > 0) {
        end->side.line_ns     = daqiri_hist_share(passes, 0.5);
        end->side.line_far_ns = (uint64_t)(
            (double)end->side.elapsed_ns *
            daqiri_hist_least(passes, DAQIRI_FAR * end->side.line_ns));
    }
}

static int end_go_on(void *arg)
{
    flow_link_t *link = arg;

    return link->poll(link);
}

void flow_end_run(flow_end_t *end, int is_first, flow_line_t *line)
{
    const int is_here = !flow_pair_remote();
    struct rusage before, after;
    flow_witness_t witness = {0};
    int64_t waited_ns;
    uint64_t start;

    if (is_here) {
        flow_witness_start(&witness, line, is_first);
    }
    start     = daqiri_now_ns();
    waited_ns = flow_cpu_waited();
    getrusage(RUSAGE_SELF, &before);
    end_run_pattern(end, is_first);
    getrusage(RUSAGE_SELF, &after);
    end->side.elapsed_ns = daqiri_now_ns() - start;
    daqiri_interval_end(&end->interval, start + end->side.elapsed_ns,
                        end_messages(end), end_messages(end) * end->opts->size);
    end->side.cpu_ns     = end_cpu_ns(&after) - end_cpu_ns(&before);
    end->side.preempted  = (uint64_t)(after.ru_nivcsw - before.ru_nivcsw);
    end->side.waited_ns  = (waited_ns == FLOW_NOT_SEEN) ?
                           FLOW_NOT_SEEN : flow_cpu_waited() - waited_ns;
    end_take_witness(end, &witness);
    /* the other end may not be through, and this one's queue pair may be the
     * one that it waits for */
    if (end->link->is_driven) {
        daqiri_net_meanwhile(end_go_on, end->link);
    }
}

static flow_link_t *end_open_link(const flow_opts_t *opts, int fd,
                                  const flow_sink_t *sink, int is_first)
{
    if ((strcmp(opts->tl, "verbs") == 0) || (strcmp(opts->tl, "verbs_uc") == 0)) {
        return flow_verbs_open(opts, fd, sink);
    }
    if (strcmp(opts->tl, "tcp") == 0) {
        return flow_tcp_open(opts, fd, sink, !is_first);
    }
    return flow_uct_open(opts, fd, sink);
}

void flow_end_open(flow_end_t *end, const flow_opts_t *opts, int fd,
                   int is_first)
{
    flow_sink_t sink = {end_on_data, end_on_ack, end};

    memset(end, 0, sizeof(*end));
    daqiri_hist_init(&end->hist);
    end->opts      = opts;
    end->fd        = fd;
    end->interval  = opts->interval;
    end->link      = end_open_link(opts, fd, &sink, is_first);
    end->fragments = (opts->size + end->link->most - 1) / end->link->most;
    end->window    = (opts->window < end->link->window_max) ?
                     opts->window : end->link->window_max;
    end->warm_up   = 2 * end->window;
    end->warm_up   = (end->warm_up > END_WARM_UP) ? END_WARM_UP : end->warm_up;
    end->warm_up   = (opts->pattern == FLOW_PINGPONG) ? 2 : end->warm_up;
    if (!flow_pair_remote()) {
        flow_cpu_part(is_first);
    }
    flow_meet(fd); /* nobody is too early */
    flow_stage("datapath");
}
