/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * daqiri-flow: messages between two processes over one transport, as fast as
 * they go or at a pace, and what became of them. The ends are joined by a
 * socket, and what goes over that is for the start and the end, never for a
 * message: frames of peer.h.
 *
 * Without further options the second end is a child of the first, and the
 * socket a pair. Between two hosts each is started with its end of a TCP
 * connection, on which both sides have said who they are: by `daqiri sweep`,
 * and by `daqiri serve`.
 *
 *   flow.c        options, the two processes, the report
 *   flow_end.c    one end: when to send, what has come, the windows
 *   flow_uct.c    any of UCX's transports, by the public UCT API
 *   flow_verbs.c  a queue pair on raw verbs
 *   flow_tcp.c    a TCP connection
 *   flow_device.c which device UCX's transport goes over
 *   flow_count.c  counters that explain a figure
 *   flow_cpu.c    who has which processor, and whether it ran
 *   flow_line.c   how far the two processors are from each other
 *   flow_pair.c   the socket, and what is told of the stages
 *   flow_hand.c   two people instead of the socket
 *
 * The three transports do no more than move a message and say when one has
 * come, so that all figures are made by the same code.
 *
 * One thread in each process, and a witness of its processor. An end that cannot
 * go on says so in a sentence, to the other host, too, and ends its process.
 */

#ifndef DAQIRI_FLOW_H
#define DAQIRI_FLOW_H

#include "tools/base/failure.h"
#include "tools/base/hist.h"
#include "tools/base/interval.h"
#include "tools/peer/peer.h"

#include <jansson.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>

#define FLOW_SERIAL_SIZE sizeof(uint64_t) /* in front of a fragment, if anywhere */
#define FLOW_UCT_PREFIX  "uct:" /* in front of a transport: UCX's, surely */
#define FLOW_LAST        (1ull << 63) /* in the serial of the last fragment */

typedef enum flow_pattern {
    FLOW_STREAM,   /* one way; the receiver acknowledges */
    FLOW_DUPLEX,   /* that in both directions at once */
    FLOW_PINGPONG  /* each message is answered by one of the same size */
} flow_pattern_t;

typedef struct flow_opts {
    const char     *tl;
    const char     *devices; /* as UCX writes them: mlx5_0:1,eth0; NULL: any */
    flow_pattern_t pattern;
    size_t         size;    /* bytes of a message */
    uint64_t       window;  /* most messages that are not acknowledged */
    double         seconds;
    uint64_t       iters;   /* round trips of a ping-pong; 0: no bound */
    double         gbps;    /* 10^9 bits a second; 0: as fast as it goes */
    int            fd;      /* to another host; -1: both ends are here */
    int            is_second;
    int            is_by_hand; /* the other end is where only people reach it */
    double         patience; /* s without anything from the other host */
    double         setup;    /* s, of each stage before the messages; 0: not watched */
    int            gid_index; /* these are for verbs; -1: as daqiri chooses it */
    unsigned       mtu;       /* 0: the port's */
    unsigned       traffic_class;
    daqiri_interval_t interval; /* of who sends first: its every and how it is told */
} flow_opts_t;

/* ---- the socket ---- */

/* The other end is on another host: nothing of it is waited for longer than
 * `patience` seconds. With is_second the sentence of flow_die() is told in JSON,
 * too, for `daqiri serve`. */
/* From now on what goes wrong is told to the process that started this one, as an
 * object (answer.h), and not in a sentence to a person. */
void flow_is_child(void);

/* What went wrong besides what ends the program. */
void flow_complain(daqiri_class_t class_id, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void flow_pair_is_remote(int fd, double patience);
void flow_pair_is_by_hand(double patience);
int flow_pair_remote(void);
int flow_pair_by_hand(void);

/* From now on the process that started this one is told of each stage, which may take
 * `setup` seconds, and of the messages, which may be silent for `patience`. */
void flow_stages_are_watched(double setup, double patience);

/* The messages are not silent; cheap. */
void flow_stage_goes_on(uint64_t now_ns);

/* Ends this process after a sentence on stderr, with status 1, or 3 if the other
 * end is on another fabric. */
void flow_die(const char *format, ...)
    __attribute__((noreturn, format(printf, 1, 2)));

/* The same with a class. */
void flow_die_as(daqiri_class_t class_id, const char *format, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

/* Until when (daqiri_now_ns()) the other end is waited for outside of the
 * messages. */
uint64_t flow_deadline(void);

/* Which part of the work a failure belongs to, from now on. */
void flow_stage(const char *name);

/* Something that the report has, and a failure, too; gives the value away. */
void flow_note(const char *key, json_t *value);

/* Adds these, and the stages if they are watched, to a report. */
void flow_add_notes(json_t *report, int is_ok);

void flow_tell(int fd, const daqiri_peer_frame_t *frame);

/* The next frame, which is of this kind. That the other end was asked to stop
 * may come at any time and is passed over. */
void flow_hear(int fd, daqiri_peer_kind_t kind, daqiri_peer_frame_t *frame);

/* Both tell and hear a frame of this kind. */
void flow_swap(int fd, const daqiri_peer_frame_t *mine,
               daqiri_peer_frame_t *theirs);

/* Goes on when both ends are here. */
void flow_meet(int fd);

/* The counters of an end; tell gives the object away. */
void flow_tell_counters(int fd, json_t *counters);
json_t *flow_hear_counters(int fd);

/* Whether the other host has been asked to stop; does not wait. */
int flow_peer_stopped(int fd);

/* ---- by hand ---- */

/* What the other side has to know, as one word, and back; text is FLOW_WORD_MAX long.
 * Parsing returns 0 or -1. */
#define FLOW_WORD_MAX 128
char *flow_hand_word(const daqiri_peer_frame_t *info, char *text);
int flow_hand_parse_word(const char *text, daqiri_peer_frame_t *info);

/* Tells our word to a person, and reads the other's. */
int flow_hand_over(const daqiri_peer_frame_t *mine, daqiri_peer_frame_t *theirs,
                   daqiri_failure_t *failure);

/* Waits for a line: the other side is ready. */
int flow_hand_ready(daqiri_failure_t *failure);

/* ---- a transport ---- */

/* Called from flow_link_t's poll(). Nothing may be sent from here. */
typedef struct flow_sink {
    void (*on_data)(void *arg, uint64_t serial);
    void (*on_ack)(void *arg, uint64_t count);
    void *arg;
} flow_sink_t;

#define FLOW_DEVICE_MAX 64

typedef struct flow_link flow_link_t;
struct flow_link {
    flow_sink_t sink;
    char        device[FLOW_DEVICE_MAX]; /* that it goes over; "": a socket */
    size_t      most;       /* bytes of a fragment, its serial included */
    size_t      serial;     /* bytes of that in the message; 0: it goes beside it */
    uint64_t    window_max; /* messages that it can have on their way */
    int         is_driven;  /* its transport goes on in poll() alone */
    /* These two return 1, or 0: again after poll(). */
    int (*send)(flow_link_t *link, uint64_t serial, size_t length);
    int (*ack)(flow_link_t *link, uint64_t count);
    /* Returns whether something happened. */
    int (*poll)(flow_link_t *link);
    /* Adds what this end has counted. */
    void (*count)(flow_link_t *link, json_t *counters);
    /* Both ends call it when nothing is on its way; frees the link. */
    void (*close)(flow_link_t *link, int fd);
};

/* ---- the device ---- */

/* Whether this one is in a list with commas between; in NULL are all. */
int flow_device_is_in(const char *list, const char *device);

/* The network interface that has this end's address of a connection. Returns 0;
 * -1 if none has, or if it is a socket pair. */
int flow_device_of_socket(int fd, char *device);

/* Each returns a link that is connected to the other end of fd. */
flow_link_t *flow_uct_open(const flow_opts_t *opts, int fd,
                           const flow_sink_t *sink);
flow_link_t *flow_verbs_open(const flow_opts_t *opts, int fd,
                             const flow_sink_t *sink);
flow_link_t *flow_tcp_open(const flow_opts_t *opts, int fd,
                           const flow_sink_t *sink, int is_server);

/* Appends {"name": "tcp", "device": "eth0"} for each of UCX's transports and
 * devices. */
void flow_uct_list(json_t *rows);

/* ---- the processor, when both ends are here ---- */

#define FLOW_NOT_SEEN (-1)

/* The lower or the upper half of these; all of them if it is a single one. */
void flow_cpu_halve(const cpu_set_t *all, int is_first, cpu_set_t *half);

/* From now on this thread is on those of its end alone. */
void flow_cpu_part(int is_first);

/* What the witnesses of both ends pass to and fro; a page of both processes. */
typedef struct flow_line {
    uint64_t ball __attribute__((aligned(128))); /* atomic */
    int      cpus[2] __attribute__((aligned(128))); /* atomic; + 1; 0: none */
} flow_line_t;

/* To be shared with a child. Returns NULL if there is no memory; then nobody
 * looks at it. */
flow_line_t *flow_line_make(void);

/* An end has a witness on this processor, and has none any more. NULL: no line
 * is there. */
void flow_line_enter(flow_line_t *line, int is_first, int cpu);
void flow_line_leave(flow_line_t *line, int is_first);

/* Whether both ends have a witness, each on another processor. */
int flow_line_is_between(const flow_line_t *line);

/* The two sides of the look that was to be at this time, the same for both.
 * Returns how many ns a pass to and fro took, or 0: the other one did not
 * come. Neither waits longer than a look lasts. */
uint64_t flow_line_ask(flow_line_t *line, uint64_t look_ns);
void flow_line_answer(flow_line_t *line, uint64_t look_ns);

typedef struct flow_witness {
    pthread_t     thread;
    flow_line_t   *line;    /* to the other one; or NULL */
    int           is_first; /* it asks */
    int           is_there; /* nobody looks without the right to SCHED_FIFO */
    int           is_over;  /* atomic */
    uint64_t      lost_ns;  /* this and the next: its own until it was joined */
    daqiri_hist_t passes;   /* ns, of who asks */
} flow_witness_t;

/* Stay on this processor, and look whether it runs, and how far it is from that
 * of the other end. */
void flow_witness_start(flow_witness_t *witness, flow_line_t *line,
                        int is_first);

/* Returns for how many ns it did not, or FLOW_NOT_SEEN. */
int64_t flow_witness_stop(flow_witness_t *witness);

/* Of a witness that wanted to run at the first of these times. */
uint64_t flow_witness_lost(uint64_t wanted_ns, uint64_t now_ns);

/* When it wants to run next; all witnesses of a host at the same times. */
uint64_t flow_witness_next(uint64_t now_ns);

/* ---- an end ---- */

/* What one end has seen, its warm-up left out. */
typedef struct flow_side {
    uint64_t sent, received;
    uint64_t disorder;          /* fragments that were not the next one */
    uint64_t first_ns, last_ns; /* arrivals; of who asks: since it asked */
    uint64_t elapsed_ns;        /* the warm-up included, like the two below */
    uint64_t cpu_ns;            /* of this process */
    uint64_t preempted;         /* times that another wanted this CPU */
    int64_t  no_cpu_ns;         /* this CPU did not run; or FLOW_NOT_SEEN */
    int64_t  waited_ns;         /* it ran something else; or FLOW_NOT_SEEN */
    uint64_t line_ns;           /* a pass between the CPUs; 0: not seen */
    uint64_t line_far_ns;       /* for so long it took twice that, or more */
} flow_side_t;

typedef struct flow_end {
    flow_link_t       *link;
    const flow_opts_t *opts;
    int               fd;        /* of the socket */
    uint64_t          window;
    uint64_t          warm_up;   /* messages before those that are measured */
    uint64_t          fragments; /* of a message */
    uint64_t          next_out;  /* serial of the next fragment */
    uint64_t          acked;     /* messages of ours that have arrived */
    uint64_t          next_in;   /* serial of the fragment that is awaited */
    uint64_t          arrived;   /* messages */
    uint64_t          told;      /* of which the other end knows */
    int               is_over;   /* the last message has come */
    int               has_told_stop, is_stopped; /* we, or the other host */
    unsigned          idle, turns; /* polls that found nothing; all */
    int               has_moved; /* something happened since event_ns */
    uint64_t          event_ns;
    daqiri_interval_t interval;
    daqiri_hist_t     hist;      /* round trips, of who asks, in ticks */
    double            tick_ns;
    flow_side_t       side;
} flow_end_t;

/* Both ends of fd; is_first tells them apart. */
void flow_end_open(flow_end_t *end, const flow_opts_t *opts, int fd,
                   int is_first);

/* The whole of the pattern; end->side is complete afterwards. The line to the
 * other end may be NULL. */
void flow_end_run(flow_end_t *end, int is_first, flow_line_t *line);

/* For how long this thread was ready to run and did not, in ns; or FLOW_NOT_SEEN. */
int64_t flow_cpu_waited(void);

/* ---- counters ---- */

/* Adds the counters of the interfaces that this process has open (daqiri's),
 * those that are zero left out. */
void flow_count_stats(json_t *counters);

/* What the port of a device, NAME:PORT, or the first of a list, counts: an
 * object, empty if it does not; and how much more it is by now, what has not
 * changed left out. */
json_t *flow_count_port(const char *sysfs, const char *device);
json_t *flow_count_change(const json_t *before, const json_t *after);

#endif
